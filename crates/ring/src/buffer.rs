//! Cache-line-aligned word buffers, recycled.
//!
//! A polynomial is often larger than the allocator's mapping threshold; fresh pages cost as much as the arithmetic
//! on them. Each thread keeps freed small buffers for reuse, by their length. Those from a MiB on go to a store that all
//! threads share, which gives longer ones too: a ciphertext's polynomials lose a limb with each level.

use crate::memo::PerProcess;
use crate::wipe::wipe;
use bytemuck::{Pod, Zeroable};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use zeroize::Zeroize;

/// One cache line.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u64; 8]);

/// Most bytes of freed small buffers that one thread keeps. Fresh pages cost several times what the arithmetic on
/// them does.
pub const KEEP_BYTES: usize = 256 << 20;
/// Buffers from this size on are shared by all threads: polynomials of whole ciphertexts, of which hundreds may be in use
/// (an expansion), by any thread.
const SHARED_FROM: usize = 1 << 20;
/// Most bytes of freed large buffers that all threads keep together: what a bootstrap at N = 2^16 works in.
pub const KEEP_LARGE_BYTES: usize = 2 << 30;
/// A large buffer may be longer than what was asked for by this factor.
const LONGER: usize = 2;

/// The limits now: of each thread's small buffers, and of all large ones.
static KEEP: [AtomicUsize; 2] = [AtomicUsize::new(KEEP_BYTES), AtomicUsize::new(KEEP_LARGE_BYTES)];

/// A limit of kept buffers; the one of before holds again when this is dropped.
#[derive(Debug)]
#[must_use = "the limit ends with it"]
pub struct Kept([usize; 2]);

/// Limits the freed buffers that are kept, for work in little memory: the small ones of each thread to so many
/// bytes, and the large ones of all threads together to as many. What a thread has kept already it keeps.
pub fn keep_at_most(bytes: usize) -> Kept {
    let before = KEEP.each_ref().map(|limit| limit.swap(bytes, Ordering::Relaxed));
    drop(large().trim(bytes));
    Kept(before)
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEEP.iter().zip(self.0).for_each(|(limit, before)| limit.store(before, Ordering::Relaxed));
    }
}

#[derive(Default)]
struct FreeList {
    buffers: Vec<Pages>,
    bytes: usize,
}

impl FreeList {
    /// The buffer that was freed last among those of this size.
    fn take(&mut self, bytes: usize) -> Option<Pages> {
        let at = self.buffers.iter().rposition(|b| b.bytes() == bytes)?;
        self.bytes -= bytes;
        Some(self.buffers.swap_remove(at))
    }

    /// The smallest buffer that is long enough, and not too long.
    fn take_longer(&mut self, bytes: usize) -> Option<Pages> {
        let fits = |b: &Pages| (bytes..=LONGER * bytes).contains(&b.bytes());
        let all = self.buffers.iter().enumerate().rev().filter(|(_, b)| fits(b));
        let (at, found) = all.map(|(at, b)| (at, b.bytes())).min_by_key(|(_, bytes)| *bytes)?;
        self.bytes -= found;
        Some(self.buffers.remove(at))
    }

    fn keep(&mut self, buffer: Pages) {
        self.bytes += buffer.bytes();
        self.buffers.push(buffer);
    }

    /// Takes those that were freed first until the others are within a limit.
    fn trim(&mut self, limit: usize) -> Vec<Pages> {
        let mut count = 0;
        while self.bytes > limit && count < self.buffers.len() {
            self.bytes -= self.buffers[count].bytes();
            count += 1;
        }
        self.buffers.drain(..count).collect()
    }
}

thread_local! {
    static FREE: RefCell<FreeList> = RefCell::new(FreeList::default());
}

/// The large buffers of all threads. A forked process begins with none: a thread of its parent may have been in the
/// middle of the parent's list.
static LARGE: PerProcess<Mutex<FreeList>> = PerProcess::new();

fn large() -> MutexGuard<'static, FreeList> {
    // A list is whole between any two statements.
    LARGE.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// A 64-byte-aligned array of words.
pub struct Buffer {
    pages: Pages,
    len: usize,
}

impl Buffer {
    /// `len` words of unspecified (but initialised) content.
    pub fn dirty(len: usize) -> Self {
        let bytes = Pages::bytes_of(len);
        let reused = match bytes >= SHARED_FROM {
            true => large().take_longer(bytes),
            false => FREE.try_with(|free| free.borrow_mut().take(bytes)).ok().flatten(),
        };
        // Whole lines, so that any length of this size can take it.
        Self { pages: reused.unwrap_or_else(|| Pages::zeroed(len.next_multiple_of(8))), len }
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
        &self.pages[..self.len]
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.pages[..self.len]
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
        let pages = std::mem::replace(&mut self.pages, Pages::zeroed(0));
        let bytes = pages.bytes();
        let [small, most] = KEEP.each_ref().map(|limit| limit.load(Ordering::Relaxed));
        if bytes >= SHARED_FROM {
            let left = {
                let mut large = large();
                large.keep(pages);
                large.trim(most)
            };
            // Pages go back to the system while nobody waits for the list.
            drop(left);
        } else if bytes > 0 {
            // During thread shutdown the list is gone and the buffer is simply freed.
            let _ = FREE.try_with(|free| {
                let mut free = free.borrow_mut();
                if free.bytes + bytes <= small {
                    free.keep(pages);
                }
            });
        }
    }
}

/// Smallest block that is worth pages of its own.
const PAGES_FROM: usize = 1 << 21;

/// A block of words. A large one is on huge pages where the system gives them, so that a stream does not wait for
/// address translations, nor first use for thousands of faults.
pub struct Pages {
    memory: PagesMemory,
    len: usize,
}

enum PagesMemory {
    Mapped(memmap2::MmapMut),
    Heap(Vec<Line>),
}

impl Pages {
    /// Bytes of so many words, in whole cache lines. More than the address space is refused where it is asked for.
    fn bytes_of(len: usize) -> usize {
        len.div_ceil(8).saturating_mul(64)
    }

    /// `len` zero words.
    pub fn zeroed(len: usize) -> Self {
        let bytes = Self::bytes_of(len);
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

    /// Bytes in memory.
    fn bytes(&self) -> usize {
        match &self.memory {
            PagesMemory::Mapped(map) => map.len(),
            PagesMemory::Heap(lines) => lines.len() * 64,
        }
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
        // A thread of its own.
        let kept = std::thread::spawn(|| {
            let small = SHARED_FROM / 8 / 2;
            let count = KEEP_BYTES / 8 / small;
            let buffers: Vec<Buffer> = (0..count + 2).map(|_| Buffer::dirty(small)).collect();
            drop(buffers);
            FREE.with(|free| (free.borrow().bytes, free.borrow().buffers.len() == count))
        });
        assert_eq!(kept.join().unwrap(), (KEEP_BYTES, true));
        let note = include_str!("../../../docs/design/0001-ring.md");
        for bytes in [KEEP_BYTES, KEEP_LARGE_BYTES] {
            let figure = format!("{} MiB", bytes >> 20);
            assert!(note.contains(&figure), "the note has another figure than {figure}");
        }
    }

    /// A list gives the smallest that is long enough and not too long, and what is over its limit goes, the oldest first.
    #[test]
    fn large_ones_are_kept_for_all() {
        let mut list = FreeList::default();
        for lines in [100, 90, 80, 70] {
            list.keep(Pages::zeroed(8 * lines));
        }
        let mut taken = |lines: usize| list.take_longer(64 * lines).map(|p| p.bytes() / 64);
        assert_eq!(
            [taken(75), taken(75), taken(91), taken(34), taken(35), taken(100)],
            [Some(80), Some(90), Some(100), None, Some(70), None]
        );
        [90, 20].iter().for_each(|lines| list.keep(Pages::zeroed(8 * lines)));
        assert_eq!(list.trim(64 * 30).len(), 1);
        assert_eq!((list.bytes, list.buffers.len()), (64 * 20, 1));
        assert!(list.trim(64 * 30).is_empty());

        // Freed by one thread and taken by another: no other test asks for as much.
        let len = 31 * PAGES_FROM / 8;
        let at = std::thread::spawn(move || Buffer::dirty(len).as_ptr() as usize).join().unwrap();
        let buffer = Buffer::dirty(len - 8);
        assert_eq!((buffer.as_ptr() as usize, buffer.len()), (at, len - 8));
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
