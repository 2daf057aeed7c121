//! Butterfly layers as matrices of three diagonals, and their products.

use super::Direction;
use num_complex::Complex64;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// One period of a diagonal.
pub(super) type Diagonal = Vec<Complex64>;

/// A matrix by the offsets of its diagonals, in slots: entry i of diagonal t stands at (i, i + t).
pub(super) type Matrix = BTreeMap<i64, Diagonal>;

/// The product of some layers in the order of a direction: offsets are modulo `points` where the
/// largest block is the whole vector, and lie on both sides of 0 otherwise.
pub(super) fn product(points: usize, layers: RangeInclusive<u32>, direction: Direction) -> Matrix {
    let wraps = 1usize << layers.end() == points;
    let one: Matrix = BTreeMap::from([(0, vec![Complex64::ONE])]);
    let apply = |matrix: Matrix, k: u32| {
        let product = multiply(&layer(k, direction), &matrix);
        if wraps { wrapped(product, points as i64) } else { product }
    };
    match direction {
        Direction::SlotsToCoefficients => layers.fold(one, apply),
        Direction::CoefficientsToSlots => layers.rev().fold(one, apply),
    }
}

/// The layer that joins halves of blocks of 2^k: (u, v) ↦ (u + w·v, u − w·v), or its inverse.
fn layer(k: u32, direction: Direction) -> Matrix {
    let half = 1usize << (k - 1);
    let order = 4usize << k;
    // w_j = exp(2πi·5^j / (4·2^k)).
    let powers = std::iter::successors(Some(1usize), |p| Some(p * 5 % order));
    let twiddles: Vec<Complex64> =
        powers.take(half).map(|p| Complex64::cis(std::f64::consts::TAU * p as f64 / order as f64)).collect();
    let halves = |first: &dyn Fn(usize) -> Complex64, second: &dyn Fn(usize) -> Complex64| -> Diagonal {
        (0..half).map(first).chain((0..half).map(second)).collect()
    };
    let (zero, one) = (|_| Complex64::ZERO, |_| Complex64::ONE);
    let (middle, right, left) = match direction {
        Direction::SlotsToCoefficients => {
            (halves(&one, &|j| -twiddles[j]), halves(&|j| twiddles[j], &zero), halves(&zero, &one))
        }
        Direction::CoefficientsToSlots => {
            let inverse = |j: usize| twiddles[j].conj() * 0.5;
            let half = |_| Complex64::new(0.5, 0.0);
            (halves(&half, &|j| -inverse(j)), halves(&half, &zero), halves(&zero, &inverse))
        }
    };
    BTreeMap::from([(-(half as i64), left), (0, middle), (half as i64, right)])
}

/// A·B: Σ a_s ⊙ Rot_s(b_t) at s + t.
fn multiply(a: &Matrix, b: &Matrix) -> Matrix {
    let mut out = Matrix::new();
    for (s, x) in a {
        for (t, y) in b {
            let length = x.len().max(y.len());
            let entry = |i: usize| x[i % x.len()] * y[(i as i64 + s).rem_euclid(y.len() as i64) as usize];
            let term: Diagonal = (0..length).map(entry).collect();
            add(&mut out, s + t, term);
        }
    }
    out.retain(|_, d| d.iter().any(|x| *x != Complex64::ZERO));
    out
}

fn wrapped(matrix: Matrix, points: i64) -> Matrix {
    let mut out = Matrix::new();
    for (t, diagonal) in matrix {
        add(&mut out, t.rem_euclid(points), diagonal);
    }
    out
}

fn add(matrix: &mut Matrix, offset: i64, term: Diagonal) {
    match matrix.get_mut(&offset) {
        None => {
            matrix.insert(offset, term);
        }
        Some(sum) => {
            let length = sum.len().max(term.len());
            *sum = (0..length).map(|i| sum[i % sum.len()] + term[i % term.len()]).collect();
        }
    }
}
