//! Key switches: between LWE keys, to GLWE (packing), inside the ring, by automorphisms.

pub(crate) mod automorphism;
pub(crate) mod lwe;
pub(crate) mod module;
pub(crate) mod pack;

pub use lwe::{GlweSwitchKey, LweSwitchKey};
pub use module::{LEAST_MODULE_DEGREE, ModuleSwitchKey, SwitchKey};
pub use pack::{Packable, PackingKey};
