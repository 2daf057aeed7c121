//! What a client makes for its server.

use crate::error::MatrixError;
use crate::plan::{Engine, Plan};
use std::io::Write;
use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapLiteral};
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::wire::{Wire, WireError, peek};

/// Evaluation keys, and bootstrapping keys where the plan refreshes. Nothing secret.
#[derive(Clone, Debug)]
pub struct ServerKeys {
    pub(super) eval: EvalKeys,
    pub(super) bootstrap: Option<BootstrapKeys>,
}

impl From<EvalKeys> for ServerKeys {
    fn from(eval: EvalKeys) -> Self {
        Self { eval, bootstrap: None }
    }
}

impl ServerKeys {
    /// Writes them: evaluation keys, then bootstrapping keys; seeds in place of masks.
    ///
    /// # Errors
    /// [`MatrixError::Wire`].
    pub fn write_to(&self, out: impl Write) -> Result<(), MatrixError> {
        write(&self.eval, self.bootstrap.as_ref(), out)
    }

    /// Reads the keys of a plan, each checked for its parameters.
    ///
    /// # Errors
    /// [`MatrixError::Wire`] for bytes that are no such keys or belong to other parameters.
    pub fn from_bytes(plan: &Plan, bytes: &[u8]) -> Result<Self, MatrixError> {
        let Some(literal) = literal_of(plan) else {
            return Ok(EvalKeys::from_bytes(plan.params(), bytes)?.into());
        };
        let length = usize::try_from(peek(bytes)?.total_bytes()).unwrap_or(usize::MAX);
        let ends_early = WireError::Corrupt { what: "keys of a server that end early" };
        let (eval, rest) = bytes.split_at_checked(length).ok_or(ends_early)?;
        let eval = EvalKeys::from_bytes(plan.params(), eval)?;
        let bootstrap = Some(BootstrapKeys::from_bytes(&literal.build()?, rest)?);
        Ok(Self { eval, bootstrap })
    }
}

/// The set that a plan refreshes by, if it does.
pub(super) fn literal_of(plan: &Plan) -> Option<&BootstrapLiteral> {
    match plan.engine() {
        Engine::Ckks(engine) => engine.bootstrap(),
        Engine::Exact(_) => None,
    }
}

/// Keys one after another.
pub(super) fn write(
    eval: &EvalKeys,
    bootstrap: Option<&BootstrapKeys>,
    mut out: impl Write,
) -> Result<(), MatrixError> {
    eval.write_to(&mut out)?;
    Ok(bootstrap.map_or(Ok(()), |keys| keys.write_to(&mut out))?)
}
