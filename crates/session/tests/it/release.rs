//! Releases: the promise that they keep, what they count, and what they refuse.

use crate::common::random;
use sudare_expr::{Expr, InputSpec, Matrix, Node, Operation};
use sudare_he::HeError;
use sudare_he::ckks::{Ciphertext, State};
use sudare_methods::MatrixError;
use sudare_plan::{CostModel, Goal, Plan, Planner};
use sudare_rlwe::RlweError;
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::wire::{Bundle, Wire, secret_key_from_bytes, secret_key_to_bytes};
use sudare_session::{Client, Encrypted};

fn planner() -> Planner {
    Planner::new(CostModel::default())
}

fn policy(releases: u64, bits: u32) -> ReleasePolicy {
    ReleasePolicy::new(releases, bits).unwrap()
}

fn product(m: usize, k: usize, n: usize) -> Expr {
    let input = |name: &str, rows, cols| InputSpec::new(name, (rows, cols), 1.0);
    Expr::product(input("A", m, k), input("B", k, n)).unwrap()
}

fn released_product(releases: u64, bits: u32, error: f64) -> Plan {
    let goal = Goal { release: Some(policy(releases, bits)), ..Goal::new(product(5, 8, 3), error) };
    planner().plan(&goal).unwrap()
}

/// A client, and an encrypted product with its true value.
fn multiplied(plan: &Plan) -> (Client, Encrypted, Matrix) {
    let (a, b) = (random(1, 5, 8), random(2, 8, 3));
    let client = Client::new(plan, 2).unwrap();
    let (x, y) = (client.encrypt("A", &a).unwrap(), client.encrypt("B", &b).unwrap());
    let z = client.server().unwrap().matmul(&x, &y).unwrap();
    (client, z, a.matmul(&b).unwrap())
}

#[test]
fn the_result_of_every_method_is_what_its_plan_expects() {
    let goal = Goal::new(product(6, 10, 5), 1e-4);
    let (a, b) = (random(3, 6, 10), random(4, 10, 5));
    let all = planner().plan(&goal).unwrap();
    let mut methods: Vec<String> = all.considered().iter().map(|c| c.method.clone()).collect();
    methods.sort();
    methods.dedup();
    assert!(methods.len() >= 6, "{methods:?}");
    for method in methods {
        let plan = Planner { method: Some(method.clone()), ..planner() }.plan(&goal).unwrap();
        let client = Client::new(&plan, 2).unwrap();
        let (x, y) = (client.encrypt("A", &a).unwrap(), client.encrypt("B", &b).unwrap());
        let expected = plan.expected().unwrap();
        for c in client.server().unwrap().matmul(&x, &y).unwrap().ciphertexts().unwrap() {
            assert_eq!(c.level(), expected.level, "{method}");
            assert!((c.scale() / expected.scale - 1.0).abs() < 1e-13, "{method}: {} {}", c.scale(), expected.scale);
        }
    }
}

#[test]
fn a_released_product_keeps_its_promise() {
    for (releases, bits, error) in [(1, 20, 1e-4), (10, 30, 1e-4), (1000, 40, 1e-2)] {
        let plan = released_product(releases, bits, error);
        let promised = plan.summary().predicted_error;
        assert!(promised <= error && plan.expected().unwrap().error < promised * 1e-4, "{plan}");
        assert!(plan.to_string().contains("before its noise"), "{plan}");
        assert_eq!(Plan::from_json(&plan.to_json().unwrap()).unwrap(), plan);
        let (client, z, want) = multiplied(&plan);
        let private = client.decrypt(&z).unwrap().max_difference(&want);
        assert!(private <= plan.expected().unwrap().error, "{private:e}\n{plan}");
        let mut largest = 0f64;
        for _ in 0..releases.min(20) {
            largest = largest.max(client.decrypt_for_release(&z).unwrap().max_difference(&want));
        }
        // Within the promise, and no closer to it than noise of that width brings it.
        assert!(largest <= promised && largest > promised / 50.0, "{largest:e} {promised:e}");
        assert_eq!(client.releases_left(), releases - releases.min(20));
    }
}

#[test]
fn a_released_expression_keeps_its_promise() {
    let input = |name: &str| InputSpec::new(name, (4, 4), 1.0);
    // (A @ B) * A - 0.5 * B, and its column sums.
    let nodes = vec![
        Node::input(0),
        Node::input(1),
        Node::new(Operation::Matmul, &[0, 1]),
        Node::new(Operation::Mul, &[2, 0]),
        Node::new(Operation::Scale { by: 0.5 }, &[1]),
        Node::new(Operation::Sub, &[3, 4]),
        Node::new(Operation::Sum { axis: 0 }, &[5]),
    ];
    let expression = Expr::new(vec![input("A"), input("B")], nodes, 6).unwrap();
    let goal = Goal { release: Some(policy(5, 30)), ..Goal::new(expression, 1e-3) };
    let plan = planner().plan(&goal).unwrap();
    let promised = plan.summary().predicted_error;
    assert!(promised <= 1e-3);
    let (a, b) = (random(5, 4, 4), random(6, 4, 4));
    let client = Client::new(&plan, 2).unwrap();
    let (x, y) = (client.encrypt("A", &a).unwrap(), client.encrypt("B", &b).unwrap());
    let z = client.server().unwrap().run(&[x.clone(), y]).unwrap();
    let (level, scale) = (z.level(), z.ciphertexts().unwrap()[0].scale());
    assert!(
        (level, scale) == (plan.expected().unwrap().level, plan.expected().unwrap().scale),
        "{level} {scale} {:?}",
        plan.expected().unwrap()
    );
    let ab = a.matmul(&b).unwrap();
    let want = Matrix::from_fn(1, 4, |_, j| (0..4).map(|i| ab.get(i, j) * a.get(i, j) - 0.5 * b.get(i, j)).sum());
    for _ in 0..5 {
        let difference = client.decrypt_for_release(&z).unwrap().max_difference(want.as_ref().unwrap());
        assert!(difference <= promised, "{difference:e} {promised:e}");
    }
    // The result is what is planned to be released, and only so often.
    assert!(matches!(client.decrypt_for_release(&x), Err(MatrixError::NotPlanned { .. })));
    let refused = client.decrypt_for_release(&z);
    assert!(matches!(refused, Err(MatrixError::He(HeError::Rlwe(RlweError::ReleasesUsedUp { declared: 5 })))));
    assert!(client.decrypt(&z).is_ok());
}

#[test]
fn a_batch_is_one_release() {
    let goal = Goal { batch: 3, release: Some(policy(2, 20)), ..Goal::new(product(2, 3, 2), 1e-3) };
    let plan = planner().plan(&goal).unwrap();
    let client = Client::new(&plan, 1).unwrap();
    let (a, b): (Vec<_>, Vec<_>) = (0..3).map(|s| (random(s, 2, 3), random(s + 9, 3, 2))).unzip();
    let quiet = sudare_session::QUIET;
    let (x, y) = (client.encrypt_batch("A", &a, quiet).unwrap(), client.encrypt_batch("B", &b, quiet).unwrap());
    let z = client.server().unwrap().matmul(&x, &y).unwrap();
    let shown = client.decrypt_batch_for_release(&z).unwrap();
    for ((a, b), c) in a.iter().zip(&b).zip(&shown) {
        assert!(c.max_difference(&a.matmul(b).unwrap()) <= plan.summary().predicted_error);
    }
    assert_eq!(client.releases_left(), 1);
}

/// The same result as a server writes it that changes what it says of its ciphertexts.
fn changed(plan: &Plan, z: &Encrypted, change: impl Fn(&Ciphertext) -> Ciphertext) -> Encrypted {
    let bundle = Bundle::from_bytes(plan.params(), &z.to_bytes().unwrap()).unwrap();
    let cts = bundle.ciphertexts().iter().map(change).collect();
    let forged = Bundle::new(plan.params(), bundle.key(), bundle.application().to_vec(), cts).unwrap();
    Encrypted::from_bytes(plan, &forged.to_bytes().unwrap()).unwrap()
}

#[test]
fn what_a_result_says_of_itself_is_compared_with_the_plan() {
    let plan = released_product(3, 30, 1e-3);
    let (client, z, want) = multiplied(&plan);
    let state = |c: &Ciphertext, scale: f64, bound: f64, noise: f64| {
        let state = State { scale: c.scale() * scale, bound: c.bound() * bound, noise: c.noise() * noise };
        Ciphertext::from_parts(c.inner().clone(), state).unwrap()
    };
    for (forged, field) in [
        (changed(&plan, &z, |c| state(c, 1.0, 1.0, 0.0)), "error bound"),
        (changed(&plan, &z, |c| state(c, 1.0, 1.0, 1e-9)), "error bound"),
        (changed(&plan, &z, |c| state(c, 1e-3, 1.0, 1.0)), "scale"),
        (changed(&plan, &z, |c| state(c, 1.001, 1.0, 1.0)), "scale"),
    ] {
        let refused = client.decrypt_for_release(&forged);
        let named = |what: &str| what == field;
        assert!(
            matches!(&refused, Err(MatrixError::He(HeError::Rlwe(RlweError::NotAsComputed { what, .. }))) if named(what)),
            "{refused:?}"
        );
    }
    assert_eq!(client.releases_left(), 3, "what is refused is not counted");
    // A bound on the message is not used, and noise may be said to be larger: the plan's is taken.
    let modest = changed(&plan, &z, |c| state(c, 1.0, 1e-12, 1e6));
    let shown = client.decrypt_for_release(&modest).unwrap();
    assert!(shown.max_difference(&want) <= plan.summary().predicted_error);
}

#[test]
fn releases_are_the_keys() {
    let plan = released_product(2, 20, 1e-3);
    let (client, z, _) = multiplied(&plan);
    client.decrypt_for_release(&z).unwrap();
    let saved = secret_key_to_bytes(client.secret_key()).unwrap();
    let load =
        |plan: &Plan| Client::with_secret_key(plan, secret_key_from_bytes(plan.params(), &saved).unwrap(), 1).unwrap();
    let again = load(&plan);
    assert_eq!(again.releases_left(), 1);
    again.decrypt_for_release(&z).unwrap();
    let used_up = again.decrypt_for_release(&z);
    assert!(matches!(used_up, Err(MatrixError::He(HeError::Rlwe(RlweError::ReleasesUsedUp { declared: 2 })))));

    // A plan made without it has the wrong precision: the remedy is a plan with it.
    let plain = planner().plan(&Goal::new(product(5, 8, 3), 1e-4)).unwrap();
    let (client, z, _) = multiplied(&plain);
    assert_eq!(client.releases_left(), 0);
    let refused = client.decrypt_for_release(&z).unwrap_err();
    assert_eq!(refused, MatrixError::NoRelease { what: "plan" });
    assert!(refused.to_string().contains("release=Release("), "{refused}");
}

#[test]
fn what_no_plan_can_release_is_refused_with_the_figures() {
    let goal =
        |releases, bits, error| Goal { release: Some(policy(releases, bits)), ..Goal::new(product(5, 8, 3), error) };
    let refused = planner().plan(&goal(1 << 24, 64, 1e-9)).unwrap_err().to_string();
    assert!(refused.contains("release fewer results or with fewer bits"), "{refused}");
    // The count and the bits are part of what a plan is.
    let text = released_product(10, 30, 1e-3).to_json().unwrap();
    for (from, to) in [("\"releases\": 10", "\"releases\": 9"), ("\"security_bits\": 30", "\"security_bits\": 20")] {
        assert!(text.contains(from));
        assert!(matches!(Plan::from_json(&text.replacen(from, to, 1)), Err(MatrixError::PlanFile { .. })));
    }
}
