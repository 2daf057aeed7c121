//! Batches of ciphertexts.

use crate::error::Result;
use sudare_cuda::{Batch, CudaError, Device};
use sudare_ring::Eval;
use sudare_rlwe::{Ciphertext, KeyId, Params, RlweError, Shaped};

/// Ciphertexts of one level, as many parts each, under one key, on a device. Clones share the memory.
#[derive(Clone, Debug)]
pub struct Ciphertexts {
    params: Params,
    key: KeyId,
    level: usize,
    parts: Batch<Eval>,
}

impl Ciphertexts {
    /// Copies ciphertexts to a device.
    ///
    /// # Errors
    /// [`RlweError::Operands`] for none, [`RlweError::WrongParameters`], [`RlweError::WrongKey`]; [`CudaError`] for
    /// ciphertexts of different levels or numbers of parts, and what the device refuses.
    pub fn from_host(device: &Device, ciphertexts: &[&Ciphertext]) -> Result<Self> {
        let none = RlweError::Operands { operation: "a batch of ciphertexts", left: 0, right: 0 };
        let first = *ciphertexts.first().ok_or(none)?;
        for c in ciphertexts {
            first.params().require("the ciphertext", c.params())?;
            first.key().require("the ciphertext", c.key())?;
            if c.level() != first.level() {
                return Err(CudaError::Mismatch("the ciphertexts of a batch need one level: drop levels first").into());
            }
        }
        let parts: Vec<_> = ciphertexts.iter().map(|c| c.parts()).collect();
        let parts = Batch::<Eval>::from_host(device, first.params().q_at(first.level()), &parts)?;
        Ok(Self { params: first.params().clone(), key: first.key(), level: first.level(), parts })
    }

    /// Other parts at a level, of the same parameters and key.
    pub(crate) fn with(&self, parts: Batch<Eval>, level: usize) -> Self {
        Self { params: self.params.clone(), key: self.key, level, parts }
    }

    /// The same words under other parameters.
    pub(crate) fn under(&self, params: &Params) -> Self {
        Self { params: params.clone(), ..self.clone() }
    }

    /// Copies all ciphertexts back, and waits for what is still being computed.
    ///
    /// # Errors
    /// What went wrong on the device since the last wait.
    pub fn to_host(&self) -> Result<Vec<Ciphertext>> {
        let load = |parts| Ciphertext::from_parts(&self.params, self.key, parts, self.level);
        Ok(self.parts.to_host()?.into_iter().map(load).collect::<std::result::Result<_, _>>()?)
    }

    /// Some ciphertexts of this and other batches, as one batch: addresses are copied, and no words.
    ///
    /// # Errors
    /// [`RlweError::Operands`] for none, [`RlweError::WrongParameters`], [`RlweError::WrongKey`]; [`CudaError`] for
    /// batches of other levels, parts or devices, or a ciphertext that there is not.
    pub fn gather(items: &[(&Self, usize)]) -> Result<Self> {
        let none = RlweError::Operands { operation: "a batch of ciphertexts", left: 0, right: 0 };
        let (first, _) = items.first().ok_or(none)?;
        for (batch, _) in items {
            first.params.require("the ciphertext", &batch.params)?;
            first.key.require("the ciphertext", batch.key)?;
        }
        let parts: Vec<_> = items.iter().map(|(batch, item)| (&batch.parts, *item)).collect();
        Ok(first.with(Batch::gather(&parts)?, first.level))
    }

    /// Their parts over the primes of the level.
    pub fn parts(&self) -> &Batch<Eval> {
        &self.parts
    }

    /// Number of ciphertexts.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Bytes on the device, as if none were shared.
    pub fn bytes(&self) -> usize {
        self.parts.bytes()
    }
}

impl Shaped for Ciphertexts {
    fn params(&self) -> &Params {
        &self.params
    }

    fn key(&self) -> KeyId {
        self.key
    }

    fn level(&self) -> usize {
        self.level
    }

    fn polynomials(&self) -> usize {
        self.parts.parts()
    }

    fn count(&self) -> usize {
        self.len()
    }
}
