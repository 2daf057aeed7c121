//! How far a polynomial is from a function: a bound for functions that are known, an estimate for others.
//!
//! A known function is analytic in discs around the pieces that an interval is cut into. On such a piece it is within τ
//! of its Taylor polynomial of degree K, so that its difference e to a polynomial of at most that degree is within τ of a
//! polynomial of degree K, whose largest value is bounded by those at N > K Chebyshev nodes (Ehlich and Zeller 1964):
//! max |e| ≤ (max over the nodes |e| + τ) / cos(πK/2N) + τ.

use super::Polynomial;
use super::fit::nodes;
use crate::error::HeError;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

/// Nodes of a piece for each degree: 1/cos(π/32) is 1.005.
const NODES: usize = 16;
/// A piece's radius in that of the disc around it.
const RATIO: f64 = 1.0 / 3.0;
/// Part of the distance that a Taylor polynomial may be away.
const TAIL: f64 = 1e-3;
/// Most pieces of an interval.
const MOST_PIECES: usize = 1 << 14;
/// A piece of this part of the interval is bounded by what function and polynomial change on it.
const LEAST_PIECE: f64 = 1.0 / (1u64 << 44) as f64;
/// Roundings of a value by Clenshaw's rule, of the variable and of the coefficients' products, in terms of
/// ε·Σ(1 + k)²·|c_k|.
const ROUNDINGS: f64 = 16.0;
/// By how much the ends of an interval are moved out, in ε: bounds are products of rounded numbers.
pub(super) const ENDS: f64 = 16.0;
/// What an estimate adds for what lies between its points.
pub(super) const MARGIN: f64 = 1.01;
/// Where a finer grid finds more than this times the coarse one's, neither is believed.
const DISAGREE: f64 = 1.5;
/// Part of the function's size under which differences are rounding.
const FLOOR: f64 = 1e-13;
/// Least points of the finer grid.
const FINE: usize = 4096;

/// A function that distances are bounded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Function {
    /// e^t.
    Exp,
    /// 1/(1 + e^−t).
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// √t, for t ≥ 0.
    Sqrt,
    /// 1/t, on one side of zero.
    Reciprocal,
    /// The natural logarithm, for t > 0.
    Log,
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
    /// |t|.
    Absolute,
    /// −1, 0 or 1.
    Sign,
    /// 0 below zero, 1 above it, 1/2 at it.
    Step,
}

impl Function {
    /// The function of a name: its own in lower case, as NumPy has them.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "exp" => Self::Exp,
            "sigmoid" => Self::Sigmoid,
            "tanh" => Self::Tanh,
            "sqrt" => Self::Sqrt,
            "reciprocal" => Self::Reciprocal,
            "log" => Self::Log,
            "sin" => Self::Sin,
            "cos" => Self::Cos,
            "absolute" => Self::Absolute,
            "sign" => Self::Sign,
            "step" => Self::Step,
            _ => return None,
        })
    }

    /// Its value; NaN or infinite where it has none.
    pub fn value(self, t: f64) -> f64 {
        match self {
            Self::Exp => t.exp(),
            Self::Sigmoid if t < 0.0 => t.exp() / (1.0 + t.exp()),
            Self::Sigmoid => 1.0 / (1.0 + (-t).exp()),
            Self::Tanh => t.tanh(),
            Self::Sqrt => t.sqrt(),
            Self::Reciprocal => 1.0 / t,
            Self::Log => t.ln(),
            Self::Sin => t.sin(),
            Self::Cos => t.cos(),
            Self::Absolute => t.abs(),
            Self::Sign if t == 0.0 => 0.0,
            Self::Sign => t.signum(),
            Self::Step if t == 0.0 => 0.5,
            Self::Step => f64::from(u8::from(t > 0.0)),
        }
    }

    /// Whether it has a value everywhere on an interval.
    fn is_defined(self, (from, to): (f64, f64)) -> bool {
        match self {
            Self::Sqrt => from >= 0.0,
            Self::Log => from > 0.0,
            Self::Reciprocal => from > 0.0 || to < 0.0,
            _ => true,
        }
    }

    /// Radius of a disc around a number of the real line in which it is analytic, and a bound on |f| there; none for what
    /// is a polynomial of degree one on either side of zero.
    fn disc(self, centre: f64) -> Option<(f64, f64)> {
        let beside_zero = 0.75 * centre.abs();
        Some(match self {
            Self::Exp => (4.0, (centre + 4.0).exp()),
            // |Im t| ≤ 4.
            Self::Sin | Self::Cos => (4.0, 4f64.cosh()),
            // Its poles are at ±iπ, ±3iπ, …: where |Im t| ≤ π/2, Re e^−t ≥ 0, and where |Re t| ≥ π/2, |1 + e^−|t|| ≥
            // 1 − e^−π/2.
            Self::Sigmoid => (FRAC_PI_2.max(centre.abs() / 2.0), 1.27),
            // 2·sigmoid(2t) − 1.
            Self::Tanh => (FRAC_PI_4.max(centre.abs() / 2.0), 3.54),
            Self::Sqrt => (beside_zero, (1.75 * centre.abs()).sqrt()),
            Self::Reciprocal => (beside_zero, 4.0 / centre.abs()),
            Self::Log => {
                let ends = [0.25, 1.75].map(|part| (part * centre.abs()).ln().abs());
                (beside_zero, ends[0].max(ends[1]) + FRAC_PI_2)
            }
            Self::Absolute | Self::Sign | Self::Step => return None,
        })
    }
}

/// A refusal of what a polynomial cannot stand for.
pub(super) fn refused(reason: String) -> HeError {
    HeError::Approximation { reason }
}

/// Bound on what rounding makes of a polynomial's value on an interval, whichever way it is evaluated.
pub(super) fn rounding(p: &Polynomial, (from, to): (f64, f64)) -> f64 {
    ROUNDINGS * f64::EPSILON * weighted(p, (from, to))
}

/// Σ(1 + k)²·|c_k|·|T_k|, which bounds the derivative in units of the domain, too.
fn weighted(p: &Polynomial, (from, to): (f64, f64)) -> f64 {
    let (centre, radius) = p.domain();
    let far = ((from - centre).abs().max((to - centre).abs()) / radius).max(1.0);
    // |T_k(u)| ≤ (|u| + √(u² − 1))^k, and |T_k'(u)| ≤ k² times that.
    let growth = far + (far * far - 1.0).sqrt();
    let mut power = 1.0;
    let mut sum = 0.0;
    for (k, c) in p.coefficients().iter().enumerate() {
        sum += (1.0 + k as f64).powi(2) * c.norm() * power;
        power *= growth;
    }
    sum
}

/// Bound on |f − p| over intervals for a known function and a real polynomial, the rounding of doubles in p's evaluation
/// included; `about` is the distance on some points.
///
/// # Errors
/// [`HeError::Approximation`] where the function has no value, or for an interval that is too long to look at.
pub(super) fn bound(f: Function, p: &Polynomial, intervals: &[(f64, f64)], about: f64) -> Result<f64, HeError> {
    let mut largest = 0.0f64;
    for (from, to) in intervals {
        let whole = (from - ENDS * f64::EPSILON * from.abs(), to + ENDS * f64::EPSILON * to.abs());
        if !f.is_defined(whole) {
            let name = format!("{f:?}").to_lowercase();
            return Err(refused(format!("{name} has no value somewhere on [{from}, {to}]; keep to one side of zero")));
        }
        largest = largest.max(on_interval(f, p, whole, about)? + 2.0 * rounding(p, whole));
    }
    if largest.is_finite() {
        Ok(largest)
    } else {
        Err(refused(
            "the polynomial is too large for a bound on its error; take a lower degree or a shorter interval".into(),
        ))
    }
}

fn on_interval(f: Function, p: &Polynomial, (from, to): (f64, f64), about: f64) -> Result<f64, HeError> {
    let least = LEAST_PIECE * (to - from);
    let mut pieces = match f.disc(1.0) {
        None if from < 0.0 && to > 0.0 => vec![(from, 0.0), (0.0, to)],
        _ => vec![(from, to)],
    };
    let (mut largest, mut count) = (0.0f64, 0);
    while let Some((a, b)) = pieces.pop() {
        count += 1;
        if count > MOST_PIECES {
            return Err(refused(format!(
                "[{from}, {to}] is too long for a bound on the error; take a shorter interval"
            )));
        }
        let (centre, radius) = (a + (b - a) / 2.0, (b - a) / 2.0);
        let error = |x: f64| {
            let y = f.value(x);
            (y - p.evaluate(x).re).abs() + 4.0 * f64::EPSILON * y.abs()
        };
        let here = match f.disc(centre) {
            None => at_nodes(error, (centre, radius), p.degree().max(1), 0.0),
            Some((disc, size)) if radius <= RATIO * disc => {
                let ratio = radius / disc;
                let tail = |k: f64| size * ratio.powf(k + 1.0) / (1.0 - ratio);
                let wanted = (TAIL * about).max(f64::EPSILON * size);
                let needed = ((size / (wanted * (1.0 - ratio))).ln() / -ratio.ln()).ceil().max(0.0);
                let degree = (needed as usize).max(p.degree()).max(1);
                at_nodes(error, (centre, radius), degree, tail(degree as f64))
            }
            // What comes close to zero is monotone there.
            Some(_) if radius < least => {
                error(centre) + (f.value(b) - f.value(a)).abs() + weighted(p, (a, b)) * radius / p.domain().1
            }
            Some(_) => {
                pieces.extend([(a, centre), (centre, b)]);
                continue;
            }
        };
        largest = largest.max(here);
    }
    Ok(largest)
}

/// The bound of Ehlich and Zeller for what is within `tail` of a polynomial of a degree.
fn at_nodes(error: impl Fn(f64) -> f64, (centre, radius): (f64, f64), degree: usize, tail: f64) -> f64 {
    let count = NODES * degree;
    let angle = |i: usize| PI * (2 * i + 1) as f64 / (2 * count) as f64;
    let largest = (0..count).map(|i| error(centre + radius * angle(i).cos())).fold(0.0, f64::max);
    (largest + tail) / (PI / (2 * NODES) as f64).cos() + tail
}

/// The largest |f − p| that is found on a grid finer than that of `coarse` and close to its maxima, one per cent more.
///
/// # Errors
/// [`HeError::NotFinite`]; [`HeError::Approximation`] where it is far over the coarse grid's.
pub(super) fn estimate(
    f: &dyn Fn(f64) -> f64,
    p: &Polynomial,
    intervals: &[(f64, f64)],
    coarse: f64,
) -> Result<f64, HeError> {
    let found = sampled(f, p, intervals)?;
    if found.largest > DISAGREE * coarse + FLOOR * found.size {
        return Err(refused(format!(
            "the polynomial of degree {} is {coarse:.1e} from the function on the points that it was fitted to, and \
             {:.1e} between them: the function changes faster than those points show; take a higher degree, a shorter \
             interval or a smoother function, or give the error that you know",
            p.degree(),
            found.largest
        )));
    }
    Ok(found.largest.max(coarse) * MARGIN + found.rounding)
}

/// What a fine grid tells of a function and a polynomial.
pub(super) struct Sampled {
    /// Largest |f − p|.
    pub largest: f64,
    /// Largest |f|.
    pub size: f64,
    /// Bound on the rounding of the polynomial's evaluation.
    pub rounding: f64,
}

/// Looks at a fine grid, and closer where it has its maxima.
pub(super) fn sampled(f: &dyn Fn(f64) -> f64, p: &Polynomial, intervals: &[(f64, f64)]) -> Result<Sampled, HeError> {
    let mut out = Sampled { largest: 0.0, size: 0.0, rounding: 0.0 };
    for interval in intervals {
        let points = nodes(&[*interval], (320 * (p.degree() + 2)).max(FINE).div_ceil(intervals.len()) + 6);
        let mut error = |x: f64| -> Result<f64, HeError> {
            let y = f(x);
            out.size = out.size.max(y.abs());
            if y.is_finite() { Ok((y - p.evaluate(x).re).abs()) } else { Err(HeError::NotFinite { index: 0 }) }
        };
        let errors = points.iter().map(|x| error(*x)).collect::<Result<Vec<_>, _>>()?;
        let largest = errors.iter().copied().fold(0.0, f64::max);
        let last = points.len() - 1;
        let peak = |i: &usize| {
            errors[*i] > 0.9 * largest
                && errors[*i] >= errors[i.saturating_sub(1)]
                && errors[*i] >= errors[last.min(i + 1)]
        };
        let mut found = largest;
        for i in (0..points.len()).filter(peak).take(64) {
            let (mut a, mut b) = (points[i.saturating_sub(1)], points[last.min(i + 1)]);
            for _ in 0..16 {
                let inner: Vec<f64> = (0..=8).map(|j| a + (b - a) * f64::from(j) / 8.0).collect();
                let seen = inner.iter().map(|x| error(*x)).collect::<Result<Vec<_>, _>>()?;
                let best = (1..=8).fold(0, |best, at| if seen[at] > seen[best] { at } else { best });
                found = found.max(seen[best]);
                (a, b) = (inner[best.saturating_sub(1)], inner[8.min(best + 1)]);
            }
        }
        out.largest = out.largest.max(found);
        out.rounding = out.rounding.max(rounding(p, *interval));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::fit::{self, Distance};
    use super::*;

    /// The largest distance on the points of a fine grid, and close to its maxima.
    fn seen(f: Function, p: &Polynomial, intervals: &[(f64, f64)]) -> f64 {
        sampled(&|x| f.value(x), p, intervals).unwrap().largest
    }

    #[test]
    fn bounds_hold_and_are_tight() {
        use Function::*;
        let both = vec![(-3.0, -0.05), (0.05, 3.0)];
        let all: [(Function, Vec<(f64, f64)>); 17] = [
            (Exp, vec![(-1.0, 1.0)]),
            (Exp, vec![(-20.0, 3.0)]),
            (Sigmoid, vec![(-8.0, 8.0)]),
            (Sigmoid, vec![(-3000.0, 40.0)]),
            (Tanh, vec![(-16.0, 16.0)]),
            (Tanh, vec![(-0.5, 2.0)]),
            (Sqrt, vec![(0.01, 1.0)]),
            (Sqrt, vec![(0.0, 50.0)]),
            (Reciprocal, vec![(1e-3, 2.0)]),
            (Reciprocal, vec![(-9.0, -1.0)]),
            (Log, vec![(1e-6, 1e3)]),
            (Sin, vec![(-6.0, 7.0)]),
            (Cos, vec![(-1.0, 1.5)]),
            (Absolute, vec![(-1.0, 2.0)]),
            (Sign, both.clone()),
            (Step, both),
            (Step, vec![(-1.0, 0.7)]),
        ];
        for (f, intervals) in all {
            for degree in [1, 2, 3, 7, 15, 31] {
                let fitted = fit::known(f, &intervals, degree).unwrap();
                let found = seen(f, &fitted.polynomial, &intervals);
                let rounding = intervals.iter().map(|i| rounding(&fitted.polynomial, *i)).fold(0.0, f64::max);
                assert!(found <= fitted.error, "{f:?} on {intervals:?}, {degree}: {found:e} over {:e}", fitted.error);
                let loose = 1.02 * found + 4.0 * rounding;
                assert!(fitted.error <= loose, "{f:?} on {intervals:?}, {degree}: {:e} for {found:e}", fitted.error);
            }
        }
    }

    /// A function without a value is refused, and so is a number of which only a finer grid tells.
    #[test]
    fn refusals() {
        let refused = |found: Result<fit::Minimax, HeError>| matches!(found, Err(HeError::Approximation { .. }));
        assert!(refused(fit::known(Function::Reciprocal, &[(-1.0, 1.1)], 4)));
        let spike = |t: f64| (-(t - 0.3337).powi(2) / 1e-7).exp();
        for degree in [3, 15] {
            assert!(refused(fit::minimax(spike, &[(-1.0, 1.0)], degree)), "{degree}");
        }
        // What the caller knows of it is believed, unless the grid knows better.
        assert_eq!(fit::stated(spike, &[(-1.0, 1.0)], 3, 1.1).unwrap().error, 1.1);
        assert!(refused(fit::stated(spike, &[(-1.0, 1.0)], 3, 0.5)));
        // Jumps and corners are not refused.
        for (f, degree) in [((|t: f64| f64::from(u8::from(t > 0.3))) as fn(f64) -> f64, 9), (|t| t.max(0.0), 15)] {
            let fitted = fit::minimax(f, &[(-1.0, 1.0)], degree).unwrap();
            let worst = (0..=200_000)
                .map(|i| f64::from(i) / 1e5 - 1.0)
                .map(|t| (f(t) - fitted.polynomial.evaluate(t).re).abs());
            assert!(worst.fold(0.0, f64::max) <= fitted.error);
        }
    }

    /// Beyond the interval the distance is that of elements as far out, or there is none.
    #[test]
    fn beyond_the_interval() {
        let f = Function::Sigmoid;
        let fitted = fit::known(f, &[(-3.0, 3.0)], 7).unwrap();
        let wide = fitted.clone().up_to(4.0, Distance::Bounded(f)).unwrap();
        let (max_abs, error) = wide.beyond.unwrap();
        let found = seen(f, &fitted.polynomial, &[(-4.0, 4.0)]);
        assert!(max_abs == 4.0 && found <= error && error < 1.02 * found && error > 10.0 * fitted.error);
        assert!(fitted.clone().up_to(3.0, Distance::Bounded(f)).unwrap().beyond.is_none());
        let refused = fitted.clone().up_to(6.0, Distance::Bounded(f)).unwrap_err().to_string();
        assert!(refused.contains("up to 6") && refused.contains("ends at 3"), "{refused}");
        // A polynomial for itself is right everywhere.
        let itself = fit::Minimax::exact(fitted.polynomial).unwrap();
        assert!(itself.up_to(50.0, Distance::None).unwrap().beyond.unwrap().1 < 1e-3);
        // An end above zero is the caller's word.
        let root = fit::known(Function::Sqrt, &[(0.5, 3.0)], 5)
            .unwrap()
            .up_to(4.0, Distance::Bounded(Function::Sqrt))
            .unwrap();
        assert_eq!(root.extended(4.0), [(0.5, 4.0)]);
    }
}
