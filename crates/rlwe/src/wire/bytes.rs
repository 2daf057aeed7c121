//! Little-endian fields of headers.

use super::error::WireError;

/// Reads fields in order from a header's metadata, never past its end.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let Some((head, rest)) = self.rest.split_at_checked(len) else {
            return Err(WireError::Corrupt { what: "metadata that ends too early" });
        };
        self.rest = rest;
        Ok(head)
    }

    fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], WireError> {
        let mut out = [0; LEN];
        out.copy_from_slice(self.take(LEN)?);
        Ok(out)
    }

    pub(super) fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn f64(&mut self) -> Result<f64, WireError> {
        self.array().map(f64::from_le_bytes)
    }

    pub(super) fn bytes16(&mut self) -> Result<[u8; 16], WireError> {
        self.array()
    }

    pub(super) fn bytes32(&mut self) -> Result<[u8; 32], WireError> {
        self.array()
    }

    /// Bytes that have no meaning yet and are zero.
    pub(super) fn zeros(&mut self, len: usize) -> Result<(), WireError> {
        expect_zeros(self.take(len)?)
    }

    /// Refuses bytes that nobody asked for.
    pub(super) fn finish(self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::Corrupt { what: "metadata that is too long" }) }
    }
}

/// Refuses padding that is not zero: every byte of a container is checked.
pub(super) fn expect_zeros(bytes: &[u8]) -> Result<(), WireError> {
    if bytes.iter().all(|b| *b == 0) { Ok(()) } else { Err(WireError::Corrupt { what: "padding that is not zero" }) }
}
