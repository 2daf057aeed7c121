//! `fma`: a product and a sum in two calls against one fused kernel (`004`, section 5.1, Table 5.2).

use crate::Outcome;
use crate::lines::{Line, Lines};
use crate::machine::{Machine, l2_bytes};
use crate::timing::{Budget, Unit, duel, fill};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sudare_ring::Limb;
use sudare_ring::buffer::Buffer;
use sudare_ring::prime::ntt_primes;

/// One limb's work: `a`, and what it is multiplied by and added to.
type Work = dyn Fn(&Limb, &mut [u64], &[u64], &[u64]);

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// log2 of the lengths.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 11, 12, 13, 14, 15])]
    log_n: Vec<u32>,
    /// Numbers of primes.
    #[arg(long, value_delimiter = ',', default_values_t = 1..=15usize)]
    l: Vec<usize>,
    /// Bits of the primes: the paper's 60, and those that the IFMA kernels serve.
    #[arg(long, value_delimiter = ',', default_values_t = [60, 49, 40])]
    bits: Vec<u32>,
}

impl Options {
    /// All of Table 5.2, and the same with primes for IFMA.
    pub fn paper() -> Self {
        Self { log_n: (10..=15).collect(), l: (1..=15).collect(), bits: vec![60, 49, 40] }
    }
}

/// A cell of Table 5.2.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// `fma`.
    pub suite: String,
    /// log2 of the length.
    pub log_n: u32,
    /// Primes.
    pub l: usize,
    /// Their bits.
    pub bits: u32,
    /// Kernel family.
    pub family: String,
    /// Bytes of the three operands and the primes.
    pub bytes: usize,
    /// Whether these are more than this machine's second-level cache holds.
    pub past_l2: bool,
    /// Median wall time in two calls, µs.
    pub mult_add_us: Option<f64>,
    /// Median wall time fused, µs.
    pub fma_us: Option<f64>,
    /// The same by processor time.
    pub mult_add_cpu_us: Option<f64>,
    /// The same by processor time.
    pub fma_cpu_us: Option<f64>,
    /// Processor time in two calls over fused: above 1 the fused kernel is faster.
    pub speedup: Option<f64>,
    /// Fused, in units.
    pub fma_units: Option<f64>,
    /// Rounds.
    pub samples: usize,
    /// The paper's figures for 60 bits: MultAdd and FMA in µs.
    pub paper_us: Option<[f64; 2]>,
    /// `ok` or what was wrong.
    pub check: String,
    /// Conditions.
    pub kernel: String,
    /// Commit of the sources.
    pub commit: String,
    /// Day.
    pub date: String,
}

impl Cell {
    /// The paper's speed-up.
    pub fn paper_speedup(&self) -> Option<f64> {
        self.paper_us.map(|[two, one]| two / one)
    }
}

impl Line for Cell {
    const HEAD: &'static str =
        "log2 N   l bits family          bytes  MultAdd us     FMA us speedup   paper: MultAdd    FMA speedup check";

    fn row(&self) -> String {
        let number = |x: Option<f64>, digits: usize| x.map_or_else(String::new, |x| format!("{x:.digits$}"));
        format!(
            "{:>6} {:>3} {:>4} {:<10} {:>10} {:>11} {:>10} {:>7} {:>16} {:>6} {:>7} {}",
            self.log_n,
            self.l,
            self.bits,
            self.family,
            self.bytes,
            number(self.mult_add_us, 2),
            number(self.fma_us, 2),
            number(self.speedup, 3),
            number(self.paper_us.map(|p| p[0]), 2),
            number(self.paper_us.map(|p| p[1]), 2),
            number(self.paper_speedup(), 3),
            self.check
        )
    }

    fn wrong(&self) -> Option<&str> {
        (self.check != "ok").then_some(&self.check)
    }
}

/// The paper's Table 5.2: (log2 N, l) with MultAdd and FMA in µs.
fn printed() -> impl Iterator<Item = (u32, usize, [f64; 2])> {
    include_str!("../data/thesis-fma.tsv").lines().filter_map(|line| {
        let mut words = line.split('\t');
        let (n, l) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((n, l, [words.next()?.parse().ok()?, words.next()?.parse().ok()?]))
    })
}

/// Runs the suite; returns its cells.
pub fn run(options: &Options, budget: Budget, machine: &Machine, lines: &mut Lines) -> Outcome<Vec<Cell>> {
    let mut unit = Unit::new()?;
    let mut cells = Vec::new();
    for &bits in &options.bits {
        for &log_n in &options.log_n {
            let n = 1usize.checked_shl(log_n).unwrap_or(0);
            let most = options.l.iter().copied().max().unwrap_or(0);
            let limbs = ntt_primes(n, bits, most, &[])?.into_iter().map(|q| Ok(Arc::new(Limb::new(q, n)?)));
            let limbs = limbs.collect::<Outcome<Vec<_>>>()?;
            for &l in options.l.iter().filter(|l| **l > 0) {
                let cell = case(&mut unit, budget, &limbs[..l], bits, machine)?;
                lines.put(&cell)?;
                cells.push(cell);
            }
        }
    }
    Ok(cells)
}

fn case(unit: &mut Unit, budget: Budget, limbs: &[Arc<Limb>], bits: u32, machine: &Machine) -> Outcome<Cell> {
    let (n, l) = (limbs[0].degree(), limbs.len());
    let random = |salt: u64| {
        let mut words = Buffer::zeroed(n * l);
        for (i, (row, limb)) in words.chunks_exact_mut(n).zip(limbs).enumerate() {
            fill(row, limb.q(), salt + 8 * i as u64);
        }
        words
    };
    let (start, b, c) = (random(1), random(2), random(3));
    let rows = |a: &mut Buffer, work: &Work| {
        for (i, limb) in limbs.iter().enumerate() {
            let at = i * n..(i + 1) * n;
            work(limb, &mut a[at.clone()], &b[at.clone()], &c[at]);
        }
    };
    let two_calls = |limb: &Limb, a: &mut [u64], b: &[u64], c: &[u64]| {
        limb.mul_assign(a, b);
        limb.add_assign(a, c);
    };
    let fused = |limb: &Limb, a: &mut [u64], b: &[u64], c: &[u64]| limb.mul_assign_add(a, b, c);

    let (mut x, mut y) = (start.clone(), start.clone());
    rows(&mut x, &two_calls);
    rows(&mut y, &fused);
    let wanted = |i: usize| {
        let m = limbs[i / n].modulus();
        m.add(m.mul(start[i], b[i]), c[i])
    };
    let check = match (0..n * l).find(|i| y[*i] != wanted(*i) || x[*i] != wanted(*i)) {
        Some(i) => format!("word {i}: fused {}, two calls {}, should be {}", y[i], x[i], wanted(i)),
        None => "ok".to_owned(),
    };
    drop(y);
    // Both work on the same words, as they would in a program: a third buffer apart would tell
    // more of the cache than of the kernels.
    let a = std::cell::RefCell::new(x);
    let timing = duel(unit, budget, || rows(&mut a.borrow_mut(), &two_calls), || rows(&mut a.borrow_mut(), &fused));
    let us = |x: Option<f64>| x.map(|ms| 1000.0 * ms);
    let quotient = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
    let bytes = 8 * (3 * n * l + l);
    let log_n = n.trailing_zeros();
    Ok(Cell {
        suite: "fma".into(),
        log_n,
        l,
        bits,
        family: limbs[0].family().name().into(),
        bytes,
        past_l2: bytes > l2_bytes(),
        mult_add_us: us(timing.peer.wall.median()),
        fma_us: us(timing.ours.wall.median()),
        mult_add_cpu_us: us(timing.peer.cpu.median()),
        fma_cpu_us: us(timing.ours.cpu.median()),
        speedup: quotient(timing.peer.cpu.median(), timing.ours.cpu.median()),
        fma_units: quotient(timing.ours.cpu.median(), timing.unit.cpu.median()),
        samples: timing.ours.wall.0.len(),
        paper_us: printed().find(|p| bits == 60 && (p.0, p.1) == (log_n, l)).map(|p| p.2),
        check,
        kernel: machine.kernel.into(),
        commit: machine.commit.into(),
        date: machine.date.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_table_is_whole() {
        let all: Vec<_> = printed().collect();
        assert_eq!(all.len(), 6 * 15);
        // The range of its speed-ups as the text tells it.
        let ratios = all.iter().map(|(_, _, [two, one])| two / one);
        assert!(ratios.clone().fold(f64::INFINITY, f64::min) > 0.88 && ratios.fold(0.0, f64::max) < 1.15);
    }
}
