//! Figures of a plan: keys, sizes, time, memory, error.

use super::Goal;
use super::program::{Engine, NodeSize, ProgramFigures};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use sudare_expr::InputSpec;
use sudare_methods::sizing;
use sudare_rlwe::Params;
use sudare_rlwe::keys::KeySwitchKey;
use sudare_rlwe::params::ParamsLiteral;

/// What a server needs besides keys, ciphertexts and a method's own tables: tables of the parameters and scratch.
const BASE_MEMORY: u64 = 64 << 20;

/// Most bytes of a text about a program.
const MAX_TEXT: usize = 200;

/// A key that the server needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyLine {
    /// Galois element; 0 for the relinearisation key.
    pub element: u64,
    /// Slots by which it rotates to the left, if it is a rotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<i64>,
    /// Highest level at which it is used.
    pub level: usize,
    /// Bytes on the wire, seeded.
    pub wire_bytes: u64,
    /// Bytes in memory.
    pub bytes: u64,
}

/// An input or the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperandLine {
    /// Its name; `result` for the result.
    pub name: String,
    /// Rows and columns.
    pub shape: (usize, usize),
    /// Number of ciphertexts for a whole batch; none if the server knows it.
    pub ciphertexts: usize,
    /// Polynomials of each: two, or the three of a result that is not relinearised.
    pub parts: usize,
    /// Level.
    pub level: usize,
    /// Bytes of all of them in memory.
    pub bytes: u64,
    /// Bytes of all of them as they are sent; inputs under the secret key, seeded, which is half of a
    /// public-key encryption's.
    pub wire_bytes: u64,
    /// Bound on the absolute values of its elements.
    pub max_abs: f64,
    /// Bound on the error of its elements: what is promised for the result, nothing for inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
}

/// A program that was priced, or why it was not taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Considered {
    /// Method.
    pub method: String,
    /// log2 N.
    pub log_n: u32,
    /// log2 of the modulus Q·P, rounded.
    pub log_qp: u32,
    /// Bytes of its keys in memory.
    pub key_bytes: u64,
    /// Bytes of memory while it runs.
    pub memory: u64,
    /// Bytes of its results as they are sent; older files have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<u64>,
    /// Estimated seconds.
    pub seconds: f64,
    /// Predicted error.
    pub error: f64,
    /// Whether it was taken, or why not.
    pub verdict: String,
}

impl Considered {
    /// Whether a file's line can be one that a planner wrote; it is shown as it stands.
    pub(super) fn plausible(&self) -> bool {
        let plain = |text: &str| text.len() <= MAX_TEXT && !text.chars().any(char::is_control);
        let positive = |x: f64| x.is_finite() && x >= 0.0;
        plain(&self.method)
            && plain(&self.verdict)
            && positive(self.seconds)
            && positive(self.error)
            && self.log_n <= 17
    }
}

/// Figures of a plan. All but the time follow from the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The parameters' hash.
    pub params: String,
    /// Method.
    pub method: String,
    /// log2 of the modulus Q·P.
    pub log_qp: f64,
    /// Security that is reached, in bits.
    pub security_bits: u32,
    /// Levels.
    pub depth: usize,
    /// Keys.
    pub keys: Vec<KeyLine>,
    /// Inputs and result.
    pub operands: Vec<OperandLine>,
    /// Key switches of one run.
    pub key_switches: f64,
    /// Estimated seconds of one run.
    pub seconds: f64,
    /// Bytes of memory of the server while it runs.
    pub memory: u64,
    /// Predicted largest error of a result element; of a released one, if the goal has releases.
    pub predicted_error: f64,
}

/// Bytes of a polynomial over Q_level in memory.
fn poly_bytes(literal: &ParamsLiteral, level: usize) -> u64 {
    (literal.q_bits.len().min(level + 1) as u64 * 8) << literal.log_n
}

/// Bytes of a key-switching key in memory and, seeded, on the wire.
pub(super) fn key_bytes(literal: &ParamsLiteral, level: usize) -> (u64, u64) {
    let digits = (level + 1).div_ceil(literal.digit_limbs.max(1)) as u64;
    (KeySwitchKey::bytes_at(literal, level) as u64, digits * sizing::sent_bytes(literal, level, true))
}

/// Steps of the Galois elements that are rotations.
fn steps(params: &Params) -> HashMap<u64, i64> {
    let (order, slots) = (2 * params.degree() as u64, params.degree() as i64 / 2);
    let mut element = 1;
    (0..slots)
        .map(|i| {
            let here = (element, if i > slots / 2 { i - slots } else { i });
            element = element * 5 % order;
            here
        })
        .collect()
}

impl Summary {
    pub(super) fn new(goal: &Goal, engine: &Engine) -> Self {
        let (params, figures) = (engine.params(), engine.figures());
        let (literal, demand, error) = (params.literal(), figures.keys(), goal.promised_error(figures.error()));
        let steps = steps(params);
        let line = |element: u64, level: usize| {
            let (bytes, wire_bytes) = key_bytes(literal, level);
            KeyLine { element, step: steps.get(&element).copied(), level, wire_bytes, bytes }
        };
        let relin = demand.relin.map(|level| line(0, level));
        let keys = relin.into_iter().chain(demand.galois.iter().map(|(g, level)| line(*g, *level))).collect();
        Self {
            params: params.hash().to_string(),
            method: figures.method().to_owned(),
            log_qp: params.log_qp(),
            security_bits: params.security().bits(),
            depth: params.max_level(),
            keys,
            operands: operands(goal, figures, error),
            key_switches: figures.work().key_switches,
            seconds: 0.0,
            memory: memory(goal, figures),
            predicted_error: error,
        }
    }

    /// Bytes of all keys in memory.
    pub fn key_bytes(&self) -> u64 {
        self.keys.iter().map(|k| k.bytes).sum()
    }

    /// Bytes of all keys on the wire.
    pub fn key_wire_bytes(&self) -> u64 {
        self.keys.iter().map(|k| k.wire_bytes).sum()
    }
}

/// Inputs and result.
fn operands(goal: &Goal, figures: &dyn ProgramFigures, error: f64) -> Vec<OperandLine> {
    let expr = &goal.expression;
    let line = |name: &str, node: usize, input: Option<&InputSpec>| {
        let NodeSize { count, parts, level } = figures.size(node).unwrap_or(NodeSize { count: 0, parts: 2, level: 0 });
        let ciphertexts = if input.is_some_and(|i| i.plain) { 0 } else { count };
        let (memory, wire) =
            (poly_bytes(figures.literal(), level), sizing::sent_bytes(figures.literal(), level, false));
        // A fresh ciphertext under the secret key travels as one polynomial and a seed.
        let sent = if input.is_some() { 1 } else { parts as u64 };
        OperandLine {
            name: name.to_owned(),
            shape: expr.info(node).shape,
            ciphertexts,
            parts,
            level,
            bytes: memory.saturating_mul((parts * count) as u64),
            wire_bytes: wire.saturating_mul(sent * ciphertexts as u64),
            max_abs: expr.info(node).max_abs,
            error: input.is_none().then_some(error),
        }
    };
    let inputs = expr.inputs().iter().enumerate();
    let mut all: Vec<OperandLine> =
        inputs.map(|(i, input)| line(&input.name, expr.node_of_input(i), Some(input))).collect();
    all.extend(expr.results().enumerate().map(|(at, node)| match at {
        0 => line("result", node, None),
        _ => line(&format!("result {}", at + 1), node, None),
    }));
    all
}

/// Bytes of all keys in memory.
pub(super) fn all_key_bytes(figures: &dyn ProgramFigures) -> u64 {
    let (literal, demand) = (figures.literal(), figures.keys());
    let levels = demand.relin.into_iter().chain(demand.galois.iter().map(|(_, level)| *level));
    let bootstrap = figures.refreshes().map_or(0, |r| r.key_bytes);
    levels.map(|level| key_bytes(literal, level).0).sum::<u64>() + bootstrap
}

/// Bytes of all results as they are sent.
pub(super) fn result_bytes(goal: &Goal, figures: &dyn ProgramFigures) -> u64 {
    let sizes = goal.expression.results().filter_map(|node| figures.size(node));
    let sent = |size: NodeSize| {
        let one = sizing::sent_bytes(figures.literal(), size.level, false);
        one.saturating_mul((size.parts * size.count) as u64)
    };
    sizes.map(sent).fold(0, u64::saturating_add)
}

/// Bytes of memory of the server while it runs: ciphertexts, keys and tables. Where a program was not simulated,
/// operands and results and half again before they are relinearised stand for its ciphertexts.
pub(super) fn memory(goal: &Goal, figures: &dyn ProgramFigures) -> u64 {
    let moving = || -> u64 {
        goal.ends()
            .filter_map(|node| figures.size(node))
            .map(|size| {
                let one = poly_bytes(figures.literal(), size.level);
                let bytes = one.saturating_mul((size.parts * size.count) as u64);
                bytes.saturating_add(bytes / 2)
            })
            .fold(0, u64::saturating_add)
    };
    let held = figures.peak_bytes().unwrap_or_else(moving);
    [BASE_MEMORY, all_key_bytes(figures), figures.table_bytes()].into_iter().fold(held, u64::saturating_add)
}
