//! The search in the clear: what every protocol computes, and what tests compare them with.

use crate::panel::Column;
use crate::{GenomeError, Panel};

/// A match that begins at a given site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Sites that match.
    pub length: usize,
    /// Haplotypes that share them.
    pub haplotypes: u32,
}

/// The longest prefix of the query that at least `eps` haplotypes have from site `start` on.
///
/// With f = 0 and g = n, each symbol w takes f to v_w\[f\] and g to v_w\[g\]; the prefix ends where g − f < eps.
///
/// # Errors
/// [`GenomeError::Window`], [`GenomeError::Range`] for `eps` of zero; [`GenomeError::Wire`] for a damaged panel.
pub fn longest(panel: &Panel, start: usize, query: &[bool], eps: u32) -> Result<Match, GenomeError> {
    panel.outline().check_window(start, query.len())?;
    check_eps(eps)?;
    let n = panel.haplotypes() as u32;
    let mut column = Column::default();
    let (mut interval, mut found) = ((0, n), Match { length: 0, haplotypes: n });
    for (k, symbol) in query.iter().enumerate() {
        panel.column(start + k, &mut column)?;
        interval = column.step_interval(*symbol, interval);
        let shared = interval.1 - interval.0;
        if shared < eps {
            break;
        }
        found = Match { length: k + 1, haplotypes: shared };
    }
    Ok(found)
}

/// [`longest`] from every site of a query that covers sites `first..first + query.len()`.
///
/// # Errors
/// As for [`longest`].
pub fn longest_from_all(panel: &Panel, first: usize, query: &[bool], eps: u32) -> Result<Vec<Match>, GenomeError> {
    (0..query.len()).map(|i| longest(panel, first + i, &query[i..], eps)).collect()
}

/// The same by comparing with each haplotype in turn: row i is haplotype i over all sites.
pub fn longest_naive(haplotypes: &[Vec<bool>], start: usize, query: &[bool], eps: u32) -> Match {
    let common = |h: &Vec<bool>| h[start..].iter().zip(query).take_while(|(a, b)| a == b).count();
    let lengths: Vec<usize> = haplotypes.iter().map(common).collect();
    let shared = |length: usize| lengths.iter().filter(|l| **l >= length).count() as u32;
    let length = (0..=query.len()).rev().find(|l| shared(*l) >= eps).unwrap_or(0);
    Match { length, haplotypes: shared(length) }
}

pub(crate) fn check_eps(eps: u32) -> Result<(), GenomeError> {
    crate::error::in_range("the least number of sharing haplotypes", eps.into(), 1, u32::MAX.into())
}
