//! What exact arithmetic in doubles asks of a processor.

pub(crate) use crate::kernel::generic::reals::Reals;

/// [`Reals`] whose products and sums are rounded once, with what takes packed words apart.
///
/// "Integers" are doubles that are whole numbers of magnitude up to 2^53.
pub(crate) trait Doubles: Reals {
    /// Layers that a pass of a transform does at most: 3 where eight rows and what their butterflies need
    /// stay in registers.
    const RADIX: usize;

    /// The upper and the lower 32 bits of words, each as integers.
    fn load_halves(self, x: &[u64; 8], part: usize) -> [Self::V; 2];
    /// The packed residues of a unit of [`crate::packed`] with a byte each above their 32 bits, as integers.
    fn join_bytes(self, low: &[u32; 8], high: &[u8; 8], part: usize) -> Self::V;
    /// The same with two bytes each.
    fn join_shorts(self, low: &[u32; 8], high: &[u16; 8], part: usize) -> Self::V;
    /// Packed values, one after another from the first of `bytes` on, as integers.
    fn unpack(self, bytes: &[u8; 64], packing: &Packing, part: usize) -> Self::V;

    /// `x · y − z`, rounded once.
    fn mul_sub(self, x: Self::V, y: Self::V, z: Self::V) -> Self::V;
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
