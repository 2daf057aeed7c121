//! The security page names tests that exist, and one for every claim of its table; the paper map names files that exist.

use std::path::Path;

const PAGE: &str = include_str!("../../../../docs/security.md");
const PAPERS: &str = include_str!("../../../../docs/papers.md");

/// Code in back quotes on a line that names a file of this repository.
fn references(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|code| {
        ["crates/", "python/", "bench/", "docs/", "fuzz/", "scripts/"].iter().any(|folder| code.starts_with(folder))
    })
}

/// What is wrong with a reference, `file` or `file::test`.
fn check(reference: &str) -> Result<(), String> {
    let (file, test) = reference.split_once("::").map_or((reference, None), |(file, test)| (file, Some(test)));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    if test.is_none() {
        return if path.exists() { Ok(()) } else { Err(format!("there is no {file}")) };
    }
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{file}: {e}"))?;
    let name = test.unwrap_or_default().rsplit("::").next().unwrap_or_default();
    match text.contains(&format!("fn {name}")) || text.contains(&format!("def {name}")) {
        true => Ok(()),
        false => Err(format!("{file} has no {name}")),
    }
}

#[test]
fn what_the_paper_map_names_exists() {
    let wrong: Vec<String> = PAPERS.lines().flat_map(references).filter_map(|r| check(r).err()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_the_page_names_exists() {
    let wrong: Vec<String> = PAGE.lines().flat_map(references).filter_map(|r| check(r).err()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(check("crates/he/tests/it/release.rs::no_such_test").is_err() && check("docs/none.md").is_err());
}

#[test]
fn every_claim_of_a_table_names_its_test() {
    let mut rows = 0;
    let mut shown_by = false;
    for line in PAGE.lines() {
        if !line.starts_with('|') {
            shown_by = false;
        } else if line.trim_end().ends_with("Shown by |") {
            shown_by = true;
        } else if shown_by && !line.starts_with("|---") {
            let last = line.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
            assert!(references(last).next().is_some(), "no test: {line}");
            rows += 1;
        }
    }
    assert!(rows > 15, "{rows} claims");
}
