//! How a plan computes its expression.

use super::Goal;
use super::circuit::{Circuit, CircuitFigures, CircuitSpec};
use super::product::{ProductEngine, ProductFigures};
use super::refresh::RefreshWork;
use super::statistics::{TableEngine, TableSpec};
use serde::{Deserialize, Serialize};
use sudare_expr::Matrix;
use sudare_he::circuits::bootstrapping::{BootstrapLiteral, Bootstrapper};
use sudare_he::ckks::{self, Ciphertext, CiphertextOf, Decrypted, Evaluator, Expected, Plaintext};
use sudare_methods::MatrixError;
use sudare_methods::circuit::Prepared;
use sudare_methods::exact::{ArraysPlan, ArraysSpec, ExactEngine, ExactPlan, ExactSpec, IntegerEngine};
use sudare_methods::portable::ProductOn;
use sudare_methods::product::{KeyDemand, Product};
use sudare_methods::products::ProductSpec;
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::work::Work;
use sudare_rlwe::{Backend, Params};

/// The computation that was chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum Program {
    /// One product of two inputs, each encrypted in the form that its method likes best.
    Product {
        /// Shape, method and parameters.
        product: ProductSpec,
    },
    /// Any expression, on tiled matrices.
    Circuit {
        /// Tiles and parameters.
        circuit: CircuitSpec,
    },
    /// An expression of integers, exactly.
    Exact {
        /// Cut, plaintext moduli and parameters.
        exact: ExactSpec,
    },
    /// An expression of integers modulo a prime, element by element, with refreshes.
    Arrays {
        /// The set and its refreshes.
        arrays: ArraysSpec,
    },
    /// Means and covariances of a table's columns.
    Table {
        /// Parameters.
        table: TableSpec,
    },
}

/// Ciphertexts of a node's value.
#[derive(Clone, Copy, Debug)]
pub struct NodeSize {
    /// How many.
    pub count: usize,
    /// Polynomials of each.
    pub parts: usize,
    /// Their level.
    pub level: usize,
}

/// The refreshes of a program.
#[derive(Clone, Debug)]
pub struct Refreshes {
    /// The name of the set.
    pub set: String,
    /// Bytes of its keys.
    pub key_bytes: u64,
    /// Bytes of what a server prepares for them.
    pub prepared_bytes: u64,
    /// Nodes whose values are refreshed, and the ciphertexts of each.
    pub places: Vec<(usize, usize)>,
    /// Work of refreshing them.
    pub work: RefreshWork,
}

/// What a program takes and promises, read off its literals.
pub trait ProgramFigures: Send + Sync {
    /// The method's name.
    fn method(&self) -> &'static str;

    /// The scheme's name.
    fn scheme(&self) -> &'static str {
        "ckks"
    }

    /// Its parameters.
    fn literal(&self) -> &ParamsLiteral;

    /// The keys that a server needs.
    fn keys(&self) -> KeyDemand;

    /// What it costs.
    fn work(&self) -> Work;

    /// What it refreshes, if it does.
    fn refreshes(&self) -> Option<Refreshes> {
        None
    }

    /// Bytes of what a server prepares.
    fn table_bytes(&self) -> u64 {
        0
    }

    /// Most bytes of ciphertexts that are in memory at once, if the program was simulated.
    fn peak_bytes(&self) -> Option<u64> {
        None
    }

    /// Largest error of a result element that is promised; in units of the columns' bounds for a table.
    fn error(&self) -> f64;

    /// Largest error of a node's elements, once they are read, where one bound holds for all of them: of the result
    /// of a product, of any node of a circuit.
    fn node_error(&self, node: usize) -> Option<f64>;

    /// The error of an element of the result, and the unit that it is in.
    fn element_error(&self, _at: (usize, usize)) -> (f64, f64) {
        (self.error(), 1.0)
    }

    /// The element of the result that this one is equal to: itself, or its mirror image.
    fn twin(&self, at: (usize, usize)) -> (usize, usize) {
        at
    }

    /// Ciphertexts of an input or of the result; of a circuit, of any node.
    fn size(&self, node: usize) -> Option<NodeSize>;

    /// Whether inputs under the public key, which have more noise, are allowed for.
    fn fresh_public(&self) -> bool {
        true
    }

    /// What operations cost, by their nodes, if the program computes them one by one.
    fn costs(&self) -> &[Work] {
        &[]
    }

    /// The cheaper way to write an operation, if there may be one.
    fn cheaper(&self, _goal: &Goal, _node: usize) -> Option<String> {
        None
    }

    /// What else people are told of the program.
    fn details(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

impl dyn ProgramFigures + '_ {
    /// Ciphertexts of the input or result that has most.
    pub fn most_ciphertexts(&self, goal: &Goal) -> usize {
        goal.ends().filter_map(|node| self.size(node)).map(|size| size.count).max().unwrap_or(0)
    }
}

/// A program of CKKS under built parameters.
pub trait CkksEngine: Send + Sync {
    /// Its parameters.
    fn params(&self) -> &ckks::Params;

    /// What it takes and promises.
    fn figures(&self) -> &dyn ProgramFigures;

    /// The product that it is, if it is one.
    fn product(&self) -> Option<&dyn Product> {
        None
    }

    /// Makes the tables that computing needs, unless they are there: clients do without.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    fn prepare(&self, goal: &Goal) -> Result<(), MatrixError>;

    /// What the result is under encryption, worked out from the program alone.
    fn expected(&self) -> Expected;

    /// Encodes the members of a batch as the value of an input's node.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::PlannedShape`]; [`MatrixError::Expr`] for an element over the input's bound;
    /// [`MatrixError::He`].
    fn encode(&self, goal: &Goal, node: usize, matrices: &[Matrix]) -> Result<Vec<Plaintext>, MatrixError>;

    /// Decodes the value of a node.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`].
    fn decode(&self, goal: &Goal, node: usize, values: &[Decrypted]) -> Result<Vec<Matrix>, MatrixError>;

    /// The set that it refreshes by, if it does.
    fn bootstrap(&self) -> Option<&BootstrapLiteral> {
        None
    }

    /// What others take of a node: its value, with new levels where the program says so.
    ///
    /// # Errors
    /// As [`Bootstrapper::refresh_many_real`].
    fn refreshed(
        &self,
        _goal: &Goal,
        _by: (&Evaluator, &Bootstrapper),
        _node: usize,
        values: Vec<Ciphertext>,
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        Ok(values)
    }

    /// Whether a node's value is its operand's ciphertexts: what the operation says is done before encryption or after
    /// decryption.
    fn passes(&self, _node: usize) -> bool {
        false
    }

    /// Computes a node from its operands' values.
    ///
    /// # Errors
    /// [`MatrixError::Count`]; [`MatrixError::He`] for a missing key, or ciphertexts of another key or level than planned.
    fn evaluate(
        &self,
        goal: &Goal,
        evaluator: &Evaluator,
        node: usize,
        operands: &[&[Ciphertext]],
    ) -> Result<Vec<Ciphertext>, MatrixError>;
}

/// A program on a backend that is not the processor, a GPU's for one, with what it needs there: the same steps.
pub struct ProgramOn<B: Backend>(Steps<B>);

/// A program whose steps are written once for every backend.
enum Portable<'p> {
    Product(&'p ProductSpec),
    Circuit(&'p CircuitSpec),
}

enum Steps<B: Backend> {
    Product(Box<ProductFigures>, ProductOn<B>),
    Circuit(Box<CircuitFigures>, Vec<Prepared<B>>),
}

impl<B: Backend> ProgramOn<B> {
    /// Computes a node from its operands' values, which are where the evaluator works; so is the result.
    ///
    /// # Errors
    /// As [`CkksEngine::evaluate`], and what the backend refuses.
    pub fn evaluate(
        &self,
        goal: &Goal,
        e: &ckks::Evaluator<B>,
        node: usize,
        operands: &[&[CiphertextOf<B>]],
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        match &self.0 {
            Steps::Product(figures, product) => {
                figures.value(goal, e, node, operands, |left, right| product(e, left, right))
            }
            Steps::Circuit(figures, prepared) => figures.value(goal, e, prepared, node, operands),
        }
    }

    /// What others take of a node: its value, with new levels where the program says so.
    ///
    /// # Errors
    /// As [`CkksEngine::refreshed`], and what the backend refuses.
    pub fn refreshed(
        &self,
        goal: &Goal,
        by: (&ckks::Evaluator<B>, &Bootstrapper<B>),
        node: usize,
        values: Vec<CiphertextOf<B>>,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        match &self.0 {
            Steps::Product(..) => Ok(values),
            Steps::Circuit(figures, _) => figures.refreshed(goal, by, node, values),
        }
    }
}

/// A program under built parameters.
pub enum Engine {
    /// Of real matrices.
    Ckks(Box<dyn CkksEngine>),
    /// Of integers, by one product.
    Exact(Box<ExactEngine>),
    /// Of integers, to any depth.
    Arrays(Box<ArraysPlan>),
}

impl Engine {
    /// The parameters that keys belong to.
    pub fn params(&self) -> &Params {
        match self {
            Self::Ckks(engine) => engine.params().rlwe(),
            Self::Exact(engine) => engine.params(),
            Self::Arrays(engine) => engine.params(),
        }
    }

    /// What the program takes and promises.
    pub fn figures(&self) -> &dyn ProgramFigures {
        match self {
            Self::Ckks(engine) => engine.figures(),
            Self::Exact(engine) => engine.plan(),
            Self::Arrays(engine) => &**engine,
        }
    }

    /// What computes integers, if it does.
    pub fn integers(&self) -> Option<&dyn IntegerEngine> {
        match self {
            Self::Ckks(_) => None,
            Self::Exact(engine) => Some(&**engine),
            Self::Arrays(engine) => Some(&**engine),
        }
    }

    /// The keys that a server needs.
    pub fn keys(&self) -> KeyDemand {
        self.figures().keys()
    }
}

impl Program {
    /// Statistics of a goal's table, whose parameters follow from the goal.
    pub(super) fn of_moments(goal: &Goal) -> Self {
        Self::Table { table: TableSpec::new(goal) }
    }

    /// Runs `read` on what the program takes and promises; nothing is built for it, but for a table.
    ///
    /// # Errors
    /// As [`Program::build`].
    pub fn with_figures<T>(&self, goal: &Goal, read: impl FnOnce(&dyn ProgramFigures) -> T) -> Result<T, MatrixError> {
        Ok(match self {
            Self::Product { product } => read(&ProductFigures::new(goal, product)?),
            Self::Circuit { circuit } => read(&CircuitFigures::new(goal, circuit)?),
            Self::Exact { exact } => read(&ExactPlan::new(goal.exact()?, exact)?),
            Self::Arrays { arrays } => read(&goal.arrays_of(arrays)?),
            Self::Table { table } => read(&TableEngine::new(goal, table)?),
        })
    }

    /// What backends beside the processor compute.
    fn on_backends(&self) -> Result<Portable<'_>, MatrixError> {
        let what = match self {
            Self::Product { product } => return Ok(Portable::Product(product)),
            Self::Circuit { circuit } => return Ok(Portable::Circuit(circuit)),
            Self::Exact { .. } | Self::Arrays { .. } => "integers",
            Self::Table { .. } => "statistics of a table",
        };
        let planned = format!(
            "this plan computes {what}, and a GPU computes products and expressions of real matrices; work on the \
             processor"
        );
        Err(MatrixError::NotPlanned { operation: "computing on a device", planned })
    }

    /// Refuses a program that no backend but the processor computes.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`].
    pub fn require_backends(&self) -> Result<(), MatrixError> {
        self.on_backends().map(drop)
    }

    /// The program on a backend that is not the processor.
    ///
    /// # Errors
    /// As [`Program::require_backends`]; [`MatrixError::He`].
    pub fn on<B: Backend + 'static>(&self, goal: &Goal, e: &ckks::Evaluator<B>) -> Result<ProgramOn<B>, MatrixError> {
        Ok(ProgramOn(match self.on_backends()? {
            Portable::Product(product) => Steps::Product(Box::new(ProductFigures::new(goal, product)?), product.on(e)?),
            Portable::Circuit(circuit) => {
                let figures = CircuitFigures::new(goal, circuit)?;
                let prepared = figures.prepared(e, &goal.expression)?;
                Steps::Circuit(Box::new(figures), prepared)
            }
        }))
    }

    /// The parameters, unbuilt.
    pub fn literal(&self) -> &ParamsLiteral {
        match self {
            Self::Product { product } => &product.params,
            Self::Circuit { circuit } => &circuit.params,
            Self::Exact { exact } => &exact.params,
            Self::Arrays { arrays } => &arrays.params,
            Self::Table { table } => &table.params,
        }
    }

    /// The program under built parameters.
    ///
    /// # Errors
    /// [`MatrixError::He`] and [`MatrixError::Exact`] for parameters that are refused, [`MatrixError::Method`] and
    /// [`MatrixError::PlanField`] for a program that does not serve the goal.
    pub fn build(&self, goal: &Goal) -> Result<Engine, MatrixError> {
        Ok(match self {
            Self::Product { product } => Engine::Ckks(Box::new(ProductEngine::new(goal, product)?)),
            Self::Circuit { circuit } => Engine::Ckks(Box::new(Circuit::new(goal, circuit)?)),
            Self::Arrays { arrays } => Engine::Arrays(Box::new(goal.arrays_of(arrays)?)),
            Self::Exact { exact } => Engine::Exact(Box::new(ExactEngine::new(ExactPlan::new(goal.exact()?, exact)?))),
            Self::Table { table } => Engine::Ckks(Box::new(TableEngine::new(goal, table)?)),
        })
    }
}
