//! A secret key's file while a release is counted in it.

use crate::error::{CliError, InFile};
use crate::files::{Access, Existing, Output};
use std::path::Path;
use sudare_rlwe::keys::SecretKey;
use sudare_rlwe::wire::secret_key_to_bytes;
use sudare_store::LockedFile;

/// A key file that no other process counts in until this is dropped.
pub struct KeyFile(LockedFile);

impl KeyFile {
    /// Waits until nobody else counts in the file.
    pub fn lock(path: &Path) -> Result<Self, CliError> {
        Ok(Self(LockedFile::wait(path).in_file(path)?))
    }

    /// Writes the key with its count: the new file takes the old one's place when it is on the disk.
    pub fn save(&self, key: &SecretKey) -> Result<(), CliError> {
        let mut out = Output::create(self.0.path(), Access::Key)?;
        out.write_secret(&secret_key_to_bytes(key)?)?;
        out.finish()?.put(Existing::Replaced)
    }
}
