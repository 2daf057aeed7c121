//! Networks that are deeper than their parameters: refreshes between layers.

use crate::world::{Attr, Graph, QUIET, World, compile, goal, mlp, tensor};
use sudare_he::circuits::bootstrapping::BootstrapSet;
use sudare_models::{Function, Goal, Keys, Label, Model, Network, Order, Server, Shared};
use sudare_ring::{ErrorKind, Kinded};
use sudare_testkit::{Random, sized};

/// A deep network in a small ring: its refreshes stand where the levels end, and answers are within the promise.
#[test]
fn a_deep_network() {
    let mut random = Random(1);
    let network = mlp(&mut random, &[6, 8, 8, 8, 3], &Function::Tanh);
    let examples = random.units(6 * 40);
    let goal = Goal { bootstrap: Some(BootstrapSet::B), degree: Some(7), error: 1e-2, batch: 4, ..goal() };
    let world = World::new(&network, &examples, &goal);
    let figures = world.model.plan().figures();
    assert!(figures.refreshes >= 2 && figures.bootstrap == Some(BootstrapSet::B), "{}", world.model.plan());
    assert!(figures.seconds > 0.0 && world.model.plan().memory(false) > world.model.plan().key_bytes());
    let found = world.distance(&examples[..6 * 5]);
    assert!(found <= figures.error && figures.error <= 1e-2, "{found} over {}", figures.error);
    // It travels, and so do its keys.
    let read = Model::from_bytes(&world.model.to_bytes().unwrap()).unwrap();
    let keys = world.client.eval_keys().unwrap().to_bytes().unwrap();
    let keys = Keys::from_bytes(read.plan(), &keys).unwrap();
    let server = Server::new(&read, keys.clone(), false).unwrap();
    let answer = server.run(&world.client.encrypt(&examples[..6]).unwrap(), QUIET).unwrap();
    let wanted = read.polynomial(&examples[..6]).unwrap();
    let found = world.client.decrypt(&answer).unwrap();
    assert!(found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() <= figures.error));
    // The simulation had the operations between refreshes.
    assert_eq!(server.counters().key_switches, figures.operations.key_switches);
    let without = Server::new(&read, Keys { bootstrap: None, ..keys }, false).unwrap_err();
    assert_eq!(without.kind(), ErrorKind::Mismatch);
}

/// A square before a refresh and a residual that waits at its level.
#[test]
fn residuals_and_squares() {
    let mut random = Random(2);
    let mut graph = Graph::default();
    for (name, rows, columns) in [("a", 5, 6), ("b", 6, 6), ("c", 6, 6), ("d", 6, 2)] {
        let weights: Vec<f64> = random.units(rows * columns).iter().map(|w| 0.6 * w).collect();
        graph = graph.constant(tensor(name, &[rows, columns], &weights));
    }
    let file = graph
        .node("MatMul", &["x", "a"], "s", &[])
        .node("Tanh", &["s"], "t", &[])
        .node("MatMul", &["t", "b"], "u", &[])
        .node("Mul", &["u", "u"], "v", &[])
        .node("Add", &["v", "t"], "w", &[])
        .node("MatMul", &["w", "c"], "p", &[])
        .node("Tanh", &["p"], "q", &[])
        .node("Add", &["q", "t"], "r", &[])
        .node("MatMul", &["r", "d"], "y", &[])
        .file(&[5], 17);
    let network = Network::from_onnx(&file).unwrap();
    let examples = random.units(5 * 30);
    let goal = Goal { bootstrap: Some(BootstrapSet::C), degree: Some(7), error: 3e-2, ..goal() };
    let world = World::new(&network, &examples, &goal);
    assert!(world.model.plan().figures().refreshes >= 2, "{}", world.model.plan());
    assert!(world.distance(&examples[..10]) <= world.model.plan().figures().error);
}

/// Convolutions, their norms folded, ReLU and residuals: a residual network of the usual form for small images, with random weights.
fn residual_network(random: &mut Random, side: usize, widths: &[usize], blocks: usize) -> Network {
    let mut graph = Graph::default();
    let mut names = 0;
    let mut convolution = |graph: Graph, from: &str, [inputs, outputs, kernel, stride]: [usize; 4]| {
        names += 1;
        let (w, to) = (format!("w{names}"), format!("c{names}"));
        let size = inputs * kernel * kernel;
        let weights: Vec<f64> = random.units(outputs * size).iter().map(|w| w * 1.5 / (size as f64).sqrt()).collect();
        let pad = (kernel as i64 - 1) / 2;
        let graph = graph.constant(tensor(&w, &[outputs, inputs, kernel, kernel], &weights)).node(
            "Conv",
            &[from, &w],
            &to,
            &[("pads", Attr::Ints(&[pad; 4])), ("strides", Attr::Ints(&[stride as i64; 2]))],
        );
        (graph, to)
    };
    let (mut g, first) = convolution(std::mem::take(&mut graph), "x", [3, widths[0], 3, 1]);
    g = g.node("Relu", &[&first], "r", &[]);
    let (mut at, mut width) = ("r".to_owned(), widths[0]);
    for (stage, next) in widths.iter().enumerate() {
        for block in 0..blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let (h, a) = convolution(g, &at, [width, *next, 3, stride]);
            let h = h.node("Relu", &[&a], &format!("{a}r"), &[]);
            let (h, b) = convolution(h, &format!("{a}r"), [*next, *next, 3, 1]);
            let (h, shortcut) = match stride == 2 {
                true => convolution(h, &at, [width, *next, 1, 2]),
                false => (h, at.clone()),
            };
            let h = h.node("Add", &[&b, &shortcut], &format!("{b}s"), &[]);
            at = format!("{b}o");
            g = h.node("Relu", &[&format!("{b}s")], &at, &[]);
            width = *next;
        }
    }
    let head: Vec<f64> = random.units(width * 10).iter().map(|w| w / (width as f64).sqrt()).collect();
    let file = g
        .constant(tensor("head", &[width, 10], &head))
        .node("GlobalAveragePool", &[&at], "pool", &[])
        .node("Flatten", &["pool"], "flat", &[])
        .node("MatMul", &["flat", "head"], "y", &[])
        .file(&[3, side, side], 17);
    Network::from_onnx(&file).unwrap()
}

/// A small residual network, encrypted: strides keep their pixels on the grid of the input.
#[test]
fn a_small_residual_network() {
    let mut random = Random(3);
    let network = residual_network(&mut random, 8, &[2, 4], 1);
    let examples = random.units(3 * 64 * 8);
    let goal = Goal { bootstrap: Some(BootstrapSet::B), degree: Some(15), error: 0.3, insecure: Some(10), ..goal() };
    let world = World::new(&network, &examples, &goal);
    let figures = world.model.plan().figures();
    assert!(figures.layers.iter().any(|l| matches!(l.order, Order::Grid { gap: 2, .. })), "{}", world.model.plan());
    assert!(figures.refreshes >= 4, "{}", world.model.plan());
    let found = world.distance(&examples[..3 * 64]);
    assert!(found <= figures.error, "{found} over {}", figures.error);
}

/// ResNet-20 as it is trained for 32 × 32 pixels (or ResNet-8 of the same form), at 128 bits of security: a refresh for each function but the
/// first, and as few diagonals as strides on one grid leave.
#[test]
fn resnet_is_planned() {
    let mut random = Random(4);
    let blocks = sized(1, 3);
    let network = residual_network(&mut random, 32, &[16, 32, 64], blocks);
    let examples = random.units(3 * 1024 * 2);
    let goal = Goal { label: Label::Numbers, degree: Some(255), error: 0.1, ..Goal::default() };
    let model = compile(&network, &examples, &goal).unwrap();
    let (figures, plan) = (model.plan().figures(), model.plan());
    assert_eq!(figures.layers.len(), 6 * blocks + 2, "the pool is composed: {plan}");
    // Its weights are in the file once, with eight bytes for each row of a map and for each bias.
    let (bytes, weights) = (model.to_bytes().unwrap().len() - plan.to_json().len(), sized(78_000, 272_000));
    assert!(bytes < 12 * weights + 32 * sized(100_000, 264_000), "{bytes} bytes");
    assert_eq!((figures.bootstrap, figures.refreshes), (Some(BootstrapSet::A), 6 * blocks), "{plan}");
    assert_eq!(plan.params().literal().rlwe.security.bits(), 128);
    let counts = [36, 144, 145, 128, 424, 324, 1000, 16];
    let found: Vec<usize> = figures.layers.iter().map(|l| l.diagonals).collect();
    assert!(counts.iter().all(|c| found.contains(c)), "{plan}");
    assert!(figures.galois.len() < 150 && plan.memory(false) < 10 << 30 && !plan.stores(), "{plan}");
}

/// LeNet-5 with ReLU and average pools, as exported, at 128 bits: either way it fits.
#[test]
fn lenet_is_planned() {
    let mut random = Random(5);
    let mut graph = Graph::default();
    for (name, dims) in
        [("c1", &[6, 1, 5, 5][..]), ("c2", &[16, 6, 5, 5]), ("d1", &[400, 120]), ("d2", &[120, 84]), ("d3", &[84, 10])]
    {
        let size = dims.iter().product::<usize>();
        let inputs = if dims.len() == 4 { size / dims[0] } else { dims[0] };
        let weights: Vec<f64> = random.units(size).iter().map(|w| w * 1.5 / (inputs as f64).sqrt()).collect();
        graph = graph.constant(tensor(name, dims, &weights));
    }
    let half = [("kernel_shape", Attr::Ints(&[2, 2])), ("strides", Attr::Ints(&[2, 2]))];
    let file = graph
        .node("Conv", &["x", "c1"], "a", &[("pads", Attr::Ints(&[2; 4]))])
        .node("Relu", &["a"], "b", &[])
        .node("AveragePool", &["b"], "c", &half)
        .node("Conv", &["c", "c2"], "d", &[])
        .node("Relu", &["d"], "e", &[])
        .node("AveragePool", &["e"], "f", &half)
        .node("Flatten", &["f"], "g", &[])
        .node("MatMul", &["g", "d1"], "h", &[])
        .node("Relu", &["h"], "i", &[])
        .node("MatMul", &["i", "d2"], "j", &[])
        .node("Relu", &["j"], "k", &[])
        .node("MatMul", &["k", "d3"], "y", &[])
        .file(&[1, 28, 28], 17);
    let network = Network::from_onnx(&file).unwrap();
    let examples: Vec<f64> = random.units(784 * 4).iter().map(|x| x.abs()).collect();
    let goal = Goal { label: Label::Numbers, degree: Some(31), error: 1e-2, ..Goal::default() };
    let leveled = compile(&network, &examples, &goal).unwrap();
    let refreshed = compile(&network, &examples, &Goal { bootstrap: Some(BootstrapSet::A), ..goal }).unwrap();
    let (a, b) = (leveled.plan().figures(), refreshed.plan().figures());
    assert!(a.bootstrap.is_some() || a.seconds <= b.seconds);
    assert!(b.refreshes >= 2, "{}\n{}", leveled.plan(), refreshed.plan());
    for plan in [leveled.plan(), refreshed.plan()] {
        assert_eq!(plan.params().literal().rlwe.security.bits(), 128, "{plan}");
        // The first pool is not composed with the convolution after it, which would have 2,048 diagonals.
        let most = plan.figures().layers.iter().map(|l| l.diagonals).max();
        assert!(plan.figures().layers.len() > 5 && most < Some(700), "{plan}");
    }
}
