//! What a kernel family does, with the range of everything that it takes and gives.
//!
//! A family is three things: [`Kernels`], which [`super::platform`] makes where the processor has the
//! features; [`WordKernels`] for work without a modulus; and [`LimbKernels`], made once for each prime.
//! `docs/design/0014-kernel-contract.md` says how a family is added.
//!
//! `q` is the limb's prime, N the degree, "residues" are words in `[0, q)`. All that leaves a kernel is
//! the one exact result that the ranges allow, so families agree bit for bit; only the special FFT and the
//! negacyclic Fourier transform work in floating point and agree to an error (see [`crate::embedding`],
//! [`crate::fourier`]).
//!
//! Shapes are checked in front of these methods, by [`super::Limb`] and the public functions: slices of
//! one call have one length, a multiple of 8, unless a method says otherwise. A kernel given other
//! shapes may panic or leave words as they were; that it may not read or write elsewhere is the business
//! of its own code, since every method is safe.

use super::Ahead;
use super::external::{MonomialTable, PackedMatrix};
use super::fourier::{FourierMatrix, FourierTables};
use super::gadget::Gadget;
use super::generic::additive::subtract_once;
use super::generic::fourier::Pairs;
use super::generic::{digits, fourier, random, special_fft, words};
use super::permute::BlockPermutation;
use super::special_fft::SpecialFft;
use crate::modulus::{Modulus, Shoup};
use crate::packed::PackedBlocks;
use std::fmt::Debug;

/// A family on a processor that has what it needs: existing is the proof.
pub(crate) trait Kernels: Debug + Send + Sync {
    /// Whether the family has kernels for this prime.
    fn serves(&self, q: &Modulus) -> bool;

    /// The kernels of a prime that the family serves, for degree `n` and the primitive 2N-th root
    /// `root`.
    fn limb(&self, q: &Modulus, n: usize, root: u64) -> Box<dyn LimbKernels>;

    /// The kernels without a modulus.
    fn words(&self) -> &dyn WordKernels;
}

/// A matrix operand, row-major: its words and the distance between the starts of its rows.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub words: &'a [u64],
    pub stride: usize,
}

/// A matrix to be written, row-major.
pub(crate) struct RowsMut<'a> {
    pub words: &'a mut [u64],
    pub stride: usize,
}

/// Monomials of an external product: the table, and an exponent for each group.
pub(crate) type Monomials<'a> = (&'a MonomialTable, &'a [usize]);

/// Values of an inverse transform that stand elsewhere than its coefficients will, residues.
#[derive(Clone, Copy)]
pub(crate) enum Values<'a> {
    /// A row.
    Row(&'a [u64]),
    /// `a·b + c`.
    Sum([&'a [u64]; 3]),
}

/// Values, and the kernels that find them.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub kernels: &'a dyn LimbKernels,
    pub values: Values<'a>,
}

impl Source<'_> {
    /// The values from `first` on: what a transform asks for where it begins to work on them, in the nearest cache.
    // Said to be rare, so that a transform without a source keeps its constants in registers.
    #[cold]
    pub(crate) fn fill(&self, first: usize, out: &mut [u64]) {
        let at = first..first + out.len();
        match self.values {
            Values::Row(row) => out.copy_from_slice(&row[at]),
            Values::Sum([a, b, c]) => {
                out.copy_from_slice(&a[at.clone()]);
                self.kernels.mul_assign_add(out, &b[at.clone()], &c[at]);
            }
        }
    }
}

/// Arithmetic modulo one prime.
pub(crate) trait LimbKernels: Debug + Send + Sync {
    /// The prime.
    fn modulus(&self) -> &Modulus;

    /// The degree N.
    fn degree(&self) -> usize;

    // Transforms, in place on N words.

    /// Coefficients to values, residues to residues, in the order of [`crate::order`]; may ask for some of `ahead`
    /// meanwhile and take it off its front.
    fn forward(&self, a: &mut [u64], ahead: &mut Ahead<'_>);

    /// Values to coefficients, residues to residues; `ahead` as for [`LimbKernels::forward`].
    fn inverse(&self, a: &mut [u64], ahead: &mut Ahead<'_>);

    /// [`LimbKernels::inverse`] of values that stand elsewhere, N in each row.
    fn inverse_of(&self, out: &mut [u64], values: Values<'_>);

    /// The first `layers ≤ log2 N` layers of the forward transform, residues to residues, blocks in
    /// coefficient order.
    fn forward_partial(&self, a: &mut [u64], layers: u32);

    /// The inverse of [`LimbKernels::forward_partial`].
    fn inverse_partial(&self, a: &mut [u64], layers: u32);

    // Element by element; residues in and out unless a range is given.

    /// `out = a + b`.
    fn add(&self, out: &mut [u64], a: &[u64], b: &[u64]);

    /// `a += b`.
    fn add_assign(&self, a: &mut [u64], b: &[u64]);

    /// `out = a − b`.
    fn sub(&self, out: &mut [u64], a: &[u64], b: &[u64]);

    /// `a −= b`.
    fn sub_assign(&self, a: &mut [u64], b: &[u64]);

    /// `a = −a`.
    fn neg_assign(&self, a: &mut [u64]);

    /// `out = a · b`.
    fn mul(&self, out: &mut [u64], a: &[u64], b: &[u64]);

    /// `a = a · b`.
    fn mul_assign(&self, a: &mut [u64], b: &[u64]);

    /// `acc = acc + a · b`.
    fn mul_add(&self, acc: &mut [u64], a: &[u64], b: &[u64]);

    /// `a = a · b + c`.
    fn mul_assign_add(&self, a: &mut [u64], b: &[u64], c: &[u64]);

    /// `a = a · w`.
    fn mul_scalar(&self, a: &mut [u64], w: &Shoup);

    /// `acc = acc + a · w`.
    fn mul_scalar_add(&self, acc: &mut [u64], a: &[u64], w: &Shoup);

    /// `a = (a − b) · w`.
    fn sub_mul_scalar(&self, a: &mut [u64], b: &[u64], w: &Shoup);

    /// `out = src mod q`, `src` in `[0, 2^62)`.
    fn reduce(&self, out: &mut [u64], src: &[u64]);

    /// `out = x mod q`, `x` in `(−p/2, p/2]` the representative of `src` in `[0, p)`, `p < 2^61`.
    fn reduce_centered(&self, out: &mut [u64], src: &[u64], p: u64);

    /// `out = src mod q`, any signed words.
    fn reduce_signed(&self, out: &mut [u64], src: &[i64]);

    // Sums of products: residues in and out, one reduction, at most `MAX_TERMS` terms.

    /// `out = Σ_j a_j · b_j`.
    fn dot(&self, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]);

    /// `out[0] = Σ_j a_j · b0_j`, `out[1] = Σ_j a_j · b1_j`.
    fn dot_pair(&self, out: [&mut [u64]; 2], a: &[&[u64]], b0: &[&[u64]], b1: &[&[u64]]);

    /// [`LimbKernels::dot_pair`] with the first pairs of `b`, which are of this limb and begin with the values of
    /// these rows, on top of `start` for `out[0]`; rows of whole blocks, at most as many as `b` has.
    fn dot_pair_packed(&self, out: [&mut [u64]; 2], a: &[&[u64]], b: PackedBlocks<'_>, start: Option<&[u64]>);

    /// `out = Σ_i src_i · w_i`, sources in `[0, 2^bound_bits)`, `bound_bits ≤ 61`, `w_i` residues.
    fn combine(&self, out: &mut [u64], src: &[&[u64]], w: &[u64], bound_bits: u32);

    /// `c (m×n) = a (m×k) · b (k×n)`, on top of `c` if `accumulate`; any positive `m` and `k`, `n` a
    /// multiple of 8, each slice at least as long as its shape and stride say.
    fn gemm(&self, c: RowsMut<'_>, a: Rows<'_>, b: Rows<'_>, shape: (usize, usize, usize), accumulate: bool);

    /// `out_c = Σ_g w_g Σ_r digits_r · m_g[r][c]` over the groups, rows and columns of `m`, which is of
    /// this limb, with `w_g = X^(e_g) − 1` for `monomials` of this limb and 1 without; rows and columns
    /// of N words one after the other, exponents modulo 2N.
    fn external_product(&self, out: &mut [u64], digits: &[u64], m: &PackedMatrix, monomials: Option<Monomials<'_>>);

    // Digits and rotations of one polynomial in coefficient form, residues in and out.

    /// The digits of the first N words to as many rows of `out` as the gadget has levels.
    fn decompose(&self, out: &mut [u64], gadget: Gadget) {
        digits::decompose(self.modulus(), self.degree(), out, gadget);
    }

    /// `a += b`, and the digits of the sum to `out`.
    fn add_decompose(&self, a: &mut [u64], b: &[u64], gadget: Gadget, out: &mut [u64]) {
        digits::add_decompose(self.modulus(), a, b, gadget, out);
    }

    /// `out = (X^steps − 1) · src`, `steps` below 2N.
    fn rotate_minus(&self, out: &mut [u64], src: &[u64], steps: usize) {
        digits::rotate_minus(self.modulus(), out, src, steps);
    }

    /// `out = X^steps · src`, `steps` below 2N.
    fn rotate(&self, out: &mut [u64], src: &[u64], steps: usize) {
        digits::rotate(self.modulus(), out, src, steps);
    }
}

/// Sixteen blocks of ChaCha20 at a time.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) trait ChaChaKernel: Sync {
    /// The key stream of sixteen blocks from the state's counter on, without advancing it.
    fn group(&self, state: &[u32; 16], out: &mut [u8; super::random::GROUP_BYTES]);
}

/// Work without a modulus.
pub(crate) trait WordKernels: Debug + Send + Sync {
    /// `out[i] = src[π(i)]`, any words, N of them.
    fn permute(&self, p: &BlockPermutation, out: &mut [u64], src: &[u64]) {
        p.apply_plain(out, src, |o, x| *o = x);
    }

    /// `out[i] += src[π(i)]` modulo `q < 2^63`, residues.
    fn permute_add(&self, p: &BlockPermutation, q: u64, out: &mut [u64], src: &[u64]) {
        p.apply_plain(out, src, |o, x| {
            *o = subtract_once(*o + x, q);
        });
    }

    /// `v = ⌊Σ_i y_i · r_i⌉` for words `y_i < 2^61` and a sum in `[0, 2^51)`: terms are added in order
    /// without fused operations, so that every family gives the same bits. Any length.
    fn round_quotients(&self, v: &mut [u64], y: &[&[u64]], reciprocal: &[f64]) {
        words::round_quotients(v, y, reciprocal);
    }

    /// `out = src · scale` rounded, ties to even, for products of magnitude below 2^62. Any length.
    fn round_to_i64(&self, out: &mut [i64], src: &[f64], scale: f64) {
        words::round_to_i64(out, src, scale);
    }

    /// `out` = the representative of `src` in (−q/2, q/2] times a factor, for residues of `q < 2^62`: the integer is rounded to a double,
    /// and then the product. Any length.
    fn centered_to_f64(&self, out: &mut [f64], src: &[u64], q: u64, factor: f64) {
        words::centered_to_f64(out, src, q, factor);
    }

    /// `acc −= Σ_r digits_r · row_r` modulo 2^32, rows of `acc.len() > 0` words one after the other.
    fn sub_scaled_rows(&self, acc: &mut [u32], rows: &[u32], digits: &[i32]) {
        words::sub_scaled_rows(acc, rows, digits);
    }

    /// Adds the tensor products of pairs: `Σ_j a_j0·b_j0`, `Σ_j (a_j0·b_j1 + a_j1·b_j0)` and `Σ_j a_j1·b_j1`, for residues of a
    /// prime below 2^31, to sums below 2^63 that stay there: `fold`, the largest multiple of the prime under 2^63, is taken off above. As many pairs of
    /// `a` as of `b`; rows and sums of one length, any.
    fn add_tensors(&self, sums: [&mut [u64]; 3], a: &[[&[u32]; 2]], b: &[[&[u32]; 2]], fold: u64) {
        words::add_tensors(sums, a, b, fold);
    }

    /// Values to coefficients of the canonical embedding, in place on the points of `t`.
    fn fft_inverse(&self, t: &SpecialFft, re: &mut [f64], im: &mut [f64]) {
        special_fft::inverse(Pairs, t, re, im);
    }

    /// The inverse of [`WordKernels::fft_inverse`].
    fn fft_forward(&self, t: &SpecialFft, re: &mut [f64], im: &mut [f64]) {
        special_fft::forward(Pairs, t, re, im);
    }

    // Numbers modulo the tables' prime q in floating point (see [`crate::fourier`]): "centred" are doubles that are whole
    // numbers of magnitude up to q/2 + 1. In place on N words.

    /// Residues to centred numbers.
    fn fourier_from_residues(&self, t: &FourierTables, a: &mut [u64]) {
        fourier::from_residues(Pairs, t, a);
    }

    /// Whole numbers of magnitude up to 2q to residues.
    fn fourier_to_residues(&self, t: &FourierTables, a: &mut [u64]) {
        fourier::to_residues(Pairs, t, a);
    }

    /// `a += b` modulo q, centred in and out.
    fn fourier_add(&self, t: &FourierTables, a: &mut [u64], b: &[u64]) {
        fourier::add(Pairs, t, a, b);
    }

    /// `a += b` modulo q, centred in and out, and the digits of the sum, of magnitude up to B/2, to as many rows of `out` as the
    /// gadget has levels.
    fn fourier_digits(&self, t: &FourierTables, a: &mut [u64], b: Option<&[u64]>, gadget: Gadget, out: &mut [u64]) {
        fourier::digits(Pairs, t, a, b, gadget, out);
    }

    /// Coefficients to values: N real numbers become the real parts of N/2 values and then the imaginary ones.
    fn fourier_forward(&self, t: &FourierTables, a: &mut [u64]) {
        fourier::forward(Pairs, t, a);
    }

    /// Values of sums of products, of magnitude below 2^51·q, to centred numbers.
    fn fourier_inverse(&self, t: &FourierTables, a: &mut [u64]) {
        fourier::inverse(Pairs, t, a);
    }

    /// [`LimbKernels::external_product`] of values of [`WordKernels::fourier_forward`].
    fn fourier_product(
        &self,
        t: &FourierTables,
        out: &mut [u64],
        digits: &[u64],
        m: FourierMatrix<'_>,
        exponents: Option<&[usize]>,
    ) {
        fourier::product(Pairs, t, out, digits, m, exponents);
    }

    /// For each 16-byte draw (words `lo`, `hi`), how many thresholds are above its 126-bit value
    /// `hi mod 2^63 · 2^63 + lo mod 2^63`, negated if bit 63 of `hi` is set. `draws` has two words for
    /// each of `out`; thresholds are `[low, high]`, each below 2^63, and descend. In constant time.
    fn count_thresholds(&self, thresholds: &[[u64; 2]], draws: &[u64], out: &mut [i64]) {
        random::count_thresholds::<8>(thresholds, draws, out);
    }

    /// Sorts a power of two of words below 2^63, by instructions and addresses that depend on their
    /// number alone.
    fn sort(&self, words: &mut [u64]) {
        random::sort(words);
    }

    /// The family's own ChaCha20, where it has one faster than the library's.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    fn chacha(&self) -> Option<&dyn ChaChaKernel> {
        None
    }
}
