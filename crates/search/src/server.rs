//! Who answers: holds evaluation keys and stored tables, and nothing secret.

use crate::error::SearchError;
use crate::files::{Files, Part, Table};
use crate::layout::Payloads;
use crate::message::{AboutAnswer, Answer, Asked, Query};
use crate::plan::{CHUNK, FIRST_LEVEL, INDICATOR_LEVEL, Index, QUERY_SCALE, ROW_SCALE, ROWS_LEVEL, SCORES_LEVEL};
use crate::threshold::{ERROR_AT_ONE, Gap, Threshold};
use std::path::Path;
use std::sync::Arc;
use sudare_he::circuits::expansion::Expansion;
use sudare_he::circuits::polynomial::PolynomialCircuit;
use sudare_he::circuits::trace::TraceFunction;
use sudare_he::ckks::{Ciphertext, Evaluator};
use sudare_ring::{interrupt, threads};
use sudare_rlwe::keys::KeySource;
use sudare_rlwe::wire::{MAX_BUNDLE, Wire};
use sudare_rlwe::{Counters, KeyId};
use sudare_store::{Block, BlockSource, Reader, Request, read_ahead};

/// Halves of segments whose payloads are summed at a time: what the modulus holds.
const HALVES: usize = 4;
/// Rows that may meet in a cell, for the bounds that travel.
const MEET: f64 = 4.0;
/// Segments that are worked on side by side, for each thread.
const WAVE: usize = 2;
/// Threads that read blocks ahead.
const READERS: usize = 2;
/// Blocks that are read ahead.
const WINDOW: u64 = 4 * CHUNK as u64;

/// Computes with the keys of one owner.
#[derive(Debug)]
pub struct Server {
    index: Index,
    evaluator: Evaluator,
    expansion: Expansion,
}

/// Columns of a segment: in memory, or in their store.
#[derive(Debug)]
enum Columns {
    Held(Vec<Ciphertext>),
    Stored(Box<Reader>),
}

#[derive(Debug)]
struct Segment {
    rows: u32,
    columns: Columns,
    payload: Option<Columns>,
}

/// A stored table that is open: as many segments as memory allows are held, the others read for each question.
#[derive(Debug)]
pub struct Database {
    name: String,
    plan: [u8; 32],
    key: KeyId,
    segments: Vec<Segment>,
    /// Questions that are expanded at a time within the memory that is left.
    together: usize,
}

/// Expands a question.
type Expand<'a> = &'a dyn Fn(&Ciphertext) -> Result<Vec<Ciphertext>, SearchError>;
/// Is told how many segments of how many are done.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// A threshold, ready.
struct Comparison {
    threshold: Threshold,
    circuits: [PolynomialCircuit; 2],
    /// Bound on an indicator's error by noise, whatever its score.
    noise: f64,
}

impl Database {
    /// Rows.
    pub fn rows(&self) -> u64 {
        self.segments.iter().map(|s| u64::from(s.rows)).sum()
    }

    /// Segments, and how many of them are held in memory.
    pub fn segments(&self) -> (usize, usize) {
        let held = self.segments.iter().filter(|s| matches!(s.columns, Columns::Held(_))).count();
        (self.segments.len(), held)
    }
}

impl Server {
    /// A server with a client's keys.
    ///
    /// # Errors
    /// [`SearchError::He`] for keys of other parameters, or a missing one.
    pub fn new(index: &Index, keys: impl Into<Arc<dyn KeySource>>) -> Result<Self, SearchError> {
        let evaluator = Evaluator::new(index.params(), keys)?;
        let (relin, galois) = index.keys()?;
        for (element, level) in galois {
            evaluator.check_keys(&[element], level)?;
        }
        if evaluator.keys().relin_level().is_none_or(|level| level < relin) {
            return Err(sudare_rlwe::RlweError::MissingRelinKey.into());
        }
        Ok(Self { index: index.clone(), evaluator, expansion: index.expansion()? })
    }

    /// The plan.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Operations done so far.
    pub fn counters(&self) -> Counters {
        self.evaluator.counters()
    }

    /// Opens a table within `memory` bytes, and loads as many segments as fit.
    ///
    /// # Errors
    /// [`SearchError::TooLittleMemory`]; what is wrong with the files.
    pub fn open(&self, path: &Path, memory: u64) -> Result<Database, SearchError> {
        let (files, key) = (Files::new(path), self.evaluator.keys().id());
        let (table, manifest) = files.open(&self.index, key)?;
        let bytes = self.index.bytes();
        let Some(mut left) = memory.checked_sub(bytes.memory) else {
            return Err(SearchError::TooLittleMemory { given: memory, least: bytes.memory });
        };
        let each = bytes.rows / self.index.segments();
        let mut segments = Vec::new();
        for (k, record) in manifest.segments.iter().enumerate() {
            interrupt::check();
            let about = (&table, &self.index, key);
            let mut columns = Columns::Stored(self.reader(&files, (k, Part::Rows), &record.digest, about)?);
            let mut payload = None;
            if self.index.goal().payload.is_some() {
                let Some(digest) = record.payload.as_deref() else {
                    return Err(SearchError::Mixed { what: "a segment" });
                };
                payload = Some(Columns::Stored(self.reader(&files, (k, Part::Payload), digest, about)?));
            }
            if left >= each {
                left -= each;
                columns = self.held(columns)?;
                payload = payload.map(|p| self.held(p)).transpose()?;
            }
            segments.push(Segment { rows: record.rows, columns, payload });
        }
        // A question has its scores and indicators beside it, in each segment that is worked on.
        let further = bytes.expanded + WAVE as u64 * threads::count().max(1) as u64 * bytes.beside;
        let together = 1 + (left / further.max(1)) as usize;
        Ok(Database { name: table.index, plan: self.index.hash(), key, segments, together })
    }

    fn reader(
        &self,
        files: &Files,
        place: (usize, Part),
        digest: &str,
        about: (&Table, &Index, KeyId),
    ) -> Result<Box<Reader>, SearchError> {
        let reader = files.reader(place, digest, about)?;
        let expected = match (place.1, self.index.payloads()) {
            (Part::Payload, Some(p)) => (2, 2 * p.ciphertexts()),
            _ => (1, self.index.goal().d),
        };
        if reader.grid() == expected { Ok(Box::new(reader)) } else { Err(SearchError::Mixed { what: "a segment" }) }
    }

    /// A ciphertext of a block: one of the plan's, under this key, at its level and scale.
    fn decoded(&self, reader: &Reader, row: usize, col: usize, block: &Block) -> Result<Ciphertext, SearchError> {
        let c = Ciphertext::from_bytes(self.index.params().rlwe(), reader.container(row, col, block)?)?;
        self.evaluator.check(&c)?;
        let payload = self.index.payloads().map(|p| (INDICATOR_LEVEL, p.scale()));
        let sound = c.parts().len() == 2
            && ((c.level(), c.scale()) == (ROWS_LEVEL, ROW_SCALE) || Some((c.level(), c.scale())) == payload);
        if sound { Ok(c) } else { Err(SearchError::Mixed { what: "a segment" }) }
    }

    /// All blocks of a store, `together` at a time, in order.
    fn each_block(
        &self,
        reader: &Reader,
        mut take: impl FnMut(usize, Vec<Ciphertext>) -> Result<(), SearchError>,
    ) -> Result<(), SearchError> {
        let (rows, cols) = reader.grid();
        let requests: Vec<Request<'_>> =
            (0..rows * cols).map(|i| Request { source: reader, row: i / cols, col: i % cols }).collect();
        read_ahead(&requests, WINDOW * reader.block_bytes(), READERS, |ahead| {
            for first in (0..requests.len()).step_by(CHUNK) {
                interrupt::check();
                let count = CHUNK.min(requests.len() - first);
                let blocks = (0..count).map(|_| ahead.next()).collect::<Result<Option<Vec<_>>, _>>()?;
                let Some(blocks) = blocks else { return Err(SearchError::Mixed { what: "a segment" }) };
                let one = |i: usize| self.decoded(reader, requests[first + i].row, requests[first + i].col, &blocks[i]);
                let decoded = threads::map_jobs(blocks.len(), one).into_iter().collect::<Result<Vec<_>, _>>();
                ahead.give_back(blocks);
                take(first, decoded?)?;
            }
            Ok(())
        })
    }

    fn held(&self, columns: Columns) -> Result<Columns, SearchError> {
        let Columns::Stored(reader) = columns else { return Ok(columns) };
        let mut all = Vec::new();
        self.each_block(&reader, |_, some| {
            all.extend(some);
            Ok(())
        })?;
        Ok(Columns::Held(all))
    }

    fn check(&self, database: &Database, query: &Query) -> Result<(), SearchError> {
        if database.plan != self.index.hash() || database.key != self.evaluator.keys().id() {
            return Err(SearchError::Mixed { what: "the table" });
        }
        if query.plan() != self.index.hash() {
            return Err(SearchError::Mixed { what: "the question" });
        }
        for c in query.ciphertexts() {
            self.evaluator.check(c)?;
            let scale = QUERY_SCALE / self.expansion.factor();
            if (c.level(), c.scale(), c.parts().len()) != (ROWS_LEVEL, scale, 2) {
                return Err(SearchError::Mixed { what: "the question" });
            }
        }
        Ok(())
    }

    /// A question's coordinates, each in every slot.
    fn expanded(&self, query: &Ciphertext) -> Result<Vec<Ciphertext>, SearchError> {
        let parts = self.evaluator.expand(query, &self.expansion)?;
        // A coordinate of a vector of length one.
        let one = |c: &Ciphertext| Ok(self.evaluator.divided(c, self.expansion.factor())?.with_bound(1.0));
        parts.iter().map(one).collect()
    }

    /// A segment's scores with each question, before they are relinearised.
    fn products(&self, segment: &Segment, queries: &[Vec<Ciphertext>]) -> Result<Vec<Ciphertext>, SearchError> {
        match &segment.columns {
            Columns::Held(columns) => {
                let columns: Vec<&Ciphertext> = columns.iter().collect();
                let one = |query: &Vec<Ciphertext>| {
                    let query: Vec<&Ciphertext> = query.iter().collect();
                    Ok(self.evaluator.dot(&columns, &query)?)
                };
                queries.iter().map(one).collect()
            }
            Columns::Stored(reader) => {
                let mut sums: Vec<Ciphertext> = Vec::new();
                self.each_block(reader, |first, columns| {
                    let columns: Vec<&Ciphertext> = columns.iter().collect();
                    for (q, query) in queries.iter().enumerate() {
                        let query: Vec<&Ciphertext> = query[first..first + columns.len()].iter().collect();
                        match sums.get_mut(q) {
                            Some(sum) => self.evaluator.dot_assign(sum, &columns, &query)?,
                            None => sums.push(self.evaluator.dot(&columns, &query)?),
                        }
                    }
                    Ok(())
                })?;
                Ok(sums)
            }
        }
    }

    /// The scores of both halves, real.
    fn halves(&self, products: &Ciphertext) -> Result<[Ciphertext; 2], SearchError> {
        let e = &self.evaluator;
        let sums = e.relinearize_rescale(products)?;
        let conjugate = e.conjugate(&sums)?;
        let real = e.add(&sums, &conjugate)?;
        // −i(S − S̄) = i(S̄ − S).
        let imaginary = e.mul_imaginary_unit(&e.sub(&conjugate, &sums)?)?;
        Ok([e.divided(&real, 2.0)?, e.divided(&imaginary, 2.0)?])
    }

    fn comparison(&self, gap: Gap) -> Result<Comparison, SearchError> {
        let threshold = self.index.threshold_of(gap)?;
        let circuits = self.index.circuits(&threshold)?;
        let noise = 16.0 * self.index.largest_deviation(&threshold)?;
        Ok(Comparison { threshold, circuits, noise })
    }

    /// The indicators of scores.
    fn indicators(&self, scores: &Ciphertext, comparison: &Comparison) -> Result<Ciphertext, SearchError> {
        let reach = |p: &sudare_he::circuits::polynomial::Polynomial| {
            let (centre, radius) = p.domain();
            centre.abs() + radius
        };
        let [first, second] = &comparison.circuits;
        // A score is at most one, and its error within the margin of the fit.
        let scores = scores.clone().with_bound(reach(comparison.threshold.first()));
        let between = self.evaluator.polynomial(&scores, first)?.with_bound(reach(comparison.threshold.second()));
        debug_assert_eq!(between.level(), FIRST_LEVEL);
        let out = self.evaluator.polynomial(&between, second)?;
        let noise = comparison.noise * out.scale();
        Ok(out.settled(1.0 + ERROR_AT_ONE, noise))
    }

    /// Groups of segments that are worked on side by side: those in memory as many as there are threads, others alone.
    fn waves<'d>(&self, database: &'d Database) -> Vec<&'d [Segment]> {
        let most = WAVE * threads::count().max(1);
        let mut out = Vec::new();
        let mut rest = database.segments.as_slice();
        while let Some(first) = rest.first() {
            let held = |s: &Segment| matches!(s.columns, Columns::Held(_));
            let count = if held(first) { rest.iter().take(most).take_while(|s| held(s)).count() } else { 1 };
            let (wave, more) = rest.split_at(count);
            out.push(wave);
            rest = more;
        }
        out
    }

    /// Runs `work` on as many expanded questions as memory holds, group after group.
    fn in_groups(
        &self,
        database: &Database,
        query: &Query,
        (expand, progress): (Expand<'_>, Progress<'_>),
        work: impl Fn(&[Vec<Ciphertext>], &(dyn Fn(usize) + Sync)) -> Result<Vec<Ciphertext>, SearchError>,
    ) -> Result<Vec<Ciphertext>, SearchError> {
        let (segments, mut out) = (database.segments.len(), Vec::new());
        let groups = query.ciphertexts().chunks(database.together);
        let all = groups.len() * segments;
        for (i, group) in groups.enumerate() {
            let queries = group.iter().map(expand).collect::<Result<Vec<_>, _>>()?;
            out.extend(work(&queries, &|done| progress(i * segments + done, all))?);
        }
        Ok(out)
    }

    /// What an answer says of itself.
    fn about(
        &self,
        database: &Database,
        (asked, queries): (Asked, &Query),
        gaps: &[Gap],
    ) -> Result<AboutAnswer, SearchError> {
        let each = match asked {
            Asked::Count => gaps.len(),
            Asked::Fetch => self.index.payloads().map_or(0, |p| 2 * p.ciphertexts()),
            Asked::Scores => database.segments.len(),
        };
        if queries.len().saturating_mul(each) > MAX_BUNDLE {
            let found = queries.len().to_string();
            let wanted = "fewer: an answer holds up to 65,536 ciphertexts";
            return Err(SearchError::Goal { what: "questions at a time", found, wanted });
        }
        let about = AboutAnswer {
            index: database.name.clone(),
            asked,
            queries: queries.len(),
            gaps: gaps.to_vec(),
            segments: database.segments.iter().map(|s| s.rows).collect(),
        };
        if about.fits(&self.index)? {
            return Ok(about);
        }
        let (what, found) = ("thresholds, with segments of unequal sizes", gaps.len().to_string());
        Err(SearchError::Goal { what, found, wanted: "fewer at a time, or whole segments" })
    }

    /// How many rows score above each threshold, for each question; a batch reads the table once for as many
    /// questions as memory holds. `progress` is told the segments done.
    ///
    /// # Errors
    /// [`SearchError::Mixed`] for a question or a table of another plan; [`SearchError::Goal`] without thresholds;
    /// [`SearchError::Gap`]; what reading refuses.
    pub fn count(
        &self,
        database: &Database,
        query: &Query,
        gaps: &[Gap],
        progress: Progress<'_>,
    ) -> Result<Answer, SearchError> {
        self.check(database, query)?;
        if gaps.is_empty() {
            return Err(SearchError::Goal { what: "thresholds", found: "none".into(), wanted: "one at least" });
        }
        let about = self.about(database, (Asked::Count, query), gaps)?;
        let comparisons = gaps.iter().map(|gap| self.comparison(*gap)).collect::<Result<Vec<_>, _>>()?;
        let expand = |q: &Ciphertext| self.expanded(q);
        let counted = self.in_groups(database, query, (&expand, progress), |queries, tell| {
            self.counted(database, queries, &comparisons, tell)
        })?;
        Answer::new(&self.index, about, counted)
    }

    /// The totals of indicators of some questions.
    fn counted(
        &self,
        database: &Database,
        queries: &[Vec<Ciphertext>],
        comparisons: &[Comparison],
        tell: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<Ciphertext>, SearchError> {
        let mut sums: Vec<Option<Ciphertext>> = vec![None; queries.len() * comparisons.len()];
        let mut done = 0;
        for wave in self.waves(database) {
            interrupt::check();
            let counted = threads::map_alone(wave.len(), |k| {
                let products = self.products(&wave[k], queries)?;
                let mut out = Vec::with_capacity(sums.len());
                for product in &products {
                    let halves = self.halves(product)?;
                    for comparison in comparisons {
                        let [u, v] = halves.each_ref().map(|half| self.indicators(half, comparison));
                        out.push(self.evaluator.add(&u?, &v?)?);
                    }
                }
                Ok::<_, SearchError>(out)
            });
            for counted in counted {
                for (sum, indicators) in sums.iter_mut().zip(counted?) {
                    match sum {
                        Some(sum) => self.evaluator.add_assign(sum, &indicators)?,
                        None => *sum = Some(indicators),
                    }
                }
            }
            done += wave.len();
            tell(done);
        }
        let trace = TraceFunction::total_sum(self.index.params())?.doubling();
        let sums: Vec<Ciphertext> = sums.into_iter().flatten().collect();
        let totals = threads::map_jobs(sums.len(), |i| Ok(self.evaluator.trace(&sums[i], &trace)?));
        totals.into_iter().collect()
    }

    /// Which rows score above a threshold, with their payloads.
    ///
    /// # Errors
    /// As [`Server::count`]; [`SearchError::NoPayload`].
    pub fn fetch(
        &self,
        database: &Database,
        query: &Query,
        gap: Gap,
        progress: Progress<'_>,
    ) -> Result<Answer, SearchError> {
        let Some(payloads) = self.index.payloads() else { return Err(SearchError::NoPayload) };
        self.check(database, query)?;
        let about = self.about(database, (Asked::Fetch, query), &[gap])?;
        let comparison = self.comparison(gap)?;
        let expand = |q: &Ciphertext| self.expanded(q);
        let fetched = self.in_groups(database, query, (&expand, progress), |queries, tell| {
            self.fetched(database, queries, (&comparison, &payloads), tell)
        })?;
        Answer::new(&self.index, about, fetched)
    }

    /// The sums of payloads of some questions.
    fn fetched(
        &self,
        database: &Database,
        queries: &[Vec<Ciphertext>],
        (comparison, payloads): (&Comparison, &Payloads),
        tell: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<Ciphertext>, SearchError> {
        let columns = 2 * payloads.ciphertexts();
        let mut sums: Vec<Option<Ciphertext>> = vec![None; queries.len() * columns];
        let mut done = 0;
        for wave in self.waves(database) {
            interrupt::check();
            let found = threads::map_alone(wave.len(), |k| {
                let products = self.products(&wave[k], queries)?;
                let one = |p: &Ciphertext| {
                    let [u, v] = self.halves(p)?.each_ref().map(|half| self.indicators(half, comparison));
                    Ok::<_, SearchError>([u?, v?])
                };
                products.iter().map(one).collect::<Result<Vec<_>, _>>()
            });
            let found = found.into_iter().collect::<Result<Vec<_>, _>>()?;
            for (k, segments) in wave.chunks(HALVES / 2).enumerate() {
                let first = k * (HALVES / 2);
                self.add_payloads(payloads, segments, &found[first..first + segments.len()], done + first, &mut sums)?;
            }
            done += wave.len();
            tell(done);
        }
        let sums: Vec<Ciphertext> = sums.into_iter().flatten().collect();
        let ends = threads::map_jobs(sums.len(), |i| Ok(self.evaluator.relinearize_rescale(&sums[i])?));
        ends.into_iter().collect()
    }

    /// Adds the indicators of some segments times their payloads to the sums of each question: columns as they stand, then
    /// rotated.
    fn add_payloads(
        &self,
        payloads: &Payloads,
        segments: &[Segment],
        found: &[Vec<[Ciphertext; 2]>],
        first: usize,
        sums: &mut [Option<Ciphertext>],
    ) -> Result<(), SearchError> {
        let each = payloads.ciphertexts();
        let mut read = Vec::new();
        for segment in segments {
            read.push(match &segment.payload {
                Some(Columns::Stored(reader)) => {
                    let mut all = Vec::new();
                    self.each_block(reader, |_, some| {
                        all.extend(some);
                        Ok(())
                    })?;
                    Some(all)
                }
                _ => None,
            });
        }
        let columns = |k: usize| match (&segments[k].payload, &read[k]) {
            (Some(Columns::Held(held)), _) => Ok(held),
            (_, Some(read)) => Ok(read),
            _ => Err(SearchError::Mixed { what: "a segment" }),
        };
        let all = (0..segments.len()).map(columns).collect::<Result<Vec<_>, _>>()?;
        let queries = sums.len() / (2 * each);
        let rotated = threads::map_jobs(queries * segments.len() * 2, |i| {
            let (q, k, half) = (i / (2 * segments.len()), i / 2 % segments.len(), i % 2);
            self.rotated(&found[k][q][half], 2 * (first + k) + half)
        });
        let rotated = rotated.into_iter().collect::<Result<Vec<_>, _>>()?;
        let bound = MEET * payloads.bound() * 1.5;
        let added = threads::map_jobs(sums.len(), |i| {
            let (q, column) = (i / (2 * each), i % (2 * each));
            let (mut left, mut right) = (Vec::new(), Vec::new());
            for k in 0..segments.len() {
                for half in 0..2 {
                    let (plain, moved) = (&found[k][q][half], &rotated[(q * segments.len() + k) * 2 + half]);
                    left.push(if column < each { plain } else { moved });
                    right.push(&all[k][half * 2 * each + column]);
                }
            }
            let mut out = match &sums[i] {
                None => self.evaluator.dot(&left, &right)?,
                Some(sum) => {
                    let mut sum = sum.clone();
                    self.evaluator.dot_assign(&mut sum, &left, &right)?;
                    sum
                }
            };
            let noise = out.noise();
            out = out.with_bound(bound);
            Ok::<_, SearchError>(out.settled(bound, noise))
        });
        for (sum, added) in sums.iter_mut().zip(added) {
            *sum = Some(added?);
        }
        Ok(())
    }

    /// The indicators rotated left by the half's number.
    fn rotated(&self, indicators: &Ciphertext, half: usize) -> Result<Ciphertext, SearchError> {
        let slots = self.index.params().slots();
        let mut out = indicators.clone();
        for i in (0..slots.trailing_zeros()).filter(|i| (half % slots) >> i & 1 == 1) {
            out = self.evaluator.rotate(&out, 1 << i)?;
        }
        Ok(out)
    }

    /// The scores of all rows with each question.
    ///
    /// # Errors
    /// As [`Server::count`].
    pub fn scores(&self, database: &Database, query: &Query, progress: Progress<'_>) -> Result<Answer, SearchError> {
        self.check(database, query)?;
        let about = self.about(database, (Asked::Scores, query), &[])?;
        // Two levels are enough for one product and the bounds that travel.
        let low = |q: &Ciphertext| self.expanded(&self.evaluator.drop_to(q, SCORES_LEVEL)?);
        let scored =
            self.in_groups(database, query, (&low, progress), |queries, tell| self.scored(database, queries, tell))?;
        Answer::new(&self.index, about, scored)
    }

    /// The scores of all rows with some questions.
    fn scored(
        &self,
        database: &Database,
        queries: &[Vec<Ciphertext>],
        tell: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<Ciphertext>, SearchError> {
        let mut out: Vec<Vec<Ciphertext>> = vec![Vec::new(); queries.len()];
        let mut done = 0;
        for wave in self.waves(database) {
            interrupt::check();
            let scored = threads::map_alone(wave.len(), |k| {
                let products = self.products(&wave[k], queries)?;
                let end = |p: &Ciphertext| {
                    let scores = self.evaluator.relinearize_rescale(p)?;
                    // Two scores of at most one: Σ |x_j·q_j| is no more, whatever the bound of each term adds up to.
                    let noise = 16.0 * self.index.expected().score * scores.scale();
                    Ok(self.evaluator.drop_to(&scores.settled(1.5, noise), 0)?)
                };
                products.iter().map(end).collect::<Result<Vec<_>, SearchError>>()
            });
            for scored in scored {
                out.iter_mut().zip(scored?).for_each(|(all, one)| all.push(one));
            }
            done += wave.len();
            tell(done);
        }
        Ok(out.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::layout::positions;
    use crate::plan::{Goal, Payload};
    use sudare_he::ckks::{Decryptor, Encoder};
    use sudare_testkit::{Random, sized};

    const D: usize = 16;

    fn floats(v: &[f64]) -> Vec<f32> {
        v.iter().map(|x| *x as f32).collect()
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(x, y)| x * y).sum()
    }

    /// Mean squares of errors, in units of what the plan foretells: of scores, of indicators under the gap, of digits of payloads.
    #[test]
    fn deviations_are_those_of_the_plan() {
        let mut random = Random(51);
        let gap = Gap { low: 0.8, high: 0.97 };
        let payload = Some(Payload { numbers: 32, bits: 10 });
        let goal = Goal { d: D, rows: 4096, above: 0.9, gap, lowest: -1.0, payload };
        let index = Index::insecure(goal, 12).unwrap();
        let client = Client::new(&index).unwrap();
        let server = Server::new(&index, client.eval_keys().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let centre = random.direction(D);
        let mut rows = Vec::new();
        while rows.len() < 4096 {
            let row = if rows.len() % 8 == 0 { centre.clone() } else { random.direction(D) };
            if rows.len() % 8 == 0 || dot(&row, &centre) < gap.low {
                rows.push(row);
            }
        }
        let numbers = random.words(1024, 32 * 4096);
        let mut storing = client.store(&path).unwrap();
        storing.push(&floats(&rows.concat()), &numbers).unwrap();
        storing.finish().unwrap();
        let database = server.open(&path, 8 << 30).unwrap();
        let places = positions(&client.order(&database.name), 0, 4096);
        let slots = |c: &Ciphertext| {
            let plain = Decryptor::new(client.secret()).decrypt(c).unwrap();
            Encoder::new(index.params()).decode_complex(&plain).unwrap()
        };
        let comparison = server.comparison(gap).unwrap();
        let expected = *index.expected();
        let (mut score, mut indicator, mut count, mut counted) = (0.0, 0.0, 0.0, 0.0);
        for _ in 0..sized(4, 40) {
            let question = random.direction(D);
            let query = client.query(&floats(&question)).unwrap();
            let expanded = server.expanded(&query.ciphertexts()[0]).unwrap();
            let products = server.products(&database.segments[0], &[expanded]).unwrap();
            let halves = server.halves(&products[0]).unwrap();
            let indicators = halves.each_ref().map(|half| slots(&server.indicators(half, &comparison).unwrap()));
            let halves = halves.each_ref().map(slots);
            for (row, place) in rows.iter().zip(&places) {
                let (half, slot) = index.shape().place(*place as usize);
                let exact = dot(row, &question);
                score += (halves[half][slot].re - exact).powi(2);
                count += 1.0;
                if exact < gap.low {
                    indicator += (indicators[half][slot].re - index.threshold().value(exact)).powi(2);
                    counted += 1.0;
                }
            }
        }
        let (mut digit, mut digits) = (0.0, 0.0);
        let payloads = index.payloads().unwrap();
        let each = payloads.ciphertexts();
        for _ in 0..sized(2, 10) {
            let query = client.query(&floats(&centre)).unwrap();
            let answer = server.fetch(&database, &query, gap, &|_, _| ()).unwrap();
            let columns: Vec<_> = answer.ciphertexts()[..each].iter().map(slots).collect();
            let at = |column: usize, slot: usize| {
                let z = columns[column / 2][slot];
                if column.is_multiple_of(2) { z.re } else { z.im }
            };
            for row in (0..4096).step_by(8) {
                let (half, slot) = index.shape().place(places[row] as usize);
                // Alone in its cell: the other half's row there does not match.
                if places.iter().position(|p| *p as usize == (1 - half) * index.shape().slots + slot).unwrap() % 8 == 0
                {
                    continue;
                }
                let one = at(payloads.one(), slot) / payloads.bound();
                let encoded = payloads.encode(&numbers[32 * row..][..32], half as u64);
                for (column, exact) in encoded[..32 * payloads.digits()].iter().enumerate() {
                    digit += (at(column, slot) / one - exact).powi(2);
                    digits += 1.0;
                }
            }
        }
        let ratios = [
            score / count / expected.score.powi(2),
            indicator / counted / expected.indicator.powi(2),
            digit / digits / expected.digit.powi(2),
        ];
        let near = |ratio: f64, by: f64| (ratio - 1.0).abs() < by;
        let by = sized(0.08, 0.03);
        // Digits are bounded: as many halves as a table may have, all with the largest digit.
        assert!(near(ratios[0], by) && near(ratios[1], by) && (0.02..1.0).contains(&ratios[2]), "{ratios:?}");
    }
}
