//! What can be wrong with bytes from outside.

use super::object::ObjectType;
use crate::error::RlweError;
use crate::ids::{KeyId, ParamsHash};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use sudare_ring::{ErrorKind, Kinded};

/// The part of a container that a checksum covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The header.
    Header,
    /// A segment, by number.
    Segment(usize),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("the header"),
            Self::Segment(i) => write!(f, "segment {i}"),
        }
    }
}

/// Why bytes were not read or an object was not written. Nothing was taken over.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The file or stream below failed.
    #[error("reading or writing failed: {kind}")]
    Io {
        /// What the system said.
        kind: std::io::ErrorKind,
    },
    /// The first bytes are not those of a container.
    #[error("this is not a Sudare file; name one that Sudare wrote")]
    NotSudare,
    /// A format version that this release does not know.
    #[error(
        "format version {found} is unknown, and versions up to {supported} can be read; use a newer release of sudare"
    )]
    Version {
        /// The version found.
        found: u16,
        /// The newest version known.
        supported: u16,
    },
    /// An object of another type than the one asked for.
    #[error("this holds {found} and not {expected}; give the right file or bytes")]
    WrongType {
        /// The type found.
        found: ObjectType,
        /// The type expected.
        expected: ObjectType,
    },
    /// The bytes end too early.
    #[error("the file ends too early: {needed} bytes were needed for {part}, {found} are there; copy or send it again")]
    Truncated {
        /// The part that is not whole.
        part: Part,
        /// Bytes the part needs, or the whole container where its length is known.
        needed: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// Bytes after the end of the container.
    #[error("there are more bytes than the {expected} of the object; give the object alone")]
    Trailing {
        /// The container's length.
        expected: u64,
    },
    /// Bytes that are not those that were written.
    #[error("the checksum of {part} does not match: the file is damaged; copy or send it again")]
    Checksum {
        /// The damaged part.
        part: Part,
    },
    /// A claimed size over what is possible; nothing was allocated for it.
    #[error("{what} of {found} is over the limit of {limit}")]
    Oversize {
        /// What is too large.
        what: &'static str,
        /// The size claimed or given.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// An object of another parameter set.
    #[error(
        "this belongs to parameters {found}, not to {expected}; use what was made with one plan or set of parameters"
    )]
    WrongParameters {
        /// The hash found.
        found: ParamsHash,
        /// The hash expected.
        expected: ParamsHash,
    },
    /// Keys of another bootstrapping set.
    #[error(
        "these bootstrapping keys belong to parameters {found}, not to {expected}: to another set, or to this one before \
         its sparse key's weight was raised, which rotations of the ring asked for; make the keys anew"
    )]
    WrongBootstrapSet {
        /// The hash found.
        found: ParamsHash,
        /// The hash expected.
        expected: ParamsHash,
    },
    /// An object of another secret key.
    #[error("this belongs to key {found}, not to {expected}; use what was made with one key")]
    WrongKey {
        /// The key id found.
        found: KeyId,
        /// The key id expected.
        expected: KeyId,
    },
    /// A residue that is not below its modulus.
    #[error("residue {index} of limb {limb} in segment {segment} is not below its modulus; copy or send it again")]
    Coefficient {
        /// Segment of the residue.
        segment: usize,
        /// Its limb.
        limb: usize,
        /// Its index in the limb.
        index: usize,
    },
    /// Contents that no writer makes, under matching checksums.
    #[error("the file is malformed: {what}; copy or send it again")]
    Corrupt {
        /// What is wrong.
        what: &'static str,
    },
    /// The contents do not make a valid object of this crate.
    #[error(transparent)]
    Rlwe(#[from] RlweError),
    /// The contents do not make a valid object of another crate.
    #[error(transparent)]
    Object(Refused),
}

impl Kinded for WireError {
    /// Contents that make no sense are bytes that make none.
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { .. } => ErrorKind::Io,
            Self::WrongType { .. } => ErrorKind::WrongType,
            Self::WrongParameters { .. } | Self::WrongBootstrapSet { .. } | Self::WrongKey { .. } => {
                ErrorKind::Mismatch
            }
            Self::NotSudare
            | Self::Version { .. }
            | Self::Truncated { .. }
            | Self::Trailing { .. }
            | Self::Checksum { .. }
            | Self::Oversize { .. }
            | Self::Coefficient { .. }
            | Self::Corrupt { .. } => ErrorKind::Format,
            Self::Rlwe(e) => of_contents(e.kind()),
            Self::Object(e) => of_contents(e.0.kind()),
        }
    }

    fn system(&self) -> Option<std::io::ErrorKind> {
        match self {
            Self::Io { kind } => Some(*kind),
            _ => None,
        }
    }
}

/// What is refused of a value is damage in a file.
fn of_contents(kind: ErrorKind) -> ErrorKind {
    let of_a_value = matches!(
        kind,
        ErrorKind::Parameters
            | ErrorKind::Levels
            | ErrorKind::Precision
            | ErrorKind::Input
            | ErrorKind::Shape
            | ErrorKind::Unsupported
    );
    if of_a_value { ErrorKind::Format } else { kind }
}

/// An error of a crate that has objects of its own ([`super::Wire`]), as reading them meets it. Shared.
#[derive(Clone)]
pub struct Refused(Arc<dyn Kinded>);

impl Refused {
    /// The error itself, if it is of this type.
    pub fn downcast_ref<E: Kinded>(&self) -> Option<&E> {
        (&*self.0 as &dyn Error).downcast_ref()
    }
}

impl<E: Kinded> From<E> for Refused {
    fn from(error: E) -> Self {
        Self(Arc::new(error))
    }
}

impl PartialEq for Refused {
    fn eq(&self, other: &Self) -> bool {
        self.0.kind() == other.0.kind() && self.0.to_string() == other.0.to_string()
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for Refused {}

impl From<std::io::Error> for WireError {
    fn from(error: std::io::Error) -> Self {
        Self::Io { kind: error.kind() }
    }
}

impl From<sudare_ring::RingError> for WireError {
    fn from(error: sudare_ring::RingError) -> Self {
        Self::Rlwe(error.into())
    }
}
