//! The key out, and the ciphertexts that a large one splits into.

use super::{EXIT, Exchange};
use crate::core::context::check_shape;
use crate::keyswitch::pack::Rescale;
use crate::{ClientKey, GlweCiphertext, GlweSecretKey, GlweSwitchKey, LweCiphertext, TfheError};
use sudare_ring::random::MaskSeed;
use zeroize::Zeroizing;

/// Takes ciphertexts of the large ring to TFHE's secrets.
pub struct ExitKey {
    exchange: Exchange,
    switch: GlweSwitchKey,
}

/// A ciphertext of the large ring as the N/d ciphertexts of TFHE's ring that it is.
#[derive(Clone, Debug)]
pub struct Parts(Vec<GlweCiphertext>);

impl Parts {
    /// How many coefficients there are.
    pub fn coefficients(&self) -> usize {
        self.0.iter().map(|c| c.context().degree()).sum()
    }

    /// The ciphertext at rest of coefficient `at` of the large ring.
    ///
    /// # Errors
    /// [`TfheError::Shape`] if there is no such coefficient.
    pub fn extract(&self, at: usize) -> Result<LweCiphertext, TfheError> {
        let part = self.0.get(at % self.0.len().max(1));
        let part = part.ok_or(TfheError::Shape { what: "coefficient index", expected: 0, found: at })?;
        part.extract(at / self.0.len())
    }
}

impl ExitKey {
    /// A key from the secret of the large ring with these coefficients, which are −1, 0 and 1.
    ///
    /// # Errors
    /// `RlweError::WrongParameters` for a client of another set; [`TfheError::Shape`], `RlweError::Ring`.
    pub fn generate(exchange: &Exchange, client: &ClientKey, secret: &[i64]) -> Result<Self, TfheError> {
        exchange.params().hash().require("the client key", client.params().hash())?;
        let (n, context, small) = (exchange.degree(), exchange.exit(), exchange.params().context());
        check_shape("secret coefficients", n, secret.len())?;
        // S_i(X^(N/d)).
        let mut to = Zeroizing::new(vec![0i64; context.lwe_dimension()]);
        let gap = n / small.degree();
        for (to, s) in to.chunks_exact_mut(n).zip(client.glwe().coefficients().chunks_exact(small.degree())) {
            to.iter_mut().step_by(gap).zip(s).for_each(|(to, s)| *to = *s);
        }
        let to = GlweSecretKey::from_coefficients(context, to)?;
        let mut from = Zeroizing::new(vec![0u64; n]);
        context.limb().from_i64(&mut from, secret);
        context.limb().forward(&mut from);
        let switch = GlweSwitchKey::generate_from(&[&from], &to, EXIT, &client.object_seeds()?)?;
        Ok(Self { exchange: exchange.clone(), switch })
    }

    /// Words of its bodies.
    pub fn words_of(exchange: &Exchange) -> usize {
        EXIT.levels as usize * exchange.degree()
    }

    /// The bodies.
    pub fn bodies(&self) -> Vec<u64> {
        self.switch.bodies()
    }

    /// A key from its seed and bodies.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of bodies, `RlweError::Ring` for one that is too large.
    pub fn from_bodies(exchange: &Exchange, masks: MaskSeed, bodies: &[u64]) -> Result<Self, TfheError> {
        let switch = GlweSwitchKey::from_bodies(exchange.exit(), 1, EXIT, masks, bodies)?;
        Ok(Self { exchange: exchange.clone(), switch })
    }

    /// The seed of its masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        self.switch.mask_seed()
    }

    /// Bytes in memory.
    pub fn byte_len(&self) -> usize {
        self.switch.byte_len()
    }

    /// The ciphertexts that c_0 + c_1·s modulo `q`, given by coefficients, splits into.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of coefficients, `RlweError::Ring` for one that is not below `q`.
    pub fn split(&self, [c0, c1]: [&[u64]; 2], q: u64) -> Result<Parts, TfheError> {
        let (n, [source, target]) = (self.exchange.degree(), &self.exchange.0.exit);
        check_shape("coefficients", n, c0.len())?;
        check_shape("coefficients", n, c1.len())?;
        let scale = Rescale::new(q, source.q());
        // TFHE takes the mask times the secret away.
        let mask = c1.iter().map(|a| source.modulus().neg(scale.apply(*a)));
        let words: Vec<u64> = mask.chain(c0.iter().map(|b| scale.apply(*b))).collect();
        let switched = self.switch.switch(&GlweCiphertext::from_words(source, &words)?)?;
        let small = self.exchange.params().context();
        let (parts, scale) = (n / small.degree(), Rescale::new(target.q(), small.q()));
        let one = |part: usize| {
            let words: Vec<u64> = switched
                .words()
                .chunks_exact(n)
                .flat_map(|p| p[part..].iter().step_by(parts).map(|x| scale.apply(*x)))
                .collect();
            GlweCiphertext::from_words(small, &words)
        };
        Ok(Parts((0..parts).map(one).collect::<Result<_, _>>()?))
    }
}
