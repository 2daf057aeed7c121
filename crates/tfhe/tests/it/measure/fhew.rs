//! The blind rotations of FHEW: by digits of the exponents, and by automorphisms.

use super::Tally;
use super::support::{context, key, mean_square, words};
use sudare_ring::random::ObjectSeeds;
use sudare_tfhe::boolean::fhew::{AutomorphismBootstrapKey, DigitBootstrapKey, variance as formulas};
use sudare_tfhe::*;

/// Binary and ternary secrets, all exponents. The counts of products and automorphisms are those of each rotation.
pub fn blind_rotations(number: u64, tally: &mut Tally) -> Result<(), TfheError> {
    // Little rounding: it is nearly one sample a rotation.
    let (context, gadget) = (context(40, 1, SecretKind::Binary), Gadget { base_log: 18, levels: 2 });
    let (q, n, dimension, rounds) = (context.q(), context.degree(), 24, 8);
    for kind in [SecretKind::Binary, SecretKind::Ternary] {
        let (glwe, seed) = key(&context, number);
        let lwe = LweSecretKey::generate(dimension, kind, &mut seed.derive("lwe", 0).stream(0));
        let (a, b) = (ObjectSeeds::derive(&seed, "a", 0), ObjectSeeds::derive(&seed, "b", 0));
        let by_digits = DigitBootstrapKey::generate(&lwe, &glwe, gadget, 2, &a)?;
        let by_automorphisms = AutomorphismBootstrapKey::generate(&lwe, &glwe, gadget, 6, &b)?;
        let (mut digits, mut automorphisms) = (0.0, 0.0);
        for i in 0..rounds {
            let mut mask: Vec<u32> = words(&seed, i, 2 * n as u64, dimension + 1).iter().map(|x| *x as u32).collect();
            let body = mask.remove(0);
            let test = words(&seed, 1000 + i, q, n);
            let turned = |mask: &[u32]| {
                let inner: i64 = mask.iter().zip(lwe.coefficients()).map(|(a, s)| i64::from(*a) * s).sum();
                let steps = (inner - i64::from(body)).rem_euclid(2 * n as i64) as usize;
                Ok::<_, TfheError>(GlweCiphertext::trivial(&context, &test)?.rotated(steps))
            };
            let mut acc = GlweCiphertext::trivial(&context, &test)?;
            let products = by_digits.blind_rotate(&mut acc, &RotationExponents { mask: mask.clone(), body })?;
            let noise = mean_square(q, &glwe.phase(&acc)?, turned(&mask)?.body());
            digits += noise / formulas::by_digits(&context, gadget, products as f64);
            mask.iter_mut().for_each(|x| *x |= 1);
            let by = RotationExponents { mask: mask.clone(), body };
            let (acc, count) = by_automorphisms.blind_rotate(&test, &by)?;
            let noise = mean_square(q, &glwe.phase(&acc)?, turned(&mask)?.body());
            automorphisms += noise / formulas::by_automorphisms(&context, gadget, dimension, count as f64);
        }
        for (what, sum) in [("digits", digits), ("automorphisms", automorphisms)] {
            tally.note(format!("blind rotation by {what}, {kind:?}"), sum / rounds as f64, rounds as usize * n);
        }
    }
    Ok(())
}
