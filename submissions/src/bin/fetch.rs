//! fetch-by-similarity: the rows of an encrypted table whose cosine with an encrypted query is over 0.8, or how many there are.
//!
//! `server_preprocess_dataset` starts a process that holds keys and table and answers `server_encrypted_compute` over a socket. It
//! ends after ten minutes without a query, or when its socket is gone. Where it does not run, the step does the work itself.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use sudare_rlwe::wire::{secret_key_from_bytes, secret_key_to_bytes};
use sudare_search::{Answer, Client, Database, Hit, Index, Keys, Query, Server};
use sudare_submissions::fetch::{NUMBERS, Size};
use sudare_submissions::{Outcome, Reported, Step, floats, note_costs, read, run, write, write_secret};

/// Seconds without a query after which the resident server ends.
const IDLE: u64 = 600;
/// Rows that are encrypted at a time, at least: one segment.
const LOT: usize = 1 << 14;

struct Instance {
    io: PathBuf,
    data: PathBuf,
    index: Index,
    count_only: bool,
}

impl Instance {
    fn new(step: &Step) -> Outcome<Self> {
        let size = Size::new(step.argument(0)?.parse()?)?;
        let (io, data) = (Path::new("io").join(size.name), Path::new("datasets").join(size.name));
        Ok(Self { io, data, index: size.index()?, count_only: step.has("--count_only") })
    }

    fn keys(&self) -> PathBuf {
        self.io.join("keys").join("eval.keys")
    }

    fn secret(&self) -> PathBuf {
        self.io.join("client_secret").join("secret.key")
    }

    fn table(&self) -> PathBuf {
        self.io.join("ciphertexts_upload").join("db")
    }

    fn query(&self) -> PathBuf {
        self.io.join("ciphertexts_upload").join("query.bin")
    }

    fn results(&self) -> PathBuf {
        self.io.join("ciphertexts_download").join("results.bin")
    }

    fn socket(&self) -> PathBuf {
        self.io.join("server.socket")
    }

    /// What the resident server has to say.
    fn log(&self) -> PathBuf {
        self.io.join("server.log")
    }

    fn client(&self) -> Outcome<Client> {
        let secret = secret_key_from_bytes(self.index.params(), &read(&self.secret())?)?;
        Ok(Client::with_secret(&self.index, secret)?)
    }

    fn server(&self) -> Outcome<(Server, Database)> {
        let keys = Keys::from_bytes(&self.index, &read(&self.keys())?)?;
        let server = Server::new(&self.index, keys)?;
        let database = server.open(&self.table(), memory()?)?;
        Ok((server, database))
    }

    /// Answers the query that is there.
    fn answer(&self, server: &Server, database: &Database, count_only: bool) -> Outcome<()> {
        let mut reported = Reported::default();
        let query =
            reported.timed("Reading the query", || Ok(Query::from_bytes(&self.index, &read(&self.query())?)?))?;
        let answer = reported.timed("Encrypted computation", || {
            let gap = self.index.goal().gap;
            Ok(match count_only {
                true => server.count(database, &query, &[gap], &|_, _| ())?,
                false => server.fetch(database, &query, gap, &|_, _| ())?,
            })
        })?;
        reported.timed("Writing the answer", || write(&self.results(), &answer.to_bytes()?))?;
        write(&self.io.join("server_reported_steps.json"), reported.text().as_bytes())
    }
}

/// Bytes that the server may take: nine tenths of what is free, or `SUDARE_MEMORY` megabytes.
fn memory() -> Outcome<u64> {
    if let Ok(said) = std::env::var("SUDARE_MEMORY") {
        let megabytes: u64 =
            said.parse().map_err(|_| format!("SUDARE_MEMORY is a number of megabytes, not {said:?}"))?;
        return Ok(megabytes << 20);
    }
    let text = fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:")).and_then(|l| l.trim().split(' ').next());
    let free: u64 = line.ok_or("the system does not say how much memory is free; set SUDARE_MEMORY")?.parse()?;
    Ok((free << 10) / 10 * 9)
}

fn encrypt_table(instance: &Instance) -> Outcome<()> {
    let client = instance.client()?;
    if instance.table().exists() {
        fs::remove_dir_all(instance.table())?;
    }
    let mut storing = client.store(&instance.table())?;
    let goal = instance.index.goal();
    let mut rows = BufReader::new(fs::File::open(instance.data.join("db.bin"))?);
    let mut numbers = BufReader::new(fs::File::open(instance.data.join("payloads.bin"))?);
    let mut left = goal.rows as usize;
    while left > 0 {
        let count = left.min(LOT);
        let mut vectors = vec![0; 4 * goal.d * count];
        rows.read_exact(&mut vectors)?;
        let mut payloads = vec![0; 2 * NUMBERS * count];
        numbers.read_exact(&mut payloads)?;
        let payloads: Vec<u64> =
            payloads.as_chunks::<2>().0.iter().map(|b| u64::from(u16::from_le_bytes(*b))).collect();
        storing.push(&floats(&vectors), &payloads)?;
        left -= count;
    }
    storing.finish()?;
    Ok(())
}

fn decrypt(instance: &Instance) -> Outcome<()> {
    let client = instance.client()?;
    let answer = Answer::from_bytes(&instance.index, &read(&instance.results())?)?;
    let out = instance.io.join("results.bin");
    if instance.count_only {
        let counts = client.counts(&answer)?.concat();
        let [count] = counts.as_slice() else { return Err("the answer is to another question".into()) };
        return write(&out, &(*count as i64).to_le_bytes());
    }
    let hits: [Vec<Hit>; 1] =
        client.hits(&answer)?.try_into().map_err(|_| "the answer is to more than one question")?;
    let [hits] = hits;
    let mut rows: Vec<Vec<i16>> = hits.into_iter().map(|h| h.payload.iter().map(|x| *x as i16).collect()).collect();
    rows.sort_unstable();
    write(&out, &rows.concat().iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
}

/// Starts the resident server, and waits until it has the table.
fn start(step: &Step, instance: &Instance) -> Outcome<()> {
    if UnixStream::connect(instance.socket()).is_ok_and(|mut s| s.write_all(b"end\n").is_ok()) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = fs::remove_file(instance.socket());
    let own = std::env::current_exe()?;
    let named = own.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with("sudare-"));
    let mut child = Command::new(own);
    child.arg0(if named { "sudare-fetch" } else { "server_resident" });
    if named {
        child.arg("server_resident");
    }
    let log = fs::File::create(instance.log())?;
    child.args(&step.arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    // Its own group: it outlives the step.
    let mut child = child.process_group(0).spawn()?;
    let Some(out) = child.stdout.take() else { return Err("the resident server has no output".into()) };
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    if line.trim() == "ready" {
        return Ok(());
    }
    let why = fs::read_to_string(instance.log())?;
    Err(format!("the resident server did not start: {}", why.trim()).into())
}

/// A socket that another server may have taken the place of: harnesses empty the folder that it is in.
struct Place {
    path: PathBuf,
    made: (u64, u64),
}

impl Place {
    fn bind(path: PathBuf) -> Outcome<(Self, UnixListener)> {
        let listener = UnixListener::bind(&path)?;
        let made = fs::metadata(&path)?;
        Ok((Self { made: (made.dev(), made.ino()), path }, listener))
    }

    /// Whether who connects there still comes here.
    fn is_own(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.made)
    }

    /// Ends this process.
    fn end(&self) -> ! {
        if self.is_own() {
            let _ = fs::remove_file(&self.path);
        }
        std::process::exit(0)
    }
}

/// The resident server.
fn serve(instance: &Instance) -> Outcome<()> {
    let (server, database) = instance.server()?;
    let (place, listener) = Place::bind(instance.socket())?;
    note_costs("server_resident")?;
    println!("ready");
    std::io::stdout().flush()?;
    // The second in which the last query was answered; none while one is.
    let (begun, last) = (Instant::now(), Mutex::new(Some(0)));
    let now = || begun.elapsed().as_secs();
    let set = |to| *last.lock().unwrap_or_else(PoisonError::into_inner) = to;
    let idle = || last.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| now() > at + IDLE);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while place.is_own() && !idle() {
                std::thread::sleep(Duration::from_secs(1));
            }
            place.end();
        });
        for stream in listener.incoming() {
            set(None);
            // Who asks may die; the others are answered.
            if let Err(e) = stream.map_err(Into::into).and_then(|s| asked(instance, (&server, &database), &place, s)) {
                eprintln!("sudare: {e}");
            }
            set(Some(now()));
        }
        Ok(())
    })
}

/// Answers one connection.
fn asked(
    instance: &Instance,
    (server, database): (&Server, &Database),
    place: &Place,
    mut stream: UnixStream,
) -> Outcome<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let count_only = match line.trim() {
        "end" => place.end(),
        "count" => true,
        "fetch" => false,
        other => return Err(format!("no question: {other:?}").into()),
    };
    let done = instance.answer(server, database, count_only);
    note_costs("server_resident")?;
    let words = done.map_or_else(|e| e.to_string().replace('\n', " "), |()| "done".into());
    Ok(writeln!(stream, "{words}")?)
}

fn compute(instance: &Instance) -> Outcome<()> {
    let Ok(mut stream) = UnixStream::connect(instance.socket()) else {
        let (server, database) = instance.server()?;
        return instance.answer(&server, &database, instance.count_only);
    };
    writeln!(stream, "{}", if instance.count_only { "count" } else { "fetch" })?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    match line.trim() {
        "done" => Ok(()),
        "" => {
            Err(format!("the resident server ended without an answer; {} may say why", instance.log().display()).into())
        }
        why => Err(why.into()),
    }
}

fn keys(instance: &Instance) -> Outcome<()> {
    let client = Client::new(&instance.index)?;
    write_secret(&instance.secret(), &secret_key_to_bytes(client.secret())?)?;
    write(&instance.keys(), &client.keys()?.to_bytes()?)
}

fn encrypt_query(instance: &Instance) -> Outcome<()> {
    let query = floats(&read(&instance.data.join("query.bin"))?);
    write(&instance.query(), &instance.client()?.query(&query)?.to_bytes()?)
}

fn main() -> ExitCode {
    run(|step| {
        let instance = Instance::new(step)?;
        match step.name.as_str() {
            // Vectors are normalised and sorted where they are encrypted; nothing is left to do in the clear.
            "client_preprocess_dataset" | "client_preprocess_query" | "client_postprocess" => Ok(()),
            "client_key_generation" => keys(&instance),
            "client_encode_encrypt_db" => encrypt_table(&instance),
            "server_preprocess_dataset" => start(step, &instance),
            "server_resident" => serve(&instance),
            "client_encode_encrypt_query" => encrypt_query(&instance),
            "server_encrypted_compute" => compute(&instance),
            "client_decrypt_decode" => decrypt(&instance),
            other => Err(format!("no step of fetch-by-similarity: {other}").into()),
        }
    })
}
