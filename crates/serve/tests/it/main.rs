//! The service, over real connections.

mod common;
mod service;
