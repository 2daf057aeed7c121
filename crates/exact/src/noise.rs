//! Noise of exact schemes: one model for the bound that travels with a ciphertext and for the
//! choice of parameters.
//!
//! A ciphertext (c_0, c_1, …) at level l stands for (Q_l/t)·x + v modulo Q_l, and decrypts
//! rightly while |v| < Q_l/2t. The bound is on the canonical norm of v, which bounds every
//! coefficient. Sums add bounds and products multiply them, so operands that depend on each
//! other (a ciphertext and itself) are covered; only fresh errors, rounding errors and the parts
//! of a ciphertext, which are uniform to whoever has not the key, are bounded by their tails.
//! [`NEGLIGIBLE`] puts each such bound under a failure probability of 2^-140, so that 4096 of them
//! together stay under 2^-128.

use sudare_rlwe::noise::{NEGLIGIBLE, ROUNDING_VARIANCE, Sketch, canonical_bound, quotient};

/// What noise depends on: the sketch of a parameter set, t, and the primes of BFV products.
#[derive(Clone, Debug)]
pub struct NoiseModel {
    sketch: Sketch,
    /// t.
    t: f64,
    /// Auxiliary primes of BFV products.
    aux: Vec<f64>,
}

/// What a product does to its operands' levels and noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProductPlan {
    /// Level of the result.
    pub level: usize,
    /// Auxiliary primes that it uses (BFV).
    pub aux: usize,
    /// Noise of the three parts.
    pub noise: f64,
}

impl NoiseModel {
    /// The model of a sketch.
    pub(crate) fn new(sketch: Sketch, t: u64, aux: impl Iterator<Item = f64>) -> Self {
        Self { sketch, t: t as f64, aux: aux.collect() }
    }

    /// log2 of Q_l.
    pub(crate) fn log_q(&self, level: usize) -> f64 {
        self.sketch.q()[..=level].iter().map(|q| q.log2()).sum()
    }

    /// `noise` divided by the primes from `low` + 1 to `high`.
    fn divided(&self, noise: f64, high: usize, low: usize) -> f64 {
        self.sketch.q()[low + 1..=high].iter().fold(noise, |acc, q| acc / q)
    }

    /// log2 of the noise at which decryption at a level can fail, Q_l/2t, less a hair for
    /// rounding in double precision.
    pub fn log_limit(&self, level: usize) -> f64 {
        self.log_q(level) - self.t.log2() - 1.0 - 1e-6
    }

    /// Whether noise is certain to decrypt rightly.
    pub(crate) fn fits(&self, level: usize, noise: f64) -> bool {
        noise.max(1.0).log2() < self.log_limit(level)
    }

    /// A plaintext's own part: at most half a unit a coefficient, whatever the message.
    pub fn message(&self) -> f64 {
        self.sketch.degree() / 2.0
    }

    /// A fresh encryption under the secret key, without the message's part.
    pub fn secret_encryption(&self) -> f64 {
        self.sketch.secret_encryption().bound(&NEGLIGIBLE)
    }

    /// A fresh encryption under the public key, e_0 + v·e_pk + e_1·s, without the message's part.
    pub fn public_encryption(&self) -> f64 {
        self.sketch.public_encryption().bound(&NEGLIGIBLE)
    }

    /// Rounding of `parts` parts when a ciphertext is divided: r_0 + r_1·s (+ r_2·s²).
    pub fn division(&self, parts: usize) -> f64 {
        self.sketch.division(parts).bound(&NEGLIGIBLE)
    }

    /// The least bound that a ciphertext with a mask can have: it is fresh under a secret key or has
    /// been divided, and what else happens to it adds to the bound.
    pub(crate) fn least(&self) -> f64 {
        (self.message() + self.secret_encryption()).min(self.division(2))
    }

    /// Key switching at a level, before its division by P: Σ_j d_j·e_j / P.
    pub fn switching(&self, level: usize) -> f64 {
        self.sketch.switching(level).bound(&NEGLIGIBLE)
    }

    /// Key switching with its division.
    pub fn switched(&self, level: usize) -> f64 {
        self.switching(level) + self.division(2)
    }

    /// Relinearisation, before its division by P.
    pub fn relinearisation(&self, level: usize) -> f64 {
        self.sketch.relinearisation(level).bound(&NEGLIGIBLE)
    }

    /// Relinearisation with its division.
    pub fn relinearised(&self, level: usize) -> f64 {
        self.relinearisation(level) + self.division(2)
    }

    /// Noise at `low` of a ciphertext of `parts` parts with `noise` at `high`, multiplied by `factor`
    /// on the way.
    pub(crate) fn dropped(&self, noise: f64, parts: usize, (high, low): (usize, usize), factor: f64) -> f64 {
        if high == low {
            return noise * factor.abs();
        }
        self.divided(noise * factor.abs(), high, low) + self.division(parts)
    }

    /// Canonical bound of (c_0 + c_1·s)/Q: half a unit for each coefficient of c_0 whatever it
    /// is, and c_1 uniform.
    pub fn wrap(&self) -> f64 {
        let (n, weight) = (self.sketch.degree(), self.sketch.secret_weight());
        n / 2.0 + canonical_bound(&NEGLIGIBLE, n, ROUNDING_VARIANCE * weight, 2) + 1.0
    }

    /// Level, auxiliary primes and noise of Σ a_i·b_i in BFV, from levels and noise of operands.
    ///
    /// Primes are dropped as long as that adds at most a quarter to the noise; likewise the
    /// auxiliary basis is as short as the rounding to it allows.
    pub(crate) fn bfv_product(&self, pairs: &[[(usize, f64); 2]]) -> ProductPlan {
        let lowest = pairs.iter().flatten().map(|(level, _)| *level).min().unwrap_or(0);
        let rounding = self.division(2);
        let count = 2.0 * pairs.len() as f64;
        let total = |level: usize| -> f64 { pairs.iter().flatten().map(|(l, v)| self.divided(*v, *l, level)).sum() };
        let mut level = lowest;
        while level > 0 && total(level - 1) >= 4.0 * count * rounding {
            level -= 1;
        }
        let inherited = total(level);
        // The right operands are rounded to the auxiliary basis R, an error of `rounding`·Q/R.
        let enough =
            |aux: &usize| count * rounding * quotient(&self.sketch.q()[..=level], &self.aux[..*aux]) <= inherited;
        let aux = (1..self.aux.len()).find(enough).unwrap_or(self.aux.len());
        let (wrap, ratio) = (self.wrap(), quotient(&self.sketch.q()[..=level], &self.aux[..aux]));
        let noise: f64 = pairs
            .iter()
            .map(|[a, b]| {
                let va = self.dropped(a.1, 2, (a.0, level), 1.0);
                let vb = self.divided(b.1, b.0, level) + rounding * ratio;
                self.t * (wrap * (va + vb) + self.sketch.q()[..=level].iter().fold(va, |acc, q| acc / q) * vb)
            })
            .sum();
        ProductPlan { level, aux, noise: noise + self.division(3) }
    }

    /// The same for BGV, whose products t·v·v' wait for their modulus switch.
    pub(crate) fn bgv_product(&self, pairs: &[[(usize, f64); 2]]) -> ProductPlan {
        let level = pairs.iter().flatten().map(|(level, _)| *level).min().unwrap_or(0);
        let at = |(l, v): (usize, f64)| self.dropped(v, 2, (l, level), 1.0);
        let noise = pairs.iter().map(|[a, b]| self.t * at(*a) * at(*b)).sum();
        ProductPlan { level, aux: 0, noise }
    }

    /// The level to which BGV switches a product's modulus: the highest at which the inherited
    /// noise is at most twice the rounding.
    pub(crate) fn bgv_target(&self, level: usize, noise: f64) -> usize {
        let rounding = self.division(2);
        (0..=level).rev().find(|l| self.divided(noise, level, *l) <= 2.0 * rounding).unwrap_or(0)
    }

    /// Noise of a BGV product of `noise` after relinearisation and its switch to `target`.
    pub(crate) fn bgv_switched(&self, noise: f64, level: usize, target: usize) -> f64 {
        let inherited = noise + self.t * self.relinearisation(level);
        self.divided(inherited, level, target) + self.division(2)
    }
}

/// Variance of a coefficient of a BFV product's noise, before relinearisation, of two
/// ciphertexts whose noise coefficients have variances `a` and `b`: t·(K'·v + K·v'), with K the
/// quotient (c_0 + c_1·s)/Q of uniform parts.
pub fn bfv_product_variance(sketch: &Sketch, t: u64, a: f64, b: f64) -> f64 {
    let wrap = ROUNDING_VARIANCE * (1.0 + sketch.secret_weight());
    (t as f64).powi(2) * sketch.degree() * wrap * (a + b)
}

/// Variance of a coefficient of a BGV product's noise, before its modulus switch: t·v·v'.
pub fn bgv_product_variance(sketch: &Sketch, t: u64, a: f64, b: f64) -> f64 {
    (t as f64).powi(2) * sketch.degree() * a * b
}
