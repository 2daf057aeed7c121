//! Tables of integers modulo t in place of the modular reduction, and the errors of their results.
//!
//! An integer x stands in a slot with an error e. After raising, the reduction's input is u = x/t + I + δ, where δ is e/t and what
//! the steps before the exponential add. The table contracts δ ([`Interpolation`]), and adds what comes after: noise of the
//! exponential along the radius, the imaginary part that CtS leaves, noise of the table's polynomial and of joining.
//!
//! Bounds hold for all slots with probability 1 − 2^−128 and better. An error of a slot is nearly a product of two Gaussians,
//! one of them the key's, so that |Re e| > F has probability exp(−2F/σ) for E|e|² = σ². σ depends on I and x: the bound is the F
//! for which the mean over I, for the worst x, is exp(−2·54.5).
//!
//! [`Errors`] has the bias and the deviation of all errors together, for integers as they are and a random I.

use super::errors::Errors;
use super::layout::Layout;
use super::noise::{cts_imaginary_variance, cts_variance, join_variance, raise_variance, stc_variance};
use super::params::{BootstrapParams, planned};
use super::refresh::{Bootstrapper, Kind};
use super::set::BootstrapLiteral;
use crate::circuits::linear_map::MapPlan;
use crate::circuits::mod1::Interpolation;
use crate::circuits::polynomial::program::{Plan, Program, Value};
use crate::ckks::CiphertextOf;
use crate::error::HeError;
use num_complex::Complex64;
use std::f64::consts::TAU;
use sudare_ring::interrupt::check;
use sudare_ring::ops::PeriodicPoly;
use sudare_rlwe::noise::{NEGLIGIBLE, canonical_bound};
use sudare_rlwe::{Backend, RlweError};

/// What is known of the integers that a table reads, where they stand in coefficients modulo q_0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableInput {
    /// t.
    pub modulus: usize,
    /// Distance of coefficients to x·q_0/t, as a part of q_0.
    pub angle: Errors,
}

/// A table, and what its values should have as their scale.
#[derive(Clone, Debug)]
pub(crate) struct TableOutput {
    pub table: Interpolation,
    pub scale: f64,
}

/// Tables that are planned for one kind of input.
#[derive(Debug)]
pub(crate) struct Tables<R = PeriodicPoly> {
    pub(super) program: Program<R>,
    /// Errors of the results.
    pub errors: Vec<Errors>,
}

/// Variances of a table's steps, for integers that are spread evenly. A value is a real number: a real or imaginary part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableNoise {
    /// Of u, by StC.
    pub to_coefficients: f64,
    /// Of u, by raising.
    pub raise: f64,
    /// Of u, by CtS.
    pub to_slots: f64,
    /// Of a value, by the imaginary part that CtS leaves.
    pub imaginary: f64,
    /// Of a value, by the arithmetic of exponential and table.
    pub arithmetic: f64,
    /// Of a value, by the exponential's approximation.
    pub approximation: f64,
    /// Of a value, by joining.
    pub join: f64,
    /// Mean square of what is left of the error of u.
    pub bending: f64,
    /// The largest variance of `imaginary` and `arithmetic` together for one I and x.
    pub largest: f64,
}

impl TableNoise {
    /// Variance of u before the exponential.
    pub fn angle(&self) -> f64 {
        self.to_coefficients + self.raise + self.to_slots
    }

    /// Mean square error of a value.
    pub fn total(&self) -> f64 {
        self.imaginary + self.arithmetic + self.approximation + self.join + self.bending
    }
}

/// A value of u without an error: I + x/t.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    /// I + x/t, at most (h + 1)/2 in size.
    pub u: f64,
    /// x.
    pub x: usize,
    /// The probability of I for this x.
    pub share: f64,
}

/// Every I + x/t that raising under a secret of weight h makes: u is the sum of h + 1 uniform numbers.
pub(super) fn phases(weight: u32, modulus: usize) -> Vec<Phase> {
    // Uniform numbers on a grid of 1/fine, an even multiple of t.
    let fine = modulus * 2 * 16usize.div_ceil(modulus);
    let mut sums = vec![1.0];
    for _ in 0..=weight {
        // By the trapezoidal rule, with running sums.
        let mut next = vec![0.0; sums.len() + fine];
        let (mut inside, at) = (0.0f64, |i: usize| sums.get(i).map_or(0.0, |s| *s));
        for (i, out) in next.iter_mut().enumerate() {
            let leaving = i.checked_sub(fine).map_or(0.0, at);
            inside += at(i);
            *out = (inside - (at(i) + leaving) / 2.0).max(0.0) / fine as f64;
            inside -= leaving;
        }
        sums = next;
    }
    let middle = (sums.len() - 1) / 2;
    let step = fine / modulus;
    let last = i64::from(weight / 2) + 1;
    let mut out = Vec::new();
    for x in 0..modulus {
        let here = |integer: i64| {
            let index = middle as i64 + integer * fine as i64 + (x * step) as i64;
            let share = usize::try_from(index).ok().and_then(|i| sums.get(i)).copied();
            share.filter(|s| *s > 0.0).map(|share| Phase { u: integer as f64 + x as f64 / modulus as f64, x, share })
        };
        let all: Vec<Phase> = (-last..=last).filter_map(here).collect();
        let total: f64 = all.iter().map(|p| p.share).sum();
        out.extend(all.into_iter().map(|p| Phase { share: p.share / total, ..p }));
    }
    out
}

impl Layout {
    /// Variance of u by StC, for values of mean square `energy` of both parts together.
    fn stc_angle(&self, maps: &[MapPlan], modulus: usize, energy: f64) -> f64 {
        // Integers modulo t stand at a scale that is larger the smaller t.
        let larger = 1.0 / (self.radius() * modulus as f64);
        stc_variance(self, maps, energy * larger * larger, 0.0) / self.q0().powi(2)
    }

    pub(super) fn raise_angle(&self) -> f64 {
        raise_variance(self) / self.q0().powi(2)
    }

    pub(super) fn cts_angle(&self, maps: &[MapPlan]) -> f64 {
        cts_variance(self, maps) * (self.reduction.span() / self.start_scale()).powi(2)
    }

    /// Variance of what a value near `u` gets from the imaginary part of CtS, and from the program's arithmetic.
    pub(super) fn value_variances(&self, plan: &Plan, output: Value, u: f64) -> (Vec<Complex64>, [f64; 2]) {
        let values = plan.values((u / self.reduction.span()).into(), 0);
        let gains = plan.derivatives(output, &values, 0);
        let imaginary = gains[0].norm_sqr() * cts_imaginary_variance(self) / self.start_scale().powi(2);
        // Half of a complex error.
        let own = |k: usize| gains[k + 1].norm_sqr() * plan.added_variance(k) / 2.0;
        let arithmetic = (0..plan.sums().len()).map(own).sum();
        (values, [imaginary, arithmetic])
    }

    /// Predicted variances of a table's steps.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a set without tables.
    pub fn table_noise(&self, table: &Interpolation) -> Result<TableNoise, HeError> {
        let t = table.modulus() as f64;
        let (plan, _, values) = self.tables(&[(table.series(), self.scale())])?;
        let energy = (t - 1.0) * (2.0 * t - 1.0) / 3.0;
        let mut out = TableNoise {
            to_coefficients: self.stc_angle(&self.stc_plans(), table.modulus(), energy),
            raise: self.raise_angle(),
            to_slots: self.cts_angle(&self.cts_plans()),
            imaginary: 0.0,
            arithmetic: 0.0,
            approximation: 0.0,
            join: join_variance(self, self.scale(), 2) / 2.0 / self.scale().powi(2),
            bending: 0.0,
            largest: 0.0,
        };
        for Phase { u, x, share } in phases(self.literal.weight, table.modulus()) {
            let (found, [imaginary, arithmetic]) = self.value_variances(&plan, values[0], u);
            out.approximation += share * (found[values[0]].im - table.values()[x]).powi(2) / t;
            out.imaginary += share * imaginary / t;
            out.arithmetic += share * arithmetic / t;
            out.largest = out.largest.max(imaginary + arithmetic);
        }
        // The fourth moment of a Gaussian.
        let curvature = (0..table.modulus()).map(|x| table.curvature(x).powi(2)).sum::<f64>() / t;
        out.bending = 3.0 * out.angle().powi(2) * curvature;
        Ok(out)
    }

    /// Errors of coefficients after StC, as a part of q_0: of integers modulo t up to `range` in size.
    pub fn coefficient_errors(&self, modulus: usize, range: f64, own: Errors) -> Errors {
        let variance = self.coefficient_variance(modulus, range);
        let own = own.times(1.0 / modulus as f64);
        let bound = together([own.bound, coefficient_tail(variance)]);
        Errors { bound, deviation: own.deviation.hypot(variance.sqrt()), ..own }
    }

    /// Bound on the canonical norm of what StC makes of integers modulo t up to `range` in size and their errors, as a part of
    /// q_0.
    pub fn coefficients_together(&self, modulus: usize, range: f64, own: Errors) -> f64 {
        let stc = canonical_bound(&NEGLIGIBLE, self.chain.degree(), self.coefficient_variance(modulus, range), 2);
        own.together(self.chain.degree()) / modulus as f64 + stc
    }

    /// Variance of a coefficient by StC, as a part of q_0.
    fn coefficient_variance(&self, modulus: usize, range: f64) -> f64 {
        // Both parts of a slot are integers.
        self.stc_angle(&self.stc_plans(), modulus, 2.0 * range.powi(2))
    }

    /// Tables as a program, its values, and their errors.
    fn planned_tables(
        &self,
        input: TableInput,
        outputs: &[TableOutput],
    ) -> Result<(Plan, Vec<Value>, Vec<Errors>), HeError> {
        let tables: Vec<_> = outputs.iter().map(|o| (o.table.series(), o.scale)).collect();
        let (plan, e, values) = self.tables(&tables)?;
        let errors = self.table_errors(input, outputs, (&plan, e, &values));
        Ok((plan, values, errors))
    }

    /// Errors of tables' results.
    fn table_errors(
        &self,
        input: TableInput,
        outputs: &[TableOutput],
        (plan, e, values): (&Plan, Value, &[Value]),
    ) -> Vec<Errors> {
        let variances = [self.raise_angle(), self.cts_angle(&self.cts_plans())];
        let angle = together([input.angle.bound, coefficient_tail(variances[0]), slot_tail(variances[1])]);
        let (before, added) = (input.angle.mean_square(), variances[0] + variances[1]);
        let phases = phases(self.literal.weight, input.modulus);
        let one = |(output, value): (&TableOutput, &Value)| {
            let (table, mut fit, mut exponential) = (&output.table, 0.0f64, 0.0f64);
            let mut deviations = Vec::with_capacity(phases.len());
            let mut spreads = vec![Spread::default(); input.modulus];
            for phase in &phases {
                let mut variance = 0.0f64;
                let mut fits = [0.0; 3];
                for (off, missed) in [-angle, 0.0, angle].into_iter().zip(&mut fits) {
                    let u = phase.u + off;
                    let (found, [imaginary, arithmetic]) = self.value_variances(plan, *value, u);
                    variance = variance.max(imaginary + arithmetic);
                    *missed = found[*value].im - table.evaluate(Complex64::cis(TAU * u));
                    fit = fit.max(missed.abs());
                    if off == 0.0 {
                        let gains = plan.derivatives(e, &found, 0);
                        let own = (0..plan.sums().len()).map(|k| gains[k + 1].norm_sqr() * plan.added_variance(k));
                        exponential = exponential.max(own.sum());
                    }
                }
                deviations.push((*phase, variance));
                spreads[phase.x].add(phase.share, variance, fits);
            }
            let joined = join_variance(self, output.scale, 2) / 2.0 / output.scale.powi(2);
            // What of the exponential's own noise is not linear.
            let off = NEGLIGIBLE[1] * exponential.sqrt();
            let bent = table.bending(together([angle, off / TAU])) + table.second_order() * off * off;
            let bound = fit + together([bent, bound(&deviations), slot_tail(joined)]);
            let curvature = (0..input.modulus).map(|x| table.curvature(x)).fold(0.0, f64::max);
            let added = added + exponential / (TAU * TAU);
            let squares = curvature * (before + added) + table.second_order() * exponential;
            // ‖(a + b)²‖ ≤ (‖a‖_4 + ‖b‖_4)².
            let scattered = curvature * ((INHERITED_FOURTH * before).sqrt() + (ADDED_FOURTH * added).sqrt()).powi(2);
            let worst = |of: fn(&Spread) -> f64| spreads.iter().map(of).fold(0.0, f64::max);
            Errors {
                bound,
                bias: worst(Spread::bias) + squares,
                deviation: (SAMPLED * (worst(Spread::variance) + joined)).sqrt() + scattered,
            }
        };
        outputs.iter().zip(values).map(one).collect()
    }
}

/// Roots of the mean fourth power of an error over its mean square: of a table's result, a product of two Gaussians whose variance is
/// up to 64 times its mean, and of what raising and CtS add, a product of two Gaussians.
const INHERITED_FOURTH: f64 = 24.0;
const ADDED_FOURTH: f64 = 3.0;
/// A sum of N ≥ 2^15 variances for random I is no more than this times their mean, by Bernstein's inequality with a largest one of 64
/// means.
const SAMPLED: f64 = 2.0;

/// What I makes of the errors of one integer.
#[derive(Clone, Copy, Default)]
struct Spread {
    /// Mean of what the exponential misses, and of how far that depends on the angle.
    missed: [f64; 2],
    /// Mean square of it.
    missed_squared: f64,
    /// Mean variance of noise.
    noise: f64,
}

impl Spread {
    fn add(&mut self, share: f64, variance: f64, [before, here, behind]: [f64; 3]) {
        let moved = (before - here).abs().max((behind - here).abs());
        self.missed[0] += share * here;
        self.missed[1] += share * moved;
        self.missed_squared += share * (here.abs() + moved).powi(2);
        self.noise += share * variance;
    }

    fn bias(&self) -> f64 {
        self.missed[0].abs() + self.missed[1]
    }

    fn variance(&self) -> f64 {
        self.noise + self.missed_squared
    }
}

/// Bound on a sum of errors that are independent of one another, given the key. What a table makes of an error is convex: it is
/// at most the error times what it makes of the bound, over the bound.
fn together(bounds: impl IntoIterator<Item = f64>) -> f64 {
    bounds.into_iter().map(|b| b * b).sum::<f64>().sqrt()
}

/// Bound on a coefficient's error.
fn coefficient_tail(variance: f64) -> f64 {
    NEGLIGIBLE[1] * variance.sqrt()
}

/// Bound on the real part of a slot's error, which has half of E|e|².
fn slot_tail(variance: f64) -> f64 {
    NEGLIGIBLE[1] * (2.0 * variance).sqrt()
}

/// The F above which an error lies with probability exp(−2·NEGLIGIBLE), over I, for the worst x.
fn bound(deviations: &[(Phase, f64)]) -> f64 {
    let allowed = (-2.0 * NEGLIGIBLE[1]).exp();
    let one = |here: &[(Phase, f64)]| {
        let fails = |f: f64| -> f64 {
            let random = here.iter().filter(|(_, v)| *v > 0.0);
            random.map(|(phase, v)| phase.share * (-2.0 * f / (2.0 * v).sqrt()).exp()).sum()
        };
        let (mut low, mut high) = (0.0, slot_tail(here.iter().map(|(_, v)| *v).fold(0.0, f64::max)));
        for _ in 0..30 {
            let middle = (low + high) / 2.0;
            if fails(middle) > allowed { low = middle } else { high = middle }
        }
        high
    };
    deviations.chunk_by(|a, b| a.0.x == b.0.x).map(one).fold(0.0, f64::max)
}

impl BootstrapLiteral {
    /// Bound on the error of a table's results, before anything is built: of the identity modulo t, for integers without an
    /// error.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a set without tables.
    pub fn table_bound(&self, modulus: usize) -> Result<f64, HeError> {
        let layout = Layout::new(self, planned(self))?;
        let values: Vec<f64> = (0..modulus).map(|x| x as f64).collect();
        let output = TableOutput { table: Interpolation::new(&values)?, scale: layout.scale() };
        let (plan, e, values) = layout.tables(&[(output.table.series(), output.scale)])?;
        let angle = layout.coefficient_errors(modulus, modulus as f64 - 1.0, Errors::NONE);
        let input = TableInput { modulus, angle };
        let errors = layout.table_errors(input, &[output], (&plan, e, &values));
        Ok(errors.into_iter().map(|e| e.bound).fold(0.0, f64::max))
    }
}

impl BootstrapParams {
    /// Predicted variances of the steps of a table.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a set without tables.
    pub fn table_noise(&self, table: &Interpolation) -> Result<TableNoise, HeError> {
        self.layout().table_noise(table)
    }

    /// Errors of tables' results for integers of which something is known.
    ///
    /// # Errors
    /// As [`Bootstrapper::plan_tables`].
    pub(crate) fn table_errors(&self, input: TableInput, outputs: &[TableOutput]) -> Result<Vec<Errors>, HeError> {
        Ok(self.layout().planned_tables(input, outputs)?.2)
    }
}

impl<B: Backend> Bootstrapper<B> {
    /// Plans tables for integers of which something is known.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a set without tables, `RlweError::OutOfLevels`.
    pub(crate) fn plan_tables(&self, input: TableInput, outputs: &[TableOutput]) -> Result<Tables<B::Row>, HeError> {
        let (plan, values, errors) = self.layout().planned_tables(input, outputs)?;
        Ok(Tables { program: plan.encode_for(&self.evaluator, values)?, errors })
    }

    /// Integers in slots, of each input one ciphertext with integers in both parts or two of real ones, as coefficients modulo
    /// q_0.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, `RlweError::Degree`; `RlweError::OutOfLevels` below the input
    /// level.
    pub(crate) fn coefficients(&self, inputs: &[&[CiphertextOf<B>]]) -> Result<Vec<B::Ciphertext>, HeError> {
        let levels = self.layout().levels;
        for c in inputs.iter().copied().flatten() {
            self.evaluator.inner.check_two_parts(OPERATION, c.inner())?;
            if c.level() < levels.input {
                let (needed, level) = (levels.input, c.level());
                return Err(RlweError::OutOfLevels { operation: OPERATION, needed, level }.into());
            }
        }
        let one = |parts: &&[CiphertextOf<B>]| match parts {
            [x] => self.input(x, 1),
            [x, y] => self.complex(self.input(x, 1)?, &self.input(y, 1)?),
            _ => Err(RlweError::Operands { operation: OPERATION, left: 1, right: parts.len() }.into()),
        };
        let starts = inputs.iter().map(one).collect::<Result<Vec<_>, HeError>>()?;
        check();
        self.to_coefficients(starts)
    }

    /// The tables of integers in coefficients modulo q_0. The results have one ciphertext with integers in both parts of its
    /// slots or, `split`, two of real ones, at the level of refreshed ones.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, `RlweError::Degree`.
    pub(crate) fn run_tables(
        &self,
        inputs: &[&B::Ciphertext],
        tables: &Tables<B::Row>,
        split: bool,
    ) -> Result<Vec<Vec<Vec<B::Ciphertext>>>, HeError> {
        let raised = inputs.iter().map(|c| self.raised(c)).collect::<Result<Vec<_>, _>>()?;
        check();
        let kinds = vec![Kind::Complex; raised.len()];
        let starts = self.to_slots(raised, &kinds)?;
        check();
        let programs = vec![&tables.program; starts.len()];
        let values = Program::run(&programs, &self.evaluator, &starts.iter().collect::<Vec<_>>())?;
        drop(starts);
        check();
        let kind = if split { Kind::Pair } else { Kind::Complex };
        let joined = |both: &[Vec<B::Ciphertext>]| -> Result<Vec<Vec<B::Ciphertext>>, HeError> {
            let count = both.first().map_or(0, Vec::len);
            (0..count).map(|table| self.join(both.iter().map(|all| all[table].clone()).collect(), kind)).collect()
        };
        values.chunks(2).map(joined).collect()
    }
}

/// For errors.
const OPERATION: &str = "a table";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuits::bootstrapping::noise::integer_variance;

    /// Their second moment is that of h + 1 uniform numbers, and the integers of each x are all that there are.
    #[test]
    fn phases_are_sums_of_uniform_numbers() {
        for (weight, modulus) in [(28, 256), (30, 4), (30, 2), (32, 16), (34, 3), (30, 5)] {
            let all = phases(weight, modulus);
            let t = modulus as f64;
            let second: f64 = all.iter().map(|p| p.u * p.u * p.share / t).sum();
            assert!((second / integer_variance(weight) - 1.0).abs() < 0.01, "{weight} {modulus}: {second}");
            let most = f64::from(weight + 1) / 2.0;
            assert!(
                all.iter()
                    .all(|p| p.u.abs() <= most && ((p.u * t).round() as i64).rem_euclid(modulus as i64) == p.x as i64)
            );
            for x in 0..modulus {
                let here: f64 = all.iter().filter(|p| p.x == x).map(|p| p.share).sum();
                assert!((here - 1.0).abs() < 1e-12);
            }
        }
    }

    /// At full size BFV and BGV have room for what tables leave in coefficients: bits between the bound on all N errors together, with
    /// a key switch at the end, and q_0/2t.
    #[test]
    fn results_of_the_sets_fit_into_coefficients() {
        for (literal, modulus, room) in [
            (BootstrapLiteral::s15(), 4, 1.5),
            (BootstrapLiteral::w16(), 16, 5.4),
            (BootstrapLiteral::w16(), 64, 2.7),
            (BootstrapLiteral::w16(), 128, 1.1),
        ] {
            let layout = Layout::new(&literal, planned(&literal)).unwrap();
            let values: Vec<f64> = (0..modulus).map(|x| x as f64).collect();
            let largest = modulus as f64 - 1.0;
            let output = TableOutput { table: Interpolation::new(&values).unwrap(), scale: layout.scale() };
            let (plan, e, written) = layout.tables(&[(output.table.series(), output.scale)]).unwrap();
            let mut errors = Errors::NONE;
            for _ in 0..2 {
                let input = TableInput { modulus, angle: layout.coefficient_errors(modulus, largest, errors) };
                errors = layout.table_errors(input, std::slice::from_ref(&output), (&plan, e, &written))[0];
            }
            let (chain, q) = (&layout.chain, layout.q0());
            let turn = chain.switching(0).bound(&NEGLIGIBLE) + chain.division(2).bound(&NEGLIGIBLE);
            let together = layout.coefficients_together(modulus, largest, errors) + turn / q;
            let bits = -(2.0 * modulus as f64 * together).log2();
            assert!((room..room + 0.2).contains(&bits), "{modulus}: {bits:.2} bits");
        }
    }
}
