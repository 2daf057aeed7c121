//! The lab: benchmarks that check their answers, in one process with their peers.
//!
//! Each line tells the conditions, the figure, the unit measured in turn with it, and whether
//! the answer was right. See `bench/README.md`.
#![forbid(unsafe_code)]

mod bootstrap;
mod discrete;
mod exact;
mod fma;
mod genome;
mod gpu;
mod hoisting;
mod limit;
mod limits;
mod lines;
mod machine;
mod matmul;
mod models;
mod ntt;
mod ops;
mod packing;
mod papers;
mod papers_001;
mod papers_001_genome;
mod papers_001_tfhe;
mod papers_002;
mod papers_004;
mod parties;
mod parts;
mod plot;
mod public;
mod record;
mod refresh;
mod schemes;
mod serve;
mod store;
mod tfhe;
mod timing;
mod trace;
mod traffic;

use clap::{Parser, Subcommand};
use machine::Machine;
use record::Sink;
use std::path::PathBuf;
use std::process::ExitCode;
use sudare_ring::{Family, Threads};
use timing::Budget;

/// A result whose error is told to the person who runs the lab.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The peer of transforms and the unit.
const PEER: &str = "tfhe-ntt 0.7";

/// Benchmarks of Sudare; every answer is checked in the run that is timed.
#[derive(Debug, Parser)]
#[command(name = "sudare-bench", version)]
struct Cli {
    /// One JSON object a line instead of a table.
    #[arg(long, global = true)]
    json: bool,
    /// Store the run with its raw samples in the folder of `--runs`.
    #[arg(long, global = true)]
    save: bool,
    /// Folder of stored runs.
    #[arg(long, global = true, default_value = "bench/runs")]
    runs: PathBuf,
    /// Seconds for one case.
    #[arg(long, global = true, default_value_t = 1.0)]
    seconds: f64,
    /// Least number of samples of a case.
    #[arg(long, global = true, default_value_t = 5)]
    least: usize,
    /// Threads; 0 means one for each processor.
    #[arg(long, global = true, default_value_t = 1)]
    threads: usize,
    /// Kernel families to measure under, or `all` that the machine has: transforms in turn in one process, other suites
    /// in a process for each.
    #[arg(long, global = true, value_delimiter = ',')]
    family: Vec<String>,
    #[command(subcommand)]
    suite: Suite,
}

impl Cli {
    /// The families that were asked for, the most general first.
    fn families(&self) -> Outcome<Vec<Family>> {
        let here = || Family::ALL.into_iter().filter(|f| f.available());
        if self.family.iter().any(|name| name == "all") {
            return Ok(here().collect());
        }
        let named = self.family.iter().map(|name| name.parse()).collect::<Result<Vec<Family>, _>>()?;
        if let Some(missing) = named.iter().find(|f| !f.available()) {
            return Err(format!("this machine cannot run the kernel family {}", missing.name()).into());
        }
        Ok(here().filter(|f| named.contains(f)).collect())
    }
}

/// Runs the same command once for each family: what a process uses is decided once.
fn run_each(families: &[Family]) -> Outcome<()> {
    let mut rest = std::env::args_os().skip(1);
    let mut arguments = Vec::new();
    while let Some(argument) = rest.next() {
        match argument.to_str() {
            Some("--family") => drop(rest.next()),
            Some(text) if text.starts_with("--family=") => {}
            _ => arguments.push(argument),
        }
    }
    for family in families {
        let mut child = std::process::Command::new(std::env::current_exe()?);
        let status = child.args(&arguments).args(["--family", family.name()]).status()?;
        if !status.success() {
            return Err(format!("under {}: {status}", family.name()).into());
        }
    }
    Ok(())
}

#[derive(Debug, Subcommand)]
enum Suite {
    /// Transforms of one limb beside `tfhe-ntt`.
    Ntt(ntt::Options),
    /// Operations on ciphertexts.
    Ops(ops::Options),
    /// Additions and products of BFV, BGV and CKKS by ring degree and depth, and the steps of a product.
    Schemes(schemes::Options),
    /// Exact matrix products; BFV beside a peer.
    Exact(exact::Options),
    /// Products of encrypted matrices.
    Matmul(matmul::Options),
    /// Compiled models: seconds and memory beside what their plans predict.
    Models(models::Options),
    /// Tables 5, 6 and 7 of the 3-D matrix product paper beside ours, as a page.
    #[command(name = "papers-000")]
    Papers000(papers::Options),
    /// Products of packed integer matrices under the BV scheme: the packing paper's Tables 1 and 2.
    Packing(packing::Options),
    /// Tables 1 and 2 of the packing paper beside ours, as a page.
    #[command(name = "papers-002")]
    Papers002,
    /// Multiply, then add, against one fused kernel: the trace paper's Table 5.2.
    Fma(fma::Options),
    /// Unrolled trace-type functions: the trace paper's Tables 5.3 to 5.14.
    Trace(trace::Options),
    /// The tables and plots of the thesis on trace-type functions beside ours, as a page.
    #[command(name = "papers-004")]
    Papers004(papers_004::Options),
    /// TFHE: gates, bootstraps and their parts, CMUX, encrypted integers, keys.
    Tfhe(tfhe::Options),
    /// How often TFHE's bootstraps fail at reduced precision, against the formula.
    TfheFailure(tfhe::failure::Options),
    /// Random gates of outputs of gates, a million of them, each compared.
    TfheGates(tfhe::gates::Options),
    /// The noise of every operation of TFHE against its formula.
    TfheNoise(tfhe::noise::Options),
    /// The TFHE figures of the library comparison beside ours, as a page.
    #[command(name = "papers-001-tfhe")]
    Papers001Tfhe(tfhe::Options),
    /// CKKS bootstrapping by set: steps, precision by shape of input, counters, keys and memory.
    Bootstrap(bootstrap::Options),
    /// Gates and tables of 2^15 integers by one bootstrap, by set: time of a value, errors, counters, keys.
    Discrete(discrete::Options),
    /// Whole computations on small integers: a million identifiers compared, the game of life, AES-128.
    DiscreteWork(discrete::work::Options),
    /// BFV and BGV slots refreshed by removal of the noise digit: steps, products after it, counters, keys and memory.
    Refresh(refresh::Options),
    /// The library comparison's figures beside ours, as one page with those of TFHE and of the genome search.
    #[command(name = "papers-001")]
    Papers001(schemes::Options),
    /// Private searches in haplotype panels: every protocol, every answer checked.
    Genome(genome::Options),
    /// Figures 4 to 6 of the library comparison beside ours, as a page.
    #[command(name = "papers-001-genome")]
    Papers001Genome(genome::Options),
    /// Sums and products of many ciphertexts on a GPU, by the ways of the paper on them and in one launch; whole products
    /// of batches. Without a card the emulator checks the answers.
    Gpu(gpu::Options),
    /// The public workloads by our entries: what their harnesses measure, answers checked. Build the entries before:
    /// `cargo build --release -p sudare-submissions`.
    Public(public::Options),
    /// Products of stored matrices: wall time beside reading and computing alone, bytes read, memory.
    Store(store::Options),
    /// `sudare serve` over loopback: what it adds to a product, overload, slow connections, many requests.
    Serve(serve::Options),
    /// A session of several parties through a shared folder: time and bytes of each step, for one of them.
    Parties(parties::Options),
    /// What the operations are made of.
    Parts(ops::Set),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sudare-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Outcome<()> {
    if !(cli.seconds.is_finite() && cli.seconds >= 0.0) || cli.least == 0 {
        return Err("--seconds takes a number that is not negative, --least one above zero".into());
    }
    if let Some(name) = std::env::var_os("SUDARE_KERNEL") {
        name.to_string_lossy().parse::<Family>().and_then(Family::limit).map_err(|e| format!("SUDARE_KERNEL: {e}"))?;
    }
    let families = cli.families()?;
    // Added to the names of stored runs.
    let mut tag = String::new();
    match (&cli.suite, families.as_slice()) {
        (Suite::Ntt(_), _) | (_, []) => {}
        (_, [family]) => {
            family.limit()?;
            tag = format!("-{}", family.name());
        }
        _ => return run_each(&families),
    }
    let machine = Machine::here();
    let budget = Budget { seconds: cli.seconds, least: cli.least };
    let threads = Threads::new(cli.threads);
    let mut sink = Sink::new(cli.json, cli.save.then(|| cli.runs.clone()));
    let name = match &cli.suite {
        Suite::Ntt(options) => ntt::run(options, &families, budget, &machine, &mut sink).map(|()| "ntt"),
        Suite::Ops(options) => ops::run(options, budget, &threads, &machine, &mut sink).map(|()| "ops"),
        Suite::Schemes(options) => schemes::run(options, budget, &threads, &machine, &mut sink).map(|_| "schemes"),
        Suite::Papers001(options) => {
            papers_001::run(options, budget, &threads, (&machine, cli.json), &mut sink, &cli.runs)
                .map(|()| "papers-001")
        }
        Suite::Exact(options) => exact::run(options, budget, &threads, &machine, &mut sink).map(|()| "exact"),
        Suite::Matmul(options) => matmul::run(options, budget, &threads, &machine, &mut sink).map(|()| "matmul"),
        Suite::Papers000(options) => {
            papers::run(options, budget, &threads, &machine, &mut sink, &cli.runs).map(|()| "papers-000")
        }
        Suite::Packing(options) => packing::run(options, budget, &threads, &machine, &mut sink).map(|()| "packing"),
        Suite::Papers002 => papers_002::run(budget, &threads, &machine, &mut sink, &cli.runs).map(|()| "papers-002"),
        Suite::Fma(options) => {
            let mut lines = lines::Lines::new(cli.json);
            fma::run(options, budget, &machine, &mut lines)?;
            return lines.finish();
        }
        Suite::Trace(options) => {
            let mut lines = lines::Lines::new(cli.json);
            trace::run(options, budget, &threads, &machine, &mut lines)?;
            return lines.finish();
        }
        Suite::Papers004(options) => return papers_004::run(options, budget, cli.json, &machine, &cli.runs),
        Suite::Tfhe(options) => {
            return listed(cli, &format!("tfhe{tag}"), &machine, |lines| tfhe::run(options, budget, &machine, lines));
        }
        Suite::TfheFailure(options) => {
            return listed(cli, &format!("tfhe-failure{tag}"), &machine, |lines| {
                tfhe::failure::run(options, &threads, &machine, lines)
            });
        }
        Suite::TfheGates(options) => {
            return listed(cli, &format!("tfhe-gates{tag}"), &machine, |lines| {
                tfhe::gates::run(options, &threads, &machine, lines)
            });
        }
        Suite::TfheNoise(options) => {
            return listed(cli, &format!("tfhe-noise{tag}"), &machine, |lines| {
                tfhe::noise::run(options, &threads, &machine, lines)
            });
        }
        Suite::Bootstrap(options) => {
            return listed(cli, &format!("bootstrap{tag}"), &machine, |lines| {
                bootstrap::run(options, budget, &threads, &machine, lines)
            });
        }
        Suite::Discrete(options) => {
            return listed(cli, &format!("discrete{tag}"), &machine, |lines| {
                discrete::run(options, budget, &threads, &machine, lines)
            });
        }
        Suite::DiscreteWork(options) => {
            return listed(cli, &format!("discrete-work{tag}"), &machine, |lines| {
                discrete::work::run(options, &threads, &machine, lines)
            });
        }
        Suite::Refresh(options) => {
            return listed(cli, &format!("refresh{tag}"), &machine, |lines| {
                refresh::run(options, budget, &threads, &machine, lines)
            });
        }
        Suite::Papers001Tfhe(options) => {
            return papers_001_tfhe::run(options, budget, cli.json, &machine, &cli.runs);
        }
        Suite::Genome(options) => {
            return listed(cli, &format!("genome{tag}"), &machine, |lines| {
                genome::run(options, budget, &machine, lines)
            });
        }
        Suite::Public(options) => {
            return listed(cli, &format!("public{tag}"), &machine, |lines| {
                public::run(options, cli.threads, &machine, lines)
            });
        }
        Suite::Models(options) => {
            return listed(cli, &format!("models{tag}"), &machine, |lines| {
                models::run(options, budget, &threads, &machine, lines)
            });
        }
        Suite::Store(options) => {
            return listed(cli, &format!("store{tag}"), &machine, |lines| {
                store::run(options, cli.threads, &machine, lines)
            });
        }
        Suite::Serve(options) => {
            return listed(cli, &format!("serve{tag}"), &machine, |lines| {
                serve::run(options, cli.threads, &machine, lines)
            });
        }
        Suite::Parties(options) => {
            return listed(cli, &format!("parties{tag}"), &machine, |lines| {
                parties::run(options, cli.threads, &machine, lines)
            });
        }
        Suite::Papers001Genome(options) => {
            return papers_001_genome::run(options, budget, cli.json, &machine, &cli.runs);
        }
        Suite::Gpu(options) => return gpu::run(options, &machine, cli.json, &cli.runs),
        Suite::Parts(set) => parts::run(set, budget, &machine, &mut sink).map(|()| "parts"),
    }?;
    sink.finish(&format!("{name}{tag}"))
}

/// A suite with lines of its own: printed as they come, and stored with their day where that is asked for.
fn listed<T: serde::Serialize>(
    cli: &Cli,
    name: &str,
    machine: &Machine,
    run: impl FnOnce(&mut lines::Lines) -> Outcome<Vec<T>>,
) -> Outcome<()> {
    let mut lines = lines::Lines::new(cli.json);
    let all = run(&mut lines)?;
    if cli.save {
        lines::store(&cli.runs.join(format!("{name}-{}.json", machine.date)), &all)?;
    }
    lines.finish()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }

    /// An option of a suite with the name of one of all suites is found by nothing else.
    #[test]
    fn suites_are_read_with_their_defaults() {
        for suite in super::Cli::command().get_subcommands() {
            let line = ["sudare-bench", suite.get_name()];
            match <super::Cli as clap::Parser>::try_parse_from(line) {
                Ok(cli) => assert_eq!(cli.runs, std::path::Path::new("bench/runs")),
                Err(error) => assert_eq!(error.kind(), clap::error::ErrorKind::MissingRequiredArgument, "{error}"),
            }
        }
    }

    #[test]
    fn families_are_named_or_all() {
        let families = |words: &str| {
            let line = std::iter::once("sudare-bench").chain(words.split(' '));
            <super::Cli as clap::Parser>::parse_from(line).families()
        };
        assert!(families("ntt").unwrap().is_empty());
        assert_eq!(families("ops --family portable").unwrap(), [super::Family::Portable]);
        assert_eq!(families("ops --family all").unwrap()[0], super::Family::Portable);
        assert!(families("ops --family avx").is_err());
    }
}
