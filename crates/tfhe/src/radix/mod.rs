//! Encrypted integers of 4 to 64 bits, signed and unsigned, as blocks of two bits; and booleans.
//!
//! A block is a small encrypted integer with room for carries above its message
//! ([`TfheLiteral::message_2_carry_2`](crate::TfheLiteral::message_2_carry_2)). Arithmetic wraps as
//! two's complement does. Between operations blocks hold messages alone, with noise that is known,
//! so every operation is one pass of as few bootstraps as its tables allow:
//!
//! | operation on n blocks | blind rotations, one core |
//! |---|---|
//! | add, subtract, negate, bitwise, shift by a public number | n |
//! | not, shift by whole blocks, casts of unsigned numbers | 0 |
//! | ==, !=, <, <=, >, >= (signed: one more for the order) | n |
//! | select / minimum, maximum | n / 2n |
//! | multiply, 8 bits (n = 4) | 22 |
//! | shift or rotate by an encrypted number | about n for each bit of the number |
//!
//! Inside a pool of threads, independent blocks run in parallel, carries by a parallel prefix where
//! that is quicker; results decrypt to the same numbers.
//!
//! Sources: Bergerat and others, *Parameter optimization and larger precision for (T)FHE*,
//! 2022/704, section 4 (radix blocks with carries); Chillotti, Ligier, Orfila and Tap, 2021/729,
//! section 3.2 (several tables from one rotation).

mod arithmetic;
mod array;
mod bits;
mod combination;
mod comparison;
mod elementwise;
pub(crate) mod integer;
mod lookup;
mod multiply;
mod shift;
mod table;
pub(crate) mod value;

pub(crate) use array::elements_of;
pub use array::{ElementType, IntegerArray, MAX_AXES, MAX_ELEMENTS};
pub use bits::BitOperation;
pub use comparison::Comparison;
pub use elementwise::Elementwise;
pub use integer::EncryptedInt;
pub use shift::Shift;
pub use table::MAX_INDEX_BITS;
pub use value::{EncryptedBool, IntegerType, RadixInt};

use crate::keys::check_plaintext;
use crate::{Plaintext, ServerKey, TfheError};
use combination::Combination;
use std::sync::atomic::{AtomicU64, Ordering};
use sudare_ring::threads;

/// Bits of a block's message.
pub const BLOCK_BITS: u32 = 2;
/// Values of a block's message.
const BASE: i64 = 1 << BLOCK_BITS;

/// Computes on encrypted integers with a server key.
pub struct IntegerEvaluator<'k> {
    key: &'k ServerKey,
    /// Threads that one operation may count on.
    workers: usize,
    rotations: AtomicU64,
}

impl ServerKey {
    /// Integer operations under this key; inside a thread pool each uses its threads.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] unless blocks hold two bits of message and at least two of carry.
    pub fn integers(&self) -> Result<IntegerEvaluator<'_>, TfheError> {
        check_blocks(self.params())?;
        Ok(IntegerEvaluator { key: self, workers: threads::count(), rotations: AtomicU64::new(0) })
    }
}

/// # Errors
/// [`TfheError::Parameters`] unless integers are made of these blocks.
pub(crate) fn check_blocks(params: &crate::TfheParams) -> Result<(), TfheError> {
    check_plaintext(params, false)?;
    match params.literal().plaintext {
        Plaintext::Integer { message_bits: BLOCK_BITS, carry_bits } if carry_bits >= 2 => Ok(()),
        _ => Err(TfheError::Parameters {
            reason: "integers are blocks of two bits of message and at least two of carry".into(),
        }),
    }
}

impl IntegerEvaluator<'_> {
    /// Blind rotations since it was made.
    pub fn rotations(&self) -> u64 {
        self.rotations.load(Ordering::Relaxed)
    }

    /// The same operation on `count` elements, in parallel inside a pool; threads that are left over
    /// share the work inside an element.
    ///
    /// # Errors
    /// The first error of any element.
    pub fn each<T: Send>(
        &self,
        count: usize,
        work: impl Fn(&Self, usize) -> Result<T, TfheError> + Sync + Send,
    ) -> Result<Vec<T>, TfheError> {
        let with = |workers| Self { key: self.key, workers, rotations: AtomicU64::new(0) };
        // Elements run on a thread each; those left when the threads do not divide them share the threads.
        let left = count % self.workers;
        let (alone, shared) = (with(1), with(self.workers / left.max(1)));
        let all = threads::map_jobs(count, |i| work(if i < count - left { &alone } else { &shared }, i));
        self.rotations.fetch_add(alone.rotations() + shared.rotations(), Ordering::Relaxed);
        all.into_iter().collect()
    }

    fn check(&self, x: &RadixInt) -> Result<(), TfheError> {
        x.blocks().iter().try_for_each(|b| self.check_block(b))
    }

    fn check_block(&self, b: &EncryptedInt) -> Result<(), TfheError> {
        let (hash, id) = b.owner();
        self.key.check("the integer", hash, id)
    }

    /// # Errors
    /// [`TfheError::Parameters`] for integers of different types.
    fn check_pair(&self, a: &RadixInt, b: &RadixInt) -> Result<(), TfheError> {
        self.check(a)?;
        self.check(b)?;
        if a.kind() == b.kind() {
            return Ok(());
        }
        let reason = format!("an operation on {} and {}; cast one of them first", a.kind(), b.kind());
        Err(TfheError::Parameters { reason })
    }

    fn blocks(&self, x: &RadixInt) -> Vec<Combination> {
        x.blocks().iter().map(|b| Combination::of(self.key, b)).collect()
    }

    /// Independent pieces of one operation, in parallel if it may count on several threads.
    fn run<T: Send>(
        &self,
        count: usize,
        work: impl Fn(usize) -> Result<T, TfheError> + Sync + Send,
    ) -> Result<Vec<T>, TfheError> {
        if self.workers > 1 { threads::map(count, work).into_iter().collect() } else { (0..count).map(work).collect() }
    }

    /// Rounds of bootstraps that `count` of them take.
    fn rounds(&self, count: usize) -> usize {
        count.div_ceil(self.workers)
    }

    /// A combination whose values are those of a message, as a block.
    fn block(&self, x: Combination) -> EncryptedInt {
        let owner = (self.key.params().hash(), self.key.id());
        EncryptedInt::from_parts(x.c, owner, x.high.max(0) as u64, x.noise)
    }

    fn wrap(&self, kind: IntegerType, blocks: Vec<Combination>) -> RadixInt {
        RadixInt::from_checked(kind, blocks.into_iter().map(|b| self.block(b)).collect())
    }

    fn wrap_bool(&self, x: Combination) -> EncryptedBool {
        EncryptedBool::from_checked(self.block(x))
    }

    /// A block with the noise of one bootstrap, by a bootstrap unless it has no more.
    fn refreshed(&self, x: &Combination) -> Result<Combination, TfheError> {
        if x.noise <= 1 { Ok(x.clone()) } else { self.table(x, &|v| v) }
    }

    fn all_refreshed(&self, x: &[Combination]) -> Result<Vec<Combination>, TfheError> {
        self.run(x.len(), |i| self.refreshed(&x[i]))
    }

    /// The integer that everybody knows: `value` modulo 2^bits, as two's complement.
    ///
    /// # Errors
    /// None for a type that exists.
    pub fn public(&self, kind: IntegerType, value: u64) -> Result<RadixInt, TfheError> {
        let blocks = (0..kind.blocks()).map(|i| (value >> (2 * i)) as i64 & (BASE - 1));
        Ok(self.wrap(kind, blocks.map(|b| Combination::constant(self.key, b)).collect()))
    }

    /// The boolean that everybody knows.
    ///
    /// # Errors
    /// None.
    pub fn public_bool(&self, value: bool) -> Result<EncryptedBool, TfheError> {
        Ok(self.wrap_bool(Combination::constant(self.key, i64::from(value))))
    }
}
