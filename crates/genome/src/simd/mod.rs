//! Protocol "simd": BGV, without any bootstrap and without the PBWT's intervals.
//!
//! The distinct haplotypes of the window stand in slots, position by position. A symbol w and a haplotype's h agree
//! where `1 − (w − h)²` is one, which is linear in w for bits; prefix products double their length with each of log2 q
//! products; the number of haplotypes that still agree at a position is blinded by a random factor, so that all the
//! client learns is whether it is zero. Slots that one query leaves free serve others: a batch shares one evaluation.

mod client;
mod layout;
mod params;
mod server;

pub use client::Client;
pub use layout::Layout;
pub use params::{MODULUS, Set};
pub use server::{Counters, Keys, Search};
