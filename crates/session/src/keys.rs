//! What a client makes for its server.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use sudare_exact::refresh::{RefreshKeys, RefreshParams};
use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapLiteral};
use sudare_methods::MatrixError;
use sudare_plan::{Engine, Plan};
use sudare_rlwe::KeyId;
use sudare_rlwe::keys::{EvalKeys, KeySource};
use sudare_rlwe::wire::{Wire, WireError, peek};
use sudare_store::KeyFile;

/// Evaluation keys, and those of refreshes where the plan has some. Nothing secret.
#[derive(Clone, Debug)]
pub struct ServerKeys {
    pub(super) eval: Evaluation,
    pub(super) bootstrap: Option<BootstrapKeys>,
    /// Of integers.
    pub(super) refresh: Option<Arc<RefreshKeys>>,
}

/// Where evaluation keys are.
#[derive(Clone, Debug)]
pub(super) enum Evaluation {
    Memory(Arc<EvalKeys>),
    File(KeyFile),
}

impl Evaluation {
    pub(super) fn source(&self) -> Arc<dyn KeySource> {
        match self {
            Self::Memory(keys) => keys.clone(),
            Self::File(keys) => keys.clone().into(),
        }
    }
}

impl From<EvalKeys> for ServerKeys {
    fn from(eval: EvalKeys) -> Self {
        Self { eval: Evaluation::Memory(Arc::new(eval)), bootstrap: None, refresh: None }
    }
}

impl From<KeyFile> for ServerKeys {
    fn from(eval: KeyFile) -> Self {
        Self { eval: Evaluation::File(eval), bootstrap: None, refresh: None }
    }
}

impl ServerKeys {
    /// Writes them: evaluation keys, then those of refreshes; seeds in place of masks.
    ///
    /// # Errors
    /// [`MatrixError::Wire`].
    pub fn write_to(&self, out: impl Write) -> Result<(), MatrixError> {
        write(&self.eval, self.bootstrap.as_ref(), self.refresh.as_deref(), out)
    }

    /// The name of the secret key that they belong to.
    pub fn id(&self) -> KeyId {
        self.eval.source().id()
    }

    /// The keys of a plan that stay in their file, of which at most `memory` bytes are held beyond what an operation
    /// uses at once: for keys that do not fit into memory.
    ///
    /// # Errors
    /// [`MatrixError::Store`] for a file that is none of evaluation keys of the plan's parameters;
    /// [`MatrixError::NotPlanned`] for a plan that refreshes, whose bootstrapping keys are worked on in memory.
    pub fn open(plan: &Plan, path: &Path, memory: usize) -> Result<Self, MatrixError> {
        if literal_of(plan).is_some() || refresh_of(plan).is_some() {
            let planned =
                "the plan refreshes, and what bootstrapping needs is held in memory; read the keys as a whole";
            return Err(MatrixError::NotPlanned {
                operation: "leaving the keys in their file",
                planned: planned.into(),
            });
        }
        Ok(KeyFile::open(path, plan.params(), memory)?.into())
    }

    /// Reads the keys of a plan, each checked for its parameters.
    ///
    /// # Errors
    /// [`MatrixError::Wire`] for bytes that are no such keys or belong to other parameters.
    pub fn from_bytes(plan: &Plan, bytes: &[u8]) -> Result<Self, MatrixError> {
        if literal_of(plan).is_none() && refresh_of(plan).is_none() {
            return Ok(EvalKeys::from_bytes(plan.params(), bytes)?.into());
        }
        let length = usize::try_from(peek(bytes)?.total_bytes()).unwrap_or(usize::MAX);
        let ends_early = WireError::Corrupt { what: "keys of a server that end early" };
        let (eval, rest) = bytes.split_at_checked(length).ok_or(ends_early)?;
        let keys = Self::from(EvalKeys::from_bytes(plan.params(), eval)?);
        if let Some(set) = refresh_of(plan) {
            return Ok(Self { refresh: Some(Arc::new(RefreshKeys::from_bytes(set, rest)?)), ..keys });
        }
        let bootstrap =
            literal_of(plan).map(|literal| Ok::<_, MatrixError>(BootstrapKeys::from_bytes(&literal.build()?, rest)?));
        Ok(Self { bootstrap: bootstrap.transpose()?, ..keys })
    }
}

/// The set that a plan refreshes by, if it does.
pub(super) fn literal_of(plan: &Plan) -> Option<&BootstrapLiteral> {
    match plan.engine() {
        Engine::Ckks(engine) => engine.bootstrap(),
        Engine::Exact(_) | Engine::Arrays(_) => None,
    }
}

/// The set by which a plan refreshes integers, if it does.
pub(super) fn refresh_of(plan: &Plan) -> Option<&RefreshParams> {
    plan.engine().integers().and_then(|engine| engine.refresh())
}

/// Keys one after another.
pub(super) fn write(
    eval: &Evaluation,
    bootstrap: Option<&BootstrapKeys>,
    refresh: Option<&RefreshKeys>,
    mut out: impl Write,
) -> Result<(), MatrixError> {
    match eval {
        Evaluation::Memory(keys) => keys.write_to(&mut out)?,
        Evaluation::File(keys) => drop(std::io::copy(&mut keys.contents(), &mut out).map_err(WireError::from)?),
    }
    refresh.map_or(Ok(()), |keys| keys.write_to(&mut out))?;
    Ok(bootstrap.map_or(Ok(()), |keys| keys.write_to(&mut out))?)
}
