//! Compiled models: seconds and memory beside what their plans predict, answers against the network in the clear.

use crate::Outcome;
use crate::limits::Line;
use crate::lines::Lines;
use crate::machine::{Machine, peak_rss_mb, prices, reset_peak_rss, resident_mb};
use crate::timing::{Budget, Clock, Clocks, Samples, unit_seconds};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use sudare_models::forest::{self, Forest, Node};
use sudare_models::{
    Answer, Client, Dense, Function, Goal, Keys, Label, Model, ModelError, Network, NetworkOrForest, Request, Shared,
    either,
};
use sudare_plan::CostModel;
use sudare_ring::Threads;
use sudare_ring::threads::map_jobs;
use sudare_rlwe::work::Work;
use sudare_testkit::Random;

/// How far measured seconds may lie over predicted ones.
const MORE: f64 = 1.3;

/// Examples that built-in networks are compiled with: of thousands of rows none leaves their ranges and the margin.
const CALIBRATED: usize = 256;

/// Options of the suite.
#[derive(Debug, Args)]
pub struct Options {
    /// Files of compiled models, as `sudare.compile` saves them, instead of the built-in ones with random weights.
    #[arg(long)]
    file: Vec<PathBuf>,
    /// Of the built-in cases those whose name has this in it.
    #[arg(long, default_value = "")]
    only: String,
    /// Examples that come together, with a file.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// Networks that `bench/train_models.py` trained, instead of the built-in ones; their images are beside them.
    #[arg(long)]
    onnx: Vec<PathBuf>,
    /// Of a network's calibration images as many as it is compiled with.
    #[arg(long, default_value_t = 256)]
    calibrated: usize,
    /// Of its test images as many as are read in the clear.
    #[arg(long, default_value_t = 500)]
    tested: usize,
    /// Of these as many as are read encrypted, one at a time.
    #[arg(long, default_value_t = 4)]
    encrypted: usize,
    /// Degree of its polynomials; without, the least with which 99 % of the calibration images keep their label.
    #[arg(long)]
    degree: Option<usize>,
    /// Bound on what encryption adds to an answer of it.
    #[arg(long, default_value_t = 1e-2)]
    error: f64,
    /// A folder with a model, keys and requests, of which this process is the server.
    #[arg(long, hide = true)]
    serve: Option<PathBuf>,
}

/// A chain of dense layers with random weights.
fn dense(random: &mut Random, sizes: &[usize], function: &Function) -> Outcome<Network> {
    let last = sizes.len() - 2;
    let layer = |(k, pair): (usize, &[usize])| Dense {
        name: format!("layer {k}"),
        weights: random.units(pair[0] * pair[1]).iter().map(|w| 1.5 * w / (pair[0] as f64).sqrt()).collect(),
        bias: random.units(pair[1]).iter().map(|b| 0.2 * b).collect(),
        function: if k == last { Function::Identity } else { function.clone() },
    };
    Ok(Network::dense(sizes[0], sizes.windows(2).enumerate().map(layer).collect())?)
}

/// A model, and the examples that its server reads.
struct Case {
    name: String,
    model: NetworkOrForest<Model, forest::Model>,
    /// A request each.
    requests: Vec<Vec<f64>>,
    /// The right label of each request of one example, where it is known.
    labels: Vec<usize>,
    /// What was found in the clear.
    clear: Vec<(&'static str, f64)>,
}

impl Case {
    fn new(name: &str, model: NetworkOrForest<Model, forest::Model>, examples: Vec<f64>) -> Self {
        Self { name: name.to_owned(), model, requests: vec![examples], labels: Vec::new(), clear: Vec::new() }
    }
}

/// Its name, sizes of layers, their function, examples that come together, and the degree of polynomials.
type Dimensions<'d> = (&'static str, &'d [usize], Function, usize, Option<usize>);

fn built_in(prices: &CostModel) -> Outcome<Vec<Case>> {
    let mut random = Random(28);
    let cases: [Dimensions<'_>; 5] = [
        ("MLP 784-128-10, x², one image", &[784, 128, 10], Function::Power(2), 1, None),
        ("MLP 784-128-10, x², 10,000 images", &[784, 128, 10], Function::Power(2), 10_000, None),
        ("MLP 784-128-10, ReLU, one image", &[784, 128, 10], Function::Relu, 1, Some(31)),
        ("MLP 64-64-64-64-10, ReLU, one row", &[64, 64, 64, 64, 10], Function::Relu, 1, Some(63)),
        ("logistic regression of 30, 4,096 rows", &[30, 1], Function::Identity, 4096, None),
    ];
    let mut out = Vec::new();
    for (name, sizes, function, batch, degree) in cases {
        let network = dense(&mut random, sizes, &function)?;
        let examples: Vec<f64> = random.units(sizes[0] * batch.max(CALIBRATED)).iter().map(|x| x.abs()).collect();
        let goal = Goal { batch, degree, label: Label::Numbers, error: 1e-2, ..Goal::default() };
        let price = |work: &Work, log_n: u32| prices.price(work, log_n, 1);
        let model = Model::compile(&network, &examples[..CALIBRATED * sizes[0]], &goal, &price)?;
        out.push(Case::new(name, NetworkOrForest::Network(model), examples[..sizes[0] * batch].to_vec()));
    }
    Ok(out)
}

fn from_file(path: &PathBuf, batch: usize) -> Outcome<Case> {
    let model = Model::from_bytes(&std::fs::read(path)?)?;
    let (figures, inputs) = (model.plan().figures(), model.plan().inputs());
    // Small ones stay in every interval.
    let bound = 0.5 * figures.input_bound / figures.margin;
    let factor = |i: usize| figures.factors.get(i % inputs).map_or(1.0, |f| *f);
    let examples = Random(28).units(inputs * batch).iter().enumerate().map(|(i, x)| x * bound * factor(i)).collect();
    Ok(Case::new("the model of a file", NetworkOrForest::Network(model), examples))
}

/// Images with labels, as `bench/train_models.py` writes them.
struct Images {
    calibration: Vec<f64>,
    test: Vec<f64>,
    /// Of the test images.
    labels: Vec<usize>,
}

impl Images {
    fn read(path: &Path, inputs: usize) -> Outcome<Self> {
        let bytes = std::fs::read(path)?;
        let (head, rest) = bytes.split_at_checked(12).ok_or("a file of images that ends early")?;
        let [calibrated, tested, numbers] = <[usize; 3]>::try_from(
            head.as_chunks::<4>().0.iter().map(|c| u32::from_le_bytes(*c) as usize).collect::<Vec<_>>(),
        )
        .map_err(|_| "a file of images that ends early")?;
        let count = calibrated + tested;
        if numbers != inputs || rest.len() != count * (4 * numbers + 1) {
            return Err(format!("{} is not of images of {inputs} numbers", path.display()).into());
        }
        let (pixels, labels) = rest.split_at(4 * count * numbers);
        let pixels: Vec<f64> = pixels.as_chunks::<4>().0.iter().map(|c| f64::from(f32::from_le_bytes(*c))).collect();
        let (calibration, test) = pixels.split_at(calibrated * numbers);
        let labels = labels[calibrated..].iter().map(|l| usize::from(*l)).collect();
        Ok(Self { calibration: calibration.to_vec(), test: test.to_vec(), labels })
    }
}

/// A trained network, compiled, and how it does in the clear on images that it was neither trained nor calibrated on.
fn from_onnx(path: &Path, options: &Options, (threads, prices): (&Threads, &CostModel)) -> Outcome<Case> {
    let network = Network::from_onnx(&std::fs::read(path)?)?;
    let inputs = network.inputs();
    let images = Images::read(&path.with_extension("images"), inputs)?;
    let examples = &images.calibration[..images.calibration.len().min(options.calibrated * inputs)];
    let (degree, error) = (options.degree, options.error);
    let goal = Goal { degree, error, label: Label::Argmax, ..Goal::default() };
    let price = |work: &Work, log_n: u32| prices.price(work, log_n, 1);
    let begun = Instant::now();
    let model = threads.run(|| Model::compile(&network, examples, &goal, &price))?;
    let compiled = begun.elapsed().as_secs_f64();
    eprintln!("{}", model.plan());
    let tested = options.tested.min(images.labels.len());
    let label = |answer: &[f64]| Label::Argmax.of(answer).unwrap_or_default();
    let one = |i: usize| {
        let image = &images.test[i * inputs..(i + 1) * inputs];
        let (given, found) = (model.clear(image)?, model.polynomial(image)?);
        let away = given.iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        Ok::<_, ModelError>((label(&given), label(&found), away))
    };
    let all = threads.run(|| map_jobs(tested, one)).into_iter().collect::<Result<Vec<_>, _>>()?;
    let share = |right: &dyn Fn(usize) -> bool| (0..tested).filter(|i| right(*i)).count() as f64 / tested as f64;
    let clear = vec![
        ("compile_wall_s", compiled),
        ("model_mb", model.to_bytes()?.len() as f64 / 1e6),
        ("tested", tested as f64),
        ("clear_right", share(&|i| all[i].0 == images.labels[i])),
        ("polynomial_right", share(&|i| all[i].1 == images.labels[i])),
        ("polynomial_same", share(&|i| all[i].0 == all[i].1)),
        ("polynomial_away", all.iter().map(|a| a.2).fold(0.0, f64::max)),
    ];
    let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let encrypted = options.encrypted.min(tested);
    let requests = images.test.chunks(inputs).take(encrypted).map(<[f64]>::to_vec).collect();
    Ok(Case {
        name,
        model: NetworkOrForest::Network(model),
        requests,
        labels: images.labels[..encrypted].to_vec(),
        clear,
    })
}

/// A tree of so many steps whose thresholds are multiples of 1/16; `full`, or about a third of it, as trees that were fitted are.
fn tree(random: &mut Random, (features, outputs): (usize, usize), (depth, full): (usize, bool)) -> Vec<Node> {
    let mut levels = vec![0];
    let mut out = Vec::new();
    while let Some(level) = levels.get(out.len()).copied() {
        out.push(if level < depth && (full || level < 2 || random.chance(75)) {
            let (feature, threshold) = (random.index(features), random.index(33) as f64 / 16.0 - 1.0);
            levels.extend([level + 1; 2]);
            Node::Split { feature, threshold, left: levels.len() - 2, right: levels.len() - 1 }
        } else {
            Node::Leaf(random.units(outputs).iter().map(|x| x / 50.0).collect())
        });
    }
    out
}

/// Forests of 50 trees of depth 6 over 30 features: one row, and as many as a ciphertext has room for.
fn forests(prices: &CostModel) -> Outcome<Vec<Case>> {
    let mut random = Random(50);
    let price = |work: &Work, log_n: u32| prices.price(work, log_n, 1);
    let kinds = [
        (false, ["forest 50 × 6, one row", "forest 50 × 6, a full request"]),
        (true, ["forest 50 × 6 of 64 leaves, one row", "forest 50 × 6 of 64 leaves, a full request"]),
    ];
    let mut out = Vec::new();
    for (full, names) in kinds {
        let trees = (0..50).map(|_| tree(&mut random, (30, 2), (6, full))).collect();
        let forest = Forest::new(30, true, vec![0.0; 2], trees)?;
        let rows = random.units(30 * 64);
        let model = forest::Model::compile(&forest, &rows, &Goal::default(), &price)?;
        let full = model.plan().figures().rows;
        for (name, count) in names.into_iter().zip([1, full]) {
            out.push(Case::new(name, NetworkOrForest::Forest(model.clone()), rows[..30 * count].to_vec()));
        }
    }
    Ok(out)
}

/// What a process that held a model, keys and requests, and no secret, found.
#[derive(Debug, Serialize, Deserialize)]
struct Served {
    /// Milliseconds of processor and of the clock on the wall, request by request.
    cpu: Vec<f64>,
    wall: Vec<f64>,
    /// Megabytes that it held before it had read anything, with model and keys, and at most while it computed.
    empty_mb: f64,
    loaded_mb: f64,
    peak_mb: f64,
}

/// The files by which a client's process and a server's tell each other what they have to; they end with it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new() -> Outcome<Self> {
        let path = std::env::temp_dir().join(format!("sudare-bench-models-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }

    fn read(path: &Path, name: &str) -> Outcome<Vec<u8>> {
        Ok(std::fs::read(path.join(name))?)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Outcome<()> {
        Ok(std::fs::write(self.0.join(name), bytes)?)
    }
}

/// A server's process: runs each request of a folder, and again for as long as the budget says.
fn serve(folder: &Path, budget: Budget, threads: &Threads) -> Outcome<()> {
    let megabytes = || resident_mb().ok_or("the system does not tell how much memory a process has");
    let empty_mb = megabytes()?;
    let model = NetworkOrForest::from_bytes(&Folder::read(folder, "model")?)?;
    let server = threads.run(|| -> Outcome<_> {
        let keys = Folder::read(folder, "keys")?;
        let keys = either!(&model, model => Keys::from_bytes(model.plan(), &keys)?);
        let stored = either!(&model, model => model.plan().stores());
        Ok(model.server(keys, stored)?)
    })?;
    let requests = (0..).map_while(|i| Folder::read(folder, &format!("request-{i}")).ok());
    let read = |bytes: Vec<u8>| either!(&model, model => Request::from_bytes(model.plan(), &bytes));
    let requests = requests.map(read).collect::<Result<Vec<_>, _>>()?;
    reset_peak_rss();
    let (mut clocks, loaded_mb) = (Clocks::default(), megabytes()?);
    let begun = Instant::now();
    let mut number = 0;
    while number < requests.len().max(budget.least) || begun.elapsed().as_secs_f64() < budget.seconds {
        let request = &requests[number % requests.len()];
        let clock = Clock::start();
        let answer = threads.run(|| either!(&server, server => server.run(request, &|_, _| ())))?;
        clock.stop(1, &mut clocks);
        if number < requests.len() {
            std::fs::write(folder.join(format!("answer-{number}")), answer.to_bytes()?)?;
        }
        number += 1;
    }
    let peak_mb = peak_rss_mb().ok_or("the system does not tell how much memory a process had")?;
    let served = Served { cpu: clocks.cpu.0, wall: clocks.wall.0, empty_mb, loaded_mb, peak_mb };
    println!("{}", serde_json::to_string(&served)?);
    Ok(())
}

/// What a case's answers were like.
struct Judged {
    wrong: Option<String>,
    worst: f64,
    right: usize,
    same: usize,
}

/// Decrypts the answers of a server.
fn judged(case: &Case, folder: &Path, decrypt: &dyn Fn(&[u8]) -> Outcome<Vec<f64>>) -> Outcome<Judged> {
    let mut out = Judged { wrong: None, worst: 0.0, right: 0, same: 0 };
    for (number, examples) in case.requests.iter().enumerate() {
        let found = decrypt(&Folder::read(folder, &format!("answer-{number}"))?)?;
        let (wanted, promised) = match &case.model {
            NetworkOrForest::Network(model) => {
                let rows = examples.chunks(model.plan().inputs());
                let wanted = rows.map(|x| model.polynomial(x)).collect::<Result<Vec<_>, _>>()?.concat();
                (wanted, model.plan().figures().error)
            }
            NetworkOrForest::Forest(model) => {
                let rows = examples.chunks(model.plan().figures().inputs);
                let wanted = rows.map(|x| model.clear(x)).collect::<Result<Vec<_>, _>>()?.concat();
                if model.plan().labels(&found) != model.plan().labels(&wanted) {
                    out.wrong = Some("other labels".into());
                }
                (wanted, model.plan().figures().error)
            }
        };
        let away = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        out.worst = out.worst.max(away);
        if found.len() != wanted.len() || away > promised || away.is_nan() {
            out.wrong = Some(format!("not {} answers within the promised {promised:.1e}", wanted.len()));
        }
        if let (Some(label), NetworkOrForest::Network(model)) = (case.labels.get(number), &case.model) {
            let found = Label::Argmax.of(&found);
            out.right += usize::from(found == Some(*label));
            out.same += usize::from(found == Label::Argmax.of(&model.clear(examples)?));
        }
    }
    Ok(out)
}

/// Measures a model's server, in a process of its own.
fn measure(case: &Case, budget: Budget, threads: &Threads, machine: &Machine) -> Outcome<Line> {
    let folder = Folder::new()?;
    let path = folder.0.as_path();
    let unit = unit_seconds()?;
    folder.write("model", &either!(&case.model, model => model.to_bytes())?)?;
    // A client of either kind: what is different is how it decrypts.
    let client = match &case.model {
        NetworkOrForest::Network(model) => NetworkOrForest::Network(Client::new(model.plan())?),
        NetworkOrForest::Forest(model) => NetworkOrForest::Forest(forest::Client::new(model.plan())?),
    };
    threads.run(|| folder.write("keys", &either!(&client, client => client.eval_keys())?.to_bytes()?))?;
    let mut request_mb = 0.0;
    for (number, examples) in case.requests.iter().enumerate() {
        let request = threads.run(|| either!(&client, client => client.encrypt(examples)))?.to_bytes()?;
        request_mb = request.len() as f64 / 1e6;
        folder.write(&format!("request-{number}"), &request)?;
    }
    let mut child = Command::new(std::env::current_exe()?);
    child.args(["--seconds", &budget.seconds.to_string(), "--least", &budget.least.to_string()]);
    child.args(["--threads", &threads.count().to_string(), "models", "--serve"]).arg(path);
    let told = child.stderr(Stdio::inherit()).output()?;
    if !told.status.success() {
        return Err(format!("the process of the server: {}", told.status).into());
    }
    let served: Served = serde_json::from_slice(&told.stdout)?;
    let decrypt = |bytes: &[u8]| -> Outcome<Vec<f64>> {
        Ok(match (&client, &case.model) {
            (NetworkOrForest::Network(client), NetworkOrForest::Network(model)) => {
                threads.run(|| client.decrypt(&Answer::from_bytes(model.plan(), bytes)?))?
            }
            (NetworkOrForest::Forest(client), NetworkOrForest::Forest(model)) => {
                threads.run(|| client.decrypt(&Answer::from_bytes(model.plan(), bytes)?))?
            }
            _ => return Err("a client of another kind".into()),
        })
    };
    let Judged { mut wrong, worst, right, same } = judged(case, path, &decrypt)?;
    let (stored, key_bytes) = either!(&case.model, model => (model.plan().stores(), model.plan().key_bytes()));
    let plan_mb = either!(&case.model, model => model.plan().memory(stored)) as f64 / 1e6;
    let taken_mb = served.peak_mb - served.empty_mb;
    if taken_mb > plan_mb {
        wrong = Some(format!("{taken_mb:.0} MB of memory where the plan says {plan_mb:.0}"));
    }
    let of_figures = match &case.model {
        NetworkOrForest::Network(model) => {
            let figures = model.plan().figures();
            let lots = (case.requests[0].len() / model.plan().inputs()).div_ceil(figures.images) as f64;
            let rlwe = &figures.params.rlwe;
            Forecast {
                seconds: lots * figures.seconds,
                encoding: lots * figures.encoding,
                more: vec![
                    ("refreshes", figures.refreshes as f64),
                    ("log_n", f64::from(rlwe.log_n)),
                    ("levels", figures.input_level as f64),
                    ("promised", figures.error),
                ],
            }
        }
        NetworkOrForest::Forest(model) => {
            let figures = model.plan().figures();
            Forecast {
                seconds: figures.seconds,
                encoding: figures.encoding,
                more: vec![
                    ("rows", (case.requests[0].len() / figures.inputs) as f64),
                    ("parts", figures.parts as f64),
                    ("log_n", f64::from(figures.log_n)),
                    ("promised", figures.error),
                ],
            }
        }
    };
    let encoding = if stored { 0.0 } else { of_figures.encoding };
    let predicted = of_figures.seconds + encoding;
    let median = |of: &[f64]| Samples(of.to_vec()).median().unwrap_or_default() / 1e3;
    let (cpu, wall) = (median(&served.cpu), median(&served.wall));
    let line = Line::new(("models", &case.name), (cpu, "s", MORE * predicted), wrong.map_or(Ok(()), Err), machine);
    let count = case.labels.len() as f64;
    let of_labels =
        [("encrypted", count), ("encrypted_right", right as f64 / count), ("encrypted_same", same as f64 / count)];
    let answer_mb = Folder::read(path, "answer-0")?.len() as f64 / 1e6;
    Ok(line
        .with([
            ("predicted_s", predicted),
            ("unit_s", unit),
            ("units", cpu / unit),
            ("encoding_s", encoding),
            ("wall_s", wall),
            ("keys_mb", key_bytes as f64 / 1e6),
            ("request_mb", request_mb),
            ("answer_mb", answer_mb),
            ("plan_mb", plan_mb),
            ("empty_mb", served.empty_mb),
            ("loaded_mb", served.loaded_mb),
            ("peak_mb", served.peak_mb),
            ("worst_error", worst),
        ])
        .with(of_figures.more)
        .with(case.clear.iter().copied())
        .with(of_labels.into_iter().filter(|_| count > 0.0))
        .of(Samples(served.cpu.iter().map(|ms| ms / 1e3).collect())))
}

/// What a plan says of a request.
struct Forecast {
    seconds: f64,
    encoding: f64,
    more: Vec<(&'static str, f64)>,
}

/// Runs the suite: processor seconds of the server against what its plan predicts for one thread.
pub fn run(
    options: &Options,
    budget: Budget,
    threads: &Threads,
    machine: &Machine,
    lines: &mut Lines,
) -> Outcome<Vec<Line>> {
    if let Some(folder) = &options.serve {
        serve(folder, budget, threads)?;
        return Ok(Vec::new());
    }
    // Those of this machine, now: by the time of the processor, as the servers are measured.
    let prices = prices()?;
    let mut cases = Vec::new();
    for path in &options.file {
        cases.push(from_file(path, options.batch)?);
    }
    for path in &options.onnx {
        cases.push(from_onnx(path, options, (threads, prices))?);
    }
    if cases.is_empty() {
        cases = built_in(prices)?;
        cases.extend(forests(prices)?);
        cases.retain(|case| case.name.contains(&options.only));
    }
    let mut all = Vec::new();
    for case in &cases {
        let line = measure(case, budget, threads, machine)?;
        lines.put(&line)?;
        all.push(line);
    }
    Ok(all)
}
