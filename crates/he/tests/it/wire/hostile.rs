//! Damaged, foreign and hostile bytes: the right error, and nothing allocated on a claim.

use super::objects::{Objects, literal, reread};
use std::io::Read;
use sudare_he::ckks::{Ciphertext, Plaintext};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{EvalKeys, PublicKey};
use sudare_rlwe::release::{ReleasePolicy, Releases};
use sudare_rlwe::wire::{
    Bundle, Container, ObjectType, Part, Wire, WireError, params_from_bytes, peek, reseal_for_tests,
    secret_key_from_bytes, secret_key_to_bytes,
};

/// Where a header's metadata begins.
const META: usize = 128;

#[test]
fn every_flipped_byte_is_an_error() {
    let o = Objects::new(&literal(), 1);
    for (name, mut bytes) in o.files() {
        let len = bytes.len();
        // Of the one larger file, every byte up to its second segment and every fifth after.
        let step = |i: usize| if name == "eval_keys" && i > 17_000 { 5 } else { 1 };
        for i in std::iter::successors(Some(0), |i| Some(i + step(*i))).take_while(|i| *i < len) {
            let bit = 1 << (i % 8);
            bytes[i] ^= bit;
            assert!(reread(&o.params, name, &bytes).is_err(), "{name}, byte {i}");
            bytes[i] ^= bit;
        }
        assert!(reread(&o.params, name, &bytes).is_ok(), "{name}");
    }
}

#[test]
fn every_cut_is_an_error_and_so_is_a_tail() {
    let o = Objects::new(&literal(), 1);
    for (name, bytes) in o.files() {
        for len in 0..bytes.len() {
            let error = reread(&o.params, name, &bytes[..len]).unwrap_err();
            assert!(matches!(error, WireError::Truncated { found, .. } if found <= len as u64), "{name}: {error}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(reread(&o.params, name, &longer).unwrap_err(), WireError::Trailing { expected: bytes.len() as u64 });
    }
    let bytes = o.bundle.to_bytes().unwrap();
    for len in (0..bytes.len()).step_by(61) {
        let error = Bundle::<Ciphertext>::read_from(&o.params, &bytes[..len]).unwrap_err();
        assert!(matches!(error, WireError::Truncated { .. }), "{error}");
    }
    let tail = bytes.chain(&[0][..]);
    assert!(matches!(Bundle::<Ciphertext>::read_from(&o.params, tail), Err(WireError::Trailing { .. })));
}

#[test]
fn damage_says_where() {
    let o = Objects::new(&literal(), 1);
    let good = o.plain_parts.to_bytes().unwrap();
    let damaged = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 4;
        Ciphertext::from_bytes(&o.params, &bytes).unwrap_err()
    };
    assert_eq!(damaged(0), WireError::NotSudare);
    assert!(matches!(damaged(8), WireError::Version { supported: 1, .. }));
    assert_eq!(damaged(40), WireError::Checksum { part: Part::Header });
    let ranges: Vec<_> = peek(good.as_slice()).unwrap().segment_ranges().collect();
    for (i, range) in ranges.iter().enumerate() {
        assert_eq!(damaged(range.start as usize + 9), WireError::Checksum { part: Part::Segment(i) });
        assert!(matches!(damaged(range.start as usize - 1), WireError::Corrupt { .. }));
    }
    // Segments that change places are damage as well.
    let mut swapped = good.clone();
    let (a, b) = (ranges[0].start as usize, ranges[1].start as usize);
    let len = (ranges[0].end - ranges[0].start) as usize + 32;
    let first = good[a..a + len].to_vec();
    swapped.copy_within(b..b + len, a);
    swapped[b..b + len].copy_from_slice(&first);
    assert_eq!(
        Ciphertext::from_bytes(&o.params, &swapped).unwrap_err(),
        WireError::Checksum { part: Part::Segment(0) }
    );
}

#[test]
fn foreign_objects_are_named() {
    let o = Objects::new(&literal(), 1);
    let mut other = literal();
    other.log_scale = 21;
    let (other, stranger) = (Objects::new(&other, 1), Objects::new(&literal(), 9));
    for (name, bytes) in other.files().into_iter().skip(1) {
        let error = reread(&o.params, name, &bytes).unwrap_err();
        let (found, expected) = (other.params.hash(), o.params.hash());
        assert_eq!(error, WireError::WrongParameters { found, expected }, "{name}");
    }
    let key = WireError::WrongKey { found: stranger.secret.id(), expected: o.secret.id() };
    let foreign = stranger.seeded.to_bytes().unwrap();
    assert_eq!(peek(foreign.as_slice()).unwrap().expect_key(o.secret.id()).unwrap_err(), key);
    let mixed = Bundle::<Ciphertext>::new(
        &o.params,
        o.secret.id(),
        Vec::new(),
        vec![o.seeded.clone(), stranger.seeded.clone()],
    );
    assert_eq!(mixed.unwrap_err(), key);
    let mixed = Bundle::<Ciphertext>::new(&o.params, o.secret.id(), Vec::new(), vec![other.seeded.clone()]);
    assert!(matches!(mixed, Err(WireError::WrongParameters { .. })));
    for (name, bytes) in o.files() {
        if name != "public_key" {
            let found = peek(bytes.as_slice()).unwrap().object();
            let expected = ObjectType::PublicKey;
            assert_eq!(PublicKey::from_bytes(&o.params, &bytes).unwrap_err(), WireError::WrongType { found, expected });
        }
    }
}

/// The bytes with some replaced, under matching checksums.
fn forged(bytes: &[u8], at: usize, with: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out[at..at + with.len()].copy_from_slice(with);
    reseal_for_tests(&mut out);
    out
}

/// A stream that tells the largest read asked of it.
struct Meter<'a> {
    data: &'a [u8],
    largest: usize,
}

impl Read for Meter<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.largest = self.largest.max(out.len());
        self.data.read(out)
    }
}

#[test]
fn claims_are_bounded_before_anything_is_allocated() {
    let o = Objects::new(&literal(), 1);
    let good = o.seeded.to_bytes().unwrap();
    let read = |bytes: &[u8]| Ciphertext::from_bytes(&o.params, bytes).unwrap_err();
    // A header of two gigabytes, and one that is just possible, in a hundred bytes and some.
    assert!(matches!(read(&forged(&good, 12, &(1u32 << 31).to_le_bytes())), WireError::Oversize { .. }));
    let lead = forged(&good, 12, &(16u32 << 20).to_le_bytes())[..128].to_vec();
    let mut meter = Meter { data: &lead, largest: 0 };
    let error = Ciphertext::read_from(&o.params, &mut meter).unwrap_err();
    assert!(matches!(error, WireError::Truncated { part: Part::Header, .. }), "{error}");
    assert!(meter.largest <= 1 << 20);
    // A segment of 2^40 bytes; one of 200 MiB; one that is just too long.
    let table = META + 40;
    assert!(matches!(read(&forged(&good, table, &(1u64 << 40).to_le_bytes())), WireError::Oversize { .. }));
    assert!(matches!(read(&forged(&good, table, &(200u64 << 20).to_le_bytes())), WireError::Corrupt { .. }));
    assert!(matches!(read(&forged(&good, table, &5633u64.to_le_bytes())), WireError::Corrupt { .. }));
    // 2^32 − 1 segments, and as many bytes of metadata.
    assert!(matches!(read(&forged(&good, 16, &u32::MAX.to_le_bytes())), WireError::Corrupt { .. }));
    assert!(matches!(read(&forged(&good, 20, &u32::MAX.to_le_bytes())), WireError::Corrupt { .. }));
    // A level that does not exist; another one than its segments have.
    assert!(matches!(read(&forged(&good, 80, &2u32.to_le_bytes())), WireError::Oversize { found: 2, limit: 1, .. }));
    assert!(matches!(read(&forged(&good, 80, &0u32.to_le_bytes())), WireError::Corrupt { .. }));
    // Parts: too few, too many, a seeded product, a seed that is not used.
    for form in [[1u32, 0], [4, 0], [3, 1], [2, 2], [u32::MAX, 0], [2, 0]] {
        let form: Vec<u8> = form.iter().flat_map(|x| x.to_le_bytes()).collect();
        assert!(matches!(read(&forged(&good, META, &form)), WireError::Corrupt { .. }));
    }
    // Floats.
    for at in [88, 96, 104] {
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
            assert!(matches!(read(&forged(&good, at, &x.to_le_bytes())), WireError::Corrupt { .. }), "{at} {x}");
        }
    }
    assert!(matches!(read(&forged(&good, 88, &0f64.to_le_bytes())), WireError::Corrupt { .. }));
    // Bytes without meaning.
    for at in [84, 112, 127] {
        assert!(matches!(read(&forged(&good, at, &[1])), WireError::Corrupt { .. }), "{at}");
    }
    assert!(matches!(read(&forged(&good, 10, &99u16.to_le_bytes())), WireError::Corrupt { .. }));
}

#[test]
fn residues_are_checked() {
    let o = Objects::new(&literal(), 1);
    let good = o.plaintext.to_bytes().unwrap();
    // Limb 0 has 6 bytes a residue, limb 1 four.
    for (limb, width, start) in [(0usize, 6usize, 4096usize), (1, 4, 4096 + 512 * 6)] {
        let q = o.params.q().limb(limb).q();
        let bytes = forged(&good, start + 5 * width, &q.to_le_bytes()[..width]);
        let error = Plaintext::from_bytes(&o.params, &bytes).unwrap_err();
        assert_eq!(error, WireError::Coefficient { segment: 0, limb, index: 5 });
    }
    let bytes = forged(&o.files()[1].1, 4096, &[0b10]);
    assert!(matches!(secret_key_from_bytes(&o.params, &bytes), Err(WireError::Rlwe(RlweError::Parameters { .. }))));
}

#[test]
fn counts_of_releases_are_checked() {
    let o = Objects::new(&literal(), 1);
    let policy = ReleasePolicy::new(5, 30).unwrap();
    let released = o.secret.with_releases(Some(Releases::new(policy, 2).unwrap()));
    let good = secret_key_to_bytes(&released).unwrap();
    assert_eq!(secret_key_from_bytes(&o.params, &good).unwrap().releases(), released.releases());
    // More used than declared; too many declared; bits that the noise does not cover.
    for (at, with) in [(16, 6u64), (0, 1 << 25), (0, 0), (8, 65), (8, 0), (8, u64::MAX)] {
        let bytes = forged(&good, META + at, &with.to_le_bytes());
        assert!(matches!(secret_key_from_bytes(&o.params, &bytes), Err(WireError::Rlwe(_))), "{at} {with}");
    }
}

#[test]
fn keys_and_bundles_are_bounded() {
    let o = Objects::new(&literal(), 1);
    let keys = o.keys.to_bytes().unwrap();
    let read = |at: usize, with: &[u8]| EvalKeys::from_bytes(&o.params, &forged(&keys, META + at, with)).unwrap_err();
    assert!(matches!(read(48, &4u64.to_le_bytes()), WireError::Corrupt { .. }), "even");
    assert!(matches!(read(48, &1025u64.to_le_bytes()), WireError::Corrupt { .. }), "over 2N");
    assert!(matches!(read(48, &0u64.to_le_bytes()), WireError::Corrupt { .. }), "twice");
    assert!(matches!(read(48, &1023u64.to_le_bytes()), WireError::Corrupt { .. }), "twice");
    assert!(matches!(read(8, &9u32.to_le_bytes()), WireError::Oversize { found: 9, limit: 1, .. }));
    assert!(matches!(read(8, &0u32.to_le_bytes()), WireError::Corrupt { .. }));

    let bundle = o.bundle.to_bytes().unwrap();
    let read = |at: usize, with: u32| {
        Bundle::<Ciphertext>::from_bytes(&o.params, &forged(&bundle, META + at, &with.to_le_bytes()))
    };
    assert!(matches!(read(0, 65_537), Err(WireError::Oversize { found: 65_537, limit: 65_536, .. })));
    assert!(matches!(read(0, 60_000), Err(WireError::Corrupt { .. })));
    assert!(matches!(read(4, 65_537), Err(WireError::Oversize { .. })));
    assert!(matches!(read(4, 65_536), Err(WireError::Corrupt { .. })));
    let long = Bundle::<Ciphertext>::new(&o.params, o.secret.id(), vec![0; 65_537], Vec::new());
    assert!(matches!(long, Err(WireError::Oversize { .. })));
    let empty =
        Bundle::<Ciphertext>::new(&o.params, o.secret.id(), vec![7; 65_536], Vec::new()).unwrap().to_bytes().unwrap();
    assert_eq!(Bundle::<Ciphertext>::from_bytes(&o.params, &empty).unwrap().application(), [7; 65_536]);
}

#[test]
fn hostile_parameters_are_refused_before_building() {
    let o = Objects::new(&literal(), 1);
    let good = o.files().remove(0).1;
    let read = |at: usize, x: u32| params_from_bytes(&forged(&good, META + at, &x.to_le_bytes()));
    assert!(matches!(read(0, 18), Err(WireError::Oversize { .. })));
    assert!(matches!(read(0, 8), Err(WireError::Oversize { .. })));
    assert!(matches!(read(8, 3), Err(WireError::Corrupt { .. })));
    assert!(matches!(read(12, 1), Err(WireError::Corrupt { .. })));
    assert!(matches!(read(16, 127), Err(WireError::Corrupt { .. })));
    for at in [20, 24, 28] {
        assert!(matches!(read(at, 129), Err(WireError::Oversize { found: 129, limit: 128, .. })));
    }
    assert!(matches!(read(24, 128), Err(WireError::Corrupt { .. })));
    // A literal that reads well and builds to another hash.
    let stored = read(4, 21).unwrap();
    assert!(matches!(stored.build(), Err(WireError::WrongParameters { .. })));
    // One that claims more security than it has.
    assert!(matches!(read(16, 128).unwrap().build(), Err(WireError::Rlwe(RlweError::Insecure { .. }))));
}

#[test]
fn containers_in_memory() {
    let o = Objects::new(&literal(), 1);
    let bytes = o.keys.to_bytes().unwrap();
    let container = Container::from_bytes(&bytes).unwrap();
    assert_eq!(container.header().key(), o.secret.id());
    let count = container.header().segments().len();
    assert_eq!(count, 5);
    assert!(container.segment(count - 1).is_ok());
    assert!(matches!(container.segment(count), Err(WireError::Oversize { .. })));
    assert!(matches!(Container::from_bytes(&bytes[..9000]), Err(WireError::Truncated { part: Part::Segment(0), .. })));
}

/// No window of a secret key's file or words, and no secret seed, is in what is published.
#[test]
fn nothing_published_holds_the_secret() {
    let o = Objects::new(&literal(), 1);
    let secret = o.files().remove(1).1;
    let packed = &secret[4096..4096 + 128];
    let as_bytes: Vec<u8> = o.secret.coefficients().iter().map(|c| *c as u8).collect();
    let seeds = [[1u8; 32], [2; 32], [3; 32], [4; 32]].concat();
    for (name, bytes) in o.files() {
        if name != "secret_key" {
            for window in [packed, &as_bytes, &seeds].into_iter().flat_map(|s| s.chunks_exact(16)) {
                assert!(!bytes.windows(16).any(|w| w == window), "{name}");
            }
        }
    }
}
