//! The accumulator of Ducas and Micciancio: a key for each digit of an exponent.

use crate::core::context::check_shape;
use crate::core::ggsw::{check_gadget, evaluate_digits, write_ggsw};
use crate::{GlweCiphertext, GlweContext, GlweSecretKey, LweSecretKey, RotationExponents, TfheError};
use sudare_ring::buffer::Buffer;
use sudare_ring::kernel::{Gadget, PackedMatrix};
use sudare_ring::random::{MaskSeed, ObjectSeeds};
use sudare_ring::threads;
use zeroize::Zeroizing;

/// GGSW encryptions of `X^(v·B^j·s_i)` for each coefficient s_i, digit place j and digit v ≠ 0 of base B.
///
/// Source: Ducas and Micciancio, 2014/816, section 4.2 (refreshing key, accumulator).
pub struct DigitBootstrapKey {
    pub(super) context: GlweContext,
    pub(super) gadget: Gadget,
    pub(super) base_log: u32,
    pub(super) dimension: usize,
    pub(super) masks: MaskSeed,
    /// For each coefficient, place after place, digit after digit.
    pub(super) keys: Vec<Vec<PackedMatrix>>,
}

/// Bits of the digit at each place of an exponent modulo 2N.
fn places(log_two_n: u32, base_log: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..log_two_n).step_by(base_log as usize).map(move |at| (at, base_log.min(log_two_n - at)))
}

/// Keys of a coefficient: one for each digit that is not zero.
pub(super) fn keys_of(two_n: usize, base_log: u32) -> usize {
    places(two_n.trailing_zeros(), base_log).map(|(_, bits)| (1 << bits) - 1).sum()
}

impl DigitBootstrapKey {
    /// A key for blind rotations by ciphertexts under `lwe`, which may be ternary; coefficients are done in
    /// parallel inside a thread pool, coefficient i from stream i.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a base outside 2^1 to 2^6 or a gadget that does not fit the modulus.
    pub fn generate(
        lwe: &LweSecretKey,
        glwe: &GlweSecretKey,
        gadget: Gadget,
        base_log: u32,
        seeds: &ObjectSeeds,
    ) -> Result<Self, TfheError> {
        let context = glwe.context();
        check_gadget(context, gadget)?;
        if !(1..=6).contains(&base_log) {
            return Err(TfheError::Parameters { reason: format!("digits have 1 to 6 bits, not {base_log}") });
        }
        let (n, columns, dimension) = (context.degree(), context.rank() + 1, lwe.dimension());
        let log_two_n = n.trailing_zeros() + 1;
        let keys = threads::map(dimension, |i| {
            let (mut masks, mut errors) = (seeds.masks.stream(i as u64), seeds.errors.stream(i as u64));
            let s = lwe.coefficients()[i];
            let mut message = Zeroizing::new(vec![0u64; n]);
            let digits = places(log_two_n, base_log).flat_map(|(at, bits)| (1..1i64 << bits).map(move |v| v << at));
            digits
                .map(|exponent| {
                    let mut m = PackedMatrix::zeroed(context.limb(), 1, columns * gadget.levels as usize, columns);
                    write_monomial(context, exponent * s, &mut message);
                    write_ggsw(glwe, &message, gadget, &mut m, 0, (&mut masks, &mut errors));
                    m
                })
                .collect()
        });
        Ok(Self { context: context.clone(), gadget, base_log, dimension, masks: seeds.masks, keys })
    }

    /// The seed of its masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        &self.masks
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        self.keys.iter().flatten().map(PackedMatrix::byte_len).sum()
    }

    /// Multiplies the accumulator by `X^(−b + Σ a_i·s_i)`, in place; gives the number of external products.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Modulus`] for an accumulator of another ring or exponents
    /// of another dimension.
    pub fn blind_rotate(&self, acc: &mut GlweCiphertext, by: &RotationExponents) -> Result<usize, TfheError> {
        self.context.check(acc.context())?;
        check_shape("LWE dimension", self.dimension, by.mask.len())?;
        let (n, limb) = (self.context.degree(), self.context.limb());
        let two_n = 2 * n;
        *acc = acc.rotated(two_n - by.body as usize % two_n);
        let mut digits = Buffer::dirty(self.context.words() * self.gadget.levels as usize);
        let mut products = 0;
        for (keys, a) in self.keys.iter().zip(&by.mask) {
            let mut first = 0;
            for (at, bits) in places(two_n.trailing_zeros(), self.base_log) {
                let digit = (*a as usize >> at) & ((1 << bits) - 1);
                if digit > 0 {
                    evaluate_digits(&self.context, self.gadget, acc.words(), &mut digits);
                    limb.external_product(acc.words_mut(), &digits, &keys[first + digit - 1]);
                    acc.words_mut().chunks_exact_mut(n).for_each(|p| limb.inverse(p));
                    products += 1;
                }
                first += (1 << bits) - 1;
            }
        }
        Ok(products)
    }
}

/// X^exponent in evaluation form; the exponent is a secret's, so every value is read alike.
pub(super) fn write_monomial(context: &GlweContext, exponent: i64, out: &mut [u64]) {
    let n = context.degree();
    let mut coefficients = Zeroizing::new(vec![0i64; n]);
    let e = exponent.rem_euclid(2 * n as i64);
    for (i, x) in coefficients.iter_mut().enumerate() {
        *x = i64::from(e == i as i64) - i64::from(e == (i + n) as i64);
    }
    context.limb().from_i64(out, &coefficients);
    context.limb().forward(out);
}

/// External products of a blind rotation: on average over uniform exponents, and at most.
pub(super) fn products(two_n: usize, base_log: u32, dimension: usize) -> (f64, f64) {
    let places = places(two_n.trailing_zeros(), base_log);
    let (mean, most) =
        places.fold((0.0, 0.0), |(mean, most), (_, bits)| (mean + 1.0 - (-f64::from(bits)).exp2(), most + 1.0));
    (dimension as f64 * mean, dimension as f64 * most)
}
