//! What the card does at best: a copy, reads from the second-level cache, arithmetic, and what a launch and a wait cost.

use super::{Bench, Cell, basis, uniform};
use crate::Outcome;
use sudare_cuda::Batch;
use sudare_cuda::ops::rate::{Of, Rate};
use sudare_ring::Eval;

/// Measures the rates; the copy's becomes the unit of every floor.
pub fn run(bench: &mut Bench, put: &mut dyn FnMut(Cell) -> Outcome<()>) -> Outcome<()> {
    let ring = basis(8192, &[60, 40], &[])?;
    let items = if bench.small { 2 } else { 2048 };
    let one = [uniform(&ring, 1), uniform(&ring, 2)];
    let refs: Vec<&[_]> = (0..items).map(|_| one.as_slice()).collect();
    let from = Batch::<Eval>::from_host(&bench.device, &ring, &refs)?;
    let mut to = from.room(2)?;
    let bytes = 2 * from.bytes();
    let device_us = bench.device_time(&mut || Ok(from.copy_all(&mut to)?))?;
    if let Some(us) = device_us {
        bench.copy = bytes as f64 / us;
    } else {
        from.copy_all(&mut to)?;
    }
    let copy = bench.copy;
    let cell = |method: &str, d, wall_us, device_us, bytes: usize, check| Cell {
        operation: "rate".into(),
        method: method.into(),
        n: 8192,
        primes: "{60, 40}".into(),
        d,
        wall_us,
        device_us,
        bytes,
        floor_us: bytes as f64 / copy,
        printed_us: None,
        check,
    };
    put(cell("copy", items, None, device_us, bytes, bench.check(&to, items, &[one])?))?;
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
        put(cell(name, launches, wall, None, 0, bench.check(&sum, 1, &[[p[0].add(&p[0])]])?))?;
    }
    pipes(bench, put)
}

/// Arithmetic by instruction, and reads of 16 MB. `d` is operations (bytes, of reads); the model, what
/// they take by what CUDA's guide says of an H100: 132 multiprocessors at 1.7 GHz.
fn pipes(bench: &Bench, put: &mut dyn FnMut(Cell) -> Outcome<()>) -> Outcome<()> {
    let (blocks, rounds) = if bench.small { (2, 2) } else { (1 << 12, 1 << 12) };
    for of in Of::ALL {
        // L2 of an H100: 5.5 TB/s.
        let (name, each) = match of {
            Of::Fp64 => ("FP64", 64.0),
            Of::Imad => ("IMAD", 64.0),
            // Compiled to a product and two sums for each: instructions bind.
            Of::ImadWide => ("IMAD.WIDE, two sums", 128.0 / 3.0),
            Of::Read => ("reads from L2", 5.5e6 / (132.0 * 1.7e3)),
        };
        let (blocks, rounds) = if of == Of::Read && !bench.small { (512, 256) } else { (blocks, rounds) };
        let mut rate = Rate::new(&bench.device, of, blocks, rounds)?;
        rate.run()?;
        let wrong = rate.wrong()?;
        let device_us = bench.device_time(&mut || Ok(rate.run()?))?;
        put(Cell {
            operation: "rate".into(),
            method: name.into(),
            n: 0,
            primes: "–".into(),
            d: rate.amount(),
            wall_us: None,
            device_us,
            bytes: rate.bytes(),
            floor_us: rate.amount() as f64 / (each * 132.0 * 1.7e3),
            printed_us: None,
            check: if wrong == 0 { "ok".into() } else { format!("{wrong} words differ from the processor's") },
        })?;
    }
    Ok(())
}
