//! Numbers that come back with a match, and their type.

use crate::error::SearchError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Numbers of a row at most.
const MAX_NUMBERS: usize = 256;

/// Numbers that come back with a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payload {
    /// How many for each row.
    pub numbers: usize,
    /// Bits of each, 1 to 64: fewer than the type has of unsigned ones only.
    pub bits: u32,
    /// Their type; without one the least unsigned type that has the bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<Dtype>,
}

impl Payload {
    /// Numbers of a type, of which so many bits are used.
    pub fn new(numbers: usize, bits: u32, dtype: Dtype) -> Self {
        Self { numbers, bits, dtype: (dtype != Dtype::least(bits)).then_some(dtype) }
    }

    /// The type of the numbers.
    pub fn dtype(&self) -> Dtype {
        self.dtype.unwrap_or(Dtype::least(self.bits))
    }

    pub(crate) fn check(&self) -> Result<(), SearchError> {
        let Self { numbers, bits, .. } = *self;
        let wanted = if !(1..=MAX_NUMBERS).contains(&numbers) || !(1..=64).contains(&bits) {
            "1 to 256 numbers of 1 to 64 bits"
        } else if !self.dtype().has(bits) {
            "as many bits as the type has, or fewer of an unsigned one"
        } else {
            return Ok(());
        };
        let found = format!("{numbers} numbers of {bits} bits ({})", self.dtype());
        Err(SearchError::Goal { what: "a payload", found, wanted })
    }

    /// The bits of an integer, as they are stored; `None` for one out of range, and where numbers are floats.
    pub fn bits_of(&self, integer: i128) -> Option<u64> {
        let end = 1i128 << self.bits;
        let range = match self.dtype().kind {
            Kind::Unsigned => 0..end,
            Kind::Signed => -end / 2..end / 2,
            Kind::Float => return None,
        };
        range.contains(&integer).then_some((integer & (end - 1)) as u64)
    }

    /// The integer of such bits; `None` where numbers are floats.
    pub fn integer_of(&self, bits: u64) -> Option<i128> {
        let (found, end) = (i128::from(bits), 1i128 << self.bits);
        match self.dtype().kind {
            Kind::Unsigned => Some(found),
            Kind::Signed => Some(if found < end / 2 { found } else { found - end }),
            Kind::Float => None,
        }
    }
}

/// Type of a number, by NumPy's name for it: `u1`, `u2`, `u4`, `u8`, `i1`, `i2`, `i4`, `i8`, `f2`, `f4`, `f8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Dtype {
    kind: Kind,
    bytes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Signed,
    Float,
}

impl Dtype {
    /// The least unsigned type of so many bits.
    fn least(bits: u32) -> Self {
        Self { kind: Kind::Unsigned, bytes: bits.min(64).div_ceil(8).next_power_of_two() }
    }

    fn has(self, bits: u32) -> bool {
        let all = 8 * self.bytes;
        bits == all || (bits < all && self.kind == Kind::Unsigned)
    }
}

impl FromStr for Dtype {
    type Err = SearchError;

    fn from_str(name: &str) -> Result<Self, SearchError> {
        let refused = || SearchError::Goal {
            what: "a payload's type",
            found: name.into(),
            wanted: "u1, u2, u4, u8, i1, i2, i4, i8, f2, f4 or f8",
        };
        let (kind, bytes) = name.split_at_checked(1).ok_or_else(refused)?;
        let kind = match kind {
            "u" => Kind::Unsigned,
            "i" => Kind::Signed,
            "f" => Kind::Float,
            _ => return Err(refused()),
        };
        let bytes = match bytes {
            "1" if kind != Kind::Float => 1,
            "2" => 2,
            "4" => 4,
            "8" => 8,
            _ => return Err(refused()),
        };
        Ok(Self { kind, bytes })
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Unsigned => 'u',
            Kind::Signed => 'i',
            Kind::Float => 'f',
        };
        write!(f, "{kind}{}", self.bytes)
    }
}

impl TryFrom<String> for Dtype {
    type Error = SearchError;

    fn try_from(name: String) -> Result<Self, SearchError> {
        name.parse()
    }
}

impl From<Dtype> for String {
    fn from(dtype: Dtype) -> Self {
        dtype.to_string()
    }
}
