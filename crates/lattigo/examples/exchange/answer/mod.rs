//! What is done with objects of Lattigo, and what is answered: by the lab's example and by tests.

mod ckks;
mod exact;

#[allow(unused_imports)]
pub use ckks::{answer as ckks, values};
#[allow(unused_imports)]
pub use exact::{answer as exact, values as integers};

use std::error::Error;
use sudare_rlwe::KeyId;

/// Names and contents.
pub type Files = Vec<(String, Vec<u8>)>;
type Answer = Result<Files, Box<dyn Error>>;

/// What their key is called here.
pub const THEIRS: KeyId = KeyId(*b"a key of Lattigo");

/// An error unless something holds.
fn require(what: &str, holds: bool) -> Result<(), Box<dyn Error>> {
    if holds { Ok(()) } else { Err(format!("{what}: not what was encrypted").into()) }
}
