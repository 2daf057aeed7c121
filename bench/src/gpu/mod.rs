//! `gpu`: rates of a card; sums and products of many ciphertexts by the ways of the paper on them (`003`) and in one launch;
//! whole products and rotations of batches with real keys; products of encrypted matrices. Every answer is checked
//! against the processor's.
//!
//! Without a card the emulator runs the same kernels: answers are checked, and there are no times.

mod matrices;
mod model;
mod operations;
mod page;
mod paper;
mod rates;

use crate::Outcome;
use crate::lines::{Line, Lines, store};
use crate::machine::Machine;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use sudare_cuda::{Batch, Device, Info, Kernels, Trial};
use sudare_ring::prime::ntt_primes;
use sudare_ring::{Eval, Poly, RnsBasis};

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
    /// Kernels compiled ahead (`make cuda-kernels`); without it those of this program, or NVRTC.
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
    /// Minutes after which no further set and no product of matrices is begun.
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// Write `papers-003.json` and `papers-003.md` into the folder of `--runs`.
    #[arg(long)]
    page: bool,
}

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// What was done: `rate`, `sum`, `product`, `multiply, relinearise, rescale`, `rotation`, `8 rotations`,
    /// `sum of 8 rotations`, `matrix product`.
    pub operation: &'static str,
    /// How: `standard`, `method 1`, `method 2`, `both methods`, `one launch`.
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

/// A device and how cases are timed on it.
pub struct Bench {
    device: Device,
    repetitions: usize,
    /// Bytes a microsecond of a copy, and whether it was measured here.
    copy: (f64, bool),
    /// After which nothing long is begun.
    end: Option<Instant>,
}

impl Bench {
    /// Median microseconds of `work`, which waits at its end: of the host's clock and, where the device has one, of its
    /// own for `queued`, which does not.
    fn times(&self, d: usize, work: &mut dyn FnMut() -> Outcome<()>) -> Outcome<Option<f64>> {
        work()?;
        if self.device.info().emulated {
            return Ok(None);
        }
        let repetitions = (20_000 / d.max(1)).clamp(10, self.repetitions.max(10));
        let mut samples = Vec::with_capacity(repetitions);
        for _ in 0..repetitions {
            self.device.synchronize()?;
            let start = Instant::now();
            work()?;
            samples.push(start.elapsed().as_secs_f64() * 1e6);
        }
        Ok(Some(median(samples)))
    }

    /// Median microseconds by the device's clock.
    fn device_time(&self, work: &mut dyn FnMut() -> Outcome<()>) -> Outcome<Option<f64>> {
        if self.device.info().emulated {
            return Ok(None);
        }
        let mut samples = Vec::new();
        for _ in 0..11 {
            let mut done = Ok(());
            let us = self.device.timed(&mut || {
                done = work();
                Ok(())
            })?;
            done?;
            samples.extend(us);
        }
        Ok((!samples.is_empty()).then(|| median(samples)))
    }

    /// Whether no time is left to begin something long.
    fn late(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() > end)
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
    let kernels = options.kernels.clone().map_or(Kernels::Any, Kernels::File);
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

/// Runs everything.
pub fn run(options: &Options, machine: &Machine, json: bool, runs: &Path) -> Outcome<()> {
    let device = open(options)?;
    let emulated = device.info().emulated;
    let or = |given: &[usize], card: &[usize], here: &[usize]| match (given, emulated) {
        ([], false) => card.to_vec(),
        ([], true) => here.to_vec(),
        _ => given.to_vec(),
    };
    let mut lines = Lines::new(json);
    let end =
        std::time::Duration::try_from_secs_f64(60.0 * options.minutes).ok().and_then(|d| Instant::now().checked_add(d));
    let mut bench = Bench { device, repetitions: options.repetitions, copy: (ASSUMED_COPY, false), end };
    let mut cells = rates::run(&mut bench)?;
    cells.iter().try_for_each(|cell| lines.put(cell))?;
    for n in or(&options.n, &[8192, 16_384, 32_768], &[8192]) {
        for d in or(&options.d, &[1, 10, 100, 1000], &[1, 10]) {
            for cell in paper::run(&bench, n, &options.q_bits, d)? {
                lines.put(&cell)?;
                cells.push(cell);
            }
        }
    }
    let mut put = |cell: Cell| {
        lines.put(&cell)?;
        cells.push(cell);
        Ok(())
    };
    operations::run(&bench, &or(&options.batch, &[1, 4, 16, 64, 256], &[2]), &mut put)?;
    matrices::run(&bench, &mut put)?;
    if options.page {
        store(&runs.join("papers-003.json"), &cells)?;
        let page = runs.join("papers-003.md");
        crate::record::replace(&page, &page::render(&cells, &bench, machine)?)?;
        eprintln!("wrote {}", page.display());
    }
    lines.finish()
}
