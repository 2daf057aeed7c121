pub use super::super::portable::gemm;
