//! Sums of rotations times a plaintext over Q_l·P: one decomposition for all rotations and one division
//! by P, fused with the rescale (`004`, section 3.2).

use super::{Evaluator, count};
use crate::ckks::noise::{division_bound, switching_bound};
use crate::ckks::{Ciphertext, EncodeAt, Encoder};
use crate::error::HeError;
use crate::keyswitch::{self, Decomposed, ExtendedPair};
use crate::params::Params;
use sudare_ring::kernel::round_to_i64;
use sudare_ring::{Coeff, Eval, Poly};

/// A plaintext over Q_l·P, to multiply what is not yet divided by P.
#[derive(Clone, Debug)]
pub struct ExtendedPlaintext {
    params: Params,
    poly: Poly<Eval>,
    level: usize,
    scale: f64,
    bound: f64,
    noise: f64,
}

impl ExtendedPlaintext {
    /// Its level.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Its scale.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Its limbs for a ciphertext at `level`.
    fn at(&self, level: usize) -> std::borrow::Cow<'_, Poly<Eval>> {
        if level == self.level {
            return std::borrow::Cow::Borrowed(&self.poly);
        }
        let all = self.poly.basis().len();
        let indices: Vec<usize> = (0..=level).chain(self.level + 1..all).collect();
        std::borrow::Cow::Owned(self.poly.select(&indices))
    }

    fn check(&self, operation: &'static str, params: &Params, level: usize) -> Result<(), HeError> {
        params.expect("the plaintext", &self.params)?;
        if level > self.level {
            return Err(HeError::NoSuchLevel { operation, wanted: level, highest: self.level });
        }
        Ok(())
    }
}

impl Encoder {
    /// Real values to the first slots, the rest zero, over Q_l·P.
    ///
    /// # Errors
    /// As [`Encoder::encode_at`]; [`HeError::TooLarge`] also where |value|·scale reaches 2^62.
    pub fn encode_extended(&self, values: &[f64], at: EncodeAt) -> Result<ExtendedPlaintext, HeError> {
        let plain = self.encode_at(values, at)?;
        let params = plain.params().clone();
        if at.max_abs.max(1e-300).log2() + at.scale.log2() >= 62.0 {
            let (operation, modulus) = ("encoding", 62.0);
            let (value, scale) = (at.max_abs.log2(), at.scale.log2());
            return Err(HeError::TooLarge { operation, value, scale, modulus, level: at.level });
        }
        let mut re = values.to_vec();
        re.resize(params.slots(), 0.0);
        let mut im = vec![0.0; re.len()];
        params.embedding().embed_inverse_split(&mut re, &mut im);
        re.append(&mut im);
        let mut rounded = vec![0i64; re.len()];
        round_to_i64(&mut rounded, &re, at.scale);
        let poly = Poly::<Coeff>::from_signed(params.qp_at(at.level), &rounded).into_eval();
        let (bound, noise) = (plain.bound(), plain.error_bound() * at.scale);
        Ok(ExtendedPlaintext { params, poly, level: at.level, scale: at.scale, bound, noise })
    }
}

impl Encoder {
    /// The parameters that it encodes for.
    pub fn params(&self) -> &Params {
        &self.params
    }
}

impl Evaluator {
    /// Σ_ψ P·ψ(a) over Q_l·P for the automorphisms ψ of some elements, from hoisted digits.
    fn images(&self, a: &Ciphertext, decomposed: &Decomposed, elements: &[u64]) -> Result<ExtendedPair, HeError> {
        let keys = elements
            .iter()
            .map(|e| if *e == 1 { Ok(None) } else { self.galois_key(*e, 0, a.level).map(Some) })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(keyswitch::sum_of_images(self.params(), [&a.parts[0], &a.parts[1]], decomposed, &keys))
    }

    /// Refuses before any work what a missing key would refuse in the middle.
    pub(crate) fn check_keys(&self, elements: &[u64], level: usize) -> Result<(), HeError> {
        elements.iter().filter(|e| **e != 1).try_for_each(|e| self.galois_key(*e, 0, level).map(|_| ()))
    }

    fn count_rotation(&self) {
        count(&self.counters.rot);
        count(&self.counters.key_switches);
    }

    /// i · a in every slot, exactly and at no cost in levels: X^(N/2) is the constant i.
    ///
    /// # Errors
    /// [`HeError::WrongParameters`], [`HeError::WrongKey`].
    pub fn mul_imaginary_unit(&self, a: &Ciphertext) -> Result<Ciphertext, HeError> {
        self.check(a)?;
        let mut monomial = vec![0i64; self.params().degree()];
        monomial[self.params().slots()] = 1;
        let monomial = Poly::<Coeff>::from_signed(self.params().q_at(a.level), &monomial).into_eval();
        let mut out = a.clone();
        out.parts.iter_mut().for_each(|x| x.mul_assign(&monomial));
        Ok(out)
    }

    /// p ⊙ Σ_ψ ψ(a), rescaled: one decomposition, one division by P·q_l.
    ///
    /// # Errors
    /// As [`Evaluator::sum_of_automorphisms`] and [`Evaluator::rescale`].
    pub fn sum_of_automorphisms_mul_rescale(
        &self,
        a: &Ciphertext,
        elements: &[u64],
        p: &ExtendedPlaintext,
    ) -> Result<Ciphertext, HeError> {
        let operation = "masked sum of rotations";
        self.check_two_parts(operation, a)?;
        let params = self.params();
        p.check(operation, params, a.level)?;
        if a.level == 0 {
            return Err(HeError::OutOfLevels { operation, needed: 1, level: 0 });
        }
        self.check_keys(elements, a.level)?;
        let terms = elements.len() as f64;
        let prime = params.prime_at(a.level) as f64;
        let inner = (a.noise + switching_bound(params, a.level)) * terms;
        let mut out = a.shell();
        out.bound = a.bound * terms * p.bound;
        out.noise = inner * (p.bound * p.scale + p.noise) + a.bound * terms * a.scale * p.noise;
        out.scale = a.scale * p.scale;
        out.check_fits(operation)?;
        out.scale /= prime;
        out.noise = out.noise / prime + division_bound(params, 2);
        out.level = a.level - 1;
        let decomposed = keyswitch::decompose(params, a.level, &a.parts[1]);
        elements.iter().filter(|e| **e != 1).for_each(|_| self.count_rotation());
        (1..elements.len()).for_each(|_| count(&self.counters.add));
        let sum = self.images(a, &decomposed, elements)?;
        count(&self.counters.cmult);
        let mask = p.at(a.level);
        out.parts = sum
            .c
            .into_iter()
            .map(|mut c| {
                c.mul_assign(&mask);
                keyswitch::mod_down_rescale(params, a.level, c)
            })
            .collect();
        Ok(out)
    }
}
