//! The promise of a plan: the true error is at most what is promised, and that at most what was
//! wanted, whatever the bounds, the wanted error and the elements. References are exact: every
//! double is an integer times a power of two.

use num_bigint::BigInt;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Add, Mul, Neg, Sub};
use sudare_expr::{Expr, InputSpec, Matrix, Node, Operation};
use sudare_methods::MatrixError;
use sudare_plan::{CostModel, Goal, Plan, Planner};
use sudare_session::QUIET;
use sudare_session::{Client, PublicClient};
use sudare_testkit::{Random, sized};

/// An integer times a power of two.
#[derive(Clone, Debug)]
struct Dyadic(BigInt, i64);

impl Dyadic {
    fn of(x: f64) -> Self {
        let bits = x.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as i64;
        let fraction = (bits & ((1 << 52) - 1)) | u64::from(exponent > 0) << 52;
        let size = BigInt::from(fraction);
        Self(if x < 0.0 { -size } else { size }, exponent.max(1) - 1075)
    }

    /// Both integers at the smaller power.
    fn aligned(&self, other: &Self) -> (BigInt, BigInt, i64) {
        let least = self.1.min(other.1);
        let at = |x: &Self| &x.0 << (x.1 - least) as u64;
        (at(self), at(other), least)
    }

    /// The nearest double, or one beside it.
    fn to_f64(&self) -> f64 {
        let surplus = self.0.bits().saturating_sub(64);
        let top: BigInt = &self.0 >> surplus;
        let top: f64 = top.to_string().parse().unwrap();
        // In two steps: neither overflows where the result does not.
        let power = self.1 + surplus as i64;
        top * 2f64.powi((power / 2) as i32) * 2f64.powi((power - power / 2) as i32)
    }
}

impl Add for &Dyadic {
    type Output = Dyadic;
    fn add(self, other: Self) -> Dyadic {
        let (a, b, at) = self.aligned(other);
        Dyadic(a + b, at)
    }
}

impl Sub for &Dyadic {
    type Output = Dyadic;
    fn sub(self, other: Self) -> Dyadic {
        let (a, b, at) = self.aligned(other);
        Dyadic(a - b, at)
    }
}

impl Mul for &Dyadic {
    type Output = Dyadic;
    fn mul(self, other: Self) -> Dyadic {
        Dyadic(&self.0 * &other.0, self.1 + other.1)
    }
}

impl Neg for &Dyadic {
    type Output = Dyadic;
    fn neg(self) -> Dyadic {
        Dyadic(-&self.0, self.1)
    }
}

/// A matrix of exact numbers, row by row.
#[derive(Clone)]
struct Exact {
    shape: (usize, usize),
    data: Vec<Dyadic>,
}

impl Exact {
    fn of(m: &Matrix) -> Self {
        Self { shape: m.shape(), data: m.data().iter().map(|x| Dyadic::of(*x)).collect() }
    }

    fn from_fn(shape: (usize, usize), f: impl Fn(usize, usize) -> Dyadic) -> Self {
        Self { shape, data: (0..shape.0 * shape.1).map(|at| f(at / shape.1, at % shape.1)).collect() }
    }

    fn at(&self, i: usize, j: usize) -> &Dyadic {
        &self.data[i * self.shape.1 + j]
    }

    fn map(&self, f: impl Fn(&Dyadic) -> Dyadic) -> Self {
        Self { shape: self.shape, data: self.data.iter().map(f).collect() }
    }

    fn zip(&self, other: &Self, f: impl Fn(&Dyadic, &Dyadic) -> Dyadic) -> Self {
        Self { shape: self.shape, data: self.data.iter().zip(&other.data).map(|(x, y)| f(x, y)).collect() }
    }

    fn sum(items: impl Iterator<Item = Dyadic>) -> Dyadic {
        items.fold(Dyadic::of(0.0), |sum, x| &sum + &x)
    }

    /// The value of an expression.
    fn run(expr: &Expr, inputs: &[&Matrix]) -> Self {
        let mut values: Vec<Self> = Vec::new();
        for node in expr.nodes() {
            let value = match node.parts() {
                (&Operation::Input { input }, _) => Self::of(inputs[input]),
                (Operation::Matmul, &[left, right]) => {
                    let (a, b) = (&values[left], &values[right]);
                    let element = |i, j| Self::sum((0..a.shape.1).map(|t| a.at(i, t) * b.at(t, j)));
                    Self::from_fn((a.shape.0, b.shape.1), element)
                }
                (Operation::Add, &[left, right]) => values[left].zip(&values[right], |x, y| x + y),
                (Operation::Sub, &[left, right]) => values[left].zip(&values[right], |x, y| x - y),
                (Operation::Mul, &[left, right]) => values[left].zip(&values[right], |x, y| x * y),
                (Operation::Neg, &[of]) => values[of].map(|x| -x),
                (&Operation::Scale { by }, &[of]) => values[of].map(|x| x * &Dyadic::of(by)),
                (&Operation::Shift { by }, &[of]) => values[of].map(|x| x + &Dyadic::of(by)),
                (Operation::Transpose, &[of]) => {
                    let m = &values[of];
                    Self::from_fn((m.shape.1, m.shape.0), |i, j| m.at(j, i).clone())
                }
                (&Operation::Sum { axis: 0 }, &[of]) => {
                    let m = &values[of];
                    Self::from_fn((1, m.shape.1), |_, j| Self::sum((0..m.shape.0).map(|i| m.at(i, j).clone())))
                }
                (Operation::Sum { .. }, &[of]) => {
                    let m = &values[of];
                    Self::from_fn((m.shape.0, 1), |i, _| Self::sum((0..m.shape.1).map(|j| m.at(i, j).clone())))
                }
                _ => unreachable!("the tests have no other operation"),
            };
            values.push(value);
        }
        values.swap_remove(expr.output())
    }

    /// The largest difference from what was found.
    fn error_of(&self, found: &Matrix) -> f64 {
        assert_eq!(found.shape(), self.shape);
        let pairs = self.data.iter().zip(found.data());
        pairs.fold(0.0, |m, (exact, x)| m.max((exact - &Dyadic::of(*x)).to_f64().abs()))
    }
}

/// A power of ten with an exponent in a range.
fn power(random: &mut Random, low: f64, high: f64) -> f64 {
    10f64.powf(low + (high - low) * random.fraction())
}

/// Ways to fill a matrix.
const FILLINGS: [&str; 7] = ["most", "least", "signs", "one", "constant", "stripes", "random"];

fn filled(kind: &str, (rows, cols): (usize, usize), max_abs: f64, random: &mut Random) -> Matrix {
    let (row, col) = (random.index(rows), random.index(cols));
    let seed = random.word();
    Matrix::from_fn(rows, cols, |i, j| {
        let mut own = Random(seed ^ ((i * cols + j) as u64 * 0x1_0000_0001));
        match kind {
            "most" => max_abs,
            "least" => -max_abs,
            "signs" => {
                if own.word().is_multiple_of(2) {
                    max_abs
                } else {
                    -max_abs
                }
            }
            "one" => {
                if (i, j) == (row, col) {
                    max_abs
                } else {
                    0.0
                }
            }
            "constant" => max_abs / 3.0,
            "stripes" => {
                if j % 2 == 0 {
                    max_abs
                } else {
                    -max_abs
                }
            }
            _ => max_abs * own.unit(),
        }
    })
    .unwrap()
}

fn planner() -> Planner {
    Planner { memory: 4 << 30, ..Planner::new(CostModel::default()) }
}

/// Runs a plan on matrices of several kinds, encrypted under the public or the secret key; returns
/// the largest error as a part of what is promised.
fn run(plan: &Plan, random: &mut Random, rounds: usize) -> f64 {
    let promised = plan.summary().predicted_error;
    assert!(promised <= plan.goal().error, "{promised:e} promised, {:e} wanted", plan.goal().error);
    let client = Client::new(plan, 2).unwrap();
    let public = PublicClient::new(plan, client.public_key().unwrap(), 2).unwrap();
    let server = client.server().unwrap();
    let expr = plan.expression();
    let mut worst = 0.0f64;
    for round in 0..rounds {
        let kinds: Vec<&str> = match round {
            // Everything as large as it can be, of one sign and of different ones.
            0 => vec!["most"; expr.inputs().len()],
            1 => vec!["signs"; expr.inputs().len()],
            _ => expr.inputs().iter().map(|_| FILLINGS[random.index(FILLINGS.len())]).collect(),
        };
        let members: Vec<Vec<Matrix>> = expr
            .inputs()
            .iter()
            .zip(&kinds)
            .map(|(input, kind)| {
                let one = |random: &mut Random| filled(kind, (input.rows, input.cols), input.max_abs, random);
                (0..plan.batch()).map(|_| one(random)).collect()
            })
            .collect();
        let encrypted: Vec<_> = expr
            .inputs()
            .iter()
            .zip(&members)
            .map(|(input, all)| match round % 2 {
                0 => public.encrypt_batch(&input.name, all, QUIET).unwrap(),
                _ => client.encrypt_batch(&input.name, all, QUIET).unwrap(),
            })
            .collect();
        let result = server.run(&encrypted).unwrap_or_else(|e| panic!("{e}, {kinds:?}\n{plan}"));
        for (member, found) in client.decrypt_batch(&result).unwrap().iter().enumerate() {
            let inputs: Vec<&Matrix> = members.iter().map(|all| &all[member]).collect();
            let error = Exact::run(expr, &inputs).error_of(found);
            assert!(error <= promised, "{error:e} where {promised:e} was promised, {kinds:?}\n{plan}");
            worst = worst.max(error / promised);
        }
    }
    worst
}

fn input(name: &str, shape: (usize, usize), max_abs: f64) -> InputSpec {
    InputSpec::new(name, shape, max_abs)
}

/// A goal of one product: bounds 1e-8 to 1e12, relative errors 1e-1 to 1e-12.
fn product(random: &mut Random) -> Goal {
    let side = |random: &mut Random| if random.index(8) == 0 { 1 + random.index(40) } else { 1 + random.index(9) };
    let (m, k, n) = (side(random), side(random), side(random));
    let (a, b) = (power(random, -8.0, 12.0), power(random, -8.0, 12.0));
    let error = power(random, -12.0, -1.0) * a * b * k as f64;
    let expr = Expr::product(input("A", (m, k), a), input("B", (k, n), b)).unwrap();
    Goal { batch: [1, 1, 1, 2, 5][random.index(5)], ..Goal::new(expr, error) }
}

/// A goal of a few operations on square matrices.
fn expression(random: &mut Random) -> Goal {
    let side = 1 + random.index(7);
    let bounds = [power(random, -4.0, 3.0), power(random, -4.0, 3.0)];
    let inputs = vec![input("A", (side, side), bounds[0]), input("B", (side, side), bounds[1])];
    let mut nodes = vec![Node::input(0), Node::input(1)];
    // The last two values, so that all matter.
    let (mut last, mut other) = (1, 0);
    for _ in 0..1 + random.index(3) {
        let (left, right) = if random.index(2) == 0 { (last, other) } else { (other, last) };
        let op = match random.index(8) {
            0 => Node::new(Operation::Add, &[left, right]),
            1 => Node::new(Operation::Sub, &[left, right]),
            2 => Node::new(Operation::Mul, &[left, right]),
            _ => Node::new(Operation::Matmul, &[left, right]),
        };
        nodes.push(op);
        last = nodes.len() - 1;
        match random.index(6) {
            0 => nodes.push(Node::new(Operation::Scale { by: 2.0 * random.fraction() - 1.0 }, &[last])),
            1 => nodes.push(Node::new(Operation::Transpose, &[last])),
            2 => nodes.push(Node::new(Operation::Shift { by: random.fraction() }, &[last])),
            _ => {}
        }
        (last, other) = (nodes.len() - 1, random.index(2));
    }
    if random.index(3) == 0 {
        nodes.push(Node::new(Operation::Sum { axis: random.index(2) as u8 }, &[last]));
        last = nodes.len() - 1;
    }
    let expr = Expr::new(inputs, nodes, last).unwrap();
    let error = power(random, -9.0, -1.0) * expr.info(expr.output()).max_abs;
    Goal::new(expr, error)
}

/// The plan of the smallest results, which are no larger than those of the quickest.
fn compact(goal: &Goal, quickest: &Plan) -> Plan {
    let plan = Planner { compact: true, ..planner() }.plan(goal).unwrap();
    let bytes = |plan: &Plan| plan.summary().operands.iter().filter(|o| o.error.is_some()).map(|o| o.wire_bytes).sum();
    let (smaller, larger): (u64, u64) = (bytes(&plan), bytes(quickest));
    assert!(smaller <= larger, "{smaller} and {larger} bytes\n{plan}");
    plan
}

/// Plans goals, runs what was accepted, and has every refusal say what would do.
fn check(goals: usize, seed: u64, least: usize, mut make: impl FnMut(&mut Random) -> Goal) {
    let mut random = Random(seed);
    let (mut kept, mut worst, mut methods) = (0, 0.0f64, BTreeMap::new());
    for at in 0..goals {
        let goal = make(&mut random);
        let plan = match planner().plan(&goal) {
            Ok(plan) => plan,
            Err(MatrixError::NoPlan { reason }) => {
                assert!(reason.contains("declare smaller bounds"), "{reason}");
                continue;
            }
            Err(e) => panic!("{e}"),
        };
        // Now and then another method than the cheapest.
        let names: BTreeSet<&str> = plan.considered().iter().map(|c| c.method.as_str()).collect();
        let method = names.iter().nth(random.index(names.len())).unwrap().to_string();
        let plan = match at % 4 {
            0 => Planner { method: Some(method), ..planner() }.plan(&goal).unwrap_or(plan),
            2 => compact(&goal, &plan),
            _ => plan,
        };
        let part = run(&plan, &mut random, if plan.summary().keys.len() > 8 { 3 } else { 6 });
        *methods.entry(plan.summary().method.clone()).or_insert(0) += 1;
        (kept, worst) = (kept + 1, worst.max(part));
    }
    println!("{kept} of {goals} plans accepted; the largest error is {worst:.2} of its promise; {methods:?}");
    assert!(kept >= least, "{kept} plans accepted");
    // The promises are not empty: errors come near.
    assert!(worst > 0.05, "{worst}");
}

#[test]
fn random_products_keep_their_promise() {
    let (goals, least) = sized((42, 20), (126, 60));
    check(goals, 1, least, product);
}

#[test]
fn random_expressions_keep_their_promise() {
    let (goals, least) = sized((8, 4), (24, 12));
    check(goals, 2, least, expression);
}

#[test]
fn every_method_keeps_its_promise() {
    let mut random = Random(4);
    for ((m, k, n), bounds) in [((6, 10, 5), [1.0, 1.0]), ((3, 1, 4), [1e-3, 50.0])] {
        let expr = Expr::product(input("A", (m, k), bounds[0]), input("B", (k, n), bounds[1])).unwrap();
        let goal = Goal::new(expr, 1e-4);
        let all = planner().plan(&goal).unwrap();
        let methods: BTreeSet<&str> = all.considered().iter().map(|c| c.method.as_str()).collect();
        assert!(methods.len() > 4, "{methods:?}");
        for method in methods {
            let plan = Planner { method: Some(method.into()), ..planner() }.plan(&goal).unwrap();
            run(&plan, &mut random, 4);
        }
    }
}

/// The error of one element of B is in every row of A @ B, and in their sum as often as there are
/// rows, if all of A is alike.
#[test]
fn errors_in_common_add_up() {
    let nodes = vec![
        Node::input(0),
        Node::input(1),
        Node::new(Operation::Matmul, &[0, 1]),
        Node::new(Operation::Sum { axis: 0 }, &[2]),
    ];
    let expr = Expr::new(vec![input("A", (512, 4), 1.0), input("B", (4, 24), 1.0)], nodes, 3).unwrap();
    let plan = planner().plan(&Goal::new(expr, 1e-2)).unwrap();
    let part = run(&plan, &mut Random(5), 2);
    assert!(part > 0.05, "{part} of the promise\n{plan}");
}

/// Products in a row: the evaluator's worst-case bounds alone would end them after four or five.
#[test]
fn long_chains_run() {
    let mut nodes = vec![Node::input(0), Node::input(1), Node::new(Operation::Matmul, &[0, 1])];
    for _ in 0..5 {
        nodes.push(Node::new(Operation::Matmul, &[nodes.len() - 1, 1]));
    }
    let output = nodes.len() - 1;
    let expr = Expr::new(vec![input("A", (4, 4), 0.25), input("B", (4, 4), 0.25)], nodes, output).unwrap();
    let plan = planner().plan(&Goal::new(expr, 1e-3)).unwrap();
    run(&plan, &mut Random(6), 2);
}

/// What an audit found broken: results whose last digits doubles do not have.
#[test]
fn near_the_limit_of_doubles() {
    let (mut random, mut worst) = (Random(3), 0.0f64);
    for (max_abs, error) in [(1e8, 1.0), (1e7, 1e-2), (1e6, 1e-4)] {
        for (m, k, n) in [(8, 8, 8), (1, 100, 1), (16, 4, 16)] {
            let expr = Expr::product(input("A", (m, k), max_abs), input("B", (k, n), max_abs)).unwrap();
            let goal = Goal::new(expr, error);
            match planner().plan(&goal) {
                Ok(plan) => worst = worst.max(run(&plan, &mut random, 8)),
                Err(MatrixError::NoPlan { reason }) => {
                    assert!(reason.contains("dtype=int") && reason.contains("ask for error="), "{reason}");
                    // What it asks for is enough.
                    let told = reason.split("ask for error=").nth(1).unwrap().split(' ').next().unwrap();
                    let plan = planner().plan(&Goal { error: told.parse().unwrap(), ..goal }).unwrap();
                    worst = worst.max(run(&plan, &mut random, 8));
                }
                Err(e) => panic!("{e}"),
            }
        }
    }
    // Rounding to doubles is most of what is promised here, and seen.
    assert!(worst > 0.1, "{worst} of the promise");
}

#[test]
fn refusals_say_by_how_much() {
    let refuse = |expr: Expr, error: f64| match planner().plan(&Goal::new(expr, error)) {
        Err(MatrixError::NoPlan { reason }) => reason,
        other => panic!("{other:?}"),
    };
    let between = |max_abs| Expr::product(input("A", (12, 30), max_abs), input("B", (30, 5), max_abs)).unwrap();
    let reason = refuse(between(1.0), 1e-30);
    assert!(reason.contains("times the wanted 1.0e-30") && !reason.contains("dtype=int"), "{reason}");
    let reason = refuse(between(1e14), 1e-3);
    assert!(reason.contains("dtype=int"), "{reason}");
    // Integers of more than 117 bits are no remedy.
    let large = Expr::product(input("A", (1, 1 << 20), 1e15), input("B", (1 << 20, 1), 1e15)).unwrap();
    assert!(!refuse(large, 1.0).contains("dtype=int"));
    // They are for a product element by element, and none for a product of products.
    let powers = |nodes: &[Node]| {
        let nodes: Vec<Node> = [&[Node::input(0)], nodes].concat();
        let output = nodes.len() - 1;
        refuse(Expr::new(vec![input("A", (4, 4), 1e9)], nodes, output).unwrap(), 1e-9)
    };
    assert!(powers(&[Node::new(Operation::Mul, &[0, 0])]).contains("dtype=int"));
    let cube = powers(&[Node::new(Operation::Mul, &[0, 0]), Node::new(Operation::Mul, &[1, 0])]);
    assert!(!cube.contains("dtype=int") && cube.contains("declare smaller bounds"), "{cube}");
    let method = Planner { method: Some("nonsense".into()), ..planner() };
    let Err(e) = method.plan(&Goal::new(between(1.0), 1e-3)) else { panic!("no such method") };
    assert!(e.to_string().contains("these do: "), "{e}");
}
