//! Encrypted products, circuits, statistics, exact integers, private searches, tables of vectors and models over HTTP.
//!
//! A client sends a plan, evaluation keys and encrypted values as *objects*, named by the SHA-256 of their bytes, and asks
//! for *jobs* on them; a result is an object again. The server holds evaluation keys and nothing secret: secret keys and
//! what only a client keeps are refused by their kind before a byte of them is stored.
//!
//! | Subject | Where |
//! |---|---|
//! | what may be asked of it, what changes while it runs, and how it ends | [`Service`], [`Settings`], [`Control`], [`Stop`] |
//! | who may ask, and what the operator offers | [`Tokens`], [`Served`] |
//! | events of its logs | [`Event`] |
//! | what a job is | [`Request`], [`Operand`], [`State`] |
//! | refusals | [`Problem`] |
//! | the other side | [`Remote`] |
//! | messages of parties that hold a key together | [`RemoteRoom`] |
//!
//! Without the feature `server` there is the other side alone, for programs that compute on such a server: the Python
//! package has it.
//!
//! The protocol is `openapi.json`, which the server gives at `/openapi.json`. What the server, its operator and another
//! tenant can see: `docs/security.md`.
#![forbid(unsafe_code)]

#[cfg(feature = "server")]
mod body;
mod client;
mod digest;
#[cfg(feature = "server")]
mod engine;
#[cfg(feature = "server")]
mod events;
#[cfg(feature = "server")]
mod jobs;
#[cfg(feature = "server")]
mod listen;
#[cfg(feature = "server")]
mod metrics;
#[cfg(feature = "server")]
mod objects;
#[cfg(feature = "server")]
mod places;
mod problem;
#[cfg(feature = "server")]
mod queries;
mod remote_room;
mod request;
#[cfg(feature = "server")]
mod rooms;
#[cfg(feature = "server")]
mod routes;
#[cfg(feature = "server")]
mod service;
#[cfg(feature = "server")]
mod settings;
#[cfg(feature = "server")]
mod tables;
mod tls;
#[cfg(feature = "server")]
mod tokens;

pub use client::{Patience, Remote, RemoteError};
pub use digest::Digest;
#[cfg(feature = "server")]
pub use engine::{CompiledModel, Served, ServedModel, ServedPanel};
#[cfg(feature = "server")]
pub use events::Event;
pub use problem::Problem;
pub use remote_room::RemoteRoom;
pub use request::{JobView, Message, ObjectView, Operand, Request, State, TableView};
#[cfg(feature = "server")]
pub use service::{Control, ServeError, Service, Stop, Tls};
#[cfg(feature = "server")]
pub use settings::{Limits, Settings};
#[cfg(feature = "server")]
pub use tables::folder_bytes;
#[cfg(feature = "server")]
pub use tokens::{Entry, Token, Tokens};

/// The protocol, as OpenAPI 3.1.
pub const OPENAPI: &str = include_str!("openapi.json");
