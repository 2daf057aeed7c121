//! What cannot succeed is refused before anything is computed, and what is accepted decrypts.

use super::world::{World, literal};
use sudare_exact::ExactError;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::plan::EXACT;
use sudare_exact::{Ciphertext, Decryptor, Encoder, IntegerParams, Packing, Scheme, Wrap};
use sudare_ring::{ErrorKind, Kinded, PlainModulus};
use sudare_rlwe::RlweError;
use sudare_testkit::Random;

const T: u64 = 12289;

fn world<S: Scheme>() -> World<S> {
    World::new(&literal(9, &[40, 36, 36], &[46], 1), T)
}

/// Repeats a step until it is refused; every accepted result is checked, and the refused operand
/// still decrypts.
fn until_refused<S: Scheme>(
    w: &World<S>,
    step: impl Fn(&Ciphertext<S>) -> Result<Ciphertext<S>, ExactError>,
    plain: impl Fn(&[u64]) -> Vec<u64>,
) -> usize {
    let mut values = Random(5).edges(T, w.params.degree());
    let mut c = w.encrypt(&values, Packing::Slots);
    for count in 0..1000 {
        let before: Vec<_> = c.parts().iter().map(|p| p.words().to_vec()).collect();
        match step(&c) {
            Ok(next) => {
                values = plain(&values);
                w.expect(&next, Packing::Slots, &values);
                c = next;
            }
            Err(error) => {
                assert!(
                    matches!(error, ExactError::Rlwe(RlweError::NoBudget { noise, limit, .. }) if noise >= limit),
                    "{error}"
                );
                assert!(c.parts().iter().zip(&before).all(|(p, b)| p.words() == b));
                w.expect(&c, Packing::Slots, &values);
                return count;
            }
        }
    }
    panic!("never refused");
}

fn one_step_too_far<S: Scheme>() {
    let w = world::<S>();
    let s = &w.server;
    // A ciphertext added to itself is fully correlated: the noise doubles every time.
    let doublings = until_refused(&w, |c| s.add(c, c), |x| w.plus(x, x));
    assert!((60..110).contains(&doublings), "{doublings}");
    let squarings = until_refused(&w, |c| s.square(c), |x| w.times(Packing::Slots, x, x));
    assert!((2..=3).contains(&squarings), "{squarings}");
    let factor = w.plain(&Random(6).edges(T, 512), Packing::Slots);
    let y = Random(6).edges(T, 512);
    let products = until_refused(&w, |c| s.mul_plain(c, &factor), |x| w.times(Packing::Slots, x, &y));
    assert!(products >= 3, "{products}");
    until_refused(&w, |c| s.relinearize(&s.mul(c, c)?), |x| w.times(Packing::Slots, x, x));
}

#[test]
fn bfv_is_refused_one_step_past_the_bound() {
    one_step_too_far::<Bfv>();
}

#[test]
fn bgv_is_refused_one_step_past_the_bound() {
    one_step_too_far::<Bgv>();
}

#[test]
fn refusals_name_the_state() {
    let w = world::<Bfv>();
    let s = &w.server;
    let a = w.encrypt(&[1, 2, 3], Packing::Slots);
    let other = World::<Bfv>::new(&literal(9, &[40, 36], &[46], 1), T);
    let stranger = world::<Bfv>();
    assert!(matches!(
        s.add(&a, &other.encrypt(&[1], Packing::Slots)),
        Err(ExactError::Rlwe(RlweError::WrongParameters { .. }))
    ));
    let foreign = stranger.encrypt(&[1], Packing::Slots);
    assert!(matches!(s.add(&a, &foreign), Err(ExactError::Rlwe(RlweError::WrongKey { .. }))));
    assert!(matches!(s.mul_relin(&foreign, &a), Err(ExactError::Rlwe(RlweError::WrongKey { .. }))));
    let decryptor = Decryptor::<Bfv>::new(&w.params, &w.secret).unwrap();
    assert!(matches!(decryptor.decrypt(&foreign), Err(ExactError::Rlwe(RlweError::WrongKey { .. }))));
    let modulo_2 = IntegerParams::new(w.params.rlwe(), 2).unwrap();
    let bits = Encoder::new(&modulo_2);
    let plain = bits.encode_unsigned(&[1], Packing::Coefficients, Wrap::Refuse).unwrap();
    assert!(matches!(
        s.add_plain(&a, &plain),
        Err(ExactError::Rlwe(RlweError::WrongPlainModulus { found: 2, expected: T, .. }))
    ));
    assert!(matches!(
        bits.encode_unsigned(&[1], Packing::Slots, Wrap::Refuse),
        Err(ExactError::NoSlots { modulus: 2, degree: 512 })
    ));
    assert!(matches!(s.rotate_rows(&a, 7), Err(ExactError::Rlwe(RlweError::MissingRotationKey { step: 7, .. }))));
    let product = s.mul(&a, &a).unwrap();
    assert!(matches!(s.mul(&product, &a), Err(ExactError::Rlwe(RlweError::Degree { found: 3, .. }))));
    assert!(matches!(s.rotate_rows(&product, 1), Err(ExactError::Rlwe(RlweError::Degree { found: 3, .. }))));
    assert!(matches!(s.drop_to(&a, 3), Err(ExactError::Rlwe(RlweError::NoSuchLevel { wanted: 3, highest: 2, .. }))));
    assert!(matches!(s.dot(&[&a], &[]), Err(ExactError::Rlwe(RlweError::Operands { left: 1, right: 0, .. }))));
    let factor = w.plain(&[1; 512], Packing::Slots).factor(1).unwrap();
    assert!(matches!(
        s.mul_factor(&a, &factor),
        Err(ExactError::Rlwe(RlweError::NoSuchLevel { wanted: 2, highest: 1, .. }))
    ));
    assert!(s.mul_factor(&s.drop_to(&a, 0).unwrap(), &factor).is_ok());
    let weak = sudare_rlwe::keys::KeyGenerator::new(&w.secret).unwrap().eval_keys(None, &[]).unwrap();
    let weak = sudare_exact::bfv::Evaluator::new(&w.params, weak).unwrap();
    assert!(matches!(weak.mul_relin(&a, &a), Err(ExactError::Rlwe(RlweError::MissingRelinKey))));
    assert!(weak.mul(&a, &a).is_ok());
}

#[test]
fn values_that_do_not_fit_are_refused_or_wrapped() {
    let params = IntegerParams::new(&literal(9, &[40], &[], 1).build(EXACT).unwrap(), 7).unwrap();
    let e = Encoder::new(&params);
    for (value, fits) in [(3, true), (-3, true), (4, false), (-4, false), (i64::MIN, false), (i64::MAX, false)] {
        let refused = e.encode_signed(&[0, value], Packing::Coefficients, Wrap::Refuse);
        match fits {
            true => {
                let back = e.decode_signed(&refused.unwrap(), Packing::Coefficients).unwrap();
                assert_eq!(back[1], value);
            }
            false => assert!(matches!(refused, Err(ExactError::DoesNotFit { index: 1, modulus: 7 }))),
        }
        let wrapped = e.encode_signed(&[0, value], Packing::Coefficients, Wrap::Modulo).unwrap();
        assert_eq!(wrapped.coefficients()[1], i128::from(value).rem_euclid(7) as u64);
    }
    assert!(e.encode_unsigned(&[6], Packing::Coefficients, Wrap::Refuse).is_ok());
    let over = e.encode_unsigned(&[0, 0, 7], Packing::Coefficients, Wrap::Refuse);
    assert!(matches!(over, Err(ExactError::DoesNotFit { index: 2, .. })));
    let many = e.encode_unsigned(&vec![0; 513], Packing::Coefficients, Wrap::Refuse);
    assert!(matches!(many, Err(ExactError::Rlwe(RlweError::TooManyValues { found: 513, capacity: 512 }))));
}

#[test]
fn impossible_plaintext_moduli_are_refused() {
    let params = literal(9, &[40, 36], &[46], 1).build(EXACT).unwrap();
    let q = params.prime_at(0);
    for t in [0, 1, q, 3 * q, 1 << 60] {
        let refusal = IntegerParams::new(&params, t).err();
        assert_eq!(refusal.map(|e| e.kind()), Some(ErrorKind::Parameters), "{t}");
    }
    let single = literal(9, &[30], &[], 1).build(EXACT).unwrap();
    assert!(IntegerParams::new(&single, (1 << 40) + 1).is_err());
    assert!(PlainModulus::new(2).is_ok());
}
