//! Twiddle factors as the transforms on vectors read them, and the plan of their reductions.

use super::super::roots::{inverse_root, layer_inverses, reversed_powers};
use crate::modulus::{Modulus, Shoup};

/// A twiddle and its Shoup quotient.
pub(crate) type Pair = [u64; 2];

/// How a family multiplies modulo q.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LaneWord {
    /// In words of 52 bits: products below 2q, quotients scaled by 2^52.
    Bits52,
    /// In words of 64 bits: products below 4q, quotients scaled by 2^64; operands are never shifted.
    Bits64,
}

impl LaneWord {
    fn pair(self, w: &Shoup) -> Pair {
        match self {
            Self::Bits52 => [w.value, w.quotient52],
            Self::Bits64 => [w.value, w.quotient],
        }
    }
}

/// One vector of eight words, aligned for the processor.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Lanes(pub [u64; 8]);

/// Twiddle and quotient vectors of the three layers within one block of 64, lane `k` for its
/// `k`-th run of eight values: seven pairs.
pub(crate) type LaneBlock = [Lanes; 14];

/// Radix (as a power of two) of each pass before the last six layers, for the degrees 2^9 …
/// 2^17. The passes after the first `.1` work on blocks that stay in the L1 cache.
type Passes = (&'static [usize], usize);

const FORWARD_PASSES: [Passes; 9] = [
    (&[3], 0),
    (&[4], 0),
    (&[2, 3], 0),
    (&[3, 3], 0),
    (&[3, 4], 1),
    (&[2, 3, 3], 1),
    (&[3, 3, 3], 1),
    (&[2, 2, 3, 3], 2),
    (&[2, 3, 3, 3], 2),
];

/// The same of an inverse transform, with at most eight rows a pass.
const INVERSE_PASSES: [Passes; 9] = [
    (&[3], 0),
    (&[2, 2], 0),
    (&[2, 3], 0),
    (&[3, 3], 0),
    (&[2, 2, 3], 1),
    (&[2, 3, 3], 1),
    (&[3, 3, 3], 1),
    (&[2, 2, 3, 3], 2),
    (&[2, 3, 3, 3], 2),
];

/// When a forward transform reduces the operands that only additions touch. A *unit* `u` is
/// the bound of a lazy product, see [`LaneWord`]; `M` units fit the word that a
/// multiplication reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForwardPlan {
    /// Never: one shift at the start keeps every difference positive.
    Never,
    /// At the start of each pass, with a shift of 4u; needs M ≥ 9.
    PassShift,
    /// At the start of each pass of at most three layers; needs M ≥ 4.
    Pass,
    /// In every layer; needs M ≥ 2.
    Layer,
}

/// When an inverse transform reduces sums within a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InversePlan {
    /// Only the sum of all at its end; needs M ≥ 8.
    Pass,
    /// Before its third layer; needs M ≥ 4.
    Third,
    /// Before its second and third layers; needs M ≥ 2.
    Layer,
}

/// Twiddles of one prime in the layout of one family.
#[derive(Debug)]
pub(crate) struct VectorTables {
    /// ψ^brv(m + i) at `m + i`, for the layers with m < N/8 blocks.
    pub forward: Vec<Pair>,
    /// Per block of 64 the forward twiddles of its last three layers: one of the first, two of
    /// the second, four of the third.
    pub forward_lanes: Vec<LaneBlock>,
    /// Per pass (first to last of the forward transform, the radix-8 pass before the last
    /// three layers included) and block `2^R` pairs: entry `j` is ρ^−j, where the block is
    /// X^(s·2^R) − ρ^(2^R); in the pass with one block all are times N^−1.
    pub inverse: Vec<Pair>,
    /// Per block of 64 ρ^−1 … ρ^−7 of its eight runs of eight values.
    pub inverse_lanes: Vec<LaneBlock>,
    /// ι^−1, ζ^−1 and ζ^−3 for ι = ψ^(N/2), ζ = ψ^(N/4).
    pub inverse_roots: [Pair; 3],
    pub forward_passes: &'static [usize],
    pub forward_outer: usize,
    pub inverse_passes: &'static [usize],
    pub inverse_outer: usize,
    pub forward_plan: ForwardPlan,
    pub inverse_plan: InversePlan,
    /// The multiple of q that a shift adds.
    pub shift: u64,
    /// 2^−layers for every number of layers, for partial transforms.
    pub layer_inverses: Vec<Pair>,
}

impl VectorTables {
    /// For the root ψ of degree `n`.
    pub fn new(modulus: &Modulus, n: usize, root: u64, word: LaneWord) -> Self {
        let powers = reversed_powers(modulus, n, root);
        let inverse_powers = reversed_powers(modulus, n, inverse_root(modulus, n, root));
        let layer_inverses: Vec<Pair> = layer_inverses(modulus, n).map(|w| word.pair(&w)).collect();
        let n_inv = layer_inverses[n.trailing_zeros() as usize][0];
        let index = n.trailing_zeros() as usize - 9;
        let pair = |w: u64| word.pair(&modulus.shoup(w));
        // ρ^−j of block `i` where the layer whose twiddle is ρ has `4·blocks` (radix 8) blocks.
        let rho =
            |depth: usize, radix: usize, i: usize| inverse_powers[(1 << (depth + radix - 1)) + (i << (radix - 1))];
        let (forward_passes, forward_outer) = FORWARD_PASSES[index];
        let (inverse_passes, inverse_outer) = INVERSE_PASSES[index];

        let mut inverse = Vec::new();
        let mut depth = 0;
        for radix in inverse_passes.iter().copied().chain([3]) {
            for i in 0..1usize << depth {
                let step = rho(depth, radix, i);
                let mut w = if depth == 0 { n_inv } else { 1 };
                for _ in 0..1 << radix {
                    inverse.push(pair(w));
                    w = modulus.mul(w, step);
                }
            }
            depth += radix;
        }

        let lanes = |entry: &dyn Fn(usize, usize) -> u64| -> Vec<LaneBlock> {
            let mut table = vec![[Lanes([0; 8]); 14]; n / 64];
            for (b, block) in table.iter_mut().enumerate() {
                for j in 0..7 {
                    for k in 0..8 {
                        let [w, quotient] = pair(entry(8 * b + k, j));
                        block[2 * j].0[k] = w;
                        block[2 * j + 1].0[k] = quotient;
                    }
                }
            }
            table
        };
        let m = n / 8;
        let forward_lanes = lanes(&|i, j| match j {
            0 => powers[m + i],
            1..3 => powers[2 * m + 2 * i + j - 1],
            _ => powers[4 * m + 4 * i + j - 3],
        });
        let inverse_lanes = lanes(&|i, j| modulus.pow(rho(m.trailing_zeros() as usize, 3, i), j as u64 + 1));

        let (forward_plan, shift, inverse_plan) = plan(modulus.value(), n.trailing_zeros(), word);
        Self {
            forward: powers[..m].iter().map(|w| pair(*w)).collect(),
            forward_lanes,
            inverse,
            inverse_lanes,
            inverse_roots: [inverse_powers[1], inverse_powers[2], inverse_powers[3]].map(pair),
            forward_passes,
            forward_outer,
            inverse_passes,
            inverse_outer,
            forward_plan,
            inverse_plan,
            shift,
            layer_inverses,
        }
    }
}

/// The plans for a modulus, and the shift of the forward one.
fn plan(q: u64, layers: u32, word: LaneWord) -> (ForwardPlan, u64, InversePlan) {
    let units = match word {
        LaneWord::Bits52 => (1u128 << 52) / (2 * u128::from(q)),
        LaneWord::Bits64 => (1 << 64) / (4 * u128::from(q)),
    };
    let inverse = match units {
        8.. => InversePlan::Pass,
        4..8 => InversePlan::Third,
        _ => InversePlan::Layer,
    };
    let forward = match word {
        LaneWord::Bits52 => match (never_shift(q, layers), units) {
            (Some(shift), _) => return (ForwardPlan::Never, shift, inverse),
            (None, 9..) => ForwardPlan::PassShift,
            (None, 4..9) => ForwardPlan::Pass,
            _ => ForwardPlan::Layer,
        },
        LaneWord::Bits64 if units >= 4 => ForwardPlan::Pass,
        LaneWord::Bits64 => ForwardPlan::Layer,
    };
    (forward, 8 * q, inverse)
}

/// The least shift with which a transform in 52-bit words of that many layers never needs a reduction.
///
/// A lazy product of y < Y is below q + q·Y/2^52. The sums of all layers bound how far a value
/// rises above the shift and falls below it; both ends must stay within [0, 2^52).
fn never_shift(q: u64, layers: u32) -> Option<u64> {
    const WORD: u64 = 1 << 52;
    'shift: for multiple in 1..=2 * u64::from(layers) {
        let shift = multiple.checked_mul(q).filter(|s| *s < WORD)?;
        // The first layer multiplies values below q and shifts the others.
        let mut bound = q;
        let mut high = shift + q;
        let mut low = shift;
        for _ in 0..layers {
            let product = q + ((u128::from(q) * u128::from(bound)) >> 52) as u64 + 1;
            high += product;
            if product > low || high >= WORD {
                continue 'shift;
            }
            low -= product;
            bound = high;
        }
        return Some(shift);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_follow_the_modulus() {
        for (bits, want) in [
            (20, ForwardPlan::Never),
            (45, ForwardPlan::Never),
            (47, ForwardPlan::PassShift),
            (48, ForwardPlan::Pass),
            (49, ForwardPlan::Pass),
            (50, ForwardPlan::Layer),
        ] {
            assert_eq!(plan((1 << bits) - 1, 17, LaneWord::Bits52).0, want, "{bits} bits");
        }
        assert_eq!(plan((1 << 46) - 1, 15, LaneWord::Bits52).0, ForwardPlan::Never);
        assert_eq!(plan((1 << 60) - 1, 17, LaneWord::Bits64).0, ForwardPlan::Pass);
        assert_eq!(plan((1 << 61) - 1, 17, LaneWord::Bits64).0, ForwardPlan::Layer);
        assert_eq!(plan((1 << 48) - 1, 17, LaneWord::Bits52).2, InversePlan::Pass);
        assert_eq!(plan((1 << 49) - 1, 17, LaneWord::Bits52).2, InversePlan::Third);
        assert_eq!(plan((1 << 50) - 1, 17, LaneWord::Bits52).2, InversePlan::Layer);
        assert_eq!(plan((1 << 60) - 1, 17, LaneWord::Bits64).2, InversePlan::Third);
        assert_eq!(plan((1 << 61) - 1, 17, LaneWord::Bits64).2, InversePlan::Layer);
    }
}
