//! A device: where batches are, and what works on them.

use crate::arena::Core;
#[cfg(feature = "emulate")]
use crate::driver::emulator::{Emulator, Trial};
use crate::driver::image::Kernels;
use crate::driver::{self, Info, Launched};
use crate::error::Result;
use crate::tables::PrimeTable;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A GPU, or the emulator of one. Clones are the same device; it closes when nothing uses it any more.
#[derive(Clone, Debug)]
pub struct Device(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    core: Arc<Core>,
    /// By prime and degree.
    primes: Mutex<HashMap<(u64, usize), Arc<PrimeTable>>>,
    wave: AtomicUsize,
}

/// Least bytes of intermediate results that a key switch of a batch may use at a time.
const LEAST_WAVE: usize = 16 << 20;

impl Device {
    /// The cards of this machine, in the driver's order.
    ///
    /// # Errors
    /// [`CudaError::NoDriver`](crate::CudaError::NoDriver), [`CudaError::OldDriver`](crate::CudaError::OldDriver) or
    /// what the driver says.
    pub fn list() -> Result<Vec<Info>> {
        driver::devices()
    }

    /// Opens card `index`.
    ///
    /// # Errors
    /// As [`Device::list`], and [`CudaError::NoDevice`](crate::CudaError::NoDevice),
    /// [`CudaError::NoKernels`](crate::CudaError::NoKernels).
    pub fn open(index: usize, kernels: &Kernels) -> Result<Self> {
        Ok(Self::new(Core::new(driver::open(index, kernels)?)))
    }

    /// The kernels on the processor, with room for `memory` bytes: answers are a card's, times are not.
    #[cfg(feature = "emulate")]
    pub fn emulator(trial: Trial, memory: usize) -> Self {
        Self::new(Core::new(Box::new(Emulator::new(trial, memory))))
    }

    fn new(core: Arc<Core>) -> Self {
        let wave = (core.available() / 4).max(LEAST_WAVE);
        Self(Arc::new(Inner { core, primes: Mutex::default(), wave: AtomicUsize::new(wave) }))
    }

    /// What it is.
    pub fn info(&self) -> &Info {
        self.core().driver().info()
    }

    /// Bytes of its memory that are free now, within the limit; others on the same card take some too.
    pub fn free(&self) -> usize {
        self.core().available()
    }

    /// The most bytes of its memory that batches, keys and intermediate results may take together, where others need the
    /// rest. Beyond it [`CudaError::OutOfMemory`](crate::CudaError::OutOfMemory) names it as the total. What is taken already stays.
    pub fn set_limit(&self, bytes: usize) {
        self.core().set_limit(bytes);
        self.set_wave((self.free() / 4).max(LEAST_WAVE));
    }

    /// Waits until all that was asked for is done, and says what went wrong meanwhile.
    ///
    /// # Errors
    /// What the driver says.
    pub fn synchronize(&self) -> Result<()> {
        self.core().driver().synchronize()
    }

    /// Microseconds that the device took for what `work` asks of it; `None` from the emulator.
    ///
    /// # Errors
    /// Those of the work, and the driver's.
    pub fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<f64>> {
        self.core().driver().timed(work)
    }

    /// The launches of `work` in their order, with the time of each (none from the emulator). Events around every launch
    /// keep launches apart: their sum is more than [`Device::timed`] says.
    ///
    /// # Errors
    /// Those of the work, and the driver's.
    pub fn launches(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Vec<Launched>> {
        self.core().driver().launches(work)
    }

    /// Most bytes of intermediate results of a key switch: a larger batch is done in waves. A quarter of the memory
    /// that was free when the device was opened, if nothing else is said.
    pub fn set_wave(&self, bytes: usize) {
        self.0.wave.store(bytes, Ordering::Relaxed);
    }

    /// How many items of a batch one wave holds, at `words` words of intermediate results each.
    pub fn wave_items(&self, words: usize) -> usize {
        (self.0.wave.load(Ordering::Relaxed) / (8 * words)).max(1)
    }

    /// Bytes of device memory that wait to be used again, and how often memory was.
    pub fn pooled(&self) -> (usize, u64) {
        self.core().pooled()
    }

    /// Whether both are the same device.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0.core
    }

    /// The table of a prime, made when it is first asked for.
    pub(crate) fn prime(&self, limb: &sudare_ring::Limb) -> Result<Arc<PrimeTable>> {
        let mut primes = self.0.primes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = primes.get(&(limb.q(), limb.degree())) {
            return Ok(known.clone());
        }
        let table = Arc::new(PrimeTable::new(self.core(), limb)?);
        primes.insert((limb.q(), limb.degree()), table.clone());
        Ok(table)
    }
}
