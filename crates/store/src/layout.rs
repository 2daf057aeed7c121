//! A grid of blocks as a Zarr v3 group.
//!
//! ```text
//! x.sudare/
//!   zarr.json            the group; attribute "sudare": what is in it, and its digest
//!   blocks/zarr.json     array of bytes [rows, columns, bytes of a block], cut into shards
//!   blocks/c/I/J/0       a shard: its blocks one after the other, then the index
//!   digests/zarr.json    array of bytes [rows, columns, 32]
//!   digests/c/0/0/0      the digest of each block
//! ```
//!
//! Shards have the codec `sharding_indexed` with blocks as inner chunks, `bytes` as the only inner codec, and an index
//! with CRC-32C at the end. Nothing is compressed: ciphertexts are random. So every block starts at a multiple of
//! 4 KiB, and the index of a shard follows from its place.

use crate::crc32c::crc32c;
use crate::error::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use sudare_rlwe::wire::ALIGNMENT;
use sudare_rlwe::{KeyId, ParamsHash};

/// Version of the store that this release writes.
pub const VERSION: u64 = 1;
/// Most bytes of a shard: neither too many files nor too much work to lose.
pub const SHARD_BYTES: u64 = 256 << 20;
/// Most blocks of a grid; bounds what a document can ask for.
pub const MAX_BLOCKS: u64 = 1 << 24;
/// Most bytes of a root document.
pub(crate) const MAX_DOCUMENT: u64 = 16 << 20;
/// Bytes of a digest.
pub(crate) const DIGEST: usize = 32;

/// The sizes of a grid of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grid {
    /// Rows of blocks.
    pub rows: usize,
    /// Columns of blocks.
    pub cols: usize,
    /// Bytes of a block: a multiple of 4096.
    pub block_bytes: u64,
    /// Rows of blocks in a shard.
    pub shard_rows: usize,
    /// Columns of blocks in a shard.
    pub shard_cols: usize,
}

impl Grid {
    /// A grid with shards of up to [`SHARD_BYTES`], alike in size: whole rows of blocks if they fit.
    ///
    /// # Errors
    /// As [`Grid::check`].
    pub fn new(rows: usize, cols: usize, block_bytes: u64) -> Result<Self, StoreError> {
        let most = (SHARD_BYTES / block_bytes.max(1)).max(1) as usize;
        let part = |of: usize, most: usize| of.div_ceil(of.div_ceil(most.max(1)).max(1)).max(1);
        let shard_cols = part(cols, most);
        let grid = Self { rows, cols, block_bytes, shard_rows: part(rows, most / shard_cols), shard_cols };
        grid.check()?;
        Ok(grid)
    }

    /// A grid whose shards make up tiles of some rows and columns of blocks, so that a tile is done when its shards
    /// are: the largest equal parts of a tile up to [`SHARD_BYTES`].
    ///
    /// # Errors
    /// As [`Grid::check`].
    pub fn of_tiles(
        rows: usize,
        cols: usize,
        block_bytes: u64,
        (down, across): (usize, usize),
    ) -> Result<Self, StoreError> {
        let most = (SHARD_BYTES / block_bytes.max(1)).max(1) as usize;
        let divisors = |of: usize| (1..=of.min(most)).filter(move |d| of.is_multiple_of(*d));
        let parts = divisors(down).flat_map(|r| divisors(across).map(move |c| (r, c)));
        let best = parts.filter(|(r, c)| r * c <= most).max_by_key(|(r, c)| (r * c, *c));
        let (shard_rows, shard_cols) = best.unwrap_or((1, 1));
        let grid = Self { rows, cols, block_bytes, shard_rows, shard_cols };
        grid.check()?;
        Ok(grid)
    }

    /// Refuses sizes that no grid has.
    ///
    /// # Errors
    /// [`StoreError::Range`].
    pub fn check(&self) -> Result<(), StoreError> {
        let beyond = |what, found: u64, limit| Err(StoreError::Range { what, found, limit });
        let blocks = (self.rows as u64).saturating_mul(self.cols as u64);
        if !(1..=MAX_BLOCKS).contains(&blocks) {
            return beyond("the number of blocks", blocks, MAX_BLOCKS);
        }
        if self.block_bytes == 0 || !self.block_bytes.is_multiple_of(ALIGNMENT) || self.block_bytes > 1 << 40 {
            return beyond("the bytes of a block, a multiple of 4096", self.block_bytes, 1 << 40);
        }
        let shards = [(self.shard_rows, self.rows), (self.shard_cols, self.cols)];
        match shards.into_iter().find(|(shard, all)| !(1..=*all).contains(shard)) {
            Some((shard, all)) => beyond("the number of blocks along a shard", shard as u64, all as u64),
            None => Ok(()),
        }
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.rows * self.cols
    }

    /// The names of a finished grid's files, relative to its folder, with slashes between folders.
    pub fn files(&self) -> Vec<String> {
        let (down, across) = self.shards();
        let paths = Paths(PathBuf::new());
        let shards = (0..down).flat_map(|i| (0..across).map(move |j| (i, j))).map(|shard| paths.shard(shard));
        let all = [paths.root(), paths.blocks(), paths.digests(), paths.digest_table()].into_iter().chain(shards);
        let name = |path: PathBuf| path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
        all.map(name).collect()
    }

    /// Rows and columns of shards.
    pub fn shards(&self) -> (usize, usize) {
        (self.rows.div_ceil(self.shard_rows), self.cols.div_ceil(self.shard_cols))
    }

    /// The shard of a block, and the block's place among the shard's inner chunks.
    pub fn place(&self, row: usize, col: usize) -> ((usize, usize), usize) {
        let (i, j) = (row % self.shard_rows, col % self.shard_cols);
        ((row / self.shard_rows, col / self.shard_cols), i * self.shard_cols + j)
    }

    /// The blocks of a shard, in the order in which they lie in it: those of its inner chunks that the grid has.
    pub fn members(&self, (down, across): (usize, usize)) -> impl Iterator<Item = (usize, usize)> + use<> {
        let rows = down * self.shard_rows..((down + 1) * self.shard_rows).min(self.rows);
        let cols = across * self.shard_cols..((across + 1) * self.shard_cols).min(self.cols);
        rows.flat_map(move |row| cols.clone().map(move |col| (row, col)))
    }

    /// The number of blocks of its shard before a block.
    pub(crate) fn before(&self, row: usize, col: usize) -> u64 {
        let (shard, _) = self.place(row, col);
        let first = (shard.0 * self.shard_rows, shard.1 * self.shard_cols);
        let across = (self.cols - first.1).min(self.shard_cols);
        ((row - first.0) * across + (col - first.1)) as u64
    }

    /// The index of a shard: offset and length of each inner chunk, all ones for those beyond the grid, and the
    /// checksum.
    pub(crate) fn index(&self, shard: (usize, usize)) -> Vec<u8> {
        let mut words = vec![u64::MAX; 2 * self.shard_rows * self.shard_cols];
        for (at, (row, col)) in self.members(shard).enumerate() {
            let (_, place) = self.place(row, col);
            words[2 * place] = at as u64 * self.block_bytes;
            words[2 * place + 1] = self.block_bytes;
        }
        let mut out: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        out.extend(crc32c(&out).to_le_bytes());
        out
    }

    /// `blocks/zarr.json`.
    pub(crate) fn blocks_document(&self) -> Vec<u8> {
        let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let sharding = json!({
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [1, 1, self.block_bytes],
                "codecs": [{"name": "bytes"}],
                "index_codecs": [bytes, {"name": "crc32c"}],
                "index_location": "end",
            },
        });
        let names = ["block_row", "block_col", "byte"];
        let chunks = [self.shard_rows as u64, self.shard_cols as u64, self.block_bytes];
        self.array(self.block_bytes, chunks, sharding, names)
    }

    /// `digests/zarr.json`.
    pub(crate) fn digests_document(&self) -> Vec<u8> {
        let names = ["block_row", "block_col", "digest_byte"];
        let chunks = [self.rows as u64, self.cols as u64, DIGEST as u64];
        self.array(DIGEST as u64, chunks, json!({"name": "bytes"}), names)
    }

    fn array(&self, last: u64, chunks: [u64; 3], codec: Value, names: [&str; 3]) -> Vec<u8> {
        document(&json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": [self.rows, self.cols, last],
            "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0,
            "codecs": [codec],
            "dimension_names": names,
            "attributes": {},
        }))
    }
}

/// The public description of a grid, for everybody who opens it.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The parameters of its ciphertexts.
    pub params: ParamsHash,
    /// The name of the secret key that they are under.
    pub key: KeyId,
    /// The application's description: for a matrix its plan, the value's name in it, and its shape.
    pub contents: Value,
}

/// The root document of a grid.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Root {
    pub grid: Grid,
    /// The work that wrote it.
    pub work: [u8; DIGEST],
    pub description: Description,
    pub digest: [u8; DIGEST],
}

impl Root {
    /// A root with the digest of what it says and of the digests of all blocks.
    pub fn new(grid: Grid, work: [u8; DIGEST], description: Description, digests: &[u8]) -> Self {
        let mut root = Self { grid, work, description, digest: [0; DIGEST] };
        root.digest = root.digest_with(digests);
        root
    }

    /// The digest of the document with zeros in its place, then of the blocks' digests.
    pub fn digest_with(&self, digests: &[u8]) -> [u8; DIGEST] {
        let mut hasher = blake3::Hasher::new_derive_key("sudare store root v1");
        let blank = Self { digest: [0; DIGEST], ..self.clone() }.document();
        hasher.update(&(blank.len() as u64).to_le_bytes()).update(&blank).update(digests);
        *hasher.finalize().as_bytes()
    }

    /// `zarr.json`.
    pub fn document(&self) -> Vec<u8> {
        let Description { params, key, contents } = &self.description;
        document(&json!({
            "zarr_format": 3,
            "node_type": "group",
            "attributes": {"sudare": {
                "version": VERSION,
                "grid": self.grid,
                "work": hex(&self.work),
                "params": hex(&params.0),
                "key": hex(&key.0),
                "contents": contents,
                "digest": hex(&self.digest),
            }},
        }))
    }

    /// Reads a root document: it has to be byte by byte what [`Root::document`] writes.
    pub fn read(path: &Path, bytes: &[u8]) -> Result<Self, StoreError> {
        let damaged = |what: &str| StoreError::damaged(path, what);
        let parsed: Value =
            serde_json::from_slice(bytes).map_err(|e| damaged(&format!("its document cannot be read: {e}")))?;
        let fields = &parsed["attributes"]["sudare"];
        match fields["version"].as_u64() {
            Some(VERSION) => {}
            Some(found) => return Err(StoreError::Version { path: path.into(), found }),
            None => return Err(StoreError::NotAStore { path: path.parent().unwrap_or(path).into() }),
        }
        let text = |name: &str| fields[name].as_str().unwrap_or_default();
        let grid: Grid =
            serde_json::from_value(fields["grid"].clone()).map_err(|_| damaged("its document has no valid grid"))?;
        grid.check().map_err(|e| damaged(&e.to_string()))?;
        let root = Self {
            grid,
            work: unhex(text("work")).ok_or_else(|| damaged("its document does not name the work"))?,
            description: Description {
                params: ParamsHash(
                    unhex(text("params")).ok_or_else(|| damaged("its document has no hash of parameters"))?,
                ),
                key: KeyId(unhex(text("key")).ok_or_else(|| damaged("its document does not name the key"))?),
                contents: fields["contents"].clone(),
            },
            digest: unhex(text("digest")).ok_or_else(|| damaged("its document has no digest"))?,
        };
        if root.document() != bytes {
            return Err(damaged("its document is not as it is written"));
        }
        Ok(root)
    }
}

/// The bytes of a document, one way to write each.
fn document(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

/// Bytes as text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Bytes of text; none for other text.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut out = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (i, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(out)
}

/// The paths of the files of a store.
#[derive(Clone, Debug)]
pub(crate) struct Paths(pub PathBuf);

impl Paths {
    pub fn root(&self) -> PathBuf {
        self.0.join("zarr.json")
    }

    /// Refuses a link in the place of a folder on the way to a file of the store: what it leads to is none of ours.
    pub fn check_folders(&self, file: &Path) -> Result<(), StoreError> {
        let inside = file.ancestors().skip(1).take_while(|folder| *folder != self.0);
        match inside.into_iter().find(|folder| folder.is_symlink()) {
            Some(link) => Err(StoreError::damaged(link, "a symbolic link is where the store has a folder")),
            None => Ok(()),
        }
    }

    pub fn blocks(&self) -> PathBuf {
        self.0.join("blocks").join("zarr.json")
    }

    pub fn shard(&self, (i, j): (usize, usize)) -> PathBuf {
        self.0.join("blocks").join("c").join(i.to_string()).join(j.to_string()).join("0")
    }

    pub fn digests(&self) -> PathBuf {
        self.0.join("digests").join("zarr.json")
    }

    pub fn digest_table(&self) -> PathBuf {
        self.0.join("digests").join("c").join("0").join("0").join("0")
    }

    /// The file that names unfinished work; its writer holds its lock.
    pub fn partial(&self) -> PathBuf {
        self.0.join(".sudare-partial")
    }
}
