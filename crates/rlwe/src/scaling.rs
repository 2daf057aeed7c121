//! The change of basis of scale-invariant products: what multiplies in BFV.
//!
//! Halevi–Polyakov–Shoup, ePrint 2018/117; Kim–Polyakov–Zucca, ePrint 2021/204 (products over Q
//! and an auxiliary modulus R of about its size, one operand scaled to R beforehand).

use crate::error::RlweError;
use std::borrow::Cow;
use sudare_ring::convert::BasisConverter;
use sudare_ring::ops::{Division, Rescaling, lifted};
use sudare_ring::{Eval, Poly, RingError, RnsBasis};

/// What a product needs to go from Q_high to Q_low·R and back to Q_low.
pub struct ScalingTables {
    high: RnsBasis,
    pub(crate) low: RnsBasis,
    pub(crate) aux: RnsBasis,
    /// Q_high/Q_low, divided away; `None` if both are the same.
    drop: Option<Division>,
    /// Q_low → R.
    lift: BasisConverter,
    /// ⌊R·x/Q_high⌉, over R and Q_low.
    rescaling: Rescaling,
    /// ⌊t·x/R⌉.
    pub(crate) divide: Division,
}

/// A polynomial over Q_low·R in evaluation form.
pub(crate) struct Extended<'a> {
    pub(crate) q: Cow<'a, Poly<Eval>>,
    pub(crate) r: Poly<Eval>,
}

impl ScalingTables {
    /// For operands over `high`, a result over `low`, auxiliary primes `aux`, and the factor t of the result.
    ///
    /// # Errors
    /// [`RingError::NotCoprime`] if primes are equal.
    pub fn new(high: &RnsBasis, low: &RnsBasis, aux: &RnsBasis, t: u64) -> Result<Self, RingError> {
        let dropped = (high.len() > low.len()).then(|| high.select(low.len()..high.len()));
        Ok(Self {
            drop: dropped.map(|dropped| Division::new(low, &dropped)).transpose()?,
            lift: BasisConverter::new(low, aux),
            rescaling: Rescaling::new(high, aux, low)?,
            divide: Division::scaled(low, aux, t)?,
            high: high.clone(),
            low: low.clone(),
            aux: aux.clone(),
        })
    }

    fn check(&self, c: &Poly<Eval>) -> Result<(), RlweError> {
        if *c.basis() != self.high {
            return Err(RlweError::Parameters {
                reason: "an operand of a product is not at the level that it says".into(),
            });
        }
        Ok(())
    }

    /// The left operand: divided down to Q_low, then lifted to R.
    pub(crate) fn left<'a>(&self, c: &'a Poly<Eval>) -> Result<Extended<'a>, RlweError> {
        self.check(c)?;
        let q = match &self.drop {
            Some(drop) => Cow::Owned(drop.apply_by_columns(c.clone())),
            None => Cow::Borrowed(c),
        };
        let r = lifted(&self.lift, &q);
        Ok(Extended { q, r })
    }

    /// The right operand: scaled by R/Q_high to R, then lifted to Q_low.
    pub(crate) fn right<'a>(&self, c: &'a Poly<Eval>) -> Result<Extended<'a>, RlweError> {
        self.check(c)?;
        let [q, r] = self.rescaling.apply(c);
        Ok(Extended { q: Cow::Owned(q), r })
    }
}
