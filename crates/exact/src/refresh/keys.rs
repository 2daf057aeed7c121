//! The keys of a refresh: a key to an ephemeral sparse secret, that secret under the owner's key, and evaluation keys.

use super::params::RefreshParams;
use crate::Plaintext;
use crate::bgv::{Ciphertext, Encryptor};
use crate::error::ExactError;
use std::sync::Arc;
use sudare_rlwe::KeyId;
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, KeySource, KeySwitchKey, SecretKey};
use zeroize::Zeroizing;

/// The keys of a server that refreshes BFV and BGV ciphertexts; nothing secret.
#[derive(Clone, Debug)]
pub struct RefreshKeys {
    pub(super) params: RefreshParams,
    /// Relinearisation and rotations, over the set's parameters.
    pub(super) keys: Arc<EvalKeys>,
    /// From the dense secret to the sparse one, modulo q_0·p.
    pub(super) to_sparse: KeySwitchKey,
    /// The sparse secret modulo t², under the dense one; where there are slots for half of the coefficients, those of even
    /// powers and those of odd powers times X.
    pub(super) sparse: Vec<Ciphertext>,
}

impl RefreshKeys {
    /// Makes the keys, and the ephemeral sparse secret with them, which is forgotten.
    ///
    /// # Errors
    /// `RlweError::WrongParameters` for a secret of another set; `RlweError::Ring` without entropy.
    pub fn generate(secret: &SecretKey, params: &RefreshParams) -> Result<Self, ExactError> {
        params.params().rlwe().require("the secret key", secret.params())?;
        let sparse = SecretKey::generate(params.gate())?;
        Self::with_sparse(secret, &sparse, params)
    }

    /// The same with a sparse secret of the caller's.
    pub(super) fn with_sparse(
        secret: &SecretKey,
        sparse: &SecretKey,
        params: &RefreshParams,
    ) -> Result<Self, ExactError> {
        let mut wanted = params.wanted();
        let relin = wanted.next().map(|(_, level)| level);
        let elements: Vec<(u64, usize)> = wanted.collect();
        let keys = Arc::new(KeyGenerator::new(secret)?.eval_keys(relin, &elements)?);
        let to_sparse = KeyGenerator::new(sparse)?.key_from(secret.coefficients(), params.gate().max_level())?;
        let (square, shares) = (params.square(), params.layout().shares);
        let encryptor = Encryptor::with_secret_key(square, secret)?;
        let encrypted = |share: usize| {
            let coefficients = share_of(sparse.coefficients(), share, shares);
            let plain = coefficients.iter().map(|c| square.modulus().reduce_i64(*c)).collect();
            encryptor.encrypt(&Plaintext::from_coefficients(square, plain)?)
        };
        let sparse = (0..shares).map(encrypted).collect::<Result<_, ExactError>>()?;
        Ok(Self { params: params.clone(), keys, to_sparse, sparse })
    }

    /// The set.
    pub fn params(&self) -> &RefreshParams {
        &self.params
    }

    /// The name of the secret key they belong to.
    pub fn id(&self) -> KeyId {
        self.keys.id()
    }

    /// The relinearisation and rotation keys among them.
    pub fn eval_keys(&self) -> &EvalKeys {
        &self.keys
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.keys.bytes() + self.to_sparse.bytes() + self.sparse.iter().map(Ciphertext::bytes).sum::<usize>()
    }
}

/// X^k times the part of s whose powers are k modulo the number of shares, so that mask_k·share_k has only powers of X^shares
/// for mask_k the same part of a mask over X^k.
fn share_of(s: &[i64], share: usize, shares: usize) -> Zeroizing<Vec<i64>> {
    let n = s.len();
    let mut out = Zeroizing::new(vec![0; n]);
    for (i, c) in s.iter().enumerate().skip(share).step_by(shares) {
        let at = i + share;
        out[at % n] = if at < n { *c } else { -c };
    }
    out
}
