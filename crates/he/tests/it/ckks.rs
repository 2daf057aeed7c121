//! CKKS operations against plain complex arithmetic, noise within its bound, refusals.

use crate::world::literal;
use num_complex::Complex64;
use sudare_he::HeError;
use sudare_he::ckks::{Ciphertext, Decryptor, EncodeAt, Encoder, Encryptor, Evaluator, Params, ParamsLiteral};
use sudare_ring::{ErrorKind, Kinded, Threads};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::switching::ExtendedPair;
use sudare_testkit::Random;

struct World {
    params: Params,
    secret: SecretKey,
    server: Evaluator,
}

const STEPS: [i64; 5] = [1, -1, 2, 100, 511];

impl World {
    fn new(literal: ParamsLiteral) -> Self {
        let params = literal.build().unwrap();
        let secret = SecretKey::generate(&params).unwrap();
        let top = params.max_level();
        let mut elements: Vec<_> = STEPS.iter().map(|s| (params.rotation_element(*s), top)).collect();
        elements.push((params.conjugation_element(), top));
        let keys = KeyGenerator::new(&secret).unwrap().eval_keys(Some(top), &elements).unwrap();
        Self { server: Evaluator::new(&params, keys).unwrap(), secret, params }
    }

    fn encoder(&self) -> Encoder {
        Encoder::new(&self.params)
    }

    fn message(&self, salt: u64) -> Vec<Complex64> {
        let mut random = Random(salt);
        let mut one = || Complex64::new(random.unit(), random.unit()) / 2f64.sqrt();
        (0..self.params.slots()).map(|_| one()).collect()
    }

    fn encrypt(&self, values: &[Complex64]) -> Ciphertext {
        let plain = self.encoder().encode_complex(values, self.encoder().at_top(1.0)).unwrap();
        Encryptor::with_secret_key(&self.secret).unwrap().encrypt(&plain).unwrap()
    }

    fn decrypt(&self, ciphertext: &Ciphertext) -> Vec<Complex64> {
        self.encoder().decode_complex(&Decryptor::new(&self.secret).decrypt(ciphertext).unwrap()).unwrap()
    }

    /// Asserts the message and that the static bound covers the error; returns the largest error.
    #[track_caller]
    fn expect(&self, ciphertext: &Ciphertext, wanted: impl Fn(usize) -> Complex64) -> f64 {
        let error =
            self.decrypt(ciphertext).iter().enumerate().map(|(i, z)| (z - wanted(i)).norm()).fold(0.0, f64::max);
        assert!(error <= ciphertext.error_bound(), "error {error:e} over the bound {:e}", ciphertext.error_bound());
        assert!(ciphertext.error_bound() < 1e-3, "bound {:e}", ciphertext.error_bound());
        error
    }
}

/// Sets that differ in digits, special primes and prime sizes.
fn literals() -> Vec<ParamsLiteral> {
    vec![
        literal(10, &[60, 40, 40, 40], &[60], 1, 40),
        literal(10, &[49, 40, 40, 40], &[49, 49], 2, 40),
        literal(10, &[49, 40, 40, 40, 40], &[45, 45, 45], 3, 40),
        literal(10, &[55, 40, 40], &[61, 61, 61], 3, 40),
    ]
}

/// Every residue of a ciphertext.
fn words(c: &Ciphertext) -> Vec<&[u64]> {
    c.parts().iter().flat_map(|part| (0..=c.level()).map(|i| part.limb(i))).collect()
}

#[test]
fn every_operation_agrees_with_complex_arithmetic() {
    for literal in literals() {
        let w = World::new(literal);
        let n = w.params.slots();
        let (x, y) = (w.message(1), w.message(2));
        let (a, b) = (w.encrypt(&x), w.encrypt(&y));
        let s = &w.server;
        w.expect(&a, |i| x[i]);
        w.expect(&s.add(&a, &b).unwrap(), |i| x[i] + y[i]);
        w.expect(&s.sub(&a, &b).unwrap(), |i| x[i] - y[i]);
        w.expect(&s.negate(&a).unwrap(), |i| -x[i]);
        w.expect(&s.add_constant(&a, 0.25).unwrap(), |i| x[i] + 0.25);
        w.expect(&s.mul_integer(&a, -3).unwrap(), |i| x[i] * -3.0);
        w.expect(&s.mul_constant(&a, 0.3).unwrap(), |i| x[i] * 0.3);
        let plain = w.encoder().encode_complex(&y, w.encoder().at_top(1.0)).unwrap();
        w.expect(&s.add_plain(&a, &plain).unwrap(), |i| x[i] + y[i]);
        w.expect(&s.sub_plain(&a, &plain).unwrap(), |i| x[i] - y[i]);
        let product = s.rescale(&s.mul_plain(&a, &plain).unwrap()).unwrap();
        w.expect(&product, |i| x[i] * y[i]);
        let fused = s.mul_plain_rescale(&a, &plain).unwrap();
        assert_eq!(words(&fused), words(&product));
        assert_eq!((fused.level(), fused.scale()), (product.level(), product.scale()));
        assert!((fused.noise() / product.noise() - 1.0).abs() < 1e-12);
        // The plaintext may be at a higher level.
        let lower = s.drop_to(&a, 1).unwrap();
        let product = s.rescale(&s.mul_plain(&lower, &plain).unwrap()).unwrap();
        assert_eq!(words(&s.mul_plain_rescale(&lower, &plain).unwrap()), words(&product));
        let bottom = s.drop_to(&a, 0).unwrap();
        assert!(matches!(
            s.mul_plain_rescale(&bottom, &plain),
            Err(HeError::Rlwe(RlweError::OutOfLevels { needed: 1, level: 0, .. }))
        ));
        let product = s.mul(&a, &b).unwrap();
        w.expect(&product, |i| x[i] * y[i]);
        w.expect(&s.relinearize(&product).unwrap(), |i| x[i] * y[i]);
        w.expect(&s.rescale(&product).unwrap(), |i| x[i] * y[i]);
        let fused = s.mul_rescale(&a, &b).unwrap();
        w.expect(&fused, |i| x[i] * y[i]);
        let deeper = s.mul_rescale(&fused, &s.drop_to(&a, fused.level()).unwrap()).unwrap();
        w.expect(&deeper, |i| x[i] * y[i] * x[i]);
        w.expect(&s.set_scale(&fused, w.params.scale()).unwrap(), |i| x[i] * y[i]);
        w.expect(&s.conjugate(&a).unwrap(), |i| x[i].conj());
        let hoisted = s.rotate_many(&a, &STEPS).unwrap();
        for (step, turned) in STEPS.iter().zip(&hoisted) {
            let at = |i: usize| x[(i as i64 + step).rem_euclid(n as i64) as usize];
            w.expect(&s.rotate(&a, *step).unwrap(), at);
            w.expect(turned, at);
            // A lower level uses part of the same key.
            w.expect(&s.rotate(&s.drop_to(&a, 1).unwrap(), *step).unwrap(), at);
        }
        let elements: Vec<_> = [0, 1, 2].iter().map(|k| w.params.rotation_element(*k)).collect();
        w.expect(&s.sum_of_automorphisms(&a, &elements).unwrap(), |i| x[i] + x[(i + 1) % n] + x[(i + 2) % n]);
        let dot = s.dot(&[&a, &b, &a], &[&b, &b, &a]).unwrap();
        w.expect(&s.relinearize_rescale(&dot).unwrap(), |i| x[i] * y[i] + y[i] * y[i] + x[i] * x[i]);
    }
}

#[test]
fn public_key_encryption_and_coefficients() {
    let w = World::new(literals().remove(0));
    let public = KeyGenerator::new(&w.secret).unwrap().public_key().unwrap();
    let encryptor = Encryptor::with_public_key(&public).unwrap();
    let values: Vec<f64> = (0..w.params.degree()).map(|i| (i as f64 * 0.37).sin()).collect();
    let plain = w.encoder().encode_coefficients(&values, w.encoder().at_top(1.0)).unwrap();
    let back = Decryptor::new(&w.secret).decrypt(&encryptor.encrypt(&plain).unwrap()).unwrap();
    for (x, y) in values.iter().zip(w.encoder().decode_coefficients(&back).unwrap()) {
        assert!((x - y).abs() < 1e-7);
    }
    let plain = w.encoder().encode(&values[..100], 1.0).unwrap();
    let slots = w.encoder().decode(&Decryptor::new(&w.secret).decrypt(&encryptor.encrypt(&plain).unwrap()).unwrap());
    let slots = slots.unwrap();
    assert!(values[..100].iter().zip(&slots).all(|(x, y)| (x - y).abs() < 1e-7));
    assert!(slots[100..].iter().all(|y| y.abs() < 1e-7));
}

#[test]
fn wide_values_survive_encoding() {
    let w = World::new(literals().remove(1));
    let encoder = w.encoder();
    for (max_abs, scale, level) in [(1e6, 2f64.powi(60), 3), (1e15, 2f64.powi(90), 3), (1e9, 2f64.powi(40), 2)] {
        let values: Vec<f64> = (0..w.params.slots()).map(|i| max_abs * (i as f64 * 1.7).cos()).collect();
        let plain = encoder.encode_at(&values, EncodeAt { level, scale, max_abs }).unwrap();
        for (x, y) in values.iter().zip(encoder.decode(&plain).unwrap()) {
            assert!((x - y).abs() <= plain.error_bound() + max_abs * 1e-14, "{x} {y}");
        }
    }
}

#[test]
fn one_thread_equals_many() {
    let w = World::new(literals().remove(2));
    let (a, b) = (w.encrypt(&w.message(3)), w.encrypt(&w.message(4)));
    let run = |threads: usize| {
        Threads::new(threads).run(|| {
            let product = w.server.mul_rescale(&a, &b).unwrap();
            let turned = w.server.rotate_many(&product, &STEPS).unwrap();
            turned.iter().map(|c| c.parts().iter().map(|p| p.words().to_vec()).collect::<Vec<_>>()).collect::<Vec<_>>()
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn refusals_name_the_state() {
    let w = World::new(literals().remove(0));
    let other = World::new(literals().remove(1));
    let stranger = World::new(literals().remove(0));
    let a = w.encrypt(&w.message(5));
    let s = &w.server;
    let bottom = s.drop_to(&a, 0).unwrap();
    assert!(matches!(s.rescale(&bottom), Err(HeError::Rlwe(RlweError::OutOfLevels { level: 0, .. }))));
    assert!(matches!(s.drop_to(&bottom, 1), Err(HeError::Rlwe(RlweError::NoSuchLevel { wanted: 1, highest: 0, .. }))));
    let other_a = other.encrypt(&other.message(1));
    assert!(matches!(s.add(&a, &other_a), Err(HeError::Rlwe(RlweError::WrongParameters { .. }))));
    let foreign = stranger.encrypt(&w.message(1));
    assert!(matches!(s.add(&a, &foreign), Err(HeError::Rlwe(RlweError::WrongKey { .. }))));
    assert!(matches!(Decryptor::new(&w.secret).decrypt(&foreign), Err(HeError::Rlwe(RlweError::WrongKey { .. }))));
    assert!(matches!(s.rotate(&a, 7), Err(HeError::Rlwe(RlweError::MissingRotationKey { step: 7, .. }))));
    let product = s.mul(&a, &a).unwrap();
    assert!(matches!(s.add(&a, &product), Err(HeError::ScaleMismatch { .. })));
    assert!(matches!(s.mul(&product, &a), Err(HeError::Rlwe(RlweError::Degree { found: 3, .. }))));
    assert!(matches!(s.rotate(&product, 1), Err(HeError::Rlwe(RlweError::Degree { found: 3, .. }))));
    let squared = s.drop_to(&s.mul_relin(&product_of(s, &a), &product_of(s, &a)).unwrap(), 0);
    assert!(matches!(squared, Err(HeError::TooLarge { .. })));
    assert!(matches!(w.encoder().encode(&[f64::NAN], 1.0), Err(HeError::NotFinite { index: 0 })));
    assert!(matches!(w.encoder().encode(&[0.0, f64::INFINITY], 1.0), Err(HeError::NotFinite { index: 1 })));
    assert!(matches!(w.encoder().encode(&[0.0, -1.5], 1.0), Err(HeError::Rlwe(RlweError::OverBound { index: 1, .. }))));
    assert!(matches!(
        w.encoder().encode(&vec![0.0; 513], 1.0),
        Err(HeError::Rlwe(RlweError::TooManyValues { capacity: 512, .. }))
    ));
    let keys = KeyGenerator::new(&w.secret).unwrap().eval_keys(Some(1), &[]).unwrap();
    let weak = Evaluator::new(&w.params, keys).unwrap();
    assert!(matches!(weak.mul_relin(&a, &a), Err(HeError::Rlwe(RlweError::NoSuchLevel { wanted: 3, highest: 1, .. }))));
    assert!(weak.mul_relin(&s.drop_to(&a, 1).unwrap(), &s.drop_to(&a, 1).unwrap()).is_ok());
}

fn product_of(s: &Evaluator, a: &Ciphertext) -> Ciphertext {
    s.mul_relin(a, a).unwrap()
}

/// What would be launches on a device: a product with relinearisation and rescale is a tensor product and a key
/// switch with the sum, both parts divided on the way; a rotation is one.
#[test]
fn products_cross_into_the_ring_twice() {
    for literal in literals() {
        let w = World::new(literal);
        let (x, y) = (w.encrypt(&w.message(1)), w.encrypt(&w.message(2)));
        let crossings = |work: &dyn Fn()| {
            let before = sudare_ring::ops::crossings();
            work();
            sudare_ring::ops::crossings() - before
        };
        let product = || drop(w.server.mul_rescale(&x, &y).unwrap());
        assert_eq!(crossings(&product), 2);
        let rotation = || drop(w.server.rotate(&x, 1).unwrap());
        assert_eq!(crossings(&rotation), 1);
    }
}

#[test]
fn secrets_do_not_print() {
    let w = World::new(literals().remove(0));
    let shown = format!("{:?}", w.secret);
    assert!(shown.len() < 80 && shown.contains("hidden"), "{shown}");
}

#[test]
fn a_missing_relinearisation_key_is_refused_before_the_product() {
    let w = World::new(literals().remove(0));
    let a = w.encrypt(&w.message(1));
    let weak = KeyGenerator::new(&w.secret).unwrap().eval_keys(None, &[]).unwrap();
    let weak = Evaluator::new(&w.params, weak).unwrap();
    let low = KeyGenerator::new(&w.secret).unwrap().eval_keys(Some(1), &[]).unwrap();
    let low = Evaluator::new(&w.params, low).unwrap();
    type Product = fn(&Evaluator, &Ciphertext, &Ciphertext) -> Result<Ciphertext, HeError>;
    let products: [Product; 2] = [Evaluator::mul_relin, Evaluator::mul_rescale];
    for product in products {
        assert!(matches!(product(&weak, &a, &a), Err(HeError::Rlwe(RlweError::MissingRelinKey))));
        assert!(matches!(product(&low, &a, &a), Err(HeError::Rlwe(RlweError::NoSuchLevel { highest: 1, .. }))));
    }
    let bottom = w.server.drop_to(&a, 0).unwrap();
    let refused = w.server.mul_rescale(&bottom, &a);
    assert!(matches!(refused, Err(HeError::Rlwe(RlweError::OutOfLevels { level: 0, .. }))));
    assert_eq!([weak, low].map(|server| server.counters().mult), [0, 0]);
}

#[test]
fn a_pair_without_a_division_is_an_internal_error() {
    let w = World::new(literals().remove(0));
    let pair = |level| ExtendedPair::zero(&w.params, level).mod_down_rescale(&w.params);
    assert!(pair(1).is_ok());
    let error = pair(0).unwrap_err();
    assert!(matches!(error, RlweError::Internal { .. }) && error.kind() == ErrorKind::Internal, "{error}");
}
