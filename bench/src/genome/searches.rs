//! Searches by every protocol.

use super::panels::Source;
use super::{Lab, Line, published};
use crate::Outcome;
use crate::limit::MemoryLimit;
use crate::machine::reset_peak_rss;
use crate::timing::{Budget, Clock, Timing, measure};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;
use sudare_genome::lookup::{self, EncryptedTables, Stage, Tables};
use sudare_genome::panel::Build;
use sudare_genome::search::longest;
use sudare_genome::{Pending, Protocol, Question, Sites, simd, trie};
use sudare_ring::random::Seed;
use sudare_testkit::Random;
use sudare_tfhe::circuit_bootstrap::CircuitKey;
use sudare_tfhe::wire::{circuit_key_from_bytes, write_circuit_key};

/// One window to ask for, and the answer in the clear.
struct Case {
    start: usize,
    symbols: Vec<bool>,
    expected: usize,
}

/// Windows spread over a panel, queried with other samples' haplotypes.
fn cases(source: &Source, q: usize, count: usize) -> Outcome<Vec<Case>> {
    let last = source.panel.sites() - q;
    let step = (last / count).max(1);
    let starts = (0..count).map(|i| i * step + step / 2).filter(|s| *s <= last);
    let each = starts.enumerate().map(|(i, start)| {
        let symbols = source.others[i % source.others.len()][start..start + q].to_vec();
        let expected = longest(&source.panel, start, &symbols, 1)?.length;
        Ok(Case { start, symbols, expected })
    });
    each.collect()
}

pub fn all(lab: &mut Lab<'_>, sources: &[Source], scratch: &Path) -> Outcome<()> {
    let Some(first) = sources.first() else { return Ok(()) };
    for source in sources {
        if lab.options.wants("trie") {
            for q in lab.options.q.clone() {
                tries(lab, source, q)?;
            }
        }
    }
    if lab.options.wants("client") {
        client(lab, first)?;
    }
    if lab.options.wants("hidden") {
        for starts in [1, 10, 100, lab.options.starts] {
            hidden(lab, first, 50, starts)?;
        }
    }
    if lab.options.wants("private") {
        private(lab, first)?;
    }
    if lab.options.wants("lookup") || lab.options.wants("figures") {
        lookups(lab, first)?;
    }
    if lab.options.wants("simd") {
        simds(lab, first)?;
    }
    if lab.options.wants("memory") {
        memory(lab, first, scratch)?;
    }
    if lab.options.wants("random") {
        random(lab, scratch)?;
    }
    Ok(())
}

fn line(lab: &Lab<'_>, case: &str, source: &Source, protocol: Protocol, q: usize, starts: usize) -> Line {
    let mut line = Line::new(case, source.name.as_str(), lab.machine);
    line.haplotypes = Some(source.panel.haplotypes());
    line.protocol = Some(protocol.name());
    (line.q, line.starts) = (Some(q), Some(starts));
    line
}

/// One start, one thread and all: the server's time over windows whose diagrams are known.
fn tries(lab: &mut Lab<'_>, source: &Source, q: usize) -> Outcome<()> {
    let cases = cases(source, q, lab.options.windows)?;
    let sites = source.panel.description()?;
    let client = trie::Client::generate(&trie::Set::standard())?;
    let store = trie::Store::new(source.panel.clone());
    let mut asked = Vec::new();
    for case in &cases {
        let question = Question::new(&sites, case.start, case.symbols.clone(), 1)?;
        store.diagram(case.start, q, 1)?;
        asked.push((client.query(sites.hash(), &question, false)?, case.expected));
    }
    for threads in [1, lab.pool.count()] {
        let pool = if threads == 1 { &lab.one } else { &lab.pool };
        let search =
            trie::Search { params: client.params(), store: &store, keys: None, class: None, progress: &|_, _| () };
        let (mut timing, mut products, mut wrong, mut down) = (Timing::default(), 0, 0, 0);
        reset_peak_rss();
        for ((query, pending), expected) in &asked {
            lab.unit.sample(&mut timing.unit);
            pool.run(|| search.run(query))?;
            let clock = Clock::start();
            let (answer, counters) = pool.run(|| search.run(query))?;
            clock.stop(1, &mut timing.ours);
            products += counters.products;
            down = answer.len();
            wrong += usize::from(client.answer(pending, &answer)?[0].matched != *expected);
        }
        let mut line = line(lab, "trie, server", source, Protocol::Trie, q, 1);
        line.threads = threads;
        line = line.with_timing(timing).with_answers(wrong, asked.len());
        line.counters.insert("products", products as f64 / asked.len() as f64);
        (line.bytes_up, line.bytes_down) = (Some(asked[0].0.0.len()), Some(down));
        if let (Some((mean, most)), 1) = (published::trie_target(&source.name, q), threads) {
            let figure = line.mean_cpu_units;
            let worst = line.most_cpu_units;
            line = line.with_target(mean, "units, mean", figure);
            if let (Some(most), Some(worst)) = (most, worst) {
                line.reached = line.reached.map(|r| r && worst <= most);
            }
        }
        lab.put(line)?;
        if threads == lab.pool.count() {
            break;
        }
    }
    // The diagrams themselves, which a store keeps.
    let mut timing = Timing::default();
    for case in &cases {
        lab.unit.sample(&mut timing.unit);
        let clock = Clock::start();
        let d = trie::dag::diagram(&source.panel, case.start, q, 1)?;
        clock.stop(1, &mut timing.ours);
        if d.evaluate_plain(&case.symbols)? as usize != case.expected {
            return Err("a diagram gives another length than the plain search".into());
        }
    }
    let line = line(lab, "trie, diagram", source, Protocol::Trie, q, 1).with_timing(timing);
    lab.put(line.with_answers(0, cases.len()))
}

/// Keys, and encryption of q = 100.
fn client(lab: &mut Lab<'_>, source: &Source) -> Outcome<()> {
    const SITES: usize = 100;
    let case = cases(source, SITES, 1)?.pop().ok_or("the panel is too short")?;
    let sites = source.panel.description()?;
    let set = trie::Set::standard();
    // Tables of the ring are built once by any client.
    let warm = trie::Client::generate(&set)?;
    let store = trie::Store::new(source.panel.clone());
    let sizes = RefCell::new((0, 0));
    let last: RefCell<Option<(trie::Client, Vec<u8>, Pending)>> = RefCell::new(None);
    let ours = || {
        let client = trie::Client::generate(&set)?;
        let question = Question::new(&sites, case.start, case.symbols.clone(), 1)?;
        let (query, pending) = client.query(sites.hash(), &question, false)?;
        sizes.borrow_mut().0 = query.len();
        *last.borrow_mut() = Some((client, query, pending));
        Ok(())
    };
    let timing = measure(&mut lab.unit, lab.budget, ours, None)?;
    let (client, query, pending) = last.into_inner().ok_or("nothing was measured")?;
    let search = trie::Search { params: warm.params(), store: &store, keys: None, class: None, progress: &|_, _| () };
    let (answer, _) = search.run(&query)?;
    let decrypt =
        measure(&mut lab.unit, lab.budget, || client.answer(&pending, &answer).map(drop).map_err(Into::into), None)?;
    let wrong = usize::from(client.answer(&pending, &answer)?[0].matched != case.expected);
    let mut line = line(lab, "trie, keys and encryption", source, Protocol::Trie, SITES, 1).with_timing(timing);
    (line.bytes_up, line.bytes_down) = (Some(query.len()), Some(answer.len()));
    line.stages_ms.extend(decrypt.ours.wall.median().map(|ms| ("decryption", ms)));
    let figure = line.cpu_units;
    let (units, up, down) = published::CLIENT;
    line = line.with_target(units, "units", figure).with_answers(wrong, 1);
    line.reached = line.reached.map(|r| r && query.len() <= up && answer.len() <= down);
    lab.put(line)
}

/// Many starts, on all threads: linear in their number.
fn hidden(lab: &mut Lab<'_>, source: &Source, q: usize, starts: usize) -> Outcome<()> {
    let case = cases(source, q, 1)?.pop().ok_or("the panel is too short")?;
    let sites = source.panel.description()?;
    let client = trie::Client::generate(&trie::Set::standard())?;
    let store = trie::Store::new(source.panel.clone());
    let starts = starts.min(source.panel.sites() - q);
    let question = Question::new(&sites, case.start, case.symbols.clone(), 1)?;
    let question = question.hidden(&sites, 0..sites.len(), starts, &Seed::from_bytes([1; 32]))?;
    let (query, pending) = client.query(sites.hash(), &question, false)?;
    for s in question.starts() {
        store.diagram(*s as usize, q, 1)?;
    }
    let search = trie::Search { params: client.params(), store: &store, keys: None, class: None, progress: &|_, _| () };
    let results = RefCell::new(Vec::new());
    reset_peak_rss();
    let pool = &lab.pool;
    let ours = || {
        results.borrow_mut().push(pool.run(|| search.run(&query))?);
        Ok(())
    };
    let budget = Budget { least: 1, ..lab.budget };
    let timing = measure(&mut lab.unit, budget, ours, None)?;
    let results = results.into_inner();
    let mut wrong = 0;
    for (answer, _) in &results {
        wrong += usize::from(client.answer(&pending, answer)?[0].matched != case.expected);
    }
    let mut line = line(lab, "trie, hidden start", source, Protocol::Trie, q, starts);
    line.threads = lab.pool.count();
    line = line.with_timing(timing).with_answers(wrong, results.len());
    let (answer, counters) = &results[0];
    line.counters.insert("products", counters.products as f64);
    line.counters.insert("choices", counters.choices as f64);
    (line.bytes_up, line.bytes_down) = (Some(query.len()), Some(answer.len()));
    if starts >= 1000 {
        let figure = line.median_ms;
        line = line.with_target(published::HIDDEN_MS, "ms, two threads", figure);
    }
    lab.put(line)
}

/// Circuit-private and padded answers.
fn private(lab: &mut Lab<'_>, source: &Source) -> Outcome<()> {
    const SITES: usize = 100;
    let cases = cases(source, SITES, 3)?;
    let sites = source.panel.description()?;
    let client = trie::Client::generate(&trie::Set::standard())?;
    let stored = client.evaluation_keys()?;
    let keys = sudare_tfhe::wire::tfhe_server_key_from_bytes(client.params().tfhe(), &stored)?;
    let store = trie::Store::new(source.panel.clone());
    for (name, class) in [("trie, circuit-private", None), ("trie, padded", Some(1 << 13))] {
        let (mut timing, mut wrong, mut last) = (Timing::default(), 0, None);
        for case in &cases {
            let question = Question::new(&sites, case.start, case.symbols.clone(), 1)?;
            let (query, pending) = client.query(sites.hash(), &question, class.is_none())?;
            store.diagram(case.start, SITES, 1)?;
            let search =
                trie::Search { params: client.params(), store: &store, keys: Some(&keys), class, progress: &|_, _| () };
            lab.unit.sample(&mut timing.unit);
            let clock = Clock::start();
            let (answer, counters) = lab.one.run(|| search.run(&query))?;
            clock.stop(1, &mut timing.ours);
            wrong += usize::from(client.answer(&pending, &answer)?[0].matched != case.expected);
            last = Some((query.len(), answer.len(), counters));
        }
        let (up, down, counters) = last.ok_or("nothing was measured")?;
        let mut line = line(lab, name, source, Protocol::Trie, SITES, 1).with_timing(timing);
        (line.bytes_up, line.bytes_down) = (Some(up), Some(down));
        line.key_bytes = class.is_none().then_some(stored.len());
        line.counters.insert("bootstraps", counters.bootstraps as f64);
        line.counters.insert("padding", counters.padding as f64);
        lab.put(line.with_answers(wrong, cases.len()))?;
    }
    Ok(())
}

/// The stage under way and when it began, and the milliseconds of each.
type Stages = (Option<(Stage, Instant)>, BTreeMap<&'static str, f64>);

/// Times of the stages of one search, told by its own signals.
#[derive(Default)]
struct Watch(Mutex<Stages>);

impl Watch {
    fn name(stage: Stage) -> &'static str {
        match stage {
            Stage::Initialise => "initialisation",
            Stage::Lookup => "lookup",
            Stage::Bootstrap => "bootstrap",
            Stage::Compare => "comparison",
        }
    }

    fn begin(&self, next: Option<Stage>) {
        let mut inner = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((stage, since)) = inner.0.take() {
            *inner.1.entry(Self::name(stage)).or_default() += since.elapsed().as_secs_f64() * 1e3;
        }
        inner.0 = next.map(|s| (s, Instant::now()));
    }

    fn finish(self) -> BTreeMap<&'static str, f64> {
        self.begin(None);
        self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).1
    }
}

/// Figures 5 and 6: one thread, stages against q and D; and the search to be reached.
fn lookups(lab: &mut Lab<'_>, source: &Source) -> Outcome<()> {
    let client = lookup::Client::generate(&lookup::Set::standard())?;
    let mut timing = Timing::default();
    let clock = Clock::start();
    let keys = lab.one.run(|| client.circuit_key())?;
    clock.stop(1, &mut timing.ours);
    let mut stored = Vec::new();
    write_circuit_key(&keys, &mut stored)?;
    lab.unit.sample(&mut timing.unit);
    let mut made = line(lab, "lookup, keys", source, Protocol::Lookup, 10, 1).with_timing(timing);
    (made.q, made.starts, made.key_bytes) = (None, None, Some(stored.len()));
    let again = circuit_key_from_bytes(client.params(), &stored)?;
    lab.put(made.with_answers(usize::from(again.server().id() != keys.server().id()), 1))?;
    let figures = lab.options.wants("figures");
    let by_q = (1..=10usize).filter(|q| figures || *q == 10).map(|q| (q, 1));
    let by_starts = (1..=10usize).filter(|_| figures).map(|d| (2, d));
    for (i, (q, starts)) in by_q.chain(by_starts).enumerate() {
        let case = if i < 10 { "lookup, by q" } else { "lookup, by D" };
        one_lookup(lab, source, (&client, &keys), case, q, starts)?;
    }
    Ok(())
}

fn one_lookup(
    lab: &mut Lab<'_>,
    source: &Source,
    (client, keys): (&lookup::Client, &CircuitKey),
    case: &str,
    q: usize,
    starts: usize,
) -> Outcome<()> {
    let asked = cases(source, q, 1)?.pop().ok_or("the panel is too short")?;
    let sites = source.panel.description()?;
    let question = Question::new(&sites, asked.start, asked.symbols.clone(), 1)?;
    let question = question.hidden(&sites, 0..sites.len(), starts, &Seed::from_bytes([2; 32]))?;
    let mut timing = Timing::default();
    lab.unit.sample(&mut timing.unit);
    let clock = Instant::now();
    let (query, pending) = lab.one.run(|| client.query(&sites, &question))?;
    let encryption = clock.elapsed().as_secs_f64() * 1e3;
    let watch = Watch::default();
    let note = |stage, _, _| watch.begin(Some(stage));
    reset_peak_rss();
    let clock = Clock::start();
    let search = lookup::Search { keys, tables: Tables::Panel(&source.panel), stage: &note };
    let (answer, c) = lab.one.run(|| search.run(&query))?;
    clock.stop(1, &mut timing.ours);
    let wrong = usize::from(client.answer(&pending, &answer)?[0].matched != asked.expected);
    let right = (c.lookups, c.bootstrap_groups) == (2 * q as u64, 2 * q as u64 + 1);
    let mut line = line(lab, case, source, Protocol::Lookup, q, starts).with_timing(timing);
    line.stages_ms = watch.finish();
    // The paper's initialisation is the client's and the server's.
    *line.stages_ms.entry("initialisation").or_default() += encryption;
    for (name, count) in [
        ("lookups", c.lookups),
        ("lookup products", c.lookup_products),
        ("bootstrap groups", c.bootstrap_groups),
        ("bootstraps", c.bootstraps),
    ] {
        line.counters.insert(name, count as f64);
    }
    (line.bytes_up, line.bytes_down) = (Some(query.len()), Some(answer.len()));
    if (q, starts) == (10, 1) {
        let figure = line.cpu_ms;
        line = line.with_target(published::LOOKUP_MS, "ms", figure);
    }
    lab.put(line.with_answers(wrong + usize::from(!right), 1))
}

/// Batches of queries.
fn simds(lab: &mut Lab<'_>, source: &Source) -> Outcome<()> {
    for q in [10usize, 100] {
        let set = simd::Set::new(q, false)?;
        let client = simd::Client::generate(set)?;
        let stored = lab.pool.run(|| client.evaluation_keys())?;
        let keys = lab.pool.run(|| simd::Keys::from_bytes(&stored))?;
        let sites = source.panel.description()?;
        for batch in [1, client.most_questions(q)?] {
            let start = cases(source, q, 1)?.pop().ok_or("the panel is too short")?.start;
            let mut questions = Vec::new();
            let mut expected = Vec::new();
            let mut random = Random(7);
            for i in 0..batch {
                let mut symbols = source.others[i % source.others.len()][start..start + q].to_vec();
                if i >= source.others.len() {
                    let at = random.word() as usize % q;
                    symbols[at] ^= true;
                }
                expected.push(longest(&source.panel, start, &symbols, 1)?.length);
                questions.push(Question::new(&sites, start, symbols, 1)?);
            }
            let (query, pending) = client.query(sites.hash(), &questions)?;
            let search = simd::Search { keys: &keys, panel: &source.panel };
            let last = RefCell::new(None);
            reset_peak_rss();
            let one = &lab.one;
            let ours = || {
                *last.borrow_mut() = Some(one.run(|| search.run(&query))?);
                Ok(())
            };
            let budget = Budget { least: 2, ..lab.budget };
            let timing = measure(&mut lab.unit, budget, ours, None)?;
            let (answer, c) = last.into_inner().ok_or("nothing was measured")?;
            let found = client.answer(&pending, &answer)?;
            let wrong = found.iter().zip(&expected).filter(|(a, e)| a.matched != **e).count();
            let mut line = line(lab, "simd, server", source, Protocol::Simd, q, 1).with_timing(timing);
            line.batch = Some(batch);
            (line.bytes_up, line.bytes_down, line.key_bytes) =
                (Some(query.len()), Some(answer.len()), Some(stored.len()));
            for (name, count) in
                [("haplotypes", c.haplotypes), ("ciphertexts", c.ciphertexts), ("products", c.products)]
            {
                line.counters.insert(name, count as f64);
            }
            lab.put(line.with_answers(wrong, batch))?;
        }
    }
    Ok(())
}

/// Encrypted tables from a file: in memory, and from the disk with a quarter of their size to keep them in. The tables
/// of two sites are in memory at a time, so it takes a window of many sites.
fn memory(lab: &mut Lab<'_>, source: &Source, scratch: &Path) -> Outcome<()> {
    let (q, starts) = (32usize, 64);
    let client = lookup::Client::generate(&lookup::Set::standard())?;
    let keys = lab.pool.run(|| client.circuit_key())?;
    let asked = cases(source, q, 1)?.pop().ok_or("the panel is too short")?;
    let sites = source.panel.description()?;
    let question = Question::new(&sites, asked.start, asked.symbols.clone(), 1)?;
    let question = question.hidden(&sites, 0..sites.len(), starts, &Seed::from_bytes([3; 32]))?;
    let (query, pending) = client.query(&sites, &question)?;
    let path = scratch.join("tables");
    lab.pool.run(|| EncryptedTables::encrypt(&client, &source.panel, question.starts(), q, &path, &|_, _| ()))?;
    let size = EncryptedTables::open(client.params(), &path)?.bytes() as usize;
    let mut warm = None;
    let mut cases = vec![("lookup, tables in memory", false)];
    match MemoryLimit::new(size) {
        Ok(_) => cases.push(("lookup, tables on disk", true)),
        Err(e) => eprintln!("tables on disk: not measured, as memory cannot be limited here: {e}"),
    }
    for (case, limited) in cases {
        let (mut timing, mut wrong, mut peak) = (Timing::default(), 0, None);
        for round in 0..4 {
            lab.unit.sample(&mut timing.unit);
            reset_peak_rss();
            let limit = limited.then(|| MemoryLimit::new(size / 4)).transpose()?;
            // From the disk they are read past the page cache.
            let tables = EncryptedTables::open(client.params(), &path)?;
            let tables = if limited { tables } else { tables.in_memory()? };
            let search = lookup::Search { keys: &keys, tables: Tables::Encrypted(&tables), stage: &|_, _, _| () };
            let clock = Clock::start();
            let (answer, _) = lab.one.run(|| search.run(&query))?;
            if round > 0 {
                clock.stop(1, &mut timing.ours);
            }
            peak = limit.and_then(|limit| limit.peak()).max(peak);
            wrong += usize::from(client.answer(&pending, &answer)?[0].matched != asked.expected);
        }
        let mut line = line(lab, case, source, Protocol::Lookup, q, starts).with_timing(timing);
        line.counters.insert("table bytes", size as f64);
        line.counters.extend(peak.map(|peak| ("limited bytes", peak as f64)));
        match warm {
            None => warm = line.median_ms,
            Some(warm) => {
                let ratio = line.median_ms.map(|ms| ms / warm);
                line.counters.extend(ratio.map(|r| ("times in memory", r)));
                line = line.with_target(1.15, "times the search in memory", ratio);
            }
        }
        lab.put(line.with_answers(wrong, 4))?;
    }
    Ok(())
}

/// Random queries on small sets without security: every protocol against the plain search.
fn random(lab: &mut Lab<'_>, scratch: &Path) -> Outcome<()> {
    let mut r = Random(11);
    let founders: Vec<Vec<bool>> = (0..4).map(|_| (0..60).map(|_| r.word() % 10 < 3).collect()).collect();
    let rows: Vec<Vec<bool>> = (0..30)
        .map(|_| {
            let mut from = 0;
            (0..60)
                .map(|k| {
                    if r.word().is_multiple_of(12) {
                        from = r.word() as usize % 4;
                    }
                    founders[from][k] ^ r.word().is_multiple_of(50)
                })
                .collect()
        })
        .collect();
    let mut text = String::from("##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT");
    (0..15).for_each(|i| text += &format!("\tS{i}"));
    for k in 0..60 {
        text += &format!("\n1\t{}\t.\tA\tC\t.\t.\t.\tGT", k + 1);
        rows.chunks(2).for_each(|p| text += &format!("\t{}|{}", u8::from(p[0][k]), u8::from(p[1][k])));
    }
    let (input, output) = (scratch.join("toy.vcf"), scratch.join("toy"));
    std::fs::write(&input, text + "\n")?;
    Build::default().run(&input, &output, &|_, _| ())?;
    let panel = std::sync::Arc::new(sudare_genome::Panel::open(&output)?);
    let sites = panel.description()?;
    let source = Source { name: "toy".into(), panel, others: rows };
    for protocol in Protocol::ALL {
        let clock = Clock::start();
        let mut timing = Timing::default();
        let mut r = Random(13);
        let (mut wrong, mut of) = (0, 0);
        let toy = Toy::new(protocol)?;
        while of < lab.options.random {
            let q = 1 + r.word() as usize % if protocol == Protocol::Lookup { 3 } else { 8 };
            let start = r.word() as usize % (61 - q);
            let eps = 1 + (r.word() % 3) as u32;
            let batch = if protocol == Protocol::Simd { 32 } else { 1 };
            let (mut questions, mut expected) = (Vec::new(), Vec::new());
            for _ in 0..batch {
                let mut symbols = source.others[r.word() as usize % 30][start..start + q].to_vec();
                if r.word().is_multiple_of(2) {
                    let at = r.word() as usize % q;
                    symbols[at] ^= true;
                }
                expected.push(longest(&source.panel, start, &symbols, eps)?.length);
                questions.push(Question::new(&sites, start, symbols, eps)?);
            }
            let found = lab.pool.run(|| toy.ask(&sites, &source, &questions))?;
            wrong += found.iter().zip(&expected).filter(|(a, b)| a != b).count();
            of += found.len();
        }
        clock.stop(of as u32, &mut timing.ours);
        lab.unit.sample(&mut timing.unit);
        let mut line = line(lab, "random queries", &source, protocol, 0, 1).with_timing(timing);
        (line.q, line.threads) = (None, lab.pool.count());
        lab.put(line.with_answers(wrong, of))?;
    }
    Ok(())
}

/// Both sides of a protocol with a small set.
enum Toy {
    Trie(trie::Client),
    Lookup(lookup::Client, Box<CircuitKey>),
    Simd(simd::Client, Box<simd::Keys>),
}

impl Toy {
    fn new(protocol: Protocol) -> Outcome<Self> {
        Ok(match protocol {
            Protocol::Trie => Self::Trie(trie::Client::generate(&trie::Set::insecure_test())?),
            Protocol::Lookup => {
                let client = lookup::Client::generate(&lookup::Set::insecure_test())?;
                let keys = client.circuit_key()?;
                Self::Lookup(client, Box::new(keys))
            }
            Protocol::Simd => {
                let client = simd::Client::generate(simd::Set::new(8, false)?.insecure_test())?;
                let keys = simd::Keys::from_bytes(&client.evaluation_keys()?)?;
                Self::Simd(client, Box::new(keys))
            }
        })
    }

    fn ask(&self, sites: &Sites, source: &Source, questions: &[Question]) -> Outcome<Vec<usize>> {
        let answers = match self {
            Self::Trie(client) => {
                let store = trie::Store::new(source.panel.clone());
                let (query, pending) = client.query(sites.hash(), &questions[0], false)?;
                let search = trie::Search {
                    params: client.params(),
                    store: &store,
                    keys: None,
                    class: None,
                    progress: &|_, _| (),
                };
                client.answer(&pending, &search.run(&query)?.0)?
            }
            Self::Lookup(client, keys) => {
                let (query, pending) = client.query(sites, &questions[0])?;
                let search = lookup::Search { keys, tables: Tables::Panel(&source.panel), stage: &|_, _, _| () };
                client.answer(&pending, &search.run(&query)?.0)?
            }
            Self::Simd(client, keys) => {
                let (query, pending) = client.query(sites.hash(), questions)?;
                client.answer(&pending, &simd::Search { keys, panel: &source.panel }.run(&query)?.0)?
            }
        };
        Ok(answers.iter().map(|a| a.matched).collect())
    }
}
