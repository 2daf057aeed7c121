//! Files of the first format version load forever and are written again byte by byte.

use super::objects::{Objects, literal, reread, values};
use std::path::PathBuf;
use sudare_he::ckks::{Ciphertext, Decryptor, Encoder, Evaluator, Params, Plaintext};
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, SecretKey};
use sudare_rlwe::wire::{Bundle, Wire, params_from_bytes, secret_key_from_bytes};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v1/{name}.bin"))
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap()
}

/// Makes the files, once for a format version: `cargo test -p sudare-he --test wire -- --ignored`.
#[test]
#[ignore = "writes the golden files of this format version"]
fn write_golden_files() {
    for (name, bytes) in Objects::new(&literal(), 1).files() {
        std::fs::write(path(name), bytes).unwrap();
    }
}

/// The stored key: when the files were made, a seed stood for another key.
fn stored_key() -> SecretKey {
    secret_key_from_bytes(&literal().build().unwrap(), &file("secret_key")).unwrap()
}

#[test]
fn the_same_seeds_give_the_same_files() {
    for (name, bytes) in Objects::under(stored_key(), 1).files() {
        assert!(file(name) == bytes, "{name}");
    }
}

#[test]
fn golden_files_load_and_mean_what_they_meant() {
    let stored = params_from_bytes(&file("params")).unwrap();
    assert_eq!(stored.literal, literal().rlwe);
    let params = Params::of(&stored.build().unwrap()).unwrap();
    for (name, _) in Objects::under(stored_key(), 1).files() {
        assert!(reread(&params, name, &file(name)).unwrap() == file(name), "{name}");
    }

    let secret = secret_key_from_bytes(&params, &file("secret_key")).unwrap();
    let encoder = Encoder::new(&params);
    let expect = |found: &[f64], wanted: &[f64]| {
        let error = found.iter().zip(wanted).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        assert!(error < 1e-2, "{error}");
    };
    let decrypt = |c: &Ciphertext| encoder.decode_coefficients(&Decryptor::new(&secret).decrypt(c).unwrap()).unwrap();
    let load = |name: &str| Ciphertext::from_bytes(&params, &file(name)).unwrap();
    let plaintext = Plaintext::from_bytes(&params, &file("plaintext")).unwrap();
    expect(&encoder.decode_coefficients(&plaintext).unwrap(), &values());
    expect(&decrypt(&load("ciphertext_seeded")), &values());
    expect(&decrypt(&load("ciphertext")), &values());
    let bundle = Bundle::<Ciphertext>::from_bytes(&params, &file("bundle")).unwrap();
    assert_eq!(bundle.application(), b"an application's header");
    bundle.ciphertexts().iter().for_each(|c| expect(&decrypt(c), &values()));
    assert_eq!(bundle.ciphertexts()[1].level(), 0);

    // The keys still switch: the product of the stored operands, relinearised by the stored key.
    let server = Evaluator::new(&params, EvalKeys::from_bytes(&params, &file("eval_keys")).unwrap()).unwrap();
    let product = load("ciphertext_product");
    let square: Vec<f64> = (0..512).map(|k| negacyclic(&values(), k)).collect();
    expect(&decrypt(&product), &square);
    expect(&decrypt(&server.relinearize(&product).unwrap()), &square);
    expect(&decrypt(&server.conjugate(&load("ciphertext")).unwrap()), &conjugate(&values()));
    expect(&decrypt(&server.rotate(&bundle.ciphertexts()[1], 1).unwrap()), &automorphism(&values(), 5));

    // And the secret key goes with a generator of this release.
    assert_eq!(KeyGenerator::new(&secret).unwrap().public_key().unwrap().id(), load("ciphertext").key());
}

/// Coefficient `k` of the square modulo X^N + 1.
fn negacyclic(x: &[f64], k: usize) -> f64 {
    let n = x.len();
    (0..n).map(|i| if i <= k { x[i] * x[k - i] } else { -x[i] * x[n + k - i] }).sum()
}

fn automorphism(x: &[f64], g: usize) -> Vec<f64> {
    let n = x.len();
    let mut out = vec![0.0; n];
    for (i, c) in x.iter().enumerate() {
        let at = i * g % (2 * n);
        out[at % n] = if at < n { *c } else { -c };
    }
    out
}

fn conjugate(x: &[f64]) -> Vec<f64> {
    automorphism(x, 2 * x.len() - 1)
}
