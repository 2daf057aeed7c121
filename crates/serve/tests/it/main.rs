//! The service, over real connections.

mod common;
#[allow(dead_code, unreachable_pub)]
mod fuzz;
mod limits;
mod objects;
mod queries;
mod rooms;
mod service;
mod tables;
