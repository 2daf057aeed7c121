//! Keys of a refresh that travelled.

use super::World;
use std::path::PathBuf;
use sudare_exact::ExactError;
use sudare_exact::bgv::Bgv;
use sudare_exact::bgv::{Ciphertext, Decryptor, Encryptor};
use sudare_exact::refresh::{RefreshKeys, RefreshLiteral, RefreshParams, Refresher};
use sudare_exact::{Encoder, Packing, Wrap};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::SecretKey;
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::wire::{Part, Wire, WireError, reseal_for_tests, secret_key_from_bytes, secret_key_to_bytes};
use sudare_testkit::Random;

fn set(change: impl Fn(&mut RefreshLiteral)) -> RefreshParams {
    let mut literal = RefreshLiteral::x15().insecure(9).unwrap();
    change(&mut literal);
    literal.build().unwrap()
}

#[test]
fn keys_that_travelled_refresh_alike() {
    for literal in [RefreshLiteral::x15(), RefreshLiteral::x16()] {
        let w = World::small(literal);
        let keys = RefreshKeys::generate(&w.secret, &w.set).unwrap();
        let bytes = keys.to_bytes().unwrap();
        assert_eq!(bytes.len() as u64, keys.wire_bytes().unwrap());
        let again = RefreshKeys::read_from(&w.set, &bytes[..]).unwrap();
        assert!(again.id() == keys.id() && again.to_bytes().unwrap() == bytes);
        let x = w.encrypt::<Bgv>(&w.random(&mut Random(3)), w.set.input().0);
        let [here, there] = [keys, again].map(|k| Refresher::new(k, None).unwrap().refresh(&x).unwrap());
        assert!(here.to_bytes().unwrap() == there.to_bytes().unwrap());
    }
}

#[test]
fn other_sets_keys_and_changed_bytes_are_refused() {
    let params = set(|_| ());
    let secret = SecretKey::generate(params.params()).unwrap();
    let bytes = RefreshKeys::generate(&secret, &params).unwrap().to_bytes().unwrap();
    // The same ring and primes, but for the sparse key's; the same primes and another t; other stages.
    let gate = set(|l| l.gate_bits = vec![46]);
    assert_eq!(params.params().hash(), gate.params().hash());
    assert!(matches!(RefreshKeys::from_bytes(&gate, &bytes), Err(WireError::WrongParameters { .. })));
    let t = set(|l| l.t = 12289);
    let refused = RefreshKeys::from_bytes(&t, &bytes).map(|_| ()).unwrap_err();
    assert_eq!(
        refused,
        ExactError::Rlwe(RlweError::WrongPlainModulus { what: "the file", found: 65537, expected: 12289 }).into()
    );
    let stages = set(|l| l.cts = vec![3, 3, 2]);
    assert!(matches!(RefreshKeys::from_bytes(&stages, &bytes), Err(WireError::Corrupt { .. })));
    assert!(RefreshKeys::from_bytes(&params, &bytes[..bytes.len() - 1]).is_err());
    // Bytes of the header matter, with its checksum made right, and so does one of a segment.
    for at in (0..bytes.len().min(4096 - 32)).step_by(29).chain([bytes.len() - 5]) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(RefreshKeys::from_bytes(&params, &changed).is_err(), "byte {at}");
        reseal_for_tests(&mut changed);
        if let Ok(read) = RefreshKeys::from_bytes(&params, &changed) {
            assert!(read.to_bytes().unwrap() == changed, "byte {at}");
        }
    }
    let mut cut = bytes;
    let last = cut.len() - 1;
    cut[last] ^= 0x80;
    let found = RefreshKeys::from_bytes(&params, &cut);
    assert!(matches!(found, Err(WireError::Checksum { part: Part::Segment(_), .. })), "{found:?}");
}

/// A set with few keys.
fn golden_set() -> RefreshParams {
    let params = ParamsLiteral {
        log_n: 9,
        q_bits: vec![44, 42, 43, 43, 30, 43, 43, 43, 46, 46],
        p_bits: vec![48; 9],
        digit_limbs: 10,
        secret: SecretDistribution::Ternary,
        security: Security::Insecure,
    };
    let (t, base, stc, cts, weight, gate_bits, hoisted) = (12289, 1, vec![8], vec![8], 4, vec![45], 1);
    RefreshLiteral { params, t, base, stc, cts, weight, gate_bits, hoisted }.build().unwrap()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v1/refresh_{name}.bin"))
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap()
}

fn golden_values(set: &RefreshParams) -> Vec<u64> {
    Random(11).words(set.params().t(), set.params().slots())
}

/// Makes the files, once for a format version: `cargo test -p sudare-he --test it -- --ignored refresh`.
#[test]
#[ignore = "writes the golden files of this format version"]
fn write_golden_files() {
    let set = golden_set();
    let secret = SecretKey::generate(set.params()).unwrap();
    let plain = Encoder::new(set.params()).encode_unsigned(&golden_values(&set), Packing::Slots, Wrap::Refuse).unwrap();
    let low = Encryptor::with_secret_key(set.params(), &secret).unwrap().encrypt_at(&plain, set.input().0).unwrap();
    std::fs::write(path("secret_key"), secret_key_to_bytes(&secret).unwrap()).unwrap();
    std::fs::write(path("ciphertext"), low.to_bytes().unwrap()).unwrap();
    std::fs::write(path("keys"), RefreshKeys::generate(&secret, &set).unwrap().to_bytes().unwrap()).unwrap();
}

/// The stored keys load, are written again byte by byte, and still refresh.
#[test]
fn golden_files_load_and_mean_what_they_meant() {
    let set = golden_set();
    let keys = RefreshKeys::from_bytes(&set, &file("keys")).unwrap();
    assert!(keys.to_bytes().unwrap() == file("keys"));
    let secret = secret_key_from_bytes(set.params(), &file("secret_key")).unwrap();
    let low = Ciphertext::from_bytes(set.params(), &file("ciphertext")).unwrap();
    let fresh = Refresher::new(keys, None).unwrap().refresh(&low).unwrap();
    let plain = Decryptor::new(set.params(), &secret).unwrap().decrypt(&fresh).unwrap();
    let values = Encoder::new(set.params()).decode_unsigned(&plain, Packing::Slots).unwrap();
    assert_eq!(values, golden_values(&set));
}
