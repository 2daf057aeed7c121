//! A scan of this process's memory for words that should be gone.
//!
//! A test makes its objects, notes what is secret in them, finds it in memory while they live (so that the scan can
//! fail), drops them and finds nothing: no freed block, no buffer that a thread keeps for reuse and no stack still has
//! it. Linux alone shows a process its memory.
//!
//! [`Keep`], the global allocator of such a binary, gives no freed block back from the first test on, so that nothing
//! overwrites or unmaps what it holds. The search reads every writable mapping of the process: blocks freed and live, the
//! buffers that threads keep for reuse, and the stacks. Needles are kept masked, so that they do not find themselves.

use crate::process::alone;
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

static HOLD: AtomicBool = AtomicBool::new(false);

/// From now on no block is freed.
fn hold() {
    HOLD.store(true, Ordering::SeqCst);
}

/// The system's allocator, which can be told to free nothing.
#[derive(Debug)]
pub struct Keep;

// SAFETY: every call is the system allocator's; a block that is not freed stays valid.
unsafe impl GlobalAlloc for Keep {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !HOLD.load(Ordering::SeqCst) {
            // SAFETY: as above.
            unsafe { System.dealloc(block, layout) }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !HOLD.load(Ordering::SeqCst) {
            // SAFETY: as above.
            return unsafe { System.realloc(block, layout, size) };
        }
        // SAFETY: the size is not zero and fits, by the contract of `realloc`; the blocks are apart, and both
        // hold as many bytes as are copied.
        unsafe {
            let new = System.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(block, new, layout.size().min(size));
            }
            new
        }
    }
}

/// What every word of a needle is combined with.
const MASK: u64 = 0x5bf0_3635_d1a4_c9e7;
/// Windows of one secret: it is found even where part of it was overwritten.
const WINDOWS: usize = 8;
/// Words of a window whose words are as good as random.
pub const WIDE: usize = 4;
/// Words of a window of a few small values.
pub const NARROW: usize = 64;
/// Words read at a time.
const CHUNK: usize = 1 << 17;

/// What is looked for.
#[derive(Debug, Default)]
pub struct Needles {
    windows: Vec<(String, Vec<u64>)>,
}

impl Needles {
    /// Looks for `words`, which are random (`width` = [`WIDE`]) or small ([`NARROW`]), by windows of `width`.
    /// They are masked one by one: no copy of a secret is made.
    pub fn add(&mut self, name: &str, words: impl IntoIterator<Item = u64>, width: usize) {
        let masked: Vec<u64> = words.into_iter().map(|w| w ^ MASK).collect();
        assert!(masked.len() >= width, "{name} has {} words", masked.len());
        let last = masked.len() - width;
        for i in 0..WINDOWS {
            let mut at = i * last / WINDOWS;
            // A window that starts with zero would be compared at every second word of memory.
            while at < last && masked[at] == MASK {
                at += 1;
            }
            self.windows.push((name.to_owned(), masked[at..at + width].to_vec()));
        }
    }

    /// Names of what has to be in memory while its owner lives.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.windows.iter().map(|(name, _)| name.as_str()).filter(|name| !name.starts_with("passing"))
    }

    /// The names of what is found, and in what kind of mapping.
    fn search(&self) -> Vec<String> {
        let mut first: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut filter = vec![false; 1 << 16];
        for (i, (_, window)) in self.windows.iter().enumerate() {
            first.entry(window[0]).or_default().push(i);
            filter[short(window[0])] = true;
        }
        let longest = self.windows.iter().map(|(_, w)| w.len()).max().unwrap_or(0);
        let memory = File::open("/proc/self/mem").expect("the system shows a process its memory");
        let mut chunk = vec![0u64; CHUNK + longest];
        let own = chunk.as_ptr() as u64..chunk.as_ptr() as u64 + 8 * chunk.len() as u64;
        let mut found = Vec::new();
        for (range, kind) in mappings() {
            let mut at = range.start;
            while at < range.end {
                let words = ((range.end - at) / 8).min(chunk.len() as u64) as usize;
                let bytes = bytes_of(&mut chunk[..words]);
                if memory.read_exact_at(bytes, at).is_ok() {
                    for i in 0..words {
                        let word = chunk[i] ^ MASK;
                        if !filter[short(word)] || own.contains(&(at + 8 * i as u64)) {
                            continue;
                        }
                        for n in first.get(&word).into_iter().flatten() {
                            let (name, window) = &self.windows[*n];
                            if i + window.len() <= words && window.iter().zip(&chunk[i..]).all(|(a, b)| *a == b ^ MASK)
                            {
                                found.push(format!("{name} in {kind}"));
                            }
                        }
                    }
                }
                // Windows that cross the end of a chunk are read again.
                at += 8 * CHUNK as u64;
            }
        }
        found.sort();
        found.dedup();
        found
    }
}

/// Runs `live`, which makes objects, notes their secrets and gives the objects back; finds every secret, drops the
/// objects, and finds none.
#[track_caller]
pub fn gone_after_drop<T>(live: impl FnOnce(&mut Needles) -> T) {
    let _alone = alone();
    hold();
    let mut needles = Needles::default();
    let objects = live(&mut needles);
    let before = needles.search();
    let missing: Vec<_> = needles.names().filter(|n| !before.iter().any(|f| f.starts_with(n))).collect();
    assert!(missing.is_empty(), "the scan does not see what is there: {missing:?}");
    drop(objects);
    let after = needles.search();
    assert!(after.is_empty(), "left in memory: {after:#?}");
}

/// Sixteen bits of a word, for a first look.
fn short(word: u64) -> usize {
    (word.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 48) as usize
}

fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: any bytes are words, and the slice covers the same memory.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), 8 * words.len()) }
}

/// Writable mappings: where, and whether heap, stack or other.
fn mappings() -> Vec<(std::ops::Range<u64>, String)> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the system shows a process its mappings");
    let parse = |line: &str| {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let writable = fields.next()?.starts_with("rw");
        let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
        let kind = fields.nth(3).unwrap_or("a block or a thread's stack").to_owned();
        (writable && !kind.starts_with("[v")).then_some((range, kind))
    };
    maps.lines().filter_map(parse).collect()
}
