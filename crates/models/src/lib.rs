//! Trained models on encrypted inputs: a server computes what a network says of inputs that it cannot read.
//!
//! | Subject | Where |
//! |---|---|
//! | protobuf's wire format, ONNX files, with limits | `protobuf`, `onnx` |
//! | a graph as affine maps and functions between them | [`network`] |
//! | sparse matrices and their composition | [`sparse`] |
//! | functions and the polynomials in their place | [`function`], `approximate` |
//! | where elements stand in slots, and diagonals of maps | `layout` |
//! | levels of layers, and where values are refreshed | `placement` |
//! | layers on ciphertexts of any backend, a simulated one too | `circuit` |
//! | a slot for each example | `apart` |
//! | how far an answer is from the polynomial model's | `noise` |
//! | what is wanted, and what it takes and promises | [`model`], `choice`, [`plan`] |
//! | files: a plan with the weights that it names | `weights` |
//! | who owns inputs, who computes, and what travels between them | [`client`], [`server`], [`keys`], [`message`] |
//! | forests and boosted trees | [`forest`] |
//! | what networks and forests have in common | [`shared`] |
//!
//! What is linear between two functions is one sparse matrix; the server multiplies by its diagonals in baby steps and giant steps. The
//! rooms of the upper half of the table, up to `approximate`, know nothing of encryption but polynomials.
#![forbid(unsafe_code)]

mod apart;
mod approximate;
mod choice;
mod circuit;
pub mod client;
mod error;
pub mod forest;
pub mod function;
pub mod keys;
mod layout;
pub mod message;
pub mod model;
pub mod network;
mod noise;
mod onnx;
mod placement;
pub mod plan;
mod protobuf;
pub mod server;
pub mod shared;
pub mod sparse;
mod tensor;
mod weights;

pub use approximate::{Approximation, Label};
pub use client::Client;
pub use error::{ModelError, Unsupported, UnsupportedNodes};
pub use function::Function;
pub use keys::Keys;
pub use layout::Order;
pub use message::{Answer, Request};
pub use model::{Goal, Model};
pub use network::{Dense, Layer, Network};
pub use noise::Promise;
pub use plan::{Figures, LayerPlan, Operations, Plan};
pub use server::Server;
pub use shared::{Footprint, NetworkOrForest, Shared};
