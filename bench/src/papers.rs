//! `papers-000`: the tables of the paper on the 3-D matrix product beside the same figures here.

use crate::machine::Machine;
use crate::ops::Set;
use crate::record::{Record, Sink, replace, store};
use crate::timing::Budget;
use crate::{Outcome, matmul};
use std::fmt::Write;
use std::path::Path;
use sudare_ring::Threads;

/// What to rerun.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Random products for the means of Table 7.
    #[arg(long, default_value_t = 1000)]
    products: usize,
    #[command(flatten)]
    set: Set,
}

/// A line of the paper's Tables 5 and 7.
struct Printed {
    /// The algorithm here.
    method: &'static str,
    /// The algorithm there.
    name: &'static str,
    d: usize,
    /// Add, Rot, cMult, Mult.
    counts: [u64; 4],
    /// Apple M4, SEAL 4.1.2.
    ms: f64,
    /// Means of the largest and the smallest error.
    errors: [f64; 2],
}

const fn printed(
    method: &'static str,
    name: &'static str,
    d: usize,
    counts: [u64; 4],
    ms: f64,
    errors: [f64; 2],
) -> Printed {
    Printed { method, name, d, counts, ms, errors }
}

/// Tables 5 and 7.
const PRINTED: [Printed; 6] = [
    printed("jiang", "[15] (Jiang et al.)", 4, [18, 14, 19, 4], 56.1, [1.13e-5, 4.01e-7]),
    printed("paper3d", "3-D", 4, [10, 14, 3, 1], 40.9, [1.34e-5, 5.08e-7]),
    printed("jiang", "[15] (Jiang et al.)", 8, [42, 30, 36, 8], 140.0, [2.10e-5, 1.47e-7]),
    printed("paper3d", "3-D", 8, [15, 21, 3, 1], 58.1, [2.36e-5, 1.72e-7]),
    printed("jiang", "[15] (Jiang et al.)", 16, [90, 62, 65, 16], 282.0, [3.56e-5, 5.33e-8]),
    printed("paper3d", "3-D", 16, [20, 28, 3, 1], 75.1, [3.91e-5, 6.06e-8]),
];

/// What is shown beside the paper's lines: the improved method under the paper's parameters, then
/// the cheapest of all with parameters of its own, for general and for fresh operands.
const OURS: [(&str, bool); 3] = [("improved3d", false), ("auto", false), ("auto", true)];

/// Runs the tables and writes `papers-000.json` and `papers-000.md` into a folder.
pub fn run(
    options: &Options,
    budget: Budget,
    threads: &Threads,
    machine: &Machine,
    sink: &mut Sink,
    runs: &Path,
) -> Outcome<()> {
    let mut lines = Vec::new();
    let mut measure = |method: &str, d: usize, fresh: bool| -> Outcome<Record> {
        let mut case = matmul::Options::paper(d, options.products, &options.set);
        if method == "auto" {
            case.params = "auto".into();
        }
        case.fresh = fresh;
        let shape = sudare_expr::Shape::new(d, d, d);
        let record = matmul::case(&case, method, shape, budget, threads, machine)?;
        sink.put(record.clone())?;
        lines.push(record.clone());
        Ok(record)
    };
    let mut pairs = Vec::new();
    for line in &PRINTED {
        pairs.push((line, measure(line.method, line.d, false)?));
    }
    let mut ours = Vec::new();
    for (method, fresh) in OURS {
        for d in [4, 8, 16] {
            ours.push((d, fresh, measure(method, d, fresh)?));
        }
    }
    store(&runs.join("papers-000.json"), &lines)?;
    let page = runs.join("papers-000.md");
    replace(&page, &render(&pairs, &ours, machine)?)?;
    eprintln!("wrote {}", page.display());
    Ok(())
}

fn render(pairs: &[(&Printed, Record)], ours: &[(usize, bool, Record)], machine: &Machine) -> Outcome<String> {
    let mut t = String::new();
    let number = |x: Option<f64>, digits: usize| x.map_or_else(String::new, |x| format!("{x:.digits$}"));
    let error = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.2e}"));
    writeln!(t, "# Encrypted matrix products by three-dimensional arrays: the paper's tables and ours\n")?;
    writeln!(
        t,
        "Made by `sudare-bench papers-000` on {}, one thread unless the lines in `papers-000.json` say otherwise: {}; {} \
         kernels; commit {}; {}. The paper's times are from an Apple M4 with SEAL 4.1.2 and are no measurement of this \
         run: compare the counts and the errors, and the times only between our own lines. A unit is one forward \
         transform of `tfhe-ntt` 0.7 at N = 2^14 with a 50-bit prime, in turn with the case.\n",
        machine.date, machine.cpu, machine.kernel, machine.commit, machine.rustc
    )?;
    if let Some((_, first)) = pairs.first() {
        let (params, bits) = (first.params.as_deref().unwrap_or_default(), first.security_bits.unwrap_or_default());
        writeln!(
            t,
            "Parameters of the paper's methods: N = {}, {params}, {bits}-bit security.\n",
            first.n.unwrap_or(0)
        )?;
    }
    writeln!(t, "## Table 5: operations and time of one product\n")?;
    writeln!(
        t,
        "| Method | d | Add, Rot, cMult, Mult: paper | ours | paper ms | our ms | our units | our CPU units |"
    )?;
    writeln!(t, "|---|---|---|---|---|---|---|---|")?;
    for (p, r) in pairs {
        let counted = r.counters.map(|c| format!("{}, {}, {}, {}", c.add, c.rot, c.cmult, c.mult)).unwrap_or_default();
        let printed = p.counts.map(|c| c.to_string()).join(", ");
        let (ms, units, cpu) = (number(r.median_ms, 2), number(r.units, 0), number(r.cpu_units, 0));
        writeln!(t, "| {} | {} | {printed} | {counted} | {} | {ms} | {units} | {cpu} |", p.name, p.d, p.ms)?;
    }
    writeln!(t, "\n## Table 6: time saved by the 3-D method\n\n| d | paper | ours |\n|---|---|---|")?;
    for pair in pairs.chunks_exact(2) {
        let saved = |jiang: f64, cube: f64| format!("{:.1}%", 100.0 * (1.0 - cube / jiang));
        let here = pair[0].1.cpu_ms.zip(pair[1].1.cpu_ms).map(|(j, c)| saved(j, c)).unwrap_or_default();
        writeln!(t, "| {} | {} | {here} |", pair[0].0.d, saved(pair[0].0.ms, pair[1].0.ms))?;
    }
    let products = pairs.first().and_then(|(_, r)| r.products).unwrap_or_default();
    writeln!(t, "\n## Table 7: means of the largest and smallest errors of {products} random products in [−1, 1)\n")?;
    writeln!(
        t,
        "| Method | d | largest: paper | ours | smallest: paper | ours | check |\n|---|---|---|---|---|---|---|"
    )?;
    for (p, r) in pairs {
        let (most, least) = (error(r.mean_max_error), error(r.mean_min_error));
        let [paper_most, paper_least] = p.errors;
        writeln!(
            t,
            "| {} | {} | {paper_most:.2e} | {most} | {paper_least:.2e} | {least} | {} |",
            p.name, p.d, r.check
        )?;
    }
    writeln!(t, "\n## Our own choice\n")?;
    writeln!(t, "| d | operands | method | parameters | ms | units | CPU units | largest error, mean | check |")?;
    writeln!(t, "|---|---|---|---|---|---|---|---|---|")?;
    for (d, fresh, r) in ours {
        let operands = if *fresh { "fresh, encrypted for this product" } else { "row by row in slots" };
        let method = r.method.as_deref().unwrap_or_default();
        let params = format!("N = {}, {}", r.n.unwrap_or(0), r.params.as_deref().unwrap_or_default());
        let params = params.replace('|', "\\|");
        let (ms, units, cpu) = (number(r.median_ms, 3), number(r.units, 1), number(r.cpu_units, 1));
        let most = error(r.mean_max_error);
        writeln!(t, "| {d} | {operands} | {method} | {params} | {ms} | {units} | {cpu} | {most} | {} |", r.check)?;
    }
    Ok(t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_counts_follow_the_formulas() {
        for p in PRINTED.iter().filter(|p| p.method == "paper3d") {
            let w = u64::from(p.d.ilog2());
            assert_eq!(p.counts, [5 * w, 7 * w, 3, 1]);
        }
        for p in PRINTED.iter().filter(|p| p.method == "jiang") {
            let d = p.d as u64;
            assert_eq!((p.counts[1], p.counts[3]), (4 * d - 2, d));
        }
    }

    #[test]
    fn the_page_has_every_line() {
        let machine = Machine::here();
        let record = || Record::new("matmul", "x", 1, &machine);
        let pairs: Vec<_> = PRINTED.iter().map(|p| (p, record())).collect();
        let page = render(&pairs, &[(4, true, record())], &machine).unwrap();
        assert_eq!(page.matches("| 3-D |").count(), 6);
        assert!(page.contains("| 16 | 73.4% |  |"));
    }
}
