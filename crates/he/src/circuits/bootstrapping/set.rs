//! Bootstrapping sets as a person writes them.

use crate::error::HeError;
use crate::params::ParamsLiteral;
use crate::security::{SecretDistribution, Security};

/// A chain of primes with what each part of it is for, and the shapes of the steps.
///
/// From the bottom, `params.q_bits` holds q_0; a prime for each stage of StC, the last stage's first; the
/// user's; for sparse slots one for the mask; those of the modular reduction; one for each stage of CtS,
/// the first stage's last.
#[derive(Clone, Debug, PartialEq)]
pub struct BootstrapLiteral {
    /// The ring and all primes; `log_scale` is the user's scale Δ.
    pub params: ParamsLiteral,
    /// log2 of the slots n that hold values: all of log2 N − 1, or fewer that repeat.
    pub log_slots: u32,
    /// Butterfly layers of each stage of StC, in order.
    pub stc: Vec<u32>,
    /// Butterfly layers of each stage of CtS, in order.
    pub cts: Vec<u32>,
    /// Degree of the exponential's polynomial.
    pub degree: usize,
    /// Squarings of the exponential.
    pub doublings: u32,
    /// Terms of the sine series, 2 to 4.
    pub sines: usize,
    /// −log2 of ρ, how much of q_0 values of size one fill. A smaller ρ needs fewer sines and loses bits.
    pub log_radius: f64,
    /// h: weight of the ephemeral secret.
    pub weight: u32,
    /// Bits of the prime p under which keys lead to the ephemeral secret and back.
    pub gate_bits: u32,
    /// Babies of one decomposition in the transforms: `hoisted` + 1 keys a stage.
    pub hoisted: usize,
}

/// A chain's parts: (count, bits) from the bottom.
fn chain(parts: &[(usize, u32)]) -> Vec<u32> {
    parts.iter().flat_map(|(count, bits)| std::iter::repeat_n(*bits, *count)).collect()
}

fn ternary(log_n: u32, q: &[(usize, u32)], p: &[(usize, u32)], digit_limbs: usize, log_scale: u32) -> ParamsLiteral {
    ParamsLiteral {
        log_n,
        q_bits: chain(q),
        p_bits: chain(p),
        digit_limbs,
        log_scale,
        secret: SecretDistribution::Ternary,
        security: Security::Bits128,
    }
}

impl BootstrapLiteral {
    /// Set A: N = 2^16, 2^15 complex slots, 9 levels at Δ = 2^43, 27 bits.
    pub fn a() -> Self {
        let q = [(1, 47), (1, 37), (1, 34), (1, 33), (9, 43), (4, 46), (6, 50), (1, 43), (1, 45), (1, 47)];
        Self {
            params: ternary(16, &q, &[(12, 45), (1, 46)], 14, 43),
            log_slots: 15,
            stc: vec![5, 5, 5],
            cts: vec![5, 5, 5],
            degree: 31,
            doublings: 3,
            sines: 4,
            log_radius: 4.2,
            weight: 28,
            gate_bits: 49,
            hoisted: 4,
        }
    }

    /// The same shape over a small ring, by the name insecure: for tests.
    ///
    /// # Errors
    /// [`HeError::Parameters`] for a degree below 2^9 or above that of the set.
    pub fn insecure(mut self, log_n: u32) -> Result<Self, HeError> {
        let less = match self.params.log_n.checked_sub(log_n) {
            Some(less) if log_n >= 9 && less < self.log_slots => less,
            _ => {
                return Err(HeError::Parameters {
                    reason: format!("a test set over log2 N = {log_n} from one over {}", self.params.log_n),
                });
            }
        };
        self.params.log_n = log_n;
        self.params.security = Security::Insecure;
        self.log_slots -= less;
        for layers in [&mut self.stc, &mut self.cts] {
            let stages = layers.len() as u32;
            *layers = (0..stages).map(|i| self.log_slots / stages + u32::from(i < self.log_slots % stages)).collect();
        }
        // The unit of a stage is the size of the blocks below it: StC's from the small end, CtS's from the large.
        self.cts.reverse();
        Ok(self)
    }
}
