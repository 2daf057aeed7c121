//! Explicit threads: arithmetic runs on one thread unless it runs inside a [`Threads`] pool.

use rayon::prelude::*;
use std::cell::Cell;

/// A pool with a stated number of threads. Results do not depend on the number.
pub struct Threads {
    pool: Option<rayon::ThreadPool>,
    count: usize,
}

impl Threads {
    /// A pool of `count` threads; 0 means one for each processor. One thread is the caller's own.
    pub fn new(count: usize) -> Self {
        let count = if count == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { count };
        // If the system refuses the threads, the caller's own still does the work.
        let pool = if count > 1 { rayon::ThreadPoolBuilder::new().num_threads(count).build().ok() } else { None };
        Self { count: if pool.is_some() { count } else { 1 }, pool }
    }

    /// How many threads work.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Runs `work`, whose loops over limbs, ciphertexts and blocks then share this pool.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Threads({})", self.count)
    }
}

thread_local! {
    /// Whether what this thread runs keeps to it.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` on this thread alone, inside a pool too: for work whose time must not depend on how it divides.
pub fn alone<R>(work: impl FnOnce() -> R) -> R {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _back = Back(ALONE.replace(true));
    work()
}

/// Whether the caller runs inside a pool of several threads.
#[inline]
pub fn parallel() -> bool {
    !ALONE.get() && rayon::current_thread_index().is_some() && rayon::current_num_threads() > 1
}

/// How many threads share the caller's work.
#[inline]
pub fn count() -> usize {
    if parallel() { rayon::current_num_threads() } else { 1 }
}

/// `work(i, chunk)` for each chunk of `size` words (the last may be shorter), in parallel inside a
/// pool.
pub fn for_each_chunk(data: &mut [u64], size: usize, work: impl Fn(usize, &mut [u64]) + Sync + Send) {
    if parallel() && data.len() > size {
        data.par_chunks_mut(size).enumerate().for_each(|(i, c)| work(i, c));
    } else {
        data.chunks_mut(size).enumerate().for_each(|(i, c)| work(i, c));
    }
}

/// `work(i, x, y)` for each pair of chunks of `size` words (the last may be shorter), in parallel
/// inside a pool.
pub fn for_each_chunk_pair(
    x: &mut [u64],
    y: &mut [u64],
    size: usize,
    work: impl Fn(usize, &mut [u64], &mut [u64]) + Sync + Send,
) {
    if parallel() && x.len() > size {
        let pairs = x.par_chunks_mut(size).zip(y.par_chunks_mut(size));
        pairs.enumerate().for_each(|(i, (x, y))| work(i, x, y));
    } else {
        let pairs = x.chunks_mut(size).zip(y.chunks_mut(size));
        pairs.enumerate().for_each(|(i, (x, y))| work(i, x, y));
    }
}

/// `work(i)` for each `i` below `count`, in order of `i`, in parallel inside a pool.
pub fn map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if parallel() && count > 1 {
        (0..count).into_par_iter().map(work).collect()
    } else {
        (0..count).map(work).collect()
    }
}

/// [`map`] where each `i` is a job of its own: for work of milliseconds and more, so that what a
/// thread has not begun yet is never bound to it while others idle.
pub fn map_jobs<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    if parallel() && count > 1 {
        (0..count).into_par_iter().with_max_len(1).map(work).collect()
    } else {
        (0..count).map(work).collect()
    }
}

/// `work(i, item)` for each item, in parallel inside a pool.
pub fn for_each_mut<T: Send>(items: &mut [T], work: impl Fn(usize, &mut T) + Sync + Send) {
    if parallel() && items.len() > 1 {
        items.par_iter_mut().enumerate().for_each(|(i, x)| work(i, x));
    } else {
        items.iter_mut().enumerate().for_each(|(i, x)| work(i, x));
    }
}
