//! Compiled models: seconds and memory beside what their plans predict, answers against the network in the clear.

use crate::Outcome;
use crate::limits::Line;
use crate::lines::Lines;
use crate::machine::{Machine, peak_rss_mb, reset_peak_rss};
use crate::timing::{Budget, Clock, Clocks};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Instant;
use sudare_models::forest::{self, Forest, Node};
use sudare_models::{Answer, Client, Dense, Function, Goal, Label, Model, ModelError, Network, Server, Shared};
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
    model: Model,
    /// A request each.
    requests: Vec<Vec<f64>>,
    /// The right label of each request of one example, where it is known.
    labels: Vec<usize>,
    /// What was found in the clear.
    clear: Vec<(&'static str, f64)>,
}

impl Case {
    fn new(name: &str, model: Model, examples: Vec<f64>) -> Self {
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
        out.push(Case::new(name, model, examples[..sizes[0] * batch].to_vec()));
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
    Ok(Case::new("the model of a file", model, examples))
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
    Ok(Case { name, model, requests, labels: images.labels[..encrypted].to_vec(), clear })
}

/// Runs a server again and again, and looks at its answers.
fn repeated(
    budget: Budget,
    (wanted, promised): (&[f64], f64),
    run: impl Fn() -> Outcome<Answer>,
    read: impl Fn(&Answer) -> Outcome<Vec<f64>>,
) -> Outcome<(Clocks, Option<String>)> {
    let (mut clocks, mut wrong) = (Clocks::default(), None);
    let begun = Instant::now();
    while clocks.wall.0.len() < budget.least || begun.elapsed().as_secs_f64() < budget.seconds {
        let clock = Clock::start();
        let answer = run()?;
        clock.stop(1000, &mut clocks);
        let found = read(&answer)?;
        let close = found.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= promised);
        if found.len() != wanted.len() || !close {
            wrong = Some(format!("not {} answers within the promised {promised:.1e}", wanted.len()));
        }
    }
    Ok((clocks, wrong))
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
fn forests(budget: Budget, threads: &Threads, machine: &Machine, prices: &CostModel) -> Outcome<Vec<Line>> {
    let mut random = Random(50);
    let mut lines = Vec::new();
    let price = |work: &Work, log_n: u32| prices.price(work, log_n, 1);
    let cases = [
        (false, ["forest 50 × 6, one row", "forest 50 × 6, a full request"]),
        (true, ["forest 50 × 6 of 64 leaves, one row", "forest 50 × 6 of 64 leaves, a full request"]),
    ];
    for (full, names) in cases {
        let trees = (0..50).map(|_| tree(&mut random, (30, 2), (6, full))).collect();
        let forest = Forest::new(30, true, vec![0.0; 2], trees)?;
        let rows = random.units(30 * 64);
        let model = forest::Model::compile(&forest, &rows, &Goal::default(), &price)?;
        let plan = model.plan();
        let client = forest::Client::new(plan)?;
        let keys = threads.run(|| client.eval_keys())?;
        let (key_bytes, stored) = (keys.bytes() as f64, plan.stores());
        reset_peak_rss();
        let server = threads.run(|| forest::Server::new(&model, keys, stored))?;
        for (title, count) in names.into_iter().zip([1, plan.figures().rows]) {
            let rows: Vec<f64> = rows.iter().copied().cycle().take(30 * count).collect();
            let request = threads.run(|| client.encrypt(&rows))?;
            let wanted = rows.chunks(30).map(|x| model.clear(x)).collect::<Result<Vec<_>, _>>()?.concat();
            let run = || Ok(threads.run(|| server.run(&request, &|_, _| ()))?);
            let (clocks, mut wrong) =
                repeated(budget, (&wanted, plan.figures().error), run, |answer| Ok(client.decrypt(answer)?))?;
            let found = client.decrypt(&run()?)?;
            if plan.labels(&found) != plan.labels(&wanted) {
                wrong = Some("other labels".into());
            }
            let figures = plan.figures();
            let predicted = figures.seconds + if stored { 0.0 } else { figures.encoding };
            let median = |of: &crate::timing::Samples| of.median().unwrap_or_default();
            let (wall, cpu) = (median(&clocks.wall), median(&clocks.cpu));
            let line = Line::new(("models", title), (cpu, "s", MORE * predicted), wrong.map_or(Ok(()), Err), machine);
            let line = line
                .with([
                    ("predicted_s", predicted),
                    ("wall_s", wall),
                    ("rows", count as f64),
                    ("parts", figures.parts as f64),
                    ("keys_mb", key_bytes / 1e6),
                    ("plan_mb", plan.memory(stored) as f64 / 1e6),
                    ("request_mb", request.to_bytes()?.len() as f64 / 1e6),
                    ("answer_mb", run()?.to_bytes()?.len() as f64 / 1e6),
                    ("log_n", f64::from(figures.log_n)),
                ])
                .with(peak_rss_mb().map(|peak| ("peak_mb", peak)))
                .of(clocks.cpu);
            lines.push(line);
        }
    }
    Ok(lines)
}

/// Measures a model's server, request by request.
fn measure(case: &Case, budget: Budget, threads: &Threads, machine: &Machine) -> Outcome<Line> {
    let Case { name, model, requests, labels, clear } = case;
    let (plan, inputs) = (model.plan(), model.plan().inputs());
    let client = Client::new(plan)?;
    let keys = threads.run(|| client.eval_keys())?;
    let (key_bytes, stored) = (keys.bytes() as f64, plan.stores());
    reset_peak_rss();
    let server = threads.run(|| Server::new(model, keys, stored))?;
    let (mut clocks, mut wrong, mut worst) = (Clocks::default(), None, 0f64);
    let (mut right, mut same) = (0, 0);
    let begun = Instant::now();
    let mut number = 0;
    while number < requests.len() || number < budget.least || begun.elapsed().as_secs_f64() < budget.seconds {
        let examples = &requests[number % requests.len()];
        let wanted: Vec<f64> =
            examples.chunks(inputs).map(|x| model.polynomial(x)).collect::<Result<Vec<_>, _>>()?.concat();
        let request = threads.run(|| client.encrypt(examples))?;
        let clock = Clock::start();
        let answer = threads.run(|| server.run(&request, &|_, _| ()))?;
        clock.stop(1000, &mut clocks);
        let found = threads.run(|| client.decrypt(&answer))?;
        let promised = plan.figures().error;
        let away = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        worst = worst.max(away);
        if found.len() != wanted.len() || away > promised || away.is_nan() {
            wrong = Some(format!("not {} answers within the promised {promised:.1e}", wanted.len()));
        }
        if let Some(label) = labels.get(number) {
            let found = Label::Argmax.of(&found);
            right += usize::from(found == Some(*label));
            same += usize::from(found == Label::Argmax.of(&model.clear(examples)?));
        }
        number += 1;
    }
    let figures = plan.figures();
    let lots = (requests[0].len() / inputs).div_ceil(figures.images) as f64;
    let predicted = lots * (figures.seconds + if stored { 0.0 } else { figures.encoding });
    let median = |of: &crate::timing::Samples| of.median().unwrap_or_default();
    let (wall, cpu) = (median(&clocks.wall), median(&clocks.cpu));
    let line = Line::new(("models", name), (cpu, "s", MORE * predicted), wrong.map_or(Ok(()), Err), machine);
    let judged = labels.len() as f64;
    let of_labels =
        [("encrypted", judged), ("encrypted_right", right as f64 / judged), ("encrypted_same", same as f64 / judged)];
    Ok(line
        .with([
            ("predicted_s", predicted),
            ("encoding_s", if stored { 0.0 } else { figures.encoding }),
            ("wall_s", wall),
            ("keys_mb", key_bytes / 1e6),
            ("plan_mb", plan.memory(stored) as f64 / 1e6),
            ("refreshes", figures.refreshes as f64),
            ("log_n", f64::from(figures.params.rlwe.log_n)),
            ("levels", figures.input_level as f64),
            ("promised", figures.error),
            ("worst_error", worst),
        ])
        .with(clear.iter().copied())
        .with(of_labels.into_iter().filter(|_| judged > 0.0))
        .with(peak_rss_mb().map(|peak| ("peak_mb", peak)))
        .of(clocks.cpu))
}

/// Runs the suite: processor seconds of the server against what its plan predicts for one thread.
pub fn run(
    options: &Options,
    budget: Budget,
    threads: &Threads,
    machine: &Machine,
    lines: &mut Lines,
) -> Outcome<Vec<Line>> {
    let prices = sudare_session::machine::stored(None);
    let mut cases = Vec::new();
    for path in &options.file {
        cases.push(from_file(path, options.batch)?);
    }
    for path in &options.onnx {
        cases.push(from_onnx(path, options, (threads, &prices))?);
    }
    if cases.is_empty() {
        cases = built_in(&prices)?;
    }
    let mut all = Vec::new();
    for case in &cases {
        let line = measure(case, budget, threads, machine)?;
        lines.put(&line)?;
        all.push(line);
    }
    if options.file.is_empty() && options.onnx.is_empty() {
        for line in forests(budget, threads, machine, &prices)? {
            lines.put(&line)?;
            all.push(line);
        }
    }
    Ok(all)
}
