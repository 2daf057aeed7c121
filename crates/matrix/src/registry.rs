//! Every product method by its name: the one list that planner and loader go by.
//!
//! A new method adds its variant to [`Method`], an arm to each `match` on it here, and its
//! proposals to [`candidates`].

use crate::coefficient::{self, Coefficient};
use crate::error::MatrixError;
use crate::module::{self, Module};
use crate::product::{Method, Outline, Product, ProductSpec, Requirements};
use crate::slots::{improved3d, jiang, paper3d, spread3d, tiles};
use sudare_he::HeError;
use sudare_he::ckks::Params;
use sudare_rlwe::RlweError;

impl ProductSpec {
    /// Builds the product: parameters are checked and built; the method's own tables wait until they
    /// are needed.
    ///
    /// # Errors
    /// [`MatrixError::He`] for parameters that are refused, [`MatrixError::Method`] for a shape
    /// that the method cannot serve under them.
    pub fn build(&self) -> Result<Box<dyn Product>, MatrixError> {
        self.build_with(&self.params.build()?)
    }

    /// Builds the product for parameters that are built already.
    ///
    /// # Errors
    /// As [`ProductSpec::build`].
    pub fn build_with(&self, params: &Params) -> Result<Box<dyn Product>, MatrixError> {
        Ok(match &self.method {
            Method::Paper3d => Box::new(paper3d::Paper3d::new(params, self.shape)?),
            Method::Improved3d(options) => Box::new(improved3d::Improved3d::new(params, self.shape, *options)?),
            Method::Spread3d(options) => Box::new(spread3d::Spread3d::new(params, self.shape, *options)?),
            Method::Tiled { tile, options } => Box::new(tiles::Tiled::new(params, self.shape, *tile, *options)?),
            Method::Jiang => Box::new(jiang::Jiang::new(params, self.shape)?),
            Method::JiangBsgs => Box::new(jiang::JiangBsgs::new(params, self.shape)?),
            Method::Coefficient(options) => Box::new(Coefficient::new(self.shape, params, *options)?),
            Method::Module(options) => Box::new(Module::new(self.shape, params, *options)?),
        })
    }

    /// What the product takes and promises, without building it.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if it cannot be built, [`MatrixError::He`] for parameters that nothing
    /// can be read off.
    pub fn outline(&self) -> Result<Box<dyn Outline>, MatrixError> {
        let (shape, literal) = (self.shape, &self.params);
        if literal.q_bits.is_empty() || literal.digit_limbs == 0 || !(9..=17).contains(&literal.log_n) {
            let reason = "they have primes, digits of at least one and log2 N from 9 to 17".into();
            return Err(HeError::Rlwe(RlweError::Parameters { reason }).into());
        }
        Ok(match &self.method {
            Method::Paper3d => Box::new(paper3d::Plan::new(shape, literal)?),
            Method::Improved3d(options) => Box::new(improved3d::Plan::new(shape, literal, *options)?),
            Method::Spread3d(options) => Box::new(spread3d::Plan::new(shape, literal, *options)?),
            Method::Tiled { tile, options } => Box::new(tiles::Plan::new(shape, literal, *tile, *options)?),
            Method::Jiang => Box::new(jiang::Plan::new(shape, literal, false)?),
            Method::JiangBsgs => Box::new(jiang::Plan::new(shape, literal, true)?),
            Method::Coefficient(options) => Box::new(coefficient::Plan::new(shape, literal, *options)?),
            Method::Module(options) => Box::new(module::Plan::new(shape, literal, *options)?),
        })
    }
}

/// What every method proposes for a product, in no order.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    [
        paper3d::candidates,
        improved3d::candidates,
        spread3d::candidates,
        tiles::candidates,
        jiang::candidates,
        coefficient::candidates,
        module::candidates,
    ]
    .into_iter()
    .flat_map(|propose| propose(req))
    .collect()
}

impl ProductSpec {
    /// Level and scale of the result under built parameters: the product of the operands' scales,
    /// divided by the prime of the level at which the method rescales it. Masks leave a scale as it is.
    pub(crate) fn result(&self, params: &Params) -> (usize, f64) {
        let top = params.max_level();
        let (depth, rescaled) = self.rescaled(top);
        let prime = rescaled.map_or(1.0, |level| params.prime_at(level) as f64);
        (top.saturating_sub(depth), params.scale() * params.scale() / prime)
    }

    /// The result's scale as the literal has it.
    pub(crate) fn scale_of_result(&self) -> f64 {
        let (_, rescaled) = self.rescaled(self.params.q_bits.len().saturating_sub(1));
        let prime = rescaled.and_then(|level| self.params.q_bits.get(level)).map_or(0, |bits| *bits);
        (2.0 * f64::from(self.params.log_scale) - f64::from(prime)).exp2()
    }

    /// Levels that the method takes, and that at which it rescales the product.
    fn rescaled(&self, top: usize) -> (usize, Option<usize>) {
        let (depth, below) = match &self.method {
            Method::Paper3d => (3, Some(1)),
            Method::Improved3d(options) | Method::Tiled { options, .. } => (options.depth(), Some(1)),
            Method::Jiang | Method::JiangBsgs => (3, Some(2)),
            Method::Spread3d(options) if options.fold => (1, Some(0)),
            Method::Module(options) if options.relinearize && top > 0 => (1, Some(0)),
            Method::Spread3d(_) | Method::Module(_) | Method::Coefficient(_) => (0, None),
        };
        (depth, below.map(|below| top.saturating_sub(below)))
    }
}

impl Method {
    /// Whether [`Product::encode_addend`] serves: matrices can be added to its results under encryption.
    pub(crate) fn adds(&self) -> bool {
        matches!(self, Self::Spread3d(_) | Self::Module(_) | Self::Coefficient(_))
    }
}
