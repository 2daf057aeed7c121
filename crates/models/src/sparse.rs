//! Sparse matrices, and affine maps of the values that a network keeps.

use crate::error::{ModelError, format};
use crate::tensor::{Indices, elements};
use std::collections::BTreeMap;

/// Entries of a matrix at most.
const MAX_ENTRIES: usize = 1 << 26;
/// Bits of a word of masks.
const WORD: usize = u64::BITS as usize;
/// How many times as long as a stencil the range may be that it is a part of.
const RANGE: usize = 8;

/// Entries that rows share: some of those in a range, by a mask, and the first one's offset.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stencil {
    from: usize,
    to: usize,
    /// Where the bits of its mask begin; none for all entries.
    mask: Option<usize>,
}

/// A sparse matrix, row by row. A column appears once in a row, columns ascend.
///
/// A row is a stencil moved to its first column. The rows of a convolution's channel share theirs, and those at a border are parts of it: a
/// matrix thus takes the memory of the weights that differ, whatever its size.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparse {
    columns: usize,
    /// Of each row its stencil and its first column.
    rows: Vec<[u32; 2]>,
    stencils: Vec<Stencil>,
    /// Columns of entries from some column on, and their values.
    offset: Vec<u32>,
    value: Vec<f64>,
    masks: Vec<u64>,
    entries: usize,
    /// Stencils by a hash of their entries.
    known: BTreeMap<u64, u32>,
}

/// A matrix as a file has it.
pub(crate) struct Parts<'s> {
    pub rows: &'s [[u32; 2]],
    /// Of each stencil where it begins and ends, and whether it has a mask.
    pub stencils: Vec<[u32; 3]>,
    pub offset: &'s [u32],
    pub value: &'s [f64],
    pub masks: &'s [u64],
}

/// FNV-1a over words.
fn hash(entries: impl Iterator<Item = (u32, f64)>) -> u64 {
    let step = |h: u64, word: u64| (h ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    entries.fold(0xcbf2_9ce4_8422_2325, |h, (offset, value)| step(step(h, u64::from(offset)), value.to_bits()))
}

const DAMAGED: &str = "one of its matrices is damaged; copy it again";

impl Sparse {
    pub(crate) fn empty(columns: usize) -> Self {
        Self {
            columns,
            rows: Vec::new(),
            stencils: Vec::new(),
            offset: Vec::new(),
            value: Vec::new(),
            masks: Vec::new(),
            entries: 0,
            known: BTreeMap::new(),
        }
    }

    pub(crate) fn identity(count: usize) -> Self {
        let mut out = Self::empty(count);
        if count > 0 {
            let stencil = out.stencil(&[(0, 1.0)]);
            out.rows = (0..count as u32).map(|r| [stencil, r]).collect();
            out.entries = count;
        }
        out
    }

    /// From its parts.
    pub(crate) fn of_parts(columns: usize, parts: &Parts<'_>) -> Result<Self, ModelError> {
        let Parts { rows, offset, value, masks, .. } = *parts;
        let mut out = Self { rows: rows.to_vec(), value: value.to_vec(), ..Self::empty(columns) };
        (out.offset, out.masks) = (offset.to_vec(), masks.to_vec());
        let (mut used, mut all) = (0, 0usize);
        let mut sound = offset.len() == value.len() && value.iter().all(|v| v.is_finite());
        for [from, to, masked] in &parts.stencils {
            let (from, to) = (*from as usize, *to as usize);
            let ascending = offset.get(from..to).is_some_and(|all| all.windows(2).all(|w| w[0] < w[1]));
            let mask = (*masked != 0).then_some(used);
            used += if mask.is_some() { to.saturating_sub(from).div_ceil(WORD) } else { 0 };
            all = all.saturating_add(to.saturating_sub(from));
            // A range begins and ends with entries of the stencil.
            let ends =
                |i: usize| mask.is_none_or(|m| masks.get(m + i / WORD).is_some_and(|w| w >> (i % WORD) & 1 == 1));
            sound &= ascending && used <= masks.len() && (from == to || (ends(0) && ends(to - from - 1)));
            out.stencils.push(Stencil { from, to, mask });
        }
        let mut counts = Vec::new();
        if sound && all <= RANGE * MAX_ENTRIES {
            counts = out.stencils.iter().map(|s| (out.of_stencil(*s).count(), out.width(*s))).collect();
        }
        for [stencil, first] in rows {
            let Some((count, width)) = counts.get(*stencil as usize) else { return format(DAMAGED) };
            sound &= *first as usize + width <= columns;
            out.entries = out.entries.saturating_add(*count);
        }
        if sound && out.entries <= MAX_ENTRIES { Ok(out) } else { format(DAMAGED) }
    }

    pub(crate) fn parts(&self) -> Parts<'_> {
        let stencil = |s: &Stencil| [s.from as u32, s.to as u32, u32::from(s.mask.is_some())];
        let Self { rows, offset, value, masks, .. } = self;
        Parts { rows, stencils: self.stencils.iter().map(stencil).collect(), offset, value, masks }
    }

    /// The entries of a stencil: columns from its first on, and values.
    fn of_stencil(&self, s: Stencil) -> impl Iterator<Item = (usize, f64)> + '_ {
        let Stencil { from, to, mask } = s;
        let base = self.offset[from..to].first().map_or(0, |column| *column);
        let entries = self.offset[from..to].iter().zip(&self.value[from..to]).enumerate();
        let has = move |i: usize| mask.is_none_or(|m| self.masks[m + i / WORD] >> (i % WORD) & 1 == 1);
        entries.filter(move |(i, _)| has(*i)).map(move |(_, (c, v))| ((c - base) as usize, *v))
    }

    /// Columns from a stencil's first entry to its last one.
    fn width(&self, s: Stencil) -> usize {
        match self.offset[s.from..s.to] {
            [] => 0,
            [first, .., last] => (last - first) as usize + 1,
            [_] => 1,
        }
    }

    /// The number of a stencil, which is added if it is new.
    fn stencil(&mut self, entries: &[(u32, f64)]) -> u32 {
        let first = entries.first().map_or(0, |(column, _)| *column);
        let moved = || entries.iter().map(|(column, value)| (column - first, *value));
        let (key, next) = (hash(moved()), self.stencils.len() as u32);
        let known = self.known.get(&key).copied();
        if let Some(known) = known.filter(|k| {
            let own = self.of_stencil(self.stencils[*k as usize]);
            own.map(|(c, v)| (c as u32, v.to_bits())).eq(moved().map(|(c, v)| (c, v.to_bits())))
        }) {
            return known;
        }
        let from = self.offset.len();
        self.offset.extend(moved().map(|(column, _)| column));
        self.value.extend(moved().map(|(_, value)| value));
        self.stencils.push(Stencil { from, to: self.offset.len(), mask: None });
        self.known.insert(key, next);
        next
    }

    /// Adds a row: entries in any order, of which equal columns are added up.
    pub(crate) fn push_row(&mut self, entries: &mut Vec<(u32, f64)>) -> Result<(), ModelError> {
        entries.sort_by_key(|(column, _)| *column);
        entries.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            sum.1 += if same { next.1 } else { 0.0 };
            same
        });
        self.entries += entries.len();
        if self.entries > MAX_ENTRIES {
            return format(format!(
                "a composed linear map has more than {MAX_ENTRIES} weights; put an activation between its layers"
            ));
        }
        let first = entries.first().map_or(0, |(column, _)| *column);
        let stencil = self.stencil(entries);
        self.rows.push([stencil, first]);
        entries.clear();
        Ok(())
    }

    /// The same matrix, with stencils that are parts of others as masks of them.
    pub(crate) fn compacted(self) -> Self {
        let mut order: Vec<usize> = (0..self.stencils.len()).collect();
        order.sort_by_key(|id| std::cmp::Reverse(self.stencils[*id].to - self.stencils[*id].from));
        if !self.masks.is_empty() {
            return self;
        }
        let mut out = Self { rows: self.rows.clone(), entries: self.entries, ..Self::empty(self.columns) };
        out.stencils = self.stencils.clone();
        // Where a value is, and where its stencil ends.
        let mut places: BTreeMap<u64, [usize; 2]> = BTreeMap::new();
        let mut parts = BTreeMap::new();
        for id in order {
            let entries: Vec<(usize, f64)> = self.of_stencil(self.stencils[id]).collect();
            let place = entries.first().and_then(|(_, v)| places.get(&v.to_bits()));
            let part = place.and_then(|[from, end]| out.part(&entries, *from, *end));
            out.stencils[id] = match part {
                Some((to, mask)) => {
                    parts.insert(id, mask);
                    Stencil { from: place.map_or(0, |p| p[0]), to, mask: None }
                }
                None => {
                    let from = out.offset.len();
                    out.offset.extend(entries.iter().map(|(c, _)| *c as u32));
                    out.value.extend(entries.iter().map(|(_, v)| *v));
                    let to = out.offset.len();
                    places.extend((from..to).map(|i| (out.value[i].to_bits(), [i, to])));
                    Stencil { from, to, mask: None }
                }
            };
        }
        // In the order of the stencils, as a file has them.
        for (id, mask) in parts {
            out.stencils[id].mask = Some(out.masks.len());
            out.masks.extend(mask);
        }
        out
    }

    /// Where a stencil ends as a part of what stands from a place on, and its mask; none if it is no part of it.
    fn part(&self, entries: &[(usize, f64)], from: usize, end: usize) -> Option<(usize, Vec<u64>)> {
        let (mut mask, mut left) = (Vec::new(), entries.iter().peekable());
        for i in from..end {
            let (column, value) = left.peek()?;
            let apart = (self.offset[i] - self.offset[from]) as usize;
            let here = apart == *column && self.value[i].to_bits() == value.to_bits();
            if i - from >= RANGE * entries.len() {
                return None;
            }
            mask.resize((i - from) / WORD + 1, 0u64);
            if here {
                mask[(i - from) / WORD] |= 1 << ((i - from) % WORD);
                left.next();
            }
            if left.peek().is_none() {
                return Some((i + 1, mask));
            }
        }
        None
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The entries of a row: columns and values.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let [stencil, first] = self.rows[row];
        self.of_stencil(self.stencils[stencil as usize]).map(move |(c, v)| (first as usize + c, v))
    }

    /// Whether all values are finite.
    pub(crate) fn is_finite(&self) -> bool {
        self.value.iter().all(|v| v.is_finite())
    }

    /// Whether row i is the unit vector i, and there are as many rows as columns.
    pub(crate) fn is_identity(&self) -> bool {
        self.rows() == self.columns
            && self.entries == self.columns
            && (0..self.rows()).all(|r| self.row(r).eq([(r, 1.0)]))
    }

    /// Whether a row has one entry at most: a change of index, and factors.
    pub(crate) fn is_thin(&self) -> bool {
        self.stencils.iter().all(|s| s.to - s.from <= 1)
    }

    /// Each column times a number of its own.
    pub(crate) fn scale_columns(&mut self, by: &[f64]) -> Result<(), ModelError> {
        let (mut out, mut entries) = (Self::empty(self.columns), Vec::new());
        for r in 0..self.rows() {
            entries.extend(self.row(r).map(|(c, v)| (c as u32, v * by[c])));
            out.push_row(&mut entries)?;
        }
        *self = out;
        Ok(())
    }

    /// Each row times a number of its own.
    fn scaled_rows(&self, by: &[f64]) -> Self {
        let mut out = Self { entries: self.entries, ..Self::empty(self.columns) };
        let mut made: BTreeMap<(u32, u64), u32> = BTreeMap::new();
        for ([stencil, first], factor) in self.rows.iter().zip(by) {
            let key = (*stencil, factor.to_bits());
            let number = made.get(&key).copied().unwrap_or_else(|| {
                let entries = self.of_stencil(self.stencils[*stencil as usize]);
                let number = out.stencil(&entries.map(|(c, v)| (c as u32, v * factor)).collect::<Vec<_>>());
                made.insert(key, number);
                number
            });
            out.rows.push([number, *first]);
        }
        out
    }

    /// The product with a vector.
    pub fn apply(&self, x: &[f64]) -> Vec<f64> {
        (0..self.rows()).map(|r| self.row(r).map(|(c, v)| v * x[c]).sum()).collect()
    }

    /// Adds the transposed matrix's product with a vector.
    pub(crate) fn add_transposed(&self, y: &[f64], to: &mut [f64]) {
        for (r, y) in y.iter().enumerate().filter(|(_, y)| **y != 0.0) {
            self.row(r).for_each(|(c, v)| to[c] += v * y);
        }
    }

    /// This matrix times another one.
    pub(crate) fn after(&self, inner: &Self) -> Result<Self, ModelError> {
        if inner.is_identity() {
            return Ok(self.clone());
        }
        if self.is_identity() {
            return Ok(inner.clone());
        }
        let (mut out, mut sum) = (Self::empty(inner.columns), vec![0.0; inner.columns]);
        let (mut touched, mut entries) = (Vec::new(), Vec::new());
        let mut seen = vec![false; inner.columns];
        for r in 0..self.rows() {
            for (middle, a) in self.row(r) {
                for (c, b) in inner.row(middle) {
                    if !std::mem::replace(&mut seen[c], true) {
                        touched.push(c);
                    }
                    sum[c] += a * b;
                }
            }
            for c in touched.drain(..) {
                entries.push((c as u32, std::mem::take(&mut sum[c])));
                seen[c] = false;
            }
            entries.retain(|(_, v)| *v != 0.0);
            out.push_row(&mut entries)?;
        }
        Ok(out)
    }

    fn plus(&self, other: &Self) -> Result<Self, ModelError> {
        let (mut out, mut entries) = (Self::empty(self.columns), Vec::new());
        for r in 0..self.rows() {
            entries.extend(self.row(r).chain(other.row(r)).map(|(c, v)| (c as u32, v)));
            out.push_row(&mut entries)?;
        }
        Ok(out)
    }

    /// Euclidean norms of the rows.
    pub(crate) fn norms(&self) -> Vec<f64> {
        (0..self.rows()).map(|r| self.row(r).map(|(_, v)| v * v).sum::<f64>().sqrt()).collect()
    }

    /// The spectral norm, by power iteration and a margin, and no more than Frobenius' norm.
    pub(crate) fn spectral_norm(&self) -> f64 {
        const STEPS: usize = 40;
        const MARGIN: f64 = 1.05;
        let frobenius = self.norms().into_iter().map(|v| v * v).sum::<f64>().sqrt();
        // Any start that no structure of weights is orthogonal to.
        let mut x: Vec<f64> = (0..self.columns).map(|i| (i as f64 * 0.754_877_666).fract() - 0.4).collect();
        let mut norm = 0.0;
        for _ in 0..STEPS {
            let size = x.iter().map(|x| x * x).sum::<f64>().sqrt();
            if size == 0.0 {
                break;
            }
            x.iter_mut().for_each(|x| *x /= size);
            let y = self.apply(&x);
            norm = y.iter().map(|y| y * y).sum::<f64>().sqrt();
            x.fill(0.0);
            self.add_transposed(&y, &mut x);
        }
        (MARGIN * norm).min(frobenius)
    }
}

/// An affine function of the values that a network keeps: its input, which is number 0, and results of its layers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Linear {
    pub shape: Vec<usize>,
    pub terms: BTreeMap<usize, Sparse>,
    pub bias: Vec<f64>,
}

impl Linear {
    /// A value that is kept.
    pub fn kept(number: usize, shape: Vec<usize>) -> Result<Self, ModelError> {
        let Some(count) = elements(&shape) else {
            return format(format!("a tensor of the shape {shape:?} is too large"));
        };
        Ok(Self { shape, terms: [(number, Sparse::identity(count))].into(), bias: vec![0.0; count] })
    }

    /// A linear map of it.
    pub fn mapped(&self, map: &Sparse, shape: Vec<usize>) -> Result<Self, ModelError> {
        let terms = self.terms.iter().map(|(k, m)| Ok((*k, map.after(m)?))).collect::<Result<_, ModelError>>()?;
        Ok(Self { shape, terms, bias: map.apply(&self.bias) })
    }

    /// Its elements in other places; padding is a number.
    pub fn taken(&self, indices: &Indices, padding: f64) -> Result<Self, ModelError> {
        let mut map = Sparse::empty(self.bias.len());
        let mut entries = Vec::with_capacity(1);
        for from in &indices.from {
            entries.extend(from.map(|i| (i as u32, 1.0)));
            map.push_row(&mut entries)?;
        }
        let mut out = self.mapped(&map, indices.shape.clone())?;
        out.bias.iter_mut().zip(&indices.from).filter(|(_, from)| from.is_none()).for_each(|(b, _)| *b = padding);
        Ok(out)
    }

    /// Each element times a number of its own.
    pub fn scaled(&self, by: &[f64]) -> Self {
        let terms = self.terms.iter().map(|(k, map)| (*k, map.scaled_rows(by))).collect();
        let mut out = Self { shape: self.shape.clone(), terms, bias: self.bias.clone() };
        out.bias.iter_mut().zip(by).for_each(|(b, factor)| *b *= factor);
        out
    }

    /// Plus a number for each element.
    pub fn shifted(mut self, by: &[f64]) -> Self {
        self.bias.iter_mut().zip(by).for_each(|(b, x)| *b += x);
        self
    }

    /// The sum of two of one shape.
    pub fn plus(&self, other: &Self) -> Result<Self, ModelError> {
        let mut out = self.clone().shifted(&other.bias);
        for (k, map) in &other.terms {
            let sum = match out.terms.get(k) {
                Some(own) => own.plus(map)?,
                None => map.clone(),
            };
            out.terms.insert(*k, sum);
        }
        Ok(out)
    }

    /// A number c with self = c·other, element by element; none if there is none.
    pub fn over(&self, other: &Self) -> Option<f64> {
        let same = self.bias.len() == other.bias.len() && self.terms.keys().eq(other.terms.keys());
        let rows = |a: &Sparse, b: &Sparse| (0..a.rows()).all(|r| a.row(r).map(|e| e.0).eq(b.row(r).map(|e| e.0)));
        let alike = |(a, b): (&Sparse, &Sparse)| a.rows() == b.rows() && a.columns == b.columns && rows(a, b);
        if !same || !self.terms.values().zip(other.terms.values()).all(alike) {
            return None;
        }
        let numbers = |of: &Self| {
            let values = of.terms.values().flat_map(|m| (0..m.rows()).flat_map(|r| m.row(r).map(|e| e.1)));
            values.chain(of.bias.iter().copied()).collect::<Vec<_>>()
        };
        let (own, others) = (numbers(self), numbers(other));
        let pairs = || own.iter().zip(&others);
        let largest = pairs().max_by(|x, y| x.1.abs().total_cmp(&y.1.abs()))?;
        let ratio = largest.0 / largest.1;
        let near = |(a, b): (&f64, &f64)| (a - ratio * b).abs() <= 1e-6 * (ratio * largest.1).abs();
        (ratio.is_finite() && pairs().all(near)).then_some(ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_testkit::Random;

    /// A convolution of 3 × 3 over `channels` planes of `side` × `side`, padded, to as many channels.
    fn convolution(channels: usize, side: usize) -> (Sparse, usize) {
        let weights = Random(5).units(channels * channels * 9);
        let mut map = Sparse::empty(channels * side * side);
        for row in 0..channels * side * side {
            let (o, y, x) = (row / (side * side), row / side % side, row % side);
            let mut entries = Vec::new();
            for (i, w) in weights[o * channels * 9..(o + 1) * channels * 9].iter().enumerate() {
                let (c, dy, dx) = (i / 9, i / 3 % 3, i % 3);
                let (y, x) = ((y + dy).wrapping_sub(1), (x + dx).wrapping_sub(1));
                if y < side && x < side {
                    entries.push(((c * side * side + y * side + x) as u32, *w));
                }
            }
            map.push_row(&mut entries).unwrap();
        }
        (map, weights.len())
    }

    fn rows(map: &Sparse) -> Vec<Vec<(usize, f64)>> {
        (0..map.rows()).map(|r| map.row(r).collect()).collect()
    }

    /// A convolution takes the memory of its weights, whatever the image's size: stored once, those at borders by a mask.
    #[test]
    fn a_convolution_has_its_weights_once() {
        let (map, weights) = convolution(4, 8);
        let small = map.clone().compacted();
        assert_eq!((map.value.len(), small.value.len()), (4 * 4 * 49, weights));
        assert_eq!((rows(&small), small.entries()), (rows(&map), map.entries()));
        assert_eq!(convolution(4, 16).0.compacted().value.len(), weights);
        let x = Random(6).units(map.columns());
        assert_eq!(small.apply(&x), map.apply(&x));
        let read = Sparse::of_parts(small.columns(), &small.parts()).unwrap();
        assert_eq!(read, small);
        // As it is used: a factor for each row or column, products, sums.
        let by: Vec<f64> = (0..map.rows()).map(|r| 1.0 + (r / 64) as f64).collect();
        assert_eq!(rows(&small.scaled_rows(&by)), rows(&map.scaled_rows(&by)));
        assert_eq!(small.scaled_rows(&by).value.len(), map.value.len());
        assert_eq!(rows(&small.after(&small).unwrap()), rows(&map.after(&map).unwrap()));
    }

    /// Any matrix is the same afterwards: equal values in a row, empty rows, rows that begin in the middle of others.
    #[test]
    fn compacting_changes_nothing() {
        let mut random = Random(9);
        for columns in [1usize, 5, 40, 200] {
            let mut map = Sparse::empty(columns);
            for _ in 0..120 {
                let (density, kinds) = (random.below(100), 1 + random.below(3));
                let mut some: Vec<u32> = (0..columns as u32).collect();
                some.retain(|_| random.chance(density));
                let mut entries = some.into_iter().map(|c| (c, random.below(kinds) as f64 - 0.5)).collect();
                map.push_row(&mut entries).unwrap();
            }
            let small = map.clone().compacted();
            assert_eq!((rows(&small), small.entries()), (rows(&map), map.entries()));
            assert_eq!(rows(&Sparse::of_parts(columns, &small.parts()).unwrap()), rows(&map));
        }
    }

    #[test]
    fn damaged_parts() {
        let small = convolution(2, 4).0.compacted();
        struct Own {
            rows: Vec<[u32; 2]>,
            stencils: Vec<[u32; 3]>,
            value: Vec<f64>,
            masks: Vec<u64>,
        }
        let read = |damage: &dyn Fn(&mut Own)| {
            let Parts { rows, stencils, offset, value, masks } = small.parts();
            let mut own = Own { rows: rows.to_vec(), stencils, value: value.to_vec(), masks: masks.to_vec() };
            damage(&mut own);
            let Own { rows, stencils, value, masks } = own;
            let parts = Parts { rows: &rows, stencils, offset, value: &value, masks: &masks };
            Sparse::of_parts(small.columns(), &parts)
        };
        assert_eq!(read(&|_| ()).unwrap(), small);
        let refused = |damage: &dyn Fn(&mut Own)| assert!(read(damage).is_err());
        refused(&|own| own.rows[0][0] = 1000);
        refused(&|own| own.rows[5][1] += 32);
        refused(&|own| own.stencils[0][1] = u32::MAX);
        refused(&|own| own.stencils.iter_mut().for_each(|s| s.swap(0, 1)));
        refused(&|own| own.value[3] = f64::NAN);
        refused(&|own| _ = own.value.pop());
        refused(&|own| own.masks[0] &= !1);
        refused(&|own| own.masks.clear());
    }
}
