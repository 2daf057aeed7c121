//! The page: the paper's tables beside ours.

use super::model::{self, Counts};
use super::operations::SETS;
use super::{ASSUMED_COPY, Cell, PAPER_COPY, copy_rate};
use crate::Outcome;
use crate::machine::Machine;
use std::fmt::Write;
use sudare_expr::Shape;
use sudare_rlwe::security::Security;

/// All figures as one page. `clocks` is what `bench/gpu/run` sampled of the card meanwhile.
pub fn render(cells: &[Cell], clocks: Option<&str>, machine: &Machine) -> Outcome<String> {
    let mut t = String::new();
    let device = cells.iter().find(|c| c.operation == "device").map_or("no device", |c| c.method.as_str());
    let (copy, measured) = copy_rate(cells);
    writeln!(t, "# Many ciphertexts on a GPU: the paper's tables and ours\n")?;
    let how = match measured {
        false => format!(
            "**Model.** No card was measured: {device} ran every kernel ({}), all answers were checked, \
             and the columns of measured times are empty. \"Model\" is of an H100; of sums and products, the bytes that have \
             to be moved at {:.1} TB/s.",
            machine.cpu,
            copy / 1e6
        ),
        true => format!(
            "**Measured on {}.** Medians of wall time, waiting included, and of the device's own time; all answers were \
             checked. \"Model\" is, of sums and products, the bytes that have to be moved at the rate of a copy, measured here: \
             {:.2} TB/s; of all else, that of an H100 below.",
            device,
            copy / 1e6
        ),
    };
    writeln!(t, "Made by `sudare-bench gpu --page` on {}; commit {}. {how}\n", machine.date, machine.commit)?;
    if let Some(line) = clocks.and_then(clock) {
        writeln!(t, "{line}\n")?;
    }
    let mut wrong: Vec<&Cell> = cells.iter().filter(|c| c.check != "ok").collect();
    // A stage that failed says more than its lines.
    wrong.sort_by_key(|c| c.operation != "stage");
    if !wrong.is_empty() {
        writeln!(t, "**{} of {} lines are wrong**, the first of them:\n", wrong.len(), cells.len())?;
        for c in wrong.iter().take(10) {
            writeln!(t, "- {}, {}, N = {}: {}", c.operation, c.method, c.n, c.check)?;
        }
        writeln!(t)?;
    }
    writeln!(
        t,
        "The paper's figures (`docs/papers.md`, 003) are from an RTX 3090 (936 GB/s) with Phantom, N = 8192, primes \
         {{60, 40}} and a special one of 60 bits: means of 1000 runs. They are no measurement of this run.\n"
    )?;
    let own = |polynomials| copied(polynomials) * ASSUMED_COPY / PAPER_COPY;
    writeln!(
        t,
        "**On the paper's own card**, by its {:.0} GB/s, one launch takes at least {:.0} µs for 1000 products and {:.0} µs for 1000 sums (model); \
         the rest of what an H100 is quicker by is its memory's.\n",
        PAPER_COPY / 1e3,
        own(7),
        own(6)
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
    for (operations, title, note) in [
        (
            &["multiply, relinearise, rescale"][..],
            "Multiply, relinearise, rescale",
            "Whole batches with real keys. Waves within L2: intermediate results of as many ciphertexts at a time as fit into \
             three fifths of the second-level cache. Model: all ciphertexts of a large batch.",
        ),
        (
            &["rotation", "8 rotations", "sum of 8 rotations"],
            "Rotations",
            "Alone, eight by one decomposition, and the sum of eight with one division by P.",
        ),
        (
            &["launch"],
            "Launches",
            "What each launch of a product and of a rotation takes, by events around it, which keep launches apart.",
        ),
        (
            &["matrix product"],
            "Products of encrypted matrices",
            "Operands, keys and results stay on the device; d products together. Every result is decrypted, and compared word \
             by word with the processor's up to 2^21 multiplications in the clear.",
        ),
    ] {
        writeln!(t, "## {title}\n\n{note} Microseconds for all of d.\n")?;
        table(&mut t, cells.iter().filter(|c| operations.contains(&c.operation.as_str())))?;
    }
    writeln!(t, "## Rates (Tables 3, 4 and 7: what a launch, a wait and a copy cost)\n")?;
    writeln!(
        t,
        "The paper has 2.5 and 1.5 µs for the call and the run of a copy, 1.7–2.0 µs for a launch, 1.6–2.2 µs for a \
         kernel and 4.5–5.5 µs for a wait. Of arithmetic d is operations of one launch, of reads bytes.\n"
    )?;
    table(&mut t, cells.iter().filter(|c| c.operation == "rate"))?;
    goals(&mut t, cells)?;
    Ok(t)
}

/// The clock of the multiprocessors while the card worked: least, middle and largest, in MHz.
fn clock(csv: &str) -> Option<String> {
    let mut all: Vec<u32> =
        csv.lines().filter_map(|line| line.split(", ").nth(1)?.split(' ').next()?.parse().ok()).collect();
    all.sort_unstable();
    let (least, most) = (all.first()?, all.last()?);
    Some(format!(
        "While it ran, the multiprocessors' clock was {least} to {most} MHz, {} in the middle of {} samples.",
        all[all.len() / 2],
        all.len()
    ))
}

fn table<'a>(t: &mut String, cells: impl Iterator<Item = &'a Cell>) -> Outcome<()> {
    writeln!(
        t,
        "| N | primes | d | way | printed | wall | device | model | answers |\n|---|---|---|---|---|---|---|---|---|"
    )?;
    let number =
        |x: Option<f64>| x.map_or("–".into(), |x| if x < 100.0 { format!("{x:.2}") } else { format!("{x:.0}") });
    for c in cells {
        let model = if c.floor_us > 0.0 { number(Some(c.floor_us)) } else { "–".into() };
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

/// Microseconds for polynomials of two primes and N = 8192, of 1000 ciphertexts, once through an H100's memory.
fn copied(polynomials: usize) -> f64 {
    (8 * polynomials * 2 * 8192 * 1000) as f64 / ASSUMED_COPY
}

/// A figure to reach: what it is of, the published one, the goal, the model's, and where a card would have measured it.
struct Goal<'a> {
    work: &'static str,
    published: &'static str,
    reach: &'static str,
    model: f64,
    measured: Option<&'a Cell>,
    /// Whether the measured time is of the whole batch and the goal of each.
    each: bool,
}

fn goals(t: &mut String, cells: &[Cell]) -> Outcome<()> {
    let find = |operation: &str, method: &str, n: usize| {
        let alike = |c: &&Cell| c.operation == operation && c.method == method && c.n == n && c.device_us.is_some();
        cells.iter().filter(alike).max_by_key(|c| c.d)
    };
    let paper = |operation| find(operation, "one launch", 8192).filter(|c| c.d == 1000);
    let whole = |n| find("multiply, relinearise, rescale", "five launches", n);
    let set = |log_n, limbs, special| model::mul_rescale((log_n, limbs, special));
    let [arithmetic, memory] = model::bootstrap(8)?;
    let large = model::proposals(Shape::new(1024, 1024, 1024), None, Security::Bits128)?;
    let (large_us, large) = large.first().ok_or("no method that devices run has a product of 1024×1024 matrices")?;
    let goal = |work, published, reach, model, measured, each| Goal { work, published, reach, model, measured, each };
    let all = [
        goal(
            "product of d = 1000 pairs, N = 8192",
            "10142 / 5874 / 6877 / 3297 (RTX 3090)",
            "350",
            copied(7),
            paper("product"),
            false,
        ),
        goal("sum of d = 1000", "8069 / 4974 (RTX 3090)", "300", copied(6), paper("sum"), false),
        goal("multiply, relinearise, rescale, each: 2^13, 3 + 1", "–", "1.7", set(13, 3, 1), whole(1 << 13), true),
        goal("the same: 2^14, 8 + 2", "–", "10", set(14, 8, 2), whole(1 << 14), true),
        goal("the same: 2^15, 16 + 4", "–", "40", set(15, 16, 4), whole(1 << 15), true),
        goal("the same: 2^16, 30 + 8", "–", "150", set(16, 30, 8), whole(1 << 16), true),
        goal(
            "bootstrap, set A, 2^15 slots, one of 8",
            "31200 (Cheddar, H100), 12800 (Theodosian, RTX 5090)",
            "40000",
            arithmetic.max(memory),
            None,
            false,
        ),
        goal(
            "1024³ encrypted product",
            "–",
            "15000",
            *large_us,
            find("matrix product", &format!("{}, 1024×1024×1024", large.plan()?.name()), 1 << large.params.log_n),
            false,
        ),
    ];
    writeln!(
        t,
        "## Figures to reach on an H100\n\nMicroseconds.\n\n| Work | published | reach | model | found | by |\n|---|---|---|---|---|---|"
    )?;
    for g in &all {
        let measured = g.measured.and_then(|c| c.device_us.map(|us| if g.each { us / c.d as f64 } else { us }));
        let (us, by) = measured.map_or((g.model, "model"), |us| (us, "measured"));
        writeln!(t, "| {} | {} | {} | {:.1} | {us:.1} | {by} |", g.work, g.published, g.reach, g.model)?;
    }
    writeln!(
        t,
        "\n**The model** is of an H100: 132 multiprocessors at 1.7 GHz, 64 FP64 and 128 instructions a clock each, {:.1} TB/s \
         copied, 5.5 TB/s from the second-level cache. A launch of an operation with keys takes the largest of four bounds, below; \
         every ceiling is taken to be reached. Sums and products are their bytes at that rate. The bootstrap is the larger of its \
         transforms' arithmetic ({:.1} ms, 9 FP64 a butterfly) and of its memory ({:.1} ms: an eighth of its keys, values of each \
         transform in and out twice): a bound from below. The product \
         of 1024×1024 matrices is by the method {}, N = 2^{}, {} + {} primes: the cheapest of those whose every step has a kernel.",
        ASSUMED_COPY / 1e6,
        arithmetic / 1e3,
        memory / 1e3,
        large.plan()?.name(),
        large.params.log_n,
        large.params.q_bits.len(),
        large.params.p_bits.len()
    )?;
    bounds(t)
}

/// What binds each launch of a product, by the model.
fn bounds(t: &mut String) -> Outcome<()> {
    writeln!(
        t,
        "\n## What binds a product's launches\n\nMicroseconds of one of a large batch by the model: instructions / operations on doubles / \
         second-level cache / memory. Operations and words are those that the emulator counted (`bench/gpu/launches.json`); \
         the instructions that come with them are the compiled kernels' (`bench/gpu/counts.json`, sm_90).\n"
    )?;
    let sets: Vec<String> =
        SETS.iter().map(|(log_n, limbs, special)| format!("2^{log_n}, {limbs} + {special}")).collect();
    writeln!(t, "| launch | {} |\n|---|{}", sets.join(" | "), "---|".repeat(sets.len()))?;
    let columns = SETS.map(|set| model::launches(set, "product"));
    for launch in 0..columns.iter().map(|c| c.len()).max().unwrap_or(0) {
        let name = columns[0].get(launch).and_then(|c| c.kernel.split('_').next()).unwrap_or_default();
        let cell = |counts: Option<&Counts>| {
            counts.map_or("–".into(), |c| {
                let most = c.us();
                let one = |us: f64| if us < most { format!("{us:.2}") } else { format!("**{us:.2}**") };
                c.bounds().map(one).join(" / ")
            })
        };
        let cells: Vec<String> = columns.iter().map(|c| cell(c.get(launch))).collect();
        writeln!(t, "| {name} | {} |", cells.join(" | "))?;
    }
    writeln!(t, "| sum of the largest | {} |", SETS.map(|set| format!("{:.2}", model::mul_rescale(set))).join(" | "))?;
    Ok(())
}
