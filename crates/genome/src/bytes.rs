//! Little-endian fields of this crate's objects.

use sudare_he::wire::{Fields, WireError};

/// Appends fields, which [`Fields`] reads.
pub trait Put {
    /// Appends a number.
    fn u32(&mut self, x: u32);
    /// Appends a number.
    fn u64(&mut self, x: u64);
    /// Appends a text with its length.
    fn text(&mut self, x: &str);
}

impl Put for Vec<u8> {
    fn u32(&mut self, x: u32) {
        self.extend(x.to_le_bytes());
    }

    fn u64(&mut self, x: u64) {
        self.extend(x.to_le_bytes());
    }

    fn text(&mut self, x: &str) {
        // Texts are far below 2^32 bytes.
        self.u32(x.len() as u32);
        self.extend(x.as_bytes());
    }
}

/// Longest text that is read.
const MAX_TEXT: u32 = 1 << 16;

/// The next text.
pub fn text(fields: &mut Fields<'_>) -> Result<String, WireError> {
    let length = fields.u32()?;
    if length > MAX_TEXT {
        return Err(WireError::Oversize { what: "a text", found: length.into(), limit: MAX_TEXT.into() });
    }
    let bytes = fields.take(length as usize)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| WireError::Corrupt { what: "a text that is no UTF-8" })
}

/// A number that this machine can count to.
pub fn count(fields: &mut Fields<'_>) -> Result<usize, WireError> {
    let found = fields.u64()?;
    usize::try_from(found).map_err(|_| WireError::Oversize { what: "a number", found, limit: usize::MAX as u64 })
}

/// The next flag.
pub fn flag(fields: &mut Fields<'_>) -> Result<bool, WireError> {
    match fields.u32()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(WireError::Corrupt { what: "a flag that is neither set nor not" }),
    }
}
