//! Exact products under built parameters: encoding, product, decoding.

use super::garner::Garner;
use super::spec::ExactSketch;
use crate::error::MatrixError;
use crate::expr::Op;
use crate::packing::IntMatrix;
use crate::plan::{Goal, field};
use crate::product::Operand;
use std::sync::atomic::{AtomicUsize, Ordering};
use sudare_he::HeError;
use sudare_he::bgv::{Ciphertext, Decryptor, Encryptor, Evaluator};
use sudare_he::integer::plan::EXACT;
use sudare_he::integer::{Encoder, IntegerParams, Packing, Wrap};
use sudare_ring::threads;
use sudare_rlwe::keys::{EvalKeys, SecretKey};
use sudare_rlwe::{KeyId, Params};

/// For each plaintext modulus the blocks of a matrix, row by row of blocks.
pub(crate) type Residues = Vec<Vec<Ciphertext>>;

/// An exact product under built parameters.
pub(crate) struct ExactEngine {
    sketch: ExactSketch,
    /// One set for each plaintext modulus, all over the same ring and primes.
    params: Vec<IntegerParams>,
    rlwe: Params,
}

impl ExactEngine {
    /// Builds the parameters and checks them against the bound on the noise.
    pub(crate) fn new(sketch: ExactSketch) -> Result<Self, MatrixError> {
        let spec = &sketch.spec;
        let rlwe = spec.params.build(EXACT)?;
        let params = spec.moduli.iter().map(|t| IntegerParams::new(&rlwe, *t)).collect::<Result<Vec<_>, _>>()?;
        let terms = spec.blocks.counts(sketch.request.shape)[1] as f64;
        for p in &params {
            let noise = p.noise().message() + p.noise().secret_encryption();
            let product = (p.t() as f64 * terms).log2() + 2.0 * noise.log2();
            if product >= p.noise().log_limit(rlwe.max_level()) {
                let expected = "primes that hold the noise of the product";
                return Err(field("params.q_bits", format!("{:?} bits", spec.params.q_bits), expected));
            }
        }
        Ok(Self { sketch, params, rlwe })
    }

    pub(crate) fn sketch(&self) -> &ExactSketch {
        &self.sketch
    }

    /// The set that keys belong to.
    pub(crate) fn params(&self) -> &Params {
        &self.rlwe
    }

    /// The sets of the plaintext moduli.
    pub(crate) fn moduli(&self) -> &[IntegerParams] {
        &self.params
    }

    /// Encrypts the input at a node.
    ///
    /// # Errors
    /// [`MatrixError::PlannedShape`]; [`MatrixError::OutOfRange`] for an element over the planned bound.
    pub(crate) fn encrypt(
        &self,
        goal: &Goal,
        node: usize,
        matrix: &IntMatrix,
        secret: &SecretKey,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Residues, MatrixError> {
        let (request, blocks) = (&self.sketch.request, self.sketch.spec.blocks);
        let right = usize::from(request.operand(node) == Some(Operand::Right));
        check(goal.expression.info(node).shape, request.bounds[right], matrix)?;
        let turned = request.operands[right].1.is_some().then(|| matrix.transpose());
        let matrix = turned.as_ref().unwrap_or(matrix);
        let [rows, inner, columns] = blocks.counts(request.shape);
        let (down, across) = if right == 0 { (rows, inner) } else { (inner, columns) };
        let coefficients = threads::map(down * across, |at| match right {
            0 => blocks.left(matrix, at / across, at % across),
            _ => blocks.right(matrix, at / across, at % across),
        });
        let (all, done) = (coefficients.len() * self.params.len(), AtomicUsize::new(0));
        progress(0, all);
        let under = |params: &IntegerParams| {
            let (encoder, t) = (Encoder::new(params), i128::from(params.t()));
            let encryptor = Encryptor::with_secret_key(params, secret)?;
            let one = |at: usize| {
                let residues: Vec<u64> = coefficients[at].iter().map(|x| x.rem_euclid(t) as u64).collect();
                let plain = encoder.encode_unsigned(&residues, Packing::Coefficients, Wrap::Refuse)?;
                let made = encryptor.encrypt(&plain);
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, all);
                made
            };
            threads::map(coefficients.len(), one).into_iter().collect::<Result<Vec<_>, HeError>>()
        };
        Ok(self.params.iter().map(under).collect::<Result<_, _>>()?)
    }

    /// Computes a node from its operands' values.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub(crate) fn evaluate(
        &self,
        op: Op,
        key: KeyId,
        operands: &[Vec<&[Ciphertext]>],
    ) -> Result<Residues, MatrixError> {
        match operands {
            // It was turned before it was encrypted.
            [one] if matches!(op, Op::Transpose { .. }) => Ok(one.iter().map(|list| list.to_vec()).collect()),
            [left, right] if matches!(op, Op::Matmul { .. }) => self.multiply(key, left, right),
            _ => Err(MatrixError::NoPlan { reason: format!("{} is no exact product", op.name()) }),
        }
    }

    fn multiply(&self, key: KeyId, left: &[&[Ciphertext]], right: &[&[Ciphertext]]) -> Result<Residues, MatrixError> {
        let [rows, inner, columns] = self.sketch.spec.blocks.counts(self.sketch.request.shape);
        let under = |(params, (x, y)): (&IntegerParams, (&&[Ciphertext], &&[Ciphertext]))| {
            let evaluator = Evaluator::new(params, EvalKeys::new(params, key))?;
            let one = |at: usize| {
                let (row, column) = (at / columns, at % columns);
                let a: Vec<_> = (0..inner).map(|t| &x[row * inner + t]).collect();
                let b: Vec<_> = (0..inner).map(|t| &y[t * columns + column]).collect();
                evaluator.dot(&a, &b)
            };
            threads::map(rows * columns, one).into_iter().collect::<Result<Vec<_>, HeError>>()
        };
        Ok(self.params.iter().zip(left.iter().zip(right)).map(under).collect::<Result<_, _>>()?)
    }

    /// Decrypts the result, exactly.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for an operand, [`MatrixError::He`] for another key.
    pub(crate) fn decrypt(
        &self,
        node: usize,
        value: &[&[Ciphertext]],
        secret: &SecretKey,
    ) -> Result<IntMatrix, MatrixError> {
        let (request, spec) = (&self.sketch.request, &self.sketch.spec);
        if node != request.output {
            return Err(MatrixError::NotPlanned {
                operation: "decryption of an operand",
                planned: "the result is decrypted; an operand is encrypted in a form of its own".into(),
            });
        }
        let under = |(params, list): (&IntegerParams, &&[Ciphertext])| {
            let (encoder, decryptor) = (Encoder::new(params), Decryptor::new(params, secret)?);
            let one = |at: usize| encoder.decode_unsigned(&decryptor.decrypt(&list[at])?, Packing::Coefficients);
            threads::map(list.len(), one).into_iter().collect::<Result<Vec<_>, HeError>>()
        };
        let residues = self.params.iter().zip(value).map(under).collect::<Result<Vec<_>, _>>()?;
        let (compose, columns) = (Garner::new(&spec.moduli), spec.blocks.counts(request.shape)[2]);
        spec.blocks.gather(request.shape, |row, column, at| {
            compose.centred(residues.iter().map(|lists| lists[row * columns + column][at]))
        })
    }
}

/// Refuses a matrix of another shape or with elements over a bound.
fn check(expected: (usize, usize), bound: u64, matrix: &IntMatrix) -> Result<(), MatrixError> {
    let (found, high) = (matrix.shape(), i128::from(bound));
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
