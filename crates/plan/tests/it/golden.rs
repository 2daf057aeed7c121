//! Two thousand requests and the programs that were planned for them, with keys, levels, sizes, work and promised errors. Client
//! and server work the figures of a plan out for themselves, so that a change of keys, levels or sizes is a new `PLAN_VERSION`.
//!
//! The first line of `tests/golden/corpus.txt` has the methods, every other one a request's number, its program and its figures. The figures of every program are
//! worked out again; whether a planner still finds the program is asked for some requests (`SUDARE_SOAK=1`: for all).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use sudare_expr::{Expr, InputSpec, Lines, Node, Operation, Shape};
use sudare_he::circuits::bootstrapping::BootstrapSet;
use sudare_he::ckks::ParamsLiteral;
use sudare_methods::products::candidates;
use sudare_methods::{KeyDemand, Method, ProductSpec, Requirements};
use sudare_plan::{CostModel, Goal, Planner, Program};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::work::Work;
use sudare_testkit::random::unit_at;

/// A difference in the twelfth digit is rounding's.
const DIGITS: f64 = 1e-11;
/// Products that are asked for.
const PRODUCTS: usize = 2_000;
/// Of so many requests the planner is asked for one.
const SEARCHED: usize = 40;

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/corpus.txt")
}

/// Products of all shapes: squares, rows, columns, what is long and what is wide, alone and in batches.
fn product(at: usize) -> Requirements {
    let unit = |salt: u64| (unit_at(salt, at, 0) + 1.0) / 2.0;
    let side = |salt: u64, most: f64| (unit(salt) * most).exp2().round() as usize;
    let pick = |salt: u64, of: &[f64]| of[((unit(salt) * of.len() as f64) as usize).min(of.len() - 1)];
    let (m, k, n) = match at % 4 {
        0 => [1 << (at / 4 % 10); 3].into(),
        1 => (side(1, 7.0), side(2, 7.0), side(3, 7.0)),
        2 => (side(1, 10.0), side(2, 5.0), side(3, 5.0)),
        _ => (side(1, 4.0), side(2, 10.0), side(3, 10.0)),
    };
    Requirements {
        shape: Shape { m, k, n, batch: pick(4, &[1.0, 1.0, 1.0, 2.0, 7.0, 64.0]) as usize },
        max_abs: [pick(5, &[1.0, 1.0, 8.0, 100.0]), pick(6, &[1.0, 0.5, 3.0])],
        error: pick(7, &[1e-2, 1e-3, 1e-4, 1e-5, 1e-8]),
        security: if at.is_multiple_of(7) { Security::Bits192 } else { Security::Bits128 },
        fresh: [true; 2],
        decrypt_next: !at.is_multiple_of(5),
    }
}

/// What the methods propose for a product, the cheapest of each by its name.
fn proposed(req: &Requirements) -> BTreeMap<String, ProductSpec> {
    let (model, mut best) = (CostModel::default(), BTreeMap::<String, (f64, ProductSpec)>::new());
    for spec in candidates(req) {
        let outline = spec.plan().unwrap();
        let price = model.price(&outline.figures(req.max_abs).unwrap().work, spec.params.log_n, 1);
        if best.get(outline.name()).is_none_or(|(known, _)| price < *known) {
            best.insert(outline.name().into(), (price, spec));
        }
    }
    best.into_iter().map(|(name, (_, spec))| (name, spec)).collect()
}

/// Of the methods that serve a product each has its turn.
fn chosen(at: usize) -> Option<ProductSpec> {
    let all = proposed(&product(at));
    let count = all.len();
    all.into_values().nth(at % count.max(1))
}

/// A short name of keys, by all of them.
fn keys(demand: &KeyDemand) -> String {
    let text = serde_json::to_string(&demand.galois).unwrap();
    let relin = demand.relin.map_or("-".into(), |level| level.to_string());
    format!("{relin},{},{}", demand.galois.len(), &blake3::hash(text.as_bytes()).to_hex()[..10])
}

/// Numbers that are exact; passes of all kinds together.
fn work(w: &Work) -> String {
    let (pass, pass_wide) = (w.pass + w.term + w.sums, w.pass_wide + w.term_wide + w.sums_wide);
    let all = [w.ntt, w.ntt_wide, pass, pass_wide, w.mac + w.mac_narrow, w.key_bytes, w.operand_bytes, w.key_switches];
    all.map(|x| x.to_string()).join(",")
}

/// Exact columns, and numbers to twelve digits.
type Figures = (String, Vec<f64>);

fn product_figures(req: &Requirements, spec: &ProductSpec) -> Figures {
    let f = spec.plan().unwrap().figures(req.max_abs).unwrap();
    let c = f.counters.map_or(String::new(), |c| {
        [c.add, c.rot, c.cmult, c.mult, c.relin, c.key_switches].map(|x| x.to_string()).join(",")
    });
    let sizes = [f.ciphertexts as u64, f.parts as u64, f.level as u64, f.table_bytes, f.peak_bytes];
    (
        format!("{} {} {c} {}", keys(&f.keys), sizes.map(|x| x.to_string()).join(","), work(&f.work)),
        vec![f.scale, f.error],
    )
}

fn goal_figures(goal: &Goal, program: &Program) -> Figures {
    let figures = program.with_figures(goal, |figures| {
        let mut sizes = String::new();
        for size in goal.ends().filter_map(|node| figures.size(node)) {
            write!(sizes, "{},{},{};", size.count, size.parts, size.level).unwrap();
        }
        let refreshed = figures.refreshes().map_or(String::new(), |r| format!("{:?}", r.places).replace(' ', ""));
        let exact = format!("{} {sizes} {refreshed} {}", keys(&figures.keys()), figures.table_bytes());
        let w = figures.work();
        (
            exact,
            vec![
                w.ntt,
                w.pass + w.term + w.sums,
                w.mac + w.mac_narrow,
                w.key_bytes,
                w.operand_bytes,
                w.key_switches,
                figures.error(),
            ],
        )
    });
    figures.unwrap()
}

/// Expressions: real and integers, alone and with bootstraps, and a table.
fn goals() -> Vec<(Goal, bool)> {
    let x = |name: &str, shape| InputSpec::new(name, shape, 1.0);
    let int = |name: &str, shape| InputSpec::integers(name, shape, 1000);
    let two = |shapes: [(usize, usize); 2]| vec![x("A", shapes[0]), x("B", shapes[1])];
    let of = |inputs: Vec<InputSpec>, ops: Vec<Node>| {
        let count = inputs.len();
        let nodes: Vec<Node> = (0..count).map(Node::input).chain(ops).collect();
        let last = nodes.len() - 1;
        Expr::new(inputs, nodes, last).unwrap()
    };
    let mut exprs = Vec::new();
    for (m, k, n) in
        [(3, 4, 5), (16, 16, 16), (40, 30, 20), (64, 8, 1), (7, 64, 2), (12, 5, 33), (32, 32, 8), (100, 3, 3)]
    {
        let shapes = [(m, k), (k, n)];
        exprs.push(of(two(shapes), vec![Node::new(Operation::Matmul, &[0, 1]), Node::new(Operation::Mul, &[2, 2])]));
        exprs.push(of(
            two(shapes),
            vec![Node::new(Operation::Matmul, &[0, 1]), Node::new(Operation::Sum { axis: 0 }, &[2])],
        ));
        exprs.push(of(
            two([(m, n), (m, n)]),
            vec![Node::new(Operation::Mul, &[0, 1]), Node::new(Operation::Sub, &[2, 0])],
        ));
        exprs.push(of(
            two([(m, n), (m, n)]),
            vec![Node::new(Operation::Transpose, &[0]), Node::new(Operation::Matmul, &[2, 1])],
        ));
        let lines = Lines { start: 1, step: 1, count: m - 2, at: 0, stride: 1, size: m - 2 };
        exprs.push(of(
            two([(m, n), (m, n)]),
            vec![
                Node::new(Operation::Mul, &[0, 1]),
                Node::new(Operation::Take { axis: 0, lines }, &[2]),
                Node::new(Operation::Scale { by: 0.3 }, &[3]),
                Node::new(Operation::Shift { by: 2.0 }, &[4]),
            ],
        ));
        exprs.push(of(
            two([(1, n), (m, n)]),
            vec![Node::new(Operation::Repeat { axis: 0, size: m }, &[0]), Node::new(Operation::Mul, &[2, 1])],
        ));
        let ints = vec![int("A", (m, k)), int("B", (k, n))];
        exprs.push(of(ints.clone(), vec![Node::new(Operation::Matmul, &[0, 1])]));
        exprs.push(of(
            ints,
            vec![
                Node::new(Operation::Matmul, &[0, 1]),
                Node::new(Operation::Scale { by: 3.0 }, &[2]),
                Node::new(Operation::Neg, &[3]),
            ],
        ));
    }
    let mut goals = Vec::new();
    for expr in exprs {
        let errors: &[f64] = if expr.is_exact() { &[0.0] } else { &[1e-2, 1e-3, 1e-4] };
        for error in errors {
            for batch in [1, 3] {
                goals.push((Goal { batch, ..Goal::new(expr.clone(), *error) }, false));
            }
        }
    }
    for count in [4, 12] {
        let ops = (0..count).flat_map(|i| {
            let last = 1 + 2 * i;
            [Node::new(Operation::Mul, &[last, 0]), Node::new(Operation::Bounded { max_abs: 1.0 }, &[last + 1])]
        });
        let expr = of(two([(9, 9), (9, 9)]), ops.collect());
        goals.push((Goal { security: Security::Insecure, ..Goal::new(expr, 1e-2) }, true));
    }
    goals.push((Goal::moments(1000, vec![1.0, 2.0, 8.0]).unwrap(), false));
    goals
}

/// The program that a planner finds.
fn planned(goal: &Goal, bootstrapped: bool) -> Program {
    let planner = Planner { memory: 8 << 30, ..Planner::new(CostModel::default()) };
    let planner = match bootstrapped {
        true => Planner { bootstrap: vec![BootstrapSet::A], method: Some("bootstrapped".into()), ..planner },
        false => planner,
    };
    planner.plan(goal).unwrap().program().clone()
}

fn line(number: usize, program: &str, (exact, near): &Figures) -> String {
    let near: Vec<String> = near.iter().map(|x| format!("{x:.12e}")).collect();
    format!("{number}\t{program}\t{exact}\t{}", near.join(" "))
}

/// Methods by their numbers, in the order in which they are met.
#[derive(Default)]
struct Methods(Vec<Method>);

impl Methods {
    fn number(&mut self, method: &Method) -> usize {
        self.0.iter().position(|known| known == method).unwrap_or_else(|| {
            self.0.push(method.clone());
            self.0.len() - 1
        })
    }

    /// A product but for what its request says: the method's number, log2 N and Δ, primes, limbs of a digit.
    fn written(&mut self, spec: &ProductSpec) -> String {
        let primes = |bits: &[u32]| bits.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let p = &spec.params;
        let [q, special] = [primes(&p.q_bits), primes(&p.p_bits)];
        format!("{};{};{};{q};{special};{}", self.number(&spec.method), p.log_n, p.log_scale, p.digit_limbs)
    }

    fn read(&self, req: &Requirements, text: &str) -> ProductSpec {
        let columns: Vec<&str> = text.split(';').collect();
        let [method, log_n, log_scale, q, special, digit] = columns[..] else { panic!("{text} is no product") };
        let primes = |text: &str| text.split(',').filter_map(|bits| bits.parse().ok()).collect();
        let rlwe = sudare_rlwe::params::ParamsLiteral {
            log_n: log_n.parse().unwrap(),
            q_bits: primes(q),
            p_bits: primes(special),
            digit_limbs: digit.parse().unwrap(),
            secret: SecretDistribution::Ternary,
            security: req.security,
        };
        let params = ParamsLiteral { rlwe, log_scale: log_scale.parse().unwrap() };
        ProductSpec { shape: req.shape, method: self.0[method.parse::<usize>().unwrap()].clone(), params }
    }
}

/// Seconds that this thread has worked, where the system tells.
fn worked() -> f64 {
    // The system counts at ticks of its own, and when a thread steps aside.
    std::thread::yield_now();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|ns| ns.parse().ok()).map_or(0.0, |ns: f64| ns * 1e-9)
}

#[test]
fn plans_are_as_they_were() {
    let stored = std::fs::read_to_string(file()).unwrap();
    let (methods, lines) = stored.split_once('\n').unwrap();
    let mut methods = Methods(serde_json::from_str(methods).unwrap());
    let (goals, soak) = (goals(), std::env::var_os("SUDARE_SOAK").is_some());
    let mut count = 0;
    for (index, text) in lines.lines().enumerate() {
        let columns: Vec<&str> = text.split('\t').collect();
        let [number, program, exact, near] = columns[..] else { panic!("line {index} has other columns: {text}") };
        let number: usize = number.parse().unwrap();
        let search = soak || index % SEARCHED == 0;
        let (found, again) = match goals.get(number.wrapping_sub(PRODUCTS)) {
            None => {
                let spec = methods.read(&product(number), program);
                let again = search.then(|| methods.written(&chosen(number).unwrap()));
                (product_figures(&product(number), &spec), again)
            }
            Some((goal, bootstrapped)) => {
                let read: Program = serde_json::from_str(program).unwrap();
                let again = search.then(|| serde_json::to_string(&planned(goal, *bootstrapped)).unwrap());
                (goal_figures(goal, &read), again)
            }
        };
        assert_eq!(found.0, exact, "line {index}: {program}");
        let near: Vec<f64> = near.split(' ').map(|x| x.parse().unwrap()).collect();
        let close = |(x, y): (&f64, &f64)| (x - y).abs() <= DIGITS * x.abs().max(y.abs());
        assert!(
            near.len() == found.1.len() && near.iter().zip(&found.1).all(close),
            "line {index}: {program}\n{found:?}\n{text}"
        );
        assert!(again.is_none_or(|again| again == program), "line {index}: another program");
        count += 1;
    }
    assert!(count >= 2_000, "{count} requests");
}

/// Also says which requests took longest, in processor time.
#[test]
#[ignore = "writes what the test above reads"]
fn write() {
    let (mut methods, mut lines, mut times) = (Methods::default(), Vec::new(), Vec::new());
    for at in 0..PRODUCTS {
        let (req, before) = (product(at), worked());
        let Some(spec) = chosen(at) else { continue };
        times.push((worked() - before, format!("{:?} {:?} ±{:e}", req.shape, req.max_abs, req.error)));
        lines.push(line(at, &methods.written(&spec), &product_figures(&req, &spec)));
    }
    for (at, (goal, bootstrapped)) in goals().into_iter().enumerate() {
        let before = worked();
        let program = planned(&goal, bootstrapped);
        times.push((worked() - before, format!("{} ±{:e} ×{}", goal.expression, goal.error, goal.batch)));
        let text = serde_json::to_string(&program).unwrap();
        lines.push(line(PRODUCTS + at, &text, &goal_figures(&goal, &program)));
    }
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mean = times.iter().map(|(seconds, _)| seconds).sum::<f64>() / times.len() as f64;
    println!("{} requests, {:.1} ms each", lines.len(), mean * 1e3);
    times.iter().take(12).for_each(|(seconds, what)| println!("{:.1} ms: {what}", seconds * 1e3));
    let methods = serde_json::to_string(&methods.0).unwrap();
    std::fs::write(file(), format!("{methods}\n{}\n", lines.join("\n"))).unwrap();
}
