//! Gates by the accumulators of FHEW, on small sets and on the real one, and their noise.

use crate::support::{context, key, words};
use sudare_ring::Threads;
use sudare_ring::random::{Entropy, ObjectSeeds, Seed};
use sudare_rlwe::RlweError;
use sudare_rlwe::wire::WireError;
use sudare_tfhe::boolean::fhew::{AutomorphismBootstrapKey, FhewKey, FhewLiteral, FhewMethod};
use sudare_tfhe::wire::{fhew_key_from_bytes, fhew_params_from_bytes, fhew_params_to_bytes, write_fhew_key};
use sudare_tfhe::*;

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
    assert!(matches!(key.gate(Gate::And, &a, &b), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
    assert!(matches!(key.not(&b), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
    for method in [FhewMethod::Digits { base_log: 7 }, FhewMethod::Automorphisms { window: 0 }] {
        assert!(matches!(FhewLiteral::insecure_test(method).build(), Err(TfheError::Parameters { .. })));
    }
    // Odd exponents take more room than the gates' own set has.
    let tight = FhewLiteral { tfhe: TfheLiteral::gates(), method };
    assert!(matches!(tight.build(), Err(TfheError::FailureProbability { .. })));
    let params = FhewLiteral::automorphisms().build().unwrap();
    assert!(matches!(FhewKey::generate(&params, &client), Err(TfheError::Rlwe(RlweError::WrongParameters { .. }))));
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

/// Parameters and keys travel as seeds and bodies, and what arrives makes the same gates.
#[test]
fn keys_travel() {
    let automorphisms = FhewLiteral::insecure_test(FhewMethod::Automorphisms { window: 3 });
    let rank2 = TfheLiteral { rank: 2, bootstrap_digits: (8, 3), ..automorphisms.tfhe.clone() };
    let ring = TfheLiteral {
        module_switch: true,
        lwe_noise: Noise::Uniform { bound: 5 },
        ..FhewLiteral::insecure_test(FhewMethod::Digits { base_log: 4 }).tfhe
    };
    let sets = [
        FhewLiteral { tfhe: ring, method: FhewMethod::Digits { base_log: 4 } },
        FhewLiteral { tfhe: rank2, ..automorphisms.clone() },
    ];
    for (number, literal) in sets.into_iter().enumerate() {
        let literal = FhewLiteral { tfhe: TfheLiteral { lwe_dimension: 16, ..literal.tfhe }, ..literal };
        let (client, key) = side(literal.clone(), 20 + number as u8);
        let stored = fhew_params_from_bytes(&fhew_params_to_bytes(key.params()).unwrap()).unwrap();
        assert_eq!((&stored.literal, stored.hash), (&literal, key.params().hash()));
        let params = stored.build().unwrap();
        let mut bytes = Vec::new();
        write_fhew_key(&key, &mut bytes).unwrap();
        assert!(bytes.len() < key.byte_len() * 2 / 3);
        let again = Threads::new(2).run(|| fhew_key_from_bytes(&params, &bytes)).unwrap();
        let mut rewritten = Vec::new();
        write_fhew_key(&again, &mut rewritten).unwrap();
        assert!(rewritten == bytes && again.id() == key.id());
        every_gate(&client, &again);
        let bits = [false, true].map(|b| client.encrypt_bit(b).unwrap());
        let work: Vec<_> = Gate::ALL.iter().map(|g| (*g, &bits[0], &bits[1])).collect();
        assert_eq!(key.gates(&work).unwrap(), again.gates(&work).unwrap());
        crate::damaged(&bytes, |b| fhew_key_from_bytes(&params, b).map(|_| ()));
        crate::damaged(&fhew_params_to_bytes(&params).unwrap(), |b| fhew_params_from_bytes(b)?.build().map(|_| ()));
        let other = match literal.method {
            FhewMethod::Automorphisms { .. } => automorphisms.clone(),
            _ => FhewLiteral::insecure_test(FhewMethod::Digits { base_log: 2 }),
        };
        let refused = fhew_key_from_bytes(&other.build().unwrap(), &bytes);
        assert!(matches!(refused, Err(WireError::WrongParameters { .. } | WireError::Rlwe(_))), "{:?}", refused.err());
    }
}
