//! The entries, run as their harnesses run them.

mod aes;

use std::path::PathBuf;
use sudare_submissions::driver::{Drive, Measured};
use sudare_testkit::sized;

fn drive(folder: &tempfile::TempDir) -> Drive {
    let programs = PathBuf::from(env!("CARGO_BIN_EXE_sudare-fetch")).parent().unwrap().to_owned();
    Drive {
        programs,
        folder: folder.path().join("root"),
        threads: 2,
        runs: sized(1, 3),
        images: None,
        insecure: Some(9),
    }
}

fn told(measured: &Measured) {
    println!("{}", serde_json::to_string(measured).unwrap());
    assert_eq!(measured.check, "ok");
}

/// The size of a toy, all of the protocol; one run here and three at full size.
#[test]
fn fetch_by_similarity() {
    let folder = tempfile::tempdir().unwrap();
    let size = sized(0, 1);
    for count_only in sized(vec![false], vec![true, false]) {
        let measured = drive(&folder).fetch(size, count_only).unwrap();
        assert!(measured.bytes["keys"] < 60_000_000 && measured.bytes["answer"] < 3_500_000);
        told(&measured);
    }
}

#[test]
fn zn_multiplication() {
    let folder = tempfile::tempdir().unwrap();
    for size in sized(vec![1], vec![0, 1, 2]) {
        let measured = drive(&folder).zn(size).unwrap();
        assert_eq!(measured.bytes["keys"], 0);
        told(&measured);
    }
}

#[test]
fn ml_inference() {
    let folder = tempfile::tempdir().unwrap();
    for size in sized(vec![1], vec![0, 1, 2]) {
        let measured = drive(&folder).mnist(size).unwrap();
        assert_eq!(measured.bytes["keys"], 0);
        told(&measured);
    }
}

/// Over a small ring: at full size the two steps of the server take minutes.
#[test]
fn transciphering() {
    let folder = tempfile::tempdir().unwrap();
    for size in sized(vec![0], vec![0, 1]) {
        let measured = drive(&folder).transcipher(size).unwrap();
        assert!(measured.bytes["keys"] > 0 && measured.bytes["words"] > 0);
        told(&measured);
    }
}
