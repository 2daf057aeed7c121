//! `sudare info` on a file of every kind that the command and the package write.

use crate::common::*;
use crate::model::{compiled, forest};
use serde_json::{Value, json};

/// A text as Python writes it: what it is comes first.
fn of_python(kind: &str, says: &Value) -> String {
    says.to_string().replacen('{', &format!("{{\n \"sudare\": \"{kind}\", "), 1)
}

/// Files of every kind, some under a name of their own in a folder of their kind.
fn files() -> Place {
    // Has a network's files: m/, keys/ and x.ct.
    let place = compiled();
    place.ok("run m/model.bin --keys keys/eval.keys x.ct -o y.ct");
    let forest = forest();
    place.write("forest.json", forest.plan().to_json());
    place.write("forest.bin", forest.to_bytes().unwrap());
    place.matrix("a.npy", 2, 2, &[1.0, -2.0, 3.0, f64::NAN]);
    place.write("b.csv", "name,x,y\nrow,1,2\nother,3,4\n");
    place.ok("plan --left 2x2 --right 2x2 --max-abs 4 --error 1e-4 --method coefficient -o plan.json");
    place.ok("keygen plan.json -o matrices");
    place.ok("encrypt plan.json --keys matrices/secret.key --as right b.csv -o b.ct");
    place.ok("encrypt plan.json --keys matrices/secret.key --as right b.csv --store -o b.store");
    place.write(
        "expression.json",
        json!({"inputs": [{"name": "A", "rows": 2, "cols": 2, "max_abs": 1.0}], "nodes": [{"op": "input", "input": 0}], "output": 0})
            .to_string(),
    );
    place.ok("bits keygen --parameters insecure_test_gates -o bits");
    place.write("truth.csv", "1\n0\n");
    place.ok("bits encrypt --keys bits/secret.key --dtype bool truth.csv -o truth.ct");
    place.ok("index plan --d 8 --rows 2000 --above 0.9 --gap 0.75,0.97 -o index.json");
    place.ok("index keygen index.json -o index");
    place.write("v.csv", "1,0,0,0,0,0,0,0\n0,1,0,0,0,0,0,0\n0,0,1,0,0,0,0,0\n");
    place.ok("index store index.json --keys index/secret.key v.csv -o table");
    place.ok("index query index.json --keys index/secret.key v.csv -o question");
    place.ok("index count index.json --keys index/eval.keys table question -o counted");
    let product: Value = serde_json::from_slice(&place.read("plan.json")).unwrap();
    let fit = json!({"max_abs": [1.0, 2.0], "targets": [], "vector": false, "classes": ["a", "b", "c"], "common": true,
        "product": product});
    place.write("fit.json", of_python("learning", &fit));
    let statistics = json!({"rows": 5, "mean": [1.0], "covariance": [[2.0]], "mean_error": [0.1],
        "covariance_error": [[0.1]], "columns": ["age"]});
    place.write("statistics.json", of_python("statistics", &statistics));
    place.write("arrays.npz", b"PK\x03\x04");
    place.write("token", place.ok("token add clinic --tokens tokens"));
    place.ok("calibrate");
    place
}

#[test]
fn every_kind_of_file_is_told() {
    let place = files();
    for (file, phrases) in [
        ("plan.json", &["a plan", "-bit security"][..]),
        ("matrices/secret.key", &["a secret key", "keep it to yourself"]),
        ("matrices/public.key", &["a public key"]),
        ("matrices/eval.keys", &["evaluation keys", "for the server"]),
        ("b.ct", &["a bundle of ciphertexts", "2×2, node", "plan  "]),
        ("b.store", &["a stored matrix, encrypted", "(2, 2)", "plan  "]),
        ("expression.json", &["an expression for `sudare plan`"]),
        ("a.npy", &["a matrix, .npy", "2×2", "1 numbers are not finite"]),
        ("b.csv", &["a matrix, .csv", "integers", "x, y", "row, other"]),
        ("m/plan.json", &["the plan of a model", "a model of 2 layers:", "128 bits of security"]),
        ("m/model.bin", &["a compiled model", "a model of 2 layers:"]),
        ("keys/secret.key", &["a secret key"]),
        ("keys/eval.keys", &["evaluation keys"]),
        ("x.ct", &["examples of a model: 2", "plan  "]),
        ("y.ct", &["answers of a model: 2", "plan  "]),
        ("forest.json", &["the plan of a model", "a forest: 4 features in, 1 score out"]),
        ("forest.bin", &["a compiled model", "1 threshold in 1 group"]),
        ("bits/secret.key", &["TFHE parameters", "a TFHE client key", "keep it"]),
        ("bits/eval.keys", &["a TFHE server key"]),
        ("truth.ct", &["TFHE parameters", "an array of encrypted integers"]),
        ("index.json", &["the plan of an index", "vectors of 8 coordinates", "128 bits of security"]),
        ("index/secret.key", &["a secret key"]),
        ("index/eval.keys", &["evaluation keys"]),
        ("table", &["a table of an index", "rows        3"]),
        ("question", &["questions to an index", "plan  "]),
        ("counted", &["the answers of an index: count"]),
        ("fit.json", &["the plan of a fit, features: 2, targets: 0, classes: 3", "-bit security"]),
        ("statistics.json", &["statistics of a table", "rows        5", "age"]),
        ("arrays.npz", &["archive"]),
        ("tokens", &["tokens of tenants of `sudare serve`", "tokens      1"]),
        ("token", &["a token for a server, secret"]),
        ("cache/sudare/cost-model.json", &["`sudare calibrate` measured"]),
    ] {
        let shown = place.ok(&format!("info {file}"));
        assert!(phrases.iter().all(|phrase| shown.contains(phrase)), "{file}: {shown}");
        assert!(!shown.contains("public encrypts"), "{shown}");
        let json: Value = serde_json::from_str(&place.ok(&format!("info {file} --json"))).unwrap();
        assert!(json[0]["what"].is_string() && json[0]["bytes"].as_u64() > Some(3), "{file}: {json}");
    }
    let json = |words: &str| serde_json::from_str::<Value>(&place.ok(words)).unwrap();
    let found = json("info b.csv --json");
    assert_eq!(
        (&found[0]["shape"], &found[0]["largest"], &found[0]["integers"]),
        (&[2, 2].into(), &4.0.into(), &true.into())
    );
    assert_eq!(found[0]["columns"], json!(["x", "y"]));
    let value = json("info b.ct --json");
    assert!(value[0]["bytes"].as_u64() == Some(place.read("b.ct").len() as u64) && value[0]["plan"].is_string());
    // A plan says the same when it is made and when it is looked at.
    let planned = json("plan --left 2x2 --right 2x2 --max-abs 4 --json -o again.json");
    assert_eq!(planned, json("info again.json --json")[0]["figures"]);
    assert!(planned["figures"]["seconds"].is_number() && planned["figures"]["security_bits"].as_u64() >= Some(128));
    let whole = place.read("b.ct");
    for cut in [10, 200, whole.len() - 1] {
        place.write("cut", &whole[..cut]);
        place.fails("info cut", 5, "");
    }
    place.write("letter", "Dear all,\nhello\n");
    place.fails("info letter", 5, "none of sudare's files");
    place.write("other.json", "{\"a\": 1}");
    place.fails("info other.json", 5, "not a plan");
    place.fails("info nowhere", 7, "check the path");
}
