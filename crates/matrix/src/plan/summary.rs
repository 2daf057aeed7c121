//! Figures of a plan: keys, sizes, time, memory, error.

use super::Goal;
use super::program::Engine;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use sudare_he::ckks::{Params, ParamsLiteral};
use sudare_rlwe::keys::KeySwitchKey;

/// What a server needs besides keys and ciphertexts: tables and scratch.
const BASE_MEMORY: u64 = 64 << 20;

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
    /// Level.
    pub level: usize,
    /// Bytes of all of them in memory.
    pub bytes: u64,
    /// Bytes of all of them on the wire; seeded inputs half of a public-key encryption's.
    pub wire_bytes: u64,
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
    /// Estimated seconds.
    pub seconds: f64,
    /// Predicted error.
    pub error: f64,
    /// Whether it was taken, or why not.
    pub verdict: String,
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

/// Bytes of a residue on the wire.
fn width(bits: u32) -> u64 {
    u64::from(bits.div_ceil(8))
}

/// Bytes of a polynomial in memory and on the wire.
fn poly_bytes(literal: &ParamsLiteral, level: usize, special: bool) -> (u64, u64) {
    let n = 1u64 << literal.log_n;
    let p: &[u32] = if special { &literal.p_bits } else { &[] };
    let bits = literal.q_bits.iter().take(level + 1).chain(p);
    bits.fold((0, 0), |(memory, wire), b| (memory + 8 * n, wire + width(*b) * n))
}

/// Bytes of a key-switching key in memory and, seeded, on the wire.
pub(super) fn key_bytes(literal: &ParamsLiteral, level: usize) -> (u64, u64) {
    let digits = (level + 1).div_ceil(literal.digit_limbs.max(1)) as u64;
    let (_, wire) = poly_bytes(literal, level, true);
    (KeySwitchKey::bytes_at(literal, level) as u64, digits * wire)
}

/// Steps of the Galois elements that are rotations.
fn steps(params: &Params) -> HashMap<u64, i64> {
    let (order, slots) = (2 * params.degree() as u64, params.slots() as i64);
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
        let (params, demand, expr) = (engine.params(), engine.keys(), &goal.expression);
        let literal = params.literal();
        let steps = steps(params);
        let line = |element: u64, level: usize| {
            let (bytes, wire_bytes) = key_bytes(literal, level);
            KeyLine { element, step: steps.get(&element).copied(), level, wire_bytes, bytes }
        };
        let relin = demand.relin.map(|level| line(0, level));
        let keys = relin.into_iter().chain(demand.galois.iter().map(|(g, level)| line(*g, *level))).collect();

        let operand = |name: &str, node: usize, seeded: bool, plain: bool| {
            let (count, level) = engine.node_size(goal, node).unwrap_or((0, 0));
            let ciphertexts = if plain { 0 } else { count };
            let (memory, wire) = poly_bytes(literal, level, false);
            OperandLine {
                name: name.to_owned(),
                shape: expr.info(node).shape,
                ciphertexts,
                level,
                bytes: 2 * memory * count as u64,
                wire_bytes: if seeded { 1 } else { 2 } * wire * ciphertexts as u64,
            }
        };
        let mut operands: Vec<OperandLine> = expr
            .inputs()
            .iter()
            .enumerate()
            .map(|(i, input)| operand(&input.name, expr.node_of_input(i), true, input.plain))
            .collect();
        operands.push(operand("result", expr.output(), false, false));
        let mut summary = Self {
            params: params.hash().to_string(),
            method: engine.method().to_owned(),
            log_qp: params.log_qp(),
            security_bits: params.security().bits(),
            depth: params.max_level(),
            keys,
            operands,
            key_switches: engine.work().key_switches,
            seconds: 0.0,
            memory: 0,
            predicted_error: goal.promised_error(engine.predicted_error(goal)),
        };
        // Operands, a product of as many parts and half again before it is relinearised, keys.
        let moving: u64 = summary.operands.iter().map(|o| o.bytes + o.bytes / 2).sum();
        summary.memory = BASE_MEMORY + summary.key_bytes() + moving;
        summary
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
