//! Rows and columns of tiled matrices moved and repeated: slices, concatenation and broadcasting.

use super::common::{KeyList, check_count, mask_values, plain_mask};
use super::follow::{Follow, State};
use super::tiles::{Axis, TileLayout};
use crate::Work;
use crate::error::MatrixError;
use crate::product::KeyDemand;
use std::collections::BTreeMap;
use sudare_expr::Lines;
use sudare_he::ckks::{Ciphertext, Evaluator, ParamsLiteral};

/// Lines that lie in one tile, go to one, and move equally far.
struct Group {
    from: usize,
    to: usize,
    /// Lines ahead; negative towards the first.
    shift: i64,
    /// Their places in the new tile.
    places: Vec<usize>,
}

/// The lines by the tiles of side `d` that they come from and go to.
fn groups(lines: &Lines, d: usize) -> Vec<Group> {
    let mut found: BTreeMap<(usize, usize, i64), Vec<usize>> = BTreeMap::new();
    for i in 0..lines.count {
        let from = (lines.start as i64 + lines.step * i as i64) as usize;
        let to = lines.at + lines.stride * i;
        found.entry((to / d, from / d, (to % d) as i64 - (from % d) as i64)).or_default().push(to % d);
    }
    found.into_iter().map(|((to, from, shift), places)| Group { from, to, shift, places }).collect()
}

/// Whether some tile of a matrix of so many lines has some that stay behind, which have to be masked away.
fn masks(groups: &[Group], lines: usize, d: usize) -> bool {
    groups.iter().any(|g| g.places.len() < d.min(lines - g.from * d))
}

/// Powers of two whose sum is the distance: each is a rotation for which a context has a key.
fn binary(distance: i64) -> impl Iterator<Item = i64> {
    (0..i64::BITS - 1).filter(move |b| (distance.unsigned_abs() >> b) & 1 == 1).map(move |b| distance.signum() << b)
}

impl TileLayout {
    fn lines(&self, axis: Axis) -> usize {
        if axis == Axis::Rows { self.rows } else { self.cols }
    }

    /// The layout with another number of rows or columns.
    #[must_use]
    pub fn with_lines(&self, axis: Axis, lines: usize) -> Self {
        match axis {
            Axis::Rows => Self { rows: lines, ..*self },
            Axis::Columns => Self { cols: lines, ..*self },
        }
    }

    /// The tiles `at` along an axis.
    fn along(&self, axis: Axis, at: usize) -> Vec<usize> {
        let (down, across) = self.tiles();
        match axis {
            Axis::Rows => (0..across).map(|j| at * across + j).collect(),
            Axis::Columns => (0..down).map(|i| i * across + at).collect(),
        }
    }

    /// Levels of [`TileLayout::take`]: one where lines of a tile stay behind.
    pub fn take_levels(&self, axis: Axis, lines: &Lines) -> usize {
        usize::from(masks(&groups(lines, self.tile), self.lines(axis), self.tile))
    }

    /// Keys of [`TileLayout::take`] at a level, a rotation for each distance.
    pub fn take_keys(&self, literal: &ParamsLiteral, axis: Axis, lines: &Lines, level: usize) -> KeyDemand {
        let mut keys = KeyList::new(literal);
        groups(lines, self.tile).iter().for_each(|g| keys.rotation(-g.shift * self.unit(axis), level));
        keys.demand(None)
    }

    /// What [`TileLayout::take`] costs.
    pub fn take_work(&self, literal: &ParamsLiteral, axis: Axis, lines: &Lines, level: usize) -> Work {
        let groups = groups(lines, self.tile);
        let others = self.along(axis, 0).len() as f64;
        let turns = groups.iter().filter(|g| g.shift != 0).count() as f64;
        let mut one =
            Work::rotation(literal, level) * turns + Work::passes_at(literal, level, 3.0) * groups.len() as f64;
        if masks(&groups, self.lines(axis), self.tile) {
            let tiles = lines.size.div_ceil(self.tile) as f64;
            one += Work::mul_plain(literal, level) * groups.len() as f64 + Work::rescale(literal, level) * tiles;
        }
        one * others
    }

    /// Most groups of lines that meet in a tile of the result.
    pub fn take_terms(&self, lines: &Lines) -> usize {
        let groups = groups(lines, self.tile);
        groups.chunk_by(|a, b| a.to == b.to).map(<[Group]>::len).max().unwrap_or(1)
    }

    /// The result of [`TileLayout::take`] on paper.
    pub fn take_follow(&self, follow: &mut Follow<'_>, axis: Axis, lines: &Lines, a: State) -> State {
        follow.gathered(a, self.take_terms(lines), self.take_levels(axis, lines) == 1)
    }

    /// Lines of a matrix in other places. Rotations are those of [`TileLayout::take_keys`] if `planned`, otherwise made of
    /// those by powers of two.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`].
    pub fn take(
        &self,
        e: &Evaluator,
        (axis, lines): (Axis, &Lines),
        planned: bool,
        a: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        check_count("tiles", a.len(), self.ciphertexts())?;
        let (d, unit, groups) = (self.tile, self.unit(axis), groups(lines, self.tile));
        let Some(level) = a.iter().map(Ciphertext::level).min() else { return Ok(Vec::new()) };
        let masked = masks(&groups, self.lines(axis), d);
        let after = self.with_lines(axis, lines.size);
        let mut out: Vec<Option<Ciphertext>> = vec![None; after.ciphertexts()];
        for group in &groups {
            let mask = match masked {
                true => Some(plain_mask(e.params(), level, &self.mask(e.params().slots(), axis, &group.places))?),
                false => None,
            };
            for (from, to) in self.along(axis, group.from).into_iter().zip(after.along(axis, group.to)) {
                let tile = e.drop_to(&a[from], level)?;
                let moved = match planned {
                    true => turned(e, tile, (group.shift != 0).then_some(group.shift), unit)?,
                    false => turned(e, tile, binary(group.shift), unit)?,
                };
                let part = match &mask {
                    Some(mask) => e.mul_plain(&moved, mask)?,
                    None => moved,
                };
                out[to] = Some(match out[to].take() {
                    // Different lines: the sum is no larger than any of them.
                    Some(sum) => e.add(&sum, &part)?.with_bound(a[from].bound()),
                    None => part,
                });
            }
        }
        let nothing = match out.iter().flatten().next() {
            Some(any) => e.sub(any, any)?,
            None => return Ok(Vec::new()),
        };
        let whole = out.into_iter().map(|tile| tile.unwrap_or_else(|| nothing.clone()));
        match masked {
            true => whole.map(|c| Ok(e.rescale(&c)?)).collect(),
            false => Ok(whole.collect()),
        }
    }

    /// Ones in some lines of a tile.
    fn mask(&self, slots: usize, axis: Axis, places: &[usize]) -> Vec<f64> {
        let (d, g) = (self.tile, self.stride);
        mask_values(slots, 1.0, |s| {
            let (i, j) = (s / g / d, s / g % d);
            s.is_multiple_of(g) && i < d && places.contains(if axis == Axis::Rows { &i } else { &j })
        })
    }

    /// Rotations of [`TileLayout::repeat`]: by powers of two, away from the first line.
    fn doublings(&self, axis: Axis, size: usize) -> impl Iterator<Item = i64> + use<> {
        let (copies, unit) = (size.min(self.tile), self.unit(axis));
        (0..usize::BITS).map(|b| 1usize << b).take_while(move |far| *far < copies).map(move |far| -(far as i64) * unit)
    }

    /// Keys of [`TileLayout::repeat`] at a level.
    pub fn repeat_keys(&self, literal: &ParamsLiteral, axis: Axis, size: usize, level: usize) -> KeyDemand {
        let mut keys = KeyList::new(literal);
        self.doublings(axis, size).for_each(|step| keys.rotation(step, level));
        keys.demand(None)
    }

    /// Keys of [`TileLayout::take`] for any lines and of [`TileLayout::repeat`], as a context has them.
    pub fn line_keys(&self, literal: &ParamsLiteral, level: usize) -> KeyDemand {
        let mut keys = KeyList::new(literal);
        for axis in [Axis::Rows, Axis::Columns] {
            for step in self.doublings(axis, self.tile) {
                keys.rotation(step, level);
                keys.rotation(-step, level);
            }
        }
        keys.demand(None)
    }

    /// Rotations of one tile's [`TileLayout::repeat`].
    pub fn repeat_turns(&self, axis: Axis, size: usize) -> usize {
        let ragged = size > self.tile && !size.is_multiple_of(self.tile) || !size.min(self.tile).is_power_of_two();
        self.doublings(axis, size).count() * (1 + usize::from(ragged))
    }

    /// What [`TileLayout::repeat`] costs.
    pub fn repeat_work(&self, literal: &ParamsLiteral, axis: Axis, size: usize, level: usize) -> Work {
        let one = Work::rotation(literal, level) + Work::passes_at(literal, level, 2.0);
        one * (self.repeat_turns(axis, size) * self.ciphertexts()) as f64
    }

    /// The only row or column of a matrix, `size` times. No level.
    ///
    /// Copies double: after s rotations there are 2^s, and those of the number's binary digits are put one after the other.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`].
    pub fn repeat(
        &self,
        e: &Evaluator,
        axis: Axis,
        size: usize,
        a: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        check_count("tiles", a.len(), self.ciphertexts())?;
        let steps: Vec<i64> = self.doublings(axis, size).collect();
        let full = size / self.tile;
        let after = self.with_lines(axis, size);
        let mut out: Vec<Option<Ciphertext>> = vec![None; after.ciphertexts()];
        for (from, tile) in a.iter().enumerate() {
            let join = |x: &Ciphertext, y: &Ciphertext| -> Result<Ciphertext, MatrixError> {
                Ok(e.add(x, y)?.with_bound(tile.bound()))
            };
            // 2^s copies, for each s.
            let mut copies = vec![tile.clone()];
            for (s, step) in steps.iter().enumerate().take(size.min(self.tile).ilog2() as usize) {
                let next = join(&copies[s], &e.rotate(&copies[s], *step)?)?;
                copies.push(next);
            }
            let mut rest: Option<Ciphertext> = None;
            for (s, some) in copies.iter().enumerate().filter(|(s, _)| ((size % self.tile) >> s) & 1 == 1) {
                rest = Some(match rest {
                    Some(before) => join(some, &e.rotate(&before, steps[s])?)?,
                    None => some.clone(),
                });
            }
            let whole = copies.pop().filter(|_| full > 0);
            let along = (0..full).map(|_| whole.clone()).chain([rest].into_iter().filter(Option::is_some));
            for (at, tile) in along.enumerate() {
                out[after.along(axis, at)[from]] = tile;
            }
        }
        let missing = || MatrixError::Count { what: "tiles", found: 0, expected: after.ciphertexts() };
        out.into_iter().map(|tile| tile.ok_or_else(missing)).collect()
    }
}

/// A ciphertext rotated by some distances, one after the other.
fn turned(
    e: &Evaluator,
    c: Ciphertext,
    shifts: impl IntoIterator<Item = i64>,
    unit: i64,
) -> Result<Ciphertext, MatrixError> {
    shifts.into_iter().try_fold(c, |c, shift| Ok(e.rotate(&c, -shift * unit)?))
}
