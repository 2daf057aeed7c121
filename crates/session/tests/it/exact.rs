//! Exact products of encrypted integer matrices against plain ones.

use proptest::prelude::*;
use sudare_exact::ExactError;
use sudare_expr::{Expr, ExprError, InputSpec, Matrix, Node, Operation};
use sudare_he::HeError;
use sudare_methods::MatrixError;
use sudare_plan::Program;
use sudare_plan::{CostModel, Goal, Plan, Planner};
use sudare_rlwe::RlweError;
use sudare_rlwe::wire::{WireError, peek};
use sudare_session::QUIET;
use sudare_session::{Client, Encrypted, Server};
use sudare_testkit::random::word_at;

fn input(name: &str, shape: (usize, usize), bound: u64) -> InputSpec {
    InputSpec::integers(name, shape, bound.into())
}

fn plan_of(expr: Expr) -> Result<Plan, MatrixError> {
    Planner::new(CostModel::default()).plan(&Goal::new(expr, 0.0))
}

fn plan((m, k, n): (usize, usize, usize), left: u64, right: u64) -> Plan {
    plan_of(Expr::product(input("A", (m, k), left), input("B", (k, n), right)).unwrap()).unwrap()
}

fn encrypt(client: &Client, name: &str, matrix: &Matrix<i128>) -> Encrypted {
    client.encrypt_integers(name, matrix, QUIET).unwrap()
}

/// Elements that reach the bound on both sides.
fn matrix(rows: usize, cols: usize, bound: u64, salt: u64) -> Matrix<i128> {
    Matrix::<i128>::from_fn(rows, cols, |i, j| {
        let word = word_at(salt, (i * cols + j) as u64);
        match word % 5 {
            0 => i128::from(bound),
            1 => -i128::from(bound),
            _ => i128::from(word % (2 * bound + 1).max(1)) - i128::from(bound),
        }
    })
    .unwrap()
}

fn check((m, k, n): (usize, usize, usize), left: u64, right: u64, salt: u64) {
    let plan = plan((m, k, n), left, right);
    let client = Client::new(&plan, 1).unwrap();
    let server = Server::keyless(&plan, 1).unwrap();
    // The largest results there can be, and mixed ones.
    let most = |rows, cols, bound: u64| Matrix::<i128>::from_fn(rows, cols, |_, _| i128::from(bound)).unwrap();
    let least = |rows, cols, bound: u64| Matrix::<i128>::from_fn(rows, cols, |_, _| -i128::from(bound)).unwrap();
    for (a, b) in [
        (matrix(m, k, left, salt), matrix(k, n, right, salt + 99)),
        (most(m, k, left), most(k, n, right)),
        (least(m, k, left), most(k, n, right)),
    ] {
        let (x, y) = (encrypt(&client, "A", &a), encrypt(&client, "B", &b));
        let product = server.matmul(&x, &y).unwrap();
        for (line, value) in plan.summary().operands.iter().zip([&x, &y, &product]) {
            assert_eq!((line.ciphertexts, line.level), (value.count(), value.level()), "{plan}");
            let (told, sent) = (line.wire_bytes as usize, value.to_bytes().unwrap().len());
            let headers = 8192 * value.residues().unwrap().len();
            assert!(sent.abs_diff(told) <= told / 50 + headers, "{}: {told} told, {sent} sent", line.name);
        }
        assert_eq!(client.decrypt_integers(&product).unwrap(), a.matmul(&b).unwrap(), "{plan}");
        let back = Encrypted::read_from(&plan, &product.to_bytes().unwrap()[..]).unwrap();
        assert_eq!(client.decrypt_integers(&back).unwrap(), a.matmul(&b).unwrap());
    }
}

#[test]
fn sizes_and_bounds_at_the_edges() {
    for shape in [(1, 1, 1), (16, 16, 16), (1, 300, 1), (40, 1, 40), (20, 70, 9)] {
        check(shape, 1, 1, 1);
        check(shape, 1023, 1023, 2);
    }
    // Several plaintext moduli.
    check((5, 6, 4), 1 << 40, 1 << 39, 3);
    check((2, 3, 2), u64::MAX / 2, 1 << 45, 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_shape_and_bound(m in 1usize..30, k in 1usize..60, n in 1usize..30, left in 1u64..1 << 20, right in 1u64..1 << 14) {
        check((m, k, n), left, right, 5);
    }
}

/// A factor may be the transpose of an input: it is turned before it is encrypted.
#[test]
fn factors_are_turned() {
    let (a, b) = (matrix(4, 3, 9, 1), matrix(5, 4, 7, 2));
    let nodes = vec![
        Node::input(0),
        Node::new(Operation::Transpose, &[0]),
        Node::input(1),
        Node::new(Operation::Transpose, &[2]),
        Node::new(Operation::Matmul, &[1, 3]),
    ];
    let plan = plan_of(Expr::new(vec![input("A", (4, 3), 9), input("B", (5, 4), 7)], nodes, 4).unwrap()).unwrap();
    let plan = Plan::from_json(&plan.to_json().unwrap()).unwrap();
    let client = Client::new(&plan, 1).unwrap();
    let server = client.server().unwrap();
    let inputs = [encrypt(&client, "B", &b), encrypt(&client, "A", &a)];
    let wanted = a.transpose().matmul(&b.transpose()).unwrap();
    assert_eq!(client.decrypt_integers(&server.run(&inputs).unwrap()).unwrap(), wanted);
    let turned = inputs.each_ref().map(|x| server.apply(&Operation::Transpose, &[x]).unwrap());
    assert_eq!((turned[1].shape(), turned[0].shape()), ((3, 4), (4, 5)));
    let product = server.matmul(&turned[1], &turned[0]).unwrap();
    assert_eq!(client.decrypt_integers(&product).unwrap(), wanted);
}

#[test]
fn refusals() {
    let plan = plan((3, 4, 5), 10, 20);
    let client = Client::new(&plan, 1).unwrap();
    let server = Server::keyless(&plan, 1).unwrap();
    let over = Matrix::<i128>::from_fn(3, 4, |i, j| if (i, j) == (2, 1) { -11 } else { 10 }).unwrap();
    let refused = client.encrypt_integers("A", &over, QUIET);
    assert!(matches!(refused, Err(MatrixError::OutOfRange { row: 2, col: 1, .. })));
    let (a, b) = (matrix(3, 4, 10, 1), matrix(4, 5, 20, 2));
    assert!(matches!(client.encrypt_integers("B", &a, QUIET), Err(MatrixError::PlannedShape { .. })));
    assert!(matches!(client.encrypt_integers("C", &a, QUIET), Err(MatrixError::NotPlanned { .. })));
    let (x, y) = (encrypt(&client, "A", &a), encrypt(&client, "B", &b));
    assert!(matches!(server.matmul(&y, &x), Err(MatrixError::Expr(ExprError::Shapes { .. }))));
    assert!(matches!(server.apply(&Operation::Neg, &[&x]), Err(MatrixError::NotPlanned { .. })));
    assert!(matches!(client.decrypt_integers(&x), Err(MatrixError::NotPlanned { .. })));
    let stranger = Client::new(&plan, 1).unwrap();
    // The session compares the keys of two operands, the decryptor those of a ciphertext and its own.
    let wrong_key = |e| {
        matches!(
            e,
            MatrixError::He(HeError::Rlwe(RlweError::WrongKey { .. }))
                | MatrixError::Exact(ExactError::Rlwe(RlweError::WrongKey { .. }))
        )
    };
    assert!(wrong_key(server.matmul(&x, &encrypt(&stranger, "B", &b)).unwrap_err()));
    let product = server.matmul(&x, &y).unwrap();
    assert!(wrong_key(stranger.decrypt_integers(&product).unwrap_err()));
    let other = self::plan((3, 4, 5), 10, 21);
    let foreign = Server::keyless(&other, 1).unwrap();
    assert!(matches!(foreign.matmul(&x, &y), Err(MatrixError::WrongPlan { .. })));
    let theirs = Client::new(&other, 1).unwrap();
    assert!(matches!(theirs.decrypt_integers(&product), Err(MatrixError::WrongPlan { .. })));
    // Integers and real numbers are not taken for one another.
    let real = Matrix::from_fn(3, 4, |_, _| 1.0).unwrap();
    assert!(matches!(client.encrypt("A", &real), Err(MatrixError::NotPlanned { .. })));
    assert!(matches!(client.decrypt(&product), Err(MatrixError::NotPlanned { .. })));
    for bad in [
        Expr::product(input("A", (2, 2), 3), InputSpec::new("B", (2, 2), 3.0)),
        Expr::product(input("A", (2, 2), 3), InputSpec { max_abs: 4.0, ..input("B", (2, 2), 3) }),
    ] {
        assert!(matches!(bad, Err(ExprError::Expression { .. })));
    }
}

#[test]
fn hostile_bytes() {
    // A bundle for each plaintext modulus.
    for plan in [plan((3, 4, 5), 10, 20), plan((3, 4, 5), 1 << 40, 1 << 39)] {
        let Program::Exact { exact } = plan.program() else { panic!("{plan}") };
        let client = Client::new(&plan, 1).unwrap();
        let x = encrypt(&client, "A", &matrix(3, 4, 10, 1));
        assert_eq!(x.residues().unwrap().len(), exact.moduli.len());
        let bytes = x.to_bytes().unwrap();
        for length in (0..200).chain((200..bytes.len()).step_by(997)) {
            assert!(Encrypted::from_bytes(&plan, &bytes[..length]).is_err(), "cut at {length}");
        }
        for at in (0..300).chain((300..bytes.len()).step_by(1009)) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(Encrypted::from_bytes(&plan, &changed).is_err(), "flipped at {at}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(Encrypted::from_bytes(&plan, &longer).is_err());
    }
    assert!(Plan::from_json("{}").is_err());
}

/// Parts of two values make none.
#[test]
fn parts_of_one_value_stay_together() {
    let plan = plan((3, 4, 5), 1 << 40, 1 << 39);
    let client = Client::new(&plan, 1).unwrap();
    let (x, y) = (encrypt(&client, "A", &matrix(3, 4, 9, 1)), encrypt(&client, "B", &matrix(4, 5, 9, 1)));
    let (first, second) = (x.to_bytes().unwrap(), y.to_bytes().unwrap());
    let half = |bytes: &[u8]| usize::try_from(peek(bytes).unwrap().total_bytes()).unwrap();
    let mixed = [&first[..half(&first)], &second[half(&second)..]].concat();
    assert!(matches!(Encrypted::from_bytes(&plan, &mixed), Err(MatrixError::Wire(WireError::Corrupt { .. }))));
}

#[test]
fn threads_change_nothing() {
    let plan = plan((20, 90, 20), 50, 50);
    let client = Client::new(&plan, 1).unwrap();
    let x = encrypt(&client, "A", &matrix(20, 90, 50, 1));
    let y = encrypt(&client, "B", &matrix(90, 20, 50, 2));
    let product = |threads: usize| Server::keyless(&plan, threads).unwrap().matmul(&x, &y).unwrap().to_bytes().unwrap();
    assert_eq!(product(1), product(3));
}
