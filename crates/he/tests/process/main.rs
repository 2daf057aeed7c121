//! What needs a process of its own: a scan of all memory, and forks. One test at a time.
#![cfg(unix)]

mod forks;
#[cfg(target_os = "linux")]
mod memory;
mod randomness;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What another test holds is no leak, and a forked child must not find a lock that another thread held.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
