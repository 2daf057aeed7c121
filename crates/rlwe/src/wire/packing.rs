//! Residues on the wire: ceil(bits/8) bytes each, limb after limb.
//!
//! Whole bytes rather than bits: for the usual 40-, 49- and 60-bit primes a bit-exact packing
//! would save at most an eighth more, and this one is unpacked by one unaligned load a residue.

use super::error::WireError;
use sudare_ring::{Eval, Poly, RnsBasis};

/// Bytes of a residue modulo `q`.
pub fn width(q: u64) -> usize {
    (64 - q.leading_zeros()).div_ceil(8) as usize
}

/// Bytes of a polynomial over a basis.
pub fn packed_bytes(basis: &RnsBasis) -> u64 {
    basis.primes().map(|q| (basis.degree() * width(q)) as u64).sum()
}

/// Appends the residues of a polynomial.
pub fn pack(poly: &Poly<Eval>, out: &mut Vec<u8>) {
    let basis = poly.basis();
    basis.primes().enumerate().for_each(|(i, q)| pack_words(poly.limb(i), q, out));
}

/// Appends words below `q`.
pub fn pack_words(words: &[u64], q: u64, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + words.len() * width(q), 0);
    let bytes = &mut out[start..];
    match width(q) {
        1 => pack_limb::<1>(words, bytes),
        2 => pack_limb::<2>(words, bytes),
        3 => pack_limb::<3>(words, bytes),
        4 => pack_limb::<4>(words, bytes),
        5 => pack_limb::<5>(words, bytes),
        6 => pack_limb::<6>(words, bytes),
        7 => pack_limb::<7>(words, bytes),
        _ => pack_limb::<8>(words, bytes),
    }
}

/// Appends residues modulo `q`.
pub fn append_words(words: &[u64], q: u64, out: &mut Vec<u8>) {
    for x in words {
        out.extend_from_slice(&x.to_le_bytes()[..width(q)]);
    }
}

/// Residues modulo `q` from bytes of a segment, every one checked.
///
/// # Errors
/// [`WireError::Coefficient`]; [`WireError::Corrupt`] for a part of a residue.
pub fn read_words(bytes: &[u8], q: u64, segment: usize) -> Result<Vec<u64>, WireError> {
    if !bytes.len().is_multiple_of(width(q)) {
        return Err(WireError::Corrupt { what: "a part of a residue" });
    }
    let words = bytes.chunks_exact(width(q)).map(|b| {
        let mut word = [0; 8];
        word[..b.len()].copy_from_slice(b);
        u64::from_le_bytes(word)
    });
    let words: Vec<u64> = words.collect();
    match words.iter().position(|x| *x >= q) {
        Some(index) => Err(WireError::Coefficient { segment, limb: 0, index }),
        None => Ok(words),
    }
}

fn pack_limb<const WIDTH: usize>(words: &[u64], bytes: &mut [u8]) {
    for (x, b) in words.iter().zip(bytes.chunks_exact_mut(WIDTH)) {
        b.copy_from_slice(&x.to_le_bytes()[..WIDTH]);
    }
}

/// A polynomial from the bytes of a segment, every residue checked.
///
/// # Errors
/// [`WireError::Coefficient`]; [`WireError::Corrupt`] for another length.
pub fn unpack(basis: &RnsBasis, mut bytes: &[u8], segment: usize) -> Result<Poly<Eval>, WireError> {
    if bytes.len() as u64 != packed_bytes(basis) {
        return Err(WireError::Corrupt { what: "a segment of the wrong length" });
    }
    let n = basis.degree();
    let mut out = Poly::dirty(basis);
    for (limb, q) in basis.primes().enumerate() {
        let (here, rest) = bytes.split_at(n * width(q));
        let words = out.limb_mut(limb);
        if !unpack_words(here, q, words)
            && let Some(index) = words.iter().position(|x| *x >= q)
        {
            return Err(WireError::Coefficient { segment, limb, index });
        }
        bytes = rest;
    }
    Ok(out)
}

/// Reads words of the width that `q` has; whether all are below `q`.
pub fn unpack_words(bytes: &[u8], q: u64, words: &mut [u64]) -> bool {
    match width(q) {
        1 => unpack_limb::<1>(bytes, words, q),
        2 => unpack_limb::<2>(bytes, words, q),
        3 => unpack_limb::<3>(bytes, words, q),
        4 => unpack_limb::<4>(bytes, words, q),
        5 => unpack_limb::<5>(bytes, words, q),
        6 => unpack_limb::<6>(bytes, words, q),
        7 => unpack_limb::<7>(bytes, words, q),
        _ => unpack_limb::<8>(bytes, words, q),
    }
}

/// Whether all residues are below `q`; one pass without a branch. A residue is read with what follows it, which a mask
/// takes away: copying its bytes alone into a word takes six times as long.
fn unpack_limb<const WIDTH: usize>(bytes: &[u8], words: &mut [u64], q: u64) -> bool {
    let (mask, mut bad) = (u64::MAX >> (64 - 8 * WIDTH), false);
    // The last residues have less than eight bytes left.
    let whole = words.len().min((bytes.len() + WIDTH).saturating_sub(8) / WIDTH);
    let (first, last) = words.split_at_mut(whole);
    for (x, b) in first.iter_mut().zip(bytes.windows(8).step_by(WIDTH)) {
        *x = b.first_chunk().map_or(0, |b| u64::from_le_bytes(*b)) & mask;
        bad |= *x >= q;
    }
    for (x, b) in last.iter_mut().zip(bytes[whole * WIDTH..].chunks_exact(WIDTH)) {
        let mut word = [0; 8];
        word[..WIDTH].copy_from_slice(b);
        *x = u64::from_le_bytes(word);
        bad |= *x >= q;
    }
    !bad
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_ring::prime::ntt_primes;
    use sudare_testkit::Random;

    #[test]
    fn every_width_comes_back_and_is_checked() {
        let n = 512;
        for bits in [14, 16, 17, 24, 30, 32, 40, 41, 49, 56, 57, 61] {
            let basis = RnsBasis::new(n, &ntt_primes(n, bits, 1, &[]).unwrap()).unwrap();
            let q = basis.limb(0).q();
            let words = Random(q).words(q, n);
            let poly = Poly::from_words(&basis, &words).unwrap();
            let mut bytes = Vec::new();
            pack(&poly, &mut bytes);
            assert_eq!(bytes.len(), n * (bits as usize).div_ceil(8));
            assert_eq!(unpack(&basis, &bytes, 0).unwrap().words(), words);
            assert!(unpack(&basis, &bytes[1..], 0).is_err());
            let w = width(q);
            bytes[7 * w..8 * w].copy_from_slice(&q.to_le_bytes()[..w]);
            let error = unpack(&basis, &bytes, 3).unwrap_err();
            assert_eq!(error, WireError::Coefficient { segment: 3, limb: 0, index: 7 });
        }
    }
}
