//! How many operations were done.

use std::iter::Sum;
use std::ops::{Add, Mul};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many operations an evaluator has done, by the names of the papers' tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Additions and subtractions of ciphertexts.
    pub add: u64,
    /// Rotations and conjugations, each with its key switch.
    pub rot: u64,
    /// Products with plaintexts.
    pub cmult: u64,
    /// Products of ciphertexts.
    pub mult: u64,
    /// Relinearisations.
    pub relin: u64,
    /// Key switches: rotations, relinearisations, from one secret to another, and products with the keys of a map.
    pub key_switches: u64,
}

impl Counters {
    /// `count` rotations.
    pub fn rotations(count: usize) -> Self {
        Self { rot: count as u64, key_switches: count as u64, ..Self::default() }
    }
}

impl Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            add: self.add + other.add,
            rot: self.rot + other.rot,
            cmult: self.cmult + other.cmult,
            mult: self.mult + other.mult,
            relin: self.relin + other.relin,
            key_switches: self.key_switches + other.key_switches,
        }
    }
}

impl Sum for Counters {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

impl Mul<usize> for Counters {
    type Output = Self;

    fn mul(self, times: usize) -> Self {
        let of = |x: u64| x * times as u64;
        Self {
            add: of(self.add),
            rot: of(self.rot),
            cmult: of(self.cmult),
            mult: of(self.mult),
            relin: of(self.relin),
            key_switches: of(self.key_switches),
        }
    }
}

/// Counters that many threads count on: `add`, `rot`, `cmult`, `mult`, `relin`, `key_switches`.
#[derive(Debug, Default)]
pub(crate) struct AtomicCounters([AtomicU64; 6]);

impl AtomicCounters {
    pub(crate) fn add(&self, done: Counters) {
        let Counters { add, rot, cmult, mult, relin, key_switches } = done;
        for (counter, n) in self.0.iter().zip([add, rot, cmult, mult, relin, key_switches]) {
            counter.fetch_add(n, Ordering::Relaxed);
        }
    }

    pub(crate) fn load(&self) -> Counters {
        let [add, rot, cmult, mult, relin, key_switches] = std::array::from_fn(|i| self.0[i].load(Ordering::Relaxed));
        Counters { add, rot, cmult, mult, relin, key_switches }
    }

    pub(crate) fn reset(&self) {
        self.0.iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
    }
}
