//! Who computes: holds a compiled model and evaluation keys, and nothing secret.

use crate::circuit::Step;
use crate::error::ModelError;
use crate::keys::Keys;
use crate::message::{Answer, Request};
use crate::model::Model;
use crate::plan::Plan;
use std::sync::Arc;
use sudare_he::circuits::bootstrapping::Bootstrapper;
use sudare_he::ckks::{Ciphertext, Evaluator};
use sudare_ring::ops::PeriodicPoly;
use sudare_ring::threads;
use sudare_rlwe::Counters;
use sudare_rlwe::RlweError;

/// Relative difference of two scales that come from one text.
pub(crate) const SCALES: f64 = 1e-12;

/// Runs a model on the ciphertexts of one key.
pub struct Server {
    model: Model,
    evaluator: Evaluator,
    bootstrapper: Option<Bootstrapper>,
    /// Encoded weights, where they are kept.
    steps: Option<Vec<Arc<Step<PeriodicPoly>>>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({:?}, stored: {})", self.model, self.steps.is_some())
    }
}

impl Server {
    /// A server with a client's keys. With `stored`, weights are encoded once and kept, which takes [`prepared`](crate::plan::Figures::prepared)
    /// bytes; else they are encoded for each request, layer by layer.
    ///
    /// # Errors
    /// [`ModelError::He`] for keys of other parameters, or a missing one.
    pub fn new(model: &Model, keys: Keys, stored: bool) -> Result<Self, ModelError> {
        let plan = model.plan();
        let Keys { eval, bootstrap } = keys;
        let of_one = bootstrap.as_ref().is_none_or(|keys| keys.id() == eval.id());
        if plan.refresh().is_some() != bootstrap.is_some() || !of_one {
            return Err(ModelError::Mixed { what: "the set of keys" });
        }
        let evaluator = Evaluator::new(plan.params(), eval)?;
        for (element, level) in &plan.figures().galois {
            evaluator.check_keys(&[*element], *level)?;
        }
        let relin = evaluator.keys().relin_level();
        if plan.figures().relin.is_some_and(|needed| relin.is_none_or(|level| level < needed)) {
            return Err(RlweError::MissingRelinKey.into());
        }
        let bootstrapper = bootstrap.map(|keys| Bootstrapper::new(keys, None)).transpose()?;
        let mut server = Self { model: model.clone(), evaluator, bootstrapper, steps: None };
        if stored {
            let layers = model.0.program.layers();
            let steps = (0..layers).map(|k| server.step(k)).collect::<Result<_, _>>()?;
            server.steps = Some(steps);
        }
        Ok(server)
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        self.model.plan()
    }

    /// Operations done so far.
    pub fn counters(&self) -> Counters {
        self.evaluator.counters()
    }

    /// New levels for a ciphertext.
    fn refresh(&self, c: &Ciphertext) -> Result<Ciphertext, ModelError> {
        match &self.bootstrapper {
            Some(bootstrapper) => Ok(bootstrapper.refresh_real(c)?),
            None => Err(RlweError::Internal { what: "a refresh without a bootstrapping set" }.into()),
        }
    }

    fn step(&self, k: usize) -> Result<Arc<Step<PeriodicPoly>>, ModelError> {
        match self.steps.as_ref().and_then(|steps| steps.get(k)) {
            Some(step) => Ok(step.clone()),
            None => Ok(Arc::new(self.model.0.program.step(&self.evaluator, k)?)),
        }
    }

    /// The model's answers. `progress` gets the ciphertexts that are done and all of them; where each number of an example has a ciphertext of
    /// its own, in place of ciphertexts the lots of examples that fill them.
    ///
    /// # Errors
    /// [`ModelError::Mixed`] for a request of another plan; [`ModelError::He`] for one under another key.
    pub fn run(&self, request: &Request, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Answer, ModelError> {
        let (plan, inner) = (self.plan(), &self.model.0);
        let foreign = || Err(ModelError::Mixed { what: "the request" });
        if !request.is_of(plan) {
            return foreign();
        }
        let bound = plan.figures().input_bound;
        let (level, scale, all) = (plan.figures().input_level, plan.params().scale() / bound, request.ciphertexts());
        for c in all {
            self.evaluator.check(c)?;
            let near = (c.scale() / scale - 1.0).abs() < SCALES && c.bound() <= bound * (1.0 + SCALES);
            if (c.level(), c.parts().len()) != (level, 2) || !near {
                return foreign();
            }
        }
        let refresh = |c: &Ciphertext| self.refresh(c);
        let mut out: Vec<Ciphertext> = Vec::with_capacity(all.len());
        if inner.program.apart {
            let lots = all.chunks(plan.inputs());
            for (done, lot) in lots.enumerate() {
                out.extend(inner.program.run_apart(&self.evaluator, lot, |k| self.step(k))?);
                progress(done + 1, all.len() / plan.inputs());
            }
            return Answer::new(plan, request.examples(), out);
        }
        // As many side by side as there are threads, each with its own.
        for lot in all.chunks(threads::count().max(1)) {
            let one = |i: usize| inner.program.run((&self.evaluator, &refresh), lot[i].clone(), |k| self.step(k));
            let done = match lot {
                [_] => vec![one(0)],
                _ => threads::map_alone(lot.len(), one),
            };
            out.extend(done.into_iter().collect::<Result<Vec<_>, _>>()?);
            progress(out.len(), all.len());
        }
        Answer::new(plan, request.examples(), out)
    }
}
