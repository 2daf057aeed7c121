//! Files that appear whole or not at all, and never in the place of a secret key: the one way to make a file.

use crate::error::{At, StoreError};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use sudare_rlwe::KeyId;
use sudare_rlwe::wire::{MAGIC, ObjectType, peek};
use tempfile::{Builder, NamedTempFile};
use zeroize::Zeroizing;

/// The users who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// As the user's mask says.
    Usual,
    /// The owner alone, from the first moment.
    Owner,
}

/// The durability of a file that has taken its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The file and its name: they outlive a loss of power.
    Power,
    /// Nothing yet: a loss of power may leave the old file, or an empty one. For what can be made again.
    Process,
}

impl Durability {
    fn sync(self, file: &File) -> io::Result<()> {
        if self == Self::Power { file.sync_all() } else { Ok(()) }
    }
}

/// The files that a new file may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Anything but a secret key.
    NoKey,
    /// Only a file of the secret key with this name.
    Key(KeyId),
    /// Anything.
    All,
}

impl Over {
    /// Refuses to take the place of what is there. A link is replaced itself, and not what it leads to.
    ///
    /// # Errors
    /// [`StoreError::KeyLost`], [`StoreError::Taken`].
    pub fn check(self, path: &Path) -> Result<(), StoreError> {
        match (self, secret_key_at(path)) {
            (Self::All, _) | (Self::NoKey, None) => Ok(()),
            (Self::Key(id), Some(found)) if found == Some(id) => Ok(()),
            (_, Some(_)) => Err(StoreError::KeyLost { path: path.into() }),
            (Self::Key(_), None) if fs::symlink_metadata(path).is_ok() => Err(StoreError::Taken { path: path.into() }),
            (Self::Key(_), None) => Ok(()),
        }
    }
}

/// Whether a file begins as one with a secret key does, and that key's name if its header is whole. Parameters may
/// stand before the key.
pub fn secret_key_at(path: &Path) -> Option<Option<KeyId>> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut file = File::open(path).ok()?;
    let first = object_at(&mut file, 0)?;
    let (object, start) = match first {
        ObjectType::TfheParams => {
            file.rewind().ok()?;
            let start = peek(&mut file).ok()?.total_bytes();
            (object_at(&mut file, start)?, start)
        }
        other => (other, 0),
    };
    if !object.is_secret() {
        return None;
    }
    let key = file.seek(SeekFrom::Start(start)).ok().and_then(|_| peek(&mut file).ok()).map(|header| header.key());
    Some(key)
}

/// The kind of file at a path, by its first bytes.
fn object_at(file: &mut File, start: u64) -> Option<ObjectType> {
    let mut lead = [0; MAGIC.len() + 4];
    file.seek(SeekFrom::Start(start)).ok()?;
    file.read_exact(&mut lead).ok()?;
    let code = lead.last_chunk().map(|b| u16::from_le_bytes(*b))?;
    lead.starts_with(&MAGIC).then(|| ObjectType::from_code(code)).flatten()
}

/// Writes a file: beside its place, and then there. Leftovers of ended processes for the same name go.
///
/// # Errors
/// As [`Over::check`]; [`StoreError::Io`].
pub fn write(
    path: &Path,
    parts: &[&[u8]],
    access: Access,
    over: Over,
    durability: Durability,
) -> Result<(), StoreError> {
    over.check(path)?;
    let mut scratch = Scratch::beside(path, access).at(path)?;
    parts.iter().try_for_each(|part| scratch.write_all(part)).at(path)?;
    scratch.place(path, over, durability)
}

/// Writes a file where nothing is: it and its name outlive a loss of power when this returns. `false`, and nothing is written, where something is.
///
/// # Errors
/// [`StoreError::Io`], also where the folder cannot be brought to the disk.
pub fn write_new(path: &Path, parts: &[&[u8]], access: Access) -> Result<bool, StoreError> {
    let mut scratch = Scratch::beside(path, access).at(path)?;
    parts.iter().try_for_each(|part| scratch.write_all(part)).at(path)?;
    scratch.file().sync_all().at(path)?;
    match scratch.put_new(path) {
        Ok(()) => sync_folder(folder(path)).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).at(path),
    }
}

/// Makes the folder that a file is in, where there is none.
///
/// # Errors
/// [`StoreError::Io`].
pub fn make_folder(path: &Path) -> Result<(), StoreError> {
    let folder = folder(path);
    fs::create_dir_all(folder).at(folder)
}

/// Makes a folder that its owner alone reads, and those that it is in; one that exists stays as it is.
///
/// # Errors
/// [`StoreError::Io`].
pub fn make_private_folder(folder: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).at(folder)
}

/// Refuses a file or folder of a secret that other users reach, where the system has such rights.
///
/// # Errors
/// [`StoreError::Io`], of the kind [`io::ErrorKind::PermissionDenied`] where others reach it.
pub fn require_private(path: &Path) -> Result<(), StoreError> {
    let found = fs::metadata(path).at(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = found.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let wanted = if found.is_dir() { 700 } else { 600 };
            let reason = format!("other users reach it (mode {mode:o}), and it is for a secret; chmod {wanted} it");
            return Err(StoreError::Io { path: path.into(), kind: io::ErrorKind::PermissionDenied, reason });
        }
    }
    let _ = found;
    Ok(())
}

/// The names in a folder are on the disk when this returns.
///
/// # Errors
/// [`StoreError::Io`].
pub fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder).and_then(|f| f.sync_all()).at(folder)
}

/// A file that goes when it is closed, in a folder with room for it.
///
/// # Errors
/// Those of the system.
pub fn nameless(folder: &Path) -> io::Result<File> {
    tempfile::tempfile_in(folder)
}

/// Opens a file for reading and writing, which is made if there is none, and locks it until it is dropped; `None` while
/// somebody else has it. A link is not followed: it leads to a file of somebody else.
///
/// # Errors
/// [`StoreError::Io`].
pub fn own(path: &Path) -> Result<Option<File>, StoreError> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW);
    let file = options.read(true).write(true).create(true).truncate(false).open(path).at(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error).at(path),
    }
}

/// Opens a file to write at its end, a log; it is made if there is none. Never one of a secret key.
///
/// # Errors
/// [`StoreError::KeyLost`], [`StoreError::Io`].
pub fn append(path: &Path, access: Access) -> Result<File, StoreError> {
    Over::NoKey.check(path)?;
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    if access == Access::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let _ = access;
    options.create(true).append(true).open(path).at(path)
}

/// A file that several processes write, one after the other, before it takes its place.
#[derive(Debug)]
pub struct Part {
    file: File,
    path: PathBuf,
}

impl Part {
    /// Goes on at an offset of the file, which is made if there is none.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: PathBuf, offset: u64) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(Self { file, path })
    }

    /// Takes a place on the same disk, instead of what is there.
    ///
    /// # Errors
    /// As [`write()`].
    pub fn place(self, path: &Path, over: Over, durability: Durability) -> Result<(), StoreError> {
        durability.sync(&self.file).at(path)?;
        moved(path, over, durability, || fs::rename(&self.path, path))
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Moves a file that is whole to its place, while nobody else moves one there.
fn moved(
    path: &Path,
    over: Over,
    durability: Durability,
    rename: impl FnOnce() -> io::Result<()>,
) -> Result<(), StoreError> {
    let folder = Folder::lock(folder(path));
    over.check(path)?;
    rename().at(path)?;
    if durability == Durability::Power { folder.sync().at(path) } else { Ok(()) }
}

/// A folder that nobody else places files in until this is dropped, if it can be locked.
#[derive(Debug)]
pub struct Folder(io::Result<File>);

impl Folder {
    /// Waits for others. A folder that cannot be locked is not shared with anybody who would wait.
    pub fn lock(path: &Path) -> Self {
        let folder = File::open(path);
        let _ = folder.as_ref().map(File::lock);
        Self(folder)
    }

    /// The names in it are on the disk when this returns. Where the system opens no folders, or has no such operation on them,
    /// there is nothing to do.
    ///
    /// # Errors
    /// Those of the system: the files have their names, and may lose them with the power.
    pub fn sync(&self) -> io::Result<()> {
        match &self.0 {
            Ok(folder) => match folder.sync_all() {
                Err(e) if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
                done => done,
            },
            Err(e) if cfg!(unix) => Err(e.kind().into()),
            Err(_) => Ok(()),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Not by closing alone: a process that was forked meanwhile has the file open too.
        let _ = self.0.as_ref().map(File::unlock);
    }
}

/// The folder that a file is in.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

/// A file with a name of its own, locked as long as its process lives, and removed when it is dropped.
#[derive(Debug)]
pub struct Scratch(NamedTempFile);

/// Scratch files that are made before it is given up.
const ATTEMPTS: usize = 16;
/// The ending of the names of scratch files.
const SUFFIX: &str = ".part";

impl Scratch {
    /// Beside the place that it is for. Scratch files for the same name that ended processes left are removed.
    ///
    /// # Errors
    /// Those of the system.
    pub fn beside(path: &Path, access: Access) -> io::Result<Self> {
        let prefix = format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy());
        remove_abandoned(folder(path), &prefix);
        Self::within(folder(path), &prefix, access)
    }

    /// In a folder.
    ///
    /// # Errors
    /// Those of the system.
    pub fn within(folder: &Path, prefix: &str, access: Access) -> io::Result<Self> {
        let mut builder = Builder::new();
        builder.prefix(prefix).suffix(SUFFIX);
        // Without this a scratch file is the owner's alone.
        #[cfg(unix)]
        if access == Access::Usual {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let _ = access;
        for _ in 0..ATTEMPTS {
            let file = builder.tempfile_in(folder)?;
            // Somebody who saw it before it was locked may take it for an abandoned one. Where the
            // file system knows no locks, nobody does.
            let free = !matches!(file.as_file().try_lock(), Err(TryLockError::WouldBlock));
            if free && file.path().exists() {
                return Ok(Self(file));
            }
        }
        Err(io::Error::other("something here removes files as soon as they are made; use another folder"))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The file.
    pub fn file(&self) -> &File {
        self.0.as_file()
    }

    /// Takes a place, instead of what is there.
    ///
    /// # Errors
    /// As [`write()`].
    pub fn place(self, path: &Path, over: Over, durability: Durability) -> Result<(), StoreError> {
        durability.sync(self.file()).at(path)?;
        moved(path, over, durability, || self.put(path))
    }

    /// Takes a place, instead of what is there, and no more: whoever places several files syncs and looks himself.
    ///
    /// # Errors
    /// Those of the system.
    pub fn put(self, path: &Path) -> io::Result<()> {
        self.0.persist(path).map(drop).map_err(|e| e.error)
    }

    /// Takes a place where nothing is.
    ///
    /// # Errors
    /// `AlreadyExists`, and those of the system.
    pub fn put_new(self, path: &Path) -> io::Result<()> {
        self.0.persist_noclobber(path).map(drop).map_err(|e| e.error)
    }
}

impl Write for Scratch {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// Removes scratch files whose processes ended without removing them: nobody holds their locks.
pub fn remove_abandoned(folder: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|n| n.starts_with(prefix) && n.ends_with(SUFFIX));
        if ours
            && entry.file_type().is_ok_and(|t| t.is_file())
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            // Removed while it is locked: whoever just made it tries again with another.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// All bytes of a file that holds a secret, in memory that is wiped and nowhere else.
///
/// # Errors
/// [`StoreError::Io`]; [`StoreError::Range`] for more than `limit` bytes.
pub fn read_secret(path: &Path, limit: u64) -> Result<Zeroizing<Vec<u8>>, StoreError> {
    let file = File::open(path).at(path)?;
    let found = file.metadata().at(path)?.len();
    if found > limit {
        return Err(StoreError::Range { what: "bytes of a file with a secret key", found, limit });
    }
    read_wiped(file, found as usize).at(path)
}

/// Bytes that go from the input to the memory that is wiped, and nowhere else.
///
/// # Errors
/// Those of the input.
pub fn read_wiped(mut input: impl Read, length: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    // Never grown, since growing would leave copies behind.
    let mut bytes = Zeroizing::new(vec![0; length]);
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    /// Remembers the memory that it was read into.
    struct Recorder<'a>(&'a [u8], &'a mut Vec<Range<usize>>);

    impl Read for Recorder<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let step = buffer.len().min(1000);
            let count = self.0.read(&mut buffer[..step])?;
            let start = buffer.as_ptr() as usize;
            self.1.push(start..start + count);
            Ok(count)
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_cannot_be_brought_to_the_disk_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        assert!(Folder::lock(place.path()).sync().is_ok());
        let gone = Folder::lock(&place.path().join("gone"));
        assert_eq!(gone.sync().unwrap_err().kind(), io::ErrorKind::NotFound);
        let inside = place.path().join("gone/inside");
        assert!(moved(&inside, Over::All, Durability::Power, || Ok(())).is_err());
        assert!(moved(&inside, Over::All, Durability::Process, || Ok(())).is_ok());
    }

    #[test]
    fn secrets_pass_through_no_other_memory() {
        let (secret, mut places) = (vec![7u8; 6161], Vec::new());
        let read = read_wiped(Recorder(&secret, &mut places), secret.len()).unwrap();
        assert_eq!(*read, secret);
        let kept = read.as_ptr() as usize..read.as_ptr() as usize + read.len();
        assert!(places.len() > 6 && places.iter().all(|p| kept.start <= p.start && p.end <= kept.end));
    }
}
