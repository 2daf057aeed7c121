//! Computing on batches of ciphertexts.

use crate::ciphertexts::Ciphertexts;
use crate::error::Result;
use crate::keys::{Resident, Which};
use crate::levels::Level;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sudare_cuda::{Batch, CudaError, Device, Pairs};
use sudare_ring::{Eval, Poly};
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::KeySource;
use sudare_rlwe::{Counters, Params, RlweError};

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
    /// [`RlweError::WrongParameters`], [`RlweError::WrongKey`]; [`CudaError`] for other numbers of items or parts, and
    /// what the device refuses.
    pub fn add(&self, a: &Ciphertexts, b: &Ciphertexts) -> Result<Ciphertexts> {
        self.combine(a, b, Batch::add)
    }

    /// `a − b`, as [`Evaluator::add`].
    ///
    /// # Errors
    /// As there.
    pub fn sub(&self, a: &Ciphertexts, b: &Ciphertexts) -> Result<Ciphertexts> {
        self.combine(a, b, Batch::sub)
    }

    fn combine(
        &self,
        a: &Ciphertexts,
        b: &Ciphertexts,
        work: fn(&Batch<Eval>, &Batch<Eval>) -> sudare_cuda::Result<Batch<Eval>>,
    ) -> Result<Ciphertexts> {
        let (a, b) = self.at_one_level(a, b)?;
        let sum = work(a.parts(), b.parts())?;
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

    /// `a · b`, item by item, with three parts.
    ///
    /// # Errors
    /// As [`Evaluator::add`]; [`RlweError::Degree`] for operands of three parts.
    pub fn mul(&self, a: &Ciphertexts, b: &Ciphertexts) -> Result<Ciphertexts> {
        let (a, b) = self.factors(a, b)?;
        let product = a.parts().tensor(b.parts())?;
        self.record_products(a.len(), false);
        Ok(a.with(product, a.level()))
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
        let items = a.len() as u64;
        self.inner.record(Counters { relin: items, key_switches: items, ..Counters::default() });
        Ok(a.with(out, a.level()))
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
        self.record_products(a.len(), true);
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
        let none = RlweError::OutOfLevels { operation: "rescale", needed: 1, level: 0 };
        let division = tables.mod_down_rescale.as_ref().ok_or(none)?;
        let out = tables.gadget.product(a.parts(), b.parts(), &key, division)?;
        self.record_products(a.len(), true);
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
        Ok(a.with(tables.mod_down.apply(&sum)?, a.level()))
    }

    /// Refuses batches of other parameters, under another key, or on another device.
    fn check(&self, a: &Ciphertexts) -> Result<()> {
        self.params().expect("the ciphertext", a.params())?;
        self.inner.keys().id().expect("the ciphertext", a.key())?;
        match a.parts().device().is(&self.device) {
            true => Ok(()),
            false => Err(CudaError::Mismatch("these ciphertexts are on another device than their evaluator").into()),
        }
    }

    fn check_two_parts(&self, operation: &'static str, a: &Ciphertexts) -> Result<()> {
        self.check(a)?;
        match a.parts().parts() {
            2 => Ok(()),
            found => Err(RlweError::Degree { operation, expected: 2, found }.into()),
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
        if p.len() == 1 && a.len() != 1 {
            return Ok(Batch::gather(&vec![(&p, 0); a.len()])?);
        }
        Ok(p)
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

    fn record_products(&self, items: usize, relinearized: bool) {
        let items = items as u64;
        let switched = if relinearized { items } else { 0 };
        self.inner.record(Counters { mult: items, relin: switched, key_switches: switched, ..Counters::default() });
    }
}
