//! Errors of stored grids, each with its remedy.

use std::io;
use std::path::{Path, PathBuf};
use sudare_ring::{ErrorKind, Kinded};
use sudare_rlwe::wire::WireError;

/// Why a store was not written or read. What was there is as it was.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refused.
    #[error("{}: {reason}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The kind of the system's refusal.
        kind: io::ErrorKind,
        /// Its words.
        reason: String,
    },
    /// Nothing there, or something else.
    #[error("{}: this is not a store; name a folder that holds one", path.display())]
    NotAStore {
        /// The folder.
        path: PathBuf,
    },
    /// A store without its root.
    #[error("{}: this store is not finished; go on with resume, or remove the folder", path.display())]
    Unfinished {
        /// The folder.
        path: PathBuf,
    },
    /// A name that is taken: stores are never changed.
    #[error("{}: this exists already; name another folder, or remove this one", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The left-over files belong to another work.
    #[error("{}: the unfinished store here was begun for something else; name another \
             folder, or remove it", path.display())]
    OtherWork {
        /// The folder.
        path: PathBuf,
    },
    /// A secret key in the place of an output.
    #[error("{}: this file holds a secret key, and what it encrypted would be lost; name another file, or remove it \
             first", path.display())]
    KeyLost {
        /// The file.
        path: PathBuf,
    },
    /// Something else in the place of a secret key.
    #[error("{}: this file exists and holds something else than a key; name another \
             file, or remove it first", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else writes there now.
    #[error("{}: another process is writing here; wait for it, or name another folder", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A version that this release does not know.
    #[error("{}: this store has the unknown version {found}; use a newer release of sudare", path.display())]
    Version {
        /// The folder.
        path: PathBuf,
        /// The version found.
        found: u64,
    },
    /// Bytes that are not those that were written.
    #[error("{}: {what}: it is damaged or was changed; copy or make it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// A block whose container is refused.
    #[error("block ({row}, {col}) of {}: {error}", path.display())]
    Block {
        /// The store.
        path: PathBuf,
        /// The block's row.
        row: usize,
        /// Its column.
        col: usize,
        /// Why.
        error: Box<WireError>,
    },
    /// A container that is refused on its way into a store, or elsewhere than in one.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A place or size that the grid does not have.
    #[error("{what}: {found} does not fit, for the limit is {limit}")]
    Range {
        /// The value that was asked for.
        what: &'static str,
        /// The figure found.
        found: u64,
        /// The limit.
        limit: u64,
    },
}

impl Kinded for StoreError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { .. } | Self::Busy { .. } | Self::Exists { .. } => ErrorKind::Io,
            Self::NotAStore { .. } | Self::Unfinished { .. } | Self::Version { .. } | Self::Damaged { .. } => {
                ErrorKind::Format
            }
            Self::OtherWork { .. } => ErrorKind::Mismatch,
            Self::KeyLost { .. } | Self::Taken { .. } => ErrorKind::Usage,
            Self::Block { error, .. } => error.kind(),
            Self::Wire(error) => error.kind(),
            Self::Range { .. } => ErrorKind::Shape,
        }
    }

    fn system(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { kind, .. } => Some(*kind),
            Self::Block { error, .. } => error.system(),
            Self::Wire(error) => error.system(),
            _ => None,
        }
    }
}

impl StoreError {
    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.into(), what: what.into() }
    }
}

/// Says which file the system's refusal is about.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T, StoreError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, StoreError> {
        self.map_err(|e| StoreError::Io { path: path.into(), kind: e.kind(), reason: e.to_string() })
    }
}
