//! Arrays of integers to any depth, in plans and without: against plain arithmetic modulo the set's prime.

use sudare_exact::refresh::RefreshSet;
use sudare_expr::{Expr, InputSpec, Matrix, Node, Operation};
use sudare_methods::MatrixError;
use sudare_plan::{CostModel, Goal, Plan, Planner, Program};
use sudare_rlwe::security::Security;
use sudare_session::{Client, IntegerContext, QUIET, Server, ServerKeys};

const T: i128 = 65537;

/// y ← (y·x + 7)·w − x, `count` times from x on, with a plain w, in one plan of two members.
fn expression(count: usize) -> Expr {
    let inputs = vec![
        InputSpec::integers("x", (30, 40), 1000),
        InputSpec { plain: true, ..InputSpec::integers("w", (30, 40), 50) },
    ];
    let (mut nodes, mut last) = (vec![Node::input(0), Node::input(1)], 0);
    for _ in 0..count {
        let at = nodes.len();
        nodes.push(Node::new(Operation::Mul, &[last, 0]));
        nodes.push(Node::new(Operation::Shift { by: 7.0 }, &[at]));
        nodes.push(Node::new(Operation::Mul, &[at + 1, 1]));
        nodes.push(Node::new(Operation::Sub, &[at + 2, 0]));
        last = at + 3;
    }
    Expr::new(inputs, nodes, last).unwrap()
}

fn planned(expression: Expr, batch: usize, modulus: Option<u64>) -> Result<Plan, MatrixError> {
    let planner = Planner { refresh: vec![RefreshSet::X15], ..Planner::new(CostModel::default()) };
    planner.plan(&Goal { security: Security::Insecure, batch, modulus, ..Goal::new(expression, 0.0) })
}

#[test]
fn a_loop_of_products_is_exact() {
    let (count, batch) = (6, 2);
    let plan = planned(expression(count), batch, Some(65537)).unwrap();
    let Program::Arrays { arrays } = plan.program() else { panic!("{plan}") };
    assert!(arrays.after.len() >= 2, "{plan}");
    let shown = plan.to_string();
    for words in ["exact modulo 65537", "refreshes by set X15: keys", "after operation", "products between refreshes"] {
        assert!(shown.contains(words), "{shown}");
    }
    assert!(plan.summary().seconds > 0.0 && plan.summary().memory > 0);

    let client = Client::new(&plan, 2).unwrap();
    // What the client's keys are as bytes is what a server has.
    let (keys, mut bytes) = (client.server_keys(QUIET).unwrap(), Vec::new());
    keys.write_to(&mut bytes).unwrap();
    assert!(ServerKeys::from_bytes(&plan, &bytes[..bytes.len() - 9]).is_err());
    let server = Server::new(&plan, ServerKeys::from_bytes(&plan, &bytes).unwrap(), 2).unwrap();
    let mut again = Vec::new();
    server.write_keys_to(&mut again).unwrap();
    assert_eq!(again, bytes);
    assert!(matches!(Server::keyless(&plan, 1), Err(MatrixError::NotPlanned { .. })));
    let none = sudare_rlwe::keys::EvalKeys::new(plan.params(), client.key_id());
    assert!(matches!(Server::new(&plan, none, 1), Err(MatrixError::NotPlanned { .. })));

    let x = |k: usize| Matrix::<i128>::from_fn(30, 40, |i, j| ((i * 97 + j * 31 + k) % 2001) as i128 - 1000).unwrap();
    let w = Matrix::<i128>::from_fn(30, 40, |i, j| ((i + 3 * j) % 101) as i128 - 50).unwrap();
    let inputs: Vec<_> = (0..batch).map(x).collect();
    let sent = client.encrypt_integers_batch("x", &inputs, QUIET).unwrap().to_bytes().unwrap();
    let a = sudare_session::Encrypted::from_bytes(&plan, &sent).unwrap();
    let b = server.plain_integers("w", &vec![w.clone(); batch]).unwrap();
    let found = client.decrypt_integers_batch(&server.run(&[a, b]).unwrap()).unwrap();
    for (input, found) in inputs.iter().zip(&found) {
        let each = input
            .data()
            .iter()
            .zip(w.data())
            .map(|(x, w)| (0..count).fold(*x, |y, _| ((y * x + 7) * w - x).rem_euclid(T)).rem_euclid(T));
        assert!(found.data().iter().copied().eq(each));
    }
}

/// What one product without keys serves stays that; results that t tells apart are the integers themselves.
#[test]
fn the_planner_takes_the_cheaper_way() {
    let square = |count: usize, bound: u128, last: Operation| {
        let mut nodes: Vec<_> =
            std::iter::once(Node::input(0)).chain((0..count).map(|k| Node::new(Operation::Mul, &[k, k]))).collect();
        nodes.push(Node::new(last, &[count]));
        Expr::new(vec![InputSpec::integers("x", (2, 3), bound)], nodes, count + 1).unwrap()
    };
    let once = planned(square(1, 9, Operation::Neg), 1, None).unwrap();
    assert!(once.is_keyless(), "{once}");
    let deep = planned(square(3, 3, Operation::Neg), 1, None).unwrap();
    assert!(!deep.is_keyless() && deep.largest_integer() == Some(6561), "{deep}");
    let client = Client::new(&deep, 1).unwrap();
    let x = Matrix::<i128>::new(2, 3, vec![-3, -2, -1, 0, 1, 3]).unwrap();
    let a = client.encrypt_integers("x", &x, QUIET).unwrap();
    let found = client.decrypt_integers(&client.server().unwrap().run(&[a]).unwrap()).unwrap();
    assert_eq!(found.data(), [-6561, -256, -1, 0, -1, -6561]);
    // Larger ones want a word, and a bound that is known does.
    let refused = planned(square(3, 30, Operation::Neg), 1, None).unwrap_err().to_string();
    assert!(refused.contains("modulus=65537") && refused.contains("bounded"), "{refused}");
    let bounded = planned(square(3, 30, Operation::Bounded { max_abs: 32768.0 }), 1, None).unwrap();
    assert_eq!(bounded.largest_integer(), Some(32768));
    assert!(planned(square(3, 30, Operation::Neg), 1, Some(257)).unwrap_err().to_string().contains("modulus=65537"));
    let moved = planned(square(3, 3, Operation::Sum { axis: 0 }), 1, None).unwrap_err().to_string();
    assert!(moved.contains("sum them after decryption"), "{moved}");
}

#[test]
fn a_context_refreshes_where_it_has_to() {
    let context = IntegerContext::new(RefreshSet::X15, Security::Insecure, 2).unwrap();
    let server = context.server();
    let x = Matrix::from_fn(25, 40, |i, j| (i * 40 + j) as f64 - 500.0).unwrap();
    let a = context.encrypt(&x, None).unwrap();
    assert_eq!(a.count(), 2);
    let plain = server.lift(&Matrix::from_fn(25, 40, |i, _| i as f64).unwrap()).unwrap();
    let apply = |operation: Operation, operands: &[&sudare_session::Encrypted]| server.apply(&operation, operands);
    let (mut y, mut wanted) = (a.clone(), x.data().iter().map(|x| (*x as i128).rem_euclid(T)).collect::<Vec<_>>());
    for round in 0..11 {
        let other = if round % 2 == 0 { y.clone() } else { a.clone() };
        let factor: Vec<i128> =
            if round % 2 == 0 { wanted.clone() } else { x.data().iter().map(|x| *x as i128).collect() };
        let product = apply(Operation::Mul, &[&y, &other]).unwrap();
        y = apply(Operation::Add, &[&apply(Operation::Scale { by: 3.0 }, &[&product]).unwrap(), &plain]).unwrap();
        wanted = (0..1000).map(|k| (wanted[k] * factor[k] * 3 + k as i128 / 40).rem_euclid(T)).collect();
    }
    assert_eq!(context.decrypt(&y).unwrap().data(), wanted);
    assert_eq!(y.modulus(), Some(65537));
    assert!(y.to_string().contains("modulo 65537"), "{y}");
    // A bound that is known makes them integers of their own again.
    let small = apply(Operation::Bounded { max_abs: 600.0 }, &[&a]).unwrap();
    let found = context.decrypt(&server.refresh(&small, None).unwrap()).unwrap();
    assert!(found.data().iter().zip(x.data()).all(|(found, x)| *found == *x as i128));
    let known = apply(Operation::Mul, &[&plain, &plain]).unwrap();
    assert!(known.is_plain() && context.decrypt(&apply(Operation::Sub, &[&a, &known]).unwrap()).is_ok());

    let refused = |found: Result<sudare_session::Encrypted, MatrixError>| found.unwrap_err().to_string();
    assert!(refused(apply(Operation::Sum { axis: 0 }, &[&a])).contains("after decryption"));
    assert!(refused(apply(Operation::Scale { by: 0.5 }, &[&a])).contains("numbers that are integers"));
    assert!(refused(context.encrypt(&Matrix::from_fn(1, 2, |_, j| j as f64 / 2.0).unwrap(), None)).contains("round"));
    assert!(context.encrypt(&x, Some(10.0)).is_err() && a.to_bytes().is_err());
    for bound in [f64::NAN, 0.0, -1000.0] {
        assert!(context.encrypt(&x, Some(bound)).is_err() && server.refresh(&a, Some(bound)).is_err(), "{bound}");
    }
    let other = IntegerContext::new(RefreshSet::X15, Security::Insecure, 1).unwrap();
    let foreign = other.encrypt(&x, None).unwrap();
    assert!(apply(Operation::Mul, &[&a, &foreign]).is_err() && context.decrypt(&foreign).is_err());
}
