//! Computing on batches of ciphertexts.

use crate::ciphertexts::Ciphertexts;
use crate::error::{Refused, Result};
use crate::keys::{Resident, Which};
use crate::levels::Level;
use std::cmp::Ordering::{Equal, Greater, Less};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sudare_cuda::{Batch, CudaError, Device, Pairs};
use sudare_ring::ops::PeriodicPoly;
use sudare_ring::{Coeff, Eval, Poly, interrupt};
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::KeySource;
use sudare_rlwe::{Backend, Blocks, Counters, MapSteps, Over, Params, RlweError, Shaped};

/// Evaluates on batches with a server's keys. Operands are never changed; a result is on the device when its queue
/// comes to it, and nothing here waits for that.
#[derive(Debug)]
pub struct Evaluator {
    device: Device,
    inner: rlwe::Evaluator,
    levels: Mutex<HashMap<usize, Arc<Level>>>,
    keys: Mutex<Resident>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Evaluator {
    /// An evaluator on a device with a server's keys, of which up to `budget` bytes stay on the device.
    pub fn new(device: &Device, keys: impl Into<Arc<dyn KeySource>>, budget: usize) -> Self {
        Self {
            device: device.clone(),
            inner: rlwe::Evaluator::new(keys),
            levels: Mutex::default(),
            keys: Mutex::new(Resident::new(budget)),
        }
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        self.inner.params()
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Operations done since the start, each ciphertext's counted.
    pub fn counters(&self) -> Counters {
        self.inner.counters()
    }

    /// Bytes of keys that stay on the device, and how many keys were copied there since the start.
    pub fn keys_held(&self) -> (usize, u64) {
        lock(&self.keys).held()
    }

    /// Copies ciphertexts of this evaluator's keys to its device.
    ///
    /// # Errors
    /// As [`Ciphertexts::from_host`].
    pub fn upload(&self, ciphertexts: &[&rlwe::Ciphertext]) -> Result<Ciphertexts> {
        ciphertexts.iter().try_for_each(|c| self.inner.check(c))?;
        Ciphertexts::from_host(&self.device, ciphertexts)
    }

    /// `a + b`, item by item, at the lower of both levels.
    ///
    /// # Errors
    /// [`RlweError::WrongParameters`], [`RlweError::WrongKey`]; [`CudaError`] for other numbers of items, and what the
    /// device refuses.
    pub fn add(&self, a: &Ciphertexts, b: &Ciphertexts) -> Result<Ciphertexts> {
        self.combine(a, b, Batch::add, |b| Ok(b.clone()))
    }

    /// `a − b`, as [`Evaluator::add`].
    ///
    /// # Errors
    /// As there.
    pub fn sub(&self, a: &Ciphertexts, b: &Ciphertexts) -> Result<Ciphertexts> {
        self.combine(a, b, Batch::sub, Batch::neg)
    }

    /// Part by part; `alone` makes of parts of `b` what they are without some of `a`.
    fn combine(
        &self,
        a: &Ciphertexts,
        b: &Ciphertexts,
        merge: fn(&Batch<Eval>, &Batch<Eval>) -> sudare_cuda::Result<Batch<Eval>>,
        alone: fn(&Batch<Eval>) -> sudare_cuda::Result<Batch<Eval>>,
    ) -> Result<Ciphertexts> {
        let (a, b) = self.at_one_level(a, b)?;
        let (x, y) = (a.parts(), b.parts());
        let sum = match x.parts().cmp(&y.parts()) {
            Less => alone(y)?.with_first(&merge(x, &y.parts_of(0..x.parts())?)?)?,
            Equal => merge(x, y)?,
            Greater => x.with_first(&merge(&x.parts_of(0..y.parts())?, y)?)?,
        };
        self.inner.record(Counters { add: a.len() as u64, ..Counters::default() });
        Ok(a.with(sum, a.level()))
    }

    /// `−a`.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn negate(&self, a: &Ciphertexts) -> Result<Ciphertexts> {
        self.check(a)?;
        Ok(a.with(a.parts().neg()?, a.level()))
    }

    /// `a · value`.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn mul_integer(&self, a: &Ciphertexts, value: i64) -> Result<Ciphertexts> {
        self.check(a)?;
        Ok(a.with(a.parts().mul_integer(value)?, a.level()))
    }

    /// Polynomials on the device, for [`Evaluator::add_poly`] and its like: one for each ciphertext of a batch, or one
    /// for all of them.
    ///
    /// # Errors
    /// [`RlweError::Parameters`] for none, [`CudaError`] for polynomials over different primes, and what the device
    /// refuses.
    pub fn upload_polys(&self, polys: &[&Poly<Eval>]) -> Result<Batch<Eval>> {
        let none = || RlweError::Parameters { reason: "at least one polynomial goes to a device".into() };
        let basis = polys.first().ok_or_else(none)?.basis();
        let items: Vec<&[Poly<Eval>]> = polys.iter().map(|p| std::slice::from_ref(*p)).collect();
        Ok(Batch::<Eval>::from_host(&self.device, basis, &items)?)
    }

    /// `a + p` for polynomials over the primes of at least the ciphertexts' level.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; [`RlweError::NoSuchLevel`] for polynomials over fewer primes.
    pub fn add_poly(&self, a: &Ciphertexts, p: &Batch<Eval>) -> Result<Ciphertexts> {
        let p = self.plain("addition of a plaintext", a, p)?;
        let first = a.parts().part(0)?.add(&p)?;
        Ok(a.with(a.parts().with_first(&first)?, a.level()))
    }

    /// `a − p`, as [`Evaluator::add_poly`].
    ///
    /// # Errors
    /// As there.
    pub fn sub_poly(&self, a: &Ciphertexts, p: &Batch<Eval>) -> Result<Ciphertexts> {
        let p = self.plain("subtraction of a plaintext", a, p)?;
        let first = a.parts().part(0)?.sub(&p)?;
        Ok(a.with(a.parts().with_first(&first)?, a.level()))
    }

    /// `a · p`, as [`Evaluator::add_poly`].
    ///
    /// # Errors
    /// As there.
    pub fn mul_poly(&self, a: &Ciphertexts, p: &Batch<Eval>) -> Result<Ciphertexts> {
        let p = self.plain("product with a plaintext", a, p)?.repeated(a.parts().parts())?;
        let product = a.parts().mul(&p)?;
        self.inner.record(Counters { cmult: a.len() as u64, ..Counters::default() });
        Ok(a.with(product, a.level()))
    }

    /// ⌊a / q_l⌉, one level down.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; [`RlweError::OutOfLevels`] at level 0.
    pub fn rescale(&self, a: &Ciphertexts) -> Result<Ciphertexts> {
        self.check(a)?;
        let level = self.level(a.level())?;
        Ok(a.with(level.rescale()?.apply(a.parts())?, a.level() - 1))
    }

    /// The same phases modulo fewer primes: no words are copied.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; [`RlweError::NoSuchLevel`] if `level` is above the ciphertexts'.
    pub fn drop_to(&self, a: &Ciphertexts, level: usize) -> Result<Ciphertexts> {
        self.check(a)?;
        if level > a.level() {
            return Err(
                RlweError::NoSuchLevel { operation: "dropping levels", wanted: level, highest: a.level() }.into()
            );
        }
        if level == a.level() {
            return Ok(a.clone());
        }
        Ok(a.with(a.parts().truncated(level + 1)?, level))
    }

    /// `a · p` rescaled, as [`Evaluator::mul_poly`].
    ///
    /// # Errors
    /// As there, and as [`Evaluator::rescale`].
    pub fn mul_poly_rescale(&self, a: &Ciphertexts, p: &Batch<Eval>) -> Result<Ciphertexts> {
        a.lower("rescale")?;
        self.rescale(&self.mul_poly(a, p)?)
    }

    /// `a · X^(N/2)`, which is i in every slot.
    ///
    /// # Errors
    /// As [`Evaluator::add`].
    pub fn mul_imaginary_unit(&self, a: &Ciphertexts) -> Result<Ciphertexts> {
        self.check(a)?;
        let basis = a.parts().basis();
        let mut unit = vec![0; basis.degree()];
        unit[basis.degree() / 2] = 1;
        let unit = self.upload_polys(&[&Poly::<Coeff>::from_signed(basis, &unit).into_eval()])?;
        let unit = self.plain("product with i", a, &unit)?.repeated(a.parts().parts())?;
        Ok(a.with(a.parts().mul(&unit)?, a.level()))
    }

    /// Σ_i a_i · b_i, item by item, with three parts, at the lowest of all levels.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; [`RlweError::Degree`] for operands of three parts, [`RlweError::Operands`] for none, or
    /// sides of different lengths.
    pub fn dot(&self, a: &[&Ciphertexts], b: &[&Ciphertexts]) -> Result<Ciphertexts> {
        let level = self.check_dot(a, b)?;
        let mut sum: Option<Batch<Eval>> = None;
        for (a, b) in a.iter().zip(b) {
            let product = self.drop_to(a, level)?.parts().tensor(self.drop_to(b, level)?.parts())?;
            sum = Some(match sum {
                Some(sum) => sum.add(&product)?,
                None => product,
            });
        }
        let (Some(first), Some(sum)) = (a.first(), sum) else { unreachable!("a sum of no products") };
        self.inner.record(Counters { add: (a.len() as u64 - 1) * first.len() as u64, ..Counters::default() });
        self.record_products(a.len() * first.len(), 0);
        Ok(first.with(sum, level))
    }

    /// `a · b`, item by item, with three parts.
    ///
    /// # Errors
    /// As [`Evaluator::dot`].
    pub fn mul(&self, a: &Ciphertexts, b: &Ciphertexts) -> Result<Ciphertexts> {
        self.dot(&[a], &[b])
    }

    /// Three parts to two; two stay as they are.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; [`RlweError::MissingRelinKey`], [`RlweError::NoSuchLevel`] if the key does not reach.
    pub fn relinearize(&self, a: &Ciphertexts) -> Result<Ciphertexts> {
        self.check(a)?;
        if a.parts().parts() == 2 {
            return Ok(a.clone());
        }
        let (level, key) = (self.level(a.level())?, self.relin(a.level())?);
        let tables = level.switching()?;
        let out = tables.gadget.relinearize(a.parts(), &key, &tables.mod_down)?;
        self.record_products(0, a.len());
        Ok(a.with(out, a.level()))
    }

    /// Relinearise and rescale with one division by P·q_l.
    ///
    /// # Errors
    /// As [`Evaluator::relinearize`] and [`Evaluator::rescale`].
    pub fn relinearize_rescale(&self, a: &Ciphertexts) -> Result<Ciphertexts> {
        let lower = a.lower("rescale")?;
        self.check(a)?;
        if a.polynomials() == 2 {
            return self.rescale(a);
        }
        let (level, key) = (self.level(a.level())?, self.relin(a.level())?);
        let tables = level.switching()?;
        let out = tables.gadget.relinearize(a.parts(), &key, tables.with_rescale()?)?;
        self.record_products(0, a.len());
        Ok(a.with(out, lower))
    }

    /// Products, relinearised: five launches for all.
    ///
    /// # Errors
    /// As [`Evaluator::mul`] and [`Evaluator::relinearize`].
    pub fn mul_relin(&self, a: &Ciphertexts, b: &Ciphertexts) -> Result<Ciphertexts> {
        let (a, b) = self.factors(a, b)?;
        let (level, key) = (self.level(a.level())?, self.relin(a.level())?);
        let tables = level.switching()?;
        let out = tables.gadget.product(a.parts(), b.parts(), &key, &tables.mod_down)?;
        self.record_products(a.len(), a.len());
        Ok(a.with(out, a.level()))
    }

    /// Products, relinearised and rescaled with one division: five launches for all.
    ///
    /// # Errors
    /// As [`Evaluator::mul_relin`]; [`RlweError::OutOfLevels`] at level 0.
    pub fn mul_rescale(&self, a: &Ciphertexts, b: &Ciphertexts) -> Result<Ciphertexts> {
        let (a, b) = self.factors(a, b)?;
        let (level, key) = (self.level(a.level())?, self.relin(a.level())?);
        let tables = level.switching()?;
        let out = tables.gadget.product(a.parts(), b.parts(), &key, tables.with_rescale()?)?;
        self.record_products(a.len(), a.len());
        Ok(a.with(out, a.level() - 1))
    }

    /// The automorphism X → X^element of every item; `step` only names it in errors.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; [`RlweError::MissingRotationKey`], [`RlweError::NoSuchLevel`] if the key does not reach,
    /// [`RlweError::Degree`] for items of three parts.
    pub fn automorphism(&self, a: &Ciphertexts, element: u64, step: i64) -> Result<Ciphertexts> {
        self.check_two_parts("rotation", a)?;
        if element == 1 {
            return Ok(a.clone());
        }
        let (level, key) = (self.level(a.level())?, self.galois(element, step, a.level())?);
        let tables = level.switching()?;
        let out = tables.gadget.rotate(a.parts(), element, &key, &tables.mod_down)?;
        self.inner.record(Counters::rotations(a.len()));
        Ok(a.with(out, a.level()))
    }

    /// Rotates the slots of every item left by `step`.
    ///
    /// # Errors
    /// As [`Evaluator::automorphism`].
    pub fn rotate(&self, a: &Ciphertexts, step: i64) -> Result<Ciphertexts> {
        self.automorphism(a, self.params().rotation_element(step), step)
    }

    /// Many rotations of every item with one decomposition: a batch for each step.
    ///
    /// # Errors
    /// As [`Evaluator::automorphism`], before any work.
    pub fn rotate_many(&self, a: &Ciphertexts, steps: &[i64]) -> Result<Vec<Ciphertexts>> {
        self.check_two_parts("hoisting", a)?;
        let elements: Vec<u64> = steps.iter().map(|step| self.params().rotation_element(*step)).collect();
        self.inner.check_keys(&elements, a.level())?;
        let level = self.level(a.level())?;
        let tables = level.switching()?;
        let digits = tables.gadget.decompose(a.parts())?;
        let rotate = |(element, step): (&u64, &i64)| -> Result<Ciphertexts> {
            if *element == 1 {
                return Ok(a.clone());
            }
            let key = self.galois(*element, *step, a.level())?;
            let out = tables.gadget.rotate_digits(&digits, *element, &key, &tables.mod_down)?;
            self.inner.record(Counters::rotations(a.len()));
            Ok(a.with(out, a.level()))
        };
        elements.iter().zip(steps).map(rotate).collect()
    }

    /// The sum of every item's images under automorphisms, with one decomposition and one division by P for all.
    /// Element 1 is the item itself.
    ///
    /// # Errors
    /// As [`Evaluator::automorphism`], before any work; [`RlweError::Operands`] without elements.
    pub fn sum_of_automorphisms(&self, a: &Ciphertexts, elements: &[u64]) -> Result<Ciphertexts> {
        let sum = self.sum_of_images(a, elements)?;
        Ok(a.with(self.level(a.level())?.switching()?.mod_down.apply(&sum)?, a.level()))
    }

    /// p ⊙ that sum, rescaled, for one polynomial over Q_l·P or one for each item: one division by P·q_l.
    ///
    /// # Errors
    /// As [`Evaluator::sum_of_automorphisms`]; [`RlweError::OutOfLevels`] at level 0, [`RlweError::Parameters`] for
    /// polynomials over other primes.
    pub fn sum_of_automorphisms_mul_rescale(
        &self,
        a: &Ciphertexts,
        elements: &[u64],
        p: &Batch<Eval>,
    ) -> Result<Ciphertexts> {
        let lower = a.lower("masked sum of rotations")?;
        self.check_two_parts("sum of rotations", a)?;
        if p.basis() != self.params().qp_at(a.level()) {
            let reason = "what multiplies a sum of rotations before its division is over Q_l·P".into();
            return Err(RlweError::Parameters { reason }.into());
        }
        let level = self.level(a.level())?;
        let sum = self.sum_of_images(a, elements)?;
        let sum = sum.mul(&for_each_item(p, a.len())?.repeated(2)?)?;
        self.inner.record(Counters { cmult: a.len() as u64, ..Counters::default() });
        Ok(a.with(level.switching()?.with_rescale()?.apply(&sum)?, lower))
    }

    /// P times the sum of images, over Q_l·P.
    fn sum_of_images(&self, a: &Ciphertexts, elements: &[u64]) -> Result<Batch<Eval>> {
        let operation = "sum of rotations";
        self.check_two_parts(operation, a)?;
        self.inner.check_keys(elements, a.level())?;
        let level = self.level(a.level())?;
        let tables = level.switching()?;
        let digits = tables.gadget.decompose(a.parts())?;
        let mut sum = None;
        for element in elements {
            let key = match element {
                1 => None,
                _ => Some(self.galois(*element, 0, a.level())?),
            };
            sum = Some(tables.gadget.add_image(&digits, *element, key.as_deref(), sum)?);
        }
        let sum = sum.ok_or(RlweError::Operands { operation, left: 0, right: 0 })?;
        let switched = elements.iter().filter(|e| **e != 1).count();
        self.inner.record(Counters::rotations(switched * a.len()));
        self.inner.record(Counters { add: ((elements.len() - 1) * a.len()) as u64, ..Counters::default() });
        Ok(sum)
    }

    /// Refuses batches of other parameters, under another key, or on another device.
    fn check(&self, a: &Ciphertexts) -> Result<()> {
        interrupt::check();
        self.params().expect("the ciphertext", a.params())?;
        self.inner.keys().id().expect("the ciphertext", a.key())?;
        match a.parts().device().is(&self.device) {
            true => Ok(()),
            false => Err(CudaError::Mismatch("these ciphertexts are on another device than their evaluator").into()),
        }
    }

    fn at_one_level(&self, a: &Ciphertexts, b: &Ciphertexts) -> Result<(Ciphertexts, Ciphertexts)> {
        let level = a.level().min(b.level());
        Ok((self.drop_to(a, level)?, self.drop_to(b, level)?))
    }

    fn factors(&self, a: &Ciphertexts, b: &Ciphertexts) -> Result<(Ciphertexts, Ciphertexts)> {
        self.check_two_parts("product", a)?;
        self.check_two_parts("product", b)?;
        self.at_one_level(a, b)
    }

    /// A polynomial for every item of a batch, over its primes.
    fn plain(&self, operation: &'static str, a: &Ciphertexts, p: &Batch<Eval>) -> Result<Batch<Eval>> {
        self.check(a)?;
        let limbs = p.basis().len();
        if limbs <= a.level() {
            let (wanted, highest) = (a.level(), limbs.saturating_sub(1));
            return Err(RlweError::NoSuchLevel { operation, wanted, highest }.into());
        }
        let p = if limbs == a.level() + 1 { p.clone() } else { p.truncated(a.level() + 1)? };
        for_each_item(&p, a.len())
    }

    /// The tables of a level, made when it is first asked for.
    fn level(&self, level: usize) -> Result<Arc<Level>> {
        let mut levels = lock(&self.levels);
        if let Some(known) = levels.get(&level) {
            return Ok(known.clone());
        }
        let made = Arc::new(Level::new(&self.device, self.params(), level)?);
        levels.insert(level, made.clone());
        Ok(made)
    }

    fn relin(&self, level: usize) -> Result<Arc<Pairs>> {
        self.inner.check_relin(level)?;
        let mut resident = lock(&self.keys);
        match resident.get(Which::Relin) {
            Some(pairs) => Ok(pairs),
            None => {
                let key = self.inner.keys().relin()?;
                resident.load(&self.device, Which::Relin, &key)
            }
        }
    }

    fn galois(&self, element: u64, step: i64, level: usize) -> Result<Arc<Pairs>> {
        let keys = self.inner.keys();
        let highest = keys.galois_level(element).ok_or(RlweError::MissingRotationKey { step, element })?;
        if level > highest {
            return Err(RlweError::NoSuchLevel { operation: "rotation", wanted: level, highest }.into());
        }
        let mut resident = lock(&self.keys);
        match resident.get(Which::Galois(element)) {
            Some(pairs) => Ok(pairs),
            None => resident.load(&self.device, Which::Galois(element), keys.galois(element, step)?.key()),
        }
    }

    fn record_products(&self, products: usize, switched: usize) {
        let (mult, relin) = (products as u64, switched as u64);
        self.inner.record(Counters { mult, relin, key_switches: relin, ..Counters::default() });
    }

    /// Words of the digits of one item at a level: the largest thing that an operation makes of it.
    fn digit_words(&self, level: usize) -> usize {
        let literal = self.params().literal();
        let limbs = level + 1;
        let digits = limbs.div_ceil(literal.digit_limbs.max(1));
        self.params().degree() * (limbs + digits * (limbs + literal.p_bits.len()))
    }
}

/// One polynomial for each item, from that or from one for all.
fn for_each_item(p: &Batch<Eval>, items: usize) -> Result<Batch<Eval>> {
    match p.len() == 1 && items != 1 {
        true => Ok(Batch::gather(&vec![(p, 0); items])?),
        false => Ok(p.clone()),
    }
}

/// What the processor's evaluator does, for batches: polynomials go to the device when they are used.
impl Backend for Evaluator {
    type Ciphertext = Ciphertexts;
    type Plaintext = Poly<Eval>;

    fn prepare<E>(
        &self,
        _: usize,
        _: Over,
        make: impl FnOnce() -> std::result::Result<Poly<Eval>, E>,
    ) -> std::result::Result<Poly<Eval>, E> {
        make()
    }

    fn narrowed<'p>(&self, p: &'p Poly<Eval>, from: usize, level: usize) -> std::borrow::Cow<'p, Poly<Eval>> {
        rlwe::narrowed(p, from, level)
    }

    type Row = PeriodicPoly;

    fn prepare_row<E>(
        &self,
        _: usize,
        _: usize,
        make: impl FnOnce() -> std::result::Result<PeriodicPoly, E>,
    ) -> std::result::Result<PeriodicPoly, E> {
        make()
    }

    fn linear_maps(&self, a: &Ciphertexts, _: &[(&MapSteps, &[Vec<PeriodicPoly>])]) -> Refused<Vec<Ciphertexts>> {
        Err(RlweError::Operands { operation: "a linear map on a device", left: a.len(), right: 0 })
    }

    fn block_products(&self, a: &[&Ciphertexts], _: &[&Ciphertexts], _: &Blocks) -> Refused<Vec<Ciphertexts>> {
        Err(RlweError::Operands { operation: "a product of blocks on a device", left: a.len(), right: 0 })
    }

    fn keys(&self) -> &Arc<dyn KeySource> {
        self.inner.keys()
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }

    fn reset_counters(&self) {
        self.inner.reset_counters();
    }

    fn record(&self, done: Counters) {
        self.inner.record(done);
    }

    fn check(&self, a: &Ciphertexts) -> Refused<()> {
        Ok(self.check(a)?)
    }

    fn check_keys(&self, elements: &[u64], level: usize) -> Refused<()> {
        self.inner.check_keys(elements, level)
    }

    fn check_relin(&self, level: usize) -> Refused<()> {
        self.inner.check_relin(level)
    }

    fn add(&self, a: &Ciphertexts, b: &Ciphertexts) -> Refused<Ciphertexts> {
        Ok(self.add(a, b)?)
    }

    fn sub(&self, a: &Ciphertexts, b: &Ciphertexts) -> Refused<Ciphertexts> {
        Ok(self.sub(a, b)?)
    }

    fn add_assign(&self, acc: &mut Ciphertexts, b: &Ciphertexts) -> Refused<()> {
        *acc = self.add(acc, b)?;
        Ok(())
    }

    fn negate(&self, a: &Ciphertexts) -> Refused<Ciphertexts> {
        Ok(self.negate(a)?)
    }

    fn add_poly(&self, a: &Ciphertexts, p: &Poly<Eval>) -> Refused<Ciphertexts> {
        Ok(self.add_poly(a, &self.upload_polys(&[p])?)?)
    }

    fn sub_poly(&self, a: &Ciphertexts, p: &Poly<Eval>) -> Refused<Ciphertexts> {
        Ok(self.sub_poly(a, &self.upload_polys(&[p])?)?)
    }

    fn mul_poly(&self, a: &Ciphertexts, p: &Poly<Eval>) -> Refused<Ciphertexts> {
        Ok(self.mul_poly(a, &self.upload_polys(&[p])?)?)
    }

    fn mul_poly_rescale(&self, a: &Ciphertexts, p: &Poly<Eval>) -> Refused<Ciphertexts> {
        Ok(self.mul_poly_rescale(a, &self.upload_polys(&[p])?)?)
    }

    fn mul_imaginary_unit(&self, a: &Ciphertexts) -> Refused<Ciphertexts> {
        Ok(self.mul_imaginary_unit(a)?)
    }

    fn mul_integer(&self, a: &Ciphertexts, value: i64) -> Refused<Ciphertexts> {
        Ok(self.mul_integer(a, value)?)
    }

    fn rescale(&self, a: &Ciphertexts) -> Refused<Ciphertexts> {
        Ok(self.rescale(a)?)
    }

    fn drop_to(&self, a: &Ciphertexts, level: usize) -> Refused<Ciphertexts> {
        Ok(self.drop_to(a, level)?)
    }

    fn dot(&self, a: &[&Ciphertexts], b: &[&Ciphertexts]) -> Refused<Ciphertexts> {
        Ok(self.dot(a, b)?)
    }

    fn relinearize(&self, a: &Ciphertexts) -> Refused<Ciphertexts> {
        Ok(self.relinearize(a)?)
    }

    fn relinearize_rescale(&self, a: &Ciphertexts) -> Refused<Ciphertexts> {
        Ok(self.relinearize_rescale(a)?)
    }

    fn automorphism(&self, a: &Ciphertexts, element: u64, step: i64) -> Refused<Ciphertexts> {
        Ok(self.automorphism(a, element, step)?)
    }

    fn rotate_many(&self, a: &Ciphertexts, steps: &[i64]) -> Refused<Vec<Ciphertexts>> {
        Ok(self.rotate_many(a, steps)?)
    }

    fn sum_of_automorphisms(&self, a: &Ciphertexts, elements: &[u64]) -> Refused<Ciphertexts> {
        Ok(self.sum_of_automorphisms(a, elements)?)
    }

    fn sum_of_automorphisms_mul_rescale(
        &self,
        a: &Ciphertexts,
        elements: &[u64],
        mask: &Poly<Eval>,
    ) -> Refused<Ciphertexts> {
        Ok(self.sum_of_automorphisms_mul_rescale(a, elements, &self.upload_polys(&[mask])?)?)
    }

    /// As many as one wave of the device has room for.
    fn together(&self, a: &Ciphertexts) -> usize {
        (self.device.wave_items(self.digit_words(a.level())) / a.len().max(1)).max(2)
    }

    fn gather(&self, batches: &[&Ciphertexts]) -> Refused<Ciphertexts> {
        let (operation, left) = ("a batch of batches", batches.first().map_or(0, |batch| batch.len()));
        if let Some(other) = batches.iter().find(|batch| batch.len() != left) {
            return Err(RlweError::Operands { operation, left, right: other.len() });
        }
        let items: Vec<_> = batches.iter().flat_map(|batch| (0..batch.len()).map(|i| (*batch, i))).collect();
        Ok(Ciphertexts::gather(&items)?)
    }

    fn split(&self, batch: &Ciphertexts, count: usize) -> Refused<Vec<Ciphertexts>> {
        if count == 0 || !batch.len().is_multiple_of(count) {
            return Err(RlweError::Operands { operation: "parts of a batch", left: batch.len(), right: count });
        }
        let each = batch.len() / count;
        let part = |k: usize| Ciphertexts::gather(&(k * each..(k + 1) * each).map(|i| (batch, i)).collect::<Vec<_>>());
        Ok((0..count).map(part).collect::<Result<_>>()?)
    }
}
