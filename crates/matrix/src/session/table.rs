//! Statistics of encrypted tables: who encrypts, who computes, who decrypts.
//!
//! Both sides agree on a [`TableSpec`]. The server finds means and covariances of the columns
//! ([`sudare_he::circuits::statistics`]); variances and correlations are theirs, and the key
//! holder reads them off.

use super::client::{eval_keys, expect_params};
use super::{Progress, QUIET};
use crate::error::MatrixError;
use crate::matrix::Matrix;
use crate::plan::check_params;
use crate::product::KeyDemand;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use sudare_he::HeError;
use sudare_he::circuits::statistics::ColumnStatistics;
use sudare_he::ckks::{Ciphertext, Decryptor, Encoder, Encryptor, Evaluator};
use sudare_he::keys::{EvalKeys, KeyId, SecretKey};
use sudare_he::params::ParamsLiteral;
use sudare_he::ring::{Threads, threads};
use sudare_he::security::Security;
use sudare_he::wire::{Bundle, Wire, WireError};

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
}

/// A specification as a file has it: unchecked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    rows: usize,
    max_abs: Vec<f64>,
    params: ParamsLiteral,
}

impl TryFrom<Written> for TableSpec {
    type Error = MatrixError;

    /// Works the parameters out again and refuses others.
    fn try_from(w: Written) -> Result<Self, MatrixError> {
        let spec = Self::new(w.rows, w.max_abs, w.params.security)?;
        check_params(&w.params, &spec.params)?;
        Ok(spec)
    }
}

impl TableSpec {
    /// For tables of `rows` rows whose columns have these bounds.
    ///
    /// # Errors
    /// [`MatrixError::He`] for fewer than two rows or no column, [`MatrixError::NoPlan`] for a
    /// bound that is not above zero.
    pub fn new(rows: usize, max_abs: Vec<f64>, security: Security) -> Result<Self, MatrixError> {
        if let Some(bound) = max_abs.iter().find(|b| !(b.is_finite() && **b > 0.0)) {
            return Err(MatrixError::NoPlan { reason: format!("a column's max_abs is above zero, not {bound}") });
        }
        let spec = Self { rows, max_abs, params: ColumnStatistics::literal(security) };
        spec.statistics()?;
        Ok(spec)
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
    bundle: Arc<Bundle>,
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
        let bundle = Bundle::new(&spec.params.build()?, key, header, values)?;
        Ok(Self { shape: spec.shape(), bundle: Arc::new(bundle) })
    }

    fn from_bytes(kind: &str, spec: &TableSpec, bytes: &[u8]) -> Result<Self, MatrixError> {
        let bundle = Bundle::from_bytes(&spec.params.build()?, bytes)?;
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
        expect_params(&spec.params.build()?, self.bundle.params())?;
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

/// Means and covariances in the units of the columns.
#[derive(Clone, Debug, PartialEq)]
pub struct TableMoments {
    /// Mean of each column.
    pub mean: Vec<f64>,
    /// Covariances, n − 1 degrees of freedom.
    pub covariance: Matrix,
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

    /// Decrypts statistics, for the owner's eyes: a decryption that others may see needs noise that
    /// these parameters have no room for beside the static bound.
    ///
    /// # Errors
    /// [`MatrixError::PlannedShape`] for statistics of another table, [`MatrixError::He`] for
    /// another key.
    pub fn decrypt(&self, moments: &EncryptedMoments) -> Result<TableMoments, MatrixError> {
        moments.0.expect(&self.spec)?;
        let cts = moments.ciphertexts();
        let decryptor = Decryptor::new(&self.secret);
        let encoder = Encoder::new(self.statistics.params());
        let slots = self.threads.run(|| {
            let one = |i: usize| encoder.decode(&decryptor.decrypt(&cts[i])?);
            threads::map(cts.len(), one).into_iter().collect::<Result<Vec<_>, HeError>>()
        })?;
        let found = self.statistics.decode(&slots)?;
        let (bounds, columns) = (&self.spec.max_abs, self.spec.max_abs.len());
        let mean = found.mean.iter().zip(bounds).map(|(m, b)| m * b).collect();
        let scaled = |(at, c): (usize, &f64)| c * (bounds[at / columns] * bounds[at % columns]);
        let covariance = found.covariance.iter().enumerate().map(scaled).collect();
        Ok(TableMoments { mean, covariance: Matrix::new(columns, columns, covariance)? })
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
        Ok(Self(Arc::new(Inner { spec: spec.clone(), statistics, evaluator: Evaluator::new(keys), threads })))
    }

    /// The specification.
    pub fn spec(&self) -> &TableSpec {
        &self.0.spec
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
        let Inner { spec, statistics, evaluator, threads } = &*self.0;
        table.0.expect(spec)?;
        let values = threads.run(|| evaluator.column_statistics(statistics, table.ciphertexts()))?;
        Cells::new("moments", spec, table.key(), values).map(EncryptedMoments)
    }
}

impl fmt::Debug for TableServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableServer({:?}, {} threads)", self.0.spec.shape(), self.threads())
    }
}
