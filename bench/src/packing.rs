//! `packing`: the tables of the packing paper, at its parameters and at secure ones.

use crate::Outcome;
use crate::machine::{Machine, reset_peak_rss};
use crate::record::{PaperTimes, Record, Sink, Stages};
use crate::timing::{Budget, Clock, Clocks, Unit};
use std::time::Instant;
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_packings::bv::{Decryptor, Encryptor, Evaluator, PaperSet, Params, ParamsLiteral, SecretKey};
use sudare_packings::{Entries, FirstMethod, MatrixPacking, PreviousMethod, SecondMethod};
use sudare_ring::Threads;
use sudare_rlwe::security::Security;
use sudare_testkit::Random;

/// Which lines to run.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The paper's parameters (`paper`, insecure), those of 128-bit security (`secure`), or both.
    #[arg(long, default_values = ["paper", "secure"])]
    params: Vec<Kind>,
    /// Only lines with this text in their name, as `binary 16` or `second`.
    #[arg(long)]
    only: Option<String>,
}

/// Parameters of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// As printed: insecure.
    Paper,
    /// 128 bits.
    Secure,
}

/// How two matrices are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// An inner product for each element.
    Previous,
    /// A product for each column.
    First,
    /// One product.
    Second,
}

/// A line of the paper's Tables 1 and 2.
#[derive(Debug)]
pub struct Printed {
    /// `binary` or `10-bit`.
    pub entries: &'static str,
    /// Rows and columns of the matrices.
    pub m: usize,
    /// The method.
    pub how: How,
    /// Its parameters.
    pub set: PaperSet,
    /// Encryption, product, decryption and total in seconds: Intel Core i7-4790, PARI 2.7.5.
    pub seconds: [f64; 4],
}

const fn printed(entries: &'static str, m: usize, how: How, set: PaperSet, seconds: [f64; 4]) -> Printed {
    Printed { entries, m, how, set, seconds }
}

/// Tables 1 and 2.
pub const PRINTED: [Printed; 9] = [
    printed("binary", 16, How::Previous, PaperSet::Binary16, [0.3987, 11.5704, 3.5352, 15.5043]),
    printed("binary", 32, How::Previous, PaperSet::Binary32, [0.7950, 47.8745, 14.063, 62.7325]),
    printed("binary", 16, How::First, PaperSet::Binary16, [0.0150, 0.3064, 0.2170, 0.5384]),
    printed("binary", 32, How::First, PaperSet::Binary32, [0.0160, 0.5780, 0.3592, 0.9532]),
    printed("binary", 16, How::Second, PaperSet::Binary16Second, [0.0439, 0.0438, 0.0328, 0.1205]),
    printed("binary", 32, How::Second, PaperSet::Binary32Second, [0.1814, 0.5220, 0.4036, 1.1070]),
    printed("10-bit", 16, How::Previous, PaperSet::TenBitPrevious, [1.4454, 9.4483, 3.6581, 14.5518]),
    printed("10-bit", 16, How::First, PaperSet::TenBitFirst, [1.5996, 1.5797, 0.7624, 3.9417]),
    printed("10-bit", 16, How::Second, PaperSet::TenBitSecond, [4.2024, 2.0834, 0.9797, 7.2655]),
];

/// Parts of the paper's totals to stay under: at its parameters, and at secure ones.
pub const TARGETS: [f64; 2] = [50.0, 20.0];

impl How {
    /// Its name here and in the tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Previous => "previous",
            Self::First => "first",
            Self::Second => "second",
        }
    }

    fn packing(self, params: &Params, shape: Shape, entries: Entries) -> Outcome<Box<dyn MatrixPacking>> {
        Ok(match self {
            Self::Previous => Box::new(PreviousMethod::new(params, shape, entries)?),
            Self::First => Box::new(FirstMethod::new(params, shape, entries)?),
            Self::Second => Box::new(SecondMethod::new(params, shape, entries)?),
        })
    }

    /// The cheapest secure parameters.
    fn parameters(self, shape: Shape, entries: Entries) -> Outcome<ParamsLiteral> {
        let security = Security::Bits128;
        Ok(match self {
            Self::Previous => PreviousMethod::parameters(shape, entries, security)?,
            Self::First => FirstMethod::parameters(shape, entries, security)?,
            Self::Second => SecondMethod::parameters(shape, entries, security)?,
        })
    }
}

impl Printed {
    fn shape(&self) -> Shape {
        Shape::new(self.m, self.m, self.m)
    }

    fn case(&self, kind: Kind) -> String {
        let kind = if kind == Kind::Paper { "paper" } else { "secure" };
        format!("{} {}, {kind}", self.entries, self.m)
    }

    /// The line again.
    pub fn measure(&self, kind: Kind, budget: Budget, threads: &Threads, machine: &Machine) -> Outcome<Record> {
        let entries = if self.entries == "binary" { Entries::BINARY } else { Entries::digits(10, 2, false)? };
        let literal = match kind {
            Kind::Paper => self.set.insecure(),
            Kind::Secure => self.set.secure(Security::Bits128)?,
        };
        let (case, factor) = (self.case(kind), TARGETS[usize::from(kind == Kind::Secure)]);
        let mut record = measure(case, self.how, self.shape(), entries, &literal, budget, threads, machine)?;
        record.paper_ms = Some(PaperTimes::new(self.seconds, factor, record.median_ms));
        Ok(record)
    }
}

/// The paper's 10-bit products in another base, at the cheapest secure parameters: fewer digits
/// take less of the ring and ask for a larger t.
pub fn in_base(how: How, radix: u64, budget: Budget, threads: &Threads, machine: &Machine) -> Outcome<Record> {
    let (shape, entries) = (Shape::new(16, 16, 16), Entries::digits(10, radix, false)?);
    let literal = how.parameters(shape, entries)?;
    measure(format!("10-bit 16, base {radix}"), how, shape, entries, &literal, budget, threads, machine)
}

/// Runs the suite.
pub fn run(options: &Options, budget: Budget, threads: &Threads, machine: &Machine, sink: &mut Sink) -> Outcome<()> {
    let wanted = |case: &str, how: How| {
        options.only.as_deref().is_none_or(|text| format!("{case}, {}", how.name()).contains(text))
    };
    for kind in [Kind::Paper, Kind::Secure].into_iter().filter(|k| options.params.contains(k)) {
        for line in PRINTED.iter().filter(|line| wanted(&line.case(kind), line.how)) {
            sink.put(line.measure(kind, budget, threads, machine)?)?;
        }
    }
    Ok(())
}

/// Seeds of test data differ between repetitions.
fn random_matrix(random: &mut Random, m: usize, entries: Entries) -> Outcome<Matrix<i128>> {
    let data = (0..m * m).map(|_| i128::from(random.word() % (entries.max() + 1))).collect();
    Ok(Matrix::<i128>::new(m, m, data)?)
}

/// Encryption (with packing), product, decryption (with reading) in turn, each answer checked.
#[allow(clippy::too_many_arguments)]
fn measure(
    case: String,
    how: How,
    shape: Shape,
    entries: Entries,
    literal: &ParamsLiteral,
    budget: Budget,
    threads: &Threads,
    machine: &Machine,
) -> Outcome<Record> {
    let mut unit = Unit::new()?;
    reset_peak_rss();
    let params = literal.build()?;
    let packing = how.packing(&params, shape, entries)?;
    let start = Instant::now();
    let secret = SecretKey::generate(&params)?;
    let public = secret.public_key()?;
    let keygen_ms = start.elapsed().as_secs_f64() * 1e3;
    let (encryptor, evaluator, decryptor) =
        (Encryptor::new(&public)?, Evaluator::new(&params), Decryptor::new(&secret));

    let mut random = Random(shape.m as u64);
    let mut stages: [Clocks; 4] = Default::default();
    let (mut unit_times, mut wrong, mut bytes) = (Clocks::default(), 0usize, 0);
    let begin = Instant::now();
    let mut warm = false;
    while stages[3].wall.0.len() < budget.least || begin.elapsed().as_secs_f64() < budget.seconds {
        let a = random_matrix(&mut random, shape.m, entries)?;
        let b = random_matrix(&mut random, shape.m, entries)?;
        let mut times: [Clocks; 4] = Default::default();
        unit.sample(&mut unit_times);
        let total = Clock::start();
        let clock = Clock::start();
        let (x, y) = threads.run(|| {
            let x = packing.encrypt(&encryptor, Operand::Left, &a)?;
            Ok::<_, sudare_packings::PackingError>((x, packing.encrypt(&encryptor, Operand::Right, &b)?))
        })?;
        clock.stop(1, &mut times[0]);
        let clock = Clock::start();
        let product = threads.run(|| packing.multiply(&evaluator, &x, &y))?;
        clock.stop(1, &mut times[1]);
        let clock = Clock::start();
        let found = threads.run(|| packing.decrypt(&decryptor, &product))?;
        clock.stop(1, &mut times[2]);
        total.stop(1, &mut times[3]);
        wrong += usize::from(found != a.matmul(&b)?);
        bytes = [&x, &y, &product].into_iter().flatten().map(|c| c.bytes()).sum();
        // The first time warms the caches and the buffers.
        if std::mem::replace(&mut warm, true) {
            for (all, one) in stages.iter_mut().zip(times) {
                all.wall.0.extend(one.wall.0);
                all.cpu.0.extend(one.cpu.0);
            }
        }
    }

    let mut record = Record::new("packing", case, threads.count(), machine);
    let [encrypt, evaluate, decrypt, total] = stages;
    record.stages = Some(Stages {
        keygen_ms: Some(keygen_ms),
        encode_ms: None,
        encrypt_ms: encrypt.wall.median(),
        evaluate_ms: evaluate.wall.median(),
        decrypt_ms: decrypt.wall.median(),
        decode_ms: None,
    });
    let runs = total.wall.0.len();
    record = record.with_timing(crate::timing::Timing { ours: total, peer: Clocks::default(), unit: unit_times });
    record.n = Some(params.degree());
    let words: Vec<_> = literal.q_bits.iter().map(u32::to_string).collect();
    record.params = Some(format!("{{{}}} t {} sigma {}", words.join(","), literal.t, literal.sigma));
    record.log_qp = Some((params.log_q() * 100.0).round() / 100.0);
    // What the set has by today's limits, whatever it claims.
    record.security_bits = Some(params.security().bits());
    record.method = Some(how.name().into());
    record.d = Some(shape.m);
    record.shape = Some([shape.m, shape.k, shape.n]);
    record.ct_bytes = Some(bytes);
    record.products = Some(runs + 1);
    record.check = if wrong == 0 { "ok".into() } else { format!("{wrong} of {} products were wrong", runs + 1) };
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_totals_are_sums() {
        for line in &PRINTED {
            let [a, b, c, total] = line.seconds;
            assert!((a + b + c - total).abs() < 2e-4, "{line:?}");
        }
    }

    #[test]
    fn a_line_is_measured_and_right() {
        let budget = Budget { seconds: 0.0, least: 1 };
        let machine = Machine::here();
        for (line, kind) in [(&PRINTED[2], Kind::Paper), (&PRINTED[4], Kind::Secure)] {
            let record = line.measure(kind, budget, &Threads::new(1), &machine).unwrap();
            assert_eq!(record.check, "ok");
            assert!(record.paper_ms.unwrap().faster.unwrap() > 1.0);
        }
    }
}
