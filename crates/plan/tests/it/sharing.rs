//! Plans whose key several parties hold.

use sudare_expr::{Expr, InputSpec, Node, Operation};
use sudare_methods::MatrixError;
use sudare_plan::{CostModel, Goal, Plan, Planner, Sharing};
use sudare_rlwe::multiparty::Flooding;
use sudare_rlwe::noise::NEGLIGIBLE;
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::{SecretDistribution, Security};

fn sum() -> Expr {
    let inputs = ["A", "B", "C"].map(|name| InputSpec::new(name, (32, 31), 1.0)).into();
    let mut nodes: Vec<Node> = (0..3).map(Node::input).collect();
    nodes.extend([Node::new(Operation::Add, &[0, 1]), Node::new(Operation::Add, &[3, 2])]);
    Expr::new(inputs, nodes, 4).unwrap()
}

fn product(side: usize) -> Expr {
    Expr::product(InputSpec::new("A", (side, side), 1.0), InputSpec::new("B", (side, side), 1.0)).unwrap()
}

fn shared(expression: Expr, error: f64, releases: (u64, u32)) -> Goal {
    Goal {
        release: Some(ReleasePolicy::new(releases.0, releases.1).unwrap()),
        sharing: Some(Sharing { parties: 3, threshold: 2 }),
        ..Goal::new(expression, error)
    }
}

/// A + B + 2·C of integers up to a bound.
fn counts(largest: u128, releases: (u64, u32)) -> Goal {
    let inputs = ["A", "B", "C"].map(|name| InputSpec::integers(name, (5, 7), largest)).into();
    let mut nodes: Vec<Node> = (0..3).map(Node::input).collect();
    nodes.extend([
        Node::new(Operation::Add, &[0, 1]),
        Node::new(Operation::Scale { by: 2.0 }, &[2]),
        Node::new(Operation::Add, &[3, 4]),
    ]);
    shared(Expr::new(inputs, nodes, 5).unwrap(), 0.0, releases)
}

fn plan(goal: &Goal) -> Result<Plan, MatrixError> {
    Planner::new(CostModel::default()).plan(goal)
}

#[test]
fn the_error_is_kept_with_the_noise_of_all_parties() {
    let plan_of = |error: f64| plan(&shared(sum(), error, (100, 30))).unwrap();
    for error in [1e-2, 1e-6, 1e-10] {
        let plan = plan_of(error);
        let literal = plan.program().literal();
        assert_eq!(literal.secret, SecretDistribution::TernarySum { parties: 3 });
        assert_eq!(literal.security, Security::Bits128);
        assert!(plan.summary().predicted_error <= error, "{plan}");
        // What is hidden is far below what is shown: √(24·100)·2^15 and more.
        let opening = plan.opening().unwrap();
        assert!(opening.expected.error * (2400f64.sqrt() * 32768.0) < plan.summary().predicted_error);
        assert_eq!(opening.policy, ReleasePolicy::new(100, 30).unwrap());
        assert_eq!(Plan::from_json(&plan.to_json().unwrap()).unwrap(), plan);
        assert!(plan.to_string().contains("3 parties, any 2 of whom decrypt"), "{plan}");
    }
    // Room for the noise is reserved, and a larger modulus holds it.
    let alone = plan(&Goal::new(sum(), 1e-10)).unwrap();
    assert!(plan_of(1e-10).summary().log_qp > alone.summary().log_qp);
}

#[test]
fn products_leave_nothing_beside_the_result() {
    let plan = plan(&shared(product(3), 1e-3, (10, 20))).unwrap();
    assert_eq!(plan.summary().method, "circuit");
    assert!(plan.summary().predicted_error <= 1e-3, "{plan}");
}

#[test]
fn several_ciphertexts_are_several_releases() {
    let inputs = vec![InputSpec::new("A", (200, 200), 1.0), InputSpec::new("B", (200, 200), 1.0)];
    let nodes = vec![Node::input(0), Node::input(1), Node::new(Operation::Add, &[0, 1])];
    let plan = plan(&shared(Expr::new(inputs, nodes, 2).unwrap(), 1e-4, (7, 30))).unwrap();
    let count = plan.engine().figures().size(2).unwrap().count as u64;
    assert!(count > 1);
    assert_eq!(plan.opening().unwrap().policy.releases(), 7 * count);
}

/// Integers are exact under the noise of all parties, whose room is in the modulus.
#[test]
fn sums_of_integers_are_shared() {
    let sums = plan(&counts(1 << 40, (100, 30))).unwrap();
    let literal = sums.program().literal();
    assert_eq!(literal.secret, SecretDistribution::TernarySum { parties: 3 });
    assert_eq!((sums.summary().predicted_error, sums.summary().keys.len()), (0.0, 0));
    let engine = sums.exact().unwrap();
    let (noises, policy) = engine.opening().unwrap();
    assert_eq!((noises.len(), policy.security_bits()), (engine.moduli().len(), 30));
    let count = sums.engine().figures().size(sums.expression().output()).unwrap().count as u64;
    assert_eq!(policy.releases(), 100 * count);
    for (params, noise) in engine.moduli().iter().zip(noises) {
        let flooding = Flooding::new(policy, *noise).unwrap();
        let total = noise + flooding.bound(&NEGLIGIBLE, params.degree(), 2);
        assert!(total > 1e6 * noise && total.log2() <= params.noise().log_limit(params.max_level()));
    }
    assert!(sums.to_string().contains("3 parties, any 2 of whom decrypt"), "{sums}");
    assert_eq!(Plan::from_json(&sums.to_json().unwrap()).unwrap(), sums);
    let alone = plan(&Goal { release: None, sharing: None, ..counts(1 << 40, (100, 30)) }).unwrap();
    assert!(alone.summary().log_qp < sums.summary().log_qp && alone.exact().unwrap().opening().is_none());
}

#[test]
fn what_several_parties_do_not_decrypt_is_refused() {
    let goal = shared(sum(), 1e-4, (10, 30));
    let refused = |goal: Goal, words: &str| {
        let error = plan(&goal).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    for (parties, threshold) in [(1, 1), (3, 1), (3, 4), (101, 2)] {
        refused(Goal { sharing: Some(Sharing { parties, threshold }), ..goal.clone() }, "threshold from 2");
    }
    refused(Goal { release: None, ..goal.clone() }, "release");
    let integers = Expr::product(InputSpec::integers("A", (2, 2), 9), InputSpec::integers("B", (2, 2), 9)).unwrap();
    refused(Goal { expression: integers, error: 0.0, ..goal.clone() }, "sums beside its result");
    refused(Goal { release: None, sharing: goal.sharing, ..counts(1000, (7, 30)) }, "release");
    refused(Goal { sharing: None, ..counts(1000, (7, 30)) }, "no error");
    refused(
        Goal { release: goal.release, sharing: goal.sharing, ..Goal::moments(9, vec![1.0; 3]).unwrap() },
        "from sums",
    );
    refused(Goal { error: 1e-30, ..goal.clone() }, "least error");
    // A file that names another number of parties than its parameters.
    let text = plan(&goal).unwrap().to_json().unwrap();
    let other = text.replace("\"parties\": 3,\n      \"threshold\"", "\"parties\": 4,\n      \"threshold\"");
    assert_ne!(text, other);
    assert!(Plan::from_json(&other).is_err());
    assert!(plan(&Goal::new(sum(), 1e-4)).unwrap().opening().is_err());
}
