//! AVX-512 IFMA kernels, for primes below 2^50. Ranges are those of [`super::Limb`].

mod arith;
mod external;
mod gemm;
mod ntt;
mod packed;
mod vector;

pub use external::*;
pub use gemm::*;
pub use ntt::*;
pub use packed::*;
pub use vector::*;
