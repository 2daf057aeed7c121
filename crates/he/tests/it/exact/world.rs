//! Keys, encoders and plain arithmetic that the tests share.

use sudare_he::ckks::{Params, ParamsLiteral};
use sudare_he::integer::{
    Ciphertext, Decryptor, Encoder, Encryptor, Evaluator, IntegerParams, Packing, Plaintext, Scheme, Wrap,
};
use sudare_ring::PlainModulus;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security};

pub const STEPS: [i64; 4] = [1, -1, 3, 100];

pub fn literal(log_n: u32, q_bits: &[u32], p_bits: &[u32], digit_limbs: usize) -> ParamsLiteral {
    ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n,
            q_bits: q_bits.to_vec(),
            p_bits: p_bits.to_vec(),
            digit_limbs,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        },
        log_scale: 1,
    }
}

/// SplitMix64: test data.
pub struct Words(pub u64);

impl Words {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn values(&mut self, count: usize, bound: u64) -> Vec<u64> {
        (0..count).map(|i| if i == 0 { bound - 1 } else { self.below(bound) }).collect()
    }
}

pub struct World<S: Scheme> {
    pub params: IntegerParams,
    pub secret: SecretKey,
    pub server: Evaluator<S>,
    pub encoder: Encoder,
}

impl<S: Scheme> World<S> {
    pub fn new(literal: &ParamsLiteral, t: u64) -> Self {
        let params: Params = literal.build().unwrap();
        let integer = IntegerParams::new(&params, t).unwrap();
        let secret = SecretKey::generate(&params).unwrap();
        let top = params.max_level();
        let mut elements: Vec<_> = STEPS.iter().map(|s| (params.rotation_element(*s), top)).collect();
        elements.extend(integer.sum_elements(true).into_iter().map(|e| (e, top)));
        let keys = KeyGenerator::new(&secret).unwrap().eval_keys(Some(top), &elements).unwrap();
        let (server, encoder) = (Evaluator::new(&integer, keys).unwrap(), Encoder::new(&integer));
        Self { params: integer, secret, server, encoder }
    }

    pub fn t(&self) -> &PlainModulus {
        self.params.modulus()
    }

    pub fn plain(&self, values: &[u64], packing: Packing) -> Plaintext {
        self.encoder.encode_unsigned(values, packing, Wrap::Refuse).unwrap()
    }

    pub fn encrypt(&self, values: &[u64], packing: Packing) -> Ciphertext<S> {
        let encryptor = Encryptor::with_secret_key(&self.params, &self.secret).unwrap();
        encryptor.encrypt(&self.plain(values, packing)).unwrap()
    }

    pub fn decrypt(&self, ciphertext: &Ciphertext<S>, packing: Packing) -> Vec<u64> {
        let plain = Decryptor::new(&self.params, &self.secret).unwrap().decrypt(ciphertext).unwrap();
        self.encoder.decode_unsigned(&plain, packing).unwrap()
    }

    pub fn budget(&self, ciphertext: &Ciphertext<S>) -> f64 {
        Decryptor::new(&self.params, &self.secret).unwrap().noise_budget(ciphertext).unwrap()
    }

    /// The values, and that the static bound covers the noise.
    #[track_caller]
    pub fn expect(&self, ciphertext: &Ciphertext<S>, packing: Packing, wanted: &[u64]) {
        let (budget, headroom) = (self.budget(ciphertext), ciphertext.headroom());
        assert!(budget >= headroom && headroom > 0.0, "budget {budget:.1}, promised {headroom:.1}");
        assert_eq!(self.decrypt(ciphertext, packing), wanted);
    }

    /// The product of two messages: slot by slot, or of polynomials modulo X^N + 1.
    pub fn times(&self, packing: Packing, x: &[u64], y: &[u64]) -> Vec<u64> {
        let t = self.t();
        match packing {
            Packing::Slots => x.iter().zip(y).map(|(x, y)| t.mul(*x, *y)).collect(),
            Packing::Coefficients => {
                let n = x.len();
                let mut out = vec![0; n];
                for (i, a) in x.iter().enumerate().filter(|(_, a)| **a != 0) {
                    for (j, b) in y.iter().enumerate() {
                        let product = t.mul(*a, *b);
                        let term = if i + j < n { product } else { t.neg(product) };
                        out[(i + j) % n] = t.add(out[(i + j) % n], term);
                    }
                }
                out
            }
        }
    }

    pub fn plus(&self, x: &[u64], y: &[u64]) -> Vec<u64> {
        x.iter().zip(y).map(|(x, y)| self.t().add(*x, *y)).collect()
    }

    pub fn minus(&self, x: &[u64], y: &[u64]) -> Vec<u64> {
        x.iter().zip(y).map(|(x, y)| self.t().add(*x, self.t().neg(*y))).collect()
    }
}
