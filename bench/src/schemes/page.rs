//! The sweeps as a part of a page: tables and plots of time and peak memory.

use super::{Found, Point, Steps};
use crate::Outcome;
use crate::plot::points;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Writes the plots into a folder and the tables into `page`.
pub fn section(page: &mut String, found: &Found, folder: &Path) -> Outcome<()> {
    for (sweep, x_name, figures) in [("degree", "N", "7 to 9 and 11 to 13"), ("depth", "depth", "14 to 16")] {
        let here: Vec<&Point> = found.points.iter().filter(|p| p.sweep == sweep).collect();
        if !here.is_empty() {
            writeln!(page, "\n## Figures {figures}: additions and products against {x_name}\n")?;
            table(page, &here, sweep, x_name)?;
            plots(page, &here, sweep, x_name, folder)?;
        }
    }
    if !found.steps.is_empty() {
        steps(page, &found.steps)?;
    }
    Ok(())
}

fn x(p: &Point) -> usize {
    if p.sweep == "degree" { p.record.n.unwrap_or_default() } else { p.record.depth.unwrap_or_default() }
}

fn scheme(p: &Point) -> &str {
    p.record.method.as_deref().unwrap_or_default()
}

/// Scheme and operation of each column, in the order of measurement.
fn columns<'a>(here: &[&'a Point]) -> Vec<(&'a str, &'a str)> {
    let mut seen = Vec::new();
    for p in here {
        let key = (scheme(p), p.operation.as_str());
        if !seen.contains(&key) {
            seen.push(key);
        }
    }
    seen
}

fn table(page: &mut String, here: &[&Point], sweep: &str, x_name: &str) -> Outcome<()> {
    let columns = columns(here);
    let heads: Vec<String> = columns.iter().map(|(s, o)| format!("{s} {o}")).collect();
    let own = if sweep == "degree" { "bits of security" } else { "N, bits of security" };
    writeln!(page, "| {x_name} | {own} | {} |\n|{}", heads.join(" | "), "---|".repeat(columns.len() + 2))?;
    let mut rows: BTreeMap<usize, Vec<&Point>> = BTreeMap::new();
    here.iter().for_each(|p| rows.entry(x(p)).or_default().push(p));
    for (x, row) in rows {
        let mut sets: Vec<String> = row
            .iter()
            .map(|p| {
                let bits = p.record.security_bits.filter(|b| *b > 0).map_or_else(|| "–".into(), |b| b.to_string());
                match sweep {
                    "degree" => format!("{} {bits}", scheme(p)),
                    _ => format!("{} {}, {bits}", scheme(p), p.record.n.unwrap_or_default()),
                }
            })
            .collect();
        sets.dedup();
        let cells: Vec<String> = columns
            .iter()
            .map(|(s, o)| {
                row.iter().find(|p| scheme(p) == *s && p.operation == *o).map_or_else(String::new, |p| cell(p))
            })
            .collect();
        writeln!(page, "| {x} | {} | {} |", sets.join("; "), cells.join(" | "))?;
    }
    Ok(())
}

fn cell(p: &Point) -> String {
    let number = |ms: Option<f64>| ms.map_or_else(|| "–".into(), |ms| format!("{ms:.3}"));
    let memory = p.record.peak_rss_mb.map_or(String::new(), |mb| format!(", {mb:.0} MB"));
    format!("{} ({}){memory}", number(p.record.cpu_ms), number(p.record.median_ms))
}

fn plots(page: &mut String, here: &[&Point], sweep: &str, x_name: &str, folder: &Path) -> Outcome<()> {
    type Value = fn(&Point) -> Option<f64>;
    let operations: [(&str, &str, Value); 3] = [
        ("add", "addition, milliseconds of processor time", |p| p.record.cpu_ms),
        ("multiply", "product, milliseconds of processor time", |p| p.record.cpu_ms),
        ("multiply", "product, peak memory in MB", |p| p.record.peak_rss_mb),
    ];
    for (operation, what, value) in operations {
        let here: Vec<&&Point> = here.iter().filter(|p| p.operation == operation).collect();
        let mut names: Vec<&str> = here.iter().map(|p| scheme(p)).collect();
        names.sort_unstable();
        names.dedup();
        let of = |name: &str| -> Vec<[f64; 2]> {
            let mine = here.iter().filter(|p| scheme(p) == name);
            mine.filter_map(|p| Some([x(p) as f64, value(p)?])).collect()
        };
        let series: Vec<(&str, Vec<[f64; 2]>)> = names.iter().map(|name| (*name, of(name))).collect();
        let kind = if what.contains("memory") { "memory" } else { "time" };
        let file = format!("papers-001-{operation}-{sweep}-{kind}.svg");
        std::fs::write(folder.join(&file), points(what, &series, x_name))?;
        writeln!(page, "\n![{what}]({file})")?;
    }
    Ok(())
}

fn steps(page: &mut String, all: &[Steps]) -> Outcome<()> {
    writeln!(page, "\n## Figures 10 and 17: what additions and products are made of\n")?;
    writeln!(
        page,
        "The paper finds over 90 % of OpenFHE's additions waiting at barriers of its threads, whatever the scheme; then the \
         addition modulo q (`ModAddEq`) and making and clearing the vector of the result. Ours, on one thread: the sum in \
         place, and the whole with its result's memory. Its products wait the more the fewer levels there are, and transforms \
         grow with the depth. Ours by steps, processor time in milliseconds and percent; transforms are in the \
         decomposition, the division, and in BFV in the products.\n"
    )?;
    let names: Vec<&str> = all[0].parts.keys().copied().collect();
    writeln!(
        page,
        "| scheme | depth | N | addition, ms | in place, ms | product, ms | {} |\n|{}",
        names.iter().map(|n| &n[2..]).collect::<Vec<_>>().join(" | "),
        "---|".repeat(6 + names.len())
    )?;
    let mut rows: Vec<&Steps> = all.iter().collect();
    rows.sort_by_key(|s| (s.scheme, s.depth));
    for s in rows {
        let parts: Vec<String> =
            s.parts.values().map(|ms| format!("{ms:.3}, {:.0} %", 100.0 * ms / s.cpu_ms)).collect();
        writeln!(
            page,
            "| {} | {} | {} | {:.3} | {:.3} | {:.3} | {} |",
            s.scheme,
            s.depth,
            s.n,
            s.add_ms,
            s.add_in_place_ms,
            s.cpu_ms,
            parts.join(" | ")
        )?;
    }
    Ok(())
}
