//! In which tiles a product larger than memory is computed.

use serde::Serialize;
use std::fmt;
use sudare_methods::MatrixError;

/// What a product by blocks is made of, in blocks and bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// Independent products.
    pub batch: usize,
    /// Rows of blocks of the left operand and of the result.
    pub rows: usize,
    /// Blocks along the contraction.
    pub terms: usize,
    /// Columns of blocks of the right operand and of the result.
    pub cols: usize,
    /// Bytes of a block of the left operand, the right one and the result on the disk.
    pub stored: [u64; 3],
    /// Bytes of a left or right block in memory, as it is multiplied.
    pub operand: u64,
    /// Bytes of a sum in memory.
    pub sum: u64,
    /// Keys, tables and what else is there from beginning to end.
    pub fixed: u64,
    /// Threads, each of which finishes a block of the result at a time.
    pub threads: usize,
    /// Seconds of computing that the plan expects.
    pub seconds: f64,
}

/// Bytes a second that a schedule counts with where nobody measured: what one NVMe disk of a cloud machine sustains.
const DISK: f64 = 0.8e9;
/// Terms that are read, multiplied and summed together where memory allows it.
const DEPTHS: [usize; 4] = [8, 4, 2, 1];
/// Blocks of the result that wait for the disk, for each thread.
pub(super) const WAITING: usize = 4;
/// Blocks of operands that are decoded together for each thread, where a step has as many.
const DECODED: usize = 4;
/// What is not counted, threads' scratch and what the allocator keeps, as a part of what is.
const SLACK: u64 = 8;

/// Tiles of p×q sums that stay in memory while strips of both operands pass by: for the memory given, those that read
/// least.
///
/// Every tile reads p rows of blocks of A and q columns of B. So A is read ⌈J/q⌉ times and B ⌈I/p⌉ times, for I×J
/// blocks of the result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Schedule {
    /// Rows of blocks in a tile.
    pub tile_rows: usize,
    /// Columns of blocks in a tile.
    pub tile_cols: usize,
    /// Terms of the contraction that are taken together.
    pub depth: usize,
    /// How often the left operand is read.
    pub left_passes: usize,
    /// How often the right operand is read.
    pub right_passes: usize,
    /// Bytes that are read.
    pub read_bytes: u64,
    /// Bytes that are written.
    pub write_bytes: u64,
    /// Bytes of memory that the work takes: sums, strips, what waits, keys and tables.
    pub memory: u64,
    /// Seconds of computing that the plan expects.
    pub compute_seconds: f64,
    /// Seconds of reading and writing at 0.8 GB/s.
    pub disk_seconds: f64,
}

impl Sizes {
    /// The schedule with tiles of p×q blocks, some terms at a time.
    fn with(&self, (p, q): (usize, usize), depth: usize) -> Schedule {
        let (p64, q64, depth64) = (p as u64, q as u64, depth as u64);
        let threads = self.threads as u64;
        let sums = p64 * q64 * self.sum;
        let strips = depth64 * (p64 + q64) * self.operand;
        // A block that is finished is there as a sum, as a result and as bytes; the strips are not there any more.
        let finishing = threads * 2 * (self.sum + self.stored[2]);
        let waiting = threads * 2 * WAITING as u64 * self.stored[2];
        let work = sums + strips.max(finishing) + waiting + self.ahead((p, q), depth);
        let (left_passes, right_passes) = (self.cols.div_ceil(q), self.rows.div_ceil(p));
        let blocks = |rows: usize, cols: usize| (self.batch * rows * cols) as u64;
        let read_bytes = blocks(self.rows, self.terms) * self.stored[0] * left_passes as u64
            + blocks(self.terms, self.cols) * self.stored[1] * right_passes as u64;
        let write_bytes = blocks(self.rows, self.cols) * self.stored[2];
        Schedule {
            tile_rows: p,
            tile_cols: q,
            depth,
            left_passes,
            right_passes,
            read_bytes,
            write_bytes,
            memory: self.fixed + work + work / SLACK,
            compute_seconds: self.seconds,
            disk_seconds: (read_bytes + write_bytes) as f64 / DISK,
        }
    }

    /// Terms whose blocks are decoded together: enough for every thread, of those that are multiplied together.
    pub(super) fn decoded(&self, (p, q): (usize, usize), depth: usize) -> usize {
        (DECODED * self.threads).div_ceil((p + q).max(1)).clamp(1, depth.max(1))
    }

    /// Bytes of blocks that are read and not yet decoded: of those terms that are being decoded, of as many after them, and
    /// of a step, which is read while one is multiplied.
    pub(super) fn ahead(&self, (p, q): (usize, usize), depth: usize) -> u64 {
        let terms = depth + 2 * self.decoded((p, q), depth);
        terms as u64 * (p as u64 * self.stored[0] + q as u64 * self.stored[1])
    }
}

/// The sizes that cut a length into different numbers of parts, multiples of a unit, the largest first.
fn cuts(length: usize, unit: usize) -> Vec<usize> {
    let units = length.div_ceil(unit);
    let mut out: Vec<usize> = (1..=units).map(|parts| units.div_ceil(parts) * unit).collect();
    out.dedup();
    out
}

impl Schedule {
    /// The schedule that reads least in `memory` bytes. Tiles are made up of `unit` rows and columns of blocks, the
    /// shards of a work that is taken up again.
    ///
    /// # Errors
    /// [`MatrixError::TooLittleMemory`].
    pub fn new(sizes: &Sizes, memory: u64, unit: (usize, usize)) -> Result<Self, MatrixError> {
        let least = sizes.with((unit.0.min(sizes.rows), unit.1.min(sizes.cols)), 1).memory;
        let mut best: Option<Self> = None;
        for depth in DEPTHS.into_iter().filter(|depth| *depth <= sizes.terms.max(1)) {
            for p in cuts(sizes.rows, unit.0) {
                // The widest tile of this height that fits: wider ones read less.
                let fits = |q: &usize| sizes.with((p.min(sizes.rows), (*q).min(sizes.cols)), depth).memory <= memory;
                let Some(q) = cuts(sizes.cols, unit.1).into_iter().find(fits) else { continue };
                let found = sizes.with((p.min(sizes.rows), q.min(sizes.cols)), depth);
                if best.is_none_or(|b| found.read_bytes < b.read_bytes) {
                    best = Some(found);
                }
            }
        }
        best.ok_or(MatrixError::TooLittleMemory { given: memory, least })
    }

    /// The seconds that it takes at least: computing and the disk go side by side.
    pub fn seconds(&self) -> f64 {
        self.compute_seconds.max(self.disk_seconds)
    }
}

/// Bytes for people.
fn gigabytes(bytes: u64) -> String {
    match bytes as f64 {
        b if b < 1e9 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.2} GB", b / 1e9),
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tile_rows, tile_cols, depth, left_passes, right_passes, .. } = self;
        let [read, write, memory] = [self.read_bytes, self.write_bytes, self.memory].map(gigabytes);
        writeln!(f, "tiles     {tile_rows} × {tile_cols} blocks, {depth} terms at a time")?;
        writeln!(f, "passes    left {left_passes}, right {right_passes}")?;
        writeln!(f, "disk      {read} read, {write} written: {:.0} s at 0.8 GB/s", self.disk_seconds)?;
        writeln!(f, "compute   {:.0} s", self.compute_seconds)?;
        write!(f, "memory    {memory}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(rows: usize, terms: usize, cols: usize) -> Sizes {
        let stored = [2 << 20, 2 << 20, 2 << 20];
        Sizes {
            batch: 1,
            rows,
            terms,
            cols,
            stored,
            operand: 2 << 20,
            sum: 3 << 20,
            fixed: 0,
            threads: 2,
            seconds: 1.0,
        }
    }

    /// Every tile that fits reads as much or more.
    #[test]
    fn nothing_that_fits_reads_less() {
        for (rows, terms, cols, memory) in
            [(20, 9, 31, 200 << 20), (7, 40, 50, 400 << 20), (16, 16, 16, 90 << 20), (1, 3, 9, 1 << 30)]
        {
            let s = sizes(rows, terms, cols);
            let found = Schedule::new(&s, memory, (1, 1)).unwrap();
            assert!(found.memory <= memory);
            let all = (1..=rows).flat_map(|p| (1..=cols).map(move |q| (p, q)));
            let least = all.map(|pq| s.with(pq, 1)).filter(|x| x.memory <= memory).map(|x| x.read_bytes).min();
            assert_eq!(Some(found.read_bytes), least, "{found:?}");
        }
    }

    /// 50 GB and 50 GB in blocks of 2 MB with at most 18 GiB in all: a quarter of the sums, with what is read, would take
    /// more, so that A is read twice and B three times, or the other way round.
    #[test]
    fn passes_of_a_large_product() {
        let found = Schedule::new(&sizes(158, 158, 158), 18 << 30, (1, 1)).unwrap();
        assert_eq!(found.left_passes + found.right_passes, 5, "{found}");
    }

    #[test]
    fn too_little_memory_is_refused_with_the_figure() {
        let s = sizes(20, 20, 20);
        let Err(MatrixError::TooLittleMemory { given, least }) = Schedule::new(&s, 1 << 20, (1, 1)) else { panic!() };
        assert_eq!(given, 1 << 20);
        assert!(Schedule::new(&s, least, (1, 1)).is_ok());
        assert!(Schedule::new(&s, least - 1, (1, 1)).is_err());
    }

    /// A work that goes on has the shards that it began with.
    #[test]
    fn tiles_are_made_of_whole_shards() {
        let found = Schedule::new(&sizes(20, 20, 20), 300 << 20, (3, 4)).unwrap();
        assert!(found.tile_rows.is_multiple_of(3) && found.tile_cols.is_multiple_of(4), "{found}");
    }
}
