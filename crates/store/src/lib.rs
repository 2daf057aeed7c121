//! Encrypted objects as grids of blocks on a disk, which may be larger than memory.
//!
//! A grid is an ordinary Zarr v3 group ([`layout`]), which zarr-python, xarray and dask open. Every block is one
//! container of the wire format ([`sudare_rlwe::wire`]), padded to a multiple of 4 KiB, so that blocks are read where
//! they lie without the page cache. Shards are written beside their place and renamed when they are whole, and the
//! root comes last ([`Writer`]): no root, no grid. What was interrupted goes on from the shards that are there.
//!
//! Every byte is checked: blocks by their own checksums and by a table of digests, that by the root's digest, all
//! else by comparison with what the root says it has to be ([`Reader`]).
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod ahead;
pub mod atomic;
mod block;
mod crc32c;
mod error;
mod keys;
pub mod layout;
mod ledger;
mod lock;
mod position;
mod reader;
mod reseal;
mod shard;
mod source;
mod writer;

pub use ahead::{Ahead, Request, read_ahead};
pub use block::{Block, BlockDigest, digest_of};
pub use error::StoreError;
pub use keys::KeyFile;
pub use layout::{Description, Grid};
pub use ledger::{PartyLedger, Rehearsal};
pub use lock::LockedFile;
pub use position::read_exact_at;
pub use reader::{Reader, Reading, is_store};
#[doc(hidden)]
pub use reseal::reseal_for_tests;
pub use shard::ShardWriter;
pub use source::{BlockSource, InMemory};
pub use writer::{Existing, Writer};
