//! Secrets do not outlive what holds them: a scan of all memory after keys, encryptors, decryptors and messages
//! were dropped.
//!
//! Each test makes its objects, notes what is secret in them, finds it in memory while they live (so that the scan
//! can fail), drops them and finds nothing: no freed block, no buffer that a thread keeps for reuse and no stack
//! still has it. Linux alone shows a process its memory.

mod messages;
mod scan;
mod secrets;

use scan::{Keep, Needles};

#[global_allocator]
static ALLOCATOR: Keep = Keep;

/// Runs `live`, which makes objects, notes their secrets and gives the objects back; finds every secret, drops the
/// objects, and finds none.
#[track_caller]
fn gone_after_drop<T>(live: impl FnOnce(&mut Needles) -> T) {
    let _alone = crate::alone();
    scan::hold();
    let mut needles = Needles::default();
    let objects = live(&mut needles);
    let before = needles.search();
    let missing: Vec<_> = needles.names().filter(|n| !before.iter().any(|f| f.starts_with(n))).collect();
    assert!(missing.is_empty(), "the scan does not see what is there: {missing:?}");
    drop(objects);
    let after = needles.search();
    assert!(after.is_empty(), "left in memory: {after:#?}");
}
