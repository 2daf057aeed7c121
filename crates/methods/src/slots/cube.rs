//! The three-dimensional arrangement: where an element stands, and the steps from row-major
//! matrices to it and back (`000`, Algorithms 2–4).
//!
//! Slot (s, i, j, t) is ((s·r + i)·c + j)·g + t: square s, row i, column j, lane t. A row-major
//! matrix stands in square 0, zeros elsewhere. Ā holds A\[i,s\] at (s, i, j) for every j, B̄ holds
//! B\[s,j\] at (s, i, j) for every i, and C = Σ_s Ā ⊙ B̄. Each lane is a product of its own.

use super::common::{fold, fold_images, stages};
use crate::error::MatrixError;
use serde::{Deserialize, Serialize};
use sudare_expr::Shape;
use sudare_he::ckks::{
    CiphertextOf, Evaluator, ExtendedPlaintext, Images, Mask as Encoded, Params, ParamsLiteral, Plaintext,
};
use sudare_ring::{Eval, Poly};
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::{Backend, KeyId};
use zeroize::Zeroize;

/// The improvements on the 3-D method, each a switch of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Improvements {
    /// Two rotations in a row are one: 7·log d become 5·log d. Without it, folds are not hoisted
    /// either.
    pub merged_rotations: bool,
    /// d³ slots are enough, and the last mask goes away: depth 2. Without it 2·d³ slots are asked
    /// for and the result is masked, as printed.
    pub exact_ring: bool,
    /// Spare slots carry more products of the batch.
    pub spare_slots: bool,
    /// Two terms of the contraction share a slot, in its real and imaginary part.
    pub real_pairing: bool,
    /// Rotations that one decomposition serves, as a power of two: a fold of log d rotations
    /// becomes log d / unroll hoisted sums. 0 for a rotation and an addition each.
    pub unroll: u32,
    /// Rescale right after a mask, so that the spread runs on fewer primes.
    pub rescale_first: bool,
    /// The last hoisted sum before a mask, the mask and its rescale share one division.
    pub fused_masks: bool,
    /// The result is wanted row-major with zeros elsewhere and no imaginary parts, as the next
    /// product needs it: one mask more. Without it, it is fit to be decrypted.
    pub clean_output: bool,
}

impl Improvements {
    /// Nothing improved: what `000` prints, with the depth of its last mask.
    pub const NONE: Self = Self {
        merged_rotations: false,
        exact_ring: false,
        spare_slots: false,
        real_pairing: false,
        unroll: 0,
        rescale_first: true,
        fused_masks: false,
        clean_output: false,
    };

    /// Everything that saves time on one product.
    pub const ALL: Self = Self {
        merged_rotations: true,
        exact_ring: true,
        spare_slots: true,
        real_pairing: false,
        unroll: 2,
        rescale_first: true,
        fused_masks: true,
        clean_output: false,
    };

    fn hoisted(&self) -> bool {
        self.merged_rotations && self.unroll > 0
    }

    fn fused(&self) -> bool {
        self.hoisted() && self.fused_masks && self.rescale_first
    }

    fn masks_output(&self) -> bool {
        !self.exact_ring || self.clean_output
    }

    /// Rescales from an operand to the result.
    pub fn depth(&self) -> usize {
        2 + usize::from(self.masks_output())
    }
}

impl Default for Improvements {
    fn default() -> Self {
        Self::ALL
    }
}

/// Sizes of a cube: all powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubeLayout {
    /// Squares: padded k, half of it with real pairs.
    pub squares: usize,
    /// Rows of a square.
    pub rows: usize,
    /// Columns of a square, the stride of a row.
    pub cols: usize,
    /// Padded m: rows that B is spread over.
    pub m: usize,
    /// Padded n: columns that A is spread over.
    pub n: usize,
    /// Lanes, the stride of a column.
    pub lanes: usize,
    /// Elements of the contraction in a slot: 2 with real pairs.
    pub pair: usize,
}

impl CubeLayout {
    /// The layout of one product in a ring with `slots` slots.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if it does not fit.
    pub fn new(shape: Shape, slots: usize, options: &Improvements) -> Result<Self, MatrixError> {
        super::common::check_shape("improved3d", shape)?;
        let [m, k, n] = [shape.m, shape.k, shape.n].map(usize::next_power_of_two);
        let pair = if options.real_pairing && k > 1 { 2 } else { 1 };
        let (rows, cols, squares) = (m.max(k), k.max(n), k / pair);
        let log_need = Self::log_slots(shape, options);
        let Some(need) = 1usize.checked_shl(log_need).filter(|need| *need <= slots) else {
            let reason = format!(
                "a product of {m}×{k} and {k}×{n} takes 2^{log_need} slots, and the ring has {slots}; take a larger one"
            );
            return Err(MatrixError::Method { method: "improved3d", reason });
        };
        let lanes = if options.spare_slots { slots / need } else { 1 };
        Ok(Self { squares, rows, cols, m, n, lanes, pair })
    }

    /// log2 of the slots that a product of this shape takes at least.
    pub fn log_slots(shape: Shape, options: &Improvements) -> u32 {
        let [m, k, n] = [shape.m, shape.k, shape.n].map(|side| side.next_power_of_two().trailing_zeros());
        let pair = u32::from(options.real_pairing && k > 0);
        k - pair + m.max(k) + k.max(n) + u32::from(!options.exact_ring)
    }

    /// The slot of an element.
    pub fn slot(&self, square: usize, row: usize, col: usize, lane: usize) -> usize {
        ((square * self.rows + row) * self.cols + col) * self.lanes + lane
    }

    fn square_stride(&self) -> i64 {
        (self.rows * self.cols * self.lanes) as i64
    }

    fn row_stride(&self) -> i64 {
        (self.cols * self.lanes) as i64
    }

    /// Rotation that brings column (left) or row (right) `pair·s` of square 0 to the front of
    /// square s, divided by s.
    fn gather_parts(&self, side: Side) -> (i64, i64) {
        let along = match side {
            Side::Left => (self.pair * self.lanes) as i64,
            Side::Right => self.row_stride() * self.pair as i64,
        };
        (along, -self.square_stride())
    }

    fn spread_stages(&self, side: Side, unroll: u32) -> Vec<Vec<i64>> {
        match side {
            Side::Left => stages(self.n, -(self.lanes as i64), unroll),
            Side::Right => stages(self.m, -self.row_stride(), unroll),
        }
    }

    fn mask_period(&self, side: Side) -> usize {
        match side {
            Side::Left => self.cols * self.lanes,
            Side::Right => self.rows * self.cols * self.lanes,
        }
    }
}

/// Which operand is brought into the cube.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A.
    Left,
    /// B.
    Right,
}

/// The steps of the cube for one layout and one set of improvements; no tables.
#[derive(Clone, Copy, Debug)]
pub struct CubePlan {
    /// The layout.
    pub layout: CubeLayout,
    /// The improvements.
    pub options: Improvements,
    /// The operands' level.
    pub top: usize,
}

impl CubePlan {
    /// Plans one product under a parameter literal.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if slots or levels do not suffice.
    pub fn new(shape: Shape, literal: &ParamsLiteral, options: Improvements) -> Result<Self, MatrixError> {
        let slots = 1usize << literal.log_n.clamp(1, 30).saturating_sub(1);
        let layout = CubeLayout::new(shape, slots, &options)?;
        super::common::check_depth("improved3d", literal, options.depth())?;
        Ok(Self { layout, options, top: literal.q_bits.len() - 1 })
    }

    fn gather_stages(&self, side: Side) -> Vec<Vec<i64>> {
        let (along, across) = self.layout.gather_parts(side);
        stages(self.layout.squares, along + across, self.options.unroll)
    }

    fn fold_stages(&self) -> Vec<Vec<i64>> {
        stages(self.layout.squares, self.layout.square_stride(), self.options.unroll)
    }
}

/// A mask in the form that its use needs.
enum Mask<P: Zeroize> {
    Plain(Plaintext<P>),
    Extended(ExtendedPlaintext<P>),
}

/// A cube with its masks: expands operands and contracts them.
pub struct Cube<P: Zeroize = Poly<Eval>> {
    params: Params,
    plan: CubePlan,
    left: Mask<P>,
    right: Mask<P>,
    output: Option<Plaintext<P>>,
}

impl Cube {
    /// Prepares the masks of a plan.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn new(params: &Params, plan: CubePlan) -> Result<Self, MatrixError> {
        Self::prepare(&Evaluator::new(params, EvalKeys::new(params, KeyId::NONE))?, plan)
    }
}

impl<P: Clone + Send + Sync + Zeroize> Cube<P> {
    /// Prepares the masks of a plan for a backend.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn prepare<B: Backend<Plaintext = P>>(e: &Evaluator<B>, plan: CubePlan) -> Result<Self, MatrixError> {
        let (layout, o) = (plan.layout, plan.options);
        let make = |side: Side| -> Result<Mask<P>, MatrixError> {
            let inner = match side {
                Side::Left => layout.cols,
                Side::Right => layout.rows * layout.cols,
            };
            let keep = |i: usize| match side {
                Side::Left => (i / layout.lanes).is_multiple_of(inner),
                Side::Right => (i / layout.lanes) % inner < layout.cols,
            };
            let mask = Encoded { level: plan.top, value: 1.0, period: layout.mask_period(side), keep };
            Ok(match o.fused() && layout.squares > 1 {
                true => Mask::Extended(e.extended_mask(&mask)?),
                false => Mask::Plain(e.mask(&mask)?),
            })
        };
        let output = match o.masks_output() {
            true => {
                // With real pairs the conjugate is added: each gives half of the real part.
                let value = 1.0 / layout.pair as f64;
                let square = layout.square_stride() as usize;
                Some(e.mask(&Encoded { level: plan.top - 2, value, period: usize::MAX, keep: |i| i < square })?)
            }
            false => None,
        };
        Ok(Self { params: e.params().clone(), plan, left: make(Side::Left)?, right: make(Side::Right)?, output })
    }

    /// The plan.
    pub fn plan(&self) -> &CubePlan {
        &self.plan
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Ā or B̄ from a row-major ciphertext (`000`, Algorithms 2 and 3).
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn expand<B: Backend<Plaintext = P>>(
        &self,
        evaluator: &Evaluator<B>,
        side: Side,
        a: &CiphertextOf<B>,
    ) -> Result<CiphertextOf<B>, MatrixError> {
        let (plan, layout, o) = (&self.plan, &self.plan.layout, &self.plan.options);
        let lowered;
        let a = if a.level() > plan.top {
            lowered = evaluator.drop_to(a, plan.top)?;
            &lowered
        } else {
            a
        };
        // The evaluator knows sums only; which slots stay empty is known here.
        let bound = a.bound() * if layout.pair == 2 { std::f64::consts::SQRT_2 } else { 1.0 };
        let (along, across) = layout.gather_parts(side);
        let mut c = if layout.pair == 2 {
            let next = evaluator.mul_imaginary_unit(&evaluator.rotate(a, along / 2)?)?;
            // Different slots' errors.
            let spread = a.spread().sum(next.spread()).together();
            match side {
                Side::Left => evaluator.add(a, &next)?,
                Side::Right => evaluator.sub(a, &next)?,
            }
            .with_spread(spread)
            .with_bound(bound)
        } else {
            a.clone()
        };
        let gather = plan.gather_stages(side);
        let mask = match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        };
        c = match (mask, gather.split_last()) {
            (Mask::Extended(mask), Some((last, first))) => {
                let c = fold_images(evaluator, c, first, true, Images::Disjoint)?;
                let elements: Vec<u64> = last.iter().map(|s| self.params.rotation_element(*s)).collect();
                evaluator.sum_of_images_mul_rescale(&c, &elements, mask, Images::Disjoint)?
            }
            (Mask::Plain(mask), _) => {
                if o.merged_rotations {
                    c = fold_images(evaluator, c, &gather, o.hoisted(), Images::Disjoint)?;
                } else {
                    for i in 0..layout.squares.trailing_zeros() {
                        let rotated = evaluator.rotate(&evaluator.rotate(&c, along << i)?, across << i)?;
                        let (before, switched) = (c.spread(), rotated.spread().real.held - c.spread().real.held);
                        c = evaluator.add(&c, &rotated)?;
                        c = c.with_spread(before.images(2.0, Images::Disjoint).plus(switched));
                    }
                }
                let masked = evaluator.mul_plain(&c, mask)?;
                if o.rescale_first { evaluator.rescale(&masked)? } else { masked }
            }
            (Mask::Extended(_), None) => c,
        };
        let spread = layout.spread_stages(side, o.unroll);
        c = fold_images(evaluator, c.with_bound(bound), &spread, o.hoisted(), Images::Disjoint)?;
        if !o.rescale_first {
            c = evaluator.rescale(&c)?;
        }
        Ok(c.with_bound(bound))
    }

    /// C = Σ_s Σ_terms Ā ⊙ B̄, one relinearisation and one fold for all terms (`000`, Algorithm 4).
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn contract<B: Backend<Plaintext = P>>(
        &self,
        evaluator: &Evaluator<B>,
        left: &[&CiphertextOf<B>],
        right: &[&CiphertextOf<B>],
    ) -> Result<CiphertextOf<B>, MatrixError> {
        self.fold_product(evaluator, &evaluator.dot(left, right)?)
    }

    /// The end of [`Cube::contract`], from the sum of the products.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn fold_product<B: Backend<Plaintext = P>>(
        &self,
        evaluator: &Evaluator<B>,
        sum: &CiphertextOf<B>,
    ) -> Result<CiphertextOf<B>, MatrixError> {
        let (plan, o) = (&self.plan, &self.plan.options);
        let product = evaluator.relinearize_rescale(sum)?;
        let mut c = fold(evaluator, product, &plan.fold_stages(), o.hoisted())?;
        if let Some(mask) = &self.output {
            let bound = c.bound();
            c = evaluator.rescale(&evaluator.mul_plain(&c, mask)?)?.with_bound(bound);
            if plan.layout.pair == 2 {
                let conjugate = evaluator.conjugate(&c)?;
                c = evaluator.add(&c, &conjugate)?.with_bound(bound);
            }
        }
        Ok(c)
    }
}
