//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// What names of files that are not whole yet start with.
pub(crate) const UNFINISHED: &str = ".new-";

/// Makes scratch names of one process differ.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A file that is not whole yet; dropped, it leaves no trace.
pub(crate) struct Scratch {
    file: File,
    path: Option<PathBuf>,
}

impl Scratch {
    /// A new file in a folder.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let name = format!("{UNFINISHED}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = folder.join(name);
        Ok(Self { file: File::create_new(&path)?, path: Some(path) })
    }

    /// The file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Moves it to its place in the same folder.
    pub fn persist(mut self, to: &Path) -> io::Result<()> {
        let Some(path) = self.path.take() else { return Ok(()) };
        fs::rename(&path, to).inspect_err(|_| drop(fs::remove_file(&path)))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// Puts a file in its place, and on the disk if it is to outlive the machine's power.
pub(crate) fn write(path: &Path, durable: bool, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut scratch = Scratch::new(folder)?;
    scratch.file().write_all(bytes)?;
    if durable {
        scratch.file().sync_data()?;
    }
    scratch.persist(path)?;
    if durable { sync_folder(folder) } else { Ok(()) }
}

/// Writes the names in a folder to the disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes what a process that ended was writing. Nobody else writes in the folder.
pub(crate) fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}
