//! Reading at a place of a file, whatever others read of it.

use std::fs::File;
use std::io;
use std::path::Path;

/// As many bytes from a place on as there are, up to the buffer's length.
#[cfg(unix)]
pub fn read_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, offset)
}

/// As many bytes from a place on as there are, up to the buffer's length.
#[cfg(windows)]
pub fn read_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, offset)
}

/// Where there are no files, nothing is read.
#[cfg(not(any(unix, windows)))]
pub fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fills the buffer from a place on.
///
/// # Errors
/// Those of reading; `UnexpectedEof` for a file that ends before.
pub fn read_exact_at(file: &File, mut out: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !out.is_empty() {
        match read_at(file, out, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                out = &mut out[count..];
                offset += count as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => (),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The file past the page cache; `None` where the system or the file's has no such thing.
#[cfg(target_os = "linux")]
pub fn direct(path: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path).ok()?;
    // Some open it and refuse to read.
    let mut probe = crate::Block::zeroed(4096);
    read_exact_at(&file, probe.bytes_mut(), 0).ok().map(|()| file)
}

/// The file past the page cache; `None` where the system or the file's has no such thing.
#[cfg(not(target_os = "linux"))]
pub fn direct(_: &Path) -> Option<File> {
    None
}
