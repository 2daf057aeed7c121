//! Encrypted bits and small integers against plain arithmetic, and their noise against its formulas.
//!
//! `SUDARE_TFHE_CASES` sets how many random cases there are of each kind; a few hundred when it is not set.

mod bootstraps;
mod circuit_bootstrap;
mod derive;
mod failure;
mod fhew;
mod integers;
mod leveled;
mod measure;
mod noise;
mod objects;
mod sanitise;

use measure::support;

/// Random cases: as many as asked for, or `usual`.
fn cases(usual: u64) -> u64 {
    std::env::var("SUDARE_TFHE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

fn word(stream: &mut sudare_he::ring::random::Stream) -> u64 {
    let mut x = [0u64];
    stream.fill_u64(&mut x);
    x[0]
}
