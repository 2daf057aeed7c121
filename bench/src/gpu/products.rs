//! Whole products of a batch: multiply, relinearise and rescale in five launches.

use super::{Bench, Cell, basis, check, uniform};
use crate::Outcome;
use sudare_cuda::{Batch, Division, Gadget, Pairs};
use sudare_ring::ops::{self, PolyPairs, RnsGadget};
use sudare_ring::{Eval, Poly};

/// Degree, data primes, special primes, primes a digit, and microseconds of an H100's arithmetic by the model, which is
/// more than its memory and its second-level cache need.
type Set = (usize, &'static [u32], &'static [u32], usize, f64);

const SETS: [Set; 3] = [
    (1 << 13, &[49, 40, 40], &[49], 1, 1.0),
    (1 << 14, &[49, 40, 40, 40, 40, 40, 40, 40], &[49, 49], 2, 6.3),
    (1 << 15, &[49, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40], &[49, 49, 49, 49], 4, 26.0),
];

/// All sets for a batch of this size; the emulator leaves out the largest, which takes it seconds.
pub fn run(bench: &Bench, batch: usize) -> Outcome<Vec<Cell>> {
    let emulated = bench.device.info().emulated;
    SETS.iter().filter(|set| !emulated || set.0 < 1 << 15).map(|set| one(bench, set, batch)).collect()
}

fn one(bench: &Bench, (n, q, p, digit, model): &Set, batch: usize) -> Outcome<Cell> {
    let data = basis(*n, q, &[])?;
    let special = basis(*n, p, &[&data])?;
    let gadget = RnsGadget::new(&data, &special, *digit)?;
    let uniforms =
        |salt: u64| -> Vec<_> { (0..gadget.digits() as u64).map(|j| uniform(gadget.qp(), salt + j)).collect() };
    let key = PolyPairs::new(&uniforms(100), &uniforms(200));
    // Operands repeat after the first few: what is computed does not depend on them.
    let host: Vec<[Poly<Eval>; 2]> =
        (0..4u64).map(|i| [uniform(&data, 300 + 2 * i), uniform(&data, 301 + 2 * i)]).collect();
    let (a, b): (Vec<&[_]>, Vec<&[_]>) =
        (0..batch).map(|i| (host[i % 4].as_slice(), host[(i + 1) % 4].as_slice())).unzip();
    let (x, y) =
        (Batch::<Eval>::from_host(&bench.device, &data, &a)?, Batch::<Eval>::from_host(&bench.device, &data, &b)?);
    let (keep, drop) = (data.prefix(q.len() - 1), gadget.qp().select(q.len() - 1..gadget.qp().len()));
    let here = Gadget::new(&bench.device, &data, &special, *digit)?;
    let (pairs, divide) = (Pairs::from_host(&bench.device, &key)?, Division::new(&bench.device, &keep, &drop)?);
    let product = || here.product(&x, &y, &pairs, &divide);
    let out = product()?;
    let wall_us = bench.times(batch, &mut || {
        product()?;
        Ok(bench.device.synchronize()?)
    })?;
    let device_us = bench.device_time(&mut || product().map(std::mem::drop))?;
    let cpu = ops::Division::new(&keep, &drop)?;
    let mut said = String::from("ok");
    for item in [0, batch - 1] {
        let (a, b) = (&host[item % 4], &host[(item + 1) % 4]);
        let [d0, d1, d2] = ops::tensor(&data, &[[&a[0], &a[1]]], &[[&b[0], &b[1]]]);
        let want = cpu.apply(gadget.switch(&d2, Some([&d0, &d1]), &key));
        let now = check(&out, item, &want)?;
        said = if said == "ok" { now } else { said };
    }
    Ok(Cell {
        operation: "multiply, relinearise, rescale",
        method: "five launches".into(),
        n: *n,
        primes: format!("{} + {}", q.len(), p.len()),
        d: batch,
        wall_us,
        device_us,
        bytes: x.bytes() + y.bytes() + out.bytes(),
        floor_us: model * batch as f64,
        printed_us: None,
        check: said,
    })
}
