//! A backend that computes nothing: what a circuit does under a parameter set, learned by running it.
//!
//! A ciphertext is its level, its number of parts and how many it stands for: a value of any size is one batch. Operations
//! refuse what the processor's would refuse, and note in a [`Ledger`] the keys they take, each at its highest level, and what
//! they cost. Counters are those of every evaluator. Nothing of the parameters is built but their primes, so that a planner
//! simulates hundreds of candidates.
//!
//! ```
//! use sudare_rlwe::Evaluator;
//! use sudare_rlwe::params::{ParamsLiteral, SchemeTag};
//! use sudare_rlwe::security::{SecretDistribution, Security};
//! use sudare_rlwe::simulated::Simulated;
//!
//! # fn main() -> Result<(), sudare_rlwe::RlweError> {
//! # let secret = SecretDistribution::Ternary;
//! # let (q_bits, p_bits, security) = (vec![35, 35], vec![35], Security::Bits128);
//! # let literal = ParamsLiteral { log_n: 12, q_bits, p_bits, digit_limbs: 1, secret, security };
//! let params = literal.build(SchemeTag(1))?;
//! let dry = Evaluator::with_backend(Simulated::new(&params));
//! // A thousand ciphertexts as one batch: their squares, each rotated by one.
//! let x = dry.backend().batch(1, 1000);
//! let square = dry.mul_relin(&x, &x)?;
//! dry.automorphism(&square, params.rotation_element(1), 1)?;
//!
//! let ledger = dry.backend().ledger();
//! assert_eq!(ledger.relin, Some(1));
//! assert_eq!(ledger.galois.keys().collect::<Vec<_>>(), [&params.rotation_element(1)]);
//! assert_eq!((ledger.counters.mult, ledger.counters.rot), (1000, 1000));
//! # Ok(())
//! # }
//! ```

use crate::backend::{Backend, Combination, Divisor, MapEnd, Over, Raise, ScaledProduct, Shaped};
use crate::context::Context;
use crate::counted::Primes;
use crate::counters::Counters;
use crate::cpu::{Blocks, MapSteps};
use crate::error::RlweError;
use crate::ids::KeyId;
use crate::keys::{GaloisKey, KeySource, KeySwitchKey};
use crate::params::{Params, ParamsLiteral};
use crate::work::{CACHE_BYTES, Work};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sudare_ring::count::Counts;
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
    /// What it is made of, as [`sudare_ring::count`] counts it; products of blocks are left out.
    pub counts: Counts,
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
    context: Context,
    ledger: Mutex<Ledger>,
    live: Arc<Live>,
}

impl Simulated {
    /// A simulation under a parameter set.
    pub fn new(params: &Params) -> Self {
        Self::sharing(params, Arc::default())
    }

    /// Another one under other parameters, whose ciphertexts are in the same memory.
    #[must_use]
    pub fn beside(&self, params: &Params) -> Self {
        Self::sharing(params, self.live.clone())
    }

    fn sharing(params: &Params, live: Arc<Live>) -> Self {
        let keys: Arc<dyn KeySource> = Arc::new(Every(params.clone()));
        Self { context: Context::new(keys), ledger: Mutex::default(), live }
    }

    /// What was done so far.
    pub fn ledger(&self) -> Ledger {
        let (counters, peak) = (self.context.counters(), self.live.most.load(Ordering::Relaxed));
        Ledger { counters, peak, ..self.noted().clone() }
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

    /// Notes the work of a client that encrypts a batch.
    pub fn encrypts(&self, a: &Alike) {
        self.note(a, |l| Work::encryption(l, a.level), |_| Counts::default());
    }

    /// Notes the work of a client that decrypts a batch.
    pub fn decrypts(&self, a: &Alike) {
        self.note(a, |l| Work::decryption(l, a.level), |_| Counts::default());
    }

    fn params(&self) -> &Params {
        self.context.params()
    }

    fn noted(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what is done with each of some ciphertexts.
    fn note(&self, a: &Alike, work: impl FnOnce(&ParamsLiteral) -> Work, counts: impl FnOnce(Primes<'_>) -> Counts) {
        let literal = self.params().literal();
        let (work, counts) = (work(literal) * a.count as f64, counts(Primes::of(literal)) * a.count);
        let mut ledger = self.noted();
        ledger.work += work;
        ledger.counts = ledger.counts + counts;
    }

    /// Notes passes over limbs, which are not counted.
    fn note_passes(&self, a: &Alike, level: usize, passes: f64) {
        self.note(a, |l| Work::passes_at(l, level, passes), |_| Counts::default());
    }

    /// Notes a pass over each limb.
    fn passed(&self, a: &Alike) -> Result<Alike, RlweError> {
        self.note_passes(a, a.level, a.parts as f64);
        Ok(a.at(a.level, a.parts))
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

    /// Notes that the keys of automorphisms are taken at a level.
    pub fn takes(&self, elements: &[u64], level: usize) {
        let mut ledger = self.noted();
        for element in elements.iter().filter(|e| **e != 1) {
            let known = ledger.galois.entry(*element).or_insert(level);
            *known = (*known).max(level);
        }
    }

    /// Notes that the relinearisation key is taken at a level.
    pub fn relinearises(&self, level: usize) {
        let mut ledger = self.noted();
        ledger.relin = ledger.relin.max(Some(level));
    }

    /// Notes a sum; its level and parts.
    fn sum_of(&self, a: &Alike, b: &Alike) -> (usize, usize) {
        let (level, parts) = (a.level.min(b.level), a.parts.max(b.parts));
        self.note_passes(a, level, parts as f64);
        (level, parts)
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
}

/// How many of these automorphisms are key switches.
fn switched(elements: &[u64]) -> usize {
    elements.iter().filter(|e| **e != 1).count()
}

impl Backend for Simulated {
    type Ciphertext = Alike;
    /// Its limbs, of which nothing is there.
    type Plaintext = usize;

    /// Nothing of it is there.
    type Row = ();

    fn context(&self) -> &Context {
        &self.context
    }

    fn prepare<E>(&self, level: usize, over: Over, _: impl FnOnce() -> Result<Poly<Eval>, E>) -> Result<usize, E> {
        let limbs = level + 1 + if over == Over::QP { self.params().literal().p_bits.len() } else { 0 };
        self.noted().prepared += (limbs as u64 * 8) << self.params().log_n();
        Ok(limbs)
    }

    fn prepare_row<E>(
        &self,
        (level, over): (usize, Over),
        period: usize,
        _: impl FnOnce() -> Result<PeriodicPoly, E>,
    ) -> Result<(), E> {
        let limbs = level + 1 + if over == Over::QP { self.params().literal().p_bits.len() } else { 0 };
        self.noted().prepared += (limbs * PeriodicPoly::words_of(period)) as u64 * 8;
        Ok(())
    }

    fn width(&self, _: &Alike) -> usize {
        1
    }

    fn join(&self, batches: &[&Alike]) -> Result<Alike, RlweError> {
        match batches {
            [one] => Ok((*one).clone()),
            more => Err(RlweError::Operands { operation: "a batch in a simulation", left: more.len(), right: 1 }),
        }
    }

    fn split(&self, batch: &Alike, _: usize) -> Result<Vec<Alike>, RlweError> {
        Ok(vec![batch.clone()])
    }

    fn taken(&self, operands: &[&Alike], count: usize) -> Option<Vec<Alike>> {
        let one = |a: &&Alike| Alike { count, width: 1, of: Some(a.of.unwrap_or(a.count)), ..(*a).clone() };
        Some(operands.iter().map(one).collect())
    }

    fn assembled(&self, like: &Alike, count: usize) -> Option<Alike> {
        Some(Alike { count, ..like.resized(like.level, like.parts, count) })
    }

    fn sum(&self, terms: &[(&Alike, i64)]) -> Result<Alike, RlweError> {
        // A factor is a pass of its own over one term alone, and of the first of two.
        match terms {
            [(a, _)] => self.passed(a),
            [(a, 1), (b, _)] => {
                let (level, parts) = self.sum_of(a, b);
                Ok(a.at(level, parts))
            }
            [(a, e), b] => self.sum(&[(&self.sum(&[(a, *e)])?, 1), *b]),
            more => Err(RlweError::Operands { operation: "a sum with weights", left: more.len(), right: 2 }),
        }
    }

    fn add_assign(&self, acc: &mut Alike, b: &Alike) -> Result<(), RlweError> {
        let out = self.sum_of(acc, b);
        if out != (acc.level, acc.parts) {
            *acc = acc.at(out.0, out.1);
        }
        acc.of = None;
        Ok(())
    }

    fn mul_imaginary_unit(&self, a: &Alike, _: bool) -> Result<Alike, RlweError> {
        self.passed(a)
    }

    fn add_plain(&self, a: &Alike, _: &usize, _: bool) -> Result<Alike, RlweError> {
        self.note_passes(a, a.level, 1.0);
        Ok(a.at(a.level, a.parts))
    }

    fn mul_plain(&self, a: &Alike, _: &usize, rescale: bool) -> Result<Alike, RlweError> {
        self.note_passes(a, a.level, a.parts as f64);
        let product = a.at(a.level, a.parts);
        if rescale { self.divide(&product, &Divisor::Last) } else { Ok(product) }
    }

    fn dot(&self, a: &[&Alike], b: &[&Alike]) -> Result<Alike, RlweError> {
        let level = a.iter().chain(b).map(|c| c.level).min().unwrap_or(0);
        let (terms, read) = (a.len() as f64, Self::read_again(a, b));
        let work =
            |l: &ParamsLiteral| (Work::tensor(l, level) + Work { operand_bytes: read, ..Work::default() }) * terms;
        self.note(a[0], work, |_| Counts::default());
        Ok(a[0].at(level, 3))
    }

    fn dot_scaled(&self, a: &[&Alike], b: &[&Alike], by: &ScaledProduct<'_>) -> Result<Alike, RlweError> {
        let [left, right] = [a, b].map(|side| side.iter().map(|c| c.level).collect::<Vec<_>>());
        let (level, aux, n) = (by.level, by.aux, self.params().degree());
        // All operands over Q·R, before the first tensor product.
        let words = 2 * (left.len() + right.len()) * (level + 1 + aux) * n;
        self.passes_through((words as u64 * 8).saturating_mul(a[0].width as u64));
        let work = |l: &ParamsLiteral| Work::dot_scaled(l, &left, &right, level, aux);
        self.note(a[0], work, |p| p.dot_scaled(&left, &right, level, aux));
        Ok(a[0].at(level, 3))
    }

    fn relinearize(&self, a: &Alike, by: &Divisor<'_>) -> Result<Alike, RlweError> {
        let to = by.level("relinearisation", a.level)?;
        self.relinearises(a.level);
        self.switches(a);
        let work = |l: &ParamsLiteral| match to < a.level {
            true => Work::relinearize_rescale(l, a.level),
            false => Work::key_switch(l, a.level) + Work::passes_at(l, a.level, 2.0),
        };
        self.note(a, work, |p| p.switch(a.level));
        Ok(a.at(to, 2))
    }

    fn divide(&self, a: &Alike, by: &Divisor<'_>) -> Result<Alike, RlweError> {
        let to = by.level("division", a.level)?;
        let work = |l: &ParamsLiteral| match by {
            Divisor::Last => Work::rescale(l, a.level) * (a.parts as f64 / 2.0),
            _ => Work::divide(l, a.level, to) * a.parts as f64,
        };
        self.note(a, work, |p| p.rescales(a.parts, a.level));
        Ok(a.at(to, a.parts))
    }

    fn drop_to(&self, a: &Alike, params: &Params, level: usize) -> Result<Alike, RlweError> {
        let low = if level == a.level && !params.same(&a.params) { a.clone() } else { a.at(level, a.parts) };
        Ok(Alike { params: params.clone(), ..low })
    }

    fn automorphisms(&self, a: &Alike, elements: &[u64]) -> Result<Vec<Alike>, RlweError> {
        self.takes(elements, a.level);
        self.switches(a);
        let images = switched(elements);
        let work = |l: &ParamsLiteral| {
            let each =
                Work::inner_product(l, a.level) + Work::mod_down(l, a.level) * 2.0 + Work::passes_at(l, a.level, 3.0);
            Work::decompose(l, a.level) + each * images as f64
        };
        let counts = |p: Primes<'_>| p.decomposition(a.level) + (p.product(a.level) + p.divisions(2, a.level)) * images;
        self.note(a, work, counts);
        Ok(elements.iter().map(|_| a.at(a.level, 2)).collect())
    }

    fn sum_of_automorphisms(&self, a: &Alike, elements: &[u64], mask: Option<&usize>) -> Result<Alike, RlweError> {
        self.takes(elements, a.level);
        self.switches(a);
        let images = switched(elements);
        let work = |l: &ParamsLiteral| {
            let sum = Work::hoisted_sum(l, a.level, images as f64);
            let divided = Work::mod_down(l, a.level) * 2.0;
            let masked = Work::mul_plain(l, a.level) + divided + Work::passes_at(l, a.level, 2.0);
            sum + if mask.is_some() { masked } else { divided }
        };
        let counts = |p: Primes<'_>| p.decomposition(a.level) + p.product(a.level) * images + p.divisions(2, a.level);
        self.note(a, work, counts);
        Ok(a.at(a.level - usize::from(mask.is_some()), a.parts))
    }

    fn difference_of_automorphisms(&self, a: (&Alike, u64), b: (&Alike, u64)) -> Result<Alike, RlweError> {
        let ((a, e), (_, f)) = (a, b);
        let (elements, level) = ([e, f], a.level);
        self.takes(&elements, level);
        self.switches(a);
        let images = switched(&elements);
        let work = |l: &ParamsLiteral| {
            let one = Work::decompose(l, level) + Work::inner_product(l, level) + Work::passes_at(l, level, 3.0);
            one * images as f64 + Work::mod_down(l, level) * 2.0 + Work::passes_at(l, level, 2.0)
        };
        let counts = |p: Primes<'_>| (p.decomposition(level) + p.product(level)) * images + p.divisions(2, level);
        self.note(a, work, counts);
        Ok(a.at(level, 2))
    }

    fn linear_maps(
        &self,
        sources: &[(&Alike, MapEnd)],
        maps: &[(&MapSteps, &[Vec<()>])],
        by: &Divisor<'_>,
    ) -> Result<Vec<Vec<Alike>>, RlweError> {
        for (a, _) in sources {
            self.switches(a);
            self.note(a, |l| Work::decompose(l, a.level), |p| p.decomposition(a.level));
        }
        let one = |(steps, _): &(&MapSteps, &[Vec<()>])| {
            let made = sources.iter().map(|(a, end)| self.mapped(a, *end, steps, by));
            Ok(made.collect::<Result<Vec<_>, RlweError>>()?.into_iter().flatten().collect())
        };
        maps.iter().map(one).collect()
    }

    fn combinations(&self, sums: &[Combination<'_, Alike, ()>], level: usize) -> Result<Vec<Alike>, RlweError> {
        let one = |sum: &Combination<'_, Alike, ()>| {
            let (products, multiples) = (sum.products.len() as f64, sum.multiples.len() as f64);
            let relinearised = !sum.products.is_empty();
            let like = sum.like.at(level, 2);
            if relinearised {
                self.relinearises(level);
                self.switches(&like);
            }
            let work = |l: &ParamsLiteral| {
                let ended = if relinearised { Work::relinearize_rescale(l, level) } else { Work::rescale(l, level) };
                (Work::tensor(l, level) * products + Work::mul_plain(l, level) * multiples).summed() + ended
            };
            self.note(&like, work, |p| if relinearised { p.switch(level) } else { p.rescales(2, level) });
            like.at(level - 1, 2)
        };
        Ok(sums.iter().map(one).collect())
    }

    fn raise(&self, a: &Alike, by: &Raise) -> Result<Alike, RlweError> {
        let (gate, open, top) = (by.gate.literal(), by.open.literal(), by.top);
        let terms = by.map.as_ref().map_or(1, |map| map.elements.len());
        let work = |_: &ParamsLiteral| {
            let lifted = Work::transforms_at(open, top, 2.0) + Work::passes_at(open, top, 4.0);
            let back = Work::inner_product(open, top) * terms as f64 + Work::mod_down(open, top) * 2.0;
            // A product and a permutation of c_0 for each term, and two permutations of what a key makes of c_1.
            let mapped = by.map.iter().map(|map| {
                let few = Work::transforms_at(open, map.low, 2.0) + Work::passes_at(open, map.low, 2.0 * terms as f64);
                few + Work::passes_at(open, top, 2.0 * terms as f64)
            });
            mapped.fold(Work::key_switch(gate, 0) * by.entries as f64 + lifted + back, |sum, more| sum + more)
        };
        let counts = || {
            let switches = (0..by.entries).map(|_| Primes::of(gate).switch(0)).sum::<Counts>();
            let open = Primes::of(open);
            switches + by.map.as_ref().map_or_else(|| open.raised(top), |map| open.raised_by_map(top, terms, map.low))
        };
        if by.map.is_some() {
            // c_1 and what the map makes of c_0, on their way.
            let over = ((top + 2) * 8 * self.params().degree()) as u64;
            self.passes_through((3 * over).saturating_mul(a.width as u64));
        }
        self.note(a, work, |_| counts());
        Ok(a.at(top, 2))
    }

    fn block_products(&self, left: &[&Alike], right: &[&Alike], blocks: &Blocks) -> Result<Vec<Alike>, RlweError> {
        let (operation, params) = ("block product", self.params());
        let all = || left.iter().chain(right);
        let none = RlweError::Operands { operation, left: 0, right: 0 };
        let (Some(level), Some(like)) = (all().map(|a| a.level).min(), left.first()) else { return Err(none) };
        self.takes(&Blocks::elements(params.degree(), blocks.side).collect::<Vec<_>>(), level);
        if blocks.relinearize {
            self.relinearises(level);
        }
        let literal = params.literal();
        self.noted().work += Work::block_products(literal, level, blocks);
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
}

impl Simulated {
    /// A map of a ciphertext that is decomposed.
    fn mapped(&self, a: &Alike, end: MapEnd, steps: &MapSteps, by: &Divisor<'_>) -> Result<Vec<Alike>, RlweError> {
        let (level, to) = (a.level, by.level("linear map", a.level)?);
        self.takes(&steps.elements(), level);
        if end != MapEnd::Value {
            self.takes(&[self.params().conjugation_element()], level);
        }
        let [babies, roots, giants, rows] = steps.counts();
        // Digits and parts of each root, two sums for each giant step, one to be joined: of a flat map they are not noted.
        let literal = self.params().literal();
        let digits = (level + 1).div_ceil(literal.digit_limbs);
        let over = ((level + 1 + literal.p_bits.len()) * 8 * self.params().degree()) as u64;
        let polys = (steps.roots.len() * (digits + 2) + 2 * steps.giants.len() + 2) as u64;
        if steps.chained {
            self.passes_through((polys * over).saturating_mul(a.width as u64));
        }
        let turns = roots + giants + usize::from(end != MapEnd::Value);
        let work = |l: &ParamsLiteral| {
            let (one, division) = (Work::inner_product(l, level), Work::mod_down(l, level));
            let turn = one + division + Work::decompose(l, level) + Work::passes_at(l, level, 3.0);
            (one + Work::passes_at(l, level, 3.0)) * babies as f64
                + turn * turns as f64
                + Work::mul_plain(l, level) * rows as f64
                + (division * 2.0 + Work::passes_at(l, level, 2.0)) * end.values() as f64
        };
        let counts =
            |p: Primes<'_>| p.product(level) * babies + p.turned(level) * turns + p.divisions(2, level) * end.values();
        self.note(a, work, counts);
        Ok((0..end.values()).map(|_| a.at(to, 2)).collect())
    }
}
