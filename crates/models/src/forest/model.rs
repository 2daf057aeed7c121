//! Compiled forests: their trees and their plan.

use super::bounds::{Tables, indicators, scores};
use super::circuit::Program;
use super::places::{Part, Places, columns, parts};
use super::plan::{Column, Figures, Plan, VERSION, label, literal, most_values};
use super::tree::{Forest, Written};
use crate::approximate::Label;
use crate::choice::{RECYCLED, encoding, giant_sums, tables};
use crate::error::{ModelError, format, goal};
use crate::layout::{babies, steps};
use crate::model::Goal;
use crate::plan::Operations;
use serde::{Deserialize, Serialize};
use std::f64::consts::SQRT_2;
use std::fmt;
use std::sync::Arc;
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::{BootstrapParams, Kind};
use sudare_he::discrete::{DiscreteSet, packed_scale};
use sudare_rlwe::RlweError;
use sudare_rlwe::work::{Prices, Work};

/// Values of leaves in size: scales stay numbers then.
const SIZES: std::ops::Range<f64> = 1e-100..1e100;
/// What scores are divided by is at least this part of them, so that they fit the modulus that is left.
const SMALLEST: f64 = 1.0 / 16384.0;
/// Scores that differ by less than this part of their bound are equal but for the order in which they were summed.
const EQUAL: f64 = 1e-12;
/// The start of a file.
const START: &[u8] = b"{\"sudare_forest_file\"";

/// A file: the plan's text, and the trees that it names.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    sudare_forest_file: u32,
    plan: String,
    trees: Written,
}

/// BLAKE3 of trees, as a plan has it.
fn digest(trees: &Written) -> Result<String, ModelError> {
    let Ok(bytes) = serde_json::to_vec(trees) else { return format("trees that cannot be written") };
    let mut hasher = blake3::Hasher::new_derive_key("sudare forest trees v1");
    hasher.update(&bytes);
    Ok(hasher.finalize().to_hex().to_string())
}

pub(crate) struct Inner {
    forest: Forest,
    pub program: Program,
    pub tables: Tables,
    /// What scores begin with, once leaves are centred.
    pub base: Vec<f64>,
    plan: Plan,
}

/// A compiled forest: what its server computes with. It has the trees; its plan has not.
#[derive(Clone)]
pub struct Model(pub(crate) Arc<Inner>);

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Model({:?})", self.0.plan)
    }
}

/// A forest arranged for a set.
struct Made {
    columns: Vec<Column>,
    program: Program,
    tables: Tables,
    base: Vec<f64>,
    output_bound: f64,
}

/// Arranges a forest, with columns of up to `most` thresholds.
fn arranged(forest: &Forest, params: BootstrapParams, most: usize) -> Result<Made, ModelError> {
    let (columns, centred) = (columns(forest, most), forest.clone().centred());
    let ways = centred.ways();
    let depth = ways.iter().map(|(steps, _)| steps.len()).fold(0, usize::max);
    let places = Places::new((ways.len(), depth, columns.len()), params.params().slots())?;
    let tables = Tables::new(most, places.depth)?;
    let parts = parts(&centred, &columns, &places)?;
    let of_leaves = ways.iter().flat_map(|(_, values)| values.iter()).fold(0.0, |a: f64, v| a.max(v.abs()));
    let most_base = centred.base().iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    let output_bound = centred.largest() + most_base;
    let size = match output_bound == 0.0 {
        true => 1.0,
        false => of_leaves.max(output_bound * SMALLEST),
    };
    if !SIZES.contains(&size) {
        return goal(format!(
            "the values of its leaves are of a size of {size:.0e}; divide the targets by that before the fit"
        ));
    }
    let largest = centred.largest().max(size);
    let (base, outputs) = (centred.base().to_vec(), forest.outputs());
    let program = Program { params, places, parts, outputs, size, largest: SQRT_2 * largest, error: 0.0 };
    Ok(Made { columns, program, tables, base, output_bound: output_bound.max(size) })
}

/// A forest on a set: its layout, and what it promises, takes and costs.
struct Way {
    made: Made,
    figures: Figures,
}

impl Model {
    /// Compiles a forest. The examples, row by row, say how often labels are certain; decisions are exact for all rows.
    ///
    /// Of the sets for tables it is the one that takes least seconds at `prices` for `goal.batch` rows, among those whose error of scores is
    /// within `goal.error` and which keep the share `goal.agreement` of the examples' labels. Degree, margin and approximation mean nothing here.
    ///
    /// # Errors
    /// [`ModelError::Goal`] for a goal that makes no sense, or that no set satisfies, with what would do; [`ModelError::Shape`], [`ModelError::NotFinite`] for
    /// examples.
    pub fn compile(forest: &Forest, examples: &[f64], wanted: &Goal, prices: Prices<'_>) -> Result<Self, ModelError> {
        wanted.check()?;
        if wanted.bootstrap.is_some() {
            return goal("forests take sets for tables, which are chosen by their seconds; leave bootstrap out");
        }
        let (found, expected) = (examples.len(), forest.inputs());
        if examples.is_empty() || !found.is_multiple_of(expected) {
            return Err(ModelError::Shape { what: "the examples", found, expected });
        }
        let in_row = |(row, x): (usize, &[f64])| match forest.evaluate(x) {
            Err(ModelError::NotFinite { .. }) => Err(ModelError::NotFinite { row }),
            found => found,
        };
        let exact = examples.chunks_exact(expected).enumerate().map(in_row).collect::<Result<Vec<_>, _>>()?;
        let weights = digest(&forest.written())?;
        let (mut best, mut nearest, mut refused) = (None::<Way>, f64::INFINITY, None);
        for set in DiscreteSet::ALL {
            match way(set, forest, (&exact, &weights), wanted, prices) {
                Ok(way) => {
                    let good = way.figures.error <= wanted.error && way.figures.agreement >= wanted.agreement;
                    nearest = nearest.min(way.figures.error);
                    let seconds = |way: &Way| way.figures.seconds * wanted.batch.div_ceil(way.figures.rows) as f64;
                    if good && best.as_ref().is_none_or(|best| seconds(&way) < seconds(best)) {
                        best = Some(way);
                    }
                }
                // A set without room for it; others have more.
                Err(e @ (ModelError::Goal { .. } | ModelError::He(HeError::Rlwe(RlweError::NoBudget { .. })))) => {
                    refused = Some(e);
                }
                Err(e) => return Err(e),
            }
        }
        let Some(Way { made, figures }) = best else {
            return match refused {
                Some(e) if nearest.is_infinite() => Err(e),
                _ => goal(format!(
                    "scores within {:.1e} and labels that are certain for {:.2} % of the examples are not reached, \
                     and {nearest:.1e} is the least error that is; ask for that (error=), or for a smaller share \
                     (agreement=)",
                    wanted.error,
                    100.0 * wanted.agreement
                )),
            };
        };
        let Made { mut program, tables, base, .. } = made;
        program.error = figures.error;
        let plan = Plan::new(figures, program.params.clone(), program.places.clone())?;
        Ok(Self(Arc::new(Inner { forest: forest.clone(), program, tables, base, plan })))
    }

    /// Its plan.
    pub fn plan(&self) -> &Plan {
        &self.0.plan
    }

    /// The forest's scores of a row, in the clear.
    ///
    /// # Errors
    /// As [`Forest::evaluate`].
    pub fn clear(&self, row: &[f64]) -> Result<Vec<f64>, ModelError> {
        self.0.forest.evaluate(row)
    }

    /// Whether bytes look like a forest's file, and not a network's.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(START)
    }

    /// Plan and trees as bytes: what a server's file has.
    ///
    /// # Errors
    /// [`ModelError::Format`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, ModelError> {
        let plan = self.0.plan.to_json().to_owned();
        let file = File { sudare_forest_file: VERSION, plan, trees: self.0.forest.written() };
        serde_json::to_vec(&file).or_else(|e| format(format!("a forest cannot be written: {e}")))
    }

    /// A forest of its bytes.
    ///
    /// # Errors
    /// [`ModelError::Format`] for bytes that are none, or damaged; [`ModelError::Mixed`] for trees of another plan.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        let file: File = match serde_json::from_slice(bytes) {
            Ok(file) => file,
            Err(e) => return format(format!("it is not the file of a forest: {e}")),
        };
        if file.sudare_forest_file != VERSION {
            return format("it is the file of a forest of an unknown version; use a newer release of sudare");
        }
        let plan = Plan::from_json(&file.plan)?;
        let figures = plan.figures();
        let foreign = Err(ModelError::Mixed { what: "the file of trees" });
        if digest(&file.trees)? != figures.weights {
            return foreign;
        }
        let forest = file.trees.read()?;
        if (forest.inputs(), forest.outputs(), forest.single()) != (figures.inputs, figures.outputs, figures.single) {
            return foreign;
        }
        let made = arranged(&forest, plan.set().clone(), figures.most)?;
        let Made { columns, mut program, tables, base, output_bound } = made;
        let numbers = (program.size, output_bound) == (figures.size, figures.output_bound);
        if columns != figures.columns || program.places != *plan.places() || !numbers {
            return foreign;
        }
        program.error = figures.error;
        Ok(Self(Arc::new(Inner { forest, program, tables, base, plan })))
    }
}

/// Arranges a forest for a set, and foresees what it takes.
fn way(
    set: DiscreteSet,
    forest: &Forest,
    (exact, weights): (&[Vec<f64>], &str),
    wanted: &Goal,
    prices: Prices<'_>,
) -> Result<Way, ModelError> {
    let log_n = wanted.insecure.unwrap_or(set.literal().params.rlwe.log_n);
    let literal = literal(set, log_n)?;
    let values = most_values(&literal);
    let (depth, widest) = (forest.depth(), forest.thresholds().iter().map(Vec::len).fold(1, usize::max));
    if depth >= values {
        return goal(format!(
            "its trees have paths of {depth} steps, and set {set} counts up to {}; use smaller trees (max_depth=)",
            values - 1
        ));
    }
    let most = widest.min(values / 2);
    let made = arranged(forest, literal.build()?, most)?;
    let (program, places) = (&made.program, &made.program.places);
    let params = &program.params;
    let outputs = forest.outputs();
    let error = scores(program, indicators(program, &made.tables)?)?;
    let scale = packed_scale(params, made.tables.step.modulus())?;
    let ledger = program.simulated(scale, SQRT_2 * most as f64)?;
    let cost = params.cost(Kind::Complex)? * (2 * program.parts.len()) as f64;
    // As those of networks; and the diagonals of a bootstrap for each of both tables.
    let operand_bytes = (ledger.prepared + 2 * params.diagonal_bytes()?) as f64;
    let streamed = Work { operand_bytes, ..Work::default() };
    let seconds = prices(&((ledger.work + cost).fused() + streamed), log_n);
    let diagonals = |part: &Part| part.offsets().len() + places.groups(outputs);
    let rows: usize = program.parts.iter().map(diagonals).sum();
    let (level, slots) = (params.input_level() + 1, places.slots());
    let giants = |part: &Part| steps(&part.offsets(), babies(&part.offsets()))[1];
    let sums = giant_sums(params.params(), level, program.parts.iter().map(giants).max().unwrap_or(0));
    let near = EQUAL * made.output_bound;
    let certain = exact.iter().filter(|s| is_certain(wanted.label, s, (error, near))).count();
    let figures = Figures {
        sudare_forest: VERSION,
        set: set.to_string(),
        log_n,
        weights: weights.to_owned(),
        inputs: forest.inputs(),
        outputs,
        single: forest.single(),
        columns: made.columns.clone(),
        most,
        depth: places.depth,
        ways: places.ways,
        parts: places.parts,
        rows: 2 * places.rows,
        size: program.size,
        output_bound: made.output_bound,
        error,
        agreement: certain as f64 / exact.len() as f64,
        examples: exact.len(),
        label: wanted.label,
        galois: ledger.galois.into_iter().collect(),
        prepared: [ledger.prepared, ledger.prepared.div_ceil(program.parts.len() as u64)],
        diagonals: params.diagonal_bytes()?,
        bootstrap_keys: params.key_bytes()?,
        working: RECYCLED * (ledger.peak + sums + params.working_bytes(1)? * program.parts.len() as u64)
            + tables(params.params()),
        operations: Operations { transforms: ledger.counts.transforms, key_switches: ledger.counters.key_switches },
        seconds,
        encoding: encoding((params.params(), level), (rows, slots), prices),
    };
    Ok(Way { made, figures })
}

/// Whether no error changes the label of scores: neither of numbers within `near` of each other, which are one tie, nor of others.
fn is_certain(of: Label, scores: &[f64], (error, near): (f64, f64)) -> bool {
    match of {
        Label::Argmax => label(of, scores, near) == label(of, scores, 4.0 * error),
        Label::Sign => scores.first().is_some_and(|s| s.abs() > error),
        Label::Numbers => true,
    }
}
