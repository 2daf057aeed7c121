//! The change of basis of BFV products.
//!
//! Halevi–Polyakov–Shoup, ePrint 2018/117; Kim–Polyakov–Zucca, ePrint 2021/204 (products over Q
//! and an auxiliary modulus R of about its size, one operand scaled to R beforehand).

use crate::error::{HeError, parameters};
use std::borrow::Cow;
use sudare_ring::buffer::Buffer;
use sudare_ring::convert::{BasisConverter, column_blocks};
use sudare_ring::{Eval, Poly, RnsBasis, threads};
use sudare_rlwe::switching::Division;
use sudare_rlwe::{RlweError, inverse, product};

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
    pub(crate) fn new(high: &RnsBasis, low: &RnsBasis, aux: &RnsBasis, t: u64) -> Result<Self, RlweError> {
        // ⌊R·x/Q⌉ = (R·x − [R·x]_Q)/Q ≡ −[R·x]_Q/Q modulo a prime of R.
        let pre: Vec<u64> = high.limbs().iter().map(|l| product(aux, l.modulus())).collect();
        let post = aux
            .limbs()
            .iter()
            .map(|l| Ok(l.modulus().neg(inverse(l.modulus(), product(high, l.modulus()))?)))
            .collect::<Result<Vec<u64>, RlweError>>()?;
        let drop =
            if high.len() == low.len() { None } else { Some(Division::new(low, &high.select(low.len()..high.len()))?) };
        Ok(Self {
            drop,
            lift: BasisConverter::new(low, aux),
            shrink: BasisConverter::scaled(high, aux, &pre, &post),
            back: BasisConverter::new(aux, low),
            divide: Division::scaled(low, aux, t)?,
            high: high.clone(),
            low: low.clone(),
            aux: aux.clone(),
        })
    }

    fn check(&self, c: &Poly<Eval>) -> Result<(), HeError> {
        if *c.basis() != self.high {
            return Err(parameters("a product's operand is not at the level it says"));
        }
        Ok(())
    }

    /// The left operand: divided down to Q_low, then lifted to R.
    pub(crate) fn left<'a>(&self, c: &'a Poly<Eval>) -> Result<Extended<'a>, HeError> {
        self.check(c)?;
        let q = match &self.drop {
            Some(drop) => Cow::Owned(drop.apply_by_columns(c.clone())),
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
