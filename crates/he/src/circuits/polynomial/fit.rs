//! Fitting polynomials to functions on unions of intervals.

use super::Polynomial;
use crate::error::{HeError, parameters};
use num_complex::Complex64;

/// Exchanges of a minimax fit before it is given up; a dozen is usual.
const MOST_EXCHANGES: usize = 100;
/// Highest degree of a fit.
pub const MAX_FIT_DEGREE: usize = 512;

/// A minimax polynomial and its largest error on the points that it was fitted on.
#[derive(Clone, Debug)]
pub struct Minimax {
    /// The polynomial, on the hull of the intervals.
    pub polynomial: Polynomial,
    /// Largest |f − p|.
    pub error: f64,
}

/// The polynomial of a degree nearest to a complex function in the mean square over some intervals, in
/// Chebyshev polynomials on their hull.
///
/// # Errors
/// `RlweError::Parameters` for no intervals, empty ones, or a degree over [`MAX_FIT_DEGREE`];
/// [`HeError::NotFinite`] where the function is not.
pub fn least_squares(
    f: impl Fn(f64) -> Complex64,
    intervals: &[(f64, f64)],
    degree: usize,
) -> Result<Polynomial, HeError> {
    let (from, to) = hull(intervals, degree)?;
    let per_interval = (4 * (degree + 1)).div_ceil(intervals.len()).max(16);
    let points = nodes(intervals, per_interval);
    let values = points.iter().map(|x| f(*x)).collect::<Vec<_>>();
    if let Some(index) = values.iter().position(|v| !(v.re.is_finite() && v.im.is_finite())) {
        return Err(HeError::NotFinite { index });
    }
    let rows: Vec<Vec<f64>> = points.iter().map(|x| chebyshev_row(*x, (from, to), degree)).collect();
    let sides = [values.iter().map(|v| v.re).collect(), values.iter().map(|v| v.im).collect()];
    let [re, im] = solve_least_squares(rows, sides);
    let coefficients: Vec<Complex64> = re.into_iter().zip(im).map(|(re, im)| Complex64 { re, im }).collect();
    Polynomial::chebyshev(&coefficients, from, to)
}

/// The polynomial of a degree with the least largest error on some intervals (Remez's exchange
/// algorithm), in Chebyshev polynomials on their hull.
///
/// # Errors
/// As [`least_squares`]; `RlweError::Parameters` if the exchange does not settle.
pub fn minimax(f: impl Fn(f64) -> f64, intervals: &[(f64, f64)], degree: usize) -> Result<Minimax, HeError> {
    let (from, to) = hull(intervals, degree)?;
    // Nodes that crowd at the ends, where the extrema do.
    let per_interval = (40 * (degree + 2)).div_ceil(intervals.len()).max(64);
    let points = nodes(intervals, per_interval);
    let rows: Vec<Vec<f64>> = points.iter().map(|x| chebyshev_row(*x, (from, to), degree)).collect();
    let (coefficients, error) = exchange(&rows, &points.iter().map(|x| f(*x)).collect::<Vec<_>>())?;
    Ok(Minimax { polynomial: Polynomial::chebyshev(&coefficients, from, to)?, error })
}

/// Σ_j a_j·sin(jθ), j = 1 … `terms`, with the least largest error to a function on (0, `to`]; the
/// coefficients and the error.
///
/// # Errors
/// As [`minimax`].
pub fn minimax_sines(f: impl Fn(f64) -> f64, to: f64, terms: usize) -> Result<(Vec<f64>, f64), HeError> {
    let points: Vec<f64> = nodes(&[(-to, to)], 400 * (terms + 1)).into_iter().filter(|x| *x > 0.0).collect();
    let rows: Vec<Vec<f64>> = points.iter().map(|x| (1..=terms).map(|j| (j as f64 * x).sin()).collect()).collect();
    exchange(&rows, &points.iter().map(|x| f(*x)).collect::<Vec<_>>())
}

fn hull(intervals: &[(f64, f64)], degree: usize) -> Result<(f64, f64), HeError> {
    let good = |(a, b): &(f64, f64)| a.is_finite() && b.is_finite() && a < b;
    if intervals.is_empty() || !intervals.iter().all(good) || degree > MAX_FIT_DEGREE {
        return Err(parameters(format!(
            "a fit takes intervals with finite ends in order and degrees up to {MAX_FIT_DEGREE}, not {intervals:?} and {degree}"
        )));
    }
    let from = intervals.iter().map(|i| i.0).fold(f64::INFINITY, f64::min);
    let to = intervals.iter().map(|i| i.1).fold(f64::NEG_INFINITY, f64::max);
    Ok((from, to))
}

/// An odd number of Chebyshev nodes of each interval, both ends and the middle among them, ascending.
fn nodes(intervals: &[(f64, f64)], count: usize) -> Vec<f64> {
    let mut sorted = intervals.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let last = count.max(2) & !1;
    sorted
        .iter()
        .flat_map(|(a, b)| {
            (0..=last).map(move |i| {
                let u = (std::f64::consts::PI * i as f64 / last as f64).cos();
                (a + b) / 2.0 - (b - a) / 2.0 * u
            })
        })
        .collect()
}

/// T_0(u) … T_degree(u).
fn chebyshev_row(x: f64, (from, to): (f64, f64), degree: usize) -> Vec<f64> {
    let u = ((2.0 * x - from - to) / (to - from)).clamp(-1.0, 1.0);
    let angle = u.acos();
    (0..=degree).map(|k| (k as f64 * angle).cos()).collect()
}

/// argmin Σ_i |A·x − b|² for each right-hand side, by Householder reflections.
fn solve_least_squares<const S: usize>(mut a: Vec<Vec<f64>>, mut sides: [Vec<f64>; S]) -> [Vec<f64>; S] {
    let n = a.first().map_or(0, Vec::len);
    for k in 0..n {
        let norm = a[k..].iter().map(|row| row[k] * row[k]).sum::<f64>().sqrt();
        let alpha = if a[k][k] > 0.0 { -norm } else { norm };
        let mut v: Vec<f64> = a[k..].iter().map(|row| row[k]).collect();
        v[0] -= alpha;
        let square = v.iter().map(|x| x * x).sum::<f64>();
        if square == 0.0 {
            continue;
        }
        for j in k..n {
            let dot = v.iter().zip(&a[k..]).map(|(v, row)| v * row[j]).sum::<f64>() * 2.0 / square;
            v.iter().zip(&mut a[k..]).for_each(|(v, row)| row[j] -= dot * v);
        }
        for side in &mut sides {
            let dot = v.iter().zip(&side[k..]).map(|(v, y)| v * y).sum::<f64>() * 2.0 / square;
            v.iter().zip(&mut side[k..]).for_each(|(v, y)| *y -= dot * v);
        }
    }
    sides.map(|side| {
        let mut x = vec![0.0; n];
        for k in (0..n).rev() {
            let rest: f64 = (k + 1..n).map(|j| a[k][j] * x[j]).sum();
            x[k] = if a[k][k] == 0.0 { 0.0 } else { (side[k] - rest) / a[k][k] };
        }
        x
    })
}

/// Remez's exchange on points in order: `rows[i]` holds the basis functions at point i. The
/// functions are a Chebyshev system, so that the best sum has one more alternation than functions.
fn exchange(rows: &[Vec<f64>], values: &[f64]) -> Result<(Vec<f64>, f64), HeError> {
    if let Some(index) = values.iter().position(|v| !v.is_finite()) {
        return Err(HeError::NotFinite { index });
    }
    let functions = rows[0].len();
    let mut reference: Vec<usize> = (0..=functions).map(|i| i * (rows.len() - 1) / functions).collect();
    for _ in 0..MOST_EXCHANGES {
        let system: Vec<Vec<f64>> = reference
            .iter()
            .enumerate()
            .map(|(i, at)| rows[*at].iter().copied().chain([if i % 2 == 0 { 1.0 } else { -1.0 }]).collect())
            .collect();
        let [mut solution] = solve_least_squares(system, [reference.iter().map(|at| values[*at]).collect()]);
        let Some(level) = solution.pop() else {
            unreachable!("a solution has as many numbers as its system has columns")
        };
        let error = |i: usize| values[i] - rows[i].iter().zip(&solution).map(|(x, c)| x * c).sum::<f64>();
        let errors: Vec<f64> = (0..rows.len()).map(error).collect();
        let largest = errors.iter().fold(0.0f64, |m, e| m.max(e.abs()));
        // Rounding of the values themselves sets the end for smooth functions.
        let floor = values.iter().fold(0.0f64, |m, v| m.max(v.abs())) * 1e-15;
        if largest <= level.abs() * (1.0 + 1e-6) + floor {
            return Ok((solution, largest));
        }
        let next = alternation(&errors, functions + 1);
        if next.len() > functions && next != reference {
            reference = next;
        } else {
            exchange_one(&mut reference, &errors, level);
        }
    }
    Err(parameters("the minimax fit does not settle; use fewer coefficients, or least squares"))
}

/// Takes the point with the largest error into a reference whose errors are ±`level` by turns, in place
/// of a neighbour with an error of the same sign.
fn exchange_one(reference: &mut Vec<usize>, errors: &[f64], level: f64) {
    let size = |i: &usize| errors[*i].abs();
    let Some(new) = (0..errors.len()).max_by(|a, b| size(a).total_cmp(&size(b))) else { return };
    let same = |i: usize| errors[new].is_sign_positive() == (level.is_sign_positive() == i.is_multiple_of(2));
    let after = reference.partition_point(|i| *i < new);
    match after {
        0 if same(0) => reference[0] = new,
        0 => {
            reference.insert(0, new);
            reference.pop();
        }
        at if same(at - 1) => reference[at - 1] = new,
        at if at < reference.len() => reference[at] = new,
        _ => {
            reference.push(new);
            reference.remove(0);
        }
    }
}

/// The largest error of each run of one sign, cut to `count` runs in a row that hold the larger ones.
fn alternation(errors: &[f64], count: usize) -> Vec<usize> {
    let mut peaks: Vec<usize> = Vec::new();
    for (i, e) in errors.iter().enumerate() {
        match peaks.last_mut() {
            Some(last) if errors[*last].is_sign_positive() == e.is_sign_positive() => {
                if e.abs() > errors[*last].abs() {
                    *last = i;
                }
            }
            _ => peaks.push(i),
        }
    }
    while peaks.len() > count {
        let size = |at: Option<&usize>| at.map_or(0.0, |i| errors[*i].abs());
        if peaks.len() == count + 1 {
            // One too many: the smaller end goes.
            if size(peaks.first()) < size(peaks.last()) {
                peaks.remove(0);
            } else {
                peaks.pop();
            }
            continue;
        }
        // Neighbours go in pairs, so that signs keep alternating.
        let pair = |i: usize| size(peaks.get(i)).max(size(peaks.get(i + 1)));
        let least = (0..peaks.len() - 1).min_by(|a, b| pair(*a).total_cmp(&pair(*b))).unwrap_or(0);
        peaks.drain(least..=least + 1);
    }
    peaks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimax_of_known_functions() {
        // The best line to |x| on [−1, 1] by degree 2 is x² + 1/8.
        let fit = minimax(f64::abs, &[(-1.0, 1.0)], 2).unwrap();
        assert!((fit.error - 0.125).abs() < 1e-3, "{}", fit.error);
        // Chebyshev's: x^5 minus its best quartic is T_5/16.
        let fit = minimax(|x| x.powi(5), &[(-1.0, 1.0)], 4).unwrap();
        assert!((fit.error - 1.0 / 16.0).abs() < 1e-4, "{}", fit.error);
        // exp on [−1, 1] by a cubic: 5.528e-3.
        let fit = minimax(f64::exp, &[(-1.0, 1.0)], 3).unwrap();
        assert!((fit.error - 5.528e-3).abs() < 1e-5, "{}", fit.error);
    }

    #[test]
    fn errors_alternate() {
        for intervals in [vec![(0.5, 8.0)], vec![(-4.0, -0.25), (0.25, 4.0)]] {
            let degree = 12;
            let fit = minimax(|x| x.signum() / x.abs().sqrt(), &intervals, degree).unwrap();
            let points = nodes(&intervals, 4000);
            let errors: Vec<f64> =
                points.iter().map(|x| x.signum() / x.abs().sqrt() - fit.polynomial.evaluate(*x).re).collect();
            let peaks = alternation(&errors, usize::MAX);
            let near = peaks.iter().filter(|i| errors[**i].abs() > 0.98 * fit.error).count();
            assert!(near >= degree + 2, "{near} alternations");
            assert!(errors.iter().all(|e| e.abs() < 1.01 * fit.error));
        }
    }

    #[test]
    fn least_squares_near_the_interpolant() {
        let f = |x: f64| Complex64::new(0.0, 4.0 * x).exp();
        let fit = least_squares(f, &[(-1.0, 1.0)], 30).unwrap();
        for i in 0..200 {
            let x = f64::from(i) / 100.0 - 1.0;
            assert!((fit.evaluate(x) - f(x)).norm() < 1e-13);
        }
        // The same function's even part is real and its odd part imaginary.
        for (k, c) in fit.coefficients().iter().enumerate() {
            assert!(if k % 2 == 0 { c.im.abs() } else { c.re.abs() } < 1e-13);
        }
    }

    #[test]
    fn fewer_intervals_more_precision() {
        let f = |x: f64| Complex64::new(0.0, std::f64::consts::TAU * x / 8.0).exp();
        let rho = (-4.2f64).exp2();
        let intervals: Vec<_> = (-14..=14).map(|j| (f64::from(j) - rho, f64::from(j) + rho)).collect();
        let fit = least_squares(f, &intervals, 31).unwrap();
        let worst = nodes(&intervals, 100).iter().map(|x| (fit.evaluate(*x) - f(*x)).norm()).fold(0.0, f64::max);
        assert!(worst.log2() < -38.0, "2^{:.1}", worst.log2());
        let whole = least_squares(f, &[(-14.0 - rho, 14.0 + rho)], 31).unwrap();
        let worst_whole =
            nodes(&intervals, 100).iter().map(|x| (whole.evaluate(*x) - f(*x)).norm()).fold(0.0, f64::max);
        assert!(worst_whole > 1.5 * worst, "2^{:.1}, 2^{:.1}", worst.log2(), worst_whole.log2());
    }

    #[test]
    fn sine_series_of_an_angle() {
        let rho = (-4.2f64).exp2();
        let tau = std::f64::consts::TAU;
        let (a, error) = minimax_sines(|x| x / tau, tau * rho, 4).unwrap();
        for (a, known) in a.iter().zip([0.255577, -0.064597, 0.012531, -0.001205]) {
            assert!((a - known).abs() < 1e-6, "{a} {known}");
        }
        assert!(((error / rho).log2() + 29.6).abs() < 0.3, "2^{:.2}", (error / rho).log2());
        let errors = [1, 2, 3, 4].map(|n| {
            let (_, error) = minimax_sines(|x| x / tau, tau / 16.0, n).unwrap();
            (error * 16.0).log2()
        });
        for (found, known) in errors.iter().zip([-7.3, -14.3, -21.2, -28.0]) {
            assert!((found - known).abs() < 0.15, "{errors:?}");
        }
    }

    #[test]
    fn refusals() {
        assert!(minimax(f64::ln, &[(0.0, 1.0)], 3).is_err());
        assert!(minimax(f64::exp, &[], 3).is_err());
        assert!(minimax(f64::exp, &[(1.0, 0.0)], 3).is_err());
        assert!(least_squares(|_| Complex64::ONE, &[(0.0, 1.0)], MAX_FIT_DEGREE + 1).is_err());
    }
}
