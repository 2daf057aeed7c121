//! A card, through NVIDIA's driver library, which is looked for when a card is opened.

use super::image::Kernels;
use super::{Address, Driver, Info, Launch, Launched};
use crate::error::{CudaError, LEAST_DRIVER, Result};
use cudarc::driver::result::{self as cuda, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Names the call that failed, in what the driver says.
fn said(call: &'static str) -> impl Fn(DriverError) -> CudaError {
    move |error| {
        let text = error.error_string().map(|t| t.to_string_lossy().into_owned());
        let reason = text.unwrap_or_else(|_| format!("error {:?}", error.0));
        if LOST.contains(&error.0) { CudaError::Lost { call, reason } } else { CudaError::Driver { call, reason } }
    }
}

/// After one of these the driver serves this process no more.
const LOST: [sys::CUresult; 11] = [
    sys::CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
    sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
    sys::CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
    sys::CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
    sys::CUresult::CUDA_ERROR_ASSERT,
    sys::CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
    sys::CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
    sys::CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
    sys::CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
    sys::CUresult::CUDA_ERROR_INVALID_PC,
    sys::CUresult::CUDA_ERROR_LAUNCH_FAILED,
];

/// Handles of the driver, which takes them from any thread.
#[derive(Debug)]
pub(crate) struct Card {
    info: Info,
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    module: sys::CUmodule,
    functions: Mutex<HashMap<String, Function>>,
    /// Launches between two events each, while somebody asks for them.
    recorded: Mutex<Option<Vec<Between>>>,
    /// Whether memory comes from the driver's pool, in the queue's order; some virtual cards have none.
    pools: bool,
    ring: Mutex<Ring>,
    /// The process that opened it: the driver serves no other.
    process: u32,
}

/// A launch's kernel, and the events before and after it.
type Between = (String, [sys::CUevent; 2]);

/// Pinned memory that uploads go through, so that their sources may be reused, or freed, when the call returns. The driver
/// stages ordinary memory itself on most machines, promises it on none, and is slower.
#[derive(Debug, Default)]
struct Ring {
    slots: [Option<Slot>; SLOTS],
    next: usize,
}

/// One pinned buffer, and the event after its last copy.
#[derive(Clone, Copy, Debug)]
struct Slot {
    memory: *mut u64,
    copied: sys::CUevent,
}

/// Buffers in a ring, and words of each: 2 MB.
const SLOTS: usize = 4;
const SLOT_WORDS: usize = 1 << 18;

/// The calling thread's context, which others (PyTorch, CuPy) count on, comes back when this goes.
struct Entered(Option<sys::CUcontext>);

impl Drop for Entered {
    fn drop(&mut self) {
        // SAFETY: what was current may be so again; null leaves none current. A failure has no remedy here.
        unsafe {
            let _ = cuda::ctx::set_current(self.0.unwrap_or(std::ptr::null_mut()));
        }
    }
}

/// The process that called the driver first; the driver does not survive a fork.
static PROCESS: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Copy, Debug)]
struct Function {
    handle: sys::CUfunction,
    /// Most shared memory that it was allowed.
    shared: usize,
}

// SAFETY: the driver's functions may be called from any thread with any handle, after the context was made current
// there; every method does that.
unsafe impl Send for Card {}
// SAFETY: as above; the only state of our own is behind a lock.
unsafe impl Sync for Card {}

/// The cards that the driver shows.
pub(crate) fn devices() -> Result<Vec<Info>> {
    start()?;
    let count = cuda::device::get_count().map_err(said("cuDeviceGetCount"))?;
    (0..count).map(|i| describe(cuda::device::get(i).map_err(said("cuDeviceGet"))?)).collect()
}

/// Loads the library and asks for its version.
fn start() -> Result<()> {
    // SAFETY: asks whether the library can be loaded.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    let first = PROCESS.compare_exchange(0, std::process::id(), Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err_and(|process| process != std::process::id()) {
        return Err(CudaError::Forked);
    }
    cuda::init().map_err(|error| match error.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => CudaError::NoDevice { index: 0, count: 0 },
        _ => said("cuInit")(error),
    })?;
    let mut version = 0;
    // SAFETY: writes one number.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_err(said("cuDriverGetVersion"))?;
    if version < LEAST_DRIVER { Err(CudaError::OldDriver { found: version }) } else { Ok(()) }
}

fn describe(device: sys::CUdevice) -> Result<Info> {
    let attribute = |which| {
        // SAFETY: the device came from the driver.
        unsafe { cuda::device::get_attribute(device, which) }.map_err(said("cuDeviceGetAttribute"))
    };
    let number = |which| {
        let found = attribute(which)?;
        u32::try_from(found)
            .map_err(|_| CudaError::Driver { call: "cuDeviceGetAttribute", reason: format!("{which:?} is {found}") })
    };
    Ok(Info {
        name: cuda::device::get_name(device).map_err(said("cuDeviceGetName"))?,
        capability: (
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        // SAFETY: the device came from the driver.
        memory: unsafe { cuda::device::total_mem(device) }.map_err(said("cuDeviceTotalMem"))?,
        shared: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize,
        l2: number(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
        // FP32 runs 2 times as fast on cards for computing centres and 32 or 64 times on others.
        doubles: number(Attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)? < 16,
        emulated: false,
    })
}

impl Card {
    /// Card number `index`, with its kernels loaded.
    pub(crate) fn open(index: usize, kernels: &Kernels) -> Result<Self> {
        let all = devices()?;
        let Some(info) = all.get(index).cloned() else {
            return Err(CudaError::NoDevice { index, count: all.len() });
        };
        let device = cuda::device::get(index as c_int).map_err(said("cuDeviceGet"))?;
        // SAFETY: the device came from the driver.
        let pools =
            unsafe { cuda::device::get_attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) };
        let pools = pools.is_ok_and(|found| found != 0);
        let image = kernels.image(info.capability)?;
        // SAFETY: the device came from the driver; `drop` releases what is retained and made here.
        unsafe {
            let context = cuda::primary_ctx::retain(device).map_err(said("cuDevicePrimaryCtxRetain"))?;
            let made = || {
                let _entered = enter(context)?;
                let stream =
                    cuda::stream::create(cuda::stream::StreamKind::NonBlocking).map_err(said("cuStreamCreate"))?;
                // The loader wants PTX to end in a zero; other images know their length.
                let mut image = image;
                image.push(0);
                let module = cuda::module::load_data(image.as_ptr().cast()).map_err(|e| CudaError::NoKernels {
                    capability: info.capability,
                    reason: said("cuModuleLoadData")(e).to_string(),
                });
                module.map(|module| (stream, module)).inspect_err(|_| {
                    let _ = cuda::stream::destroy(stream);
                })
            };
            match made() {
                Ok((stream, module)) => Ok(Self {
                    info: all[index].clone(),
                    device,
                    context,
                    stream,
                    module,
                    functions: Mutex::default(),
                    recorded: Mutex::default(),
                    pools,
                    ring: Mutex::default(),
                    process: std::process::id(),
                }),
                Err(error) => {
                    let _ = cuda::primary_ctx::release(device);
                    Err(error)
                }
            }
        }
    }

    /// Makes the card's context this thread's until the answer is dropped.
    fn enter(&self) -> Result<Entered> {
        if self.process != std::process::id() {
            return Err(CudaError::Forked);
        }
        // SAFETY: the context lives as long as this.
        unsafe { enter(self.context) }
    }

    /// Copies words through a pinned buffer that nothing is copied from any more.
    ///
    /// # Safety
    /// `to` has room for them, and they fit a buffer.
    unsafe fn stage(&self, to: Address, words: &[u64]) -> Result<()> {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let next = ring.next;
        ring.next = (next + 1) % SLOTS;
        // SAFETY: a buffer is written only after the copy from it is done, and lives until the card is dropped.
        unsafe {
            let slot = match ring.slots[next] {
                Some(slot) => {
                    cuda::event::synchronize(slot.copied).map_err(said("cuEventSynchronize"))?;
                    slot
                }
                None => {
                    let memory: *mut u64 = cuda::malloc_host(8 * SLOT_WORDS, 0).map_err(said("cuMemHostAlloc"))?.cast();
                    let copied = cuda::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).map_err(|error| {
                        let _ = cuda::free_host(memory.cast());
                        said("cuEventCreate")(error)
                    })?;
                    *ring.slots[next].insert(Slot { memory, copied })
                }
            };
            let pinned = std::slice::from_raw_parts_mut(slot.memory, words.len());
            pinned.copy_from_slice(words);
            cuda::memcpy_htod_async(to, pinned, self.stream).map_err(said("cuMemcpyHtoDAsync"))?;
            self.record(slot.copied)
        }
    }

    /// Two events of the device's clock, which whoever asked destroys.
    fn events(&self) -> Result<[sys::CUevent; 2]> {
        let one = || cuda::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(said("cuEventCreate"));
        Ok([one()?, one()?])
    }

    /// Puts an event into the queue.
    fn record(&self, event: sys::CUevent) -> Result<()> {
        // SAFETY: the event and the queue live; `destroy` comes after the last use.
        unsafe { cuda::event::record(event, self.stream) }.map_err(said("cuEventRecord"))
    }

    /// The function of a name, allowed so much shared memory. The context is entered.
    fn function(&self, name: &str, shared: usize) -> Result<sys::CUfunction> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = functions.get(name).filter(|f| f.shared >= shared) {
            return Ok(known.handle);
        }
        let text =
            CString::new(name).map_err(|e| CudaError::Driver { call: "cuModuleGetFunction", reason: e.to_string() })?;
        // SAFETY: the module lives as long as this, and the function with it.
        unsafe {
            let handle = cuda::module::get_function(self.module, text).map_err(said("cuModuleGetFunction"))?;
            let set = |attribute, value| {
                cuda::function::set_function_attribute(handle, attribute, value).map_err(said("cuFuncSetAttribute"))
            };
            set(sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as c_int)?;
            if shared > 0 {
                // As many blocks at a time as were planned for: the driver's own choice may leave more to the cache.
                set(sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100)?;
            }
            functions.insert(name.into(), Function { handle, shared });
            Ok(handle)
        }
    }
}

/// Microseconds between two events, the second of which is waited for.
fn elapsed([from, to]: [sys::CUevent; 2]) -> Result<f64> {
    // SAFETY: both were recorded, and live.
    unsafe {
        cuda::event::synchronize(to).map_err(said("cuEventSynchronize"))?;
        cuda::event::elapsed(from, to).map(|ms| f64::from(ms) * 1e3).map_err(said("cuEventElapsedTime"))
    }
}

fn destroy(events: [sys::CUevent; 2]) {
    // SAFETY: nothing uses them any more. A failure leaves them to the process's end.
    events.into_iter().for_each(|event| unsafe {
        let _ = cuda::event::destroy(event);
    });
}

/// Makes a context this thread's until the answer is dropped.
///
/// # Safety
/// The context lives.
unsafe fn enter(context: sys::CUcontext) -> Result<Entered> {
    let before = cuda::ctx::get_current().map_err(said("cuCtxGetCurrent"))?;
    // SAFETY: the caller vouches for it.
    unsafe { cuda::ctx::set_current(context) }.map_err(said("cuCtxSetCurrent"))?;
    Ok(Entered(before))
}

impl Drop for Card {
    fn drop(&mut self) {
        // Of a process that was forked nothing is the driver's.
        let Ok(_entered) = self.enter() else { return };
        let ring = self.ring.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: `open` and `stage` made them; nothing can use them any more. Failures at the end of a process have no remedy.
        unsafe {
            let _ = cuda::stream::synchronize(self.stream);
            for slot in ring.slots.iter().flatten() {
                let _ = cuda::event::destroy(slot.copied);
                let _ = cuda::free_host(slot.memory.cast());
            }
            let _ = cuda::module::unload(self.module);
            let _ = cuda::stream::destroy(self.stream);
            let _ = cuda::primary_ctx::release(self.device);
        }
    }
}

impl Driver for Card {
    fn info(&self) -> &Info {
        &self.info
    }

    fn allocate(&self, bytes: usize) -> Result<Address> {
        let _entered = self.enter()?;
        // SAFETY: any size; the driver says what it cannot give.
        let made =
            unsafe { if self.pools { cuda::malloc_async(self.stream, bytes) } else { cuda::malloc_sync(bytes) } };
        made.map_err(|error| match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                CudaError::OutOfMemory { wanted: bytes, free: self.available(), total: self.info.memory }
            }
            _ => said(if self.pools { "cuMemAllocAsync" } else { "cuMemAlloc" })(error),
        })
    }

    fn free(&self, at: Address, _bytes: usize) {
        let Ok(_entered) = self.enter() else { return };
        // SAFETY: `allocate` gave it, and the queue frees it in its turn, or the driver waits for all queues first. A failure
        // leaves the memory to the process's end.
        unsafe {
            let _ = if self.pools { cuda::free_async(at, self.stream) } else { cuda::free_sync(at) };
        }
    }

    fn available(&self) -> usize {
        let Ok(_entered) = self.enter() else { return 0 };
        cuda::mem_get_info().map_or(0, |(free, _)| free)
    }

    fn exact(&self) -> bool {
        false
    }

    unsafe fn upload(&self, to: Address, words: &[u64]) -> Result<()> {
        let _entered = self.enter()?;
        for (i, chunk) in words.chunks(SLOT_WORDS).enumerate() {
            // SAFETY: the caller vouches for the room.
            unsafe { self.stage(to + (8 * i * SLOT_WORDS) as u64, chunk) }?;
        }
        Ok(())
    }

    unsafe fn download(&self, words: &mut [u64], from: Address) -> Result<()> {
        let _entered = self.enter()?;
        // SAFETY: the caller vouches for the words; the slice is borrowed until they are there.
        unsafe { cuda::memcpy_dtoh_async(words, from, self.stream) }.map_err(said("cuMemcpyDtoHAsync"))?;
        self.synchronize()
    }

    unsafe fn copy(&self, to: Address, from: Address, bytes: usize) -> Result<()> {
        let _entered = self.enter()?;
        // SAFETY: the caller vouches for both.
        unsafe { cuda::memcpy_dtod_async(to, from, bytes, self.stream) }.map_err(said("cuMemcpyDtoDAsync"))
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        let _entered = self.enter()?;
        let function = self.function(launch.kernel, launch.shared)?;
        let [x, y, z] = launch.grid;
        let mut arguments = [launch.arguments.as_ptr().cast_mut().cast::<c_void>()];
        let mut start = || {
            // SAFETY: the driver copies the one argument, whose bytes the caller vouches for, before it returns.
            unsafe {
                cuda::launch_kernel(
                    function,
                    (x, y, z),
                    (launch.threads, 1, 1),
                    launch.shared as u32,
                    self.stream,
                    &mut arguments,
                )
            }
            .map_err(said("cuLaunchKernel"))
        };
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(list) = recorded.as_mut() else {
            drop(recorded);
            return start();
        };
        let events = self.events()?;
        list.push((launch.kernel.into(), events));
        self.record(events[0])?;
        start()?;
        self.record(events[1])
    }

    fn synchronize(&self) -> Result<()> {
        let _entered = self.enter()?;
        // SAFETY: the stream lives as long as this.
        unsafe { cuda::stream::synchronize(self.stream) }.map_err(said("cuStreamSynchronize"))
    }

    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<f64>> {
        let _entered = self.enter()?;
        let events = self.events()?;
        let run = self.record(events[0]).and_then(|()| work()).and_then(|()| self.record(events[1]));
        let us = run.and_then(|()| elapsed(events));
        destroy(events);
        us.map(Some)
    }

    fn launches(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Vec<Launched>> {
        let _entered = self.enter()?;
        let list = || self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        *list() = Some(Vec::new());
        let done = work().and_then(|()| self.synchronize());
        let all = list().take().unwrap_or_default();
        let times: Result<_> = all
            .iter()
            .map(|(kernel, events)| Ok(Launched { kernel: kernel.clone(), us: Some(elapsed(*events)?), counted: None }))
            .collect();
        all.iter().for_each(|(_, events)| destroy(*events));
        done.and(times)
    }
}
