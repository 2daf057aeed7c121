//! What the loops of this folder ask of a processor: vectors of eight words, and a field in them.

use crate::modulus::{Modulus, Shoup};

/// A processor's vectors of eight words, or registers that stand for one. A value is the proof that
/// the processor has them, so its methods are safe; all are expanded where they are called, inside a
/// function that has the processor's features.
pub(crate) trait Lanes: Copy {
    /// Eight words.
    type V: Copy;
    /// One word in every lane.
    fn splat(self, x: u64) -> Self::V;
    /// From memory.
    fn load(self, x: &[u64; 8]) -> Self::V;
    /// To memory.
    fn store(self, x: &mut [u64; 8], v: Self::V);
    /// `x + y` modulo 2^64.
    fn add(self, x: Self::V, y: Self::V) -> Self::V;
    /// `x − y` modulo 2^64.
    fn sub(self, x: Self::V, y: Self::V) -> Self::V;
    /// `x` in `[0, 2m)` to `[0, m)`, for `m` up to 2^63.
    fn subtract_once(self, x: Self::V, m: Self::V) -> Self::V;
    /// The lanes in the opposite order.
    fn reverse(self, x: Self::V) -> Self::V;
    /// Eight vectors, transposed as an 8×8 square.
    fn transpose(self, v: [Self::V; 8]) -> [Self::V; 8];
    /// Asks for a cache line, for the second-level cache. A hint: any address will do.
    fn prefetch(self, _line: *const u8) {}
    /// Asks for a cache line, for the first-level cache.
    fn prefetch_near(self, _line: *const u8) {}
}

/// A vector of a family's lanes.
pub(crate) type V<F> = <<F as Field>::Lanes as Lanes>::V;

/// Arithmetic modulo q in vectors of eight words. Unless said otherwise, values lie in `[0, q)`.
pub(crate) trait Field: Copy {
    /// The vectors.
    type Lanes: Lanes;
    /// A constant factor, ready for [`Field::mul_factor`].
    type Factor: Copy;
    /// The vectors.
    fn lanes(self) -> Self::Lanes;
    /// q in every lane.
    fn q(self) -> V<Self>;
    /// `a · b`.
    fn mul(self, a: V<Self>, b: V<Self>) -> V<Self>;
    /// `c + a · b`, with one reduction.
    fn mul_add(self, c: V<Self>, a: V<Self>, b: V<Self>) -> V<Self>;
    /// A constant in every lane.
    fn factor(self, w: &Shoup) -> Self::Factor;
    /// `x · w` for `x` in `[0, 2q)`.
    fn mul_factor(self, x: V<Self>, w: Self::Factor) -> V<Self>;
    /// `c + x · w`.
    fn mul_factor_add(self, c: V<Self>, x: V<Self>, w: Self::Factor) -> V<Self>;
    /// `x mod q` for `x` in `[0, 2^63]`.
    fn reduce(self, x: V<Self>) -> V<Self>;
    /// `x mod q`, plus `less` where `x` is above `half`.
    fn reduce_above(self, x: V<Self>, half: V<Self>, less: V<Self>) -> V<Self>;
    /// `x mod q` for signed lanes.
    fn reduce_signed(self, x: V<Self>) -> V<Self>;

    /// `a + b`.
    #[inline(always)]
    fn add(self, a: V<Self>, b: V<Self>) -> V<Self> {
        let lanes = self.lanes();
        lanes.subtract_once(lanes.add(a, b), self.q())
    }

    /// `a − b`.
    fn sub(self, a: V<Self>, b: V<Self>) -> V<Self>;
}

/// The multiple of `p` that a centred lift takes off: what [`Field::reduce_above`] adds.
#[inline(always)]
pub(crate) fn minus(q: &Modulus, p: u64) -> u64 {
    q.neg(q.reduce(p))
}
