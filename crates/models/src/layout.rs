//! Where elements stand in slots, and the diagonals of a map between two layouts.
//!
//! A vector has a period p, a power of two. Each element has a place below p: place s of example b of B stands in slot s·B + b, and this
//! repeats every p·B slots, so that a rotation by t·B acts on places modulo p and no mask is needed. What stands in places without an
//! element is arbitrary, and no map reads it.
//!
//! Inputs and outputs stand in their order. Images on the way may stand on the grid of the input, whose holes, where a stride left
//! some, other channels fill (multiplexed packing of Lee et al., ePrint 2021/1688): a convolution has far fewer diagonals then.

use crate::sparse::Sparse;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use sudare_he::circuits::linear_map::Diagonals;

/// A giant step's price in baby steps: a division and a whole key switch of its own, where a baby is an inner product.
const GIANT: usize = 4;

/// Elements after which a vector repeats.
pub(crate) fn period(elements: usize) -> usize {
    elements.next_power_of_two()
}

/// Places of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// In their order.
    Plain,
    /// An image's on planes of `height` × `width` places: rows and columns `gap` places apart, and gap² channels in a plane.
    Grid {
        /// Places of a column.
        height: usize,
        /// Places of a row.
        width: usize,
        /// Places from one pixel to the next.
        gap: usize,
    },
}

/// Channels, rows and columns of an image, which may be a batch of one.
fn image(shape: &[usize]) -> Option<[usize; 3]> {
    let (ones, image) = shape.split_last_chunk::<3>()?;
    ones.iter().all(|d| *d == 1).then_some(*image)
}

/// A tensor in places.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    places: Option<Vec<u32>>,
    period: usize,
}

impl Layout {
    pub fn plain(count: usize) -> Self {
        Self { places: None, period: period(count) }
    }

    /// The layout of a tensor; none where the shape does not go with the order, or takes over `most` places.
    pub fn new(shape: &[usize], order: Order, most: usize) -> Option<Self> {
        let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?;
        let Order::Grid { height, width, gap } = order else {
            return (count <= most).then(|| Self::plain(count));
        };
        let [channels, rows, columns] = image(shape)?;
        let fits = |size: usize, all: usize| size.checked_mul(gap).is_some_and(|size| 0 < size && size <= all);
        if !(fits(rows, height) && fits(columns, width)) {
            return None;
        }
        let (group, plane) = (gap.checked_mul(gap)?, height.checked_mul(width)?);
        let all = channels.div_ceil(group).checked_mul(plane)?;
        if all > most || all > u32::MAX as usize {
            return None;
        }
        let place = |i: usize| {
            let (c, y, x) = (i / (rows * columns), i / columns % rows, i % columns);
            let sub = c % group;
            (c / group * plane + (gap * y + sub / gap) * width + gap * x + sub % gap) as u32
        };
        Some(Self { places: Some((0..count).map(place).collect()), period: period(all) })
    }

    /// Orders in which a tensor may stand beside inputs of `input`'s shape.
    pub fn orders(shape: &[usize], input: &[usize]) -> Vec<Order> {
        let mut out = vec![Order::Plain];
        if let (Some([_, rows, columns]), Some([_, height, width])) = (image(shape), image(input)) {
            let gaps = (0..5).map(|k| 1usize << k).filter(|gap| rows * gap <= height && columns * gap <= width);
            out.extend(gaps.map(|gap| Order::Grid { height, width, gap }));
        }
        out
    }

    /// Places after which it repeats.
    pub fn period(&self) -> usize {
        self.period
    }

    fn place(&self, element: usize) -> usize {
        self.places.as_ref().map_or(element, |places| places[element] as usize)
    }

    /// One period of some examples' values.
    pub fn spread(&self, examples: &[&[f64]], images: usize) -> Vec<f64> {
        let mut out = vec![0.0; self.period * images];
        for (b, example) in examples.iter().enumerate() {
            example.iter().enumerate().for_each(|(e, x)| out[self.place(e) * images + b] = *x);
        }
        out
    }

    /// The slots of some examples' values.
    pub fn slots(&self, examples: &[&[f64]], images: usize, slots: usize) -> Vec<f64> {
        self.spread(examples, images).into_iter().cycle().take(slots).collect()
    }
}

/// Which diagonal an entry is in, and where (Halevi–Shoup, ePrint 2014/106; Juvekar et al., ePrint 2018/073).
///
/// With p_out ≥ p_in, entry (r, c) is in diagonal (c − r) mod p_in at r. With fewer outputs than inputs it is in diagonal (c − r) mod p_out
/// at (c − t) mod p_in, and the p_in/p_out copies of the result are folded.
fn entry(r: usize, c: usize, [p_in, p_out]: [usize; 2]) -> (usize, usize) {
    let cycle = p_in.min(p_out);
    let t = (c + cycle - r % cycle) % cycle;
    (t, if p_out >= p_in { r } else { (c + p_in - t) % p_in })
}

/// A map as diagonals, and how many copies of the result have to be added up after it.
pub(crate) fn diagonals(map: &Sparse, [from, to]: [&Layout; 2], images: usize) -> (Diagonals<f64>, usize) {
    let periods = [from.period, to.period];
    let length = from.period.max(to.period);
    let mut out: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for r in 0..map.rows() {
        for (c, value) in map.row(r) {
            let (t, at) = entry(to.place(r), from.place(c), periods);
            let diagonal = out.entry(t as i64).or_insert_with(|| vec![0.0; length * images]);
            diagonal[at * images..(at + 1) * images].fill(value);
        }
    }
    if out.is_empty() {
        out.insert(0, vec![0.0; length * images]);
    }
    (out, (from.period / to.period).max(1))
}

/// The diagonals that a map has, without their values.
pub(crate) fn offsets(map: &Sparse, [from, to]: [&Layout; 2]) -> Vec<i64> {
    let periods = [from.period, to.period];
    let mut seen = vec![false; from.period.min(to.period)];
    for r in 0..map.rows() {
        map.row(r).for_each(|(c, _)| seen[entry(to.place(r), from.place(c), periods).0] = true);
    }
    let mut out: Vec<i64> = (0..).zip(&seen).filter(|(_, seen)| **seen).map(|(t, _)| t).collect();
    if out.is_empty() {
        out.push(0);
    }
    out
}

/// Baby steps and giant steps where `n` steps share a decomposition.
pub(crate) fn steps(offsets: &[i64], n: usize) -> [usize; 2] {
    let count = |of: &dyn Fn(i64) -> i64| {
        offsets.iter().map(|t| of(*t)).filter(|step| *step != 0).collect::<BTreeSet<_>>().len()
    };
    [count(&|t| t % n as i64), count(&|t| t / n as i64)]
}

/// How many steps share a decomposition: a power of two, by price.
pub(crate) fn babies(offsets: &[i64]) -> usize {
    // A map has one diagonal at least, and none of them is below zero.
    let last = offsets.iter().copied().fold(0, i64::max);
    let all = (0..usize::BITS - 1).map(|k| 1usize << k).take_while(|n| 2 * last >= *n as i64 || *n == 1);
    all.min_by_key(|n| map_price(steps(offsets, *n))).unwrap_or(1)
}

/// A map's price in baby steps.
fn map_price([babies, giants]: [usize; 2]) -> usize {
    babies + GIANT * giants
}

/// What a layer's maps to a layout cost, in baby steps.
pub(crate) fn price(sources: &[(usize, Sparse)], from: &[Layout], to: &Layout) -> usize {
    let one = |(source, map): &(usize, Sparse)| {
        let from = &from[*source];
        let offsets = offsets(map, [from, to]);
        let folds = (from.period / to.period).max(1).trailing_zeros() as usize;
        // A diagonal is a product, half of what a baby's key is.
        map_price(steps(&offsets, babies(&offsets))) + offsets.len() / 2 + GIANT * folds
    };
    sources.iter().map(one).sum()
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
                let [from, to] = [columns, rows].map(Layout::plain);
                let mut x = from.slots(&refs, images, size);
                // What stands beside the elements is arbitrary.
                let p = period(columns);
                x.iter_mut().enumerate().filter(|(s, _)| s / images % p >= columns).for_each(|(_, x)| *x = 1e9);
                let (diagonals, copies) = diagonals(&map, [&from, &to], images);
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
                let offsets = offsets(&map, [&from, &to]);
                assert!(offsets.iter().eq(diagonals.keys()) && babies(&offsets).is_power_of_two());
            }
        }
    }

    /// A convolution of stride two from one grid to the next, and back to a plain order.
    #[test]
    fn grids_are_the_map() {
        let (channels, side) = (5, 4);
        let grid = |gap| Order::Grid { height: 8, width: 8, gap };
        let input = Layout::new(&[3, 8, 8], grid(1), 1 << 10).unwrap();
        let output = Layout::new(&[channels, side, side], grid(2), 1 << 10).unwrap();
        assert_eq!((output.period(), Layout::orders(&[channels, side, side], &[3, 8, 8]).len()), (128, 3));
        let mut random = Random(3);
        let mut map = Sparse::empty(3 * 64);
        for i in 0..channels * side * side {
            let (y, x) = (i / side % side * 2, i % side * 2);
            let window =
                (0..3).flat_map(|c| [(0, 0), (0, 1), (1, 0)].map(|(a, b)| (c * 64 + (y + a) * 8 + x + b) as u32));
            map.push_row(&mut window.map(|c| (c, random.units(1)[0])).collect()).unwrap();
        }
        let example = random.units(3 * 64);
        let slots = 512;
        let x = input.slots(&[&example], 1, slots);
        let (diagonals, copies) = diagonals(&map, [&input, &output], 1);
        let mut y: Vec<f64> = (0..slots)
            .map(|s| diagonals.iter().map(|(t, d)| d[s % d.len()] * x[(s + *t as usize) % slots]).sum())
            .collect();
        for step in (0..copies.trailing_zeros()).map(|k| output.period() << k) {
            y = (0..slots).map(|s| y[s] + y[(s + step) % slots]).collect();
        }
        let wanted = map.apply(&example);
        wanted.iter().enumerate().for_each(|(e, w)| assert!((y[output.place(e)] - w).abs() < 1e-12));
        let plain = offsets(&map, [&input, &Layout::plain(wanted.len())]);
        assert!(2 * diagonals.len() < plain.len(), "{} and {}", diagonals.len(), plain.len());
        assert!(Layout::new(&[1, 9, 8], grid(1), 1 << 10).is_none() && Layout::new(&[1, 8, 8], grid(0), 64).is_none());
    }
}
