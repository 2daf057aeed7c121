//! `papers-002`: the tables of the packing paper beside the same figures here, as a page.

use crate::Outcome;
use crate::machine::Machine;
use crate::packing::{How, Kind, PRINTED, Printed, TARGETS, in_base};
use crate::record::{Record, Sink, replace, store};
use crate::timing::Budget;
use std::fmt::Write;
use std::path::Path;
use sudare_ring::Threads;

/// Bases other than the paper's 2.
const BASES: [u64; 2] = [32, 1024];

/// Runs the tables and writes `papers-002.json` and `papers-002.md` into a folder.
pub fn run(budget: Budget, threads: &Threads, machine: &Machine, sink: &mut Sink, runs: &Path) -> Outcome<()> {
    let mut lines = Vec::new();
    let mut keep = |record: Record, sink: &mut Sink| -> Outcome<Record> {
        sink.put(record.clone())?;
        lines.push(record.clone());
        Ok(record)
    };
    let mut tables: [Vec<(&Printed, Record)>; 2] = Default::default();
    for (table, kind) in tables.iter_mut().zip([Kind::Paper, Kind::Secure]) {
        for line in &PRINTED {
            table.push((line, keep(line.measure(kind, budget, threads, machine)?, sink)?));
        }
    }
    let mut bases = Vec::new();
    for radix in BASES {
        for how in [How::Previous, How::First, How::Second] {
            bases.push((radix, keep(in_base(how, radix, budget, threads, machine)?, sink)?));
        }
    }
    store(&runs.join("papers-002.json"), &lines)?;
    let page = runs.join("papers-002.md");
    replace(&page, &render(&tables, &bases, machine)?)?;
    eprintln!("wrote {}", page.display());
    Ok(())
}

fn render(tables: &[Vec<(&Printed, Record)>; 2], bases: &[(u64, Record)], machine: &Machine) -> Outcome<String> {
    let mut t = String::new();
    writeln!(t, "# Encrypted products of packed integer matrices: the paper's tables and ours\n")?;
    writeln!(
        t,
        "Made by `sudare-bench papers-002` on {}, one thread unless the lines in `papers-002.json` say otherwise: {}; {} \
         kernels; commit {}; {}. Medians in milliseconds, of wall time where nothing else is said; every answer was checked. \
         Where other work loads the machine, processor time (CPU) tells what the product itself took. Encryption has \
         packing in it, decryption has reading. The paper's times are from an Intel Core i7-4790 at 3.6 GHz with PARI \
         2.7.5 and are no measurement of this run.\n",
        machine.date, machine.cpu, machine.kernel, machine.commit, machine.rustc
    )?;
    let heads = ["At the paper's parameters (insecure by name)", "At secure siblings (128 bits)"];
    let notes = [
        "n, t and σ as printed; its one prime of 70 bits is two of 35. \"Bits\" is the security by today's limits.",
        "The same n and t, σ = 3.19, and the smallest q with which a product decrypts for certain.",
    ];
    for (i, table) in tables.iter().enumerate() {
        writeln!(t, "## {}\n\n{}\n", heads[i], notes[i])?;
        for (title, entries) in [("Table 1: binary entries", "binary"), ("Table 2: entries below 2^10", "10-bit")] {
            writeln!(t, "### {title}\n")?;
            writeln!(
                t,
                "| Method | m | (n, log2 q, t, σ) | bits | encryption: paper | ours | product: paper | ours | decryption: paper | ours | total: paper | ours | ours, CPU | times faster | by CPU | wanted | check |"
            )?;
            writeln!(t, "|{}", "---|".repeat(17))?;
            for (line, r) in table.iter().filter(|(line, _)| line.entries == entries) {
                row(&mut t, line, r, TARGETS[i])?;
            }
            writeln!(t)?;
        }
    }
    writeln!(t, "## 10-bit entries, m = 16, in other bases (128 bits)\n")?;
    writeln!(
        t,
        "The paper takes r = 2. Fewer digits take less of the ring; t grows with (r − 1)². The cheapest secure \
         parameters of each.\n"
    )?;
    writeln!(
        t,
        "| Method | r | n | parameters | bits | encryption | product | decryption | total | total, CPU | check |"
    )?;
    writeln!(t, "|{}", "---|".repeat(11))?;
    for (radix, r) in bases {
        let [e, p, d, total] = ours(r).map(|x| x.map_or_else(String::new, |x| format!("{x:.3}")));
        let (method, params) = (r.method.as_deref().unwrap_or_default(), r.params.as_deref().unwrap_or_default());
        let cpu = r.cpu_ms.map_or_else(String::new, |x| format!("{x:.3}"));
        let (n, bits) = (r.n.unwrap_or(0), r.security_bits.unwrap_or(0));
        writeln!(
            t,
            "| {method} | {radix} | {n} | {params} | {bits} | {e} | {p} | {d} | {total} | {cpu} | {} |",
            r.check
        )?;
    }
    Ok(t)
}

/// Milliseconds of encryption, product, decryption and all.
fn ours(r: &Record) -> [Option<f64>; 4] {
    let s = r.stages.unwrap_or_default();
    [s.encrypt_ms, s.evaluate_ms, s.decrypt_ms, r.median_ms]
}

fn row(t: &mut String, line: &Printed, r: &Record, target: f64) -> Outcome<()> {
    let sigma = r.params.as_deref().and_then(|p| p.rsplit(' ').next()).unwrap_or_default();
    let t_of = r.params.as_deref().and_then(|p| p.split(" t ").nth(1)?.split(' ').next()).unwrap_or_default();
    let bits = r.security_bits.filter(|b| *b > 0).map_or_else(|| "under 128".into(), |b| b.to_string());
    write!(
        t,
        "| {} | {} | ({}, {:.0}, {t_of}, {sigma}) | {bits} ",
        line.how.name(),
        line.m,
        r.n.unwrap_or(0),
        r.log_qp.unwrap_or_default()
    )?;
    for (paper, ours) in line.seconds.iter().zip(ours(r)) {
        let ours = ours.map_or_else(String::new, |x| format!("{x:.3}"));
        write!(t, "| {:.1} | {ours} ", paper * 1e3)?;
    }
    let faster = r.paper_ms.and_then(|p| p.faster).map_or_else(String::new, |x| format!("{x:.0}"));
    let cpu = r.cpu_ms.map_or_else(String::new, |x| format!("{x:.3}"));
    let by_cpu = r.cpu_ms.map_or_else(String::new, |x| format!("{:.0}", line.seconds[3] * 1e3 / x));
    writeln!(t, "| {cpu} | {faster} | {by_cpu} | {target:.0} | {} |", r.check)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_line() {
        let machine = Machine::here();
        let record = || Record::new("packing", "x", 1, &machine);
        let table = || PRINTED.iter().map(|p| (p, record())).collect::<Vec<_>>();
        let page = render(&[table(), table()], &[(32, record())], &machine).unwrap();
        assert_eq!(page.matches("| second | 16 |").count(), 4);
        assert!(page.contains("| 11570.4 |") && page.contains("## 10-bit entries"));
    }
}
