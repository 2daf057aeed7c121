//! Running a schedule: strips from two sources, sums in memory, finished shards to a third place.

use super::schedule::{Schedule, Sizes, WAITING};
use crate::Progress;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, ScopedJoinHandle};
use sudare_expr::Operand;
use sudare_he::ckks::{Ciphertext, Evaluator};
use sudare_methods::MatrixError;
use sudare_methods::blocked::Blocked;
use sudare_ring::{buffer, threads};
use sudare_store::{Ahead, Block, BlockSource, Request, StoreError, Writer, read_ahead};

/// Threads that read.
const READERS: usize = 3;

/// Row and column of a block.
type Place = (usize, usize);
/// Makes a block of an operand from its container.
pub type Decode<'a> = dyn Fn(Operand, Place, &[u8]) -> Result<Ciphertext, MatrixError> + Sync + 'a;
/// A shard and its blocks.
type Shard = (Place, Vec<Place>);

/// What is multiplied, and how its blocks are read and written.
pub struct Operands<'a> {
    /// The left operand, the products of a batch one under the other.
    pub left: &'a dyn BlockSource,
    /// The right operand, likewise.
    pub right: &'a dyn BlockSource,
    /// A block of an operand from the container at a row and column.
    pub decode: &'a Decode<'a>,
    /// A block of the result as a container.
    pub encode: &'a (dyn Fn((usize, usize), Ciphertext) -> Result<Vec<u8>, MatrixError> + Sync),
}

/// The blocks of the result that are computed together, in one product of the batch: those of the tile whose
/// shards are not there yet.
struct Tile {
    batch: usize,
    /// Shards to be written, with their blocks.
    shards: Vec<Shard>,
    /// Rows and columns of the result that these have, counted within the product.
    rows: Vec<usize>,
    cols: Vec<usize>,
}

impl Tile {
    /// The requests of a tile: some terms at a time, of each all rows of A, then all columns of B.
    fn requests<'s>(&self, from: &Operands<'s>, sizes: &Sizes, depth: usize) -> Vec<Request<'s>> {
        let mut out = Vec::with_capacity(sizes.terms * (self.rows.len() + self.cols.len()));
        for start in (0..sizes.terms).step_by(depth) {
            for t in start..sizes.terms.min(start + depth) {
                let left = |row: &usize| Request { source: from.left, row: self.batch * sizes.rows + row, col: t };
                let right = |col: &usize| Request { source: from.right, row: self.batch * sizes.terms + t, col: *col };
                out.extend(self.rows.iter().map(left));
                out.extend(self.cols.iter().map(right));
            }
        }
        out
    }
}

/// The tiles of a schedule with what a writer lacks.
fn tiles(schedule: &Schedule, sizes: &Sizes, writer: &Writer) -> Vec<Tile> {
    let grid = writer.grid();
    let (down, across) = grid.shards();
    let mut found: BTreeMap<(usize, usize, usize), Tile> = BTreeMap::new();
    for shard in (0..down).flat_map(|i| (0..across).map(move |j| (i, j))).filter(|shard| !writer.has(*shard)) {
        let members: Vec<(usize, usize)> = grid.members(shard).collect();
        let Some((row, col)) = members.first() else { continue };
        let batch = row / sizes.rows;
        let key = (batch, row % sizes.rows / schedule.tile_rows, col / schedule.tile_cols);
        let tile = found.entry(key);
        tile.or_insert_with(|| Tile { batch, shards: Vec::new(), rows: Vec::new(), cols: Vec::new() })
            .shards
            .push((shard, members));
    }
    let mut out: Vec<Tile> = found.into_values().collect();
    for tile in &mut out {
        let members = || tile.shards.iter().flat_map(|(_, members)| members);
        let rows: BTreeSet<usize> = members().map(|(row, _)| row % sizes.rows).collect();
        let cols: BTreeSet<usize> = members().map(|(_, col)| *col).collect();
        (tile.rows, tile.cols) = (rows.into_iter().collect(), cols.into_iter().collect());
    }
    out
}

/// What goes to the thread that writes.
enum Finished {
    Block((usize, usize), Vec<u8>),
    ShardDone,
}

/// Computes all shards that a writer lacks.
///
/// # Errors
/// [`MatrixError::Store`], [`MatrixError::Wire`], [`MatrixError::He`].
pub fn multiply(
    product: &dyn Blocked,
    evaluator: &Evaluator,
    from: &Operands<'_>,
    (sizes, schedule): (&Sizes, &Schedule),
    writer: &Writer,
    progress: Progress<'_>,
) -> Result<(), MatrixError> {
    let tiles = tiles(schedule, sizes, writer);
    let requests: Vec<Request<'_>> = tiles.iter().flat_map(|t| t.requests(from, sizes, schedule.depth)).collect();
    let window = sizes.ahead((schedule.tile_rows, schedule.tile_cols), schedule.depth);
    // What a step frees the next one takes; more is not kept.
    let step = schedule.depth as u64 * (schedule.tile_rows + schedule.tile_cols) as u64 * sizes.operand;
    let _kept = buffer::keep_at_most((step as usize / (threads::count() + 1)).max(1 << 20));
    let steps = sizes.terms.div_ceil(schedule.depth);
    let all = tiles.len() * steps;
    progress(0, all);
    read_ahead(&requests, window, READERS, |ahead| {
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(WAITING * sizes.threads);
            let writing = scope.spawn(move || write(writer, &receiver));
            let run = Run { product, evaluator, from, sizes, schedule };
            for (at, tile) in tiles.iter().enumerate() {
                let sums = run.sums(tile, ahead, &|done| progress(at * steps + done, all))?;
                if !run.finish(tile, sums, &sender)? {
                    break;
                }
            }
            drop(sender);
            joined(writing)
        })
    })
}

/// What the writing thread says at its end.
fn joined(writing: ScopedJoinHandle<'_, Result<(), StoreError>>) -> Result<(), MatrixError> {
    match writing.join() {
        Ok(done) => Ok(done?),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Writes shard after shard what it is sent.
fn write(writer: &Writer, blocks: &Receiver<Finished>) -> Result<(), StoreError> {
    let mut open = None;
    for finished in blocks {
        match finished {
            Finished::Block((row, col), container) => {
                if open.is_none() {
                    open = Some(writer.shard(writer.grid().place(row, col).0)?);
                }
                if let Some(shard) = &mut open {
                    shard.push(&container)?;
                }
            }
            Finished::ShardDone => open.take().map_or(Ok(()), sudare_store::ShardWriter::finish)?,
        }
    }
    Ok(())
}

/// Adds the products of some terms to the sums of a tile, row by row: of each term p blocks of A, then q of B.
pub(crate) fn accumulate(
    evaluator: &Evaluator,
    sums: Vec<Option<Ciphertext>>,
    loaded: &[Ciphertext],
    (p, q): (usize, usize),
) -> Result<Vec<Option<Ciphertext>>, MatrixError> {
    let done = threads::map_into(sums, |at, sum| {
        let left: Vec<_> = loaded.chunks_exact(p + q).map(|term| &term[at / q]).collect();
        let right: Vec<_> = loaded.chunks_exact(p + q).map(|term| &term[p + at % q]).collect();
        let Some(mut sum) = sum else { return evaluator.dot(&left, &right) };
        evaluator.dot_assign(&mut sum, &left, &right).map(|()| sum)
    });
    Ok(done.into_iter().map(|sum| sum.map(Some)).collect::<Result<_, _>>()?)
}

struct Run<'a> {
    product: &'a dyn Blocked,
    evaluator: &'a Evaluator,
    from: &'a Operands<'a>,
    sizes: &'a Sizes,
    schedule: &'a Schedule,
}

impl Run<'_> {
    /// Blocks that were read, as they are multiplied.
    fn load(&self, ahead: &Ahead<'_>, places: &[(Operand, usize, usize)]) -> Result<Vec<Ciphertext>, MatrixError> {
        let blocks: Result<Vec<Option<Block>>, StoreError> = places.iter().map(|_| ahead.next()).collect();
        let blocks = blocks?;
        let made = threads::map(places.len(), |i| {
            let (operand, row, col) = places[i];
            let source = if operand == Operand::Left { self.from.left } else { self.from.right };
            // As many were asked for.
            let Some(block) = &blocks[i] else { return Err(short()) };
            let block = (self.from.decode)(operand, (row, col), source.container(row, col, block)?)?;
            self.product.spread(self.evaluator, operand, block)
        });
        ahead.give_back(blocks.into_iter().flatten());
        made.into_iter().collect()
    }

    /// The sums of a tile, row by row.
    fn sums(
        &self,
        tile: &Tile,
        ahead: &Ahead<'_>,
        progress: &dyn Fn(usize),
    ) -> Result<Vec<Option<Ciphertext>>, MatrixError> {
        let (p, q) = (tile.rows.len(), tile.cols.len());
        let mut sums: Vec<Option<Ciphertext>> = vec![None; p * q];
        for (step, start) in (0..self.sizes.terms).step_by(self.schedule.depth).enumerate() {
            let terms: Vec<usize> = (start..self.sizes.terms.min(start + self.schedule.depth)).collect();
            let mut loaded = Vec::with_capacity(terms.len() * (p + q));
            for some in terms.chunks(self.sizes.decoded((p, q), self.schedule.depth)) {
                let places: Vec<_> = some.iter().flat_map(|t| self.places(tile, *t)).collect();
                loaded.extend(self.load(ahead, &places)?);
            }
            sums = accumulate(self.evaluator, sums, &loaded, (p, q))?;
            // Where they were made, so that their memory is used again.
            threads::map_into(loaded, |_, block| drop(block));
            progress(step + 1);
        }
        Ok(sums)
    }

    /// The blocks of one term, in the order of the requests.
    fn places(&self, tile: &Tile, t: usize) -> Vec<(Operand, usize, usize)> {
        let left = tile.rows.iter().map(|row| (Operand::Left, tile.batch * self.sizes.rows + row, t));
        let right = tile.cols.iter().map(|col| (Operand::Right, tile.batch * self.sizes.terms + t, *col));
        left.chain(right).collect()
    }

    /// Finishes the sums shard by shard and hands them over; whether somebody takes them.
    fn finish(
        &self,
        tile: &Tile,
        mut sums: Vec<Option<Ciphertext>>,
        sender: &SyncSender<Finished>,
    ) -> Result<bool, MatrixError> {
        let at = |list: &[usize], wanted: usize| list.binary_search(&wanted).map_err(|_| short());
        for (_, members) in &tile.shards {
            for some in members.chunks(self.sizes.threads.max(1)) {
                let mut jobs = Vec::with_capacity(some.len());
                for (row, col) in some {
                    let (i, j) = (at(&tile.rows, row % self.sizes.rows)?, at(&tile.cols, *col)?);
                    jobs.push(((*row, *col), sums[i * tile.cols.len() + j].take().ok_or_else(short)?));
                }
                let made = threads::map_into(jobs, |_, (place, sum)| {
                    let block = self.product.finish(self.evaluator, sum)?;
                    Ok::<_, MatrixError>((place, (self.from.encode)(place, block)?))
                });
                for block in made {
                    let (place, container) = block?;
                    if sender.send(Finished::Block(place, container)).is_err() {
                        return Ok(false);
                    }
                }
            }
            if sender.send(Finished::ShardDone).is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// More was asked of a run than it was told of.
fn short() -> MatrixError {
    MatrixError::Count { what: "blocks of a tile", found: 0, expected: 1 }
}
