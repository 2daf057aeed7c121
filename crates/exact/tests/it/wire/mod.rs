//! Objects on the wire: round trips, golden files, hostile bytes.

#[path = "../../../../rlwe/tests/support/edits.rs"]
mod edits;
mod fields;

use super::world;
use std::path::PathBuf;
use sudare_exact::ExactError;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::plan::EXACT;
use sudare_exact::{
    Ciphertext, Decryptor, Encoder, Encryptor, Evaluator, IntegerParams, Packing, Plaintext, Scheme, Wrap,
    integer_params_from_bytes, integer_params_to_bytes,
};
use sudare_ring::random::{Entropy, Seed};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::wire::{
    ObjectType, Wire, WireError, peek, reseal_for_tests, secret_key_from_bytes, secret_key_to_bytes,
};

pub const T: u64 = 12289;

/// The scheme's own refusal of what was read.
pub fn refusal(error: &WireError) -> Option<&ExactError> {
    match error {
        WireError::Object(refused) => refused.downcast_ref(),
        _ => None,
    }
}

pub struct Objects {
    pub params: IntegerParams,
    pub secret: SecretKey,
    pub files: Vec<(&'static str, Vec<u8>)>,
}

fn literal() -> ParamsLiteral {
    world::literal(9, &[45, 40], &[46], 1)
}

fn values() -> Vec<u64> {
    (0..512).map(|i| (i * i * 37) % T).collect()
}

fn ciphertexts<S: Scheme>(params: &IntegerParams, secret: &SecretKey) -> [Vec<u8>; 3] {
    let fixed = |number: u8| Entropy::fixed(Seed::from_bytes([number; 32]));
    let generator = KeyGenerator::new(secret).unwrap().with_entropy(fixed(2));
    let plain = Encoder::new(params).encode_unsigned(&values(), Packing::Slots, Wrap::Refuse).unwrap();
    let public = generator.public_key().unwrap();
    let by_secret = Encryptor::<S>::with_secret_key(params, secret).unwrap();
    let by_public = Encryptor::<S>::with_public_key(params, &public).unwrap();
    let (seeded, whole) = (
        by_secret.with_entropy(fixed(3)).encrypt(&plain).unwrap(),
        by_public.with_entropy(fixed(4)).encrypt(&plain).unwrap(),
    );
    let server = Evaluator::<S>::new(params, generator.eval_keys(None, &[]).unwrap()).unwrap();
    let product = server.mul(&seeded, &seeded).unwrap();
    let low = server.drop_to(&whole, 0).unwrap();
    [seeded, product, low].map(|c| c.to_bytes().unwrap())
}

impl Objects {
    /// Under the stored key: when the files were made, a seed stood for another key.
    pub fn new() -> Self {
        let params = literal().build(EXACT).unwrap();
        let bytes = std::fs::read(path("integer_secret_key")).unwrap();
        Self::under(secret_key_from_bytes(&params, &bytes).unwrap())
    }

    fn under(secret: SecretKey) -> Self {
        let params = IntegerParams::new(secret.params(), T).unwrap();
        let plain = Encoder::new(&params).encode_unsigned(&values(), Packing::Coefficients, Wrap::Refuse).unwrap();
        let [seeded, product, low] = ciphertexts::<Bfv>(&params, &secret);
        let [bgv_seeded, bgv_product, bgv_low] = ciphertexts::<Bgv>(&params, &secret);
        let files = vec![
            ("integer_secret_key", secret_key_to_bytes(&secret).unwrap().to_vec()),
            ("integer_params", integer_params_to_bytes(&params).unwrap()),
            ("integer_plaintext", plain.to_bytes().unwrap()),
            ("bfv_seeded", seeded),
            ("bfv_product", product),
            ("bfv_low", low),
            ("bgv_seeded", bgv_seeded),
            ("bgv_product", bgv_product),
            ("bgv_low", bgv_low),
        ];
        Self { params, secret, files }
    }
}

pub fn reread(params: &IntegerParams, name: &str, bytes: &[u8]) -> Result<Vec<u8>, WireError> {
    match name {
        "integer_params" => {
            let stored = integer_params_from_bytes(bytes)?;
            if stored.params.literal != *params.rlwe().literal() {
                return Err(WireError::Corrupt { what: "another set: not built in a test" });
            }
            integer_params_to_bytes(&stored.build()?)
        }
        "integer_secret_key" => Ok(secret_key_to_bytes(&secret_key_from_bytes(params.rlwe(), bytes)?)?.to_vec()),
        "integer_plaintext" => Plaintext::from_bytes(params, bytes)?.to_bytes(),
        _ if name.starts_with("bfv") => Ciphertext::<Bfv>::from_bytes(params, bytes)?.to_bytes(),
        _ => Ciphertext::<Bgv>::from_bytes(params, bytes)?.to_bytes(),
    }
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v1/{name}.bin"))
}

/// Makes the files, once for a format version: `cargo test -p sudare-exact --test it -- --ignored`.
#[test]
#[ignore = "writes the golden files of this format version"]
fn write_golden_files() {
    let params = literal().build(EXACT).unwrap();
    let secret = SecretKey::from_seed(&params, &Seed::from_bytes([1; 32])).unwrap();
    for (name, bytes) in Objects::under(secret).files {
        std::fs::write(path(name), bytes).unwrap();
    }
}

#[test]
fn golden_files_load_and_mean_what_they_meant() {
    let o = Objects::new();
    for (name, bytes) in &o.files {
        let file = std::fs::read(path(name)).unwrap();
        assert!(file == *bytes, "{name}: the same seeds give the same file");
        assert!(reread(&o.params, name, &file).unwrap() == file, "{name}");
    }
    fn opens<S: Scheme>(o: &Objects, name: &str) {
        let encoder = Encoder::new(&o.params);
        let bytes = std::fs::read(path(name)).unwrap();
        let c = Ciphertext::<S>::from_bytes(&o.params, &bytes).unwrap();
        let plain = Decryptor::new(&o.params, &o.secret).unwrap().decrypt(&c).unwrap();
        let wanted: Vec<u64> = match name.ends_with("product") {
            true => values().iter().map(|x| x * x % T).collect(),
            false => values(),
        };
        assert_eq!(encoder.decode_unsigned(&plain, Packing::Slots).unwrap(), wanted, "{name}");
    }
    ["bfv_seeded", "bfv_product", "bfv_low"].iter().for_each(|name| opens::<Bfv>(&o, name));
    ["bgv_seeded", "bgv_product", "bgv_low"].iter().for_each(|name| opens::<Bgv>(&o, name));
    let plain = Plaintext::from_bytes(&o.params, &std::fs::read(path("integer_plaintext")).unwrap()).unwrap();
    assert_eq!(plain.coefficients(), values());
}

#[test]
fn every_flipped_byte_and_every_cut_is_an_error() {
    let o = Objects::new();
    for (name, mut bytes) in o.files {
        // Both schemes have the same reader: every byte of the one, every seventh of the other.
        let step = if name.starts_with("bgv") || name.ends_with("product") { 7 } else { 1 };
        for i in (0..bytes.len()).step_by(step) {
            let bit = 1 << (i % 8);
            bytes[i] ^= bit;
            assert!(reread(&o.params, name, &bytes).is_err(), "{name}, byte {i}");
            bytes[i] ^= bit;
            let error = reread(&o.params, name, &bytes[..i]).unwrap_err();
            assert!(matches!(error, WireError::Truncated { .. }), "{name}: {error}");
        }
        let longer = [&bytes[..], &[0]].concat();
        let trailing = WireError::Trailing { expected: bytes.len() as u64 };
        assert_eq!(reread(&o.params, name, &longer).unwrap_err(), trailing);
    }
}

#[test]
fn forged_fields_are_refused() {
    let o = Objects::new();
    let file = |name: &str| o.files.iter().find(|(n, _)| *n == name).unwrap().1.clone();
    let forged = |name: &str, at: usize, with: &[u8]| {
        let mut bytes = file(name);
        bytes[at..at + with.len()].copy_from_slice(with);
        reseal_for_tests(&mut bytes);
        reread(&o.params, name, &bytes).unwrap_err()
    };
    let refused = |error: &WireError| matches!(error, WireError::Rlwe(RlweError::Parameters { .. }));
    // Level, scale, noise.
    assert!(matches!(forged("bfv_low", 80, &7u32.to_le_bytes()), WireError::Oversize { found: 7, limit: 1, .. }));
    assert!(matches!(forged("bfv_low", 88, &1f64.to_le_bytes()), WireError::Corrupt { .. }));
    assert!(matches!(forged("bfv_low", 104, &(-0f64).to_le_bytes()), WireError::Corrupt { .. }));
    assert!(refused(&forged("bfv_low", 104, &f64::NAN.to_le_bytes())));
    let huge = forged("bfv_low", 104, &1e300f64.to_le_bytes());
    assert!(matches!(huge, WireError::Rlwe(RlweError::NoBudget { .. })), "{huge}");
    // Plaintext modulus, factor, scheme, parts, seed flag.
    let modulus = forged("bfv_low", 128, &65537u64.to_le_bytes());
    assert!(matches!(modulus, WireError::Rlwe(RlweError::WrongPlainModulus { found: 65537, expected: T, .. })));
    for factor in [0, T, u64::MAX] {
        assert!(refused(&forged("bgv_low", 136, &factor.to_le_bytes())), "{factor}");
    }
    assert!(matches!(forged("bfv_low", 144, &1u32.to_le_bytes()), WireError::Corrupt { .. }));
    for parts in [0u32, 1, 3, 4, u32::MAX] {
        assert!(matches!(forged("bfv_low", 148, &parts.to_le_bytes()), WireError::Corrupt { .. }));
    }
    assert!(matches!(forged("bfv_low", 152, &1u32.to_le_bytes()), WireError::Corrupt { .. }));
    assert!(matches!(forged("bfv_low", 156, &1u32.to_le_bytes()), WireError::Corrupt { .. }));
    assert!(matches!(forged("integer_params", 128, &1u64.to_le_bytes()), WireError::Oversize { .. }));
    assert!(matches!(forged("integer_params", 128, &u64::MAX.to_le_bytes()), WireError::Oversize { .. }));
    // A coefficient that is not below t, under a checksum of its own.
    let mut bytes = file("integer_plaintext");
    let range = peek(bytes.as_slice()).unwrap().segment_ranges().next().unwrap();
    bytes[range.start as usize + 2..range.start as usize + 4].copy_from_slice(&(T as u16).to_le_bytes());
    reseal_for_tests(&mut bytes);
    let error = Plaintext::from_bytes(&o.params, &bytes).unwrap_err();
    assert!(matches!(error, WireError::Coefficient { index: 1, .. } | WireError::Checksum { .. }), "{error}");
    let (found, expected) = (ObjectType::IntegerPlaintext, ObjectType::IntegerCiphertext);
    let error = Ciphertext::<Bfv>::from_bytes(&o.params, &file("integer_plaintext")).unwrap_err();
    assert_eq!(error, WireError::WrongType { found, expected });
}
