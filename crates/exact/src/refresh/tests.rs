//! What no user sees: the digit that noise becomes, and the noise of maps against their formula.

use super::map::MapPlan;
use super::slots::Slots;
use super::transform::{Direction, Transform};
use super::{RefreshKeys, RefreshLiteral, RefreshParams, RefreshSet, Refresher};
use crate::bgv::{Ciphertext, Decryptor, Encryptor};
use crate::{Encoder, IntegerParams, Packing, Plaintext, State, Wrap};
use sudare_ring::{Coeff, Poly};
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_testkit::{Random, sized};

fn built(literal: RefreshLiteral) -> RefreshParams {
    let log_n = 9 + u32::from(literal.half());
    literal.insecure(log_n).unwrap().build().unwrap()
}

/// The digit is t·x + v with v what rounding leaves: never above h/2, and of variance (1 + h)/12.
#[test]
fn the_digit_is_small_and_the_rest_exact() {
    for set in RefreshSet::ALL {
        let params = built(set.literal());
        let (low, square, layout) = (params.params(), params.square(), params.layout());
        let (t, n, encoder) = (low.t(), low.degree(), Encoder::new(low));
        let mut digits: Vec<i64> = Vec::new();
        for trial in 0..sized(6, 60) {
            let secret = SecretKey::generate(low).unwrap();
            let server = Refresher::new(RefreshKeys::generate(&secret, &params).unwrap(), None).unwrap();
            let values = Random(trial).words(t, low.slots());
            let plain = encoder.encode_unsigned(&values, Packing::Slots, Wrap::Refuse).unwrap();
            let x = Encryptor::with_secret_key(low, &secret).unwrap().encrypt_at(&plain, layout.input_level()).unwrap();
            let lowest = server.mapped(low, &layout.stc, &server.stc, x.inner().clone()).unwrap();
            let z = server.digits(&lowest).unwrap();
            // What z is, by its factor; and the coefficients that StC made, by theirs.
            let t2 = square.modulus();
            let factor = t2.inverse(square.dropped_mod_t(square.max_level(), layout.masked)).unwrap();
            let z = Ciphertext::new(square, z, State { factor, noise: 30f64.exp2() });
            let z = Decryptor::new(square, &secret).unwrap().decrypt(&z).unwrap();
            let m = low.modulus();
            let factor = m.mul(x.factor(), m.inverse(low.dropped_mod_t(x.level(), lowest.level())).unwrap());
            let lowest = Ciphertext::new(low, lowest, State { factor, noise: 12f64.exp2() });
            let coefficients = Decryptor::new(low, &secret).unwrap().decrypt(&lowest).unwrap();
            let over = m.neg(m.mul(factor, m.inverse(low.q_mod_t(params.gate().max_level())).unwrap()));
            for (z, c) in z.coefficients().iter().zip(coefficients.coefficients()).step_by(layout.shares) {
                let x = m.mul(*c, over);
                digits.push(t2.center(t2.add(*z, t2.neg(t * x))));
            }
            assert!(z.coefficients().iter().enumerate().all(|(i, c)| i % layout.shares == 0 || *c == 0));
        }
        let h = i64::from(params.literal().weight);
        assert!(digits.iter().all(|v| v.abs() <= h / 2), "{set}: digits up to {:?}", digits.iter().max());
        assert!(digits.len() as u64 >= 6 * n as u64 / 2);
        let variance = digits.iter().map(|v| (v * v) as f64).sum::<f64>() / digits.len() as f64;
        // Rounding z itself, not its parts, adds no more: v is an integer.
        let expected = (1.0 + h as f64) / 12.0;
        assert!((variance / expected - 1.0).abs() < sized(0.1, 0.03), "{set}: {variance:.3} of {expected:.3}");
    }
}

/// The noise of a ciphertext, t times over.
fn noise(params: &IntegerParams, secret: &SecretKey, c: &rlwe::Ciphertext) -> Vec<f64> {
    let mut poly = rlwe::Decryptor::new(secret).phase(c, c.level()).unwrap().into_coeff();
    poly.mul_scalars(params.t_mod_q(c.level()));
    let mut out = vec![0.0; poly.degree()];
    poly.to_f64(0, &mut out, 1.0 / params.t() as f64).unwrap();
    out
}

fn variance(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64
}

/// Variances of the maps of both transforms within 3 % (a few more with few samples), and under their bounds.
#[test]
fn the_noise_of_maps() {
    let params = built(RefreshLiteral::x15());
    let (low, square) = (params.params(), params.square());
    let cases = [
        (low, Slots::modulo_t(low).unwrap(), Direction::SlotsToCoefficients),
        (square, Slots::modulo_square(low).unwrap(), Direction::CoefficientsToSlots),
    ];
    for (over, slots, direction) in cases {
        let transform = Transform::new(&slots, &[4, 4], direction, 4, 0);
        for stage in &transform.stages {
            let map = MapPlan::of(over, &slots, stage).unwrap();
            let level = 5;
            let rows = map.prepare(over, level);
            let (mut before, mut after) = (Vec::new(), Vec::new());
            for trial in 0..sized(12, 60) {
                let secret = SecretKey::generate(over).unwrap();
                let elements: Vec<_> = map.elements().into_iter().map(|e| (e, level)).collect();
                let keys = KeyGenerator::new(&secret).unwrap().eval_keys(None, &elements).unwrap();
                let server = rlwe::Evaluator::new(keys);
                let coefficients = Random(trial).words(over.t(), over.degree());
                let plain = Plaintext::from_coefficients(over, coefficients).unwrap();
                let x: Ciphertext =
                    Encryptor::with_secret_key(over, &secret).unwrap().encrypt_at(&plain, level).unwrap();
                before.extend(noise(over, &secret, x.inner()));
                let y = map.apply(&server, over, &rows, x.inner(), level).unwrap();
                let found = noise(over, &secret, &y);
                let largest = found.iter().map(|x| x.abs()).fold(0.0, f64::max);
                assert!(largest < map.noise(over.noise(), level, x.noise()) + over.noise().division(2));
                after.extend(found);
            }
            let expected = map.variance(over.sketch(), level, variance(&before));
            let ratio = variance(&after) / expected;
            assert!((ratio - 1.0).abs() < sized(0.08, 0.03), "{direction:?}, unit {}: {ratio:.3}", stage.unit);
        }
    }
}

/// A polynomial in a power of X has the bound of its embedding.
#[test]
fn sizes_of_periodic_polynomials() {
    let params = built(RefreshLiteral::x15());
    let n = params.params().degree();
    let short: Vec<i64> = (0..16).map(|i| i * i - 40).collect();
    let mut long = vec![0; n];
    long.iter_mut().step_by(n / 16).zip(&short).for_each(|(l, s)| *l = *s);
    let [a, b] = [&short, &long].map(|c| params.params().embedded_sizes(c).unwrap());
    assert_eq!(a, b);
    let poly = Poly::<Coeff>::from_signed(params.params().q_at(0), &long);
    assert_eq!(poly.centered(), long);
    let squares: f64 = long.iter().map(|c| (c * c) as f64).sum();
    let mean = a.iter().map(|x| x * x).sum::<f64>() / a.len() as f64;
    assert!((mean / squares - 1.0).abs() < 1e-5);
}
