//! Plaintexts: polynomials modulo t.

use super::params::IntegerParams;
use crate::error::ExactError;
use sudare_ring::embedding::Embedding;
use sudare_ring::wipe::wipe;
use sudare_ring::{Coeff, Eval, Poly};
use sudare_rlwe::RlweError;
use zeroize::Zeroizing;

/// An encoded message: N coefficients modulo t. Wiped when dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct Plaintext {
    pub(crate) params: IntegerParams,
    pub(crate) coefficients: Vec<u64>,
}

impl Drop for Plaintext {
    fn drop(&mut self) {
        wipe(&mut self.coefficients);
    }
}

impl Plaintext {
    /// A plaintext from its N coefficients.
    ///
    /// # Errors
    /// `RlweError::TooManyValues` unless there are N, [`ExactError::DoesNotFit`] if one is not
    /// below t.
    pub fn from_coefficients(params: &IntegerParams, coefficients: Vec<u64>) -> Result<Self, ExactError> {
        if coefficients.len() != params.degree() {
            return Err(ExactError::Rlwe(RlweError::TooManyValues {
                found: coefficients.len(),
                capacity: params.degree(),
            }));
        }
        if let Some(index) = coefficients.iter().position(|x| *x >= params.t()) {
            return Err(ExactError::DoesNotFit { index, modulus: params.t() });
        }
        Ok(Self { params: params.clone(), coefficients })
    }

    /// Its parameters.
    pub fn params(&self) -> &IntegerParams {
        &self.params
    }

    /// Its coefficients, in `[0, t)`.
    pub fn coefficients(&self) -> &[u64] {
        &self.coefficients
    }

    /// `factor` times the plaintext, centred.
    pub(crate) fn centered(&self, factor: u64) -> Zeroizing<Vec<i64>> {
        let t = self.params.modulus();
        Zeroizing::new(match factor {
            1 => self.coefficients.iter().map(|x| t.center(*x)).collect(),
            _ => self.coefficients.iter().map(|x| t.center(t.mul(*x, factor))).collect(),
        })
    }

    /// `factor`·m/t over the primes of a level, as it is added to a ciphertext, in coefficient form.
    pub(crate) fn addend(&self, level: usize, factor: u64) -> Poly<Coeff> {
        let params = self.params.rlwe();
        let mut poly = Poly::<Coeff>::from_signed(params.q_at(level), &self.centered(factor));
        poly.mul_scalars(self.params.t_inv(level));
        poly
    }

    /// Prepares the plaintext as a factor for ciphertexts up to a level.
    ///
    /// # Errors
    /// `RlweError::NoSuchLevel`.
    pub fn factor(&self, level: usize) -> Result<PlainFactor, ExactError> {
        self.params.expect_level("preparing a plaintext", level)?;
        let size = self.size()?;
        Ok(PlainFactor { params: self.params.clone(), poly: self.multiplier(level), level, size })
    }

    /// Bound on the canonical norm of the centred polynomial.
    pub(crate) fn size(&self) -> Result<f64, ExactError> {
        Ok(embedded_sizes(self.params.embedding()?, &self.centered(1)).into_iter().fold(1.0, f64::max))
    }

    /// The centred polynomial over the primes of a level.
    pub(crate) fn multiplier(&self, level: usize) -> Poly<Eval> {
        Poly::<Coeff>::from_signed(self.params.q_at(level), &self.centered(1)).into_eval()
    }
}

/// A plaintext prepared to multiply ciphertexts, by its centred coefficients.
#[derive(Clone, Debug)]
pub struct PlainFactor<P = Poly<Eval>> {
    pub(crate) params: IntegerParams,
    pub(crate) poly: P,
    pub(crate) level: usize,
    pub(crate) size: f64,
}

impl<P> PlainFactor<P> {
    /// The highest level of the ciphertexts it multiplies.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Bound on its canonical norm: by how much it multiplies noise. A power of two, so that the
    /// noise bound of a result says little of a server's own plaintext.
    pub fn norm(&self) -> f64 {
        self.size.log2().ceil().exp2()
    }

    /// The bound itself, of a plaintext that everybody knows.
    pub(crate) fn size(&self) -> f64 {
        self.size
    }
}

/// Bounds on |p(ζ^(5^j))| for all j, of the polynomial p in X^(N/2p) that has 2p coefficients. The largest is its canonical norm.
pub(crate) fn embedded_sizes(embedding: &Embedding, coefficients: &[i64]) -> Vec<f64> {
    let (half, slots) = (coefficients.len() / 2, embedding.slots());
    let doubles = |x: &[i64]| {
        let mut out = Zeroizing::new(vec![0.0; slots]);
        out.iter_mut().step_by(slots / half).zip(x).for_each(|(o, x)| *o = *x as f64);
        out
    };
    let (mut re, mut im) = (doubles(&coefficients[..half]), doubles(&coefficients[half..]));
    embedding.embed_split(&mut re, &mut im);
    // The embedding is right to far less than this margin.
    re.iter().zip(im.iter()).map(|(x, y)| x.hypot(*y) * (1.0 + 1e-6)).collect()
}
