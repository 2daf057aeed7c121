//! BFV and BGV.

use super::{Expected, Steps, World, steps};
use crate::Outcome;
use crate::timing::{Budget, Unit};
use sudare_exact::{Ciphertext, Decryptor, Encoder, Encryptor, Evaluator, IntegerParams, Packing, Scheme, Wrap};
use sudare_rlwe::Params;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_testkit::Random;

/// Keys and operands of one set.
pub struct IntegerWorld<S: Scheme> {
    params: IntegerParams,
    secret: SecretKey,
    server: Evaluator<S>,
    encoder: Encoder,
    packing: Packing,
    x: Vec<u64>,
    a: Ciphertext<S>,
    b: Ciphertext<S>,
}

impl<S: Scheme> IntegerWorld<S> {
    /// Both operands hold the same random values.
    pub fn new(params: &IntegerParams) -> Outcome<Self> {
        let secret = SecretKey::generate(params)?;
        let keys = KeyGenerator::new(&secret)?.eval_keys(Some(params.max_level()), &[])?;
        let encoder = Encoder::new(params);
        let packing = if params.has_slots() { Packing::Slots } else { Packing::Coefficients };
        let mut random = Random(11);
        // As a polynomial, a constant: then products are constants too.
        let count = if params.has_slots() { params.degree() } else { 1 };
        let x: Vec<u64> = (0..count).map(|_| random.word() % params.t()).collect();
        let plain = encoder.encode_unsigned(&x, packing, Wrap::Refuse)?;
        let encryptor = Encryptor::<S>::with_secret_key(params, &secret)?;
        let (a, b) = (encryptor.encrypt(&plain)?, encryptor.encrypt(&plain)?);
        let server = Evaluator::new(params, keys)?;
        Ok(Self { params: params.clone(), secret, server, encoder, packing, x, a, b })
    }
}

impl<S: Scheme> World for IntegerWorld<S> {
    type Ciphertext = Ciphertext<S>;

    fn scheme(&self) -> &'static str {
        S::NAME
    }

    fn params(&self) -> &Params {
        self.params.rlwe()
    }

    fn words(&self, params: String) -> String {
        format!("t {} {params}", self.params.t())
    }

    fn key_bytes(&self) -> usize {
        self.server.keys().bytes()
    }

    fn fresh(&self) -> &Ciphertext<S> {
        &self.a
    }

    fn bytes(&self, c: &Ciphertext<S>) -> usize {
        c.bytes()
    }

    fn add(&self) -> Outcome<Ciphertext<S>> {
        Ok(self.server.add(&self.a, &self.b)?)
    }

    fn multiply(&self) -> Outcome<Ciphertext<S>> {
        Ok(self.server.mul_relin(&self.a, &self.b)?)
    }

    fn square(&self, c: &Ciphertext<S>) -> Outcome<Ciphertext<S>> {
        Ok(self.server.square(c)?)
    }

    fn check(&self, c: &Ciphertext<S>, wanted: Expected) -> Outcome<(f64, f64)> {
        let plain = Decryptor::new(&self.params, &self.secret)?.decrypt(c)?;
        let found = self.encoder.decode_unsigned(&plain, self.packing)?;
        let t = self.params.modulus();
        let value = |x: u64| match wanted {
            Expected::Sum => t.add(x, x),
            Expected::Product => t.mul(x, x),
            Expected::Squares(depth) => (0..depth).fold(x, |x, _| t.mul(x, x)),
        };
        let wrong = self.x.iter().zip(&found).filter(|(x, y)| value(**x) != **y).count();
        // Not one value may be wrong.
        Ok((wrong as f64, 0.0))
    }

    fn steps(&self, unit: &mut Unit, budget: Budget) -> Outcome<Steps> {
        let product = self.server.mul(&self.a, &self.b)?;
        let products = || Ok(self.server.mul(&self.a, &self.b).map(drop)?);
        let relinearised = (product.inner(), self.server.keys());
        steps::of(self, unit, budget, products, relinearised)
    }
}
