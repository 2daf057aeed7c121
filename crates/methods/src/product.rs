//! What every product algorithm offers.

use crate::blocked::Blocked;
use crate::error::MatrixError;
use crate::sizing::sent_bytes;
use serde::{Deserialize, Serialize};
use sudare_expr::{Matrix, Operand, Shape};
use sudare_he::ckks::{Ciphertext, Decrypted, EncodeAt, Evaluator, Params, ParamsLiteral, Plaintext};
use sudare_rlwe::Counters;
use sudare_rlwe::security::Security;
use sudare_rlwe::work::Work;

/// Most independent sets of inputs in one run.
pub const MAX_BATCH: usize = 1 << 20;

/// What a product has to satisfy; from this each method proposes parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requirements {
    /// The product.
    pub shape: Shape,
    /// Bounds on the absolute values of the left and right elements, above zero.
    pub max_abs: [f64; 2],
    /// Largest absolute error of a result element that is wanted, above zero.
    pub error: f64,
    /// Security.
    pub security: Security,
    /// Whether the left and right operands are encrypted for this product, in the form that it
    /// likes best. Otherwise they arrive row by row in slots, as results of other products do.
    pub fresh: [bool; 2],
    /// Whether the result is decrypted next. Otherwise it is row by row in slots again.
    pub decrypt_next: bool,
}

/// The keys that a product needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyDemand {
    /// Highest level at which it relinearises.
    pub relin: Option<usize>,
    /// Galois elements with the highest level at which each is used.
    pub galois: Vec<(u64, usize)>,
}

/// What a product takes and promises for operands of some bounds, encrypted under the public key or the secret one,
/// whatever their elements are.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The keys it needs.
    pub keys: KeyDemand,
    /// What one [`Product::multiply`] costs.
    pub work: Work,
    /// Operations of it, for a method that is written in the evaluator's.
    pub counters: Option<Counters>,
    /// Bytes of the tables that [`Product::prepare`] makes.
    pub table_bytes: u64,
    /// Most bytes of ciphertexts that are in memory at once, operands and result among them.
    pub peak_bytes: u64,
    /// Ciphertexts of the result.
    pub ciphertexts: usize,
    /// Polynomials of each: two, or the three of a result that is not relinearised.
    pub parts: usize,
    /// Their level.
    pub level: usize,
    /// Their scale.
    pub scale: f64,
    /// Largest error of an element that is promised.
    pub error: f64,
}

impl Figures {
    /// Bytes of the result as it is sent.
    pub fn result_bytes(&self, literal: &ParamsLiteral) -> u64 {
        sent_bytes(literal, self.level, false).saturating_mul((self.parts * self.ciphertexts) as u64)
    }
}

/// A product's shape and parameter literal, from which what it takes and promises is worked out. Nothing is built for
/// it, so that a planner weighs hundreds in the time that building one takes.
pub trait ProductPlan: Send + Sync {
    /// The method's name in tables: `paper3d`, `improved3d`, `jiang`, …
    fn name(&self) -> &'static str;

    /// The shape it serves.
    fn shape(&self) -> Shape;

    /// The parameters, unbuilt.
    fn literal(&self) -> &ParamsLiteral;

    /// Number of ciphertexts of an operand or the result.
    fn ciphertexts(&self, operand: Operand) -> usize;

    /// What it takes and promises for operands bounded by `max_abs`.
    ///
    /// # Errors
    /// [`MatrixError::He`] where the modulus does not hold what is computed.
    fn figures(&self, max_abs: [f64; 2]) -> Result<Figures, MatrixError>;

    /// The error that it promises, if its modulus holds all that is computed.
    fn promised(&self, max_abs: [f64; 2]) -> Option<f64> {
        Some(self.figures(max_abs).ok()?.error)
    }

    /// Whether it promises an error and its modulus holds all that is computed, for operands
    /// bounded by `max_abs`.
    fn serves(&self, max_abs: [f64; 2], error: f64) -> bool {
        self.promised(max_abs).is_some_and(|promised| promised <= error)
    }
}

/// A product algorithm for one shape under one parameter set. Building one costs nothing but the
/// parameters; what multiplication needs is made by [`Product::prepare`].
pub trait Product: Send + Sync {
    /// What it takes and promises.
    fn plan(&self) -> &dyn ProductPlan;

    /// The parameters.
    fn params(&self) -> &Params;

    /// Makes the tables that multiplication needs, unless they are there. The first
    /// [`Product::multiply`] does it otherwise.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    fn prepare(&self) -> Result<(), MatrixError> {
        Ok(())
    }

    /// The same by blocks that are multiplied and summed one by one, if the method has them.
    fn blocked(&self) -> Option<&dyn Blocked> {
        None
    }

    /// Encodes the `batch` left or right matrices, elements bounded by `max_abs`.
    ///
    /// # Errors
    /// [`MatrixError::PlannedShape`], [`MatrixError::Expr`], [`MatrixError::Count`].
    fn encode(&self, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<Vec<Plaintext>, MatrixError>;

    /// Encodes the `batch` matrices that are added to the result, in the layout of its ciphertexts, at its level and scale.
    ///
    /// # Errors
    /// As [`Product::encode`]; [`MatrixError::Method`] for a method that adds nothing.
    fn encode_addend(&self, _matrices: &[Matrix], _at: EncodeAt) -> Result<Vec<Plaintext>, MatrixError> {
        Err(MatrixError::Method {
            method: self.name(),
            reason: "it adds nothing to its products; add after decryption, or take another method".into(),
        })
    }

    /// Multiplies encrypted operands.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`] (missing keys, foreign ciphertexts, …).
    fn multiply(
        &self,
        evaluator: &Evaluator,
        left: &[Ciphertext],
        right: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, MatrixError>;

    /// Decodes the `batch` result matrices.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`].
    fn decode(&self, output: &[Decrypted]) -> Result<Vec<Matrix>, MatrixError>;

    /// [`ProductPlan::name`].
    fn name(&self) -> &'static str {
        self.plan().name()
    }

    /// [`ProductPlan::shape`].
    fn shape(&self) -> Shape {
        self.plan().shape()
    }

    /// [`ProductPlan::ciphertexts`].
    fn ciphertexts(&self, operand: Operand) -> usize {
        self.plan().ciphertexts(operand)
    }

    /// [`ProductPlan::figures`].
    ///
    /// # Errors
    /// As there.
    fn figures(&self, max_abs: [f64; 2]) -> Result<Figures, MatrixError> {
        self.plan().figures(max_abs)
    }
}
