//! Encrypted products, circuits, statistics, exact integers and private searches over HTTP.
//!
//! A client sends a plan, evaluation keys and encrypted values as *objects*, named by the SHA-256 of their bytes, and asks
//! for *jobs* on them; a result is an object again. The server holds evaluation keys and nothing secret: secret keys and
//! what only a client keeps are refused by their kind before a byte of them is stored.
//!
//! | Subject | Where |
//! |---|---|
//! | what may be asked of it, and how it ends | [`Service`], [`Settings`], [`Stop`] |
//! | who may ask, in which panels | [`Tokens`], [`ServedPanel`] |
//! | what a job is | [`Request`], [`Operand`], [`State`] |
//! | refusals | [`Problem`] |
//! | the other side | [`Remote`] |
//!
//! The protocol is `openapi.json`, which the server gives at `/openapi.json`. What the server, its operator and another
//! tenant can see: `docs/security.md`.
#![forbid(unsafe_code)]

mod body;
mod client;
mod digest;
mod engine;
mod jobs;
mod listen;
mod metrics;
mod objects;
mod places;
mod problem;
mod request;
mod routes;
mod service;
mod settings;
mod tokens;

pub use client::{Remote, RemoteError};
pub use digest::Digest;
pub use engine::ServedPanel;
pub use problem::Problem;
pub use request::{JobView, Operand, Request, State};
pub use service::{ServeError, Service, Stop, Tls};
pub use settings::{Limits, Settings};
pub use tokens::{Token, Tokens};

/// The protocol, as OpenAPI 3.1.
pub const OPENAPI: &str = include_str!("openapi.json");
