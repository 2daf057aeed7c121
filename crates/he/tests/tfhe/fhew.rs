//! Gates by the accumulators of FHEW, on small sets and on the real one, and their noise.

use crate::support::{context, key, words};
use sudare_he::ring::Threads;
use sudare_he::ring::random::{Entropy, ObjectSeeds, Seed};
use sudare_he::tfhe::fhew::{AutomorphismBootstrapKey, FhewKey, FhewLiteral, FhewMethod};
use sudare_he::tfhe::*;

fn side(literal: FhewLiteral, number: u8) -> (ClientKey, FhewKey) {
    let params = literal.build().unwrap();
    let seed = Seed::from_bytes([number; 32]);
    let client =
        ClientKey::from_seed(params.tfhe(), &seed).unwrap().with_entropy(Entropy::fixed(seed.derive("fresh", 0)));
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
        FhewMethod::Digits { base_log: 4 },
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

/// Automorphisms of a rotation, counted: as many as expected on average, never more than the most.
#[test]
fn counted_automorphisms() {
    let (context, gadget, dimension) = (context(40, 1, SecretKind::Binary), Gadget { base_log: 18, levels: 2 }, 40);
    let (glwe, seed) = key(&context, 0);
    let lwe = LweSecretKey::generate(dimension, SecretKind::Binary, &mut seed.derive("lwe", 0).stream(0));
    let key = AutomorphismBootstrapKey::generate(&lwe, &glwe, gadget, 6, &ObjectSeeds::derive(&seed, "b", 0)).unwrap();
    let method = FhewMethod::Automorphisms { window: 6 };
    let set = FhewLiteral::insecure_test(method);
    let set = FhewLiteral { tfhe: TfheLiteral { lwe_dimension: dimension, ..set.tfhe }, method };
    let [_, (mean, most)] = set.build().unwrap().operations();
    let (rounds, mut counted) = (64, 0.0);
    for i in 0..rounds {
        let mut mask: Vec<u32> = words(&seed, i, 1024, dimension).iter().map(|x| *x as u32 | 1).collect();
        mask[0] = 1;
        let (_, count) = key.blind_rotate(&[0; 512], &RotationExponents { mask, body: 0 }).unwrap();
        assert!(count as f64 <= most);
        counted += count as f64 / rounds as f64;
    }
    assert!((0.97..1.03).contains(&(counted / mean)), "{counted} {mean}");
}
