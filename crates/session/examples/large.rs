//! A product of operands that are larger than the memory that it may take, enforced by the system; compared with the
//! product in memory, byte by byte. `make demo-large`; operands in MB, the limit and the budget in MB may follow.
#![allow(missing_docs)]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use sudare_expr::Operand;
use sudare_expr::{Expr, InputSpec, Matrix};
use sudare_plan::{CostModel, Goal, Plan, Planner};
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::wire::{Wire, packing};
use sudare_session::{Client, PublicClient, Server};
use sudare_session::{Layout, OutOfCore, QUIET, Stored};
use sudare_store::{BlockSource, Existing, Reader, Reading, Request, read_ahead};

type Done<T = ()> = Result<T, Box<dyn Error>>;

/// Rows of the left matrix and columns of the right one.
const SIDE: usize = 512;
const MB: u64 = 1_000_000;

fn main() -> Done {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, folder, budget] = &words[..]
        && word == "multiply"
    {
        return multiply(Path::new(folder), budget.parse()?);
    }
    let figures = words.iter().map(|w| w.parse()).collect::<Result<Vec<u64>, _>>()?;
    let figure = |i: usize, usual: u64| figures.get(i).copied().unwrap_or(usual) * MB;
    demo(figure(0, 4000), figure(1, 512), figure(2, 400))
}

fn matrix(rows: usize, cols: usize, salt: u64) -> Done<Matrix> {
    Ok(Matrix::from_fn(rows, cols, |i, j| (12.9898 * i as f64 + 78.233 * j as f64 + salt as f64).sin())?)
}

fn plan(k: usize) -> Done<Plan> {
    let (a, b) = (InputSpec::new("A", (SIDE, k), 1.0), InputSpec::new("B", (k, SIDE), 1.0));
    let goal = Goal::new(Expr::product(a, b)?, 1e-3);
    // The planner counts whole matrices in memory, which is what is done without here.
    let (method, memory) = (Some("coefficient".into()), u64::MAX);
    Ok(Planner { method, memory, ..Planner::new(CostModel::default()) }.plan(&goal)?)
}

/// The bytes of both operands in stores, encrypted under a public key.
fn stored_bytes(k: usize) -> Done<u64> {
    let plan = plan(k)?;
    let blocks = [Operand::Left, Operand::Right].map(|operand| Layout::of(&plan, operand).map(|l| l.grid.0 * l.grid.1));
    let [left, right] = blocks;
    let level = plan.params().max_level();
    // Two parts, and a header that with the rest of the last page is less than one.
    let block = 2 * packing::packed_bytes(plan.params().q_at(level)) + 4096;
    Ok((left? + right?) as u64 * block)
}

/// A contraction for which the operands have at least so many bytes, and hardly more: blocks have other shapes for
/// other contractions, so it is searched for.
fn contraction(bytes: u64) -> Done<usize> {
    let (mut small, mut large) = (64, 128);
    while stored_bytes(large)? < bytes {
        (small, large) = (large, 2 * large);
    }
    while large - small > large / 50 {
        let middle = (small + large) / 2;
        if stored_bytes(middle)? < bytes { small = middle } else { large = middle }
    }
    Ok(large)
}

fn demo(operands: u64, limit: u64, budget: u64) -> Done {
    // Beside this program: on many systems the usual place is memory.
    let program = std::env::current_exe()?;
    let folder = tempfile::tempdir_in(program.parent().ok_or("a program without a folder")?)?;
    let path = |name: &str| folder.path().join(name);
    let k = contraction(operands)?;
    let plan = plan(k)?;
    let client = Client::new(&plan, 0)?;
    let server = client.server()?;
    server.write_keys_to(fs::File::create(path("keys"))?)?;
    let public = PublicClient::new(&plan, client.public_key()?, 0)?;
    let (a, b) = (matrix(SIDE, k, 1)?, matrix(k, SIDE, 2)?);
    let started = Instant::now();
    let left = public.encrypt_stored("A", std::slice::from_ref(&a), &path("a"), QUIET)?;
    let right = public.encrypt_stored("B", std::slice::from_ref(&b), &path("b"), QUIET)?;
    let both = (left.bytes() + right.bytes()) as f64 / 1e9;
    println!("A {left}\nB {right}\nboth {both:.2} GB, encrypted in {:.1} s", started.elapsed().as_secs_f64());
    let schedule = server.schedule(&left, &right, &path("c"), options(budget))?;
    println!("{schedule}");

    // The system refuses memory over the limit: ulimit counts kilobytes of what a process allocates.
    let line = format!("ulimit -d {} && exec \"$0\" \"$@\"", limit / 1024);
    let mut child = Command::new("sh");
    child.args(["-c", &line]).arg(std::env::current_exe()?).arg("multiply").arg(folder.path());
    let output = child.arg(budget.to_string()).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8(output.stdout)?;
    if !output.status.success() {
        return Err(format!("the product under {limit} bytes failed: {text}").into());
    }
    let figure = |name: &str| -> Done<f64> {
        let found = text.lines().find_map(|l| l.strip_prefix(name)).ok_or("a figure is missing")?;
        Ok(found.trim().parse()?)
    };
    let (wall, reading) = (figure("wall")?, figure("reading")?);
    println!("limit     {:.0} MB of data, enforced", limit as f64 / 1e6);
    println!("peak      {:.0} MB resident; {:.0} MB allowed", figure("peak")? / 1e6, budget as f64 / 1e6);
    let expected = schedule.read_bytes as f64;
    println!(
        "read      {:.3} of the schedule's bytes, {:.3} by the system's count",
        figure("read")? / expected,
        figure("device")? / expected
    );
    println!("wall      {wall:.1} s; reading alone {reading:.1} s");

    let (left, right) = (left.load()?, right.load()?);
    let started = Instant::now();
    let whole = server.matmul(&left, &right)?;
    let compute = started.elapsed().as_secs_f64();
    println!("in memory {compute:.1} s without a disk: wall is {:.2} of the larger", wall / reading.max(compute));
    drop((left, right));
    let product = Stored::open(&path("c"))?;
    let error = client.decrypt(&product.load()?)?.max_difference(&a.matmul(&b)?);
    let whole = Stored::save(&plan, &whole, &path("whole"))?;
    let (rows, cols) = whole.reader().grid();
    for (row, col) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
        if whole.block(row, col)? != product.block(row, col)? {
            return Err(format!("block ({row}, {col}) differs from the product in memory").into());
        }
    }
    println!("equal     {} blocks, byte by byte, to the product in memory; error {error:.1e}", rows * cols);
    Ok(())
}

fn options(memory: u64) -> OutOfCore {
    OutOfCore { memory, existing: Existing::Refuse }
}

/// The process that has little memory.
fn multiply(folder: &Path, budget: u64) -> Done {
    let (a, b) = (Stored::open(&folder.join("a"))?, Stored::open(&folder.join("b"))?);
    let keys = EvalKeys::from_bytes(a.plan().params(), &fs::read(folder.join("keys"))?)?;
    let server = Server::new(a.plan(), keys, 0)?;
    let before = proc("io", "read_bytes:")?;
    let started = Instant::now();
    let done = server.matmul_stored(&a, &b, &folder.join("c"), options(budget), QUIET)?;
    println!("wall {}", started.elapsed().as_secs_f64());
    println!("read {}", done.read_bytes);
    println!("device {}", proc("io", "read_bytes:")? - before);
    println!("peak {}", proc("status", "VmHWM:")? * 1024);

    // The same strips, and nothing done with them.
    let (tile, sizes) = (done.schedule, [&a, &b].map(|s| s.reader().grid()));
    let open = |s: &Stored| Reader::open(s.reader().path(), Reading::Direct);
    let sources = [open(&a)?, open(&b)?];
    let mut requests = Vec::new();
    for (i, j) in (0..tile.right_passes).flat_map(|i| (0..tile.left_passes).map(move |j| (i, j))) {
        for t in 0..sizes[0].1 {
            let rows = (i * tile.tile_rows..sizes[0].0.min((i + 1) * tile.tile_rows)).map(|row| (0, row, t));
            let cols = (j * tile.tile_cols..sizes[1].1.min((j + 1) * tile.tile_cols)).map(|col| (1, t, col));
            requests.extend(rows.chain(cols).map(|(of, row, col)| Request { source: &sources[of], row, col }));
        }
    }
    let started = Instant::now();
    read_ahead(&requests, 64 << 20, 3, |ahead| -> Done {
        while let Some(block) = ahead.next()? {
            ahead.give_back([block]);
        }
        Ok(())
    })?;
    println!("reading {}", started.elapsed().as_secs_f64());
    Ok(())
}

/// A figure of this process.
fn proc(file: &str, name: &str) -> Done<u64> {
    let text = fs::read_to_string(format!("/proc/self/{file}"))?;
    let line = text.lines().find(|l| l.starts_with(name)).ok_or("no such figure")?;
    Ok(line.split_whitespace().nth(1).ok_or("no figure")?.parse()?)
}
