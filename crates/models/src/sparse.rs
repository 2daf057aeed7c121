//! Sparse matrices, and affine maps of the values that a network keeps.

use crate::error::{ModelError, format};
use crate::tensor::{Indices, elements};
use std::collections::BTreeMap;

/// Entries of a matrix at most.
const MAX_ENTRIES: usize = 1 << 26;

/// A sparse matrix, row by row. A column appears once in a row, columns ascend.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparse {
    columns: usize,
    starts: Vec<usize>,
    column: Vec<u32>,
    value: Vec<f64>,
}

impl Sparse {
    pub(crate) fn empty(columns: usize) -> Self {
        Self { columns, starts: vec![0], column: Vec::new(), value: Vec::new() }
    }

    pub(crate) fn identity(count: usize) -> Self {
        let column = (0..count as u32).collect();
        Self { columns: count, starts: (0..=count).collect(), column, value: vec![1.0; count] }
    }

    /// From its parts.
    pub(crate) fn of_parts(
        columns: usize,
        lengths: &[u32],
        column: Vec<u32>,
        value: Vec<f64>,
    ) -> Result<Self, ModelError> {
        let mut starts = vec![0usize];
        let mut end = 0;
        for length in lengths {
            end += *length as usize;
            starts.push(end);
        }
        let ascending =
            |row: &[u32]| row.windows(2).all(|w| w[0] < w[1]) && row.last().is_none_or(|c| (*c as usize) < columns);
        let sound = end == column.len() && end == value.len() && value.iter().all(|v| v.is_finite());
        let rows = |column: &[u32]| starts.windows(2).all(|w| column.get(w[0]..w[1]).is_some_and(ascending));
        if sound && rows(&column) {
            Ok(Self { columns, starts, column, value })
        } else {
            format("a matrix of it is damaged")
        }
    }

    /// Adds a row: entries in any order, of which equal columns are added up.
    pub(crate) fn push_row(&mut self, entries: &mut Vec<(u32, f64)>) -> Result<(), ModelError> {
        entries.sort_by_key(|(column, _)| *column);
        let first = self.column.len();
        for (column, value) in entries.drain(..) {
            match (self.column[first..].last(), self.value.last_mut()) {
                (Some(last), Some(sum)) if *last == column => *sum += value,
                _ => {
                    self.column.push(column);
                    self.value.push(value);
                }
            }
        }
        if self.column.len() > MAX_ENTRIES {
            return format(format!(
                "a composed linear map has more than {MAX_ENTRIES} weights; put an activation between its layers"
            ));
        }
        self.starts.push(self.column.len());
        Ok(())
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of entries that are stored.
    pub fn entries(&self) -> usize {
        self.column.len()
    }

    /// The entries of a row: columns and values.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.starts[row]..self.starts[row + 1];
        self.column[range.clone()].iter().zip(&self.value[range]).map(|(c, v)| (*c as usize, *v))
    }

    pub(crate) fn parts(&self) -> (Vec<u32>, &[u32], &[f64]) {
        let lengths = self.starts.windows(2).map(|w| (w[1] - w[0]) as u32).collect();
        (lengths, &self.column, &self.value)
    }

    /// Whether row i is the unit vector i, and there are as many rows as columns.
    pub(crate) fn is_identity(&self) -> bool {
        self.rows() == self.columns
            && self.entries() == self.columns
            && (0..self.rows()).all(|r| self.row(r).eq([(r, 1.0)]))
    }

    /// Each column times a number of its own.
    pub(crate) fn scale_columns(&mut self, by: &[f64]) {
        self.value.iter_mut().zip(&self.column).for_each(|(v, c)| *v *= by[*c as usize]);
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
        let frobenius = self.value.iter().map(|v| v * v).sum::<f64>().sqrt();
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
#[derive(Clone, Debug)]
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
        let mut out = self.clone();
        for map in out.terms.values_mut() {
            for (r, factor) in by.iter().enumerate() {
                map.value[map.starts[r]..map.starts[r + 1]].iter_mut().for_each(|v| *v *= factor);
            }
        }
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
        let pairs = || {
            let entries = self.terms.values().zip(other.terms.values()).flat_map(|(a, b)| a.value.iter().zip(&b.value));
            entries.chain(self.bias.iter().zip(&other.bias))
        };
        let pattern = |a: &Sparse, b: &Sparse| a.starts == b.starts && a.column == b.column;
        if !same || !self.terms.values().zip(other.terms.values()).all(|(a, b)| pattern(a, b)) {
            return None;
        }
        let largest = pairs().max_by(|x, y| x.1.abs().total_cmp(&y.1.abs()))?;
        let ratio = largest.0 / largest.1;
        let near = |(a, b): (&f64, &f64)| (a - ratio * b).abs() <= 1e-6 * (ratio * largest.1).abs();
        (ratio.is_finite() && pairs().all(near)).then_some(ratio)
    }
}
