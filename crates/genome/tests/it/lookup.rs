//! Protocol "lookup" against the plain search: the panel's own tables, and encrypted ones.

use crate::common;
use common::*;
use std::path::{Path, PathBuf};
use sudare_genome::lookup::{self, Client, EncryptedTables, Search, Set, Stage, Tables};
use sudare_genome::search::longest;
use sudare_genome::{GenomeError, Panel, Question, Shape};
use sudare_ring::random::Seed;
use sudare_ring::{ErrorKind, Kinded, Threads, threads};
use sudare_rlwe::wire::reseal_for_tests;
use sudare_store::StoreError;
use sudare_tfhe::circuit_bootstrap::CircuitKey;
use sudare_tfhe::wire::circuit_key_from_bytes;

struct World {
    place: Place,
    haplotypes: Vec<Vec<bool>>,
    panel: Panel,
    client: Client,
    keys: CircuitKey,
}

fn world(n: usize, sites: usize, salt: u64) -> World {
    let place = Place::new();
    let haplotypes = haplotypes(n, sites, salt);
    let panel = place.panel(&haplotypes);
    let client = Client::generate(&Set::insecure_test()).unwrap();
    let keys = client.circuit_key().unwrap();
    World { place, haplotypes, panel, client, keys }
}

fn search<'a>(w: &'a World, tables: Tables<'a>) -> Search<'a> {
    Search { keys: &w.keys, tables, stage: &|_, _, _| () }
}

#[test]
fn random_queries() {
    let cases = if cfg!(debug_assertions) { 60 } else { 600 };
    let w = world(12, 40, 1);
    let sites = w.panel.description().unwrap();
    let one = |number: usize| {
        let mut r = Random(number as u64);
        let q = 1 + r.index(3);
        let (start, eps) = (r.index(41 - q), 1 + r.index(3) as u32);
        let symbols = query(&w.haplotypes, start, q, &mut r);
        let count = 1 + r.index(3);
        let question = Question::new(&sites, start, symbols.clone(), eps).unwrap();
        let question = question.hidden(&sites, 0..40, count, &Seed::from_bytes([number as u8; 32])).unwrap();
        let (query, pending) = w.client.query(&sites, &question).unwrap();
        let (answer, counters) = search(&w, Tables::Panel(&w.panel)).run(&query).unwrap();
        let expected = longest(&w.panel, start, &symbols, eps).unwrap().length;
        assert_eq!(w.client.answer(&pending, &answer).unwrap()[0].matched, expected, "{number}");
        // The published counts.
        assert_eq!((counters.lookups, counters.bootstrap_groups), (2 * q as u64, 2 * q as u64 + 1));
    };
    Threads::new(0).run(|| threads::map(cases, one));
}

/// Lookups grow with the entries D(n + 1); bootstraps only with the bits that number them.
#[test]
fn counters_follow_the_starts() {
    let w = world(14, 60, 2);
    let sites = w.panel.description().unwrap();
    let stages = std::sync::Mutex::new(Vec::new());
    let counted = |count: usize| {
        let question = Question::new(&sites, 5, vec![true], 1).unwrap();
        let question = question.hidden(&sites, 0..60, count, &Seed::from_bytes([3; 32])).unwrap();
        let (query, _) = w.client.query(&sites, &question).unwrap();
        let note = |stage, done, all| stages.lock().unwrap().push((stage, done, all));
        let mut search = search(&w, Tables::Panel(&w.panel));
        search.stage = &note;
        search.run(&query).unwrap().1
    };
    let all: Vec<_> = [1, 8, 32].into_iter().map(counted).collect();
    assert!(all.iter().all(|c| c.lookups == 2 && c.bootstrap_groups == 3));
    // 15, 120 and 480 entries a symbol; 4, 7 and 9 bits.
    assert_eq!(all.iter().map(|c| c.bootstraps).collect::<Vec<_>>(), [9, 15, 19]);
    assert!(all[2].lookup_products > all[1].lookup_products && all[1].lookup_products > all[0].lookup_products);
    let stages = stages.into_inner().unwrap();
    assert_eq!(stages[0], (Stage::Initialise, 0, 1));
    assert!(stages.contains(&(Stage::Lookup, 0, 1)) && stages.contains(&(Stage::Bootstrap, 1, 1)));
}

#[test]
fn encrypted_tables_and_keys_travel() {
    let w = world(10, 30, 4);
    let sites = w.panel.description().unwrap();
    // The server has the tables in a store, the keys as bytes, and no panel.
    let starts = [2, 9, 17];
    let path = w.place.path("tables");
    let told = std::cell::RefCell::new(Vec::new());
    EncryptedTables::encrypt(&w.client, &w.panel, &starts, 4, &path, &|done, all| told.borrow_mut().push((done, all)))
        .unwrap();
    assert_eq!(told.into_inner(), (0..=4).map(|k| (k, 4)).collect::<Vec<_>>());
    let taken = EncryptedTables::encrypt(&w.client, &w.panel, &starts, 4, &path, &|_, _| ()).unwrap_err();
    assert!(matches!(taken, GenomeError::Store(StoreError::Exists { .. })), "{taken}");
    let tables = EncryptedTables::open(w.client.params(), &path).unwrap();
    assert_eq!((tables.sites(), tables.starts(), tables.bytes() % 4096), (4, &starts[..], 0));
    tables.expect_memory(tables.search_bytes()).unwrap();
    let little = tables.expect_memory(tables.search_bytes() - 1).unwrap_err();
    assert!(matches!(little, GenomeError::TooLittleMemory { .. }) && little.kind() == ErrorKind::Parameters);
    let stored = w.client.evaluation_keys().unwrap();
    let keys = circuit_key_from_bytes(w.client.params(), &stored).unwrap();
    let mut r = Random(5);
    for (start, q) in [(2usize, 4usize), (9, 3), (17, 4)] {
        let symbols = query(&w.haplotypes, start, q, &mut r);
        let question = Question::new(&sites, start, symbols.clone(), 1).unwrap();
        let question = question.among(&sites, &starts.map(|s| s as usize)).unwrap();
        let (query, pending) = w.client.query(&sites, &question).unwrap();
        let search = Search { keys: &keys, tables: Tables::Encrypted(&tables), stage: &|_, _, _| () };
        let (answer, _) = Threads::new(2).run(|| search.run(&query)).unwrap();
        let expected = longest(&w.panel, start, &symbols, 1).unwrap().length;
        assert_eq!(w.client.answer(&pending, &answer).unwrap()[0].matched, expected);
    }
    let other = Question::new(&sites, 3, vec![true; 3], 1).unwrap();
    let (query, _) = w.client.query(&sites, &other).unwrap();
    let search = Search { keys: &keys, tables: Tables::Encrypted(&tables), stage: &|_, _, _| () };
    assert!(matches!(search.run(&query), Err(GenomeError::Wire(_))));
    let in_memory = EncryptedTables::open(w.client.params(), &path).unwrap().in_memory().unwrap();
    let all = [&tables, &in_memory];
    let question = Question::new(&sites, 2, vec![true; 4], 1).unwrap().among(&sites, &[9, 17]).unwrap();
    let (query, pending) = w.client.query(&sites, &question).unwrap();
    let searched = |tables: &EncryptedTables| {
        let search = Search { keys: &keys, tables: Tables::Encrypted(tables), stage: &|_, _, _| () };
        Ok::<_, GenomeError>(w.client.answer(&pending, &search.run(&query)?.0)?[0].matched)
    };
    let expected = longest(&w.panel, 2, &[true; 4], 1).unwrap().length;
    assert!(all.into_iter().all(|tables| searched(tables).unwrap() == expected));

    // A bit flipped anywhere, before the store is opened or while it is open, and any cut.
    let files = files_of(&path);
    assert!(files.iter().any(|f| f.ends_with("blocks/c/0/0/0")), "{files:?}");
    for round in 0..40 {
        let file = &files[round % files.len()];
        let good = std::fs::read(file).unwrap();
        let mut bad = good.clone();
        let at = r.index(good.len());
        bad[at] ^= 1 << r.index(8);
        let open = EncryptedTables::open(w.client.params(), &path).unwrap();
        std::fs::write(file, &bad).unwrap();
        let fresh = EncryptedTables::open(w.client.params(), &path).and_then(|tables| searched(&tables));
        assert!(
            matches!(&fresh, Err(e) if e.kind() == ErrorKind::Format),
            "byte {at} of {}: {fresh:?}",
            file.display()
        );
        if file.ends_with("blocks/c/0/0/0") {
            // The shard's index is compared when it is first opened, blocks whenever they are read.
            assert!(matches!(searched(&open), Err(GenomeError::Store(_) | GenomeError::Wire(_))), "byte {at}");
        }
        std::fs::write(file, &good[..at]).unwrap();
        assert!(EncryptedTables::open(w.client.params(), &path).and_then(|tables| searched(&tables)).is_err());
        std::fs::write(file, &good).unwrap();
    }
    // What was read once is checked again.
    assert_eq!(searched(&tables).unwrap(), expected);
    let shard = path.join("blocks/c/0/0/0");
    let mut bytes = std::fs::read(&shard).unwrap();
    bytes[9000] ^= 1;
    std::fs::write(&shard, &bytes).unwrap();
    assert!(searched(&tables).is_err());
    assert_eq!(searched(&in_memory).unwrap(), expected);

    for _ in 0..12 {
        let mut bad = stored.clone();
        let at = r.index(stored.len());
        bad[at] ^= 1 << r.index(8);
        assert!(circuit_key_from_bytes(w.client.params(), &bad).is_err());
        let edge = [0u64, 1, 0xFF, 1 << 31, 1 << 40, u64::MAX][r.index(6)].to_le_bytes();
        for good in [&bytes, &stored] {
            let (mut bad, at) = (good.clone(), r.index(300));
            bad[at..at + 8].copy_from_slice(&edge);
            reseal_for_tests(&mut bad);
            let _ = circuit_key_from_bytes(w.client.params(), &bad);
            lookup::read_for_fuzzing(w.client.params(), &bad);
        }
    }
    let other = Client::generate(&Set::standard()).unwrap();
    let foreign = EncryptedTables::open(other.params(), &path).map(drop).unwrap_err();
    assert_eq!(foreign.kind(), ErrorKind::Mismatch);
}

/// All files of a store, by name.
fn files_of(path: &Path) -> Vec<PathBuf> {
    let (mut out, mut folders) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { out.push(path) }
        }
    }
    out.sort();
    out
}

#[test]
fn parameters_and_refusals() {
    let standard = Set::standard().build().unwrap();
    let shape = |sites, starts| Shape { sites, starts, eps: 1 };
    for (sites, starts, n) in [(10, 1, 600), (100, 1, 5008), (10, 10, 600), (2, 1000, 600)] {
        sudare_genome::lookup::check(&standard, shape(sites, starts), n).unwrap();
    }
    let refused = sudare_genome::lookup::check(&standard, shape(2000, 1), 600).unwrap_err();
    assert!(matches!(refused, GenomeError::Failure { products: 2000, .. }), "{refused}");
    sudare_genome::lookup::check(&Set::deep().build().unwrap(), shape(500, 1), 600).unwrap();
    let w = world(4, 10, 6);
    let sites = w.panel.description().unwrap();
    let question = Question::new(&sites, 3, vec![true; 2], 1).unwrap();
    let (query, pending) = w.client.query(&sites, &question).unwrap();
    let (answer, _) = search(&w, Tables::Panel(&w.panel)).run(&query).unwrap();
    let mut r = Random(7);
    for _ in 0..40 {
        let (mut bad, at) = (query.clone(), r.index(query.len()));
        bad[at] ^= 1 << r.index(8);
        assert!(search(&w, Tables::Panel(&w.panel)).run(&bad).is_err());
        let (mut bad, at) = (answer.clone(), r.index(answer.len()));
        bad[at] ^= 1 << r.index(8);
        assert!(w.client.answer(&pending, &bad).is_err());
    }
    // The keys of another client.
    let other = world(4, 10, 6);
    assert!(matches!(search(&other, Tables::Panel(&other.panel)).run(&query), Err(GenomeError::Wire(_))));
    assert!(matches!(other.client.answer(&pending, &answer), Err(GenomeError::Wire(_))));
    let again = Client::from_secret_bytes(&Set::insecure_test(), &w.client.secret_bytes().unwrap()).unwrap();
    assert_eq!(again.answer(&pending, &answer).unwrap(), w.client.answer(&pending, &answer).unwrap());
}
