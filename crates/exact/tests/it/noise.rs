//! Measured noise against its formulas: the variance of each operation within 3 % over at least
//! 10^5 samples.

use super::world::literal;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::noise::{bfv_product_variance, bgv_product_variance};
use sudare_exact::plan::EXACT;
use sudare_exact::{Ciphertext, Encoder, Encryptor, Evaluator, IntegerParams, Packing, Scheme, Wrap};
use sudare_ring::{Coeff, Poly};
use sudare_rlwe::Params;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};

const KEYS: usize = 8;
const TRIALS: usize = 6;
const T: u64 = 257;

/// Noise coefficients of an encryption of zero, and that the static bound covers them.
fn noise<S: Scheme>(secret: &SecretKey, c: &Ciphertext<S>) -> Vec<f64> {
    let basis = c.parts()[0].basis();
    let s = Poly::<Coeff>::from_signed(basis, secret.coefficients()).into_eval();
    let mut sum = Poly::zero(basis);
    for part in c.parts().iter().rev() {
        sum.mul_assign(&s);
        sum.add_assign(part);
    }
    let sum = sum.into_coeff();
    let q = *basis.limb(0).modulus();
    let out: Vec<f64> = sum.limb(0).iter().map(|x| q.center(*x) as f64).collect();
    assert!(out.iter().all(|x| x.abs() <= c.noise()));
    out
}

struct Bench<S: Scheme> {
    secret: SecretKey,
    server: Evaluator<S>,
    params: IntegerParams,
}

impl<S: Scheme> Bench<S> {
    fn new(params: &Params) -> Self {
        let secret = SecretKey::generate(params).unwrap();
        let keys = KeyGenerator::new(&secret).unwrap().eval_keys(Some(params.max_level()), &[(5, 1)]).unwrap();
        let params = IntegerParams::new(params, T).unwrap();
        Self { server: Evaluator::new(&params, keys).unwrap(), secret, params }
    }

    fn zero(&self) -> Ciphertext<S> {
        let plain = Encoder::new(&self.params).encode_unsigned(&[], Packing::Coefficients, Wrap::Refuse).unwrap();
        Encryptor::with_secret_key(&self.params, &self.secret).unwrap().encrypt(&plain).unwrap()
    }
}

/// The pooled variance of an operation over fresh keys.
#[track_caller]
fn expect<S: Scheme>(what: &str, params: &Params, variance: f64, run: impl Fn(&Bench<S>) -> Ciphertext<S>) {
    let (mut squares, mut count) = (0.0, 0usize);
    for _ in 0..KEYS {
        let bench = Bench::<S>::new(params);
        for _ in 0..TRIALS {
            let errors = noise(&bench.secret, &run(&bench));
            squares += errors.iter().map(|e| e * e).sum::<f64>();
            count += errors.len();
        }
    }
    assert!(count >= 100_000);
    let ratio = squares / count as f64 / variance;
    assert!((ratio - 1.0).abs() < 0.03, "{} {what}: {ratio:.4} of the formula's {variance:.3e}", S::NAME);
}

#[test]
fn variances_agree_with_the_formulas() {
    let params = literal(12, &[50, 40, 40], &[50], 1).build(EXACT).unwrap();
    let sketch = params.sketch();
    let fresh = sketch.secret_encryption().variance();
    expect::<Bfv>("encryption", &params, fresh, |b| b.zero());
    expect::<Bgv>("encryption", &params, fresh, |b| b.zero());
    let rounding = sketch.division(2).variance();
    let bfv = bfv_product_variance(sketch, T, fresh, fresh);
    expect::<Bfv>("product", &params, bfv, |b| b.server.mul(&b.zero(), &b.zero()).unwrap());
    // Relinearisation is small next to the product.
    let relin = bfv + sketch.switching(2).variance() + rounding;
    expect::<Bfv>("relinearised product", &params, relin, |b| b.server.mul_relin(&b.zero(), &b.zero()).unwrap());
    let bgv = bgv_product_variance(sketch, T, fresh, fresh);
    expect::<Bgv>("product", &params, bgv, |b| b.server.mul(&b.zero(), &b.zero()).unwrap());
    expect::<Bfv>("modulus switch", &params, rounding, |b| b.server.drop_to(&b.zero(), 0).unwrap());
    expect::<Bgv>("modulus switch", &params, rounding, |b| b.server.drop_to(&b.zero(), 0).unwrap());
    expect::<Bgv>("switched product", &params, rounding, |b| {
        let c = b.server.mul_relin(&b.zero(), &b.zero()).unwrap();
        if c.level() == 2 { b.server.drop_to(&c, 1).unwrap() } else { c }
    });
    let rotated = rounding + sketch.switching(1).variance() + rounding;
    expect::<Bgv>("rotation", &params, rotated, |b| {
        b.server.rotate_rows(&b.server.drop_to(&b.zero(), 1).unwrap(), 1).unwrap()
    });
    expect::<Bfv>("sum", &params, 2.0 * fresh, |b| b.server.add(&b.zero(), &b.zero()).unwrap());
}
