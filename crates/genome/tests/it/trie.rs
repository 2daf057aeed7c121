//! Protocol "trie" against the plain search, and its refusals.

use crate::common;
use common::*;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sudare_genome::message::Head;
use sudare_genome::panel::{Build, Kinds, Policy};
use sudare_genome::search::longest;
use sudare_genome::trie::{Client, Counters, Search, Set, Store, class, dag};
use sudare_genome::vcf::VariantFile;
use sudare_genome::{GenomeError, Pending, Question, Reading, RecordProblem};
use sudare_ring::interrupt::{Interrupt, Interrupted};
use sudare_ring::random::Seed;
use sudare_ring::{Threads, threads};
use sudare_rlwe::wire::reseal_for_tests;
use sudare_tfhe::leveled::Diagram;

struct World {
    _place: Place,
    haplotypes: Vec<Vec<bool>>,
    store: Store,
    client: Client,
}

fn world(n: usize, sites: usize, salt: u64) -> World {
    let place = Place::new();
    let haplotypes = haplotypes(n, sites, salt);
    let store = Store::new(Arc::new(place.panel(&haplotypes)));
    World { _place: place, haplotypes, store, client: Client::generate(&Set::insecure_test()).unwrap() }
}

impl World {
    fn search(&self, query: &[u8]) -> Result<(Vec<u8>, Counters), GenomeError> {
        self.with_class(query, None)
    }

    fn with_class(&self, query: &[u8], class: Option<u64>) -> Result<(Vec<u8>, Counters), GenomeError> {
        Search { params: self.client.params(), store: &self.store, keys: None, class, progress: &|_, _| () }.run(query)
    }

    fn ask(&self, question: &Question) -> (Vec<u8>, Pending) {
        self.client.query(self.store.panel().hash(), question, false).unwrap()
    }
}

#[test]
fn diagrams_are_the_plain_search() {
    let w = world(60, 80, 1);
    let panel = w.store.panel();
    let mut r = Random(2);
    for _ in 0..3000 {
        let q = 1 + r.index(30);
        let (start, eps) = (r.index(81 - q), 1 + r.index(5) as u32);
        let d = dag::diagram(panel, start, q, eps).unwrap();
        let query = query(&w.haplotypes, start, q, &mut r);
        let expected = longest(panel, start, &query, eps).unwrap().length;
        assert_eq!(d.evaluate_plain(&query).unwrap() as usize, expected, "{start} {q} {eps}");
        assert!(d.depth() <= q);
    }
    // More sharing haplotypes than there are.
    let d = dag::diagram(panel, 0, 5, 61).unwrap();
    assert_eq!((d.products().len(), d.evaluate_plain(&[true; 5]).unwrap()), (0, 0));
}

/// Random windows, queries, numbers of starts and of sharing haplotypes.
#[test]
fn random_queries() {
    let cases = if cfg!(debug_assertions) { 1500 } else { 10_000 };
    let w = world(30, 60, 3);
    let sites = w.store.panel().description().unwrap();
    let one = |number: usize| {
        let mut r = Random(number as u64);
        let q = 1 + r.index(7);
        let (start, eps) = (r.index(61 - q), 1 + r.index(3) as u32);
        let symbols = query(&w.haplotypes, start, q, &mut r);
        let count = [1, 1, 2, 5][r.index(4)];
        let seed = Seed::from_bytes([number as u8; 32]);
        let question = Question::new(&sites, start, symbols.clone(), eps)
            .unwrap()
            .hidden(&sites, 0..60, count, &seed)
            .unwrap()
            .named("S", 2);
        assert_eq!((question.starts().len(), question.start()), (count, start));
        let (query, pending) = w.ask(&question);
        let (answer, _) = w.search(&query).unwrap();
        let found = w.client.answer(&pending, &answer).unwrap();
        let expected = longest(w.store.panel(), start, &symbols, eps).unwrap().length;
        assert_eq!((found[0].matched, found[0].asked.start, found[0].sites), (expected, start, q), "{number}");
    };
    Threads::new(0).run(|| threads::map(cases, one));
}

#[test]
fn a_real_haplotype_of_another_sample() {
    let place = Place::new();
    let build = Build { kinds: Kinds::Snps, ..Build::default() };
    let panel = place.build(&build, &data("panel.vcf.gz")).unwrap();
    let sites = panel.description().unwrap();
    let store = Store::new(Arc::new(panel)).in_folder(&place.path("store"));
    let client = Client::generate(&Set::standard()).unwrap();
    let others = VariantFile::open(&data("others.vcf.gz")).unwrap();
    let window = sites.window(&"20:1100000-1112000".parse().unwrap()).unwrap();
    assert!(window.len() > 60 && window.len() < 128, "{}", window.len());
    for (sample, haplotype) in [(0, 1), (4, 2)] {
        let name = &others.samples()[sample];
        let symbols = Reading::default().symbols(&sites, &others, name, haplotype, window.clone()).unwrap();
        let expected = longest(store.panel(), window.start, &symbols, 1).unwrap().length;
        let question = Question::new(&sites, window.start, symbols, 1).unwrap().named(name.as_str(), haplotype);
        let (query, pending) = client.query(sites.hash(), &question, false).unwrap();
        let search = Search { params: client.params(), store: &store, keys: None, class: None, progress: &|_, _| () };
        let (answer, counters) = search.run(&query).unwrap();
        // One thread equals many but for the fresh masks.
        let (again, same) = Threads::new(2).run(|| search.run(&query)).unwrap();
        assert_eq!(counters, same);
        for answer in [answer, again] {
            assert!(answer.len() < 20_000, "{}", answer.len());
            let found = client.answer(&pending, &answer).unwrap();
            assert_eq!((found[0].matched, found[0].asked.label.as_str()), (expected, name.as_str()));
        }
        assert!(query.len() < 33_000 * window.len());
    }
    assert_eq!((store.found().built, store.found().kept), (1, 3));
    store.forget();
    store.diagram(window.start, window.len(), 1).unwrap();
    assert_eq!(store.found().stored, 1);
}

/// Within any memory the same diagrams, from their files when they are wanted again, and checked each time.
#[test]
fn diagrams_within_a_memory() {
    let place = Place::new();
    let panel = Arc::new(place.panel(&haplotypes(20, 40, 8)));
    let folder = place.path("store");
    let words =
        |d: &Diagram| (d.counts().to_vec(), d.products().iter().flatten().map(|v| v.code()).collect::<Vec<_>>());
    let all = Store::new(panel.clone()).in_folder(&folder);
    let expected: Vec<_> = (0..30).map(|start| words(&all.diagram(start, 8, 1).unwrap())).collect();
    let bytes = all.kept_bytes();
    for memory in [0, bytes / 3, bytes] {
        let store = Store::new(panel.clone()).in_folder(&folder).with_memory(memory);
        for start in (0..30).chain(0..30) {
            assert_eq!(words(&store.diagram(start, 8, 1).unwrap()), expected[start]);
            assert!(store.kept_bytes() <= memory);
        }
        let found = store.found();
        assert_eq!((found.built, found.kept), (0, if memory == bytes { 30 } else { 0 }), "{memory} of {bytes}");
    }
    let store = Store::new(panel.clone()).in_folder(&folder).with_memory(0);
    store.diagram(3, 8, 1).unwrap();
    let file = folder.join(panel.hash().to_string()).join("q8-e1").join("0000000003.diagram");
    let mut bytes = std::fs::read(&file).unwrap();
    let last = bytes.len() - 33;
    bytes[last] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert!(matches!(store.diagram(3, 8, 1), Err(GenomeError::Wire(_))));
}

#[test]
fn circuit_private_answers() {
    let w = world(20, 40, 5);
    let sites = w.store.panel().description().unwrap();
    let keys = w.client.evaluation_keys().unwrap();
    let keys = sudare_tfhe::wire::tfhe_server_key_from_bytes(w.client.params().tfhe(), &keys).unwrap();
    let mut r = Random(6);
    for _ in 0..sudare_testkit::sized(2, 6) {
        let start = r.index(30);
        let symbols = query(&w.haplotypes, start, 9, &mut r);
        let expected = longest(w.store.panel(), start, &symbols, 1).unwrap().length;
        let question = Question::new(&sites, start, symbols, 1).unwrap().among(&sites, &[3, 8, 21]).unwrap();
        let (query, pending) = w.client.query(sites.hash(), &question, true).unwrap();
        let search =
            |keys| Search { params: w.client.params(), store: &w.store, keys, class: None, progress: &|_, _| () };
        assert!(matches!(search(None).run(&query), Err(GenomeError::MissingKeys { .. })));
        let (answer, counters) = search(Some(&keys)).run(&query).unwrap();
        assert_eq!(counters.bootstraps, 4);
        assert_eq!(w.client.answer(&pending, &answer).unwrap()[0].matched, expected);
    }
}

#[test]
fn padded_searches_do_the_same_work() {
    let w = world(40, 60, 7);
    let sites = w.store.panel().description().unwrap();
    let class = class(&w.store, 10, 1, &|_, _| ()).unwrap();
    assert!(class.is_power_of_two());
    let mut r = Random(8);
    let mut sizes = Vec::new();
    for start in [0, 9, 30] {
        let question = Question::new(&sites, start, query(&w.haplotypes, start, 10, &mut r), 1).unwrap();
        let (query, pending) = w.ask(&question);
        let (answer, counters) = Threads::new(2).run(|| w.with_class(&query, Some(class))).unwrap();
        assert_eq!(counters.products + counters.padding, class);
        sizes.push(counters.products);
        let (plain, _) = w.search(&query).unwrap();
        let [a, b] = [answer, plain].map(|x| w.client.answer(&pending, &x).unwrap());
        assert_eq!(a, b);
    }
    assert!(sizes.iter().any(|s| *s != sizes[0]));
    let question = Question::new(&sites, 0, vec![true; 10], 1).unwrap();
    let refused = w.with_class(&w.ask(&question).0, Some(3)).unwrap_err();
    // Without the number: counted over all eps, it would be the panel's alleles.
    assert_eq!(refused, GenomeError::OverClass { class: 3 });
    // A class that nobody can pay is ended when the work is asked to end, the diagrams that are read ahead too.
    let question = Question::new(&sites, 0, vec![true; 10], 1).unwrap().among(&sites, &(0..40).collect::<Vec<_>>());
    let (query, _) = w.ask(&question.unwrap());
    let (started, interrupt) = (Instant::now(), Interrupt::new());
    let ended = std::thread::scope(|s| {
        s.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            interrupt.ask();
        });
        interrupt.run(|| Threads::new(2).run(|| w.with_class(&query, Some(1 << 63)).map(drop)))
    });
    assert_eq!(ended, Err(Interrupted));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn parameters_are_derived_and_refused_with_the_figure() {
    let params = Set::standard().build().unwrap();
    for (sites, starts) in [(1, 1), (100, 1), (50, 1000), (4096, 1 << 16), (65_536, 1)] {
        let shape = sudare_genome::Shape { sites, starts, eps: 1 };
        params.check(shape).unwrap();
        assert!(params.log_failure(shape) < -128.0);
    }
    let long = sudare_genome::Shape { sites: 1 << 20, starts: 1, eps: 1 };
    match params.check(long).unwrap_err() {
        GenomeError::Failure { products, found, declared, .. } => {
            assert!(products == 1 << 20 && found > declared && found < 0.0);
        }
        other => panic!("{other}"),
    }
    assert!(matches!(long.check(), Err(GenomeError::Range { .. })));
}

#[test]
fn hostile_messages() {
    let w = world(12, 30, 9);
    let sites = w.store.panel().description().unwrap();
    let question = |start| Question::new(&sites, start, vec![true, false, true], 1).unwrap();
    let (query, pending) = w.ask(&question(4).among(&sites, &[1, 7]).unwrap());
    let (answer, _) = w.search(&query).unwrap();
    let mut r = Random(10);
    for _ in 0..400 {
        let at = r.index(query.len());
        let mut bad = query.clone();
        bad[at] ^= 1 << r.index(8);
        assert!(w.search(&bad).is_err(), "{at}");
        assert!(w.search(&query[..at]).is_err());
        let at = r.index(answer.len());
        let mut bad = answer.clone();
        bad[at] ^= 1 << r.index(8);
        assert!(w.client.answer(&pending, &bad).is_err(), "{at}");
        assert!(w.client.answer(&pending, &answer[..at]).is_err());
        // With right checksums: an error, or an answer of some length.
        let edge = [0u64, 1, 0xFF, 1 << 31, 1 << 40, u64::MAX][r.index(6)].to_le_bytes();
        let (mut bad, at) = (query.clone(), r.index(300));
        bad[at..at + 8].copy_from_slice(&edge);
        reseal_for_tests(&mut bad);
        let _ = w.search(&bad);
        let (mut bad, at) = (answer.clone(), r.index(300));
        bad[at..at + 8].copy_from_slice(&edge);
        reseal_for_tests(&mut bad);
        let _ = w.client.answer(&pending, &bad);
    }
    let stored = pending.to_bytes().unwrap();
    assert_eq!(Pending::from_bytes(&stored).unwrap(), pending);
    for _ in 0..400 {
        let (mut bad, at) = (stored.to_vec(), r.index(stored.len()));
        bad[at] ^= 1 << r.index(8);
        assert!(Pending::from_bytes(&bad).is_err());
        assert!(Pending::from_bytes(&stored[..at]).is_err());
    }
    // Another query's answer, another key, another panel.
    let (other, other_pending) = w.ask(&question(4).among(&sites, &[1, 7]).unwrap());
    let (other_answer, _) = w.search(&other).unwrap();
    assert_eq!(w.client.answer(&pending, &other_answer).unwrap_err(), GenomeError::WrongQuery);
    let foreign = Client::generate(&Set::insecure_test()).unwrap();
    assert!(matches!(foreign.answer(&other_pending, &other_answer), Err(GenomeError::Wire(_))));
    let real = Client::generate(&Set::standard()).unwrap();
    let (under_other_set, _) = real.query(sites.hash(), &question(4), false).unwrap();
    assert!(matches!(w.search(&under_other_set), Err(GenomeError::Wire(_))));
    assert_eq!(Head::peek(&query).unwrap().starts, [1, 4, 7]);
    let text = format!("{:?}", question(4));
    assert!(!text.contains("true") && text.contains("hidden"), "{text}");
}

#[test]
fn questions_are_checked() {
    let place = Place::new();
    let input = place.write("panel.vcf", vcf(&haplotypes(8, 20, 11)));
    let policy = Policy { least_eps: 2, most_sites: 6, most_starts: 3 };
    let panel = place.build(&Build { policy, ..Build::default() }, &input).unwrap();
    let sites = panel.description().unwrap();
    let ask = |start, q, eps| Question::new(&sites, start, vec![false; q], eps);
    assert!(matches!(ask(0, 7, 2), Err(GenomeError::Policy { allowed: 6, found: 7, .. })));
    assert!(matches!(ask(0, 6, 1), Err(GenomeError::Policy { allowed: 2, found: 1, .. })));
    assert!(matches!(ask(17, 4, 2), Err(GenomeError::Window { start: 17, sites: 4 })));
    assert!(matches!(ask(20, 1, 2), Err(GenomeError::Range { .. })));
    let four = ask(0, 5, 2).unwrap().among(&sites, &[1, 2, 3]);
    assert!(matches!(four, Err(GenomeError::Policy { allowed: 3, found: 4, .. })));
    let three = ask(5, 5, 2).unwrap().among(&sites, &[9, 1, 9]).unwrap();
    assert_eq!((three.starts(), three.start()), (&[1, 5, 9][..], 5));
    let few = ask(5, 5, 2).unwrap().hidden(&sites, 4..6, 3, &Seed::from_bytes([1; 32]));
    assert!(matches!(few, Err(GenomeError::Range { .. })));
}

#[test]
fn reading_refuses_what_is_not_the_panels() {
    let place = Place::new();
    let haplotypes = haplotypes(4, 8, 13);
    let panel = place.build(&Build::default(), &place.write("panel.vcf", vcf(&haplotypes))).unwrap();
    let sites = panel.description().unwrap();
    let good = vcf(&haplotypes);
    let read = |text: &str, reading: &Reading, haplotype| {
        let file = VariantFile::open(&place.write("q.vcf", text)).unwrap();
        reading.symbols(&sites, &file, "S1", haplotype, 1..7)
    };
    let usual = Reading::default();
    assert_eq!(read(&good, &usual, 1).unwrap(), haplotypes[2][1..7]);
    assert_eq!(read(&good, &usual, 2).unwrap(), haplotypes[3][1..7]);
    let lines: Vec<&str> = good.lines().collect();
    let with = |change: &dyn Fn(&str) -> String| -> String {
        lines.iter().map(|l| if l.starts_with("20\t40\t") { change(l) } else { (*l).to_owned() } + "\n").collect()
    };
    let problem = |text: String| match read(&text, &usual, 1).unwrap_err() {
        GenomeError::Record { position: 40, problem, .. } => problem,
        other => panic!("{other}"),
    };
    let sample = || "S1".to_owned();
    let call = |l: &str, new: &str| {
        let (start, _) = l.rsplit_once('\t').unwrap();
        format!("{start}\t{new}")
    };
    assert_eq!(problem(with(&|l| call(l, "0/1"))), RecordProblem::Unphased { sample: sample() });
    assert_eq!(problem(with(&|l| call(l, ".|1"))), RecordProblem::Missing { sample: sample() });
    assert_eq!(problem(with(&|l| l.replace("\tA\tG\t", "\tC\tG\t"))), RecordProblem::Reference);
    assert_eq!(problem(with(&|l| call(&l.replace("\tA\tG\t", "\tA\tT\t"), "1|1"))), RecordProblem::Alternative);
    assert_eq!(problem(with(&|l| call(&l.replace("\tA\tG\t", "\tA\tG,T\t"), "2|1"))), RecordProblem::Alternative);
    // Several alternatives, one of which is the panel's; another one that the sample does not have.
    let several = with(&|l| call(&l.replace("\tA\tG\t", "\tA\tT,G\t"), "2|0"));
    assert!(read(&several, &usual, 1).unwrap()[2]);
    let reference = with(&|l| call(&l.replace("\tA\tG\t", "\tA\tT\t"), "0|0"));
    assert!(!read(&reference, &usual, 1).unwrap()[2]);
    let absent: String = lines.iter().filter(|l| !l.starts_with("20\t40\t")).map(|l| format!("{l}\n")).collect();
    assert_eq!(problem(absent.clone()), RecordProblem::Absent);
    let lenient = Reading { absent_is_reference: true, ..Reading::default() };
    assert!(!read(&absent, &lenient, 1).unwrap()[2]);
    let other = good.replace("##reference=toy1", "##reference=toy2");
    let refused = read(&other, &usual, 1).unwrap_err();
    assert_eq!(refused, GenomeError::Assembly { expected: "toy1".into(), found: "toy2".into() });
    let named = Reading { assembly: Some("toy1".into()), ..Reading::default() };
    read(&other, &named, 1).unwrap();
    let longer = good.replace("length=63025520", "length=64444167");
    assert!(matches!(read(&longer, &usual, 1), Err(GenomeError::Assembly { .. })));
    assert!(matches!(read(&good, &usual, 3), Err(GenomeError::Range { .. })));
}
