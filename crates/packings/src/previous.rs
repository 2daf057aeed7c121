//! Matrix products by an inner product for each element: the baseline (`002`, section 4).

use super::bands::{Bands, matrix_packing};

/// Every row and every column in a ciphertext of its own, as [`super::InnerProduct`] and
/// [`super::LargeInnerProduct`] pack them: m·n multiplications. Needs N ≥ s·k.
#[derive(Clone, Debug)]
pub struct PreviousMethod(Bands);

matrix_packing!(PreviousMethod, "previous", |shape| (1, 1));
