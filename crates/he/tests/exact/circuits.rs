//! Random circuits: whatever is accepted decrypts to what plain arithmetic says.
//!
//! `SUDARE_CIRCUITS` sets their number for each scheme; 100000 is the figure of a long run.

use super::world::{STEPS, Words, World, literal};
use sudare_he::HeError;
use sudare_he::bfv::Bfv;
use sudare_he::bgv::Bgv;
use sudare_he::integer::plan::slot_modulus;
use sudare_he::integer::{Ciphertext, Packing, Scheme};

fn circuits() -> u64 {
    std::env::var("SUDARE_CIRCUITS").ok().and_then(|n| n.parse().ok()).unwrap_or(150)
}

struct Node<S: Scheme> {
    values: Vec<u64>,
    ciphertext: Ciphertext<S>,
}

/// One random operation on nodes that exist; `None` if the bound refused it.
fn grow<S: Scheme>(w: &World<S>, nodes: &[Node<S>], words: &mut Words) -> Option<Node<S>> {
    let (s, n, packing) = (&w.server, w.params.degree(), Packing::Slots);
    // Recent nodes more often: depth.
    let mut pick = || {
        let back = words.below(3).min(nodes.len() as u64 - 1) as usize;
        if words.below(3) == 0 { words.below(nodes.len() as u64) as usize } else { nodes.len() - 1 - back }
    };
    let (a, b) = (&nodes[pick()], &nodes[pick()]);
    let fresh = || Words(7).values(n, w.params.t());
    let (x, y) = (&a.values, &b.values);
    let (c, d) = (&a.ciphertext, &b.ciphertext);
    let row = w.params.row();
    let (values, result) = match words.below(12) {
        0 => (w.plus(x, y), s.add(c, d)),
        1 => (w.minus(x, y), s.sub(c, d)),
        2 => (w.minus(&vec![0; n], x), s.negate(c)),
        3 => (w.plus(x, &fresh()), s.add_plain(c, &w.plain(&fresh(), packing))),
        4 => (w.times(packing, x, &fresh()), s.mul_plain(c, &w.plain(&fresh(), packing))),
        5 => {
            let k = words.below(200) as i64 - 100;
            (x.iter().map(|v| w.t().mul(*v, w.t().reduce_i64(k))).collect(), s.mul_integer(c, k))
        }
        6 => (x.clone(), s.drop_to(c, c.level().saturating_sub(1))),
        7 => {
            let step = STEPS[words.below(4) as usize];
            let at = |i: usize| i / row * row + (i as i64 % row as i64 + step).rem_euclid(row as i64) as usize;
            ((0..n).map(|i| x[at(i)]).collect(), s.rotate_rows(c, step))
        }
        8 => (x[row..].iter().chain(&x[..row]).copied().collect(), s.rotate_columns(c)),
        9 => (w.plus(&w.times(packing, x, y), &w.times(packing, x, x)), s.dot_relin(&[c, c], &[d, c])),
        10 => (w.times(packing, x, y), s.mul(c, d).and_then(|p| s.relinearize(&p))),
        _ => (w.times(packing, x, y), s.mul_relin(c, d)),
    };
    match result {
        Ok(ciphertext) => Some(Node { values, ciphertext }),
        Err(HeError::NoBudget { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}

fn random_circuits<S: Scheme>() {
    let sets = [
        (slot_modulus(20, 9).unwrap(), literal(9, &[40, 36, 36, 36], &[46], 1)),
        (12289, literal(9, &[45, 45, 45], &[46, 46], 2)),
        (12289, literal(9, &[36, 30, 30, 30, 30, 30], &[49, 49], 3)),
    ];
    let (mut accepted, mut refused) = (0, 0);
    let per_world = 50;
    for (round, first) in (0..circuits()).step_by(per_world).enumerate() {
        let (t, literal) = &sets[round % sets.len()];
        let t = *t;
        let w = World::<S>::new(literal, t);
        for salt in first..(first + per_world as u64).min(circuits()) {
            let mut words = Words(salt * 31 + 1);
            let mut nodes: Vec<Node<S>> = (0..2)
                .map(|_| {
                    let values = words.values(w.params.degree(), t);
                    Node { ciphertext: w.encrypt(&values, Packing::Slots), values }
                })
                .collect();
            for _ in 0..8 {
                match grow(&w, &nodes, &mut words) {
                    Some(node) => {
                        assert_eq!(w.decrypt(&node.ciphertext, Packing::Slots), node.values, "circuit {salt}");
                        nodes.push(node);
                        accepted += 1;
                    }
                    None => refused += 1,
                }
            }
        }
    }
    println!("{}: {accepted} operations accepted, {refused} refused", S::NAME);
    assert!(accepted > 5 * refused && refused > 0, "{accepted} {refused}");
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
    fn run<S: Scheme>(literal: &sudare_he::ckks::ParamsLiteral) -> (Vec<u64>, Vec<u64>) {
        let w = World::<S>::new(literal, 12289);
        let mut words = Words(11);
        let (x, y) = (words.values(512, 12289), words.values(512, 12289));
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
