//! Sums and products, value by value: one launch for a whole batch.

use crate::arena::Memory;
use crate::batch::{Batch, Rows};
use crate::error::{CudaError, Result};
use crate::tables::factors;
use bytemuck::NoUninit;
use std::sync::Arc;
use sudare_ring::Eval;

/// Threads of a block, two words each.
const THREADS: usize = 256;

/// Twin of `Elementwise` in `elementwise.cuh`.
#[derive(Clone, Copy, Debug, NoUninit)]
#[repr(C)]
struct Arguments {
    a: Rows,
    b: Rows,
    out: Rows,
    primes: u64,
    factors: u64,
    log_n: u64,
}

/// Twin of `Dot` in `elementwise.cuh`.
#[derive(Clone, Copy, Debug, NoUninit)]
#[repr(C)]
struct DotArguments {
    a: Rows,
    b: Rows,
    out: Rows,
    primes: u64,
    log_n: u32,
    terms: u32,
    parts: u64,
}

/// Blocks for `polynomials` polynomials of a batch.
pub(super) fn grid<F>(batch: &Batch<F>, polynomials: usize) -> [usize; 3] {
    [polynomials * batch.basis().degree() / (2 * THREADS), batch.basis().len(), 1]
}

/// Which items of its operands an operation works on: the lab runs them one by one as well.
pub(crate) type Span = std::ops::Range<usize>;

/// Runs a kernel on polynomials of items `span`, `parts` of each in `out`.
fn run<F, G, H>(
    kernel: &str,
    [a, b]: [&Batch<F>; 2],
    out: &Batch<H>,
    span: Span,
    scales: Option<&Arc<Memory>>,
    per_item: &Batch<G>,
) -> Result<()> {
    let polynomials = |batch: &Batch<F>| batch.rows().from(span.start * batch.parts());
    let arguments = Arguments {
        a: polynomials(a),
        b: polynomials(b),
        out: out.rows().from(span.start * out.parts()),
        primes: a.primes().at(0),
        factors: scales.map_or(0, |m| m.address()),
        log_n: u64::from(a.basis().degree().trailing_zeros()),
    };
    // A tensor product counts items, everything else polynomials.
    let count = if kernel == "tensor" { span.len() } else { span.len() * per_item.parts() };
    // SAFETY: the callers checked that all batches are of one device and basis and have the items of `span`, and
    // hold them until their memory goes back to the queue's pool.
    unsafe { a.device().core().launch(kernel, grid(a, count), THREADS, 0, &arguments) }
}

impl<F> Batch<F> {
    fn zipped(&self, other: &Self, kernel: &str) -> Result<Self> {
        self.expect_same(other)?;
        let out = self.like(self.parts())?;
        run(kernel, [self, other], &out, 0..self.len(), None, self)?;
        Ok(out)
    }

    /// `self + other`.
    ///
    /// # Errors
    /// [`CudaError::Mismatch`] for batches of other shapes, [`CudaError::OutOfMemory`].
    pub fn add(&self, other: &Self) -> Result<Self> {
        self.zipped(other, "add")
    }

    /// `self − other`.
    ///
    /// # Errors
    /// As [`Batch::add`].
    pub fn sub(&self, other: &Self) -> Result<Self> {
        self.zipped(other, "sub")
    }

    /// `−self`.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`].
    pub fn neg(&self) -> Result<Self> {
        let out = self.like(self.parts())?;
        run("negate", [self, self], &out, 0..self.len(), None, self)?;
        Ok(out)
    }

    /// Times an integer.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`].
    pub fn mul_integer(&self, factor: i64) -> Result<Self> {
        let scales = factors(self.device(), self.basis().moduli(), |q| Ok(q.reduce_i64(factor)))?;
        let out = self.like(self.parts())?;
        run("scale", [self, self], &out, 0..self.len(), Some(&scales), self)?;
        Ok(out)
    }

    /// `self + other` of items `span` alone, into items `span` of `out`: what the lab times one by one.
    ///
    /// # Errors
    /// As [`Batch::add`], and for items that there are not.
    pub fn add_into(&self, other: &Self, out: &mut Self, span: Span) -> Result<()> {
        self.expect_same(other)?;
        self.expect_same(out)?;
        self.expect_items(&span)?;
        run("add", [self, other], out, span, None, self)
    }

    fn expect_items(&self, span: &Span) -> Result<()> {
        if span.start > span.end || span.end > self.len() {
            return Err(CudaError::Mismatch("a batch has no items of these numbers; items are counted from 0"));
        }
        Ok(())
    }
}

impl Batch<Eval> {
    /// `self · other`, part by part.
    ///
    /// # Errors
    /// As [`Batch::add`].
    pub fn mul(&self, other: &Self) -> Result<Self> {
        self.zipped(other, "multiply")
    }

    /// `self += a · b`, part by part.
    ///
    /// # Errors
    /// As [`Batch::add`], and where other batches share this one's memory.
    pub fn mul_add(&mut self, a: &Self, b: &Self) -> Result<()> {
        self.expect_same(a)?;
        self.expect_same(b)?;
        self.expect_own()?;
        run("multiply_add", [a, b], self, 0..a.len(), None, a)
    }

    /// (a_0·b_0, a_0·b_1 + a_1·b_0, a_1·b_1) of each item: products of ciphertexts before relinearisation.
    ///
    /// # Errors
    /// As [`Batch::add`], and for items of other than two parts.
    pub fn tensor(&self, other: &Self) -> Result<Self> {
        let mut out = self.like(3)?;
        self.tensor_into(other, &mut out, 0..self.len())?;
        Ok(out)
    }

    /// The same of items `span` alone, into items `span` of `out`.
    ///
    /// # Errors
    /// As [`Batch::tensor`], and for items that there are not.
    pub fn tensor_into(&self, other: &Self, out: &mut Self, span: Span) -> Result<()> {
        self.expect_same(other)?;
        self.expect_items(&span)?;
        let fits = self.parts() == 2 && out.parts() == 3 && out.len() == self.len() && out.basis() == self.basis();
        if !fits || !out.device().is(self.device()) {
            return Err(CudaError::Mismatch("a tensor product takes items of two parts to as many of three"));
        }
        run("tensor", [self, other], out, span, None, self)
    }

    /// Σ (a_0·b_0, a_0·b_1 + a_1·b_0, a_1·b_1) over the batches of two lists, item by item: an inner product of ciphertexts before
    /// it is relinearised. One launch reads every operand once.
    ///
    /// # Errors
    /// [`CudaError::Mismatch`] for lists that are empty or of different lengths, and as [`Batch::tensor`].
    pub fn dot(a: &[&Self], b: &[&Self]) -> Result<Self> {
        Self::sum_of_products("dot", a, b, [2, 2, 3])
    }

    /// Σ a·b over the batches of two lists, item by item, each part of an item of `a` times the one part of an item of `b`: a sum of
    /// ciphertexts times polynomials. One launch reads every operand once for each of its parts.
    ///
    /// # Errors
    /// As [`Batch::dot`]; items of `b` have one part.
    pub fn dot_plain(a: &[&Self], b: &[&Self]) -> Result<Self> {
        let parts = a.first().map_or(1, |a| a.parts());
        Self::sum_of_products("dot_plain", a, b, [parts, 1, parts])
    }

    fn sum_of_products(kernel: &str, a: &[&Self], b: &[&Self], parts: [usize; 3]) -> Result<Self> {
        let (Some(first), Some(other)) = (a.first(), b.first()) else {
            return Err(CudaError::Mismatch("a sum of products needs at least one product"));
        };
        if a.len() != b.len() || other.basis() != first.basis() || [first.parts(), other.parts()] != parts[..2] {
            return Err(CudaError::Mismatch("a sum of products takes two equally long lists over the same primes"));
        }
        let items = first.len();
        let gathered = |list: &[&Self]| -> Result<Self> {
            let apart = || CudaError::Mismatch("batches have different numbers of items; give equally many");
            list.iter().try_for_each(|x| if x.len() == items { Ok(()) } else { Err(apart()) })?;
            Self::gather(&(0..items).flat_map(|i| list.iter().map(move |x| (*x, i))).collect::<Vec<_>>())
        };
        let (left, right, out) = (gathered(a)?, gathered(b)?, first.like(parts[2])?);
        if !left.device().is(right.device()) {
            return Err(CudaError::Mismatch("batches are on different devices: copy one of them first"));
        }
        let arguments = DotArguments {
            a: left.rows(),
            b: right.rows(),
            out: out.rows(),
            primes: first.primes().at(0),
            log_n: first.basis().degree().trailing_zeros(),
            terms: a.len() as u32,
            parts: parts[0] as u64,
        };
        let count = if kernel == "dot" { items } else { items * parts[0] };
        // SAFETY: as in `run`; the gathered batches have as many items as the kernel reads.
        unsafe { first.device().core().launch(kernel, grid(first, count), THREADS, 0, &arguments) }?;
        Ok(out)
    }

    /// An empty batch of items of `parts` polynomials each, to be written by operations that end in `_into`.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`].
    pub fn room(&self, parts: usize) -> Result<Self> {
        self.like(parts)
    }

    /// Adds part `part` of every item alone, into that part of `out`: a launch for each polynomial of a ciphertext, as
    /// libraries have it that work on one at a time.
    ///
    /// # Errors
    /// As [`Batch::add`], and for a part that there is not.
    pub fn add_part_into(&self, other: &Self, out: &mut Self, part: usize) -> Result<()> {
        self.expect_same(other)?;
        self.expect_same(out)?;
        if part >= self.parts() {
            return Err(CudaError::Mismatch("a batch's items have no part of this number; parts are counted from 0"));
        }
        let [a, b, out] = [self, other, out].map(|x| x.rows().from(part).every(self.parts()));
        let primes = self.primes().at(0);
        let log_n = u64::from(self.basis().degree().trailing_zeros());
        let arguments = Arguments { a, b, out, primes, factors: 0, log_n };
        // SAFETY: as in `run`.
        unsafe { self.device().core().launch("add", grid(self, self.len()), THREADS, 0, &arguments) }
    }

    /// Copies all items on the device, over those of a batch alike.
    ///
    /// # Errors
    /// [`CudaError::Mismatch`] for batches of other shapes.
    pub fn copy_all(&self, out: &mut Self) -> Result<()> {
        self.expect_same(out)?;
        let each = 8 * self.basis().degree() * self.basis().len();
        let count = self.len() * self.parts();
        // One copy where both stand in one piece.
        let (step, copies) = if self.even() && out.even() { (count * each, 1) } else { (each, count) };
        for i in 0..if count == 0 { 0 } else { copies } {
            // SAFETY: both are whole polynomials over one basis, of different batches.
            unsafe { self.device().core().driver().copy(out.address(i), self.address(i), step) }?;
        }
        Ok(())
    }
}
