//! Client and server of every protocol over the same panel: the same answers, from bytes to a report.

use crate::common;
use common::*;
use std::sync::Arc;
use sudare_genome::message::Head;
use sudare_genome::panel::{Build, Policy};
use sudare_genome::planner::{Choice, Facts, Prices};
use sudare_genome::report::{Row, TSV_HEAD, beacon};
use sudare_genome::search::longest;
use sudare_genome::{
    Client, Counters, Decoys, GenomeError, KeyPlan, Options, Pending, Protocol, Question, Server, Shape, Sites,
};
use sudare_ring::Threads;

#[test]
fn the_three_protocols_agree() {
    let place = Place::new();
    let haplotypes = haplotypes(24, 40, 1);
    let policy = Policy { most_starts: 3, ..Policy::default() };
    let input = place.write("panel.vcf", vcf(&haplotypes));
    let panel = place.build(&Build { policy, ..Build::default() }, &input).unwrap();
    let sites = Sites::from_bytes(&panel.description().unwrap().to_bytes().unwrap()).unwrap();
    let mut server = Server::new(Arc::new(panel)).unwrap().with_most_queries(3);
    let mut r = Random(2);
    let start = 11;
    let symbols = query(&haplotypes, start, 3, &mut r);
    let expected = longest(server.panel(), start, &symbols, 1).unwrap().length;
    let pool = Threads::new(2);
    let mut rows = Vec::new();
    for protocol in Protocol::ALL {
        let made = Client::generate(KeyPlan { protocol, sites: 3, hidden: true }).unwrap();
        // Each side is rebuilt from bytes.
        let client = Client::from_secret_bytes(&made.secret_bytes().unwrap()).unwrap();
        assert_eq!((client.id(), client.plan()), (made.id(), made.plan()));
        let ask = || Question::new(&sites, start, symbols.clone(), 1).unwrap().named("NA1", 2);
        let question = ask().among(&sites, &[4, 20]).unwrap();
        let (query, pending) = pool.run(|| client.query(&sites, &[question], false)).unwrap();
        let pending = Pending::from_bytes(&pending.to_bytes().unwrap()).unwrap();
        if protocol != Protocol::Trie {
            let refused = server.search(&query, Options::default()).unwrap_err();
            assert_eq!(refused, GenomeError::MissingKeys { what: protocol.name() });
            let keys = pool.run(|| client.evaluation_keys()).unwrap();
            assert_eq!(pool.run(|| server.add_keys(&keys)).unwrap(), client.id());
        }
        let (answer, counters) = pool.run(|| server.search(&query, Options::default())).unwrap();
        match counters {
            Counters::Trie(c) => assert!(c.products > 0 && c.choices == 2 && protocol == Protocol::Trie),
            Counters::Lookup(c) => assert_eq!((c.lookups, c.bootstrap_groups), (6, 7)),
            Counters::Simd(c) => assert!(c.rotations > 0 && protocol == Protocol::Simd),
        }
        let answers = client.answer(&pending, &answer).unwrap();
        assert_eq!(answers[0].matched, expected, "{protocol}");
        rows.push(Row::new(&answers[0], &sites).unwrap());
        if protocol == Protocol::Trie {
            // The keys of another protocol, and more queries than the server takes.
            let other = Client::generate(KeyPlan { protocol: Protocol::Simd, sites: 3, hidden: true }).unwrap();
            assert!(matches!(other.answer(&pending, &answer), Err(GenomeError::WrongProtocol { .. })));
            assert!(matches!(other.query(&sites, &[ask()], true), Err(GenomeError::WrongProtocol { .. })));
            server.search(&query, Options::default()).unwrap();
            server.search(&query, Options::default()).unwrap();
            let refused = server.search(&query, Options::default()).unwrap_err();
            assert!(matches!(refused, GenomeError::Policy { allowed: 3, found: 4, .. }));
        }
    }
    assert!(rows.iter().all(|row| *row == rows[0]));
    let columns: Vec<String> = rows[0].tsv().split('\t').map(str::to_owned).collect();
    assert_eq!(columns.len(), TSV_HEAD.split('\t').count());
    assert_eq!(columns[..4], ["NA1", "2", "20", "120"]);
    let json = beacon(&rows, sites.hash(), &sites.outline().assembly);
    assert_eq!(json["responseSummary"]["exists"], expected > 0);
    assert_eq!(json["response"]["resultSets"][0]["results"][0]["start"][0], 119);
    // Another panel's server refuses, and so does one whose policy is narrower.
    let other = Place::new();
    let narrow = Policy { most_sites: 2, ..Policy::default() };
    let input = other.write("panel.vcf", vcf(&haplotypes));
    let panel = other.build(&Build { policy: narrow, ..Build::default() }, &input).unwrap();
    let client = Client::generate(KeyPlan::trie()).unwrap();
    let question = Question::new(&sites, start, symbols, 1).unwrap();
    let (query, _) = client.query(&sites, &[question], false).unwrap();
    let refused = Server::new(Arc::new(panel)).unwrap().search(&query, Options::default()).unwrap_err();
    assert!(matches!(refused, GenomeError::WrongPanel { .. }));
}

/// The candidate starts that a server sees.
fn shown(query: &[u8]) -> Vec<u32> {
    Head::peek(query).unwrap().starts
}

/// Two questions from one place do not have its start alone in common, as decoys drawn anew would.
#[test]
fn the_same_start_has_the_same_decoys() {
    let place = Place::new();
    let panel = place.panel(&haplotypes(20, 400, 5));
    let sites = panel.description().unwrap();
    let client = Client::generate(KeyPlan::trie()).unwrap();
    let again = Client::from_secret_bytes(&client.secret_bytes().unwrap()).unwrap();
    let ask = |client: &Client, start: usize, q: usize, eps: u32, among: usize| {
        let question = Question::new(&sites, start, vec![start.is_multiple_of(2); q], eps).unwrap();
        // Where windows of every length that is asked for fit.
        let decoys = Decoys { among, within: 0..sites.len() - 8 };
        shown(&client.ask(&sites, vec![question], &decoys, false).unwrap().0)
    };
    let list = ask(&client, 100, 4, 1, 16);
    assert!(list.len() == 16 && list.contains(&100));
    // Another message, haplotype or eps, the client of the stored key, a window of another length.
    for (client, q, eps) in [(&client, 4, 1), (&again, 4, 1), (&client, 4, 3), (&client, 6, 1)] {
        assert_eq!(ask(client, 100, q, eps, 16), list);
    }
    // A longer list has the shorter one's starts.
    let longer = ask(&client, 100, 4, 1, 40);
    assert!(list.iter().all(|start| longer.contains(start)));
    // Another start, and another key, have decoys of their own: nobody without the key works a list out.
    let common = |other: &[u32]| list.iter().filter(|s| other.contains(s)).count();
    assert!(common(&ask(&client, 101, 4, 1, 16)) < 8);
    let other = Client::generate(KeyPlan::trie()).unwrap();
    assert!(common(&ask(&other, 100, 4, 1, 16)) < 8);
    // The start is anywhere in its list.
    let place = |start: usize| ask(&client, start, 1, 1, 4).iter().position(|s| *s == start as u32).unwrap();
    let mut places = [0; 4];
    (150..230).for_each(|start| places[place(start)] += 1);
    assert!(places.iter().all(|count| *count > 0), "{places:?}");
    // The haplotypes of one message share the list, by the protocol that takes several.
    let simd = Client::generate(KeyPlan { protocol: Protocol::Simd, sites: 3, hidden: true }).unwrap();
    let two = [false, true].map(|symbol| Question::new(&sites, 50, vec![symbol; 3], 1).unwrap());
    let decoys = Decoys { among: 5, within: 0..200 };
    let (query, _) = Threads::new(2).run(|| simd.ask(&sites, two.into(), &decoys, false)).unwrap();
    assert_eq!(shown(&query).len(), 5);
}

#[test]
fn facts_of_a_panel() {
    let place = Place::new();
    let panel = place.panel(&haplotypes(40, 200, 3));
    let shape = Shape { sites: 20, starts: 1, eps: 1 };
    let facts = Facts::of_panel(&panel, shape, 1).unwrap();
    assert!(facts.products > 10.0 && facts.distinct <= 40.0);
    let choice = Choice::of(facts, &Prices::default()).unwrap();
    assert_eq!(choice.protocol(), Protocol::Trie);
    let long = Shape { sites: 201, ..shape };
    assert!(matches!(Facts::of_panel(&panel, long, 1), Err(GenomeError::Window { .. })));
}
