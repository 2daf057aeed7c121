//! A plan for people to read.

use super::cost::CostModel;
use super::planner::bytes;
use super::summary::KeyLine;
use super::{Engine, Plan, ProgramFigures};
use std::fmt::{self, Write};
use sudare_expr::InputSpec;
use sudare_rlwe::security::max_log_qp;
use sudare_rlwe::work::Work;

/// Operations whose cost is told, and the least share in all that is.
const COSTS_SHOWN: usize = 3;
const LEAST_SHARE: f64 = 0.1;
/// Rotation steps that are written out.
const STEPS_SHOWN: usize = 8;

/// A bound for people.
pub fn number(x: f64) -> String {
    let plain = x.to_string();
    if plain.len() <= 7 && (1e-3..1e6).contains(&x) { plain } else { format!("{x:.1e}") }
}

/// Seconds for people.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.3} s", s),
        s if s < 120.0 => format!("{s:.1} s"),
        s => format!("{:.1} min", s / 60.0),
    }
}

/// `60 + 3 × 40`.
fn primes(bits: &[u32]) -> String {
    let mut out = String::new();
    for run in bits.chunk_by(|a, b| a == b) {
        if !out.is_empty() {
            out.push_str(" + ");
        }
        let _ = match run.len() {
            1 => write!(out, "{}", run[0]),
            n => write!(out, "{n} × {}", run[0]),
        };
    }
    out
}

fn key_list(keys: &[KeyLine]) -> String {
    let rotations: Vec<&KeyLine> = keys.iter().filter(|k| k.element != 0).collect();
    let mut out = String::from(if keys.len() > rotations.len() { "relinearisation" } else { "" });
    if rotations.is_empty() {
        return if out.is_empty() { "none".into() } else { out };
    }
    if !out.is_empty() {
        out.push_str(", ");
    }
    let name = |k: &&KeyLine| k.step.map_or(format!("X^{}", k.element), |s| s.to_string());
    let shown: Vec<String> = rotations.iter().take(STEPS_SHOWN).map(name).collect();
    let more = if rotations.len() > STEPS_SHOWN { ", …" } else { "" };
    let _ = write!(out, "{} rotations ({}{more})", rotations.len(), shown.join(", "));
    out
}

/// Ciphertexts that are refreshed: two real ones as one complex one, and what is left over alone.
fn refreshed(count: usize, in_pairs: bool) -> String {
    if !in_pairs {
        return format!("{count} ciphertext{}", if count == 1 { "" } else { "s" });
    }
    let pairs = |n: usize| if n == 1 { "a pair".into() } else { format!("{n} pairs") };
    match (count / 2, count % 2) {
        (0, _) => "1 ciphertext".into(),
        (n, 0) => format!("{count} ciphertexts as {}", pairs(n)),
        (n, _) => format!("{count} ciphertexts as {} and one alone", pairs(n)),
    }
}

/// The scale, where there is one.
fn scale(plan: &Plan) -> String {
    match plan.engine() {
        Engine::Ckks(engine) => format!(", scale 2^{}", engine.params().literal().log_scale),
        Engine::Exact(_) | Engine::Arrays(_) => String::new(),
    }
}

/// Shares of operations in all that is computed; none where a method computes the whole at once.
fn shares(figures: &dyn ProgramFigures, log_n: u32) -> Vec<f64> {
    let model = CostModel::default();
    let whole = model.price(&figures.work(), log_n, 1);
    let prices = figures.costs().iter().map(|work| model.price(work, log_n, 1));
    let each: Vec<f64> = prices.collect();
    let all: f64 = each.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let refreshes = if figures.refreshes().is_some() { (all / whole).min(1.0) } else { 1.0 };
    each.into_iter().map(|price| refreshes * price / all).collect()
}

/// An operation of a plan, for pictures.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationLine {
    /// Its value in words.
    pub text: String,
    /// Numbers of its operands.
    pub operands: Vec<usize>,
    /// The level of its value, where the plan has it.
    pub level: Option<usize>,
    /// The bound on the error of its value, where the plan has one.
    pub error: Option<f64>,
    /// Its share in the time of all, where operations are computed one by one.
    pub share: Option<f64>,
}

impl Plan {
    /// The operations, inputs among them, in the order of evaluation.
    pub fn operations(&self) -> Vec<OperationLine> {
        let (expr, figures) = (self.expression(), self.engine().figures());
        let shares = shares(figures, figures.literal().log_n);
        let line = |(at, node): (usize, &sudare_expr::Node)| OperationLine {
            text: expr.text(at),
            operands: node.operands.clone(),
            level: figures.size(at).map(|size| size.level),
            error: figures.node_error(at),
            share: shares.get(at).copied(),
        };
        expr.nodes().iter().enumerate().map(line).collect()
    }
}

/// The operations that cost most, and their shares in all.
fn dearest(figures: &dyn ProgramFigures, log_n: u32) -> Vec<(usize, f64)> {
    let mut shares: Vec<(usize, f64)> = shares(figures, log_n).into_iter().enumerate().collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares.retain(|(_, share)| *share >= LEAST_SHARE);
    shares.truncate(COSTS_SHOWN);
    shares
}

/// Bounds of an input for people.
fn bounds(input: &InputSpec) -> String {
    match (input.integers, input.columns.as_slice()) {
        (Some(bound), _) => format!("integers up to {bound}"),
        (_, []) => format!("up to {}", number(input.max_abs)),
        (_, columns) => {
            let least = columns.iter().copied().fold(f64::INFINITY, f64::min);
            format!("with columns up to {} to {}", number(least), number(input.max_abs))
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (goal, s, params) = (self.goal(), self.summary(), self.params());
        let literal = params.literal();
        let mut row = |name: &str, value: String| writeln!(f, "  {name:<12} {value}");
        let inputs: Vec<String> = goal
            .expression
            .inputs()
            .iter()
            .map(|i| {
                let kind = if i.plain { "plain" } else { "encrypted" };
                format!("{} {}×{} {} {kind}", i.name, i.rows, i.cols, bounds(i))
            })
            .collect();
        row("computes", format!("{} with {}", goal.expression, inputs.join(", ")))?;
        if goal.batch > 1 {
            row("batch", format!("{} at once", goal.batch))?;
        }
        let figures = self.engine().figures();
        row(
            "error",
            match (self.is_exact(), goal.expression.as_moments()) {
                (true, _) => match goal.modulus {
                    Some(modulus) => format!("none: the result is exact modulo {modulus}"),
                    None => "none: the result is exact".into(),
                },
                (_, Some(_)) => format!("{:.1e} of the columns' bounds", s.predicted_error),
                _ => format!("{:.1e} predicted, {:.1e} wanted", s.predicted_error, goal.error),
            },
        )?;
        if let Some(policy) = self.release() {
            let (results, bits, private) = (policy.releases(), policy.security_bits(), figures.error());
            let plural = if results == 1 { "" } else { "s" };
            let before =
                if self.sharing().is_none() { format!("; {private:.1e} before its noise") } else { String::new() };
            row("release", format!("{results} result{plural}, {bits} bits{before}"))?;
        }
        if let Some(sharing) = self.sharing() {
            row("key", format!("{} parties, any {} of whom decrypt", sharing.parties, sharing.threshold))?;
        }
        let limit = max_log_qp(literal.log_n, literal.secret, goal.security).filter(|l| *l < u32::MAX);
        let of = limit.map_or(String::new(), |l| format!(" of {l}"));
        row(
            "scheme",
            format!(
                "{}, N = {}, log QP = {:.0}{of}, {}-bit security, depth {}",
                figures.scheme(),
                params.degree(),
                s.log_qp,
                s.security_bits,
                s.depth
            ),
        )?;
        let special = if literal.p_bits.is_empty() { String::new() } else { format!(" | {}", primes(&literal.p_bits)) };
        row("primes", format!("{}{special} bits{}", primes(&literal.q_bits), scale(self)))?;
        for (name, value) in figures.details() {
            row(name, value)?;
        }
        row("method", format!("{}, {:.0} key switches", s.method, s.key_switches))?;
        for a in goal.expression.approximations() {
            let ends = format!("[{}, {}]", a.low, a.high);
            row("polynomial", format!("on {ends}, within {:.1e} of its function there", a.error))?;
        }
        for (node, share) in dearest(figures, literal.log_n) {
            let op = goal.expression.nodes()[node].operation.name();
            let hint = figures.cheaper(goal, node).map_or(String::new(), |hint| format!("; {hint}"));
            row("costs", format!("{:.0} % operation {node} ({op}){hint}", 100.0 * share))?;
        }
        if let Some(r) = figures.refreshes() {
            let (places, plural) = (r.places.len(), if r.places.len() == 1 { "" } else { "es" });
            let sizes = format!("keys {}, prepared {}", bytes(r.key_bytes), bytes(r.prepared_bytes));
            row("bootstrap", format!("{places} refresh{plural} by set {}: {sizes}", r.set))?;
            let model = CostModel::default();
            let share = |work: Work| model.price(&work, literal.log_n, 1);
            let whole = share(figures.work());
            for (node, count) in &r.places {
                let seconds = s.seconds * share(r.work.of(*count)) / whole;
                let level = figures.size(*node).map_or(0, |size| size.level);
                let op = goal.expression.nodes()[*node].operation.name();
                row(
                    "",
                    format!(
                        "after operation {node} ({op}): {} to level {level}, about {}",
                        refreshed(*count, r.work.pairs()),
                        time(seconds)
                    ),
                )?;
            }
        }
        row(
            "keys",
            format!(
                "{}: {} in memory, {} as a file",
                key_list(&s.keys),
                bytes(s.key_bytes()),
                bytes(s.key_wire_bytes())
            ),
        )?;
        for o in &s.operands {
            let text = match o.ciphertexts {
                0 => "plain".into(),
                n => format!(
                    "{n} ciphertext{} of level {}, {} in memory, {} as a file{}",
                    if n == 1 { "" } else { "s" },
                    o.level,
                    bytes(o.bytes),
                    bytes(o.wire_bytes),
                    o.error.map_or(String::new(), |e| format!(", up to {} ± {e:.1e}", number(o.max_abs)))
                ),
            };
            row(&o.name, text)?;
        }
        row("time", format!("about {} of the server", time(s.seconds)))?;
        row("memory", bytes(s.memory))?;
        if self.considered().len() > 1 {
            writeln!(
                f,
                "  considered   {:<14} {:>7} {:>7} {:>9} {:>9} {:>9}",
                "method", "N", "log QP", "keys", "time", "error"
            )?;
            for c in self.considered() {
                let n = 1u64.checked_shl(c.log_n).unwrap_or(0);
                writeln!(
                    f,
                    "               {:<14} {n:>7} {:>7} {:>9} {:>9} {:>9}  {}",
                    c.method,
                    c.log_qp,
                    bytes(c.key_bytes),
                    time(c.seconds),
                    format!("{:.1e}", c.error),
                    c.verdict
                )?;
            }
        }
        write!(f, "  plan         {}", self.hash())
    }
}
