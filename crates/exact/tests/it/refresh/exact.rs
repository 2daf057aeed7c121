//! What comes out is what went in, again and again.

use super::World;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::refresh::{RefreshLiteral, RefreshSet, Step};
use sudare_exact::{Ciphertext, Scheme};
use sudare_ring::Threads;
use sudare_rlwe::wire::Wire;
use sudare_testkit::{Random, sized};

/// Refreshes with as many products between them as the set promises, in both schemes.
fn rounds<S: Scheme>(w: &World, promised: usize, count: usize) {
    let (server, t) = (w.evaluator::<S>(), *w.set.params().modulus());
    let mut values = w.random(&mut Random(7));
    // No zeros, which would stay.
    values.iter_mut().for_each(|v| *v = (*v).max(1));
    let mut state: Ciphertext<S> = w.encrypt(&values, w.set.input().0);
    for round in 0..count {
        state = w.server.refresh(&state).unwrap();
        assert_eq!((state.level(), state.noise()), w.set.output());
        assert!(w.slack(&state) > 0.0, "the noise bound holds");
        assert_eq!(w.decrypt(&state), values, "{} after refresh {round}", S::NAME);
        let factor = state.clone();
        for product in 0..promised {
            // Squares and products of two turn by turn, so that values stay random.
            let other = if product % 2 == 0 { &state } else { &factor };
            let plain = if product % 2 == 0 { values.clone() } else { w.decrypt(&factor) };
            state = server.mul_relin(&state, other).unwrap();
            values = values.iter().zip(&plain).map(|(a, b)| t.mul(*a, *b)).collect();
        }
        assert_eq!(w.decrypt(&state), values, "{} after the products of round {round}", S::NAME);
        assert!(w.slack(&state) > 0.0);
    }
}

#[test]
fn refresh_products_refresh() {
    for set in RefreshSet::ALL {
        let w = World::small(set.literal());
        let [bfv, bgv] = w.set.products();
        rounds::<Bfv>(&w, bfv, 3);
        rounds::<Bgv>(&w, bgv, 3);
    }
}

/// The sets themselves.
#[test]
fn refresh_products_refresh_at_full_size() {
    if sized(false, true) {
        for (set, count) in [(RefreshSet::X15, 50), (RefreshSet::X16, 3)] {
            let w = World::new(&set.literal());
            let [bfv, bgv] = w.set.products();
            rounds::<Bgv>(&w, bgv, count);
            rounds::<Bfv>(&w, bfv, 1);
        }
    }
}

/// All t − 1, all 0, one slot alone, constants; encryptions of every level from the input's on, and of any factor.
#[test]
fn slots_that_are_not_random() {
    let w = World::small(RefreshLiteral::x15());
    let (n, t, lowest) = (w.slots(), w.set.params().t(), w.set.input().0);
    let one = |k: usize| (0..n).map(|i| u64::from(i == k)).collect::<Vec<_>>();
    let cases = [vec![t - 1; n], vec![0; n], vec![t / 2; n], one(0), one(n / 2), one(n - 1), (0..n as u64).collect()];
    for (i, values) in cases.iter().enumerate() {
        let level = lowest + i % 3;
        assert_eq!(w.decrypt(&w.server.refresh(&w.encrypt::<Bgv>(values, level)).unwrap()), *values);
        assert_eq!(w.decrypt(&w.server.refresh(&w.encrypt::<Bfv>(values, level)).unwrap()), *values);
    }
    // Another plaintext factor, and a sum of both.
    let server = w.evaluator::<Bgv>();
    let x = w.random(&mut Random(5));
    let a = w.encrypt::<Bgv>(&x, w.set.output().0);
    let b = server.with_factor(&a, 12345).unwrap();
    let fresh = w.server.refresh(&b).unwrap();
    assert_eq!(w.decrypt(&fresh), x);
    assert_eq!(fresh.factor(), w.encrypt::<Bgv>(&x, fresh.level()).factor(), "that of a fresh ciphertext");
    let twice: Vec<u64> = x.iter().map(|v| 2 * v % t).collect();
    assert_eq!(w.decrypt(&server.add(&fresh, &a).unwrap()), twice);
}

/// One thread gives the same words as many, and a refresh does what it says.
#[test]
fn threads_and_steps() {
    let w = World::small(RefreshLiteral::x15());
    let x = w.encrypt::<Bgv>(&w.random(&mut Random(2)), w.set.output().0);
    w.server.reset_counters();
    let mut steps = Vec::new();
    let alone = Threads::new(1).run(|| w.server.refresh_with(&x, &mut |step| steps.push(step)).unwrap());
    assert_eq!(steps, Step::ALL);
    assert_eq!(w.server.counters(), w.set.operations());
    let many = Threads::new(4).run(|| w.server.refresh(&x).unwrap());
    assert!(alone.to_bytes().unwrap() == many.to_bytes().unwrap());
}
