//! Integers and bits with tables of their values.

mod exact;
mod gates;
mod lwe;
mod refusals;
mod tables;

use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapLiteral, Bootstrapper};
use sudare_he::discrete::{Decryptor, Discrete, Encryptor, Evaluator, Form};
use sudare_rlwe::keys::SecretKey;
use sudare_testkit::Random;

/// A key owner and a server of a set.
pub struct World {
    pub secret: SecretKey,
    pub server: Evaluator,
}

impl World {
    pub fn new(literal: &BootstrapLiteral) -> Self {
        let params = literal.build().unwrap();
        let secret = SecretKey::generate(params.params()).unwrap();
        let keys = BootstrapKeys::generate(&secret, &params).unwrap();
        Self { secret, server: Evaluator::new(Bootstrapper::new(keys, None).unwrap()).unwrap() }
    }

    /// A set's shape over a small ring.
    pub fn small(literal: BootstrapLiteral, log_n: u32) -> Self {
        Self::new(&literal.insecure(log_n).unwrap())
    }

    /// N.
    pub fn len(&self) -> usize {
        self.server.params().params().degree()
    }

    pub fn client(&self) -> Encryptor<'_> {
        Encryptor::with_secret_key(self.server.params(), &self.secret).unwrap()
    }

    pub fn encrypt(&self, values: &[u64], modulus: u64, form: Form) -> Discrete {
        self.client().encrypt(values, modulus, form).unwrap()
    }

    pub fn bits(&self, bits: &[bool], form: Form) -> Discrete {
        self.client().encrypt_bits(bits, form).unwrap()
    }

    pub fn decrypt(&self, value: &Discrete) -> Vec<u64> {
        Decryptor::new(self.server.params(), &self.secret).unwrap().decrypt(value).unwrap()
    }

    /// N integers below t, each of them among the first t.
    pub fn integers(&self, random: &mut Random, modulus: u64) -> Vec<u64> {
        let any = |i: usize| if (i as u64) < modulus { i as u64 } else { random.below(modulus) };
        (0..self.len()).map(any).collect()
    }

    pub fn random_bits(&self, random: &mut Random) -> Vec<bool> {
        (0..self.len()).map(|_| random.chance(50)).collect()
    }

    /// Mean square of the errors of a value of which the integers are known, as slots hold them.
    pub fn error(&self, value: &Discrete, integers: &[i64]) -> f64 {
        let params = self.server.params().params();
        let encoder = sudare_he::ckks::Encoder::new(params);
        let owner = sudare_he::ckks::Decryptor::new(&self.secret);
        let mut found = Vec::new();
        for part in value.parts() {
            let slots = encoder.decode_complex(&owner.decrypt(part).unwrap()).unwrap();
            found.extend(slots.iter().map(|z| z.re));
            if value.parts().len() == 1 {
                found.extend(slots.iter().map(|z| z.im));
            }
        }
        assert_eq!(found.len(), integers.len());
        let errors: Vec<f64> = found.iter().zip(integers).map(|(x, i)| x - *i as f64).collect();
        assert!(errors.iter().all(|e| e.abs() <= value.error() + 1e-9));
        errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64
    }
}
