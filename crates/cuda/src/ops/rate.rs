//! What a device does at best: fused products of doubles, products of words, reads from its second-level cache. A design
//! rests on these; the lab measures them before anything else.

use crate::arena::Memory;
use crate::device::Device;
use crate::error::Result;
use bytemuck::NoUninit;
use std::sync::Arc;

/// Threads of a block.
const THREADS: usize = 256;
/// Operations of a thread in one round.
const ROUND: usize = 64;
/// Words that a block reads in one round: 32 KB.
const READ: usize = 1 << 12;
/// Independent chains of a thread. Twin of `CHAINS` in `rates.cuh`.
const CHAINS: u64 = 8;

/// Of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Fused products of doubles.
    Fp64,
    /// Products of 32-bit words, added to one.
    Imad,
    /// Products of 32-bit words, added to 64 bits.
    ImadWide,
    /// Bytes read, again and again from as many as there are blocks of 32 KB.
    Read,
}

impl Of {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Fp64, Self::Imad, Self::ImadWide, Self::Read];

    fn kernel(self) -> &'static str {
        match self {
            Self::Fp64 => "rate_fp64",
            Self::Imad => "rate_imad",
            Self::ImadWide => "rate_imad_wide",
            Self::Read => "rate_read",
        }
    }

    /// The constant factor; of reads, in how many blocks of words.
    fn factor(self, blocks: usize) -> u64 {
        match self {
            Self::Fp64 => 0.75f64.to_bits(),
            Self::Imad | Self::ImadWide => 0x9E37_79B1,
            Self::Read => blocks as u64,
        }
    }
}

/// Twin of `Rate` in `rates.cuh`.
#[derive(Clone, Copy, Debug, NoUninit)]
#[repr(C)]
struct Arguments {
    out: u64,
    input: u64,
    factor: u64,
    rounds: u64,
}

/// Work of one kind, to be timed.
#[derive(Debug)]
pub struct Rate {
    device: Device,
    of: Of,
    blocks: usize,
    rounds: usize,
    words: Arc<Memory>,
    out: Arc<Memory>,
}

/// The word that is read at a place.
fn word(at: u64) -> u64 {
    at.wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

impl Rate {
    /// `rounds` rounds of as many blocks as the next power of two says.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`](crate::CudaError::OutOfMemory).
    pub fn new(device: &Device, of: Of, blocks: usize, rounds: usize) -> Result<Self> {
        let blocks = blocks.max(1).next_power_of_two();
        let read = if of == Of::Read { blocks * READ } else { 0 };
        let words = device.core().upload(&(0..read as u64).map(word).collect::<Vec<_>>())?;
        let out = device.core().memory(blocks * THREADS)?;
        Ok(Self { device: device.clone(), of, blocks, rounds, words, out })
    }

    /// One launch.
    ///
    /// # Errors
    /// What the driver says.
    pub fn run(&mut self) -> Result<()> {
        let (out, input) = (self.out.address(), self.words.address());
        let arguments = Arguments { out, input, factor: self.of.factor(self.blocks), rounds: self.rounds as u64 };
        // SAFETY: a word of `out` for each thread, and 32 KB of `words` for each block of reads, which are a power of two;
        // both memories live as long as this.
        unsafe { self.device.core().launch(self.of.kernel(), [self.blocks, 1, 1], THREADS, 0, &arguments) }
    }

    /// Operations of one launch; bytes, of reads.
    pub fn amount(&self) -> usize {
        match self.of {
            Of::Read => self.blocks * self.rounds * READ * 8,
            _ => self.blocks * THREADS * self.rounds * ROUND,
        }
    }

    /// Bytes that are read again and again.
    pub fn bytes(&self) -> usize {
        8 * self.words.words()
    }

    /// How many of the words that the first and the last block left are not those that the processor computes.
    ///
    /// # Errors
    /// What went wrong on the device since the last wait.
    pub fn wrong(&self) -> Result<usize> {
        let mut wrong = 0;
        for block in [0, self.blocks - 1] {
            let mut got = [0; THREADS];
            self.out.download(block * THREADS, &mut got)?;
            wrong += (0..THREADS).filter(|&t| got[t] != self.expected(block, t)).count();
        }
        Ok(wrong)
    }

    fn expected(&self, block: usize, thread: usize) -> u64 {
        let number = (block * THREADS + thread) as u64;
        let steps = self.rounds * ROUND / CHAINS as usize;
        let factor = self.of.factor(self.blocks);
        match self.of {
            Of::Fp64 => (0..CHAINS).fold(0, |all, k| {
                let w = f64::from_bits(factor);
                let x = (0..steps).fold((number + k) as f64, |x, _| x.mul_add(w, w));
                all ^ x.to_bits().wrapping_add(k)
            }),
            Of::Imad => (0..CHAINS).fold(0u64, |all, k| {
                let w = factor as u32;
                let x = (0..steps).fold((number + k) as u32, |x, _| x.wrapping_mul(w).wrapping_add(w));
                all.wrapping_mul(3).wrapping_add(x.into())
            }),
            Of::ImadWide => (0..CHAINS).fold(0u64, |all, k| {
                let step = |x: u64, _| u64::from(x as u32).wrapping_mul(factor).wrapping_add(x);
                all.wrapping_mul(3).wrapping_add((0..steps).fold(number + k, step))
            }),
            Of::Read => (0..self.rounds as u64).fold(0u64, |all, round| {
                let from = ((block as u64 + 13 * round) & (factor - 1)) * READ as u64 + 2 * thread as u64;
                let pair = |k: u64| word(from + 512 * k) ^ word(from + 512 * k + 1);
                all.wrapping_add((0..CHAINS).fold(0u64, |sum, k| sum.wrapping_add(pair(k))))
            }),
        }
    }
}
