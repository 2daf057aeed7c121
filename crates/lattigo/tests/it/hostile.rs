//! Bytes that are no object: cuts, counts at their extremes, and the fuzz target on some changes of what Lattigo wrote.

#[allow(dead_code)]
#[path = "../../../../fuzz/src/mutation.rs"]
mod mutation;
#[path = "../../../../fuzz/src/lattigo.rs"]
mod target;

use target::{check, seeds};

#[test]
fn cuts_and_additions() {
    for bytes in seeds() {
        assert!(check(&bytes) >= 1);
        let cuts = (0..400).chain((400..bytes.len()).step_by(997)).chain([bytes.len() - 1]);
        for cut in cuts.filter(|cut| *cut < bytes.len()) {
            assert_eq!(check(&bytes[..cut]), 0, "{cut} of {} bytes", bytes.len());
        }
        assert_eq!(check(&[&bytes[..], &[0]].concat()), 0, "{} bytes and one", bytes.len());
    }
}

#[test]
fn counts_at_their_extremes() {
    for bytes in seeds() {
        // Every count stands at the start or behind the metadata.
        let starts = (0..80).chain(278..330).filter(|at| at + 8 <= bytes.len());
        for at in starts {
            for count in [0, 2, 3, 511, 513, 1 << 20, 1 << 32, 1 << 61, u64::MAX] {
                let mut changed = bytes.clone();
                changed[at..at + 8].copy_from_slice(&count.to_le_bytes());
                check(&changed);
            }
        }
    }
}

#[test]
fn changes() {
    let (whole, changed) = mutation::smoke(&seeds(), 200, target::mutate, |data| check(data) > 0);
    // Nothing says that a residue was changed: some are taken.
    assert!(whole == seeds().len() && changed > 50, "{whole} and {changed} are taken");
}
