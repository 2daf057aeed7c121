//! Exact computations under built parameters: encryption, evaluation, decryption.

use super::blocks::Role;
use super::garner::Garner;
use super::operation::{elementwise, multiplies, number_added};
use super::request::Form;
use super::spec::ExactPlan;
use crate::claims::field;
use crate::error::MatrixError;
use std::sync::atomic::{AtomicUsize, Ordering};
use sudare_exact::ExactError;
use sudare_exact::bgv::{Ciphertext, Decryptor, Encryptor, Evaluator};
use sudare_exact::plan::EXACT;
use sudare_exact::{Encoder, IntegerParams, PlainFactor, Plaintext, Wrap};
use sudare_expr::Matrix;
use sudare_ring::threads;
use sudare_rlwe::keys::{EvalKeys, PublicKey, SecretKey};
use sudare_rlwe::{KeyId, Params, RlweError};

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

/// An exact computation under built parameters.
pub struct ExactEngine {
    plan: ExactPlan,
    /// One set for each plaintext modulus, all over the same ring and primes.
    params: Vec<IntegerParams>,
    rlwe: Params,
}

/// An operand in the forms that an operation takes it in, under one plaintext modulus.
pub(super) enum Side<'v> {
    Encrypted(&'v [Form], &'v [Ciphertext]),
    Plain(Vec<Form>, Vec<Plaintext>),
    /// What ciphertexts are multiplied by.
    Factor(Vec<Form>, Vec<PlainFactor>),
}

impl ExactEngine {
    /// Builds the parameters and checks them against the bound on the noise.
    ///
    /// # Errors
    /// [`MatrixError::PlanField`] for parameters that do not hold it, [`MatrixError::He`].
    pub fn new(plan: ExactPlan) -> Result<Self, MatrixError> {
        let spec = &plan.spec;
        let rlwe = spec.params.build(EXACT)?;
        let params = spec.moduli.iter().map(|t| IntegerParams::new(&rlwe, *t)).collect::<Result<Vec<_>, _>>()?;
        for p in &params {
            let fresh = p.noise().message() + p.noise().secret_encryption().max(p.noise().public_encryption());
            let noise = plan.request.noise(spec.blocks, (p.degree() as f64, p.t() as f64), fresh);
            if noise.log2() >= p.noise().log_limit(rlwe.max_level()) {
                let expected = "primes that hold the noise of the result";
                return Err(field("params.q_bits", format!("{:?} bits", spec.params.q_bits), expected));
            }
        }
        Ok(Self { plan, params, rlwe })
    }

    /// What is computed, and how.
    pub fn plan(&self) -> &ExactPlan {
        &self.plan
    }

    /// The set that keys belong to.
    pub fn params(&self) -> &Params {
        &self.rlwe
    }

    /// The sets of the plaintext moduli.
    pub fn moduli(&self) -> &[IntegerParams] {
        &self.params
    }

    /// Refuses matrices of another shape, with elements over the planned bound, or another number of them.
    ///
    /// # Errors
    /// [`MatrixError::Count`]; [`MatrixError::PlannedShape`]; [`MatrixError::OutOfRange`] for an element over its bound.
    pub fn check(&self, input: usize, matrices: &[Matrix<i128>]) -> Result<(), MatrixError> {
        let (expr, batch) = (&self.plan.request.expr, self.plan.request.batch);
        let spec = &expr.inputs()[input];
        if matrices.len() != batch {
            return Err(MatrixError::Count { what: "matrices", found: matrices.len(), expected: batch });
        }
        let integers = expr.info(expr.node_of_input(input)).integers;
        let high = integers.ok_or_else(no_operand)?;
        matrices.iter().try_for_each(|matrix| check(matrix, (spec.rows, spec.cols), high))
    }

    /// Encrypts the input at a node, which was checked: in every form that its operations take.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn encrypt(
        &self,
        node: usize,
        matrices: &[Matrix<i128>],
        key: EncryptionKey<'_>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Residues, MatrixError> {
        let blocks = self.blocks(self.plan.request.forms(node), matrices)?;
        let (all, done) = (blocks.len() * self.params.len(), AtomicUsize::new(0));
        progress(0, all);
        let under = |params: &IntegerParams| {
            let encoder = Encoder::new(params);
            let encryptor = match key {
                EncryptionKey::Secret(key) => Encryptor::with_secret_key(params, key),
                EncryptionKey::Public(key) => Encryptor::with_public_key(params, key),
            }?;
            let one = |at: usize| {
                let made = encryptor.encrypt(&self.encode(&encoder, &blocks[at])?);
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, all);
                made
            };
            threads::map(blocks.len(), one).into_iter().collect::<Result<Vec<_>, ExactError>>()
        };
        Ok(self.params.iter().map(under).collect::<Result<_, _>>()?)
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

    /// Computes a node from its operands' values.
    ///
    /// # Errors
    /// [`MatrixError::He`]; [`MatrixError::OutOfRange`] for plain values of 128 bits.
    pub fn evaluate(&self, node: usize, key: KeyId, operands: &[ExactOperand<'_>]) -> Result<ExactValue, MatrixError> {
        let plain = operands.iter().map(|o| match o {
            ExactOperand::Plain(matrices) => Some(*matrices),
            ExactOperand::Encrypted(_) => None,
        });
        if let Some(lists) = plain.collect::<Option<Vec<&[Matrix<i128>]>>>() {
            let operation = &self.plan.request.expr.nodes()[node].operation;
            let one = |at: usize| operation.of_plain(&lists.iter().map(|list| &list[at]).collect::<Vec<_>>());
            return Ok(ExactValue::Plain((0..self.plan.request.batch).map(one).collect::<Result<_, _>>()?));
        }
        let under = |at: usize| self.evaluate_under(at, node, key, operands);
        Ok(ExactValue::Encrypted((0..self.params.len()).map(under).collect::<Result<_, _>>()?))
    }

    /// The same under one plaintext modulus.
    fn evaluate_under(
        &self,
        modulus: usize,
        node: usize,
        key: KeyId,
        operands: &[ExactOperand<'_>],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        let (request, params) = (&self.plan.request, &self.params[modulus]);
        let own = &request.expr.nodes()[node];
        let sides = own.operands.iter().zip(operands).map(|(o, value)| self.side(modulus, node, *o, value));
        let sides = sides.collect::<Result<Vec<_>, MatrixError>>()?;
        let evaluator = Evaluator::new(params, EvalKeys::new(params, key))?;
        let (encoder, blocks) = (Encoder::new(params), self.plan.spec.blocks);
        let mut out = Vec::with_capacity(request.ciphertexts(blocks, node));
        for form in request.forms(node) {
            let sources = request.operands(node, form)?;
            let added = match number_added(&own.operation) {
                Some(by) => {
                    let (rows, cols) = request.expr.info(node).shape;
                    let matrix = Matrix::from_fn(rows, cols, |_, _| by)?;
                    let blocks = self.blocks(std::slice::from_ref(form), &[matrix])?;
                    blocks.iter().map(|b| self.encode(&encoder, b)).collect::<Result<Vec<_>, _>>()?
                }
                None => Vec::new(),
            };
            let count = request.count(blocks, form.role);
            // A matrix product, or one element by element that is summed: over blocks of its factors.
            let sums = form.role.terms().is_none() && sources.iter().any(|(_, f)| f.role.terms().is_some());
            for member in 0..request.batch {
                // Where each operand's blocks begin, and what holds them.
                let place = |(operand, form): &(usize, Form)| {
                    let at = own.operands.iter().position(|o| o == operand).ok_or_else(no_operand)?;
                    Ok((&sides[at], sides[at].place(self, form, member)))
                };
                let found = sources.iter().map(place).collect::<Result<Vec<(&Side<'_>, usize)>, ExactError>>()?;
                let one = |at: usize| match sums {
                    true => self.dot(&evaluator, &sources, &found, at),
                    false => elementwise(&evaluator, &own.operation, &found, added.get(at), at),
                };
                let made = threads::map(count, one).into_iter().collect::<Result<Vec<_>, ExactError>>()?;
                out.extend(made);
            }
        }
        Ok(out)
    }

    /// An operand under a plaintext modulus, in the forms that a node takes it in.
    fn side<'v>(
        &'v self,
        modulus: usize,
        node: usize,
        operand: usize,
        value: &ExactOperand<'v>,
    ) -> Result<Side<'v>, MatrixError> {
        let (request, params) = (&self.plan.request, &self.params[modulus]);
        let matrices = match value {
            ExactOperand::Encrypted(lists) => return Ok(Side::Encrypted(request.forms(operand), lists[modulus])),
            ExactOperand::Plain(matrices) => matrices,
        };
        let mut forms: Vec<Form> = Vec::new();
        for form in request.forms(node) {
            let sources = request.operands(node, form)?.into_iter().filter(|(o, _)| *o == operand);
            for (_, form) in sources {
                if !forms.contains(&form) {
                    forms.push(form);
                }
            }
        }
        let (blocks, encoder) = (self.blocks(&forms, matrices)?, Encoder::new(params));
        if multiplies(&request.expr.nodes()[node].operation) {
            let factor = |at: usize| self.encode(&encoder, &blocks[at])?.factor(params.max_level());
            let made = threads::map(blocks.len(), factor).into_iter().collect::<Result<_, ExactError>>()?;
            return Ok(Side::Factor(forms, made));
        }
        let made = threads::map(blocks.len(), |at| self.encode(&encoder, &blocks[at]));
        Ok(Side::Plain(forms, made.into_iter().collect::<Result<_, _>>()?))
    }

    /// One block of a sum of products: Σ_t left(row, t) · right(t, column).
    fn dot(
        &self,
        evaluator: &Evaluator,
        sources: &[(usize, Form)],
        found: &[(&Side<'_>, usize)],
        at: usize,
    ) -> Result<Ciphertext, ExactError> {
        let (request, blocks) = (&self.plan.request, self.plan.spec.blocks);
        let columns = blocks.grid(request.shape, Role::Result).1;
        let (row, column) = (at / columns, at % columns);
        let inner = sources[0].1.role.terms().ok_or_else(no_operand)?.div_ceil(blocks.b);
        let place = |which: usize, t: usize| {
            let first = found[which].1;
            match sources[which].1.role {
                Role::Left(_) => first + row * inner + t,
                Role::Right(_) => first + t * columns + column,
                Role::Result | Role::Everywhere => first + at,
            }
        };
        match (found[0].0, found[1].0) {
            (Side::Encrypted(_, x), Side::Encrypted(_, y)) => {
                let a: Vec<_> = (0..inner).map(|t| &x[place(0, t)]).collect();
                let b: Vec<_> = (0..inner).map(|t| &y[place(1, t)]).collect();
                evaluator.dot(&a, &b)
            }
            (Side::Encrypted(_, x), Side::Factor(_, y)) => {
                sum(evaluator, (0..inner).map(|t| evaluator.mul_factor(&x[place(0, t)], &y[place(1, t)])))
            }
            (Side::Factor(_, x), Side::Encrypted(_, y)) => {
                sum(evaluator, (0..inner).map(|t| evaluator.mul_factor(&y[place(1, t)], &x[place(0, t)])))
            }
            _ => Err(no_operand()),
        }
    }

    /// Decrypts the results of a batch, exactly.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for an operand, [`MatrixError::He`] for another key.
    pub fn decrypt(
        &self,
        node: usize,
        value: &[&[Ciphertext]],
        secret: &SecretKey,
    ) -> Result<Vec<Matrix<i128>>, MatrixError> {
        let (request, spec) = (&self.plan.request, &self.plan.spec);
        if node != request.expr.output() {
            return Err(MatrixError::NotPlanned {
                operation: "decryption of an operand",
                planned: "the result is decrypted; an operand is encrypted in a form of its own".into(),
            });
        }
        let under = |(params, list): (&IntegerParams, &&[Ciphertext])| {
            let (encoder, decryptor) = (Encoder::new(params), Decryptor::new(params, secret)?);
            let one = |at: usize| encoder.decode_unsigned(&decryptor.decrypt(&list[at])?, request.packing);
            threads::map(list.len(), one).into_iter().collect::<Result<Vec<_>, ExactError>>()
        };
        let residues = self.params.iter().zip(value).map(under).collect::<Result<Vec<_>, _>>()?;
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
}

impl Side<'_> {
    /// Where the blocks of a matrix of the batch in a form begin.
    fn place(&self, engine: &ExactEngine, form: &Form, member: usize) -> usize {
        let forms: &[Form] = match self {
            Side::Encrypted(forms, _) => forms,
            Side::Plain(forms, _) | Side::Factor(forms, _) => forms,
        };
        engine.plan.request.place(engine.plan.spec.blocks, forms, form, member)
    }
}

fn sum(e: &Evaluator, terms: impl Iterator<Item = Result<Ciphertext, ExactError>>) -> Result<Ciphertext, ExactError> {
    let mut total: Option<Ciphertext> = None;
    for term in terms {
        let term = term?;
        match &mut total {
            Some(total) => e.add_assign(total, &term)?,
            None => total = Some(term),
        }
    }
    total.ok_or_else(no_operand)
}

pub(super) fn no_operand() -> ExactError {
    RlweError::Internal { what: "an exact operation has no such operand" }.into()
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
