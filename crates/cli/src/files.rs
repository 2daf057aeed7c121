//! Files that appear whole or not at all.

use crate::error::{CliError, InFile};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use sudare_ring::ErrorKind;
pub use sudare_store::atomic::folder;
use sudare_store::atomic::{self, Folder, Over, read_wiped};
use zeroize::Zeroizing;

/// Who may read an output, and what it may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever the user's mask lets read it.
    Usual,
    /// The owner alone, from the first moment.
    Owner,
    /// The owner alone; a secret key, which alone may take the place of one.
    Key,
}

impl Access {
    /// Who may read it.
    fn readers(self) -> atomic::Access {
        match self {
            Self::Usual => atomic::Access::Usual,
            Self::Owner | Self::Key => atomic::Access::Owner,
        }
    }

    /// Refuses what it may not replace.
    fn check(self, path: &Path) -> Result<(), CliError> {
        let over = if self == Self::Key { Over::All } else { Over::NoKey };
        Ok(over.check(path)?)
    }
}

/// What happens to a file that has the name of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The output takes its place.
    Replaced,
    /// It stays, and the output is refused.
    Kept,
}

const TAKEN: &str = "is there already; name another output, or add --force";

/// Scratch files of this process. Whoever holds the lock keeps [`remove_scratch`] waiting.
static SCRATCH: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn scratch() -> MutexGuard<'static, Vec<PathBuf>> {
    SCRATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the scratch files, for a process that a signal ends. No output takes its place any more.
pub fn remove_scratch() {
    let files = scratch();
    for path in files.iter() {
        let _ = fs::remove_file(path);
    }
    std::mem::forget(files);
}

/// Whether a name is that of standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// An output that takes its place when it is whole; dropped before that, it leaves no trace.
///
/// Until then it is a scratch file beside that place, locked as long as its process lives. Standard output gets all of
/// it at once, from a scratch file in the system's folder for them.
pub struct Output {
    scratch: BufWriter<Scratch>,
    path: PathBuf,
    access: Access,
}

/// An output that is on the disk, and not in its place yet.
pub struct Whole {
    scratch: Scratch,
    path: PathBuf,
    access: Access,
    size: u64,
}

impl Output {
    /// Starts an output, unless a secret key would be lost to it. Scratch files for the same name that ended processes
    /// left are removed.
    pub fn create(path: &Path, access: Access) -> Result<Self, CliError> {
        if path.is_dir() || (path.exists() && !path.is_file()) {
            return Err(CliError::new(ErrorKind::Io, "is no regular file; name another output").in_file(path));
        }
        let make: &dyn Fn() -> std::io::Result<atomic::Scratch> = match is_standard(path) {
            true => &|| atomic::Scratch::within(&std::env::temp_dir(), ".sudare.", atomic::Access::Owner),
            false => {
                access.check(path)?;
                &|| atomic::Scratch::beside(path, access.readers())
            }
        };
        let scratch = Scratch::create(make).in_file(path)?;
        Ok(Self { scratch: BufWriter::with_capacity(1 << 20, scratch), path: path.to_owned(), access })
    }

    /// Bytes that must not linger in a buffer.
    pub fn write_secret(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.scratch.flush().in_file(&self.path)?;
        self.scratch.get_mut().write_all(bytes).in_file(&self.path)
    }

    /// Writes everything to the disk.
    pub fn finish(self) -> Result<Whole, CliError> {
        let (path, access) = (self.path, self.access);
        let scratch = self.scratch.into_inner().map_err(|e| e.into_error()).in_file(&path)?;
        scratch.file().sync_all().in_file(&path)?;
        let size = scratch.file().metadata().in_file(&path)?.len();
        Ok(Whole { scratch, path, access, size })
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

impl Whole {
    /// The later place.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is until then, for reading.
    pub fn scratch(&self) -> &Path {
        // Only what is consumed is gone.
        let Some(file) = &self.scratch.0 else { unreachable!("a scratch file is there until it is dropped") };
        file.path()
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes its place.
    pub fn put(self, existing: Existing) -> Result<(), CliError> {
        place(vec![self], existing)
    }
}

/// Moves outputs of one folder to their places, all of them or none. Two processes that write the
/// same outputs do so one after the other, and no signal comes between.
pub fn place(outputs: Vec<Whole>, existing: Existing) -> Result<(), CliError> {
    replace(outputs, None, existing)
}

/// As [`place`]. A file of their folder that would not belong to them is removed, or refused where it has to stay.
pub fn place_without(outputs: Vec<Whole>, old: &Path, existing: Existing) -> Result<(), CliError> {
    replace(outputs, Some(old), existing)
}

fn replace(outputs: Vec<Whole>, old: Option<&Path>, existing: Existing) -> Result<(), CliError> {
    let Some(first) = outputs.first() else { return Ok(()) };
    let place = folder(&first.path).to_path_buf();
    let folder = Folder::lock(&place);
    let files = outputs.iter().any(|output| !is_standard(&output.path));
    outputs
        .iter()
        .filter(|output| !is_standard(&output.path))
        .try_for_each(|output| output.access.check(&output.path))?;
    let old = old.filter(|path| fs::symlink_metadata(path).is_ok());
    if let Some(path) = old {
        Access::Usual.check(path)?;
        if existing == Existing::Kept {
            return Err(CliError::new(ErrorKind::Usage, TAKEN).in_file(path));
        }
    }
    let mut rest = outputs.into_iter();
    move_all(&mut rest, existing, &mut scratch())?;
    old.map_or(Ok(()), |path| fs::remove_file(path).in_file(path))?;
    if files { folder.sync().in_file(&place) } else { Ok(()) }
}

fn move_all(
    outputs: &mut impl Iterator<Item = Whole>,
    existing: Existing,
    files: &mut Vec<PathBuf>,
) -> Result<(), CliError> {
    let mut placed: Vec<PathBuf> = Vec::new();
    for Whole { scratch, path, .. } in outputs {
        if is_standard(&path) {
            scratch.print(files).in_file(&path)?;
            continue;
        }
        if let Err(error) = scratch.persist(&path, existing, files) {
            if existing == Existing::Kept {
                // What is there now was not there before.
                placed.iter().for_each(|path| drop(fs::remove_file(path)));
            }
            return Err(match error.kind() {
                io::ErrorKind::AlreadyExists => CliError::new(ErrorKind::Usage, TAKEN),
                _ => error.into(),
            }
            .in_file(&path));
        }
        placed.push(path);
    }
    Ok(())
}

/// A scratch file that is on the list of this process.
struct Scratch(Option<atomic::Scratch>);

impl Scratch {
    fn create(make: impl Fn() -> std::io::Result<atomic::Scratch>) -> std::io::Result<Self> {
        // Made under the lock, so that a signal finds it on the list or not at all.
        let mut files = scratch();
        let file = make()?;
        files.push(file.path().to_owned());
        Ok(Self(Some(file)))
    }

    fn file(&self) -> &File {
        // Only what is consumed is gone.
        let Some(file) = &self.0 else { unreachable!("a scratch file is there until it is dropped") };
        file.file()
    }

    /// Copies everything to standard output, and is gone.
    fn print(mut self, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
        let Some(scratch) = self.0.take() else { return Ok(()) };
        files.retain(|other| other != scratch.path());
        let (mut file, mut out) = (scratch.file(), std::io::stdout().lock());
        file.rewind()?;
        std::io::copy(&mut file, &mut out)?;
        out.flush()
    }

    fn persist(mut self, path: &Path, existing: Existing, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
        let Some(file) = self.0.take() else { return Ok(()) };
        files.retain(|other| other != file.path());
        match existing {
            Existing::Replaced => file.put(path),
            Existing::Kept => file.put_new(path),
        }
    }
}

impl Write for Scratch {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file().flush()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            let mut files = scratch();
            files.retain(|other| other != file.path());
            // Removed under the lock, so that a signal finds it on the list or not at all.
            drop(file);
        }
    }
}

/// Refuses outputs that are also inputs, by whatever name: the input would be lost; and two inputs from one stream.
pub fn check_distinct(inputs: &[PathBuf], outputs: &[PathBuf]) -> Result<(), CliError> {
    if inputs.iter().filter(|path| is_standard(path)).count() > 1 {
        return Err(CliError::new(ErrorKind::Usage, "standard input is one file; name the others"));
    }
    for output in outputs.iter().filter(|path| !is_standard(path)) {
        let Some(found) = identity(output) else { continue };
        if let Some(input) = inputs.iter().find(|input| identity(input).as_ref() == Some(&found)) {
            let message = format!("is also the input {}; name another output", input.display());
            return Err(CliError::new(ErrorKind::Usage, message).in_file(output));
        }
    }
    Ok(())
}

/// What is the same for all names of one file, links among them; `None` for a file that is not there.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|m| (m.dev(), m.ino()))
}

/// What is the same for all names of one file, but for hard links.
#[cfg(not(unix))]
fn identity(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// Refuses to take the place of files, before any work is done. A folder is a store, which looks after itself.
pub fn check_free(outputs: &[PathBuf]) -> Result<(), CliError> {
    let taken = |path: &&PathBuf| !is_standard(path) && fs::symlink_metadata(path).is_ok() && !path.is_dir();
    let Some(path) = outputs.iter().find(taken) else { return Ok(()) };
    let words = match atomic::secret_key_at(path) {
        Some(_) => {
            "there is a key already, and what it encrypted would be lost; name another output, or make new keys with --force"
        }
        None => TAKEN,
    };
    Err(CliError::new(ErrorKind::Usage, words).in_file(path))
}

/// Opens a file for reading without a buffer, which would keep what is read.
pub fn open_unbuffered(path: &Path) -> Result<File, CliError> {
    if is_standard(path) {
        return Err(CliError::new(
            ErrorKind::Usage,
            "keys are read from files, and not from standard input; name a file",
        ));
    }
    let file = File::open(path).in_file(path)?;
    if file.metadata().in_file(path)?.is_dir() {
        return Err(CliError::new(ErrorKind::Io, "is a folder; name a file").in_file(path));
    }
    Ok(file)
}

/// Opens a file, or standard input, for reading in order.
pub fn open(path: &Path) -> Result<Box<dyn Read>, CliError> {
    Ok(match is_standard(path) {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(BufReader::with_capacity(1 << 20, open_unbuffered(path)?)),
    })
}

fn too_large(path: &Path, limit: u64) -> CliError {
    CliError::new(
        ErrorKind::Format,
        format!("the file is over the limit of {limit} bytes; check that it is the right one"),
    )
    .in_file(path)
}

/// All bytes of a file of at most `limit`.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    open(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes).in_file(path)?;
    if bytes.len() as u64 > limit { Err(too_large(path, limit)) } else { Ok(bytes) }
}

/// All bytes of a file of at most `limit` that holds a secret, in memory that is wiped.
pub fn read_secret(path: &Path, limit: u64) -> Result<Zeroizing<Vec<u8>>, CliError> {
    let file = open_unbuffered(path)?;
    let length = file.metadata().in_file(path)?.len();
    if length > limit { Err(too_large(path, limit)) } else { read_wiped(file, length as usize).in_file(path) }
}

/// Where measurements of this machine are kept: `$XDG_CACHE_HOME/sudare`, or `~/.cache/sudare`.
pub fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    Some(set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join("sudare"))
}
