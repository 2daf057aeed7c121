//! Batches: polynomials of one basis on a device.

use crate::arena::Memory;
use crate::device::Device;
use crate::error::{CudaError, Result};
use crate::tables::Primes;
use bytemuck::NoUninit;
use std::marker::PhantomData;
use std::sync::Arc;
use sudare_ring::{Coeff, Eval, Poly, RnsBasis};

/// Twin of `Rows` in `dialect.cuh`: where polynomial number i of a launch stands.
#[derive(Clone, Copy, Debug, NoUninit)]
#[repr(C)]
pub(crate) struct Rows {
    pub table: u64,
    pub base: u64,
    pub stride: u64,
    pub first: u32,
    pub step: u32,
}

impl Rows {
    /// Polynomials `stride` words apart.
    pub(crate) fn even(memory: &Memory, stride: usize) -> Self {
        Self { table: 0, base: memory.address(), stride: stride as u64, first: 0, step: 1 }
    }

    /// None: for an operand that a launch does not read.
    pub(crate) fn none() -> Self {
        Self { table: 0, base: 0, stride: 0, first: 0, step: 0 }
    }

    /// Those from number `first` on.
    pub(crate) fn from(self, first: usize) -> Self {
        Self { first: self.first + self.step * first as u32, ..self }
    }

    /// Every `step`-th.
    pub(crate) fn every(self, step: usize) -> Self {
        Self { step: self.step * step as u32, ..self }
    }
}

/// Items of some polynomials each (the parts of a ciphertext, say), all over one basis and in one form, on a device.
/// Residues in `[0, q)`, limb after limb, in the order of [`Poly`].
///
/// Clones and selections share the memory; it is used again when the last of them is dropped.
#[derive(Clone, Debug)]
pub struct Batch<F> {
    device: Device,
    basis: RnsBasis,
    primes: Primes,
    parts: usize,
    items: usize,
    places: Places,
    form: PhantomData<F>,
}

/// Where the polynomials of a batch are.
#[derive(Clone, Debug)]
enum Places {
    /// One after the other.
    Even(Arc<Memory>),
    /// In which memory, from which word on; and their addresses in a table on the device.
    Scattered(Arc<[(Arc<Memory>, usize)]>, Arc<Memory>),
}

impl<F> Batch<F> {
    /// Items of unspecified content, to be overwritten.
    pub(crate) fn dirty(
        device: &Device,
        basis: &RnsBasis,
        primes: &Primes,
        parts: usize,
        items: usize,
    ) -> Result<Self> {
        let words = basis.degree() * basis.len();
        let places = Places::Even(device.core().memory(words * parts * items)?);
        Ok(Self {
            device: device.clone(),
            basis: basis.clone(),
            primes: primes.clone(),
            parts,
            items,
            places,
            form: PhantomData,
        })
    }

    /// A batch of the same shape as this one, with other parts.
    pub(crate) fn like<G>(&self, parts: usize) -> Result<Batch<G>> {
        Batch::dirty(&self.device, &self.basis, &self.primes, parts, self.items)
    }

    /// Copies words to the device: those of all polynomials, one after the other.
    fn upload(device: &Device, basis: &RnsBasis, parts: usize, words: &[&[u64]]) -> Result<Self> {
        let primes = Primes::new(device, basis)?;
        let out = Self::dirty(device, basis, &primes, parts, words.len() / parts.max(1))?;
        for (i, words) in words.iter().enumerate() {
            // SAFETY: each polynomial has its place in the memory, of N words a limb.
            unsafe { device.core().driver().upload(out.address(i), words) }?;
        }
        Ok(out)
    }

    fn upload_polynomials<G: Words>(device: &Device, basis: &RnsBasis, items: &[&[G]]) -> Result<Self> {
        let parts = items.first().map_or(1, |item| item.len());
        let fits = |item: &&[G]| item.len() == parts && item.iter().all(|p| p.basis() == basis);
        if parts == 0 || !items.iter().all(fits) {
            return Err(CudaError::Mismatch(
                "the items of a batch have equally many polynomials, all over the batch's primes",
            ));
        }
        let words: Vec<&[u64]> = items.iter().flat_map(|item| item.iter().map(Words::words)).collect();
        Self::upload(device, basis, parts, &words)
    }

    /// The words of polynomial `part` of item `item`, copied back; waits for what is still being computed.
    fn download(&self, item: usize, part: usize, words: &mut [u64]) -> Result<()> {
        let (memory, at) = self.place(item * self.parts + part);
        memory.download(at, words)
    }

    /// The memory of polynomial `i`, and its first word there.
    fn place(&self, i: usize) -> (&Arc<Memory>, usize) {
        match &self.places {
            Places::Even(memory) => (memory, i * self.basis.degree() * self.basis.len()),
            Places::Scattered(places, _) => (&places[i].0, places[i].1),
        }
    }

    /// Some items, of this and other batches alike it, as one batch: no words are copied, only addresses.
    ///
    /// # Errors
    /// [`CudaError::Mismatch`] for batches of other shapes or devices or an item that there is not,
    /// [`CudaError::OutOfMemory`].
    pub fn gather(items: &[(&Self, usize)]) -> Result<Self> {
        let Some((first, _)) = items.first() else {
            return Err(CudaError::Mismatch("a batch of no items has no basis: gather at least one"));
        };
        for (batch, item) in items {
            first.expect_like(batch)?;
            if *item >= batch.items {
                return Err(CudaError::Mismatch("a batch has no item of this number; items are counted from 0"));
            }
        }
        let polynomials = items
            .iter()
            .flat_map(|(batch, item)| (item * batch.parts..(item + 1) * batch.parts).map(|i| batch.owned_place(i)));
        first.view(&first.basis, &first.primes, first.parts, polynomials.collect())
    }

    /// Polynomials that stand in some places, `parts` to an item, of this batch's device and form.
    fn view(&self, basis: &RnsBasis, primes: &Primes, parts: usize, places: Vec<(Arc<Memory>, usize)>) -> Result<Self> {
        let addresses: Vec<u64> = places.iter().map(|(memory, at)| memory.address() + 8 * *at as u64).collect();
        let table = self.device.core().upload(&addresses)?;
        Ok(Self {
            device: self.device.clone(),
            basis: basis.clone(),
            primes: primes.clone(),
            parts,
            items: places.len() / parts,
            places: Places::Scattered(places.into(), table),
            form: PhantomData,
        })
    }

    fn owned_place(&self, i: usize) -> (Arc<Memory>, usize) {
        let (memory, at) = self.place(i);
        (memory.clone(), at)
    }

    /// Part `part` of every item, as items of one part: no words are copied.
    ///
    /// # Errors
    /// [`CudaError::Mismatch`] for a part that there is not, [`CudaError::OutOfMemory`].
    pub fn part(&self, part: usize) -> Result<Self> {
        self.parts_of(part..part + 1)
    }

    /// Parts `range` of every item: no words are copied.
    ///
    /// # Errors
    /// [`CudaError::Mismatch`] for parts that there are not, or none, [`CudaError::OutOfMemory`].
    pub fn parts_of(&self, range: std::ops::Range<usize>) -> Result<Self> {
        if range.is_empty() || range.end > self.parts {
            return Err(CudaError::Mismatch("a batch's items have no part of this number; parts are counted from 0"));
        }
        let places = (0..self.items).flat_map(|i| range.clone().map(move |part| i * self.parts + part));
        self.view(&self.basis, &self.primes, range.len(), places.map(|i| self.owned_place(i)).collect())
    }

    /// Items whose first parts are those of `first`, an item for each: no words are copied.
    ///
    /// # Errors
    /// [`CudaError::Mismatch`] for another number of items, more parts, other primes or another device,
    /// [`CudaError::OutOfMemory`].
    pub fn with_first(&self, first: &Self) -> Result<Self> {
        first.expect_same(&self.parts_of(0..first.parts)?)?;
        let place = |i: usize| match (i / self.parts, i % self.parts) {
            (item, part) if part < first.parts => first.owned_place(item * first.parts + part),
            _ => self.owned_place(i),
        };
        self.view(&self.basis, &self.primes, self.parts, (0..self.items * self.parts).map(place).collect())
    }

    /// Items of `parts` parts that are all alike, out of items of one: what multiplies every part of a ciphertext.
    ///
    /// # Errors
    /// [`CudaError::Mismatch`] for items of other than one part, or none wanted, [`CudaError::OutOfMemory`].
    pub fn repeated(&self, parts: usize) -> Result<Self> {
        if self.parts != 1 || parts == 0 {
            return Err(CudaError::Mismatch("only items of one part can be repeated, at least once"));
        }
        let places = (0..self.items * parts).map(|i| self.owned_place(i / parts));
        self.view(&self.basis, &self.primes, parts, places.collect())
    }

    /// The same modulo the first `limbs` primes alone: no words are copied.
    ///
    /// # Errors
    /// [`CudaError::Mismatch`] for no primes, or more than there are, [`CudaError::OutOfMemory`].
    pub fn truncated(&self, limbs: usize) -> Result<Self> {
        if limbs == 0 || limbs > self.basis.len() {
            return Err(CudaError::Mismatch("a batch keeps at least one of its primes, and no more than it has"));
        }
        let basis = self.basis.prefix(limbs);
        let primes = Primes::new(&self.device, &basis)?;
        let places = (0..self.items * self.parts).map(|i| self.owned_place(i));
        self.view(&basis, &primes, self.parts, places.collect())
    }

    /// Items `range`: no words are copied.
    ///
    /// # Errors
    /// As [`Batch::gather`].
    pub fn items_of(&self, range: std::ops::Range<usize>) -> Result<Self> {
        Self::gather(&range.map(|i| (self, i)).collect::<Vec<_>>())
    }

    pub(crate) fn expect_like<G>(&self, other: &Batch<G>) -> Result<()> {
        if !self.device.is(&other.device) {
            return Err(CudaError::Mismatch("batches are on different devices: copy one of them first"));
        }
        if self.basis != other.basis || self.parts != other.parts {
            return Err(CudaError::Mismatch(
                "batches have different primes or different numbers of parts; bring them to one level and relinearise \
                 first",
            ));
        }
        Ok(())
    }

    /// Other batches of as many items, alike this one.
    pub(crate) fn expect_same<G>(&self, other: &Batch<G>) -> Result<()> {
        self.expect_like(other)?;
        if self.items != other.items {
            return Err(CudaError::Mismatch("batches have different numbers of items; give equally many"));
        }
        Ok(())
    }

    /// Where the polynomials are, for a launch.
    pub(crate) fn rows(&self) -> Rows {
        match &self.places {
            Places::Even(memory) => Rows::even(memory, self.basis.degree() * self.basis.len()),
            Places::Scattered(_, table) => Rows { table: table.address(), base: 0, stride: 0, first: 0, step: 1 },
        }
    }

    /// Where polynomial `i` stands on the device.
    pub(crate) fn address(&self, i: usize) -> u64 {
        let (memory, at) = self.place(i);
        memory.address() + 8 * at as u64
    }

    /// Whether the polynomials stand one after the other.
    pub(crate) fn even(&self) -> bool {
        matches!(self.places, Places::Even(_))
    }

    /// Whether another batch reads the same memory.
    pub(crate) fn shared(&self) -> bool {
        match &self.places {
            Places::Even(memory) => Arc::strong_count(memory) > 1,
            Places::Scattered(..) => true,
        }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The basis.
    pub fn basis(&self) -> &RnsBasis {
        &self.basis
    }

    pub(crate) fn primes(&self) -> &Primes {
        &self.primes
    }

    /// Polynomials of an item.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.items
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Bytes of all words, as if none were shared.
    pub fn bytes(&self) -> usize {
        8 * self.items * self.parts * self.basis.degree() * self.basis.len()
    }
}

/// A polynomial's words and basis, in either form.
trait Words {
    fn words(&self) -> &[u64];
    fn basis(&self) -> &RnsBasis;
}

macro_rules! form {
    ($form:ty) => {
        impl Words for Poly<$form> {
            fn words(&self) -> &[u64] {
                Poly::words(self)
            }
            fn basis(&self) -> &RnsBasis {
                Poly::basis(self)
            }
        }

        impl Batch<$form> {
            /// Copies polynomials to a device: items of as many parts each.
            ///
            /// # Errors
            /// [`CudaError::Mismatch`] if items differ in parts or are over other primes, [`CudaError::Degree`],
            /// [`CudaError::OutOfMemory`].
            pub fn from_host(device: &Device, basis: &RnsBasis, items: &[&[Poly<$form>]]) -> Result<Self> {
                Self::upload_polynomials(device, basis, items)
            }

            /// Copies item `item` back, and waits for it.
            ///
            /// # Errors
            /// What went wrong on the device since the last wait.
            ///
            /// # Panics
            /// If there is no such item.
            pub fn item_to_host(&self, item: usize) -> Result<Vec<Poly<$form>>> {
                assert!(item < self.items, "a batch has no item {item}");
                let part = |part| {
                    let mut out = Poly::dirty(&self.basis);
                    self.download(item, part, out.words_mut())?;
                    Ok(out)
                };
                (0..self.parts).map(part).collect()
            }

            /// Copies all items back.
            ///
            /// # Errors
            /// As [`Batch::item_to_host`].
            pub fn to_host(&self) -> Result<Vec<Vec<Poly<$form>>>> {
                (0..self.items).map(|item| self.item_to_host(item)).collect()
            }
        }
    };
}
form!(Eval);
form!(Coeff);
