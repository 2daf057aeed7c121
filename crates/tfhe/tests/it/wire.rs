//! TFHE's objects: round trips, golden files, hostile bytes, sizes.

#[path = "../../../rlwe/tests/support/edits.rs"]
mod edits;

use edits::edits;
use std::path::PathBuf;
use sudare_ring::fourier::Fourier;
use sudare_ring::random::{Entropy, Seed};
use sudare_rlwe::wire::*;
use sudare_testkit::Random;
use sudare_tfhe::array::{ArrayEvaluator, ElementType, Elementwise, EncryptedArray};
use sudare_tfhe::boolean::fhew::{FhewKey, FhewLiteral, FhewMethod};
use sudare_tfhe::circuit_bootstrap::{CircuitKey, CircuitLiteral};
use sudare_tfhe::radix::IntegerType;
use sudare_tfhe::wire::*;
use sudare_tfhe::{ClientKey, Noise, Plaintext, ServerKey, TfheLiteral, TfheParams};

/// A set of eight key bits: small files, no security.
fn literal() -> TfheLiteral {
    let small = TfheLiteral::insecure_test(Plaintext::Integer { message_bits: 2, carry_bits: 2 });
    TfheLiteral { lwe_dimension: 8, log_n: 9, unroll: 1, ..small }
}

/// The same for circuit bootstrapping and FHEW.
fn circuit_literal() -> CircuitLiteral {
    let set = CircuitLiteral::insecure_test();
    CircuitLiteral { tfhe: TfheLiteral { lwe_dimension: 16, unroll: 1, ..set.tfhe.clone() }, ..set }
}

fn fhew_literal() -> FhewLiteral {
    let set = FhewLiteral::insecure_test(FhewMethod::Automorphisms { window: 1 });
    FhewLiteral { tfhe: TfheLiteral { lwe_dimension: 8, ..set.tfhe.clone() }, ..set }
}

/// A client of this set whose entropy is fixed.
fn fixed_client(params: &TfheParams) -> ClientKey {
    let client = ClientKey::from_seed(params, &Seed::from_bytes([5; 32])).unwrap();
    client.with_entropy(Entropy::fixed(Seed::from_bytes([6; 32])))
}

fn circuit_files() -> [(&'static str, Vec<u8>); 2] {
    let params = circuit_literal().build().unwrap();
    let mut key = Vec::new();
    write_circuit_key(&CircuitKey::generate(&params, &fixed_client(params.tfhe())).unwrap(), &mut key).unwrap();
    [("circuit_params", circuit_params_to_bytes(&params).unwrap()), ("circuit_key", key)]
}

fn fhew_files() -> [(&'static str, Vec<u8>); 2] {
    let params = fhew_literal().build().unwrap();
    let mut key = Vec::new();
    write_fhew_key(&FhewKey::generate(&params, &fixed_client(params.tfhe())).unwrap(), &mut key).unwrap();
    [("fhew_params", fhew_params_to_bytes(&params).unwrap()), ("fhew_key", key)]
}

/// The stored key: when the files were made, a seed stood for another key.
fn stored_key() -> ClientKey {
    let bytes = std::fs::read(path("tfhe_client_key")).unwrap();
    tfhe_client_key_from_bytes(&literal().build().unwrap(), &bytes).unwrap()
}

fn byte() -> ElementType {
    ElementType::Integer(IntegerType::new(8, true).unwrap())
}

const VALUES: [u64; 3] = [5, 0xFE, 0x80];

fn server_bytes(key: &ServerKey) -> Vec<u8> {
    let mut out = Vec::new();
    write_tfhe_server_key(key, &mut out).unwrap();
    assert_eq!(out.len() as u64, tfhe_server_key_bytes(key).unwrap());
    out
}

struct Objects {
    client: ClientKey,
    fresh: EncryptedArray,
    server: ServerKey,
    computed: EncryptedArray,
}

impl Objects {
    fn new() -> Self {
        Self::under(stored_key())
    }

    fn under(client: ClientKey) -> Self {
        let client = client.with_entropy(Entropy::fixed(Seed::from_bytes([2; 32])));
        let fresh = client.encrypt_array(byte(), vec![3], &VALUES).unwrap();
        let server = client.server_key().unwrap();
        let one = fresh.take(vec![1], &[1]).unwrap();
        let e = server.integers().unwrap();
        let computed = e.settled(&e.elementwise(Elementwise::Add, &one, &one).unwrap()).unwrap();
        Self { client, fresh, server, computed }
    }

    fn files(&self) -> Vec<(&'static str, Vec<u8>)> {
        let params = self.client.params();
        let mut files = vec![
            ("tfhe_params", tfhe_params_to_bytes(params).unwrap()),
            ("tfhe_client_key", tfhe_client_key_to_bytes(&self.client).unwrap().to_vec()),
            ("tfhe_server_key", server_bytes(&self.server)),
            ("tfhe_array_seeded", tfhe_array_to_bytes(params, &self.fresh).unwrap()),
            ("tfhe_array", tfhe_array_to_bytes(params, &self.computed).unwrap()),
        ];
        files.extend(circuit_files().into_iter().chain(fhew_files()));
        files
    }
}

/// Reads an object by its decoder and writes it again.
fn reread(params: &TfheParams, name: &str, bytes: &[u8]) -> Result<Vec<u8>, WireError> {
    match name {
        "tfhe_params" => tfhe_params_to_bytes(&tfhe_params_from_bytes(bytes)?.build()?),
        "tfhe_client_key" => Ok(tfhe_client_key_to_bytes(&tfhe_client_key_from_bytes(params, bytes)?)?.to_vec()),
        "tfhe_server_key" => {
            let streamed = read_tfhe_server_key(params, bytes).map(|k| server_bytes(&k));
            let mapped = tfhe_server_key_from_bytes(params, bytes).map(|k| server_bytes(&k));
            assert_eq!(streamed.is_ok(), mapped.is_ok());
            mapped
        }
        "circuit_params" => circuit_params_to_bytes(&circuit_params_from_bytes(bytes)?.build()?),
        "circuit_key" => {
            let mut out = Vec::new();
            write_circuit_key(&circuit_key_from_bytes(&circuit_literal().build()?, bytes)?, &mut out).map(|()| out)
        }
        "fhew_params" => fhew_params_to_bytes(&fhew_params_from_bytes(bytes)?.build()?),
        "fhew_key" => {
            let mut out = Vec::new();
            write_fhew_key(&fhew_key_from_bytes(&fhew_literal().build()?, bytes)?, &mut out).map(|()| out)
        }
        _ => tfhe_array_to_bytes(params, &tfhe_array_from_bytes(params, bytes)?),
    }
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v1/{name}.bin"))
}

/// Makes the files that are missing, once for a format version: `cargo test -p sudare-tfhe --test wire -- --ignored`.
#[test]
#[ignore = "writes the golden files of this format version"]
fn write_golden_files() {
    let client = ClientKey::from_seed(&literal().build().unwrap(), &Seed::from_bytes([1; 32])).unwrap();
    for (name, bytes) in Objects::under(client).files().into_iter().filter(|(name, _)| !path(name).exists()) {
        std::fs::write(path(name), bytes).unwrap();
    }
}

#[test]
fn golden_files_load_and_mean_what_they_meant() {
    let file = |name: &str| std::fs::read(path(name)).unwrap();
    let stored = tfhe_params_from_bytes(&file("tfhe_params")).unwrap();
    assert_eq!(stored.literal, literal());
    let params = stored.build().unwrap();
    for (name, bytes) in Objects::new().files() {
        assert!(reread(&params, name, &file(name)).unwrap() == file(name), "{name}");
        // What was bootstrapped in floating point has the same value and other noise.
        let rounded = name == "tfhe_array" && Fourier::is_faster(params.context().limb());
        assert!(rounded || file(name) == bytes, "{name}: the same seeds give the same files");
    }
    let client = tfhe_client_key_from_bytes(&params, &file("tfhe_client_key")).unwrap();
    let server = tfhe_server_key_from_bytes(&params, &file("tfhe_server_key")).unwrap();
    let fresh = tfhe_array_from_bytes(&params, &file("tfhe_array_seeded")).unwrap();
    assert_eq!(client.decrypt_array(&fresh).unwrap(), VALUES);
    let sum = tfhe_array_from_bytes(&params, &file("tfhe_array")).unwrap();
    assert_eq!(client.decrypt_array(&sum).unwrap(), [0xFC]);
    // The stored key still bootstraps.
    let product = server.integers().unwrap().elementwise(Elementwise::Mul, &fresh, &fresh).unwrap();
    assert_eq!(client.decrypt_array(&product).unwrap(), [25, 4, 0]);
}

#[test]
fn damage_is_an_error_at_every_byte() {
    let o = Objects::new();
    let params = o.client.params();
    for (name, mut bytes) in o.files() {
        let step = bytes.len() / 400 + 1;
        for i in (0..bytes.len().min(400)).chain((400..bytes.len()).step_by(step)) {
            bytes[i] ^= 1 << (i % 8);
            assert!(reread(params, name, &bytes).is_err(), "{name}, byte {i}");
            bytes[i] ^= 1 << (i % 8);
            if i < 400 || i % 7 == 0 {
                assert!(reread(params, name, &bytes[..i]).is_err(), "{name}, cut at {i}");
            }
        }
        bytes.push(0);
        assert!(matches!(reread(params, name, &bytes), Err(WireError::Trailing { .. })), "{name}");
    }
}

#[test]
fn sealed_nonsense_is_an_error_or_an_object() {
    let o = Objects::new();
    let params = o.client.params();
    let mut random = Random(9);
    let files = o.files();
    let mut refused = 0;
    for round in 0..1500 {
        let (name, original) = &files[round % files.len()];
        let mut bytes = original.clone();
        let area = if round % 2 == 0 { bytes.len().min(300) } else { bytes.len() };
        let at = random.index(area);
        let end = bytes.len().min(at + 8);
        let edge = [0, 1, 0xFF, 1 << 31, 1 << 40, u64::MAX][random.index(6)].to_le_bytes();
        bytes[at..end].copy_from_slice(&edge[..end - at]);
        reseal_for_tests(&mut bytes);
        refused += usize::from(reread(params, name, &bytes).is_err());
    }
    assert!(refused > 250);
}

#[test]
fn claims_are_checked_before_memory() {
    let o = Objects::new();
    let params = o.client.params();
    let array = tfhe_array_to_bytes(params, &o.fresh).unwrap();
    // The only axis claims 2^40 elements, then 2^20.
    for claim in [1u64 << 40, 1 << 20] {
        let mut bytes = array.clone();
        bytes[128 + 48..128 + 56].copy_from_slice(&claim.to_le_bytes());
        reseal_for_tests(&mut bytes);
        assert!(tfhe_array_from_bytes(params, &bytes).is_err());
    }
    let other = TfheLiteral { unroll: 2, ..literal() }.build().unwrap();
    assert!(matches!(tfhe_array_from_bytes(&other, &array), Err(WireError::WrongParameters { .. })));
    assert!(matches!(tfhe_server_key_from_bytes(params, &array), Err(WireError::WrongType { .. })));
    assert!(matches!(tfhe_array_to_bytes(&other, &o.fresh), Err(WireError::WrongParameters { .. })));
}

#[test]
fn keys_that_switch_inside_the_ring_travel() {
    let noise = Noise::Uniform { bound: 5 };
    let literal = TfheLiteral { module_switch: true, lwe_dimension: 32, lwe_noise: noise, ..literal() };
    let params = literal.build().unwrap();
    let client = ClientKey::from_seed(&params, &Seed::from_bytes([3; 32])).unwrap();
    let stored = tfhe_params_from_bytes(&tfhe_params_to_bytes(&params).unwrap()).unwrap();
    let bytes = server_bytes(&client.server_key().unwrap());
    let server = tfhe_server_key_from_bytes(&stored.build().unwrap(), &bytes).unwrap();
    let x = client.encrypt_array(byte(), vec![3], &VALUES).unwrap();
    let sum = server.integers().unwrap().elementwise(Elementwise::Add, &x, &x).unwrap();
    assert_eq!(client.decrypt_array(&sum).unwrap(), [10, 0xFC, 0]);
}

#[test]
fn seeded_objects_are_half_or_less() {
    let o = Objects::new();
    let params = o.client.params();
    // A seeded block is one residue of 6 bytes.
    assert!(tfhe_array_to_bytes(params, &o.fresh).unwrap().len() < 4096 + 12 * 6 + 64);
    assert!(2 * o.server.seeded_byte_len() < o.server.byte_len());
}

/// As for the exact schemes: an edited object is refused, or still means one thing to everybody.
#[test]
fn every_header_field_at_its_extremes_is_refused_or_harmless() {
    let o = Objects::new();
    let params = o.client.params();
    for (name, bytes) in o.files() {
        let (seeds, free): (_, &[usize]) = match name {
            "tfhe_params" => (0..0, &[]),
            "tfhe_client_key" => (0..0, &[64, 68, 72, 76]),
            "circuit_params" | "fhew_params" => (0..0, &[]),
            "tfhe_server_key" | "fhew_key" => (128..192, &[64, 68, 72, 76]),
            "circuit_key" => (128..256, &[64, 68, 72, 76]),
            // Its elements may be read with a sign or without.
            _ => (144..176, &[64, 68, 72, 76, 128]),
        };
        let mut taken = Vec::new();
        for (at, edited) in edits(&bytes, seeds, &[]) {
            let Ok(again) = reread(params, name, &edited) else { continue };
            assert!(again == edited, "{name}, byte {at}: two files of one object");
            taken.push(at);
            if at == 128 {
                let array = tfhe_array_from_bytes(params, &edited).unwrap();
                let wanted: &[u64] = if name == "tfhe_array" { &[0xFC] } else { &VALUES };
                assert_eq!(o.client.decrypt_array(&array).unwrap(), wanted);
            }
        }
        taken.dedup();
        assert!(taken.iter().all(|at| free.contains(at)), "{name}: {taken:?}");
    }
}
