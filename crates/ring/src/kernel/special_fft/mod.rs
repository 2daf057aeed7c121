//! The special FFT of the canonical embedding on M = N/2 complex points, split into arrays of
//! real and imaginary parts.
//!
//! Value `j` is the polynomial with coefficients `a_i` at ζ^(5^j), ζ = exp(2πi/4M). In bit-reversed
//! coefficient order, layer `len` joins two halves `u`, `v` of each block of `len` points into
//! `u + w·v` and `u − w·v` with `w_len[j] = exp(2πi·5^j/(4·len))`, `j < len/2`: since
//! 5^(len/2) ≡ 1 + 2·len modulo 4·len, the second half of the block has the opposite sign.
//! The twiddles depend on the place in the block alone.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

use super::Family;
use crate::buffer::Buffer;
#[cfg(target_arch = "x86_64")]
use zeroize::Zeroize;

/// Numbers in aligned memory: a vector that straddles two cache lines costs two accesses.
#[derive(Clone)]
struct Table(Buffer);

impl Table {
    fn new(numbers: impl ExactSizeIterator<Item = f64>) -> Self {
        let mut buffer = Buffer::dirty(numbers.len());
        buffer.iter_mut().zip(numbers).for_each(|(word, x)| *word = x.to_bits());
        Self(buffer)
    }
}

impl std::ops::Deref for Table {
    type Target = [f64];
    #[inline]
    fn deref(&self) -> &[f64] {
        bytemuck::cast_slice(&self.0)
    }
}

/// The twiddles of one layer.
#[derive(Clone)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
struct Layer {
    re: Table,
    im: Table,
    /// Cubes of the first half, for layers that a radix-4 pass joins with the one below.
    cube_re: Table,
    cube_im: Table,
}

impl Layer {
    fn new(k: u32, with_cubes: bool) -> Self {
        let order = 4usize << k;
        let powers: Vec<usize> = std::iter::successors(Some(1), |p| Some(p * 5 % order)).take((1 << k) / 2).collect();
        let cubes = if with_cubes { powers.len() / 2 } else { 0 };
        let roots: Vec<_> = powers.iter().map(|p| unit_root(*p, k + 2)).collect();
        let cubed: Vec<_> = powers[..cubes].iter().map(|p| unit_root(3 * p % order, k + 2)).collect();
        Self {
            re: Table::new(roots.iter().map(|r| r.0)),
            im: Table::new(roots.iter().map(|r| r.1)),
            cube_re: Table::new(cubed.iter().map(|r| r.0)),
            cube_im: Table::new(cubed.iter().map(|r| r.1)),
        }
    }
}

/// The twiddles of a transform and the code that runs it.
#[derive(Clone)]
pub struct SpecialFft {
    points: usize,
    /// Entry `k` belongs to `len = 2^k`.
    layers: Vec<Layer>,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    vector: bool,
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

/// Runs a transform on aligned memory: copying costs less than lines that straddle.
#[cfg(target_arch = "x86_64")]
fn through_aligned(re: &mut [f64], im: &mut [f64], transform: impl Fn(&mut [f64], &mut [f64])) {
    /// Words between the parts, so that they fall into different cache sets.
    const GAP: usize = 64;
    let aligned = |x: &[f64]| x.as_ptr().addr().is_multiple_of(64);
    if aligned(re) && aligned(im) {
        return transform(re, im);
    }
    let mut scratch = Buffer::dirty(2 * re.len() + GAP);
    let (x, y) = bytemuck::cast_slice_mut(&mut scratch).split_at_mut(re.len() + GAP);
    let (x, y) = (&mut x[..re.len()], y);
    x.copy_from_slice(re);
    y.copy_from_slice(im);
    transform(x, y);
    re.copy_from_slice(x);
    im.copy_from_slice(y);
    // The values may be secret, and the buffer is kept for reuse.
    scratch.zeroize();
}

/// Whether a vector pass joins layer `2^k` with the layer below. Three layers are left for
/// registers, and the largest stands alone if their number is odd.
const fn is_radix4(k: u32) -> bool {
    k >= 5 && k % 2 == 1
}

impl std::fmt::Debug for SpecialFft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpecialFft").field("points", &self.points).field("vector", &self.vector).finish_non_exhaustive()
    }
}

impl SpecialFft {
    /// For a power of two of points, at least 64; with `vector`, by AVX-512, which the caller
    /// has detected.
    pub fn new(points: usize, vector: bool) -> Self {
        let layers = (0..=points.trailing_zeros()).map(|k| Layer::new(k, vector && is_radix4(k))).collect();
        Self { points, layers, vector }
    }

    /// Number of points M.
    pub const fn points(&self) -> usize {
        self.points
    }

    /// Values to coefficients, in place; both arrays have M numbers.
    pub fn inverse(&self, re: &mut [f64], im: &mut [f64]) {
        #[cfg(target_arch = "x86_64")]
        if self.vector {
            // SAFETY: whoever built the transform with `vector` found AVX-512 F.
            through_aligned(re, im, |re, im| unsafe { avx512::inverse(self, re, im) });
            return;
        }
        portable::inverse(self, re, im);
    }

    /// Coefficients to values, in place; both arrays have M numbers.
    pub fn forward(&self, re: &mut [f64], im: &mut [f64]) {
        #[cfg(target_arch = "x86_64")]
        if self.vector {
            // SAFETY: whoever built the transform with `vector` found AVX-512 F.
            through_aligned(re, im, |re, im| unsafe { avx512::forward(self, re, im) });
            return;
        }
        portable::forward(self, re, im);
    }
}

/// `out = round(src · scale)`, ties to even, for |src · scale| < 2^62; the same on every family.
/// What a product beyond that or a non-finite one gives is unspecified, so bound the source
/// first. [`crate::Limb::from_i64`] takes the result into a limb.
///
/// # Panics
/// If the slices differ in length.
pub fn round_to_i64(out: &mut [i64], src: &[f64], scale: f64) {
    assert_eq!(out.len(), src.len());
    let vector = Family::choose_unbounded().is_ok_and(|f| f != Family::Portable);
    round_with(out, src, scale, vector);
}

/// `out = round(src · scale)`, ties to even; with `vector`, by AVX-512 DQ, which the caller has
/// detected. Both give the same for |src · scale| < 2^62.
fn round_with(out: &mut [i64], src: &[f64], scale: f64, vector: bool) {
    #[cfg(target_arch = "x86_64")]
    if vector {
        // SAFETY: the caller has detected the features.
        unsafe { avx512::round_to_i64(out, src, scale) };
        return;
    }
    let _ = vector;
    for (o, x) in out.iter_mut().zip(src) {
        *o = (x * scale).round_ties_even() as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_the_same_on_every_family() {
        let mut src: Vec<f64> = (0..100).map(|i| (f64::from(i) - 50.0) / 2.0).collect();
        src.extend([4.6e18, -4.6e18, 1e-300, -0.0, 0.499_999_999_999_999_94, 4_503_599_627_370_497.5]);
        for scale in [1.0, 0.25, 0.999] {
            let mut plain = vec![0; src.len()];
            round_with(&mut plain, &src, scale, false);
            let mut fast = vec![0; src.len()];
            round_to_i64(&mut fast, &src, scale);
            assert_eq!(plain, fast);
        }
        let mut out = [0; 4];
        round_to_i64(&mut out, &[0.5, 1.5, -2.5, 2.5], 1.0);
        assert_eq!(out, [0, 2, -2, 2]);
    }
}
