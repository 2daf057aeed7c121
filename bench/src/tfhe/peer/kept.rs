//! An operation whose results are kept and checked after the clock.

use super::{Claims, Operation};
use crate::Outcome;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// A pool of one thread: what the peer spreads over its pool runs on one thread there.
pub fn one_thread() -> Outcome<ThreadPool> {
    Ok(ThreadPoolBuilder::new().num_threads(1).build()?)
}

/// `work(i)` for i = 0, 1, …, and whether a result of it is right.
pub struct Kept<T, W, R> {
    set: (String, Claims),
    work: W,
    right: R,
    /// Runs so far.
    count: usize,
    /// Results that are kept at most: the first ones.
    most: usize,
    results: Vec<T>,
}

impl<T: 'static, W: FnMut(usize) -> T + 'static, R: Fn(usize, &T) -> bool + 'static> Kept<T, W, R> {
    /// Keeps every result.
    pub fn all(set: (String, Claims), work: W, right: R) -> Outcome<Box<dyn Operation>> {
        Self::first(usize::MAX, set, work, right)
    }

    /// Keeps the first `most` results.
    pub fn first(most: usize, set: (String, Claims), work: W, right: R) -> Outcome<Box<dyn Operation>> {
        Ok(Box::new(Self { set, work, right, count: 0, most, results: Vec::new() }))
    }
}

impl<T, W: FnMut(usize) -> T, R: Fn(usize, &T) -> bool> Operation for Kept<T, W, R> {
    fn run(&mut self) {
        let result = (self.work)(self.count);
        self.count += 1;
        if self.results.len() < self.most {
            self.results.push(result);
        }
    }

    fn answers(&self) -> (usize, usize) {
        let wrong = self.results.iter().enumerate().filter(|(i, r)| !(self.right)(*i, r)).count();
        (wrong, self.results.len())
    }

    fn params(&self) -> String {
        self.set.0.clone()
    }

    fn claims(&self) -> Claims {
        self.set.1
    }
}
