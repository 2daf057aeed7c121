//! Shifts and rotations by public and by encrypted numbers.

use crate::TfheError;
use crate::radix::arithmetic::{carry, message};
use crate::radix::combination::Combination;
use crate::radix::{BASE, BLOCK_BITS, IntegerEvaluator, IntegerType, RadixInt};

/// Where bits go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shift {
    /// Towards the higher bits; zeros follow.
    Left,
    /// Towards the lower bits; zeros follow, or the sign of a signed number.
    Right,
    /// Towards the higher bits, round to the lowest.
    RotateLeft,
    /// Towards the lower bits, round to the highest.
    RotateRight,
}

impl Shift {
    /// Every shift.
    pub const ALL: [Self; 4] = [Self::Left, Self::Right, Self::RotateLeft, Self::RotateRight];

    fn left(self) -> bool {
        matches!(self, Self::Left | Self::RotateLeft)
    }

    fn rotates(self) -> bool {
        matches!(self, Self::RotateLeft | Self::RotateRight)
    }

    /// The same on the bits of a plain number.
    pub fn plain(self, kind: IntegerType, value: u64, by: u64) -> u64 {
        let (bits, value) = (u64::from(kind.bits()), kind.wrap(value));
        let (round, rest) = (by % bits, bits - by % bits);
        let wide = u128::from(value);
        kind.wrap(match self {
            Self::RotateLeft => (wide << round | wide >> rest) as u64,
            Self::RotateRight => (wide >> round | wide << rest) as u64,
            Self::Left if by >= bits => 0,
            Self::Left => value << by,
            Self::Right => (kind.to_i128(value) >> by.min(bits)) as u64,
        })
    }
}

impl IntegerEvaluator<'_> {
    /// a shifted by a public number of bits: nothing for whole blocks, else one bootstrap a block.
    /// Numbers beyond the width shift everything out; rotations take them modulo the width.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn shift(&self, shift: Shift, a: &RadixInt, by: u64) -> Result<RadixInt, TfheError> {
        self.check(a)?;
        let bits = u64::from(a.kind().bits());
        let by = (if shift.rotates() { by % bits } else { by.min(bits) }) as usize;
        let blocks = self.blocks(a);
        let fill = match shift {
            Shift::Right if by > 0 => self.fill(&blocks, a.kind())?,
            _ => Combination::constant(self.key, 0),
        };
        let moved = self.moved(shift, &blocks, by / BLOCK_BITS as usize, &fill);
        if by.is_multiple_of(BLOCK_BITS as usize) {
            return Ok(self.wrap(a.kind(), moved));
        }
        // One bit more: each block takes one bit of its neighbour.
        let beside = self.moved(shift, &moved, 1, &fill);
        let out = self.run(moved.len(), |i| {
            if shift.left() {
                self.packed(&moved[i], &beside[i], &|v| message(2 * (v / BASE) + v % BASE / 2))
            } else {
                self.packed(&moved[i], &beside[i], &|v| v / BASE / 2 + v % 2 * 2)
            }
        })?;
        Ok(self.wrap(a.kind(), out))
    }

    /// Blocks moved by whole blocks.
    fn moved(&self, shift: Shift, blocks: &[Combination], by: usize, fill: &Combination) -> Vec<Combination> {
        let n = blocks.len();
        let from = |i: usize| match shift {
            Shift::Left => i.checked_sub(by),
            Shift::Right => Some(i + by).filter(|j| *j < n),
            Shift::RotateLeft => Some((i + n - by % n) % n),
            Shift::RotateRight => Some((i + by) % n),
        };
        (0..n).map(|i| from(i).map_or_else(|| fill.clone(), |j| blocks[j].clone())).collect()
    }

    /// a shifted by an encrypted number of bits, read as unsigned, of any width: about one rotation a
    /// block for each bit of it that matters. Numbers beyond the width shift everything out;
    /// rotations take them modulo the width.
    ///
    /// Each bit of the number, as 0 or 4, is added to every block; two tables of the sum give what
    /// stays and what moves, and the two are added where they meet.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn shift_by(&self, shift: Shift, a: &RadixInt, by: &RadixInt) -> Result<RadixInt, TfheError> {
        self.check(a)?;
        self.check(by)?;
        let (kind, amount) = (a.kind(), self.blocks(by));
        if let Some(known) = amount.iter().rev().try_fold(0u64, |sum, b| Some(sum << 2 | b.public()? as u64)) {
            return self.shift(shift, a, known);
        }
        let bits = u64::from(kind.bits());
        let mut blocks = self.blocks(a);
        let fill = if shift == Shift::Right { self.fill(&blocks, kind)? } else { Combination::constant(self.key, 0) };
        let selectors = self.run(amount.len(), |i| self.tables(&amount[i], &[&|v| v % 2 * BASE, &|v| v / 2 * BASE]))?;
        let mut beyond = Vec::new();
        for (k, selector) in selectors.iter().flatten().enumerate() {
            // 2^k modulo the width of a rotation, or 2^k where it is below the width.
            let step = match 1u64.checked_shl(k as u32) {
                Some(step) if shift.rotates() => step % bits,
                Some(step) if step < bits => step,
                _ => {
                    beyond.push(selector);
                    continue;
                }
            };
            if step > 0 {
                blocks = self.step(shift, &blocks, selector, step as usize, (kind, &fill))?;
            }
        }
        if !shift.rotates() && !beyond.is_empty() {
            let flags = self.run(beyond.len().div_ceil(3), |g| {
                let mut sum = Combination::constant(self.key, 0);
                for s in &beyond[3 * g..beyond.len().min(3 * g + 3)] {
                    sum = sum.plus(s)?;
                }
                self.table(&sum, &|v| i64::from(v != 0))
            })?;
            let over = self.any(flags, &|v| if v == 0 { 0 } else { BASE })?;
            let none = vec![fill; blocks.len()];
            let kept = self.run(blocks.len(), |i| self.gated(&blocks[i], &over, false))?;
            let filled = self.gated(&none[0], &over, true)?;
            blocks = kept.iter().map(|b| b.clone().plus(&filled)).collect::<Result<Vec<_>, _>>()?;
            blocks = blocks.into_iter().map(|b| b.within(0, BASE - 1)).collect();
        }
        Ok(self.wrap(kind, blocks))
    }

    /// x where the selector (0 or 4) is set (or is not), else zero.
    fn gated(&self, x: &Combination, selector: &Combination, set: bool) -> Result<Combination, TfheError> {
        if x.public() == Some(0) {
            return Ok(x.clone());
        }
        let sum = x.clone().plus(&selector.clone().within(0, BASE))?;
        self.table(&sum, &move |v| if (v >= BASE) == set { v % BASE } else { 0 })
    }

    /// One stage: a shift by `step` bits where the selector is set.
    fn step(
        &self,
        shift: Shift,
        blocks: &[Combination],
        selector: &Combination,
        step: usize,
        (kind, fill): (IntegerType, &Combination),
    ) -> Result<Vec<Combination>, TfheError> {
        let n = blocks.len();
        let (whole, left) = (step / BLOCK_BITS as usize, shift.left());
        let odd = !step.is_multiple_of(BLOCK_BITS as usize);
        let stays = move |v: i64| match (v >= BASE, odd) {
            (false, _) => v,
            (true, false) => 0,
            (true, true) if left => message(2 * v),
            (true, true) => v % BASE / 2,
        };
        let moves = move |v: i64| match (v >= BASE, odd) {
            (false, _) => 0,
            (true, false) => v % BASE,
            (true, true) if left => carry(2 * (v % BASE)),
            (true, true) => v % 2 * 2,
        };
        let parts = self.run(n, |i| self.tables(&blocks[i].clone().plus(selector)?, &[&stays, &moves]))?;
        // What comes in at the end: nothing, or the sign.
        let sign = kind.signed() && shift == Shift::Right;
        let incoming = match (sign, odd) {
            (false, _) => Combination::constant(self.key, 0),
            (true, false) => self.gated(fill, selector, true)?,
            (true, true) => self.table(&fill.clone().plus(selector)?, &|v| if v >= BASE { v % 2 * 2 } else { 0 })?,
        };
        let moving: Vec<_> = parts.iter().map(|p| p[1].clone()).collect();
        let moved = self.moved(shift, &moving, whole + usize::from(odd), &incoming);
        parts.iter().zip(&moved).map(|(p, m)| Ok(p[0].clone().plus(m)?.within(0, BASE - 1))).collect()
    }
}
