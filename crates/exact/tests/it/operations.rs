//! Every operation of both schemes.

use super::world::{STEPS, World, literal};
use num_bigint::BigInt;
use sudare_exact::ExactError;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::big::BigEncoder;
use sudare_exact::plan::{EXACT, Requirements, slot_modulus};
use sudare_exact::{Ciphertext, Decryptor, Encryptor, Evaluator, Packing, Scheme, Wrap};
use sudare_ring::Threads;
use sudare_ring::random::{Entropy, Seed};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::params::ParamsLiteral;
use sudare_testkit::Random;

/// A modulus, its packing, and a chain that holds two products in both schemes.
fn cases() -> Vec<(u64, Packing, ParamsLiteral)> {
    let slots = |bits| slot_modulus(bits, 9).unwrap();
    vec![
        (slots(17), Packing::Slots, literal(9, &[45, 40, 40], &[48, 48], 2)),
        (12289, Packing::Slots, literal(9, &[47, 44, 44, 30], &[47], 1)),
        (slots(59), Packing::Slots, literal(9, &[47, 47, 47, 47, 47, 47, 47, 47, 47], &[47, 47, 47], 3)),
        (2, Packing::Coefficients, literal(9, &[40, 30, 30], &[48], 1)),
        (4, Packing::Coefficients, literal(9, &[60, 40, 40], &[60], 1)),
        (1_000_000, Packing::Coefficients, literal(9, &[45, 45, 45, 45], &[47, 47], 2)),
        ((1 << 59) - 55, Packing::Coefficients, literal(9, &[47; 9], &[47; 3], 3)),
        ((1 << 60) - 1, Packing::Coefficients, literal(9, &[47; 9], &[47; 5], 5)),
    ]
}

fn every_operation<S: Scheme>() {
    for (t, packing, literal) in cases() {
        let w = World::<S>::new(&literal, t);
        let n = w.params.degree();
        let mut words = Random(t);
        let (x, y, z) = (words.edges(t, n), words.edges(t, n), words.edges(t, n));
        let (a, b, c) = (w.encrypt(&x, packing), w.encrypt(&y, packing), w.encrypt(&z, packing));
        let s = &w.server;
        w.expect(&a, packing, &x);
        w.expect(&s.add(&a, &b).unwrap(), packing, &w.plus(&x, &y));
        w.expect(&s.sub(&a, &b).unwrap(), packing, &w.minus(&x, &y));
        w.expect(&s.negate(&a).unwrap(), packing, &w.minus(&vec![0; n], &x));
        w.expect(&s.add_plain(&a, &w.plain(&y, packing)).unwrap(), packing, &w.plus(&x, &y));
        w.expect(&s.sub_plain(&a, &w.plain(&y, packing)).unwrap(), packing, &w.minus(&x, &y));
        let xy = w.times(packing, &x, &y);
        w.expect(&s.mul_plain(&a, &w.plain(&y, packing)).unwrap(), packing, &xy);
        let tripled: Vec<u64> = x.iter().map(|v| w.t().mul(*v, w.t().reduce_i64(-3))).collect();
        w.expect(&s.mul_integer(&a, -3).unwrap(), packing, &tripled);
        let product = s.mul(&a, &b).unwrap();
        assert_eq!(product.parts().len(), 3);
        w.expect(&product, packing, &xy);
        w.expect(&s.relinearize(&product).unwrap(), packing, &xy);
        let fused = s.mul_relin(&a, &b).unwrap();
        assert_eq!(fused.parts().len(), 2);
        w.expect(&fused, packing, &xy);
        let xx = w.times(packing, &x, &x);
        w.expect(&s.square(&a).unwrap(), packing, &xx);
        // A product meets a fresh operand, and another product.
        let deeper = s.mul_relin(&fused, &c).unwrap();
        let xyz = w.times(packing, &xy, &z);
        w.expect(&deeper, packing, &xyz);
        w.expect(&s.add(&deeper, &a).unwrap(), packing, &w.plus(&xyz, &x));
        w.expect(&s.sub(&b, &fused).unwrap(), packing, &w.minus(&y, &xy));
        w.expect(&s.add(&product, &a).unwrap(), packing, &w.plus(&xy, &x));
        w.expect(&s.sub(&a, &product).unwrap(), packing, &w.minus(&x, &xy));
        let dot = s.dot_relin(&[&a, &fused], &[&b, &c]).unwrap();
        w.expect(&dot, packing, &w.plus(&xy, &xyz));
        let mut sum = a.clone();
        s.add_assign(&mut sum, &b).unwrap();
        s.add_assign(&mut sum, &fused).unwrap();
        w.expect(&sum, packing, &w.plus(&w.plus(&x, &y), &xy));
        // Modulus switching, with and without what it changes in the factor.
        let low = s.drop_to(&a, a.level() - 1).unwrap();
        w.expect(&low, packing, &x);
        w.expect(&s.add(&low, &b).unwrap(), packing, &w.plus(&x, &y));
        w.expect(&s.add(&s.drop_to(&product, product.level() - 1).unwrap(), &low).unwrap(), packing, &w.plus(&xy, &x));
        if packing == Packing::Slots {
            rotations(&w, &x);
        }
    }
}

fn rotations<S: Scheme>(w: &World<S>, x: &[u64]) {
    let (packing, row, s) = (Packing::Slots, w.params.row(), &w.server);
    let a = w.encrypt(x, packing);
    let turned = |step: i64| -> Vec<u64> {
        let at = |i: usize| i / row * row + (i as i64 % row as i64 + step).rem_euclid(row as i64) as usize;
        (0..x.len()).map(|i| x[at(i)]).collect()
    };
    for (step, hoisted) in STEPS.iter().zip(s.rotate_many(&a, &STEPS).unwrap()) {
        w.expect(&s.rotate_rows(&a, *step).unwrap(), packing, &turned(*step));
        w.expect(&hoisted, packing, &turned(*step));
        let low = s.drop_to(&a, a.level() - 1).unwrap();
        w.expect(&s.rotate_rows(&low, *step).unwrap(), packing, &turned(*step));
    }
    let swapped: Vec<u64> = x[row..].iter().chain(&x[..row]).copied().collect();
    w.expect(&s.rotate_columns(&a).unwrap(), packing, &swapped);
    let elements = [1, w.params.rotation_element(1), w.params.rotation_element(3)];
    let sum = w.plus(&w.plus(x, &turned(1)), &turned(3));
    w.expect(&s.sum_of_automorphisms(&a, &elements).unwrap(), packing, &sum);
    let total = |values: &[u64]| values.iter().fold(0, |acc, v| w.t().add(acc, *v));
    let rows: Vec<u64> = x.chunks(row).flat_map(|r| vec![total(r); row]).collect();
    w.expect(&s.sum_slots(&a, false).unwrap(), packing, &rows);
    w.expect(&s.sum_slots(&a, true).unwrap(), packing, &vec![total(x); x.len()]);
}

#[test]
fn bfv_agrees_with_integers() {
    every_operation::<Bfv>();
}

#[test]
fn bgv_agrees_with_integers() {
    every_operation::<Bgv>();
}

/// Picked parameters run what was declared, by worst-case bounds and in fact.
fn picked<S: Scheme>(params: sudare_exact::IntegerParams, depth: usize, additions: u64) {
    let secret = SecretKey::generate(&params).unwrap();
    let generator = KeyGenerator::new(&secret).unwrap();
    let keys = generator.eval_keys(Some(params.max_level()), &[]).unwrap();
    let public = generator.public_key().unwrap();
    let encoder = sudare_exact::Encoder::new(&params);
    let t = params.modulus();
    let server = Evaluator::<S>::new(&params, keys).unwrap();
    let mut value = t.reduce(0x1234_5678_9ABC_DEF1);
    let plain = encoder.encode_unsigned(&[value], Packing::Coefficients, Wrap::Refuse).unwrap();
    let mut c = Encryptor::<S>::with_public_key(&params, &public).unwrap().encrypt(&plain).unwrap();
    let added = |c: &Ciphertext<S>| {
        let mut sum = c.clone();
        (0..additions).for_each(|_| server.add_assign(&mut sum, c).unwrap());
        sum
    };
    for _ in 0..depth {
        let sum = added(&c);
        c = server.mul_relin(&sum, &sum).unwrap();
        value = t.mul(value, t.reduce(additions + 1));
        value = t.mul(value, value);
    }
    let c = added(&c);
    value = t.mul(value, t.reduce(additions + 1));
    let back = Decryptor::new(&params, &secret).unwrap().decrypt(&c).unwrap();
    assert_eq!(encoder.decode_unsigned(&back, Packing::Coefficients).unwrap()[0], value);
}

#[test]
fn picked_parameters_hold_the_declared_computation() {
    for (t, depth, additions) in [(2, 2, 0), (65537, 3, 7), ((1 << 40) + 15, 2, 1), ((1 << 59) - 55, 1, 3)] {
        let wish = Requirements::new(t).depth(depth).additions(additions).public_key();
        picked::<Bfv>(wish.bfv().unwrap(), depth, additions);
        picked::<Bgv>(wish.bgv().unwrap(), depth, additions);
    }
}

#[test]
fn larger_integers_by_several_moduli() {
    let params = literal(10, &[47; 5], &[47, 47], 2).build(EXACT).unwrap();
    let moduli = [slot_modulus(40, 10).unwrap(), slot_modulus(39, 10).unwrap(), slot_modulus(38, 10).unwrap()];
    let encoder = BigEncoder::new(&params, &moduli).unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    let keys = KeyGenerator::new(&secret).unwrap().eval_keys(Some(4), &[]).unwrap();
    let x: Vec<BigInt> = (0..1024i64).map(|i| BigInt::from(i - 500) * ((1i64 << 47) + 12345 * i)).collect();
    let y: Vec<BigInt> = (0..1024i64).map(|i| BigInt::from(7919 * i) - 4_000_000).collect();
    let (p, q) = (
        encoder.encode(&x, Packing::Slots, Wrap::Refuse).unwrap(),
        encoder.encode(&y, Packing::Slots, Wrap::Refuse).unwrap(),
    );
    let products: Vec<_> = encoder
        .encoders()
        .iter()
        .zip(p.iter().zip(&q))
        .map(|(e, (p, q))| {
            let encryptor = Encryptor::<Bfv>::with_secret_key(e.params(), &secret).unwrap();
            let server = Evaluator::<Bfv>::new(e.params(), keys.clone()).unwrap();
            let c = server.mul_relin(&encryptor.encrypt(p).unwrap(), &encryptor.encrypt(q).unwrap()).unwrap();
            Decryptor::new(e.params(), &secret).unwrap().decrypt(&c).unwrap()
        })
        .collect();
    let back = encoder.decode(&products, Packing::Slots).unwrap();
    assert!(back.iter().zip(x.iter().zip(&y)).all(|(z, (x, y))| *z == x * y));
    let over = vec![BigInt::from(encoder.modulus().clone())];
    assert!(matches!(
        encoder.encode(&over, Packing::Slots, Wrap::Refuse),
        Err(ExactError::Rlwe(RlweError::OverBound { index: 0, .. }))
    ));
    let wrapped = encoder.encode(&over, Packing::Slots, Wrap::Modulo).unwrap();
    assert_eq!(encoder.decode(&wrapped, Packing::Slots).unwrap()[0], BigInt::from(0));
    assert!(BigEncoder::new(&params, &[6, 35, 77]).is_err());
}

#[test]
fn one_thread_equals_many() {
    let literal = literal(9, &[45, 40, 40], &[48, 48], 2);
    fn run<S: Scheme>(w: &World<S>, threads: usize) -> Vec<u64> {
        let x = Random(1).edges(12289, 512);
        let plain = w.plain(&x, Packing::Slots);
        let seed = Seed::from_bytes([7; 32]);
        let encryptor =
            Encryptor::<S>::with_secret_key(&w.params, &w.secret).unwrap().with_entropy(Entropy::fixed(seed));
        let (a, b) = (encryptor.encrypt(&plain).unwrap(), encryptor.encrypt(&plain).unwrap());
        Threads::new(threads).run(|| {
            let product = w.server.mul_relin(&a, &b).unwrap();
            let turned = w.server.rotate_many(&product, &STEPS).unwrap();
            turned.iter().flat_map(|c| c.parts().iter().flat_map(|p| p.words().to_vec())).collect()
        })
    }
    let w = World::<Bfv>::new(&literal, 12289);
    assert_eq!(run(&w, 1), run(&w, 3));
    let w = World::<Bgv>::new(&literal, 12289);
    assert_eq!(run(&w, 1), run(&w, 3));
}

/// A prime that is 1 modulo N alone has slots for half of the coefficients: the same operations on them.
#[test]
fn slots_of_polynomials_in_a_square() {
    let w = World::<Bgv>::new(&literal(10, &[45, 45, 45], &[46], 1), 13313);
    let (s, t, row, n) = (&w.server, *w.t(), w.params.row(), w.params.degree());
    assert_eq!((w.params.slots(), row), (n / 2, n / 4));
    let mut random = Random(6);
    let [x, y] = [0, 1].map(|_| random.words(t.value(), n / 2));
    let [a, b] = [&x, &y].map(|values| w.encrypt(values, Packing::Slots));
    assert_eq!(w.decrypt(&a, Packing::Slots), x);
    let product: Vec<u64> = x.iter().zip(&y).map(|(x, y)| t.mul(*x, *y)).collect();
    assert_eq!(w.decrypt(&s.mul_relin(&a, &b).unwrap(), Packing::Slots), product);
    let turned: Vec<u64> = (0..n / 2).map(|i| x[i / row * row + (i + 3) % row]).collect();
    assert_eq!(w.decrypt(&s.rotate_rows(&a, 3).unwrap(), Packing::Slots), turned);
    let swapped: Vec<u64> = (0..n / 2).map(|i| x[(i + row) % (2 * row)]).collect();
    assert_eq!(w.decrypt(&s.rotate_columns(&a).unwrap(), Packing::Slots), swapped);
    let sum = x.iter().fold(0, |acc, x| t.add(acc, *x));
    assert_eq!(w.decrypt(&s.sum_slots(&a, true).unwrap(), Packing::Slots), vec![sum; n / 2]);
    let found = w.encoder.encode_unsigned(&vec![0; n / 2 + 1], Packing::Slots, Wrap::Refuse);
    assert_eq!(found.unwrap_err(), ExactError::Rlwe(RlweError::TooManyValues { found: n / 2 + 1, capacity: n / 2 }));
    assert!(w.encoder.encode_unsigned(&vec![0; n], Packing::Coefficients, Wrap::Refuse).is_ok());
}
