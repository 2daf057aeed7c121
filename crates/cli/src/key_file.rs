//! A secret key's file while a release is counted in it.

use crate::error::{CliError, InFile};
use crate::files::{Access, Output};
use std::fs::File;
use std::path::{Path, PathBuf};
use sudare_rlwe::keys::SecretKey;
use sudare_rlwe::wire::secret_key_to_bytes;

/// A key file that no other process counts in until this is dropped.
pub struct KeyFile {
    path: PathBuf,
    _lock: File,
}

impl KeyFile {
    /// Waits until nobody else counts in the file.
    pub fn lock(path: &Path) -> Result<Self, CliError> {
        // A link stays a link to the file that is counted in.
        let path = std::fs::canonicalize(path).in_file(path)?;
        loop {
            let file = File::open(&path).in_file(&path)?;
            file.lock().in_file(&path)?;
            // Whoever held the lock before has put a new file in its place.
            if same_file(&file, &path).in_file(&path)? {
                return Ok(Self { path, _lock: file });
            }
        }
    }

    /// Writes the key with its count: the new file takes the old one's place when it is on the disk.
    pub fn save(&self, key: &SecretKey) -> Result<(), CliError> {
        let mut out = Output::create(&self.path, Access::Key)?;
        out.write_secret(&secret_key_to_bytes(key)?)?;
        out.finish()?.put()
    }
}

/// Whether a path still names the file that was opened by it.
#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (a, b) = (file.metadata()?, std::fs::metadata(path)?);
    Ok((a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// Where a file that is open cannot be replaced, it is the same.
#[cfg(not(unix))]
fn same_file(_: &File, _: &Path) -> std::io::Result<bool> {
    Ok(true)
}
