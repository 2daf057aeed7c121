//! Encrypted integers and booleans, and how their owner makes and reads them.

use crate::boolean::eighth;
use crate::keys::check_owner;
use crate::radix::{BASE, BLOCK_BITS, check_blocks};
use crate::rotation::table::{decode, encode};
use crate::{ClientKey, EncryptedInt, LweCiphertext, Plaintext, TfheError};
use std::fmt;
use sudare_ring::random::ObjectSeeds;
use sudare_rlwe::{KeyId, ParamsHash};

/// Width and signedness of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntegerType {
    bits: u32,
    signed: bool,
}

impl IntegerType {
    /// A type of `bits` bits: an even number from 4 to 64.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for another width.
    pub fn new(bits: u32, signed: bool) -> Result<Self, TfheError> {
        if (4..=64).contains(&bits) && bits.is_multiple_of(BLOCK_BITS) {
            return Ok(Self { bits, signed });
        }
        Err(TfheError::Parameters { reason: format!("integers have an even number of bits from 4 to 64, not {bits}") })
    }

    /// Bits.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Whether the highest bit is a sign.
    pub fn signed(self) -> bool {
        self.signed
    }

    /// Blocks.
    pub fn blocks(self) -> usize {
        (self.bits / BLOCK_BITS) as usize
    }

    /// `value` modulo 2^bits.
    pub fn wrap(self, value: u64) -> u64 {
        value & (u64::MAX >> (64 - self.bits))
    }

    /// The number that `bits` bits stand for.
    pub fn to_i128(self, value: u64) -> i128 {
        let value = i128::from(self.wrap(value));
        if self.signed && value >> (self.bits - 1) == 1 { value - (1i128 << self.bits) } else { value }
    }
}

impl fmt::Display for IntegerType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}int{}", if self.signed { "" } else { "u" }, self.bits)
    }
}

/// Largest noise that a block may have between operations, in units of a bootstrap's output.
pub(crate) const LARGEST_NOISE: u64 = 3;
/// Largest value of a block of an array whose carry waits: with the carry of the block below, which is then at
/// most three, it still fits message and carry.
pub(crate) const MOST_WAITING: u64 = 12;
/// Its largest noise: with that of the carry it is what a table of message and carry takes.
pub(crate) const WAITING_NOISE: u64 = 4;
/// Largest value and noise of a block of an integer.
const MESSAGE: (u64, u64) = (BASE as u64 - 1, LARGEST_NOISE);

/// # Errors
/// [`TfheError::CarrySpace`], [`TfheError::NoiseBudget`] for a block that can hold or be more than this.
pub(crate) fn check_block(block: &EncryptedInt, (largest, allowed): (u64, u64)) -> Result<(), TfheError> {
    if block.largest() > largest {
        let space = largest + 1;
        return Err(TfheError::CarrySpace { operation: "an integer's block", found: block.largest(), space });
    }
    if block.noise() > allowed {
        let found = block.noise();
        return Err(TfheError::NoiseBudget { operation: "an integer's block", found, allowed });
    }
    Ok(())
}

/// An encrypted integer: blocks of two bits, the lowest first.
#[derive(Clone, PartialEq, Eq)]
pub struct RadixInt {
    kind: IntegerType,
    /// Of one integer; inside operations on arrays, of several one after the other.
    blocks: Vec<EncryptedInt>,
}

impl RadixInt {
    /// An integer from its blocks, lowest first.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of them, [`TfheError::CarrySpace`],
    /// [`TfheError::NoiseBudget`] for a block that can hold more than a message or is too noisy,
    /// `RlweError::WrongKey`, `RlweError::WrongParameters` for blocks of different owners.
    pub fn from_blocks(kind: IntegerType, blocks: Vec<EncryptedInt>) -> Result<Self, TfheError> {
        crate::core::context::check_shape("blocks", kind.blocks(), blocks.len())?;
        for b in &blocks {
            check_block(b, MESSAGE)?;
            check_owner("the block", blocks[0].owner(), b.owner())?;
        }
        Ok(Self { kind, blocks })
    }

    /// Blocks that an operation made.
    pub(crate) fn from_checked(kind: IntegerType, blocks: Vec<EncryptedInt>) -> Self {
        Self { kind, blocks }
    }

    /// Its type.
    pub fn kind(&self) -> IntegerType {
        self.kind
    }

    /// The blocks, lowest first.
    pub fn blocks(&self) -> &[EncryptedInt] {
        &self.blocks
    }

    pub(crate) fn into_blocks(self) -> Vec<EncryptedInt> {
        self.blocks
    }

    /// Its parameters' hash and its key's name.
    pub fn owner(&self) -> (ParamsHash, KeyId) {
        // There are at least two blocks.
        self.blocks[0].owner()
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        self.blocks.iter().map(|b| 8 * b.ciphertext().words().len()).sum()
    }
}

impl fmt::Debug for RadixInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RadixInt({}, key {})", self.kind, self.owner().1)
    }
}

/// An encrypted boolean: a block that is zero or one. Inside operations on arrays it is several.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptedBool(Vec<EncryptedInt>);

impl EncryptedBool {
    /// A boolean from its block.
    ///
    /// # Errors
    /// [`TfheError::CarrySpace`], [`TfheError::NoiseBudget`] for a block that can hold more than one
    /// or is too noisy.
    pub fn from_block(block: EncryptedInt) -> Result<Self, TfheError> {
        check_block(&block, (1, LARGEST_NOISE))?;
        Ok(Self(vec![block]))
    }

    /// Blocks that an operation made, at least one.
    pub(crate) fn from_checked(blocks: Vec<EncryptedInt>) -> Self {
        Self(blocks)
    }

    /// The block.
    pub fn block(&self) -> &EncryptedInt {
        &self.0[0]
    }

    pub(super) fn blocks(&self) -> &[EncryptedInt] {
        &self.0
    }

    pub(crate) fn into_blocks(self) -> Vec<EncryptedInt> {
        self.0
    }

    /// Its parameters' hash and its key's name.
    pub fn owner(&self) -> (ParamsHash, KeyId) {
        self.block().owner()
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        8 * self.block().ciphertext().words().len()
    }
}

impl fmt::Debug for EncryptedBool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncryptedBool(key {})", self.owner().1)
    }
}

/// The phase of a message, or of a bit for gates.
pub(crate) fn phase_of(params: &crate::TfheParams, message: u64) -> u64 {
    match params.literal().plaintext {
        Plaintext::Bit => eighth(params.context().q(), message == 1),
        Plaintext::Integer { .. } => encode(params, message),
    }
}

impl ClientKey {
    /// Encrypts messages, or bits for gates, as blocks that can hold `largest`, number i with stream i of `seeds`.
    pub(crate) fn encrypt_blocks(&self, messages: &[u64], largest: u64, seeds: &ObjectSeeds) -> Vec<EncryptedInt> {
        let owner = (self.params().hash(), self.id());
        let block =
            |(i, m): (usize, &u64)| EncryptedInt::from_parts(self.encrypt_block(i, *m, seeds), owner, largest, 1);
        messages.iter().enumerate().map(block).collect()
    }

    /// Block number i of an object.
    pub(crate) fn encrypt_block(&self, i: usize, message: u64, seeds: &ObjectSeeds) -> LweCiphertext {
        self.encrypt_phase_of(i, phase_of(self.params(), message), seeds)
    }

    /// Block number i of an object, of this phase.
    pub(crate) fn encrypt_phase_of(&self, i: usize, phase: u64, seeds: &ObjectSeeds) -> LweCiphertext {
        let context = self.params().context();
        let (mut masks, mut errors) = (seeds.masks.stream(i as u64), seeds.errors.stream(i as u64));
        self.extracted().encrypt(context.modulus(), phase, context.noise(), &mut masks, &mut errors)
    }

    /// Encrypts `value` modulo 2^bits; a negative number as two's complement.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] unless the parameters are those of such blocks.
    pub fn encrypt_integer(&self, kind: IntegerType, value: u64) -> Result<RadixInt, TfheError> {
        check_blocks(self.params())?;
        let messages: Vec<u64> = (0..kind.blocks()).map(|i| value >> (2 * i) & 3).collect();
        Ok(RadixInt { kind, blocks: self.encrypt_blocks(&messages, 3, &self.object_seeds()?) })
    }

    /// Decrypts an integer: its bits, as two's complement.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn decrypt_integer(&self, x: &RadixInt) -> Result<u64, TfheError> {
        let value = x.blocks.iter().enumerate().try_fold(0u64, |sum, (i, b)| {
            // Blocks of an array may hold more than a message.
            Ok::<_, TfheError>(sum.wrapping_add(self.read_block(b)? << (2 * i)))
        })?;
        Ok(x.kind.wrap(value))
    }

    fn read_block(&self, b: &EncryptedInt) -> Result<u64, TfheError> {
        check_owner("the integer", (self.params().hash(), self.id()), b.owner())?;
        // The space is a power of two.
        Ok(decode(self.params(), self.extracted().phase(b.ciphertext())?) & (self.params().space() - 1))
    }

    /// Encrypts a boolean.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] unless the parameters are those of such blocks.
    pub fn encrypt_bool(&self, value: bool) -> Result<EncryptedBool, TfheError> {
        check_blocks(self.params())?;
        let mut blocks = self.encrypt_blocks(&[u64::from(value)], 1, &self.object_seeds()?);
        blocks.truncate(1);
        Ok(EncryptedBool(blocks))
    }

    /// Decrypts a boolean.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn decrypt_bool(&self, x: &EncryptedBool) -> Result<bool, TfheError> {
        Ok(self.read_block(x.block())? & 1 == 1)
    }
}
