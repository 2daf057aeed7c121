//! Lines that move and repeat, ends of products and inputs in two forms, against plain matrices.

use crate::common::random;
use sudare_expr::{Expr, ExprError, InputSpec, Lines, Matrix, Node, Operation};
use sudare_methods::MatrixError;
use sudare_plan::{CostModel, Goal, Plan, Planner};
use sudare_rlwe::security::Security;
use sudare_session::{Client, Encrypted};
use sudare_session::{Context, ContextOptions, QUIET};

const ERROR: f64 = 1e-4;

fn taken(m: &Matrix, axis: u8, l: Lines) -> Matrix {
    let (rows, cols) = if axis == 0 { (l.size, m.cols()) } else { (m.rows(), l.size) };
    Matrix::from_fn(rows, cols, |i, j| {
        let place = if axis == 0 { i } else { j };
        let Some(ahead) = place.checked_sub(l.at).filter(|a| a % l.stride == 0 && a / l.stride < l.count) else {
            return 0.0;
        };
        let from = (l.start as i64 + l.step * (ahead / l.stride) as i64) as usize;
        if axis == 0 { m.get(from, j) } else { m.get(i, from) }
    })
    .unwrap()
}

/// Slices within and over tiles of four, backwards, spread out, put elsewhere.
const LINES: [Lines; 8] = [
    Lines { start: 0, step: 1, count: 3, at: 0, stride: 1, size: 3 },
    Lines { start: 4, step: 1, count: 5, at: 0, stride: 1, size: 5 },
    Lines { start: 3, step: 1, count: 6, at: 0, stride: 1, size: 6 },
    Lines { start: 8, step: -1, count: 9, at: 0, stride: 1, size: 9 },
    Lines { start: 1, step: 3, count: 3, at: 2, stride: 2, size: 9 },
    Lines { start: 0, step: 1, count: 9, at: 4, stride: 1, size: 17 },
    Lines { start: 0, step: 1, count: 9, at: 3, stride: 1, size: 12 },
    Lines { start: 6, step: 1, count: 1, at: 0, stride: 1, size: 1 },
];

fn context() -> Context {
    let options = ContextOptions { security: Security::Insecure, tile: 4, threads: 2, ..ContextOptions::default() };
    Context::new(1, &options).unwrap()
}

fn close(context: &Context, value: &Encrypted, expected: &Matrix) {
    let error = context.decrypt(value).unwrap().max_difference(expected);
    assert!(error < ERROR && error <= value.error().unwrap(), "{error:e} of {value}");
}

#[test]
fn lines_in_a_context() {
    let (c, m) = (context(), random(1, 9, 9));
    let (s, x) = (c.server(), c.encrypt(&m, None).unwrap());
    for (lines, axis) in LINES.iter().flat_map(|l| [(*l, 0), (*l, 1)]) {
        close(&c, &s.apply(&Operation::Take { axis, lines }, &[&x]).unwrap(), &taken(&m, axis, lines));
    }
    // What a product leaves beside its tiles does not come along.
    let product = s.matmul(&x, &c.encrypt(&random(2, 9, 3), None).unwrap()).unwrap();
    close(
        &c,
        &s.apply(&Operation::Take { axis: 0, lines: LINES[2] }, &[&product]).unwrap(),
        &taken(&m.matmul(&random(2, 9, 3)).unwrap(), 0, LINES[2]),
    );
    // Whole tiles, and what stands alone in them, move without a level.
    for (at, levels) in [(1, 0), (5, 0), (2, 1), (7, 1)] {
        assert_eq!(
            x.level() - s.apply(&Operation::Take { axis: 0, lines: LINES[at] }, &[&x]).unwrap().level(),
            levels,
            "{:?}",
            LINES[at]
        );
    }
    let none = Lines { start: 9, ..LINES[0] };
    assert!(matches!(
        s.apply(&Operation::Take { axis: 0, lines: none }, &[&x]),
        Err(MatrixError::Expr(ExprError::Expression { .. }))
    ));
}

#[test]
fn repeated_lines_in_a_context() {
    let c = context();
    for size in [1, 2, 3, 4, 5, 7, 8, 11] {
        let (row, column) = (random(3, 1, 6), random(4, 6, 1));
        let down = c.server().apply(&Operation::Repeat { axis: 0, size }, &[&c.encrypt(&row, None).unwrap()]).unwrap();
        close(&c, &down, &Matrix::from_fn(size, 6, |_, j| row.get(0, j)).unwrap());
        let across =
            c.server().apply(&Operation::Repeat { axis: 1, size }, &[&c.encrypt(&column, None).unwrap()]).unwrap();
        close(&c, &across, &Matrix::from_fn(6, size, |i, _| column.get(i, 0)).unwrap());
    }
    let matrix = c.encrypt(&random(5, 3, 3), None).unwrap();
    assert!(matches!(
        c.server().apply(&Operation::Repeat { axis: 0, size: 4 }, &[&matrix]),
        Err(MatrixError::Expr(ExprError::Expression { .. }))
    ));
}

fn plan(inputs: Vec<InputSpec>, nodes: Vec<Node>, error: f64) -> Result<Plan, MatrixError> {
    let output = nodes.len() - 1;
    let goal = Goal { security: Security::Insecure, ..Goal::new(Expr::new(inputs, nodes, output)?, error) };
    Planner::new(CostModel::default()).plan(&goal)
}

/// What comes out, and how far from what is expected.
fn error_of(plan: &Plan, inputs: &[(&str, &Matrix)], expected: &Matrix) -> f64 {
    let client = Client::new(plan, 2).unwrap();
    let server = client.server().unwrap();
    let inputs: Vec<Encrypted> = inputs.iter().map(|(name, m)| client.encrypt(name, m).unwrap()).collect();
    client.decrypt(&server.run(&inputs).unwrap()).unwrap().max_difference(expected)
}

#[test]
fn lines_in_a_plan() {
    let m = random(1, 9, 9);
    for (lines, axis) in LINES.iter().flat_map(|l| [(*l, 0), (*l, 1)]) {
        let nodes = vec![
            Node::input(0),
            Node::new(Operation::Take { axis, lines }, &[0]),
            Node::new(Operation::Sum { axis: 0 }, &[1]),
        ];
        let plan = plan(vec![InputSpec::new("A", (9, 9), 1.0)], nodes, ERROR).unwrap();
        let wanted = taken(&m, axis, lines);
        let sums =
            Matrix::from_fn(1, wanted.cols(), |_, j| (0..wanted.rows()).map(|i| wanted.get(i, j)).sum()).unwrap();
        let error = error_of(&plan, &[("A", &m)], &sums);
        assert!(error <= plan.summary().predicted_error, "{error:e}: {plan}");
    }
    // A mean under a plan: X less one row of it, repeated.
    let lines = Lines { start: 4, step: 1, count: 1, at: 0, stride: 1, size: 1 };
    let nodes = vec![
        Node::input(0),
        Node::new(Operation::Take { axis: 0, lines }, &[0]),
        Node::new(Operation::Repeat { axis: 0, size: 9 }, &[1]),
        Node::new(Operation::Sub, &[0, 2]),
    ];
    let plan = plan(vec![InputSpec::new("A", (9, 9), 1.0)], nodes, ERROR).unwrap();
    let wanted = Matrix::from_fn(9, 9, |i, j| m.get(i, j) - m.get(4, j)).unwrap();
    assert!(error_of(&plan, &[("A", &m)], &wanted) <= plan.summary().predicted_error);
    let told = plan.to_string();
    assert!(told.contains("costs") && told.contains("slices from multiples of"), "{told}");
}

#[test]
fn what_ends_a_product_takes_neither_keys_nor_levels() {
    let (a, b) = (random(1, 9, 13), random(2, 13, 5));
    let inputs = || vec![InputSpec::new("A", (9, 13), 1.0), InputSpec::new("B", (13, 5), 1.0)];
    let product = [Node::input(0), Node::input(1), Node::new(Operation::Matmul, &[0, 1])];
    let ends = [
        Node::new(Operation::Scale { by: 2.5 }, &[2]),
        Node::new(Operation::Shift { by: 1.0 }, &[3]),
        Node::new(Operation::Neg, &[4]),
        Node::new(Operation::Transpose, &[5]),
    ];
    let alone = plan(inputs(), product.to_vec(), ERROR).unwrap();
    let ended = plan(inputs(), product.into_iter().chain(ends).collect(), 2.5 * ERROR).unwrap();
    assert_eq!(ended.program(), alone.program());
    assert!(ended.summary().keys.is_empty(), "{ended}");
    assert_eq!(ended.summary().seconds, alone.summary().seconds);
    let (promised, before) = (ended.summary().predicted_error, alone.summary().predicted_error);
    assert!(promised > 2.5 * before && promised < 2.6 * before, "{promised:e} and {before:e}");
    let c = a.matmul(&b).unwrap();
    let wanted = Matrix::from_fn(5, 9, |i, j| -(2.5 * c.get(j, i) + 1.0)).unwrap();
    assert!(error_of(&ended, &[("A", &a), ("B", &b)], &wanted) <= promised);
}

#[test]
fn what_is_added_to_a_product_takes_no_keys() {
    let (a, b, c, d) = (random(1, 9, 13), random(2, 13, 5), random(3, 9, 5), random(4, 1, 9));
    let nodes = vec![
        Node::input(0),
        Node::input(1),
        Node::new(Operation::Matmul, &[0, 1]),
        Node::new(Operation::Scale { by: -2.5 }, &[2]),
        Node::input(2),
        // c − (…), then its transpose, and a row repeated, which its owner does.
        Node::new(Operation::Sub, &[4, 3]),
        Node::new(Operation::Transpose, &[5]),
        Node::new(Operation::Shift { by: 1.0 }, &[6]),
        Node::input(3),
        Node::new(Operation::Repeat { axis: 0, size: 5 }, &[8]),
        Node::new(Operation::Sub, &[7, 9]),
    ];
    let product = a.matmul(&b).unwrap();
    let wanted = Matrix::from_fn(5, 9, |i, j| c.get(j, i) + 2.5 * product.get(j, i) + 1.0 - d.get(0, j)).unwrap();
    let found = |plain: bool, batch: usize, method: Option<&str>, error: f64| -> Result<(Plan, f64), MatrixError> {
        let inputs = vec![
            InputSpec::new("A", (9, 13), 1.0),
            InputSpec::new("B", (13, 5), 1.0),
            InputSpec { plain, ..InputSpec::new("C", (9, 5), 1.0) },
            InputSpec::new("D", (1, 9), 1.0),
        ];
        let goal =
            Goal { security: Security::Insecure, batch, ..Goal::new(Expr::new(inputs, nodes.clone(), 10)?, error) };
        let planner = Planner { method: method.map(str::to_owned), ..Planner::new(CostModel::default()) };
        let plan = planner.plan(&goal)?;
        let client = Client::new(&plan, 2)?;
        let server = client.server()?;
        let given = [("A", &a), ("B", &b), ("C", &c), ("D", &d)].map(|(name, m)| {
            let all = vec![m.clone(); batch];
            let value = match name == "C" && plain {
                true => server.plain(name, &all),
                false => client.encrypt_batch(name, &all, QUIET),
            };
            value.map(|value| if value.node() == 4 && plain { value } else { through_bytes(&plan, &value) })
        });
        let given = given.into_iter().collect::<Result<Vec<_>, _>>()?;
        let results = client.decrypt_batch(&through_bytes(&plan, &server.run(&given)?))?;
        let error = results.iter().map(|m| m.max_difference(&wanted)).fold(0.0, f64::max);
        Ok((plan, error))
    };
    for (plain, batch) in [(false, 1), (true, 1), (true, 3)] {
        let (plan, error) = found(plain, batch, None, 2.5 * ERROR).unwrap();
        assert!(plan.summary().keys.is_empty(), "{plan}");
        assert!(error <= plan.summary().predicted_error, "{error:e}: {plan}");
        for method in ["coefficient", "spread3d", "module"] {
            let (plan, error) = found(plain, batch, Some(method), 1e-3).unwrap();
            assert!(error <= plan.summary().predicted_error, "{error:e}: {plan}");
        }
    }
    // Other methods leave a result as they find it.
    assert!(matches!(found(true, 1, Some("improved3d"), 1e-3), Err(MatrixError::NoPlan { .. })));
}

fn through_bytes(plan: &Plan, value: &Encrypted) -> Encrypted {
    Encrypted::from_bytes(plan, &value.to_bytes().unwrap()).unwrap()
}

#[test]
fn what_is_done_to_a_factor_alone_is_done_by_its_owner() {
    let (a, b) = (random(1, 9, 6), random(2, 4, 6));
    let lines = Lines { start: 8, step: -2, count: 3, at: 1, stride: 1, size: 5 };
    let nodes = vec![
        Node::input(0),
        Node::new(Operation::Take { axis: 0, lines }, &[0]),
        Node::new(Operation::Shift { by: 0.5 }, &[1]),
        Node::input(1),
        Node::new(Operation::Scale { by: 3.0 }, &[3]),
        Node::new(Operation::Sum { axis: 0 }, &[4]),
        Node::new(Operation::Transpose, &[5]),
        Node::new(Operation::Matmul, &[2, 6]),
    ];
    let inputs = vec![InputSpec::new("A", (9, 6), 1.0), InputSpec::new("B", (4, 6), 1.0)];
    let plan = plan(inputs, nodes, 1e-3).unwrap();
    assert!(plan.summary().keys.is_empty(), "{plan}");
    let left = taken(&a, 0, lines);
    let left = Matrix::from_fn(5, 6, |i, j| left.get(i, j) + 0.5).unwrap();
    let right = Matrix::from_fn(6, 1, |i, _| (0..4).map(|r| 3.0 * b.get(r, i)).sum()).unwrap();
    let error = error_of(&plan, &[("A", &a), ("B", &b)], &left.matmul(&right).unwrap());
    assert!(error <= plan.summary().predicted_error, "{error:e}: {plan}");
}

#[test]
fn an_input_on_both_sides_is_encrypted_in_both_forms() {
    let x = random(3, 12, 5);
    let nodes = [Node::input(0), Node::new(Operation::Transpose, &[0]), Node::new(Operation::Matmul, &[1, 0])];
    let gram = plan(vec![InputSpec::new("X", (12, 5), 1.0)], nodes.to_vec(), ERROR).unwrap();
    assert!(gram.summary().keys.is_empty() && gram.to_string().contains("encrypted twice"), "{gram}");
    let wanted = x.transpose().matmul(&x).unwrap();
    assert!(error_of(&gram, &[("X", &x)], &wanted) <= gram.summary().predicted_error);
    // Operation by operation, and through bytes.
    let client = Client::new(&gram, 1).unwrap();
    let server = client.server().unwrap();
    let sent = Encrypted::from_bytes(&gram, &client.encrypt("X", &x).unwrap().to_bytes().unwrap()).unwrap();
    let product = server.matmul(&server.apply(&Operation::Transpose, &[&sent]).unwrap(), &sent).unwrap();
    assert!(client.decrypt(&product).unwrap().max_difference(&wanted) <= gram.summary().predicted_error);
    assert!(matches!(client.decrypt(&sent), Err(MatrixError::NotPlanned { .. })));
}

#[test]
fn an_approximation_is_a_part_of_the_error() {
    let nodes = |error| {
        let approximation = Node::new(Operation::Approximation { error, low: -1.0, high: 1.0 }, &[1, 0]);
        vec![Node::input(0), Node::new(Operation::Mul, &[0, 0]), approximation]
    };
    let input = || vec![InputSpec::new("x", (2, 2), 1.0)];
    let plan_of = |error| plan(input(), nodes(error), 1e-2);
    let (near, far) = (plan_of(1e-9).unwrap(), plan_of(5e-3).unwrap());
    assert!(far.summary().predicted_error - near.summary().predicted_error > 4.9e-3);
    assert!(far.to_string().contains("on [-1, 1], within 5.0e-3 of its function"), "{far}");
    assert!(matches!(plan_of(2e-2), Err(MatrixError::NoPlan { .. })));
    assert!(matches!(plan_of(f64::NAN), Err(MatrixError::Expr(ExprError::Expression { .. }))));
}

/// A function of what may be outside of its interval is refused, however it came about.
#[test]
fn a_variable_outside_of_its_interval_is_refused() {
    let plan_of = |bound: f64, high: f64, before: &[Node]| {
        let mut nodes = vec![Node::input(0)];
        nodes.extend_from_slice(before);
        let variable = nodes.len() - 1;
        nodes.push(Node::new(Operation::Mul, &[variable, variable]));
        nodes.push(Node::new(Operation::Approximation { error: 1e-9, low: -1.0, high }, &[variable + 1, variable]));
        plan(vec![InputSpec::new("x", (2, 2), bound)], nodes, 1e-2)
    };
    assert!(plan_of(4.0, 4.0, &[]).is_ok());
    let refused = plan_of(20.0, 4.0, &[]).unwrap_err().to_string();
    assert!(refused.contains("x is up to 20, and the interval of the function ends at 4"), "{refused}");
    assert!(refused.contains("sudare.bounded(x, max_abs=4)"), "{refused}");
    let product = plan_of(1.0, 1.0, &[Node::new(Operation::Matmul, &[0, 0])]).unwrap_err().to_string();
    assert!(product.contains("x @ x is up to 2"), "{product}");
    assert!(plan_of(20.0, 4.0, &[Node::new(Operation::Bounded { max_abs: 4.0 }, &[0])]).is_ok());
    // Bounds are products of rounded numbers.
    assert!(plan_of(3.0, 1.2, &[Node::new(Operation::Scale { by: 0.4 }, &[0])]).is_ok());
    let later = vec![
        Node::input(0),
        Node::new(Operation::Approximation { error: 0.0, low: -1.0, high: 1.0 }, &[0, 2]),
        Node::new(Operation::Neg, &[1]),
    ];
    let refused = plan(vec![InputSpec::new("x", (2, 2), 1.0)], later, 1e-2);
    assert!(matches!(refused, Err(MatrixError::Expr(ExprError::Expression { .. }))));
}
