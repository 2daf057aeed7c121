//! Encrypted arrays of integers without a plan: exact modulo a prime, to any depth.

use super::QUIET;
use super::client::require_plan;
use super::context::public_bound;
use super::encrypted::Encrypted;
use super::server::Server;
use super::unplanned::{known, positive};
use std::fmt;
use std::sync::Arc;
use sudare_exact::bgv::{Bgv, Ciphertext};
use sudare_exact::refresh::{RefreshKeys, RefreshSet, Refresher};
use sudare_exact::{Evaluator, ExactError};
use sudare_expr::{Info, Matrix, Operation, operation::whole};
use sudare_methods::MatrixError;
use sudare_methods::error::PlanHash;
use sudare_methods::exact::{Arrays, EncryptionKey, ExactValue};
use sudare_ring::Threads;
use sudare_rlwe::keys::SecretKey;
use sudare_rlwe::security::Security;
use sudare_rlwe::{Counters, KeyId, RlweError};

/// What a server of a context of integers has.
pub(super) struct UnplannedIntegers {
    arrays: Arrays,
    refresher: Refresher,
    evaluator: Evaluator<Bgv>,
    hash: PlanHash,
}

impl UnplannedIntegers {
    fn new(arrays: Arrays, refresher: Refresher) -> Result<Self, MatrixError> {
        let evaluator = refresher.evaluator()?;
        let mut hasher = blake3::Hasher::new_derive_key("sudare context of integers v1");
        hasher.update(&arrays.set().hash().0);
        let hash = PlanHash(*hasher.finalize().as_bytes());
        Ok(Self { arrays, refresher, evaluator, hash })
    }

    /// The set.
    pub(super) fn arrays(&self) -> &Arrays {
        &self.arrays
    }

    /// The name on its arrays.
    pub(super) fn hash(&self) -> PlanHash {
        self.hash
    }

    /// The name of the key that they are under.
    pub(super) fn key(&self) -> KeyId {
        self.refresher.own_keys().id()
    }

    /// The level at which an array has to be refreshed, and that of a fresh one.
    pub(super) fn levels(&self) -> (usize, usize) {
        (self.arrays.set().input().0, self.arrays.set().output().0)
    }

    /// Bytes of keys and diagonals.
    pub(super) fn bytes(&self) -> usize {
        self.refresher.bytes() as usize
    }

    /// Operations done so far.
    pub(super) fn counters(&self) -> Counters {
        self.refresher.counters() + self.evaluator.counters()
    }

    fn made(&self, shape: (usize, usize), max_abs: f64, values: Vec<Ciphertext>) -> Result<Encrypted, MatrixError> {
        Encrypted::integers(self.hash, (self.key(), self.levels()), (shape, max_abs), self.arrays.params(), values)
    }

    /// An array that the server sees.
    pub(super) fn plain(&self, matrix: &Matrix) -> Result<Encrypted, MatrixError> {
        let (integers, max_abs) = (integers(matrix)?, matrix.max_abs().max(1.0));
        Ok(Encrypted::plain_integers(self.hash, integers, max_abs))
    }

    /// What an operation makes of arrays of one shape; an operand is refreshed first where what comes out could not be.
    pub(super) fn apply(&self, operation: &Operation, operands: &[&Encrypted]) -> Result<Encrypted, MatrixError> {
        let expected = operation.operands();
        if operands.len() != expected {
            return Err(MatrixError::Count { what: "operands", found: operands.len(), expected });
        }
        let known = |v: &&Encrypted| Info {
            shape: v.shape(),
            max_abs: v.max_abs(),
            integers: Some(v.max_abs() as i128),
            plain: v.is_plain(),
        };
        let infos: Vec<Info> = operands.iter().map(known).collect();
        for info in infos.iter().filter(|info| !info.plain) {
            self.arrays.check(operation, info.shape)?;
        }
        let made = operation.infer(&infos.iter().collect::<Vec<_>>())?;
        let values = operands.iter().map(|v| v.exact_operand()).collect::<Result<Vec<_>, _>>()?;
        match self.arrays.apply(&self.evaluator, Some(&self.refresher), operation, &values)? {
            ExactValue::Encrypted(lists) => self.made(made.shape, made.max_abs, only("plaintext moduli", lists)?),
            ExactValue::Plain(members) => {
                Ok(Encrypted::plain_integers(self.hash, only("matrices", members)?, made.max_abs))
            }
        }
    }

    /// The same array with the levels of a fresh one.
    pub(super) fn refresh(&self, a: &Encrypted, max_abs: Option<f64>) -> Result<Encrypted, MatrixError> {
        let (bound, lists) = (known(a, max_abs)?, a.residues()?);
        let fresh = lists.iter().flat_map(|list| list.iter()).map(|c| self.refresher.refresh(c));
        self.made(a.shape(), bound, fresh.collect::<Result<_, ExactError>>()?)
    }
}

/// The one of a list.
fn only<T>(what: &'static str, mut all: Vec<T>) -> Result<T, MatrixError> {
    match (all.pop(), all.len()) {
        (Some(one), 0) => Ok(one),
        (one, others) => Err(MatrixError::Count { what, found: others + usize::from(one.is_some()), expected: 1 }),
    }
}

/// A matrix of doubles that are integers.
fn integers(matrix: &Matrix) -> Result<Matrix<i128>, MatrixError> {
    let (_, cols) = matrix.shape();
    let elements = matrix.data().iter().enumerate().map(|(at, x)| {
        whole(*x).ok_or_else(|| MatrixError::NoPlan {
            reason: format!(
                "element ({}, {}) is not an integer below 2^53, and a context of integers takes no other; round it \
                 first",
                at / cols,
                at % cols
            ),
        })
    });
    Ok(Matrix::<i128>::new(matrix.rows(), cols, elements.collect::<Result<_, _>>()?)?)
}

/// Encrypts and decrypts arrays of integers, and has a server that computes with them, exactly modulo a prime t and to any
/// depth: arrays are refreshed where they have to be. Holds the secret key.
///
/// Results that are up to t/2 by their bounds are the integers themselves, larger ones what they are modulo t, from 0 on.
///
/// ```
/// use sudare_exact::refresh::RefreshSet;
/// use sudare_expr::{Matrix, Operation};
/// use sudare_rlwe::security::Security;
/// use sudare_session::IntegerContext;
///
/// # fn main() -> Result<(), sudare_methods::MatrixError> {
/// // A small ring is no secure one: Security::Bits128 is.
/// let context = IntegerContext::new(RefreshSet::X15, Security::Insecure, 1)?;
/// let x = context.encrypt(&Matrix::from_fn(1, 3, |_, j| j as f64 - 5.0)?, None)?;
/// let mut y = x.clone();
/// for _ in 0..6 {
///     y = context.server().apply(&Operation::Mul, &[&y, &x])?;
/// }
/// assert_eq!(context.decrypt(&y)?.data(), [(-5i128).pow(7).rem_euclid(65537), (-4i128).pow(7).rem_euclid(65537), 63350]);
/// # Ok(())
/// # }
/// ```
pub struct IntegerContext {
    secret: SecretKey,
    server: Server,
    threads: Arc<Threads>,
}

impl IntegerContext {
    /// A context with new keys by a set, on `threads` threads (0: one for each processor). A ring without security is small.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for more security than the set has; [`MatrixError::He`] if the system gives no entropy.
    pub fn new(set: RefreshSet, security: Security, threads: usize) -> Result<Self, MatrixError> {
        let threads = Arc::new(Threads::new(threads));
        let arrays = threads.run(|| Arrays::new(set, security))?;
        let secret = SecretKey::generate(arrays.params())?;
        let refresher = threads.run(|| Refresher::new(RefreshKeys::generate(&secret, arrays.set())?, None))?;
        let server = Server::of_integers(UnplannedIntegers::new(arrays, refresher)?, threads.clone());
        Ok(Self { secret, server, threads })
    }

    /// Bytes that the keys of a set and what is prepared will take.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for more security than the set has.
    pub fn memory(set: RefreshSet, security: Security) -> Result<u64, MatrixError> {
        let arrays = Arrays::new(set, security)?;
        Ok(arrays.set().key_bytes() + arrays.set().diagonal_bytes())
    }

    /// The side that computes; it holds no secret. Cloning it shares it.
    pub fn server(&self) -> &Server {
        &self.server
    }

    fn unplanned(&self) -> Result<&UnplannedIntegers, MatrixError> {
        let internal = RlweError::Internal { what: "a context of integers without its server" };
        self.server.integers().ok_or_else(|| internal.into())
    }

    /// The set's name, the prime t, and the elements of a ciphertext.
    ///
    /// # Errors
    /// None for a context that was made.
    pub fn arrays(&self) -> Result<&Arrays, MatrixError> {
        Ok(self.unplanned()?.arrays())
    }

    /// Encrypts a matrix of doubles that are integers up to `max_abs`. The bound is public; without one it is the least power
    /// of two that holds all elements.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for an element that is no integer; [`MatrixError::Expr`] for one over the bound;
    /// [`MatrixError::He`] for a bound that is no number above zero.
    pub fn encrypt(&self, matrix: &Matrix, max_abs: Option<f64>) -> Result<Encrypted, MatrixError> {
        let (unplanned, bound) = (self.unplanned()?, positive(max_abs.unwrap_or_else(|| public_bound(matrix)))?);
        matrix.check_bound(bound)?;
        let (key, integers) = (EncryptionKey::Secret(&self.secret), integers(matrix)?);
        let values = self.threads.run(|| unplanned.arrays.encrypt(&[integers], key, QUIET))?;
        unplanned.made(matrix.shape(), bound, values)
    }

    /// Decrypts an array: the integers themselves where its bound is at most t/2, else what they are modulo t, from 0 on.
    ///
    /// # Errors
    /// [`MatrixError::WrongPlan`] for another set, [`MatrixError::Exact`] for another key.
    pub fn decrypt(&self, value: &Encrypted) -> Result<Matrix<i128>, MatrixError> {
        let unplanned = self.unplanned()?;
        require_plan(unplanned.hash(), value)?;
        let (lists, known) = (value.residues()?, (value.shape(), value.max_abs() as i128));
        let values = only("plaintext moduli", lists)?;
        only("matrices", self.threads.run(|| unplanned.arrays.decrypt(known, values, &self.secret))?)
    }
}

impl fmt::Debug for IntegerContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IntegerContext({:?}, {:?})", self.server, self.secret)
    }
}
