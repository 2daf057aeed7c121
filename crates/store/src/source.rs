//! Sources of blocks.

use crate::block::{Block, padded};
use crate::error::StoreError;
use sudare_rlwe::wire::WireError;

/// A grid of blocks of one length: stored matrices, tables, diagrams, keys.
pub trait BlockSource: Send + Sync {
    /// Rows and columns of blocks.
    fn grid(&self) -> (usize, usize);

    /// Bytes of a block, a multiple of 4096.
    fn block_bytes(&self) -> u64;

    /// Reads a block into a buffer of [`BlockSource::block_bytes`]. Nothing is checked yet.
    ///
    /// # Errors
    /// [`StoreError::Range`], [`StoreError::Io`], [`StoreError::Damaged`].
    fn read(&self, row: usize, col: usize, block: &mut Block) -> Result<(), StoreError>;

    /// The container in a block that was read from this place, if it is the one that was written there: its header
    /// and the checksums of its segments are compared with the digest that is kept of them. The segments' bytes are
    /// checked against these by whoever reads the container.
    ///
    /// # Errors
    /// [`StoreError::Block`], [`StoreError::Wire`], [`StoreError::Damaged`].
    fn container<'b>(&self, row: usize, col: usize, block: &'b Block) -> Result<&'b [u8], StoreError>;
}

/// Containers in memory, row by row.
#[derive(Debug)]
pub struct InMemory {
    cols: usize,
    block_bytes: u64,
    containers: Vec<Vec<u8>>,
}

impl InMemory {
    /// A grid of `cols` columns.
    ///
    /// # Errors
    /// [`StoreError::Range`] if rows are not whole; [`StoreError::Wire`] if blocks have different lengths.
    pub fn new(cols: usize, containers: Vec<Vec<u8>>) -> Result<Self, StoreError> {
        let Some(first) = containers.first().filter(|_| cols > 0 && containers.len().is_multiple_of(cols)) else {
            let found = containers.len() as u64;
            return Err(StoreError::Range {
                what: "the number of blocks, a multiple of those in a row",
                found,
                limit: cols as u64,
            });
        };
        let block_bytes = padded(first.len() as u64);
        if containers.iter().any(|c| padded(c.len() as u64) != block_bytes) {
            return Err(WireError::Corrupt { what: "blocks of different lengths" }.into());
        }
        Ok(Self { cols, block_bytes, containers })
    }
}

/// Refuses a place outside a grid.
pub(crate) fn check_place((rows, cols): (usize, usize), row: usize, col: usize) -> Result<(), StoreError> {
    let beyond = |what, found, limit| Err(StoreError::Range { what, found: found as u64, limit: limit as u64 });
    match (row < rows, col < cols) {
        (false, _) => beyond("the row of a block, counted from 0", row, rows),
        (_, false) => beyond("the column of a block, counted from 0", col, cols),
        _ => Ok(()),
    }
}

impl BlockSource for InMemory {
    fn grid(&self) -> (usize, usize) {
        (self.containers.len() / self.cols, self.cols)
    }

    fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    fn read(&self, row: usize, col: usize, block: &mut Block) -> Result<(), StoreError> {
        check_place(self.grid(), row, col)?;
        let (head, padding) = block.bytes_mut().split_at_mut(self.containers[row * self.cols + col].len());
        head.copy_from_slice(&self.containers[row * self.cols + col]);
        padding.fill(0);
        Ok(())
    }

    fn container<'b>(&self, _: usize, _: usize, block: &'b Block) -> Result<&'b [u8], StoreError> {
        block.container()
    }
}
