//! Bitwise operations, booleans and choices.

use crate::TfheError;
use crate::radix::combination::Combination;
use crate::radix::value::LARGEST_NOISE;
use crate::radix::{BASE, EncryptedBool, IntegerEvaluator, RadixInt};

/// A bitwise operation of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BitOperation {
    And,
    Or,
    Xor,
}

impl BitOperation {
    /// The same on plain bits.
    pub const fn plain(self, a: u64, b: u64) -> u64 {
        match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }
}

impl IntegerEvaluator<'_> {
    /// a and b, a or b, a xor b, bit by bit: one bootstrap a block.
    ///
    /// # Errors
    /// As for [`IntegerEvaluator::add`].
    pub fn bitwise(&self, operation: BitOperation, a: &RadixInt, b: &RadixInt) -> Result<RadixInt, TfheError> {
        self.check_pair(a, b)?;
        let table = move |v: i64| operation.plain((v / BASE) as u64, (v % BASE) as u64) as i64;
        let (x, y) = (self.blocks(a), self.blocks(b));
        let blocks = self.run(x.len(), |i| self.packed(&x[i], &y[i], &table))?;
        Ok(self.wrap(a.kind(), blocks))
    }

    /// A table of `4·a + b` for two messages; operands of too much noise are refreshed first.
    pub(super) fn packed(
        &self,
        a: &Combination,
        b: &Combination,
        table: &(dyn Fn(i64) -> i64 + Sync),
    ) -> Result<Combination, TfheError> {
        let packed = a.clone().times(BASE).plus(b)?;
        if packed.public().is_some() || self.fits(&packed, &[table]) {
            return self.table(&packed, table);
        }
        self.table(&self.refreshed(a)?.times(BASE).plus(&self.refreshed(b)?)?, table)
    }

    /// Every bit flipped; no bootstrap.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn not(&self, a: &RadixInt) -> Result<RadixInt, TfheError> {
        self.check(a)?;
        let flip = |x: Combination| x.times(-1).plus_constant(self.key, BASE - 1);
        Ok(self.wrap(a.kind(), self.blocks(a).into_iter().map(flip).collect()))
    }

    fn bool(&self, x: &EncryptedBool) -> Result<Combination, TfheError> {
        x.blocks().iter().try_for_each(|b| self.check_block(b))?;
        Ok(Combination::of(self.key, x.blocks().iter()))
    }

    /// a and b, a or b, a xor b, by one bootstrap.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn bool_op(
        &self,
        operation: BitOperation,
        a: &EncryptedBool,
        b: &EncryptedBool,
    ) -> Result<EncryptedBool, TfheError> {
        let sum = self.bool(a)?.plus(&self.bool(b)?)?;
        let table = move |v: i64| operation.plain(u64::from(v == 2), u64::from(v >= 1)) as i64;
        Ok(self.wrap_bool(self.table(&sum, &table)?))
    }

    /// Not a; no bootstrap.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn bool_not(&self, a: &EncryptedBool) -> Result<EncryptedBool, TfheError> {
        Ok(self.wrap_bool(self.bool(a)?.times(-1).plus_constant(self.key, 1)))
    }

    /// The boolean as a number of a type: zero or one.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn bool_to_int(&self, a: &EncryptedBool, kind: crate::radix::IntegerType) -> Result<RadixInt, TfheError> {
        let mut blocks = vec![self.bool(a)?];
        blocks.resize(kind.blocks(), Combination::constant(self.key, 0));
        Ok(self.wrap(kind, blocks))
    }

    /// `if condition { a } else { b }`: one bootstrap a block, of `2·(a − b) + condition`, whose result
    /// `condition·(a − b)` is added to b.
    ///
    /// # Errors
    /// As for [`IntegerEvaluator::add`].
    pub fn select(&self, condition: &EncryptedBool, a: &RadixInt, b: &RadixInt) -> Result<RadixInt, TfheError> {
        self.check_pair(a, b)?;
        let condition = self.bool(condition)?;
        let (x, y) = (self.blocks(a), self.blocks(b));
        Ok(self.wrap(a.kind(), self.choose(&condition, &x, &y)?))
    }

    /// `if condition { a } else { b }` for booleans, by one bootstrap.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn bool_select(
        &self,
        condition: &EncryptedBool,
        a: &EncryptedBool,
        b: &EncryptedBool,
    ) -> Result<EncryptedBool, TfheError> {
        let (c, a, b) = (self.bool(condition)?, self.bool(a)?, self.bool(b)?);
        // 4·a + 2·b + c tells all three.
        let all = |a: &Combination, b: &Combination| a.clone().times(2).plus(b)?.times(2).plus(&c);
        let table = |v: i64| if v % 2 == 1 { v / 4 } else { v / 2 % 2 };
        let sum = all(&a, &b)?;
        let sum = if self.fits(&sum, &[&table]) { sum } else { all(&self.refreshed(&a)?, &self.refreshed(&b)?)? };
        Ok(self.wrap_bool(self.table(&sum, &table)?))
    }

    /// Blocks of a where the condition holds, of b elsewhere.
    pub(super) fn choose(
        &self,
        condition: &Combination,
        a: &[Combination],
        b: &[Combination],
    ) -> Result<Vec<Combination>, TfheError> {
        if let Some(c) = condition.public() {
            return Ok(if c == 1 { a } else { b }.to_vec());
        }
        let condition = self.refreshed(condition)?.within(0, 1);
        self.run(a.len(), |i| {
            let difference = |a: &Combination, b: &Combination| a.clone().minus(b)?.times(2).plus(&condition);
            let table = |v: i64| if v.rem_euclid(2) == 1 { v.div_euclid(2) } else { 0 };
            let mut base = b[i].clone();
            let mut sum = difference(&a[i], &base)?;
            if sum.low >= 0 && sum.high <= 1 {
                return Ok(base); // Both are the same public number.
            }
            if base.noise >= LARGEST_NOISE || !self.fits(&sum, &[&table]) {
                base = self.refreshed(&base)?;
                sum = difference(&self.refreshed(&a[i])?, &base)?;
            }
            let (low, high) = (a[i].low.min(base.low), a[i].high.max(base.high));
            Ok(base.plus(&self.table(&sum, &table)?)?.within(low, high))
        })
    }
}
