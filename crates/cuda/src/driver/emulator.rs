//! The kernels' own source on the processor: see `emulator/emulator.h` for what it checks.

use super::{Address, Counted, Driver, Info, Launch, Launched};
use crate::error::{CudaError, Result};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What an emulator tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Where the random order of blocks and threads starts.
    pub seed: u64,
    /// A kernel, and the number of the barrier (counted from 0 in each block) that every thread of it leaves out. A
    /// kernel that needs the barrier is then a race.
    pub leave_out: Option<(&'static str, u32)>,
    /// Whether primes below 2^50 are transformed by doubles, as on a card for computing centres, or by words as all others.
    pub doubles: bool,
}

impl Default for Trial {
    fn default() -> Self {
        Self { seed: 1, leave_out: None, doubles: true }
    }
}

/// Twin of `Trial` in `emulator/emulator.cpp`.
#[repr(C)]
struct Try {
    seed: u64,
    leave_out: i64,
}

unsafe extern "C" {
    fn sudare_emulator_launch(
        name: *const c_char,
        grid: *const u32,
        threads: u32,
        shared: u64,
        arguments: *const c_void,
        bytes: u64,
        trial: *const Try,
        counted: *mut Counted,
        message: *mut c_char,
        length: u64,
    ) -> c_int;
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
    /// Launches, while somebody asks for them.
    recorded: Mutex<Option<Vec<Launched>>>,
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
            doubles: trial.doubles,
            emulated: true,
        };
        Self { info, trial, launches: AtomicU64::new(0), used: AtomicU64::new(0), recorded: Mutex::default() }
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
        let left_out = self.trial.leave_out.filter(|(kernel, _)| *kernel == launch.kernel);
        let trial = Try { seed, leave_out: left_out.map_or(-1, |(_, number)| i64::from(number)) };
        let mut counted = Counted::default();
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
                &raw mut counted,
                message.as_mut_ptr().cast(),
                message.len() as u64,
            )
        };
        match code {
            0 => {
                if let Some(list) = self.recorded.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                    list.push(Launched { kernel: launch.kernel.into(), us: None, counted: Some(counted) });
                }
                Ok(())
            }
            1 => Err(CudaError::Emulator(format!("there is no kernel {}", launch.kernel))),
            _ => {
                let text = CStr::from_bytes_until_nul(&message)
                    .map_or(String::from_utf8_lossy(&message), CStr::to_string_lossy);
                Err(CudaError::Emulator(text.into_owned()))
            }
        }
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn timed(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<f64>> {
        work().map(|()| None)
    }

    fn launches(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Vec<Launched>> {
        let list = || self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        *list() = Some(Vec::new());
        let done = work();
        let all = list().take().unwrap_or_default();
        done.map(|()| all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Rows;

    /// A launch of `negate` on one polynomial of N words modulo 7, with what is changed in it.
    fn negate(n: u64, change: impl FnOnce(&mut [u64; 15])) -> Result<()> {
        let emulator = Emulator::new(Trial::default(), 1 << 20);
        let row = |at| [0, at, n, 1 << 32];
        let (words, prime) = (emulator.allocate(8 * n as usize)?, emulator.allocate(96)?);
        let mut arguments = [0; 15];
        arguments[..4].copy_from_slice(&row(words));
        arguments[8..12].copy_from_slice(&row(words));
        arguments[12] = prime;
        arguments[14] = u64::from(n.trailing_zeros());
        change(&mut arguments);
        let bytes = bytemuck::cast_slice(&arguments);
        let launch = Launch { kernel: "negate", grid: [2, 1, 1], threads: 256, shared: 0, arguments: bytes };
        // SAFETY: what is touched beyond a buffer is not mapped, and ends the launch.
        unsafe {
            emulator.upload(words, &vec![3; n as usize])?;
            emulator.upload(prime, &[7; 12])?;
            emulator.launch(&launch)
        }
    }

    #[test]
    fn the_argument_is_as_long_as_the_kernel_s() {
        assert_eq!(size_of::<[Rows; 3]>() + 24, 8 * 15);
        negate(1024, |_| ()).unwrap();
    }

    #[test]
    fn memory_beyond_a_buffer_is_a_fault() {
        // As many words more as a block works on.
        let both = |arguments: &mut [u64; 15]| [1, 9].into_iter().for_each(|at| arguments[at] += 8 * 512);
        let wrong = negate(1024, both).unwrap_err().to_string();
        assert!(wrong.contains("kernel negate, block (1, 0, 0)") && wrong.contains("in no buffer"), "{wrong}");
        let wrong = negate(1024, |arguments| arguments[1] += 8).unwrap_err().to_string();
        assert!(wrong.contains("is no multiple of 16"), "{wrong}");
        let wrong = negate(1024, |arguments| arguments[12] = 0).unwrap_err().to_string();
        assert!(wrong.contains("in no buffer"), "{wrong}");
    }

    /// Rows that overlap, so that a block, or a thread, writes what another one reads.
    #[test]
    fn races_in_device_memory_are_seen_in_any_order() {
        for (apart, blocks, what) in [(512, 2, "another block"), (2, 1, "another thread")] {
            for seed in 0..8 {
                let emulator = Emulator::new(Trial { seed, ..Trial::default() }, 1 << 20);
                let (words, prime) = (emulator.allocate(8 * 2048).unwrap(), emulator.allocate(96).unwrap());
                let mut arguments = [0; 15];
                arguments[..4].copy_from_slice(&[0, words, 1024, 1 << 32]);
                arguments[8..12].copy_from_slice(&[0, words + 8 * apart, 1024, 1 << 32]);
                (arguments[12], arguments[14]) = (prime, 10);
                let launch = Launch {
                    kernel: "negate",
                    grid: [blocks, 1, 1],
                    threads: 256,
                    shared: 0,
                    arguments: bytemuck::cast_slice(&arguments),
                };
                // SAFETY: the buffers are longer than what the kernel reads and writes.
                let fault = unsafe {
                    emulator.upload(words, &[3; 2048]).unwrap();
                    emulator.upload(prime, &[7; 12]).unwrap();
                    emulator.launch(&launch).unwrap_err().to_string()
                };
                assert!(fault.contains("a race in device memory") && fault.contains(what), "{fault}");
                emulator.free(words, 8 * 2048);
                emulator.free(prime, 96);
            }
        }
    }

    #[test]
    fn launches_that_no_kernel_has() {
        let emulator = Emulator::new(Trial::default(), 1 << 20);
        let launch = |kernel, threads, bytes: &[u8]| {
            let launch = Launch { kernel, grid: [1, 1, 1], threads, shared: 0, arguments: bytes };
            // SAFETY: refused before anything runs.
            unsafe { emulator.launch(&launch) }.unwrap_err().to_string()
        };
        assert!(launch("nothing", 1, &[]).contains("no kernel nothing"));
        assert!(launch("negate", 257, &[0; 120]).contains("up to 256 threads"));
        assert!(launch("negate", 256, &[0; 112]).contains("120 bytes"));
    }

    #[test]
    fn shared_memory_is_as_large_as_the_launch_asked_for() {
        let emulator = Emulator::new(Trial::default(), 1 << 24);
        let memory = emulator.allocate(1 << 20).unwrap();
        // A transform's part of 64 values, of a prime whose table is all zeros (family 0).
        let mut arguments = [0u64; 14];
        arguments[..4].copy_from_slice(&[0, memory, 1024, 1 << 32]);
        arguments[8..12].copy_from_slice(&[0, memory, 1024, 1 << 32]);
        arguments[12] = memory;
        let mut prime = [memory; 12];
        prime[11] = 0;
        let bytes = bytemuck::cast_slice(&arguments);
        let launch = |shared| Launch { kernel: "start_6", grid: [1, 1, 1], threads: 4, shared, arguments: bytes };
        // SAFETY: the buffer is longer than what the kernel reads and writes.
        unsafe {
            emulator.upload(memory, &vec![0; 1 << 17]).unwrap();
            emulator.upload(memory, &prime).unwrap();
            let wrong = emulator.launch(&launch(8 * 60)).unwrap_err().to_string();
            assert!(wrong.contains("is beyond the 60 of shared memory"), "{wrong}");
            assert!(emulator.launch(&launch(8 * 68)).is_ok());
        }
        emulator.free(memory, 1 << 20);
    }

    #[test]
    fn memory_is_counted() {
        let emulator = Emulator::new(Trial::default(), 4096);
        let first = emulator.allocate(4000).unwrap();
        assert_eq!(emulator.available(), 96);
        let full = emulator.allocate(97).unwrap_err();
        assert_eq!(full, CudaError::OutOfMemory { wanted: 97, free: 96, total: 4096 });
        emulator.free(first, 4000);
        assert_eq!(emulator.available(), 4096);
    }
}
