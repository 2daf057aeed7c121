//! What a client makes for its server.

use crate::error::ModelError;
use crate::shared::Shared;
use sudare_he::circuits::bootstrapping::BootstrapKeys;
use sudare_rlwe::KeyId;
use sudare_rlwe::keys::{EvalKeys, KeySource};
use sudare_rlwe::wire::{Wire, WireError, peek};

/// Evaluation keys, and bootstrapping keys where values are refreshed. Nothing secret.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Relinearisation and rotations of the layers.
    pub eval: EvalKeys,
    /// What refreshes take.
    pub bootstrap: Option<BootstrapKeys>,
}

impl Keys {
    /// The name of the secret key that they belong to.
    pub fn id(&self) -> KeyId {
        self.eval.id()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.eval.bytes() + self.bootstrap.as_ref().map_or(0, BootstrapKeys::bytes)
    }

    /// Their bytes: evaluation keys, then bootstrapping keys.
    ///
    /// # Errors
    /// [`ModelError::Wire`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, ModelError> {
        let mut out = self.eval.to_bytes()?;
        if let Some(keys) = &self.bootstrap {
            keys.write_to(&mut out)?;
        }
        Ok(out)
    }

    /// The keys of a plan.
    ///
    /// # Errors
    /// [`ModelError::Wire`] for bytes that are no such keys, or belong to other parameters.
    pub fn from_bytes(plan: &impl Shared, bytes: &[u8]) -> Result<Self, ModelError> {
        let Some(set) = plan.refresh() else {
            return Ok(Self { eval: EvalKeys::from_bytes(plan.params(), bytes)?, bootstrap: None });
        };
        let length = usize::try_from(peek(bytes)?.total_bytes()).unwrap_or(usize::MAX);
        let ends_early = WireError::Corrupt { what: "keys of a server that end early" };
        let (eval, rest) = bytes.split_at_checked(length).ok_or(ends_early)?;
        let eval = EvalKeys::from_bytes(plan.params(), eval)?;
        Ok(Self { eval, bootstrap: Some(BootstrapKeys::from_bytes(&set.build()?, rest)?) })
    }
}
