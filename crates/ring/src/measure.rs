//! What this machine's kernels cost, by a clock of the caller's choice.

use crate::RingError;
use crate::buffer::Buffer;
use crate::kernel::{Family, Limb};
use crate::modulus::Modulus;
use crate::packed::PackedPairs;
use crate::prime::ntt_primes;
use crate::threads::{Threads, for_each_chunk};
use std::hint::black_box;
use std::time::Duration;

/// The names of the families in use, for primes below 2^50 and above.
///
/// # Errors
/// [`RingError::ModulusRange`] never.
pub fn families() -> Result<[&'static str; 2], RingError> {
    let name = |q: u64| -> Result<_, RingError> { Ok(Family::choose(&Modulus::new(q)?).name()) };
    Ok([name((1 << 46) - 1)?, name((1 << 60) - 1)?])
}

/// The median time of one call in nanoseconds, over about `budget_ms` milliseconds.
fn median_ns(now: &impl Fn() -> Duration, budget_ms: u128, mut work: impl FnMut()) -> f64 {
    work();
    let start = now();
    let mut samples = Vec::new();
    while samples.len() < 9 || now().saturating_sub(start).as_millis() < budget_ms {
        let begin = now();
        work();
        samples.push(now().saturating_sub(begin).as_nanos() as f64);
    }
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn limb(log_n: u32, bits: u32) -> Result<Limb, RingError> {
    let n = 1usize << log_n;
    Limb::new(ntt_primes(n, bits, 1, &[])?[0], n)
}

/// Words below q, aligned as those of a polynomial are.
fn filled(q: u64, len: usize) -> Buffer {
    let mut words = Buffer::dirty(len);
    // Any full-size residues do: no kernel's time depends on values.
    words.iter_mut().zip(0..).for_each(|(x, i)| *x = q - 1 - i % q);
    words
}

/// Nanoseconds of a transform, of an element-wise pass, and of a term of one of the two inner products of a key switch, at
/// N = 2^`log_n` for a prime of so many bits.
///
/// # Errors
/// [`RingError::Degree`], [`RingError::TooFewPrimes`].
pub fn passes(log_n: u32, bits: u32, now: &impl Fn() -> Duration) -> Result<[f64; 3], RingError> {
    let limb = limb(log_n, bits)?;
    // As many limbs as a ciphertext has, one after the other, so that data comes from where it comes from there.
    const LIMBS: usize = 8;
    let n = limb.degree();
    let mut data = filled(limb.q(), LIMBS * n);
    let other = filled(limb.q(), LIMBS * n);
    let others: Vec<&[u64]> = other.chunks_exact(n).collect();
    // All of them in a sample: a processor's clock takes as long to read as the shortest pass.
    let mut time = |work: &mut dyn FnMut(&mut [u64], usize)| {
        let all = median_ns(now, 25, || data.chunks_exact_mut(n).enumerate().for_each(|(at, x)| work(x, at)));
        all / LIMBS as f64
    };
    let forward = time(&mut |x, _| limb.forward(x));
    let inverse = time(&mut |x, _| limb.inverse(x));
    let pass = time(&mut |x, at| limb.mul_add(x, others[at], others[(at + 1) % LIMBS]));
    // As many digits as most key switches have.
    const TERMS: usize = 4;
    let pairs = PackedPairs::new(&limb, &[[others[0], others[1]]; TERMS]);
    let mut second = Buffer::zeroed(n);
    let sums = time(&mut |x, at| {
        let digits: [&[u64]; TERMS] = std::array::from_fn(|j| others[(at + j) % LIMBS]);
        limb.dot_pair_packed([x, &mut second], &digits, &pairs, None);
    });
    black_box((&data, &second));
    Ok([(forward + inverse) / 2.0, pass, sums / (2 * TERMS) as f64])
}

/// Nanoseconds of a multiply-accumulate inside a matrix product, for a prime of so many bits.
///
/// # Errors
/// As [`passes`].
pub fn multiply_accumulate(bits: u32, now: &impl Fn() -> Duration) -> Result<f64, RingError> {
    const D: usize = 256;
    let limb = limb(12, bits)?;
    let (a, b) = (filled(limb.q(), D * D), filled(limb.q(), D * D));
    let mut c = Buffer::zeroed(D * D);
    let ns = median_ns(now, 60, || limb.gemm(&mut c, D, &a, D, &b, D, (D, D, D), false));
    black_box(&c);
    Ok(ns / (D * D * D) as f64)
}

/// Bytes a second read from memory by one thread.
pub fn bandwidth(now: &impl Fn() -> Duration) -> f64 {
    const WORDS: usize = 12 << 20;
    let data: Vec<u64> = (0..WORDS as u64).collect();
    let ns = median_ns(now, 100, || {
        let mut sums = [0u64; 8];
        for chunk in data.chunks_exact(8) {
            sums.iter_mut().zip(chunk).for_each(|(s, x)| *s = s.wrapping_add(*x));
        }
        black_box(sums);
    });
    (WORDS * 8) as f64 / ns * 1e9
}

/// What each of `threads` threads after the first adds to transforms, 0 to 1.
///
/// # Errors
/// As [`passes`].
pub fn thread_gain(threads: usize, now: &impl Fn() -> Duration) -> Result<f64, RingError> {
    if threads < 2 {
        return Ok(1.0);
    }
    let limb = limb(13, 46)?;
    let n = limb.degree();
    let mut data = filled(limb.q(), n * 16 * threads);
    let mut time =
        |pool: &Threads| median_ns(now, 60, || pool.run(|| for_each_chunk(&mut data, n, |_, x| limb.forward(x))));
    let (one, all) = (time(&Threads::new(1)), time(&Threads::new(threads)));
    Ok(((one / all - 1.0) / (threads as f64 - 1.0)).clamp(0.0, 1.0))
}
