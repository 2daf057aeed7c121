//! What is made of operations on arrays, against plain arithmetic.

use crate::{cases, client, word};
use std::sync::Mutex;
use sudare_ring::Threads;
use sudare_ring::random::{Seed, Stream};
use sudare_tfhe::array::*;
use sudare_tfhe::radix::*;
use sudare_tfhe::*;

/// As small as the noise formulas allow: no security, and quick.
fn tiny() -> TfheLiteral {
    let small = TfheLiteral::insecure_test(Plaintext::Integer { message_bits: 2, carry_bits: 2 });
    TfheLiteral { lwe_dimension: 8, log_n: 9, ..small }
}

fn kind(bits: u32, signed: bool) -> IntegerType {
    IntegerType::new(bits, signed).unwrap()
}

struct Side {
    client: ClientKey,
    server: ServerKey,
}

impl Side {
    fn new(literal: TfheLiteral, number: u8) -> Self {
        let client = client(literal, number);
        let server = Threads::new(2).run(|| client.server_key()).unwrap();
        Self { client, server }
    }

    fn encrypted(&self, element: ElementType, shape: &[usize], values: &[u64]) -> EncryptedArray {
        self.client.encrypt_array(element, shape.to_vec(), values).unwrap()
    }

    fn integers(&self, kind: IntegerType, values: &[u64]) -> EncryptedArray {
        self.encrypted(ElementType::Integer(kind), &[values.len()], values)
    }

    /// What an operation gives with two threads: its shape and its elements.
    fn result(
        &self,
        work: impl FnOnce(&dyn ArrayEvaluator) -> Result<EncryptedArray, TfheError> + Send,
    ) -> (Vec<usize>, Vec<u64>) {
        let found = Threads::new(2).run(|| work(&*self.server.arrays().unwrap())).unwrap();
        (found.shape().to_vec(), self.client.decrypt_array(&found).unwrap())
    }
}

/// Numbers of a type, many of them at its ends.
fn numbers(stream: &mut Stream, kind: IntegerType, count: usize) -> Vec<u64> {
    let one = |stream: &mut Stream| match word(stream) & 7 {
        0 => 0,
        1 => kind.wrap(u64::MAX),
        2 => kind.wrap(1 << (kind.bits() - 1)),
        3 => kind.wrap(word(stream)) & 15,
        _ => kind.wrap(word(stream)),
    };
    (0..count).map(|_| one(stream)).collect()
}

/// NumPy's `divmod`: down, with the divisor's sign; nothing by an encrypted zero.
fn divided(kind: IntegerType, a: u64, b: u64) -> (u64, u64) {
    let (a, b) = (kind.to_i128(a), kind.to_i128(b));
    if b == 0 {
        return (0, 0);
    }
    let (mut quotient, mut rest) = (a / b, a % b);
    if rest != 0 && (rest < 0) != (b < 0) {
        (quotient, rest) = (quotient - 1, rest + b);
    }
    (kind.wrap(quotient as u64), kind.wrap(rest as u64))
}

fn check_division(side: &Side, kind: IntegerType, public: bool, pairs: &[(u64, u64)]) {
    let (a, b): (Vec<u64>, Vec<u64>) = pairs.iter().copied().unzip();
    let expected: Vec<(u64, u64)> = pairs.iter().map(|(a, b)| divided(kind, *a, *b)).collect();
    let (x, y) = (side.integers(kind, &a), side.integers(kind, &b));
    let check = |by: Divisor<'_>, what: &str| {
        let (q, r) = Threads::new(2).run(|| side.server.arrays().unwrap().divided(&x, by)).unwrap();
        let (q, r) = (side.client.decrypt_array(&q).unwrap(), side.client.decrypt_array(&r).unwrap());
        let found: Vec<(u64, u64)> =
            q.into_iter().map(|q| kind.wrap(q)).zip(r.into_iter().map(|r| kind.wrap(r))).collect();
        assert_eq!(found, expected, "{kind} {what}: {pairs:?}");
    };
    match public {
        true => check(Divisor::Public(&b), "by a public number"),
        false => check(Divisor::Encrypted(&y), "by an encrypted number"),
    }
}

#[test]
fn every_quotient_of_four_bits() {
    let side = Side::new(tiny(), 31);
    for signed in [false, true] {
        let pairs =
            |from: u64| -> Vec<(u64, u64)> { (0..256).map(|i| (i / 16, i % 16)).filter(|p| p.1 >= from).collect() };
        check_division(&side, kind(4, signed), false, &pairs(0));
        check_division(&side, kind(4, signed), true, &pairs(1));
        // One divisor for all, powers of two among them.
        for by in [1, 2, 3, 4, 8, 13] {
            check_division(&side, kind(4, signed), true, &(0..16).map(|a| (a, by)).collect::<Vec<_>>());
        }
    }
}

#[test]
fn quotients_of_other_widths() {
    let side = Side::new(tiny(), 32);
    let mut stream = Seed::from_bytes([4; 32]).stream(0);
    for _ in 0..cases(1) {
        for (bits, signed, count) in [(8, false, 6), (8, true, 6), (10, true, 2), (64, true, 1)] {
            let kind = kind(bits, signed);
            let (a, b) = (numbers(&mut stream, kind, count), numbers(&mut stream, kind, count));
            check_division(&side, kind, false, &a.iter().copied().zip(b.iter().copied()).collect::<Vec<_>>());
            let other: Vec<u64> = b.iter().map(|b| if *b == 0 { kind.wrap(u64::MAX - 2) } else { *b }).collect();
            check_division(&side, kind, true, &a.into_iter().zip(other).collect::<Vec<_>>());
        }
    }
}

#[test]
fn sorting_and_places() {
    let side = Side::new(tiny(), 33);
    let mut stream = Seed::from_bytes([5; 32]).stream(0);
    for (n, signed) in (0..=7usize).map(|n| (n, n % 2 == 0)) {
        let kind = kind(8, signed);
        // Few different ones, so that some are equal; two columns.
        let values: Vec<u64> = (0..2 * n).map(|_| kind.wrap((word(&mut stream) % 5).wrapping_sub(2))).collect();
        let x = side.encrypted(ElementType::Integer(kind), &[n, 2], &values);
        let column = |c: usize| (0..n).map(move |i| 2 * i + c);
        let mut expected = vec![0; 2 * n];
        for c in 0..2 {
            let mut sorted: Vec<u64> = column(c).map(|i| values[i]).collect();
            sorted.sort_by_key(|v| kind.to_i128(*v));
            column(c).zip(sorted).for_each(|(i, v)| expected[i] = v);
        }
        assert_eq!(side.result(|e| e.sorted(&x)), (vec![n, 2], expected), "{values:?}");
        for largest in [false, true] {
            if n == 0 {
                assert!(side.server.arrays().unwrap().first_best(&x, largest).is_err());
                continue;
            }
            let expected: Vec<u64> = (0..2)
                .map(|c| {
                    let value = |i: &usize| kind.to_i128(values[2 * i + c]) * if largest { 1 } else { -1 };
                    // Of equals the first.
                    (0..n).max_by_key(|i| (value(i), std::cmp::Reverse(*i))).unwrap() as u64
                })
                .collect();
            assert_eq!(side.result(|e| e.first_best(&x, largest)), (vec![2], expected), "{largest} {values:?}");
        }
    }
}

#[test]
fn scans_folds_powers_and_products() {
    let side = Side::new(tiny(), 34);
    let mut stream = Seed::from_bytes([6; 32]).stream(0);
    for n in [1usize, 2, 3, 6, 7] {
        let kind = kind(8, n % 2 == 0);
        let values = numbers(&mut stream, kind, 2 * n);
        let x = side.encrypted(ElementType::Integer(kind), &[n, 2], &values);
        for operation in [Elementwise::Add, Elementwise::Mul] {
            let plain = if operation == Elementwise::Add { u64::wrapping_add } else { u64::wrapping_mul };
            let mut expected = values.clone();
            for i in 2..2 * n {
                expected[i] = kind.wrap(plain(expected[i - 2], expected[i]));
            }
            assert_eq!(side.result(|e| e.folded(operation, &x)), (vec![2], expected[2 * n - 2..].to_vec()));
            assert_eq!(side.result(|e| e.scanned(operation, &x)), (vec![n, 2], expected), "{operation:?} {values:?}");
        }
    }
    let kind = kind(8, false);
    let values = numbers(&mut stream, kind, 3);
    let x = side.integers(kind, &values);
    for exponent in [0, 1, 2, 3, 5, 6, 8, 13] {
        let expected = values.iter().map(|v| kind.wrap(v.wrapping_pow(exponent as u32))).collect();
        assert_eq!(side.result(|e| e.raised(&x, exponent)), (vec![3], expected), "{values:?}^{exponent}");
    }
    let (a, b) = (numbers(&mut stream, kind, 12), numbers(&mut stream, kind, 18));
    let (x, y) = (
        side.encrypted(ElementType::Integer(kind), &[2, 2, 3], &a),
        side.encrypted(ElementType::Integer(kind), &[2, 3, 3], &b),
    );
    let entry = |i: usize| {
        let (batch, row, col) = (i / 6, i / 3 % 2, i % 3);
        let terms = (0..3).map(|k| a[batch * 6 + row * 3 + k].wrapping_mul(b[batch * 9 + k * 3 + col]));
        kind.wrap(terms.fold(0, u64::wrapping_add))
    };
    assert_eq!(side.result(|e| e.matrix_product(&x, &y)), (vec![2, 2, 3], (0..12).map(entry).collect()));
    let e = side.server.arrays().unwrap();
    assert!(matches!(e.matrix_product(&x, &x), Err(TfheError::Shape { .. })));
}

#[test]
fn tables_of_sixteen_bits() {
    let side = Side::new(tiny(), 35);
    let mut stream = Seed::from_bytes([7; 32]).stream(0);
    let (word16, wide) = (kind(16, false), kind(10, true));
    // Three different rows: of zeros, of one entry, of all entries.
    let rows = [|_: u64| 0, |_| 77, |i: u64| i.wrapping_mul(i) ^ 5];
    let table: Vec<u64> = (0..1u64 << 16).map(|i| wide.wrap(rows[(i >> 8) as usize % 3](i & 255))).collect();
    let flags: Vec<u64> = table.iter().map(|v| v & 1).collect();
    for signed in [false, true] {
        let values: Vec<u64> = (0..2).map(|_| word16.wrap(word(&mut stream))).chain([0, 65535, 256]).collect();
        let x = side.integers(kind(16, signed), &values);
        let found = |of: &[u64]| values.iter().map(|v| of[*v as usize]).collect::<Vec<u64>>();
        let (shape, to) = (vec![values.len()], ElementType::Integer(wide));
        assert_eq!(side.result(|e| e.looked_up(&x, &table, to)), (shape.clone(), found(&table)));
        assert_eq!(side.result(|e| e.looked_up(&x, &flags, ElementType::Bool)), (shape.clone(), found(&flags)));
        let one = vec![9; 1 << 16];
        assert_eq!(side.result(|e| e.looked_up(&x, &one, to)), (shape, found(&one)));
        assert!(matches!(side.server.arrays().unwrap().looked_up(&x, &table[1..], to), Err(TfheError::Shape { .. })));
    }
}

/// Under a set of gates as under one of integers.
#[test]
fn booleans() {
    for literal in [tiny(), TfheLiteral { lwe_dimension: 8, log_n: 9, ..TfheLiteral::insecure_test(Plaintext::Bit) }] {
        let side = Side::new(literal, 36);
        let values = [1, 0, 0, 1, 1, 0, 1];
        let x = side.encrypted(ElementType::Bool, &[7], &values);
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        assert_eq!(side.result(|e| e.sorted(&x)), (vec![7], sorted));
        assert_eq!(side.result(|e| e.scanned(Elementwise::Mul, &x)), (vec![7], vec![1, 0, 0, 0, 0, 0, 0]));
        assert_eq!(side.result(|e| e.folded(Elementwise::Add, &x)), (vec![], vec![1]));
        let e = side.server.arrays().unwrap();
        for refused in [e.raised(&x, 2).err(), e.divided(&x, Divisor::Encrypted(&x)).err()] {
            assert!(matches!(refused, Some(TfheError::Parameters { .. })), "{refused:?}");
        }
    }
}

#[test]
fn progress_grows_to_its_end() {
    let side = Side::new(tiny(), 37);
    let (told, kind) = (Mutex::new(Vec::new()), kind(8, false));
    let tell = |done: usize, steps: usize| told.lock().unwrap().push(done as f64 / steps as f64);
    let e = side.server.arrays_with(&tell).unwrap();
    let x = side.integers(kind, &[3, 200, 17, 5, 9, 250, 0, 77]);
    let parts = |told: &Mutex<Vec<f64>>| {
        let parts = std::mem::take(&mut *told.lock().unwrap());
        assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)), "{parts:?}");
        assert!(parts.len() > 1 && *parts.last().unwrap() == 1.0, "{parts:?}");
    };
    e.elementwise(Elementwise::Mul, &x, &x).unwrap();
    parts(&told);
    e.divided(&x, Divisor::Encrypted(&x)).unwrap();
    parts(&told);
    e.sorted(&x).unwrap();
    parts(&told);
    let refused = e.divided(&x, Divisor::Public(&[1, 2, 3, 4, 5, 6, 7, 0])).err();
    assert!(refused.unwrap().to_string().contains("public zero"));
}

/// The variance of encryptions under public keys against its formula; 8 keys leave 1.5 % to chance.
#[test]
fn public_keys_have_the_noise_of_their_formula() {
    let (mut sum, mut count, mut wanted) = (0.0, 0u32, 0.0);
    for number in 0..8 {
        let client = client(tiny(), number);
        let key = client.public_key().unwrap();
        let (context, elements) = (client.params().context(), 8 * 512);
        let x = key.encrypt_array(ElementType::Bool, vec![elements], &vec![0; elements]).unwrap();
        for block in x.blocks() {
            let phase = client.extracted().phase(block.ciphertext()).unwrap();
            let noise = context.modulus().center(phase) as f64 / context.q() as f64;
            (sum, count) = (sum + noise * noise, count + 1);
        }
        wanted = key.variance();
    }
    let ratio = sum / f64::from(count) / wanted;
    assert!((ratio - 1.0).abs() < 0.03 + 4.0 * 0.015, "{ratio}");
}

/// What others encrypt is computed with as what the owner encrypts, in each kind of set.
#[test]
fn public_keys_encrypt() {
    let side = Side::new(tiny(), 40);
    let key = side.client.public_key().unwrap();
    let bytes = wire::tfhe_public_key_to_bytes(&key).unwrap();
    let key = wire::tfhe_public_key_from_bytes(side.client.params(), &bytes).unwrap();
    assert_eq!(key.id(), side.client.id());
    assert_eq!(wire::tfhe_public_key_to_bytes(&key).unwrap(), bytes);
    assert!(wire::tfhe_public_key_from_bytes(side.client.params(), &bytes[..bytes.len() - 1]).is_err());
    let (word, values) = (kind(16, true), [7, 65_535, 300]);
    let x = key.encrypt_array(ElementType::Integer(word), vec![3], &values).unwrap();
    let y = side.integers(word, &[1, 2, 3]);
    assert_eq!(side.client.decrypt_array(&x).unwrap(), values.map(|v| word.wrap(v)));
    let sum = side.result(|e| e.elementwise(Elementwise::Add, &x, &y));
    assert_eq!(sum.1, [8, 1, 303].map(|v| word.wrap(v)));
    assert!(matches!(
        key.encrypt_array(ElementType::Bool, vec![1], &[2]),
        Err(TfheError::Message { value: 2, space: 2 })
    ));
    // The same message is another ciphertext each time, and a polynomial's blocks are others than its neighbour's.
    let twice = [0, 1].map(|_| key.encrypt_array(ElementType::Bool, vec![1200], &[0; 1200]).unwrap());
    assert_ne!(twice[0].blocks()[0].ciphertext().words(), twice[1].blocks()[0].ciphertext().words());
    assert_ne!(twice[0].blocks()[0].ciphertext().words(), twice[0].blocks()[512].ciphertext().words());
    assert_eq!(side.client.decrypt_array(&twice[0]).unwrap(), [0; 1200]);
}

/// Every published set has room for it: a bootstrap leaves more noise.
#[test]
fn public_keys_of_published_sets() {
    let sets = [
        TfheLiteral::gates(),
        TfheLiteral::gates_failure_64(),
        TfheLiteral::message_2_carry_2(),
        TfheLiteral::message_2_carry_2_lwe_switch(),
        TfheLiteral::message_2_carry_2_failure_64(),
    ];
    for (literal, number) in sets.into_iter().zip(60..) {
        let client = client(literal, number);
        let key = client.public_key().unwrap();
        assert!(key.variance() <= client.params().output_variance() / 4.0);
        let x = key.encrypt_array(ElementType::Bool, vec![2], &[1, 0]).unwrap();
        assert_eq!(client.decrypt_array(&x).unwrap(), [1, 0]);
    }
}
