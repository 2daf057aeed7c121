//! Gates of two bits: all of them, packed and split, and many rounds of them.

use super::World;
use sudare_he::circuits::bootstrapping::BootstrapLiteral;
use sudare_he::discrete::{Discrete, DiscreteSet, Form, Gate};
use sudare_testkit::{Random, sized};

fn numbers(bits: impl Iterator<Item = bool>) -> Vec<u64> {
    bits.map(u64::from).collect()
}

/// All 16, by one bootstrap or two together, and by products where there are levels.
#[test]
fn all_sixteen() {
    let cases = [(DiscreteSet::G15, Form::Packed), (DiscreteSet::S15, Form::Packed), (DiscreteSet::L15, Form::Split)];
    for (set, form) in cases {
        let w = World::small(set.literal(), 9);
        let mut random = Random(4);
        let (a, b) = (w.random_bits(&mut random), w.random_bits(&mut random));
        let [x, y] = [&a, &b].map(|bits| w.bits(bits, form));
        let gates: Vec<Gate> = Gate::all().collect();
        let all = w.server.gates(&gates, &x, &y).unwrap();
        for (gate, value) in gates.iter().zip(&all) {
            let wanted = numbers(a.iter().zip(&b).map(|(a, b)| gate.apply(*a, *b)));
            assert_eq!(w.decrypt(value), wanted, "{set}, {gate:?}");
            assert_eq!((value.form(), value.modulus()), (form, x.modulus()));
            // What comes out goes in again.
            if set == DiscreteSet::G15 && value.range() == (0, 1) {
                let again = w.server.gate(Gate::NAND, value, &x).unwrap();
                assert_eq!(w.decrypt(&again), numbers(wanted.iter().zip(&a).map(|(g, a)| !(*g == 1 && *a))));
            }
        }
    }
}

/// Two gates of the state a round, by one bootstrap: no wrong bit, and errors that stay what they were.
#[test]
fn a_thousand_rounds() {
    rounds(BootstrapLiteral::g15().insecure(sized(9, 10)).unwrap(), sized(30, 1000));
}

/// The same at full size.
#[test]
fn rounds_of_the_set_itself() {
    if sized(false, true) {
        rounds(BootstrapLiteral::g15(), 20);
    }
}

fn rounds(literal: BootstrapLiteral, count: usize) {
    let w = World::new(&literal);
    let mut random = Random(8);
    let (mut a, mut b) = (w.random_bits(&mut random), w.random_bits(&mut random));
    let mut state = [&a, &b].map(|bits| w.bits(bits, Form::Packed));
    let mut squares = Vec::new();
    for round in 0..count {
        let [x, y] = &state;
        // Neither of both is constant for long.
        let gates = [Gate::XOR, [Gate::NAND, Gate::OR, Gate::AND, Gate::NOR][round % 4]];
        let new: Vec<Discrete> = w.server.gates(&gates, x, y).unwrap();
        let old = (a.clone(), b.clone());
        for (i, (p, q)) in old.0.iter().zip(&old.1).enumerate() {
            (a[i], b[i]) = (gates[0].apply(*p, *q), gates[1].apply(*p, *q));
        }
        state = new.try_into().unwrap();
        for (value, bits) in state.iter().zip([&a, &b]) {
            assert_eq!(w.decrypt(value), numbers(bits.iter().copied()), "round {round}");
        }
        let signed: Vec<i64> = a.iter().map(|bit| i64::from(*bit)).collect();
        squares.push(w.error(&state[0], &signed));
    }
    // The error does not grow: the last rounds have that of the first ones.
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (first, last) = (mean(&squares[1..squares.len() / 2]), mean(&squares[squares.len() / 2..]));
    let tolerance = if count >= 1000 { 0.1 } else { 0.5 };
    assert!((last / first - 1.0).abs() < tolerance, "mean squares of {first:.3e} first and {last:.3e} last");
}

/// Layers of products between refreshes of split bits.
#[test]
fn layers_of_products() {
    let w = World::small(BootstrapLiteral::l15(), 9);
    let mut random = Random(9);
    let (mut a, mut b) = (w.random_bits(&mut random), w.random_bits(&mut random));
    let [mut x, mut y] = [&a, &b].map(|bits| w.bits(bits, Form::Split));
    let layers = w.server.params().usable_levels();
    assert_eq!(layers, 4);
    for round in 0..sized(3, 20) {
        for layer in 0..layers {
            let gates = [Gate::XOR, [Gate::OR, Gate::NAND][layer % 2]];
            let new = w.server.gates(&gates, &x, &y).unwrap();
            let old = (a.clone(), b.clone());
            for (i, (p, q)) in old.0.iter().zip(&old.1).enumerate() {
                (a[i], b[i]) = (gates[0].apply(*p, *q), gates[1].apply(*p, *q));
            }
            let [new_x, new_y]: [Discrete; 2] = new.try_into().unwrap();
            (x, y) = (new_x, new_y);
            assert_eq!(x.level(), w.server.params().output_level() - layer - 1);
        }
        for (value, bits) in [(&x, &a), (&y, &b)] {
            assert_eq!(w.decrypt(value), numbers(bits.iter().copied()), "round {round}");
        }
        (x, y) = (w.server.refresh(&x).unwrap(), w.server.refresh(&y).unwrap());
    }
    // A product of integers, and of other moduli than two.
    let product = w.server.mul(&x, &y).unwrap();
    assert_eq!(w.decrypt(&product), numbers(a.iter().zip(&b).map(|(a, b)| *a && *b)));
}
