//! Batches: groups of bootstraps that a thread does side by side, spread evenly over the threads.

use crate::TfheError;
use std::ops::Range;
use sudare_ring::threads;

/// Most bootstraps that one thread does side by side, so that they share the reading of the key.
const SIDE_BY_SIDE: usize = 4;

/// Number of groups: as few as [`SIDE_BY_SIDE`] allows, as many for each thread, so that all of them
/// finish together.
pub const fn groups(count: usize, threads: usize) -> usize {
    let all = count.div_ceil(threads * SIDE_BY_SIDE) * threads;
    if all < count { all } else { count }
}

/// `work` of consecutive ranges that cover `0..count`, in parallel inside a thread pool; their results
/// in order.
///
/// # Errors
/// The first error of any range.
pub fn in_groups<T: Send>(
    count: usize,
    work: impl Fn(Range<usize>) -> Result<Vec<T>, TfheError> + Sync + Send,
) -> Result<Vec<T>, TfheError> {
    let all = groups(count, threads::count());
    // Sizes differ by one at most.
    let done = threads::map_jobs(all, |g| work(g * count / all..(g + 1) * count / all));
    let mut results = Vec::with_capacity(count);
    for group in done {
        results.extend(group?);
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_finish_together() {
        for threads in 1..=16 {
            for count in 0..=200 {
                let all = groups(count, threads);
                let sizes: Vec<usize> = (0..all).map(|g| (g + 1) * count / all - g * count / all).collect();
                assert_eq!(sizes.iter().sum::<usize>(), count);
                let (least, most) =
                    (sizes.iter().min().copied().unwrap_or(0), sizes.iter().max().copied().unwrap_or(0));
                assert!(most <= SIDE_BY_SIDE && most - least <= 1, "{count} on {threads}: {sizes:?}");
                assert!(all.is_multiple_of(threads) || all == count, "{count} on {threads}: {all}");
            }
        }
    }

    #[test]
    fn results_keep_their_order() {
        let pool = sudare_ring::Threads::new(3);
        let found = pool.run(|| in_groups(29, |range| Ok(range.collect::<Vec<_>>())));
        assert_eq!(found.ok(), Some((0..29).collect()));
        let refused: Result<Vec<usize>, _> =
            in_groups(5, |_| Err(TfheError::Shape { what: "things", expected: 1, found: 0 }));
        assert!(refused.is_err());
    }
}
