//! Automorphisms: alone, hoisted, and summed with one division for all.

use super::Cpu;
use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use crate::keys::GaloisKey;
use crate::params::Params;
use crate::switching::ExtendedPair;
use std::borrow::Cow;
use std::sync::Arc;
use sudare_ring::ops::{Digits, Ending, Image, RnsGadget};
use sudare_ring::{Eval, Poly};

/// Keys that stream past one reading of the digits.
const TOGETHER: usize = 4;

/// A polynomial over Q·P of some level, for a lower one.
///
/// # Errors
/// [`RlweError::Parameters`] for one over other primes, or of a lower level.
pub fn narrowed<'p>(p: &'p Poly<Eval>, params: &Params, level: usize) -> Result<Cow<'p, Poly<Eval>>, RlweError> {
    let (all, special) = (p.basis().len(), params.p().len());
    let from = all.checked_sub(special + 1).filter(|from| (level..=params.max_level()).contains(from));
    match from.filter(|from| p.basis() == params.qp_at(*from)) {
        Some(from) if from == level => Ok(Cow::Borrowed(p)),
        Some(from) => Ok(Cow::Owned(p.select(&(0..=level).chain(from + 1..all).collect::<Vec<_>>()))),
        None => {
            let reason =
                "a plaintext that multiplies a sum of rotations before its division has to be over Q_l·P".into();
            Err(RlweError::Parameters { reason })
        }
    }
}

impl Cpu {
    /// The digits at a ciphertext's level.
    fn gadget(&self, a: &Ciphertext) -> &RnsGadget {
        &self.context.params().tables(a.level()).gadget
    }

    /// The keys of automorphisms; none for element 1, the identity.
    pub(super) fn galois_keys(&self, elements: &[u64]) -> Result<Vec<Option<Arc<GaloisKey>>>, RlweError> {
        let key = |e: &u64| if *e == 1 { Ok(None) } else { self.context.keys().galois(*e, 0).map(Some) };
        elements.iter().map(key).collect()
    }

    /// X → X^element.
    pub(super) fn image(&self, a: &Ciphertext, element: u64) -> Result<Ciphertext, RlweError> {
        let key = self.context.keys().galois(element, 0)?;
        let [c0, c1] = a.both();
        let division = self.context.params().tables(a.level()).by_p()?;
        let end = Ending { division, plus: None, image: Some((c0, key.permutation())) };
        let parts = self.gadget(a).switch_divided(c1, key.key().pairs(), &end);
        Ok(a.with_parts(parts.into(), a.level()))
    }

    /// Several automorphisms with one decomposition.
    pub(super) fn images(&self, a: &Ciphertext, elements: &[u64]) -> Result<Vec<Ciphertext>, RlweError> {
        let digits = self.gadget(a).decompose(&a.parts()[1]);
        let mut out = Vec::with_capacity(elements.len());
        for elements in elements.chunks(TOGETHER) {
            let keys = self.galois_keys(elements)?;
            let given: Vec<&GaloisKey> = keys.iter().flatten().map(|key| &**key).collect();
            let mut rotated = self.rotated(a, &digits, &given)?.into_iter();
            out.extend(keys.iter().filter_map(|key| if key.is_some() { rotated.next() } else { Some(a.clone()) }));
        }
        Ok(out)
    }

    /// Rotations by some keys, which stream past one reading of the digits.
    fn rotated(&self, a: &Ciphertext, digits: &Digits, keys: &[&GaloisKey]) -> Result<Vec<Ciphertext>, RlweError> {
        let division = self.context.params().tables(a.level()).by_p()?;
        let end = |key| Ending { division, plus: None, image: Some((&a.parts()[0], GaloisKey::permutation(key))) };
        let keys: Vec<_> = keys.iter().map(|key| (key.key().pairs(), end(*key))).collect();
        let parts = self.gadget(a).products_divided(digits, &keys);
        Ok(parts.into_iter().map(|parts| a.with_parts(parts.into(), a.level())).collect())
    }

    /// Σ_ψ ψ(a), or times a mask and rescaled.
    pub(super) fn sum_of_images(
        &self,
        a: &Ciphertext,
        elements: &[u64],
        mask: Option<&Poly<Eval>>,
    ) -> Result<Ciphertext, RlweError> {
        let params = self.context.params();
        let mask = mask.map(|p| narrowed(p, params, a.level())).transpose()?;
        let keys = self.galois_keys(elements)?;
        let images: Vec<Option<Image<'_>>> = keys.iter().map(|key| key.as_deref().map(GaloisKey::image)).collect();
        let gadget = self.gadget(a);
        let c = gadget.sum_of_images(a.both(), &gadget.decompose(&a.parts()[1]), &images);
        let mut sum = ExtendedPair { level: a.level(), c };
        let Some(mask) = mask else { return Ok(a.with_parts(sum.mod_down(params).into(), a.level())) };
        sum.c.iter_mut().for_each(|c| c.mul_assign(&mask));
        Ok(a.with_parts(sum.mod_down_rescale(params)?.into(), a.level() - 1))
    }

    /// P·ψ(a).
    fn extended_image(&self, (a, element): (&Ciphertext, u64)) -> Result<ExtendedPair, RlweError> {
        let (params, level, parts) = (self.context.params(), a.level(), a.both());
        let Some(key) = self.galois_keys(&[element])?.pop().flatten() else {
            let mut pair = ExtendedPair::zero(params, level);
            parts.iter().enumerate().for_each(|(i, c)| pair.add_scaled(params, i, c));
            return Ok(pair);
        };
        let c = self.gadget(a).switch(parts[1], None, key.key().pairs());
        let mut pair = ExtendedPair { level, c };
        pair.add_scaled(params, 0, parts[0]);
        Ok(pair.permuted(key.permutation()))
    }

    /// ψ(a) − φ(b).
    pub(super) fn difference_of_images(
        &self,
        a: (&Ciphertext, u64),
        b: (&Ciphertext, u64),
    ) -> Result<Ciphertext, RlweError> {
        let mut difference = self.extended_image(a)?;
        difference.sub_assign(&self.extended_image(b)?);
        Ok(a.0.with_parts(difference.mod_down(self.context.params()).into(), a.0.level()))
    }
}
