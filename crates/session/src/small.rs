//! Encrypted arrays of bits and small integers without a plan: gates, tables, sums and shifts, exact, by tables of CKKS ciphertexts
//! (design note 0037).
//!
//! An array is flat. A ciphertext holds N of its elements, and what is left of it repeats them: an array whose length is a power of
//! two up to N/2 has that period in each half of the slots, so that a rotation of slots shifts it in a circle, and an operand of one element
//! is one of any length.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapParams, Bootstrapper};
use sudare_he::discrete::{
    Choice, Decryptor, Discrete, DiscreteSet, Encryptor, Errors, Evaluator, Forecast, Form, Gate, Layer, Table,
    largest_modulus,
};
use sudare_methods::MatrixError;
use sudare_ring::Threads;
use sudare_ring::wipe::Wiped;
use sudare_rlwe::keys::{KeyGenerator, KeySwitchKey, SecretKey};
use sudare_rlwe::security::Security;
use sudare_rlwe::{KeyId, RlweError};

/// log2 of the ring degree of sets without security.
const INSECURE_LOG_N: u32 = 9;

/// Which set, before there are keys.
#[derive(Clone, Debug)]
pub struct SmallSet {
    name: DiscreteSet,
    params: BootstrapParams,
}

impl SmallSet {
    /// A set of 128 bits of security, or its shape over a small ring without any.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for other bits of security, and for L15, whose values are split.
    pub fn new(name: DiscreteSet, security: Security) -> Result<Self, MatrixError> {
        if name == DiscreteSet::L15 {
            return no_plan("set L15 holds bits in two ciphertexts, for products in Rust; take G15 for bits");
        }
        let literal = match security {
            Security::Insecure => name.literal().insecure(INSECURE_LOG_N)?,
            Security::Bits128 => name.literal(),
            _ => {
                let reason = "the sets for tables have 128 bits of security; ask for 128, or take sudare.bits";
                return no_plan(reason);
            }
        };
        Ok(Self { name, params: literal.build()? })
    }

    /// Its name.
    pub fn name(&self) -> DiscreteSet {
        self.name
    }

    /// The largest modulus of its integers.
    ///
    /// # Errors
    /// None for a set that was made.
    pub fn largest_modulus(&self) -> Result<u64, MatrixError> {
        Ok(largest_modulus(&self.params)?)
    }

    /// Elements of a ciphertext: N.
    pub fn slots(&self) -> usize {
        self.params.params().degree()
    }

    /// Bytes of keys, those for shifts by `rolls` too, of what is prepared, and of a bootstrap's work.
    ///
    /// # Errors
    /// None for a set that was made.
    pub fn memory(&self, rolls: &[i64]) -> Result<u64, MatrixError> {
        let key = KeySwitchKey::bytes_at(&self.params.params().literal().rlwe, self.params.input_level());
        let shifts = (self.steps(rolls).len() * key) as u64;
        Ok(self.params.key_bytes()? + shifts + self.params.diagonal_bytes()? + self.params.working_bytes(1)?)
    }

    /// The rotations to the left, from 1 to N/2 − 1, that shifts take: each once, and none for what moves nothing.
    fn steps(&self, rolls: &[i64]) -> BTreeSet<usize> {
        let half = (self.slots() / 2) as i64;
        rolls.iter().map(|k| (k % half).wrapping_neg().rem_euclid(half) as usize).filter(|steps| *steps > 0).collect()
    }

    /// Bytes of a ciphertext.
    pub fn ciphertext_bytes(&self) -> usize {
        2 * 8 * self.slots() * (self.params.input_level() + 1)
    }
}

/// What there is of an array.
#[derive(Clone)]
enum Held {
    Values(Vec<Discrete>),
    /// No more than is known, and the bootstraps that it takes, each by its number.
    Foreseen(Forecast, BTreeMap<usize, Layer>),
}

/// An encrypted array of bits or of integers modulo t, or the forecast of one.
#[derive(Clone)]
pub struct SmallArray {
    len: usize,
    bits: bool,
    held: Held,
}

impl SmallArray {
    /// Elements.
    #[expect(clippy::len_without_is_empty, reason = "an array has an element")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether its elements are booleans.
    pub fn is_bits(&self) -> bool {
        self.bits
    }

    /// t, least and largest integer that a slot may hold, before it is reduced modulo t, and the errors of slots.
    pub fn known(&self) -> Forecast {
        match &self.held {
            Held::Foreseen(known, _) => *known,
            Held::Values(values) => {
                let all = values.iter().map(Discrete::known);
                let wider = |a: Forecast, b: Forecast| Forecast {
                    range: (a.range.0.min(b.range.0), a.range.1.max(b.range.1)),
                    errors: Errors::larger(a.errors, b.errors),
                    ..a
                };
                // An array has an element, and so a ciphertext.
                all.reduce(wider).unwrap_or(Forecast { modulus: 2, range: (0, 0), errors: Errors::NONE })
            }
        }
    }

    /// The name of the key that it is under; a forecast is under none.
    pub fn key(&self) -> Option<KeyId> {
        match &self.held {
            Held::Values(values) => values.first().map(Discrete::key),
            Held::Foreseen(..) => None,
        }
    }

    /// Ciphertexts.
    pub fn ciphertexts(&self) -> usize {
        match &self.held {
            Held::Values(values) => values.len(),
            Held::Foreseen(..) => 0,
        }
    }

    /// The same elements as integers: bits are 0 and 1.
    #[must_use]
    pub fn integers(&self) -> Self {
        Self { bits: false, ..self.clone() }
    }
}

impl fmt::Debug for SmallArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmallArray({} integers modulo {})", self.len, self.known().modulus)
    }
}

fn no_plan<T>(reason: impl Into<String>) -> Result<T, MatrixError> {
    Err(MatrixError::NoPlan { reason: reason.into() })
}

struct Inner {
    set: SmallSet,
    /// Without keys there are forecasts alone.
    evaluator: Option<Evaluator>,
    /// Rotations to the left that there are keys for, from 1 to N/2 − 1.
    steps: BTreeSet<usize>,
    threads: Arc<Threads>,
    /// Bootstraps of forecasts so far.
    layers: AtomicUsize,
}

/// Computes with evaluation keys; it holds no secret. Cloning shares it.
#[derive(Clone)]
pub struct SmallServer(Arc<Inner>);

impl SmallServer {
    /// A server without keys, for forecasts: what a computation would take, and whether a set has room for it.
    pub fn keyless(set: SmallSet) -> Self {
        Self(Arc::new(Inner {
            set,
            evaluator: None,
            steps: BTreeSet::new(),
            threads: Arc::new(Threads::new(1)),
            layers: AtomicUsize::new(0),
        }))
    }

    /// The set.
    pub fn set(&self) -> &SmallSet {
        &self.0.set
    }

    /// How many threads work.
    pub fn threads(&self) -> usize {
        self.0.threads.count()
    }

    /// Bytes of its keys, and of what is prepared.
    pub fn bytes(&self) -> usize {
        self.0.evaluator.as_ref().map_or(0, Evaluator::bytes)
    }

    fn params(&self) -> &BootstrapParams {
        &self.0.set.params
    }

    fn evaluator(&self) -> Result<&Evaluator, MatrixError> {
        match &self.0.evaluator {
            Some(evaluator) => Ok(evaluator),
            None => no_plan("a server without keys only forecasts; compute on encrypted arrays with their context"),
        }
    }

    /// The forecast of an encrypted array: bits, or integers up to `most`. Without keys it foresees any shift, with keys those
    /// that there are.
    ///
    /// # Errors
    /// [`MatrixError::He`] for a modulus that the set has no room for, or integers that it does not hold; [`MatrixError::NoPlan`] for no
    /// elements.
    pub fn forecast(&self, len: usize, (modulus, most): (u64, u64), bits: bool) -> Result<SmallArray, MatrixError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let known = Forecast::fresh(self.params(), modulus, (0, most))?;
        made(len, bits, Held::Foreseen(known, BTreeMap::new()))
    }

    /// An array that everybody knows, beside an encrypted one or a forecast.
    ///
    /// # Errors
    /// [`MatrixError::He`] for a modulus that the set has no room for, or an integer that is not below it; [`MatrixError::NoPlan`] for no
    /// elements.
    pub fn public(
        &self,
        values: &[u64],
        modulus: u64,
        bits: bool,
        like: &SmallArray,
    ) -> Result<SmallArray, MatrixError> {
        if matches!(like.held, Held::Foreseen(..)) {
            let all = || values.iter().map(|x| i64::try_from(*x).unwrap_or(i64::MAX));
            let range = (all().min().unwrap_or(0), all().max().unwrap_or(0));
            let known = Forecast::public(self.params(), modulus, range)?;
            return made(values.len(), bits, Held::Foreseen(known, BTreeMap::new()));
        }
        let evaluator = self.evaluator()?;
        let one = |chunk: Vec<u64>| evaluator.public(&chunk, modulus);
        let held = self.0.threads.run(|| filled(values, self.set().slots()).map(one).collect::<Result<Vec<_>, _>>())?;
        made(values.len(), bits, Held::Values(held))
    }

    /// The same elements again and again, to a length that is a multiple of theirs. It costs nothing.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] unless its own length is a power of two up to N, and for no elements.
    pub fn repeated(&self, a: &SmallArray, len: usize) -> Result<SmallArray, MatrixError> {
        let slots = self.set().slots();
        if len == a.len {
            return Ok(a.clone());
        }
        if !(a.len.is_power_of_two() && a.len <= slots && len > 0 && len.is_multiple_of(a.len)) {
            return no_plan(format!(
                "{} encrypted elements cannot be repeated to {len}; take a power of two of them, up to {slots}, that \
                 divides it, or repeat them before they are encrypted",
                a.len
            ));
        }
        let held = match &a.held {
            Held::Values(values) => Held::Values(values.iter().cycle().take(len.div_ceil(slots)).cloned().collect()),
            foreseen => foreseen.clone(),
        };
        Ok(SmallArray { len, held, ..*a })
    }

    /// What is made of each ciphertext, or of the forecast.
    fn each(
        &self,
        a: &SmallArray,
        work: impl Fn(&Evaluator, &Discrete) -> Result<Discrete, HeError> + Sync,
        foreseen: impl Fn(Forecast) -> Result<Forecast, HeError>,
    ) -> Result<SmallArray, MatrixError> {
        let held = match &a.held {
            Held::Foreseen(known, layers) => Held::Foreseen(foreseen(*known)?, layers.clone()),
            Held::Values(values) => {
                let evaluator = self.evaluator()?;
                let all = || values.iter().map(|x| work(evaluator, x)).collect::<Result<Vec<_>, _>>();
                Held::Values(self.0.threads.run(all)?)
            }
        };
        Ok(SmallArray { held, ..*a })
    }

    /// What is made of each two ciphertexts, or of two forecasts, as integers.
    fn pairs(
        &self,
        (a, b): (&SmallArray, &SmallArray),
        work: impl Fn(&Evaluator, &Discrete, &Discrete) -> Result<Discrete, HeError> + Sync,
        foreseen: impl Fn(Forecast, Forecast) -> Result<Forecast, HeError>,
    ) -> Result<SmallArray, MatrixError> {
        if a.len != b.len {
            return Err(MatrixError::Count { what: "elements of the second operand", found: b.len, expected: a.len });
        }
        let held = match (&a.held, &b.held) {
            (Held::Values(left), Held::Values(right)) => {
                let evaluator = self.evaluator()?;
                let all = || left.iter().zip(right).map(|(x, y)| work(evaluator, x, y)).collect::<Result<Vec<_>, _>>();
                Held::Values(self.0.threads.run(all)?)
            }
            (Held::Foreseen(x, layers), Held::Foreseen(y, others)) => {
                let all = layers.iter().chain(others).map(|(number, layer)| (*number, *layer));
                Held::Foreseen(foreseen(*x, *y)?, all.collect())
            }
            _ => return no_plan("an encrypted array and a forecast do not go together; give two of one kind"),
        };
        Ok(SmallArray { len: a.len, bits: false, held })
    }

    /// a + b, as integers modulo t.
    ///
    /// # Errors
    /// [`MatrixError::Count`] for arrays of two lengths; [`MatrixError::He`] as [`Evaluator::add`].
    pub fn add(&self, a: &SmallArray, b: &SmallArray) -> Result<SmallArray, MatrixError> {
        self.pairs((a, b), |e, x, y| e.add(x, y), |x, y| x.plus(self.params(), y))
    }

    /// a − b, as integers modulo t.
    ///
    /// # Errors
    /// As [`SmallServer::add`].
    pub fn sub(&self, a: &SmallArray, b: &SmallArray) -> Result<SmallArray, MatrixError> {
        self.pairs((a, b), |e, x, y| e.sub(x, y), |x, y| x.minus(self.params(), y))
    }

    /// factor · a + addend, as integers modulo t.
    ///
    /// # Errors
    /// [`MatrixError::He`] as [`Evaluator::mul_integer`].
    pub fn affine(&self, a: &SmallArray, factor: i64, addend: i64) -> Result<SmallArray, MatrixError> {
        let addend = addend.rem_euclid(a.known().modulus as i64);
        let work = |e: &Evaluator, x: &Discrete| match (factor, addend) {
            (1, 0) => Ok(x.clone()),
            (1, _) => e.add_integer(x, addend),
            (_, 0) => e.mul_integer(x, factor),
            _ => e.add_integer(&e.mul_integer(x, factor)?, addend),
        };
        let out = self.each(a, work, |x| x.times(self.params(), factor)?.shifted(addend))?;
        Ok(SmallArray { bits: false, ..out })
    }

    /// Functions of the elements by one bootstrap of each ciphertext, each with whether its values are booleans.
    ///
    /// # Errors
    /// [`MatrixError::He`] as [`Evaluator::tables`].
    pub fn tables(&self, a: &SmallArray, tables: &[(Table, bool)]) -> Result<Vec<SmallArray>, MatrixError> {
        let functions: Vec<Table> = tables.iter().map(|(table, _)| table.clone()).collect();
        match &a.held {
            Held::Values(values) => {
                let (evaluator, inputs) = (self.evaluator()?, values.iter().collect::<Vec<_>>());
                let found = self.0.threads.run(|| evaluator.tables_many(&inputs, &functions, Form::Packed))?;
                let of = |(i, (_, bits)): (usize, &(Table, bool))| {
                    made(a.len, *bits, Held::Values(found.iter().filter_map(|all| all.get(i).cloned()).collect()))
                };
                tables.iter().enumerate().map(of).collect()
            }
            Held::Foreseen(known, layers) => {
                let changing: Vec<_> = tables.iter().filter(|(table, _)| !table.is_constant()).collect();
                let outputs = changing.iter().map(|(table, bits)| if *bits { 2 } else { table.output() });
                let each = Layer::bootstraps(known.modulus, outputs);
                let layers = self.with_layer(layers.clone(), a.len, (changing.len(), each, false));
                let of = |(table, bits): &(Table, bool)| {
                    let held = Held::Foreseen(known.table(self.params(), table)?, layers.clone());
                    Ok(SmallArray { len: a.len, bits: *bits, held })
                };
                tables.iter().map(of).collect()
            }
        }
    }

    /// One layer more, unless it has no tables.
    fn with_layer(
        &self,
        mut layers: BTreeMap<usize, Layer>,
        values: usize,
        (tables, each, gates): (usize, usize, bool),
    ) -> BTreeMap<usize, Layer> {
        if tables > 0 {
            let ciphertexts = values.div_ceil(self.set().slots());
            let number = self.0.layers.fetch_add(1, Ordering::Relaxed);
            layers.insert(number, Layer { values, ciphertexts, tables, each, gates });
        }
        layers
    }

    /// A gate of bits.
    ///
    /// # Errors
    /// As [`SmallServer::add`]; [`MatrixError::He`] as [`Evaluator::gate`].
    pub fn gate(&self, gate: Gate, a: &SmallArray, b: &SmallArray) -> Result<SmallArray, MatrixError> {
        let params = self.params();
        let mut out = self.pairs((a, b), |e, x, y| e.gate(gate, x, y), |x, y| x.gate(params, gate, y))?;
        if let Held::Foreseen(known, layers) = out.held {
            let layers = self.with_layer(layers, a.len, (usize::from(!gate.is_free()), 1, true));
            out.held = Held::Foreseen(known, layers);
        }
        Ok(SmallArray { bits: true, ..out })
    }

    /// The elements moved up by k places in a circle, as NumPy's `roll` does.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for a length that is no power of two up to N/2; `RlweError::MissingRotationKey`; [`MatrixError::He`] as
    /// [`Evaluator::rotate`].
    pub fn roll(&self, a: &SmallArray, k: i64) -> Result<SmallArray, MatrixError> {
        let half = self.set().slots() / 2;
        if !(a.len.is_power_of_two() && a.len <= half) {
            return no_plan(format!(
                "{} encrypted elements cannot be shifted; take a power of two of them, up to {half}, or shift them \
                 before they are encrypted",
                a.len
            ));
        }
        let len = a.len as i64;
        let wanted = (k % len).wrapping_neg().rem_euclid(len) as usize;
        if wanted == 0 {
            return Ok(a.clone());
        }
        let steps = match &self.0.evaluator {
            None => Some(wanted),
            Some(_) => self.0.steps.iter().copied().find(|steps| steps % a.len == wanted),
        };
        let Some(steps) = steps else {
            let element = self.params().params().rotation_element(wanted as i64);
            return Err(RlweError::MissingRotationKey { step: k, element }.into());
        };
        self.each(a, |e, x| e.rotate(x, steps as i64), |x| x.rotated(self.params()))
    }

    /// What the forecasts take, and what TFHE would take for them.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for an array that is no forecast.
    pub fn choice(&self, results: &[&SmallArray]) -> Result<Choice, MatrixError> {
        let mut all = BTreeMap::new();
        for result in results {
            match &result.held {
                Held::Foreseen(_, layers) => all.extend(layers.iter().map(|(number, layer)| (*number, *layer))),
                Held::Values(_) => return no_plan("an encrypted array is computed already; give a forecast of it"),
            }
        }
        Ok(Choice { set: self.set().name(), layers: all.into_values().collect() })
    }
}

impl fmt::Debug for SmallServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmallServer(set {}, {} threads)", self.set().name(), self.threads())
    }
}

/// Values of one ciphertext after another, each filled up with its own.
fn filled(values: &[u64], slots: usize) -> impl Iterator<Item = Vec<u64>> {
    values.chunks(slots).map(move |chunk| chunk.iter().copied().cycle().take(slots).collect())
}

/// An array of ciphertexts, or the forecast of one.
fn made(len: usize, bits: bool, held: Held) -> Result<SmallArray, MatrixError> {
    if len == 0 {
        return no_plan("an array needs at least one element");
    }
    Ok(SmallArray { len, bits, held })
}

/// Encrypts and decrypts arrays of bits and small integers, and has a server that computes with them, exactly and to any depth. Holds
/// the secret key.
///
/// ```
/// use sudare_he::discrete::{DiscreteSet, Gate, Table};
/// use sudare_rlwe::security::Security;
/// use sudare_session::{SmallContext, SmallSet};
///
/// # fn main() -> Result<(), sudare_methods::MatrixError> {
/// // A small ring is no secure one: Security::Bits128 is.
/// let context = SmallContext::new(SmallSet::new(DiscreteSet::S15, Security::Insecure)?, &[1], 1)?;
/// let server = context.server();
/// let x = context.encrypt(&[3, 5, 15, 0], (16, 15), false)?;
/// let squares = Table::of(16, 16, |x| x * x % 16)?;
/// let odd = Table::of(16, 16, |x| x % 2)?;
/// let [square, odd] = &server.tables(&x, &[(squares, false), (odd, true)])?[..] else { panic!("two tables") };
/// assert_eq!(context.decrypt(square)?, [9, 9, 1, 0]);
/// let shifted = server.roll(odd, 1)?;
/// assert_eq!(context.decrypt(&server.gate(Gate::AND, odd, &shifted)?)?, [0, 1, 1, 0]);
/// # Ok(())
/// # }
/// ```
pub struct SmallContext {
    secret: SecretKey,
    server: SmallServer,
}

impl SmallContext {
    /// A context with new keys, for shifts by `rolls` too, on `threads` threads (0: one for each processor).
    ///
    /// # Errors
    /// [`MatrixError::He`] if the system gives no entropy.
    pub fn new(set: SmallSet, rolls: &[i64], threads: usize) -> Result<Self, MatrixError> {
        let (threads, params) = (Arc::new(Threads::new(threads)), set.params.params());
        let secret = SecretKey::generate(params)?;
        let steps = set.steps(rolls);
        let evaluator = threads.run(|| {
            let keys = BootstrapKeys::generate(&secret, &set.params)?;
            let evaluator = Evaluator::new(Bootstrapper::new(keys, None)?)?;
            let level = set.params.input_level();
            let elements: Vec<_> = steps.iter().map(|steps| (params.rotation_element(*steps as i64), level)).collect();
            match elements.as_slice() {
                [] => Ok(evaluator),
                elements => evaluator.with_keys(KeyGenerator::new(&secret)?.eval_keys(None, elements)?),
            }
        })?;
        let server = SmallServer(Arc::new(Inner {
            evaluator: Some(evaluator),
            steps,
            threads,
            layers: AtomicUsize::new(0),
            set,
        }));
        Ok(Self { secret, server })
    }

    /// The side that computes; it holds no secret. Cloning it shares it.
    pub fn server(&self) -> &SmallServer {
        &self.server
    }

    /// Encrypts integers up to `most` modulo `modulus`, with whether they are booleans. Both numbers are public.
    ///
    /// # Errors
    /// [`MatrixError::OutOfRange`] for a value over `most`, [`MatrixError::NoPlan`] for no values; [`MatrixError::He`] for a modulus that the set has no
    /// room for, or `most` beyond it.
    pub fn encrypt(&self, values: &[u64], (modulus, most): (u64, u64), bits: bool) -> Result<SmallArray, MatrixError> {
        // Refuses both numbers before anything is encrypted.
        self.server.forecast(values.len(), (modulus, most), bits)?;
        if let Some(col) = values.iter().position(|x| *x > most) {
            return Err(MatrixError::OutOfRange { row: 0, col, low: 0, high: most.into() });
        }
        let set = self.server.set();
        let encryptor = Encryptor::with_secret_key(&set.params, &self.secret)?;
        let one = |chunk: Vec<u64>| {
            let chunk = Wiped::from(chunk);
            encryptor.encrypt(&chunk, modulus, Form::Packed)?.within((0, most as i64))
        };
        let all = || filled(values, set.slots()).map(one).collect::<Result<Vec<_>, HeError>>();
        made(values.len(), bits, Held::Values(self.server.0.threads.run(all)?))
    }

    /// Decrypts to integers from 0 to t − 1: exactly those that were computed.
    ///
    /// # Errors
    /// [`MatrixError::He`] for another set or key; [`MatrixError::NoPlan`] for a forecast.
    pub fn decrypt(&self, array: &SmallArray) -> Result<Vec<u64>, MatrixError> {
        let Held::Values(values) = &array.held else {
            return no_plan("a forecast has no values to decrypt; compute with encrypted arrays");
        };
        let decryptor = Decryptor::new(&self.server.set().params, &self.secret)?;
        let all = || values.iter().map(|x| decryptor.decrypt(x)).collect::<Result<Vec<_>, _>>();
        let mut out = self.server.0.threads.run(all)?.concat();
        out.truncate(array.len);
        Ok(out)
    }
}

impl fmt::Debug for SmallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmallContext({:?}, {:?})", self.server, self.secret)
    }
}
