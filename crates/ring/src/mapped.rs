//! Files that are read where they lie, without a copy in memory.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::Path;

/// A file mapped for reading.
///
/// Whoever opens it owns it: nobody may shorten or overwrite the file while it is mapped. Files of this
/// project are never changed in place; a new one takes the name of an old one, whose mapping stays whole.
pub struct MappedFile(Option<memmap2::Mmap>);

impl MappedFile {
    /// Maps a file.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::InvalidInput`] for what is no regular file.
    #[expect(unsafe_code, reason = "no safe interface maps files")]
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        if meta.len() == 0 {
            return Ok(Self(None));
        }
        // SAFETY: the mapping is read-only, and its bytes stay what they are as long as nobody changes the
        // file in place, which is the condition stated above.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        Ok(Self(Some(map)))
    }

    /// Tells the system that bytes will be read soon, so that it fetches them meanwhile. Parts beyond the
    /// end are ignored.
    pub fn will_need(&self, range: Range<usize>) {
        let end = range.end.min(self.len());
        if let Some(map) = &self.0
            && range.start < end
        {
            // Advice: reading works without it.
            #[cfg(unix)]
            let _ = map.advise_range(memmap2::Advice::WillNeed, range.start, end - range.start);
            let _ = map;
        }
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl std::fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MappedFile({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_files() {
        let path = std::env::temp_dir().join(format!("sudare-mapped-{}", std::process::id()));
        for bytes in [vec![], vec![7u8; 3], (0..10_000u32).flat_map(u32::to_le_bytes).collect()] {
            std::fs::write(&path, &bytes).unwrap();
            let map = MappedFile::open(&path).unwrap();
            map.will_need(0..usize::MAX);
            map.will_need(9..5000);
            assert!(*map == bytes);
            drop(map);
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(MappedFile::open(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(MappedFile::open(&std::env::temp_dir()).is_err());
    }
}
