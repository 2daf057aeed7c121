//! Automorphisms X → X^g of a whole batch.

use super::elementwise::grid;
use crate::batch::{Batch, Rows};
use crate::error::{CudaError, Result};
use bytemuck::NoUninit;
use sudare_ring::{Coeff, Eval, RingError};

/// Twin of `Permutation` in `elementwise.cuh`.
#[derive(Clone, Copy, Debug, NoUninit)]
#[repr(C)]
struct Arguments {
    input: Rows,
    out: Rows,
    primes: u64,
    log_n: u32,
    element: u32,
    accumulate: u64,
}

/// g^−1 modulo 2N, for an odd g below it.
///
/// # Errors
/// [`RingError::GaloisElement`] for any other.
pub(super) fn inverse_element(n: usize, g: u64) -> Result<u64> {
    let order = 2 * n as u64;
    if g.is_multiple_of(2) || g >= order {
        return Err(RingError::GaloisElement { element: g, order }.into());
    }
    // Each step doubles the number of right bits (Newton).
    Ok((0..5).fold(g, |x: u64, _| x.wrapping_mul(2u64.wrapping_sub(g.wrapping_mul(x)))) & (order - 1))
}

impl<F> Batch<F> {
    fn permuted(&self, kernel: &str, element: u64, out: &Self, accumulate: bool) -> Result<()> {
        let arguments = Arguments {
            input: self.rows(),
            out: out.rows(),
            primes: self.primes().at(0),
            log_n: self.basis().degree().trailing_zeros(),
            element: element as u32,
            accumulate: u64::from(accumulate),
        };
        // SAFETY: both batches are of one shape and device, and hold what they name.
        unsafe { self.device().core().launch(kernel, grid(self, self.len() * self.parts()), 256, 0, &arguments) }
    }
}

impl Batch<Eval> {
    /// a(X) → a(X^g) of every polynomial.
    ///
    /// # Errors
    /// [`RingError::GaloisElement`] unless g is odd and below 2N, [`CudaError::OutOfMemory`].
    pub fn automorphism(&self, g: u64) -> Result<Self> {
        inverse_element(self.basis().degree(), g)?;
        let out = self.like(self.parts())?;
        self.permuted("permute_values", g, &out, false)?;
        Ok(out)
    }

    /// Adds the images of `other` under X → X^g: a step of a sum of automorphisms.
    ///
    /// # Errors
    /// As [`Batch::automorphism`], [`CudaError::Mismatch`] for a batch of another shape, or where other batches share
    /// this one's memory.
    pub fn add_automorphism(&mut self, other: &Self, g: u64) -> Result<()> {
        inverse_element(self.basis().degree(), g)?;
        self.expect_same(other)?;
        self.expect_own()?;
        other.permuted("permute_values", g, self, true)
    }
}

impl Batch<Coeff> {
    /// a(X) → a(X^g) of every polynomial.
    ///
    /// # Errors
    /// As for values.
    pub fn automorphism(&self, g: u64) -> Result<Self> {
        let inverse = inverse_element(self.basis().degree(), g)?;
        let out = self.like(self.parts())?;
        self.permuted("permute_coefficients", inverse, &out, false)?;
        Ok(out)
    }
}

impl<F> Batch<F> {
    /// Whether what is written here shows in no other batch.
    pub(crate) fn expect_own(&self) -> Result<()> {
        if self.shared() {
            return Err(CudaError::Mismatch("this batch shares its memory with another, which would change with it"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::inverse_element;

    #[test]
    fn inverses_of_elements() {
        for n in [1024usize, 65_536] {
            for g in (1..2 * n as u64).step_by(2) {
                assert_eq!(g * inverse_element(n, g).unwrap() % (2 * n as u64), 1);
            }
            assert!(inverse_element(n, 4).is_err() && inverse_element(n, 2 * n as u64 + 1).is_err());
        }
    }
}
