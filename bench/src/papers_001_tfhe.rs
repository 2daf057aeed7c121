//! `papers-001-tfhe`: the TFHE figures of the library comparison beside ours, as a page.

use crate::Outcome;
use crate::lines::{self, Lines};
use crate::machine::Machine;
use crate::record::replace;
use crate::tfhe::published::{
    CPU_USE, OPENFHE_KEY_BYTES, PAPER, PAPER_FROM, PAPER_SHARES, PEERS_FROM, PUBLISHED, TFHE_RS_KEY_BYTES,
};
use crate::tfhe::{Line, Options, claims, mb};
use crate::timing::{Budget, Samples};
use std::fmt::Write;
use std::path::Path;

/// Runs the cases and writes `papers-001-tfhe.json` and `papers-001-tfhe.md` into a folder.
pub fn run(options: &Options, budget: Budget, json: bool, machine: &Machine, runs: &Path) -> Outcome<()> {
    let mut out = Lines::new(json);
    let mut all = crate::tfhe::run(options, budget, machine, &mut out)?;
    all.iter_mut().for_each(|line| line.samples_ms = Samples::default());
    lines::store(&runs.join("papers-001-tfhe.json"), &all)?;
    let page = runs.join("papers-001-tfhe.md");
    replace(&page, &render(&all, machine)?)?;
    eprintln!("wrote {}", page.display());
    out.finish()
}

/// A line of one thread, or of several.
fn find<'a>(lines: &'a [Line], case: &str, several: bool) -> Option<&'a Line> {
    lines.iter().find(|l| l.case == case && (l.threads > 1) == several)
}

fn number(x: Option<f64>, digits: usize) -> String {
    x.map_or_else(|| "–".into(), |x| format!("{x:.digits$}"))
}

fn percent(x: Option<f64>) -> String {
    x.map_or_else(|| "–".into(), |x| format!("{:.1} %", 100.0 * x))
}

fn render(lines: &[Line], machine: &Machine) -> Outcome<String> {
    let mut t = String::new();
    writeln!(t, "# TFHE and FHEW: the library comparison's figures and ours\n")?;
    writeln!(
        t,
        "Made by `sudare-bench papers-001-tfhe` on {}: {}, {} logical processors; {} kernels; commit {}; {}. Medians; every \
         answer was checked. Where other work loads the machine, processor time (CPU) tells what an operation itself took, so \
         ratios and targets of one thread go by it. The paper's figures ({PAPER_FROM}) and those of other libraries \
         ({PEERS_FROM}) are constants and no measurement of this run.\n",
        machine.date, machine.cpu, machine.cpus, machine.kernel, machine.commit, machine.rustc
    )?;
    times(&mut t, lines)?;
    resources(&mut t, lines)?;
    shares(&mut t, lines)?;
    arithmetic(&mut t, lines)?;
    targets(&mut t, lines)?;
    everything(&mut t, lines)?;
    Ok(t)
}

/// Cases that stand for a bootstrap, and those of their keys.
const BOOTSTRAPS: [(&str, &str, &str); 6] = [
    ("Sudare, gate, 2^-128", "NAND, 2^-128", "server key gates, 2^-128"),
    ("Sudare, gate, 2^-64", "NAND, 2^-64", "server key gates, 2^-64"),
    ("Sudare, 2 + 2 bits, 2^-128", "bootstrap 2+2, 2^-128", "server key 2+2, 2^-128"),
    ("Sudare, 2 + 2 bits, plain LWE switch", "bootstrap 2+2 LWE switch, 2^-128", "server key 2+2 LWE switch, 2^-128"),
    ("Sudare, FHEW gate by digits (DM), 2^-128", "FHEW NAND, digits", "server key FHEW, digits"),
    ("Sudare, FHEW gate by automorphisms, 2^-128", "FHEW NAND, automorphisms", "server key FHEW, automorphisms"),
];

fn times(t: &mut String, lines: &[Line]) -> Outcome<()> {
    writeln!(t, "## Figure 18: times by library and scheme; memory\n")?;
    writeln!(
        t,
        "| Library (scheme) | bootstrap, ms | CPU, ms | gate keys, ms | CPU, ms | memory, GB |\n|---|---|---|---|---|---|"
    )?;
    for row in PAPER {
        let memory = row.memory_gb;
        writeln!(t, "| {}, printed | {} | | {} | | {memory} |", row.library, row.bootstrap_ms, row.gate_key_ms)?;
    }
    for (name, bootstrap, key) in BOOTSTRAPS {
        let (b, k) = (find(lines, bootstrap, false), find(lines, key, false));
        writeln!(
            t,
            "| {name} | {} | {} | {} | {} | {} |",
            number(b.and_then(|l| l.median_ms), 2),
            number(b.and_then(|l| l.cpu_ms), 2),
            number(k.and_then(|l| l.median_ms), 0),
            number(k.and_then(|l| l.cpu_ms), 0),
            number(b.and_then(|l| l.peak_rss_mb).map(|x| x / 1e3), 3)
        )?;
    }
    writeln!(
        t,
        "\nThe paper gives the times of the gate keys in the order TFHEpp, OpenFHE (TFHE), FHEW, OpenFHE (DM) and calls it \
         ascending, which the printed 1,156 ms of OpenFHE (TFHE) is not; it stands here as printed. Memory here is the peak \
         of the resident set during the case, keys and the lab itself included.\n"
    )?;
    Ok(())
}

fn resources(t: &mut String, lines: &[Line]) -> Outcome<()> {
    writeln!(t, "## Figure 19: key bytes; processor use\n")?;
    writeln!(t, "The paper only plots its key sizes. Others' are of today's releases.\n")?;
    writeln!(t, "| Set | keys in memory, MB | seeded, MB |\n|---|---|---|")?;
    writeln!(t, "| tfhe-rs 2 + 2 bits | {:.0} | {:.0} |", mb(TFHE_RS_KEY_BYTES[0]), mb(TFHE_RS_KEY_BYTES[1]))?;
    writeln!(t, "| OpenFHE, gates | {:.0} | |", mb(OPENFHE_KEY_BYTES))?;
    for line in lines.iter().filter(|l| l.peer_key_bytes.is_some()) {
        let [bytes, seeded] = [line.peer_key_bytes, line.peer_seeded_bytes].map(|b| number(b.map(mb), 1));
        writeln!(t, "| {}, measured: {} | {bytes} | {seeded} |", line.peer.unwrap_or("tfhe 1.8"), line.case)?;
    }
    for (name, bootstrap, _) in BOOTSTRAPS {
        let Some(line) = find(lines, bootstrap, false) else { continue };
        let [bytes, seeded] = [line.key_bytes, line.seeded_bytes].map(|b| number(b.map(mb), 1));
        writeln!(t, "| {name} | {bytes} | {seeded} |")?;
    }
    writeln!(
        t,
        "\nThe paper measures a processor use of at most 10 % in both libraries. Wanted: {:.0} % of all threads on a batch. \
         On a machine that others load, use falls by what they take: \"waiting\" is the share of the threads' time in \
         which they had work and others the processor, \"idle\" that without work.\n",
        100.0 * CPU_USE
    )?;
    writeln!(
        t,
        "| Batch | threads | ms each | CPU ms each | processor use | waiting for others | idle | keys read, GB/s at least |"
    )?;
    writeln!(t, "|{}", "---|".repeat(8))?;
    for line in lines.iter().filter(|l| l.case.contains("batch")) {
        let reads = (line.batch as f64 / line.threads as f64 / 4.0).ceil() * line.threads as f64;
        let rate = line.key_bytes.zip(line.median_ms).map(|(bytes, ms)| reads * bytes as f64 / ms / 1e6);
        writeln!(
            t,
            "| {} of {} | {} | {} | {} | {} % | {} | {} | {} |",
            line.case,
            line.batch,
            line.threads,
            number(line.each_ms, 2),
            number(line.cpu_each_ms, 2),
            number(line.cpu_use.map(|x| 100.0 * x), 0),
            percent(line.cpu_waited),
            percent(line.cpu_idle),
            number(rate, 1)
        )?;
    }
    writeln!(
        t,
        "\nEach thread takes four operations side by side and reads the bootstrapping key once for them; a key switch reads its own key each time, which the last column leaves out but for one of four.\n"
    )?;
    Ok(())
}

fn shares(t: &mut String, lines: &[Line]) -> Outcome<()> {
    writeln!(t, "## Figures 20 and 21: shares of one bootstrap by function\n")?;
    for (part, whose, percent) in PAPER_SHARES {
        writeln!(t, "- printed: {whose}: {percent} % (here: {part})")?;
    }
    writeln!(t, "\nOurs, the library's own steps with a clock between; \"binds\" is the largest.\n")?;
    for line in lines.iter().filter(|l| !l.shares.is_empty()) {
        let most = line.shares.iter().max_by(|a, b| a.ms.total_cmp(&b.ms)).map_or("–", |s| s.part);
        writeln!(t, "### {}\n\n| part | ms | % |\n|---|---|---|", line.case)?;
        for share in &line.shares {
            writeln!(t, "| {} | {:.3} | {:.1} |", share.part, share.ms, share.percent)?;
        }
        writeln!(t, "\nBinds: {most}.\n")?;
    }
    Ok(())
}

fn arithmetic(t: &mut String, lines: &[Line]) -> Outcome<()> {
    writeln!(t, "## Section 5.4.1: additions and products\n")?;
    writeln!(
        t,
        "Printed for TFHEpp, without the number of bits: addition 0.0014 ms without a bootstrap, 4,843.54 ms with circuit \
         bootstrapping, 28,788 ms with gates; product 10,149 ms with circuit bootstrapping; 3.0 GB. Ours, by blocks of two \
         bits:\n"
    )?;
    writeln!(t, "| Operation | threads | blind rotations | ms | CPU, ms |\n|---|---|---|---|---|")?;
    for line in lines.iter().filter(|l| l.case.contains("-bit ")) {
        writeln!(
            t,
            "| {} | {} | {} | {} | {} |",
            line.case,
            line.threads,
            line.rotations.map_or_else(|| "–".into(), |r| r.to_string()),
            number(line.median_ms, 1),
            number(line.cpu_ms, 1)
        )?;
    }
    writeln!(t)?;
    Ok(())
}

fn targets(t: &mut String, lines: &[Line]) -> Outcome<()> {
    writeln!(t, "## Beside today's libraries, one thread\n")?;
    writeln!(
        t,
        "The crate tfhe 1.8 is measured in this run and in turn with ours, one thread each, if the lab was built with \
         `--features peer-tfhe`; the ratio is its processor time over ours. Sets are told by their failure probability and \
         the bits of security that each side claims; where they differ, a ratio compares unlike things. Others' figures are \
         constants.\n"
    )?;
    writeln!(
        t,
        "| Case | CPU, ms | wall, ms | set | to reach, ms | reached | {}: CPU, ms | its set | ratio | others, ms (theirs over ours) |",
        lines.iter().find_map(|l| l.peer).unwrap_or("tfhe 1.8")
    )?;
    writeln!(t, "|{}", "---|".repeat(10))?;
    for known in PUBLISHED {
        let Some(line) = find(lines, known.case, false) else { continue };
        let others: Vec<_> =
            line.beside.iter().map(|b| format!("{} {} ({})", b.library, b.ms, number(b.ratio, 2))).collect();
        writeln!(
            t,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            known.case,
            number(line.cpu_ms, 4),
            number(line.median_ms, 4),
            line.security_bits.map_or_else(|| "–".into(), |bits| claims(line.log2_failure, Some(bits))),
            number(known.target_ms, 3),
            line.reached.map_or("–", |r| if r { "yes" } else { "no" }),
            number(line.peer_cpu_ms, 2),
            line.peer.map_or_else(|| "–".into(), |_| claims(line.peer_log2_failure, line.peer_security_bits)),
            number(line.cpu_ratio, 2),
            others.join("; ")
        )?;
    }
    writeln!(t)?;
    Ok(())
}

fn everything(t: &mut String, lines: &[Line]) -> Outcome<()> {
    writeln!(t, "## Every line\n")?;
    writeln!(
        t,
        "| Case | parameters | bits | log2 failure | threads | batch | ms | p10 | p90 | CPU, ms | units each | peak MB | check |"
    )?;
    writeln!(t, "|{}", "---|".repeat(13))?;
    for l in lines {
        writeln!(
            t,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            l.case,
            l.params.as_deref().unwrap_or("–"),
            l.security_bits.map_or_else(|| "–".into(), |b| b.to_string()),
            number(l.log2_failure, 1),
            l.threads,
            l.batch,
            number(l.median_ms, 4),
            number(l.p10_ms, 4),
            number(l.p90_ms, 4),
            number(l.cpu_ms, 4),
            number(l.cpu_units, 1),
            number(l.peak_rss_mb, 0),
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
        let page = render(&[Line::new("NAND, 2^-128", &machine)], &machine).unwrap();
        for figure in ["69.21", "33403", "107.7", "47.61", "| NAND, 2^-128 |"] {
            assert!(page.contains(figure), "{figure}");
        }
    }
}
