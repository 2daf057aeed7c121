//! Applying linear maps.

use super::LinearMap;
use crate::ckks::spread::{self, Part, Spread};
use crate::ckks::{Ciphertext, CiphertextOf, Evaluator, State};
use crate::error::HeError;
use sudare_rlwe::{Backend, MapEnd, RlweError, Shaped};

impl<B: Backend> Evaluator<B> {
    /// Applies a linear map and rescales: double hoisting.
    ///
    /// # Errors
    /// As [`Evaluator::rotate`] and [`Evaluator::rescale`].
    pub fn linear_map(&self, a: &CiphertextOf<B>, map: &LinearMap<B::Row>) -> Result<CiphertextOf<B>, HeError> {
        let none = RlweError::Internal { what: "a linear map has no result" };
        Ok(self.linear_maps(a, &[map])?.pop().ok_or(none)?)
    }

    /// Applies several linear maps to one ciphertext, with one decomposition for all of them.
    ///
    /// # Errors
    /// As [`Evaluator::linear_map`].
    pub fn linear_maps(
        &self,
        a: &CiphertextOf<B>,
        maps: &[&LinearMap<B::Row>],
    ) -> Result<Vec<CiphertextOf<B>>, HeError> {
        self.check(a)?;
        let states = maps.iter().map(|map| self.mapped(a, *map)).collect::<Result<Vec<_>, _>>()?;
        let steps: Vec<_> = maps.iter().map(|map| (&map.steps, map.rows.as_slice())).collect();
        let made = self.inner.linear_maps(&[(&a.inner, MapEnd::Value)], &steps)?.into_iter().flatten();
        let made = made.zip(states).zip(maps);
        let of = |((inner, state), map): ((B::Ciphertext, State), &&LinearMap<B::Row>)| {
            let spread = self.rescaled_spread(map.spread(a), a.level(), 2);
            Ciphertext::new(inner, self.rescaled(state, a.level(), 2)).with_spread(spread)
        };
        Ok(made.map(of).collect())
    }

    /// The state before the last division.
    fn mapped<R>(&self, a: &CiphertextOf<B>, map: &LinearMap<R>) -> Result<State, HeError> {
        let (operation, params) = ("linear map", self.params());
        params.require("the linear map", &map.params)?;
        a.inner.lower(operation)?;
        let level = a.level();
        if level > map.level {
            return Err(RlweError::NoSuchLevel { operation, wanted: level, highest: map.level }.into());
        }
        let state = State {
            scale: a.scale * map.plan.scale,
            bound: a.bound * map.plan.row_sum,
            noise: map.plan.noise(params.sketch(), a.state(), level),
        };
        state.check_fits(operation, params, level)?;
        Ok(state)
    }
}

impl<R> LinearMap<R> {
    /// Expected errors before the last division, of a map whose diagonals are masks.
    fn spread<C: Shaped>(&self, a: &Ciphertext<C>) -> Spread {
        let (plan, switching) = (&self.plan, spread::switching(&self.params, a.level()));
        let turn = switching + spread::division(&self.params, 2);
        let rounding: f64 = plan.all_diagonals().map(|d| d.rounding).sum();
        let own = (a.spread.size * a.scale).powi(2) * rounding + plan.late_turns() as f64 * turn;
        let part = |part: Part| {
            let held = (part.held + switching) * plan.scale * plan.scale + own;
            Part { held, empty: own, common: part.common * plan.scale }
        };
        Spread {
            size: a.spread.size * plan.row_sum,
            real: part(a.spread.real),
            imaginary: part(a.spread.imaginary),
            alone: a.spread.alone,
        }
    }
}

impl<R> LinearMap<R> {
    /// The map of ciphertexts without what is said of their messages, each with its end: each key and diagonal is read once for
    /// all.
    pub(crate) fn apply<B: Backend<Row = R>>(
        &self,
        evaluator: &Evaluator<B>,
        sources: &[(&B::Ciphertext, MapEnd)],
    ) -> Result<Vec<B::Ciphertext>, HeError> {
        let none = RlweError::Internal { what: "a linear map has no result" };
        Ok(evaluator.inner.linear_maps(sources, &[(&self.steps, self.rows.as_slice())])?.pop().ok_or(none)?)
    }
}
