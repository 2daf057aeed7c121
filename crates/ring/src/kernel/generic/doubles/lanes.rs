//! What arithmetic in doubles asks of a processor.

use std::fmt::Debug;

/// A processor's registers of doubles with fused multiplication and addition. Memory is read and written by
/// eights of words, of which one register holds the `part`-th of [`Doubles::PARTS`] shares. A value is the
/// proof that the processor has them, so its methods are safe; all are expanded where they are called,
/// inside a function that has the processor's features.
///
/// "Integers" are doubles that are whole numbers of magnitude up to 2^53.
pub(crate) trait Doubles: Copy + Debug + Send + Sync + 'static {
    /// `8 / PARTS` doubles.
    type V: Copy;
    /// Registers that hold eight doubles: 1, 2 or 4.
    const PARTS: usize;
    /// Layers that a pass of a transform does at most: 3 where eight rows and what their butterflies need
    /// stay in registers.
    const RADIX: usize;

    /// One number in every lane.
    fn splat(self, x: f64) -> Self::V;
    /// Doubles from memory.
    fn load(self, x: &[u64; 8], part: usize) -> Self::V;
    /// Doubles to memory.
    fn store(self, x: &mut [u64; 8], part: usize, v: Self::V);
    /// Words below 2^52 as integers.
    fn load_words(self, x: &[u64; 8], part: usize) -> Self::V;
    /// Integers in `[0, 2^52)` as words.
    fn store_words(self, x: &mut [u64; 8], part: usize, v: Self::V);
    /// The upper and the lower 32 bits of words, each as integers.
    fn load_halves(self, x: &[u64; 8], part: usize) -> [Self::V; 2];
    /// The packed residues of a unit of [`crate::packed`] with a byte each above their 32 bits, as integers.
    fn join_bytes(self, low: &[u32; 8], high: &[u8; 8], part: usize) -> Self::V;
    /// The same with two bytes each.
    fn join_shorts(self, low: &[u32; 8], high: &[u16; 8], part: usize) -> Self::V;
    /// Packed values, one after another from the first of `bytes` on, as integers.
    fn unpack(self, bytes: &[u8; 64], packing: &Packing, part: usize) -> Self::V;

    /// `x + y`.
    fn add(self, x: Self::V, y: Self::V) -> Self::V;
    /// `x − y`.
    fn sub(self, x: Self::V, y: Self::V) -> Self::V;
    /// `x · y`.
    fn mul(self, x: Self::V, y: Self::V) -> Self::V;
    /// `x · y + z`, rounded once.
    fn mul_add(self, x: Self::V, y: Self::V, z: Self::V) -> Self::V;
    /// `x · y − z`, rounded once.
    fn mul_sub(self, x: Self::V, y: Self::V, z: Self::V) -> Self::V;
    /// `z − x · y`, rounded once.
    fn neg_mul_add(self, x: Self::V, y: Self::V, z: Self::V) -> Self::V;
    /// `x + y` where `x` is negative, else `x`.
    fn add_if_negative(self, x: Self::V, y: Self::V) -> Self::V;
    /// The first `8 / PARTS` of eight registers, transposed as a square; the rest is left.
    fn transpose(self, v: [Self::V; 8]) -> [Self::V; 8];
    /// Asks for a cache line. A hint: any address will do.
    fn prefetch(self, _line: *const u8) {}
}

/// Values of a few bytes each, as [`Doubles::unpack`] takes them apart.
#[derive(Clone, Copy)]
pub(crate) struct Packing {
    /// Bytes of a value, up to 7: two of them lie within 16.
    pub width: usize,
    /// Where each byte of two words comes from among 16; beyond them where it is zero.
    pub index: [u8; 16],
}

impl Packing {
    /// For values of `width` bytes.
    pub(crate) fn new(width: usize) -> Self {
        assert!(width <= 7);
        let index = std::array::from_fn(|i| if i % 8 < width { (i / 8 * width + i % 8) as u8 } else { 0x80 });
        Self { width, index }
    }

    /// The 16 bytes in which the values `first` and `first + 1` lie.
    #[inline(always)]
    pub(crate) fn pair(self, bytes: &[u8; 64], first: usize) -> &[u8; 16] {
        &bytes[first * self.width..first * self.width + 16].as_chunks().0[0]
    }
}

/// Lanes of a register.
pub(crate) const fn lanes<L: Doubles>() -> usize {
    8 / L::PARTS
}
