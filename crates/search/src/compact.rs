//! Compact mode: scores in a small ring under one prime of 31 bits, 8 bytes a coordinate, and half a bootstrap for their indicators.
//!
//! Rows are coefficients, 2,048 a block; the question is d ciphertexts of constants. A block's scores are Σ_j column_j·q_j, three parts
//! that are neither relinearised nor rescaled. The phase over the prime, times a period P, is the score modulo P. Sixteen blocks
//! are packed into one ciphertext of N = 2^15, and its values are those of a step on a circle of length P
//! ([`sudare_rlwe::interleaved`], [`Series`]). f²(3 − 2f) of such a value f squares what errors are left.

use crate::error::SearchError;
use crate::plan::Goal;
use crate::threshold::Gap;
use num_complex::Complex64;
use std::f64::consts::TAU;
use sudare_he::circuits::bootstrapping::{BootstrapLiteral, BootstrapParams, Kind, SeriesNoise};
use sudare_he::circuits::mod1::{Series, Step};
use sudare_he::circuits::polynomial::{Polynomial, PolynomialCircuit};
use sudare_he::ckks::{EncodeAt, Params};
use sudare_rlwe::Work;
use sudare_rlwe::noise::ERROR_VARIANCE;
use sudare_rlwe::params::{ParamsLiteral, SchemeTag};

/// log2 of the scale of questions.
const LOG_QUERY_SCALE: u32 = 18;
/// Scale of questions.
pub(crate) const QUERY_SCALE: f64 = (1u64 << LOG_QUERY_SCALE) as f64;
/// log2 of how many blocks a ciphertext packs, and of the least degree of a block.
const LOG_BLOCKS: u32 = 4;
const LOG_LEAST: u32 = 9;
/// Deviations of a score's error by which the step's arcs are longer than the scores they stand for.
const MARGIN: f64 = 11.0;
/// Degrees of series, the best first: where the gap is wide, a lower one leaves nothing but rounding.
const DEGREES: [usize; 4] = [31, 23, 15, 7];
/// Scale of a series' values.
pub(crate) const SERIES_SCALE: f64 = (1u64 << 33) as f64;
/// Scale of indicators: the prime by which their products with payloads are rescaled.
const INDICATOR_SCALE: f64 = (1u64 << 34) as f64;
/// Most that they are.
pub(crate) const SERIES_REACH: f64 = 1.25;
/// Scores at which a step is looked at, on either side.
const GRID: u32 = 48;

/// What a compact plan has beside its parameters.
pub(crate) struct Compact {
    /// The small ring.
    pub small: Params,
    /// The half bootstrap.
    pub half: BootstrapParams,
    /// What half a bootstrap takes.
    pub figures: Figures,
    /// P.
    period: f64,
    /// Standard deviation of a score's error.
    pub deviation: f64,
    /// The least score.
    lowest: f64,
}

/// What half a bootstrap of one ciphertext takes.
pub(crate) struct Figures {
    pub work: Work,
    pub key_switches: u64,
    /// Bytes of its keys as they travel.
    pub keys: u64,
    /// Bytes of keys and diagonals in memory.
    pub held: u64,
    /// Bytes that it works in.
    pub working: u64,
}

impl Figures {
    fn of(half: &BootstrapParams) -> Result<Self, SearchError> {
        Ok(Self {
            work: half.cost(Kind::Complex)?,
            key_switches: half.operations(Kind::Complex)?.iter().map(|step| step.key_switches).sum(),
            keys: half.wire_bytes()?,
            held: half.key_bytes()? + half.diagonal_bytes()?,
            working: half.working_bytes(1)?,
        })
    }
}

impl Compact {
    pub fn new(goal: &Goal, insecure: Option<u32>) -> Result<Self, SearchError> {
        let literal = match insecure {
            None => BootstrapLiteral::h(),
            Some(log_n) => BootstrapLiteral::h().insecure(log_n)?,
        };
        let half = literal.build()?;
        let own = half.params().literal();
        let small = ParamsLiteral {
            log_n: own.log_n.saturating_sub(LOG_BLOCKS).max(LOG_LEAST),
            p_bits: vec![],
            digit_limbs: 1,
            ..own.rlwe.clone()
        };
        let small = small.build_over(SchemeTag(LOG_QUERY_SCALE), &[half.params().prime_at(0)], &[])?;
        // What the circle has between 1 and the least score is as long as the gap.
        let period = 1.0 - goal.lowest + goal.gap.high - goal.gap.low;
        let figures = Figures::of(&half)?;
        let mut out = Self { small: Params::of(&small)?, half, figures, period, deviation: 0.0, lowest: goal.lowest };
        out.deviation = out.score_deviation(goal.d as f64);
        Ok(out)
    }

    /// Rows of a block.
    pub fn block(&self) -> usize {
        self.small.degree()
    }

    /// Scale of rows: a score times both scales is P parts of the prime.
    pub fn row_scale(&self) -> f64 {
        (self.small.prime_at(0) as f64 / (self.period * QUERY_SCALE)).floor()
    }

    /// How rows are encoded.
    pub fn rows_at(&self) -> EncodeAt {
        EncodeAt { level: 0, scale: self.row_scale(), max_abs: 1.0 }
    }

    /// How coordinates of questions are encoded.
    pub fn query_at(&self) -> EncodeAt {
        EncodeAt { level: 0, scale: QUERY_SCALE, max_abs: 1.0 }
    }

    /// What of the prime a score of one is.
    fn circle(&self) -> f64 {
        self.row_scale() * QUERY_SCALE / self.small.prime_at(0) as f64
    }

    /// Σ x_j·e_j over the rows of a block, Σ q_j·e_j with |q| = 1, the products of both errors, and both roundings.
    fn score_deviation(&self, d: f64) -> f64 {
        let (n, rows) = (self.block() as f64, self.row_scale());
        let fresh = ERROR_VARIANCE * n / QUERY_SCALE.powi(2) + ERROR_VARIANCE / rows.powi(2);
        let both = ERROR_VARIANCE.powi(2) * n * d / (rows * QUERY_SCALE).powi(2);
        (fresh + both + (rows.powi(-2) + QUERY_SCALE.powi(-2)) / 12.0).sqrt()
    }

    /// The step of a gap.
    pub fn indicator(&self, gap: Gap) -> Result<Indicator, SearchError> {
        let (Gap { low, high }, margin, lowest) = (gap, MARGIN * self.deviation, self.lowest);
        let sound = (-1.0..=0.0).contains(&lowest) && low >= 0.0 && lowest < low && high <= 1.0 - 1e-3;
        let between = high - low - 2.0 * margin;
        let centre = (1.0 + high) / 2.0;
        let near = (1.0 - high) / 2.0 + margin;
        // Zero on both sides, the other of which ends before the least score.
        let far = (near + between).min(lowest - margin + self.period - centre);
        if !(sound && between > 0.0 && far > near) {
            let found = format!("({low}, {high}) above {lowest}");
            let wanted = "−1 ≤ lowest ≤ 0 ≤ low, lowest < low, high < 0.999, wider than 22 deviations of a score";
            return Err(SearchError::Goal { what: "a gap", found, wanted });
        }
        let step =
            Step { centre: centre * self.circle(), near: near * self.circle(), far: far * self.circle(), weight: 1.0 };
        let mut fits = DEGREES.iter().map(|degree| Series::step(step, *degree));
        let series = fits.find(Result::is_ok).unwrap_or_else(|| Series::step(step, DEGREES[0]))?;
        let noise = self.half.series_noise(&series, SERIES_SCALE)?;
        let clean = clean(&self.half)?;
        Ok(Indicator { series, noise, clean, circle: self.circle(), deviation: self.deviation, lowest })
    }
}

/// f²(3 − 2f).
pub(crate) fn clean(half: &BootstrapParams) -> Result<PolynomialCircuit, SearchError> {
    let polynomial = Polynomial::power(&[0.0, 0.0, 3.0, -2.0], SERIES_REACH)?;
    Ok(PolynomialCircuit::new(half.params(), &polynomial, half.output_level(), SERIES_SCALE, INDICATOR_SCALE)?)
}

/// A step, and predicted errors of its values.
#[derive(Debug)]
pub(crate) struct Indicator {
    pub series: Series,
    noise: SeriesNoise,
    clean: PolynomialCircuit,
    /// What of a circle a score of one is.
    circle: f64,
    deviation: f64,
    lowest: f64,
}

impl Indicator {
    /// The indicator of a score, in the clear.
    pub fn value(&self, score: f64) -> f64 {
        let f = self.series.evaluate(Complex64::cis(TAU * score * self.circle));
        f * f * (3.0 - 2.0 * f)
    }

    /// Mean and variance of the series' value of a score, which has its own error.
    fn rough(&self, score: f64) -> (f64, f64) {
        self.noise.at(score * self.circle, (self.deviation * self.circle).powi(2))
    }

    /// Mean and variance of the indicator of a score.
    pub fn moments(&self, score: f64) -> (f64, f64) {
        let (f, variance) = self.rough(score);
        let (slope, bend) = (6.0 * f * (1.0 - f), 6.0 - 12.0 * f);
        let added = self.clean.variance(&[f.into()], 0.0) / 2.0;
        let mean = f * f * (3.0 - 2.0 * f) + bend * variance / 2.0;
        // The variance of a Gaussian's square.
        (mean, slope * slope * variance + bend * bend * variance * variance / 2.0 + added)
    }

    /// Largest bias on each side of a gap.
    pub fn errors(&self, gap: Gap) -> [f64; 2] {
        let largest = |from: f64, to: f64, value: f64| {
            let at = |i: u32| (self.moments(from + (to - from) * f64::from(i) / f64::from(GRID)).0 - value).abs();
            (0..=GRID).map(at).fold(0.0, f64::max)
        };
        [largest(self.lowest, gap.low, 0.0).max(self.moments(0.0).0.abs()), largest(gap.high, 1.0, 1.0)]
    }

    /// Largest standard deviations over all scores: of the series' values and of indicators.
    pub fn deviations(&self) -> [f64; 2] {
        let scores = (0..=4 * GRID).map(|i| self.lowest + (1.0 - self.lowest) * f64::from(i) / f64::from(4 * GRID));
        let both = scores.map(|s| [self.rough(s).1, self.moments(s).1]);
        both.fold([0.0, 0.0], |[a, b], [x, y]| [f64::max(a, x), f64::max(b, y)]).map(f64::sqrt)
    }
}
