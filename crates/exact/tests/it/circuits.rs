//! Random circuits: whatever is accepted decrypts to what plain arithmetic says, and its noise is within the bound
//! that it carries.
//!
//! Every operation of the evaluator, over fourteen plaintext moduli in slots and in coefficients and eight chains of
//! primes, on messages that are random or as large as they can be, with sums that are fully correlated.
//! `SUDARE_CIRCUITS` sets the number of circuits for each scheme, `SUDARE_CIRCUITS_FROM` the first: `make soak` runs 100000.

use super::world::{STEPS, World, literal};
use sudare_exact::ExactError;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::plan::slot_modulus;
use sudare_exact::{Ciphertext, Packing, Scheme};
use sudare_rlwe::RlweError;
use sudare_rlwe::params::ParamsLiteral;
use sudare_testkit::{Random, setting};

/// Circuits under one key.
const PER_WORLD: u64 = 20;
/// Operations of a circuit.
const STEPS_EACH: usize = 10;

/// Plaintext moduli, and whether messages are in slots.
fn moduli() -> Vec<(u64, Packing)> {
    let slots = [12289].into_iter().chain([17, 20, 30, 40, 59].map(|bits| slot_modulus(bits, 9).unwrap()));
    let coefficients = [2, 3, 4, 256, 65536, 1_000_000, (1 << 59) - 55, (1 << 60) - 1];
    let slots = slots.map(|t| (t, Packing::Slots));
    slots.chain(coefficients.map(|t| (t, Packing::Coefficients))).collect()
}

/// The chains that hold products modulo t.
fn chains(t: u64) -> Vec<ParamsLiteral> {
    match 64 - t.leading_zeros() {
        0..=20 => vec![
            literal(9, &[40, 36, 36, 36], &[46], 1),
            literal(9, &[45, 45, 45, 45], &[46, 46], 2),
            literal(9, &[36, 30, 30, 30, 30, 30], &[49, 49], 3),
            literal(9, &[60, 40, 40, 40], &[60], 1),
        ],
        21..=40 => vec![literal(9, &[47; 6], &[47, 47], 2), literal(9, &[49; 5], &[49], 1)],
        _ => vec![literal(9, &[47; 9], &[47; 3], 3), literal(9, &[47; 9], &[47; 5], 5)],
    }
}

/// A message: random, or one whose coefficients or slots are as large as they can be.
fn message(words: &mut Random, n: usize, t: u64) -> Vec<u64> {
    let half = t / 2;
    match words.below(8) {
        0 => vec![t - 1; n],
        1 => vec![half; n],
        2 => (0..n).map(|i| if i % 2 == 0 { half } else { (half + 1) % t }).collect(),
        3 => vec![0; n],
        4 => (0..n).map(|i| if i == n - 1 { half } else { 0 }).collect(),
        5 => (0..n).map(|_| [half, (half + 1) % t][words.below(2) as usize]).collect(),
        _ => words.edges(t, n),
    }
}

struct Node<S: Scheme> {
    values: Vec<u64>,
    ciphertext: Ciphertext<S>,
}

/// The message after X → X^g, or after the permutation of slots that it is.
fn automorphism<S: Scheme>(w: &World<S>, packing: Packing, x: &[u64], element: u64, step: i64) -> Vec<u64> {
    let (n, t) = (x.len(), w.t());
    if packing == Packing::Slots {
        let row = w.params.row();
        let at = |i: usize| i / row * row + (i as i64 % row as i64 + step).rem_euclid(row as i64) as usize;
        return (0..n).map(|i| x[at(i)]).collect();
    }
    let mut out = vec![0; n];
    for (i, v) in x.iter().enumerate() {
        let to = (i as u64 * element % (2 * n as u64)) as usize;
        out[to % n] = if to < n { *v } else { t.neg(*v) };
    }
    out
}

/// Names of the operations, by their numbers in [`grow`].
const OPERATIONS: [&str; 22] = [
    "add",
    "sub",
    "negate",
    "add_plain",
    "sub_plain",
    "mul_plain",
    "mul_factor",
    "mul_integer",
    "add_assign",
    "drop_to",
    "rotate_rows or automorphism",
    "rotate_columns",
    "rotate_hoisted",
    "rotate_many",
    "sum_of_automorphisms",
    "sum_slots",
    "mul",
    "square",
    "relinearize",
    "mul_relin",
    "dot",
    "dot_relin",
];

/// One operation on nodes that exist; `None` if the bound refused it or it has no meaning here.
fn grow<S: Scheme>(
    w: &World<S>,
    packing: Packing,
    nodes: &[Node<S>],
    words: &mut Random,
    operation: usize,
) -> Option<Result<Node<S>, ExactError>> {
    let (s, n, t) = (&w.server, w.params.degree(), w.t());
    // Recent nodes more often, for depth; the same twice as often, for correlation.
    let mut pick = |two: bool| {
        let fitting: Vec<&Node<S>> = nodes.iter().filter(|x| !two || x.ciphertext.parts().len() == 2).collect();
        let back = words.below(3).min(fitting.len() as u64 - 1) as usize;
        fitting[if words.below(3) == 0 { words.below(fitting.len() as u64) as usize } else { fitting.len() - 1 - back }]
    };
    let two = !matches!(operation, 0..=9 | 18);
    let (a, b) = (pick(two), pick(two));
    let (x, y, c, d) = (&a.values, &b.values, &a.ciphertext, &b.ciphertext);
    let slots = packing == Packing::Slots;
    let step = STEPS[words.below(4) as usize];
    let element = |step: i64| w.params.rotation_element(step);
    let turned = |step: i64| automorphism(w, packing, x, element(step), step);
    let times = |x: &[u64], y: &[u64]| w.times(packing, x, y);
    let (values, result) = match operation {
        0 => (w.plus(x, y), s.add(c, d)),
        1 => (w.minus(x, y), s.sub(c, d)),
        2 => (w.minus(&vec![0; n], x), s.negate(c)),
        3..=6 => {
            let p = message(words, n, t.value());
            let plain = w.plain(&p, packing);
            match operation {
                3 => (w.plus(x, &p), s.add_plain(c, &plain)),
                4 => (w.minus(x, &p), s.sub_plain(c, &plain)),
                5 => (times(x, &p), s.mul_plain(c, &plain)),
                _ => (times(x, &p), plain.factor(c.level()).and_then(|f| s.mul_factor(c, &f))),
            }
        }
        7 => {
            let k = words.below(200) as i64 - 100;
            (x.iter().map(|v| t.mul(*v, t.reduce_i64(k))).collect(), s.mul_integer(c, k))
        }
        8 => {
            // A sum of one ciphertext with itself: fully correlated.
            let count = 1 + words.below(20);
            let mut sum = c.clone();
            let done = (0..count).try_for_each(|_| s.add_assign(&mut sum, c));
            (x.iter().map(|v| t.mul(*v, t.reduce(count + 1))).collect(), done.map(|()| sum))
        }
        9 => (x.clone(), s.drop_to(c, c.level().saturating_sub(1))),
        10 if slots => (turned(step), s.rotate_rows(c, step)),
        10 => (turned(step), s.automorphism(c, element(step), step)),
        11 if slots => {
            let row = w.params.row();
            (x[row..].iter().chain(&x[..row]).copied().collect(), s.rotate_columns(c))
        }
        12 => (turned(step), s.rotate_many(c, &[step]).map(|mut all| all.remove(0))),
        13 => (turned(STEPS[2]), s.rotate_many(c, &STEPS[..3]).map(|mut all| all.remove(2))),
        14 => {
            let sum = w.plus(&w.plus(x, &turned(1)), &turned(3));
            (sum, s.sum_of_automorphisms(c, &[1, element(1), element(3)]))
        }
        15 if slots => {
            let total = x.iter().fold(0, |acc, v| t.add(acc, *v));
            (vec![total; n], s.sum_slots(c, true))
        }
        16 => (times(x, y), s.mul(c, d)),
        17 => (times(x, x), s.square(c)),
        18 => (x.clone(), s.relinearize(c)),
        19 => (times(x, y), s.mul_relin(c, d)),
        20 => (w.plus(&times(x, y), &times(x, x)), s.dot(&[c, c], &[d, c])),
        21 => (w.plus(&times(x, y), &times(x, x)), s.dot_relin(&[c, c], &[d, c])),
        _ => return None,
    };
    Some(result.map(|ciphertext| Node { values, ciphertext }))
}

fn random_circuits<S: Scheme>() {
    let (count, from) = (setting("SUDARE_CIRCUITS", 280), setting("SUDARE_CIRCUITS_FROM", 0));
    let moduli = moduli();
    let (mut accepted, mut refused) = ([0u64; OPERATIONS.len()], 0);
    for first in (from..from + count).step_by(PER_WORLD as usize) {
        let round = (first / PER_WORLD) as usize;
        let (t, packing) = moduli[round % moduli.len()];
        let chains = chains(t);
        let w = World::<S>::new(&chains[round / moduli.len() % chains.len()], t);
        for salt in first..(first + PER_WORLD).min(from + count) {
            let mut words = Random(salt * 31 + 1);
            let fresh = |words: &mut Random| {
                let values = message(words, w.params.degree(), t);
                let top = w.encrypt(&values, packing);
                // Half of them start low, where little room is left.
                let level = 1 + words.below(2 * top.level() as u64) as usize;
                let low = if level < top.level() { w.server.drop_to(&top, level) } else { Ok(top.clone()) };
                Node { ciphertext: low.unwrap_or(top), values }
            };
            let mut nodes = vec![fresh(&mut words), fresh(&mut words)];
            for _ in 0..STEPS_EACH {
                let operation = words.below(OPERATIONS.len() as u64) as usize;
                match grow(&w, packing, &nodes, &mut words, operation) {
                    Some(Ok(node)) => {
                        let (budget, headroom) = (w.budget(&node.ciphertext), node.ciphertext.headroom());
                        let name = OPERATIONS[operation];
                        assert!(budget >= headroom && headroom > 0.0, "{name}, circuit {salt}: {budget} {headroom}");
                        assert_eq!(w.decrypt(&node.ciphertext, packing), node.values, "{name}, circuit {salt}");
                        nodes.push(node);
                        accepted[operation] += 1;
                    }
                    Some(Err(ExactError::Rlwe(RlweError::NoBudget { .. }))) => refused += 1,
                    Some(Err(other)) => panic!("{}, circuit {salt}: {other}", OPERATIONS[operation]),
                    None => {}
                }
            }
        }
    }
    let total: u64 = accepted.iter().sum();
    println!("{}: {count} circuits from {from}, {total} operations accepted, {refused} refused", S::NAME);
    let never: Vec<_> = OPERATIONS.iter().zip(accepted).filter(|(_, n)| *n == 0).map(|(name, _)| name).collect();
    assert!(count < 280 || (never.is_empty() && refused > 0), "never accepted: {never:?}; {refused} refused");
    assert!(total > 3 * refused, "{total} {refused}");
}

#[test]
fn bfv_circuits() {
    random_circuits::<Bfv>();
}

#[test]
fn bgv_circuits() {
    random_circuits::<Bgv>();
}

/// The same circuit in both schemes and in plain arithmetic.
#[test]
fn bfv_equals_bgv_equals_plain() {
    let literal = literal(9, &[40, 36, 36, 36], &[46], 1);
    fn run<S: Scheme>(literal: &sudare_rlwe::params::ParamsLiteral) -> (Vec<u64>, Vec<u64>) {
        let w = World::<S>::new(literal, 12289);
        let mut words = Random(11);
        let (x, y) = (words.edges(12289, 512), words.edges(12289, 512));
        let (a, b) = (w.encrypt(&x, Packing::Slots), w.encrypt(&y, Packing::Slots));
        let s = &w.server;
        let product = s.mul_relin(&a, &s.add(&a, &b).unwrap()).unwrap();
        let result = s.sub(&s.mul_relin(&product, &b).unwrap(), &product).unwrap();
        let p = w.times(Packing::Slots, &x, &w.plus(&x, &y));
        (w.decrypt(&result, Packing::Slots), w.minus(&w.times(Packing::Slots, &p, &y), &p))
    }
    let (bfv, plain) = run::<Bfv>(&literal);
    let (bgv, _) = run::<Bgv>(&literal);
    assert_eq!(bfv, plain);
    assert_eq!(bgv, plain);
}

/// The noise bound that a ciphertext carries depends on what was done alone: it tells nothing of messages or keys.
#[test]
fn bounds_say_nothing_of_messages() {
    fn run<S: Scheme>(values: &dyn Fn(&mut Random) -> Vec<u64>) -> Vec<(f64, u64, usize)> {
        // Another key every time.
        let w = World::<S>::new(&literal(9, &[40, 36, 36, 36], &[46], 1), 12289);
        let mut words = Random(5);
        let [a, b] = [0; 2].map(|_| w.encrypt(&values(&mut words), Packing::Slots));
        let s = &w.server;
        let product = s.mul_relin(&a, &s.add(&a, &b).unwrap()).unwrap();
        let turned = s.rotate_rows(&product, 3).unwrap();
        let deeper = s.dot_relin(&[&turned, &b], &[&product, &a]).unwrap();
        [a, b, product, turned, deeper].iter().map(|c| (c.noise(), c.factor(), c.level())).collect()
    }
    fn same<S: Scheme>() {
        let zero = run::<S>(&|_| vec![0; 512]);
        assert_eq!(zero, run::<S>(&|_| vec![6144; 512]));
        assert_eq!(zero, run::<S>(&|words| words.edges(12289, 512)));
    }
    same::<Bfv>();
    same::<Bgv>();
}
