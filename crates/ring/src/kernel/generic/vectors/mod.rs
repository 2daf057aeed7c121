//! Loops over vectors of eight words, for the families whose processors have them.

pub(crate) mod elementwise;
pub(crate) mod lanes;
pub(crate) mod ntt;
pub(crate) mod tables;
#[allow(unsafe_code)]
pub(crate) mod tile;
