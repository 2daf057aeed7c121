//! Noise of what every scheme does: one formula for each operation, read as a variance or as a bound.
//!
//! Each formula gives the variance of a coefficient of the error polynomial, apart for terms that are
//! one random polynomial, a product of two and a product of three ([`Noise`]). Read as a variance they
//! add up. Read as a bound each is one on its canonical embedding, ‖e‖_can = max_j |e(ζ^(5^j))|: for
//! a polynomial with independent coefficients of variance V an embedded value is nearly a complex
//! Gaussian of variance N·V, and |e_j| > u·√(N·V) has probability about exp(−u²); for a product of
//! m such polynomials it is about exp(−m·u^(2/m)), a heavier tail. A scheme's [`Tails`] hold the u of
//! each m for the failure probability that it allows. Bounds add by the triangle inequality, so that
//! operands that depend on each other (a ciphertext and itself) are covered.
//! Costache–Curtis–Hales–Murphy–Ogilvie–Player, ePrint 2022/162.
//!
//! What a formula depends on is a [`Sketch`]: a parameter set has one, and so has a literal that is not
//! built yet, so that planners and evaluators cannot disagree. Quotients of primes are products and
//! quotients of doubles, the same bits on every machine.

use crate::params::ParamsLiteral;
use crate::security::SecretDistribution;

/// Standard deviation of every error distribution.
pub use sudare_ring::random::SIGMA as ERROR_SIGMA;

/// Variance of an error coefficient.
pub const ERROR_VARIANCE: f64 = ERROR_SIGMA * ERROR_SIGMA;

/// Variance of rounding to the nearest integer.
pub const ROUNDING_VARIANCE: f64 = 1.0 / 12.0;

/// Standard deviations from an embedded value to its bound, for one random polynomial, a product of
/// two, a product of three.
pub type Tails = [f64; 3];

/// Tails that no computation meets: exp(−m·u^(2/m))·2^17 < 2^−140, so that 4096 such bounds together fail with a probability under
/// 2^−128. Where a result has to be right, bounds are by these.
pub const NEGLIGIBLE: Tails = [10.5, 54.5, 219.0];

/// Bound on the canonical norm of a product of `factors` random polynomials (one to three) of degree n
/// that has coefficient variance V.
///
/// # Panics
/// For another number of factors.
pub fn canonical_bound(tails: &Tails, n: f64, variance: f64, factors: usize) -> f64 {
    tails[factors - 1] * (n * variance).sqrt()
}

/// Noise from one source: variances of a coefficient of its terms that are one random polynomial, a
/// product of two and a product of three.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    degree: f64,
    variances: [f64; 3],
    /// What a factor twice in a product adds to its variance, and not to its bound.
    repeated: f64,
}

impl Noise {
    /// Variance of a coefficient.
    pub fn variance(&self) -> f64 {
        let [one, two, three] = self.variances;
        one + two + (three + self.repeated)
    }

    /// Canonical bound.
    pub fn bound(&self, tails: &Tails) -> f64 {
        let term = |i: usize| match self.variances[i] {
            0.0 => 0.0,
            variance => canonical_bound(tails, self.degree, variance, i + 1),
        };
        term(0) + term(1) + term(2)
    }
}

/// What noise depends on: sizes of the ring, the secret and the primes. Its methods give the [`Noise`] that an operation adds,
/// in integer units, before anything is built.
///
/// ```
/// use sudare_rlwe::noise::{NEGLIGIBLE, Sketch};
/// use sudare_rlwe::params::ParamsLiteral;
/// use sudare_rlwe::security::{SecretDistribution, Security};
///
/// # let secret = SecretDistribution::Ternary;
/// # let (q_bits, p_bits, security) = (vec![35, 35], vec![35], Security::Bits128);
/// let literal = ParamsLiteral { log_n: 12, q_bits, p_bits, digit_limbs: 1, secret, security };
/// let sketch = Sketch::of(&literal);
/// let (secret, public) = (sketch.secret_encryption(), sketch.public_encryption());
/// assert!(public.variance() > 1000.0 * secret.variance());
/// assert!(public.bound(&NEGLIGIBLE) > public.variance().sqrt());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sketch {
    n: f64,
    /// N times the variance of a secret's coefficient.
    weight: f64,
    /// Parties whose secrets, and errors of keys, are added.
    parties: f64,
    /// Data primes.
    q: Vec<f64>,
    /// Special primes.
    p: Vec<f64>,
    digit_limbs: usize,
}

impl Sketch {
    /// Of a literal and its data and special primes, or what is known of their sizes.
    pub fn new(literal: &ParamsLiteral, q: impl IntoIterator<Item = f64>, p: impl IntoIterator<Item = f64>) -> Self {
        let n = f64::from(literal.log_n).exp2();
        let variance = match literal.secret {
            SecretDistribution::Ternary => 2.0 / 3.0,
            SecretDistribution::FixedWeight { weight } => f64::from(weight) / n,
            SecretDistribution::Gaussian => ERROR_VARIANCE,
            SecretDistribution::TernarySum { parties } => 2.0 / 3.0 * f64::from(parties),
        };
        let parties = f64::from(literal.secret.parties());
        let digit_limbs = literal.digit_limbs.max(1);
        Self { n, weight: n * variance, parties, q: q.into_iter().collect(), p: p.into_iter().collect(), digit_limbs }
    }

    /// Of a literal that is not built yet.
    pub fn of(literal: &ParamsLiteral) -> Self {
        let primes = |bits: &[u32]| bits.iter().map(|b| planned_prime(*b)).collect::<Vec<_>>();
        Self::new(literal, primes(&literal.q_bits), primes(&literal.p_bits))
    }

    /// Ring degree N.
    pub fn degree(&self) -> f64 {
        self.n
    }

    /// N times the variance of a secret's coefficient: what a product with s does to a variance.
    pub fn secret_weight(&self) -> f64 {
        self.weight
    }

    /// Data primes.
    pub fn q(&self) -> &[f64] {
        &self.q
    }

    /// Special primes.
    pub fn p(&self) -> &[f64] {
        &self.p
    }

    /// Data primes in one digit of key switching.
    pub fn digit_limbs(&self) -> usize {
        self.digit_limbs
    }

    /// The same ring and secret with the first of its data and special primes.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn part(&self, data: usize, special: usize, digit_limbs: usize) -> Self {
        let (q, p) = (self.q[..data].to_vec(), self.p[..special].to_vec());
        Self { q, p, digit_limbs, ..*self }
    }

    fn noise(&self, variances: [f64; 3]) -> Noise {
        Noise { degree: self.n, variances, repeated: 0.0 }
    }

    /// A fresh encryption under the secret key: the error e.
    pub fn secret_encryption(&self) -> Noise {
        self.noise([ERROR_VARIANCE, 0.0, 0.0])
    }

    /// A fresh encryption under the public key: e_0 + v·e_pk + e_1·s, v ternary; e_pk has an error of each party.
    pub fn public_encryption(&self) -> Noise {
        self.noise([0.0, ERROR_VARIANCE * (1.0 + self.parties * self.n * (2.0 / 3.0) + self.weight), 0.0])
    }

    /// Rounding of a polynomial: half a unit of each coefficient at most.
    pub fn rounding(&self) -> Noise {
        self.noise([ROUNDING_VARIANCE, 0.0, 0.0])
    }

    /// Rounding of `parts` parts when a ciphertext is divided: r_0 + r_1·s (+ r_2·s²).
    pub fn division(&self, parts: usize) -> Noise {
        let third = if parts > 2 { ROUNDING_VARIANCE * self.weight * self.weight } else { 0.0 };
        // An embedded value of s² has the second moment 2·(N·V_s)².
        Noise { repeated: third, ..self.noise([ROUNDING_VARIANCE, ROUNDING_VARIANCE * self.weight, third]) }
    }

    /// Key switching by an automorphism's key at a level, Σ_j d_j·e_j / P with digits uniform and centred, without the
    /// rounding of the division by P. e_j has an error of each party.
    pub fn switching(&self, level: usize) -> Noise {
        let digits = self.q[..=level].chunks(self.digit_limbs).map(|d| quotient(d, &self.p));
        let digits: f64 = digits.map(|x| x * x).sum();
        self.noise([0.0, self.n * ERROR_VARIANCE * digits * ROUNDING_VARIANCE * self.parties, 0.0])
    }

    /// The same by the relinearisation key. That of several parties has the errors s·e_0 + u·e_1 + e_2, each sum one of all
    /// parties ([`crate::multiparty::RelinSum`]).
    pub fn relinearisation(&self, level: usize) -> Noise {
        // In units of e_2: N times the variances of s and u.
        let products = if self.parties > 1.0 { self.weight + self.parties * self.n * (2.0 / 3.0) } else { 0.0 };
        let [_, own, _] = self.switching(level).variances;
        self.noise([0.0, own, own * products])
    }
}

/// What a plan takes for a prime of some bits: primes lie just below their power of two, and it counts a
/// twentieth of a bit less.
pub fn planned_prime(bits: u32) -> f64 {
    (f64::from(bits) - 0.05).exp2()
}

/// Π over / Π under, whose products alone may be too large for a double.
pub fn quotient(over: &[f64], under: &[f64]) -> f64 {
    let (mut over, mut under, mut result) = (over.iter(), under.iter(), 1.0);
    loop {
        let next = if result > 1.0 { under.next() } else { None };
        match next {
            Some(x) => result /= x,
            None => match over.next() {
                Some(x) => result *= x,
                None => return under.fold(result, |acc, x| acc / x),
            },
        }
    }
}
