//! Circuit bootstraps: both bits on small and real sets, a lookup through a refreshed index, noise.

use crate::measure::circuit::row;
use crate::support::{context, key, streams, words};
use sudare_ring::Threads;
use sudare_ring::random::{Entropy, ObjectSeeds, Seed};
use sudare_rlwe::RlweError;
use sudare_rlwe::wire::WireError;
use sudare_tfhe::circuit_bootstrap::{CircuitKey, CircuitLiteral, PrivateSwitchKey, SchemeSwitchKey};
use sudare_tfhe::leveled::*;
use sudare_tfhe::wire::{
    circuit_key_from_bytes, circuit_params_from_bytes, circuit_params_to_bytes, write_circuit_key,
};
use sudare_tfhe::*;

struct Side {
    client: ClientKey,
    leveled: LeveledClient,
    key: CircuitKey,
}

fn side(literal: CircuitLiteral, number: u8) -> Side {
    let params = literal.build().unwrap();
    let seed = Seed::from_bytes([number; 32]);
    let client =
        ClientKey::from_seed(params.tfhe(), &seed).unwrap().with_entropy(Entropy::fixed(seed.derive("fresh", 0)));
    let key = CircuitKey::generate(&params, &client).unwrap();
    let leveled = LeveledClient::sharing(params.leveled(), &client).unwrap();
    Side { client, leveled, key }
}

/// What a selector selects, and that its noise is under its bound.
fn selected(side: &Side, selector: &Selector) -> bool {
    let server = LeveledServer::new(side.leveled.params());
    let n = side.leveled.params().context().degree();
    let (ones, zeros) = (side.leveled.encrypt(&vec![1; n]).unwrap(), side.leveled.encrypt(&vec![0; n]).unwrap());
    let c = server.cmux(selector, &ones, &zeros).unwrap();
    let found = side.leveled.decrypt(&c, n).unwrap();
    assert!(found.iter().all(|x| *x == found[0]));
    // Errors of a selector are common to all coefficients: allow its few large ones some deviations.
    let noise = side.leveled.noise_for_tests(&c, &found).unwrap();
    assert!(noise < 16.0 * c.variance(), "{noise} {}", c.variance());
    found[0] == 1
}

fn every_bit(side: &Side) {
    for bit in [false, true] {
        let c = side.client.encrypt_bit(bit).unwrap();
        assert_eq!(selected(side, &side.key.bootstrap(&c).unwrap()), bit);
        let gate = side.key.server().gate(Gate::Nand, &c, &c).unwrap();
        assert_eq!(selected(side, &side.key.bootstrap(&gate).unwrap()), !bit);
        let leveled = side.leveled.encrypt(&[0, u64::from(bit)]).unwrap().extract(1).unwrap();
        assert_eq!(selected(side, &side.key.bootstrap_leveled(&leveled).unwrap()), bit);
        assert_eq!(side.client.decrypt_bit(&side.key.to_bit(&leveled).unwrap()).unwrap(), bit);
    }
}

#[test]
fn both_bits() {
    let small = CircuitLiteral::insecure_test();
    every_bit(&side(small.clone(), 1));
    every_bit(&side(CircuitLiteral { output_digits: (7, 2), trace_digits: (8, 5), ..small.clone() }, 2));
    every_bit(&side(CircuitLiteral { output_digits: (14, 1), trace_digits: (8, 6), ..small.clone() }, 3));
    let rank2 = TfheLiteral { rank: 2, unroll: 1, ..small.tfhe.clone() };
    every_bit(&side(CircuitLiteral { tfhe: rank2, output_digits: (4, 4), ..small }, 4));
    let real = side(CircuitLiteral::three_levels(), 5);
    every_bit(&real);
    let bits = [true, false].map(|b| real.client.encrypt_bit(b).unwrap());
    let one = real.key.bootstraps(&bits).unwrap();
    let many = Threads::new(2).run(|| real.key.bootstraps(&bits).unwrap());
    let n = real.leveled.params().context().degree();
    let (mut x, mut y) = (vec![0; n], vec![0; n]);
    for (one, many) in one.iter().zip(&many) {
        for row in 0..6 {
            for column in 0..2 {
                one.ggsw().matrix().get(0, row, column, &mut x);
                many.ggsw().matrix().get(0, row, column, &mut y);
                assert_eq!(x, y);
            }
        }
    }
}

/// What the sets state about multiplexers in a row before the next bootstrap.
#[test]
fn depths() {
    for (literal, depth) in [(CircuitLiteral::three_levels(), 800.0), (CircuitLiteral::two_levels(), 200.0)] {
        let params = literal.build().unwrap();
        let decision = params.decision_variance(depth * params.selector_noise().bound());
        assert!(sudare_tfhe::noise::variance::log2_tail(0.25, decision) <= -128.0);
    }
}

#[test]
fn the_classical_way() {
    let side = side(CircuitLiteral::insecure_test(), 6);
    let private = PrivateSwitchKey::generate(
        side.client.glwe(),
        Gadget { base_log: 16, levels: 2 },
        &side.client.object_seeds().unwrap(),
    )
    .unwrap();
    for bit in [false, true] {
        let c = side.client.encrypt_bit(bit).unwrap();
        assert_eq!(selected(&side, &side.key.bootstrap_classical(&c, &private).unwrap()), bit);
    }
}

/// Index after index: a permutation iterated, each round's outputs bootstrapped to selectors.
#[test]
fn lookups_through_bootstrapped_indices() {
    let side = side(CircuitLiteral::insecure_test(), 7);
    let server = LeveledServer::new(side.leveled.params());
    let next = |i: u64| (5 * i + 3) % 16;
    let entries: Vec<Vec<u64>> = (0..16).map(|i| (0..4).map(|j| next(i) >> j & 1).collect()).collect();
    let table = PackedTable::plain(side.leveled.params(), &entries).unwrap();
    let mut index = side.leveled.encrypt_index(9, 4).unwrap();
    let mut plain = 9;
    for _ in 0..20 {
        let found = server.lookup_words(&table, &index).unwrap();
        plain = next(plain);
        let bits: Vec<u64> = found.iter().map(|b| side.leveled.decrypt_lwe(b).unwrap()).collect();
        assert_eq!(bits.iter().enumerate().map(|(j, b)| b << j).sum::<u64>(), plain);
        index = side.key.bootstraps_leveled(&found).unwrap();
    }
}

#[test]
fn typed_errors() {
    let (a, b) = (side(CircuitLiteral::insecure_test(), 8), side(CircuitLiteral::insecure_test(), 9));
    let foreign = b.client.encrypt_bit(true).unwrap();
    assert!(matches!(a.key.bootstrap(&foreign), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
    let foreign = b.leveled.encrypt(&[1]).unwrap().extract(0).unwrap();
    assert!(matches!(a.key.bootstrap_leveled(&foreign), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
    assert!(matches!(
        CircuitKey::generate(a.key.params(), &gate_client()),
        Err(TfheError::Rlwe(RlweError::WrongParameters { .. }))
    ));
    // A leveled bit that still decrypts, but that the switches before the decision would spoil.
    let set = CircuitLiteral::insecure_test();
    let noisy = TfheLiteral { switch_digits: (4, 1), log_failure: -40.0, noise_factor: 1, ..set.tfhe.clone() };
    assert!(matches!(CircuitLiteral { tfhe: noisy, ..set.clone() }.build(), Err(TfheError::FailureProbability { .. })));
    let all = CircuitLiteral { output_digits: (16, 3), ..set.clone() };
    assert!(matches!(all.build(), Err(TfheError::Parameters { .. })));
    let coarse = CircuitLiteral { output_digits: (2, 1), ..set };
    assert!(matches!(coarse.build(), Err(TfheError::LeveledNoise { .. })));
    // As much noise as one-bit messages bear, by sums of doublings.
    let server = LeveledServer::new(a.leveled.params());
    let mut powers = vec![a.leveled.encrypt(&[1; 512]).unwrap().extract(0).unwrap()];
    let refused = loop {
        let last = &powers[powers.len() - 1];
        match server.add_lwe(last, last) {
            Ok(sum) => powers.push(sum),
            Err(e) => break e,
        }
    };
    assert!(matches!(refused, TfheError::LeveledNoise { .. }), "{refused}");
    let mut c = powers[powers.len() - 1].clone();
    for power in powers.iter().rev() {
        c = server.add_lwe(&c, power).unwrap_or(c);
    }
    assert!(matches!(a.key.bootstrap_leveled(&c), Err(TfheError::FailureProbability { .. })));
}

fn gate_client() -> ClientKey {
    let params = TfheLiteral::insecure_test(Plaintext::Bit).build().unwrap();
    ClientKey::from_seed(&params, &Seed::from_bytes([1; 32])).unwrap()
}

/// A scheme switch leaves the rows of the body as they came.
#[test]
fn rows_of_the_body() {
    let (context, output) = (context(47, 1, SecretKind::Binary), Gadget { base_log: 20, levels: 1 });
    let (key, seed) = key(&context, 1);
    let gadget = Gadget { base_log: 11, levels: 4 };
    let scheme = SchemeSwitchKey::generate(&key, gadget, &ObjectSeeds::derive(&seed, "scheme", 0)).unwrap();
    let (mut masks, mut errors) = streams(&seed, 0);
    let c = key.encrypt(&words(&seed, 0, context.q(), 512), &mut masks, &mut errors).unwrap();
    let ggsw = scheme.switch(std::slice::from_ref(&c), output).unwrap();
    assert_eq!(row(&context, &ggsw, 1).unwrap().words(), c.words());
}

/// Parameters and keys travel as seeds and bodies, and what arrives makes the same selectors.
#[test]
fn keys_travel() {
    let small = CircuitLiteral::insecure_test();
    let rank2 = TfheLiteral { rank: 2, unroll: 1, ..small.tfhe.clone() };
    for (number, literal) in
        [small.clone(), CircuitLiteral { tfhe: rank2, output_digits: (4, 4), ..small.clone() }].into_iter().enumerate()
    {
        let mut sent = side(literal.clone(), 30 + number as u8);
        let stored = circuit_params_from_bytes(&circuit_params_to_bytes(sent.key.params()).unwrap()).unwrap();
        assert_eq!((&stored.literal, stored.hash), (&literal, sent.key.params().hash()));
        let params = stored.build().unwrap();
        let mut bytes = Vec::new();
        write_circuit_key(&sent.key, &mut bytes).unwrap();
        assert!(bytes.len() < sent.key.byte_len() * 2 / 3);
        let again = Threads::new(2).run(|| circuit_key_from_bytes(&params, &bytes)).unwrap();
        let mut rewritten = Vec::new();
        write_circuit_key(&again, &mut rewritten).unwrap();
        assert!(rewritten == bytes && again.server().id() == sent.client.id());
        sent.key = again;
        every_bit(&sent);
        crate::damaged(&bytes, |b| circuit_key_from_bytes(&params, b).map(|_| ()));
        let file = circuit_params_to_bytes(&params).unwrap();
        crate::damaged(&file, |b| circuit_params_from_bytes(b)?.build().map(|_| ()));
        let other = CircuitLiteral { scheme_digits: (14, 3), ..literal }.build().unwrap();
        assert_eq!(other.tfhe().hash(), params.tfhe().hash());
        let refused = circuit_key_from_bytes(&other, &bytes);
        assert!(matches!(refused, Err(WireError::WrongParameters { .. } | WireError::Rlwe(_))), "{:?}", refused.err());
    }
}
