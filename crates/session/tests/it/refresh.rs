//! Plans whose values are refreshed: computed as planned, against plain matrices and the planned error.

use sudare_expr::{Expr, InputSpec, Matrix, Node, Operation};
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::BootstrapSet;
use sudare_methods::MatrixError;
use sudare_plan::Program;
use sudare_plan::{CostModel, Goal, Plan, Planner};
use sudare_rlwe::RlweError;
use sudare_rlwe::security::Security;
use sudare_session::{Client, Server};
use sudare_session::{QUIET, ServerKeys};

/// P ← P·A, `count` times, its elements known to be up to one; then 0.5 − the product.
fn chain(count: usize) -> Expr {
    let inputs = vec![InputSpec::new("P", (3, 3), 1.0), InputSpec::new("A", (3, 3), 1.0)];
    let mut nodes = vec![Node::input(0), Node::input(1)];
    let mut last = 0;
    for _ in 0..count {
        nodes.push(Node::new(Operation::Matmul, &[last, 1]));
        nodes.push(Node::new(Operation::Bounded { max_abs: 1.0 }, &[nodes.len() - 1]));
        last = nodes.len() - 1;
    }
    nodes.push(Node::new(Operation::Neg, &[last]));
    nodes.push(Node::new(Operation::Shift { by: 0.5 }, &[nodes.len() - 1]));
    let end = nodes.len() - 1;
    Expr::new(inputs, nodes, end).unwrap()
}

/// Set A over a small ring without security.
fn plan(count: usize, error: f64) -> Plan {
    plan_of(chain(count), 1, error)
}

/// The same of a batch.
fn plan_of(expression: Expr, batch: usize, error: f64) -> Plan {
    let planner = Planner { bootstrap: vec![BootstrapSet::A], ..Planner::new(CostModel::default()) };
    let planner = Planner { method: Some("bootstrapped".into()), ..planner };
    planner.plan(&Goal { security: Security::Insecure, batch, ..Goal::new(expression, error) }).unwrap()
}

fn refreshes(plan: &Plan) -> usize {
    match plan.program() {
        Program::Circuit { circuit } => circuit.refresh.as_ref().map_or(0, |r| r.after.len()),
        _ => 0,
    }
}

/// Rows that sum to one.
fn transitions(seed: f64) -> Matrix {
    let raw = |i: usize, j: usize| 1.2 + (seed + 3.1 * i as f64 + 7.7 * j as f64).sin();
    let row = |i: usize| (0..3).map(|j| raw(i, j)).sum::<f64>();
    Matrix::from_fn(3, 3, |i, j| raw(i, j) / row(i)).unwrap()
}

#[test]
fn products_beyond_the_levels_of_a_set() {
    let plan = plan(8, 0.1);
    assert!(refreshes(&plan) >= 2, "{plan}");
    let client = Client::new(&plan, 2).unwrap();
    let server = client.server().unwrap();
    let (p, a) = (transitions(1.0), transitions(2.0));
    let inputs = [client.encrypt("P", &p).unwrap(), client.encrypt("A", &a).unwrap()];
    let result = server.run(&inputs).unwrap();
    let wanted = (0..8).fold(p.clone(), |m, _| m.matmul(&a).unwrap());
    let wanted = Matrix::from_fn(3, 3, |i, j| 0.5 - wanted.get(i, j)).unwrap();
    let error = client.decrypt(&result).unwrap().max_difference(&wanted);
    assert!(
        error < plan.summary().predicted_error && error < 1e-5,
        "{error:e} of {:e}",
        plan.summary().predicted_error
    );
    // Step by step it is the same, and each value is at the level that the plan says.
    let mut m = inputs[0].clone();
    for _ in 0..8 {
        m = server.apply(&Operation::Bounded { max_abs: 1.0 }, &[&server.matmul(&m, &inputs[1]).unwrap()]).unwrap();
    }
    let again = server.apply(&Operation::Shift { by: 0.5 }, &[&server.apply(&Operation::Neg, &[&m]).unwrap()]).unwrap();
    assert_eq!(again.node(), result.node());
    assert!(client.decrypt(&again).unwrap().max_difference(&wanted) < 1e-5);
    assert!(matches!(server.apply(&Operation::Bounded { max_abs: 2.0 }, &[&m]), Err(MatrixError::NotPlanned { .. })));

    // Keys travel together; evaluation keys alone do not do.
    let mut bytes = Vec::new();
    server.write_keys_to(&mut bytes).unwrap();
    let there = Server::new(&plan, ServerKeys::from_bytes(&plan, &bytes).unwrap(), 1).unwrap();
    assert!(client.decrypt(&there.run(&inputs).unwrap()).unwrap().max_difference(&wanted) < 1e-5);
    assert!(there.bytes() > server.keys().bytes());
    let alone = Server::new(&plan, client.eval_keys().unwrap(), 1);
    assert!(matches!(alone, Err(MatrixError::NotPlanned { .. })));
    for cut in [0, 100, bytes.len() / 2, bytes.len() - 1] {
        assert!(matches!(ServerKeys::from_bytes(&plan, &bytes[..cut]), Err(MatrixError::Wire(_))), "{cut}");
    }
    // Another key's are refused.
    let mut other = Vec::new();
    let keys = Client::new(&plan, 1).unwrap().server_keys(QUIET).unwrap();
    keys.write_to(&mut other).unwrap();
    let own = client.server_keys(QUIET).unwrap();
    let mut first = Vec::new();
    own.write_to(&mut first).unwrap();
    let eval = sudare_rlwe::wire::peek(first.as_slice()).unwrap().total_bytes() as usize;
    let mixed = [&first[..eval], &other[eval..]].concat();
    let refused = Server::new(&plan, ServerKeys::from_bytes(&plan, &mixed).unwrap(), 1);
    assert!(matches!(refused, Err(MatrixError::He(HeError::Rlwe(RlweError::WrongKey { .. })))));
}

/// Two ciphertexts are refreshed as one, the last of an odd number alone: the plan says so, prices it and predicts its error, and
/// the results are right.
#[test]
fn an_even_and_an_odd_number_are_refreshed_in_pairs() {
    const COUNT: usize = 8;
    let alone = plan(COUNT, 1.0);
    let (seconds, error) = (alone.summary().seconds, alone.summary().predicted_error);
    assert!(alone.to_string().contains(": 1 ciphertext to level"), "{alone}");
    for (batch, shown) in
        [(2, "2 ciphertexts as a pair to level"), (3, "3 ciphertexts as a pair and one alone to level")]
    {
        let plan = plan_of(chain(COUNT), batch, 1.0);
        assert!(refreshes(&plan) >= 2 && plan.to_string().contains(shown), "{plan}");
        // Less than as many refreshes, with the error of both in each.
        let (found, predicted) = (plan.summary().seconds / seconds, plan.summary().predicted_error / error);
        assert!(found < 0.99 * batch as f64, "{found} times as long as one");
        assert!((1.05..8.0).contains(&predicted), "{predicted} times the error of one");
        let client = Client::new(&plan, 2).unwrap();
        let server = client.server().unwrap();
        let starts: Vec<Matrix> = (0..batch).map(|i| transitions(1.0 + i as f64)).collect();
        let steps: Vec<Matrix> = (0..batch).map(|i| transitions(5.0 - i as f64)).collect();
        let inputs = [("P", &starts), ("A", &steps)].map(|(name, m)| client.encrypt_batch(name, m, QUIET).unwrap());
        let result = client.decrypt_batch(&server.run(&inputs).unwrap()).unwrap();
        assert_eq!(result.len(), batch);
        for ((found, p), a) in result.iter().zip(&starts).zip(&steps) {
            let wanted = (0..COUNT).fold(p.clone(), |m, _| m.matmul(a).unwrap());
            let wanted = Matrix::from_fn(3, 3, |i, j| 0.5 - wanted.get(i, j)).unwrap();
            let error = found.max_difference(&wanted);
            assert!(error < plan.summary().predicted_error && error < 1e-5, "{error:e} in a batch of {batch}");
        }
    }
}

/// What is imaginary is left behind at every refresh: errors of pairs add up, and do not double each time.
#[test]
fn errors_of_pairs_do_not_double_with_every_refresh() {
    let carried = |batch: usize| {
        // x ← 2hx, which keeps an error of x as it is.
        let inputs = vec![InputSpec::new("x", (3, 3), 1.0), InputSpec::new("h", (3, 3), 0.5)];
        let mut nodes = vec![Node::input(0), Node::input(1)];
        let mut last = 0;
        for _ in 0..60 {
            nodes.push(Node::new(Operation::Mul, &[last, 1]));
            nodes.push(Node::new(Operation::Scale { by: 2.0 }, &[nodes.len() - 1]));
            last = nodes.len() - 1;
        }
        let plan = plan_of(Expr::new(inputs, nodes, last).unwrap(), batch, 0.1);
        assert!(refreshes(&plan) >= 6, "{plan}");
        plan.summary().predicted_error
    };
    let (alone, paired) = (carried(1), carried(2));
    assert!((1.01..3.0).contains(&(paired / alone)), "{paired:e} {alone:e}");
}

/// A file says where refreshes are; what it says is worked out again.
#[test]
fn files_are_checked() {
    let expression = chain(4);
    let planner = Planner { bootstrap: vec![BootstrapSet::C], ..Planner::new(CostModel::default()) };
    let planner = Planner { memory: u64::MAX, method: Some("bootstrapped".into()), ..planner };
    let plan = planner.plan(&Goal::new(expression, 0.5)).unwrap();
    let Program::Circuit { circuit } = plan.program() else { panic!("{plan}") };
    let after = format!("{:?}", circuit.refresh.as_ref().unwrap().after).replace(' ', "");
    let text = plan.to_json().unwrap();
    assert_eq!(Plan::from_json(&text).unwrap(), plan);
    let written: String = text.split_whitespace().collect();
    let named = format!("\"after\":{after}");
    assert!(written.contains(&named), "{named} of {written}");
    // An input, a node that is none, another order, fewer than levels ask for, another set: refused.
    for wrong in ["[0]", "[999]", "[4,2]", "[]"] {
        let changed = written.replace(&named, &format!("\"after\":{wrong}"));
        assert!(Plan::from_json(&changed).is_err(), "{wrong}");
    }
    assert!(Plan::from_json(&written.replace("\"set\":\"C\"", "\"set\":\"A\"")).is_err());
}
