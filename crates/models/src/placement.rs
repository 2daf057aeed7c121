//! Levels of all layers, and the refreshes between them: a shortest path over the levels of the values that layers take.
//!
//! Layers are visited from the last to the first. What distinguishes two paths are the levels that the values before still need: of paths
//! that need no more, the cheapest is kept. A layer's maps and its function each begin as low as what follows allows, and a refresh may
//! stand before the function, after it, or in both places: maps before a refresh run on the lowest levels, where they are cheap.

use crate::network::Network;

/// Paths that are kept after a layer.
const MOST_PATHS: usize = 128;

/// Where a layer begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    /// Of its maps' operands.
    pub from: usize,
    /// Of its function's operand.
    pub start: usize,
    /// Of its result, before it is refreshed.
    pub to: usize,
    /// Whether what its maps give is refreshed, and what its function gives.
    pub refreshed: [bool; 2],
}

/// Levels of all layers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placement {
    pub levels: Vec<Levels>,
    /// Of the input.
    pub input: usize,
    /// What it costs.
    pub cost: f64,
}

impl Placement {
    /// Refreshes for one ciphertext.
    pub fn refreshes(&self) -> usize {
        self.levels.iter().flat_map(|l| l.refreshed).filter(|r| *r).count()
    }
}

/// What levels there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// The lowest level of the output.
    pub output: usize,
    /// The lowest level of everything else but operands of the output's maps; a value is refreshed there.
    pub floor: usize,
    /// That of a refreshed value, and the highest of all.
    pub top: usize,
    /// What a refresh costs; none where there is none.
    pub refresh: Option<f64>,
}

impl Range {
    /// As many levels as it takes.
    pub const LEVELED: Self = Self { output: 0, floor: 0, top: usize::MAX, refresh: None };
}

#[derive(Clone)]
struct Path {
    /// The levels that values need, the input first.
    needed: Vec<usize>,
    /// Of the layers that were visited, the last one first.
    levels: Vec<Levels>,
    cost: f64,
}

/// The cheapest levels: `depths` has those of each layer's function, `price` what a layer costs at its levels. None where no way leads
/// through.
pub(crate) fn placed(
    network: &Network,
    depths: &[usize],
    range: Range,
    price: impl Fn(usize, Levels) -> f64,
) -> Option<Placement> {
    let last = network.layers.len().checked_sub(1)?;
    let mut paths = vec![Path { needed: vec![0; last + 2], levels: Vec::new(), cost: 0.0 }];
    for (k, layer) in network.layers.iter().enumerate().rev() {
        let mut next = Vec::new();
        for path in &paths {
            // An input is encrypted at any level: the prime above those of refreshed values may go with its maps.
            let fresh = layer.sources.iter().all(|(source, _)| *source == 0);
            let most = range.top.saturating_add(usize::from(fresh));
            for levels in ways(path.needed[k + 1], depths[k], k == last, range).filter(|l| l.from <= most) {
                let refreshes = levels.refreshed.into_iter().filter(|r| *r).count() as f64;
                let mut path = path.clone();
                path.cost += price(k, levels) + range.refresh.map_or(0.0, |one| refreshes * one);
                path.levels.push(levels);
                layer.sources.iter().for_each(|(s, _)| path.needed[*s] = path.needed[*s].max(levels.from));
                next.push(path);
            }
        }
        paths = kept(next, k + 1);
    }
    let mut best = paths.into_iter().min_by(|a, b| a.cost.total_cmp(&b.cost))?;
    best.levels.reverse();
    Some(Placement { input: best.needed[0], levels: best.levels, cost: best.cost })
}

/// All ways to compute a layer whose result others need at a level.
fn ways(needed: usize, depth: usize, last: bool, range: Range) -> impl Iterator<Item = Levels> {
    let Range { output, floor, top, refresh } = range;
    let plain = match (last, depth) {
        (true, 0) => output,
        _ => needed.max(floor),
    };
    // The result's level, and whether it is refreshed.
    let mut ends = vec![(plain, false)];
    if refresh.is_some() && !last && depth > 0 && needed <= top {
        ends.push((floor, true));
    }
    let mut out = Vec::new();
    for (to, after) in ends {
        let start = to + depth;
        out.push(Levels { from: start + 1, start, to, refreshed: [false, after] });
        if refresh.is_some() && depth > 0 && start <= top {
            out.push(Levels { from: floor + 1, start, to, refreshed: [true, after] });
        }
    }
    out.into_iter().filter(move |l| l.start <= top)
}

/// Paths that no other is better than: at no more cost, with no value before layer `k` at a higher level.
fn kept(mut paths: Vec<Path>, values: usize) -> Vec<Path> {
    paths.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    let mut kept: Vec<Path> = Vec::new();
    for path in paths {
        let reaches = |other: &Path| other.needed[..values].iter().zip(&path.needed).all(|(a, b)| a <= b);
        if kept.len() < MOST_PATHS && !kept.iter().any(reaches) {
            kept.push(path);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::Function;
    use crate::network::Dense;

    /// A chain of layers of one number each.
    fn chain(count: usize) -> Network {
        let layer = |k: usize| Dense {
            name: format!("{k}"),
            weights: vec![0.5],
            bias: vec![0.0],
            function: if k + 1 == count { Function::Identity } else { Function::Tanh },
        };
        Network::dense(1, (0..count).map(layer).collect()).unwrap()
    }

    fn place(network: &Network, depth: usize, range: Range) -> Option<Placement> {
        let last = network.layers.len() - 1;
        let depths: Vec<usize> = (0..=last).map(|k| if k == last { 0 } else { depth }).collect();
        // Maps cost by their level, functions little.
        placed(network, &depths, range, |_, levels| levels.from as f64 + 0.1 * levels.start as f64)
    }

    #[test]
    fn without_refreshes_levels_end_at_zero() {
        let placed = place(&chain(4), 3, Range::LEVELED).unwrap();
        assert_eq!((placed.input, placed.refreshes()), (13, 0));
        assert_eq!(placed.levels[0], Levels { from: 13, start: 12, to: 9, refreshed: [false; 2] });
        assert_eq!(placed.levels[3], Levels { from: 1, start: 0, to: 0, refreshed: [false; 2] });
    }

    /// Nine levels hold a function of eight and a map: one refresh for each function, before it, with the maps at the bottom.
    #[test]
    fn a_refresh_for_each_deep_function() {
        let range = Range { output: 3, floor: 3, top: 12, refresh: Some(1000.0) };
        let placed = place(&chain(5), 8, range).unwrap();
        // The first function has the input's levels.
        assert_eq!((placed.refreshes(), placed.input), (3, 13));
        assert!(
            placed.levels[1..4].iter().all(|l| l.refreshed == [true, false] && (l.from, l.start, l.to) == (4, 12, 4))
        );
        assert_eq!(placed.levels[4].from, 4);
        assert!(place(&chain(5), 10, range).is_none(), "no function of ten levels fits");
    }

    /// Every way through, by trying all places, is no cheaper.
    #[test]
    fn no_other_place_is_cheaper() {
        for (count, depth, top, price) in [(4, 2, 7, 5.0), (5, 1, 6, 3.0), (4, 3, 9, 0.5), (6, 2, 8, 20.0)] {
            let range = Range { output: 2, floor: 2, top, refresh: Some(price) };
            let network = chain(count);
            let found = place(&network, depth, range).unwrap();
            let mut best = f64::INFINITY;
            for mask in 0..1usize << (2 * (count - 1)) {
                let (mut needed, mut cost, mut fits) = (0, 0.0, true);
                for k in (0..count).rev() {
                    let bits = if k + 1 == count { 0 } else { mask >> (2 * k) & 3 };
                    let depth = if k + 1 == count { 0 } else { depth };
                    let to = if bits & 2 > 0 { 2 } else { needed.max(2) };
                    let from = if bits & 1 > 0 { 3 } else { to + depth + 1 };
                    fits &= needed <= top && to + depth <= top && from <= top + usize::from(k == 0);
                    cost += from as f64 + 0.1 * (to + depth) as f64 + price * f64::from((bits as u32).count_ones());
                    needed = from;
                }
                if fits {
                    best = best.min(cost);
                }
            }
            assert!((found.cost - best).abs() < 1e-9, "{count} layers: {} and {best}", found.cost);
        }
    }
}
