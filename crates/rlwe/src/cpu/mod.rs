//! The processor: one ciphertext at a time, by the operations of [`sudare_ring::ops`], each with all threads.

mod blocks;
mod circuits;
mod linear;
mod map;
mod products;
mod rotations;
mod scaled;

pub use blocks::Blocks;
pub use map::{GiantStep, MapSteps, RootStep};
pub use rotations::narrowed;

use crate::backend::{Backend, Combination, Divisor, MapEnd, Over, Raise, ScaledProduct};
use crate::ciphertext::Ciphertext;
use crate::context::Context;
use crate::error::RlweError;
use crate::keys::KeySource;
use crate::params::Params;
use std::sync::Arc;
use sudare_ring::ops::PeriodicPoly;
use sudare_ring::{Eval, Poly};

/// The processor.
#[derive(Debug)]
pub struct Cpu {
    context: Context,
}

impl Cpu {
    /// With a server's keys.
    pub fn new(keys: impl Into<Arc<dyn KeySource>>) -> Self {
        Self { context: Context::new(keys) }
    }
}

/// It takes one ciphertext at a time.
fn alone(found: usize) -> RlweError {
    RlweError::Operands { operation: "a batch on the processor", left: found, right: 1 }
}

impl Backend for Cpu {
    type Ciphertext = Ciphertext;
    type Plaintext = Poly<Eval>;
    type Row = PeriodicPoly;

    fn context(&self) -> &Context {
        &self.context
    }

    fn prepare<E>(&self, _: usize, _: Over, make: impl FnOnce() -> Result<Poly<Eval>, E>) -> Result<Poly<Eval>, E> {
        make()
    }

    fn prepare_row<E>(
        &self,
        _: (usize, Over),
        _: usize,
        make: impl FnOnce() -> Result<PeriodicPoly, E>,
    ) -> Result<PeriodicPoly, E> {
        make()
    }

    fn width(&self, _: &Ciphertext) -> usize {
        1
    }

    fn join(&self, batches: &[&Ciphertext]) -> Result<Ciphertext, RlweError> {
        match batches {
            [one] => Ok((*one).clone()),
            more => Err(alone(more.len())),
        }
    }

    fn split(&self, batch: &Ciphertext, count: usize) -> Result<Vec<Ciphertext>, RlweError> {
        if count == 1 { Ok(vec![batch.clone()]) } else { Err(alone(count)) }
    }

    fn sum(&self, terms: &[(&Ciphertext, i64)]) -> Result<Ciphertext, RlweError> {
        match terms {
            [(a, value)] => Ok(Self::times_integer(a, *value)),
            [(a, 1), (b, 1)] => Ok(Self::combined(a, b, Poly::add, |_| ())),
            [(a, 1), (b, -1)] => Ok(Self::combined(a, b, Poly::sub, Poly::neg_assign)),
            [(a, e), (b, f)] => Ok(Self::weighted((a, *e), (b, *f))),
            more => Err(RlweError::Operands { operation: "a sum with weights", left: more.len(), right: 2 }),
        }
    }

    fn add_assign(&self, acc: &mut Ciphertext, b: &Ciphertext) -> Result<(), RlweError> {
        Self::accumulate(acc, b);
        Ok(())
    }

    fn mul_imaginary_unit(&self, a: &Ciphertext, minus: bool) -> Result<Ciphertext, RlweError> {
        let mut parts = a.parts().to_vec();
        parts.iter_mut().for_each(|part| part.mul_imaginary_unit(minus));
        Ok(a.with_parts(parts, a.level()))
    }

    fn add_plain(&self, a: &Ciphertext, p: &Poly<Eval>, minus: bool) -> Result<Ciphertext, RlweError> {
        Self::with_plain(a, p, minus)
    }

    fn mul_plain(&self, a: &Ciphertext, p: &Poly<Eval>, rescale: bool) -> Result<Ciphertext, RlweError> {
        Self::times_plain(a, p, rescale)
    }

    fn dot(&self, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<Ciphertext, RlweError> {
        Ok(self.products(a, b))
    }

    fn dot_assign(&self, acc: &mut Ciphertext, a: &[&Ciphertext], b: &[&Ciphertext]) -> Result<(), RlweError> {
        self.add_products(acc, a, b);
        Ok(())
    }

    fn dot_scaled(
        &self,
        a: &[&Ciphertext],
        b: &[&Ciphertext],
        by: &ScaledProduct<'_>,
    ) -> Result<Ciphertext, RlweError> {
        Self::scaled_products(a, b, by)
    }

    fn relinearize(&self, a: &Ciphertext, by: &Divisor<'_>) -> Result<Ciphertext, RlweError> {
        self.relinearized(a, by)
    }

    fn divide(&self, a: &Ciphertext, by: &Divisor<'_>) -> Result<Ciphertext, RlweError> {
        Self::divided(a, by)
    }

    fn drop_to(&self, a: &Ciphertext, params: &Params, level: usize) -> Result<Ciphertext, RlweError> {
        let low = a.at_level(level);
        match params.same(a.params()) {
            true => Ok(low.into_owned()),
            false => Ok(Ciphertext::new(params, a.key(), low.parts().to_vec(), level)),
        }
    }

    fn automorphisms(&self, a: &Ciphertext, elements: &[u64]) -> Result<Vec<Ciphertext>, RlweError> {
        match elements {
            [element] if *element != 1 => Ok(vec![self.image(a, *element)?]),
            _ => self.images(a, elements),
        }
    }

    fn sum_of_automorphisms(
        &self,
        a: &Ciphertext,
        elements: &[u64],
        mask: Option<&Poly<Eval>>,
    ) -> Result<Ciphertext, RlweError> {
        self.sum_of_images(a, elements, mask)
    }

    fn difference_of_automorphisms(
        &self,
        a: (&Ciphertext, u64),
        b: (&Ciphertext, u64),
    ) -> Result<Ciphertext, RlweError> {
        self.difference_of_images(a, b)
    }

    fn linear_maps(
        &self,
        sources: &[(&Ciphertext, MapEnd)],
        maps: &[(&MapSteps, &[Vec<PeriodicPoly>])],
        by: &Divisor<'_>,
    ) -> Result<Vec<Vec<Ciphertext>>, RlweError> {
        self.mapped(sources, maps, by)
    }

    fn combinations(
        &self,
        sums: &[Combination<'_, Ciphertext, PeriodicPoly>],
        level: usize,
    ) -> Result<Vec<Ciphertext>, RlweError> {
        self.combined_sums(sums, level)
    }

    fn raise(&self, a: &Ciphertext, by: &Raise) -> Result<Ciphertext, RlweError> {
        Self::raised(a, by)
    }

    fn block_products(
        &self,
        left: &[&Ciphertext],
        right: &[&Ciphertext],
        blocks: &Blocks,
    ) -> Result<Vec<Ciphertext>, RlweError> {
        self.products_of_blocks(left, right, blocks)
    }
}
