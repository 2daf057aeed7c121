//! What a compiled forest takes and promises, as its client, its server and a person read it. A plan has the thresholds of each feature, and
//! no tree: it names them by a digest.

use super::places::Places;
use super::tree::MAX_DEPTH;
use crate::approximate::Label;
use crate::error::{ModelError, format};
use crate::plan::{Operations, counted, size};
use crate::shared::{Footprint, Shared};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use sudare_he::circuits::bootstrapping::{BootstrapLiteral, BootstrapParams, ReductionLiteral};
use sudare_he::ckks::Params;
use sudare_he::discrete::DiscreteSet;

/// Bytes of a plan's text at most.
const MAX_TEXT: usize = 1 << 26;
/// Version of plans that this release makes and reads.
pub(crate) const VERSION: u32 = 1;

/// Some thresholds of a feature, in their order: what a client sends is how many of them are below its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Which feature.
    pub feature: usize,
    /// The thresholds.
    pub thresholds: Vec<f64>,
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    pub(crate) sudare_forest: u32,
    /// The set that tables are of.
    pub set: String,
    /// log2 of the ring's degree: the set's, or less for tests, without security.
    pub log_n: u32,
    /// BLAKE3 of the trees.
    pub weights: String,
    /// Features of a row.
    pub inputs: usize,
    /// Scores of a row.
    pub outputs: usize,
    /// Whether features are rounded to single precision before they are compared.
    pub single: bool,
    /// Thresholds.
    pub columns: Vec<Column>,
    /// Thresholds of a column at most.
    pub most: usize,
    /// The longest way to a leaf.
    pub depth: usize,
    /// Ways to leaves, rounded up to a power of two, of a part.
    pub ways: usize,
    /// Ciphertexts that the ways of a row fill.
    pub parts: usize,
    /// Rows of a ciphertext.
    pub rows: usize,
    /// The largest value of a leaf that is multiplied by indicators: scores are at a scale by it.
    pub size: f64,
    /// Bound on absolute scores.
    pub output_bound: f64,
    /// Bound on |decrypted − exact score|, but for a probability of 2^−30 a row.
    pub error: f64,
    /// Share of the examples whose label no error within that bound changes.
    pub agreement: f64,
    /// How many examples these are.
    pub examples: usize,
    /// What labels are.
    pub label: Label,
    /// Galois elements of the automorphism keys, each with its level.
    pub galois: Vec<(u64, usize)>,
    /// Bytes of encoded trees: of all parts, and of one.
    pub prepared: [u64; 2],
    /// Bytes of the diagonals of tables.
    pub diagonals: u64,
    /// Bytes of the keys of tables.
    pub bootstrap_keys: u64,
    /// Bytes that a server works in for one ciphertext, the trees as they are among them.
    pub working: u64,
    /// Operations for one ciphertext, but for tables.
    pub operations: Operations,
    /// Seconds for one ciphertext on one thread, with trees that stay encoded, at the prices of the machine that compiled the forest.
    pub seconds: f64,
    /// Seconds that it takes longer where trees are encoded for each.
    pub encoding: f64,
}

struct Inner {
    figures: Figures,
    text: String,
    params: BootstrapParams,
    places: Places,
}

/// A plan: what client and server share.
#[derive(Clone)]
pub struct Plan(Arc<Inner>);

/// A set over its own ring, or a smaller one.
pub(crate) fn literal(set: DiscreteSet, log_n: u32) -> Result<BootstrapLiteral, ModelError> {
    let own = set.literal();
    Ok(if own.params.rlwe.log_n == log_n { own } else { own.insecure(log_n)? })
}

/// The most values of a table of a set.
pub(crate) fn most_values(literal: &BootstrapLiteral) -> usize {
    match literal.reduction {
        ReductionLiteral::Tables { modulus } => modulus,
        ReductionLiteral::Sines { .. } => 0,
    }
}

impl Plan {
    pub(crate) fn new(figures: Figures, params: BootstrapParams, places: Places) -> Result<Self, ModelError> {
        match serde_json::to_string_pretty(&figures) {
            Ok(text) => Ok(Self(Arc::new(Inner { figures, text, params, places }))),
            Err(e) => format(format!("a plan cannot be written: {e}")),
        }
    }

    /// Whether a text looks like a forest's plan, and not a network's.
    pub fn is_one(text: &str) -> bool {
        text.trim_start().strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with("\"sudare_forest\""))
    }

    /// A plan of its text.
    ///
    /// # Errors
    /// [`ModelError::Format`] for text that is no plan, or one that contradicts itself; [`ModelError::He`] for a set that is none.
    pub fn from_json(text: &str) -> Result<Self, ModelError> {
        if text.len() > MAX_TEXT {
            return format("the plan has over 64 MiB; use fewer or smaller trees");
        }
        let figures: Figures = match serde_json::from_str(text) {
            Ok(figures) => figures,
            Err(e) => return format(format!("it is not the plan of a forest: {e}")),
        };
        if figures.sudare_forest != VERSION {
            return format(format!(
                "the plan has the unknown version {}; use a newer release of sudare",
                figures.sudare_forest
            ));
        }
        let literal = literal(figures.set.parse()?, figures.log_n)?;
        let (slots, values) = (1usize << literal.log_slots, most_values(&literal));
        let damaged = || format("the plan contradicts itself, so it is damaged; copy it again");
        // What a table and the slots hold, before anything is built.
        let ordered = |c: &Column| {
            c.feature < figures.inputs
                && (1..=figures.most).contains(&c.thresholds.len())
                && c.thresholds.iter().all(|t| t.is_finite())
                && c.thresholds.windows(2).all(|t| t[0] < t[1])
        };
        let after = |c: &[Column]| {
            let apart = c[0].thresholds.last().zip(c[1].thresholds.first()).is_some_and(|(a, b)| a < b);
            c[0].feature < c[1].feature || (c[0].feature == c[1].feature && apart)
        };
        let numbers = [figures.size, figures.output_bound, figures.error];
        let sound = figures.inputs > 0
            && figures.outputs > 0
            && (1..=values / 2).contains(&figures.most)
            && (1..=MAX_DEPTH.min(values - 1)).contains(&figures.depth)
            && figures.columns.iter().all(ordered)
            && figures.columns.windows(2).all(after)
            && figures.ways.is_power_of_two()
            && figures.parts > 0
            && numbers.iter().all(|x| x.is_finite() && *x > 0.0)
            && [figures.seconds, figures.encoding].iter().all(|x| x.is_finite() && *x >= 0.0);
        if !sound {
            return damaged();
        }
        let ways = figures.ways.checked_mul(figures.parts);
        let places = match ways.map(|ways| Places::new((ways, figures.depth, figures.columns.len()), slots)) {
            Some(Ok(places)) => places,
            _ => return damaged(),
        };
        let alike = (places.ways, places.parts, 2 * places.rows) == (figures.ways, figures.parts, figures.rows);
        if !alike || figures.outputs.checked_mul(slots).is_none() {
            return damaged();
        }
        let params = literal.build()?;
        let rlwe = params.params();
        let key = |(e, l): &(u64, usize)| e % 2 == 1 && *e < 2 * rlwe.degree() as u64 && *l <= rlwe.max_level();
        if !figures.galois.iter().all(key) {
            return damaged();
        }
        Ok(Self(Arc::new(Inner { figures, text: text.to_owned(), params, places })))
    }

    /// Its text.
    pub fn to_json(&self) -> &str {
        &self.0.text
    }

    /// What it says.
    pub fn figures(&self) -> &Figures {
        &self.0.figures
    }

    /// The set that tables are of.
    pub fn set(&self) -> &BootstrapParams {
        &self.0.params
    }

    /// Where steps stand.
    pub(crate) fn places(&self) -> &Places {
        &self.0.places
    }

    /// Numbers of a row.
    pub fn inputs(&self) -> usize {
        self.0.figures.inputs
    }

    /// Scores of a row.
    pub fn outputs(&self) -> usize {
        self.0.figures.outputs
    }

    /// Labels of scores, row by row; none for a model of numbers. Scores that are nearer to each other than errors can tell are a tie, which the
    /// first of them wins, as in the clear.
    pub fn labels(&self, scores: &[f64]) -> Vec<Option<usize>> {
        let one = |scores: &[f64]| label(self.0.figures.label, scores, 2.0 * self.0.figures.error);
        scores.chunks_exact(self.outputs()).map(one).collect()
    }
}

/// The label of scores, of which those within `near` of the largest tie.
pub(crate) fn label(label: Label, scores: &[f64], near: f64) -> Option<usize> {
    match label {
        Label::Argmax => {
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            scores.iter().position(|s| *s >= most - near)
        }
        other => other.of(scores),
    }
}

impl Shared for Plan {
    fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("sudare forest plan v1");
        hasher.update(self.0.text.as_bytes()).update(&self.0.params.hash().0);
        *hasher.finalize().as_bytes()
    }

    fn params(&self) -> &Params {
        self.0.params.params()
    }

    fn refresh(&self) -> Option<&BootstrapLiteral> {
        Some(self.0.params.literal())
    }

    fn ciphertexts(&self, examples: usize, answer: bool) -> usize {
        let lots = examples.div_ceil(self.0.figures.rows);
        if answer { lots.saturating_mul(self.0.places.groups(self.outputs())) } else { lots }
    }

    fn key_levels(&self) -> (Option<usize>, &[(u64, usize)]) {
        (None, &self.0.figures.galois)
    }

    fn footprint(&self) -> Footprint {
        let Figures { prepared, diagonals, bootstrap_keys, working, .. } = self.0.figures;
        Footprint { prepared, diagonals, bootstrap_keys, working }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p, params) = (self.figures(), self.params());
        let literal = &params.literal().rlwe;
        let security = match literal.security.bits() {
            0 => "NO SECURITY (for tests)".into(),
            bits => format!("{bits} bits of security"),
        };
        let thresholds: usize = p.columns.iter().map(|c| c.thresholds.len()).sum();
        writeln!(f, "a forest: {} in, {} out", counted(p.inputs, "feature"), counted(p.outputs, "score"))?;
        writeln!(
            f,
            "{} in {} of up to {}; up to {} of up to {} in {}",
            counted(thresholds, "threshold"),
            counted(p.columns.len(), "group"),
            p.most,
            counted(p.ways.saturating_mul(p.parts), "way"),
            counted(p.depth, "step"),
            counted(p.parts, "ciphertext")
        )?;
        writeln!(
            f,
            "set {}: ring degree {}, {:.0} bits with special primes, {security}; two tables of each ciphertext",
            p.set,
            params.degree(),
            params.log_qp()
        )?;
        writeln!(
            f,
            "{} a ciphertext; {} and those of tables, {} in memory; encoded trees {}",
            counted(p.rows, "row"),
            counted(p.galois.len(), "key"),
            size(self.key_bytes()),
            size(p.prepared[0])
        )?;
        writeln!(
            f,
            "{}: {:.1e} s on one thread by the prices of the machine that compiled it, {:.1e} s where trees are encoded for each; a server: {} \
             of memory, or {}",
            counted(p.rows, "row"),
            p.seconds,
            p.seconds + p.encoding,
            size(self.memory(true)),
            size(self.memory(false))
        )?;
        writeln!(
            f,
            "decisions are exact, but for a probability of 2^−128 that any is not; a score is within {:.1e} of the forest's, but for a \
             probability of 2^−30 a row",
            p.error
        )?;
        if p.label != Label::Numbers {
            writeln!(
                f,
                "agreement: {:.2} % of {} have a label that no such error changes",
                100.0 * p.agreement,
                counted(p.examples, "example")
            )?;
        }
        write!(
            f,
            "the client learns the thresholds of each feature, and of a row its scores; the server learns nothing of rows but how many there are"
        )
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = self.figures();
        write!(f, "Plan({} features to {} scores, a forest in {}, {:?})", p.inputs, p.outputs, p.set, self.params())
    }
}
