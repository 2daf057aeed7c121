//! Files: what is refused, and hostile ones.

use crate::world::{Attr, Graph, bytes, integers, number, tensor};
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
    let file = lenet();
    for cut in 0..file.len() {
        let _ = Network::from_onnx(&file[..cut]);
    }
    let mut random = Random(5);
    for i in 0..file.len() {
        let mut changed = file.clone();
        changed[i] ^= 1 << random.index(8);
        let _ = Network::from_onnx(&changed);
        changed[i] = 0xff;
        let _ = Network::from_onnx(&changed);
    }
    let huge = |dims: &[usize]| Network::from_onnx(&Graph::default().node("Relu", &["x"], "y", &[]).file(dims, 17));
    assert!(huge(&[1 << 40]).is_err() && huge(&[1 << 32, 1 << 32]).is_err() && huge(&[0]).is_err());
}
