//! Files of models and plans.

use crate::world::{World, compile, goal, mlp};
use sudare_models::{Function, Goal, Model, Plan};
use sudare_ring::{ErrorKind, Kinded};
use sudare_testkit::Random;

fn model(seed: u64) -> (Model, Vec<f64>) {
    let mut random = Random(seed);
    let network = mlp(&mut random, &[6, 5, 3], &Function::Tanh);
    let examples = random.units(6 * 20);
    (compile(&network, &examples, &Goal { batch: 4, ..goal() }).unwrap(), examples)
}

#[test]
fn a_model_travels() {
    let (model, examples) = model(1);
    let read = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(read.plan().to_json(), model.plan().to_json());
    assert_eq!(read.polynomial(&examples[..6]).unwrap(), model.polynomial(&examples[..6]).unwrap());
    assert_eq!(read.clear(&examples[..6]).unwrap(), model.clear(&examples[..6]).unwrap());
    // A client needs the plan's text alone.
    let plan = Plan::from_json(model.plan().to_json()).unwrap();
    assert_eq!(plan.hash(), model.plan().hash());
    let world = World::of(read);
    assert!(world.distance(&examples) <= plan.figures().error);
}

#[test]
fn weights_of_another_model_are_refused() {
    let ((one, _), (other, _)) = (model(1), model(2));
    let head = |m: &Model| 16 + m.plan().to_json().len();
    let (a, b) = (one.to_bytes().unwrap(), other.to_bytes().unwrap());
    let swapped = [&a[..head(&one)], &b[head(&other)..]].concat();
    assert_eq!(Model::from_bytes(&swapped).unwrap_err().kind(), ErrorKind::Mismatch);
}

#[test]
fn damaged_files() {
    let (model, _) = model(3);
    let bytes = model.to_bytes().unwrap();
    for cut in (0..bytes.len()).step_by(37) {
        assert!(Model::from_bytes(&bytes[..cut]).is_err(), "{cut}");
    }
    // Weights are under a digest; what is changed in the plan gives another plan, or none.
    let head = 16 + model.plan().to_json().len();
    for i in (head..bytes.len()).step_by(29) {
        let mut changed = bytes.clone();
        changed[i] ^= 4;
        assert_eq!(Model::from_bytes(&changed).unwrap_err().kind(), ErrorKind::Mismatch);
    }
    let text = model.plan().to_json();
    for (from, to) in
        [("\"images\": 4", "\"images\": 3"), ("\"sudare_model\": 2", "\"sudare_model\": 9"), ("\"relin\"", "\"x\"")]
    {
        assert!(text.contains(from), "{from}");
        assert_eq!(Plan::from_json(&text.replacen(from, to, 1)).unwrap_err().kind(), ErrorKind::Format, "{to}");
    }
}

/// With a ciphertext for each number a model may have more inputs than there are slots, but not none, and none that cannot be counted.
#[test]
fn plans_of_a_ciphertext_for_each_number() {
    let mut random = Random(4);
    let network = mlp(&mut random, &[300, 1], &Function::Identity);
    // Features of unlike ranges are divided by factors.
    let mut examples = random.units(300 * 16);
    examples.iter_mut().step_by(2).for_each(|x| *x *= 1e-6);
    let model = compile(&network, &examples, &Goal { batch: 256, ..goal() }).unwrap();
    let (text, figures) = (model.plan().to_json(), model.plan().figures());
    assert!(figures.apart && figures.images == 256 && figures.factors.len() == 300, "{}", model.plan());
    assert_eq!(Plan::from_json(text).unwrap().hash(), model.plan().hash());
    let output = "\"output\": [\n    1\n  ]";
    assert!(text.contains(output), "{text}");
    for shape in ["0", "9223372036854775808, 2"] {
        let changed = text.replacen(output, &format!("\"output\": [{shape}]"), 1);
        assert_eq!(Plan::from_json(&changed).unwrap_err().kind(), ErrorKind::Format, "{shape}");
    }
}
