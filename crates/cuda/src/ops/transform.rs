//! Coefficients to values and back, for a whole batch: two launches.

use super::gadget::Start;
use super::{PARTS, column_threads, exchange_words, part_kernel, part_threads};
use crate::batch::{Batch, Rows};
use crate::error::Result;
use bytemuck::NoUninit;
use sudare_ring::{Coeff, Eval};

/// Twin of `Transform` in `transform.cuh`.
#[derive(Clone, Copy, Debug, NoUninit)]
#[repr(C)]
struct Arguments {
    input: Rows,
    out: Rows,
    primes: u64,
    log_n: u64,
}

impl<F> Batch<F> {
    fn columns(&self, kernel: &str, input: Rows, out: Rows) -> Result<()> {
        let (basis, count, threads) = (self.basis(), self.len() * self.parts(), column_threads(self.basis()));
        let log_n = u64::from(basis.degree().trailing_zeros());
        let arguments = Arguments { input, out, primes: self.primes().at(0), log_n };
        let grid = [count, basis.degree() / PARTS / threads, basis.len()];
        // SAFETY: `input` and `out` name polynomials of this basis that live until the queue is past them.
        unsafe { self.device().core().launch(kernel, grid, threads, 0, &arguments) }
    }
}

impl Batch<Coeff> {
    /// Evaluation form.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`](crate::CudaError::OutOfMemory).
    pub fn to_eval(&self) -> Result<Batch<Eval>> {
        let (middle, out) = (self.like::<Eval>(self.parts())?, self.like::<Eval>(self.parts())?);
        self.columns("columns_forward", self.rows(), middle.rows())?;
        let (basis, count) = (self.basis(), self.len() * self.parts());
        let log_n = u64::from(basis.degree().trailing_zeros());
        let arguments = Arguments { input: middle.rows(), out: out.rows(), primes: self.primes().at(0), log_n };
        let (kernel, grid) = (part_kernel("parts_forward", basis), [count, PARTS, basis.len()]);
        // SAFETY: as above.
        unsafe { self.device().core().launch(&kernel, grid, part_threads(basis), exchange_words(basis), &arguments) }?;
        Ok(out)
    }
}

impl Batch<Eval> {
    /// Coefficient form.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`](crate::CudaError::OutOfMemory).
    pub fn to_coeff(&self) -> Result<Batch<Coeff>> {
        let (middle, out) = (self.like::<Eval>(self.parts())?, self.like::<Coeff>(self.parts())?);
        let start = Start {
            a: self.rows(),
            b: Rows::none(),
            out: middle.rows(),
            primes: self.primes().at(0),
            first: 0,
            product: 0,
        };
        start.launch(self.device(), self.basis(), self.len() * self.parts(), self.basis().len())?;
        self.columns("columns_inverse", middle.rows(), out.rows())?;
        Ok(out)
    }
}
