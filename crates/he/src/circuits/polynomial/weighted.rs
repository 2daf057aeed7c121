//! Minimax fits whose errors count differently on different intervals: of what is added up over many values that are to be small,
//! and few that are to be large.

use super::Polynomial;
use super::fit::{chebyshev_row, checked, exchange_to, nodes, rounded};
use crate::error::{HeError, parameters};

/// An interval, the function's constant value there, and how many times its errors count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Its ends.
    pub interval: (f64, f64),
    /// What the polynomial should be there.
    pub value: f64,
    /// What its error is multiplied by before it is compared with those elsewhere.
    pub weight: f64,
}

/// The polynomial of a degree whose largest weighted error from constants on some intervals is least, in Chebyshev
/// polynomials on their hull (Remez's exchange algorithm; the weights change nothing about the alternation).
///
/// # Errors
/// `RlweError::Parameters` for no intervals, intervals that are empty, overlap or are out of order, weights that are not above zero, a degree over
/// [`MAX_FIT_DEGREE`](super::fit::MAX_FIT_DEGREE), or if the exchange does not settle; [`HeError::NotFinite`].
pub fn weighted(pieces: &[Piece], degree: usize) -> Result<Polynomial, HeError> {
    let intervals: Vec<(f64, f64)> = pieces.iter().map(|p| p.interval).collect();
    let (from, to) = checked(&intervals, degree)?;
    if !pieces.iter().all(|p| p.weight > 0.0 && p.weight.is_finite()) || intervals.windows(2).any(|w| w[0].1 >= w[1].0)
    {
        return Err(parameters(
            "a weighted fit takes intervals in ascending order that do not meet, and finite weights above zero",
        ));
    }
    // Finer than for a single fit: what is left at zero is small beside the errors elsewhere.
    let per_interval = (200 * (degree + 2)).div_ceil(pieces.len());
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    for piece in pieces {
        for x in nodes(&[piece.interval], per_interval) {
            rows.push(chebyshev_row(x, (from, to), degree).into_iter().map(|t| t * piece.weight).collect());
            values.push(piece.value * piece.weight);
        }
    }
    // Rounding is that of the largest value, wherever it counts most.
    let largest = |x: fn(&Piece) -> f64| pieces.iter().map(x).fold(0.0, f64::max);
    let floor = 1e-15 * largest(|p| p.weight) * largest(|p| p.value.abs());
    let (coefficients, _) = exchange_to(floor, &rows, &values)?;
    Ok(rounded(Polynomial::chebyshev(&coefficients, from, to)?))
}

/// The largest distance of a chain of polynomials, each of the last one's value, from a constant on an interval, on a grid of
/// `points` intervals that crowd at the ends.
pub fn distance(chain: &[&Polynomial], value: f64, interval: (f64, f64), points: usize) -> f64 {
    let at = |x: f64| chain.iter().fold(x, |x, p| p.evaluate(x).re);
    nodes(&[interval], points).into_iter().map(|x| (at(x) - value).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(a: f64, b: f64, weight: f64) -> [Piece; 2] {
        [Piece { interval: (-a, a), value: 0.0, weight }, Piece { interval: (b, 1.002), value: 1.0, weight: 1.0 }]
    }

    /// The least error of degree 15 on these intervals is 4.104e-2. With errors at zero counted four-fold they are a quarter of
    /// those at one.
    #[test]
    fn weights_move_the_error() {
        let [zero, one] = step(0.662, 0.818, 1.0);
        let p = weighted(&[zero, one], 15).unwrap();
        let errors = [zero, one].map(|piece| distance(&[&p], piece.value, piece.interval, 4000));
        assert!(errors.iter().all(|e| (e - 4.104e-2).abs() < 2e-5), "{errors:?}");
        let [zero, one] = step(0.662, 0.818, 4.0);
        let p = weighted(&[zero, one], 15).unwrap();
        let errors = [zero, one].map(|piece| distance(&[&p], piece.value, piece.interval, 4000));
        assert!((errors[1] / errors[0] - 4.0).abs() < 1e-3, "{errors:?}");
        assert!(errors[0] < 4.104e-2 && errors[1] > 4.104e-2);
    }

    #[test]
    fn what_is_no_fit_is_refused() {
        let [zero, one] = step(0.6, 0.8, 1.0);
        for pieces in [
            vec![],
            vec![one, zero],
            vec![zero, Piece { weight: 0.0, ..one }],
            vec![Piece { interval: (0.5, 0.5), ..zero }],
        ] {
            assert!(weighted(&pieces, 7).is_err());
        }
    }
}
