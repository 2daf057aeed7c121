//! One ciphertext of many numbers becomes many of one.

use crate::world::{Owner, literal};
use sudare_he::circuits::expansion::Expansion;
use sudare_he::ckks::{Ciphertext, EncodeAt, Encryptor};
use sudare_ring::{ErrorKind, Kinded};
use sudare_testkit::{Random, sized};

fn encrypted(owner: &Owner, expansion: &Expansion, numbers: &[f64], scale: f64) -> Ciphertext {
    let mut coefficients = vec![0.0; owner.params.degree()];
    numbers.iter().enumerate().for_each(|(j, x)| coefficients[expansion.place(j)] = *x);
    let at = EncodeAt { level: owner.params.max_level(), scale, max_abs: 1.0 };
    let plain = owner.encoder.encode_coefficients(&coefficients, at).unwrap();
    Encryptor::with_secret_key(&owner.secret).unwrap().encrypt(&plain).unwrap()
}

#[test]
fn every_number_comes_out_in_every_slot() {
    let params = literal(10, &[40, 40, 40], &[45], 1, 40).build().unwrap();
    let owner = Owner::new(&params);
    for count in [1, 2, 5, 16, 33] {
        let expansion = Expansion::new(&params, count).unwrap();
        let server = owner.server(&expansion.elements());
        let numbers: Vec<f64> = Random(7).units(count);
        let factor = expansion.factor();
        assert_eq!(factor as usize, count.next_power_of_two());
        server.reset_counters();
        let parts = server.expand(&encrypted(&owner, &expansion, &numbers, 40f64.exp2() / factor), &expansion).unwrap();
        assert_eq!(server.counters().key_switches, expansion.key_switches() as u64);
        assert_eq!(parts.len(), count);
        for (part, number) in parts.iter().zip(&numbers) {
            let part = server.divided(part, factor).unwrap();
            assert!((part.scale().log2() - 40.0).abs() < 1e-12 && part.bound() >= number.abs());
            let slots = owner.decrypt(&part);
            assert!(slots.iter().all(|z| (z - number).norm() < part.error_bound().min(1e-6)));
        }
    }
}

#[test]
fn errors_are_those_of_the_formula() {
    let params = literal(12, &[30, 30, 31], &[31, 31, 31], 3, 30).build().unwrap();
    let owner = Owner::new(&params);
    let expansion = Expansion::new(&params, 32).unwrap();
    let server = owner.server(&expansion.elements());
    let (mut measured, mut expected, runs) = (0.0, 0.0, sized(12, 100));
    for _ in 0..runs {
        let x = encrypted(&owner, &expansion, &[0.0; 32], 30f64.exp2());
        for part in server.expand(&x, &expansion).unwrap() {
            let slots = owner.decrypt(&part);
            measured += slots.iter().map(|z| z.norm_sqr()).sum::<f64>() / slots.len() as f64 * part.scale().powi(2);
            expected += part.spread().real.held;
        }
    }
    let ratio = measured / expected;
    assert!((ratio - 1.0).abs() < sized(0.05, 0.03), "{ratio}");
}

#[test]
fn what_cannot_be_expanded_is_refused() {
    let params = literal(10, &[40, 40], &[45], 1, 40).build().unwrap();
    let owner = Owner::new(&params);
    assert!(Expansion::new(&params, 0).is_err() && Expansion::new(&params, 1025).is_err());
    let expansion = Expansion::new(&params, 8).unwrap();
    let server = owner.server(&expansion.elements()[..2]);
    let refused = server.expand(&encrypted(&owner, &expansion, &[0.5; 8], 37f64.exp2()), &expansion).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::MissingKey);
    assert_eq!(server.counters().key_switches, 0);
}
