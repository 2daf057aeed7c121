//! Measured noise against its formulas: the variance of every operation within 3 % over at least
//! 10^5 samples, and never past the static bound.

use crate::world::literal;
use sudare_he::ckks::{Ciphertext, Decryptor, EncodeAt, Encoder, Encryptor, Evaluator, Params, Plaintext};
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::{Eval, Poly};
use sudare_rlwe::keys::{KeyGenerator, SecretKey};

/// Secrets and trials: 8 · 4 · 4096 samples of each operation, over keys of their own since a
/// key's weight is a common factor of its samples.
const KEYS: usize = 8;
const TRIALS: usize = 4;

fn params(q_bits: &[u32], p_bits: &[u32], digit_limbs: usize) -> Params {
    literal(12, q_bits, p_bits, digit_limbs, 35).build().unwrap()
}

/// Signed coefficients of a polynomial that is small next to its first prime.
fn coefficients(poly: &Poly<Eval>) -> Vec<f64> {
    let poly = poly.truncated(1).into_coeff();
    let q = *poly.basis().limb(0).modulus();
    poly.limb(0).iter().map(|x| q.center(*x) as f64).collect()
}

/// What a ciphertext decrypts to, in integer units.
fn opened(secret: &SecretKey, ciphertext: &Ciphertext) -> Poly<Eval> {
    Decryptor::new(secret).decrypt(ciphertext).unwrap().poly().truncated(1).into_eval()
}

#[derive(Default)]
struct Samples {
    sum_of_squares: f64,
    count: usize,
}

impl Samples {
    fn add(&mut self, errors: &[f64]) {
        self.sum_of_squares += errors.iter().map(|e| e * e).sum::<f64>();
        self.count += errors.len();
    }

    #[track_caller]
    fn require(&self, what: &str, variance: f64) {
        assert!(self.count >= 100_000, "{what}: {} samples", self.count);
        let ratio = self.sum_of_squares / self.count as f64 / variance;
        assert!((ratio - 1.0).abs() < 0.03, "{what}: measured variance is {ratio:.4} of the formula's {variance:.3e}");
    }
}

fn zero_at(params: &Params, level: usize) -> Plaintext {
    Encoder::new(params).encode_at(&[], EncodeAt { level, scale: params.scale(), max_abs: 0.0 }).unwrap()
}

/// Runs `measure` for each key and trial and compares the pooled variance.
fn pooled(what: &str, params: &Params, variance: f64, mut measure: impl FnMut(&SecretKey, &mut Samples)) {
    let mut samples = Samples::default();
    for _ in 0..KEYS {
        let secret = SecretKey::generate(params).unwrap();
        measure(&secret, &mut samples);
    }
    samples.require(what, variance);
}

#[test]
fn fresh_encryptions() {
    let p = params(&[50, 40], &[], 1);
    pooled("secret-key encryption", &p, p.sketch().secret_encryption().variance(), |secret, out| {
        let encryptor = Encryptor::with_secret_key(secret).unwrap();
        for _ in 0..TRIALS {
            out.add(&coefficients(&opened(secret, &encryptor.encrypt(&zero_at(&p, 1)).unwrap())));
        }
    });
    pooled("public-key encryption", &p, p.sketch().public_encryption().variance(), |secret, out| {
        // The public key's own error is a common factor too: a key for each trial.
        for _ in 0..TRIALS {
            let public = KeyGenerator::new(secret).unwrap().public_key().unwrap();
            let encryptor = Encryptor::with_public_key(&public).unwrap();
            out.add(&coefficients(&opened(secret, &encryptor.encrypt(&zero_at(&p, 1)).unwrap())));
        }
    });
}

#[test]
fn rescale_rounds_as_the_formula_says() {
    let p = params(&[50, 40], &[50], 1);
    pooled("rescale", &p, p.sketch().division(2).variance(), |secret, out| {
        let server = Evaluator::new(&p, KeyGenerator::new(secret).unwrap().eval_keys(None, &[]).unwrap()).unwrap();
        let encryptor = Encryptor::with_secret_key(secret).unwrap();
        for _ in 0..TRIALS {
            // The fresh error all but vanishes in the division; only rounding is left.
            let ciphertext = encryptor.encrypt(&zero_at(&p, 1)).unwrap();
            out.add(&coefficients(&opened(secret, &server.rescale(&ciphertext).unwrap())));
        }
    });
}

#[test]
fn key_switching_in_every_shape() {
    let shapes: [(&[u32], &[u32], usize); 3] =
        [(&[50, 40, 40], &[50], 1), (&[50, 40, 40, 40], &[45, 45], 2), (&[60, 40, 40], &[60], 1)];
    for (q_bits, p_bits, digit_limbs) in shapes {
        let p = params(q_bits, p_bits, digit_limbs);
        for level in [p.max_level(), 0] {
            let element = p.rotation_element(3);
            let variance = p.sketch().switching(level).variance() + p.sketch().division(2).variance();
            pooled("key switching", &p, variance, |secret, out| {
                let top = p.max_level();
                let keys = KeyGenerator::new(secret).unwrap().eval_keys(None, &[(element, top)]).unwrap();
                let server = Evaluator::new(&p, keys).unwrap();
                let encryptor = Encryptor::with_secret_key(secret).unwrap();
                for _ in 0..TRIALS {
                    let fresh = encryptor.encrypt(&zero_at(&p, level)).unwrap();
                    let turned = server.rotate(&fresh, 3).unwrap();
                    let permutation = EvalPermutation::new(p.degree(), element).unwrap();
                    let mut error = opened(secret, &turned);
                    error.sub_assign(&opened(secret, &fresh).permuted(&permutation));
                    out.add(&coefficients(&error));
                }
            });
        }
    }
}

#[test]
fn static_bounds_hold_and_are_not_idle() {
    let p = params(&[50, 35, 35, 35], &[50], 1);
    let secret = SecretKey::generate(&p).unwrap();
    let keys = KeyGenerator::new(&secret).unwrap();
    let elements: Vec<_> = [1, 2, 4, 8].iter().map(|s| (p.rotation_element(*s), 3)).collect();
    let server = Evaluator::new(&p, keys.eval_keys(Some(3), &elements).unwrap()).unwrap();
    let encoder = Encoder::new(&p);
    let values: Vec<f64> = (0..p.slots()).map(|i| (i as f64 * 0.731).sin()).collect();
    let fresh = Encryptor::with_secret_key(&secret).unwrap().encrypt(&encoder.encode(&values, 1.0).unwrap()).unwrap();
    let square = server.mul_rescale(&fresh, &fresh).unwrap();
    let mut folded = square.clone();
    for step in [1, 2, 4, 8] {
        folded = server.add(&folded, &server.rotate(&folded, step).unwrap()).unwrap();
    }
    let n = p.slots();
    let sums: Vec<f64> = (0..n).map(|i| (0..16).map(|k| values[(i + k) % n].powi(2)).sum()).collect();
    let squares: Vec<f64> = values.iter().map(|x| x * x).collect();
    // A ciphertext added to itself is fully correlated, and still covered.
    let doubled = server.add(&fresh, &fresh).unwrap();
    let twice: Vec<f64> = values.iter().map(|x| 2.0 * x).collect();
    for (what, ciphertext, wanted) in [
        ("fresh", &fresh, &values),
        ("square", &square, &squares),
        ("fold", &folded, &sums),
        ("doubled", &doubled, &twice),
    ] {
        let got = encoder.decode(&Decryptor::new(&secret).decrypt(ciphertext).unwrap()).unwrap();
        let error = got.iter().zip(wanted).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        let bound = ciphertext.error_bound();
        assert!(error < bound, "{what}: {error:e} over {bound:e}");
        assert!(error > bound / 200.0, "{what}: the bound {bound:e} is far from the measured {error:e}");
    }
}
