//! ARCHITECTURE.md names files and items that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use sudare_house::{files, root};

const PAGE: &str = include_str!("../../../../ARCHITECTURE.md");
/// What defines the word after it.
const DEFINES: &[&str] =
    &["fn", "struct", "enum", "trait", "mod", "type", "const", "static", "class", "def", "define", "macro_rules"];
/// Words of the languages, of NumPy, of the command line and of errors' kinds.
const KNOWN: &[&str] = &[
    "NDArrayOperatorsMixin",
    "unsafe",
    "match",
    "repr",
    "SUDARE_KERNEL",
    "Internal",
    "matmul",
    "encrypt",
    "decrypt",
    "run",
    "keygen",
    "sudare",
    "improved3d",
    "bench",
    "fuzz",
    "server",
    "common",
];

/// The sources: how each file is named, the words that it has and those that it defines.
struct Sources(BTreeMap<String, [BTreeSet<String>; 2]>);

impl Sources {
    fn read() -> Self {
        let mut all = files(&["crates", "bench/src"]);
        for folder in ["python/sudare", "crates/cuda/kernels"] {
            for entry in fs::read_dir(root().join(folder)).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_file()) {
                let name = entry.file_name().unwrap().to_string_lossy().into_owned();
                all.push((format!("{folder}/{name}"), fs::read_to_string(&entry).unwrap_or_default()));
            }
        }
        let sets = |text: &str| {
            let words: Vec<&str> =
                text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
            let defined = words.windows(2).filter(|w| DEFINES.contains(&w[0])).map(|w| w[1].to_owned());
            [words.iter().map(|w| (*w).to_owned()).collect(), defined.collect()]
        };
        Self(all.into_iter().map(|(name, text)| (name, sets(&text))).collect())
    }

    /// Whether a path, or its end, is that of a file or a folder.
    fn has_path(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let inside = |name: &str| format!("/{name}/").contains(&format!("/{path}/"));
        root().join(path).exists() || self.0.keys().any(|name| inside(name)) || in_tree(&root().join("crates"), path)
    }

    /// Whether one file, or a module of a crate, has all of these names, the last of them defined there.
    fn has_item(&self, segments: &[&str]) -> bool {
        let Some((last, before)) = segments.split_last() else { return true };
        let module = |name: &str| format!("/{name}").replace(".rs", "/").contains(&format!("/{last}/"));
        self.0.iter().any(|(name, [words, defined])| {
            let here = |word: &str| words.contains(word) || name.contains(word.trim_start_matches("sudare_"));
            (defined.contains(*last) || module(name)) && before.iter().all(|word| here(word))
        })
    }
}

/// Whether a folder below has this path at its end: data that are no sources.
fn in_tree(folder: &Path, path: &str) -> bool {
    folder.join(path).exists()
        || fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().path())
            .any(|p| p.is_dir() && !p.ends_with("target") && !p.ends_with("src") && in_tree(&p, path))
}

/// What is wrong with a name in back quotes: `path`, `Item`, `module::Item::function(arguments)`, `Class.method`.
fn check(sources: &Sources, name: &str) -> Result<(), String> {
    let path = name.contains('/') || [".rs", ".py", ".md", ".json", ".cuh"].iter().any(|end| name.ends_with(end));
    if path {
        let name = name.split('<').next().unwrap_or_default();
        return if sources.has_path(name) { Ok(()) } else { Err(format!("there is no {name}")) };
    }
    let plain = name.split(['(', '{', '@', '&', ' ']).next().unwrap_or_default();
    // Generic arguments are no names.
    let (mut depth, mut bare) = (0, String::new());
    for c in plain.replace("::<", "<").chars() {
        depth += i32::from(c == '<') - i32::from(c == '>');
        if depth == 0 && c != '>' {
            bare.push(c);
        }
    }
    let segments: Vec<&str> = bare.split(['.', ':']).filter(|s| !s.is_empty() && !KNOWN.contains(s)).collect();
    if name.contains(' ') || sources.has_item(&segments) { Ok(()) } else { Err(format!("nothing defines {name}")) }
}

#[test]
fn what_the_page_names_exists() {
    let sources = Sources::read();
    let text: String = PAGE.split("```").step_by(2).collect();
    let names: BTreeSet<&str> = text.split('`').skip(1).step_by(2).collect();
    assert!(names.len() > 150, "{}", names.len());
    let wrong: Vec<String> = names.iter().filter_map(|name| check(&sources, name).err()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    for none in ["crates/none.rs", "none.rs", "NoSuchThing", "Plan::no_such_function", "Limb::place"] {
        assert!(check(&sources, none).is_err(), "{none}");
    }
}
