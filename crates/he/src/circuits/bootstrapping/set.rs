//! Bootstrapping sets as a person writes them.

use crate::ckks::ParamsLiteral;
use crate::error::{HeError, parameters};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use sudare_rlwe as rlwe;
use sudare_rlwe::security::{SecretDistribution, Security};

/// The sets by name whose levels have one prime: those of contexts, plans and models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BootstrapSet {
    /// [`BootstrapLiteral::a`].
    A,
    /// [`BootstrapLiteral::a12`].
    A12,
    /// [`BootstrapLiteral::b`].
    B,
    /// [`BootstrapLiteral::c`].
    C,
    /// [`BootstrapLiteral::d`].
    D,
}

impl BootstrapSet {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::A, Self::A12, Self::B, Self::C, Self::D];

    /// The set itself.
    pub fn literal(self) -> BootstrapLiteral {
        match self {
            Self::A => BootstrapLiteral::a(),
            Self::A12 => BootstrapLiteral::a12(),
            Self::B => BootstrapLiteral::b(),
            Self::C => BootstrapLiteral::c(),
            Self::D => BootstrapLiteral::d(),
        }
    }
}

impl FromStr for BootstrapSet {
    type Err = HeError;

    fn from_str(name: &str) -> Result<Self, HeError> {
        let found = Self::ALL.into_iter().find(|set| set.to_string().eq_ignore_ascii_case(name));
        found.ok_or_else(|| parameters(format!("there is no bootstrapping set {name:?}; take A, A12, B, C or D")))
    }
}

impl fmt::Display for BootstrapSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What follows the exponential: what a set is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReductionLiteral {
    /// The values themselves, of numbers.
    Sines {
        /// Terms of the sine series, 2 to 4.
        terms: usize,
        /// −log2 of ρ, how much of q_0 values of size one fill. A smaller ρ needs fewer sines and loses bits.
        log_radius: f64,
    },
    /// Tables, of integers ([`crate::discrete`]).
    Tables {
        /// Most values of a table.
        modulus: usize,
    },
}

/// A chain of primes with what each part of it is for, and the shapes of the steps.
///
/// From the bottom, `params.q_bits` holds q_0; a prime for each stage of StC, the last stage's first; for two
/// refreshes in one (`extra_bits`) a prime that sets the scale of both; the user's; for sparse slots one for the
/// mask; those of the modular reduction; one for each stage of CtS, the first stage's last, which a stage in keys does
/// not have.
#[derive(Clone, Debug, PartialEq)]
pub struct BootstrapLiteral {
    /// The ring and all primes; `log_scale` is the user's scale Δ.
    pub params: ParamsLiteral,
    /// Bits by which Δ exceeds the scale that one refresh is made for. Where there are any, a refresh is two, of the value and
    /// of the first one's error, and every level of the user has two primes ([`BootstrapLiteral::a50`]).
    pub extra_bits: u32,
    /// log2 of the slots n that hold values: all of log2 N − 1, or fewer that repeat.
    pub log_slots: u32,
    /// Butterfly layers of each stage of StC, in order; none of half a bootstrap ([`BootstrapLiteral::h`]).
    pub stc: Vec<u32>,
    /// Butterfly layers of each stage of CtS, in order.
    pub cts: Vec<u32>,
    /// Degree of the exponential's polynomial.
    pub degree: usize,
    /// Squarings of the exponential.
    pub doublings: u32,
    /// What follows the exponential.
    pub reduction: ReductionLiteral,
    /// h: weight of the ephemeral secret.
    pub weight: u32,
    /// Bits of the prime p under which keys lead to the ephemeral secret and back.
    pub gate_bits: u32,
    /// Babies of one decomposition in the transforms: `hoisted` + 1 keys a stage.
    pub hoisted: usize,
    /// Whether the first stage of CtS has its diagonals in the keys that lead back from the ephemeral secret: one key for each, and no
    /// prime (ePrint 2025/1403). It takes all slots.
    pub keyed: bool,
}

/// A chain's parts: (count, bits) from the bottom.
fn chain(parts: &[(usize, u32)]) -> Vec<u32> {
    parts.iter().flat_map(|(count, bits)| std::iter::repeat_n(*bits, *count)).collect()
}

fn ternary(log_n: u32, q: &[(usize, u32)], p: &[(usize, u32)], digit_limbs: usize, log_scale: u32) -> ParamsLiteral {
    let (secret, security) = (SecretDistribution::Ternary, Security::Bits128);
    let (q_bits, p_bits) = (chain(q), chain(p));
    let rlwe = rlwe::params::ParamsLiteral { log_n, q_bits, p_bits, digit_limbs, secret, security };
    ParamsLiteral { rlwe, log_scale }
}

impl BootstrapLiteral {
    /// A: N = 2^16, 2^15 complex slots, 9 levels at Δ = 2^43, 26.4 bits (error of complex values of size up to
    /// one, root of the mean square).
    pub fn a() -> Self {
        let q = [(1, 47), (1, 36), (1, 33), (1, 32), (9, 43), (4, 48), (6, 50), (1, 42), (1, 45)];
        Self {
            params: ternary(16, &q, &[(12, 49)], 13, 43),
            extra_bits: 0,
            log_slots: 15,
            stc: vec![5, 5, 5],
            cts: vec![5, 5, 5],
            degree: 28,
            doublings: 3,
            reduction: ReductionLiteral::Sines { terms: 4, log_radius: 4.1 },
            weight: 28,
            gate_bits: 49,
            hoisted: 4,
            keyed: true,
        }
    }

    /// A with 12 levels: key switching in three digits, so more time and keys.
    pub fn a12() -> Self {
        let q = [(1, 47), (1, 36), (1, 33), (1, 32), (12, 43), (4, 48), (6, 50), (1, 43), (1, 45)];
        Self { params: ternary(16, &q, &[(8, 45), (2, 46)], 10, 43), ..Self::a() }
    }

    /// A50, two refreshes like A's in one: N = 2^16, 5 levels of two primes at Δ = 2^66, 48.3 bits (ePrint 2022/1167).
    ///
    /// The first refresh is one of the value at the scale 2^48. Its error is left when the result is taken from the value, and
    /// is refreshed in turn, as large as a message. A product is rescaled by both primes of its level, one after the other.
    pub fn a50() -> Self {
        let q = [(1, 47), (1, 37), (1, 34), (1, 33), (1, 50), (10, 33), (4, 48), (6, 50), (1, 42), (1, 45), (1, 47)];
        Self {
            params: ternary(16, &q, &[(13, 45)], 16, 66),
            extra_bits: 18,
            reduction: ReductionLiteral::Sines { terms: 4, log_radius: 3.9 },
            keyed: false,
            ..Self::a()
        }
    }

    /// B, fast: N = 2^16, 5 levels at Δ = 2^40, 20.5 bits.
    pub fn b() -> Self {
        let q = [(1, 46), (1, 32), (1, 29), (1, 28), (5, 40), (3, 43), (1, 45), (5, 46), (1, 39), (1, 41)];
        let reduction = ReductionLiteral::Sines { terms: 2, log_radius: 5.75 };
        Self { params: ternary(16, &q, &[(17, 49)], 20, 40), reduction, ..Self::a() }
    }

    /// C: N = 2^15, 2^14 complex slots, 4 levels at Δ = 2^33, 16.1 bits.
    pub fn c() -> Self {
        let q = [(1, 41), (1, 28), (1, 26), (1, 25), (4, 33), (3, 37), (1, 38), (5, 40), (1, 34), (1, 36)];
        Self {
            params: ternary(15, &q, &[(4, 49)], 5, 33),
            log_slots: 14,
            stc: vec![5, 5, 4],
            cts: vec![4, 5, 5],
            reduction: ReductionLiteral::Sines { terms: 2, log_radius: 4.85 },
            weight: 34,
            gate_bits: 41,
            ..Self::a()
        }
    }

    /// D, sparse: N = 2^15, 2^10 complex slots, 4 levels at Δ = 2^35, 16.1 bits.
    pub fn d() -> Self {
        let q = [(1, 41), (1, 28), (1, 26), (4, 35), (1, 32), (3, 39), (1, 40), (5, 40), (1, 38), (1, 40)];
        Self {
            params: ternary(15, &q, &[(4, 40)], 4, 35),
            log_slots: 10,
            stc: vec![5, 5],
            cts: vec![5, 5],
            keyed: false,
            ..Self::c()
        }
    }

    /// G15, gates: tables of up to 4 values of 2^15 integers, N = 2^15. [`crate::discrete`].
    pub fn g15() -> Self {
        let q = [(1, 26), (3, 24), (2, 38), (8, 40), (3, 34)];
        Self {
            params: ternary(15, &q, &[(5, 49)], 6, 30),
            extra_bits: 0,
            log_slots: 14,
            stc: vec![5, 5, 4],
            cts: vec![4, 5, 5],
            degree: 15,
            doublings: 4,
            reduction: ReductionLiteral::Tables { modulus: 4 },
            weight: 30,
            gate_bits: 28,
            hoisted: 4,
            keyed: false,
        }
    }

    /// L15, bits with 4 levels: tables of 2 values of 2^15 integers, N = 2^15.
    pub fn l15() -> Self {
        let q = [(1, 26), (3, 24), (4, 31), (9, 37), (3, 31)];
        let reduction = ReductionLiteral::Tables { modulus: 2 };
        Self { params: ternary(15, &q, &[(4, 48)], 5, 31), reduction, ..Self::g15() }
    }

    /// S15, small integers: tables of up to 16 values of 2^15 integers, N = 2^15.
    pub fn s15() -> Self {
        let q = [(1, 30), (3, 25), (4, 39), (8, 41), (3, 34)];
        Self {
            params: ternary(15, &q, &[(4, 42)], 4, 30),
            degree: 28,
            doublings: 3,
            reduction: ReductionLiteral::Tables { modulus: 16 },
            weight: 32,
            gate_bits: 32,
            ..Self::g15()
        }
    }

    /// W16, bytes: tables of up to 256 values of 2^16 integers, N = 2^16.
    pub fn w16() -> Self {
        let q = [(1, 38), (3, 34), (8, 48), (8, 50), (3, 42)];
        Self {
            params: ternary(16, &q, &[(11, 49)], 12, 40),
            log_slots: 15,
            stc: vec![5, 5, 5],
            cts: vec![5, 5, 5],
            degree: 28,
            doublings: 3,
            reduction: ReductionLiteral::Tables { modulus: 256 },
            weight: 28,
            gate_bits: 38,
            ..Self::g15()
        }
    }

    /// H, half a bootstrap: series of degree up to 31 of 2^15 numbers modulo 1 that come as coefficients, N = 2^15; two levels
    /// for what follows and one for a product with it. Nothing goes back to coefficients.
    pub fn h() -> Self {
        let q = [(1, 31), (1, 34), (1, 36), (1, 34), (9, 32), (4, 34), (1, 32), (1, 34), (1, 36)];
        Self {
            params: ternary(15, &q, &[(5, 39)], 5, 33),
            stc: vec![],
            reduction: ReductionLiteral::Tables { modulus: 32 },
            weight: 32,
            gate_bits: 34,
            ..Self::g15()
        }
    }

    /// A set of numbers by its name: A, A12, A50, B, C or D.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a name that is none.
    ///
    /// ```
    /// use sudare_he::circuits::bootstrapping::BootstrapLiteral;
    ///
    /// assert_eq!(BootstrapLiteral::named("a50")?, BootstrapLiteral::a50());
    /// assert!(BootstrapLiteral::named("E").is_err());
    /// # Ok::<(), sudare_he::HeError>(())
    /// ```
    pub fn named(name: &str) -> Result<Self, HeError> {
        if name.eq_ignore_ascii_case("A50") {
            return Ok(Self::a50());
        }
        let unknown = |_| parameters(format!("there is no bootstrapping set {name:?}; take A, A12, A50, B, C or D"));
        Ok(name.parse::<BootstrapSet>().map_err(unknown)?.literal())
    }

    /// Whether a refresh is two.
    pub fn is_iterated(&self) -> bool {
        self.extra_bits > 0
    }

    /// Primes of a level of the user: a product is rescaled by as many.
    pub fn level_primes(&self) -> usize {
        if self.is_iterated() { 2 } else { 1 }
    }

    /// Whether it begins with coefficients modulo q_0, and ends with a series of them.
    pub fn is_half(&self) -> bool {
        self.stc.is_empty()
    }

    /// Parts after the first of what is raised: of half a bootstrap those of a product.
    pub(super) fn entries(&self) -> usize {
        if self.is_half() { 2 } else { 1 }
    }

    /// The same shape over a small ring, by the name insecure: for tests.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a degree below 2^9 or above that of the set.
    pub fn insecure(mut self, log_n: u32) -> Result<Self, HeError> {
        let less = match self.params.log_n.checked_sub(log_n) {
            Some(less) if log_n >= 9 && less < self.log_slots => less,
            _ => {
                return Err(parameters(format!(
                    "a test set cannot be made over log2 N = {log_n}; take 9 up to the set's {}, and fewer than its \
                     log2 of slots below that",
                    self.params.log_n
                )));
            }
        };
        self.params.log_n = log_n;
        self.params.security = Security::Insecure;
        self.log_slots -= less;
        for layers in [&mut self.stc, &mut self.cts] {
            let stages = layers.len() as u32;
            *layers = (0..stages).map(|i| self.log_slots / stages + u32::from(i < self.log_slots % stages)).collect();
        }
        // The unit of a stage is the size of the blocks below it: StC's from the small end, CtS's from the large.
        self.cts.reverse();
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discrete::DiscreteSet;
    use sudare_rlwe::security::max_log_qp;

    /// Levels for use and bits, of every set; the sparse key's and the whole modulus within their limits.
    #[test]
    fn named_sets() {
        let expected = [("A", 9, 26.4), ("A12", 12, 26.4), ("B", 5, 20.5), ("C", 4, 16.1), ("D", 4, 16.1)];
        for (set, (name, ..)) in BootstrapSet::ALL.into_iter().zip(expected) {
            assert_eq!((name.parse(), set.to_string().as_str()), (Ok(set), name));
            assert_eq!(BootstrapLiteral::named(name), Ok(set.literal()));
        }
        for (name, levels, bits) in expected.into_iter().chain([("A50", 5, 48.3)]) {
            let literal = BootstrapLiteral::named(name).unwrap();
            let (input, output) = literal.levels().unwrap();
            assert_eq!(output - input, levels * literal.level_primes(), "{name}");
            let found = literal.predicted_noise(0.5).unwrap().bits();
            assert!((bits - 0.05..bits + 0.1).contains(&found), "{name}: {found:.3} bits");
            let (log_n, secret) = (literal.params.log_n, literal.params.secret);
            let total: u32 = literal.params.q_bits.iter().chain(&literal.params.p_bits).sum();
            assert!(total <= max_log_qp(log_n, secret, Security::Bits128).unwrap(), "{name}: {total} bits");
            let sparse = SecretDistribution::FixedWeight { weight: literal.weight };
            let gate = literal.params.q_bits[0] + literal.gate_bits;
            assert!(gate <= max_log_qp(log_n, sparse, Security::Bits128).unwrap(), "{name}: {gate} bits");
            let largest = literal.params.q_bits.chunks(literal.params.digit_limbs).map(|d| d.iter().sum::<u32>()).max();
            assert!(largest <= Some(literal.params.p_bits.iter().sum()), "{name}");
        }
    }

    /// The sets for tables: their primes within the limits, and the errors of their results so small that tables of
    /// tables never end. [`DiscreteSet`]
    #[test]
    fn sets_for_tables() {
        let expected = [("G15", 4, 0, 0.0014), ("L15", 2, 4, 0.0006), ("S15", 16, 0, 0.0036), ("W16", 256, 0, 0.0024)];
        for (set, (name, modulus, levels, most)) in DiscreteSet::ALL.into_iter().zip(expected) {
            assert_eq!((name.parse(), set.to_string().as_str()), (Ok(set), name));
            let literal = set.literal();
            let (input, output) = literal.levels().unwrap();
            assert_eq!(output - input, levels, "{name}");
            let (log_n, secret) = (literal.params.log_n, literal.params.secret);
            let total: u32 = literal.params.q_bits.iter().chain(&literal.params.p_bits).sum();
            assert!(total <= max_log_qp(log_n, secret, Security::Bits128).unwrap(), "{name}: {total} bits");
            let sparse = SecretDistribution::FixedWeight { weight: literal.weight };
            let gate = literal.params.q_bits[0] + literal.gate_bits;
            assert!(gate <= max_log_qp(log_n, sparse, Security::Bits128).unwrap(), "{name}: {gate} bits");
            let largest = literal.params.q_bits.chunks(literal.params.digit_limbs).map(|d| d.iter().sum::<u32>()).max();
            assert!(largest <= Some(literal.params.p_bits.iter().sum()), "{name}");
            let bound = literal.table_bound(modulus).unwrap();
            assert!((most / 1.3..most).contains(&bound), "{name}: {bound}");
        }
    }

    /// The set of half a bootstrap: its moduli within the limits, three levels left, and no more than it can hold of a digit.
    #[test]
    fn half_a_set() {
        let literal = BootstrapLiteral::h();
        assert_eq!((literal.levels().unwrap(), literal.is_half()), ((0, 3), true));
        let (log_n, secret) = (literal.params.log_n, literal.params.secret);
        let total: u32 = literal.params.q_bits.iter().chain(&literal.params.p_bits).sum();
        assert!(total <= max_log_qp(log_n, secret, Security::Bits128).unwrap(), "{total} bits");
        let sparse = SecretDistribution::FixedWeight { weight: literal.weight };
        let gate = literal.params.q_bits[0] + literal.gate_bits;
        assert!(gate <= max_log_qp(log_n, sparse, Security::Bits128).unwrap(), "{gate} bits");
    }

    #[test]
    fn small_shapes_are_insecure_by_name() {
        for literal in BootstrapSet::ALL.map(BootstrapSet::literal) {
            let small = literal.clone().insecure(11).unwrap();
            assert_eq!(small.params.security, Security::Insecure);
            assert_eq!(small.stc.iter().sum::<u32>(), small.log_slots);
            assert_eq!(small.cts.len(), literal.cts.len());
            let mut secure = small;
            secure.params.security = Security::Bits128;
            assert!(secure.build().is_err());
        }
        assert!("E".parse::<BootstrapSet>().is_err());
        assert!(BootstrapLiteral::a().insecure(8).is_err());
        assert!(BootstrapLiteral::a().insecure(17).is_err());
    }
}
