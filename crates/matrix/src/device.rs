//! Products on a device: the methods as they are, on batches of ciphertexts that stay there.

use crate::error::MatrixError;
use sudare_gpu::Ciphertexts;
use sudare_he::HeError;
use sudare_he::ckks::{Ciphertext, Evaluator, Params};
use sudare_rlwe::{Backend, RlweError};

/// A ciphertext on a device: one item of a batch, or some that are computed with alike.
pub type DeviceCiphertext = Ciphertext<Ciphertexts>;
/// What computes there.
pub type DeviceEvaluator = Evaluator<sudare_gpu::Evaluator>;

/// A product that devices compute as the processor does, by the same lines.
pub trait OnDevice: Send + Sync {
    /// Multiplies operands that are on the evaluator's device; so is the result.
    ///
    /// # Errors
    /// As [`Product::multiply`](crate::Product::multiply); `RlweError::Device`.
    fn multiply_there(
        &self,
        evaluator: &DeviceEvaluator,
        left: &[DeviceCiphertext],
        right: &[DeviceCiphertext],
    ) -> Result<Vec<DeviceCiphertext>, MatrixError>;
}

/// Copies ciphertexts to a device, those of one level and as many parts together.
///
/// # Errors
/// [`MatrixError::He`]: `RlweError::WrongParameters`, `RlweError::WrongKey`, `RlweError::Device`.
pub fn upload(evaluator: &DeviceEvaluator, ciphertexts: &[Ciphertext]) -> Result<Vec<DeviceCiphertext>, MatrixError> {
    let mut out = Vec::with_capacity(ciphertexts.len());
    for alike in ciphertexts.chunk_by(|a, b| (a.level(), a.parts().len()) == (b.level(), b.parts().len())) {
        let batch = evaluator.backend().upload(&alike.iter().map(Ciphertext::inner).collect::<Vec<_>>());
        let batch = batch.map_err(RlweError::from).map_err(HeError::from)?;
        let items = evaluator.backend().split(&batch, alike.len()).map_err(HeError::from)?;
        for (item, c) in items.into_iter().zip(alike) {
            out.push(Ciphertext::from_parts(item, c.state())?);
        }
    }
    Ok(out)
}

/// Copies ciphertexts back, and waits for what is still being computed.
///
/// # Errors
/// [`MatrixError::He`]: `RlweError::Device` for what went wrong on the device since the last wait.
pub fn download(ciphertexts: &[DeviceCiphertext]) -> Result<Vec<Ciphertext>, MatrixError> {
    let mut out = Vec::with_capacity(ciphertexts.len());
    for c in ciphertexts {
        let items = c.inner().to_host().map_err(RlweError::from).map_err(HeError::from)?;
        for item in items {
            out.push(Ciphertext::from_parts(item, c.state())?);
        }
    }
    Ok(out)
}

/// An evaluator on a device, whose keys take up to `budget` bytes there.
///
/// # Errors
/// [`MatrixError::He`]: `RlweError::WrongParameters`.
pub fn evaluator(
    device: &sudare_cuda::Device,
    params: &Params,
    keys: std::sync::Arc<dyn sudare_rlwe::keys::KeySource>,
    budget: usize,
) -> Result<DeviceEvaluator, MatrixError> {
    Ok(Evaluator::with_backend(params, sudare_gpu::Evaluator::new(device, keys, budget))?)
}
