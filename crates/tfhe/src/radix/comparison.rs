//! Comparisons: chains of signs of differences.

use crate::TfheError;
use crate::radix::combination::Combination;
use crate::radix::{BASE, EncryptedBool, IntegerEvaluator, RadixInt};

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Comparison {
    /// Every comparison.
    pub const ALL: [Self; 6] = [Self::Eq, Self::Ne, Self::Lt, Self::Le, Self::Gt, Self::Ge];

    /// Whether it holds for two things in this order.
    pub const fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::Ne => order.is_ne(),
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
        }
    }
}

/// How many signs one bootstrap joins, and flags at least.
const JOINED: usize = 3;
/// How many flags it joins at most.
const MOST_JOINED: usize = 16;

impl IntegerEvaluator<'_> {
    /// Whether the comparison holds: one bootstrap a block (an order of signed numbers: one more).
    ///
    /// Equality runs a flag through the blocks, an order a sign: the next is that of
    /// `2·(a_i − b_i) + sign`, since a difference in a higher block outweighs the lower ones. Both
    /// tables are negacyclic and so take differences of either sign as they are.
    ///
    /// # Errors
    /// As for [`IntegerEvaluator::add`].
    pub fn compare(&self, comparison: Comparison, a: &RadixInt, b: &RadixInt) -> Result<EncryptedBool, TfheError> {
        self.check_pair(a, b)?;
        let (x, y) = (self.blocks(a), self.blocks(b));
        let relation = |v: i64| i64::from(comparison.holds(v.cmp(&0)));
        let held = match comparison {
            Comparison::Eq | Comparison::Ne => self.differ(&differences(&x, &y)?, &relation),
            _ if a.kind().signed() => self.signed_order(&x, &y, &relation),
            _ => self.order(&differences(&x, &y)?, &relation),
        };
        Ok(self.wrap_bool(held?))
    }

    /// The smaller and the larger of two integers: two bootstraps a block.
    ///
    /// # Errors
    /// As for [`IntegerEvaluator::add`].
    pub fn min(&self, a: &RadixInt, b: &RadixInt) -> Result<RadixInt, TfheError> {
        self.select(&self.compare(Comparison::Lt, a, b)?, a, b)
    }

    /// The larger of two integers: two bootstraps a block.
    ///
    /// # Errors
    /// As for [`IntegerEvaluator::add`].
    pub fn max(&self, a: &RadixInt, b: &RadixInt) -> Result<RadixInt, TfheError> {
        self.select(&self.compare(Comparison::Gt, a, b)?, a, b)
    }

    /// The relation of the sign of `Σ d_i·4^i`, lowest first.
    fn order(&self, d: &[Combination], relation: &(dyn Fn(i64) -> i64 + Sync)) -> Result<Combination, TfheError> {
        let pieces = self.pieces(d.len());
        let size = d.len().div_ceil(pieces);
        let mut signs = self.run(d.len().div_ceil(size), |p| {
            let piece = &d[p * size..d.len().min((p + 1) * size)];
            let last = if pieces == 1 { relation } else { &i64::signum };
            let mut sign: Option<Combination> = None;
            for (i, d) in piece.iter().enumerate() {
                let sum = match &sign {
                    Some(s) => d.clone().times(2).plus(s)?,
                    None => d.clone(),
                };
                sign = Some(self.table(&sum, if i + 1 == piece.len() { last } else { &i64::signum })?);
            }
            sign.ok_or(TfheError::Shape { what: "blocks", expected: 1, found: 0 })
        })?;
        let mut settled = pieces == 1;
        while signs.len() > 1 {
            settled = signs.len() <= JOINED;
            let last = if settled { relation } else { &i64::signum };
            signs = self.run(signs.len().div_ceil(JOINED), |g| {
                let group = &signs[g * JOINED..signs.len().min((g + 1) * JOINED)];
                self.table(&weighed(group)?, last)
            })?;
        }
        match signs.pop() {
            Some(sign) if settled => Ok(sign),
            Some(sign) => self.table(&sign, relation),
            None => Err(TfheError::Shape { what: "blocks", expected: 1, found: 0 }),
        }
    }

    /// The highest blocks are compared as signed, by a table of both; the others below them.
    fn signed_order(
        &self,
        x: &[Combination],
        y: &[Combination],
        relation: &(dyn Fn(i64) -> i64 + Sync),
    ) -> Result<Combination, TfheError> {
        let top = x.len() - 1;
        let flipped = |v: i64| v ^ (BASE / 2);
        let sign = |v: i64| (flipped(v / BASE) - flipped(v % BASE)).signum();
        let parts = self.run(2, |part| match part {
            0 => self.packed(&x[top], &y[top], &sign),
            _ => self.order(&differences(&x[..top], &y[..top])?, &i64::signum),
        })?;
        self.table(&parts[0].clone().times(2).plus(&parts[1])?, relation)
    }

    /// The relation (== or !=) of any difference to zero.
    fn differ(&self, d: &[Combination], relation: &(dyn Fn(i64) -> i64 + Sync)) -> Result<Combination, TfheError> {
        let pieces = self.pieces(d.len());
        let size = d.len().div_ceil(pieces);
        let nonzero = |v: i64| i64::from(v != 0);
        let flags = self.run(d.len().div_ceil(size), |p| {
            let piece = &d[p * size..d.len().min((p + 1) * size)];
            let mut flag: Option<Combination> = None;
            for (i, d) in piece.iter().enumerate() {
                let sum = match &flag {
                    // Differences are above −4, so a flag keeps the sum from zero.
                    Some(f) => d.clone().plus(&f.clone().times(BASE))?,
                    None => d.clone(),
                };
                let last = pieces == 1 && i + 1 == piece.len();
                flag = Some(self.table(&sum, if last { relation } else { &nonzero })?);
            }
            flag.ok_or(TfheError::Shape { what: "blocks", expected: 1, found: 0 })
        })?;
        if pieces == 1 {
            return flags.into_iter().next().ok_or(TfheError::Shape { what: "blocks", expected: 1, found: 0 });
        }
        self.any(flags, relation)
    }

    /// The relation of a sum of flags to zero.
    pub(super) fn any(
        &self,
        mut flags: Vec<Combination>,
        relation: &(dyn Fn(i64) -> i64 + Sync),
    ) -> Result<Combination, TfheError> {
        let nonzero = |v: i64| i64::from(v != 0);
        loop {
            let size = self.joinable(&flags);
            let settled = flags.len() <= size;
            flags = self.run(flags.len().div_ceil(size), |g| {
                let group = &flags[g * size..flags.len().min((g + 1) * size)];
                let mut sum = group[0].clone();
                for f in &group[1..] {
                    sum = sum.plus(f)?;
                }
                self.table(&sum, if settled { relation } else { &nonzero })
            })?;
            if settled {
                return flags.pop().ok_or(TfheError::Shape { what: "flags", expected: 1, found: 0 });
            }
        }
    }

    /// How many of these flags one bootstrap joins whatever they are: as many as its boxes hold at their noise.
    fn joinable(&self, flags: &[Combination]) -> usize {
        let noise = flags.iter().map(|f| f.noise).fold(1, u64::max);
        let fits = |count: usize| self.fits(&Combination::flags(count as u64, noise), &[&|v| i64::from(v != 0)]);
        (JOINED..=flags.len().clamp(JOINED, MOST_JOINED)).rev().find(|count| fits(*count)).unwrap_or(JOINED)
    }

    /// Into how many runs of blocks a comparison is cut.
    fn pieces(&self, blocks: usize) -> usize {
        (1..=self.workers.min(blocks / 2).max(1))
            .min_by_key(|p| {
                let (mut rounds, mut left) = (blocks.div_ceil(*p), *p);
                while left > 1 {
                    left = left.div_ceil(JOINED);
                    rounds += self.rounds(left);
                }
                rounds
            })
            .unwrap_or(1)
    }
}

fn differences(x: &[Combination], y: &[Combination]) -> Result<Vec<Combination>, TfheError> {
    x.iter().zip(y).map(|(x, y)| x.clone().minus(y)).collect()
}

/// `Σ 2^i·s_i`: its sign is that of the highest s_i that is not zero.
fn weighed(signs: &[Combination]) -> Result<Combination, TfheError> {
    let mut sum = signs[0].clone();
    for (i, s) in signs.iter().enumerate().skip(1) {
        sum = sum.plus(&s.clone().times(1 << i))?;
    }
    Ok(sum)
}
