//! Encrypted integers of 4 to 64 bits, signed and unsigned, as blocks of two bits; and booleans.
//!
//! A block is a small encrypted integer with room for carries above its message
//! ([`TfheLiteral::message_2_carry_2`](crate::TfheLiteral::message_2_carry_2)). Arithmetic wraps as
//! two's complement does. Between operations blocks hold messages alone, with noise that is known,
//! so every operation is one pass of as few bootstraps as its tables allow. (Sums of arrays, see
//! [`crate::array`], leave their carries to the first operation that needs them.)
//!
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
mod bits;
pub(crate) mod combination;
mod comparison;
mod elementwise;
pub(crate) mod integer;
mod lookup;
mod multiply;
mod shift;
mod table;
pub(crate) mod value;

pub use bits::BitOperation;
pub use comparison::Comparison;
pub use integer::EncryptedInt;
pub use shift::Shift;
pub use table::MAX_INDEX_BITS;
pub use value::{EncryptedBool, IntegerType, RadixInt};

use crate::array::Progress;
use crate::array::progress::Observer;
use crate::keys::check_plaintext;
use crate::rotation::batch::groups;
use crate::{Plaintext, ServerKey, TfheError};
use combination::Combination;
use std::ops::Range;
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
    /// Integers that it computes side by side, so that they share the reading of the key.
    lanes: usize,
    rotations: AtomicU64,
    observer: Observer<'k>,
}

impl ServerKey {
    /// Integer operations under this key; inside a thread pool each uses its threads.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] unless blocks hold two bits of message and at least two of carry.
    pub fn integers(&self) -> Result<IntegerEvaluator<'_>, TfheError> {
        check_blocks(self.params())?;
        Ok(IntegerEvaluator::alone(self, threads::count(), 1))
    }
}

/// # Errors
/// [`TfheError::Parameters`] unless integers are made of these blocks.
pub(crate) fn check_blocks(params: &crate::TfheParams) -> Result<(), TfheError> {
    check_plaintext(params, false)?;
    match params.literal().plaintext {
        Plaintext::Integer { message_bits: BLOCK_BITS, carry_bits } if carry_bits >= 2 => Ok(()),
        _ => Err(TfheError::Parameters {
            reason: "integers need a set with two bits of message and at least two of carry; take message_2_carry_2"
                .into(),
        }),
    }
}

impl<'k> IntegerEvaluator<'k> {
    fn alone(key: &'k ServerKey, workers: usize, lanes: usize) -> Self {
        Self { key, workers, lanes, rotations: AtomicU64::new(0), observer: Observer::default() }
    }

    /// The same, whose operations on arrays report their progress.
    pub(crate) fn observed(self, progress: Progress<'k>) -> Self {
        Self { observer: Observer::new(progress), ..self }
    }
}

impl IntegerEvaluator<'_> {
    /// Blind rotations since it was made.
    pub fn rotations(&self) -> u64 {
        self.rotations.load(Ordering::Relaxed)
    }

    /// The same operation on `count` elements, a few that are `alike` side by side and these groups in
    /// parallel inside a pool. Where there are too few elements for that, each runs by itself, and threads
    /// that are left over share the work inside an element.
    ///
    /// # Errors
    /// The first error of any element.
    fn each<T: Send>(
        &self,
        count: usize,
        alike: impl Fn(&Range<usize>) -> bool,
        work: impl Fn(&Self, Range<usize>) -> Result<T, TfheError> + Sync + Send,
    ) -> Result<Vec<T>, TfheError> {
        let pieces = if count < 2 * self.workers { count } else { groups(count, self.workers) };
        let mut ranges = Vec::with_capacity(pieces);
        for g in 0..pieces {
            let range = g * count / pieces..(g + 1) * count / pieces;
            match range.len() == 1 || alike(&range) {
                true => ranges.push(range),
                false => ranges.extend(range.map(|i| i..i + 1)),
            }
        }
        let (all, left) = (ranges.len(), ranges.len() % self.workers);
        let done_more = self.observer.counting(all);
        let done = threads::map_jobs(all, |i| {
            let workers = if i < all - left { 1 } else { self.workers / left.max(1) };
            let alone = Self::alone(self.key, workers, ranges[i].len());
            let out = work(&alone, ranges[i].clone());
            self.rotations.fetch_add(alone.rotations(), Ordering::Relaxed);
            done_more(1);
            out
        });
        done.into_iter().collect()
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
        let reason = format!("{} and {} are not computed with each other; cast one of them first", a.kind(), b.kind());
        Err(TfheError::Parameters { reason })
    }

    fn blocks(&self, x: &RadixInt) -> Vec<Combination> {
        let n = x.kind().blocks();
        (0..n).map(|i| Combination::of(self.key, x.blocks()[i..].iter().step_by(n))).collect()
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

    /// A lane of a combination whose values are those of a message, as a block.
    fn block(&self, x: &Combination, lane: usize) -> EncryptedInt {
        let owner = (self.key.params().hash(), self.key.id());
        EncryptedInt::from_parts(x.lane(lane).clone(), owner, x.high.max(0) as u64, x.noise)
    }

    fn wrap(&self, kind: IntegerType, blocks: Vec<Combination>) -> RadixInt {
        let lane = |lane: usize| blocks.iter().map(move |b| self.block(b, lane));
        RadixInt::from_checked(kind, (0..self.lanes).flat_map(lane).collect())
    }

    fn wrap_bool(&self, x: Combination) -> EncryptedBool {
        EncryptedBool::from_checked((0..self.lanes).map(|lane| self.block(&x, lane)).collect())
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
