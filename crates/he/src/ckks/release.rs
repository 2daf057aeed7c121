//! Decryption of results that others will see: noise flooding.

use super::ciphertext::Ciphertext;
use super::decrypt::Decryptor;
use super::noise::canonical_bound;
use super::plaintext::Plaintext;
use crate::error::HeError;
use std::sync::atomic::{AtomicU64, Ordering};
use sudare_ring::random::{Seed, Stream};
use sudare_ring::{Coeff, Eval, Poly, RnsBasis};
use zeroize::Zeroizing;

/// How many results will be shown under one key, and how hard they are to tell from ideal ones.
///
/// Flooding noise with standard deviation √(12·τ)·2^(ν/2)·B for τ releases, ν bits of statistical
/// security and noise bound B (Li–Micciancio–Schultz–Sorrell, ePrint 2022/816). The count goes
/// down with each release; at zero the key has shown all it may.
#[derive(Debug)]
pub struct ReleasePolicy {
    declared: u64,
    security_bits: u32,
    used: AtomicU64,
}

impl ReleasePolicy {
    /// A policy of `releases` results at `security_bits` of statistical security.
    pub fn new(releases: u64, security_bits: u32) -> Self {
        Self { declared: releases, security_bits, used: AtomicU64::new(0) }
    }

    /// Releases declared.
    pub fn declared(&self) -> u64 {
        self.declared
    }

    /// Releases left.
    pub fn left(&self) -> u64 {
        self.declared - self.used.load(Ordering::Relaxed).min(self.declared)
    }

    /// Standard deviation of a coefficient's flooding noise over a coefficient noise bound.
    fn deviation(&self, noise_bound: f64) -> f64 {
        (12.0 * self.declared as f64).sqrt() * (f64::from(self.security_bits) / 2.0).exp2() * noise_bound
    }
}

impl Decryptor<'_> {
    /// Decryption for release: floods the error, so that the result may be shown.
    ///
    /// # Errors
    /// As [`Decryptor::decrypt`]; [`HeError::ReleasesUsedUp`]; [`HeError::NoPrecision`] if less
    /// than a bit of precision would be left — then the computation needs a larger scale.
    pub fn decrypt_for_release(&self, ciphertext: &Ciphertext, policy: &ReleasePolicy) -> Result<Plaintext, HeError> {
        let operation = "decryption for release";
        let n = ciphertext.params.degree();
        let deviation = policy.deviation(ciphertext.noise.max(1.0));
        let flooded = ciphertext.noise + canonical_bound(n, deviation * deviation, 1);
        if flooded * 2.0 > ciphertext.scale {
            return Err(HeError::NoPrecision { operation, noise: flooded.log2(), scale: ciphertext.scale.log2() });
        }
        let mut wide = ciphertext.clone();
        wide.noise = flooded;
        wide.check_fits(operation)?;
        // Everything that can be refused has been: only now is a release used.
        let mut plaintext = self.decrypt(&wide)?;
        let take = |used: u64| (used < policy.declared).then_some(used + 1);
        if policy.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return Err(HeError::ReleasesUsedUp { declared: policy.declared });
        }
        let noise = flooding(&mut Seed::from_entropy()?.stream(0), plaintext.poly.basis(), deviation);
        plaintext.poly.add_assign(&noise);
        Ok(plaintext)
    }
}

/// Rounded Gaussian coefficients of a standard deviation that may be larger than any word.
///
/// Box–Muller in double precision gives the upper bits; those below the mantissa are filled
/// uniformly, so that no value is out of reach.
fn flooding(stream: &mut Stream, basis: &RnsBasis, deviation: f64) -> Poly<Eval> {
    let unit = |w: u64| ((w >> 11) as f64 + 0.5) * (-53f64).exp2();
    let mut coarse = (deviation.log2() - 44.0).max(0.0) as u32;
    let upper = deviation * (-f64::from(coarse)).exp2();
    let mut word = Zeroizing::new(vec![0i64; basis.degree()]);
    for pair in word.chunks_mut(2) {
        let radius = (-2.0 * unit(stream.next_u64()).ln()).sqrt() * upper;
        let angle = std::f64::consts::TAU * unit(stream.next_u64());
        for (o, g) in pair.iter_mut().zip([radius * angle.cos(), radius * angle.sin()]) {
            *o = g.round() as i64;
        }
    }
    let mut out = Poly::<Coeff>::from_signed(basis, &word).into_eval();
    while coarse > 0 {
        let bits = coarse.min(48);
        coarse -= bits;
        word.iter_mut().for_each(|o| *o = (stream.next_u64() >> (64 - bits)) as i64);
        out.mul_scalars(&Poly::<Eval>::scalar(basis, 1 << bits));
        out.add_assign(&Poly::<Coeff>::from_signed(basis, &word).into_eval());
    }
    out
}
