//! Files of format version 1 load, and mean what they meant.

use crate::common;
use common::*;
use std::path::PathBuf;
use std::sync::Arc;
use sudare_genome::search::longest;
use sudare_genome::trie::Store;
use sudare_genome::{Client, KeyPlan, Options, Panel, Pending, Question, Server, Sites, lookup};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v1/{name}.bin"))
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap()
}

/// The question of the files: six symbols from site 9 on.
fn symbols() -> Vec<bool> {
    haplotypes(6, 24, 77)[4][9..15].to_vec()
}

/// Makes the files, once for a format version: `cargo test -p sudare-genome --test golden -- --ignored`.
#[test]
#[ignore = "writes the golden files of this format version"]
fn write_golden_files() {
    let place = Place::new();
    let panel = Arc::new(place.panel(&haplotypes(6, 24, 77)));
    std::fs::create_dir_all(path("x").parent().unwrap()).unwrap();
    std::fs::write(path("genome_panel"), std::fs::read(place.path("panel.sudare")).unwrap()).unwrap();
    let sites = panel.description().unwrap();
    std::fs::write(path("genome_sites"), sites.to_bytes().unwrap()).unwrap();
    let client = Client::generate(KeyPlan::trie()).unwrap();
    std::fs::write(path("genome_client_key"), client.secret_bytes().unwrap()).unwrap();
    let question = Question::new(&sites, 9, symbols(), 1).unwrap().among(&sites, &[2]).unwrap().named("S2", 1);
    let (query, pending) = client.query(&sites, &[question], false).unwrap();
    std::fs::write(path("genome_query"), &query).unwrap();
    std::fs::write(path("genome_pending"), pending.to_bytes().unwrap()).unwrap();
    let server = Server::new(panel.clone()).unwrap();
    std::fs::write(path("genome_answer"), server.search(&query, Options::default()).unwrap().0).unwrap();
    Store::new(panel).in_folder(&place.path("store")).diagram(9, 6, 1).unwrap();
    let mut folders = vec![place.path("store")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                folders.push(entry);
            } else {
                std::fs::copy(entry, path("genome_tables")).unwrap();
            }
        }
    }
}

#[test]
fn files_of_version_1() {
    let panel = Arc::new(Panel::from_bytes(file("genome_panel")).unwrap());
    panel.check().unwrap();
    let sites = Sites::from_bytes(&file("genome_sites")).unwrap();
    assert_eq!(sites.to_bytes().unwrap(), file("genome_sites"));
    assert_eq!((sites.hash(), sites.outline()), (panel.hash(), panel.outline()));
    let client = Client::from_secret_bytes(&file("genome_client_key")).unwrap();
    assert_eq!(client.secret_bytes().unwrap().as_slice(), file("genome_client_key"));
    let pending = Pending::from_bytes(&file("genome_pending")).unwrap();
    assert_eq!(pending.to_bytes().unwrap().as_slice(), file("genome_pending"));
    let expected = longest(&panel, 9, &symbols(), 1).unwrap().length;
    // The stored answer, and a new one to the stored query by the stored diagram.
    let place = Place::new();
    let store = place.path("store").join(panel.hash().to_string()).join("q6-e1");
    std::fs::create_dir_all(&store).unwrap();
    std::fs::copy(path("genome_tables"), store.join("0000000009.diagram")).unwrap();
    let server = Server::new(panel).unwrap().with_store(&place.path("store"));
    let fresh = server.search(&file("genome_query"), Options::default()).unwrap().0;
    assert_eq!((server.store().found().stored, server.store().found().built), (1, 1));
    for answer in [file("genome_answer"), fresh] {
        let found = client.answer(&pending, &answer).unwrap();
        assert_eq!((found[0].matched, found[0].asked.label.as_str()), (expected, "S2"));
    }
    assert!(lookup::read_keys(&file("genome_query")).is_err());
}
