//! A server and its tenants, over sockets: every kind of job, and everything that may go wrong on the way.

use crate::common;
use common::*;
use std::io::{Cursor, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sudare_expr::{Expr, InputSpec, Matrix, Node, Operation};
use sudare_genome::panel::Build;
use sudare_genome::{KeyPlan, Panel, Question, Sites};
use sudare_plan::Goal;
use sudare_ring::{ErrorKind, Threads};
use sudare_rlwe::wire::{Wire, secret_key_to_bytes};
use sudare_serve::{
    Digest, Limits, Operand, Patience, Remote, RemoteError, Request, Served, ServedPanel, Service, Settings, State, Tls,
};
use sudare_session::{Client, Encrypted};
use sudare_testkit::sized;

pub fn send(remote: &Remote, bytes: &[u8]) -> Digest {
    remote.send(&mut Cursor::new(bytes)).unwrap()
}

/// What a job computes.
fn done(remote: &Remote, request: &Request) -> Vec<u8> {
    let view = remote.submit(request, None).unwrap();
    let (digest, bytes) = remote.wait(&view.id, &|_, _| ()).unwrap();
    let mut out = Vec::new();
    assert_eq!(remote.fetch(digest, &mut out).unwrap(), bytes);
    out
}

pub fn refused(remote: &Remote, request: &Request) -> ErrorKind {
    let view = match remote.submit(request, None) {
        Ok(view) => view,
        Err(RemoteError::Refused(problem)) => return problem.kind(),
        Err(other) => panic!("{other}"),
    };
    match remote.wait(&view.id, &|_, _| ()) {
        Err(RemoteError::Refused(problem)) => problem.kind(),
        other => panic!("{other:?}"),
    }
}

pub fn compute(
    plan: Digest,
    keys: Option<Digest>,
    operation: impl Into<Option<Operation>>,
    operands: &[Digest],
) -> Request {
    let operands = operands.iter().map(|d| Operand::encrypted(*d)).collect();
    Request::Compute { plan, keys, operation: operation.into(), operands }
}

/// A job of an exact product, ready on a server, with what it should give.
pub fn exact_job(remote: &Remote) -> (Request, Client, Matrix<i128>) {
    let plan = exact(3, 4, 2);
    let client = Client::new(&plan, 1).unwrap();
    let a = Matrix::<i128>::from_fn(3, 4, |i, j| i as i128 * 5 - j as i128).unwrap();
    let b = Matrix::<i128>::from_fn(4, 2, |i, j| 7 - (i * 3 + j) as i128).unwrap();
    let [ea, eb] = [("A", &a), ("B", &b)]
        .map(|(name, m)| send(remote, &client.encrypt_integers(name, m, &|_, _| ()).unwrap().to_bytes().unwrap()));
    let digest = send(remote, plan.to_json().unwrap().as_bytes());
    let product = Matrix::<i128>::from_fn(3, 2, |i, j| (0..4).map(|k| a.get(i, k) * b.get(k, j)).sum()).unwrap();
    (compute(digest, None, Operation::Matmul, &[ea, eb]), client, product)
}

#[test]
fn a_product_over_tls() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let (pem, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let tls = Tls::new(pem.as_bytes(), key.as_bytes(), None).unwrap();
    assert!(Tls::new(key.as_bytes(), key.as_bytes(), None).is_err());
    let server = Running::with(&Settings::new(folder.path()), &tenants, Vec::new(), Some(tls));
    let url = format!("https://localhost:{}", server.address.port());
    let remote = Remote::new(&url, tenants.one.secret(), Some(pem.as_bytes())).unwrap();
    let plan = product(5, 7, 3);
    let client = Client::new(&plan, 2).unwrap();
    let keys = send(&remote, &client.eval_keys().unwrap().to_bytes().unwrap());
    let (a, b) = (values(5, 7, 1), values(7, 3, 2));
    let [ea, eb] =
        [("A", &a), ("B", &b)].map(|(name, m)| send(&remote, &client.encrypt(name, m).unwrap().to_bytes().unwrap()));
    let digest = send(&remote, plan.to_json().unwrap().as_bytes());
    let request = compute(digest, Some(keys), Operation::Matmul, &[ea, eb]);
    let view = remote.submit(&request, Some("once")).unwrap();
    assert_eq!(remote.submit(&request, Some("once")).unwrap().id, view.id);
    let (result, _) = remote.wait(&view.id, &|_, _| ()).unwrap();
    let view = remote.job(&view.id).unwrap();
    assert!(view.steps > 0 && view.done == view.steps, "{view:?}");
    let mut bytes = Vec::new();
    remote.fetch(result, &mut bytes).unwrap();
    let c = client.decrypt(&Encrypted::from_bytes(&plan, &bytes).unwrap()).unwrap();
    assert!(c.max_difference(&a.matmul(&b).unwrap()) < 1e-4);
    // A result is an object: it goes on without a way back. This plan has no such step, and says so.
    assert_eq!(refused(&remote, &compute(digest, Some(keys), Operation::Neg, &[result])).name(), "not-planned");
    assert_eq!(refused(&remote, &compute(digest, None, Operation::Matmul, &[ea, eb])).name(), "missing-key");
    assert_eq!(refused(&remote, &compute(digest, Some(keys), Operation::Matmul, &[ea])).name(), "shape");
    assert_eq!(refused(&remote, &compute(digest, Some(ea), Operation::Matmul, &[ea, eb])).name(), "wrong-type");
    assert_eq!(refused(&remote, &compute(ea, Some(keys), Operation::Matmul, &[ea, eb])).name(), "format");
    let other = compute(digest, Some(keys), None, &[ea, eb]);
    let error = remote.submit(&other, Some("once")).unwrap_err();
    assert!(matches!(&error, RemoteError::Refused(p) if p.kind() == ErrorKind::Idempotency), "{error}");
    // Neither an open line nor a server of another name gets the token.
    let plain = Remote::new(&url.replace("https", "http"), tenants.one.secret(), None).unwrap();
    assert!(matches!(plain.delete_object(keys), Err(RemoteError::Unreachable { .. } | RemoteError::Answer(_))));
    let unknown = Remote::new(&url, tenants.one.secret(), None).unwrap();
    assert!(matches!(unknown.delete_object(keys), Err(RemoteError::Unreachable { .. })));
    for wrong in ["http://example.org", "ftp://localhost", "localhost", ""] {
        assert!(matches!(Remote::new(wrong, tenants.one.secret(), None), Err(RemoteError::Address(_))), "{wrong}");
    }
    server.stop();
}

/// A certificate that signs itself and others, as `openssl req -x509` makes it: what names it as an authority may meet it as a
/// server, within its dates and under its name.
#[test]
fn a_self_signed_certificate_that_is_named() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let certificate = |names: &[&str], until: i32| {
        let mut params =
            rcgen::CertificateParams::new(names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    };
    let (other, _) = certificate(&["localhost"], 4096);
    for (names, until, good) in
        [(&["localhost"][..], 4096, true), (&["localhost"], 2020, false), (&["example.org"], 4096, false)]
    {
        let (pem, key) = certificate(names, until);
        let tls = Tls::new(pem.as_bytes(), key.as_bytes(), None).unwrap();
        let server = Running::with(&Settings::new(folder.path()), &tenants, Vec::new(), Some(tls));
        let url = format!("https://localhost:{}", server.address.port());
        let asked = |pem: &str| {
            let remote = Remote::new(&url, tenants.one.secret(), Some(pem.as_bytes())).unwrap();
            remote.with_patience(Patience { tries: 1, ..Patience::default() }).config()
        };
        assert_eq!(asked(&pem).is_ok(), good, "{names:?} until {until}: {:?}", asked(&pem).err());
        assert!(matches!(asked(&other), Err(RemoteError::Unreachable { .. })));
        server.stop();
    }
}

#[test]
fn every_kind_of_job() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let panel = toy_panel(folder.path());
    let panels = vec![ServedPanel { name: "toy".into(), panel: panel.clone(), padding: None, most_queries: None }];
    let server = Running::with(&Settings::new(folder.path().join("data")), &tenants, panels, None);
    let remote = server.remote(&tenants.one);
    // Integers, without keys.
    let (request, client, expected) = exact_job(&remote);
    let c = Encrypted::from_bytes(client.plan(), &done(&remote, &request)).unwrap();
    assert_eq!(client.decrypt_integers(&c).unwrap(), expected);
    // Statistics.
    let table = plan(&Goal::moments(6, vec![1.0, 1.0]).unwrap());
    let client = Client::new(&table, 1).unwrap();
    let x = values(6, 2, 3);
    let name = table.expression().inputs()[0].name.clone();
    let [digest, keys, value] = [
        table.to_json().unwrap().into_bytes(),
        client.eval_keys().unwrap().to_bytes().unwrap(),
        client.encrypt(&name, &x).unwrap().to_bytes().unwrap(),
    ]
    .map(|bytes| send(&remote, &bytes));
    let result = done(&remote, &compute(digest, Some(keys), Operation::Moments, &[value]));
    let moments = client.decrypt_moments(&Encrypted::from_bytes(&table, &result).unwrap()).unwrap();
    let mean: f64 = (0..6).map(|i| x.get(i, 0)).sum::<f64>() / 6.0;
    assert!((moments.mean[0] - mean).abs() < 1e-5);
    // An expression with an input that the server sees.
    let inputs = vec![InputSpec::new("x", (2, 3), 1.0), InputSpec { plain: true, ..InputSpec::new("w", (3, 2), 1.0) }];
    let nodes = vec![
        Node::input(0),
        Node::input(1),
        Node::new(Operation::Matmul, &[0, 1]),
        Node::new(Operation::Shift { by: 0.5 }, &[2]),
    ];
    let circuit = plan(&Goal::new(Expr::new(inputs, nodes, 3).unwrap(), 1e-4));
    let client = Client::new(&circuit, 1).unwrap();
    let (x, w) = (values(2, 3, 5), values(3, 2, 6));
    let doubles: Vec<u8> = w.data().iter().flat_map(|v| v.to_le_bytes()).collect();
    let [digest, keys, value, plain] = [
        circuit.to_json().unwrap().into_bytes(),
        client.eval_keys().unwrap().to_bytes().unwrap(),
        client.encrypt("x", &x).unwrap().to_bytes().unwrap(),
        doubles,
    ]
    .map(|bytes| send(&remote, &bytes));
    let operands = |name: &str| vec![Operand::encrypted(value), Operand { object: plain, plain: Some(name.into()) }];
    let run =
        |name: &str| Request::Compute { plan: digest, keys: Some(keys), operation: None, operands: operands(name) };
    let result = client.decrypt(&Encrypted::from_bytes(&circuit, &done(&remote, &run("w"))).unwrap()).unwrap();
    let product = x.matmul(&w).unwrap();
    assert!((0..4).all(|i| (result.data()[i] - product.data()[i] - 0.5).abs() < 1e-4));
    assert_eq!(refused(&remote, &run("y")), ErrorKind::NotFound);
    // A private search.
    let reply = server.ask_for(&tenants.one, "GET", "/v1/panels/toy/sites", b"");
    let sites = Sites::from_bytes(&reply.body).unwrap();
    let client = sudare_genome::Client::generate(KeyPlan::trie()).unwrap();
    let symbols: Vec<bool> = (0..4).map(|k| toy(0, 3 + k)).collect();
    let question = Question::new(&sites, 3, symbols.clone(), 1).unwrap();
    let (query, pending) = Threads::new(1).run(|| client.query(&sites, &[question], false)).unwrap();
    let query = send(&remote, &query);
    let search = |panel: &str| Request::Search { panel: panel.into(), keys: None, query, pad: None };
    let answers = client.answer(&pending, &done(&remote, &search("toy"))).unwrap();
    assert_eq!(answers[0].matched, sudare_genome::search::longest(&panel, 3, &symbols, 1).unwrap().length);
    assert_eq!(refused(&remote, &search("other")), ErrorKind::NotFound);
    // What is said of the server, and what its log has: patterns of paths, never what stands in them.
    let config: serde_json::Value =
        serde_json::from_slice(&server.ask_for(&tenants.one, "GET", "/v1/config", b"").body).unwrap();
    assert_eq!(config["panels"][0]["name"], "toy");
    let lines = server.lines.lock().unwrap().join("\n");
    assert!(
        lines.contains("method=PUT path=/v1/objects/{digest} status=201") && lines.contains(" tenant=one token="),
        "{lines}"
    );
    // Names of objects are in the audit alone.
    let (query, audited) = (query.to_string(), ["Z object ", "Z job address=", "Z fetch ", "Z end ", "Z removal "]);
    let with_name: Vec<&str> = lines.lines().filter(|line| line.contains(&query)).collect();
    assert!(with_name.len() >= 2 && with_name.iter().all(|line| audited.iter().any(|a| line.contains(a))), "{lines}");
    assert!(!lines.contains(tenants.one.secret()));
    let mut stream = std::net::TcpStream::connect(server.monitoring).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let text = String::from_utf8(Reply::read(stream).body).unwrap();
    assert!(text.contains("sudare_jobs_total{end=\"done\"} 4") && !text.contains("tenant"), "{text}");
    // Progress as events.
    let id = remote.submit(&run("w"), None).unwrap().id;
    let events = server.ask_for(&tenants.one, "GET", &format!("/v1/jobs/{id}/events"), b"");
    let text = String::from_utf8(events.body).unwrap();
    assert!(text.contains("\"state\":\"done\""), "{text}");
    server.stop();
}

/// Allele k of a haplotype of the toy panel.
pub fn toy(haplotype: usize, k: usize) -> bool {
    (haplotype * 7 + k * 3 + haplotype * k) % 5 < 2
}

pub fn toy_panel(folder: &std::path::Path) -> Arc<Panel> {
    let mut text = String::from(
        "##fileformat=VCFv4.2\n##contig=<ID=20,length=1000>\n##FORMAT=<ID=GT,Number=1,Type=String,Description=\"Genotype\">\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tS0\tS1\tS2\n",
    );
    for k in 0..12 {
        let call = |s: usize| format!("{}|{}", u8::from(toy(2 * s, k)), u8::from(toy(2 * s + 1, k)));
        text += &format!("20\t{}\t.\tA\tG\t.\tPASS\t.\tGT\t{}\t{}\t{}\n", 10 * (k + 1), call(0), call(1), call(2));
    }
    let (input, output) = (folder.join("toy.vcf"), folder.join("toy.panel"));
    std::fs::write(&input, text).unwrap();
    Build::default().run(&input, &output, &|_, _| ()).unwrap();
    Arc::new(Panel::open(&output).unwrap())
}

#[test]
fn tenants_are_alone() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let server = Running::start(&Settings::new(folder.path()), &tenants);
    let one = server.remote(&tenants.one);
    let (request, ..) = exact_job(&one);
    let view = one.submit(&request, Some("key")).unwrap();
    let (result, _) = one.wait(&view.id, &|_, _| ()).unwrap();
    // The other tenant knows every name, and finds nothing: as if nobody had it.
    let two = server.remote(&tenants.two);
    let Request::Compute { plan, .. } = request.clone() else { unreachable!() };
    let paths = [
        ("GET", format!("/v1/objects/{plan}")),
        ("HEAD", format!("/v1/objects/{result}")),
        ("DELETE", format!("/v1/objects/{plan}")),
        ("GET", format!("/v1/jobs/{}", view.id)),
        ("GET", format!("/v1/jobs/{}/result", view.id)),
        ("GET", format!("/v1/jobs/{}/events", view.id)),
        ("DELETE", format!("/v1/jobs/{}", view.id)),
    ];
    for (method, path) in &paths {
        assert_eq!(server.ask_for(&tenants.two, method, path, b"").status, 404, "{method} {path}");
        for token in ["", "sudare_0", &tenants.one.secret()[1..]] {
            assert_eq!(server.raw(token, method, path, "", b"").status, 401, "{method} {path}");
        }
    }
    assert_eq!(refused(&two, &request), ErrorKind::NotFound);
    assert_eq!(server.ask_for(&tenants.two, "GET", "/v1/jobs", b"").body, b"[]");
    // Its idempotency keys are its own, and what it sends again is its own copy.
    let copy = exact_job(&two).0;
    assert_ne!(two.submit(&copy, Some("key")).unwrap().id, view.id);
    assert!(one.delete_object(plan).is_ok());
    assert_eq!(server.ask_for(&tenants.one, "HEAD", &format!("/v1/objects/{plan}"), b"").status, 404);
    // Paths and methods that there are not, without and with a token.
    for (method, path) in
        [("GET", "/v1/objects/..%2f..%2flock"), ("PUT", "/v1/objects/%98"), ("DELETE", "/v1/jobs/%ff")]
    {
        assert_eq!(server.ask_for(&tenants.one, method, path, b"").problem().kind(), ErrorKind::Request, "{path}");
    }
    assert_eq!(server.ask_for(&tenants.one, "GET", "/v2", b"").problem().kind(), ErrorKind::NotFound);
    assert_eq!(server.ask_for(&tenants.one, "PATCH", "/v1/jobs", b"").problem().kind(), ErrorKind::Method);
    assert_eq!(server.raw("", "GET", "/healthz", "", b"").status, 200);
    // One server at a time has the folder.
    let second = Service::open(Settings::new(folder.path()), tenants.tokens.clone(), Served::default(), |_| Ok(()));
    assert!(second.unwrap_err().to_string().contains("another server"));
    server.stop();
}

#[test]
fn secrets_are_refused_before_they_are_stored() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let server = Running::start(&Settings::new(folder.path()), &tenants);
    let plan = exact(2, 2, 2);
    let client = Client::new(&plan, 1).unwrap();
    let secret = secret_key_to_bytes(client.secret_key()).unwrap().to_vec();
    let genome = sudare_genome::Client::generate(KeyPlan::trie()).unwrap();
    let public = product(2, 2, 2);
    let public = Client::new(&public, 1).unwrap().public_key().unwrap().to_bytes().unwrap();
    let ones = Matrix::<i128>::from_fn(2, 2, |_, _| 1).unwrap();
    let value = client.encrypt_integers("A", &ones, &|_, _| ()).unwrap().to_bytes().unwrap();
    let cases = [
        (secret.clone(), "secret"),
        (genome.secret_bytes().unwrap().to_vec(), "secret"),
        // Behind something harmless.
        ([value.clone(), secret.clone()].concat(), "secret"),
        (public, "wrong-type"),
        ([value.clone(), vec![0; 100]].concat(), "format"),
        (value[..value.len() - 1].to_vec(), "format"),
    ];
    for (bytes, kind) in &cases {
        let path = format!("/v1/objects/{}", Digest::of(bytes));
        let reply = server.ask_for(&tenants.one, "PUT", &path, bytes);
        assert_eq!(reply.problem().kind().name(), *kind);
        // Also if it comes in pieces.
        let headers = |a: usize, b: usize| {
            format!("content-length: {}\r\ncontent-range: bytes {a}-{}/{}\r\n", b - a, b - 1, bytes.len())
        };
        let first = server.raw(tenants.one.secret(), "PUT", &path, &headers(0, 16), &bytes[..16]);
        if first.status == 202 {
            let rest = server.raw(tenants.one.secret(), "PUT", &path, &headers(16, bytes.len()), &bytes[16..]);
            assert_eq!(rest.problem().kind().name(), *kind);
        }
        let short = server.raw(tenants.one.secret(), "PUT", &path, &headers(0, 5), &bytes[..5]);
        assert_eq!(short.problem().kind(), ErrorKind::Request);
    }
    for folder in ["objects", "parts"].map(|name| folder.path().join("one").join(name)) {
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "{folder:?}");
    }
    server.stop();
}

#[test]
fn uploads_go_on_where_they_ended() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let settings = Settings::new(folder.path());
    let server = Running::start(&settings, &tenants);
    let bytes: Vec<u8> = (0..3_000_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    let (digest, total) = (Digest::of(&bytes), bytes.len());
    let path = format!("/v1/objects/{digest}");
    let put = |server: &Running, a: usize, b: usize, body: &[u8]| {
        let headers = format!("content-length: {}\r\ncontent-range: bytes {a}-{}/{total}\r\n", b - a, b - 1);
        server.raw(tenants.one.secret(), "PUT", &path, &headers, body)
    };
    let offset = |reply: &Reply| reply.header("upload-offset").map(|v| v.parse::<usize>().unwrap());
    assert_eq!(offset(&put(&server, 0, 1000, &bytes[..1000])), Some(1000));
    // A piece that starts elsewhere, and one whose connection ends within it.
    let reply = put(&server, 0, 1000, &bytes[..1000]);
    assert_eq!((reply.problem().kind(), reply.problem().offset()), (ErrorKind::Offset, Some(1000)));
    let mut stream = server.connect();
    let head = format!(
        "PUT {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-length: 1999000\r\ncontent-range: bytes 1000-1999999/{total}\r\n\r\n",
        tenants.one.secret()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&bytes[1000..1_500_000]).unwrap();
    drop(stream);
    let here = || offset(&server.ask_for(&tenants.one, "HEAD", &path, b"")).unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while here() < 1_500_000 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(here(), 1_500_000);
    // What has arrived outlives the server, and the client sends the rest alone.
    server.stop();
    let server = Running::start(&settings, &tenants);
    assert_eq!(send(&server.remote(&tenants.one), &bytes), digest);
    let lines = server.lines.lock().unwrap().join("\n");
    assert_eq!(lines.matches("method=PUT").count(), 1, "{lines}");
    assert_eq!(send(&server.remote(&tenants.one), &bytes), digest);
    let range = server.raw(tenants.one.secret(), "GET", &path, "range: bytes=10-19\r\n", b"");
    assert_eq!((range.status, &range.body[..]), (206, &bytes[10..20]));
    assert_eq!(range.header("content-range"), Some(format!("bytes 10-19/{total}").as_str()));
    let beyond = server.raw(tenants.one.secret(), "GET", &path, &format!("range: bytes={total}-\r\n"), b"");
    assert_eq!(beyond.status, 416);
    // Damaged on the way: removed, and to be sent again.
    let name = format!("/v1/objects/{}", Digest::of(b"something else"));
    assert_eq!(server.ask_for(&tenants.one, "PUT", &name, b"something elsf").problem().kind(), ErrorKind::Digest);
    assert_eq!(offset(&server.ask_for(&tenants.one, "HEAD", &name, b"")), Some(0));
    assert_eq!(server.ask_for(&tenants.one, "PUT", &name, b"something else").status, 201);
    // Without a length, with a wrong one, and chunked.
    let reply = server.raw(
        tenants.one.secret(),
        "PUT",
        &path.replace('0', "1"),
        "transfer-encoding: chunked\r\n",
        b"0\r\n\r\n",
    );
    assert_eq!(reply.problem().kind(), ErrorKind::LengthRequired);
    // A record of a job that was damaged before it was sent is refused when it is read.
    let remote = server.remote(&tenants.one);
    let (request, client, _) = exact_job(&remote);
    let ones = Matrix::<i128>::from_fn(3, 4, |_, _| 1).unwrap();
    let mut value = client.encrypt_integers("A", &ones, &|_, _| ()).unwrap().to_bytes().unwrap();
    *value.last_mut().unwrap() ^= 1;
    let damaged = send(&remote, &value);
    let Request::Compute { plan, operands, .. } = request else { unreachable!() };
    let request = compute(plan, None, Operation::Matmul, &[damaged, operands[1].object]);
    assert_eq!(refused(&remote, &request).name(), "format");
    server.stop();
}

#[test]
fn limits_are_looked_at_before_a_body() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let limits =
        Limits { object_bytes: 10_000, tenant_bytes: 15_000, tenant_uploads: 1, uploads: 2, ..Limits::default() };
    let settings = Settings { limits, ..Settings::new(folder.path()) };
    let server = Running::start(&settings, &tenants);
    let head = |digest: Digest, length: u64| {
        format!(
            "PUT /v1/objects/{digest} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {}\r\ncontent-length: {length}\r\n\r\n",
            tenants.one.secret()
        )
    };
    // No byte of the body is sent, and the answer is there.
    let answer = |digest: Digest, length: u64| {
        let mut stream = server.connect();
        stream.write_all(head(digest, length).as_bytes()).unwrap();
        let started = Instant::now();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        assert!(started.elapsed() < Duration::from_secs(2));
        String::from_utf8_lossy(&first[9..]).into_owned()
    };
    assert_eq!(answer(Digest::of(b"a"), 10_001), "413");
    assert_eq!(answer(Digest::of(b"a"), 1 << 40), "413");
    let first = vec![1; 9000];
    assert_eq!(send(&server.remote(&tenants.one), &first), Digest::of(&first));
    assert_eq!(answer(Digest::of(b"b"), 7000), "413");
    // A second upload of the tenant beside one under way: the server asks for a body once its room is taken.
    let mut slow = server.connect();
    let expecting = head(Digest::of(b"c"), 5000).replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n");
    slow.write_all(expecting.as_bytes()).unwrap();
    let mut asked = [0; 12];
    slow.read_exact(&mut asked).unwrap();
    assert_eq!(&asked[9..], b"100");
    slow.write_all(&[0; 100]).unwrap();
    assert_eq!(answer(Digest::of(b"d"), 10), "429");
    // Room that was taken is given back: by an upload that ends, and by an object that is deleted.
    drop(slow);
    let second = vec![2; 5800];
    let put =
        |bytes: &[u8]| server.ask_for(&tenants.one, "PUT", &format!("/v1/objects/{}", Digest::of(bytes)), bytes).status;
    let until = Instant::now() + Duration::from_secs(5);
    while !matches!(put(&second), 200 | 201) {
        assert!(Instant::now() < until);
    }
    assert_eq!(put(&second), 200);
    assert_eq!(put(&[3; 200]), 413);
    server.remote(&tenants.one).delete_object(Digest::of(&first)).unwrap();
    assert_eq!(put(&[3; 200]), 201);
    server.stop();
}

#[test]
fn overload_is_refused_at_once_and_no_accepted_job_is_lost() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let limits = Limits { tenant_jobs: 4, jobs: 7, ..Limits::default() };
    // Nothing runs yet: what is accepted waits.
    let mut settings = Settings { workers: 0, limits, ..Settings::new(folder.path()) };
    let server = Running::start(&settings, &tenants);
    let mut expected = Vec::new();
    for token in [&tenants.one, &tenants.two] {
        expected.push(exact_job(&server.remote(token)));
    }
    let requests: Vec<Vec<u8>> = expected.iter().map(|(r, ..)| serde_json::to_vec(r).unwrap()).collect();
    let mut accepted: Vec<(usize, String)> = Vec::new();
    let (mut many, mut busy, mut longest) = (0, 0, Duration::ZERO);
    let replies: Vec<(usize, Duration, Reply)> = std::thread::scope(|s| {
        let asked = (0..8).map(|i| {
            let (server, tenants, requests) = (&server, &tenants, &requests);
            s.spawn(move || {
                let (who, token) = if i % 2 == 0 { (0, &tenants.one) } else { (1, &tenants.two) };
                let ask = |_| {
                    let started = Instant::now();
                    let reply = server.ask_for(token, "POST", "/v1/jobs", &requests[who]);
                    (who, started.elapsed(), reply)
                };
                (0..10).map(ask).collect::<Vec<_>>()
            })
        });
        asked.collect::<Vec<_>>().into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    for (who, took, reply) in replies {
        match reply.status {
            202 => {
                let view: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
                accepted.push((who, view["id"].as_str().unwrap().to_owned()));
            }
            status => {
                longest = longest.max(took);
                assert!(reply.header("retry-after").is_some());
                match status {
                    429 => many += 1,
                    503 => busy += 1,
                    other => panic!("{other}: {reply:?}"),
                }
            }
        }
    }
    assert_eq!((accepted.len(), many + busy), (7, 73));
    assert!(many > 0 && busy > 0 && longest < Duration::from_secs(2), "{many} {busy} {longest:?}");
    server.stop();
    settings.workers = 1;
    let server = Running::start(&settings, &tenants);
    for (who, id) in accepted {
        let remote = server.remote([&tenants.one, &tenants.two][who]);
        let (digest, _) = remote.wait(&id, &|_, _| ()).unwrap();
        let mut bytes = Vec::new();
        remote.fetch(digest, &mut bytes).unwrap();
        let (_, client, product) = &expected[who];
        let c = Encrypted::from_bytes(client.plan(), &bytes).unwrap();
        assert_eq!(client.decrypt_integers(&c).unwrap(), *product);
    }
    server.stop();
}

#[test]
fn slow_connections_take_nobodys_place() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let short = Duration::from_millis(700);
    let limits = Limits { head: short, stall: short, connections: sized(80, 520), ..Limits::default() };
    let server = Running::start(&Settings { limits, ..Settings::new(folder.path()) }, &tenants);
    let mut slow: Vec<_> = (0..sized(60, 500))
        .map(|i| {
            let mut stream = server.connect();
            stream.write_all(&b"GET /healthz HTTP/1.1\r\nx: "[..5 + i % 20]).unwrap();
            stream
        })
        .collect();
    let started = Instant::now();
    let mut healthy: Vec<Duration> = (0..20)
        .map(|_| {
            let one = Instant::now();
            assert_eq!(server.raw("", "GET", "/healthz", "", b"").status, 200);
            one.elapsed()
        })
        .collect();
    healthy.sort();
    println!("healthy beside {} slow connections: longest of 20 {:?}", slow.len(), healthy[19]);
    assert!(healthy[19] < Duration::from_millis(500), "{healthy:?}");
    // Each is closed in time, whatever it goes on sending.
    for stream in &mut slow {
        let _ = stream.write_all(b"y");
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    // A body that stands still: what arrived stays for another try.
    let path = format!("/v1/objects/{}", Digest::of(b"x"));
    let reply = server.raw(tenants.one.secret(), "PUT", &path, "content-length: 1000\r\n", &[0; 100]);
    assert_eq!(reply.problem().kind(), ErrorKind::Slow);
    let here = server.ask_for(&tenants.one, "HEAD", &path, b"");
    assert_eq!((here.status, here.header("upload-offset")), (404, Some("100")));
    server.stop();
}

#[test]
fn a_stop_keeps_what_waits_and_what_runs() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let mut settings = Settings { workers: 0, ..Settings::new(folder.path()) };
    let server = Running::start(&settings, &tenants);
    let remote = server.remote(&tenants.one);
    let (request, ..) = exact_job(&remote);
    let ids: Vec<String> = (0..3).map(|_| remote.submit(&request, None).unwrap().id).collect();
    // Of two, one is cancelled, and its objects are kept while others name them.
    remote.delete_job(&ids[1]).unwrap();
    assert_eq!(remote.job(&ids[1]).unwrap().state, State::Cancelled);
    let Request::Compute { plan, .. } = &request else { unreachable!() };
    let error = remote.delete_object(*plan).unwrap_err();
    assert!(matches!(&error, RemoteError::Refused(p) if p.kind() == ErrorKind::State), "{error}");
    server.stop();
    // One ended the server twice: it is not begun again. The other had been begun once.
    let record = |id: &str| folder.path().join("one/jobs").join(format!("{id}.json"));
    for (id, attempts) in [(&ids[0], "2"), (&ids[2], "1")] {
        let text = std::fs::read_to_string(record(id)).unwrap();
        let text =
            text.replace("\"attempts\":0", &format!("\"attempts\":{attempts}")).replace("\"queued\"", "\"running\"");
        assert!(text.contains("\"running\""));
        std::fs::write(record(id), text).unwrap();
    }
    std::fs::write(record("damaged"), b"{").unwrap();
    let before = folder.path().join("one/objects/.new-1.part");
    std::fs::write(&before, b"half").unwrap();
    settings.workers = 1;
    let server = Running::start(&settings, &tenants);
    assert!(!before.exists());
    let remote = server.remote(&tenants.one);
    assert!(remote.wait(&ids[2], &|_, _| ()).is_ok());
    let error = remote.wait(&ids[0], &|_, _| ()).unwrap_err();
    assert!(error.to_string().contains("ended 2 times"), "{error}");
    // A client that waits is answered when the server stops, and nothing more is taken.
    let mut idle = server.connect();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).unwrap();
    let started = Instant::now();
    server.stop();
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

/// Descriptors of this process, and its memory in bytes.
#[cfg(target_os = "linux")]
fn held() -> (usize, u64) {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').nth(1).unwrap().parse().unwrap();
    (std::fs::read_dir("/proc/self/fd").unwrap().count(), pages * 4096)
}

/// Alone in its process it would be told apart from other tests: the bounds leave room for those.
#[cfg(target_os = "linux")]
#[test]
fn many_requests_leave_nothing_behind() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let server = Running::start(&Settings::new(folder.path()), &tenants);
    let remote = server.remote(&tenants.one);
    let (request, ..) = exact_job(&remote);
    let Request::Compute { plan, .. } = &request else { unreachable!() };
    let view = remote.submit(&request, Some("x")).unwrap();
    remote.wait(&view.id, &|_, _| ()).unwrap();
    let round = |times: usize| {
        for i in 0..times {
            match i % 4 {
                0 => assert_eq!(remote.job(&view.id).unwrap().id, view.id),
                1 => assert_eq!(remote.submit(&request, Some("x")).unwrap().id, view.id),
                2 => assert!(remote.fetch(*plan, &mut std::io::sink()).unwrap() > 0),
                _ => assert_eq!(server.raw("no", "GET", "/v1/jobs", "", b"").status, 401),
            }
        }
    };
    round(100);
    let (files, memory) = held();
    round(sized(400, 10_000));
    let until = Instant::now() + Duration::from_secs(20);
    while held().0 > files + 200 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (more_files, more_memory) = held();
    println!("{files} descriptors and {memory} bytes before, {more_files} and {more_memory} after");
    assert!(more_files <= files + 200 && more_memory < memory + (400 << 20));
    server.stop();
}
