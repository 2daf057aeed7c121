//! Division of RNS polynomials by part of their modulus: mod-down, rescale and the modulus switches of
//! exact schemes.
//!
//! With a factor F and a divisor D, ⌊F·c/D⌉ = (F·c − \[F·c\]_D)/D. F is folded into the constants
//! on both sides, so a division with a factor costs what one without costs; BGV's factor t,
//! which makes rounding errors multiples of t, is such a factor (it is F = t on ciphertexts kept
//! times t^−1). Halevi–Polyakov–Shoup, ePrint 2018/117; Kim–Polyakov–Zucca, ePrint 2021/204.

use super::group;
use crate::error::RlweError;
use crate::levels::{inverse, product};
use sudare_ring::buffer::Buffer;
use sudare_ring::convert::{BasisConverter, Prepared};
use sudare_ring::{Coeff, Eval, Poly, RnsBasis, Shoup, threads};

/// ⌊F·c/D⌉ of polynomials over the primes that stay, then those of D.
#[derive(Debug)]
pub struct Division {
    /// From D to the primes that stay: \[F·c\]_D / F.
    converter: BasisConverter,
    /// F/D modulo each prime that stays.
    scalars: Vec<Shoup>,
}

impl Division {
    /// Division by the product of `tail`.
    ///
    /// # Errors
    /// [`RlweError::NotCoprime`] if a prime stands on both sides.
    pub fn new(kept: &RnsBasis, tail: &RnsBasis) -> Result<Self, RlweError> {
        let scalar = |m: &sudare_ring::Modulus| Ok(m.shoup(inverse(m, product(tail, m))?));
        let scalars = kept.limbs().iter().map(|l| scalar(l.modulus())).collect::<Result<_, RlweError>>()?;
        Ok(Self { converter: BasisConverter::new(tail, kept), scalars })
    }

    /// Division by the product of `tail` of `factor` times what is divided.
    ///
    /// # Errors
    /// [`RlweError::NotCoprime`] if the factor or D has no inverse modulo a prime that stays.
    pub fn scaled(kept: &RnsBasis, tail: &RnsBasis, factor: u64) -> Result<Self, RlweError> {
        if factor == 1 {
            return Self::new(kept, tail);
        }
        let pre: Vec<u64> = tail.limbs().iter().map(|l| l.modulus().reduce(factor)).collect();
        let (mut post, mut scalars) = (Vec::new(), Vec::new());
        for m in kept.limbs().iter().map(|l| l.modulus()) {
            post.push(inverse(m, factor)?);
            scalars.push(m.shoup(m.mul(factor, inverse(m, product(tail, m))?)));
        }
        Ok(Self { converter: BasisConverter::scaled(tail, kept, &pre, &post), scalars })
    }

    /// The primes that stay.
    pub fn kept(&self) -> &RnsBasis {
        self.converter.to()
    }

    /// The primes of D.
    pub fn tail(&self) -> &RnsBasis {
        self.converter.from()
    }

    /// Divides; the limbs of a target prime share one reading of those of D.
    #[must_use]
    pub fn apply(&self, mut c: Poly<Eval>) -> Poly<Eval> {
        let (n, keep) = (c.degree(), self.kept().len());
        let (kept, tail) = c.words_mut().split_at_mut(keep * n);
        let started = self.start(tail);
        let group = group(keep);
        threads::for_each_chunk(kept, n * group, |g, xs| started.limbs(g * group, xs));
        c.into_truncated(keep)
    }

    /// The same in coefficient form.
    #[must_use]
    pub fn apply_coefficients(&self, mut c: Poly<Coeff>) -> Poly<Coeff> {
        let (n, keep) = (c.degree(), self.kept().len());
        let (kept, tail) = c.words_mut().split_at_mut(keep * n);
        let prepared = self.converter.prepare(tail, true);
        threads::for_each_chunk(kept, n, |i, x| {
            let mut lifted = Buffer::dirty(n);
            self.converter.finish(&prepared, i, &mut lifted);
            self.kept().limb(i).sub_mul_scalar(x, &lifted, &self.scalars[i]);
        });
        c.into_truncated(keep)
    }

    /// [`Division::apply`] by blocks of columns, which stay in the nearest cache for all primes: for a D
    /// of many primes.
    #[must_use]
    pub fn apply_by_columns(&self, mut c: Poly<Eval>) -> Poly<Eval> {
        let (n, keep) = (c.degree(), self.kept().len());
        let (kept, tail) = c.words_mut().split_at_mut(keep * n);
        self.divide_by_columns(kept, tail);
        c.into_truncated(keep)
    }

    /// The same where the limbs modulo D stand apart; they are used up.
    ///
    /// # Panics
    /// If the polynomials are over other primes.
    #[must_use]
    pub fn apply_to_parts(&self, mut kept: Poly<Eval>, tail: &mut Poly<Eval>) -> Poly<Eval> {
        self.divide_by_columns(kept.words_mut(), tail.words_mut());
        kept
    }

    fn divide_by_columns(&self, kept: &mut [u64], tail: &mut [u64]) {
        let (basis, n) = (self.kept(), self.kept().degree());
        threads::for_each_chunk(tail, n, |i, x| self.converter.from().limb(i).inverse(x));
        let mut lifted = Buffer::dirty(kept.len());
        self.converter.convert(tail, &mut lifted);
        threads::for_each_chunk_pair(kept, &mut lifted, n, |i, x, lifted| {
            basis.limb(i).forward(lifted);
            basis.limb(i).sub_mul_scalar(x, lifted, &self.scalars[i]);
        });
    }

    /// Takes the limbs modulo D, in evaluation form.
    pub(super) fn start<'a>(&'a self, tail: &'a mut [u64]) -> Started<'a> {
        let from = self.converter.from();
        threads::for_each_chunk(tail, from.degree(), |i, x| from.limb(i).inverse(x));
        Started { division: self, prepared: self.converter.prepare(tail, true) }
    }
}

/// A division whose limbs modulo D are prepared.
pub(super) struct Started<'a> {
    division: &'a Division,
    prepared: Prepared<'a>,
}

impl Started<'_> {
    /// Limbs `first` … of ⌊F·c/D⌉ from those of c.
    pub(super) fn limbs(&self, first: usize, xs: &mut [u64]) {
        let Division { converter, scalars } = self.division;
        let n = converter.to().degree();
        let mut lifted = Buffer::dirty(xs.len());
        let targets: Vec<usize> = (first..first + xs.len() / n).collect();
        let mut outs: Vec<&mut [u64]> = lifted.chunks_exact_mut(n).collect();
        converter.finish_many(&self.prepared, &targets, &mut outs);
        for ((i, x), lifted) in targets.into_iter().zip(xs.chunks_exact_mut(n)).zip(outs) {
            let limb = converter.to().limb(i);
            limb.forward(lifted);
            limb.sub_mul_scalar(x, lifted, &scalars[i]);
        }
    }
}

/// The polynomial divided, or as it is where there is nothing to divide by.
pub(super) fn rounded(division: Option<&Division>, c: Poly<Eval>) -> Poly<Eval> {
    match division {
        Some(division) => division.apply(c),
        None => c,
    }
}
