//! Sets for the refresh of BFV and BGV, as a person writes them.

use crate::error::{ExactError, parameters};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use sudare_ring::prime::ntt_primes;
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::security::{SecretDistribution, Security};

/// The sets by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RefreshSet {
    /// [`RefreshLiteral::x15`].
    X15,
    /// [`RefreshLiteral::x16`].
    X16,
}

impl RefreshSet {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::X15, Self::X16];

    /// The set itself.
    pub fn literal(self) -> RefreshLiteral {
        match self {
            Self::X15 => RefreshLiteral::x15(),
            Self::X16 => RefreshLiteral::x16(),
        }
    }
}

impl FromStr for RefreshSet {
    type Err = ExactError;

    fn from_str(name: &str) -> Result<Self, ExactError> {
        let found = Self::ALL.into_iter().find(|set| set.to_string().eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            parameters(format!("there is no set {name:?} for a refresh of BFV and BGV; take X15 or X16"))
        })
    }
}

impl fmt::Display for RefreshSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A chain of primes and the shapes of the steps. Which levels each step works at follows from the noise.
///
/// From the bottom, `params.q_bits` holds q_0 (`base` primes), what StC divides by, the user's primes, those of the removal, and
/// at the top those of the product with the sparse secret and of CtS. A product modulo t² takes about
/// 2·log2 t + 21 bits, which two primes of half as many hold.
#[derive(Clone, Debug, PartialEq)]
pub struct RefreshLiteral {
    /// The ring and all primes.
    pub params: ParamsLiteral,
    /// The plaintext modulus: a prime ≡ 1 modulo 2N, or modulo N for half as many slots.
    pub t: u64,
    /// Primes of q_0, at which the digit is made.
    pub base: usize,
    /// Butterfly layers of each stage of StC, in order.
    pub stc: Vec<u32>,
    /// Butterfly layers of each stage of CtS, in order.
    pub cts: Vec<u32>,
    /// h: weight of the ephemeral secret, even. The digit is at most h/2.
    pub weight: u32,
    /// Bits of the primes under which a key leads to the ephemeral secret.
    pub gate_bits: Vec<u32>,
    /// Babies of one decomposition in the transforms.
    pub hoisted: usize,
}

/// A chain's parts: (count, bits) from the bottom.
fn chain(parts: &[(usize, u32)]) -> Vec<u32> {
    parts.iter().flat_map(|(count, bits)| std::iter::repeat_n(*bits, *count)).collect()
}

fn ternary(log_n: u32, q: &[(usize, u32)], p: &[(usize, u32)], digit_limbs: usize) -> ParamsLiteral {
    let (secret, security) = (SecretDistribution::Ternary, Security::Bits128);
    ParamsLiteral { log_n, q_bits: chain(q), p_bits: chain(p), digit_limbs, secret, security }
}

impl RefreshLiteral {
    /// X15: N = 2^15, 2^15 slots modulo 65537, 3 products after a refresh.
    pub fn x15() -> Self {
        let sums = [27, 28, 27, 28, 27, 27, 26, 27].map(|bits| (1, bits));
        let powers = [26, 27, 26, 27, 26, 27].map(|bits| (1, bits));
        let q = [&[(1, 45), (3, 26), (3, 37)][..], &sums, &[(1, 34)], &powers, &[(4, 31)]].concat();
        Self {
            params: ternary(15, &q, &[(2, 50)], 3),
            t: 65537,
            base: 1,
            stc: vec![7, 7],
            cts: vec![7, 7],
            weight: 34,
            gate_bits: vec![47],
            hoisted: 4,
        }
    }

    /// X16: N = 2^16, 2^15 slots modulo 65537, 20 products after a refresh.
    pub fn x16() -> Self {
        let q = [(1, 45), (3, 29), (20, 38), (6, 27), (1, 35), (6, 27), (5, 33)];
        Self {
            params: ternary(16, &q, &[(6, 45)], 7),
            stc: vec![5, 5, 4],
            cts: vec![4, 5, 5],
            weight: 28,
            gate_bits: vec![48],
            ..Self::x15()
        }
    }

    /// Whether there are slots for half of the coefficients: t is no 1 modulo 2N.
    pub fn half(&self) -> bool {
        self.t % (2 << self.params.log_n) != 1
    }

    /// The same shape over a small ring, by the name insecure: for tests. The chain stays, and so does the number of slots
    /// for a coefficient, if need be by another t of as many bits.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a degree below 2^9 or above that of the set.
    pub fn insecure(mut self, log_n: u32) -> Result<Self, ExactError> {
        let half = self.half();
        let layers: u32 = self.stc.iter().sum();
        let less = match self.params.log_n.checked_sub(log_n) {
            Some(less) if log_n >= 9 && less < layers => less,
            _ => {
                return Err(parameters(format!(
                    "a test set cannot be made over log2 N = {log_n}; take 9 up to the set's {}, and fewer than its \
                     stages below that",
                    self.params.log_n
                )));
            }
        };
        (self.params.log_n, self.params.security) = (log_n, Security::Insecure);
        if half {
            let (n, mut taken) = (1 << log_n, Vec::new());
            while self.half() != half || taken.is_empty() {
                self.t = ntt_primes(n / 2, self.t.ilog2(), 1, &taken)?[0];
                taken.push(self.t);
            }
        }
        for stages in [&mut self.stc, &mut self.cts] {
            let (count, log) = (stages.len() as u32, layers - less);
            *stages = (0..count).map(|i| log / count + u32::from(i < log % count)).collect();
        }
        // The unit of a stage is the size of the blocks below it: StC's from the small end, CtS's from the large.
        self.cts.reverse();
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_rlwe::security::max_log_qp;

    /// Products that the sets promise, of BFV and BGV; the whole modulus and the sparse key's within their limits.
    #[test]
    fn named_sets() {
        for (set, name, products) in [(RefreshSet::X15, "X15", [4, 3]), (RefreshSet::X16, "X16", [21, 20])] {
            assert_eq!((name.parse(), set.to_string().as_str()), (Ok(set), name));
            let literal = set.literal();
            let log_n = literal.params.log_n;
            let sparse = SecretDistribution::FixedWeight { weight: literal.weight };
            let gate: u32 = literal.params.q_bits[..literal.base].iter().chain(&literal.gate_bits).sum();
            assert!(gate <= max_log_qp(log_n, sparse, Security::Bits128).unwrap(), "{name}: {gate} bits");
            let built = literal.build().unwrap();
            assert_eq!(built.products(), products, "{name}");
            assert_eq!((built.params().security(), built.params().slots()), (Security::Bits128, 1 << 15));
            // Transforms as bench/runs/refresh-2026-11-24.json counts them.
            let (found, counted) = (built.work().unwrap(), [12_085.0, 12_716.0][usize::from(set == RefreshSet::X16)]);
            let transforms = found.ntt + found.ntt_wide;
            assert!((transforms / counted - 1.0f64).abs() < 0.1, "{name}: {transforms} of {counted}");
            assert_eq!(found.key_switches, built.operations().key_switches as f64, "{name}");
            assert!(built.params().q().primes().chain(built.params().p().primes()).all(|q| q < 1 << 50));
        }
        assert!("G15".parse::<RefreshSet>().is_err());
    }

    #[test]
    fn small_shapes_are_insecure_by_name() {
        for literal in RefreshSet::ALL.map(RefreshSet::literal) {
            let small = literal.clone().insecure(10).unwrap();
            assert_eq!((small.params.security, small.half()), (Security::Insecure, literal.half()));
            assert_eq!(small.t.ilog2(), if literal.half() { 15 } else { 16 });
            let mut secure = small;
            secure.params.security = Security::Bits128;
            assert!(secure.build().is_err());
            assert!(literal.clone().insecure(8).is_err() && literal.insecure(17).is_err());
        }
    }
}
