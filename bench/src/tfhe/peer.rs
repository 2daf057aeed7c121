//! The crate `tfhe` beside ours, in the same process and in turn; compiled with the feature `peer-tfhe` alone.

use crate::Outcome;
#[cfg(feature = "peer-tfhe")]
use sudare_he::tfhe::published::PublishedSet;

#[cfg(feature = "peer-tfhe")]
mod bits;
#[cfg(feature = "peer-tfhe")]
mod circuit;
#[cfg(feature = "peer-tfhe")]
mod integers;
#[cfg(feature = "peer-tfhe")]
mod kept;

/// Where the peer's columns come from.
pub const HOW: &str = "the columns of the crate tfhe stay blank: build with --features peer-tfhe to measure it in turn";

/// What is claimed of the peer's set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Claims {
    /// log2 of the failure probability of a bootstrap.
    pub log2_failure: Option<f64>,
    /// Bits of security.
    pub security_bits: Option<u32>,
}

#[cfg(feature = "peer-tfhe")]
impl Claims {
    /// Those of a published set.
    fn of(name: &str) -> Outcome<Self> {
        let set = PublishedSet::named(name)?;
        Ok(Self { log2_failure: set.log_failure, security_bits: set.claimed_bits })
    }
}

/// One operation of the peer, on one thread.
pub trait Operation {
    /// Runs it once and keeps the result.
    fn run(&mut self);

    /// Drops the results kept, outside the clock: for results as large as keys.
    fn clear(&mut self) {}

    /// How many of the results kept are wrong, and how many there are.
    fn answers(&self) -> (usize, usize);

    /// Its parameters.
    fn params(&self) -> String;

    /// What is claimed of them.
    fn claims(&self) -> Claims {
        Claims::default()
    }

    /// Bytes of its server key: expanded in memory, and seeded.
    fn key_bytes(&self) -> Option<[usize; 2]> {
        None
    }
}

/// Makes the keys and inputs of an operation.
pub type Make = fn() -> Outcome<Box<dyn Operation>>;

/// The peer in the records. Its AVX-512 kernels are compiled by default and chosen when it runs, by
/// the features asked for here.
#[cfg(feature = "peer-tfhe")]
pub fn name() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512cd")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512vl")
    {
        return "tfhe 1.8, AVX-512";
    }
    "tfhe 1.8"
}

/// The peer in the records.
#[cfg(not(feature = "peer-tfhe"))]
pub fn name() -> &'static str {
    "tfhe 1.8"
}

/// What the peer does for a case of one thread; none where it has no such operation.
#[cfg(feature = "peer-tfhe")]
pub fn find(case: &str) -> Option<Make> {
    use tfhe::boolean::parameters::{
        DEFAULT_PARAMETERS, DEFAULT_PARAMETERS_KS_PBS, PARAMETERS_ERROR_PROB_2_POW_MINUS_165_KS_PBS,
    };
    Some(match case {
        // The peer has no set of gates at 2^-128: this one is the nearest below.
        "NAND, 2^-128" => || bits::nand(&PARAMETERS_ERROR_PROB_2_POW_MINUS_165_KS_PBS, "tfhe-rs 2^-165"),
        "NAND, 2^-64" => || bits::nand(&DEFAULT_PARAMETERS_KS_PBS, "tfhe-rs default ks-pbs"),
        "NAND, 2^-64, the peer's default" => || bits::nand(&DEFAULT_PARAMETERS, "tfhe-rs default"),
        "server key gates, 2^-128" => {
            || bits::server_key(&PARAMETERS_ERROR_PROB_2_POW_MINUS_165_KS_PBS, "tfhe-rs 2^-165")
        }
        "server key gates, 2^-64" => || bits::server_key(&DEFAULT_PARAMETERS_KS_PBS, "tfhe-rs default ks-pbs"),
        "bootstrap 2+2, 2^-128" | "bootstrap 2+2 LWE switch, 2^-128" => integers::bootstrap,
        "key switch 2+2, 2^-128" | "key switch 2+2 LWE switch, 2^-128" => integers::key_switch,
        "bootstrap after the key switch 2+2, 2^-128" | "bootstrap after the key switch 2+2 LWE switch, 2^-128" => {
            integers::after_key_switch
        }
        "server key 2+2, 2^-128" | "server key 2+2 LWE switch, 2^-128" => integers::server_key,
        "8-bit add" => || integers::radix(8, integers::Radix::Add),
        "8-bit multiply" => || integers::radix(8, integers::Radix::Multiply),
        "8-bit compare" => || integers::radix(8, integers::Radix::Less),
        "64-bit add" => || integers::radix(64, integers::Radix::Add),
        "circuit bootstrap, 3 levels" | "circuit bootstrap, 2 levels" | "circuit bootstrap, 3 levels, classical" => {
            circuit::bootstrap
        }
        _ => return None,
    })
}

/// Nothing without the feature `peer-tfhe`.
#[cfg(not(feature = "peer-tfhe"))]
pub fn find(_case: &str) -> Option<Make> {
    None
}
