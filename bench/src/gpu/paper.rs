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
        // Checked items are kept; the others are uploaded and forgotten.
        let one = |i: usize| [0, 1].map(|part| uniform(ring, salt + 2 * i as u64 + part));
        let each =
            (0..d).map(|i| Batch::<Eval>::from_host(&bench.device, ring, &[&one(i)])).collect::<Result<Vec<_>, _>>()?;
        let all = Batch::gather(&each.iter().map(|c| (c, 0)).collect::<Vec<_>>())?;
        Ok(Self { host: checked(d).into_iter().map(one).collect(), each, all })
    }
}

/// Items whose words are compared.
fn checked(d: usize) -> Vec<usize> {
    let mut items = vec![0, d / 2, d - 1];
    items.dedup();
    items
}

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
        operation,
        method: method.into(),
        n: ring.degree(),
        primes: format!("{{{}}}", widths.join(", ")),
        d,
        wall_us: None,
        device_us: None,
        bytes,
        floor_us: bytes as f64 / bench.copy.0,
        printed_us: printed(operation, method, ring.degree(), d),
        check: "ok".into(),
    }
}

fn sums(bench: &Bench, ring: &RnsBasis, bits: &[u32], a: &Operands, b: &Operands) -> Outcome<Vec<Cell>> {
    let d = a.each.len();
    let want: Vec<[Poly<Eval>; 2]> =
        a.host.iter().zip(&b.host).map(|(x, y)| [0, 1].map(|part| x[part].add(&y[part]))).collect();
    let mut cells = Vec::new();
    for (method, waits) in [("standard", true), ("method 1", false)] {
        let mut cell = cell(bench, ("sum", method), ring, bits, d);
        let mut out = a.each.iter().map(|x| x.room(2)).collect::<Result<Vec<_>, _>>()?;
        cell.wall_us = bench.times(d, &mut || {
            for ((x, y), out) in a.each.iter().zip(&b.each).zip(&mut out) {
                // A launch for each polynomial, as the paper's library has it.
                x.add_part_into(y, out, 0)?;
                x.add_part_into(y, out, 1)?;
                if waits {
                    bench.device.synchronize()?;
                }
            }
            Ok(bench.device.synchronize()?)
        })?;
        cell.check = right(checked(d).into_iter().map(|i| (&out[i], 0)), &want)?;
        cells.push(cell);
    }
    let mut cell = cell(bench, ("sum", "one launch"), ring, bits, d);
    let mut out = a.all.room(2)?;
    cell.wall_us = bench.times(d, &mut || {
        a.all.add_into(&b.all, &mut out, 0..d)?;
        Ok(bench.device.synchronize()?)
    })?;
    cell.device_us = bench.device_time(&mut || a.all.add_into(&b.all, &mut out, 0..d))?;
    cell.check = right(checked(d).into_iter().map(|i| (&out, i)), &want)?;
    cells.push(cell);
    Ok(cells)
}

fn products(bench: &Bench, ring: &RnsBasis, bits: &[u32], a: &Operands, b: &Operands) -> Outcome<Vec<Cell>> {
    let d = a.each.len();
    let tensor = |(x, y): (&[Poly<Eval>; 2], &[Poly<Eval>; 2])| ops::tensor(ring, &[[&x[0], &x[1]]], &[[&y[0], &y[1]]]);
    let want: Vec<[Poly<Eval>; 3]> = a.host.iter().zip(&b.host).map(tensor).collect();
    let mut cells = Vec::new();
    let ways = [
        ("standard", true, true),
        ("method 1", true, false),
        ("method 2", false, true),
        ("both methods", false, false),
    ];
    for (method, copies, waits) in ways {
        let mut cell = cell(bench, ("product", method), ring, bits, d);
        let mut work = a.each[0].room(2)?;
        let mut out = a.each.iter().map(|x| x.room(3)).collect::<Result<Vec<_>, _>>()?;
        cell.wall_us = bench.times(d, &mut || {
            for ((x, y), out) in a.each.iter().zip(&b.each).zip(&mut out) {
                if copies {
                    x.copy_all(&mut work)?;
                }
                let x = if copies { &work } else { x };
                x.tensor_into(y, out, 0..1)?;
                if waits {
                    bench.device.synchronize()?;
                }
            }
            Ok(bench.device.synchronize()?)
        })?;
        cell.check = right(checked(d).into_iter().map(|i| (&out[i], 0)), &want)?;
        cells.push(cell);
    }
    let mut cell = cell(bench, ("product", "one launch"), ring, bits, d);
    let mut out = a.all.room(3)?;
    cell.wall_us = bench.times(d, &mut || {
        a.all.tensor_into(&b.all, &mut out, 0..d)?;
        Ok(bench.device.synchronize()?)
    })?;
    cell.device_us = bench.device_time(&mut || a.all.tensor_into(&b.all, &mut out, 0..d))?;
    cell.check = right(checked(d).into_iter().map(|i| (&out, i)), &want)?;
    cells.push(cell);
    Ok(cells)
}

/// `ok`, or the first fault.
fn right<'a, const PARTS: usize>(
    got: impl Iterator<Item = (&'a Batch<Eval>, usize)>,
    want: &[[Poly<Eval>; PARTS]],
) -> Outcome<String> {
    for ((batch, item), want) in got.zip(want) {
        let said = check(batch, item, want)?;
        if said != "ok" {
            return Ok(said);
        }
    }
    Ok("ok".into())
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

    #[test]
    fn checked_items_are_distinct() {
        assert_eq!([checked(1), checked(2), checked(1000)], [vec![0], vec![0, 1], vec![0, 500, 999]]);
    }
}
