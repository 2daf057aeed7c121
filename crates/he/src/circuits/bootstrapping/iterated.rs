//! Two refreshes in one, for twice the bits (Bae–Cheon–Cho–Kim–Kim, "META-BTS", ePrint 2022/1167).
//!
//! | Step | Level | Scale |
//! |---|---|---|
//! | x is brought to the scale of one refresh, and comes back at the user's: x + e | input, output | that of one refresh, Δ |
//! | x at a larger scale, minus x + e as often as the scales ask for: −e | StC's | so large that the bound on e fills a refresh |
//! | −e is refreshed, and the two are added | output | Δ |
//!
//! What the first refresh does to x is corrected, whatever it was: its series, noise, and the rounding of scales. What is left is what
//! the second one does to e, and e is a hundred million times smaller than x.
//!
//! Both come back at Δ, which is so large that what the last steps add does not count: that part of the first result's error is no
//! part of e where it is imaginary and slots are real.
//!
//! Scales of levels of two primes drift, and an integer alone would not bring them back. So one prime stands between StC's and the
//! user's: a product with an integer, divided by it, brings x to any scale.

use super::layout::Layout;
use super::refresh::{Bootstrapper, Case, Kind, Progress, Step};
use crate::ckks::{Ciphertext, CiphertextOf, State};
use crate::error::HeError;
use sudare_rlwe::{Backend, RlweError};

/// Values with a smaller bound are refreshed as if they had this one.
const LEAST_BOUND: f64 = 1.0 / 256.0;
/// Largest integer that a value is multiplied by before the division.
const MOST_MULTIPLIED: f64 = (1u64 << 62) as f64;
/// Bound on the relative error of a scale that some operations in double precision gave.
const DOUBLES: f64 = 1.0 / (1u64 << 50) as f64;

impl Layout {
    /// What a first result with the scale `target` is multiplied by to be taken from a value that comes with `scale`, so that
    /// parts of errors up to `error` fill what a refresh takes.
    ///
    /// # Errors
    /// [`HeError::NoPrecision`] where errors are as large as values.
    pub fn error_factor(&self, error: f64, target: f64, scale: f64) -> Result<i64, HeError> {
        let full = self.scale() / (error * target);
        if full.is_nan() || full < 2.0 {
            let (noise, scale) = ((error * target).log2(), target.log2());
            return Err(HeError::NoPrecision { operation: "bootstrapping", noise, scale });
        }
        let most = MOST_MULTIPLIED * scale / (self.chain.q()[self.input_level()] * target);
        Ok(full.min(most).max(1.0).floor() as i64)
    }
}

/// A value between its two refreshes.
struct Between<B: Backend> {
    /// Minus the first one's error, as a message without an error.
    left: CiphertextOf<B>,
    case: Case<B::Row>,
    /// Bound on what the value's own rounding left in it, in units of the message.
    rounding: f64,
}

/// Reports the progress of one of two refreshes, but for its start.
fn after_start(report: &mut impl FnMut(usize, Progress), pass: usize, progress: Progress) {
    if progress.done > 0 {
        report(pass, progress);
    }
}

impl<B: Backend> Bootstrapper<B> {
    /// Both refreshes of some ciphertexts.
    pub(super) fn iterated(
        &self,
        ciphertexts: &[&CiphertextOf<B>],
        kind: Kind,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Vec<CiphertextOf<B>>, HeError> {
        let e = &self.evaluator;
        let inputs = ciphertexts.iter().map(|c| self.lowered(c)).collect::<Result<Vec<_>, _>>()?;
        let steps = Step::ALL.len();
        let mut report = |pass: usize, p: Progress| tell(Progress { done: p.done + pass * steps, all: 2 * steps, ..p });
        let start = Progress { step: Step::SlotsToCoefficients, done: 0, all: steps };
        // Each of a pair has in it what is imaginary in the other.
        let together = if kind == Kind::Pair { 2 } else { 1 };
        let groups = |each: Vec<f64>| -> Vec<f64> {
            let sums = each.chunks(together).flat_map(|group| group.iter().map(|_| group.iter().sum::<f64>()));
            sums.collect()
        };

        // What comes ahead of a refresh belongs to its first step.
        report(0, start);
        let short = |c: &CiphertextOf<B>| e.set_scale(c, self.layout().scale() / c.bound.max(LEAST_BOUND));
        let shorts = inputs.iter().map(short).collect::<Result<Vec<_>, _>>()?;
        let target = |c: &CiphertextOf<B>| self.layout().user_scale() / c.bound.max(1.0).log2().ceil().exp2();
        let planned = |c: &CiphertextOf<B>| self.planned(1, c.scale, target(c));
        let cases = shorts.iter().map(planned).collect::<Result<Vec<_>, _>>()?;
        let firsts =
            self.run(&shorts.iter().collect::<Vec<_>>(), &cases, kind, &mut |p| after_start(&mut report, 0, p))?;
        let rounded = groups(shorts.iter().map(Ciphertext::error_bound).collect());
        drop(shorts);

        report(1, start);
        let between = inputs.iter().zip(rounded).zip(firsts.iter().zip(&cases)).enumerate();
        let between = between.map(|(i, (input, first))| {
            // What is left of pairs is real.
            let alone = kind == Kind::Pair && i + 1 == inputs.len() && i % 2 == 0;
            self.between(input, first, kind == Kind::Real || alone)
        });
        let between = between.collect::<Result<Vec<_>, _>>()?;
        drop(cases);
        let (lefts, cases, rounded) = between.into_iter().fold((vec![], vec![], vec![]), |mut all, one| {
            all.0.push(one.left);
            all.1.push(one.case);
            all.2.push(one.rounding);
            all
        });
        let seconds =
            self.run(&lefts.iter().collect::<Vec<_>>(), &cases, kind, &mut |p| after_start(&mut report, 1, p))?;
        drop(lefts);
        let kept = groups(ciphertexts.iter().zip(rounded).map(|(c, rounding)| c.error_bound() + rounding).collect());
        let sums = firsts.iter().zip(&seconds).zip(inputs.iter().zip(kept));
        sums.map(|((first, second), (input, kept))| {
            let sum = e.add(first, second)?;
            let noise = second.noise + (kept + DOUBLES * input.bound) * sum.scale;
            Ok(Ciphertext::new(sum.inner, State { scale: sum.scale, bound: input.bound, noise }))
        })
        .collect()
    }

    /// A ciphertext at the level of an input, as if its message were what it decrypts to.
    fn lowered(&self, c: &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        let (operation, needed) = ("bootstrapping", self.layout().input_level());
        self.evaluator.inner.check_two_parts(operation, c.inner())?;
        if c.level() < needed {
            return Err(RlweError::OutOfLevels { operation, needed, level: c.level() }.into());
        }
        let most = self.params().largest_product();
        if c.bound * c.scale > most {
            let (value, scale, modulus) = (c.bound.log2(), c.scale.log2(), self.layout().user_scale().log2());
            return Err(HeError::TooLarge { operation, value, scale, modulus, level: c.level() });
        }
        let low = self.evaluator.drop_to(c, needed)?;
        Ok(Ciphertext::new(low.inner, State { noise: 0.0, ..c.state() }))
    }

    /// Minus the error of a first result, as large as a refresh takes it; `rounded` bounds what the first one's input lost. Of
    /// real slots the input's imaginary parts are dropped: they may be a million times larger.
    fn between(
        &self,
        (input, rounded): (&CiphertextOf<B>, f64),
        (first, case): (&CiphertextOf<B>, &Case<B::Row>),
        real: bool,
    ) -> Result<Between<B>, HeError> {
        let (e, layout) = (&self.evaluator, self.layout());
        let reduction = (case.program.plan(), case.program.outputs()[0]);
        let bound = self.bounds.parts(layout, reduction, layout.unit(case.scale)) + rounded;
        // The sum with the conjugate is twice the real part.
        let twice = if real { 2.0 } else { 1.0 };
        let factor = layout.error_factor(bound, twice * case.target, input.scale)?;
        let low = e.refine(&e.drop_to(first, layout.levels.input)?, factor)?;
        let long = e.set_scale(input, low.scale)?;
        let left = Ciphertext::new(e.sub(&long, &low)?.inner, State { bound, ..long.state() });
        let left = match real {
            true => e.sum_of_automorphisms(&left, &[1, e.params().conjugation_element()])?,
            false => left,
        };
        let scale = twice * left.scale;
        let rounding = left.noise / scale;
        let case = self.planned(1, scale, case.target)?;
        Ok(Between { left: Ciphertext::new(left.inner, State { scale, bound, noise: 0.0 }), case, rounding })
    }
}
