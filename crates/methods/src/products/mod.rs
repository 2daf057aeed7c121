//! Every product method, a file or a folder each, and the one list that planner and loader go by.
//!
//! A new method is a file here, its variant of [`Method`], an arm in each `match` on it, and its proposals in
//! [`candidates`].
//!
//! * [`paper3d`]: three-dimensional arrays as `000` prints them (Algorithms 1–4).
//! * [`improved3d`]: the same idea with merged and hoisted rotations, no last mask, spare slots
//!   carrying more products, and real pairs.
//! * [`spread3d`]: fresh operands encrypted already spread out.
//! * [`tiled`]: matrices of any shape cut into tiles.
//! * [`jiang`]: Jiang–Kim–Lauter–Song, as laid out in `000`'s \[15\] and with hoisted linear maps.
//! * [`bicyclic`]: diagonals that run around both sides of a matrix, a rotation of each operand for each term.
//! * [`coefficient`]: one product of polynomials for a product of blocks.
//! * [`module`]: many products by four plain ones over a subring.

pub mod bicyclic;
pub mod coefficient;
pub mod improved3d;
pub mod jiang;
pub mod module;
pub mod paper3d;
pub mod spread3d;
pub mod tiled;

use crate::error::MatrixError;
use crate::product::{Product, ProductPlan, Requirements};
use crate::slots::cube::Improvements;
use bicyclic::Bicyclic;
use coefficient::Coefficient;
use module::Module;
use serde::{Deserialize, Serialize};
use sudare_expr::Shape;
use sudare_he::HeError;
use sudare_he::ckks::{CiphertextOf, Evaluator, Params, ParamsLiteral};
use sudare_ring::{Eval, Poly};
use sudare_rlwe::{Backend, RlweError};

/// An algorithm with its options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
#[non_exhaustive]
pub enum Method {
    /// The 3-D method as printed.
    Paper3d,
    /// The 3-D method with its improvements.
    Improved3d(Improvements),
    /// Operands encrypted already spread out.
    Spread3d(spread3d::SpreadOptions),
    /// Tiles over many ciphertexts.
    Tiled {
        /// Side of a tile, a power of two.
        tile: usize,
        /// How each tile is multiplied.
        options: Improvements,
    },
    /// Jiang–Kim–Lauter–Song as laid out.
    Jiang,
    /// The same with double hoisting and lazy relinearisation.
    JiangBsgs,
    /// Bicyclic diagonals.
    Bicyclic,
    /// The [coefficient product](coefficient).
    Coefficient(coefficient::CoefficientOptions),
    /// The [module method](module).
    Module(module::ModuleOptions),
}

impl Method {
    /// Names of the methods that devices run: see [`Product::on_backends`].
    pub const ON_DEVICES: [&str; 3] = ["coefficient", "improved3d", "tiled"];
}

/// A product that a plan has settled on: shape, method and parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProductSpec {
    /// The product.
    pub shape: Shape,
    /// The algorithm.
    pub method: Method,
    /// The parameters.
    pub params: ParamsLiteral,
}

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
            Method::Tiled { tile, options } => Box::new(tiled::Tiled::new(params, self.shape, *tile, *options)?),
            Method::Jiang => Box::new(jiang::Jiang::new(params, self.shape, false)?),
            Method::JiangBsgs => Box::new(jiang::Jiang::new(params, self.shape, true)?),
            Method::Bicyclic => Box::new(Bicyclic::new(params, self.shape)?),
            Method::Coefficient(options) => Box::new(Coefficient::new(self.shape, params, *options)?),
            Method::Module(options) => Box::new(Module::new(self.shape, params, *options)?),
        })
    }

    /// What the product takes and promises, without building it.
    ///
    /// # Errors
    /// [`MatrixError::Method`] if it cannot be built, [`MatrixError::He`] for parameters that nothing
    /// can be read off.
    pub fn plan(&self) -> Result<Box<dyn ProductPlan>, MatrixError> {
        let (shape, literal) = (self.shape, &self.params);
        if literal.q_bits.is_empty() || literal.digit_limbs == 0 || !(9..=17).contains(&literal.log_n) {
            let reason = "they have primes, digits of at least one and log2 N from 9 to 17".into();
            return Err(HeError::Rlwe(RlweError::Parameters { reason }).into());
        }
        Ok(match &self.method {
            Method::Paper3d => Box::new(paper3d::Paper3dPlan::new(shape, literal)?),
            Method::Improved3d(options) => Box::new(improved3d::Improved3dPlan::new(shape, literal, *options)?),
            Method::Spread3d(options) => Box::new(spread3d::Spread3dPlan::new(shape, literal, *options)?),
            Method::Tiled { tile, options } => Box::new(tiled::TiledPlan::new(shape, literal, *tile, *options)?),
            Method::Jiang => Box::new(jiang::JiangPlan::new(shape, literal, false)?),
            Method::JiangBsgs => Box::new(jiang::JiangPlan::new(shape, literal, true)?),
            Method::Bicyclic => Box::new(bicyclic::BicyclicPlan::new(shape, literal)?),
            Method::Coefficient(options) => Box::new(coefficient::CoefficientPlan::new(shape, literal, *options)?),
            Method::Module(options) => Box::new(module::ModulePlan::new(shape, literal, *options)?),
        })
    }
}

/// What is proposed beside [`candidates`] for results of few bytes.
pub fn compact(req: &Requirements) -> Vec<ProductSpec> {
    module::compact(req)
}

/// What every method proposes for a product, in no order.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    [
        paper3d::candidates,
        improved3d::candidates,
        spread3d::candidates,
        tiled::candidates,
        jiang::candidates,
        bicyclic::candidates,
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
    /// [`Tiled`](tiled::Tiled).
    Tiled(&'p tiled::Tiled),
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
