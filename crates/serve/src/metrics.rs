//! What an operator's monitoring reads, in Prometheus' text format. Nothing in it names a tenant.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start.
#[derive(Default)]
pub(crate) struct Metrics {
    /// Answers by the first digit of their status, from 1 on.
    answers: [AtomicU64; 5],
    pub received: AtomicU64,
    pub sent: AtomicU64,
    pub done: AtomicU64,
    pub failed: AtomicU64,
    pub cancelled: AtomicU64,
    pub refused: AtomicU64,
    pub milliseconds: AtomicU64,
    pub connections: AtomicU64,
}

/// What is measured when it is asked for.
pub(crate) struct Gauges {
    pub queued: usize,
    pub running: usize,
    pub stored: u64,
    pub keys: u64,
}

impl Metrics {
    pub fn answered(&self, status: u16) {
        if let Some(counter) = self.answers.get(usize::from(status / 100).wrapping_sub(1)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn render(&self, now: &Gauges) -> String {
        let mut out = String::new();
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut family = |name: &str, kind: &str, help: &str, values: &[(&str, f64)]| {
            let _ = writeln!(out, "# HELP sudare_{name} {help}\n# TYPE sudare_{name} {kind}");
            for (label, value) in values {
                let _ = writeln!(out, "sudare_{name}{label} {value}");
            }
        };
        let classes = ["{class=\"1xx\"}", "{class=\"2xx\"}", "{class=\"3xx\"}", "{class=\"4xx\"}", "{class=\"5xx\"}"];
        let answers: Vec<_> = classes.into_iter().zip(&self.answers).map(|(l, c)| (l, get(c) as f64)).collect();
        family("answers_total", "counter", "Answers by status.", &answers);
        let ends = [
            ("{end=\"done\"}", get(&self.done) as f64),
            ("{end=\"failed\"}", get(&self.failed) as f64),
            ("{end=\"cancelled\"}", get(&self.cancelled) as f64),
        ];
        family("jobs_total", "counter", "Jobs that ended.", &ends);
        family("jobs_refused_total", "counter", "Jobs refused for want of room.", &[("", get(&self.refused) as f64)]);
        family("job_seconds_total", "counter", "Seconds of jobs.", &[("", get(&self.milliseconds) as f64 / 1e3)]);
        family("received_bytes_total", "counter", "Bytes of objects received.", &[("", get(&self.received) as f64)]);
        family("sent_bytes_total", "counter", "Bytes of objects sent.", &[("", get(&self.sent) as f64)]);
        family("connections", "gauge", "Connections.", &[("", get(&self.connections) as f64)]);
        family("jobs_queued", "gauge", "Jobs that wait.", &[("", now.queued as f64)]);
        family("jobs_running", "gauge", "Jobs that run.", &[("", now.running as f64)]);
        family("stored_bytes", "gauge", "Bytes of objects and tables.", &[("", now.stored as f64)]);
        family("session_bytes", "gauge", "Bytes of keys and tables in memory.", &[("", now.keys as f64)]);
        out
    }
}
