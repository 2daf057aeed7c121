//! The service, over real connections.

mod common;
mod limits;
mod service;
