//! What compiling refuses, and what a plan says.

use crate::world::{compile, goal, mlp};
use sudare_models::{Function, Goal, Label};
use sudare_ring::{ErrorKind, Kinded};
use sudare_testkit::Random;

#[test]
fn goals_that_make_no_sense() {
    let mut random = Random(1);
    let network = mlp(&mut random, &[4, 3, 2], &Function::Relu);
    let examples = random.units(4 * 8);
    let refused = |goal: Goal| compile(&network, &examples, &goal).unwrap_err().kind();
    for wrong in [
        Goal { error: 0.0, ..goal() },
        Goal { margin: 0.5, ..goal() },
        Goal { agreement: 2.0, ..goal() },
        Goal { degree: Some(0), ..goal() },
        Goal { batch: 0, ..goal() },
        Goal { error: 1e-14, ..goal() },
        Goal { insecure: Some(2), ..goal() },
    ] {
        assert_eq!(refused(wrong), ErrorKind::Parameters, "{wrong:?}");
    }
    let refused_of = |examples: &[f64]| compile(&network, examples, &goal()).unwrap_err().kind();
    assert_eq!(refused_of(&examples[..5]), ErrorKind::Shape);
    assert_eq!(refused_of(&[]), ErrorKind::Shape);
    assert_eq!(refused_of(&[f64::INFINITY; 4]), ErrorKind::Input);
    // Some bootstrapping sets are over smaller rings, and none is needed.
    compile(&network, &examples, &Goal { insecure: Some(16), ..goal() }).unwrap();
}

/// What one image could reach with a ciphertext for each of its numbers, which is for batches, is not named as what is to be had.
#[test]
fn layers_wider_than_the_ring_are_refused_for_that() {
    let mut random = Random(3);
    let network = mlp(&mut random, &[4, 300, 2], &Function::Power(2));
    let examples = random.units(4 * 8);
    let refused = compile(&network, &examples, &Goal { error: 0.1, ..goal() }).unwrap_err().to_string();
    assert!(refused.contains("no ring of a degree up to 2^9"), "{refused}");
}

/// A tighter wish takes a higher degree, and a plan shows intervals of two digits alone.
#[test]
fn degrees_follow_the_wish() {
    let mut random = Random(2);
    let network = mlp(&mut random, &[6, 8, 2], &Function::Relu);
    let examples = random.units(6 * 50);
    let degree = |difference: f64| {
        let goal = Goal { approximation: Some(difference), ..goal() };
        let model = compile(&network, &examples, &goal).unwrap();
        let figures = model.plan().figures();
        assert!(figures.approximation.largest <= difference);
        figures.layers[0].degree
    };
    let (low, high) = (degree(0.5), degree(0.02));
    assert!(low < high, "{low} and {high}");
    let model = compile(&network, &examples, &Goal { label: Label::Argmax, ..goal() }).unwrap();
    let text = model.plan().to_string();
    for said in ["approximation:", "noise:", "agreement:", "50 examples", "NO SECURITY"] {
        assert!(text.contains(said), "{said} is not in {text}");
    }
    let reach = model.plan().figures().layers[0].reach;
    let digits = reach / 10f64.powf(reach.log10().floor() - 1.0);
    assert!((digits - digits.round()).abs() < 1e-9, "{reach}");
}
