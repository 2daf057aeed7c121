//! Rows and columns of tiled matrices moved and repeated: slices, concatenation and broadcasting.

use super::common::check_count;
use super::tiles::{Axis, TileLayout};
use crate::error::MatrixError;
use std::collections::BTreeMap;
use sudare_expr::Lines;
use sudare_he::HeError;
use sudare_he::ckks::{Batch, Ciphertext, CiphertextOf, Evaluator, Mask, Order, Params};
use sudare_rlwe::{Backend, RlweError};

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

    /// Lines of a matrix in other places. Rotations are by the distances of lines if `planned`, otherwise made of those by
    /// powers of two.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`].
    pub fn take<B: Backend>(
        &self,
        e: &Evaluator<B>,
        (axis, lines): (Axis, &Lines),
        planned: bool,
        a: Batch<'_, B::Ciphertext>,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        check_count("tiles", a.len(), self.ciphertexts())?;
        let (d, unit, groups) = (self.tile, self.unit(axis), groups(lines, self.tile));
        let Some(level) = a.iter().map(Ciphertext::level).min() else { return Ok(Vec::new()) };
        let masked = masks(&groups, self.lines(axis), d);
        let after = self.with_lines(axis, lines.size);
        let mut parts = Vec::new();
        for line in groups.chunk_by(|x, y| x.to == y.to) {
            let mask = |group: &Group| -> Result<_, MatrixError> {
                let keep = |slot: usize| self.in_lines(axis, &group.places, slot);
                let mask = Mask { level, value: 1.0, period: d * d * self.stride, keep };
                if masked { Ok(Some(e.mask(&mask)?)) } else { Ok(None) }
            };
            let masks = line.iter().map(mask).collect::<Result<Vec<_>, _>>()?;
            let one = |tiles: &[&CiphertextOf<B>]| -> Result<CiphertextOf<B>, MatrixError> {
                let mut sum: Option<CiphertextOf<B>> = None;
                for ((group, mask), tile) in line.iter().zip(&masks).zip(tiles) {
                    let tile = e.drop_to(tile, level)?;
                    let bound = tile.bound();
                    let moved = match planned {
                        true => rotated(e, tile, (group.shift != 0).then_some(group.shift), unit)?,
                        false => rotated(e, tile, binary(group.shift), unit)?,
                    };
                    let part = match mask {
                        Some(mask) => e.mul_plain(&moved, mask)?,
                        None => moved,
                    };
                    sum = Some(match sum {
                        // Different lines: the sum is no larger than any of them.
                        Some(sum) => {
                            let spread = sum.spread().disjoint(part.spread());
                            e.add(&sum, &part)?.with_spread(spread).with_bound(bound)
                        }
                        None => part,
                    });
                }
                let none = HeError::from(RlweError::Internal { what: "a tile of lines has no line" });
                let sum = sum.ok_or(none)?;
                if masked { Ok(e.rescale(&sum)?) } else { Ok(sum) }
            };
            let from: Vec<Vec<usize>> = line.iter().map(|group| self.along(axis, group.from)).collect();
            let to = after.along(axis, line[0].to);
            let tiles = |at: usize| from.iter().map(|tiles| a.at(tiles[at])).collect();
            let made = e.each(Order::InTurn, to.len(), tiles, one)?;
            parts.push((to, made));
        }
        Ok(e.assembled(after.ciphertexts(), parts, |any| e.sub(any, any))?)
    }

    /// Whether a slot of a tile is in some of its lines.
    fn in_lines(&self, axis: Axis, places: &[usize], slot: usize) -> bool {
        let (d, g) = (self.tile, self.stride);
        let (i, j) = (slot / g / d, slot / g % d);
        slot.is_multiple_of(g) && i < d && places.contains(if axis == Axis::Rows { &i } else { &j })
    }

    /// Rotations of [`TileLayout::repeat`]: by powers of two, away from the first line.
    fn doublings(&self, axis: Axis, size: usize) -> impl Iterator<Item = i64> + use<> {
        let (copies, unit) = (size.min(self.tile), self.unit(axis));
        (0..usize::BITS).map(|b| 1usize << b).take_while(move |far| *far < copies).map(move |far| -(far as i64) * unit)
    }

    /// Galois elements of [`TileLayout::take`] for any lines and of [`TileLayout::repeat`], as a context has them.
    pub fn line_elements(&self, params: &Params) -> Vec<u64> {
        let steps = [Axis::Rows, Axis::Columns].into_iter().flat_map(|axis| self.doublings(axis, self.tile));
        steps.flat_map(|step| [step, -step]).map(|step| params.rotation_element(step)).collect()
    }

    /// The only row or column of a matrix, `size` times. No level.
    ///
    /// Copies double: after s rotations there are 2^s, and those of the number's binary digits are put one after the other.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`].
    pub fn repeat<B: Backend>(
        &self,
        e: &Evaluator<B>,
        axis: Axis,
        size: usize,
        a: Batch<'_, B::Ciphertext>,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        check_count("tiles", a.len(), self.ciphertexts())?;
        let steps: Vec<i64> = self.doublings(axis, size).collect();
        let (full, after, count) = (size / self.tile, self.with_lines(axis, size), a.len());
        // Of each tile, what is in `x` and, rotated, what is in `y`.
        let join = |x: &[CiphertextOf<B>], y: &[CiphertextOf<B>], step: i64| -> Result<Vec<_>, MatrixError> {
            let (x, y) = (Batch::from(x), Batch::from(y));
            let one = |c: &[&CiphertextOf<B>]| -> Result<CiphertextOf<B>, MatrixError> {
                let image = e.rotate(c[1], step)?;
                // What stands beside the line is there as well.
                let spread = c[0].spread().disjoint(image.spread()).together();
                Ok(e.add(c[0], &image)?.with_spread(spread).with_bound(c[0].bound()))
            };
            e.each(Order::InTurn, count, |t| vec![x.at(t), y.at(t)], one)
        };
        // 2^s copies, for each s.
        let mut copies = vec![a.to_vec()];
        for (s, step) in steps.iter().enumerate().take(size.min(self.tile).ilog2() as usize) {
            let next = join(&copies[s], &copies[s], *step)?;
            copies.push(next);
        }
        let mut rest: Option<Vec<CiphertextOf<B>>> = None;
        for (s, some) in copies.iter().enumerate().filter(|(s, _)| ((size % self.tile) >> s) & 1 == 1) {
            rest = Some(match rest {
                Some(before) => join(some, &before, steps[s])?,
                None => some.clone(),
            });
        }
        let whole = copies.pop().filter(|_| full > 0);
        let along = (0..full).map(|_| whole.clone()).chain([rest]).flatten();
        let parts = along.enumerate().map(|(at, tiles)| (after.along(axis, at), tiles)).collect();
        let mut out = e.assembled(after.ciphertexts(), parts, |any| e.sub(any, any))?;
        // Copies have one error in common.
        for c in &mut out {
            let spread = c.spread().shared();
            *c = c.clone().with_spread(spread);
        }
        Ok(out)
    }
}

/// A ciphertext rotated by some distances, one after the other.
fn rotated<B: Backend>(
    e: &Evaluator<B>,
    c: CiphertextOf<B>,
    shifts: impl IntoIterator<Item = i64>,
    unit: i64,
) -> Result<CiphertextOf<B>, MatrixError> {
    shifts.into_iter().try_fold(c, |c, shift| Ok(e.rotate(&c, -shift * unit)?))
}
