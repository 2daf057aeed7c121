//! Protocol "lookup": encrypted places, table lookups, a bootstrap after each.
//!
//! This is the shape of the published application (`001`, section 4): f and g travel from position to position as
//! encrypted numbers, each by a lookup of v_w at an encrypted index, and every output bit is bootstrapped. In TFHE a
//! place is bits that select, a lookup is a tree of CMUX, and a circuit bootstrap makes selectors of the bits that come
//! out. Two lookups and two groups of bootstraps for each symbol, one group more for the comparisons: 2q and 2q + 1. The
//! work does not depend on the panel's contents, and the tables may be encrypted themselves.

mod client;
pub mod compare;
mod params;
mod server;
mod tables;

pub use client::Client;
pub use params::{Set, check, index_bits, read_keys};
pub use server::{Counters, Search, Stage};
pub use tables::{EncryptedTables, Tables};

use sudare_tfhe::circuit_bootstrap::CircuitParams;

/// Reads bytes as the encrypted tables of the site that they claim.
#[doc(hidden)]
pub fn read_for_fuzzing(params: &CircuitParams, bytes: &[u8]) {
    tables::read_any(params, bytes);
}
