//! `exact`: additions and products of BFV and BGV by ring degree and depth, checked by
//! decryption; BFV beside the crate `fhe` at equal N, t and log Q.

use crate::Outcome;
use crate::machine::{Machine, reset_peak_rss};
use crate::record::{Record, Sink};
use crate::timing::{Budget, Random, Unit, measure};
use std::path::Path;
use sudare_he::bfv::Bfv;
use sudare_he::bgv::Bgv;
use sudare_he::ckks::ParamsLiteral;
use sudare_he::integer::plan::Requirements;
use sudare_he::integer::{Ciphertext, Decryptor, Encoder, Encryptor, Evaluator, IntegerParams, Packing, Scheme, Wrap};
use sudare_ring::Threads;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};

mod page;
mod peer;
mod products;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// `degree`: add and multiply against N; `depth`: against depth; `peer`: BFV beside the crate
    /// `fhe`; `product`: exact matrix products.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "product,degree,depth,peer",
        value_parser = ["product", "degree", "depth", "peer"]
    )]
    sweep: Vec<String>,
    /// Schemes of the sweeps by degree and depth.
    #[arg(long, value_delimiter = ',', default_value = "bfv,bgv", value_parser = ["bfv", "bgv"])]
    scheme: Vec<String>,
    /// Plaintext modulus.
    #[arg(long, default_value_t = 65537)]
    t: u64,
    /// Ring degrees of the sweep by degree.
    #[arg(long, value_delimiter = ',', default_value = "1024,2048,4096,8192,16384,32768")]
    n: Vec<usize>,
    /// Depth of the sweep by degree.
    #[arg(long, default_value_t = 1)]
    at_depth: usize,
    /// Depths of the sweep by depth.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3,4,5,6,7,8,9,10")]
    depth: Vec<usize>,
    /// Least ring degree of the sweep by depth.
    #[arg(long, default_value_t = 16_384)]
    at_n: usize,
    /// Only cases whose name contains one of these words.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Write the sweeps by degree and depth as a page with plots into the folder of `--runs`.
    #[arg(long)]
    page: bool,
}

/// OpenFHE with AVX-512 at N = 2^14, t = 65537, 128 bits: one product with relinearisation (in BGV
/// with its modulus switch), in units, measured apart from this run.
const OPENFHE_UNITS: [(&str, usize, f64); 4] =
    [("BFV", 3, 395.0), ("BFV", 6, 724.0), ("BGV", 3, 173.0), ("BGV", 6, 332.0)];
const OPENFHE: &str = "OpenFHE with AVX-512, one Sapphire Rapids core, constant from another run";

struct Bench<'a> {
    unit: Unit,
    budget: Budget,
    machine: &'a Machine,
    sink: &'a mut Sink,
    threads: &'a Threads,
    only: &'a [String],
    /// The sweep that runs, and what it found.
    sweep: Option<&'static str>,
    points: Vec<page::Point>,
}

/// A case's name, depth and peer.
struct Case<'a> {
    name: String,
    depth: usize,
    reference: Option<f64>,
    peer: Option<&'a mut dyn FnMut()>,
}

/// Keys and operands of one set.
struct World<S: Scheme> {
    params: IntegerParams,
    secret: SecretKey,
    server: Evaluator<S>,
    encoder: Encoder,
    packing: Packing,
    x: Vec<u64>,
    a: Ciphertext<S>,
    b: Ciphertext<S>,
}

impl<S: Scheme> World<S> {
    fn new(params: &IntegerParams) -> Outcome<Self> {
        let secret = SecretKey::generate(params)?;
        let keys = KeyGenerator::new(&secret)?.eval_keys(Some(params.max_level()), &[])?;
        let encoder = Encoder::new(params);
        let packing = if params.has_slots() { Packing::Slots } else { Packing::Coefficients };
        let mut random = Random::new(11);
        // As a polynomial, a constant: then products are constants too.
        let count = if params.has_slots() { params.degree() } else { 1 };
        let x: Vec<u64> = (0..count).map(|_| random.word() % params.t()).collect();
        let plain = encoder.encode_unsigned(&x, packing, Wrap::Refuse)?;
        let encryptor = Encryptor::<S>::with_secret_key(params, &secret)?;
        let (a, b) = (encryptor.encrypt(&plain)?, encryptor.encrypt(&plain)?);
        let server = Evaluator::new(params, keys)?;
        Ok(Self { params: params.clone(), secret, server, encoder, packing, x, a, b })
    }

    /// Whether a ciphertext holds `wanted` of each value.
    fn check(&self, c: &Ciphertext<S>, wanted: impl Fn(u64) -> u64) -> Outcome<f64> {
        let plain = Decryptor::new(&self.params, &self.secret)?.decrypt(c)?;
        let found = self.encoder.decode_unsigned(&plain, self.packing)?;
        let wrong = self.x.iter().zip(&found).filter(|(x, y)| wanted(**x) != **y).count();
        Ok(wrong as f64)
    }
}

impl Bench<'_> {
    /// Whether a case of this name is to run.
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| name.contains(word.as_str()))
    }

    fn case<S: Scheme>(
        &mut self,
        w: &World<S>,
        case: Case<'_>,
        mut op: impl FnMut() -> Outcome<Ciphertext<S>> + Send,
        wanted: impl Fn(u64) -> u64,
    ) -> Outcome<()> {
        let name = format!("{} {}", S::NAME.to_lowercase(), case.name);
        if !self.wants(&name) {
            return Ok(());
        }
        reset_peak_rss();
        let mut last = None;
        let with_peer = case.peer.is_some();
        let timing = measure(
            &mut self.unit,
            self.budget,
            || {
                // The result before goes first, so that one buffer serves all of them, as in the peer.
                last = None;
                last = Some(self.threads.run(&mut op)?);
                Ok(())
            },
            case.peer,
        )?;
        let record = Record::new("exact", name, self.threads.count(), self.machine).with_params(w.params.rlwe());
        let mut record = record.with_timing(timing);
        record.params = record.params.map(|p| format!("t {} {p}", w.params.t()));
        (record.method, record.depth) = (Some(S::NAME.into()), Some(case.depth));
        record.key_bytes = Some(w.server.keys().bytes());
        if let Some(c) = last {
            record.ct_bytes = Some(c.bytes());
            // Not one value may be wrong.
            record = record.with_error(w.check(&c, wanted)?, 0.0);
        }
        if with_peer {
            record.peer = Some(peer::NAME);
        }
        if let Some(units) = case.reference {
            (record.reference, record.reference_units) = (Some(OPENFHE.into()), Some(units));
        }
        if let (Some(sweep), Some(wall_ms), Some(cpu_ms)) = (self.sweep, record.median_ms, record.cpu_ms) {
            let n = w.params.degree();
            self.points.push(page::Point {
                sweep,
                scheme: S::NAME,
                operation: case.name,
                x: if sweep == "degree" { n } else { case.depth },
                n,
                security_bits: record.security_bits.unwrap_or(0),
                cpu_ms,
                wall_ms,
                peak_mb: record.peak_rss_mb,
            });
        }
        self.sink.put(record)
    }

    /// Addition, one product, and all products in a row.
    fn set<S: Scheme>(&mut self, params: &IntegerParams, depth: usize, chain: bool) -> Outcome<()> {
        let w = World::<S>::new(params)?;
        let t = params.modulus();
        let case = |name: &str| Case { name: name.into(), depth, reference: None, peer: None };
        self.case(&w, case("add"), || Ok(w.server.add(&w.a, &w.b)?), |x| t.add(x, x))?;
        if depth == 0 {
            return Ok(());
        }
        let secure = params.degree() == 1 << 14 && params.t() == 65537;
        let reference = OPENFHE_UNITS.iter().find(|(s, d, _)| secure && *s == S::NAME && *d == depth).map(|r| r.2);
        let product = Case { reference, ..case("multiply") };
        self.case(&w, product, || Ok(w.server.mul_relin(&w.a, &w.b)?), |x| t.mul(x, x))?;
        if chain {
            let run = || {
                let mut c = w.a.clone();
                for _ in 0..depth {
                    c = w.server.square(&c)?;
                }
                Ok(c)
            };
            self.case(&w, case("all products"), run, |x| (0..depth).fold(x, |x, _| t.mul(x, x)))?;
        }
        Ok(())
    }

    fn both(&mut self, options: &Options, wish: &Requirements, depth: usize, chain: bool) -> Outcome<()> {
        for scheme in &options.scheme {
            match scheme.as_str() {
                "bfv" => self.set::<Bfv>(&wish.bfv()?, depth, chain)?,
                _ => self.set::<Bgv>(&wish.bgv()?, depth, chain)?,
            }
        }
        Ok(())
    }
}

/// Secure where the degree allows it, and without a claim where it does not.
fn at_degree(wish: Requirements, n: usize) -> Outcome<Requirements> {
    let wish = wish.values(n);
    let log_n = n.trailing_zeros();
    if wish.bfv_literal()?.log_n == log_n && wish.bgv_literal()?.log_n == log_n {
        return Ok(wish);
    }
    Ok(wish.security(Security::Insecure))
}

/// A chain of `log_q` bits in all from primes of at most 47 bits.
fn chain(log_n: u32, log_q: u32) -> ParamsLiteral {
    let count = log_q.div_ceil(47) as usize;
    // Even sizes, the remainder spread over the first ones.
    let (each, more) = (log_q / count as u32, log_q as usize % count);
    let q_bits: Vec<u32> = (0..count).map(|i| each + u32::from(i < more)).collect();
    let digit_limbs = count.div_ceil(3);
    let log_qp = log_q + 47 * (digit_limbs as u32);
    let limit = max_log_qp(log_n, SecretDistribution::Ternary, Security::Bits128).unwrap_or(0);
    ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n,
            q_bits,
            p_bits: vec![47; digit_limbs],
            digit_limbs,
            secret: SecretDistribution::Ternary,
            security: if log_qp <= limit { Security::Bits128 } else { Security::Insecure },
        },
        log_scale: 1,
    }
}

/// Runs the suite.
pub fn run(
    options: &Options,
    budget: Budget,
    threads: &Threads,
    machine: &Machine,
    sink: &mut Sink,
    runs: &Path,
) -> Outcome<()> {
    let (only, points) = (options.only.as_slice(), Vec::new());
    let mut bench = Bench { unit: Unit::new()?, budget, machine, sink, threads, only, sweep: None, points };
    let wants = |sweep: &str| options.sweep.iter().any(|s| s == sweep);
    if wants("product") {
        products::run(&mut bench)?;
    }
    if wants("degree") {
        bench.sweep = Some("degree");
        for n in &options.n {
            if !n.is_power_of_two() {
                return Err(format!("a ring degree of {n} is no power of two").into());
            }
            let wish = at_degree(Requirements::new(options.t).depth(options.at_depth), *n)?;
            bench.both(options, &wish, options.at_depth, false)?;
        }
    }
    if wants("depth") {
        bench.sweep = Some("depth");
        for depth in &options.depth {
            let wish = Requirements::new(options.t).depth(*depth).values(options.at_n);
            bench.both(options, &wish, *depth, true)?;
        }
    }
    bench.sweep = None;
    if options.page {
        page::write(&bench.points, machine, runs)?;
    }
    if wants("peer") {
        for (log_n, sizes) in peer::SETS {
            let log_q = sizes.iter().sum::<usize>() as u32;
            let params = IntegerParams::new(chain(log_n, log_q).build()?.rlwe(), options.t)?;
            let w = World::<Bfv>::new(&params)?;
            let peer = peer::Peer::new(log_n, options.t, sizes)?;
            let t = params.modulus();
            let mut add = || peer.add();
            let case = Case { name: "add beside fhe".into(), depth: 1, reference: None, peer: Some(&mut add) };
            bench.case(&w, case, || Ok(w.server.add(&w.a, &w.b)?), |x| t.add(x, x))?;
            let mut multiply = || peer.multiply();
            let case =
                Case { name: "multiply beside fhe".into(), depth: 1, reference: None, peer: Some(&mut multiply) };
            bench.case(&w, case, || Ok(w.server.mul_relin(&w.a, &w.b)?), |x| t.mul(x, x))?;
            peer.check()?;
        }
    }
    Ok(())
}
