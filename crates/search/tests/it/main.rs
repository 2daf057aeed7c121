//! Encrypted search against a plain reference.

mod answers;
mod compact;
mod edges;
mod files;
mod noise;
mod plain;
mod plans;
mod world;
