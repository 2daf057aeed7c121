//! Twiddle factors in doubles, and when a forward transform reduces.

use super::arith::{Pair, pair};
use crate::kernel::generic::roots::{inverse_root, layer_inverses, reversed_powers};
use crate::modulus::Modulus;

/// Layers of the last step of a forward transform, on blocks of 64 values.
pub(crate) const TAIL_LAYERS: u32 = 6;
/// Blocks of so many words (a power of two) are finished one after another in the first cache.
const L1_LAYERS: u32 = 11;

/// One vector of eight words, aligned for the processor.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Eight(pub [u64; 8]);

/// Twiddles and their quotients of the three layers within one block of 64, lane `k` for its `k`-th run of
/// eight values: one of the first layer, two of the second, four of the third.
pub(crate) type LaneBlock = [[Eight; 2]; 7];

/// The numbers of layers of the passes before the last six, outermost first.
#[derive(Debug)]
pub(crate) struct Passes {
    pub all: Vec<u32>,
    /// How many of them go over everything; the others stay within blocks that fit the first cache.
    pub outer: usize,
}

/// Twiddles of one prime below 2^50.
#[derive(Debug)]
pub(crate) struct DoubleTables {
    /// ψ^brv(i): entry `m + i` is the twiddle of block `i` in the layer with `m` blocks, `m < N/8`.
    pub forward: Vec<Pair>,
    pub forward_lanes: Vec<LaneBlock>,
    /// ψ^−brv(i) in the same places.
    pub inverse: Vec<Pair>,
    pub inverse_lanes: Vec<LaneBlock>,
    /// 2^−layers for every number of layers, and each times the inverse twiddle of the first layer.
    pub scales: Vec<[Pair; 2]>,
    pub passes: Passes,
    /// Whether each pass reduces the values that its first layer does not multiply; the last two are those
    /// of the tail.
    pub reduces: Vec<bool>,
    /// Whether inverse passes reduce the sums of every layer but the first, instead of the one that no
    /// layer of the pass multiplies.
    pub careful: bool,
}

/// So many layers in passes of up to `radix`.
pub(super) fn split(layers: u32, radix: u32) -> Vec<u32> {
    let passes = layers.div_ceil(radix);
    (0..passes).map(|i| layers / passes + u32::from(i < layers % passes)).collect()
}

impl Passes {
    fn new(layers: u32, radix: u32) -> Self {
        let outer = if layers > L1_LAYERS + 1 { layers - L1_LAYERS } else { 0 };
        let (mut all, inner) = (split(outer, radix), split(layers - TAIL_LAYERS - outer, radix));
        let outer = all.len();
        all.extend(inner);
        Self { all, outer }
    }
}

impl DoubleTables {
    /// For the root ψ of degree `n`, in passes of up to `radix` layers.
    pub(crate) fn new(q: &Modulus, n: usize, root: u64, radix: usize) -> Self {
        let powers = reversed_powers(q, n, root);
        let inverse = reversed_powers(q, n, inverse_root(q, n, root));
        let pairs = |powers: &[u64]| powers[..n / 8].iter().map(|w| pair(q, *w)).collect();
        let lanes = |powers: &[u64]| -> Vec<LaneBlock> { (0..n / 64).map(|b| lane_block(q, powers, b)).collect() };
        let scales = layer_inverses(q, n).map(|w| [w.value, q.mul(w.value, inverse[1])].map(|w| pair(q, w))).collect();
        let passes = Passes::new(n.trailing_zeros(), radix as u32);
        let reduces = reductions(q.value(), passes.all.iter().chain(&[3, 3]));
        Self {
            forward: pairs(&powers),
            forward_lanes: lanes(&powers),
            inverse: pairs(&inverse),
            inverse_lanes: lanes(&inverse),
            scales,
            passes,
            reduces,
            careful: q.bits() > LAZY_INVERSE_BITS,
        }
    }
}

fn lane_block(q: &Modulus, powers: &[u64], block: usize) -> LaneBlock {
    let mut out = [[Eight([0; 8]); 2]; 7];
    let m = powers.len() / 8;
    for (layer, entries) in [0..1, 1..3, 3..7].into_iter().enumerate() {
        for j in entries.clone() {
            for k in 0..8 {
                let at = ((m + 8 * block + k) << layer) + j - entries.start;
                let [w, quotient] = pair(q, powers[at]);
                (out[j][0].0[k], out[j][1].0[k]) = (w.to_bits(), quotient.to_bits());
            }
        }
    }
    out
}

/// Primes of up to so many bits need one reduction in eight values a pass of the inverse: a pass takes values
/// of up to 2.7p (four lazy products, each up to 0.67p) and makes sums of eight of them, and 8·2.7p < 2^52.
const LAZY_INVERSE_BITS: u32 = 47;

/// Where a forward transform has to reduce so that all values stay below 2^52 in magnitude: before a pass
/// within which they would not. Bounds are those of [`super::arith`].
fn reductions<'a>(p: u64, passes: impl Iterator<Item = &'a u32>) -> Vec<bool> {
    const LIMIT: f64 = (1u64 << 52) as f64;
    let p = p as f64;
    let product = |bound: f64| p * (0.5 + bound / (4.0 * LIMIT)) + 1.0;
    // The greatest value after a pass on `x` (what the first layer does not multiply) and `y` (what it does).
    let after = |x: f64, y: f64, layers: u32| {
        let first = x + product(y);
        (1..layers).fold(first, |bound, _| bound + product(bound))
    };
    let mut bound = p;
    passes
        .map(|layers| {
            let free = after(bound, bound, *layers);
            let reduce = free >= LIMIT;
            bound = if reduce { after(p / 2.0 + 1.0, bound, *layers) } else { free };
            assert!(bound < LIMIT, "a prime beyond the range of doubles");
            reduce
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_follow_the_prime() {
        let count = |bits: u32, layers: u32| {
            let passes = Passes::new(layers, 3);
            let all = passes.all.iter().chain(&[3, 3]);
            assert_eq!(all.clone().sum::<u32>(), layers);
            reductions((1 << bits) - 1, all).into_iter().filter(|r| *r).count()
        };
        for layers in 9..=17 {
            assert_eq!([20, 40, 46, 47, 48].map(|bits| count(bits, layers)).iter().take(3).sum::<usize>(), 0);
            // Never before the first pass, always before the others.
            assert!(count(50, layers) >= 2);
            assert!(count(49, layers) <= count(50, layers));
        }
        assert_eq!(count(50, 9), 2);
    }
}
