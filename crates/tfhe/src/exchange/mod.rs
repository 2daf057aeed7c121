//! LWE ciphertexts into a large ring of another scheme, and back.
//!
//! In: a group of N' ciphertexts is packed into the ring of degree N', under a ternary secret z that was drawn for this
//! ([`PackingKey`](crate::PackingKey)); N/N' such ciphertexts interleave into one of degree N under z(X^(N/N')), Σ_k X^k·ct_k(X^(N/N')), without a key
//! switch (the ring packing of Bae, Cheon, Kim, Park and Stehlé, *HERMES*, 2023/1244, in its simplest form). Out: one key
//! switch from the large ring's secret to S_1(X^(N/d)) … S_k(X^(N/d)), TFHE's own ring secrets, and the ciphertext *is* N/d
//! GLWE ciphertexts of degree d, of which any coefficient can be extracted.
//!
//! Both keys are encryptions of one secret under another: security assumes that a cycle of them does no harm, as every
//! bootstrap does. Their noise and dimensions are judged by [`crate::params::security`].

mod entry;
mod exit;

pub use entry::EntryKey;
pub use exit::{ExitKey, Parts};

use crate::noise::variance;
use crate::params::security;
use crate::{Gadget, GlweContext, Noise, SecretKind, TfheError, TfheParams};
use std::sync::Arc;
use sudare_ring::prime::ntt_primes;
use sudare_rlwe::ParamsHash;

/// Which LWE ciphertexts go in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LweForm {
    /// At rest, as gates leave them: dimension k·N, modulo q.
    AtRest,
    /// Switched to dimension n, modulo 2^32: a smaller key and less work, and more noise.
    Switched,
}

/// log2 of the degree of the ring that is packed into.
const LOG_N: u32 = 11;
/// Bits of its prime: whole bytes on the wire.
const BITS: u32 = 48;
/// Its noise.
const NOISE: Noise = Noise::Gaussian { sigma: 3.19 };
/// Of a word of a mask, one digit is kept.
const ENTRY: Gadget = Gadget { base_log: 20, levels: 1 };
/// Digits of the key switch out.
const EXIT: Gadget = Gadget { base_log: 8, levels: 3 };
/// The noise variance of a bit, in that of a bootstrap's output: a MUX adds two of these.
const BIT_FACTOR: f64 = 2.0;

struct Inner {
    params: TfheParams,
    form: LweForm,
    degree: usize,
    /// The ring that is packed into.
    entry: GlweContext,
    /// The large ring modulo a prime of TFHE's size: ciphertexts that come, and what they are switched to.
    exit: [GlweContext; 2],
    hash: ParamsHash,
}

/// What both sides of an exchange agree on. Cloning shares it.
#[derive(Clone)]
pub struct Exchange(Arc<Inner>);

impl Exchange {
    /// Between ciphertexts of a set and a ring of degree 2^`log_n`.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a ring smaller than the set's or over 2^17; [`TfheError::Insecure`] for a small ring where the set
    /// claims security; `RlweError::Ring`.
    pub fn new(params: &TfheParams, form: LweForm, log_n: u32) -> Result<Self, TfheError> {
        let (context, claim) = (params.context(), params.literal().security);
        if log_n < params.literal().log_n || log_n > 17 {
            let reason = format!(
                "the large ring has the degree 2^{log_n}; take one from the set's {} to 2^17",
                context.degree()
            );
            return Err(TfheError::Parameters { reason });
        }
        let (degree, small) = (1usize << log_n, 1usize << log_n.min(LOG_N));
        let q = ntt_primes(small, BITS, 1, &[])?[0];
        security::check("packing key", small, SecretKind::Ternary, NOISE, (q as f64).log2(), claim)?;
        let entry = GlweContext::new(small, q, 1, SecretKind::Ternary, NOISE)?;
        // The set's noise modulo a prime that is hardly smaller than the set's.
        let (q, noise) = (ntt_primes(degree, context.bits(), 1, &[])?[0], params.literal().glwe_noise);
        let dimension = context.lwe_dimension();
        security::check("key out of the ring", dimension, SecretKind::Binary, noise, (q as f64).log2(), claim)?;
        let exit = [
            GlweContext::new(degree, q, 1, SecretKind::Ternary, noise)?,
            GlweContext::new(degree, q, context.rank(), SecretKind::Binary, noise)?,
        ];
        let hash = params.hash_with("sudare exchange v1", &[u64::from(log_n), form as u64]);
        Ok(Self(Arc::new(Inner { params: params.clone(), form, degree, entry, exit, hash })))
    }

    /// TFHE's set.
    pub fn params(&self) -> &TfheParams {
        &self.0.params
    }

    /// What goes in.
    pub fn form(&self) -> LweForm {
        self.0.form
    }

    /// Degree of the large ring.
    pub fn degree(&self) -> usize {
        self.0.degree
    }

    /// The name of both sets together.
    pub fn hash(&self) -> ParamsHash {
        self.0.hash
    }

    /// Dimension of what goes in.
    pub fn dimension(&self) -> usize {
        match self.0.form {
            LweForm::AtRest => self.params().context().lwe_dimension(),
            LweForm::Switched => self.params().literal().lwe_dimension,
        }
    }

    /// The ring that is packed into.
    pub fn entry(&self) -> &GlweContext {
        &self.0.entry
    }

    /// The large ring, of the rank that TFHE's ciphertexts have.
    pub fn exit(&self) -> &GlweContext {
        &self.0.exit[1]
    }

    /// Variance of a bit's phase, as a fraction of the modulus squared, in the form in which it goes in: at most what a MUX leaves.
    pub fn input_variance(&self) -> f64 {
        let output = BIT_FACTOR * self.params().output_variance();
        match self.0.form {
            LweForm::AtRest => output,
            LweForm::Switched => self.params().switched_variance(output),
        }
    }

    /// The largest variance of a bit's phase at rest with which gates keep the set's failure probability.
    pub fn largest_variance(&self) -> f64 {
        let (params, literal) = (self.params(), self.params().literal());
        let fails = |variance: f64| {
            let decided = literal.noise_factor as f64 * variance + params.decision_variance(0);
            variance::log2_tail(literal.plaintext.half_box(), decided) > literal.log_failure
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if fails(middle) { high = middle } else { low = middle }
        }
        low
    }

    /// What packing adds to it.
    pub fn entry_variance(&self) -> f64 {
        variance::packing(self.entry(), ENTRY, self.dimension(), SecretKind::Binary, 0.0)
    }

    /// What the way back adds to a phase, for a ternary secret of the large ring.
    pub fn exit_variance(&self) -> f64 {
        let (large, small) = (self.exit(), self.params().context());
        let weight = SecretKind::Ternary.mean_square() * self.degree() as f64;
        let rescaled = (1.0 + small.lwe_dimension() as f64 * small.secret().mean_square()) / 12.0;
        variance::polynomial_switch(large, EXIT, weight) + rescaled / (small.q() as f64).powi(2)
    }
}
