//! Statistics of encrypted tables: who encrypts, who computes, who decrypts.
//!
//! Both sides agree on a [`TableSpec`]. The server finds means and covariances of the columns
//! ([`crate::statistics`]); variances and correlations are theirs, and the key
//! holder reads them off.

use super::client::{eval_keys, expect_params};
use super::server::evaluator;
use super::{Progress, QUIET, release};
use crate::error::MatrixError;
use crate::matrix::Matrix;
use crate::plan::check_params;
use crate::product::KeyDemand;
use crate::statistics::{ColumnStatistics, Moments};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use sudare_he::HeError;
use sudare_he::ckks::{Ciphertext, Decryptor, Encoder, Encryptor, Evaluator, ParamsLiteral, Plaintext};
use sudare_ring::{Threads, threads};
use sudare_rlwe::KeyId;
use sudare_rlwe::keys::{EvalKeys, SecretKey};
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::Security;
use sudare_rlwe::wire::{Bundle, Wire, WireError};
use zeroize::Zeroizing;

/// Largest error of a covariance that makes sense, in units of its columns' bounds.
const MAX_ERROR: f64 = 0.1;
/// Largest bound of a column, and the inverse of the least: its square is a double.
const MAX_BOUND: f64 = 1e150;

/// What both sides know of a table: its size and the bounds of its columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct TableSpec {
    /// Number of rows, at least two.
    pub rows: usize,
    /// For each column a bound on its absolute values; public.
    pub max_abs: Vec<f64>,
    /// The parameters.
    pub params: ParamsLiteral,
    /// What may be released of the moments, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleasePolicy>,
}

/// A specification as a file has it: unchecked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    rows: usize,
    max_abs: Vec<f64>,
    params: ParamsLiteral,
    #[serde(default)]
    release: Option<ReleasePolicy>,
}

impl TryFrom<Written> for TableSpec {
    type Error = MatrixError;

    /// Works the parameters out again and refuses others.
    fn try_from(w: Written) -> Result<Self, MatrixError> {
        let spec = Self::new(w.rows, w.max_abs, w.params.security, w.release)?;
        check_params(&w.params, &spec.params)?;
        Ok(spec)
    }
}

impl TableSpec {
    /// For tables of `rows` rows whose columns have these bounds, with moments for the owner's eyes or
    /// for release by a policy.
    ///
    /// # Errors
    /// [`MatrixError::He`] for fewer than two rows or no column, [`MatrixError::NoPlan`] for a
    /// bound that is not above zero, or if nothing would be left of the moments' precision.
    pub fn new(
        rows: usize,
        max_abs: Vec<f64>,
        security: Security,
        release: Option<ReleasePolicy>,
    ) -> Result<Self, MatrixError> {
        if let Some(bound) = max_abs.iter().find(|b| !(**b >= 1.0 / MAX_BOUND && **b <= MAX_BOUND)) {
            let reason = format!("a column's max_abs is above zero, 1e-150 to 1e150, not {bound}");
            return Err(MatrixError::NoPlan { reason });
        }
        let params = ColumnStatistics::literal(security, release.is_some());
        let spec = Self { rows, max_abs, params, release };
        let (_, covariance) = spec.relative_errors(&spec.statistics()?);
        if covariance > MAX_ERROR {
            let remedy = if release.is_some() { "; release fewer results or with fewer bits, or" } else { ";" };
            return Err(MatrixError::NoPlan {
                reason: format!(
                    "covariances would be wrong by up to {covariance:.1e} of their columns' bounds{remedy} take a table of fewer rows or columns"
                ),
            });
        }
        Ok(spec)
    }

    /// Bounds on the errors of decrypted moments: of each mean, and of each covariance. A released
    /// moment passes its bound with a probability of at most 2^−30.
    ///
    /// # Errors
    /// [`MatrixError::He`] for parameters that cannot be built.
    pub fn errors(&self) -> Result<(Vec<f64>, Matrix), MatrixError> {
        self.scaled_errors(self.relative_errors(&self.statistics()?))
    }

    /// Values of a release: means, and covariances but for those that are there twice.
    fn released_values(&self) -> usize {
        let columns = self.max_abs.len();
        columns + columns * (columns + 1) / 2
    }

    /// Errors of a mean and of a covariance in units of the columns' bounds.
    fn relative_errors(&self, statistics: &ColumnStatistics) -> (f64, f64) {
        let errors = statistics.errors();
        let shown = |e: f64| self.release.map_or(e, |policy| policy.released_error(self.released_values(), e));
        (shown(errors.mean), shown(errors.covariance))
    }

    /// The same in the columns' own units.
    fn scaled_errors(&self, (mean, covariance): (f64, f64)) -> Result<(Vec<f64>, Matrix), MatrixError> {
        let bounds = &self.max_abs;
        let columns = bounds.len();
        let means = bounds.iter().map(|b| mean * b).collect();
        Ok((means, Matrix::from_fn(columns, columns, |j, k| covariance * (bounds[j] * bounds[k]))?))
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.max_abs.len())
    }

    fn statistics(&self) -> Result<ColumnStatistics, MatrixError> {
        Ok(ColumnStatistics::new(&self.params.build()?, self.rows, self.max_abs.len())?)
    }
}

/// Ciphertexts of a table, or of its statistics.
#[derive(Clone, Debug)]
struct Cells {
    shape: (usize, usize),
    bundle: Arc<Bundle<Ciphertext>>,
}

/// What travels with the ciphertexts.
#[derive(Serialize, Deserialize)]
struct CellsHeader {
    kind: String,
    rows: u64,
    columns: u64,
}

impl Cells {
    fn new(kind: &str, spec: &TableSpec, key: KeyId, values: Vec<Ciphertext>) -> Result<Self, MatrixError> {
        let (rows, columns) = (spec.rows as u64, spec.max_abs.len() as u64);
        let header = CellsHeader { kind: kind.into(), rows, columns };
        let header = serde_json::to_vec(&header).map_err(|_| WireError::Corrupt { what: "a table's header" })?;
        let bundle = Bundle::new(spec.params.build()?.rlwe(), key, header, values)?;
        Ok(Self { shape: spec.shape(), bundle: Arc::new(bundle) })
    }

    fn from_bytes(kind: &str, spec: &TableSpec, bytes: &[u8]) -> Result<Self, MatrixError> {
        let bundle = Bundle::from_bytes(spec.params.build()?.rlwe(), bytes)?;
        let corrupt = WireError::Corrupt { what: "a table's header" };
        let header: CellsHeader = serde_json::from_slice(bundle.application()).map_err(|_| corrupt.clone())?;
        if header.kind != kind {
            return Err(corrupt.into());
        }
        let found = (header.rows as usize, header.columns as usize);
        let cells = Self { shape: found, bundle: Arc::new(bundle) };
        cells.expect(spec)?;
        Ok(cells)
    }

    fn expect(&self, spec: &TableSpec) -> Result<(), MatrixError> {
        expect_params(spec.params.build()?.rlwe(), self.bundle.params())?;
        if self.shape != spec.shape() {
            let (found, expected) = (self.shape, spec.shape());
            return Err(MatrixError::PlannedShape { what: "the encrypted table", found, expected });
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.bundle.ciphertexts().iter().map(Ciphertext::bytes).sum()
    }
}

macro_rules! cells {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(Cells);

        impl $name {
            /// Rows and columns of the table.
            pub fn shape(&self) -> (usize, usize) {
                self.0.shape
            }

            /// The name of the secret key it is under.
            pub fn key(&self) -> KeyId {
                self.0.bundle.key()
            }

            /// Ciphertexts in it.
            pub fn ciphertexts(&self) -> &[Ciphertext] {
                self.0.bundle.ciphertexts()
            }

            /// Bytes in memory.
            pub fn bytes(&self) -> usize {
                self.0.bytes()
            }

            /// Its bytes on the wire.
            ///
            /// # Errors
            /// [`MatrixError::Wire`].
            pub fn to_bytes(&self) -> Result<Vec<u8>, MatrixError> {
                Ok(self.0.bundle.to_bytes()?)
            }

            /// Reads one of a specification.
            ///
            /// # Errors
            /// [`MatrixError::Wire`] for bytes that are none, [`MatrixError::PlannedShape`] for one of
            /// another table.
            pub fn from_bytes(spec: &TableSpec, bytes: &[u8]) -> Result<Self, MatrixError> {
                Cells::from_bytes($kind, spec, bytes).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (rows, columns) = self.shape();
                let (count, megabytes) = (self.ciphertexts().len(), self.bytes() as f64 / 1e6);
                write!(f, concat!("<sudare ckks ", $kind, " {}×{}, {} ct, {:.1} MB>"), rows, columns, count, megabytes)
            }
        }
    };
}

cells!(
    /// An encrypted table.
    EncryptedTable,
    "table"
);
cells!(
    /// Means and covariances of an encrypted table, encrypted.
    EncryptedMoments,
    "moments"
);

/// Means and covariances in the units of the columns, each with a bound on its error.
#[derive(Clone, Debug, PartialEq)]
pub struct TableMoments {
    /// Mean of each column.
    pub mean: Vec<f64>,
    /// Covariances, n − 1 degrees of freedom.
    pub covariance: Matrix,
    /// Bound on the error of each mean.
    pub mean_error: Vec<f64>,
    /// Bound on the error of each covariance.
    pub covariance_error: Matrix,
}

impl TableMoments {
    /// Pearson correlations, row-major. Not a number where a variance is not above its own error: a
    /// constant column, or one that its bound is far too large for.
    pub fn correlation(&self) -> Vec<f64> {
        let variance = |j: usize| match self.covariance.get(j, j) {
            v if v > self.covariance_error.get(j, j) => v,
            _ => f64::NAN,
        };
        let columns = self.mean.len();
        let deviations: Vec<f64> = (0..columns).map(|j| variance(j).sqrt()).collect();
        let one = |at: usize| {
            let (j, k) = (at / columns, at % columns);
            (self.covariance.get(j, k) / deviations[j] / deviations[k]).clamp(-1.0, 1.0)
        };
        (0..columns * columns).map(one).collect()
    }
}

impl fmt::Display for TableMoments {
    /// Each mean and variance beside its error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>6} {:>14} {:>10} {:>14} {:>10}", "column", "mean", "±", "variance", "±")?;
        for (j, (mean, error)) in self.mean.iter().zip(&self.mean_error).enumerate() {
            let (v, e) = (self.covariance.get(j, j), self.covariance_error.get(j, j));
            writeln!(f, "{j:>6} {mean:>14.6e} {error:>10.1e} {v:>14.6e} {e:>10.1e}")?;
        }
        Ok(())
    }
}

/// Encrypts tables and decrypts their statistics. Holds the secret key.
pub struct TableClient {
    spec: TableSpec,
    statistics: ColumnStatistics,
    secret: SecretKey,
    threads: Arc<Threads>,
}

impl TableClient {
    /// A client with a new secret key, on `threads` threads (0: one for each processor).
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn new(spec: &TableSpec, threads: usize) -> Result<Self, MatrixError> {
        let statistics = spec.statistics()?;
        Self::with_secret_key(spec, SecretKey::generate(statistics.params())?, threads)
    }

    /// A client with a secret key of before.
    ///
    /// # Errors
    /// [`MatrixError::Wire`] if the key is one of other parameters.
    pub fn with_secret_key(spec: &TableSpec, secret: SecretKey, threads: usize) -> Result<Self, MatrixError> {
        let statistics = spec.statistics()?;
        expect_params(statistics.params(), secret.params())?;
        Ok(Self { spec: spec.clone(), statistics, secret, threads: Arc::new(Threads::new(threads)) })
    }

    /// The specification.
    pub fn spec(&self) -> &TableSpec {
        &self.spec
    }

    /// The secret key. Whoever gets it reads everything.
    pub fn secret_key(&self) -> &SecretKey {
        &self.secret
    }

    /// The evaluation keys that statistics need.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn eval_keys(&self, progress: Progress<'_>) -> Result<EvalKeys, MatrixError> {
        let demand = KeyDemand { relin: Some(self.statistics.relin_level()), galois: self.statistics.keys() };
        eval_keys(&self.secret, &demand, &self.threads, progress)
    }

    /// A server with new evaluation keys and the same threads.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn server(&self) -> Result<TableServer, MatrixError> {
        TableServer::with_threads(&self.spec, self.eval_keys(QUIET)?, self.threads.clone())
    }

    /// Encrypts a table.
    ///
    /// # Errors
    /// [`MatrixError::PlannedShape`], [`MatrixError::OverBound`].
    pub fn encrypt(&self, table: &Matrix) -> Result<EncryptedTable, MatrixError> {
        let (found, expected) = (table.shape(), self.spec.shape());
        if found != expected {
            return Err(MatrixError::PlannedShape { what: "the table", found, expected });
        }
        let (columns, bounds) = (expected.1, &self.spec.max_abs);
        for (at, x) in table.data().iter().enumerate() {
            let (row, col) = (at / columns, at % columns);
            if x.abs() > bounds[col] {
                return Err(MatrixError::OverBound { row, col, bound: bounds[col] });
            }
        }
        let encryptor = Encryptor::with_secret_key(&self.secret)?;
        let values = self.threads.run(|| {
            let value = |i: usize, j: usize| table.data()[i * columns + j] / bounds[j];
            let plain = self.statistics.encode(value)?;
            threads::map(plain.len(), |i| encryptor.encrypt(&plain[i])).into_iter().collect::<Result<Vec<_>, _>>()
        })?;
        Cells::new("table", &self.spec, self.secret.id(), values).map(EncryptedTable)
    }

    /// Decrypts statistics, for the owner's eyes.
    ///
    /// # Errors
    /// [`MatrixError::PlannedShape`] for statistics of another table, [`MatrixError::He`] for
    /// another key.
    pub fn decrypt(&self, moments: &EncryptedMoments) -> Result<TableMoments, MatrixError> {
        moments.0.expect(&self.spec)?;
        let (cts, decryptor) = (moments.ciphertexts(), Decryptor::new(&self.secret));
        let found = self.threads.run(|| {
            let plain = threads::map(cts.len(), |i| decryptor.decrypt(&cts[i]));
            self.decode(&plain.into_iter().collect::<Result<Vec<_>, _>>()?)
        })?;
        let errors = self.statistics.errors();
        self.in_units(&found, (errors.mean, errors.covariance))
    }

    /// Decrypts statistics for others to see: one of the releases that the specification declares.
    /// The errors that come with the moments are those of what is shown.
    ///
    /// # Errors
    /// As [`TableClient::decrypt`]; [`MatrixError::NoRelease`] for a table without releases;
    /// [`HeError::NotAsComputed`] for statistics that state a smaller error than the specification
    /// gives, another scale or another level; `RlweError::ReleasesUsedUp`, `RlweError::OtherRelease`.
    pub fn decrypt_for_release(&self, moments: &EncryptedMoments) -> Result<TableMoments, MatrixError> {
        moments.0.expect(&self.spec)?;
        let policy = release::declared(self.spec.release, "table")?;
        let (errors, expected) = (self.statistics.errors(), self.statistics.expected());
        let decryptor = Decryptor::new(&self.secret);
        let shown = self.threads.run(|| {
            let plain = release::decrypt(&decryptor, moments.ciphertexts(), |_| expected)?;
            let mut found = self.decode(&plain)?;
            let columns = found.mean.len();
            let pairs = || (0..columns).flat_map(|j| (j..columns).map(move |k| (j, k)));
            // Room for all of them: growing would leave values behind.
            let mut values = Zeroizing::new(Vec::with_capacity(self.spec.released_values()));
            values.extend_from_slice(&found.mean);
            values.extend(pairs().map(|(j, k)| found.covariance[j * columns + k]));
            let error = |i: usize| if i < columns { errors.mean } else { errors.covariance };
            decryptor.release(policy, &mut values, error)?;
            for ((j, k), value) in pairs().zip(&values[columns..]) {
                found.covariance[j * columns + k] = *value;
                found.covariance[k * columns + j] = *value;
            }
            found.mean.copy_from_slice(&values[..columns]);
            Ok::<_, MatrixError>(found)
        })?;
        self.in_units(&shown, self.spec.relative_errors(&self.statistics))
    }

    /// Releases that the specification declares and the key has left.
    pub fn releases_left(&self) -> u64 {
        release::left(self.spec.release, &self.secret)
    }

    /// Moments of columns in units of their bounds.
    fn decode(&self, plain: &[Plaintext]) -> Result<Moments, HeError> {
        let encoder = Encoder::new(self.statistics.params());
        let slots = threads::map(plain.len(), |i| encoder.decode(&plain[i]));
        let slots = Zeroizing::new(slots.into_iter().collect::<Result<Vec<_>, HeError>>()?);
        self.statistics.decode(&slots)
    }

    fn in_units(&self, found: &Moments, errors: (f64, f64)) -> Result<TableMoments, MatrixError> {
        let (bounds, columns) = (&self.spec.max_abs, self.spec.max_abs.len());
        let mean = found.mean.iter().zip(bounds).map(|(m, b)| m * b).collect();
        let scaled = |(at, c): (usize, &f64)| c * (bounds[at / columns] * bounds[at % columns]);
        let covariance = found.covariance.iter().enumerate().map(scaled).collect();
        let (mean_error, covariance_error) = self.spec.scaled_errors(errors)?;
        let covariance = Matrix::new(columns, columns, covariance)?;
        Ok(TableMoments { mean, covariance, mean_error, covariance_error })
    }
}

impl fmt::Debug for TableClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableClient({:?}, {:?})", self.spec.shape(), self.secret)
    }
}

/// Computes statistics of encrypted tables. Holds evaluation keys and nothing secret.
#[derive(Clone)]
pub struct TableServer(Arc<Inner>);

struct Inner {
    spec: TableSpec,
    statistics: ColumnStatistics,
    keys: Arc<EvalKeys>,
    evaluator: Evaluator,
    threads: Arc<Threads>,
}

impl TableServer {
    /// A server with a client's evaluation keys, on `threads` threads (0: one for each processor).
    ///
    /// # Errors
    /// [`MatrixError::Wire`] if the keys are for other parameters.
    pub fn new(spec: &TableSpec, keys: EvalKeys, threads: usize) -> Result<Self, MatrixError> {
        Self::with_threads(spec, keys, Arc::new(Threads::new(threads)))
    }

    fn with_threads(spec: &TableSpec, keys: EvalKeys, threads: Arc<Threads>) -> Result<Self, MatrixError> {
        let statistics = spec.statistics()?;
        expect_params(statistics.params(), keys.params())?;
        let (keys, evaluator) = evaluator(statistics.params(), keys)?;
        Ok(Self(Arc::new(Inner { spec: spec.clone(), statistics, keys, evaluator, threads })))
    }

    /// The specification.
    pub fn spec(&self) -> &TableSpec {
        &self.0.spec
    }

    /// The evaluation keys that it computes with.
    pub fn eval_keys(&self) -> &EvalKeys {
        &self.0.keys
    }

    /// The evaluator with its counters.
    pub fn evaluator(&self) -> &Evaluator {
        &self.0.evaluator
    }

    /// How many threads work.
    pub fn threads(&self) -> usize {
        self.0.threads.count()
    }

    /// Means and covariances of the columns.
    ///
    /// # Errors
    /// [`MatrixError::PlannedShape`] for another table, [`MatrixError::He`] for another key.
    pub fn moments(&self, table: &EncryptedTable) -> Result<EncryptedMoments, MatrixError> {
        let Inner { spec, statistics, evaluator, threads, .. } = &*self.0;
        table.0.expect(spec)?;
        let values = threads.run(|| statistics.compute(evaluator, table.ciphertexts()))?;
        Cells::new("moments", spec, table.key(), values).map(EncryptedMoments)
    }
}

impl fmt::Debug for TableServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableServer({:?}, {} threads)", self.0.spec.shape(), self.threads())
    }
}
