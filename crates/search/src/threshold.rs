//! Thresholds: a polynomial of degree 15 and one of degree 7 in a row, which are near 0 on scores under a gap and near 1 above it.
//!
//! Few rows match and many do not, and errors at zero add up over all of them, those at one over matches. So both fits are
//! weighted: of some pairs of weights those are taken that leave the least error at one, where the rows allow for that at zero. The fits are minimax (Remez 1934; the composition is that of
//! Lee–Lee–No–Kim, ePrint 2021/1215, for sign functions).

use crate::compact::Indicator;
use crate::error::SearchError;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sudare_he::circuits::polynomial::Polynomial;
use sudare_he::circuits::polynomial::weighted::{Piece, distance, weighted};

/// Degrees of both polynomials: seven levels.
pub const DEGREES: [usize; 2] = [15, 7];
/// How many times errors at zero count in the first polynomial and in the second.
const WEIGHTS: [[f64; 2]; 7] =
    [[4.0, 300.0], [1.0, 1000.0], [4.0, 100.0], [0.5, 100.0], [2.0, 30.0], [2.0, 10.0], [1.0, 1.0]];
/// Most that errors at zero may add up to in a count.
const BIAS: f64 = 0.2;
/// Most that they do where errors at one are made small.
const SMALL_BIAS: f64 = BIAS / 4.0;
/// Most that an indicator may be off by above the gap.
pub const ERROR_AT_ONE: f64 = 0.05;
/// How far scores may be off: the fits reach so much further on every side.
pub const MARGIN: f64 = 0.002;
/// The same of what the first polynomial leaves.
const SECOND_MARGIN: f64 = 1e-4;
/// Points on which errors are looked for.
const GRID: usize = 4000;

/// No score lies between two ends: a promise of who asks. Scores that do come out as numbers between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// Scores up to here are no matches.
    pub low: f64,
    /// Scores from here on are.
    pub high: f64,
}

impl Gap {
    /// The same gap about another threshold, `above`, which lies in it as `of` lies in this one.
    #[must_use]
    pub fn moved(self, of: f64, above: f64) -> Self {
        Self { low: self.low + above - of, high: self.high + above - of }
    }
}

/// How scores become indicators.
#[derive(Clone, Debug)]
pub(crate) enum Steps {
    /// Two polynomials in a row.
    Polynomials([Polynomial; 2]),
    /// A series on the circle, and f²(3 − 2f) of its value f.
    Series(Arc<Indicator>),
}

/// The steps for a gap, and how far from 0 and 1 they are.
#[derive(Clone, Debug)]
pub struct Threshold {
    gap: Gap,
    steps: Steps,
    errors: [f64; 2],
}

impl Threshold {
    /// For scores from `lowest` on (−1 if nothing is known of the data), of which `rows` are added up. Zero, the score of
    /// places without a row, is one of those under the gap.
    ///
    /// # Errors
    /// [`SearchError::Goal`] for a gap outside of [0, 1) or out of order, and for `lowest` above zero; what the fits refuse.
    pub fn new(gap: Gap, lowest: f64, rows: u64) -> Result<Self, SearchError> {
        let Gap { low, high } = gap;
        let sound = (-1.0..=0.0).contains(&lowest)
            && low >= 0.0
            && lowest < low
            && low + 4.0 * MARGIN < high
            && high <= 1.0 - MARGIN;
        if !sound {
            let found = format!("({low}, {high}) above {lowest}");
            let wanted = "−1 ≤ lowest ≤ 0 ≤ low, lowest < low, low + 0.008 < high ≤ 0.998";
            return Err(SearchError::Goal { what: "a gap", found, wanted });
        }
        let intervals = [(lowest - MARGIN, low + MARGIN), (high - MARGIN, 1.0 + MARGIN)];
        let pieces = |intervals: [(f64, f64); 2], weight| {
            [
                Piece { interval: intervals[0], value: 0.0, weight },
                Piece { interval: intervals[1], value: 1.0, weight: 1.0 },
            ]
        };
        let mut fits = Vec::new();
        for weights in WEIGHTS {
            let first = weighted(&pieces(intervals, weights[0]), DEGREES[0])?;
            let left = [0, 1].map(|i| distance(&[&first], i as f64, intervals[i], GRID) + SECOND_MARGIN);
            if left[0] + left[1] >= 0.9 {
                continue;
            }
            let between = [(-left[0], left[0]), (1.0 - left[1], 1.0 + left[1])];
            let second = weighted(&pieces(between, weights[1]), DEGREES[1])?;
            let errors = [0, 1].map(|i| distance(&[&first, &second], i as f64, intervals[i], GRID) * 1.01);
            fits.push(Self { gap, steps: Steps::Polynomials([first, second]), errors });
        }
        // Those with a small bias by their errors at one, before the others by their errors at zero.
        let rank = |t: &Self| {
            let large = t.errors[0] * rows as f64 > SMALL_BIAS;
            (large, t.errors[usize::from(!large)])
        };
        let best = fits.into_iter().min_by(|a, b| rank(a).0.cmp(&rank(b).0).then(rank(a).1.total_cmp(&rank(b).1)));
        best.ok_or_else(|| SearchError::Goal {
            what: "a gap",
            found: format!("({low}, {high})"),
            wanted: "a wider one",
        })
    }

    /// The series of compact mode.
    pub(crate) fn compact(gap: Gap, indicator: Indicator) -> Self {
        let errors = indicator.errors(gap).map(|e| e * 1.01);
        Self { gap, steps: Steps::Series(Arc::new(indicator)), errors }
    }

    /// How scores become indicators.
    pub(crate) fn steps(&self) -> &Steps {
        &self.steps
    }

    /// Whether so many rows are counted right.
    pub(crate) fn is_sure(&self, rows: u64) -> bool {
        self.error_at_zero() * rows as f64 <= BIAS && self.error_at_one() <= ERROR_AT_ONE
    }

    /// The gap.
    pub fn gap(&self) -> Gap {
        self.gap
    }

    /// The largest distance from 0 under the gap.
    pub fn error_at_zero(&self) -> f64 {
        self.errors[0]
    }

    /// The largest distance from 1 above it.
    pub fn error_at_one(&self) -> f64 {
        self.errors[1]
    }

    /// The indicator of a score, in the clear.
    pub fn value(&self, score: f64) -> f64 {
        match &self.steps {
            Steps::Polynomials([first, second]) => second.evaluate(first.evaluate(score).re).re,
            Steps::Series(indicator) => indicator.value(score),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_at_zero_are_small() {
        // The gaps of the public benchmark, for scores from −low on and from −1 on.
        for (low, high, known, any) in [(0.66, 0.82, 6e-7, 3e-6), (0.52, 0.82, 4e-9, 8e-8), (0.40, 0.82, 3e-11, 2e-9)] {
            let gap = Gap { low, high };
            let [narrow, wide] = [-low, -1.0].map(|lowest| Threshold::new(gap, lowest, u64::MAX).unwrap());
            assert!(
                narrow.error_at_zero() < known && wide.error_at_zero() < any,
                "{gap:?}: {:?} {:?}",
                narrow.errors,
                wide.errors
            );
            assert!(narrow.error_at_one() < 3e-4 && wide.error_at_one() < 2e-3);
            for i in 0..=1000 {
                let score = -1.0 + 2.0 * f64::from(i) / 1000.0;
                let indicator = wide.value(score);
                if score <= low {
                    assert!(indicator.abs() <= wide.error_at_zero());
                } else if score >= high {
                    assert!((indicator - 1.0).abs() <= wide.error_at_one());
                } else {
                    assert!((-0.01..1.01).contains(&indicator), "{score}: {indicator}");
                }
            }
        }
    }

    /// What few rows do not need is spent above the gap.
    #[test]
    fn fewer_rows_leave_less_error_at_one() {
        let gap = Gap { low: 0.66, high: 0.82 };
        let [few, many] = [2_000, u64::MAX].map(|rows| Threshold::new(gap, -1.0, rows).unwrap());
        assert!(few.error_at_one() < many.error_at_one() / 3.0, "{:?} {:?}", few.errors, many.errors);
        assert!(few.is_sure(2_000) && many.error_at_zero() < few.error_at_zero());
    }

    #[test]
    fn gaps_that_are_none_are_refused() {
        for (low, high, lowest) in [
            (0.8, 0.6, -1.0),
            (0.8, 0.8, -1.0),
            (0.5, 1.0, -1.0),
            (0.5, 0.7, 0.6),
            (0.5, 0.7, 0.1),
            (-0.1, 0.3, -1.0),
            (-0.5, -0.1, -1.0),
            (0.0, 0.3, 0.0),
            (f64::NAN, 0.5, -1.0),
            (0.80, 0.81, -1.0),
        ] {
            let sure = Threshold::new(Gap { low, high }, lowest, 1000).is_ok_and(|t| t.is_sure(1000));
            assert!(!sure, "{low} {high}");
        }
    }
}
