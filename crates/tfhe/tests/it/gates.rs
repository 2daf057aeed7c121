//! Arrays of booleans under a set of gates.

use crate::client;
use sudare_ring::Threads;
use sudare_rlwe::RlweError;
use sudare_tfhe::array::*;
use sudare_tfhe::radix::{BitOperation, Comparison, IntegerType, Shift};
use sudare_tfhe::*;

const OPERATIONS: [(Elementwise, Gate); 14] = [
    (Elementwise::Add, Gate::Or),
    (Elementwise::Mul, Gate::And),
    (Elementwise::Min, Gate::And),
    (Elementwise::Max, Gate::Or),
    (Elementwise::Bits(BitOperation::And), Gate::And),
    (Elementwise::Bits(BitOperation::Or), Gate::Or),
    (Elementwise::Bits(BitOperation::Xor), Gate::Xor),
    (Elementwise::Compare(Comparison::Eq), Gate::Xnor),
    (Elementwise::Compare(Comparison::Ne), Gate::Xor),
    (Elementwise::Compare(Comparison::Gt), Gate::AndNot),
    (Elementwise::Compare(Comparison::Ge), Gate::OrNot),
    // These exchange their operands.
    (Elementwise::Compare(Comparison::Lt), Gate::AndNot),
    (Elementwise::Compare(Comparison::Le), Gate::OrNot),
    (Elementwise::Bits(BitOperation::And), Gate::And),
];

/// Every operation on every pair, fresh, public and mixed; arrays are their elements bit by bit, on any threads.
#[test]
fn operations_are_their_gates() {
    let client = client(TfheLiteral::insecure_test(Plaintext::Bit), 1);
    let server = client.server_key().unwrap();
    let e = server.bits().unwrap();
    let (a, b) = ([0, 0, 1, 1], [0, 1, 0, 1]);
    let fresh = |v: &[u64]| client.encrypt_array(ElementType::Bool, vec![v.len()], v).unwrap();
    let public = |v: &[u64]| e.public_array(ElementType::Bool, vec![v.len()], v).unwrap();
    for (i, (operation, gate)) in OPERATIONS.into_iter().enumerate() {
        let exchanged = (11..13).contains(&i);
        for (x, y) in
            [(fresh(&a), fresh(&b)), (public(&a), fresh(&b)), (fresh(&a), public(&b)), (public(&a), public(&b))]
        {
            let z = e.elementwise(operation, &x, &y).unwrap();
            let plain = |a: u64, b: u64| u64::from(gate.plain(a == 1, b == 1));
            let wanted: Vec<u64> =
                a.iter().zip(b).map(|(a, b)| if exchanged { plain(b, *a) } else { plain(*a, b) }).collect();
            assert_eq!(client.decrypt_array(&z).unwrap(), wanted, "{operation:?}");
            for threads in [1, 3] {
                let again = Threads::new(threads).run(|| e.elementwise(operation, &x, &y)).unwrap();
                assert!(again.blocks() == z.blocks());
            }
            for i in 0..4 {
                let [x, y] = [&x, &y].map(|v| v.take(vec![1], &[i]).unwrap());
                assert!(e.elementwise(operation, &x, &y).unwrap().blocks() == &z.blocks()[i..=i], "{operation:?}");
            }
        }
    }
    // What is public needs no bootstrap, and stays public.
    let known = e.elementwise(Elementwise::Mul, &fresh(&a), &public(&[0; 4])).unwrap();
    assert!(known.blocks().iter().all(|b| b.noise() == 0 && b.ciphertext().mask().iter().all(|m| *m == 0)));
}

#[test]
fn what_a_set_of_gates_refuses() {
    let client = client(TfheLiteral::insecure_test(Plaintext::Bit), 2);
    let server = client.server_key().unwrap();
    let e = server.arrays().unwrap();
    let byte = ElementType::Integer(IntegerType::new(8, false).unwrap());
    let x = client.encrypt_array(ElementType::Bool, vec![2], &[0, 1]).unwrap();
    let parameters = |found: Result<EncryptedArray, TfheError>| {
        assert!(matches!(found, Err(TfheError::Parameters { .. })), "{found:?}");
    };
    parameters(client.encrypt_array(byte, vec![1], &[1]));
    parameters(e.public_array(byte, vec![1], &[1]));
    parameters(e.converted(&x, byte));
    parameters(e.negative(&x));
    parameters(e.elementwise(Elementwise::Sub, &x, &x));
    parameters(e.shifted(Shift::Left, &x, &[1, 1]));
    parameters(e.shifted_by(Shift::Left, &x, &x));
    parameters(e.looked_up(&x, &[3, 4], byte));
    assert!(matches!(e.reduced(Reduction::Any, &x, vec![3]), Err(TfheError::Shape { .. })));
    assert!(matches!(client.encrypt_array(ElementType::Bool, vec![1], &[2]), Err(TfheError::Message { .. })));
    // Integers and gates do not mix, nor do keys.
    let integers = self::client(TfheLiteral::insecure_test(Plaintext::Integer { message_bits: 2, carry_bits: 2 }), 3);
    let y = integers.encrypt_array(ElementType::Bool, vec![2], &[0, 1]).unwrap();
    let mixed = e.elementwise(Elementwise::Add, &x, &y);
    assert!(matches!(mixed, Err(TfheError::Rlwe(RlweError::WrongParameters { .. }))), "{mixed:?}");
    assert!(integers.server_key().unwrap().bits().is_err());
    let foreign = self::client(TfheLiteral::insecure_test(Plaintext::Bit), 4);
    let z = foreign.encrypt_array(ElementType::Bool, vec![2], &[0, 1]).unwrap();
    assert!(matches!(e.choice(&x, &z, &x), Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
}

/// By the noise formulas: two choices, the same one twice, in one gate of each set.
#[test]
fn gates_keep_the_failure_bound() {
    for literal in [TfheLiteral::gates(), TfheLiteral::gates_failure_64(), TfheLiteral::gates_failure_40()] {
        let params = literal.build().unwrap();
        assert_eq!(params.literal().noise_factor, 8);
        let found = noise::variance::log2_tail(Plaintext::Bit.half_box(), params.decision_variance(8));
        assert!(found <= params.literal().log_failure, "{found} {params:?}");
    }
}
