//! Models on ciphertexts: within what the plan promises.

use crate::world::{Attr, Graph, QUIET, World, compile, goal, mlp, tensor};
use sudare_models::{Client, Dense, Function, Goal, Keys, Label, ModelError, Network, Server};
use sudare_ring::{ErrorKind, Kinded};
use sudare_testkit::{Random, sized};

#[test]
fn dense_layers_of_every_form() {
    let mut random = Random(1);
    let shapes: [&[usize]; 5] = [&[7, 5], &[30, 4, 3], &[3, 20, 2], &[16, 16, 16, 16], &[1, 9, 1]];
    for sizes in shapes {
        for function in [Function::Power(2), Function::Tanh, Function::Relu] {
            let network = mlp(&mut random, sizes, &function);
            let examples = random.units(20 * sizes[0]);
            let goal = Goal { batch: if sizes.len() == 3 { 8 } else { 1 }, ..goal() };
            let world = World::new(&network, &examples, &goal);
            let found = world.distance(&examples[..11 * sizes[0]]);
            let promised = world.model.plan().figures().error;
            assert!(found <= promised && promised <= goal.error, "{sizes:?} {function:?}: {found} over {promised}");
        }
    }
}

/// A residual block with a convolution, a norm, average pools and a branch that is put beside it.
fn residual() -> Network {
    let mut random = Random(2);
    let pads = || [("pads", Attr::Ints(&[1, 1, 1, 1]))];
    let file = Graph::default()
        .constant(tensor("w", &[2, 1, 3, 3], &random.units(18)))
        .constant(tensor("u", &[2, 2, 3, 3], &random.units(36)))
        .constant(tensor("g", &[2], &[0.9, 1.1]))
        .constant(tensor("b", &[2], &[0.1, -0.1]))
        .constant(tensor("m", &[2], &[0.05, 0.0]))
        .constant(tensor("s", &[2], &[1.2, 0.8]))
        .constant(tensor("v", &[16, 3], &random.units(48)))
        .node("Conv", &["x", "w"], "c", &pads())
        .node("BatchNormalization", &["c", "g", "b", "m", "s"], "n", &[])
        .node("Sigmoid", &["n"], "r", &[])
        .node("Conv", &["r", "u"], "d", &pads())
        .node("Add", &["d", "r"], "e", &[])
        .node("Tanh", &["e"], "t", &[])
        .node("Concat", &["t", "r"], "k", &[("axis", Attr::Int(1))])
        .node("AveragePool", &["k"], "p", &[("kernel_shape", Attr::Ints(&[2, 2])), ("strides", Attr::Ints(&[2, 2]))])
        .node("Flatten", &["p"], "f", &[])
        .node("MatMul", &["f", "v"], "y", &[])
        .file(&[1, 4, 4], 17);
    Network::from_onnx(&file).unwrap()
}

#[test]
fn branches_meet_at_one_level() {
    let network = residual();
    // The pool is a part of its own until it is compiled.
    let functions: Vec<bool> = network.layers.iter().map(|l| l.function == Function::Identity).collect();
    assert_eq!(functions, [false, false, true, true]);
    assert_eq!(network.layers[2].sources.len(), 2);
    let mut random = Random(3);
    let examples = random.units(30 * 16);
    let world = World::new(&network, &examples, &Goal { batch: 4, ..goal() });
    let found = world.distance(&examples);
    assert!(found <= world.model.plan().figures().error);
}

/// Measured errors have at most the deviation that is foretold, and not far less in a network without spectral slack.
#[test]
fn noise_is_as_foretold() {
    let mut random = Random(4);
    let network = mlp(&mut random, &[64, 32, 8], &Function::Power(2));
    let examples = random.units(64 * 16);
    let world = World::new(&network, &examples, &Goal { error: 1e-2, ..goal() });
    let promised = world.model.plan().figures().error;
    let mut worst = 0f64;
    for _ in 0..sized(3, 12) {
        worst = worst.max(world.distance(&examples));
    }
    assert!(worst <= promised, "{worst} over {promised}");
    assert!(worst >= promised / 200.0, "{worst} far under {promised}: the promise is useless");
}

/// Inputs that no model was calibrated on, each in a ciphertext of four.
#[test]
fn two_hundred_inputs_keep_the_promise() {
    let mut random = Random(15);
    let squares = mlp(&mut random, &[12, 10, 4], &Function::Power(2));
    let ramps = mlp(&mut random, &[20, 12, 3], &Function::Relu);
    for network in [squares, ramps, residual()] {
        let mut examples = || random.units(200 * network.inputs());
        let world = World::new(&network, &examples(), &Goal { batch: 4, ..goal() });
        let (found, promised) = (world.distance(&examples()), world.model.plan().figures().error);
        assert!(found <= promised, "{found} over {promised}");
    }
}

/// Where nothing is summed over slots, errors follow Laplace's law: many more than of a normal one are far out, and the promise allows for it.
#[test]
fn tails_of_a_lone_slot() {
    let mut random = Random(14);
    let network = mlp(&mut random, &[5, 6], &Function::Identity);
    let examples = random.units(256 * 5);
    let model = compile(&network, &examples, &Goal { batch: 256, error: 1e-3, ..goal() }).unwrap();
    assert!(model.plan().figures().apart);
    let expected: Vec<f64> = examples.chunks_exact(5).flat_map(|x| model.polynomial(x).unwrap()).collect();
    let mut errors = Vec::new();
    for _ in 0..60 {
        let found = World::of(model.clone()).predict(&examples).unwrap();
        errors.extend(found.iter().zip(&expected).map(|(a, b)| (a - b).abs()));
    }
    let deviation = (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt();
    let over = |x: f64| errors.iter().filter(|e| **e > x * deviation).count() as f64 / errors.len() as f64;
    let law = |x: f64| (-std::f64::consts::SQRT_2 * x).exp();
    for x in [3.0, 4.0, 5.0] {
        assert!((0.4..2.0).contains(&(over(x) / law(x))), "{} pass {x} deviations; by the law {}", over(x), law(x));
    }
    assert!(model.plan().figures().error >= 16.0 * deviation);
}

/// The server has the keys that the plan names and no others, and counts what the simulation counted.
#[test]
fn a_simulation_is_the_run() {
    let network = residual();
    let mut random = Random(6);
    let examples = random.units(8 * 16);
    let world = World::new(&network, &examples, &goal());
    let request = world.client.encrypt(&examples[..16]).unwrap();
    world.server.run(&request, QUIET).unwrap();
    let figures = world.model.plan().figures();
    assert_eq!(world.server.counters().key_switches, figures.operations.key_switches);
    // Weights that are encoded as they are needed give the same words.
    let fresh = Server::new(&world.model, world.client.eval_keys().unwrap(), false).unwrap();
    let bytes = |server: &Server| {
        let found = server.run(&request, QUIET).unwrap();
        world.client.decrypt(&found).unwrap()
    };
    let (a, b) = (bytes(&world.server), bytes(&fresh));
    a.iter().zip(&b).for_each(|(a, b)| assert!((a - b).abs() <= 2.0 * figures.error));
    // One key less is refused before any work.
    let mut fewer = figures.galois.clone();
    fewer.pop();
    let keys = sudare_rlwe::keys::KeyGenerator::new(world.client.secret()).unwrap();
    let keys = Keys { eval: keys.eval_keys(figures.relin, &fewer).unwrap(), bootstrap: None };
    let refused = Server::new(&world.model, keys, true).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::MissingKey, "{refused}");
}

/// Values outside of the calibrated ranges: of inputs before encryption, of activations at decryption.
#[test]
fn ranges_that_are_left() {
    let mut random = Random(7);
    let network = mlp(&mut random, &[8, 6, 2], &Function::Sigmoid);
    let examples = random.units(8 * 40);
    let world = World::new(&network, &examples, &Goal { degree: Some(31), ..goal() });
    let mut large = examples[..24].to_vec();
    large[13] = 50.0;
    match world.client.encrypt(&large).unwrap_err() {
        ModelError::Range { row: 1, column: 5, bound } => assert_eq!(bound, world.model.plan().figures().input_bound),
        other => panic!("{other}"),
    }
    // Inputs within their bound that drive one hidden value far out of its interval.
    let tiny: Vec<f64> = examples.iter().map(|x| x / 20.0).collect();
    let mut spread = tiny.clone();
    spread.extend((0..8).map(|i| if i == 0 { 1.0 } else { 0.0 }));
    let narrow = Network::dense(
        8,
        vec![
            Dense { name: "sum".into(), weights: vec![1.0; 8 * 4], bias: vec![0.0; 4], function: Function::Sigmoid },
            Dense { name: "out".into(), weights: vec![1.0; 4], bias: vec![0.0], function: Function::Identity },
        ],
    )
    .unwrap();
    let world = World::new(&narrow, &spread, &Goal { degree: Some(31), ..goal() });
    let error = world.predict(&[1.4; 8]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Precision, "{error}");
    assert!(error.to_string().contains("interval"), "{error}");
    world.predict(&[0.1; 8]).unwrap();
}

#[test]
fn foreign_plans_keys_and_requests() {
    let mut random = Random(8);
    let examples = random.units(5 * 10);
    let [one, other] =
        [2, 3].map(|hidden| World::new(&mlp(&mut random, &[5, hidden, 2], &Function::Power(2)), &examples, &goal()));
    let request = one.client.encrypt(&examples[..5]).unwrap();
    assert_eq!(other.server.run(&request, QUIET).unwrap_err().kind(), ErrorKind::Mismatch);
    let answer = one.server.run(&request, QUIET).unwrap();
    assert_eq!(other.client.decrypt(&answer).unwrap_err().kind(), ErrorKind::Mismatch);
    let stranger = Client::new(one.model.plan()).unwrap();
    assert_eq!(
        one.server.run(&stranger.encrypt(&examples[..5]).unwrap(), QUIET).unwrap_err().kind(),
        ErrorKind::Mismatch
    );
    assert!(stranger.decrypt(&answer).is_err());
    for wrong in [&examples[..4], &[]] {
        assert_eq!(one.client.encrypt(wrong).unwrap_err().kind(), ErrorKind::Shape);
    }
    assert_eq!(one.client.encrypt(&[f64::NAN; 5]).unwrap_err().kind(), ErrorKind::Input);
}

#[test]
fn labels_are_the_clear_models() {
    let mut random = Random(9);
    let network = mlp(&mut random, &[10, 12, 4], &Function::Relu);
    let examples = random.units(10 * 120);
    let goal = Goal { label: Label::Argmax, agreement: 0.97, approximation: None, batch: 16, ..goal() };
    let world = World::new(&network, &examples, &goal);
    let figures = world.model.plan().figures();
    assert!(figures.agreement >= 0.95 && figures.approximation.same >= 0.97);
    let found = world.client.labels(&world.predict(&examples).unwrap());
    let clear = examples.chunks(10).map(|x| Label::Argmax.of(&world.model.clear(x).unwrap()));
    let same = found.iter().zip(clear).filter(|(a, b)| **a == *b).count();
    assert!(same as f64 >= 0.94 * found.len() as f64, "{same} of {}", found.len());
}

#[test]
fn secure_parameters_are_the_smallest() {
    let mut random = Random(10);
    let network = mlp(&mut random, &[784, 128, 10], &Function::Power(2));
    let examples: Vec<f64> = random.units(784 * 4).iter().map(|x| x.abs()).collect();
    let model = compile(&network, &examples, &Goal { error: 1e-2, label: Label::Numbers, ..Goal::default() }).unwrap();
    let params = model.plan().params();
    assert_eq!(params.literal().rlwe.security.bits(), 128);
    assert_eq!(params.max_level(), 3, "a square takes one level");
    assert!(params.degree() <= 1 << 13, "{params:?}");
    assert!(model.plan().to_string().contains("128 bits of security"));
}

/// Features of unlike ranges, as a table has them before it is scaled, each keep their precision.
#[test]
fn unlike_features() {
    let mut random = Random(11);
    let sizes = [4000.0, 0.03, 1.0, 0.0, 90.0];
    let weights = sizes.iter().map(|s| if *s == 0.0 { 1.0 } else { 1.0 / s }).collect();
    let scaled = Dense { name: "scaled".into(), weights, bias: vec![0.1], function: Function::Sigmoid };
    let network = Network::dense(5, vec![scaled]).unwrap();
    let examples: Vec<f64> = (0..200).map(|i| random.units(1)[0] * sizes[i % 5]).collect();
    let world = World::new(&network, &examples, &goal());
    assert!(world.distance(&examples) <= world.model.plan().figures().error);
    for (x, wanted) in examples.chunks(5).map(|x| (world.model.clear(x).unwrap(), network.evaluate(x).unwrap())) {
        assert!((x[0] - wanted[0]).abs() < 1e-12);
    }
    let mut outside = examples[..5].to_vec();
    outside[1] = 0.2;
    assert!(matches!(world.client.encrypt(&outside), Err(ModelError::Range { column: 1, bound, .. }) if bound < 0.1));
}

/// Large batches have a ciphertext for each number, and no rotation key; a linear model has no key at all.
#[test]
fn a_slot_for_each_example() {
    let mut random = Random(12);
    let shapes: [(&[usize], Function); 3] =
        [(&[7, 1], Function::Identity), (&[6, 9, 3], Function::Power(2)), (&[5, 40, 4, 2], Function::Sigmoid)];
    for (sizes, function) in shapes {
        let network = mlp(&mut random, sizes, &function);
        let examples = random.units(700 * sizes[0]);
        let goal = Goal { batch: 700, degree: Some(7), error: 1e-3, ..goal() };
        let world = World::new(&network, &examples, &goal);
        let figures = world.model.plan().figures();
        assert!(figures.apart && figures.images == 256 && figures.galois.is_empty(), "{}", world.model.plan());
        assert_eq!(figures.relin.is_none(), sizes.len() == 2);
        // Three lots, of which the last is not full.
        let found = world.distance(&examples);
        assert!(found <= figures.error, "{sizes:?}: {found} over {}", figures.error);
        world.server.run(&world.client.encrypt(&examples).unwrap(), QUIET).unwrap();
        let rounds = world.server.counters().key_switches;
        assert_eq!(rounds, 6 * figures.operations.key_switches, "two runs of three lots");
        let read = World::of(sudare_models::Model::from_bytes(&world.model.to_bytes().unwrap()).unwrap());
        assert!(read.distance(&examples[..3 * sizes[0]]) <= figures.error);
    }
    // A few examples do not fill the slots.
    let network = mlp(&mut random, &[7, 1], &Function::Power(2));
    let few = compile(&network, &random.units(70), &Goal { batch: 10, ..goal() }).unwrap();
    assert!(!few.plan().figures().apart);
}

/// Convolutions of large batches take products with their own weights alone.
#[test]
fn convolutions_of_large_batches() {
    let network = residual();
    let mut random = Random(13);
    let examples = random.units(30 * 16);
    let world = World::new(&network, &examples, &Goal { batch: 256, degree: Some(7), ..goal() });
    assert!(world.model.plan().figures().apart, "{}", world.model.plan());
    assert!(world.distance(&examples) <= world.model.plan().figures().error);
}
