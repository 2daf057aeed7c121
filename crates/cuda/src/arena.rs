//! Device memory that is used again: what a result gives back, the next one of its size class gets.
//!
//! All work goes through one queue, so memory can be handed on while the queue still has to do with it: what comes later
//! is done later. Nothing is given back to the driver before it says that there is no more.

use crate::driver::{Address, Driver, Launch};
use crate::error::{CudaError, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A device with its pool.
#[derive(Debug)]
pub(crate) struct Core {
    driver: Box<dyn Driver>,
    pool: Mutex<Pool>,
    /// Bytes that the driver gave, and the most that it may be asked for.
    taken: AtomicUsize,
    limit: AtomicUsize,
}

#[derive(Debug, Default)]
struct Pool {
    /// By bytes of the class.
    free: BTreeMap<usize, Vec<Address>>,
    held: usize,
    reused: u64,
}

/// The class of a size: four steps from a power of two to the next, so that at most a fifth is unused.
fn class(bytes: usize) -> usize {
    let bytes = bytes.max(256);
    let step = (bytes.next_power_of_two() / 8).max(256);
    bytes.div_ceil(step) * step
}

impl Core {
    pub(crate) fn new(driver: Box<dyn Driver>) -> Arc<Self> {
        Arc::new(Self {
            driver,
            pool: Mutex::default(),
            taken: AtomicUsize::new(0),
            limit: AtomicUsize::new(usize::MAX),
        })
    }

    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.driver
    }

    fn pool(&self) -> std::sync::MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for `words` words, of unspecified content.
    pub(crate) fn memory(self: &Arc<Self>, words: usize) -> Result<Arc<Memory>> {
        let bytes = if self.driver.exact() { (8 * words).max(16) } else { class(8 * words) };
        let kept = {
            let mut pool = self.pool();
            let kept = pool.free.get_mut(&bytes).and_then(Vec::pop);
            if kept.is_some() {
                pool.held -= bytes;
                pool.reused += 1;
            }
            kept
        };
        let address = match kept {
            Some(address) => address,
            None => match self.allocate(bytes) {
                Err(CudaError::OutOfMemory { .. }) if self.empty() > 0 => {
                    self.driver.synchronize()?;
                    self.allocate(bytes)?
                }
                other => other?,
            },
        };
        Ok(Arc::new(Memory { core: self.clone(), address, words, bytes }))
    }

    /// The same with these words in it.
    pub(crate) fn upload(self: &Arc<Self>, words: &[u64]) -> Result<Arc<Memory>> {
        let memory = self.memory(words.len())?;
        // SAFETY: the memory is as long as the words.
        unsafe { self.driver.upload(memory.address, words) }?;
        Ok(memory)
    }

    /// Memory from the driver, within the limit.
    fn allocate(&self, bytes: usize) -> Result<Address> {
        let limit = self.limit.load(Ordering::Relaxed);
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let got = if taken.saturating_add(bytes) > limit {
            Err(CudaError::OutOfMemory { wanted: bytes, free: limit.saturating_sub(taken), total: limit })
        } else {
            self.driver.allocate(bytes)
        };
        got.inspect_err(|_| {
            self.taken.fetch_sub(bytes, Ordering::Relaxed);
        })
    }

    /// Gives memory back to the driver.
    fn free(&self, at: Address, bytes: usize) {
        self.driver.free(at, bytes);
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The most bytes that may be taken of the device. What is taken already stays.
    pub(crate) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
        self.empty();
    }

    /// Bytes that can still be had.
    pub(crate) fn available(&self) -> usize {
        let left = self.limit.load(Ordering::Relaxed).saturating_sub(self.taken.load(Ordering::Relaxed));
        self.driver.available().min(left)
    }

    /// Gives all unused memory back to the driver, and says how much it was.
    fn empty(&self) -> usize {
        let mut pool = self.pool();
        let free = std::mem::take(&mut pool.free);
        for (bytes, addresses) in free {
            addresses.into_iter().for_each(|at| self.free(at, bytes));
        }
        std::mem::take(&mut pool.held)
    }

    /// Bytes that wait in the pool, and how often memory was used again.
    pub(crate) fn pooled(&self) -> (usize, u64) {
        let pool = self.pool();
        (pool.held, pool.reused)
    }

    /// Starts a kernel with one plain argument.
    ///
    /// # Safety
    /// As [`Driver::launch`].
    pub(crate) unsafe fn launch<A: bytemuck::NoUninit>(
        &self,
        kernel: &str,
        grid: [usize; 3],
        threads: usize,
        shared_words: usize,
        arguments: &A,
    ) -> Result<()> {
        let too_many = || CudaError::Mismatch("a launch of more blocks than a grid has: split the batch");
        let [Ok(x), Ok(y), Ok(z)] = grid.map(u32::try_from) else { return Err(too_many()) };
        if x > i32::MAX as u32 || y > 65_535 || z > 65_535 {
            return Err(too_many());
        }
        if x == 0 || y == 0 || z == 0 {
            return Ok(());
        }
        let arguments = bytemuck::bytes_of(arguments);
        let launch = Launch { kernel, grid: [x, y, z], threads: threads as u32, shared: 8 * shared_words, arguments };
        // SAFETY: the caller's.
        unsafe { self.driver.launch(&launch) }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.empty();
    }
}

/// Words on the device.
#[derive(Debug)]
pub(crate) struct Memory {
    core: Arc<Core>,
    address: Address,
    words: usize,
    bytes: usize,
}

impl Memory {
    pub(crate) fn address(&self) -> Address {
        self.address
    }

    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// Copies words out, from word `first` on, and waits.
    pub(crate) fn download(&self, first: usize, words: &mut [u64]) -> Result<()> {
        assert!(first + words.len() <= self.words, "words beyond the memory");
        // SAFETY: they are inside.
        unsafe { self.core.driver.download(words, self.address + 8 * first as u64) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.core.driver.exact() {
            self.core.free(self.address, self.bytes);
            return;
        }
        let mut pool = self.core.pool();
        pool.held += self.bytes;
        pool.free.entry(self.bytes).or_default().push(self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn classes_hold_and_waste_little() {
        for bytes in (1..100_000).chain([1 << 20, (1 << 20) + 1, 786_432, 917_504]) {
            let class = class(bytes);
            assert!(class >= bytes && class.is_multiple_of(256), "{bytes}");
            assert!(bytes < 2048 || class * 4 <= bytes * 5, "{bytes} in {class}");
        }
    }
}
