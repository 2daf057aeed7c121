//! What an encrypted computation costs, counted in operations that a machine can be timed on.

use crate::cpu::Blocks;
use crate::keys::KeySwitchKey;
use crate::params::ParamsLiteral;
use serde::{Deserialize, Serialize};
use std::ops::{Add, AddAssign, Mul};
use sudare_ring::kernel::NARROW_BITS;

/// What stays near a core: the second-level cache of the machines that the default cost model is of.
pub const CACHE_BYTES: f64 = 2.0 * 1024.0 * 1024.0;

/// Seconds that an amount of work takes on one thread of a machine, in a ring of degree 2^n.
pub type Prices<'p> = &'p (dyn Fn(&Work, u32) -> f64 + Sync);

/// Amounts of primitive work; the cost model multiplies each by a measured time.
///
/// Counts are per limb of N words; large primes (50 bits and more) are counted apart, since
/// another kernel family serves them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Transforms of a limb with a prime below 2^50.
    pub ntt: f64,
    /// Transforms of a limb with a larger prime.
    pub ntt_wide: f64,
    /// Element-wise passes over a limb with a prime below 2^50: a product, a reduction, a permutation; a term of an inner
    /// product where nobody said that it runs in a loop with others ([`Work::fused`]).
    pub pass: f64,
    /// The same with a larger prime.
    pub pass_wide: f64,
    /// Terms of inner products: passes inside of the loops of linear maps and key switches, which write once for several.
    pub term: f64,
    /// The same with a larger prime.
    pub term_wide: f64,
    /// Passes of sums over limbs of several polynomials: conversions between bases, whose terms are one source each, and
    /// values of polynomials.
    pub sums: f64,
    /// The same with a larger prime.
    pub sums_wide: f64,
    /// Modular multiply-accumulates inside matrix products.
    pub mac: f64,
    /// The same modulo narrow primes ([`NARROW_BITS`]).
    pub mac_narrow: f64,
    /// Bytes of evaluation keys that are streamed from memory.
    pub key_bytes: f64,
    /// Bytes of operands that are read again from memory, being too many for the caches.
    pub operand_bytes: f64,
    /// Key switches, for the reader.
    pub key_switches: f64,
}

impl Add for Work {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Self {
            ntt: self.ntt + o.ntt,
            ntt_wide: self.ntt_wide + o.ntt_wide,
            pass: self.pass + o.pass,
            pass_wide: self.pass_wide + o.pass_wide,
            term: self.term + o.term,
            term_wide: self.term_wide + o.term_wide,
            sums: self.sums + o.sums,
            sums_wide: self.sums_wide + o.sums_wide,
            mac: self.mac + o.mac,
            mac_narrow: self.mac_narrow + o.mac_narrow,
            key_bytes: self.key_bytes + o.key_bytes,
            operand_bytes: self.operand_bytes + o.operand_bytes,
            key_switches: self.key_switches + o.key_switches,
        }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, o: Self) {
        *self = *self + o;
    }
}

impl Mul<f64> for Work {
    type Output = Self;
    fn mul(self, f: f64) -> Self {
        Self {
            ntt: self.ntt * f,
            ntt_wide: self.ntt_wide * f,
            pass: self.pass * f,
            pass_wide: self.pass_wide * f,
            term: self.term * f,
            term_wide: self.term_wide * f,
            sums: self.sums * f,
            sums_wide: self.sums_wide * f,
            mac: self.mac * f,
            mac_narrow: self.mac_narrow * f,
            key_bytes: self.key_bytes * f,
            operand_bytes: self.operand_bytes * f,
            key_switches: self.key_switches * f,
        }
    }
}

impl Work {
    /// The same where all passes so far run in the loops of linear maps and key switches: as terms.
    #[must_use]
    pub fn fused(self) -> Self {
        let (term, term_wide) = (self.term + self.pass, self.term_wide + self.pass_wide);
        Self { pass: 0.0, pass_wide: 0.0, term, term_wide, ..self }
    }

    /// `count` transforms of a limb whose prime has `bits` bits.
    pub fn transforms(bits: u32, count: f64) -> Self {
        if bits < 50 { Self { ntt: count, ..Self::default() } } else { Self { ntt_wide: count, ..Self::default() } }
    }

    /// `count` passes over a limb whose prime has `bits` bits.
    pub fn passes(bits: u32, count: f64) -> Self {
        if bits < 50 { Self { pass: count, ..Self::default() } } else { Self { pass_wide: count, ..Self::default() } }
    }

    /// The same where passes are terms of sums over limbs of several polynomials.
    #[must_use]
    pub fn summed(self) -> Self {
        let (sums, sums_wide) = (self.sums + self.pass, self.sums_wide + self.pass_wide);
        Self { pass: 0.0, pass_wide: 0.0, sums, sums_wide, ..self }
    }

    /// `count` terms of a conversion to a limb whose prime has `bits` bits.
    fn terms(bits: u32, count: f64) -> Self {
        if bits < 50 { Self { sums: count, ..Self::default() } } else { Self { sums_wide: count, ..Self::default() } }
    }

    /// `count` terms of a conversion to each limb at a level.
    fn terms_at(literal: &ParamsLiteral, level: usize, count: f64) -> Self {
        literal.q_bits[..=level].iter().fold(Self::default(), |w, b| w + Self::terms(*b, count))
    }

    /// `count` transforms of each limb at a level.
    pub fn transforms_at(literal: &ParamsLiteral, level: usize, count: f64) -> Self {
        literal.q_bits[..=level].iter().fold(Self::default(), |w, b| w + Self::transforms(*b, count))
    }

    /// `count` passes over each limb at a level.
    pub fn passes_at(literal: &ParamsLiteral, level: usize, count: f64) -> Self {
        literal.q_bits[..=level].iter().fold(Self::default(), |w, b| w + Self::passes(*b, count))
    }

    /// `count` multiply-accumulates modulo each prime at a level.
    fn macs_at(literal: &ParamsLiteral, level: usize, count: f64) -> Self {
        let narrow = literal.q_bits[..=level].iter().filter(|bits| **bits <= NARROW_BITS).count() as f64;
        Self { mac: count * ((level + 1) as f64 - narrow), mac_narrow: count * narrow, ..Self::default() }
    }

    fn special(literal: &ParamsLiteral, transforms: f64, passes: f64) -> Self {
        literal
            .p_bits
            .iter()
            .fold(Self::default(), |w, b| w + Self::transforms(*b, transforms) + Self::passes(*b, passes))
    }

    fn digits(literal: &ParamsLiteral, level: usize) -> f64 {
        (level + 1).div_ceil(literal.digit_limbs) as f64
    }

    /// Decomposition of one polynomial into digits over Q_l·P (mod-up).
    pub fn decompose(literal: &ParamsLiteral, level: usize) -> Self {
        let digits = Self::digits(literal, level);
        let alpha = literal.digit_limbs as f64;
        // Each limb goes back once, and forward once in every digit but its own.
        Self::transforms_at(literal, level, 1.0 + digits - 1.0)
            + Self::terms_at(literal, level, (digits - 1.0) * alpha + 1.0)
            + Self::special(literal, digits, 0.0)
            + literal.p_bits.iter().fold(Self::default(), |w, b| w + Self::terms(*b, digits * alpha))
    }

    /// Inner product of decomposed digits with one key, over Q_l·P.
    pub fn inner_product(literal: &ParamsLiteral, level: usize) -> Self {
        let digits = Self::digits(literal, level);
        let bytes = KeySwitchKey::bytes_at(literal, level) as f64;
        Self::passes_at(literal, level, 2.0 * digits)
            + Self::special(literal, 0.0, 2.0 * digits)
            + Self { key_bytes: bytes, key_switches: 1.0, ..Self::default() }
    }

    /// Division of one polynomial over Q_l·P by P (mod-down).
    pub fn mod_down(literal: &ParamsLiteral, level: usize) -> Self {
        let k = literal.p_bits.len() as f64;
        Self::transforms_at(literal, level, 1.0)
            + Self::terms_at(literal, level, k + 1.0)
            + Self::special(literal, 1.0, 1.0)
    }

    /// A whole key switch: decomposition, inner product and two mod-downs.
    pub fn key_switch(literal: &ParamsLiteral, level: usize) -> Self {
        Self::decompose(literal, level) + Self::inner_product(literal, level) + Self::mod_down(literal, level) * 2.0
    }

    /// A rotation: a key switch, an addition and two permutations.
    pub fn rotation(literal: &ParamsLiteral, level: usize) -> Self {
        Self::key_switch(literal, level) + Self::passes_at(literal, level, 3.0)
    }

    /// Products of a matrix of integers, so many of a ciphertext of two parts.
    pub fn integer_products(literal: &ParamsLiteral, level: usize, products: f64) -> Self {
        Self::macs_at(literal, level, 2.0 * products * f64::from(literal.log_n).exp2())
    }

    /// The tensor product of two ciphertexts (three parts).
    pub fn tensor(literal: &ParamsLiteral, level: usize) -> Self {
        Self::passes_at(literal, level, 4.0)
    }

    /// Sums of scale-invariant products: operands of these levels, brought to one level and as many auxiliary primes as `aux`
    /// says.
    pub fn dot_scaled(literal: &ParamsLiteral, left: &[usize], right: &[usize], level: usize, aux: usize) -> Self {
        let (kept, aux) = ((level + 1) as f64, aux as f64);
        // Auxiliary primes are below 2^50.
        let over_r =
            |transforms: f64, passes: f64| Self { ntt: transforms * aux, pass: passes * aux, ..Self::default() };
        let mut work = Self::default();
        for high in left {
            let more = (high - level) as f64;
            if more > 0.0 {
                work += (Self::transforms_at(literal, *high, 1.0) + Self::passes_at(literal, level, more + 1.0)) * 2.0;
            }
            work += (Self::transforms_at(literal, level, 1.0) + over_r(1.0, kept + 1.0)) * 2.0;
        }
        for high in right {
            let down = Self::transforms_at(literal, *high, 1.0) + over_r(1.0, (high + 2) as f64);
            let back = Self::transforms_at(literal, level, 1.0) + Self::passes_at(literal, level, aux + 1.0);
            work += (down + back) * 2.0;
        }
        let terms = left.len() as f64;
        let products = Self::tensor(literal, level) + over_r(0.0, 4.0);
        let division = Self::transforms_at(literal, level, 1.0) + Self::passes_at(literal, level, aux + 1.0);
        work + products * terms + (division + over_r(1.0, 1.0)) * 3.0
    }

    /// Division of a polynomial by the data primes above `to`, in one step.
    pub fn divide(literal: &ParamsLiteral, level: usize, to: usize) -> Self {
        Self::transforms_at(literal, level, 1.0) + Self::passes_at(literal, to, (level - to + 1) as f64)
    }

    /// Rescale of a ciphertext of two parts from `level` to `level − 1`.
    pub fn rescale(literal: &ParamsLiteral, level: usize) -> Self {
        if level == 0 {
            return Self::default();
        }
        Self::transforms(literal.q_bits[level], 2.0)
            + Self::transforms_at(literal, level - 1, 2.0)
            + Self::passes_at(literal, level - 1, 4.0)
    }

    /// Relinearisation with rescale in one division.
    pub fn relinearize_rescale(literal: &ParamsLiteral, level: usize) -> Self {
        Self::decompose(literal, level)
            + Self::inner_product(literal, level)
            + Self::mod_down(literal, level) * 2.0
            + Self::passes_at(literal, level, 4.0)
    }

    /// A sum of `images` hoisted rotations and the ciphertext itself, over Q·P: before its division.
    pub fn hoisted_sum(literal: &ParamsLiteral, level: usize, images: f64) -> Self {
        let special = literal.p_bits.iter().fold(Self::default(), |w, b| w + Self::passes(*b, 1.0));
        Self::decompose(literal, level)
            + (Self::inner_product(literal, level) + Self::passes_at(literal, level, 5.0) + special * 4.0) * images
            + Self::passes_at(literal, level, 3.0)
    }

    /// Product of a ciphertext with a plaintext, without its rescale.
    pub fn mul_plain(literal: &ParamsLiteral, level: usize) -> Self {
        Self::passes_at(literal, level, 2.0)
    }

    /// An encryption at a level: message and error are transformed together, and masks are drawn as they are used.
    pub fn encryption(literal: &ParamsLiteral, level: usize) -> Self {
        Self::transforms_at(literal, level, 1.0) + Self::passes_at(literal, level, 8.0)
    }

    /// A decryption, of two parts or three.
    pub fn decryption(literal: &ParamsLiteral, level: usize) -> Self {
        Self::transforms_at(literal, level, 1.0) + Self::passes_at(literal, level, 6.0)
    }

    /// Transforms of each limb over Q_l·P, and passes over it.
    fn everywhere(literal: &ParamsLiteral, level: usize, transforms: f64, passes: f64) -> Self {
        Self::transforms_at(literal, level, transforms)
            + Self::passes_at(literal, level, passes)
            + Self::special(literal, transforms, passes)
    }

    /// Products of blocks over a subring.
    pub fn block_products(literal: &ParamsLiteral, level: usize, blocks: &Blocks) -> Self {
        let Blocks { groups, block_rows, block_columns, terms, rows, relinearize, .. } = *blocks;
        let (d, n, limbs) = (blocks.side as f64, f64::from(literal.log_n).exp2(), (level + 1) as f64);
        let (digits, alpha) = (Self::digits(literal, level), literal.digit_limbs as f64);
        let loads = (groups * (block_rows + block_columns) * terms) as f64;
        let partial = (n.log2() - d.log2()) / n.log2();
        let out_rows = rows as f64 / block_rows as f64;
        let load = Self::transforms_at(literal, level, 2.0 * (1.0 + partial));
        let macs = Self::macs_at(literal, level, 4.0 * d * n * terms as f64);
        let spread = Self::transforms_at(literal, level, partial) + Self::passes_at(literal, level, 2.0);
        // A layer copies, adds and subtracts once for each pair of rows.
        let layers = 1.5 * d.log2() * d;
        let fourier =
            Self::passes_at(literal, level, 2.0 * layers) + Self::everywhere(literal, level, 0.0, 3.0 * layers);
        // From coefficients to values over Q·P.
        let switch =
            Self::inner_product(literal, level) + Self::everywhere(literal, level, digits, digits * alpha + 2.0);
        let switches = (switch * 2.0 + Self::everywhere(literal, level, 3.0, 4.0)) * (d - 1.0);
        let down = Self::passes_at(literal, level, 2.0 * limbs + 2.0) * 3.0;
        let finish = match relinearize {
            false => down + Self::transforms_at(literal, level, 3.0),
            true => {
                let sums = Self::everywhere(literal, level, 2.0, 4.0);
                down + Self::transforms_at(literal, level, 2.0) + switch + sums
            }
        };
        let product = macs + spread * (2.0 * d + 2.0 * out_rows) + fourier + switches + finish * out_rows;
        load * loads + product * blocks.products() as f64
    }
}
