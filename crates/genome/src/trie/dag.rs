//! The diagram of a window: the trie of the haplotypes that begin at a site, equal parts merged.

use crate::builder::Builder;
use crate::error::in_range;
use crate::panel::Column;
use crate::{GenomeError, Panel};
use sudare_ring::interrupt::check;
use sudare_tfhe::leveled::{Diagram, Value};

/// Most nodes of a trie before its merging.
const MAX_NODES: usize = 1 << 27;

/// A child that no haplotype reaches, or fewer than eps.
const NONE: u32 = u32::MAX;

/// Children of the nodes of one level, as numbers among the next level's.
struct Level(Vec<[u32; 2]>);

/// The diagram whose terminal is the length of the longest match from `start` on of a query of `sites` symbols: the
/// variables are the symbols, terminal k stands for the length k.
///
/// # Errors
/// [`GenomeError::Window`]; [`GenomeError::Range`] for a trie of too many nodes; [`GenomeError::Wire`] for a damaged
/// panel.
pub fn diagram(panel: &Panel, start: usize, sites: usize, eps: u32) -> Result<Diagram, GenomeError> {
    panel.outline().check_window(start, sites)?;
    crate::search::check_eps(eps)?;
    let n = panel.haplotypes() as u32;
    if n < eps {
        return Ok(Diagram::new(Vec::new(), vec![0; sites], sites as u32 + 1, Value::terminal(0))?);
    }
    merge(&reachable(panel, start, sites, eps)?, sites)
}

/// The intervals that some query reaches, level by level from [0, n).
fn reachable(panel: &Panel, start: usize, sites: usize, eps: u32) -> Result<Vec<Level>, GenomeError> {
    let mut column = Column::default();
    let mut intervals = vec![(0, panel.haplotypes() as u32)];
    let (mut levels, mut nodes) = (Vec::with_capacity(sites), 0);
    for k in 0..sites {
        check();
        panel.column(start + k, &mut column)?;
        nodes += intervals.len();
        in_range("nodes of a window's trie", nodes as u64, 1, MAX_NODES as u64)?;
        let mut children = vec![[NONE; 2]; intervals.len()];
        let mut next = Vec::with_capacity(intervals.len() + intervals.len() / 8 + 1);
        // In this order the next level's intervals rise again.
        for symbol in [false, true] {
            for (interval, child) in intervals.iter().zip(&mut children) {
                let (f, g) = column.step_interval(symbol, *interval);
                if g - f >= eps {
                    child[usize::from(symbol)] = next.len() as u32;
                    next.push((f, g));
                }
            }
        }
        levels.push(Level(children));
        intervals = next;
    }
    Ok(levels)
}

/// The longest prefixes that at least `eps` haplotypes share, each once: one for each distinct haplotype of the window if
/// `eps` is one.
///
/// # Errors
/// As for [`diagram`].
pub fn prefixes(panel: &Panel, start: usize, sites: usize, eps: u32) -> Result<Vec<Vec<bool>>, GenomeError> {
    panel.outline().check_window(start, sites)?;
    crate::search::check_eps(eps)?;
    if (panel.haplotypes() as u32) < eps {
        return Ok(Vec::new());
    }
    let levels = reachable(panel, start, sites, eps)?;
    let (mut out, mut open) = (Vec::new(), vec![(0usize, Vec::new())]);
    while let Some((node, prefix)) = open.pop() {
        check();
        let children = levels.get(prefix.len()).map_or([NONE; 2], |l| l.0[node]);
        if children == [NONE; 2] {
            out.push(prefix);
            continue;
        }
        for symbol in [true, false] {
            let child = children[usize::from(symbol)];
            if child != NONE {
                let mut longer = prefix.clone();
                longer.push(symbol);
                open.push((child as usize, longer));
            }
        }
    }
    Ok(out)
}

/// Merges equal nodes from the last level on.
fn merge(levels: &[Level], sites: usize) -> Result<Diagram, GenomeError> {
    let last = levels.last().map_or(0, |l| l.0.iter().flatten().filter(|c| **c != NONE).count());
    let mut below = vec![Value::terminal(sites as u32); last];
    let mut builder = Builder::default();
    for (k, level) in levels.iter().enumerate().rev() {
        check();
        builder.variable();
        let child = |c: u32| below.get(c as usize).copied().unwrap_or(Value::terminal(k as u32));
        let here = level.0.iter().map(|[low, high]| builder.node(child(*low), child(*high))).collect();
        below = here;
    }
    builder.finish(sites + 1, below.first().copied().unwrap_or(Value::terminal(0)))
}
