//! The special FFT modulo t or t², as a few linear maps on both rows of slots.
//!
//! It is that of [`crate::circuits::dft`] with roots ζ in row 0 and ζ^−1 in row 1. A polynomial has N coefficients and there are
//! N/2 columns: the complex number c_i + ι·c_(i+N/2) and its conjugate stand in both rows of a column. The first stage of StC
//! and the last one of CtS mix the rows, so that the values in slots are the coefficients themselves, in bit-reversed
//! order: x ↦ a⊙x + b⊙(x with its rows swapped). Diagonals of the swapped rows begin a few units later, since their rotations
//! come from those of x by one more turn ([`super::map`]).

use super::slots::{Column, Slots};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Which way a transform goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The coefficients of the result are the slots of the input.
    SlotsToCoefficients,
    /// The slots of the result are the coefficients of the input.
    CoefficientsToSlots,
}

/// One period of each diagonal: entry i of diagonal t stands at (i, i + t).
pub(super) type Matrix = BTreeMap<i64, Vec<Column>>;

/// One of the maps that a transform is a product of: diagonals at multiples of the unit, from 0 on.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    /// Distance of its diagonals in columns.
    pub unit: i64,
    /// (babies of one decomposition, decompositions).
    pub steps: (usize, usize),
    /// Diagonals of the input.
    pub plain: Matrix,
    /// Diagonals of the input with its rows swapped, from (decompositions − 1)·babies on.
    pub swapped: Matrix,
}

/// The maps in order, and how far to the left the output is rotated.
#[derive(Clone, Debug)]
pub(super) struct Transform {
    pub stages: Vec<Stage>,
    pub pending: i64,
}

impl Transform {
    /// The transform in stages of `layers` butterfly layers each, with `hoisted` babies of one decomposition, of an input
    /// that comes rotated by `pending`. The layers add up to log2 of the columns.
    pub fn new(slots: &Slots, layers: &[u32], direction: Direction, hoisted: usize, mut pending: i64) -> Self {
        let log = slots.points().trailing_zeros();
        let mut done = 0;
        let mut stages = Vec::new();
        for (i, count) in layers.iter().enumerate() {
            let (range, mixes) = match direction {
                Direction::SlotsToCoefficients => (done + 1..=done + count, i == 0),
                Direction::CoefficientsToSlots => (log - done - count + 1..=log - done, i + 1 == layers.len()),
            };
            done += count;
            let unit = 1i64 << (range.start() - 1);
            let matrix = product(slots, range, direction);
            let (lowest, highest) = matrix.keys().fold((0, 0), |(low, high), t| (low.min(*t), high.max(*t)));
            let count = (highest - lowest) / unit + 1;
            let steps = steps(count as usize, hoisted, mixes);
            let shift = -lowest + if mixes { ((steps.1 - 1) * steps.0) as i64 * unit } else { 0 };
            pending += shift;
            let turned = |(t, mut d): (i64, Vec<Column>)| {
                let by = pending.rem_euclid(d.len() as i64) as usize;
                d.rotate_left(by);
                ((t + shift) / unit, d)
            };
            let matrix: Matrix = matrix.into_iter().map(turned).collect();
            let (plain, swapped) = if mixes { mixed(slots, &matrix, direction) } else { (matrix, Matrix::new()) };
            stages.push(Stage { unit, steps, plain, swapped });
        }
        Self { stages, pending }
    }
}

/// (babies of one decomposition, decompositions) with the fewest turns for `count` diagonals of one input or two.
fn steps(count: usize, hoisted: usize, mixes: bool) -> (usize, usize) {
    let turns = |roots: &usize| {
        let (inputs, shift) = if mixes { (2, (roots - 1) * hoisted) } else { (1, 0) };
        inputs * roots - 1 + (count + shift).div_ceil(hoisted * roots) - 1
    };
    // Of equals the one with more roots: they need no division of c_0, and fewer sums are stored.
    (hoisted, (1..=count.div_ceil(hoisted)).rev().min_by_key(turns).unwrap_or(1))
}

/// The diagonals of both inputs of a stage that mixes rows.
fn mixed(slots: &Slots, matrix: &Matrix, direction: Direction) -> (Matrix, Matrix) {
    let (one, half) = ([1, 1], slots.half());
    let unit = slots.imaginary_unit();
    let each = |by: Column, swap: bool| -> Matrix {
        let entry = |d: &Column| slots.mul(if swap { [d[1], d[0]] } else { *d }, by);
        matrix.iter().map(|(t, d)| (*t, d.iter().map(entry).collect())).collect()
    };
    match direction {
        // Before the stage: x_0 + ι·x_1 in row 0, x_0 − ι·x_1 in row 1.
        Direction::SlotsToCoefficients => (each([one[0], unit[1]], false), each([unit[0], one[1]], false)),
        // After it: (w_0 + w_1)/2 in row 0, (w_0 − w_1)/2ι in row 1.
        Direction::CoefficientsToSlots => {
            let m = slots.modulus();
            let over = m.mul(half, unit[1]);
            (each([half, m.neg(over)], false), each([half, over], true))
        }
    }
}

/// The product of some layers in the order of a direction: offsets are modulo the columns where the largest block is the
/// whole row, and lie on both sides of 0 otherwise.
fn product(slots: &Slots, layers: RangeInclusive<u32>, direction: Direction) -> Matrix {
    let points = slots.points();
    let wraps = 1usize << layers.end() == points;
    let one: Matrix = BTreeMap::from([(0, vec![[1, 1]])]);
    let apply = |matrix: Matrix, k: u32| {
        let product = multiply(slots, &layer(slots, k, direction), &matrix);
        if wraps { wrapped(slots, product) } else { product }
    };
    match direction {
        Direction::SlotsToCoefficients => layers.fold(one, apply),
        Direction::CoefficientsToSlots => layers.rev().fold(one, apply),
    }
}

/// The layer that joins halves of blocks of 2^k: (u, v) ↦ (u + w·v, u − w·v), or its inverse.
fn layer(slots: &Slots, k: u32, direction: Direction) -> Matrix {
    let size = 1i64 << (k - 1);
    let twiddles = slots.twiddles(k);
    let halves = |first: &dyn Fn(usize) -> Column, second: &dyn Fn(usize) -> Column| -> Vec<Column> {
        let half = twiddles.len();
        (0..half).map(first).chain((0..half).map(second)).collect()
    };
    let half = slots.half();
    let (zero, one, halved) = (|_| [0, 0], |_| [1, 1], |_| [half, half]);
    let (middle, right, left) = match direction {
        Direction::SlotsToCoefficients => {
            (halves(&one, &|j| slots.neg(twiddles[j])), halves(&|j| twiddles[j], &zero), halves(&zero, &one))
        }
        Direction::CoefficientsToSlots => {
            let inverse = |j: usize| slots.mul([twiddles[j][1], twiddles[j][0]], [half, half]);
            (halves(&halved, &|j| slots.neg(inverse(j))), halves(&halved, &zero), halves(&zero, &inverse))
        }
    };
    BTreeMap::from([(-size, left), (0, middle), (size, right)])
}

/// A·B: Σ a_s ⊙ Rot_s(b_t) at s + t.
fn multiply(slots: &Slots, a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = Matrix::new();
    for (s, x) in a {
        for (t, y) in b {
            let length = x.len().max(y.len());
            let from = s.rem_euclid(y.len() as i64) as usize;
            let term = (0..length).map(|i| slots.mul(x[i % x.len()], y[(i + from) % y.len()])).collect();
            add(slots, &mut out, s + t, term);
        }
    }
    out.retain(|_, d| d.iter().any(|x| *x != [0, 0]));
    out
}

fn wrapped(slots: &Slots, matrix: Matrix) -> Matrix {
    let mut out = Matrix::new();
    for (t, diagonal) in matrix {
        add(slots, &mut out, t.rem_euclid(slots.points() as i64), diagonal);
    }
    out
}

fn add(slots: &Slots, matrix: &mut Matrix, offset: i64, term: Vec<Column>) {
    let sum = match matrix.get(&offset) {
        None => term,
        Some(sum) => {
            let length = sum.len().max(term.len());
            (0..length).map(|i| slots.add(sum[i % sum.len()], term[i % term.len()])).collect()
        }
    };
    matrix.insert(offset, sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntegerParams;
    use crate::plan::EXACT;
    use crate::{Encoder, Packing, Wrap};
    use sudare_rlwe::params::ParamsLiteral;
    use sudare_rlwe::security::{SecretDistribution, Security};
    use sudare_testkit::Random;

    fn params(log_n: u32, t: u64) -> IntegerParams {
        let literal = ParamsLiteral {
            log_n,
            q_bits: vec![45, 45],
            p_bits: vec![],
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        };
        IntegerParams::new(&literal.build(EXACT).unwrap(), t).unwrap()
    }

    /// The plain map of a stage.
    fn apply(slots: &Slots, stage: &Stage, x: &[Column]) -> Vec<Column> {
        let n = x.len() as i64;
        let swapped: Vec<Column> = x.iter().map(|c| [c[1], c[0]]).collect();
        let term = |x: &[Column], i: i64, t: i64, d: &[Column]| {
            slots.mul(d[i as usize % d.len()], x[(i + t * stage.unit).rem_euclid(n) as usize])
        };
        let one = |i: i64| {
            let plain = stage.plain.iter().map(|(t, d)| term(x, i, *t, d));
            let both = plain.chain(stage.swapped.iter().map(|(t, d)| term(&swapped, i, *t, d)));
            both.fold([0, 0], |acc, x| slots.add(acc, x))
        };
        (0..n).map(one).collect()
    }

    fn columns(random: &mut Random, m: u64, points: usize) -> Vec<Column> {
        (0..points).map(|_| [random.below(m), random.below(m)]).collect()
    }

    #[test]
    fn slots_to_coefficients_and_back() {
        let params = params(9, 12289);
        for slots in [Slots::modulo_t(&params).unwrap(), Slots::modulo_square(&params).unwrap()] {
            let points = slots.points();
            let x = columns(&mut Random(1), slots.modulus().value(), points);
            for (cut, hoisted) in [(&[8u32][..], 4), (&[4, 4], 4), (&[3, 3, 2], 2), (&[2, 3, 3], 3)] {
                let stc = Transform::new(&slots, cut, Direction::SlotsToCoefficients, hoisted, 0);
                let mid = stc.stages.iter().fold(x.clone(), |x, stage| apply(&slots, stage, &x));
                let mut aligned = mid.clone();
                aligned.rotate_right(stc.pending.rem_euclid(points as i64) as usize);
                // Coefficient i and i + N/2 are both rows of column i, bits reversed.
                let coefficients = slots.coefficients(&aligned);
                for (i, column) in x.iter().enumerate() {
                    let at = i.reverse_bits() >> (usize::BITS - points.trailing_zeros());
                    let found = [at, at + points].map(|k| slots.modulus().reduce_i64(coefficients[k]));
                    assert_eq!(found, *column);
                }
                let back = cut.iter().rev().copied().collect::<Vec<_>>();
                let cts = Transform::new(&slots, &back, Direction::CoefficientsToSlots, hoisted, stc.pending);
                let mut end = cts.stages.iter().fold(mid, |x, stage| apply(&slots, stage, &x));
                end.rotate_right(cts.pending.rem_euclid(points as i64) as usize);
                assert_eq!(end, x, "{cut:?}");
            }
        }
    }

    /// The slots here are those of the encoder.
    #[test]
    fn vectors_are_the_encoders() {
        let params = params(9, 12289);
        let slots = Slots::modulo_t(&params).unwrap();
        for p in [1, 2, 16, 256] {
            let x = columns(&mut Random(p as u64), params.t(), p);
            let all: Vec<u64> = [0, 1].iter().flat_map(|row| x.iter().cycle().take(256).map(|c| c[*row])).collect();
            let encoder = Encoder::new(&params);
            let wanted = encoder.encode_unsigned(&all, Packing::Slots, Wrap::Refuse).unwrap();
            let found = slots.coefficients(&x);
            let stride = params.degree() / (2 * p);
            for (i, c) in wanted.coefficients().iter().enumerate() {
                let here = if i % stride == 0 { params.modulus().reduce_i64(found[i / stride]) } else { 0 };
                assert_eq!(*c, here, "period {p}, coefficient {i}");
            }
        }
    }

    /// Modulo t the slots modulo t² are those modulo t.
    #[test]
    fn roots_modulo_the_square() {
        let params = params(9, 12289);
        let [low, high] = [Slots::modulo_t(&params).unwrap(), Slots::modulo_square(&params).unwrap()];
        let m = high.modulus();
        for k in 1..=8 {
            for (a, b) in low.twiddles(k).iter().zip(high.twiddles(k)) {
                assert_eq!(b.map(|x| x % params.t()), *a);
                assert_eq!(m.mul(b[0], b[1]), 1);
            }
        }
    }
}
