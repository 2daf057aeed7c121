//! Messages as bytes: golden files, every flipped byte, every cut, header fields at their extremes.

use super::world::{World, shared};
use crate::world::literal;
use std::path::PathBuf;
use sudare_he::ckks::Params;
use sudare_ring::{Coeff, Poly};
use sudare_rlwe::Ciphertext;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::multiparty::{
    DecryptionShare, Flooding, GaloisShare, Handover, HandoverShare, Opening, Party, PrivateShare, PublicKeyShare,
    RefreshShare, Refreshing, RelinFirstShare, RelinSecondShare, RelinSum, Session, relin_sum,
};
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::wire::{ObjectType, Wire, WireError, params_from_bytes, params_to_bytes, peek, reseal_for_tests};
use sudare_testkit::Random;
use zeroize::Zeroizing;

/// Where a header's metadata begins, and where a share's parties, number of records and first record stand in it.
const META: usize = 128;
const PARTY: usize = META + 64;
const RECORDS: usize = META + 68;
const ELEMENT: usize = META + 72;
const LEVEL: usize = META + 80;

fn params() -> Params {
    shared(literal(9, &[20, 20], &[21], 1, 20), 3).build().unwrap()
}

struct Objects {
    session: Session,
    files: Vec<(&'static str, Vec<u8>)>,
}

fn objects() -> Objects {
    let params = params();
    let mut world = World::new(&params, 2, 77);
    let session = world.session.clone();
    // A ciphertext of fixed words: what it says does not matter.
    let part = |level: usize, number: u64| {
        let basis = params.q_at(level);
        let words: Vec<u64> = basis.primes().flat_map(|q| Random(number).words(q, 512)).collect();
        Poly::from_words(basis, &words).unwrap()
    };
    let ciphertext = |n: u64| {
        let parts = vec![part(1, n), part(1, n + 1)];
        Ciphertext::from_parts(&params, session.key(), parts, 1).unwrap()
    };
    let policy = ReleasePolicy::new(5, 20).unwrap();
    let flooding = Flooding::new(policy, 1.0).unwrap();
    let own = literal(9, &[20, 20], &[21], 1, 20).build().unwrap();
    let receiver = SecretKey::from_seed(&own, &sudare_ring::random::Seed::from_bytes([5; 32])).unwrap();
    let entropy = sudare_ring::random::Entropy::fixed(sudare_ring::random::Seed::from_bytes([6; 32]));
    let public = KeyGenerator::new(&receiver).unwrap().with_entropy(entropy).public_key().unwrap();
    let firsts: Vec<_> = world.parties.iter().map(|p| p.relin_first_share(1).unwrap()).collect();
    let sum = relin_sum(&session, 1).unwrap().all(&firsts).unwrap().relin_sum().unwrap();
    let opening = Opening::new(&session, &ciphertext(1), &[0, 2], flooding, (0, 1)).unwrap();
    let handover = Handover::new(&session, &ciphertext(3), &[0, 2], flooding, &public).unwrap();
    let refreshing = Refreshing::new(&session, &ciphertext(5), &[0, 2], "test", None).unwrap();
    let masks = || [1, 1].map(|_| Zeroizing::new(Poly::<Coeff>::from_signed(params.q(), &vec![3; 512]).into_eval()));
    let (party, ledger) = (&world.parties[0], &mut world.ledgers[0]);
    let files = vec![
        ("party_params", params_to_bytes(&params).unwrap()),
        ("party_session", session.to_bytes().unwrap()),
        ("party_key", world.parties[0].to_bytes().unwrap().to_vec()),
        ("party_public_key", party.public_key_share().to_bytes().unwrap()),
        ("party_galois", party.galois_share(&[(5, 1), (1023, 0)]).unwrap().to_bytes().unwrap()),
        ("party_relin_first", firsts[0].to_bytes().unwrap()),
        ("party_relin_sum", sum.to_bytes().unwrap()),
        ("party_relin_second", party.relin_second_share(&sum, ledger).unwrap().to_bytes().unwrap()),
        ("party_private", party.private_shares()[1].to_bytes().unwrap().to_vec()),
        ("party_decryption", party.decryption_share(&opening, ledger).unwrap().to_bytes().unwrap()),
        ("party_handover", party.handover_share(&handover, ledger).unwrap().to_bytes().unwrap()),
        ("party_refresh", party.refresh_share(&refreshing, masks, ledger).unwrap().to_bytes().unwrap()),
    ];
    Objects { session, files }
}

fn reread(session: &Session, name: &str, bytes: &[u8]) -> Result<Vec<u8>, WireError> {
    match name {
        "party_params" => params_to_bytes(&params_from_bytes(bytes)?.build()?),
        "party_session" => Session::from_bytes(session.params(), bytes)?.to_bytes(),
        "party_key" => Ok(Party::from_bytes(session, bytes)?.to_bytes()?.to_vec()),
        "party_public_key" => PublicKeyShare::from_bytes(session, bytes)?.to_bytes(),
        "party_galois" => GaloisShare::from_bytes(session, bytes)?.to_bytes(),
        "party_relin_first" => RelinFirstShare::from_bytes(session, bytes)?.to_bytes(),
        "party_relin_sum" => RelinSum::from_bytes(session, bytes)?.to_bytes(),
        "party_relin_second" => RelinSecondShare::from_bytes(session, bytes)?.to_bytes(),
        "party_private" => Ok(PrivateShare::from_bytes(session, bytes)?.to_bytes()?.to_vec()),
        "party_decryption" => DecryptionShare::from_bytes(session, bytes)?.to_bytes(),
        "party_handover" => HandoverShare::from_bytes(session, bytes)?.to_bytes(),
        _ => RefreshShare::from_bytes(session, bytes)?.to_bytes(),
    }
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v1/{name}.bin"))
}

/// Makes the files, once for a format version: `cargo test -p sudare-he --test it -- --ignored multiparty`.
#[test]
#[ignore = "writes the golden files of this format version"]
fn write_golden_files() {
    for (name, bytes) in objects().files {
        std::fs::write(path(name), bytes).unwrap();
    }
}

#[test]
fn golden_files_load_and_the_same_seeds_give_the_same_files() {
    let o = objects();
    for (name, bytes) in &o.files {
        let stored = std::fs::read(path(name)).unwrap();
        assert!(stored == *bytes, "{name}");
        assert!(reread(&o.session, name, &stored).unwrap() == stored, "{name}");
        let secret = matches!(*name, "party_key" | "party_private");
        assert_eq!(peek(stored.as_slice()).unwrap().object().is_secret(), secret, "{name}");
    }
}

#[test]
fn flipped_bytes_cuts_and_tails_are_errors() {
    let o = objects();
    for (name, bytes) in &o.files {
        let mut damaged = bytes.clone();
        let step = |i: usize| if i < 600 { 1 } else { 13 };
        for i in std::iter::successors(Some(0), |i| Some(i + step(*i))).take_while(|i| *i < bytes.len()) {
            damaged[i] ^= 1 << (i % 8);
            assert!(reread(&o.session, name, &damaged).is_err(), "{name}, byte {i}");
            damaged[i] = bytes[i];
            assert!(reread(&o.session, name, &bytes[..i]).is_err(), "{name}, cut at {i}");
        }
        assert!(reread(&o.session, name, &[bytes, &[0][..]].concat()).is_err(), "{name}");
    }
}

#[test]
fn fields_at_their_extremes_are_errors() {
    let o = objects();
    let forged = |name: &str, at: usize, with: &[u8]| {
        let mut bytes = o.files.iter().find(|(n, _)| *n == name).unwrap().1.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        reseal_for_tests(&mut bytes);
        reread(&o.session, name, &bytes)
    };
    let shares = ["party_public_key", "party_galois", "party_relin_first", "party_relin_second", "party_decryption"];
    for name in shares.into_iter().chain(["party_handover", "party_refresh"]) {
        assert!(matches!(forged(name, META, &[0; 32]), Err(WireError::WrongKey { .. })), "{name}: session");
        for party in [3, u32::MAX] {
            let refused = forged(name, PARTY, &party.to_le_bytes());
            assert!(matches!(refused, Err(WireError::Oversize { limit: 2, .. })), "{name}: party {party}");
        }
        let most = if name == "party_galois" { 4096 } else { 1 };
        for count in [0, most + 1, u32::MAX] {
            let refused = forged(name, RECORDS, &count.to_le_bytes());
            let limit = u64::from(most);
            assert!(
                matches!(refused, Err(WireError::Oversize { limit: l, .. }) if l == limit),
                "{name}: {count} records"
            );
        }
        if name == "party_galois" {
            assert!(matches!(forged(name, RECORDS, &9u32.to_le_bytes()), Err(WireError::Corrupt { .. })), "{name}");
        }
        for level in [2, u32::MAX] {
            let refused = forged(name, LEVEL, &level.to_le_bytes());
            assert!(matches!(refused, Err(WireError::Oversize { .. })), "{name}: level {level}");
        }
        for element in [6, 1024, u64::MAX] {
            assert!(matches!(forged(name, ELEMENT, &element.to_le_bytes()), Err(WireError::Corrupt { .. })), "{name}");
        }
        // Another party's number is another message, and is what its bytes say.
        assert!(forged(name, PARTY, &1u32.to_le_bytes()).is_ok(), "{name}");
    }
    for threshold in [0, 1, 4, u32::MAX] {
        assert!(matches!(forged("party_session", META, &threshold.to_le_bytes()), Err(WireError::Corrupt { .. })));
    }
    assert!(matches!(forged("party_session", META, &3u32.to_le_bytes()), Err(WireError::WrongKey { .. })));
    assert!(matches!(forged("party_key", META + 32, &3u32.to_le_bytes()), Err(WireError::Corrupt { .. })));
    assert!(matches!(forged("party_key", META + 32, &1u32.to_le_bytes()), Err(WireError::WrongKey { .. })));
    assert!(matches!(forged("party_key", META + 36, &2u32.to_le_bytes()), Err(WireError::Corrupt { .. })));
    assert!(matches!(forged("party_private", META + 36, &3u32.to_le_bytes()), Err(WireError::Oversize { .. })));
    assert!(matches!(forged("party_relin_sum", META + 32, &2u32.to_le_bytes()), Err(WireError::Corrupt { .. })));
    let found = ObjectType::PublicKeyShare;
    let bytes = &o.files[3].1;
    let expected = ObjectType::GaloisShare;
    assert_eq!(GaloisShare::from_bytes(&o.session, bytes).unwrap_err(), WireError::WrongType { found, expected });
}

/// No window of a party's seed, keys with others or secret share is in a message that others see.
#[test]
fn nothing_public_holds_a_secret() {
    let o = objects();
    let (_, key) = o.files.iter().find(|(name, _)| *name == "party_key").unwrap();
    let secret: Vec<&[u8]> = vec![&key[4096..4096 + 32], &key[8192 + 32..8192 + 96], &key[12288..12288 + 512]];
    for (name, bytes) in o.files.iter().filter(|(name, _)| !matches!(*name, "party_key" | "party_private")) {
        for window in secret.iter().flat_map(|s| s.chunks_exact(16)) {
            assert!(!bytes.windows(16).any(|w| w == window), "{name}");
        }
    }
    let shown = format!("{:?}", World::new(&params(), 2, 77).parties[0]);
    assert!(shown.contains("hidden") && shown.len() < 100, "{shown}");
}
