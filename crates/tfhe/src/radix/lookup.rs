//! Tables of linear combinations: the one place where integers are bootstrapped.
//!
//! A table's boxes are as wide as its values allow, and negative values use the negacyclic half of
//! the torus where the table permits, so that one blind rotation does as much as it can.

use crate::noise::variance;
use crate::radix::IntegerEvaluator;
use crate::radix::combination::{Combination, half_units};
use crate::{GlweCiphertext, LookupTable, SecretKind, TfheError, TfheParams};
use std::sync::atomic::Ordering;

/// A function of the values of a combination.
pub(super) type Table<'a> = &'a (dyn Fn(i64) -> i64 + Sync);

/// Whether a blind rotation reads a combination of this noise right, with the failure probability
/// that the parameters declare, when half the torus has `boxes` boxes and `log_tables` bits of the
/// exponent choose a table.
///
/// The input is multiplied by space/boxes, so its noise and its boxes grow alike, while the noise of
/// the key switch stays and that of the modulus switch only grows with the tables.
pub(super) fn reads(params: &TfheParams, boxes: usize, log_tables: u32, noise: u64) -> bool {
    let (literal, context) = (params.literal(), params.context());
    let scale = params.space() as f64 / boxes as f64;
    let input = (scale * noise as f64).powi(2) * params.output_variance();
    let two_n = (2 * context.degree()) >> log_tables;
    let switched = params.switched_variance(input);
    let all = variance::modulus_switch(literal.lwe_dimension, SecretKind::Binary, two_n, switched);
    variance::log2_tail(1.0 / (4.0 * boxes as f64), all) <= literal.log_failure
}

/// How one blind rotation evaluates tables.
struct Layout {
    boxes: usize,
    /// Added to the combination first.
    offset: i64,
    /// Of each table, twice its entries without its constant, and twice that constant.
    halves: Vec<(Vec<i64>, i64)>,
}

/// The entries of a table in half units, where negative values read the negated entry `boxes` above;
/// `None` if two values that share an entry do not add up to the same constant.
fn entries(range: (i64, i64), boxes: i64, offset: i64, table: Table<'_>) -> Option<(Vec<i64>, i64)> {
    let shared = |v: i64| v + offset < 0 && v + boxes <= range.1;
    let mut sum = None;
    for v in (range.0..=range.1).filter(|v| shared(*v)) {
        let pair = table(v) + table(v + boxes);
        if *sum.get_or_insert(pair) != pair {
            return None;
        }
    }
    let twice = sum.unwrap_or(0);
    let mut out = vec![0; boxes as usize];
    for v in range.0..=range.1 {
        let (at, entry) = (v + offset, 2 * table(v) - twice);
        out[at.rem_euclid(boxes) as usize] = if at < 0 { -entry } else { entry };
    }
    Some((out, twice))
}

impl Layout {
    /// The widest boxes that the values and tables allow.
    fn find(params: &TfheParams, x: &Combination, tables: &[Table<'_>]) -> Option<Self> {
        let log_tables = tables.len().next_power_of_two().trailing_zeros();
        let space = params.space() as i64;
        let mut boxes = 2;
        while boxes <= space && (2 * boxes as usize) << log_tables <= params.context().degree() {
            for offset in [0, -x.low] {
                if x.low + offset < -boxes || x.high + offset >= boxes {
                    continue;
                }
                let halves: Option<Vec<_>> =
                    tables.iter().map(|t| entries((x.low, x.high), boxes, offset, *t)).collect();
                if let Some(halves) = halves
                    && reads(params, boxes as usize, log_tables, x.noise)
                {
                    return Some(Self { boxes: boxes as usize, offset, halves });
                }
            }
            boxes *= 2;
        }
        None
    }
}

impl IntegerEvaluator<'_> {
    /// Whether one blind rotation evaluates all these tables of a combination.
    pub(super) fn fits(&self, x: &Combination, tables: &[Table<'_>]) -> bool {
        Layout::find(self.key.params(), x, tables).is_some()
    }

    /// Tables of a combination, by one blind rotation if its values and noise leave room, else by one
    /// each.
    ///
    /// # Errors
    /// [`TfheError::NoiseBudget`], [`TfheError::CarrySpace`] if even one table does not fit.
    pub(super) fn tables(&self, x: &Combination, tables: &[Table<'_>]) -> Result<Vec<Combination>, TfheError> {
        if let Some(value) = x.public() {
            return Ok(tables.iter().map(|t| Combination::constant(self.key, t(value))).collect());
        }
        let Some(layout) = Layout::find(self.key.params(), x, tables) else {
            if tables.len() > 1 {
                return tables.iter().map(|t| self.table(x, *t)).collect();
            }
            let space = self.key.params().space();
            let values = (x.high - x.low + 1) as u64;
            return Err(if values > space {
                TfheError::CarrySpace { operation: "lookup", found: values - 1, space }
            } else {
                let allowed = (0..x.noise).rev().find(|n| reads(self.key.params(), space as usize, 0, *n));
                TfheError::NoiseBudget { operation: "lookup", found: x.noise, allowed: allowed.unwrap_or(0) }
            });
        };
        self.rotate(x, &layout, tables)
    }

    /// A table of a combination, by one bootstrap.
    ///
    /// # Errors
    /// As for [`IntegerEvaluator::tables`].
    pub(super) fn table(&self, x: &Combination, table: Table<'_>) -> Result<Combination, TfheError> {
        let mut out = self.tables(x, &[table])?;
        out.pop().ok_or(TfheError::Shape { what: "tables", expected: 1, found: 0 })
    }

    fn rotate(&self, x: &Combination, layout: &Layout, tables: &[Table<'_>]) -> Result<Vec<Combination>, TfheError> {
        let (key, params) = (self.key, self.key.params());
        let phases: Vec<Vec<u64>> =
            layout.halves.iter().map(|(entries, _)| entries.iter().map(|h| half_units(params, *h)).collect()).collect();
        let polynomial = LookupTable::from_phases(params.context(), &phases)?;
        let scale = params.space() as i64 / layout.boxes as i64;
        // Read the key once for all lanes.
        let scaled = x.clone().plus_constant(key, layout.offset).times(scale);
        let mut accs =
            scaled.lanes().iter().map(|_| GlweCiphertext::trivial(params.context(), polynomial.coefficients()));
        let mut accs = accs.by_ref().collect::<Result<Vec<_>, _>>()?;
        key.rotate_by_phases(&mut accs, &scaled.lanes().iter().collect::<Vec<_>>(), polynomial.log_tables())?;
        self.rotations.fetch_add(accs.len() as u64, Ordering::Relaxed);
        let outputs = layout.halves.iter().zip(tables).enumerate().map(|(t, ((_, twice), table))| {
            let lane = |acc: &GlweCiphertext| {
                let mut c = acc.extract(t)?;
                c.add_plain(half_units(params, *twice));
                Ok(c)
            };
            let values = (x.low..=x.high).map(table);
            let ends = values.fold((i64::MAX, i64::MIN), |(l, h), v| (l.min(v), h.max(v)));
            Ok(Combination::rotated(accs.iter().map(lane).collect::<Result<_, TfheError>>()?, ends))
        });
        outputs.collect()
    }
}
