//! Gates and tables, exhaustively, on small sets and on the real ones.

use crate::{cases, client, word};
use sudare_ring::random::{Entropy, Seed};
use sudare_ring::{Threads, threads};
use sudare_rlwe::RlweError;
use sudare_tfhe::*;

fn every_gate(client: &ClientKey) {
    let server = client.server_key().unwrap();
    let bits = [false, true].map(|b| client.encrypt_bit(b).unwrap());
    for (a, x) in bits.iter().enumerate() {
        assert_eq!(client.decrypt_bit(&server.not(x).unwrap()).unwrap(), a == 0);
        for (b, y) in bits.iter().enumerate() {
            for gate in Gate::ALL {
                let z = server.gate(gate, x, y).unwrap();
                assert_eq!(client.decrypt_bit(&z).unwrap(), gate.plain(a == 1, b == 1), "{gate:?} {a} {b}");
            }
            for (c, z) in bits.iter().enumerate() {
                // Twice, so that a MUX reads what a MUX made.
                let once = server.mux(z, x, y).unwrap();
                let twice = server.mux(&once, x, &server.not(&once).unwrap()).unwrap();
                let value = if c == 1 { a == 1 } else { b == 1 };
                assert_eq!(client.decrypt_bit(&once).unwrap(), value);
                assert_eq!(client.decrypt_bit(&twice).unwrap(), if value { a == 1 } else { !value });
            }
        }
    }
}

#[test]
fn gates() {
    for (number, unroll) in [(1, 1), (2, 2), (3, 3)] {
        every_gate(&client(TfheLiteral { unroll, ..TfheLiteral::insecure_test(Plaintext::Bit) }, number));
    }
    for literal in [TfheLiteral::gates(), TfheLiteral::gates_failure_64(), TfheLiteral::gates_failure_40()] {
        let client = client(literal, 4);
        let server = client.server_key().unwrap();
        let bits = [false, true].map(|b| client.encrypt_bit(b).unwrap());
        for (i, gate) in Gate::ALL.into_iter().enumerate() {
            let (a, b) = (i % 2, i / 2 % 2);
            let z = server.gate(gate, &bits[a], &bits[b]).unwrap();
            assert_eq!(client.decrypt_bit(&z).unwrap(), gate.plain(a == 1, b == 1));
        }
    }
}

fn every_value(client: &ClientKey) {
    let server = client.server_key().unwrap();
    let (params, space) = (client.params(), client.params().space());
    let function = |x: u64| (x * x + 3 * x + 1) % space;
    let table = LookupTable::new(params, function).unwrap();
    for x in 0..space {
        let c = client.encrypt_int_with_carry(x).unwrap();
        let y = server.lookup(&c, &table).unwrap();
        assert_eq!(client.decrypt_int(&y).unwrap(), function(x));
        assert_eq!(client.decrypt_int(&server.lookup(&y, &table).unwrap()).unwrap(), function(function(x)));
    }
}

/// What an encryption says of itself is the same for every number that it takes.
#[test]
fn stated_ranges_do_not_depend_on_values() {
    let client = client(small(2, 2), 12);
    for value in 0..16 {
        let stated = |c: EncryptedInt| (c.largest(), c.noise(), c.owner(), c.ciphertext().dimension());
        let wide = client.encrypt_int_with_carry(value).map(stated).unwrap();
        assert_eq!(wide, (15, 1, (client.params().hash(), client.id()), 1024));
        assert_eq!(client.encrypt_int(value).map(stated).ok(), (value < 4).then_some((3, 1, wide.2, wide.3)));
    }
}

fn small(message_bits: u32, carry_bits: u32) -> TfheLiteral {
    TfheLiteral::insecure_test(Plaintext::Integer { message_bits, carry_bits })
}

#[test]
fn tables() {
    for (number, unroll) in [(1, 1), (2, 2), (3, 3)] {
        every_value(&client(TfheLiteral { unroll, ..small(2, 2) }, number));
    }
    every_value(&client(small(1, 1), 4));
    every_value(&client(small(3, 0), 5));
    every_value(&client(TfheLiteral { bootstrap_digits: (8, 3), ..small(2, 2) }, 6));
    every_value(&client(TfheLiteral { module_switch: true, switch_digits: (4, 4), ..small(2, 2) }, 8));
    for literal in [TfheLiteral::message_2_carry_2(), TfheLiteral::message_2_carry_2_lwe_switch()] {
        let real = client(literal, 7);
        let server = real.server_key().unwrap();
        let table = LookupTable::new(real.params(), |x| 15 - x).unwrap();
        for x in [0, 1, 7, 8, 15] {
            let y = server.lookup(&real.encrypt_int_with_carry(x).unwrap(), &table).unwrap();
            assert_eq!(real.decrypt_int(&y).unwrap(), 15 - x);
        }
    }
}

#[test]
fn linear_operations_and_two_inputs() {
    let client = client(small(2, 2), 8);
    let server = client.server_key().unwrap();
    let product = LookupTable::new(client.params(), |x| (x / 4) * (x % 4)).unwrap();
    for a in 0..4 {
        for b in 0..4 {
            let (x, y) = (client.encrypt_int(a).unwrap(), client.encrypt_int(b).unwrap());
            assert_eq!(client.decrypt_int(&server.add_int(&x, &y).unwrap()).unwrap(), a + b);
            assert_eq!(client.decrypt_int(&server.lookup2(&x, &y, &product).unwrap()).unwrap(), a * b);
            assert_eq!(client.decrypt_int(&server.sub_from_plain_int(3, &x).unwrap()).unwrap(), 3 - a);
            assert_eq!(client.decrypt_int(&server.mul_plain_int(&x, 5).unwrap()).unwrap(), 5 * a);
            assert_eq!(client.decrypt_int(&server.add_plain_int(&x, 9).unwrap()).unwrap(), a + 9);
        }
    }
    let x = client.encrypt_int(3).unwrap();
    assert!(matches!(server.mul_plain_int(&x, 6), Err(TfheError::CarrySpace { found: 18, .. })));
    let zero = LookupTable::new(client.params(), |_| 0).unwrap();
    let none = server.lookup(&x, &zero).unwrap();
    assert!(matches!(server.mul_plain_int(&none, 6), Err(TfheError::NoiseBudget { found: 6, allowed: 5, .. })));
}

#[test]
fn several_tables_from_one_rotation() {
    let client = client(small(2, 2), 9);
    let (params, server) = (client.params(), client.server_key().unwrap());
    let tables: Vec<Vec<u64>> = (0..4).map(|t| (0..4).map(|x| (x * 3 + t) % 16).collect()).collect();
    let interleaved = LookupTable::interleaved(params, &tables).unwrap();
    let three = LookupTable::interleaved(params, &tables[..3]).unwrap();
    for x in 0..4u64 {
        let c = client.encrypt_int(x).unwrap();
        for (count, table) in [(4, &interleaved), (3, &three)] {
            let out = server.lookup_many(&c, table).unwrap();
            let values: Vec<u64> = out.iter().map(|y| client.decrypt_int(y).unwrap()).collect();
            let expected: Vec<u64> = tables[..count].iter().map(|t| t[x as usize]).collect();
            assert_eq!(values, expected);
        }
    }
    let large = client.encrypt_int_with_carry(3).unwrap();
    assert!(matches!(server.lookup_many(&large, &interleaved), Err(TfheError::CarrySpace { .. })));

    let whole: Vec<Vec<u64>> = vec![
        (0..16).map(|x| x % 4).collect(),
        (0..16).map(|x| x / 4).collect(),
        (0..16).map(|x| (7 * x + 3) % 16).collect(),
    ];
    for x in 0..16u64 {
        let out = server.lookup_multi(&client.encrypt_int_with_carry(x).unwrap(), &whole).unwrap();
        for (y, table) in out.iter().zip(&whole) {
            assert_eq!(client.decrypt_int(y).unwrap(), table[x as usize]);
        }
        assert_eq!(out[1].noise(), 4);
    }
    assert!(LookupTable::interleaved(params, &[vec![0; 16], vec![0; 16]]).is_err());
    assert!(LookupTable::new(params, |x| x + 1).is_err());
    assert!(server.lookup_multi(&large, &[vec![0; 4]]).is_err());
}

/// Random tables of all kinds on random numbers, and gates and multiplexers of results.
#[test]
fn random_tables_and_gates() {
    const CHUNK: u64 = 25;
    let ints = client(TfheLiteral { lwe_dimension: 8, log_n: 9, ..small(2, 2) }, 10);
    let bits = client(TfheLiteral { lwe_dimension: 8, ..TfheLiteral::insecure_test(Plaintext::Bit) }, 11);
    let (server, gates) = (ints.server_key().unwrap(), bits.server_key().unwrap());
    let chunk = |number: usize| {
        let mut stream = Seed::from_bytes([4; 32]).stream(number as u64);
        let (mut flag, mut plain) = (bits.encrypt_bit(true).unwrap(), true);
        for _ in 0..CHUNK {
            let (r, tables) = (word(&mut stream), [word(&mut stream), word(&mut stream)]);
            let entry = |t: usize, x: u64| tables[t] >> (4 * x) & 15;
            let (x, y) = (r & 15, r >> 4 & 3);
            let c = ints.encrypt_int_with_carry(x).unwrap();
            let decrypt = |c: &EncryptedInt| ints.decrypt_int(c).unwrap();
            let table = LookupTable::new(ints.params(), |x| entry(0, x)).unwrap();
            assert_eq!(decrypt(&server.lookup(&c, &table).unwrap()), entry(0, x));
            let whole: Vec<Vec<u64>> = (0..2).map(|t| (0..16).map(|x| entry(t, x)).collect()).collect();
            let out = server.lookup_multi(&c, &whole).unwrap();
            assert_eq!([decrypt(&out[0]), decrypt(&out[1])], [entry(0, x), entry(1, x)]);
            let (high, low) = (ints.encrypt_int(x / 4).unwrap(), ints.encrypt_int(y).unwrap());
            assert_eq!(decrypt(&server.lookup2(&high, &low, &table).unwrap()), entry(0, x / 4 * 4 + y));
            let parts: Vec<Vec<u64>> = (0..4).map(|t| (0..4).map(|x| entry(1, 4 * t + x)).collect()).collect();
            let parts = &parts[..1 + (r >> 6 & 3) as usize];
            let out = server.lookup_many(&low, &LookupTable::interleaved(ints.params(), parts).unwrap()).unwrap();
            for (c, part) in out.iter().zip(parts) {
                assert_eq!(decrypt(c), part[y as usize]);
            }
            let [a, b] = [8, 9].map(|i| r >> i & 1 == 1);
            let [ca, cb] = [a, b].map(|v| bits.encrypt_bit(v).unwrap());
            let gate = Gate::ALL[(r >> 10) as usize % Gate::ALL.len()];
            flag = gates.gate(gate, &gates.mux(&flag, &ca, &cb).unwrap(), &ca).unwrap();
            plain = gate.plain(if plain { a } else { b }, a);
            assert_eq!(bits.decrypt_bit(&flag).unwrap(), plain, "{gate:?} {a} {b}");
        }
    };
    Threads::new(0).run(|| threads::map(cases(100).div_ceil(CHUNK) as usize, chunk));
}

#[test]
fn wrong_keys_and_parameters_are_refused() {
    let (bits, ints) = (client(TfheLiteral::insecure_test(Plaintext::Bit), 1), client(small(2, 2), 1));
    let other = client(TfheLiteral::insecure_test(Plaintext::Bit), 2);
    let server = bits.server_key().unwrap();
    let (x, foreign) = (bits.encrypt_bit(true).unwrap(), other.encrypt_bit(true).unwrap());
    assert!(matches!(server.gate(Gate::And, &x, &foreign), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
    assert!(matches!(other.decrypt_bit(&x), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
    assert!(matches!(bits.encrypt_int(1), Err(TfheError::Parameters { .. })));
    assert!(matches!(ints.encrypt_bit(true), Err(TfheError::Parameters { .. })));
    assert!(matches!(ints.encrypt_int(4), Err(TfheError::Message { value: 4, space: 4 })));
    assert!(matches!(ints.encrypt_int_with_carry(16), Err(TfheError::Message { value: 16, space: 16 })));
    assert!(matches!(bits.encrypt_int_with_carry(0), Err(TfheError::Parameters { .. })));
    let moved = EncryptedBit::from_parts(x.ciphertext().clone(), ints.params().hash(), bits.id());
    assert!(matches!(server.not(&moved), Err(TfheError::Rlwe(RlweError::WrongParameters { .. }))));
    assert!(ints.server_key().unwrap().trivial_bit(true).is_err());

    let unsafe_noise = TfheLiteral { lwe_noise: Noise::TUniform { bits: 15 }, ..TfheLiteral::gates() };
    assert!(matches!(unsafe_noise.build(), Err(TfheError::Insecure { object: "LWE", .. })));
    let unsafe_ring = TfheLiteral { rank: 2, ..TfheLiteral::gates() };
    assert!(matches!(unsafe_ring.build(), Err(TfheError::Insecure { object: "GLWE", .. })));
    let loud = TfheLiteral { log_failure: -128.0, ..TfheLiteral::gates_failure_64() };
    assert!(matches!(loud.build(), Err(TfheError::FailureProbability { .. })));
    for broken in [
        TfheLiteral { unroll: 4, ..TfheLiteral::gates() },
        TfheLiteral { log_n: 8, ..TfheLiteral::gates() },
        TfheLiteral { bootstrap_digits: (41, 1), ..TfheLiteral::gates() },
        TfheLiteral { bootstrap_digits: (u32::MAX, 2), ..TfheLiteral::gates() },
        TfheLiteral { switch_digits: (0, 2), ..TfheLiteral::gates() },
        TfheLiteral { lwe_dimension: 0, ..TfheLiteral::gates() },
        TfheLiteral { rank: 0, ..TfheLiteral::gates() },
        small(0, 2),
        small(8, u32::MAX),
    ] {
        assert!(broken.build().is_err());
    }
}

#[test]
fn threads_change_nothing() {
    let client = client(TfheLiteral::insecure_test(Plaintext::Bit), 3);
    let again = || {
        let seed = Seed::from_bytes([5; 32]);
        let client =
            ClientKey::from_seed(client.params(), &seed).unwrap().with_entropy(Entropy::fixed(seed.derive("x", 0)));
        let server = client.server_key().unwrap();
        let bits: Vec<EncryptedBit> = (0..6).map(|i| client.encrypt_bit(i % 3 == 0).unwrap()).collect();
        let work: Vec<_> = (0..12).map(|i| (Gate::ALL[i % 8], &bits[i % 6], &bits[(i * 5 + 1) % 6])).collect();
        server.gates(&work).unwrap()
    };
    let one = Threads::new(1).run(again);
    let many = Threads::new(3).run(again);
    assert_eq!(one, many);
}

#[test]
fn the_sets_keep_their_claims() {
    for (literal, bound) in [
        (TfheLiteral::gates(), -128.0),
        (TfheLiteral::gates_failure_64(), -64.0),
        (TfheLiteral::gates_failure_40(), -40.0),
        (TfheLiteral::message_2_carry_2(), -128.0),
        (TfheLiteral::message_2_carry_2_lwe_switch(), -128.0),
        (TfheLiteral::message_2_carry_2_failure_64(), -64.0),
        (TfheLiteral::message_2_carry_2_failure_40(), -40.0),
    ] {
        let params = literal.build().unwrap();
        assert!(params.log_failure() <= bound);
    }
}
