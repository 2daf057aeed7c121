//! What the tests share: small insecure parameters, keys, measured errors.

use num_complex::Complex64;
use sudare_he::ckks::{Ciphertext, Decryptor, EncodeAt, Encoder, Encryptor, Evaluator};
use sudare_he::ckks::{Params, ParamsLiteral};
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_testkit::Random;

/// A set without security, of a ternary secret.
pub fn literal(log_n: u32, q_bits: &[u32], p_bits: &[u32], digit_limbs: usize, log_scale: u32) -> ParamsLiteral {
    let (secret, security) = (SecretDistribution::Ternary, Security::Insecure);
    let (q_bits, p_bits) = (q_bits.to_vec(), p_bits.to_vec());
    let rlwe = sudare_rlwe::params::ParamsLiteral { log_n, q_bits, p_bits, digit_limbs, secret, security };
    ParamsLiteral { rlwe, log_scale }
}

/// A key owner.
pub struct Owner {
    pub params: Params,
    pub secret: SecretKey,
    pub encoder: Encoder,
}

impl Owner {
    pub fn new(params: &Params) -> Self {
        let secret = SecretKey::generate(params).unwrap();
        Self { params: params.clone(), secret, encoder: Encoder::new(params) }
    }

    /// A server with a relinearisation key and some automorphisms, up to the highest level.
    pub fn server(&self, elements: &[u64]) -> Evaluator {
        let top = self.params.max_level();
        let elements: Vec<_> = elements.iter().map(|e| (*e, top)).collect();
        let keys = KeyGenerator::new(&self.secret).unwrap().eval_keys(Some(top), &elements).unwrap();
        Evaluator::new(&self.params, keys).unwrap()
    }

    pub fn encrypt(&self, values: &[Complex64], level: usize, scale: f64, max_abs: f64) -> Ciphertext {
        let at = EncodeAt { level, scale, max_abs };
        let plain = self.encoder.encode_complex(values, at).unwrap();
        Encryptor::with_secret_key(&self.secret).unwrap().encrypt(&plain).unwrap()
    }

    pub fn decrypt(&self, ciphertext: &Ciphertext) -> Vec<Complex64> {
        self.encoder.decode_complex(&Decryptor::new(&self.secret).decrypt(ciphertext).unwrap()).unwrap()
    }
}

/// Reals in [−1, 1).
pub fn reals(random: &mut Random, count: usize) -> Vec<Complex64> {
    (0..count).map(|_| random.unit().into()).collect()
}

/// In the unit disc.
pub fn complex(random: &mut Random, count: usize) -> Vec<Complex64> {
    (0..count).map(|_| Complex64::from_polar(random.unit().abs().sqrt(), random.unit() * 3.2)).collect()
}

/// Mean of |a − b|².
pub fn mean_square_error(a: &[Complex64], b: &[Complex64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>() / a.len() as f64
}

/// Largest |a − b|.
pub fn largest_error(a: &[Complex64], b: &[Complex64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
}
