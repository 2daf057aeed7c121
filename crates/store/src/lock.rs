//! A file that one process at a time reads, changes and replaces.

use std::fs::{File, canonicalize};
use std::io::Result;
use std::path::{Path, PathBuf};

/// A file that no other process holds until this is dropped.
#[derive(Debug)]
pub struct LockedFile {
    path: PathBuf,
    _lock: File,
}

impl LockedFile {
    /// Waits until nobody else holds the file.
    ///
    /// # Errors
    /// Those of the system: no such file, no right to read it.
    pub fn wait(path: &Path) -> Result<Self> {
        // A link stays a link to the file that is replaced.
        let path = canonicalize(path)?;
        loop {
            let file = File::open(&path)?;
            file.lock()?;
            // Whoever held the lock before has put a new file in its place.
            if same_file(&file, &path)? {
                return Ok(Self { path, _lock: file });
            }
        }
    }

    /// The path of the file, links followed.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether a path still names the file that was opened by it.
#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (a, b) = (file.metadata()?, std::fs::metadata(path)?);
    Ok((a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// On systems where an open file cannot be replaced, it is the same.
#[cfg(not(unix))]
fn same_file(_: &File, _: &Path) -> Result<bool> {
    Ok(true)
}
