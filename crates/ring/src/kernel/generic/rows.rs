//! Rows of eights of words that one pass of a transform works on together.

use std::marker::PhantomData;

/// A block of words as `ROWS` rows of equal length.
pub(crate) struct Rows<'a, const ROWS: usize> {
    block: *mut u64,
    /// Words of a row.
    stride: usize,
    words: PhantomData<&'a mut [u64]>,
}

/// `C` vectors of each of `ROWS` rows, side by side: found to be there once for all of them.
pub(crate) struct Columns<'r, const ROWS: usize, const C: usize> {
    /// The first vector of the first row.
    start: *mut u64,
    stride: usize,
    rows: PhantomData<&'r mut u64>,
}

impl<'a, const ROWS: usize> Rows<'a, ROWS> {
    /// The first `ROWS` rows of `block`, each of `stride` words.
    ///
    /// # Panics
    /// If the block is shorter.
    #[inline(always)]
    pub(crate) fn new(block: &'a mut [u64], stride: usize) -> Self {
        assert!(stride.checked_mul(ROWS).is_some_and(|words| words <= block.len()));
        Self { block: block.as_mut_ptr(), stride, words: PhantomData }
    }

    /// `C` vectors of each row from its word `at` on.
    ///
    /// # Panics
    /// If a row ends before.
    #[inline(always)]
    pub(crate) fn columns<const C: usize>(&mut self, at: usize) -> Columns<'_, ROWS, C> {
        assert!(at < self.stride && 8 * C <= self.stride - at);
        Columns { start: self.block.wrapping_add(at), stride: self.stride, rows: PhantomData }
    }
}

impl<const ROWS: usize, const C: usize> Columns<'_, ROWS, C> {
    /// Where vector `c` of row `i` stands.
    ///
    /// # Panics
    /// If there is no such vector.
    #[inline(always)]
    pub(crate) fn address(&self, i: usize, c: usize) -> *mut u64 {
        assert!(i < ROWS && c < C);
        self.start.wrapping_add(i * self.stride + 8 * c)
    }

    /// Vector `c` of row `i`.
    ///
    /// # Panics
    /// As for [`Columns::address`].
    #[inline(always)]
    pub(crate) fn at(&self, i: usize, c: usize) -> &[u64; 8] {
        // SAFETY: `Rows` found ROWS rows of `stride` words in the block that it borrows, and C vectors of
        // each from `start` on; the address is that of one of them.
        unsafe { &*self.address(i, c).cast() }
    }

    /// The same, to be written.
    ///
    /// # Panics
    /// As for [`Columns::address`].
    #[inline(always)]
    pub(crate) fn at_mut(&mut self, i: usize, c: usize) -> &mut [u64; 8] {
        // SAFETY: as in `at`; the block is borrowed mutably.
        unsafe { &mut *self.address(i, c).cast() }
    }
}
