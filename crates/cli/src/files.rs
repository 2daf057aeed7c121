//! Files that appear whole or not at all.

use crate::error::{Class, CliError, InFile};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// As the user's mask says.
    Usual,
    /// The owner alone, from the first moment.
    Owner,
}

/// An output that takes its place when [`Output::commit`] is called; dropped before that, it
/// leaves no trace.
pub struct Output {
    scratch: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl Output {
    /// Starts an output beside its later place.
    pub fn create(path: &Path, access: Access) -> Result<Self, CliError> {
        if path.is_dir() || (path.exists() && !path.is_file()) {
            return Err(CliError::new(Class::Io, "is no regular file; name another output").in_file(path));
        }
        let folder = match path.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut builder = Builder::new();
        let prefix = format!(".{name}.");
        builder.prefix(&prefix).suffix(".part");
        // Without this a scratch file is the owner's alone.
        #[cfg(unix)]
        if access == Access::Usual {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let _ = access;
        let scratch = builder.tempfile_in(folder).in_file(path)?;
        Ok(Self { scratch: BufWriter::with_capacity(1 << 20, scratch), path: path.to_owned() })
    }

    /// Bytes that must not linger in a buffer.
    pub fn write_secret(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.scratch.flush().in_file(&self.path)?;
        self.scratch.get_mut().write_all(bytes).in_file(&self.path)
    }

    /// Writes everything to the disk and takes the place; returns the size.
    pub fn commit(self) -> Result<u64, CliError> {
        let path = self.path;
        let scratch = self.scratch.into_inner().map_err(|e| e.into_error()).in_file(&path)?;
        scratch.as_file().sync_all().in_file(&path)?;
        let size = scratch.as_file().metadata().in_file(&path)?.len();
        scratch.persist(&path).map_err(|e| e.error).in_file(&path)?;
        // The name itself is on the disk only when its folder is.
        #[cfg(unix)]
        if let Some(folder) = path.parent() {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            if let Ok(folder) = File::open(folder) {
                let _ = folder.sync_all();
            }
        }
        Ok(size)
    }

    /// The later place.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.scratch.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.scratch.flush()
    }
}

/// Opens a file for reading in order.
pub fn open(path: &Path) -> Result<BufReader<File>, CliError> {
    let file = File::open(path).in_file(path)?;
    if file.metadata().in_file(path)?.is_dir() {
        return Err(CliError::new(Class::Io, "is a folder; name a file").in_file(path));
    }
    Ok(BufReader::with_capacity(1 << 20, file))
}

/// All bytes of a file of at most `limit`.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes).in_file(path)?;
    if bytes.len() as u64 > limit {
        let message = format!("the file is over the limit of {limit} bytes");
        return Err(CliError::new(Class::Damaged, message).in_file(path));
    }
    Ok(bytes)
}
