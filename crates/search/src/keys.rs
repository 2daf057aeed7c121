//! What the server computes with, as it travels.

use crate::error::SearchError;
use crate::plan::Index;
use std::io::{Read, Write};
use sudare_he::circuits::bootstrapping::BootstrapKeys;
use sudare_rlwe::KeyId;
use sudare_rlwe::keys::{EvalKeys, KeySource};
use sudare_rlwe::wire::{Wire, peek};

/// Evaluation keys of one owner for an index, in compact mode after those of half a bootstrap. Nothing secret.
#[derive(Clone, Debug)]
pub struct Keys {
    pub(crate) half: Option<BootstrapKeys>,
    pub(crate) eval: EvalKeys,
}

impl From<EvalKeys> for Keys {
    fn from(eval: EvalKeys) -> Self {
        Self { half: None, eval }
    }
}

impl Keys {
    /// The name of the secret key.
    pub fn id(&self) -> KeyId {
        self.eval.id()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.half.as_ref().map_or(0, BootstrapKeys::bytes) + KeySource::bytes(&self.eval)
    }

    /// How many bytes [`Keys::write_to`] writes.
    ///
    /// # Errors
    /// [`SearchError::Wire`].
    pub fn wire_bytes(&self) -> Result<u64, SearchError> {
        let half = self.half.as_ref().map(Wire::wire_bytes).transpose()?;
        Ok(half.unwrap_or(0) + self.eval.wire_bytes()?)
    }

    /// Writes them.
    ///
    /// # Errors
    /// [`SearchError::Wire`].
    pub fn write_to(&self, mut out: impl Write) -> Result<(), SearchError> {
        if let Some(half) = &self.half {
            half.write_to(&mut out)?;
        }
        Ok(self.eval.write_to(out)?)
    }

    /// Their bytes.
    ///
    /// # Errors
    /// [`SearchError::Wire`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, SearchError> {
        let mut out = Vec::new();
        self.write_to(&mut out)?;
        Ok(out)
    }

    /// Keys that a stream ends with.
    ///
    /// # Errors
    /// [`SearchError::Wire`] for damaged bytes or other parameters; [`SearchError::Mixed`] for keys of two owners.
    pub fn read_from(index: &Index, mut input: impl Read) -> Result<Self, SearchError> {
        let Some(compact) = index.compact() else {
            return Ok(EvalKeys::read_from(index.params().rlwe(), input)?.into());
        };
        // The length of the first object stands in its header.
        let mut head = Tee { input: &mut input, read: Vec::new() };
        let length = peek(&mut head)?.total_bytes();
        let head = head.read;
        let rest = length.saturating_sub(head.len() as u64);
        let half = BootstrapKeys::read_from(&compact.half, head.as_slice().chain((&mut input).take(rest)))?;
        let eval = EvalKeys::read_from(index.params().rlwe(), input)?;
        Self::together(half, eval)
    }

    /// Keys of their bytes.
    ///
    /// # Errors
    /// As [`Keys::read_from`].
    pub fn from_bytes(index: &Index, bytes: &[u8]) -> Result<Self, SearchError> {
        Self::read_from(index, bytes)
    }

    pub(crate) fn together(half: BootstrapKeys, eval: EvalKeys) -> Result<Self, SearchError> {
        if half.id() != eval.id() {
            return Err(SearchError::Mixed { what: "a key of the set" });
        }
        Ok(Self { half: Some(half), eval })
    }
}

/// Keeps what it reads.
struct Tee<R> {
    input: R,
    read: Vec<u8>,
}

impl<R: Read> Read for Tee<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(out)?;
        self.read.extend_from_slice(&out[..count]);
        Ok(count)
    }
}
