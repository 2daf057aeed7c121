//! Writing one shard: beside its place, renamed when it is whole.

use crate::atomic::{self, Access, Durability, Over, Scratch};
use crate::block::{BlockDigest, container, digest_with};
use crate::error::{At, StoreError};
use crate::layout::Grid;
use crate::writer::Writer;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use sudare_rlwe::wire::{ALIGNMENT, WireError};

/// Bytes of zeros that blocks are padded from.
const ZEROS: [u8; ALIGNMENT as usize] = [0; ALIGNMENT as usize];

/// Takes the blocks of one shard in the order of [`Grid::members`]. Dropped before [`ShardWriter::finish`] it leaves
/// nothing.
pub struct ShardWriter<'w> {
    writer: &'w Writer,
    shard: (usize, usize),
    place: PathBuf,
    scratch: Scratch,
    digests: Vec<BlockDigest>,
}

impl<'w> ShardWriter<'w> {
    pub(crate) fn new(writer: &'w Writer, shard: (usize, usize)) -> Result<Self, StoreError> {
        let place = writer.paths().shard(shard);
        writer.paths().check_folders(&place)?;
        atomic::make_folder(&place)?;
        let scratch = Scratch::beside(&place, Access::Usual).at(&place)?;
        Ok(Self { writer, shard, place, scratch, digests: Vec::new() })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.scratch.write_all(bytes).at(&self.place)
    }

    /// The next block: a container, which is padded.
    ///
    /// # Errors
    /// [`StoreError::Wire`] for one of another length than the grid's blocks; [`StoreError::Range`] for one too many;
    /// [`StoreError::Io`].
    pub fn push(&mut self, container: &[u8]) -> Result<(), StoreError> {
        let (digest, length) = crate::block::digest_of(container)?;
        if length != self.writer.grid().block_bytes {
            return Err(WireError::Corrupt { what: "a block of another length than the grid's" }.into());
        }
        let limit = self.writer.grid().members(self.shard).count();
        if self.digests.len() == limit {
            return Err(StoreError::Range {
                what: "the number of blocks of a shard, all of which have to be written",
                found: limit as u64 + 1,
                limit: limit as u64,
            });
        }
        self.write(container)?;
        self.write(&ZEROS[..(length - container.len() as u64) as usize])?;
        self.digests.push(digest);
        Ok(())
    }

    /// The end: the shard is on the disk and takes its place.
    ///
    /// # Errors
    /// [`StoreError::Range`] if a block is missing; [`StoreError::Io`].
    pub fn finish(mut self) -> Result<(), StoreError> {
        let (found, limit) = (self.digests.len(), self.writer.grid().members(self.shard).count());
        if found != limit {
            return Err(StoreError::Range {
                what: "the number of blocks of a shard, all of which have to be written",
                found: found as u64,
                limit: limit as u64,
            });
        }
        let index = self.writer.grid().index(self.shard);
        self.write(&index)?;
        self.scratch.place(&self.place, Over::NoKey, Durability::Power)?;
        self.writer.keep(self.shard, self.digests);
        Ok(())
    }
}

/// The digests of a shard that is there, every byte of it checked.
pub(crate) fn check_shard(path: &Path, grid: &Grid, shard: (usize, usize)) -> Result<Vec<BlockDigest>, StoreError> {
    let mut file = File::open(path).at(path)?;
    check_length(&file, path, grid, shard)?;
    let mut block = vec![0; grid.block_bytes as usize];
    let mut digests = Vec::new();
    for (row, col) in grid.members(shard) {
        file.read_exact(&mut block).at(path)?;
        let checked = container(&block).and_then(|(header, inner)| {
            crate::block::check_segments(&header, inner)?;
            Ok(digest_with(&header, inner))
        });
        digests.push(checked.map_err(|e| StoreError::Block { path: path.into(), row, col, error: e.into() })?);
    }
    let mut index = Vec::new();
    file.read_to_end(&mut index).at(path)?;
    expect_index(path, grid, shard, &index)?;
    Ok(digests)
}

/// Refuses a file of another length than its shard has.
pub(crate) fn check_length(file: &File, path: &Path, grid: &Grid, shard: (usize, usize)) -> Result<(), StoreError> {
    let expected = grid.members(shard).count() as u64 * grid.block_bytes + grid.index(shard).len() as u64;
    let found = file.metadata().at(path)?.len();
    if found != expected {
        return Err(StoreError::damaged(
            path,
            format!("it has {found} bytes, and a shard of this store has {expected}"),
        ));
    }
    Ok(())
}

/// Refuses another index than the shard's.
pub(crate) fn expect_index(path: &Path, grid: &Grid, shard: (usize, usize), index: &[u8]) -> Result<(), StoreError> {
    match index == grid.index(shard) {
        true => Ok(()),
        false => Err(StoreError::damaged(path, "the index of the shard is wrong")),
    }
}
