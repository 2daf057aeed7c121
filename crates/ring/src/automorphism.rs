//! The automorphisms X ↦ X^g of Z\[X\]/(X^N + 1), g odd, in both forms.

use crate::error::RingError;
use crate::kernel::{self, BlockPermutation, Family, MAX_DEGREE, MIN_DEGREE, WordKernels};
use crate::modulus::Modulus;

/// The Galois element that rotates the N/2 slots left by `steps` (right if negative):
/// 5^steps mod 2N. `n` is a power of two.
pub fn rotation_element(n: usize, steps: i64) -> u64 {
    // 5 has order N/2.
    let modulo = |x: u64| x & (2 * n as u64 - 1);
    let mut exponent = steps.rem_euclid((n as i64 / 2).max(1)) as u64;
    let (mut square, mut element) = (modulo(5), 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            element = modulo(element * square);
        }
        square = modulo(square * square);
        exponent >>= 1;
    }
    element
}

/// The Galois element that conjugates the slots: 2N − 1.
pub const fn conjugation_element(n: usize) -> u64 {
    2 * n as u64 - 1
}

fn check_element(n: usize, element: u64) -> Result<(), RingError> {
    let order = 2 * n as u64;
    if element % 2 == 1 && element < order { Ok(()) } else { Err(RingError::GaloisElement { element, order }) }
}

fn check_length(expected: usize, found: usize) -> Result<(), RingError> {
    if found == expected { Ok(()) } else { Err(RingError::Length { expected, found }) }
}

/// An automorphism of the evaluation form: a permutation of the values, the same for every prime.
#[derive(Debug, Clone)]
pub struct EvalPermutation {
    n: usize,
    element: u64,
    blocks: BlockPermutation,
    kernels: &'static dyn WordKernels,
}

impl EvalPermutation {
    /// The permutation of degree `n` for X ↦ X^`galois_element`, run by the best family.
    ///
    /// # Errors
    /// [`RingError::Degree`] unless `n` is a power of two that the transforms serve, and
    /// [`RingError::GaloisElement`] for an even element or one of 2N or more.
    pub fn new(n: usize, galois_element: u64) -> Result<Self, RingError> {
        Self::with_kernels(n, galois_element, kernel::words())
    }

    /// The same by a given family.
    ///
    /// # Errors
    /// As [`EvalPermutation::new`], and [`RingError::KernelMissing`] if the machine lacks the family.
    pub fn with_family(n: usize, galois_element: u64, family: Family) -> Result<Self, RingError> {
        Self::with_kernels(n, galois_element, family.words()?)
    }

    fn with_kernels(n: usize, galois_element: u64, kernels: &'static dyn WordKernels) -> Result<Self, RingError> {
        if !n.is_power_of_two() || !(MIN_DEGREE..=MAX_DEGREE).contains(&n) {
            return Err(RingError::Degree { degree: n });
        }
        check_element(n, galois_element)?;
        Ok(Self { n, element: galois_element, blocks: BlockPermutation::new(n, galois_element as usize), kernels })
    }

    /// The ring degree.
    pub const fn degree(&self) -> usize {
        self.n
    }

    /// The Galois element g.
    pub const fn element(&self) -> u64 {
        self.element
    }

    /// The same in parts of equal length, a power of two and 64 at least.
    pub(crate) fn parts(&self, parts: usize) -> Vec<PartPermutation> {
        let one = |part| {
            let (from, blocks) = self.blocks.part(part, parts);
            PartPermutation { from, len: self.n / parts, blocks, kernels: self.kernels }
        };
        (0..parts).map(one).collect()
    }

    /// The values of `a(X^g)` from those of `a(X)`, both in the order of [`crate::order`].
    /// Any words: nothing is computed with them.
    ///
    /// # Panics
    /// If a slice has not N words.
    pub fn apply(&self, out: &mut [u64], src: &[u64]) {
        assert!(out.len() == self.n && src.len() == self.n, "permutation operands differ from the degree");
        self.kernels.permute(&self.blocks, out, src);
    }

    /// Adds the values of `a(X^g)` to `acc`: all in `[0, q)` of one modulus.
    ///
    /// # Panics
    /// As [`EvalPermutation::apply`].
    pub fn apply_add(&self, q: &Modulus, acc: &mut [u64], src: &[u64]) {
        assert!(acc.len() == self.n && src.len() == self.n, "permutation operands differ from the degree");
        self.kernels.permute_add(&self.blocks, q.value(), acc, src);
    }
}

/// The part of an [`EvalPermutation`] that fills one part of the values, from one part of them.
#[derive(Debug)]
pub(crate) struct PartPermutation {
    /// The number of the part that values come from.
    pub from: usize,
    len: usize,
    blocks: BlockPermutation,
    kernels: &'static dyn WordKernels,
}

impl PartPermutation {
    /// The values of part of `a(X^g)` from those of a part of `a(X)`.
    ///
    /// # Panics
    /// If a slice is not as long as a part.
    pub(crate) fn apply(&self, out: &mut [u64], src: &[u64]) {
        assert!(out.len() == self.len && src.len() == self.len, "permutation operands differ from the part");
        self.kernels.permute(&self.blocks, out, src);
    }

    /// Adds them to `acc`: all in `[0, q)` of one modulus.
    ///
    /// # Panics
    /// As [`PartPermutation::apply`].
    pub(crate) fn apply_add(&self, q: &Modulus, acc: &mut [u64], src: &[u64]) {
        assert!(acc.len() == self.len && src.len() == self.len, "permutation operands differ from the part");
        self.kernels.permute_add(&self.blocks, q.value(), acc, src);
    }
}

/// The coefficients of `a(X^g)` from those of `a(X)`, in `[0, q)`.
///
/// # Errors
/// [`RingError::Degree`] unless `src` has a power of two of coefficients, [`RingError::Length`]
/// unless `out` has as many, and [`RingError::GaloisElement`] as for [`EvalPermutation::new`].
pub fn apply_coeff(q: &Modulus, galois_element: u64, out: &mut [u64], src: &[u64]) -> Result<(), RingError> {
    let n = src.len();
    if !n.is_power_of_two() {
        return Err(RingError::Degree { degree: n });
    }
    check_length(n, out.len())?;
    check_element(n, galois_element)?;
    let g = galois_element as usize;
    let mut exponent = 0;
    for x in src {
        // X^N = −1.
        out[exponent & (n - 1)] = if exponent & n == 0 { *x } else { q.neg(*x) };
        exponent = (exponent + g) & (2 * n - 1);
    }
    Ok(())
}
