//! The key in, and packing with it.

use super::{ENTRY, Exchange, LweForm};
use crate::core::context::check_shape;
use crate::keyswitch::pack::Rescale;
use crate::{ClientKey, GlweSecretKey, Packable, PackingKey, TfheError};
use sudare_ring::random::{MaskSeed, Seed};
use sudare_ring::threads;
use zeroize::Zeroizing;

/// Packs LWE ciphertexts into a large ring, under a secret in X^(N/N').
pub struct EntryKey {
    exchange: Exchange,
    packing: PackingKey,
}

impl EntryKey {
    /// Draws the secret that is packed under, and makes the key. The coefficients of that secret, as one of the large ring, come with
    /// it, for a key from there to another secret.
    ///
    /// # Errors
    /// `RlweError::WrongParameters` for a client of another set; `RlweError::Ring` without entropy.
    pub fn generate(exchange: &Exchange, client: &ClientKey) -> Result<(Self, Zeroizing<Vec<i64>>), TfheError> {
        exchange.params().hash().require("the client key", client.params().hash())?;
        let mut stream = Seed::from_entropy()?.derive("sudare exchange secret", 0).stream(0);
        let secret = GlweSecretKey::generate(exchange.entry(), &mut stream);
        let from = match exchange.form() {
            LweForm::AtRest => client.extracted(),
            LweForm::Switched => client.lwe(),
        };
        let packing = PackingKey::generate(from, &secret, ENTRY, &client.object_seeds()?)?;
        let mut large = Zeroizing::new(vec![0i64; exchange.degree()]);
        let gap = exchange.degree() / exchange.entry().degree();
        large.iter_mut().step_by(gap).zip(secret.coefficients()).for_each(|(to, s)| *to = *s);
        Ok((Self { exchange: exchange.clone(), packing }, large))
    }

    /// How many parts it travels in.
    pub fn parts_of(exchange: &Exchange) -> usize {
        PackingKey::parts_of(exchange.dimension())
    }

    /// Words of a part.
    pub fn words_of(exchange: &Exchange, part: usize) -> usize {
        PackingKey::bodies_of(exchange.dimension(), ENTRY, part) * exchange.entry().degree()
    }

    /// The bodies of a part.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn bodies(&self, part: usize) -> Vec<u64> {
        self.packing.bodies(part)
    }

    /// A key from its seed and the bodies of its parts.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of bodies, `RlweError::Ring` for one that is too large.
    pub fn from_bodies(exchange: &Exchange, masks: MaskSeed, bodies: &[Vec<u64>]) -> Result<Self, TfheError> {
        let packing = PackingKey::from_bodies(exchange.entry(), exchange.dimension(), ENTRY, masks, bodies)?;
        Ok(Self { exchange: exchange.clone(), packing })
    }

    /// What it is for.
    pub fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// The seed of its masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        self.packing.mask_seed()
    }

    /// Bytes in memory.
    pub fn byte_len(&self) -> usize {
        self.packing.byte_len()
    }

    /// Ciphertext j to coefficient j of c_0 + c_1·z, modulo `q`, for as many as the large ring has coefficients; zero where there is
    /// none. Groups run in parallel inside a thread pool.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Modulus`] for ciphertexts of another dimension or of several moduli.
    pub fn pack<C: Packable>(&self, inputs: &[Option<&C>], q: u64) -> Result<[Vec<u64>; 2], TfheError> {
        let (n, context) = (self.exchange.degree(), self.exchange.entry());
        check_shape("coefficients", n, inputs.len())?;
        let (groups, scale) = (n / context.degree(), Rescale::new(context.q(), q));
        let one = |group: usize| {
            let here: Vec<Option<&C>> = inputs.iter().skip(group).step_by(groups).copied().collect();
            self.packing.pack(&here)
        };
        let mut out = [vec![0u64; n], vec![0u64; n]];
        for (group, packed) in threads::map(groups, one).into_iter().enumerate() {
            let packed = packed?;
            let [c0, c1] = &mut out;
            for (to, b) in c0[group..].iter_mut().step_by(groups).zip(packed.body()) {
                *to = scale.apply(*b);
            }
            // TFHE takes the mask times the secret away.
            for (to, a) in c1[group..].iter_mut().step_by(groups).zip(packed.mask(0)) {
                let a = scale.apply(*a);
                *to = if a == 0 { 0 } else { q - a };
            }
        }
        Ok(out)
    }
}
