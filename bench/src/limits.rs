//! Lines of suites that hold a figure against a limit.

use crate::lines::Line as Row;
use crate::machine::Machine;
use crate::timing::Samples;
use serde::Serialize;
use std::collections::BTreeMap;

/// A figure and its limit.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// `store`, `serve`.
    pub suite: &'static str,
    /// What was measured.
    pub case: String,
    /// The figure.
    pub figure: f64,
    /// Its unit.
    pub unit: &'static str,
    /// What it may be at most.
    pub limit: f64,
    /// Whether it is.
    pub reached: bool,
    /// What it is made of.
    pub parts: BTreeMap<&'static str, f64>,
    /// `ok`, or what was wrong with the answers.
    pub check: String,
    /// Conditions.
    pub machine: Machine,
    /// Raw figures of the rounds.
    pub samples: Samples,
}

impl Line {
    /// A figure of a suite and case, in a unit, against a limit; `check` says what was wrong with the answers, if
    /// anything was.
    pub fn new(
        (suite, case): (&'static str, &str),
        (figure, unit, limit): (f64, &'static str, f64),
        check: Result<(), String>,
        machine: &Machine,
    ) -> Self {
        let check = check.err().unwrap_or_else(|| "ok".into());
        let (parts, samples) = (BTreeMap::new(), Samples::default());
        Self {
            suite,
            case: case.to_owned(),
            figure,
            unit,
            limit,
            reached: figure <= limit,
            parts,
            check,
            machine: machine.clone(),
            samples,
        }
    }

    /// With what it is made of.
    pub fn with(mut self, parts: impl IntoIterator<Item = (&'static str, f64)>) -> Self {
        self.parts.extend(parts);
        self
    }

    /// With the figures of the rounds.
    pub fn of(mut self, samples: Samples) -> Self {
        self.samples = samples;
        self
    }
}

impl Row for Line {
    const HEAD: &'static str = "case                                       figure       limit unit      reached check";

    fn row(&self) -> String {
        let Self { case, figure, limit, unit, reached, check, parts, .. } = self;
        let parts: Vec<String> = parts.iter().map(|(name, x)| format!("{name} {x:.4}")).collect();
        let reached = if *reached { "yes" } else { "NO" };
        format!("{case:<38} {figure:>10.4} {limit:>11.4} {unit:<9} {reached:<7} {check}  {}", parts.join(", "))
    }

    fn wrong(&self) -> Option<&str> {
        (self.check != "ok").then_some(self.check.as_str())
    }
}
