//! Encrypted search against a plain reference.

mod answers;
mod compact;
mod edges;
mod files;
mod noise;
mod parcels;
mod plain;
mod plans;
mod world;
