//! Forests on encrypted rows: decisions, labels, scores, and what is refused.

use crate::world::{QUIET, prices};
use sudare_he::ckks::{Ciphertext, Decryptor, Encoder};
use sudare_models::forest::{Client, Forest, Model, Node, Plan, Server};
use sudare_models::{Answer, Goal, Keys, Label, ModelError, Request, Shared};
use sudare_ring::{ErrorKind, Kinded};
use sudare_rlwe::wire::{Bundle, Wire};
use sudare_testkit::Random;

/// A tree of random shape, of up to `depth` steps; thresholds of `inputs` features are multiples of an eighth.
fn tree(random: &mut Random, (inputs, outputs): (usize, usize), depth: usize) -> Vec<Node> {
    let mut out = vec![(Node::Leaf(Vec::new()), 0)];
    let mut at = 0;
    while at < out.len() {
        let level = out[at].1;
        out[at].0 = if level < depth && random.chance(80) {
            let feature = random.below(inputs as u64) as usize;
            let threshold = random.below(17) as f64 / 8.0 - 1.0;
            let left = out.len();
            out.extend([(Node::Leaf(Vec::new()), level + 1), (Node::Leaf(Vec::new()), level + 1)]);
            Node::Split { feature, threshold, left, right: left + 1 }
        } else {
            Node::Leaf(random.units(outputs))
        };
        at += 1;
    }
    out.into_iter().map(|(node, _)| node).collect()
}

fn forest(random: &mut Random, (inputs, outputs): (usize, usize), (trees, depth): (usize, usize)) -> Forest {
    let trees = (0..trees).map(|_| tree(random, (inputs, outputs), depth)).collect();
    let base = random.units(outputs);
    Forest::new(inputs, true, base, trees).unwrap()
}

/// Rows of which every other number is a threshold, and some are next to one.
fn rows(random: &mut Random, inputs: usize, count: usize) -> Vec<f64> {
    let mut one = || {
        let threshold = random.below(17) as f32 / 8.0 - 1.0;
        f64::from(match random.below(4) {
            0 | 1 => threshold,
            2 => threshold.next_up(),
            _ => threshold.next_down(),
        })
    };
    (0..inputs * count).map(|_| one()).collect()
}

fn goal() -> Goal {
    Goal { insecure: Some(9), agreement: 0.0, error: 1e-2, ..Goal::default() }
}

struct World {
    model: Model,
    client: Client,
    server: Server,
}

impl World {
    fn new(forest: &Forest, examples: &[f64], goal: &Goal) -> Self {
        let model = Model::compile(forest, examples, goal, &prices).unwrap();
        let client = Client::new(model.plan()).unwrap();
        let server = Server::new(&model, client.eval_keys().unwrap(), true).unwrap();
        Self { model, client, server }
    }

    /// Scores that went by bytes.
    fn predict(&self, rows: &[f64]) -> Vec<f64> {
        let plan = self.model.plan();
        let request = Request::from_bytes(plan, &self.client.encrypt(rows).unwrap().to_bytes().unwrap()).unwrap();
        let answer = self.server.run(&request, QUIET).unwrap();
        self.client.decrypt(&Answer::from_bytes(plan, &answer.to_bytes().unwrap()).unwrap()).unwrap()
    }

    /// Scores are as near as promised, and labels those of the forest, but where its own scores are nearer than four errors. The largest
    /// distance, as a part of the promise.
    fn check(&self, rows: &[f64]) -> f64 {
        let (plan, inputs) = (self.model.plan(), self.model.plan().inputs());
        let found = self.predict(rows);
        let wanted: Vec<f64> = rows.chunks(inputs).flat_map(|x| self.model.clear(x).unwrap()).collect();
        assert_eq!(found.len(), wanted.len());
        let promised = plan.figures().error;
        let distance = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(distance <= promised, "{distance:.2e} where {promised:.2e} was promised: {plan:?}");
        let outputs = plan.outputs();
        for (row, (label, scores)) in plan.labels(&found).into_iter().zip(wanted.chunks(outputs)).enumerate() {
            let own = plan.figures().label.of(scores);
            let near = scores.iter().filter(|s| scores.iter().any(|t| *t > **s && t - **s <= 4.0 * promised)).count();
            assert!(label == own || near > 0, "row {row}: {label:?} and {own:?}");
        }
        distance / promised
    }
}

/// Forests of random shapes and sizes, rows that fill several ciphertexts and rows that fill a corner of one.
#[test]
fn decisions_are_those_of_the_forest() {
    let mut random = Random(28);
    let shapes = [
        // Features, outputs, trees, steps, rows.
        (1, 1, 1, 1, 5),
        (3, 2, 4, 3, 40),
        (5, 3, 6, 4, 9),
        (2, 5, 3, 2, 70),
        (12, 1, 7, 6, 3),
        (4, 2, 30, 5, 2),
    ];
    let mut nearest = 0.0f64;
    for (inputs, outputs, trees, depth, count) in shapes {
        let forest = forest(&mut random, (inputs, outputs), (trees, depth));
        let label = if outputs == 1 { Label::Sign } else { Label::Argmax };
        let examples = rows(&mut random, inputs, count);
        let world = World::new(&forest, &examples, &Goal { label, ..goal() });
        nearest = nearest.max(world.check(&examples));
        let text = world.model.plan().to_string();
        assert!(text.contains("NO SECURITY") && text.contains("the client learns the thresholds"), "{text}");
    }
    // The promise is no empty one.
    assert!(nearest > 0.005, "{nearest}");
}

/// The sets differ in their errors and in the thresholds that a rank can count.
#[test]
fn the_set_is_the_cheapest_that_is_near_enough() {
    let mut random = Random(5);
    let forest = forest(&mut random, (2, 2), (3, 3));
    let examples = rows(&mut random, 2, 6);
    let mut sets = Vec::new();
    for error in [1e-2, 1e-4, 1e-6] {
        let world = World::new(&forest, &examples, &Goal { error, label: Label::Numbers, ..goal() });
        assert!(world.model.plan().figures().error <= error);
        world.check(&examples);
        sets.push(world.model.plan().figures().set.clone());
    }
    assert!(sets[0] != sets[2] && sets[2] == "W16", "{sets:?}");
    let refused = Model::compile(&forest, &examples, &Goal { error: 1e-12, ..goal() }, &prices).unwrap_err();
    assert!(refused.to_string().contains("is the least error"), "{refused}");
}

/// What trees are at their ends: a single leaf, one step, a feature with more thresholds than any table has values, a way longer than a
/// small set counts.
#[test]
fn trees_of_extreme_shapes() {
    let leaf = |values: &[f64]| Node::Leaf(values.to_vec());
    let split = |threshold: f64, left, right| Node::Split { feature: 0, threshold, left, right };
    let single = Forest::new(1, true, vec![0.5], vec![vec![leaf(&[2.0])], vec![leaf(&[-0.25])]]).unwrap();
    let world = World::new(&single, &[0.0], &Goal { label: Label::Numbers, ..goal() });
    assert!((world.predict(&[7.0, -3.0])[1] - 2.25).abs() <= world.model.plan().figures().error);

    // Stumps at 300 thresholds: their sum is a staircase.
    let stump = |i: usize| vec![split(i as f64, 1, 2), leaf(&[0.0]), leaf(&[1.0])];
    let stairs = Forest::new(1, false, vec![0.0], (0..300).map(stump).collect()).unwrap();
    let examples: Vec<f64> = [-1.0, 0.0, 0.5, 127.0, 128.0, 128.5, 255.0, 256.0, 299.0, 299.5].to_vec();
    let world = World::new(&stairs, &examples, &Goal { label: Label::Numbers, error: 0.4, ..goal() });
    let found: Vec<f64> = world.predict(&examples).iter().map(|x| x.round()).collect();
    assert_eq!(found, [0.0, 0.0, 1.0, 127.0, 128.0, 129.0, 255.0, 256.0, 299.0, 300.0]);
    assert!(world.model.plan().figures().columns.len() > 2 && world.model.plan().figures().parts > 1);

    // A chain: row x falls off at the first threshold that it is not above.
    let chain = |depth: usize| {
        let mut nodes: Vec<Node> = Vec::new();
        for k in 0..depth {
            nodes.extend([split(k as f64, 2 * k + 1, 2 * k + 2), leaf(&[k as f64])]);
        }
        nodes.push(leaf(&[depth as f64]));
        Forest::new(1, true, vec![0.0], vec![nodes])
    };
    let world = World::new(&chain(20).unwrap(), &[0.0], &Goal { label: Label::Numbers, error: 0.1, ..goal() });
    assert_eq!(world.model.plan().figures().set, "W16");
    let found: Vec<f64> = world.predict(&[-1.0, 4.5, 11.0, 30.0]).iter().map(|x| x.round()).collect();
    assert_eq!(found, [0.0, 5.0, 11.0, 20.0]);
    assert!(chain(256).unwrap_err().to_string().contains("255 steps"));
}

/// Features are compared in the precision that the forest was fitted in.
#[test]
fn single_precision() {
    // Between two numbers of single precision; the row rounds up, past it.
    let [threshold, x] = [1.6, 1.55].map(|part| 1.0 + part * f64::from(f32::EPSILON));
    let nodes = || {
        vec![Node::Split { feature: 0, threshold, left: 1, right: 2 }, Node::Leaf(vec![-1.0]), Node::Leaf(vec![1.0])]
    };
    for (single, wanted) in [(true, 1), (false, 0)] {
        let forest = Forest::new(1, single, vec![0.0], vec![nodes()]).unwrap();
        let world = World::new(&forest, &[0.0], &Goal { label: Label::Sign, ..goal() });
        assert_eq!(world.model.plan().figures().label.of(&forest.evaluate(&[x]).unwrap()), Some(wanted));
        assert_eq!(world.model.plan().labels(&world.predict(&[x])), [Some(wanted)]);
    }
}

#[test]
fn what_is_no_tree() {
    let leaf = || Node::Leaf(vec![0.0]);
    let split = |feature, threshold, left, right| Node::Split { feature, threshold, left, right };
    let wrong: [(Vec<Node>, &str); 8] = [
        (vec![], "no nodes"),
        (vec![split(0, 0.0, 1, 1), leaf()], "two"),
        (vec![split(0, 0.0, 0, 1), leaf()], "after its parent"),
        (vec![split(0, 0.0, 1, 9), leaf()], "after its parent"),
        (vec![leaf(), leaf()], "no other node leads to"),
        (vec![split(2, 0.0, 1, 2), leaf(), leaf()], "rows do not have"),
        (vec![split(0, f64::NAN, 1, 2), leaf(), leaf()], "not finite"),
        (vec![Node::Leaf(vec![0.0, 1.0])], "each output"),
    ];
    for (tree, what) in wrong {
        let found = Forest::new(2, true, vec![0.0], vec![tree]).unwrap_err();
        assert!(found.kind() == ErrorKind::Format && found.to_string().contains(what), "{found}");
    }
}

fn small(seed: u64) -> (Model, Vec<f64>) {
    let mut random = Random(seed);
    let forest = forest(&mut random, (3, 2), (3, 3));
    let examples = rows(&mut random, 3, 4);
    (Model::compile(&forest, &examples, &goal(), &prices).unwrap(), examples)
}

/// Rows that cannot be compared, objects of another plan, keys that lack one.
#[test]
fn what_does_not_belong_together() {
    let ((model, examples), (other, _)) = (small(1), small(2));
    let [client, stranger] = [&model, &other].map(|m| Client::new(m.plan()).unwrap());
    for wrong in [f64::NAN, f64::INFINITY, 1e300] {
        let mut rows = examples.clone();
        rows[4] = wrong;
        assert_eq!(client.encrypt(&rows).unwrap_err(), ModelError::NotFinite { row: 1 });
    }
    assert_eq!(client.encrypt(&examples[1..]).unwrap_err().kind(), ErrorKind::Shape);
    let keys = client.eval_keys().unwrap();
    let server = Server::new(&model, keys.clone(), false).unwrap();
    let request = client.encrypt(&examples).unwrap();
    let foreign = stranger.encrypt(&examples).unwrap();
    assert_eq!(server.run(&foreign, QUIET).unwrap_err().kind(), ErrorKind::Mismatch);
    assert_eq!(
        Request::from_bytes(other.plan(), &request.to_bytes().unwrap()).unwrap_err().kind(),
        ErrorKind::Mismatch
    );
    let answer = server.run(&request, QUIET).unwrap();
    assert_eq!(stranger.decrypt(&answer).unwrap_err().kind(), ErrorKind::Mismatch);
    let second = Client::new(model.plan()).unwrap();
    assert_eq!(server.run(&second.encrypt(&examples).unwrap(), QUIET).unwrap_err().kind(), ErrorKind::Mismatch);
    // Keys of two owners, and keys without those of rotations.
    let mixed = Keys { eval: second.eval_keys().unwrap().eval, bootstrap: keys.bootstrap.clone() };
    assert_eq!(Server::new(&model, mixed, false).unwrap_err().kind(), ErrorKind::Mismatch);
    let none = sudare_rlwe::keys::EvalKeys::new(model.plan().params(), keys.id());
    let lacking = Keys { eval: none, bootstrap: keys.bootstrap.clone() };
    assert_eq!(Server::new(&model, lacking, false).unwrap_err().kind(), ErrorKind::MissingKey);
    assert!(Server::new(&model, Keys { bootstrap: None, ..keys.clone() }, false).is_err());
    let read = Keys::from_bytes(model.plan(), &keys.to_bytes().unwrap()).unwrap();
    assert_eq!(read.id(), client.secret().id());
}

/// What is decrypted beside the scores is noise: nothing of partial sums, which are as large as scores.
#[test]
fn nothing_stands_beside_scores() {
    let mut random = Random(9);
    let forest = forest(&mut random, (2, 3), (4, 4));
    let examples = rows(&mut random, 2, 2);
    let world = World::new(&forest, &examples, &goal());
    let plan = world.model.plan();
    let answer = world.server.run(&world.client.encrypt(&examples).unwrap(), QUIET).unwrap();
    let bundle = Bundle::<Ciphertext>::from_bytes(plan.params().rlwe(), &answer.to_bytes().unwrap()).unwrap();
    let (decryptor, encoder) = (Decryptor::new(world.client.secret()), Encoder::new(plan.params()));
    let (mut silent, mut scores) = (0.0f64, 0);
    for c in bundle.ciphertexts() {
        for z in encoder.decode_complex(&decryptor.decrypt(c).unwrap()).unwrap() {
            // Scores of one row or of both halves.
            if z.norm() > 1e-2 { scores += 1 } else { silent = silent.max(z.norm()) }
        }
    }
    assert!(silent <= 2.0 * plan.figures().error, "{silent}");
    assert!((1..=plan.outputs() * plan.figures().rows / 2).contains(&scores), "{scores}");
}

/// A forest travels; what is damaged or of another is refused, and never another forest.
#[test]
fn files() {
    let ((model, examples), (other, _)) = (small(3), small(4));
    let bytes = model.to_bytes().unwrap();
    assert!(Model::is_one(&bytes) && Plan::is_one(model.plan().to_json()));
    let read = Model::from_bytes(&bytes).unwrap();
    assert_eq!(read.plan().hash(), model.plan().hash());
    for row in examples.chunks(3) {
        assert_eq!(read.clear(row).unwrap(), model.clear(row).unwrap());
    }
    assert_eq!(Plan::from_json(model.plan().to_json()).unwrap().hash(), model.plan().hash());

    let text = String::from_utf8(bytes.clone()).unwrap();
    let trees = |text: &str| text[text.find(",\"trees\"").unwrap()..].to_owned();
    let theirs = String::from_utf8(other.to_bytes().unwrap()).unwrap();
    let swapped = text.replace(&trees(&text), &trees(&theirs));
    assert_eq!(Model::from_bytes(swapped.as_bytes()).unwrap_err().kind(), ErrorKind::Mismatch);
    for cut in (0..bytes.len()).step_by(97) {
        assert_eq!(Model::from_bytes(&bytes[..cut]).unwrap_err().kind(), ErrorKind::Format, "{cut}");
    }
    // Trees are under a digest.
    let first = text.len() - trees(&text).len();
    for i in (first + 10..bytes.len()).step_by(13) {
        let mut changed = bytes.clone();
        changed[i] ^= 1;
        // The last digit of a number may not matter.
        let read = Model::from_bytes(&changed);
        assert!(read.is_err() || read.unwrap().to_bytes().unwrap() == bytes, "{i}");
    }
    let plan = model.plan().to_json();
    let figures = model.plan().figures();
    for (from, to) in [
        ("\"sudare_forest\": 1".into(), "\"sudare_forest\": 2"),
        (format!("\"ways\": {}", figures.ways), "\"ways\": 0"),
        (format!("\"ways\": {}", figures.ways), "\"ways\": 9007199254740993"),
        (format!("\"rows\": {}", figures.rows), "\"rows\": 3"),
        (format!("\"most\": {}", figures.most), "\"most\": 0"),
        (format!("\"most\": {}", figures.most), "\"most\": 4096"),
        (format!("\"depth\": {}", figures.depth), "\"depth\": 0"),
        (format!("\"parts\": {}", figures.parts), "\"parts\": 0"),
        (format!("\"parts\": {}", figures.parts), "\"parts\": 18446744073709551615"),
        (format!("\"outputs\": {}", figures.outputs), "\"outputs\": 0"),
        (format!("\"inputs\": {}", figures.inputs), "\"inputs\": 1"),
        ("\"feature\": 0".into(), "\"feature\": 2"),
        ("\"weights\"".into(), "\"w\""),
    ] {
        assert!(plan.contains(&from), "{from} in {plan}");
        let found = Plan::from_json(&plan.replacen(&from, to, 1)).unwrap_err();
        assert_eq!(found.kind(), ErrorKind::Format, "{to}: {found}");
    }
    // A plan that was changed names no other forest.
    let promise = format!("\"error\": {}", figures.error);
    let escaped = text.replacen(&promise.replace('"', "\\\""), "\\\"error\\\": 1e-9", 1);
    let changed = Model::from_bytes(escaped.as_bytes()).unwrap();
    assert_ne!(changed.plan().hash(), model.plan().hash());
}
