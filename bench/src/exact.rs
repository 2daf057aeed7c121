//! `exact`: exact matrix products, and BFV beside the crate `fhe` at equal N, t and log Q, checked by decryption.

use crate::Outcome;
use crate::machine::Machine;
use crate::record::Sink;
use crate::schemes::{Bench, Case, Expected, IntegerWorld, World};
use crate::timing::{Budget, Unit};
use sudare_exact::IntegerParams;
use sudare_exact::bfv::Bfv;
use sudare_he::ckks::ParamsLiteral;
use sudare_ring::Threads;
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};

mod peer;
mod products;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// `product`: exact matrix products; `peer`: BFV beside the crate `fhe`.
    #[arg(long, value_delimiter = ',', default_value = "product,peer", value_parser = ["product", "peer"])]
    sweep: Vec<String>,
    /// Plaintext modulus beside the peer.
    #[arg(long, default_value_t = 65537)]
    t: u64,
    /// Only cases whose name contains one of these words.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
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
pub fn run(options: &Options, budget: Budget, threads: &Threads, machine: &Machine, sink: &mut Sink) -> Outcome<()> {
    let (only, unit) = (options.only.as_slice(), Unit::new()?);
    let mut bench = Bench { unit, budget, machine, sink, threads, only, suite: "exact" };
    let wants = |sweep: &str| options.sweep.iter().any(|s| s == sweep);
    if wants("product") {
        products::run(&mut bench)?;
    }
    if wants("peer") {
        for (log_n, sizes) in peer::SETS {
            let log_q = sizes.iter().sum::<usize>() as u32;
            let params = IntegerParams::new(chain(log_n, log_q).build()?.rlwe(), options.t)?;
            let w = IntegerWorld::<Bfv>::new(&params)?;
            let peer = peer::Peer::new(log_n, options.t, sizes)?;
            let mut add = || peer.add();
            let case = Case { name: "add beside fhe".into(), depth: 1, peer: Some((peer::NAME, &mut add)) };
            bench.case(&w, case, Expected::Sum, || w.add())?;
            let mut multiply = || peer.multiply();
            let case = Case { name: "multiply beside fhe".into(), depth: 1, peer: Some((peer::NAME, &mut multiply)) };
            bench.case(&w, case, Expected::Product, || w.multiply())?;
            peer.check()?;
        }
    }
    Ok(())
}
