//! Rings at the edges of ranges, operands at the edges of residues, and devices to try them on.
#![allow(dead_code)]

use sudare_cuda::{Batch, Device, Trial};
use sudare_ring::ops::PolyPairs;
use sudare_ring::prime::ntt_primes;
use sudare_ring::{Coeff, Eval, Poly, RnsBasis};
use sudare_testkit::random::word_at;

/// Room of the emulator: enough for any test, and less than the machine has.
pub const ROOM: usize = 1 << 30;

pub fn device() -> Device {
    Device::emulator(Trial::default(), ROOM)
}

/// Primes of these widths for degree `n`, none twice.
pub fn basis(n: usize, bits: &[u32]) -> RnsBasis {
    apart(n, bits, &[])
}

/// The same, none of `others`.
pub fn apart(n: usize, bits: &[u32], others: &[&RnsBasis]) -> RnsBasis {
    let mut taken: Vec<u64> = others.iter().flat_map(|b| b.primes()).collect();
    let mut primes = Vec::new();
    for bits in bits {
        let q = ntt_primes(n, *bits, 1, &taken).unwrap()[0];
        primes.push(q);
        taken.push(q);
    }
    RnsBasis::new(n, &primes).unwrap()
}

/// Residues full of 0, 1, q − 1 and (q ± 1)/2; polynomial 0 of any seed is q − 1 alone.
fn fill(seed: u64, basis: &RnsBasis, words: &mut [u64]) {
    for (i, limb) in words.chunks_exact_mut(basis.degree()).enumerate() {
        let q = basis.limb(i).q();
        for (k, x) in limb.iter_mut().enumerate() {
            let r = word_at(seed, (i as u64) << 32 | k as u64);
            *x = match (seed, r % 16) {
                (0, _) | (_, 0) => q - 1,
                (_, 1) => 0,
                (_, 2) => 1,
                (_, 3) => q / 2,
                (_, 4) => q / 2 + 1,
                _ => r % q,
            };
        }
    }
}

pub fn values(seed: u64, basis: &RnsBasis) -> Poly<Eval> {
    let mut out = Poly::dirty(basis);
    fill(seed, basis, out.words_mut());
    out
}

pub fn coefficients(seed: u64, basis: &RnsBasis) -> Poly<Coeff> {
    let mut out = Poly::dirty(basis);
    fill(seed, basis, out.words_mut());
    out
}

/// `items` items of `parts` polynomials.
pub fn items(seed: u64, basis: &RnsBasis, items: usize, parts: usize) -> Vec<Vec<Poly<Eval>>> {
    (0..items).map(|i| (0..parts).map(|p| values(seed + (i * parts + p) as u64, basis)).collect()).collect()
}

pub fn batch(device: &Device, basis: &RnsBasis, items: &[Vec<Poly<Eval>>]) -> Batch<Eval> {
    let refs: Vec<&[Poly<Eval>]> = items.iter().map(Vec::as_slice).collect();
    Batch::<Eval>::from_host(device, basis, &refs).unwrap()
}

/// Every word of every part of every item.
#[track_caller]
pub fn equal(what: &str, got: &Batch<Eval>, want: &[Vec<Poly<Eval>>]) {
    let got = got.to_host().unwrap();
    assert_eq!(got.len(), want.len(), "{what}: items");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert_eq!(got.len(), want.len(), "{what}: parts");
        for (part, (x, y)) in got.iter().zip(want).enumerate() {
            assert_eq!(x.basis(), y.basis(), "{what}: basis");
            let wrong = x.words().iter().zip(y.words()).filter(|(x, y)| x != y).count();
            assert_eq!(wrong, 0, "{what}: wrong words of item {i}, part {part}");
        }
    }
}

/// Pairs of uniform polynomials: what a key is to a device.
pub fn pairs(seed: u64, qp: &RnsBasis, terms: usize) -> PolyPairs {
    let one = |part: u64| -> Vec<_> { (0..terms as u64).map(|j| values(seed + 1000 * part + j, qp)).collect() };
    PolyPairs::new(&one(1), &one(2))
}
