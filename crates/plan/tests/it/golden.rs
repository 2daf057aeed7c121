//! Plans as they were: what methods propose for many requests and which plans are made of expressions. Client and server work
//! the figures of a plan out for themselves, so that a change of keys, levels or sizes is a new `PLAN_VERSION`.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use sudare_expr::Shape;
use sudare_expr::{Expr, InputSpec, Lines, Node, Operation};
use sudare_he::circuits::bootstrapping::BootstrapSet;
use sudare_methods::registry::candidates;
use sudare_methods::{Figures, KeyDemand, Method, ProductSpec, Requirements};
use sudare_plan::{CostModel, Goal, Planner};
use sudare_rlwe::security::Security;
use sudare_rlwe::work::Work;

/// A difference in the twelfth digit is rounding's.
const DIGITS: f64 = 1e-12;

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/plans.jsonl")
}

fn requests() -> Vec<Requirements> {
    let shapes = [
        (1, 1, 1, 1),
        (2, 2, 2, 1),
        (4, 4, 4, 1),
        (8, 8, 8, 3),
        (16, 16, 16, 1),
        (16, 16, 16, 64),
        (5, 7, 3, 2),
        (3, 16, 4, 1),
        (16, 3, 9, 40),
        (32, 32, 32, 1),
        (20, 33, 17, 1),
        (64, 64, 64, 1),
        (100, 50, 80, 2),
        (128, 128, 128, 1),
        (1, 256, 1, 1),
        (256, 256, 256, 1),
        (1, 1000, 1000, 1),
        (500, 20, 1, 7),
        (512, 512, 512, 1),
        (1024, 16, 1024, 1),
    ];
    let targets = [([1.0, 1.0], 1e-2), ([1.0, 1.0], 1e-3), ([8.0, 0.5], 1e-5), ([1.0, 3.0], 1e-8)];
    let mut out = Vec::new();
    for (m, k, n, batch) in shapes {
        for (max_abs, error) in targets {
            for decrypt_next in [true, false] {
                let shape = Shape { m, k, n, batch };
                let fresh = [true; 2];
                out.push(Requirements { shape, max_abs, error, security: Security::Bits128, fresh, decrypt_next });
            }
        }
    }
    out
}

/// A short name of keys, by all of them.
fn keys(demand: &KeyDemand) -> Value {
    let text = serde_json::to_string(&demand.galois).unwrap();
    json!([demand.relin, demand.galois.len(), &blake3::hash(text.as_bytes()).to_hex()[..12]])
}

fn work(w: &Work) -> Value {
    json!([w.ntt, w.ntt_wide, w.pass, w.pass_wide, w.mac, w.key_bytes, w.operand_bytes, w.key_switches])
}

/// The cheapest that each method proposes.
fn products(lines: &mut Vec<Value>) {
    let model = CostModel::default();
    for req in requests() {
        let mut best: BTreeMap<String, (f64, ProductSpec, Figures)> = BTreeMap::new();
        for spec in candidates(&req) {
            let outline = spec.outline().unwrap();
            let figures = outline.figures(req.max_abs).unwrap();
            let price = model.price(&figures.work, spec.params.log_n, 1);
            let known = best.get(outline.name()).is_none_or(|(known, _, _)| price < *known);
            if known {
                best.insert(outline.name().into(), (price, spec, figures));
            }
        }
        for (price, spec, f) in best.into_values() {
            if matches!(spec.method, Method::JiangBsgs) {
                let printed = ProductSpec { method: Method::Jiang, ..spec.clone() };
                let f = printed.outline().unwrap().figures(req.max_abs).unwrap();
                lines.push(line(&req, &printed, &f, model.price(&f.work, printed.params.log_n, 1)));
            }
            lines.push(line(&req, &spec, &f, price));
        }
    }
}

fn line(req: &Requirements, spec: &ProductSpec, f: &Figures, price: f64) -> Value {
    let c = f.counters.map(|c| [c.add, c.rot, c.cmult, c.mult, c.relin, c.key_switches]);
    json!({
        "request": [json!(req.max_abs), json!(req.error), json!(req.decrypt_next)],
        "product": spec,
        "keys": keys(&f.keys),
        "result": [f.ciphertexts, f.parts, f.level],
        "scale": f.scale,
        "bytes": [f.table_bytes, f.peak_bytes],
        "counters": c,
        "work": work(&f.work),
        "price": price,
        "error": f.error,
    })
}

/// Expressions: real and integers, alone and with bootstraps, and a table.
fn goals() -> Vec<(Goal, bool)> {
    let x = |name: &str, shape| InputSpec::new(name, shape, 1.0);
    let int = |name: &str, shape| InputSpec::integers(name, shape, 1000);
    let two = |shapes: [(usize, usize); 2]| vec![x("A", shapes[0]), x("B", shapes[1])];
    let of = |inputs: Vec<InputSpec>, ops: Vec<Node>| {
        let count = inputs.len();
        let nodes: Vec<Node> = (0..count).map(Node::input).chain(ops).collect();
        let last = nodes.len() - 1;
        Expr::new(inputs, nodes, last).unwrap()
    };
    let mut exprs = Vec::new();
    for (m, k, n) in [(3, 4, 5), (16, 16, 16), (40, 30, 20), (64, 8, 1)] {
        let shapes = [(m, k), (k, n)];
        exprs.push(of(two(shapes), vec![Node::new(Operation::Matmul, &[0, 1]), Node::new(Operation::Mul, &[2, 2])]));
        exprs.push(of(
            two(shapes),
            vec![Node::new(Operation::Matmul, &[0, 1]), Node::new(Operation::Sum { axis: 0 }, &[2])],
        ));
        exprs.push(of(
            two([(m, n), (m, n)]),
            vec![Node::new(Operation::Mul, &[0, 1]), Node::new(Operation::Sub, &[2, 0])],
        ));
        exprs.push(of(
            two([(m, n), (m, n)]),
            vec![Node::new(Operation::Transpose, &[0]), Node::new(Operation::Matmul, &[2, 1])],
        ));
        let lines = Lines { start: 1, step: 1, count: m - 2, at: 0, stride: 1, size: m - 2 };
        exprs.push(of(
            two([(m, n), (m, n)]),
            vec![
                Node::new(Operation::Mul, &[0, 1]),
                Node::new(Operation::Take { axis: 0, lines }, &[2]),
                Node::new(Operation::Scale { by: 0.3 }, &[3]),
                Node::new(Operation::Shift { by: 2.0 }, &[4]),
            ],
        ));
        exprs.push(of(
            two([(1, n), (m, n)]),
            vec![Node::new(Operation::Repeat { axis: 0, size: m }, &[0]), Node::new(Operation::Mul, &[2, 1])],
        ));
        let ints = vec![int("A", (m, k)), int("B", (k, n))];
        exprs.push(of(ints.clone(), vec![Node::new(Operation::Matmul, &[0, 1])]));
        exprs.push(of(
            ints,
            vec![
                Node::new(Operation::Matmul, &[0, 1]),
                Node::new(Operation::Scale { by: 3.0 }, &[2]),
                Node::new(Operation::Neg, &[3]),
            ],
        ));
    }
    let mut goals = Vec::new();
    for expr in exprs {
        let errors: &[f64] = if expr.is_exact() { &[0.0] } else { &[1e-2, 1e-4] };
        for error in errors {
            for batch in [1, 3] {
                goals.push((Goal { batch, ..Goal::new(expr.clone(), *error) }, false));
            }
        }
    }
    for count in [4, 12] {
        let ops = (0..count).flat_map(|i| {
            let last = 1 + 2 * i;
            [Node::new(Operation::Mul, &[last, 0]), Node::new(Operation::Bounded { max_abs: 1.0 }, &[last + 1])]
        });
        let expr = of(two([(9, 9), (9, 9)]), ops.collect());
        goals.push((Goal { security: Security::Insecure, ..Goal::new(expr, 1e-2) }, true));
    }
    goals.push((Goal::moments(1000, vec![1.0, 2.0, 8.0]).unwrap(), false));
    goals
}

fn programs(lines: &mut Vec<Value>) {
    for (goal, bootstrapped) in goals() {
        let planner = Planner { memory: 8 << 30, ..Planner::new(CostModel::default()) };
        let planner = match bootstrapped {
            true => Planner { bootstrap: vec![BootstrapSet::A], method: Some("bootstrapped".into()), ..planner },
            false => planner,
        };
        let plan = planner.plan(&goal).unwrap();
        let s = plan.summary();
        let all: Vec<_> = s.keys.iter().map(|k| (k.element, k.level)).collect();
        let sizes: Vec<_> = s.operands.iter().map(|o| (o.ciphertexts, o.parts, o.level)).collect();
        lines.push(json!({
            "goal": [json!(goal.expression.to_string()), json!(goal.batch), json!(goal.error)],
            "program": plan.program(),
            "method": s.method,
            "keys": keys(&KeyDemand { relin: None, galois: all }),
            "operands": sizes,
            "memory": s.memory,
            "key_switches": s.key_switches,
            "seconds": s.seconds,
            "error": s.predicted_error,
        }));
    }
}

fn lines() -> Vec<Value> {
    let mut lines = Vec::new();
    products(&mut lines);
    programs(&mut lines);
    lines
}

/// Whether two values are equal, numbers that are no integers to twelve digits.
fn same(found: &Value, stored: &Value) -> bool {
    match (found, stored) {
        (Value::Object(a), Value::Object(b)) => a.len() == b.len() && a.iter().all(|(k, x)| same(x, &b[k])),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same(x, y)),
        (Value::Number(x), Value::Number(y)) if x.is_f64() || y.is_f64() => {
            let (x, y) = (x.as_f64().unwrap(), y.as_f64().unwrap());
            (x - y).abs() <= DIGITS * x.abs().max(y.abs())
        }
        _ => found == stored,
    }
}

#[test]
fn plans_are_as_they_were() {
    let stored = std::fs::read_to_string(file()).unwrap();
    let stored: Vec<Value> = stored.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found = lines();
    for (x, y) in found.iter().zip(&stored) {
        assert!(same(x, y), "found\n{x}\nstored\n{y}");
    }
    assert_eq!(found.len(), stored.len());
}

#[test]
#[ignore = "writes what the test above reads"]
fn write() {
    let text: String = lines().iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(file(), text).unwrap();
}
