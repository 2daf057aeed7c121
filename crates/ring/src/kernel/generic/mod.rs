//! What families have in common: loops over vectors of eight words ([`lanes`]), and plain loops that a
//! compiler makes vectors of. All of it is expanded into the functions of a family that have its
//! processor's features, and knows no processor itself.

pub(crate) mod digits;
pub(crate) mod elementwise;
pub(crate) mod external;
pub(crate) mod lanes;
pub(crate) mod ntt;
pub(crate) mod random;
#[allow(unsafe_code)]
pub(crate) mod rows;
pub(crate) mod tables;
pub(crate) mod words;
