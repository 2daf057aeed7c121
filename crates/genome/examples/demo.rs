//! `make demo-genome`: a real panel, a real other sample's haplotype, the three protocols, each side from bytes alone;
//! answers compared with the plain search, times of the stages, bytes.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use sudare_genome::panel::{Build, Kinds};
use sudare_genome::planner::{Choice, Facts, Prices};
use sudare_genome::report::Row;
use sudare_genome::search::longest;
use sudare_genome::vcf::VariantFile;
use sudare_genome::{
    Client, Counters, KeyPlan, Options, Panel, Pending, Protocol, Question, Reading, Server, Shape, Sites,
};
use sudare_ring::Threads;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Milliseconds of some work, and its result.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let clock = Instant::now();
    let result = work();
    (clock.elapsed().as_secs_f64() * 1e3, result)
}

/// What a client wants to know, and the answer in the clear.
struct Wanted<'a> {
    sites: &'a Sites,
    start: usize,
    symbols: Vec<bool>,
    sample: &'a str,
    hap: u32,
    expected: usize,
}

/// Keys, query, search and answer of one protocol, each from the bytes of the one before.
fn ask(protocol: Protocol, wanted: &Wanted<'_>, server: &mut Server, pool: &Threads) -> Outcome<()> {
    let plan = KeyPlan { protocol, sites: wanted.symbols.len(), hidden: false };
    let (key_ms, made) = timed(|| {
        pool.run(|| -> Outcome<_> {
            let client = Client::generate(plan)?;
            // The trie needs none.
            let keys = if protocol == Protocol::Trie { Vec::new() } else { client.evaluation_keys()? };
            Ok((client, keys))
        })
    });
    let (client, keys) = made?;
    if !keys.is_empty() {
        pool.run(|| server.add_keys(&keys))?;
    }
    let question = Question::new(wanted.sites, wanted.start, wanted.symbols.clone(), 1)?;
    let question = question.named(wanted.sample, wanted.hap);
    let (query_ms, query) = timed(|| pool.run(|| client.query(wanted.sites, &[question], false)));
    let (query, pending) = query?;
    let pending = pending.to_bytes()?;
    let (search_ms, answer) = timed(|| pool.run(|| server.search(&query, Options::default())));
    let (answer, counters) = answer?;
    let (answer_ms, answers) = timed(|| client.answer(&Pending::from_bytes(&pending)?, &answer));
    let answers = answers?;
    if answers[0].matched != wanted.expected {
        return Err(format!("{protocol}: {} sites, not {}", answers[0].matched, wanted.expected).into());
    }
    let row = Row::new(&answers[0], wanted.sites)?;
    let work = match counters {
        Counters::Trie(c) => format!("{} products", c.products),
        Counters::Lookup(c) => format!("{} lookups, {} bootstraps", c.lookups, c.bootstraps),
        Counters::Simd(c) => format!("{} products of {} ciphertexts", c.products, c.ciphertexts),
    };
    let (name, matched, asked, status) = (protocol.name(), row.matched_sites, row.n_sites, row.status);
    println!("{name:<11} {matched} of {asked} match ({status}), as in the clear; {work}");
    println!(
        "            keys {key_ms:.0} ms ({:.1} MB to the server), query {query_ms:.0} ms ({:.1} kB), search {search_ms:.0} ms on {} threads, answer {answer_ms:.1} ms ({:.1} kB)",
        keys.len() as f64 / 1e6,
        query.len() as f64 / 1e3,
        pool.count(),
        answer.len() as f64 / 1e3
    );
    Ok(())
}

fn main() -> Outcome<()> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/genome");
    let folder = tempfile::tempdir()?;
    let pool = Threads::new(0);
    println!("data        1000 Genomes haplotypes of chromosome 20, from the Debian package shapeit4-example");

    let path = folder.path().join("panel");
    let build = Build { kinds: Kinds::Snps, ..Build::default() };
    let (ms, built) = timed(|| build.run(&data.join("panel.vcf.gz"), &path, &|_, _| ()));
    let built = built?;
    let panel = Arc::new(Panel::open(&path)?);
    println!(
        "panel       {} haplotypes × {} sites from {} records, {:.1} kB, {ms:.0} ms",
        panel.haplotypes(),
        panel.sites(),
        built.records,
        built.bytes as f64 / 1e3
    );
    let sites = Sites::from_bytes(&panel.description()?.to_bytes()?)?;
    let mut server = Server::new(panel.clone())?;

    let others = VariantFile::open(&data.join("others.vcf.gz"))?;
    for (sample, hap, region, protocols) in [
        ("NA06994", 2, "20:1100000-1112000", &[Protocol::Trie, Protocol::Simd][..]),
        ("NA07048", 1, "20:1200000-1201500", &Protocol::ALL[..]),
    ] {
        let window = sites.window(&region.parse()?)?;
        let symbols = Reading::default().symbols(&sites, &others, sample, hap, window.clone())?;
        let found = longest(&panel, window.start, &symbols, 1)?;
        println!(
            "\nquery       haplotype {hap} of {sample} at {} sites of {region}; in the clear {} match, shared by {}",
            window.len(),
            found.length,
            found.haplotypes
        );
        let shape = Shape { sites: window.len(), starts: 1, eps: 1 };
        let choice = Choice::of(Facts::of_panel(&panel, shape, 1)?, &Prices::default())?;
        println!("plan        {}", choice.to_string().lines().next().unwrap_or_default());
        let wanted = Wanted { sites: &sites, start: window.start, symbols, sample, hap, expected: found.length };
        for &protocol in protocols {
            ask(protocol, &wanted, &mut server, &pool)?;
        }
    }
    println!("\nall answers are those of the plain search");
    Ok(())
}
