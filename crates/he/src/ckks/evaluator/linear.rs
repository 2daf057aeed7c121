//! Sums of rotations times a plaintext over Q_l·P: one decomposition for all rotations and one division
//! by P, fused with the rescale (`004`, section 3.2).

use super::{CiphertextOf, Evaluator};
use crate::ckks::noise::switching_bound;
use crate::ckks::spread::{self, Images, PlainSpread};
use crate::ckks::{Ciphertext, EncodeAt, Encoder, State};
use crate::error::HeError;
use sudare_ring::kernel::round_to_i64;
use sudare_ring::{Coeff, Eval, Poly};
use sudare_rlwe::{Backend, Params, RlweError, Shaped};

/// A plaintext over Q_l·P, to multiply what is not yet divided by P.
#[derive(Clone, Debug)]
pub struct ExtendedPlaintext<P = Poly<Eval>> {
    pub(super) params: Params,
    pub(super) poly: P,
    pub(super) level: usize,
    pub(super) scale: f64,
    pub(super) bound: f64,
    pub(super) noise: f64,
    pub(super) spread: PlainSpread,
}

impl<P> ExtendedPlaintext<P> {
    /// Its level.
    pub fn level(&self) -> usize {
        self.level
    }

    /// Its scale.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    fn check(&self, operation: &'static str, params: &Params, level: usize) -> Result<(), HeError> {
        params.require("the plaintext", &self.params)?;
        if level > self.level {
            return Err(RlweError::NoSuchLevel { operation, wanted: level, highest: self.level }.into());
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
        let params = self.params();
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
        let params = params.rlwe().clone();
        let spread = plain.spread;
        Ok(ExtendedPlaintext { params, poly, level: at.level, scale: at.scale, bound, noise, spread })
    }
}

impl<B: Backend> Evaluator<B> {
    /// i · a in every slot, exactly and at no cost in levels: X^(N/2) is the constant i.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn mul_imaginary_unit(&self, a: &CiphertextOf<B>) -> Result<CiphertextOf<B>, HeError> {
        Ok(Ciphertext::new(self.inner.mul_imaginary_unit(&a.inner, false)?, a.state()).with_spread(a.spread.turned()))
    }

    /// p ⊙ Σ_ψ ψ(a), rescaled: one decomposition, one division by P·q_l.
    ///
    /// # Errors
    /// As [`Evaluator::sum_of_automorphisms`] and [`Evaluator::rescale`].
    pub fn sum_of_automorphisms_mul_rescale(
        &self,
        a: &CiphertextOf<B>,
        elements: &[u64],
        p: &ExtendedPlaintext<B::Plaintext>,
    ) -> Result<CiphertextOf<B>, HeError> {
        self.sum_of_images_mul_rescale(a, elements, p, Images::Overlapping)
    }

    /// The same, of images that hold messages in the same or in different slots.
    ///
    /// # Errors
    /// As there.
    pub fn sum_of_images_mul_rescale(
        &self,
        a: &CiphertextOf<B>,
        elements: &[u64],
        p: &ExtendedPlaintext<B::Plaintext>,
        images: Images,
    ) -> Result<CiphertextOf<B>, HeError> {
        let operation = "masked sum of rotations";
        self.inner.check_two_parts(operation, &a.inner)?;
        let (params, level) = (self.params(), a.level());
        p.check(operation, params, level)?;
        a.inner.lower(operation)?;
        self.check_keys(elements, level)?;
        let terms = elements.len() as f64;
        let inner = (a.noise + switching_bound(params, level)) * terms;
        let state = State {
            scale: a.scale * p.scale,
            bound: a.bound * terms * p.bound,
            noise: inner * (p.bound * p.scale + p.noise) + a.bound * terms * a.scale * p.noise,
        };
        state.check_fits(operation, params, level)?;
        let switched = elements.iter().filter(|e| **e != 1).count() as f64;
        let spread = a.spread.images(terms, images).plus(spread::switching(params, level) * switched);
        let spread = self.rescaled_spread(spread.mul_plain(a.scale, p.spread, p.scale), level, 2);
        let inner = self.inner.sum_of_automorphisms_mul_rescale(&a.inner, elements, &p.poly)?;
        Ok(Ciphertext::new(inner, self.rescaled(state, level, 2)).with_spread(spread))
    }
}
