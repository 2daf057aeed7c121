//! Bootstrapping keys that travelled.

use crate::world::{Owner, complex};
use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapLiteral, BootstrapParams, Bootstrapper};
use sudare_he::ckks::Ciphertext;
use sudare_rlwe::wire::{Part, Wire, WireError, reseal_for_tests};
use sudare_testkit::Random;

/// Set C over the least ring, with a trial's gate.
fn small(gate_bits: u32) -> BootstrapParams {
    let literal = BootstrapLiteral::c().insecure(9).unwrap();
    BootstrapLiteral { gate_bits, ..literal }.build().unwrap()
}

fn gate_bits() -> u32 {
    BootstrapLiteral::c().insecure(9).unwrap().gate_bits
}

#[test]
fn keys_that_travelled_refresh_alike() {
    let params = small(gate_bits());
    let owner = Owner::new(params.params());
    let keys = BootstrapKeys::generate(&owner.secret, &params).unwrap();
    let bytes = keys.to_bytes().unwrap();
    assert_eq!(bytes.len() as u64, keys.wire_bytes().unwrap());
    assert!((bytes.len() as f64) < 0.6 * keys.bytes() as f64, "{} of {} bytes", bytes.len(), keys.bytes());
    let again = BootstrapKeys::read_from(&params, &bytes[..]).unwrap();
    assert!(again.id() == keys.id() && again.to_bytes().unwrap() == bytes);

    let x = complex(&mut Random(3), params.slots());
    let input = owner.encrypt(&x, params.input_level(), owner.params.scale(), 1.0);
    let [here, there] = [keys, again].map(|k| Bootstrapper::new(k, None).unwrap().refresh(&input).unwrap());
    let words = |c: &Ciphertext| c.to_bytes().unwrap();
    assert!(words(&here) == words(&there));
}

#[test]
fn other_sets_keys_are_refused() {
    let (params, other) = (small(gate_bits()), small(gate_bits() + 1));
    let owner = Owner::new(params.params());
    let bytes = BootstrapKeys::generate(&owner.secret, &params).unwrap().to_bytes().unwrap();
    // The same ring and primes, but for the sparse key's.
    assert_eq!(params.params().hash(), other.params().hash());
    assert!(matches!(BootstrapKeys::from_bytes(&other, &bytes), Err(WireError::WrongBootstrapSet { .. })));
    assert!(BootstrapKeys::from_bytes(&params, &bytes[..bytes.len() - 1]).is_err());
    // Bytes of the header matter, with its checksum made right, and so does one of a segment.
    let header = bytes.len().min(4096 - 32);
    for at in (0..header).step_by(37).chain([bytes.len() - 5]) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(BootstrapKeys::from_bytes(&params, &changed).is_err(), "byte {at}");
        reseal_for_tests(&mut changed);
        if let Ok(read) = BootstrapKeys::from_bytes(&params, &changed) {
            assert!(read.to_bytes().unwrap() == changed, "byte {at}");
        }
    }
    let mut cut = bytes;
    let last = cut.len() - 1;
    cut[last] ^= 0x80;
    let found = BootstrapKeys::from_bytes(&params, &cut);
    assert!(matches!(found, Err(WireError::Checksum { part: Part::Segment(_), .. })), "{found:?}");
}

/// Keys with the weight that sets C and D had before rotations of the ring counted.
#[test]
fn keys_with_a_lighter_sparse_secret_are_refused_and_told_why() {
    let of = |weight| {
        let mut literal = BootstrapLiteral::c().insecure(9).unwrap();
        literal.weight = weight;
        literal.build().unwrap()
    };
    let (old, new) = (of(32), of(BootstrapLiteral::c().weight));
    let owner = Owner::new(old.params());
    let bytes = BootstrapKeys::generate(&owner.secret, &old).unwrap().to_bytes().unwrap();
    let refused = BootstrapKeys::from_bytes(&new, &bytes).map(|_| ()).unwrap_err();
    assert_eq!(refused, WireError::WrongBootstrapSet { found: old.hash(), expected: new.hash() });
    let words = refused.to_string();
    assert!(["weight was raised", "rotations", "make the keys anew"].iter().all(|w| words.contains(w)), "{words}");
}
