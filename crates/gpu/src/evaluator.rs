//! Computing on batches of ciphertexts: the operations of [`rlwe::Backend`].

use crate::ciphertexts::Ciphertexts;
use crate::error::{Refused, Result};
use crate::keys::{Resident, Which};
use crate::levels::{Level, Switching};
use std::cmp::Ordering::{Equal, Greater, Less};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sudare_cuda::{Batch, CudaError, Device, Pairs};
use sudare_ring::ops::PeriodicPoly;
use sudare_ring::{Coeff, ErrorKind, Eval, Poly, interrupt};
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::KeySource;
use sudare_rlwe::{
    Backend, Blocks, Combination, Context, Cpu, Divisor, MapEnd, MapSteps, Over, Params, Raise, RlweError,
    ScaledProduct, Shaped,
};

/// Evaluates on batches with a server's keys, as the backend of an [`rlwe::Evaluator`] or of a scheme's. Operands are never
/// changed; a result is on the device when its queue comes to it, and nothing here waits for that.
#[derive(Debug)]
pub struct Evaluator {
    device: Device,
    /// Its keys and counters, and what is done by the processor.
    host: Cpu,
    levels: Mutex<HashMap<usize, Arc<Level>>>,
    keys: Mutex<Resident>,
}

/// A polynomial that repeats, over the primes of a level, or these and the special ones.
#[derive(Clone, Debug)]
pub struct Row {
    values: PeriodicPoly,
    level: usize,
    over: Over,
}

impl Row {
    /// All its values, at a level that is no higher.
    fn at(&self, params: &Params, level: usize) -> Result<Poly<Eval>> {
        match self.over {
            Over::Q => Ok(self.values.to_poly(params.q_at(level))),
            Over::QP => Ok(rlwe::narrowed(&self.values.to_poly(params.qp_at(self.level)), params, level)?.into_owned()),
        }
    }
}

/// What has no kernel.
fn no_such_division() -> crate::GpuError {
    let reason = "on a GPU, linear maps are divided by the special primes and the last prime alone; compute this one \
                  on the processor";
    RlweError::Device { reason: reason.into(), kind: ErrorKind::Unsupported }.into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Evaluator {
    /// An evaluator on a device with a server's keys, of which up to `budget` bytes stay on the device.
    pub fn new(device: &Device, keys: impl Into<Arc<dyn KeySource>>, budget: usize) -> Self {
        Self {
            device: device.clone(),
            host: Cpu::new(keys),
            levels: Mutex::default(),
            keys: Mutex::new(Resident::new(budget)),
        }
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        self.host.context().params()
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
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
        ciphertexts.iter().try_for_each(|c| self.host.context().check(*c))?;
        Ciphertexts::from_host(&self.device, ciphertexts)
    }

    /// Refuses batches on another device.
    fn here(&self, a: &Ciphertexts) -> Result<()> {
        interrupt::check();
        match a.parts().device().is(&self.device) {
            true => Ok(()),
            false => Err(CudaError::Mismatch(
                "these ciphertexts are on another device than their evaluator: copy them first",
            )
            .into()),
        }
    }

    /// Part by part; `alone` makes of parts of `b` what they are without some of `a`.
    fn combine(
        &self,
        a: &Ciphertexts,
        b: &Ciphertexts,
        merge: fn(&Batch<Eval>, &Batch<Eval>) -> sudare_cuda::Result<Batch<Eval>>,
        alone: fn(&Batch<Eval>) -> sudare_cuda::Result<Batch<Eval>>,
    ) -> Result<Ciphertexts> {
        let level = a.level().min(b.level());
        let (a, b) = (self.dropped(a, level)?, self.dropped(b, level)?);
        let (x, y) = (a.parts(), b.parts());
        let sum = match x.parts().cmp(&y.parts()) {
            Less => alone(y)?.with_first(&merge(x, &y.parts_of(0..x.parts())?)?)?,
            Equal => merge(x, y)?,
            Greater => x.with_first(&merge(&x.parts_of(0..y.parts())?, y)?)?,
        };
        Ok(a.with(sum, level))
    }

    /// The same phases modulo fewer primes: no words are copied.
    fn dropped(&self, a: &Ciphertexts, level: usize) -> Result<Ciphertexts> {
        self.here(a)?;
        if level == a.level() { Ok(a.clone()) } else { Ok(a.with(a.parts().truncated(level + 1)?, level)) }
    }

    /// One polynomial on the device, for each of `items`.
    fn polynomial(&self, p: &Poly<Eval>, items: usize) -> Result<Batch<Eval>> {
        let p = Batch::<Eval>::from_host(&self.device, p.basis(), &[std::slice::from_ref(p)])?;
        Ok(if items == 1 { p } else { Batch::gather(&vec![(&p, 0); items])? })
    }

    /// A polynomial for every item of a batch, over its primes.
    fn plain(&self, operation: &'static str, a: &Ciphertexts, p: &Poly<Eval>) -> Result<Batch<Eval>> {
        self.here(a)?;
        let limbs = p.basis().len();
        if limbs <= a.level() {
            let (wanted, highest) = (a.level(), limbs.saturating_sub(1));
            return Err(RlweError::NoSuchLevel { operation, wanted, highest }.into());
        }
        match limbs == a.level() + 1 {
            true => self.polynomial(p, a.len()),
            false => self.polynomial(&p.truncated(a.level() + 1), a.len()),
        }
    }

    /// i or −i times every part: X^(±N/2).
    fn imaginary(&self, parts: &Batch<Eval>, minus: bool) -> Result<Batch<Eval>> {
        let basis = parts.basis();
        let mut unit = vec![0; basis.degree()];
        unit[basis.degree() / 2] = if minus { -1 } else { 1 };
        let unit = Poly::<Coeff>::from_signed(basis, &unit).into_eval();
        Ok(parts.mul(&self.polynomial(&unit, parts.len())?.repeated(parts.parts())?)?)
    }

    fn sum_of_products(&self, a: &[&Ciphertexts], b: &[&Ciphertexts], level: usize) -> Result<Batch<Eval>> {
        let down = |side: &[&Ciphertexts]| side.iter().map(|c| self.dropped(c, level)).collect::<Result<Vec<_>>>();
        let (a, b) = (down(a)?, down(b)?);
        if let ([a], [b]) = (a.as_slice(), b.as_slice()) {
            return Ok(a.parts().tensor(b.parts())?);
        }
        let [a, b]: [Vec<&Batch<Eval>>; 2] = [&a, &b].map(|side| side.iter().map(Ciphertexts::parts).collect());
        Ok(Batch::dot(&a, &b)?)
    }

    /// What switches at a level.
    fn with_switching<T>(&self, level: usize, of: impl FnOnce(&Switching) -> Result<T>) -> Result<T> {
        of(self.level(level)?.switching()?)
    }

    /// Three parts to two.
    fn relinearized(&self, parts: &Batch<Eval>, level: usize, rescale: bool) -> Result<Batch<Eval>> {
        let key = self.relin()?;
        self.with_switching(level, |tables| {
            let division = if rescale { tables.with_rescale()? } else { &tables.mod_down };
            Ok(tables.gadget.relinearize(parts, &key, division)?)
        })
    }

    /// P times the sum of images, over Q_l·P.
    fn sum_of_images(&self, a: &Ciphertexts, elements: &[u64]) -> Result<Batch<Eval>> {
        self.here(a)?;
        self.with_switching(a.level(), |tables| {
            let digits = tables.gadget.decompose(a.parts())?;
            let mut sum = None;
            for element in elements {
                let key = self.key_of(*element)?;
                sum = Some(tables.gadget.add_image(&digits, *element, key.as_deref(), sum)?);
            }
            Ok(sum.ok_or(RlweError::Operands { operation: "sum of rotations", left: 0, right: 0 })?)
        })
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

    fn relin(&self) -> Result<Arc<Pairs>> {
        let mut resident = lock(&self.keys);
        match resident.get(Which::Relin) {
            Some(pairs) => Ok(pairs),
            None => resident.load(&self.device, Which::Relin, &*self.host.context().keys().relin()?),
        }
    }

    fn galois(&self, element: u64) -> Result<Arc<Pairs>> {
        let mut resident = lock(&self.keys);
        match resident.get(Which::Galois(element)) {
            Some(pairs) => Ok(pairs),
            None => {
                let key = self.host.context().keys().galois(element, 0)?;
                resident.load(&self.device, Which::Galois(element), key.key())
            }
        }
    }

    /// The key of an automorphism; none of the identity.
    fn key_of(&self, element: u64) -> Result<Option<Arc<Pairs>>> {
        if element == 1 { Ok(None) } else { self.galois(element).map(Some) }
    }

    /// Words of the digits of one item at a level: the largest thing that an operation makes of it.
    fn digit_words(&self, level: usize) -> usize {
        let literal = self.params().literal();
        let limbs = level + 1;
        let digits = limbs.div_ceil(literal.digit_limbs.max(1));
        self.params().degree() * (limbs + digits * (limbs + literal.p_bits.len()))
    }
}

/// Linear maps: P times a ciphertext's parts over Q_l·P until the end, as on the processor.
impl Evaluator {
    /// P times the image of a pair over Q_l·P, again P times a pair: c_1 is divided by P and switched.
    fn turned(&self, tables: &Switching, pair: &Batch<Eval>, element: u64) -> Result<Batch<Eval>> {
        let second = tables.mod_down.apply(&pair.part(1)?)?;
        let switched = tables.gadget.switch(&second, None, &*self.galois(element)?)?;
        Ok(switched.with_first(&switched.part(0)?.add(&pair.part(0)?)?)?.automorphism(element)?)
    }

    /// P times the babies of each root, root after root.
    fn babies(&self, tables: &Switching, a: &Ciphertexts, steps: &MapSteps) -> Result<Vec<Batch<Eval>>> {
        let mut out = Vec::new();
        // c_0 of a root after the first is over Q_l·P; its digits are those of (0, c_1).
        let (mut first, mut digits): (Option<Batch<Eval>>, _) = (None, tables.gadget.decompose(a.parts())?);
        for (r, root) in steps.roots.iter().enumerate() {
            if r > 0 && root.turn != 1 {
                let image = self.baby(tables, &digits, first.as_ref(), root.turn)?;
                let both = tables.mod_down.apply(&image)?;
                let zero = both.part(0)?.sub(&both.part(0)?)?;
                digits = tables.gadget.decompose(&both.with_first(&zero)?)?;
                first = Some(image.part(0)?);
            }
            for element in &root.babies {
                out.push(self.baby(tables, &digits, first.as_ref(), *element)?);
            }
        }
        Ok(out)
    }

    fn baby(
        &self,
        tables: &Switching,
        digits: &sudare_cuda::Digits,
        first: Option<&Batch<Eval>>,
        element: u64,
    ) -> Result<Batch<Eval>> {
        let image = tables.gadget.add_image(digits, element, self.key_of(element)?.as_deref(), None)?;
        let Some(first) = first else { return Ok(image) };
        let own = if element == 1 { first.clone() } else { first.automorphism(element)? };
        Ok(image.with_first(&image.part(0)?.add(&own)?)?)
    }

    /// P times a map.
    fn mapped(
        &self,
        tables: &Switching,
        a: &Ciphertexts,
        (steps, rows): (&MapSteps, &[Vec<Row>]),
    ) -> Result<Batch<Eval>> {
        let babies = self.babies(tables, a, steps)?;
        let mut total: Option<Batch<Eval>> = None;
        for (giant, rows) in steps.giants.iter().zip(rows) {
            let mut diagonals = Vec::with_capacity(rows.len());
            for row in rows {
                diagonals.push(self.polynomial(&row.at(self.params(), a.level())?, a.len())?);
            }
            let babies: Vec<&Batch<Eval>> = giant.babies.iter().map(|baby| &babies[*baby]).collect();
            let here = Batch::dot_plain(&babies, &diagonals.iter().collect::<Vec<_>>())?;
            total = Some(match (total, giant.turn, steps.chained) {
                (None, 1, _) | (None, _, true) => here,
                (None, turn, false) => self.turned(tables, &here, turn)?,
                (Some(before), 1, _) => before.add(&here)?,
                (Some(before), turn, true) => self.turned(tables, &before, turn)?.add(&here)?,
                (Some(before), turn, false) => before.add(&self.turned(tables, &here, turn)?)?,
            });
        }
        Ok(total.ok_or(RlweError::Internal { what: "a linear map without a giant step" })?)
    }

    fn ended(&self, tables: &Switching, pair: &Batch<Eval>, end: MapEnd, by: &Divisor<'_>) -> Result<Vec<Batch<Eval>>> {
        let division = match by {
            Divisor::One => &tables.mod_down,
            Divisor::Last => tables.with_rescale()?,
            Divisor::Above(_) => return Err(no_such_division()),
        };
        if end == MapEnd::Value {
            return Ok(vec![division.apply(pair)?]);
        }
        let conjugate = self.turned(tables, pair, self.params().conjugation_element())?;
        let mut out = vec![division.apply(&pair.add(&conjugate)?)?];
        if end == MapEnd::Parts {
            out.push(division.apply(&self.imaginary(&conjugate.sub(pair)?, false)?)?);
        }
        Ok(out)
    }

    /// A sum before it is relinearised: two parts, or three.
    fn summed(&self, sum: &Combination<'_, Ciphertexts, Row>, level: usize) -> Result<Batch<Eval>> {
        let like = self.dropped(sum.like, level)?;
        let mut total: Option<Batch<Eval>> = None;
        if !sum.products.is_empty() {
            let (a, b): (Vec<_>, Vec<_>) = sum.products.iter().map(|[a, b]| (*a, *b)).unzip();
            let products = self.sum_of_products(&a, &b, level)?;
            total = Some(if sum.factor == 1 { products } else { products.mul_integer(sum.factor as i64)? });
        }
        if !sum.multiples.is_empty() {
            let (mut values, mut rows) = (Vec::new(), Vec::new());
            for (a, row) in &sum.multiples {
                values.push(self.dropped(a, level)?);
                rows.push(self.polynomial(&row.at(self.params(), level)?, like.len())?);
            }
            let values: Vec<_> = values.iter().map(Ciphertexts::parts).collect();
            let term = Batch::dot_plain(&values, &rows.iter().collect::<Vec<_>>())?;
            total = Some(match total {
                Some(sum) if sum.parts() > 2 => sum.with_first(&sum.parts_of(0..2)?.add(&term)?)?,
                Some(sum) => sum.add(&term)?,
                None => term,
            });
        }
        let total = match total {
            Some(total) => total,
            None => like.parts().sub(like.parts())?,
        };
        match sum.constant {
            Some(row) => {
                let row = self.polynomial(&row.at(self.params(), level)?, like.len())?;
                Ok(total.with_first(&total.part(0)?.add(&row)?)?)
            }
            None => Ok(total),
        }
    }

    /// What the processor makes of each item.
    fn on_host(
        &self,
        a: &Ciphertexts,
        work: impl Fn(&rlwe::Ciphertext) -> Refused<rlwe::Ciphertext>,
    ) -> Result<Ciphertexts> {
        let made = a.to_host()?.iter().map(work).collect::<Refused<Vec<_>>>()?;
        Ciphertexts::from_host(&self.device, &made.iter().collect::<Vec<_>>())
    }
}

/// Polynomials go to the device when they are used. The processor raises ciphertexts and multiplies blocks; of BFV and BGV it has
/// the products and the divisions by a scheme's tables.
impl Backend for Evaluator {
    type Ciphertext = Ciphertexts;
    type Plaintext = Poly<Eval>;
    type Row = Row;

    fn context(&self) -> &Context {
        self.host.context()
    }

    fn prepare<E>(
        &self,
        _: usize,
        _: Over,
        make: impl FnOnce() -> std::result::Result<Poly<Eval>, E>,
    ) -> std::result::Result<Poly<Eval>, E> {
        make()
    }

    fn prepare_row<E>(
        &self,
        (level, over): (usize, Over),
        _: usize,
        make: impl FnOnce() -> std::result::Result<PeriodicPoly, E>,
    ) -> std::result::Result<Row, E> {
        Ok(Row { values: make()?, level, over })
    }

    /// As many as one wave of the device has room for.
    fn width(&self, a: &Ciphertexts) -> usize {
        (self.device.wave_items(self.digit_words(a.level())) / a.len().max(1)).max(2)
    }

    fn join(&self, batches: &[&Ciphertexts]) -> Refused<Ciphertexts> {
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

    fn sum(&self, terms: &[(&Ciphertexts, i64)]) -> Refused<Ciphertexts> {
        match terms {
            [(a, value)] => {
                self.here(a)?;
                let parts = if *value == -1 { a.parts().neg() } else { a.parts().mul_integer(*value) };
                Ok(a.with(parts.map_err(crate::GpuError::from)?, a.level()))
            }
            [(a, 1), (b, 1)] => Ok(self.combine(a, b, Batch::add, |b| Ok(b.clone()))?),
            [(a, 1), (b, -1)] => Ok(self.combine(a, b, Batch::sub, Batch::neg)?),
            [a, b] => self.sum(&[(&self.sum(&[*a])?, 1), (&self.sum(&[*b])?, 1)]),
            more => Err(RlweError::Operands { operation: "a sum with weights", left: more.len(), right: 2 }),
        }
    }

    fn mul_imaginary_unit(&self, a: &Ciphertexts, minus: bool) -> Refused<Ciphertexts> {
        self.here(a)?;
        Ok(a.with(self.imaginary(a.parts(), minus)?, a.level()))
    }

    fn add_plain(&self, a: &Ciphertexts, p: &Poly<Eval>, minus: bool) -> Refused<Ciphertexts> {
        let operation = if minus { "subtraction of a plaintext" } else { "addition of a plaintext" };
        let p = self.plain(operation, a, p)?;
        let sum = || -> Result<_> {
            let first = a.parts().part(0)?;
            Ok(a.parts().with_first(&if minus { first.sub(&p)? } else { first.add(&p)? })?)
        };
        Ok(a.with(sum()?, a.level()))
    }

    fn mul_plain(&self, a: &Ciphertexts, p: &Poly<Eval>, rescale: bool) -> Refused<Ciphertexts> {
        let p = self.plain("product with a plaintext", a, p)?;
        let product = || -> Result<_> { Ok(a.parts().mul(&p.repeated(a.parts().parts())?)?) };
        let product = a.with(product()?, a.level());
        if rescale { self.divide(&product, &Divisor::Last) } else { Ok(product) }
    }

    fn dot(&self, a: &[&Ciphertexts], b: &[&Ciphertexts]) -> Refused<Ciphertexts> {
        let level = a.iter().chain(b).map(|c| c.level()).min().unwrap_or(0);
        Ok(a[0].with(self.sum_of_products(a, b, level)?, level))
    }

    fn dot_scaled(&self, a: &[&Ciphertexts], b: &[&Ciphertexts], by: &ScaledProduct<'_>) -> Refused<Ciphertexts> {
        let down = |side: &[&Ciphertexts]| side.iter().map(|a| a.to_host()).collect::<Result<Vec<_>>>();
        let (left, right) = (down(a)?, down(b)?);
        let one = |i: usize| {
            let [l, r] = [&left, &right].map(|side| side.iter().map(|c| &c[i]).collect::<Vec<_>>());
            self.host.dot_scaled(&l, &r, by)
        };
        let made = (0..a[0].len()).map(one).collect::<Refused<Vec<_>>>()?;
        Ok(Ciphertexts::from_host(&self.device, &made.iter().collect::<Vec<_>>())?)
    }

    fn product(&self, a: &Ciphertexts, b: &Ciphertexts, by: &Divisor<'_>) -> Refused<Ciphertexts> {
        let (level, rescale) = (a.level().min(b.level()), matches!(by, Divisor::Last));
        if let Divisor::Above(_) = by {
            return self.relinearize(&self.dot(&[a], &[b])?, by);
        }
        let product = || -> Result<_> {
            let (a, b, key) = (self.dropped(a, level)?, self.dropped(b, level)?, self.relin()?);
            self.with_switching(level, |tables| {
                let division = if rescale { tables.with_rescale()? } else { &tables.mod_down };
                Ok(tables.gadget.product(a.parts(), b.parts(), &key, division)?)
            })
        };
        Ok(a.with(product()?, level - usize::from(rescale)))
    }

    fn relinearize(&self, a: &Ciphertexts, by: &Divisor<'_>) -> Refused<Ciphertexts> {
        self.here(a)?;
        if let Divisor::Above(_) = by {
            return Ok(self.on_host(a, |c| self.host.relinearize(c, by))?);
        }
        let rescale = matches!(by, Divisor::Last);
        Ok(a.with(self.relinearized(a.parts(), a.level(), rescale)?, a.level() - usize::from(rescale)))
    }

    fn divide(&self, a: &Ciphertexts, by: &Divisor<'_>) -> Refused<Ciphertexts> {
        self.here(a)?;
        let last = || -> Result<_> { Ok(self.level(a.level())?.rescale()?.apply(a.parts())?) };
        match by {
            Divisor::One => Ok(a.clone()),
            Divisor::Last => Ok(a.with(last()?, a.level() - 1)),
            Divisor::Above(_) => Ok(self.on_host(a, |c| self.host.divide(c, by))?),
        }
    }

    fn drop_to(&self, a: &Ciphertexts, params: &Params, level: usize) -> Refused<Ciphertexts> {
        let low = self.dropped(a, level)?;
        Ok(if params.same(a.params()) { low } else { low.under(params) })
    }

    fn automorphisms(&self, a: &Ciphertexts, elements: &[u64]) -> Refused<Vec<Ciphertexts>> {
        self.here(a)?;
        if let [element] = elements
            && *element != 1
        {
            let key = self.galois(*element)?;
            let rotated =
                self.with_switching(a.level(), |t| Ok(t.gadget.rotate(a.parts(), *element, &key, &t.mod_down)?))?;
            return Ok(vec![a.with(rotated, a.level())]);
        }
        Ok(self.with_switching(a.level(), |tables| {
            let digits = tables.gadget.decompose(a.parts())?;
            let image = |element: &u64| -> Result<Ciphertexts> {
                let Some(key) = self.key_of(*element)? else { return Ok(a.clone()) };
                let image = tables.gadget.rotate_digits(&digits, *element, &key, &tables.mod_down)?;
                Ok(a.with(image, a.level()))
            };
            elements.iter().map(image).collect()
        })?)
    }

    fn sum_of_automorphisms(
        &self,
        a: &Ciphertexts,
        elements: &[u64],
        mask: Option<&Poly<Eval>>,
    ) -> Refused<Ciphertexts> {
        let mask = mask.map(|p| rlwe::narrowed(p, self.params(), a.level())).transpose()?;
        let sum = self.sum_of_images(a, elements)?;
        let ended = self.with_switching(a.level(), |tables| match &mask {
            None => Ok(tables.mod_down.apply(&sum)?),
            Some(p) => Ok(tables.with_rescale()?.apply(&sum.mul(&self.polynomial(p, a.len())?.repeated(2)?)?)?),
        })?;
        Ok(a.with(ended, a.level() - usize::from(mask.is_some())))
    }

    fn difference_of_automorphisms(&self, a: (&Ciphertexts, u64), b: (&Ciphertexts, u64)) -> Refused<Ciphertexts> {
        let (left, right) = (self.sum_of_images(a.0, &[a.1])?, self.sum_of_images(b.0, &[b.1])?);
        let divided = self.with_switching(a.0.level(), |tables| Ok(tables.mod_down.apply(&left.sub(&right)?)?))?;
        Ok(a.0.with(divided, a.0.level()))
    }

    fn linear_maps(
        &self,
        sources: &[(&Ciphertexts, MapEnd)],
        maps: &[(&MapSteps, &[Vec<Row>])],
        by: &Divisor<'_>,
    ) -> Refused<Vec<Vec<Ciphertexts>>> {
        if let Divisor::Above(_) = by {
            return Err(no_such_division().into());
        }
        let one = |map: &(&MapSteps, &[Vec<Row>])| -> Result<Vec<Ciphertexts>> {
            let mut out = Vec::new();
            for (a, end) in sources {
                self.here(a)?;
                self.with_switching(a.level(), |tables| {
                    let pair = self.mapped(tables, a, *map)?;
                    let made = self.ended(tables, &pair, *end, by)?;
                    let to = by.level("linear map", a.level())?;
                    out.extend(made.into_iter().map(|parts| a.with(parts, to)));
                    Ok(())
                })?;
            }
            Ok(out)
        };
        Ok(maps.iter().map(one).collect::<Result<_>>()?)
    }

    fn combinations(&self, sums: &[Combination<'_, Ciphertexts, Row>], level: usize) -> Refused<Vec<Ciphertexts>> {
        let one = |sum: &Combination<'_, Ciphertexts, Row>| -> Result<Ciphertexts> {
            let parts = self.summed(sum, level)?;
            let made = match sum.products.is_empty() {
                true => self.level(level)?.rescale()?.apply(&parts)?,
                false => self.relinearized(&parts, level, true)?,
            };
            Ok(sum.like.with(made, level - 1))
        };
        Ok(sums.iter().map(one).collect::<Result<_>>()?)
    }

    fn raise(&self, a: &Ciphertexts, by: &Raise) -> Refused<Ciphertexts> {
        self.here(a)?;
        Ok(self.on_host(a, |c| self.host.raise(c, by))?)
    }

    fn block_products(
        &self,
        left: &[&Ciphertexts],
        right: &[&Ciphertexts],
        blocks: &Blocks,
    ) -> Refused<Vec<Ciphertexts>> {
        let down = |side: &[&Ciphertexts]| -> Result<Vec<rlwe::Ciphertext>> {
            let all: Vec<Vec<_>> = side.iter().map(|a| a.to_host()).collect::<Result<_>>()?;
            Ok(all.into_iter().flatten().collect())
        };
        let [left, right] = [down(left)?, down(right)?];
        let [l, r] = [&left, &right].map(|side| side.iter().collect::<Vec<_>>());
        let rows = self.host.block_products(&l, &r, blocks)?;
        Ok(rows.iter().map(|row| Ciphertexts::from_host(&self.device, &[row])).collect::<Result<_>>()?)
    }
}
