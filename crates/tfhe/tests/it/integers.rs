//! Encrypted integers against plain arithmetic: every pair of four bits, and random ones of all widths.

use crate::{cases, client, word};
use sudare_ring::random::{Seed, Stream};
use sudare_ring::{Threads, threads};
use sudare_rlwe::RlweError;
use sudare_tfhe::array::*;
use sudare_tfhe::radix::*;
use sudare_tfhe::*;

/// As small as the noise formulas allow: no security, and quick.
fn tiny() -> TfheLiteral {
    let small = TfheLiteral::insecure_test(Plaintext::Integer { message_bits: 2, carry_bits: 2 });
    TfheLiteral { lwe_dimension: 8, log_n: 9, ..small }
}

/// What an operation makes of two plain numbers, and of encrypted ones.
type Plain = fn(IntegerType, u64, u64) -> u64;
type Encrypted = fn(&IntegerEvaluator<'_>, &RadixInt, &RadixInt) -> Result<RadixInt, TfheError>;

const OPERATIONS: [(&str, Plain, Encrypted); 8] = [
    ("add", |_, a, b| a.wrapping_add(b), |e, a, b| e.add(a, b)),
    ("sub", |_, a, b| a.wrapping_sub(b), |e, a, b| e.sub(a, b)),
    ("mul", |_, a, b| a.wrapping_mul(b), |e, a, b| e.mul(a, b)),
    ("and", |_, a, b| a & b, |e, a, b| e.bitwise(BitOperation::And, a, b)),
    ("or", |_, a, b| a | b, |e, a, b| e.bitwise(BitOperation::Or, a, b)),
    ("xor", |_, a, b| a ^ b, |e, a, b| e.bitwise(BitOperation::Xor, a, b)),
    ("min", |t, a, b| if t.to_i128(a) < t.to_i128(b) { a } else { b }, |e, a, b| e.min(a, b)),
    ("max", |t, a, b| if t.to_i128(a) > t.to_i128(b) { a } else { b }, |e, a, b| e.max(a, b)),
];

struct Side<'k> {
    client: &'k ClientKey,
    evaluator: IntegerEvaluator<'k>,
}

impl Side<'_> {
    fn same(&self, what: &str, kind: IntegerType, x: &RadixInt, expected: u64, (a, b): (u64, u64)) {
        let found = self.client.decrypt_integer(x).unwrap();
        assert_eq!(found, kind.wrap(expected), "{what} of {a} and {b} as {kind}");
        assert!(x.blocks().iter().all(|b| b.noise() <= 3 && b.largest() <= 3), "{what}");
    }

    /// Everything that takes two numbers of one type.
    fn pair(&self, kind: IntegerType, x: &RadixInt, y: &RadixInt, (a, b): (u64, u64)) {
        let (e, c) = (&self.evaluator, self.client);
        for (name, plain, encrypted) in OPERATIONS {
            self.same(name, kind, &encrypted(e, x, y).unwrap(), plain(kind, a, b), (a, b));
        }
        for comparison in Comparison::ALL {
            let z = e.compare(comparison, x, y).unwrap();
            let order = kind.to_i128(a).cmp(&kind.to_i128(b));
            assert_eq!(c.decrypt_bool(&z).unwrap(), comparison.holds(order), "{comparison:?} of {a} and {b} as {kind}");
        }
    }

    /// Everything else that takes numbers: one shift, an order and what it selects, signs, casts and tables.
    fn others(&self, kind: IntegerType, (x, y): (&RadixInt, &RadixInt), (a, b): (u64, u64), choice: u64) {
        let (e, c) = (&self.evaluator, self.client);
        let (by, shift) = (choice & 127, Shift::ALL[choice as usize >> 7 & 3]);
        self.same(&format!("{shift:?}"), kind, &e.shift(shift, x, by).unwrap(), shift.plain(kind, a, by), (a, by));
        let amount = c.encrypt_integer(IntegerType::new(6, false).unwrap(), by & 63).unwrap();
        let shifted = e.shift_by(shift, x, &amount).unwrap();
        self.same(&format!("encrypted {shift:?}"), kind, &shifted, shift.plain(kind, a, by & 63), (a, by & 63));
        let less = e.compare(Comparison::Lt, x, y).unwrap();
        let chosen = if kind.to_i128(a) < kind.to_i128(b) { a } else { b };
        self.same("select", kind, &e.select(&less, x, y).unwrap(), chosen, (a, b));
        self.same("neg", kind, &e.neg(x).unwrap(), a.wrapping_neg(), (a, 0));
        self.same("not", kind, &e.not(x).unwrap(), !a, (a, 0));
        let to = IntegerType::new(4 + 2 * (choice >> 16 & 7) as u32, choice >> 20 & 1 == 1).unwrap();
        self.same("cast", to, &e.cast(x, to).unwrap(), kind.to_i128(a) as u64, (a, 0));
        if kind.bits() <= 6 {
            let table: Vec<u64> =
                (0..1 << kind.bits()).map(|i| (i ^ choice >> 24).wrapping_mul(choice | 1) >> 7).collect();
            self.same("lookup", to, &e.lookup(x, &table, to).unwrap(), table[a as usize], (a, 0));
        }
    }

    fn shifts(&self, kind: IntegerType, x: &RadixInt, a: u64, by: u64) {
        let e = &self.evaluator;
        let amount = self.client.encrypt_integer(IntegerType::new(8, false).unwrap(), by).unwrap();
        for shift in Shift::ALL {
            let expected = shift.plain(kind, a, by);
            self.same(&format!("{shift:?}"), kind, &e.shift(shift, x, by).unwrap(), expected, (a, by));
            let shifted = e.shift_by(shift, x, &amount).unwrap();
            self.same(&format!("encrypted {shift:?}"), kind, &shifted, expected, (a, by));
        }
    }
}

fn side(client: &ClientKey, work: impl FnOnce(Side<'_>) + Send) {
    let server = Threads::new(2).run(|| client.server_key()).unwrap();
    work(Side { client, evaluator: server.integers().unwrap() });
}

#[test]
fn every_pair_of_four_bits() {
    let client = client(tiny(), 1);
    side(&client, |s| {
        for signed in [false, true] {
            let kind = IntegerType::new(4, signed).unwrap();
            let all: Vec<_> = (0..16).map(|v| client.encrypt_integer(kind, v).unwrap()).collect();
            for (a, x) in all.iter().enumerate() {
                let a = a as u64;
                for (b, y) in all.iter().enumerate() {
                    s.pair(kind, x, y, (a, b as u64));
                }
                s.same("neg", kind, &s.evaluator.neg(x).unwrap(), a.wrapping_neg(), (a, 0));
                s.same("not", kind, &s.evaluator.not(x).unwrap(), !a, (a, 0));
                for by in [1, 3, 6] {
                    s.shifts(kind, x, a, by);
                }
                let table: Vec<u64> = (0..16).map(|i| i * i * 77 + 5).collect();
                let wide = IntegerType::new(12, false).unwrap();
                s.same("lookup", wide, &s.evaluator.lookup(x, &table, wide).unwrap(), table[a as usize], (a, 0));
            }
        }
    });
}

/// Random circuits: operands are public, fresh, or results of earlier operations.
fn random(side: &Side<'_>, stream: &mut Stream, count: u64) {
    for _ in 0..count {
        let r = word(stream);
        let kind = IntegerType::new(4 + 2 * (r as u32 % 31), r >> 8 & 1 == 1).unwrap();
        let (mut a, mut b) = (kind.wrap(word(stream)), kind.wrap(word(stream)));
        if r >> 9 & 3 == 0 {
            b = a ^ (r >> 16 & 1) << ((r >> 20) as u32 % kind.bits());
        }
        let e = &side.evaluator;
        let mut x = side.client.encrypt_integer(kind, a).unwrap();
        let mut y = match r >> 11 & 3 {
            0 => e.public(kind, b).unwrap(),
            _ => side.client.encrypt_integer(kind, b).unwrap(),
        };
        for step in 0..4 {
            let choice = word(stream);
            let (name, plain, encrypted) = OPERATIONS[choice as usize % 8];
            let (next, value) = match choice >> 8 & 3 {
                0 => {
                    let by = choice >> 16 & 127;
                    let shift = Shift::ALL[choice as usize >> 24 & 3];
                    (e.shift(shift, &x, by).unwrap(), shift.plain(kind, a, by))
                }
                1 => {
                    let by = choice >> 16 & 31;
                    let shift = Shift::ALL[choice as usize >> 24 & 3];
                    let amount = side.client.encrypt_integer(IntegerType::new(6, true).unwrap(), by).unwrap();
                    (e.shift_by(shift, &x, &amount).unwrap(), shift.plain(kind, a, by))
                }
                2 => {
                    let comparison = Comparison::ALL[choice as usize % 6];
                    let z = e.compare(comparison, &x, &y).unwrap();
                    let holds = comparison.holds(kind.to_i128(a).cmp(&kind.to_i128(b)));
                    assert_eq!(side.client.decrypt_bool(&z).unwrap(), holds, "{comparison:?} {kind} {a} {b}");
                    (e.select(&z, &x, &y).unwrap(), if holds { a } else { b })
                }
                _ if name == "mul" && kind.bits() > 16 && choice >> 40 & 7 != 0 => {
                    (e.neg(&x).unwrap(), a.wrapping_neg())
                }
                _ => (encrypted(e, &x, &y).unwrap(), plain(kind, a, b)),
            };
            side.same(&format!("step {step}: {name} {choice:x}"), kind, &next, value, (a, b));
            (x, y) = (y, next);
            (a, b) = (b, kind.wrap(value));
        }
    }
}

/// Every operation on pairs of all widths and both signs, most of them short; a quarter have a public operand, a quarter
/// differ in one bit.
#[test]
fn random_pairs() {
    const CHUNK: u64 = 25;
    let client = client(tiny(), 9);
    let server = client.server_key().unwrap();
    let chunk = |number: usize| {
        let side = Side { client: &client, evaluator: server.integers().unwrap() };
        let mut stream = Seed::from_bytes([3; 32]).stream(number as u64);
        for _ in 0..CHUNK {
            let r = word(&mut stream);
            let wide = match r & 31 {
                0 => 31,
                1..=2 => 16,
                3..=6 => 8,
                7..=15 => 4,
                _ => 2,
            };
            let bits = (4 + 2 * ((r >> 8 & 255) % wide)) as u32;
            let kind = IntegerType::new(bits, r >> 5 & 1 == 1).unwrap();
            let (a, mut b) = (kind.wrap(word(&mut stream)), kind.wrap(word(&mut stream)));
            if r >> 16 & 3 == 0 {
                b = a ^ 1 << ((r >> 24) % u64::from(bits));
            }
            let x = client.encrypt_integer(kind, a).unwrap();
            let y = match r >> 18 & 3 {
                0 => side.evaluator.public(kind, b).unwrap(),
                _ => client.encrypt_integer(kind, b).unwrap(),
            };
            side.pair(kind, &x, &y, (a, b));
            side.others(kind, (&x, &y), (a, b), word(&mut stream));
        }
    };
    let all = cases(75).div_ceil(CHUNK);
    Threads::new(0).run(|| threads::map(all as usize, chunk));
}

#[test]
fn random_circuits() {
    let client = client(tiny(), 2);
    let mut stream = Seed::from_bytes([5; 32]).stream(0);
    side(&client, |s| random(&s, &mut stream, cases(600) / 20));
    // Threads change the order of the work, not the numbers.
    for threads in [2, 16] {
        let server = client.server_key().unwrap();
        Threads::new(threads).run(|| {
            let mut stream = Seed::from_bytes([6; 32]).stream(0);
            random(&Side { client: &client, evaluator: server.integers().unwrap() }, &mut stream, cases(200) / 20);
        });
    }
}

#[test]
fn casts_tables_and_booleans() {
    let client = client(tiny(), 3);
    side(&client, |s| {
        let e = &s.evaluator;
        let byte = |signed| IntegerType::new(8, signed).unwrap();
        let mut stream = Seed::from_bytes([8; 32]).stream(0);
        for case in 0..cases(200) / 20 {
            let a = word(&mut stream) & 255;
            for signed in [false, true] {
                let x = client.encrypt_integer(byte(signed), a).unwrap();
                for (bits, to) in [(4, false), (8, true), (16, false), (32, true)] {
                    let kind = IntegerType::new(bits, to).unwrap();
                    let expected = kind.wrap(byte(signed).to_i128(a) as u64);
                    s.same("cast", kind, &e.cast(&x, kind).unwrap(), expected, (a, 0));
                }
                let mut table: Vec<u64> = (0..256).map(|_| word(&mut stream)).collect();
                if case % 2 == 0 {
                    // Few distinct rows, as of a step function.
                    table = (0..256).map(|i| u64::from(i > 100)).collect();
                }
                let kind = IntegerType::new(6, true).unwrap();
                s.same("lookup", kind, &e.lookup(&x, &table, kind).unwrap(), table[a as usize], (a, 0));
                let flags: Vec<bool> = table.iter().map(|t| t % 2 == 1).collect();
                assert_eq!(client.decrypt_bool(&e.lookup_bool(&x, &flags).unwrap()).unwrap(), flags[a as usize]);
            }
        }
        for bits in 0..8u64 {
            let [a, b, c] = [0, 1, 2].map(|i| bits >> i & 1 == 1);
            let [x, y, z] = [a, b, c].map(|v| client.encrypt_bool(v).unwrap());
            for operation in [BitOperation::And, BitOperation::Or, BitOperation::Xor] {
                let found = client.decrypt_bool(&e.bool_op(operation, &x, &y).unwrap()).unwrap();
                assert_eq!(found, operation.plain(a.into(), b.into()) == 1);
            }
            let not = e.bool_not(&z).unwrap();
            assert_eq!(client.decrypt_bool(&not).unwrap(), !c);
            let chosen = e.bool_select(&not, &x, &y).unwrap();
            assert_eq!(client.decrypt_bool(&chosen).unwrap(), if c { b } else { a });
            let number = e.bool_to_int(&chosen, byte(false)).unwrap();
            assert_eq!(client.decrypt_integer(&number).unwrap(), u64::from(if c { b } else { a }));
        }
    });
}

#[test]
fn fewest_rotations() {
    let client = client(tiny(), 4);
    side(&client, |s| {
        let byte = IntegerType::new(8, false).unwrap();
        let e = &s.evaluator;
        let count = |work: &dyn Fn()| {
            let before = e.rotations();
            work();
            e.rotations() - before
        };
        let [x, y] = [200, 77].map(|v| client.encrypt_integer(byte, v).unwrap());
        assert_eq!(count(&|| drop(e.add(&x, &y).unwrap())), 4);
        assert_eq!(count(&|| drop(e.sub(&x, &y).unwrap())), 4);
        assert_eq!(count(&|| drop(e.neg(&x).unwrap())), 4);
        // With the noise of real parameters; a set of less noise needs fewer.
        assert!(count(&|| drop(e.mul(&x, &y).unwrap())) <= 23);
        assert_eq!(count(&|| drop(e.compare(Comparison::Lt, &x, &y).unwrap())), 4);
        assert_eq!(count(&|| drop(e.compare(Comparison::Eq, &x, &y).unwrap())), 4);
        assert_eq!(count(&|| drop(e.min(&x, &y).unwrap())), 8);
        assert_eq!(count(&|| drop(e.bitwise(BitOperation::Xor, &x, &y).unwrap())), 4);
        assert_eq!(count(&|| drop(e.not(&x).unwrap())), 0);
        assert_eq!(count(&|| drop(e.shift(Shift::Left, &x, 4).unwrap())), 0);
        assert_eq!(count(&|| drop(e.shift(Shift::RotateRight, &x, 3).unwrap())), 4);
        let wide = [3u64, 9].map(|v| client.encrypt_integer(IntegerType::new(64, true).unwrap(), v).unwrap());
        assert_eq!(count(&|| drop(e.add(&wide[0], &wide[1]).unwrap())), 32);
        assert_eq!(count(&|| drop(e.compare(Comparison::Ge, &wide[0], &wide[1]).unwrap())), 33);
        // Public operands need none among themselves.
        let known = e.public(byte, 3).unwrap();
        assert_eq!(count(&|| drop(e.mul(&known, &known).unwrap())), 0);
        assert_eq!(count(&|| drop(e.mul(&x, &known).unwrap())), 7);
    });
}

#[test]
fn refusals() {
    let client = client(tiny(), 5);
    let other = self::client(tiny(), 6);
    side(&client, |s| {
        let e = &s.evaluator;
        let byte = IntegerType::new(8, false).unwrap();
        let x = client.encrypt_integer(byte, 1).unwrap();
        let foreign = other.encrypt_integer(byte, 1).unwrap();
        assert!(matches!(e.add(&x, &foreign), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
        assert!(matches!(e.shift_by(Shift::Left, &x, &foreign), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
        assert!(matches!(client.decrypt_integer(&foreign), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
        let signed = e.cast(&x, IntegerType::new(8, true).unwrap()).unwrap();
        assert!(matches!(e.add(&x, &signed), Err(TfheError::Parameters { .. })));
        let wide = e.cast(&x, IntegerType::new(16, true).unwrap()).unwrap();
        assert!(matches!(e.lookup(&wide, &[0; 256], byte), Err(TfheError::Parameters { .. })));
        assert!(matches!(e.lookup(&x, &[0; 16], byte), Err(TfheError::Shape { .. })));
        assert!(matches!(RadixInt::from_blocks(byte, x.blocks()[..3].to_vec()), Err(TfheError::Shape { .. })));
        let carried = EncryptedInt::from_parts(x.blocks()[0].ciphertext().clone(), x.owner(), 4, 1);
        assert!(matches!(EncryptedBool::from_block(carried), Err(TfheError::CarrySpace { .. })));
    });
    for bits in [0, 2, 3, 5, 66] {
        assert!(IntegerType::new(bits, true).is_err());
    }
    let bits = self::client(TfheLiteral::insecure_test(Plaintext::Bit), 7);
    assert!(bits.encrypt_bool(true).is_err());
    assert!(bits.server_key().unwrap().integers().is_err());
}

#[test]
fn real_parameters() {
    let client = client(TfheLiteral::message_2_carry_2(), 8);
    side(&client, |s| {
        let byte = IntegerType::new(8, true).unwrap();
        let [x, y] = [0x9C, 0x37].map(|v| client.encrypt_integer(byte, v).unwrap());
        s.same("add", byte, &s.evaluator.add(&x, &y).unwrap(), 0x9C + 0x37, (0x9C, 0x37));
        assert_eq!(s.evaluator.rotations(), 4);
        s.same("mul", byte, &s.evaluator.mul(&x, &y).unwrap(), 0x9C * 0x37, (0x9C, 0x37));
        assert_eq!(s.evaluator.rotations(), 4 + 22);
        let less = s.evaluator.compare(Comparison::Lt, &x, &y).unwrap();
        assert!(client.decrypt_bool(&less).unwrap());
    });
}

/// Elements of an array are computed side by side, and each is what it is alone: bit by bit where both take
/// the same steps, and by value everywhere, public operands among them.
#[test]
fn arrays_are_their_elements() {
    let client = client(tiny(), 9);
    let server = client.server_key().unwrap();
    let e = server.integers().unwrap();
    let kind = IntegerType::new(8, true).unwrap();
    let (bytes, count) = (ElementType::Integer(kind), 9);
    let values = |salt: u64| (0..count as u64).map(|i| kind.wrap(37 * i * i + 101 * salt)).collect::<Vec<_>>();
    let array = |values: &[u64]| client.encrypt_array(bytes, vec![count], values).unwrap();
    let public = |values: &[u64]| e.public_array(bytes, vec![count], values).unwrap();
    let single = |a: &EncryptedArray, i: usize| {
        let n = kind.blocks();
        RadixInt::from_blocks(kind, a.blocks()[i * n..(i + 1) * n].to_vec()).unwrap()
    };
    let (a, b) = (values(1), values(2));
    let alike = vec![5; count];
    let operations =
        [Elementwise::Add, Elementwise::Sub, Elementwise::Mul, Elementwise::Min, Elementwise::Bits(BitOperation::Xor)];
    // Both encrypted; a public array of one value; one of several, in which some elements are public alone.
    let mixed = EncryptedArray::concatenated(&[
        &public(&b).take(vec![4], &[0, 1, 2, 3]).unwrap(),
        &array(&b).take(vec![5], &[4, 5, 6, 7, 8]).unwrap(),
    ]);
    for (number, (right, plain)) in
        [(array(&b), &b), (public(&alike), &alike), (public(&b), &b), (mixed.unwrap(), &b)].into_iter().enumerate()
    {
        let left = array(&a);
        for operation in operations {
            let (name, expected, alone) = OPERATIONS[match operation {
                Elementwise::Add => 0,
                Elementwise::Sub => 1,
                Elementwise::Mul => 2,
                Elementwise::Min => 6,
                _ => 5,
            }];
            let before = e.rotations();
            // Sums leave their carries to whoever needs them.
            let all = e.settled(&e.elementwise(operation, &left, &right).unwrap()).unwrap();
            let rotations = e.rotations() - before;
            let found = client.decrypt_array(&all).unwrap();
            let wanted: Vec<u64> = a.iter().zip(plain).map(|(a, b)| kind.wrap(expected(kind, *a, *b))).collect();
            assert_eq!(found, wanted, "{name}");
            let one_by_one: Vec<RadixInt> =
                (0..count).map(|i| alone(&e, &single(&left, i), &single(&right, i)).unwrap()).collect();
            if number > 0 && matches!(operation, Elementwise::Add | Elementwise::Sub) {
                continue; // What waits has forgotten which numbers were public.
            }
            assert_eq!(e.rotations() - before, 2 * rotations, "{name}");
            assert!(all.blocks().iter().eq(one_by_one.iter().flat_map(|x| x.blocks())), "{name}");
        }
        let less = e.elementwise(Elementwise::Compare(Comparison::Lt), &left, &right).unwrap();
        let order = |a: u64, b: u64| u64::from(kind.to_i128(a) < kind.to_i128(b));
        let wanted: Vec<u64> = a.iter().zip(plain).map(|(a, b)| order(*a, *b)).collect();
        assert_eq!(client.decrypt_array(&less).unwrap(), wanted);
        let chosen = e.choice(&less, &left, &right).unwrap();
        let wanted: Vec<u64> =
            wanted.iter().zip(a.iter().zip(plain)).map(|(c, (a, b))| if *c == 1 { *a } else { *b }).collect();
        assert_eq!(client.decrypt_array(&chosen).unwrap(), wanted);
        // What is shifted out everywhere leaves public zeros in every element.
        let out = e.shifted(Shift::Left, &left, &vec![8; count]).unwrap();
        assert_eq!(client.decrypt_array(&out).unwrap(), vec![0; count]);
        let by: Vec<u64> = (0..count as u64).collect();
        let wanted: Vec<u64> = a.iter().zip(&by).map(|(a, by)| Shift::RotateLeft.plain(kind, *a, *by)).collect();
        assert_eq!(client.decrypt_array(&e.shifted(Shift::RotateLeft, &left, &by).unwrap()).unwrap(), wanted);
    }
}

/// Sums and differences of arrays take no bootstrap while blocks have room; what needs their carries propagates
/// them once for all, and decryption needs none.
#[test]
fn carries_wait_until_they_are_needed() {
    let client = client(tiny(), 11);
    let server = client.server_key().unwrap();
    for threads in [1, 16] {
        Threads::new(threads).run(|| waiting_carries(&client, &server));
    }
}

fn waiting_carries(client: &ClientKey, server: &ServerKey) {
    let e = server.integers().unwrap();
    let mut stream = Seed::from_bytes([17; 32]).stream(0);
    for (bits, signed) in [(8, false), (8, true), (16, false), (64, true)] {
        let kind = IntegerType::new(bits, signed).unwrap();
        let element = ElementType::Integer(kind);
        let mut values = || -> Vec<u64> { (0..5).map(|_| kind.wrap(word(&mut stream))).collect() };
        let terms: Vec<Vec<u64>> = (0..12).map(|_| values()).collect();
        let arrays: Vec<_> = terms.iter().map(|t| client.encrypt_array(element, vec![5], t).unwrap()).collect();
        // Four of them wait; the fifth has them propagated, each of the two sums once.
        let before = e.rotations();
        let sum = |x: &EncryptedArray, y: &EncryptedArray| e.elementwise(Elementwise::Add, x, y).unwrap();
        let mut all = arrays[0].clone();
        let mut plain = terms[0].clone();
        for (i, (array, term)) in arrays.iter().zip(&terms).enumerate().skip(1) {
            all = if i % 3 == 2 { e.elementwise(Elementwise::Sub, &all, array).unwrap() } else { sum(&all, array) };
            for (p, t) in plain.iter_mut().zip(term) {
                *p = kind.wrap(if i % 3 == 2 { p.wrapping_sub(*t) } else { p.wrapping_add(*t) });
            }
            assert_eq!(client.decrypt_array(&all).unwrap(), plain, "{kind}, {i} terms");
            if i == 2 {
                assert_eq!(e.rotations(), before, "{kind}");
            }
            assert!(all.blocks().iter().all(|b| b.largest() <= 12 && b.noise() <= 4), "{kind}");
        }
        // As many bootstraps as eager sums would have taken, and two more for what holds over seven, at most.
        assert!(e.rotations() - before < 11 * 5 * kind.blocks() as u64, "{kind}");
        let waiting = sum(&arrays[0], &arrays[1]);
        let expected: Vec<u64> = terms[0].iter().zip(&terms[1]).map(|(a, b)| kind.wrap(a.wrapping_add(*b))).collect();
        let once = |work: &dyn Fn()| {
            let before = e.rotations();
            work();
            e.rotations() - before
        };
        let order = |a: u64, b: u64| kind.to_i128(a) < kind.to_i128(b);
        let compare = || {
            let less = e.elementwise(Elementwise::Compare(Comparison::Lt), &waiting, &arrays[2]).unwrap();
            let wanted: Vec<u64> = expected.iter().zip(&terms[2]).map(|(a, b)| order(*a, *b).into()).collect();
            assert_eq!(client.decrypt_array(&less).unwrap(), wanted);
        };
        let [first, second] = [once(&compare), once(&compare)];
        assert!(first > second, "{first} {second}");
        // Elements that are picked, negated or made wider keep the value.
        let picked = waiting.take(vec![2], &[3, 1]).unwrap();
        assert_eq!(client.decrypt_array(&picked).unwrap(), [expected[3], expected[1]]);
        let negative = e.negative(&waiting).unwrap();
        let wanted: Vec<u64> = expected.iter().map(|v| kind.wrap(v.wrapping_neg())).collect();
        assert_eq!(client.decrypt_array(&negative).unwrap(), wanted);
        let settled = e.settled(&negative).unwrap();
        assert!(settled.blocks().iter().all(|b| b.largest() <= 3 && b.noise() <= 3));
        assert_eq!(client.decrypt_array(&settled).unwrap(), wanted);
        let wider = IntegerType::new(bits.min(32) + 6, signed).unwrap();
        if bits < wider.bits() {
            let cast = e.converted(&waiting, ElementType::Integer(wider)).unwrap();
            let wanted: Vec<u64> = expected.iter().map(|v| wider.wrap(kind.to_i128(*v) as u64)).collect();
            assert_eq!(client.decrypt_array(&cast).unwrap(), wanted);
        }
        let not = e.inverted(&waiting).unwrap();
        let wanted: Vec<u64> = expected.iter().map(|v| kind.wrap(!v)).collect();
        assert_eq!(client.decrypt_array(&not).unwrap(), wanted);
    }
}

/// What waits is bootstrapped within the bound that the set declares, by the noise formulas: the noisiest block
/// that can wait, and the carry of the one below.
#[test]
fn waiting_blocks_keep_the_failure_bound() {
    let integers = Plaintext::Integer { message_bits: 2, carry_bits: 2 };
    for literal in [
        TfheLiteral::message_2_carry_2(),
        TfheLiteral::message_2_carry_2_lwe_switch(),
        TfheLiteral::message_2_carry_2_failure_64(),
        TfheLiteral::message_2_carry_2_failure_40(),
        TfheLiteral::insecure_test(integers),
    ] {
        let params = literal.build().unwrap();
        let variance = params.decision_variance((4 + 1) * (4 + 1));
        let found = noise::variance::log2_tail(integers.half_box(), variance);
        assert!(found <= params.literal().log_failure, "{found} {params:?}");
    }
    // A set of less noise refuses to wait with more.
    let quiet = TfheLiteral { noise_factor: 9, ..tiny() };
    let client = client(quiet, 12);
    let server = client.server_key().unwrap();
    let e = server.integers().unwrap();
    let byte = ElementType::Integer(IntegerType::new(8, false).unwrap());
    let x = client.encrypt_array(byte, vec![1], &[77]).unwrap();
    let twice = e.elementwise(Elementwise::Add, &x, &x).unwrap();
    assert_eq!(e.rotations(), 0);
    let thrice = e.elementwise(Elementwise::Add, &twice, &x).unwrap();
    assert!(e.rotations() >= 4 && thrice.blocks().iter().all(|b| b.noise() <= 2));
    assert_eq!(client.decrypt_array(&thrice).unwrap(), [231]);
}

/// `any` and `all` join up to eight booleans by one bootstrap.
#[test]
fn reductions_join_many_booleans() {
    let client = client(tiny(), 13);
    let server = client.server_key().unwrap();
    for threads in [1, 3] {
        Threads::new(threads).run(|| {
            let e = server.integers().unwrap();
            for (count, m) in [(1, 3), (2, 1), (8, 2), (9, 1), (20, 2), (64, 1)] {
                for pattern in 0..4u64 {
                    let value = |i: usize| match pattern {
                        0 => 0,
                        1 => 1,
                        2 => u64::from(i == count * m - 1),
                        _ => u64::from(i != 0),
                    };
                    let values: Vec<u64> = (0..count * m).map(value).collect();
                    let x = client.encrypt_array(ElementType::Bool, vec![count, m], &values).unwrap();
                    for how in [Reduction::Any, Reduction::All] {
                        let found = client.decrypt_array(&e.reduced(how, &x, vec![m]).unwrap()).unwrap();
                        let column = |j: usize| (0..count).map(move |i| value(i * m + j) == 1);
                        let wanted: Vec<u64> = (0..m)
                            .map(|j| match how {
                                Reduction::Any => column(j).any(|x| x).into(),
                                Reduction::All => column(j).all(|x| x).into(),
                            })
                            .collect();
                        assert_eq!(found, wanted, "{how:?} of {count} x {m}, {pattern}");
                    }
                }
            }
        });
    }
    let e = server.integers().unwrap();
    let x = client.encrypt_array(ElementType::Bool, vec![64], &[0; 64]).unwrap();
    e.reduced(Reduction::Any, &x, vec![]).unwrap();
    assert!(e.rotations() <= 8 + 1, "{}", e.rotations());
    assert!(matches!(e.reduced(Reduction::Any, &x, vec![3]), Err(TfheError::Shape { .. })));
    assert!(matches!(e.reduced(Reduction::Any, &x, vec![0]), Err(TfheError::Shape { .. })));
}
