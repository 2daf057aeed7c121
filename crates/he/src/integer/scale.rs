//! Exact scaling of RNS polynomials: division by part of the modulus with a factor, and the
//! change of basis of BFV products.
//!
//! Halevi–Polyakov–Shoup, ePrint 2018/117; Kim–Polyakov–Zucca, ePrint 2021/204 (products over Q
//! and an auxiliary modulus R of about its size, one operand scaled to R beforehand).
//!
//! With a factor F and a divisor D, ⌊F·c/D⌉ = (F·c − \[F·c\]_D)/D. F is folded into the constants
//! on both sides, so a division with a factor costs what one without costs; BGV's factor t,
//! which makes rounding errors multiples of t, is such a factor (it is F = t on ciphertexts kept
//! times t^−1).

use crate::error::HeError;
use std::borrow::Cow;
use sudare_ring::buffer::Buffer;
use sudare_ring::convert::{BasisConverter, column_blocks};
use sudare_ring::{Eval, Limb, Poly, RnsBasis, Shoup, threads};

/// ⌊F·c/D⌉ of polynomials over the primes that stay and those of D.
pub(crate) struct Division {
    converter: BasisConverter,
    /// −F/D modulo each prime that stays.
    scalars: Vec<Shoup>,
}

impl Division {
    /// Prepares it; `None` if the factor or D has no inverse modulo a prime that stays.
    pub(crate) fn new(kept: &RnsBasis, tail: &RnsBasis, factor: u64) -> Option<Self> {
        let pre: Vec<u64> = tail.limbs().iter().map(|l| l.modulus().reduce(factor)).collect();
        let (mut post, mut scalars) = (Vec::new(), Vec::new());
        for l in kept.limbs() {
            let m = l.modulus();
            post.push(m.inv(factor)?);
            scalars.push(m.shoup(m.neg(m.mul(factor, m.inv(product(tail, l))?))));
        }
        Some(Self { converter: BasisConverter::scaled(tail, kept, &pre, &post), scalars })
    }

    /// Divides; `tail`, the limbs modulo the primes of D, is used up.
    pub(crate) fn apply(&self, kept: &[u64], tail: &mut [u64]) -> Poly<Eval> {
        let (basis, n) = (self.converter.to(), self.converter.to().degree());
        threads::for_each_chunk(tail, n, |i, x| self.converter.from().limb(i).inverse(x));
        let mut out = Poly::dirty(basis);
        self.converter.convert(tail, out.words_mut());
        threads::for_each_chunk(out.words_mut(), n, |i, x| {
            let limb = basis.limb(i);
            limb.forward(x);
            limb.sub_mul_scalar(x, &kept[i * n..(i + 1) * n], &self.scalars[i]);
        });
        out
    }

    /// Divides a polynomial over the primes that stay, then those of D.
    pub(crate) fn apply_whole(&self, mut c: Poly<Eval>) -> Poly<Eval> {
        let (kept, tail) = c.words_mut().split_at_mut(self.converter.to().len() * self.converter.to().degree());
        self.apply(kept, tail)
    }
}

/// The product of a basis modulo a prime.
fn product(basis: &RnsBasis, limb: &Limb) -> u64 {
    basis.primes().fold(1, |acc, q| limb.modulus().mul(acc, q))
}

/// What a BFV product needs to go from Q_high to Q_low·R and back to Q_low.
pub(crate) struct ProductTables {
    high: RnsBasis,
    pub(crate) low: RnsBasis,
    pub(crate) aux: RnsBasis,
    /// Q_high/Q_low, divided away; `None` if both are the same.
    drop: Option<Division>,
    /// Q_low → R.
    lift: BasisConverter,
    /// Q_high → R, times R/Q_high.
    shrink: BasisConverter,
    /// R → Q_low.
    back: BasisConverter,
    /// ⌊t·x/R⌉.
    pub(crate) divide: Division,
}

/// A polynomial over Q_low·R in evaluation form.
pub(crate) struct Extended<'a> {
    pub(crate) q: Cow<'a, Poly<Eval>>,
    pub(crate) r: Poly<Eval>,
}

fn coefficients(c: &Poly<Eval>) -> Buffer {
    let mut out = Buffer::dirty(c.words().len());
    let basis = c.basis();
    threads::for_each_chunk(&mut out, c.degree(), |i, x| {
        x.copy_from_slice(c.limb(i));
        basis.limb(i).inverse(x);
    });
    out
}

/// Evaluation form of what stands in coefficient form.
fn transform(c: &mut Poly<Eval>) {
    let basis = c.basis().clone();
    threads::for_each_chunk(c.words_mut(), basis.degree(), |i, x| basis.limb(i).forward(x));
}

impl ProductTables {
    pub(crate) fn new(high: &RnsBasis, low: &RnsBasis, aux: &RnsBasis, t: u64) -> Option<Self> {
        // ⌊R·x/Q⌉ = (R·x − [R·x]_Q)/Q ≡ −[R·x]_Q/Q modulo a prime of R.
        let pre: Vec<u64> = high.limbs().iter().map(|l| product(aux, l)).collect();
        let post = aux
            .limbs()
            .iter()
            .map(|l| l.modulus().inv(product(high, l)).map(|x| l.modulus().neg(x)))
            .collect::<Option<Vec<u64>>>()?;
        let drop = if high.len() == low.len() {
            None
        } else {
            Some(Division::new(low, &high.select(low.len()..high.len()), 1)?)
        };
        Some(Self {
            drop,
            lift: BasisConverter::new(low, aux),
            shrink: BasisConverter::scaled(high, aux, &pre, &post),
            back: BasisConverter::new(aux, low),
            divide: Division::new(low, aux, t)?,
            high: high.clone(),
            low: low.clone(),
            aux: aux.clone(),
        })
    }

    fn check(&self, c: &Poly<Eval>) -> Result<(), HeError> {
        if *c.basis() != self.high {
            return Err(HeError::Parameters { reason: "a product's operand is not at the level it says".into() });
        }
        Ok(())
    }

    /// The left operand: divided down to Q_low, then lifted to R.
    pub(crate) fn left<'a>(&self, c: &'a Poly<Eval>) -> Result<Extended<'a>, HeError> {
        self.check(c)?;
        let q = match &self.drop {
            Some(drop) => Cow::Owned(drop.apply_whole(c.clone())),
            None => Cow::Borrowed(c),
        };
        let mut r = Poly::dirty(&self.aux);
        self.lift.convert(&coefficients(&q), r.words_mut());
        transform(&mut r);
        Ok(Extended { q, r })
    }

    /// The right operand: scaled by R/Q_high to R, then lifted to Q_low.
    pub(crate) fn right<'a>(&self, c: &'a Poly<Eval>) -> Result<Extended<'a>, HeError> {
        self.check(c)?;
        let rows = coefficients(c);
        let n = c.degree();
        let (mut q, mut r) = (Poly::dirty(&self.low), Poly::dirty(&self.aux));
        let width = self.shrink.columns().min(self.back.columns());
        let blocks = column_blocks(q.words_mut(), n, width);
        let mut blocks: Vec<_> = blocks.into_iter().zip(column_blocks(r.words_mut(), n, width)).collect();
        threads::for_each_mut(&mut blocks, |b, (q, r)| {
            let at = b * width..(b + 1) * width;
            let rows: Vec<&[u64]> = rows.chunks_exact(n).map(|row| &row[at.clone()]).collect();
            self.shrink.convert_columns(&rows, r);
            let scaled: Vec<&[u64]> = r.iter().map(|x| &**x).collect();
            self.back.convert_columns(&scaled, q);
        });
        drop(blocks);
        transform(&mut q);
        transform(&mut r);
        Ok(Extended { q: Cow::Owned(q), r })
    }
}
