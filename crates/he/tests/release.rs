//! Key recovery from shown decryptions (Li–Micciancio, ePrint 2020/1533): it works on private
//! decryptions and fails on those for release.

use sudare_he::ckks::{Ciphertext, Decryptor, EncodeAt, Encoder, Encryptor, Plaintext, ReleasePolicy};
use sudare_he::keys::SecretKey;
use sudare_he::params::{Params, ParamsLiteral};
use sudare_he::ring::{Eval, Poly};
use sudare_he::security::{SecretDistribution, Security};

fn params() -> Params {
    // One 61-bit prime; the scale leaves room for the flood and double precision keeps the error.
    ParamsLiteral {
        log_n: 9,
        q_bits: vec![61],
        p_bits: vec![],
        digit_limbs: 1,
        log_scale: 45,
        secret: SecretDistribution::Ternary,
        security: Security::Insecure,
    }
    .build()
    .unwrap()
}

/// The attack: encode what was shown again, and solve c_0 + c_1·s = m + e for s.
fn recover(params: &Params, ciphertext: &Ciphertext, shown: &[num_complex::Complex64]) -> Vec<i64> {
    let at = EncodeAt { level: 0, scale: ciphertext.scale(), max_abs: 4.0 };
    let message = Encoder::new(params).encode_complex(shown, at).unwrap();
    let mut s: Poly<Eval> = message.poly().sub(&ciphertext.parts()[0]);
    let q = *s.basis().limb(0).modulus();
    for (x, a) in s.limb_mut(0).iter_mut().zip(ciphertext.parts()[1].limb(0)) {
        *x = q.mul(*x, q.inv(*a).unwrap_or(0));
    }
    s.into_coeff().limb(0).iter().map(|x| q.center(*x)).collect()
}

fn shown(params: &Params, plaintext: &Plaintext) -> Vec<num_complex::Complex64> {
    Encoder::new(params).decode_complex(plaintext).unwrap()
}

#[test]
fn the_attack_needs_a_private_decryption() {
    let params = params();
    let secret = SecretKey::generate(&params).unwrap();
    let encryptor = Encryptor::with_secret_key(&secret).unwrap();
    let decryptor = Decryptor::new(&secret);
    let message = Encoder::new(&params).encode(&[0.5, -0.25, 0.125], 1.0).unwrap();
    let policy = ReleasePolicy::new(1000, 20);
    let mut recovered = 0;
    for _ in 0..1000 {
        let ciphertext = encryptor.encrypt(&message).unwrap();
        let private = shown(&params, &decryptor.decrypt(&ciphertext).unwrap());
        recovered += usize::from(recover(&params, &ciphertext, &private) == secret.coefficients());
        let released = shown(&params, &decryptor.decrypt_for_release(&ciphertext, &policy).unwrap());
        assert!((released[0].re - 0.5).abs() < 0.05, "the message survives the flood");
        assert_ne!(recover(&params, &ciphertext, &released), secret.coefficients());
    }
    assert!(recovered > 990, "the attack is real: it recovered the key {recovered} times of 1000");
    assert_eq!(policy.left(), 0);
}

#[test]
fn the_flood_may_be_wider_than_a_word() {
    // A scale of 2^100: noise of some 2^80 is right, and wider than any integer type in use.
    let params = ParamsLiteral {
        log_n: 10,
        q_bits: vec![60, 60],
        p_bits: vec![],
        digit_limbs: 1,
        log_scale: 49,
        secret: SecretDistribution::Ternary,
        security: Security::Insecure,
    }
    .build()
    .unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    let at = EncodeAt { level: 1, scale: 2f64.powi(100), max_abs: 1.0 };
    let values: Vec<f64> = (0..params.slots()).map(|i| (i as f64 * 0.1).sin()).collect();
    let message = Encoder::new(&params).encode_at(&values, at).unwrap();
    let ciphertext = Encryptor::with_secret_key(&secret).unwrap().encrypt(&message).unwrap();
    // σ = √12·2^(ν/2)·B: ν = 70 bits over the static bound.
    let plain = Decryptor::new(&secret).decrypt_for_release(&ciphertext, &ReleasePolicy::new(1, 70)).unwrap();
    let shown = Encoder::new(&params).decode(&plain).unwrap();
    let spread = (shown.iter().zip(&values).map(|(x, y)| (x - y).powi(2)).sum::<f64>() / values.len() as f64).sqrt();
    let deviation = 12f64.sqrt() * 2f64.powi(35) * ciphertext.noise() / ciphertext.scale();
    // A slot's real part gathers N/2 coefficients' worth of variance.
    let wanted = deviation * (params.degree() as f64 / 2.0).sqrt();
    assert!((spread / wanted - 1.0).abs() < 0.2, "{spread:e} {wanted:e}");
}
