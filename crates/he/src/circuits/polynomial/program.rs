//! Programs: values computed one from another, each a sum of products and multiples that is
//! relinearised and rescaled once.
//!
//! A program is planned with levels and scales before anything is encrypted, so its constants are
//! encoded once, at the scale at which each meets its sum: branches of different depth meet without
//! a mismatch, and at no cost in levels.

use crate::circuits::periodic::{encode, period};
use crate::ckks::{Evaluator, Params};
use crate::error::HeError;
use num_complex::Complex64;
use sudare_ring::ops::PeriodicPoly;
use sudare_rlwe::noise::Sketch;
use sudare_rlwe::{Backend, Over, RlweError};

/// Largest relative difference between the scale of a product and that of its sum: double precision's
/// own error after some dozens of products.
const SCALE_TOLERANCE: f64 = 1.0 / (1u64 << 44) as f64;

/// Number of a value: 0 is the input, k + 1 what sum k becomes.
pub(crate) type Value = usize;

/// Slots that repeat: one number is a constant.
pub(crate) type Slots = Vec<Complex64>;

/// A sum over Q_level, and what it becomes when it is divided by the last prime.
#[derive(Clone, Debug)]
pub(crate) struct Sum {
    /// Level at which it is summed; its value is one below.
    pub level: usize,
    /// Scale before the division.
    pub scale: f64,
    /// Products of earlier values. Their scales give their weights: factor·s_a·s_b/scale.
    pub products: Vec<(Value, Value)>,
    /// What all products are multiplied by.
    pub factor: u64,
    /// Multiples of earlier values.
    pub multiples: Vec<(Value, Slots)>,
    /// What is added to every slot; empty for nothing.
    pub constant: Slots,
}

impl Sum {
    /// An empty sum.
    pub fn new(level: usize, scale: f64) -> Self {
        Self { level, scale, products: Vec::new(), factor: 1, multiples: Vec::new(), constant: Vec::new() }
    }

    /// Adds a constant to the constant.
    pub fn add_constant(&mut self, value: Complex64) {
        match self.constant.as_mut_slice() {
            [] => self.constant.push(value),
            all => all.iter_mut().for_each(|c| *c += value),
        }
    }

    /// Values that it reads.
    pub fn operands(&self) -> impl Iterator<Item = Value> + '_ {
        self.products.iter().flat_map(|(a, b)| [*a, *b]).chain(self.multiples.iter().map(|(v, _)| *v))
    }
}

/// A sum's constants as its rows meet them.
#[derive(Debug)]
pub(super) struct Encoded<R> {
    pub multiples: Vec<R>,
    pub constant: Option<R>,
}

/// A program without its constants: values, by level and scale, of a chain of primes.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(super) chain: Sketch,
    level: usize,
    scale: f64,
    pub(super) sums: Vec<Sum>,
}

impl Plan {
    /// A program whose input has a level and a scale, without any sums.
    pub fn new(chain: Sketch, level: usize, scale: f64) -> Self {
        Self { chain, level, scale, sums: Vec::new() }
    }

    /// Level of a value.
    pub fn level(&self, value: Value) -> usize {
        if value == 0 { self.level } else { self.sums[value - 1].level - 1 }
    }

    /// Scale of a value.
    pub fn scale(&self, value: Value) -> f64 {
        match value {
            0 => self.scale,
            _ => self.sums[value - 1].scale / self.prime(self.sums[value - 1].level),
        }
    }

    /// The prime that a sum at a level is divided by.
    pub fn prime(&self, level: usize) -> f64 {
        self.chain.q()[level]
    }

    /// What a product counts for in a sum.
    pub fn weight(&self, sum: &Sum, (a, b): (Value, Value)) -> f64 {
        self.scale(a) * self.scale(b) / sum.scale * sum.factor as f64
    }

    /// Adds a sum whose products all count for `weight`.
    ///
    /// # Errors
    /// `RlweError::OutOfLevels` for a sum at level 0 or above one of its values,
    /// [`HeError::ScaleMismatch`] if the scales give another weight.
    pub fn push(&mut self, sum: Sum, weight: f64) -> Result<Value, HeError> {
        let operation = "planning a circuit";
        let highest = sum.operands().map(|v| self.level(v)).min().unwrap_or(sum.level);
        if sum.level == 0 || sum.level > highest || sum.level >= self.chain.q().len() {
            return Err(RlweError::OutOfLevels { operation, needed: sum.level.max(1), level: highest }.into());
        }
        for (a, b) in &sum.products {
            let found = self.weight(&sum, (*a, *b));
            if (found / weight - 1.0).abs() > SCALE_TOLERANCE {
                let (left, right) = (found.abs().log2(), weight.abs().log2());
                return Err(HeError::ScaleMismatch { operation, left, right });
            }
        }
        self.sums.push(sum);
        Ok(self.sums.len())
    }

    /// The square of a value.
    ///
    /// # Errors
    /// As [`Builder::push`].
    pub fn square(&mut self, value: Value) -> Result<Value, HeError> {
        let mut sum = Sum::new(self.level(value), self.scale(value).powi(2));
        sum.products.push((value, value));
        self.push(sum, 1.0)
    }

    /// The sums in order.
    pub fn sums(&self) -> &[Sum] {
        &self.sums
    }

    /// Operations on one input.
    pub fn operations(&self) -> OperationCount {
        count(&self.sums)
    }

    /// All values where the input is `x`, in slot `slot`.
    pub fn values(&self, x: Complex64, slot: usize) -> Vec<Complex64> {
        let mut values = vec![x];
        for sum in &self.sums {
            let constant = if sum.constant.is_empty() { Complex64::ZERO } else { at(&sum.constant, slot) };
            let products = sum.products.iter().map(|(a, b)| values[*a] * values[*b] * self.weight(sum, (*a, *b)));
            let multiples = sum.multiples.iter().map(|(v, c)| values[*v] * at(c, slot));
            values.push(constant + products.chain(multiples).sum::<Complex64>());
        }
        values
    }

    /// Encodes all constants.
    ///
    /// # Errors
    /// None.
    pub fn encode(self, params: &Params, outputs: Vec<Value>) -> Result<Program, HeError> {
        self.prepared(params, outputs, |_, _, make| make())
    }

    /// Encodes all constants, as a backend keeps them.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn encode_for<B: Backend>(
        self,
        evaluator: &Evaluator<B>,
        outputs: Vec<Value>,
    ) -> Result<Program<B::Row>, HeError> {
        let prepare = |level, period, make: Make<'_>| evaluator.backend().prepare_row((level, Over::Q), period, make);
        self.prepared(evaluator.params(), outputs, prepare)
    }

    fn prepared<R>(
        self,
        params: &Params,
        outputs: Vec<Value>,
        prepare: impl Fn(usize, usize, Make<'_>) -> Result<R, HeError>,
    ) -> Result<Program<R>, HeError> {
        let row = |level: usize, slots: &Slots, scale: f64| {
            prepare(level, period(slots), &mut || Ok(encode(params, params.q_at(level), slots, scale)))
        };
        let constants = |sum: &Sum| -> Result<Encoded<R>, HeError> {
            let multiple = |(v, c): &(Value, Slots)| row(sum.level, c, sum.scale / self.scale(*v));
            let constant = (!sum.constant.is_empty()).then(|| row(sum.level, &sum.constant, sum.scale));
            let multiples = sum.multiples.iter().map(multiple).collect::<Result<_, _>>()?;
            Ok(Encoded { multiples, constant: constant.transpose()? })
        };
        let encoded = self.sums.iter().map(constants).collect::<Result<_, _>>()?;
        Ok(Program { params: params.clone(), plan: self, encoded, outputs })
    }
}

/// Encodes a row, for a backend that has a use for its words.
type Make<'a> = &'a mut dyn FnMut() -> Result<PeriodicPoly, HeError>;

/// A planned program with its constants.
#[derive(Debug)]
pub(crate) struct Program<R = PeriodicPoly> {
    pub(super) params: Params,
    plan: Plan,
    pub(super) encoded: Vec<Encoded<R>>,
    pub(super) outputs: Vec<Value>,
}

/// Operations of a program on one input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationCount {
    /// Products of ciphertexts.
    pub products: usize,
    /// Relinearisations, each with its rescale.
    pub relinearisations: usize,
    /// Rescales of sums without products.
    pub rescales: usize,
}

impl<R> Program<R> {
    /// What it does.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The values that it is for.
    pub fn outputs(&self) -> &[Value] {
        &self.outputs
    }

    /// Level and scale of each output.
    pub fn output_states(&self) -> Vec<(usize, f64)> {
        self.outputs.iter().map(|v| (self.plan.level(*v), self.plan.scale(*v))).collect()
    }
}

impl Program {
    /// Bytes of its constants.
    pub fn bytes(&self) -> usize {
        let rows =
            |e: &Encoded<PeriodicPoly>| e.multiples.iter().chain(&e.constant).map(PeriodicPoly::bytes).sum::<usize>();
        self.encoded.iter().map(rows).sum()
    }
}

/// What a list of sums costs.
fn count(sums: &[Sum]) -> OperationCount {
    sums.iter().fold(OperationCount::default(), |acc, sum| {
        let relinearised = usize::from(!sum.products.is_empty());
        OperationCount {
            products: acc.products + sum.products.len(),
            relinearisations: acc.relinearisations + relinearised,
            rescales: acc.rescales + 1 - relinearised,
        }
    })
}

/// A repeating vector's entry.
pub(super) fn at(slots: &Slots, slot: usize) -> Complex64 {
    slots[slot % slots.len()]
}
