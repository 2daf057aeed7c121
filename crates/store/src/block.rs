//! One block: a container of the wire format, padded to whole pages.

use crate::error::StoreError;
use sudare_rlwe::wire::{ALIGNMENT, Header, WireError, peek, segment_at};

/// Names a block's contents: BLAKE3 of its header and of the checksums of its segments, which cover the rest.
pub type BlockDigest = [u8; 32];

/// Bytes of a checksum in a container.
const CHECKSUM: usize = 32;
/// The alignment of buffers, for reads that bypass the page cache.
const ALIGN: usize = ALIGNMENT as usize;

/// The bytes of a block, at a multiple of 4 KiB in memory.
#[derive(Debug)]
pub struct Block {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Block {
    /// Room for a block of `len` bytes.
    pub fn zeroed(len: usize) -> Self {
        let bytes = vec![0; len + ALIGN];
        // Without an aligned start reads go through the page cache, and nothing else changes.
        let start = bytes.as_ptr().align_offset(ALIGN).min(ALIGN);
        Self { bytes, start, len }
    }

    /// All of its bytes, padding included.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..][..self.len]
    }

    /// The same for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.len]
    }

    /// The container that it holds. Its header is checked, and that padding follows it; segments are checked by
    /// whoever reads them.
    ///
    /// # Errors
    /// [`StoreError::Wire`].
    pub fn container(&self) -> Result<&[u8], StoreError> {
        Ok(container(self.bytes())?.1)
    }
}

/// The header of a padded container, and the container without its padding.
pub(crate) fn container(bytes: &[u8]) -> Result<(Header, &[u8]), WireError> {
    let header = peek(bytes)?;
    let total = header.total_bytes();
    if padded(total) != bytes.len() as u64 {
        return Err(WireError::Corrupt { what: "a block of another length than its container" });
    }
    let (container, padding) = bytes.split_at(total as usize);
    if padding.iter().any(|x| *x != 0) {
        return Err(WireError::Corrupt { what: "padding that is not zero" });
    }
    Ok((header, container))
}

/// Bytes of the block that holds a container.
pub fn padded(container: u64) -> u64 {
    container.next_multiple_of(ALIGNMENT)
}

/// The digest of a container whose header is given.
pub(crate) fn digest_with(header: &Header, container: &[u8]) -> BlockDigest {
    let mut hasher = blake3::Hasher::new_derive_key("sudare store block v1");
    hasher.update(&container[..header.bytes() as usize]);
    for range in header.segment_ranges() {
        hasher.update(&container[range.end as usize..][..CHECKSUM]);
    }
    *hasher.finalize().as_bytes()
}

/// The digest of a container, and the length of its block.
///
/// # Errors
/// [`WireError`] of its header.
pub fn digest_of(bytes: &[u8]) -> Result<(BlockDigest, u64), WireError> {
    let header = peek(bytes)?;
    if header.total_bytes() != bytes.len() as u64 {
        return Err(WireError::Trailing { expected: header.total_bytes() });
    }
    Ok((digest_with(&header, bytes), padded(header.total_bytes())))
}

/// Checks every byte of a container.
pub(crate) fn check_segments(header: &Header, container: &[u8]) -> Result<(), WireError> {
    let ranges: Vec<_> = header.segment_ranges().collect();
    (0..ranges.len()).try_for_each(|i| segment_at(header, container, i, &ranges).map(drop))
}
