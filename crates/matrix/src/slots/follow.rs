//! What the evaluator will say of each ciphertext, worked out from a parameter literal: level,
//! scale, bound on the message and static bound on the noise.
//!
//! The evaluator refuses what its modulus may not hold by these figures
//! ([`sudare_he::ckks::noise`]). They are followed here operation by operation, with the same
//! formulas, so that a plan that is accepted is not refused when it runs.

use crate::product::Peak;
use crate::sizing;
use sudare_he::ckks::ParamsLiteral;
use sudare_he::ckks::noise::TAIL;
use sudare_rlwe::noise::{ERROR_VARIANCE, ROUNDING_VARIANCE};

/// What travels with a ciphertext.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// Level.
    pub level: usize,
    /// Scale.
    pub scale: f64,
    /// Bound on the message.
    pub bound: f64,
    /// Bound on the noise's canonical norm, in integer units.
    pub noise: f64,
}

impl State {
    /// The same with a tighter bound.
    #[must_use]
    pub fn with_bound(self, bound: f64) -> Self {
        Self { bound, ..self }
    }
}

/// Follows ciphertexts under one parameter literal and keeps the sizes that they reach.
#[derive(Debug)]
pub struct Follow<'a> {
    literal: &'a ParamsLiteral,
    n: f64,
    /// Every size that the evaluator checks.
    pub peaks: Vec<Peak>,
}

impl<'a> Follow<'a> {
    /// Nothing followed yet.
    pub fn new(literal: &'a ParamsLiteral) -> Self {
        Self { literal, n: sizing::degree(literal), peaks: Vec::new() }
    }

    /// The literal.
    pub fn literal(&self) -> &'a ParamsLiteral {
        self.literal
    }

    fn prime(&self, level: usize) -> f64 {
        self.literal.q_bits.get(level).map_or(1.0, |b| f64::from(*b).exp2())
    }

    fn switching(&self, level: usize) -> f64 {
        let p: u32 = self.literal.p_bits.iter().sum();
        let digits = self.literal.q_bits[..=level].chunks(self.literal.digit_limbs.max(1));
        let sizes: f64 = digits.map(|d| (2.0 * (f64::from(d.iter().sum::<u32>()) - f64::from(p))).exp2()).sum();
        TAIL[1] * self.n * (ERROR_VARIANCE * ROUNDING_VARIANCE * sizes).sqrt()
    }

    fn division(&self) -> f64 {
        let one = (self.n * ROUNDING_VARIANCE).sqrt();
        TAIL[0] * one + TAIL[1] * one * sizing::secret_energy(self.literal).sqrt()
    }

    /// Noise of a plaintext up to `bound` at a scale.
    fn plain(&self, bound: f64, scale: f64) -> f64 {
        TAIL[0] * (self.n * ROUNDING_VARIANCE).sqrt() + bound * scale * self.n.log2() * f64::EPSILON
    }

    fn check(&mut self, s: State) -> State {
        self.peaks.push(Peak { level: s.level, bits: (s.bound * s.scale + s.noise).max(1.0).log2() + 1.0 });
        s
    }

    /// A public-key encryption of slots up to `bound`, at the top.
    pub fn fresh(&mut self, bound: f64) -> State {
        let (level, scale) = (self.literal.q_bits.len() - 1, f64::from(self.literal.log_scale).exp2());
        let noise = sizing::fresh_bound(self.literal) + self.plain(bound, scale);
        self.check(State { level, scale, bound, noise })
    }

    /// The sum of two, the second's scale taken for the first's.
    pub fn add(&mut self, a: State, b: State) -> State {
        let unlike = (a.scale - b.scale).abs() * b.bound;
        let (bound, noise) = (a.bound + b.bound, a.noise + b.noise + unlike);
        self.check(State { level: a.level.min(b.level), bound, noise, ..a })
    }

    /// The sum of `count` that are alike.
    pub fn sum(&mut self, a: State, count: usize) -> State {
        let count = count as f64;
        self.check(State { bound: a.bound * count, noise: a.noise * count, ..a })
    }

    /// `a + p` for a plaintext up to `size`.
    pub fn add_plain(&mut self, a: State, size: f64) -> State {
        self.check(State { bound: a.bound + size, noise: a.noise + self.plain(size, a.scale), ..a })
    }

    /// `a · p` for a plaintext up to `size` at `scale`, not rescaled.
    pub fn mul_plain(&mut self, a: State, size: f64, scale: f64) -> State {
        let own = self.plain(size, scale);
        let noise = a.noise * (size * scale + own) + a.bound * a.scale * own;
        self.check(State { scale: a.scale * scale, bound: a.bound * size, noise, ..a })
    }

    /// `a · p` for a mask or a number up to `size`, rescaled.
    pub fn masked(&mut self, a: State, size: f64) -> State {
        let product = self.mul_plain(a, size, self.prime(a.level));
        State { scale: a.scale, ..self.rescale(product) }
    }

    /// `a · value` for an integer.
    pub fn mul_integer(&mut self, a: State, value: f64) -> State {
        self.check(State { bound: a.bound * value, noise: a.noise * value, ..a })
    }

    /// One prime less.
    pub fn rescale(&self, a: State) -> State {
        let prime = self.prime(a.level);
        State { level: a.level - 1, scale: a.scale / prime, noise: a.noise / prime + self.division(), ..a }
    }

    /// The same message at another scale, one level down.
    pub fn set_scale(&mut self, a: State, scale: f64) -> State {
        let factor = (scale / a.scale * self.prime(a.level)).round();
        let raised = self.check(State { scale: a.scale * factor, noise: a.noise * factor, ..a });
        let out = self.rescale(raised);
        State { scale, noise: out.noise + (out.scale - scale).abs() * out.bound, ..out }
    }

    /// A rotation.
    pub fn rotate(&self, a: State) -> State {
        State { noise: a.noise + self.switching(a.level) + self.division(), ..a }
    }

    /// Stages of sums of rotations, by the radix of each; hoisted, or a rotation and a sum each.
    pub fn fold(&mut self, a: State, stages: &[usize], hoisted: bool) -> State {
        stages.iter().fold(a, |a, radix| {
            let (r, switching, division) = (*radix as f64, self.switching(a.level), self.division());
            let divisions = if hoisted { 1.0 } else { r - 1.0 };
            let noise = r * a.noise + (r - 1.0) * switching + divisions * division;
            self.check(State { bound: r * a.bound, noise, ..a })
        })
    }

    /// A sum of `terms` images, masked and rescaled with one division.
    pub fn masked_sum(&mut self, a: State, terms: usize) -> State {
        let terms = terms as f64;
        let sum = State { bound: a.bound * terms, noise: (a.noise + self.switching(a.level)) * terms, ..a };
        self.masked(sum, 1.0)
    }

    /// A sum of `terms` images of different slots, each masked or not, with a rescale for the masks.
    pub fn gathered(&mut self, a: State, terms: usize, masked: bool) -> State {
        let turned = self.rotate(a);
        let prime = self.prime(a.level);
        let one = if masked { self.mul_plain(turned, 1.0, prime) } else { turned };
        let sum = (1..terms).fold(one, |sum, _| self.add(sum, one).with_bound(a.bound));
        if masked { State { scale: a.scale, ..self.rescale(sum) } } else { sum }
    }

    /// A ciphertext and its rotated image, `times` times over, in different slots each time.
    pub fn doubled(&mut self, a: State, times: usize) -> State {
        (0..times).fold(a, |a, _| {
            let image = self.rotate(a);
            self.add(a, image).with_bound(a.bound)
        })
    }

    /// A linear map of `diagonals` masks, of which at most one reaches a slot, with `giants` giant
    /// steps.
    pub fn linear_map(&mut self, a: State, diagonals: usize, giants: usize) -> State {
        let (switching, prime) = (self.switching(a.level), self.prime(a.level));
        let own = self.plain(1.0, prime);
        let each = (a.noise + switching) * (prime + own) + a.bound * a.scale * own;
        let noise = each * diagonals as f64 + (switching + self.division()) * giants as f64;
        let sum = self.check(State { scale: a.scale * prime, noise, ..a });
        State { scale: a.scale, ..self.rescale(sum) }
    }

    /// Σ a·b over `terms` pairs that are alike, of three parts.
    pub fn dot(&mut self, a: State, b: State, terms: usize) -> State {
        let (x, y, terms) = (a.bound * a.scale, b.bound * b.scale, terms as f64);
        let noise = (x * b.noise + y * a.noise + a.noise * b.noise) * terms;
        let (level, bound) = (a.level.min(b.level), a.bound * b.bound * terms);
        self.check(State { level, scale: a.scale * b.scale, bound, noise })
    }

    /// Two parts again, rescaled.
    pub fn relinearize_rescale(&mut self, a: State) -> State {
        self.rescale(State { noise: a.noise + self.switching(a.level), ..a })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::common::{fold, mask_at, mask_values, plain_mask, radices, stages};
    use std::collections::BTreeMap;
    use sudare_he::circuits::linear_map::LinearMap;
    use sudare_he::ckks::{Ciphertext, Encoder, Encryptor, Evaluator};
    use sudare_rlwe::keys::{KeyGenerator, SecretKey};
    use sudare_rlwe::security::{SecretDistribution, Security};

    fn near(what: &str, found: &Ciphertext, followed: State) {
        let close = |x: f64, y: f64| (x / y - 1.0).abs() < 0.02;
        assert_eq!(found.level(), followed.level, "{what}");
        let all = [(found.scale(), followed.scale), (found.bound(), followed.bound), (found.noise(), followed.noise)];
        assert!(all.iter().all(|(x, y)| close(*x, *y)), "{what}: found and followed {all:?}");
    }

    /// Every operation, beside the evaluator's.
    #[test]
    fn the_evaluator_says_the_same() {
        let literal = ParamsLiteral {
            rlwe: sudare_rlwe::params::ParamsLiteral {
                log_n: 10,
                q_bits: vec![55, 40, 40, 40],
                p_bits: vec![50, 50],
                digit_limbs: 2,
                secret: SecretDistribution::Ternary,
                security: Security::Insecure,
            },
            log_scale: 38,
        };
        let params = literal.build().unwrap();
        let secret = SecretKey::generate(&params).unwrap();
        let generator = KeyGenerator::new(&secret).unwrap();
        let steps = stages(16, 4, 2);
        let elements: Vec<u64> =
            steps.iter().flatten().map(|s| params.rotation_element(*s)).filter(|e| *e != 1).collect();
        let mut wanted: Vec<(u64, usize)> = elements.iter().map(|e| (*e, 3)).collect();
        wanted.extend((1..8).map(|s| (params.rotation_element(s), 3)));
        wanted.sort_unstable();
        wanted.dedup();
        let e = Evaluator::new(&params, generator.eval_keys(Some(3), &wanted).unwrap()).unwrap();
        let public = generator.public_key().unwrap();
        let (encoder, encryptor) = (Encoder::new(&params), Encryptor::with_public_key(&public).unwrap());
        let a = encryptor.encrypt(&encoder.encode(&[0.5; 20], 3.0).unwrap()).unwrap();

        let mut f = Follow::new(&literal);
        let x = f.fresh(3.0);
        near("encryption", &a, x);
        near("sum", &e.add(&a, &a).unwrap(), f.add(x, x));
        near("integer", &e.mul_integer(&a, -5).unwrap(), f.mul_integer(x, 5.0));
        near("number", &e.mul_constant(&a, 0.3).unwrap(), f.masked(x, 0.3));
        near("rotation", &e.rotate(&a, 4).unwrap(), f.rotate(x));
        near("hoisted fold", &fold(&e, a.clone(), &steps, true).unwrap(), f.fold(x, &radices(&steps), true));
        near("fold", &fold(&e, a.clone(), &steps, false).unwrap(), f.fold(x, &radices(&steps), false));
        let mask = plain_mask(&params, 3, &mask_values(params.slots(), 1.0, |i| i < 7)).unwrap();
        near("mask", &e.rescale(&e.mul_plain(&a, &mask).unwrap()).unwrap(), f.masked(x, 1.0));
        let shift =
            encoder.encode_at(&[2.0; 9], sudare_he::ckks::EncodeAt { max_abs: 2.0, ..encoder.at_top(2.0) }).unwrap();
        near("plain sum", &e.add_plain(&a, &shift).unwrap(), f.add_plain(x, 2.0));
        let (b, y) = (e.mul_rescale(&a, &a).unwrap(), f.dot(x, x, 1));
        let y = f.relinearize_rescale(y);
        near("product", &b, y);
        let three = e.relinearize_rescale(&e.dot(&[&a, &a, &a], &[&a, &a, &a]).unwrap()).unwrap();
        let dot = f.dot(x, x, 3);
        near("inner product", &three, f.relinearize_rescale(dot));
        near("scale", &e.set_scale(&a, b.scale()).unwrap(), f.set_scale(x, y.scale));
        let extended =
            encoder.encode_extended(&mask_values(params.slots(), 1.0, |i| i < 7), mask_at(&params, 3)).unwrap();
        let images: Vec<u64> = steps[0].iter().map(|s| params.rotation_element(*s)).collect();
        let masked = e.sum_of_automorphisms_mul_rescale(&a, &images, &extended).unwrap();
        near("masked sum", &masked, f.masked_sum(x, steps[0].len()));
        let diagonals: BTreeMap<i64, Vec<f64>> =
            (0..8).map(|t| (t, mask_values(params.slots(), 1.0, |i| i as i64 % 8 == t))).collect();
        let map = LinearMap::new(&encoder, &diagonals, 1, 3, mask_at(&params, 3)).unwrap();
        near("linear map", &e.linear_map(&a, &map).unwrap(), f.linear_map(x, 8, 2));
    }
}
