//! Noise of the scheme, and the condition of correct decryption.
//!
//! The *phase* of a ciphertext is the integer polynomial ⟨ct, s⟩ before it is reduced modulo q;
//! decryption is right as long as its largest coefficient is below q/2 (`002`, Lemma 3). A fresh
//! phase is m + t·w with w = g + s·f − u·e (equation 2).
//!
//! Variances are exact for random keys. Bounds hold for each fresh ciphertext and its key except
//! with probability 2^−[`FAILURE_BITS`]. They rest on two facts. A discrete Gaussian is
//! subgaussian with its own parameter σ. And for a vector y of independent such entries and a
//! matrix A with Σ = AAᵀ,
//! ‖Ay‖₂² ≤ σ²(tr Σ + 2√(tr Σ²·x) + 2‖Σ‖x) except with probability e^−x (Hsu, Kakade, Zhang, *A tail
//! inequality for quadratic forms of subgaussian random vectors*, 2012). Bounds of sums and
//! products are the triangle and Cauchy–Schwarz inequalities, so they hold for operands that
//! depend on each other as well.

use std::f64::consts::LN_2;

/// log2 of the inverse of the probability that the bound of a fresh ciphertext fails.
pub const FAILURE_BITS: f64 = 128.0;

/// More than the rounding errors of a bound's evaluation.
const OUTWARD: f64 = 1.0 + 1e-9;

/// Variance of a coefficient of w in a fresh phase m + t·w: σ² + 2Nσ⁴.
pub fn fresh_variance(n: usize, sigma: f64) -> f64 {
    let v = sigma * sigma;
    v + 2.0 * n as f64 * v * v
}

/// Variance of a coefficient of w·w' for two fresh ciphertexts of one key:
/// Nσ⁴(1 + 4Nσ² + 6N²σ⁴).
///
/// The last term would be 4 for independent keys. At an embedding ζ, given the key, w(ζ) has the
/// second moment Nσ²(1 + G) with G = |s(ζ)|² + |e(ζ)|², which both factors share; G has mean
/// 2Nσ² and second moment 6N²σ⁴.
pub fn product_variance(n: usize, sigma: f64) -> f64 {
    let (n, v) = (n as f64, sigma * sigma);
    n * v * v * (1.0 + 4.0 * n * v + 6.0 * n * n * v * v)
}

/// Bounds on a phase: its Euclidean norm and its largest coefficient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norms {
    /// Bound on the Euclidean norm of the coefficients.
    pub euclid: f64,
    /// Bound on the largest coefficient, at most `euclid`.
    pub max: f64,
}

impl Norms {
    /// Of zero.
    pub const ZERO: Self = Self { euclid: 0.0, max: 0.0 };

    /// Of a polynomial with these coefficients.
    pub fn of(coefficients: impl Iterator<Item = i64>) -> Self {
        let (mut square, mut max) = (0.0, 0.0f64);
        for c in coefficients {
            let c = c as f64;
            square += c * c;
            max = max.max(c.abs());
        }
        Self { euclid: square.sqrt() * OUTWARD, max: max * OUTWARD }
    }

    /// Of any plaintext: coefficients in (−t/2, t/2].
    pub fn of_any_plaintext(n: usize, t: u64) -> Self {
        let max = (t / 2) as f64 * OUTWARD;
        Self { euclid: (n as f64).sqrt() * max, max }
    }

    /// Of a fresh phase.
    pub fn fresh(n: usize, t: u64, sigma: f64) -> Self {
        let (degree, variance) = (n as f64, sigma * sigma);
        let (message, t) = (Self::of_any_plaintext(n, t), t as f64);
        // Exponents so that all events together fail with probability under 2^−FAILURE_BITS: the
        // key's N/2 embeddings and its norm, the N coefficients of w and its norm.
        let x = (FAILURE_BITS + 2.0) * LN_2;
        let each = x + degree.ln();
        // |s(ζ)|² + |e(ζ)|²: four rows of squared norm N/2, orthogonal to each other.
        let embedded = variance * degree * (2.0 + 2.0 * each.sqrt() + each);
        // ‖s‖² + ‖e‖².
        let keys = variance * (2.0 * degree + 2.0 * (2.0 * degree * x).sqrt() + 2.0 * x);
        // w is linear in (g, f, u), with Σ = 1 + SSᵀ + EEᵀ.
        let (trace, largest) = (degree * (1.0 + keys), 1.0 + embedded);
        let square = variance * (trace + 2.0 * (largest * trace * x).sqrt() + 2.0 * largest * x);
        let max = (2.0 * variance * (1.0 + keys) * (each + LN_2)).sqrt();
        let euclid = (message.euclid + t * square.sqrt()) * OUTWARD;
        Self { euclid, max: ((message.max + t * max) * OUTWARD).min(euclid) }
    }

    /// Of a sum or a difference.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { euclid: (self.euclid + other.euclid) * OUTWARD, max: (self.max + other.max) * OUTWARD }
    }

    /// Of a product modulo X^N + 1: a coefficient is an inner product of all coefficients of
    /// both.
    #[must_use]
    pub fn times(self, other: Self, n: usize) -> Self {
        let max = self.euclid * other.euclid * OUTWARD;
        Self { euclid: (n as f64).sqrt() * max * OUTWARD, max }
    }

    /// Of a multiple by an integer.
    #[must_use]
    pub fn scaled(self, factor: i64) -> Self {
        let factor = factor.unsigned_abs() as f64 * OUTWARD;
        Self { euclid: self.euclid * factor, max: self.max * factor }
    }

    /// Of the product of `factors` fresh phases.
    pub fn of_product(n: usize, t: u64, sigma: f64, factors: usize) -> Self {
        let fresh = Self::fresh(n, t, sigma);
        (1..factors).fold(fresh, |norms, _| norms.times(fresh, n))
    }

    /// log2 of the least modulus under which this phase decrypts: 2·max < q.
    pub fn log_modulus(&self) -> f64 {
        1.0 + self.max.max(1.0).log2()
    }
}

/// log2 of the least modulus by the paper's own condition: 2·N^(d−1)·U^d ≤ q for a product of d
/// fresh ciphertexts with U = 2tσ²√N. For d = 2 it is equation 9, 8N²t²σ⁴ ≤ q.
///
/// U is what the paper takes for the largest coefficient of a fresh phase. It is only √2 times
/// the standard deviation of a single one, tσ²√(2N), so it bounds no phase; the condition is
/// sufficient all the same, because a product's coefficient is nowhere near N·U². [`Norms`] has
/// bounds that hold.
pub fn equation_9(n: usize, t: u64, sigma: f64, factors: usize) -> f64 {
    let (log_n, d) = ((n as f64).log2(), factors as f64);
    let log_u = 1.0 + (t as f64).log2() + 2.0 * sigma.log2() + log_n / 2.0;
    1.0 + (d - 1.0) * log_n + d * log_u
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equation_9_as_printed() {
        for (n, t, sigma) in [(2048usize, 17u64, 8.0f64), (32768, 33, 8.0), (131072, 161, 3.19)] {
            let printed = 8.0 * (n as f64).powi(2) * (t as f64).powi(2) * sigma.powi(4);
            assert!((equation_9(n, t, sigma, 2) - printed.log2()).abs() < 1e-9);
        }
        // The paper's own estimates: 2^55 for (32768, 33), 2^65 for (131072, 161), both rounded up.
        assert!((54.0..55.2).contains(&equation_9(32768, 33, 8.0, 2)));
        assert!((63.0..65.0).contains(&equation_9(131072, 161, 8.0, 2)));
    }

    #[test]
    fn norms_behave_as_norms() {
        let n = 1024;
        let a = Norms::of([3, -4].into_iter());
        assert!((a.euclid - 5.0).abs() < 1e-7 && (a.max - 4.0).abs() < 1e-7);
        let fresh = Norms::fresh(n, 17, 3.19);
        let deviation = 17.0 * fresh_variance(n, 3.19).sqrt();
        // Above ten deviations, below thirty: 2^-128 is about 13 of them.
        assert!(fresh.max > 10.0 * deviation && fresh.max < 30.0 * deviation);
        assert!(fresh.euclid > 32.0 * deviation && fresh.euclid < 32.0 * 10.0 * deviation);
        assert_eq!(Norms::ZERO.plus(fresh).scaled(0), Norms::ZERO);
        let product = fresh.times(fresh, n);
        assert_eq!(product, Norms::of_product(n, 17, 3.19, 2));
        assert!(product.max > 6.0 * 17.0 * 17.0 * product_variance(n, 3.19).sqrt());
    }
}
