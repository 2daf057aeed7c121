//! What an index is for, the parameters it takes, and what it costs and promises.

use crate::compact::{Compact, clean};
use crate::error::SearchError;
use crate::files::Part;
use crate::layout::{Payloads, Shape, half_bits};
use crate::payload::Payload;
use crate::threshold::{DEGREES, Gap, MARGIN, Steps, Threshold};
use num_complex::Complex64;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use sudare_he::circuits::expansion::Expansion;
use sudare_he::circuits::polynomial::{Polynomial, PolynomialCircuit};
use sudare_he::ckks::{Params, ParamsLiteral, spread};
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::KeySwitchKey;
use sudare_rlwe::noise::{ERROR_VARIANCE, ROUNDING_VARIANCE};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::wire::ALIGNMENT;
use sudare_rlwe::wire::packing::packed_bytes;
use sudare_rlwe::work::{Prices, Work};

/// Version of plans that this release makes and reads.
const VERSION: u32 = 1;
/// Rows an index has at most: numbers of half blocks have two digits of eight bits.
pub const MAX_ROWS: u64 = 1 << 28;
/// Segments of a table at most: what two digits of the number of a half hold.
pub(crate) const MAX_SEGMENTS: u64 = 1 << 15;
/// Coordinates at most.
pub const MAX_D: usize = 1 << 12;

/// Level of rows and questions, of scores, of what the first polynomial gives, of indicators.
pub(crate) const ROWS_LEVEL: usize = 9;
pub(crate) const SCORE_LEVEL: usize = 8;
pub(crate) const FIRST_LEVEL: usize = 4;
pub(crate) const INDICATOR_LEVEL: usize = 1;
/// Level at which scores alone are computed.
pub(crate) const SCORES_LEVEL: usize = 2;
/// Scales: of rows, of questions, of what the first polynomial gives, of indicators.
pub(crate) const ROW_SCALE: f64 = (1u64 << 31) as f64;
pub(crate) const QUERY_SCALE: f64 = (1u64 << 32) as f64;
const FIRST_SCALE: f64 = (1u64 << 31) as f64;
const INDICATOR_SCALE: f64 = (1u64 << 33) as f64;
/// A count that is further than this from an integer is refused.
pub(crate) const CLEAR: f64 = 0.25;
/// Bits of a payload's digit, if errors allow for them.
const DIGIT_BITS: std::ops::RangeInclusive<u32> = 4..=10;
/// Deviations within which an error of a digit is. That of the last rescale is a product of two Gaussians, one of them the key's: a slot's
/// real part is beyond F deviations with probability exp(−√2·F), 2^-61 here, and an answer has up to 2^21 of them.
const DIGIT_TAIL: f64 = 30.0;
/// The same of a sum of many.
const SUM_TAIL: f64 = 6.0;
/// log2 of the ring degree of an index with 128 bits of security.
const LOG_N: u32 = 14;
/// Segments that a small table has room for without appends.
const SMALL_TABLE: u64 = 4;
/// Matches that are counted with the gap of [`Goal::above`].
const MATCHES: f64 = 100.0;

/// How a table is encrypted, and what its scores are compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Levels, and no bootstrap: 80 bytes a coordinate, the least time for small tables.
    #[default]
    Leveled,
    /// A small ring and half a bootstrap: 8 bytes a coordinate in memory, where the other mode has 80.
    Compact,
}

impl FromStr for Mode {
    type Err = SearchError;

    /// `leveled` or `compact`.
    fn from_str(name: &str) -> Result<Self, SearchError> {
        match name {
            "leveled" => Ok(Self::Leveled),
            "compact" => Ok(Self::Compact),
            _ => Err(SearchError::Goal { what: "a mode", found: name.into(), wanted: "\"leveled\" or \"compact\"" }),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Leveled { "leveled" } else { "compact" })
    }
}

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// Coordinates of a vector.
    pub d: usize,
    /// Most rows.
    pub rows: u64,
    /// The threshold that the question is about.
    pub above: f64,
    /// Where no score lies.
    pub gap: Gap,
    /// The least score that occurs; −1 unless the data are known.
    pub lowest: f64,
    /// What comes back with a match.
    pub payload: Option<Payload>,
}

impl Goal {
    /// Counting rows above a threshold, with the narrowest gap about it that is counted right, with a hundred matches as well.
    ///
    /// # Errors
    /// [`SearchError::Goal`].
    pub fn above(d: usize, rows: u64, above: f64) -> Result<Self, SearchError> {
        let goal = |half: f64| Self {
            d,
            rows,
            above,
            gap: Gap { low: above - half, high: above + half },
            lowest: -1.0,
            payload: None,
        };
        let most = (1.0 - above - 1.5 * MARGIN).min(above);
        // Places without a row add to a count as well.
        let places = (2 * rows.div_ceil(1 << LOG_N).max(SMALL_TABLE)) << LOG_N;
        let enough = |half: f64| {
            Threshold::new(goal(half).gap, -1.0, places).is_ok_and(|t| {
                t.is_sure(places) && t.error_at_zero() * places as f64 + 2.0 * MATCHES * t.error_at_one() <= CLEAR
            })
        };
        if !(most > 0.0 && enough(most)) {
            let found = above.to_string();
            return Err(SearchError::Goal {
                what: "a threshold",
                found,
                wanted: "a number further from 0 and 1, or a gap",
            });
        }
        let (mut narrow, mut wide) = (0.0, most);
        for _ in 0..10 {
            let middle = (narrow + wide) / 2.0;
            if enough(middle) { wide = middle } else { narrow = middle }
        }
        Ok(goal(wide))
    }

    fn check(&self) -> Result<(), SearchError> {
        let refuse = |what, found: String, wanted| Err(SearchError::Goal { what, found, wanted });
        if !(1..=MAX_D).contains(&self.d) {
            return refuse("the number of coordinates", self.d.to_string(), "1 to 4096");
        }
        if !(1..=MAX_ROWS).contains(&self.rows) {
            return refuse("the number of rows", self.rows.to_string(), "1 to 2^28");
        }
        if !(self.gap.low <= self.above && self.above <= self.gap.high) {
            return refuse("the threshold", self.above.to_string(), "a number inside of the gap");
        }
        self.payload.map_or(Ok(()), |payload| payload.check())
    }
}

/// What a plan predicts of errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Standard deviation of a score's error.
    pub score: f64,
    /// Standard deviation of the error of an indicator of a row that does not match.
    pub indicator: f64,
    /// Bound on what the polynomials add to a count at scores under the gap, of all places of as many segments as a table may have.
    pub bias: f64,
    /// Matches up to which a count is surely right and not refused, but for `log2_failure`.
    pub matches: u64,
    /// Standard deviation of a count's error.
    pub count: f64,
    /// Bound on the standard deviation of the error of a payload's digit, for one match; zero without payload.
    pub digit: f64,
    /// log2 of the probability that a count is refused or wrong.
    pub log2_failure: f64,
}

/// Bytes of what is stored, sent and held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    /// The stored table.
    pub database: u64,
    /// Evaluation keys as they travel.
    pub keys: u64,
    /// A question.
    pub query: u64,
    /// The answer to a count.
    pub count: u64,
    /// The answer to a fetch; none without payload.
    pub fetch: u64,
    /// All scores.
    pub scores: u64,
    /// Memory of the server for one question, without rows.
    pub memory: u64,
    /// Memory of all rows, where they are kept.
    pub rows: u64,
    /// Memory of a further question of a batch.
    pub expanded: u64,
    /// The same for each segment that is worked on.
    pub beside: u64,
}

/// What a plan stands on.
struct Ground {
    goal: Goal,
    params: Params,
    compact: Option<Compact>,
}

struct Inner {
    ground: Ground,
    threshold: Threshold,
    expected: Expected,
    payloads: Option<Payloads>,
    /// Levels of the relinearisations of a comparison.
    compared: Vec<usize>,
}

/// A plan: the goal, its parameters and what follows from both. Client and server hold the same one.
#[derive(Clone)]
pub struct Index(Arc<Inner>);

/// A plan as a file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    sudare_index: u32,
    goal: Goal,
    /// log2 of the ring degree of a set without security.
    insecure: Option<u32>,
    /// How the table is encrypted.
    #[serde(default, skip_serializing_if = "is_leveled")]
    mode: Mode,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_leveled(mode: &Mode) -> bool {
    *mode == Mode::Leveled
}

fn literal(log_n: u32, security: Security) -> ParamsLiteral {
    let mut q_bits = vec![38, 33];
    q_bits.extend([31; 7]);
    q_bits.push(33);
    let secret = SecretDistribution::Ternary;
    let rlwe = rlwe::params::ParamsLiteral { log_n, q_bits, p_bits: vec![36; 3], digit_limbs: 3, secret, security };
    ParamsLiteral { rlwe, log_scale: 31 }
}

impl Index {
    /// A plan with 128 bits of security: N = 2^14, 321 bits of data primes and 108 of special ones.
    ///
    /// # Errors
    /// [`SearchError::Goal`], [`SearchError::Gap`].
    pub fn new(goal: Goal) -> Result<Self, SearchError> {
        Self::in_mode(goal, Mode::Leveled)
    }

    /// The same in a mode. Compact: scores in a ring of 2^11 with one prime of 31 bits, indicators at N = 2^15
    /// ([`sudare_he::circuits::bootstrapping::BootstrapLiteral::h`]).
    ///
    /// # Errors
    /// As [`Index::new`].
    pub fn in_mode(goal: Goal, mode: Mode) -> Result<Self, SearchError> {
        Self::over(goal, mode, None)
    }

    /// The same in a ring of degree 2^`log_n` without a claim of security: for tests.
    ///
    /// # Errors
    /// As [`Index::new`].
    pub fn insecure(goal: Goal, log_n: u32) -> Result<Self, SearchError> {
        Self::over(goal, Mode::Leveled, Some(log_n))
    }

    /// The same in a mode.
    ///
    /// # Errors
    /// As [`Index::new`].
    pub fn insecure_in_mode(goal: Goal, mode: Mode, log_n: u32) -> Result<Self, SearchError> {
        Self::over(goal, mode, Some(log_n))
    }

    fn over(goal: Goal, mode: Mode, insecure: Option<u32>) -> Result<Self, SearchError> {
        goal.check()?;
        let (params, compact) = match (mode, insecure) {
            (Mode::Leveled, None) => (literal(LOG_N, Security::Bits128).build()?, None),
            (Mode::Leveled, Some(log_n)) => (literal(log_n, Security::Insecure).build()?, None),
            (Mode::Compact, insecure) => {
                let compact = Compact::new(&goal, insecure)?;
                (compact.half.params().clone(), Some(compact))
            }
        };
        let numbered = (2 * params.slots() as u64) * most_halves(&params) / 2;
        let most = (params.slots() as u64).pow(2).min(numbered);
        if goal.payload.is_some() && goal.rows > most {
            let wanted = "no more than the square of the slots, 2^26: further ones would not be told apart";
            return Err(SearchError::Goal { what: "rows with payloads", found: goal.rows.to_string(), wanted });
        }
        let ground = Ground { goal, params, compact };
        let threshold = ground.sure_threshold(goal.gap)?;
        let (expected, payloads) = ground.expected(&threshold)?;
        let compared = ground.circuits(&threshold)?.iter().flat_map(PolynomialCircuit::relinearisations).collect();
        Ok(Self(Arc::new(Inner { ground, threshold, expected, payloads, compared })))
    }

    /// The goal that it was made for.
    pub fn goal(&self) -> &Goal {
        &self.0.ground.goal
    }

    /// How the table is encrypted.
    pub fn mode(&self) -> Mode {
        if self.compact().is_some() { Mode::Compact } else { Mode::Leveled }
    }

    pub(crate) fn compact(&self) -> Option<&Compact> {
        self.0.ground.compact.as_ref()
    }

    /// The parameters of questions, and how many ciphertexts each is.
    pub(crate) fn question(&self) -> (&Params, usize) {
        match self.compact() {
            Some(compact) => (&compact.small, self.goal().d),
            None => (self.params(), 1),
        }
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.0.ground.params
    }

    /// The polynomials of the planned gap.
    pub fn threshold(&self) -> &Threshold {
        &self.0.threshold
    }

    /// The polynomials of another gap, which takes no other keys.
    ///
    /// # Errors
    /// [`SearchError::Goal`]; [`SearchError::Gap`] for one in which so many rows cannot be counted.
    pub fn threshold_of(&self, gap: Gap) -> Result<Threshold, SearchError> {
        if gap == self.goal().gap {
            return Ok(self.0.threshold.clone());
        }
        self.0.ground.sure_threshold(gap)
    }

    /// Bound on what a threshold's polynomials add to a count at scores under the gap.
    pub(crate) fn bias(&self, threshold: &Threshold) -> f64 {
        threshold.error_at_zero() * self.0.ground.places() as f64
    }

    /// Standard deviation of an indicator's error at the score where it is largest, inside of the gap too.
    pub(crate) fn largest_deviation(&self, threshold: &Threshold) -> Result<f64, SearchError> {
        let polynomials = match threshold.steps() {
            Steps::Series(indicator) => return Ok(indicator.deviations()[1]),
            Steps::Polynomials(polynomials) => polynomials,
        };
        let [first, second] = self.0.ground.polynomials(polynomials)?;
        let (lowest, input) = (self.goal().lowest, 2.0 * self.0.expected.score.powi(2));
        let at = |i: u32| {
            let score = Complex64::from(lowest + (1.0 - lowest) * f64::from(i) / 255.0);
            let between = polynomials[0].evaluate(score);
            (second.variance(&[between], first.variance(&[score], input)) / 2.0).sqrt()
        };
        Ok((0..256).map(at).fold(0.0, f64::max))
    }

    /// What it predicts of errors.
    pub fn expected(&self) -> &Expected {
        &self.0.expected
    }

    /// Rows of a segment.
    pub fn segment_rows(&self) -> usize {
        self.shape().rows()
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape { slots: self.params().slots(), block: self.compact().map(Compact::block) }
    }

    pub(crate) fn payloads(&self) -> Option<Payloads> {
        self.0.payloads
    }

    /// Blocks of a store of a segment with so many rows, down and across.
    pub(crate) fn grid(&self, rows: u32, part: Part) -> (usize, usize) {
        let d = self.goal().d;
        match part {
            Part::Rows if self.compact().is_some() => (self.shape().blocks(rows as usize), d.div_ceil(CHUNK)),
            Part::Rows => (self.shape().blocks(rows as usize), d),
            Part::Payload => (2, 2 * self.payloads().map_or(0, |p| p.ciphertexts())),
        }
    }

    /// Segments that a table has at most: more than its rows fill, for each append begins one.
    pub fn most_segments(&self) -> u64 {
        self.0.ground.most_segments()
    }

    /// Segments of as many rows as are planned.
    pub fn segments(&self) -> u64 {
        self.0.ground.segments()
    }

    /// Blocks of as many rows as are planned; of the leveled mode segments.
    fn blocks(&self) -> u64 {
        self.compact().map_or(self.segments(), |compact| self.goal().rows.div_ceil(compact.block() as u64))
    }

    pub(crate) fn expansion(&self) -> Result<Expansion, SearchError> {
        Ok(Expansion::new(self.params(), self.goal().d)?)
    }

    /// The level of the relinearisation key, and the Galois elements with theirs; in compact mode of those beside half a bootstrap.
    ///
    /// # Errors
    /// None for a plan that was made.
    pub fn keys(&self) -> Result<(usize, Vec<(u64, usize)>), SearchError> {
        let params = self.params();
        let sums = (0..params.slots().trailing_zeros()).map(|i| (params.rotation_element(1 << i), INDICATOR_LEVEL));
        if self.compact().is_some() {
            return Ok((INDICATOR_LEVEL, sums.collect()));
        }
        let mut keys: Vec<(u64, usize)> = self.expansion()?.elements().into_iter().map(|e| (e, ROWS_LEVEL)).collect();
        keys.push((params.conjugation_element(), SCORE_LEVEL));
        keys.extend(sums);
        Ok((ROWS_LEVEL, keys))
    }

    /// The circuits of a leveled threshold.
    pub(crate) fn circuits(&self, polynomials: &[Polynomial; 2]) -> Result<[PolynomialCircuit; 2], SearchError> {
        self.0.ground.polynomials(polynomials)
    }

    /// What a count of one question takes, rows in memory.
    pub fn work(&self) -> Work {
        let (literal, segments) = (&self.params().literal().rlwe, self.segments() as f64);
        let d = self.goal().d as f64;
        // Each product of a polynomial, and its sums with others.
        let step = |level: usize| Work::tensor(literal, level).summed() + Work::relinearize_rescale(literal, level);
        let compare = self.0.compared.iter().fold(Work::default(), |w, l| w + step(*l));
        let rounds = f64::from(self.params().slots().trailing_zeros());
        let total = Work::rotation(literal, INDICATOR_LEVEL) * rounds;
        if let Some(compact) = self.compact() {
            // Blocks are read once, both parts of each coordinate as words of 32 bits, and multiplied by both of the question.
            let places = (self.blocks() * compact.block() as u64) as f64 * d;
            let scores = Work { mac: 4.0 * places, operand_bytes: 8.0 * places, ..Work::default() };
            return ((compact.figures.work + compare * 2.0) * segments + total).fused() + scores;
        }
        let switches = self.expansion().map_or(0.0, |e| e.key_switches() as f64);
        // A round adds and subtracts the image, and multiplies one of the results by a monomial: each reads two ciphertexts, which
        // are more than the second cache holds.
        let limbs = ((ROWS_LEVEL + 1) * 8 * self.params().degree()) as f64;
        let parted = 3.0 * 4.0 * limbs * switches;
        let expand = Work::key_switch(literal, ROWS_LEVEL) * switches;
        // Products of columns and questions take less time than reading both.
        let read = (2.0 * d * 2.0) * limbs;
        let segment =
            Work::relinearize_rescale(literal, ROWS_LEVEL) + Work::rotation(literal, SCORE_LEVEL) + compare * 2.0;
        let streamed = Work { operand_bytes: parted + read * segments, ..Work::default() };
        (expand + segment * segments + total).fused() + streamed
    }

    /// Key switches of a count of one question over some segments.
    pub fn key_switches(&self, segments: usize) -> usize {
        let (compared, rounds) = (2 * self.0.compared.len(), self.params().slots().trailing_zeros() as usize);
        if let Some(compact) = self.compact() {
            return segments * (compact.figures.key_switches as usize + compared) + rounds;
        }
        let each = 2 + compared;
        self.expansion().map_or(0, |e| e.key_switches()) + segments * each + rounds
    }

    /// Seconds of a count of one question on one thread, rows in memory, at a machine's prices.
    pub fn seconds(&self, prices: Prices<'_>) -> f64 {
        prices(&self.work(), self.params().literal().rlwe.log_n)
    }

    /// Bytes of what is stored, sent and held.
    pub fn bytes(&self) -> Bytes {
        let params = self.params();
        let degree = params.degree() as u64;
        let packed = |level: usize| packed_bytes(params.q_at(level)).next_multiple_of(ALIGNMENT) + 2 * ALIGNMENT;
        let held = |level: usize, parts: u64| (level as u64 + 1) * degree * 8 * parts;
        let (segments, d) = (self.segments(), self.goal().d as u64);
        let payload = self.payloads().map_or(0, |p| p.ciphertexts() as u64);
        let keys = self.keys().map_or(0, |(relin, galois)| {
            let levels = galois.iter().map(|k| k.1).chain([relin]);
            levels.map(|l| params.digits_at(l) as u64 * packed_bytes(params.qp_at(l))).sum::<u64>()
        });
        let keys_held = self.keys().map_or(0, |(relin, galois)| {
            let levels = galois.iter().map(|k| k.1).chain([relin]);
            levels.map(|l| KeySwitchKey::bytes_at(&params.literal().rlwe, l) as u64).sum::<u64>()
        });
        if let Some(compact) = self.compact() {
            let half = &compact.figures;
            let n = compact.block() as u64;
            // A checksum behind each polynomial; a header, and what a block of a store is rounded by.
            let small = (packed_bytes(compact.small.q_at(0)) + 1).next_multiple_of(ALIGNMENT);
            let groups = d.div_ceil(CHUNK as u64);
            let half_held = half.held + half.working;
            let narrow = d * 8 * n;
            return Bytes {
                database: self.blocks() * (d * small + groups * 2 * ALIGNMENT)
                    + segments * 4 * payload * packed(INDICATOR_LEVEL),
                keys: keys + half.keys,
                query: d * small + 2 * ALIGNMENT,
                count: 2 * packed(INDICATOR_LEVEL),
                fetch: 4 * payload * packed(0),
                scores: 0,
                memory: keys_held + half_held + narrow * (2 * degree / n + 1) + 2 * payload * held(INDICATOR_LEVEL, 3),
                rows: segments * (narrow * (degree / n) + 4 * payload * held(INDICATOR_LEVEL, 2)),
                expanded: narrow,
                beside: half.working,
            };
        }
        let streams = 2 * CHUNK as u64 * held(ROWS_LEVEL, 2);
        let accumulators = 2 * payload * held(INDICATOR_LEVEL, 3);
        // The last round of an expansion has the ones before beside it.
        let expanded = d * held(ROWS_LEVEL, 2) * 3 / 2;
        Bytes {
            database: segments * (d * packed(ROWS_LEVEL) + 4 * payload * packed(INDICATOR_LEVEL)),
            keys,
            query: packed(ROWS_LEVEL),
            count: 2 * packed(INDICATOR_LEVEL),
            fetch: 4 * payload * packed(0),
            scores: 2 * segments * packed(0),
            memory: keys_held + expanded + streams + accumulators + 64 * held(ROWS_LEVEL, 1),
            rows: segments * (d * held(ROWS_LEVEL, 2) + 4 * payload * held(INDICATOR_LEVEL, 2)),
            expanded,
            beside: held(ROWS_LEVEL, 3) + 2 * held(SCORE_LEVEL, 2),
        }
    }

    /// Names the plan: parties that have one name have one plan.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("sudare search plan v1");
        // The type of payloads is the owner's affair: what is stored and sent has their bits alone.
        let payload = self.goal().payload.map(|payload| Payload { dtype: None, ..payload });
        hasher.update(self.text(Goal { payload, ..*self.goal() }).as_bytes()).update(&self.params().hash().0);
        // How digits are cut follows from figures.
        hasher.update(&self.0.payloads.map_or(0, |p| p.digit_bits).to_le_bytes());
        *hasher.finalize().as_bytes()
    }

    /// The plan as text.
    pub fn to_json(&self) -> String {
        self.text(*self.goal())
    }

    fn text(&self, goal: Goal) -> String {
        let literal = &self.params().literal().rlwe;
        let insecure = (literal.security == Security::Insecure).then_some(literal.log_n);
        let written = Written { sudare_index: VERSION, goal, insecure, mode: self.mode() };
        match serde_json::to_string_pretty(&written) {
            Ok(text) => text,
            Err(e) => unreachable!("a plan of numbers: {e}"),
        }
    }

    /// A plan of its text.
    ///
    /// # Errors
    /// [`SearchError::Damaged`] for text that is no plan, and as [`Index::new`].
    pub fn from_json(text: &str) -> Result<Self, SearchError> {
        let damaged = |what: String| SearchError::Damaged { path: "the plan".into(), what };
        let written: Written = serde_json::from_str(text)
            .map_err(|e| damaged(format!("it is not the plan of an index: {e}; copy it again")))?;
        if written.sudare_index != VERSION {
            return Err(damaged(format!(
                "its version {} is unknown; use a newer release of sudare",
                written.sudare_index
            )));
        }
        Self::over(written.goal, written.mode, written.insecure)
    }
}

/// Columns that are read or decoded at a time.
pub(crate) const CHUNK: usize = 16;

impl Ground {
    /// Segments of as many rows as are planned.
    fn segments(&self) -> u64 {
        self.goal.rows.div_ceil(2 * self.params.slots() as u64)
    }

    /// Segments that a table has at most: twice as many, for each append begins one. With payloads no more than have halves of
    /// different slots.
    fn most_segments(&self) -> u64 {
        let most = (2 * self.segments().max(SMALL_TABLE)).min(MAX_SEGMENTS);
        let halves = most_halves(&self.params).min(self.params.slots() as u64);
        if self.goal.payload.is_some() { most.min(halves / 2) } else { most }
    }

    /// Places of all segments: their rows, and those without one, whose score is zero.
    fn places(&self) -> u64 {
        self.most_segments() * 2 * self.params.slots() as u64
    }

    /// The steps of a gap.
    fn threshold(&self, gap: Gap) -> Result<Threshold, SearchError> {
        match &self.compact {
            Some(compact) => Ok(Threshold::compact(gap, compact.indicator(gap)?)),
            None => Threshold::new(gap, self.goal.lowest, self.places()),
        }
    }

    /// Those with which all rows are counted right.
    fn sure_threshold(&self, gap: Gap) -> Result<Threshold, SearchError> {
        let threshold = self.threshold(gap)?;
        if self.is_sure(&threshold) { Ok(threshold) } else { Err(self.refused_gap(gap)) }
    }

    /// Whether all rows are counted right, and the narrowest digits as well.
    fn is_sure(&self, threshold: &Threshold) -> bool {
        let digits = self.digit_errors((threshold, 0.0), *DIGIT_BITS.start());
        threshold.is_sure(self.places()) && (self.goal.payload.is_none() || digits[1] < CLEAR / 2.0)
    }

    fn refused_gap(&self, gap: Gap) -> SearchError {
        let least = self.goal.lowest.max(0.0);
        let (mut bad, mut possible) = (gap.low, least);
        for _ in 0..12 {
            let low = (bad + possible) / 2.0;
            let wider = Gap { low, high: gap.high };
            match self.threshold(wider).is_ok_and(|t| self.is_sure(&t)) {
                true => possible = low,
                false => bad = low,
            }
        }
        SearchError::Gap { gap, rows: self.goal.rows, possible }
    }

    /// The circuits that a threshold's steps are, of a series the one that follows it.
    fn circuits(&self, threshold: &Threshold) -> Result<Vec<PolynomialCircuit>, SearchError> {
        match (threshold.steps(), &self.compact) {
            (Steps::Polynomials(polynomials), _) => Ok(self.polynomials(polynomials)?.into()),
            (Steps::Series(_), Some(compact)) => Ok(vec![clean(&compact.half)?]),
            (Steps::Series(_), None) => Err(SearchError::Mixed { what: "a threshold" }),
        }
    }

    fn polynomials(&self, [first, second]: &[Polynomial; 2]) -> Result<[PolynomialCircuit; 2], SearchError> {
        let params = &self.params;
        Ok([
            PolynomialCircuit::new(params, first, SCORE_LEVEL, score_scale(params), FIRST_SCALE)?,
            PolynomialCircuit::new(params, second, FIRST_LEVEL, FIRST_SCALE, INDICATOR_SCALE)?,
        ])
    }

    /// Standard deviation of a score's error.
    fn score_deviation(&self) -> Result<f64, SearchError> {
        match &self.compact {
            Some(compact) => Ok(compact.deviation),
            None => score_deviation(&self.goal, &self.params),
        }
    }

    /// Standard deviation of the error of indicators at these scores.
    fn indicator_deviation(&self, threshold: &Threshold, scores: &[f64], score: f64) -> Result<f64, SearchError> {
        match threshold.steps() {
            Steps::Series(indicator) => {
                let sum: f64 = scores.iter().map(|s| indicator.moments(*s).1).sum();
                Ok((sum / scores.len() as f64).sqrt())
            }
            Steps::Polynomials(polynomials) => {
                let [first, second] = self.polynomials(polynomials)?;
                let scores: Vec<Complex64> = scores.iter().map(|s| (*s).into()).collect();
                let after = first.variance(&scores, 2.0 * score * score);
                let between: Vec<Complex64> = scores.iter().map(|s| polynomials[0].evaluate(*s)).collect();
                Ok((second.variance(&between, after) / 2.0).sqrt())
            }
        }
    }

    fn expected(&self, threshold: &Threshold) -> Result<(Expected, Option<Payloads>), SearchError> {
        let goal = &self.goal;
        let score = self.score_deviation()?;
        // Scores of rows that do not match: a normal law of deviation 1/√d, up to the gap.
        let deviation = 1.0 / (goal.d as f64).sqrt();
        let quantile = |i: i32| normal_quantile((f64::from(i) + 0.5) / 64.0) * deviation;
        let scores: Vec<f64> = (0..64).map(|i| quantile(i).clamp(goal.lowest, goal.gap.low)).collect();
        let indicator = self.indicator_deviation(threshold, &scores, score)?;
        let places = self.places();
        let bias = threshold.error_at_zero() * places as f64;
        let count = indicator * (places as f64).sqrt();
        // What the bias leaves is halved between matches and noise.
        let left = (CLEAR - bias) / 2.0;
        let matches = ((left / threshold.error_at_one()) as u64).min(goal.rows);
        let errors = |bits| self.digit_errors((threshold, indicator), bits);
        let payloads = goal.payload.map(|payload| {
            let fits = |bits: &u32| errors(*bits)[2] < CLEAR;
            let widest = DIGIT_BITS.rev().find(fits).ok_or_else(|| self.refused_gap(goal.gap))?;
            // As many digits as these take, and no wider than they need be.
            let bits = payload.bits.div_ceil(payload.bits.div_ceil(widest));
            Ok::<_, SearchError>(Payloads::new(payload, bits, room(&self.params)))
        });
        let payloads = payloads.transpose()?;
        let digit = payloads.map_or(0.0, |p| errors(p.digit_bits)[0]);
        let log2_failure = log2_tail(left / count);
        Ok((Expected { score, indicator, bias, matches, count, digit, log2_failure }, payloads))
    }

    /// Errors of a digit of some bits, for one match: a bound on the standard deviation of noise, one on the polynomials' share, and one on both.
    ///
    /// A column has the error of its own encryption and of the last rescale; indicators of all rows that share its cell come times
    /// their digits. The digit is divided by the column of ones, which has the same errors, and is as large as the largest digit.
    fn digit_errors(&self, (threshold, indicator): (&Threshold, f64), bits: u32) -> [f64; 3] {
        let params = &self.params;
        let halves = (self.places() / params.slots() as u64) as f64;
        let half = half_bits(room(&self.params));
        let (wide, half) = (f64::from(bits.max(half)), halves.min(f64::from(half).exp2()));
        let size = f64::from(bits).exp2().max(half);
        let integer = params.degree() as f64 * (ERROR_VARIANCE + ROUNDING_VARIANCE) + spread::division(params, 2);
        let fresh = (integer / 2.0).sqrt() / (f64::from(room(&self.params)) - wide).exp2();
        let others = indicator * halves.sqrt() * size * std::f64::consts::SQRT_2;
        let own = fresh * 1f64.hypot(size / wide.exp2());
        let noise = own.hypot(others);
        let bias = 2.0 * size * halves * threshold.error_at_zero();
        [noise, bias, DIGIT_TAIL * own + SUM_TAIL * others + bias]
    }
}

/// Bits of what a row may be in a cell at the lowest level: four rows, a sign, and a little.
fn room(params: &Params) -> u32 {
    params.literal().rlwe.q_bits.first().map_or(0, |q0| q0 - 5)
}

/// Halves of segments that have numbers.
fn most_halves(params: &Params) -> u64 {
    1 << (2 * half_bits(room(params)))
}

/// The scale of scores: twice that of the products, since the two rows of a slot are parted by adding the conjugate.
fn score_scale(params: &Params) -> f64 {
    2.0 * product_scale(params, ROWS_LEVEL)
}

/// The scale of a sum of products at a level, rescaled.
fn product_scale(params: &Params, level: usize) -> f64 {
    ROW_SCALE * QUERY_SCALE / params.prime_at(level) as f64
}

/// Standard deviation of a score's error: of the real or imaginary part of a slot.
fn score_deviation(goal: &Goal, params: &Params) -> Result<f64, SearchError> {
    let n = params.degree() as f64;
    // |e|² of a slot, in integer units.
    let fresh = n * (ERROR_VARIANCE + ROUNDING_VARIANCE);
    let expansion = Expansion::new(params, goal.d)?;
    let query = expansion.variance(params, ROWS_LEVEL, fresh);
    // Σ q_j·e_j with |q| = 1, and Σ x_j·e_j with |x|² = 2 for the two rows of a slot, and the product of both errors.
    let terms = fresh / ROW_SCALE.powi(2)
        + 2.0 * query / QUERY_SCALE.powi(2)
        + goal.d as f64 * fresh * query / (ROW_SCALE * QUERY_SCALE).powi(2);
    let prime = params.prime_at(ROWS_LEVEL) as f64;
    let rescaled = (spread::switching(params, ROWS_LEVEL) / (prime * prime) + spread::division(params, 2))
        / product_scale(params, ROWS_LEVEL).powi(2);
    let switched = (spread::switching(params, SCORE_LEVEL) + spread::division(params, 2)) / score_scale(params).powi(2);
    Ok(((terms + rescaled) / 2.0 + switched / 2.0).sqrt())
}

/// log2 P(|x| > t) for a standard normal x, by the bound 2φ(t)/t.
fn log2_tail(t: f64) -> f64 {
    if t < 1.0 {
        return 0.0;
    }
    (-t * t / 2.0 - t.ln() + (2.0 / std::f64::consts::PI).sqrt().ln()) / std::f64::consts::LN_2
}

/// The quantile of the standard normal law, by that of Tukey's lambda law: to a few thousandths, enough for a sample of scores.
fn normal_quantile(p: f64) -> f64 {
    (p.powf(0.135) - (1.0 - p).powf(0.135)) / 0.1975
}

/// Bytes as a person reads them.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.0} KB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

impl Index {
    /// What it takes, what can go wrong and who learns what, in lines; seconds at a machine's prices.
    pub fn explain(&self, prices: Prices<'_>) -> String {
        let (goal, bytes, e, literal) = (self.goal(), self.bytes(), self.expected(), &self.params().literal().rlwe);
        let security = match literal.security.bits() {
            0 => "NO SECURITY (for tests)".into(),
            bits => format!("{bits} bits of security"),
        };
        let mut lines = vec![
            self.to_string(),
            format!(
                "ring degree {}, {} bits of data primes, {:.0} with special ones, {security}",
                self.params().degree(),
                literal.q_bits.iter().sum::<u32>(),
                self.params().log_qp()
            ),
            format!(
                "{}; an indicator is off by up to {:.1e} below the gap, {:.1e} above it, and by noise of {:.1e}",
                match self.threshold().steps() {
                    Steps::Polynomials(_) => format!("polynomials of degree {} and {}", DEGREES[0], DEGREES[1]),
                    Steps::Series(indicator) => format!(
                        "half a bootstrap with a series of degree {} and f²(3 − 2f) of its values f",
                        indicator.series.coefficients().len() - 1
                    ),
                },
                self.threshold().error_at_zero(),
                self.threshold().error_at_one(),
                e.indicator
            ),
            format!(
                "a count of {} rows is off by up to {:.2e} and by noise of {:.1e}; with up to {} matches it is wrong or refused with a probability under 2^{:.0} (if no score lies in the gap)",
                goal.rows,
                e.bias,
                e.count,
                e.matches,
                e.log2_failure.max(-1000.0)
            ),
            format!("a count takes about {:.2} s on one thread, rows in memory", self.seconds(prices)),
            format!(
                "stored {}; keys {}, a question {}, the answer to a count {}, all scores {}",
                size(bytes.database),
                size(bytes.keys),
                size(bytes.query),
                size(bytes.count),
                size(bytes.scores)
            ),
            format!(
                "the server's memory: {} and {} for rows that are kept; what is not kept is read for every question",
                size(bytes.memory),
                size(bytes.rows)
            ),
        ];
        if goal.payload.is_some() {
            lines.push(format!(
                "a fetch answers {} whatever matches; a payload's digit is off by {:.1e} for one match",
                size(bytes.fetch),
                e.digit
            ));
        }
        lines.push(
            "the server learns: the plan, how many rows are stored in lots, when and what kind of question is asked, thresholds; \
             not rows, questions, matches or their number"
                .into(),
        );
        lines.push("the owner of the key learns: what is asked for, and with scores() all scores".into());
        lines.join("\n")
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Goal { d, rows, above, gap, lowest, payload } = self.goal();
        write!(
            f,
            "an index of up to {rows} vectors of {d} coordinates, matches above {above}, no score in ({:.4}, {:.4})",
            gap.low, gap.high
        )?;
        if *lowest > -1.0 {
            write!(f, " or under {lowest}")?;
        }
        match payload {
            Some(p) => write!(f, ", with {} numbers of {} bits each ({})", p.numbers, p.bits, p.dtype()),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({:?})", self.goal())
    }
}
