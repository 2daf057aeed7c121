//! The sweeps as a page: tables and plots of time and peak memory.

use crate::Outcome;
use crate::machine::Machine;
use crate::plot::points;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// One measured point.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// `degree` or `depth`.
    pub sweep: &'static str,
    pub scheme: &'static str,
    pub operation: String,
    /// N or the depth.
    pub x: usize,
    pub n: usize,
    pub security_bits: u32,
    pub cpu_ms: f64,
    pub wall_ms: f64,
    pub peak_mb: Option<f64>,
}

/// Writes `exact.md` and its plots.
pub(super) fn write(all: &[Point], machine: &Machine, folder: &Path) -> Outcome<()> {
    let mut page = format!(
        "# Exact schemes: additions and products against degree and depth\n\n\
         Made by `sudare-bench exact --page` on {}: {}; {} kernels; commit {}; {}. Every answer was checked. Times are medians in \
         milliseconds, processor time of one thread (wall time in brackets); memory is the peak of the process \
         in MB. Sets without a security figure claim none: their degree has no room for the modulus.\n",
        machine.date, machine.cpu, machine.kernel, machine.commit, machine.rustc
    );
    for (sweep, x_name) in [("degree", "N"), ("depth", "depth")] {
        let here: Vec<&Point> = all.iter().filter(|p| p.sweep == sweep).collect();
        if here.is_empty() {
            continue;
        }
        let _ = writeln!(page, "\n## Against {x_name}\n");
        let columns: Vec<(&str, &str)> = {
            let mut seen = Vec::new();
            for p in &here {
                let key = (p.scheme, p.operation.as_str());
                if !seen.contains(&key) {
                    seen.push(key);
                }
            }
            seen
        };
        let heads: Vec<String> = columns.iter().map(|(s, o)| format!("{s} {o}")).collect();
        let _ = writeln!(page, "| {x_name} | N, bits of security | {} |", heads.join(" | "));
        let _ = writeln!(page, "|{}", "---|".repeat(columns.len() + 2));
        let xs: BTreeMap<usize, Vec<&Point>> = here.iter().fold(BTreeMap::new(), |mut map, p| {
            map.entry(p.x).or_insert_with(Vec::new).push(*p);
            map
        });
        for (x, row) in xs {
            let sets: Vec<String> = columns
                .iter()
                .filter_map(|(s, _)| row.iter().find(|p| p.scheme == *s))
                .map(|p| match p.security_bits {
                    0 => format!("{} {}, –", p.scheme, p.n),
                    bits => format!("{} {}, {bits}", p.scheme, p.n),
                })
                .collect();
            let mut sets = sets;
            sets.dedup();
            let cells: Vec<String> = columns
                .iter()
                .map(|(s, o)| {
                    let found = row.iter().find(|p| p.scheme == *s && p.operation == *o);
                    found.map_or(String::new(), |p| {
                        let memory = p.peak_mb.map_or(String::new(), |mb| format!(", {mb:.0} MB"));
                        format!("{:.3} ({:.3}){memory}", p.cpu_ms, p.wall_ms)
                    })
                })
                .collect();
            let _ = writeln!(page, "| {x} | {} | {} |", sets.join("; "), cells.join(" | "));
        }
        for (what, name, value) in [
            ("milliseconds of processor time", "time", (|p: &Point| Some(p.cpu_ms)) as fn(&Point) -> Option<f64>),
            ("peak memory, MB", "memory", |p: &Point| p.peak_mb),
        ] {
            let series: Vec<(&str, Vec<[f64; 2]>)> = columns
                .iter()
                .zip(&heads)
                .map(|((s, o), head)| {
                    let mine = here.iter().filter(|p| p.scheme == *s && p.operation == *o);
                    (head.as_str(), mine.filter_map(|p| Some([p.x as f64, value(p)?])).collect())
                })
                .collect();
            let file = format!("exact-{sweep}-{name}.svg");
            std::fs::write(folder.join(&file), points(what, &series, x_name))?;
            let _ = writeln!(page, "\n![{what}]({file})");
        }
    }
    std::fs::write(folder.join("exact.md"), page)?;
    Ok(())
}
