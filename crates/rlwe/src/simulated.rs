//! A backend that computes nothing: what a circuit does under a parameter set, learned by running it.
//!
//! A ciphertext is its level, its number of parts and how many it stands for: a value of any size is one batch. Operations
//! refuse what the processor's would refuse, and note in a [`Ledger`] the keys they take, each at its highest level, what
//! they cost and the counters of the papers' tables. Nothing of the parameters is built but their primes, so that a planner
//! simulates hundreds of candidates.

use crate::backend::{Backend, Over, Shaped};
use crate::error::RlweError;
use crate::evaluator::{Blocks, Counters, MapSteps};
use crate::ids::KeyId;
use crate::keys::{GaloisKey, KeySource, KeySwitchKey};
use crate::params::{Params, ParamsLiteral};
use crate::work::{CACHE_BYTES, Work};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sudare_ring::ops::PeriodicPoly;
use sudare_ring::{Eval, Poly};

/// A batch of ciphertexts that are alike.
#[derive(Clone, Debug)]
pub struct Alike {
    params: Params,
    level: usize,
    parts: usize,
    count: usize,
    /// How many of them are in memory at once: inside a circuit that is run for each of `count`, one.
    width: usize,
    /// How many there are in the batch that an operand of such a circuit is taken from.
    of: Option<usize>,
    held: Arc<Held>,
}

impl Alike {
    fn at(&self, level: usize, parts: usize) -> Self {
        self.resized(level, parts, self.width)
    }

    fn resized(&self, level: usize, parts: usize, width: usize) -> Self {
        let held = Held::new(&self.held.live, bytes_of(&self.params, level, parts), width);
        Self { params: self.params.clone(), level, parts, count: self.count, width, of: None, held }
    }
}

impl Shaped for Alike {
    fn params(&self) -> &Params {
        &self.params
    }

    fn key(&self) -> KeyId {
        KeyId::NONE
    }

    fn level(&self) -> usize {
        self.level
    }

    fn polynomials(&self) -> usize {
        self.parts
    }

    fn count(&self) -> usize {
        self.count
    }
}

fn bytes_of(params: &Params, level: usize, parts: usize) -> u64 {
    ((level + 1) * parts * 8 * params.degree()) as u64
}

/// More bytes than any machine has, so that sums do not overflow.
const MOST_BYTES: u64 = 1 << 56;

/// Bytes of ciphertexts in memory, now and at most.
#[derive(Debug, Default)]
struct Live {
    now: AtomicU64,
    most: AtomicU64,
}

/// The memory of a batch, until it is dropped.
#[derive(Debug)]
struct Held {
    bytes: u64,
    live: Arc<Live>,
}

impl Held {
    /// Of `count` ciphertexts: more bytes than there are anywhere count as that.
    fn new(live: &Arc<Live>, each: u64, count: usize) -> Arc<Self> {
        let bytes = each.saturating_mul(count as u64).min(MOST_BYTES);
        let now = live.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        live.most.fetch_max(now, Ordering::Relaxed);
        Arc::new(Self { bytes, live: live.clone() })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.live.now.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// Highest level of a relinearisation.
    pub relin: Option<usize>,
    /// Highest level of each automorphism.
    pub galois: BTreeMap<u64, usize>,
    /// What it costs.
    pub work: Work,
    /// Operations, as an evaluator counts them.
    pub counters: Counters,
    /// Bytes of prepared polynomials.
    pub prepared: u64,
    /// Most bytes of ciphertexts that were in memory at once.
    pub peak: u64,
}

/// Every key there can be, for its name and parameters alone.
#[derive(Debug)]
struct Every(Params);

impl KeySource for Every {
    fn params(&self) -> &Params {
        &self.0
    }

    fn id(&self) -> KeyId {
        KeyId::NONE
    }

    fn bytes(&self) -> usize {
        0
    }

    fn relin_level(&self) -> Option<usize> {
        Some(self.0.max_level())
    }

    fn galois_level(&self, _: u64) -> Option<usize> {
        Some(self.0.max_level())
    }

    fn relin(&self) -> Result<Arc<KeySwitchKey>, RlweError> {
        Err(RlweError::MissingRelinKey)
    }

    fn galois(&self, element: u64, step: i64) -> Result<Arc<GaloisKey>, RlweError> {
        Err(RlweError::MissingRotationKey { step, element })
    }
}

/// Computes nothing and notes everything.
#[derive(Debug)]
pub struct Simulated {
    keys: Arc<dyn KeySource>,
    ledger: Mutex<Ledger>,
    live: Arc<Live>,
}

impl Simulated {
    /// A simulation under a parameter set.
    pub fn new(params: &Params) -> Self {
        Self { keys: Arc::new(Every(params.clone())), ledger: Mutex::default(), live: Arc::default() }
    }

    /// What was done so far.
    pub fn ledger(&self) -> Ledger {
        Ledger { peak: self.live.most.load(Ordering::Relaxed), ..self.noted().clone() }
    }

    /// The work that was done so far.
    pub fn work(&self) -> Work {
        self.noted().work
    }

    /// `count` ciphertexts of two parts at a level.
    pub fn batch(&self, level: usize, count: usize) -> Alike {
        let params = self.params().clone();
        let held = Held::new(&self.live, bytes_of(&params, level, 2), count);
        Alike { params, level, parts: 2, count, width: count, of: None, held }
    }

    fn params(&self) -> &Params {
        self.keys.params()
    }

    fn noted(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes operations done with each of some ciphertexts.
    fn note(&self, a: &Alike, counters: Counters, work: impl FnOnce(&ParamsLiteral) -> Work) {
        self.note_all(counters * a.count, work(self.params().literal()) * a.count as f64);
    }

    fn note_all(&self, counters: Counters, work: Work) {
        let mut ledger = self.noted();
        ledger.counters = ledger.counters + counters;
        ledger.work += work;
    }

    /// Notes memory that is taken for a while.
    fn passes_through(&self, bytes: u64) {
        self.live.most.fetch_max(self.live.now.load(Ordering::Relaxed) + bytes.min(MOST_BYTES), Ordering::Relaxed);
    }

    /// Notes the memory of a key switch: digits, and two sums, over Q_l·P.
    fn switches(&self, a: &Alike) {
        let literal = self.params().literal();
        let digits = (a.level + 1).div_ceil(literal.digit_limbs);
        let over = (a.level + 1 + literal.p_bits.len()) * 8 * self.params().degree();
        self.passes_through((((digits + 2) * over) as u64).saturating_mul(a.width as u64));
    }

    fn takes(&self, elements: &[u64], level: usize) {
        let mut ledger = self.noted();
        for element in elements.iter().filter(|e| **e != 1) {
            let known = ledger.galois.entry(*element).or_insert(level);
            *known = (*known).max(level);
        }
    }

    fn relinearises(&self, level: usize) {
        let mut ledger = self.noted();
        ledger.relin = ledger.relin.max(Some(level));
    }

    /// Notes a sum; its level and parts.
    fn sum_of(&self, a: &Alike, b: &Alike) -> Result<(usize, usize), RlweError> {
        self.check(a)?;
        self.check(b)?;
        let (level, parts) = (a.level.min(b.level), a.parts.max(b.parts));
        self.note(a, ADD, |l| Work::passes_at(l, level, parts as f64));
        Ok((level, parts))
    }

    /// Bytes that each of the products of two sides reads again from memory: both of its operands, where they are taken more
    /// than once and those of a group of circuits that take from one another's fill more than a cache.
    fn read_again(a: &[&Alike], b: &[&Alike]) -> f64 {
        let (Some(x), Some(y)) = (a.first(), b.first()) else { return 0.0 };
        let (Some(left), Some(right)) = (x.of, y.of) else { return 0.0 };
        let (count, terms) = (x.count as f64, a.len() as f64);
        let (left, right) = (left as f64, right as f64);
        // Every line of a group's left side meets every line of its right one, so that (left / group / terms) times
        // (right / group / terms) circuits are a group's.
        let groups = (left * right / (count * terms * terms)).max(1.0);
        let [each_left, each_right] = [x, y].map(|a| bytes_of(&a.params, a.level, a.parts) as f64);
        let stored = (each_left * left + each_right * right) / groups;
        let again = count * terms > left.min(right);
        if again && stored > CACHE_BYTES { each_left + each_right } else { 0.0 }
    }

    fn sum(&self, a: &Alike, elements: &[u64]) -> Result<f64, RlweError> {
        let operation = "sum of rotations";
        self.check_two_parts(operation, a)?;
        if elements.is_empty() {
            return Err(RlweError::Operands { operation, left: 0, right: 0 });
        }
        self.takes(elements, a.level);
        self.switches(a);
        let images = elements.iter().filter(|e| **e != 1).count();
        let sums = Counters { add: elements.len() as u64 - 1, ..Counters::default() };
        self.note(a, Counters::rotations(images) + sums, |l| Work::hoisted_sum(l, a.level, images as f64));
        Ok(images as f64)
    }
}

const ADD: Counters = Counters { add: 1, rot: 0, cmult: 0, mult: 0, relin: 0, key_switches: 0 };
const CMULT: Counters = Counters { add: 0, rot: 0, cmult: 1, mult: 0, relin: 0, key_switches: 0 };
const RELIN: Counters = Counters { add: 0, rot: 0, cmult: 0, mult: 0, relin: 1, key_switches: 1 };

impl Backend for Simulated {
    type Ciphertext = Alike;
    /// Its limbs, of which nothing is there.
    type Plaintext = usize;

    fn keys(&self) -> &Arc<dyn KeySource> {
        &self.keys
    }

    fn counters(&self) -> Counters {
        self.noted().counters
    }

    fn reset_counters(&self) {
        self.noted().counters = Counters::default();
    }

    fn record(&self, done: Counters) {
        let mut ledger = self.noted();
        ledger.counters = ledger.counters + done;
    }

    fn check(&self, a: &Alike) -> Result<(), RlweError> {
        self.params().expect("the ciphertext", &a.params)
    }

    fn check_keys(&self, elements: &[u64], level: usize) -> Result<(), RlweError> {
        self.takes(elements, level);
        Ok(())
    }

    fn check_relin(&self, level: usize) -> Result<(), RlweError> {
        self.relinearises(level);
        Ok(())
    }

    fn prepare<E>(&self, level: usize, over: Over, _: impl FnOnce() -> Result<Poly<Eval>, E>) -> Result<usize, E> {
        let limbs = level + 1 + if over == Over::QP { self.params().literal().p_bits.len() } else { 0 };
        self.noted().prepared += (limbs as u64 * 8) << self.params().log_n();
        Ok(limbs)
    }

    fn narrowed<'p>(&self, p: &'p usize, _: usize, _: usize) -> std::borrow::Cow<'p, usize> {
        std::borrow::Cow::Borrowed(p)
    }

    /// Nothing of it is there.
    type Row = ();

    fn prepare_row<E>(
        &self,
        level: usize,
        period: usize,
        _: impl FnOnce() -> Result<PeriodicPoly, E>,
    ) -> Result<(), E> {
        let limbs = level + 1 + self.params().literal().p_bits.len();
        self.noted().prepared += (limbs * PeriodicPoly::words_of(self.params().degree(), period)) as u64 * 8;
        Ok(())
    }

    fn linear_maps(&self, a: &Alike, maps: &[(&MapSteps, &[Vec<()>])]) -> Result<Vec<Alike>, RlweError> {
        let lower = a.lower("linear map")?;
        self.check_two_parts("linear map", a)?;
        self.switches(a);
        self.note(a, Counters::default(), |l| Work::decompose(l, a.level));
        let one = |(steps, _): &(&MapSteps, &[Vec<()>])| {
            self.takes(&steps.elements(), a.level);
            let [babies, roots, giants, rows] = steps.counts().map(|n| n as f64);
            self.note(a, steps.counters(), |l| {
                let (one, division) = (Work::inner_product(l, a.level), Work::mod_down(l, a.level));
                let turn = one + division + Work::decompose(l, a.level) + Work::passes_at(l, a.level, 3.0);
                (one + Work::passes_at(l, a.level, 3.0)) * babies
                    + turn * (roots + giants)
                    + Work::mul_plain(l, a.level) * rows
                    + division * 2.0
                    + Work::passes_at(l, a.level, 2.0)
            });
            a.at(lower, 2)
        };
        Ok(maps.iter().map(one).collect())
    }

    fn add(&self, a: &Alike, b: &Alike) -> Result<Alike, RlweError> {
        let (level, parts) = self.sum_of(a, b)?;
        Ok(a.at(level, parts))
    }

    fn sub(&self, a: &Alike, b: &Alike) -> Result<Alike, RlweError> {
        self.add(a, b)
    }

    fn add_assign(&self, acc: &mut Alike, b: &Alike) -> Result<(), RlweError> {
        let out = self.sum_of(acc, b)?;
        if out != (acc.level, acc.parts) {
            *acc = acc.at(out.0, out.1);
        }
        acc.of = None;
        Ok(())
    }

    fn negate(&self, a: &Alike) -> Result<Alike, RlweError> {
        self.note(a, Counters::default(), |l| Work::passes_at(l, a.level, a.parts as f64));
        Ok(a.at(a.level, a.parts))
    }

    fn add_poly(&self, a: &Alike, _: &usize) -> Result<Alike, RlweError> {
        self.note(a, Counters::default(), |l| Work::passes_at(l, a.level, 1.0));
        Ok(a.at(a.level, a.parts))
    }

    fn sub_poly(&self, a: &Alike, p: &usize) -> Result<Alike, RlweError> {
        self.add_poly(a, p)
    }

    fn mul_poly(&self, a: &Alike, _: &usize) -> Result<Alike, RlweError> {
        self.note(a, CMULT, |l| Work::passes_at(l, a.level, a.parts as f64));
        Ok(a.at(a.level, a.parts))
    }

    fn mul_poly_rescale(&self, a: &Alike, p: &usize) -> Result<Alike, RlweError> {
        a.lower("rescale")?;
        self.rescale(&self.mul_poly(a, p)?)
    }

    fn mul_imaginary_unit(&self, a: &Alike) -> Result<Alike, RlweError> {
        self.negate(a)
    }

    fn mul_integer(&self, a: &Alike, _: i64) -> Result<Alike, RlweError> {
        self.negate(a)
    }

    fn rescale(&self, a: &Alike) -> Result<Alike, RlweError> {
        let lower = a.lower("rescale")?;
        self.note(a, Counters::default(), |l| Work::rescale(l, a.level) * (a.parts as f64 / 2.0));
        Ok(a.at(lower, a.parts))
    }

    fn drop_to(&self, a: &Alike, level: usize) -> Result<Alike, RlweError> {
        if level > a.level {
            return Err(RlweError::NoSuchLevel { operation: "dropping levels", wanted: level, highest: a.level });
        }
        Ok(a.at(level, a.parts))
    }

    fn dot(&self, a: &[&Alike], b: &[&Alike]) -> Result<Alike, RlweError> {
        let (level, terms) = (self.check_dot(a, b)?, a.len());
        let done = Counters { mult: terms as u64, add: terms as u64 - 1, ..Counters::default() };
        let read = Self::read_again(a, b);
        self.note(a[0], done, |l| {
            (Work::tensor(l, level) + Work { operand_bytes: read, ..Work::default() }) * terms as f64
        });
        Ok(a[0].at(level, 3))
    }

    fn relinearize(&self, a: &Alike) -> Result<Alike, RlweError> {
        if a.parts == 2 {
            return Ok(a.clone());
        }
        self.relinearises(a.level);
        self.switches(a);
        self.note(a, RELIN, |l| Work::key_switch(l, a.level) + Work::passes_at(l, a.level, 2.0));
        Ok(a.at(a.level, 2))
    }

    fn relinearize_rescale(&self, a: &Alike) -> Result<Alike, RlweError> {
        let lower = a.lower("rescale")?;
        if a.parts == 2 {
            return self.rescale(a);
        }
        self.relinearises(a.level);
        self.switches(a);
        self.note(a, RELIN, |l| Work::relinearize_rescale(l, a.level));
        Ok(a.at(lower, 2))
    }

    fn automorphism(&self, a: &Alike, element: u64, _: i64) -> Result<Alike, RlweError> {
        self.check_two_parts("rotation", a)?;
        if element != 1 {
            self.takes(&[element], a.level);
            self.switches(a);
            self.note(a, Counters::rotations(1), |l| Work::rotation(l, a.level));
        }
        Ok(a.at(a.level, a.parts))
    }

    fn rotate_many(&self, a: &Alike, steps: &[i64]) -> Result<Vec<Alike>, RlweError> {
        self.check_two_parts("hoisting", a)?;
        let elements: Vec<u64> = steps.iter().map(|s| self.params().rotation_element(*s)).collect();
        self.takes(&elements, a.level);
        self.switches(a);
        let switched = elements.iter().filter(|e| **e != 1).count();
        self.note(a, Counters::rotations(switched), |l| {
            let each =
                Work::inner_product(l, a.level) + Work::mod_down(l, a.level) * 2.0 + Work::passes_at(l, a.level, 3.0);
            Work::decompose(l, a.level) + each * switched as f64
        });
        Ok(steps.iter().map(|_| a.at(a.level, 2)).collect())
    }

    fn sum_of_automorphisms(&self, a: &Alike, elements: &[u64]) -> Result<Alike, RlweError> {
        self.sum(a, elements)?;
        self.note(a, Counters::default(), |l| Work::mod_down(l, a.level) * 2.0);
        Ok(a.at(a.level, a.parts))
    }

    fn sum_of_automorphisms_mul_rescale(&self, a: &Alike, elements: &[u64], _: &usize) -> Result<Alike, RlweError> {
        let lower = a.lower("masked sum of rotations")?;
        self.sum(a, elements)?;
        self.note(a, CMULT, |l| {
            Work::mul_plain(l, a.level) + Work::mod_down(l, a.level) * 2.0 + Work::passes_at(l, a.level, 2.0)
        });
        Ok(a.at(lower, 2))
    }

    fn block_products(&self, left: &[&Alike], right: &[&Alike], blocks: &Blocks) -> Result<Vec<Alike>, RlweError> {
        let (operation, params) = ("block product", self.params());
        let count = |side: &[&Alike]| side.iter().map(|a| a.count).sum();
        blocks.check(params.degree(), [count(left), count(right)])?;
        let all = || left.iter().chain(right);
        all().try_for_each(|a| self.check_two_parts(operation, a))?;
        let none = RlweError::Operands { operation, left: 0, right: 0 };
        let (Some(level), Some(like)) = (all().map(|a| a.level).min(), left.first()) else { return Err(none) };
        self.takes(&Blocks::elements(params.degree(), blocks.side).collect::<Vec<_>>(), level);
        if blocks.relinearize {
            self.relinearises(level);
        }
        let literal = params.literal();
        self.note_all(blocks.counters(), Work::block_products(literal, level, blocks));
        // Both sides of a group at the points; of a block four products and their rows, then the rows that are transposed.
        let (poly, d) = (bytes_of(params, level, 1), blocks.side as u64);
        let special = (literal.p_bits.len() * 8 * params.degree()) as u64;
        let points = ((blocks.block_rows + blocks.block_columns) * blocks.terms * 2) as u64;
        let rows = 4 * d * poly + (4 * d * poly).max(3 * d * (poly + special));
        self.passes_through(points.saturating_mul(poly).saturating_add(rows));
        let (parts, rescaled) = if blocks.relinearize { (2, level.saturating_sub(1)) } else { (3, level) };
        let [_, _, results] = blocks.counts();
        Ok(vec![Alike { count: results, ..like.resized(rescaled, parts, results) }])
    }

    fn taken(&self, operands: &[&Alike], count: usize) -> Option<Vec<Alike>> {
        let one = |a: &&Alike| Alike { count, width: 1, of: Some(a.of.unwrap_or(a.count)), ..(*a).clone() };
        Some(operands.iter().map(one).collect())
    }

    fn returned(&self, made: &Alike) -> Alike {
        made.resized(made.level, made.parts, made.count)
    }

    fn assembled(&self, like: &Alike, count: usize) -> Option<Alike> {
        Some(Alike { count, ..like.resized(like.level, like.parts, count) })
    }

    fn together(&self, _: &Alike) -> usize {
        1
    }

    fn gather(&self, batches: &[&Alike]) -> Result<Alike, RlweError> {
        match batches {
            [one] => Ok((*one).clone()),
            more => Err(RlweError::Operands { operation: "a batch in a simulation", left: more.len(), right: 1 }),
        }
    }

    fn split(&self, batch: &Alike, _: usize) -> Result<Vec<Alike>, RlweError> {
        Ok(vec![batch.clone()])
    }
}
