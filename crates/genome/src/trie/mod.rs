//! Protocol "trie": leveled TFHE over the haplotypes that a window has.
//!
//! The intervals that some query reaches from \[0, n) form a trie; equal parts merge to a decision diagram whose
//! variables are the query's symbols and whose terminals are the lengths 0 … q. The server evaluates it with the
//! client's encrypted symbols, one external product a node, and chooses among the starts with the encrypted bits of
//! the start's number. The number travels as bits, one a coefficient, so that each needs only the noise of a bit.

mod client;
pub mod dag;
mod params;
mod server;
mod store;

pub use client::Client;
pub use params::{Params, Set};
pub use server::{Counters, Search, class};
pub use store::{Found, Store};

/// Reads bytes as a diagram of the window that they claim.
#[doc(hidden)]
pub fn read_for_fuzzing(bytes: &[u8]) {
    store::read_any(bytes);
}
