//! Division of RNS polynomials by part of their modulus: mod-down, rescale and the modulus switches of
//! exact schemes.
//!
//! With a factor F and a divisor D, ⌊F·c/D⌉ = (F·c − \[F·c\]_D)/D. F is folded into the constants
//! on both sides, so a division with a factor costs what one without costs; BGV's factor t,
//! which makes rounding errors multiples of t, is such a factor (it is F = t on ciphertexts kept
//! times t^−1). Halevi–Polyakov–Shoup, ePrint 2018/117; Kim–Polyakov–Zucca, ePrint 2021/204.

use super::{Crossing, begins_with, group, runs};
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
    /// F/D modulo each prime that stays, and −F/D.
    scalars: Vec<[Shoup; 2]>,
}

impl Division {
    /// Division by the product of `tail`.
    ///
    /// # Errors
    /// [`RingError::NotCoprime`] if a prime stands on both sides.
    pub fn new(kept: &RnsBasis, tail: &RnsBasis) -> Result<Self, RingError> {
        let scalar = |m: &Modulus| Ok(both_signs(m, m.inverse(tail.product_modulo(m))?));
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
            scalars.push(both_signs(m, m.mul(factor, m.inverse(tail.product_modulo(m))?)));
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

    fn require<F: Form>(&self, c: &Poly<F>) {
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
    pub fn apply<F: Form, const K: usize>(&self, mut batch: [Poly<F>; K]) -> [Poly<F>; K] {
        let _crossing = Crossing::begin();
        batch.iter().for_each(|c| self.require(c));
        let (n, keep) = (self.kept().degree(), self.kept().len());
        let (kept, tails): (Vec<_>, Vec<_>) = batch.iter_mut().map(|c| c.words_mut().split_at_mut(keep * n)).unzip();
        let started = self.start::<F>(tails);
        let group = group(keep, self.tail().len());
        threads::for_each_mut(&mut runs(kept.into_iter(), n * group), |g, xs| {
            self.limbs::<F, true>(&started, g * group, xs);
        });
        drop(started);
        batch.map(|c| c.into_truncated(keep))
    }

    /// Divides polynomials that stay, over these primes or more.
    ///
    /// # Panics
    /// As [`Division::apply`], and unless D is one prime.
    #[must_use]
    pub fn of(&self, batch: &[Poly<Eval>]) -> Vec<Poly<Eval>> {
        let _crossing = Crossing::begin();
        self.expect_first(batch);
        self.of_limbs(batch.len(), |k, i, x| x.copy_from_slice(batch[k].limb(i)))
    }

    /// ⌊F·c·b/D⌉ of each of a batch, for operands over these primes or more: the products are not stored before they
    /// are divided.
    ///
    /// # Panics
    /// As [`Division::of`].
    #[must_use]
    pub fn of_products(&self, batch: &[Poly<Eval>], b: &Poly<Eval>) -> Vec<Poly<Eval>> {
        let _crossing = Crossing::begin();
        self.expect_first(batch);
        self.expect_first(std::slice::from_ref(b));
        self.of_limbs(batch.len(), |k, i, x| b.basis().limb(i).mul(x, batch[k].limb(i), b.limb(i)))
    }

    /// One prime is divided by, and polynomials are over these primes or more.
    fn expect_first(&self, batch: &[Poly<Eval>]) {
        let kept = self.kept();
        assert_eq!(self.tail().len(), 1, "one prime is divided by");
        for c in batch {
            let last = c.basis().len() > kept.len() && c.basis().limb(kept.len()).q() == self.tail().limb(0).q();
            assert!(last && begins_with(c.basis(), kept), "a division of polynomials over other primes");
        }
    }

    /// Divides by one prime what `limb(k, i, x)` writes limb by limb of each polynomial: it is not stored in between.
    fn of_limbs(&self, count: usize, limb: impl Fn(usize, usize, &mut [u64]) + Sync) -> Vec<Poly<Eval>> {
        let (kept, n) = (self.kept(), self.kept().degree());
        let mut tails = Buffer::dirty(n * count);
        threads::for_each_chunk(&mut tails, n, |k, tail| limb(k, kept.len(), tail));
        let started = self.start::<Eval>(tails.chunks_exact_mut(n).collect());
        let mut out: Vec<Poly<Eval>> = (0..count).map(|_| Poly::dirty(kept)).collect();
        threads::for_each_mut(&mut runs(out.iter_mut().map(Poly::words_mut), n), |i, xs| {
            xs.iter_mut().enumerate().for_each(|(k, x)| limb(k, i, x));
            self.limbs::<Eval, true>(&started, i, xs);
        });
        out
    }

    /// Limbs `first` … of ψ(⌊c/D⌉ + plus) of several polynomials from those of c.
    pub(super) fn limbs_permuted(
        &self,
        started: &[Prepared<'_>],
        first: usize,
        xs: &mut [&mut [u64]],
        outs: &mut [&mut [u64]],
        plus: &[Option<&Poly<Eval>>],
        permutation: &EvalPermutation,
    ) {
        let (basis, n) = (self.kept(), self.kept().degree());
        let mut quotients = self.limbs::<Eval, false>(started, first, xs);
        let mut rows = quotients.chunks_exact_mut(n);
        for (out, plus) in outs.iter_mut().zip(plus) {
            for ((i, out), row) in (first..).zip(out.chunks_exact_mut(n)).zip(&mut rows) {
                if let Some(plus) = plus {
                    basis.limb(i).add_assign(row, plus.limb(i));
                }
                permutation.apply(out, row);
            }
        }
    }

    /// [`Division::apply`] by blocks of columns, which stay in the nearest cache for all primes: for a D
    /// of many primes.
    ///
    /// # Panics
    /// As there.
    #[must_use]
    pub fn apply_by_columns(&self, mut c: Poly<Eval>) -> Poly<Eval> {
        let _crossing = Crossing::begin();
        self.require(&c);
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
            basis.limb(i).sub_mul_scalar(x, lifted, &self.scalars[i][0]);
        });
    }

    /// Takes the limbs modulo D of each polynomial. One prime's after another's, since they read the same twiddles.
    pub(super) fn start<'a, F: Form>(&self, mut tails: Vec<&'a mut [u64]>) -> Vec<Prepared<'a>> {
        let n = self.kept().degree();
        if F::VALUES {
            let rows = runs(tails.iter_mut().map(|tail| &mut **tail), n);
            let numbered = rows.into_iter().enumerate().flat_map(|(i, row)| row.into_iter().map(move |x| (i, x)));
            let mut rows: Vec<_> = numbered.collect();
            threads::for_each_mut(&mut rows, |_, (i, x)| self.tail().limb(*i).inverse(x));
        }
        tails.into_iter().map(|tail| self.converter.prepare(tail, true)).collect()
    }

    /// Limbs `first` … of ⌊F·c/D⌉ from those of c, of several polynomials together: where they stood, or, unless
    /// `IN_PLACE`, in the rows that come back, polynomial after polynomial. Prime by prime, since the transforms
    /// read the same twiddles.
    pub(super) fn limbs<F: Form, const IN_PLACE: bool>(
        &self,
        started: &[Prepared<'_>],
        first: usize,
        xs: &mut [&mut [u64]],
    ) -> Buffer {
        let Self { converter, scalars } = self;
        let (n, size) = (converter.to().degree(), xs.first().map_or(0, |x| x.len()));
        let targets: Vec<usize> = (first..first + size / n).collect();
        let mut lifted = Buffer::dirty(size * xs.len());
        for (prepared, lifted) in started.iter().zip(lifted.chunks_exact_mut(size)) {
            let mut outs: Vec<&mut [u64]> = lifted.chunks_exact_mut(n).collect();
            converter.finish_many(prepared, &targets, &mut outs);
        }
        for (i, t) in targets.into_iter().enumerate() {
            let (limb, [factor, negative], row) = (converter.to().limb(t), &scalars[t], i * n..(i + 1) * n);
            for (x, lifted) in xs.iter_mut().zip(lifted.chunks_exact_mut(size)) {
                let (x, lifted) = (&mut x[row.clone()], &mut lifted[row.clone()]);
                if F::VALUES {
                    limb.forward(lifted);
                }
                match IN_PLACE {
                    true => limb.sub_mul_scalar(x, lifted, factor),
                    false => limb.sub_mul_scalar(lifted, x, negative),
                }
            }
        }
        lifted
    }
}

fn both_signs(m: &Modulus, w: u64) -> [Shoup; 2] {
    [m.shoup(w), m.shoup(m.neg(w))]
}
