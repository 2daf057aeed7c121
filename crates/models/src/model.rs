//! Compiled models: a network, its polynomials and its plan.

use crate::approximate::{self, Activation, Approximation, Label, Ranges, Wanted, compare, divided};
use crate::choice;
use crate::circuit::{Known, Program};
use crate::error::{ModelError, goal};
use crate::layout::{Layout, Order};
use crate::network::Network;
use crate::noise::{Errors, Gains};
use crate::placement::{Levels, Placement};
use crate::plan::Plan;
use crate::weights;
use std::fmt;
use std::sync::Arc;
use sudare_he::circuits::bootstrapping::BootstrapSet;
use sudare_rlwe::work::Prices;

/// What is wanted of a compiled model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Bound on |decrypted − polynomial model|.
    pub error: f64,
    /// What labels are.
    pub label: Label,
    /// Share of the examples that keep their label.
    pub agreement: f64,
    /// Largest difference of polynomial and given model on the examples, if it matters.
    pub approximation: Option<f64>,
    /// Degree of all polynomials, if the caller chooses it.
    pub degree: Option<usize>,
    /// How many times as wide as those of the examples the ranges are: at least 1.
    pub margin: f64,
    /// Examples that come together, as far as a ciphertext has room.
    pub batch: usize,
    /// The bootstrapping set that values are refreshed by; none leaves it open whether and by which.
    pub bootstrap: Option<BootstrapSet>,
    /// log2 of the degree of a ring without security, for tests.
    pub insecure: Option<u32>,
}

impl Default for Goal {
    fn default() -> Self {
        Self {
            error: 1e-2,
            label: Label::Argmax,
            agreement: 0.99,
            approximation: None,
            degree: None,
            margin: 1.5,
            batch: 1,
            bootstrap: None,
            insecure: None,
        }
    }
}

/// Most examples of a batch: sizes of one fit 64 bits by far.
const MAX_BATCH: usize = 1 << 24;

impl Goal {
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        let good = |x: f64| x.is_finite() && x > 0.0;
        if !good(self.error) || self.approximation.is_some_and(|x| !good(x)) {
            return goal("an error has to be a finite number above zero");
        }
        if !(0.0..=1.0).contains(&self.agreement) {
            return goal(format!("agreement is a share from 0 to 1, not {}", self.agreement));
        }
        if !(self.margin.is_finite() && self.margin >= 1.0) {
            return goal(format!("a margin is a finite number of at least 1, not {}", self.margin));
        }
        if self.degree.is_some_and(|d| !(1..=255).contains(&d)) {
            return goal("a degree is 1 to 255");
        }
        if !(1..=MAX_BATCH).contains(&self.batch) {
            return goal(format!("a batch has 1 to 16,777,216 examples, not {}", self.batch));
        }
        Ok(())
    }
}

pub(crate) struct Inner {
    pub program: Program,
    pub plan: Plan,
}

/// A compiled model: what its server computes with. It has the weights; its plan has not.
#[derive(Clone)]
pub struct Model(pub(crate) Arc<Inner>);

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Model({:?})", self.0.plan)
    }
}

impl Model {
    /// Compiles a network for inputs like the examples, row by row.
    ///
    /// Ranges are those of the examples, widened by the margin; functions become polynomials of the least degrees that serve the goal.
    /// Of the ways to compute (parameters with as many levels as it takes, or a bootstrapping set with refreshes in the cheapest places)
    /// it is the one that takes least seconds at `prices`, among those whose promised error is within the goal. Linear layers that follow one
    /// another are composed, unless their product has so many more diagonals that a level more takes less, by seconds times bytes of keys.
    ///
    /// # Errors
    /// [`ModelError::Goal`] for a goal that makes no sense or that nothing satisfies, with what would do; [`ModelError::Shape`],
    /// [`ModelError::NotFinite`] for examples.
    pub fn compile(network: &Network, examples: &[f64], wanted: &Goal, prices: Prices<'_>) -> Result<Self, ModelError> {
        wanted.check()?;
        let inputs = network.inputs();
        if examples.is_empty() || !examples.len().is_multiple_of(inputs) {
            return Err(ModelError::Shape { what: "the examples", found: examples.len(), expected: inputs });
        }
        let rows: Vec<&[f64]> = examples.chunks_exact(inputs).collect();
        if let Some(row) = rows.iter().position(|x| x.iter().any(|x| !x.is_finite())) {
            return Err(ModelError::NotFinite { row });
        }
        let factors = approximate::factors(&rows);
        let network = network.of_scaled_inputs(&factors)?;
        let examples: Vec<Vec<f64>> = rows.iter().map(|x| divided(x, &factors)).collect();
        let rows: Vec<&[f64]> = examples.iter().map(Vec::as_slice).collect();
        let ranges = Ranges::of(&network, &rows, wanted.margin)?;
        let Goal { label, agreement, approximation: difference, degree, .. } = *wanted;
        let chosen = approximate::choose(&network, &ranges, &rows, Wanted { label, agreement, difference, degree })?;
        let given = approximate::each(&rows, |x| network.evaluate(x)).into_iter().collect::<Result<Vec<_>, _>>()?;
        let found = approximate::each(&rows, |x| approximate::evaluate(&network, &chosen, x));
        let near = compare(&found, &given, label);
        let examples = Examples { rows, given, found, near, factors };
        let (program, plan) = choice::made((&network, &chosen), &ranges, (wanted, &examples, prices))?;
        Ok(Self(Arc::new(Inner { program, plan })))
    }

    /// Its plan.
    pub fn plan(&self) -> &Plan {
        &self.0.plan
    }

    /// The given model's answer, in the clear.
    ///
    /// # Errors
    /// [`ModelError::Shape`].
    pub fn clear(&self, example: &[f64]) -> Result<Vec<f64>, ModelError> {
        self.0.program.network.evaluate(&self.scaled(example)?)
    }

    /// The polynomial model's answer, in the clear.
    ///
    /// # Errors
    /// [`ModelError::Shape`].
    pub fn polynomial(&self, example: &[f64]) -> Result<Vec<f64>, ModelError> {
        let Program { network, activations, .. } = &self.0.program;
        Ok(approximate::evaluate(network, activations, &self.scaled(example)?))
    }

    /// An example as it is encrypted.
    fn scaled(&self, example: &[f64]) -> Result<Vec<f64>, ModelError> {
        let (found, expected) = (example.len(), self.0.plan.inputs());
        match found == expected {
            true => Ok(divided(example, &self.0.plan.figures().factors)),
            false => Err(ModelError::Shape { what: "an example", found, expected }),
        }
    }

    /// Whether bytes are those of a network's file, and no forest's.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(weights::MAGIC)
    }

    /// Plan and weights as bytes: what a server's file has.
    ///
    /// # Errors
    /// [`ModelError::Format`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, ModelError> {
        let Program { network, activations, .. } = &self.0.program;
        weights::with_plan(&self.0.plan, &weights::write(network, activations)?)
    }

    /// A model of its bytes.
    ///
    /// # Errors
    /// [`ModelError::Format`] for bytes that are none, or damaged; [`ModelError::Mixed`] for weights of another plan.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        let (plan, weights) = weights::split(bytes)?;
        let plan = Plan::from_json(plan)?;
        let figures = plan.figures();
        let foreign = || Err(ModelError::Mixed { what: "the file of weights" });
        if weights::digest(weights) != figures.weights {
            return foreign();
        }
        let (network, activations) = weights::read(weights)?;
        let same = network.input == figures.input
            && network.output == figures.output
            && activations.len() == figures.layers.len();
        let levels: Vec<_> = figures.layers.iter().map(|l| l.levels()).collect();
        let top = plan.refresh().map(|set| set.levels());
        let top = top.transpose()?.map(|(_, top)| top);
        if !same || !fits(&network, &activations, &levels, (figures.input_level, top)) {
            return foreign();
        }
        let most = plan.params().slots() / figures.images;
        let shapes = std::iter::once((network.input.as_slice(), Order::Plain))
            .chain(network.layers.iter().zip(&figures.layers).map(|(l, p)| (l.shape.as_slice(), p.order)));
        let layout = |(shape, order): (&[usize], Order)| match figures.apart {
            true => Some(Layout::plain(shape.iter().product())),
            false => Layout::new(shape, order, most),
        };
        let Some(layouts) = shapes.map(layout).collect::<Option<Vec<_>>>() else {
            return foreign();
        };
        let reaches: Vec<f64> = figures.layers.iter().map(|l| l.reach).collect();
        let gains = Gains::of(&network, &activations, &reaches);
        let maps = gains.maps(&network, Some(&*layouts).filter(|_| !figures.apart), figures.images);
        let placement = Placement { levels, input: figures.input_level, cost: 0.0 };
        let refresh = plan.refresh().map(|set| Ok::<_, ModelError>(set.predicted_noise(2.0)?.total())).transpose()?;
        let about = (&network, activations.as_slice());
        let errors = gains.errors(about, &maps, (&placement, figures.input_bound), (plan.params(), refresh))?;
        let program = Program {
            known: known(&gains, &errors, &reaches, figures.error),
            levels: placement.levels,
            network: Arc::new(network),
            activations: activations.into(),
            layouts,
            input: figures.input_bound,
            images: figures.images,
            apart: figures.apart,
        };
        Ok(Self(Arc::new(Inner { program, plan })))
    }
}

/// The examples of a calibration, and what models give of them.
pub(crate) struct Examples<'x> {
    pub rows: Vec<&'x [f64]>,
    /// The given model's answers.
    pub given: Vec<Vec<f64>>,
    /// The polynomial model's.
    pub found: Vec<Vec<f64>>,
    pub near: Approximation,
    /// What inputs were divided by.
    pub factors: Vec<f64>,
}

/// Whether a plan's levels are some that a network's layers can run at.
fn fits(
    network: &Network,
    activations: &[Option<Activation>],
    levels: &[Levels],
    (input, top): (usize, Option<usize>),
) -> bool {
    let mut at = vec![input];
    network.layers.iter().zip(activations).zip(levels).all(|((layer, activation), l)| {
        let depth = activation.as_ref().map_or(0, Activation::depth);
        let sum = if l.refreshed[0] { top } else { l.from.checked_sub(1) };
        let sound = layer.sources.iter().all(|(s, _)| at[*s] >= l.from)
            && l.from > 0
            && sum.is_some_and(|sum| sum >= l.start)
            && l.start.checked_sub(depth) == Some(l.to);
        let after = if l.refreshed[1] { top } else { Some(l.to) };
        at.extend(after);
        sound && after.is_some()
    })
}

/// What is known of each layer's values, where an answer's error is at most `promised`.
pub(crate) fn known(gains: &Gains, errors: &Errors, ranges: &[f64], promised: f64) -> Vec<Known> {
    let last = ranges.len() - 1;
    let one = |k: usize| {
        let [before, after] = errors.layers[k];
        let after = if k == last { promised.max(after) } else { after };
        Known { sizes: [ranges[k], gains.sizes[k].0], errors: [before, after] }
    };
    (0..=last).map(one).collect()
}
