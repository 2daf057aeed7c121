//! Measured variances against the formulas, over at least 10^5 samples each.

use crate::support::{context, key, mean_square, streams, words};
use sudare_he::tfhe::*;
use zeroize::Zeroizing;

const N: usize = 512;

/// Within 3 % of the formula, and not above it by more than chance gives.
fn check(what: &str, measured: f64, predicted: f64) {
    let ratio = measured / predicted;
    assert!((0.97..1.015).contains(&ratio), "{what}: measured / predicted = {ratio}");
}

#[test]
fn encryption_and_products() {
    for (gadget, bits) in [
        (Gadget { base_log: 15, levels: 1 }, 40),
        (Gadget { base_log: 20, levels: 1 }, 47),
        (Gadget { base_log: 6, levels: 3 }, 44),
    ] {
        let context = context(bits, 1, SecretKind::Binary);
        let q = context.q();
        let (mut fresh, mut product, mut mux, mut switched, mut count) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for number in 0..40 {
            let (key, seed) = key(&context, number);
            let (mut masks, mut errors) = streams(&seed, 0);
            let other = GlweSecretKey::generate(&context, &mut seed.derive("other", 0).stream(0));
            let one = GgswCiphertext::encrypt(&key, 1, gadget, &ObjectSeeds::derive(&seed, "g", 1)).unwrap();
            let zero = GgswCiphertext::encrypt(&key, 0, gadget, &ObjectSeeds::derive(&seed, "g", 0)).unwrap();
            let ks = GlweSwitchKey::generate(&key, &other, gadget, &ObjectSeeds::derive(&seed, "ks", 0)).unwrap();
            // Rounding times a binary secret, whose mean is not zero, is nearly one sample a product.
            for i in 0..100 {
                if i < 6 {
                    let m = words(&seed, i, q, N);
                    let c = key.encrypt(&m, &mut masks, &mut errors).unwrap();
                    fresh += mean_square(q, &key.phase(&c).unwrap(), &m) / 6.0;
                }
                let c = GlweCiphertext::from_words(&context, &words(&seed, 100 + i, q, 2 * N)).unwrap();
                let d1 = c.rotated(77);
                let phase = key.phase(&c).unwrap();
                product += mean_square(q, &key.phase(&one.external_product(&c).unwrap()).unwrap(), &phase) / 100.0;
                // A CMUX that takes d0 adds the rows' noise alone, one that takes d1 the rounding as well.
                mux += mean_square(q, &key.phase(&zero.cmux(&d1, &c).unwrap()).unwrap(), &phase) / 100.0;
                switched += mean_square(q, &other.phase(&ks.switch(&c).unwrap()).unwrap(), &phase) / 100.0;
            }
            count += 1.0;
        }
        assert!(count * 6.0 * N as f64 >= 1e5);
        check("encryption", fresh / count, variance::glwe_fresh(&context));
        check("external product", product / count, variance::external_product(&context, gadget, 0.0));
        check("CMUX", mux / count, variance::rows(&context, gadget, 2));
        check("GLWE key switch", switched / count, variance::glwe_switch(&context, gadget, 0.0));
    }
}

#[test]
fn lwe_switches() {
    let context = context(40, 1, SecretKind::Binary);
    let (q, two_n, dimension) = (context.q(), 1024, 60);
    let noise = NoiseSampler::new(Noise::TUniform { bits: 9 }).unwrap();
    let gadget = Gadget { base_log: 6, levels: 2 };
    let (mut switched, mut rounded, mut count) = (0.0, 0.0, 0.0);
    for number in 0..100 {
        let (key, seed) = key(&context, number);
        let (from, m) = (key.to_lwe().unwrap(), words(&seed, 0, q, 512));
        let (mut masks, mut errors) = streams(&seed, 0);
        let c = key.encrypt(&m, &mut masks, &mut errors).unwrap();
        let to = LweSecretKey::generate(dimension, SecretKind::Binary, &mut seed.derive("short", 0).stream(0));
        let seeds = ObjectSeeds::derive(&seed, "ks", 0);
        let ks = LweSwitchKey::generate(&from, &to, gadget, &noise, &seeds).unwrap();
        for i in 0..1024 {
            // Rotations by one give fresh digits.
            let x = if i < 512 { c.extract(i).unwrap() } else { c.rotated(i).extract(i % 512).unwrap() };
            let x = if i < 512 { x } else { scaled(x, 1 + 2 * i as i64) };
            let phase = from.phase(&x).unwrap() as f64 / q as f64;
            let small = ks.switch(&x).unwrap();
            let after = f64::from(to.phase_torus(&small).unwrap()) / 32f64.exp2();
            switched += wrap(after - phase).powi(2);
            let e = small.switch_modulus(two_n, SecretKind::Binary);
            let sum: i64 = e.mask.iter().zip(to.coefficients()).map(|(a, s)| i64::from(*a) * s).sum();
            let coarse = (i64::from(e.body) - sum).rem_euclid(two_n as i64) as f64 / two_n as f64;
            rounded += wrap(coarse - after).powi(2);
            count += 1.0;
        }
    }
    assert!(count >= 1e5);
    let row = noise.noise().variance();
    check("LWE key switch", switched / count, variance::lwe_switch(gadget, 512, SecretKind::Binary, row, 0.0));
    check("modulus switch", rounded / count, variance::modulus_switch(dimension, SecretKind::Binary, two_n, 0.0));
}

fn scaled(mut c: LweCiphertext, factor: i64) -> LweCiphertext {
    c.mul_assign(factor);
    c
}

/// To (−1/2, 1/2].
fn wrap(x: f64) -> f64 {
    x - x.round()
}

/// The phase after a bootstrap against the table's value, at every coefficient.
#[test]
fn blind_rotations() {
    for unroll in 1..=3 {
        let context = context(40, 1, SecretKind::Binary);
        let (q, dimension, gadget) = (context.q(), 48, Gadget { base_log: 17, levels: 1 });
        let (mut sum, mut count) = (0.0, 0.0);
        for number in 0..20 {
            let (key, seed) = key(&context, number);
            // Every combination of a step's bits equally often.
            let bits = (0..dimension).map(|i| ((i / unroll) >> (i % unroll) & 1) as i64).collect();
            let lwe = LweSecretKey::from_coefficients(SecretKind::Binary, Zeroizing::new(bits)).unwrap();
            let seeds = ObjectSeeds::derive(&seed, "bsk", 0);
            let bootstrap = BootstrapKey::generate(&lwe, &key, gadget, unroll, &seeds).unwrap();
            for i in 0..60 {
                let exponents: Vec<u32> =
                    words(&seed, i, 2 * N as u64, dimension + 1).iter().map(|x| *x as u32).collect();
                let by = RotationExponents { mask: exponents[1..].to_vec(), body: exponents[0] };
                let inner: i64 = by.mask.iter().zip(lwe.coefficients()).map(|(a, s)| i64::from(*a) * s).sum();
                let steps = (inner - i64::from(by.body)).rem_euclid(2 * N as i64) as usize;
                let start = GlweCiphertext::trivial(&context, &words(&seed, 1000 + i, q, N)).unwrap();
                let mut acc = start.clone();
                bootstrap.blind_rotate(&mut acc, &by).unwrap();
                sum += mean_square(q, &key.phase(&acc).unwrap(), start.rotated(steps).body());
                count += 1.0;
            }
        }
        assert!(count * N as f64 >= 1e5);
        let predicted = variance::blind_rotation(&context, gadget, dimension, unroll);
        check(&format!("blind rotation, {unroll} bits a step"), sum / count, predicted);
    }
}

/// The key switch inside the ring, to ranks 19 and 5 over degrees 16 and 64.
#[test]
fn module_switches() {
    let context = context(44, 1, SecretKind::Binary);
    let (q, gadget, noise) = (context.q(), Gadget { base_log: 3, levels: 5 }, Noise::TUniform { bits: 20 });
    for n in [304, 320] {
        let (mut sum, mut count) = (0.0, 0.0);
        for number in 0..20 {
            let (key, seed) = key(&context, number);
            let (from, to) = (
                key.to_lwe().unwrap(),
                LweSecretKey::generate(n, SecretKind::Binary, &mut seed.derive("n", 0).stream(0)),
            );
            let switch =
                ModuleSwitchKey::generate(&key, &to, gadget, noise, &ObjectSeeds::derive(&seed, "ks", 0)).unwrap();
            for i in 0..5200 {
                let c = LweCiphertext::from_words(context.modulus(), words(&seed, i, q, N + 1)).unwrap();
                let small = switch.switch(&c).unwrap();
                let before = from.phase(&c).unwrap() as f64 / q as f64;
                sum += wrap(f64::from(to.phase_torus(&small).unwrap()) / 32f64.exp2() - before).powi(2);
                count += 1.0;
            }
        }
        assert!(count >= 1e5);
        let predicted = variance::module_switch(&context, gadget, n, noise.variance(), 0.0);
        check(&format!("module switch to {n}"), sum / count, predicted);
    }
}
