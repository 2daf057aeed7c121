//! Integration tests.

mod encrypted;
mod files;
mod forest;
mod fuzz;
mod onnx;
mod operators;
mod plans;
mod refreshed;
mod world;
