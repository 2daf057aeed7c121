//! The service, over real connections.

mod bounds;
mod common;
mod service;
