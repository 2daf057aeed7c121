//! Bytes that are needed soon, asked for while transforms work.

use super::Limb;
use crate::count::{self, What};

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
    ///
    /// # Panics
    /// If `a` has not N words.
    pub fn forward_ahead(&self, a: &mut [u64], ahead: &mut Ahead<'_>) {
        assert_eq!(a.len(), self.degree());
        count::add(What::Transforms, 1);
        self.kernels().forward(a, ahead);
    }

    /// [`Limb::inverse`], with the same.
    ///
    /// # Panics
    /// If `a` has not N words.
    pub fn inverse_ahead(&self, a: &mut [u64], ahead: &mut Ahead<'_>) {
        assert_eq!(a.len(), self.degree());
        count::add(What::Transforms, 1);
        self.kernels().inverse(a, ahead);
    }
}
