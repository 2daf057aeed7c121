//! Compiled models: a network, its polynomials and its plan.

use crate::approximate::{self, Activation, Approximation, Label, Ranges, Wanted, compare, divided};
use crate::circuit::{Known, Levels, Step, fits, levels, lowest_prime, widest};
use crate::error::{ModelError, goal};
use crate::network::Network;
use crate::noise::{Errors, Gains};
use crate::plan::{Figures, LayerPlan, Operations, Plan};
use crate::weights;
use std::fmt;
use std::sync::Arc;
use sudare_he::ckks::{CiphertextOf, EncodeAt, Evaluator, Params, ParamsLiteral};
use sudare_ring::random::Seed;
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};
use sudare_rlwe::simulated::Simulated;
use sudare_rlwe::{self as rlwe, Backend};

/// Examples whose labels are looked at with errors added, at most.
const AGREEMENT: usize = 2048;
/// log2 of scales that are tried.
const SCALES: std::ops::RangeInclusive<u32> = 24..=50;
/// Bits of a prime at most.
const WIDEST_PRIME: u32 = 60;
/// Rings that are tried, as log2 of the degree.
const RINGS: std::ops::RangeInclusive<u32> = 12..=17;

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
    /// By how much ranges are wider than those of the examples.
    pub margin: f64,
    /// Examples that come together, as far as a ciphertext has room.
    pub batch: usize,
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
            insecure: None,
        }
    }
}

impl Goal {
    fn check(&self) -> Result<(), ModelError> {
        let good = |x: f64| x.is_finite() && x > 0.0;
        if !good(self.error) || self.approximation.is_some_and(|x| !good(x)) {
            return goal("an error is a number above zero");
        }
        if !(0.0..=1.0).contains(&self.agreement) {
            return goal("agreement is a share, from 0 to 1");
        }
        if !(self.margin.is_finite() && self.margin >= 1.0) {
            return goal("a margin is at least 1");
        }
        if self.degree.is_some_and(|d| !(1..=255).contains(&d)) {
            return goal("degrees go from 1 to 255");
        }
        if self.batch == 0 {
            return goal("a batch has at least one example");
        }
        Ok(())
    }
}

pub(crate) struct Inner {
    pub network: Network,
    pub activations: Vec<Option<Activation>>,
    pub levels: Vec<Levels>,
    pub known: Vec<Known>,
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
    /// Ranges are those of the examples, widened by the margin; functions become polynomials of the least degrees that serve the goal;
    /// parameters are the smallest whose promised error is within it.
    ///
    /// # Errors
    /// [`ModelError::Goal`] for a goal that makes no sense or that nothing satisfies, with what would do; [`ModelError::Shape`],
    /// [`ModelError::NotFinite`] for examples.
    pub fn compile(network: &Network, examples: &[f64], wanted: &Goal) -> Result<Self, ModelError> {
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
        let network = &network.of_scaled_inputs(&factors);
        let examples: Vec<Vec<f64>> = rows.iter().map(|x| divided(x, &factors)).collect();
        let rows: Vec<&[f64]> = examples.iter().map(Vec::as_slice).collect();
        let ranges = Ranges::of(network, &rows, wanted.margin)?;
        let Goal { label, agreement, approximation: difference, degree, .. } = *wanted;
        let activations =
            approximate::choose(network, &ranges, &rows, Wanted { label, agreement, difference, degree })?;
        let given = rows.iter().map(|x| network.evaluate(x)).collect::<Result<Vec<_>, _>>()?;
        let found: Vec<Vec<f64>> = rows.iter().map(|x| approximate::evaluate(network, &activations, x)).collect();
        let near = compare(&found, &given, label);
        let made = Making { network, activations: &activations, ranges: &ranges, wanted, rows: rows.len(), factors };
        let images = made.images()?;
        let gains = Gains::of(network, &activations, &ranges.layers, images);
        let (params, errors) = made.params(&gains, images)?;
        let agreement = agreement_with_errors(&found, &given, label, errors.deviation);
        let levels = levels(network, &activations);
        let known = known(&gains, &errors, &ranges);
        let plan = made.plan((params, images), &gains, (&levels, &known), (&errors, near, agreement))?;
        Ok(Self(Arc::new(Inner { network: network.clone(), activations, levels, known, plan })))
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
        self.0.network.evaluate(&self.scaled(example)?)
    }

    /// The polynomial model's answer, in the clear.
    ///
    /// # Errors
    /// [`ModelError::Shape`].
    pub fn polynomial(&self, example: &[f64]) -> Result<Vec<f64>, ModelError> {
        Ok(approximate::evaluate(&self.0.network, &self.0.activations, &self.scaled(example)?))
    }

    /// An example as it is encrypted.
    fn scaled(&self, example: &[f64]) -> Result<Vec<f64>, ModelError> {
        let (found, expected) = (example.len(), self.0.plan.inputs());
        match found == expected {
            true => Ok(divided(example, &self.0.plan.figures().factors)),
            false => Err(ModelError::Shape { what: "an example", found, expected }),
        }
    }

    /// Plan and weights as bytes: what a server's file has.
    ///
    /// # Errors
    /// [`ModelError::Format`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, ModelError> {
        weights::with_plan(&self.0.plan, &weights::write(&self.0.network, &self.0.activations)?)
    }

    /// A model of its bytes.
    ///
    /// # Errors
    /// [`ModelError::Format`] for bytes that are none, or damaged; [`ModelError::Mixed`] for weights of another plan.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        let (plan, weights) = weights::split(bytes)?;
        let plan = Plan::from_json(plan)?;
        let figures = plan.figures();
        if weights::digest(weights) != figures.weights {
            return Err(ModelError::Mixed { what: "the file of weights" });
        }
        let (network, activations) = weights::read(weights)?;
        let same = network.input == figures.input
            && network.output == figures.output
            && activations.len() == figures.layers.len();
        let levels = levels(&network, &activations);
        let deep = levels.iter().all(|l| l.from <= plan.params().max_level());
        if !(same && deep && fits(&network, figures.images, plan.params())) {
            return Err(ModelError::Mixed { what: "the file of weights" });
        }
        let reaches: Vec<f64> = figures.layers.iter().map(|l| l.reach).collect();
        let ranges = Ranges { input: figures.input_bound, layers: reaches, output: figures.output_bound };
        let gains = Gains::of(&network, &activations, &ranges.layers, figures.images);
        let errors = gains.errors(&network, &activations, (&levels, ranges.input), plan.params())?;
        let known = known(&gains, &errors, &ranges);
        Ok(Self(Arc::new(Inner { network, activations, levels, known, plan })))
    }
}

impl Inner {
    /// A layer's diagonals and constants.
    pub fn step<B: Backend>(&self, e: &Evaluator<B>, k: usize) -> Result<Step<B::Row>, ModelError> {
        let about = (self.levels[k], self.plan.figures().images);
        let sizes = (sizes(&self.known, self.plan.figures().input_bound), self.known[k]);
        Step::new(e, &self.network.layers[k], self.activations[k].as_ref(), about, sizes)
    }
}

/// Sizes of the values that are kept.
fn sizes(known: &[Known], input: f64) -> impl Fn(usize) -> f64 + '_ {
    move |source: usize| source.checked_sub(1).map_or(input, |k| known[k].sizes[1])
}

/// All layers on one ciphertext; `step` gives what each holds.
pub(crate) fn run<B: Backend, S: AsRef<Step<B::Row>>>(
    e: &Evaluator<B>,
    (network, levels, known, images): (&Network, &[Levels], &[Known], usize),
    input: CiphertextOf<B>,
    step: impl Fn(usize) -> Result<S, ModelError>,
) -> Result<CiphertextOf<B>, ModelError> {
    let mut kept = vec![input];
    for (k, layer) in network.layers.iter().enumerate() {
        sudare_ring::interrupt::check();
        let out = step(k)?.as_ref().run(e, (layer, levels[k], images), known[k], &kept)?;
        kept.push(out);
    }
    match kept.pop() {
        Some(out) => Ok(out),
        None => Err(ModelError::Mixed { what: "a network without layers" }),
    }
}

fn known(gains: &Gains, errors: &Errors, ranges: &Ranges) -> Vec<Known> {
    let last = ranges.layers.len() - 1;
    let one = |k: usize| {
        let after = if k == last { errors.promised.max(errors.layers[k][1]) } else { errors.layers[k][1] };
        Known { sizes: [ranges.layers[k], gains.sizes[k].0], errors: [errors.layers[k][0], after] }
    };
    (0..=last).map(one).collect()
}

/// Share of labels that stay the given model's where errors of a deviation are added to the polynomial model's answers.
fn agreement_with_errors(found: &[Vec<f64>], given: &[Vec<f64>], label: Label, deviation: f64) -> f64 {
    if label == Label::Numbers {
        return 1.0;
    }
    let seed = Seed::from_bytes([0; 32]);
    let noisy: Vec<Vec<f64>> = found
        .iter()
        .take(AGREEMENT)
        .enumerate()
        .map(|(i, answer)| {
            let mut stream = seed.stream(i as u64);
            answer.iter().map(|x| x + deviation * normal(&mut || stream.next_u64())).collect()
        })
        .collect();
    compare(&noisy, &given[..noisy.len()], label).same
}

/// A standard normal number by Box and Muller.
fn normal(next: &mut dyn FnMut() -> u64) -> f64 {
    let mut uniform = || ((next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    (-2.0 * uniform().ln()).sqrt() * (2.0 * std::f64::consts::PI * uniform()).cos()
}

/// What parameters and a plan are made of.
struct Making<'m> {
    network: &'m Network,
    activations: &'m [Option<Activation>],
    ranges: &'m Ranges,
    wanted: &'m Goal,
    rows: usize,
    factors: Vec<f64>,
}

impl Making<'_> {
    /// Examples of a ciphertext.
    fn images(&self) -> Result<usize, ModelError> {
        let most = 1usize << (self.wanted.insecure.unwrap_or(*RINGS.end()) - 1);
        let widest = widest(self.network);
        if widest > most {
            return goal(format!("a layer has {widest} numbers, and a ciphertext {most} slots; use smaller layers"));
        }
        // No larger ring for more examples.
        let room = if self.wanted.insecure.is_some() { most } else { 1 << (self.least_ring() - 1) };
        Ok(self.wanted.batch.next_power_of_two().min((room / widest).max(1)))
    }

    /// The least ring that the depth and the widest layer allow, at the lowest scale.
    fn least_ring(&self) -> u32 {
        let widest = widest(self.network).trailing_zeros() + 1;
        let depth = self.depth() as u32;
        let bits = SCALES.start() * (depth + 1);
        let holds = |log_n: &u32| {
            max_log_qp(*log_n, SecretDistribution::Ternary, Security::Bits128).is_some_and(|most| bits < most)
        };
        RINGS.into_iter().find(holds).map_or(*RINGS.end(), |log_n| log_n.max(widest))
    }

    fn depth(&self) -> usize {
        levels(self.network, self.activations).iter().map(|l| l.from).max().into_iter().sum()
    }

    /// The smallest parameters whose error is within the goal.
    fn params(&self, gains: &Gains, images: usize) -> Result<(Params, Errors), ModelError> {
        let levels = levels(self.network, self.activations);
        let mut log_scale = *SCALES.start();
        let mut nearest = f64::INFINITY;
        while SCALES.contains(&log_scale) {
            let Some(params) = self.literal(gains, log_scale, images)? else { break };
            let params = params.build()?;
            let errors = gains.errors(self.network, self.activations, (&levels, self.ranges.input), &params)?;
            if errors.promised <= self.wanted.error {
                return Ok((params, errors));
            }
            nearest = nearest.min(errors.promised);
            // Errors halve with each bit, so that most scales need not be tried.
            log_scale += ((errors.promised / self.wanted.error).log2().floor() as u32).clamp(1, 16);
        }
        let depth = self.depth();
        goal(match nearest.is_finite() {
            true => format!(
                "an error of {:.1e} is not reached: {nearest:.1e} is the nearest in {depth} levels; ask for that, or for lower degrees",
                self.wanted.error
            ),
            false => format!(
                "it takes {depth} levels, which no ring of a degree up to 2^{} holds without a refresh; use lower degrees (degree=) or fewer \
                 layers",
                RINGS.end()
            ),
        })
    }

    /// Parameters of a scale: the least ring, and in it the fewest special primes that leave at most four digits.
    fn literal(&self, gains: &Gains, log_scale: u32, images: usize) -> Result<Option<ParamsLiteral>, ModelError> {
        let sizes: Vec<[f64; 2]> = gains.sizes.iter().zip(&self.ranges.layers).map(|(s, r)| [*r, s.0]).collect();
        let lowest = lowest_prime(self.network, &sizes, self.ranges.input, log_scale);
        if lowest > WIDEST_PRIME {
            return Ok(None);
        }
        let q_bits: Vec<u32> = std::iter::once(lowest).chain(std::iter::repeat_n(log_scale, self.depth())).collect();
        let widest_prime = lowest.max(log_scale + 1).min(WIDEST_PRIME);
        let total: u32 = q_bits.iter().sum();
        let least = (widest(self.network) * images).trailing_zeros() + 1;
        let make = |log_n: u32, k: usize, security: Security| {
            let (p_bits, secret) = (vec![widest_prime; k], SecretDistribution::Ternary);
            let rlwe =
                rlwe::params::ParamsLiteral { log_n, q_bits: q_bits.clone(), p_bits, digit_limbs: k, secret, security };
            ParamsLiteral { rlwe, log_scale }
        };
        if let Some(log_n) = self.wanted.insecure {
            return Ok(Some(make(log_n, q_bits.len().div_ceil(4), Security::Insecure)));
        }
        for log_n in least.max(*RINGS.start())..=*RINGS.end() {
            let most = max_log_qp(log_n, SecretDistribution::Ternary, Security::Bits128).into_iter().sum::<u32>();
            for k in 1..=q_bits.len().div_ceil(2) {
                let few = q_bits.len().div_ceil(k) <= 4;
                if few && total + widest_prime * k as u32 <= most {
                    return Ok(Some(make(log_n, k, Security::Bits128)));
                }
            }
        }
        Ok(None)
    }

    /// Keys and operations by a simulation, and the plan.
    fn plan(
        &self,
        (params, images): (Params, usize),
        gains: &Gains,
        (levels, known): (&[Levels], &[Known]),
        (errors, approximation, agreement): (&Errors, Approximation, f64),
    ) -> Result<Plan, ModelError> {
        let e = Evaluator::with_backend(&params, Simulated::new(&params))?;
        let at = EncodeAt {
            level: params.max_level(),
            scale: params.scale() / self.ranges.input,
            max_abs: self.ranges.input,
        };
        let input = e.encryptions(at, 1)?;
        let step = |k: usize| {
            let layer = &self.network.layers[k];
            Ok(Arc::new(Step::new(
                &e,
                layer,
                self.activations[k].as_ref(),
                (levels[k], images),
                (sizes(known, self.ranges.input), known[k]),
            )?))
        };
        let out = run(&e, (self.network, levels, known, images), input, step)?;
        debug_assert_eq!(out.level(), 0);
        let ledger = e.backend().ledger();
        let layers = self.network.layers.iter().enumerate().map(|(k, layer)| {
            let (diagonals, giants) = gains.counts(k);
            LayerPlan {
                name: layer.name.clone(),
                function: layer.function.name(),
                takes: layer.sources.iter().map(|(source, _)| *source).collect(),
                outputs: layer.bias.len(),
                diagonals,
                giants,
                level: levels[k].from,
                reach: self.ranges.layers[k],
                degree: self.activations[k].as_ref().map_or(1, |a| a.polynomial.degree()),
                error: self.activations[k].as_ref().map_or(0.0, |a| a.error),
            }
        });
        let weights = weights::digest(&weights::write(self.network, self.activations)?);
        let figures = Figures {
            sudare_model: Figures::VERSION,
            params: params.literal().clone(),
            weights,
            input: self.network.input.clone(),
            output: self.network.output.clone(),
            images,
            factors: self.factors.clone(),
            input_bound: self.ranges.input,
            output_bound: self.ranges.output,
            error: errors.promised,
            relin: ledger.relin,
            galois: ledger.galois.into_iter().collect(),
            layers: layers.collect(),
            approximation,
            agreement,
            examples: self.rows,
            margin: self.wanted.margin,
            label: self.wanted.label,
            dropped: self.network.dropped.clone(),
            prepared: ledger.prepared,
            operations: Operations { transforms: ledger.counts.transforms, key_switches: ledger.counters.key_switches },
        };
        Plan::new(figures, params)
    }
}
