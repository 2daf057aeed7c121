//! When a transform in doubles reduces.

use super::arith::Pair;
use crate::kernel::generic::signed::tables::{Passes, Sums, Tables};
use crate::modulus::Modulus;

/// Twiddles of one prime below 2^50.
pub(crate) type DoubleTables = Tables<Pair>;

/// Primes of up to so many bits need one reduction in eight values a pass of the inverse: a pass takes values
/// of up to 2.7p (four lazy products, each up to 0.67p) and makes sums of eight of them, and 8·2.7p < 2^52.
const LAZY_INVERSE_BITS: u32 = 47;

/// For the root ψ of degree `n`, in passes of up to `radix` layers.
pub(crate) fn tables(q: &Modulus, n: usize, root: u64, radix: usize) -> DoubleTables {
    let sums = if q.bits() > LAZY_INVERSE_BITS { Sums::Later } else { Sums::Last };
    Tables::new(q, (n, root), radix, |passes| reductions(q.value(), passes), sums)
}

/// Where a forward transform has to reduce so that all values stay below 2^52 in magnitude: before a pass
/// within which they would not. Bounds are those of [`super::arith`].
fn reductions(p: u64, passes: &Passes) -> Vec<bool> {
    const LIMIT: f64 = (1u64 << 52) as f64;
    let p = p as f64;
    let product = |bound: f64| p * (0.5 + bound / (4.0 * LIMIT)) + 1.0;
    // The greatest value after a pass on `x` (what the first layer does not multiply) and `y` (what it does).
    let after = |x: f64, y: f64, layers: u32| {
        let first = x + product(y);
        (1..layers).fold(first, |bound, _| bound + product(bound))
    };
    let mut bound = p;
    let pass = |layers| {
        let free = after(bound, bound, layers);
        let reduce = free >= LIMIT;
        bound = if reduce { after(p / 2.0 + 1.0, bound, layers) } else { free };
        assert!(bound < LIMIT, "a prime beyond the range of doubles");
        reduce
    };
    passes.with_tail().map(pass).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_follow_the_prime() {
        let count = |bits: u32, layers: u32| {
            let passes = Passes::new(layers, 3);
            assert_eq!(passes.with_tail().sum::<u32>(), layers);
            reductions((1 << bits) - 1, &passes).into_iter().filter(|r| *r).count()
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
