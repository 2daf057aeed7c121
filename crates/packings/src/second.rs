//! Matrix products by one multiplication (`002`, Theorems 7 and 10).

use super::bands::{Bands, matrix_packing};

/// Each matrix in one ciphertext, and one multiplication. Element (i, j) stands at
/// X^(s(ik + jmk)). Needs N ≥ s·m·k·n, which is m³ in Theorem 7 (short entries) and 2m³d in
/// Theorem 10, where the paper asks for 2m³d + 2md + 2d.
#[derive(Clone, Debug)]
pub struct SecondMethod(Bands);

matrix_packing!(SecondMethod, "second", |shape| (shape.m, shape.n));
