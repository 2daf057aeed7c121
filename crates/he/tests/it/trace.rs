//! Trace-type functions in every form against plain sums, and what stands on them.

use sudare_he::HeError;
use sudare_he::circuits::cost::TraceCosts;
use sudare_he::circuits::matrix_vector::MatrixVector;
use sudare_he::circuits::trace::TraceFunction;
use sudare_he::circuits::unrolled::TracePlan;
use sudare_he::ckks::{Ciphertext, Decryptor, EncodeAt, Encoder, Encryptor, Evaluator, Params, ParamsLiteral};
use sudare_ring::Threads;
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, SecretKey};
use sudare_testkit::Random;

fn literal(q_bits: &[u32], p_bits: &[u32], digit_limbs: usize) -> ParamsLiteral {
    crate::world::literal(9, q_bits, p_bits, digit_limbs, 40)
}

struct World {
    params: Params,
    secret: SecretKey,
}

impl World {
    fn new(literal: &ParamsLiteral) -> Self {
        let params = literal.build().unwrap();
        Self { secret: SecretKey::generate(&params).unwrap(), params }
    }

    fn server(&self, keys: &[(u64, usize)]) -> Evaluator {
        let top = self.params.max_level();
        Evaluator::new(&self.params, self.keys(top, keys)).unwrap()
    }

    fn keys(&self, top: usize, keys: &[(u64, usize)]) -> EvalKeys {
        KeyGenerator::new(&self.secret).unwrap().eval_keys(Some(top), keys).unwrap()
    }

    fn values(&self, salt: u64) -> Vec<f64> {
        Random(salt).units(self.params.slots())
    }

    fn encrypt(&self, values: &[f64], level: usize) -> Ciphertext {
        let at = EncodeAt { level, scale: 2f64.powi(40), max_abs: 1.0 };
        let plain = Encoder::new(&self.params).encode_at(values, at).unwrap();
        Encryptor::with_secret_key(&self.secret).unwrap().encrypt(&plain).unwrap()
    }

    #[track_caller]
    fn expect(&self, found: &Ciphertext, wanted: impl Fn(usize) -> f64) {
        let values = Encoder::new(&self.params).decode(&Decryptor::new(&self.secret).decrypt(found).unwrap()).unwrap();
        assert!(found.error_bound() < 1e-3, "bound {:e}", found.error_bound());
        for (i, x) in values.iter().enumerate() {
            let error = (x - wanted(i)).abs();
            assert!(error <= found.error_bound(), "slot {i}: error {error:e}, bound {:e}", found.error_bound());
        }
    }
}

fn words(ciphertext: &Ciphertext) -> Vec<Vec<u64>> {
    ciphertext.parts().iter().map(|p| p.words().to_vec()).collect()
}

/// The functions with their plain meaning at slot i of x.
type Meaning = Box<dyn Fn(&[f64], usize) -> f64>;

fn functions(params: &Params) -> Vec<(TraceFunction, Meaning)> {
    let strided = |count: usize, stride: i64| -> Meaning {
        Box::new(move |x, i| {
            (0..count as i64).map(|j| x[(i as i64 + j * stride).rem_euclid(x.len() as i64) as usize]).sum()
        })
    };
    vec![
        (TraceFunction::total_sum(params).unwrap(), Box::new(|x, _| x.iter().sum())),
        (TraceFunction::field_trace(params).unwrap(), Box::new(|x, _| 2.0 * x.iter().sum::<f64>())),
        (TraceFunction::partial_sums(params, 16).unwrap(), strided(16, 1)),
        (TraceFunction::replication(params, 32).unwrap(), strided(32, -1)),
        (TraceFunction::strided_sums(params, 8, 12).unwrap(), strided(8, 12)),
        (TraceFunction::strided_sums(params, 1, 5).unwrap(), strided(1, 0)),
        // Any automorphisms, even one twice: (1 + ψ_5)² = 1 + 2ψ_5 + ψ_25.
        (
            TraceFunction::new(params, vec![5, 5]).unwrap(),
            Box::new(|x, i| x[i] + 2.0 * x[(i + 1) % x.len()] + x[(i + 2) % x.len()]),
        ),
    ]
}

#[test]
fn every_unrolling_sums_what_doubling_sums() {
    for (literal, level) in [
        (literal(&[60, 40, 40], &[60], 1), 2),
        (literal(&[49, 40, 40, 40, 40], &[46, 46, 46], 3), 4),
        (literal(&[49, 40, 40, 40, 40], &[46, 46], 2), 1),
    ] {
        let w = World::new(&literal);
        let x = w.values(1);
        let a = w.encrypt(&x, level);
        for (function, meaning) in functions(&w.params) {
            let steps = function.steps();
            let plans: Vec<TracePlan> = match steps {
                0 => vec![function.unrolled(0).unwrap()],
                // One iteration of all steps has a key for almost every automorphism of the ring.
                _ => (1 + usize::from(steps > 6)..=steps).map(|h| function.unrolled(h).unwrap()).collect(),
            };
            let mut keys: Vec<(u64, usize)> = plans.iter().flat_map(|p| p.keys(level)).collect();
            keys.sort_unstable();
            keys.dedup();
            let server = w.server(&keys);
            assert_eq!(plans.last(), Some(&function.doubling()));
            for plan in &plans {
                server.reset_counters();
                let sum = server.trace(&a, plan).unwrap();
                assert_eq!((sum.level(), sum.scale()), (a.level(), a.scale()));
                w.expect(&sum, |i| meaning(&x, i));
                assert_eq!(server.counters().key_switches as usize, plan.automorphisms());
            }
        }
    }
}

#[test]
fn one_iteration_of_all_steps() {
    let w = World::new(&literal(&[49, 40], &[49], 1));
    let plan = TraceFunction::total_sum(&w.params).unwrap().unrolled(1).unwrap();
    assert_eq!(plan.automorphisms(), w.params.slots() - 1);
    let x = w.values(2);
    let server = w.server(&plan.keys(1));
    w.expect(&server.trace(&w.encrypt(&x, 1), &plan).unwrap(), |_| x.iter().sum());
}

#[test]
fn the_key_list_is_exact() {
    let w = World::new(&literal(&[49, 40], &[49], 1));
    for h in [2, 3, 8] {
        let plan = TraceFunction::total_sum(&w.params).unwrap().unrolled(h).unwrap();
        let keys = plan.keys(1);
        assert_eq!(keys.len(), plan.automorphisms());
        let made = w.server(&keys);
        let bytes: usize = w.keys(1, &keys).galois_keys().map(|g| g.key().bytes()).sum();
        assert_eq!(plan.key_bytes(w.params.literal(), 1), bytes as u64);
        let a = w.encrypt(&w.values(3), 1);
        assert!(made.trace(&a, &plan).is_ok());
        for lacking in [0, keys.len() / 2, keys.len() - 1] {
            let mut fewer = keys.clone();
            let (element, _) = fewer.remove(lacking);
            let refused = w.server(&fewer).trace(&a, &plan).unwrap_err();
            assert!(
                matches!(refused, HeError::Rlwe(RlweError::MissingRotationKey { element: e, .. }) if e == element),
                "{refused}"
            );
        }
    }
}

#[test]
fn threads_change_nothing() {
    // Fewer limbs than threads: the terms are shared out as well.
    for literal in [literal(&[49, 40], &[49], 1), literal(&[49, 40, 40, 40, 40], &[46, 46], 2)] {
        let w = World::new(&literal);
        let plan = TraceFunction::total_sum(&w.params).unwrap().unrolled(3).unwrap();
        let server = w.server(&plan.keys(1));
        let a = w.encrypt(&w.values(4), 1);
        let run = |threads: usize| words(&Threads::new(threads).run(|| server.trace(&a, &plan)).unwrap());
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(7));
    }
}

#[test]
fn refusals() {
    let w = World::new(&literal(&[49, 40], &[49], 1));
    let function = TraceFunction::total_sum(&w.params).unwrap();
    assert!(matches!(function.unrolled(0), Err(HeError::Rlwe(RlweError::Parameters { .. }))));
    assert!(matches!(function.unrolled(9), Err(HeError::Rlwe(RlweError::Parameters { .. }))));
    assert!(matches!(TraceFunction::partial_sums(&w.params, 3), Err(HeError::Rlwe(RlweError::Parameters { .. }))));
    assert!(matches!(TraceFunction::partial_sums(&w.params, 512), Err(HeError::Rlwe(RlweError::Parameters { .. }))));
    assert!(matches!(TraceFunction::new(&w.params, vec![4]), Err(HeError::Rlwe(RlweError::Ring(_)))));
    assert!(matches!(TraceFunction::new(&w.params, vec![3; 18]), Err(HeError::Rlwe(RlweError::Parameters { .. }))));
    let plan = function.unrolled(2).unwrap();
    let needed = plan.key_bytes(w.params.literal(), 1);
    assert!(plan.check_memory(w.params.literal(), 1, needed).is_ok());
    let refused = plan.check_memory(w.params.literal(), 1, needed - 1).unwrap_err();
    assert!(
        matches!(refused, HeError::Rlwe(RlweError::Memory { needed: n, limit, .. }) if n == needed && limit == needed - 1)
    );
}

#[test]
fn the_choice_follows_costs_and_memory() {
    let w = World::new(&literal(&[49, 40], &[49], 1));
    let function = TraceFunction::total_sum(&w.params).unwrap();
    let start = std::time::Instant::now();
    let measured = TraceCosts::measure(&w.params, 1, || start.elapsed()).unwrap();
    assert!(measured.near > 0.0 && measured.far >= measured.near && measured.iteration > 0.0, "{measured:?}");
    let priced = |h: usize, costs: &TraceCosts| costs.price(&function.unrolled(h).unwrap());
    let h_of =
        |costs: &TraceCosts, memory: Option<u64>| function.fastest(&w.params, costs, memory).unwrap().iterations();
    // Whatever the figures, the chosen plan is the cheapest of all.
    for (iteration, near) in [(1.0, 10.0), (1.0, 1.0), (100.0, 1.0), (3.0, 2.0)] {
        let costs = TraceCosts { iteration, near, far: near, ..measured };
        let least = (1..=8).map(|h| priced(h, &costs)).fold(f64::INFINITY, f64::min);
        assert_eq!(priced(h_of(&costs, None), &costs), least);
    }
    let dear_iterations = TraceCosts { iteration: 1e6, near: 1.0, far: 1.0, ..measured };
    assert_eq!(h_of(&dear_iterations, None), 1);
    let bytes = |h: usize| function.unrolled(h).unwrap().key_bytes(w.params.literal(), 1);
    assert_eq!(h_of(&dear_iterations, Some(bytes(2))), 2);
    assert_eq!(h_of(&dear_iterations, Some(bytes(2) - 1)), 3);
    let refused = function.fastest(&w.params, &dear_iterations, Some(bytes(8) - 1)).unwrap_err();
    assert!(matches!(refused, HeError::Rlwe(RlweError::Memory { .. })), "{refused}");
}

#[test]
fn inner_products() {
    let w = World::new(&literal(&[49, 40, 40], &[49], 1));
    let (x, y) = (w.values(5), w.values(6));
    let plan = TraceFunction::total_sum(&w.params).unwrap().unrolled(4).unwrap();
    // The trace runs one level below.
    let server = w.server(&plan.keys(1));
    let (a, b) = (w.encrypt(&x, 2), w.encrypt(&y, 2));
    let wanted: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
    w.expect(&server.inner_product(&a, &b, &plan).unwrap(), |_| wanted);
    let at = EncodeAt { level: 2, scale: w.params.prime_at(2) as f64, max_abs: 1.0 };
    let plain = Encoder::new(&w.params).encode_at(&y, at).unwrap();
    w.expect(&server.inner_product_plain(&a, &plain, &plan).unwrap(), |_| wanted);
}

#[test]
fn matrices_times_vectors() {
    let w = World::new(&literal(&[49, 40, 40], &[49], 1));
    let slots = w.params.slots();
    let at = EncodeAt { level: 2, scale: w.params.prime_at(2) as f64, max_abs: 1.0 };
    let shapes = [
        (1, 1),
        (1, 7),
        (7, 1),
        (3, 5),
        (5, 3),
        (16, 16),
        (4, 64),
        (64, 4),
        (20, 33),
        (1, slots),
        (2, slots),
        (slots, 2),
    ];
    for (m, n) in shapes {
        let entries: Vec<f64> = w.values((m + 31 * n) as u64).into_iter().cycle().take(m * n).collect();
        let matrix = MatrixVector::new(&Encoder::new(&w.params), &entries, m, n, at).unwrap();
        assert_eq!(matrix.shape(), (m, n));
        let x: Vec<f64> = w.values(7)[..n].to_vec();
        let a = w.encrypt(&matrix.layout(&w.params, &x).unwrap(), 2);
        let y = w.server(&matrix.keys()).matrix_vector(&matrix, &a).unwrap();
        let found = Encoder::new(&w.params).decode(&Decryptor::new(&w.secret).decrypt(&y).unwrap()).unwrap();
        for (i, row) in entries.chunks(n).enumerate() {
            let wanted: f64 = row.iter().zip(&x).map(|(a, b)| a * b).sum();
            assert!((found[i] - wanted).abs() <= y.error_bound(), "{m}×{n}, row {i}: {} {wanted}", found[i]);
        }
        assert!(y.error_bound() < 1e-3);
    }
    let encoder = Encoder::new(&w.params);
    for (entries, m, n) in [(vec![], 0, 1), (vec![1.0; 5], 2, 3), (vec![1.0; 2 * slots], 2 * slots, 1)] {
        assert!(matches!(
            MatrixVector::new(&encoder, &entries, m, n, at),
            Err(HeError::Rlwe(RlweError::Parameters { .. }))
        ));
    }
}
