//! Sums and products without relinearisation of d ciphertexts: the paper's standard implementation, its method 1 (one
//! wait for all), method 2 (no copy), both, and what it leaves open: one launch.

use super::{Bench, Cell, basis, check, uniform};
use crate::Outcome;
use sudare_cuda::Batch;
use sudare_ring::{Eval, Poly, RnsBasis, ops};

/// Tables 5 and 6: µs on an RTX 3090 for d = 10, 100, 1000, N = 8192, {60, 40} and a special prime of 60 bits.
const PRINTED: [(&str, &str, [f64; 3]); 6] = [
    ("sum", "standard", [78.48, 817.9, 8069.4]),
    ("sum", "method 1", [45.73, 500.9, 4973.7]),
    ("product", "standard", [103.4, 1004.0, 10_141.5]),
    ("product", "method 1", [61.67, 592.9, 5873.5]),
    ("product", "method 2", [70.34, 699.0, 6877.4]),
    ("product", "both methods", [37.63, 338.8, 3297.1]),
];

/// The paper's figure for a case, where it has one.
pub fn printed(operation: &str, method: &str, n: usize, d: usize) -> Option<f64> {
    let column = [10, 100, 1000].iter().position(|x| *x == d).filter(|_| n == 8192)?;
    PRINTED.iter().find(|(o, m, _)| (*o, *m) == (operation, method)).map(|(_, _, us)| us[column])
}

/// d ciphertexts, each where it happens to be, and the same ones as a batch.
struct Operands {
    host: Vec<[Poly<Eval>; 2]>,
    each: Vec<Batch<Eval>>,
    all: Batch<Eval>,
}

impl Operands {
    fn new(bench: &Bench, ring: &RnsBasis, d: usize, salt: u64) -> Outcome<Self> {
        let one = |i: usize| [0, 1].map(|part| uniform(ring, salt + 2 * i as u64 + part));
        let host: Vec<_> = (0..d.min(DISTINCT)).map(one).collect();
        let upload = |i: usize| Batch::<Eval>::from_host(&bench.device, ring, &[&host[i % DISTINCT]]);
        let each = (0..d).map(upload).collect::<Result<Vec<_>, _>>()?;
        let all = Batch::gather(&each.iter().map(|c| (c, 0)).collect::<Vec<_>>())?;
        Ok(Self { host, each, all })
    }
}

/// Operands repeat after so many, each in memory of its own: all answers are compared with as many of the processor's.
const DISTINCT: usize = 4;

/// All ways for one d.
pub fn run(bench: &Bench, n: usize, bits: &[u32], d: usize) -> Outcome<Vec<Cell>> {
    if d == 0 {
        return Err("--d takes numbers of ciphertexts of at least one".into());
    }
    let ring = basis(n, bits, &[])?;
    let (a, b) = (Operands::new(bench, &ring, d, 1)?, Operands::new(bench, &ring, d, 1 << 20)?);
    let mut cells = sums(bench, &ring, bits, &a, &b)?;
    cells.extend(products(bench, &ring, bits, &a, &b)?);
    Ok(cells)
}

fn cell(bench: &Bench, (operation, method): (&'static str, &str), ring: &RnsBasis, bits: &[u32], d: usize) -> Cell {
    let polynomials = if operation == "sum" { 6 } else { 7 };
    let bytes = 8 * polynomials * d * ring.degree() * ring.len();
    let widths: Vec<String> = bits.iter().map(u32::to_string).collect();
    Cell {
        operation: operation.into(),
        method: method.into(),
        n: ring.degree(),
        primes: format!("{{{}}}", widths.join(", ")),
        d,
        wall_us: None,
        device_us: None,
        bytes,
        floor_us: bytes as f64 / bench.copy,
        printed_us: printed(operation, method, ring.degree(), d),
        check: "ok".into(),
    }
}

/// The operands of an operation on batches.
type Pair<'a> = [&'a Batch<Eval>; 2];

/// An operation on d pairs of ciphertexts: its answer has PARTS polynomials.
struct Case<'a, const PARTS: usize> {
    bench: &'a Bench,
    operation: &'static str,
    ring: &'a RnsBasis,
    bits: &'a [u32],
    pairs: [&'a Operands; 2],
    /// What the first items have to be; the others repeat them.
    want: Vec<[Poly<Eval>; PARTS]>,
}

impl<const PARTS: usize> Case<'_, PARTS> {
    fn cell(&self, method: &str) -> Cell {
        cell(self.bench, (self.operation, method), self.ring, self.bits, self.pairs[0].each.len())
    }

    /// Pair by pair, waiting for each or once.
    fn one_by_one(
        &self,
        method: &str,
        waits: bool,
        work: &mut dyn FnMut(Pair, &mut Batch<Eval>) -> Outcome<()>,
    ) -> Outcome<Cell> {
        let (bench, [a, b], mut cell) = (self.bench, self.pairs, self.cell(method));
        let mut out = a.each.iter().map(|x| x.room(PARTS)).collect::<Result<Vec<_>, _>>()?;
        cell.wall_us = bench.times(a.each.len(), &mut || {
            for ((x, y), out) in a.each.iter().zip(&b.each).zip(&mut out) {
                work([x, y], out)?;
                if waits {
                    bench.device.synchronize()?;
                }
            }
            Ok(bench.device.synchronize()?)
        })?;
        for (out, want) in out.iter().zip(self.want.iter().cycle()) {
            if cell.check == "ok" {
                cell.check = check(out, 0, want)?;
            }
        }
        Ok(cell)
    }

    /// All pairs in one launch.
    fn one_launch(&self, work: &dyn Fn(Pair, &mut Batch<Eval>) -> sudare_cuda::Result<()>) -> Outcome<Cell> {
        let (bench, [a, b], mut cell) = (self.bench, self.pairs, self.cell("one launch"));
        let mut out = a.all.room(PARTS)?;
        cell.wall_us = bench.times(a.each.len(), &mut || {
            work([&a.all, &b.all], &mut out)?;
            Ok(bench.device.synchronize()?)
        })?;
        cell.device_us = bench.device_time(&mut || Ok(work([&a.all, &b.all], &mut out)?))?;
        cell.check = bench.check(&out, a.each.len(), &self.want)?;
        Ok(cell)
    }
}

fn sums(bench: &Bench, ring: &RnsBasis, bits: &[u32], a: &Operands, b: &Operands) -> Outcome<Vec<Cell>> {
    let d = a.each.len();
    let want = a.host.iter().zip(&b.host).map(|(x, y)| [0, 1].map(|part| x[part].add(&y[part]))).collect();
    let case = Case::<2> { bench, operation: "sum", ring, bits, pairs: [a, b], want };
    // A launch for each polynomial, as the paper's library has it.
    let mut each = |[x, y]: [&Batch<Eval>; 2], out: &mut Batch<Eval>| {
        x.add_part_into(y, out, 0)?;
        Ok(x.add_part_into(y, out, 1)?)
    };
    Ok(vec![
        case.one_by_one("standard", true, &mut each)?,
        case.one_by_one("method 1", false, &mut each)?,
        case.one_launch(&|[x, y], out| x.add_into(y, out, 0..d))?,
    ])
}

fn products(bench: &Bench, ring: &RnsBasis, bits: &[u32], a: &Operands, b: &Operands) -> Outcome<Vec<Cell>> {
    let d = a.each.len();
    let tensor = |(x, y): (&[Poly<Eval>; 2], &[Poly<Eval>; 2])| ops::tensor(ring, &[[&x[0], &x[1]]], &[[&y[0], &y[1]]]);
    let want = a.host.iter().zip(&b.host).map(tensor).collect();
    let case = Case::<3> { bench, operation: "product", ring, bits, pairs: [a, b], want };
    let mut copy = a.each[0].room(2)?;
    let mut copied = |[x, y]: [&Batch<Eval>; 2], out: &mut Batch<Eval>| {
        x.copy_all(&mut copy)?;
        Ok(copy.tensor_into(y, out, 0..1)?)
    };
    let mut direct = |[x, y]: [&Batch<Eval>; 2], out: &mut Batch<Eval>| Ok(x.tensor_into(y, out, 0..1)?);
    Ok(vec![
        case.one_by_one("standard", true, &mut copied)?,
        case.one_by_one("method 1", false, &mut copied)?,
        case.one_by_one("method 2", true, &mut direct)?,
        case.one_by_one("both methods", false, &mut direct)?,
        case.one_launch(&|[x, y], out| x.tensor_into(y, out, 0..d))?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_figures_are_those_of_tables_5_and_6() {
        assert_eq!(printed("product", "both methods", 8192, 1000), Some(3297.1));
        assert_eq!(printed("sum", "standard", 8192, 10), Some(78.48));
        assert_eq!(printed("sum", "standard", 16_384, 10), None);
        assert_eq!(printed("sum", "method 2", 8192, 10), None);
        assert_eq!(printed("product", "one launch", 8192, 10), None);
    }
}
