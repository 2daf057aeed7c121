//! The arithmetic of one limb: a prime, its transform tables, and the kernel family that
//! serves it.
//!
//! `platform` chooses the family, `contract` says what one does; this file checks shapes in front of
//! it. A limb gets its family when [`Limb::new`] builds the tables, so that the range check and the
//! choice cannot disagree. Every operation states its ranges; `q` is the limb's modulus and all slices
//! of one call have the same length.

mod ahead;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
#[allow(unsafe_code)]
mod arm;
mod contract;
mod external;
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
mod features;
pub(crate) mod fourier;
mod gadget;
mod generic;
mod permute;
mod platform;
mod portable;
pub(crate) mod random;
mod special_fft;
mod words;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86;

use crate::count::{self, What};
use crate::error::RingError;
use crate::memo::Memo;
use crate::modulus::{Modulus, Shoup};
use crate::packed::{BLOCK, PackedBlocks, PackedPairs, Width};
use crate::prime::primitive_root;
pub use ahead::Ahead;
use contract::{Kernels, Rows, RowsMut, Values};
pub(crate) use contract::{LimbKernels, WordKernels};
pub use external::{MAX_COLUMNS, MAX_GROUPS, MonomialTable, PackedMatrix};
pub use gadget::Gadget;
pub(crate) use permute::BlockPermutation;
pub use platform::Family;
pub(crate) use platform::{NAMES, words};
pub(crate) use special_fft::SpecialFft;
pub use words::{add_tensors, round_quotients, round_to_i64, sub_scaled_rows};

/// Smallest ring degree of the transforms.
pub const MIN_DEGREE: usize = 1 << 9;
/// Largest ring degree of the transforms.
pub const MAX_DEGREE: usize = 1 << 17;
/// Primes below this many bits may use the IFMA family.
pub const IFMA_MODULUS_BITS: u32 = 50;
/// Primes up to this many bits are narrow: products of residues fit a double, and a matrix product takes one operation a term.
pub const NARROW_BITS: u32 = 26;
/// Most terms that one [`Limb::dot`] or [`Limb::combine`] accepts.
pub const MAX_TERMS: usize = 4096;

/// One prime of a basis with everything its arithmetic needs.
#[derive(Debug)]
pub struct Limb {
    modulus: Modulus,
    degree: usize,
    root: u64,
    family: Family,
    detected: &'static dyn Kernels,
    kernels: Box<dyn LimbKernels>,
    /// By degree.
    smaller: Memo<usize, Self>,
}

impl Limb {
    /// Tables for prime `q` and degree `n`, with the family that [`Family::choose`] picks.
    ///
    /// # Errors
    /// [`RingError::Degree`], [`RingError::ModulusRange`] or [`RingError::NotNttFriendly`].
    pub fn new(q: u64, n: usize) -> Result<Self, RingError> {
        Self::with_family(q, n, Family::choose(&Modulus::new(q)?))
    }

    /// The same with a given family.
    ///
    /// # Errors
    /// As [`Limb::new`], and [`RingError::KernelUnavailable`] if the family does not serve `q`
    /// on this machine.
    pub fn with_family(q: u64, n: usize, family: Family) -> Result<Self, RingError> {
        if !n.is_power_of_two() || !(MIN_DEGREE..=MAX_DEGREE).contains(&n) {
            return Err(RingError::Degree { degree: n });
        }
        let modulus = Modulus::new(q)?;
        let Some(kernels) = platform::kernels(family).filter(|kernels| kernels.serves(&modulus)) else {
            return Err(RingError::KernelUnavailable { family: family.name(), bits: modulus.bits() });
        };
        let root = primitive_root(&modulus, n).ok_or(RingError::NotNttFriendly { value: q, order: 2 * n as u64 })?;
        Ok(Self::of(modulus, (n, root), family, kernels))
    }

    fn of(modulus: Modulus, (n, root): (usize, u64), family: Family, detected: &'static dyn Kernels) -> Self {
        let kernels = detected.limb(&modulus, n, root);
        Self { modulus, degree: n, root, family, detected, kernels, smaller: Memo::new() }
    }

    /// The limb of a degree n up to N whose root is ψ^(N/n): it transforms a polynomial in X^(N/n) as this one does. Made once.
    ///
    /// # Panics
    /// For no power of two from [`MIN_DEGREE`] to N.
    pub(crate) fn smaller(&self, n: usize) -> &Self {
        assert!(n.is_power_of_two() && (MIN_DEGREE..=self.degree).contains(&n), "a limb of another degree");
        if n == self.degree {
            return self;
        }
        self.smaller.get(&n).unwrap_or_else(|| {
            let root = self.modulus.pow(self.root, (self.degree / n) as u64);
            self.smaller.insert(n, Self::of(self.modulus, (n, root), self.family, self.detected))
        })
    }

    /// The prime.
    #[inline]
    pub const fn modulus(&self) -> &Modulus {
        &self.modulus
    }

    /// The prime's value.
    #[inline]
    pub const fn q(&self) -> u64 {
        self.modulus.value()
    }

    /// The ring degree N.
    #[inline]
    pub const fn degree(&self) -> usize {
        self.degree
    }

    /// The family that serves this limb.
    #[inline]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// The primitive 2N-th root ψ of the transform.
    #[inline]
    pub const fn root(&self) -> u64 {
        self.root
    }

    #[inline]
    pub(crate) fn kernels(&self) -> &dyn LimbKernels {
        &*self.kernels
    }

    fn check(&self, lengths: &[usize]) {
        let first = lengths[0];
        assert!(lengths.iter().all(|l| *l == first) && first.is_multiple_of(8), "kernel operands differ in length");
    }

    /// Forward negacyclic transform in place: coefficients in `[0, q)` to values in `[0, q)`,
    /// in the order of [`crate::order`]. The slice has N words.
    ///
    /// # Panics
    /// If `a` has not N words.
    pub fn forward(&self, a: &mut [u64]) {
        assert_eq!(a.len(), self.degree());
        count::add(What::Transforms, 1);
        self.kernels.forward(a, &mut Ahead::of(&[]));
    }

    /// The inverse of [`Limb::forward`]: values in `[0, q)` to coefficients in `[0, q)`.
    ///
    /// # Panics
    /// If `a` has not N words.
    pub fn inverse(&self, a: &mut [u64]) {
        assert_eq!(a.len(), self.degree());
        count::add(What::Transforms, 1);
        self.kernels.inverse(a, &mut Ahead::of(&[]));
    }

    /// [`Limb::inverse`] of `values`, which stay: without a pass over memory that copies them.
    ///
    /// # Panics
    /// If a slice has not N words.
    pub fn inverse_of(&self, out: &mut [u64], values: &[u64]) {
        assert!(out.len() == self.degree() && values.len() == out.len());
        count::add(What::Transforms, 1);
        self.kernels.inverse_of(out, Values::Row(values));
    }

    /// [`Limb::inverse`] of `a·b + c`, all in `[0, q)`, without a pass over memory between: the last step of a decryption.
    ///
    /// # Panics
    /// If a slice has not N words.
    pub fn inverse_of_sum(&self, out: &mut [u64], a: &[u64], b: &[u64], c: &[u64]) {
        assert!([&*out, a, b, c].iter().all(|row| row.len() == self.degree()));
        count::add(What::Transforms, 1);
        self.kernels.inverse_of(out, Values::Sum([a, b, c]));
    }

    /// The first `layers` layers of [`Limb::forward`]: `2^layers` residues modulo the factors
    /// X^d − ω of X^N + 1, `d = N / 2^layers`, each in coefficient order, in `[0, q)`; ranges as
    /// there. Block `i` is the residue with `ω = ψ^(d·(2·brv(i)+1))`.
    ///
    /// # Panics
    /// If `a` has not N words, or `layers` is over log2 N.
    pub fn forward_partial(&self, a: &mut [u64], layers: u32) {
        assert_eq!(a.len(), self.degree());
        assert!(layers <= self.degree().trailing_zeros());
        self.kernels.forward_partial(a, layers);
    }

    /// The inverse of [`Limb::forward_partial`].
    ///
    /// # Panics
    /// As [`Limb::forward_partial`].
    pub fn inverse_partial(&self, a: &mut [u64], layers: u32) {
        assert_eq!(a.len(), self.degree());
        assert!(layers <= self.degree().trailing_zeros());
        self.kernels.inverse_partial(a, layers);
    }

    /// `out = a + b`, all in `[0, q)`.
    pub fn add(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        self.check(&[out.len(), a.len(), b.len()]);
        self.kernels.add(out, a, b);
    }

    /// `a += b`, all in `[0, q)`.
    pub fn add_assign(&self, a: &mut [u64], b: &[u64]) {
        self.check(&[a.len(), b.len()]);
        self.kernels.add_assign(a, b);
    }

    /// `out = a − b`, all in `[0, q)`.
    pub fn sub(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        self.check(&[out.len(), a.len(), b.len()]);
        self.kernels.sub(out, a, b);
    }

    /// `a −= b`, all in `[0, q)`.
    pub fn sub_assign(&self, a: &mut [u64], b: &[u64]) {
        self.check(&[a.len(), b.len()]);
        self.kernels.sub_assign(a, b);
    }

    /// `a = −a`, in `[0, q)`.
    pub fn neg_assign(&self, a: &mut [u64]) {
        self.check(&[a.len()]);
        self.kernels.neg_assign(a);
    }

    /// `out = a · b` element by element, all in `[0, q)`.
    pub fn mul(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        self.check(&[out.len(), a.len(), b.len()]);
        self.kernels.mul(out, a, b);
    }

    /// `a = a · b` element by element, all in `[0, q)`.
    pub fn mul_assign(&self, a: &mut [u64], b: &[u64]) {
        self.check(&[a.len(), b.len()]);
        self.kernels.mul_assign(a, b);
    }

    /// `acc = acc + a · b` element by element, with one reduction; all in `[0, q)`.
    pub fn mul_add(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
        self.check(&[acc.len(), a.len(), b.len()]);
        self.kernels.mul_add(acc, a, b);
    }

    /// `a = a · b + c` element by element, with one reduction; all in `[0, q)` (`004`, section 4.1).
    pub fn mul_assign_add(&self, a: &mut [u64], b: &[u64], c: &[u64]) {
        self.check(&[a.len(), b.len(), c.len()]);
        self.kernels.mul_assign_add(a, b, c);
    }

    /// `a = a · w` for a constant `w`; `a` in `[0, q)`.
    pub fn mul_scalar(&self, a: &mut [u64], w: &Shoup) {
        self.check(&[a.len()]);
        self.kernels.mul_scalar(a, w);
    }

    /// `acc = acc + a · w` for a constant `w`; all in `[0, q)`.
    pub fn mul_scalar_add(&self, acc: &mut [u64], a: &[u64], w: &Shoup) {
        self.check(&[acc.len(), a.len()]);
        self.kernels.mul_scalar_add(acc, a, w);
    }

    /// `a = (a − b) · w` for a constant `w`; all in `[0, q)`. The last step of a rescale or a
    /// mod-down.
    pub fn sub_mul_scalar(&self, a: &mut [u64], b: &[u64], w: &Shoup) {
        self.check(&[a.len(), b.len()]);
        self.kernels.sub_mul_scalar(a, b, w);
    }

    /// `out = src mod q`, for words `src` in `[0, 2^62)`.
    pub fn reduce(&self, out: &mut [u64], src: &[u64]) {
        self.check(&[out.len(), src.len()]);
        self.kernels.reduce(out, src);
    }

    /// `out = [x]` mod q where `x` is the representative in `(−p/2, p/2]` of `src` in `[0, p)`,
    /// for any modulus `p < 2^61`: the centred lift that a rescale by `p` needs.
    pub fn reduce_centered(&self, out: &mut [u64], src: &[u64], p: u64) {
        self.check(&[out.len(), src.len()]);
        self.kernels.reduce_centered(out, src, p);
    }

    /// `out = src mod q`, for any signed words.
    pub fn from_i64(&self, out: &mut [u64], src: &[i64]) {
        self.check(&[out.len(), src.len()]);
        self.kernels.reduce_signed(out, src);
    }

    /// `out = Σ_j a_j · b_j` element by element, one reduction for all terms; all in `[0, q)`,
    /// at most [`MAX_TERMS`] terms.
    ///
    /// # Panics
    /// If slices differ in length or have not a multiple of 8 words, or `a` and `b` have not equally many rows, at most
    /// [`MAX_TERMS`].
    pub fn dot(&self, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
        assert!(a.len() == b.len() && a.len() <= MAX_TERMS);
        a.iter().chain(b).for_each(|x| assert_eq!(x.len(), out.len()));
        self.check(&[out.len()]);
        self.kernels.dot(out, a, b);
    }

    /// Two inner products that share a factor: `out0 = Σ_j a_j · b0_j`, `out1 = Σ_j a_j · b1_j`;
    /// ranges as for [`Limb::dot`]. The inner loop of key switching.
    ///
    /// # Panics
    /// As [`Limb::dot`].
    pub fn dot_pair(&self, out: [&mut [u64]; 2], a: &[&[u64]], b0: &[&[u64]], b1: &[&[u64]]) {
        assert!(a.len() == b0.len() && a.len() == b1.len() && a.len() <= MAX_TERMS);
        self.check(&[out[0].len(), out[1].len()]);
        a.iter().chain(b0).chain(b1).for_each(|x| assert_eq!(x.len(), out[0].len()));
        self.kernels.dot_pair(out, a, b0, b1);
    }

    /// [`Limb::dot_pair`] with packed second factors: `out0 = start + Σ_j a_j · b_j0` and
    /// `out1 = Σ_j a_j · b_j1` over the first `a.len()` pairs of `b`; all rows in `[0, q)`, a
    /// missing `start` is zero.
    ///
    /// # Panics
    /// If rows differ in length, there are fewer pairs than rows or more than [`MAX_TERMS`], or the
    /// pairs were packed for a prime of another width or degree.
    pub fn dot_pair_packed(&self, out: [&mut [u64]; 2], a: &[&[u64]], b: &PackedPairs, start: Option<&[u64]>) {
        assert!(a.len() <= b.terms() && a.len() <= MAX_TERMS, "more rows than pairs");
        let n = self.degree();
        assert!(b.degree() == n && b.width() == Width::of_bits(self.modulus.bits()), "pairs of another limb");
        assert!(out.iter().all(|x| x.len() == n) && a.iter().chain(&start).all(|x| x.len() == n));
        count::add(What::KeyBytes, 2 * n * a.len() * b.width().bytes());
        self.kernels.dot_pair_packed(out, a, b.from(0), start);
    }

    /// [`Limb::dot_pair_packed`] with part of this limb's pairs: those of as many values as each row has, whole blocks.
    pub(crate) fn dot_part_packed(
        &self,
        out: [&mut [u64]; 2],
        a: &[&[u64]],
        b: PackedBlocks<'_>,
        start: Option<&[u64]>,
    ) {
        assert!(b.width() == Width::of_bits(self.modulus.bits()) && a.len() <= b.terms().min(MAX_TERMS));
        let len = out[0].len();
        assert!(len.is_multiple_of(BLOCK) && len <= b.values() && out[1].len() == len);
        assert!(a.iter().chain(&start).all(|x| x.len() == len));
        count::add(What::KeyBytes, 2 * len * a.len() * b.width().bytes());
        self.kernels.dot_pair_packed(out, a, b, start);
    }

    /// `out = Σ_i src_i · w_i` for constants `w_i` in `[0, q)` and sources in `[0, 2^bound_bits)`,
    /// `bound_bits ≤ 61`: the sources may belong to other, larger moduli. Result in `[0, q)`; at
    /// most [`MAX_TERMS`] terms. The inner loop of a basis conversion.
    ///
    /// # Panics
    /// If slices differ in length or have not a multiple of 8 words, `src` and `w` have not equally many terms, at most
    /// [`MAX_TERMS`], or `bound_bits` is over 61.
    pub fn combine(&self, out: &mut [u64], src: &[&[u64]], w: &[u64], bound_bits: u32) {
        assert!(src.len() == w.len() && src.len() <= MAX_TERMS && bound_bits <= 61);
        src.iter().for_each(|x| assert_eq!(x.len(), out.len()));
        self.check(&[out.len()]);
        self.kernels.combine(out, src, w, bound_bits);
    }

    /// Replaces the residues in the first N words of `out` by their digits: row `l` of
    /// `gadget.levels` rows of N words holds digit `l` (most significant first) modulo q. The
    /// residues in `[0, q)` are taken as numbers in `(−q/2, q/2]`.
    ///
    /// # Panics
    /// If the length is not that of all rows or the gadget has more bits than q.
    pub fn decompose(&self, out: &mut [u64], gadget: Gadget) {
        assert_eq!(out.len(), gadget.rows(&self.modulus) * self.degree());
        self.kernels.decompose(out, gadget);
    }

    /// `a += b`, and the digits of the sum to `out` as [`Limb::decompose`] gives them: one pass over
    /// memory. Residues in `[0, q)`.
    ///
    /// # Panics
    /// As for [`Limb::decompose`].
    pub fn add_decompose(&self, a: &mut [u64], b: &[u64], gadget: Gadget, out: &mut [u64]) {
        assert!(a.len() == self.degree() && b.len() == a.len());
        assert_eq!(out.len(), gadget.rows(&self.modulus) * self.degree());
        self.kernels.add_decompose(a, b, gadget, out);
    }

    /// `out = (X^steps − 1)·src` for coefficients in `[0, q)` and `steps` below 2N.
    ///
    /// # Panics
    /// If `out` or `src` has not N words, or `steps` is 2N or more.
    pub fn rotate_minus(&self, out: &mut [u64], src: &[u64], steps: usize) {
        assert!(out.len() == self.degree() && src.len() == out.len() && steps < 2 * self.degree());
        self.kernels.rotate_minus(out, src, steps);
    }

    /// `out = X^steps·src` for coefficients in `[0, q)` and `steps` below 2N.
    ///
    /// # Panics
    /// As [`Limb::rotate_minus`].
    pub fn rotate(&self, out: &mut [u64], src: &[u64], steps: usize) {
        assert!(out.len() == self.degree() && src.len() == out.len() && steps < 2 * self.degree());
        self.kernels.rotate(out, src, steps);
    }

    /// Matrix product modulo q, row-major: `c (m×n) = a (m×k) · b (k×n)`, all in `[0, q)`;
    /// rows of `a`, `b`, `c` start `lda`, `ldb`, `ldc` words apart. `n` is a multiple of 8.
    /// With `accumulate`, adds to what `c` (in `[0, q)`) holds.
    ///
    /// # Panics
    /// If a stride is less than a row, a slice is shorter than its shape and stride say, or `n` is no
    /// multiple of 8.
    #[allow(clippy::too_many_arguments)]
    pub fn gemm(
        &self,
        c: &mut [u64],
        ldc: usize,
        a: &[u64],
        lda: usize,
        b: &[u64],
        ldb: usize,
        shape: (usize, usize, usize),
        accumulate: bool,
    ) {
        let (m, k, n) = shape;
        assert!(n % 8 == 0, "columns are no multiple of 8");
        let operands = [(a.len(), m, lda, k), (b.len(), k, ldb, n), (c.len(), m, ldc, n)];
        assert!(operands.into_iter().all(holds), "a matrix reaches beyond its slice");
        if m == 0 || n == 0 || k == 0 {
            if !accumulate {
                (0..m).for_each(|i| c[i * ldc..i * ldc + n].fill(0));
            }
            return;
        }
        let (a, b) = (Rows { words: a, stride: lda }, Rows { words: b, stride: ldb });
        self.kernels.gemm(RowsMut { words: c, stride: ldc }, a, b, shape, accumulate);
    }
}

/// Whether a slice of `len` words holds `rows` rows of `width` words, `stride` apart: no more than
/// that lets a kernel read without looking.
fn holds((len, rows, stride, width): (usize, usize, usize, usize)) -> bool {
    let extent = match rows {
        0 => Some(0),
        _ => (rows - 1).checked_mul(stride).and_then(|start| start.checked_add(width)),
    };
    stride >= width && extent.is_some_and(|extent| extent <= len)
}
