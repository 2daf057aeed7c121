//! The kernels on the emulator, and what is refused.

#[cfg(all(feature = "emulate", target_os = "linux"))]
mod card;
#[cfg(feature = "emulate")]
mod kernels;
#[cfg(feature = "emulate")]
mod races;
#[cfg(feature = "emulate")]
mod refusals;
#[cfg(feature = "emulate")]
mod support;
