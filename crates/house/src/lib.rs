//! Reads the sources, for the tests of the rules in ARCHITECTURE.md (`tests/it`). Nothing is shipped of it.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files of Rust below a folder.
fn collect(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        match entry.is_dir() {
            true if entry.ends_with("target") => {}
            true => collect(&entry, out),
            false if entry.extension().is_some_and(|e| e == "rs") => out.push(entry),
            false => {}
        }
    }
}

/// Each file of Rust below these folders of the repository, tests and comments among it, by its name.
pub fn files(folders: &[&str]) -> Vec<(String, String)> {
    let base = root().canonicalize().unwrap();
    let mut files = Vec::new();
    folders.iter().for_each(|folder| collect(&base.join(folder), &mut files));
    let name = |path: &PathBuf| path.strip_prefix(&base).unwrap().to_string_lossy().replace('\\', "/");
    files.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// Each file of the crates' sources, by its name below `crates`, without comments and unit tests.
pub fn sources(crates: &[&str]) -> Vec<(String, String)> {
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
pub fn only(rule: &str, crates: &[&str], words: &[&str], listed: &[&str]) {
    let has = |code: &str| words.iter().any(|word| code.contains(word));
    let found: BTreeSet<String> =
        sources(crates).into_iter().filter(|(_, code)| has(code)).map(|(name, _)| name).collect();
    let listed: BTreeSet<String> = listed.iter().map(|name| (*name).into()).collect();
    let new: Vec<_> = found.difference(&listed).collect();
    assert!(new.is_empty(), "{rule}: {new:?} must not have {words:?}");
    let idle: Vec<_> = listed.difference(&found).collect();
    assert!(idle.is_empty(), "{rule}: take {idle:?} off the list");
}
