//! What a machine's time buys: prices for [`Work`].

use serde::{Deserialize, Serialize};
use std::time::Duration;
use sudare_he::HeError;
use sudare_ring::measure;
use sudare_rlwe::work::Work;

/// Version of the measurements; a cached model of another one is ignored.
const VERSION: u32 = 3;
/// Measured degrees.
const LOG_NS: std::ops::RangeInclusive<u32> = 12..=17;

/// Nanoseconds of work on one limb at one degree, on one thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DegreeCost {
    /// log2 N.
    pub log_n: u32,
    /// A transform, prime below 2^50.
    pub ntt_ns: f64,
    /// A transform, larger prime.
    pub ntt_wide_ns: f64,
    /// An element-wise pass, prime below 2^50.
    pub pass_ns: f64,
    /// An element-wise pass, larger prime.
    pub pass_wide_ns: f64,
    /// A term of one of a key switch's two inner products, prime below 2^50.
    pub term_ns: f64,
    /// The same, larger prime.
    pub term_wide_ns: f64,
}

/// Prices of the primitive operations on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostModel {
    /// Version of the measurements.
    pub version: u32,
    /// The processor that was measured.
    pub machine: String,
    /// Kernel families in use, below 2^50 and above.
    pub kernels: [String; 2],
    /// Costs at each degree, ascending.
    pub degrees: Vec<DegreeCost>,
    /// Nanoseconds of a modular multiply-accumulate inside a matrix product.
    pub mac_ns: f64,
    /// The same modulo a narrow prime.
    pub mac_narrow_ns: f64,
    /// Bytes a second at which keys are streamed from memory.
    pub key_bandwidth: f64,
    /// Threads of the machine.
    pub threads: usize,
    /// What each thread after the first adds, in threads: 1 on whole cores, less where two
    /// threads share one.
    pub thread_gain: f64,
}

impl Default for CostModel {
    /// Figures measured on a Sapphire Rapids server, one core that others shared.
    fn default() -> Self {
        // Terms are reckoned by the bytes of words, packed keys and sums that each moves, where a pass moves 32 a word.
        let row = |log_n, ntt_ns, ntt_wide_ns, pass_ns, pass_wide_ns| DegreeCost {
            log_n,
            ntt_ns,
            ntt_wide_ns,
            pass_ns,
            pass_wide_ns,
            term_ns: pass_ns * 12.0 / 32.0,
            term_wide_ns: pass_wide_ns * 14.0 / 32.0,
        };
        Self {
            version: VERSION,
            machine: "built-in figures of a Sapphire Rapids core".into(),
            kernels: ["avx512ifma".into(), "avx512dq".into()],
            degrees: vec![
                row(12, 4_400.0, 16_000.0, 1_800.0, 3_800.0),
                row(13, 9_300.0, 28_400.0, 3_400.0, 10_400.0),
                row(14, 25_200.0, 75_900.0, 10_100.0, 17_000.0),
                row(15, 55_600.0, 168_600.0, 25_900.0, 43_900.0),
                row(16, 134_000.0, 368_000.0, 57_600.0, 94_000.0),
                row(17, 338_000.0, 787_000.0, 139_000.0, 192_000.0),
            ],
            mac_ns: 0.068,
            // Reckoned: one operation of two.
            mac_narrow_ns: 0.034,
            key_bandwidth: 5.1e9,
            threads: 1,
            thread_gain: 1.0,
        }
    }
}

impl CostModel {
    /// Seconds that an amount of work takes at degree 2^`log_n` on `threads` threads.
    pub fn price(&self, work: &Work, log_n: u32, threads: usize) -> f64 {
        let d = self.at(log_n);
        let compute = work.ntt * d.ntt_ns
            + work.ntt_wide * d.ntt_wide_ns
            + (work.pass + work.sums) * d.pass_ns
            + (work.pass_wide + work.sums_wide) * d.pass_wide_ns
            + work.term * d.term_ns
            + work.term_wide * d.term_wide_ns
            + work.mac * self.mac_ns
            + work.mac_narrow * self.mac_narrow_ns;
        let speed = 1.0 + (threads.max(1) as f64 - 1.0) * self.thread_gain;
        compute * 1e-9 / speed + (work.key_bytes + work.operand_bytes) / self.key_bandwidth
    }

    /// Costs at a degree; between and beyond the measured ones they go with N.
    fn at(&self, log_n: u32) -> DegreeCost {
        let nearest = self.degrees.iter().min_by_key(|d| d.log_n.abs_diff(log_n));
        let Some(d) = nearest else { return Self::default().at(log_n) };
        let f = (f64::from(log_n) - f64::from(d.log_n)).exp2();
        DegreeCost {
            log_n,
            ntt_ns: d.ntt_ns * f,
            ntt_wide_ns: d.ntt_wide_ns * f,
            pass_ns: d.pass_ns * f,
            pass_wide_ns: d.pass_wide_ns * f,
            term_ns: d.term_ns * f,
            term_wide_ns: d.term_wide_ns * f,
        }
    }

    /// Measures this machine, which has a name and `threads` threads, by a clock of the caller's: some two seconds.
    ///
    /// # Errors
    /// `RlweError::Ring` if a ring of the measurement cannot be built.
    pub fn measure(machine: String, threads: usize, now: &impl Fn() -> Duration) -> Result<Self, HeError> {
        let degree = |log_n| -> Result<DegreeCost, HeError> {
            let [ntt_ns, pass_ns, term_ns] = measure::passes(log_n, 46, now)?;
            let [ntt_wide_ns, pass_wide_ns, term_wide_ns] = measure::passes(log_n, 60, now)?;
            Ok(DegreeCost { log_n, ntt_ns, ntt_wide_ns, pass_ns, pass_wide_ns, term_ns, term_wide_ns })
        };
        Ok(Self {
            version: VERSION,
            machine,
            kernels: measure::families()?.map(Into::into),
            degrees: LOG_NS.map(degree).collect::<Result<_, _>>()?,
            mac_ns: measure::multiply_accumulate(46, now)?,
            mac_narrow_ns: measure::multiply_accumulate(24, now)?,
            key_bandwidth: measure::bandwidth(now),
            threads,
            thread_gain: measure::thread_gain(threads, now)?,
        })
    }

    /// Whether figures from a file can be prices.
    pub fn plausible(&self) -> bool {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        self.version == VERSION
            && !self.degrees.is_empty()
            && self.degrees.len() <= 32
            && self.degrees.iter().all(|d| {
                let all = [d.ntt_ns, d.ntt_wide_ns, d.pass_ns, d.pass_wide_ns, d.term_ns, d.term_wide_ns];
                d.log_n <= 32 && all.into_iter().all(positive)
            })
            && positive(self.mac_ns)
            && positive(self.mac_narrow_ns)
            && positive(self.key_bandwidth)
            && (0.0..=2.0).contains(&self.thread_gain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_add_up() {
        let model = CostModel::default();
        let work = Work { ntt: 2.0, pass: 3.0, ..Work::default() };
        let one = model.price(&work, 14, 1);
        assert!((one - (2.0 * model.at(14).ntt_ns + 3.0 * model.at(14).pass_ns) * 1e-9).abs() < 1e-12);
        assert!((model.price(&(work * 2.0), 14, 1) - 2.0 * one).abs() < 1e-12);
        assert!((model.price(&work, 14, 2) - one / 2.0).abs() < 1e-12);
        assert!(model.price(&work, 11, 1) < one);
    }

    #[test]
    fn a_measured_model_is_plausible() {
        let start = std::time::Instant::now();
        let model = CostModel::measure("this one".into(), 2, &|| start.elapsed()).unwrap();
        assert!(model.plausible(), "{model:?}");
        let back: CostModel = serde_json::from_str(&serde_json::to_string(&model).unwrap()).unwrap();
        assert!(back.plausible());
        assert!(!CostModel { mac_ns: f64::NAN, ..model }.plausible());
    }
}
