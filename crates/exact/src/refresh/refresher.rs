//! The refresher: what a server prepares once, and the steps of a refresh.

use super::keys::RefreshKeys;
use super::layout::MapStep;
use super::params::RefreshParams;
use crate::error::ExactError;
use crate::{Ciphertext, Evaluator, IntegerParams, Plaintext, Scheme, State};
use std::sync::Arc;
use sudare_ring::interrupt::check;
use sudare_ring::ops::PeriodicPoly;
use sudare_ring::{Eval, Poly};
use sudare_rlwe::keys::KeySource;
use sudare_rlwe::{self as rlwe, Counters, Quotient, RlweError};

/// A step of a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Slots to coefficients, modulo t.
    SlotsToCoefficients,
    /// To the sparse secret and to modulus t², and back under the owner's key.
    Digit,
    /// Coefficients to slots, modulo t².
    CoefficientsToSlots,
    /// Removal of the noise digit.
    Remove,
}

impl Step {
    /// All steps in order.
    pub const ALL: [Self; 4] = [Self::SlotsToCoefficients, Self::Digit, Self::CoefficientsToSlots, Self::Remove];
}

/// The rows of a map's diagonals, by giant step.
type Rows = Vec<Vec<PeriodicPoly>>;

/// Keys and precomputation of a server that refreshes BFV and BGV ciphertexts.
#[derive(Debug)]
pub struct Refresher {
    params: RefreshParams,
    own: RefreshKeys,
    evaluator: rlwe::Evaluator,
    pub(super) stc: Vec<Rows>,
    cts: Vec<Rows>,
}

impl Refresher {
    /// Prepares diagonals, if keys and they fit in `memory` bytes (`None`: no limit).
    ///
    /// # Errors
    /// `RlweError::Memory` with both figures, before anything is prepared.
    pub fn new(keys: RefreshKeys, memory: Option<u64>) -> Result<Self, ExactError> {
        let params = keys.params().clone();
        let needed = params.key_bytes() + params.diagonal_bytes();
        if let Some(limit) = memory.filter(|limit| needed > *limit) {
            let what = format!("the keys and diagonals of a refresh at N = {}", params.params().degree());
            return Err(ExactError::Rlwe(RlweError::Memory { what, needed, limit }));
        }
        let prepare = |steps: &[MapStep]| -> Vec<Rows> {
            steps.iter().map(|step| step.map.prepare(params.params(), step.level)).collect()
        };
        let (stc, cts) = (prepare(&params.layout().stc), prepare(&params.layout().cts));
        Ok(Self {
            evaluator: rlwe::Evaluator::new(keys.keys.clone() as Arc<dyn KeySource>),
            own: keys,
            stc,
            cts,
            params,
        })
    }

    /// The set.
    pub fn params(&self) -> &RefreshParams {
        &self.params
    }

    /// What it was made of, as it travels.
    pub fn own_keys(&self) -> &RefreshKeys {
        &self.own
    }

    /// The keys of rotations and relinearisation, at every level of a refreshed ciphertext.
    pub fn keys(&self) -> &Arc<dyn KeySource> {
        self.evaluator.keys()
    }

    /// An evaluator of a scheme with these keys.
    ///
    /// # Errors
    /// None for a refresher that was made.
    pub fn evaluator<S: Scheme>(&self) -> Result<Evaluator<S>, ExactError> {
        Evaluator::new(self.params.params(), self.keys().clone())
    }

    /// Operations done since the start or the last reset.
    pub fn counters(&self) -> Counters {
        self.evaluator.counters()
    }

    /// Sets all counters to zero.
    pub fn reset_counters(&self) {
        self.evaluator.reset_counters();
    }

    /// Bytes of keys and diagonals.
    pub fn bytes(&self) -> u64 {
        let rows = |all: &[Rows]| all.iter().flatten().flatten().map(PeriodicPoly::bytes).sum::<usize>();
        self.params.key_bytes() + (rows(&self.stc) + rows(&self.cts)) as u64
    }

    /// The same slots with the noise and level of [`RefreshParams::output`], exactly.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongPlainModulus`, `RlweError::WrongKey`, `RlweError::Degree`;
    /// `RlweError::OutOfLevels` below the input level, and [`ExactError::TooNoisy`] for a noise bound over the largest there,
    /// with nothing done; [`ExactError::NotUniform`] for a mask that no honest ciphertext has.
    pub fn refresh<S: Scheme>(&self, ciphertext: &Ciphertext<S>) -> Result<Ciphertext<S>, ExactError> {
        self.refresh_with(ciphertext, &mut |_| {})
    }

    /// [`Refresher::refresh`], and says which step begins.
    ///
    /// # Errors
    /// As there.
    pub fn refresh_with<S: Scheme>(
        &self,
        ciphertext: &Ciphertext<S>,
        progress: &mut dyn FnMut(Step),
    ) -> Result<Ciphertext<S>, ExactError> {
        let low = self.taken(ciphertext)?;
        let mut begin = |step| {
            check();
            progress(step);
        };
        let (params, layout) = (self.params.params(), self.params.layout());
        begin(Step::SlotsToCoefficients);
        let lowest = self.mapped(params, &layout.stc, &self.stc, low.inner().clone())?;
        begin(Step::Digit);
        let digits = self.digits(&lowest)?;
        begin(Step::CoefficientsToSlots);
        let square = self.params.square();
        let z = self.mapped(square, &layout.cts, &self.cts, digits)?;
        begin(Step::Remove);
        let (level, noise) = layout.removal.result();
        let factor = S::fresh_factor(params, level);
        let inner = layout.removal.run(
            &self.evaluator,
            square,
            (z, self.factor_of_z()?),
            (self.wanted(&low, factor)?, layout.turn),
        )?;
        Ok(Ciphertext::new(params, inner, State { factor, noise }))
    }

    /// The ciphertext at the level of StC, if it is one that a refresh takes.
    fn taken<S: Scheme>(&self, a: &Ciphertext<S>) -> Result<Ciphertext<S>, ExactError> {
        let (operation, evaluator) = ("a refresh", self.evaluator::<S>()?);
        evaluator.check_two_parts(operation, a)?;
        let ((needed, largest), level) = (self.params.input(), a.level());
        if level < needed {
            return Err(RlweError::OutOfLevels { operation, needed, level }.into());
        }
        let noise = self.params.params().noise().dropped(a.noise(), 2, (level, needed), 1.0);
        if noise > largest {
            return Err(ExactError::TooNoisy { operation, noise: noise.log2(), limit: largest.log2(), level: needed });
        }
        let (t, params) = (self.params.params().modulus(), self.params.params());
        let plain = t.mul(a.factor(), t.inverse(params.dropped_mod_t(level, needed))?);
        evaluator.drop_toward(a, needed, plain)
    }

    /// The maps of a transform.
    pub(super) fn mapped(
        &self,
        params: &IntegerParams,
        steps: &[MapStep],
        rows: &[Rows],
        a: rlwe::Ciphertext,
    ) -> Result<rlwe::Ciphertext, ExactError> {
        let one = |a: rlwe::Ciphertext, (step, rows): (&MapStep, &Rows)| {
            check();
            step.map.apply(&self.evaluator, params, rows, &a, step.to)
        };
        steps.iter().zip(rows).try_fold(a, one)
    }

    /// t·x + v modulo t² under the dense secret, of parts modulo q_0: both parts switched to the sparse secret and to
    /// modulus t², c_1 times the secret's encryption.
    pub(super) fn digits(&self, a: &rlwe::Ciphertext) -> Result<rlwe::Ciphertext, ExactError> {
        let (gate, square, layout) = (self.params.gate(), self.params.square(), self.params.layout());
        let (base, top, t) = (gate.max_level(), square.max_level(), square.modulus());
        let [b, a] = self.own.to_sparse.switched(a.both());
        // ⌊t²·c/q_0⌉ is −[t²·c]/q_0 modulo t².
        let over = t.neg(t.inverse(square.q_mod_t(base))?);
        let switched = |c: Poly<Eval>| -> Result<Vec<u64>, ExactError> {
            let mut c = c.into_coeff();
            c.mul_scalars(square.t_mod_q(base));
            Ok(c.modulo(t, over)?)
        };
        let (b, a) = (switched(b)?, switched(a)?);
        let plain = |c: Vec<u64>| Plaintext::from_coefficients(square, c);
        let mut sum: Option<rlwe::Ciphertext> = None;
        for (k, secret) in self.own.sparse.iter().enumerate() {
            let mask = plain(strided(&a, k, layout.shares))?.factor(top)?;
            if mask.size() > layout.mask {
                return Err(ExactError::NotUniform { found: mask.size().log2(), limit: layout.mask.log2() });
            }
            let term = self.evaluator.mul_poly(secret.inner(), &mask.poly)?;
            match &mut sum {
                Some(sum) => self.evaluator.add_assign(sum, &term)?,
                None => sum = Some(term),
            }
        }
        let sum = sum.ok_or(RlweError::Internal { what: "a sparse secret without a share" })?;
        let b = plain(strided(&b, 0, layout.shares))?.addend(top, 1).into_eval();
        let sum = self.evaluator.add_poly(&sum, &b)?;
        if layout.masked == top {
            return Ok(sum);
        }
        let tables = || square.division(top, layout.masked, false, 1);
        Ok(self.evaluator.divide(&sum, Quotient { to: layout.masked, tables: &tables })?)
    }

    /// The plaintext factor of z: that of the sparse secret's ciphertext, 1, over the primes that were divided by.
    fn factor_of_z(&self) -> Result<u64, ExactError> {
        let (square, layout) = (self.params.square(), self.params.layout());
        Ok(square.modulus().inverse(square.dropped_mod_t(square.max_level(), layout.start()))?)
    }

    /// The plaintext factor modulo t² with which the removal has to end, so that the result's is `factor`: at q_0 a message
    /// with factor g is x = −g/q_0 of it.
    fn wanted<S: Scheme>(&self, low: &Ciphertext<S>, factor: u64) -> Result<u64, ExactError> {
        let (params, base) = (self.params.params(), self.params.gate().max_level());
        let t = params.modulus();
        let g = t.mul(low.factor(), t.inverse(params.dropped_mod_t(low.level(), base))?);
        Ok(t.mul(t.mul(factor, t.neg(params.q_mod_t(base))), t.inverse(g)?))
    }
}

/// The coefficients at `first` and every `step` further, where 0 and multiples of `step` are.
fn strided(c: &[u64], first: usize, step: usize) -> Vec<u64> {
    let mut out = vec![0; c.len()];
    c.iter().skip(first).step_by(step).zip(out.iter_mut().step_by(step)).for_each(|(c, o)| *o = *c);
    out
}
