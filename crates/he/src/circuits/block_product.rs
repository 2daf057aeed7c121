//! Products of block rows with block columns of encrypted matrices over R' (Cheon–Kang–Lee, ePrint 2025/1957): what
//! [`rlwe::Evaluator::block_products`] does to scale, bounds and errors.

use crate::ckks::noise::TAIL;
use crate::ckks::{Batch, Ciphertext, CiphertextOf, Evaluator, Params, Spread, State};
use crate::error::HeError;
#[cfg(doc)]
use sudare_rlwe as rlwe;
use sudare_rlwe::{Backend, Blocks, RlweError, Shaped};

const OPERATION: &str = "block product";

/// Products of blocks whose ciphertexts are not filled to the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockProduct {
    /// What is multiplied.
    pub blocks: Blocks,
    /// The share of the terms of an element's sum that hold messages.
    pub occupied: f64,
}

/// What the ciphertexts of one operand have in common.
struct Side {
    scale: f64,
    /// Square of the Euclidean norm of what an element of a block has in one ciphertext.
    energy: f64,
    /// Variance of a coefficient's error by the bound that travels, and by what is expected.
    variances: [f64; 2],
}

impl Side {
    fn new<C: Shaped>(side: &Batch<'_, C>, blocks: &Blocks) -> Result<Self, HeError> {
        let Some(first) = side.iter().next() else {
            return Err(RlweError::Operands { operation: OPERATION, left: 0, right: 0 }.into());
        };
        let (scale, mut bound, mut noise, mut expected) = (first.scale(), 0.0f64, 0.0f64, 0.0f64);
        for c in side.iter() {
            if ((c.scale() - scale) / scale).abs() > (-40f64).exp2() {
                return Err(HeError::ScaleMismatch {
                    operation: OPERATION,
                    left: scale.log2(),
                    right: c.scale().log2(),
                });
            }
            let variance = c.spread().real.held;
            expected = if variance.is_nan() { variance } else { expected.max(variance) };
            (bound, noise) = (bound.max(c.bound()), noise.max(c.noise()));
        }
        let n = first.params().degree() as f64;
        // A canonical bound back to a variance; a slot's variance is that of N coefficients.
        let variances = [(noise / TAIL[0]).powi(2) / n, expected / n];
        Ok(Self { scale, energy: bound.powi(2) / blocks.side as f64, variances })
    }
}

impl BlockProduct {
    /// Variance of a coefficient of a result whose operands have errors of some variances.
    fn variance(&self, [left, right]: &[Side; 2], n: f64, which: usize) -> f64 {
        let terms = self.blocks.terms as f64;
        let [x, y] = [left, right].map(|side| side.variances[which]);
        let energy = |side: &Side| self.occupied * terms * side.energy * side.scale.powi(2);
        energy(left) * y + energy(right) * x + terms * n / self.blocks.side as f64 * x * y
    }

    /// The same of key switching, before any rescale.
    fn switching(&self, params: &Params, level: usize) -> f64 {
        let sketch = params.sketch();
        let one = sketch.switching(level).variance();
        let transposed = self.blocks.side as f64 * one + sketch.division(2).variance();
        transposed * (1.0 + sketch.secret_weight()) + sketch.division(3).variance() + one
    }
}

impl<B: Backend> Evaluator<B> {
    /// The rows of products of block rows with block columns, of coefficient encodings whose bounds are Euclidean norms; see
    /// [`Blocks`] for their order. Relinearised results have two parts and lose a level, where there is one; others have
    /// three. A result's bound is one on its coefficients.
    ///
    /// # Errors
    /// As [`rlwe::Evaluator::block_products`]; [`HeError::ScaleMismatch`] within a side, [`HeError::TooLarge`].
    pub fn block_products(
        &self,
        left: Batch<'_, B::Ciphertext>,
        right: Batch<'_, B::Ciphertext>,
        product: &BlockProduct,
    ) -> Result<Vec<CiphertextOf<B>>, HeError> {
        let (params, blocks) = (self.params(), &product.blocks);
        let all = || left.iter().chain(right.iter());
        all().try_for_each(|c| self.check(c))?;
        let sides = [Side::new(&left, blocks)?, Side::new(&right, blocks)?];
        let [x, y] = &sides;
        let level = all().map(Ciphertext::level).min().unwrap_or(0);
        let (n, switching) = (params.degree() as f64, product.switching(params, level));
        let noise = TAIL[2] * (n * (product.variance(&sides, n, 0) + switching)).sqrt();
        let bound = product.occupied * blocks.terms as f64 * (x.energy * y.energy).sqrt();
        let state = State { scale: x.scale * y.scale, bound, noise };
        state.check_fits(OPERATION, params, level)?;
        let spread = Spread::even(bound, n * (product.variance(&sides, n, 1) + switching));
        let (state, spread) = match blocks.relinearize && level > 0 {
            true => (self.rescaled(state, level, 2), self.rescaled_spread(spread, level, 2)),
            false => (state, spread),
        };
        let [l, r] = [&left, &right].map(|side| side.iter().map(|c| c.inner()).collect::<Vec<_>>());
        let rows = self.inner.block_products(&l, &r, blocks)?;
        Ok(rows.into_iter().map(|row| Ciphertext::new(row, state).with_spread(spread)).collect())
    }
}
