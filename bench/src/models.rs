//! Compiled models: seconds and memory beside what their plans predict, answers against the network in the clear.

use crate::Outcome;
use crate::limits::Line;
use crate::lines::Lines;
use crate::machine::{Machine, peak_rss_mb, reset_peak_rss};
use crate::timing::{Budget, Clock, Clocks};
use clap::Args;
use std::path::PathBuf;
use sudare_models::forest::{self, Forest, Node};
use sudare_models::{Answer, Client, Dense, Function, Goal, Label, Model, Network, Server};
use sudare_plan::CostModel;
use sudare_ring::Threads;
use sudare_rlwe::work::Work;
use sudare_testkit::Random;

/// How far measured seconds may lie over predicted ones.
const MORE: f64 = 1.3;

/// Options of the suite.
#[derive(Debug, Args)]
pub struct Options {
    /// Files of compiled models, as `sudare.compile` saves them, instead of the built-in ones with random weights.
    #[arg(long)]
    file: Vec<PathBuf>,
    /// Examples that come together, with a file.
    #[arg(long, default_value_t = 1)]
    batch: usize,
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

/// A case: its name, the model, and examples.
type Case = (&'static str, Model, Vec<f64>);

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
        let examples: Vec<f64> = random.units(sizes[0] * batch.max(16)).iter().map(|x| x.abs()).collect();
        let goal = Goal { batch, degree, label: Label::Numbers, error: 1e-2, ..Goal::default() };
        let price = |work: &Work, log_n: u32| prices.price(work, log_n, 1);
        let model = Model::compile(&network, &examples[..16 * sizes[0]], &goal, &price)?;
        out.push((name, model, examples[..sizes[0] * batch].to_vec()));
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
    Ok(("the model of a file", model, examples))
}

/// Runs a server again and again, and looks at its answers.
fn repeated(
    budget: Budget,
    (wanted, promised): (&[f64], f64),
    run: impl Fn() -> Outcome<Answer>,
    read: impl Fn(&Answer) -> Outcome<Vec<f64>>,
) -> Outcome<(Clocks, Option<String>)> {
    let (mut clocks, mut wrong) = (Clocks::default(), None);
    let begun = std::time::Instant::now();
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

/// Measures a model's server on one request.
fn measure((name, model, examples): &Case, budget: Budget, threads: &Threads, machine: &Machine) -> Outcome<Line> {
    let (plan, inputs) = (model.plan(), model.plan().inputs());
    let client = Client::new(plan)?;
    let request = threads.run(|| client.encrypt(examples))?;
    let keys = threads.run(|| client.eval_keys())?;
    let (key_bytes, stored) = (keys.bytes() as f64, plan.stores());
    reset_peak_rss();
    let server = threads.run(|| Server::new(model, keys, stored))?;
    let wanted: Vec<f64> =
        examples.chunks(inputs).map(|x| model.polynomial(x)).collect::<Result<Vec<_>, _>>()?.concat();
    let run = || Ok(threads.run(|| server.run(&request, &|_, _| ()))?);
    let (clocks, wrong) = repeated(budget, (&wanted, plan.figures().error), run, |answer| Ok(client.decrypt(answer)?))?;
    let figures = plan.figures();
    let lots = (examples.len() / inputs).div_ceil(figures.images) as f64;
    let predicted = lots * (figures.seconds + if stored { 0.0 } else { figures.encoding });
    let median = |of: &crate::timing::Samples| of.median().unwrap_or_default();
    let (wall, cpu) = (median(&clocks.wall), median(&clocks.cpu));
    let line = Line::new(("models", name), (cpu, "s", MORE * predicted), wrong.map_or(Ok(()), Err), machine);
    Ok(line
        .with([
            ("predicted_s", predicted),
            ("wall_s", wall),
            ("keys_mb", key_bytes / 1e6),
            ("plan_mb", plan.memory(stored) as f64 / 1e6),
            ("refreshes", figures.refreshes as f64),
            ("log_n", f64::from(figures.params.rlwe.log_n)),
            ("levels", figures.input_level as f64),
        ])
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
    let cases = match options.file.is_empty() {
        true => built_in(&prices)?,
        false => options.file.iter().map(|path| from_file(path, options.batch)).collect::<Outcome<Vec<_>>>()?,
    };
    let mut all = Vec::new();
    for case in &cases {
        let line = measure(case, budget, threads, machine)?;
        lines.put(&line)?;
        all.push(line);
    }
    if options.file.is_empty() {
        for line in forests(budget, threads, machine, &prices)? {
            lines.put(&line)?;
            all.push(line);
        }
    }
    Ok(all)
}
