//! Plans and sessions end to end, in one process.

use crate::common::random;
use sudare_expr::{Expr, ExprError, InputSpec, Matrix, Node, Operation};
use sudare_methods::MatrixError;
use sudare_plan::{CostModel, Goal, Plan, Planner};
use sudare_session::{Client, Encrypted, PublicClient, Server};

fn planner() -> Planner {
    Planner::new(CostModel::default())
}

fn input(name: &str, rows: usize, cols: usize) -> InputSpec {
    InputSpec::new(name, (rows, cols), 1.0)
}

fn plan(inputs: Vec<InputSpec>, nodes: Vec<Node>, error: f64) -> Plan {
    let output = nodes.len() - 1;
    planner().plan(&Goal::new(Expr::new(inputs, nodes, output).unwrap(), error)).unwrap()
}

/// Encrypts every input, runs the whole expression, and decrypts.
fn run(plan: &Plan, matrices: &[(&str, &Matrix)]) -> Matrix {
    let client = Client::new(plan, 2).unwrap();
    let server = client.server().unwrap();
    let inputs: Vec<Encrypted> = matrices
        .iter()
        .map(|(name, m)| {
            let plain = plan.expression().inputs().iter().any(|i| i.name == *name && i.plain);
            if plain { server.plain(name, std::slice::from_ref(m)).unwrap() } else { client.encrypt(name, m).unwrap() }
        })
        .collect();
    client.decrypt(&server.run(&inputs).unwrap()).unwrap()
}

#[test]
fn one_product_each_way() {
    let goal = Goal::new(Expr::product(input("A", 9, 13), input("B", 13, 3)).unwrap(), 1e-4);
    let plan = planner().plan(&goal).unwrap();
    let loaded = Plan::from_json(&plan.to_json().unwrap()).unwrap();
    assert_eq!(loaded, plan);
    assert_eq!(loaded.summary(), plan.summary());
    let (a, b) = (random(1, 9, 13), random(2, 13, 3));
    let client = Client::new(&plan, 1).unwrap();
    let server = Server::new(&loaded, client.eval_keys().unwrap(), 2).unwrap();
    let public = PublicClient::new(&plan, client.public_key().unwrap(), 1).unwrap();
    let (ea, eb) = (client.encrypt("A", &a).unwrap(), public.encrypt("B", &b).unwrap());
    let moved = Encrypted::from_bytes(&loaded, &ea.to_bytes().unwrap()).unwrap();
    let c = server.matmul(&moved, &eb).unwrap();
    assert!(client.decrypt(&c).unwrap().max_difference(&a.matmul(&b).unwrap()) < 1e-4);
    let (error, text) = (plan.summary().predicted_error, c.to_string());
    assert!(text.starts_with(&format!("<sudare ckks (9, 3) float64 up to 13 ± {error:.1e}, level ")), "{text}");
    assert_eq!((c.max_abs(), c.error(), ea.error()), (13.0, Some(error), None));

    assert!(matches!(server.matmul(&eb, &ea), Err(MatrixError::Expr(ExprError::Shapes { .. }))));
    assert!(matches!(server.apply(&Operation::Add, &[&ea, &ea]), Err(MatrixError::NotPlanned { .. })));
    assert!(matches!(client.encrypt("C", &a), Err(MatrixError::NotPlanned { .. })));
    assert!(matches!(client.encrypt("A", &b), Err(MatrixError::PlannedShape { .. })));
    let other = Client::new(&plan, 1).unwrap();
    assert!(matches!(server.matmul(&other.encrypt("A", &a).unwrap(), &eb), Err(MatrixError::He(_))));
}

/// Sizes as a plan tells them are those of what is sent, whatever the method.
#[test]
fn sizes_are_those_that_are_sent() {
    let goal = Goal::new(Expr::product(input("A", 6, 10), input("B", 10, 5)).unwrap(), 1e-4);
    let (a, b) = (random(3, 6, 10), random(4, 10, 5));
    let all = planner().plan(&goal).unwrap();
    let methods: std::collections::BTreeSet<String> = all.considered().iter().map(|c| c.method.clone()).collect();
    assert!(methods.len() > 4, "{methods:?}");
    for method in methods {
        let plan = Planner { method: Some(method.clone()), ..planner() }.plan(&goal).unwrap();
        let client = Client::new(&plan, 2).unwrap();
        let keys = client.eval_keys().unwrap();
        let near = |what: &str, told: u64, found: usize| {
            let part = told as f64 / found as f64;
            assert!((0.95..1.05).contains(&part), "{method}, {what}: {told} bytes told, {found} sent\n{plan}");
        };
        if plan.summary().key_wire_bytes() > 0 {
            near("keys", plan.summary().key_wire_bytes(), sudare_rlwe::wire::Wire::to_bytes(&keys).unwrap().len());
        }
        let server = Server::new(&plan, keys, 2).unwrap();
        let (x, y) = (client.encrypt("A", &a).unwrap(), client.encrypt("B", &b).unwrap());
        let z = server.matmul(&x, &y).unwrap();
        for (line, sent) in plan.summary().operands.iter().zip([&x, &y, &z]) {
            near(&line.name, line.wire_bytes, sent.to_bytes().unwrap().len());
            assert_eq!(line.bytes as usize, sent.bytes(), "{method}, {}", line.name);
            assert_eq!(line.level, sent.level(), "{method}, {}", line.name);
        }
    }
}

#[test]
fn whole_expressions() {
    let (a, b, c) = (random(1, 5, 9), random(2, 9, 6), random(3, 5, 6));
    let inputs = || vec![input("A", 5, 9), input("B", 9, 6), input("C", 5, 6)];
    // (A @ B * C - 0.5 * C).T.sum(0) + 2
    let nodes = vec![
        Node::input(0),
        Node::input(1),
        Node::new(Operation::Matmul, &[0, 1]),
        Node::input(2),
        Node::new(Operation::Mul, &[2, 3]),
        Node::new(Operation::Scale { by: 0.5 }, &[3]),
        Node::new(Operation::Sub, &[4, 5]),
        Node::new(Operation::Transpose, &[6]),
        Node::new(Operation::Sum { axis: 0 }, &[7]),
        Node::new(Operation::Shift { by: 2.0 }, &[8]),
    ];
    let plan = plan(inputs(), nodes, 1e-3);
    let ab = a.matmul(&b).unwrap();
    let want =
        Matrix::from_fn(1, 5, |_, i| 2.0 + (0..6).map(|j| ab.get(i, j) * c.get(i, j) - 0.5 * c.get(i, j)).sum::<f64>())
            .unwrap();
    let got = run(&plan, &[("A", &a), ("B", &b), ("C", &c)]);
    assert_eq!(got.shape(), (1, 5));
    let difference = got.max_difference(&want);
    assert!(difference <= plan.summary().predicted_error, "{difference:e}\n{plan}");
}

#[test]
fn products_in_a_row_and_negation() {
    let (a, w) = (random(5, 7, 7), random(6, 7, 7));
    let plain = InputSpec { plain: true, ..input("W", 7, 7) };
    // -(A @ A @ W) + 3 * A
    let nodes = vec![
        Node::input(0),
        Node::new(Operation::Matmul, &[0, 0]),
        Node::input(1),
        Node::new(Operation::Matmul, &[1, 2]),
        Node::new(Operation::Neg, &[3]),
        Node::new(Operation::Scale { by: 3.0 }, &[0]),
        Node::new(Operation::Add, &[4, 5]),
    ];
    let plan = plan(vec![input("A", 7, 7), plain], nodes, 1e-3);
    let product = a.matmul(&a).unwrap().matmul(&w).unwrap();
    let want = Matrix::from_fn(7, 7, |i, j| 3.0 * a.get(i, j) - product.get(i, j)).unwrap();
    let difference = run(&plan, &[("A", &a), ("W", &w)]).max_difference(&want);
    assert!(difference <= plan.summary().predicted_error, "{difference:e}\n{plan}");
}

#[test]
fn batches() {
    let goal = Goal { batch: 5, ..Goal::new(Expr::product(input("A", 4, 3), input("B", 3, 2)).unwrap(), 1e-4) };
    let plan = planner().plan(&goal).unwrap();
    let client = Client::new(&plan, 1).unwrap();
    let server = client.server().unwrap();
    let a: Vec<Matrix> = (0..5).map(|s| random(s, 4, 3)).collect();
    let b: Vec<Matrix> = (0..5).map(|s| random(s + 10, 3, 2)).collect();
    let quiet = sudare_session::QUIET;
    let (ea, eb) = (client.encrypt_batch("A", &a, quiet).unwrap(), client.encrypt_batch("B", &b, quiet).unwrap());
    let c = client.decrypt_batch(&server.matmul(&ea, &eb).unwrap()).unwrap();
    for ((a, b), c) in a.iter().zip(&b).zip(&c) {
        assert!(c.max_difference(&a.matmul(b).unwrap()) < 1e-4);
    }
    assert!(matches!(client.encrypt("A", &a[0]), Err(MatrixError::Count { .. })));
}

#[test]
fn hostile_plans() {
    let goal = Goal::new(Expr::product(input("A", 3, 4), input("B", 4, 2)).unwrap(), 1e-4);
    let text = planner().plan(&goal).unwrap().to_json().unwrap();
    for at in (0..text.len()).step_by(23) {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        // Either refused, or a byte of what carries no weight.
        if let Ok(text) = String::from_utf8(bytes)
            && let Ok(plan) = Plan::from_json(&text)
        {
            assert_eq!(plan.goal(), &goal);
        }
        assert!(Plan::from_json(&text[..at]).is_err());
    }
    assert!(Expr::from_json(&text).is_err());
}
