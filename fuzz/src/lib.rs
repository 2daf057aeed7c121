//! What the fuzz targets run: every decoder on the bytes as they are and, so that the checks
//! behind the checksums are reached, with their checksums made right. No panic, and what is
//! accepted is written again as the same bytes.
//!
//! Plans, stores, messages of parties in a folder, requests, objects of Lattigo and compiled models have modules of their own, which the ordinary
//! tests of `session`, `serve`, `lattigo` and `models` include: there each runs on its seeds and some changes of them.

pub mod lattigo;
pub mod models;
pub mod mutation;
pub mod parties;
pub mod plans;
pub mod requests;
pub mod stores;

use mutation::Random;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use sudare_exact::refresh::{RefreshKeys, RefreshLiteral, RefreshParams};
use sudare_exact::{IntegerParams, integer_params_from_bytes, integer_params_to_bytes, read_integer_params};
use sudare_genome::message::Head;
use sudare_genome::vcf::VariantFile;
use sudare_genome::{Client, Options, Panel, Pending, Server, Sites, lookup, simd, trie};
use sudare_he::discrete::{DiscreteSet, LweKeys, LweParams};
use sudare_rlwe::Params;
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::multiparty::{Party, PrivateShare, Session};
use sudare_rlwe::wire::{
    Container, Wire, params_from_bytes, params_to_bytes, peek, read_params, read_secret_key, reseal_for_tests,
    secret_key_from_bytes, secret_key_to_bytes,
};
use sudare_tfhe::exchange::LweForm;
use sudare_tfhe::{TfheLiteral, TfheParams};
use sudare_tfhe::boolean::fhew::FhewParams;
use sudare_tfhe::circuit_bootstrap::CircuitParams;
use sudare_tfhe::wire::{
    circuit_key_from_bytes, circuit_params_from_bytes, circuit_params_to_bytes, fhew_key_from_bytes,
    fhew_params_from_bytes, fhew_params_to_bytes, read_tfhe_server_key, tfhe_array_from_bytes, tfhe_array_to_bytes,
    tfhe_client_key_from_bytes, tfhe_client_key_to_bytes, tfhe_params_from_bytes, tfhe_params_to_bytes,
    tfhe_server_key_from_bytes, write_circuit_key, write_fhew_key, write_tfhe_server_key,
};

/// The parameters of the golden files.
fn golden() -> &'static Params {
    static PARAMS: OnceLock<Params> = OnceLock::new();
    PARAMS.get_or_init(|| {
        let file = include_bytes!("../../crates/he/tests/golden/v1/params.bin");
        params_from_bytes(file).and_then(|stored| stored.build()).expect("the golden parameters load")
    })
}

/// The same with a plaintext modulus.
fn golden_integer() -> &'static IntegerParams {
    static PARAMS: OnceLock<IntegerParams> = OnceLock::new();
    PARAMS.get_or_init(|| {
        let file = include_bytes!("../../crates/exact/tests/golden/v1/integer_params.bin");
        integer_params_from_bytes(file).and_then(|stored| stored.build()).expect("the golden parameters load")
    })
}

/// A set of a refresh with few keys, that of the golden files.
fn golden_refresh() -> &'static RefreshParams {
    static PARAMS: OnceLock<RefreshParams> = OnceLock::new();
    PARAMS.get_or_init(|| {
        let params = ParamsLiteral {
            log_n: 9,
            q_bits: vec![44, 42, 43, 43, 30, 43, 43, 43, 46, 46],
            p_bits: vec![48; 9],
            digit_limbs: 10,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        };
        let (t, base, stc, cts, weight, gate_bits, hoisted) = (12289, 1, vec![8], vec![8], 4, vec![45], 1);
        let literal = RefreshLiteral { params, t, base, stc, cts, weight, gate_bits, hoisted };
        literal.build().expect("the golden set of a refresh")
    })
}

/// Sets for tables and of TFHE's bits, those of the golden files.
fn golden_lwe() -> &'static LweParams {
    static PARAMS: OnceLock<LweParams> = OnceLock::new();
    PARAMS.get_or_init(|| {
        let set = DiscreteSet::G15.literal().insecure(9).and_then(|l| l.build()).expect("the golden set for tables");
        let literal = TfheLiteral { lwe_dimension: 16, security: Security::Insecure, ..TfheLiteral::gates() };
        let tfhe = literal.build().expect("the golden set of bits");
        LweParams::new(&set, &tfhe, LweForm::Switched).expect("both go together")
    })
}

/// The session of several parties.
fn golden_session() -> &'static Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    SESSION.get_or_init(|| {
        let params = include_bytes!("../../crates/he/tests/golden/v1/party_params.bin");
        let params = params_from_bytes(params).and_then(|stored| stored.build()).expect("the golden parameters load");
        let session = include_bytes!("../../crates/he/tests/golden/v1/party_session.bin");
        Session::from_bytes(&params, session).expect("the golden session loads")
    })
}

/// Those of encrypted bits and small integers.
fn golden_tfhe() -> &'static TfheParams {
    static PARAMS: OnceLock<TfheParams> = OnceLock::new();
    PARAMS.get_or_init(|| {
        let file = include_bytes!("../../crates/tfhe/tests/golden/v1/tfhe_params.bin");
        tfhe_params_from_bytes(file).and_then(|stored| stored.build()).expect("the golden parameters load")
    })
}

/// Writes seeds into the folder that `FUZZ_CORPUS` names: what an input has to look like to get far.
pub fn write_seeds(seeds: Vec<Vec<u8>>) {
    let Some(folder) = std::env::var_os("FUZZ_CORPUS") else { return };
    for (at, seed) in seeds.into_iter().enumerate() {
        std::fs::write(Path::new(&folder).join(format!("seed-{at}")), seed).expect("a file");
    }
}

/// Two changes of three by a target's own mutator, the others by libFuzzer's; the new length.
pub fn mutated(
    data: &mut [u8],
    (size, most): (usize, usize),
    seed: u32,
    mutate: fn(&mut Random, &mut Vec<u8>, &[u8]),
) -> usize {
    let mut random = Random(seed.into());
    if mutation::below(&mut random, 3) == 0 {
        return libfuzzer_sys::fuzzer_mutate(data, size, most);
    }
    let (mut changed, other) = (data[..size].to_vec(), data[..size].to_vec());
    mutate(&mut random, &mut changed, &other);
    changed.truncate(most);
    data[..changed.len()].copy_from_slice(&changed);
    changed.len()
}

/// The command's readers of .npy and .csv.
pub fn matrices(data: &[u8]) {
    sudare_cli::read_for_fuzzing(data);
}

fn both_ways(data: &[u8], check: impl Fn(&[u8])) {
    check(data);
    let mut sealed = data.to_vec();
    reseal_for_tests(&mut sealed);
    check(&sealed);
}

/// A public object's decoder, from memory and from a stream.
fn read_object<T: Wire>(params: &T::Params, data: &[u8]) {
    both_ways(data, |bytes| {
        let read = T::from_bytes(params, bytes);
        assert_eq!(read.is_ok(), T::read_from(params, bytes).is_ok());
        if let Ok(object) = read {
            assert!(object.to_bytes().expect("what was read can be written") == bytes);
        }
    });
}

/// The decoder of an object that all schemes share.
pub fn object<T: Wire<Params = Params>>(data: &[u8]) {
    read_object::<T>(golden(), data);
}

/// The decoder of keys of a refresh.
pub fn refresh_keys(data: &[u8]) {
    read_object::<RefreshKeys>(golden_refresh(), data);
}

/// The decoder of keys between CKKS and LWE.
pub fn lwe_keys(data: &[u8]) {
    read_object::<LweKeys>(golden_lwe(), data);
}

/// The decoder of a session.
pub fn party_session(data: &[u8]) {
    both_ways(data, |bytes| {
        if let Ok(session) = Session::from_bytes(golden_session().params(), bytes) {
            assert!(session.to_bytes().expect("what was read can be written") == bytes);
        }
    });
}

/// The decoder of what parties send.
pub fn party_object<T: Wire<Params = Session>>(data: &[u8]) {
    read_object::<T>(golden_session(), data);
}

/// The decoders of what a party keeps, and of what one party gives another.
pub fn party_secrets(data: &[u8]) {
    both_ways(data, |bytes| {
        if let Ok(party) = Party::from_bytes(golden_session(), bytes) {
            assert!(party.to_bytes().expect("what was read can be written").as_slice() == bytes);
        }
        if let Ok(share) = PrivateShare::from_bytes(golden_session(), bytes) {
            assert!(share.to_bytes().expect("what was read can be written").as_slice() == bytes);
        }
    });
}

/// The decoder of parameters; small sets are built too.
pub fn params(data: &[u8]) {
    both_ways(data, |bytes| {
        let read = params_from_bytes(bytes);
        assert_eq!(read.is_ok(), read_params(bytes).is_ok());
        let Ok(stored) = read else { return };
        let literal = &stored.literal;
        if literal.log_n > 10 || literal.q_bits.len() + literal.p_bits.len() > 6 {
            return;
        }
        if let Ok(params) = stored.build() {
            assert!(params_to_bytes(&params).expect("what was read can be written") == bytes);
        }
    });
}

/// An exact scheme's object, from memory and from a stream.
pub fn integer_object<T: Wire<Params = IntegerParams>>(data: &[u8]) {
    read_object::<T>(golden_integer(), data);
}

/// The decoder of parameters with a plaintext modulus; small sets are built too.
pub fn integer_params(data: &[u8]) {
    both_ways(data, |bytes| {
        let read = integer_params_from_bytes(bytes);
        assert_eq!(read.is_ok(), read_integer_params(bytes).is_ok());
        let Ok(stored) = read else { return };
        let literal = &stored.params.literal;
        if literal.log_n > 10 || literal.q_bits.len() + literal.p_bits.len() > 6 {
            return;
        }
        if let Ok(params) = stored.build() {
            assert!(integer_params_to_bytes(&params).expect("what was read can be written") == bytes);
        }
    });
}

/// The decoder of TFHE's parameters; small sets are built too.
pub fn tfhe_params(data: &[u8]) {
    both_ways(data, |bytes| {
        let Ok(stored) = tfhe_params_from_bytes(bytes) else { return };
        if stored.literal.log_n > 10 {
            return;
        }
        if let Ok(params) = stored.build() {
            assert!(tfhe_params_to_bytes(&params).expect("what was read can be written") == bytes);
        }
    });
}

/// The decoder of TFHE's client keys.
pub fn tfhe_client_key(data: &[u8]) {
    both_ways(data, |bytes| {
        if let Ok(key) = tfhe_client_key_from_bytes(golden_tfhe(), bytes) {
            assert!(tfhe_client_key_to_bytes(&key).expect("what was read can be written").as_slice() == bytes);
        }
    });
}

/// The decoder of TFHE's server keys, from memory and from a stream.
pub fn tfhe_server_key(data: &[u8]) {
    both_ways(data, |bytes| {
        let read = tfhe_server_key_from_bytes(golden_tfhe(), bytes);
        assert_eq!(read.is_ok(), read_tfhe_server_key(golden_tfhe(), bytes).is_ok());
        if let Ok(key) = read {
            let mut out = Vec::new();
            write_tfhe_server_key(&key, &mut out).expect("what was read can be written");
            assert!(out == bytes);
        }
    });
}

/// The decoder of encrypted arrays.
pub fn tfhe_array(data: &[u8]) {
    both_ways(data, |bytes| {
        if let Ok(array) = tfhe_array_from_bytes(golden_tfhe(), bytes) {
            assert!(tfhe_array_to_bytes(golden_tfhe(), &array).expect("what was read can be written") == bytes);
        }
    });
}

/// The decoders of circuit bootstrapping's parameters and keys; small sets are built too.
pub fn circuit(data: &[u8]) {
    static PARAMS: OnceLock<CircuitParams> = OnceLock::new();
    let golden = PARAMS.get_or_init(|| {
        let file = include_bytes!("../../crates/tfhe/tests/golden/v1/circuit_params.bin");
        circuit_params_from_bytes(file).and_then(|stored| stored.build()).expect("the golden parameters load")
    });
    both_ways(data, |bytes| {
        let stored = circuit_params_from_bytes(bytes).ok().filter(|stored| stored.literal.tfhe.log_n <= 10);
        if let Some(params) = stored.and_then(|stored| stored.build().ok()) {
            assert!(circuit_params_to_bytes(&params).expect("what was read can be written") == bytes);
        }
        if let Ok(key) = circuit_key_from_bytes(golden, bytes) {
            let mut out = Vec::new();
            write_circuit_key(&key, &mut out).expect("what was read can be written");
            assert!(out == bytes);
        }
    });
}

/// The decoders of FHEW's parameters and keys; small sets are built too.
pub fn fhew(data: &[u8]) {
    static PARAMS: OnceLock<FhewParams> = OnceLock::new();
    let golden = PARAMS.get_or_init(|| {
        let file = include_bytes!("../../crates/tfhe/tests/golden/v1/fhew_params.bin");
        fhew_params_from_bytes(file).and_then(|stored| stored.build()).expect("the golden parameters load")
    });
    both_ways(data, |bytes| {
        let stored = fhew_params_from_bytes(bytes).ok().filter(|stored| stored.literal.tfhe.log_n <= 10);
        if let Some(params) = stored.and_then(|stored| stored.build().ok()) {
            assert!(fhew_params_to_bytes(&params).expect("what was read can be written") == bytes);
        }
        if let Ok(key) = fhew_key_from_bytes(golden, bytes) {
            let mut out = Vec::new();
            write_fhew_key(&key, &mut out).expect("what was read can be written");
            assert!(out == bytes);
        }
    });
}

/// The decoder of secret keys.
pub fn secret_key(data: &[u8]) {
    both_ways(data, |bytes| {
        let read = secret_key_from_bytes(golden(), bytes);
        assert_eq!(read.is_ok(), read_secret_key(golden(), bytes).is_ok());
        if let Ok(key) = read {
            assert!(secret_key_to_bytes(&key).expect("what was read can be written").as_slice() == bytes);
        }
    });
}

/// The container below all objects: headers and random access to segments.
pub fn container(data: &[u8]) {
    both_ways(data, |bytes| {
        let header = peek(bytes);
        let Ok(container) = Container::from_bytes(bytes) else { return };
        assert!(header.is_ok_and(|h| h == *container.header()));
        let count = container.header().segments().len();
        // Far more segments than fit the bytes cannot be.
        assert!(count <= bytes.len());
        for i in 0..=count {
            let _ = container.segment(i);
        }
    });
}

/// The panel's server, the client and the pending query of the golden files.
struct GoldenGenome {
    server: Server,
    client: Client,
    pending: Pending,
}

fn golden_genome() -> &'static GoldenGenome {
    static WORLD: OnceLock<GoldenGenome> = OnceLock::new();
    WORLD.get_or_init(|| {
        let panel = include_bytes!("../../crates/genome/tests/golden/v1/genome_panel.bin");
        let client = include_bytes!("../../crates/genome/tests/golden/v1/genome_client_key.bin");
        let pending = include_bytes!("../../crates/genome/tests/golden/v1/genome_pending.bin");
        let panel = Arc::new(Panel::from_bytes(panel.to_vec()).expect("the golden panel loads"));
        GoldenGenome {
            server: Server::new(panel).expect("the standard sets build"),
            client: Client::from_secret_bytes(client).expect("the golden key loads"),
            pending: Pending::from_bytes(pending).expect("the golden query loads"),
        }
    })
}

/// The set of lookups.
fn lookup_params() -> &'static CircuitParams {
    static PARAMS: OnceLock<CircuitParams> = OnceLock::new();
    PARAMS.get_or_init(|| lookup::Set::standard().build().expect("the standard set builds"))
}

/// The decoder of panels: every block, and a window of it.
pub fn genome_panel(data: &[u8]) {
    both_ways(data, |bytes| {
        let Ok(panel) = Panel::from_bytes(bytes.to_vec()) else { return };
        if panel.check().is_ok() && panel.haplotypes() < 1 << 12 {
            let _ = panel.description();
            let _ = trie::dag::diagram(&panel, 0, panel.sites().min(8), 1);
        }
    });
}

/// The decoder of descriptions.
pub fn genome_sites(data: &[u8]) {
    both_ways(data, |bytes| {
        if let Ok(sites) = Sites::from_bytes(bytes) {
            assert!(sites.to_bytes().expect("what was read can be written") == bytes);
        }
    });
}

/// The decoders of tables: diagrams, and encrypted ones of a site.
pub fn genome_tables(data: &[u8]) {
    both_ways(data, |bytes| {
        trie::read_for_fuzzing(bytes);
        lookup::read_for_fuzzing(lookup_params(), bytes);
    });
}

/// The decoder of clients' secret keys.
pub fn genome_client_key(data: &[u8]) {
    both_ways(data, |bytes| {
        if let Ok(client) = Client::from_secret_bytes(bytes) {
            assert!(client.secret_bytes().expect("what was read can be written").as_slice() == bytes);
        }
    });
}

/// The decoder of what a client remembers of a query.
pub fn genome_pending(data: &[u8]) {
    both_ways(data, |bytes| {
        if let Ok(pending) = Pending::from_bytes(bytes) {
            assert!(pending.to_bytes().expect("what was read can be written").as_slice() == bytes);
        }
    });
}

/// A server that is sent anything.
pub fn genome_query(data: &[u8]) {
    both_ways(data, |bytes| {
        let Ok(head) = Head::peek(bytes) else { return };
        if head.sites <= 64 && head.starts.len() <= 64 {
            let _ = golden_genome().server.search(bytes, Options::default());
        }
    });
}

/// The decoders of evaluation keys.
pub fn genome_keys(data: &[u8]) {
    both_ways(data, |bytes| {
        let _ = simd::Keys::from_bytes(bytes);
        let _ = lookup::read_keys(bytes);
    });
}

/// A client that is answered anything.
pub fn genome_answer(data: &[u8]) {
    both_ways(data, |bytes| {
        let world = golden_genome();
        let _ = world.client.answer(&world.pending, bytes);
    });
}

/// The readers of VCF and BCF, packed or not.
pub fn genome_variants(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("variants");
    std::fs::write(&path, data).expect("a file");
    let Ok(file) = VariantFile::open(&path) else { return };
    let samples: Vec<usize> = (0..file.samples().len()).collect();
    let _ = file.visit(None, &samples, &|_, _| (), &mut |_| Ok(()));
}
