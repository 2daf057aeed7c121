//! Refresh of BFV and BGV by removal of the noise digit.

mod exact;
mod refusals;
mod wire;

use sudare_exact::refresh::{RefreshKeys, RefreshLiteral, RefreshParams, Refresher};
use sudare_exact::{Ciphertext, Decryptor, Encoder, Encryptor, Evaluator, Packing, Scheme, Wrap};
use sudare_rlwe::keys::SecretKey;
use sudare_testkit::Random;

/// A key owner and a server of a set.
pub struct World {
    pub set: RefreshParams,
    pub secret: SecretKey,
    pub server: Refresher,
    pub encoder: Encoder,
}

impl World {
    pub fn new(literal: &RefreshLiteral) -> Self {
        let set = literal.build().unwrap();
        let secret = SecretKey::generate(set.params()).unwrap();
        let server = Refresher::new(RefreshKeys::generate(&secret, &set).unwrap(), None).unwrap();
        let encoder = Encoder::new(set.params());
        Self { set, secret, server, encoder }
    }

    /// A set's shape over the least ring.
    pub fn small(literal: RefreshLiteral) -> Self {
        let log_n = 9 + u32::from(literal.half());
        Self::new(&literal.insecure(log_n).unwrap())
    }

    pub fn slots(&self) -> usize {
        self.set.params().slots()
    }

    pub fn random(&self, random: &mut Random) -> Vec<u64> {
        random.words(self.set.params().t(), self.slots())
    }

    pub fn encrypt<S: Scheme>(&self, values: &[u64], level: usize) -> Ciphertext<S> {
        let plain = self.encoder.encode_unsigned(values, Packing::Slots, Wrap::Refuse).unwrap();
        Encryptor::with_secret_key(self.set.params(), &self.secret).unwrap().encrypt_at(&plain, level).unwrap()
    }

    pub fn decrypt<S: Scheme>(&self, ciphertext: &Ciphertext<S>) -> Vec<u64> {
        let plain = Decryptor::new(self.set.params(), &self.secret).unwrap().decrypt(ciphertext).unwrap();
        self.encoder.decode_unsigned(&plain, Packing::Slots).unwrap()
    }

    /// Bits between the noise bound that a ciphertext states and its noise: never negative.
    pub fn slack<S: Scheme>(&self, ciphertext: &Ciphertext<S>) -> f64 {
        let budget = Decryptor::new(self.set.params(), &self.secret).unwrap().noise_budget(ciphertext).unwrap();
        budget - ciphertext.headroom()
    }

    pub fn evaluator<S: Scheme>(&self) -> Evaluator<S> {
        self.server.evaluator().unwrap()
    }
}
