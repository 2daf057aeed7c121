//! Matrices under encryption, as they travel.

use crate::error::MatrixError;
use crate::plan::{Plan, PlanHash, number};
use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use sudare_he::ckks::Ciphertext;
use sudare_he::keys::KeyId;
use sudare_he::params::Params;
use sudare_he::wire::{Bundle, Wire, WireError};

/// Version of the header.
const VERSION: u32 = 1;
/// Bytes of the header: version, plan, node, batch, rows, columns.
const HEADER_BYTES: usize = 4 + 32 + 4 * 8;

/// An encrypted matrix, or as many as the plan's batch has: ciphertexts, and which value of
/// which plan they are. Cloning shares it.
#[derive(Clone)]
pub struct EncryptedMatrix {
    plan: PlanHash,
    node: usize,
    batch: usize,
    shape: (usize, usize),
    max_abs: f64,
    error: Option<f64>,
    bundle: Arc<Bundle>,
}

impl EncryptedMatrix {
    pub(crate) fn new(plan: &Plan, node: usize, key: KeyId, values: Vec<Ciphertext>) -> Result<Self, MatrixError> {
        let (hash, batch, shape) = (plan.hash(), plan.batch(), plan.expression().info(node).shape);
        let bundle = Bundle::new(plan.params(), key, header(hash, node, batch, shape), values)?;
        Ok(Self::of(plan, node, bundle))
    }

    /// The value of a node of a plan.
    fn of(plan: &Plan, node: usize, bundle: Bundle) -> Self {
        let info = plan.expression().info(node);
        let error = plan.engine().sketch().node_error(node);
        let (batch, bundle) = (plan.batch(), Arc::new(bundle));
        Self { plan: plan.hash(), node, batch, shape: info.shape, max_abs: info.max_abs, error, bundle }
    }

    /// Writes it; a fresh one under a secret key takes half its size.
    ///
    /// # Errors
    /// [`WireError::Io`], [`WireError::Oversize`].
    pub fn write_to(&self, out: impl Write) -> Result<(), WireError> {
        self.bundle.write_to(out)
    }

    /// Its bytes on the wire.
    ///
    /// # Errors
    /// [`WireError::Oversize`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, WireError> {
        self.bundle.to_bytes()
    }

    /// Reads a value of a plan.
    ///
    /// # Errors
    /// [`MatrixError::Wire`] for bytes that are no such object or belong to other parameters,
    /// [`MatrixError::WrongPlan`], [`MatrixError::Count`].
    pub fn read_from(plan: &Plan, input: impl Read) -> Result<Self, MatrixError> {
        Self::checked(plan, Bundle::read_from(plan.params(), input)?)
    }

    /// Reads a value of a plan from memory.
    ///
    /// # Errors
    /// As [`EncryptedMatrix::read_from`].
    pub fn from_bytes(plan: &Plan, bytes: &[u8]) -> Result<Self, MatrixError> {
        Self::checked(plan, Bundle::from_bytes(plan.params(), bytes)?)
    }

    fn checked(plan: &Plan, bundle: Bundle) -> Result<Self, MatrixError> {
        let corrupt = |what| MatrixError::Wire(WireError::Corrupt { what });
        let header = bundle.application();
        if header.len() != HEADER_BYTES {
            return Err(corrupt("no encrypted matrix's header"));
        }
        let word = |at: usize| {
            let mut b = [0; 8];
            b.copy_from_slice(&header[at..at + 8]);
            usize::try_from(u64::from_le_bytes(b)).unwrap_or(usize::MAX)
        };
        if header[..4] != VERSION.to_le_bytes() {
            return Err(corrupt("a header of another version"));
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(&header[4..36]);
        let (found, expected) = (PlanHash(hash), plan.hash());
        if found != expected {
            return Err(MatrixError::WrongPlan { what: "the encrypted matrix", found, expected });
        }
        let (node, batch, shape) = (word(36), word(44), (word(52), word(60)));
        let expr = plan.expression();
        if node >= expr.nodes().len() || batch != plan.batch() || shape != expr.info(node).shape {
            return Err(corrupt("a header that does not fit its plan"));
        }
        if let Some(size) = plan.engine().sketch().size(node) {
            let (found, expected) = (bundle.ciphertexts().len(), size.count);
            if found != expected {
                return Err(MatrixError::Count { what: "ciphertexts of the encrypted matrix", found, expected });
            }
        }
        Ok(Self::of(plan, node, bundle))
    }

    /// The plan it belongs to.
    pub fn plan(&self) -> PlanHash {
        self.plan
    }

    /// The node of the plan's expression whose value it is.
    pub fn node(&self) -> usize {
        self.node
    }

    /// Matrices in it.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Rows and columns of each.
    pub fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// The name of the secret key it is under.
    pub fn key(&self) -> KeyId {
        self.bundle.key()
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        self.bundle.params()
    }

    /// The ciphertexts.
    pub fn ciphertexts(&self) -> &[Ciphertext] {
        self.bundle.ciphertexts()
    }

    /// Levels left.
    pub fn level(&self) -> usize {
        self.ciphertexts().iter().map(Ciphertext::level).min().unwrap_or(0)
    }

    /// Bound on the absolute values of its elements.
    pub fn max_abs(&self) -> f64 {
        self.max_abs
    }

    /// Bound on the error of its elements, as the plan promises it; `None` for an operand that the
    /// plan does not decrypt.
    pub fn error(&self) -> Option<f64> {
        self.error
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.ciphertexts().iter().map(Ciphertext::bytes).sum()
    }
}

fn header(plan: PlanHash, node: usize, batch: usize, shape: (usize, usize)) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES);
    out.extend(VERSION.to_le_bytes());
    out.extend(plan.0);
    for x in [node, batch, shape.0, shape.1] {
        out.extend((x as u64).to_le_bytes());
    }
    out
}

impl fmt::Display for EncryptedMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f, (self.batch, self.shape), (self.max_abs, self.error), self.ciphertexts())
    }
}

/// How an encrypted matrix shows itself: what is public about it.
pub(super) fn describe(
    f: &mut fmt::Formatter<'_>,
    (batch, (rows, cols)): (usize, (usize, usize)),
    (max_abs, error): (f64, Option<f64>),
    ciphertexts: &[Ciphertext],
) -> fmt::Result {
    write!(f, "<sudare ckks ")?;
    match batch {
        1 => write!(f, "({rows}, {cols})")?,
        b => write!(f, "({b}, {rows}, {cols})")?,
    }
    write!(f, " float64 up to {}", number(max_abs))?;
    if let Some(error) = error {
        write!(f, " ± {error:.1e}")?;
    }
    let count = ciphertexts.len();
    let (level, top) = ciphertexts.iter().map(|c| (c.level(), c.params().max_level())).min().unwrap_or((0, 0));
    let bytes: usize = ciphertexts.iter().map(Ciphertext::bytes).sum();
    write!(f, ", level {level}/{top}, {count} ct × {:.1} MB>", bytes as f64 / count.max(1) as f64 / 1e6)
}

impl fmt::Debug for EncryptedMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
