//! AVX-512 F + DQ kernels, for primes up to 61 bits. Ranges are those of [`super::Limb`].

mod arith;
mod gemm;
mod ntt;
mod vector;

pub use gemm::*;
pub use ntt::*;
pub use vector::*;
