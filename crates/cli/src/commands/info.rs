//! `sudare info`: what a file is, without any key.

use super::{bytes, print};
use crate::args;
use crate::error::{CliError, InFile};
use crate::matrices::{self, Format};
use crate::{files, gzip};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use sudare_expr::Expr;
use sudare_plan::Plan;
use sudare_ring::{ErrorKind, Kinded};
use sudare_rlwe::KeyId;
use sudare_rlwe::wire::{Header, MAGIC, ObjectType, peek};
use sudare_session::Announced;

/// Most bytes that are read from standard input.
const MAX_STREAM: u64 = 4 << 30;
/// Most bytes of a plan or an expression.
const MAX_TEXT: u64 = super::MAX_PLAN_TEXT;

/// Something that is in a file.
struct Found {
    bytes: u64,
    what: String,
    /// Names and what they say; of a plan, its figures.
    fields: Vec<(&'static str, Value)>,
    /// What a plan says of itself to people.
    plan: String,
}

impl Found {
    fn new(bytes: u64, what: impl Into<String>) -> Self {
        Self { bytes, what: what.into(), fields: Vec::new(), plan: String::new() }
    }

    fn add(&mut self, name: &'static str, value: impl Into<Value>) {
        self.fields.push((name, value.into()));
    }

    fn text(&self) -> String {
        let mut out = format!("{}  {}", bytes(self.bytes), self.what);
        if !self.plan.is_empty() {
            return format!("{out}\n{}", self.plan);
        }
        for (name, value) in &self.fields {
            let few = |all: &Vec<Value>| {
                let names: Vec<&str> = all.iter().take(5).filter_map(Value::as_str).collect();
                format!("{}{}", names.join(", "), if all.len() > 5 { ", …" } else { "" })
            };
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Array(all) => few(all),
                other => other.to_string(),
            };
            out.push_str(&format!("\n  {name:<12}{text}"));
        }
        out
    }

    fn json(self) -> Value {
        let mut map = Map::new();
        map.insert("bytes".into(), self.bytes.into());
        map.insert("what".into(), self.what.into());
        map.extend(self.fields.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Value::Object(map)
    }
}

pub fn info(a: &args::Info) -> Result<(), CliError> {
    let path = &a.file;
    let found = if files::is_standard(path) {
        let whole = files::read(path, MAX_STREAM)?;
        described(&mut Cursor::new(&whole), whole.len() as u64, a)
    } else {
        let mut file: File = files::open_unbuffered(path)?;
        let length = file.metadata().in_file(path)?.len();
        described(&mut file, length, a)
    }
    .in_file(path)?;
    if a.json {
        return print(Value::from_iter(found.into_iter().map(Found::json)));
    }
    let shown: Vec<String> = found.iter().map(Found::text).collect();
    print(format!("{}  {}", path.display(), shown.join("\n")))
}

fn described(file: &mut (impl Read + Seek), length: u64, a: &args::Info) -> Result<Vec<Found>, CliError> {
    let mut start = Vec::new();
    file.by_ref().take(64).read_to_end(&mut start)?;
    file.rewind()?;
    if start.starts_with(&MAGIC) {
        return containers(file, length, &a.file);
    }
    if start.starts_with(b"PK") {
        return Ok(vec![Found::new(length, "statistics or arrays that Python saved; not encrypted")]);
    }
    let mut whole = Vec::new();
    if start.trim_ascii_start().starts_with(b"{") {
        file.take(MAX_TEXT).read_to_end(&mut whole)?;
        return Ok(vec![text(&whole, length)?]);
    }
    file.take(matrices::MAX_BYTES).read_to_end(&mut whole)?;
    let size = whole.len() as u64;
    Ok(vec![matrix(&gzip::unpacked(whole, matrices::MAX_BYTES)?, size, a)?])
}

/// Objects one after another: each with what its header says.
fn containers(file: &mut (impl Read + Seek), length: u64, path: &Path) -> Result<Vec<Found>, CliError> {
    let (mut out, mut at, mut first) = (Vec::new(), 0, None);
    while at < length {
        file.seek(SeekFrom::Start(at))?;
        let header = peek(&mut *file)?;
        let end = at.saturating_add(header.total_bytes());
        if end > length {
            let message = format!(
                "{} ends after {} of its {} bytes; copy it again",
                header.object(),
                length - at,
                header.total_bytes()
            );
            return Err(CliError::new(ErrorKind::Format, message));
        }
        // The parts of an exact value differ in their parameters alone.
        let announced = Announced::of(&header);
        if first.is_none() || announced.is_none() {
            out.push(container(&header, announced.as_ref()));
        }
        first = first.or(announced);
        at = end;
    }
    if has_secret(&out) && !files::is_standard(path) {
        super::client::warn_if_others_read(path)?;
    }
    Ok(out)
}

fn has_secret(all: &[Found]) -> bool {
    let secret = |(_, value): &(&str, Value)| value.as_str().is_some_and(|text| text.contains("secret"));
    all.iter().any(|found| found.what.contains("secret") || found.fields.iter().any(secret))
}

fn container(header: &Header, announced: Option<&Announced>) -> Found {
    let mut out = Found::new(header.total_bytes(), header.object().to_string());
    let mut line = |name: &'static str, text: String| out.add(name, text);
    if let Some(found) = announced {
        let (rows, cols) = found.shape;
        let batch = if found.batch == 1 { String::new() } else { format!("{}×", found.batch) };
        line("value", format!("{batch}{rows}×{cols}, node {} of the plan's expression", found.node));
        line("plan", found.plan.to_string());
    }
    if header.key() != KeyId::NONE {
        line("key", header.key().to_string());
    }
    line("parameters", header.params().to_string());
    let note = match header.object() {
        ObjectType::SecretKey | ObjectType::TfheClientKey | ObjectType::GenomeClientKey => {
            "secret: keep it to yourself: it decrypts everything"
        }
        ObjectType::GenomePending => "secret: keep it to yourself: it reads the answer",
        ObjectType::PublicKey => "public: encrypts, and reads nothing",
        ObjectType::EvalKeys | ObjectType::TfheServerKey | ObjectType::GenomeKeys => {
            "for the server: computes, and reads nothing"
        }
        ObjectType::GenomePanel | ObjectType::GenomeSites => "more by `sudare genome panel info`",
        _ => "",
    };
    if !note.is_empty() {
        line("use", note.into());
    }
    out
}

fn text(whole: &[u8], length: u64) -> Result<Found, CliError> {
    let text = std::str::from_utf8(whole).map_err(|_| {
        CliError::new(ErrorKind::Format, "this is neither a plan nor an expression, for it is not text; copy it again")
    })?;
    match (Plan::from_json(text), Expr::from_json(text)) {
        (Ok(plan), _) => {
            let mut found = Found::new(length, format!("a plan, {}", plan.hash()));
            found.plan = plan.to_string();
            found.add("figures", super::plan::json(&plan)?);
            Ok(found)
        }
        (_, Ok(expr)) => Ok(Found::new(length, format!("an expression for `sudare plan`: {expr}"))),
        (Err(error), _) => Err(CliError::new(error.kind(), format!("this is not a plan: {error}"))),
    }
}

/// Numbers, and what a plan would want to know of them.
fn matrix(whole: &[u8], size: u64, a: &args::Info) -> Result<Found, CliError> {
    let format = matrices::sniffed(whole);
    let (array, names) = matrices::parse::<f64>(whole, format, &a.csv).map_err(|error| {
        CliError::new(ErrorKind::Format, format!("this is none of sudare's files, and not a table either: {error}"))
    })?;
    let kind = if format == Format::Npy { ".npy" } else { ".csv" };
    let finite = array.data.iter().filter(|x| x.is_finite());
    let largest = finite.clone().fold(0.0, |m: f64, x| m.max(x.abs()));
    let missing = array.data.len() - finite.clone().count();
    let whole_numbers = array.data.iter().all(|x| x.fract() == 0.0);
    let mut out = Found::new(size, format!("a matrix, {kind}, not encrypted"));
    if a.json {
        out.add("shape", array.shape.clone());
        out.add("integers", whole_numbers);
        out.add("largest", largest);
        out.add("missing", missing);
    } else {
        let shape: Vec<String> = array.shape.iter().map(usize::to_string).collect();
        out.add("shape", format!("{}{}", shape.join("×"), if whole_numbers { ", integers" } else { "" }));
        out.add("largest", format!("{largest}   (a bound for --max-abs that the data chose)"));
        if missing > 0 {
            out.add("missing", format!("{missing} numbers are not finite; replace or drop them"));
        }
    }
    for (what, list) in [("columns", names.columns), ("rows", names.rows)] {
        if let Some(list) = list {
            out.add(what, list);
        }
    }
    Ok(out)
}
