//! A network of an .onnx file, compiled and run on encrypted inputs, each command in a process.

use crate::common::*;
#[cfg(unix)]
use crate::serve::Server;
use std::fs;
use sudare_models::forest::{self, Forest, Node};
use sudare_models::{Goal, Label};
use sudare_rlwe::work::Work;

/// A field of a protobuf message.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    assert!(content.len() < 1 << 14);
    let length = [(content.len() & 127) as u8 | 128, (content.len() >> 7) as u8];
    [&[number << 3 | 2], length.as_slice(), content].concat()
}

fn integer(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

fn matrix(name: &str, dims: [u8; 2], data: &[f32]) -> Vec<u8> {
    let words: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
    let dims = dims.map(|d| integer(1, d)).concat();
    [dims, integer(2, 1), field(8, name.as_bytes()), field(9, &words)].concat()
}

/// y = Vᵀ(Wᵀx)² for four numbers x.
fn network() -> Vec<u8> {
    let node = |operator: &str, inputs: [&str; 2], output: &str| {
        let inputs = inputs.map(|name| field(1, name.as_bytes())).concat();
        field(1, &[inputs, field(2, output.as_bytes()), field(4, operator.as_bytes())].concat())
    };
    let shape = field(2, &[field(1, &integer(1, 1)), field(1, &integer(1, 4))].concat());
    let input = [field(1, b"x"), field(2, &field(1, &[integer(1, 1), shape].concat()))].concat();
    let graph = [
        node("MatMul", ["x", "w"], "m"),
        node("Mul", ["m", "m"], "s"),
        node("MatMul", ["s", "v"], "y"),
        field(5, &matrix("w", [4, 2], &[1.0, 0.0, 0.5, -1.0, 0.0, 0.25, -0.5, 0.5])),
        field(5, &matrix("v", [2, 3], &[1.0, -1.0, 0.0, 0.5, 0.5, -2.0])),
        field(11, &input),
        field(12, &field(1, b"y")),
    ];
    [integer(1, 8), field(7, &graph.concat()), field(8, &integer(2, 17))].concat()
}

fn clear(x: [f64; 4]) -> [f64; 3] {
    let a = (x[0] + 0.5 * x[1] - 0.5 * x[3]).powi(2);
    let b = (-x[1] + 0.25 * x[2] + 0.5 * x[3]).powi(2);
    [a + 0.5 * b, -a + 0.5 * b, -2.0 * b]
}

const INPUTS: [[f64; 4]; 2] = [[0.9, -0.4, 0.3, 0.2], [0.1, 0.8, -0.6, -0.7]];

/// A network's files in m/, keys in keys/, and encrypted inputs.
pub fn compiled() -> Place {
    let place = Place::new();
    fs::write(place.path("net.onnx"), network()).unwrap();
    let row = |i: usize| (0..4).map(move |j| ((i * 7 + j * 3) % 11) as f64 / 5.0 - 1.0).map(|x| x.to_string());
    let rows: String = (0..40).map(|i| row(i).collect::<Vec<_>>().join(",") + "\n").collect();
    fs::write(place.path("examples.csv"), rows).unwrap();
    let text = place.ok("compile net.onnx --examples examples.csv --error 1e-3 --batch 2 -o m");
    assert!(text.contains("128 bits of security") && text.contains("model.bin") && text.contains("noise"), "{text}");
    let text = INPUTS.map(|x| x.map(|x| x.to_string()).join(",") + "\n").concat();
    fs::write(place.path("x.csv"), text).unwrap();
    place.ok("keygen m/plan.json -o keys");
    place.ok("encrypt m/plan.json --keys keys/secret.key x.csv -o x.ct");
    place
}

fn check(place: &Place, answer: &str) {
    let _ = fs::remove_file(place.path("y.csv"));
    let told = place.ok(&format!("decrypt m/plan.json --keys keys/secret.key {answer} -o y.csv"));
    assert!(told.contains("2×3; labels 0, "), "{told}");
    let text = fs::read_to_string(place.path("y.csv")).unwrap();
    let found: Vec<f64> = text.trim().split([',', '\n']).map(|x| x.parse().unwrap()).collect();
    let wanted: Vec<f64> = INPUTS.iter().flat_map(|x| clear(*x)).collect();
    assert_eq!(found.len(), wanted.len());
    assert!(found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() <= 1e-3), "{found:?} for {wanted:?}");
}

#[test]
fn a_network_computes_on_what_it_cannot_read() {
    let place = compiled();
    place.ok("run m/model.bin --keys keys/eval.keys x.ct -o y.ct");
    check(&place, "y.ct");
    // What does not belong together, and what a model has not.
    place.fails("compile net.onnx --examples x.csv --error 1e-30 -o m2", 6, "1.0e-30");
    place.fails("compile x.csv --examples x.csv -o m", 2, "is there already");
    fs::write(place.path("rows.csv"), "1,0,0\n0,1,0\n0,0,1\n1,1,1\n").unwrap();
    place.fails("encrypt m/plan.json --keys keys/secret.key rows.csv -o other", 3, "one a row");
    place.fails("compile net.onnx --examples rows.csv -o m2", 3, "one a row");
    place.fails("encrypt m/plan.json --keys keys/secret.key --as left x.csv -o other", 2, "one input");
    place.fails("run m/plan.json --keys keys/eval.keys x.ct -o other", 2, "model.bin");
    place.fails("decrypt m/plan.json --keys keys/secret.key x.ct -o other.csv", 4, "answer");
    place.fails("decrypt m/plan.json --keys keys/secret.key y.ct --release -o other.csv", 2, "--release");
    fs::write(place.path("wide.csv"), "1,2,3\n").unwrap();
    place.fails("encrypt m/plan.json --keys keys/secret.key wide.csv -o other", 3, "examples of 4 numbers");
    fs::write(place.path("large.csv"), "1,2,300,4\n").unwrap();
    place.fails("encrypt m/plan.json --keys keys/secret.key large.csv -o other", 3, "compiled for");
    // Keys of somebody else.
    place.ok("keygen m/plan.json -o strange");
    place.fails("run m/model.bin --keys strange/eval.keys x.ct -o other", 4, "key");
}

/// A forest of one tree: whether the third of four numbers is above a half. In a ring without security.
pub fn forest() -> forest::Model {
    let leaf = |value: f64| Node::Leaf(vec![value]);
    let split = Node::Split { feature: 2, threshold: 0.5, left: 1, right: 2 };
    let forest = Forest::new(4, false, vec![0.0], vec![vec![split, leaf(-1.0), leaf(1.0)]]).unwrap();
    let goal = Goal { insecure: Some(9), agreement: 0.0, label: Label::Numbers, ..Goal::default() };
    forest::Model::compile(&forest, INPUTS.as_flattened(), &goal, &|work: &Work, _| work.ntt + work.pass).unwrap()
}

/// Columns of other names or in another order are refused where names are given; where none are, a line says that nobody looked.
#[test]
fn columns_are_those_of_the_examples() {
    let place = compiled();
    fs::write(place.path("forest.json"), forest().plan().to_json()).unwrap();
    place.ok("keygen forest.json -o forest");
    let table = |order: [usize; 4], header: &str| {
        let row = |x: &[f64; 4]| order.map(|i| x[i].to_string()).join(",") + "\n";
        format!("{header}{}", INPUTS.iter().map(row).collect::<String>())
    };
    let usual = [0, 1, 2, 3];
    for (name, text) in [
        ("names.csv", "age,height,weight,pulse\n".to_owned()),
        ("examples.csv", table(usual, "age,height,weight,pulse\n")),
        ("three.csv", "age,height,weight\n".to_owned()),
        ("same.csv", table(usual, "age,height,weight,pulse\n")),
        ("rows.csv", "patient,age,height,weight,pulse\nanna,0.9,-0.4,0.3,0.2\nben,0.1,0.8,-0.6,-0.7\n".to_owned()),
        ("order.csv", table([0, 2, 1, 3], "age,weight,height,pulse\n")),
        ("other.csv", table(usual, "age,height,weight,temperature\n")),
    ] {
        fs::write(place.path(name), text).unwrap();
    }
    for encrypt in ["encrypt m/plan.json --keys keys/secret.key", "encrypt forest.json --keys forest/secret.key"] {
        let told = |words: &str| {
            let words = format!("{encrypt} {words} -o made.ct --force");
            let out = place.run(&words.split(' ').collect::<Vec<_>>());
            assert!(out.status.success(), "{words}: {out:?}");
            String::from_utf8(out.stderr).unwrap()
        };
        for names in ["names.csv", "examples.csv"] {
            for table in ["same.csv", "rows.csv"] {
                assert_eq!(told(&format!("{table} --columns {names}")), "");
            }
            for (table, phrase) in [
                ("order.csv", "order.csv: column 2 is \"weight\", and \"height\" in"),
                ("other.csv", "column 4 is \"temperature\", and \"pulse\" in"),
                ("x.csv", "names 0 of 4 columns"),
            ] {
                place.fails(&format!("{encrypt} {table} --columns {names} -o other.ct"), 3, phrase);
            }
        }
        place.fails(&format!("{encrypt} same.csv --columns three.csv -o other.ct"), 3, "three.csv: this file names 3");
        place.fails(&format!("{encrypt} same.csv --columns x.csv -o other.ct"), 3, "x.csv: this file names 0");
        for table in ["same.csv", "order.csv"] {
            let line = told(table);
            assert!(line.lines().count() == 1 && line.contains(table) && line.contains("--columns FILE"), "{line}");
        }
        assert_eq!(told("x.csv"), "");
    }
    // What was compared computes as before.
    place.ok("encrypt m/plan.json --keys keys/secret.key same.csv --columns names.csv -o same.ct");
    place.ok("run m/model.bin --keys keys/eval.keys same.ct -o y.ct");
    check(&place, "y.ct");
    place.ok("plan --left 2x4 --right 4x1 -o plan.json");
    place.fails(
        "encrypt plan.json --keys keys/secret.key --as left x.csv --columns names.csv -o other.ct",
        2,
        "--columns",
    );
}

/// New keys of a model leave no public key behind that belongs to other ones.
#[test]
fn a_public_key_of_other_keys_does_not_stay() {
    let place = Place::new();
    fs::write(place.path("forest.json"), forest().plan().to_json()).unwrap();
    place.ok("plan --left 2x4 --right 4x1 -o plan.json");
    place.ok("keygen plan.json -o keys");
    place.ok("keygen plan.json -o public");
    fs::remove_file(place.path("public/secret.key")).unwrap();
    fs::remove_file(place.path("public/eval.keys")).unwrap();
    place.fails("keygen forest.json -o public", 2, "public.key");
    for folder in ["keys", "public"] {
        place.ok(&format!("keygen forest.json -o {folder} --force"));
        assert!(place.path(folder).join("secret.key").exists() && !place.path(folder).join("public.key").exists());
    }
    // A secret key under that name is none that may be lost.
    fs::rename(place.path("keys/secret.key"), place.path("public/public.key")).unwrap();
    place.fails("keygen forest.json -o public --force", 2, "public.key");
}

#[cfg(unix)]
#[test]
fn a_network_at_a_server_answers_as_one_here() {
    let (place, there) = (compiled(), Place::new());
    fs::write(place.path("token"), there.ok("token add clinic --tokens tokens")).unwrap();
    fs::copy(place.path("m/model.bin"), there.path("model.bin")).unwrap();
    let server = Server::start(&there, &["--model", "net=model.bin"]);
    let far = format!("--server http://{} --token-file token", server.address);
    // Nothing is sent to a model that is not there, nor what is no request to one that is.
    place.fails(&format!("run other --keys keys/eval.keys x.ct -o z.ct {far}"), 4, "no such");
    place.fails(&format!("run net --keys keys/eval.keys x.csv -o z.ct {far}"), 5, "x.csv");
    let sent = || fs::read_dir(there.path("data/clinic/objects")).unwrap().count();
    assert_eq!(sent(), 0);
    place.ok(&format!("run net --keys keys/eval.keys x.ct -o y.ct {far}"));
    check(&place, "y.ct");
    assert!(sent() > 0);
}
