//! A session of several parties through a shared folder, step by step: what a party takes, and what it leaves there.

use crate::Outcome;
use crate::lines::{Line as Row, Lines};
use crate::machine::Machine;
use crate::timing::{Clock, Clocks, Samples};
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sudare_expr::{Expr, InputSpec, Matrix, Node, Operation};
use sudare_plan::{CostModel, Goal, Plan, Planner, Sharing};
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, SecretKey};
use sudare_rlwe::release::ReleasePolicy;
use sudare_session::parties::{Folder, Member, Messages, Request, Room};
use sudare_session::{Encrypted, PublicClient, Server};
use sudare_testkit::Random;

/// How often a program is computed under either key, in turn.
const ROUNDS: usize = 7;

/// Which sessions are held.
#[derive(Debug, Args)]
pub struct Options {
    /// Parties, and how many of them decrypt.
    #[arg(long, value_delimiter = ',', value_parser = counted, default_value = "3:2,30:20")]
    parties: Vec<(u32, u32)>,
    /// Elements of the result are a square of so many rows.
    #[arg(long, default_value_t = 10)]
    side: usize,
}

fn counted(text: &str) -> Result<(u32, u32), String> {
    let read = || {
        let (parties, threshold) = text.split_once(':')?;
        Some((parties.parse().ok()?, threshold.parse().ok()?))
    };
    read().ok_or_else(|| "write parties and threshold as 30:20".into())
}

/// One step of a session.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// `parties`.
    pub suite: &'static str,
    /// The program.
    pub case: &'static str,
    /// Parties, and how many decrypt.
    pub parties: u32,
    /// How many decrypt.
    pub threshold: u32,
    /// What was done.
    pub step: &'static str,
    /// Ring degree.
    pub n: usize,
    /// Parameters in words.
    pub params: String,
    /// Median milliseconds of one party, or of whoever does it.
    pub median_ms: Option<f64>,
    /// The same by processor time.
    pub cpu_ms: Option<f64>,
    /// Bytes that one party leaves in the folder.
    pub bytes: u64,
    /// Threads.
    pub threads: usize,
    /// `ok`, or what was wrong with the result.
    pub check: String,
    /// Conditions.
    pub machine: Machine,
    /// Milliseconds of each party.
    pub samples: Samples,
}

impl Row for Line {
    const HEAD: &'static str =
        "case     parties  step                              ms       cpu ms        bytes  check";

    fn row(&self) -> String {
        let Self { case, parties, threshold, step, median_ms, cpu_ms, bytes, check, .. } = self;
        let shown = |x: &Option<f64>| x.map_or("-".into(), |x| format!("{x:.2}"));
        let (wall, cpu) = (shown(median_ms), shown(cpu_ms));
        format!("{case:<8} {threshold:>2} of {parties:<2} {step:<28} {wall:>10} {cpu:>12} {bytes:>12}  {check}")
    }

    fn wrong(&self) -> Option<&str> {
        (self.check != "ok").then_some(self.check.as_str())
    }
}

/// Sums of two matrices, and their product, which takes all kinds of keys.
fn programs(side: usize) -> Outcome<Vec<(&'static str, Expr)>> {
    let of = |operation: Operation, side: usize| {
        let inputs = ["A", "B"].map(|name| InputSpec::new(name, (side, side), 1.0)).into();
        Expr::new(inputs, vec![Node::input(0), Node::input(1), Node::new(operation, &[0, 1])], 2)
    };
    Ok(vec![("sum", of(Operation::Add, side)?), ("product", of(Operation::Matmul, 4)?)])
}

fn plan(expression: Expr, (parties, threshold): (u32, u32), error: f64) -> Outcome<Plan> {
    let sharing = Some(Sharing { parties, threshold });
    let release = Some(ReleasePolicy::new(10, 20)?);
    Ok(Planner::new(CostModel::default()).plan(&Goal { sharing, release, ..Goal::new(expression, error) })?)
}

/// A session that is held, and the time of its steps.
struct Session<'a> {
    case: &'static str,
    counts: (u32, u32),
    threads: usize,
    machine: &'a Machine,
    plan: Plan,
    folder: PathBuf,
    names: Vec<String>,
}

impl Session<'_> {
    fn messages(&self) -> Arc<dyn Messages> {
        Folder::at(&self.folder.join("room"))
    }

    fn home(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Bytes of all messages whose names begin so.
    fn bytes(&self, beginnings: &[&str]) -> Outcome<u64> {
        let (messages, mut bytes) = (self.messages(), 0);
        for name in messages.names("")?.iter().filter(|name| beginnings.iter().any(|begin| name.starts_with(begin))) {
            bytes += std::fs::metadata(messages.place(name))?.len();
        }
        Ok(bytes)
    }

    fn line(&self, step: &'static str, clocks: Clocks, bytes: u64, check: Result<(), String>) -> Line {
        let (params, literal) = (self.plan.params(), self.plan.params().literal());
        Line {
            suite: "parties",
            case: self.case,
            parties: self.counts.0,
            threshold: self.counts.1,
            step,
            n: params.degree(),
            params: format!("Q {:?}, P {:?}, {} a digit", literal.q_bits, literal.p_bits, literal.digit_limbs),
            median_ms: clocks.wall.median(),
            cpu_ms: clocks.cpu.median(),
            bytes,
            threads: self.threads,
            check: check.err().unwrap_or_else(|| "ok".into()),
            machine: self.machine.clone(),
            samples: clocks.wall,
        }
    }

    /// The same step of some parties, each timed; what a party is between two steps is its folder alone.
    fn each(&self, names: &[String], mut step: impl FnMut(&str) -> Outcome<()>) -> Outcome<Clocks> {
        let mut clocks = Clocks::default();
        for name in names {
            let clock = Clock::start();
            step(name)?;
            clock.stop(1, &mut clocks);
        }
        Ok(clocks)
    }

    fn open(&self, name: &str) -> Outcome<Member> {
        Ok(Member::open(self.messages(), &self.home(name), self.threads)?)
    }

    /// The same under a key of one owner, over the same primes and with a secret of the same distribution.
    fn one_key(&self, matrices: &[(String, Matrix)]) -> Outcome<(Server, Vec<Encrypted>)> {
        let secret = SecretKey::generate(self.plan.params())?;
        let (generator, demand) = (KeyGenerator::new(&secret)?, self.plan.engine().keys());
        let mut keys = EvalKeys::new(self.plan.params(), secret.id());
        if let Some(level) = demand.relin {
            keys.set_relin(generator.relin_key(level)?)?;
        }
        for (element, level) in demand.galois {
            keys.insert(generator.galois_key(element, level)?)?;
        }
        let client = PublicClient::new(&self.plan, generator.public_key()?, self.threads)?;
        let values = matrices.iter().map(|(name, x)| client.encrypt(name, x)).collect::<Result<_, _>>()?;
        Ok((Server::new(&self.plan, keys, self.threads)?, values))
    }

    fn run(&self, put: &mut dyn FnMut(Line) -> Outcome<()>) -> Outcome<()> {
        let room = Room::create(self.messages(), &self.plan, &self.names)?;
        let (parties, threshold) = (u64::from(self.counts.0), self.counts.1 as usize);
        let join = |name: &str| Member::join(self.messages(), name, &self.home(name), self.threads).map(drop);
        let clocks = self.each(&self.names, |name| Ok(join(name)?))?;
        put(self.line("join", clocks, self.bytes(&["key-"])? / parties, Ok(())))?;
        let steps = ["public-", "galois-", "relin1-", "relin2-", "secret-"];
        let mut before = 0;
        for step in ["first round", "second round"] {
            let clocks = self.each(&self.names, |name| Ok(self.open(name)?.round()?))?;
            let all = self.bytes(&steps)?;
            put(self.line(step, clocks, (all - before) / parties, Ok(())))?;
            before = all;
        }
        if !room.missing()?.is_empty() {
            return Err("messages are missing after two rounds".into());
        }
        let mut keys = None;
        let clocks = self.each(&self.names[..1], |_| {
            keys = Some(room.server_keys()?);
            Ok(())
        })?;
        let server = Server::new(&self.plan, keys.ok_or("no keys")?, self.threads)?;
        put(self.line("combine keys", clocks, 0, Ok(())))?;
        let mut random = Random(u64::from(self.counts.0));
        let mut matrices = Vec::new();
        for input in self.plan.expression().inputs() {
            let data = (0..input.rows * input.cols).map(|_| random.unit()).collect();
            matrices.push((input.name.clone(), Matrix::new(input.rows, input.cols, data)?));
        }
        let client = self.open(&self.names[0])?.client()?;
        let mut values = Vec::new();
        let clocks = self.each(&[self.names[0].clone(), self.names[1].clone()], |_| {
            let (name, x) = &matrices[values.len()];
            values.push(client.encrypt(name, x)?);
            Ok(())
        })?;
        put(self.line("encrypt", clocks, values[0].to_bytes()?.len() as u64, Ok(())))?;
        let (a, b) = (&matrices[0].1, &matrices[1].1);
        let expected = match self.case {
            "sum" => Matrix::from_fn(a.rows(), a.cols(), |i, j| a.get(i, j) + b.get(i, j))?,
            _ => a.matmul(b)?,
        };
        let (alone, encrypted) = self.one_key(&matrices)?;
        let [mut together, mut single] = [Clocks::default(), Clocks::default()];
        let result = server.run(&values)?;
        for _ in 0..ROUNDS {
            for (server, values, clocks) in [(&server, &values, &mut together), (&alone, &encrypted, &mut single)] {
                let clock = Clock::start();
                server.run(values)?;
                clock.stop(1, clocks);
            }
        }
        put(self.line("evaluate", together, 0, Ok(())))?;
        put(self.line("evaluate under one key", single, 0, Ok(())))?;
        let active = &self.names[..threshold];
        let asked = Request { parties: active.to_vec(), receivers: vec![self.names[0].clone()] };
        let clocks = self.each(active, |name| Ok(self.open(name)?.share(&result, &asked)?))?;
        put(self.line("share of a decryption", clocks, self.bytes(&["share-"])? / threshold as u64, Ok(())))?;
        let receiver = self.open(&self.names[0])?;
        let mut shown = None;
        let clocks = self.each(&self.names[..1], |_| {
            shown = Some(receiver.combine(&result)?.reals()?);
            Ok(())
        })?;
        let found = shown.ok_or("no result")?;
        let (error, promised) = (found[0].max_difference(&expected), self.plan.summary().predicted_error);
        let check = if error <= promised { Ok(()) } else { Err(format!("off by {error:e}, {promised:e} stated")) };
        put(self.line("open the result", clocks, 0, check))
    }
}

/// Runs the suite.
pub fn run(options: &Options, threads: usize, machine: &Machine, lines: &mut Lines) -> Outcome<Vec<Line>> {
    let folder = std::env::temp_dir().join(format!("sudare-bench-parties-{}", std::process::id()));
    let mut all = Vec::new();
    let ran = (|| {
        for counts in &options.parties {
            for (case, expression) in programs(options.side)? {
                let plan = plan(expression, *counts, if case == "sum" { 1e-6 } else { 5e-2 })?;
                let folder = folder.join(format!("{case}-{}", counts.0));
                let names = (0..counts.0).map(|i| format!("party{i}")).collect();
                let session = Session { case, counts: *counts, threads, machine, plan, folder, names };
                session.run(&mut |line| {
                    lines.put(&line)?;
                    all.push(line);
                    Ok(())
                })?;
                remove(&session.folder);
            }
        }
        Ok(())
    })();
    remove(&folder);
    ran.map(|()| all)
}

fn remove(folder: &Path) {
    let _ = std::fs::remove_dir_all(folder);
}
