//! Releases: results that others will see.
//!
//! What is shown are the elements of a result and nothing else of its plaintexts, so the noise goes
//! to the elements after decoding. Its width follows from the error that the plan, the table or the
//! process itself knows of; what a file says is compared with that and not used.

use crate::error::MatrixError;
use crate::matrix::Matrix;
use sudare_he::HeError;
use sudare_he::ckks::{Ciphertext, Decryptor, Expected, Plaintext, ReleasePolicy};
use sudare_he::keys::SecretKey;
use sudare_he::ring::threads;
use zeroize::Zeroizing;

/// The policy that a plan, context or table was made with.
pub(super) fn declared(release: Option<ReleasePolicy>, what: &'static str) -> Result<ReleasePolicy, MatrixError> {
    release.ok_or(MatrixError::NoRelease { what })
}

/// Releases of a policy that a key has left: none if its releases were declared otherwise.
pub(super) fn left(policy: Option<ReleasePolicy>, secret: &SecretKey) -> u64 {
    match (policy, secret.releases()) {
        (Some(policy), None) => policy.releases(),
        (Some(policy), Some(releases)) if releases.policy() == policy => releases.left(),
        _ => 0,
    }
}

/// Plaintexts of ciphertexts that are each as expected; wiped when dropped.
pub(super) fn decrypt(
    decryptor: &Decryptor<'_>,
    cts: &[Ciphertext],
    expected: impl Fn(&Ciphertext) -> Expected + Sync,
) -> Result<Zeroizing<Vec<Plaintext>>, HeError> {
    let plain = threads::map(cts.len(), |i| decryptor.decrypt_expected(&cts[i], &expected(&cts[i])));
    Ok(Zeroizing::new(plain.into_iter().collect::<Result<Vec<_>, _>>()?))
}

/// The elements of matrices made fit to be shown, all of them as one release. Each is within `error`.
pub(super) fn release(
    decryptor: &Decryptor<'_>,
    policy: ReleasePolicy,
    matrices: Vec<Matrix>,
    error: f64,
) -> Result<Vec<Matrix>, MatrixError> {
    let shapes: Vec<(usize, usize)> = matrices.iter().map(Matrix::shape).collect();
    let count = shapes.iter().map(|(rows, cols)| rows * cols).sum();
    let mut values = Zeroizing::new(Vec::with_capacity(count));
    for matrix in matrices {
        values.extend_from_slice(&Zeroizing::new(matrix.into_data()));
    }
    decryptor.release(policy, &mut values, |_| error)?;
    let mut rest = values.as_slice();
    let take = |(rows, cols): (usize, usize)| {
        let (data, others) = rest.split_at(rows * cols);
        rest = others;
        Matrix::new(rows, cols, data.to_vec())
    };
    shapes.into_iter().map(take).collect()
}
