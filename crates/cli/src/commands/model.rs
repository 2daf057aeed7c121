//! `sudare compile`, and `keygen`, `encrypt`, `run` and `decrypt` with what it makes: a network or a forest in the place of an expression.

use super::client::{MAX_SECRET_BYTES, warn_if_others_read};
use super::{bytes, remote, say};
use crate::args::{self, Label};
use crate::csv_file::Names;
use crate::error::{CliError, InFile, tell};
use crate::files::{self, Access, Output};
use crate::matrices::{self, Numbers};
use crate::progress::Bar;
use std::io::{Read, Write};
use std::path::Path;
use sudare_expr::Matrix;
use sudare_models::{
    Answer, Client, Goal, Keys, Model, Network, NetworkOrForest, Plan, Request, Shared, either, forest,
};
use sudare_ring::{ErrorKind, Threads};
use sudare_rlwe::wire::{secret_key_from_bytes, secret_key_to_bytes};
use sudare_rlwe::work::Work;
use sudare_serve::Remote;
use sudare_session::machine;

/// What `compile` makes: the server's file and the plan.
pub const FILES: [&str; 2] = ["model.bin", "plan.json"];
/// What `keygen` makes for a model: whoever encrypts has the secret key.
const KEY_FILES: [&str; 2] = ["secret.key", "eval.keys"];
/// Most bytes of files that are read whole.
const MAX_NETWORK: u64 = 2 << 30;
pub const MAX_MODEL: u64 = 16 << 30;
const MAX_MESSAGE: u64 = 16 << 30;
/// Most labels that `decrypt` tells.
const MOST_LABELS: usize = 20;

/// The plan of a model.
pub type ModelPlan = NetworkOrForest<Plan, forest::Plan>;

/// What a server's file has.
pub type Compiled = NetworkOrForest<Model, forest::Model>;

/// The client of a model.
type ModelClient = NetworkOrForest<Client, Client<forest::Plan>>;

/// The plan of a model, if that is what a plan's text is.
pub fn plan_of(text: &str) -> Option<Result<ModelPlan, CliError>> {
    ModelPlan::is_one(text).then(|| Ok(ModelPlan::from_json(text)?))
}

/// Whether a file is a compiled model.
pub fn is_model(path: &Path) -> Result<bool, CliError> {
    if !path.is_file() {
        return Ok(false);
    }
    let mut start = Vec::new();
    files::open(path)?.take(Compiled::STARTS as u64).read_to_end(&mut start).in_file(path)?;
    Ok(Compiled::is_one(&start))
}

pub fn compile(args: &args::Args, a: &args::Compile) -> Result<(), CliError> {
    let network = Network::from_onnx(&files::read(&a.network, MAX_NETWORK)?).in_file(&a.network)?;
    let (examples, _) = matrices::array::<f64>(&a.examples, &a.csv)?;
    check_shape(&examples.shape, network.inputs()).in_file(&a.examples)?;
    let numbers = a.label.map_or(network.outputs() == 1, |label| matches!(label, Label::Numbers));
    // Numbers have no label that an approximation could be judged by.
    let judged = !numbers || a.approximation.is_some() || a.degree.is_some();
    let goal = Goal {
        error: a.error,
        agreement: a.agreement,
        approximation: if judged { a.approximation } else { Some(a.error) },
        degree: a.degree,
        margin: a.margin,
        batch: a.batch,
        label: match a.label {
            Some(Label::Sign) => sudare_models::Label::Sign,
            _ if numbers => sudare_models::Label::Numbers,
            _ => sudare_models::Label::Argmax,
        },
        ..Goal::default()
    };
    let prices = machine::stored(files::cache_folder().as_deref());
    let price = |work: &Work, log_n: u32| prices.price(work, log_n, 1);
    let made = Threads::new(args.threads).run(|| Model::compile(&network, &examples.data, &goal, &price));
    let model = made.in_file(&a.examples)?;
    std::fs::create_dir_all(&a.output).in_file(&a.output)?;
    let mut wholes = Vec::new();
    for (name, data) in FILES.into_iter().zip([model.to_bytes()?, model.plan().to_json().as_bytes().to_vec()]) {
        let mut out = Output::create(&a.output.join(name), Access::Usual)?;
        out.write_all(&data).in_file(&a.output)?;
        wholes.push(out.finish()?);
    }
    let notes = ["for the server: plan and weights", "for the client"];
    let files = wholes.iter().zip(notes);
    let lines = files.map(|(whole, note)| format!("{}  {}  {note}", whole.path().display(), bytes(whole.size())));
    say(args, format!("{}\n{}", model.plan(), lines.collect::<Vec<_>>().join("\n")))?;
    files::place(wholes, args.existing())
}

/// Refuses numbers that are not one example, in whatever shape, or one example after the other.
fn check_shape(shape: &[usize], inputs: usize) -> Result<(), CliError> {
    let all: usize = shape.iter().product();
    let rows = shape.first().is_some_and(|rows| rows.checked_mul(inputs) == Some(all));
    if all == inputs || rows {
        return Ok(());
    }
    let message =
        format!("the model takes examples of {inputs} numbers, one a row, and this file has the shape {shape:?}");
    Err(CliError::new(ErrorKind::Shape, message))
}

pub fn keygen(args: &args::Args, a: &args::Keygen, plan: &ModelPlan) -> Result<(), CliError> {
    std::fs::create_dir_all(&a.output).in_file(&a.output)?;
    let client = match plan {
        NetworkOrForest::Network(plan) => NetworkOrForest::Network(Client::new(plan)?),
        NetworkOrForest::Forest(plan) => NetworkOrForest::Forest(Client::new(plan)?),
    };
    let keys = Threads::new(args.threads).run(|| either!(&client, client => client.eval_keys()))?;
    let [secret_path, eval_path] = KEY_FILES.map(|name| a.output.join(name));
    let mut secret = Output::create(&secret_path, Access::Key)?;
    secret.write_secret(&secret_key_to_bytes(either!(&client, client => client.secret()))?)?;
    let mut eval = Output::create(&eval_path, Access::Usual)?;
    eval.write_all(&keys.to_bytes()?).in_file(&eval_path)?;
    let wholes = [secret.finish()?, eval.finish()?];
    let notes =
        ["keep it to yourself: it encrypts, and decrypts everything", "for the server: computes, and reads nothing"];
    let files = wholes.iter().zip(notes);
    let lines = files.map(|(whole, note)| format!("{}  {}  {note}", whole.path().display(), bytes(whole.size())));
    say(args, lines.collect::<Vec<_>>().join("\n"))?;
    // A model has no public key, and one that is there belongs to another secret key.
    files::place_without(wholes.into(), &a.output.join(args::KEY_FILES[1]), args.existing())
}

fn client(plan: &ModelPlan, path: &Path) -> Result<ModelClient, CliError> {
    warn_if_others_read(path)?;
    let text = files::read_secret(path, MAX_SECRET_BYTES)?;
    let secret = secret_key_from_bytes(either!(plan, plan => plan.params()), &text).in_file(path)?;
    Ok(match plan {
        NetworkOrForest::Network(plan) => NetworkOrForest::Network(Client::with_secret(plan, secret).in_file(path)?),
        NetworkOrForest::Forest(plan) => NetworkOrForest::Forest(Client::with_secret(plan, secret).in_file(path)?),
    })
}

/// Numbers of an example, and of an answer.
fn sizes(plan: &ModelPlan) -> [usize; 2] {
    match plan {
        NetworkOrForest::Network(plan) => [plan.inputs(), plan.outputs()],
        NetworkOrForest::Forest(plan) => [plan.figures().inputs, plan.figures().outputs],
    }
}

fn usage(message: &str) -> Result<(), CliError> {
    Err(CliError::new(ErrorKind::Usage, message))
}

pub fn encrypt(args: &args::Args, a: &args::Encrypt, plan: &ModelPlan) -> Result<(), CliError> {
    if a.store || a.name.is_some() {
        return usage("a model has one input, in one file; leave --store and --as out");
    }
    let client = client(plan, &a.keys)?;
    let (array, names) = matrices::array::<f64>(&a.matrix, &a.csv)?;
    let [inputs, _] = sizes(plan);
    check_shape(&array.shape, inputs).in_file(&a.matrix)?;
    if let Some(path) = &a.columns {
        let known = matrices::names(path, &a.csv)?.columns;
        check_columns(names.columns.as_deref(), known.as_deref(), path, inputs).in_file(&a.matrix)?;
    }
    let request = Threads::new(args.threads).run(|| either!(&client, client => client.encrypt(&array.data)));
    let request = request.in_file(&a.matrix)?;
    if a.columns.is_none() && names.columns.is_some() {
        tell(format!(
            "warning: {}: its columns were not compared with the model's, whose plan has no names; --columns FILE does",
            a.matrix.display()
        ));
    }
    let note = format!("{} encrypted examples", request.examples());
    write(args, &a.output, &request.to_bytes()?, &note)
}

/// Refuses other columns than those that a file names, or these in another order.
fn check_columns(
    found: Option<&[String]>,
    known: Option<&[String]>,
    path: &Path,
    inputs: usize,
) -> Result<(), CliError> {
    let shape = |message: String| CliError::new(ErrorKind::Shape, message);
    let count = |names: Option<&[String]>| names.map_or(0, <[String]>::len);
    let Some(known) = known.filter(|known| known.len() == inputs) else {
        let found = count(known);
        let message =
            format!("this file names {found} columns, and the model takes {inputs}; name those of its examples");
        return Err(shape(message).in_file(path));
    };
    let Some(found) = found.filter(|found| found.len() == inputs) else {
        let found = count(found);
        return Err(shape(format!("this file names {found} of {inputs} columns; name all, or leave --columns out")));
    };
    match found.iter().zip(known).position(|(found, known)| found != known) {
        Some(at) => Err(shape(format!(
            "column {} is \"{}\", and \"{}\" in {}; give the columns of that file, in its order",
            at + 1,
            found[at],
            known[at],
            path.display()
        ))),
        None => Ok(()),
    }
}

fn write(args: &args::Args, path: &Path, data: &[u8], note: &str) -> Result<(), CliError> {
    let mut out = Output::create(path, Access::Usual)?;
    out.write_all(data).in_file(path)?;
    let whole = out.finish()?;
    say(args, format!("{}  {}  {note}", path.display(), bytes(whole.size())))?;
    whole.put(args.existing())
}

/// The plan of a model that a server offers.
fn model_plan(remote: &Remote, name: &str) -> Result<ModelPlan, CliError> {
    let text = String::from_utf8(remote.model_plan(name)?).map_err(|_| {
        CliError::new(ErrorKind::Format, "the server's plan of this model is not text; ask who runs it")
    })?;
    Ok(ModelPlan::from_json(&text)?)
}

/// Runs a model; with `--server` it is the name of one that the server offers.
pub fn run(args: &args::Args, a: &args::Run) -> Result<(), CliError> {
    let [input] = a.inputs.as_slice() else { return usage("a model has one input; name one file") };
    let input = Path::new(input);
    if a.keys_memory.is_some() {
        return usage("the keys of a model are held in memory; leave --keys-memory out");
    }
    if let Some(remote) = a.remote.connect()? {
        let model = a.plan.display().to_string();
        // What is no model there, or no request to it, is refused before it is sent.
        let plan = model_plan(&remote, &model)?;
        either!(&plan, plan => Request::from_bytes(plan, &files::read(input, MAX_MESSAGE)?)).in_file(input)?;
        let (keys, inputs) = (remote::send(&remote, &a.keys)?, remote::send(&remote, input)?);
        let mut out = Output::create(&a.output, Access::Usual)?;
        let job = remote::result(args, &remote, &sudare_serve::Request::Infer { model, keys, inputs }, &mut out)?;
        let whole = out.finish()?;
        say(args, format!("{}  {}  encrypted answers", a.output.display(), bytes(whole.size())))?;
        whole.put(args.existing())?;
        remote::forget(&remote, job);
        return Ok(());
    }
    let model = Compiled::from_bytes(&files::read(&a.plan, MAX_MODEL)?);
    let model = model.in_file(&a.plan)?;
    // The files' bytes are gone when these are read: the plan's memory has room for one of either.
    let keys = either!(&model, model => Keys::from_bytes(model.plan(), &files::read(&a.keys, MAX_MESSAGE)?));
    let keys = keys.in_file(&a.keys)?;
    let request = either!(&model, model => Request::from_bytes(model.plan(), &files::read(input, MAX_MESSAGE)?));
    let request = request.in_file(input)?;
    let stored = either!(&model, model => model.plan().stores());
    let bar = Bar::steps("computing", args.quiet);
    let answer = Threads::new(args.threads).run(|| {
        let server = model.server(keys, stored).in_file(&a.keys)?;
        either!(&server, server => server.run(&request, &|done, all| bar.set(done, all))).in_file(input)
    })?;
    drop(bar);
    write(args, &a.output, &answer.to_bytes()?, &format!("{} encrypted answers", answer.examples()))
}

pub fn decrypt(args: &args::Args, a: &args::Decrypt, plan: &ModelPlan) -> Result<(), CliError> {
    if a.release || a.private || a.columns.is_some() || a.rows.is_some() {
        return usage(
            "a model's answers are for the holder of the key, without names; leave --release, --private, --rows and \
             --columns out",
        );
    }
    let client = client(plan, &a.keys)?;
    let bytes_of = files::read(&a.result, MAX_MESSAGE)?;
    let answer = either!(plan, plan => Answer::from_bytes(plan, &bytes_of)).in_file(&a.result)?;
    let found = Threads::new(args.threads).run(|| either!(&client, client => client.decrypt(&answer)));
    let found = found.in_file(&a.result)?;
    let labels = match &client {
        NetworkOrForest::Network(client) => client.labels(&found),
        NetworkOrForest::Forest(client) => client.plan().labels(&found),
    };
    let [_, outputs] = sizes(plan);
    let rows = found.len() / outputs;
    let matrix = Matrix::new(rows, outputs, found).in_file(&a.result)?;
    let whole = matrices::write(&a.output, &Numbers::Reals(vec![matrix]), &Names::default(), &a.csv)?;
    // A line for people has few of them; a row without a label has its place.
    let named = |label: &Option<usize>| label.map_or_else(|| "-".into(), |label| label.to_string());
    let few: Vec<String> = labels.iter().take(MOST_LABELS).map(named).collect();
    let more = if labels.len() > MOST_LABELS { ", …" } else { "" };
    let told =
        if labels.iter().any(Option::is_some) { format!("; labels {}{more}", few.join(", ")) } else { String::new() };
    say(args, format!("{}  {}  {rows}×{outputs}{told}", a.output.display(), bytes(whole.size())))?;
    whole.put(args.existing())
}
