//! The side that owns the data.

use super::encrypted::Encrypted;
use super::keys::{ServerKeys, literal_of, refresh_of};
use super::moments::Moments;
use super::server::Server;
use super::{Progress, QUIET, release};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sudare_exact::refresh::RefreshKeys;
use sudare_expr::{ExprError, InputSpec, Matrix};
use sudare_he::circuits::bootstrapping::BootstrapKeys;
use sudare_he::ckks::{Ciphertext, Decrypted, Decryptor, Encryptor};
use sudare_methods::MatrixError;
use sudare_methods::error::PlanHash;
use sudare_methods::exact::EncryptionKey;
use sudare_methods::product::KeyDemand;
use sudare_plan::Plan;
use sudare_ring::{Threads, threads};
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, PublicKey, SecretKey};
use sudare_rlwe::wire::WireError;
use sudare_rlwe::{KeyId, Params};

/// Holds the secret key: makes all other keys, encrypts and decrypts, by a plan of any kind.
pub struct Client {
    plan: Plan,
    secret: SecretKey,
    threads: Arc<Threads>,
}

/// Encrypts under a public key; decrypts nothing.
pub struct PublicClient {
    plan: Plan,
    public: PublicKey,
    threads: Arc<Threads>,
}

impl Client {
    /// A client with a new secret key, on `threads` threads (0: one for each processor).
    ///
    /// # Errors
    /// [`MatrixError::He`] if the system gives no entropy.
    pub fn new(plan: &Plan, threads: usize) -> Result<Self, MatrixError> {
        Self::with_secret_key(plan, SecretKey::generate(plan.params())?, threads)
    }

    /// A client with a secret key of before.
    ///
    /// # Errors
    /// [`MatrixError::Wire`] if the key is one of other parameters than the plan's.
    pub fn with_secret_key(plan: &Plan, secret: SecretKey, threads: usize) -> Result<Self, MatrixError> {
        require_params(plan.params(), secret.params())?;
        if let Some(sharing) = plan.sharing() {
            return Err(MatrixError::NotPlanned {
                operation: "one owner's secret key",
                planned: format!("{} parties hold the key together; join them as one", sharing.parties),
            });
        }
        Ok(Self { plan: plan.clone(), secret, threads: Arc::new(Threads::new(threads)) })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Its threads.
    pub(super) fn pool(&self) -> &Threads {
        &self.threads
    }

    /// The secret key. Whoever gets it reads everything.
    pub fn secret_key(&self) -> &SecretKey {
        &self.secret
    }

    /// The secret key's public name.
    pub fn key_id(&self) -> KeyId {
        self.secret.id()
    }

    /// A new public key.
    ///
    /// # Errors
    /// [`MatrixError::He`] if the system gives no entropy.
    pub fn public_key(&self) -> Result<PublicKey, MatrixError> {
        Ok(self.threads.run(|| KeyGenerator::new(&self.secret)?.public_key())?)
    }

    /// The evaluation keys that the plan asks for.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn eval_keys(&self) -> Result<EvalKeys, MatrixError> {
        self.eval_keys_with(QUIET)
    }

    /// The same, telling how far it has come.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn eval_keys_with(&self, progress: Progress<'_>) -> Result<EvalKeys, MatrixError> {
        eval_keys(&self.secret, &self.plan.engine().keys(), &self.threads, progress)
    }

    /// All keys that a server of the plan asks for: evaluation keys, and those of refreshes where it has some.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn server_keys(&self, progress: Progress<'_>) -> Result<ServerKeys, MatrixError> {
        let eval = self.eval_keys_with(progress)?;
        let bootstrap = match literal_of(&self.plan) {
            Some(literal) => Some(self.threads.run(|| BootstrapKeys::generate(&self.secret, &literal.build()?))?),
            None => None,
        };
        let refresh = match refresh_of(&self.plan) {
            Some(set) => Some(Arc::new(self.threads.run(|| RefreshKeys::generate(&self.secret, set))?)),
            None => None,
        };
        Ok(ServerKeys { bootstrap, refresh, ..eval.into() })
    }

    /// A server for this client's data, with new evaluation keys and the same threads.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn server(&self) -> Result<Server, MatrixError> {
        Server::with_threads(&self.plan, self.server_keys(QUIET)?, self.threads.clone())
    }

    /// Encrypts an input of a plan without a batch.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for a name that the plan does not have,
    /// [`MatrixError::PlannedShape`], [`MatrixError::Expr`], [`MatrixError::Count`].
    pub fn encrypt(&self, name: &str, matrix: &Matrix) -> Result<Encrypted, MatrixError> {
        self.encrypt_batch(name, std::slice::from_ref(matrix), QUIET)
    }

    /// Encrypts an input of every member of a batch.
    ///
    /// # Errors
    /// As [`Client::encrypt`].
    pub fn encrypt_batch(
        &self,
        name: &str,
        matrices: &[Matrix],
        progress: Progress<'_>,
    ) -> Result<Encrypted, MatrixError> {
        let encryptor = Encryptor::with_secret_key(&self.secret)?;
        encrypt(&self.plan, &self.threads, &encryptor, self.secret.id(), (name, matrices), progress)
    }

    /// Encrypts an input of integers, telling how far it has come.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for a name that the plan does not have or a plan of real matrices,
    /// [`MatrixError::PlannedShape`]; [`MatrixError::OutOfRange`] for an element over the planned bound.
    pub fn encrypt_integers(
        &self,
        name: &str,
        matrix: &Matrix<i128>,
        progress: Progress<'_>,
    ) -> Result<Encrypted, MatrixError> {
        self.encrypt_integers_batch(name, std::slice::from_ref(matrix), progress)
    }

    /// Encrypts an input of integers of every member of a batch.
    ///
    /// # Errors
    /// As [`Client::encrypt_integers`]; [`MatrixError::Count`].
    pub fn encrypt_integers_batch(
        &self,
        name: &str,
        matrices: &[Matrix<i128>],
        progress: Progress<'_>,
    ) -> Result<Encrypted, MatrixError> {
        let key = (EncryptionKey::Secret(&self.secret), self.secret.id());
        encrypt_integers(&self.plan, &self.threads, key, (name, matrices), progress)
    }

    /// Decrypts the result of a plan without a batch, for the owner's eyes: what is shown to
    /// others needs a decryption for release.
    ///
    /// # Errors
    /// [`MatrixError::WrongPlan`], [`MatrixError::He`] for another key,
    /// [`MatrixError::NotPlanned`] for a value that is not to be decrypted,
    /// [`MatrixError::Count`] for a batch.
    pub fn decrypt(&self, value: &Encrypted) -> Result<Matrix, MatrixError> {
        self.only(self.decrypt_batch(value)?)
    }

    /// The matrix of a plan without a batch.
    fn only<M>(&self, mut all: Vec<M>) -> Result<M, MatrixError> {
        match (all.pop(), all.is_empty()) {
            (Some(one), true) => Ok(one),
            (_, _) => Err(MatrixError::Count { what: "matrices of the batch", found: self.plan.batch(), expected: 1 }),
        }
    }

    /// Decrypts the results of all members of a batch.
    ///
    /// # Errors
    /// As [`Client::decrypt`].
    pub fn decrypt_batch(&self, value: &Encrypted) -> Result<Vec<Matrix>, MatrixError> {
        require_plan(self.plan.hash(), value)?;
        let (engine, cts) = (self.plan.real()?, value.ciphertexts()?);
        let decryptor = Decryptor::new(&self.secret);
        self.threads.run(|| {
            let plain = threads::map(cts.len(), |i| decryptor.decrypt(&cts[i]));
            let plain = plain.into_iter().collect::<Result<Vec<Decrypted>, _>>()?;
            engine.decode(self.plan.goal(), value.node(), &plain)
        })
    }

    /// Decrypts the result of a plan of integers without a batch, exactly.
    ///
    /// # Errors
    /// [`MatrixError::WrongPlan`]; [`MatrixError::NotPlanned`] for an operand or a plan of real matrices;
    /// [`MatrixError::He`] for another key; [`MatrixError::Count`] for a batch.
    pub fn decrypt_integers(&self, value: &Encrypted) -> Result<Matrix<i128>, MatrixError> {
        self.only(self.decrypt_integers_batch(value)?)
    }

    /// Decrypts the results of integers of all members of a batch, exactly.
    ///
    /// # Errors
    /// As [`Client::decrypt_integers`].
    pub fn decrypt_integers_batch(&self, value: &Encrypted) -> Result<Vec<Matrix<i128>>, MatrixError> {
        require_plan(self.plan.hash(), value)?;
        let engine = self.plan.exact()?;
        self.threads.run(|| engine.decrypt(value.node(), &value.residues()?, &self.secret))
    }

    /// Decrypts statistics, for the owner's eyes.
    ///
    /// # Errors
    /// As [`Client::decrypt`]; [`MatrixError::NotPlanned`] for a plan of anything else.
    pub fn decrypt_moments(&self, value: &Encrypted) -> Result<Moments, MatrixError> {
        Moments::new(&self.plan, &self.decrypt(value)?, false)
    }

    /// Decrypts statistics for others to see: one of the releases that the plan declares. The errors that come with
    /// the moments are those of what is shown.
    ///
    /// # Errors
    /// As [`Client::decrypt_for_release`]; [`MatrixError::NotPlanned`] for a plan of anything else.
    pub fn decrypt_moments_for_release(&self, value: &Encrypted) -> Result<Moments, MatrixError> {
        Moments::new(&self.plan, &self.decrypt_for_release(value)?, true)
    }

    /// Decrypts the result of a plan without a batch, for others to see: one of the releases that
    /// the plan declares. Elements are within [`Summary::predicted_error`] of the true ones, but for
    /// a probability of 2^−30.
    ///
    /// The noise that hides their errors follows from the plan; what the file says of itself is
    /// only compared with it.
    ///
    /// [`Summary::predicted_error`]: sudare_plan::Summary::predicted_error
    /// `RlweError::NotAsComputed`: sudare_he::RlweError::NotAsComputed
    ///
    /// # Errors
    /// As [`Client::decrypt`]; [`MatrixError::NoRelease`] for a plan without releases;
    /// `RlweError::NotAsComputed` for a result that states a smaller error than the plan, another
    /// scale or another level; `RlweError::ReleasesUsedUp`; `RlweError::OtherRelease` if the key's
    /// releases were declared otherwise.
    pub fn decrypt_for_release(&self, value: &Encrypted) -> Result<Matrix, MatrixError> {
        self.only(self.decrypt_batch_for_release(value)?)
    }

    /// The same for all members of a batch, which are one release together.
    ///
    /// # Errors
    /// As [`Client::decrypt_for_release`].
    pub fn decrypt_batch_for_release(&self, value: &Encrypted) -> Result<Vec<Matrix>, MatrixError> {
        require_plan(self.plan.hash(), value)?;
        let policy = release::declared(self.plan.release(), "plan")?;
        if value.node() != self.plan.expression().output() {
            return Err(MatrixError::NotPlanned {
                operation: "a release of this value",
                planned: "only the result of the expression is released; decrypt other values for your own eyes".into(),
            });
        }
        let (engine, cts) = (self.plan.real()?, value.ciphertexts()?);
        let (decryptor, expected, figures) = (Decryptor::new(&self.secret), engine.expected(), engine.figures());
        let error = |at| {
            let (error, unit) = figures.element_error(at);
            error * unit
        };
        self.threads.run(|| {
            let plain = release::decrypt(&decryptor, cts, |_| expected)?;
            let matrices = engine.decode(self.plan.goal(), value.node(), &plain)?;
            release::release(&decryptor, policy, matrices, (error, |at| figures.twin(at)))
        })
    }

    /// Releases that the plan declares and the key has left.
    pub fn releases_left(&self) -> u64 {
        release::left(self.plan.release(), &self.secret)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({:?}, {:?})", self.plan, self.secret)
    }
}

impl PublicClient {
    /// A client that encrypts for the owner of a public key.
    ///
    /// # Errors
    /// [`MatrixError::Wire`] if the key is one of other parameters than the plan's; [`MatrixError::NotPlanned`] for
    /// statistics, which are planned for the noise of a secret key.
    pub fn new(plan: &Plan, public: PublicKey, threads: usize) -> Result<Self, MatrixError> {
        if !plan.engine().figures().fresh_public() {
            return Err(MatrixError::NotPlanned {
                operation: "encryption under a public key",
                planned:
                    "statistics have room for the noise of encryptions under the secret key; let its owner encrypt"
                        .into(),
            });
        }
        require_params(plan.params(), public.params())?;
        Ok(Self { plan: plan.clone(), public, threads: Arc::new(Threads::new(threads)) })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Its threads.
    pub(super) fn pool(&self) -> &Threads {
        &self.threads
    }

    /// The public key.
    pub fn key(&self) -> &PublicKey {
        &self.public
    }

    /// As [`Client::encrypt`].
    ///
    /// # Errors
    /// As there.
    pub fn encrypt(&self, name: &str, matrix: &Matrix) -> Result<Encrypted, MatrixError> {
        self.encrypt_batch(name, std::slice::from_ref(matrix), QUIET)
    }

    /// As [`Client::encrypt_batch`].
    ///
    /// # Errors
    /// As there.
    pub fn encrypt_batch(
        &self,
        name: &str,
        matrices: &[Matrix],
        progress: Progress<'_>,
    ) -> Result<Encrypted, MatrixError> {
        let encryptor = Encryptor::with_public_key(&self.public)?;
        encrypt(&self.plan, &self.threads, &encryptor, self.public.id(), (name, matrices), progress)
    }

    /// As [`Client::encrypt_integers_batch`].
    ///
    /// # Errors
    /// As there.
    pub fn encrypt_integers_batch(
        &self,
        name: &str,
        matrices: &[Matrix<i128>],
        progress: Progress<'_>,
    ) -> Result<Encrypted, MatrixError> {
        let key = (EncryptionKey::Public(&self.public), self.public.id());
        encrypt_integers(&self.plan, &self.threads, key, (name, matrices), progress)
    }
}

impl std::fmt::Debug for PublicClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PublicClient({:?}, {})", self.plan, self.public.id())
    }
}

fn encrypt(
    plan: &Plan,
    pool: &Threads,
    encryptor: &Encryptor<'_>,
    key: KeyId,
    (name, matrices): (&str, &[Matrix]),
    progress: Progress<'_>,
) -> Result<Encrypted, MatrixError> {
    let node = input_node(plan, name, matrices)?;
    require_encrypted(plan, name, node)?;
    let engine = plan.real()?;
    let values = pool.run(|| {
        let plain = engine.encode(plan.goal(), node, matrices)?;
        let (all, done) = (plain.len(), AtomicUsize::new(0));
        progress(0, all);
        let made = threads::map(all, |i| {
            let one = encryptor.encrypt(&plain[i]);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, all);
            one
        });
        made.into_iter().collect::<Result<Vec<Ciphertext>, _>>().map_err(MatrixError::from)
    })?;
    Encrypted::ckks(plan, node, key, values)
}

fn encrypt_integers(
    plan: &Plan,
    pool: &Threads,
    (key, id): (EncryptionKey<'_>, KeyId),
    (name, matrices): (&str, &[Matrix<i128>]),
    progress: Progress<'_>,
) -> Result<Encrypted, MatrixError> {
    let node = integer_node(plan, name, matrices)?;
    require_encrypted(plan, name, node)?;
    let engine = plan.exact()?;
    Encrypted::bgv(plan, node, id, pool.run(|| engine.encrypt(node, matrices, key, progress))?)
}

/// Refuses a matrix of another shape than an input's, or with elements over their bounds.
fn check_input(input: &InputSpec, matrix: &Matrix) -> Result<(), MatrixError> {
    let expected = (input.rows, input.cols);
    if matrix.shape() != expected {
        return Err(MatrixError::PlannedShape { what: "the matrix", found: matrix.shape(), expected });
    }
    if input.columns.is_empty() {
        return Ok(matrix.check_bound(input.max_abs)?);
    }
    let bounds = |row: usize| input.columns.iter().enumerate().map(move |(col, bound)| (row, col, *bound));
    match (0..input.rows).flat_map(bounds).find(|(row, col, bound)| matrix.get(*row, *col).abs() > *bound) {
        Some((row, col, bound)) => Err(ExprError::OverBound { row, col, bound }.into()),
        None => Ok(()),
    }
}

/// Refuses an input that the server sees.
fn require_encrypted(plan: &Plan, name: &str, node: usize) -> Result<(), MatrixError> {
    if plan.expression().is_plain(node) {
        return Err(MatrixError::NotPlanned {
            operation: "encryption of this input",
            planned: format!("{name} is given to the server as it is; encrypt the others alone"),
        });
    }
    Ok(())
}

/// The node of an input of integers, with matrices that fit it.
pub(super) fn integer_node(plan: &Plan, name: &str, matrices: &[Matrix<i128>]) -> Result<usize, MatrixError> {
    let (engine, input) = (plan.exact()?, input_called(plan, name)?);
    engine.check(input, matrices)?;
    Ok(plan.expression().node_of_input(input))
}

/// The position of an input.
fn input_called(plan: &Plan, name: &str) -> Result<usize, MatrixError> {
    let expr = plan.expression();
    expr.input(name).ok_or_else(|| {
        let names: Vec<&str> = expr.inputs().iter().map(|i| i.name.as_str()).collect();
        MatrixError::NotPlanned {
            operation: "an input of this name",
            planned: format!("the plan has no input {name}; its inputs are {}", names.join(", ")),
        }
    })
}

/// The node of an input, with matrices that fit it.
pub(super) fn input_node(plan: &Plan, name: &str, matrices: &[Matrix]) -> Result<usize, MatrixError> {
    let (expr, input) = (plan.expression(), input_called(plan, name)?);
    if matrices.len() != plan.batch() {
        return Err(MatrixError::Count { what: "matrices", found: matrices.len(), expected: plan.batch() });
    }
    matrices.iter().try_for_each(|m| check_input(&expr.inputs()[input], m))?;
    Ok(expr.node_of_input(input))
}

/// Refuses a value of another plan or context.
pub(super) fn require_plan(expected: PlanHash, value: &Encrypted) -> Result<(), MatrixError> {
    let found = value.plan();
    if found != expected {
        return Err(MatrixError::WrongPlan { what: "the encrypted value", found, expected });
    }
    Ok(())
}

pub(super) fn require_params(expected: &Params, found: &Params) -> Result<(), MatrixError> {
    if found.same(expected) {
        return Ok(());
    }
    Err(WireError::WrongParameters { found: found.hash(), expected: expected.hash() }.into())
}

/// New evaluation keys as demanded.
pub(super) fn eval_keys(
    secret: &SecretKey,
    demand: &KeyDemand,
    pool: &Threads,
    progress: Progress<'_>,
) -> Result<EvalKeys, MatrixError> {
    let all = demand.galois.len() + usize::from(demand.relin.is_some());
    progress(0, all);
    pool.run(|| {
        let generator = KeyGenerator::new(secret)?;
        let mut set = EvalKeys::new(secret.params(), secret.id());
        let mut done = 0;
        if let Some(level) = demand.relin {
            set.set_relin(generator.relin_key(level)?)?;
            done += 1;
            progress(done, all);
        }
        // Some at a time, so that progress is told and few keys wait for their place.
        for some in demand.galois.chunks(4 * pool.count()) {
            let made = threads::map(some.len(), |i| generator.galois_key(some[i].0, some[i].1));
            made.into_iter().try_for_each(|key| set.insert(key?))?;
            done += some.len();
            progress(done, all);
        }
        Ok(set)
    })
}
