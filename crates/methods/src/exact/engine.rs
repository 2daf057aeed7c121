//! Exact computations under built parameters: encryption, evaluation, decryption.

use super::circuit::{Circuit, Side};
use super::garner::Garner;
use super::operation::{multiplies, no_operand, number_added};
use super::request::Form;
use super::spec::ExactPlan;
use crate::error::MatrixError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sudare_exact::ExactError;
use sudare_exact::bgv::{Ciphertext, Decryptor, Encryptor, Evaluator};
use sudare_exact::refresh::{RefreshParams, Refresher};
use sudare_exact::{Encoder, IntegerParams, Plaintext, Wrap};
use sudare_expr::{Expr, Matrix, Operation};
use sudare_ring::threads;
use sudare_rlwe::keys::{EvalKeys, KeySource, PublicKey, SecretKey};
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::{KeyId, Params};

/// For each plaintext modulus the ciphertexts of a value: form by form, matrix by matrix of the batch, row by row of
/// blocks.
pub type Residues = Vec<Vec<Ciphertext>>;

/// A key that encrypts.
#[derive(Clone, Copy)]
pub enum EncryptionKey<'k> {
    /// The owner's.
    Secret(&'k SecretKey),
    /// Anybody's.
    Public(&'k PublicKey),
}

impl EncryptionKey<'_> {
    /// What encrypts by it under a plaintext modulus.
    ///
    /// # Errors
    /// `RlweError::WrongParameters` for a key of other parameters.
    pub(super) fn encryptor<'e>(&'e self, params: &IntegerParams) -> Result<Encryptor<'e>, ExactError> {
        match self {
            Self::Secret(key) => Encryptor::with_secret_key(params, key),
            Self::Public(key) => Encryptor::with_public_key(params, key),
        }
    }
}

/// What computes integers exactly under built parameters: by one product without keys, or to any depth with refreshes.
pub trait IntegerEngine: Send + Sync {
    /// The set that keys belong to.
    fn params(&self) -> &Params;

    /// The sets of the plaintext moduli.
    fn moduli(&self) -> &[IntegerParams];

    /// The set by which values are refreshed, if some are.
    fn refresh(&self) -> Option<&RefreshParams> {
        None
    }

    /// The largest absolute value of the result.
    fn largest(&self) -> i128;

    /// Refuses matrices of another shape, with elements over the planned bound, or another number of them.
    ///
    /// # Errors
    /// [`MatrixError::Count`]; [`MatrixError::PlannedShape`]; [`MatrixError::OutOfRange`] for an element over its bound.
    fn check(&self, input: usize, matrices: &[Matrix<i128>]) -> Result<(), MatrixError>;

    /// Encrypts the input at a node, which was checked: in every form that its operations take.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    fn encrypt(
        &self,
        node: usize,
        matrices: &[Matrix<i128>],
        key: EncryptionKey<'_>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Residues, MatrixError>;

    /// Computes a node from its operands' values, by the name of their key, a server's keys and what refreshes.
    ///
    /// # Errors
    /// [`MatrixError::He`]; [`MatrixError::OutOfRange`] for plain values of 128 bits.
    fn evaluate(
        &self,
        node: usize,
        by: (KeyId, &Arc<dyn KeySource>, Option<&Refresher>),
        operands: &[ExactOperand<'_>],
    ) -> Result<ExactValue, MatrixError>;

    /// Decrypts the results of a batch, exactly.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for an operand, [`MatrixError::He`] for another key.
    fn decrypt(
        &self,
        node: usize,
        value: &[&[Ciphertext]],
        secret: &SecretKey,
    ) -> Result<Vec<Matrix<i128>>, MatrixError> {
        let under = |(params, list): (&IntegerParams, &&[Ciphertext])| {
            let decryptor = Decryptor::new(params, secret)?;
            let one = |at: usize| decryptor.decrypt(&list[at]);
            threads::map(list.len(), one).into_iter().collect::<Result<Vec<_>, ExactError>>()
        };
        let plain = self.moduli().iter().zip(value).map(under).collect::<Result<Vec<_>, _>>()?;
        self.decode(node, &plain)
    }

    /// The results of a batch from what was decrypted under each modulus.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for an operand.
    fn decode(&self, node: usize, plain: &[Vec<Plaintext>]) -> Result<Vec<Matrix<i128>>, MatrixError>;

    /// How several parties open a result: the bound on its noise under each modulus, and the policy of each ciphertext. None where
    /// the key has one owner.
    fn opening(&self) -> Option<(&[f64], ReleasePolicy)> {
        None
    }
}

/// A value that an operation takes: the matrices of a batch, or a list of ciphertexts for each plaintext modulus.
pub enum ExactOperand<'v> {
    /// Matrices that the server sees.
    Plain(&'v [Matrix<i128>]),
    /// Ciphertexts.
    Encrypted(Vec<&'v [Ciphertext]>),
}

/// What an operation makes.
pub enum ExactValue {
    /// Of plain operands alone.
    Plain(Vec<Matrix<i128>>),
    /// Of an encrypted one.
    Encrypted(Residues),
}

impl ExactValue {
    /// What an operation makes of plain operands; `None` where one is encrypted.
    pub(super) fn of_plain(operation: &Operation, operands: &[ExactOperand<'_>]) -> Result<Option<Self>, MatrixError> {
        let plain = operands.iter().map(|o| match o {
            ExactOperand::Plain(matrices) => Some(*matrices),
            ExactOperand::Encrypted(_) => None,
        });
        let Some(lists) = plain.collect::<Option<Vec<&[Matrix<i128>]>>>() else { return Ok(None) };
        let batch = lists.first().map_or(0, |list| list.len());
        let one = |at: usize| operation.of_plain(&lists.iter().map(|list| &list[at]).collect::<Vec<_>>());
        Ok(Some(Self::Plain((0..batch).map(one).collect::<Result<_, _>>()?)))
    }
}

/// An exact computation under built parameters.
pub struct ExactEngine {
    plan: ExactPlan,
}

impl ExactEngine {
    /// The engine of a plan.
    pub fn new(plan: ExactPlan) -> Self {
        Self { plan }
    }

    /// What is computed, and how.
    pub fn plan(&self) -> &ExactPlan {
        &self.plan
    }

    /// Blocks of the matrices of a batch in all forms.
    fn blocks(&self, forms: &[Form], matrices: &[Matrix<i128>]) -> Result<Vec<Vec<i128>>, MatrixError> {
        let (request, blocks) = (&self.plan.request, self.plan.spec.blocks);
        let pairs: Vec<_> = forms.iter().flat_map(|form| matrices.iter().map(move |m| (form, m))).collect();
        let made = threads::map(pairs.len(), |at| pairs[at].0.blocks(request, blocks, pairs[at].1));
        Ok(made.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    fn encode(&self, encoder: &Encoder, block: &[i128]) -> Result<Plaintext, ExactError> {
        let t = i128::from(encoder.params().t());
        let residues: Vec<u64> = block.iter().map(|x| x.rem_euclid(t) as u64).collect();
        encoder.encode_unsigned(&residues, self.plan.request.packing, Wrap::Refuse)
    }

    /// The same under one plaintext modulus.
    fn evaluate_under(
        &self,
        modulus: usize,
        node: usize,
        key: KeyId,
        operands: &[ExactOperand<'_>],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        let (request, params) = (&self.plan.request, &self.plan.params[modulus]);
        let evaluator = Evaluator::new(params, EvalKeys::new(params, key))?;
        let circuit = Circuit { request, blocks: self.plan.spec.blocks, evaluator: &evaluator };
        let own = &request.expr.nodes()[node];
        // In the forms that the node takes them in.
        let sides = own.operands.iter().zip(operands).map(|(operand, value)| {
            let matrices = match value {
                ExactOperand::Encrypted(lists) => return Ok(Side::Encrypted(request.forms(*operand), lists[modulus])),
                ExactOperand::Plain(matrices) => matrices,
            };
            let forms = circuit.taken(node, *operand)?;
            let plain = self.plain(params, &forms, matrices)?;
            if !multiplies(&own.operation) {
                return Ok(Side::Plain(forms, plain));
            }
            let factor = |at: usize| circuit.factor(*operand, || Ok(plain[at].clone()));
            let made = threads::map(plain.len(), factor).into_iter().collect::<Result<_, ExactError>>()?;
            Ok(Side::Factor(forms, made))
        });
        let mut sides = sides.collect::<Result<Vec<_>, MatrixError>>()?;
        if let Some(by) = number_added(&own.operation) {
            let (rows, cols) = request.expr.info(node).shape;
            let forms = request.forms(node).to_vec();
            let plain = self.plain(params, &forms, &[Matrix::from_fn(rows, cols, |_, _| by)?])?;
            sides.push(Side::Plain(forms, plain));
        }
        circuit.node(node, &sides)
    }

    /// Blocks of plain matrices in all forms, encoded.
    fn plain(
        &self,
        params: &IntegerParams,
        forms: &[Form],
        matrices: &[Matrix<i128>],
    ) -> Result<Vec<Plaintext>, MatrixError> {
        let (blocks, encoder) = (self.blocks(forms, matrices)?, Encoder::new(params));
        let made = threads::map(blocks.len(), |at| self.encode(&encoder, &blocks[at]));
        Ok(made.into_iter().collect::<Result<_, _>>()?)
    }
}

impl IntegerEngine for ExactEngine {
    fn params(&self) -> &Params {
        self.plan.params[0].rlwe()
    }

    fn moduli(&self) -> &[IntegerParams] {
        &self.plan.params
    }

    fn check(&self, input: usize, matrices: &[Matrix<i128>]) -> Result<(), MatrixError> {
        check_integers(&self.plan.request.expr, self.plan.request.batch, input, matrices)
    }

    fn encrypt(
        &self,
        node: usize,
        matrices: &[Matrix<i128>],
        key: EncryptionKey<'_>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Residues, MatrixError> {
        let blocks = self.blocks(self.plan.request.forms(node), matrices)?;
        let (all, done) = (blocks.len() * self.plan.params.len(), AtomicUsize::new(0));
        progress(0, all);
        let under = |params: &IntegerParams| {
            let encoder = Encoder::new(params);
            let encryptor = key.encryptor(params)?;
            let one = |at: usize| {
                let made = encryptor.encrypt(&self.encode(&encoder, &blocks[at])?);
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, all);
                made
            };
            threads::map(blocks.len(), one).into_iter().collect::<Result<Vec<_>, ExactError>>()
        };
        Ok(self.plan.params.iter().map(under).collect::<Result<_, _>>()?)
    }

    fn largest(&self) -> i128 {
        self.plan.largest()
    }

    fn evaluate(
        &self,
        node: usize,
        (key, ..): (KeyId, &Arc<dyn KeySource>, Option<&Refresher>),
        operands: &[ExactOperand<'_>],
    ) -> Result<ExactValue, MatrixError> {
        if let Some(made) = ExactValue::of_plain(&self.plan.request.expr.nodes()[node].operation, operands)? {
            return Ok(made);
        }
        let under = |at: usize| self.evaluate_under(at, node, key, operands);
        Ok(ExactValue::Encrypted((0..self.plan.params.len()).map(under).collect::<Result<_, _>>()?))
    }

    fn decode(&self, node: usize, plain: &[Vec<Plaintext>]) -> Result<Vec<Matrix<i128>>, MatrixError> {
        let (request, spec) = (&self.plan.request, &self.plan.spec);
        if node != request.expr.output() {
            return Err(MatrixError::NotPlanned {
                operation: "decryption of an operand",
                planned: "an operand is encrypted in a form of its own, and only the result is decrypted; keep the \
                          matrix that you encrypt"
                    .into(),
            });
        }
        let under = |(params, list): (&IntegerParams, &Vec<Plaintext>)| {
            let encoder = Encoder::new(params);
            let one = |at: usize| encoder.decode_unsigned(&list[at], request.packing);
            threads::map(list.len(), one).into_iter().collect::<Result<Vec<_>, ExactError>>()
        };
        let residues = self.plan.params.iter().zip(plain).map(under).collect::<Result<Vec<_>, _>>()?;
        let compose = Garner::new(&spec.moduli);
        let columns = spec.blocks.counts(request.shape)[2];
        let count = residues.first().map_or(0, Vec::len) / request.batch;
        let gather = |member: usize| {
            spec.blocks.gather(request.packing, request.shape, |row, column, places| {
                let block = member * count + row * columns + column;
                compose.centred(residues.iter().zip(&spec.moduli).map(|(lists, t)| {
                    let sum: u128 = lists[block][places.clone()].iter().map(|x| u128::from(*x)).sum();
                    (sum % u128::from(*t)) as u64
                }))
            })
        };
        (0..request.batch).map(gather).collect()
    }

    fn opening(&self) -> Option<(&[f64], ReleasePolicy)> {
        Some((&self.plan.noises, self.plan.policy?))
    }
}

/// Refuses matrices that an input of integers is not, or another number of them than a batch has.
pub(super) fn check_integers(
    expr: &Expr,
    batch: usize,
    input: usize,
    matrices: &[Matrix<i128>],
) -> Result<(), MatrixError> {
    let spec = &expr.inputs()[input];
    if matrices.len() != batch {
        return Err(MatrixError::Count { what: "matrices", found: matrices.len(), expected: batch });
    }
    let high = expr.info(expr.node_of_input(input)).integers.ok_or_else(no_operand)?;
    matrices.iter().try_for_each(|matrix| check(matrix, (spec.rows, spec.cols), high))
}

/// Refuses a matrix of another shape or with elements over a bound.
fn check(matrix: &Matrix<i128>, expected: (usize, usize), high: i128) -> Result<(), MatrixError> {
    let found = matrix.shape();
    if found != expected {
        return Err(MatrixError::PlannedShape { what: "the matrix", found, expected });
    }
    match matrix.data().iter().position(|x| !(-high..=high).contains(x)) {
        Some(at) => {
            let (row, col) = (at / expected.1, at % expected.1);
            Err(MatrixError::OutOfRange { row, col, low: -high, high })
        }
        None => Ok(()),
    }
}
