//! One measured line of the TFHE suites.

use super::peer::{Operation, name};
use super::published::{PEERS_FROM, find};
use crate::lines::Line as Row;
use crate::machine::{Machine, peak_rss_mb};
use crate::timing::{Samples, Timing};
use serde::Serialize;
use sudare_he::tfhe::{ServerKey, TfheParams};

/// Another's figure beside ours.
#[derive(Clone, Debug, Serialize)]
pub struct Beside {
    /// Whose.
    pub library: &'static str,
    /// Its time.
    pub ms: f64,
    /// Its time over ours by processor time (wall time where several threads work).
    pub ratio: Option<f64>,
}

/// A part of a bootstrap.
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    /// Which.
    pub part: &'static str,
    /// Median time in one bootstrap.
    pub ms: f64,
    /// Of the whole.
    pub percent: f64,
}

/// A line. What does not apply is `None`, never zero.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// `tfhe`.
    pub suite: &'static str,
    /// What was measured.
    pub case: String,
    /// n, N, k, log2 q, digits.
    pub params: Option<String>,
    /// Claimed security.
    pub security_bits: Option<u32>,
    /// log2 of the failure probability that the formulas give.
    pub log2_failure: Option<f64>,
    /// Threads.
    pub threads: usize,
    /// Operations done together.
    pub batch: usize,
    /// Median wall time of the whole batch.
    pub median_ms: Option<f64>,
    /// Tenth percentile.
    pub p10_ms: Option<f64>,
    /// Ninetieth percentile.
    pub p90_ms: Option<f64>,
    /// Median processor time of the batch, all threads together.
    pub cpu_ms: Option<f64>,
    /// `cpu_ms / batch`.
    pub cpu_each_ms: Option<f64>,
    /// `median_ms / batch`.
    pub each_ms: Option<f64>,
    /// The unit, in turn with the case.
    pub unit_ms: Option<f64>,
    /// Processor time of one operation in units.
    pub cpu_units: Option<f64>,
    /// Processor time over wall time and threads.
    pub cpu_use: Option<f64>,
    /// Share of the threads' time that they waited for a processor which others had.
    pub cpu_waited: Option<f64>,
    /// Share of the threads' time without work.
    pub cpu_idle: Option<f64>,
    /// Blind rotations of one operation.
    pub rotations: Option<u64>,
    /// Expanded keys in memory.
    pub key_bytes: Option<usize>,
    /// Seeded keys as they travel.
    pub seeded_bytes: Option<usize>,
    /// Peak of the resident set during the case.
    pub peak_rss_mb: Option<f64>,
    /// Shares of one bootstrap.
    pub shares: Vec<Share>,
    /// A library measured in the same process, in turn.
    pub peer: Option<&'static str>,
    /// Its parameters.
    pub peer_params: Option<String>,
    /// Bits of security claimed of them.
    pub peer_security_bits: Option<u32>,
    /// log2 of the failure probability claimed of them.
    pub peer_log2_failure: Option<f64>,
    /// Its median wall time of one operation.
    pub peer_ms: Option<f64>,
    /// Its median processor time.
    pub peer_cpu_ms: Option<f64>,
    /// Its wall time over ours: how many times faster ours is.
    pub ratio: Option<f64>,
    /// The same of processor times.
    pub cpu_ratio: Option<f64>,
    /// Its expanded server key in memory.
    pub peer_key_bytes: Option<usize>,
    /// Its seeded server key.
    pub peer_seeded_bytes: Option<usize>,
    /// Milliseconds to reach.
    pub target_ms: Option<f64>,
    /// Whether processor time of one operation reaches them (wall time where several threads work).
    pub reached: Option<bool>,
    /// Others' figures.
    pub beside: Vec<Beside>,
    /// Where those are from.
    pub beside_from: Option<&'static str>,
    /// `ok`, or what was wrong with an answer.
    pub check: String,
    /// Conditions.
    pub machine: Machine,
    /// Raw wall times, in stored runs only.
    #[serde(skip_serializing_if = "Samples::is_empty")]
    pub samples_ms: Samples,
}

impl Line {
    /// A line with nothing measured yet.
    pub fn new(case: impl Into<String>, machine: &Machine) -> Self {
        Self {
            suite: "tfhe",
            case: case.into(),
            params: None,
            security_bits: None,
            log2_failure: None,
            threads: 1,
            batch: 1,
            median_ms: None,
            p10_ms: None,
            p90_ms: None,
            cpu_ms: None,
            cpu_each_ms: None,
            each_ms: None,
            unit_ms: None,
            cpu_units: None,
            cpu_use: None,
            cpu_waited: None,
            cpu_idle: None,
            rotations: None,
            key_bytes: None,
            seeded_bytes: None,
            peak_rss_mb: None,
            shares: Vec::new(),
            peer: None,
            peer_params: None,
            peer_security_bits: None,
            peer_log2_failure: None,
            peer_ms: None,
            peer_cpu_ms: None,
            ratio: None,
            cpu_ratio: None,
            peer_key_bytes: None,
            peer_seeded_bytes: None,
            target_ms: None,
            reached: None,
            beside: Vec::new(),
            beside_from: None,
            check: "ok".into(),
            machine: machine.clone(),
            samples_ms: Samples::default(),
        }
    }

    /// With the bytes of a server's keys.
    pub fn with_keys(mut self, server: &ServerKey) -> Self {
        (self.key_bytes, self.seeded_bytes) = (Some(server.byte_len()), Some(server.seeded_byte_len()));
        self
    }

    /// Fills in a parameter set.
    pub fn with_params(mut self, params: &TfheParams) -> Self {
        let l = params.literal();
        let (b, s) = (l.bootstrap_digits, l.switch_digits);
        self.params = Some(format!(
            "n {} N {} k {} q 2^{} digits {}x{} switch {}x{}{} unroll {}",
            l.lwe_dimension,
            1u64 << l.log_n,
            l.rank,
            l.modulus_bits,
            b.0,
            b.1,
            s.0,
            s.1,
            if l.module_switch { " in the ring" } else { "" },
            l.unroll
        ));
        self.security_bits = Some(l.security.bits());
        self.log2_failure = Some((params.log_failure() * 10.0).round() / 10.0);
        self
    }

    /// Fills in times, and what others need for the same case.
    pub fn with_timing(mut self, timing: Timing) -> Self {
        let quotient = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
        let Timing { ours, unit, peer } = timing;
        let each = 1.0 / self.batch as f64;
        self.median_ms = ours.wall.median();
        self.p10_ms = ours.wall.quantile(0.1);
        self.p90_ms = ours.wall.quantile(0.9);
        self.cpu_ms = ours.cpu.median();
        self.each_ms = self.median_ms.map(|t| t * each);
        self.cpu_each_ms = self.cpu_ms.map(|t| t * each);
        self.unit_ms = unit.wall.median();
        self.cpu_units = quotient(self.cpu_each_ms, unit.cpu.median());
        self.cpu_use = quotient(self.cpu_ms, self.median_ms).map(|x| x / self.threads as f64);
        self.peak_rss_mb = peak_rss_mb();
        self.peer_ms = peer.wall.median();
        self.peer_cpu_ms = peer.cpu.median();
        self.ratio = quotient(self.peer_ms, self.each_ms);
        self.cpu_ratio = quotient(self.peer_cpu_ms, self.cpu_each_ms);
        self.samples_ms = ours.wall;
        let figure = if self.threads == 1 { self.cpu_each_ms } else { self.each_ms };
        if let (Some(known), true) = (find(&self.case), self.batch == 1) {
            self.target_ms = known.target_ms;
            self.reached = figure.zip(known.target_ms).map(|(ours, target)| ours <= target);
            let beside =
                |(library, ms): &(&'static str, f64)| Beside { library, ms: *ms, ratio: figure.map(|ours| ms / ours) };
            self.beside = known.peers.iter().map(beside).collect();
            self.beside_from = (!known.peers.is_empty()).then_some(PEERS_FROM);
        }
        self
    }

    /// Names the peer whose times came with ours, and notes its answers.
    pub fn with_peer(mut self, peer: &dyn Operation) -> Self {
        self.peer = Some(name());
        self.peer_params = Some(peer.params());
        let claims = peer.claims();
        (self.peer_security_bits, self.peer_log2_failure) = (claims.security_bits, claims.log2_failure);
        if let Some([expanded, seeded]) = peer.key_bytes() {
            (self.peer_key_bytes, self.peer_seeded_bytes) = (Some(expanded), Some(seeded));
        }
        let (wrong, of) = peer.answers();
        if wrong > 0 || of == 0 {
            let theirs = format!("{wrong} of {of} answers of the peer were wrong");
            self.check = if self.check == "ok" { theirs } else { format!("{}; {theirs}", self.check) };
        }
        self
    }

    /// What both sides' sets claim, where a peer was measured: a ratio means little without it.
    pub fn sets(&self) -> String {
        if self.peer.is_none() {
            return String::new();
        }
        format!(
            "; {}, the peer's {}",
            claims(self.log2_failure, self.security_bits),
            claims(self.peer_log2_failure, self.peer_security_bits)
        )
    }

    /// Notes the answers: how many were wrong of how many.
    pub fn with_answers(mut self, wrong: usize, of: usize) -> Self {
        if wrong > 0 || of == 0 {
            self.check = format!("{wrong} of {of} answers were wrong");
        }
        self
    }
}

impl Row for Line {
    const HEAD: &'static str = "case                                thr batch  median ms  each cpu ms    units cpu use   idle   target   ratio  RSS MB check";

    fn row(&self) -> String {
        let number = |x: Option<f64>, digits: usize| x.map_or_else(String::new, |x| format!("{x:.digits$}"));
        let shares: Vec<_> = self.shares.iter().map(|s| format!("{} {:.1} %", s.part, s.percent)).collect();
        let keys = self.key_bytes.zip(self.seeded_bytes);
        let keys = keys.map_or_else(String::new, |(a, b)| format!("; keys {:.1} MB, seeded {:.1}", mb(a), mb(b)));
        let theirs = self.peer_key_bytes.zip(self.peer_seeded_bytes);
        let theirs = theirs.map_or_else(String::new, |(a, b)| format!(" (the peer's {:.1} and {:.1})", mb(a), mb(b)));
        let sets = self.sets();
        format!(
            "{:<35} {:>3} {:>5} {:>10} {:>12} {:>8} {:>7} {:>6} {:>8} {:>7} {:>7} {}{sets}{keys}{theirs}{}{}",
            self.case,
            self.threads,
            self.batch,
            number(self.median_ms, 4),
            number(self.cpu_each_ms, 4),
            number(self.cpu_units, 1),
            number(self.cpu_use, 2),
            number(self.cpu_idle, 2),
            number(self.target_ms, 3),
            number(self.cpu_ratio, 2),
            number(self.peak_rss_mb, 0),
            self.check,
            if shares.is_empty() { "" } else { "; " },
            shares.join(", ")
        )
    }

    fn wrong(&self) -> Option<&str> {
        (self.check != "ok").then_some(self.check.as_str())
    }
}

/// Failure probability and bits for people; what is not known is a question mark.
pub fn claims(log2_failure: Option<f64>, bits: Option<u32>) -> String {
    let failure = log2_failure.map_or_else(|| "2^?".into(), |x| format!("2^{x:.0}"));
    format!("{failure} at {} bits", bits.map_or_else(|| "?".into(), |b| b.to_string()))
}

/// Bytes as MB (10^6).
pub fn mb(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::super::peer::Claims;
    use super::*;

    struct Peer;

    impl Operation for Peer {
        fn run(&mut self) {}

        fn answers(&self) -> (usize, usize) {
            (0, 1)
        }

        fn params(&self) -> String {
            "n 770".into()
        }

        fn claims(&self) -> Claims {
            Claims { log2_failure: Some(-165.0), security_bits: Some(132) }
        }
    }

    /// Where two sides differ, the line says so.
    #[test]
    fn a_line_with_a_peer_tells_what_both_sets_claim() {
        let params = sudare_he::tfhe::TfheLiteral::gates().build().unwrap();
        let line = Line::new("NAND, 2^-128", &Machine::here()).with_params(&params);
        assert!(!line.row().contains("bits"));
        let row = line.with_peer(&Peer).row();
        let ours = format!("2^{:.0} at 128 bits", params.log_failure());
        assert!(row.contains(&format!("; {ours}, the peer's 2^-165 at 132 bits")), "{row}");
    }
}
