//! Small insecure rings and reproducible randomness.

use sudare_ring::prime::ntt_primes;
use sudare_ring::random::{ObjectSeeds, Seed, Stream};
use sudare_tfhe::{GlweContext, GlweSecretKey, Noise, SecretKind};

pub fn context(bits: u32, rank: usize, secret: SecretKind) -> GlweContext {
    let q = ntt_primes(512, bits, 1, &[]).unwrap()[0];
    GlweContext::new(512, q, rank, secret, Noise::Gaussian { sigma: 3.19 }).unwrap()
}

/// A key and a seed for everything else, from a number.
pub fn key(context: &GlweContext, number: u64) -> (GlweSecretKey, Seed) {
    let seed = Seed::from_bytes([7; 32]).derive("test", number);
    (GlweSecretKey::generate(context, &mut seed.derive("key", 0).stream(0)), seed)
}

pub fn streams(seed: &Seed, index: u64) -> (Stream, Stream) {
    let seeds = ObjectSeeds::derive(seed, "fresh", index);
    (seeds.masks.stream(0), seeds.errors.stream(0))
}

/// Uniform words below `bound`.
pub fn words(seed: &Seed, index: u64, bound: u64, count: usize) -> Vec<u64> {
    let mut out = vec![0; count];
    seed.derive("words", index).stream(0).fill_u64(&mut out);
    out.iter_mut().for_each(|w| *w %= bound);
    out
}

/// Mean square of `found − expected` modulo q, as a fraction of q².
pub fn mean_square(q: u64, found: &[u64], expected: &[u64]) -> f64 {
    let sum: f64 = found
        .iter()
        .zip(expected)
        .map(|(x, y)| {
            let d = (x + q - y) % q;
            let d = if d > q / 2 { d as f64 - q as f64 } else { d as f64 };
            (d / q as f64).powi(2)
        })
        .sum();
    sum / found.len() as f64
}
