//! `tfhe-gates`: random gates of outputs of gates, every one decrypted and compared.

use crate::Outcome;
use crate::lines::{Line as Row, Lines};
use crate::machine::{Machine, cpu_time};
use serde::Serialize;
use sudare_ring::Threads;
use sudare_testkit::Random;
use sudare_tfhe::{ClientKey, EncryptedBit, Gate, TfheLiteral};

/// How many, and of which set.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Gates in all.
    #[arg(long, default_value_t = 1_000_000)]
    count: usize,
    /// log2 of the set's failure probability.
    #[arg(long, default_value = "-128", value_parser = ["-128", "-64", "-40"], allow_hyphen_values = true)]
    failure: String,
}

/// Bits that a round has, and gates that it takes of them.
const BITS: usize = 64;

/// What came out.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// `tfhe-gates`.
    pub suite: &'static str,
    /// The set.
    pub case: String,
    /// Gates.
    pub gates: usize,
    /// Of these other bits than plain arithmetic has.
    pub wrong_bits: usize,
    /// Processor seconds, with decryption and comparison.
    pub cpu_seconds: f64,
    /// Threads.
    pub threads: usize,
    /// `ok`, or how many are wrong.
    pub check: String,
    /// Conditions.
    pub machine: Machine,
}

impl Row for Found {
    const HEAD: &'static str = "set                 gates      wrong   processor s check";

    fn row(&self) -> String {
        format!("{:<16} {:>9} {:>8} {:>13.1} {}", self.case, self.gates, self.wrong_bits, self.cpu_seconds, self.check)
    }

    fn wrong(&self) -> Option<&str> {
        (self.check != "ok").then_some(self.check.as_str())
    }
}

/// Rounds of random gates: each bit of a round is a gate of two bits of the one before.
pub fn run(options: &Options, threads: &Threads, machine: &Machine, out: &mut Lines) -> Outcome<Vec<Found>> {
    let literal = match options.failure.as_str() {
        "-64" => TfheLiteral::gates_failure_64(),
        "-40" => TfheLiteral::gates_failure_40(),
        _ => TfheLiteral::gates(),
    };
    let client = ClientKey::generate(&literal.build()?)?;
    let server = client.server_key()?;
    let mut random = Random(32);
    let mut plain: Vec<bool> = (0..BITS).map(|_| random.chance(50)).collect();
    let mut bits: Vec<EncryptedBit> = plain.iter().map(|b| client.encrypt_bit(*b)).collect::<Result<_, _>>()?;
    let (rounds, begin, mut wrong_bits) = (options.count.div_ceil(BITS), cpu_time(), 0);
    for _ in 0..rounds {
        let asked: Vec<(Gate, usize, usize)> = (0..BITS)
            .map(|_| (Gate::ALL[random.index(Gate::ALL.len())], random.index(BITS), random.index(BITS)))
            .collect();
        let gates: Vec<_> = asked.iter().map(|(gate, i, j)| (*gate, &bits[*i], &bits[*j])).collect();
        bits = threads.run(|| server.gates(&gates))?;
        plain = asked.iter().map(|(gate, i, j)| gate.plain(plain[*i], plain[*j])).collect();
        for (bit, plain) in bits.iter_mut().zip(&plain) {
            if client.decrypt_bit(bit)? != *plain {
                wrong_bits += 1;
                *bit = client.encrypt_bit(*plain)?;
            }
        }
    }
    let line = Found {
        suite: "tfhe-gates",
        case: format!("gates, 2^{}", options.failure),
        gates: rounds * BITS,
        wrong_bits,
        cpu_seconds: (cpu_time() - begin).as_secs_f64(),
        threads: threads.count(),
        check: if wrong_bits == 0 { "ok".into() } else { format!("{wrong_bits} wrong") },
        machine: machine.clone(),
    };
    out.put(&line)?;
    Ok(vec![line])
}
