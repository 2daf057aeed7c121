//! Explicit threads: arithmetic runs on one thread unless it runs inside a [`Threads`] pool.
//!
//! Every loop here is a place where work ends early if it was asked to ([`crate::interrupt`]).

use crate::interrupt::{self, EVERY, Inherited, check};
use crate::memo::{PerProcess, process};
use rayon::prelude::*;
use std::cell::Cell;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A pool with a stated number of threads. Results do not depend on the number.
///
/// The threads are made when the first work comes. A forked process has none of them: there the first
/// work makes new ones.
pub struct Threads {
    count: usize,
    pools: PerProcess<Pool>,
}

impl Threads {
    /// A pool of `count` threads; 0 means one for each processor. One thread is the caller's own.
    pub fn new(count: usize) -> Self {
        let count = if count == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { count };
        Self { count, pools: PerProcess::new() }
    }

    /// How many threads work.
    pub fn count(&self) -> usize {
        self.count
    }

    /// This process's threads.
    fn pool(&self) -> Option<&rayon::ThreadPool> {
        if self.count == 1 {
            return None;
        }
        self.pools.get_or(|| Pool::new(self.count)).threads.as_ref()
    }

    /// Runs `work`, whose loops over limbs, ciphertexts and blocks then share this pool.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let Some(pool) = self.pool() else { return work() };
        let inherited = Inherited::here();
        let work = || {
            let _scope = inherited.enter();
            work()
        };
        let Some(interrupt) = interrupt::watched_here() else { return pool.install(work) };
        // The caller looks at its watch while the pool works.
        let (done, wait) = sync_channel::<()>(1);
        let mut result = None;
        pool.in_place_scope(|scope| {
            scope.spawn(|_| {
                // Dropped when the work ends, however it does.
                let _done = done;
                result = Some(work());
            });
            while wait.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                interrupt.look();
            }
        });
        let Some(result) = result else { unreachable!("the scope waits for what it began, or unwinds") };
        result
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

/// The threads of one process.
struct Pool {
    process: u32,
    /// `None` if the system refused them: then the caller's own does the work.
    threads: Option<rayon::ThreadPool>,
}

impl Pool {
    fn new(count: usize) -> Self {
        Self { process: process(), threads: rayon::ThreadPoolBuilder::new().num_threads(count).build().ok() }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Threads that another process has are not asked to end: their locks may never open here.
        if self.process != process() {
            std::mem::forget(self.threads.take());
        }
    }
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

/// `work(i)` for each `i` below `count`, in parallel inside a pool; a thread takes at most `longest` at a time.
///
/// The one place that hands loops to rayon: what is generic here would be compiled again for each loop of the crates
/// above, and rayon with it.
#[inline(never)]
fn spread(count: usize, longest: usize, work: &(dyn Fn(usize) + Sync)) {
    let work = |i| {
        check();
        work(i);
    };
    if parallel() && count > 1 {
        let caller = Inherited::here();
        let items = (0..count).into_par_iter().with_max_len(longest);
        items.for_each_init(|| caller.enter(), |_, i| work(i));
    } else {
        (0..count).for_each(work);
    }
}

/// As many items as a thread likes.
const ANY: usize = usize::MAX;

/// [`spread`], with what `work` returns in order.
#[inline(never)]
fn collect<T: Send>(count: usize, longest: usize, work: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    if !parallel() || count < 2 {
        let work = |i| {
            check();
            work(i)
        };
        return (0..count).map(work).collect();
    }
    let results: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    spread(count, longest, &|i| *lock(&results[i]) = Some(work(i)));
    let result = |cell: Mutex<Option<T>>| cell.into_inner().unwrap_or_else(PoisonError::into_inner);
    let results: Vec<T> = results.into_iter().filter_map(result).collect();
    assert!(results.len() == count, "each item is worked on, or the loop unwinds");
    results
}

/// A cell that one thread of a loop takes, once: nobody waits, and a panic of another item does not matter to it.
fn lock<T>(cell: &Mutex<T>) -> MutexGuard<'_, T> {
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `work(i, item)` for each of some items that only one thread may have.
#[inline(never)]
fn hand_out<J: Send>(items: impl ExactSizeIterator<Item = J>, work: &(dyn Fn(usize, J) + Sync)) {
    if !parallel() || items.len() < 2 {
        for (i, item) in items.enumerate() {
            check();
            work(i, item);
        }
        return;
    }
    let items: Vec<Mutex<Option<J>>> = items.map(|item| Mutex::new(Some(item))).collect();
    spread(items.len(), ANY, &|i| {
        let item = lock(&items[i]).take();
        item.into_iter().for_each(|item| work(i, item));
    });
}

/// `work(i, chunk)` for each chunk of `size` words (the last may be shorter), in parallel inside a
/// pool.
pub fn for_each_chunk(data: &mut [u64], size: usize, work: impl Fn(usize, &mut [u64]) + Sync + Send) {
    hand_out(data.chunks_mut(size), &work);
}

/// `work(i, x, y)` for each pair of chunks of `size` words (the last may be shorter), in parallel
/// inside a pool.
pub fn for_each_chunk_pair(
    x: &mut [u64],
    y: &mut [u64],
    size: usize,
    work: impl Fn(usize, &mut [u64], &mut [u64]) + Sync + Send,
) {
    hand_out(x.chunks_mut(size).zip(y.chunks_mut(size)), &|i, (x, y)| work(i, x, y));
}

/// `work(i)` for each `i` below `count`, in order of `i`, in parallel inside a pool.
pub fn map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    collect(count, ANY, &work)
}

/// [`map`] where each `i` is a job of its own: for work of milliseconds and more, so that what a
/// thread has not begun yet is never bound to it while others idle.
pub fn map_jobs<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    collect(count, 1, &work)
}

/// [`map_jobs`] of long jobs with loops of their own, which keep to one thread each where there are two or more for every
/// thread. A thread that waits inside a job for its part of a loop would otherwise begin the next job on top of it, with
/// memory of its own.
pub fn map_alone<T: Send>(jobs: usize, work: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    let enough = jobs >= 2 * count();
    map_jobs(jobs, |i| if enough { alone(|| work(i)) } else { work(i) })
}

/// `work(i, job)` for each of some jobs, which it uses up, in order, in parallel inside a pool.
///
/// # Panics
/// Where `work` panics; never of itself, for each job is taken once.
pub fn map_into<J: Send, T: Send>(jobs: Vec<J>, work: impl Fn(usize, J) -> T + Sync + Send) -> Vec<T> {
    let count = jobs.len();
    let jobs: Vec<Mutex<Option<J>>> = jobs.into_iter().map(|job| Mutex::new(Some(job))).collect();
    collect(count, ANY, &|i| {
        let job = lock(&jobs[i]).take();
        work(i, job.expect("each job is taken once"))
    })
}

/// `work(i, item)` for each item, in parallel inside a pool.
pub fn for_each_mut<T: Send>(items: &mut [T], work: impl Fn(usize, &mut T) + Sync + Send) {
    hand_out(items.iter_mut(), &work);
}
