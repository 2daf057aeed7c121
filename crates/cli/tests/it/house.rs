//! The rules of ARCHITECTURE.md that a test can keep, read off the sources.
//!
//! Where a rule does not hold everywhere yet, the files that break it are listed: a new one fails, and so does one
//! that is listed and no longer breaks it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn collect(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        match entry.is_dir() {
            true => collect(&entry, out),
            false if entry.extension().is_some_and(|e| e == "rs") => out.push(entry),
            false => {}
        }
    }
}

/// Each file of the crates' sources, by its name below `crates`, without comments and unit tests.
fn sources(crates: &[&str]) -> Vec<(String, String)> {
    let base = root().join("crates").canonicalize().unwrap();
    let mut files = Vec::new();
    crates.iter().for_each(|name| collect(&base.join(name).join("src"), &mut files));
    let read = |path: &PathBuf| {
        let name = path.strip_prefix(&base).unwrap().to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        (name, lines.collect::<Vec<_>>().join("\n"))
    };
    let out: Vec<_> = files.iter().map(read).filter(|(name, _)| !name.ends_with("/tests.rs")).collect();
    assert!(out.len() > 10 * crates.len() / 2, "{} files of {crates:?}", out.len());
    out
}

/// Files with one of these words are exactly those of the list.
#[track_caller]
fn only(rule: &str, crates: &[&str], words: &[&str], listed: &[&str]) {
    let has = |code: &str| words.iter().any(|word| code.contains(word));
    let found: BTreeSet<String> =
        sources(crates).into_iter().filter(|(_, code)| has(code)).map(|(name, _)| name).collect();
    let listed: BTreeSet<String> = listed.iter().map(|name| (*name).into()).collect();
    let new: Vec<_> = found.difference(&listed).collect();
    assert!(new.is_empty(), "{rule}: {new:?} must not have {words:?}");
    let idle: Vec<_> = listed.difference(&found).collect();
    assert!(idle.is_empty(), "{rule}: take {idle:?} off the list");
}

const LIBRARIES: &[&str] = &["ring", "cuda", "rlwe", "gpu", "he", "store", "tfhe", "matrix", "genome"];
const ABOVE_RING: &[&str] = &["rlwe", "gpu", "he", "store", "tfhe", "matrix", "genome", "serve", "cli", "py"];

#[test]
fn arrows_point_one_way() {
    let allowed: &[(&str, &[&str])] = &[
        ("ring", &[]),
        ("cuda", &["ring"]),
        ("rlwe", &["ring"]),
        ("gpu", &["ring", "cuda", "rlwe"]),
        ("he", &["ring", "rlwe"]),
        ("tfhe", &["ring", "rlwe"]),
        ("store", &["ring", "rlwe"]),
        ("matrix", &["ring", "rlwe", "cuda", "gpu", "he", "store"]),
        ("genome", &["ring", "rlwe", "he", "store", "tfhe"]),
        ("serve", &["ring", "rlwe", "matrix", "genome"]),
        ("cli", &["ring", "rlwe", "he", "store", "tfhe", "matrix", "genome", "serve"]),
        ("py", &["ring", "cuda", "rlwe", "he", "store", "tfhe", "matrix", "genome", "cli"]),
    ];
    for (name, below) in allowed {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let section = manifest.split("\n[").find(|s| s.starts_with("dependencies]")).unwrap();
        for line in section.lines().filter(|line| line.starts_with("sudare-")) {
            let used = line.trim_start_matches("sudare-").split(['.', ' ', '=']).next().unwrap();
            assert!(below.contains(&used), "{name} uses {used}");
        }
    }
}

#[test]
fn only_the_ring_may_be_unsafe() {
    for name in ABOVE_RING {
        let text = fs::read_to_string(root().join("crates").join(name).join("src/lib.rs")).unwrap();
        assert!(text.contains("#![forbid(unsafe_code)]"), "{name}");
    }
}

#[test]
fn the_kernel_family_is_chosen_in_one_file() {
    let detection = ["is_x86_feature_detected!", "is_aarch64_feature_detected!"];
    only("detection", LIBRARIES, &detection, &["ring/src/kernel/arm/mod.rs", "ring/src/kernel/x86/tokens.rs"]);
    only("a family by its name", ABOVE_RING, &["Family::Portable", "Family::Neon", "Family::Avx"], &[]);
}

#[test]
fn no_environment_clock_or_home_in_libraries() {
    let environment = ["env::var", "env::current", "env::args", "\"HOME\"", "home_dir"];
    // The first is for test suites, which have no `main`: no release build contains it.
    only("environment", LIBRARIES, &environment, &["ring/src/kernel/platform.rs"]);
    // It wakes a watch that its caller set. What measures a machine takes a clock.
    only("clock", LIBRARIES, &["Instant", "SystemTime"], &["ring/src/interrupt.rs"]);
}

#[test]
fn a_broken_invariant_is_no_zero() {
    for (name, code) in sources(LIBRARIES) {
        let code: String = code.split_whitespace().collect();
        for (at, _) in code.match_indices(".inv(") {
            let rest: String = code[at..].chars().take(60).collect();
            assert!(!rest.split(';').next().unwrap_or_default().contains(".unwrap_or("), "{name}: {rest}");
        }
    }
}

/// Python's classes and exit codes follow the kind of an error, and every kind is named.
#[test]
fn errors_are_mapped_without_a_catch_all() {
    for (name, mapping) in [("cli", "fn class_of("), ("py", "fn class("), ("rlwe", "fn of_contents(")] {
        let path = if name == "rlwe" { "rlwe/src/wire/error.rs".into() } else { format!("{name}/src/error.rs") };
        let (_, code) = sources(&[name]).into_iter().find(|(file, _)| *file == path).unwrap();
        let body = code.split(mapping).nth(1).unwrap().split("\n}").next().unwrap();
        assert!(body.contains("ErrorKind::Internal") && !body.contains("_ =>"), "{path}");
    }
}

/// Limbs, words and the threads that share them belong to `ring`: what is above calls operations of `ring::ops` on
/// whole polynomials. Independent jobs (ciphertexts, keys, blocks) go through `threads::map` and its like.
///
/// `tfhe` is not asked: its one polynomial has one prime, and its hot loop is an operation of `ring` of its own
/// (`kernel/external.rs`).
#[test]
fn no_loop_over_limbs_or_words_above_ring() {
    let words = [
        ".limb(",
        ".limb_mut(",
        ".limbs()",
        ".words()",
        ".words_mut(",
        "for_each_chunk",
        "for_each_mut",
        "column_blocks",
        "Buffer::",
        "Limb::",
        "PackedPairs",
    ];
    let listed = [
        // Bytes of residues on the wire.
        "rlwe/src/wire/packing.rs",
        "genome/src/answer_bits.rs",
        "genome/src/trie/server.rs",
        // A message: its values modulo the plaintext modulus, which is no prime of a ciphertext.
        "he/src/bv/plaintext.rs",
        "he/src/integer/encode.rs",
        "he/src/integer/params.rs",
    ];
    only("limbs and words", &["rlwe", "he", "matrix", "genome", "serve", "cli", "py"], &words, &listed);
}
