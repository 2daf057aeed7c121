//! Their little-endian fields, read in order and never past the end.

use crate::error::LattigoError;

/// What is left of an object's bytes.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// Bytes of the whole.
    len: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, len: bytes.len() }
    }

    /// The next `len` bytes: nothing is allocated for a length that the bytes do not have.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], LattigoError> {
        let Some((head, rest)) = self.rest.split_at_checked(len) else {
            return Err(LattigoError::Truncated { found: self.len });
        };
        self.rest = rest;
        Ok(head)
    }

    fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], LattigoError> {
        let mut out = [0; LEN];
        out.copy_from_slice(self.take(LEN)?);
        Ok(out)
    }

    pub fn u8(&mut self) -> Result<u8, LattigoError> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u32(&mut self) -> Result<u32, LattigoError> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, LattigoError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A flag of one byte.
    pub fn flag(&mut self, what: &'static str) -> Result<bool, LattigoError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(LattigoError::Size { what, found: found.into(), expected: 1 }),
        }
    }

    /// A count that can only be this one.
    pub fn require(&mut self, what: &'static str, expected: usize) -> Result<(), LattigoError> {
        match self.u64()? {
            found if found == expected as u64 => Ok(()),
            found => Err(LattigoError::Size { what, found, expected: expected as u64 }),
        }
    }

    /// A count up to `limit`.
    pub fn at_most(&mut self, what: &'static str, limit: usize) -> Result<usize, LattigoError> {
        match self.u64()? {
            found if (1..=limit as u64).contains(&found) => Ok(found as usize),
            found => Err(LattigoError::Size { what, found, expected: limit as u64 }),
        }
    }

    /// Refuses bytes after the end.
    pub fn finish(self) -> Result<(), LattigoError> {
        match self.rest.len() {
            0 => Ok(()),
            more => Err(LattigoError::Trailing { expected: self.len - more, found: self.len }),
        }
    }
}

/// A count as they write it.
pub(crate) fn push_count(out: &mut Vec<u8>, count: usize) {
    out.extend((count as u64).to_le_bytes());
}
