//! One measured line of the searches.

use crate::lines::Line as Row;
use crate::machine::{Machine, peak_rss_mb};
use crate::timing::{Samples, Timing};
use serde::Serialize;
use std::collections::BTreeMap;

/// A line. What does not apply is `None`, never zero.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// `genome`.
    pub suite: &'static str,
    /// What was measured.
    pub case: String,
    /// The panel.
    pub panel: String,
    /// n.
    pub haplotypes: Option<usize>,
    /// The protocol.
    pub protocol: Option<&'static str>,
    /// Sites of the window.
    pub q: Option<usize>,
    /// Candidate starts.
    pub starts: Option<usize>,
    /// Queries of one message.
    pub batch: Option<usize>,
    /// Threads.
    pub threads: usize,
    /// Median wall time.
    pub median_ms: Option<f64>,
    /// Tenth percentile.
    pub p10_ms: Option<f64>,
    /// Ninetieth percentile.
    pub p90_ms: Option<f64>,
    /// Longest.
    pub most_ms: Option<f64>,
    /// Median processor time, all threads together.
    pub cpu_ms: Option<f64>,
    /// The unit, in turn with the case.
    pub unit_ms: Option<f64>,
    /// Processor time in units.
    pub cpu_units: Option<f64>,
    /// Mean processor time in units: windows differ.
    pub mean_cpu_units: Option<f64>,
    /// Largest processor time in units.
    pub most_cpu_units: Option<f64>,
    /// Processor time over wall time and threads.
    pub cpu_use: Option<f64>,
    /// Milliseconds of the stages of one search.
    pub stages_ms: BTreeMap<&'static str, f64>,
    /// What one search counted; means where windows differ.
    pub counters: BTreeMap<&'static str, f64>,
    /// Bytes of the query.
    pub bytes_up: Option<usize>,
    /// Bytes of the answer.
    pub bytes_down: Option<usize>,
    /// Bytes of the server's keys on the way.
    pub key_bytes: Option<usize>,
    /// Peak of the resident set during the case.
    pub peak_rss_mb: Option<f64>,
    /// What to reach: units of processor time on one thread, milliseconds of wall time on several or where `target_in`
    /// says so.
    pub target: Option<f64>,
    /// What the target is of.
    pub target_in: Option<&'static str>,
    /// Whether it is reached.
    pub reached: Option<bool>,
    /// Searches whose answers were compared with the plain search.
    pub answers: usize,
    /// `ok`, or what was wrong.
    pub check: String,
    /// Conditions.
    pub machine: Machine,
    /// Raw wall times, in stored runs only.
    #[serde(skip_serializing_if = "Samples::is_empty")]
    pub samples_ms: Samples,
}

impl Line {
    /// A line with nothing measured yet.
    pub fn new(case: impl Into<String>, panel: impl Into<String>, machine: &Machine) -> Self {
        Self {
            suite: "genome",
            case: case.into(),
            panel: panel.into(),
            haplotypes: None,
            protocol: None,
            q: None,
            starts: None,
            batch: None,
            threads: 1,
            median_ms: None,
            p10_ms: None,
            p90_ms: None,
            most_ms: None,
            cpu_ms: None,
            unit_ms: None,
            cpu_units: None,
            mean_cpu_units: None,
            most_cpu_units: None,
            cpu_use: None,
            stages_ms: BTreeMap::new(),
            counters: BTreeMap::new(),
            bytes_up: None,
            bytes_down: None,
            key_bytes: None,
            peak_rss_mb: None,
            target: None,
            target_in: None,
            reached: None,
            answers: 0,
            check: "ok".into(),
            machine: machine.clone(),
            samples_ms: Samples::default(),
        }
    }

    /// Fills in times.
    pub fn with_timing(mut self, timing: Timing) -> Self {
        let Timing { ours, unit, .. } = timing;
        let mean = |s: &Samples| (!s.0.is_empty()).then(|| s.0.iter().sum::<f64>() / s.0.len() as f64);
        let unit_cpu = unit.cpu.median();
        let units = |x: Option<f64>| x.zip(unit_cpu).map(|(x, unit)| x / unit);
        self.median_ms = ours.wall.median();
        self.p10_ms = ours.wall.quantile(0.1);
        self.p90_ms = ours.wall.quantile(0.9);
        self.most_ms = ours.wall.quantile(1.0);
        self.cpu_ms = ours.cpu.median();
        self.unit_ms = unit.wall.median();
        self.cpu_units = units(self.cpu_ms);
        self.mean_cpu_units = units(mean(&ours.cpu));
        self.most_cpu_units = units(ours.cpu.quantile(1.0));
        let (wall, cpu) = (mean(&ours.wall), mean(&ours.cpu));
        self.cpu_use = cpu.zip(wall).map(|(cpu, wall)| cpu / wall / self.threads as f64);
        self.peak_rss_mb = peak_rss_mb();
        self.samples_ms = ours.wall;
        self
    }

    /// Compares a figure with what is to be reached.
    pub fn with_target(mut self, target: f64, of: &'static str, figure: Option<f64>) -> Self {
        (self.target, self.target_in) = (Some(target), Some(of));
        self.reached = figure.map(|f| f <= target);
        self
    }

    /// Notes answers: how many were wrong of how many.
    pub fn with_answers(mut self, wrong: usize, of: usize) -> Self {
        self.answers = of;
        if wrong > 0 || of == 0 {
            self.check = format!("{wrong} of {of} answers were wrong");
        }
        self
    }
}

impl Row for Line {
    const HEAD: &'static str = "case                           panel             n    q    D  thr  median ms    cpu ms    units  cpu use    target  reached  check";

    fn row(&self) -> String {
        let number = |x: Option<f64>, digits: usize| x.map_or_else(String::new, |x| format!("{x:.digits$}"));
        let count = |x: Option<usize>| x.map_or_else(String::new, |x| x.to_string());
        let all = |m: &BTreeMap<&'static str, f64>| {
            m.iter().map(|(k, v)| format!(" {k} {v:.1}")).collect::<Vec<_>>().concat()
        };
        let bytes: Vec<String> = [("up", self.bytes_up), ("down", self.bytes_down), ("keys", self.key_bytes)]
            .iter()
            .filter_map(|(name, b)| b.map(|b| format!(" {name} {b} B")))
            .collect();
        format!(
            "{:<30} {:<15} {:>5} {:>4} {:>4} {:>4} {:>10} {:>9} {:>8} {:>8} {:>9} {:>8}  {};{}{}{}",
            self.case,
            self.panel,
            count(self.haplotypes),
            count(self.q),
            count(self.starts),
            self.threads,
            number(self.median_ms, 3),
            number(self.cpu_ms, 3),
            number(self.mean_cpu_units, 1),
            number(self.cpu_use, 2),
            number(self.target, 0),
            self.reached.map_or("", |r| if r { "yes" } else { "no" }),
            self.check,
            all(&self.counters),
            all(&self.stages_ms),
            bytes.concat()
        )
    }

    fn wrong(&self) -> Option<&str> {
        (self.check != "ok").then_some(self.check.as_str())
    }
}
