//! What a figure was measured on, and what the process used.

use crate::Outcome;
use serde::Serialize;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use sudare_plan::CostModel;
use sudare_ring::Family;

/// The conditions of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Processor model, family, model number and stepping.
    pub cpu: String,
    /// Logical processors of this process.
    pub cpus: usize,
    /// The kernel family that serves primes below 2^50 here.
    pub kernel: &'static str,
    /// Commit of the sources.
    pub commit: &'static str,
    /// Compiler.
    pub rustc: &'static str,
    /// Day of the run, UTC.
    pub date: String,
}

impl Machine {
    /// This machine, now.
    pub fn here() -> Self {
        let days = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 86_400;
        Self {
            cpu: cpu_model(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: Family::best().name(),
            commit: env!("LAB_COMMIT"),
            rustc: env!("LAB_RUSTC"),
            date: civil_date(days),
        }
    }
}

fn cpu_model(cpuinfo: &str) -> String {
    let field = |name: &str| {
        cpuinfo.lines().find_map(|l| {
            let (key, value) = l.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    match (field("model name"), field("cpu family"), field("model"), field("stepping")) {
        (Some(name), Some(family), Some(model), Some(step)) => {
            format!("{name}, family {family} model {model} stepping {step}")
        }
        (Some(name), ..) => name,
        _ => std::env::consts::ARCH.to_owned(),
    }
}

/// The day `days` after 1970-01-01 in the Gregorian calendar, as YYYY-MM-DD.
fn civil_date(days: u64) -> String {
    // Years are counted from March of year 0, so that leap days end them.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (d, m) = (of_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    format!("{:04}-{m:02}-{d:02}", era * 400 + year + u64::from(m <= 2))
}

/// Bytes of the second-level cache of one core; 2 MB where the system does not tell.
pub fn l2_bytes() -> usize {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size").unwrap_or_default();
    text.trim().strip_suffix('K').and_then(|kib| kib.parse().ok()).map_or(2 << 20, |kib: usize| kib << 10)
}

/// What this machine's time buys on one thread, by the time of the processor: measured once.
pub fn prices() -> Outcome<&'static CostModel> {
    static PRICES: OnceLock<CostModel> = OnceLock::new();
    if let Some(prices) = PRICES.get() {
        return Ok(prices);
    }
    let measured = CostModel::measure(sudare_session::machine::name(), 1, &cpu_time)?;
    Ok(PRICES.get_or_init(|| measured))
}

/// Processor time of all threads of this process.
pub fn cpu_time() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(t.tv_sec.unsigned_abs(), u32::try_from(t.tv_nsec).unwrap_or(0))
}

/// Time that the threads of this process have run, and time that they waited for a processor though they
/// had work; `None` where the system does not tell.
pub fn thread_times() -> Option<[Duration; 2]> {
    let mut all = [Duration::ZERO; 2];
    for thread in std::fs::read_dir("/proc/self/task").ok()? {
        // A thread that has just ended has no file.
        let Ok(text) = std::fs::read_to_string(thread.ok()?.path().join("schedstat")) else { continue };
        let mut fields = text.split_whitespace().map(|x| x.parse().map(Duration::from_nanos));
        for sum in &mut all {
            *sum += fields.next()?.ok()?;
        }
    }
    Some(all)
}

/// Starts the peak of the resident set anew, where the kernel allows it.
pub fn reset_peak_rss() {
    // Without the permission the peak is that of the whole process so far: still an upper bound.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Peak of the resident set in MB (10^6 bytes) since the start or the last reset.
pub fn peak_rss_mb() -> Option<f64> {
    status_mb("VmHWM:")
}

/// The resident set in MB (10^6 bytes).
pub fn resident_mb() -> Option<f64> {
    status_mb("VmRSS:")
}

fn status_mb(field: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix(field))?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|kib| kib * 1024.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(civil_date(0), "1970-01-01");
        assert_eq!(civil_date(11_016), "2000-02-29");
        assert_eq!(civil_date(20_454), "2026-01-01");
        assert_eq!(civil_date(20_453), "2025-12-31");
    }

    #[test]
    fn processor_names() {
        let text = "model\t\t: 207\nmodel name\t: A CPU\ncpu family\t: 6\nstepping\t: 2\n";
        assert_eq!(cpu_model(text), "A CPU, family 6 model 207 stepping 2");
        assert_eq!(cpu_model("model name : B"), "B");
    }

    #[test]
    fn processor_time_goes_on() {
        let (before, threads) = (cpu_time(), thread_times());
        let sum = (0..3_000_000u64).fold(1u64, |a, x| std::hint::black_box(a.wrapping_mul(x | 1)));
        assert!(sum != 0 && cpu_time() > before);
        if let (Some([before, _]), Some([after, _])) = (threads, thread_times()) {
            assert!(after > before);
        }
    }
}
