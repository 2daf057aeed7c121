//! What families have in common: plain loops that a compiler makes vectors of, and loops over vectors of
//! eight words ([`vectors`]). All of it is expanded into the functions of a family that have its
//! processor's features, and knows no processor itself.

pub(crate) mod digits;
pub(crate) mod external;
pub(crate) mod random;
pub(crate) mod roots;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vectors;
pub(crate) mod words;
