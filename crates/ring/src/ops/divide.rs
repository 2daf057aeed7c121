//! Division of RNS polynomials by part of their modulus: mod-down, rescale and the modulus switches of
//! exact schemes.
//!
//! With a factor F and a divisor D, ⌊F·c/D⌉ = (F·c − \[F·c\]_D)/D. F is folded into the constants
//! on both sides, so a division with a factor costs what one without costs; BGV's factor t,
//! which makes rounding errors multiples of t, is such a factor (it is F = t on ciphertexts kept
//! times t^−1). Halevi–Polyakov–Shoup, ePrint 2018/117; Kim–Polyakov–Zucca, ePrint 2021/204.

use super::{Crossing, begins_with, group};
use crate::automorphism::EvalPermutation;
use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::convert::{BasisConverter, Prepared};
use crate::error::RingError;
use crate::modulus::{Modulus, Shoup};
use crate::poly::sealed::Form;
use crate::poly::{Eval, Poly};
use crate::threads;

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
    /// [`RingError::NotCoprime`] if a prime stands on both sides.
    pub fn new(kept: &RnsBasis, tail: &RnsBasis) -> Result<Self, RingError> {
        let scalar = |m: &Modulus| Ok(m.shoup(m.inverse(tail.product_modulo(m))?));
        let scalars = kept.moduli().map(scalar).collect::<Result<_, RingError>>()?;
        Ok(Self { converter: BasisConverter::new(tail, kept), scalars })
    }

    /// Division by the product of `tail` of `factor` times what is divided.
    ///
    /// # Errors
    /// [`RingError::NotCoprime`] if the factor or D has no inverse modulo a prime that stays.
    pub fn scaled(kept: &RnsBasis, tail: &RnsBasis, factor: u64) -> Result<Self, RingError> {
        if factor == 1 {
            return Self::new(kept, tail);
        }
        let pre: Vec<u64> = tail.moduli().map(|m| m.reduce(factor)).collect();
        let (mut post, mut scalars) = (Vec::new(), Vec::new());
        for m in kept.moduli() {
            post.push(m.inverse(factor)?);
            scalars.push(m.shoup(m.mul(factor, m.inverse(tail.product_modulo(m))?)));
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

    fn expect<F: Form>(&self, c: &Poly<F>) {
        let (kept, tail) = (self.kept(), self.tail());
        let fits = c.basis().len() == kept.len() + tail.len()
            && c.basis().primes().zip(kept.primes().chain(tail.primes())).all(|(a, b)| a == b);
        assert!(fits, "a division of polynomials over other primes");
    }

    /// Divides each of a batch, in either form; the limbs of a target prime share one reading of those of D.
    ///
    /// # Panics
    /// If a polynomial is over other primes.
    #[must_use]
    pub fn apply<F: Form, const K: usize>(&self, batch: [Poly<F>; K]) -> [Poly<F>; K] {
        let _crossing = Crossing::begin();
        batch.map(|mut c| {
            self.expect(&c);
            let (n, keep) = (c.degree(), self.kept().len());
            let (kept, tail) = c.words_mut().split_at_mut(keep * n);
            let started = self.start::<F>(tail);
            let group = group(keep);
            threads::for_each_chunk(kept, n * group, |g, xs| started.limbs(g * group, xs));
            c.into_truncated(keep)
        })
    }

    /// Divides polynomials that stay, over these primes or more.
    ///
    /// # Panics
    /// As [`Division::apply`], and unless D is one prime.
    #[must_use]
    pub fn of(&self, batch: &[Poly<Eval>]) -> Vec<Poly<Eval>> {
        let _crossing = Crossing::begin();
        batch.iter().map(|c| self.of_limbs(&[c], |i, x| x.copy_from_slice(c.limb(i)))).collect()
    }

    /// ⌊F·c·b/D⌉ of each of a batch, for operands over these primes or more: the products are not stored before they
    /// are divided.
    ///
    /// # Panics
    /// As [`Division::of`].
    #[must_use]
    pub fn of_products(&self, batch: &[Poly<Eval>], b: &Poly<Eval>) -> Vec<Poly<Eval>> {
        let _crossing = Crossing::begin();
        let product = |c: &Poly<Eval>| self.of_limbs(&[c, b], |i, x| b.basis().limb(i).mul(x, c.limb(i), b.limb(i)));
        batch.iter().map(product).collect()
    }

    /// Divides by one prime what `limb(i, x)` writes limb by limb: it is not stored in between.
    fn of_limbs(&self, operands: &[&Poly<Eval>], limb: impl Fn(usize, &mut [u64]) + Sync) -> Poly<Eval> {
        let (kept, n) = (self.kept(), self.kept().degree());
        assert_eq!(self.tail().len(), 1, "one prime is divided by");
        for c in operands {
            let last = c.basis().len() > kept.len() && c.basis().limb(kept.len()).q() == self.tail().limb(0).q();
            assert!(last && begins_with(c.basis(), kept), "a division of polynomials over other primes");
        }
        let mut tail = Buffer::dirty(n);
        limb(kept.len(), &mut tail);
        let started = self.start::<Eval>(&mut tail);
        let mut out = Poly::dirty(kept);
        out.for_each(|i, _, x| {
            limb(i, x);
            started.limbs(i, x);
        });
        out
    }

    /// ψ(⌊c/D⌉ + plus) of each of a batch: the end of a rotation, each limb finished while it is in the cache.
    ///
    /// # Panics
    /// As [`Division::apply`].
    #[must_use]
    pub fn apply_permuted<const K: usize>(
        &self,
        batch: [(Poly<Eval>, Option<&Poly<Eval>>); K],
        permutation: &EvalPermutation,
    ) -> [Poly<Eval>; K] {
        let _crossing = Crossing::begin();
        batch.map(|(mut c, plus)| {
            self.expect(&c);
            let (basis, n) = (self.kept(), c.degree());
            let mut out = Poly::dirty(basis);
            let (kept, tail) = c.words_mut().split_at_mut(basis.len() * n);
            let started = self.start::<Eval>(tail);
            let group = group(basis.len());
            threads::for_each_chunk_pair(out.words_mut(), kept, n * group, |g, outs, xs| {
                started.limbs(g * group, xs);
                for (i, (out, x)) in outs.chunks_exact_mut(n).zip(xs.chunks_exact_mut(n)).enumerate() {
                    if let Some(plus) = plus {
                        basis.limb(g * group + i).add_assign(x, plus.limb(g * group + i));
                    }
                    permutation.apply(out, x);
                }
            });
            out
        })
    }

    /// [`Division::apply`] by blocks of columns, which stay in the nearest cache for all primes: for a D
    /// of many primes.
    ///
    /// # Panics
    /// As there.
    #[must_use]
    pub fn apply_by_columns(&self, mut c: Poly<Eval>) -> Poly<Eval> {
        let _crossing = Crossing::begin();
        self.expect(&c);
        let (n, keep) = (c.degree(), self.kept().len());
        let (kept, tail) = c.words_mut().split_at_mut(keep * n);
        self.divide_by_columns(kept, tail);
        c.into_truncated(keep)
    }

    /// The same where the limbs modulo D stand apart, each with its own of a batch.
    ///
    /// # Panics
    /// If the polynomials are over other primes.
    #[must_use]
    pub fn apply_to_parts<const K: usize>(&self, kept: [Poly<Eval>; K], tails: [Poly<Eval>; K]) -> [Poly<Eval>; K] {
        let _crossing = Crossing::begin();
        let mut tails = tails.into_iter();
        kept.map(|mut kept| {
            let Some(mut tail) = tails.next() else { unreachable!("as many of both") };
            assert!(kept.basis() == self.kept() && tail.basis() == self.tail(), "parts over other primes");
            self.divide_by_columns(kept.words_mut(), tail.words_mut());
            kept
        })
    }

    fn divide_by_columns(&self, kept: &mut [u64], tail: &mut [u64]) {
        let (basis, n) = (self.kept(), self.kept().degree());
        threads::for_each_chunk(tail, n, |i, x| self.tail().limb(i).inverse(x));
        let mut lifted = Buffer::dirty(kept.len());
        self.converter.convert(tail, &mut lifted);
        threads::for_each_chunk_pair(kept, &mut lifted, n, |i, x, lifted| {
            basis.limb(i).forward(lifted);
            basis.limb(i).sub_mul_scalar(x, lifted, &self.scalars[i]);
        });
    }

    /// Takes the limbs modulo D.
    fn start<'a, F: Form>(&'a self, tail: &'a mut [u64]) -> Started<'a> {
        if F::VALUES {
            threads::for_each_chunk(tail, self.tail().degree(), |i, x| self.tail().limb(i).inverse(x));
        }
        Started { division: self, values: F::VALUES, prepared: self.converter.prepare(tail, true) }
    }
}

/// A division whose limbs modulo D are prepared.
struct Started<'a> {
    division: &'a Division,
    values: bool,
    prepared: Prepared<'a>,
}

impl Started<'_> {
    /// Limbs `first` … of ⌊F·c/D⌉ from those of c.
    fn limbs(&self, first: usize, xs: &mut [u64]) {
        let Division { converter, scalars } = self.division;
        let n = converter.to().degree();
        let mut lifted = Buffer::dirty(xs.len());
        let targets: Vec<usize> = (first..first + xs.len() / n).collect();
        let mut outs: Vec<&mut [u64]> = lifted.chunks_exact_mut(n).collect();
        converter.finish_many(&self.prepared, &targets, &mut outs);
        for ((i, x), lifted) in targets.into_iter().zip(xs.chunks_exact_mut(n)).zip(outs) {
            let limb = converter.to().limb(i);
            if self.values {
                limb.forward(lifted);
            }
            limb.sub_mul_scalar(x, lifted, &scalars[i]);
        }
    }
}
