//! What a compiled model takes and promises, as its client, its server and a person read it. A plan has no weights: it names them by a
//! digest.

use crate::approximate::{Approximation, Label};
use crate::error::{ModelError, format};
use crate::layout::{Order, period};
use crate::noise::Promise;
use crate::placement::Levels;
use crate::shared::Shared;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use sudare_he::circuits::bootstrapping::{BootstrapLiteral, BootstrapSet};
use sudare_he::ckks::{Params, ParamsLiteral};

/// Bytes of a plan's text at most.
const MAX_TEXT: usize = 1 << 24;

/// A layer as a plan shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerPlan {
    /// Its name.
    pub name: String,
    /// Its function.
    pub function: String,
    /// What it takes: 0 for the input, k + 1 for the result of layer k.
    pub takes: Vec<usize>,
    /// Numbers that come out.
    pub outputs: usize,
    /// Where they stand in slots.
    pub order: Order,
    /// Diagonals of its maps.
    pub diagonals: usize,
    /// Giant steps of its maps.
    pub giants: usize,
    /// Level of its operands.
    pub level: usize,
    /// Level at which its function begins.
    pub start: usize,
    /// Level of its result, before a refresh.
    pub end: usize,
    /// Whether the function's operand is refreshed, and whether its result is.
    pub refreshed: [bool; 2],
    /// The interval of its polynomial is [−reach, reach].
    pub reach: f64,
    /// Degree of its polynomial; one without.
    pub degree: usize,
    /// Largest distance of polynomial and function on the interval.
    pub error: f64,
}

impl LayerPlan {
    pub(crate) fn levels(&self) -> Levels {
        Levels { from: self.level, start: self.start, to: self.end, refreshed: self.refreshed }
    }
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    pub(crate) sudare_model: u32,
    /// The parameters.
    pub params: ParamsLiteral,
    /// The bootstrapping set that they are of, if values are refreshed.
    pub bootstrap: Option<BootstrapSet>,
    /// BLAKE3 of the weights.
    pub weights: String,
    /// The shape of an example.
    pub input: Vec<usize>,
    /// The shape of an answer.
    pub output: Vec<usize>,
    /// Examples of a ciphertext.
    pub images: usize,
    /// Whether each number of an example has a ciphertext of its own, in which each example is a slot.
    pub apart: bool,
    /// What each number of an example is divided by before it is encrypted; empty for nothing.
    pub factors: Vec<f64>,
    /// Bound on an input's absolute values, once divided.
    pub input_bound: f64,
    /// Level of an encrypted input.
    pub input_level: usize,
    /// Bound on an answer's absolute values.
    pub output_bound: f64,
    /// Bound on |decrypted − polynomial model|, but for a probability of 2^−30 an answer.
    pub error: f64,
    /// For which inputs.
    pub promise: Promise,
    /// Level of the relinearisation key; none if nothing is relinearised.
    pub relin: Option<usize>,
    /// Galois elements of the automorphism keys, each with its level.
    pub galois: Vec<(u64, usize)>,
    /// Layers.
    pub layers: Vec<LayerPlan>,
    /// Refreshes for one ciphertext.
    pub refreshes: usize,
    /// How near polynomials bring it to the given model on the examples.
    pub approximation: Approximation,
    /// Share of the examples with the given model's label, with errors of the expected size added.
    pub agreement: f64,
    /// How many examples these are.
    pub examples: usize,
    /// How many times as wide as those of the examples the ranges are: at least 1.
    pub margin: f64,
    /// What labels are.
    pub label: Label,
    /// The function at the end that the client computes.
    pub dropped: Option<String>,
    /// Bytes of encoded weights: of all layers, and of the largest.
    pub prepared: [u64; 2],
    /// Bytes of the diagonals of refreshes.
    pub diagonals: u64,
    /// Bytes of the bootstrapping keys.
    pub bootstrap_keys: u64,
    /// Bytes that a server works in for a request of the batch that the model was compiled for, one ciphertext or lot after the other;
    /// the weights as they are among them.
    pub working: u64,
    /// Operations for one ciphertext, but for refreshes.
    pub operations: Operations,
    /// Seconds for one ciphertext on one thread, with weights that stay encoded, at the prices of the machine that compiled the model.
    pub seconds: f64,
    /// Seconds that it takes longer where weights are encoded for each.
    pub encoding: f64,
}

/// Operations for one ciphertext, by a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operations {
    /// Transforms of one limb.
    pub transforms: u64,
    /// Key switches.
    pub key_switches: u64,
}

struct Inner {
    figures: Figures,
    text: String,
    params: Params,
    refresh: Option<BootstrapLiteral>,
}

/// The set that figures name, over their ring.
fn refresh(figures: &Figures) -> Result<Option<BootstrapLiteral>, ModelError> {
    let Some(set) = figures.bootstrap else { return Ok(None) };
    let (literal, own) = (set.literal(), &figures.params);
    let literal = match own.rlwe.log_n < literal.params.rlwe.log_n {
        true => literal.insecure(own.rlwe.log_n)?,
        false => literal,
    };
    match literal.params == *own {
        true => Ok(Some(literal)),
        false => format(format!(
            "the plan's parameters are not those of the bootstrapping set {set}, so it is damaged; copy it again"
        )),
    }
}

/// A plan: what client and server share.
#[derive(Clone)]
pub struct Plan(Arc<Inner>);

impl Plan {
    pub(crate) fn new(figures: Figures, params: Params) -> Result<Self, ModelError> {
        match serde_json::to_string_pretty(&figures) {
            Ok(text) => Ok(Self(Arc::new(Inner { refresh: refresh(&figures)?, figures, text, params }))),
            Err(e) => format(format!("a plan cannot be written: {e}")),
        }
    }

    /// Whether a text is that of a network's plan, and no forest's.
    pub fn is_one(text: &str) -> bool {
        text.trim_start().strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with("\"sudare_model\""))
    }

    /// A plan of its text.
    ///
    /// # Errors
    /// [`ModelError::Format`] for text that is no plan, or one that contradicts itself; [`ModelError::He`] for parameters under their
    /// security.
    pub fn from_json(text: &str) -> Result<Self, ModelError> {
        if text.len() > MAX_TEXT {
            return format("the plan has over 16 MiB; check that it is a plan");
        }
        let figures: Figures = match serde_json::from_str(text) {
            Ok(figures) => figures,
            Err(e) => return format(format!("it is not the plan of a model: {e}")),
        };
        let Figures { sudare_model, input, output, images, galois, relin, .. } = &figures;
        if *sudare_model != Figures::VERSION {
            return format(format!("the plan has the unknown version {sudare_model}; use a newer release of sudare"));
        }
        let refresh = refresh(&figures)?;
        let params = figures.params.build()?;
        let count = |shape: &[usize]| {
            let all = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?;
            (all > 0 && all.checked_next_power_of_two().is_some()).then_some(all)
        };
        let fits = |shape: &[usize]| {
            count(shape).is_some_and(|all| match figures.apart {
                true => *images == params.slots(),
                false => period(all).checked_mul(*images).is_some_and(|all| all <= params.slots()),
            })
        };
        let level = |level: usize| level <= params.max_level();
        let numbers = [figures.input_bound, figures.output_bound, figures.error];
        let sound = images.is_power_of_two()
            && fits(input)
            && fits(output)
            && galois.iter().all(|(e, l)| e % 2 == 1 && *e < 2 * params.degree() as u64 && level(*l))
            && relin.is_none_or(level)
            && level(figures.input_level)
            && figures.layers.iter().all(|l| level(l.level))
            && figures.seconds.is_finite()
            && figures.encoding.is_finite()
            && (figures.factors.is_empty() || Some(figures.factors.len()) == count(input))
            && figures.factors.iter().chain(&numbers).all(|x| x.is_finite() && *x > 0.0);
        if !sound {
            return format("the plan contradicts itself, so it is damaged; copy it again");
        }
        Ok(Self(Arc::new(Inner { figures, text: text.to_owned(), params, refresh })))
    }

    /// Its text.
    pub fn to_json(&self) -> &str {
        &self.0.text
    }

    /// Names the plan: parties that have one name have one plan.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("sudare model plan v1");
        hasher.update(self.0.text.as_bytes()).update(&self.0.params.hash().0);
        *hasher.finalize().as_bytes()
    }

    /// What it says.
    pub fn figures(&self) -> &Figures {
        &self.0.figures
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.0.params
    }

    /// What values are refreshed by, if they are.
    pub fn refresh(&self) -> Option<&BootstrapLiteral> {
        self.0.refresh.as_ref()
    }

    /// Numbers of an example.
    pub fn inputs(&self) -> usize {
        self.0.figures.input.iter().product()
    }

    /// Numbers of an answer.
    pub fn outputs(&self) -> usize {
        self.0.figures.output.iter().product()
    }

    /// Ciphertexts of a request of so many examples, or of the answer.
    pub(crate) fn ciphertexts(&self, examples: usize, answer: bool) -> usize {
        let lots = examples.div_ceil(self.0.figures.images);
        match (self.0.figures.apart, answer) {
            (false, _) => lots,
            (true, false) => lots.saturating_mul(self.inputs()),
            (true, true) => lots.saturating_mul(self.outputs()),
        }
    }
}

impl Figures {
    /// Version of plans that this release makes and reads.
    pub(crate) const VERSION: u32 = 2;
}

/// Bytes as a person reads them.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.0} KB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

/// `1 layer`, `2 layers`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p, params) = (self.figures(), self.params());
        let literal = &params.literal().rlwe;
        let security = match literal.security.bits() {
            0 => "NO SECURITY (for tests)".into(),
            bits => format!("{bits} bits of security"),
        };
        writeln!(f, "a model of {}: {:?} in, {:?} out", counted(p.layers.len(), "layer"), p.input, p.output)?;
        for layer in &p.layers {
            write!(
                f,
                "  {}: {}, {} at level {}",
                layer.name,
                counted(layer.outputs, "output"),
                counted(layer.diagonals, "diagonal"),
                layer.level
            )?;
            if layer.degree > 1 {
                write!(
                    f,
                    "; {} on [−{}, {}] by degree {}, within {:.1e}",
                    layer.function, layer.reach, layer.reach, layer.degree, layer.error
                )?;
            }
            if layer.refreshed.contains(&true) {
                let place = match layer.refreshed {
                    [true, true] => "before and after",
                    [true, false] => "before",
                    _ => "after",
                };
                write!(f, "; refreshed {place} it")?;
            }
            writeln!(f)?;
        }
        if let Some(dropped) = &p.dropped {
            writeln!(f, "  {dropped}: left to the client, after decryption")?;
        }
        writeln!(
            f,
            "ring degree {}, {} at scale 2^{}, {:.0} bits with special primes, {security}",
            params.degree(),
            counted(params.max_level(), "level"),
            params.literal().log_scale,
            params.log_qp()
        )?;
        writeln!(
            f,
            "{} {}; {}{}, {} in memory; {} transforms and {} key switches for a ciphertext; \
             encoded weights {}",
            counted(p.images, "example"),
            if p.apart { "in the slots of a ciphertext for each number" } else { "a ciphertext" },
            counted(p.galois.len() + usize::from(p.relin.is_some()), "key"),
            if p.bootstrap.is_some() { " and those of refreshes" } else { "" },
            size(self.key_bytes()),
            p.operations.transforms,
            p.operations.key_switches,
            size(p.prepared[0])
        )?;
        if let Some(set) = p.bootstrap {
            writeln!(f, "{} refresh{} by set {set}", p.refreshes, if p.refreshes == 1 { "" } else { "es" })?;
        }
        writeln!(
            f,
            "{}: {:.1e} s on one thread by the prices of the machine that compiled it, {:.1e} s where weights are encoded for each; a \
             server: {} of memory, or {}",
            counted(p.images, "example"),
            p.seconds,
            p.seconds + p.encoding,
            size(self.memory(true)),
            size(self.memory(false))
        )?;
        writeln!(
            f,
            "approximation: outputs of the polynomial model are up to {:.1e} (rms {:.1e}) from the given model's on {}, which says \
             nothing of others",
            p.approximation.largest,
            p.approximation.rms,
            counted(p.examples, "example")
        )?;
        writeln!(
            f,
            "noise: a decrypted answer is within {:.1e} of the polynomial model's, but for a probability of 2^−30, if all values stay in their \
             intervals{}",
            p.error,
            match p.promise {
                Promise::AllInputs => "",
                Promise::LikeExamples => " and the network is no more than twice as sensitive as at the examples",
            }
        )?;
        if p.label != Label::Numbers {
            writeln!(f, "agreement: {:.2} % of the examples keep their label", 100.0 * p.agreement)?;
        }
        write!(
            f,
            "ranges are {} times the examples': none of {} leaves them, so at 95 % confidence an example like these does with a probability of \
             at most {:.1e}",
            p.margin,
            p.examples,
            (3.0 / p.examples as f64).min(1.0)
        )
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = self.figures();
        write!(f, "Plan({:?} to {:?}, {} layers, {:?})", p.input, p.output, p.layers.len(), self.params())
    }
}
