//! Expressions of encrypted and plain integers against plain ones: every operation, shape, bound, batch and key.

use sudare_expr::{Expr, InputSpec, Matrix, Node, Operation};
use sudare_methods::MatrixError;
use sudare_plan::{CostModel, Goal, Plan, Planner};
use sudare_session::QUIET;
use sudare_session::{Client, Encrypted, PublicClient, Server};
use sudare_testkit::Random;

fn plan_of(expr: Expr, batch: usize) -> Result<Plan, MatrixError> {
    Planner::new(CostModel::default()).plan(&Goal { batch, ..Goal::new(expr, 0.0) })
}

fn input(name: &str, shape: (usize, usize), bound: u128) -> InputSpec {
    InputSpec::integers(name, shape, bound)
}

fn known(name: &str, shape: (usize, usize), bound: u128) -> InputSpec {
    InputSpec { plain: true, ..input(name, shape, bound) }
}

/// Elements that often reach the bound.
fn matrix(random: &mut Random, (rows, cols): (usize, usize), bound: i128) -> Matrix<i128> {
    let data = (0..rows * cols).map(|_| match random.index(5) {
        0 => bound,
        1 => -bound,
        _ => (random.index(1 << 30) as i128 * random.index(1 << 30) as i128 * 1_000_003) % (bound + 1),
    });
    let data: Vec<i128> = data.collect();
    Matrix::<i128>::new(rows, cols, data).unwrap()
}

/// An expression that grows at random.
struct Grown {
    inputs: Vec<InputSpec>,
    nodes: Vec<Node>,
}

impl Grown {
    fn node(&mut self, op: Node) -> usize {
        self.nodes.push(op);
        self.nodes.len() - 1
    }

    fn leaf(&mut self, random: &mut Random, shape: (usize, usize), encrypted: bool) -> usize {
        let fits = |i: &InputSpec| (i.rows, i.cols) == shape && i.plain != encrypted;
        if let Some(at) = self.inputs.iter().position(fits).filter(|_| random.index(2) == 0) {
            return self.nodes.iter().position(|op| *op == Node::input(at)).unwrap();
        }
        let bound = [1, 5, 1000, 1 << 20, (1 << 64) + 3][random.index(5)];
        let name = format!("x{}", self.inputs.len());
        self.inputs.push(if encrypted { input(&name, shape, bound) } else { known(&name, shape, bound) });
        let input = self.inputs.len() - 1;
        self.node(Node::input(input))
    }

    /// A value of a shape with up to `factors` encrypted factors, none of it a matrix product unless it may be.
    fn grow(&mut self, random: &mut Random, shape: (usize, usize), depth: usize, factors: usize) -> usize {
        let (rows, cols) = shape;
        if depth == 0 {
            return self.leaf(random, shape, factors != 0);
        }
        let split = |random: &mut Random| match factors {
            0 => (0, 0),
            1 => [(1, 0), (0, 1)][random.index(2)],
            _ => [(1, 1), (1, 1), (2, 0), (0, 2)][random.index(4)],
        };
        let less = |random: &mut Random| if factors == 2 && random.index(2) == 0 { 1 } else { factors };
        match random.index(10) {
            0 | 1 => {
                let (other, flip) = (less(random), random.index(2));
                let (left, right) =
                    (self.grow(random, shape, depth - 1, factors), self.grow(random, shape, depth - 1, other));
                let (left, right) = if flip == 0 { (left, right) } else { (right, left) };
                self.node(if random.index(2) == 0 {
                    Node::new(Operation::Add, &[left, right])
                } else {
                    Node::new(Operation::Sub, &[left, right])
                })
            }
            2 => {
                let (x, y) = split(random);
                let (left, right) = (self.grow(random, shape, depth - 1, x), self.grow(random, shape, depth - 1, y));
                self.node(Node::new(Operation::Mul, &[left, right]))
            }
            3 | 4 => {
                let ((x, y), k) = (split(random), 1 + random.index(4));
                let left = self.grow(random, (rows, k), depth - 1, x);
                let right = self.grow(random, (k, cols), depth - 1, y);
                self.node(Node::new(Operation::Matmul, &[left, right]))
            }
            5 => {
                let of = self.grow(random, shape, depth - 1, factors);
                self.node(Node::new(Operation::Neg, &[of]))
            }
            6 => {
                let of = self.grow(random, shape, depth - 1, factors);
                let by = [1.0, -1.0, -3.0, 12_345.0][random.index(4)];
                self.node(Node::new(Operation::Scale { by }, &[of]))
            }
            7 => {
                let of = self.grow(random, shape, depth - 1, factors);
                self.node(Node::new(Operation::Shift { by: random.index(2000) as f64 - 1000.0 }, &[of]))
            }
            8 if rows == 1 || cols == 1 => {
                let (axis, length) = (u8::from(rows != 1), 1 + random.index(4));
                let of = self.grow(random, if axis == 0 { (length, cols) } else { (rows, length) }, depth - 1, factors);
                self.node(Node::new(Operation::Sum { axis }, &[of]))
            }
            _ => {
                let of = self.grow(random, (cols, rows), depth - 1, factors);
                self.node(Node::new(Operation::Transpose, &[of]))
            }
        }
    }
}

/// A node's value by definition.
fn value(expr: &Expr, node: usize, inputs: &[Matrix<i128>]) -> Matrix<i128> {
    let of = |o: usize| value(expr, o, inputs);
    let both = |left: usize, right: usize, f: fn(i128, i128) -> i128| {
        let (x, y) = (of(left), of(right));
        Matrix::<i128>::from_fn(x.shape().0, x.shape().1, |i, j| f(x.get(i, j), y.get(i, j))).unwrap()
    };
    let each = |o: usize, f: &dyn Fn(i128) -> i128| {
        let x = of(o);
        Matrix::<i128>::from_fn(x.shape().0, x.shape().1, |i, j| f(x.get(i, j))).unwrap()
    };
    match expr.nodes()[node].parts() {
        (&Operation::Input { input }, _) => inputs[input].clone(),
        (Operation::Add, &[left, right]) => both(left, right, |x, y| x + y),
        (Operation::Sub, &[left, right]) => both(left, right, |x, y| x - y),
        (Operation::Mul, &[left, right]) => both(left, right, |x, y| x * y),
        (Operation::Matmul, &[left, right]) => of(left).matmul(&of(right)).unwrap(),
        (Operation::Neg, &[o]) => each(o, &|x| -x),
        (&Operation::Scale { by }, &[o]) => each(o, &|x| x * by as i128),
        (&Operation::Shift { by }, &[o]) => each(o, &|x| x + by as i128),
        (Operation::Transpose, &[o]) => of(o).transpose(),
        (&Operation::Sum { axis }, &[o]) => {
            let x = of(o);
            let (rows, cols) = if axis == 0 { (1, x.shape().1) } else { (x.shape().0, 1) };
            let terms = |i: usize, j: usize| match axis {
                0 => (0..x.shape().0).map(|t| x.get(t, j)).sum(),
                _ => (0..x.shape().1).map(|t| x.get(i, t)).sum::<i128>(),
            };
            Matrix::<i128>::from_fn(rows, cols, terms).unwrap()
        }
        op => panic!("{op:?}"),
    }
}

/// Computes what a plan says of random inputs, and compares.
fn check(plan: &Plan, random: &mut Random) {
    let expr = plan.expression();
    let client = Client::new(plan, 1).unwrap();
    let public = PublicClient::new(plan, client.public_key().unwrap(), 1).unwrap();
    let server = Server::keyless(plan, 1).unwrap();
    let draw = |random: &mut Random, i: &InputSpec| -> Vec<Matrix<i128>> {
        let bound = i128::try_from(i.integers.unwrap()).unwrap();
        (0..plan.batch()).map(|_| matrix(random, (i.rows, i.cols), bound)).collect()
    };
    let inputs: Vec<Vec<Matrix<i128>>> = expr.inputs().iter().map(|i| draw(random, i)).collect();
    let values: Vec<Encrypted> = expr
        .inputs()
        .iter()
        .zip(&inputs)
        .map(|(spec, matrices)| match (spec.plain, random.index(2)) {
            (true, _) => server.plain_integers(&spec.name, matrices).unwrap(),
            (_, 0) => client.encrypt_integers_batch(&spec.name, matrices, QUIET).unwrap(),
            _ => public.encrypt_integers_batch(&spec.name, matrices, QUIET).unwrap(),
        })
        .map(|x| if x.is_plain() { x } else { Encrypted::from_bytes(plan, &x.to_bytes().unwrap()).unwrap() })
        .collect();
    let found = server.run(&values).unwrap();
    let sizes = plan.summary().operands.iter().map(|o| o.ciphertexts);
    assert!(sizes.eq(values.iter().chain([&found]).map(Encrypted::count)), "{plan}");
    let found =
        client.decrypt_integers_batch(&Encrypted::from_bytes(plan, &found.to_bytes().unwrap()).unwrap()).unwrap();
    for (member, found) in found.iter().enumerate() {
        let own: Vec<Matrix<i128>> = inputs.iter().map(|list| list[member].clone()).collect();
        assert_eq!(*found, value(expr, expr.output(), &own), "{plan}");
    }
}

#[test]
fn random_expressions() {
    let (mut done, mut refused) = (0, 0);
    for seed in 0..240u64 {
        let random = &mut Random(seed);
        let mut grown = Grown { inputs: Vec::new(), nodes: Vec::new() };
        let (shape, depth, factors) =
            ((1 + random.index(4), 1 + random.index(4)), 1 + random.index(4), 1 + random.index(2));
        let output = grown.grow(random, shape, depth, factors);
        let Ok(expr) = Expr::new(grown.inputs, grown.nodes, output) else { continue };
        match plan_of(expr, 1 + random.index(2)) {
            Ok(plan) => {
                let plan = Plan::from_json(&plan.to_json().unwrap()).unwrap();
                check(&plan, random);
                done += 1;
            }
            Err(MatrixError::NoPlan { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(done > refused && done > 120, "{done} computed, {refused} refused");
}

/// Inputs and results of more than 64 bits, and the largest there can be.
#[test]
fn edges_of_ranges() {
    for (left, right, k) in [(1u128 << 100, 1 << 10, 3), ((1 << 116) - 1, 1, 1), ((1 << 58) + 1, (1 << 57) - 1, 2)] {
        let nodes = vec![
            Node::input(0),
            Node::input(1),
            Node::new(Operation::Matmul, &[0, 1]),
            Node::input(2),
            Node::new(Operation::Sub, &[2, 3]),
        ];
        let inputs = vec![input("A", (2, k), left), input("B", (k, 2), right), input("C", (2, 2), left)];
        let plan = plan_of(Expr::new(inputs, nodes, 4).unwrap(), 1).unwrap();
        let plan = Plan::from_json(&plan.to_json().unwrap()).unwrap();
        let (client, server) = (Client::new(&plan, 1).unwrap(), Server::keyless(&plan, 1).unwrap());
        let full =
            |rows, cols, x: u128, sign: i128| Matrix::<i128>::from_fn(rows, cols, |_, _| sign * x as i128).unwrap();
        for sign in [1, -1] {
            let all = [("A", full(2, k, left, sign)), ("B", full(k, 2, right, 1)), ("C", full(2, 2, left, -sign))];
            let values = all.each_ref().map(|(name, m)| client.encrypt_integers(name, m, QUIET).unwrap());
            let wanted = sign * (left * right * k as u128 + left) as i128;
            assert_eq!(plan.largest_integer(), Some(wanted.abs()));
            let found = client.decrypt_integers(&server.run(&values).unwrap()).unwrap();
            assert!(found.data().iter().all(|x| *x == wanted), "{found:?} is not {wanted}");
        }
        let over = full(2, k, left + 1, 1);
        assert!(matches!(client.encrypt_integers("A", &over, QUIET), Err(MatrixError::OutOfRange { .. })));
    }
}

/// What cannot be computed exactly is refused with what to write instead.
#[test]
fn refusals_name_the_remedy() {
    let square = || input("A", (2, 2), 9);
    let other = |name: &str| input(name, (2, 2), 9);
    let i = |input: usize| Node::input(input);
    let chain = vec![i(0), i(1), Node::new(Operation::Matmul, &[0, 1]), i(2), Node::new(Operation::Matmul, &[2, 3])];
    let plain_chain = chain.clone();
    // Sums of products as one row of two: the form of a sum has no zeros beside it.
    let lines = sudare_expr::Lines { start: 0, step: 1, count: 1, at: 0, stride: 1, size: 2 };
    let placed = Node::new(Operation::Take { axis: 0, lines }, &[3]);
    let total =
        vec![i(0), i(1), Node::new(Operation::Mul, &[0, 1]), Node::new(Operation::Sum { axis: 0 }, &[2]), placed];
    for (inputs, nodes, remedy) in [
        (vec![square(), other("B"), other("C")], chain, "second plan"),
        (vec![square(), known("B", (2, 2), 9), other("C")], plain_chain, "second plan"),
        (vec![square(), other("B")], total, "after decryption"),
        (vec![square()], vec![i(0), Node::new(Operation::Scale { by: 0.5 }, &[0])], "divide after decryption"),
        (vec![square()], vec![i(0), Node::new(Operation::Shift { by: 9_007_199_254_740_992.0 }, &[0])], "plain input"),
        (
            vec![input("A", (2, 2), 1 << 60), input("B", (2, 2), 1 << 60)],
            vec![i(0), i(1), Node::new(Operation::Matmul, &[0, 1])],
            "smaller bounds",
        ),
    ] {
        let output = nodes.len() - 1;
        match plan_of(Expr::new(inputs, nodes, output).unwrap(), 1) {
            Err(MatrixError::NoPlan { reason }) => assert!(reason.contains(remedy), "{reason} lacks {remedy:?}"),
            other => panic!("{other:?}"),
        }
    }
}

/// A value of another kind, number or place is refused by a typed error.
#[test]
fn plain_inputs_stay_plain() {
    let nodes = vec![Node::input(0), Node::input(1), Node::new(Operation::Mul, &[0, 1])];
    let plan = plan_of(Expr::new(vec![input("A", (2, 3), 5), known("W", (2, 3), 7)], nodes, 2).unwrap(), 2).unwrap();
    let (client, server) = (Client::new(&plan, 1).unwrap(), Server::keyless(&plan, 1).unwrap());
    let ones = || Matrix::<i128>::from_fn(2, 3, |_, _| 1).unwrap();
    let both = [ones(), ones()];
    let not_planned = |e: MatrixError| matches!(e, MatrixError::NotPlanned { .. });
    assert!(not_planned(client.encrypt_integers_batch("W", &both, QUIET).unwrap_err()));
    assert!(not_planned(server.plain_integers("A", &both).unwrap_err()));
    let refused = client.encrypt_integers("A", &ones(), QUIET).unwrap_err();
    assert!(matches!(refused, MatrixError::Count { found: 1, expected: 2, .. }));
    let w = server.plain_integers("W", &both).unwrap();
    assert!(not_planned(w.to_bytes().unwrap_err()));
    let x = client.encrypt_integers_batch("A", &both, QUIET).unwrap();
    let product = server.apply(&Operation::Mul, &[&w, &x]).unwrap();
    assert_eq!(client.decrypt_integers_batch(&product).unwrap(), both);
    assert!(not_planned(client.decrypt_integers_batch(&w).unwrap_err()));
}

/// Bounds that no 128 bits hold are refused, and were cut to 2^127 - 1 before.
#[test]
fn bounds_of_more_than_127_bits() {
    for input in [input, known] {
        let inputs = vec![input("A", (2, 2), 1 << 127), self::input("B", (2, 2), 1)];
        let nodes = vec![Node::input(0), Node::input(1), Node::new(Operation::Add, &[0, 1])];
        let refused = plan_of(Expr::new(inputs, nodes, 2).unwrap(), 1).unwrap_err().to_string();
        assert!(refused.contains("127 bits"), "{refused}");
    }
}
