//! One ciphertext that holds m numbers in its coefficients becomes m ciphertexts of one number each, in every slot.
//!
//! With D = 2^L ≥ m and Y = X^(N/D), round i = 0 … L − 1 parts Σ_k c_k·Y^(k·2^i) by the automorphism X ↦ X^(D/2^i + 1), which
//! turns the sign where k is odd: the sum with the image has the even k, the difference, divided by Y^(2^i), the odd ones.
//! Each round doubles, so that the results are D times the coefficients. A round takes one key and no level; m results take
//! about m − 1 key switches. Angel–Chen–Laine–Setty, ePrint 2017/1142, Algorithm 1.

use crate::ckks::spread::{self, PlainSpread, Spread};
use crate::ckks::{Ciphertext, CiphertextOf, Evaluator, Params, Plaintext, PlaintextOf, State};
use crate::error::{HeError, parameters};
use sudare_ring::{Coeff, Poly, interrupt, threads};
use sudare_rlwe::{Backend, Over};

/// How one ciphertext becomes `count`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    degree: usize,
    count: usize,
    rounds: u32,
}

impl Expansion {
    /// An expansion to `count` ciphertexts.
    ///
    /// # Errors
    /// `RlweError::Parameters` unless 1 ≤ `count` ≤ N.
    pub fn new(params: &Params, count: usize) -> Result<Self, HeError> {
        let degree = params.degree();
        if !(1..=degree).contains(&count) {
            return Err(parameters(format!(
                "an expansion to {count} ciphertexts is not possible; a ring of degree {degree} gives 1 to {degree}"
            )));
        }
        Ok(Self { degree, count, rounds: count.next_power_of_two().trailing_zeros() })
    }

    /// How many ciphertexts it makes.
    pub fn count(&self) -> usize {
        self.count
    }

    /// D: what it multiplies each number by.
    pub fn factor(&self) -> f64 {
        f64::from(self.rounds).exp2()
    }

    /// The coefficient that number j has to stand in: j·N/D.
    pub fn place(&self, j: usize) -> usize {
        j * (self.degree >> self.rounds)
    }

    /// The Galois elements, one for each round.
    pub fn elements(&self) -> Vec<u64> {
        (0..self.rounds).map(|i| (1 << (self.rounds - i)) + 1).collect()
    }

    /// Key switches of one run.
    pub fn key_switches(&self) -> usize {
        (0..self.rounds).map(|i| self.count.min(1 << i)).sum()
    }

    /// Expected variance of a slot's error, E|e|², of a result, in integer units: an image's error is another slot's, so
    /// that errors of sums add as variances do.
    pub fn variance(&self, params: &Params, level: usize, input: f64) -> f64 {
        let switched = spread::switching(params, level) + spread::division(params, 2);
        input * self.factor() + switched * (self.factor() - 1.0)
    }
}

impl<B: Backend> Evaluator<B> {
    /// The numbers of `x` apart, each D times as large ([`Expansion::factor`]) and in every slot. `x` has number j as
    /// coefficient [`Expansion::place`]\(j), and zeros in the others.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, `RlweError::Degree`; `RlweError::MissingRotationKey`,
    /// `RlweError::NoSuchLevel` if a key does not reach, before any work; [`HeError::TooLarge`].
    pub fn expand(&self, x: &CiphertextOf<B>, expansion: &Expansion) -> Result<Vec<CiphertextOf<B>>, HeError> {
        let (params, level) = (self.params(), x.level());
        self.check(x)?;
        let elements = expansion.elements();
        self.check_keys(&elements, level)?;
        let mut parts = vec![(0, x.clone())];
        for (i, element) in elements.into_iter().enumerate() {
            interrupt::check();
            let shift = self.monomial(level, -((expansion.place(1) << i) as isize))?;
            let round = |k: usize| {
                let (place, part): &(usize, CiphertextOf<B>) = &parts[k];
                let image = self.automorphism(part, element, 0)?;
                let even = (*place, self.add(part, &image)?);
                let odd = *place + (1 << i);
                if odd >= expansion.count {
                    return Ok(vec![even]);
                }
                Ok(vec![even, (odd, self.mul_plain(&self.sub(part, &image)?, &shift)?)])
            };
            let split = threads::map_jobs(parts.len(), round).into_iter().collect::<Result<Vec<_>, HeError>>()?;
            parts = split.into_iter().flatten().collect();
        }
        parts.sort_by_key(|(place, _)| *place);
        let variance = expansion.variance(params, level, x.spread().real.held);
        let spread = Spread::even(x.bound() * expansion.factor(), variance);
        Ok(parts.into_iter().map(|(_, c)| c.with_spread(spread)).collect())
    }

    /// The same message in units of 1/`factor`, at no cost: what holds x at a scale holds x/`factor` at `factor` times the
    /// scale.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a factor that is not above zero.
    pub fn divided(&self, a: &CiphertextOf<B>, factor: f64) -> Result<CiphertextOf<B>, HeError> {
        let State { scale, bound, noise } = a.state();
        let out =
            Ciphertext::from_parts(a.inner().clone(), State { scale: scale * factor, bound: bound / factor, noise })?;
        Ok(out.with_spread(Spread { size: a.spread().size / factor, ..a.spread() }))
    }

    /// X^`by` as a plaintext: exact, of size one.
    fn monomial(&self, level: usize, by: isize) -> Result<PlaintextOf<B>, HeError> {
        let params = self.params();
        let make = || {
            let mut one = vec![0i64; params.degree()];
            one[0] = 1;
            let mut x = Poly::<Coeff>::from_signed(params.q_at(level), &one);
            x.mul_monomial(by);
            Ok::<_, HeError>(x.into_eval())
        };
        let poly = self.backend().prepare(level, Over::Q, make)?;
        let spread = PlainSpread { size: 1.0, error: 0.0, mask: false };
        Ok(Plaintext { params: params.rlwe().clone(), poly, level, scale: 1.0, bound: 1.0, noise: 0.0, spread })
    }
}
