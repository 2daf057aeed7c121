//! Which way a model is computed: parameters, layouts, refreshes, by the seconds that they take.

use crate::approximate::{Activation, Label, Ranges, compare};
use crate::circuit::{Known, Program, output_bits, scales};
use crate::error::{ModelError, goal};
use crate::layout::{Layout, Order, period, price};
use crate::model::{Examples, Goal, known};
use crate::network::Network;
use crate::noise::{Errors, Gains, Map, Promise};
use crate::placement::{Levels, Placement, Range, placed};
use crate::plan::{Figures, LayerPlan, Operations, Plan};
use crate::shared::Shared;
use crate::weights;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::{BootstrapLiteral, BootstrapSet, Kind};
use sudare_he::circuits::polynomial::PolynomialCircuit;
use sudare_he::ckks::spread::Spread;
use sudare_he::ckks::{CiphertextOf, EncodeAt, Evaluator, Params, ParamsLiteral, State};
use sudare_ring::RingError;
use sudare_ring::kernel::MIN_DEGREE;
use sudare_ring::random::Seed;
use sudare_rlwe as rlwe;
use sudare_rlwe::RlweError;
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};
use sudare_rlwe::simulated::{Ledger, Simulated};
use sudare_rlwe::work::{Prices, Work};

/// Examples whose labels are looked at with errors added, at most.
const AGREEMENT: usize = 2048;
/// log2 of scales that are tried.
const SCALES: std::ops::RangeInclusive<u32> = 24..=50;
/// Bits of a prime at most.
const WIDEST_PRIME: u32 = 60;
/// Bits by which special primes are larger together than a digit.
const DIGIT_MARGIN: u32 = 4;
/// Rings that are tried, as log2 of the degree.
const RINGS: std::ops::RangeInclusive<u32> = 12..=17;
/// Two permutations of a limb, in passes.
const PERMUTED: f64 = 1.5;
/// Words of a run of one value from which on writing it is taken to cost nothing beside the product.
const RUN: usize = 64;
/// A ciphertext for each number is an option where a batch fills a quarter of the slots.
const EMPTY: usize = 4;
/// A buffer that was freed is used again for up to half of its length ([`sudare_ring::buffer`]).
pub(crate) const RECYCLED: u64 = 2;
/// Words of tables for each coefficient of a limb: measured.
const TABLE_WORDS: usize = 18;
/// A transform of complex numbers with what makes them of weights, in transforms of a limb.
const EMBEDDING: f64 = 8.0;
/// Passes over a limb before and after its transform, when a diagonal is encoded.
const CONVERSIONS: f64 = 2.0;

/// What a network's model is made for: the goal, examples, and prices.
type Aim<'m> = (&'m Goal, &'m Examples<'m>, Prices<'m>);

/// What a server runs, and its plan: of a network whose linear parts are composed, but for those that are cheaper apart.
pub(crate) fn made(
    (network, activations): (&Network, &[Option<Activation>]),
    ranges: &Ranges,
    (wanted, examples, prices): Aim<'_>,
) -> Result<(Program, Plan), ModelError> {
    let made = |kept: &[usize]| {
        let (composed, numbers) = network.composed(kept)?;
        let activations = numbers.iter().map(|k| activations[*k].clone()).collect();
        let ranges = Ranges { layers: numbers.iter().map(|k| ranges.layers[*k]).collect(), ..ranges.clone() };
        Making { network: Arc::new(composed), activations, ranges, wanted, examples, prices }.made()
    };
    // Whether fewer baby steps are gained; a product that is too large has none.
    let parts = network.parts();
    let steps = |kept: &[usize]| network.composed(kept).ok().and_then(|(network, _)| steps_of(&network));
    let whole = if parts.is_empty() { None } else { steps(&[]) };
    let fewer = |part: usize| steps(&[part]).is_some_and(|steps| whole.is_none_or(|whole| steps < whole));
    let worth: Vec<usize> = parts.iter().copied().filter(|part| fewer(*part)).collect();
    let cost = |plan: &Plan| {
        let figures = plan.figures();
        let encoding = if plan.stores() { 0.0 } else { figures.encoding };
        let seconds = (figures.seconds + encoding) * wanted.batch.div_ceil(figures.images) as f64;
        seconds * (1.0 + plan.key_bytes() as f64)
    };
    let (mut best, mut kept) = (made(&[]), Vec::new());
    for part in worth {
        let tried = [kept.as_slice(), &[part]].concat();
        let found = made(&tried);
        let nearer = match (&found, &best) {
            (Ok((_, found)), Ok((_, best))) => cost(found) < cost(best),
            (found, _) => found.is_ok(),
        };
        if nearer {
            (best, kept) = (found, tried);
        }
    }
    // What is too large as one is perhaps not in parts.
    if best.is_err() && !parts.is_empty() {
        best = made(&parts).or(best);
    }
    best
}

/// What parameters and a plan are made of.
struct Making<'m> {
    network: Arc<Network>,
    activations: Arc<[Option<Activation>]>,
    ranges: Ranges,
    wanted: &'m Goal,
    examples: &'m Examples<'m>,
    prices: Prices<'m>,
}

/// A way to compute a model.
struct Way {
    set: Option<(BootstrapSet, BootstrapLiteral)>,
    params: Params,
    layouts: Vec<Layout>,
    orders: Vec<Order>,
    images: usize,
    maps: Vec<Vec<Map>>,
    placement: Placement,
    errors: Errors,
    apart: bool,
}

impl Way {
    /// Seconds for as many examples as come together.
    fn seconds(&self, batch: usize) -> f64 {
        self.placement.cost * batch.div_ceil(self.images) as f64
    }
}

impl<'m> Making<'m> {
    /// What a server runs, and its plan.
    fn made(&self) -> Result<(Program, Plan), ModelError> {
        let (network, error) = (&*self.network, self.wanted.error);
        let mut gains = Gains::of(network, &self.activations, &self.ranges.layers);
        let mut nearest = f64::INFINITY;
        // A promise for all inputs, or else for those like the examples.
        for looked in [false, true] {
            if looked {
                gains.look_at(network, &self.activations, &self.examples.rows);
            }
            let mut ways = Vec::new();
            if self.wanted.bootstrap.is_none() {
                ways.extend(self.leveled(&gains, &mut nearest)?);
                ways.extend(self.apart(&gains, &mut nearest)?);
            }
            for set in BootstrapSet::ALL.into_iter().filter(|set| self.wanted.bootstrap.is_none_or(|own| own == *set)) {
                ways.extend(self.refreshed(set, &gains)?);
            }
            nearest = ways.iter().map(|way| way.errors.nearest()).fold(nearest, f64::min);
            ways.retain(|way| way.errors.within(error).is_some());
            let batch = self.wanted.batch;
            let best = ways.into_iter().min_by(|a, b| a.seconds(batch).total_cmp(&b.seconds(batch)));
            if let Some((promise, way)) = best.and_then(|way| Some((way.errors.within(error)?, way))) {
                return self.plan(way, promise, &gains);
            }
        }
        let depth = self.depths().iter().map(|depth| depth + 1).sum::<usize>();
        goal(match nearest.is_finite() {
            true => format!(
                "an error of {error:.1e} is not reached, and {nearest:.1e} is the least that is; ask for that, or for \
                 lower degrees"
            ),
            false => format!(
                "its layers take {depth} levels, and no ring of a degree up to 2^{} holds them with or without refreshes; use lower degrees \
                 (degree=) or smaller layers",
                self.wanted.insecure.unwrap_or(*RINGS.end())
            ),
        })
    }

    fn about(&self) -> (&Network, &[Option<Activation>]) {
        (&self.network, &self.activations)
    }

    /// Levels of each layer's function.
    fn depths(&self) -> Vec<usize> {
        self.activations.iter().map(|a| a.as_ref().map_or(0, Activation::depth)).collect()
    }

    /// Places that the widest value takes in its own order.
    fn widest(&self) -> usize {
        period(self.network.layers.iter().map(|l| l.bias.len()).fold(self.network.inputs(), usize::max))
    }

    /// Bounds on values after maps and after functions.
    fn sizes(&self, gains: &Gains) -> Vec<[f64; 2]> {
        gains.sizes.iter().zip(&self.ranges.layers).map(|(s, r)| [*r, s.0]).collect()
    }

    /// Seconds of a layer at some levels; infinity where its polynomial cannot be computed at them.
    fn price(&self, params: &Params, maps: &[Map], (k, levels): (usize, Levels), sizes: [f64; 2]) -> f64 {
        let (literal, level) = (&params.literal().rlwe, levels.from);
        let map = |m: &Map| {
            let (babies, giants, folds) = (m.babies as f64, m.giants as f64, f64::from(m.copies.trailing_zeros()));
            Work::decompose(literal, level)
                + Work::inner_product(literal, level) * babies
                + Work::key_switch(literal, level) * giants
                + Work::rescale(literal, level)
                + Work::rotation(literal, level.saturating_sub(1)) * folds
        };
        let moved = maps.iter().map(|m| moved(params, level, m)).fold(Work::default(), |a, b| a + b);
        let maps = maps.iter().map(map).fold(Work::default(), |a, b| a + b);
        let relinearised = match &self.activations[k] {
            None => Vec::new(),
            Some(a) if a.square => vec![levels.start],
            Some(a) => {
                let [scale, target] = scales(params, Some(a), levels, sizes);
                let circuit = PolynomialCircuit::new(params, &a.polynomial, levels.start, scale, target);
                // Levels at which a polynomial cannot be computed are never the cheapest; if there are no others, `Gains::errors` fails
                // with the reason.
                let Ok(circuit) = circuit else { return f64::INFINITY };
                circuit.relinearisations()
            }
        };
        let product = |level: &usize| Work::tensor(literal, *level) + Work::relinearize_rescale(literal, *level);
        let all = relinearised.iter().map(product).fold(maps, |a, b| a + b);
        (self.prices)(&(all.fused() + moved), literal.log_n)
    }

    /// The cheapest levels with some parameters.
    fn placed(&self, params: &Params, maps: &[Vec<Map>], range: Range, sizes: &[[f64; 2]]) -> Option<Placement> {
        let known: RefCell<BTreeMap<(usize, usize, usize), f64>> = RefCell::default();
        let price = |k: usize, levels: Levels| {
            let key = (k, levels.from, levels.start);
            let found = known.borrow().get(&key).copied();
            found.unwrap_or_else(|| {
                let price = self.price(params, &maps[k], (k, levels), sizes[k]);
                known.borrow_mut().insert(key, price);
                price
            })
        };
        placed(&self.network, &self.depths(), range, price)
    }

    /// The smallest parameters with as many levels as it takes whose error is within the goal, or the nearest to it.
    fn leveled(&self, gains: &Gains, nearest: &mut f64) -> Result<Option<Way>, ModelError> {
        let Some(placement) = placed(&self.network, &self.depths(), Range::LEVELED, |_, _| 0.0) else {
            return Ok(None);
        };
        let depth = placement.input;
        let (widest, most) = (self.widest(), 1usize << (self.wanted.insecure.unwrap_or(*RINGS.end()) - 1));
        if widest > most {
            return Ok(None);
        }
        // No larger ring for more examples.
        let room = if self.wanted.insecure.is_some() { most } else { 1 << (least_ring(widest, depth) - 1) };
        let (layouts, orders, _) = layouts(&self.network, room)?;
        let wide = layouts.iter().map(Layout::period).fold(1, usize::max);
        let images = self.wanted.batch.next_power_of_two().min(room / wide).max(1);
        let (maps, sizes) = (gains.maps(&self.network, Some(&layouts), images), self.sizes(gains));
        let found = self.scaled(gains, &maps, (&placement, &layouts), wide * images, nearest)?;
        let made = |(params, errors): (Params, Errors)| {
            let placement = self.placed(&params, &maps, Range::LEVELED, &sizes)?;
            Some(Way { set: None, params, layouts, orders, images, maps, placement, errors, apart: false })
        };
        Ok(found.and_then(made))
    }

    /// The same with a ciphertext for each number, which takes as many examples as there are slots; none for a batch that leaves most of
    /// them empty.
    fn apart(&self, gains: &Gains, nearest: &mut f64) -> Result<Option<Way>, ModelError> {
        let Some(placement) = placed(&self.network, &self.depths(), Range::LEVELED, |_, _| 0.0) else {
            return Ok(None);
        };
        let maps = gains.maps(&self.network, None, 1);
        let counts = std::iter::once(self.network.inputs()).chain(self.network.layers.iter().map(|l| l.bias.len()));
        let layouts: Vec<Layout> = counts.map(Layout::plain).collect();
        let mut reached = *nearest;
        let found = self.scaled(gains, &maps, (&placement, &layouts), 1, &mut reached)?;
        let empty = |(params, _): &(Params, Errors)| EMPTY * self.wanted.batch < params.slots();
        if found.as_ref().is_some_and(empty) {
            // What would be reached with slots that are mostly empty is not offered.
            return Ok(None);
        }
        *nearest = reached;
        let Some((params, errors)) = found else { return Ok(None) };
        let (images, orders) = (params.slots(), vec![Order::Plain; maps.len()]);
        let known = known(gains, &errors, &self.ranges.layers, errors.nearest());
        let program = self.program((layouts.clone(), known), &placement, (images, true));
        let work = program.simulated_apart(&params)?.work;
        let placement = Placement { cost: (self.prices)(&work.fused(), params.literal().rlwe.log_n), ..placement };
        Ok(Some(Way { set: None, params, layouts, orders, images, maps, placement, errors, apart: true }))
    }

    fn program(
        &self,
        (layouts, known): (Vec<Layout>, Vec<Known>),
        placement: &Placement,
        (images, apart): (usize, bool),
    ) -> Program {
        Program {
            network: self.network.clone(),
            activations: self.activations.clone(),
            layouts,
            known,
            levels: placement.levels.clone(),
            input: self.ranges.input,
            images,
            apart,
        }
    }

    /// The smallest parameters of so many levels and slots whose error is within the goal.
    fn scaled(
        &self,
        gains: &Gains,
        maps: &[Vec<Map>],
        (placement, layouts): (&Placement, &[Layout]),
        slots: usize,
        nearest: &mut f64,
    ) -> Result<Option<(Params, Errors)>, ModelError> {
        let sizes = self.sizes(gains);
        let mut log_scale = *SCALES.start();
        while SCALES.contains(&log_scale) {
            let lowest = output_bits(&self.network, layouts, (&sizes, self.ranges.input), log_scale);
            let Some(literal) = self.literal((placement.input, slots), lowest, log_scale) else { break };
            let params = match literal.build() {
                // There are not so many primes of so few bits.
                Err(HeError::Rlwe(RlweError::Ring(RingError::TooFewPrimes { .. }))) => {
                    log_scale += 1;
                    continue;
                }
                made => made?,
            };
            let errors = gains.errors(self.about(), maps, (placement, self.ranges.input), (&params, None))?;
            let found = errors.nearest();
            *nearest = nearest.min(found);
            if found <= self.wanted.error {
                return Ok(Some((params, errors)));
            }
            // Errors halve with each bit, so that most scales need not be tried.
            log_scale += ((found / self.wanted.error).log2().floor() as u32).clamp(1, 16);
        }
        Ok(None)
    }

    /// Parameters of a scale: the least ring, and in it the fewest special primes that leave at most four digits.
    fn literal(&self, (depth, slots): (usize, usize), lowest: u32, log_scale: u32) -> Option<ParamsLiteral> {
        if lowest > WIDEST_PRIME {
            return None;
        }
        let q_bits: Vec<u32> = std::iter::once(lowest).chain(std::iter::repeat_n(log_scale, depth)).collect();
        let total: u32 = q_bits.iter().sum();
        let least = slots.trailing_zeros() + 1;
        // Together they are larger than the first digit by as much as leaves its error below those of divisions. Smaller ones than
        // the lowest prime do where a digit has others beside it, and transforms below 2^50 take a third of the time.
        let widest = |k: usize| {
            let digit = lowest + (k as u32 - 1) * log_scale + DIGIT_MARGIN;
            digit.div_ceil(k as u32).clamp(log_scale + 1, lowest.max(log_scale + 1)).min(WIDEST_PRIME)
        };
        let make = |log_n: u32, k: usize, security: Security| {
            let (p_bits, secret) = (vec![widest(k); k], SecretDistribution::Ternary);
            let rlwe =
                rlwe::params::ParamsLiteral { log_n, q_bits: q_bits.clone(), p_bits, digit_limbs: k, secret, security };
            ParamsLiteral { rlwe, log_scale }
        };
        if let Some(log_n) = self.wanted.insecure {
            return Some(make(log_n, q_bits.len().div_ceil(4), Security::Insecure));
        }
        for log_n in least.max(*RINGS.start())..=*RINGS.end() {
            let most = max_log_qp(log_n, SecretDistribution::Ternary, Security::Bits128).into_iter().sum::<u32>();
            for k in 1..=q_bits.len().div_ceil(2) {
                let few = q_bits.len().div_ceil(k) <= 4;
                if few && total + widest(k) * k as u32 <= most {
                    return Some(make(log_n, k, Security::Bits128));
                }
            }
        }
        None
    }

    /// A bootstrapping set, with refreshes where they are cheapest; none where it has too few slots or levels.
    fn refreshed(&self, set: BootstrapSet, gains: &Gains) -> Result<Option<Way>, ModelError> {
        let own = set.literal();
        if own.log_slots + 1 < own.params.rlwe.log_n {
            return Ok(None);
        }
        let literal = match self.wanted.insecure {
            Some(log_n) => match own.insecure(log_n) {
                // A ring that is too small or too large for a set that was not asked for.
                Err(_) if self.wanted.bootstrap.is_none() => return Ok(None),
                made => made?,
            },
            None => own,
        };
        let slots = 1usize << literal.log_slots;
        if self.widest() > slots {
            return Ok(None);
        }
        let (params, (floor, top)) = (literal.params.build()?, literal.levels()?);
        let (layouts, orders, _) = layouts(&self.network, slots)?;
        let wide = layouts.iter().map(Layout::period).fold(1, usize::max);
        let images = self.wanted.batch.next_power_of_two().min(slots / wide).max(1);
        let (maps, sizes) = (gains.maps(&self.network, Some(&layouts), images), self.sizes(gains));
        let bits = output_bits(&self.network, &layouts, (&sizes, self.ranges.input), params.literal().log_scale);
        let Some(output) = (0..=floor).find(|level| params.log_q(*level) >= f64::from(bits)) else { return Ok(None) };
        let refresh = self.refresh_seconds(&literal)?;
        let range = Range { output, floor, top, refresh: Some(refresh) };
        let Some(placement) = self.placed(&params, &maps, range, &sizes) else { return Ok(None) };
        let variance = literal.predicted_noise(2.0)?.total();
        let errors = gains.errors(self.about(), &maps, (&placement, self.ranges.input), (&params, Some(variance)))?;
        Ok(Some(Way {
            set: Some((set, literal)),
            params,
            layouts,
            orders,
            images,
            maps,
            placement,
            errors,
            apart: false,
        }))
    }

    /// Seconds of a refresh.
    fn refresh_seconds(&self, literal: &BootstrapLiteral) -> Result<f64, ModelError> {
        let set = literal.build()?;
        let streamed = Work { operand_bytes: set.diagonal_bytes()? as f64, ..Work::default() };
        Ok((self.prices)(&(set.cost(Kind::Real)?.fused() + streamed), literal.params.rlwe.log_n))
    }

    /// Keys and operations by a simulation, and the plan.
    fn plan(&self, way: Way, promise: Promise, gains: &Gains) -> Result<(Program, Plan), ModelError> {
        let Way { set, params, layouts, orders, images, maps, placement, errors, apart } = way;
        let promised = errors.promised(promise);
        let known = known(gains, &errors, &self.ranges.layers, promised);
        let program = self.program((layouts, known), &placement, (images, apart));
        let (ledger, largest) = match apart {
            true => (program.simulated_apart(&params)?, 0),
            false => self.simulated(&program, (&params, placement.input), set.as_ref().map(|(_, set)| set))?,
        };
        let layer = |k: usize| {
            let (layer, maps, activation) = (&self.network.layers[k], &maps[k], self.activations[k].as_ref());
            let Levels { from, start, to, refreshed } = placement.levels[k];
            LayerPlan {
                name: layer.name.clone(),
                function: layer.function.name(),
                takes: layer.sources.iter().map(|(source, _)| *source).collect(),
                outputs: layer.bias.len(),
                order: orders[k],
                diagonals: maps.iter().map(|m| m.diagonals).sum(),
                giants: maps.iter().map(|m| m.giants).sum(),
                level: from,
                start,
                end: to,
                refreshed,
                reach: self.ranges.layers[k],
                degree: activation.map_or(1, |a| a.polynomial.degree()),
                error: activation.map_or(0.0, |a| a.error),
            }
        };
        let (refreshes, log_n) = (placement.refreshes(), params.literal().rlwe.log_n);
        let maps_moved = || {
            let all = maps
                .iter()
                .zip(&placement.levels)
                .flat_map(|(maps, levels)| maps.iter().map(move |m| (m, levels.from)));
            all.map(|(m, level)| moved(&params, level, m)).fold(Work::default(), |a, b| a + b)
        };
        // Of a ciphertext for each number the simulation has them.
        let moved = if apart { Work::default() } else { maps_moved() };
        let mut seconds = (self.prices)(&(ledger.work.fused() + moved), log_n);
        let mut bootstrap = [0; 3];
        if let Some((_, literal)) = &set {
            seconds += refreshes as f64 * self.refresh_seconds(literal)?;
            bootstrap = literal.memory()?;
        }
        let weights = weights::write(&self.network, &self.activations)?;
        let figures = Figures {
            sudare_model: Figures::VERSION,
            params: params.literal().clone(),
            bootstrap: set.as_ref().map(|(set, _)| *set),
            weights: weights::digest(&weights),
            input: self.network.input.clone(),
            output: self.network.output.clone(),
            images,
            apart,
            factors: self.examples.factors.clone(),
            input_bound: self.ranges.input,
            input_level: placement.input,
            output_bound: self.ranges.output,
            error: promised,
            promise,
            relin: ledger.relin,
            galois: ledger.galois.into_iter().collect(),
            layers: (0..self.network.layers.len()).map(layer).collect(),
            refreshes,
            approximation: self.examples.near,
            agreement: self.agreement(errors.deviation(promise)),
            examples: self.examples.rows.len(),
            margin: self.wanted.margin,
            label: self.wanted.label,
            dropped: self.network.dropped.clone(),
            prepared: [ledger.prepared, largest],
            diagonals: bootstrap[1],
            bootstrap_keys: bootstrap[0],
            // Ciphertexts of single numbers are alike, and buffers as long as they.
            working: if apart { ledger.peak } else { RECYCLED * (ledger.peak + bootstrap[2]) }
                + tables(&params)
                + 2 * weights.len() as u64
                + largest_map(&params, &maps, &placement.levels, apart)
                + self.waiting((&params, &placement), images, apart),
            operations: Operations { transforms: ledger.counts.transforms, key_switches: ledger.counters.key_switches },
            seconds,
            encoding: self.encoding(&program, &params, &maps),
        };
        Ok((program, Plan::new(figures, params)?))
    }

    /// What a run on one ciphertext takes, without one, and the most bytes of a layer's encoded weights.
    fn simulated(
        &self,
        program: &Program,
        (params, level): (&Params, usize),
        set: Option<&BootstrapLiteral>,
    ) -> Result<(Ledger, u64), ModelError> {
        let e = Evaluator::with_backend(params, Simulated::new(params))?;
        let max_abs = self.ranges.input;
        let input = e.encryptions(EncodeAt { level, scale: params.scale() / max_abs, max_abs }, 1)?;
        let top = set.map(BootstrapLiteral::levels).transpose()?.map_or(0, |(_, top)| top);
        let refresh = |c: &CiphertextOf<Simulated>| {
            // What is known of its error is said where it is used.
            let state = State { noise: c.scale(), ..c.state() };
            Ok(e.batch(top, 1, state, Spread::UNKNOWN))
        };
        let largest = Cell::new(0);
        let step = |k: usize| {
            let before = e.backend().ledger().prepared;
            let step = program.step(&e, k)?;
            largest.set(largest.get().max(e.backend().ledger().prepared - before));
            Ok(step)
        };
        program.run((&e, &refresh), input, step)?;
        Ok((e.backend().ledger(), largest.get()))
    }

    /// Seconds of encoding all weights.
    fn encoding(&self, program: &Program, params: &Params, maps: &[Vec<Map>]) -> f64 {
        let one = |(maps, levels): (&Vec<Map>, &Levels)| {
            maps.iter().map(|m| encoding((params, levels.from), (m.diagonals, m.length), self.prices)).sum::<f64>()
        };
        maps.iter().zip(&program.levels).map(one).sum()
    }

    /// Bytes of ciphertexts of a batch that wait for the first lot, or for the last.
    fn waiting(&self, (params, placement): (&Params, &Placement), images: usize, apart: bool) -> u64 {
        let network = &self.network;
        let each = |numbers: usize, level: usize| {
            (if apart { numbers } else { 1 } * (level + 1) * 16 * params.degree()) as u64
        };
        let to = placement.levels.last().map_or(0, |levels| levels.to);
        let lot = each(network.inputs(), placement.input) + each(network.outputs(), to);
        (self.wanted.batch.div_ceil(images) as u64 - 1).saturating_mul(lot)
    }

    /// Share of labels that stay the given model's where errors of a deviation are added to the polynomial model's answers.
    fn agreement(&self, deviation: f64) -> f64 {
        let Examples { given, found, .. } = self.examples;
        let label = self.wanted.label;
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
}

/// Seconds of encoding diagonals of so many slots that repeat at a level: each is a transform of complex numbers, and in each limb one
/// of residues, of its own length.
pub(crate) fn encoding(
    (params, level): (&Params, usize),
    (diagonals, length): (usize, usize),
    prices: Prices<'_>,
) -> f64 {
    let literal = &params.literal().rlwe;
    let special = |w: Work, bits: &u32| w + Work::transforms(*bits, 1.0) + Work::passes(*bits, CONVERSIONS);
    let embedded = Work { ntt: EMBEDDING, ..Work::default() };
    let one = Work::transforms_at(literal, level, 1.0) + Work::passes_at(literal, level, CONVERSIONS) + embedded;
    prices(&(literal.p_bits.iter().fold(one, special) * diagonals as f64), (2 * length).max(MIN_DEGREE).ilog2())
}

/// What a map moves between the caches and memory beside its arithmetic: each rotation permutes two rows, and diagonals come from
/// memory. Where values repeat in runs of less than [`RUN`] words, a row is put together line by line; longer runs are filled.
pub(crate) fn moved(params: &Params, level: usize, map: &Map) -> Work {
    let literal = &params.literal().rlwe;
    let lines = if (2..RUN).contains(&(params.degree() / (2 * map.length))) { map.diagonals } else { 0 };
    let passes = lines as f64 + PERMUTED * (map.babies + map.giants) as f64;
    let limbs = level + 1 + literal.p_bits.len();
    let operand_bytes = (map.diagonals * limbs * 16 * map.length) as f64;
    let special = |w: Work, bits: &u32| w + Work::passes(*bits, passes);
    literal.p_bits.iter().fold(Work::passes_at(literal, level, passes), special)
        + Work { operand_bytes, ..Work::default() }
}

/// Bytes that the largest of all layers takes for a while: sums of giant steps, and its diagonals before they are encoded.
fn largest_map(params: &Params, maps: &[Vec<Map>], levels: &[Levels], apart: bool) -> u64 {
    if apart {
        return 0;
    }
    let one = |(maps, levels): (&Vec<Map>, &Levels)| {
        let sums = RECYCLED * maps.iter().map(|m| giant_sums(params, levels.from, m.giants)).max().unwrap_or(0);
        // A double, and turned a complex number.
        sums + maps.iter().map(|m| 24 * (m.diagonals * m.length) as u64).sum::<u64>()
    };
    maps.iter().zip(levels).map(one).max().unwrap_or(0)
}

/// Bytes of the tables of a ring's transforms: twiddles of both directions with their quotients, in the orders that kernels read, and
/// those of smaller transforms.
pub(crate) fn tables(params: &Params) -> u64 {
    let literal = &params.literal().rlwe;
    ((literal.q_bits.len() + literal.p_bits.len()) * TABLE_WORDS * 8 * params.degree()) as u64
}

/// Bytes of the sums of a map's giant steps over Q·P, which the simulation of a map of one decomposition does not note.
pub(crate) fn giant_sums(params: &Params, level: usize, giants: usize) -> u64 {
    let limbs = level + 1 + params.literal().rlwe.p_bits.len();
    (2 * (giants + 2) * limbs * 8 * params.degree()) as u64
}

/// Orders of all values in up to `most` places: of each layer the one to which its maps are cheapest; and what
/// all maps cost, in baby steps.
fn layouts(network: &Network, most: usize) -> Result<(Vec<Layout>, Vec<Order>, usize), ModelError> {
    let input = &network.input;
    let mut layouts = vec![Layout::plain(network.inputs())];
    let (mut orders, mut steps) = (Vec::new(), 0);
    let last = network.layers.len() - 1;
    for (k, layer) in network.layers.iter().enumerate() {
        let all = if k == last { vec![Order::Plain] } else { Layout::orders(&layer.shape, input) };
        let some = all.into_iter().filter_map(|order| Some((order, Layout::new(&layer.shape, order, most)?)));
        let priced = some.map(|(order, to)| (price(&layer.sources, &layouts, &to), order, to));
        let Some((price, order, to)) = priced.min_by_key(|(price, _, to)| (*price, to.period())) else {
            return goal(format!(
                "layer {} has {} numbers, and a ciphertext has {most} slots; use smaller layers",
                layer.name,
                layer.bias.len()
            ));
        };
        layouts.push(to);
        orders.push(order);
        steps += price;
    }
    Ok((layouts, orders, steps))
}

/// What all maps of a network cost in its best layouts, in baby steps; none where it has too many numbers.
fn steps_of(network: &Network) -> Option<usize> {
    layouts(network, 1 << (RINGS.end() - 1)).ok().map(|(_, _, steps)| steps)
}

/// The least ring that a depth and the widest value allow, at the lowest scale.
fn least_ring(widest: usize, depth: usize) -> u32 {
    let bits = SCALES.start() * (depth as u32 + 1);
    let holds = |log_n: &u32| {
        max_log_qp(*log_n, SecretDistribution::Ternary, Security::Bits128).is_some_and(|most| bits < most)
    };
    RINGS.into_iter().find(holds).map_or(*RINGS.end(), |log_n| log_n.max(widest.trailing_zeros() + 1))
}

/// A standard normal number by Box and Muller.
fn normal(next: &mut dyn FnMut() -> u64) -> f64 {
    let mut uniform = || ((next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    (-2.0 * uniform().ln()).sqrt() * (2.0 * std::f64::consts::PI * uniform()).cos()
}
