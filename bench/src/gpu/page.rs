//! The page: the paper's tables beside ours.

use super::{Bench, Cell, describe};
use crate::Outcome;
use crate::machine::Machine;
use std::fmt::Write;

/// All figures as one page.
pub fn render(cells: &[Cell], bench: &Bench, machine: &Machine) -> Outcome<String> {
    let mut t = String::new();
    let info = bench.device.info();
    writeln!(t, "# Many ciphertexts on a GPU: the paper's tables and ours\n")?;
    let how = match info.emulated {
        true => format!(
            "**Model.** No card was there: the emulator ran every kernel ({}), all answers were checked word by word, \
             and the columns of measured times are empty. \"Model\" is the bytes that have to be moved at {:.1} TB/s, \
             what an H100 copies.",
            machine.cpu,
            bench.copy.0 / 1e6
        ),
        false => format!(
            "**Measured on {}.** Medians of wall time, waiting included, and of the device's own time; all answers were \
             checked word by word. \"Model\" is the bytes that have to be moved at the rate of a copy, measured here: \
             {:.2} TB/s.",
            describe(info),
            bench.copy.0 / 1e6
        ),
    };
    writeln!(t, "Made by `sudare-bench gpu --page` on {}; commit {}. {how}\n", machine.date, machine.commit)?;
    writeln!(
        t,
        "The paper's figures (`docs/papers.md`, 003) are from an RTX 3090 (936 GB/s) with Phantom, N = 8192, primes \
         {{60, 40}} and a special one of 60 bits: means of 1000 runs. They are no measurement of this run.\n"
    )?;
    for (operation, title, note) in [
        (
            "sum",
            "Sums of d ciphertexts (Table 5)",
            "Standard: two launches and a wait each. Method 1: one wait for all.",
        ),
        (
            "product",
            "Products of d pairs without relinearisation (Table 6)",
            "Standard: a copy, a launch and a wait each. Method 1: one wait for all. Method 2: no copy.",
        ),
    ] {
        writeln!(t, "## {title}\n\n{note} One launch: what the paper leaves open. Microseconds for all d.\n")?;
        table(&mut t, cells.iter().filter(|c| c.operation == operation))?;
    }
    writeln!(t, "## Multiply, relinearise, rescale\n")?;
    writeln!(
        t,
        "A whole batch in five launches; microseconds for the batch. \"Model\" is the arithmetic of an H100 in a large batch: \
         132 multiprocessors at 1.7 GHz, 64 FP64 and 64 integer products a clock each, and the instructions that a \
         prototype of these kernels compiled to.\n"
    )?;
    table(&mut t, cells.iter().filter(|c| c.operation.starts_with("multiply")))?;
    writeln!(t, "## Rates (Tables 3, 4 and 7: what a launch, a wait and a copy cost)\n")?;
    writeln!(
        t,
        "The paper has 2.5 and 1.5 µs for the call and the run of a copy, 1.7–2.0 µs for a launch, 1.6–2.2 µs for a \
         kernel and 4.5–5.5 µs for a wait.\n"
    )?;
    table(&mut t, cells.iter().filter(|c| c.operation == "rate"))?;
    Ok(t)
}

fn table<'a>(t: &mut String, cells: impl Iterator<Item = &'a Cell>) -> Outcome<()> {
    writeln!(
        t,
        "| N | primes | d | way | printed | wall | device | model | answers |\n|---|---|---|---|---|---|---|---|---|"
    )?;
    let number =
        |x: Option<f64>| x.map_or("–".into(), |x| if x < 100.0 { format!("{x:.2}") } else { format!("{x:.0}") });
    for c in cells {
        let model = if c.bytes > 0 { number(Some(c.floor_us)) } else { "–".into() };
        let (printed, wall, device) = (number(c.printed_us), number(c.wall_us), number(c.device_us));
        writeln!(
            t,
            "| {} | {} | {} | {} | {printed} | {wall} | {device} | {model} | {} |",
            c.n,
            c.primes,
            c.d,
            c.method,
            if c.check == "ok" { "right" } else { &c.check }
        )?;
    }
    writeln!(t)?;
    Ok(())
}
