//! The evaluator of devices against that of the CPU, word for word.

#[cfg(feature = "emulate")]
mod bootstrap;
#[cfg(feature = "emulate")]
mod evaluator;
#[cfg(feature = "emulate")]
mod exact;
