//! A table on the disk.
//!
//! ```text
//! faces.sudare/
//!   table.json            plan, key and name; written first
//!   segments/000000/rows      a store of one row of blocks: ciphertext j has coordinate j; in compact mode a row for each
//!                             block of rows, of containers with sixteen coordinates
//!   segments/000000/payload   a store: half by half the columns as they stand, then rotated
//!   segments.json         what segments there are, with their digests; written last, and anew by each append
//! ```
//!
//! A segment appears whole or not at all ([`sudare_store::Writer`]), and is never changed.

use crate::error::SearchError;
use crate::plan::Index;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use sudare_ring::threads;
use sudare_rlwe::KeyId;
use sudare_rlwe::wire::ALIGNMENT;
use sudare_store::atomic::{self, Access, Durability, Over};
use sudare_store::layout::{hex, unhex};
use sudare_store::{Description, Existing, Grid, Reader, Reading, StoreError, Writer};

/// Version of tables that this release writes and reads.
const VERSION: u32 = 1;
/// Most bytes of a document.
const MAX_DOCUMENT: u64 = 64 << 20;
/// Containers that are made at a time.
const TOGETHER: usize = 16;

/// What a table says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    sudare_table: u32,
    /// The plan's name.
    pub plan: String,
    /// The name of the owner's key.
    pub key: String,
    /// A random name of its own.
    pub index: String,
}

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentRecord {
    /// Rows in it.
    pub rows: u32,
    /// Digest of the store of its rows.
    pub digest: String,
    /// Digest of the store of its payloads.
    pub payload: Option<String>,
}

/// All segments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The table.
    pub index: String,
    /// Its segments, in order.
    pub segments: Vec<SegmentRecord>,
}

impl Manifest {
    /// The list of a finished table, whatever its plan and key: who opens the table checks them.
    ///
    /// # Errors
    /// [`StoreError::Unfinished`]; [`SearchError::Damaged`]; what the disk refuses.
    pub fn load(path: &Path) -> Result<Self, SearchError> {
        let list = Files::new(path).manifest();
        read(&list)?.ok_or_else(|| StoreError::Unfinished { path: path.into() }.into())
    }

    /// Rows in all.
    pub fn rows(&self) -> u64 {
        self.segments.iter().map(|s| u64::from(s.rows)).sum()
    }

    /// The segments that a copy of the table lacks, whose list this is.
    ///
    /// # Errors
    /// [`SearchError::Mixed`] for a copy of another table, or one that has more.
    pub fn lacking(&self, copy: &Self) -> Result<Range<usize>, SearchError> {
        match self.index == copy.index && self.segments.starts_with(&copy.segments) {
            true => Ok(copy.segments.len()..self.segments.len()),
            false => Err(SearchError::Mixed { what: "the table at the server" }),
        }
    }
}

/// Which of a segment's stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Rows,
    Payload,
}

impl Part {
    pub fn name(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Payload => "payload",
        }
    }
}

pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> SearchError {
    SearchError::Damaged { path: path.display().to_string(), what: what.into() }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, SearchError> {
    let mut text = Vec::new();
    match fs::File::open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io(path, &e)),
        Ok(file) => file.take(MAX_DOCUMENT).read_to_end(&mut text).map_err(|e| io(path, &e))?,
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|e| damaged(path, format!("it does not describe a table: {e}; copy or make it again")))
}

pub(crate) fn io(path: &Path, e: &std::io::Error) -> SearchError {
    StoreError::Io { path: path.into(), kind: e.kind(), reason: e.to_string() }.into()
}

fn other_rows(e: StoreError) -> SearchError {
    match e {
        StoreError::OtherWork { path } => SearchError::OtherRows { path: path.display().to_string() },
        other => other.into(),
    }
}

fn write<T: Serialize>(path: &Path, document: &T) -> Result<(), SearchError> {
    let mut text = serde_json::to_vec_pretty(document).map_err(|e| damaged(path, e.to_string()))?;
    text.push(b'\n');
    atomic::make_folder(path)?;
    Ok(atomic::write(path, &[&text], Access::Usual, Over::NoKey, Durability::Power)?)
}

/// Where the files of a table are.
#[derive(Clone, Debug)]
pub(crate) struct Files(PathBuf);

impl Files {
    pub fn new(path: &Path) -> Self {
        Self(path.into())
    }

    fn table(&self) -> PathBuf {
        self.0.join("table.json")
    }

    fn manifest(&self) -> PathBuf {
        self.0.join("segments.json")
    }

    fn segments(&self) -> PathBuf {
        self.0.join("segments")
    }

    pub fn segment(&self, segment: usize) -> PathBuf {
        self.segments().join(format!("{segment:06}"))
    }

    pub fn part(&self, segment: usize, part: Part) -> PathBuf {
        self.segment(segment).join(part.name())
    }

    /// A new table, or one that was begun, of this plan and key.
    pub fn begin(&self, index: &Index, key: KeyId, name: [u8; 16]) -> Result<Table, SearchError> {
        if let Some(table) = read::<Table>(&self.table())? {
            return self.checked(table, index, key);
        }
        if self.0.exists() && fs::read_dir(&self.0).map_err(|e| io(&self.0, &e))?.next().is_some() {
            return Err(StoreError::Exists { path: self.0.clone() }.into());
        }
        let table = Table { sudare_table: VERSION, plan: hex(&index.hash()), key: hex(&key.0), index: hex(&name) };
        write(&self.table(), &table)?;
        Ok(table)
    }

    /// The name of the key that a table is under.
    pub fn key(&self) -> Result<KeyId, SearchError> {
        let table = read::<Table>(&self.table())?;
        let key = table.and_then(|table| unhex(&table.key)).map(KeyId);
        key.ok_or_else(|| StoreError::NotAStore { path: self.0.clone() }.into())
    }

    /// What a table says of itself, if it is of this release, plan and key.
    pub fn checked(&self, table: Table, index: &Index, key: KeyId) -> Result<Table, SearchError> {
        if table.sudare_table != VERSION {
            return Err(StoreError::Version { path: self.0.clone(), found: table.sudare_table.into() }.into());
        }
        if table.plan != hex(&index.hash()) || table.key != hex(&key.0) {
            return Err(SearchError::Mixed { what: "the stored table" });
        }
        Ok(table)
    }

    /// A finished table of this plan and key.
    pub fn open(&self, index: &Index, key: KeyId) -> Result<(Table, Manifest), SearchError> {
        let Some(table) = read::<Table>(&self.table())? else {
            return Err(StoreError::NotAStore { path: self.0.clone() }.into());
        };
        let table = self.checked(table, index, key)?;
        let Some(manifest) = read::<Manifest>(&self.manifest())? else {
            return Err(StoreError::Unfinished { path: self.0.clone() }.into());
        };
        let most = index.segment_rows() as u32;
        let whole = manifest.segments.len() as u64 <= index.most_segments();
        if !whole || manifest.index != table.index || !manifest.segments.iter().all(|s| (1..=most).contains(&s.rows)) {
            return Err(damaged(&self.manifest(), "it is not the list of this table; copy or make it again"));
        }
        Ok((table, manifest))
    }

    /// Whether a table is finished.
    pub fn is_finished(&self) -> bool {
        self.manifest().exists()
    }

    /// Lists the segments, whose names are on the disk before the list is.
    pub fn finish(&self, manifest: &Manifest) -> Result<(), SearchError> {
        (0..manifest.segments.len()).try_for_each(|k| atomic::sync_folder(&self.segment(k)))?;
        atomic::sync_folder(&self.segments())?;
        atomic::sync_folder(&self.0)?;
        write(&self.manifest(), manifest)
    }

    /// Removes segments that the list does not have. Their number.
    pub fn discard(&self, index: &Index, key: KeyId) -> Result<usize, SearchError> {
        let listed = match self.open(index, key) {
            Ok((_, manifest)) => manifest.segments.len(),
            Err(SearchError::Store(StoreError::Unfinished { .. })) => 0,
            Err(e) => return Err(e),
        };
        // Segments follow each other.
        let mut removed = 0;
        while self.segment(listed + removed).exists() {
            removed += 1;
        }
        // From the last on, so that none is left behind a missing one.
        (listed..listed + removed).rev().try_for_each(|k| self.remove(k))?;
        Ok(removed)
    }

    /// Removes what there is of a segment that the list does not have.
    pub fn remove(&self, segment: usize) -> Result<(), SearchError> {
        let path = self.segment(segment);
        match fs::remove_dir_all(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(io(&path, &e)),
            _ => Ok(()),
        }
    }

    /// Writes a store of a segment, or takes what is there of the same work. `container(row, col)` makes each block.
    pub fn store<E: Into<SearchError> + Send>(
        &self,
        (segment, part): (usize, Part),
        work: [u8; 32],
        (rows, cols): (usize, usize),
        (about, index, key): (&Table, &Index, KeyId),
        container: impl Fn(usize, usize) -> Result<Vec<u8>, E> + Sync + Send,
    ) -> Result<[u8; 32], SearchError> {
        let path = self.part(segment, part);
        let description = Description {
            params: index.params().hash(),
            key,
            contents: json!({"sudare_index": about.index, "segment": segment, "part": part.name()}),
        };
        if path.join("zarr.json").exists() {
            // Finished by a work of before.
            let root = Reader::open(&path, Reading::Cached)?;
            let grid = *root.sizes();
            Writer::begin(&path, grid, work, Existing::Resume).map_err(other_rows)?;
            return Ok(root.digest());
        }
        let first = container(0, 0).map_err(Into::into)?;
        let grid = Grid::new(rows, cols, (first.len() as u64).next_multiple_of(ALIGNMENT))?;
        let Some(writer) = Writer::begin(&path, grid, work, Existing::Resume).map_err(other_rows)? else {
            return Ok(Reader::open(&path, Reading::Cached)?.digest());
        };
        let mut first = Some(first);
        let (down, across) = writer.grid().shards();
        for shard in (0..down).flat_map(|i| (0..across).map(move |j| (i, j))).filter(|s| !writer.has(*s)) {
            let mut open = writer.shard(shard)?;
            let members: Vec<(usize, usize)> = writer.grid().members(shard).collect();
            for members in members.chunks(TOGETHER) {
                sudare_ring::interrupt::check();
                let made = threads::map_jobs(members.len(), |i| match members[i] {
                    (0, 0) => Ok(None),
                    (row, col) => container(row, col).map(Some),
                });
                for made in made {
                    let made = match made.map_err(Into::into)? {
                        Some(made) => made,
                        None => match first.take() {
                            Some(first) => first,
                            None => container(0, 0).map_err(Into::into)?,
                        },
                    };
                    open.push(&made)?;
                }
            }
            open.finish()?;
        }
        Ok(writer.finish(description)?)
    }

    /// Opens a store of a segment: the one that the list names, in its place.
    pub fn reader(
        &self,
        (segment, part): (usize, Part),
        digest: &str,
        (about, index, key): (&Table, &Index, KeyId),
    ) -> Result<Reader, SearchError> {
        let path = self.part(segment, part);
        let reader = Reader::open(&path, Reading::Cached)?;
        let contents = json!({"sudare_index": about.index, "segment": segment, "part": part.name()});
        let description = Description { params: index.params().hash(), key, contents };
        if *reader.description() != description || Some(reader.digest()) != unhex(digest) {
            return Err(damaged(&path, "it is another segment than the table's; copy or make it again"));
        }
        Ok(reader)
    }
}
