//! What arithmetic in floating point asks of a processor.

use std::fmt::Debug;

/// A processor's registers of doubles. Memory is read and written by eights of words, of which one register
/// holds the `part`-th of [`Reals::PARTS`] shares. A value is the proof that the processor has them, so its
/// methods are safe; all are expanded where they are called, inside a function that has the processor's
/// features.
pub(crate) trait Reals: Copy + Debug + Send + Sync + 'static {
    /// `8 / PARTS` doubles.
    type V: Copy;
    /// Registers that hold eight doubles: 1, 2 or 4.
    const PARTS: usize;

    /// One number in every lane.
    fn splat(self, x: f64) -> Self::V;
    /// Doubles from memory.
    fn load(self, x: &[u64; 8], part: usize) -> Self::V;
    /// Doubles to memory.
    fn store(self, x: &mut [u64; 8], part: usize, v: Self::V);
    /// Words below 2^52 as doubles.
    fn load_words(self, x: &[u64; 8], part: usize) -> Self::V;
    /// Whole numbers in `[0, 2^52)` as words.
    fn store_words(self, x: &mut [u64; 8], part: usize, v: Self::V);

    /// `x + y`.
    fn add(self, x: Self::V, y: Self::V) -> Self::V;
    /// `x − y`.
    fn sub(self, x: Self::V, y: Self::V) -> Self::V;
    /// `x · y`.
    fn mul(self, x: Self::V, y: Self::V) -> Self::V;
    /// `x · y + z`, rounded once where the processor fuses them.
    fn mul_add(self, x: Self::V, y: Self::V, z: Self::V) -> Self::V;
    /// `z − x · y`, rounded once where the processor fuses them.
    fn neg_mul_add(self, x: Self::V, y: Self::V, z: Self::V) -> Self::V;
    /// `x + y` where `x` is negative, else `x`.
    fn add_if_negative(self, x: Self::V, y: Self::V) -> Self::V;
    /// The first `8 / PARTS` of eight registers, transposed as a square; the rest is left.
    fn transpose(self, v: [Self::V; 8]) -> [Self::V; 8];
    /// Asks for a cache line. A hint: any address will do.
    fn prefetch(self, _line: *const u8) {}
}
