//! Encrypted bits and small integers against plain arithmetic, and their noise against its formulas.

mod bootstraps;
mod circuit_bootstrap;
mod derive;
mod failure;
mod fhew;
mod gates;
mod integers;
mod leveled;
mod measure;
mod noise;
mod objects;
mod sanitise;
mod wire;

use measure::support;

/// Random cases: as many as asked for, or `usual`.
fn cases(usual: u64) -> u64 {
    std::env::var("SUDARE_TFHE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

fn word(stream: &mut sudare_ring::random::Stream) -> u64 {
    let mut x = [0u64];
    stream.fill_u64(&mut x);
    x[0]
}

/// Damage anywhere in a file, and a file that is cut, are refused.
fn damaged(bytes: &[u8], read: impl Fn(&[u8]) -> Result<(), sudare_rlwe::wire::WireError>) {
    let mut damaged = bytes.to_vec();
    for i in (0..bytes.len().min(300)).step_by(7).chain((300..bytes.len()).step_by(bytes.len() / 20 + 1)) {
        damaged[i] ^= 1 << (i % 8);
        assert!(read(&damaged).is_err(), "byte {i}");
        damaged[i] ^= 1 << (i % 8);
        assert!(read(&bytes[..i]).is_err(), "cut at {i}");
    }
}
