//! The page: the paper's tables with its figures beside ours.

use super::OpsLine;
use crate::machine::Machine;
use crate::trace::Cell;
use crate::{Outcome, fma};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Everything the page shows.
pub struct Page {
    /// Table 5.2.
    pub fma: Vec<fma::Cell>,
    /// `ops --k 3`.
    pub ops: Vec<OpsLine>,
    /// Tables 5.3 to 5.14.
    pub cells: Vec<Cell>,
    /// Groups that the time did not reach.
    pub missing: Vec<String>,
    /// Conditions.
    pub machine: Machine,
}

/// Processes that ran or waited to run, the mean of the last five minutes.
fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().nth(1)?.parse().ok()
}

fn number(x: Option<f64>, digits: usize) -> String {
    x.map_or_else(|| "–".into(), |x| format!("{x:.digits$}"))
}

/// Three figures' worth of digits.
fn short(x: Option<f64>) -> String {
    number(x, x.map_or(0, |x| if x < 10.0 { 2 } else { usize::from(x < 100.0) }))
}

impl Page {
    /// M and threads of each pair of tables.
    pub fn tables(&self) -> Vec<(usize, usize)> {
        self.cells.iter().map(|c| (c.threads, c.m)).collect::<BTreeSet<_>>().into_iter().map(|(t, m)| (m, t)).collect()
    }

    /// The columns k/l.
    pub fn columns(&self) -> Vec<(usize, usize)> {
        self.cells.iter().map(|c| (c.k, c.level)).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The cells of a table.
    pub fn at(&self, m: usize, threads: usize) -> impl Iterator<Item = &Cell> + Clone {
        self.cells.iter().filter(move |c| (c.m, c.threads) == (m, threads))
    }

    /// The page.
    pub fn render(&self) -> Outcome<String> {
        let mut t = String::new();
        let m = &self.machine;
        writeln!(t, "# Trace-type functions with AVX-512: the thesis's tables and ours\n")?;
        writeln!(
            t,
            "Made by `sudare-bench papers-004` (`make papers-004`) on {}: {}, {} processors; {} kernels; commit {}; {}. \
             Every answer was checked. The paper's times are from an 8-core CPU at 3.6 GHz with PALISADE 1.9.2 and HEXL \
             1.2.3 and are no measurement of this run: compare speed-ups, and times only between our own columns. \
             Processor times are of the process: where others load the machine they hold better than wall times.\n",
            m.date, m.cpu, m.cpus, m.kernel, m.commit, m.rustc
        )?;
        if let Some(load) = load_average() {
            writeln!(
                t,
                "When the page was made, {load:.1} processes shared the {} processors. With more processes than \
                 processors wall times tell little, and processor times of what works out of the caches are too long.\n",
                m.cpus
            )?;
        }
        if !self.missing.is_empty() {
            writeln!(t, "The time given did not reach: {}.\n", self.missing.join("; "))?;
        }
        self.fused(&mut t)?;
        self.operations(&mut t)?;
        self.security(&mut t)?;
        for (m, threads) in self.tables() {
            self.times(&mut t, m, threads)?;
        }
        self.choices(&mut t)?;
        self.refusals(&mut t)?;
        Ok(t)
    }

    fn fused(&self, t: &mut String) -> Outcome<()> {
        writeln!(t, "## Table 5.2: multiply, then add, against one fused kernel\n")?;
        let speedups = |bits: u32, past: Option<bool>| {
            let chosen = self.fma.iter().filter(move |c| c.bits == bits && past.is_none_or(|p| p == c.past_l2));
            let mut all: Vec<f64> = chosen.filter_map(|c| c.speedup).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        writeln!(t, "| primes | sizes | least speed-up | median | largest | wanted | sizes below |")?;
        writeln!(t, "|---|---|---|---|---|---|---|")?;
        for bits in self.fma.iter().map(|c| c.bits).collect::<BTreeSet<_>>().into_iter().rev() {
            for (name, past, wanted) in [("up to L2", false, 1.0), ("past L2", true, 1.3)] {
                let all = speedups(bits, Some(past));
                let at = |i: usize| number(all.get(i).copied(), 2);
                let below = all.iter().filter(|s| **s < wanted).count();
                writeln!(
                    t,
                    "| {bits} bits | {name}, {} | {} | {} | {} | {wanted:.1} | {below} |",
                    all.len(),
                    at(0),
                    at(all.len() / 2),
                    at(all.len().saturating_sub(1))
                )?;
            }
        }
        writeln!(
            t,
            "\nSpeed-ups are by processor time. The fused kernel also asks for its operands ahead of their use; the two \
             calls are left as they are.\n\n![Figure 5.2](papers-004-fma.svg)\n"
        )?;
        writeln!(
            t,
            "| log2 N, l | bytes | paper MultAdd µs | FMA | speed-up | ours, 60 bits: two calls µs | fused | speed-up | 49 bits: two calls | fused | speed-up | 40 bits: two calls | fused | speed-up |"
        )?;
        writeln!(t, "|{}", "---|".repeat(14))?;
        let mut sizes: Vec<_> = self.fma.iter().filter(|c| c.bits == 60).collect();
        sizes.sort_by_key(|c| c.bytes);
        for c in sizes {
            write!(t, "| {}, {} | {} |", c.log_n, c.l, c.bytes)?;
            let [two, one] = c.paper_us.map_or([None; 2], |p| p.map(Some));
            write!(t, " {} | {} | {} |", short(two), short(one), number(c.paper_speedup(), 2))?;
            for bits in [60, 49, 40] {
                let same = |o: &&fma::Cell| (o.log_n, o.l, o.bits) == (c.log_n, c.l, bits);
                let (two, one, speedup) = self
                    .fma
                    .iter()
                    .find(same)
                    .map_or((None, None, None), |o| (o.mult_add_cpu_us, o.fma_cpu_us, o.speedup));
                write!(t, " {} | {} | {} |", short(two), short(one), number(speedup, 2))?;
            }
            writeln!(t)?;
        }
        writeln!(t)?;
        Ok(())
    }

    fn operations(&self, t: &mut String) -> Outcome<()> {
        writeln!(t, "## Operations at N = 2^15, {{60, 10 × 40}}, three special primes, one thread\n")?;
        writeln!(
            t,
            "| Operation | ms | CPU ms | units | CPU units | theirs, ms | units | times faster | wanted | key MB | check |"
        )?;
        writeln!(t, "|{}", "---|".repeat(11))?;
        for line in &self.ops {
            let float = |name: &str| line[name].as_f64();
            writeln!(
                t,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                line["case"].as_str().unwrap_or_default(),
                short(float("median_ms")),
                short(float("cpu_ms")),
                number(float("units"), 0),
                number(float("cpu_units"), 0),
                short(float("reference_ms")),
                number(float("reference_units"), 0),
                number(float("reference_ratio"), 2),
                number(float("target_ratio"), 0),
                number(float("key_bytes").map(|b| b / 1e6), 0),
                line["check"].as_str().unwrap_or_default()
            )?;
        }
        writeln!(
            t,
            "\nTheirs: the best of OpenFHE 1.5.1 with HEXL and SEAL 4.4 with HEXL on one Sapphire Rapids core, constants \
             from another run; “times faster” compares units by processor time.\n"
        )?;
        Ok(())
    }

    fn security(&self, t: &mut String) -> Outcome<()> {
        writeln!(t, "## Parameters and their security\n")?;
        writeln!(
            t,
            "N = 2^15, data primes {{60, 40×9}}, Δ = 2^40; the limit for 128 bits is log2 QP ≤ 868 (ePrint 2024/463).\n"
        )?;
        writeln!(t, "| k | ours | log2 QP | bits | with the paper's 60-bit special primes: log2 QP | bits |")?;
        writeln!(t, "|---|---|---|---|---|---|")?;
        let bits = |b: u32| if b == 0 { "**under 128**".to_owned() } else { b.to_string() };
        for k in self.cells.iter().map(|c| c.k).collect::<BTreeSet<_>>() {
            if let Some(c) = self.cells.iter().find(|c| c.k == k) {
                let (ours, theirs) = (bits(c.security_bits), bits(c.paper_security_bits));
                let params = c.params.replace('|', "\\|");
                writeln!(t, "| {k} | {params} | {} | {ours} | {} | {theirs} |", c.log_qp, c.paper_log_qp)?;
            }
        }
        writeln!(t)?;
        Ok(())
    }

    fn times(&self, t: &mut String, m: usize, threads: usize) -> Outcome<()> {
        let first = match (m, threads) {
            (2, 1) => " (Tables 5.3 and 5.6)",
            (7, 1) => " (Tables 5.4 and 5.7)",
            (15, 1) => " (Tables 5.5 and 5.8)",
            (2, _) => " (Tables 5.9 and 5.12)",
            (7, _) => " (Tables 5.10 and 5.13)",
            (15, _) => " (Tables 5.11 and 5.14)",
            _ => "",
        };
        let clock = if threads == 1 { "processor" } else { "wall" };
        let (columns, rows) = (self.columns(), self.at(m, threads).map(|c| c.h).collect::<BTreeSet<_>>());
        let head = |t: &mut String| -> Outcome<()> {
            let names: Vec<String> = columns.iter().map(|(k, l)| format!("{k}/{l}")).collect();
            writeln!(t, "| h \\ k/l | {} |", names.join(" | "))?;
            Ok(writeln!(t, "|{}", "---|".repeat(columns.len() + 1))?)
        };
        writeln!(t, "## M = {m}, {threads} thread{}{first}\n", if threads > 1 { "s; the paper's eight" } else { "" })?;
        writeln!(
            t,
            "Median {clock} time in ms, portable / AVX-512; in brackets the paper's normal / hexl. ▸ marks the h that the cost model chooses.\n"
        )?;
        head(t)?;
        let find = |h: usize, column: (usize, usize), portable: bool| {
            self.at(m, threads).find(|c| c.h == h && (c.k, c.level) == column && (c.kernel == "portable") == portable)
        };
        for &h in &rows {
            write!(t, "| {h} |")?;
            for &column in &columns {
                let (portable, ours) = (find(h, column, true), find(h, column, false));
                let time = |c: Option<&Cell>| {
                    c.map_or_else(String::new, |c| if c.refused { "refused".into() } else { short(c.time()) })
                };
                let paper = ours.and_then(|c| c.paper_ms).map_or_else(|| "N/A".into(), |[a, b]| format!("{a} / {b}"));
                let mark = if ours.is_some_and(|c| c.chosen) { "▸ " } else { "" };
                match ours {
                    Some(_) => write!(t, " {mark}{} / {} ({paper}) |", time(portable), time(ours))?,
                    None => write!(t, " not reached |")?,
                }
            }
            writeln!(t)?;
        }
        writeln!(
            t,
            "\nSpeed-up of AVX-512 over portable, in brackets the paper's, and what binds the AVX-512 kernels.\n"
        )?;
        head(t)?;
        for &h in &rows {
            write!(t, "| {h} |")?;
            for &column in &columns {
                match find(h, column, false) {
                    Some(c) => write!(t, " {} ({}) {} |", number(c.speedup, 2), number(c.paper_speedup(), 2), c.binds)?,
                    None => write!(t, " |")?,
                }
            }
            writeln!(t)?;
        }
        let below =
            self.at(m, threads).filter(|c| c.speedup.zip(c.paper_speedup()).is_some_and(|(a, b)| a < b)).count();
        let all = self.at(m, threads).filter(|c| c.speedup.is_some()).count();
        writeln!(t, "\nBelow the paper's speed-up: {below} of {all} cells.\n")?;
        writeln!(t, "![Box plots](papers-004-box-m{m}-t{threads}.svg)\n")?;
        Ok(())
    }

    fn choices(&self, t: &mut String) -> Outcome<()> {
        writeln!(t, "## The cost model's choice of h against the best measured\n")?;
        writeln!(
            t,
            "| M | k | l | threads | chosen h | ms | model's ms | best h | ms | chosen over best |\n|{}",
            "---|".repeat(10)
        )?;
        let (mut groups, mut within) = (0, 0);
        for (m, threads) in self.tables() {
            for (k, level) in self.columns() {
                let here =
                    || self.at(m, threads).filter(move |c| (c.k, c.level) == (k, level) && c.kernel != "portable");
                let time = |c: &&Cell| c.time().unwrap_or(f64::INFINITY);
                let best = here().filter(|c| c.time().is_some()).min_by(|a, b| time(a).total_cmp(&time(b)));
                let Some((chosen, best)) = here().find(|c| c.chosen && c.time().is_some()).zip(best) else { continue };
                let ratio = time(&chosen) / time(&best);
                groups += 1;
                within += usize::from(ratio <= 1.1);
                writeln!(
                    t,
                    "| {m} | {k} | {level} | {threads} | {} | {} | {} | {} | {} | {ratio:.2} |",
                    chosen.h,
                    short(chosen.time()),
                    short(chosen.model_ms),
                    best.h,
                    short(best.time())
                )?;
            }
        }
        writeln!(t, "\nWithin 10 %: {within} of {groups}.\n")?;
        Ok(())
    }

    fn refusals(&self, t: &mut String) -> Outcome<()> {
        writeln!(t, "## Refused before any work\n")?;
        let mut seen = BTreeSet::new();
        for c in self.cells.iter().filter(|c| c.refused) {
            if seen.insert((c.m, c.h, c.k, c.level)) {
                let ran = match c.paper_ms {
                    Some([normal, hexl]) => format!("the paper's machine, 128 GB: {normal} / {hexl} ms"),
                    None => "N/A in the paper".into(),
                };
                writeln!(t, "- M = {}, h = {}, k = {}, l = {}: {} ({ran}).", c.m, c.h, c.k, c.level, c.check)?;
            }
        }
        Ok(())
    }
}
