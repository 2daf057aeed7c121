//! The stored lattice estimates are those of the sets in the code, and the claims hold by them.
//!
//! A set or a limit that changes fails here until `scripts/estimates.py` has been run again.

#[allow(dead_code)]
#[path = "../../examples/sets.rs"]
mod sets;

use serde_json::{Value, json};
use sets::{Kind, Problem};
use std::collections::BTreeMap;

const STORED: &str = include_str!("../../../../docs/estimates/estimates.json");
const PAGE: &str = include_str!("../../../../docs/estimates/README.md");

/// By how much the limits of the guidelines may fall short of their claims under the estimator of today.
const SLACK: f64 = 0.25;

fn stored() -> Vec<Value> {
    let all: Value = serde_json::from_str(STORED).unwrap();
    all["estimates"].as_array().unwrap().clone()
}

/// A problem as it is stored, through the same reader.
fn as_stored(problem: &Problem) -> Value {
    serde_json::from_str(&serde_json::to_string(problem).unwrap()).unwrap()
}

/// What differs between the code and the stored table.
fn differences(shipped: &[Problem], stored: &[Value]) -> Vec<String> {
    let mut known: BTreeMap<String, &Value> =
        stored.iter().map(|e| (e["problem"]["name"].as_str().unwrap().to_owned(), &e["problem"])).collect();
    let mut out = Vec::new();
    for problem in shipped {
        match known.remove(&problem.name) {
            None => out.push(format!("{} has no estimate", problem.name)),
            Some(found) if *found != as_stored(problem) => {
                out.push(format!("{} was estimated as {found}, and is {}", problem.name, as_stored(problem)));
            }
            Some(_) => {}
        }
    }
    out.extend(known.into_keys().map(|name| format!("{name} is estimated, and shipped no more")));
    out
}

#[test]
fn every_shipped_set_and_limit_has_its_estimate() {
    let differences = differences(&sets::shipped().unwrap(), &stored());
    assert!(differences.is_empty(), "run scripts/estimates.py: {differences:#?}");
}

#[test]
fn a_change_is_noticed() {
    let (shipped, stored) = (sets::shipped().unwrap(), stored());
    for i in [0, shipped.len() / 2, shipped.len() - 1] {
        let mut changed = shipped.clone();
        changed[i].log_q += 1e-6;
        assert_eq!(differences(&changed, &stored).len(), 1);
        changed.remove(i);
        assert_eq!(differences(&changed, &stored).len(), 1);
    }
}

#[test]
fn claims_hold_by_the_stored_estimates() {
    for estimate in stored() {
        let claim = estimate["problem"]["claim"].as_f64().unwrap();
        let bits: Vec<f64> = estimate["bits"].as_object().unwrap().values().filter_map(Value::as_f64).collect();
        // Where no attack was found it takes over 500 bits.
        let least = estimate["least"].as_f64().unwrap_or(500.0);
        assert!(bits.iter().all(|b| *b >= least) && bits.contains(&least) != bits.is_empty(), "{estimate}");
        let limit = estimate["problem"]["kind"] == json!(Kind::Limit);
        let slack = if limit { SLACK } else { 0.0 };
        assert!(least >= claim - slack, "{estimate}");
    }
}

#[test]
fn the_page_shows_what_is_stored() {
    for estimate in stored() {
        let name = estimate["problem"]["name"].as_str().unwrap();
        let least = estimate["least"].as_f64().map_or("over 500".to_owned(), |bits| format!("{bits:.2}"));
        let cells = (format!("| {name} |"), format!("| {least} |"));
        assert!(PAGE.lines().any(|l| l.starts_with(&cells.0) && l.contains(&cells.1)), "{name} {least:.2}");
    }
}
