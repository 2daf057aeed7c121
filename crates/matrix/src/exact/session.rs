//! Exact products: who encrypts, who computes, who decrypts.

use super::plan::ExactPlan;
use crate::error::MatrixError;
use crate::packing::IntMatrix;
use crate::product::Operand;
use std::sync::Arc;
use sudare_he::HeError;
use sudare_he::bgv::{Ciphertext, Decryptor, Encryptor, Evaluator};
use sudare_he::integer::{Encoder, IntegerParams, Packing, Wrap};
use sudare_ring::{Threads, threads};
use sudare_rlwe::keys::{EvalKeys, SecretKey};
use sudare_rlwe::wire::{Wire, WireError, peek};
use sudare_rlwe::{KeyId, RlweError};

/// What the bytes of an encrypted integer matrix start with.
const MARK: &[u8] = b"sudare integers 1\n";

/// An encrypted integer matrix: an operand of a planned product, or its result.
#[derive(Clone, Debug)]
pub struct EncryptedIntegers {
    plan: ExactPlan,
    operand: Operand,
    key: KeyId,
    /// For each modulus its blocks, row by row of blocks.
    blocks: Arc<Vec<Vec<Ciphertext>>>,
}

impl EncryptedIntegers {
    /// Which matrix of the product it is.
    pub fn operand(&self) -> Operand {
        self.operand
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        self.plan.spec.shape.of(self.operand)
    }

    /// The plan.
    pub fn plan(&self) -> &ExactPlan {
        &self.plan
    }

    /// The name of the secret key it is under.
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// Ciphertexts: for each modulus its blocks.
    pub fn ciphertexts(&self) -> &[Vec<Ciphertext>] {
        &self.blocks
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.blocks.iter().flatten().map(Ciphertext::bytes).sum()
    }

    /// Its bytes: a mark, which matrix it is, and one container for each ciphertext, in order.
    ///
    /// # Errors
    /// [`MatrixError::Wire`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, MatrixError> {
        let mut out = MARK.to_vec();
        out.push(self.operand as u8);
        for c in self.blocks.iter().flatten() {
            c.write_to(&mut out)?;
        }
        Ok(out)
    }

    /// Reads a matrix of a plan. Nothing is read that the plan does not ask for.
    ///
    /// # Errors
    /// [`MatrixError::Wire`], and as [`EncryptedIntegers::from_ciphertexts`].
    pub fn from_bytes(plan: &ExactPlan, bytes: &[u8]) -> Result<Self, MatrixError> {
        let corrupt = |what: &'static str| MatrixError::from(WireError::Corrupt { what });
        let Some((code, mut rest)) = bytes.strip_prefix(MARK).and_then(<[u8]>::split_first) else {
            return Err(corrupt("the mark of an encrypted integer matrix"));
        };
        let all = [Operand::Left, Operand::Right, Operand::Output];
        let Some(operand) = all.into_iter().find(|o| *o as u8 == *code) else {
            return Err(corrupt("the operand of an encrypted integer matrix"));
        };
        let params = plan.build()?;
        let each = plan.count(operand);
        let mut key = None;
        let mut blocks = Vec::with_capacity(params.len());
        for params in &params {
            let mut list = Vec::new();
            for _ in 0..each {
                let length = usize::try_from(peek(rest)?.total_bytes()).unwrap_or(usize::MAX);
                let Some((one, more)) = rest.split_at_checked(length) else {
                    return Err(corrupt("a ciphertext that ends early"));
                };
                let c = Ciphertext::from_bytes(params, one)?;
                key.get_or_insert(c.key());
                list.push(c);
                rest = more;
            }
            blocks.push(list);
        }
        match key {
            Some(key) if rest.is_empty() => Self::from_ciphertexts(plan, operand, key, blocks),
            _ => Err(corrupt("bytes after the last ciphertext")),
        }
    }

    /// Puts ciphertexts together that were taken apart.
    ///
    /// # Errors
    /// [`MatrixError::Count`] for another number of them than the plan says; [`MatrixError::Wire`]
    /// or [`MatrixError::He`] for ciphertexts of other parameters or keys.
    pub fn from_ciphertexts(
        plan: &ExactPlan,
        operand: Operand,
        key: KeyId,
        blocks: Vec<Vec<Ciphertext>>,
    ) -> Result<Self, MatrixError> {
        let all = plan.build()?;
        let expected = plan.count(operand);
        if blocks.len() != all.len() {
            let what = "plaintext moduli of the encrypted matrix";
            return Err(MatrixError::Count { what, found: blocks.len(), expected: all.len() });
        }
        for (params, list) in all.iter().zip(&blocks) {
            if list.len() != expected {
                return Err(MatrixError::Count { what: "blocks of the encrypted matrix", found: list.len(), expected });
            }
            for c in list {
                expect(params, c.params())?;
                if c.key() != key {
                    let (found, expected) = (c.key(), key);
                    return Err(HeError::Rlwe(RlweError::WrongKey { what: "the ciphertext", found, expected }).into());
                }
            }
        }
        Ok(Self { plan: plan.clone(), operand, key, blocks: Arc::new(blocks) })
    }
}

fn expect(expected: &IntegerParams, found: &IntegerParams) -> Result<(), MatrixError> {
    if found.same(expected) {
        return Ok(());
    }
    let (found, expected) = (found.hash(), expected.hash());
    Err(WireError::WrongParameters { found, expected }.into())
}

/// Encrypts the operands of a planned product and decrypts its result. Holds the secret key.
pub struct ExactClient {
    plan: ExactPlan,
    params: Vec<IntegerParams>,
    secret: SecretKey,
    threads: Arc<Threads>,
}

impl ExactClient {
    /// A client with a new secret key, on `threads` threads (0: one for each processor).
    ///
    /// # Errors
    /// As [`ExactPlan::build`]; [`MatrixError::He`] if the system gives no entropy.
    pub fn new(plan: &ExactPlan, threads: usize) -> Result<Self, MatrixError> {
        let params = plan.build()?;
        let secret = SecretKey::generate(&params[0])?;
        Self::with_secret_key(plan, secret, threads)
    }

    /// A client with a secret key of before.
    ///
    /// # Errors
    /// As [`ExactPlan::build`]; [`MatrixError::He`] if the key is one of other parameters.
    pub fn with_secret_key(plan: &ExactPlan, secret: SecretKey, threads: usize) -> Result<Self, MatrixError> {
        let params = plan.build()?;
        for p in &params {
            Decryptor::new(p, &secret)?;
        }
        Ok(Self { plan: plan.clone(), params, secret, threads: Arc::new(Threads::new(threads)) })
    }

    /// The plan.
    pub fn plan(&self) -> &ExactPlan {
        &self.plan
    }

    /// The secret key. Whoever gets it reads everything.
    pub fn secret_key(&self) -> &SecretKey {
        &self.secret
    }

    /// The secret key's public name.
    pub fn key_id(&self) -> KeyId {
        self.secret.id()
    }

    /// Encrypts an operand.
    ///
    /// # Errors
    /// [`MatrixError::PlannedShape`]; [`MatrixError::OutOfRange`] for an element over the planned
    /// bound; [`MatrixError::Method`] for a result, which is not encrypted.
    pub fn encrypt(&self, operand: Operand, matrix: &IntMatrix) -> Result<EncryptedIntegers, MatrixError> {
        let ExactPlan { spec, blocks, .. } = &self.plan;
        let (what, bound) = match operand {
            Operand::Left => ("the left operand", spec.left),
            Operand::Right => ("the right operand", spec.right),
            Operand::Output => {
                return Err(MatrixError::Method { method: "exact", reason: "a result is not encrypted".into() });
            }
        };
        let (found, expected) = (matrix.shape(), spec.shape.of(operand));
        if found != expected {
            return Err(MatrixError::PlannedShape { what, found, expected });
        }
        let high = i128::from(bound);
        if let Some(at) = matrix.data().iter().position(|x| !(-high..=high).contains(x)) {
            let (row, col) = (at / expected.1, at % expected.1);
            return Err(MatrixError::OutOfRange { row, col, low: -high, high });
        }
        let [rows, inner, columns] = blocks.counts(spec.shape);
        let (down, across) = if operand == Operand::Left { (rows, inner) } else { (inner, columns) };
        let made = self.threads.run(|| {
            let coefficients = threads::map(down * across, |at| match operand {
                Operand::Left => blocks.left(matrix, at / across, at % across),
                _ => blocks.right(matrix, at / across, at % across),
            });
            self.params
                .iter()
                .map(|params| {
                    let encoder = Encoder::new(params);
                    let encryptor = Encryptor::with_secret_key(params, &self.secret)?;
                    let one = |at: usize| {
                        let t = i128::from(params.t());
                        let residues: Vec<u64> = coefficients[at].iter().map(|x| x.rem_euclid(t) as u64).collect();
                        encryptor.encrypt(&encoder.encode_unsigned(&residues, Packing::Coefficients, Wrap::Refuse)?)
                    };
                    threads::map(coefficients.len(), one).into_iter().collect::<Result<Vec<_>, HeError>>()
                })
                .collect::<Result<Vec<_>, _>>()
        })?;
        Ok(EncryptedIntegers { plan: self.plan.clone(), operand, key: self.secret.id(), blocks: Arc::new(made) })
    }

    /// Decrypts a result, exactly.
    ///
    /// # Errors
    /// [`MatrixError::Method`] for an operand, [`MatrixError::He`] for another key.
    pub fn decrypt(&self, result: &EncryptedIntegers) -> Result<IntMatrix, MatrixError> {
        if result.operand != Operand::Output {
            return Err(MatrixError::Method { method: "exact", reason: "only results are decrypted".into() });
        }
        if result.plan != self.plan {
            let (found, expected) = (result.shape(), self.plan.spec.shape.of(Operand::Output));
            return Err(MatrixError::PlannedShape { what: "the result of another plan", found, expected });
        }
        let columns = self.plan.blocks.counts(self.plan.spec.shape)[2];
        let residues = self.threads.run(|| {
            self.params
                .iter()
                .zip(result.blocks.iter())
                .map(|(params, list)| {
                    let (encoder, decryptor) = (Encoder::new(params), Decryptor::new(params, &self.secret)?);
                    let one =
                        |at: usize| encoder.decode_unsigned(&decryptor.decrypt(&list[at])?, Packing::Coefficients);
                    threads::map(list.len(), one).into_iter().collect::<Result<Vec<_>, HeError>>()
                })
                .collect::<Result<Vec<_>, _>>()
        })?;
        let compose = Garner::new(&self.plan.moduli);
        self.plan.blocks.gather(self.plan.spec.shape, |row, column, at| {
            compose.centred(residues.iter().map(|lists| lists[row * columns + column][at]))
        })
    }
}

impl std::fmt::Debug for ExactClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ExactClient({:?}, {:?})", self.plan.spec, self.secret)
    }
}

/// Multiplies encrypted integer matrices. It holds no key at all.
#[derive(Clone, Debug)]
pub struct ExactServer {
    plan: ExactPlan,
    params: Vec<IntegerParams>,
    threads: Arc<Threads>,
}

impl ExactServer {
    /// A server for a plan, on `threads` threads (0: one for each processor).
    ///
    /// # Errors
    /// As [`ExactPlan::build`].
    pub fn new(plan: &ExactPlan, threads: usize) -> Result<Self, MatrixError> {
        Ok(Self { plan: plan.clone(), params: plan.build()?, threads: Arc::new(Threads::new(threads)) })
    }

    /// The plan.
    pub fn plan(&self) -> &ExactPlan {
        &self.plan
    }

    /// The product of both operands.
    ///
    /// # Errors
    /// [`MatrixError::Method`] for other operands than the plan's left and right one,
    /// [`MatrixError::He`] for operands under different keys.
    pub fn multiply(
        &self,
        left: &EncryptedIntegers,
        right: &EncryptedIntegers,
    ) -> Result<EncryptedIntegers, MatrixError> {
        let planned = [(left, Operand::Left), (right, Operand::Right)];
        if planned.iter().any(|(x, operand)| x.operand != *operand || x.plan != self.plan) {
            let reason = "it multiplies the left by the right operand of its own plan".into();
            return Err(MatrixError::Method { method: "exact", reason });
        }
        if left.key != right.key {
            let (found, expected) = (right.key, left.key);
            return Err(HeError::Rlwe(RlweError::WrongKey { what: "the right operand", found, expected }).into());
        }
        let [rows, inner, columns] = self.plan.blocks.counts(self.plan.spec.shape);
        let blocks = self.threads.run(|| {
            self.params
                .iter()
                .zip(left.blocks.iter().zip(right.blocks.iter()))
                .map(|(params, (x, y))| {
                    let evaluator = Evaluator::new(params, EvalKeys::new(params, left.key))?;
                    let one = |at: usize| {
                        let (row, column) = (at / columns, at % columns);
                        let a: Vec<_> = (0..inner).map(|t| &x[row * inner + t]).collect();
                        let b: Vec<_> = (0..inner).map(|t| &y[t * columns + column]).collect();
                        evaluator.dot(&a, &b)
                    };
                    threads::map(rows * columns, one).into_iter().collect::<Result<Vec<_>, HeError>>()
                })
                .collect::<Result<Vec<_>, _>>()
        })?;
        Ok(EncryptedIntegers {
            plan: self.plan.clone(),
            operand: Operand::Output,
            key: left.key,
            blocks: Arc::new(blocks),
        })
    }
}

/// Composition of residues modulo coprime moduli, digit by digit (Garner).
struct Garner {
    moduli: Vec<u64>,
    /// For each modulus the inverse of the product of those before it.
    inverses: Vec<u64>,
    product: i128,
}

impl Garner {
    fn new(moduli: &[u64]) -> Self {
        let product = moduli.iter().fold(1i128, |all, t| all * i128::from(*t));
        let inverse = |i: usize| {
            let t = i128::from(moduli[i]);
            let before = moduli[..i].iter().fold(1i128, |all, u| all * i128::from(*u) % t);
            inverse(before, t) as u64
        };
        Self { moduli: moduli.to_vec(), inverses: (0..moduli.len()).map(inverse).collect(), product }
    }

    /// The integer of least absolute value with these residues.
    fn centred(&self, residues: impl Iterator<Item = u64>) -> i128 {
        let (mut value, mut before) = (0i128, 1i128);
        for ((t, inverse), residue) in self.moduli.iter().zip(&self.inverses).zip(residues) {
            let t = i128::from(*t);
            let digit = (i128::from(residue) - value % t).rem_euclid(t) * i128::from(*inverse) % t;
            value += digit * before;
            before *= t;
        }
        if value > self.product / 2 { value - self.product } else { value }
    }
}

/// a^−1 modulo a coprime t.
fn inverse(a: i128, t: i128) -> i128 {
    let (mut old, mut new, mut x, mut y) = (t, a.rem_euclid(t), 0i128, 1i128);
    while new != 0 {
        let quotient = old / new;
        (old, new) = (new, old - quotient * new);
        (x, y) = (y, x - quotient * y);
    }
    x.rem_euclid(t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residues_compose() {
        for moduli in [vec![3], vec![5, 7, 9, 11], vec![(1 << 58) + 1, (1 << 58) + 3]] {
            let garner = Garner::new(&moduli);
            let half = garner.product / 2;
            for value in [0, 1, -1, half, -half, half / 3, -half / 5] {
                let residues = moduli.iter().map(|t| value.rem_euclid(i128::from(*t)) as u64);
                assert_eq!(garner.centred(residues), value);
            }
        }
    }
}
