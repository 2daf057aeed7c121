//! The evaluation keys of a server.

use super::{GaloisKey, KeyId, KeySwitchKey};
use crate::error::HeError;
use crate::params::Params;
use std::collections::BTreeMap;

/// Relinearisation and automorphism keys: everything a server computes with, nothing secret.
#[derive(Clone, Debug)]
pub struct EvalKeys {
    pub(crate) params: Params,
    pub(crate) id: KeyId,
    relin: Option<KeySwitchKey>,
    galois: BTreeMap<u64, GaloisKey>,
}

impl EvalKeys {
    /// An empty set for one secret key.
    pub fn new(params: &Params, id: KeyId) -> Self {
        Self { params: params.clone(), id, relin: None, galois: BTreeMap::new() }
    }

    /// The name of the secret key it belongs to.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Adds the relinearisation key.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`].
    pub fn set_relin(&mut self, key: KeySwitchKey) -> Result<(), HeError> {
        self.params.expect("the relinearisation key", &key.params)?;
        self.relin = Some(key);
        Ok(())
    }

    /// Adds an automorphism key; of two for one element the one of the higher level stays.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`].
    pub fn insert(&mut self, key: GaloisKey) -> Result<(), HeError> {
        self.params.expect("the automorphism key", &key.key.params)?;
        if self.galois.get(&key.element).is_none_or(|old| old.key.level < key.key.level) {
            self.galois.insert(key.element, key);
        }
        Ok(())
    }

    /// The relinearisation key.
    ///
    /// # Errors
    /// [`HeError::MissingRelinKey`].
    pub fn relin(&self) -> Result<&KeySwitchKey, HeError> {
        self.relin.as_ref().ok_or(HeError::MissingRelinKey)
    }

    /// The key of a Galois element; `step` only names it in the error.
    ///
    /// # Errors
    /// [`HeError::MissingRotationKey`].
    pub fn galois(&self, element: u64, step: i64) -> Result<&GaloisKey, HeError> {
        self.galois.get(&element).ok_or(HeError::MissingRotationKey { step, element })
    }

    /// All automorphism keys, by Galois element.
    pub fn galois_keys(&self) -> impl Iterator<Item = &GaloisKey> {
        self.galois.values()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.relin.iter().chain(self.galois.values().map(|g| &g.key)).map(KeySwitchKey::bytes).sum()
    }
}
