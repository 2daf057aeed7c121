//! Parameters of the two blind rotations.

use crate::boolean::fhew::{automorphism, digits, variance};
use crate::noise::variance as formulas;
use crate::{Noise, Plaintext, SecretKind, TfheError, TfheLiteral, TfheParams};
use serde::{Deserialize, Serialize};
use sudare_rlwe::ParamsHash;

/// The blind rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FhewMethod {
    /// Ducas and Micciancio: a key for each digit.
    Digits {
        /// log2 of the digits' base, 1 to 6.
        base_log: u32,
    },
    /// Lee and others: automorphisms of the accumulator.
    Automorphisms {
        /// Automorphism keys 5^1 … 5^window.
        window: usize,
    },
}

/// A set in plain numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FhewLiteral {
    /// Rings, LWE dimension, digits and the first key switch; it holds bits. Its `unroll` is that of its own
    /// blind rotation and has no meaning here.
    pub tfhe: TfheLiteral,
    /// The blind rotation.
    pub method: FhewMethod,
}

impl FhewLiteral {
    /// Gates by automorphisms, failure probability at most 2^−128.
    pub fn automorphisms() -> Self {
        Self { tfhe: Self::gates(), method: FhewMethod::Automorphisms { window: 10 } }
    }

    /// Gates by the accumulator of Ducas and Micciancio, failure probability at most 2^−128. Digits of two
    /// bits keep the key under half a gigabyte.
    pub fn ducas_micciancio() -> Self {
        Self { tfhe: Self::gates(), method: FhewMethod::Digits { base_log: 2 } }
    }

    fn gates() -> TfheLiteral {
        TfheLiteral {
            lwe_dimension: 704,
            lwe_noise: Noise::Uniform { bound: 190_100 },
            switch_digits: (2, 6),
            unroll: 1,
            ..TfheLiteral::gates()
        }
    }

    /// A small set without any security, for tests of breadth.
    pub fn insecure_test(method: FhewMethod) -> Self {
        let tfhe =
            TfheLiteral { lwe_noise: Noise::TUniform { bits: 10 }, ..TfheLiteral::insecure_test(Plaintext::Bit) };
        Self { tfhe, method }
    }

    /// Checks the literal and builds its tables.
    ///
    /// # Errors
    /// As for [`TfheLiteral::build`], with the failure probability of this blind rotation.
    pub fn build(self) -> Result<FhewParams, TfheError> {
        FhewParams::new(self)
    }
}

/// A checked set.
#[derive(Clone, Debug)]
pub struct FhewParams {
    tfhe: TfheParams,
    method: FhewMethod,
}

impl FhewParams {
    fn new(literal: FhewLiteral) -> Result<Self, TfheError> {
        let refuse = |reason: String| Err(TfheError::Parameters { reason });
        match literal.method {
            FhewMethod::Digits { base_log } if !(1..=6).contains(&base_log) => {
                return refuse(format!("digits have 1 to 6 bits, not {base_log}"));
            }
            FhewMethod::Automorphisms { window } if !(1..=64).contains(&window) => {
                return refuse(format!("a window has 1 to 64 automorphism keys, not {window}"));
            }
            _ => {}
        }
        if literal.tfhe.plaintext != Plaintext::Bit {
            return refuse("these gates take bits; take a set of gates, with plaintexts of one bit".into());
        }
        let declared = literal.tfhe.log_failure;
        let params = Self { tfhe: literal.tfhe.build()?, method: literal.method };
        let found = params.log_failure();
        if found > declared {
            return Err(TfheError::FailureProbability { found, declared });
        }
        Ok(params)
    }

    /// The hash that its keys carry; bits carry that of [`FhewParams::tfhe`].
    pub fn hash(&self) -> ParamsHash {
        let (kind, size) = match self.method {
            FhewMethod::Digits { base_log } => (0, u64::from(base_log)),
            FhewMethod::Automorphisms { window } => (1, window as u64),
        };
        self.tfhe.hash_with("sudare fhew parameters v1", &[kind, size])
    }

    /// Bits, rings and keys.
    pub fn tfhe(&self) -> &TfheParams {
        &self.tfhe
    }

    /// The blind rotation.
    pub fn method(&self) -> FhewMethod {
        self.method
    }

    /// External products and automorphisms of a blind rotation: on average over uniform exponents, and at most.
    pub fn operations(&self) -> [(f64, f64); 2] {
        let (n, dimension) = (self.tfhe.context().degree(), self.tfhe.literal().lwe_dimension);
        match self.method {
            FhewMethod::Digits { base_log } => [digits::products(2 * n, base_log, dimension), (0.0, 0.0)],
            FhewMethod::Automorphisms { window } => {
                [(dimension as f64, dimension as f64), automorphism::automorphisms(n, dimension, window)]
            }
        }
    }

    fn variance(&self, [products, automorphisms]: [f64; 2]) -> f64 {
        let (context, gadget) = (self.tfhe.context(), self.tfhe.bootstrap_gadget());
        match self.method {
            FhewMethod::Digits { .. } => variance::by_digits(context, gadget, products),
            FhewMethod::Automorphisms { .. } => {
                variance::by_automorphisms(context, gadget, self.tfhe.literal().lwe_dimension, automorphisms)
            }
        }
    }

    /// Variance of a bootstrap's output on average over uniform exponents, as a fraction of q².
    pub fn output_variance(&self) -> f64 {
        self.variance(self.operations().map(|(mean, _)| mean))
    }

    /// The same at most, with as many operations as any exponents take.
    pub fn output_bound(&self) -> f64 {
        self.variance(self.operations().map(|(_, most)| most))
    }

    /// log2 of the probability that a bootstrap of the noisiest ciphertext allowed fails.
    pub fn log_failure(&self) -> f64 {
        let (literal, context) = (self.tfhe.literal(), self.tfhe.context());
        let switched = self.tfhe.switched_variance(literal.noise_factor as f64 * self.output_bound());
        let (dimension, two_n) = (literal.lwe_dimension, 2 * context.degree());
        let decision = match self.method {
            FhewMethod::Digits { .. } => formulas::modulus_switch(dimension, SecretKind::Binary, two_n, switched),
            FhewMethod::Automorphisms { .. } => {
                variance::odd_modulus_switch(dimension, SecretKind::Binary, two_n, switched)
            }
        };
        formulas::log2_tail(literal.plaintext.half_box(), decision)
    }
}
