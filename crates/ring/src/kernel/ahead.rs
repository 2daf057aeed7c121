//! Bytes that are needed soon, asked for while transforms work.

use super::Limb;
use crate::count::{self, What};
use std::ops::Range;

/// A key that the next product reads from memory. Transforms do not use memory; given this, they ask
/// for a cache line of it with every vector that they load, so that it lies in the second-level cache
/// when the product begins.
#[derive(Clone, Copy, Debug)]
pub struct Ahead<'a> {
    bytes: &'a [u8],
}

impl<'a> Ahead<'a> {
    /// All of these bytes.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Takes up to `count` bytes off the front; none are left at the end.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.bytes.split_at(count.min(self.bytes.len()));
        self.bytes = left;
        (!taken.is_empty()).then_some(taken)
    }
}

impl Limb {
    /// [`Limb::forward`]; asks for some of `ahead` meanwhile, which it takes off its front. (A hint,
    /// which not every family follows.)
    pub fn forward_ahead(&self, a: &mut [u64], ahead: &mut Ahead<'_>) {
        assert_eq!(a.len(), self.degree());
        count::add(What::Transforms, 1);
        self.kernels().forward_ahead(a, ahead);
    }

    /// How many parts of equal length [`Limb::forward`] finishes one after another.
    pub(crate) fn forward_parts(&self) -> usize {
        self.kernels().forward_parts()
    }

    /// What [`Limb::forward`] does before its parts, in the columns `columns` of the rows that the parts are; both
    /// ends are multiples of 16.
    pub(crate) fn forward_head(&self, a: &mut [u64], columns: Range<usize>) {
        let row = self.degree() / self.forward_parts();
        assert!(a.len() == self.degree() && columns.start <= columns.end && columns.end <= row);
        assert!(columns.start.is_multiple_of(16) && columns.end.is_multiple_of(16));
        self.kernels().forward_head(a, columns);
    }

    /// The rest on part `part`, after the head in all columns; asks for some of `ahead` as
    /// [`Limb::forward_ahead`].
    pub(crate) fn forward_part(&self, a: &mut [u64], part: usize, ahead: &mut Ahead<'_>) {
        let parts = self.forward_parts();
        assert!(part < parts && a.len() * parts == self.degree());
        count::add(What::Transforms, usize::from(part == 0));
        self.kernels().forward_part(a, part, ahead);
    }

    /// [`Limb::inverse`], with the same.
    pub fn inverse_ahead(&self, a: &mut [u64], ahead: &mut Ahead<'_>) {
        assert_eq!(a.len(), self.degree());
        count::add(What::Transforms, 1);
        self.kernels().inverse_ahead(a, ahead);
    }
}
