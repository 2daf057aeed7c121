//! Rows of a matrix operand that a register tile reads together.

use std::marker::PhantomData;

/// `ROWS` rows of `len` entries, `stride` apart, read an entry of each at a time: one check for all the
/// rows.
#[derive(Clone, Copy)]
pub(crate) struct Tile<'a, T, const ROWS: usize> {
    start: *const T,
    stride: usize,
    len: usize,
    entries: PhantomData<&'a T>,
}

impl<'a, T: Copy, const ROWS: usize> Tile<'a, T, ROWS> {
    /// The rows from the first entry of `entries` on.
    ///
    /// # Panics
    /// If there are not as many.
    #[inline(always)]
    pub(crate) fn new(entries: &'a [T], stride: usize, len: usize) -> Self {
        let last = (ROWS - 1).checked_mul(stride);
        assert!(last.and_then(|last| last.checked_add(len)).is_some_and(|end| end <= entries.len()));
        Self { start: entries.as_ptr(), stride, len, entries: PhantomData }
    }

    /// Entry `t` of row `i`.
    ///
    /// # Panics
    /// If there is no such entry.
    #[inline(always)]
    pub(crate) fn entry(&self, i: usize, t: usize) -> T {
        assert!(i < ROWS && t < self.len);
        // SAFETY: i < ROWS and t < len, so the place is before (ROWS − 1)·stride + len, which `new` found
        // in the entries that this value borrows.
        unsafe { *self.start.add(i * self.stride + t) }
    }
}
