//! Hybrid key switching of a batch: what `sudare_ring::ops::RnsGadget` does with one polynomial, in five launches for
//! any number of them.

use super::divide::{Divide, Division};
use super::{PARTS, exchange_words, lift_threads, part_kernel, part_layers, part_threads};
use crate::arena::Memory;
use crate::batch::{Batch, Rows};
use crate::device::Device;
use crate::error::{CudaError, Result};
use crate::tables::{Conversions, Lifting, Primes, factors};
use bytemuck::NoUninit;
use std::sync::Arc;
use sudare_ring::ops::PolyPairs;
use sudare_ring::{Eval, RnsBasis};

/// Twin of `Start` in `switch.cuh`.
#[derive(Clone, Copy, Debug, NoUninit)]
#[repr(C)]
pub(super) struct Start {
    pub a: Rows,
    pub b: Rows,
    pub out: Rows,
    pub primes: u64,
    pub first: u32,
    pub product: u32,
}

impl Start {
    /// Inverse layers of the parts of `limbs` limbs of polynomials.
    pub(super) fn launch(&self, device: &Device, basis: &RnsBasis, polynomials: usize, limbs: usize) -> Result<()> {
        let (kernel, grid) = (part_kernel("start", basis), [polynomials, PARTS, limbs]);
        // SAFETY: the rows are of polynomials with these limbs that live until the queue is past them.
        unsafe { device.core().launch(&kernel, grid, part_threads(basis), exchange_words(basis), self) }
    }
}

/// Twin of `Lift` in `switch.cuh`.
#[derive(Clone, Copy, Debug, NoUninit)]
#[repr(C)]
pub(super) struct Lift {
    pub input: Rows,
    pub out: Rows,
    pub primes: u64,
    pub conversions: u64,
    pub log_n: u32,
    pub words: u32,
}

impl Lift {
    /// Every conversion of every item: last inverse layers, change of basis, first forward layers.
    pub(super) fn launch(&self, device: &Device, basis: &RnsBasis, items: usize, list: &Conversions) -> Result<()> {
        let threads = lift_threads(device, basis, list.sources)?;
        let grid = [items, basis.degree() / PARTS / threads, list.count];
        // SAFETY: as for `Start`; the conversions name rows inside.
        unsafe { device.core().launch("lift", grid, threads, 16 * list.sources * threads, self) }
    }
}

/// Twin of `Switch` in `switch.cuh`.
#[derive(Clone, Copy, Debug, NoUninit)]
#[repr(C)]
struct Switch {
    a0: Rows,
    a1: Rows,
    b0: Rows,
    b1: Rows,
    raised: Rows,
    sums: Rows,
    tail: Rows,
    primes: u64,
    special: u64,
    key: u64,
    limbs: u32,
    count: u32,
    digit: u32,
    digits: u32,
    key_digits: u32,
    key_skip: u32,
    kept: u32,
    product: u32,
    plus: u32,
    pad: u32,
}

/// What is switched: a product of pairs, or a polynomial with up to two others that P times are added.
#[derive(Clone, Copy, Debug)]
enum Source {
    Product([Rows; 4]),
    Given { c: Rows, plus: [Rows; 2], count: u32 },
}

impl Source {
    /// The second part of items of two, with `count` of both parts added.
    fn second(batch: &Batch<Eval>, count: u32) -> Self {
        let [c0, c1] = [0, 1].map(|part| batch.rows().from(part).every(2));
        Self::Given { c: c1, plus: [c0, c1], count }
    }

    /// From item `first` on.
    fn from(self, first: usize) -> Self {
        match self {
            Self::Product(rows) => Self::Product(rows.map(|r| r.from(first))),
            Self::Given { c, plus, count } => {
                Self::Given { c: c.from(first), plus: plus.map(|r| r.from(first)), count }
            }
        }
    }
}

/// Digits of polynomials over Q = q_0·…·q_l, over Q·P: `sudare_ring::ops::RnsGadget` for batches.
#[derive(Debug)]
pub struct Gadget {
    device: Device,
    q: RnsBasis,
    qp: RnsBasis,
    primes: Primes,
    digit: usize,
    conversions: Conversions,
    /// P modulo each q.
    special: Arc<Memory>,
}

/// Pairs on the device, in the order in which a key switch reads them: prime, digit, pair.
#[derive(Clone, Debug)]
pub struct Pairs {
    device: Device,
    memory: Arc<Memory>,
    basis: RnsBasis,
    terms: usize,
}

/// The digits of each item's second part over Q·P, with the items: what many keys share (hoisting).
#[derive(Debug)]
pub struct Digits {
    batch: Batch<Eval>,
    /// Q·P, and primes a digit.
    shape: (RnsBasis, usize),
    /// As `Gadget::raise` leaves them.
    raised: Arc<Memory>,
}

impl Digits {
    /// The items, of two parts.
    pub fn batch(&self) -> &Batch<Eval> {
        &self.batch
    }

    /// Bytes on the device, beside those of the items.
    pub fn bytes(&self) -> usize {
        8 * self.raised.words()
    }
}

impl Pairs {
    /// Copies pairs to a device, as whole words.
    ///
    /// # Errors
    /// [`CudaError::OutOfMemory`].
    pub fn from_host(device: &Device, pairs: &PolyPairs) -> Result<Self> {
        let (basis, terms) = (pairs.basis(), pairs.terms());
        let n = basis.degree();
        let memory = device.core().memory(basis.len() * terms * 2 * n)?;
        for (j, part) in (0..terms).flat_map(|j| [(j, 0), (j, 1)]) {
            let polynomial = pairs.get(j, part);
            for e in 0..basis.len() {
                let at = memory.address() + 8 * (((e * terms + j) * 2 + part) * n) as u64;
                // SAFETY: the memory has N words for each prime, term and part.
                unsafe { device.core().driver().upload(at, polynomial.limb(e)) }?;
            }
        }
        Ok(Self { device: device.clone(), memory, basis: basis.clone(), terms })
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        16 * self.terms * self.basis.len() * self.basis.degree()
    }
}

impl Gadget {
    /// Digits of `digit_limbs` primes of `q` each, over `q` and the special primes `p`.
    ///
    /// # Errors
    /// [`CudaError::Mismatch`] without special primes or with digits of none, [`CudaError::Ring`] for a prime in both,
    /// [`CudaError::Degree`], [`CudaError::OutOfMemory`].
    pub fn new(device: &Device, q: &RnsBasis, p: &RnsBasis, digit_limbs: usize) -> Result<Self> {
        if p.is_empty() || q.is_empty() || digit_limbs == 0 {
            return Err(CudaError::Mismatch(
                "key switching on the GPU needs special primes, and digits of at least one prime",
            ));
        }
        let qp = q.concat(p)?;
        let primes = Primes::new(device, &qp)?;
        let lifting = |j: usize| {
            let digit = j * digit_limbs..q.len().min((j + 1) * digit_limbs);
            Lifting {
                sources: digit.clone().map(|i| (i, i)).collect(),
                targets: (0..qp.len()).filter(|e| !digit.contains(e)).map(|e| (e, j * qp.len() + e)).collect(),
            }
        };
        let list: Vec<Lifting> = (0..q.len().div_ceil(digit_limbs)).map(lifting).collect();
        let conversions = Conversions::new(device, &qp, &primes, &list)?;
        let special = factors(device, q.moduli(), |m| Ok(p.product_modulo(m)))?;
        Ok(Self { device: device.clone(), q: q.clone(), qp, primes, digit: digit_limbs, conversions, special })
    }

    /// q_0 … q_l.
    pub fn q(&self) -> &RnsBasis {
        &self.q
    }

    /// q_0 … q_l, p_0 ….
    pub fn qp(&self) -> &RnsBasis {
        &self.qp
    }

    /// Number of digits.
    pub fn digits(&self) -> usize {
        self.conversions.count
    }

    /// Σ_j d_j·(b_j, a_j) over Q·P for the digits d of each item's one polynomial, plus P times the item of `plus`,
    /// which has two parts: `RnsGadget::switch_many`.
    ///
    /// # Errors
    /// [`CudaError::Mismatch`] for operands of other shapes, primes or devices or too few pairs,
    /// [`CudaError::SharedMemory`], [`CudaError::OutOfMemory`].
    pub fn switch(&self, batch: &Batch<Eval>, plus: Option<&Batch<Eval>>, pairs: &Pairs) -> Result<Batch<Eval>> {
        self.require(batch, 1)?;
        if let Some(plus) = plus {
            self.require(plus, 2)?;
            if plus.len() != batch.len() {
                return Err(CudaError::Mismatch("what is added to a key switch needs an item for each polynomial"));
            }
        }
        let (plus, count) = match plus {
            Some(plus) => ([plus.rows().every(2), plus.rows().from(1).every(2)], 2),
            None => ([Rows::none(); 2], 0),
        };
        self.run(Source::Given { c: batch.rows(), plus, count }, batch.len(), None, Some(pairs), None, 1)
    }

    /// Products a·b of pairs: the part with s² is switched to s, and all is divided. `division` is by P, or by P and
    /// the last primes of Q, which rescales at once.
    ///
    /// # Errors
    /// As [`Gadget::switch`], and for a division of other primes.
    pub fn product(&self, a: &Batch<Eval>, b: &Batch<Eval>, pairs: &Pairs, division: &Division) -> Result<Batch<Eval>> {
        self.require(a, 2)?;
        a.expect_same(b)?;
        let [a0, a1, b0, b1] = [a, a, b, b].map(|x| x.rows().every(2));
        let [a1, b1] = [(a, a1), (b, b1)].map(|(x, _)| x.rows().from(1).every(2));
        self.run(Source::Product([a0, a1, b0, b1]), a.len(), None, Some(pairs), Some(division), 1)
    }

    /// Items of three parts, whose last is switched from s² to s, divided by P (or more, as for a product).
    ///
    /// # Errors
    /// As [`Gadget::product`].
    pub fn relinearize(&self, batch: &Batch<Eval>, pairs: &Pairs, division: &Division) -> Result<Batch<Eval>> {
        self.require(batch, 3)?;
        let [d0, d1, d2] = [0, 1, 2].map(|part| batch.rows().from(part).every(3));
        let source = Source::Given { c: d2, plus: [d0, d1], count: 2 };
        self.run(source, batch.len(), None, Some(pairs), Some(division), 1)
    }

    /// The images of pairs under X → X^g, switched back to s: `pairs` hold P·g_j·s' for the s' that the automorphism
    /// takes to s.
    ///
    /// # Errors
    /// As [`Gadget::product`], and [`RingError::GaloisElement`](sudare_ring::RingError::GaloisElement).
    pub fn rotate(&self, batch: &Batch<Eval>, g: u64, pairs: &Pairs, division: &Division) -> Result<Batch<Eval>> {
        self.require(batch, 2)?;
        let inverse = super::permute::inverse_element(self.q.degree(), g)?;
        self.run(Source::second(batch, 1), batch.len(), None, Some(pairs), Some(division), inverse)
    }

    /// The digits of each item's second part, for any number of keys: `RnsGadget::decompose`. They stay on the device,
    /// all items' at a time.
    ///
    /// # Errors
    /// [`CudaError::Mismatch`] for items of other than two parts, other primes or another device,
    /// [`CudaError::SharedMemory`], [`CudaError::OutOfMemory`].
    pub fn decompose(&self, batch: &Batch<Eval>) -> Result<Digits> {
        self.require(batch, 2)?;
        let (n, items, core) = (self.q.degree(), batch.len(), self.device.core());
        let half = core.memory((items * self.q.len() * n).max(1))?;
        let raised = core.memory((items * self.digits() * self.qp.len() * n).max(1))?;
        self.raise(Source::second(batch, 1), items, &half, &raised)?;
        Ok(Digits { batch: batch.clone(), shape: (self.qp.clone(), self.digit), raised })
    }

    /// [`Gadget::rotate`] from digits: three launches.
    ///
    /// # Errors
    /// As [`Gadget::rotate`].
    pub fn rotate_digits(&self, digits: &Digits, g: u64, pairs: &Pairs, division: &Division) -> Result<Batch<Eval>> {
        let batch = self.expect_digits(digits)?;
        let inverse = super::permute::inverse_element(self.q.degree(), g)?;
        self.run(Source::second(batch, 1), batch.len(), Some(digits), Some(pairs), Some(division), inverse)
    }

    /// P·ψ(c) over Q·P for the automorphism ψ: X → X^g with its key, from digits, added to `sum` where there is one;
    /// without a key g is 1, the item itself. A step of `RnsGadget::sum_of_images`: one division serves the whole sum.
    ///
    /// # Errors
    /// As [`Gadget::rotate`]; [`CudaError::Mismatch`] without the key of an automorphism, or for a sum of another shape
    /// or one that shares its memory.
    pub fn add_image(
        &self,
        digits: &Digits,
        g: u64,
        pairs: Option<&Pairs>,
        sum: Option<Batch<Eval>>,
    ) -> Result<Batch<Eval>> {
        let batch = self.expect_digits(digits)?;
        super::permute::inverse_element(self.q.degree(), g)?;
        if pairs.is_none() && g != 1 {
            return Err(CudaError::Mismatch("an automorphism other than the identity needs a key"));
        }
        let source = Source::second(batch, if pairs.is_some() { 1 } else { 2 });
        let image = self.run(source, batch.len(), Some(digits), pairs, None, 1)?;
        match sum {
            Some(mut sum) => {
                sum.add_automorphism(&image, g)?;
                Ok(sum)
            }
            None if g == 1 => Ok(image),
            None => image.automorphism(g),
        }
    }

    fn require(&self, batch: &Batch<Eval>, parts: usize) -> Result<()> {
        if !batch.device().is(&self.device) {
            return Err(CudaError::Mismatch(
                "a batch is on another device than the tables of its key switch; copy it there first",
            ));
        }
        if *batch.basis() != self.q || batch.parts() != parts {
            return Err(CudaError::Mismatch(
                "a key switch takes items over the primes and with the number of parts that it was made for",
            ));
        }
        Ok(())
    }

    /// The items of digits that are this gadget's.
    fn expect_digits<'a>(&self, digits: &'a Digits) -> Result<&'a Batch<Eval>> {
        self.require(&digits.batch, 2)?;
        if digits.shape.0 != self.qp || digits.shape.1 != self.digit {
            return Err(CudaError::Mismatch(
                "these digits have another size or other special primes than this key switch; decompose again with \
                 its tables",
            ));
        }
        Ok(&digits.batch)
    }

    /// How many data primes more than Q the pairs have.
    fn key_skip(&self, pairs: &Pairs) -> Result<usize> {
        let (own, theirs): (Vec<u64>, Vec<u64>) = (self.qp.primes().collect(), pairs.basis.primes().collect());
        let limbs = self.q.len();
        let fits = theirs.len() >= own.len()
            && own[..limbs] == theirs[..limbs]
            && own[limbs..] == theirs[theirs.len() - (own.len() - limbs)..]
            && pairs.terms >= self.digits()
            && pairs.device.is(&self.device)
            && pairs.basis.degree() == self.q.degree();
        if !fits {
            return Err(CudaError::Mismatch(
                "a key has other digits than this key switch, too few of them, or is on another device; use a key of \
                 these parameters on this device",
            ));
        }
        Ok(theirs.len() - own.len())
    }

    /// Launches 1 and 2: the digits of items, from what is switched.
    fn raise(&self, source: Source, items: usize, half: &Memory, raised: &Memory) -> Result<()> {
        let (n, count, limbs) = (self.q.degree(), self.qp.len(), self.q.len());
        let (a, b, product) = match source {
            Source::Product([_, a1, _, b1]) => (a1, b1, 1),
            Source::Given { c, .. } => (c, Rows::none(), 0),
        };
        Start { a, b, out: Rows::even(half, limbs * n), primes: self.primes.at(0), first: 0, product }.launch(
            &self.device,
            &self.q,
            items,
            limbs,
        )?;
        Lift {
            input: Rows::even(half, limbs * n),
            out: Rows::even(raised, self.digits() * count * n),
            primes: self.primes.at(0),
            conversions: self.conversions.address(),
            log_n: n.trailing_zeros(),
            words: 0,
        }
        .launch(&self.device, &self.q, items, &self.conversions)
    }

    /// The five launches (three without a division, or from digits), in waves of as many items as the intermediate
    /// results have room. Without pairs, P times what is added alone.
    fn run(
        &self,
        source: Source,
        items: usize,
        digits: Option<&Digits>,
        pairs: Option<&Pairs>,
        division: Option<&Division>,
        inverse_element: u64,
    ) -> Result<Batch<Eval>> {
        let skip = pairs.map_or(Ok(0), |pairs| self.key_skip(pairs))?;
        if division.is_some_and(|d| !d.device().is(&self.device) || *d.basis() != self.qp) {
            return Err(CudaError::Mismatch(
                "a key switch is divided by its last primes, on the device that it was made for",
            ));
        }
        let (n, count, limbs) = (self.q.degree(), self.qp.len(), self.q.len());
        let kept = division.map_or(count, |d| d.kept().len());
        let gone = count - kept;
        let shared = exchange_words(&self.q) + (2 << part_layers(&self.q));
        let available = self.device.info().shared;
        if 8 * shared > available {
            return Err(CudaError::SharedMemory { what: "a key switch", wanted: 8 * shared, available });
        }
        let out = match division {
            Some(division) => Batch::dirty(&self.device, division.kept(), division.primes(), 2, items)?,
            None => Batch::dirty(&self.device, &self.qp, &self.primes, 2, items)?,
        };
        let summed = if division.is_some() { kept } else { 0 };
        let own = if digits.is_none() { limbs + self.digits() * count } else { 0 };
        let each = own + 2 * (summed + gone + summed);
        let wave = self.device.wave_items((each * n).max(1)).min(items.max(1));
        let core = self.device.core();
        let room = |rows: usize| core.memory((wave * rows * n).max(1));
        let raised = match digits {
            Some(digits) => (None, digits.raised.clone()),
            None => (Some(room(limbs)?), room(self.digits() * count)?),
        };
        let (half, raised) = raised;
        let (sums, tail, lowered) = (room(2 * summed)?, room(2 * gone)?, room(2 * summed)?);
        for first in (0..items).step_by(wave) {
            let now = wave.min(items - first);
            let source = source.from(first);
            let ([a0, a1, b0, b1], product, plus) = match source {
                Source::Product(rows) => (rows, 1, 0),
                Source::Given { c, plus, count } => ([c, c, plus[0], plus[1]], 0, count),
            };
            // Digits that were given are those of all items, a wave's own start with its first.
            let skipped = match &half {
                Some(half) => {
                    self.raise(source, now, half, &raised)?;
                    0
                }
                None => first * self.digits() * count,
            };
            let direct = out.rows();
            let arguments = Switch {
                a0,
                a1,
                b0,
                b1,
                raised: Rows::even(&raised, n).from(skipped),
                // Limb by limb: a result over Q·P has 2·count of them for each item.
                sums: match division {
                    Some(_) => Rows::even(&sums, n),
                    None => Rows { stride: n as u64, ..direct }.from(2 * count * first),
                },
                tail: Rows::even(&tail, n),
                primes: self.primes.at(0),
                special: self.special.address(),
                key: pairs.map_or(0, |pairs| pairs.memory.address()),
                limbs: limbs as u32,
                count: count as u32,
                digit: self.digit as u32,
                digits: pairs.map_or(0, |_| self.digits() as u32),
                key_digits: pairs.map_or(0, |pairs| pairs.terms as u32),
                key_skip: skip as u32,
                kept: kept as u32,
                product,
                plus,
                pad: 0,
            };
            let (kernel, grid) = (part_kernel("switch", &self.q), [now, PARTS, count]);
            // SAFETY: the rows name polynomials and intermediate results of these shapes, which live until the queue
            // is past them.
            unsafe { core.launch(&kernel, grid, part_threads(&self.q), shared, &arguments) }?;
            if let Some(division) = division {
                division.lift(Rows::even(&tail, gone * n), Rows::even(&lowered, kept * n), 2 * now)?;
                let ends = Divide {
                    sums: Rows::even(&sums, kept * n),
                    lowered: Rows::even(&lowered, kept * n),
                    out: direct.from(2 * first),
                    primes: division.primes().at(0),
                    factors: division.factors(),
                    inverse_element: inverse_element as u32,
                    pad: 0,
                };
                ends.launch(division, 2 * now)?;
            }
        }
        Ok(out)
    }
}
