//! Tables of the negacyclic Fourier transform: see [`crate::fourier`].

use crate::modulus::Modulus;
use crate::order::bit_reverse;
use std::f64::consts::PI;

/// Points whose layers are done in registers: eight blocks of eight.
pub(crate) const UNIT: usize = 64;

/// Eight doubles by their bits, as kernels read them.
pub(crate) type Eight = [u64; 8];

/// A root of unity as its cosine and its tangent, so that a butterfly is six fused operations: `u ± c·(v·(1 + i·t))`.
///
/// A cosine of zero is a rounding error instead, and its tangent the quotient of one by it: products with both
/// are as exact as for any other root.
fn cos_tan(angle: f64) -> [f64; 2] {
    let (sin, cos) = angle.sin_cos();
    [cos, sin / cos]
}

/// Eight roots, cosines and tangents apart.
fn eight(angles: impl Fn(usize) -> f64) -> [Eight; 2] {
    let roots: [[f64; 2]; 8] = std::array::from_fn(|l| cos_tan(angles(l)));
    [0, 1].map(|k| roots.map(|root| root[k].to_bits()))
}

/// Roots and orders for polynomials of N real coefficients modulo X^N + 1, as h = N/2 complex numbers
/// `a_j + i·a_(j+h)`: their ring is C\[X\]/(X^h − i), and place p of a transform is the value at `ζ^E(p)`,
/// ζ = e^(iπ/N).
///
/// Forward, the tree of `X^m − w² = (X^(m/2) − w)·(X^(m/2) + w)`, whose roots belong to blocks. Inverse,
/// the transform of size h from reversed order, whose roots belong to places within blocks, and ζ^(−j)/h at the end. The last three
/// layers forward, and the first three inverse, are done on eight blocks of eight in registers, transposed, and
/// places stay in that order.
#[derive(Debug)]
pub(crate) struct FourierTables {
    /// The prime that coefficients are residues of.
    pub q: Modulus,
    /// N.
    pub n: usize,
    /// Cosine and tangent of w for each block of each depth, to blocks of 16 points.
    pub forward: Vec<Vec<[f64; 2]>>,
    /// For each unit, of its eight blocks: w of the block, of its first half, and of its first and third quarters.
    pub ends: Vec<[[Eight; 2]; 4]>,
    /// For blocks of 2^k·16 points: e^(−iπj/(2^k·8)) for j below half of the block.
    pub inverse: Vec<Vec<[Eight; 2]>>,
    /// cos and −sin of ζ^j, over h.
    pub untwist: Vec<[Eight; 2]>,
    /// ζ^k, k below 2N.
    powers: Vec<[f64; 2]>,
    /// E at the first place of each eight.
    vectors: Vec<u32>,
    /// How much further E is at the lanes of an eight.
    lanes: [usize; 8],
}

impl FourierTables {
    /// For degree `n`, a power of two from 128 on, and residues of `q` below 2^50.
    pub(crate) fn new(q: &Modulus, n: usize) -> Self {
        let h = n / 2;
        let depth = h.trailing_zeros();
        // The angle of w of block b at a depth: half of that of its modulus, π/2 / 2^d · (1 + 4·reversed(b)).
        let angle = |d: u32, b: usize| PI / 4.0 / f64::from(1u32 << d) * (1 + 4 * bit_reverse(b, d)) as f64;
        let forward = (0..depth - 3).map(|d| (0..1 << d).map(|b| cos_tan(angle(d, b))).collect()).collect();
        let unit = |u: usize| {
            [(0, 1, 0), (1, 2, 0), (2, 4, 0), (2, 4, 2)]
                .map(|(below, blocks, part)| eight(|l| angle(depth - 3 + below, (8 * u + l) * blocks + part)))
        };
        let layer = |k: u32| {
            let half = 8usize << k;
            (0..half / 8).map(|v| eight(|l| -PI * (8 * v + l) as f64 / half as f64)).collect()
        };
        let turn = |j: usize| (PI * j as f64 / n as f64).sin_cos();
        let untwist = |v: usize| {
            let parts: [(f64, f64); 8] = std::array::from_fn(|l| turn(8 * v + l));
            [parts.map(|(_, cos)| (cos / h as f64).to_bits()), parts.map(|(sin, _)| (-sin / h as f64).to_bits())]
        };
        // Place 64u + 8e + l holds leaf 64u + 8l + e of the tree.
        let exponent = |p: usize| 4 * bit_reverse(p & !63 | (p & 7) << 3 | p >> 3 & 7, depth) + 1;
        Self {
            q: *q,
            n,
            forward,
            ends: (0..h / UNIT).map(unit).collect(),
            inverse: (0..depth - 3).map(layer).collect(),
            untwist: (0..h / 8).map(untwist).collect(),
            powers: (0..2 * n).map(turn).map(|(sin, cos)| [cos, sin]).collect(),
            vectors: (0..h / 8).map(|v| exponent(8 * v) as u32).collect(),
            lanes: std::array::from_fn(|l| exponent(l) - exponent(0)),
        }
    }

    /// X^e at the first place of eight `v`.
    #[inline(always)]
    pub(crate) fn power(&self, e: usize, v: usize) -> [f64; 2] {
        self.powers[e.wrapping_mul(self.vectors[v] as usize) & (self.powers.len() - 1)]
    }

    /// What X^e is at the lanes of an eight over its first: cosines and sines.
    #[inline(always)]
    pub(crate) fn turns(&self, e: usize) -> [Eight; 2] {
        let turns = self.lanes.map(|lane| self.powers[e.wrapping_mul(lane) & (self.powers.len() - 1)]);
        [0, 1].map(|k| turns.map(|turn| turn[k].to_bits()))
    }
}

/// A matrix of polynomials as a kernel reads it: for each eight places, group after group, row after row, column
/// after column, eight real and eight imaginary parts.
#[derive(Clone, Copy)]
pub(crate) struct FourierMatrix<'a> {
    pub groups: usize,
    pub rows: usize,
    pub columns: usize,
    pub values: &'a [[Eight; 2]],
}
