//! What families have in common: plain loops that a compiler makes vectors of, the arithmetic of a prime in
//! plain words ([`scalar`]), and loops over vectors of eight words ([`vectors`]). All of it is expanded into the functions of a family that have its
//! processor's features, and knows no processor itself.

pub(crate) mod additive;
mod complex;
mod delegate;
pub(crate) mod digits;
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
pub(crate) mod doubles;
pub(crate) mod fourier;
pub(crate) mod random;
pub(crate) mod reals;
pub(crate) mod roots;
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
#[allow(unsafe_code)]
pub(crate) mod rows;
pub(crate) mod scalar;
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
pub(crate) mod signed;
pub(crate) mod special_fft;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vectors;
pub(crate) mod words;

pub(crate) use delegate::{limb_kernels_of, without_features};
