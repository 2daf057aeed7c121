//! `sudare index`: encrypted search, each step a process of its own.

use super::client::warn_if_others_read;
use super::{bytes, index_args as args, print, remote, say};
use crate::args::{Args, Csv};
use crate::error::{CliError, InFile};
use crate::files::{self, Access, Output};
use crate::matrices;
use crate::progress::Bar;
use std::io::Write;
use std::path::Path;
use sudare_ring::{ErrorKind, Threads};
use sudare_rlwe::wire::{secret_key_from_bytes, secret_key_to_bytes};
use sudare_search::plain::{PlainAnswer, PlainClient, PlainIndex, PlainQuery, PlainTable};
use sudare_search::{
    Answer, Asked, Client, Gap, Goal, Index, Keys, Manifest, Parcel, Payload, Query, SearchError, Server,
};
use sudare_serve::Request;
use sudare_session::machine;

/// Most bytes of the files that are read whole.
const MAX_PLAN: u64 = 1 << 20;
const MAX_SECRET: u64 = 16 << 20;
const MAX_MESSAGE: u64 = 16 << 30;

pub fn run(all: &Args, command: &args::Index) -> Result<(), CliError> {
    let threads = Threads::new(all.threads);
    threads.run(|| match command {
        args::Index::Plan(a) => plan(all, a),
        args::Index::Keygen(a) => keygen(all, a),
        args::Index::Store(a) => store(all, a, false),
        args::Index::Append(a) => store(all, a, true),
        args::Index::Discard(a) => discard(all, a),
        args::Index::Query(a) => query(all, a),
        args::Index::Count(a) => ask(all, a, Asked::Count),
        args::Index::Fetch(a) => ask(all, a, Asked::Fetch),
        args::Index::Scores(a) => ask(all, a, Asked::Scores),
        args::Index::Send(a) => send(all, a),
        args::Index::Answer(a) => answer(a),
        args::Index::Plain(a) => plain(all, a),
    })
}

fn write(all: &Args, path: &Path, data: &[u8], note: &str) -> Result<(), CliError> {
    let mut out = Output::create(path, Access::Usual)?;
    out.write_all(data).in_file(path)?;
    let whole = out.finish()?;
    say(all, format!("{}  {}  {note}", path.display(), bytes(whole.size())))?;
    whole.put(all.existing())
}

fn load(path: &Path) -> Result<Index, CliError> {
    let text = files::read(path, MAX_PLAN)?;
    Index::from_json(&String::from_utf8_lossy(&text)).in_file(path)
}

fn client(index: &Index, path: &Path) -> Result<Client, CliError> {
    warn_if_others_read(path)?;
    let secret = secret_key_from_bytes(index.params(), &files::read_secret(path, MAX_SECRET)?).in_file(path)?;
    Client::with_secret(index, secret).in_file(path)
}

fn plan(all: &Args, a: &args::Plan) -> Result<(), CliError> {
    let payload = a.payload.map(|(numbers, bits)| Payload { numbers, bits, dtype: None });
    let gap = match a.gap {
        Some((low, high)) => Gap { low, high },
        None => Goal::above(a.d, a.rows, a.above)?.gap,
    };
    let goal = Goal { d: a.d, rows: a.rows, above: a.above, gap, lowest: -1.0, payload };
    let index = Index::in_mode(goal, a.mode)?;
    let cost = machine::stored(files::cache_folder().as_deref());
    say(all, index.explain(&|work, log_n| cost.price(work, log_n, 1)))?;
    write(all, &a.output, index.to_json().as_bytes(), "for both sides")
}

fn keygen(all: &Args, a: &args::Keygen) -> Result<(), CliError> {
    let index = load(&a.plan)?;
    std::fs::create_dir_all(&a.output).in_file(&a.output)?;
    let [secret_path, eval_path] = args::KEY_FILES.map(|name| a.output.join(name));
    let client = Client::new(&index)?;
    let mut secret = Output::create(&secret_path, Access::Key)?;
    secret.write_secret(&secret_key_to_bytes(client.secret())?)?;
    let mut eval = Output::create(&eval_path, Access::Usual)?;
    client.keys()?.write_to(&mut eval).in_file(&eval_path)?;
    let wholes = [secret.finish()?, eval.finish()?];
    let notes = ["keep it to yourself: it decrypts everything", "for the server: computes, and reads nothing"];
    let lines: Vec<String> = wholes
        .iter()
        .zip(notes)
        .map(|(whole, note)| format!("{}  {}  {note}", whole.path().display(), bytes(whole.size())))
        .collect();
    say(all, lines.join("\n"))?;
    files::place(wholes.into(), all.existing())
}

/// Rows of so many numbers; a single row may have one axis.
fn rows(path: &Path, d: usize, csv: &Csv) -> Result<Vec<f32>, CliError> {
    let (array, _) = matrices::array::<f64>(path, csv)?;
    if array.shape.last() != Some(&d) || array.shape.len() > 2 {
        let message = format!(
            "the index takes vectors of {d} coordinates, one a row, and this file has the shape {:?}",
            array.shape
        );
        return Err(CliError::new(ErrorKind::Shape, message).in_file(path));
    }
    Ok(array.data.into_iter().map(|x| x as f32).collect())
}

fn store(all: &Args, a: &args::Store, append: bool) -> Result<(), CliError> {
    let index = load(&a.plan)?;
    let client = client(&index, &a.keys)?;
    let vectors = rows(&a.vectors, index.goal().d, &a.csv)?;
    let payload = match &a.payload {
        None => Vec::new(),
        Some(path) => {
            let (array, _) = matrices::array::<i128>(path, &a.csv)?;
            let planned = index.goal().payload.ok_or(SearchError::NoPayload)?;
            let words = array.data.into_iter().map(|x| planned.bits_of(x)).collect::<Option<Vec<u64>>>();
            words.ok_or_else(|| typed(&planned, "takes").in_file(path))?
        }
    };
    let (d, each) = (index.goal().d, index.goal().payload.map_or(0, |p| p.numbers));
    let count = vectors.len() / d;
    if payload.len() != count * each {
        let message = format!("there are {} payload numbers, and {count} vectors take {each} each", payload.len());
        return Err(CliError::new(ErrorKind::Shape, message));
    }
    let mut storing = if append { client.append(&a.output) } else { client.store(&a.output) }.in_file(&a.output)?;
    let bar = Bar::steps("encrypting", all.quiet);
    for first in (0..count).step_by(index.segment_rows()) {
        let last = count.min(first + index.segment_rows());
        storing.push(&vectors[first * d..last * d], &payload[first * each..last * each]).in_file(&a.vectors)?;
        bar.set(last, count);
    }
    let stored = storing.finish().in_file(&a.output)?;
    drop(bar);
    say(all, format!("{}  {stored} rows", a.output.display()))
}

fn discard(all: &Args, a: &args::Discard) -> Result<(), CliError> {
    let index = load(&a.plan)?;
    let removed = client(&index, &a.keys)?.discard(&a.table).in_file(&a.table)?;
    say(all, format!("{}  {removed} segments removed", a.table.display()))
}

fn query(all: &Args, a: &args::Query) -> Result<(), CliError> {
    let index = load(&a.plan)?;
    let client = client(&index, &a.keys)?;
    let query = client.query(&rows(&a.vectors, index.goal().d, &a.csv)?).in_file(&a.vectors)?;
    write(all, &a.output, &query.to_bytes()?, &format!("{} questions", query.len()))
}

fn ask(all: &Args, a: &args::Ask, asked: Asked) -> Result<(), CliError> {
    let index = load(&a.plan)?;
    let goal = index.goal();
    let gaps: Vec<Gap> = match a.above.is_empty() {
        true => vec![goal.gap],
        false => a.above.iter().map(|above| goal.gap.moved(goal.above, *above)).collect(),
    };
    if asked == Asked::Fetch && gaps.len() > 1 {
        return Err(CliError::new(ErrorKind::Usage, "a fetch takes one threshold; count takes several"));
    }
    let query = Query::from_bytes(&index, &files::read(&a.query, MAX_MESSAGE)?).in_file(&a.query)?;
    let answer = match a.remote.connect()? {
        Some(remote) => {
            let (table, query) = (a.table.display().to_string(), remote::send(&remote, &a.query)?);
            let both = |gap: &Gap| (gap.low, gap.high);
            let request = match asked {
                Asked::Count => Request::Count { table, query, gaps: gaps.iter().map(both).collect() },
                Asked::Fetch => Request::Fetch { table, query, gap: both(&gaps[0]) },
                Asked::Scores => Request::Scores { table, query },
            };
            let mut bytes = Vec::new();
            let job = remote::result(all, &remote, &request, &mut bytes)?;
            let answer = Answer::from_bytes(&index, &bytes)?;
            remote::forget(&remote, job);
            answer
        }
        None => {
            let Some(keys) = &a.keys else {
                return Err(CliError::new(
                    ErrorKind::Usage,
                    "--keys is missing; give the evaluation keys, or a server with --server",
                ));
            };
            let server = Keys::read_from(&index, files::open(keys)?).and_then(|keys| Server::new(&index, keys));
            let server = server.in_file(keys)?;
            if !(a.memory > 0.0 && a.memory < 1e9) {
                return Err(CliError::new(ErrorKind::Usage, "--memory has to be a number of GB above zero"));
            }
            let table = server.open(&a.table, (a.memory * 1e9) as u64).in_file(&a.table)?;
            let bar = Bar::steps("segments", all.quiet);
            let progress = |done, every| bar.set(done, every);
            let answer = match asked {
                Asked::Count => server.count(&table, &query, &gaps, &progress),
                Asked::Fetch => server.fetch(&table, &query, gaps[0], &progress),
                Asked::Scores => server.scores(&table, &query, &progress),
            };
            answer.in_file(&a.table)?
        }
    };
    write(all, &a.output, &answer.to_bytes()?, &format!("the answer to a {}", asked.name()))
}

fn send(all: &Args, a: &args::Send) -> Result<(), CliError> {
    let Some(remote) = a.remote.connect()? else {
        return Err(CliError::new(ErrorKind::Usage, "the server is missing; give --server URL --token-file FILE"));
    };
    let index = load(&a.plan)?;
    let key = Keys::read_from(&index, files::open(&a.keys)?).in_file(&a.keys)?.id();
    let here = Manifest::load(&a.table).in_file(&a.table)?;
    let (first, begin) = match remote.table(&a.name)? {
        Some(view) => {
            let nonsense = |e: serde_json::Error| {
                CliError::new(ErrorKind::Format, format!("the server's list of segments cannot be read: {e}"))
            };
            let listed: Manifest = serde_json::from_value(view.manifest).map_err(nonsense)?;
            (here.lacking(&listed).in_file(&a.table)?.start, None)
        }
        None => (0, Some((remote::send(&remote, &a.plan)?, remote::send(&remote, &a.keys)?))),
    };
    let bar = Bar::steps("segments", all.quiet);
    for segment in first..here.segments.len() {
        let mut parcel = Parcel::new(&index, key, &a.table, segment).in_file(&a.table)?;
        remote.append(&a.name, &mut parcel, begin)?;
        bar.set(segment + 1, here.segments.len());
    }
    drop(bar);
    say(all, format!("{}  {} rows at {}", a.name, here.rows(), remote.address()))
}

fn plain(all: &Args, command: &args::Plain) -> Result<(), CliError> {
    let client = |index: &PlainIndex, path: &Path| {
        warn_if_others_read(path)?;
        let secret = secret_key_from_bytes(index.params(), &files::read_secret(path, MAX_SECRET)?).in_file(path)?;
        PlainClient::with_secret(index, secret).in_file(path)
    };
    match command {
        args::Plain::Keygen(a) => {
            let client = PlainClient::new(&PlainIndex::new(a.d)?)?;
            let mut out = Output::create(&a.output, Access::Key)?;
            out.write_secret(&secret_key_to_bytes(client.secret())?)?;
            let whole = out.finish()?;
            say(all, format!("{}  {}  keep it to yourself", whole.path().display(), bytes(whole.size())))?;
            whole.put(all.existing())
        }
        args::Plain::Query(a) => {
            let index = PlainIndex::new(a.d)?;
            let query = client(&index, &a.keys)?.query(&rows(&a.vectors, a.d, &a.csv)?).in_file(&a.vectors)?;
            write(all, &a.output, &query.to_bytes()?, "the question")
        }
        args::Plain::Scores(a) => {
            let index = PlainIndex::new(a.d)?;
            let query = PlainQuery::from_bytes(&index, &files::read(&a.query, MAX_MESSAGE)?).in_file(&a.query)?;
            let table = PlainTable::new(&index, &rows(&a.rows, a.d, &a.csv)?).in_file(&a.rows)?;
            let answer = table.scores(&query).in_file(&a.query)?;
            write(all, &a.output, &answer.to_bytes()?, &format!("scores of {} rows", table.rows()))
        }
        args::Plain::Answer(a) => {
            let index = PlainIndex::new(a.d)?;
            let answer = PlainAnswer::from_bytes(&index, &files::read(&a.answer, MAX_MESSAGE)?).in_file(&a.answer)?;
            let scores = client(&index, &a.keys)?.scores(&answer).in_file(&a.answer)?;
            print(scores.iter().map(joined).collect::<Vec<_>>().join("\n"))
        }
    }
}

/// The refusal of payloads that are no integers of the planned bits.
fn typed(planned: &Payload, does: &str) -> CliError {
    let Payload { bits, .. } = planned;
    let message = format!(
        "payloads of this plan are {}, and the command {does} integers of its {bits} bits; floats are stored and read in Python",
        planned.dtype()
    );
    CliError::new(ErrorKind::Input, message)
}

fn joined<T: ToString>(numbers: impl IntoIterator<Item = T>) -> String {
    numbers.into_iter().map(|x| x.to_string()).collect::<Vec<_>>().join(",")
}

fn answer(a: &args::Answer) -> Result<(), CliError> {
    let index = load(&a.plan)?;
    let client = client(&index, &a.keys)?;
    let answer = Answer::from_bytes(&index, &files::read(&a.answer, MAX_MESSAGE)?).in_file(&a.answer)?;
    let lines: Vec<String> = match answer.asked() {
        Asked::Count => client.counts(&answer).in_file(&a.answer)?.iter().map(joined).collect(),
        Asked::Scores => client.scores(&answer).in_file(&a.answer)?.iter().map(joined).collect(),
        Asked::Fetch => {
            let planned = index.goal().payload.ok_or(SearchError::NoPayload)?;
            let hits = client.hits(&answer).in_file(&a.answer)?;
            let several = hits.len() > 1;
            let line = |q: usize, hit: &sudare_search::Hit| {
                let first = if several { vec![q as u64, hit.row] } else { vec![hit.row] };
                let numbers = hit.payload.iter().map(|bits| planned.integer_of(*bits));
                let all = first.into_iter().map(|x| Some(x.into())).chain(numbers).collect::<Option<Vec<i128>>>();
                all.map(joined).ok_or_else(|| typed(&planned, "prints"))
            };
            let each = hits.iter().enumerate().flat_map(|(q, hits)| hits.iter().map(move |hit| line(q, hit)));
            each.collect::<Result<_, _>>()?
        }
    };
    if lines.is_empty() { Ok(()) } else { print(lines.join("\n")) }
}
