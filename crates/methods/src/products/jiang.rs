//! The product of Jiang–Kim–Lauter–Song (CCS 2018): C = Σ_k φ^k(σ(A)) ⊙ ψ^k(τ(B)) with
//! σ(A)\[i,j\] = A\[i,i+j\], τ(B)\[i,j\] = B\[i+j,j\], φ^k a shift of columns by k and ψ^k one of rows.
//!
//! Slot (i, j, t) is (i·d + j)·g + t with g = N/2d² lanes, each a product of its own, so that
//! every rotation is cyclic modulo d².
//!
//! # The schedule of `000`'s \[15\]
//! Its operation counts follow from Jiang et al.'s own schedule with b = ⌈√d⌉ baby steps:
//!
//! | part | additions | products with masks | rotations | products |
//! |---|---|---|---|---|
//! | σ: 2d − 1 diagonals | 2d − 2 | 2d − 1 | b + 2b | |
//! | τ: d diagonals | d − 1 | d | b + b | |
//! | φ^k: v_k ⊙ A and A − v_k ⊙ A | 2(d − 1) | d − 1 | 2(d − 1) | |
//! | ψ^k | | | d − 1 | |
//! | products and their sum | d − 1 | | | d |
//! | together | 6d − 6 | 4d − 2 | 3d − 3 + 5⌈√d⌉ | d |
//!
//! For d = 4, 8, 16 that is 18, 42, 90 additions, 14, 30, 62 products with masks, 19, 36, 65
//! rotations and 4, 8, 16 products: the numbers of `000`'s Table 5 for \[15\], with the columns Rot
//! and cMult interchanged. (Read as printed, 4d − 2 rotations would be fewer than σ, τ, φ and ψ
//! take.) The 5⌈√d⌉ count four rotations by zero — the first baby and the first giant step of σ
//! and of τ — which do nothing and which the evaluator's counters leave out: they show 15, 32, 61.

use crate::error::MatrixError;
use crate::portable::{self, Portable};
use crate::product::{Figures, Product, ProductPlan, Requirements};
use crate::products::{Method, ProductSpec};
use crate::slots::common::{Search, check_count, check_depth, check_matrices, check_shape, search_literals, slots_of};
use crate::tables::Tables;
use std::collections::BTreeMap;
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_he::circuits::linear_map::LinearMap;
use sudare_he::ckks::{
    Batch, Ciphertext, CiphertextOf, Decrypted, Encoder, Evaluator, Mask, Order, Params, ParamsLiteral, Plaintext,
    PlaintextOf,
};
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::{Backend, KeyId};

/// Rescales from an operand to the result: σ or τ, φ, the product.
const DEPTH: usize = 3;

/// Which linear map.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Map {
    Sigma,
    Tau,
}

/// The product's sizes, steps and parameters; no tables.
#[derive(Clone, Debug)]
pub struct JiangPlan {
    shape: Shape,
    literal: ParamsLiteral,
    d: usize,
    lanes: usize,
    top: usize,
    hoisted: bool,
}

impl JiangPlan {
    /// Plans the product, as laid out or hoisted.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if slots (d²) or levels (3) do not suffice.
    pub fn new(shape: Shape, literal: &ParamsLiteral, hoisted: bool) -> Result<Self, MatrixError> {
        let method = if hoisted { "jiang-bsgs" } else { "jiang" };
        check_shape(method, shape)?;
        check_depth(method, literal, DEPTH)?;
        let d = shape.m.max(shape.k).max(shape.n).next_power_of_two();
        let slots = 1usize << literal.log_n.clamp(1, 30).saturating_sub(1);
        if d * d > slots {
            let reason = format!("{d}×{d} elements take {} slots, and the ring has {slots}; take a larger ring", d * d);
            return Err(MatrixError::Method { method, reason });
        }
        let (lanes, top) = (slots / (d * d), literal.q_bits.len() - 1);
        Ok(Self { shape, literal: literal.clone(), d, lanes, top, hoisted })
    }

    /// ⌈√d⌉ baby steps.
    fn babies(&self) -> i64 {
        (1..).find(|b| b * b >= self.d as i64).unwrap_or(1)
    }

    /// Diagonals of a map, at rotations unit·t.
    fn diagonals(&self, map: Map) -> std::ops::Range<i64> {
        let d = self.d as i64;
        match map {
            Map::Sigma => 1 - d..d,
            Map::Tau => 0..d,
        }
    }

    fn unit(&self, map: Map) -> i64 {
        match map {
            Map::Sigma => self.lanes as i64,
            Map::Tau => (self.d * self.lanes) as i64,
        }
    }

    /// Whether diagonal t reaches the element in a slot.
    fn reaches(&self, map: Map, t: i64, slot: usize) -> bool {
        let place = slot / self.lanes;
        let (d, i, j) = (self.d as i64, (place / self.d) as i64, (place % self.d) as i64);
        match map {
            Map::Sigma if t >= 0 => i == t && j < d - t,
            Map::Sigma => i == d + t && j >= -t,
            Map::Tau => j == t,
        }
    }

    /// Whether an element k columns ahead is in the same row, so that φ^k takes it without wrapping around.
    fn stays(&self, k: usize, slot: usize) -> bool {
        slot / self.lanes % self.d < self.d - k
    }

    fn groups(&self) -> usize {
        self.shape.batch.div_ceil(self.lanes)
    }

    /// Masks of a map as laid out, by giant step: its terms, baby step and diagonal, the latter rotated back.
    fn printed_map<B: Backend>(&self, e: &Evaluator<B>, map: Map) -> Result<Giants<B>, MatrixError> {
        let (slots, babies) = (e.params().slots(), self.babies());
        let mut out = Giants::<B>::new();
        for t in self.diagonals(map) {
            let baby = t.rem_euclid(babies);
            let back = ((t - baby) * self.unit(map)).rem_euclid(slots as i64) as usize;
            let keep = |s: usize| self.reaches(map, t, (s + slots - back) % slots);
            let mask = e.mask(&Mask { level: self.top, value: 1.0, period: slots, keep })?;
            out.entry(t - baby).or_default().push((baby, mask));
        }
        Ok(out)
    }

    /// σ or τ by hoisting.
    fn hoisted_map<B: Backend>(&self, e: &Evaluator<B>, map: Map) -> Result<LinearMap<B::Row>, MatrixError> {
        let reached = |t: i64| match map {
            Map::Sigma => self.d - t.unsigned_abs() as usize,
            Map::Tau => self.d,
        };
        let ones: BTreeMap<i64, usize> = self.diagonals(map).map(|t| (t, reached(t) * self.lanes)).collect();
        let steps = (self.unit(map), self.babies() as usize);
        Ok(e.mask_map(self.top, &ones, steps, |t, s| self.reaches(map, t, s))?)
    }

    /// φ^k by hoisting. There are no giant steps: all shifts are baby steps of one decomposition.
    fn hoisted_shift<B: Backend>(&self, e: &Evaluator<B>, k: usize) -> Result<LinearMap<B::Row>, MatrixError> {
        let (d, lanes) = (self.d, self.lanes);
        let ones = BTreeMap::from([(k as i64, d * (d - k) * lanes), (k as i64 - d as i64, d * k * lanes)]);
        let keep = |t: i64, s: usize| self.stays(k, s) == (t > 0);
        Ok(e.mask_map(self.top - 1, &ones, (self.unit(Map::Sigma), usize::MAX), keep)?)
    }

    /// A product with a mask, rescaled.
    fn masked<B: Backend>(
        e: &Evaluator<B>,
        a: &CiphertextOf<B>,
        mask: &PlaintextOf<B>,
    ) -> Result<CiphertextOf<B>, MatrixError> {
        Ok(e.rescale(&e.mul_plain(a, mask)?)?)
    }

    /// Adds what holds messages in other slots.
    fn join<B: Backend>(
        e: &Evaluator<B>,
        sum: Option<CiphertextOf<B>>,
        c: CiphertextOf<B>,
    ) -> Result<Option<CiphertextOf<B>>, MatrixError> {
        let Some(mut sum) = sum else { return Ok(Some(c)) };
        let spread = sum.spread().disjoint(c.spread());
        e.add_assign(&mut sum, &c)?;
        Ok(Some(sum.with_spread(spread)))
    }

    /// σ or τ as laid out.
    fn apply<B: Backend>(
        &self,
        e: &Evaluator<B>,
        a: &CiphertextOf<B>,
        map: Map,
        giants: &Giants<B>,
    ) -> Result<CiphertextOf<B>, MatrixError> {
        let unit = self.unit(map);
        let mut rotated: BTreeMap<i64, CiphertextOf<B>> = BTreeMap::new();
        for (baby, _) in giants.values().flatten() {
            if !rotated.contains_key(baby) {
                rotated.insert(*baby, e.rotate(a, baby * unit)?);
            }
        }
        let mut out = None;
        for (giant, terms) in giants {
            let mut sum = None;
            for (baby, mask) in terms {
                sum = Self::join(e, sum, Self::masked(e, &rotated[baby], mask)?)?;
            }
            if let Some(sum) = sum {
                out = Self::join(e, out, e.rotate(&sum, giant * unit)?)?;
            }
        }
        // Each element comes from one diagonal.
        Ok(out.map_or_else(|| a.clone(), |c| c.with_bound(a.bound())))
    }

    fn printed_product<B: Backend>(
        &self,
        e: &Evaluator<B>,
        masks: &Printed<B>,
        a: &CiphertextOf<B>,
        b: &CiphertextOf<B>,
    ) -> Result<CiphertextOf<B>, MatrixError> {
        let (unit, row, d) = (self.unit(Map::Sigma), self.unit(Map::Tau), self.d as i64);
        let sigma = self.apply(e, a, Map::Sigma, &masks.maps[0])?;
        let tau = e.drop_to(&self.apply(e, b, Map::Tau, &masks.maps[1])?, self.top - 2)?;
        let low = e.drop_to(&sigma, self.top - 2)?;
        let mut sum = e.mul_rescale(&low, &tau)?;
        for (k, mask) in (1..d).zip(&masks.shifts) {
            let ahead = Self::masked(e, &sigma, mask)?;
            // What is masked cancels but for the mask's own error.
            let rest = low.spread().without(ahead.spread());
            let wrapped = e.sub(&low, &ahead)?.with_spread(rest);
            let (ahead, wrapped) = (e.rotate(&ahead, k * unit)?, e.rotate(&wrapped, (k - d) * unit)?);
            let disjoint = ahead.spread().disjoint(wrapped.spread());
            let shifted = e.add(&ahead, &wrapped)?.with_spread(disjoint).with_bound(low.bound());
            let term = e.mul_rescale(&shifted, &e.rotate(&tau, k * row)?)?;
            // Other elements' errors.
            let spread = sum.spread().sum(term.spread()).together();
            e.add_assign(&mut sum, &term)?;
            sum = sum.with_spread(spread);
        }
        Ok(sum)
    }

    fn hoisted_product<B: Backend>(
        &self,
        e: &Evaluator<B>,
        maps: &Hoisted<B>,
        a: &CiphertextOf<B>,
        b: &CiphertextOf<B>,
    ) -> Result<CiphertextOf<B>, MatrixError> {
        let bound = (a.bound(), b.bound());
        let sigma = e.linear_map(a, &maps.maps[0])?.with_bound(bound.0);
        let tau = e.drop_to(&e.linear_map(b, &maps.maps[1])?.with_bound(bound.1), self.top - 2)?;
        let mut left = vec![e.drop_to(&sigma, self.top - 2)?];
        left.extend(e.linear_maps(&sigma, &maps.shifts.iter().collect::<Vec<_>>())?);
        let steps: Vec<i64> = (1..self.d as i64).map(|k| k * self.unit(Map::Tau)).collect();
        let mut right = e.rotate_many(&tau, &steps)?;
        right.insert(0, tau);
        let left: Vec<_> = left.into_iter().map(|c| c.with_bound(bound.0)).collect();
        let (left, right): (Vec<&_>, Vec<&_>) = left.iter().zip(&right).unzip();
        Ok(e.relinearize_rescale(&e.dot(&left, &right)?)?)
    }
}

impl ProductPlan for JiangPlan {
    fn name(&self) -> &'static str {
        if self.hoisted { "jiang-bsgs" } else { "jiang" }
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn literal(&self) -> &ParamsLiteral {
        &self.literal
    }

    fn ciphertexts(&self, _: Operand) -> usize {
        self.groups()
    }

    fn figures(&self, max_abs: [f64; 2]) -> Result<Figures, MatrixError> {
        portable::figures(self, max_abs)
    }
}

/// By giant step its terms: a baby step, and a mask.
type Giants<B> = BTreeMap<i64, Vec<(i64, PlaintextOf<B>)>>;

/// What multiplication needs.
pub enum Prepared<B: Backend> {
    /// As `000`'s \[15\] lays it out: baby and giant steps, every product with a mask and every product of ciphertexts
    /// rescaled on its own.
    Printed(Printed<B>),
    /// With hoisted linear maps, one division by P and a prime for each of their results (double hoisting), and one
    /// relinearisation for the sum of all products.
    Hoisted(Box<Hoisted<B>>),
}

/// Masks of the product as laid out.
pub struct Printed<B: Backend> {
    /// σ and τ.
    maps: [Giants<B>; 2],
    /// v_k, before the shift: columns from k on, k = 1 … d − 1.
    shifts: Vec<PlaintextOf<B>>,
}

/// Linear maps of the hoisted product.
pub struct Hoisted<B: Backend> {
    /// σ and τ.
    maps: [LinearMap<B::Row>; 2],
    /// φ^k, k = 1 … d − 1.
    shifts: Vec<LinearMap<B::Row>>,
}

impl Portable for JiangPlan {
    type Tables<B: Backend> = Prepared<B>;

    fn tables<B: Backend>(&self, e: &Evaluator<B>) -> Result<Prepared<B>, MatrixError> {
        if self.hoisted {
            let maps = [self.hoisted_map(e, Map::Sigma)?, self.hoisted_map(e, Map::Tau)?];
            let shifts = (1..self.d).map(|k| self.hoisted_shift(e, k)).collect::<Result<_, _>>()?;
            return Ok(Prepared::Hoisted(Box::new(Hoisted { maps, shifts })));
        }
        let shift = |k: usize| -> Result<PlaintextOf<B>, MatrixError> {
            let keep = |s: usize| s / self.lanes % self.d >= k;
            Ok(e.mask(&Mask { level: self.top - 1, value: 1.0, period: self.d * self.lanes, keep })?)
        };
        let maps = [self.printed_map(e, Map::Sigma)?, self.printed_map(e, Map::Tau)?];
        Ok(Prepared::Printed(Printed { maps, shifts: (1..self.d).map(shift).collect::<Result<_, _>>()? }))
    }

    fn multiply<B: Backend>(
        &self,
        e: &Evaluator<B>,
        tables: &Prepared<B>,
        left: Batch<'_, B::Ciphertext>,
        right: Batch<'_, B::Ciphertext>,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        check_count("left ciphertexts", left.len(), self.groups())?;
        check_count("right ciphertexts", right.len(), self.groups())?;
        let one = |pair: &[&CiphertextOf<B>]| match tables {
            Prepared::Printed(masks) => self.printed_product(e, masks, pair[0], pair[1]),
            Prepared::Hoisted(maps) => self.hoisted_product(e, maps, pair[0], pair[1]),
        };
        e.each(Order::InTurn, left.len(), |i| vec![left.at(i), right.at(i)], one)
    }
}

/// Specifications of the hoisted version that satisfy the requirements.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    if check_shape("jiang-bsgs", req.shape).is_err() {
        return Vec::new();
    }
    let d = req.shape.m.max(req.shape.k).max(req.shape.n).next_power_of_two();
    let result = req.max_abs[0] * req.max_abs[1] * d as f64;
    let search =
        Search { req, least_log_n: 1 + 2 * d.trailing_zeros(), result, chain: &[true, true, false], switching: true };
    search_literals(&search, |literal| JiangPlan::new(req.shape, literal, true).ok()?.promised(req.max_abs))
        .into_iter()
        .map(|params| ProductSpec { shape: req.shape, method: Method::JiangBsgs, params })
        .collect()
}

/// The product under built parameters.
pub struct Jiang {
    params: Params,
    plan: JiangPlan,
    tables: Tables<Prepared<sudare_rlwe::Cpu>>,
}

impl Jiang {
    /// The product under given parameters, as laid out or hoisted.
    ///
    /// # Errors
    /// As [`JiangPlan::new`].
    pub fn new(params: &Params, shape: Shape, hoisted: bool) -> Result<Self, MatrixError> {
        let plan = JiangPlan::new(shape, params.literal(), hoisted)?;
        Ok(Self { params: params.clone(), plan, tables: Tables::new() })
    }

    fn tables(&self) -> Result<&Prepared<sudare_rlwe::Cpu>, MatrixError> {
        self.tables.get(|| self.plan.tables(&Evaluator::new(&self.params, EvalKeys::new(&self.params, KeyId::NONE))?))
    }
}

impl Product for Jiang {
    fn plan(&self) -> &dyn ProductPlan {
        &self.plan
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn prepare(&self) -> Result<(), MatrixError> {
        self.tables().map(|_| ())
    }

    fn encode(&self, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.plan.shape, operand, matrices, max_abs)?;
        let encoder = Encoder::new(&self.params);
        let (d, g) = (self.plan.d, self.plan.lanes);
        matrices
            .chunks(g)
            .map(|group| {
                let at = |s: usize| group.get(s % g).map_or(0.0, |m| m.get(s / g / d, s / g % d));
                Ok(encoder.encode(&(0..self.params.slots()).map(at).collect::<Vec<_>>(), max_abs)?)
            })
            .collect()
    }

    fn multiply(
        &self,
        evaluator: &Evaluator,
        left: &[Ciphertext],
        right: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        self.plan.multiply(evaluator, self.tables()?, left.into(), right.into())
    }

    fn decode(&self, output: &[Decrypted]) -> Result<Vec<Matrix>, MatrixError> {
        check_count("result plaintexts", output.len(), self.plan.groups())?;
        let slots = slots_of(&self.params, output)?;
        let (shape, d, g) = (self.plan.shape, self.plan.d, self.plan.lanes);
        (0..shape.batch)
            .map(|t| Ok(Matrix::from_fn(shape.m, shape.n, |i, j| slots[t / g][(i * d + j) * g + t % g])?))
            .collect()
    }
}
