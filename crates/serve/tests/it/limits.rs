//! What a tenant, a connection without a token or a job can take: each has an end, and is refused in time.

use crate::common;
use crate::service::{compute, exact_job, refused, send, toy, toy_panel};
use common::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use sudare_expr::Operation;
use sudare_genome::{KeyPlan, Padding, Question};
use sudare_ring::{ErrorKind, Threads};
use sudare_serve::{Digest, Limits, Remote, RemoteError, Request, Served, ServedPanel, Service, Settings, State};
use sudare_testkit::sized;

/// What is refused or answered at once takes no longer, however busy the machine is.
const AT_ONCE: Duration = Duration::from_secs(1);

/// What a request is refused with, at once.
fn refused_at_once(server: &Running, tenants: &Tenants, body: &[u8]) -> ErrorKind {
    let started = Instant::now();
    let kind = server.ask_for(&tenants.one, "POST", "/v1/jobs", body).problem().kind();
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    assert!((400..500).contains(&kind.status()), "{}", kind.name());
    kind
}

#[test]
fn operands_are_counted_before_they_are_read() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let limits = Limits { memory: 1 << 20, ..Limits::default() };
    let settings = Settings { workers: 0, limits, ..Settings::new(folder.path()) };
    let server = Running::start(&settings, &tenants);
    let remote = server.remote(&tenants.one);
    let (request, ..) = exact_job(&remote);
    let Request::Compute { plan, operands, .. } = request else { unreachable!() };
    let object = operands[0].object;
    let body = |operation, count| serde_json::to_vec(&compute(plan, None, operation, &vec![object; count])).unwrap();
    // One object 13,000 times, in a megabyte: it was read as often before it was counted.
    let large = body(Some(Operation::Matmul), 13_000);
    assert!(large.len() > 1_000_000);
    assert_eq!(refused_at_once(&server, &tenants, &large), ErrorKind::TooLarge);
    for (operation, count) in [
        (Some(Operation::Matmul), 2_000),
        (Some(Operation::Matmul), 3),
        (Some(Operation::Matmul), 1),
        (Some(Operation::Neg), 2),
        (None, 1_025),
        (None, 0),
    ] {
        assert_eq!(
            refused_at_once(&server, &tenants, &body(operation.clone(), count)).name(),
            "shape",
            "{operation:?} {count}"
        );
    }
    // More than a job may have in memory.
    let heavy = send(&remote, &vec![7; 600_000]);
    let request = serde_json::to_vec(&compute(plan, None, Operation::Neg, &[heavy])).unwrap();
    assert_eq!(refused_at_once(&server, &tenants, &request), ErrorKind::TooLarge);
    assert_eq!(server.ask_for(&tenants.one, "GET", "/v1/jobs", b"").body, b"[]");
    server.stop();
    // A run takes as many as its plan has inputs, and an object that is named twice is one.
    let server = Running::start(&Settings { workers: 1, ..settings }, &tenants);
    let remote = server.remote(&tenants.one);
    assert_eq!(refused(&remote, &compute(plan, None, None, &vec![object; 1_024])).name(), "shape");
    let twice = compute(plan, None, Operation::Matmul, &[object, object]);
    assert_ne!(refused(&remote, &twice), ErrorKind::NotFound);
    server.stop();
}

/// A server of the toy panel, and a query for it.
fn searched(
    folder: &std::path::Path,
    limits: Limits,
    padding: Option<Padding>,
    tenants: &Tenants,
) -> (Running, impl Fn(Option<u64>) -> Request + use<>) {
    let panel = toy_panel(folder);
    let panels = vec![ServedPanel { name: "toy".into(), panel: panel.clone(), padding, most_queries: None }];
    let settings = Settings { limits, ..Settings::new(folder.join("data")) };
    let server = Running::with(&settings, tenants, panels, None);
    let sites = panel.description().unwrap();
    let client = sudare_genome::Client::generate(KeyPlan::trie()).unwrap();
    let symbols = (0..4).map(|k| toy(0, 3 + k)).collect();
    let question = Question::new(&sites, 3, symbols, 1).unwrap();
    let (query, _) = Threads::new(1).run(|| client.query(&sites, &[question], false)).unwrap();
    let query = send(&server.remote(&tenants.one), &query);
    (server, move |pad| Request::Search { panel: "toy".into(), keys: None, query, pad })
}

#[test]
fn a_panels_owner_sets_the_classes_of_padded_searches() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let bytes = |request: &Request| serde_json::to_vec(request).unwrap();
    let (server, search) = searched(folder.path(), Limits::default(), None, &tenants);
    for pad in [0, 1 << 12, 1 << 63] {
        assert_eq!(refused_at_once(&server, &tenants, &bytes(&search(Some(pad)))).name(), "unsupported");
    }
    server.stop();
    let padding = Padding::new(1 << 10, 1 << 12).unwrap();
    assert!(Padding::new(0, 1).is_err() && Padding::new(2, 1).is_err());
    let (server, search) = searched(folder.path(), Limits::default(), Some(padding), &tenants);
    for pad in [0, (1 << 10) - 1, (1 << 12) + 1, 1 << 63, u64::MAX] {
        assert_eq!(refused_at_once(&server, &tenants, &bytes(&search(Some(pad)))).name(), "usage");
    }
    let remote = server.remote(&tenants.one);
    for pad in [None, Some(1 << 12)] {
        let view = remote.submit(&search(pad), None).unwrap();
        remote.wait(&view.id, &|_, _| ()).unwrap();
        // Its time in whole seconds: the work depends on the panel.
        let State::Done { seconds, .. } = remote.job(&view.id).unwrap().state else { panic!("{view:?}") };
        assert!(seconds > 0);
    }
    let config = server.ask_for(&tenants.one, "GET", "/v1/config", b"").body;
    let config: serde_json::Value = serde_json::from_slice(&config).unwrap();
    assert_eq!(config["panels"][0]["pad"], serde_json::json!([1 << 10, 1 << 12]));
    server.stop();
    // A class that its windows do not fit into is refused without their number.
    let (server, search) = searched(folder.path(), Limits::default(), Some(Padding::new(1, 9).unwrap()), &tenants);
    let remote = server.remote(&tenants.one);
    let view = remote.submit(&search(None), None).unwrap();
    let error = remote.wait(&view.id, &|_, _| ()).unwrap_err().to_string();
    assert!(error.contains("class of 1;") && !error.contains(|c: char| c.is_ascii_digit() && c != '1'), "{error}");
    server.stop();
}

#[test]
fn every_job_has_an_end() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let padding = Some(Padding::new(1 << 10, 1 << 63).unwrap());
    let limits = Limits { job: Duration::from_millis(500), ..Limits::default() };
    let (server, search) = searched(folder.path(), limits, padding, &tenants);
    let started = Instant::now();
    assert_eq!(refused(&server.remote(&tenants.one), &search(Some(1 << 63))), ErrorKind::TimeLimit);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    server.stop();
    let limits = Limits { grace: Duration::from_secs(3), ..Limits::default() };
    let (server, search) = searched(folder.path(), limits, padding, &tenants);
    let remote = server.remote(&tenants.one);
    let running = || {
        let id = remote.submit(&search(Some(1 << 63)), None).unwrap().id;
        let until = Instant::now() + Duration::from_secs(20);
        while remote.job(&id).unwrap().state != State::Running {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(5));
        }
        id
    };
    // A tenant's own end.
    let id = running();
    remote.delete_job(&id).unwrap();
    assert!(remote.wait(&id, &|_, _| ()).unwrap_err().to_string().contains("cancelled"));
    // The server's: the job waits for the next start, which is not its second crash.
    let id = running();
    let started = Instant::now();
    server.stop();
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    let record = std::fs::read_to_string(folder.path().join(format!("data/one/jobs/{id}.json"))).unwrap();
    assert!(record.contains("\"queued\"") && record.contains("\"attempts\":0"), "{record}");
}

/// A job that hears nothing: it waits for a file that nobody writes.
#[cfg(unix)]
#[test]
fn a_stop_waits_for_no_job_that_hears_nothing() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let limits = Limits { grace: Duration::from_secs(2), ..Limits::default() };
    let mut settings = Settings { workers: 0, limits, ..Settings::new(folder.path()) };
    let server = Running::start(&settings, &tenants);
    let remote = server.remote(&tenants.one);
    let (request, ..) = exact_job(&remote);
    let id = remote.submit(&request, None).unwrap().id;
    let Request::Compute { operands, .. } = request else { unreachable!() };
    server.stop();
    let pipe = folder.path().join("one/objects").join(operands[0].object.to_string());
    std::fs::remove_file(&pipe).unwrap();
    sudare_testkit::process::fifo(&pipe).unwrap();
    settings.workers = 1;
    let server = Running::start(&settings, &tenants);
    let until = Instant::now() + Duration::from_secs(20);
    while server.remote(&tenants.one).job(&id).unwrap().state != State::Running {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
    let (lines, started) = (server.lines.clone(), Instant::now());
    server.stop();
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    assert!(lines.lock().unwrap().iter().any(|line| line.contains("is left")));
    // Its record stays that of a job that runs: the next start counts an attempt.
    drop(std::fs::OpenOptions::new().write(true).open(&pipe).unwrap());
    std::thread::sleep(Duration::from_millis(200));
    let record = std::fs::read_to_string(folder.path().join(format!("one/jobs/{id}.json"))).unwrap();
    assert!(record.contains("\"running\"") && record.contains("\"attempts\":1"), "{record}");
}

/// As many connections as the sizes that were a weakness once have, or what the process may open of them on both sides.
fn crowd(wanted: usize) -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap_or_default();
    let most = line.split_whitespace().nth(3).and_then(|number| number.parse::<usize>().ok()).unwrap_or(1024);
    wanted.min(most.saturating_sub(200) / 2)
}

/// Asks `/healthz` on one connection after the other, each kept as long as the server keeps it.
fn ask_and_stay(server: &Running, stop: &AtomicBool, closed: &AtomicUsize, count: usize) {
    let mut open: Vec<Option<TcpStream>> = (0..count).map(|_| None).collect();
    while !stop.load(Ordering::Relaxed) {
        let round = Instant::now();
        for place in &mut open {
            let Ok(mut stream) = place.take().map_or_else(|| TcpStream::connect(server.address), Ok) else { continue };
            let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
            let asked = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
            let mut answer = [0; 512];
            match asked.and_then(|()| stream.read(&mut answer)) {
                Ok(length) if length > 0 => {
                    let text = String::from_utf8_lossy(&answer[..length]).to_lowercase();
                    if text.contains("connection: close") {
                        closed.fetch_add(1, Ordering::Relaxed);
                    }
                    *place = Some(stream);
                }
                _ => *place = None,
            }
            if stop.load(Ordering::Relaxed) {
                return;
            }
        }
        std::thread::sleep(Duration::from_secs(2).saturating_sub(round.elapsed()));
    }
}

#[test]
fn unauthenticated_connections_take_no_place_of_a_tenant() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let connections = sized(256, 1024);
    let limits = Limits { connections, ..Limits::default() };
    let server = Running::start(&Settings { limits, ..Settings::new(folder.path()) }, &tenants);
    // A tenant that was there before, and its connection is kept.
    let mut kept = server.connect();
    let head = format!("GET /v1/config HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n", tenants.one.secret());
    let mut ask_kept = || {
        kept.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 4096];
        let length = kept.read(&mut answer).unwrap();
        let text = String::from_utf8_lossy(&answer[..length]).to_lowercase();
        assert!(text.starts_with("http/1.1 200") && !text.contains("connection: close"), "{text}");
    };
    ask_kept();
    let (stop, closed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let slowest = |what: &str| {
        let ask = |_| {
            let started = Instant::now();
            assert_eq!(server.ask_for(&tenants.two, "GET", "/v1/config", b"").status, 200);
            std::thread::sleep(Duration::from_millis(50));
            started.elapsed() - Duration::from_millis(50)
        };
        let slowest = (0..30).map(ask).max().unwrap();
        println!("beside {what}: the slowest of 30 answers took {slowest:?}");
        assert!(slowest < AT_ONCE, "{what}: {slowest:?}");
    };
    let many = crowd(connections);
    std::thread::scope(|s| {
        (0..8).for_each(|_| drop(s.spawn(|| ask_and_stay(&server, &stop, &closed, many / 8))));
        let until = Instant::now() + Duration::from_secs(20);
        while closed.load(Ordering::Relaxed) < many && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        slowest(&format!("{many} connections that ask /healthz"));
        stop.store(true, Ordering::Relaxed);
    });
    assert!(closed.load(Ordering::Relaxed) >= many, "{closed:?}");
    ask_kept();
    // Heads that have no end.
    let heads: Vec<TcpStream> = (0..crowd(connections + 76))
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(b"GET /healthz HTTP/1.1\r\nx: ").unwrap();
            stream
        })
        .collect();
    slowest(&format!("{} unfinished heads", heads.len()));
    ask_kept();
    drop(heads);
    server.stop();
}

#[test]
fn a_tenant_has_so_many_connections() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let limits = Limits { tenant_connections: 3, ..Limits::default() };
    let server = Running::start(&Settings { limits, ..Settings::new(folder.path()) }, &tenants);
    let open = |token: &str| {
        let mut stream = server.connect();
        let head = format!("GET /v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 1024];
        let length = stream.read(&mut answer).unwrap();
        (stream, String::from_utf8_lossy(&answer[9..length.min(12)]).into_owned())
    };
    let kept: Vec<_> = (0..3).map(|_| open(tenants.one.secret())).collect();
    assert!(kept.iter().all(|(_, status)| status == "200"));
    assert_eq!(open(tenants.one.secret()).1, "429");
    assert_eq!(open(tenants.two.secret()).1, "200");
    drop(kept);
    let until = Instant::now() + Duration::from_secs(5);
    while open(tenants.one.secret()).1 != "200" {
        assert!(Instant::now() < until);
    }
    server.stop();
}

/// Bytes of the files of a tenant.
fn stored(folder: &std::path::Path) -> u64 {
    let names = ["objects", "parts", "jobs"].map(|name| folder.join("one").join(name));
    let files = names.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    files.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn results_and_records_are_the_tenants_own() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let probe = Running::start(&Settings::new(folder.path().join("probe")), &tenants);
    let (request, client, _) = exact_job(&probe.remote(&tenants.one));
    let view = probe.remote(&tenants.one).submit(&request, None).unwrap();
    let (_, result) = probe.remote(&tenants.one).wait(&view.id, &|_, _| ()).unwrap();
    probe.stop();
    // Room for what is sent, and for less than a result.
    let sent: u64 = {
        let folder = folder.path().join("probe/one/objects");
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum::<u64>() - result
    };
    let data = folder.path().join("data");
    let limits = Limits { tenant_bytes: sent + result / 2 + 4096, ..Limits::default() };
    let server = Running::start(&Settings { limits, ..Settings::new(&data) }, &tenants);
    let (request, ..) = exact_job(&server.remote(&tenants.one));
    assert_eq!(refused(&server.remote(&tenants.one), &request), ErrorKind::Quota);
    assert!(stored(&data) <= sent + result / 2 + 4096);
    server.stop();
    // Records: as many as are kept, and each takes of the tenant's share.
    let data = folder.path().join("records");
    let limits = Limits { tenant_records: 5, ..Limits::default() };
    let server = Running::start(&Settings { limits, ..Settings::new(&data) }, &tenants);
    let remote = server.remote(&tenants.one);
    let plan = send(&remote, client.plan().to_json().unwrap().as_bytes());
    let wrong = compute(plan, None, None, &[plan]);
    for _ in 0..40 {
        let view = remote.submit(&wrong, None).unwrap();
        assert!(remote.wait(&view.id, &|_, _| ()).is_err());
    }
    let records = || std::fs::read_dir(data.join("one/jobs")).unwrap().count();
    assert!(records() <= 5, "{}", records());
    server.stop();
    let limits = Limits { tenant_bytes: stored(&data) + 8192, ..Limits::default() };
    let server = Running::start(&Settings { limits, ..Settings::new(&data) }, &tenants);
    let remote = server.remote(&tenants.one);
    let kinds: Vec<&str> = (0..40).map(|_| refused(&remote, &wrong).name()).collect();
    assert!(kinds.contains(&"quota"), "{kinds:?}");
    // A tenant makes room by itself.
    let jobs: Vec<serde_json::Value> =
        serde_json::from_slice(&server.ask_for(&tenants.one, "GET", "/v1/jobs", b"").body).unwrap();
    jobs.iter().for_each(|job| remote.delete_job(job["id"].as_str().unwrap()).unwrap());
    assert_ne!(refused(&remote, &wrong), ErrorKind::Quota);
    server.stop();
}

/// Linux has a file that is a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_at_once() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let server = Running::start(&Settings::new(folder.path()), &tenants);
    let bytes: Vec<u8> = (0..20_000_000u32).map(|i| (i.wrapping_mul(i) >> 9) as u8).collect();
    let part = folder.path().join("one/parts").join(Digest::of(&bytes).to_string());
    std::os::unix::fs::symlink("/dev/full", part).unwrap();
    let started = Instant::now();
    let error = server.remote(&tenants.one).send(&mut std::io::Cursor::new(&bytes)).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(matches!(&error, RemoteError::Refused(p) if p.kind() == ErrorKind::DiskFull), "{error}");
    assert!(error.to_string().contains("disk is full"), "{error}");
    server.stop();
}

#[cfg(unix)]
#[test]
fn the_data_folder_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let open = |path: &std::path::Path| {
        Service::open(Settings::new(path), tenants.tokens.clone(), Served::default(), |_| Ok(()))
    };
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let widen = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    // Made, empty, and one of before that was opened to others since.
    let made = folder.path().join("made");
    drop(open(&made).unwrap());
    assert_eq!(mode(&made), 0o700);
    widen(&made);
    drop(open(&made).unwrap());
    assert_eq!(mode(&made), 0o700);
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    widen(&empty);
    drop(open(&empty).unwrap());
    assert_eq!(mode(&empty), 0o700);
    // What holds something else stays as it is.
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("x"), b"x").unwrap();
    widen(&other);
    let error = open(&other).unwrap_err().to_string();
    assert!(error.contains("755") && error.contains("chmod 700"), "{error}");
    assert_eq!(mode(&other), 0o755);
}

/// A server that answers each request with the same bytes, as often as it is asked, for a while.
fn hostile(answer: Vec<u8>) -> (String, std::sync::Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = std::sync::Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (answer, count) = (answer.clone(), count.clone());
            std::thread::spawn(move || {
                let mut stream = stream;
                let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
                let mut request = [0; 1 << 16];
                while stream.read(&mut request).is_ok_and(|length| length > 0) {
                    count.fetch_add(1, Ordering::Relaxed);
                    if stream.write_all(&answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (url, asked)
}

#[test]
fn a_client_trusts_no_answer() {
    let remote = |answer: &str| {
        let (url, asked) = hostile(answer.as_bytes().to_vec());
        (Remote::new(&url, "sudare_0", None).unwrap(), asked)
    };
    let json = |status: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    };
    let id = "0123456789abcdef0123456789abcdef";
    let bodies = [
        "{".to_owned(),
        "[]".to_owned(),
        "[".repeat(1 << 20),
        "{\"id\":1}".to_owned(),
        format!("{{\"id\":\"{id}\",\"created\":1e400,\"state\":\"queued\",\"done\":0,\"steps\":0}}"),
        format!("{{\"id\":\"{id}\",\"created\":0,\"state\":\"done\",\"done\":0,\"steps\":0}}"),
        "{\"id\":\"../../x\",\"created\":0,\"state\":\"queued\",\"done\":0,\"steps\":0}".to_owned(),
        " ".repeat(9 << 20),
    ];
    for body in &bodies {
        let (remote, _) = remote(&json("200 OK", body));
        assert!(matches!(remote.job(id), Err(RemoteError::Answer(_) | RemoteError::Unreachable { .. })), "{body:.60}");
    }
    // Objects of any length, in pieces that do not fit, and more wanted of one that was sent.
    let digest = Digest::of(b"x");
    for head in [
        "200 OK\r\ncontent-length: 9999999999999".to_owned(),
        "206 Partial Content\r\ncontent-range: bytes 0-8388607/9999999999999".to_owned(),
        "206 Partial Content\r\ncontent-range: bytes 5-6/7".to_owned(),
        "206 Partial Content\r\ntransfer-encoding: chunked".to_owned(),
    ] {
        let (remote, _) = remote(&format!("HTTP/1.1 {head}\r\n\r\n"));
        assert!(matches!(remote.fetch(digest, &mut std::io::sink()), Err(RemoteError::Answer(_))), "{head}");
    }
    let started = Instant::now();
    let (endless, asked) = remote("HTTP/1.1 202 Accepted\r\nupload-offset: 0\r\ncontent-length: 0\r\n\r\n");
    let sent = endless.send(&mut std::io::Cursor::new(vec![0; 100]));
    assert!(matches!(sent, Err(RemoteError::Answer(_))), "{sent:?}");
    assert!(asked.load(Ordering::Relaxed) < 10 && started.elapsed() < Duration::from_secs(20));
    // A password is neither shown nor kept.
    let error = Remote::new("https://clinic:hidden@example.org", "sudare_0", None).unwrap_err();
    assert!(matches!(&error, RemoteError::Address(words) if !words.contains("hidden")), "{error}");
}
