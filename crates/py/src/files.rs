//! Files: whole or not at all, and secret keys without a copy in the interpreter's memory.

use crate::error::{Refusal, Result};
use crate::work::long;
use pyo3::prelude::*;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use sudare_rlwe::KeyId;
use sudare_rlwe::wire::{self, Header, ObjectType};
use sudare_store::LockedFile;
use sudare_store::atomic::{self, Access, Durability, Over};

/// Most bytes of a file with a secret key.
const MAX_SECRET: u64 = 64 << 20;

/// Its type's name in Rust and in words, its length, the name of the key that it is under, and whether it is a secret key.
type Peeked = (String, String, u64, String, bool);

fn known(header: &Header) -> Peeked {
    let (object, key) = (header.object(), header.key().0.iter().map(|byte| format!("{byte:02x}")).collect());
    (format!("{object:?}"), object.to_string(), header.total_bytes(), key, object.is_secret())
}

/// What an object is, by its header.
#[pyfunction]
pub fn peek(data: &[u8]) -> Result<Peeked> {
    Ok(known(&wire::peek(data)?))
}

/// What a file begins with, or has after parameters of TFHE, without which such a key is none.
#[pyfunction]
pub fn peek_file(py: Python<'_>, path: PathBuf) -> Result<Option<Peeked>> {
    long(py, || {
        let mut file = File::open(path).map_err(|e| Refusal::Raised(e.into()))?;
        let Ok(first) = wire::peek(&mut file) else { return Ok(None) };
        if first.object() != ObjectType::TfheParams {
            return Ok((first.object() != ObjectType::TfheClientKey).then(|| known(&first)));
        }
        let after = file.seek(SeekFrom::Start(first.total_bytes())).ok().and_then(|_| wire::peek(&mut file).ok());
        Ok(Some(known(after.as_ref().unwrap_or(&first))))
    })
}

/// Writes a file, which takes its place when it is whole, and that of a secret key only if `overwrite` says so.
#[pyfunction]
pub fn write_file(py: Python<'_>, path: PathBuf, data: &[u8], overwrite: bool) -> Result<()> {
    let over = if overwrite { Over::All } else { Over::NoKey };
    long(py, || Ok(atomic::write(&path, &[data], Access::Usual, over, Durability::Power)?))
}

/// Writes a secret key for its owner alone, in no other's place unless `overwrite` says so.
pub fn write_key(path: &Path, parts: &[&[u8]], key: KeyId, overwrite: bool) -> Result<()> {
    let over = if overwrite { Over::All } else { Over::Key(key) };
    Ok(atomic::write(path, parts, Access::Owner, over, Durability::Power)?)
}

/// Waits until nobody else counts releases in a file with this secret key, the command included, and keeps it so; `None`
/// if there is no such file.
pub fn hold_key(path: &Path, key: KeyId) -> Result<Option<LockedFile>> {
    match atomic::secret_key_at(path) {
        Some(Some(found)) if found == key => Ok(Some(LockedFile::wait(path)?)),
        _ => Ok(None),
    }
}

/// The bytes of a file with a secret key.
pub fn read_key(path: &Path) -> Result<impl std::ops::Deref<Target = Vec<u8>>> {
    Ok(atomic::read_secret(path, MAX_SECRET)?)
}
