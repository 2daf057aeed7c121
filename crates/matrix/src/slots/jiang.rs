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

use super::common::{
    KeyList, Search, check_count, check_depth, check_matrices, check_shape, hoisted_sum_work, mask_at, mask_values,
    plain_mask, search_literals, slots_of,
};
use super::error_model::ErrorModel;
use super::follow::{Follow, State};
use crate::error::MatrixError;
use crate::product::{KeyDemand, Method, Operand, Outline, Peak, Product, ProductSpec, Requirements, Shape};
use crate::tables::Tables;
use crate::work::Work;
use crate::{rounding, sizing};
use std::collections::{BTreeMap, BTreeSet};
use sudare_expr::Matrix;
use sudare_he::circuits::linear_map::LinearMap;
use sudare_he::ckks::{Ciphertext, Encoder, Evaluator, Params, ParamsLiteral, Plaintext};

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
pub struct Plan {
    shape: Shape,
    literal: ParamsLiteral,
    d: usize,
    lanes: usize,
    top: usize,
    hoisted: bool,
}

impl Plan {
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
            let reason = format!("{d}×{d} elements take {} slots and the ring has {slots}", d * d);
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

    /// Whether diagonal t reaches element (i, j).
    fn reaches(&self, map: Map, t: i64, i: usize, j: usize) -> bool {
        let (d, i, j) = (self.d as i64, i as i64, j as i64);
        match map {
            Map::Sigma if t >= 0 => i == t && j < d - t,
            Map::Sigma => i == d + t && j >= -t,
            Map::Tau => j == t,
        }
    }

    fn diagonal(&self, slots: usize, map: Map, t: i64) -> Vec<f64> {
        mask_values(slots, 1.0, |s| {
            let l = s / self.lanes;
            self.reaches(map, t, l / self.d, l % self.d)
        })
    }

    /// Baby and giant steps of a map that are used.
    fn steps(&self, map: Map) -> (BTreeSet<i64>, BTreeSet<i64>) {
        let b = self.babies();
        self.diagonals(map).map(|t| (t.rem_euclid(b), t - t.rem_euclid(b))).unzip()
    }

    fn groups(&self) -> usize {
        self.shape.batch.div_ceil(self.lanes)
    }

    /// Number of a map's giant steps.
    fn giants(&self, map: Map) -> f64 {
        let (all, b) = (self.diagonals(map), self.babies());
        ((all.end - 1).div_euclid(b) - all.start.div_euclid(b) + 1) as f64
    }

    /// σ or τ on paper.
    fn follow_map(&self, follow: &mut Follow<'_>, map: Map, a: State) -> State {
        let (diagonals, giants) = (self.diagonals(map).count(), self.giants(map) as usize);
        if self.hoisted {
            return follow.linear_map(a, diagonals, giants);
        }
        let turned = follow.rotate(a);
        let masked = follow.masked(turned, 1.0);
        let sum = follow.sum(masked, diagonals);
        let all = follow.rotate(sum);
        // Each giant step is a rotation of its own.
        let noise = all.noise + (all.noise - sum.noise) * (giants as f64 - 1.0);
        State { noise, bound: a.bound, ..all }
    }

    fn encode(
        &self,
        params: &Params,
        operand: Operand,
        matrices: &[Matrix],
        max_abs: f64,
    ) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.shape, operand, matrices, max_abs)?;
        let encoder = Encoder::new(params);
        let (d, g) = (self.d, self.lanes);
        matrices
            .chunks(g)
            .map(|group| {
                let at = |s: usize| group.get(s % g).map_or(0.0, |m| m.get(s / g / d, s / g % d));
                Ok(encoder.encode(&(0..params.slots()).map(at).collect::<Vec<_>>(), max_abs)?)
            })
            .collect()
    }

    fn decode(&self, params: &Params, output: &[Plaintext]) -> Result<Vec<Matrix>, MatrixError> {
        check_count("result plaintexts", output.len(), self.groups())?;
        let slots = slots_of(params, output)?;
        let (d, g) = (self.d, self.lanes);
        (0..self.shape.batch)
            .map(|t| Ok(Matrix::from_fn(self.shape.m, self.shape.n, |i, j| slots[t / g][(i * d + j) * g + t % g])?))
            .collect()
    }
}

impl Outline for Plan {
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

    fn level(&self, operand: Operand) -> usize {
        self.top - if operand == Operand::Output { DEPTH } else { 0 }
    }

    fn keys(&self) -> KeyDemand {
        let mut keys = KeyList::new(&self.literal);
        for map in [Map::Sigma, Map::Tau] {
            let (babies, giants) = self.steps(map);
            for t in babies {
                keys.rotation(t * self.unit(map), self.top);
            }
            // Printed, a giant step turns what is rescaled; hoisted, it is over Q·P still.
            let level = if self.hoisted { self.top } else { self.top - 1 };
            giants.into_iter().for_each(|t| keys.rotation(t * self.unit(map), level));
        }
        let shift = if self.hoisted { self.top - 1 } else { self.top - 2 };
        let d = self.d as i64;
        for k in 1..d {
            keys.rotation(k * self.unit(Map::Sigma), shift);
            keys.rotation((k - d) * self.unit(Map::Sigma), shift);
            keys.rotation(k * self.unit(Map::Tau), self.top - 2);
        }
        keys.demand(Some(self.top - 2))
    }

    fn work(&self) -> Work {
        let (literal, d, top) = (&self.literal, self.d as f64, self.top);
        let mut work = Work::default();
        let division = |level| Work::mod_down(literal, level) * 2.0;
        for map in [Map::Sigma, Map::Tau] {
            let (babies, giants) = (self.steps(map).0.len() as f64 - 1.0, self.giants(map) - 1.0);
            let count = self.diagonals(map).count() as f64;
            work += match self.hoisted {
                true => {
                    hoisted_sum_work(literal, top, babies)
                        + Work::mul_plain(literal, top) * count * 1.5
                        + (Work::mod_down(literal, top) + Work::rotation(literal, top)) * giants
                        + division(top)
                }
                false => {
                    Work::rotation(literal, top) * babies
                        + (Work::mul_plain(literal, top) + Work::rescale(literal, top)) * count
                        + Work::passes_at(literal, top - 1, 2.0) * count
                        + Work::rotation(literal, top - 1) * giants
                }
            };
        }
        let shifts = d - 1.0;
        let product = top - 2;
        work += match self.hoisted {
            true => {
                hoisted_sum_work(literal, top - 1, shifts * 2.0)
                    + (Work::mul_plain(literal, top - 1) * 3.0 + division(top - 1)) * shifts
                    + Work::decompose(literal, product)
                    + (Work::inner_product(literal, product) + division(product)) * shifts
                    + Work::tensor(literal, product) * d
                    + Work::relinearize_rescale(literal, product)
            }
            false => {
                (Work::mul_plain(literal, top - 1) + Work::rescale(literal, top - 1)) * shifts
                    + (Work::rotation(literal, product) * 3.0 + Work::passes_at(literal, product, 6.0)) * shifts
                    + (Work::tensor(literal, product) + Work::relinearize_rescale(literal, product)) * d
            }
        };
        work * self.groups() as f64
    }

    fn table_bytes(&self) -> u64 {
        let maps = [Map::Sigma, Map::Tau].map(|map| self.diagonals(map).count()).iter().sum::<usize>();
        // A shift as laid out has one mask.
        let shifts = (self.d - 1) * if self.hoisted { 2 } else { 1 };
        maps as u64 * sizing::extended_bytes(&self.literal, self.top)
            + shifts as u64 * sizing::extended_bytes(&self.literal, self.top - 1)
    }

    fn peaks(&self, max_abs: [f64; 2]) -> Vec<Peak> {
        let mut follow = Follow::new(&self.literal);
        let [left, right] = max_abs.map(|max| follow.fresh(max));
        let (sigma, tau) =
            (self.follow_map(&mut follow, Map::Sigma, left), self.follow_map(&mut follow, Map::Tau, right));
        let (shifted, turned) = match self.hoisted {
            true => (follow.linear_map(sigma, 2, 0), follow.rotate(tau)),
            false => {
                let ahead = follow.masked(sigma, 1.0);
                let wrapped = follow.add(sigma, ahead);
                let (ahead, wrapped) = (follow.rotate(ahead), follow.rotate(wrapped));
                (follow.add(ahead, wrapped).with_bound(sigma.bound), follow.rotate(tau))
            }
        };
        let lower = |s: State| State { level: self.top - 2, ..s };
        if self.hoisted {
            follow.dot(lower(shifted), lower(turned), self.d);
        } else {
            let product = follow.dot(lower(shifted), lower(turned), 1);
            let product = follow.relinearize_rescale(product);
            follow.sum(product, self.d);
        }
        follow.peaks
    }

    fn error(&self, max_abs: [f64; 2]) -> f64 {
        let model = ErrorModel::new(&self.literal);
        let (scale, top) = (model.scale(), self.top);
        let slots = 1usize << (self.literal.log_n - 1);
        let turn = |level| model.switching(level, scale) + model.division(scale);
        let mapped = |map: Map, max: f64| {
            let count = self.diagonals(map).count() as f64;
            // One diagonal holds the element; the masks of all leave their rounding errors.
            let leak = count * model.mask(slots, model.prime(top)) * max * max;
            let own = self.giants(map) + if self.hoisted { 1.0 } else { count };
            model.fresh() + model.encoding(max) + turn(top) + leak + own * turn(top - 1)
        };
        let left = mapped(Map::Sigma, max_abs[0]);
        let leak = 2.0 * model.mask(slots, model.prime(top - 1)) * max_abs[0].powi(2);
        let left = left + leak + 3.0 * turn(top - 1);
        let right = mapped(Map::Tau, max_abs[1]) + turn(top - 2);
        let after = scale * scale / model.prime(top - 2);
        let terms = self.d as f64;
        let product = max_abs[0].powi(2) * right + max_abs[1].powi(2) * left + left * right;
        let division = model.division(after) * if self.hoisted { 1.0 } else { terms };
        let result = max_abs[0] * max_abs[1] * terms;
        let variance = product * terms + division + model.switching(top - 2, scale * scale) * terms;
        ErrorModel::largest_sum(variance + model.reading(result), self.d) + rounding::drift(DEPTH) * result
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
    search_literals(&search, |literal| {
        Plan::new(req.shape, literal, true).is_ok_and(|plan| plan.serves(req.max_abs, req.error))
    })
    .into_iter()
    .map(|params| ProductSpec { shape: req.shape, method: Method::JiangBsgs, params })
    .collect()
}

/// The product as `000`'s \[15\] lays it out: baby and giant steps, every product with a mask and
/// every product of ciphertexts rescaled on its own.
pub struct Jiang {
    params: Params,
    plan: Plan,
    tables: Tables<Masks>,
}

/// Masks of the product as laid out.
struct Masks {
    /// By giant step: its terms, baby step and diagonal, the latter turned back.
    maps: [BTreeMap<i64, Vec<(i64, Plaintext)>>; 2],
    /// v_k, before the shift: columns from k on, k = 1 … d − 1.
    shifts: Vec<Plaintext>,
}

impl Jiang {
    /// The product under given parameters.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn new(params: &Params, shape: Shape) -> Result<Self, MatrixError> {
        Ok(Self { params: params.clone(), plan: Plan::new(shape, params.literal(), false)?, tables: Tables::new() })
    }

    fn tables(&self) -> Result<&Masks, MatrixError> {
        self.tables.get(|| self.make_tables())
    }

    fn make_tables(&self) -> Result<Masks, MatrixError> {
        let (params, plan, slots) = (&self.params, &self.plan, self.params.slots());
        let b = plan.babies();
        let prepare = |map: Map| -> Result<BTreeMap<i64, Vec<(i64, Plaintext)>>, MatrixError> {
            let mut out: BTreeMap<i64, Vec<(i64, Plaintext)>> = BTreeMap::new();
            for t in plan.diagonals(map) {
                let (baby, giant) = (t.rem_euclid(b), t - t.rem_euclid(b));
                let mut diagonal = plan.diagonal(slots, map, t);
                diagonal.rotate_right((giant * plan.unit(map)).rem_euclid(slots as i64) as usize);
                out.entry(giant).or_default().push((baby, plain_mask(params, plan.top, &diagonal)?));
            }
            Ok(out)
        };
        let shifts = (1..plan.d)
            .map(|k| {
                let values = mask_values(slots, 1.0, |s| s / plan.lanes % plan.d >= k);
                plain_mask(params, plan.top - 1, &values)
            })
            .collect::<Result<_, _>>()?;
        Ok(Masks { maps: [prepare(Map::Sigma)?, prepare(Map::Tau)?], shifts })
    }

    /// cMult: product with a mask, rescaled.
    fn masked(e: &Evaluator, a: &Ciphertext, mask: &Plaintext) -> Result<Ciphertext, MatrixError> {
        Ok(e.rescale(&e.mul_plain(a, mask)?)?)
    }

    fn apply(&self, e: &Evaluator, a: &Ciphertext, map: Map) -> Result<Ciphertext, MatrixError> {
        let unit = self.plan.unit(map);
        let (babies, _) = self.plan.steps(map);
        let turned: BTreeMap<i64, Ciphertext> =
            babies.iter().map(|t| Ok((*t, e.rotate(a, t * unit)?))).collect::<Result<_, MatrixError>>()?;
        let add = |sum: Option<Ciphertext>, c: Ciphertext| -> Result<Option<Ciphertext>, MatrixError> {
            Ok(Some(match sum {
                None => c,
                Some(mut sum) => {
                    e.add_assign(&mut sum, &c)?;
                    sum
                }
            }))
        };
        let mut out = None;
        for (giant, terms) in &self.tables()?.maps[usize::from(map == Map::Tau)] {
            let mut sum = None;
            for (baby, mask) in terms {
                sum = add(sum, Self::masked(e, &turned[baby], mask)?)?;
            }
            if let Some(sum) = sum {
                out = add(out, e.rotate(&sum, giant * unit)?)?;
            }
        }
        // Each element comes from one diagonal.
        Ok(out.map_or_else(|| a.clone(), |c| c.with_bound(a.bound())))
    }

    fn product(&self, e: &Evaluator, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, MatrixError> {
        let plan = &self.plan;
        let (unit, row, d) = (plan.unit(Map::Sigma), plan.unit(Map::Tau), plan.d as i64);
        let sigma = self.apply(e, a, Map::Sigma)?;
        let tau = e.drop_to(&self.apply(e, b, Map::Tau)?, plan.top - 2)?;
        let low = e.drop_to(&sigma, plan.top - 2)?;
        let mut sum = e.mul_rescale(&low, &tau)?;
        for (k, mask) in (1..d).zip(&self.tables()?.shifts) {
            let ahead = Self::masked(e, &sigma, mask)?;
            let wrapped = e.sub(&low, &ahead)?;
            let shifted = e.add(&e.rotate(&ahead, k * unit)?, &e.rotate(&wrapped, (k - d) * unit)?)?;
            let turned = e.rotate(&tau, k * row)?;
            e.add_assign(&mut sum, &e.mul_rescale(&shifted.with_bound(low.bound()), &turned)?)?;
        }
        Ok(sum)
    }
}

/// The same product with hoisted linear maps, one division by P and a prime for each of their
/// results (double hoisting), and one relinearisation for the sum of all products.
pub struct JiangBsgs {
    params: Params,
    plan: Plan,
    tables: Tables<Maps>,
}

/// Linear maps of the hoisted product.
struct Maps {
    /// σ and τ.
    maps: [LinearMap; 2],
    /// φ^k, k = 1 … d − 1.
    shifts: Vec<LinearMap>,
}

impl JiangBsgs {
    /// The product under given parameters.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn new(params: &Params, shape: Shape) -> Result<Self, MatrixError> {
        Ok(Self { params: params.clone(), plan: Plan::new(shape, params.literal(), true)?, tables: Tables::new() })
    }

    fn tables(&self) -> Result<&Maps, MatrixError> {
        self.tables.get(|| self.make_tables())
    }

    fn make_tables(&self) -> Result<Maps, MatrixError> {
        let (params, plan, slots) = (&self.params, &self.plan, self.params.slots());
        let encoder = Encoder::new(params);
        let prepare = |map: Map| -> Result<LinearMap, MatrixError> {
            let diagonals = plan.diagonals(map).map(|t| (t, plan.diagonal(slots, map, t))).collect();
            let at = mask_at(params, plan.top);
            Ok(LinearMap::new(&encoder, &diagonals, plan.unit(map), plan.babies() as usize, at)?)
        };
        let shifts = (1..plan.d)
            .map(|k| {
                let fits = |s: usize| s / plan.lanes % plan.d < plan.d - k;
                let diagonals = BTreeMap::from([
                    (k as i64, mask_values(slots, 1.0, fits)),
                    (k as i64 - plan.d as i64, mask_values(slots, 1.0, |s| !fits(s))),
                ]);
                // No giant steps: all shifts are baby steps of one decomposition.
                Ok(LinearMap::hoisted(&encoder, &diagonals, plan.unit(Map::Sigma), mask_at(params, plan.top - 1))?)
            })
            .collect::<Result<_, MatrixError>>()?;
        Ok(Maps { maps: [prepare(Map::Sigma)?, prepare(Map::Tau)?], shifts })
    }

    fn product(&self, e: &Evaluator, a: &Ciphertext, b: &Ciphertext) -> Result<Ciphertext, MatrixError> {
        let (plan, tables) = (&self.plan, self.tables()?);
        let bound = (a.bound(), b.bound());
        let sigma = e.linear_map(a, &tables.maps[0])?.with_bound(bound.0);
        let tau = e.drop_to(&e.linear_map(b, &tables.maps[1])?.with_bound(bound.1), plan.top - 2)?;
        let low = e.drop_to(&sigma, plan.top - 2)?;
        let maps: Vec<&LinearMap> = tables.shifts.iter().collect();
        let mut left = e.linear_maps(&sigma, &maps)?;
        left.insert(0, low);
        let steps: Vec<i64> = (1..plan.d as i64).map(|k| k * plan.unit(Map::Tau)).collect();
        let mut right = e.rotate_many(&tau, &steps)?;
        right.insert(0, tau);
        let left: Vec<Ciphertext> = left.into_iter().map(|c| c.with_bound(bound.0)).collect();
        let (left, right): (Vec<&_>, Vec<&_>) = left.iter().zip(&right).unzip();
        Ok(e.relinearize_rescale(&e.dot(&left, &right)?)?)
    }
}

macro_rules! product_of_jiang {
    ($type:ty) => {
        impl Product for $type {
            fn outline(&self) -> &dyn Outline {
                &self.plan
            }

            fn params(&self) -> &Params {
                &self.params
            }

            fn prepare(&self) -> Result<(), MatrixError> {
                self.tables().map(|_| ())
            }

            fn encode(
                &self,
                operand: Operand,
                matrices: &[Matrix],
                max_abs: f64,
            ) -> Result<Vec<Plaintext>, MatrixError> {
                self.plan.encode(&self.params, operand, matrices, max_abs)
            }

            fn multiply(
                &self,
                evaluator: &Evaluator,
                left: &[Ciphertext],
                right: &[Ciphertext],
            ) -> Result<Vec<Ciphertext>, MatrixError> {
                check_count("left ciphertexts", left.len(), self.plan.groups())?;
                check_count("right ciphertexts", right.len(), self.plan.groups())?;
                left.iter().zip(right).map(|(a, b)| self.product(evaluator, a, b)).collect()
            }

            fn decode(&self, output: &[Plaintext]) -> Result<Vec<Matrix>, MatrixError> {
                self.plan.decode(&self.params, output)
            }
        }
    };
}

product_of_jiang!(Jiang);
product_of_jiang!(JiangBsgs);
