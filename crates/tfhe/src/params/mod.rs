//! Parameter sets: a plain literal becomes a checked, immutable set with a hash.

pub mod derive;
pub mod published;
pub mod security;

use crate::noise::variance;

use crate::{Gadget, GlweContext, Noise, NoiseSampler, SecretKind, TfheError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use sudare_ring::prime::ntt_primes;
use sudare_rlwe::ParamsHash;
use sudare_rlwe::security::Security;

/// What one ciphertext holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Plaintext {
    /// A bit as ±1/8 of the modulus, for gates.
    Bit,
    /// A number of `message_bits + carry_bits` bits under one padding bit.
    Integer {
        /// Bits of the message.
        message_bits: u32,
        /// Bits above it that additions may fill.
        carry_bits: u32,
    },
}

impl Plaintext {
    /// Distance, as a fraction of the modulus, from a message to the nearest wrong one.
    pub fn half_box(self) -> f64 {
        match self {
            Self::Bit => 1.0 / 8.0,
            Self::Integer { message_bits, carry_bits } => (-f64::from(message_bits + carry_bits + 2)).exp2(),
        }
    }
}

/// A parameter set in plain numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TfheLiteral {
    /// What a ciphertext holds.
    pub plaintext: Plaintext,
    /// n, the dimension in which blind rotations work; binary secret.
    pub lwe_dimension: usize,
    /// Noise of that dimension's ciphertexts, in units of 2^−32.
    pub lwe_noise: Noise,
    /// log2 of the ring degree N.
    pub log_n: u32,
    /// The rank k.
    pub rank: usize,
    /// Bits of the NTT prime q, the largest of that many bits.
    pub modulus_bits: u32,
    /// Noise of GLWE ciphertexts, in units of 1/q; binary secret.
    pub glwe_noise: Noise,
    /// log2 of the base, and the levels, of the blind rotation's decomposition.
    pub bootstrap_digits: (u32, u32),
    /// The same of the key switch.
    pub switch_digits: (u32, u32),
    /// Whether the key switch works inside the ring, to module LWE (see
    /// [`ModuleSwitchKey`](crate::ModuleSwitchKey)); needs q of at least 32 bits, uniform noise, and n a multiple
    /// of [`LEAST_MODULE_DEGREE`](crate::LEAST_MODULE_DEGREE).
    pub module_switch: bool,
    /// Key bits a step of a blind rotation, 1 to 3.
    pub unroll: usize,
    /// Largest factor by which linear operations may multiply the noise variance of a bootstrap's output.
    pub noise_factor: u64,
    /// log2 of the largest failure probability of a bootstrap.
    pub log_failure: f64,
    /// Claimed strength.
    pub security: Security,
}

impl TfheLiteral {
    /// Gates, failure probability at most 2^−128.
    pub fn gates() -> Self {
        Self {
            plaintext: Plaintext::Bit,
            lwe_dimension: 640,
            lwe_noise: Noise::Uniform { bound: 595_700 },
            log_n: 9,
            rank: 3,
            modulus_bits: 40,
            glwe_noise: Noise::Gaussian { sigma: 8.9 },
            bootstrap_digits: (18, 1),
            switch_digits: (1, 12),
            module_switch: true,
            unroll: 2,
            // Two outputs of a MUX, the same one twice: (1 + 1)² · 2.
            noise_factor: 8,
            log_failure: -128.0,
            security: Security::Bits128,
        }
    }

    /// Gates, failure probability at most 2^−64, as in many published figures.
    pub fn gates_failure_64() -> Self {
        Self { switch_digits: (2, 5), log_failure: -64.0, ..Self::gates() }
    }

    /// Gates, failure probability at most 2^−40, as in many published figures.
    pub fn gates_failure_40() -> Self {
        Self { switch_digits: (3, 4), log_failure: -40.0, ..Self::gates() }
    }

    /// Integers of two bits of message and two of carry, failure probability at most 2^−128.
    pub fn message_2_carry_2() -> Self {
        Self {
            plaintext: Plaintext::Integer { message_bits: 2, carry_bits: 2 },
            lwe_dimension: 832,
            lwe_noise: Noise::Uniform { bound: 19_200 },
            log_n: 11,
            rank: 1,
            modulus_bits: 48,
            glwe_noise: Noise::Gaussian { sigma: 3.19 },
            bootstrap_digits: (22, 1),
            switch_digits: (2, 8),
            module_switch: true,
            unroll: 2,
            // A message and a carry packed for a table of two inputs: up to five ciphertexts' noise in a row.
            noise_factor: 25,
            log_failure: -128.0,
            security: Security::Bits128,
        }
    }

    /// The same with a key switch by rows of LWE ciphertexts, without structure: slower, and larger keys.
    pub fn message_2_carry_2_lwe_switch() -> Self {
        Self {
            lwe_dimension: 880,
            lwe_noise: Noise::TUniform { bits: 13 },
            switch_digits: (3, 5),
            module_switch: false,
            ..Self::message_2_carry_2()
        }
    }

    /// The same with failure probability at most 2^−64, as in many published figures.
    pub fn message_2_carry_2_failure_64() -> Self {
        Self {
            lwe_dimension: 768,
            lwe_noise: Noise::Uniform { bound: 60_300 },
            switch_digits: (2, 7),
            log_failure: -64.0,
            ..Self::message_2_carry_2()
        }
    }

    /// The same with failure probability at most 2^−40, as in many published figures.
    pub fn message_2_carry_2_failure_40() -> Self {
        Self {
            lwe_dimension: 800,
            lwe_noise: Noise::Uniform { bound: 34_000 },
            log_n: 10,
            rank: 2,
            log_failure: -40.0,
            ..Self::message_2_carry_2()
        }
    }

    /// A small set without any security, for tests of breadth.
    pub fn insecure_test(plaintext: Plaintext) -> Self {
        Self {
            plaintext,
            lwe_dimension: 64,
            lwe_noise: Noise::TUniform { bits: 10 },
            log_n: if plaintext == Plaintext::Bit { 9 } else { 10 },
            rank: 1,
            modulus_bits: 47,
            glwe_noise: Noise::Gaussian { sigma: 3.19 },
            bootstrap_digits: (20, 1),
            switch_digits: (5, 3),
            module_switch: false,
            unroll: 2,
            noise_factor: 25,
            log_failure: -128.0,
            security: Security::Insecure,
        }
    }

    /// Checks the literal and builds its tables.
    ///
    /// # Errors
    /// [`TfheError::Parameters`], `RlweError::Ring`; [`TfheError::Insecure`] and
    /// [`TfheError::FailureProbability`] for a set that does not keep what it claims.
    pub fn build(self) -> Result<TfheParams, TfheError> {
        TfheParams::new(self)
    }
}

/// log2 of the base, and the levels, as a gadget.
pub(crate) fn gadget((base_log, levels): (u32, u32)) -> Gadget {
    Gadget { base_log, levels }
}

struct Inner {
    literal: TfheLiteral,
    hash: ParamsHash,
    context: GlweContext,
    lwe_noise: NoiseSampler,
    log_failure: f64,
}

/// A checked parameter set. Cloning shares it.
#[derive(Clone)]
pub struct TfheParams(Arc<Inner>);

impl TfheParams {
    fn new(literal: TfheLiteral) -> Result<Self, TfheError> {
        let refuse = |reason: String| Err(TfheError::Parameters { reason });
        if !(9..=14).contains(&literal.log_n) || !(20..=49).contains(&literal.modulus_bits) {
            let (log_n, bits) = (literal.log_n, literal.modulus_bits);
            return refuse(format!("log2 N is 9 to 14 and q has 20 to 49 bits, not {log_n} and {bits}"));
        }
        if !(8..=1 << 14).contains(&literal.lwe_dimension) || !(1..=1 << 20).contains(&literal.noise_factor) {
            let (n, factor) = (literal.lwe_dimension, literal.noise_factor);
            return refuse(format!("n is 8 to 2^14 and the noise factor 1 to 2^20, not {n} and {factor}"));
        }
        if let Plaintext::Integer { message_bits, carry_bits } = literal.plaintext
            && (message_bits == 0 || message_bits.saturating_add(carry_bits).saturating_add(2) > literal.log_n)
        {
            return refuse(format!(
                "{message_bits} message and {carry_bits} carry bits do not fit log2 N = {}; take at least one message \
                 bit, and at least two bits fewer than log2 N in all",
                literal.log_n
            ));
        }
        for ((base_log, levels), bits) in
            [(literal.bootstrap_digits, literal.modulus_bits), (literal.switch_digits, 24)]
        {
            let all = base_log.saturating_mul(levels);
            if all == 0 || all > bits {
                return refuse(format!(
                    "{levels} digits of {base_log} bits do not fit {bits} bits; take at least one digit and no more \
                     bits than that"
                ));
            }
        }
        if !(1..=crate::rotation::blind::MAX_UNROLL).contains(&literal.unroll) {
            return refuse(format!(
                "a step of a blind rotation takes 1 to {} key bits, not {}",
                crate::rotation::blind::MAX_UNROLL,
                literal.unroll
            ));
        }
        let degree = 1usize << literal.log_n;
        let q = ntt_primes(degree, literal.modulus_bits, 1, &[])?[0];
        let context = GlweContext::new(degree, q, literal.rank, SecretKind::Binary, literal.glwe_noise)?;
        let lwe_noise = NoiseSampler::new(literal.lwe_noise)?;
        let widest = Noise::TUniform { bits: 30 };
        if literal.lwe_noise.variance() > widest.variance() {
            return refuse(
                "the noise of LWE ciphertexts is too wide for 32 bits; take at most t_uniform of 30 bits".into(),
            );
        }
        if literal.module_switch {
            if matches!(literal.lwe_noise, Noise::Gaussian { .. }) || literal.modulus_bits < 32 {
                return refuse("a key switch inside the ring needs uniform noise and a q of at least 32 bits".into());
            }
            if !literal.lwe_dimension.is_multiple_of(crate::LEAST_MODULE_DEGREE) {
                return refuse(format!(
                    "a key switch inside the ring needs an n that is a multiple of {}, not {}",
                    crate::LEAST_MODULE_DEGREE,
                    literal.lwe_dimension
                ));
            }
        }
        let log_q = (q as f64).log2();
        let claim = literal.security;
        security::check("GLWE", context.lwe_dimension(), SecretKind::Binary, literal.glwe_noise, log_q, claim)?;
        security::check("LWE", literal.lwe_dimension, SecretKind::Binary, literal.lwe_noise, 32.0, claim)?;
        let variance = decision_variance(&literal, &context, gadget(literal.bootstrap_digits));
        let log_failure = variance::log2_tail(literal.plaintext.half_box(), variance);
        if log_failure > literal.log_failure {
            return Err(TfheError::FailureProbability { found: log_failure, declared: literal.log_failure });
        }
        let hash = hash_of(&literal, q);
        Ok(Self(Arc::new(Inner { literal, hash, context, lwe_noise, log_failure })))
    }

    /// The literal it was built from.
    pub fn literal(&self) -> &TfheLiteral {
        &self.0.literal
    }

    /// The hash that keys and ciphertexts carry.
    pub fn hash(&self) -> ParamsHash {
        self.0.hash
    }

    /// The hash of a set that stands on this one and says `numbers` more.
    pub(crate) fn hash_with(&self, domain: &str, numbers: &[u64]) -> ParamsHash {
        let mut hasher = blake3::Hasher::new_derive_key(domain);
        hasher.update(&self.hash().0);
        numbers.iter().for_each(|x| {
            hasher.update(&x.to_le_bytes());
        });
        ParamsHash(*hasher.finalize().as_bytes())
    }

    /// Ring, rank and distributions of GLWE ciphertexts.
    pub fn context(&self) -> &GlweContext {
        &self.0.context
    }

    /// Noise of the 32-bit LWE ciphertexts.
    pub fn lwe_noise(&self) -> &NoiseSampler {
        &self.0.lwe_noise
    }

    /// Noise of a key switch inside the ring, in units of 1/q; none where the switch is by LWE rows.
    pub fn module_switch_noise(&self) -> Option<Noise> {
        module_switch_noise(&self.0.literal)
    }

    /// The blind rotation's decomposition.
    pub fn bootstrap_gadget(&self) -> Gadget {
        gadget(self.0.literal.bootstrap_digits)
    }

    /// The key switch's decomposition.
    pub fn switch_gadget(&self) -> Gadget {
        gadget(self.0.literal.switch_digits)
    }

    /// log2 of the probability that a bootstrap of the noisiest ciphertext allowed fails.
    pub fn log_failure(&self) -> f64 {
        self.0.log_failure
    }

    /// Variance of a bootstrap's output, as a fraction of q².
    pub fn output_variance(&self) -> f64 {
        output_variance(&self.0.literal, &self.0.context, self.bootstrap_gadget())
    }

    /// Variance of a sum of a rotation's coefficients (position, factor), as a fraction of q².
    pub fn rotation_sum_variance(&self, terms: &[(usize, i64)]) -> f64 {
        let literal = &self.0.literal;
        let steps = (literal.lwe_dimension, literal.unroll);
        variance::rotation_sum(&self.0.context, self.bootstrap_gadget(), steps, terms)
    }

    /// Variance at the decision of a bootstrap whose input has `factor` times the variance of an output.
    pub fn decision_variance(&self, factor: u64) -> f64 {
        let literal = TfheLiteral { noise_factor: factor, ..self.0.literal.clone() };
        decision_variance(&literal, &self.0.context, self.bootstrap_gadget())
    }

    /// Variance of a ciphertext of variance `input` after the key switch to dimension n.
    pub fn switched_variance(&self, input: f64) -> f64 {
        switched_variance(&self.0.literal, &self.0.context, input)
    }

    /// Values that message and carry hold together; two for bits.
    pub fn space(&self) -> u64 {
        match self.0.literal.plaintext {
            Plaintext::Bit => 2,
            Plaintext::Integer { message_bits, carry_bits } => 1 << (message_bits + carry_bits),
        }
    }
}

impl fmt::Debug for TfheParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TfheParams({}, {:?})", self.hash(), self.literal())
    }
}

fn output_variance(literal: &TfheLiteral, context: &GlweContext, gadget: Gadget) -> f64 {
    variance::blind_rotation(context, gadget, literal.lwe_dimension, literal.unroll)
}

/// The noise that decides: the input's, the key switch's and the modulus switch's.
fn decision_variance(literal: &TfheLiteral, context: &GlweContext, gadget: Gadget) -> f64 {
    let input = literal.noise_factor as f64 * output_variance(literal, context, gadget);
    let switched = switched_variance(literal, context, input);
    variance::modulus_switch(literal.lwe_dimension, SecretKind::Binary, 2 * context.degree(), switched)
}

fn switched_variance(literal: &TfheLiteral, context: &GlweContext, input: f64) -> f64 {
    let (gadget, dimension) = (gadget(literal.switch_digits), context.lwe_dimension());
    match module_switch_noise(literal) {
        Some(noise) => variance::module_switch(context, gadget, literal.lwe_dimension, noise.variance(), input),
        None => variance::lwe_switch(gadget, dimension, SecretKind::Binary, literal.lwe_noise.variance(), input),
    }
}

/// The LWE noise as a fraction of q, which is at most 2^modulus_bits: no less than in 32 bits.
fn module_switch_noise(literal: &TfheLiteral) -> Option<Noise> {
    match literal.lwe_noise {
        _ if !literal.module_switch => None,
        Noise::TUniform { bits } => Some(Noise::TUniform { bits: (bits + literal.modulus_bits).saturating_sub(32) }),
        Noise::Uniform { bound } => Some(Noise::Uniform { bound: bound << literal.modulus_bits.saturating_sub(32) }),
        Noise::Gaussian { .. } => None,
    }
}

fn hash_of(literal: &TfheLiteral, q: u64) -> ParamsHash {
    let mut hasher = blake3::Hasher::new_derive_key("sudare tfhe parameters v1");
    let mut word = |x: u64| {
        hasher.update(&x.to_le_bytes());
    };
    match literal.plaintext {
        Plaintext::Bit => word(0),
        Plaintext::Integer { message_bits, carry_bits } => {
            word(1);
            word(u64::from(message_bits));
            word(u64::from(carry_bits));
        }
    }
    let mut noise = |x: Noise| match x {
        Noise::Gaussian { sigma } => {
            word(0);
            word(sigma.to_bits());
        }
        Noise::TUniform { bits } => {
            word(1);
            word(u64::from(bits));
        }
        Noise::Uniform { bound } => {
            word(2);
            word(bound);
        }
    };
    noise(literal.lwe_noise);
    noise(literal.glwe_noise);
    let (bootstrap, switch) = (literal.bootstrap_digits, literal.switch_digits);
    let numbers = [
        literal.lwe_dimension as u64,
        u64::from(literal.log_n),
        literal.rank as u64,
        q,
        u64::from(bootstrap.0),
        u64::from(bootstrap.1),
        u64::from(switch.0),
        u64::from(switch.1),
        literal.unroll as u64,
        u64::from(literal.module_switch),
        literal.noise_factor,
        literal.log_failure.to_bits(),
        u64::from(literal.security.bits()),
    ];
    numbers.into_iter().for_each(word);
    ParamsHash(*hasher.finalize().as_bytes())
}
