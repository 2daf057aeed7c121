//! The canonical embedding of CKKS: real polynomials of degree below N and N/2 complex slots.
//!
//! Slot `j` holds the polynomial's value at ζ^(5^j), ζ = exp(πi/N) (the order of Cheon, Kim, Kim
//! and Song, ASIACRYPT 2017, in which a rotation by one slot is X ↦ X^5). Since
//! ζ^((N/2)·5^j) = i, the polynomial stands packed as N/2 complex numbers: coefficient `i` as
//! the real part and coefficient `i + N/2` as the imaginary part of number `i`.
//!
//! All families agree to an error under 1e-13 of the largest value; they are not bit-identical.

use crate::buffer::Buffer;
use crate::error::RingError;
use crate::kernel::{self, Family, MAX_DEGREE, MIN_DEGREE, SpecialFft, WordKernels};
use crate::memo::Memo;
use num_complex::Complex64;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Tables for one ring degree.
#[derive(Debug, Clone)]
pub struct Embedding {
    fft: SpecialFft,
    kernels: &'static dyn WordKernels,
    /// By slots.
    smaller: Arc<Memo<usize, Self>>,
}

impl Embedding {
    /// Tables for ring degree `n`, run by the best family.
    ///
    /// # Errors
    /// [`RingError::Degree`] unless `n` is a power of two that the transforms serve.
    pub fn new(n: usize) -> Result<Self, RingError> {
        Self::with_kernels(n, kernel::words())
    }

    /// The same by a given family.
    ///
    /// # Errors
    /// [`RingError::Degree`], and [`RingError::KernelMissing`] if the machine lacks the family.
    pub fn with_family(n: usize, family: Family) -> Result<Self, RingError> {
        Self::with_kernels(n, family.words()?)
    }

    fn with_kernels(n: usize, kernels: &'static dyn WordKernels) -> Result<Self, RingError> {
        if !n.is_power_of_two() || !(MIN_DEGREE..=MAX_DEGREE).contains(&n) {
            return Err(RingError::Degree { degree: n });
        }
        Ok(Self::of(n / 2, kernels))
    }

    fn of(slots: usize, kernels: &'static dyn WordKernels) -> Self {
        Self { fft: SpecialFft::new(slots), kernels, smaller: Arc::default() }
    }

    /// The embedding of so many slots, or of the fewest that there are transforms for: it makes of a vector that repeats after them
    /// the coefficients at powers of X^(N/2·slots), which are all that the vector has. Made once.
    ///
    /// # Panics
    /// For no power of two up to N/2.
    #[must_use]
    pub fn smaller(&self, slots: usize) -> &Self {
        assert!(
            slots.is_power_of_two() && slots <= self.slots(),
            "an embedding of a period has a power of two of slots"
        );
        let slots = slots.max(MIN_DEGREE / 2);
        if slots == self.slots() {
            return self;
        }
        let made = || self.smaller.insert(slots, Self::of(slots, self.kernels));
        self.smaller.get(&slots).unwrap_or_else(made)
    }

    /// The number of slots, N/2.
    pub const fn slots(&self) -> usize {
        self.fft.points()
    }

    /// Slots to packed coefficients, in place.
    ///
    /// # Panics
    /// If there are not N/2 numbers.
    pub fn embed_inverse(&self, slots: &mut [Complex64]) {
        self.through_split(slots, Self::embed_inverse_split);
    }

    /// Packed coefficients to slots, in place: the inverse of [`Embedding::embed_inverse`].
    ///
    /// # Panics
    /// If there are not N/2 numbers.
    pub fn embed(&self, coeffs: &mut [Complex64]) {
        self.through_split(coeffs, Self::embed_split);
    }

    /// [`Embedding::embed_inverse`] on real and imaginary parts apart, the faster form (most of all on
    /// [`Parts`]): `re` and
    /// `im` end as coefficients `0..N/2` and `N/2..N`.
    ///
    /// # Panics
    /// If a slice has not N/2 numbers.
    pub fn embed_inverse_split(&self, re: &mut [f64], im: &mut [f64]) {
        assert!(re.len() == self.slots() && im.len() == self.slots(), "an embedding takes N/2 numbers");
        on_aligned(re, im, |re, im| self.kernels.fft_inverse(&self.fft, re, im));
    }

    /// [`Embedding::embed`] on real and imaginary parts apart.
    ///
    /// # Panics
    /// If a slice has not N/2 numbers.
    pub fn embed_split(&self, re: &mut [f64], im: &mut [f64]) {
        assert!(re.len() == self.slots() && im.len() == self.slots(), "an embedding takes N/2 numbers");
        on_aligned(re, im, |re, im| self.kernels.fft_forward(&self.fft, re, im));
    }

    fn through_split(&self, values: &mut [Complex64], transform: impl Fn(&Self, &mut [f64], &mut [f64])) {
        let mut parts = Parts::dirty(values.len());
        let (re, im) = parts.split_mut();
        for ((re, im), x) in re.iter_mut().zip(im.iter_mut()).zip(values.iter()) {
            (*re, *im) = (x.re, x.im);
        }
        transform(self, re, im);
        for ((x, re), im) in values.iter_mut().zip(re).zip(im) {
            *x = Complex64 { re: *re, im: *im };
        }
    }
}

/// Works on copies of parts that are not aligned: copying costs less than lines that straddle.
fn on_aligned(re: &mut [f64], im: &mut [f64], transform: impl FnOnce(&mut [f64], &mut [f64])) {
    let aligned = |x: &[f64]| x.as_ptr().addr().is_multiple_of(64);
    if aligned(re) && aligned(im) {
        return transform(re, im);
    }
    let mut parts = Parts::dirty(re.len());
    let (x, y) = parts.split_mut();
    x.copy_from_slice(re);
    y.copy_from_slice(im);
    transform(x, y);
    re.copy_from_slice(x);
    im.copy_from_slice(y);
}

/// Real and imaginary parts where transforms are fastest: aligned, and in different cache sets, without which a transform of AVX2
/// takes 1.2 to 1.4 times as long. Wiped when dropped, since the values may be secret.
pub struct Parts {
    words: Zeroizing<Buffer>,
    count: usize,
}

/// Words between the parts.
const GAP: usize = 64;

impl Parts {
    /// So many numbers of unspecified (but initialised) value.
    pub fn dirty(count: usize) -> Self {
        Self { words: Zeroizing::new(Buffer::dirty(2 * count + GAP)), count }
    }

    /// So many zeros.
    pub fn zeroed(count: usize) -> Self {
        Self { words: Zeroizing::new(Buffer::zeroed(2 * count + GAP)), count }
    }

    /// The real parts and the imaginary ones.
    pub fn split(&self) -> (&[f64], &[f64]) {
        let words = bytemuck::cast_slice(&self.words);
        (&words[..self.count], &words[self.count + GAP..])
    }

    /// [`Parts::split`], to be written.
    pub fn split_mut(&mut self) -> (&mut [f64], &mut [f64]) {
        let (re, im) = bytemuck::cast_slice_mut(&mut self.words).split_at_mut(self.count + GAP);
        (&mut re[..self.count], im)
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("count", &self.count).finish_non_exhaustive()
    }
}
