//! A cell of the trace paper's Tables 5.3 to 5.14, and what the paper prints there.

use crate::lines::Line;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Processor time of what a trace is made of, by the parts that were measured, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Shares {
    /// Transforms of decompositions and divisions by P.
    pub ntt: f64,
    /// The rest of both: basis conversions, products with constants.
    pub conversion: f64,
    /// Inner products, permutations and sums with keys that a cache holds.
    pub inner_product: f64,
    /// What these take longer because keys come from memory.
    pub memory: f64,
}

impl Shares {
    /// The largest.
    pub fn binds(&self) -> &'static str {
        let all = [
            (self.ntt, "NTT"),
            (self.conversion, "conversion"),
            (self.inner_product, "inner product"),
            (self.memory, "memory"),
        ];
        all.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or("", |x| x.1)
    }
}

/// One cell: M steps unrolled to h iterations at a level, with k special primes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// `trace`.
    pub suite: String,
    /// M.
    pub m: usize,
    /// Iterations.
    pub h: usize,
    /// Special primes, and data primes of a digit.
    pub k: usize,
    /// Level of the ciphertext.
    pub level: usize,
    /// Threads.
    pub threads: usize,
    /// The best kernel family that was allowed.
    pub kernel: String,
    /// Parameters in words.
    pub params: String,
    /// log2(Q·P).
    pub log_qp: f64,
    /// Security of these parameters by the limits of ePrint 2024/463; 0: under 128 bits.
    pub security_bits: u32,
    /// log2(Q·P) with the paper's special primes of 60 bits.
    pub paper_log_qp: f64,
    /// Their security.
    pub paper_security_bits: u32,
    /// Digits of the key switch at the level.
    pub digits: usize,
    /// Automorphisms, each with an inner product.
    pub automorphisms: usize,
    /// Keys.
    pub keys: usize,
    /// Their bytes in memory.
    pub key_bytes: u64,
    /// Median wall time.
    pub median_ms: Option<f64>,
    /// Tenth percentile.
    pub p10_ms: Option<f64>,
    /// Ninetieth percentile.
    pub p90_ms: Option<f64>,
    /// Median processor time, all threads together.
    pub cpu_ms: Option<f64>,
    /// Unit by wall time.
    pub unit_ms: Option<f64>,
    /// Wall time in units.
    pub units: Option<f64>,
    /// Processor time in units.
    pub cpu_units: Option<f64>,
    /// What the cost model expected.
    pub model_ms: Option<f64>,
    /// Whether the cost model would choose this h under the memory limit.
    pub chosen: bool,
    /// Where the time goes.
    pub shares: Option<Shares>,
    /// The largest share.
    pub binds: String,
    /// Portable kernels over these, where both were measured; by processor time on one thread.
    pub speedup: Option<f64>,
    /// The paper's "normal" and "hexl" for this cell.
    pub paper_ms: Option<[f64; 2]>,
    /// Largest error of the answer.
    pub max_error: Option<f64>,
    /// The bound on it.
    pub error_bound: Option<f64>,
    /// `ok`, what was wrong, or why it was refused.
    pub check: String,
    /// Whether it was refused before any work.
    pub refused: bool,
    /// Peak of the resident set, MB.
    pub peak_rss_mb: Option<f64>,
    /// Commit of the sources.
    pub commit: String,
    /// Processor.
    pub cpu: String,
    /// Day.
    pub date: String,
    /// Raw wall times.
    pub samples_ms: Vec<f64>,
}

impl Cell {
    /// The paper's speed-up.
    pub fn paper_speedup(&self) -> Option<f64> {
        self.paper_ms.map(|[normal, hexl]| normal / hexl)
    }

    /// The time that choices are judged by: the processor's on one thread, which holds where others
    /// load the machine, else wall time.
    pub fn time(&self) -> Option<f64> {
        if self.threads == 1 { self.cpu_ms } else { self.median_ms }
    }

    /// The same in units of its own process.
    pub fn time_units(&self) -> Option<f64> {
        if self.threads == 1 { self.cpu_units } else { self.units }
    }

    /// Whether two cells are the same but for the kernels.
    pub fn same_place(&self, other: &Self) -> bool {
        let place = |c: &Self| (c.m, c.h, c.k, c.level, c.threads);
        place(self) == place(other)
    }
}

impl Line for Cell {
    const HEAD: &'static str = " M  h  k l thr kernel     keys    MB    median ms       cpu ms cpu units   model ms binds          speedup paper   paper: normal      hexl   error check";

    fn row(&self) -> String {
        let number = |x: Option<f64>, digits: usize| x.map_or_else(String::new, |x| format!("{x:.digits$}"));
        let mut row = String::new();
        let _ = write!(
            row,
            "{:>2} {:>2} {:>2} {} {:>3} {:<10} {:>4} {:>5.0} {:>12} {:>12} {:>9} {:>10} {:<13} {:>8} {:>5} {:>15} {:>9} {:>7} {}{}",
            self.m,
            self.h,
            self.k,
            self.level,
            self.threads,
            self.kernel,
            self.keys,
            self.key_bytes as f64 / 1e6,
            number(self.median_ms, 2),
            number(self.cpu_ms, 2),
            number(self.cpu_units, 0),
            number(self.model_ms, 2),
            self.binds,
            number(self.speedup, 2),
            number(self.paper_speedup(), 2),
            number(self.paper_ms.map(|p| p[0]), 1),
            number(self.paper_ms.map(|p| p[1]), 1),
            self.max_error.map_or_else(String::new, |x| format!("{x:.0e}")),
            self.check,
            if self.chosen { ", the model's choice" } else { "" }
        );
        row
    }

    fn wrong(&self) -> Option<&str> {
        (self.check != "ok" && !self.refused).then_some(&self.check)
    }
}

/// What the paper prints: 1 thread or 8, M, h, k, l; "normal" and "hexl" in ms, `None` where it ran
/// out of memory.
pub struct Printed {
    pub threads: usize,
    pub m: usize,
    pub h: usize,
    pub k: usize,
    pub level: usize,
    pub ms: Option<[f64; 2]>,
}

/// Tables 5.3 to 5.5 and 5.9 to 5.11.
pub fn printed() -> impl Iterator<Item = Printed> {
    include_str!("../../data/thesis-trace.tsv").lines().filter(|l| !l.starts_with('#')).filter_map(|line| {
        let mut words = line.split('\t');
        let mut count = || words.next()?.parse::<usize>().ok();
        let (threads, m, h, k, level) = (count()?, count()?, count()?, count()?, count()?);
        let mut time = || words.next()?.parse::<f64>().ok();
        let ms = time().zip(time()).map(|(normal, hexl)| [normal, hexl]);
        Some(Printed { threads, m, h, k, level, ms })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_tables_are_whole() {
        let all: Vec<_> = printed().collect();
        assert_eq!(all.len(), 2 * 9 * (2 + 7 + 15));
        assert_eq!(all.iter().filter(|p| p.ms.is_none()).count(), 18);
        // The range of speed-ups that its summary names, from its one-thread tables.
        let ratios = all.iter().filter(|p| p.threads == 1).filter_map(|p| p.ms).map(|[a, b]| a / b);
        let (least, most) = ratios.fold((f64::INFINITY, 0.0f64), |(l, m), r| (l.min(r), m.max(r)));
        assert!((1.04..1.06).contains(&least) && (2.29..2.31).contains(&most), "{least} {most}");
    }
}
