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
//! # Errors
//! Values stand for at most one: columns are divided by their own bounds before they are encrypted, so that an error is one in
//! units of a column's bound (of the product of two for a covariance), whatever the size of the other columns. How exact the
//! results are follows from the sizes alone ([`ColumnStatistics::errors`]), by a run on a backend that computes nothing. What
//! does not average out there is the error of the means that columns are centred with, which all rows have in common.

mod precision;

use crate::portable::read_slots;
use crate::product::{Figures, KeyDemand};
use precision::Bits;
use std::collections::{BTreeMap, BTreeSet};
use sudare_he::HeError;
use sudare_he::circuits::trace::TraceFunction;
use sudare_he::circuits::unrolled::TracePlan;
use sudare_he::ckks::{
    Batch, Ciphertext, CiphertextOf, EncodeAt, Encoder, Evaluator, Expected, Mask, Order, Params, ParamsLiteral,
    Plaintext, PlaintextOf, Spread,
};
use sudare_ring::threads;
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};
use sudare_rlwe::simulated::Simulated;
use sudare_rlwe::wire::MAX_BUNDLE;
use sudare_rlwe::{Backend, RlweError, Shaped};

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

/// Where the values of a table stand, and what is computed of them.
#[derive(Clone, Debug)]
struct Columns {
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

/// Bounds on the errors of means and covariances, for values up to one that were encrypted under the secret key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MomentErrors {
    /// Of a mean.
    pub mean: f64,
    /// Of a covariance or a variance.
    pub covariance: f64,
}

/// Means and covariances of a table's columns, and what they take and promise.
#[derive(Clone, Debug)]
pub struct ColumnStatistics {
    table: Columns,
    figures: Figures,
    errors: MomentErrors,
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
        let table = Columns::new(params, rows, columns)?;
        let (figures, errors) = table.simulated()?;
        Ok(Self { table, figures, errors })
    }

    /// (rows, columns).
    pub fn shape(&self) -> (usize, usize) {
        (self.table.rows, self.table.columns)
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.table.params
    }

    /// What the computation takes; the error is the larger one of [`ColumnStatistics::errors`].
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// How exact the moments are.
    pub fn errors(&self) -> MomentErrors {
        self.errors
    }

    /// What the result of a table is under encryption, worked out from the public figures alone.
    pub fn expected(&self) -> Expected {
        let Figures { level, scale, error, .. } = self.figures;
        Expected { level, scale, error }
    }

    /// Ciphertexts of a table.
    pub fn table_ciphertexts(&self) -> usize {
        self.table.ciphertexts()
    }

    /// Ciphertexts of the results.
    pub fn result_ciphertexts(&self) -> usize {
        self.figures.ciphertexts
    }

    /// Plaintexts of a table; `value(i, j)` is row i of column j.
    ///
    /// # Errors
    /// `RlweError::OverBound` for an absolute value over 1, [`HeError::NotFinite`].
    pub fn encode(&self, value: impl Fn(usize, usize) -> f64 + Sync) -> Result<Vec<Plaintext>, HeError> {
        self.table.encode(value)
    }

    /// Means and covariances of an encrypted table, collected in
    /// [`ColumnStatistics::result_ciphertexts`] ciphertexts.
    ///
    /// # Errors
    /// `RlweError::Operands` for another number of ciphertexts; `RlweError::WrongParameters`,
    /// `RlweError::WrongKey`, `RlweError::NoSuchLevel`; `RlweError::MissingRotationKey` and
    /// `RlweError::MissingRelinKey` before any work.
    pub fn compute<B: Backend>(
        &self,
        e: &Evaluator<B>,
        table: Batch<'_, B::Ciphertext>,
    ) -> Result<Vec<CiphertextOf<B>>, HeError> {
        let operation = "column statistics";
        e.params().require("the statistics", self.params())?;
        if table.len() != self.table_ciphertexts() {
            let (left, right) = (self.table_ciphertexts(), table.len());
            return Err(RlweError::Operands { operation, left, right }.into());
        }
        let scale = self.table.scale();
        for c in table.iter() {
            e.check(c)?;
            if c.level() != TOP {
                return Err(RlweError::NoSuchLevel { operation, wanted: TOP, highest: c.level() }.into());
            }
            // All scales follow from the table's.
            if (c.scale() / scale - 1.0).abs() > (-40f64).exp2() {
                return Err(HeError::ScaleMismatch { operation, left: c.scale().log2(), right: scale.log2() });
            }
        }
        let KeyDemand { relin, galois } = &self.figures.keys;
        relin.iter().try_for_each(|level| e.check_relin(*level))?;
        galois.iter().try_for_each(|(element, level)| e.check_keys(&[*element], *level))?;
        let [sums, products] = self.table.totals(e, table)?;
        let results = self.table.collected(e, sums[..].into(), products[..].into())?;
        // Whoever releases it looks for the error that both sides know of.
        Ok(results.into_iter().map(|c| c.with_error_of(self.figures.error)).collect())
    }

    /// Means and covariances from the slots of the decrypted results.
    ///
    /// # Errors
    /// `RlweError::Operands` for another number of results.
    pub fn decode(&self, results: &[Vec<f64>]) -> Result<Moments, HeError> {
        self.table.decode(results)
    }
}

impl Columns {
    fn new(params: &Params, rows: usize, columns: usize) -> Result<Self, HeError> {
        let refuse = |reason: String| Err(RlweError::Parameters { reason }.into());
        if params.max_level() < TOP {
            return refuse(format!(
                "column statistics need {TOP} levels, and the parameters have {}; take more data primes",
                params.max_level()
            ));
        }
        if !(2..=MAX_ROWS).contains(&(rows as u64)) || !(1..=MAX_COLUMNS).contains(&columns) {
            return refuse(format!(
                "statistics take 2 to {MAX_ROWS} rows and 1 to {MAX_COLUMNS} columns, and the table has {rows} and \
                 {columns}; compute it in parts"
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
        let made = Self { params: params.clone(), rows, columns, stride, products, sum, bits: Bits::new(params, rows) };
        if made.ciphertexts() > MAX_BUNDLE {
            let found = made.ciphertexts();
            return refuse(format!(
                "the table takes {found} ciphertexts, and at most {MAX_BUNDLE} travel; compute it in parts"
            ));
        }
        Ok(made)
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
    fn ciphertexts(&self) -> usize {
        self.chunks().saturating_mul(self.groups())
    }

    /// Ciphertexts of the results.
    fn results(&self) -> usize {
        (self.groups() + self.products.len()).div_ceil(self.chunk_rows())
    }

    /// Slot values of a table in the order of its ciphertexts; `value(i, j)` is row i of column j.
    fn layout(&self, value: impl Fn(usize, usize) -> f64 + Sync) -> Vec<Vec<f64>> {
        threads::map(self.ciphertexts(), |at| {
            let (chunk, group) = (at / self.groups(), at % self.groups());
            let slot = |slot: usize| {
                let (i, j) = (chunk * self.chunk_rows() + slot / self.stride, group * self.stride + slot % self.stride);
                if i < self.rows && j < self.columns { value(i, j) } else { 0.0 }
            };
            (0..self.params.slots()).map(slot).collect()
        })
    }

    fn encoded_at(&self) -> EncodeAt {
        EncodeAt { level: TOP, scale: self.scale(), max_abs: 1.0 }
    }

    fn encode(&self, value: impl Fn(usize, usize) -> f64 + Sync) -> Result<Vec<Plaintext>, HeError> {
        let (encoder, at) = (Encoder::new(&self.params), self.encoded_at());
        let slots = self.layout(value);
        threads::map(slots.len(), |i| encoder.encode_at(&slots[i], at)).into_iter().collect()
    }

    fn scale(&self) -> f64 {
        f64::from(self.params.literal().log_scale).exp2()
    }

    /// A mask that is `value` in the rows of a ciphertext that `keep` names.
    fn mask<B: Backend>(
        &self,
        e: &Evaluator<B>,
        keep: impl Fn(usize) -> bool,
        (value, level, scale): (f64, usize, f64),
    ) -> Result<PlaintextOf<B>, HeError> {
        let keep = |slot: usize| keep(slot / self.stride);
        e.mask_of_scale(&Mask { level, value, period: usize::MAX, keep }, scale)
    }

    fn decode(&self, results: &[Vec<f64>]) -> Result<Moments, HeError> {
        if results.len() != self.results() {
            let (left, right) = (self.results(), results.len());
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

impl Columns {
    /// What is taken and promised, learned by a run of fresh encryptions under the secret key.
    fn simulated(&self) -> Result<(Figures, MomentErrors), HeError> {
        let e = Evaluator::with_backend(&self.params, Simulated::new(&self.params))?;
        let table = [e.secret_encryptions(self.encoded_at(), self.ciphertexts())?];
        let [sums, products] = self.totals(&e, table[..].into())?;
        let none = || RlweError::Operands { operation: "column statistics", left: 0, right: 1 };
        let result = self.collected(&e, sums[..].into(), products[..].into())?.pop().ok_or_else(none)?;
        let ledger = e.backend().ledger();
        // A moment beside as many others of its kind.
        let error = |kind: &[CiphertextOf<Simulated>], means: usize| -> Result<f64, HeError> {
            let one = kind.first().ok_or_else(none)?;
            let beside = vec![one; self.chunk_rows().min(self.groups() + self.products.len())];
            Ok(read_slots(&self.bundle(&e, means, &beside)?, 1))
        };
        let errors = MomentErrors { mean: error(&sums, usize::MAX)?, covariance: error(&products, 0)? };
        let figures = Figures {
            keys: KeyDemand::from(&ledger),
            work: ledger.work,
            counters: Some(ledger.counters),
            // Masks are made when they are multiplied by.
            table_bytes: 0,
            peak_bytes: ledger.peak,
            ciphertexts: self.results(),
            parts: 2,
            level: result.level(),
            scale: result.scale(),
            error: errors.mean.max(errors.covariance),
        };
        Ok((figures, errors))
    }

    /// Sums of columns, by groups, and of products of centred columns.
    fn totals<B: Backend>(
        &self,
        e: &Evaluator<B>,
        table: Batch<'_, B::Ciphertext>,
    ) -> Result<[Vec<CiphertextOf<B>>; 2], HeError> {
        let (groups, chunks) = (self.groups(), self.chunks());
        let column = |g: usize| (0..chunks).map(|chunk| table.at(chunk * groups + g)).collect();
        let sums = e.each(Order::SideBySide, groups, column, |list| {
            // Padding is zero: what is summed are n values.
            Ok::<_, HeError>(e.trace(&independent(e, list)?, &self.sum)?.with_bound(self.rows as f64))
        })?;
        let centred = self.centred(e, table, sums[..].into())?;
        let centred = Batch::from(&centred[..]);
        let Images { lists: made, places } = self.images(e, centred)?;
        let lists = made.iter().map(|list| Batch::from(&list[..])).collect();
        let images = Images { lists, places };
        let product = |(g, h, distance): (usize, usize, i64)| {
            let left = (0..chunks).map(|chunk| centred.at(chunk * groups + g));
            let right = (0..chunks).map(|chunk| images.at(h, distance, chunk, chunks));
            left.chain(right.flatten()).collect::<Vec<_>>()
        };
        // Those of a column with itself have no rotation, and smaller errors.
        let some = |rotated: bool| -> Result<_, HeError> {
            let keys = self.products.keys().enumerate().filter(|(_, (_, _, distance))| (*distance != 0) == rotated);
            let (places, keys): (Vec<usize>, Vec<_>) = keys.map(|(place, key)| (place, *key)).unzip();
            let made = e.each(
                Order::SideBySide,
                keys.len(),
                |at| product(keys[at]),
                |list| {
                    let (x, y) = list.split_at(chunks);
                    let sum = e.dot(x, y)?;
                    // A variance meets the same error twice.
                    let spread = sum.spread().of_any();
                    let sum = e.trace(&e.relinearize_rescale(&sum.with_spread(spread))?, &self.sum)?;
                    // By Cauchy and Schwarz, as Σ (x − m)² ≤ Σ x² ≤ n.
                    Ok::<_, HeError>(sum.with_bound(self.rows as f64))
                },
            )?;
            Ok((places, made))
        };
        let products = e.assembled(self.products.len(), vec![some(false)?, some(true)?], |any| e.sub(any, any))?;
        Ok([sums, products])
    }

    /// Each column less its mean, in finer units; padding stays zero.
    fn centred<B: Backend>(
        &self,
        e: &Evaluator<B>,
        table: Batch<'_, B::Ciphertext>,
        sums: Batch<'_, B::Ciphertext>,
    ) -> Result<Vec<CiphertextOf<B>>, HeError> {
        let (groups, chunks, factor) = (self.groups(), self.chunks(), self.centred_factor());
        let scale = e.params().prime_at(TOP) as f64 * factor as f64;
        // Σ (x − m)² ≤ n, of all slots with padding: what centred values and the errors of their means are in the mean of squares.
        let share = (self.rows as f64 / (self.chunk_rows() * chunks) as f64).sqrt();
        let means = |valid: usize| {
            let mask = self.mask(e, |row| row < valid, (1.0 / self.rows as f64, TOP, scale))?;
            e.each(
                Order::SideBySide,
                groups,
                |g| vec![sums.at(g)],
                |c| {
                    let mean = e.mul_plain_rescale(c[0], &mask)?;
                    let spread = mean.spread().shared().scaled(share);
                    Ok::<_, HeError>(mean.with_spread(spread))
                },
            )
        };
        // All chunks but the last are full.
        let full = if chunks > 1 { means(self.chunk_rows())? } else { Vec::new() };
        let last = means(self.rows - (chunks - 1) * self.chunk_rows())?;
        let (full, last) = (Batch::from(&full[..]), Batch::from(&last[..]));
        let operands = |at: usize| {
            let means = if at / groups + 1 < chunks { full } else { last };
            vec![table.at(at), means.at(at % groups)]
        };
        e.each(Order::SideBySide, table.len(), operands, |c| {
            let fine = e.refine(&e.drop_to(c[0], TOP - 1)?, factor)?;
            let centred = e.sub(&fine, c[1])?.with_bound(2.0);
            let spread = Spread { size: share, ..centred.spread() };
            Ok::<_, HeError>(centred.with_spread(spread))
        })
    }

    /// The centred columns of each group rotated by every distance that a product asks for.
    fn images<B: Backend>(
        &self,
        e: &Evaluator<B>,
        centred: Batch<'_, B::Ciphertext>,
    ) -> Result<Images<Vec<CiphertextOf<B>>>, HeError> {
        let (groups, chunks) = (self.groups(), self.chunks());
        let mut distances = vec![BTreeSet::new(); groups];
        self.products.keys().for_each(|(_, h, distance)| {
            distances[*h].insert(*distance);
        });
        // Groups that are rotated alike.
        let mut alike: BTreeMap<Vec<i64>, Vec<usize>> = BTreeMap::new();
        for (h, distances) in distances.into_iter().enumerate() {
            alike.entry(distances.into_iter().collect()).or_default().push(h);
        }
        let mut images = Images { lists: Vec::new(), places: BTreeMap::new() };
        for (distances, members) in alike {
            let operand = |at: usize| vec![centred.at(at % chunks * groups + members[at / chunks])];
            let made =
                e.each_list(Order::SideBySide, members.len() * chunks, operand, |c| e.rotate_many(c[0], &distances))?;
            for (member, h) in members.iter().enumerate() {
                let list = |(at, distance): (usize, &i64)| ((*h, *distance), (images.lists.len() + at, member));
                images.places.extend(distances.iter().enumerate().map(list));
            }
            let mut lists: Vec<Vec<_>> = distances.iter().map(|_| Vec::new()).collect();
            for rotated in made {
                lists.iter_mut().zip(rotated).for_each(|(list, image)| list.push(image));
            }
            images.lists.extend(lists);
        }
        Ok(images)
    }

    /// Row t of a result is one row of item t; sums become means and covariances on the way.
    fn collected<B: Backend>(
        &self,
        e: &Evaluator<B>,
        sums: Batch<'_, B::Ciphertext>,
        products: Batch<'_, B::Ciphertext>,
    ) -> Result<Vec<CiphertextOf<B>>, HeError> {
        let (groups, rows) = (self.groups(), self.chunk_rows());
        let items = groups + self.products.len();
        let item = |at: usize| if at < groups { sums.at(at) } else { products.at(at - groups) };
        let (full, rest) = (items / rows, items % rows);
        let bundles = |first: usize, count: usize, size: usize| -> Result<_, HeError> {
            let operands = |b: usize| (0..size).map(|row| item((first + b) * rows + row)).collect();
            let means = |b: usize| groups.saturating_sub((first + b) * rows);
            let made = e.each_at(Order::SideBySide, count, operands, |b, items| self.bundle(e, means(b), items))?;
            Ok(((first..first + count).collect(), made))
        };
        let parts = vec![bundles(0, full, rows)?, bundles(full, usize::from(rest > 0), rest)?];
        e.assembled(self.results(), parts, |any| e.sub(any, any))
    }

    /// One result: as many rows as there are items, of which the first are `means`.
    fn bundle<B: Backend>(
        &self,
        e: &Evaluator<B>,
        means: usize,
        items: &[&CiphertextOf<B>],
    ) -> Result<CiphertextOf<B>, HeError> {
        let (level, n) = (RESULT_LEVEL + 1, self.rows as f64);
        let mut sum: Option<CiphertextOf<B>> = None;
        for (row, item) in items.iter().enumerate() {
            let item = e.drop_to(item, level)?;
            let weight = if row < means { 1.0 / n } else { 1.0 / (n - 1.0) };
            let mask = self.mask(e, |r| r == row, (weight, level, self.collected_scale() / item.scale()))?;
            let part = e.mul_plain(&item, &mask)?;
            sum = Some(match sum {
                None => part,
                Some(mut total) => {
                    // Rows do not meet: values stay as large as the largest.
                    let (bound, spread) = (total.bound().max(part.bound()), total.spread().disjoint(part.spread()));
                    e.add_assign(&mut total, &part)?;
                    total.with_bound(bound).with_spread(spread)
                }
            });
        }
        match sum {
            Some(sum) => e.rescale(&sum),
            None => Err(RlweError::Operands { operation: "collecting results", left: 0, right: 0 }.into()),
        }
    }
}

/// Rotated columns: lists of them, and for a group and a distance its list and its place among the groups in there.
struct Images<L> {
    lists: Vec<L>,
    places: BTreeMap<(usize, i64), (usize, usize)>,
}

impl<'c, C: Shaped> Images<Batch<'c, C>> {
    fn at(&self, h: usize, distance: i64, chunk: usize, chunks: usize) -> Option<&'c Ciphertext<C>> {
        let (list, member) = self.places.get(&(h, distance))?;
        Some(self.lists[*list].at(member * chunks + chunk))
    }
}

/// The sum of ciphertexts whose errors are independent.
fn independent<B: Backend>(e: &Evaluator<B>, list: &[&CiphertextOf<B>]) -> Result<CiphertextOf<B>, HeError> {
    let (mut total, more) = match list {
        [first, more @ ..] => ((*first).clone(), more),
        [] => return Err(RlweError::Operands { operation: "a sum", left: 0, right: 0 }.into()),
    };
    for c in more {
        let spread = total.spread().sum(c.spread());
        e.add_assign(&mut total, c)?;
        total = total.with_spread(spread);
    }
    Ok(total)
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

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_he::ckks::Encryptor;
    use sudare_rlwe::keys::{KeyGenerator, SecretKey};

    /// The same lines on ciphertexts, with no key but those that the simulation names.
    fn runs_as_simulated(params: &Params, (rows, columns): (usize, usize)) {
        let statistics = ColumnStatistics::new(params, rows, columns).unwrap();
        let (table, figures) = (&statistics.table, statistics.figures());
        let e = Evaluator::with_backend(params, Simulated::new(params)).unwrap();
        let fresh = [e.secret_encryptions(table.encoded_at(), table.ciphertexts()).unwrap()];
        let simulated = table.totals(&e, fresh[..].into()).unwrap();
        let expected = table.collected(&e, simulated[0][..].into(), simulated[1][..].into()).unwrap().remove(0);
        let secret = SecretKey::generate(params).unwrap();
        let keys = KeyGenerator::new(&secret).unwrap().eval_keys(figures.keys.relin, &figures.keys.galois).unwrap();
        let e = Evaluator::new(params, keys).unwrap();
        let encryptor = Encryptor::with_secret_key(&secret).unwrap();
        let value = |i: usize, j: usize| ((i * 7 + j * 3) % 11) as f64 / 11.0;
        let encrypted: Vec<_> = table.encode(value).unwrap().iter().map(|p| encryptor.encrypt(p).unwrap()).collect();
        assert_eq!(encrypted[0].state(), fresh[0].state());
        let totals = table.totals(&e, encrypted[..].into()).unwrap();
        for (kind, (found, simulated)) in totals.iter().zip(&simulated).enumerate() {
            let (largest, expected) = (|c: &Ciphertext| c.spread().largest(), simulated[0].spread().largest());
            assert_eq!(found.len(), simulated[0].inner().count());
            // Those of a column with itself are a little better.
            let most = found.iter().map(|c| c.noise()).fold(0.0, f64::max);
            assert_eq!(most, simulated[0].noise(), "{rows}×{columns} {kind}");
            for c in found {
                let (a, b) = (c.state(), simulated[0].state());
                assert_eq!((c.level(), a.scale, a.bound), (simulated[0].level(), b.scale, b.bound), "{rows}×{columns}");
            }
            let most = found.iter().map(largest).fold(0.0, f64::max);
            assert!((most / expected - 1.0).abs() < 1e-9, "{rows}×{columns}: {most:e} {expected:e}");
        }
        e.reset_counters();
        let results = statistics.compute(&e, encrypted[..].into()).unwrap();
        assert_eq!(Some(e.counters()), figures.counters);
        assert_eq!(results.len(), figures.ciphertexts);
        for c in &results {
            assert_eq!((c.level(), c.scale()), (figures.level, figures.scale));
            assert!(c.spread().largest() <= expected.spread().largest() * (1.0 + 1e-9), "{rows}×{columns}");
        }
    }

    #[test]
    fn simulation_is_the_run_of_statistics() {
        for released in [false, true] {
            let mut literal = ColumnStatistics::literal(Security::Bits128, released);
            (literal.log_n, literal.security) = (9, Security::Insecure);
            let params = literal.build().unwrap();
            for shape in [(2, 1), (3, 9), (100, 7), (128, 4), (300, 2), (512, 1), (4000, 12)] {
                runs_as_simulated(&params, shape);
            }
        }
    }
}
