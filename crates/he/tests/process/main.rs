//! What needs a process of its own: a scan of all memory, and forks. One test at a time.
#![cfg(unix)]

mod forks;
#[cfg(target_os = "linux")]
mod memory;
mod randomness;
#[path = "../it/world.rs"]
#[allow(dead_code)]
mod world;

use world::literal;
