//! Sums and products of ciphertexts (`002`, section 2.1, "homomorphic operations").

use super::ciphertext::Ciphertext;
use super::noise::Norms;
use super::params::Params;
use super::plaintext::Plaintext;
use sudare_he::HeError;
use sudare_ring::{Coeff, Eval, Poly};
use sudare_rlwe::RlweError;

/// A plaintext prepared for products with many ciphertexts.
#[derive(Clone, Debug)]
pub struct Multiplier {
    params: Params,
    poly: Poly<Eval>,
    /// Norms of the centred coefficients, and their sum.
    norms: Norms,
    sum: f64,
}

/// Computes on ciphertexts. There are no keys to hold. What could decrypt wrongly is refused
/// before anything is computed.
#[derive(Clone, Debug)]
pub struct Evaluator {
    params: Params,
}

impl Evaluator {
    /// An evaluator of a parameter set.
    pub fn new(params: &Params) -> Self {
        Self { params: params.clone() }
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    fn require(&self, a: &Ciphertext) -> Result<(), HeError> {
        self.params.require("the ciphertext", &a.params)
    }

    fn require_pair(&self, a: &Ciphertext, b: &Ciphertext) -> Result<(), HeError> {
        self.require(a)?;
        self.require(b)?;
        Ok(a.key.require("the right operand", b.key)?)
    }

    fn with(&self, a: &Ciphertext, parts: Vec<Poly<Eval>>, norms: Norms) -> Ciphertext {
        Ciphertext { params: self.params.clone(), key: a.key, parts, norms }
    }

    /// `a + b`; the shorter one counts as padded with zeros.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, [`HeError::MayDecryptWrongly`].
    pub fn add(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.require_pair(a, b)?;
        let norms = a.norms.plus(b.norms);
        self.params.check("addition", norms)?;
        let (longer, shorter) = if a.len() >= b.len() { (a, b) } else { (b, a) };
        let sums = longer.parts.iter().zip(&shorter.parts).map(|(x, y)| x.add(y));
        let parts = sums.chain(longer.parts[shorter.len()..].iter().cloned()).collect();
        Ok(self.with(a, parts, norms))
    }

    /// `a += b`.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; `a` is as it was then.
    pub fn add_assign(&self, a: &mut Ciphertext, b: &Ciphertext) -> Result<(), HeError> {
        self.require_pair(a, b)?;
        let norms = a.norms.plus(b.norms);
        self.params.check("addition", norms)?;
        a.parts.iter_mut().zip(&b.parts).for_each(|(x, y)| x.add_assign(y));
        a.parts.extend(b.parts.iter().skip(a.parts.len()).cloned().collect::<Vec<_>>());
        a.norms = norms;
        Ok(())
    }

    /// `−a`.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`.
    pub fn neg(&self, a: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.require(a)?;
        let mut out = a.clone();
        out.parts.iter_mut().for_each(Poly::neg_assign);
        Ok(out)
    }

    /// `a − b`.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn sub(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.require_pair(a, b)?;
        self.params.check("subtraction", a.norms.plus(b.norms))?;
        self.add(a, &self.neg(b)?)
    }

    /// `a·c` for an integer.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, [`HeError::MayDecryptWrongly`].
    pub fn mul_integer(&self, a: &Ciphertext, c: i64) -> Result<Ciphertext, HeError> {
        self.require(a)?;
        let norms = a.norms.scaled(c);
        self.params.check("multiplication by an integer", norms)?;
        let factors = Poly::<Eval>::scalar(self.params.q(), c);
        let mut out = a.clone();
        out.parts.iter_mut().for_each(|p| p.mul_scalars(&factors));
        out.norms = norms;
        Ok(out)
    }

    /// `a + m`.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, [`HeError::MayDecryptWrongly`].
    pub fn add_plain(&self, a: &Ciphertext, m: &Plaintext) -> Result<Ciphertext, HeError> {
        self.require(a)?;
        self.params.require("the plaintext", &m.params)?;
        let norms = a.norms.plus(m.norms());
        self.params.check("addition of a plaintext", norms)?;
        let mut out = a.clone();
        out.parts[0].add_assign(&self.evaluated(m));
        out.norms = norms;
        Ok(out)
    }

    fn evaluated(&self, m: &Plaintext) -> Poly<Eval> {
        Poly::<Coeff>::from_signed(self.params.q(), &m.centered()).into_eval()
    }

    /// Prepares a plaintext for [`Evaluator::mul_prepared`].
    ///
    /// # Errors
    /// `RlweError::WrongParameters`.
    pub fn prepare(&self, m: &Plaintext) -> Result<Multiplier, HeError> {
        self.params.require("the plaintext", &m.params)?;
        let centered = m.centered();
        let sum = centered.iter().map(|c| c.unsigned_abs() as f64).sum();
        let norms = Norms::of(centered.into_iter());
        Ok(Multiplier { params: self.params.clone(), poly: self.evaluated(m), norms, sum })
    }

    /// `a·m` modulo X^N + 1: no longer than `a`.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, [`HeError::MayDecryptWrongly`].
    pub fn mul_prepared(&self, a: &Ciphertext, m: &Multiplier) -> Result<Ciphertext, HeError> {
        self.require(a)?;
        self.params.require("the plaintext", &m.params)?;
        let wide = a.norms.times(m.norms, self.params.degree());
        // ‖a·m‖ ≤ ‖a‖·Σ|m_i| in either norm.
        let narrow = (a.norms.euclid * m.sum * (1.0 + 1e-9), a.norms.max * m.sum * (1.0 + 1e-9));
        let norms = Norms { euclid: wide.euclid.min(narrow.0), max: wide.max.min(narrow.1) };
        self.params.check("multiplication by a plaintext", norms)?;
        Ok(self.with(a, a.parts.iter().map(|p| p.mul(&m.poly)).collect(), norms))
    }

    /// `a·m` modulo X^N + 1.
    ///
    /// # Errors
    /// As [`Evaluator::mul_prepared`].
    pub fn mul_plain(&self, a: &Ciphertext, m: &Plaintext) -> Result<Ciphertext, HeError> {
        self.mul_prepared(a, &self.prepare(m)?)
    }

    /// `a·b`, with as many parts as both together less one.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, [`HeError::TooManyParts`],
    /// [`HeError::MayDecryptWrongly`].
    pub fn mul(&self, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.dot(&[a], &[b])
    }

    /// Σ_j a_j·b_j, with one reduction for all terms of a part.
    ///
    /// # Errors
    /// As [`Evaluator::mul`], and `RlweError::Operands` for no terms or lists of different lengths.
    pub fn dot(&self, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<Ciphertext, HeError> {
        let operation = "multiplication";
        let (Some(first), true) = (a.first(), a.len() == b.len()) else {
            return Err(RlweError::Operands { operation, left: a.len(), right: b.len() }.into());
        };
        let (mut norms, mut length) = (Norms::ZERO, 0);
        for (x, y) in a.iter().zip(b) {
            self.require_pair(first, x)?;
            self.require_pair(first, y)?;
            norms = norms.plus(x.norms.times(y.norms, self.params.degree()));
            length = length.max(x.len() + y.len() - 1);
        }
        self.params.check_length(operation, length)?;
        self.params.check(operation, norms)?;
        let part = |k: usize| {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            for (x, y) in a.iter().zip(b) {
                for i in (k + 1).saturating_sub(y.len())..x.len().min(k + 1) {
                    left.push(&x.parts[i]);
                    right.push(&y.parts[k - i]);
                }
            }
            Poly::dot(self.params.q(), &left, &right)
        };
        Ok(self.with(first, (0..length).map(part).collect(), norms))
    }
}
