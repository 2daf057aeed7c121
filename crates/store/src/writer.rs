//! Writing a grid: shards first, in any order, then the documents, the root last.

use crate::atomic::{self, Access, Durability, Over, sync_folder};
use crate::block::BlockDigest;
use crate::error::{At, StoreError};
use crate::layout::{Description, Grid, MAX_DOCUMENT, Paths, Root, hex};
use crate::shard::{ShardWriter, check_shard};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The treatment of files that already have the name of a new grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Refuse it.
    Refuse,
    /// Go on from the finished shards of the same work; of a finished grid of the same work nothing is done again.
    Resume,
}

/// Writes one grid. Nobody else can write under its name meanwhile. Dropped before [`Writer::finish`], or killed, it
/// leaves finished shards and no root; [`Existing::Resume`] goes on from them.
#[derive(Debug)]
pub struct Writer {
    paths: Paths,
    grid: Grid,
    work: [u8; 32],
    /// Locked as long as this lives.
    partial: File,
    digests: Mutex<BTreeMap<(usize, usize), Vec<BlockDigest>>>,
}

/// The contents of the file of unfinished work.
fn partial_document(grid: &Grid, work: &[u8; 32]) -> Value {
    json!({"work": hex(work), "grid": grid})
}

impl Writer {
    /// The grid of a work of before that was not finished, if there is one under this name: who goes on with it takes
    /// its shards as they are.
    pub fn begun(path: &Path) -> Option<Grid> {
        let text = fs::read(Paths(path.into()).partial()).ok()?;
        let parsed: Value = serde_json::from_slice(&text).ok()?;
        serde_json::from_value(parsed["grid"].clone()).ok()
    }

    /// Begins a grid, or goes on with one; `None` if it is finished already. `work` names what is written: a digest
    /// of the operation and its operands.
    ///
    /// Shards that are there are read once and checked; one that is damaged is removed.
    ///
    /// # Errors
    /// [`StoreError::Exists`], [`StoreError::Unfinished`] without leave to resume; [`StoreError::OtherWork`];
    /// [`StoreError::Busy`]; [`StoreError::Range`]; [`StoreError::Io`].
    pub fn begin(path: &Path, grid: Grid, work: [u8; 32], existing: Existing) -> Result<Option<Self>, StoreError> {
        grid.check()?;
        let paths = Paths(path.into());
        if paths.root().exists() {
            return finished(&paths, &grid, work, existing).map(|()| None);
        }
        let fresh = !paths.partial().exists();
        if !fresh && existing == Existing::Refuse {
            return Err(StoreError::Unfinished { path: path.into() });
        }
        if fresh && path.exists() && fs::read_dir(path).at(path)?.next().is_some() {
            return Err(StoreError::Exists { path: path.into() });
        }
        let name = paths.partial();
        atomic::make_folder(&name)?;
        let partial = atomic::own(&name)?.ok_or_else(|| StoreError::Busy { path: path.into() })?;
        // Somebody may have finished between the look at the root and the lock.
        if paths.root().exists() {
            return finished(&paths, &grid, work, existing).map(|()| None);
        }
        let mut writer = Self { paths, grid, work, partial, digests: Mutex::default() };
        writer.take_up()?;
        Ok(Some(writer))
    }

    /// Reads what the work of before left, or writes what this one is.
    fn take_up(&mut self) -> Result<(), StoreError> {
        let (name, mut text) = (self.paths.partial(), Vec::new());
        (&self.partial).take(MAX_DOCUMENT).read_to_end(&mut text).at(&name)?;
        if let Ok(before) = serde_json::from_slice::<Value>(&text) {
            let grid: Option<Grid> = serde_json::from_value(before["grid"].clone()).ok();
            let same =
                |g: &Grid| (g.rows, g.cols, g.block_bytes) == (self.grid.rows, self.grid.cols, self.grid.block_bytes);
            match grid.filter(|g| before["work"] == json!(hex(&self.work)) && same(g) && g.check().is_ok()) {
                Some(grid) => self.grid = grid,
                None => return Err(StoreError::OtherWork { path: self.paths.0.clone() }),
            }
            return self.find_shards();
        }
        // Killed before it said what it is: no shard is older than that.
        let document = partial_document(&self.grid, &self.work).to_string();
        self.partial.set_len(0).at(&name)?;
        (&self.partial).seek(SeekFrom::Start(0)).at(&name)?;
        (&self.partial).write_all(document.as_bytes()).at(&name)?;
        self.partial.sync_all().at(&name)
    }

    /// Takes over the shards that are whole; removes all else.
    fn find_shards(&mut self) -> Result<(), StoreError> {
        let (down, across) = self.grid.shards();
        for shard in (0..down).flat_map(|i| (0..across).map(move |j| (i, j))) {
            let path = self.paths.shard(shard);
            self.paths.check_folders(&path)?;
            if !path.exists() {
                continue;
            }
            match check_shard(&path, &self.grid, shard) {
                Ok(digests) => self.keep(shard, digests),
                Err(StoreError::Damaged { .. } | StoreError::Block { .. }) => remove(&path)?,
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    /// The grid, with the shards of the work of before where there was one.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    pub(crate) fn paths(&self) -> &Paths {
        &self.paths
    }

    fn done(&self) -> MutexGuard<'_, BTreeMap<(usize, usize), Vec<BlockDigest>>> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn keep(&self, shard: (usize, usize), digests: Vec<BlockDigest>) {
        self.done().insert(shard, digests);
    }

    /// Whether a shard is there already.
    pub fn has(&self, shard: (usize, usize)) -> bool {
        self.done().contains_key(&shard)
    }

    /// Begins a shard, in place of one that is there.
    ///
    /// # Errors
    /// [`StoreError::Range`], [`StoreError::Io`].
    pub fn shard(&self, shard: (usize, usize)) -> Result<ShardWriter<'_>, StoreError> {
        crate::source::check_place(self.grid.shards(), shard.0, shard.1)?;
        ShardWriter::new(self, shard)
    }

    /// Writes all blocks that are missing, `block` giving each as a container.
    ///
    /// # Errors
    /// Those of `block`, and as [`ShardWriter::push`].
    pub fn fill<E: From<StoreError>>(
        &self,
        mut block: impl FnMut(usize, usize) -> Result<Vec<u8>, E>,
    ) -> Result<(), E> {
        let (down, across) = self.grid.shards();
        for shard in (0..down).flat_map(|i| (0..across).map(move |j| (i, j))).filter(|s| !self.has(*s)) {
            let mut writer = self.shard(shard)?;
            for (row, col) in self.grid.members(shard) {
                writer.push(&block(row, col)?)?;
            }
            writer.finish()?;
        }
        Ok(())
    }

    /// The end: all shards are there; the documents follow, the root last. The grid's digest.
    ///
    /// # Errors
    /// [`StoreError::Range`] if a shard is missing; [`StoreError::Io`].
    pub fn finish(self, description: Description) -> Result<[u8; 32], StoreError> {
        let digests = self.table()?;
        let root = Root::new(self.grid, self.work, description, &digests);
        for (path, bytes) in [
            (self.paths.blocks(), self.grid.blocks_document()),
            (self.paths.digest_table(), digests),
            (self.paths.digests(), self.grid.digests_document()),
        ] {
            self.paths.check_folders(&path)?;
            write_whole(&path, &bytes)?;
        }
        self.sync_folders()?;
        write_whole(&self.paths.root(), &root.document())?;
        sync_folder(&self.paths.0)?;
        remove(&self.paths.partial())?;
        Ok(root.digest)
    }

    /// The digests of all blocks, row by row.
    fn table(&self) -> Result<Vec<u8>, StoreError> {
        let done = self.done();
        let (down, across) = self.grid.shards();
        let mut table = vec![[0; 32]; self.grid.blocks()];
        for shard in (0..down).flat_map(|i| (0..across).map(move |j| (i, j))) {
            let Some(digests) = done.get(&shard) else {
                let (found, limit) = (done.len() as u64, (down * across) as u64);
                return Err(StoreError::Range { what: "the number of finished shards", found, limit });
            };
            for ((row, col), digest) in self.grid.members(shard).zip(digests) {
                table[row * self.grid.cols + col] = *digest;
            }
        }
        Ok(table.concat())
    }

    /// The names of all shards are on the disk as well: all folders on their ways.
    fn sync_folders(&self) -> Result<(), StoreError> {
        let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
        let shards = self.done().keys().map(|shard| self.paths.shard(*shard)).collect::<Vec<_>>();
        for file in shards.iter().chain([&self.paths.digest_table(), &self.paths.blocks()]) {
            folders.extend(file.ancestors().skip(1).take_while(|f| f.starts_with(&self.paths.0)).map(PathBuf::from));
        }
        folders.iter().try_for_each(|folder| sync_folder(folder))
    }
}

/// Refuses a finished grid of another work, or any without leave to take it as it is.
fn finished(paths: &Paths, grid: &Grid, work: [u8; 32], existing: Existing) -> Result<(), StoreError> {
    let path = paths.root();
    if existing == Existing::Refuse {
        return Err(StoreError::Exists { path: paths.0.clone() });
    }
    let root = Root::read(&path, &fs::read(&path).at(&path)?)?;
    if root.work != work || (root.grid.rows, root.grid.cols) != (grid.rows, grid.cols) {
        return Err(StoreError::OtherWork { path: paths.0.clone() });
    }
    // Killed between the root and this.
    remove(&paths.partial())
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.at(path),
    }
}

/// Writes a file beside its place, and renames it.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    atomic::make_folder(path)?;
    atomic::write(path, &[bytes], Access::Usual, Over::NoKey, Durability::Power)
}
