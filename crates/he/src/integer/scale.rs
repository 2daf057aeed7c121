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
use sudare_ring::buffer::Buffer;
use sudare_ring::convert::{BasisConverter, Prepared};
use sudare_ring::{Eval, Poly, RnsBasis, Shoup, threads};

/// ⌊F·c/D⌉ of polynomials over the primes that stay, then those of D.
pub(crate) struct Division {
    converter: BasisConverter,
    /// F/D modulo each prime that stays.
    scalars: Vec<Shoup>,
}

impl Division {
    /// Prepares it; `None` if the factor or D has no inverse modulo a prime that stays.
    pub(crate) fn new(kept: &RnsBasis, tail: &RnsBasis, factor: u64) -> Option<Self> {
        let pre: Vec<u64> = tail.limbs().iter().map(|l| l.modulus().reduce(factor)).collect();
        let (mut post, mut scalars) = (Vec::new(), Vec::new());
        for l in kept.limbs() {
            let m = l.modulus();
            let divisor = tail.primes().fold(1, |acc, q| m.mul(acc, q));
            post.push(m.inv(factor)?);
            scalars.push(m.shoup(m.mul(factor, m.inv(divisor)?)));
        }
        Some(Self { converter: BasisConverter::scaled(tail, kept, &pre, &post), scalars })
    }

    /// Divides.
    pub(crate) fn apply(&self, mut c: Poly<Eval>) -> Poly<Eval> {
        let n = c.degree();
        let basis = c.basis().clone();
        let keep = self.converter.to().len();
        let (kept, tail) = c.words_mut().split_at_mut(keep * n);
        threads::for_each_chunk(tail, n, |i, x| basis.limb(keep + i).inverse(x));
        let prepared = self.converter.prepare(tail, true);
        threads::for_each_chunk(kept, n, |i, x| {
            let limb = basis.limb(i);
            let mut lifted = Buffer::dirty(n);
            self.converter.finish(&prepared, i, &mut lifted);
            limb.forward(&mut lifted);
            limb.sub_mul_scalar(x, &lifted, &self.scalars[i]);
        });
        c.into_truncated(keep)
    }
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
pub(crate) struct Extended {
    pub(crate) q: Poly<Eval>,
    pub(crate) r: Poly<Eval>,
}

/// The second half of a conversion for every target prime, in evaluation form.
fn finish(converter: &BasisConverter, prepared: &Prepared<'_>) -> Poly<Eval> {
    let basis = converter.to();
    let mut out = Poly::dirty(basis);
    threads::for_each_chunk(out.words_mut(), basis.degree(), |j, x| {
        converter.finish(prepared, j, x);
        basis.limb(j).forward(x);
    });
    out
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

impl ProductTables {
    pub(crate) fn new(high: &RnsBasis, low: &RnsBasis, aux: &RnsBasis, t: u64) -> Option<Self> {
        let product =
            |basis: &RnsBasis, l: &sudare_ring::Limb| basis.primes().fold(1, |acc, q| l.modulus().mul(acc, q));
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
    pub(crate) fn left(&self, c: &Poly<Eval>) -> Result<Extended, HeError> {
        self.check(c)?;
        let q = match &self.drop {
            Some(drop) => drop.apply(c.clone()),
            None => c.clone(),
        };
        let mut rows = coefficients(&q);
        let prepared = self.lift.prepare(&mut rows, true);
        let r = finish(&self.lift, &prepared);
        Ok(Extended { q, r })
    }

    /// The right operand: scaled by R/Q_high to R, then lifted to Q_low.
    pub(crate) fn right(&self, c: &Poly<Eval>) -> Result<Extended, HeError> {
        self.check(c)?;
        let mut rows = coefficients(c);
        let prepared = self.shrink.prepare(&mut rows, true);
        let (n, basis) = (c.degree(), &self.aux);
        let mut scaled = Buffer::dirty(n * basis.len());
        threads::for_each_chunk(&mut scaled, n, |j, x| self.shrink.finish(&prepared, j, x));
        let mut r = Poly::dirty(basis);
        threads::for_each_chunk(r.words_mut(), n, |j, x| {
            x.copy_from_slice(&scaled[j * n..(j + 1) * n]);
            basis.limb(j).forward(x);
        });
        let prepared = self.back.prepare(&mut scaled, true);
        Ok(Extended { q: finish(&self.back, &prepared), r })
    }
}
