//! `papers-001`: the library comparison's figures and ours on one page: sweeps of the three schemes, bootstrapping of
//! CKKS by ring degree, and the stored pages of TFHE and of the genome search.

use crate::Outcome;
use crate::bootstrap::{self, Measured};
use crate::lines::Lines;
use crate::machine::Machine;
use crate::record::{Record, Sink, replace};
use crate::refresh;
use crate::schemes::{self, Found, Options};
use crate::timing::{Budget, Samples};
use std::fmt::Write;
use std::path::Path;
use sudare_ring::Threads;

/// Section 5.3.2: log2 N and milliseconds of OpenFHE's bootstrap.
const PRINTED: [(u32, f64); 2] = [(10, 1340.43), (15, 353_068.0)];
/// log2 of the ring degrees at which set C's shape is refreshed; from 15 on it is the set itself.
const LOG_N: [u32; 6] = [10, 11, 12, 13, 14, 15];

/// Runs the sweeps and bootstraps and writes `papers-001.json` and `papers-001.md` into a folder.
pub fn run(
    options: &Options,
    budget: Budget,
    threads: &Threads,
    (machine, json): (&Machine, bool),
    sink: &mut Sink,
    runs: &Path,
) -> Outcome<()> {
    let found = schemes::run(options, budget, threads, machine, sink)?;
    let mut out = Lines::new(json);
    let mut refreshed = Vec::new();
    for log_n in LOG_N {
        let set = if log_n < 15 { bootstrap::Options::trial("C", log_n) } else { bootstrap::Options::set("C") };
        refreshed.extend(bootstrap::run(&set, budget, threads, machine, &mut out)?);
    }
    refreshed.extend(bootstrap::run(&bootstrap::Options::set("A"), budget, threads, machine, &mut out)?);
    let exact = refresh::run(&refresh::Options::set("X15"), budget, threads, machine, &mut out)?;
    out.finish()?;
    let mut lines: Vec<String> = Vec::new();
    for record in sink.records() {
        lines.push(serde_json::to_string(&Record { samples_ms: Samples::default(), ..record.clone() })?);
    }
    for steps in &found.steps {
        lines.push(serde_json::to_string(steps)?);
    }
    for line in &refreshed {
        lines.push(serde_json::to_string(line)?);
    }
    for line in &exact {
        lines.push(serde_json::to_string(line)?);
    }
    replace(&runs.join("papers-001.json"), &(lines.join("\n") + "\n"))?;
    let page = runs.join("papers-001.md");
    replace(&page, &render(&found, (&refreshed, &exact), machine, runs)?)?;
    eprintln!("wrote {}", page.display());
    Ok(())
}

fn render(
    found: &Found,
    (refreshed, exact): (&[Measured], &[refresh::Measured]),
    machine: &Machine,
    runs: &Path,
) -> Outcome<String> {
    let mut t = String::new();
    writeln!(t, "# Analysis of FHE libraries: the published figures and ours\n")?;
    writeln!(
        t,
        "Made by `sudare-bench papers-001` on {}: {}, {} logical processors; {} kernels; commit {}; {}. Every answer was \
         checked by decryption. Times are medians in milliseconds, processor time of one thread (wall time in brackets); \
         memory is the peak of the process in MB. Sets without a security figure claim none: their degree has no room for the \
         modulus. The paper plots most of its figures without numbers; the numbers that it prints stand here as constants.\n",
        machine.date, machine.cpu, machine.cpus, machine.kernel, machine.commit, machine.rustc
    )?;
    writeln!(
        t,
        "Printed in words: OpenFHE's additions and products take time that grows exponentially with log N, Lattigo's less so; \
         from N = 2^10 to 2^14 OpenFHE takes 0.4 and 0.7 GB less than Lattigo for additions of BFV and 0.2 and 0.6 GB of CKKS; \
         its memory grows with the depth."
    )?;
    schemes::section(&mut t, found, runs)?;
    bootstraps(&mut t, refreshed)?;
    exact_bootstraps(&mut t, exact)?;
    for (file, target) in [("papers-001-tfhe.md", "papers-001-tfhe"), ("papers-001-genome.md", "papers-001-genome")] {
        match std::fs::read_to_string(runs.join(file)) {
            Ok(text) => writeln!(t, "\n{}", demoted(&text).trim_end())?,
            Err(_) => writeln!(t, "\n## {file}\n\nNot measured here: `make {target}` writes it.")?,
        }
    }
    Ok(t)
}

/// A page as a part of another: its headings one deeper.
fn demoted(text: &str) -> String {
    text.lines().map(|l| if l.starts_with('#') { format!("#{l}\n") } else { format!("{l}\n") }).collect()
}

fn bootstraps(t: &mut String, lines: &[Measured]) -> Outcome<()> {
    writeln!(t, "\n## Section 5.3.2: bootstrapping of CKKS against N\n")?;
    writeln!(
        t,
        "Ours: set C, below N = 2^15 its shape over a smaller ring, without security; then set A. Complex slots, one \
         ciphertext. Bits are −log2 of the root mean square of the errors of random slots.\n"
    )?;
    writeln!(
        t,
        "| N | OpenFHE, printed, ms | ours | slots | bits of security | levels left | bits | CPU, ms | wall, ms | threads | keys, MB | peak, MB |\n|{}",
        "---|".repeat(12)
    )?;
    let number = |x: Option<f64>| x.map_or_else(|| "–".into(), |x| format!("{x:.0}"));
    for l in lines {
        let log_n = l.n.trailing_zeros();
        let printed = PRINTED.iter().find(|p| p.0 == log_n).map(|p| p.1.to_string());
        writeln!(
            t,
            "| 2^{log_n} | {} | {} | {} | {} | {} | {:.1} | {} | {} | {} | {} | {} |",
            printed.unwrap_or_default(),
            l.case,
            l.slots,
            if l.security_bits == 0 { "–".into() } else { l.security_bits.to_string() },
            l.levels,
            l.precision["random"].rms_bits,
            number(l.cpu_ms),
            number(l.median_ms),
            l.threads,
            l.key_bytes / 1_000_000,
            number(l.peak_rss_mb)
        )?;
    }
    Ok(())
}

/// Section 5.2.2: shares of all time in `NTL::FFT` in percent, for a query of length 1 and of length 10: initialisation, look-up,
/// HElib's bootstrap.
const HELIB: [(u32, [f64; 3]); 2] = [(1, [2.95, 76.69, 20.36]), (10, [0.70, 64.37, 34.93])];

fn exact_bootstraps(t: &mut String, lines: &[refresh::Measured]) -> Outcome<()> {
    writeln!(t, "\n## Sections 4 and 5.2.2: bootstrapping of BGV, and of BFV\n")?;
    let [(one, [_, _, first]), (ten, [_, _, tenth])] = HELIB;
    writeln!(
        t,
        "Printed for the genome search on HElib: 2q + 1 bootstraps of BGV for a query of length q, {first} % of all time in \
         transforms for q = {one} and {tenth} % for q = {ten}, the largest part of each in `extractDigitPacked`; no time of one bootstrap. \
         Neither OpenFHE nor Lattigo bootstraps BFV or BGV. Ours removes the digit by one polynomial; the last column \
         has the products in a row before the next bootstrap.\n"
    )?;
    writeln!(
        t,
        "| N | ours | values modulo t | bits of security | CPU, ms | wall, ms | threads | share of the digit's removal, % | keys, MB | peak, MB | products |\n|{}",
        "---|".repeat(11)
    )?;
    let number = |x: Option<f64>| x.map_or_else(|| "–".into(), |x| format!("{x:.0}"));
    for l in lines {
        let (all, removal) = (l.steps_ms.values().sum::<f64>(), l.steps_ms.get("Remove"));
        writeln!(
            t,
            "| 2^{} | {} | {} mod {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            l.n.trailing_zeros(),
            l.case,
            l.values,
            l.t,
            if l.security_bits == 0 { "–".into() } else { l.security_bits.to_string() },
            number(l.cpu_ms),
            number(l.median_ms),
            l.threads,
            number(removal.map(|ms| 100.0 * ms / all)),
            l.key_bytes / 1_000_000,
            number(l.peak_rss_mb),
            l.products
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_printed_figures_and_the_other_pages() {
        let folder = std::env::temp_dir().join(format!("sudare-papers-001-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("papers-001-tfhe.md"), "# TFHE\n\n## Figure 18\n").unwrap();
        let (budget, machine) = (Budget { seconds: 0.0, least: 1 }, Machine::here());
        let set = bootstrap::Options::trial("C", 10);
        let lines = bootstrap::run(&set, budget, &Threads::new(1), &machine, &mut Lines::new(true)).unwrap();
        let set = refresh::Options::trial("X15", 9);
        let exact = refresh::run(&set, budget, &Threads::new(1), &machine, &mut Lines::new(true)).unwrap();
        let page = render(&Found::default(), (&lines, &exact), &machine, &folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        for text in [
            "| 2^10 | 1340.43 | C, complex, 1 |",
            "| 2^9 | X15, BGV |",
            "34.93 %",
            "\n## TFHE\n\n### Figure 18",
            "make papers-001-genome",
        ] {
            assert!(page.contains(text), "{text}\n{page}");
        }
    }
}
