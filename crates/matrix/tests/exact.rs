//! Exact products of encrypted integer matrices against plain ones.

use proptest::prelude::*;
use sudare_he::HeError;
use sudare_matrix::exact::{EncryptedIntegers, ExactClient, ExactPlan, ExactServer, ExactSpec};
use sudare_matrix::packing::IntMatrix;
use sudare_matrix::{MatrixError, Operand, Shape};
use sudare_rlwe::RlweError;
use sudare_rlwe::security::Security;

fn spec(shape: Shape, left: u64, right: u64) -> ExactSpec {
    ExactSpec { shape, left, right, security: Security::Bits128 }
}

/// Elements that reach the bound on both sides.
fn matrix(rows: usize, cols: usize, bound: u64, salt: u64) -> IntMatrix {
    IntMatrix::from_fn(rows, cols, |i, j| {
        let word = ((i * cols + j) as u64 + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 3;
        match word % 5 {
            0 => i128::from(bound),
            1 => -i128::from(bound),
            _ => i128::from(word % (2 * bound + 1).max(1)) - i128::from(bound),
        }
    })
    .unwrap()
}

fn check(spec: &ExactSpec, salt: u64) {
    let Shape { m, k, n, .. } = spec.shape;
    let plan = ExactPlan::new(spec).unwrap();
    let client = ExactClient::new(&plan, 1).unwrap();
    let server = ExactServer::new(&plan, 1).unwrap();
    // The largest results there can be, and mixed ones.
    let most = |rows, cols, bound: u64| IntMatrix::from_fn(rows, cols, |_, _| i128::from(bound)).unwrap();
    let least = |rows, cols, bound: u64| IntMatrix::from_fn(rows, cols, |_, _| -i128::from(bound)).unwrap();
    for (a, b) in [
        (matrix(m, k, spec.left, salt), matrix(k, n, spec.right, salt + 99)),
        (most(m, k, spec.left), most(k, n, spec.right)),
        (least(m, k, spec.left), most(k, n, spec.right)),
    ] {
        let x = client.encrypt(Operand::Left, &a).unwrap();
        let y = client.encrypt(Operand::Right, &b).unwrap();
        let (left, right, output) = plan.ciphertexts();
        let product = server.multiply(&x, &y).unwrap();
        let count = |e: &EncryptedIntegers| e.ciphertexts().iter().map(Vec::len).sum::<usize>();
        assert_eq!((count(&x), count(&y), count(&product)), (left, right, output));
        assert_eq!(client.decrypt(&product).unwrap(), a.matmul(&b).unwrap(), "{plan}");
        let back = EncryptedIntegers::from_bytes(&plan, &product.to_bytes().unwrap()).unwrap();
        assert_eq!(client.decrypt(&back).unwrap(), a.matmul(&b).unwrap());
    }
}

#[test]
fn sizes_and_bounds_at_the_edges() {
    let shapes = [(1, 1, 1), (16, 16, 16), (1, 300, 1), (40, 1, 40), (20, 70, 9)];
    for (m, k, n) in shapes {
        check(&spec(Shape::new(m, k, n), 1, 1), 1);
        check(&spec(Shape::new(m, k, n), 1023, 1023), 2);
    }
    // Several plaintext moduli.
    check(&spec(Shape::new(5, 6, 4), 1 << 40, 1 << 39), 3);
    check(&spec(Shape::new(2, 3, 2), u64::MAX / 2, 1 << 45), 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_shape_and_bound(m in 1usize..30, k in 1usize..60, n in 1usize..30, left in 1u64..1 << 20, right in 1u64..1 << 14) {
        check(&spec(Shape::new(m, k, n), left, right), 5);
    }
}

#[test]
fn refusals() {
    let plan = ExactPlan::new(&spec(Shape::new(3, 4, 5), 10, 20)).unwrap();
    let client = ExactClient::new(&plan, 1).unwrap();
    let server = ExactServer::new(&plan, 1).unwrap();
    let over = IntMatrix::from_fn(3, 4, |i, j| if (i, j) == (2, 1) { -11 } else { 10 }).unwrap();
    assert!(matches!(client.encrypt(Operand::Left, &over), Err(MatrixError::OutOfRange { row: 2, col: 1, .. })));
    let a = matrix(3, 4, 10, 1);
    assert!(matches!(client.encrypt(Operand::Right, &a), Err(MatrixError::PlannedShape { .. })));
    assert!(matches!(client.encrypt(Operand::Output, &a), Err(MatrixError::Method { .. })));
    let (x, y) =
        (client.encrypt(Operand::Left, &a).unwrap(), client.encrypt(Operand::Right, &matrix(4, 5, 20, 2)).unwrap());
    assert!(matches!(server.multiply(&y, &x), Err(MatrixError::Method { .. })));
    assert!(matches!(client.decrypt(&x), Err(MatrixError::Method { .. })));
    let stranger = ExactClient::new(&plan, 1).unwrap();
    let z = stranger.encrypt(Operand::Right, &matrix(4, 5, 20, 2)).unwrap();
    assert!(matches!(server.multiply(&x, &z), Err(MatrixError::He(HeError::Rlwe(RlweError::WrongKey { .. })))));
    let product = server.multiply(&x, &y).unwrap();
    assert!(matches!(stranger.decrypt(&product), Err(MatrixError::He(HeError::Rlwe(RlweError::WrongKey { .. })))));
    let mut parts = product.ciphertexts().to_vec();
    let again = EncryptedIntegers::from_ciphertexts(&plan, Operand::Output, product.key(), parts.clone()).unwrap();
    assert_eq!(client.decrypt(&again).unwrap(), client.decrypt(&product).unwrap());
    parts[0].pop();
    let short = EncryptedIntegers::from_ciphertexts(&plan, Operand::Output, product.key(), parts);
    assert!(matches!(short, Err(MatrixError::Count { .. })));
    let other = ExactPlan::new(&spec(Shape::new(3, 4, 5), 10, 21)).unwrap();
    let foreign = ExactServer::new(&other, 1).unwrap();
    assert!(matches!(foreign.multiply(&x, &y), Err(MatrixError::Method { .. })));
}

#[test]
fn hostile_bytes() {
    let plan = ExactPlan::new(&spec(Shape::new(3, 4, 5), 10, 20)).unwrap();
    let client = ExactClient::new(&plan, 1).unwrap();
    let bytes = client.encrypt(Operand::Left, &matrix(3, 4, 10, 1)).unwrap().to_bytes().unwrap();
    for length in (0..200).chain((200..bytes.len()).step_by(997)) {
        assert!(EncryptedIntegers::from_bytes(&plan, &bytes[..length]).is_err(), "cut at {length}");
    }
    for at in (0..300).chain((300..bytes.len()).step_by(1009)) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert!(EncryptedIntegers::from_bytes(&plan, &changed).is_err(), "flipped at {at}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(EncryptedIntegers::from_bytes(&plan, &longer).is_err());
    assert_eq!(ExactPlan::from_json(&plan.to_json().unwrap()).unwrap(), plan);
    assert!(ExactPlan::from_json("{}").is_err());
}

#[test]
fn threads_change_nothing() {
    let plan = ExactPlan::new(&spec(Shape::new(20, 90, 20), 50, 50)).unwrap();
    let client = ExactClient::new(&plan, 1).unwrap();
    let x = client.encrypt(Operand::Left, &matrix(20, 90, 50, 1)).unwrap();
    let y = client.encrypt(Operand::Right, &matrix(90, 20, 50, 2)).unwrap();
    let words = |threads: usize| {
        let product = ExactServer::new(&plan, threads).unwrap().multiply(&x, &y).unwrap();
        let all = product.ciphertexts().iter().flatten().flat_map(|c| c.parts().iter().map(|p| p.words().to_vec()));
        all.collect::<Vec<_>>()
    };
    assert_eq!(words(1), words(3));
}
