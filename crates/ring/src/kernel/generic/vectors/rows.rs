//! Rows of vectors that one pass of a transform works on together.

use super::lanes::Lanes;
use std::marker::PhantomData;

/// A block of words as `ROWS` rows of equal length, read and written a column of vectors at a time: one
/// check for all the rows of a column.
pub(crate) struct Rows<'a, const ROWS: usize> {
    block: *mut [u64; 8],
    /// Vectors of a row.
    columns: usize,
    words: PhantomData<&'a mut [u64]>,
}

impl<'a, const ROWS: usize> Rows<'a, ROWS> {
    /// The first `ROWS` rows of `block`, each of `stride` words.
    ///
    /// # Panics
    /// If a row is not a number of whole vectors, or the block is shorter.
    #[inline(always)]
    pub(crate) fn new(block: &'a mut [u64], stride: usize) -> Self {
        let vectors = block.as_chunks_mut::<8>().0;
        let columns = stride / 8;
        assert!(stride.is_multiple_of(8) && columns.checked_mul(ROWS).is_some_and(|all| all <= vectors.len()));
        Self { block: vectors.as_mut_ptr(), columns, words: PhantomData }
    }

    /// Vectors of a row.
    #[inline(always)]
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Where row `i` of a column stands: an address to compute with.
    #[inline(always)]
    pub(crate) fn address(&self, i: usize, column: usize) -> *const u64 {
        self.block.wrapping_add(i * self.columns + column).cast()
    }

    /// A column.
    ///
    /// # Panics
    /// If there is no such column.
    #[inline(always)]
    pub(crate) fn load<L: Lanes>(&self, lanes: L, column: usize) -> [L::V; ROWS] {
        assert!(column < self.columns);
        let mut v = [lanes.splat(0); ROWS];
        for (i, x) in v.iter_mut().enumerate() {
            // SAFETY: i < ROWS and column < columns, so this is one of the ROWS·columns vectors that
            // `new` found in the block, which is borrowed for as long as this value lives.
            *x = lanes.load(unsafe { &*self.block.add(i * self.columns + column) });
        }
        v
    }

    /// Writes a column.
    ///
    /// # Panics
    /// As for [`Rows::load`].
    #[inline(always)]
    pub(crate) fn store<L: Lanes>(&mut self, lanes: L, column: usize, v: [L::V; ROWS]) {
        assert!(column < self.columns);
        for (i, x) in v.into_iter().enumerate() {
            // SAFETY: as in `load`; the block is borrowed mutably.
            lanes.store(unsafe { &mut *self.block.add(i * self.columns + column) }, x);
        }
    }
}
