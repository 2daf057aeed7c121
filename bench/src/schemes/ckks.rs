//! CKKS.

use super::{Expected, Steps, World, steps};
use crate::Outcome;
use crate::timing::{Budget, Unit};
use sudare_he::ckks::{Ciphertext, Decryptor, Encoder, Encryptor, Evaluator, Params, ParamsLiteral};
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};
use sudare_testkit::Random;

/// Bits of the prime that a result stands on, and of one product's.
const BASE_BITS: u32 = 49;
const LEVEL_BITS: u32 = 40;

/// A chain for so many products, three digits of key switching; secure where the degree allows it. With `grow` the
/// degree is the least from `n` on that does.
pub fn literal(n: usize, depth: usize, grow: bool) -> ParamsLiteral {
    let mut q_bits = vec![LEVEL_BITS; depth + 1];
    q_bits[0] = BASE_BITS;
    let digit_limbs = q_bits.len().div_ceil(3);
    // P covers the largest digit, the one with the base.
    let digit = BASE_BITS + LEVEL_BITS * (digit_limbs as u32 - 1);
    let p_bits = vec![BASE_BITS; digit.div_ceil(BASE_BITS) as usize];
    let log_qp = q_bits.iter().chain(&p_bits).sum::<u32>();
    let secure = |log_n: u32| {
        max_log_qp(log_n, SecretDistribution::Ternary, Security::Bits128).is_some_and(|limit| log_qp <= limit)
    };
    let asked = n.trailing_zeros();
    let log_n = if grow { (asked..17).find(|log_n| secure(*log_n)).unwrap_or(asked) } else { asked };
    let security = if secure(log_n) { Security::Bits128 } else { Security::Insecure };
    let secret = SecretDistribution::Ternary;
    let rlwe = sudare_rlwe::params::ParamsLiteral { log_n, q_bits, p_bits, digit_limbs, secret, security };
    ParamsLiteral { rlwe, log_scale: LEVEL_BITS }
}

/// Keys and operands of one set.
pub struct CkksWorld {
    params: Params,
    secret: SecretKey,
    server: Evaluator,
    encoder: Encoder,
    x: Vec<f64>,
    a: Ciphertext,
    b: Ciphertext,
}

impl CkksWorld {
    /// Both operands hold the same random values near ±1, of which many squares in a row are no zeros.
    pub fn new(literal: &ParamsLiteral) -> Outcome<Self> {
        let params = literal.build()?;
        let secret = SecretKey::generate(&params)?;
        let keys = KeyGenerator::new(&secret)?.eval_keys(Some(params.max_level()), &[])?;
        let encoder = Encoder::new(&params);
        let mut random = Random(11);
        let spread = 1.0 / (1u64 << params.max_level()) as f64;
        let x: Vec<f64> = (0..params.slots())
            .map(|_| {
                let u = random.unit();
                u.signum() * (1.0 - spread * u.abs())
            })
            .collect();
        let plain = encoder.encode(&x, 1.0)?;
        let encryptor = Encryptor::with_secret_key(&secret)?;
        let (a, b) = (encryptor.encrypt(&plain)?, encryptor.encrypt(&plain)?);
        let server = Evaluator::new(&params, keys)?;
        Ok(Self { params, secret, server, encoder, x, a, b })
    }
}

impl World for CkksWorld {
    type Ciphertext = Ciphertext;

    fn scheme(&self) -> &'static str {
        "CKKS"
    }

    fn params(&self) -> &sudare_rlwe::Params {
        &self.params
    }

    fn words(&self, params: String) -> String {
        params
    }

    fn key_bytes(&self) -> usize {
        self.server.keys().bytes()
    }

    fn fresh(&self) -> &Ciphertext {
        &self.a
    }

    fn bytes(&self, c: &Ciphertext) -> usize {
        c.bytes()
    }

    fn add(&self) -> Outcome<Ciphertext> {
        Ok(self.server.add(&self.a, &self.b)?)
    }

    fn multiply(&self) -> Outcome<Ciphertext> {
        Ok(self.server.mul_rescale(&self.a, &self.b)?)
    }

    fn square(&self, c: &Ciphertext) -> Outcome<Ciphertext> {
        Ok(self.server.mul_rescale(c, c)?)
    }

    fn check(&self, c: &Ciphertext, wanted: Expected) -> Outcome<(f64, f64)> {
        let found = self.encoder.decode(&Decryptor::new(&self.secret).decrypt(c)?)?;
        let value = |x: f64| match wanted {
            Expected::Sum => x + x,
            Expected::Product => x * x,
            Expected::Squares(depth) => (0..depth).fold(x, |x, _| x * x),
        };
        let error = self.x.iter().zip(&found).map(|(x, y)| (value(*x) - y).abs()).fold(0.0, f64::max);
        Ok((error, c.error_bound()))
    }

    fn steps(&self, unit: &mut Unit, budget: Budget) -> Outcome<Steps> {
        let product = self.server.mul(&self.a, &self.b)?;
        let products = || Ok(self.server.mul(&self.a, &self.b).map(drop)?);
        steps::of(self, unit, budget, products, (product.inner(), self.server.keys()))
    }
}
