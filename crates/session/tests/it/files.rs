//! Files of before, and specifications of contexts: whatever could lower security or precision is
//! worked out again.

use serde_json::{Value, json};
use sudare_expr::Matrix;
use sudare_plan::Plan;
use sudare_rlwe::wire::secret_key_from_bytes;
use sudare_session::{Client, Encrypted};
use sudare_session::{ContextOptions, ContextSpec};

/// Edits of a file's parameters and the field that the refusal names; "" for one of the parameters'
/// own refusals.
fn edits() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("/params/security", json!("Insecure"), ""),
        ("/params/secret", json!({"FixedWeight": {"weight": 1}}), "params.secret"),
        ("/params/secret", json!("Gaussian"), "params.secret"),
        ("/params/log_n", json!(9), "params.log_n"),
        ("/params/log_n", json!(90), "params.log_n"),
        ("/params/q_bits", json!([20]), "params.q_bits"),
        ("/params/q_bits/0", json!(20), "params.q_bits"),
        ("/params/p_bits", json!([]), "params.p_bits"),
        ("/params/digit_limbs", json!(0), "params.digit_limbs"),
    ]
}

fn edited(text: &str, pointer: &str, value: &Value) -> String {
    let mut file: Value = serde_json::from_str(text).unwrap();
    *file.pointer_mut(pointer).unwrap() = value.clone();
    file.to_string()
}

#[test]
fn a_context_lowers_nothing() {
    let spec = ContextSpec::new(2, &ContextOptions::default()).unwrap();
    let text = serde_json::to_string(&spec).unwrap();
    assert_eq!(serde_json::from_str::<ContextSpec>(&text).unwrap(), spec);
    let more = [
        ("/params/log_scale", json!(31), "params.q_bits"),
        ("/params/log_scale", json!(10), "scale"),
        ("/depth", json!(0), "depth"),
        ("/depth", json!(1), "params"),
        ("/tile", json!(3), "tiles"),
        ("/tile", json!(u64::MAX), "tiles"),
    ];
    for (pointer, value, named) in edits().into_iter().chain(more) {
        let refusal = serde_json::from_str::<ContextSpec>(&edited(&text, pointer, &value)).unwrap_err();
        assert!(refusal.to_string().contains(named), "{pointer} = {value}: {refusal}");
    }
}

/// A plan without what is worked out anew when it is loaded, and may then be known better.
fn without_promises(text: &str) -> Value {
    let mut plan: Value = serde_json::from_str(text).unwrap();
    plan["summary"]["memory"] = Value::Null;
    plan["summary"]["predicted_error"] = Value::Null;
    for operand in plan["summary"]["operands"].as_array_mut().unwrap() {
        operand["error"] = Value::Null;
    }
    plan
}

/// Plans, keys and matrices that were written before there was one session for all programs.
#[test]
fn golden_files_load() {
    macro_rules! golden {
        ($name:literal) => {
            include_bytes!(concat!("../golden/v3/", $name)).as_slice()
        };
    }
    let plan = |bytes: &[u8]| Plan::from_json(std::str::from_utf8(bytes).unwrap()).unwrap();
    for (bytes, hash) in [
        (golden!("coefficient.json"), "14cd39af6c6c"),
        (golden!("spread3d.json"), "587bbb8b1553"),
        (golden!("circuit.json"), "144bb05f6550"),
    ] {
        let loaded = plan(bytes);
        assert_eq!(loaded.hash().to_string(), hash);
        let (told, written) = (loaded.to_json().unwrap(), std::str::from_utf8(bytes).unwrap());
        assert_eq!(without_promises(&told), without_promises(written));
    }
    let plan = plan(golden!("coefficient.json"));
    let key = secret_key_from_bytes(plan.params(), golden!("coefficient_key.bin")).unwrap();
    let client = Client::with_secret_key(&plan, key, 1).unwrap();
    let a = Matrix::from_fn(6, 10, |i, j| (i as f64 - j as f64) / 8.0).unwrap();
    let b = Matrix::from_fn(10, 5, |i, j| (i as f64 - 2.0 * j as f64) / 8.0).unwrap();
    let read = |bytes: &[u8]| Encrypted::from_bytes(&plan, bytes).unwrap();
    for (value, bytes) in [("a", golden!("coefficient_a.bin")), ("c", golden!("coefficient_c.bin"))] {
        assert_eq!(read(bytes).to_bytes().unwrap(), bytes, "{value}");
    }
    let wanted = a.matmul(&b).unwrap();
    assert!(client.decrypt(&read(golden!("coefficient_c.bin"))).unwrap().max_difference(&wanted) < 1e-2);
    let again = client.server().unwrap().matmul(&read(golden!("coefficient_a.bin")), &client.encrypt("B", &b).unwrap());
    assert!(client.decrypt(&again.unwrap()).unwrap().max_difference(&wanted) < 1e-2);
    // A table's specification: rows, bounds, parameters, releases.
    let table = Plan::from_json(std::str::from_utf8(golden!("table.json")).unwrap()).unwrap();
    assert_eq!(table.expression().inputs()[0].columns, [2.0, 2e5, 10.0]);
    assert_eq!(table.release().map(|r| (r.releases(), r.security_bits())), Some((3, 30)));
    assert_eq!(table.params().degree(), 1 << 14);
}
