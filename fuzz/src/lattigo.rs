//! Objects of Lattigo: every reader on any bytes. No panic, an error in words, and keys that are accepted are written again as
//! the same bytes.

use super::mutation::{self, Random};
use std::sync::OnceLock;
use sudare_exact::IntegerParams;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_he::ckks;
use sudare_lattigo::{Claim, Exchange, LattigoError, Noise, params};
use sudare_rlwe::KeyId;
use sudare_rlwe::security::Security;

const KEY: KeyId = KeyId([7; 16]);

macro_rules! files {
    ($($name:literal)+) => { [$(include_bytes!(concat!("../../crates/lattigo/tests/data/", $name)).as_slice()),+] };
}

const FILES: [&[u8]; 9] = files!(
    "ckks/params.json" "ckks/secret" "ckks/public" "ckks/keys" "ckks/x.ct" "ckks/x.pt"
    "exact/params.json" "exact/bfv-y.ct" "exact/x.pt"
);

fn world() -> &'static (Exchange<ckks::Params>, Exchange<IntegerParams>) {
    static WORLD: OnceLock<(Exchange<ckks::Params>, Exchange<IntegerParams>)> = OnceLock::new();
    WORLD.get_or_init(|| {
        let ckks = params::ckks_from_json(FILES[0], Security::Insecure).expect("the parameters are read");
        let exact = params::integer_from_json(FILES[6], Security::Insecure).expect("the parameters are read");
        (Exchange::new(ckks).expect("they are exchanged"), Exchange::new(exact).expect("they are exchanged"))
    })
}

/// What Lattigo wrote.
pub fn seeds() -> Vec<Vec<u8>> {
    FILES.map(<[u8]>::to_vec).into()
}

/// Changes bytes.
pub fn mutate(random: &mut Random, data: &mut Vec<u8>, other: &[u8]) {
    mutation::bytes(random, data, other);
}

/// How many readers take the bytes.
pub fn check(data: &[u8]) -> usize {
    let (ckks, exact) = world();
    let claim = Claim { bound: 1.0, noise: Noise::Bound(1e6) };
    // Parameters are short; longer texts would ask for many primes.
    let small = data.len() < 1000;
    let same = |written: Result<Vec<u8>, LattigoError>| assert!(written.expect("what was read is written") == data);
    let results = [
        ckks.read_secret_key(KEY, data).map(|key| same(ckks.write_secret_key(&key).map(|bytes| bytes.to_vec()))),
        ckks.read_relin_key(data).map(|key| same(ckks.write_relin_key(&key))),
        ckks.read_galois_key(data).map(|key| same(ckks.write_galois_key(&key))),
        ckks.read_public_key(KEY, data).map(drop),
        ckks.read_eval_keys(KEY, data).map(drop),
        ckks.read_ciphertext(KEY, data, claim).map(drop),
        ckks.read_plaintext(data, 1.0).map(drop),
        exact.read_ciphertext::<Bgv>(KEY, data, claim.noise).map(drop),
        exact.read_ciphertext::<Bfv>(KEY, data, claim.noise).map(drop),
        exact.read_plaintext(data).map(drop),
        if small { params::ckks_from_json(data, Security::Insecure).map(drop) } else { Ok(()) },
        if small { params::integer_from_json(data, Security::Insecure).map(drop) } else { Ok(()) },
    ];
    let skipped = if small { 0 } else { 2 };
    results.into_iter().filter_map(|result| result.map_err(in_words).ok()).count() - skipped
}

fn in_words(error: LattigoError) {
    let words = error.to_string();
    assert!((1..1000).contains(&words.len()) && !words.contains(char::is_control), "{words:?}");
}
