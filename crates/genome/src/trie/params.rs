//! Parameters of the protocol "trie", derived from the question's shape.

use crate::{GenomeError, Shape};
use sudare_he::security::Security;
use sudare_he::tfhe::leveled::{LeveledLiteral, LeveledParams, SelectorNoise, rerandomised};
use sudare_he::tfhe::{Noise, Plaintext, SecretKind, TfheLiteral, TfheParams, variance};

/// log2 of the probability that a bit of an answer decrypts wrongly: answers have at most 17 bits, so a wrong one is
/// below 2^−129.
const LOG_FAILURE: f64 = -134.0;

/// The ring and keys of the protocol in plain numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// Ring, and what randomised bootstraps need.
    pub tfhe: TfheLiteral,
    /// log2 of the base of the selectors' only digit.
    pub base_log: u32,
}

impl Set {
    /// N = 512, k = 3, q of 39 bits: eight short transforms a product, and 2^−128 for any window. The rotation of
    /// randomised bootstraps has exact digits.
    pub fn standard() -> Self {
        let tfhe = TfheLiteral {
            plaintext: Plaintext::Bit,
            modulus_bits: 39,
            glwe_noise: Noise::Gaussian { sigma: 4.45 },
            bootstrap_digits: (13, 3),
            unroll: 1,
            ..TfheLiteral::gates()
        };
        Self { tfhe, base_log: 18 }
    }

    /// A small set without any security, for tests of breadth.
    pub fn insecure_test() -> Self {
        let mut set = Self::standard();
        set.tfhe.rank = 1;
        set.tfhe.lwe_dimension = 64;
        set.tfhe.lwe_noise = Noise::Uniform { bound: 2000 };
        set.tfhe.security = Security::Insecure;
        set
    }

    /// Checks the set and builds its tables.
    ///
    /// # Errors
    /// [`GenomeError::Tfhe`].
    pub fn build(&self) -> Result<Params, GenomeError> {
        let tfhe = self.tfhe.clone().build()?;
        let leveled = LeveledLiteral {
            log_n: self.tfhe.log_n,
            rank: self.tfhe.rank,
            modulus_bits: self.tfhe.modulus_bits,
            secret: SecretKind::Binary,
            noise: self.tfhe.glwe_noise,
            digits: (self.base_log, 1),
            message_bits: 1,
            log_failure: LOG_FAILURE,
            security: self.tfhe.security,
        };
        Ok(Params { tfhe, leveled: leveled.build()? })
    }
}

/// Built parameters.
#[derive(Clone, Debug)]
pub struct Params {
    pub(super) tfhe: TfheParams,
    pub(super) leveled: LeveledParams,
}

impl Params {
    /// Ring and bootstraps.
    pub fn tfhe(&self) -> &TfheParams {
        &self.tfhe
    }

    /// Selectors and one-bit messages.
    pub fn leveled(&self) -> &LeveledParams {
        &self.leveled
    }

    /// Bound of the noise variance of an answer: the longest path takes a product for each symbol and for each bit of
    /// the start's number, and the answer gets new masks.
    pub fn variance(&self, shape: Shape) -> f64 {
        let context = self.leveled.context();
        let products = shape.sites as f64 + f64::from(shape.start_bits());
        let masks = rerandomised(&self.leveled, context.rank(), variance::glwe_fresh(context));
        products * SelectorNoise::fresh(&self.leveled).bound() + masks
    }

    /// log2 of the probability that an answer decrypts wrongly.
    pub fn log_failure(&self, shape: Shape) -> f64 {
        self.leveled.log_failure_at(self.variance(shape)) + f64::from(shape.answer_bits()).log2()
    }

    /// Refuses a shape whose answers could decrypt wrongly.
    ///
    /// # Errors
    /// [`GenomeError::Failure`] with the figure.
    pub fn check(&self, shape: Shape) -> Result<(), GenomeError> {
        let (found, declared) = (self.leveled.log_failure_at(self.variance(shape)), self.leveled.log_failure());
        if found <= declared {
            return Ok(());
        }
        Err(GenomeError::Failure {
            sites: shape.sites as u64,
            starts: shape.starts as u64,
            products: shape.sites as u64 + u64::from(shape.start_bits()),
            found,
            declared,
        })
    }
}
