//! Where the messages of a session are.

use super::room::{damaged, io_at};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sudare_methods::MatrixError;
use sudare_store::StoreError;
use sudare_store::atomic::{self, Access};

/// Where all parties see the messages of a session: each has a name, is there whole or not at all, and never changes. Nothing in it is secret.
///
/// A [`Folder`] is one; a room of a server, `sudare_serve::RemoteRoom`, is another.
pub trait Messages: fmt::Debug + Send + Sync {
    /// Names of the messages that begin so.
    ///
    /// # Errors
    /// [`MatrixError::Store`] and [`MatrixError::Messages`] where they cannot be read.
    fn names(&self, beginning: &str) -> Result<BTreeSet<String>, MatrixError>;

    /// A message of at most so many bytes.
    ///
    /// # Errors
    /// As [`Messages::names`]; [`StoreError::Damaged`] for a longer one.
    fn get(&self, name: &str, limit: u64) -> Result<Vec<u8>, MatrixError>;

    /// Puts a message where there is none of the name. `false`, and nothing is done, where another one is; the same one again changes nothing.
    ///
    /// # Errors
    /// As [`Messages::names`].
    fn post(&self, name: &str, bytes: &[u8]) -> Result<bool, MatrixError>;

    /// What errors call the place of a message.
    fn place(&self, name: &str) -> PathBuf;
}

/// The refusal of a message that is longer than any of its step.
pub fn too_long(place: &Path) -> MatrixError {
    damaged(place, "it is longer than any message of its step").into()
}

/// A folder with a file for each message.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A folder, which is made with the first message.
    pub fn at(path: &Path) -> Arc<Self> {
        Arc::new(Self(path.into()))
    }
}

impl Messages for Folder {
    fn names(&self, beginning: &str) -> Result<BTreeSet<String>, MatrixError> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
            entries => io_at(&self.0, entries)?,
        };
        let mut found = BTreeSet::new();
        for entry in entries {
            let entry = io_at(&self.0, entry)?;
            let name = entry.file_name().into_string().unwrap_or_default();
            // Files that are being written have names that begin with a dot.
            if name.starts_with(beginning) && !name.starts_with('.') && entry.path().is_file() {
                found.insert(name);
            }
        }
        Ok(found)
    }

    fn get(&self, name: &str, limit: u64) -> Result<Vec<u8>, MatrixError> {
        let (path, mut bytes) = (self.place(name), Vec::new());
        let file = io_at(&path, File::open(&path))?;
        io_at(&path, file.take(limit.saturating_add(1)).read_to_end(&mut bytes))?;
        if bytes.len() as u64 > limit {
            return Err(too_long(&path));
        }
        Ok(bytes)
    }

    fn post(&self, name: &str, bytes: &[u8]) -> Result<bool, MatrixError> {
        let path = self.place(name);
        atomic::make_folder(&path)?;
        if atomic::write_new(&path, &[bytes], Access::Usual)? {
            return Ok(true);
        }
        let found: Result<_, StoreError> = io_at(&path, fs::metadata(&path));
        Ok(found?.len() == bytes.len() as u64 && self.get(name, bytes.len() as u64)? == bytes)
    }

    fn place(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}
