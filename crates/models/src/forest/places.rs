//! Where steps stand in slots.
//!
//! A row has the places k·L + ℓ, and place s of row b of B stands in slot s·B + b, so that all places fill the slots: rotations by L·B·2^j
//! sum over k in every place, and those by B·2^j over ℓ from a block's first place. Ranks stand in them again and again, C in their order,
//! in real parts those of the first B rows and in imaginary parts those of B more.

use super::plan::Column;
use super::tree::Forest;
use crate::error::{ModelError, goal};
use std::ops::Range;
use sudare_he::circuits::linear_map::Diagonals;

/// How many ways and columns there are, and how they are laid out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Places {
    /// Steps of a way, a power of two.
    pub steps: usize,
    /// Ways of a part, a power of two.
    pub ways: usize,
    /// Ciphertexts that hold all ways of a row.
    pub parts: usize,
    /// Rows of one half of a ciphertext.
    pub rows: usize,
    /// Ranks after which they repeat, a power of two.
    pub period: usize,
    /// The longest way.
    pub depth: usize,
}

impl Places {
    /// For so many ways and columns in `slots` slots.
    ///
    /// # Errors
    /// [`ModelError::Goal`] where there is no room.
    pub fn new((ways, depth, columns): (usize, usize, usize), slots: usize) -> Result<Self, ModelError> {
        let (steps, period) = (depth.max(1).next_power_of_two(), columns.max(1).next_power_of_two());
        if steps > slots || period > slots {
            return goal(format!(
                "its trees have paths of {depth} steps and {columns} groups of thresholds, and a ciphertext has \
                 {slots} slots; use smaller trees"
            ));
        }
        let most = slots / steps;
        let parts = ways.div_ceil(most);
        let ways = ways.div_ceil(parts).next_power_of_two().max(period / steps);
        Ok(Self { steps, ways, parts, rows: slots / (steps * ways), period, depth: depth.max(1) })
    }

    /// Slots.
    pub fn slots(&self) -> usize {
        self.steps * self.ways * self.rows
    }

    /// Ciphertexts that hold so many scores of a row.
    pub fn groups(&self, outputs: usize) -> usize {
        outputs.div_ceil(self.steps)
    }

    /// The scores of a group.
    pub fn of_group(&self, group: usize, outputs: usize) -> Range<usize> {
        group * self.steps..outputs.min((group + 1) * self.steps)
    }

    /// The slot of place (k, ℓ) of the first row.
    fn slot(&self, k: usize, way: usize) -> usize {
        (k * self.ways + way) * self.rows
    }

    /// The slot of a score of a row, in its group's ciphertext.
    pub fn score(&self, output: usize, row: usize) -> usize {
        self.slot(output % self.steps, 0) + row
    }
}

/// What stands where, of one part.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Of each diagonal the slots whose rank is that many places further, negated or not.
    picked: Vec<Vec<(usize, f64)>>,
    /// What is added to ranks, by slots.
    added: Vec<f64>,
    /// Values of leaves, by groups and slots.
    values: Vec<Vec<f64>>,
}

impl Part {
    /// Diagonals that bring ranks to their places.
    pub fn diagonals(&self) -> Diagonals<f64> {
        let one = |(t, picked): (usize, &Vec<(usize, f64)>)| {
            let mut diagonal = vec![0.0; self.added.len()];
            picked.iter().for_each(|(slot, sign)| diagonal[*slot] = *sign);
            (t as i64, diagonal)
        };
        let mut out: Diagonals<f64> =
            self.picked.iter().enumerate().filter(|(_, picked)| !picked.is_empty()).map(one).collect();
        if out.is_empty() {
            out.insert(0, vec![0.0; self.added.len()]);
        }
        out
    }

    /// Which diagonals there are.
    pub fn offsets(&self) -> Vec<i64> {
        let some: Vec<i64> = (0..).zip(&self.picked).filter(|(_, picked)| !picked.is_empty()).map(|(t, _)| t).collect();
        if some.is_empty() { vec![0] } else { some }
    }

    /// What is added to ranks: a step is not taken where the sum is 0 or above.
    pub fn added(&self) -> &[f64] {
        &self.added
    }

    /// Values of leaves of a group of outputs.
    pub fn values(&self, group: usize) -> &[f64] {
        &self.values[group]
    }
}

/// Thresholds in groups of up to `most`: those of a feature with more are several columns, each with its own rank.
pub(crate) fn columns(forest: &Forest, most: usize) -> Vec<Column> {
    let of_feature = |(feature, all): (usize, Vec<f64>)| {
        all.chunks(most).map(|some| Column { feature, thresholds: some.to_vec() }).collect::<Vec<_>>()
    };
    forest.thresholds().into_iter().enumerate().flat_map(of_feature).collect()
}

/// The parts of a forest.
///
/// # Errors
/// [`ModelError::Mixed`] for columns of another forest.
pub(crate) fn parts(forest: &Forest, columns: &[Column], places: &Places) -> Result<Vec<Part>, ModelError> {
    let foreign = ModelError::Mixed { what: "the file of trees" };
    let find = |feature: usize, threshold: f64| {
        let before = columns.partition_point(|c| {
            c.feature < feature || (c.feature == feature && c.thresholds.last().is_some_and(|last| *last < threshold))
        });
        let column = columns.get(before).filter(|c| c.feature == feature)?;
        let rank = column.thresholds.partition_point(|t| *t < threshold);
        (column.thresholds.get(rank) == Some(&threshold)).then_some((before, rank))
    };
    let (all, outputs) = (forest.ways(), forest.outputs());
    let mut out = Vec::with_capacity(places.parts);
    for some in all.chunks(places.ways) {
        let mut part = Part {
            picked: vec![Vec::new(); places.period],
            // A step that is taken, whatever comes.
            added: vec![-1.0; places.slots()],
            values: vec![vec![0.0; places.slots()]; places.groups(outputs)],
        };
        let fill = |slots: &mut [f64], k: usize, way: usize, value: f64| {
            let first = places.slot(k, way);
            slots[first..first + places.rows].fill(value);
        };
        for (way, (steps, values)) in some.iter().enumerate() {
            for (k, (feature, threshold, left)) in steps.iter().enumerate() {
                let Some((column, rank)) = find(*feature, *threshold) else { return Err(foreign) };
                let place = k * places.ways + way;
                let t = (column + places.period - place % places.period) % places.period;
                // The rank is above that of the threshold where the row goes right.
                let (sign, added) = if *left { (1.0, -(rank as f64) - 1.0) } else { (-1.0, rank as f64) };
                let first = place * places.rows;
                part.picked[t].extend((first..first + places.rows).map(|slot| (slot, sign)));
                fill(&mut part.added, k, way, added);
            }
            for (o, value) in values.iter().enumerate() {
                fill(&mut part.values[o / places.steps], o % places.steps, way, *value);
            }
        }
        // Ways that lead nowhere are not taken.
        (some.len()..places.ways).for_each(|way| fill(&mut part.added, 0, way, 0.0));
        out.push(part);
    }
    Ok(out)
}
