//! How much work operations did, counted where it is done, for whoever asks.
//!
//! ```
//! use sudare_ring::{RnsBasis, Coeff, Poly, count};
//!
//! let basis = RnsBasis::new(512, &sudare_ring::prime::ntt_primes(512, 40, 3, &[]).unwrap()).unwrap();
//! let (_, counts) = count::counted(|| Poly::<Coeff>::zero(&basis).into_eval());
//! assert_eq!(counts.transforms, 3);
//! ```

use std::cell::RefCell;
use std::iter::Sum;
use std::ops::{Add, Mul};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What the operations of some work were made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Whole transforms of one limb, either way.
    pub transforms: u64,
    /// Conversions of a polynomial from one basis to another, whatever their sizes.
    pub conversions: u64,
    /// Polynomials that were cut into digits.
    pub decompositions: u64,
    /// Products of a polynomial's digits with a key.
    pub inner_products: u64,
    /// Bytes of keys that these read, from caches or from memory.
    pub key_bytes: u64,
}

impl Counts {
    fn each(self) -> [u64; 5] {
        let Self { transforms, conversions, decompositions, inner_products, key_bytes } = self;
        [transforms, conversions, decompositions, inner_products, key_bytes]
    }

    fn of([transforms, conversions, decompositions, inner_products, key_bytes]: [u64; 5]) -> Self {
        Self { transforms, conversions, decompositions, inner_products, key_bytes }
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (a, b) = (self.each(), other.each());
        Self::of(std::array::from_fn(|i| a[i] + b[i]))
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

impl Mul<usize> for Counts {
    type Output = Self;

    fn mul(self, times: usize) -> Self {
        Self::of(self.each().map(|x| x * times as u64))
    }
}

/// What is counted, in the order of [`Counts`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Transforms,
    Conversions,
    Decompositions,
    InnerProducts,
    KeyBytes,
}

/// Counters that all threads of some work share.
type Tally = Arc<[AtomicU64; 5]>;

/// How many works are counted now: where there are none, nothing else is looked at.
static COUNTED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HERE: RefCell<Option<Tally>> = const { RefCell::new(None) };
}

/// Gives the thread back to what it counted for before.
pub(crate) struct Entered(Option<Tally>);

impl Drop for Entered {
    fn drop(&mut self) {
        HERE.set(self.0.take());
    }
}

/// What the caller counts for, to be handed to threads that share its work.
#[derive(Clone)]
pub(crate) struct Inherited(Option<Tally>);

impl Inherited {
    pub(crate) fn here() -> Self {
        Self(if COUNTED.load(Ordering::Relaxed) == 0 { None } else { HERE.with_borrow(Clone::clone) })
    }

    pub(crate) fn enter(&self) -> Entered {
        Entered(HERE.replace(self.0.clone()))
    }
}

/// One work more, until it is dropped.
struct Active;

impl Active {
    fn begin() -> Self {
        COUNTED.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        COUNTED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs `work` and counts what it does, on all threads that share it. Of nested ones the innermost counts.
pub fn counted<R>(work: impl FnOnce() -> R) -> (R, Counts) {
    let (tally, _active) = (Tally::default(), Active::begin());
    let result = {
        let _entered = Inherited(Some(Arc::clone(&tally))).enter();
        work()
    };
    (result, Counts::of(tally.each_ref().map(|x| x.load(Ordering::Relaxed))))
}

/// Counts for the caller, if anybody asked.
#[inline]
pub(crate) fn add(what: What, count: usize) {
    if COUNTED.load(Ordering::Relaxed) > 0 {
        add_here(what, count);
    }
}

#[cold]
fn add_here(what: What, count: usize) {
    HERE.with_borrow(|tally| {
        if let Some(tally) = tally {
            tally[what as usize].fetch_add(count as u64, Ordering::Relaxed);
        }
    });
}
