//! `sudare genome`: private searches, each step a process of its own.

use super::genome_args::KEY_FILES;
use super::{bytes, genome_args as args, print, say};
use crate::args::Args;
use crate::error::{CliError, InFile};
use crate::files::{self, Access, Output, Whole};
use crate::progress::Bar;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use sudare_genome::lookup::{self, EncryptedTables};
use sudare_genome::message::Head;
use sudare_genome::panel::{Build, Kinds, Policy, Samples};
use sudare_genome::planner::{Choice, Facts, Prices};
use sudare_genome::report::{Row, TSV_HEAD, beacon};
use sudare_genome::vcf::VariantFile;
use sudare_genome::{
    Client, Counters, Decoys, GenomeError, KeyPlan, Options, Panel, Pending, Protocol, Question, Reading, Server,
    Shape, Sites, trie,
};
use sudare_ring::{ErrorKind, Threads};
use sudare_rlwe::wire::{Header, ObjectType, peek};
use sudare_store::is_store;

/// Most bytes of the files that are read whole.
const MAX_DESCRIPTION: u64 = 4 << 30;
const MAX_MESSAGE: u64 = 4 << 30;
const MAX_SECRET: u64 = 1 << 20;

pub fn run(all: &Args, command: &args::Genome) -> Result<(), CliError> {
    match command {
        args::Genome::Panel(args::PanelCommand::Build(a)) => build(all, a),
        args::Genome::Panel(args::PanelCommand::Info(a)) => info(a),
        args::Genome::Panel(args::PanelCommand::Prepare(a)) => prepare(all, a),
        args::Genome::Panel(args::PanelCommand::Class(a)) => class(all, a),
        args::Genome::Panel(args::PanelCommand::Encrypt(a)) => encrypt(all, a),
        args::Genome::Plan(a) => plan(a),
        args::Genome::Keygen(a) => keygen(all, a),
        args::Genome::Query(a) => query(all, a),
        args::Genome::Search(a) => search(all, a),
        args::Genome::Answer(a) => answer(all, a),
    }
}

/// An output that is whole and not in its place yet.
fn write(path: &Path, access: Access, bytes: &[u8]) -> Result<Whole, CliError> {
    let mut out = Output::create(path, access)?;
    match access {
        Access::Owner | Access::Key => out.write_secret(bytes)?,
        Access::Usual => out.write_all(bytes).in_file(path)?,
    }
    out.finish()
}

/// An output's line: its place, its size and what it is.
fn line(whole: &Whole, note: impl std::fmt::Display) -> String {
    format!("{}  {}  {note}", whole.path().display(), bytes(whole.size()))
}

fn samples(list: Option<&str>) -> Samples {
    let names = |text: &str| text.split(',').map(|s| s.trim().to_owned()).collect();
    match list {
        None => Samples::All,
        Some(text) => match text.strip_prefix('^') {
            Some(rest) => Samples::Without(names(rest)),
            None => Samples::Only(names(text)),
        },
    }
}

fn build(all: &Args, a: &args::Build) -> Result<(), CliError> {
    let policy = Policy { least_eps: a.least_eps, most_sites: a.most_sites, most_starts: a.most_starts };
    if [a.least_eps, a.most_sites, a.most_starts].contains(&0) {
        return Err(CliError::new(
            ErrorKind::Usage,
            "--least-eps, --most-sites and --most-starts have to be at least 1",
        ));
    }
    let build = Build {
        region: a.region.clone(),
        samples: samples(a.samples.as_deref()),
        kinds: match a.kinds {
            args::Kinds::Biallelic => Kinds::Biallelic,
            args::Kinds::SkipOthers => Kinds::SkipOthers,
            args::Kinds::Snps => Kinds::Snps,
        },
        least_frequency: a.maf,
        assembly: a.assembly.clone(),
        policy,
    };
    let bar = Bar::steps("reading records", all.quiet);
    // The panel is its owner's alone.
    let mut out = Output::create(&a.output, Access::Owner)?;
    let folder = files::folder(&a.output);
    let built = build.write(&a.input, folder, &mut out, &|read, length| bar.set(read as usize, length as usize));
    drop(bar);
    let built = built.in_file(&a.input)?;
    let panel = out.finish()?;
    let sites = Panel::open(panel.scratch()).and_then(|panel| panel.description()?.to_bytes()).in_file(&a.output)?;
    let sites = write(&a.sites(), Access::Usual, &sites)?;
    let lines = [
        line(&panel, "keep it on the server"),
        line(&sites, "for clients: sites and no haplotypes"),
        format!("{} records, {} of other kinds and {} rare left out", built.records, built.other_kinds, built.rare),
        describe(&built.outline),
    ];
    say(all, lines.join("\n"))?;
    files::place(vec![panel, sites], all.existing())
}

/// What everybody may know of a panel, for people.
fn describe(o: &sudare_genome::panel::Outline) -> String {
    let contigs: Vec<String> = o.contigs.iter().map(|c| format!("{} ({})", c.contig.name, c.sites.len())).collect();
    let assembly = if o.assembly.is_empty() { "unknown" } else { &o.assembly };
    format!(
        "panel {}: {} haplotypes, {} sites on {}; assembly {assembly}; matches shared by {} or more, windows of up to {} sites, up to {} starts",
        o.hash,
        o.haplotypes,
        o.sites(),
        contigs.join(", "),
        o.policy.least_eps,
        o.policy.most_sites,
        o.policy.most_starts
    )
}

fn header(path: &Path) -> Result<Header, CliError> {
    peek(files::open(path)?).in_file(path)
}

fn load_sites(path: &Path) -> Result<Sites, CliError> {
    Sites::from_bytes(&files::read(path, MAX_DESCRIPTION)?).in_file(path)
}

fn load_panel(path: &Path) -> Result<Arc<Panel>, CliError> {
    // A message of the system's tells more than "not a regular file".
    drop(files::open(path)?);
    Ok(Arc::new(Panel::open(path).in_file(path)?))
}

/// The outline of a panel or of its description.
fn outline(path: &Path) -> Result<(sudare_genome::panel::Outline, Option<Arc<Panel>>), CliError> {
    if header(path)?.object() == ObjectType::GenomeSites {
        return Ok((load_sites(path)?.outline().clone(), None));
    }
    let panel = load_panel(path)?;
    Ok((panel.outline().clone(), Some(panel)))
}

fn info(a: &args::Info) -> Result<(), CliError> {
    let (o, panel) = outline(&a.file)?;
    if let Some(panel) = &panel {
        panel.check().in_file(&a.file)?;
    }
    if !a.json {
        return print(describe(&o));
    }
    let contigs: Vec<_> = o
        .contigs
        .iter()
        .map(|c| serde_json::json!({ "name": c.contig.name, "length": c.contig.length, "sites": c.sites.len() }))
        .collect();
    print(serde_json::json!({
            "panel": o.hash.to_string(),
            "haplotypes": o.haplotypes,
            "sites": o.sites(),
            "assembly": o.assembly,
            "contigs": contigs,
            "leastFrequency": o.least_frequency,
            "leastEps": o.policy.least_eps,
            "mostSites": o.policy.most_sites,
            "mostStarts": o.policy.most_starts,
    }))
}

fn prepare(all: &Args, a: &args::Prepare) -> Result<(), CliError> {
    let panel = load_panel(&a.panel)?;
    let range = match &a.region {
        None => 0..panel.sites(),
        Some(region) => panel.description().in_file(&a.panel)?.window(region)?,
    };
    let store = trie::Store::new(panel.clone()).in_folder(&a.store);
    let fit = |s: &usize| panel.outline().check_window(*s, a.sites).is_ok();
    let starts: Vec<usize> = range.filter(fit).collect();
    let bar = Bar::steps("building tables", all.quiet);
    for (i, start) in starts.iter().enumerate() {
        store.diagram(*start, a.sites, a.eps).in_file(&a.store)?;
        bar.set(i + 1, starts.len());
    }
    drop(bar);
    let found = store.found();
    say(all, format!("{}: {} windows, {} of them new", a.store.display(), starts.len(), found.built))
}

fn class(all: &Args, a: &args::Class) -> Result<(), CliError> {
    let store = trie::Store::new(load_panel(&a.panel)?);
    let bar = Bar::steps("looking at windows", all.quiet);
    let pool = Threads::new(all.threads);
    let class = pool.run(|| trie::class(&store, a.sites, a.eps, &|done, all| bar.set(done, all)));
    drop(bar);
    print(class.in_file(&a.panel)?)
}

fn encrypt(all: &Args, a: &args::Encrypt) -> Result<(), CliError> {
    let panel = load_panel(&a.panel)?;
    let client = load_client(&a.keys)?;
    let range = panel.description().in_file(&a.panel)?.window(&a.region)?;
    let starts: Vec<u32> = range.map(|s| s as u32).collect();
    let bar = Bar::steps("encrypting tables", all.quiet);
    let pool = Threads::new(all.threads);
    let lookup = client.lookup().in_file(&a.keys)?;
    let progress = |done, all| bar.set(done, all);
    pool.run(|| EncryptedTables::encrypt(lookup, &panel, &starts, a.sites, &a.output, &progress))?;
    drop(bar);
    let tables = EncryptedTables::open(lookup.params(), &a.output)?;
    let (starts, place) = (starts.len(), a.output.display());
    let [size, held] = [tables.bytes(), tables.search_bytes()].map(bytes);
    say(all, format!("{place}  {size}  {starts} starts, {} sites; a search holds {held} of them", a.sites))
}

fn plan(a: &args::Plan) -> Result<(), CliError> {
    let (o, panel) = outline(&a.file)?;
    let shape = Shape { sites: a.sites, starts: a.starts, eps: a.eps };
    shape.check()?;
    let facts = match &panel {
        Some(panel) => Facts::of_panel(panel, shape, a.batch).in_file(&a.file)?,
        None => Facts::guess(o.haplotypes, shape, a.batch),
    };
    print(Choice::of(facts, &Prices::default())?.to_string().trim_end())
}

fn keygen(all: &Args, a: &args::Keygen) -> Result<(), CliError> {
    std::fs::create_dir_all(&a.output).in_file(&a.output)?;
    let [secret_path, eval_path] = KEY_FILES.map(|name| a.output.join(name));
    let client = Client::generate(KeyPlan { protocol: a.protocol, sites: a.sites, hidden: !a.open_start })?;
    let bar = Bar::clock("making keys", 2.0, all.quiet);
    let keys = Threads::new(all.threads).run(|| client.evaluation_keys())?;
    drop(bar);
    let secret = write(&secret_path, Access::Key, &client.secret_bytes()?)?;
    let eval = write(&eval_path, Access::Usual, &keys)?;
    let needed = match a.protocol {
        Protocol::Trie => "for circuit-private answers alone",
        _ => "for the server: computes, and reads nothing",
    };
    let lines = [
        line(&secret, "keep it to yourself: it decrypts everything"),
        line(&eval, needed),
        format!("key {} for protocol {}", client.id(), a.protocol),
    ];
    say(all, lines.join("\n"))?;
    files::place(vec![secret, eval], all.existing())
}

fn load_client(path: &Path) -> Result<Client, CliError> {
    super::client::warn_if_others_read(path)?;
    Client::from_secret_bytes(&files::read_secret(path, MAX_SECRET)?).in_file(path)
}

fn query(all: &Args, a: &args::Query) -> Result<(), CliError> {
    let sites = load_sites(&a.sites)?;
    let client = load_client(&a.keys)?;
    let window = sites.window(&a.region).in_file(&a.sites)?;
    if window.is_empty() {
        let message = format!("the panel has no site in {}; take a wider region", a.region);
        return Err(CliError::new(ErrorKind::Input, message).in_file(&a.sites));
    }
    let file = VariantFile::open(&a.variants).in_file(&a.variants)?;
    let reading = Reading { absent_is_reference: a.absent_is_reference, assembly: a.assembly.clone() };
    let within = match &a.within {
        Some(region) => sites.window(region).in_file(&a.sites)?,
        None => {
            let all = sudare_genome::Region { contig: a.region.contig.clone(), start: 1, end: u32::MAX };
            sites.window(&all).in_file(&a.sites)?
        }
    };
    let decoys = Decoys { among: a.among, within };
    let mut questions: Vec<Question> = Vec::new();
    for sample in &a.sample {
        for hap in &a.hap {
            let symbols = reading.symbols(&sites, &file, sample, *hap, window.clone()).in_file(&a.variants)?;
            questions.push(Question::new(&sites, window.start, symbols, a.eps)?.named(sample.as_str(), *hap));
        }
    }
    let (query, pending) =
        Threads::new(all.threads).run(|| client.ask(&sites, questions, &decoys, a.circuit_private))?;
    let private = write(&a.private(), Access::Owner, &pending.to_bytes()?)?;
    let query = write(&a.output, Access::Usual, &query)?;
    let lines =
        [line(&query, format!("{} sites", window.len())), line(&private, "keep it: the answer is read with it")];
    say(all, lines.join("\n"))?;
    files::place(vec![private, query], all.existing())
}

fn search(all: &Args, a: &args::Search) -> Result<(), CliError> {
    let query = files::read(&a.query, MAX_MESSAGE)?;
    let head = Head::peek(&query).in_file(&a.query)?;
    let keys = a.keys.as_ref().map(|path| files::read(path, MAX_MESSAGE)).transpose()?;
    let pool = Threads::new(all.threads);
    let bar = Bar::steps("searching", all.quiet);
    let progress = |done, all| bar.set(done, all);
    let result = if is_store(&a.panel) {
        let keys = keys.ok_or(GenomeError::MissingKeys { what: head.protocol.name() })?;
        pool.run(|| search_encrypted(a, &keys, &query, &progress))
    } else {
        let mut server = Server::new(load_panel(&a.panel)?)?;
        if let Some(folder) = &a.store {
            server = server.with_store(folder);
        }
        if let Some(memory) = a.memory {
            server = server.with_memory(memory);
        }
        if let (Some(bytes), Some(path)) = (&keys, &a.keys) {
            pool.run(|| server.add_keys(bytes)).in_file(path)?;
        }
        let options = Options { class: a.pad, progress: Some(&progress) };
        pool.run(|| server.search(&query, options)).in_file(&a.query)
    };
    drop(bar);
    let (answer, counters) = result?;
    let whole = write(&a.output, Access::Usual, &answer)?;
    let work = match counters {
        Counters::Trie(c) => format!(
            "{} products, {} to choose among starts, {} of padding, {} bootstraps",
            c.products, c.choices, c.padding, c.bootstraps
        ),
        Counters::Lookup(c) => format!(
            "{} lookups of {} products, {} groups of {} bootstraps",
            c.lookups, c.lookup_products, c.bootstrap_groups, c.bootstraps
        ),
        Counters::Simd(c) => format!(
            "{} haplotypes in {} ciphertexts, {} products, {} rotations",
            c.haplotypes, c.ciphertexts, c.products, c.rotations
        ),
    };
    say(all, line(&whole, work))?;
    whole.put(all.existing())
}

fn search_encrypted(
    a: &args::Search,
    keys: &[u8],
    query: &[u8],
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<(Vec<u8>, Counters), CliError> {
    let keys = lookup::read_keys(keys)?;
    let tables = EncryptedTables::open(keys.params(), &a.panel)?;
    tables.expect_memory(a.memory.unwrap_or(u64::MAX)).in_file(&a.panel)?;
    Ok(Server::search_encrypted(&keys, &tables, query, progress)?)
}

fn answer(all: &Args, a: &args::Answer) -> Result<(), CliError> {
    let sites = load_sites(&a.sites)?;
    let client = load_client(&a.keys)?;
    let pending = Pending::from_bytes(&files::read_secret(&a.pending, MAX_MESSAGE)?).in_file(&a.pending)?;
    if pending.head.panel != sites.hash() {
        let (found, expected) = (pending.head.panel, sites.hash());
        return Err(GenomeError::WrongPanel { found, expected }).in_file(&a.sites);
    }
    let answers = client.answer(&pending, &files::read(&a.answer, MAX_MESSAGE)?).in_file(&a.answer)?;
    let rows = answers.iter().map(|x| Row::new(x, &sites)).collect::<Result<Vec<_>, _>>()?;
    let text = if a.json {
        format!("{:#}", beacon(&rows, sites.hash(), &sites.outline().assembly))
    } else {
        let lines = std::iter::once(TSV_HEAD.to_owned()).chain(rows.iter().map(Row::tsv));
        lines.collect::<Vec<_>>().join("\n")
    };
    match &a.output {
        None => print(text),
        Some(path) => {
            let whole = write(path, Access::Owner, format!("{text}\n").as_bytes())?;
            say(all, line(&whole, format!("{} answers", rows.len())))?;
            whole.put(all.existing())
        }
    }
}
