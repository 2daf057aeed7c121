//! Means and covariances of encrypted columns.
//!
//! Columns are interleaved: row i of column j stands in slot i·G + j mod G of the ciphertext of
//! group ⌊j / G⌋, G a power of two. A strided sum over all slots ([`TraceFunction`]) then leaves
//! the total of each column in all of that column's slots, without a mask. Columns longer than a
//! ciphertext are cut into chunks.
//!
//! Covariances are those of centred columns, Σ_i (x_ij − m_j)(x_ik − m_k) / (n − 1): subtracting
//! products of means from means of products would lose what large means have in common. One
//! rotation by d = k − j (mod G) lines up all pairs of columns at that distance. Every result is one
//! row of values; rows are collected in few ciphertexts before they are sent.
//!
//! How exact the results are follows from the sizes alone ([`ColumnStatistics::errors`]).

mod precision;

pub use precision::MomentErrors;

use precision::Bits;
use std::collections::{BTreeMap, BTreeSet};
use sudare_he::HeError;
use sudare_he::circuits::trace::TraceFunction;
use sudare_he::circuits::unrolled::TracePlan;
use sudare_he::ckks::{Ciphertext, EncodeAt, Encoder, Evaluator, Params, ParamsLiteral, Plaintext, State};
use sudare_ring::threads;
use sudare_rlwe::RlweError;
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};

/// Levels from a fresh table to collected results: mean, product, collection.
const LEVELS: usize = 3;
/// Level of the results: two primes leave room for sums over many rows.
const RESULT_LEVEL: usize = 1;
/// Level of a fresh table.
const TOP: usize = RESULT_LEVEL + LEVELS;
/// Most rows: sums of that many products of centred values still fit.
const MAX_ROWS: u64 = 1 << 40;
/// Most columns.
const MAX_COLUMNS: usize = 1 << 12;

/// Where the values of a table stand, and what is computed of them. Public.
#[derive(Clone, Debug)]
pub struct ColumnStatistics {
    params: Params,
    rows: usize,
    columns: usize,
    /// G: distance of one column's rows.
    stride: usize,
    /// Pairs of groups and the rotation between them, with the column pairs they serve.
    products: BTreeMap<(usize, usize, i64), Vec<(usize, usize)>>,
    sum: TracePlan,
    bits: Bits,
}

impl ColumnStatistics {
    /// Parameters for statistics with a security claim: a scale of 40 bits in primes of the fastest
    /// kernels, or one of 56 bits for moments that others will see, whose noise takes that room.
    pub fn literal(security: Security, released: bool) -> ParamsLiteral {
        let (q_bits, special, log_scale) = match released {
            false => (vec![45, 45, 40, 40, 40], 49, 40),
            true => (vec![61, 61, 56, 56, 56], 61, 56),
        };
        let (secret, total) = (SecretDistribution::Ternary, q_bits.iter().sum::<u32>() + special);
        let holds = |log_n: &u32| max_log_qp(*log_n, secret, security).is_some_and(|limit| total <= limit);
        let log_n = (14..=17).find(holds).unwrap_or(17);
        ParamsLiteral {
            rlwe: sudare_rlwe::params::ParamsLiteral {
                log_n,
                q_bits,
                p_bits: vec![special],
                digit_limbs: 1,
                secret,
                security,
            },
            log_scale,
        }
    }

    /// For a table of rows and columns with absolute values up to 1.
    ///
    /// # Errors
    /// `RlweError::Parameters` for parameters without 4 levels, fewer than two rows, or a table
    /// larger than there is room for.
    pub fn new(params: &Params, rows: usize, columns: usize) -> Result<Self, HeError> {
        let refuse = |reason: String| Err(RlweError::Parameters { reason }.into());
        if params.max_level() < TOP {
            return refuse(format!("column statistics need {TOP} levels and there are {}", params.max_level()));
        }
        if !(2..=MAX_ROWS).contains(&(rows as u64)) || !(1..=MAX_COLUMNS).contains(&columns) {
            return refuse(format!(
                "a table of {rows} rows and {columns} columns; statistics take 2 to {MAX_ROWS} rows and 1 to {MAX_COLUMNS} columns"
            ));
        }
        let stride = stride(params.slots(), rows, columns);
        let mut products: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for j in 0..columns {
            for k in j..columns {
                let distance = (k % stride) as i64 - (j % stride) as i64;
                products.entry((j / stride, k / stride, distance)).or_default().push((j, k));
            }
        }
        let function = TraceFunction::strided_sums(params, params.slots() / stride, stride as i64)?;
        // Two steps an iteration: near the best on any machine, and both sides know the keys.
        let sum = function.unrolled(function.steps().div_ceil(2))?;
        Ok(Self { params: params.clone(), rows, columns, stride, products, sum, bits: Bits::new(params, rows) })
    }

    /// (rows, columns).
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    fn groups(&self) -> usize {
        self.columns.div_ceil(self.stride)
    }

    /// Rows in one ciphertext.
    fn chunk_rows(&self) -> usize {
        self.params.slots() / self.stride
    }

    fn chunks(&self) -> usize {
        self.rows.div_ceil(self.chunk_rows())
    }

    /// Ciphertexts of a table.
    pub fn table_ciphertexts(&self) -> usize {
        self.chunks() * self.groups()
    }

    /// Ciphertexts of the results.
    pub fn result_ciphertexts(&self) -> usize {
        (self.groups() + self.products.len()).div_ceil(self.chunk_rows())
    }

    /// The level that relinearisation works at.
    pub fn relin_level(&self) -> usize {
        TOP - 1
    }

    /// Galois elements whose keys are needed, each with its level.
    pub fn keys(&self) -> Vec<(u64, usize)> {
        let mut keys: BTreeMap<u64, usize> = self.sum.keys(TOP).into_iter().collect();
        for (_, _, distance) in self.products.keys().filter(|(_, _, d)| *d != 0) {
            keys.entry(self.params.rotation_element(*distance)).or_insert(TOP - 1);
        }
        keys.into_iter().collect()
    }

    /// Slot values of a table in the order of its ciphertexts; `value(i, j)` is row i of column j.
    pub fn layout(&self, value: impl Fn(usize, usize) -> f64 + Sync) -> Vec<Vec<f64>> {
        threads::map(self.table_ciphertexts(), |at| {
            let (chunk, group) = (at / self.groups(), at % self.groups());
            let slot = |slot: usize| {
                let (i, j) = (chunk * self.chunk_rows() + slot / self.stride, group * self.stride + slot % self.stride);
                if i < self.rows && j < self.columns { value(i, j) } else { 0.0 }
            };
            (0..self.params.slots()).map(slot).collect()
        })
    }

    /// Plaintexts of a table.
    ///
    /// # Errors
    /// [`HeError::OverBound`] for an absolute value over 1, [`HeError::NotFinite`].
    pub fn encode(&self, value: impl Fn(usize, usize) -> f64 + Sync) -> Result<Vec<Plaintext>, HeError> {
        let encoder = Encoder::new(&self.params);
        let at = EncodeAt { level: TOP, scale: self.scale(), max_abs: 1.0 };
        let slots = self.layout(value);
        threads::map(slots.len(), |i| encoder.encode_at(&slots[i], at)).into_iter().collect()
    }

    fn scale(&self) -> f64 {
        f64::from(self.params.literal().log_scale).exp2()
    }

    /// A mask that is `value` where `keep(row of the ciphertext, slot)` holds.
    fn mask(&self, keep: impl Fn(usize) -> bool, value: f64, level: usize, scale: f64) -> Result<Plaintext, HeError> {
        let values: Vec<f64> =
            (0..self.params.slots()).map(|slot| if keep(slot / self.stride) { value } else { 0.0 }).collect();
        Encoder::new(&self.params).encode_at(&values, EncodeAt { level, scale, max_abs: value })
    }

    /// Means and covariances from the slots of the decrypted results.
    ///
    /// # Errors
    /// `RlweError::Operands` for another number of results.
    pub fn decode(&self, results: &[Vec<f64>]) -> Result<Moments, HeError> {
        if results.len() != self.result_ciphertexts() {
            let (left, right) = (self.result_ciphertexts(), results.len());
            return Err(RlweError::Operands { operation: "decoding of column statistics", left, right }.into());
        }
        let at = |item: usize, column: usize| {
            let row = item % self.chunk_rows();
            results[item / self.chunk_rows()][row * self.stride + column % self.stride]
        };
        let mean = (0..self.columns).map(|j| at(j / self.stride, j)).collect();
        let mut covariance = vec![0.0; self.columns * self.columns];
        for (item, pairs) in self.products.values().enumerate() {
            for (j, k) in pairs {
                let value = at(self.groups() + item, *j);
                covariance[j * self.columns + k] = value;
                covariance[k * self.columns + j] = value;
            }
        }
        Ok(Moments { mean, covariance })
    }
}

/// What [`ColumnStatistics::decode`] finds, of values up to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// Mean of each column.
    pub mean: Vec<f64>,
    /// Covariances with n − 1 degrees of freedom, row-major.
    pub covariance: Vec<f64>,
}

impl ColumnStatistics {
    /// Means and covariances of an encrypted table, collected in
    /// [`ColumnStatistics::result_ciphertexts`] ciphertexts.
    ///
    /// # Errors
    /// `RlweError::Operands` for another number of ciphertexts; `RlweError::WrongParameters`,
    /// `RlweError::WrongKey`, `RlweError::NoSuchLevel`; `RlweError::MissingRotationKey` and
    /// `RlweError::MissingRelinKey` before any work.
    pub fn compute(&self, evaluator: &Evaluator, table: &[Ciphertext]) -> Result<Vec<Ciphertext>, HeError> {
        let operation = "column statistics";
        evaluator.params().expect("the statistics", self.params())?;
        if table.len() != self.table_ciphertexts() {
            let (left, right) = (self.table_ciphertexts(), table.len());
            return Err(RlweError::Operands { operation, left, right }.into());
        }
        for c in table {
            evaluator.check(c)?;
            if c.level() != TOP {
                return Err(RlweError::NoSuchLevel { operation, wanted: TOP, highest: c.level() }.into());
            }
        }
        evaluator.keys().relin()?;
        for (element, level) in self.keys() {
            evaluator.check_keys(&[element], level)?;
        }
        let groups = self.groups();
        // All scales follow from the first.
        if table.iter().any(|c| (c.scale() / self.scale() - 1.0).abs() > (-40f64).exp2()) {
            let (left, right) = (table[0].scale().log2(), self.scale().log2());
            return Err(HeError::ScaleMismatch { operation, left, right });
        }
        let sums = collect(threads::map(groups, |g| {
            let mut total = table[g].clone();
            table.iter().skip(g + groups).step_by(groups).try_for_each(|c| evaluator.add_assign(&mut total, c))?;
            // Padding is zero: what is summed are n values.
            Ok(evaluator.trace(&total, &self.sum)?.with_bound(self.rows as f64))
        }))?;
        let centred = self.centre(evaluator, table, &sums)?;
        let rotated = self.rotation(evaluator, &centred)?;
        let keys: Vec<_> = self.products.keys().copied().collect();
        let mut items = sums;
        items.extend(collect(threads::map(keys.len(), |at| {
            let (g, h, distance) = keys[at];
            let left: Vec<&Ciphertext> = centred.iter().skip(g).step_by(groups).collect();
            let right: Vec<&Ciphertext> = rotated[&(h, distance)].iter().collect();
            let sum = evaluator.trace(&evaluator.relinearize_rescale(&evaluator.dot(&left, &right)?)?, &self.sum)?;
            // By Cauchy and Schwarz, as Σ (x − m)² ≤ Σ x² ≤ n.
            Ok(sum.with_bound(self.rows as f64))
        }))?);
        self.collect_rows(evaluator, &items)
    }

    /// Each column less its mean, at the scale of centred values; padding stays zero.
    fn centre(
        &self,
        evaluator: &Evaluator,
        table: &[Ciphertext],
        sums: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, HeError> {
        let (groups, chunks) = (self.groups(), self.chunks());
        let factor = self.centred_factor();
        let scale = evaluator.params().prime_at(TOP) as f64 * factor as f64;
        let means = |valid: usize| {
            let mask = self.mask(|row| row < valid, 1.0 / self.rows as f64, TOP, scale)?;
            collect(threads::map(groups, |g| evaluator.mul_plain_rescale(&sums[g], &mask)))
        };
        // All chunks but the last are full.
        let full = if chunks > 1 { means(self.chunk_rows())? } else { Vec::new() };
        let last = means(self.rows - (chunks - 1) * self.chunk_rows())?;
        collect(threads::map(table.len(), |at| {
            let means = if at / groups + 1 < chunks { &full } else { &last };
            // The same values in finer units.
            let fine = evaluator.mul_integer(&evaluator.drop_to(&table[at], TOP - 1)?, factor)?;
            let state = State { scale: self.centred_scale(), bound: table[at].bound(), noise: fine.noise() };
            let fine = Ciphertext::from_parts(fine.into_inner(), state)?;
            Ok(evaluator.sub(&fine, &means[at % groups])?.with_bound(2.0))
        }))
    }

    /// The centred columns of each group rotated by every distance that a product asks for.
    fn rotation(
        &self,
        evaluator: &Evaluator,
        centred: &[Ciphertext],
    ) -> Result<BTreeMap<(usize, i64), Vec<Ciphertext>>, HeError> {
        let groups = self.groups();
        let mut distances = vec![BTreeSet::new(); groups];
        self.products.keys().for_each(|(_, h, distance)| {
            distances[*h].insert(*distance);
        });
        let rotated = collect(threads::map(centred.len(), |at| {
            let steps: Vec<i64> = distances[at % groups].iter().copied().collect();
            evaluator.rotate_many(&centred[at], &steps)
        }))?;
        let mut out: BTreeMap<(usize, i64), Vec<Ciphertext>> = BTreeMap::new();
        for (at, images) in rotated.into_iter().enumerate() {
            for (distance, image) in distances[at % groups].iter().zip(images) {
                out.entry((at % groups, *distance)).or_default().push(image);
            }
        }
        Ok(out)
    }

    /// Row t of the results is one row of item t; sums become means and covariances on the way.
    fn collect_rows(&self, evaluator: &Evaluator, items: &[Ciphertext]) -> Result<Vec<Ciphertext>, HeError> {
        let level = RESULT_LEVEL + 1;
        let n = self.rows as f64;
        // The results' scale grows with the rows, so that masks stay as precise as their prime.
        let target = self.collected_scale();
        let error = self.expected().error;
        let rows = self.chunk_rows();
        let bundles: Vec<&[Ciphertext]> = items.chunks(rows).collect();
        collect(threads::map(bundles.len(), |bundle| {
            let mut sum: Option<Ciphertext> = None;
            for (row, item) in bundles[bundle].iter().enumerate() {
                let is_mean = bundle * rows + row < self.groups();
                let item = evaluator.drop_to(item, level)?;
                let weight = if is_mean { 1.0 / n } else { 1.0 / (n - 1.0) };
                let mask = self.mask(|r| r == row, weight, level, target / item.scale())?;
                let part = evaluator.mul_plain(&item, &mask)?;
                match &mut sum {
                    None => sum = Some(part),
                    Some(total) => {
                        // Rows do not meet: values stay as large as the largest.
                        let bound = total.bound().max(part.bound());
                        evaluator.add_assign(total, &part)?;
                        sum = sum.map(|total| total.with_bound(bound));
                    }
                }
            }
            match sum {
                // Whoever releases it looks for the error that both sides know of.
                Some(sum) => Ok(evaluator.rescale(&sum)?.with_error_of(error)),
                None => Err(RlweError::Operands { operation: "collecting results", left: 0, right: 0 }.into()),
            }
        }))
    }
}

/// G: the columns side by side, and between them as much room as leaves a ciphertext with no more rows
/// than the table or its results have. What is summed up is then little but the rows.
fn stride(slots: usize, rows: usize, columns: usize) -> usize {
    let side = columns.next_power_of_two();
    let least = rows.max(columns + 1).next_power_of_two();
    if least.saturating_mul(side) <= slots {
        return slots / least;
    }
    (slots / rows.min(slots).next_power_of_two()).clamp(1, side)
}

fn collect<T>(results: Vec<Result<T, HeError>>) -> Result<Vec<T>, HeError> {
    results.into_iter().collect()
}
