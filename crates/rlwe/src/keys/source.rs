//! Where a server's evaluation keys come from.

use super::{GaloisKey, KeySwitchKey};
use crate::error::RlweError;
use crate::ids::KeyId;
use crate::params::Params;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Hands out the evaluation keys of one secret key, from wherever they are: from memory, or
/// from a file. What it hands out is shared, and stays valid when the source lets go of it.
pub trait KeySource: fmt::Debug + Send + Sync {
    /// The parameters of all its keys.
    fn params(&self) -> &Params;

    /// The name of the secret key that they belong to.
    fn id(&self) -> KeyId;

    /// Bytes that its keys take in memory now.
    fn bytes(&self) -> usize;

    /// The highest level that the relinearisation key serves; `None` without one. Loads no key.
    fn relin_level(&self) -> Option<usize>;

    /// The highest level that the key of a Galois element serves; `None` without one. Loads no key.
    fn galois_level(&self, element: u64) -> Option<usize>;

    /// The relinearisation key.
    ///
    /// # Errors
    /// [`RlweError::MissingRelinKey`], and what loading it may meet.
    fn relin(&self) -> Result<Arc<KeySwitchKey>, RlweError>;

    /// The key of a Galois element; `step` only names it in the error.
    ///
    /// # Errors
    /// [`RlweError::MissingRotationKey`], and what loading it may meet.
    fn galois(&self, element: u64, step: i64) -> Result<Arc<GaloisKey>, RlweError>;

    /// Says that the keys of these elements will be asked for next, in this order, so that a source that loads keys
    /// can begin. A hint: nothing depends on it but time. Element 1 and elements without a key are passed over.
    fn prefetch(&self, _elements: &[u64]) {}
}

/// Relinearisation and automorphism keys in memory: everything a server computes with, nothing secret.
#[derive(Clone, Debug)]
pub struct EvalKeys {
    params: Params,
    id: KeyId,
    relin: Option<Arc<KeySwitchKey>>,
    galois: BTreeMap<u64, Arc<GaloisKey>>,
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
    /// [`RlweError::WrongParameters`].
    pub fn set_relin(&mut self, key: KeySwitchKey) -> Result<(), RlweError> {
        self.params.require("the relinearisation key", key.params())?;
        self.relin = Some(Arc::new(key));
        Ok(())
    }

    /// Adds an automorphism key; of two for one element the one of the higher level stays.
    ///
    /// # Errors
    /// [`RlweError::WrongParameters`].
    pub fn insert(&mut self, key: GaloisKey) -> Result<(), RlweError> {
        self.params.require("the automorphism key", key.key().params())?;
        if self.galois_level(key.element()).is_none_or(|level| level < key.key().level()) {
            self.galois.insert(key.element(), Arc::new(key));
        }
        Ok(())
    }

    /// The relinearisation key, if there is one.
    pub fn relin_key(&self) -> Option<&KeySwitchKey> {
        self.relin.as_deref()
    }

    /// All automorphism keys, by Galois element.
    pub fn galois_keys(&self) -> impl Iterator<Item = &GaloisKey> {
        self.galois.values().map(|key| &**key)
    }
}

impl KeySource for EvalKeys {
    fn params(&self) -> &Params {
        &self.params
    }

    fn id(&self) -> KeyId {
        self.id
    }

    fn bytes(&self) -> usize {
        self.relin_key().into_iter().chain(self.galois_keys().map(GaloisKey::key)).map(KeySwitchKey::bytes).sum()
    }

    fn relin_level(&self) -> Option<usize> {
        self.relin_key().map(KeySwitchKey::level)
    }

    fn galois_level(&self, element: u64) -> Option<usize> {
        self.galois.get(&element).map(|key| key.key().level())
    }

    fn relin(&self) -> Result<Arc<KeySwitchKey>, RlweError> {
        self.relin.clone().ok_or(RlweError::MissingRelinKey)
    }

    fn galois(&self, element: u64, step: i64) -> Result<Arc<GaloisKey>, RlweError> {
        self.galois.get(&element).cloned().ok_or(RlweError::MissingRotationKey { step, element })
    }
}

impl From<EvalKeys> for Arc<dyn KeySource> {
    fn from(keys: EvalKeys) -> Self {
        Arc::new(keys)
    }
}
