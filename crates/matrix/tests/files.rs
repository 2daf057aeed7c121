//! Specifications of tables and contexts as files: whatever could lower security or precision is
//! worked out again.

use serde_json::{Value, json};
use sudare_he::security::Security;
use sudare_matrix::session::{ContextOptions, ContextSpec, TableSpec};

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
fn a_table_lowers_nothing() {
    let spec = TableSpec::new(50, vec![1.0, 20.0, 3.0], Security::Bits128, None).unwrap();
    let text = serde_json::to_string(&spec).unwrap();
    assert_eq!(serde_json::from_str::<TableSpec>(&text).unwrap(), spec);
    let more = [
        ("/params/log_scale", json!(10), "params.log_scale"),
        ("/rows", json!(1), "rows"),
        ("/rows", json!(u64::MAX), ""),
        ("/max_abs", json!([]), ""),
        ("/max_abs/1", json!(-1.0), "max_abs"),
    ];
    for (pointer, value, named) in edits().into_iter().chain(more) {
        let refusal = serde_json::from_str::<TableSpec>(&edited(&text, pointer, &value)).unwrap_err();
        assert!(refusal.to_string().contains(named), "{pointer} = {value}: {refusal}");
    }
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
