//! `gpu`: rates of a card; every kernel's answers and its share of an operation; sums and products of many ciphertexts by
//! the ways of the paper on them (`003`) and in one launch; whole products and rotations of batches with real keys; products of
//! encrypted matrices. Every answer is checked against the processor's.
//!
//! Without a card the emulator runs the same kernels: answers are checked, and there are no times.
//!
//! A borrowed card is there for minutes, so what was measured is never lost: figures are stored one by one, the page is written
//! after each stage, and one stage's failure does not end the others. `bench/gpu/run` gives each stage a process and a
//! limit of its own.

mod kernels;
mod matrices;
mod model;
mod operations;
mod page;
mod paper;
mod rates;

use crate::Outcome;
use crate::lines::{Line, Lines, load, store};
use crate::machine::Machine;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sudare_cuda::{Batch, Device, Info, Kernels, Trial};
use sudare_ring::prime::ntt_primes;
use sudare_ring::{Eval, Poly, RnsBasis};

/// A part of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// A copy, arithmetic, reads from the second-level cache, a launch, a wait.
    Rates,
    /// Every kernel's answers up to N = 2^16, and the time of each launch.
    Kernels,
    /// The paper's tables.
    Paper,
    /// Products and rotations of batches.
    Operations,
    /// Products of encrypted matrices.
    Matrices,
}

/// What a rehearsal lets go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// A word of the first answer that is expected is another one.
    Wrong,
    /// The stage never ends.
    Hang,
}

/// Which device, and what to run on it.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The card's number.
    #[arg(long, default_value_t = 0)]
    device: usize,
    /// The emulator instead of a card.
    #[arg(long)]
    emulate: bool,
    /// Fail where there is no card, instead of taking the emulator.
    #[arg(long, conflicts_with = "emulate")]
    card: bool,
    /// The folder of kernels compiled ahead (`make cuda-kernels`); NVRTC compiles what it has not.
    #[arg(long)]
    kernels: Option<PathBuf>,
    /// Numbers of ciphertexts; 1, 10, 100 and 1000 on a card, 1 and 10 on the emulator.
    #[arg(long, value_delimiter = ',')]
    d: Vec<usize>,
    /// Ring degrees; 8192, 16384 and 32768 on a card, 8192 on the emulator.
    #[arg(long, value_delimiter = ',')]
    n: Vec<usize>,
    /// Widths of the data primes of sums and products.
    #[arg(long, value_delimiter = ',', default_values_t = [60, 40])]
    q_bits: Vec<u32>,
    /// Batches of whole operations; 1, 4, 16, 64 and 256 on a card, 2 on the emulator.
    #[arg(long, value_delimiter = ',')]
    batch: Vec<usize>,
    /// Most repetitions of a case.
    #[arg(long, default_value_t = 200)]
    repetitions: usize,
    /// Seconds after which a case is not repeated again; one run is timed in any case.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Minutes after which no further set and no product of matrices is begun.
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// Stages to run; none for the page alone.
    #[arg(long, value_enum, value_delimiter = ',', num_args = 0.., default_value = "rates,kernels,paper,operations,matrices")]
    stages: Vec<Stage>,
    /// Write `papers-003.json` and `papers-003.md` into the folder of `--runs`.
    #[arg(long)]
    page: bool,
    /// With `--page`: keep what the folder's `papers-003.json` has of other stages.
    #[arg(long, requires = "page")]
    keep: bool,
    /// The emulator's sizes on a card as well, for tools that slow kernels down a hundredfold.
    #[arg(long)]
    small: bool,
    /// Write what the launches of the sets of the figures to reach do, as the emulator counts it, into this file, and end.
    #[arg(long, requires = "emulate", hide = true)]
    count: Option<PathBuf>,
    /// `STAGE:REASON` for the page: why a stage ended that could not say it itself.
    #[arg(long, requires = "page", hide = true)]
    failed: Option<String>,
    /// Let something go wrong, to see what becomes of the page.
    #[arg(long, value_enum, hide = true)]
    fault: Option<Fault>,
}

/// One figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// What was done: `rate`, `sum`, `product`, `multiply, relinearise, rescale`, `rotation`, `8 rotations`,
    /// `sum of 8 rotations`, `matrix product`; `launch`, one of an operation; `device`, what all of it ran on; `stage`, one that failed.
    pub operation: String,
    /// How: `standard`, `method 1`, `method 2`, `both methods`, `one launch`; of a launch its kernel.
    pub method: String,
    /// Ring degree.
    pub n: usize,
    /// Primes, as `{60, 40}`.
    pub primes: String,
    /// Ciphertexts.
    pub d: usize,
    /// Median wall time for all of them, waiting included, in microseconds; none from the emulator.
    pub wall_us: Option<f64>,
    /// Median of the device's own time.
    pub device_us: Option<f64>,
    /// Bytes of operands and results.
    pub bytes: usize,
    /// Model: those bytes at the rate of a copy, measured on this card or assumed for an H100; of rates, operations with keys and
    /// products of matrices, what [`model`] says.
    pub floor_us: f64,
    /// The paper's figure, of an RTX 3090.
    pub printed_us: Option<f64>,
    /// `ok`, or what was wrong.
    pub check: String,
}

impl Line for Cell {
    const HEAD: &'static str = "operation                         method          N  primes              d      wall µs    device µs     model µs    printed  check";

    fn row(&self) -> String {
        let cell = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.1}"));
        format!(
            "{:33} {:12} {:>5}  {:15} {:>5} {:>12} {:>12} {:>12.1} {:>10}  {}",
            self.operation,
            self.method,
            self.n,
            self.primes,
            self.d,
            cell(self.wall_us),
            cell(self.device_us),
            self.floor_us,
            cell(self.printed_us),
            self.check
        )
    }

    fn wrong(&self) -> Option<&str> {
        (self.check != "ok").then_some(&self.check)
    }
}

/// Bytes per microsecond that an H100 copies, read and written together: for models where no card was measured.
pub const ASSUMED_COPY: f64 = 3.0e6;
/// The same of the paper's RTX 3090, by its maker's figure.
pub const PAPER_COPY: f64 = 9.36e5;

/// Bytes a microsecond of a copy, and whether it was measured on this card.
fn copy_rate(cells: &[Cell]) -> (f64, bool) {
    let copy = cells.iter().find(|c| c.operation == "rate" && c.method == "copy");
    copy.and_then(|c| c.device_us.map(|us| (c.bytes as f64 / us, true))).unwrap_or((ASSUMED_COPY, false))
}

/// A device and how cases are timed on it.
pub struct Bench {
    device: Device,
    repetitions: usize,
    /// After which a case is not repeated again.
    patience: Duration,
    /// Bytes a microsecond of a copy.
    copy: f64,
    /// After which nothing long is begun.
    end: Option<Instant>,
    /// Whether sizes are those of the emulator.
    small: bool,
    fault: Option<Fault>,
}

impl Bench {
    /// Median microseconds of `work`, which waits at its end, by the host's clock; `d` ciphertexts at a time.
    fn times(&self, d: usize, work: &mut dyn FnMut() -> Outcome<()>) -> Outcome<Option<f64>> {
        work()?;
        if self.device.info().emulated {
            return Ok(None);
        }
        let repetitions = (20_000 / d.max(1)).clamp(10, self.repetitions.max(10));
        self.repeated(repetitions, &mut || {
            self.device.synchronize()?;
            let start = Instant::now();
            work()?;
            Ok(Some(start.elapsed().as_secs_f64() * 1e6))
        })
    }

    /// Median microseconds by the device's clock.
    fn device_time(&self, work: &mut dyn FnMut() -> Outcome<()>) -> Outcome<Option<f64>> {
        if self.device.info().emulated {
            return Ok(None);
        }
        self.repeated(11, &mut || {
            let mut done = Ok(());
            let us = self.device.timed(&mut || {
                done = work();
                Ok(())
            })?;
            done.map(|()| us)
        })
    }

    /// Median of as many samples as there is patience for.
    fn repeated(&self, most: usize, sample: &mut dyn FnMut() -> Outcome<Option<f64>>) -> Outcome<Option<f64>> {
        let end = Instant::now() + self.patience;
        let mut samples = Vec::with_capacity(most);
        while samples.len() < most && (samples.is_empty() || Instant::now() < end) {
            let Some(us) = sample()? else { return Ok(None) };
            samples.push(us);
        }
        Ok(Some(median(samples)))
    }

    /// Whether no time is left to begin something long.
    fn late(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() > end)
    }

    /// `ok` if all items are what the processor computed; item i is compared with number i of `want`, which repeats.
    fn check<P: AsRef<[Poly<Eval>]>>(&self, got: &Batch<Eval>, items: usize, want: &[P]) -> Outcome<String> {
        for (item, want) in (0..items).zip(want.iter().cycle()) {
            let said = check(got, item, want.as_ref())?;
            if said != "ok" {
                return Ok(said);
            }
        }
        Ok("ok".into())
    }
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Primes of these widths, the largest of each.
fn basis(n: usize, bits: &[u32], others: &[&RnsBasis]) -> Outcome<RnsBasis> {
    let mut taken: Vec<u64> = others.iter().flat_map(|b| b.primes()).collect();
    let mut primes = Vec::new();
    for bits in bits {
        let q = ntt_primes(n, *bits, 1, &taken)?[0];
        primes.push(q);
        taken.push(q);
    }
    Ok(RnsBasis::new(n, &primes)?)
}

/// A uniform polynomial: test data.
fn uniform(basis: &RnsBasis, salt: u64) -> Poly<Eval> {
    let mut out = Poly::dirty(basis);
    for i in 0..basis.len() {
        crate::timing::fill(out.limb_mut(i), basis.limb(i).q(), salt.wrapping_mul(64).wrapping_add(i as u64));
    }
    out
}

/// `ok` if an item is what the processor computed.
fn check(got: &Batch<Eval>, item: usize, want: &[Poly<Eval>]) -> Outcome<String> {
    let got = got.item_to_host(item)?;
    let wrong: usize =
        got.iter().zip(want).map(|(x, y)| x.words().iter().zip(y.words()).filter(|(x, y)| x != y).count()).sum();
    let same = got.len() == want.len() && wrong == 0;
    Ok(if same { "ok".into() } else { format!("{wrong} words of item {item} differ from the processor's") })
}

/// The card, or the emulator where there is none.
fn open(options: &Options) -> Outcome<Device> {
    let emulator = || {
        let room = 12 << 30;
        Device::emulator(Trial::default(), room)
    };
    if options.emulate {
        return Ok(emulator());
    }
    let kernels = options.kernels.clone().map_or_else(Kernels::default, Kernels::in_folder);
    match Device::open(options.device, &kernels) {
        Ok(device) => Ok(device),
        Err(error) if options.card => Err(error.into()),
        Err(error) => {
            eprintln!("no card: {error}\nthe emulator takes its place: answers are checked, and there are no times");
            Ok(emulator())
        }
    }
}

/// What a page says of the device.
fn describe(info: &Info) -> String {
    match info.emulated {
        true => "the emulator".into(),
        false => format!(
            "{}, compute capability {}.{}, {} multiprocessors, {:.0} GB",
            info.name,
            info.capability.0,
            info.capability.1,
            info.multiprocessors,
            info.memory as f64 / 1e9
        ),
    }
}

/// Figures as they come: printed, and stored at once where there is a page.
struct Figures<'a> {
    lines: Lines,
    cells: Vec<Cell>,
    /// Where the page and the figures belong.
    page: Option<&'a Path>,
    machine: &'a Machine,
}

impl Figures<'_> {
    fn put(&mut self, cell: Cell) -> Outcome<()> {
        self.lines.put(&cell)?;
        self.cells.push(cell);
        self.page.map_or(Ok(()), |folder| store(&folder.join("papers-003.json"), &self.cells))
    }

    fn write(&self) -> Outcome<()> {
        let Some(folder) = self.page else { return Ok(()) };
        store(&folder.join("papers-003.json"), &self.cells)?;
        let clocks = std::fs::read_to_string(folder.join("card.csv")).ok();
        crate::record::replace(
            &folder.join("papers-003.md"),
            &page::render(&self.cells, clocks.as_deref(), self.machine)?,
        )
    }
}

/// A line that is no figure.
fn said(operation: &str, method: String, check: String) -> Cell {
    Cell {
        operation: operation.into(),
        method,
        n: 0,
        primes: "–".into(),
        d: 0,
        wall_us: None,
        device_us: None,
        bytes: 0,
        floor_us: 0.0,
        printed_us: None,
        check,
    }
}

/// The stage that a figure is of; `None` for what all share.
fn stage(cell: &Cell) -> Option<Stage> {
    Some(match cell.operation.as_str() {
        "device" => return None,
        "stage" => return <Stage as clap::ValueEnum>::from_str(&cell.method, true).ok(),
        "rate" => Stage::Rates,
        "launch" => Stage::Kernels,
        "sum" | "product" => Stage::Paper,
        "matrix product" => Stage::Matrices,
        _ => Stage::Operations,
    })
}

/// Runs the stages that were asked for.
pub fn run(options: &Options, machine: &Machine, json: bool, runs: &Path) -> Outcome<()> {
    let kept = match options.keep {
        true => load::<Cell>(&runs.join("papers-003.json"))?,
        false => Vec::new(),
    };
    let cells = kept.into_iter().filter(|c| stage(c).is_none_or(|s| !options.stages.contains(&s))).collect();
    let page = options.page.then_some(runs);
    let mut figures = Figures { lines: Lines::new(json), cells, page, machine };
    if !options.stages.is_empty() {
        let device = open(options)?;
        figures.cells.retain(|c| c.operation != "device");
        figures.put(said("device", describe(device.info()), "ok".into()))?;
        let end = Duration::try_from_secs_f64(60.0 * options.minutes).ok().and_then(|d| Instant::now().checked_add(d));
        let (copy, _) = copy_rate(&figures.cells);
        let patience = Duration::try_from_secs_f64(options.seconds)?;
        let small = options.small || device.info().emulated;
        let (repetitions, fault) = (options.repetitions, options.fault);
        let mut bench = Bench { device, repetitions, patience, copy, end, small, fault };
        if let Some(path) = &options.count {
            return crate::record::replace(
                path,
                &format!("{}\n", serde_json::to_string_pretty(&kernels::count(&bench, &operations::SETS)?)?),
            );
        }
        for stage in &options.stages {
            let name = clap::ValueEnum::to_possible_value(stage).map_or_else(String::new, |v| v.get_name().into());
            if let Err(error) = one(*stage, options, &mut bench, &mut figures) {
                eprintln!("stage {name}: {error}");
                figures.put(said("stage", name, error.to_string()))?;
            }
            figures.write()?;
        }
    }
    if let Some((name, reason)) = options.failed.as_deref().and_then(|text| text.split_once(':')) {
        figures.put(said("stage", name.into(), reason.into()))?;
    }
    figures.write()?;
    figures.lines.finish()
}

/// One stage, at the sizes that were asked for or those of the device.
fn one(stage: Stage, options: &Options, bench: &mut Bench, figures: &mut Figures<'_>) -> Outcome<()> {
    while options.fault == Some(Fault::Hang) {
        std::thread::sleep(Duration::from_secs(1));
    }
    let or = |given: &[usize], card: &[usize], here: &[usize]| match (given, bench.small) {
        ([], false) => card.to_vec(),
        ([], true) => here.to_vec(),
        _ => given.to_vec(),
    };
    let put = &mut |cell| figures.put(cell);
    match stage {
        Stage::Rates => rates::run(bench, put),
        Stage::Kernels => kernels::run(bench, put),
        Stage::Paper => {
            for n in or(&options.n, &[8192, 16_384, 32_768], &[8192]) {
                for d in or(&options.d, &[1, 10, 100, 1000], &[1, 10]) {
                    paper::run(bench, n, &options.q_bits, d)?.into_iter().try_for_each(&mut *put)?;
                }
            }
            Ok(())
        }
        Stage::Operations => operations::run(bench, &or(&options.batch, &[1, 4, 16, 64, 256], &[2]), put),
        Stage::Matrices => matrices::run(bench, put),
    }
}
