//! `sudare info`: what a file is, without any key.

use super::model::{self, Compiled, ModelPlan};
use super::stored::is_store;
use super::{bytes, print};
use crate::args;
use crate::error::{CliError, InFile};
use crate::matrices::{self, Format};
use crate::{files, gzip};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use sudare_expr::Expr;
use sudare_models::{Shared, either};
use sudare_plan::{CostModel, Plan};
use sudare_ring::{ErrorKind, Kinded};
use sudare_rlwe::KeyId;
use sudare_rlwe::wire::{Header, MAGIC, ObjectType, peek};
use sudare_search::{Index, Manifest};
use sudare_serve::{Tokens, folder_bytes};
use sudare_session::{Announced, Stored, application, machine};
use sudare_store::layout::hex;

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

    /// A plan, or what has one.
    fn planned(length: u64, what: String, plan: String, figures: Value) -> Self {
        Self { plan, fields: vec![("figures", figures)], ..Self::new(length, what) }
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
    } else if path.is_dir() {
        folder(path)
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

/// A folder of blocks: a matrix, or vectors of an index.
fn folder(path: &Path) -> Result<Vec<Found>, CliError> {
    if path.join("table.json").is_file() {
        let table = Manifest::load(path)?;
        let mut found = Found::new(folder_bytes(path), "a table of an index, encrypted");
        found.add("rows", table.rows());
        found.add("table", table.index);
        return Ok(vec![found]);
    }
    if is_store(path) {
        let stored = Stored::open(path)?;
        let mut found = Found::new(stored.bytes(), "a stored matrix, encrypted");
        found.add("value", stored.to_string());
        found.add("plan", stored.plan().hash().to_string());
        return Ok(vec![found]);
    }
    Err(CliError::new(ErrorKind::Io, "is a folder, and neither a stored matrix nor a table of an index; name a file"))
}

fn described(file: &mut (impl Read + Seek), length: u64, a: &args::Info) -> Result<Vec<Found>, CliError> {
    let mut start = Vec::new();
    file.by_ref().take(64).read_to_end(&mut start)?;
    file.rewind()?;
    if start.starts_with(&MAGIC) {
        return containers(file, length, &a.file);
    }
    if start.starts_with(b"PK") {
        return Ok(vec![Found::new(
            length,
            "a .zip or .npz archive, not encrypted; a matrix is taken as .npy or .csv",
        )]);
    }
    if start.starts_with(b"sudare_") {
        return Ok(vec![Found::new(length, "a token for a server, secret: whoever has it asks as its tenant")]);
    }
    let mut whole = Vec::new();
    if Compiled::is_one(&start) {
        file.take(model::MAX_MODEL).read_to_end(&mut whole)?;
        let plan = Compiled::from_bytes(&whole)?.plan();
        return Ok(vec![of_model(length, "a compiled model, plan and weights for the server; not encrypted", &plan)?]);
    }
    if start.trim_ascii_start().starts_with(b"{") {
        file.take(MAX_TEXT).read_to_end(&mut whole)?;
        return Ok(vec![text(&whole, length)?]);
    }
    file.take(matrices::MAX_BYTES).read_to_end(&mut whole)?;
    let size = whole.len() as u64;
    if let Some(tokens) = std::str::from_utf8(&whole).ok().and_then(|text| Tokens::read(text).ok())
        && !tokens.entries().is_empty()
    {
        let mut found = Found::new(size, "tokens of tenants of `sudare serve`, as hashes");
        found.add("tokens", tokens.entries().len());
        found.add("use", "more by `sudare token list`");
        return Ok(vec![found]);
    }
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
    if let Some((value, plan)) = announced.is_none().then(|| message(header)).flatten() {
        line("value", value);
        line("plan", plan);
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

/// What the header of a message to or from a model or an index says: what it has, and of which plan it is.
fn message(header: &Header) -> Option<(String, String)> {
    let says: Value = serde_json::from_slice(application(header)?).ok()?;
    let value = match (&says["answer"], says["examples"].as_u64()) {
        (Value::Bool(answer), Some(examples)) => {
            format!("{} of a model: {examples}", if *answer { "answers" } else { "examples" })
        }
        (Value::Null, None) => "questions to an index".into(),
        (answer, None) => format!("the answers of an index: {}", answer["asked"].as_str()?),
        _ => return None,
    };
    Some((value, says["plan"].as_str()?.to_owned()))
}

/// A model's plan, or what has it.
fn of_model(length: u64, what: &str, plan: &ModelPlan) -> Result<Found, CliError> {
    let (hash, text, shown) = either!(plan, plan => (Shared::hash(plan), plan.to_json(), plan.to_string()));
    Ok(Found::planned(length, format!("{what}, {}", hex(&hash)), shown, figures(text)?))
}

/// What a text in JSON says, whole.
fn figures(text: &str) -> Result<Value, CliError> {
    serde_json::from_str(text).map_err(|e| CliError::new(ErrorKind::Format, format!("this is no JSON: {e}")))
}

fn text(whole: &[u8], length: u64) -> Result<Found, CliError> {
    let text = std::str::from_utf8(whole).map_err(|_| {
        CliError::new(ErrorKind::Format, "this is neither a plan nor an expression, for it is not text; copy it again")
    })?;
    if let Some(plan) = model::plan_of(text) {
        return of_model(length, "the plan of a model", &plan?);
    }
    let value: Value = figures(text)?;
    if value["sudare_index"].is_number() {
        let (index, prices) = (Index::from_json(text)?, machine::stored(files::cache_folder().as_deref()));
        let shown = index.explain(&|work, log_n| prices.price(work, log_n, 1));
        return Ok(Found::planned(length, format!("the plan of an index, {}", hex(&index.hash())), shown, value));
    }
    match value["sudare"].as_str() {
        Some("learning") => return fit(&value, length),
        Some("statistics") => {
            let mut found = Found::new(length, "statistics of a table that Python saved, not encrypted");
            found.add("rows", value["rows"].clone());
            found.add("columns", value["columns"].clone());
            return Ok(found);
        }
        _ => {}
    }
    if let Ok(prices) = serde_json::from_str::<BTreeMap<String, CostModel>>(text)
        && !prices.is_empty()
    {
        let mut found = Found::new(length, "prices of operations that `sudare calibrate` measured");
        found.add("machines", prices.into_keys().collect::<Vec<_>>());
        return Ok(found);
    }
    match (Plan::from_json(text), Expr::from_json(text)) {
        (Ok(plan), _) => {
            let figures = super::plan::json(&plan)?;
            Ok(Found::planned(length, format!("a plan, {}", plan.hash()), plan.to_string(), figures))
        }
        (_, Ok(expr)) => Ok(Found::new(length, format!("an expression for `sudare plan`: {expr}"))),
        (Err(error), _) => Err(CliError::new(error.kind(), format!("this is not a plan: {error}"))),
    }
}

/// The plan of a fit of `sudare.learn`: of a product of the rows with themselves, and what the columns are.
fn fit(value: &Value, length: u64) -> Result<Found, CliError> {
    let product = Plan::from_json(&value["product"].to_string())?;
    let [features, targets, classes] =
        ["max_abs", "targets", "classes"].map(|name| value[name].as_array().map_or(0, Vec::len));
    let what = format!(
        "the plan of a fit, features: {features}, targets: {targets}, classes: {classes}; its product is plan {}",
        product.hash()
    );
    let mut found = Found::planned(length, what, product.to_string(), super::plan::json(&product)?);
    for name in ["max_abs", "targets", "classes"] {
        found.add(name, value[name].clone());
    }
    Ok(found)
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
