//! Leveled mode: every index of plain and encrypted tables, refusals, and noise against its bounds.

use crate::support::words;
use crate::{cases, word};
use sudare_ring::random::Seed;
use sudare_ring::{Threads, threads};
use sudare_rlwe::RlweError;
use sudare_rlwe::security::Security;
use sudare_testkit::sized;
use sudare_tfhe::leveled::*;
use sudare_tfhe::{Gadget, Noise, SecretKind, TfheError};

fn client(literal: LeveledLiteral, number: u8) -> LeveledClient {
    LeveledClient::from_seed(&literal.build().unwrap(), &Seed::from_bytes([number; 32])).unwrap()
}

fn entries(count: usize, outputs: usize, space: u64) -> Vec<Vec<u64>> {
    (0..count).map(|i| words(&Seed::from_bytes([9; 32]), i as u64, space, outputs)).collect()
}

#[test]
fn every_index_of_a_table() {
    let client = client(LeveledLiteral::insecure_test(), 1);
    let (params, server) = (client.params().clone(), LeveledServer::new(client.params()));
    // Inside one polynomial, one a polynomial, both, and numbers that are no powers of two.
    for (count, outputs) in [(1, 1), (2, 3), (8, 512), (7, 300), (37, 40), (100, 17), (16, 1), (600, 1)] {
        let table = entries(count, outputs, params.space());
        let plain = PackedTable::plain(&params, &table).unwrap();
        let encrypted = client.encrypt_table(&table).unwrap();
        let layout = *plain.layout();
        assert_eq!(layout.index_bits(), count.next_power_of_two().trailing_zeros());
        assert_eq!(layout, *encrypted.layout());
        for i in (0..count).step_by(if count > 100 { 97 } else { 1 }) {
            let index = client.encrypt_index(i as u64, layout.index_bits()).unwrap();
            for packed in [&plain, &encrypted] {
                let found = server.lookup(packed, &index).unwrap();
                assert_eq!(client.decrypt(&found, outputs).unwrap(), table[i], "{count} {outputs} {i}");
            }
            let one = server.lookup_words(&plain, &index).unwrap();
            assert_eq!(client.decrypt_lwe(&one[outputs - 1]).unwrap(), table[i][outputs - 1]);
        }
    }
}

/// Random indices of random tables of random layouts, plain and encrypted.
#[test]
fn random_lookups() {
    const CHUNK: u64 = 25;
    let client = client(LeveledLiteral::insecure_test(), 10);
    let (params, server) = (client.params(), LeveledServer::new(client.params()));
    let chunk = |number: usize| {
        let mut stream = Seed::from_bytes([12; 32]).stream(number as u64);
        let r = word(&mut stream);
        let (count, outputs) = (1 + (r & 31), 1 + (r >> 8 & 63) as usize);
        let seed = Seed::from_bytes([13; 32]).derive("table", number as u64);
        let table: Vec<Vec<u64>> = (0..count).map(|i| words(&seed, i, params.space(), outputs)).collect();
        let packed = match r >> 16 & 1 {
            0 => PackedTable::plain(params, &table).unwrap(),
            _ => client.encrypt_table(&table).unwrap(),
        };
        for _ in 0..CHUNK {
            let i = word(&mut stream) % count;
            let index = client.encrypt_index(i, packed.layout().index_bits()).unwrap();
            let found = server.lookup(&packed, &index).unwrap();
            assert_eq!(client.decrypt(&found, outputs).unwrap(), table[i as usize], "{i} of {count}, {outputs}");
        }
    };
    Threads::new(0).run(|| threads::map(cases(200).div_ceil(CHUNK) as usize, chunk));
}

#[test]
fn real_sets() {
    for (literal, number) in [(LeveledLiteral::degree_1024(), 2), (LeveledLiteral::degree_2048(), 3)] {
        let client = client(literal, number);
        let server = LeveledServer::new(client.params());
        let table = entries(50, 256, client.params().space());
        let packed = PackedTable::plain(client.params(), &table).unwrap();
        for i in [0, 1, 31, 49] {
            let index = client.encrypt_index(i, 6).unwrap();
            let one = server.lookup(&packed, &index).unwrap();
            let many = Threads::new(2).run(|| server.lookup(&packed, &index).unwrap());
            assert_eq!(one.ciphertext().words(), many.ciphertext().words());
            assert_eq!(client.decrypt(&one, 256).unwrap(), table[i as usize]);
            assert_eq!(one.variance(), 6.0 * index[0].noise().bound());
        }
    }
}

#[test]
fn arithmetic() {
    let client = client(LeveledLiteral::insecure_test(), 4);
    let server = LeveledServer::new(client.params());
    let space = client.params().space();
    let (a, b) = (entries(1, 512, space).remove(0), entries(2, 512, space).remove(1));
    let (x, y) = (client.encrypt(&a).unwrap(), server.trivial(&b).unwrap());
    let each = |f: fn(u64, u64) -> u64| -> Vec<u64> { a.iter().zip(&b).map(|(a, b)| f(*a, *b) % space).collect() };
    let sum = server.add(&x, &y).unwrap();
    assert_eq!(client.decrypt(&sum, 512).unwrap(), each(|a, b| a + b));
    assert_eq!(client.decrypt(&server.sub(&y, &x).unwrap(), 512).unwrap(), each(|a, b| b + 256 - a));
    assert_eq!(client.decrypt(&server.rotate(&x, 1023).unwrap(), 511).unwrap(), a[1..]);
    for bit in [false, true] {
        let selector = client.encrypt_selector(bit).unwrap();
        let mux = server.cmux(&selector, &x, &y).unwrap();
        assert_eq!(client.decrypt(&mux, 512).unwrap(), if bit { a.clone() } else { b.clone() });
        let product = server.product(&selector, &x).unwrap();
        assert_eq!(client.decrypt(&product, 512).unwrap(), if bit { a.clone() } else { vec![0; 512] });
        let rotated = server.rotate_if(&selector, &x, 1024 - 5).unwrap();
        assert_eq!(client.decrypt(&rotated, 1).unwrap()[0], a[if bit { 5 } else { 0 }]);
    }
    let twice = server.add_lwe(&x.extract(3).unwrap(), &y.extract(3).unwrap()).unwrap();
    assert_eq!(client.decrypt_lwe(&twice).unwrap(), (a[3] + b[3]) % space);
}

/// A ciphertext added to itself again and again is refused, and until then decrypts.
#[test]
fn refused_before_the_first_error() {
    let client = client(LeveledLiteral { message_bits: 16, ..LeveledLiteral::insecure_test() }, 5);
    let server = LeveledServer::new(client.params());
    let mut c = client.encrypt(&[1; 512]).unwrap();
    let mut value = 1;
    loop {
        match server.add(&c, &c) {
            Ok(sum) => c = sum,
            Err(e) => {
                assert!(matches!(e, TfheError::LeveledNoise { operation: "addition", .. }), "{e}");
                break;
            }
        }
        value = 2 * value % client.params().space();
        assert_eq!(client.decrypt(&c, 512).unwrap(), vec![value; 512]);
    }
    assert!(client.params().log_failure_at(4.0 * c.variance()) > -128.0);
    // A chain of multiplexers.
    let client = self::client(LeveledLiteral { digits: (9, 1), message_bits: 1, ..LeveledLiteral::insecure_test() }, 6);
    let server = LeveledServer::new(client.params());
    let selector = client.encrypt_selector(true).unwrap();
    let mut c = client.encrypt(&[1; 512]).unwrap();
    let mut steps = 0;
    let refused = loop {
        match server.rotate_if(&selector, &c, 0) {
            Ok(next) => c = next,
            Err(e) => break e,
        }
        steps += 1;
    };
    assert!(matches!(refused, TfheError::LeveledNoise { .. }) && steps > 3);
    assert_eq!(client.decrypt(&c, 512).unwrap(), vec![1; 512]);
    let plain = PackedTable::plain(client.params(), &vec![vec![1; 512]; 1 << 9]).unwrap();
    let index = client.encrypt_index(0, 9).unwrap();
    assert!(server.lookup(&plain, &index).is_ok() == (steps >= 9));
}

#[test]
fn typed_errors() {
    let client = client(LeveledLiteral::insecure_test(), 7);
    let other = self::client(LeveledLiteral::insecure_test(), 8);
    let coarse = self::client(LeveledLiteral { message_bits: 4, ..LeveledLiteral::insecure_test() }, 7);
    let server = LeveledServer::new(client.params());
    let (x, y, z) = (client.encrypt(&[1]).unwrap(), other.encrypt(&[1]).unwrap(), coarse.encrypt(&[1]).unwrap());
    assert!(matches!(server.add(&x, &y), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
    assert!(matches!(server.add(&x, &z), Err(TfheError::Rlwe(RlweError::WrongParameters { .. }))));
    assert!(matches!(client.decrypt(&y, 1), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
    assert!(matches!(client.encrypt(&[256]), Err(TfheError::Message { value: 256, space: 256 })));
    assert!(matches!(client.encrypt(&[0; 513]), Err(TfheError::Shape { .. })));
    assert!(matches!(client.encrypt_index(8, 3), Err(TfheError::Message { value: 8, space: 8 })));
    let table = client.encrypt_table(&entries(8, 100, 256)).unwrap();
    let index = client.encrypt_index(3, 3).unwrap();
    assert!(matches!(server.lookup(&table, &index[..2]), Err(TfheError::Shape { .. })));
    let foreign = other.encrypt_index(3, 3).unwrap();
    assert!(matches!(server.lookup(&table, &foreign), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
    let mixed = [index[0].clone(), foreign[1].clone(), index[2].clone()];
    assert!(matches!(server.lookup(&table, &mixed), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
    assert!(matches!(server.cmux(&foreign[0], &x, &x), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
    let ragged = [vec![1, 2], vec![3]];
    assert!(matches!(PackedTable::plain(client.params(), &ragged), Err(TfheError::Shape { .. })));
    assert!(matches!(PackedTable::plain(client.params(), &[]), Err(TfheError::Shape { .. })));
    assert!(matches!(PackedTable::plain(client.params(), &[vec![0; 513]]), Err(TfheError::Shape { .. })));
    assert!(matches!(x.extract(512), Err(TfheError::Shape { .. })));
    let thin = LeveledLiteral { noise: Noise::Gaussian { sigma: 3.19 }, ..LeveledLiteral::degree_1024() };
    assert!(matches!(thin.build(), Err(TfheError::Insecure { .. })));
    let wide = LeveledLiteral { digits: (25, 2), ..LeveledLiteral::degree_2048() };
    assert!(matches!(wide.build(), Err(TfheError::Parameters { .. })));
    let many = LeveledLiteral { message_bits: 17, ..LeveledLiteral::degree_2048() };
    assert!(matches!(many.build(), Err(TfheError::Parameters { .. })));
}

/// A lookup's noise stays under what the server tracks, in plain tables with digits at their worst too.
#[test]
fn noise_stays_under_its_bound() {
    for (digits, secret) in [((12, 4), SecretKind::Binary), ((16, 3), SecretKind::Ternary)] {
        let literal = LeveledLiteral { digits, secret, message_bits: 1, ..LeveledLiteral::insecure_test() };
        assert_eq!(literal.security, Security::Insecure);
        let client = client(literal, 9);
        let server = LeveledServer::new(client.params());
        let gadget = Gadget { base_log: digits.0, levels: digits.1 };
        assert_eq!(client.params().gadget(), gadget);
        let (mut random, mut worst, mut bound) = (0.0, 0.0, 0.0);
        let rounds = 100;
        for round in 0..rounds {
            let index = client.encrypt_index(round % 8, 3).unwrap();
            for (sum, table) in [(&mut random, entries(8, 512, 2)), (&mut worst, half_tables())] {
                let found = server.lookup(&PackedTable::plain(client.params(), &table).unwrap(), &index).unwrap();
                *sum += client.noise_for_tests(&found, &table[round as usize % 8]).unwrap() / rounds as f64;
                bound = found.variance();
            }
        }
        assert!(random < bound && worst < bound, "{random} {worst} {bound}");
        assert!(worst > 0.05 * bound, "{worst} {bound}");
    }
}

/// Differences of one half, whose most significant digit is the end of its range.
fn half_tables() -> Vec<Vec<u64>> {
    (0..8).map(|i| vec![i & 1; 512]).collect()
}

/// A random diagram over some variables: values of later variables, or terminals.
fn diagram(variables: usize, terminals: u32, number: u64) -> Diagram {
    let mut stream = Seed::from_bytes([21; 32]).stream(number);
    let (mut products, mut counts): (Vec<[Value; 2]>, Vec<u32>) = (Vec::new(), Vec::new());
    for _ in 0..variables {
        let before = products.len() as u64;
        let count = word(&mut stream) % 4;
        for i in 0..count {
            let mut value = || {
                let r = word(&mut stream);
                match before {
                    0 => Value::terminal((r >> 8) as u32 % terminals),
                    _ if r.is_multiple_of(4) => Value::terminal((r >> 8) as u32 % terminals),
                    _ => Value::of_product(((r >> 8) % before) as u32, r & 16 == 0),
                }
            };
            let _ = i;
            products.push([value(), value()]);
        }
        counts.push(count as u32);
    }
    let root = match products.len() as u32 {
        0 => Value::terminal(0),
        count => Value::of_product(count - 1, number.is_multiple_of(2)),
    };
    Diagram::new(products, counts, terminals, root).unwrap()
}

#[test]
fn diagrams_choose_the_terminal_of_their_bits() {
    let client = client(LeveledLiteral { message_bits: 1, ..LeveledLiteral::insecure_test() }, 14);
    let server = LeveledServer::new(client.params());
    let terminals: Vec<Vec<u64>> = (0..9).map(|t| (0..4).map(|bit| t >> bit & 1).collect()).collect();
    let mut stream = Seed::from_bytes([22; 32]).stream(0);
    for number in 0..60 {
        let d = diagram(1 + number as usize % 9, 9, number);
        let bits: Vec<bool> = (0..d.variables()).map(|_| word(&mut stream) & 1 == 1).collect();
        // As they travel.
        let selectors: Vec<Selector> = bits
            .iter()
            .map(|b| client.encrypt_selector_seeded(*b).unwrap().expand(client.params(), client.id()).unwrap())
            .collect();
        let one = server.evaluate(&d, &terminals, &selectors).unwrap();
        let many = Threads::new(3).run(|| server.evaluate(&d, &terminals, &selectors).unwrap());
        assert_eq!(one.ciphertext().words(), many.ciphertext().words());
        let expected = &terminals[d.evaluate_plain(&bits).unwrap() as usize];
        assert_eq!(&client.decrypt(&one, 4).unwrap(), expected, "{number}");
        assert!(d.depth() <= d.variables());
    }
    let d = diagram(5, 9, 3);
    let five = client.encrypt_index(9, 5).unwrap();
    assert!(matches!(server.evaluate(&d, &terminals, &five[1..]), Err(TfheError::Shape { .. })));
    assert!(matches!(server.evaluate(&d, &terminals[1..], &five), Err(TfheError::Shape { .. })));
    let foreign = self::client(LeveledLiteral { message_bits: 1, ..LeveledLiteral::insecure_test() }, 15);
    let mixed = [&five[..4], &foreign.encrypt_index(0, 1).unwrap()[..]].concat();
    assert!(matches!(server.evaluate(&d, &terminals, &mixed), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
    let forward = Diagram::new(vec![[Value::of_product(0, false), Value::terminal(0)]], vec![1], 1, Value::terminal(0));
    assert!(matches!(forward, Err(TfheError::Shape { .. })));
    assert!(Diagram::new(vec![], vec![0], 1, Value::terminal(1)).is_err());
    assert!(Diagram::new(vec![], vec![1], 1, Value::terminal(0)).is_err());
    // More products in a row than the noise allows.
    let coarse = LeveledLiteral { digits: (9, 1), message_bits: 1, ..LeveledLiteral::insecure_test() };
    let client = self::client(coarse, 16);
    let chain =
        |i: u32| [Value::terminal(0), if i == 0 { Value::terminal(1) } else { Value::of_product(i - 1, false) }];
    let long = Diagram::new((0..200).map(chain).collect(), vec![1; 200], 2, Value::of_product(199, false)).unwrap();
    assert_eq!(long.depth(), 200);
    let selectors = vec![client.encrypt_selector(true).unwrap(); 200];
    let refused = LeveledServer::new(client.params()).evaluate(&long, &[vec![0], vec![1]], &selectors);
    assert!(matches!(refused, Err(TfheError::LeveledNoise { operation: "decision diagram", .. })));
}

/// The noise of the longest path of a chain is what the formula says of it: rows of every product, the first of
/// which has no masks, and rounding wherever the bit is one.
#[test]
fn noise_of_the_longest_path() {
    let literal = LeveledLiteral {
        digits: (18, 1),
        message_bits: 1,
        rank: 3,
        modulus_bits: 40,
        ..LeveledLiteral::insecure_test()
    };
    let literal = LeveledLiteral { noise: Noise::Gaussian { sigma: 8.9 }, ..literal };
    const LENGTH: u32 = 24;
    // The ratio's deviation is 1.1 % from 200 keys: six deviations either way.
    let (keys, tolerance) = sized((200, 0.066), (900, 0.03));
    let params = literal.build().unwrap();
    let (mut measured, mut predicted) = (0.0, 0.0);
    for _ in 0..keys {
        let client = LeveledClient::generate(&params).unwrap();
        let chain = |i: u32| match (i, i % 2) {
            (0, _) => [Value::terminal(0), Value::terminal(1)],
            // Half of the way by ones, half by zeros.
            (_, 0) => [Value::terminal(0), Value::of_product(i - 1, false)],
            (_, _) => [Value::of_product(i - 1, false), Value::terminal(0)],
        };
        let d = Diagram::new(
            (0..LENGTH).map(chain).collect(),
            vec![1; LENGTH as usize],
            2,
            Value::of_product(LENGTH - 1, false),
        )
        .unwrap();
        let selectors: Vec<Selector> =
            (0..LENGTH).rev().map(|i| client.encrypt_selector(i % 2 == 0).unwrap()).collect();
        let server = LeveledServer::new(client.params());
        let found = server.evaluate(&d, &[vec![0; 512], vec![1; 512]], &selectors).unwrap();
        let noise = *selectors[0].noise();
        measured += client.noise_for_tests(&found, &[1; 512]).unwrap();
        let products = f64::from(LENGTH);
        // The first product's digits are those of one half, the end of their range.
        predicted += products * noise.body
            + (products - 1.0) * noise.masks
            + 2.0 * noise.body
            + (products / 2.0 - 1.0) * noise.rounding;
        assert!(found.variance() >= products * noise.expected());
    }
    let ratio = measured / predicted;
    assert!((ratio - 1.0).abs() < tolerance, "{ratio}");
}
