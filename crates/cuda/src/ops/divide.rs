//! Division of polynomials by part of their modulus, and changes of basis.

use super::gadget::{Lift, Start};
use super::{PARTS, exchange_words, part_kernel, part_threads};
use crate::arena::Memory;
use crate::batch::{Batch, Rows};
use crate::device::Device;
use crate::error::{CudaError, Result};
use crate::tables::{Conversions, Lifting, Primes, factors};
use bytemuck::NoUninit;
use std::sync::Arc;
use sudare_ring::{Eval, RnsBasis};

/// Twin of `Divide` in `switch.cuh`.
#[derive(Clone, Copy, Debug, NoUninit)]
#[repr(C)]
pub(super) struct Divide {
    pub sums: Rows,
    pub lowered: Rows,
    pub out: Rows,
    pub primes: u64,
    pub factors: u64,
    pub inverse_element: u32,
    pub pad: u32,
}

impl Divide {
    pub(super) fn launch(&self, division: &Division, polynomials: usize) -> Result<()> {
        let basis = division.kept();
        let (kernel, grid) = (part_kernel("divide", basis), [polynomials, PARTS, basis.len()]);
        // SAFETY: the rows are of polynomials over the primes that stay, which live until the queue is past them.
        unsafe { division.device.core().launch(&kernel, grid, part_threads(basis), exchange_words(basis), self) }
    }
}

/// ⌊c/D⌉ of polynomials over the primes that stay, then those of D: `sudare_ring::ops::Division` for batches.
#[derive(Debug)]
pub struct Division {
    device: Device,
    kept: RnsBasis,
    basis: RnsBasis,
    primes: Primes,
    conversions: Conversions,
    /// 1/D modulo each prime that stays.
    factors: Arc<Memory>,
}

impl Division {
    /// Division by the product of `tail`.
    ///
    /// # Errors
    /// [`CudaError::Ring`] if a prime stands on both sides, [`CudaError::Mismatch`] if there is nothing to divide by or
    /// nothing stays, [`CudaError::Degree`], [`CudaError::OutOfMemory`].
    pub fn new(device: &Device, kept: &RnsBasis, tail: &RnsBasis) -> Result<Self> {
        if kept.is_empty() || tail.is_empty() {
            return Err(CudaError::Mismatch(
                "a division by primes has to divide by at least one and to leave at least one",
            ));
        }
        let basis = kept.concat(tail)?;
        let primes = Primes::new(device, &basis)?;
        let lifting = Lifting {
            sources: (0..tail.len()).map(|i| (kept.len() + i, i)).collect(),
            targets: (0..kept.len()).map(|i| (i, i)).collect(),
        };
        let conversions = Conversions::new(device, &basis, &primes, &[lifting])?;
        let factors = factors(device, kept.moduli(), |m| Ok(m.inverse(tail.product_modulo(m))?))?;
        Ok(Self { device: device.clone(), kept: kept.clone(), basis, primes, conversions, factors })
    }

    /// The primes that stay.
    pub fn kept(&self) -> &RnsBasis {
        &self.kept
    }

    /// The primes that stay, then those of D.
    pub fn basis(&self) -> &RnsBasis {
        &self.basis
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    pub(super) fn primes(&self) -> &Primes {
        &self.primes
    }

    pub(super) fn factors(&self) -> u64 {
        self.factors.address()
    }

    /// From the limbs modulo D, after their first inverse layers, to the primes that stay, before their last layers.
    pub(super) fn lift(&self, tail: Rows, lowered: Rows, polynomials: usize) -> Result<()> {
        Lift {
            input: tail,
            out: lowered,
            primes: self.primes.at(0),
            conversions: self.conversions.address(),
            log_n: self.kept.degree().trailing_zeros(),
            words: 0,
        }
        .launch(&self.device, &self.kept, polynomials, &self.conversions)
    }

    /// Divides every polynomial of a batch.
    ///
    /// # Errors
    /// [`CudaError::Mismatch`] for polynomials over other primes, [`CudaError::SharedMemory`],
    /// [`CudaError::OutOfMemory`].
    pub fn apply(&self, batch: &Batch<Eval>) -> Result<Batch<Eval>> {
        if !batch.device().is(&self.device) || *batch.basis() != self.basis {
            return Err(CudaError::Mismatch(
                "a division takes polynomials over the primes and on the device that it was made for",
            ));
        }
        let (n, kept, gone) = (self.kept.degree(), self.kept.len(), self.basis.len() - self.kept.len());
        let polynomials = batch.len() * batch.parts();
        let out = Batch::dirty(&self.device, &self.kept, &self.primes, batch.parts(), batch.len())?;
        let wave = self.device.wave_items((kept + gone) * n).min(polynomials.max(1));
        let core = self.device.core();
        let (tail, lowered) = (core.memory(wave * gone * n)?, core.memory(wave * kept * n)?);
        for first in (0..polynomials).step_by(wave) {
            let now = wave.min(polynomials - first);
            let rows = batch.rows().from(first);
            let tails = Rows::even(&tail, gone * n);
            Start {
                a: rows,
                b: Rows::none(),
                out: tails,
                primes: self.primes.at(kept),
                first: kept as u32,
                product: 0,
            }
            .launch(&self.device, &self.kept, now, gone)?;
            self.lift(tails, Rows::even(&lowered, kept * n), now)?;
            let ends = Divide {
                sums: rows,
                lowered: Rows::even(&lowered, kept * n),
                out: out.rows().from(first),
                primes: self.primes.at(0),
                factors: self.factors(),
                inverse_element: 1,
                pad: 0,
            };
            ends.launch(self, now)?;
        }
        Ok(out)
    }
}
