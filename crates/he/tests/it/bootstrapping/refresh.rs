//! Refreshing ciphertexts: every shape of input, real and complex, sparse, several together.

use crate::world::{Owner, complex, largest_error, mean_square_error, reals};
use num_complex::Complex64;
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::{
    BootstrapGoal, BootstrapKeys, BootstrapLiteral, BootstrapSet, Bootstrapper, Kind, Progress, ReductionLiteral, Step,
};
use sudare_he::ckks::Ciphertext;
use sudare_ring::Threads;
use sudare_ring::count::{Counts, counted};
use sudare_ring::interrupt::{Interrupt, Interrupted};
use sudare_rlwe::Counters;
use sudare_rlwe::RlweError;
use sudare_testkit::{Random, sized};

pub(super) fn world(literal: &BootstrapLiteral) -> (Owner, Bootstrapper) {
    let params = literal.build().unwrap();
    let owner = Owner::new(params.params());
    let keys = BootstrapKeys::generate(&owner.secret, &params).unwrap();
    (owner, Bootstrapper::new(keys, None).unwrap())
}

/// A set over a small ring.
fn small(literal: BootstrapLiteral, log_n: u32) -> (Owner, Bootstrapper) {
    world(&literal.insecure(log_n).unwrap())
}

/// Inputs of every shape with values of size up to one, by name; `n` values each.
pub(super) fn shapes(n: usize) -> Vec<(&'static str, Vec<Complex64>)> {
    let mut numbers = Random(7);
    let constant = |z: Complex64| vec![z; n];
    let mut one_hot = vec![Complex64::ZERO; n];
    one_hot[n / 3] = Complex64::ONE;
    let corner = Complex64::new(0.5f64.sqrt(), -(0.5f64.sqrt()));
    vec![
        ("one", constant(Complex64::ONE)),
        ("minus one", constant(-Complex64::ONE)),
        ("i", constant(Complex64::I)),
        ("a corner", constant(corner)),
        ("zero", constant(Complex64::ZERO)),
        ("signs", (0..n).map(|_| numbers.unit().signum().into()).collect()),
        ("from 0 to 1", (0..n).map(|_| numbers.unit().abs().into()).collect()),
        ("one hot", one_hot),
        ("ramp", (0..n).map(|j| (2.0 * j as f64 / n as f64 - 1.0).into()).collect()),
        ("real", reals(&mut numbers, n)),
        ("complex", complex(&mut numbers, n)),
        ("circle", (0..n).map(|j| Complex64::cis(j as f64)).collect()),
    ]
}

fn repeated(x: &[Complex64], slots: usize) -> Vec<Complex64> {
    x.iter().copied().cycle().take(slots).collect()
}

fn bits(square: f64) -> f64 {
    -square.log2() / 2.0
}

/// A ciphertext of repeated values at the lowest level that can be refreshed.
pub(super) fn input(owner: &Owner, b: &Bootstrapper, x: &[Complex64]) -> Ciphertext {
    owner.encrypt(&repeated(x, owner.params.slots()), b.params().input_level(), owner.params.scale(), 1.0)
}

#[track_caller]
fn expect_refreshed(owner: &Owner, b: &Bootstrapper, y: &Ciphertext, x: &[Complex64], what: &str) {
    let wanted = repeated(x, owner.params.slots());
    let found = owner.decrypt(y);
    let (square, largest) = (mean_square_error(&found, &wanted), largest_error(&found, &wanted));
    let predicted = b.params().predicted_noise(1.0).unwrap().bits();
    assert!(bits(square) > predicted - 0.6, "{what}: {:.2} bits, predicted {predicted:.2}", bits(square));
    assert!(largest < y.error_bound(), "{what}: {largest} over the bound {}", y.error_bound());
    assert!(-y.error_bound().log2() > predicted - 13.0, "{what}: the bound is {}", y.error_bound());
    assert_eq!(y.level(), b.params().output_level());
    assert!((y.scale() / owner.params.scale() - 1.0).abs() < 1e-9, "{what}: scale 2^{}", y.scale().log2());
}

#[test]
fn every_shape_in_every_set() {
    let goal = BootstrapGoal { levels: 6, bits: 14.0, memory: None };
    let searched = ("6 levels, 14 bits".to_owned(), BootstrapLiteral::search(goal).unwrap());
    let sets = BootstrapSet::ALL.map(|set| (set.to_string(), set.literal())).into_iter().chain([searched]);
    for (number, (name, literal)) in sets.enumerate() {
        // A third of the shapes in each set, all of them in three; `make soak` has every shape in every set.
        let step = sized(3, 1);
        let (owner, b) = small(literal, 10);
        for (shape, x) in shapes(b.params().slots()).into_iter().skip(number % step).step_by(step) {
            let c = input(&owner, &b, &x);
            expect_refreshed(&owner, &b, &b.refresh(&c).unwrap(), &x, &format!("set {name}, {shape}"));
            if x.iter().all(|z| z.im == 0.0) && ["A", "C"].contains(&name.as_str()) {
                expect_refreshed(&owner, &b, &b.refresh_real(&c).unwrap(), &x, &format!("set {name}, {shape}, real"));
            }
        }
    }
}

#[test]
fn real_slots_lose_their_imaginary_parts() {
    let (owner, b) = small(BootstrapLiteral::c(), 10);
    let x = complex(&mut Random(2), 512);
    let y = b.refresh_real(&input(&owner, &b, &x)).unwrap();
    let real: Vec<Complex64> = x.iter().map(|z| z.re.into()).collect();
    assert!(largest_error(&owner.decrypt(&y), &real) < y.error_bound());
}

#[test]
fn several_together_and_any_number_of_threads_give_the_same_bits() {
    for literal in [BootstrapLiteral::a(), BootstrapLiteral::d()] {
        let (owner, b) = small(literal, 10);
        let mut numbers = Random(3);
        let inputs: Vec<Ciphertext> =
            (0..3).map(|_| input(&owner, &b, &complex(&mut numbers, b.params().slots()))).collect();
        let all: Vec<&Ciphertext> = inputs.iter().collect();
        let words = |c: &Ciphertext| c.parts().iter().map(|p| p.words().to_vec()).collect::<Vec<_>>();
        let together: Vec<_> = b.refresh_many(&all).unwrap().iter().map(words).collect();
        for threads in [1, 2, 5] {
            let here = Threads::new(threads).run(|| b.refresh_many(&all[..2])).unwrap();
            assert!(here.iter().map(words).eq(together[..2].iter().cloned()), "{threads} threads");
        }
        assert!(words(&b.refresh(&inputs[2]).unwrap()) == together[2]);
        let real: Vec<_> = b.refresh_many_real(&all[..2]).unwrap().iter().map(words).collect();
        assert!(words(&b.refresh_real(&inputs[1]).unwrap()) == real[1]);
    }
}

#[test]
fn what_is_refreshed_can_be_computed_with_and_refreshed_again() {
    let (owner, b) = small(BootstrapLiteral::a(), 10);
    let e = b.evaluator();
    let mut plain: Vec<Complex64> = (0..512).map(|j| Complex64::cis(f64::from(j)) * (1.0 - 1e-12)).collect();
    let mut c = input(&owner, &b, &plain);
    for round in 0..3 {
        c = b.refresh(&c).unwrap();
        assert_eq!(b.params().usable_levels(), 9);
        while c.level() > b.params().input_level() {
            // z ↦ z²: values stay on the circle, and errors double.
            c = e.mul_rescale(&c, &c).unwrap().with_bound(1.0);
            plain.iter_mut().for_each(|z| *z *= *z);
        }
        let error = largest_error(&owner.decrypt(&c), &plain);
        assert!(error < (-24.0 + 9.5 * f64::from(round + 1)).exp2().max(1e-4), "round {round}: {error}");
    }
    // 27 squarings of a refreshed value are beyond its precision, nine are not.
    let again = b.refresh(&c.with_bound(1.0)).unwrap();
    assert_eq!(again.level(), 12);
}

/// Two real ciphertexts as one: of every shape and any two shapes, with scales and bounds of their own, an odd one alone.
#[test]
fn pairs_are_refreshed_as_two_alone() {
    for set in [BootstrapSet::A, BootstrapSet::A12, BootstrapSet::B, BootstrapSet::C, BootstrapSet::D] {
        let (owner, b) = small(set.literal(), 10);
        let real: Vec<_> =
            shapes(b.params().slots()).into_iter().filter(|(_, x)| x.iter().all(|z| z.im == 0.0)).collect();
        assert!(real.len() % 2 == 0 && real.len() >= 6);
        let inputs: Vec<Ciphertext> = real.iter().map(|(_, x)| input(&owner, &b, x)).collect();
        let odd = inputs.iter().chain(&inputs[..1]).collect::<Vec<_>>();
        let found = b.refresh_pairs(&odd).unwrap();
        for (y, (shape, x)) in found.iter().zip(real.iter().chain(&real[..1])) {
            expect_refreshed(&owner, &b, y, x, &format!("set {set}, {shape}, of a pair"));
            // Nothing of the other one is left where imaginary parts were.
            let im = owner.decrypt(y).iter().fold(0.0f64, |m, z| m.max(z.im.abs()));
            assert!(im < y.error_bound(), "set {set}, {shape}: {im}");
        }
        let alone = b.refresh_real(odd[odd.len() - 1]).unwrap();
        let words = |c: &Ciphertext| c.parts().iter().map(|p| p.words().to_vec()).collect::<Vec<_>>();
        assert!(words(&alone) == words(&found[odd.len() - 1]), "set {set}: an odd one is refreshed alone");
        for threads in [1, 3] {
            let here = Threads::new(threads).run(|| b.refresh_pairs(&odd[..2])).unwrap();
            assert!(here.iter().map(words).eq(found[..2].iter().map(words)), "set {set}: {threads} threads");
        }
    }
}

#[test]
fn scales_and_bounds_of_a_pair_may_differ() {
    let (owner, b) = small(BootstrapLiteral::c(), 10);
    let scale = owner.params.scale();
    let mut numbers = Random(8);
    let (x, y) = (reals(&mut numbers, 512), reals(&mut numbers, 512));
    let (small, large): (Vec<_>, Vec<_>) = x.iter().zip(&y).map(|(x, y)| (x / 8.0, y * 8.0)).unzip();
    let first = owner.encrypt(&small, 5, scale * 0.9, 0.125);
    let second = owner.encrypt(&large, 3, scale / 8.0, 8.0);
    let found = b.refresh_pairs(&[&first, &second]).unwrap();
    for (y, (values, bound, scale)) in found.iter().zip([(&small, 0.125, scale), (&large, 8.0, scale / 8.0)]) {
        assert!((y.scale() / scale - 1.0).abs() < 1e-9 && y.bound() == bound);
        assert!(largest_error(&owner.decrypt(y), values) < y.error_bound());
        assert!(largest_error(&owner.decrypt(y), values) < bound * 1e-3);
    }
    // What cannot be refreshed is refused before its neighbour is.
    b.reset_counters();
    let low = owner.encrypt(&x, 2, scale, 1.0);
    assert!(matches!(b.refresh_pairs(&[&first, &low]), Err(HeError::Rlwe(RlweError::OutOfLevels { .. }))));
    assert_eq!(b.counters(), Counters::default());
    assert!(b.refresh_pairs(&[]).unwrap().is_empty());
}

/// What is imaginary in one is real in the other, and both carry the bound on it: in a pair, not alone.
#[test]
fn a_pair_carries_the_errors_of_both() {
    let (owner, b) = small(BootstrapLiteral::a(), 10);
    let mut numbers = Random(9);
    let (x, y) = (reals(&mut numbers, 512), reals(&mut numbers, 512));
    let error = 1e-3;
    let wrong: Vec<Complex64> = y.iter().map(|y| (y + Complex64::new(0.0, error)) * 0.9).collect();
    let (first, second) = (input(&owner, &b, &x), input(&owner, &b, &wrong).with_error_of(error));
    let [pair, other] = &b.refresh_pairs(&[&first, &second]).unwrap()[..] else { panic!("two") };
    let found = largest_error(&owner.decrypt(pair), &x);
    assert!((found / (0.9 * error) - 1.0).abs() < 0.01, "{found}");
    for y in [pair, other] {
        assert!((error..1.2 * error).contains(&y.error_bound()), "{}", y.error_bound());
    }
    let alone = b.refresh_many_real(&[&first, &second]).unwrap();
    assert!(alone[0].error_bound() < error / 10.0 && largest_error(&owner.decrypt(&alone[0]), &x) < error / 10.0);
}

/// Up to 100 in a row: the error grows as that of independent ones, and three threads give the same bits.
#[test]
fn many_in_a_row() {
    let rounds = sized(30, 100);
    let (owner, b) = small(BootstrapLiteral::c(), 9);
    let x = complex(&mut Random(5), 256);
    let mut c = input(&owner, &b, &x);
    let (mut in_threads, threads) = (c.clone(), Threads::new(3));
    let one = b.params().predicted_noise(0.5).unwrap();
    for round in 1..=rounds {
        c = b.refresh(&c).unwrap().with_bound(1.0);
        in_threads = threads.run(|| b.refresh(&in_threads)).unwrap().with_bound(1.0);
        assert!(c.parts().iter().zip(in_threads.parts()).all(|(x, y)| x.words() == y.words()), "round {round}");
        let error = bits(mean_square_error(&owner.decrypt(&c), &x));
        let grown = f64::from(round).log2();
        // Independent errors add as squares; what the series does to one message again and again adds straight.
        let least = -((one.total() * f64::from(round)).sqrt() + one.approximation.sqrt() * f64::from(round)).log2();
        assert!(error > least - 0.5, "{error:.2} bits after {round}, {least:.2} predicted");
        if round >= rounds / 2 {
            assert!(error < one.bits() - grown / 2.0 + 1.5, "{error:.2} bits after {round}: too good to be true");
        }
    }
}

#[test]
fn smaller_values_use_the_room_and_large_ones_a_smaller_scale() {
    let (owner, b) = small(BootstrapLiteral::c(), 10);
    let x: Vec<Complex64> = complex(&mut Random(6), 512).iter().map(|z| z / 8.0).collect();
    let c = owner.encrypt(&x, 5, owner.params.scale(), 0.125);
    let y = b.refresh(&c).unwrap();
    assert!((y.scale() / owner.params.scale() - 1.0).abs() < 1e-9);
    let error = bits(mean_square_error(&owner.decrypt(&y), &x));
    let full = b.params().predicted_noise(0.5).unwrap().bits();
    assert!(error > full + 2.4, "{error:.2} bits; {full:.2} for values of size one");
    assert!(largest_error(&owner.decrypt(&y), &x) < y.error_bound());
    let large = owner.encrypt(&x.iter().map(|z| z * 64.0).collect::<Vec<_>>(), 5, owner.params.scale() / 8.0, 8.0);
    let y = b.refresh(&large).unwrap();
    assert!((y.scale() / owner.params.scale() * 8.0 - 1.0).abs() < 1e-9 && y.bound() == 8.0);
}

#[test]
fn refusals_name_the_state_and_leave_operands() {
    let (owner, b) = small(BootstrapLiteral::c(), 9);
    let x = vec![Complex64::ONE; 256];
    let at = |level, scale, bound| owner.encrypt(&x, level, scale, bound);
    let scale = owner.params.scale();
    assert!(matches!(
        b.refresh(&at(2, scale, 1.0)),
        Err(HeError::Rlwe(RlweError::OutOfLevels { needed: 3, level: 2, .. }))
    ));
    assert!(matches!(b.refresh(&at(3, scale, 1.5)), Err(HeError::TooLarge { .. })));
    let product = b.evaluator().mul(&at(4, scale / 1e3, 1.0), &at(4, scale / 1e3, 1.0)).unwrap();
    assert!(matches!(b.refresh(&product), Err(HeError::Rlwe(RlweError::Degree { .. }))));
    let stranger = Owner::new(&owner.params);
    let foreign = stranger.encrypt(&x, 3, scale, 1.0);
    assert!(matches!(b.refresh(&foreign), Err(HeError::Rlwe(RlweError::WrongKey { .. }))));
    let (other, _) = small(BootstrapLiteral::a(), 9);
    let elsewhere = other.encrypt(&x, 3, other.params.scale(), 1.0);
    assert!(matches!(b.refresh(&elsewhere), Err(HeError::Rlwe(RlweError::WrongParameters { .. }))));
    assert!(b.refresh_many(&[]).unwrap().is_empty());

    let set = BootstrapLiteral::c().insecure(9).unwrap().build().unwrap();
    let keys = BootstrapKeys::generate(&owner.secret, &set).unwrap();
    match Bootstrapper::new(keys, Some(1 << 20)) {
        Err(HeError::Rlwe(RlweError::Memory { needed, limit, .. })) => {
            assert!(limit == 1 << 20 && needed > set.key_bytes().unwrap() + set.diagonal_bytes().unwrap());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn progress_is_told_and_interrupts_end_it() {
    let (owner, b) = small(BootstrapLiteral::c(), 9);
    let c = input(&owner, &b, &[Complex64::ONE; 256]);
    let mut seen = Vec::new();
    assert_eq!(b.refresh_with_progress(&[&c], Kind::Complex, &mut |p| seen.push((p.step, p.done))).unwrap().len(), 1);
    assert!(seen.into_iter().eq(Step::ALL.into_iter().zip(0..)));
    // Asked at each step's beginning, it ends there; the same bootstrapper works on.
    for stop in 0..Step::ALL.len() {
        let interrupt = Interrupt::new();
        let mut last = None;
        let mut tell = |p: Progress| {
            last = Some(p.done);
            if p.done == stop {
                interrupt.ask();
            }
        };
        assert_eq!(
            interrupt.run(|| b.refresh_with_progress(&[&c], Kind::Complex, &mut tell).map(|_| ())),
            Err(Interrupted)
        );
        assert_eq!(last, Some(stop));
    }
    // Asked from elsewhere, it ends within a step.
    let interrupt = Interrupt::new();
    let asking = interrupt.clone();
    let work = || {
        std::thread::spawn(move || asking.ask());
        loop {
            b.refresh(&c).unwrap();
        }
    };
    assert_eq!(interrupt.run(work), Err(Interrupted));
    expect_refreshed(&owner, &b, &b.refresh(&c).unwrap(), &[Complex64::ONE; 256], "after interrupts");
}

/// Every named set.
fn all_sets() -> impl Iterator<Item = (String, BootstrapLiteral)> {
    let sets = BootstrapSet::ALL.map(|set| (set.to_string(), set.literal()));
    sets.into_iter().chain([("A50".to_owned(), BootstrapLiteral::a50())])
}

#[test]
fn sizes_are_known_before() {
    for (name, literal) in all_sets() {
        let params = literal.insecure(10).unwrap().build().unwrap();
        let owner = Owner::new(params.params());
        let keys = BootstrapKeys::generate(&owner.secret, &params).unwrap();
        assert_eq!(keys.bytes() as u64, params.key_bytes().unwrap(), "set {name}");
        let keys_bytes = keys.bytes();
        let b = Bootstrapper::new(keys, None).unwrap();
        let maps = b.map_bytes() as u64;
        assert_eq!(maps, params.diagonal_bytes().unwrap(), "set {name}");
        assert!(b.bytes() > keys_bytes + b.map_bytes());
    }
}

/// Every operation is counted, and the counts are those of a simulation.
#[test]
fn simulation_is_the_run() {
    for (name, literal) in all_sets() {
        let (owner, b) = small(literal, 10);
        let x = reals(&mut Random(4), b.params().slots());
        let inputs = [input(&owner, &b, &x), input(&owner, &b, &x)];
        let all: Vec<&Ciphertext> = inputs.iter().collect();
        for kind in [Kind::Real, Kind::Complex, Kind::Pair] {
            // Two ciphertexts are two refreshes, or one of a pair.
            let times = if kind == Kind::Pair { 1 } else { 2 };
            for threads in [1, 3] {
                b.reset_counters();
                let refresh = || b.refresh_with_progress(&all, kind, &mut |_| {}).unwrap();
                let (_, work) = counted(|| Threads::new(threads).run(refresh));
                let predicted: Counters = b.params().operations(kind).unwrap().into_iter().sum();
                assert_eq!(b.counters(), predicted * times, "set {name}, {kind:?}");
                let predicted: Counts = b.params().work(kind).unwrap().into_iter().sum();
                assert_eq!(work, predicted * times, "set {name}, {kind:?}, {threads} threads");
            }
        }
    }
}

/// What set A does at its full size: stages of 63, 63 and 32 diagonals both ways, with 18, 18 and 16 turns, but the last ones of CtS
/// in 32 keys, and a conjugation; 11 products and 8 relinearisations of the exponential, three squarings, and a sine series of three
/// products and two relinearisations, for real and imaginary parts.
#[test]
fn operations_of_set_a() {
    let steps = BootstrapLiteral::a().operations(Kind::Complex).unwrap();
    let [stc, raise, cts, reduce, join] = steps.each_ref().map(|c| (c.cmult, c.mult, c.key_switches));
    assert_eq!((stc, cts), ((158, 0, 52), (126, 0, 37)));
    assert_eq!((raise, join), ((0, 0, 1 + 32), (0, 0, 2)));
    assert_eq!((reduce.1, reduce.2), (2 * 17, 2 * 13));
    assert!(steps.iter().map(|c| c.relin).eq([0, 0, 0, 2 * 13, 0]));
    let real = BootstrapLiteral::a().operations(Kind::Real).unwrap();
    assert_eq!(real[3].mult * 2, steps[3].mult);
    // A pair shares the transforms of two real refreshes, and has their reductions and ends.
    let pair = BootstrapLiteral::a().operations(Kind::Pair).unwrap();
    assert_eq!((pair[0].key_switches, pair[1]), (steps[0].key_switches, steps[1]));
    assert_eq!((pair[2], pair[3], pair[4]), (steps[2], real[3] * 2, real[4] * 2));
}

#[test]
fn bad_sets_are_refused() {
    let refused = |change: fn(&mut BootstrapLiteral)| {
        let mut literal = BootstrapLiteral::c().insecure(9).unwrap();
        change(&mut literal);
        literal.build().map(|_| ()).unwrap_err()
    };
    for change in [
        (|l| l.stc = vec![4, 3]) as fn(&mut BootstrapLiteral),
        |l| l.cts = vec![],
        |l| l.log_slots = 9,
        |l| l.log_slots = 0,
        |l| l.hoisted = 0,
        |l| l.weight = 31,
        |l| l.weight = 0,
        |l| l.reduction = ReductionLiteral::Sines { terms: 7, log_radius: 4.85 },
        |l| l.reduction = ReductionLiteral::Sines { terms: 2, log_radius: -1.0 },
        |l| l.reduction = ReductionLiteral::Tables { modulus: 1 },
        |l| l.gate_bits = 40,
        |l| l.params.q_bits.truncate(12),
        |l| l.params.digit_limbs = 3,
        |l| l.doublings = 0,
        // A stage in keys has another one after it, and takes all slots.
        |l| l.cts = vec![8],
        |l| *l = BootstrapLiteral { keyed: true, ..BootstrapLiteral::d().insecure(10).unwrap() },
    ] {
        let error = refused(change);
        assert!(matches!(error, HeError::Rlwe(RlweError::Parameters { .. })), "{error}");
    }
    // The sparse key's rule: too light, too large a modulus, a degree without an estimate.
    let mut light = BootstrapLiteral::c();
    light.weight = 32;
    let mut wide = BootstrapLiteral::c();
    wide.gate_bits = 52;
    for literal in [light, wide] {
        let error = literal.build().map(|_| ()).unwrap_err();
        assert!(matches!(error, HeError::Rlwe(RlweError::Insecure { claimed: 128, .. })), "{error}");
    }
}
