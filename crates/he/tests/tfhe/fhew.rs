//! Gates by the accumulators of FHEW, on small sets and on the real one, and their noise.

use crate::support::{context, key, mean_square, words};
use sudare_he::ring::Threads;
use sudare_he::ring::random::Seed;
use sudare_he::tfhe::fhew::{self, AutomorphismBootstrapKey, DigitBootstrapKey, FhewKey, FhewLiteral, FhewMethod};
use sudare_he::tfhe::*;

fn side(literal: FhewLiteral, number: u8) -> (ClientKey, FhewKey) {
    let params = literal.build().unwrap();
    let seed = Seed::from_bytes([number; 32]);
    let client = ClientKey::from_seed(params.tfhe(), &seed).unwrap().with_seed_for_tests(seed.derive("fresh", 0));
    let key = FhewKey::generate(&params, &client).unwrap();
    (client, key)
}

fn every_gate(client: &ClientKey, key: &FhewKey) {
    let bits = [false, true].map(|b| client.encrypt_bit(b).unwrap());
    for (a, x) in bits.iter().enumerate() {
        assert_eq!(client.decrypt_bit(&key.not(x).unwrap()).unwrap(), a == 0);
        for (b, y) in bits.iter().enumerate() {
            for gate in Gate::ALL {
                let z = key.gate(gate, x, y).unwrap();
                let value = gate.plain(a == 1, b == 1);
                assert_eq!(client.decrypt_bit(&z).unwrap(), value, "{gate:?} {a} {b}");
                // And a gate of what a gate made, by the other blind rotation's key too.
                let again = key.gate(gate, &z, y).unwrap();
                assert_eq!(client.decrypt_bit(&again).unwrap(), gate.plain(value, b == 1));
            }
        }
    }
}

#[test]
fn gates_on_small_sets() {
    let methods = [
        FhewMethod::Digits { base_log: 1 },
        FhewMethod::Digits { base_log: 3 },
        FhewMethod::Digits { base_log: 5 },
        FhewMethod::Automorphisms { window: 1 },
        FhewMethod::Automorphisms { window: 10 },
    ];
    for (number, method) in methods.into_iter().enumerate() {
        let (client, key) = side(FhewLiteral::insecure_test(method), number as u8);
        every_gate(&client, &key);
    }
    let set = FhewLiteral::insecure_test(FhewMethod::Automorphisms { window: 3 });
    let rank2 = TfheLiteral { rank: 2, bootstrap_digits: (8, 3), ..set.tfhe.clone() };
    let (client, key) = side(FhewLiteral { tfhe: rank2, ..set }, 9);
    every_gate(&client, &key);
    // The bits are those of the other keys of the same client.
    let server = client.server_key().unwrap();
    let (a, b) = (client.encrypt_bit(true).unwrap(), client.encrypt_bit(false).unwrap());
    let z = server.gate(Gate::Xor, &key.gate(Gate::Or, &a, &b).unwrap(), &b).unwrap();
    assert!(client.decrypt_bit(&key.gate(Gate::And, &z, &a).unwrap()).unwrap());
}

#[test]
fn gates_on_the_real_set() {
    let (client, key) = side(FhewLiteral::automorphisms(), 10);
    let bits = [false, true].map(|b| client.encrypt_bit(b).unwrap());
    let work: Vec<_> = Gate::ALL.iter().enumerate().map(|(i, g)| (*g, &bits[i % 2], &bits[i / 2 % 2])).collect();
    let (one, many) = (key.gates(&work).unwrap(), Threads::new(2).run(|| key.gates(&work).unwrap()));
    assert_eq!(one, many);
    for (i, (gate, z)) in Gate::ALL.into_iter().zip(&one).enumerate() {
        assert_eq!(client.decrypt_bit(z).unwrap(), gate.plain(i % 2 == 1, i / 2 % 2 == 1));
    }
    // Its key is too large for a test; the set is checked all the same.
    assert!(FhewLiteral::ducas_micciancio().build().unwrap().log_failure() <= -128.0);
}

#[test]
fn typed_errors() {
    let method = FhewMethod::Automorphisms { window: 2 };
    let ((client, key), (other, _)) =
        (side(FhewLiteral::insecure_test(method), 11), side(FhewLiteral::insecure_test(method), 12));
    let (a, b) = (client.encrypt_bit(true).unwrap(), other.encrypt_bit(true).unwrap());
    assert!(matches!(key.gate(Gate::And, &a, &b), Err(TfheError::WrongKey { .. })));
    assert!(matches!(key.not(&b), Err(TfheError::WrongKey { .. })));
    for method in [FhewMethod::Digits { base_log: 7 }, FhewMethod::Automorphisms { window: 0 }] {
        assert!(matches!(FhewLiteral::insecure_test(method).build(), Err(TfheError::Parameters { .. })));
    }
    // Odd exponents take more room than the gates' own set has.
    let tight = FhewLiteral { tfhe: TfheLiteral::gates(), method };
    assert!(matches!(tight.build(), Err(TfheError::FailureProbability { .. })));
    let params = FhewLiteral::automorphisms().build().unwrap();
    assert!(matches!(FhewKey::generate(&params, &client), Err(TfheError::WrongParameters { .. })));
    let context = context(40, 1, SecretKind::Binary);
    let (glwe, seed) = crate::support::key(&context, 1);
    let lwe = LweSecretKey::generate(4, SecretKind::Ternary, &mut seed.derive("lwe", 0).stream(0));
    let (gadget, seeds) = (Gadget { base_log: 17, levels: 1 }, ObjectSeeds::derive(&seed, "a", 0));
    let key = AutomorphismBootstrapKey::generate(&lwe, &glwe, gadget, 2, &seeds).unwrap();
    let test = vec![0; 512];
    let even = RotationExponents { mask: vec![1, 3, 4, 5], body: 0 };
    assert!(matches!(key.blind_rotate(&test, &even), Err(TfheError::Parameters { .. })));
    let short = RotationExponents { mask: vec![1, 3], body: 0 };
    assert!(matches!(key.blind_rotate(&test, &short), Err(TfheError::Shape { .. })));
    assert!(matches!(key.blind_rotate(&test[1..], &even), Err(TfheError::Parameters { .. } | TfheError::Shape { .. })));
}

/// Ternary and binary secrets, all exponents: the rotation is right, its noise that of the formulas.
#[test]
fn blind_rotations() {
    // Little rounding: it is nearly one sample a rotation.
    let (context, gadget) = (context(40, 1, SecretKind::Binary), Gadget { base_log: 18, levels: 2 });
    let (q, n, dimension) = (context.q(), context.degree(), 40);
    let (mut digits, mut automorphisms, mut counted, mut rounds) = (0.0, 0.0, 0.0, 0.0);
    let expected = |products: f64| fhew::variance::by_digits(&context, gadget, products);
    for number in 0..20 {
        let (glwe, seed) = key(&context, number);
        let kind = if number % 2 == 0 { SecretKind::Binary } else { SecretKind::Ternary };
        let lwe = LweSecretKey::generate(dimension, kind, &mut seed.derive("lwe", 0).stream(0));
        let (a, b) = (ObjectSeeds::derive(&seed, "a", 0), ObjectSeeds::derive(&seed, "b", 0));
        let by_digits = DigitBootstrapKey::generate(&lwe, &glwe, gadget, 3, &a).unwrap();
        let by_automorphisms = AutomorphismBootstrapKey::generate(&lwe, &glwe, gadget, 6, &b).unwrap();
        for i in 0..16 {
            let mut e: Vec<u32> = words(&seed, i, 2 * n as u64, dimension + 1).iter().map(|x| *x as u32).collect();
            let body = e.remove(0);
            let test = words(&seed, 1000 + i, q, n);
            let turned = |mask: &[u32]| {
                let inner: i64 = mask.iter().zip(lwe.coefficients()).map(|(a, s)| i64::from(*a) * s).sum();
                let steps = (inner - i64::from(body)).rem_euclid(2 * n as i64) as usize;
                GlweCiphertext::trivial(&context, &test).unwrap().rotated(steps)
            };
            let mut acc = GlweCiphertext::trivial(&context, &test).unwrap();
            let products = by_digits.blind_rotate(&mut acc, &RotationExponents { mask: e.clone(), body }).unwrap();
            let noise = mean_square(q, &glwe.phase(&acc).unwrap(), turned(&e).body());
            digits += noise / expected(products as f64);
            e.iter_mut().for_each(|x| *x |= 1);
            let by = RotationExponents { mask: e.clone(), body };
            let (acc, count) = by_automorphisms.blind_rotate(&test, &by).unwrap();
            let noise = mean_square(q, &glwe.phase(&acc).unwrap(), turned(&e).body());
            let predicted = fhew::variance::by_automorphisms(&context, gadget, dimension, count as f64);
            automorphisms += noise / predicted;
            counted += count as f64;
            rounds += 1.0;
        }
    }
    assert!(rounds * n as f64 >= 1e5);
    for (what, sum) in [("digits", digits), ("automorphisms", automorphisms)] {
        assert!((0.97..1.03).contains(&(sum / rounds)), "{what}: measured / predicted = {}", sum / rounds);
    }
    let params = FhewLiteral {
        tfhe: TfheLiteral {
            lwe_dimension: dimension,
            ..FhewLiteral::insecure_test(FhewMethod::Digits { base_log: 1 }).tfhe
        },
        method: FhewMethod::Automorphisms { window: 6 },
    };
    let [_, (mean, most)] = params.build().unwrap().operations();
    assert!(
        (0.97..1.03).contains(&(counted / rounds / mean)) && counted / rounds < most,
        "{} {mean}",
        counted / rounds
    );
}
