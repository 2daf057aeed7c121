//! Where elements stand in slots, and the diagonals of a map between two layouts.
//!
//! A vector of n elements has the period p, the least power of two from n on. Element e of example b of B stands in slot e·B + b, and
//! this repeats every p·B slots, so that a rotation by t·B acts on elements modulo p and no mask is needed. What stands beside the n
//! elements is arbitrary, and no map reads it.

use crate::sparse::Sparse;
use std::collections::{BTreeMap, BTreeSet};
use sudare_he::circuits::linear_map::Diagonals;

/// A giant step's price in baby steps: a division and a whole key switch of its own, where a baby is an inner product.
const GIANT: usize = 4;

/// Elements after which a vector repeats.
pub(crate) fn period(elements: usize) -> usize {
    elements.next_power_of_two()
}

/// The slots of some examples' vectors.
pub(crate) fn slots(examples: &[&[f64]], images: usize, slots: usize) -> Vec<f64> {
    let p = examples.first().map_or(1, |x| period(x.len()));
    let mut one = vec![0.0; p * images];
    for (b, example) in examples.iter().enumerate() {
        example.iter().enumerate().for_each(|(e, x)| one[e * images + b] = *x);
    }
    one.into_iter().cycle().take(slots).collect()
}

/// A map as diagonals (Halevi–Shoup, ePrint 2014/106), and how many copies of the result have to be added up after it (the hybrid of
/// Juvekar et al., ePrint 2018/073).
///
/// With p_out ≥ p_in, entry (r, c) is in diagonal (c − r) mod p_in at r. With fewer outputs than inputs it is in diagonal (c − r) mod p_out
/// at (c − t) mod p_in, and the p_in/p_out copies are folded.
pub(crate) fn diagonals(map: &Sparse, images: usize) -> (Diagonals<f64>, usize) {
    let (p_in, p_out) = (period(map.columns()), period(map.rows()));
    let (cycle, length) = (p_in.min(p_out), p_in.max(p_out));
    let mut out: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for r in 0..map.rows() {
        for (c, value) in map.row(r) {
            let t = (c + cycle - r % cycle) % cycle;
            let at = if p_out >= p_in { r } else { (c + p_in - t) % p_in };
            let diagonal = out.entry(t as i64).or_insert_with(|| vec![0.0; length * images]);
            diagonal[at * images..(at + 1) * images].fill(value);
        }
    }
    if out.is_empty() {
        out.insert(0, vec![0.0; length * images]);
    }
    (out, (p_in / p_out).max(1))
}

/// How many steps share a decomposition: a power of two, by price.
pub(crate) fn babies(diagonals: &Diagonals<f64>) -> usize {
    let price = |n: i64| {
        let babies: BTreeSet<i64> = diagonals.keys().map(|t| t % n).filter(|b| *b != 0).collect();
        let giants: BTreeSet<i64> = diagonals.keys().map(|t| t / n).filter(|g| *g != 0).collect();
        babies.len() + GIANT * giants.len()
    };
    let all = (0..usize::BITS - 1).map(|k| 1i64 << k).take_while(|n| diagonals.keys().any(|t| 2 * t >= *n) || *n == 1);
    all.min_by_key(|n| price(*n)).map_or(1, |n| n as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_testkit::Random;

    /// The specification: rotations, diagonals and folds in plain numbers give the product, in every copy.
    #[test]
    fn diagonals_are_the_map() {
        let mut random = Random(7);
        for (rows, columns) in [(1, 1), (5, 3), (3, 5), (8, 8), (1, 30), (30, 1), (10, 100), (100, 10), (33, 32)] {
            for images in [1, 4] {
                let mut map = Sparse::empty(columns);
                for _ in 0..rows {
                    let mut entries: Vec<(u32, f64)> =
                        (0..columns).filter(|_| random.chance(60)).map(|c| (c as u32, c as f64 * 0.3 - 1.0)).collect();
                    map.push_row(&mut entries).unwrap();
                }
                let size = 256 * images;
                let examples: Vec<Vec<f64>> =
                    (0..images).map(|b| (0..columns).map(|c| (c + 3 * b) as f64 * 0.1).collect()).collect();
                let refs: Vec<&[f64]> = examples.iter().map(Vec::as_slice).collect();
                let mut x = slots(&refs, images, size);
                // What stands beside the elements is arbitrary.
                let p = period(columns);
                x.iter_mut().enumerate().filter(|(s, _)| s / images % p >= columns).for_each(|(_, x)| *x = 1e9);
                let (diagonals, copies) = diagonals(&map, images);
                let mut y = vec![0.0; size];
                for (t, d) in &diagonals {
                    for s in 0..size {
                        y[s] += d[s % d.len()] * x[(s + *t as usize * images) % size];
                    }
                }
                let p_out = period(rows);
                for step in (0..copies.trailing_zeros()).map(|k| (p_out * images) << k) {
                    y = (0..size).map(|s| y[s] + y[(s + step) % size]).collect();
                }
                for (b, example) in examples.iter().enumerate() {
                    let wanted = map.apply(example);
                    for s in (b..size).step_by(images).filter(|s| s / images % p_out < rows) {
                        assert!((y[s] - wanted[s / images % p_out]).abs() < 1e-9, "{rows}×{columns}, {images}");
                    }
                }
                assert!(diagonals.len() <= p.min(p_out));
                assert!(babies(&diagonals).is_power_of_two());
            }
        }
    }
}
