//! Files: whole or not at all, and secret keys without a copy in the interpreter's memory.

use crate::error::Result;
use crate::work::long;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use sudare_rlwe::KeyId;
use sudare_store::LockedFile;
use sudare_store::atomic::{self, Access, Durability, Over};

/// Most bytes of a file with a secret key.
const MAX_SECRET: u64 = 64 << 20;

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
