//! Releases: results that others will see.
//!
//! What is shown are the elements of a result and nothing else of its plaintexts, so the noise goes
//! to the elements after decoding. Its width follows from the error that the plan, the table or the
//! process itself knows of; what a file says is compared with that and not used.

use std::collections::BTreeMap;
use sudare_expr::Matrix;
use sudare_he::HeError;
use sudare_he::ckks::{Ciphertext, Decrypted, Decryptor, Expected};
use sudare_methods::MatrixError;
use sudare_ring::threads;
use sudare_rlwe::keys::SecretKey;
use sudare_rlwe::release::ReleasePolicy;
use zeroize::Zeroizing;

/// Row and column.
type Place = (usize, usize);

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
) -> Result<Zeroizing<Vec<Decrypted>>, HeError> {
    let plain = threads::map(cts.len(), |i| decryptor.decrypt_expected(&cts[i], &expected(&cts[i])));
    Ok(Zeroizing::new(plain.into_iter().collect::<Result<Vec<_>, _>>()?))
}

/// The elements of matrices made fit to be shown, all of them as one release. An element is within
/// `error(row, col)`; one whose `twin(row, col)` is another shows what that one shows.
pub(super) fn release(
    decryptor: &Decryptor<'_>,
    policy: ReleasePolicy,
    matrices: Vec<Matrix>,
    (error, twin): (impl Fn(Place) -> f64 + Sync, impl Fn(Place) -> Place),
) -> Result<Vec<Matrix>, MatrixError> {
    let shape = matrices.first().map_or((0, 0), Matrix::shape);
    let places = || (0..shape.0).flat_map(|row| (0..shape.1).map(move |col| (row, col)));
    let own: Vec<Place> = places().filter(|at| twin(*at) == *at).collect();
    // Room for all of them: growing would leave values behind.
    let mut values = Zeroizing::new(Vec::with_capacity(own.len() * matrices.len()));
    for matrix in matrices {
        let data = Zeroizing::new(matrix.into_data());
        values.extend(own.iter().map(|(row, col)| data[row * shape.1 + col]));
    }
    decryptor.release(policy, &mut values, |i| error(own[i % own.len()]))?;
    let rank: BTreeMap<Place, usize> = own.iter().enumerate().map(|(i, at)| (*at, i)).collect();
    let show = |shown: &[f64]| Ok(Matrix::from_fn(shape.0, shape.1, |row, col| shown[rank[&twin((row, col))]])?);
    values.chunks(own.len().max(1)).map(show).collect()
}
