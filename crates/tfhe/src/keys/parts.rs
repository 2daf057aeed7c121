//! Keys from what their files hold.

use crate::core::context::check_shape;
use crate::keys::{ClientKey, Inner, ServerKey};
use crate::{BootstrapKey, GlweSecretKey, LweSecretKey, SecretKind, SwitchKey, TfheError, TfheParams};
use std::sync::Arc;
use sudare_ring::random::Entropy;
use sudare_rlwe::KeyId;
use zeroize::Zeroizing;

impl ClientKey {
    /// A key from its name and the coefficients of its GLWE and LWE keys. Its ciphertexts draw from
    /// the operating system.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of coefficients, [`TfheError::Parameters`] for one
    /// that is no bit, `RlweError::Ring` if the system gives no entropy.
    pub fn from_coefficients(
        params: &TfheParams,
        id: KeyId,
        glwe: Zeroizing<Vec<i64>>,
        lwe: Zeroizing<Vec<i64>>,
    ) -> Result<Self, TfheError> {
        check_shape("secret coefficients", params.literal().lwe_dimension, lwe.len())?;
        let glwe = GlweSecretKey::from_coefficients(params.context(), glwe)?;
        let lwe = LweSecretKey::from_coefficients(SecretKind::Binary, lwe)?;
        let extracted = glwe.to_lwe()?;
        Ok(Self { params: params.clone(), id, glwe, extracted, lwe, entropy: Entropy::system()? })
    }
}

impl ServerKey {
    /// A key from its bootstrapping and switching keys.
    ///
    /// # Errors
    /// [`TfheError::Modulus`], [`TfheError::Shape`] for keys of other parameters.
    pub fn from_parts(
        params: &TfheParams,
        id: KeyId,
        bootstrap: BootstrapKey,
        switch: SwitchKey,
    ) -> Result<Self, TfheError> {
        params.context().check(bootstrap.steps().context())?;
        check_shape("LWE dimension", params.literal().lwe_dimension, bootstrap.dimension())?;
        check_shape("LWE dimension", params.context().lwe_dimension(), switch.dimensions().0)?;
        check_shape("LWE dimension", params.literal().lwe_dimension, switch.dimensions().1)?;
        Ok(Self(Arc::new(Inner { params: params.clone(), id, bootstrap, switch })))
    }
}
