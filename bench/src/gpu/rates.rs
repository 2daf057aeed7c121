//! What the card does at best: a copy, and what a launch and a wait cost.

use super::{Bench, Cell, basis, check, uniform};
use crate::Outcome;
use sudare_cuda::Batch;
use sudare_ring::Eval;

/// Measures the rates; the copy's becomes the unit of every floor.
pub fn run(bench: &mut Bench) -> Outcome<Vec<Cell>> {
    let ring = basis(8192, &[60, 40], &[])?;
    let items = if bench.device.info().emulated { 2 } else { 2048 };
    let one = [uniform(&ring, 1), uniform(&ring, 2)];
    let refs: Vec<&[_]> = (0..items).map(|_| one.as_slice()).collect();
    let from = Batch::<Eval>::from_host(&bench.device, &ring, &refs)?;
    let mut to = from.room(2)?;
    let bytes = 2 * from.bytes();
    let device_us = bench.device_time(&mut || from.copy_all(&mut to))?;
    if let Some(us) = device_us {
        bench.copy = (bytes as f64 / us, true);
    } else {
        from.copy_all(&mut to)?;
    }
    let cell = |method: &str, d, wall_us, device_us, bytes: usize, check| Cell {
        operation: "rate",
        method: method.into(),
        n: 8192,
        primes: "{60, 40}".into(),
        d,
        wall_us,
        device_us,
        bytes,
        floor_us: bytes as f64 / bench.copy.0,
        printed_us: None,
        check,
    };
    let mut cells = vec![cell("copy", items, None, device_us, bytes, check(&to, items - 1, &one)?)];
    // The smallest sum there is: what is left is the launch and the wait.
    let small = basis(1024, &[40], &[])?;
    let p = [uniform(&small, 3)];
    let x = Batch::<Eval>::from_host(&bench.device, &small, &[&p])?;
    let mut sum = x.room(1)?;
    for launches in [1, 100] {
        let wall = bench.times(launches, &mut || {
            for _ in 0..launches {
                x.add_into(&x, &mut sum, 0..1)?;
            }
            Ok(bench.device.synchronize()?)
        })?;
        let name = if launches == 1 { "launch and wait" } else { "100 launches, one wait" };
        cells.push(cell(name, launches, wall, None, 0, check(&sum, 0, &[p[0].add(&p[0])])?));
    }
    Ok(cells)
}
