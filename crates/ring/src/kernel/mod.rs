//! The arithmetic of one limb: a prime, its transform tables, and the kernel family that
//! serves it.
//!
//! This is the one place where a family is chosen: once, when [`Limb::new`] builds the tables,
//! so that the range check and the choice cannot disagree. Every operation states its ranges;
//! `q` is the limb's modulus and all slices of one call have the same length.

mod ahead;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512dq;
#[cfg(target_arch = "x86_64")]
mod avx512ifma;
#[cfg(target_arch = "x86_64")]
mod avx512ntt;
mod external;
mod gadget;
mod permute;
mod portable;
mod quotient;
pub(crate) mod random;
mod special_fft;
mod tables;
#[cfg(target_arch = "x86_64")]
mod vector_tables;

use crate::error::RingError;
use crate::modulus::{Modulus, Shoup};
use crate::packed::{PackedPairs, Width};
use crate::prime::primitive_root;
pub use ahead::Ahead;
pub use external::{MAX_COLUMNS, MonomialTable, PackedMatrix};
pub use gadget::{Gadget, sub_scaled_rows};
pub(crate) use permute::BlockPermutation;
pub use quotient::round_quotients;
pub(crate) use special_fft::SpecialFft;
pub use special_fft::round_to_i64;
pub(crate) use tables::NttTables;

/// Smallest ring degree of the transforms.
pub const MIN_DEGREE: usize = 1 << 9;
/// Largest ring degree of the transforms.
pub const MAX_DEGREE: usize = 1 << 17;
/// Primes below this many bits may use the IFMA family.
pub const IFMA_MODULUS_BITS: u32 = 50;
/// Most terms that one [`Limb::dot`] or [`Limb::combine`] accepts.
pub const MAX_TERMS: usize = 4096;

/// A set of kernels written for one kind of processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Plain Rust: runs everywhere and is the reference of the others.
    Portable,
    /// AVX-512 F + DQ, primes up to 61 bits.
    Avx512Dq,
    /// AVX-512 IFMA, primes below 2^50.
    Avx512Ifma,
}

impl Family {
    /// Every family, the most general first.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx512Dq, Self::Avx512Ifma];

    /// The name that `SUDARE_KERNEL` and the benchmarks use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx512Dq => "avx512dq",
            Self::Avx512Ifma => "avx512ifma",
        }
    }

    /// Whether this processor can run the family.
    pub fn available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Dq => {
                std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512dq")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Ifma => {
                Self::Avx512Dq.available()
                    && std::arch::is_x86_feature_detected!("avx512ifma")
                    && std::arch::is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// Whether this processor can run the family and the modulus is in its range.
    pub fn serves(self, modulus: &Modulus) -> bool {
        self.available() && (self != Self::Avx512Ifma || modulus.value() >> IFMA_MODULUS_BITS == 0)
    }

    /// The best family for a modulus, no better than what the environment variable
    /// `SUDARE_KERNEL` (`portable`, `avx512dq` or `avx512ifma`) allows.
    ///
    /// # Errors
    /// [`RingError::KernelName`] if the variable holds another word.
    pub fn choose(modulus: &Modulus) -> Result<Self, RingError> {
        Self::best(|f| f.serves(modulus))
    }

    /// The best family for work without a modulus, under the same limit.
    ///
    /// # Errors
    /// As [`Family::choose`].
    pub fn choose_unbounded() -> Result<Self, RingError> {
        Self::best(Self::available)
    }

    fn best(serves: impl Fn(Self) -> bool) -> Result<Self, RingError> {
        let limit = match std::env::var("SUDARE_KERNEL") {
            Err(_) => Self::Avx512Ifma,
            Ok(value) => Self::ALL.into_iter().find(|f| f.name() == value).ok_or(RingError::KernelName { value })?,
        };
        Ok(Self::ALL.into_iter().rev().find(|f| *f <= limit && serves(*f)).unwrap_or(Self::Portable))
    }
}

/// One prime of a basis with everything its arithmetic needs.
#[derive(Debug)]
pub struct Limb {
    modulus: Modulus,
    family: Family,
    ntt: NttTables,
}

/// Calls the same function of whichever family the limb has.
macro_rules! dispatch {
    ($limb:ident, $name:ident ( $($arg:expr),* )) => {
        match $limb.family {
            Family::Portable => portable::$name($($arg),*),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a limb has this family only if `Family::serves` found the features.
            Family::Avx512Dq => unsafe { avx512dq::$name($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a limb has this family only if `Family::serves` found the features.
            Family::Avx512Ifma => unsafe { avx512ifma::$name($($arg),*) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => portable::$name($($arg),*),
        }
    };
}

impl Limb {
    /// Tables for prime `q` and degree `n`, with the family that [`Family::choose`] picks.
    ///
    /// # Errors
    /// [`RingError::Degree`], [`RingError::ModulusRange`] or [`RingError::NotNttFriendly`].
    pub fn new(q: u64, n: usize) -> Result<Self, RingError> {
        let family = Family::choose(&Modulus::new(q)?)?;
        Self::with_family(q, n, family)
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
        if !family.serves(&modulus) {
            return Err(RingError::KernelUnavailable { family: family.name(), bits: modulus.bits() });
        }
        let root = primitive_root(&modulus, n).ok_or(RingError::NotNttFriendly { value: q, order: 2 * n as u64 })?;
        Ok(Self { modulus, family, ntt: NttTables::new(&modulus, n, root, family) })
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
        self.ntt.n
    }

    /// The family that serves this limb.
    #[inline]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// The primitive 2N-th root ψ of the transform.
    #[inline]
    pub const fn root(&self) -> u64 {
        self.ntt.root
    }

    fn check(&self, lengths: &[usize]) {
        let first = lengths[0];
        assert!(lengths.iter().all(|l| *l == first) && first.is_multiple_of(8), "kernel operands differ in length");
    }

    /// Forward negacyclic transform in place: coefficients in `[0, q)` to values in `[0, q)`,
    /// in the order of [`crate::order`]. The slice has N words.
    pub fn forward(&self, a: &mut [u64]) {
        assert_eq!(a.len(), self.degree());
        dispatch!(self, forward(&self.modulus, &self.ntt, a));
    }

    /// The inverse of [`Limb::forward`]: values in `[0, q)` to coefficients in `[0, q)`.
    pub fn inverse(&self, a: &mut [u64]) {
        assert_eq!(a.len(), self.degree());
        dispatch!(self, inverse(&self.modulus, &self.ntt, a));
    }

    /// The first `layers` layers of [`Limb::forward`]: `2^layers` residues modulo the factors
    /// X^d − ω of X^N + 1, `d = N / 2^layers`, each in coefficient order, in `[0, q)`; ranges as
    /// there. Block `i` is the residue with `ω = ψ^(d·(2·brv(i)+1))`.
    pub fn forward_partial(&self, a: &mut [u64], layers: u32) {
        assert_eq!(a.len(), self.degree());
        assert!(layers <= self.degree().trailing_zeros());
        dispatch!(self, forward_partial(&self.modulus, &self.ntt, a, layers));
    }

    /// The inverse of [`Limb::forward_partial`].
    pub fn inverse_partial(&self, a: &mut [u64], layers: u32) {
        assert_eq!(a.len(), self.degree());
        assert!(layers <= self.degree().trailing_zeros());
        dispatch!(self, inverse_partial(&self.modulus, &self.ntt, a, layers));
    }

    /// `out = a + b`, all in `[0, q)`.
    pub fn add(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        self.check(&[out.len(), a.len(), b.len()]);
        dispatch!(self, add(&self.modulus, out, a, b));
    }

    /// `a += b`, all in `[0, q)`.
    pub fn add_assign(&self, a: &mut [u64], b: &[u64]) {
        self.check(&[a.len(), b.len()]);
        dispatch!(self, add_assign(&self.modulus, a, b));
    }

    /// `out = a − b`, all in `[0, q)`.
    pub fn sub(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        self.check(&[out.len(), a.len(), b.len()]);
        dispatch!(self, sub(&self.modulus, out, a, b));
    }

    /// `a −= b`, all in `[0, q)`.
    pub fn sub_assign(&self, a: &mut [u64], b: &[u64]) {
        self.check(&[a.len(), b.len()]);
        dispatch!(self, sub_assign(&self.modulus, a, b));
    }

    /// `a = −a`, in `[0, q)`.
    pub fn neg_assign(&self, a: &mut [u64]) {
        self.check(&[a.len()]);
        dispatch!(self, neg_assign(&self.modulus, a));
    }

    /// `out = a · b` element by element, all in `[0, q)`.
    pub fn mul(&self, out: &mut [u64], a: &[u64], b: &[u64]) {
        self.check(&[out.len(), a.len(), b.len()]);
        dispatch!(self, mul(&self.modulus, out, a, b));
    }

    /// `a = a · b` element by element, all in `[0, q)`.
    pub fn mul_assign(&self, a: &mut [u64], b: &[u64]) {
        self.check(&[a.len(), b.len()]);
        dispatch!(self, mul_assign(&self.modulus, a, b));
    }

    /// `acc = acc + a · b` element by element, with one reduction; all in `[0, q)`.
    pub fn mul_add(&self, acc: &mut [u64], a: &[u64], b: &[u64]) {
        self.check(&[acc.len(), a.len(), b.len()]);
        dispatch!(self, mul_add(&self.modulus, acc, a, b));
    }

    /// `a = a · b + c` element by element, with one reduction; all in `[0, q)` (`004`, section 4.1).
    pub fn mul_assign_add(&self, a: &mut [u64], b: &[u64], c: &[u64]) {
        self.check(&[a.len(), b.len(), c.len()]);
        dispatch!(self, mul_assign_add(&self.modulus, a, b, c));
    }

    /// `a = a · w` for a constant `w`; `a` in `[0, q)`.
    pub fn mul_scalar(&self, a: &mut [u64], w: &Shoup) {
        self.check(&[a.len()]);
        dispatch!(self, mul_scalar(&self.modulus, a, w));
    }

    /// `acc = acc + a · w` for a constant `w`; all in `[0, q)`.
    pub fn mul_scalar_add(&self, acc: &mut [u64], a: &[u64], w: &Shoup) {
        self.check(&[acc.len(), a.len()]);
        dispatch!(self, mul_scalar_add(&self.modulus, acc, a, w));
    }

    /// `a = (a − b) · w` for a constant `w`; all in `[0, q)`. The last step of a rescale or a
    /// mod-down.
    pub fn sub_mul_scalar(&self, a: &mut [u64], b: &[u64], w: &Shoup) {
        self.check(&[a.len(), b.len()]);
        dispatch!(self, sub_mul_scalar(&self.modulus, a, b, w));
    }

    /// `out = src mod q`, for words `src` in `[0, 2^62)`.
    pub fn reduce(&self, out: &mut [u64], src: &[u64]) {
        self.check(&[out.len(), src.len()]);
        dispatch!(self, reduce(&self.modulus, out, src));
    }

    /// `out = [x]` mod q where `x` is the representative in `(−p/2, p/2]` of `src` in `[0, p)`,
    /// for any modulus `p < 2^61`: the centred lift that a rescale by `p` needs.
    pub fn reduce_centered(&self, out: &mut [u64], src: &[u64], p: u64) {
        self.check(&[out.len(), src.len()]);
        dispatch!(self, reduce_centered(&self.modulus, out, src, p));
    }

    /// `out = src mod q`, for any signed words.
    pub fn from_i64(&self, out: &mut [u64], src: &[i64]) {
        self.check(&[out.len(), src.len()]);
        dispatch!(self, from_i64(&self.modulus, out, src));
    }

    /// `out = Σ_j a_j · b_j` element by element, one reduction for all terms; all in `[0, q)`,
    /// at most [`MAX_TERMS`] terms.
    pub fn dot(&self, out: &mut [u64], a: &[&[u64]], b: &[&[u64]]) {
        assert!(a.len() == b.len() && a.len() <= MAX_TERMS);
        a.iter().chain(b).for_each(|x| assert_eq!(x.len(), out.len()));
        self.check(&[out.len()]);
        dispatch!(self, dot(&self.modulus, out, a, b));
    }

    /// Two inner products that share a factor: `out0 = Σ_j a_j · b0_j`, `out1 = Σ_j a_j · b1_j`;
    /// ranges as for [`Limb::dot`]. The inner loop of key switching.
    pub fn dot_pair(&self, out: [&mut [u64]; 2], a: &[&[u64]], b0: &[&[u64]], b1: &[&[u64]]) {
        assert!(a.len() == b0.len() && a.len() == b1.len() && a.len() <= MAX_TERMS);
        self.check(&[out[0].len(), out[1].len()]);
        a.iter().chain(b0).chain(b1).for_each(|x| assert_eq!(x.len(), out[0].len()));
        dispatch!(self, dot_pair(&self.modulus, out, a, b0, b1));
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
        match self.family {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a limb has this family only if `Family::serves` found the features.
            Family::Avx512Ifma => unsafe { avx512ifma::dot_pair_packed(&self.modulus, out, a, b, start) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a limb has this family only if `Family::serves` found the features.
            Family::Avx512Dq if b.width() == Width::Bytes8 => unsafe {
                avx512dq::dot_pair_words(&self.modulus, out, a, b, start)
            },
            _ => b.dot_by_blocks(self, out, a, start),
        }
    }

    /// `out = Σ_i src_i · w_i` for constants `w_i` in `[0, q)` and sources in `[0, 2^bound_bits)`,
    /// `bound_bits ≤ 61`: the sources may belong to other, larger moduli. Result in `[0, q)`; at
    /// most [`MAX_TERMS`] terms. The inner loop of a basis conversion.
    pub fn combine(&self, out: &mut [u64], src: &[&[u64]], w: &[u64], bound_bits: u32) {
        assert!(src.len() == w.len() && src.len() <= MAX_TERMS && bound_bits <= 61);
        src.iter().for_each(|x| assert_eq!(x.len(), out.len()));
        self.check(&[out.len()]);
        dispatch!(self, combine(&self.modulus, out, src, w, bound_bits));
    }

    /// Replaces the residues in the first N words of `out` by their digits: row `l` of
    /// `gadget.levels` rows of N words holds digit `l` (most significant first) modulo q. The
    /// residues in `[0, q)` are taken as numbers in `(−q/2, q/2]`.
    ///
    /// # Panics
    /// If the length is not that of all rows or the gadget has more bits than q.
    pub fn decompose(&self, out: &mut [u64], gadget: Gadget) {
        assert_eq!(out.len(), gadget.rows(&self.modulus) * self.degree());
        gadget::decompose(self.family, &self.modulus, gadget, self.degree(), out);
    }

    /// `a += b`, and the digits of the sum to `out` as [`Limb::decompose`] gives them: one pass over
    /// memory. Residues in `[0, q)`.
    ///
    /// # Panics
    /// As for [`Limb::decompose`].
    pub fn add_decompose(&self, a: &mut [u64], b: &[u64], gadget: Gadget, out: &mut [u64]) {
        assert!(a.len() == self.degree() && b.len() == a.len());
        assert_eq!(out.len(), gadget.rows(&self.modulus) * self.degree());
        gadget::add_decompose(self.family, &self.modulus, gadget, a, b, out);
    }

    /// `out = (X^steps − 1)·src` for coefficients in `[0, q)` and `steps` below 2N.
    pub fn rotate_minus(&self, out: &mut [u64], src: &[u64], steps: usize) {
        assert!(out.len() == self.degree() && src.len() == out.len() && steps < 2 * self.degree());
        gadget::rotate_minus(self.family, &self.modulus, steps, out, src);
    }

    /// `out = X^steps·src` for coefficients in `[0, q)` and `steps` below 2N.
    pub fn rotate(&self, out: &mut [u64], src: &[u64], steps: usize) {
        assert!(out.len() == self.degree() && src.len() == out.len() && steps < 2 * self.degree());
        gadget::rotate(self.family, &self.modulus, steps, out, src);
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
        dispatch!(self, gemm(&self.modulus, c, ldc, a, lda, b, ldb, shape, accumulate));
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
