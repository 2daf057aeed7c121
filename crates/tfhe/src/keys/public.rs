//! A key that encrypts and can do no more.

use crate::array::{ElementType, EncryptedArray, phases};
use crate::noise::variance;
use crate::{ClientKey, EncryptedInt, GlweCiphertext, TfheError, TfheParams};
use std::fmt;
use sudare_ring::random::{Entropy, MaskSeed, Purpose, uniform};
use sudare_ring::threads;
use sudare_rlwe::KeyId;

const OBJECT: Purpose = Purpose::new("sudare tfhe public encryption");

/// Encrypts for the holder of a client key, and can do no more.
///
/// It is k encryptions of zero z_j under the GLWE key of rank k. Messages are the coefficients of a polynomial m, which is
/// encrypted as `Σ u_j·z_j + (e_1, …, e_k, e_0 + m)` with secret ternary u_j, and each coefficient is extracted
/// (Lyubashevsky, Peikert and Regev, *On ideal lattices and learning with errors over rings*, J. ACM 60(6), 2013, section
/// 8.2, for modules). Keys and masks hide by module LWE of the client key's own rank, degree and noise.
#[derive(Clone)]
pub struct PublicKey {
    params: TfheParams,
    id: KeyId,
    masks: MaskSeed,
    zeros: Vec<GlweCiphertext>,
}

impl PublicKey {
    /// Its parameters.
    pub fn params(&self) -> &TfheParams {
        &self.params
    }

    /// The client key that it encrypts for.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The seed of its masks, and its bodies one after the other.
    pub fn parts(&self) -> (&MaskSeed, Vec<u64>) {
        (&self.masks, self.zeros.iter().flat_map(|z| z.body().iter().copied()).collect())
    }

    /// A key from the seed of its masks and its bodies.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for another number of words, `RlweError::Ring` for one not below q.
    pub fn from_parts(params: &TfheParams, id: KeyId, masks: MaskSeed, bodies: &[u64]) -> Result<Self, TfheError> {
        let context = params.context();
        let (n, limb) = (context.degree(), context.limb());
        crate::core::context::check_shape("words of bodies", context.lwe_dimension(), bodies.len())?;
        let zeros = bodies.chunks_exact(n).enumerate().map(|(j, body)| {
            let mut words = vec![0; context.words()];
            let (mask, of_body) = words.split_at_mut(context.lwe_dimension());
            uniform(&mut masks.stream(j as u64), limb.modulus(), mask);
            mask.chunks_exact_mut(n).for_each(|p| limb.inverse(p));
            of_body.copy_from_slice(body);
            GlweCiphertext::from_words(context, &words)
        });
        Ok(Self { params: params.clone(), id, masks, zeros: zeros.collect::<Result<_, _>>()? })
    }

    /// Noise variance of what it encrypts, as a part of the torus.
    pub fn variance(&self) -> f64 {
        let context = self.params.context();
        variance::hidden(context, context.rank(), variance::glwe_fresh(context))
    }

    /// Encrypts an array as [`ClientKey::encrypt_array`] does. Each block travels whole, without a seed.
    ///
    /// # Errors
    /// Those of [`ClientKey::encrypt_array`]; [`TfheError::Parameters`] for a set whose bootstraps leave less noise than this
    /// encryption, and so were not derived for it.
    pub fn encrypt_array(
        &self,
        element: ElementType,
        shape: Vec<usize>,
        values: &[u64],
    ) -> Result<EncryptedArray, TfheError> {
        let (params, context) = (&self.params, self.params.context());
        if self.variance() > params.output_variance() {
            let reason = "an encryption under a public key has more noise than a bootstrap leaves in this set; encrypt with \
                          the client key, or take another set";
            return Err(TfheError::Parameters { reason: reason.into() });
        }
        let (phases, n) = (phases(params, element, &shape, values)?, context.degree());
        let (owner, entropy) = ((params.hash(), self.id), Entropy::system()?);
        let polynomials = threads::map(phases.len().div_ceil(n), |at| {
            let part = &phases[at * n..phases.len().min((at + 1) * n)];
            let mut message = zeroize::Zeroizing::new(part.to_vec());
            message.resize(n, 0);
            let mut c = GlweCiphertext::trivial(context, &message)?;
            let seed = entropy.object(OBJECT)?.errors;
            c.hide(self.zeros.iter(), |j| seed.derive("factors", j), &seed.derive("errors", 0));
            let block = |i| Ok(EncryptedInt::from_parts(c.extract(i)?, owner, element.largest(), 1));
            (0..part.len()).map(block).collect::<Result<Vec<_>, TfheError>>()
        });
        let blocks = polynomials.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(EncryptedArray::computed(element, shape, owner, blocks.into_iter().flatten().collect()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.id)
    }
}

impl ClientKey {
    /// A key that encrypts for this one.
    ///
    /// # Errors
    /// `RlweError::Ring` if the system gives no entropy.
    pub fn public_key(&self) -> Result<PublicKey, TfheError> {
        let (params, seeds) = (self.params(), self.object_seeds()?);
        let nothing = vec![0; params.context().degree()];
        let zero = |j: u64| self.glwe().encrypt(&nothing, &mut seeds.masks.stream(j), &mut seeds.errors.stream(j));
        let zeros = (0..params.context().rank() as u64).map(zero).collect::<Result<_, _>>()?;
        Ok(PublicKey { params: params.clone(), id: self.id(), masks: seeds.masks, zeros })
    }
}
