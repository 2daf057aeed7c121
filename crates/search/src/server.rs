//! Who answers: holds evaluation keys and stored tables, and nothing secret.

use crate::compact::{self, Compact, SERIES_REACH, SERIES_SCALE};
use crate::error::SearchError;
use crate::files::{Files, Part, Table};
use crate::keys::Keys;
use crate::layout::Payloads;
use crate::message::{AboutAnswer, Answer, Asked, Query};
use crate::plan::{
    CHUNK, CLEAR, FIRST_LEVEL, INDICATOR_LEVEL, Index, QUERY_SCALE, ROW_SCALE, ROWS_LEVEL, SCORES_LEVEL,
};
use crate::threshold::{ERROR_AT_ONE, Gap, Steps, Threshold};
use std::path::Path;
use sudare_he::circuits::bootstrapping::{Bootstrapper, SeriesProgram};
use sudare_he::circuits::expansion::Expansion;
use sudare_he::circuits::polynomial::{Polynomial, PolynomialCircuit};
use sudare_he::circuits::trace::TraceFunction;
use sudare_he::ckks::{Ciphertext, Evaluator, State};
use sudare_ring::ops::NarrowPairs;
use sudare_ring::{interrupt, threads};
use sudare_rlwe::wire::{Bundle, MAX_BUNDLE, Wire};
use sudare_rlwe::{Counters, KeyId, interleaved};
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
    engine: Engine,
}

/// What makes questions ready and scores indicators.
#[derive(Debug)]
enum Engine {
    Leveled(Expansion),
    Compact(Box<Bootstrapper>),
}

/// A question, ready.
enum Question {
    /// A ciphertext of each coordinate.
    Expanded(Vec<Ciphertext>),
    /// The same of the small ring.
    Narrow(NarrowPairs),
}

impl Question {
    fn expanded(&self) -> Result<&[Ciphertext], SearchError> {
        match self {
            Self::Expanded(all) => Ok(all),
            Self::Narrow(_) => Err(SearchError::Mixed { what: "the question" }),
        }
    }
}

/// Thresholds, ready.
enum Comparisons {
    Leveled(Vec<Comparison>),
    /// All series, and what follows each: its bound on an indicator's error by noise.
    Compact {
        series: Box<SeriesProgram>,
        clean: Box<PolynomialCircuit>,
        noises: Vec<f64>,
    },
}

/// Columns of a segment: in memory, or in their store.
#[derive(Debug)]
enum Columns {
    Held(Vec<Ciphertext>),
    Stored(Box<Reader>),
    /// Blocks of the compact mode.
    Blocks(Vec<NarrowPairs>),
}

#[derive(Debug)]
struct Segment {
    rows: u32,
    columns: Columns,
    payload: Option<Columns>,
}

impl Segment {
    /// Its columns of the leveled mode, which are in memory.
    fn held(&self) -> Result<Vec<&Ciphertext>, SearchError> {
        match &self.columns {
            Columns::Held(columns) => Ok(columns.iter().collect()),
            _ => Err(SearchError::Mixed { what: "a segment" }),
        }
    }
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

/// Makes a question of its ciphertexts ready.
type Ready<'a> = &'a dyn Fn(&[Ciphertext]) -> Result<Question, SearchError>;
/// The indicators of both halves of a segment.
type Halves = [Ciphertext; 2];
/// Is told how many segments of how many are done.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// A threshold, ready.
struct Comparison {
    polynomials: [Polynomial; 2],
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
        let held = self.segments.iter().filter(|s| !matches!(s.columns, Columns::Stored(_))).count();
        (self.segments.len(), held)
    }
}

impl Server {
    /// A server with a client's keys.
    ///
    /// # Errors
    /// [`SearchError::He`] for keys of other parameters, or a missing one.
    pub fn new(index: &Index, keys: impl Into<Keys>) -> Result<Self, SearchError> {
        let Keys { half, eval } = keys.into();
        let evaluator = Evaluator::new(index.params(), eval)?;
        let (relin, galois) = index.keys()?;
        for (element, level) in galois {
            evaluator.check_keys(&[element], level)?;
        }
        if evaluator.keys().relin_level().is_none_or(|level| level < relin) {
            return Err(sudare_rlwe::RlweError::MissingRelinKey.into());
        }
        let engine = match (index.compact(), half) {
            (None, None) => Engine::Leveled(index.expansion()?),
            (Some(compact), Some(half)) => {
                compact.half.hash().require("the keys of half a bootstrap", half.params().hash())?;
                Engine::Compact(Box::new(Bootstrapper::new(half, None)?))
            }
            _ => return Err(SearchError::Mixed { what: "a set of keys" }),
        };
        Ok(Self { index: index.clone(), evaluator, engine })
    }

    /// The plan.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Operations done so far.
    pub fn counters(&self) -> Counters {
        match &self.engine {
            Engine::Leveled(_) => self.evaluator.counters(),
            Engine::Compact(half) => self.evaluator.counters() + half.counters(),
        }
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
            let grid = |part| self.index.grid(record.rows, part);
            let mut columns =
                Columns::Stored(self.reader(&files, (k, Part::Rows), &record.digest, (about, grid(Part::Rows)))?);
            let mut payload = None;
            if self.index.goal().payload.is_some() {
                let Some(digest) = record.payload.as_deref() else {
                    return Err(SearchError::Mixed { what: "a segment" });
                };
                let grid = grid(Part::Payload);
                payload = Some(Columns::Stored(self.reader(&files, (k, Part::Payload), digest, (about, grid))?));
            }
            if left >= each {
                left -= each;
                columns = self.held_rows(columns)?;
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
        (about, expected): ((&Table, &Index, KeyId), (usize, usize)),
    ) -> Result<Box<Reader>, SearchError> {
        let reader = files.reader(place, digest, about)?;
        if reader.grid() == expected { Ok(Box::new(reader)) } else { Err(SearchError::Mixed { what: "a segment" }) }
    }

    /// Coordinates of a block of the small ring. The name of their key follows from the owner's, and is the store's to check.
    fn decoded_narrow(
        compact: &Compact,
        reader: &Reader,
        (row, col): (usize, usize),
        block: &Block,
    ) -> Result<Bundle<Ciphertext>, SearchError> {
        let group = Bundle::<Ciphertext>::from_bytes(compact.small.rlwe(), reader.container(row, col, block)?)?;
        let sound = |c: &Ciphertext| (c.parts().len(), c.scale()) == (2, compact.row_scale());
        if group.ciphertexts().iter().all(sound) { Ok(group) } else { Err(SearchError::Mixed { what: "a segment" }) }
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

    /// All blocks of a store, some at a time, in order.
    fn each_block(
        &self,
        reader: &Reader,
        take: impl FnMut(usize, Vec<Ciphertext>) -> Result<(), SearchError>,
    ) -> Result<(), SearchError> {
        self.each_decoded(reader, |(row, col), block| self.decoded(reader, row, col, block), take)
    }

    fn each_decoded<T: Send>(
        &self,
        reader: &Reader,
        decode: impl Fn((usize, usize), &Block) -> Result<T, SearchError> + Sync + Send,
        mut take: impl FnMut(usize, Vec<T>) -> Result<(), SearchError>,
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
                let one = |i: usize| decode((requests[first + i].row, requests[first + i].col), &blocks[i]);
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

    /// A segment's rows in memory.
    fn held_rows(&self, columns: Columns) -> Result<Columns, SearchError> {
        match (self.index.compact(), &columns) {
            (Some(compact), Columns::Stored(reader)) => Ok(Columns::Blocks(self.blocks(compact, reader)?)),
            _ => self.held(columns),
        }
    }

    /// The blocks of a segment of the compact mode.
    fn blocks(&self, compact: &Compact, reader: &Reader) -> Result<Vec<NarrowPairs>, SearchError> {
        let ((blocks, groups), basis) = (reader.grid(), compact.small.q_at(0));
        let d = self.index.goal().d;
        let mut out: Vec<NarrowPairs> = (0..blocks).map(|_| NarrowPairs::new(basis, d)).collect();
        let decode = |at: (usize, usize), block: &Block| Self::decoded_narrow(compact, reader, at, block);
        self.each_decoded(reader, decode, |first, some| {
            for (i, group) in some.iter().enumerate() {
                group.ciphertexts().iter().for_each(|c| out[(first + i) / groups].push(c.inner().both()));
            }
            Ok(())
        })?;
        let whole = out.iter().all(|block| block.len() == d);
        if whole { Ok(out) } else { Err(SearchError::Mixed { what: "a segment" }) }
    }

    fn check(&self, database: &Database, query: &Query) -> Result<(), SearchError> {
        if database.plan != self.index.hash() || database.key != self.evaluator.keys().id() {
            return Err(SearchError::Mixed { what: "the table" });
        }
        if query.plan() != self.index.hash() {
            return Err(SearchError::Mixed { what: "the question" });
        }
        let state = match &self.engine {
            Engine::Leveled(expansion) => {
                query.ciphertexts().iter().try_for_each(|c| self.evaluator.check(c))?;
                (ROWS_LEVEL, QUERY_SCALE / expansion.factor(), 2)
            }
            Engine::Compact(_) => (0, compact::QUERY_SCALE, 2),
        };
        let sound = query.ciphertexts().iter().all(|c| (c.level(), c.scale(), c.parts().len()) == state);
        if sound { Ok(()) } else { Err(SearchError::Mixed { what: "the question" }) }
    }

    /// A question, ready.
    fn ready(&self, query: &[Ciphertext]) -> Result<Question, SearchError> {
        match (&self.engine, query) {
            (Engine::Leveled(expansion), [query]) => Ok(Question::Expanded(self.expanded(query, expansion)?)),
            (Engine::Compact(_), [first, ..]) => {
                let mut out = NarrowPairs::new(first.parts()[0].basis(), query.len());
                query.iter().for_each(|c| out.push(c.inner().both()));
                Ok(Question::Narrow(out))
            }
            _ => Err(SearchError::Mixed { what: "the question" }),
        }
    }

    /// A question's coordinates, each in every slot.
    fn expanded(&self, query: &Ciphertext, expansion: &Expansion) -> Result<Vec<Ciphertext>, SearchError> {
        let parts = self.evaluator.expand(query, expansion)?;
        // A coordinate of a vector of length one.
        let one = |c: &Ciphertext| Ok(self.evaluator.divided(c, expansion.factor())?.with_bound(1.0));
        parts.iter().map(one).collect()
    }

    /// The scores of some segments with each question, before they are relinearised. Those in memory take one reading of the question; one
    /// that is not stands alone.
    fn products(&self, wave: &[Segment], questions: &[Question]) -> Result<Vec<Vec<Ciphertext>>, SearchError> {
        let queries = questions.iter().map(Question::expanded).collect::<Result<Vec<_>, _>>()?;
        if let [Segment { columns: Columns::Stored(reader), .. }] = wave {
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
            return Ok(vec![sums]);
        }
        let columns = wave.iter().map(Segment::held).collect::<Result<Vec<_>, _>>()?;
        let lists: Vec<&[&Ciphertext]> = columns.iter().map(Vec::as_slice).collect();
        let mut out = vec![Vec::with_capacity(queries.len()); wave.len()];
        for query in queries {
            let query: Vec<&Ciphertext> = query.iter().collect();
            let made = self.evaluator.dots(&lists, &query)?;
            out.iter_mut().zip(made).for_each(|(all, one)| all.push(one));
        }
        Ok(out)
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

    fn comparisons(&self, gaps: &[Gap]) -> Result<Comparisons, SearchError> {
        let Engine::Compact(half) = &self.engine else {
            return Ok(Comparisons::Leveled(gaps.iter().map(|gap| self.comparison(*gap)).collect::<Result<_, _>>()?));
        };
        let thresholds = gaps.iter().map(|gap| self.index.threshold_of(*gap)).collect::<Result<Vec<_>, _>>()?;
        let of = |t: &Threshold| match t.steps() {
            Steps::Series(indicator) => Ok(indicator.clone()),
            Steps::Polynomials(_) => Err(SearchError::Mixed { what: "a threshold" }),
        };
        let indicators = thresholds.iter().map(of).collect::<Result<Vec<_>, _>>()?;
        let deviations: Vec<[f64; 2]> = indicators.iter().map(|i| i.deviations()).collect();
        let rough = deviations.iter().map(|d| d[0]).fold(0.0, f64::max);
        let state = State { scale: SERIES_SCALE, bound: SERIES_REACH, noise: 16.0 * rough * SERIES_SCALE };
        let series: Vec<_> = indicators.iter().map(|i| &i.series).collect();
        Ok(Comparisons::Compact {
            series: Box::new(half.plan_series(&series, state)?),
            clean: Box::new(compact::clean(half.params())?),
            noises: deviations.iter().map(|d| 16.0 * d[1]).collect(),
        })
    }

    fn comparison(&self, gap: Gap) -> Result<Comparison, SearchError> {
        let threshold = self.index.threshold_of(gap)?;
        let Steps::Polynomials(polynomials) = threshold.steps() else {
            return Err(SearchError::Mixed { what: "a threshold" });
        };
        let circuits = self.index.circuits(polynomials)?;
        let noise = 16.0 * self.index.largest_deviation(&threshold)?;
        Ok(Comparison { polynomials: polynomials.clone(), circuits, noise })
    }

    /// The indicators of some segments: for each question those of each threshold.
    fn found_in(
        &self,
        wave: &[Segment],
        questions: &[Question],
        comparisons: &Comparisons,
    ) -> Result<Vec<Vec<Vec<Halves>>>, SearchError> {
        let products = match comparisons {
            Comparisons::Leveled(_) => self.products(wave, questions)?,
            Comparisons::Compact { .. } => vec![Vec::new(); wave.len()],
        };
        let found = threads::map_alone(wave.len(), |k| self.found((&wave[k], &products[k]), questions, comparisons));
        found.into_iter().collect()
    }

    /// The indicators of a segment, of the leveled mode by its products.
    fn found(
        &self,
        (segment, products): (&Segment, &[Ciphertext]),
        questions: &[Question],
        comparisons: &Comparisons,
    ) -> Result<Vec<Vec<Halves>>, SearchError> {
        match comparisons {
            Comparisons::Leveled(comparisons) => {
                let one = |product: &Ciphertext| {
                    let halves = self.halves(product)?;
                    let compared = |comparison: &Comparison| {
                        let [u, v] = halves.each_ref().map(|half| self.indicators(half, comparison));
                        Ok([u?, v?])
                    };
                    comparisons.iter().map(compared).collect::<Result<Vec<_>, SearchError>>()
                };
                products.iter().map(one).collect()
            }
            Comparisons::Compact { series, clean, noises } => {
                let (Some(compact), Engine::Compact(half)) = (self.index.compact(), &self.engine) else {
                    return Err(SearchError::Mixed { what: "a threshold" });
                };
                let read;
                let blocks: &[NarrowPairs] = match &segment.columns {
                    Columns::Blocks(blocks) => blocks,
                    Columns::Stored(reader) => {
                        read = self.blocks(compact, reader)?;
                        &read
                    }
                    Columns::Held(_) => return Err(SearchError::Mixed { what: "a segment" }),
                };
                let lists: Vec<&NarrowPairs> = blocks.iter().collect();
                let one = |question: &Question| {
                    let Question::Narrow(query) = question else {
                        return Err(SearchError::Mixed { what: "the question" });
                    };
                    interrupt::check();
                    let packed =
                        interleaved(compact.half.low_params(), self.evaluator.keys().id(), &query.tensors(&lists))?;
                    let ended = |(c, noise): (&Ciphertext, f64)| {
                        let out = half.evaluator().polynomial(c, clean)?;
                        let noise = noise * out.scale();
                        Ok::<_, SearchError>(out.settled(1.0 + ERROR_AT_ONE, noise))
                    };
                    let values = half.run_series(&packed, series)?;
                    let both = |([u, v], noise): (&Halves, &f64)| Ok([ended((u, *noise))?, ended((v, *noise))?]);
                    values.iter().zip(noises).map(both).collect()
                };
                questions.iter().map(one).collect()
            }
        }
    }

    /// The indicators of scores.
    fn indicators(&self, scores: &Ciphertext, comparison: &Comparison) -> Result<Ciphertext, SearchError> {
        let reach = |p: &Polynomial| {
            let (centre, radius) = p.domain();
            centre.abs() + radius
        };
        let [first, second] = &comparison.circuits;
        // A score is at most one, and its error within the margin of the fit.
        let scores = scores.clone().with_bound(reach(&comparison.polynomials[0]));
        let between = self.evaluator.polynomial(&scores, first)?.with_bound(reach(&comparison.polynomials[1]));
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
            let held = |s: &Segment| !matches!(s.columns, Columns::Stored(_));
            let count = if held(first) { rest.iter().take(most).take_while(|s| held(s)).count() } else { 1 };
            let (wave, more) = rest.split_at(count);
            out.push(wave);
            rest = more;
        }
        out
    }

    /// Runs `work` on as many questions that are ready as memory holds, group after group.
    fn in_groups(
        &self,
        database: &Database,
        query: &Query,
        (ready, progress): (Ready<'_>, Progress<'_>),
        work: impl Fn(&[Question], &(dyn Fn(usize) + Sync)) -> Result<Vec<Ciphertext>, SearchError>,
    ) -> Result<Vec<Ciphertext>, SearchError> {
        let (segments, mut out) = (database.segments.len(), Vec::new());
        let each = query.each();
        let groups = each.chunks(database.together);
        let all = groups.len() * segments;
        for (i, group) in groups.enumerate() {
            let queries = group.iter().map(|query| ready(query)).collect::<Result<Vec<_>, _>>()?;
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
            return Err(SearchError::Goal { what: "thresholds", found: "none".into(), wanted: "at least one" });
        }
        let about = self.about(database, (Asked::Count, query), gaps)?;
        let comparisons = self.comparisons(gaps)?;
        let ready = |q: &[Ciphertext]| self.ready(q);
        let counted = self.in_groups(database, query, (&ready, progress), |queries, tell| {
            self.counted(database, queries, (&comparisons, gaps.len()), tell)
        })?;
        Answer::new(&self.index, about, counted)
    }

    /// The totals of indicators of some questions.
    fn counted(
        &self,
        database: &Database,
        queries: &[Question],
        (comparisons, thresholds): (&Comparisons, usize),
        tell: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<Ciphertext>, SearchError> {
        let mut sums: Vec<Option<Ciphertext>> = vec![None; queries.len() * thresholds];
        let mut done = 0;
        for wave in self.waves(database) {
            interrupt::check();
            for found in self.found_in(wave, queries, comparisons)? {
                for (sum, [u, v]) in sums.iter_mut().zip(found.iter().flatten()) {
                    let indicators = self.evaluator.add(u, v)?;
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
        let comparisons = self.comparisons(&[gap])?;
        let ready = |q: &[Ciphertext]| self.ready(q);
        let fetched = self.in_groups(database, query, (&ready, progress), |queries, tell| {
            self.fetched(database, queries, (&comparisons, &payloads), tell)
        })?;
        Answer::new(&self.index, about, fetched)
    }

    /// The sums of payloads of some questions.
    fn fetched(
        &self,
        database: &Database,
        queries: &[Question],
        (comparisons, payloads): (&Comparisons, &Payloads),
        tell: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<Ciphertext>, SearchError> {
        let columns = 2 * payloads.ciphertexts();
        let mut sums: Vec<Option<Ciphertext>> = vec![None; queries.len() * columns];
        let mut done = 0;
        for wave in self.waves(database) {
            interrupt::check();
            let found: Vec<Vec<Halves>> =
                self.found_in(wave, queries, comparisons)?.into_iter().map(|found| found.concat()).collect();
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
            // What is known of each term alone grows with the number of segments; the plan keeps the error of a digit under this.
            let noise = out.noise().min(MEET * CLEAR * out.scale());
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
        let Engine::Leveled(expansion) = &self.engine else { return Err(SearchError::NoScores) };
        let about = self.about(database, (Asked::Scores, query), &[])?;
        // Two levels are enough for one product and the bounds that travel.
        let low = |q: &[Ciphertext]| {
            let [q] = q else { return Err(SearchError::Mixed { what: "the question" }) };
            Ok(Question::Expanded(self.expanded(&self.evaluator.drop_to(q, SCORES_LEVEL)?, expansion)?))
        };
        let scored =
            self.in_groups(database, query, (&low, progress), |queries, tell| self.scored(database, queries, tell))?;
        Answer::new(&self.index, about, scored)
    }

    /// The scores of all rows with some questions.
    fn scored(
        &self,
        database: &Database,
        queries: &[Question],
        tell: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<Ciphertext>, SearchError> {
        let mut out: Vec<Vec<Ciphertext>> = vec![Vec::new(); queries.len()];
        let mut done = 0;
        for wave in self.waves(database) {
            interrupt::check();
            let products = self.products(wave, queries)?;
            let scored = threads::map_alone(wave.len(), |k| {
                let end = |p: &Ciphertext| {
                    let scores = self.evaluator.relinearize_rescale(p)?;
                    // Two scores of at most one: Σ |x_j·q_j| is no more, whatever the bound of each term adds up to.
                    let noise = 16.0 * self.index.expected().score * scores.scale();
                    Ok(self.evaluator.drop_to(&scores.settled(1.5, noise), 0)?)
                };
                products[k].iter().map(end).collect::<Result<Vec<_>, SearchError>>()
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
    use crate::payload::Payload;
    use crate::plan::Goal;
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
        let payload = Some(Payload { numbers: 32, bits: 10, dtype: None });
        let goal = Goal { d: D, rows: 4096, above: 0.9, gap, lowest: -1.0, payload };
        let index = Index::insecure(goal, 12).unwrap();
        let client = Client::new(&index).unwrap();
        let server = Server::new(&index, client.keys().unwrap()).unwrap();
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
            let ready = server.ready(query.ciphertexts()).unwrap();
            let products = server.products(&database.segments[..1], &[ready]).unwrap();
            let halves = server.halves(&products[0][0]).unwrap();
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
