//! Key switching from ciphertexts at rest to dimension n: by rows of LWE ciphertexts, or inside the
//! ring.

mod seeded;

use super::context::check_shape;
use super::ggsw::ObjectSeeds;
use super::key_switch::{GlweSwitchKey, LweSwitchKey, TorusScale};
use super::{
    Gadget, GlweCiphertext, GlweContext, GlweSecretKey, LweCiphertext, LweSecretKey, Noise, TfheError, TorusLwe,
};
use sudare_ring::random::MaskSeed;
use zeroize::Zeroizing;

/// A key switch inside the ring, to a GLWE secret of which all coefficients but the first n are zero.
///
/// The LWE ciphertext is the constant coefficient of a GLWE ciphertext; that is switched with a few
/// transforms, and the constant coefficient extracted again: n of its mask words meet the secret.
/// Source: Bergerat, Chillotti, Ligier, Orfila, Roux-Langlois and Tap, *New secret keys for enhanced
/// performance in (T)FHE*, 2023/979. It assumes that GLWE with such a *partial* secret is as hard as
/// LWE in dimension n, which is younger than the assumptions of the other keys.
pub struct RingSwitchKey {
    from: GlweContext,
    dimension: usize,
    key: GlweSwitchKey,
}

impl RingSwitchKey {
    /// A key from the coefficients of `from` to a binary LWE key; `noise` is in units of 1/q.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a longer LWE key than the GLWE key's, or a gadget that does not
    /// fit the modulus.
    pub fn generate(
        from: &GlweSecretKey,
        to: &LweSecretKey,
        gadget: Gadget,
        noise: Noise,
        seeds: &ObjectSeeds,
    ) -> Result<Self, TfheError> {
        let context = from.context();
        let (n, rank) = (context.degree(), to.dimension().div_ceil(context.degree()));
        if rank > context.rank() {
            return Err(TfheError::Parameters { reason: "a key switch goes to a shorter key".into() });
        }
        let partial = GlweContext::new(n, context.q(), rank, to.kind(), noise)?;
        let mut s = Zeroizing::new(vec![0i64; rank * n]);
        s[..to.dimension()].copy_from_slice(to.coefficients());
        let target = GlweSecretKey::from_coefficients(&partial, s)?;
        let key = GlweSwitchKey::generate(from, &target, gadget, seeds)?;
        Ok(Self { from: context.clone(), dimension: to.dimension(), key })
    }

    /// Switches a ciphertext.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Modulus`] for a ciphertext of another ring.
    pub fn switch(&self, c: &LweCiphertext) -> Result<TorusLwe, TfheError> {
        let (n, q) = (self.from.degree(), self.from.modulus());
        check_shape("LWE dimension", self.from.lwe_dimension(), c.dimension())?;
        if c.modulus() != q {
            return Err(TfheError::Modulus { expected: q.value(), found: c.modulus().value() });
        }
        let mut glwe = GlweCiphertext::zero(&self.from);
        for (out, a) in glwe.words_mut().chunks_exact_mut(n).zip(c.mask().chunks_exact(n)) {
            // What an extraction of coefficient 0 reads back.
            out[0] = a[0];
            out[1..].iter_mut().zip(a[1..].iter().rev()).for_each(|(o, x)| *o = q.neg(*x));
        }
        glwe.body_mut()[0] = c.body();
        let switched = self.key.switch(&glwe)?.extract(0)?;
        let scale = TorusScale::new(q);
        let mut words: Vec<u32> = switched.mask()[..self.dimension].iter().map(|a| scale.scale(*a)).collect();
        words.push(scale.scale(switched.body()));
        TorusLwe::from_words(words)
    }
}

/// How a server takes ciphertexts at rest to dimension n.
pub enum SwitchKey {
    /// Rows of LWE ciphertexts in 32-bit words.
    Lwe(LweSwitchKey),
    /// Inside the ring, to a partial secret.
    Ring(RingSwitchKey),
}

impl SwitchKey {
    /// Switches a ciphertext.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Modulus`] for a ciphertext of another ring.
    pub fn switch(&self, c: &LweCiphertext) -> Result<TorusLwe, TfheError> {
        match self {
            Self::Lwe(key) => key.switch(c),
            Self::Ring(key) => key.switch(c),
        }
    }

    /// The seed of its masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        match self {
            Self::Lwe(key) => key.mask_seed(),
            Self::Ring(key) => key.key.mask_seed(),
        }
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        match self {
            Self::Lwe(key) => key.byte_len(),
            Self::Ring(key) => key.key.byte_len(),
        }
    }

    /// Bytes of its bodies and seed, all that has to be sent.
    pub fn seeded_byte_len(&self) -> usize {
        match self {
            Self::Lwe(key) => key.seeded_byte_len(),
            Self::Ring(key) => key.key.seeded_byte_len(),
        }
    }
}
