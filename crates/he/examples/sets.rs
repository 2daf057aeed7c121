//! Every parameter set with a claim of security, as the LWE problems that an attack meets: JSON, one problem a line, for
//! `scripts/estimates.py` and the test that holds the stored estimates against the code.
//!
//! Run with `cargo run -p sudare-he --example sets`.

use serde::Serialize;
use std::error::Error;
use sudare_he::circuits::bootstrapping::{BootstrapLiteral, BootstrapSet};
use sudare_he::ckks::ParamsLiteral;
use sudare_he::discrete::DiscreteSet;
use sudare_packings::bv::PaperSet;
use sudare_rlwe::noise::ERROR_SIGMA;
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};
use sudare_tfhe::boolean::fhew::FhewLiteral;
use sudare_tfhe::circuit_bootstrap::CircuitLiteral;
use sudare_tfhe::leveled::LeveledLiteral;
use sudare_tfhe::params::published::{PublishedLwe, PublishedNoise, PublishedSecret, SETS};
use sudare_tfhe::params::security::least_log_noise;
use sudare_tfhe::{Noise, SecretKind, TfheLiteral};

/// What a problem stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A row of a table of limits: the weakest problem that is accepted with its claim.
    Limit,
    /// A set of this library.
    Set,
    /// A sparse secret: limits, and the ephemeral keys of CKKS bootstrapping. These have attacks of their own.
    Sparse,
    /// A set of another library, without a claim of ours.
    Published,
}

/// Distribution of a secret or an error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Uniform on {0, 1}.
    Binary,
    /// Uniform on {−1, 0, 1}.
    Ternary,
    /// ±1, half of the coefficients zero.
    HalfZero,
    /// So many coefficients ±1, the others zero.
    Weight(u32),
    /// Discrete Gaussian of this deviation.
    Gaussian(f64),
    /// Uniform on −b … b.
    Uniform(u64),
    /// Uniform on −2^b … 2^b, both ends with half the weight.
    Tuniform(u32),
}

/// An LWE problem; rings and modules count as LWE of their whole dimension.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// Its name, unique.
    pub name: String,
    /// What it stands for.
    pub kind: Kind,
    /// Bits of security that are claimed; zero for none.
    pub claim: u32,
    /// Dimension of the secret.
    pub dimension: usize,
    /// log2 of the modulus, to a millionth.
    pub log_q: f64,
    /// Distribution of the secret.
    pub secret: Distribution,
    /// Distribution of the error, in units of the modulus's last place.
    pub error: Distribution,
}

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Every problem.
pub fn shipped() -> Outcome<Vec<Problem>> {
    let mut all = limits();
    all.extend(lwe_limits());
    all.extend(rings()?);
    all.extend(sparse_limits());
    all.extend(bootstrapping()?);
    all.extend(tfhe()?);
    all.extend(published());
    Ok(all)
}

fn millionth(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

fn error_of_rings() -> Distribution {
    Distribution::Gaussian(ERROR_SIGMA)
}

/// Both tables of limits for CKKS, BFV, BGV and BV.
fn limits() -> Vec<Problem> {
    let mut out = Vec::new();
    for (name, kind, secret) in [
        ("ternary", SecretDistribution::Ternary, Distribution::Ternary),
        ("Gaussian", SecretDistribution::Gaussian, error_of_rings()),
    ] {
        for security in [Security::Bits128, Security::Bits192, Security::Bits256] {
            let claim = security.bits();
            // Beyond both ends of the table, so that a new row shows.
            for log_n in 8..=20 {
                let Some(limit) = max_log_qp(log_n, kind, security) else { continue };
                out.push(Problem {
                    name: format!("limit at {claim} bits, {name} secret, N = {}", 1u64 << log_n),
                    kind: Kind::Limit,
                    claim,
                    dimension: 1 << log_n,
                    log_q: limit.into(),
                    secret,
                    error: error_of_rings(),
                });
            }
        }
    }
    out
}

/// The least noise of TFHE's dimensions: the table's, and between them.
fn lwe_limits() -> Vec<Problem> {
    let mut out = Vec::new();
    for (name, kind, secret) in
        [("binary", SecretKind::Binary, Distribution::Binary), ("ternary", SecretKind::Ternary, Distribution::Ternary)]
    {
        for dimension in [630, 640, 690, 750, 810, 870, 947, 1024, 1280, 1536, 1792, 2048, 4096] {
            let Some(limit) = least_log_noise(dimension, kind) else { continue };
            out.push(Problem {
                name: format!("limit at 128 bits, {name} secret, LWE of n = {dimension}"),
                kind: Kind::Limit,
                claim: 128,
                dimension,
                log_q: 64.0,
                secret,
                error: Distribution::Gaussian((64.0 + limit).exp2().round()),
            });
        }
    }
    out
}

/// Sets of CKKS and BV by name.
fn rings() -> Outcome<Vec<Problem>> {
    let literal = ParamsLiteral::paper_matmul();
    let mut out = vec![Problem {
        name: "CKKS, paper_matmul".into(),
        kind: Kind::Set,
        claim: literal.security.bits(),
        dimension: 1 << literal.log_n,
        log_q: millionth(literal.build()?.log_qp()),
        secret: Distribution::Ternary,
        error: error_of_rings(),
    }];
    for set in PaperSet::ALL {
        let params = set.secure(Security::Bits128)?.build()?;
        let sigma = Distribution::Gaussian(params.literal().sigma);
        out.push(Problem {
            name: format!("BV, {set:?}, secure"),
            kind: Kind::Set,
            claim: params.literal().security.bits(),
            dimension: params.degree(),
            log_q: millionth(params.log_q()),
            secret: sigma,
            error: sigma,
        });
    }
    Ok(out)
}

/// Every limit for sparse secrets, by the least weight that it holds for.
fn sparse_limits() -> Vec<Problem> {
    let mut out = Vec::new();
    for security in [Security::Bits128, Security::Bits192, Security::Bits256] {
        let claim = security.bits();
        for log_n in 8..=20 {
            let mut before = None;
            for weight in 1..=512 {
                let limit = max_log_qp(log_n, SecretDistribution::FixedWeight { weight }, security);
                let Some(log_q) = limit.filter(|_| limit != before) else { continue };
                before = limit;
                out.push(Problem {
                    name: format!("limit at {claim} bits, weight {weight}, N = {}", 1u64 << log_n),
                    kind: Kind::Sparse,
                    claim,
                    dimension: 1 << log_n,
                    log_q: log_q.into(),
                    secret: Distribution::Weight(weight),
                    error: error_of_rings(),
                });
            }
        }
    }
    out
}

/// Both secrets of every bootstrapping set: the dense one modulo all of Q·P, the largest modulus that its keys have, and
/// the sparse one modulo q_0·p.
fn bootstrapping() -> Outcome<Vec<Problem>> {
    let mut out = Vec::new();
    let numbers = BootstrapSet::ALL.map(|set| (set.to_string(), set.literal()));
    let twice = [("A50".to_owned(), BootstrapLiteral::a50())];
    let tables = DiscreteSet::ALL.map(|set| (set.to_string(), set.literal()));
    for (name, literal) in numbers.into_iter().chain(twice).chain(tables) {
        let params = literal.params.build()?;
        let (claim, error) = (params.literal().security.bits(), error_of_rings());
        let mut put = |name: String, kind, log_q, secret| {
            let (dimension, log_q) = (params.degree(), millionth(log_q));
            out.push(Problem { name, kind, claim, dimension, log_q, secret, error });
        };
        put(format!("CKKS bootstrapping {name}"), Kind::Set, params.log_qp(), Distribution::Ternary);
        let [sparse, bits] = [literal.weight, literal.params.q_bits[0] + literal.gate_bits];
        put(format!("CKKS bootstrapping {name}, sparse key"), Kind::Sparse, bits.into(), Distribution::Weight(sparse));
    }
    Ok(out)
}

fn noise(noise: Noise) -> Outcome<Distribution> {
    Ok(match noise {
        Noise::Gaussian { sigma } => Distribution::Gaussian(sigma),
        Noise::TUniform { bits } => Distribution::Tuniform(bits),
        Noise::Uniform { bound } => Distribution::Uniform(bound),
        other => return Err(format!("{other:?} has no counterpart here").into()),
    })
}

fn secret(kind: SecretKind) -> Outcome<Distribution> {
    Ok(match kind {
        SecretKind::Binary => Distribution::Binary,
        SecretKind::Ternary => Distribution::Ternary,
        other => return Err(format!("{other:?} has no counterpart here").into()),
    })
}

/// Sets of TFHE, FHEW, leveled mode and circuit bootstrapping: every published key object.
fn tfhe() -> Outcome<Vec<Problem>> {
    let mut out = Vec::new();
    for (name, literal) in [
        ("gates", TfheLiteral::gates()),
        ("gates_failure_64", TfheLiteral::gates_failure_64()),
        ("gates_failure_40", TfheLiteral::gates_failure_40()),
        ("message_2_carry_2", TfheLiteral::message_2_carry_2()),
        ("message_2_carry_2_lwe_switch", TfheLiteral::message_2_carry_2_lwe_switch()),
        ("message_2_carry_2_failure_64", TfheLiteral::message_2_carry_2_failure_64()),
        ("message_2_carry_2_failure_40", TfheLiteral::message_2_carry_2_failure_40()),
        ("FHEW, automorphisms", FhewLiteral::automorphisms().tfhe),
        ("FHEW, ducas_micciancio", FhewLiteral::ducas_micciancio().tfhe),
        ("circuit bootstrap, three_levels", CircuitLiteral::three_levels().tfhe),
        ("circuit bootstrap, two_levels", CircuitLiteral::two_levels().tfhe),
    ] {
        let params = literal.build()?;
        let (literal, context) = (params.literal(), params.context());
        let log_q = millionth((context.q() as f64).log2());
        let mut put = |object: &str, dimension, log_q, secret, error| {
            let (name, claim) = (format!("TFHE, {name}, {object}"), literal.security.bits());
            out.push(Problem { name, kind: Kind::Set, claim, dimension, log_q, secret, error });
        };
        put("LWE", literal.lwe_dimension, 32.0, Distribution::Binary, noise(literal.lwe_noise)?);
        if let Some(wide) = params.module_switch_noise() {
            put("key switch", literal.lwe_dimension, log_q, Distribution::Binary, noise(wide)?);
        }
        put("GLWE", context.lwe_dimension(), log_q, secret(context.secret())?, noise(literal.glwe_noise)?);
    }
    for (name, literal) in
        [("degree_1024", LeveledLiteral::degree_1024()), ("degree_2048", LeveledLiteral::degree_2048())]
    {
        let (claim, of, error) = (literal.security.bits(), secret(literal.secret)?, noise(literal.noise)?);
        let params = literal.build()?;
        out.push(Problem {
            name: format!("TFHE, leveled {name}, GLWE"),
            kind: Kind::Set,
            claim,
            dimension: params.context().lwe_dimension(),
            log_q: millionth((params.context().q() as f64).log2()),
            secret: of,
            error,
        });
    }
    Ok(out)
}

/// Sets of other libraries.
fn published() -> Vec<Problem> {
    let problem = |name: &str, object: &str, lwe: &PublishedLwe| Problem {
        name: format!("{name}, {object}"),
        kind: Kind::Published,
        claim: 0,
        dimension: lwe.dimension,
        log_q: lwe.log_modulus.into(),
        secret: match lwe.secret {
            PublishedSecret::Binary => Distribution::Binary,
            PublishedSecret::HalfZero => Distribution::HalfZero,
            PublishedSecret::Gaussian(sigma) => Distribution::Gaussian(sigma),
            _ => Distribution::Ternary,
        },
        error: match lwe.noise {
            PublishedNoise::TUniform(bits) => Distribution::Tuniform(bits),
            noise => {
                Distribution::Gaussian(millionth(noise.fraction(lwe.log_modulus) * f64::from(lwe.log_modulus).exp2()))
            }
        },
    };
    let both = |set: &sudare_tfhe::params::published::PublishedSet| {
        [problem(set.name, "LWE", &set.lwe), problem(set.name, "ring", &set.glwe)]
    };
    SETS.iter().flat_map(both).collect()
}

fn main() -> Outcome<()> {
    for problem in shipped()? {
        println!("{}", serde_json::to_string(&problem)?);
    }
    Ok(())
}
