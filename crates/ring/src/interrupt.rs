//! Ending long work early.
//!
//! Work inside [`Interrupt::run`] looks in every loop of [`crate::threads`], and wherever else it calls
//! [`check`], whether it has been asked to end. It then unwinds to `run` as a panic would, without
//! a panic's message: what was being made is dropped, so that secrets are wiped, and shared operands
//! are as they were. What a caller lent as `&mut` holds unspecified numbers afterwards. No signature
//! below `run` knows of it.
//!
//! ```
//! use sudare_ring::interrupt::{Interrupt, Interrupted};
//! use sudare_ring::threads;
//!
//! let interrupt = Interrupt::new();
//! // Here the work itself asks; any thread may.
//! let work = || threads::map(1000, |i| if i == 10 { interrupt.ask() } else { assert!(i < 11) });
//! assert_eq!(interrupt.run(work), Err(Interrupted));
//! ```

use crate::count;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a watch is looked at.
pub const EVERY: Duration = Duration::from_millis(50);

/// Work was asked to end before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work was interrupted")]
pub struct Interrupted;

/// Asks work to end. Cloning shares it; once asked, it stays asked.
#[derive(Clone)]
pub struct Interrupt(Arc<State>);

struct State {
    asked: AtomicBool,
    watch: Option<Box<dyn Fn() -> bool + Send + Sync>>,
}

/// What the calling thread works for.
#[derive(Clone)]
struct Scope {
    interrupt: Interrupt,
    /// When the watch is due next; `None` on every thread but the one that called `run`.
    due: Option<Instant>,
}

thread_local! {
    static SCOPE: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

impl Interrupt {
    /// Ends work when [`Interrupt::ask`] is called.
    pub fn new() -> Self {
        Self(Arc::new(State { asked: AtomicBool::new(false), watch: None }))
    }

    /// Ends work as soon as `watch` says `true` as well. It is called by the thread that called
    /// [`Interrupt::run`], and by no other, about every 50 ms ([`EVERY`]): there a front end handles its
    /// signals and shows how far the work has come. It may run other work.
    pub fn watching(watch: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(State { asked: AtomicBool::new(false), watch: Some(Box::new(watch)) }))
    }

    /// Asks the work to end.
    pub fn ask(&self) {
        self.0.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the work was asked to end.
    pub fn asked(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// Runs `work`, which ends early if it is asked to. Of nested runs the innermost is looked at.
    ///
    /// A program that is compiled with `panic = "abort"` ends instead.
    ///
    /// # Errors
    /// [`Interrupted`] if it ended early; work that ends by itself gives its result, asked or not.
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> Result<R, Interrupted> {
        let due = self.0.watch.is_some().then(|| Instant::now() + EVERY);
        let _scope = enter(Some(Scope { interrupt: self.clone(), due }));
        caught(work)
    }

    /// Looks at the watch.
    pub(crate) fn look(&self) {
        if self.0.watch.as_ref().is_some_and(|watch| watch()) {
            self.ask();
        }
    }
}

impl Default for Interrupt {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Interrupt(asked: {})", self.asked())
    }
}

/// Runs work in the caller's scope, which ends early if it is asked to.
fn caught<R>(work: impl FnOnce() -> R) -> Result<R, Interrupted> {
    // What is shared with the work is as after any panic of it.
    catch_unwind(AssertUnwindSafe(|| {
        check();
        work()
    }))
    .map_err(|payload| match payload.downcast::<Interrupted>() {
        Ok(interrupted) => *interrupted,
        Err(panic) => resume_unwind(panic),
    })
}

/// Ends the work that the caller is part of, if it was asked to end. To be called at least every
/// few milliseconds by work that is not made of the loops of [`crate::threads`].
#[inline]
pub fn check() {
    let due = |scope: &Scope| scope.interrupt.asked() || scope.due.is_some_and(|due| Instant::now() >= due);
    if SCOPE.with_borrow(|scope| scope.as_ref().is_some_and(due)) {
        attend();
    }
}

#[cold]
fn attend() {
    // The watch may run work of its own: nothing is borrowed meanwhile.
    let Some(Scope { interrupt, due }) = SCOPE.with_borrow(Clone::clone) else { return };
    if due.is_some() {
        interrupt.look();
        SCOPE.with_borrow_mut(|scope| {
            if let Some(scope) = scope {
                scope.due = Some(Instant::now() + EVERY);
            }
        });
    }
    // Unwinding twice would end the process.
    if interrupt.asked() && !std::thread::panicking() {
        resume_unwind(Box::new(Interrupted));
    }
}

/// What the caller works for, to be taken along to a thread of its own: the work there ends when the caller's is asked to.
pub struct Shared(Inherited);

impl Shared {
    /// The caller's.
    pub fn here() -> Self {
        Self(Inherited::here())
    }

    /// Runs `work` as a part of what the caller of [`Shared::here`] works for.
    ///
    /// # Errors
    /// [`Interrupted`] if it ended early.
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> Result<R, Interrupted> {
        let _entered = self.0.enter();
        caught(work)
    }
}

/// What the caller works for, to be handed to threads that share the work.
#[derive(Clone)]
pub(crate) struct Inherited(Option<Interrupt>, count::Inherited);

impl Inherited {
    /// The caller's.
    pub(crate) fn here() -> Self {
        Self(SCOPE.with_borrow(|scope| scope.as_ref().map(|s| s.interrupt.clone())), count::Inherited::here())
    }

    /// Makes it what the calling thread works for until the guard is dropped: a thread that waits
    /// for others may meanwhile begin work for somebody else.
    pub(crate) fn enter(&self) -> (Entered, count::Entered) {
        (enter(self.0.clone().map(|interrupt| Scope { interrupt, due: None })), self.1.enter())
    }
}

/// The interrupt whose watch the caller has to look at.
pub(crate) fn watched_here() -> Option<Interrupt> {
    SCOPE.with_borrow(|scope| scope.as_ref().filter(|s| s.due.is_some()).map(|s| s.interrupt.clone()))
}

/// Gives the thread back to what it worked for before.
pub(crate) struct Entered(Option<Scope>, PhantomData<*const ()>);

fn enter(scope: Option<Scope>) -> Entered {
    Entered(SCOPE.replace(scope), PhantomData)
}

impl Drop for Entered {
    fn drop(&mut self) {
        SCOPE.set(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Threads, threads};
    use std::sync::atomic::AtomicUsize;
    use std::thread::sleep;

    /// Loops in loops that would take a minute.
    fn long_work(begun: &AtomicUsize) -> usize {
        let inner = |_| {
            begun.fetch_add(1, Ordering::Relaxed);
            let mut words = [0u64; 64];
            threads::for_each_chunk(&mut words, 1, |_, x| {
                sleep(Duration::from_millis(1));
                x[0] = 1;
            });
            words.iter().sum::<u64>() as usize
        };
        threads::map(32, |_| threads::map_jobs(32, inner).len()).len()
    }

    #[test]
    fn work_ends_when_asked() {
        for count in [1, 3] {
            let (pool, interrupt, begun) = (Threads::new(count), Interrupt::new(), AtomicUsize::new(0));
            let started = Instant::now();
            let found = std::thread::scope(|s| {
                s.spawn(|| {
                    sleep(Duration::from_millis(100));
                    interrupt.ask();
                });
                interrupt.run(|| pool.run(|| long_work(&begun)))
            });
            assert_eq!(found, Err(Interrupted));
            assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
            assert!(begun.load(Ordering::Relaxed) > 0);
            // The pool works on, for others and for a second run.
            assert_eq!(pool.run(|| threads::map(100, |i| i).len()), 100);
            assert_eq!(Interrupt::new().run(|| pool.run(|| threads::map(100, |i| i).len())), Ok(100));
            assert_eq!(interrupt.run(|| 1), Err(Interrupted));
        }
    }

    #[test]
    fn the_caller_watches() {
        for count in [1, 3] {
            let (looks, caller) = (Arc::new(AtomicUsize::new(0)), std::thread::current().id());
            let interrupt = Interrupt::watching({
                let looks = looks.clone();
                move || {
                    assert_eq!(std::thread::current().id(), caller);
                    // Work inside the watch is nobody's but its own.
                    assert_eq!(Interrupt::new().run(|| threads::map(9, |i| i).len()), Ok(9));
                    looks.fetch_add(1, Ordering::Relaxed) == 2
                }
            });
            let pool = Threads::new(count);
            let started = Instant::now();
            assert_eq!(interrupt.run(|| pool.run(|| long_work(&AtomicUsize::new(0)))), Err(Interrupted));
            assert!(started.elapsed() >= 3 * EVERY && started.elapsed() < Duration::from_secs(5));
            assert_eq!(looks.load(Ordering::Relaxed), 3);
        }
    }

    #[test]
    fn a_thread_of_ones_own_ends_with_its_caller() {
        let interrupt = Interrupt::new();
        let found = interrupt.run(|| {
            let shared = Shared::here();
            std::thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    shared.run(|| {
                        loop {
                            check();
                            sleep(Duration::from_millis(1));
                        }
                    })
                });
                interrupt.ask();
                let found: Result<(), Interrupted> = reader.join().unwrap();
                found
            })
        });
        assert_eq!(found, Ok(Err(Interrupted)));
        // Outside of any work nothing ends it.
        assert_eq!(Shared::here().run(|| 1), Ok(1));
    }

    #[test]
    fn two_share_a_pool() {
        // One is interrupted, the other's numbers are all there.
        let (pool, first, second) = (Threads::new(3), Interrupt::new(), Interrupt::new());
        std::thread::scope(|s| {
            let doomed = s.spawn(|| first.run(|| pool.run(|| long_work(&AtomicUsize::new(0)))));
            let whole = s.spawn(|| {
                second.run(|| {
                    pool.run(|| {
                        threads::map(64, |i| {
                            sleep(Duration::from_millis(2));
                            threads::map(4, |j| i * j).into_iter().sum::<usize>()
                        })
                    })
                })
            });
            sleep(Duration::from_millis(20));
            first.ask();
            assert_eq!(doomed.join().unwrap(), Err(Interrupted));
            assert_eq!(whole.join().unwrap(), Ok((0..64).map(|i| 6 * i).collect()));
        });
    }

    #[test]
    fn panics_stay_panics() {
        for count in [1, 3] {
            let broken = || -> usize { resume_unwind(Box::new(7u8)) };
            let work = || Interrupt::watching(|| false).run(|| Threads::new(count).run(broken));
            let payload = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
            assert_eq!(payload.downcast_ref::<u8>(), Some(&7));
        }
    }
}
