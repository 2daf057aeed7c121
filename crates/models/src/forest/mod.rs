//! Forests and boosted trees on encrypted rows, with the decisions that they make in the clear.
//!
//! A client sends of each feature the rank of its value among the thresholds of the forest, so that nothing is rounded. The server brings
//! them to the places of steps: place (k, ℓ) is for the k-th inner node on the way to leaf ℓ. One table of small integers says which steps
//! are not taken, sums over k count those of each way, and a second table says which leaf is reached. Values of leaves times these
//! indicators, summed over ℓ, are the scores: the only numbers that are not exact.
//!
//! | Subject | Where |
//! |---|---|
//! | trees, their thresholds, their evaluation in the clear | [`tree`] |
//! | where steps stand | `places` |
//! | how far scores are from the exact ones | `bounds` |
//! | what is computed, on any backend | `circuit` |
//! | the choice of a set, and files | [`model`] |
//! | what client and server share | [`plan`] |
//! | who owns rows, and who computes | [`client`], [`server`] |

mod bounds;
mod circuit;
pub mod client;
pub mod model;
mod places;
pub mod plan;
pub mod server;
pub mod tree;

pub use client::Client;
pub use model::Model;
pub use plan::{Column, Figures, Plan};
pub use server::Server;
pub use tree::{Forest, Node};
