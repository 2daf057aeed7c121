//! The side that computes.

use super::client::{expect_params, expect_plan, input_node};
use super::encrypted::EncryptedMatrix;
use crate::error::MatrixError;
use crate::expr::Op;
use crate::matrix::Matrix;
use crate::plan::Plan;
use std::sync::Arc;
use sudare_he::HeError;
use sudare_he::ckks::{Ciphertext, Evaluator, Plaintext};
use sudare_he::keys::{EvalKeys, KeyId};
use sudare_he::params::Params;
use sudare_he::ring::{Poly, Threads};

/// Computes on encrypted matrices by a plan. Holds evaluation keys and nothing secret. Cloning
/// shares it.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    plan: Plan,
    evaluator: Evaluator,
    threads: Arc<Threads>,
}

impl Server {
    /// A server with a client's evaluation keys, on `threads` threads (0: one for each
    /// processor).
    ///
    /// # Errors
    /// [`MatrixError::Wire`] if the keys are for other parameters than the plan's;
    /// [`MatrixError::He`] if one that the plan needs is missing.
    pub fn new(plan: &Plan, keys: EvalKeys, threads: usize) -> Result<Self, MatrixError> {
        Self::with_threads(plan, keys, Arc::new(Threads::new(threads)))
    }

    pub(super) fn with_threads(plan: &Plan, keys: EvalKeys, threads: Arc<Threads>) -> Result<Self, MatrixError> {
        expect_params(plan.params(), keys.params())?;
        // Missing keys are told now, not after an hour of work.
        let demand = plan.engine().keys();
        let reaches = |wanted: usize, highest: usize| match wanted <= highest {
            true => Ok(()),
            false => Err(HeError::NoSuchLevel { operation: "the plan", wanted, highest }),
        };
        if let Some(level) = demand.relin {
            reaches(level, keys.relin()?.level())?;
        }
        for (element, level) in &demand.galois {
            let step = plan.summary().keys.iter().find(|k| k.element == *element).and_then(|k| k.step);
            reaches(*level, keys.galois(*element, step.unwrap_or(0))?.key().level())?;
        }
        // Tables are made here, not within the first operation.
        threads.run(|| plan.engine().prepare(plan.goal()))?;
        Ok(Self(Arc::new(Inner { plan: plan.clone(), evaluator: Evaluator::new(keys), threads })))
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.0.plan
    }

    /// The evaluator with its counters.
    pub fn evaluator(&self) -> &Evaluator {
        &self.0.evaluator
    }

    /// The name of the secret key whose data it computes on.
    pub fn key_id(&self) -> KeyId {
        self.evaluator().keys().id()
    }

    /// How many threads work.
    pub fn threads(&self) -> usize {
        self.0.threads.count()
    }

    /// An input that the plan gives to the server unencrypted, in the form that its operations
    /// take.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for an input that the plan does not have or has encrypted;
    /// [`MatrixError::PlannedShape`], [`MatrixError::OverBound`], [`MatrixError::Count`].
    pub fn plain(&self, name: &str, matrices: &[Matrix]) -> Result<EncryptedMatrix, MatrixError> {
        let plan = self.plan();
        let node = input_node(plan, name, matrices)?;
        if !plan.expression().is_plain(node) {
            return Err(MatrixError::NotPlanned {
                operation: "taking this input unencrypted",
                planned: format!("{name} comes encrypted"),
            });
        }
        let plain = self.0.threads.run(|| plan.engine().encode(plan.goal(), node, matrices))?;
        let values = plain.iter().map(|p| trivial(plan.params(), self.key_id(), p)).collect::<Result<Vec<_>, _>>()?;
        EncryptedMatrix::new(plan, node, self.key_id(), values)
    }

    /// `a @ b`.
    ///
    /// # Errors
    /// [`MatrixError::WrongPlan`]; [`MatrixError::Shapes`]; [`MatrixError::NotPlanned`] if the
    /// plan's expression does not have this operation on these values; [`MatrixError::He`].
    pub fn matmul(&self, a: &EncryptedMatrix, b: &EncryptedMatrix) -> Result<EncryptedMatrix, MatrixError> {
        if a.shape().1 != b.shape().0 {
            return Err(MatrixError::Shapes { operation: "matrix product", left: a.shape(), right: b.shape() });
        }
        self.apply(Op::Matmul { left: a.node(), right: b.node() }, &[a, b])
    }

    /// `a + b`.
    ///
    /// # Errors
    /// As [`Server::matmul`].
    pub fn add(&self, a: &EncryptedMatrix, b: &EncryptedMatrix) -> Result<EncryptedMatrix, MatrixError> {
        same_shape("addition", a, b)?;
        self.apply(Op::Add { left: a.node(), right: b.node() }, &[a, b])
    }

    /// `a − b`.
    ///
    /// # Errors
    /// As [`Server::matmul`].
    pub fn sub(&self, a: &EncryptedMatrix, b: &EncryptedMatrix) -> Result<EncryptedMatrix, MatrixError> {
        same_shape("subtraction", a, b)?;
        self.apply(Op::Sub { left: a.node(), right: b.node() }, &[a, b])
    }

    /// `a * b`, element by element.
    ///
    /// # Errors
    /// As [`Server::matmul`].
    pub fn mul(&self, a: &EncryptedMatrix, b: &EncryptedMatrix) -> Result<EncryptedMatrix, MatrixError> {
        same_shape("element-wise product", a, b)?;
        self.apply(Op::Mul { left: a.node(), right: b.node() }, &[a, b])
    }

    /// `−a`.
    ///
    /// # Errors
    /// As [`Server::matmul`].
    pub fn neg(&self, a: &EncryptedMatrix) -> Result<EncryptedMatrix, MatrixError> {
        self.apply(Op::Neg { of: a.node() }, &[a])
    }

    /// `a · by`.
    ///
    /// # Errors
    /// As [`Server::matmul`].
    pub fn scale(&self, a: &EncryptedMatrix, by: f64) -> Result<EncryptedMatrix, MatrixError> {
        self.apply(Op::Scale { of: a.node(), by }, &[a])
    }

    /// `a + by`, a number added to every element.
    ///
    /// # Errors
    /// As [`Server::matmul`].
    pub fn shift(&self, a: &EncryptedMatrix, by: f64) -> Result<EncryptedMatrix, MatrixError> {
        self.apply(Op::Shift { of: a.node(), by }, &[a])
    }

    /// The transpose.
    ///
    /// # Errors
    /// As [`Server::matmul`].
    pub fn transpose(&self, a: &EncryptedMatrix) -> Result<EncryptedMatrix, MatrixError> {
        self.apply(Op::Transpose { of: a.node() }, &[a])
    }

    /// The sum over rows (axis 0) or columns (axis 1).
    ///
    /// # Errors
    /// As [`Server::matmul`].
    pub fn sum(&self, a: &EncryptedMatrix, axis: u8) -> Result<EncryptedMatrix, MatrixError> {
        self.apply(Op::Sum { of: a.node(), axis }, &[a])
    }

    /// The value of the whole expression from its inputs, in any order, each once.
    ///
    /// # Errors
    /// As [`Server::matmul`]; [`MatrixError::Count`] for a missing or surplus input.
    pub fn run(&self, inputs: &[EncryptedMatrix]) -> Result<EncryptedMatrix, MatrixError> {
        let expr = self.plan().expression();
        if inputs.len() != expr.inputs().len() {
            let (found, expected) = (inputs.len(), expr.inputs().len());
            return Err(MatrixError::Count { what: "inputs of the plan", found, expected });
        }
        let mut values: Vec<Option<EncryptedMatrix>> = vec![None; expr.nodes().len()];
        for value in inputs {
            expect_plan(self.plan(), value)?;
            values[value.node()] = Some(value.clone());
        }
        let mut uses = vec![0usize; values.len()];
        expr.nodes().iter().flat_map(Op::operands).for_each(|o| uses[o] += 1);
        for (at, op) in expr.nodes().iter().enumerate() {
            if values[at].is_some() {
                continue;
            }
            if let Op::Input { input } = op {
                return Err(MatrixError::NotPlanned {
                    operation: "a run without all inputs",
                    planned: format!("{} is missing", expr.inputs()[*input].name),
                });
            }
            let operands: Vec<EncryptedMatrix> = op.operands().filter_map(|o| values[o].clone()).collect();
            let value = self.apply(*op, &operands.iter().collect::<Vec<_>>())?;
            values[at] = Some(value);
            for o in op.operands() {
                // What nobody needs any more gives its memory back.
                uses[o] -= 1;
                if uses[o] == 0 {
                    values[o] = None;
                }
            }
        }
        let missing = || MatrixError::NotPlanned { operation: "the result", planned: String::new() };
        values[expr.output()].take().ok_or_else(missing)
    }

    fn apply(&self, op: Op, operands: &[&EncryptedMatrix]) -> Result<EncryptedMatrix, MatrixError> {
        let plan = self.plan();
        operands.iter().try_for_each(|v| expect_plan(plan, v))?;
        for v in operands {
            if v.key() != self.key_id() {
                let (found, expected) = (v.key(), self.key_id());
                return Err(HeError::WrongKey { what: "the encrypted matrix", found, expected }.into());
            }
        }
        let nodes = plan.expression().nodes();
        let swapped = match op {
            Op::Add { left, right } => Op::Add { left: right, right: left },
            Op::Mul { left, right } => Op::Mul { left: right, right: left },
            other => other,
        };
        let mut operands = operands.to_vec();
        let node = nodes.iter().position(|n| *n == op).or_else(|| {
            let at = nodes.iter().position(|n| *n == swapped)?;
            operands.reverse();
            Some(at)
        });
        let Some(node) = node else {
            return Err(MatrixError::NotPlanned { operation: op.name(), planned: plan.expression().describe() });
        };
        let values: Vec<&[Ciphertext]> = operands.iter().map(|v| v.ciphertexts()).collect();
        let mut out = self.0.threads.run(|| plan.engine().evaluate(plan.goal(), &self.0.evaluator, node, &values))?;
        if plan.release().is_some() && node == plan.expression().output() {
            // Whoever releases it looks for the plan's own error.
            let error = plan.expected().error;
            out = out.into_iter().map(|c| c.with_error_of(error)).collect();
        }
        EncryptedMatrix::new(plan, node, self.key_id(), out)
    }
}

/// A plaintext as a ciphertext that anybody can read.
pub(super) fn trivial(params: &Params, key: KeyId, p: &Plaintext) -> Result<Ciphertext, HeError> {
    let parts = vec![p.poly().clone(), Poly::zero(p.poly().basis())];
    let state = (p.scale(), p.bound(), p.error_bound() * p.scale());
    Ciphertext::from_parts(params, key, parts, p.level(), state)
}

fn same_shape(operation: &'static str, a: &EncryptedMatrix, b: &EncryptedMatrix) -> Result<(), MatrixError> {
    if a.shape() != b.shape() {
        return Err(MatrixError::Shapes { operation, left: a.shape(), right: b.shape() });
    }
    Ok(())
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({:?}, key {}, {:?})", self.plan(), self.key_id(), self.0.threads)
    }
}
