//! Reading a grid that is finished.

use crate::block::{Block, container, digest_with};
use crate::error::{At, StoreError};
use crate::layout::{DIGEST, Description, Grid, MAX_DOCUMENT, Paths, Root};
use crate::position::{direct, read_exact_at};
use crate::shard::{check_length, check_shard, expect_index};
use crate::source::{BlockSource, check_place};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use sudare_ring::memo::PerProcess;

/// Files of shards by their place in the grid.
type Shards = BTreeMap<(usize, usize), Arc<File>>;

/// Most shards that are kept open.
const MAX_OPEN: usize = 256;

/// Options of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Through the page cache: for a block now and then.
    Cached,
    /// Past it, where the file system can: for strips that are larger than memory, read ahead in a known order.
    Direct,
}

/// A finished grid. Documents and digests are checked when it is opened, a shard's index when the shard is first
/// asked for, a block when it is read.
#[derive(Debug)]
pub struct Reader {
    paths: Paths,
    root: Root,
    digests: Vec<u8>,
    reading: Reading,
    open: PerProcess<Mutex<Shards>>,
    bytes_read: AtomicU64,
}

/// A small file, whole.
fn document(path: &Path, most: u64) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    File::open(path).at(path)?.take(most + 1).read_to_end(&mut bytes).at(path)?;
    if bytes.len() as u64 > most {
        return Err(StoreError::damaged(path, format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

impl Reader {
    /// Opens a grid.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`], [`StoreError::Unfinished`], [`StoreError::Version`], [`StoreError::Damaged`],
    /// [`StoreError::Io`].
    pub fn open(path: &Path, reading: Reading) -> Result<Self, StoreError> {
        let paths = Paths(path.into());
        if !paths.root().exists() {
            return Err(match paths.partial().exists() {
                true => StoreError::Unfinished { path: path.into() },
                false => StoreError::NotAStore { path: path.into() },
            });
        }
        let root = Root::read(&paths.root(), &document(&paths.root(), MAX_DOCUMENT)?)?;
        let expected = [(paths.blocks(), root.grid.blocks_document()), (paths.digests(), root.grid.digests_document())];
        for (path, expected) in expected {
            if document(&path, MAX_DOCUMENT)? != expected {
                return Err(StoreError::damaged(&path, "it does not fit zarr.json, the store's root"));
            }
        }
        let (table, length) = (paths.digest_table(), (root.grid.blocks() * DIGEST) as u64);
        let digests = document(&table, length)?;
        if digests.len() as u64 != length || root.digest_with(&digests) != root.digest {
            return Err(StoreError::damaged(&paths.root(), "it does not fit the digests of the blocks"));
        }
        Ok(Self { paths, root, digests, reading, open: PerProcess::new(), bytes_read: AtomicU64::new(0) })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.paths.0
    }

    /// Its sizes.
    pub fn sizes(&self) -> &Grid {
        &self.root.grid
    }

    /// Its description.
    pub fn description(&self) -> &Description {
        &self.root.description
    }

    /// Names its contents: two grids with one digest are the same.
    pub fn digest(&self) -> [u8; 32] {
        self.root.digest
    }

    /// Bytes of blocks read so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Reads everything and checks every byte.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Block`], [`StoreError::Io`].
    pub fn verify(&self) -> Result<(), StoreError> {
        let (down, across) = self.root.grid.shards();
        for shard in (0..down).flat_map(|i| (0..across).map(move |j| (i, j))) {
            let path = self.paths.shard(shard);
            let digests = check_shard(&path, &self.root.grid, shard)?;
            for ((row, col), digest) in self.root.grid.members(shard).zip(digests) {
                self.require(&path, row, col, &digest)?;
            }
        }
        Ok(())
    }

    fn require(&self, path: &Path, row: usize, col: usize, digest: &[u8; DIGEST]) -> Result<(), StoreError> {
        let at = (row * self.root.grid.cols + col) * DIGEST;
        match self.digests[at..at + DIGEST] == *digest {
            true => Ok(()),
            false => Err(StoreError::damaged(path, format!("block ({row}, {col}) is not the one that was written"))),
        }
    }

    /// The file of a shard; its length and its index are checked when it is first opened.
    fn file(&self, shard: (usize, usize)) -> Result<Arc<File>, StoreError> {
        let mut open = self.open.get().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.get(&shard) {
            return Ok(file.clone());
        }
        if open.len() == MAX_OPEN {
            open.clear();
        }
        let (path, grid) = (self.paths.shard(shard), &self.root.grid);
        let plain = File::open(&path).at(&path)?;
        check_length(&plain, &path, grid, shard)?;
        let blocks = grid.members(shard).count() as u64 * grid.block_bytes;
        let mut index = vec![0; grid.index(shard).len()];
        read_exact_at(&plain, &mut index, blocks).at(&path)?;
        expect_index(&path, grid, shard, &index)?;
        let file = Arc::new(match self.reading {
            Reading::Cached => plain,
            Reading::Direct => direct(&path).unwrap_or(plain),
        });
        open.insert(shard, file.clone());
        Ok(file)
    }
}

impl BlockSource for Reader {
    fn grid(&self) -> (usize, usize) {
        (self.root.grid.rows, self.root.grid.cols)
    }

    fn block_bytes(&self) -> u64 {
        self.root.grid.block_bytes
    }

    fn read(&self, row: usize, col: usize, block: &mut Block) -> Result<(), StoreError> {
        check_place(self.grid(), row, col)?;
        let ((shard, _), bytes) = (self.root.grid.place(row, col), self.block_bytes());
        let file = self.file(shard)?;
        read_exact_at(&file, block.bytes_mut(), self.root.grid.before(row, col) * bytes)
            .at(&self.paths.shard(shard))?;
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn container<'b>(&self, row: usize, col: usize, block: &'b Block) -> Result<&'b [u8], StoreError> {
        let path = || self.paths.shard(self.root.grid.place(row, col).0);
        let (header, inner) =
            container(block.bytes()).map_err(|e| StoreError::Block { path: path(), row, col, error: e.into() })?;
        self.require(&path(), row, col, &digest_with(&header, inner))?;
        Ok(inner)
    }
}

/// Whether a folder looks like a store, finished or not.
pub fn is_store(path: &Path) -> bool {
    let paths = Paths(PathBuf::from(path));
    paths.partial().exists() || fs::read(paths.root()).is_ok_and(|text| text.windows(8).any(|w| w == b"\"sudare\""))
}
