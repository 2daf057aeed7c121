//! The kernels' own source on the processor: see `emulator/emulator.h` for what it checks.

use super::{Address, Driver, Info, Launch};
use crate::error::{CudaError, Result};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// What an emulator tries. Twin of `Trial` in `emulator/emulator.cpp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Trial {
    /// Where the random order of blocks and threads starts.
    pub seed: u64,
    /// The number of the barrier that every thread leaves out, counted from 0 in each block; −1 for none. A kernel
    /// that needs the barrier is then a race.
    pub leave_out: i64,
}

impl Default for Trial {
    fn default() -> Self {
        Self { seed: 1, leave_out: -1 }
    }
}

#[allow(clashing_extern_declarations)]
unsafe extern "C" {
    fn sudare_emulator_launch(
        name: *const c_char,
        grid: *const u32,
        threads: u32,
        shared: u64,
        arguments: *const c_void,
        bytes: u64,
        trial: *const Trial,
        message: *mut c_char,
        length: u64,
    ) -> c_int;
    fn sudare_emulator_barriers() -> i64;
    fn sudare_emulator_allocate(bytes: u64) -> *mut c_void;
    fn sudare_emulator_free(at: *mut c_void, bytes: u64);
    fn sudare_emulator_kernels(at: u64, name: *mut *const c_char) -> u64;
}

/// The names of all kernels.
pub fn kernels() -> Vec<String> {
    let mut name = std::ptr::null();
    // SAFETY: a number beyond the last writes no name.
    let count = unsafe { sudare_emulator_kernels(u64::MAX, &raw mut name) };
    let one = |at| {
        // SAFETY: there is such a kernel, and names are literals of the emulator.
        unsafe {
            sudare_emulator_kernels(at, &raw mut name);
            CStr::from_ptr(name).to_string_lossy().into_owned()
        }
    };
    (0..count).map(one).collect()
}

#[derive(Debug)]
pub(crate) struct Emulator {
    info: Info,
    trial: Trial,
    launches: AtomicU64,
    used: AtomicU64,
}

impl Emulator {
    /// An emulator with room for `memory` bytes, and shared memory as an H100 has it.
    pub(crate) fn new(trial: Trial, memory: usize) -> Self {
        let info = Info {
            name: "emulator".into(),
            capability: (0, 0),
            multiprocessors: 1,
            memory,
            shared: 227 << 10,
            l2: 0,
            emulated: true,
        };
        Self { info, trial, launches: AtomicU64::new(0), used: AtomicU64::new(0) }
    }

    /// How many barriers a thread of the last launch of this thread met.
    pub(crate) fn barriers() -> i64 {
        // SAFETY: reads a counter of this thread.
        unsafe { sudare_emulator_barriers() }
    }
}

impl Driver for Emulator {
    fn info(&self) -> &Info {
        &self.info
    }

    fn allocate(&self, bytes: usize) -> Result<Address> {
        let full = || CudaError::OutOfMemory { wanted: bytes, free: self.available(), total: self.info.memory };
        let used = self.used.fetch_add(bytes as u64, Ordering::Relaxed) as usize;
        if used + bytes > self.info.memory {
            self.used.fetch_sub(bytes as u64, Ordering::Relaxed);
            return Err(full());
        }
        // SAFETY: any size; null says that there is no memory.
        let at = unsafe { sudare_emulator_allocate(bytes as u64) };
        if at.is_null() { Err(full()) } else { Ok(at as u64) }
    }

    fn free(&self, at: Address, bytes: usize) {
        self.used.fetch_sub(bytes as u64, Ordering::Relaxed);
        // SAFETY: `allocate` gave it, with this size; launches are over when they return.
        unsafe { sudare_emulator_free(at as *mut c_void, bytes as u64) };
    }

    fn available(&self) -> usize {
        self.info.memory - self.used.load(Ordering::Relaxed) as usize
    }

    fn exact(&self) -> bool {
        true
    }

    unsafe fn upload(&self, to: Address, words: &[u64]) -> Result<()> {
        // SAFETY: device memory is memory, aligned to 16 bytes; the caller vouches for its size.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), to as *mut u64, words.len()) };
        Ok(())
    }

    unsafe fn download(&self, words: &mut [u64], from: Address) -> Result<()> {
        // SAFETY: as for `upload`.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u64, words.as_mut_ptr(), words.len()) };
        Ok(())
    }

    unsafe fn copy(&self, to: Address, from: Address, bytes: usize) -> Result<()> {
        // SAFETY: the caller vouches for both.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
        Ok(())
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        if launch.shared > self.info.shared {
            return Err(CudaError::Emulator(format!(
                "{} asks for {} bytes of shared memory",
                launch.kernel, launch.shared
            )));
        }
        let name = CString::new(launch.kernel).map_err(|_| CudaError::Emulator("a name with a zero byte".into()))?;
        // Another order for each launch.
        let seed =
            self.trial.seed.wrapping_add(self.launches.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x1_0000_0001));
        let trial = Trial { seed, ..self.trial };
        let mut message = [0u8; 320];
        // SAFETY: the shapes of the arrays are those of the declaration; the caller vouches for the arguments, and the
        // emulator compares their size with the kernel's.
        let code = unsafe {
            sudare_emulator_launch(
                name.as_ptr(),
                launch.grid.as_ptr(),
                launch.threads,
                launch.shared as u64,
                launch.arguments.as_ptr().cast(),
                launch.arguments.len() as u64,
                &raw const trial,
                message.as_mut_ptr().cast(),
                message.len() as u64,
            )
        };
        match code {
            0 => Ok(()),
            1 => Err(CudaError::Emulator(format!("there is no kernel {}", launch.kernel))),
            _ => {
                let text = CStr::from_bytes_until_nul(&message).map(|m| m.to_string_lossy().into_owned());
                Err(CudaError::Emulator(text.unwrap_or_default()))
            }
        }
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<f64>> {
        work().map(|()| None)
    }
}
