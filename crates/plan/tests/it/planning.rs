//! What planning takes: prices come from literals, so that neither time nor memory grows with the
//! tables of methods that are not taken. A process of its own, to read its peak.

use std::time::{Duration, Instant};
use sudare_expr::Shape;
use sudare_expr::{Expr, InputSpec, Node, Operation};
use sudare_methods::products::candidates;
use sudare_methods::{MatrixError, ProductSpec, Requirements};
use sudare_plan::{CostModel, Goal, Plan, Planner, Program};
use sudare_rlwe::security::Security;

/// Most memory that this process has had so far; none where the system does not tell.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

fn product((m, k, n): (usize, usize, usize), batch: usize, error: f64) -> Goal {
    let expr = Expr::product(InputSpec::new("A", (m, k), 1.0), InputSpec::new("B", (k, n), 1.0)).unwrap();
    Goal { batch, ..Goal::new(expr, error) }
}

/// Transposes and products in turn: what needs most tables.
fn expression(side: usize, length: usize) -> Goal {
    let mut nodes = vec![Node::input(0)];
    for _ in 0..length {
        nodes.push(Node::new(Operation::Transpose, &[nodes.len() - 1]));
        nodes.push(Node::new(Operation::Mul, &[nodes.len() - 1, 0]));
    }
    let output = nodes.len() - 1;
    Goal::new(Expr::new(vec![InputSpec::new("A", (side, side), 1.0)], nodes, output).unwrap(), 1e-3)
}

/// Shapes and parameters at the far end are refused, never computed with.
#[test]
fn outlines_of_nonsense_are_refused() {
    let plan = |goal: &Goal| Planner { memory: u64::MAX, ..Planner::new(CostModel::default()) }.plan(goal);
    let good = plan(&product((6, 10, 5), 1, 1e-4)).unwrap();
    let Program::Product { product: spec } = good.program() else { panic!("{good}") };
    let largest = usize::MAX;
    let shapes = [
        (0, 1, 1, 1),
        (1, 1, 1, 0),
        (largest, largest, largest, 1),
        (1 << 24, 1 << 24, 1 << 24, 1),
        (1, 1, 1, largest),
    ];
    for requirements in shapes.map(|(m, k, n, batch)| Requirements {
        shape: Shape { m, k, n, batch },
        max_abs: [1.0; 2],
        error: 1e-4,
        security: Security::Bits128,
        fresh: [true; 2],
        decrypt_next: true,
    }) {
        assert!(candidates(&requirements).is_empty(), "{requirements:?}");
    }
    let mut all: Vec<ProductSpec> = candidates(&Requirements {
        shape: spec.shape,
        max_abs: [1.0; 2],
        error: 1e-4,
        security: Security::Bits128,
        fresh: [true; 2],
        decrypt_next: true,
    });
    all.dedup_by_key(|s| std::mem::discriminant(&s.method));
    assert!(all.len() > 5);
    for spec in &all {
        for (m, k, n, batch) in shapes {
            let changed = ProductSpec { shape: Shape { m, k, n, batch }, ..spec.clone() };
            assert!(changed.plan().is_err(), "{changed:?}");
        }
        for (q_bits, digit_limbs, log_n) in
            [(vec![], 1, 12), (vec![40; 4], 0, 12), (vec![40; 4], 1, 0), (vec![40; 4], 1, 99)]
        {
            let mut changed = spec.clone();
            (changed.params.q_bits, changed.params.digit_limbs, changed.params.log_n) = (q_bits, digit_limbs, log_n);
            assert!(changed.plan().is_err(), "{changed:?}");
        }
    }
    // More ciphertexts than a file holds.
    let Err(e) = plan(&product((1 << 12, 1, 1 << 12), 1 << 12, 1e-4)) else { panic!("too many ciphertexts") };
    assert!(e.to_string().contains("in smaller batches"), "{e}");
}

/// A compact plan has results near the smallest of all that were weighed, with the wanted error, and of such the least time.
#[test]
fn compact_plans_have_the_smallest_results() {
    let quick = Planner { memory: u64::MAX, ..Planner::new(CostModel::default()) };
    let compact = Planner { compact: true, ..quick.clone() };
    let mut saved = Vec::new();
    for (shape, batch, error) in
        [((2000, 2000, 400), 1, 1e-3), ((569, 30, 5), 1, 1e-4), ((6, 10, 5), 8, 1e-4), ((300, 500, 3), 1, 1e-2)]
    {
        let goal = product(shape, batch, error);
        let [quick, plan] = [&quick, &compact].map(|planner| planner.plan(&goal).unwrap());
        let bytes = |plan: &Plan| plan.summary().operands.last().unwrap().wire_bytes;
        assert!(plan.summary().predicted_error <= error, "{plan}");
        let taken = plan.considered().iter().find(|c| c.verdict == "taken").unwrap();
        assert_eq!(taken.result_bytes, Some(bytes(&plan)), "{plan}");
        for other in plan.considered().iter().filter(|c| c.error <= error) {
            let small = |times: f64| other.result_bytes.unwrap() as f64 * times < bytes(&plan) as f64;
            assert!(!small(1.25), "{plan}");
            assert!(other.seconds * 1.05 >= taken.seconds || other.verdict.contains("bytes of results"), "{plan}");
        }
        saved.push(bytes(&quick) as f64 / bytes(&plan) as f64);
        // It is an ordinary plan, and its file says nothing of how it was chosen.
        assert_eq!(Plan::from_json(&plan.to_json().unwrap()).unwrap(), plan);
    }
    println!("results are smaller by {saved:.2?}");
    assert!(saved.iter().all(|x| *x >= 1.0) && saved[..2].iter().all(|x| *x > 3.0), "{saved:.2?}");
}

/// In a process of its own, whose memory no other test takes.
#[test]
fn plans_of_every_size_take_little() {
    let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
    let out = alone.args(["--exact", "planning::plans_of_every_size", "--ignored", "--nocapture"]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
#[ignore = "part of the test above"]
fn plans_of_every_size() {
    let mut goals = Vec::new();
    for side in [1, 2, 5, 16, 33, 64, 65, 96, 100, 127, 128, 129, 200, 256, 257, 500, 512, 1000, 1024] {
        for (batch, error) in [(1, 1e-4), (8, 1e-4), (1, 1e-8)] {
            goals.push(product((side, side, side), batch, error));
        }
    }
    for shape in [(1, 100, 1), (100, 3, 5), (128, 128, 1), (1, 1000, 1), (1000, 1, 1000), (3, 5000, 2), (1 << 24, 1, 1)]
    {
        goals.push(product(shape, 1, 1e-4));
    }
    goals.extend([(16, 4), (64, 2), (128, 2), (300, 3)].map(|(side, length)| expression(side, length)));
    let planner = Planner { memory: 64 << 30, ..Planner::new(CostModel::default()) };
    let (mut slowest, mut of) = (Duration::ZERO, String::new());
    for goal in &goals {
        let start = Instant::now();
        match planner.plan(goal) {
            Ok(_) | Err(MatrixError::NoPlan { .. }) => {}
            Err(e) => panic!("{e}"),
        }
        if start.elapsed() > slowest {
            (slowest, of) = (start.elapsed(), format!("{:?} in batches of {}", goal.expression.inputs(), goal.batch));
        }
    }
    println!("{} plans; the slowest took {slowest:?}: {of}; peak {:?} bytes", goals.len(), peak_bytes());
    assert!(peak_bytes().is_none_or(|bytes| bytes < 200 << 20), "{:?} bytes", peak_bytes());
    // Building what 128×128 matrices consider took five seconds and more.
    assert!(slowest < Duration::from_secs(2), "{slowest:?} for {of}");
}
