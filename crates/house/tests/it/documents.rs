//! Documents use the words of the field: the glossary of CONTRIBUTING.md names those that they replace.

use std::fs;
use std::path::{Path, PathBuf};
use sudare_house::root;

const GLOSSARY: &str = include_str!("../../../../CONTRIBUTING.md");

/// The words in a column of the glossary.
pub fn replaced(column: &str) -> Vec<&'static str> {
    let table = GLOSSARY.split("### Glossary").nth(1).unwrap_or_default();
    let mut rows = table.lines().filter(|line| line.starts_with('|')).map(|line| line.split('|').collect::<Vec<_>>());
    let place = rows.next().unwrap().iter().position(|cell| cell.trim() == column).unwrap();
    rows.skip(1).flat_map(|row| row[place].split(',')).map(str::trim).filter(|word| !word.is_empty()).collect()
}

/// The documents of a reader: notes tell of the past, and the changelog of what is gone.
fn documents() -> Vec<PathBuf> {
    let mut found = ["README.md", "ARCHITECTURE.md", "RELEASING.md", "SECURITY.md", "docs/compare.md", "docs/speed.md"]
        .map(|name| root().join(name))
        .to_vec();
    for folder in ["docs/guide", "docs/explained"] {
        pages(&root().join(folder), &mut found);
    }
    found
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
}

/// The text outside of code, in lower case, with one blank between words.
fn prose(text: &str) -> String {
    let outside: String = text.split("```").step_by(2).collect();
    let words: String = outside.split('`').step_by(2).collect();
    words.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a phrase stands in a text, as whole words.
fn has(text: &str, phrase: &str) -> bool {
    let letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(phrase)
        .any(|(at, _)| !letter(text[..at].chars().next_back()) && !letter(text[at + phrase.len()..].chars().next()))
}

#[test]
fn words() {
    let coined = replaced("Not in prose");
    assert!(coined.contains(&"on paper") && coined.len() >= 8, "{coined:?}");
    assert!(has(&prose("It is\non  paper, `x`"), "on paper") && !has(&prose("`on paper` on papers"), "on paper"));
    let found = documents();
    assert!(found.len() > 25, "{}", found.len());
    for path in found {
        let text = prose(&fs::read_to_string(&path).unwrap());
        let wrong: Vec<_> = coined.iter().filter(|phrase| has(&text, phrase)).collect();
        assert!(
            wrong.is_empty(),
            "{}: {wrong:?}; the glossary of CONTRIBUTING.md has the field's words",
            path.display()
        );
    }
}

/// What a page of the guide lacks.
fn lacking(page: &str) -> Vec<&'static str> {
    let parts = ["**Task.** ", "## What it costs", "## What can go wrong", "**Next:** "];
    parts.into_iter().filter(|part| !page.lines().any(|line| line.starts_with(part))).collect()
}

/// A page of the guide has a task, what it costs, what can go wrong, and what to read next.
#[test]
fn pages_of_the_guide_have_their_parts() {
    assert_eq!(lacking("**Task.** You add.\n\n## What it costs\n\n**Next:** more."), ["## What can go wrong"]);
    let mut found = Vec::new();
    pages(&root().join("docs/guide"), &mut found);
    assert!(found.len() > 20, "{}", found.len());
    for path in found {
        let lacks = lacking(&fs::read_to_string(&path).unwrap());
        assert!(lacks.is_empty(), "{} lacks {lacks:?}", path.display());
    }
}

/// A note of `docs/design` says what its status is and since when, and is in the list of notes.
#[test]
fn notes_have_a_status() {
    let folder = root().join("docs/design");
    let list = fs::read_to_string(folder.join("README.md")).unwrap();
    let mut found = Vec::new();
    pages(&folder, &mut found);
    found.retain(|path| !path.ends_with("README.md"));
    assert!(found.len() > 30, "{}", found.len());
    for path in found {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let line = text.lines().take(4).find_map(|line| line.strip_prefix("Status: "));
        let status = line.unwrap_or_else(|| panic!("{name}: no line `Status: …` below its title"));
        let (word, date) = status.split_once(", ").unwrap_or((status, ""));
        assert!(["proposed", "accepted", "superseded"].contains(&word), "{name}: {word}");
        let date: Vec<&str> = date.split([' ', '.']).take(3).collect();
        let number = |at: usize| date.get(at).and_then(|part| part.parse::<u32>().ok());
        assert!(number(0).is_some_and(|day| (1..=31).contains(&day)) && number(2) >= Some(2026), "{name}: {status}");
        assert!(list.contains(&format!("]({name})")), "docs/design/README.md does not list {name}");
    }
}

/// Files that a document for readers, or a chapter on the inside, names in back quotes exist.
#[test]
fn named_files_exist() {
    let mut all = documents();
    pages(&root().join("docs/internals"), &mut all);
    all.extend(["CONTRIBUTING.md", "docs/wire-format.md"].map(|name| root().join(name)));
    let folders = ["crates/", "python/", "bench/", "docs/", "fuzz/", "scripts/"];
    let mut named = 0;
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        let outside: String = text.split("```").step_by(2).collect();
        for name in outside.split('`').skip(1).step_by(2) {
            let file = name.split("::").next().unwrap_or_default();
            let pattern = file.contains(['*', '{', '<', '…', ' ']);
            if pattern || !folders.iter().any(|folder| file.starts_with(folder)) {
                continue;
            }
            named += 1;
            assert!(root().join(file).exists(), "{} names {file}, which does not exist", path.display());
        }
    }
    assert!(named > 30, "{named}");
}
