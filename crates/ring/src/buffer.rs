//! Cache-line-aligned word buffers, recycled per thread.
//!
//! A polynomial is often larger than the allocator's mapping threshold; fresh pages would cost
//! as much as the arithmetic on them. Each thread keeps a few freed buffers for reuse.

use crate::wipe::wipe;
use bytemuck::{Pod, Zeroable};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use zeroize::Zeroize;

/// One cache line.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u64; 8]);

/// Most bytes of freed buffers that one thread keeps: some dozens of ciphertexts of a large ring. Fresh
/// pages cost several times what the arithmetic on them does.
pub const KEEP_BYTES: usize = 256 << 20;

/// The limit now.
static KEEP: AtomicUsize = AtomicUsize::new(KEEP_BYTES);

/// Limits the freed buffers that each thread keeps, for work in little memory; the limit of before. What a thread has
/// kept already it keeps.
pub fn keep_at_most(bytes: usize) -> usize {
    KEEP.swap(bytes, Ordering::Relaxed)
}

#[derive(Default)]
struct FreeList {
    buffers: Vec<Vec<Line>>,
    bytes: usize,
}

thread_local! {
    static FREE: RefCell<FreeList> = RefCell::new(FreeList::default());
}

/// A 64-byte-aligned array of words.
pub struct Buffer {
    lines: Vec<Line>,
    len: usize,
}

impl Buffer {
    /// `len` words of unspecified (but initialised) content.
    pub fn dirty(len: usize) -> Self {
        let count = len.div_ceil(8);
        let reused = FREE
            .try_with(|free| {
                let mut free = free.borrow_mut();
                let at = free.buffers.iter().rposition(|b| b.len() == count)?;
                free.bytes -= count * 64;
                Some(free.buffers.swap_remove(at))
            })
            .ok()
            .flatten();
        Self { lines: reused.unwrap_or_else(|| vec![Line([0; 8]); count]), len }
    }

    /// `len` zero words.
    pub fn zeroed(len: usize) -> Self {
        let mut buffer = Self::dirty(len);
        buffer.fill(0);
        buffer
    }

    /// Keeps the first `len` words.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// A copy of `words`.
    pub fn from_slice(words: &[u64]) -> Self {
        let mut buffer = Self::dirty(words.len());
        buffer.copy_from_slice(words);
        buffer
    }
}

impl Deref for Buffer {
    type Target = [u64];
    #[inline]
    fn deref(&self) -> &[u64] {
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

impl Zeroize for Buffer {
    fn zeroize(&mut self) {
        wipe(self);
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        Self::from_slice(self)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        let bytes = lines.len() * 64;
        // During thread shutdown the list is gone and the buffer is simply freed.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if bytes > 0 && free.bytes + bytes <= KEEP.load(Ordering::Relaxed) {
                free.bytes += bytes;
                free.buffers.push(lines);
            }
        });
    }
}

/// Smallest block that is worth pages of its own.
const PAGES_FROM: usize = 1 << 21;

/// A large block of words that is written once and streamed often, as a bootstrapping key is: on
/// huge pages where the system gives them, so that a stream does not wait for address translations.
pub struct Pages {
    memory: PagesMemory,
    len: usize,
}

enum PagesMemory {
    Mapped(memmap2::MmapMut),
    Heap(Vec<Line>),
}

impl Pages {
    /// `len` zero words.
    pub fn zeroed(len: usize) -> Self {
        // More than the address space is refused below, as by any vector.
        let bytes = len.div_ceil(8).saturating_mul(64);
        let mapped = if bytes >= PAGES_FROM { memmap2::MmapMut::map_anon(bytes).ok() } else { None };
        let memory = match mapped {
            Some(map) => {
                // Advice: the memory is as good without it.
                #[cfg(target_os = "linux")]
                let _ = map.advise(memmap2::Advice::HugePage);
                PagesMemory::Mapped(map)
            }
            None => PagesMemory::Heap(vec![Line([0; 8]); len.div_ceil(8)]),
        };
        Self { memory, len }
    }
}

impl Deref for Pages {
    type Target = [u64];
    #[inline]
    fn deref(&self) -> &[u64] {
        let words = match &self.memory {
            PagesMemory::Mapped(map) => bytemuck::cast_slice(map),
            PagesMemory::Heap(lines) => bytemuck::cast_slice(lines),
        };
        &words[..self.len]
    }
}

impl DerefMut for Pages {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        let words = match &mut self.memory {
            PagesMemory::Mapped(map) => bytemuck::cast_slice_mut(map),
            PagesMemory::Heap(lines) => bytemuck::cast_slice_mut(lines),
        };
        &mut words[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_small_and_large() {
        for len in [0, 5, 1 << 12, (1 << 19) + 3] {
            let mut pages = Pages::zeroed(len);
            assert!(
                pages.len() == len && (pages.as_ptr() as usize).is_multiple_of(64) && pages.iter().all(|x| *x == 0)
            );
            pages.iter_mut().enumerate().for_each(|(i, x)| *x = i as u64);
            assert!(pages.iter().enumerate().all(|(i, x)| *x == i as u64));
        }
    }

    #[test]
    fn no_more_is_kept_than_stated() {
        // A thread of its own; pages that nobody writes take no memory.
        let kept = std::thread::spawn(|| {
            let quarter = KEEP_BYTES / 8 / 4;
            let buffers: Vec<Buffer> = (0..6).map(|_| Buffer::dirty(quarter)).collect();
            drop(buffers);
            FREE.with(|free| (free.borrow().bytes, free.borrow().buffers.len()))
        });
        assert_eq!(kept.join().unwrap(), (KEEP_BYTES, 4));
        let note = include_str!("../../../docs/design/0001-ring.md");
        let figure = format!("{} MiB of freed buffers", KEEP_BYTES >> 20);
        assert!(note.contains(&figure), "the note has another figure than {figure}");
    }

    #[test]
    fn aligned_and_reused() {
        let a = Buffer::from_slice(&[7; 24]);
        assert_eq!(a.as_ptr() as usize % 64, 0);
        assert_eq!(a.len(), 24);
        let at = a.as_ptr();
        drop(a);
        let b = Buffer::zeroed(24);
        assert_eq!(b.as_ptr(), at);
        assert!(b.iter().all(|x| *x == 0));
    }
}
