//! A polynomial, ready to be evaluated on ciphertexts of one level and scale.

use super::noise::{MARGIN, Samples};
use super::program::{OperationCount, Plan, Program, Value};
use super::{Basis, Planner, Polynomial};
use crate::ckks::{Ciphertext, CiphertextOf, Evaluator, Params, State};
use crate::error::{HeError, parameters};
use num_complex::Complex64;
use sudare_ring::ops::PeriodicPoly;
use sudare_rlwe::{Backend, RlweError};

/// Largest relative difference between a ciphertext's scale and the one that was planned for.
const SCALE_TOLERANCE: f64 = 1.0 / (1u64 << 40) as f64;

/// A polynomial's program and constants for one level and scale of the input.
#[derive(Debug)]
pub struct PolynomialCircuit<R = PeriodicPoly> {
    program: Program<R>,
    polynomial: Polynomial,
    level: usize,
    scale: f64,
    /// The largest absolute value of a variable.
    reach: f64,
    gains: super::noise::Gains,
}

impl PolynomialCircuit {
    /// Plans a polynomial of ciphertexts at `level` and `scale`; its value has `target` as its exact
    /// scale, [`Polynomial::depth`] levels lower.
    ///
    /// The variable of a domain of half-width r, (x − centre)/r, is the ciphertext itself read at the scale r·`scale`. Its
    /// powers then have the scale r^k·`scale`, which leaves constants fewer bits: keep r·`scale` near the size of the primes.
    ///
    /// # Errors
    /// `RlweError::OutOfLevels`, `RlweError::NoSuchLevel`; `RlweError::Parameters` for a constant
    /// polynomial or a scale that is no number of at least one, and where the bound on the circuit's own error reaches that
    /// on its values, Σ|c_k|, so that nothing of them is left.
    pub fn new(
        params: &Params,
        polynomial: &Polynomial,
        level: usize,
        scale: f64,
        target: f64,
    ) -> Result<Self, HeError> {
        Self::planned(params, polynomial, (level, scale, target), |plan, value| plan.encode(params, vec![value]))
    }

    /// Bytes of its constants.
    pub fn bytes(&self) -> usize {
        self.program.bytes()
    }
}

impl<R> PolynomialCircuit<R> {
    /// The same, with its constants as a backend keeps them.
    ///
    /// # Errors
    /// As [`PolynomialCircuit::new`].
    pub fn on<B: Backend<Row = R>>(
        evaluator: &Evaluator<B>,
        polynomial: &Polynomial,
        level: usize,
        scale: f64,
        target: f64,
    ) -> Result<Self, HeError> {
        let encode = |plan: Plan, value| plan.encode_for(evaluator, vec![value]);
        Self::planned(evaluator.params(), polynomial, (level, scale, target), encode)
    }

    fn planned(
        params: &Params,
        polynomial: &Polynomial,
        (level, scale, target): (usize, f64, f64),
        encode: impl FnOnce(Plan, Value) -> Result<Program<R>, HeError>,
    ) -> Result<Self, HeError> {
        let highest = params.max_level();
        if level > highest {
            return Err(RlweError::NoSuchLevel { operation: "a polynomial", wanted: level, highest }.into());
        }
        if polynomial.degree() == 0 || !(scale >= 1.0 && scale.is_finite() && target >= 1.0 && target.is_finite()) {
            return Err(parameters("a polynomial needs a degree of at least one, and finite scales of at least one"));
        }
        // u = (x − centre)/radius is what the same polynomial stands for at a larger scale.
        let mut plan = Plan::new(params.sketch().clone(), level, scale * polynomial.radius);
        let written = (polynomial.basis, polynomial.coefficients.as_slice());
        let value = Planner::write(&mut plan, 0, written, target)?;
        let gains = plan.gains(value, &domain(polynomial));
        let (own, values) = (plan.error_bound(&gains, 0.0), polynomial.bound());
        if own >= values {
            return Err(parameters(format!(
                "a polynomial over a half-width of {} from the scale 2^{:.1}: its own error of up to {own:.1e} leaves \
                 nothing of values up to {values:.1e}; encode at a scale that is smaller by the half-width, or divide \
                 the variable by the half-width first, which takes one level",
                polynomial.radius,
                scale.log2()
            )));
        }
        let program = encode(plan, value)?;
        let reach = polynomial.centre.abs() + polynomial.radius;
        Ok(Self { program, polynomial: polynomial.clone(), level, scale, reach, gains })
    }

    /// The same for real variables of a polynomial in Chebyshev's basis that lie in another interval than its own: values
    /// and their errors are bounded there, where they grow fast.
    ///
    /// # Errors
    /// [`HeError::TooLarge`] where a value on the way does not fit the modulus.
    pub fn over(mut self, params: &Params, (from, to): (f64, f64)) -> Result<Self, HeError> {
        let ((centre, radius), plan) = (self.polynomial.domain(), self.program.plan());
        let (low, high) = ((from - centre) / radius, (to - centre) / radius);
        let samples = domain(&self.polynomial);
        let moved =
            samples.into_iter().map(|(u, slot)| ((low + high) / 2.0 + u * ((high - low) / 2.0), slot)).collect();
        self.gains = plan.gains(self.program.outputs()[0], &moved);
        self.reach = from.abs().max(to.abs());
        for (k, sum) in plan.sums().iter().enumerate() {
            let bound = self.gains.sizes[k + 1] * MARGIN;
            State { scale: sum.scale, bound, noise: 0.0 }.check_fits("a polynomial", params, sum.level)?;
            State { scale: plan.scale(k + 1), bound, noise: 0.0 }.check_fits("a polynomial", params, sum.level - 1)?;
        }
        Ok(self)
    }

    /// The polynomial.
    pub fn polynomial(&self) -> &Polynomial {
        &self.polynomial
    }

    /// Products, relinearisations and rescales of one evaluation.
    pub fn operations(&self) -> OperationCount {
        self.program.plan().operations()
    }

    /// The level of each relinearisation, which a rescale follows.
    pub fn relinearisations(&self) -> Vec<usize> {
        self.program.plan().sums().iter().filter(|sum| !sum.products.is_empty()).map(|sum| sum.level).collect()
    }

    /// The level that its relinearisation key has to reach.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Variance of a slot's error, E|e|², for inputs like `inputs` whose slots have an error of variance
    /// `input_variance`.
    pub fn variance(&self, inputs: &[Complex64], input_variance: f64) -> f64 {
        let (centre, radius) = self.polynomial.domain();
        let samples = inputs.iter().map(|x| ((x - centre) / radius, 0)).collect();
        let plan = self.program.plan();
        plan.variance(&plan.gains(self.program.outputs()[0], &samples), input_variance / (radius * radius))
    }
}

/// Points of the domain in units of it: the interval, or the circle that bounds the disc, where
/// derivatives by the program's values, polynomials themselves, are largest.
fn domain(polynomial: &Polynomial) -> Samples {
    let count = (32 * polynomial.degree()).max(512);
    let angle = |i: usize| std::f64::consts::PI * i as f64 / count as f64;
    match polynomial.basis() {
        Basis::Chebyshev => (0..=count).map(|i| (angle(i).cos().into(), 0)).collect(),
        Basis::Power => (0..2 * count).map(|i| (Complex64::cis(angle(i)), 0)).collect(),
    }
}

impl<B: Backend> Evaluator<B> {
    /// p(x) in every slot, at the circuit's exact scale.
    ///
    /// The slots lie in the polynomial's domain; that is the caller's to know, as far as the bound that
    /// travels with the ciphertext does not tell.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, `RlweError::Degree`,
    /// `RlweError::NoSuchLevel` below the circuit's level, [`HeError::ScaleMismatch`],
    /// [`HeError::TooLarge`] where the ciphertext's bound says that values lie outside,
    /// `RlweError::MissingRelinKey`.
    pub fn polynomial(
        &self,
        x: &CiphertextOf<B>,
        circuit: &PolynomialCircuit<B::Row>,
    ) -> Result<CiphertextOf<B>, HeError> {
        let operation = "a polynomial";
        self.check(x)?;
        self.params().require("the circuit", &circuit.program.params)?;
        self.inner.check_two_parts(operation, x.inner())?;
        if x.level() < circuit.level {
            return Err(RlweError::NoSuchLevel { operation, wanted: circuit.level, highest: x.level() }.into());
        }
        if (x.scale / circuit.scale - 1.0).abs() > SCALE_TOLERANCE {
            let (left, right) = (x.scale.log2(), circuit.scale.log2());
            return Err(HeError::ScaleMismatch { operation, left, right });
        }
        let (centre, radius) = circuit.polynomial.domain();
        if x.bound > circuit.reach * (1.0 + 1e-9) {
            let (value, scale) = (x.bound.log2(), x.scale.log2());
            let modulus = (circuit.reach * x.scale).log2();
            return Err(HeError::TooLarge { operation, value, scale, modulus, level: x.level() });
        }
        let shifted = if centre == 0.0 { None } else { Some(self.add_constant(x, -centre)?) };
        let input = shifted.as_ref().unwrap_or(x);
        let out = Program::run(&[&circuit.program], self, &[&input.inner])?.pop().and_then(|mut outputs| outputs.pop());
        let (level, scale) = circuit.program.output_states()[0];
        let noise = circuit.program.plan().error_bound(&circuit.gains, input.noise / (x.scale * radius));
        let bound = match circuit.reach > centre.abs() + radius {
            true => circuit.gains.bound * MARGIN,
            false => circuit.polynomial.bound().min(circuit.gains.bound * MARGIN),
        };
        let state = State { scale, bound, noise: noise * scale };
        state.check_fits(operation, self.params(), level)?;
        let inner = out.ok_or(RlweError::Internal { what: "a polynomial has no value" })?;
        Ok(Ciphertext::new(inner, state))
    }
}
