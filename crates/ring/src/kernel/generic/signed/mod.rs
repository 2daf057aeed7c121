//! Transforms on signed values, which leave `[0, q)` between layers and are reduced as rarely as their arithmetic
//! allows: one source for doubles and for words that are split, over registers of any width.

pub(crate) mod ntt;
pub(crate) mod tables;

use crate::modulus::Modulus;
use std::fmt::Debug;

/// A constant factor as tables keep it.
pub(crate) trait Constant: Copy + Debug + Send + Sync + 'static {
    /// Eight of them, for as many lanes.
    type Eights: Copy + Debug + Send + Sync + 'static;

    /// The residue `w` modulo `q`.
    fn new(q: &Modulus, w: u64) -> Self;
    /// Lane by lane.
    fn eights(lanes: [Self; 8]) -> Self::Eights;
}

/// One vector of eight words, aligned for the processor.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Eight(pub [u64; 8]);

/// Arithmetic modulo a prime q on signed values in registers. A *value* is a number of magnitude below a bound of the
/// arithmetic, congruent to a residue; [`tables`] holds what a transform does against these bounds. All methods are
/// expanded where they are called, inside a function that has the processor's features.
pub(crate) trait Signed: Copy {
    /// `8 / PARTS` values.
    type V: Copy;
    /// A constant factor in tables.
    type Constant: Constant;
    /// A constant factor in lanes.
    type Factor: Copy;
    /// Registers that hold eight values: 1, 2 or 4.
    const PARTS: usize;

    /// Zero in every lane.
    fn zero(self) -> Self::V;
    /// Values from memory, the `part`-th of their shares.
    fn load(self, x: &[u64; 8], part: usize) -> Self::V;
    /// Values to memory.
    fn store(self, x: &mut [u64; 8], part: usize, v: Self::V);
    /// Residues from memory, as values.
    fn load_words(self, x: &[u64; 8], part: usize) -> Self::V;
    /// Values in `[0, q)` to memory, as residues.
    fn store_words(self, x: &mut [u64; 8], part: usize, v: Self::V);
    /// The first `8 / PARTS` of eight registers, transposed as a square; the rest is left.
    fn transpose(self, v: [Self::V; 8]) -> [Self::V; 8];
    /// A factor in every lane.
    fn splat(self, w: &Self::Constant) -> Self::Factor;
    /// A factor for each lane of the `part`-th register.
    fn per_lane(self, w: &<Self::Constant as Constant>::Eights, part: usize) -> Self::Factor;

    /// `x + y`.
    fn add(self, x: Self::V, y: Self::V) -> Self::V;
    /// `x − y`.
    fn sub(self, x: Self::V, y: Self::V) -> Self::V;
    /// `x · w`, of magnitude below q, for any value.
    fn times(self, x: Self::V, w: Self::Factor) -> Self::V;
    /// A smaller value, for the operands of a forward pass that only additions touch.
    fn reduce(self, x: Self::V) -> Self::V;
    /// A smaller value, for sums of an inverse pass.
    fn reduce_sum(self, x: Self::V) -> Self::V;
    /// From `(−q, q)` to `[0, q)`.
    fn positive(self, x: Self::V) -> Self::V;
    /// Any value to `[0, q)`.
    fn residue(self, x: Self::V) -> Self::V;
}
