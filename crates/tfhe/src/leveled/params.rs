//! Parameters of leveled mode.

use crate::core::encoding;
use crate::core::ggsw::check_gadget;
use crate::noise::variance;
use crate::params::security;
use crate::{Gadget, GlweContext, Noise, SecretKind, TfheError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use sudare_ring::prime::ntt_primes;
use sudare_rlwe::ParamsHash;
use sudare_rlwe::security::Security;

/// A leveled parameter set in plain numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeveledLiteral {
    /// log2 of the ring degree N.
    pub log_n: u32,
    /// The rank k.
    pub rank: usize,
    /// Bits of the NTT prime q, the largest of that many bits.
    pub modulus_bits: u32,
    /// Distribution of secret coefficients.
    pub secret: SecretKind,
    /// Fresh noise, in units of 1/q.
    pub noise: Noise,
    /// log2 of the base, and the levels, of the selectors' decomposition.
    pub digits: (u32, u32),
    /// Bits of a message: the message m is the phase m·q/2^bits.
    pub message_bits: u32,
    /// log2 of the largest probability that a coefficient decrypts wrongly.
    pub log_failure: f64,
    /// Claimed strength.
    pub security: Security,
}

impl LeveledLiteral {
    /// N = 1024, 4-bit messages, selectors of 48 KiB; 2^−128 for over a hundred CMUX in a row.
    pub fn degree_1024() -> Self {
        Self {
            log_n: 10,
            rank: 1,
            modulus_bits: 31,
            secret: SecretKind::Ternary,
            noise: Noise::TUniform { bits: 7 },
            digits: (8, 2),
            message_bits: 4,
            log_failure: -128.0,
            security: Security::Bits128,
        }
    }

    /// N = 2048, 8-bit messages, selectors of one level; 2^−128 for thousands of CMUX in a row.
    pub fn degree_2048() -> Self {
        Self {
            log_n: 11,
            modulus_bits: 48,
            secret: SecretKind::Binary,
            noise: Noise::Gaussian { sigma: 3.19 },
            digits: (22, 1),
            message_bits: 8,
            ..Self::degree_1024()
        }
    }

    /// A small set without any security, for tests of breadth.
    pub fn insecure_test() -> Self {
        Self { log_n: 9, security: Security::Insecure, ..Self::degree_2048() }
    }

    /// Checks the literal and builds its tables.
    ///
    /// # Errors
    /// [`TfheError::Parameters`], `RlweError::Ring`; [`TfheError::Insecure`] for a set that does not
    /// keep what it claims.
    pub fn build(self) -> Result<LeveledParams, TfheError> {
        if !(9..=14).contains(&self.log_n) || !(20..=49).contains(&self.modulus_bits) {
            let (log_n, bits) = (self.log_n, self.modulus_bits);
            let reason = format!("log2 N is 9 to 14 and q has 20 to 49 bits, not {log_n} and {bits}");
            return Err(TfheError::Parameters { reason });
        }
        let degree = 1usize << self.log_n;
        let q = ntt_primes(degree, self.modulus_bits, 1, &[])?[0];
        let context = GlweContext::new(degree, q, self.rank, self.secret, self.noise)?;
        let log_q = (q as f64).log2();
        security::check("GLWE", context.lwe_dimension(), self.secret, self.noise, log_q, self.security)?;
        let gadget = Gadget { base_log: self.digits.0, levels: self.digits.1 };
        let bytes = rest_of_hash(&self);
        LeveledParams::with_context(&context, gadget, self.message_bits, self.log_failure, &bytes)
    }
}

/// Everything that the hash covers beyond the ring and the digits.
fn rest_of_hash(literal: &LeveledLiteral) -> Vec<u8> {
    format!("{:?} {:?} {}", literal.secret, literal.noise, literal.security.bits()).into_bytes()
}

struct Inner {
    hash: ParamsHash,
    context: GlweContext,
    gadget: Gadget,
    message_bits: u32,
    log_failure: f64,
}

/// A checked leveled parameter set. Cloning shares it.
#[derive(Clone)]
pub struct LeveledParams(Arc<Inner>);

impl LeveledParams {
    /// A set over a ring whose security has been checked; `origin` goes into the hash.
    pub(crate) fn with_context(
        context: &GlweContext,
        gadget: Gadget,
        message_bits: u32,
        log_failure: f64,
        origin: &[u8],
    ) -> Result<Self, TfheError> {
        check_gadget(context, gadget)?;
        if !(1..=16).contains(&message_bits) || message_bits + 2 > context.bits() {
            let reason = format!("messages have 1 to 16 bits, at least two fewer than q, and not {message_bits}");
            return Err(TfheError::Parameters { reason });
        }
        if log_failure.is_nan() || log_failure >= 0.0 {
            let reason = format!("log2 of the failure probability is below 0, not {log_failure}");
            return Err(TfheError::Parameters { reason });
        }
        let mut hasher = blake3::Hasher::new_derive_key("sudare tfhe leveled parameters v1");
        let numbers = [
            context.degree() as u64,
            context.q(),
            context.rank() as u64,
            u64::from(gadget.base_log),
            u64::from(gadget.levels),
            u64::from(message_bits),
            log_failure.to_bits(),
        ];
        for word in numbers {
            hasher.update(&word.to_le_bytes());
        }
        hasher.update(origin);
        let hash = ParamsHash(*hasher.finalize().as_bytes());
        Ok(Self(Arc::new(Inner { hash, context: context.clone(), gadget, message_bits, log_failure })))
    }

    /// The hash that ciphertexts carry.
    pub fn hash(&self) -> ParamsHash {
        self.0.hash
    }

    /// Ring, rank and distributions.
    pub fn context(&self) -> &GlweContext {
        &self.0.context
    }

    /// The selectors' decomposition.
    pub fn gadget(&self) -> Gadget {
        self.0.gadget
    }

    /// Values of a message.
    pub fn space(&self) -> u64 {
        1 << self.0.message_bits
    }

    /// log2 of the largest failure probability of a coefficient.
    pub fn log_failure(&self) -> f64 {
        self.0.log_failure
    }

    /// log2 of the probability that a coefficient with this noise variance decrypts wrongly.
    pub fn log_failure_at(&self, variance: f64) -> f64 {
        variance::log2_tail((-f64::from(self.0.message_bits) - 1.0).exp2(), variance)
    }

    /// Refuses a variance at which a coefficient could decrypt wrongly.
    ///
    /// # Errors
    /// [`TfheError::LeveledNoise`].
    pub fn check_variance(&self, operation: &'static str, variance: f64) -> Result<(), TfheError> {
        let (found, declared) = (self.log_failure_at(variance), self.0.log_failure);
        if found <= declared { Ok(()) } else { Err(TfheError::LeveledNoise { operation, found, declared }) }
    }

    /// A message as a phase, `m·q/2^bits` rounded.
    ///
    /// # Errors
    /// [`TfheError::Message`].
    pub fn encode(&self, message: u64) -> Result<u64, TfheError> {
        let space = self.space();
        if message >= space {
            return Err(TfheError::Message { value: message, space });
        }
        Ok(encoding::encode(self.0.context.modulus(), message, self.0.message_bits))
    }

    /// The message nearest to a phase.
    pub fn decode(&self, phase: u64) -> u64 {
        encoding::decode(self.0.context.modulus(), phase, self.0.message_bits)
    }
}

impl fmt::Debug for LeveledParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (c, g) = (self.context(), self.gadget());
        write!(f, "LeveledParams({}, N = {}, k = {}, q = {}, {g:?})", self.hash(), c.degree(), c.rank(), c.q())
    }
}
