//! Comparisons and chains as decision diagrams.

use crate::GenomeError;
use crate::builder::Builder;
use std::collections::BTreeMap;
use sudare_he::tfhe::leveled::{Diagram, Value};

/// Whether `g − f ≥ eps`, terminal 1 or 0. The variables are the bits of f and g in turn, from the highest on: f_(b−1),
/// g_(b−1), …, f_0, g_0.
///
/// With j bits left, all that counts of the higher ones is what the lower ones have to add, if it is neither certain
/// nor impossible.
///
/// # Errors
/// None for numbers of up to 31 bits.
pub fn at_least(bits: u32, eps: u32) -> Result<Diagram, GenomeError> {
    // Differences needed of the lower j bits, for j = bits, …, 0.
    let mut needed: Vec<Vec<i64>> = vec![vec![i64::from(eps)]];
    let open = |j: u32, t: i64| t < (1 << j) && t > -((1i64 << j) - 1);
    for j in (0..bits).rev() {
        let above = needed.last().map_or(&[][..], |x| x);
        let mut here: Vec<i64> =
            above.iter().flat_map(|t| [*t, t - (1 << j), t + (1 << j)]).filter(|t| open(j, *t)).collect();
        here.sort_unstable();
        here.dedup();
        needed.push(here);
    }
    let known = |values: &BTreeMap<i64, Value>, j: u32, t: i64| {
        let certain = Value::terminal(u32::from(t <= -((1i64 << j) - 1)));
        values.get(&t).copied().unwrap_or(certain)
    };
    let mut builder = Builder::default();
    let mut below = BTreeMap::new();
    for j in 0..bits {
        let states = needed.get((bits - 1 - j) as usize).map_or(&[][..], |x| x);
        // Variable g_j, for both values of f_j.
        builder.variable();
        let mut by_f = BTreeMap::new();
        for t in states {
            for f in [0, 1] {
                let value = |g: i64| known(&below, j, t - (g - f) * (1 << j));
                let node = builder.node(value(0), value(1));
                by_f.insert((*t, f), node);
            }
        }
        builder.variable();
        let here = states.iter().map(|t| (*t, builder.node(by_f[&(*t, 0)], by_f[&(*t, 1)]))).collect();
        below = here;
    }
    let root = known(&below, bits, i64::from(eps));
    builder.finish(2, root)
}

/// The number of leading ones among q bits: terminals 0 … q.
///
/// # Errors
/// None.
pub fn leading_ones(sites: usize) -> Result<Diagram, GenomeError> {
    let mut builder = Builder::default();
    // Windows have far fewer than 2^31 sites.
    let mut value = Value::terminal(sites as u32);
    for k in (0..sites as u32).rev() {
        builder.variable();
        value = builder.node(Value::terminal(k), value);
    }
    builder.finish(sites + 1, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons() {
        for bits in 0..5u32 {
            for eps in 1..20 {
                let d = at_least(bits, eps).unwrap();
                for (f, g) in (0..1u32 << bits).flat_map(|f| (0..1u32 << bits).map(move |g| (f, g))) {
                    let variables: Vec<bool> =
                        (0..bits).rev().flat_map(|j| [f >> j & 1 == 1, g >> j & 1 == 1]).collect();
                    let expected = i64::from(g) - i64::from(f) >= i64::from(eps);
                    assert_eq!(d.evaluate_plain(&variables).unwrap() == 1, expected, "{bits} {eps} {f} {g}");
                }
            }
        }
        let wide = at_least(20, 1).unwrap();
        assert!(wide.products().len() < 100 && wide.depth() <= 40, "{wide}");
    }

    #[test]
    fn chains() {
        let d = leading_ones(5).unwrap();
        for (bits, expected) in
            [([true; 5], 5), ([false, true, true, true, true], 0), ([true, true, false, true, true], 2)]
        {
            assert_eq!(d.evaluate_plain(&bits).unwrap(), expected);
        }
    }
}
