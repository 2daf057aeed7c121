//! Sums, differences and their carries.

use crate::TfheError;
use crate::radix::combination::Combination;
use crate::radix::value::LARGEST_NOISE;
use crate::radix::{BASE, IntegerEvaluator, IntegerType, RadixInt};

/// What stays in a block.
pub(super) fn message(v: i64) -> i64 {
    v.rem_euclid(BASE)
}

/// What goes to the next block.
pub(super) fn carry(v: i64) -> i64 {
    v.div_euclid(BASE)
}

/// A carry out of a block: none, the one that comes in, or one in any case.
fn state(sum: i64) -> i64 {
    match sum {
        s if s < BASE - 1 => 0,
        s if s == BASE - 1 => 1,
        _ => 2,
    }
}

/// The state of two neighbours from `3·upper + lower`: the upper's, or the lower's if it passes on.
fn joined(v: i64) -> i64 {
    if v / 3 == 1 { v % 3 } else { v / 3 }
}

impl IntegerEvaluator<'_> {
    /// a + b, wrapping.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`; [`TfheError::Parameters`] for
    /// integers of different types.
    pub fn add(&self, a: &RadixInt, b: &RadixInt) -> Result<RadixInt, TfheError> {
        self.check_pair(a, b)?;
        Ok(self.wrap(a.kind(), self.propagate(self.sums(a, b)?)?))
    }

    /// a − b, wrapping: a plus the complement of b plus one.
    ///
    /// # Errors
    /// As for [`IntegerEvaluator::add`].
    pub fn sub(&self, a: &RadixInt, b: &RadixInt) -> Result<RadixInt, TfheError> {
        self.check_pair(a, b)?;
        Ok(self.wrap(a.kind(), self.propagate(self.differences(a, b)?)?))
    }

    /// Block by block, carries not propagated.
    pub(super) fn sums(&self, a: &RadixInt, b: &RadixInt) -> Result<Vec<Combination>, TfheError> {
        self.blocks(a).into_iter().zip(self.blocks(b)).map(|(x, y)| x.plus(&y)).collect()
    }

    /// The same of a and the complement of b, plus one.
    pub(super) fn differences(&self, a: &RadixInt, b: &RadixInt) -> Result<Vec<Combination>, TfheError> {
        let pairs = self.blocks(a).into_iter().zip(self.blocks(b)).enumerate();
        let sums = pairs.map(|(i, (x, y))| Ok(x.minus(&y)?.plus_constant(self.key, BASE - 1 + i64::from(i == 0))));
        sums.collect()
    }

    /// −a, wrapping.
    ///
    /// # Errors
    /// As for [`IntegerEvaluator::add`].
    pub fn neg(&self, a: &RadixInt) -> Result<RadixInt, TfheError> {
        self.check(a)?;
        let blocks = self.blocks(a).into_iter().enumerate();
        let sums = blocks.map(|(i, x)| x.times(-1).plus_constant(self.key, BASE - 1 + i64::from(i == 0)));
        Ok(self.wrap(a.kind(), self.propagate(sums.collect())?))
    }

    /// The same number as another type: the lowest bits, or more of them, filled as the type of `a`
    /// says. Only the sign of a wider signed number costs a bootstrap.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn cast(&self, a: &RadixInt, kind: IntegerType) -> Result<RadixInt, TfheError> {
        self.check(a)?;
        let mut blocks = self.blocks(a);
        if kind.blocks() > blocks.len() {
            let fill = self.fill(&blocks, a.kind())?;
            blocks.resize(kind.blocks(), fill);
        }
        blocks.truncate(kind.blocks());
        Ok(self.wrap(kind, blocks))
    }

    /// What stands above the highest block: zeros, or copies of the sign.
    pub(super) fn fill(&self, blocks: &[Combination], kind: IntegerType) -> Result<Combination, TfheError> {
        match blocks.last() {
            Some(top) if kind.signed() => self.table(top, &|v| (BASE - 1) * (v / (BASE / 2))),
            _ => Ok(Combination::constant(self.key, 0)),
        }
    }

    /// Blocks of messages from sums of up to twice the largest message (and a one in the first), or of up to
    /// four times: one rotation a block (two where the values are many), one after the other, or a parallel
    /// prefix of carry states where that takes fewer rounds. A block that has no carry and takes none in stays.
    pub(super) fn propagate(&self, sums: Vec<Combination>) -> Result<Vec<Combination>, TfheError> {
        let n = sums.len();
        let mut rounds = self.rounds(n) + self.rounds(n - 1);
        let mut distance = 1;
        while distance < n {
            rounds += self.rounds(n / 2);
            distance *= 2;
        }
        let most = |i: usize| 2 * (BASE - 1) + i64::from(i == 0);
        let prefix = rounds < n && sums.iter().enumerate().all(|(i, s)| s.high <= most(i));
        if prefix { self.propagate_prefix(&sums) } else { self.propagate_ripple(&sums) }
    }

    fn propagate_ripple(&self, sums: &[Combination]) -> Result<Vec<Combination>, TfheError> {
        let mut out = Vec::with_capacity(sums.len());
        let mut incoming: Option<Combination> = None;
        for (i, sum) in sums.iter().enumerate() {
            let sum = match &incoming {
                Some(c) => sum.clone().plus(c)?,
                None => sum.clone(),
            };
            if sum.low >= 0 && sum.high < BASE && sum.noise <= LARGEST_NOISE {
                out.push(sum);
                incoming = None;
                continue;
            }
            if i + 1 == sums.len() {
                out.push(self.table(&sum, &message)?);
                break;
            }
            let mut both = self.tables(&sum, &[&message, &carry])?;
            incoming = both.pop();
            out.extend(both);
        }
        Ok(out)
    }

    /// Sklansky's prefix network over the states of the carries.
    fn propagate_prefix(&self, sums: &[Combination]) -> Result<Vec<Combination>, TfheError> {
        let n = sums.len();
        let first = |v: i64| 2 * carry(v);
        let pairs = self.run(n, |i| match i {
            0 => self.tables(&sums[0], &[&message, &first]),
            _ if i + 1 == n => self.tables(&sums[i], &[&message]),
            _ => self.tables(&sums[i], &[&message, &state]),
        })?;
        let (mut messages, mut states) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for pair in pairs {
            let mut pair = pair.into_iter();
            messages.extend(pair.next());
            states.extend(pair.next());
        }
        let mut distance = 1;
        while distance < states.len() {
            // Each odd run of `distance` states takes the last state of the run before it.
            let upper: Vec<usize> = (0..states.len()).filter(|i| i / distance % 2 == 1).collect();
            let done = self.run(upper.len(), |u| {
                let i = upper[u];
                let below = &states[i / distance * distance - 1];
                self.table(&states[i].clone().times(3).plus(below)?, &joined)
            })?;
            for (i, s) in upper.into_iter().zip(done) {
                states[i] = s;
            }
            distance *= 2;
        }
        // States now say 0 or 2: what comes in from the very first block is settled.
        let rest = self.run(n - 1, |i| {
            let sum = messages[i + 1].clone().plus(&states[i].clone().within(0, 2).times(2))?;
            self.table(&sum, &|v| message(v % BASE + v / BASE))
        })?;
        messages.truncate(1);
        messages.extend(rest);
        Ok(messages)
    }
}
