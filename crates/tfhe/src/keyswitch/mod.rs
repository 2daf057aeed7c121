//! Key switches: between LWE keys, to GLWE (packing), inside the ring, by automorphisms.

pub(crate) mod automorphism;
pub(crate) mod lwe;
pub(crate) mod module;

pub use lwe::{GlweSwitchKey, LweSwitchKey, PackingKey};
pub use module::{LEAST_MODULE_DEGREE, ModuleSwitchKey, SwitchKey};
