//! What Lattigo wrote is what it says, and can be computed with: each step compares with plain values, and errors with the bounds
//! that ciphertexts state.

use crate::answer::{self, THEIRS};
use crate::world::{ckks, data, exact};
use num_complex::Complex64;
use sudare_exact::bgv::Bgv;
use sudare_exact::{Decryptor as ExactDecryptor, Encoder as ExactEncoder, Packing};
use sudare_he::ckks::{Decryptor, Encoder};
use sudare_lattigo::{Claim, Noise};
use sudare_rlwe::security::Security;

#[test]
fn ckks_of_lattigo() {
    let files = answer::ckks(|name| data(&format!("ckks/{name}")), Security::Insecure).unwrap();
    // What is answered under our key is read back.
    let exchange = ckks();
    let of = |name: &str| &files.iter().find(|(known, _)| known == name).unwrap().1;
    let secret = exchange.read_secret_key(THEIRS, of("secret")).unwrap();
    let claim = Claim { bound: 1.5, noise: Noise::FreshSecretKey };
    let x = exchange.read_ciphertext(THEIRS, of("x.ct"), claim).unwrap().0;
    let encoder = Encoder::new(exchange.params());
    let found = encoder.decode_complex(&Decryptor::new(&secret).decrypt(&x).unwrap()).unwrap();
    let [expected, _] = answer::values(found.len());
    let distance = |(f, e): (&Complex64, &Complex64)| (f - e).norm();
    assert!(found.iter().zip(&expected).map(distance).all(|d| d <= x.error_bound()));
    assert_eq!(of("params.json"), &data("ckks/params.json").unwrap());
}

#[test]
fn bfv_and_bgv_of_lattigo() {
    let files = answer::exact(|name| data(&format!("exact/{name}")), Security::Insecure).unwrap();
    let exchange = exact();
    let of = |name: &str| &files.iter().find(|(known, _)| known == name).unwrap().1;
    let secret = exchange.read_secret_key(THEIRS, of("secret")).unwrap();
    let y = exchange.read_ciphertext::<Bgv>(THEIRS, of("bgv-y.ct"), Noise::FreshSecretKey).unwrap().0;
    let found = ExactDecryptor::new(exchange.params(), &secret).unwrap().decrypt(&y).unwrap();
    let found = ExactEncoder::new(exchange.params()).decode_unsigned(&found, Packing::Slots).unwrap();
    assert_eq!(found, answer::integers(512, 12289)[1]);
    assert!(
        files.iter().any(|(name, _)| name == "bfv-product.ct")
            && files.iter().any(|(name, _)| name == "bgv-product.ct")
    );
    assert_eq!(of("params.json"), &data("exact/params.json").unwrap());
}

/// Their noise is under what the name of a fresh encryption stands for, and not far under: errors measured with their key.
#[test]
fn fresh_is_what_it_says() {
    let exchange = exact();
    let secret = exchange.read_secret_key(THEIRS, &data("exact/secret").unwrap()).unwrap();
    let decryptor = ExactDecryptor::<Bgv>::new(exchange.params(), &secret).unwrap();
    for (name, noise) in [("x.ct", Noise::FreshPublicKey), ("y.ct", Noise::FreshSecretKey)] {
        let read = exchange.read_ciphertext::<Bgv>(THEIRS, &data(&format!("exact/{name}")).unwrap(), noise);
        let ciphertext = read.unwrap().0;
        let (left, promised) = (decryptor.noise_budget(&ciphertext).unwrap(), ciphertext.headroom());
        assert!((promised..promised + 20.0).contains(&left), "{name}: {left} bits left, {promised} promised");
    }
}

/// A scale that is not that of BFV costs as many bits of noise as the quotient has, and not one slot.
#[test]
fn bfv_at_another_scale_is_multiplied() {
    use sudare_exact::bfv::Bfv;
    let exchange = exact();
    let secret = exchange.read_secret_key(THEIRS, &data("exact/secret").unwrap()).unwrap();
    let decryptor = ExactDecryptor::<Bfv>::new(exchange.params(), &secret).unwrap();
    let read = |name: &str| {
        let bytes = data(&format!("exact/{name}")).unwrap();
        exchange.read_ciphertext::<Bfv>(THEIRS, &bytes, Noise::FreshSecretKey).unwrap().0
    };
    let [own, other] = [read("bfv-y.ct"), read("y.ct")];
    assert_eq!(own.factor(), exchange.bfv_scale(1).unwrap());
    assert_eq!(own.factor(), other.factor());
    assert!(other.noise() > own.noise());
    assert_eq!(decryptor.decrypt(&own).unwrap(), decryptor.decrypt(&other).unwrap());
}
