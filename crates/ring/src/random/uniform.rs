//! Uniform residues: the meaning of a mask seed.

use zeroize::Zeroize;

use super::Stream;
use crate::modulus::Modulus;

/// Tries of one buffer.
const TRIES: usize = 1024;

/// Fills `out` with independent, exactly uniform residues in `[0, q)`.
///
/// This defines what a mask seed means, on every device. With `b` the length of `q` in bits and
/// `w = ceil(b/8)`, a *try* is the next `w` bytes of the stream as a little-endian integer
/// modulo `2^b`. Values of `out` are, in order, the tries that are below `q`; the others are
/// skipped. The stream is left right after the try that gave the last value, so the call
/// consumes `w` bytes a try and nothing else.
///
/// Fewer than two tries a value are expected, and hardly more than one for `q` just below a power of
/// two. The time shows which tries were skipped and nothing about the values kept.
pub fn uniform(stream: &mut Stream, modulus: &Modulus, out: &mut [u64]) {
    match modulus.bits().div_ceil(8) {
        1 => fill::<1>(stream, modulus, out),
        2 => fill::<2>(stream, modulus, out),
        3 => fill::<3>(stream, modulus, out),
        4 => fill::<4>(stream, modulus, out),
        5 => fill::<5>(stream, modulus, out),
        6 => fill::<6>(stream, modulus, out),
        7 => fill::<7>(stream, modulus, out),
        _ => fill::<8>(stream, modulus, out),
    }
}

fn fill<const WIDTH: usize>(stream: &mut Stream, modulus: &Modulus, out: &mut [u64]) {
    let q = modulus.value();
    let mask = u64::MAX >> (64 - modulus.bits());
    // Each try is read as eight bytes, so the last one reads past its own.
    let mut buffer = [0u8; TRIES * 8 + 8];
    let mut rest = out;
    while !rest.is_empty() {
        // No more tries than values wanted: all of them may be kept, none is left over.
        let tries = rest.len().min(TRIES);
        stream.fill_bytes(&mut buffer[..tries * WIDTH]);
        let mut kept = 0;
        for i in 0..tries {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&buffer[i * WIDTH..i * WIDTH + 8]);
            let value = u64::from_le_bytes(bytes) & mask;
            rest[kept] = value;
            kept += usize::from(value < q);
        }
        rest = &mut rest[kept..];
    }
    buffer.zeroize();
}
