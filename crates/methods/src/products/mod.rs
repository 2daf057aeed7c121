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
use crate::portable::{self, ProductOn};
use crate::product::{Product, ProductPlan, Requirements};
use crate::slots::cube::Improvements;
use bicyclic::Bicyclic;
use coefficient::Coefficient;
use module::Module;
use serde::{Deserialize, Serialize};
use sudare_expr::Shape;
use sudare_he::HeError;
use sudare_he::ckks::{Evaluator, Params, ParamsLiteral};
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

/// What is made of the steps of a specification's method, each of a type of its own.
macro_rules! with_plan {
    ($spec:expr, |$plan:ident| $made:expr) => {{
        let (shape, literal) = ($spec.shape, &$spec.params);
        match &$spec.method {
            Method::Paper3d => with_plan!(@ $plan, paper3d::Paper3dPlan::new(shape, literal), $made),
            Method::Improved3d(o) => with_plan!(@ $plan, improved3d::Improved3dPlan::new(shape, literal, *o), $made),
            Method::Spread3d(o) => with_plan!(@ $plan, spread3d::Spread3dPlan::new(shape, literal, *o), $made),
            Method::Tiled { tile, options } => {
                with_plan!(@ $plan, tiled::TiledPlan::new(shape, literal, *tile, *options), $made)
            }
            Method::Jiang => with_plan!(@ $plan, jiang::JiangPlan::new(shape, literal, false), $made),
            Method::JiangBsgs => with_plan!(@ $plan, jiang::JiangPlan::new(shape, literal, true), $made),
            Method::Bicyclic => with_plan!(@ $plan, bicyclic::BicyclicPlan::new(shape, literal), $made),
            Method::Coefficient(o) => with_plan!(@ $plan, coefficient::CoefficientPlan::new(shape, literal, *o), $made),
            Method::Module(o) => with_plan!(@ $plan, module::ModulePlan::new(shape, literal, *o), $made),
        }
    }};
    (@ $plan:ident, $new:expr, $made:expr) => {{
        let $plan = $new?;
        $made
    }};
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
        let literal = &self.params;
        if literal.q_bits.is_empty() || literal.digit_limbs == 0 || !(9..=17).contains(&literal.log_n) {
            let reason = "a product needs data primes, digits of at least one prime, and log2 N from 9 to 17".into();
            return Err(HeError::Rlwe(RlweError::Parameters { reason }).into());
        }
        Ok(with_plan!(self, |plan| Box::new(plan)))
    }

    /// The product on any backend, a GPU among them, with what it needs there.
    ///
    /// # Errors
    /// As [`ProductSpec::plan`]; [`MatrixError::He`].
    pub fn on<B: Backend + 'static>(&self, e: &Evaluator<B>) -> Result<ProductOn<B>, MatrixError> {
        with_plan!(self, |plan| portable::on(plan, e))
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
