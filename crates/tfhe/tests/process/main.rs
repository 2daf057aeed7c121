//! What needs a process of its own: a scan of all memory, and forks. One test at a time.
#![cfg(unix)]

#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
#[path = "../../../rlwe/tests/support/needles.rs"]
mod needles;
mod randomness;
