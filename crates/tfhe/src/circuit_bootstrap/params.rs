//! Parameters of circuit bootstrapping.

use crate::circuit_bootstrap::variance;
use crate::core::ggsw::check_gadget;
use crate::leveled::{LeveledParams, SelectorNoise};
use crate::noise::variance as formulas;
use crate::params::gadget;
use crate::{Gadget, GlweContext, Noise, Plaintext, SecretKind, TfheError, TfheLiteral, TfheParams};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sudare_rlwe::ParamsHash;
use sudare_rlwe::security::Security;

/// A circuit bootstrapping set in plain numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CircuitLiteral {
    /// Rings, LWE dimension, blind rotation and first key switch; it holds bits.
    pub tfhe: TfheLiteral,
    /// log2 of the base, and the levels, of the selectors that come out.
    pub output_digits: (u32, u32),
    /// The same of the trace's key switches.
    pub trace_digits: (u32, u32),
    /// The same of the scheme switch.
    pub scheme_digits: (u32, u32),
}

impl CircuitLiteral {
    /// Selectors of three levels; a leveled bit can pass over eight hundred CMUX in a row and be bootstrapped
    /// again with failure probability at most 2^−128.
    pub fn three_levels() -> Self {
        Self {
            tfhe: TfheLiteral {
                plaintext: Plaintext::Bit,
                lwe_dimension: 672,
                lwe_noise: Noise::Uniform { bound: 336_000 },
                bootstrap_digits: (15, 2),
                switch_digits: (1, 12),
                noise_factor: 8,
                ..TfheLiteral::message_2_carry_2()
            },
            output_digits: (5, 3),
            trace_digits: (10, 4),
            scheme_digits: (15, 3),
        }
    }

    /// Selectors of two levels: faster products, over two hundred of them in a row.
    pub fn two_levels() -> Self {
        Self { output_digits: (7, 2), trace_digits: (8, 5), ..Self::three_levels() }
    }

    /// A small set without any security, for tests of breadth.
    pub fn insecure_test() -> Self {
        let mut set = Self::three_levels();
        set.tfhe.lwe_dimension = 48;
        set.tfhe.lwe_noise = Noise::TUniform { bits: 10 };
        set.tfhe.log_n = 9;
        set.tfhe.security = Security::Insecure;
        set
    }

    /// Checks the literal and builds its tables.
    ///
    /// # Errors
    /// As for [`TfheLiteral::build`]; [`TfheError::FailureProbability`] if a bootstrap of the set's noisiest
    /// gate output fails more often than declared, [`TfheError::LeveledNoise`] if a single CMUX may fail.
    pub fn build(self) -> Result<CircuitParams, TfheError> {
        CircuitParams::new(self)
    }
}

struct Inner {
    literal: CircuitLiteral,
    tfhe: TfheParams,
    leveled: LeveledParams,
}

/// A checked circuit bootstrapping set. Cloning shares it.
#[derive(Clone)]
pub struct CircuitParams(Arc<Inner>);

impl CircuitParams {
    fn new(literal: CircuitLiteral) -> Result<Self, TfheError> {
        if literal.tfhe.plaintext != Plaintext::Bit {
            return Err(TfheError::Parameters {
                reason: "a circuit bootstrap takes bits; take a set of gates, with plaintexts of one bit".into(),
            });
        }
        let tfhe = literal.tfhe.clone().build()?;
        let context = tfhe.context();
        for digits in [literal.output_digits, literal.trace_digits, literal.scheme_digits] {
            check_gadget(context, gadget(digits))?;
        }
        let output = gadget(literal.output_digits);
        let half_gadget = output.dropped(context.bits());
        if half_gadget == 0 || 4 * output.levels as usize > context.degree() {
            return Err(TfheError::Parameters {
                reason: "the digits of selectors have to leave at least one bit of q, and to be at most N/4; take \
                         fewer or smaller ones"
                    .into(),
            });
        }
        let leveled = LeveledParams::with_context(context, output, 1, literal.tfhe.log_failure, &tfhe.hash().0)?;
        let params = Self(Arc::new(Inner { literal, tfhe, leveled }));
        let literal = params.literal();
        let input = literal.tfhe.noise_factor as f64 * params.tfhe().output_variance();
        params.check_input(literal.tfhe.plaintext.half_box(), input)?;
        params.leveled().check_variance("CMUX", params.selector_noise().bound())?;
        Ok(params)
    }

    /// The literal it was built from.
    pub fn literal(&self) -> &CircuitLiteral {
        &self.0.literal
    }

    /// The hash that its keys carry.
    pub fn hash(&self) -> ParamsHash {
        let l = self.literal();
        let digits = [l.output_digits, l.trace_digits, l.scheme_digits];
        let numbers = digits.map(|(base_log, levels)| u64::from(base_log) << 32 | u64::from(levels));
        self.tfhe().hash_with("sudare circuit bootstrap parameters v1", &numbers)
    }

    /// Bits, gates and keys.
    pub fn tfhe(&self) -> &TfheParams {
        &self.0.tfhe
    }

    /// The leveled set of the selectors that come out: one-bit messages.
    pub fn leveled(&self) -> &LeveledParams {
        &self.0.leveled
    }

    /// Ring, rank and distributions.
    pub fn context(&self) -> &GlweContext {
        self.0.tfhe.context()
    }

    /// The decomposition of the selectors that come out.
    pub fn output_gadget(&self) -> Gadget {
        gadget(self.0.literal.output_digits)
    }

    /// The trace's decomposition.
    pub fn trace_gadget(&self) -> Gadget {
        gadget(self.0.literal.trace_digits)
    }

    /// The scheme switch's decomposition.
    pub fn scheme_gadget(&self) -> Gadget {
        gadget(self.0.literal.scheme_digits)
    }

    /// log2 of the levels, rounded up: bits of the phase that the tables' interleaving takes.
    pub fn log_tables(&self) -> u32 {
        self.output_gadget().levels.next_power_of_two().trailing_zeros()
    }

    /// Variance at the decision of a circuit bootstrap whose input has this one.
    pub fn decision_variance(&self, input: f64) -> f64 {
        let (tfhe, context) = (&self.0.literal.tfhe, self.context());
        let switched = self.0.tfhe.switched_variance(input);
        let steps = (2 * context.degree()) >> self.log_tables();
        formulas::modulus_switch(tfhe.lwe_dimension, SecretKind::Binary, steps, switched)
    }

    /// Refuses an input whose sign, `half_box` from the decision, could be read wrongly.
    ///
    /// # Errors
    /// [`TfheError::FailureProbability`].
    pub(super) fn check_input(&self, half_box: f64, input: f64) -> Result<(), TfheError> {
        let declared = self.0.literal.tfhe.log_failure;
        let found = formulas::log2_tail(half_box, self.decision_variance(input));
        if found <= declared { Ok(()) } else { Err(TfheError::FailureProbability { found, declared }) }
    }

    /// What a product with a bootstrapped selector adds to the noise.
    pub fn selector_noise(&self) -> SelectorNoise {
        let rows = variance::circuit_bootstrap(
            self.context(),
            self.trace_gadget(),
            self.scheme_gadget(),
            self.rotation_variance(),
        );
        variance::product(self.context(), self.output_gadget(), rows)
    }

    /// Variance after the blind rotation, and its part by rounding.
    pub fn rotation_variance(&self) -> (f64, f64) {
        let tfhe = &self.0.literal.tfhe;
        variance::rotation(self.context(), self.0.tfhe.bootstrap_gadget(), tfhe.lwe_dimension, tfhe.unroll)
    }
}
