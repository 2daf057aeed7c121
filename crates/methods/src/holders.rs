//! Who holds a key together.

use crate::error::MatrixError;
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::SecretDistribution;

/// Several parties that hold a key together, and decrypt results for each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Holders {
    /// How many there are.
    pub parties: u32,
    /// How many of them decrypt.
    pub threshold: u32,
    /// How many results they open, and the bits that their noise hides.
    pub release: ReleasePolicy,
}

impl Holders {
    /// The distribution of the secret that nobody has.
    pub fn secret(&self) -> SecretDistribution {
        SecretDistribution::TernarySum { parties: self.parties }
    }

    /// The policy of a ciphertext of a result that has `count` of them: each is decrypted by itself.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for more decryptions than any policy has.
    pub fn policy(&self, count: usize) -> Result<ReleasePolicy, MatrixError> {
        let all = self.release.releases().saturating_mul(count as u64);
        ReleasePolicy::new(all, self.release.security_bits()).map_err(|_| MatrixError::NoPlan {
            reason: format!(
                "{} results of {count} ciphertexts are more than can be released; declare fewer results",
                self.release.releases()
            ),
        })
    }
}
