//! The array itself, and how its owner makes and reads it.

use crate::core::context::check_shape;
use crate::keys::check_owner;
use crate::radix::combination::is_public;
use crate::radix::value::{LARGEST_NOISE, MOST_WAITING, WAITING_NOISE, phase_of};
use crate::radix::{EncryptedBool, IntegerType, RadixInt, check_blocks};
use crate::{ClientKey, EncryptedBit, EncryptedInt, LweCiphertext, Plaintext, TfheError, TfheParams};
use std::fmt;
use std::ops::Range;
use sudare_ring::memo::Once;
use sudare_ring::random::{MaskSeed, uniform};
use sudare_ring::threads;
use sudare_rlwe::{KeyId, ParamsHash};
use zeroize::Zeroizing;

/// Most elements of an array.
pub const MAX_ELEMENTS: usize = 1 << 24;
/// Most axes of an array.
pub const MAX_AXES: usize = 32;

/// What an array is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// Booleans.
    Bool,
    /// Integers.
    Integer(IntegerType),
}

impl ElementType {
    /// Blocks of an element.
    pub fn blocks(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Integer(kind) => kind.blocks(),
        }
    }

    /// Largest value of a block whose carry does not wait.
    pub(crate) fn largest(self) -> u64 {
        if self == Self::Bool { 1 } else { 3 }
    }

    /// Largest value and noise of a block.
    fn limits(self) -> (u64, u64) {
        match self {
            Self::Bool => (1, LARGEST_NOISE),
            Self::Integer(_) => (MOST_WAITING, WAITING_NOISE),
        }
    }
}

/// # Errors
/// [`TfheError::Parameters`] unless such elements exist under these parameters.
pub(crate) fn check_element(params: &TfheParams, element: ElementType) -> Result<(), TfheError> {
    match (params.literal().plaintext, element) {
        (Plaintext::Bit, ElementType::Bool) => Ok(()),
        (Plaintext::Bit, ElementType::Integer(kind)) => Err(TfheError::Parameters {
            reason: format!(
                "a set of gates holds booleans alone, not {kind}; take a set of integers (message_2_carry_2)"
            ),
        }),
        _ => check_blocks(params),
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Integer(kind) => kind.fmt(f),
        }
    }
}

/// An encrypted array in C order.
///
/// Its elements are blocks of two bits, or a block for a boolean. After sums, blocks of integers may hold more
/// than a message: their carries wait until an operation needs them, which propagates them once for all.
///
/// A fresh one is a word for each block and the seed of their masks, as it travels; masks, two thousand words a block, are
/// expanded by the first operation that needs them.
#[derive(Clone)]
pub struct EncryptedArray {
    element: ElementType,
    shape: Vec<usize>,
    owner: (ParamsHash, KeyId),
    fresh: Option<Fresh>,
    /// Of a fresh array, once they were needed.
    blocks: Once<Vec<EncryptedInt>>,
    /// The same with no carry waiting, once something needed it.
    settled: Once<Self>,
}

/// Blocks straight from encryption: block i has the masks of stream i.
#[derive(Clone)]
struct Fresh {
    params: TfheParams,
    seed: MaskSeed,
    bodies: Vec<u64>,
}

impl Fresh {
    /// On the caller's thread alone: whoever waits for it may be the pool's.
    fn expand(&self, element: ElementType, owner: (ParamsHash, KeyId)) -> Vec<EncryptedInt> {
        let context = self.params.context();
        let one = |(i, body): (usize, &u64)| {
            let mut words = vec![0; context.lwe_dimension() + 1];
            uniform(&mut self.seed.stream(i as u64), context.modulus(), &mut words[..context.lwe_dimension()]);
            words[context.lwe_dimension()] = *body;
            let Ok(c) = LweCiphertext::from_words(context.modulus(), words) else {
                unreachable!("bodies were compared with q, and masks are drawn below it")
            };
            EncryptedInt::from_parts(c, owner, element.largest(), 1)
        };
        self.bodies.iter().enumerate().map(one).collect()
    }
}

/// # Errors
/// [`TfheError::Parameters`] for a shape of too many axes or elements.
pub(crate) fn elements_of(shape: &[usize]) -> Result<usize, TfheError> {
    let product = shape.iter().try_fold(1usize, |p, n| p.checked_mul(*n));
    match product {
        Some(n) if n <= MAX_ELEMENTS && shape.len() <= MAX_AXES => Ok(n),
        _ => Err(TfheError::Parameters {
            reason: format!(
                "an array has at most {MAX_AXES} axes and {MAX_ELEMENTS} elements, not the shape {shape:?}"
            ),
        }),
    }
}

impl EncryptedArray {
    /// An array from the blocks of its elements.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::CarrySpace`], [`TfheError::NoiseBudget`],
    /// `RlweError::WrongKey`, `RlweError::WrongParameters` for blocks that are not those of such
    /// elements or not of this owner.
    pub fn from_blocks(
        element: ElementType,
        shape: Vec<usize>,
        owner: (ParamsHash, KeyId),
        blocks: Vec<EncryptedInt>,
    ) -> Result<Self, TfheError> {
        check_shape("blocks", elements_of(&shape)? * element.blocks(), blocks.len())?;
        for b in &blocks {
            crate::radix::value::check_block(b, element.limits())?;
            check_owner("the block", owner, b.owner())?;
        }
        Ok(Self::computed(element, shape, owner, blocks))
    }

    /// An array of blocks that an operation made.
    pub(crate) fn computed(
        element: ElementType,
        shape: Vec<usize>,
        owner: (ParamsHash, KeyId),
        blocks: Vec<EncryptedInt>,
    ) -> Self {
        Self { element, shape, owner, fresh: None, blocks: Once::with_value(Box::new(blocks)), settled: Once::new() }
    }

    /// An array from fresh bodies and the seed of their masks: block i has those of stream i.
    ///
    /// # Errors
    /// [`TfheError::Shape`], `RlweError::Ring` for a body not below q.
    pub fn from_bodies(
        params: &TfheParams,
        (element, shape): (ElementType, Vec<usize>),
        key: KeyId,
        seed: MaskSeed,
        bodies: Vec<u64>,
    ) -> Result<Self, TfheError> {
        check_shape("blocks", elements_of(&shape)? * element.blocks(), bodies.len())?;
        if let Some(index) = bodies.iter().position(|body| *body >= params.context().q()) {
            return Err(sudare_ring::RingError::Coefficient { limb: 0, index }.into());
        }
        Ok(Self::fresh(params, (element, shape), key, seed, bodies))
    }

    fn fresh(
        params: &TfheParams,
        (element, shape): (ElementType, Vec<usize>),
        key: KeyId,
        seed: MaskSeed,
        bodies: Vec<u64>,
    ) -> Self {
        let (owner, fresh) = ((params.hash(), key), Some(Fresh { params: params.clone(), seed, bodies }));
        Self { element, shape, owner, fresh, blocks: Once::new(), settled: Once::new() }
    }

    /// What it is made of.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Its shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its parameters' hash and its key's name.
    pub fn owner(&self) -> (ParamsHash, KeyId) {
        self.owner
    }

    /// The blocks of all elements.
    pub fn blocks(&self) -> &[EncryptedInt] {
        self.blocks.get_or_init(|| {
            let Some(fresh) = &self.fresh else { unreachable!("an array that is not fresh is made of blocks") };
            Box::new(fresh.expand(self.element, self.owner))
        })
    }

    /// The seed of its masks and its bodies, if it is straight from encryption.
    pub fn seeded(&self) -> Option<(&MaskSeed, &[u64])> {
        self.fresh.as_ref().map(|f| (&f.seed, f.bodies.as_slice()))
    }

    /// Blocks of all elements.
    pub fn block_count(&self) -> usize {
        self.fresh.as_ref().map_or_else(|| self.blocks().len(), |f| f.bodies.len())
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.block_count() / self.element.blocks()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.block_count() == 0
    }

    /// Bytes that it holds in memory: of a fresh array, those that it takes on the wire.
    pub fn byte_len(&self) -> usize {
        let settled = self.settled.get().map_or(0, |s| s.byte_len());
        let fresh = self.fresh.as_ref().map_or(0, |f| 8 * f.bodies.len());
        let blocks = self.blocks.get().map_or(0, |all| all.iter().map(|b| 8 * b.ciphertext().words().len()).sum());
        settled + fresh + blocks
    }

    /// Whether a carry, or noise over that of other operations, waits in one of these elements.
    pub(crate) fn carries(&self, at: &Range<usize>) -> bool {
        let (n, largest) = (self.element.blocks(), self.element.largest());
        self.fresh.is_none()
            && self.blocks()[at.start * n..at.end * n]
                .iter()
                .any(|b| b.largest() > largest || b.noise() > LARGEST_NOISE)
    }

    /// Whether a carry waits in it that no operation has propagated yet.
    pub fn waits(&self) -> bool {
        self.settled.get().is_none() && self.carries(&(0..self.len()))
    }

    /// Largest value and noise of its blocks; a public block counts as noise too.
    pub(crate) fn extent(&self) -> (u64, u64) {
        self.blocks().iter().fold((0, 1), |(l, n), b| (l.max(b.largest()), n.max(b.noise())))
    }

    /// The same with no carry waiting: itself, or what `settle` makes of it, which is kept.
    ///
    /// # Errors
    /// Those of `settle`.
    pub(crate) fn settled(&self, settle: impl FnOnce() -> Result<Self, TfheError>) -> Result<&Self, TfheError> {
        if !self.carries(&(0..self.len())) {
            return Ok(self);
        }
        match self.settled.get() {
            Some(settled) => Ok(settled),
            None => {
                let made = Box::new(settle()?);
                Ok(self.settled.get_or_init(|| made))
            }
        }
    }

    /// With no carry waiting where that is known already: what is best to send or to pick from.
    pub(crate) fn known(&self) -> &Self {
        self.settled.get().map_or(self, |settled| settled)
    }

    /// Element i, of a set of gates.
    pub(crate) fn bit(&self, i: usize) -> EncryptedBit {
        EncryptedBit::from_parts(self.blocks()[i].ciphertext().clone(), self.owner.0, self.owner.1)
    }

    /// Elements of integers, side by side.
    pub(crate) fn integers(&self, kind: IntegerType, at: &Range<usize>) -> RadixInt {
        let n = kind.blocks();
        RadixInt::from_checked(kind, self.blocks()[at.start * n..at.end * n].to_vec())
    }

    /// Elements of booleans, side by side.
    pub(crate) fn booleans(&self, at: &Range<usize>) -> EncryptedBool {
        EncryptedBool::from_checked(self.blocks()[at.clone()].to_vec())
    }

    /// Whether what is public of the elements is the same, so that side by side they take the same steps.
    pub(crate) fn alike(&self, at: &Range<usize>) -> bool {
        let n = self.element.blocks();
        let public = |i: usize, b: usize| {
            let block = &self.blocks()[i * n + b];
            let value = is_public(block).then(|| block.ciphertext().body());
            (value, block.largest(), block.noise())
        };
        at.clone().all(|i| (0..n).all(|b| public(i, b) == public(at.start, b)))
    }

    pub(crate) fn of_integers(&self, kind: IntegerType, elements: Vec<RadixInt>) -> Self {
        let blocks = elements.into_iter().flat_map(RadixInt::into_blocks).collect();
        Self::computed(ElementType::Integer(kind), self.shape.clone(), self.owner, blocks)
    }

    pub(crate) fn of_booleans(&self, elements: Vec<EncryptedBool>) -> Self {
        let blocks = elements.into_iter().flat_map(EncryptedBool::into_blocks).collect();
        Self::computed(ElementType::Bool, self.shape.clone(), self.owner, blocks)
    }

    /// Elements by number, as a new array: what indexing, broadcasting and transposing do.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for a number that is not there or the wrong count.
    pub fn take(&self, shape: Vec<usize>, indices: &[usize]) -> Result<Self, TfheError> {
        check_shape("elements", elements_of(&shape)?, indices.len())?;
        if let Some(found) = indices.iter().find(|i| **i >= self.len()) {
            return Err(TfheError::Shape { what: "element number", expected: self.len(), found: *found });
        }
        let (n, from) = (self.element.blocks(), self.known().blocks());
        let blocks = indices.iter().flat_map(|i| from[i * n..(i + 1) * n].iter().cloned()).collect();
        Ok(Self::computed(self.element, shape, self.owner, blocks))
    }

    /// Arrays of one type one after the other, as a flat array.
    ///
    /// # Errors
    /// `RlweError::WrongKey`, `RlweError::WrongParameters`, [`TfheError::Parameters`] for arrays of
    /// different owners or types, [`TfheError::Shape`] without any.
    pub fn concatenated(all: &[&Self]) -> Result<Self, TfheError> {
        let first = all.first().ok_or(TfheError::Shape { what: "arrays", expected: 1, found: 0 })?;
        let mut blocks = Vec::new();
        for a in all {
            check_owner("the array", first.owner, a.owner)?;
            if a.element != first.element {
                let reason =
                    format!("arrays of {} and {} are not joined; cast one of them first", first.element, a.element);
                return Err(TfheError::Parameters { reason });
            }
            blocks.extend(a.known().blocks().iter().cloned());
        }
        let shape = vec![blocks.len() / first.element.blocks()];
        elements_of(&shape)?;
        Ok(Self::computed(first.element, shape, first.owner, blocks))
    }
}

impl fmt::Debug for EncryptedArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncryptedArray({:?} {}, key {})", self.shape, self.element, self.owner.1)
    }
}

/// The phases of an array's blocks, of elements as two's complement (or 0 and 1).
///
/// # Errors
/// [`TfheError::Shape`] for the wrong number of values, [`TfheError::Parameters`] unless the parameters have such
/// elements; [`TfheError::Message`] for a boolean above one.
pub(crate) fn phases(
    params: &TfheParams,
    element: ElementType,
    shape: &[usize],
    values: &[u64],
) -> Result<Zeroizing<Vec<u64>>, TfheError> {
    check_element(params, element)?;
    check_shape("values", elements_of(shape)?, values.len())?;
    if element == ElementType::Bool
        && let Some(value) = values.iter().find(|v| **v > 1)
    {
        return Err(TfheError::Message { value: *value, space: 2 });
    }
    let blocks = element.blocks();
    let message = |i: usize| values[i / blocks] >> (2 * (i % blocks)) & 3;
    Ok(Zeroizing::new((0..values.len() * blocks).map(|i| phase_of(params, message(i))).collect()))
}

impl ClientKey {
    /// Encrypts an array given in C order, elements as two's complement (or 0 and 1). Its masks come
    /// from one seed, so that it travels as its bodies.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of values, [`TfheError::Parameters`] unless the
    /// parameters have such elements; [`TfheError::Message`] for a boolean above one.
    pub fn encrypt_array(
        &self,
        element: ElementType,
        shape: Vec<usize>,
        values: &[u64],
    ) -> Result<EncryptedArray, TfheError> {
        let phases = phases(self.params(), element, &shape, values)?;
        let seeds = self.object_seeds()?;
        let bodies = threads::map(phases.len(), |i| self.encrypt_phase_of(i, phases[i], &seeds).body());
        Ok(EncryptedArray::fresh(self.params(), (element, shape), self.id(), seeds.masks, bodies))
    }

    /// Decrypts an array: elements in C order as two's complement, or 0 and 1.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn decrypt_array(&self, x: &EncryptedArray) -> Result<Vec<u64>, TfheError> {
        check_owner("the array", (self.params().hash(), self.id()), x.owner)?;
        let bits = self.params().literal().plaintext == Plaintext::Bit;
        let elements = threads::map(x.len(), |i| match x.element {
            ElementType::Bool if bits => self.decrypt_bit(&x.bit(i)).map(u64::from),
            ElementType::Bool => self.decrypt_bool(&x.booleans(&(i..i + 1))).map(u64::from),
            ElementType::Integer(kind) => self.decrypt_integer(&x.integers(kind, &(i..i + 1))),
        });
        elements.into_iter().collect()
    }
}
