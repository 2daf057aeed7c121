//! Fitting polynomials to functions on unions of intervals.

use super::Polynomial;
use super::distance::{self, ENDS, Function, refused};
use crate::error::{HeError, parameters};
use num_complex::Complex64;

/// Exchanges of a minimax fit before it is given up; a dozen is usual.
const MOST_EXCHANGES: usize = 100;
/// Errors of so many times the values' own rounding are rounding.
const ROUNDING: f64 = 64.0;
/// Highest degree of a fit.
pub const MAX_FIT_DEGREE: usize = 512;

/// Coefficients that are this part of the largest are rounding.
const NOTHING: f64 = 1e-15;

/// A polynomial that stands for a function on some intervals.
#[derive(Clone, Debug)]
pub struct Minimax {
    /// The polynomial, on the hull of the intervals.
    pub polynomial: Polynomial,
    /// Bound on |f − p| on the intervals, or an estimate: see [`Distance`].
    pub error: f64,
    /// The intervals.
    pub intervals: Vec<(f64, f64)>,
    /// Where numbers may be larger than the intervals, up to which size, and |f − p| as far as that.
    pub beyond: Option<(f64, f64)>,
}

/// How the distance of a polynomial from its function is known.
#[derive(Clone, Copy)]
pub enum Distance<'f> {
    /// The function is one of those that have a bound; rounding of doubles is in it.
    Bounded(Function),
    /// Any function: by a fine grid, which cannot see what is finer; one per cent more than it found.
    Estimated(&'f dyn Fn(f64) -> f64),
    /// The function is the polynomial itself.
    None,
}

impl Distance<'_> {
    /// The distance of a polynomial on intervals, where on some points it is `coarse`.
    ///
    /// # Errors
    /// [`HeError::Approximation`] where the function has no value, or a fine grid finds far more than `coarse`;
    /// [`HeError::NotFinite`].
    fn of(self, p: &Polynomial, intervals: &[(f64, f64)], coarse: f64) -> Result<f64, HeError> {
        match self {
            Self::Bounded(f) => distance::bound(f, p, intervals, coarse),
            Self::Estimated(f) => distance::estimate(f, p, intervals, coarse),
            Self::None => Ok(intervals.iter().map(|i| distance::rounding(p, *i)).fold(0.0, f64::max)),
        }
    }
}

impl Minimax {
    /// A real polynomial that stands for itself.
    ///
    /// # Errors
    /// [`HeError::Approximation`] for coefficients that are too large to evaluate.
    pub fn exact(polynomial: Polynomial) -> Result<Self, HeError> {
        let (centre, radius) = polynomial.domain();
        let intervals = vec![(centre - radius, centre + radius)];
        let error = Distance::None.of(&polynomial, &intervals, 0.0)?;
        Ok(Self { polynomial, error, intervals, beyond: None })
    }

    /// The largest absolute value on its intervals.
    pub fn reach(&self) -> f64 {
        self.intervals.iter().map(|(from, to)| from.abs().max(to.abs())).fold(0.0, f64::max)
    }

    /// Least and largest end of the intervals.
    pub fn ends(&self) -> (f64, f64) {
        hull(&self.intervals)
    }

    /// Whether it stands for its function at all numbers up to `max_abs` that its intervals do not exclude by their sign.
    pub fn holds(&self, max_abs: f64) -> bool {
        reaches(self.reach(), max_abs)
    }

    /// The same for numbers of which no more is known than that they are up to `max_abs`: their distance is that to the
    /// function as far as there, from the intervals outwards. Numbers known to be twice as large as the intervals' ends are
    /// refused.
    ///
    /// # Errors
    /// [`HeError::Approximation`].
    pub fn up_to(self, max_abs: f64, distance: Distance<'_>) -> Result<Self, HeError> {
        if self.holds(max_abs) {
            return Ok(self);
        }
        let wide = self.extended(max_abs);
        let error = match distance {
            Distance::Bounded(f) if max_abs < 2.0 * self.reach() => {
                distance::bound(f, &self.polynomial, &wide, self.error)
            }
            // There is no second grid to compare with.
            Distance::Estimated(f) if max_abs < 2.0 * self.reach() => {
                distance::sampled(f, &self.polynomial, &wide).map(|s| s.largest * distance::MARGIN + s.rounding)
            }
            Distance::None => distance.of(&self.polynomial, &wide, 0.0),
            _ => return Err(self.outside(max_abs)),
        };
        let error = error.map_err(|_| self.outside(max_abs))?;
        Ok(Self { beyond: Some((max_abs, error)), ..self })
    }

    /// The intervals, and outwards as far as `max_abs` on the sides of zero that they are on.
    pub fn extended(&self, max_abs: f64) -> Vec<(f64, f64)> {
        let (from, to) = self.ends();
        let out = |(a, b): &(f64, f64)| {
            let low = if *a == from && from < 0.0 { from.min(-max_abs) } else { *a };
            (low, if *b == to && to > 0.0 { to.max(max_abs) } else { *b })
        };
        self.intervals.iter().map(out).collect()
    }

    /// The refusal of numbers up to `max_abs`.
    pub fn outside(&self, max_abs: f64) -> HeError {
        refused(outside("an element", max_abs, self.reach()))
    }
}

/// Whether numbers up to `max_abs` are within an interval whose larger end is `reach`, but for the rounding of bounds.
pub fn reaches(reach: f64, max_abs: f64) -> bool {
    max_abs <= reach * (1.0 + ENDS / 2.0 * f64::EPSILON)
}

/// Says that `what` may be outside of an interval, and what to do.
pub fn outside(what: &str, max_abs: f64, reach: f64) -> String {
    format!(
        "{what} is up to {max_abs}, and the interval of the function ends at {reach}; widen it, or say what you know: \
         sudare.bounded(x, max_abs={reach})"
    )
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
    let (from, to) = checked(intervals, degree)?;
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
/// algorithm), in Chebyshev polynomials on their hull. Its error is an estimate by a finer grid; [`known`] has a bound.
///
/// ```
/// use sudare_he::circuits::polynomial::fit;
///
/// // A step from −1 to 1, with a gap in which it may have any value.
/// let step = fit::minimax(f64::signum, &[(-1.0, -0.2), (0.2, 1.0)], 15)?;
/// assert!(step.error < 0.05);
/// assert!((step.polynomial.evaluate(0.5).re - 1.0).abs() <= step.error);
/// # Ok::<(), sudare_he::HeError>(())
/// ```
///
/// # Errors
/// As [`least_squares`]; `RlweError::Parameters` if the exchange does not settle; [`HeError::Approximation`] if the finer
/// grid finds an error far over that on the points of the fit.
pub fn minimax(f: impl Fn(f64) -> f64, intervals: &[(f64, f64)], degree: usize) -> Result<Minimax, HeError> {
    let (polynomial, coarse) = remez(&f, intervals, degree)?;
    let error = Distance::Estimated(&f).of(&polynomial, intervals, coarse)?;
    Ok(Minimax { polynomial, error, intervals: intervals.to_vec(), beyond: None })
}

/// As [`minimax`], with an error that the caller knows; refused where a fine grid finds a larger one.
///
/// # Errors
/// As [`minimax`].
pub fn stated(f: impl Fn(f64) -> f64, intervals: &[(f64, f64)], degree: usize, error: f64) -> Result<Minimax, HeError> {
    let (polynomial, _) = remez(&f, intervals, degree)?;
    let found = distance::sampled(&f, &polynomial, intervals)?;
    if found.largest + found.rounding > error {
        let far = found.largest + found.rounding;
        return Err(refused(format!(
            "the polynomial of degree {degree} is {far:.1e} from the function, over the given error of {error:.1e}; \
             give a larger error, or take a higher degree"
        )));
    }
    Ok(Minimax { polynomial, error, intervals: intervals.to_vec(), beyond: None })
}

/// As [`minimax`], for a function that has a bound on its distance.
///
/// # Errors
/// As [`least_squares`]; [`HeError::Approximation`] where the function has no value.
pub fn known(f: Function, intervals: &[(f64, f64)], degree: usize) -> Result<Minimax, HeError> {
    let (polynomial, coarse) = remez(&|x| f.value(x), intervals, degree)?;
    let error = Distance::Bounded(f).of(&polynomial, intervals, coarse)?;
    Ok(Minimax { polynomial, error, intervals: intervals.to_vec(), beyond: None })
}

/// The polynomial and its largest error on the points that it is fitted to.
fn remez(f: &dyn Fn(f64) -> f64, intervals: &[(f64, f64)], degree: usize) -> Result<(Polynomial, f64), HeError> {
    let (from, to) = checked(intervals, degree)?;
    // Nodes that crowd at the ends, where the extrema do.
    let per_interval = (40 * (degree + 2)).div_ceil(intervals.len()).max(64);
    let points = nodes(intervals, per_interval);
    let rows: Vec<Vec<f64>> = points.iter().map(|x| chebyshev_row(*x, (from, to), degree)).collect();
    let (coefficients, error) = exchange(&rows, &points.iter().map(|x| f(*x)).collect::<Vec<_>>())?;
    Ok((rounded(Polynomial::chebyshev(&coefficients, from, to)?), error))
}

/// The polynomial without the coefficients that are rounding of the others.
pub fn rounded(mut polynomial: Polynomial) -> Polynomial {
    let least = NOTHING * polynomial.coefficients.iter().map(|c| c.norm()).fold(0.0, f64::max);
    polynomial.coefficients.iter_mut().filter(|c| c.norm() <= least).for_each(|c| *c = Complex64::ZERO);
    polynomial
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

/// Least and largest end of intervals.
pub fn hull(intervals: &[(f64, f64)]) -> (f64, f64) {
    let from = intervals.iter().map(|i| i.0).fold(f64::INFINITY, f64::min);
    (from, intervals.iter().map(|i| i.1).fold(f64::NEG_INFINITY, f64::max))
}

pub(super) fn checked(intervals: &[(f64, f64)], degree: usize) -> Result<(f64, f64), HeError> {
    let good = |(a, b): &(f64, f64)| a.is_finite() && b.is_finite() && a < b;
    if intervals.is_empty() || !intervals.iter().all(good) || degree > MAX_FIT_DEGREE {
        return Err(parameters(format!(
            "a fit takes intervals with finite ends, the lower one first, and degrees up to {MAX_FIT_DEGREE}, not \
             {intervals:?} and {degree}"
        )));
    }
    Ok(hull(intervals))
}

/// An odd number of Chebyshev nodes of each interval, both ends and the middle among them, ascending.
pub(super) fn nodes(intervals: &[(f64, f64)], count: usize) -> Vec<f64> {
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
pub(super) fn chebyshev_row(x: f64, (from, to): (f64, f64), degree: usize) -> Vec<f64> {
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
    // Rounding of the values themselves sets the end for smooth functions.
    exchange_to(values.iter().fold(0.0f64, |m, v| m.max(v.abs())) * 1e-15, rows, values)
}

/// The same, where errors up to `floor` are rounding.
pub(super) fn exchange_to(floor: f64, rows: &[Vec<f64>], values: &[f64]) -> Result<(Vec<f64>, f64), HeError> {
    if let Some(index) = values.iter().position(|v| !v.is_finite()) {
        return Err(HeError::NotFinite { index });
    }
    let functions = rows[0].len();
    let mut reference: Vec<usize> = (0..=functions).map(|i| i * (rows.len() - 1) / functions).collect();
    let mut nearest = (Vec::new(), f64::INFINITY);
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
        if largest <= level.abs() * (1.0 + 1e-6) + floor {
            return Ok((solution, largest));
        }
        if largest < nearest.1 {
            nearest = (solution, largest);
        }
        let next = alternation(&errors, functions + 1);
        if next.len() > functions && next != reference {
            reference = next;
        } else {
            exchange_one(&mut reference, &errors, level);
        }
    }
    // Where signs of errors are those of rounding, none is nearer.
    if nearest.1 <= ROUNDING * floor {
        return Ok(nearest);
    }
    Err(parameters("the minimax fit does not converge; take a lower degree, or least squares"))
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
        let near = |found: f64, wanted: f64| (0.9999..1.012).contains(&(found / wanted));
        assert!(near(fit.error, 0.125), "{}", fit.error);
        // Chebyshev's: x^5 minus its best quartic is T_5/16.
        let fit = minimax(|x| x.powi(5), &[(-1.0, 1.0)], 4).unwrap();
        assert!(near(fit.error, 1.0 / 16.0), "{}", fit.error);
        // exp on [−1, 1] by a cubic: 5.528e-3.
        let fit = minimax(f64::exp, &[(-1.0, 1.0)], 3).unwrap();
        assert!(near(fit.error, 5.528e-3), "{}", fit.error);
    }

    /// Where nothing is left but rounding, signs do not alternate, and the polynomial is as near as doubles are.
    #[test]
    fn smooth_functions_at_any_degree() {
        for (from, to) in [(-0.2, 0.2), (-0.5, 3.9), (-3.3, 4.1)] {
            for degree in 15..40 {
                let fit = known(Function::Cos, &[(from, to)], degree).unwrap();
                assert!(fit.error < 1e-6, "[{from}, {to}], {degree}: {:e}", fit.error);
                let fit = known(Function::Tanh, &[(from / 8.0, to / 8.0)], degree).unwrap();
                assert!(fit.error < 1e-10, "[{from}, {to}], {degree}: {:e}", fit.error);
            }
        }
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
