//! Every kernel's answers at each degree, and what each launch of an operation takes: its share of the whole.

use super::model::{self, Counts, Launches};
use super::operations::{RESIDENT, SETS, Set, Want, World, mul_rescale};
use super::{Bench, Cell, median, said};
use crate::Outcome;
use sudare_cuda::Launched;
use sudare_gpu::Ciphertexts;

/// Sets with the number of ciphertexts. The emulator takes small ones, and the largest degree with the fewest primes that
/// have digits of two.
const ON_CARD: [(Set, usize); 4] = [(SETS[0], 256), (SETS[1], 64), (SETS[2], 16), (SETS[3], 4)];
const ON_EMULATOR: [(Set, usize); 2] = [((10, 3, 1), 2), ((16, 3, 2), 1)];
/// Runs whose launches are timed.
const RUNS: usize = 5;

/// All sets: a product that is relinearised and rescaled, and a rotation.
pub fn run(bench: &Bench, put: &mut dyn FnMut(Cell) -> Outcome<()>) -> Outcome<()> {
    let sets: &[(Set, usize)] = if bench.small { &ON_EMULATOR } else { &ON_CARD };
    for (set, batch) in sets {
        let world = World::new(*set, &[1])?;
        let here = world.there(bench, RESIDENT);
        let (x, y) = (world.upload(&here, 0, *batch)?, world.upload(&here, 1, *batch)?);
        let element = here.params().rotation_element(1);
        let mut each = |operation: &str, work: &dyn Fn() -> Outcome<Ciphertexts>, want: Want<'_>| {
            let mut cells = launches(bench, work)?;
            let counted = model::launches(*set, operation);
            let check = world.check(bench, *batch, &[work()?], want)?;
            for (i, cell) in cells.iter_mut().enumerate() {
                cell.floor_us = counted.get(i).map_or(0.0, |counts| counts.us() * *batch as f64);
                cell.method = format!("{} ({operation})", cell.method);
                cell.n = 1 << world.literal.log_n;
                cell.primes = format!("{} + {}", world.literal.q_bits.len(), world.literal.p_bits.len());
                cell.d = *batch;
                cell.check.clone_from(&check);
            }
            cells.into_iter().try_for_each(&mut *put)
        };
        each("product", &|| Ok(here.mul_rescale(&x, &y)?), &|i| {
            Ok(vec![mul_rescale(&world.host, world.some(i), world.some(i + 1))?])
        })?;
        each("rotation", &|| Ok(here.automorphism(&x, element, 1)?), &|i| {
            Ok(vec![world.host.automorphism(world.some(i), element, 1)?])
        })?;
    }
    Ok(())
}

/// What the launches of a product and of a rotation on a ciphertext of each set do, as the emulator counts.
pub fn count(bench: &Bench, sets: &[Set]) -> Outcome<Launches> {
    let one = |set: &Set| {
        let world = World::new(*set, &[1])?;
        let here = world.there(bench, RESIDENT);
        let (x, y) = (world.upload(&here, 0, 1)?, world.upload(&here, 1, 1)?);
        let element = here.params().rotation_element(1);
        let counted = |work: &dyn Fn() -> Outcome<Ciphertexts>| -> Outcome<Vec<Counts>> {
            let mut done = Ok(());
            let all = bench.device.launches(&mut || {
                done = work().map(drop);
                Ok(())
            })?;
            done?;
            let all: Option<Vec<Counts>> = all.iter().map(Counts::of).collect();
            Ok(all.ok_or("launches are counted on the emulator alone: add --emulate")?)
        };
        let product = counted(&|| Ok(here.mul_rescale(&x, &y)?))?;
        let rotation = counted(&|| Ok(here.automorphism(&x, element, 1)?))?;
        Ok((model::set_name(*set), [("product".into(), product), ("rotation".into(), rotation)].into()))
    };
    sets.iter().map(one).collect()
}

/// The launches of `work`, each with its median time.
fn launches(bench: &Bench, work: &dyn Fn() -> Outcome<Ciphertexts>) -> Outcome<Vec<Cell>> {
    // Tables and keys are copied by the first.
    work()?;
    let mut runs: Vec<Vec<Launched>> = Vec::new();
    for _ in 0..if bench.device.info().emulated { 1 } else { RUNS } {
        let mut done = Ok(());
        runs.push(bench.device.launches(&mut || {
            done = work().map(drop);
            Ok(())
        })?);
        done?;
    }
    let one = |(i, launch): (usize, &Launched)| {
        let times: Option<Vec<f64>> = runs.iter().map(|run| run.get(i).and_then(|l| l.us)).collect();
        Cell { device_us: times.map(median), ..said("launch", launch.kernel.clone(), String::new()) }
    };
    Ok(runs[0].iter().enumerate().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use sudare_cuda::{Device, Trial};

    /// The model's counts are what the kernels do now: words exactly; operations within a thousandth, as some depend on values.
    #[test]
    fn the_stored_launches_are_those_of_the_kernels() {
        let device = Device::emulator(Trial::default(), 1 << 30);
        let patience = Duration::ZERO;
        let bench = Bench { device, repetitions: 1, patience, copy: 1.0, end: None, small: true, fault: None };
        let found = count(&bench, &SETS[..1]).unwrap();
        for (operation, launches) in &found[&model::set_name(SETS[0])] {
            let stored = model::launches(SETS[0], operation);
            assert_eq!(launches.len(), stored.len(), "{operation}");
            for (now, then) in launches.iter().zip(stored) {
                assert!(now.doubles.abs_diff(then.doubles) * 1000 <= then.doubles, "{now:?}, {then:?}");
                assert_eq!(Counts { doubles: then.doubles, ..now.clone() }, *then);
            }
        }
    }
}
