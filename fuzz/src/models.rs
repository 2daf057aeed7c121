//! Networks and compiled models that anybody may have written: no panic, an error in words, and a model that is taken is written again as
//! the same bytes.

use super::mutation::{self, Random};
use sudare_models::{Dense, Function, Goal, Label, Model, Network, Plan};
use sudare_ring::Kinded;

fn compiled(batch: usize) -> Vec<u8> {
    let layer = |name: &str, weights: Vec<f64>, outputs: usize, function: Function| Dense {
        name: name.into(),
        weights,
        bias: vec![0.1; outputs],
        function,
    };
    let layers = vec![
        layer("a", (0..12).map(|i| f64::from(i % 5) * 0.2 - 0.3).collect(), 3, Function::Tanh),
        layer("b", vec![0.5, -0.25, 0.75, 0.3, 0.2, -0.1], 2, Function::Identity),
    ];
    let network = Network::dense(4, layers).expect("the layers go together");
    let examples: Vec<f64> = (0..40).map(|i| f64::from(i % 7) * 0.1).collect();
    let goal = Goal { batch, label: Label::Numbers, degree: Some(7), insecure: Some(9), ..Goal::default() };
    let model = Model::compile(&network, &examples, &goal, &|work, _| work.ntt).expect("it compiles");
    model.to_bytes().expect("it is written")
}

/// A field of less than 2^14 bytes.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let length = value.len();
    let head = match length < 128 {
        true => vec![number << 3 | 2, length as u8],
        false => vec![number << 3 | 2, (length % 128) as u8 | 128, (length / 128) as u8],
    };
    [&head, value].concat()
}

/// An ONNX file: Relu(x·W + x), for four numbers.
fn onnx() -> Vec<u8> {
    let data: Vec<u8> = (0..16u8).flat_map(|i| (f32::from(i % 5) * 0.25).to_le_bytes()).collect();
    let weights = [vec![8, 4, 8, 4, 16, 1], field(8, b"w"), field(9, &data)].concat();
    let node = |inputs: [&[u8]; 2], output: &[u8], operator: &[u8]| {
        let inputs: Vec<u8> = inputs.iter().filter(|i| !i.is_empty()).flat_map(|i| field(1, i)).collect();
        field(1, &[inputs, field(2, output), field(4, operator)].concat())
    };
    let shape = field(2, &[field(1, &[8, 1]), field(1, &[8, 4])].concat());
    let kind = field(2, &field(1, &[vec![8, 1], shape].concat()));
    let graph = [
        node([b"x", b"w"], b"a", b"MatMul"),
        node([b"a", b"x"], b"b", b"Add"),
        node([b"b", b""], b"y", b"Relu"),
        field(5, &weights),
        field(11, &[field(1, b"x"), kind].concat()),
        field(12, &field(1, b"y")),
    ];
    [vec![8, 8], field(7, &graph.concat()), field(8, &[16, 17])].concat()
}

/// A model of each layout, and a network's file.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![compiled(1), compiled(200), onnx()]
}

/// Changes bytes.
pub fn mutate(random: &mut Random, data: &mut Vec<u8>, other: &[u8]) {
    mutation::bytes(random, data, other);
}

/// How many readers take the bytes.
pub fn check(data: &[u8]) -> usize {
    let model =
        Model::from_bytes(data).map(|model| assert!(model.to_bytes().expect("what was read is written") == data));
    let plan = Plan::from_json(&String::from_utf8_lossy(data)).map(drop);
    let network = Network::from_onnx(data).map(|network| {
        let example = vec![0.5; network.inputs()];
        assert_eq!(network.evaluate(&example).expect("an example fits").len(), network.outputs());
    });
    let results = [model, plan, network];
    for error in results.iter().filter_map(|r| r.as_ref().err()) {
        assert!(!error.to_string().is_empty() && error.kind() != sudare_ring::ErrorKind::Internal, "{error}");
    }
    results.iter().filter(|r| r.is_ok()).count()
}
