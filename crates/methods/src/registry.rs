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
use sudare_he::ckks::{CiphertextOf, Evaluator, Params};
use sudare_ring::{Eval, Poly};
use sudare_rlwe::{Backend, RlweError};

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
            Method::Jiang => Box::new(jiang::Jiang::new(params, self.shape, false)?),
            Method::JiangBsgs => Box::new(jiang::Jiang::new(params, self.shape, true)?),
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

impl Method {
    /// Whether [`Product::encode_addend`] serves: matrices can be added to its results under encryption.
    pub fn adds(&self) -> bool {
        matches!(self, Self::Spread3d(_) | Self::Module(_) | Self::Coefficient(_))
    }
}

/// A product that is the same lines on any backend which keeps plaintexts as the processor does: on a GPU, too.
#[derive(Clone, Copy)]
pub enum OnBackends<'p> {
    /// [`Coefficient`].
    Coefficient(&'p Coefficient),
    /// [`Improved3d`](improved3d::Improved3d).
    Improved3d(&'p improved3d::Improved3d),
    /// [`Tiled`](tiles::Tiled).
    Tiled(&'p tiles::Tiled),
}

impl OnBackends<'_> {
    /// Multiplies operands that are where the evaluator works; so is the result.
    ///
    /// # Errors
    /// As [`Product::multiply`], and what the backend refuses.
    pub fn multiply<B: Backend<Plaintext = Poly<Eval>>>(
        &self,
        evaluator: &Evaluator<B>,
        left: &[CiphertextOf<B>],
        right: &[CiphertextOf<B>],
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        match self {
            Self::Coefficient(product) => product.multiply_on(evaluator, left, right),
            Self::Improved3d(product) => product.multiply_on(evaluator, left, right),
            Self::Tiled(product) => product.multiply_on(evaluator, left, right),
        }
    }
}
