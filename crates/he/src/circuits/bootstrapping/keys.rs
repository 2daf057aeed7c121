//! Bootstrapping keys.

use super::params::BootstrapParams;
use crate::error::{HeError, parameters};
use std::sync::Arc;
use sudare_rlwe::keys::{EvalKeys, GaloisKey, KeyGenerator, KeySource, KeySwitchKey, SecretKey};
use sudare_rlwe::wire::KeyRecord;
use sudare_rlwe::{KeyId, RaiseKeys, ToDense, interleaved_secrets};

/// A key to the sparse secret or back, with its record and parameters.
type Gate<'a> = (KeyRecord, &'a KeySwitchKey, &'a sudare_rlwe::Params);

/// Everything that a server bootstraps with; nothing secret.
#[derive(Clone, Debug)]
pub struct BootstrapKeys {
    pub(super) params: BootstrapParams,
    /// Relinearisation and rotations, over the set's parameters.
    pub(super) keys: EvalKeys,
    /// From the dense secret to the sparse one, modulo q_0·p, and from that to the dense one, modulo Q·p: one key, or those of a stage
    /// of CtS.
    pub(super) gates: Arc<RaiseKeys>,
}

impl BootstrapKeys {
    /// Makes the keys, and the ephemeral sparse secret with them, which is forgotten.
    ///
    /// # Errors
    /// `RlweError::WrongParameters` for a secret of another set; `RlweError::Parameters` for half a bootstrap, whose keys are those of
    /// [`BootstrapKeys::packing`]; `RlweError::Ring` without entropy.
    pub fn generate(secret: &SecretKey, params: &BootstrapParams) -> Result<Self, HeError> {
        if params.literal().is_half() {
            return Err(parameters(
                "half a bootstrap takes ciphertexts of a small ring; make its keys with that ring's secret",
            ));
        }
        params.params().require("the secret key", secret.params())?;
        let sparse = SecretKey::generate(params.gate())?;
        Self::with_sparse(secret, &sparse, params)
    }

    /// Makes the keys of half a bootstrap, which takes products of ciphertexts under the secret of a small ring
    /// ([`sudare_rlwe::interleaved`]).
    ///
    /// # Errors
    /// As [`BootstrapKeys::generate`]; `RlweError::Parameters` for a set that is no half, or a small ring over another prime
    /// than q_0.
    pub fn packing(secret: &SecretKey, small: &SecretKey, params: &BootstrapParams) -> Result<Self, HeError> {
        params.params().require("the secret key", secret.params())?;
        if !params.literal().is_half() {
            return Err(parameters("this bootstrapping set begins with slots and takes no products of a small ring"));
        }
        let from = interleaved_secrets(params.low().rlwe(), small)?;
        let sparse = SecretKey::generate(params.gate())?;
        Self::from_secrets(secret, &[&from[0], &from[1]], &sparse, params)
    }

    /// The same with a sparse secret of the caller's.
    pub(super) fn with_sparse(
        secret: &SecretKey,
        sparse: &SecretKey,
        params: &BootstrapParams,
    ) -> Result<Self, HeError> {
        Self::from_secrets(secret, &[secret.coefficients()], sparse, params)
    }

    fn from_secrets(
        secret: &SecretKey,
        from: &[&[i64]],
        sparse: &SecretKey,
        params: &BootstrapParams,
    ) -> Result<Self, HeError> {
        let (levels, figures) = (params.layout().levels, params.figures()?);
        let elements: Vec<(u64, usize)> = figures.galois.iter().map(|(element, level)| (*element, *level)).collect();
        let keys = KeyGenerator::new(secret)?.eval_keys(figures.relin, &elements)?;
        let generator = KeyGenerator::new(sparse)?;
        let to_sparse = from.iter().map(|from| generator.key_from(from, 0)).collect::<Result<_, _>>()?;
        let copy = zeroize::Zeroizing::new(secret.coefficients().to_vec());
        let dense = SecretKey::from_coefficients(params.open(), secret.id(), copy)?;
        let to_dense = match params.layout().keyed() {
            Some(stage) => ToDense::Map(stage.keys(params, &dense, sparse)?),
            None => ToDense::Switch(KeyGenerator::new(&dense)?.key_from(sparse.coefficients(), levels.top)?),
        };
        Ok(Self { params: params.clone(), keys, gates: Arc::new(RaiseKeys { to_sparse, to_dense }) })
    }

    /// The set.
    pub fn params(&self) -> &BootstrapParams {
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
        self.keys.bytes() + self.gates().iter().map(|(_, key, _)| key.bytes()).sum::<usize>()
    }

    /// The keys to the sparse secret and back, each with its record and parameters.
    pub(super) fn gates(&self) -> Vec<Gate<'_>> {
        let RaiseKeys { to_sparse, to_dense } = &*self.gates;
        let (gate, open) = (self.params.gate(), self.params.open());
        let mut out: Vec<Gate<'_>> = to_sparse.iter().map(|key| (KeyRecord::of_switch(key), key, gate)).collect();
        match to_dense {
            ToDense::Switch(key) => out.push((KeyRecord::of_switch(key), key, open)),
            ToDense::Map(keys) => out.extend(keys.iter().map(|key| (KeyRecord::of_galois(key), key.key(), open))),
        }
        out
    }

    /// The keys of StC, which are not sent: digit 0 of those of CtS, divided by the special primes that
    /// StC does without.
    pub(super) fn low(&self) -> Result<EvalKeys, HeError> {
        let (params, low) = (&self.params, self.params.low());
        let mut out = EvalKeys::new(low, self.keys.id());
        for element in params.figures()?.low.iter().copied() {
            let key = self.keys.galois(element, 0)?.key().reduced(low)?;
            out.insert(GaloisKey::from_parts(element, key)?)?;
        }
        Ok(out)
    }
}
