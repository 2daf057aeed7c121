//! What cannot be exchanged, and what is no object: a typed error that says so.

use crate::answer::THEIRS;
use crate::world::{ckks, data, exact};
use sudare_exact::bgv::Bgv;
use sudare_exact::{ExactError, IntegerParams};
use sudare_he::{HeError, ckks as he};
use sudare_lattigo::{Claim, Exchange, LattigoError, Noise, Packing, params};
use sudare_ring::RingError;
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::params::{ParamsLiteral, SchemeTag};
use sudare_rlwe::security::{SecretDistribution, Security};

const FRESH: Claim = Claim { bound: 1.5, noise: Noise::FreshSecretKey };

fn literal() -> ParamsLiteral {
    ParamsLiteral {
        log_n: 9,
        q_bits: vec![45; 3],
        p_bits: vec![46; 2],
        digit_limbs: 2,
        secret: SecretDistribution::Ternary,
        security: Security::Insecure,
    }
}

#[test]
fn parameters_that_are_none_here() {
    let json = String::from_utf8(data("ckks/params.json").unwrap()).unwrap();
    let read = |json: &str| params::ckks_from_json(json.as_bytes(), Security::Insecure);
    let changed = |from: &str, to: &str| {
        assert!(json.contains(from), "{from}");
        read(&json.replace(from, to)).unwrap_err()
    };
    assert!(read(&json).is_ok());
    // A prime of 62 bits.
    let wide = RingError::ModulusRange { value: 2_305_843_009_213_726_721 };
    assert_eq!(changed("1125899906856961", "2305843009213726721"), LattigoError::Rlwe(wide.into()));
    assert!(matches!(changed("1125899906856961", "1125899906856963"), LattigoError::Rlwe(RlweError::Ring(_))));
    assert!(matches!(changed("\"LogN\":9", "\"LogN\":8"), LattigoError::Rlwe(RlweError::Parameters { .. })));
    assert!(matches!(changed("\"LogN\":9", "\"LogN\":18"), LattigoError::Rlwe(RlweError::Parameters { .. })));
    assert!(matches!(changed("Standard", "ConjugateInvariant"), LattigoError::Unsupported { .. }));
    assert!(matches!(changed("3.2", "6.4"), LattigoError::Unsupported { .. }));
    assert!(matches!(changed("3.2", "1.0"), LattigoError::Unsupported { .. }));
    assert!(matches!(changed("0.6666666666666666", "0.5"), LattigoError::Unsupported { .. }));
    assert!(matches!(changed("\"Q\":", "\"LogQ\":[45],\"Q\":"), LattigoError::Unsupported { .. }));
    assert!(matches!(changed("\"LogDefaultScale\":40", "\"LogDefaultScale\":0"), LattigoError::Rlwe(_)));
    assert!(matches!(changed(",\"LogDefaultScale\":40", ""), LattigoError::Text { .. }));
    assert!(matches!(changed("\"LogN\"", "\"LogM\""), LattigoError::Text { .. }));
    let claimed = params::ckks_from_json(json.as_bytes(), Security::Bits128);
    assert!(matches!(claimed, Err(LattigoError::Rlwe(RlweError::Insecure { .. }))));
    let integers = params::integer_from_json(json.as_bytes(), Security::Insecure);
    assert!(matches!(integers, Err(LattigoError::Text { .. })));
    let gaussian = ParamsLiteral { secret: SecretDistribution::Gaussian, ..literal() };
    let gaussian = he::ParamsLiteral { rlwe: gaussian, log_scale: 30 }.build().unwrap();
    assert!(matches!(params::ckks_to_json(&gaussian), Err(LattigoError::Unsupported { .. })));
}

#[test]
fn digits_that_are_not_theirs() {
    let params = ParamsLiteral { digit_limbs: 1, ..literal() };
    let params = he::ParamsLiteral { rlwe: params, log_scale: 30 }.build().unwrap();
    let exchange = Exchange::new(params.clone()).unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    let key = KeyGenerator::new(&secret).unwrap().relin_key(2).unwrap();
    assert!(matches!(exchange.write_relin_key(&key), Err(LattigoError::Unsupported { .. })));
    // Everything else of the set is exchanged.
    assert!(exchange.read_secret_key(secret.id(), &exchange.write_secret_key(&secret).unwrap()).is_ok());
}

#[test]
fn plaintext_moduli_that_are_not_theirs() {
    let rlwe = literal().build(SchemeTag(1)).unwrap();
    for t in [256, 1 << 16, 255 * 257, 7] {
        let params = IntegerParams::new(&rlwe, t).unwrap();
        assert!(matches!(Exchange::new(params), Err(LattigoError::Unsupported { .. })), "{t}");
    }
}

#[test]
fn bounds_have_to_be_stated() {
    let (exchange, x) = (ckks(), data("ckks/x.ct").unwrap());
    let read = |claim| exchange.read_ciphertext(THEIRS, &x, claim).map(|_| ());
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(read(Claim { bound: wrong, ..FRESH }), Err(LattigoError::Claim { what: "bound", .. })));
        let noise = Claim { noise: Noise::Bound(wrong), ..FRESH };
        assert!(matches!(read(noise), Err(LattigoError::Claim { what: "noise", .. })));
    }
    assert!(matches!(read(Claim { bound: 1e30, ..FRESH }), Err(LattigoError::Ckks(HeError::TooLarge { .. }))));
    let (exchange, x) = (exact(), data("exact/x.ct").unwrap());
    let read = |noise| exchange.read_ciphertext::<Bgv>(THEIRS, &x, noise).map(|_| ());
    assert!(matches!(read(Noise::Bound(0.0)), Err(LattigoError::Exact(ExactError::NoiseTooSmall { .. }))));
    assert!(matches!(read(Noise::Bound(1e40)), Err(LattigoError::Rlwe(RlweError::NoBudget { .. }))));
    assert!(matches!(read(Noise::Bound(f64::NAN)), Err(LattigoError::Claim { .. })));
}

#[test]
fn objects_of_another_kind_or_set() {
    let (ckks, exact) = (ckks(), exact());
    let [x, y] = [data("ckks/x.ct").unwrap(), data("exact/x.ct").unwrap()];
    // CKKS metadata have no plaintext modulus; the primes are others.
    assert!(exact.read_ciphertext::<Bgv>(THEIRS, &x, Noise::FreshSecretKey).is_err());
    assert!(ckks.read_ciphertext(THEIRS, &y, FRESH).is_err());
    let keys = data("ckks/keys").unwrap();
    assert!(ckks.read_secret_key(THEIRS, &data("ckks/public").unwrap()).is_err());
    assert!(ckks.read_public_key(THEIRS, &data("ckks/secret").unwrap()).is_err());
    assert!(ckks.read_relin_key(&keys).is_err());
    assert!(ckks.read_plaintext(&x, 1.5).is_err());
    // Three parts are not fresh.
    let (a, slots) = ckks.read_ciphertext(THEIRS, &x, FRESH).unwrap();
    let server = he::Evaluator::new(ckks.params(), ckks.read_eval_keys(THEIRS, &keys).unwrap()).unwrap();
    let product = server.mul(&a, &a).unwrap();
    let bytes = ckks.write_ciphertext(&product, slots).unwrap();
    assert!(matches!(ckks.read_ciphertext(THEIRS, &bytes, FRESH), Err(LattigoError::Unsupported { .. })));
    let claim = Claim { bound: product.bound(), noise: Noise::Bound(product.noise()) };
    assert_eq!(ckks.read_ciphertext(THEIRS, &bytes, claim).unwrap().0.parts().len(), 3);
    // A compressed key, base-two digits, and slots that are not there.
    let at = 1;
    let mut changed = keys.clone();
    changed[at..at + 8].copy_from_slice(&10u64.to_le_bytes());
    assert!(matches!(ckks.read_eval_keys(THEIRS, &changed), Err(LattigoError::Unsupported { .. })));
    let mut changed = keys;
    changed[at + 24..at + 32].copy_from_slice(&1u64.to_le_bytes());
    assert!(matches!(ckks.read_eval_keys(THEIRS, &changed), Err(LattigoError::Unsupported { .. })));
    let many = Packing::Slots { log_rows: 0, log_columns: 9 };
    assert!(matches!(ckks.write_ciphertext(&a, many), Err(LattigoError::Unsupported { .. })));
    // A secret whose primes do not agree.
    let mut secret = data("ckks/secret").unwrap();
    let last = secret.len() - 8;
    secret[last..].copy_from_slice(&[0; 8]);
    assert!(matches!(ckks.read_secret_key(THEIRS, &secret), Err(LattigoError::Rlwe(RlweError::Parameters { .. }))));
    // A residue of its modulus.
    let mut large = x;
    let last = large.len() - 8;
    large[last..].copy_from_slice(&ckks.params().q().primes().last().unwrap().to_le_bytes());
    let error = ckks.read_ciphertext(THEIRS, &large, FRESH).unwrap_err();
    assert!(matches!(error, LattigoError::Coefficient { index: 511, .. }), "{error}");
}
