//! Who computes: holds a compiled forest and evaluation keys, and nothing secret.

use super::bounds::placed;
use super::circuit::Encoded;
use super::client::request_at;
use super::model::Model;
use super::plan::Plan;
use crate::error::ModelError;
use crate::keys::Keys;
use crate::message::{Answer, Request};
use crate::server::SCALES;
use crate::shared::Shared;
use num_complex::Complex64;
use std::f64::consts::SQRT_2;
use std::sync::Arc;
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::Bootstrapper;
use sudare_he::circuits::linear_map::LinearMap;
use sudare_he::ckks::{self, Ciphertext, EncodeAt, Encoder};
use sudare_he::discrete::{Discrete, Evaluator, Form};
use sudare_rlwe::RlweError;

/// Runs a forest on the ciphertexts of one key.
pub struct Server {
    model: Model,
    /// With the keys of the plan.
    ckks: ckks::Evaluator,
    /// With those of tables as well.
    discrete: Evaluator,
    masks: Vec<LinearMap>,
    /// Bound on ranks' errors where the first table begins.
    bound: f64,
    /// Encoded parts, where they are kept.
    parts: Option<Vec<Arc<Encoded>>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({:?}, stored: {})", self.model, self.parts.is_some())
    }
}

impl Server {
    /// A server with a client's keys. With `stored`, trees are encoded once and kept, which takes [`prepared`](super::plan::Figures::prepared)
    /// bytes; else they are encoded for each ciphertext, part by part.
    ///
    /// # Errors
    /// [`ModelError::Mixed`], [`ModelError::He`] for keys of other parameters or another owner, or a missing one.
    pub fn new(model: &Model, keys: Keys, stored: bool) -> Result<Self, ModelError> {
        let plan = model.plan();
        let Keys { eval, bootstrap: Some(bootstrap) } = keys else {
            return Err(ModelError::Mixed { what: "the set of keys" });
        };
        if bootstrap.id() != eval.id() || bootstrap.params().hash() != plan.set().hash() {
            return Err(ModelError::Mixed { what: "the set of keys" });
        }
        let ckks = ckks::Evaluator::new(plan.params(), eval.clone())?;
        for (element, level) in &plan.figures().galois {
            ckks.check_keys(&[*element], *level)?;
        }
        let discrete = Evaluator::new(Bootstrapper::new(bootstrap, None)?)?.with_keys(eval)?;
        let program = &model.0.program;
        let masks = program.masks(&ckks)?;
        let bound = placed(program, &model.0.tables)?;
        let mut server = Self { model: model.clone(), ckks, discrete, masks, bound, parts: None };
        if stored {
            let parts = (0..program.parts.len()).map(|p| server.part(p)).collect::<Result<_, _>>()?;
            server.parts = Some(parts);
        }
        Ok(server)
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        self.model.plan()
    }

    fn part(&self, p: usize) -> Result<Arc<Encoded>, ModelError> {
        match self.parts.as_ref().and_then(|parts| parts.get(p)) {
            Some(part) => Ok(part.clone()),
            None => {
                let program = &self.model.0.program;
                Ok(Arc::new(program.encoded(&self.ckks, &program.parts[p])?))
            }
        }
    }

    /// The scores of encrypted rows. `progress` gets the ciphertexts that are done and all of them.
    ///
    /// # Errors
    /// [`ModelError::Mixed`] for a request of another plan; [`ModelError::He`] for one under another key.
    pub fn run(&self, request: &Request, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Answer, ModelError> {
        let (plan, all) = (self.plan(), request.ciphertexts());
        let foreign = || Err(ModelError::Mixed { what: "the request" });
        if !request.is_of(plan) {
            return foreign();
        }
        let at = request_at(plan)?;
        for c in all {
            self.ckks.check(c)?;
            let near = (c.scale() / at.scale - 1.0).abs() < SCALES && c.bound() <= at.max_abs * (1.0 + SCALES);
            if (c.level(), c.parts().len()) != (at.level, 2) || !near {
                return foreign();
            }
        }
        let mut out = Vec::new();
        for (done, c) in all.iter().enumerate() {
            out.extend(self.scores(c)?);
            progress(done + 1, all.len());
        }
        Answer::new(plan, request.examples(), out)
    }

    /// The scores of the rows of a ciphertext, group by group.
    fn scores(&self, ranks: &Ciphertext) -> Result<Vec<Ciphertext>, ModelError> {
        let (program, tables) = (&self.model.0.program, &self.model.0.tables);
        let mut parts = Vec::with_capacity(program.parts.len());
        let mut ranked = Vec::with_capacity(program.parts.len());
        for (p, part) in program.parts.iter().enumerate() {
            let encoded = self.part(p)?;
            let shifted = self.ckks.linear_map(ranks, &encoded.picking)?;
            let shifted = self.add(&shifted, part.added())?;
            let modulus = tables.step.modulus();
            ranked.push(Discrete::from_parts(self.plan().set(), vec![shifted], modulus, tables.range(), self.bound)?);
            // What is not kept is encoded again after the tables.
            parts.push(Some(encoded).filter(|_| self.parts.is_some()));
        }
        let (step, reached) = (std::slice::from_ref(&tables.step), std::slice::from_ref(&tables.reached));
        let steps = self.discrete.tables_many(&ranked.iter().collect::<Vec<_>>(), step, Form::Packed)?;
        let mut sums = Vec::with_capacity(steps.len());
        for sum in steps.into_iter().flatten() {
            let more = |sum: Discrete, step: i64| self.discrete.add(&sum, &self.discrete.rotate(&sum, step)?);
            sums.push(program.steps().into_iter().try_fold(sum, more)?);
        }
        let found = self.discrete.tables_many(&sums.iter().collect::<Vec<_>>(), reached, Form::Packed)?;
        let mut scores = Vec::with_capacity(parts.len());
        for (p, (indicators, encoded)) in found.iter().flatten().zip(parts).enumerate() {
            let encoded = encoded.map_or_else(|| self.part(p), Ok)?;
            let missing = HeError::from(RlweError::Internal { what: "a table without a ciphertext" });
            scores.push(program.summed(&self.ckks, indicators.parts().first().ok_or(missing)?, &encoded)?);
        }
        let masked = program.masked(&self.ckks, &scores, &self.masks)?;
        masked.into_iter().enumerate().map(|(group, c)| self.add(&c, &self.first_scores(group))).collect()
    }

    /// What scores of a group begin with, by slots.
    fn first_scores(&self, group: usize) -> Vec<f64> {
        let (program, base) = (&self.model.0.program, &self.model.0.base);
        let places = &program.places;
        let mut out = vec![0.0; places.slots()];
        places.of_group(group, program.outputs).for_each(|o| {
            let first = places.score(o, 0);
            out[first..first + places.rows].fill(base[o]);
        });
        out
    }

    /// The same numbers added to real and to imaginary parts.
    fn add(&self, c: &Ciphertext, values: &[f64]) -> Result<Ciphertext, ModelError> {
        let both: Vec<Complex64> = values.iter().map(|x| Complex64::new(*x, *x)).collect();
        let largest = values.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
        let at = EncodeAt { level: c.level(), scale: c.scale(), max_abs: SQRT_2 * largest };
        Ok(self.ckks.add_plain(c, &Encoder::new(self.ckks.params()).encode_complex(&both, at)?)?)
    }
}
