//! Half a bootstrap: numbers modulo 1 that come as coefficients modulo q_0 become values of a series of theirs, in slots.
//!
//! What comes is a product of two ciphertexts of a small ring, three parts under s₀. Some of them are put side by side
//! ([`sudare_rlwe::interleaved`]: Σ_k X^k·c_k(X^m)), and the keys that lead to the sparse secret are those of s₀(X^m) and s₀²(X^m), in place of a
//! relinearisation. Then they are raised and brought to slots, and a trigonometric series of E = exp(2πiu) follows at once: no step
//! goes back to coefficients, and none takes the integers I away (half a bootstrap is from the framework of RtF, ePrint 2020/1335; series
//! in place of sines as for tables, ePrint 2024/1623).

use super::layout::Layout;
use super::noise::{integer_shares, join_variance};
use super::params::BootstrapParams;
use super::refresh::{Bootstrapper, Kind, Step};
use crate::circuits::mod1::Series;
use crate::circuits::polynomial::program::{Plan, Program, Value};
use crate::ckks::{CiphertextOf, State};
use crate::error::{HeError, parameters};
use num_complex::Complex64;
use std::f64::consts::TAU;
use sudare_ring::interrupt::check;
use sudare_ring::ops::PeriodicPoly;
use sudare_rlwe::{self as rlwe, Backend};

/// Series that are planned for a set.
#[derive(Debug)]
pub struct SeriesProgram<R = PeriodicPoly> {
    program: Program<R>,
    state: State,
}

/// Predicted mean and variance of a series' values.
#[derive(Debug)]
pub struct SeriesNoise {
    params: BootstrapParams,
    plan: Plan,
    value: Value,
    series: Series,
    shares: Vec<(i64, f64)>,
    /// Variance of u, in turns squared, by raising and CtS.
    angle: f64,
    /// Variance of a value by joining.
    join: f64,
}

impl SeriesNoise {
    /// Mean and variance of a value at u turns, −½ to ½ or 0 to 1, over the integer I and all noise, where u has an error of variance
    /// `angle` (turns squared) of its own.
    pub fn at(&self, u: f64, angle: f64) -> (f64, f64) {
        let (layout, span) = (self.params.layout(), self.params.reduction().span());
        let (mut mean, mut square, mut noise, mut all) = (0.0, 0.0, 0.0, 0.0);
        for (integer, share) in &self.shares {
            let phase = *integer as f64 + u;
            if phase.abs() > span {
                continue;
            }
            let (values, variances) = layout.value_variances(&self.plan, self.value, phase);
            let value = values[self.value].im;
            all += share;
            mean += share * value;
            square += share * value * value;
            noise += share * variances.iter().sum::<f64>();
        }
        let (mean, square, noise) = (mean / all, square / all, noise / all);
        let slope = self.series.slope(Complex64::cis(TAU * u));
        (mean, square - mean * mean + noise + slope * slope * (self.angle + angle) + self.join)
    }
}

impl Layout {
    /// A series' value as a program.
    fn series(&self, all: &[&Series], scale: f64) -> Result<(Plan, Vec<Value>), HeError> {
        let (_, terms) = self.exponential()?;
        if let Some(long) = all.iter().find(|series| series.coefficients().len() > terms) {
            let degree = long.coefficients().len() - 1;
            return Err(parameters(format!(
                "a series has the degree {degree}, and this set evaluates degrees up to {}; take a lower one",
                terms - 1
            )));
        }
        let (plan, _, values) = self.tables(&all.iter().map(|series| (*series, scale)).collect::<Vec<_>>())?;
        Ok((plan, values))
    }
}

impl BootstrapParams {
    /// The parameters of what half a bootstrap raises: q_0 at level 0.
    pub fn low_params(&self) -> &rlwe::Params {
        self.low().rlwe()
    }

    /// Predicted mean and variance of the values of a series at a scale.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a set without series, and for a degree over the set's.
    pub fn series_noise(&self, series: &Series, scale: f64) -> Result<SeriesNoise, HeError> {
        let layout = self.layout();
        let (plan, values) = layout.series(&[series], scale)?;
        let [value] = *values.as_slice() else {
            return Err(rlwe::RlweError::Internal { what: "one series has one value" }.into());
        };
        Ok(SeriesNoise {
            params: self.clone(),
            plan,
            value,
            series: series.clone(),
            shares: integer_shares(self.literal().weight),
            angle: layout.raise_angle() + layout.cts_angle(&layout.cts_plans()),
            join: join_variance(layout, scale, 2) / 2.0 / (scale * scale),
        })
    }
}

impl<B: Backend> Bootstrapper<B> {
    /// Plans series, whose values will have this scale, bound and noise; powers of E are shared.
    ///
    /// # Errors
    /// As [`BootstrapParams::series_noise`].
    pub fn plan_series(&self, all: &[&Series], state: State) -> Result<SeriesProgram<B::Row>, HeError> {
        let (plan, values) = self.layout().series(all, state.scale)?;
        Ok(SeriesProgram { program: plan.encode_for(&self.evaluator, values)?, state })
    }

    /// The series of coefficients of products side by side: for each of them two ciphertexts of real slots, at the level of refreshed
    /// ones. Slot j of the first is the series of coefficient [`place`](crate::discrete::place)(N, j), slot j of the other of
    /// that of N/2 + j.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`; `RlweError::Degree` for what is none; `RlweError::Parameters` for a set that
    /// is no half.
    pub fn run_series(
        &self,
        input: &B::Ciphertext,
        series: &SeriesProgram<B::Row>,
    ) -> Result<Vec<[CiphertextOf<B>; 2]>, HeError> {
        self.series_with_progress(input, series, &mut |_| {})
    }

    /// [`Bootstrapper::run_series`] that tells of each step before it begins.
    pub(super) fn series_with_progress(
        &self,
        input: &B::Ciphertext,
        series: &SeriesProgram<B::Row>,
        tell: &mut dyn FnMut(Step),
    ) -> Result<Vec<[CiphertextOf<B>; 2]>, HeError> {
        let mut begin = |step| {
            tell(step);
            check();
        };
        begin(Step::Raise);
        let raised = self.raised(input)?;
        begin(Step::CoefficientsToSlots);
        let starts = self.to_slots(vec![raised], &[Kind::Complex])?;
        begin(Step::Reduce);
        let programs = vec![&series.program; starts.len()];
        let values = Program::run(&programs, &self.evaluator, &starts.iter().collect::<Vec<_>>())?;
        drop(starts);
        begin(Step::Join);
        let [u, v] = values.as_slice() else {
            return Err(parameters("half a bootstrap needs a set that fills all slots; take such a set"));
        };
        let both = |(u, v): (&B::Ciphertext, &B::Ciphertext)| {
            let mut joined = self.join(vec![u.clone(), v.clone()], Kind::Pair)?.into_iter();
            match (joined.next(), joined.next()) {
                (Some(u), Some(v)) => Ok([u, v].map(|c| CiphertextOf::<B>::new(c, series.state))),
                _ => Err(rlwe::RlweError::Internal { what: "two parts were joined to fewer" }.into()),
            }
        };
        u.iter().zip(v).map(both).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuits::bootstrapping::{BootstrapKeys, BootstrapLiteral};
    use crate::circuits::mod1::Step as Jump;
    use crate::ckks::{Decryptor, Encoder};
    use crate::discrete::place;
    use sudare_ring::{Coeff, ErrorKind, Eval, Kinded, Poly};
    use sudare_rlwe::interleaved;
    use sudare_rlwe::keys::SecretKey;
    use sudare_rlwe::params::ParamsLiteral;
    use sudare_rlwe::security::{SecretDistribution, Security};
    use sudare_rlwe::wire::Wire;
    use sudare_testkit::{Random, sized};

    struct World {
        params: BootstrapParams,
        secret: SecretKey,
        small: SecretKey,
        bootstrapper: Bootstrapper,
    }

    fn small_ring(params: &BootstrapParams, log_n: u32) -> rlwe::Params {
        let literal = ParamsLiteral {
            log_n,
            q_bits: vec![],
            p_bits: vec![],
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        };
        literal.build_over(params.params().rlwe().tag(), &[params.params().rlwe().prime_at(0)], &[]).unwrap()
    }

    impl World {
        fn new(log_n: u32) -> Self {
            let params = BootstrapLiteral::h().insecure(log_n).unwrap().build().unwrap();
            let small = SecretKey::generate(&small_ring(&params, 9)).unwrap();
            let secret = SecretKey::generate(params.params()).unwrap();
            let keys = BootstrapKeys::packing(&secret, &small, &params).unwrap();
            // By way of bytes.
            let keys = BootstrapKeys::from_bytes(&params, &keys.to_bytes().unwrap()).unwrap();
            let bootstrapper = Bootstrapper::new(keys, None).unwrap();
            Self { params, secret, small, bootstrapper }
        }

        /// Three parts whose phase under s₀ has these coefficients, parts of q_0.
        fn product(&self, random: &mut Random, turns: &[f64]) -> [Poly<Eval>; 3] {
            let basis = self.small.params().q();
            let (q, n) = (basis.modulus(0).value(), basis.degree());
            let s = Poly::<Coeff>::from_signed(basis, self.small.coefficients()).into_eval();
            let [a, b] = [0; 2].map(|_| Poly::<Eval>::from_words(basis, &random.words(q, n)).unwrap());
            let message: Vec<i64> = turns.iter().map(|u| (u * q as f64).round() as i64).collect();
            let mut first = Poly::<Coeff>::from_signed(basis, &message).into_eval();
            first.sub_assign(&a.mul(&s));
            first.sub_assign(&b.mul(&s).mul(&s));
            [first, a, b]
        }
    }

    /// Values of a step: their places, their mean and variance by the formula, on either side and on the slope.
    #[test]
    fn a_step_is_its_series() {
        let period = 1.82;
        let jump = Jump { centre: 0.5, near: 0.10 / period, far: 0.24 / period, weight: 1.0 };
        let series = Series::step(jump, 31).unwrap();
        let places = [0.0, 0.25, 0.36, 0.40, 0.5];
        let (mut measured, mut foretold) = ([0.0; 5], [0.0; 5]);
        let (mut means, mut expected) = ([0.0; 5], [0.0; 5]);
        for key in 0..sized(2, 8) {
            let w = World::new(11);
            let (n, scale) = (w.params.params().degree(), 33f64.exp2());
            let noise = w.params.series_noise(&series, scale).unwrap();
            let program = w.bootstrapper.plan_series(&[&series], State { scale, bound: 1.5, noise: 1.0 }).unwrap();
            let mut random = Random(key as u64 + 1);
            for blocks in [4usize, 3] {
                let turns: Vec<Vec<f64>> =
                    (0..blocks).map(|k| (0..512).map(|i| places[(i * 7 + k) % 5]).collect()).collect();
                let products: Vec<_> = turns.iter().map(|turns| w.product(&mut random, turns)).collect();
                let packed = interleaved(w.params.low_params(), w.secret.id(), &products).unwrap();
                let found = w.bootstrapper.run_series(&packed, &program).unwrap().remove(0);
                for (half, c) in found.iter().enumerate() {
                    assert_eq!(c.level(), w.params.output_level());
                    let plain = Decryptor::new(&w.secret).decrypt(c).unwrap();
                    for (slot, z) in Encoder::new(w.params.params()).decode_complex(&plain).unwrap().iter().enumerate()
                    {
                        let at = place(n, half * n / 2 + slot);
                        let (block, row) = (at % 4, at / 4);
                        let kind = if block < blocks { (row * 7 + block) % 5 } else { 0 };
                        let (mean, variance) = noise.at(places[kind], 0.0);
                        measured[kind] += (z.re - mean).powi(2);
                        foretold[kind] += variance;
                        means[kind] += z.re;
                        expected[kind] += mean;
                    }
                }
            }
        }
        for kind in 0..5 {
            let ratio = measured[kind] / foretold[kind];
            assert!((0.5..1.6).contains(&ratio), "at {}: {ratio:.3}", places[kind]);
            assert!((means[kind] / expected[kind] - 1.0).abs() < 0.05 || expected[kind].abs() < 1.0);
        }
    }

    /// What a half takes is what its simulation says.
    #[test]
    fn operations_are_those_that_were_simulated() {
        let w = World::new(11);
        let series = Series::step(Jump { centre: 0.5, near: 0.05, far: 0.2, weight: 1.0 }, 31).unwrap();
        let state = State { scale: 33f64.exp2(), bound: 1.5, noise: 1.0 };
        let program = w.bootstrapper.plan_series(&[&series], state).unwrap();
        let packed =
            interleaved(w.params.low_params(), w.secret.id(), &[w.product(&mut Random(3), &[0.25; 512])]).unwrap();
        w.bootstrapper.reset_counters();
        w.bootstrapper.run_series(&packed, &program).unwrap();
        let foretold = w.params.operations(Kind::Complex).unwrap().into_iter().fold(Default::default(), |a, b| a + b);
        assert_eq!(w.bootstrapper.counters(), foretold);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let params = BootstrapLiteral::h().insecure(10).unwrap().build().unwrap();
        let secret = SecretKey::generate(params.params()).unwrap();
        let kind = |e: HeError| e.kind();
        assert_eq!(BootstrapKeys::generate(&secret, &params).map_err(kind).unwrap_err(), ErrorKind::Parameters);
        let other = small_ring(&BootstrapLiteral::g15().insecure(10).unwrap().build().unwrap(), 9);
        let small = SecretKey::generate(&other).unwrap();
        assert_eq!(BootstrapKeys::packing(&secret, &small, &params).map_err(kind).unwrap_err(), ErrorKind::Parameters);
        assert_eq!(interleaved(params.low_params(), secret.id(), &[]).unwrap_err().kind(), ErrorKind::Parameters);
        let basis = small_ring(&params, 9);
        let product = || [0; 3].map(|_| Poly::<Eval>::zero(basis.q()));
        assert!(interleaved(params.low_params(), secret.id(), &[product(), product()]).is_ok());
        let many = [product(), product(), product()];
        assert_eq!(interleaved(params.low_params(), secret.id(), &many).unwrap_err().kind(), ErrorKind::Parameters);
        let deep = Series::step(Jump { centre: 0.5, near: 0.05, far: 0.2, weight: 1.0 }, 40).unwrap();
        assert!(params.series_noise(&deep, 33f64.exp2()).is_err());
    }
}
