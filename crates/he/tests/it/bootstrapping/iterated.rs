//! Two refreshes in one: twice the bits, of every shape of input.

use super::refresh::{input, shapes, world};
use crate::world::{Owner, complex, largest_error, mean_square_error, reals};
use num_complex::Complex64;
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::{BootstrapLiteral, Bootstrapper, Kind, ReductionLiteral, Step};
use sudare_he::ckks::Ciphertext;
use sudare_ring::Threads;
use sudare_ring::interrupt::{Interrupt, Interrupted};
use sudare_rlwe::{Counters, RlweError};
use sudare_testkit::{Random, sized};

/// The set over a small ring, with upper primes that are smaller, so that noise is about that of the large one.
fn literal(log_n: u32) -> BootstrapLiteral {
    let mut literal = BootstrapLiteral::a50().insecure(log_n).unwrap();
    let (_, output) = literal.levels().unwrap();
    literal.params.rlwe.q_bits[output + 1..].iter_mut().for_each(|bits| *bits -= 4);
    literal
}

fn small(log_n: u32) -> (Owner, Bootstrapper) {
    world(&literal(log_n))
}

fn bits(square: f64) -> f64 {
    -square.log2() / 2.0
}

/// What a result is off by, slot by slot: doubles would not tell numbers of size one apart.
fn errors(owner: &Owner, b: &Bootstrapper, y: &Ciphertext, x: &Ciphertext) -> Vec<Complex64> {
    let level = b.params().input_level();
    let e = b.evaluator();
    owner.decrypt(&e.sub(&e.drop_to(y, level).unwrap(), &e.drop_to(x, level).unwrap()).unwrap())
}

#[track_caller]
fn expect_refreshed(owner: &Owner, b: &Bootstrapper, y: &Ciphertext, x: &Ciphertext, what: &str) {
    let (found, none) = (errors(owner, b, y, x), vec![Complex64::ZERO; owner.params.slots()]);
    let (found, largest) = (bits(mean_square_error(&found, &none)), largest_error(&found, &none));
    let predicted = b.params().predicted_noise(1.0).unwrap().bits();
    assert!(found > predicted - 0.6, "{what}: {found:.2} bits, predicted {predicted:.2}");
    assert!(largest < y.error_bound(), "{what}: {largest} over the bound {}", y.error_bound());
    assert!(-y.error_bound().log2() > predicted - 13.0, "{what}: the bound is {}", y.error_bound());
    assert_eq!((y.level(), y.scale()), (b.params().output_level(), owner.params.scale()), "{what}");
}

/// Errors have the variance that the formula says, which is about that of the set at its full size.
#[test]
fn precision_is_that_of_the_formula() {
    let full = BootstrapLiteral::a50().predicted_noise(0.5).unwrap().bits();
    let (mut measured, mut predicted) = (0.0, 0.0);
    for key in 0..sized(6, 24) {
        let (owner, b) = small(10);
        let of_set = b.params().predicted_noise(0.5).unwrap();
        assert!((of_set.bits() - full).abs() < 1.5, "{:.2} bits here, {full:.2} of the set", of_set.bits());
        let c = input(&owner, &b, &complex(&mut Random(key), 512));
        let found = errors(&owner, &b, &b.refresh(&c).unwrap(), &c);
        measured += found.iter().map(|e| e.norm_sqr()).sum::<f64>() / found.len() as f64;
        predicted += of_set.total();
    }
    let ratio = measured / predicted;
    assert!((ratio - 1.0).abs() < sized(0.25, 0.08), "measured variance is {ratio:.3} of the formula's");
}

#[test]
fn every_shape() {
    let (owner, b) = small(10);
    for (i, (shape, x)) in shapes(512).into_iter().enumerate() {
        let c = input(&owner, &b, &x);
        if i % sized(2, 1) == 0 {
            expect_refreshed(&owner, &b, &b.refresh(&c).unwrap(), &c, shape);
        }
        if x.iter().all(|z| z.im == 0.0) && i % sized(3, 1) == 0 {
            expect_refreshed(&owner, &b, &b.refresh_real(&c).unwrap(), &c, &format!("{shape}, real"));
        }
    }
}

/// Imaginary parts go in real refreshes, and pairs are two real ciphertexts, with scales and bounds of their own.
#[test]
fn real_slots_and_pairs() {
    let (owner, b) = small(10);
    let (mut numbers, scale) = (Random(3), owner.params.scale());
    let (x, y, z) = (reals(&mut numbers, 512), reals(&mut numbers, 512), complex(&mut numbers, 512));
    let alone = b.refresh_real(&input(&owner, &b, &z)).unwrap();
    let real: Vec<Complex64> = z.iter().map(|z| z.re.into()).collect();
    expect_refreshed(&owner, &b, &alone, &input(&owner, &b, &real), "a real part");

    let first = input(&owner, &b, &x);
    let large: Vec<Complex64> = y.iter().map(|y| y * 8.0).collect();
    let second = owner.encrypt(&large, b.params().output_level(), scale / 8.0, 8.0);
    let third = input(&owner, &b, &y);
    let found = b.refresh_pairs(&[&first, &second, &third]).unwrap();
    expect_refreshed(&owner, &b, &found[0], &first, "the first of a pair");
    expect_refreshed(&owner, &b, &found[2], &third, "an odd one");
    assert_eq!((found[1].scale(), found[1].bound()), (scale / 8.0, 8.0));
    let off = errors(&owner, &b, &found[1], &second);
    let predicted = b.params().predicted_noise(1.0).unwrap().bits();
    assert!(off.iter().all(|e| e.norm() < found[1].error_bound()));
    assert!(bits(mean_square_error(&off, &vec![Complex64::ZERO; 512])) > predicted - 3.6);
}

/// Small values gain precision, and other scales than Δ are brought to it.
#[test]
fn smaller_values_and_other_scales() {
    let (owner, b) = small(10);
    let (scale, level) = (owner.params.scale(), b.params().input_level());
    let x: Vec<Complex64> = complex(&mut Random(6), 512).iter().map(|z| z / 8.0).collect();
    let full = b.params().predicted_noise(0.5).unwrap().bits();
    for off in [1.0, 0.7, 1.9] {
        let c = owner.encrypt(&x, level, scale * off, 0.125);
        let y = b.refresh(&c).unwrap();
        assert_eq!((y.scale(), y.bound()), (scale, 0.125));
        let error = bits(mean_square_error(&owner.decrypt(&y), &x));
        assert!(error > full + 1.5, "{error:.2} bits; {full:.2} for values of size one");
        assert!(largest_error(&owner.decrypt(&y), &x) < y.error_bound());
    }
}

/// Twenty in a row: errors grow as those of independent ones, and three threads give the same bits.
#[test]
fn twenty_in_a_row() {
    let rounds = sized(20, 100);
    let (owner, b) = small(9);
    let x = input(&owner, &b, &complex(&mut Random(5), 256));
    let (mut c, threads) = (x.clone(), Threads::new(3));
    let one = b.params().predicted_noise(0.5).unwrap().bits();
    for round in 1..=rounds {
        let in_threads = threads.run(|| b.refresh(&c)).unwrap();
        c = Threads::new(1).run(|| b.refresh(&c)).unwrap().with_bound(1.0);
        assert!(c.parts().iter().zip(in_threads.parts()).all(|(x, y)| x.words() == y.words()), "round {round}");
        let off = errors(&owner, &b, &c, &x);
        let error = bits(mean_square_error(&off, &vec![Complex64::ZERO; 256]));
        let expected = one - f64::from(round).log2() / 2.0;
        assert!((error - expected).abs() < 1.2, "{error:.2} bits after {round}, {expected:.2} expected");
    }
}

/// Every level has two primes: a product is rescaled by both.
#[test]
fn products_between_refreshes() {
    let (owner, b) = small(10);
    let e = b.evaluator();
    assert_eq!((b.params().usable_levels(), b.params().literal().level_primes()), (5, 2));
    let mut plain: Vec<Complex64> = (0..512).map(|j| Complex64::cis(f64::from(j)) * (1.0 - 1e-15)).collect();
    let mut c = input(&owner, &b, &plain);
    for round in 0..3 {
        c = b.refresh(&c).unwrap();
        for _ in 0..b.params().usable_levels() {
            // z ↦ z²: values stay on the circle, and errors double.
            c = e.rescale(&e.mul_rescale(&c, &c).unwrap()).unwrap().with_bound(1.0);
            plain.iter_mut().for_each(|z| *z *= *z);
            plain.iter_mut().for_each(|z| *z /= z.norm());
        }
        assert_eq!(c.level(), b.params().input_level());
        let off = largest_error(&owner.decrypt(&c), &plain);
        assert!(off < 2f64.powi(5 * (round + 1) - 43), "round {round}: {off}");
    }
}

#[test]
fn refusals_name_the_state_and_leave_operands() {
    let (owner, b) = small(9);
    let (x, scale, level) = (vec![Complex64::ONE; 256], owner.params.scale(), b.params().input_level());
    let at = |level, scale, bound| owner.encrypt(&x, level, scale, bound);
    b.reset_counters();
    let low = b.refresh_many(&[&at(level, scale, 1.0), &at(level - 1, scale, 1.0)]);
    assert!(matches!(low, Err(HeError::Rlwe(RlweError::OutOfLevels { needed: 4, level: 3, .. }))), "{low:?}");
    assert!(matches!(b.refresh(&at(level, scale, 2.5)), Err(HeError::TooLarge { .. })));
    let foreign = Owner::new(&owner.params).encrypt(&x, level, scale, 1.0);
    assert!(matches!(b.refresh(&foreign), Err(HeError::Rlwe(RlweError::WrongKey { .. }))));
    assert_eq!(b.counters(), Counters::default());
    let product = b.evaluator().mul(&at(level, scale, 1.0), &at(level, scale, 1.0)).unwrap();
    assert!(matches!(b.refresh(&product), Err(HeError::Rlwe(RlweError::Degree { .. }))));
    assert!(b.refresh_many(&[]).unwrap().is_empty());

    for change in [
        (|l| l.params.rlwe.q_bits.insert(5, 33)) as fn(&mut BootstrapLiteral),
        |l| l.extra_bits = 50,
        |l| l.extra_bits = 70,
        |l| l.reduction = ReductionLiteral::Tables { modulus: 4 },
        |l| (l.log_slots, l.stc, l.cts) = (7, vec![3, 2, 2], vec![2, 2, 3]),
    ] {
        let mut bad = BootstrapLiteral::a50().insecure(9).unwrap();
        change(&mut bad);
        let error = bad.build().map(|_| ()).unwrap_err();
        assert!(matches!(error, HeError::Rlwe(RlweError::Parameters { .. })), "{error}");
    }
}

/// Each of the ten steps reports its progress, and can be interrupted.
#[test]
fn every_step_reports_progress_and_can_be_interrupted() {
    let (owner, b) = small(9);
    let c = input(&owner, &b, &[Complex64::ONE; 256]);
    let mut seen = Vec::new();
    b.refresh_with_progress(&[&c], Kind::Complex, &mut |p| seen.push((p.step, p.done, p.all))).unwrap();
    let twice = Step::ALL.into_iter().chain(Step::ALL).enumerate().map(|(done, step)| (step, done, 10));
    assert!(seen.into_iter().eq(twice));
    for stop in [0, 5, 7] {
        let interrupt = Interrupt::new();
        let mut last = 0;
        let mut tell = |p: sudare_he::circuits::bootstrapping::Progress| {
            last = p.done;
            if p.done == stop {
                interrupt.ask();
            }
        };
        assert_eq!(
            interrupt.run(|| b.refresh_with_progress(&[&c], Kind::Complex, &mut tell).map(|_| ())),
            Err(Interrupted)
        );
        assert_eq!(last, stop);
    }
    expect_refreshed(&owner, &b, &b.refresh(&c).unwrap(), &c, "after interrupts");
}
