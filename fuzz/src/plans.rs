//! A plan that anybody may have written: what is taken keeps what plans promise.

use super::mutation::{self, Random};
use sudare_expr::{Expr, InputSpec};
use sudare_plan::resealed_for_tests;
use sudare_plan::{CostModel, Goal, Plan, Planner, Sharing};
use sudare_ring::Kinded;
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::Security;

/// Plans of every kind of program.
pub fn seeds() -> Vec<Vec<u8>> {
    let planner = |method: Option<&str>| Planner {
        method: method.map(str::to_owned),
        memory: 4 << 30,
        ..Planner::new(CostModel::default())
    };
    let real = |name, shape| InputSpec::new(name, shape, 1.0);
    let whole = |name, shape| InputSpec::integers(name, shape, 100);
    let product = Expr::product(real("A", (6, 10)), real("B", (10, 5))).expect("it has a value");
    let exact = Expr::product(whole("A", (3, 4)), whole("B", (4, 2))).expect("it has a value");
    let function = r#"{"inputs": [{"name": "A", "rows": 3, "cols": 4, "max_abs": 2.0},
        {"name": "W", "rows": 3, "cols": 4, "max_abs": 1.0, "plain": true}], "nodes": [{"op": "input", "input": 0},
        {"op": "input", "input": 1}, {"op": "mul", "operands": [0, 0]}, {"op": "scale", "by": -0.16, "operands": [2]},
        {"op": "shift", "by": 1.0, "operands": [3]},
        {"op": "approximation", "error": 1e-4, "low": -2.0, "high": 2.0, "operands": [4, 0]},
        {"op": "mul", "operands": [5, 1]}, {"op": "bounded", "max_abs": 1.5, "operands": [6]},
        {"op": "transpose", "operands": [7]}, {"op": "sum", "axis": 0, "operands": [8]},
        {"op": "repeat", "axis": 0, "size": 2, "operands": [9]}, {"op": "neg", "operands": [10]}], "output": 11}"#;
    let function = Expr::from_json(function).expect("it has a value");
    let shared = Goal {
        release: ReleasePolicy::new(5, 20).ok(),
        sharing: Some(Sharing { parties: 3, threshold: 2 }),
        ..Goal::new(product.clone(), 1e-2)
    };
    let goals = [
        (Goal::new(product.clone(), 1e-4), Some("coefficient")),
        (Goal::new(product.clone(), 1e-4), Some("tiled")),
        (Goal::new(product, 1e-4), None),
        (Goal::new(exact, 0.0), None),
        (Goal::new(function, 1e-2), None),
        (Goal::moments(50, vec![1.0, 20.0, 3.0]).expect("it is a table"), None),
        (shared, None),
    ];
    let text = |(goal, method): (Goal, Option<&str>)| {
        let plan = planner(method).plan(&goal).unwrap_or_else(|e| panic!("{method:?}: {e}"));
        plan.to_json().expect("a plan is written").into_bytes()
    };
    goals.into_iter().map(text).collect()
}

/// Changes the text as a document, or as bytes.
pub fn mutate(random: &mut Random, data: &mut Vec<u8>, other: &[u8]) {
    if mutation::below(random, 8) > 0
        && let Ok(mut text) = String::from_utf8(std::mem::take(data)).map_err(|e| *data = e.into_bytes())
    {
        let changed = mutation::json(random, &mut text);
        *data = text.into_bytes();
        if changed {
            return;
        }
    }
    mutation::bytes(random, data, other);
}

/// Reads it as it is, and with its hash made right; whether it was taken.
pub fn check(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let resealed = resealed_for_tests(text).is_some_and(|text| read(&text));
    read(text) || resealed
}

fn read(text: &str) -> bool {
    let plan = match Plan::from_json(text) {
        Ok(plan) => plan,
        Err(refused) => {
            // It says something, of a kind, for a terminal, and not the whole file again.
            let words = refused.to_string();
            assert!((1..2048).contains(&words.len()) && !words.contains(char::is_control), "{words:?}");
            let _ = refused.kind();
            return false;
        }
    };
    let (goal, summary) = (plan.goal(), plan.summary());
    assert!(goal.security != Security::Insecure && plan.params().security() >= goal.security);
    assert!(summary.security_bits >= 128 && summary.predicted_error <= goal.error, "{plan}");
    // A person reads this in a terminal.
    let shown = plan.to_string();
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    // What is written is read again as the same, to the byte.
    let written = plan.to_json().expect("what was read can be written");
    let again = Plan::from_json(&written).expect("what was written can be read");
    assert!(again == plan && again.to_json().expect("it was written before") == written);
    true
}
