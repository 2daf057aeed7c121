//! Keys, encoders and plain arithmetic that the tests share.

use sudare_exact::plan::EXACT;
use sudare_exact::{
    Ciphertext, Decryptor, Encoder, Encryptor, Evaluator, IntegerParams, Packing, Plaintext, Scheme, Wrap,
};
use sudare_ring::PlainModulus;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_testkit::plain::negacyclic;

pub const STEPS: [i64; 4] = [1, -1, 3, 100];

/// A set without security, of a ternary secret.
pub fn literal(log_n: u32, q_bits: &[u32], p_bits: &[u32], digit_limbs: usize) -> ParamsLiteral {
    let (secret, security) = (SecretDistribution::Ternary, Security::Insecure);
    ParamsLiteral { log_n, q_bits: q_bits.to_vec(), p_bits: p_bits.to_vec(), digit_limbs, secret, security }
}

pub struct World<S: Scheme> {
    pub params: IntegerParams,
    pub secret: SecretKey,
    pub server: Evaluator<S>,
    pub encoder: Encoder,
}

impl<S: Scheme> World<S> {
    pub fn new(literal: &ParamsLiteral, t: u64) -> Self {
        let params = literal.build(EXACT).unwrap();
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
            Packing::Coefficients => negacyclic(x, y, t.value()),
        }
    }

    pub fn plus(&self, x: &[u64], y: &[u64]) -> Vec<u64> {
        x.iter().zip(y).map(|(x, y)| self.t().add(*x, *y)).collect()
    }

    pub fn minus(&self, x: &[u64], y: &[u64]) -> Vec<u64> {
        x.iter().zip(y).map(|(x, y)| self.t().add(*x, self.t().neg(*y))).collect()
    }
}
