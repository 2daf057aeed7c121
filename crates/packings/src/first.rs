//! Matrix products by one multiplication for each column (`002`, Theorems 5 and 9).

use super::bands::{Bands, matrix_packing};

/// The whole left matrix in one ciphertext, every column of the right one in its own: n
/// multiplications. Element (i, j) stands at X^(sik) of result j. Needs N ≥ s·m·k, which is m² in
/// Theorem 5 (short entries) and 2m²d in Theorem 9, where the paper asks for 2md(m + 1).
#[derive(Clone, Debug)]
pub struct FirstMethod(Bands);

matrix_packing!(FirstMethod, "first", |shape| (shape.m, 1));
