//! Encrypted bits and small integers against plain arithmetic, and their noise against its formulas.

mod arrays;
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
    sudare_testkit::setting("SUDARE_TFHE_CASES", usual)
}

/// The client of a number.
fn client(literal: sudare_tfhe::TfheLiteral, number: u8) -> sudare_tfhe::ClientKey {
    let seed = sudare_ring::random::Seed::from_bytes([number; 32]);
    sudare_tfhe::ClientKey::from_seed(&literal.build().unwrap(), &seed).unwrap()
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
