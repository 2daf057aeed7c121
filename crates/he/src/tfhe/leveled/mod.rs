//! Leveled mode: selectors, multiplexers and table lookups without any bootstrap or evaluation key.
//!
//! A client encrypts the bits of an index as GGSW *selectors*; a server drives trees of CMUX with
//! them over plain or encrypted tables. Every ciphertext carries a static bound of its noise
//! variance, and an operation whose result could decrypt wrongly with more than the declared
//! probability is refused before it starts. Circuit bootstrapping makes selectors of results.

mod ciphertext;
mod client;
mod diagram;
mod params;
mod rerandomise;
mod seeded;
mod server;
mod table;

pub use ciphertext::{LeveledGlwe, LeveledLwe, Selector, SelectorNoise};
pub use client::LeveledClient;
pub use diagram::{Diagram, Value};
pub use params::{LeveledLiteral, LeveledParams};
pub use rerandomise::rerandomised;
pub use seeded::{SeededGlwe, SeededSelector};
pub use server::LeveledServer;
pub use table::{PackedTable, TableLayout};
