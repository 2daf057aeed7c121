//! Switches of LWE ciphertexts: of key, of modulus, and of key inside the ring.

use super::Tally;
use super::support::{context, key, streams, words};
use sudare_ring::random::ObjectSeeds;
use sudare_tfhe::noise::variance;
use sudare_tfhe::*;

const N: usize = 512;

/// To (−1/2, 1/2].
fn wrap(x: f64) -> f64 {
    x - x.round()
}

/// The phase of exponents, as a fraction of 2N.
fn coarse(by: &RotationExponents, secret: &LweSecretKey, two_n: usize) -> f64 {
    let sum: i64 = by.mask.iter().zip(secret.coefficients()).map(|(a, s)| i64::from(*a) * s).sum();
    (i64::from(by.body) - sum).rem_euclid(two_n as i64) as f64 / two_n as f64
}

/// Encryption in 32 bits, the switch to it, and both modulus switches.
pub fn switches(number: u64, tally: &mut Tally) -> Result<(), TfheError> {
    let noise = NoiseSampler::new(Noise::TUniform { bits: 9 })?;
    let (two_n, dimension, rounds) = (1024, 60, 1024usize);
    for secret in [SecretKind::Binary, SecretKind::Ternary] {
        let context = context(40, 1, secret);
        let (key, seed) = key(&context, number);
        let (q, from) = (context.q(), key.to_lwe()?);
        let to = LweSecretKey::generate(dimension, secret, &mut seed.derive("short", 0).stream(0));
        let seeds = ObjectSeeds::derive(&seed, "ks", 0);
        // Rounding in charge, and the rows' errors.
        for gadget in [Gadget { base_log: 6, levels: 2 }, Gadget { base_log: 4, levels: 5 }] {
            let ks = LweSwitchKey::generate(&from, &to, gadget, &noise, &seeds)?;
            let (mut switched, mut rounded, mut odd) = (0.0, 0.0, 0.0);
            for i in 0..rounds as u64 {
                let x = LweCiphertext::from_words(context.modulus(), words(&seed, i, q, N + 1))?;
                let phase = from.phase(&x)? as f64 / q as f64;
                let small = ks.switch(&x)?;
                let after = f64::from(to.phase_torus(&small)?) / 32f64.exp2();
                switched += wrap(after - phase).powi(2);
                rounded += wrap(coarse(&small.switch_modulus(two_n, secret), &to, two_n) - after).powi(2);
                odd += wrap(coarse(&small.switch_modulus_odd(two_n, secret), &to, two_n) - after).powi(2);
            }
            let mut note = |what: String, sum: f64, predicted: f64| {
                tally.note(what, sum / rounds as f64 / predicted, rounds);
            };
            let predicted = variance::lwe_switch(gadget, N, secret, noise.noise().variance(), 0.0);
            note(format!("LWE key switch, {}x{}, {secret:?}", gadget.base_log, gadget.levels), switched, predicted);
            if gadget.levels == 2 {
                let predicted = variance::modulus_switch(dimension, secret, two_n, 0.0);
                note(format!("modulus switch, {secret:?}"), rounded, predicted);
                let predicted = boolean::fhew::variance::odd_modulus_switch(dimension, secret, two_n, 0.0);
                note(format!("modulus switch to odd exponents, {secret:?}"), odd, predicted);
            }
        }
        let (mut masks, mut errors) = streams(&seed, 1);
        let mut fresh = 0.0;
        for i in 0..rounds as u32 {
            let c = TorusLwe::encrypt(&to, i << 20, &noise, &mut masks, &mut errors);
            fresh += f64::from(to.phase_torus(&c)?.wrapping_sub(i << 20) as i32).powi(2);
        }
        let predicted = noise.noise().variance();
        tally.note(format!("LWE encryption, {secret:?}"), fresh / rounds as f64 / predicted, rounds);
    }
    Ok(())
}

/// The key switch inside the ring, to ranks 19 and 5 over degrees 16 and 64.
pub fn module_switch(number: u64, tally: &mut Tally) -> Result<(), TfheError> {
    for ((base_log, levels), n) in [((3, 5), 304), ((3, 5), 320), ((4, 4), 320)] {
        let (gadget, noise) = (Gadget { base_log, levels }, Noise::TUniform { bits: 20 });
        let context = context(44, 1, SecretKind::Binary);
        let (q, rounds) = (context.q(), 400);
        let (key, seed) = key(&context, number);
        let from = key.to_lwe()?;
        let to = LweSecretKey::generate(n, SecretKind::Binary, &mut seed.derive("n", 0).stream(0));
        let switch = ModuleSwitchKey::generate(&key, &to, gadget, noise, &ObjectSeeds::derive(&seed, "ks", 0))?;
        let mut sum = 0.0;
        for i in 0..rounds {
            let c = LweCiphertext::from_words(context.modulus(), words(&seed, i, q, N + 1))?;
            let before = from.phase(&c)? as f64 / q as f64;
            let after = f64::from(to.phase_torus(&switch.switch(&c)?)?) / 32f64.exp2();
            sum += wrap(after - before).powi(2);
        }
        let predicted = variance::module_switch(&context, gadget, n, noise.variance(), 0.0);
        let what = format!("module switch to {n}, {base_log}x{levels}");
        tally.note(what, sum / rounds as f64 / predicted, rounds as usize);
    }
    Ok(())
}
