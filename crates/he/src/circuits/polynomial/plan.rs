//! Baby steps and giant steps: a polynomial as a program of the least depth.
//!
//! p = q·B_g + r is split at giant powers g down to leaves of a few baby powers. Everything below a
//! product is planned from the top: the scale that a quotient must have is that of its sum, times its
//! prime, over that of B_g. A remainder joins the sum of its sibling's product before that is
//! relinearised (lazy relinearisation). A leaf whose highest power would be one level too deep is split
//! once more, with powers that are there already.

use super::program::{Plan, Sum, Value};
use super::{Basis, degree, depth, divide};
use crate::error::HeError;
use num_complex::Complex64;
use std::collections::BTreeMap;
use sudare_rlwe::RlweError;

/// Largest factor by which the scale of a power is raised.
const LARGEST_FACTOR: f64 = (1u64 << 40) as f64;

/// Writes polynomials of the program's values.
#[derive(Clone)]
pub(crate) struct Planner<'a> {
    basis: Basis,
    /// Baby steps: powers below this are summed in leaves.
    babies: usize,
    /// Where the powers start.
    variable: Value,
    powers: BTreeMap<usize, Value>,
    before: &'a Plan,
    written: Plan,
}

impl<'a> Planner<'a> {
    /// Adds to `plan` the value of a polynomial of `variable` at a scale, at the least depth and then
    /// with the fewest relinearisations, those at higher levels weighing more.
    ///
    /// # Errors
    /// `RlweError::OutOfLevels`, also for a constant.
    pub fn write(
        plan: &'a mut Plan,
        variable: Value,
        (basis, coefficients): (Basis, &[Complex64]),
        scale: f64,
    ) -> Result<Value, HeError> {
        let values = Self::write_all(plan, variable, basis, &[(coefficients, scale)])?;
        values.first().copied().ok_or(RlweError::Internal { what: "a polynomial without a value" }.into())
    }

    /// Adds the values of several polynomials of one variable, each at its scale and all at the level of the highest degree;
    /// they share the variable's powers.
    ///
    /// # Errors
    /// As [`Planner::write`], where all are constant.
    pub fn write_all(
        plan: &'a mut Plan,
        variable: Value,
        basis: Basis,
        polynomials: &[(&[Complex64], f64)],
    ) -> Result<Vec<Value>, HeError> {
        let needed = polynomials.iter().map(|(c, _)| depth(degree(c))).max().unwrap_or(0);
        let level = plan.level(variable);
        if needed == 0 || level < needed {
            return Err(RlweError::OutOfLevels { operation: "a polynomial", needed: needed.max(1), level }.into());
        }
        let mut best: Option<(usize, Plan, Vec<Value>)> = None;
        for log_babies in 1..=needed as u32 {
            let powers = BTreeMap::from([(1, variable)]);
            let written = plan.clone();
            let mut planner = Planner { basis, babies: 1 << log_babies, variable, powers, before: &*plan, written };
            let one = |(c, scale): &(&[Complex64], f64)| planner.value(c, level - needed, *scale);
            let values = polynomials.iter().map(one).collect::<Result<_, _>>()?;
            let cost = planner.cost();
            if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
                best = Some((cost, planner.written, values));
            }
        }
        let Some((_, written, values)) = best else {
            return Err(RlweError::OutOfLevels { operation: "a polynomial", needed, level }.into());
        };
        *plan = written;
        Ok(values)
    }

    /// Rows that relinearisations work on, and those of rescales without one.
    fn cost(&self) -> usize {
        let special = self.written.chain.p().len();
        let new = &self.written.sums[self.before.sums.len()..];
        new.iter().map(|s| s.level + 1 + if s.products.is_empty() { 0 } else { 8 * (s.level + special) }).sum()
    }

    /// Level that B_k has or would have.
    fn level_of(&self, k: usize) -> Option<usize> {
        self.written.level(self.variable).checked_sub(k.next_power_of_two().trailing_zeros() as usize)
    }

    fn reaches(&self, k: usize, level: usize) -> bool {
        self.level_of(k).is_some_and(|found| found >= level)
    }

    /// B_k, from its two halves: B_k = a·b for powers, 2·T_a·T_b − T_(a−b) for Chebyshev polynomials.
    fn power(&mut self, k: usize) -> Result<Value, HeError> {
        if let Some(value) = self.powers.get(&k) {
            return Ok(*value);
        }
        let (a, b) = (self.power(k.div_ceil(2))?, self.power(k / 2)?);
        let level = self.written.level(a).min(self.written.level(b));
        let product = self.written.scale(a) * self.written.scale(b);
        // Where scales are smaller than primes, an integer factor keeps them from falling further with
        // every product.
        let wanted = self.written.scale(self.variable) * self.written.prime(level) / product;
        let factor = wanted.round().clamp(1.0, LARGEST_FACTOR);
        let mut sum = Sum::new(level, product * factor);
        sum.products.push((a, b));
        sum.factor = factor as u64;
        if self.basis == Basis::Chebyshev {
            sum.factor *= 2;
            match k % 2 {
                0 => sum.add_constant(-Complex64::ONE),
                _ => sum.multiples.push((self.variable, vec![-Complex64::ONE])),
            }
        }
        let weight = if self.basis == Basis::Chebyshev { 2.0 } else { 1.0 };
        let value = self.written.push(sum, weight)?;
        self.powers.insert(k, value);
        Ok(value)
    }

    /// A sum's value at `level` and `scale`.
    fn value(&mut self, p: &[Complex64], level: usize, scale: f64) -> Result<Value, HeError> {
        let mut sum = Sum::new(level + 1, scale * self.written.prime(level + 1));
        self.add(p, &mut sum)?;
        self.written.push(sum, 1.0)
    }

    /// Adds a polynomial to a sum, at the sum's level and scale.
    fn add(&mut self, p: &[Complex64], sum: &mut Sum) -> Result<(), HeError> {
        let top = degree(p);
        let used: Vec<usize> = (1..=top).filter(|k| p[*k] != Complex64::ZERO).collect();
        if top < self.babies && used.iter().all(|k| self.reaches(*k, sum.level)) {
            for k in used {
                let value = self.power(k)?;
                sum.multiples.push((value, vec![p[k]]));
            }
            match p.first() {
                Some(c) if *c != Complex64::ZERO => sum.add_constant(*c),
                _ => {}
            }
            return Ok(());
        }
        // The largest power of two that p holds; giants are those from the baby steps up.
        let g = 1usize << top.ilog2();
        let (q, r) = divide(self.basis, p, g);
        let giant = self.power(g)?;
        if degree(&q) == 0 {
            sum.multiples.push((giant, vec![q[0]]));
        } else {
            let scale = sum.scale / self.written.scale(giant);
            let quotient = self.value(&q, sum.level, scale)?;
            sum.products.push((quotient, giant));
        }
        self.add(&r, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuits::polynomial::Polynomial;
    use crate::circuits::polynomial::program::{OperationCount, Program};
    use crate::ckks::{Params, ParamsLiteral};
    use sudare_rlwe::security::{SecretDistribution, Security};

    fn params() -> Params {
        let rlwe = sudare_rlwe::params::ParamsLiteral {
            log_n: 9,
            q_bits: vec![45; 9],
            p_bits: vec![46],
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        };
        ParamsLiteral { rlwe, log_scale: 45 }.build().unwrap()
    }

    fn planned(params: &Params, basis: Basis, coefficients: &[Complex64], target: f64) -> Program {
        let mut plan = Plan::new(params.sketch().clone(), params.max_level(), 45f64.exp2());
        let value = Planner::write(&mut plan, 0, (basis, coefficients), target).unwrap();
        plan.encode(params, vec![value]).unwrap()
    }

    fn polynomial(basis: Basis, coefficients: &[Complex64]) -> Polynomial {
        match basis {
            Basis::Power => Polynomial::power(coefficients, 1.0),
            Basis::Chebyshev => Polynomial::chebyshev(coefficients, -1.0, 1.0),
        }
        .unwrap()
    }

    #[test]
    fn every_degree_at_its_least_depth_and_exact_scale() {
        let params = params();
        for basis in [Basis::Power, Basis::Chebyshev] {
            for top in 1..70usize {
                // All powers, odd ones alone, even ones alone, a few.
                for kind in 0..4usize {
                    let wanted = |k: usize| k == top || [true, k % 2 == 1, k.is_multiple_of(2), k % 5 == 3][kind];
                    let coefficient = |k: usize| Complex64::new((k as f64).sin() + 1.5, (k as f64 * 1.7).cos());
                    let c: Vec<Complex64> =
                        (0..=top).map(|k| if wanted(k) { coefficient(k) } else { Complex64::ZERO }).collect();
                    let target = 45.3f64.exp2();
                    let program = planned(&params, basis, &c, target);
                    let (level, scale) = program.output_states()[0];
                    assert_eq!(level, params.max_level() - depth(top), "{basis:?} of degree {top}");
                    assert!((scale / target - 1.0).abs() < 1e-14);
                    let p = polynomial(basis, &c);
                    for i in 0..9 {
                        let x = Complex64::from(f64::from(i) * 0.25 - 1.0);
                        let found = program.plan().values(x, 0)[program.outputs()[0]];
                        assert!((found - p.evaluate(x)).norm() < 1e-10 * top as f64, "{basis:?} of degree {top}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_exponential_of_a_bootstrap() {
        let params = params();
        let c: Vec<Complex64> = (0..32).map(|k| Complex64::new(1.0 / f64::from(k + 1), 0.5)).collect();
        let mut plan = Plan::new(params.sketch().clone(), params.max_level(), 45f64.exp2());
        Planner::write(&mut plan, 0, (Basis::Chebyshev, &c), 45f64.exp2()).unwrap();
        let OperationCount { products, relinearisations, .. } = plan.operations();
        assert_eq!((products, relinearisations), (13, 10));
    }

    #[test]
    fn few_relinearisations() {
        let params = params();
        let relinearised = |basis, c: Vec<Complex64>| {
            let mut plan = Plan::new(params.sketch().clone(), params.max_level(), 45f64.exp2());
            Planner::write(&mut plan, 0, (basis, &c), 45f64.exp2()).unwrap();
            plan.operations().relinearisations
        };
        let all = |top: usize| vec![Complex64::ONE; top + 1];
        assert_eq!([1, 2, 3, 7, 15].map(|top| relinearised(Basis::Power, all(top))), [0, 1, 2, 4, 7]);
        let mut sparse = vec![Complex64::ZERO; 33];
        sparse[32] = Complex64::ONE;
        assert_eq!(relinearised(Basis::Power, sparse), 5);
    }

    #[test]
    fn too_few_levels_are_refused() {
        let params = params();
        let mut plan = Plan::new(params.sketch().clone(), 2, 45f64.exp2());
        let refused = Planner::write(&mut plan, 0, (Basis::Power, &[Complex64::ONE; 9]), 45f64.exp2());
        assert_eq!(refused, Err(RlweError::OutOfLevels { operation: "a polynomial", needed: 4, level: 2 }.into()));
        assert!(plan.sums.is_empty());
    }
}
