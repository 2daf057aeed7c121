//! A card, through NVIDIA's driver library, which is looked for when a card is opened.

use super::image::Kernels;
use super::{Address, Driver, Info, Launch};
use crate::error::{CudaError, LEAST_DRIVER, Result};
use cudarc::driver::result::{self as cuda, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute};
use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::sync::Mutex;

/// Names the call that failed, in what the driver says.
fn said(call: &'static str) -> impl Fn(DriverError) -> CudaError {
    move |error| {
        let text = error.error_string().map(|t| t.to_string_lossy().into_owned());
        CudaError::Driver { call, reason: text.unwrap_or_else(|_| format!("error {:?}", error.0)) }
    }
}

/// Handles of the driver, which takes them from any thread.
#[derive(Debug)]
pub(crate) struct Card {
    info: Info,
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    module: sys::CUmodule,
    functions: Mutex<HashMap<String, Function>>,
}

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
        let image = kernels.image(info.capability)?;
        // SAFETY: the device came from the driver; `drop` releases what is retained and made here.
        unsafe {
            let context = cuda::primary_ctx::retain(device).map_err(said("cuDevicePrimaryCtxRetain"))?;
            let made = || {
                cuda::ctx::set_current(context).map_err(said("cuCtxSetCurrent"))?;
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
                Ok((stream, module)) => {
                    Ok(Self { info: all[index].clone(), device, context, stream, module, functions: Mutex::default() })
                }
                Err(error) => {
                    let _ = cuda::primary_ctx::release(device);
                    Err(error)
                }
            }
        }
    }

    fn enter(&self) -> Result<()> {
        // SAFETY: the context lives as long as this.
        unsafe { cuda::ctx::set_current(self.context) }.map_err(said("cuCtxSetCurrent"))
    }

    /// The function of a name, allowed so much shared memory.
    fn function(&self, name: &str, shared: usize) -> Result<sys::CUfunction> {
        let mut functions = self.functions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = functions.get(name).filter(|f| f.shared >= shared) {
            return Ok(known.handle);
        }
        let text =
            CString::new(name).map_err(|e| CudaError::Driver { call: "cuModuleGetFunction", reason: e.to_string() })?;
        // SAFETY: the module lives as long as this, and the function with it.
        unsafe {
            let handle = cuda::module::get_function(self.module, text).map_err(said("cuModuleGetFunction"))?;
            let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            cuda::function::set_function_attribute(handle, attribute, shared as c_int)
                .map_err(said("cuFuncSetAttribute"))?;
            functions.insert(name.into(), Function { handle, shared });
            Ok(handle)
        }
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        // SAFETY: `open` made them; nothing can use them any more. Failures at the end of a process have no remedy.
        unsafe {
            let _ = self.enter();
            let _ = cuda::stream::synchronize(self.stream);
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
        self.enter()?;
        // SAFETY: any size; the driver says what it cannot give.
        unsafe { cuda::malloc_async(self.stream, bytes) }.map_err(|error| match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                CudaError::OutOfMemory { wanted: bytes, free: self.available(), total: self.info.memory }
            }
            _ => said("cuMemAllocAsync")(error),
        })
    }

    fn free(&self, at: Address, _bytes: usize) {
        // SAFETY: `allocate` gave it, and the queue frees it in its turn. A failure leaves the memory to the process's end.
        unsafe {
            let _ = self.enter();
            let _ = cuda::free_async(at, self.stream);
        }
    }

    fn available(&self) -> usize {
        self.enter().ok().and_then(|()| cuda::mem_get_info().ok()).map_or(0, |(free, _)| free)
    }

    fn exact(&self) -> bool {
        false
    }

    unsafe fn upload(&self, to: Address, words: &[u64]) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller vouches for the room. Ordinary memory is staged before the call returns.
        unsafe { cuda::memcpy_htod_async(to, words, self.stream) }.map_err(said("cuMemcpyHtoDAsync"))
    }

    unsafe fn download(&self, words: &mut [u64], from: Address) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller vouches for the words; the slice is borrowed until they are there.
        unsafe { cuda::memcpy_dtoh_async(words, from, self.stream) }.map_err(said("cuMemcpyDtoHAsync"))?;
        self.synchronize()
    }

    unsafe fn copy(&self, to: Address, from: Address, bytes: usize) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller vouches for both.
        unsafe { cuda::memcpy_dtod_async(to, from, bytes, self.stream) }.map_err(said("cuMemcpyDtoDAsync"))
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        self.enter()?;
        let function = self.function(launch.kernel, launch.shared)?;
        let [x, y, z] = launch.grid;
        let mut arguments = [launch.arguments.as_ptr().cast_mut().cast::<c_void>()];
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
    }

    fn synchronize(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: the stream lives as long as this.
        unsafe { cuda::stream::synchronize(self.stream) }.map_err(said("cuStreamSynchronize"))
    }

    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<f64>> {
        self.enter()?;
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
        let [from, to] = [cuda::event::create(flags), cuda::event::create(flags)];
        let (from, to) = (from.map_err(said("cuEventCreate"))?, to.map_err(said("cuEventCreate"))?);
        // SAFETY: both events were just made, and are destroyed after their last use.
        unsafe {
            let mut run = || {
                cuda::event::record(from, self.stream).map_err(said("cuEventRecord"))?;
                work()?;
                cuda::event::record(to, self.stream).map_err(said("cuEventRecord"))?;
                cuda::event::synchronize(to).map_err(said("cuEventSynchronize"))?;
                cuda::event::elapsed(from, to).map_err(said("cuEventElapsedTime"))
            };
            let milliseconds = run();
            let _ = cuda::event::destroy(from);
            let _ = cuda::event::destroy(to);
            milliseconds.map(|ms| Some(f64::from(ms) * 1e3))
        }
    }
}
