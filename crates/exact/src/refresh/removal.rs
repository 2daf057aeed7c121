//! Removal of the lowest digit: z = t·x + v modulo t² becomes t·x.
//!
//! H is the odd polynomial of degree 4B + 1 with H(v) ≡ v modulo t² and H'(v) ≡ 0 modulo t for |v| ≤ B, so that
//! H(t·x + v) ≡ v whatever x is (Hermite's interpolation; the null polynomials of ePrint 2024/115 have its degree). It
//! is evaluated at the least depth, by baby steps in odd powers and giant steps in powers of two, with the sums of a product
//! and its remainders relinearised once. Constants are centred modulo t²; they also bring terms to one plaintext factor, which
//! is therefore free.

use crate::error::{ExactError, parameters};
use crate::{IntegerParams, NoiseModel};
use std::collections::BTreeMap;
use sudare_ring::PlainModulus;
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::work::Work;
use sudare_rlwe::{self as rlwe, Counters};

/// The coefficients of H, the constant one first.
///
/// # Errors
/// `RlweError::Parameters` unless t > 2B + 1, so that differences of nodes are units.
pub fn removal_polynomial(t: u64, bound: u64) -> Result<Vec<u64>, ExactError> {
    if t <= 2 * bound + 1 {
        return Err(parameters(format!(
            "digits up to {bound} have no removal polynomial modulo {t}²; take a larger t"
        )));
    }
    let m = PlainModulus::new(t.saturating_mul(t))?;
    // Newton's form on every node twice.
    let bound = bound as i64;
    let nodes: Vec<i64> = (-bound..=bound).flat_map(|v| [v, v]).collect();
    let mut differences: Vec<u64> = nodes.iter().map(|v| m.reduce_i64(*v)).collect();
    let (mut out, mut base) = (vec![0; nodes.len()], vec![1]);
    for k in 0..nodes.len() {
        let c = differences[0];
        out.iter_mut().zip(&base).for_each(|(o, b)| *o = m.add(*o, m.mul(c, *b)));
        // base·(x − x_k).
        let minus = m.reduce_i64(-nodes[k]);
        let times = |i: usize| {
            let below = if i > 0 { base[i - 1] } else { 0 };
            base.get(i).map_or(below, |b| m.add(below, m.mul(*b, minus)))
        };
        base = (0..=base.len()).map(times).collect();
        let next = |i: usize| -> Result<u64, ExactError> {
            let distance = nodes[i + k + 1] - nodes[i];
            // The derivative is zero.
            if distance == 0 {
                return Ok(0);
            }
            let difference = m.add(differences[i + 1], m.neg(differences[i]));
            Ok(m.mul(difference, m.inverse(m.reduce_i64(distance))?))
        };
        differences = (0..nodes.len() - k - 1).map(next).collect::<Result<_, _>>()?;
    }
    while out.last() == Some(&0) {
        out.pop();
    }
    Ok(out)
}

/// A power of z, and how it comes.
#[derive(Clone, Copy, Debug)]
struct Power {
    /// Level at which its halves are multiplied.
    at: usize,
    level: usize,
    noise: f64,
}

/// A sum of products and multiples, divided once.
#[derive(Clone, Debug)]
struct Sum {
    at: usize,
    level: usize,
    noise: f64,
    /// A sum times a power.
    products: Vec<(Sum, usize)>,
    /// Powers with their coefficients.
    multiples: Vec<(usize, u64)>,
}

impl Sum {
    fn counters(&self) -> Counters {
        let (products, multiples) = (self.products.len() as u64, self.multiples.len() as u64);
        let relin = u64::from(products > 0);
        let here = Counters {
            add: products + multiples - 1,
            mult: products,
            relin,
            key_switches: relin,
            ..Counters::default()
        };
        self.products.iter().map(|(sum, _)| sum.counters()).sum::<Counters>() + here
    }

    fn work(&self, literal: &ParamsLiteral) -> Work {
        let products = self.products.len() as f64;
        let multiples = Work::passes_at(literal, self.at, 2.0 * self.multiples.len() as f64);
        let below = self.products.iter().map(|(sum, _)| sum.work(literal));
        below.fold(product(literal, (self.at, self.level), products) + multiples, |all, work| all + work)
    }
}

/// Work of so many products that are summed, relinearised and divided once.
fn product(literal: &ParamsLiteral, (at, to): (usize, usize), count: f64) -> Work {
    let relinearised = if count > 0.0 { Work::key_switch(literal, at) } else { Work::default() };
    Work::tensor(literal, at) * count + relinearised + Work::divide(literal, at, to) * 2.0
}

/// The plan of z − H(z).
#[derive(Clone, Debug)]
pub(super) struct Removal {
    powers: BTreeMap<usize, Power>,
    sum: Sum,
}

/// What is planned with.
struct Planner<'a> {
    model: &'a NoiseModel,
    /// t².
    modulus: u64,
    babies: usize,
    powers: BTreeMap<usize, Power>,
}

impl Removal {
    /// The plan for z at a level with noise: of all numbers of baby steps that with the highest level of the result, then
    /// with the fewest relinearisations.
    ///
    /// # Errors
    /// `RlweError::Parameters` where the modulus has no room.
    pub fn plan(params: &IntegerParams, bound: u64, t: u64, (level, noise): (usize, f64)) -> Result<Self, ExactError> {
        let m = params.modulus();
        let mut g: Vec<u64> = removal_polynomial(t, bound)?.into_iter().map(|c| m.neg(c)).collect();
        if let Some(linear) = g.get_mut(1) {
            *linear = m.add(*linear, 1);
        }
        let mut best: Option<Self> = None;
        for log in 1..=g.len().ilog2() {
            let powers = BTreeMap::from([(1, Power { at: level, level, noise })]);
            let mut planner = Planner { model: params.noise(), modulus: m.value(), babies: 1 << log, powers };
            let Ok(mut sum) = planner.sum(&g) else { continue };
            // The result is rotated before it is divided.
            let turned = params.noise().switched(sum.at) + params.noise().division(2);
            sum.noise += turned * (params.log_q(sum.level) - params.log_q(sum.at)).exp2();
            if !params.noise().fits(sum.level, sum.noise) {
                continue;
            }
            let new = Self { powers: planner.powers, sum };
            let rank = |r: &Self| (r.sum.level, u64::MAX - r.counters().relin);
            if best.as_ref().is_none_or(|best| rank(&new) > rank(best)) {
                best = Some(new);
            }
        }
        best.ok_or_else(|| {
            parameters("the modulus has no room for removing the noise digit; take more primes above the user's")
        })
    }

    /// Level and noise of the result.
    pub fn result(&self) -> (usize, f64) {
        (self.sum.level, self.sum.noise)
    }

    /// The level at which the result is summed, before it is divided.
    pub fn summed_at(&self) -> usize {
        self.sum.at
    }

    /// What it does.
    pub fn counters(&self) -> Counters {
        let power = Counters { mult: 1, relin: 1, key_switches: 1, ..Counters::default() };
        power * (self.powers.len() - 1) + self.sum.counters() + Counters::rotations(1)
    }

    /// What it costs, the rotation at the end counted.
    pub fn work(&self, literal: &ParamsLiteral) -> Work {
        let power = |(_, p): (&usize, &Power)| product(literal, (p.at, p.level), 1.0);
        let powers = self.powers.iter().filter(|(k, _)| **k > 1).map(power);
        let last = self.sum.work(literal) + Work::rotation(literal, self.sum.at);
        powers.fold(last, |all, work| all + work)
    }

    /// W·(z − H(z)), rotated by a Galois element before the last division, of z with a plaintext factor; W is `wanted`.
    ///
    /// # Errors
    /// As [`rlwe::Evaluator::relinearize_divide`].
    pub fn run(
        &self,
        evaluator: &rlwe::Evaluator,
        params: &IntegerParams,
        (z, factor): (rlwe::Ciphertext, u64),
        (wanted, turn): (u64, u64),
    ) -> Result<rlwe::Ciphertext, ExactError> {
        let level = z.level();
        let made = BTreeMap::from([((1, level), (z, factor))]);
        Run { plan: self, evaluator, params, made }.sum(&self.sum, wanted, Some(turn))
    }
}

impl Planner<'_> {
    fn fits(&self, level: usize, noise: f64) -> Result<f64, ExactError> {
        match self.model.fits(level, noise) {
            true => Ok(noise),
            false => Err(parameters(
                "a power of the noise digit has no room in the modulus; take more primes above the user's",
            )),
        }
    }

    /// Noise of a power at a level.
    fn dropped(&self, k: usize, level: usize) -> f64 {
        let Power { level: own, noise, .. } = self.powers[&k];
        self.model.dropped(noise, 2, (own, level), 1.0)
    }

    /// z^k, from its two halves.
    fn power(&mut self, k: usize) -> Result<Power, ExactError> {
        if let Some(power) = self.powers.get(&k) {
            return Ok(*power);
        }
        let (a, b) = (k.div_ceil(2), k / 2);
        let at = self.power(a)?.level.min(self.power(b)?.level);
        let product = self.modulus as f64 * self.dropped(a, at) * self.dropped(b, at);
        let power = self.divided(at, product)?;
        self.powers.insert(k, power);
        Ok(power)
    }

    /// A relinearised product as far down as its noise asks.
    fn divided(&self, at: usize, product: f64) -> Result<Power, ExactError> {
        let product = self.fits(at, product)?;
        let level = self.model.bgv_target(at, product);
        let noise = self.fits(level, self.model.bgv_switched(product, at, level))?;
        Ok(Power { at, level, noise })
    }

    /// The sum that a polynomial is.
    fn sum(&mut self, p: &[u64]) -> Result<Sum, ExactError> {
        let mut sum = Sum { at: usize::MAX, level: 0, noise: 0.0, products: Vec::new(), multiples: Vec::new() };
        self.add(p, &mut sum)?;
        let (modulus, at) = (self.modulus as f64, sum.at);
        let of = |sum: &Sum| self.model.dropped(sum.noise, 2, (sum.level, at), 1.0);
        let products = sum.products.iter().map(|(q, k)| modulus * of(q) * self.dropped(*k, at));
        let multiples = sum.multiples.iter().map(|(k, _)| modulus / 2.0 * self.dropped(*k, at));
        let noise = products.chain(multiples).sum();
        let Power { level, noise, .. } = if sum.products.is_empty() {
            let noise = self.fits(at, noise)?;
            let level = self.model.bgv_target(at, noise);
            Power { at, level, noise: self.fits(level, self.model.dropped(noise, 2, (at, level), 1.0))? }
        } else {
            self.divided(at, noise)?
        };
        Ok(Sum { level, noise, ..sum })
    }

    /// Adds a polynomial's products and multiples: p = q·z^g + r.
    fn add(&mut self, p: &[u64], sum: &mut Sum) -> Result<(), ExactError> {
        let Some(top) = p.iter().rposition(|c| *c != 0) else { return Ok(()) };
        if top < self.babies {
            for (k, c) in p.iter().enumerate().filter(|(_, c)| **c != 0) {
                sum.at = sum.at.min(self.power(k)?.level);
                sum.multiples.push((k, *c));
            }
            return Ok(());
        }
        let g = 1usize << top.ilog2();
        let quotient = self.sum(&p[g..])?;
        sum.at = sum.at.min(quotient.level).min(self.power(g)?.level);
        sum.products.push((quotient, g));
        self.add(&p[..g], sum)
    }
}

/// Values that are there, by power and level, with their plaintext factors.
struct Run<'a> {
    plan: &'a Removal,
    evaluator: &'a rlwe::Evaluator,
    params: &'a IntegerParams,
    made: BTreeMap<(usize, usize), (rlwe::Ciphertext, u64)>,
}

impl Run<'_> {
    /// The plaintext factor after a division by the primes from `to` + 1 to `from`.
    fn after(&self, factor: u64, from: usize, to: usize) -> Result<u64, ExactError> {
        let t = self.params.modulus();
        Ok(t.mul(factor, t.inverse(self.params.dropped_mod_t(from, to))?))
    }

    fn dropped(&self, a: &rlwe::Ciphertext, to: usize) -> Result<rlwe::Ciphertext, ExactError> {
        if a.level() == to {
            return Ok(a.clone());
        }
        let tables = || self.params.division(a.level(), to, false, 1);
        Ok(self.evaluator.divide(a, rlwe::Quotient { to, tables: &tables })?)
    }

    /// t² times a product, relinearised and divided at once.
    fn relinearized(&self, product: &rlwe::Ciphertext, to: usize) -> Result<rlwe::Ciphertext, ExactError> {
        let tables = || self.params.division(product.level(), to, true, self.params.t());
        Ok(self.evaluator.relinearize_divide(product, rlwe::Quotient { to, tables: &tables })?)
    }

    /// z^k at a level.
    fn power(&mut self, k: usize, level: usize) -> Result<(rlwe::Ciphertext, u64), ExactError> {
        if let Some(found) = self.made.get(&(k, level)) {
            return Ok(found.clone());
        }
        let Power { at, level: own, .. } = self.plan.powers[&k];
        let made = if level == own {
            let ((a, e), (b, f)) = (self.power(k.div_ceil(2), at)?, self.power(k / 2, at)?);
            let product = self.evaluator.dot(&[&a], &[&b])?;
            let t = self.params.modulus();
            let made = self.relinearized(&product, level)?;
            (made, self.after(t.mul(e, f), at, level)?)
        } else {
            let (a, factor) = self.power(k, own)?;
            (self.dropped(&a, level)?, self.after(factor, own, level)?)
        };
        self.made.insert((k, level), made.clone());
        Ok(made)
    }

    /// A sum's value with the plaintext factor `wanted`.
    fn sum(&mut self, sum: &Sum, wanted: u64, turn: Option<u64>) -> Result<rlwe::Ciphertext, ExactError> {
        let (params, evaluator, at) = (self.params, self.evaluator, sum.at);
        let t = params.modulus();
        let before = t.mul(wanted, params.dropped_mod_t(at, sum.level));
        let mut linear: Option<rlwe::Ciphertext> = None;
        for (k, c) in &sum.multiples {
            let (power, factor) = self.power(*k, at)?;
            let constant = t.center(t.mul(t.mul(*c, before), t.inverse(factor)?));
            let term = evaluator.mul_integer(&power, constant)?;
            match &mut linear {
                Some(sum) => evaluator.add_assign(sum, &term)?,
                None => linear = Some(term),
            }
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (quotient, g) in &sum.products {
            let (power, factor) = self.power(*g, at)?;
            let own = t.mul(before, t.inverse(factor)?);
            // The quotient's factor is wanted where it is multiplied.
            let wanted = t.mul(own, params.dropped_mod_t(quotient.level, at));
            let value = self.sum(quotient, wanted, None)?;
            left.push(self.dropped(&value, at)?);
            right.push(power);
        }
        if left.is_empty() {
            let linear = linear.ok_or(rlwe::RlweError::Internal { what: "a sum of nothing" })?;
            return self.dropped(&linear, sum.level);
        }
        let [a, b] = [&left, &right].map(|side| side.iter().collect::<Vec<_>>());
        let mut total = evaluator.dot(&a, &b)?;
        if let Some(linear) = linear {
            // Products wait for the factor t², which the division has.
            evaluator.add_assign(&mut total, &evaluator.mul_scalars(&linear, params.t_inv(at))?)?;
        }
        match turn {
            None => self.relinearized(&total, sum.level),
            Some(turn) => {
                let whole = self.relinearized(&total, at)?;
                self.dropped(&evaluator.automorphism(&whole, turn, 0)?, sum.level)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_testkit::Random;

    fn evaluate(m: &PlainModulus, p: &[u64], z: u64) -> u64 {
        p.iter().rev().fold(0, |acc, c| m.add(m.mul(acc, z), *c))
    }

    /// H(t·x + v) = v modulo t² for all x and v at small t, for random ones at large t.
    #[test]
    fn the_digit_is_found_exactly() {
        for (t, bound) in [(257, 6), (257, 15), (7681, 14), (65537, 14), (65537, 17), (786433, 15), (12289, 8)] {
            let m = PlainModulus::new(t * t).unwrap();
            let h = removal_polynomial(t, bound).unwrap();
            assert_eq!(h.len() as u64, 4 * bound + 2);
            assert!(h.iter().step_by(2).all(|c| *c == 0), "odd");
            let mut random = Random(t);
            let digits: Vec<u64> =
                if t < 10_000 { (0..t).collect() } else { (0..2000).map(|_| random.below(t)).collect() };
            for v in -(bound as i64)..=bound as i64 {
                for x in &digits {
                    let z = m.reduce_i64((t * x) as i64 + v);
                    assert_eq!(evaluate(&m, &h, z), m.reduce_i64(v), "t = {t}, x = {x}, v = {v}");
                }
            }
            // Not further: the bound is what matters.
            let z = m.reduce_i64(bound as i64 + 1);
            assert_ne!(evaluate(&m, &h, z), z);
        }
    }

    #[test]
    fn too_many_digits_for_a_modulus() {
        assert!(removal_polynomial(257, 127).is_ok());
        assert!(removal_polynomial(257, 128).is_err());
    }
}
