//! Tables of vectors and models on a server: the answers of one here, for whom they are, and what is refused.

use crate::common::*;
use crate::service::{refused, send};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};
use sudare_models::forest::{self, Forest, Node};
use sudare_models::{Dense, Function, Label, Model, Network};
use sudare_ring::ErrorKind;
use sudare_rlwe::work::Work;
use sudare_search::{Answer, Client, Gap, Goal, Index, Manifest, Mode, Parcel, Payload};
use sudare_serve::{CompiledModel, Digest, Limits, Remote, RemoteError, Request, Served, ServedModel, Settings, State};
use sudare_testkit::Random;

const D: usize = 8;
const GAP: (f64, f64) = (0.75, 0.97);

/// The axis that a row lies along. Three rows lie along the first: from four on, matches may hide each other (`sudare_search`'s
/// `peel`), as the owner's secret order of rows has it.
fn axis(row: usize) -> usize {
    if row.is_multiple_of(D) && row >= 3 * D { D / 2 } else { row % D }
}

/// An owner of rows, and where they are stored.
struct Owner {
    client: Client,
    keys: Vec<u8>,
    rows: Vec<f32>,
    folder: tempfile::TempDir,
}

impl Owner {
    /// Rows along axes, see [`axis`].
    fn new(count: usize, mode: Mode) -> Self {
        let gap = Gap { low: GAP.0, high: GAP.1 };
        let payload = Some(Payload { numbers: 1, bits: 10, dtype: None });
        let goal = Goal { d: D, rows: 20_000, above: 0.9, gap, lowest: -1.0, payload };
        let log_n = if mode == Mode::Leveled { 9 } else { 11 };
        let client = Client::new(&Index::insecure_in_mode(goal, mode, log_n).unwrap()).unwrap();
        let owner = Self {
            keys: client.keys().unwrap().to_bytes().unwrap(),
            client,
            rows: (0..count * D).map(|i| f32::from(u8::from(axis(i / D) == i % D))).collect(),
            folder: tempfile::tempdir().unwrap(),
        };
        let mut storing = owner.client.store(&owner.path()).unwrap();
        storing.push(&owner.rows, &(0..count as u64).map(|row| row % 1024).collect::<Vec<_>>()).unwrap();
        storing.finish().unwrap();
        owner
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("t")
    }

    fn index(&self) -> &Index {
        self.client.index()
    }

    fn parcel(&self, segment: usize) -> Parcel {
        Parcel::new(self.index(), self.client.secret().id(), &self.path(), segment).unwrap()
    }

    /// Sends plan and keys, and the segments that the server lacks.
    fn send(&self, remote: &Remote, name: &str) -> Result<(), RemoteError> {
        let here = Manifest::load(&self.path()).unwrap();
        let there = remote.table(name)?.map(|view| serde_json::from_value::<Manifest>(view.manifest).unwrap());
        let begin = match &there {
            Some(_) => None,
            None => Some((send(remote, self.index().to_json().as_bytes()), send(remote, &self.keys))),
        };
        let first = there.map_or(0, |there| here.lacking(&there).unwrap().start);
        (first..here.segments.len()).try_for_each(|k| remote.append(name, &mut self.parcel(k), begin))
    }

    fn query(&self, axes: &[usize]) -> Vec<u8> {
        let rows: Vec<f32> =
            axes.iter().flat_map(|axis| (0..D).map(move |j| f32::from(u8::from(j == *axis)))).collect();
        self.client.query(&rows).unwrap().to_bytes().unwrap()
    }

    fn answer(&self, remote: &Remote, request: &Request) -> Answer {
        let job = remote.submit(request, None).unwrap().id;
        let (result, _) = remote.wait(&job, &|_, _| ()).unwrap();
        let view = remote.job(&job).unwrap();
        assert!(view.steps > 0 && view.done == view.steps, "{view:?}");
        let mut bytes = Vec::new();
        remote.fetch(result, &mut bytes).unwrap();
        Answer::from_bytes(self.index(), &bytes).unwrap()
    }

    fn counts(&self, remote: &Remote, name: &str, axes: &[usize]) -> Vec<Vec<u64>> {
        let query = send(remote, &self.query(axes));
        self.client.counts(&self.answer(remote, &count(name, query, &[GAP]))).unwrap()
    }
}

fn count(table: &str, query: Digest, gaps: &[(f64, f64)]) -> Request {
    Request::Count { table: table.into(), query, gaps: gaps.into() }
}

/// Bytes of all files below a folder.
fn size(path: &Path) -> u64 {
    let all = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    all.map(|path| if path.is_dir() { size(&path) } else { path.metadata().unwrap().len() }).sum()
}

#[test]
fn a_table_answers_at_a_server_as_it_does_here() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let settings = Settings::new(folder.path());
    for (name, mode) in [("leveled", Mode::Leveled), ("compact", Mode::Compact)] {
        let server = Running::start(&settings, &tenants);
        let remote = server.remote(&tenants.one);
        let owner = Owner::new(if mode == Mode::Leveled { 700 } else { 60 }, mode);
        let rows = owner.rows.len() / D;
        let alike = |along: usize| (0..rows).filter(|row| axis(*row) == along).count() as u64;
        assert_eq!(remote.table(name).unwrap(), None);
        owner.send(&remote, name).unwrap();
        assert_eq!(owner.counts(&remote, name, &[0, 7]), [[alike(0)], [alike(7)]]);
        let query = send(&remote, &owner.query(&[0]));
        // Several thresholds are a histogram.
        let histogram = owner.answer(&remote, &count(name, query, &[(0.3, 0.6), GAP]));
        assert_eq!(owner.client.counts(&histogram).unwrap(), [[alike(0), alike(0)]]);
        let hits = owner.answer(&remote, &Request::Fetch { table: name.into(), query, gap: GAP });
        let hits = owner.client.hits(&hits).unwrap().remove(0);
        assert_eq!(hits.len() as u64, alike(0));
        assert!(hits.iter().enumerate().all(|(i, hit)| (hit.row, &hit.payload[..]) == (8 * i as u64, &[8 * i as u64])));
        let scores = Request::Scores { table: name.into(), query };
        match mode {
            Mode::Leveled => {
                let scores = owner.client.scores(&owner.answer(&remote, &scores)).unwrap().remove(0);
                assert!(scores.iter().enumerate().all(|(i, s)| (s - f64::from(u8::from(axis(i) == 0))).abs() < 1e-3));
            }
            Mode::Compact => assert_eq!(refused(&remote, &scores), ErrorKind::NotPlanned),
        }
        // What is appended here is sent, and nothing else.
        let mut more = owner.client.append(&owner.path()).unwrap();
        more.push(&owner.rows[..2 * D], &[1000, 1001]).unwrap();
        more.finish().unwrap();
        for _ in 0..2 {
            owner.send(&remote, name).unwrap();
            assert_eq!(remote.table(name).unwrap().unwrap().rows, rows as u64 + 2);
        }
        assert_eq!(owner.counts(&remote, name, &[1, 2]), [[alike(1) + 1], [alike(2)]]);
        // A server that begins anew has the table.
        server.stop();
        let server = Running::start(&settings, &tenants);
        let remote = server.remote(&tenants.one);
        assert_eq!(owner.counts(&remote, name, &[0]), [[alike(0) + 1]]);
        assert_eq!(remote.tables().unwrap(), [name]);
        // Another tenant sees none of it, and has one of its own under the name.
        let two = server.remote(&tenants.two);
        assert_eq!((two.tables().unwrap(), two.table(name).unwrap()), (Vec::new(), None));
        let foreign = send(&two, &owner.query(&[0]));
        assert_eq!(refused(&two, &count(name, foreign, &[GAP])), ErrorKind::NotFound);
        assert!(matches!(two.delete_table(name), Err(RemoteError::Refused(p)) if p.kind() == ErrorKind::NotFound));
        let other = Owner::new(9, Mode::Leveled);
        other.send(&two, name).unwrap();
        assert_eq!(other.counts(&two, name, &[0]), [[2]]);
        assert_eq!(owner.counts(&remote, name, &[0]), [[alike(0) + 1]]);
        two.delete_table(name).unwrap();
        remote.delete_table(name).unwrap();
        assert_eq!(refused(&remote, &count(name, query, &[GAP])), ErrorKind::NotFound);
        assert!(!folder.path().join("one/tables").join(name).exists() && remote.tables().unwrap().is_empty());
        server.stop();
    }
}

#[test]
fn what_is_no_segment_question_or_key_of_a_table_is_refused() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let server = Running::start(&Settings::new(folder.path()), &tenants);
    let remote = server.remote(&tenants.one);
    let (owner, other) = (Owner::new(600, Mode::Leveled), Owner::new(5, Mode::Leveled));
    let sent = |owner: &Owner, segment: usize| {
        let mut bytes = Vec::new();
        owner.parcel(segment).read_to_end(&mut bytes).unwrap();
        bytes
    };
    let plan = send(&remote, owner.index().to_json().as_bytes());
    let [keys, foreign] = [&owner, &other].map(|owner| send(&remote, &owner.keys));
    let first = send(&remote, &sent(&owner, 0));
    let append = |table: &str, segment: Digest, plan: Option<Digest>, keys: Option<Digest>| Request::Append {
        table: table.into(),
        segment,
        plan,
        keys,
    };
    // Before there is a table.
    assert_eq!(refused(&remote, &append("faces", first, None, None)), ErrorKind::MissingKey);
    assert_eq!(refused(&remote, &append("faces", first, Some(plan), None)), ErrorKind::MissingKey);
    assert_eq!(refused(&remote, &append("faces", first, Some(plan), Some(foreign))), ErrorKind::Mismatch);
    assert_eq!(refused(&remote, &append("faces", first, Some(keys), Some(keys))), ErrorKind::Format);
    assert_eq!(refused(&remote, &append("faces", first, Some(plan), Some(plan))), ErrorKind::Format);
    assert_eq!(refused(&remote, &append("faces", plan, Some(plan), Some(keys))), ErrorKind::Format);
    for name in ["", "../two", "a/b", ".", &"x".repeat(65)] {
        assert_eq!(refused(&remote, &append(name, first, Some(plan), Some(keys))), ErrorKind::Request, "{name:?}");
        assert!(refused(&remote, &count(name, first, &[GAP])) == ErrorKind::Request);
    }
    let second = send(&remote, &sent(&owner, 1));
    assert_eq!(refused(&remote, &append("faces", second, Some(plan), Some(keys))), ErrorKind::Format);
    assert!(remote.tables().unwrap().is_empty() && !folder.path().join("one/tables/faces").exists());
    // With one.
    owner.send(&remote, "faces").unwrap();
    let strange = send(&remote, &sent(&other, 0));
    assert_eq!(refused(&remote, &append("faces", strange, None, None)), ErrorKind::Mismatch);
    let mut random = Random(5);
    let mut bytes = sent(&owner, 1);
    let at = random.index(bytes.len() / 2) + bytes.len() / 2;
    bytes[at] ^= 0x10;
    let (damaged, query) = (send(&remote, &bytes), send(&remote, &owner.query(&[0])));
    // A segment that is listed is not looked at again; as the next one it is.
    assert_eq!(refused(&remote, &append("copy", damaged, Some(plan), Some(keys))), ErrorKind::Format);
    for wrong in [plan, keys, send(&remote, b"a question")] {
        let kind = refused(&remote, &count("faces", wrong, &[GAP]));
        assert!(matches!(kind, ErrorKind::Format | ErrorKind::WrongType | ErrorKind::Mismatch), "{kind:?}");
    }
    assert_eq!(refused(&remote, &count("faces", send(&remote, &other.query(&[0])), &[GAP])), ErrorKind::Mismatch);
    assert_eq!(refused(&remote, &count("faces", query, &[])), ErrorKind::Parameters);
    assert_eq!(refused(&remote, &count("faces", query, &[(0.9, 0.8)])), ErrorKind::Parameters);
    assert_eq!(refused(&remote, &count("voices", query, &[GAP])), ErrorKind::NotFound);
    assert_eq!(owner.counts(&remote, "faces", &[1]), [[75]]);
    // Files that changed behind the server's back.
    let shard = folder.path().join("one/tables/faces/rows/segments/000001/rows/blocks/c/0/0/0");
    let mut file = std::fs::read(&shard).unwrap();
    file[4096] ^= 1;
    std::fs::write(&shard, file).unwrap();
    server.stop();
    // What a server had begun when it ended is no table, and takes no room.
    let begun = folder.path().join("one/tables/begun");
    std::fs::create_dir_all(begun.join("rows")).unwrap();
    let server = Running::start(&Settings::new(folder.path()), &tenants);
    assert!(!begun.exists());
    let remote = server.remote(&tenants.one);
    let view = remote.submit(&count("faces", query, &[GAP]), None).unwrap();
    let Err(RemoteError::Refused(problem)) = remote.wait(&view.id, &|_, _| ()) else { panic!("it is damaged") };
    assert_eq!(problem.kind(), ErrorKind::Format);
    assert!(!problem.detail().contains(&*folder.path().to_string_lossy()), "{problem}");
}

#[test]
fn tables_count_in_a_share_and_in_memory() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let owner = Owner::new(1100, Mode::Leveled);
    let whole = size(&owner.path()) + owner.keys.len() as u64;
    let limits = Limits { tenant_bytes: whole + owner.keys.len() as u64 / 2, memory: 1 << 30, ..Limits::default() };
    let settings = Settings { limits: limits.clone(), ..Settings::new(folder.path()) };
    let server = Running::start(&settings, &tenants);
    let remote = server.remote(&tenants.one);
    // A segment at a time is sent, and keys are there twice: as an object, and with the table.
    let refusal = owner.send(&remote, "faces");
    assert!(matches!(&refusal, Err(RemoteError::Refused(p)) if p.kind() == ErrorKind::Quota), "{refusal:?}");
    server.stop();
    let limits = Limits { tenant_bytes: 4 * whole, ..limits };
    let settings = Settings { limits: limits.clone(), ..Settings::new(folder.path()) };
    let server = Running::start(&settings, &tenants);
    let remote = server.remote(&tenants.one);
    owner.send(&remote, "faces").unwrap();
    assert_eq!(owner.counts(&remote, "faces", &[1]), [[138]]);
    let gauge = |name: &str| {
        let stream = std::net::TcpStream::connect(server.monitoring).unwrap();
        std::io::Write::write_all(&mut (&stream), b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .unwrap();
        let text = String::from_utf8(Reply::read(stream).body).unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name} in {text}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let (bytes, table) = (gauge("sudare_stored_bytes"), size(&folder.path().join("one/tables")) as f64);
    assert!(bytes > table && table > whole as f64, "{bytes}, {table}");
    assert!(gauge("sudare_session_bytes") > 0.0, "the table stays open");
    remote.delete_table("faces").unwrap();
    assert!((gauge("sudare_stored_bytes") - (bytes - table)).abs() < 4096.0);
    assert!(gauge("sudare_session_bytes") == 0.0);
    server.stop();
    // A server of less memory than a question takes says so before it takes anything.
    let limits = Limits { memory: 1 << 20, ..limits };
    let server = Running::start(&Settings { limits, ..Settings::new(folder.path()) }, &tenants);
    let refusal = owner.send(&server.remote(&tenants.one), "faces");
    assert!(matches!(&refusal, Err(RemoteError::Refused(p)) if p.detail().contains("bytes of memory")), "{refusal:?}");
}

#[test]
fn questions_are_cancelled_and_a_table_in_use_stays() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let settings = Settings { threads: 1, ..Settings::new(folder.path()) };
    let server = Running::start(&settings, &tenants);
    let remote = server.remote(&tenants.one);
    let owner = Owner::new(1100, Mode::Leveled);
    owner.send(&remote, "faces").unwrap();
    let long = count("faces", send(&remote, &owner.query(&[0; 64])), &[GAP]);
    let id = remote.submit(&long, None).unwrap().id;
    let until = Instant::now() + Duration::from_secs(60);
    while remote.job(&id).unwrap().state != State::Running {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
    let refusal = remote.delete_table("faces");
    assert!(matches!(&refusal, Err(RemoteError::Refused(p)) if p.kind() == ErrorKind::State), "{refusal:?}");
    remote.delete_job(&id).unwrap();
    let ended = remote.wait(&id, &|_, _| ()).unwrap_err().to_string();
    assert!(ended.contains("cancelled"), "{ended}");
    assert_eq!(owner.counts(&remote, "faces", &[1]), [[138]]);
    server.stop();
    let limits = Limits { job: Duration::from_millis(1), ..Limits::default() };
    let server = Running::start(&Settings { limits, ..settings }, &tenants);
    assert_eq!(refused(&server.remote(&tenants.one), &long), ErrorKind::TimeLimit);
}

#[test]
fn a_model_answers_at_a_server_as_it_does_here() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let mut random = Random(17);
    let mut numbers = |count: usize| (0..count).map(|_| random.unit()).collect::<Vec<f64>>();
    let layers = vec![
        Dense { name: "one".into(), weights: numbers(20), bias: numbers(4), function: Function::Power(2) },
        Dense { name: "two".into(), weights: numbers(12), bias: numbers(3), function: Function::Identity },
    ];
    let (network, examples) = (Network::dense(5, layers).unwrap(), numbers(50));
    let goal = sudare_models::Goal { label: Label::Argmax, insecure: Some(9), ..Default::default() };
    let prices = |work: &Work, log_n: u32| {
        (work.ntt + work.pass + work.term + work.mac + work.mac_narrow) * f64::from(log_n) * 1e-9
    };
    let compiled = |goal| Model::compile(&network, &examples, &goal, &prices).unwrap();
    let (model, other) = (compiled(goal), compiled(sudare_models::Goal { margin: 2.0, ..goal }));
    let trees = vec![vec![
        Node::Split { feature: 2, threshold: 0.1, left: 1, right: 2 },
        Node::Leaf(vec![0.0, 1.0]),
        Node::Leaf(vec![1.0, 0.0]),
    ]];
    let trees = Forest::new(5, true, vec![0.0; 2], trees).unwrap();
    let trees = forest::Model::compile(&trees, &examples, &goal, &prices).unwrap();
    let models = vec![
        ServedModel { name: "net".into(), model: CompiledModel::from_bytes(&model.to_bytes().unwrap()).unwrap() },
        ServedModel { name: "other".into(), model: CompiledModel::Network(other) },
        ServedModel { name: "trees".into(), model: CompiledModel::from_bytes(&trees.to_bytes().unwrap()).unwrap() },
    ];
    let server =
        Running::offering(&Settings::new(folder.path()), &tenants, Served { models, ..Served::default() }, None);
    let remote = server.remote(&tenants.one);
    let plan =
        sudare_models::Plan::from_json(std::str::from_utf8(&remote.model_plan("net").unwrap()).unwrap()).unwrap();
    assert_eq!(plan.hash(), model.plan().hash());
    let client = sudare_models::Client::new(&plan).unwrap();
    let keys = send(&remote, &client.eval_keys().unwrap().to_bytes().unwrap());
    let inputs = send(&remote, &client.encrypt(&examples[..15]).unwrap().to_bytes().unwrap());
    let infer = |model: &str, keys: Digest, inputs: Digest| Request::Infer { model: model.into(), keys, inputs };
    let answer = |model: &str, keys: Digest, inputs: Digest| {
        let job = remote.submit(&infer(model, keys, inputs), None).unwrap();
        let (result, _) = remote.wait(&job.id, &|_, _| ()).unwrap();
        let mut bytes = Vec::new();
        remote.fetch(result, &mut bytes).unwrap();
        bytes
    };
    for _ in 0..2 {
        let bytes = answer("net", keys, inputs);
        let found = client.decrypt(&sudare_models::Answer::from_bytes(&plan, &bytes).unwrap()).unwrap();
        let exact: Vec<f64> = examples[..15].chunks(5).flat_map(|x| model.polynomial(x).unwrap()).collect();
        assert!(found.len() == 9 && found.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 1e-2), "{found:?} {exact:?}");
    }
    // A forest, by the same lines.
    let text = remote.model_plan("trees").unwrap();
    let of_trees = forest::Client::new(&forest::Plan::from_json(std::str::from_utf8(&text).unwrap()).unwrap()).unwrap();
    let for_trees = send(&remote, &of_trees.eval_keys().unwrap().to_bytes().unwrap());
    let rows = send(&remote, &of_trees.encrypt(&examples[..15]).unwrap().to_bytes().unwrap());
    let bytes = answer("trees", for_trees, rows);
    let scores = of_trees.decrypt(&sudare_models::Answer::from_bytes(of_trees.plan(), &bytes).unwrap()).unwrap();
    let labels: Vec<_> = examples[..15].chunks(5).map(|x| Some(usize::from(x[2] <= f64::from(0.1f32)))).collect();
    assert_eq!(of_trees.plan().labels(&scores), labels);
    assert_eq!(refused(&remote, &infer("trees", keys, rows)), ErrorKind::Mismatch);
    assert_eq!(refused(&remote, &infer("trees", for_trees, inputs)), ErrorKind::Mismatch);
    let stranger = sudare_models::Client::new(&plan).unwrap();
    let foreign = send(&remote, &stranger.eval_keys().unwrap().to_bytes().unwrap());
    assert_eq!(refused(&remote, &infer("net", foreign, inputs)), ErrorKind::Mismatch);
    assert_eq!(refused(&remote, &infer("other", keys, inputs)), ErrorKind::Mismatch);
    assert_eq!(refused(&remote, &infer("none", keys, inputs)), ErrorKind::NotFound);
    assert_eq!(refused(&remote, &infer("net", inputs, inputs)), ErrorKind::WrongType);
    assert_eq!(refused(&remote, &infer("net", keys, send(&remote, b"no inputs"))), ErrorKind::Format);
    assert!(matches!(remote.model_plan("none"), Err(RemoteError::Refused(p)) if p.kind() == ErrorKind::NotFound));
    let told = serde_json::Value::Object(remote.config().unwrap());
    assert_eq!((&told["models"][0]["name"], told["models"].as_array().unwrap().len()), (&"net".into(), 3));
}
