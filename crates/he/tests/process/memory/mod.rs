//! Secrets do not outlive what holds them: a scan of all memory after keys, encryptors, decryptors and messages
//! were dropped.

mod messages;
#[path = "../../../../rlwe/tests/support/needles.rs"]
mod needles;
mod secrets;

#[global_allocator]
static ALLOCATOR: sudare_testkit::memory::Keep = sudare_testkit::memory::Keep;
