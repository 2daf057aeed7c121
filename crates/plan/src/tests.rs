//! Files of plans: whatever could lower security or precision is worked out again.

use super::*;
use serde_json::{Value, json};
use sudare_expr::Shape;
use sudare_expr::{InputSpec, Node, Operation};
use sudare_he::ckks::{Decryptor, Encryptor};
use sudare_rlwe::keys::SecretKey;

fn planner() -> Planner {
    Planner { memory: 4 << 30, ..Planner::new(CostModel::default()) }
}

fn product(method: &str, error: f64) -> Plan {
    let input = |name, shape| InputSpec::new(name, shape, 2.0);
    let expr = Expr::product(input("A", (6, 10)), input("B", (10, 5))).unwrap();
    Planner { method: Some(method.into()), ..planner() }.plan(&Goal::new(expr, error)).unwrap()
}

fn circuit() -> Plan {
    let nodes = vec![Node::input(0), Node::new(Operation::Mul, &[0, 0]), Node::new(Operation::Sum { axis: 0 }, &[1])];
    let expr = Expr::new(vec![InputSpec::new("A", (5, 7), 2.0)], nodes, 2).unwrap();
    planner().plan(&Goal::new(expr, 1e-4)).unwrap()
}

/// A plan's text with one value in another's place, and the hash of what it then says, as whoever
/// edits a file can write it.
fn edited(plan: &Plan, pointer: &str, value: &Value) -> String {
    let mut text: Value = serde_json::from_str(&plan.to_json().unwrap()).unwrap();
    *text.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value.clone();
    let text = text.to_string();
    resealed_for_tests(&text).unwrap_or(text)
}

/// What is refused with this field's name, or, named "", refused by what the parameters or the
/// text themselves have to be.
fn refused(plan: &Plan, edits: &[(&str, Value, &str)]) {
    for (pointer, value, named) in edits {
        let told = Plan::from_json(&edited(plan, pointer, value)).expect_err(pointer);
        let field = matches!(&told, MatrixError::PlanField { field, .. } if field == named);
        let other = matches!(told, MatrixError::PlanFile { .. });
        assert!(if named.is_empty() { other } else { field }, "{pointer} = {value}: {told}");
    }
}

/// Every field that security, noise, scale or bounds hang on.
fn edits_of_parameters(program: &str) -> Vec<(String, Value, &'static str)> {
    let at = |name: &str| format!("/program/{program}/params/{name}");
    vec![
        (at("security"), json!("Insecure"), "program.params.security"),
        (at("security"), json!("Bits256"), ""),
        (at("secret"), json!({"FixedWeight": {"weight": 1}}), "program.params.secret"),
        (at("secret"), json!("Gaussian"), "program.params.secret"),
        (at("log_n"), json!(9), ""),
        (at("log_n"), json!(70), ""),
        (at("q_bits"), json!([]), ""),
        (at("q_bits"), json!([60, 60, 60, 60, 60, 60, 60, 60, 60]), ""),
        (at("log_scale"), json!(0), ""),
        (at("digit_limbs"), json!(0), ""),
    ]
}

#[test]
fn a_file_lowers_nothing() {
    for method in ["spread3d", "coefficient", "module", "improved3d", "jiang-bsgs"] {
        let plan = product(method, 1e-4);
        assert_eq!(Plan::from_json(&plan.to_json().unwrap()).unwrap(), plan);
        let own = edits_of_parameters("product");
        refused(&plan, &own.iter().map(|(p, v, n)| (p.as_str(), v.clone(), *n)).collect::<Vec<_>>());
        refused(
            &plan,
            &[
                ("/goal/error", json!(1e-30), "goal.error"),
                ("/goal/error", json!(0.0), ""),
                ("/goal/security", json!("Insecure"), "goal.security"),
                ("/goal/security", json!("Bits256"), "program.params.security"),
                ("/goal/batch", json!(0), ""),
                ("/goal/batch", json!(3), ""),
                ("/goal/expression/inputs/0/rows", json!(7), ""),
                ("/goal/expression/inputs/0/max_abs", json!(-1.0), ""),
                ("/program/product/shape/m", json!(0), ""),
                ("/program/product/shape/k", json!(1u64 << 40), ""),
                ("/program/product/params/log_scale", json!(12), "goal.error"),
                ("/version", json!(1), ""),
                ("/considered/0/verdict", json!("\u{1b}[2J"), "considered"),
                ("/considered/0/method", json!("x".repeat(1000)), "considered"),
                ("/considered/0/seconds", json!(-1.0), "considered"),
                ("/considered/0/log_n", json!(200), "considered"),
            ],
        );
        let text = plan.to_json().unwrap().replace(&plan.hash().hex(), "00");
        assert!(matches!(Plan::from_json(&text), Err(MatrixError::PlanFile { .. })));
        // Larger values than the modulus holds.
        let bound = edited(&plan, "/goal/expression/inputs/0/max_abs", &json!(1e15));
        assert!(matches!(Plan::from_json(&bound), Err(MatrixError::PlanField { .. })), "{method}");
        let prime = edited(&plan, "/program/product/params/q_bits/0", &json!(20));
        assert!(Plan::from_json(&prime).is_err(), "{method}");
    }
}

#[test]
fn a_file_of_a_circuit_lowers_nothing() {
    let plan = circuit();
    let own = edits_of_parameters("circuit");
    refused(&plan, &own.iter().map(|(p, v, n)| (p.as_str(), v.clone(), *n)).collect::<Vec<_>>());
    refused(
        &plan,
        &[
            ("/goal/error", json!(1e-30), "goal.error"),
            ("/goal/security", json!("Bits192"), "program.params.security"),
            ("/goal/expression/inputs/0/max_abs", json!(1e9), "program.params.q_bits"),
            ("/program/circuit/tile", json!(3), ""),
            ("/program/circuit/tile", json!(1u64 << 40), ""),
            ("/program/circuit/params/log_scale", json!(14), "goal.error"),
        ],
    );
}

/// Methods' own options: none makes a plan of less than it says.
#[test]
fn options_in_a_file_keep_the_promise_or_are_refused() {
    let options = [
        ("coefficient", "block", json!([1 << 20, 1 << 20, 1])),
        ("coefficient", "block", json!([0, 1, 1])),
        ("coefficient", "block", json!([1, 1, 1])),
        ("coefficient", "relinearize", json!(true)),
        ("module", "side", json!(3)),
        ("module", "side", json!(1u64 << 40)),
        ("module", "slots", json!(1u64 << 40)),
        ("spread3d", "unroll", json!(4_000_000_000u32)),
        ("spread3d", "fold", json!(true)),
        ("improved3d", "exact_ring", json!(false)),
        ("improved3d", "clean_output", json!(true)),
        ("improved3d", "rescale_first", json!(false)),
    ];
    for (method, option, value) in options {
        let plan = product(method, 1e-4);
        let text = edited(&plan, &format!("/program/product/method/{option}"), &value);
        let Ok(changed) = Plan::from_json(&text) else { continue };
        let (s, goal) = (changed.summary(), changed.goal());
        assert!(s.predicted_error <= goal.error && s.security_bits >= 128, "{method} {option}: {changed}");
    }
}

/// What is shown is worked out: the text's own figures are not looked at.
#[test]
fn figures_of_a_file_carry_no_weight() {
    let plan = product("spread3d", 1e-4);
    for (name, value) in [
        ("predicted_error", json!(1e-30)),
        ("security_bits", json!(256)),
        ("log_qp", json!(1.0)),
        ("memory", json!(1)),
        ("key_switches", json!(-5.0)),
        ("method", json!("magic")),
        ("params", json!("00")),
    ] {
        let loaded = Plan::from_json(&edited(&plan, &format!("/summary/{name}"), &value)).unwrap();
        assert_eq!((loaded.summary(), loaded.to_string()), (plan.summary(), plan.to_string()), "{name}");
    }
}

fn exact(shape: Shape, left: u64, right: u64, security: Security) -> Result<Plan, MatrixError> {
    let input = |name: &str, shape, bound: u64| InputSpec::integers(name, shape, bound.into());
    let expr = Expr::product(input("A", (shape.m, shape.k), left), input("B", (shape.k, shape.n), right))?;
    planner().plan(&Goal { security, ..Goal::new(expr, 0.0) })
}

fn moments(rows: usize, bounds: &[f64], release: Option<ReleasePolicy>) -> Result<Plan, MatrixError> {
    planner().plan(&Goal { release, ..Goal::moments(rows, bounds.to_vec())? })
}

#[test]
fn exact_plans_hold_what_they_promise() {
    for (m, k, n, left, right) in
        [(1, 1, 1, 1, 1), (16, 16, 16, 1023, 1023), (100, 200, 30, 255, 1), (3, 5, 2, u64::MAX / 2, 1 << 40)]
    {
        let plan = exact(Shape::new(m, k, n), left, right, Security::Bits128).unwrap();
        let Program::Exact { exact } = plan.program() else { panic!("{plan}") };
        let product: u128 = exact.moduli.iter().map(|t| u128::from(*t)).product();
        assert!(product > 2 * u128::from(left) * u128::from(right) * k as u128);
        assert!(exact.blocks.a * exact.blocks.b * exact.blocks.c <= 1 << exact.params.log_n);
        assert_eq!(plan.summary().predicted_error, 0.0);
    }
    let small = exact(Shape::new(16, 16, 16), 1023, 1023, Security::Bits128).unwrap();
    assert!(small.program().literal().log_n <= 12, "{small}");
    for security in [Security::Bits128, Security::Bits192, Security::Bits256] {
        let plan = exact(Shape::new(8, 8, 8), 100, 100, security).unwrap();
        assert!(plan.params().security() >= security);
        assert!(plan.to_string().contains(&format!("{}-bit security", plan.params().security().bits())), "{plan}");
    }
    assert!(exact(Shape::new(1, 1, 1), 0, 1, Security::Bits128).is_err());
    let large = exact(Shape::new(4, 4, 4), u64::MAX, u64::MAX, Security::Bits128);
    assert!(matches!(large, Err(MatrixError::NoPlan { reason }) if reason.contains("117 bits")));
}

/// Every field of an exact plan's file, set to what would lower security, hold less or take more.
#[test]
fn a_file_of_an_exact_product_lowers_nothing() {
    let plan = exact(Shape::new(16, 16, 16), 1023, 1023, Security::Bits128).unwrap();
    assert_eq!(Plan::from_json(&plan.to_json().unwrap()).unwrap(), plan);
    refused(
        &plan,
        &[
            ("/program/exact/params/log_n", json!(9), "params.log_n"),
            ("/program/exact/params/log_n", json!(11), "blocks"),
            ("/program/exact/params/log_n", json!(13), "params.q_bits"),
            ("/program/exact/params/log_n", json!(40), "params.log_n"),
            ("/program/exact/params/security", json!("Insecure"), "program.params.security"),
            ("/program/exact/params/security", json!("Bits256"), "params.security"),
            ("/program/exact/params/secret", json!({"FixedWeight": {"weight": 1}}), "program.params.secret"),
            ("/program/exact/params/secret", json!("Gaussian"), "program.params.secret"),
            ("/program/exact/params/q_bits", json!([30]), "params.q_bits"),
            ("/program/exact/params/q_bits", json!([39, 39, 39, 39, 39, 39]), "params.q_bits"),
            ("/program/exact/params/q_bits", json!([]), "params.q_bits"),
            ("/program/exact/params/p_bits", json!([60]), "params.p_bits"),
            ("/program/exact/params/digit_limbs", json!(0), "params.digit_limbs"),
            ("/goal/security", json!("Insecure"), "goal.security"),
            ("/goal/security", json!("Bits256"), "program.params.security"),
            ("/goal/error", json!(1e-4), ""),
            ("/goal/batch", json!(0), ""),
            ("/goal/expression/inputs/0/rows", json!(1u64 << 40), ""),
            ("/goal/expression/inputs/0/rows", json!(0), ""),
            ("/goal/expression/inputs/0/integers", json!(0), ""),
            ("/goal/expression/inputs/0/integers", json!(1_000_000), ""),
            ("/goal/expression/inputs/0/max_abs", json!(1e9), ""),
            ("/program/exact/blocks/a", json!(0), "blocks"),
            ("/program/exact/blocks/b", json!(1 << 14), "blocks"),
            ("/program/exact/blocks/c", json!(u64::MAX), "blocks"),
            ("/program/exact/moduli", json!([101]), "moduli"),
            ("/program/exact/moduli", json!([]), "moduli"),
            // A product of 2^127.5: more than a centred result of 128 bits holds.
            ("/program/exact/moduli", json!([u64::MAX / 2 + 3, u64::MAX / 2 + 5, 3]), "moduli"),
            ("/program/exact/moduli", json!([(1u64 << 59) - 1, (1u64 << 59) - 3, 1023]), "moduli"),
            ("/program/kind", json!("table"), ""),
        ],
    );
    // Looser bounds ask for other moduli.
    let mut text: Value = serde_json::from_str(&plan.to_json().unwrap()).unwrap();
    text["goal"]["expression"]["inputs"][0]["integers"] = json!(1_000_000);
    text["goal"]["expression"]["inputs"][0]["max_abs"] = json!(1e6);
    assert!(matches!(Plan::from_json(&text.to_string()), Err(MatrixError::PlanField { field: "moduli", .. })));
    // Another time changes nothing but the time, and neither does another machine's list of prices.
    let slow = Plan::from_json(&edited(&plan, "/summary/seconds", &json!(5.0))).unwrap();
    assert_eq!((slow.hash(), slow.summary().seconds), (plan.hash(), 5.0));
    let dear = CostModel { mac_ns: 1e6, ..CostModel::default() };
    let again = Planner { cost: dear, ..planner() }.plan(plan.goal()).unwrap();
    assert_eq!(again.program() == plan.program(), again.hash() == plan.hash());
}

#[test]
fn a_file_of_a_table_lowers_nothing() {
    let plan = moments(50, &[1.0, 20.0, 3.0], None).unwrap();
    assert_eq!(Plan::from_json(&plan.to_json().unwrap()).unwrap(), plan);
    refused(
        &plan,
        &[
            ("/program/table/params/security", json!("Insecure"), "program.params.security"),
            ("/program/table/params/secret", json!({"FixedWeight": {"weight": 1}}), "program.params.secret"),
            ("/program/table/params/log_n", json!(9), "params.log_n"),
            ("/program/table/params/log_n", json!(90), "params.log_n"),
            ("/program/table/params/q_bits", json!([20]), "params.q_bits"),
            ("/program/table/params/q_bits/0", json!(20), "params.q_bits"),
            ("/program/table/params/p_bits", json!([]), "params.p_bits"),
            ("/program/table/params/digit_limbs", json!(0), "params.digit_limbs"),
            ("/program/table/params/log_scale", json!(10), "params.log_scale"),
            ("/goal/security", json!("Bits256"), "program.params.security"),
            ("/goal/error", json!(1e-30), "goal.error"),
            ("/goal/batch", json!(2), ""),
            ("/goal/expression/inputs/0/rows", json!(1), ""),
            ("/goal/expression/inputs/0/rows", json!(u64::MAX), ""),
            ("/goal/expression/inputs/0/columns", json!([]), ""),
            ("/goal/expression/inputs/0/columns", json!([1.0, 20.0]), ""),
            ("/goal/expression/inputs/0/columns/1", json!(-1.0), ""),
        ],
    );
    // As tables were written before they had plans.
    let old = json!({"rows": 50, "max_abs": [1.0, 20.0, 3.0],
        "params": serde_json::to_value(plan.program()).unwrap()["table"]["params"]});
    assert_eq!(Plan::from_json(&old.to_string()).unwrap(), plan);
    for (pointer, value) in [("/params/log_n", json!(9)), ("/params/security", json!("Insecure")), ("/rows", json!(1))]
    {
        let mut bad = old.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        assert!(Plan::from_json(&bad.to_string()).is_err(), "{pointer}");
    }
}

#[test]
fn statistics_without_digits_are_refused_with_the_figure() {
    let most = ReleasePolicy::new(1 << 24, 64).unwrap();
    let refused = moments(100, &[1.0; 3], Some(most)).unwrap_err().to_string();
    assert!(refused.contains("wrong by up to") && refused.contains("fewer results"), "{refused}");
    for bound in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e160] {
        assert!(moments(5, &[bound], None).is_err(), "{bound}");
    }
    assert!(moments(1, &[1.0], None).is_err() && moments(5, &[], None).is_err());
    for security in [Security::Bits192, Security::Bits256] {
        let goal = Goal {
            security,
            release: Some(ReleasePolicy::new(10, 30).unwrap()),
            ..Goal::moments(1000, vec![1.0; 20]).unwrap()
        };
        assert!(planner().plan(&goal).is_ok());
    }
}

/// One goal and program are built once in a process, and forgotten with the last plan of them.
#[test]
fn plans_of_one_name_share_what_is_built() {
    for plan in
        [circuit(), exact(Shape::new(3, 4, 5), 7, 9, Security::Bits128).unwrap(), moments(7, &[3.5], None).unwrap()]
    {
        let (text, hash) = (plan.to_json().unwrap(), plan.hash());
        let (one, two) = (Plan::from_json(&text).unwrap(), Plan::from_json(&text).unwrap());
        assert!(Arc::ptr_eq(&one.0.built, &two.0.built) && Arc::ptr_eq(&one.0.built, &plan.0.built));
        let last = Arc::downgrade(&plan.0.built);
        drop((one, two, plan));
        assert!(last.upgrade().is_none());
        assert_eq!(Plan::from_json(&text).unwrap().hash(), hash);
    }
}

/// What a client does builds nothing that a server needs.
#[test]
fn a_client_builds_no_tables() {
    let product = Node::new(Operation::Matmul, &[0, 1]);
    let nodes = vec![
        Node::input(0),
        Node::new(Operation::Transpose, &[0]),
        product,
        Node::new(Operation::Sum { axis: 0 }, &[2]),
    ];
    let expr = Expr::new(vec![InputSpec::new("A", (5, 7), 2.0)], nodes, 3).unwrap();
    let plan = planner().plan(&Goal::new(expr, 1e-3)).unwrap();
    let Program::Circuit { circuit } = plan.program() else { panic!("{plan}") };
    let engine = circuit::Circuit::new(plan.goal(), circuit).unwrap();
    let matrix = Matrix::from_fn(5, 7, |i, j| (i + j) as f64 / 10.0).unwrap();
    let plain = engine.encode(plan.goal(), 0, std::slice::from_ref(&matrix)).unwrap();
    let secret = SecretKey::generate(plain[0].params()).unwrap();
    let encryptor = Encryptor::with_secret_key(&secret).unwrap();
    let open = |plain| Decryptor::new(&secret).decrypt(&encryptor.encrypt(plain).unwrap()).unwrap();
    let back = engine.decode(plan.goal(), 0, &plain.iter().map(open).collect::<Vec<_>>()).unwrap();
    assert!(back[0].max_difference(&matrix) < 1e-3 && !engine.is_prepared());
    engine.prepare(plan.goal()).unwrap();
    assert!(engine.is_prepared());
}

/// An operation is found by the nodes of its values; a plain operand by its name, its contents, or as the only one.
#[test]
fn operations_have_places() {
    let plain = |name: &str| InputSpec { plain: true, ..InputSpec::new(name, (3, 3), 1.0) };
    let inputs = vec![InputSpec::new("A", (3, 3), 1.0), plain("W"), plain("V (2)"), plain("plain 00ff")];
    let nodes = vec![
        Node::input(0),
        Node::input(1),
        Node::new(Operation::Matmul, &[0, 1]),
        Node::input(2),
        Node::new(Operation::Mul, &[3, 2]),
        Node::input(3),
        Node::new(Operation::Mul, &[4, 5]),
        Node::new(Operation::Mul, &[1, 6]),
        Node::new(Operation::Mul, &[7, 3]),
    ];
    let goal = Goal { security: Security::Insecure, ..Goal::new(Expr::new(inputs, nodes, 8).unwrap(), 1e-2) };
    let plan = Planner::new(CostModel::default()).plan(&goal).unwrap();
    let sought = |name: &'static str, contents: &'static str| Sought::Plain { shape: (3, 3), name, contents };
    let place = |operation: Operation, operands: &[Sought<'_>]| {
        plan.place(&operation, operands).map(|place| (place.node, place.operands, place.swapped))
    };
    let refusal = |operation: Operation, operands: &[Sought<'_>]| place(operation, operands).unwrap_err().to_string();
    let (a, product) = (Sought::Node(0), Sought::Node(2));
    assert_eq!(place(Operation::Matmul, &[a, Sought::Node(1)]).unwrap(), (2, vec![0, 1], false));
    assert!(refusal(Operation::Matmul, &[Sought::Node(1), a]).contains("not possible here"));
    // A factor in the other order.
    assert_eq!(place(Operation::Mul, &[product, sought("V", "")]).unwrap(), (4, vec![2, 3], true));
    assert_eq!(place(Operation::Matmul, &[a, sought("", "plain 12")]).unwrap(), (2, vec![0, 1], false));
    assert_eq!(place(Operation::Mul, &[Sought::Node(4), sought("", "plain 00ff")]).unwrap(), (6, vec![4, 5], false));
    // What an expression brought along is known by its contents alone.
    assert!(refusal(Operation::Mul, &[Sought::Node(4), sought("", "plain 12")]).contains("no plain 3×3 matrix"));
    assert!(refusal(Operation::Matmul, &[a, sought("X", "")]).contains("plain=True"));
    let other = Sought::Plain { shape: (3, 2), name: "W", contents: "" };
    assert!(refusal(Operation::Matmul, &[a, other]).contains("no plain 3×2 matrix"));
}
