//! Arrays of encrypted integers or booleans, as they travel and as a NumPy user sees them.

use super::super::context::check_shape;
use super::super::keys::check_owner;
use super::super::{ClientKey, EncryptedInt, LweCiphertext, TfheError, TfheParams};
use super::{EncryptedBool, IntegerType, RadixInt, check_blocks};
use crate::keys::KeyId;
use crate::params::ParamsHash;
use std::fmt;
use sudare_ring::random::{MaskSeed, uniform};
use sudare_ring::threads;

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

    /// Largest value of a block.
    pub(crate) fn largest(self) -> u64 {
        if self == Self::Bool { 1 } else { 3 }
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
#[derive(Clone)]
pub struct IntegerArray {
    element: ElementType,
    shape: Vec<usize>,
    owner: (ParamsHash, KeyId),
    blocks: Vec<EncryptedInt>,
    /// Where the masks come from, while they are all fresh.
    seed: Option<MaskSeed>,
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

impl IntegerArray {
    /// An array from the blocks of its elements.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::CarrySpace`], [`TfheError::NoiseBudget`],
    /// [`TfheError::WrongKey`], [`TfheError::WrongParameters`] for blocks that are not those of such
    /// elements or not of this owner.
    pub fn from_blocks(
        element: ElementType,
        shape: Vec<usize>,
        owner: (ParamsHash, KeyId),
        blocks: Vec<EncryptedInt>,
    ) -> Result<Self, TfheError> {
        check_shape("blocks", elements_of(&shape)? * element.blocks(), blocks.len())?;
        for b in &blocks {
            super::value::check_block(b, element.largest())?;
            check_owner("the block", owner, b.owner())?;
        }
        Ok(Self { element, shape, owner, blocks, seed: None })
    }

    /// An array from fresh bodies and the seed of their masks: block i has those of stream i.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Ring`] for a body not below q.
    pub fn from_bodies(
        params: &TfheParams,
        (element, shape): (ElementType, Vec<usize>),
        key: KeyId,
        seed: MaskSeed,
        bodies: &[u64],
    ) -> Result<Self, TfheError> {
        check_shape("blocks", elements_of(&shape)? * element.blocks(), bodies.len())?;
        let (context, owner) = (params.context(), (params.hash(), key));
        let blocks = threads::map(bodies.len(), |i| {
            let mut words = vec![0; context.lwe_dimension() + 1];
            uniform(&mut seed.stream(i as u64), context.modulus(), &mut words[..context.lwe_dimension()]);
            words[context.lwe_dimension()] = bodies[i];
            let c = LweCiphertext::from_words(context.modulus(), words)?;
            Ok(EncryptedInt::from_parts(c, owner, element.largest(), 1))
        });
        let blocks = blocks.into_iter().collect::<Result<_, TfheError>>()?;
        Ok(Self { element, shape, owner, blocks, seed: Some(seed) })
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
        &self.blocks
    }

    /// The seed of its masks, if they come from one.
    pub fn seed(&self) -> Option<&MaskSeed> {
        self.seed.as_ref()
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.blocks.len() / self.element.blocks()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        self.blocks.iter().map(|b| 8 * b.ciphertext().words().len()).sum()
    }

    pub(super) fn integer(&self, kind: IntegerType, i: usize) -> RadixInt {
        let n = kind.blocks();
        RadixInt::from_checked(kind, self.blocks[i * n..(i + 1) * n].to_vec())
    }

    pub(super) fn boolean(&self, i: usize) -> EncryptedBool {
        EncryptedBool::from_checked(self.blocks[i].clone())
    }

    pub(super) fn of_integers(&self, kind: IntegerType, elements: Vec<RadixInt>) -> Self {
        let blocks = elements.into_iter().flat_map(RadixInt::into_blocks).collect();
        let (shape, owner) = (self.shape.clone(), self.owner);
        Self { element: ElementType::Integer(kind), shape, owner, blocks, seed: None }
    }

    pub(super) fn of_booleans(&self, elements: Vec<EncryptedBool>) -> Self {
        let blocks = elements.into_iter().map(EncryptedBool::into_block).collect();
        Self { element: ElementType::Bool, shape: self.shape.clone(), owner: self.owner, blocks, seed: None }
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
        let n = self.element.blocks();
        let blocks = indices.iter().flat_map(|i| self.blocks[i * n..(i + 1) * n].iter().cloned()).collect();
        Ok(Self { element: self.element, shape, owner: self.owner, blocks, seed: None })
    }

    /// Arrays of one type one after the other, as a flat array.
    ///
    /// # Errors
    /// [`TfheError::WrongKey`], [`TfheError::WrongParameters`], [`TfheError::Parameters`] for arrays of
    /// different owners or types, [`TfheError::Shape`] without any.
    pub fn concatenated(all: &[&Self]) -> Result<Self, TfheError> {
        let first = all.first().ok_or(TfheError::Shape { what: "arrays", expected: 1, found: 0 })?;
        let mut blocks = Vec::new();
        for a in all {
            check_owner("the array", first.owner, a.owner)?;
            if a.element != first.element {
                let reason = format!("arrays of {} and {}; cast one of them first", first.element, a.element);
                return Err(TfheError::Parameters { reason });
            }
            blocks.extend(a.blocks.iter().cloned());
        }
        let shape = vec![blocks.len() / first.element.blocks()];
        elements_of(&shape)?;
        Ok(Self { element: first.element, shape, owner: first.owner, blocks, seed: None })
    }
}

impl fmt::Debug for IntegerArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IntegerArray({:?} {}, key {})", self.shape, self.element, self.owner.1)
    }
}

impl ClientKey {
    /// Encrypts an array given in C order, elements as two's complement (or 0 and 1). Its masks come
    /// from one seed, so that it travels as its bodies.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of values, [`TfheError::Parameters`] unless the
    /// parameters are those of such blocks; [`TfheError::Message`] for a boolean above one.
    pub fn encrypt_array(
        &self,
        element: ElementType,
        shape: Vec<usize>,
        values: &[u64],
    ) -> Result<IntegerArray, TfheError> {
        check_blocks(self.params())?;
        check_shape("values", elements_of(&shape)?, values.len())?;
        if element == ElementType::Bool
            && let Some(value) = values.iter().find(|v| **v > 1)
        {
            return Err(TfheError::Message { value: *value, space: 2 });
        }
        let blocks = element.blocks();
        let messages: Vec<u64> = values.iter().flat_map(|v| (0..blocks).map(move |i| v >> (2 * i) & 3)).collect();
        let seeds = self.object_seeds()?;
        let blocks = self.encrypt_blocks(&messages, element.largest(), &seeds);
        let owner = (self.params().hash(), self.id());
        Ok(IntegerArray { element, shape, owner, blocks, seed: Some(seeds.masks) })
    }

    /// Decrypts an array: elements in C order as two's complement, or 0 and 1.
    ///
    /// # Errors
    /// [`TfheError::WrongParameters`], [`TfheError::WrongKey`].
    pub fn decrypt_array(&self, x: &IntegerArray) -> Result<Vec<u64>, TfheError> {
        check_owner("the array", (self.params().hash(), self.id()), x.owner)?;
        let elements = threads::map(x.len(), |i| match x.element {
            ElementType::Bool => self.decrypt_bool(&x.boolean(i)).map(u64::from),
            ElementType::Integer(kind) => self.decrypt_integer(&x.integer(kind, i)),
        });
        elements.into_iter().collect()
    }
}
