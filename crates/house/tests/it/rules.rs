//! The rules of ARCHITECTURE.md that a test can keep, read off the sources.
//!
//! Where a rule does not hold everywhere yet, the files that break it are listed: a new one fails, and so does one
//! that is listed and no longer breaks it.

use crate::documents::replaced;
use std::collections::BTreeSet;
use std::fs;
use sudare_house::{files, only, root, sources};

const LIBRARIES: &[&str] = &[
    "ring", "cuda", "rlwe", "gpu", "exact", "he", "store", "tfhe", "expr", "packings", "methods", "plan", "session",
    "genome", "search", "models", "lattigo",
];
const ABOVE_RING: &[&str] = &[
    "rlwe", "gpu", "exact", "he", "store", "tfhe", "expr", "packings", "methods", "plan", "session", "genome",
    "search", "models", "lattigo", "serve", "cli", "py",
];

/// Which crates a crate may use, in its tests and build scripts too.
#[test]
fn arrows_point_one_way() {
    let allowed: &[(&str, &[&str])] = &[
        ("ring", &[]),
        ("cuda", &["ring"]),
        ("rlwe", &["ring"]),
        ("gpu", &["ring", "cuda", "rlwe"]),
        ("exact", &["ring", "rlwe"]),
        ("tfhe", &["ring", "rlwe"]),
        ("he", &["ring", "rlwe", "exact", "tfhe"]),
        ("store", &["ring", "rlwe"]),
        ("expr", &["ring"]),
        ("packings", &["ring", "rlwe", "he", "expr"]),
        ("methods", &["ring", "rlwe", "he", "exact", "store", "expr"]),
        ("plan", &["ring", "rlwe", "he", "exact", "expr", "methods"]),
        ("session", &["ring", "rlwe", "cuda", "gpu", "he", "exact", "store", "expr", "methods", "plan"]),
        ("genome", &["ring", "rlwe", "exact", "store", "tfhe"]),
        ("search", &["ring", "rlwe", "he", "store"]),
        ("models", &["ring", "rlwe", "he"]),
        ("lattigo", &["ring", "rlwe", "he", "exact"]),
        ("serve", &["ring", "rlwe", "store", "expr", "methods", "plan", "session", "genome", "search", "models"]),
        (
            "cli",
            &[
                "ring", "rlwe", "exact", "he", "store", "tfhe", "expr", "methods", "plan", "session", "genome",
                "search", "models", "serve",
            ],
        ),
        // Of `serve` it has the client alone: see `nothing_of_a_server_in_a_wheel`.
        (
            "py",
            &[
                "ring", "cuda", "rlwe", "exact", "he", "store", "tfhe", "expr", "methods", "plan", "session", "genome",
                "search", "models", "lattigo", "serve",
            ],
        ),
        ("extension", &["py"]),
        ("testkit", &[]),
        ("house", &[]),
    ];
    // Tests that bring objects of a scheme to a crate that knows none, one that steps the machine code of both
    // schemes, and one that scans memory for the secrets of all of them.
    let of_tests = [("gpu", "he"), ("gpu", "exact"), ("store", "he"), ("he", "packings")];
    let mut idle: BTreeSet<_> = of_tests.into();
    for entry in fs::read_dir(root().join("crates")).unwrap().map(|e| e.unwrap().path()) {
        let name = entry.file_name().unwrap().to_str().unwrap();
        let (_, below) = allowed.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("where is {name}?"));
        let manifest = fs::read_to_string(entry.join("Cargo.toml")).unwrap();
        for section in manifest.split("\n[") {
            let (header, lines) = section.split_once(']').unwrap_or_default();
            if !header.ends_with("dependencies") {
                continue;
            }
            for line in lines.lines().filter_map(|line| line.strip_prefix("sudare-")) {
                let used = line.split(['.', ' ', '=']).next().unwrap();
                let of_tests = header == "dev-dependencies" && (used == "testkit" || of_tests.contains(&(name, used)));
                idle.retain(|(user, other)| !(of_tests && (*user, *other) == (name, used)));
                assert!(below.contains(&used) || of_tests, "{name} uses {used} ({header})");
            }
        }
    }
    assert!(idle.is_empty(), "take {idle:?} off the list");
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

/// What a look-up or a search did not find is no 0 and no other value in its place, where it has to be there: it is
/// an error, of an internal kind if nothing from outside can cause it.
#[test]
fn a_broken_invariant_is_no_zero() {
    // Here to have found nothing has a meaning of its own.
    let meant = [
        // Zero has no digits.
        "iter_u64_digits().next().unwrap_or(0",
        // Bytes that are too short: their length is checked next.
        "check_blocks(segments.get(..blocks).unwrap_or_default(",
        "application().get(..encrypted::HEADER_BYTES).unwrap_or_default(",
        "columns.next().unwrap_or_default(",
        // Elements that are too few: their number is checked next.
        "all.get(i*size..(i+1)*size).unwrap_or_default(",
        // A tenant that has not come yet has none; an empty file has no separator; Python has 0 for a row without an end.
        "taken.tenants.get(tenant).copied().unwrap_or(0",
        "inner.served.get(&job.tenant).copied().unwrap_or(0",
        "lines.take(2).last().unwrap_or_default(",
        "r.end_pos.unwrap_or(0",
        // A file has 0 for a length that is not known.
        "c.contig.length.unwrap_or(0",
        // A ciphertext without a key's name fits any.
        "owner.1.unwrap_or(self.id",
        // Nothing in common is a match of length 0; a polynomial of zeros has degree 0; no set is precise enough; an
        // empty matrix is not shifted; what fits no level is at the lowest; a dimension below the table is at its end.
        "find(|l|shared(*l)>=eps).unwrap_or(0",
        "rposition(|c|*c!=Complex64::ZERO).unwrap_or(0",
        "nth(least).unwrap_or_default(",
        "matrix.keys().next().copied().unwrap_or(0",
        "divided(noise,level,*l)<=2.0*rounding).unwrap_or(0",
        "LIMITS.iter().rposition(|(n,..)|*n<=dimension).unwrap_or(0",
        // Where no fewer primes are enough, all of them.
        "(1..self.aux.len()).find(enough).unwrap_or(self.aux.len(",
        // A modulus without slots has a value for each coefficient.
        "self.0.slots.unwrap_or(self.degree(",
        // A search without an end.
        "(1..).find(|b|b*b>=self.dasi64).unwrap_or(1",
        "(1..).find(|b|b*b>=2*tile).unwrap_or(1",
    ];
    let mut idle: BTreeSet<&str> = meant.into();
    for (name, code) in sources(&[LIBRARIES, &["serve", "cli", "py"]].concat()) {
        let code: String = code.split_whitespace().collect();
        let others =
            ["(0)", "(0.0)", "(1)", "(i128::MAX)", "(self.", "_default("].map(|with| format!(".unwrap_or{with}"));
        for (at, found) in others.iter().flat_map(|other| code.match_indices(other.as_str())) {
            let stands = |text: &&&str| {
                let there = text.find(".unwrap_or").unwrap();
                code.get(at.saturating_sub(there)..).is_some_and(|code| code.starts_with(**text))
            };
            match meant.iter().find(stands) {
                Some(text) => {
                    idle.remove(text);
                }
                None => {
                    let last: Vec<&str> = code[..at].split_inclusive(['{', '}', ';']).collect();
                    assert!(!may_be_missing(&code[..at]), "{name}: {}{found}", last.last().unwrap());
                }
            }
        }
    }
    assert!(idle.is_empty(), "take {idle:?} off the list");
}

/// Whether an expression ends in a look-up, a search or a field, which may have nothing.
fn may_be_missing(expression: &str) -> bool {
    let calls = "as_ref as_deref copied cloned find find_map first get get_mut inv last next nth pop position rposition try_from";
    // What stands before the last name, and the name.
    let last = |text: &str| {
        let name: String = text.chars().rev().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        (text[..text.len() - name.len()].to_owned(), name.chars().rev().collect::<String>())
    };
    if !expression.ends_with(')') {
        return last(expression).0.ends_with('.');
    }
    let mut depth = 0;
    let open = expression.bytes().rposition(|b| {
        depth += i32::from(b == b')') - i32::from(b == b'(');
        depth == 0
    });
    let (_, name) = last(&expression[..open.unwrap()]);
    calls.split(' ').any(|call| call == name)
}

/// What products and circuits take and promise is learned by running them on a backend that computes nothing: a method
/// has no amounts of work, no list of keys and no formula of errors.
#[test]
fn figures_come_from_simulation() {
    let counts =
        "passes transforms tensor key_switch rotation rescale mul_plain inner_product decompose mod_down hoisted_sum";
    let work: Vec<String> = counts.split(' ').map(|count| format!("Work::{count}(")).collect();
    let mut figures: Vec<&str> = work.iter().map(String::as_str).collect();
    figures.extend(["galois: ", "_VARIANCE", " Work { ", "(Work { ", "&Work { ", "    Work {\n"]);
    only("figures", &["methods", "plan", "session"], &figures, NOT_SIMULATED);
}

/// Circuits are written once, on `rlwe::Backend`: nothing in them is the processor's.
#[test]
fn circuits_name_no_backend() {
    let words =
        ["Cpu", "impl Evaluator {", "&Evaluator,", "&Evaluator)", "Evaluator::new(", "Poly<", "Digits", "ExtendedPair"];
    let listed = [
        // Times of this processor.
        "he/src/circuits/cost.rs",
        // The backend that a bootstrapper has where none is named.
        "he/src/circuits/bootstrapping/refresh.rs",
    ];
    let circuits = sources(&["he"]).into_iter().filter(|(name, _)| name.starts_with("he/src/circuits/"));
    let named = circuits.filter(|(_, code)| words.iter().any(|word| code.contains(word)));
    let found: BTreeSet<String> = named.map(|(name, _)| name).collect();
    assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), listed.into(), "circuits of one backend");
}

/// What switches keys is of `ring`, `cuda` and the backends: above them nobody touches digits.
#[test]
fn no_gadget_above_the_backends() {
    let above =
        ["he", "exact", "store", "expr", "packings", "methods", "plan", "session", "genome", "serve", "cli", "py"];
    only("gadgets", &above, &["gadget", "RnsGadget", "LevelTables", "tables(level)"], &[]);
}

/// Where figures are still worked out by formulas, and where they are defined and priced.
const NOT_SIMULATED: &[&str] = &[
    // What figures are, and how they are read off a ledger.
    "methods/src/portable.rs",
    "methods/src/product.rs",
];

/// What reads, composes and approximates a network knows of encryption nothing but polynomials.
#[test]
fn networks_are_plain() {
    let encrypted = [
        "apart",
        "choice",
        "circuit",
        "client",
        "error",
        "keys",
        "layout",
        "message",
        "model",
        "noise",
        "plan",
        "server",
        "shared",
        "weights",
        "forest/bounds",
        "forest/circuit",
        "forest/client",
        "forest/model",
        "forest/plan",
        "forest/server",
    ];
    let plain = sources(&["models"]).into_iter().filter(|(name, _)| {
        let file = name.trim_start_matches("models/src/").trim_end_matches(".rs");
        !encrypted.contains(&file)
    });
    let mut count = 0;
    for (name, code) in plain {
        count += 1;
        for word in ["sudare_rlwe", "sudare_he::ckks", "Evaluator", "Ciphertext", "SecretKey"] {
            assert!(!code.contains(word), "{name} names {word}");
        }
    }
    assert!(count >= 10, "{count}");
}

/// Product methods and operations of expressions run on any backend: they name no device's, and the processor's evaluator only
/// where ciphertexts of a client are handed over.
#[test]
fn methods_name_no_backend() {
    only("a device", &["methods", "plan"], &["sudare_gpu", "sudare_cuda", "Ciphertexts"], &[]);
    // It keeps its tables for the processor.
    let listed = ["methods/src/products/jiang.rs"];
    only("the processor's evaluator", &["methods"], &["Cpu", "rlwe::Ciphertext"], &listed);
    // What runs on ciphertexts and in a simulation takes `Evaluator<B>`.
    let code = sources(&["methods"]);
    for (name, text) in &code {
        for (at, _) in text.match_indices("fn multiply<").chain(text.match_indices("fn evaluate<")) {
            let signature = text[at..].split('{').next().unwrap();
            assert!(signature.contains("B: Backend"), "{name}: {signature}");
        }
    }
    let generic = |file: &str, function: &str| {
        let (_, text) = code.iter().find(|(name, _)| name == file).unwrap_or_else(|| panic!("where is {file}?"));
        assert!(
            text.contains(&format!("fn {function}<B: Backend>")),
            "{file}: {function} is not generic in the backend"
        );
    };
    for function in ["evaluate", "matmul", "aligned"] {
        generic("methods/src/circuit.rs", function);
    }
    let methods = code.iter().filter(|(name, _)| name.starts_with("methods/src/products/"));
    let plans: Vec<&String> =
        methods.filter(|(_, text)| text.contains("impl Portable for")).map(|(name, _)| name).collect();
    assert!(plans.len() >= 8, "{plans:?}");
    plans.iter().for_each(|file| generic(file, "multiply"));
}

/// Identifiers are made of the field's words: rotation, automorphism, simulated, remote, progress, layout. These crates keep
/// to them; a name that another crate gives stands in the list.
#[test]
fn words() {
    let coined = replaced("Not in names");
    assert!(coined.len() >= 10, "{coined:?}");
    let others = [
        // What Rust, `ring`, `rlwe` and `he` call so.
        "expect", "told", "sketch", "Sketch", "settled", "InTurn",
    ];
    let crates = ["expr", "methods", "plan", "session", "packings", "models", "search", "serve"];
    for (name, code) in sources(&crates) {
        for identifier in identifiers(&code) {
            let word = words_of(identifier).into_iter().find(|word| coined.contains(&word.as_str()));
            let word = word.filter(|_| !others.contains(&identifier));
            assert!(word.is_none(), "{name}: {identifier}, of which {word:?} is a coined word: see CONTRIBUTING.md");
        }
    }
    for (name, code) in sources(LIBRARIES) {
        assert!(!code.contains("fn expect("), "{name}: a check is called require; Rust's expect panics");
    }
}

/// Names in code, without what stands in strings.
fn identifiers(code: &str) -> impl Iterator<Item = &str> {
    let outside = code.lines().flat_map(|line| line.split('"').step_by(2));
    let names = outside.flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_'));
    names.filter(|name| name.starts_with(|c: char| c.is_alphabetic()))
}

/// The words of `snake_case` and `CamelCase`, in lower case.
fn words_of(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in identifier.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c != '_', words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// A fork copies one thread: a lock that another one held, or a cell that another one was filling, would stay shut in the
/// child for ever. Shared state is in a `ring::memo`.
#[test]
fn no_lock_that_a_fork_can_leave_shut() {
    let crates: Vec<&str> = LIBRARIES.iter().copied().chain(["py"]).collect();
    only("cells filled under a lock", &crates, &["OnceLock", "LazyLock", "OnceCell", "Once::call"], &[]);
    let locked: Vec<&str> = LOCKED.iter().map(|(file, _)| *file).collect();
    only("locks", &crates, &[": Mutex<", ": RwLock<", "sync::Mutex<", "sync::RwLock<"], &locked);
}

/// Files with a lock in a value that no forked process uses, and why not.
const LOCKED: &[(&str, &str)] = &[
    ("cuda/src/arena.rs", "a device is its process's own"),
    ("cuda/src/device.rs", "a device is its process's own"),
    ("cuda/src/driver/card.rs", "a device is its process's own"),
    ("cuda/src/driver/emulator.rs", "a device is its process's own"),
    ("gpu/src/evaluator.rs", "a device is its process's own"),
    ("py/src/work.rs", "ends with the call"),
    ("ring/src/threads.rs", "ends with the call"),
    ("rlwe/src/simulated.rs", "ends with the call"),
    ("store/src/ahead.rs", "ends with the call"),
    ("store/src/keys.rs", "one for each process"),
    ("store/src/writer.rs", "ends with the call"),
];

/// An operation is in the one list, and beside it in few files: what a circuit, an exact computation and a context make of
/// it, and what an expression is made of. Whoever needs another file asks `Operation` a question there.
#[test]
fn an_operation_is_told_once() {
    const MOST: usize = 4;
    let code = sources(&["expr", "methods", "plan", "session", "genome", "serve", "cli", "py"]);
    let (_, list) = code.iter().find(|(file, _)| file == "expr/src/operation.rs").unwrap();
    let list = list.split("pub enum Operation {").nth(1).unwrap().split("\n}").next().unwrap();
    let word = |text: &str| text.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned();
    let variants: Vec<String> =
        list.lines().filter_map(|line| line.strip_prefix("    ")).map(word).filter(|name| !name.is_empty()).collect();
    assert!(variants.len() > 15, "{variants:?}");
    for variant in variants {
        let named = |text: &str| text.split("Operation::").skip(1).any(|rest| word(rest) == variant);
        let files: Vec<&String> = code.iter().filter(|(_, text)| named(text)).map(|(file, _)| file).collect();
        assert!((1..=MOST).contains(&files.len()), "{variant} is named in {files:?}");
    }
}

/// The modules of Python's package, by their names.
fn python() -> Vec<(String, String)> {
    let files = fs::read_dir(root().join("python/sudare")).unwrap().map(|e| e.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
        .collect()
}

/// The rows of the table of kinds: kind and class.
fn kinds() -> Vec<[String; 2]> {
    let text = fs::read_to_string(root().join("crates/ring/src/kind.rs")).unwrap();
    let rows = text.split("\nkinds! {").nth(1).unwrap().split("\n}").next().unwrap();
    let unquoted = |word: &str| word.trim().trim_matches('"').to_owned();
    let row = |line: &str| {
        let (kind, rest) = line.trim().strip_suffix(';')?.split_once(": ")?;
        let words: Vec<&str> = rest.split(',').collect();
        Some([kind.to_owned(), unquoted(words[3])])
    };
    let rows: Vec<_> = rows.lines().filter_map(row).collect();
    assert!(rows.len() > 30);
    rows
}

/// Names, exit codes, statuses and Python's classes of kinds are rows of one table (`ring/src/kind.rs`), which the compiler
/// completes. Nobody else maps a kind to anything, and every error says its kind without a catch-all.
#[test]
fn errors_are_mapped_without_a_catch_all() {
    let (kinds, all) = (kinds(), [LIBRARIES, &["serve", "cli", "py", "extension"]].concat());
    let mut texts: Vec<(String, String)> = sources(&all);
    texts.retain(|(name, _)| name != "ring/src/kind.rs");
    for (name, code) in &texts {
        let code: String = code.split_whitespace().collect();
        for [kind, ..] in &kinds {
            for (at, _) in code.match_indices(&format!("ErrorKind::{kind}=>")) {
                let before = &code[..at];
                let another = before.ends_with("io::") || before.ends_with("csv::") || before.ends_with("==");
                assert!(another, "{name}: an arm for ErrorKind::{kind}; add a column to the table of kinds");
            }
        }
        for body in code.split("fnkind(&self)->ErrorKind{").skip(1) {
            let body = body.split("fnsystem(").next().unwrap().split("impl").next().unwrap();
            assert!(!body.contains("_=>"), "{name}: a kind by a catch-all");
        }
    }
    // Each error has a kind, but for one that is turned into another at once, the answer that carries its kind as text, and
    // what ends work that somebody wants to end.
    let without = ["serve/src/digest.rs", "serve/src/problem.rs", "ring/src/interrupt.rs"];
    let mut found = BTreeSet::new();
    for (name, code) in &texts {
        if code.contains("thiserror::Error") && !code.contains("impl Kinded for ") {
            found.insert(name.as_str());
        }
    }
    assert_eq!(found, without.into(), "errors without `impl Kinded`");
    // Python reads the table by `_core.error_classes()`.
    texts.extend(python().into_iter().filter(|(name, _)| name != "__init__.py" && name != "_errors.py"));
    let classes = fs::read_to_string(root().join("python/sudare/_errors.py")).unwrap();
    for class in kinds.iter().map(|[_, class]| class).filter(|class| *class != "SudareError") {
        assert!(classes.contains(&format!("class {class}(")), "Python has no class {class}");
        for (name, text) in &texts {
            assert!(!text.contains(&format!("\"{class}\"")), "{name} names {class}; ask the table of kinds");
        }
    }
    for class in
        classes.lines().filter_map(|line| line.strip_prefix("class ")?.split_once("(SudareError")).map(|(c, _)| c)
    {
        // Memory that Python itself asks for, and what a remote server answers of a kind that has no class.
        let known =
            kinds.iter().any(|[_, known]| known == class) || matches!(class, "OutOfMemoryError" | "RemoteError");
        assert!(known, "no kind of error is a {class}");
    }
}

/// What is imported in Python has no server and no command line in it: `serve` without its feature `server`, and not `cli`.
#[test]
fn nothing_of_a_server_in_a_wheel() {
    let manifest = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    assert!(manifest("crates/py/Cargo.toml").lines().any(|line| line == "sudare-serve.workspace = true"));
    let workspace = manifest("Cargo.toml");
    let serve = workspace.lines().find(|line| line.starts_with("sudare-serve =")).unwrap();
    assert!(serve.contains("default-features = false"), "{serve}");
    let served = manifest("crates/serve/Cargo.toml");
    for server in ["axum", "hyper", "hyper-util", "http-body-util", "tokio", "tokio-rustls"] {
        let line = served.lines().find(|line| line.starts_with(&format!("{server} ="))).unwrap();
        assert!(line.contains("optional = true"), "{line}");
    }
}

/// Files are made in one place, whole or not at all, and in no secret key's place.
#[test]
fn no_second_writer() {
    let writers = [
        "File::create",
        "fs::write",
        "fs::rename",
        "fs::copy",
        "fs::hard_link",
        ".write(true)",
        ".append(true)",
        "tempfile",
    ];
    let crates = [LIBRARIES, &["serve", "cli", "py", "extension"]].concat();
    // The second changes a store in place, so that tests reach the checks behind its digests.
    let listed = ["store/src/atomic.rs", "store/src/reseal.rs"];
    only("files are made by store::atomic", &crates, &writers, &listed);
    for (name, text) in python() {
        for writer in
            ["write_text", "write_bytes", "os.replace", "os.rename", "tempfile", "\"w\"", "\"wb\"", "\"xb\"", "\"ab\""]
        {
            assert!(!text.contains(writer), "{name} has {writer}: write by _core.write_file");
        }
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
        "lattigo/src/layout.rs",
        "genome/src/trie/server.rs",
        // Residues as arrays of NumPy.
        "py/src/lowlevel/arrays.rs",
        // A message: its values modulo the plaintext modulus, which is no prime of a ciphertext.
        "packings/src/bv/plaintext.rs",
        "exact/src/encode.rs",
        "exact/src/params.rs",
        // A ciphertext of one prime, coefficient by coefficient, as LWE's words.
        "he/src/discrete/lwe.rs",
    ];
    let crates: Vec<&str> = ABOVE_RING.iter().copied().filter(|name| *name != "tfhe").collect();
    only("limbs and words", &crates, &words, &listed);
}

/// Reproducible numbers come from `testkit`, which the unit tests of every crate and the lab can use: it depends on none
/// of our crates.
#[test]
fn one_generator() {
    let all = files(&["crates", "bench", "fuzz"]);
    let with = |constant: &str| -> Vec<&str> {
        let has = |text: &str| text.replace('_', "").to_lowercase().contains(constant);
        all.iter().filter(|(_, text)| has(text)).map(|(name, _)| name.as_str()).collect()
    };
    assert_eq!(with(concat!("9e37", "79b9")), ["crates/testkit/src/random.rs"], "SplitMix64");
    for constant in [concat!("6364136", "223846793005"), concat!("5851f4", "2d4c957f2d"), concat!("x ^= x", " << 13")] {
        assert_eq!(with(constant), [""; 0], "a generator of its own");
    }
    let manifest = fs::read_to_string(root().join("crates/testkit/Cargo.toml")).unwrap();
    assert!(!manifest.lines().any(|line| line.starts_with("sudare-")), "testkit depends on a crate of ours");
}

/// Each crate links one binary of tests, `tests/it`; a second one needs a reason.
#[test]
fn one_test_binary() {
    let apart: BTreeSet<&str> = [
        // It steps its own machine code, without a harness.
        "tfhe/tests/constant_time.rs",
        // Scans of all memory and forks want a process without other tests.
        "he/tests/process/main.rs",
        "tfhe/tests/process/main.rs",
    ]
    .into();
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(root().join("crates")).unwrap().map(|e| e.unwrap()) {
        let name = entry.file_name().into_string().unwrap();
        let Ok(tests) = fs::read_dir(entry.path().join("tests")) else { continue };
        for test in tests.map(|e| e.unwrap().path()) {
            let main = if test.is_dir() { test.join("main.rs") } else { test };
            let file = main.strip_prefix(entry.path()).unwrap().to_str().unwrap();
            if main.exists() && main.extension().is_some_and(|e| e == "rs") && file != "tests/it/main.rs" {
                found.insert(format!("{name}/{file}"));
            }
        }
    }
    assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), apart);
}
