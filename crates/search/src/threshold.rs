//! Thresholds: a polynomial of degree 15 and one of degree 7 in a row, which are near 0 on scores under a gap and near 1 above it.
//!
//! Few rows match and many do not, and errors at zero add up over all of them. So both fits are weighted: an error at zero
//! counts four-fold in the first and 300-fold in the second. The fits are minimax (Remez 1934; the composition is that of
//! Lee–Lee–No–Kim, ePrint 2021/1215, for sign functions).

use crate::error::SearchError;
use serde::{Deserialize, Serialize};
use sudare_he::circuits::polynomial::Polynomial;
use sudare_he::circuits::polynomial::weighted::{Piece, distance, weighted};

/// Degrees of both polynomials: seven levels.
pub const DEGREES: [usize; 2] = [15, 7];
/// How many times errors at zero count, in each.
const WEIGHTS: [f64; 2] = [4.0, 300.0];
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

/// Both polynomials for a gap, and how far from 0 and 1 they are.
#[derive(Clone, Debug)]
pub struct Threshold {
    gap: Gap,
    first: Polynomial,
    second: Polynomial,
    errors: [f64; 2],
}

impl Threshold {
    /// For scores from `lowest` on: −1 if nothing is known of the data.
    ///
    /// # Errors
    /// [`SearchError::Goal`] for a gap outside of (`lowest`, 1) or out of order; what the fits refuse.
    pub fn new(gap: Gap, lowest: f64) -> Result<Self, SearchError> {
        let Gap { low, high } = gap;
        let sound = (-1.0..1.0).contains(&lowest) && lowest < low && low + 4.0 * MARGIN < high && high <= 1.0 - MARGIN;
        if !sound {
            let found = format!("({low}, {high}) above {lowest}");
            let wanted = "lowest < low, low + 0.008 < high ≤ 0.998, all in [−1, 1]";
            return Err(SearchError::Goal { what: "a gap", found, wanted });
        }
        let intervals = [(lowest - MARGIN, low + MARGIN), (high - MARGIN, 1.0 + MARGIN)];
        let pieces = |intervals: [(f64, f64); 2], weight| {
            [
                Piece { interval: intervals[0], value: 0.0, weight },
                Piece { interval: intervals[1], value: 1.0, weight: 1.0 },
            ]
        };
        let first = weighted(&pieces(intervals, WEIGHTS[0]), DEGREES[0])?;
        let left = [0, 1].map(|i| distance(&[&first], i as f64, intervals[i], GRID) + SECOND_MARGIN);
        if left[0] + left[1] >= 0.9 {
            let found = format!("({low}, {high})");
            return Err(SearchError::Goal { what: "a gap", found, wanted: "a wider one" });
        }
        let second = weighted(&pieces([(-left[0], left[0]), (1.0 - left[1], 1.0 + left[1])], WEIGHTS[1]), DEGREES[1])?;
        let errors = [0, 1].map(|i| distance(&[&first, &second], i as f64, intervals[i], GRID) * 1.01);
        Ok(Self { gap, first, second, errors })
    }

    /// The gap.
    pub fn gap(&self) -> Gap {
        self.gap
    }

    /// The polynomial of scores.
    pub fn first(&self) -> &Polynomial {
        &self.first
    }

    /// The polynomial of what the first one gives.
    pub fn second(&self) -> &Polynomial {
        &self.second
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
        self.second.evaluate(self.first.evaluate(score).re).re
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
            let [narrow, wide] = [-low, -1.0].map(|lowest| Threshold::new(gap, lowest).unwrap());
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

    #[test]
    fn gaps_that_are_none_are_refused() {
        for (low, high, lowest) in [
            (0.8, 0.6, -1.0),
            (0.8, 0.8, -1.0),
            (0.5, 1.0, -1.0),
            (0.5, 0.7, 0.6),
            (f64::NAN, 0.5, -1.0),
            (0.80, 0.81, -1.0),
        ] {
            assert!(Threshold::new(Gap { low, high }, lowest).is_err(), "{low} {high}");
        }
    }
}
