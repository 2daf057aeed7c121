//! Blind rotation by automorphisms of the accumulator.

use crate::boolean::fhew::digits::write_monomial;
use crate::core::context::check_shape;
use crate::core::ggsw::{check_gadget, evaluate_digits, write_ggsw};
use crate::keyswitch::automorphism::AutomorphismKey;
use crate::{GlweCiphertext, GlweContext, GlweSecretKey, LweSecretKey, RotationExponents, TfheError};
use sudare_ring::automorphism::{EvalPermutation, apply_coeff};
use sudare_ring::buffer::Buffer;
use sudare_ring::kernel::{Gadget, PackedMatrix};
use sudare_ring::random::{MaskSeed, ObjectSeeds};
use sudare_ring::threads;
use zeroize::Zeroizing;

/// The generator of the Galois group's large part: odd numbers modulo 2N are ±5^l.
const GENERATOR: u64 = 5;

/// GGSW encryptions of `X^(s_i)`, and keys for the automorphisms 5, 5^2, …, 5^window and −5.
///
/// Odd exponents are ±5^l. Positions run from −5^(N/2−1) down to −5^0, then from 5^(N/2−1) to 5^0;
/// between neighbouring positions lies the automorphism 5, between the halves −5. An accumulator that is
/// multiplied by X^(s_i) at the position of a_i leaves with X^(a_i·s_i). Runs of empty positions are jumped by
/// powers of 5 as far as the window goes.
///
/// Source: Lee, Micciancio, Kim, Choi, Deryabin, Eom and Yoo, 2022/198, section 4 (Algorithms 3 to 5).
pub struct AutomorphismBootstrapKey {
    context: GlweContext,
    gadget: Gadget,
    masks: MaskSeed,
    /// Galois elements 5^1 … 5^window.
    jumps: Vec<(u64, AutomorphismKey)>,
    /// −5.
    turn: (u64, AutomorphismKey),
    products: Vec<PackedMatrix>,
    /// The position, from 0, of each odd exponent.
    positions: Vec<u32>,
}

impl AutomorphismBootstrapKey {
    /// A key for blind rotations by ciphertexts under `lwe`, which may be ternary; parts are made in
    /// parallel inside a thread pool, that of coefficient i from stream i, automorphisms from the streams
    /// after those.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a window outside 1..=64 or a gadget that does not fit the modulus.
    pub fn generate(
        lwe: &LweSecretKey,
        glwe: &GlweSecretKey,
        gadget: Gadget,
        window: usize,
        seeds: &ObjectSeeds,
    ) -> Result<Self, TfheError> {
        let context = glwe.context();
        check_gadget(context, gadget)?;
        if !(1..=64).contains(&window) {
            return Err(TfheError::Parameters { reason: format!("a window has 1 to 64 keys, not {window}") });
        }
        let (n, columns, dimension) = (context.degree(), context.rank() + 1, lwe.dimension());
        let products = threads::map(dimension, |i| {
            let (mut masks, mut errors) = (seeds.masks.stream(i as u64), seeds.errors.stream(i as u64));
            let mut message = Zeroizing::new(vec![0u64; n]);
            write_monomial(context, lwe.coefficients()[i], &mut message);
            let mut m = PackedMatrix::zeroed(context.limb(), 1, columns * gadget.levels as usize, columns);
            write_ggsw(glwe, &message, gadget, &mut m, 0, (&mut masks, &mut errors));
            m
        });
        let elements = elements(n, window);
        let keys = threads::map(window + 1, |j| {
            let key = AutomorphismKey::generate(glwe, elements[j], gadget, seeds, (dimension + j) as u64)?;
            Ok((elements[j], key))
        });
        let mut jumps = keys.into_iter().collect::<Result<Vec<_>, TfheError>>()?;
        let turn = jumps.remove(0);
        Ok(Self {
            context: context.clone(),
            gadget,
            masks: seeds.masks,
            jumps,
            turn,
            products,
            positions: positions(n),
        })
    }

    /// A key from the matrices of its products and then those of its automorphisms, that of −5 first.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for too few of them.
    pub(super) fn from_parts(
        context: GlweContext,
        gadget: Gadget,
        masks: MaskSeed,
        dimension: usize,
        mut products: Vec<PackedMatrix>,
    ) -> Result<Self, TfheError> {
        let n = context.degree();
        if products.len() < dimension + 2 {
            let found = products.len();
            return Err(TfheError::Shape { what: "parts of a key", expected: dimension + 2, found });
        }
        let automorphisms = products.split_off(dimension);
        let elements = elements(n, automorphisms.len() - 1);
        let keys = elements.into_iter().zip(automorphisms).map(|(element, matrix)| {
            Ok((element, AutomorphismKey::from_parts(EvalPermutation::new(n, element)?, matrix)))
        });
        let mut jumps = keys.collect::<Result<Vec<_>, TfheError>>()?;
        let turn = jumps.remove(0);
        Ok(Self { gadget, masks, jumps, turn, products, positions: positions(n), context })
    }

    /// The matrix of a product, or behind them of an automorphism, that of −5 first.
    pub(super) fn part(&self, i: usize) -> &PackedMatrix {
        match i.checked_sub(self.products.len()) {
            None => &self.products[i],
            Some(0) => self.turn.1.matrix(),
            Some(j) => self.jumps[j - 1].1.matrix(),
        }
    }

    /// The seed of its masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        &self.masks
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        let automorphisms = self.jumps.iter().chain([&self.turn]).map(|(_, key)| key.byte_len());
        self.products.iter().map(PackedMatrix::byte_len).chain(automorphisms).sum()
    }

    /// Multiplies a public accumulator by `X^(−b + Σ a_i·s_i)` for odd a_i; gives the result and the number
    /// of automorphisms.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for a polynomial or exponents of other lengths, `RlweError::Ring` for a
    /// coefficient not below q, [`TfheError::Parameters`] for an even exponent.
    pub fn blind_rotate(&self, test: &[u64], by: &RotationExponents) -> Result<(GlweCiphertext, usize), TfheError> {
        check_shape("LWE dimension", self.products.len(), by.mask.len())?;
        let (n, limb, q) = (self.context.degree(), self.context.limb(), self.context.modulus());
        let two_n = 2 * n;
        if by.mask.iter().any(|a| a % 2 == 0) {
            return Err(TfheError::Parameters { reason: "the exponents of this blind rotation have to be odd".into() });
        }
        let mut order: Vec<(u32, u32)> =
            by.mask.iter().zip(0..).map(|(a, i)| (self.positions[(*a as usize % two_n) / 2], i)).collect();
        order.sort_unstable();
        let plan = self.plan(&order);
        // All automorphisms that are to come, taken off a public polynomial beforehand.
        let all = plan.iter().fold(1u64, |g, (_, element)| element.map_or(g, |(e, _)| g * e % two_n as u64));
        let start = GlweCiphertext::trivial(&self.context, test)?.rotated(two_n - by.body as usize % two_n);
        let mut acc = GlweCiphertext::zero(&self.context);
        apply_coeff(q, inverse(all, two_n as u64), acc.body_mut(), start.body())?;
        let masks = self.context.lwe_dimension();
        let levels = self.gadget.levels as usize;
        let mut digits = Buffer::dirty(self.context.words() * levels);
        let mut permuted = Buffer::dirty(masks * levels);
        let mut body = Buffer::dirty(n);
        let (mut sum, mut automorphisms) = (Buffer::dirty(self.context.words()), 0);
        // Whether the body is in evaluation form.
        let mut evaluated = false;
        for (products, automorphism) in &plan {
            for i in products.clone() {
                if evaluated {
                    limb.inverse(acc.body_mut());
                }
                evaluate_digits(&self.context, self.gadget, acc.words(), &mut digits);
                limb.external_product(acc.words_mut(), &digits, &self.products[order[i].1 as usize]);
                acc.words_mut()[..masks].chunks_exact_mut(n).for_each(|p| limb.inverse(p));
                evaluated = true;
            }
            if let Some((_, key)) = automorphism {
                if !evaluated {
                    limb.forward(acc.body_mut());
                }
                let scratch = (&mut digits[..masks * levels], &mut permuted[..]);
                key.switch_masks(&self.context, self.gadget, &acc.words()[..masks], scratch, &mut sum);
                body.copy_from_slice(acc.body());
                acc.words_mut().copy_from_slice(&sum);
                key.permutation().apply_add(q, acc.body_mut(), &body);
                acc.words_mut()[..masks].chunks_exact_mut(n).for_each(|p| limb.inverse(p));
                evaluated = true;
                automorphisms += 1;
            }
        }
        if evaluated {
            limb.inverse(acc.body_mut());
        }
        Ok((acc, automorphisms))
    }

    /// Runs of products (by place in `order`, sorted by position), each with the automorphism after it.
    fn plan(&self, order: &[(u32, u32)]) -> Vec<Step<'_>> {
        let half = self.context.degree() as u32 / 2;
        let end = 2 * half - 1;
        let (mut plan, mut at, mut done): (Vec<Step<'_>>, u32, usize) = (Vec::new(), 0, 0);
        if let Some((first, _)) = order.first() {
            at = *first;
        }
        while !order.is_empty() {
            let next = done + order[done..].partition_point(|(position, _)| *position == at);
            let target = order.get(next).map_or(end, |(position, _)| *position);
            plan.push((done..next, None));
            done = next;
            while at < target {
                // The turn is the step from position half − 1 to half.
                let (step, key) = if at == half - 1 {
                    (1, (self.turn.0, &self.turn.1))
                } else {
                    let room = if at < half { half - 1 - at } else { u32::MAX };
                    let step = (target - at).min(room).min(self.jumps.len() as u32);
                    let (element, key) = &self.jumps[step as usize - 1];
                    (step, (*element, key))
                };
                match plan.last_mut() {
                    Some(last) if last.1.is_none() => last.1 = Some(key),
                    _ => plan.push((done..done, Some(key))),
                }
                at += step;
            }
            if done == order.len() {
                break;
            }
        }
        plan
    }
}

/// Products, and the automorphism after them.
type Step<'a> = (std::ops::Range<usize>, Option<(u64, &'a AutomorphismKey)>);

/// −5, then 5^1 … 5^window modulo 2N.
fn elements(n: usize, window: usize) -> Vec<u64> {
    let two_n = 2 * n as u64;
    let powers = std::iter::successors(Some(GENERATOR), |power| Some(power * GENERATOR % two_n));
    std::iter::once(two_n - GENERATOR).chain(powers.take(window)).collect()
}

/// The position of each odd number modulo 2N, `a` at index (a − 1)/2.
fn positions(n: usize) -> Vec<u32> {
    let (half, two_n) = (n / 2, 2 * n);
    let mut out = vec![0; n];
    let mut power = 1;
    for l in 0..half {
        // 5^l is l steps before the end, −5^l as many before the end of the first half.
        out[power / 2] = (n - 1 - l) as u32;
        out[(two_n - power) / 2] = (half - 1 - l) as u32;
        power = power * GENERATOR as usize % two_n;
    }
    out
}

/// The inverse of an odd number modulo a power of two.
fn inverse(g: u64, modulus: u64) -> u64 {
    // Each round doubles the bits that are right, from three.
    let x = (0..5).fold(g, |x, _| x.wrapping_mul(2u64.wrapping_sub(g.wrapping_mul(x))));
    x % modulus
}

/// Automorphisms of a blind rotation: on average over uniform exponents, and at most.
///
/// An automorphism follows each occupied position but the last, and further ones where a gap is wider
/// than the window.
pub(super) fn automorphisms(n: usize, dimension: usize, window: usize) -> (f64, f64) {
    let (n, dimension, window) = (n as f64, dimension as f64, window as f64);
    let empty = (1.0 - 1.0 / n).powf(dimension);
    let far = empty.powf(window);
    // A gap of g positions takes ceil(g/window) jumps; gaps are geometric.
    let mean = n * (1.0 - empty) / (1.0 - far);
    (mean, dimension.min(n) + n / window + 2.0)
}

#[cfg(test)]
mod tests {
    use super::{inverse, positions};

    #[test]
    fn odd_numbers_have_positions() {
        for n in [8usize, 512] {
            let p = positions(n);
            let mut sorted = p.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().enumerate().all(|(i, x)| i == *x as usize));
            assert_eq!((p[0], p[n - 1]), (n as u32 - 1, n as u32 / 2 - 1));
        }
        for g in (1..1024).step_by(2) {
            assert_eq!(g * inverse(g, 1024) % 1024, 1);
        }
    }
}
