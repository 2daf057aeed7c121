//! What an index is for, the parameters it takes, and what it costs and promises.

use crate::error::SearchError;
use crate::layout::{HALF_BITS, Payloads, Shape};
use crate::threshold::{DEGREES, Gap, Threshold};
use num_complex::Complex64;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use sudare_he::circuits::expansion::Expansion;
use sudare_he::circuits::polynomial::PolynomialCircuit;
use sudare_he::ckks::{Params, ParamsLiteral, spread};
use sudare_rlwe::keys::KeySwitchKey;
use sudare_rlwe::noise::{ERROR_VARIANCE, ROUNDING_VARIANCE};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::wire::ALIGNMENT;
use sudare_rlwe::wire::packing::packed_bytes;
use sudare_rlwe::{self as rlwe, Work};

/// Version of plans that this release makes and reads.
const VERSION: u32 = 1;
/// Rows an index has at most: numbers of half blocks have two digits of eight bits.
pub const MAX_ROWS: u64 = 1 << 28;
/// Coordinates at most.
pub const MAX_D: usize = 1 << 12;
/// Payload numbers of a row at most.
pub const MAX_NUMBERS: usize = 256;

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
/// Bits of a payload's digit at most: what errors allow for.
const DIGIT_BITS: std::ops::RangeInclusive<u32> = 8..=10;

/// Numbers that come back with a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payload {
    /// How many for each row.
    pub numbers: usize,
    /// Bits of each, 1 to 64: unsigned integers.
    pub bits: u32,
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
    /// Counting rows above a threshold, with the narrowest gap about it that is counted right.
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
        let most = (1.0 - above).min(above + 1.0) - 0.003;
        let enough =
            |half: f64| Threshold::new(goal(half).gap, -1.0).is_ok_and(|t| t.error_at_zero() * rows as f64 <= BIAS);
        if !(most > 0.0 && enough(most)) {
            let found = above.to_string();
            return Err(SearchError::Goal {
                what: "a threshold",
                found,
                wanted: "a number further from −1 and 1, or a gap",
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
        match self.payload {
            Some(p) if !(1..=MAX_NUMBERS).contains(&p.numbers) || !(1..=64).contains(&p.bits) => refuse(
                "a payload",
                format!("{} numbers of {} bits", p.numbers, p.bits),
                "1 to 256 numbers of 1 to 64 bits",
            ),
            _ => Ok(()),
        }
    }
}

/// Most that the errors of the polynomials may add up to in a count.
const BIAS: f64 = 0.2;

/// What a plan foretells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Standard deviation of a score's error.
    pub score: f64,
    /// Standard deviation of the error of an indicator of a row that does not match.
    pub indicator: f64,
    /// Bound on what the polynomials add to a count of all rows.
    pub bias: f64,
    /// Standard deviation of a count's error.
    pub count: f64,
    /// Standard deviation of the error of a payload's digit, for one match.
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
}

struct Inner {
    goal: Goal,
    params: Params,
    threshold: Threshold,
    expected: Expected,
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
        Self::over(goal, literal(14, Security::Bits128))
    }

    /// The same in a ring of degree 2^`log_n` without a claim of security: for tests.
    ///
    /// # Errors
    /// As [`Index::new`].
    pub fn insecure(goal: Goal, log_n: u32) -> Result<Self, SearchError> {
        Self::over(goal, literal(log_n, Security::Insecure))
    }

    fn over(goal: Goal, literal: ParamsLiteral) -> Result<Self, SearchError> {
        goal.check()?;
        let threshold = Threshold::new(goal.gap, goal.lowest)?;
        if threshold.error_at_zero() * goal.rows as f64 > BIAS {
            return Err(refused_gap(&goal));
        }
        let params = literal.build()?;
        let expected = expected(&goal, &params, &threshold)?;
        Ok(Self(Arc::new(Inner { goal, params, threshold, expected })))
    }

    /// What is wanted.
    pub fn goal(&self) -> &Goal {
        &self.0.goal
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.0.params
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
        if gap == self.0.goal.gap {
            return Ok(self.0.threshold.clone());
        }
        let goal = Goal { gap, above: (gap.low + gap.high) / 2.0, ..self.0.goal };
        let threshold = Threshold::new(gap, goal.lowest)?;
        if threshold.error_at_zero() * goal.rows as f64 > BIAS {
            return Err(refused_gap(&goal));
        }
        Ok(threshold)
    }

    /// What it foretells of errors.
    pub fn expected(&self) -> &Expected {
        &self.0.expected
    }

    /// Rows of a segment.
    pub fn segment_rows(&self) -> usize {
        self.shape().rows()
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape { slots: self.0.params.slots() }
    }

    pub(crate) fn payloads(&self) -> Option<Payloads> {
        self.0
            .goal
            .payload
            .map(|p| Payloads::new(p, digit_bits(&self.0.goal, &self.0.params, self.0.expected.indicator)))
    }

    /// Segments of as many rows as are planned.
    pub fn segments(&self) -> u64 {
        self.0.goal.rows.div_ceil(self.segment_rows() as u64)
    }

    pub(crate) fn expansion(&self) -> Result<Expansion, SearchError> {
        Ok(Expansion::new(&self.0.params, self.0.goal.d)?)
    }

    /// The level of the relinearisation key, and the Galois elements with theirs.
    ///
    /// # Errors
    /// None for a plan that was made.
    pub fn keys(&self) -> Result<(usize, Vec<(u64, usize)>), SearchError> {
        let params = &self.0.params;
        let mut keys: Vec<(u64, usize)> = self.expansion()?.elements().into_iter().map(|e| (e, ROWS_LEVEL)).collect();
        keys.push((params.conjugation_element(), SCORE_LEVEL));
        keys.extend((0..params.slots().trailing_zeros()).map(|i| (params.rotation_element(1 << i), INDICATOR_LEVEL)));
        Ok((ROWS_LEVEL, keys))
    }

    /// Both circuits of a threshold.
    pub(crate) fn circuits(&self, threshold: &Threshold) -> Result<[PolynomialCircuit; 2], SearchError> {
        circuits(&self.0.params, threshold)
    }

    /// What a count of one question takes.
    pub fn work(&self) -> Work {
        let (literal, segments) = (&self.0.params.literal().rlwe, self.segments() as f64);
        let d = self.0.goal.d as f64;
        let expand = Work::rotation(literal, ROWS_LEVEL) * self.expansion().map_or(0.0, |e| e.key_switches() as f64);
        let scores = Work::passes_at(literal, ROWS_LEVEL, 4.0 * d);
        // Relinearisations of degree 15 are at levels 8, 7, 7, 6, 6, 5, 5, those of degree 7 at 4, 3, 3, 2.
        let compared = [8, 7, 7, 6, 6, 5, 5, 4, 3, 3, 2];
        let compare = compared.iter().fold(Work::default(), |w, l| w + Work::relinearize_rescale(literal, *l));
        let segment = scores
            + Work::relinearize_rescale(literal, ROWS_LEVEL)
            + Work::rotation(literal, SCORE_LEVEL)
            + compare * 2.0;
        let rounds = self.0.params.slots().trailing_zeros();
        expand + segment * segments + Work::rotation(literal, INDICATOR_LEVEL) * f64::from(rounds)
    }

    /// Seconds of a count on one thread, rows in memory, where a transform with all that belongs to it takes `transform`
    /// seconds (0.050 ms on one thread of a Zen 4 at N = 2^14).
    pub fn seconds(&self, transform: f64) -> f64 {
        let work = self.work();
        // A term of the scores takes as long as 0.8 transforms for each prime: it streams three parts through memory.
        let scores = 0.8 * (ROWS_LEVEL + 1) as f64 * self.0.goal.d as f64 * self.segments() as f64;
        transform * (work.ntt + work.ntt_wide + scores)
    }

    /// Bytes of what is stored, sent and held.
    pub fn bytes(&self) -> Bytes {
        let params = &self.0.params;
        let degree = params.degree() as u64;
        let packed = |level: usize| packed_bytes(params.q_at(level)).next_multiple_of(ALIGNMENT) + 2 * ALIGNMENT;
        let held = |level: usize, parts: u64| (level as u64 + 1) * degree * 8 * parts;
        let (segments, d) = (self.segments(), self.0.goal.d as u64);
        let payload = self.payloads().map_or(0, |p| p.ciphertexts() as u64);
        let keys = self.keys().map_or(0, |(relin, galois)| {
            let levels = galois.iter().map(|k| k.1).chain([relin]);
            levels.map(|l| params.digits_at(l) as u64 * packed_bytes(params.qp_at(l))).sum::<u64>()
        });
        let keys_held = self.keys().map_or(0, |(relin, galois)| {
            let levels = galois.iter().map(|k| k.1).chain([relin]);
            levels.map(|l| KeySwitchKey::bytes_at(&params.literal().rlwe, l) as u64).sum::<u64>()
        });
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
        }
    }

    /// Names the plan: parties that have one name have one plan.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("sudare search plan v1");
        hasher.update(self.to_json().as_bytes()).update(&self.0.params.hash().0);
        *hasher.finalize().as_bytes()
    }

    /// The plan as text.
    pub fn to_json(&self) -> String {
        let literal = &self.0.params.literal().rlwe;
        let insecure = (literal.security == Security::Insecure).then_some(literal.log_n);
        let written = Written { sudare_index: VERSION, goal: self.0.goal, insecure };
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
        let written: Written = serde_json::from_str(text).map_err(|e| damaged(format!("no plan of an index: {e}")))?;
        if written.sudare_index != VERSION {
            return Err(damaged(format!(
                "version {} of plans is unknown here; use a newer release",
                written.sudare_index
            )));
        }
        match written.insecure {
            None => Self::new(written.goal),
            Some(log_n) => Self::insecure(written.goal, log_n),
        }
    }
}

/// Columns that are read or decoded at a time.
pub(crate) const CHUNK: usize = 16;

fn refused_gap(goal: &Goal) -> SearchError {
    let mut possible = goal.lowest;
    let (mut bad, mut good) = (goal.gap.low, goal.lowest + 0.01);
    for _ in 0..12 {
        let low = (bad + good) / 2.0;
        let gap = Gap { low, high: goal.gap.high };
        if Threshold::new(gap, goal.lowest).is_ok_and(|t| t.error_at_zero() * goal.rows as f64 <= BIAS) {
            (good, possible) = (low, low);
        } else {
            bad = low;
        }
    }
    SearchError::Gap { gap: goal.gap, rows: goal.rows, possible }
}

/// The scale of scores: twice that of the products, since the two rows of a slot are parted by adding the conjugate.
fn score_scale(params: &Params) -> f64 {
    2.0 * product_scale(params, ROWS_LEVEL)
}

/// The scale of a sum of products at a level, rescaled.
fn product_scale(params: &Params, level: usize) -> f64 {
    ROW_SCALE * QUERY_SCALE / params.prime_at(level) as f64
}

fn circuits(params: &Params, threshold: &Threshold) -> Result<[PolynomialCircuit; 2], SearchError> {
    let (first, second) = (threshold.first(), threshold.second());
    Ok([
        PolynomialCircuit::new(params, first, SCORE_LEVEL, score_scale(params), FIRST_SCALE)?,
        PolynomialCircuit::new(params, second, FIRST_LEVEL, FIRST_SCALE, INDICATOR_SCALE)?,
    ])
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

fn expected(goal: &Goal, params: &Params, threshold: &Threshold) -> Result<Expected, SearchError> {
    let score = score_deviation(goal, params)?;
    let [first, second] = circuits(params, threshold)?;
    // Scores of rows that do not match: a normal law of deviation 1/√d, up to the gap.
    let deviation = 1.0 / (goal.d as f64).sqrt();
    let scores: Vec<Complex64> = (0..64)
        .map(|i| {
            let quantile = normal_quantile((f64::from(i) + 0.5) / 64.0) * deviation;
            Complex64::from(quantile.clamp(goal.lowest, goal.gap.low))
        })
        .collect();
    let after = first.variance(&scores, 2.0 * score * score);
    let between: Vec<Complex64> = scores.iter().map(|s| threshold.first().evaluate(*s)).collect();
    let indicator = (second.variance(&between, after) / 2.0).sqrt();
    let bias = threshold.error_at_zero() * goal.rows as f64;
    let count = indicator * (goal.rows as f64).sqrt();
    let digit = digit_deviation(goal, params, indicator, digit_bits(goal, params, indicator));
    Ok(Expected { score, indicator, bias, count, digit, log2_failure: log2_tail((CLEAR - bias) / count) })
}

/// Standard deviation of the error of a digit of some bits, for one match.
///
/// All rows' indicators are multiplied with digits, and each digit is divided by the column of the number one, which has the
/// error of its own encryption.
fn digit_deviation(goal: &Goal, params: &Params, indicator: f64, bits: u32) -> f64 {
    let halves = goal.rows.div_ceil(params.slots() as u64) as f64;
    let (size, wide) = (f64::from(bits).exp2(), f64::from(bits.max(HALF_BITS)));
    let fresh = (params.degree() as f64 * ERROR_VARIANCE / 2.0).sqrt() / (33.0 - wide).exp2();
    size.hypot(1.0) * fresh.hypot(indicator * halves.sqrt())
}

/// The widest digits whose errors stay six deviations under a quarter.
fn digit_bits(goal: &Goal, params: &Params, indicator: f64) -> u32 {
    let Some(payload) = goal.payload else { return *DIGIT_BITS.start() };
    let fits = |w: &u32| digit_deviation(goal, params, indicator, *w) * 6.0 < CLEAR;
    let widest = DIGIT_BITS.rev().find(fits).unwrap_or(*DIGIT_BITS.start());
    // As many digits as these take, and no wider than they need be.
    payload.bits.div_ceil(payload.bits.div_ceil(widest))
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
    /// What it takes, what can go wrong and who learns what, in lines; seconds for a `transform` as in [`Index::seconds`].
    pub fn explain(&self, transform: f64) -> String {
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
                "polynomials of degree {} and {}; an indicator is off by up to {:.1e} below the gap, {:.1e} above it, and by noise of {:.1e}",
                DEGREES[0],
                DEGREES[1],
                self.threshold().error_at_zero(),
                self.threshold().error_at_one(),
                e.indicator
            ),
            format!(
                "a count of {} rows is off by up to {:.2e} and by noise of {:.1e}; it is wrong or refused with a probability under 2^{:.0} (if no score lies in the gap)",
                goal.rows,
                e.bias,
                e.count,
                e.log2_failure.max(-1000.0)
            ),
            format!("a count takes about {:.2} s on one thread, rows in memory", self.seconds(transform)),
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
            Some(p) => write!(f, ", with {} numbers of {} bits each", p.numbers, p.bits),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({:?})", self.goal())
    }
}
