//! Little-endian fields of headers.

use super::error::WireError;

/// Reads fields in order from a header's metadata, never past its end.
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// A reader of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// [`WireError::Corrupt`] past the end.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        let Some((head, rest)) = self.rest.split_at_checked(len) else {
            return Err(WireError::Corrupt { what: "metadata that ends too early" });
        };
        self.rest = rest;
        Ok(head)
    }

    /// Bytes that were not taken yet.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], WireError> {
        let mut out = [0; LEN];
        out.copy_from_slice(self.take(LEN)?);
        Ok(out)
    }

    /// The next number.
    ///
    /// # Errors
    /// [`WireError::Corrupt`] past the end.
    pub fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_le_bytes)
    }

    /// The next number.
    ///
    /// # Errors
    /// [`WireError::Corrupt`] past the end.
    pub fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next number.
    ///
    /// # Errors
    /// [`WireError::Corrupt`] past the end.
    pub fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    /// The next number, of any bits.
    ///
    /// # Errors
    /// [`WireError::Corrupt`] past the end.
    pub fn f64(&mut self) -> Result<f64, WireError> {
        self.array().map(f64::from_le_bytes)
    }

    /// The next bytes.
    ///
    /// # Errors
    /// [`WireError::Corrupt`] past the end.
    pub fn bytes16(&mut self) -> Result<[u8; 16], WireError> {
        self.array()
    }

    /// The next bytes.
    ///
    /// # Errors
    /// [`WireError::Corrupt`] past the end.
    pub fn bytes32(&mut self) -> Result<[u8; 32], WireError> {
        self.array()
    }

    /// Bytes that have no meaning yet and are zero.
    ///
    /// # Errors
    /// [`WireError::Corrupt`].
    pub fn zeros(&mut self, len: usize) -> Result<(), WireError> {
        expect_zeros(self.take(len)?)
    }

    /// Refuses bytes that nobody asked for.
    ///
    /// # Errors
    /// [`WireError::Corrupt`].
    pub fn finish(self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::Corrupt { what: "metadata that is too long" }) }
    }
}

/// Refuses padding that is not zero: every byte of a container is checked.
pub(super) fn expect_zeros(bytes: &[u8]) -> Result<(), WireError> {
    if bytes.iter().all(|b| *b == 0) { Ok(()) } else { Err(WireError::Corrupt { what: "padding that is not zero" }) }
}
