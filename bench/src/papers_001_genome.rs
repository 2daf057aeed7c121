//! `papers-001-genome`: the application's figures beside ours, as a page.

use crate::Outcome;
use crate::genome::published::{NTT_SHARE, OTHERS, SHARES};
use crate::genome::{Line, Options};
use crate::lines::{self, Lines};
use crate::machine::Machine;
use crate::record::replace;
use crate::timing::{Budget, Samples};
use std::fmt::Write;
use std::path::Path;

/// Runs the cases and writes `papers-001-genome.json` and `papers-001-genome.md` into a folder.
pub fn run(options: &Options, budget: Budget, json: bool, machine: &Machine, runs: &Path) -> Outcome<()> {
    let mut out = Lines::new(json);
    let mut all = crate::genome::run(options, budget, machine, &mut out)?;
    all.iter_mut().for_each(|line| line.samples_ms = Samples::default());
    lines::store(&runs.join("papers-001-genome.json"), &all)?;
    let page = runs.join("papers-001-genome.md");
    replace(&page, &render(&all, machine)?)?;
    eprintln!("wrote {}", page.display());
    out.finish()
}

fn number(x: Option<f64>, digits: usize) -> String {
    x.map_or_else(|| "–".into(), |x| format!("{x:.digits$}"))
}

/// Shares of initialisation, lookup and bootstrap in percent; comparisons are lookups of the result, and count with them.
fn shares(line: &Line) -> Option<[f64; 3]> {
    let of = |name: &str| line.stages_ms.get(name).copied().unwrap_or(0.0);
    let parts = [of("initialisation"), of("lookup") + of("comparison"), of("bootstrap")];
    let all: f64 = parts.iter().sum();
    (all > 0.0).then(|| parts.map(|x| 100.0 * x / all))
}

fn render(lines: &[Line], machine: &Machine) -> Outcome<String> {
    let mut t = String::new();
    writeln!(t, "# Private genome search: the published figures and ours\n")?;
    writeln!(
        t,
        "Made by `sudare-bench papers-001-genome` on {}: {}, {} logical processors; {} kernels; commit {}; {}. Every answer was \
         compared with the plain search. A unit is one forward transform of `tfhe-ntt` at N = 2^14, measured in turn; processor \
         time tells what a search itself took where other work loads the machine. Printed figures are constants.\n",
        machine.date, machine.cpu, machine.cpus, machine.kernel, machine.commit, machine.rustc
    )?;
    figures(&mut t, lines)?;
    reached(&mut t, lines)?;
    everything(&mut t, lines)?;
    Ok(t)
}

fn figures(t: &mut String, lines: &[Line]) -> Outcome<()> {
    writeln!(t, "## Figure 4: what a search's time goes to\n")?;
    writeln!(
        t,
        "Printed for HElib, by function: {NTT_SHARE} % of all time in number-theoretic transforms (`NTL::FFT`), most of it for \
         rotations that compare an encrypted index with every entry. In TFHE no comparison with every entry is needed: a tree of \
         CMUX takes each entry once, and the time is the bootstraps'. By stage, protocol \"lookup\", q = 10, one start, one \
         thread:\n"
    )?;
    writeln!(t, "| stage | ms | % |\n|---|---|---|")?;
    let ten = lines.iter().find(|l| l.case == "lookup, by q" && l.q == Some(10));
    if let Some(line) = ten {
        let all: f64 = line.stages_ms.values().sum();
        for (stage, ms) in &line.stages_ms {
            writeln!(t, "| {stage} | {ms:.1} | {:.2} |", 100.0 * ms / all)?;
        }
    }
    for (figure, case, title) in [
        (5, "lookup, by q", "shares against the length of the query, one start"),
        (6, "lookup, by D", "shares against the number of starts, q = 2"),
    ] {
        writeln!(t, "\n## Figure {figure}: {title}\n")?;
        writeln!(
            t,
            "| q | D | initialisation, % | lookup, % | bootstrap, % | printed | lookups | their products | groups | bootstraps | CPU, ms |\n|{}",
            "---|".repeat(11)
        )?;
        for line in lines.iter().filter(|l| l.case == case) {
            let [init, lookup, bootstrap] = shares(line).map_or([None; 3], |s| s.map(Some));
            let printed = SHARES.iter().find(|(q, _)| Some(*q) == line.q && figure == 5);
            let printed = printed.map_or("–".into(), |(_, [a, b, c])| format!("{a} / {b} / {c}"));
            let count = |name: &str| line.counters.get(name).copied();
            writeln!(
                t,
                "| {} | {} | {} | {} | {} | {printed} | {} | {} | {} | {} | {} |",
                line.q.unwrap_or(0),
                line.starts.unwrap_or(0),
                number(init, 2),
                number(lookup, 2),
                number(bootstrap, 2),
                number(count("lookups"), 0),
                number(count("lookup products"), 0),
                number(count("bootstrap groups"), 0),
                number(count("bootstraps"), 0),
                number(line.cpu_ms, 0)
            )?;
        }
    }
    writeln!(
        t,
        "\nPrinted: two lookups and two bootstraps more for each symbol, 2q + 1 bootstraps in all; lookups grow with the starts, \
         bootstraps do not. Ours counts groups of bootstraps, one after each lookup and one at the end; a group has a bootstrap for \
         each bit of a place, so it grows with log2 D alone.\n"
    )?;
    Ok(())
}

fn reached(t: &mut String, lines: &[Line]) -> Outcome<()> {
    writeln!(t, "## Figures to reach\n")?;
    writeln!(
        t,
        "| Case | panel | n | q | D | threads | to reach | mean units | most units | median ms | CPU use | up, B | down, B | reached |\n|{}",
        "---|".repeat(14)
    )?;
    for l in lines.iter().filter(|l| l.target.is_some()) {
        writeln!(
            t,
            "| {} | {} | {} | {} | {} | {} | {} {} | {} | {} | {} | {} | {} | {} | {} |",
            l.case,
            l.panel,
            l.haplotypes.unwrap_or(0),
            l.q.map_or("–".into(), |q| q.to_string()),
            l.starts.map_or("–".into(), |s| s.to_string()),
            l.threads,
            number(l.target, 2),
            l.target_in.unwrap_or(""),
            number(l.mean_cpu_units, 0),
            number(l.most_cpu_units, 0),
            number(l.median_ms, 1),
            number(l.cpu_use, 2),
            l.bytes_up.map_or("–".into(), |b| b.to_string()),
            l.bytes_down.map_or("–".into(), |b| b.to_string()),
            l.reached.map_or("–", |r| if r { "yes" } else { "no" })
        )?;
    }
    writeln!(t, "\n## Others, as published\n")?;
    for (whose, figure) in OTHERS {
        writeln!(t, "- {whose}: {figure}")?;
    }
    writeln!(t)?;
    Ok(())
}

fn everything(t: &mut String, lines: &[Line]) -> Outcome<()> {
    writeln!(t, "## Every line\n")?;
    writeln!(
        t,
        "| Case | panel | n | q | D | batch | threads | median ms | p10 | p90 | CPU, ms | mean units | CPU use | counters | up, B | down, B | keys, B | peak MB | answers | check |\n|{}",
        "---|".repeat(20)
    )?;
    for l in lines {
        let count = |x: Option<usize>| x.map_or("–".into(), |x| x.to_string());
        let counters: Vec<String> = l.counters.iter().map(|(k, v)| format!("{k} {v:.2}")).collect();
        writeln!(
            t,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            l.case,
            l.panel,
            count(l.haplotypes),
            count(l.q),
            count(l.starts),
            count(l.batch),
            l.threads,
            number(l.median_ms, 3),
            number(l.p10_ms, 3),
            number(l.p90_ms, 3),
            number(l.cpu_ms, 3),
            number(l.mean_cpu_units, 1),
            number(l.cpu_use, 2),
            counters.join(", "),
            count(l.bytes_up),
            count(l.bytes_down),
            count(l.key_bytes),
            number(l.peak_rss_mb, 0),
            l.answers,
            l.check
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_printed_figures() {
        let machine = Machine::here();
        let mut line = Line::new("lookup, by q", "chr20", &machine);
        (line.q, line.starts) = (Some(10), Some(1));
        line.stages_ms.extend([("initialisation", 1.0), ("lookup", 60.0), ("bootstrap", 39.0)]);
        let page = render(&[line], &machine).unwrap();
        for figure in ["0.7 / 64.37 / 34.93", "| 10 | 1 | 1.00 | 60.00 | 39.00 |", "10.8 s server"] {
            assert!(page.contains(figure), "{figure}");
        }
    }
}
