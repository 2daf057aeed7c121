//! `ops`: operations on ciphertexts, checked by decryption.

use crate::machine::{Machine, reset_peak_rss};
use crate::record::{Record, Sink};
use crate::timing::{Budget, Unit, measure};
use crate::{Outcome, hoisting};
use num_complex::Complex64;
use sudare_he::ckks::{
    Ciphertext, Decodable, Decryptor, EncodeAt, Encoder, Encryptor, Evaluator, Params, ParamsLiteral, Plaintext,
};
use sudare_ring::Threads;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_testkit::Random;

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    set: Set,
    /// Only cases whose name contains one of these words.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Special primes over {60, 10 × 40}: sums, hoisted rotations and a product beside the figures of
    /// other libraries, instead of the cases on the set.
    #[arg(long)]
    k: Option<usize>,
    /// Most bytes of the evaluation keys of a sum.
    #[arg(long, default_value_t = 3e9)]
    memory: f64,
}

impl Options {
    /// `ops --n 32768 --k 3`.
    pub fn with_special_primes(k: usize) -> Self {
        Self { set: Set { n: 1 << 15, ..Set::paper() }, only: Vec::new(), k: Some(k), memory: 3e9 }
    }
}

/// A parameter set on the command line; the 3-D matrix product paper's if nothing else is said.
#[derive(Clone, Debug, clap::Args)]
pub struct Set {
    /// Ring degree.
    #[arg(long, default_value_t = 16_384)]
    n: usize,
    /// Bits of the data primes; `40x10` stands for ten of 40.
    #[arg(long, default_value = "60,40x3")]
    q_bits: String,
    /// Bits of the special primes.
    #[arg(long, default_value = "60")]
    p_bits: String,
    /// Data primes in a digit of key switching.
    #[arg(long, default_value_t = 1)]
    digit_limbs: usize,
    /// log2 of the scale.
    #[arg(long, default_value_t = 40)]
    log_scale: u32,
    /// Claim no security: for sets that have none.
    #[arg(long)]
    insecure: bool,
}

impl Set {
    /// The 3-D matrix product paper's.
    fn paper() -> Self {
        Self {
            n: 16_384,
            q_bits: "60,40x3".into(),
            p_bits: "60".into(),
            digit_limbs: 1,
            log_scale: 40,
            insecure: false,
        }
    }

    /// log2 N.
    fn log_n(&self) -> Outcome<u32> {
        if !self.n.is_power_of_two() {
            return Err(format!("a ring degree of {} is no power of two", self.n).into());
        }
        Ok(self.n.trailing_zeros())
    }

    /// The checked set.
    pub fn build(&self) -> Outcome<Params> {
        let literal = ParamsLiteral {
            rlwe: sudare_rlwe::params::ParamsLiteral {
                log_n: self.log_n()?,
                q_bits: bits(&self.q_bits)?,
                p_bits: bits(&self.p_bits)?,
                digit_limbs: self.digit_limbs,
                secret: SecretDistribution::Ternary,
                security: if self.insecure { Security::Insecure } else { Security::Bits128 },
            },
            log_scale: self.log_scale,
        };
        Ok(literal.build()?)
    }
}

/// `60,40x3` → 60, 40, 40, 40.
fn bits(text: &str) -> Outcome<Vec<u32>> {
    let mut out = Vec::new();
    for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
        let (size, count) = word.split_once('x').unwrap_or((word, "1"));
        let (size, count): (u32, usize) = (size.parse()?, count.parse()?);
        if count > sudare_rlwe::params::MAX_PRIMES {
            return Err(format!("{count} primes are more than a set holds").into());
        }
        out.extend(std::iter::repeat_n(size, count));
    }
    Ok(out)
}

/// SEAL 4.4 with HEXL at the paper's chain: units, measured apart from this run on one core of
/// a Sapphire Rapids machine.
const SEAL_UNITS: [(&str, f64); 8] = [
    ("encode", 20.0),
    ("encrypt public", 110.0),
    ("decrypt", 4.1),
    ("decode", 63.0),
    ("add", 2.8),
    ("mul_plain + rescale", 23.0),
    ("mul + relin + rescale", 130.0),
    ("rotate", 107.0),
];
const SEAL: &str = "SEAL 4.4 with HEXL, one Sapphire Rapids core, constant from another run";

/// Rotations that one hoisting serves.
const HOISTED: i64 = 8;

/// Everything the cases need.
pub struct World<'a> {
    /// The set.
    pub params: &'a Params,
    /// Its encoder.
    pub encoder: Encoder,
    /// A key of it.
    pub secret: &'a SecretKey,
    /// Random slots in [−1, 1).
    pub x: Vec<f64>,
    /// Others.
    pub y: Vec<f64>,
}

impl World<'_> {
    fn values(&self, ciphertext: &Ciphertext) -> Outcome<Vec<f64>> {
        Ok(self.encoder.decode(&Decryptor::new(self.secret).decrypt(ciphertext)?)?)
    }

    /// The largest error of a ciphertext's slots.
    pub fn error(&self, ciphertext: &Ciphertext, wanted: impl Fn(usize) -> f64) -> Outcome<f64> {
        Ok(largest(&self.values(ciphertext)?, wanted))
    }
}

fn largest(values: &[f64], wanted: impl Fn(usize) -> f64) -> f64 {
    values.iter().enumerate().map(|(i, v)| (v - wanted(i)).abs()).fold(0.0, f64::max)
}

/// What a case leaves behind: an answer with its error and the bound on it.
pub struct Answer {
    /// Largest error.
    pub error: f64,
    bound: f64,
    ct_bytes: Option<usize>,
    key_bytes: Option<usize>,
}

impl Answer {
    /// A decrypted ciphertext against what its slots should be.
    pub fn of(world: &World<'_>, ciphertext: &Ciphertext, wanted: impl Fn(usize) -> f64) -> Outcome<Self> {
        Ok(Self {
            error: world.error(ciphertext, wanted)?,
            bound: ciphertext.error_bound(),
            ct_bytes: Some(ciphertext.bytes()),
            key_bytes: None,
        })
    }

    fn plain<P: Decodable>(
        world: &World<'_>,
        plaintext: &Plaintext<P>,
        wanted: impl Fn(usize) -> f64,
    ) -> Outcome<Self> {
        let error = largest(&world.encoder.decode(plaintext)?, wanted);
        Ok(Self { error, bound: plaintext.error_bound(), ct_bytes: None, key_bytes: None })
    }

    /// With the bytes of the keys it took.
    pub fn with_key(mut self, bytes: usize) -> Self {
        self.key_bytes = Some(bytes);
        self
    }
}

/// Runs and prints one case after another.
pub struct Bench<'a> {
    unit: Unit,
    budget: Budget,
    machine: &'a Machine,
    /// Where lines go.
    pub sink: &'a mut Sink,
    params: &'a Params,
    /// The threads of every case.
    pub threads: &'a Threads,
    only: &'a [String],
    is_paper: bool,
}

impl Bench<'_> {
    /// Measures, checks and prints a case as [`Bench::measured`] does.
    fn case<T: Send>(
        &mut self,
        name: &str,
        evaluator: Option<&Evaluator>,
        times: u32,
        op: impl FnMut() -> Outcome<T> + Send,
        answer: impl FnOnce(T) -> Outcome<Answer>,
    ) -> Outcome<()> {
        match self.measured(name, evaluator, times, op, answer)? {
            Some(record) => self.sink.put(record),
            None => Ok(()),
        }
    }

    /// Whether a case was asked for.
    pub fn wanted(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|w| name.contains(w.as_str()))
    }

    /// Measures `op`, each call of which does `times` operations; then checks its last result.
    /// `None` for a case that was not asked for.
    pub fn measured<T: Send>(
        &mut self,
        name: &str,
        evaluator: Option<&Evaluator>,
        times: u32,
        mut op: impl FnMut() -> Outcome<T> + Send,
        answer: impl FnOnce(T) -> Outcome<Answer>,
    ) -> Outcome<Option<Record>> {
        if !self.wanted(name) {
            return Ok(None);
        }
        reset_peak_rss();
        let mut last = None;
        let mut timing = measure(
            &mut self.unit,
            self.budget,
            || {
                last = Some(self.threads.run(&mut op)?);
                Ok(())
            },
            None,
        )?;
        timing.ours.divide(times);
        let counters = match evaluator {
            Some(e) => {
                e.reset_counters();
                last = Some(op()?);
                Some(e.counters().into())
            }
            None => None,
        };
        let record = Record::new("ops", name, self.threads.count(), self.machine).with_params(self.params);
        let mut record = record.with_timing(timing);
        record.counters = counters;
        match last.map(answer) {
            Some(Ok(a)) => {
                record = record.with_error(a.error, a.bound);
                (record.ct_bytes, record.key_bytes) = (a.ct_bytes, a.key_bytes);
            }
            Some(Err(e)) => record.check = e.to_string(),
            None => {}
        }
        if let Some((_, units)) = SEAL_UNITS.iter().find(|(case, _)| self.is_paper && *case == name) {
            (record.reference, record.reference_units) = (Some(SEAL.into()), Some(*units));
        }
        Ok(Some(record))
    }
}

/// Runs the suite.
pub fn run(options: &Options, budget: Budget, threads: &Threads, machine: &Machine, sink: &mut Sink) -> Outcome<()> {
    let params = &match options.k {
        Some(k) => hoisting::literal(options.set.log_n()?, k)?.build()?,
        None => options.set.build()?,
    };
    let is_paper = *params.literal() == ParamsLiteral::paper_matmul();
    let only = &options.only;
    let mut bench = Bench { unit: Unit::new()?, budget, machine, sink, params, threads, only, is_paper };

    let (slots, top) = (params.slots(), params.max_level());
    let mut random = Random(3);
    let mut vector = || (0..slots).map(|_| random.unit()).collect::<Vec<f64>>();
    let (x, y) = (vector(), vector());
    let secret = SecretKey::generate(params)?;
    let w = World { params, encoder: Encoder::new(params), secret: &secret, x, y };
    if options.k.is_some() {
        return hoisting::run(&mut bench, &w, options.memory as u64);
    }
    let generator = KeyGenerator::new(&secret)?;
    let public = generator.public_key()?;
    let elements: Vec<_> = (1..=HOISTED).map(|s| (params.rotation_element(s), top)).collect();
    let relin = (!params.p().is_empty()).then_some(top);
    let keys = generator.eval_keys(relin, if relin.is_some() { &elements } else { &[] })?;
    let (relin_bytes, rotation_bytes) =
        (keys.relin_key().map_or(0, |k| k.bytes()), keys.galois_keys().next().map_or(0, |k| k.key().bytes()));
    let server = Evaluator::new(params, keys)?;
    let by_secret = Encryptor::with_secret_key(&secret)?;
    let by_public = Encryptor::with_public_key(&public)?;
    let decryptor = Decryptor::new(&secret);

    let plain = w.encoder.encode(&w.x, 1.0)?;
    let plain_y = w.encoder.encode(&w.y, 1.0)?;
    let (a, b) = (by_public.encrypt(&plain)?, by_public.encrypt(&plain_y)?);

    let x = |i: usize| w.x[i];
    bench.case("encode", None, 1, || Ok(w.encoder.encode(&w.x, 1.0)?), |p| Answer::plain(&w, &p, x))?;
    let complex: Vec<_> = w.x.iter().zip(&w.y).map(|(re, im)| Complex64 { re: *re, im: *im } / 2f64.sqrt()).collect();
    bench.case(
        "encode complex",
        None,
        1,
        || Ok(w.encoder.encode_complex(&complex, w.encoder.at_top(1.0))?),
        |p| Answer::plain(&w, &p, |i| complex[i].re),
    )?;
    bench.case("encrypt public", None, 1, || Ok(by_public.encrypt(&plain)?), |c| Answer::of(&w, &c, x))?;
    bench.case("encrypt secret", None, 1, || Ok(by_secret.encrypt(&plain)?), |c| Answer::of(&w, &c, x))?;
    bench.case("decrypt", None, 1, || Ok(decryptor.decrypt(&a)?), |p| Answer::plain(&w, &p, x))?;
    let decrypted = decryptor.decrypt(&a)?;
    let bound = decrypted.error_bound();
    bench.case(
        "decode",
        None,
        1,
        || Ok(w.encoder.decode(&decrypted)?),
        |v| Ok(Answer { error: largest(&v, x), bound, ct_bytes: None, key_bytes: None }),
    )?;
    let sum = |i: usize| w.x[i] + w.y[i];
    bench.case("add", Some(&server), 1, || Ok(server.add(&a, &b)?), |c| Answer::of(&w, &c, sum))?;
    bench.case("add_plain", Some(&server), 1, || Ok(server.add_plain(&a, &plain_y)?), |c| Answer::of(&w, &c, sum))?;
    if top > 0 {
        multiplicative(&mut bench, &w, &server, (&a, &b), &plain_y, relin_bytes)?;
    }
    if relin.is_none() {
        return Ok(());
    }
    let turned = |step: usize| {
        let w = &w;
        move |i: usize| w.x[(i + step) % w.params.slots()]
    };
    bench.case(
        "rotate",
        Some(&server),
        1,
        || Ok(server.rotate(&a, 1)?),
        |c| Ok(Answer::of(&w, &c, turned(1))?.with_key(rotation_bytes)),
    )?;
    let low = server.drop_to(&a, top.min(1))?;
    bench.case(
        "rotate at level 1",
        Some(&server),
        1,
        || Ok(server.rotate(&low, 1)?),
        |c| Ok(Answer::of(&w, &c, turned(1))?.with_key(rotation_bytes)),
    )?;
    let steps: Vec<i64> = (1..=HOISTED).collect();
    bench.case(
        "rotate, 8 hoisted, each",
        Some(&server),
        HOISTED as u32,
        || Ok(server.rotate_many(&a, &steps)?),
        |all| {
            let mut worst = Answer::of(&w, &all[0], turned(1))?;
            for (i, c) in all.iter().enumerate() {
                worst.error = worst.error.max(w.error(c, turned(i + 1))?);
            }
            Ok(worst.with_key(rotation_bytes * all.len()))
        },
    )?;
    let all: Vec<u64> = (0..=HOISTED).map(|s| params.rotation_element(s)).collect();
    bench.case(
        "sum of 8 rotations",
        Some(&server),
        1,
        || Ok(server.sum_of_automorphisms(&a, &all)?),
        |c| {
            let wanted = |i: usize| (0..=HOISTED as usize).map(|s| turned(s)(i)).sum();
            Ok(Answer::of(&w, &c, wanted)?.with_key(rotation_bytes * HOISTED as usize))
        },
    )?;
    key_generation(&mut bench, &w, &generator, (relin_bytes, rotation_bytes))
}

fn multiplicative(
    bench: &mut Bench<'_>,
    w: &World<'_>,
    server: &Evaluator,
    (a, b): (&Ciphertext, &Ciphertext),
    plain: &Plaintext,
    relin_bytes: usize,
) -> Outcome<()> {
    let product = |i: usize| w.x[i] * w.y[i];
    bench.case(
        "mul_plain + rescale",
        Some(server),
        1,
        || Ok(server.rescale(&server.mul_plain(a, plain)?)?),
        |c| Answer::of(w, &c, product),
    )?;
    bench.case("mul_plain", Some(server), 1, || Ok(server.mul_plain(a, plain)?), |c| Answer::of(w, &c, product))?;
    bench.case("mul", Some(server), 1, || Ok(server.mul(a, b)?), |c| Answer::of(w, &c, product))?;
    if w.params.p().is_empty() {
        return Ok(());
    }
    bench.case(
        "mul + relin + rescale",
        Some(server),
        1,
        || Ok(server.mul_rescale(a, b)?),
        |c| Ok(Answer::of(w, &c, product)?.with_key(relin_bytes)),
    )?;
    bench.case(
        "relinearize",
        Some(server),
        1,
        {
            let three = server.mul(a, b)?;
            move || Ok(server.relinearize(&three)?)
        },
        |c| Ok(Answer::of(w, &c, product)?.with_key(relin_bytes)),
    )
}

fn key_generation(
    bench: &mut Bench<'_>,
    w: &World<'_>,
    generator: &KeyGenerator<'_>,
    (relin_bytes, rotation_bytes): (usize, usize),
) -> Outcome<()> {
    let (params, top) = (w.params, w.params.max_level());
    let x = |i: usize| w.x[i];
    let at = EncodeAt { level: top, scale: params.scale(), max_abs: 1.0 };
    bench.case(
        "secret key",
        None,
        1,
        || Ok(SecretKey::generate(params)?),
        |key| {
            let c = Encryptor::with_secret_key(&key)?.encrypt(&w.encoder.encode_at(&w.x, at)?)?;
            let plain = Decryptor::new(&key).decrypt(&c)?;
            Answer::plain(w, &plain, x)
        },
    )?;
    bench.case(
        "public key",
        None,
        1,
        || Ok(generator.public_key()?),
        |key| {
            let c = Encryptor::with_public_key(&key)?.encrypt(&w.encoder.encode_at(&w.x, at)?)?;
            let bytes = key.polys()[0].words().len() * 16;
            Ok(Answer::of(w, &c, x)?.with_key(bytes))
        },
    )?;
    let fresh = Encryptor::with_secret_key(w.secret)?.encrypt(&w.encoder.encode_at(&w.x, at)?)?;
    bench.case(
        "relinearization key",
        None,
        1,
        || Ok(generator.eval_keys(Some(top), &[])?),
        |keys| {
            let c = Evaluator::new(params, keys)?.mul_relin(&fresh, &fresh)?;
            Ok(Answer::of(w, &c, |i| w.x[i] * w.x[i])?.with_key(relin_bytes))
        },
    )?;
    let element = params.rotation_element(1);
    bench.case(
        "rotation key",
        None,
        1,
        || Ok(generator.eval_keys(None, &[(element, top)])?),
        |keys| {
            let c = Evaluator::new(params, keys)?.rotate(&fresh, 1)?;
            Ok(Answer::of(w, &c, |i| w.x[(i + 1) % params.slots()])?.with_key(rotation_bytes))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_primes() {
        assert_eq!(bits("60,40x3").unwrap(), [60, 40, 40, 40]);
        assert_eq!(bits(" 49 , 45x2").unwrap(), [49, 45, 45]);
        assert!(bits("").unwrap().is_empty());
        assert!(bits("a").is_err() && bits("40x").is_err() && bits("40x999999999").is_err());
    }

    #[test]
    fn the_default_set_is_the_papers() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            set: Set,
        }
        let line = <Line as clap::Parser>::parse_from(["x"]);
        assert_eq!(*line.set.build().unwrap().literal(), ParamsLiteral::paper_matmul());
    }
}
