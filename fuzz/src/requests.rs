//! Connections that bring anything, to a service without sockets: every answer is one of the protocol, a tenant's share
//! holds, another tenant's is untouched, and what was done outlives a restart.
//!
//! An input is what connections bring one after the other, with [`NEXT`] between them, after each of which the jobs that
//! wait are computed. [`word`]s stand for the names of objects that are there.

use super::mutation::{self, Random};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use sudare_expr::{Expr, InputSpec, Matrix};
use sudare_genome::Panel;
use sudare_plan::{CostModel, Goal, Plan, Planner};
use sudare_ring::ErrorKind;
use sudare_serve::{Digest, Event, Limits, Problem, Served, ServedPanel, Service, Settings, Tokens};
use sudare_session::Client;
use sudare_session::QUIET;

/// Between two connections.
const NEXT: &[u8] = b"\n=====\n";
const TOKENS: [(&str, &str); 2] = [("one", "sudare_one"), ("two", "sudare_two")];
/// What the other tenant has.
const OTHERS: &[u8] = b"nobody but tenant two may see this";
/// How long a connection that keeps silent is waited for. Nothing that is asked takes longer, but for waiting itself.
const SILENCE: Duration = Duration::from_millis(4);
const MOST: Duration = Duration::from_millis(60);
/// Jobs of a connection take longer than this in no case.
const MOST_CONNECTIONS: usize = 6;

struct World {
    /// Objects of the first tenant by the words for them.
    objects: Vec<(&'static str, Vec<u8>)>,
    /// What is built of a plan stays as long as the plan.
    _plans: [Plan; 2],
    panel: Arc<Panel>,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let input = |name, shape| InputSpec::integers(name, shape, 100);
        let product = Expr::product(input("A", (2, 3)), input("B", (3, 2))).expect("it has a value");
        let planner = Planner::new(CostModel::default());
        let exact = planner.plan(&Goal::new(product, 0.0)).expect("a plan");
        let client = Client::new(&exact, 1).expect("a client");
        let encrypted = |name: &str, shape: (usize, usize)| {
            let numbers = Matrix::<i128>::new(shape.0, shape.1, vec![7; shape.0 * shape.1]).expect("a matrix");
            client.encrypt_integers(name, &numbers, QUIET).and_then(|value| value.to_bytes()).expect("it is encrypted")
        };
        let table = planner.plan(&Goal::moments(4, vec![1.0]).expect("a table")).expect("a plan");
        let text = |plan: &Plan| plan.to_json().expect("a plan is written").into_bytes();
        let objects = vec![
            ("plan", text(&exact)),
            ("table", text(&table)),
            ("a", encrypted("A", (2, 3))),
            ("b", encrypted("B", (3, 2))),
            ("text", b"an object of no kind".to_vec()),
        ];
        let panel = include_bytes!("../../crates/genome/tests/golden/v1/genome_panel.bin");
        World {
            objects,
            _plans: [exact, table],
            panel: Arc::new(Panel::from_bytes(panel.to_vec()).expect("the golden panel loads")),
        }
    })
}

/// What stands for the name of an object, as long as that.
fn word(object: &str) -> String {
    format!("{object:_<64}")
}

/// The name of the job that the first tenant asks for with an idempotency key.
fn job(key: &str) -> String {
    Digest::of(format!("{} {key}", TOKENS[0].0).as_bytes()).to_string()[..32].to_owned()
}

fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n{headers}{length}\r\n",
        TOKENS[0].1
    );
    [head.as_bytes(), body].concat()
}

/// Requests of each kind, alone and together.
pub fn seeds() -> Vec<Vec<u8>> {
    let get = |path: &str| request("GET", path, "", b"");
    let new = b"an object that is sent";
    let name = format!("/v1/objects/{}", Digest::of(new));
    let whole = json!({"kind": "compute", "plan": word("plan"),
        "operands": [{"object": word("a")}, {"object": word("b")}]});
    let compute = |operation: &str| {
        let mut one = whole.clone();
        one["operation"] = json!({"op": operation});
        one
    };
    let ask = |what: &Value, key: &str| {
        let headers = format!("Content-Type: application/json\r\nIdempotency-Key: {key}\r\n");
        request("POST", "/v1/jobs", &headers, what.to_string().as_bytes())
    };
    let (first, second) = (job("first"), job("second"));
    let search = json!({"kind": "search", "panel": "golden", "query": word("text"), "pad": 64});
    let plain = json!({"kind": "compute", "plan": word("table"), "keys": word("text"), "operation": {"op": "scale", "by": 0.5},
        "operands": [{"object": word("text"), "plain": "A"}]});
    let asked = |kind: &str| json!({"kind": kind, "table": "faces", "query": word("text")});
    let mut count = asked("count");
    count["gaps"] = json!([[0.7, 0.9], [0.5, 0.6]]);
    let append =
        json!({"kind": "append", "table": "faces", "segment": word("text"), "plan": word("plan"), "keys": word("a")});
    let infer = json!({"kind": "infer", "model": "net", "keys": word("text"), "inputs": word("a")});
    let (text, a) = (format!("/v1/objects/{}", word("text")), format!("/v1/objects/{}", word("a")));
    let piece = |range: &str, body: &[u8]| request("PUT", &name, &format!("Content-Range: bytes {range}/22\r\n"), body);
    let after = |parts: &[Vec<u8>]| parts.join(NEXT);
    vec![
        [get("/healthz"), get("/openapi.json"), get("/v1/config"), get("/v1/panels/golden/sites")].concat(),
        [get(&text), request("HEAD", &a, "", b"")].concat(),
        request("GET", &text, "Range: bytes=3-9\r\n", b""),
        request("GET", &text, "Range: bytes=-4\r\nConnection: close\r\n", b""),
        after(&[request("PUT", &name, "", new), get(&name), request("DELETE", &name, "", b"")]),
        after(&[piece("0-14", &new[..15]), request("HEAD", &name, "", b""), piece("15-21", &new[15..]), get(&name)]),
        request("PUT", &name, "Expect: 100-continue\r\n", new),
        request("PUT", &name, "", b"SUDARE\x1a\n\x01\x00\x02\x00 a secret key"),
        after(&[ask(&whole, "first"), get(&format!("/v1/jobs/{first}")), get(&format!("/v1/jobs/{first}/result"))]),
        after(&[ask(&compute("matmul"), "second"), get(&format!("/v1/jobs/{second}/events")), get("/v1/jobs")]),
        [ask(&compute("add"), "first"), request("DELETE", &format!("/v1/jobs/{first}"), "", b""), ask(&whole, "first")]
            .concat(),
        after(&[ask(&search, "first"), get(&format!("/v1/jobs/{first}?wait=1"))]),
        after(&[ask(&append, "first"), get("/v1/tables"), get(&format!("/v1/jobs/{first}")), get("/v1/tables/faces")]),
        after(&[ask(&count, "first"), ask(&asked("scores"), "second"), request("DELETE", "/v1/tables/faces", "", b"")]),
        after(&[ask(&infer, "first"), get("/v1/models/net/plan")]),
        after(&[ask(&plain, "second"), request("DELETE", &text, "", b""), get(&format!("/v1/jobs/{second}"))]),
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: bearer sudare_one\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n[{}]\r\n0\r\n\r\n"
            .to_vec(),
        b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sudare_none\r\n\r\n".to_vec(),
        b"GET /v1/config HTTP/1.0\r\n\r\n".to_vec(),
    ]
}

/// Changes one connection: its body as a document, or anything in it.
pub fn mutate(random: &mut Random, data: &mut Vec<u8>, other: &[u8]) {
    let at = find(data, b"\r\n\r\n").map(|at| at + 4);
    let body = at.map(|at| (at, find(&data[at..], NEXT).map_or(data.len(), |end| at + end)));
    if mutation::below(random, 3) > 0
        && let Some((start, end)) = body
        && let Ok(mut text) = String::from_utf8(data[start..end].to_vec())
        && mutation::json(random, &mut text)
    {
        let head = String::from_utf8_lossy(&data[..start]);
        let lines =
            head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("content-length") && !line.is_empty());
        let head: String = lines.map(|line| format!("{line}\r\n")).collect();
        let rest = data[end..].to_vec();
        *data = format!("{head}Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes();
        data.extend(rest);
        return;
    }
    mutation::bytes(random, data, other);
}

fn find(data: &[u8], what: &[u8]) -> Option<usize> {
    data.windows(what.len()).position(|window| window == what)
}

/// All parts of an input between two connections.
fn connections(data: &[u8]) -> Vec<&[u8]> {
    let (mut out, mut rest) = (Vec::new(), data);
    while let Some(at) = find(rest, NEXT) {
        out.push(&rest[..at]);
        rest = &rest[at + NEXT.len()..];
    }
    out.push(rest);
    out.truncate(MOST_CONNECTIONS);
    out
}

/// The bytes with the names of objects in the places of the words for them.
fn named(data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    for (name, object) in &world().objects {
        while let Some(at) = find(&data, word(name).as_bytes()) {
            data[at..at + 64].copy_from_slice(Digest::of(object).to_string().as_bytes());
        }
    }
    data
}

fn settings(data: &Path) -> Settings {
    let limits = Limits {
        object_bytes: 1 << 20,
        tenant_bytes: 2 << 20,
        tenant_jobs: 4,
        jobs: 8,
        tenant_uploads: 2,
        tenant_records: 4,
        memory: 64 << 20,
        job: Duration::from_secs(5),
        head: SILENCE,
        stall: SILENCE,
        grace: Duration::from_millis(50),
        ..Limits::default()
    };
    Settings { threads: 1, workers: 0, limits, ..Settings::new(data) }
}

fn open(data: &Path, log: &Arc<Mutex<Vec<String>>>) -> Service {
    let tokens: String =
        TOKENS.iter().map(|(name, token)| format!("{name} {}\n", Digest::of(token.as_bytes()))).collect();
    let panel = ServedPanel { name: "golden".into(), panel: world().panel.clone(), padding: None, most_queries: None };
    let served = Served { panels: vec![panel], ..Served::default() };
    let log = log.clone();
    let lines = move |event: &Event| {
        log.lock().expect("nobody panics").push(event.to_string());
        Ok(())
    };
    Service::open(settings(data), Tokens::read(&tokens).expect("tokens"), served, lines).expect("the folder is its own")
}

/// Brings the connections of an input to a new service; whether all that was asked was granted.
pub fn check(data: &[u8]) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let log = Arc::new(Mutex::new(Vec::new()));
    let put = |tenant: &str, object: &[u8]| {
        let path = folder.path().join(tenant).join("objects");
        fs::create_dir_all(&path).expect("a folder");
        fs::write(path.join(Digest::of(object).to_string()), object).expect("a file");
    };
    // A folder of before has its lock.
    fs::write(folder.path().join("lock"), b"").expect("a file");
    world().objects.iter().for_each(|(_, object)| put(TOKENS[0].0, object));
    put(TOKENS[1].0, OTHERS);
    let service = open(folder.path(), &log);
    let mut granted = true;
    for sent in connections(data) {
        let answer = service.answer_for_tests(&named(sent), MOST).expect("threads");
        assert!(find(&answer, OTHERS).is_none(), "another tenant's object");
        granted &= answers(&answer);
        service.compute_for_tests();
    }
    let jobs = listed(&service);
    for told in &jobs {
        let problem = told.get("problem").cloned().map(|p| serde_json::from_value::<Problem>(p).expect("a problem"));
        if let Some(problem) = problem {
            granted = false;
            expect_no_fault(&problem);
        }
        assert!(!matches!(told["state"].as_str(), Some("queued" | "running")), "{told}");
    }
    let (kept, share) = (size(&folder.path().join(TOKENS[0].0)), settings(folder.path()).limits.tenant_bytes);
    assert!(kept <= share, "{kept} bytes of {share}");
    assert_eq!(size(&folder.path().join(TOKENS[1].0)), OTHERS.len() as u64, "another tenant's folder");
    for line in log.lock().expect("nobody panics").iter() {
        assert!(TOKENS.iter().all(|(_, token)| !line.contains(token)) && !line.contains(char::is_control), "{line:?}");
    }
    // What was done outlives a restart.
    drop(service);
    let again = listed(&open(folder.path(), &log));
    let states = |all: &[Value]| all.iter().map(|job| (job["id"].clone(), job["state"].clone())).collect::<Vec<_>>();
    assert_eq!(states(&again), states(&jobs));
    granted
}

/// The first tenant's jobs.
fn listed(service: &Service) -> Vec<Value> {
    let asked = request("GET", "/v1/jobs", "Connection: close\r\n", b"");
    let answer = service.answer_for_tests(&asked, Duration::from_secs(20)).expect("threads");
    let start = find(&answer, b"\r\n\r\n").expect("an answer");
    serde_json::from_slice(&answer[start + 4..]).expect("a list")
}

/// Bytes of all files below a folder, none of which is half written.
fn size(folder: &Path) -> u64 {
    let entry = |entry: fs::DirEntry| {
        let (name, meta) = (entry.file_name(), entry.metadata().expect("it is there"));
        assert!(!name.to_string_lossy().starts_with(".new-"), "{name:?}");
        if meta.is_dir() { size(&entry.path()) } else { meta.len() }
    };
    fs::read_dir(folder).expect("a folder").flatten().map(entry).sum()
}

/// Looks at the answers of a connection; whether none is a refusal.
fn answers(mut bytes: &[u8]) -> bool {
    let mut granted = true;
    while !bytes.is_empty() {
        // What was cut off in time is no answer.
        let Some(end) = find(bytes, b"\r\n\r\n") else { return granted };
        let head = std::str::from_utf8(&bytes[..end]).expect("a head is text");
        bytes = &bytes[end + 4..];
        let status =
            head.strip_prefix("HTTP/1.").and_then(|line| line.get(2..5)).and_then(|code| code.parse::<u16>().ok());
        let status = status.unwrap_or_else(|| panic!("{head:?}"));
        if status == 100 {
            continue;
        }
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        // The answer to a HEAD has the length alone.
        let bodiless = bytes.is_empty() || bytes.starts_with(b"HTTP/1.");
        let length = header("content-length").filter(|_| !bodiless).map_or(Ok(0), str::parse).expect("a length");
        if bytes.len() < length || header("transfer-encoding").is_some() {
            return granted;
        }
        let body = &bytes[..length];
        bytes = &bytes[length..];
        match status {
            200 | 201 | 202 | 204 | 206 => {
                if header("content-type") == Some("application/json") && length > 0 {
                    serde_json::from_slice::<Value>(body).expect("JSON");
                }
            }
            416 if length == 0 => granted = false,
            // What is no HTTP is answered before it comes to the protocol.
            400 | 414 | 431 if header("content-type").is_none() => {
                assert_eq!(length, 0);
                granted = false;
            }
            _ => {
                granted = false;
                assert_eq!(header("content-type"), Some("application/problem+json"), "{head}");
                if length > 0 {
                    let problem: Problem = serde_json::from_slice(body).expect("a problem");
                    assert_eq!(problem.kind().status(), status, "{problem:?}");
                    expect_no_fault(&problem);
                }
            }
        }
    }
    granted
}

/// Nothing that is brought is the server's fault.
fn expect_no_fault(problem: &Problem) {
    let faults = [ErrorKind::Internal, ErrorKind::Io, ErrorKind::Machine];
    assert!(!faults.contains(&problem.kind()), "{problem:?}");
    let words = problem.detail();
    assert!((1..2048).contains(&words.len()) && !words.contains(char::is_control), "{problem:?}");
}
