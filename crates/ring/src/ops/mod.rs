//! What is done with whole polynomials, and batches of them, on the processor.
//!
//! Nothing above this crate loops over limbs, words or the threads that share them, but for `tfhe`; it calls an
//! operation of this module, which is one pass (or the few that the mathematics needs) over its operands. The seam
//! between devices is above, at `rlwe::Backend`: its processor (`rlwe::Cpu`) is made of these operations, and what another device
//! computes equals them word for word.
//!
//! | File | Operations |
//! |---|---|
//! | [`elementwise`] | [`Poly`](crate::Poly)'s sums, products, scalings, inner products |
//! | [`ntt`] | coefficients to values and back |
//! | [`permute`] | automorphisms in both forms, monomials |
//! | [`sample`] | the uniform polynomial of a seed |
//! | [`convert`] | residues of integers, other bases |
//! | [`crt`], [`mixed_radix`] | residues to numbers, and to another modulus |
//! | [`divide`] | [`Division`]: rescale, mod-down, both in one, with a product before or an automorphism after |
//! | [`mod@tensor`] | tensor products, phases |
//! | [`gadget`], [`pairs`] | [`RnsGadget`]: decompositions, products with packed pairs, both in one |
//! | [`sums`] | sums of images under automorphisms |
//! | [`linear`], [`periodic`] | sums of linear maps, plaintexts whose slots repeat |
//! | [`narrow`] | sums of tensor products of pairs that are kept as words of 32 bits |
//! | [`combine`] | sums of products and multiples: steps of a polynomial |
//! | [`matrix`] | products of a matrix of integers with polynomials |
//! | [`rows`], [`points`] | Fourier transforms over rows, matrices over a subring |
//!
//! Results are those of exact arithmetic modulo each prime, so they do not depend on how a pass is cut. Bases that
//! do not go together are a fault of the caller: operations panic, where nothing else is said.

pub mod combine;
pub mod convert;
pub mod crt;
pub mod divide;
pub mod elementwise;
pub mod gadget;
pub mod linear;
pub mod matrix;
pub mod mixed_radix;
pub mod narrow;
pub mod ntt;
pub mod pairs;
pub mod periodic;
pub mod permute;
pub mod points;
pub mod rows;
pub mod sample;
pub mod sums;
pub mod tensor;

pub use combine::Combination;
pub use convert::{Rescaling, lifted};
pub use divide::Division;
pub use gadget::{Digits, Ending, Pair, RnsGadget};
pub use linear::{Root, Term, images_of_products};
pub use matrix::IntegerMatrix;
pub use mixed_radix::Composition;
pub use narrow::NarrowPairs;
pub use pairs::PolyPairs;
pub use periodic::PeriodicPoly;
pub use points::{AtPoints, PointProduct, PointProducts};
pub use rows::fourier;
pub use sample::{mask, secret_uniform};
pub use sums::Image;
pub use tensor::{phase, phase_coefficients, tensor, tensor_add, tensors};

use crate::RnsBasis;
use std::cell::Cell;

thread_local! {
    /// Operations inside one another, and operations that this thread began outside of any.
    static CROSSINGS: Cell<(u32, u64)> = const { Cell::new((0, 0)) };
}

/// How many operations this thread has called from outside the crate.
pub fn crossings() -> u64 {
    CROSSINGS.get().1
}

/// One operation of the seam, until it is dropped.
pub(crate) struct Crossing;

impl Crossing {
    pub(crate) fn begin() -> Self {
        let (depth, count) = CROSSINGS.get();
        CROSSINGS.set((depth + 1, count + u64::from(depth == 0)));
        Self
    }
}

impl Drop for Crossing {
    fn drop(&mut self) {
        let (depth, count) = CROSSINGS.get();
        CROSSINGS.set((depth - 1, count));
    }
}

/// Whether `basis` begins with the primes of `first`.
fn begins_with(basis: &RnsBasis, first: &RnsBasis) -> bool {
    basis.degree() == first.degree()
        && basis.len() >= first.len()
        && basis.primes().zip(first.primes()).all(|(a, b)| a == b)
}

/// Words of several polynomials, cut into runs of `size`: for each run, that of every polynomial.
fn runs<'a>(words: impl Iterator<Item = &'a mut [u64]>, size: usize) -> Vec<Vec<&'a mut [u64]>> {
    let mut runs: Vec<Vec<&mut [u64]>> = Vec::new();
    for words in words {
        for (at, run) in words.chunks_mut(size).enumerate() {
            match runs.get_mut(at) {
                Some(all) => all.push(run),
                None => runs.push(vec![run]),
            }
        }
    }
    runs
}

/// How many of `limbs` target primes share one reading of a conversion's `sources`. One at a time, so that what is
/// written stays in the second cache, unless the sources are many; no more than leaves every thread its share.
fn group(limbs: usize, sources: usize) -> usize {
    (limbs / crate::threads::count()).clamp(1, if sources > 4 { 4 } else { 1 })
}
