//! Repetitions, quantiles, and the unit that figures are told in.

use crate::Outcome;
use crate::machine::cpu_time;
use serde::Serialize;
use std::time::{Duration, Instant};
use sudare_ring::buffer::Buffer;
use sudare_ring::prime::ntt_primes;
use sudare_testkit::Random;
use tfhe_ntt::prime64::Plan;

/// Degree of the unit's transform.
const UNIT_DEGREE: usize = 1 << 14;
/// Transforms in one sample of the unit, after one that warms the caches.
const UNIT_INNER: u32 = 4;
/// Shortest sample of an operation; quicker ones are repeated within a sample.
const SAMPLE: Duration = Duration::from_micros(200);

/// An operation that takes longer than this runs once.
const LONG: Duration = Duration::from_secs(10);

/// The unit: one forward transform of the crate `tfhe-ntt` at N = 2^14 with a 50-bit prime.
pub struct Unit {
    plan: Plan,
    values: Buffer,
}

impl Unit {
    /// Prepares the transform.
    pub fn new() -> Outcome<Self> {
        let q = ntt_primes(UNIT_DEGREE, 50, 1, &[])?[0];
        let plan = Plan::try_new(UNIT_DEGREE, q).ok_or("the peer's transform refuses a 50-bit prime")?;
        let mut values = Buffer::zeroed(UNIT_DEGREE);
        fill(&mut values, q, 1);
        Ok(Self { plan, values })
    }

    /// Times one warm transform.
    pub fn sample(&mut self, into: &mut Clocks) {
        self.plan.fwd(&mut self.values);
        let clock = Clock::start();
        (0..UNIT_INNER).for_each(|_| self.plan.fwd(&mut self.values));
        clock.stop(UNIT_INNER, into);
    }
}

/// Seconds of the processor that a unit takes now, a median: for suites whose work runs in other processes.
pub fn unit_seconds() -> Outcome<f64> {
    const SAMPLES: usize = 21;
    let (mut unit, mut clocks) = (Unit::new()?, Clocks::default());
    (0..SAMPLES).for_each(|_| unit.sample(&mut clocks));
    Ok(clocks.cpu.median().unwrap_or(f64::NAN) / 1e3)
}

/// Pseudo-random words below `q`: test data, no secrets.
pub fn fill(words: &mut [u64], q: u64, salt: u64) {
    let mut random = Random(salt);
    words.iter_mut().for_each(|w| *w = random.word() % q);
}

/// Measured times in milliseconds, in the order of measurement.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Samples(pub Vec<f64>);

impl Samples {
    /// The `p`-quantile by the nearest rank; `None` without samples.
    pub fn quantile(&self, p: f64) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        Some(sorted[(p * last as f64).round() as usize])
    }

    /// The median.
    pub fn median(&self) -> Option<f64> {
        self.quantile(0.5)
    }
}

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Seconds for one case, after which no new sample starts.
    pub seconds: f64,
    /// Least number of samples, whatever they take.
    pub least: usize,
}

/// Times of one operation by two clocks.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// Wall time.
    pub wall: Samples,
    /// Processor time of all threads of this process: on a machine that others load too, what
    /// the operation itself took.
    pub cpu: Samples,
}

impl Clocks {
    /// Divides all times by a number of operations.
    pub fn divide(&mut self, by: u32) {
        self.wall.0.iter_mut().chain(&mut self.cpu.0).for_each(|t| *t /= f64::from(by));
    }
}

/// Both clocks at the start of a sample.
pub struct Clock {
    cpu: Duration,
    wall: Instant,
}

impl Clock {
    /// Now.
    pub fn start() -> Self {
        Self { cpu: cpu_time(), wall: Instant::now() }
    }

    /// Notes the time since the start, a part for each of some operations.
    pub fn stop(&self, operations: u32, into: &mut Clocks) {
        let (wall, cpu) = (self.wall.elapsed(), cpu_time().saturating_sub(self.cpu));
        into.wall.0.push(milliseconds(wall) / f64::from(operations));
        into.cpu.0.push(milliseconds(cpu) / f64::from(operations));
    }
}

/// One case's measurement.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// One operation.
    pub ours: Clocks,
    /// The peer's, measured in turn with ours.
    pub peer: Clocks,
    /// The unit, measured in turn with both.
    pub unit: Clocks,
}

/// Measures `peer` and `ours` against each other, and the unit: each runs once before its sample, and
/// they take turns at going first, so that neither finds the other's caches or clock frequency.
pub fn duel(unit: &mut Unit, budget: Budget, mut peer: impl FnMut(), mut ours: impl FnMut()) -> Timing {
    let mut timing = Timing::default();
    peer();
    let start = Instant::now();
    peer();
    let repeat = (SAMPLE.as_nanos() / start.elapsed().as_nanos().max(1)).clamp(1, 1000) as u32;
    let sample = |work: &mut dyn FnMut(), into: &mut Clocks| {
        work();
        let clock = Clock::start();
        (0..repeat).for_each(|_| work());
        clock.stop(repeat, into);
    };
    let begin = Instant::now();
    let mut rounds = 0;
    while rounds < budget.least || (begin.elapsed().as_secs_f64() < budget.seconds && rounds < MOST) {
        unit.sample(&mut timing.unit);
        for turn in 0..2 {
            match (rounds + turn).is_multiple_of(2) {
                true => sample(&mut peer, &mut timing.peer),
                false => sample(&mut ours, &mut timing.ours),
            }
        }
        rounds += 1;
    }
    timing
}

/// Most samples kept of one case.
const MOST: usize = 2000;

/// Measures an operation, its peer if there is one, and the unit, in turn: ours and the peer's take turns at going first,
/// so that neither always finds the other's caches or clock frequency.
pub fn measure(
    unit: &mut Unit,
    budget: Budget,
    mut ours: impl FnMut() -> Outcome<()>,
    mut peer: Option<&mut dyn FnMut()>,
) -> Outcome<Timing> {
    // Warm-up and the number of repetitions within a sample, the same for both sides.
    let mut timing = Timing::default();
    let clock = Clock::start();
    ours()?;
    let cold = clock.wall.elapsed();
    if cold > LONG {
        // It warmed itself up, and to repeat it costs more than it tells.
        clock.stop(1, &mut timing.ours);
        (0..3).for_each(|_| unit.sample(&mut timing.unit));
        return Ok(timing);
    }
    let repeat = if cold > SAMPLE {
        1
    } else {
        let start = Instant::now();
        ours()?;
        (SAMPLE.as_nanos() / start.elapsed().as_nanos().max(1)).clamp(1, 1000) as u32
    };
    if let Some(peer) = &mut peer {
        peer();
    }
    let begin = Instant::now();
    let count = |timing: &Timing| timing.ours.wall.0.len();
    while count(&timing) < budget.least || (begin.elapsed().as_secs_f64() < budget.seconds && count(&timing) < MOST) {
        unit.sample(&mut timing.unit);
        let ours_first = count(&timing).is_multiple_of(2);
        for ours_now in [ours_first, !ours_first] {
            let clock = Clock::start();
            if ours_now {
                for _ in 0..repeat {
                    ours()?;
                }
                clock.stop(repeat, &mut timing.ours);
            } else if let Some(peer) = &mut peer {
                (0..repeat).for_each(|_| peer());
                clock.stop(repeat, &mut timing.peer);
            }
        }
    }
    Ok(timing)
}

/// Milliseconds of a duration.
pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let samples = Samples((0..=10).rev().map(f64::from).collect());
        assert_eq!(samples.median(), Some(5.0));
        assert_eq!((samples.quantile(0.1), samples.quantile(0.9)), (Some(1.0), Some(9.0)));
        assert_eq!(Samples::default().median(), None);
        assert_eq!(Samples(vec![3.0]).quantile(0.9), Some(3.0));
    }

    #[test]
    fn all_sides_are_measured_in_turn() {
        let mut unit = Unit::new().unwrap();
        let (mut ours, mut peers) = (0u64, 0u64);
        let budget = Budget { seconds: 0.0, least: 5 };
        let mut count = || {
            ours += 1;
            Ok(())
        };
        let timing = measure(&mut unit, budget, &mut count, Some(&mut || peers += 1)).unwrap();
        assert_eq!([&timing.ours, &timing.peer, &timing.unit].map(|c| (c.wall.0.len(), c.cpu.0.len())), [(5, 5); 3]);
        assert_eq!(ours, peers + 1);
        assert!(timing.unit.wall.median().unwrap() > 0.0);
        assert!(measure(&mut unit, budget, || Err("no".into()), None).is_err());
    }

    #[test]
    fn neither_side_always_goes_first() {
        let mut unit = Unit::new().unwrap();
        let order = std::cell::RefCell::new(String::new());
        let wait = || std::thread::sleep(SAMPLE * 2);
        let mut ours = || {
            wait();
            order.borrow_mut().push('o');
            Ok(())
        };
        let mut peer = || order.borrow_mut().push('p');
        measure(&mut unit, Budget { seconds: 0.0, least: 4 }, &mut ours, Some(&mut peer)).unwrap();
        // Each once to warm up, then in turn.
        assert_eq!(*order.borrow(), "op".to_owned() + "oppooppo");
    }

    #[test]
    fn test_data_is_in_range() {
        let mut random = Random(7);
        let values: Vec<f64> = (0..4000).map(|_| random.unit()).collect();
        assert!(values.iter().all(|x| (-1.0..1.0).contains(x)));
        assert!(values.iter().sum::<f64>().abs() < 200.0);
    }
}
