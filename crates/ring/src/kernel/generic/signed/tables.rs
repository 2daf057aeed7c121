//! Twiddle factors as the passes read them, and when passes reduce.

use super::Constant;
use crate::kernel::generic::roots::{inverse_root, layer_inverses, reversed_powers};
use crate::modulus::Modulus;

/// Layers of the last step of a forward transform, on blocks of 64 values.
pub(crate) const TAIL_LAYERS: u32 = 6;
/// Blocks of so many words (a power of two) are finished one after another in the first cache.
const L1_LAYERS: u32 = 11;

/// The numbers of layers of the passes before the last six, outermost first.
#[derive(Debug)]
pub(crate) struct Passes {
    pub all: Vec<u32>,
    /// How many of them go over everything; the others stay within blocks that fit the first cache.
    pub outer: usize,
}

/// Which sums an inverse transform reduces in a pass of up to three layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sums {
    /// The one that no layer of the pass multiplies, at the end.
    Last,
    /// Those of every layer but the first.
    Later,
    /// All but those of two products.
    Every,
}

/// Twiddles of one prime.
#[derive(Debug)]
pub(crate) struct Tables<C: Constant> {
    /// ψ^brv(i): entry `m + i` is the twiddle of block `i` in the layer with `m` blocks, `m < N/8`.
    pub forward: Vec<C>,
    /// Twiddles of the three layers within one block of 64, lane `k` for its `k`-th run of eight values: one of the
    /// first layer, two of the second, four of the third.
    pub forward_lanes: Vec<[C::Eights; 7]>,
    /// ψ^−brv(i) in the same places.
    pub inverse: Vec<C>,
    pub inverse_lanes: Vec<[C::Eights; 7]>,
    /// 2^−layers for every number of layers, and each times the inverse twiddle of the first layer.
    pub scales: Vec<[C; 2]>,
    pub passes: Passes,
    /// Whether each forward pass reduces the values that its first layer does not multiply; the last two are those
    /// of the tail.
    pub reduces: Vec<bool>,
    pub sums: Sums,
}

/// So many layers in passes of up to `radix`.
pub(crate) fn split(layers: u32, radix: u32) -> Vec<u32> {
    let passes = layers.div_ceil(radix);
    (0..passes).map(|i| layers / passes + u32::from(i < layers % passes)).collect()
}

impl Passes {
    pub(crate) fn new(layers: u32, radix: u32) -> Self {
        let outer = if layers > L1_LAYERS + 1 { layers - L1_LAYERS } else { 0 };
        let (mut all, inner) = (split(outer, radix), split(layers - TAIL_LAYERS - outer, radix));
        let outer = all.len();
        all.extend(inner);
        Self { all, outer }
    }

    /// The layers of every pass of a forward transform, those of the tail included.
    pub(crate) fn with_tail(&self) -> impl Iterator<Item = u32> {
        self.all.iter().copied().chain([3, 3])
    }
}

impl<C: Constant> Tables<C> {
    /// For the root ψ of degree `n`, in passes of up to `radix` layers, which reduce as `reductions` finds from their numbers of layers.
    pub(crate) fn new(
        q: &Modulus,
        (n, root): (usize, u64),
        radix: usize,
        reductions: impl Fn(&Passes) -> Vec<bool>,
        sums: Sums,
    ) -> Self {
        let powers = reversed_powers(q, n, root);
        let inverse = reversed_powers(q, n, inverse_root(q, n, root));
        let constants = |powers: &[u64]| powers[..n / 8].iter().map(|w| C::new(q, *w)).collect();
        let lanes = |powers: &[u64]| (0..n / 64).map(|b| lane_block::<C>(q, powers, b)).collect();
        let scales =
            layer_inverses(q, n).map(|w| [w.value, q.mul(w.value, inverse[1])].map(|w| C::new(q, w))).collect();
        let passes = Passes::new(n.trailing_zeros(), radix as u32);
        let reduces = reductions(&passes);
        Self {
            forward: constants(&powers),
            forward_lanes: lanes(&powers),
            inverse: constants(&inverse),
            inverse_lanes: lanes(&inverse),
            scales,
            passes,
            reduces,
            sums,
        }
    }
}

fn lane_block<C: Constant>(q: &Modulus, powers: &[u64], block: usize) -> [C::Eights; 7] {
    let m = powers.len() / 8;
    std::array::from_fn(|j| {
        // One twiddle of the first layer, two of the second, four of the third.
        let layer = (j + 1).ilog2();
        let lane = |k: usize| C::new(q, powers[((m + 8 * block + k) << layer) + j + 1 - (1 << layer)]);
        C::eights(std::array::from_fn(lane))
    })
}
