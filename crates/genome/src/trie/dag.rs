//! The diagram of a window: the trie of the haplotypes that begin at a site, equal parts merged.

use crate::error::in_range;
use crate::panel::Column;
use crate::{GenomeError, Panel};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use sudare_he::tfhe::leveled::{Diagram, Value};

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
    panel.will_need(start..start + sites);
    merge(&reachable(panel, start, sites, eps)?, sites)
}

/// The intervals that some query reaches, level by level from [0, n).
fn reachable(panel: &Panel, start: usize, sites: usize, eps: u32) -> Result<Vec<Level>, GenomeError> {
    let mut column = Column::default();
    let mut intervals = vec![(0, panel.haplotypes() as u32)];
    let (mut levels, mut nodes) = (Vec::with_capacity(sites), 0);
    for k in 0..sites {
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

/// Merges equal nodes from the last level on: a node with equal children is its child, and nodes that differ by an
/// exchange of their children share a product.
fn merge(levels: &[Level], sites: usize) -> Result<Diagram, GenomeError> {
    let last = levels.last().map_or(0, |l| l.0.iter().flatten().filter(|c| **c != NONE).count());
    let mut below = vec![Value::terminal(sites as u32); last];
    let (mut products, mut counts): (Vec<[Value; 2]>, Vec<u32>) = (Vec::new(), Vec::with_capacity(sites));
    for (k, level) in levels.iter().enumerate().rev() {
        let first = products.len();
        let mut known: HashMap<u64, u32, BuildHasherDefault<PairHasher>> =
            HashMap::with_capacity_and_hasher(level.0.len() / 2, BuildHasherDefault::default());
        let mut value = |children: &[u32; 2]| {
            let [low, high] = children.map(|c| match below.get(c as usize) {
                Some(v) => *v,
                None => Value::terminal(k as u32),
            });
            if low == high {
                return low;
            }
            let pair = |a: Value, b: Value| u64::from(a.code()) << 32 | u64::from(b.code());
            if let Some(product) = known.get(&pair(high, low)) {
                return Value::of_product(*product, true);
            }
            match known.entry(pair(low, high)) {
                Entry::Occupied(e) => Value::of_product(*e.get(), false),
                Entry::Vacant(e) => {
                    let product = products.len() as u32;
                    e.insert(product);
                    products.push([low, high]);
                    Value::of_product(product, false)
                }
            }
        };
        let here = level.0.iter().map(&mut value).collect();
        counts.push((products.len() - first) as u32);
        below = here;
    }
    let root = below.first().copied().unwrap_or(Value::terminal(0));
    Ok(Diagram::new(products, counts, sites as u32 + 1, root)?)
}

/// Mixes a pair of numbers; nobody chooses them to collide.
#[derive(Default)]
struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    fn write_u64(&mut self, x: u64) {
        let x = (self.0 ^ x).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = x ^ (x >> 32);
    }
}
