//! Headers with fields at their extremes, for the wire tests of every crate that has objects.

use std::ops::Range;
use sudare_rlwe::wire::{peek, reseal_for_tests};

/// Integers and the bits of floats that sit at an edge.
fn extremes() -> impl Iterator<Item = u64> {
    let floats = [1.0, -1.0, -0.0, 0.5, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let integers = [0, 1, 2, 3, 1 << 31, u64::from(u32::MAX), 1 << 32, 1 << 63, u64::MAX];
    integers.into_iter().chain(floats.map(f64::to_bits))
}

/// The file with each 4 and 8 byte field of its header replaced by each extreme and each of `more`, and where. Seeds of
/// masks are none: their bytes are a part of the ciphertext, as the residues are.
pub fn edits(bytes: &[u8], seed: Range<usize>, more: &[u64]) -> Vec<(usize, Vec<u8>)> {
    let header = peek(bytes).unwrap().bytes() as usize - 32;
    let places = (0..header).step_by(4).flat_map(|at| [(at, 4), (at, 8)]);
    let places = places.filter(|(at, width)| at % width == 0 && at + width <= header && !seed.contains(at));
    let mut out = Vec::new();
    for (at, width) in places {
        for value in extremes().chain(more.iter().copied()) {
            let mut edited = bytes.to_vec();
            edited[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
            if edited != bytes {
                reseal_for_tests(&mut edited);
                out.push((at, edited));
            }
        }
    }
    out
}
