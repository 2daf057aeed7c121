//! Integration tests.

mod encrypted;
mod files;
mod onnx;
mod operators;
mod plans;
mod world;
