//! Files: what is refused, and hostile ones.

use crate::world::{Attr, Graph, bytes, integers, number, tensor, texts};
use sudare_models::{ModelError, Network};
use sudare_ring::{ErrorKind, Kinded};
use sudare_testkit::Random;

fn lenet() -> Vec<u8> {
    let pool = || [("kernel_shape", Attr::Ints(&[2, 2])), ("strides", Attr::Ints(&[2, 2]))];
    Graph::default()
        .constant(tensor("w", &[2, 1, 3, 3], &[0.25; 18]))
        .constant(tensor("v", &[8, 3], &[0.5; 24]))
        .constant(integers("shape", &[0, -1]))
        .node("Conv", &["x", "w"], "c", &[("pads", Attr::Ints(&[1, 1, 1, 1]))])
        .node("Relu", &["c"], "r", &[])
        .node("AveragePool", &["r"], "p", &pool())
        .node("Reshape", &["p", "shape"], "f", &[])
        .node("MatMul", &["f", "v"], "m", &[])
        .node("Softmax", &["m"], "y", &[("axis", Attr::Int(-1))])
        .file(&[1, 4, 4], 17)
}

#[test]
fn a_small_convolutional_network() {
    let network = Network::from_onnx(&lenet()).unwrap();
    assert_eq!((network.input.as_slice(), network.output.as_slice()), ([1, 1, 4, 4].as_slice(), [1, 3].as_slice()));
    // The pool before the matrix is a part of its own until it is compiled.
    assert_eq!(network.layers.len(), 3);
    assert_eq!(network.dropped.as_deref(), Some("Softmax"));
    // Windows of ones: 4, 6 or 9 of them, times a quarter.
    let found = network.evaluate(&[1.0; 16]).unwrap();
    let mean = (4.0 + 2.0 * 6.0 + 9.0) / 4.0 / 4.0;
    found.iter().for_each(|x| assert!((x - 8.0 * mean * 0.5).abs() < 1e-9, "{x}"));
}

/// What scikit-learn's converter writes of a scaler and a logistic regression: scores, labels by names, probabilities by names.
fn classifier(transform: &str) -> Graph {
    let scores = [
        ("coefficients", Attr::Floats(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0])),
        ("intercepts", Attr::Floats(&[0.0, 0.5, 1.0])),
        ("post_transform", Attr::Text(transform)),
    ];
    let scale = [("offset", Attr::Floats(&[1.0, 2.0])), ("scale", Attr::Floats(&[0.5, 2.0]))];
    Graph::default()
        .estimator("Scaler", &["x"], &["s"], &scale)
        .estimator("LinearClassifier", &["s"], &["label", "p"], &scores)
        .node("Cast", &["label"], "y", &[("to", Attr::Int(7))])
        .estimator("Normalizer", &["p"], &["n"], &[("norm", Attr::Text("L1"))])
        .estimator("ZipMap", &["n"], &["z"], &[])
        .output("z")
}

#[test]
fn files_of_converted_classifiers() {
    for (transform, dropped) in [("SOFTMAX", "Softmax"), ("LOGISTIC", "Sigmoid")] {
        let network = Network::from_onnx(&classifier(transform).file(&[2], 13)).unwrap();
        assert_eq!((network.output.as_slice(), network.dropped.as_deref()), ([1, 3].as_slice(), Some(dropped)));
        // (3 − 1)·0.5 = 1 and (1 − 2)·2 = −2.
        assert_eq!(network.evaluate(&[3.0, 1.0]).unwrap(), [1.0, -1.5, 0.0]);
    }
    // Of a perceptron, with texts as classes.
    let network = Graph::default()
        .constant(tensor("w", &[2, 2], &[1.0, 2.0, 3.0, 4.0]))
        .constant(texts("classes", &["no", "yes"]))
        .constant(integers("shape", &[-1]))
        .node("MatMul", &["x", "w"], "m", &[])
        .node("Softmax", &["m"], "p", &[])
        .node("ArgMax", &["p"], "place", &[("axis", Attr::Int(1))])
        .estimator("ZipMap", &["p"], &["z"], &[])
        .estimator("ArrayFeatureExtractor", &["classes", "place"], &["name"], &[])
        .node("Reshape", &["name", "shape"], "y", &[])
        .output("z");
    let network = Network::from_onnx(&network.file(&[2], 13)).unwrap();
    assert_eq!(network.dropped.as_deref(), Some("Softmax"));
    assert_eq!(network.evaluate(&[1.0, 1.0]).unwrap(), [4.0, 6.0]);
    // A label alone, and a regression.
    let label = Graph::default().node("ArgMax", &["x"], "y", &[]).file(&[3], 13);
    assert_eq!(Network::from_onnx(&label).unwrap().dropped.as_deref(), Some("ArgMax"));
    let regression = [("coefficients", Attr::Floats(&[2.0, -1.0])), ("intercepts", Attr::Floats(&[0.5]))];
    let regression = Graph::default()
        .estimator("Scaler", &["x"], &["s"], &[("scale", Attr::Floats(&[2.0]))])
        .estimator("LinearRegressor", &["s"], &["y"], &regression);
    let network = Network::from_onnx(&regression.file(&[2], 13)).unwrap();
    assert_eq!(network.dropped, None);
    assert_eq!(network.evaluate(&[1.0, 3.0]).unwrap(), [-1.5]);
}

#[test]
fn refusals_of_converted_estimators() {
    fn one(graph: Graph) -> String {
        Network::from_onnx(&graph.file(&[2], 13)).unwrap_err().to_string()
    }
    fn estimator(operator: &str, attributes: &[(&str, Attr<'_>)]) -> String {
        one(Graph::default().estimator(operator, &["x"], &["y"], attributes))
    }
    assert!(one(classifier("PROBIT")).contains("the function PROBIT"));
    assert!(estimator("LinearClassifier", &[("coefficients", Attr::Floats(&[1.0, 2.0]))]).contains("one score"));
    assert!(estimator("LinearClassifier", &[("coefficients", Attr::Floats(&[1.0; 3]))]).contains("3 coefficients"));
    assert!(estimator("Scaler", &[("scale", Attr::Floats(&[1.0; 3]))]).contains("scale has 3 numbers for 2"));
    assert!(estimator("Normalizer", &[]).contains("before encryption"));
    assert!(estimator("TreeEnsembleClassifier", &[]).contains("the fitted estimator itself"));
    assert!(estimator("Imputer", &[]).contains("not read"));
    // Values that differ are two outputs.
    let two = || Graph::default().node("Relu", &["x"], "y", &[]).node("Neg", &["x"], "z", &[]).output("z");
    assert!(one(two()).contains("2 outputs"));
    // What the client computes is for the end, whichever operand it is.
    let inside =
        Graph::default().node("Softmax", &["x"], "s", &[]).node("Concat", &["x", "s"], "y", &[("axis", Attr::Int(1))]);
    assert!(one(inside).contains("left to the client"));
}

/// One error lists all nodes that are not computed, and none that only follow one.
#[test]
fn all_unsupported_nodes_are_named() {
    let pool = || [("kernel_shape", Attr::Ints(&[2, 2]))];
    let file = Graph::default()
        .node("MaxPool", &["x"], "a", &pool())
        .node("Relu", &["a"], "b", &[])
        .node("MaxPool", &["b"], "c", &pool())
        .node("Wonder", &["x"], "d", &[])
        .node("Add", &["c", "d"], "y", &[])
        .file(&[1, 8, 8], 17);
    let error = Network::from_onnx(&file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let ModelError::Unsupported(nodes) = &error else { panic!("{error}") };
    let named: Vec<&str> = nodes.0.iter().map(|n| n.layer.as_str()).collect();
    assert_eq!(named, ["MaxPool of a", "MaxPool of c", "Wonder of d"]);
    assert!(error.to_string().contains("AvgPool2d"), "{error}");
}

#[test]
fn refusals_say_why() {
    let one = |graph: Graph, opset: i64| Network::from_onnx(&graph.file(&[4], opset)).unwrap_err().to_string();
    let relu = || Graph::default().node("Relu", &["x"], "y", &[]);
    assert!(one(relu(), 6).contains("operator set 6"));
    assert!(one(relu(), 99).contains("operator set 99"));
    let product = Graph::default()
        .node("Relu", &["x"], "r", &[])
        .node("Mul", &["x", "r"], "m", &[])
        .node("Sigmoid", &["m"], "s", &[])
        .node("Mul", &["r", "s"], "y", &[]);
    assert!(one(product, 17).contains("product of two encrypted values"));
    assert!(one(Graph::default().node("Relu", &["z"], "y", &[]), 17).contains("input z"));
    assert!(
        one(Graph::default().node("Softmax", &["x"], "s", &[]).node("Relu", &["s"], "y", &[]), 17).contains("client")
    );
    assert!(one(Graph::default().node("Div", &["x", "x"], "y", &[]), 17).contains("division by an encrypted value"));
    // Two operator sets, and no graph.
    let twice = [relu().file(&[4], 17), bytes(8, &number(2, 16))].concat();
    assert!(Network::from_onnx(&twice).unwrap_err().to_string().contains("two versions"));
    let equal = [relu().file(&[4], 17), bytes(8, &number(2, 17))].concat();
    assert!(Network::from_onnx(&equal).is_ok());
    assert!(Network::from_onnx(b"").unwrap_err().to_string().contains("no graph"));
}

/// Every cut, and changed bytes: an error or a network, never a panic, and no memory for a claim.
#[test]
fn hostile_files() {
    let mut random = Random(5);
    for file in [lenet(), classifier("SOFTMAX").file(&[2], 13)] {
        for cut in 0..file.len() {
            let _ = Network::from_onnx(&file[..cut]);
        }
        for i in 0..file.len() {
            let mut changed = file.clone();
            changed[i] ^= 1 << random.index(8);
            let _ = Network::from_onnx(&changed);
            changed[i] = 0xff;
            let _ = Network::from_onnx(&changed);
        }
    }
    let huge = |dims: &[usize]| Network::from_onnx(&Graph::default().node("Relu", &["x"], "y", &[]).file(dims, 17));
    assert!(huge(&[1 << 40]).is_err() && huge(&[1 << 32, 1 << 32]).is_err() && huge(&[0]).is_err());
}
