//! What a device has to do for us: memory, copies, launches. Two implementations: a card, and the emulator.

#[cfg(any(unix, windows))]
mod card;
#[cfg(feature = "emulate")]
pub(crate) mod emulator;
pub(crate) mod image;
#[cfg(any(unix, windows))]
mod nvrtc;

use crate::error::Result;
use image::Kernels;
use std::fmt::Debug;

/// An address in the device's memory.
pub(crate) type Address = u64;

/// The cards that the driver shows.
#[cfg(any(unix, windows))]
pub(crate) use card::devices;

/// Opens card `index`.
#[cfg(any(unix, windows))]
pub(crate) fn open(index: usize, kernels: &Kernels) -> Result<Box<dyn Driver>> {
    Ok(Box::new(card::Card::open(index, kernels)?))
}

/// A cubin by NVRTC, or what it says of the source.
#[cfg(any(unix, windows))]
use nvrtc::compile;

/// What a machine says on which no library can be loaded.
#[cfg(not(any(unix, windows)))]
mod nowhere {
    use super::{Driver, Info, Kernels, Result};
    use crate::CudaError;

    pub(crate) fn devices() -> Result<Vec<Info>> {
        Err(CudaError::NoDriver)
    }

    pub(crate) fn open(_: usize, kernels: &Kernels) -> Result<Box<dyn Driver>> {
        kernels.image((0, 0)).and(Err(CudaError::NoDriver))
    }

    pub(crate) fn compile(_: &str, _: (u32, u32)) -> std::result::Result<Vec<u8>, String> {
        Err("nothing is compiled on this machine".into())
    }
}
#[cfg(not(any(unix, windows)))]
pub(crate) use nowhere::{compile, devices, open};

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The card's name; "emulator" for the emulator.
    pub name: String,
    /// Compute capability, major and minor; (0, 0) for the emulator.
    pub capability: (u32, u32),
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of memory.
    pub memory: usize,
    /// Bytes of shared memory that one block may have.
    pub shared: usize,
    /// Bytes of the second-level cache.
    pub l2: usize,
    /// Whether arithmetic in doubles is worth its while: at a sixteenth of single precision's rate it is not.
    pub doubles: bool,
    /// Whether kernels run on the processor: answers are the card's, times are not.
    pub emulated: bool,
}

/// One launch: a kernel's name, its shape, and the bytes of its one argument.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(any(unix, windows)), expect(dead_code, reason = "nothing launches there"))]
pub(crate) struct Launch<'a> {
    pub kernel: &'a str,
    pub grid: [u32; 3],
    pub threads: u32,
    pub shared: usize,
    pub arguments: &'a [u8],
}

/// What a launch did, as the emulator counts it. Twin of `Counts` in `emulator/emulator.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counted {
    /// Operations on doubles.
    pub doubles: u64,
    /// Words of polynomials that were read and written.
    pub accessed: u64,
    /// Of these, those that were not read, or not written, in this launch before: what passes between caches and memory at least.
    pub touched: u64,
    /// Words of keys that were read.
    pub keys: u64,
}

/// A launch that happened: the kernel's name, and the microseconds that the device took; none where it has no clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Launched {
    /// The kernel.
    pub kernel: String,
    /// By the device's clock, from the launch's turn in the queue to its end.
    pub us: Option<f64>,
    /// What it did; a card does not say.
    pub counted: Option<Counted>,
}

/// One device with one queue: what is asked of it happens in that order.
pub(crate) trait Driver: Debug + Send + Sync {
    /// What it is.
    fn info(&self) -> &Info;

    /// Memory of `bytes` > 0, at a multiple of 256 on a card and of 16 in the emulator.
    fn allocate(&self, bytes: usize) -> Result<Address>;

    /// Gives back what `allocate` gave, with the same size. What the queue still has to do with it is done before.
    fn free(&self, at: Address, bytes: usize);

    /// Bytes free, as far as the device can tell.
    fn available(&self) -> usize;

    /// Whether memory is to be exactly as large as it was asked for, so that accesses beyond it are found.
    fn exact(&self) -> bool;

    /// Copies words to the device; the source may be reused at once.
    ///
    /// # Safety
    /// `to` has room for them.
    unsafe fn upload(&self, to: Address, words: &[u64]) -> Result<()>;

    /// Copies words from the device, and waits for them.
    ///
    /// # Safety
    /// `from` has as many.
    unsafe fn download(&self, words: &mut [u64], from: Address) -> Result<()>;

    /// Copies on the device.
    ///
    /// # Safety
    /// Both have as many bytes, and do not overlap.
    unsafe fn copy(&self, to: Address, from: Address, bytes: usize) -> Result<()>;

    /// Starts a kernel.
    ///
    /// # Safety
    /// The arguments are those of this kernel, and whatever it reads or writes by them lives until the queue is past it.
    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<()>;

    /// Waits until the queue is empty.
    fn synchronize(&self) -> Result<()>;

    /// Microseconds that the device took for what `work` put into the queue; `None` where it has no clock.
    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<f64>>;

    /// The launches of `work` in their order, each with the microseconds that the device took for it.
    fn launches(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Vec<Launched>>;
}
