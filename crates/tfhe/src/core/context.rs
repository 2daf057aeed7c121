//! The ring that GLWE ciphertexts live in: Z_q\[X\]/(X^N + 1) for one NTT prime q.

use crate::{Noise, NoiseSampler, SecretKind, TfheError};
use std::sync::Arc;
use sudare_ring::kernel::{IFMA_MODULUS_BITS, MAX_COLUMNS, MonomialTable};
use sudare_ring::{Limb, Modulus};

struct Inner {
    limb: Limb,
    monomials: MonomialTable,
    rank: usize,
    secret: SecretKind,
    noise: NoiseSampler,
}

/// Ring, rank k and distributions of a family of GLWE ciphertexts. Cloning shares it.
///
/// A ciphertext is k + 1 polynomials modulo q: masks A_1 … A_k and the body
/// `B = Σ A_i·S_i + M + E`; its *phase* is `B − Σ A_i·S_i`.
#[derive(Clone)]
pub struct GlweContext(Arc<Inner>);

impl GlweContext {
    /// A context for the prime `q ≡ 1 (mod 2N)`, below 2^50.
    ///
    /// # Errors
    /// `RlweError::Ring` for a degree or prime that the transforms do not serve,
    /// [`TfheError::Parameters`] for a rank outside 1..=5 or a larger prime.
    pub fn new(degree: usize, q: u64, rank: usize, secret: SecretKind, noise: Noise) -> Result<Self, TfheError> {
        if !(1..MAX_COLUMNS).contains(&rank) {
            return Err(TfheError::Parameters { reason: format!("the rank is 1 to {}, not {rank}", MAX_COLUMNS - 1) });
        }
        if q >> IFMA_MODULUS_BITS != 0 {
            return Err(TfheError::Parameters {
                reason: format!("modulus {q} is not below 2^{IFMA_MODULUS_BITS}; take a smaller one"),
            });
        }
        let limb = Limb::new(q, degree)?;
        let monomials = MonomialTable::new(&limb);
        Ok(Self(Arc::new(Inner { limb, monomials, rank, secret, noise: NoiseSampler::new(noise)? })))
    }

    /// The prime and its kernels.
    pub fn limb(&self) -> &Limb {
        &self.0.limb
    }

    /// The prime's arithmetic.
    pub fn modulus(&self) -> &Modulus {
        self.0.limb.modulus()
    }

    /// q.
    pub fn q(&self) -> u64 {
        self.0.limb.q()
    }

    /// Bits of q.
    pub fn bits(&self) -> u32 {
        self.modulus().bits()
    }

    /// The ring degree N.
    pub fn degree(&self) -> usize {
        self.0.limb.degree()
    }

    /// The rank k.
    pub fn rank(&self) -> usize {
        self.0.rank
    }

    /// The dimension k·N of an extracted LWE ciphertext.
    pub fn lwe_dimension(&self) -> usize {
        self.rank() * self.degree()
    }

    /// Words of a ciphertext.
    pub fn words(&self) -> usize {
        (self.rank() + 1) * self.degree()
    }

    /// Distribution of secret coefficients.
    pub fn secret(&self) -> SecretKind {
        self.0.secret
    }

    /// Fresh noise.
    pub fn noise(&self) -> &NoiseSampler {
        &self.0.noise
    }

    /// Monomials in evaluation form.
    pub fn monomials(&self) -> &MonomialTable {
        &self.0.monomials
    }

    /// Whether ciphertexts of both can meet: same ring and rank.
    pub fn same_ring(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.q(), self.degree(), self.rank()) == (other.q(), other.degree(), other.rank())
    }

    /// # Errors
    /// [`TfheError::Modulus`] or [`TfheError::Shape`] unless [`GlweContext::same_ring`].
    pub(crate) fn check(&self, other: &Self) -> Result<(), TfheError> {
        if self.q() != other.q() {
            return Err(TfheError::Modulus { expected: self.q(), found: other.q() });
        }
        check_shape("ring degree", self.degree(), other.degree())?;
        check_shape("GLWE rank", self.rank(), other.rank())
    }
}

/// # Errors
/// [`TfheError::Shape`] if the numbers differ.
pub(crate) fn check_shape(what: &'static str, expected: usize, found: usize) -> Result<(), TfheError> {
    if expected == found { Ok(()) } else { Err(TfheError::Shape { what, expected, found }) }
}
