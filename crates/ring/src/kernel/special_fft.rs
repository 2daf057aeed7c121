//! The special FFT of the canonical embedding on M = N/2 complex points, split into arrays of
//! real and imaginary parts.
//!
//! Value `j` is the polynomial with coefficients `a_i` at ζ^(5^j), ζ = exp(2πi/4M). In bit-reversed
//! coefficient order, layer `len` joins two halves `u`, `v` of each block of `len` points into
//! `u + w·v` and `u − w·v` with `w_len[j] = exp(2πi·5^j/(4·len))`, `j < len/2`: since
//! 5^(len/2) ≡ 1 + 2·len modulo 4·len, the second half of the block has the opposite sign.
//! The twiddles depend on the place in the block alone.

use crate::buffer::Buffer;

/// Doubles by their bits in aligned memory: a vector that straddles two cache lines costs two accesses.
fn table(numbers: impl ExactSizeIterator<Item = f64>) -> Buffer {
    let mut buffer = Buffer::dirty(numbers.len());
    buffer.iter_mut().zip(numbers).for_each(|(word, x)| *word = x.to_bits());
    buffer
}

/// Real and imaginary parts.
fn parts(roots: &[(f64, f64)]) -> [Buffer; 2] {
    [table(roots.iter().map(|(re, _)| *re)), table(roots.iter().map(|(_, im)| *im))]
}

/// The twiddles of one layer.
#[derive(Clone)]
pub(super) struct Layer {
    /// Real and imaginary parts.
    pub roots: [Buffer; 2],
    /// Cubes of the first half, for layers that a radix-4 pass joins with the one below.
    pub cubes: [Buffer; 2],
}

impl Layer {
    fn new(k: u32) -> Self {
        let order = 4usize << k;
        let powers: Vec<usize> = std::iter::successors(Some(1), |p| Some(p * 5 % order)).take((1 << k) / 2).collect();
        let cubes = if is_radix4(k) { powers.len() / 2 } else { 0 };
        let roots: Vec<_> = powers.iter().map(|p| unit_root(*p, k + 2)).collect();
        let cubed: Vec<_> = powers[..cubes].iter().map(|p| unit_root(3 * p % order, k + 2)).collect();
        Self { roots: parts(&roots), cubes: parts(&cubed) }
    }
}

/// The twiddles of a transform.
#[derive(Clone)]
pub struct SpecialFft {
    pub(super) points: usize,
    /// Entry `k` belongs to `len = 2^k`.
    pub(super) layers: Vec<Layer>,
}

/// cos and sin of 2πk / 2^bits, `bits ≥ 3`: the angle is reduced to [0, π/4] as an integer, so
/// that both are right to an ulp or so whatever `k`.
fn unit_root(k: usize, bits: u32) -> (f64, f64) {
    let eighth = 1usize << (bits - 3);
    let (octant, rest) = ((k >> (bits - 3)) & 7, k & (eighth - 1));
    // Odd octants are measured backwards from their end.
    let steps = if octant % 2 == 0 { rest } else { eighth - rest };
    let (sin, cos) = (steps as f64 * std::f64::consts::FRAC_PI_4 / eighth as f64).sin_cos();
    match octant {
        0 => (cos, sin),
        1 => (sin, cos),
        2 => (-sin, cos),
        3 => (-cos, sin),
        4 => (-cos, -sin),
        5 => (-sin, -cos),
        6 => (sin, -cos),
        _ => (cos, -sin),
    }
}

/// Whether a pass joins layer `2^k` with the layer below. Three layers are left for
/// registers, and the largest stands alone if their number is odd.
pub(super) const fn is_radix4(k: u32) -> bool {
    k >= 5 && k % 2 == 1
}

impl std::fmt::Debug for SpecialFft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpecialFft").field("points", &self.points).finish_non_exhaustive()
    }
}

impl SpecialFft {
    /// For a power of two of points, at least 64.
    pub fn new(points: usize) -> Self {
        Self { points, layers: (0..=points.trailing_zeros()).map(Layer::new).collect() }
    }

    /// Number of points M.
    pub const fn points(&self) -> usize {
        self.points
    }
}
