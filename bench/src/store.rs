//! Products of stored matrices: what they read, and how long they take beside reading and computing alone.

use crate::Outcome;
use crate::limits::Line;
use crate::lines::Lines;
use crate::machine::{Machine, peak_rss_mb, reset_peak_rss};
use crate::timing::Samples;
use clap::Args;
use std::path::Path;
use std::time::Instant;
use sudare_expr::{Expr, InputSpec, Matrix};
use sudare_plan::{CostModel, Goal, Plan, Planner};
use sudare_session::{Client, Encrypted, PublicClient, Server};
use sudare_session::{Multiplied, OutOfCore, QUIET, Stored};
use sudare_store::{BlockSource, Existing, Reader, Reading, Request, read_ahead};
use sudare_testkit::Random;

/// Most that the wall time may be of the larger of reading alone and computing alone.
const WALL: f64 = 1.1;
/// Most that the bytes that were read may be of the schedule's.
const READ: f64 = 1.02;
/// Rows of the left matrix and columns of the right one.
const SIDE: usize = 256;

/// What is multiplied.
#[derive(Debug, Args)]
pub struct Options {
    /// Megabytes of both operands on the disk, about.
    #[arg(long, default_value_t = 120)]
    megabytes: u64,
    /// Megabytes of memory that the product may take; without it half of the operands, or the least that will do and a fifth
    /// more.
    #[arg(long)]
    memory: Option<u64>,
    /// Rounds, each of the product, of reading alone and of computing alone.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The folder for the stores, on the disk that is measured.
    #[arg(long, default_value = "target/bench-store")]
    folder: std::path::PathBuf,
}

fn matrix(rows: usize, cols: usize, salt: u64) -> Outcome<Matrix> {
    let mut random = Random(salt);
    Ok(Matrix::new(rows, cols, (0..rows * cols).map(|_| random.unit()).collect())?)
}

fn plan(k: usize) -> Outcome<Plan> {
    let (a, b) = (InputSpec::new("A", (SIDE, k), 1.0), InputSpec::new("B", (k, SIDE), 1.0));
    let (method, memory) = (Some("coefficient".into()), u64::MAX);
    Ok(Planner { method, memory, ..Planner::new(CostModel::default()) }.plan(&Goal::new(Expr::product(a, b)?, 1e-3))?)
}

/// What is removed at the end.
struct Folder<'a>(&'a Path);

impl Drop for Folder<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0);
    }
}

/// Two stored operands, and the product of the same in memory.
struct World {
    server: Server,
    stored: [Stored; 2],
    loaded: [Encrypted; 2],
    memory: u64,
}

impl World {
    fn new(options: &Options, threads: usize) -> Outcome<Self> {
        let path = |name: &str| options.folder.join(name);
        let sample = {
            let small = plan(256)?;
            let client = Client::new(&small, threads)?;
            let public = PublicClient::new(&small, client.public_key()?, threads)?;
            public.encrypt_stored("A", &[matrix(SIDE, 256, 1)?], &path("sample"), QUIET)?.bytes()
        };
        let k = ((options.megabytes * 1_000_000 * 256 / (2 * sample)) as usize).max(64);
        let plan = plan(k)?;
        let client = Client::new(&plan, threads)?;
        let public = PublicClient::new(&plan, client.public_key()?, threads)?;
        let left = public.encrypt_stored("A", &[matrix(SIDE, k, 1)?], &path("a"), QUIET)?;
        let right = public.encrypt_stored("B", &[matrix(k, SIDE, 2)?], &path("b"), QUIET)?;
        let server = client.server()?;
        let loaded = [left.load()?, right.load()?];
        let memory = match options.memory {
            Some(megabytes) => megabytes * 1_000_000,
            None => match server.schedule(&left, &right, &path("none"), work(1)) {
                Err(sudare_methods::MatrixError::TooLittleMemory { least, .. }) => {
                    (least + least / 5).max((left.bytes() + right.bytes()) / 2)
                }
                other => return Err(format!("one byte does for this product: {other:?}").into()),
            },
        };
        Ok(Self { server, stored: [left, right], loaded, memory })
    }

    fn multiply(&self, path: &Path) -> Outcome<Multiplied> {
        let [a, b] = &self.stored;
        Ok(self.server.matmul_stored(a, b, path, work(self.memory), QUIET)?)
    }

    /// The strips of a product, with nothing done to them.
    fn read(&self, done: &Multiplied) -> Outcome<()> {
        let sources = self.stored.each_ref().map(|s| Reader::open(s.reader().path(), Reading::Direct));
        let [a, b] = sources;
        let (a, b) = (a?, b?);
        let (tile, (rows, terms), (_, cols)) = (done.schedule, a.grid(), b.grid());
        let mut requests: Vec<Request<'_>> = Vec::new();
        for (i, j) in (0..tile.right_passes).flat_map(|i| (0..tile.left_passes).map(move |j| (i, j))) {
            for t in 0..terms {
                let down = i * tile.tile_rows..rows.min((i + 1) * tile.tile_rows);
                let across = j * tile.tile_cols..cols.min((j + 1) * tile.tile_cols);
                requests.extend(down.map(|row| Request { source: &a, row, col: t }));
                requests.extend(across.map(|col| Request { source: &b, row: t, col }));
            }
        }
        read_ahead(&requests, 64 << 20, 3, |ahead| {
            while let Some(block) = ahead.next()? {
                ahead.give_back([block]);
            }
            Ok(())
        })
    }
}

fn work(memory: u64) -> OutOfCore {
    OutOfCore { memory, existing: Existing::Refuse }
}

fn seconds<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(f64, T)> {
    let started = Instant::now();
    let made = work()?;
    Ok((started.elapsed().as_secs_f64(), made))
}

/// Whether every block of a stored product is that of the one in memory.
fn same(product: &Stored, expected: &Stored) -> Outcome<Result<(), String>> {
    let (rows, cols) = expected.reader().grid();
    for (row, col) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
        if product.block(row, col)? != expected.block(row, col)? {
            return Ok(Err(format!("block ({row}, {col}) differs from the product in memory")));
        }
    }
    Ok(Ok(()))
}

/// Runs the suite.
pub fn run(options: &Options, threads: usize, machine: &Machine, lines: &mut Lines) -> Outcome<Vec<Line>> {
    if options.folder.exists() {
        return Err(format!("{} is there already; remove it or name another", options.folder.display()).into());
    }
    std::fs::create_dir_all(&options.folder)?;
    let _folder = Folder(&options.folder);
    let world = World::new(options, threads)?;
    let expected = {
        let whole = world.server.matmul(&world.loaded[0], &world.loaded[1])?;
        Stored::save(world.stored[0].plan(), &whole, &options.folder.join("expected"))?
    };
    let (mut ratios, mut walls, mut readings, mut computings) = (vec![], vec![], vec![], vec![]);
    let (mut check, mut read, mut growth) = (Ok(()), 0.0f64, 0.0f64);
    for round in 0..options.rounds.max(1) {
        let path = options.folder.join(format!("c{round}"));
        reset_peak_rss();
        let before = peak_rss_mb();
        let (wall, done) = seconds(|| world.multiply(&path))?;
        growth = growth.max(peak_rss_mb().zip(before).map_or(0.0, |(after, before)| after - before));
        let (reading, ()) = seconds(|| world.read(&done))?;
        let (computing, _) = seconds(|| Ok(world.server.matmul(&world.loaded[0], &world.loaded[1])?))?;
        check = check.and(same(&done.product, &expected)?);
        read = read.max(done.read_bytes as f64 / done.schedule.read_bytes as f64);
        ratios.push(wall / reading.max(computing));
        walls.push(wall);
        readings.push(reading);
        computings.push(computing);
        std::fs::remove_dir_all(&path)?;
    }
    let middle = |x: &[f64]| Samples(x.to_vec()).median().unwrap_or(f64::NAN);
    let megabytes = world.stored.iter().map(|s| s.bytes() as f64 / 1e6).sum();
    let wall = Line::new(("store", "wall of a product"), (middle(&ratios), "of larger", WALL), check.clone(), machine)
        .with([("wall_s", middle(&walls)), ("reading_s", middle(&readings)), ("computing_s", middle(&computings))])
        .with([("operands_mb", megabytes), ("threads", world.server.threads() as f64)])
        .of(Samples(ratios));
    let bytes = Line::new(("store", "bytes read"), (read, "of plan", READ), check.clone(), machine);
    let allowed = world.memory as f64 / 1e6;
    // What the process holds before it multiplies, the operands in memory to compare with, is not the product's.
    let peak = Line::new(("store", "growth of memory"), (growth / allowed, "of budget", 1.1), check, machine)
        .with([("budget_mb", allowed), ("growth_mb", growth)]);
    let all = vec![wall, bytes, peak];
    all.iter().try_for_each(|line| lines.put(line))?;
    Ok(all)
}
