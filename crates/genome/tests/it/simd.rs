//! Protocol "simd" against the plain search: batches, hidden starts, shared matches.

use crate::common;
use common::*;
use std::sync::Arc;
use sudare_genome::search::longest;
use sudare_genome::simd::{Client, Keys, Search, Set};
use sudare_genome::trie::dag;
use sudare_genome::{GenomeError, Panel, Pending, Question};
use sudare_ring::Threads;
use sudare_ring::random::Seed;

struct World {
    _place: Place,
    haplotypes: Vec<Vec<bool>>,
    panel: Arc<Panel>,
    client: Client,
    keys: Keys,
}

fn world(n: usize, sites: usize, salt: u64, set: Set) -> World {
    let place = Place::new();
    let haplotypes = haplotypes(n, sites, salt);
    let panel = Arc::new(place.panel(&haplotypes));
    let client = Client::generate(set).unwrap();
    let keys = Keys::from_bytes(&client.evaluation_keys().unwrap()).unwrap();
    World { _place: place, haplotypes, panel, client, keys }
}

#[test]
fn prefixes_are_the_distinct_haplotypes() {
    let w = world(40, 30, 1, Set::new(1, false).unwrap().insecure_test());
    for (start, q) in [(0, 12), (7, 1), (10, 20)] {
        let mut all: Vec<&[bool]> = w.haplotypes.iter().map(|h| &h[start..start + q]).collect();
        all.sort();
        all.dedup();
        let mut found = dag::prefixes(&w.panel, start, q, 1).unwrap();
        found.sort();
        assert_eq!(found, all);
        for p in dag::prefixes(&w.panel, start, q, 4).unwrap() {
            let sharing =
                |length: usize| w.haplotypes.iter().filter(|h| h[start..start + length] == p[..length]).count();
            assert!(sharing(p.len()) >= 4);
        }
    }
    assert!(dag::prefixes(&w.panel, 0, 5, 41).unwrap().is_empty());
}

#[test]
fn random_batches() {
    let w = world(50, 60, 2, Set::new(16, true).unwrap().insecure_test());
    let sites = w.panel.description().unwrap();
    let pool = Threads::new(0);
    let mut asked = 0;
    for round in 0..if cfg!(debug_assertions) { 14 } else { 200 } {
        let mut r = Random(round);
        let q = 1 + r.index(16);
        let (start, eps) = (r.index(61 - q), 1 + r.index(3) as u32);
        let decoys: Vec<usize> = (0..r.index(4)).map(|_| r.index(61 - q)).collect();
        let most = w.client.most_questions(q).unwrap();
        // The true start of each is one of the list.
        let mut list = decoys.clone();
        list.push(start);
        let questions: Vec<Question> = (0..1 + r.index(most.min(20)))
            .map(|_| {
                let own = list[r.index(list.len())];
                let symbols = query(&w.haplotypes, own, q, &mut r);
                Question::new(&sites, own, symbols, eps).unwrap().among(&sites, &list).unwrap()
            })
            .collect();
        let expected: Vec<usize> = {
            let mut r = Random(round);
            let _ = (r.index(16), r.index(61 - q), r.index(3));
            let _: Vec<usize> = (0..r.index(4)).map(|_| r.index(61 - q)).collect();
            let count = 1 + r.index(most.min(20));
            (0..count)
                .map(|_| {
                    let own = list[r.index(list.len())];
                    let symbols = query(&w.haplotypes, own, q, &mut r);
                    longest(&w.panel, own, &symbols, eps).unwrap().length
                })
                .collect()
        };
        asked += expected.len();
        let (query, pending) = w.client.query(sites.hash(), &questions).unwrap();
        let (answer, counters) = pool.run(|| Search { keys: &w.keys, panel: &w.panel }.run(&query)).unwrap();
        assert!(counters.haplotypes >= questions[0].starts().len() as u64);
        let found: Vec<usize> = w.client.answer(&pending, &answer).unwrap().iter().map(|a| a.matched).collect();
        assert_eq!(found, expected, "round {round}");
    }
    assert!(asked > 50);
}

#[test]
fn a_secure_set_and_more_haplotypes_than_slots() {
    // 64 positions leave 64 haplotypes a ciphertext at N = 2^14.
    let w = world(300, 80, 3, Set::new(64, false).unwrap());
    assert_eq!(w.client.params().degree(), 1 << 14);
    assert!(w.client.params().literal().security.bits() >= 128);
    let sites = w.panel.description().unwrap();
    let mut r = Random(4);
    let symbols = query(&w.haplotypes, 5, 60, &mut r);
    let question = Question::new(&sites, 5, symbols.clone(), 1).unwrap();
    let (query, pending) = w.client.query(sites.hash(), &[question]).unwrap();
    let (answer, counters) = Threads::new(0).run(|| Search { keys: &w.keys, panel: &w.panel }.run(&query)).unwrap();
    assert!(counters.ciphertexts > 1);
    let expected = longest(&w.panel, 5, &symbols, 1).unwrap().length;
    assert_eq!(w.client.answer(&pending, &answer).unwrap()[0].matched, expected);
}

#[test]
fn refusals() {
    let w = world(6, 40, 5, Set::new(8, false).unwrap().insecure_test());
    let sites = w.panel.description().unwrap();
    let ask = |start, q| Question::new(&sites, start, vec![false; q], 1).unwrap();
    let too_long = w.client.query(sites.hash(), &[ask(0, 9)]);
    assert!(matches!(too_long, Err(GenomeError::Range { most: 8, .. })));
    let hidden = ask(0, 4).hidden(&sites, 0..30, 2, &Seed::from_bytes([1; 32])).unwrap();
    assert!(matches!(w.client.query(sites.hash(), &[hidden]), Err(GenomeError::Range { most: 1, .. })));
    assert!(matches!(w.client.query(sites.hash(), &[ask(0, 4), ask(1, 4)]), Err(GenomeError::Wire(_))));
    assert!(matches!(w.client.query(sites.hash(), &[]), Err(GenomeError::Range { .. })));
    assert!(matches!(Set::new(4096, false), Err(GenomeError::Range { .. })));
    let (query, pending) = w.client.query(sites.hash(), &[ask(3, 8)]).unwrap();
    let search = |bytes: &[u8]| Search { keys: &w.keys, panel: &w.panel }.run(bytes);
    let (answer, _) = search(&query).unwrap();
    let keys = w.client.evaluation_keys().unwrap();
    let mut r = Random(6);
    for _ in 0..60 {
        for (good, which) in [(&query, 0), (&answer, 1), (&keys, 2)] {
            let (mut bad, at) = (good.clone(), r.index(good.len()));
            bad[at] ^= 1 << r.index(8);
            let refused = |bytes: &[u8]| match which {
                0 => search(bytes).is_err(),
                1 => w.client.answer(&pending, bytes).is_err(),
                _ => Keys::from_bytes(bytes).is_err(),
            };
            assert!(refused(&bad) && refused(&good[..at]), "{which} {at}");
        }
    }
    let stored = pending.to_bytes().unwrap();
    assert_eq!(Pending::from_bytes(&stored).unwrap(), pending);
    let again = Client::from_secret_bytes(w.client.set(), &w.client.secret_bytes().unwrap()).unwrap();
    assert_eq!(again.answer(&pending, &answer).unwrap(), w.client.answer(&pending, &answer).unwrap());
    let other = Client::generate(w.client.set()).unwrap();
    assert!(matches!(other.answer(&pending, &answer), Err(GenomeError::Wire(_))));
    let (foreign, _) = other.query(sites.hash(), &[ask(3, 8)]).unwrap();
    assert!(search(&foreign).is_err());
}
