//! The service over loopback: what it adds to a product, and how it stands overload, slow connections and many requests.

use crate::Outcome;
use crate::limits::Line;
use crate::lines::Lines;
use crate::machine::Machine;
use crate::timing::Samples;
use clap::Args;
use std::io::{Cursor, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sudare_expr::{Expr, InputSpec, Matrix, Operation};
use sudare_plan::{CostModel, Goal, Plan, Planner};
use sudare_serve::{Digest, Limits, Operand, Remote, Request, Served, Service, Settings, Stop, Token, Tokens};
use sudare_session::{Client, Encrypted};
use sudare_testkit::Random;

/// How much of it is done.
#[derive(Debug, Args)]
pub struct Options {
    /// Requests of the long run.
    #[arg(long, default_value_t = 10_000)]
    requests: usize,
    /// Slow connections.
    #[arg(long, default_value_t = 500)]
    slow: usize,
    /// Products through the service and beside it.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
}

/// Milliseconds that the service may add to a product, and that 99 of 100 answers may take.
const OVERHEAD_MS: f64 = 20.0;
const ANSWER_MS: f64 = 100.0;
/// Jobs that wait or run, and how many times as many are asked for.
const JOBS: usize = 16;
const OVERLOAD: usize = 10;

/// A server in this process.
struct Running {
    address: SocketAddr,
    token: Token,
    stop: Stop,
    thread: Option<JoinHandle<bool>>,
}

impl Running {
    fn start(data: &Path, limits: Limits, threads: usize) -> Outcome<Self> {
        let token = Token::new()?;
        let tokens = Tokens::read(&format!("{}\n", token.line("bench", None, None)?))?;
        let settings = Settings { limits, threads, ..Settings::new(data) };
        let service = Service::open(settings, tokens, Served::default(), |_| Ok(()))?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, stop) = (listener.local_addr()?, Stop::new());
        let asked = stop.clone();
        let thread = std::thread::spawn(move || service.run(listener, None, &asked).is_ok());
        Ok(Self { address, token, stop, thread: Some(thread) })
    }

    fn remote(&self) -> Outcome<Remote> {
        Ok(Remote::new(&format!("http://{}", self.address), self.token.secret(), None)?)
    }

    /// The status of the answer to one request on a connection of its own, and its body.
    fn ask(&self, method: &str, path: &str, body: &[u8]) -> Outcome<(u16, Vec<u8>)> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.token.secret(),
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let status = String::from_utf8_lossy(answer.get(9..12).unwrap_or_default()).parse()?;
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
        Ok((status, answer.split_off(end)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.ask();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The product of 569 patients' 30 measurements with 4 models.
fn plan() -> Outcome<Plan> {
    let (x, w) = (InputSpec::new("X", (569, 30), 12.0), InputSpec::new("W", (30, 4), 1.0));
    Ok(Planner::new(CostModel::default()).plan(&Goal::new(Expr::product(x, w)?, 1e-2))?)
}

fn matrix(rows: usize, cols: usize, salt: u64) -> Outcome<Matrix> {
    let mut random = Random(salt);
    Ok(Matrix::new(rows, cols, (0..rows * cols).map(|_| random.unit()).collect())?)
}

fn send(remote: &Remote, bytes: &[u8]) -> Outcome<Digest> {
    Ok(remote.send(&mut Cursor::new(bytes))?)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn tail(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() * 99 / 100).or(times.last()).copied().unwrap_or(f64::NAN)
}

/// What a product is asked for by, on the server.
struct World {
    client: Client,
    request: Request,
    values: [Encrypted; 2],
    expected: Matrix,
}

impl World {
    fn new(remote: &Remote, threads: usize) -> Outcome<Self> {
        let plan = plan()?;
        let client = Client::new(&plan, threads)?;
        let (x, w) = (matrix(569, 30, 1)?, matrix(30, 4, 2)?);
        let values = [client.encrypt("X", &x)?, client.encrypt("W", &w)?];
        let keys = send(remote, &sudare_rlwe::wire::Wire::to_bytes(&client.eval_keys()?)?)?;
        let plan = send(remote, plan.to_json()?.as_bytes())?;
        let mut operands = Vec::new();
        for value in &values {
            operands.push(Operand::encrypted(send(remote, &value.to_bytes()?)?));
        }
        let request = Request::Compute { plan, keys: Some(keys), operation: Some(Operation::Matmul), operands };
        Ok(Self { client, request, values, expected: x.matmul(&w)? })
    }

    fn check(&self, bytes: &[u8]) -> Outcome<Result<(), String>> {
        let found = self.client.decrypt(&Encrypted::from_bytes(self.client.plan(), bytes)?)?;
        let error = found.max_difference(&self.expected);
        Ok(if error < 1e-2 { Ok(()) } else { Err(format!("the error is {error:e}")) })
    }
}

/// What the service adds to a product, beyond sending the bytes.
fn overhead(options: &Options, threads: usize, data: &Path, machine: &Machine) -> Outcome<Line> {
    let running = Running::start(data, Limits::default(), threads)?;
    let remote = running.remote()?;
    let world = World::new(&remote, threads)?;
    let here = world.client.server()?;
    let (mut added, mut far, mut near, mut moving) = (vec![], vec![], vec![], vec![]);
    let mut check = Ok(());
    for round in 0..=options.rounds.max(1) {
        let started = Instant::now();
        let view = remote.submit(&world.request, None)?;
        let (digest, _) = remote.wait(&view.id, &|_, _| ())?;
        let job = milliseconds(started);
        let (started, mut bytes) = (Instant::now(), Vec::new());
        remote.fetch(digest, &mut bytes)?;
        let fetched = milliseconds(started);
        check = check.and(world.check(&bytes)?);
        let started = Instant::now();
        here.matmul(&world.values[0], &world.values[1])?;
        let product = milliseconds(started);
        // The first one reads keys and makes tables.
        if round > 0 {
            added.push(job - product);
            far.push(job);
            near.push(product);
            moving.push(fetched);
        }
    }
    let middle = |x: Vec<f64>| Samples(x).median().unwrap_or(f64::NAN);
    let figure = Samples(added.clone()).median().unwrap_or(f64::NAN);
    let line = Line::new(("serve", "added to 569×30 · 30×4"), (figure, "ms", OVERHEAD_MS), check, machine);
    Ok(line
        .with([("job_ms", middle(far)), ("in_process_ms", middle(near)), ("fetch_ms", middle(moving))])
        .of(Samples(added)))
}

/// Ten times as many jobs as there is room for, asked for at once.
fn overload(threads: usize, data: &Path, machine: &Machine) -> Outcome<Line> {
    let limits = Limits { tenant_jobs: JOBS, jobs: JOBS, ..Limits::default() };
    let running = Running::start(data, limits, threads)?;
    let remote = running.remote()?;
    let world = World::new(&remote, threads)?;
    let body = serde_json::to_vec(&world.request)?;
    let answers = std::thread::scope(|scope| {
        let one = || {
            (0..10).map(|_| {
                let started = Instant::now();
                running.ask("POST", "/v1/jobs", &body).map(|answer| (milliseconds(started), answer))
            })
        };
        let asked: Vec<_> =
            (0..JOBS * OVERLOAD / 10).map(|_| scope.spawn(move || one().collect::<Outcome<Vec<_>>>())).collect();
        asked.into_iter().map(|t| t.join().map_err(|_| "a client failed")?).collect::<Outcome<Vec<_>>>()
    })?;
    let answers: Vec<_> = answers.into_iter().flatten().collect();
    let (mut accepted, mut check) = (Vec::new(), Ok(()));
    for (_, (status, body)) in &answers {
        match status {
            202 => accepted.push(serde_json::from_slice::<sudare_serve::JobView>(body)?.id),
            429 | 503 => {}
            other => check = Err(format!("an answer of status {other}")),
        }
    }
    if accepted.is_empty() || accepted.len() == answers.len() {
        check = Err(format!("{} of {} jobs were accepted: no overload", accepted.len(), answers.len()));
    }
    for id in &accepted {
        let (digest, _) = remote.wait(id, &|_, _| ())?;
        let mut bytes = Vec::new();
        remote.fetch(digest, &mut bytes)?;
        check = check.and(world.check(&bytes)?);
    }
    let times: Vec<f64> = answers.iter().map(|(ms, _)| *ms).collect();
    let counts = [("asked", answers.len() as f64), ("accepted_and_done", accepted.len() as f64)];
    let line = Line::new(
        ("serve", "p99 of admission at 10× overload"),
        (tail(times.clone()), "ms", ANSWER_MS),
        check,
        machine,
    );
    Ok(line.with(counts).of(Samples(times)))
}

/// Answers beside connections that send a byte now and then.
fn slow(options: &Options, data: &Path, machine: &Machine) -> Outcome<Line> {
    let limits = Limits { connections: options.slow + 64, ..Limits::default() };
    let running = Running::start(data, limits, 1)?;
    let mut connections = Vec::new();
    for i in 0..options.slow {
        let mut stream = TcpStream::connect(running.address)?;
        stream.write_all(&b"GET /healthz HTTP/1.1\r\nx: "[..5 + i % 20])?;
        connections.push(stream);
    }
    let (mut times, mut check) = (Vec::new(), Ok(()));
    for i in 0..200 {
        if let Some(stream) = connections.get_mut(i) {
            // One that was closed in time is no answer either.
            let _ = stream.write_all(b"y");
        }
        let started = Instant::now();
        let (status, _) = running.ask("GET", "/healthz", b"")?;
        times.push(milliseconds(started));
        if status != 200 {
            check = Err(format!("an answer of status {status}"));
        }
    }
    let case = ("serve", "p99 beside slow connections");
    let line = Line::new(case, (tail(times.clone()), "ms", ANSWER_MS), check, machine);
    Ok(line.with([("slow", options.slow as f64), ("answers", times.len() as f64)]).of(Samples(times)))
}

/// Descriptors of this process, and the bytes of memory that it has resident.
fn held() -> Outcome<(f64, f64)> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: f64 = pages.split(' ').nth(1).unwrap_or_default().parse()?;
    Ok((std::fs::read_dir("/proc/self/fd")?.count() as f64, pages * 4096.0))
}

/// What many requests leave behind.
fn many(options: &Options, data: &Path, machine: &Machine) -> Outcome<Vec<Line>> {
    let running = Running::start(data, Limits::default(), 1)?;
    let (object, mut check) = (vec![7; 20_000], Ok(()));
    let path = format!("/v1/objects/{}", Digest::of(&object));
    let mut round = |count: usize| -> Outcome<()> {
        for i in 0..count {
            let (wanted, (status, body)) = match i % 4 {
                0 => (&[200, 201][..], running.ask("PUT", &path, &object)?),
                1 => (&[200][..], running.ask("GET", &path, b"")?),
                2 => (&[200][..], running.ask("GET", "/v1/jobs", b"")?),
                _ => (&[404][..], running.ask("GET", "/v1/jobs/none", b"")?),
            };
            if !wanted.contains(&status) || (i % 4 == 1 && body != object) {
                check = Err(format!("request {i} was answered with status {status}"));
            }
        }
        Ok(())
    };
    round(400)?;
    let before = held()?;
    round(options.requests)?;
    std::thread::sleep(Duration::from_millis(500));
    let after = held()?;
    let growth = (after.1 - before.1) / 1e6;
    let counts = [("requests", options.requests as f64)];
    let memory = Line::new(("serve", "memory after many requests"), (growth, "MB", 16.0), check.clone(), machine);
    let files =
        Line::new(("serve", "descriptors after many requests"), (after.0 - before.0, "more", 0.0), check, machine);
    Ok(vec![memory.with(counts), files.with(counts)])
}

/// Runs the suite.
pub fn run(options: &Options, threads: usize, machine: &Machine, lines: &mut Lines) -> Outcome<Vec<Line>> {
    let folder = std::env::temp_dir().join(format!("sudare-bench-serve-{}", std::process::id()));
    let data = |name: &str| folder.join(name);
    let mut all = Vec::new();
    let mut put = |line: Line| -> Outcome<()> {
        lines.put(&line)?;
        all.push(line);
        Ok(())
    };
    let ran = (|| {
        put(overhead(options, threads, &data("overhead"), machine)?)?;
        put(overload(threads, &data("overload"), machine)?)?;
        put(slow(options, &data("slow"), machine)?)?;
        many(options, &data("many"), machine)?.into_iter().try_for_each(&mut put)
    })();
    let _ = std::fs::remove_dir_all(&folder);
    ran.map(|()| all)
}
