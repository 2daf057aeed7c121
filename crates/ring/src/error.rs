//! What can be wrong with a ring's inputs.

use crate::kind::{ErrorKind, Kinded};

/// Most characters that a message takes over from somebody else.
const MOST_TOLD: usize = 300;

/// What somebody else wrote, as a part of a message: nothing that a terminal would obey, and no more than a person reads.
pub fn told(text: impl ToString) -> String {
    let text = text.to_string();
    let mut all = text.chars().map(|c| if c.is_control() { '?' } else { c });
    let mut out: String = all.by_ref().take(MOST_TOLD).collect();
    if all.next().is_some() {
        out.push('…');
    }
    out
}

/// An input that no ring can be built from, or two that do not go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// A modulus outside what the kernels serve.
    #[error("modulus {value} is not an odd number from 3 to 2^61")]
    ModulusRange {
        /// The refused modulus.
        value: u64,
    },
    /// A ring degree outside what the transforms serve.
    #[error("ring degree {degree} is not a power of two from 2^9 to 2^17")]
    Degree {
        /// The refused degree.
        degree: usize,
    },
    /// A modulus that has no primitive 2N-th root of unity, or is no prime.
    #[error("modulus {value} is not a prime ≡ 1 modulo {order}; the transform of degree {} needs one", order / 2)]
    NotNttFriendly {
        /// The refused modulus.
        value: u64,
        /// 2N.
        order: u64,
    },
    /// There are fewer primes of this size than were asked for.
    #[error(
        "{count} primes of {bits} bits that are 1 modulo {order} do not exist; take fewer, or other sizes of up to 61 bits"
    )]
    TooFewPrimes {
        /// Bits wanted.
        bits: u32,
        /// Primes wanted.
        count: usize,
        /// 2N.
        order: u64,
    },
    /// Two limbs of a basis with one modulus.
    #[error("modulus {value} appears twice in one basis; take another prime")]
    RepeatedModulus {
        /// The repeated modulus.
        value: u64,
    },
    /// A plaintext modulus outside what the schemes serve.
    #[error(
        "a plaintext modulus lies between 2 and 2^{}, and {value} does not; take several coprime moduli for larger integers",
        crate::plain::MAX_PLAIN_BITS
    )]
    PlainModulus {
        /// The refused modulus.
        value: u64,
    },
    /// Moduli that share a factor where an inverse is needed.
    #[error("{value} has no inverse modulo {modulus}; take moduli that share no factor")]
    NotCoprime {
        /// What has no inverse.
        value: u64,
        /// The modulus.
        modulus: u64,
    },
    /// An even or out-of-range Galois element.
    #[error("{element} is not an odd number below {order}, so it names no automorphism")]
    GaloisElement {
        /// The refused element.
        element: u64,
        /// 2N.
        order: u64,
    },
    /// A kernel family that this machine or this modulus cannot use.
    #[error(
        "kernel family {family} cannot serve the {bits}-bit modulus on this machine; take a smaller modulus or \
         another family"
    )]
    KernelUnavailable {
        /// Name of the family asked for.
        family: &'static str,
        /// Bits of the modulus.
        bits: u32,
    },
    /// A kernel family that this machine cannot run.
    #[error("this machine cannot run the kernel family {family}; it has {}", available.join(", "))]
    KernelMissing {
        /// Name of the family asked for.
        family: &'static str,
        /// Names of those that it can run.
        available: Vec<&'static str>,
    },
    /// A word that names no kernel family.
    #[error("\"{value}\" is not a kernel family; they are {}", crate::kernel::NAMES.join(", "))]
    KernelName {
        /// The word found.
        value: String,
    },
    /// A second choice of a kernel family in one process, or one that comes too late.
    #[error("kernels are limited to {decided} already: limit them to {wanted} before anything else uses them")]
    KernelDecided {
        /// Name of the family asked for.
        wanted: &'static str,
        /// Name of the family decided on.
        decided: &'static str,
    },
    /// Raw data of the wrong length.
    #[error("{found} words given where {expected} were expected")]
    Length {
        /// Words expected.
        expected: usize,
        /// Words found.
        found: usize,
    },
    /// Raw data with a coefficient that is not below its modulus.
    #[error("coefficient {index} of limb {limb} is not below its modulus; reduce it first")]
    Coefficient {
        /// Limb of the offending coefficient.
        limb: usize,
        /// Its index in the limb.
        index: usize,
    },
    /// A standard deviation outside what a Gaussian sampler serves.
    #[error("standard deviation {} is out of range: a sampler with a table takes 0.5 to 64, one by convolution 20 to \
             2^100", f64::from_bits(*bits))]
    Sigma {
        /// The refused deviation, as the bits of an `f64`.
        bits: u64,
    },
    /// More non-zero coefficients than there are coefficients.
    #[error("{length} coefficients cannot have {weight} that are not zero; take a weight from 1 to {length}")]
    HammingWeight {
        /// Non-zero coefficients wanted.
        weight: usize,
        /// Coefficients in all.
        length: usize,
    },
    /// The operating system gave no randomness.
    #[error(
        "the operating system gave no randomness, and nothing is encrypted without it; check that this process may \
         use getrandom or /dev/urandom"
    )]
    Entropy,
}

impl Kinded for RingError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::ModulusRange { .. }
            | Self::Degree { .. }
            | Self::NotNttFriendly { .. }
            | Self::TooFewPrimes { .. }
            | Self::RepeatedModulus { .. }
            | Self::PlainModulus { .. }
            | Self::NotCoprime { .. }
            | Self::GaloisElement { .. }
            | Self::Sigma { .. }
            | Self::HammingWeight { .. } => ErrorKind::Parameters,
            Self::Length { .. } => ErrorKind::Shape,
            Self::Coefficient { .. } => ErrorKind::Input,
            Self::KernelUnavailable { .. }
            | Self::KernelMissing { .. }
            | Self::KernelName { .. }
            | Self::KernelDecided { .. }
            | Self::Entropy => ErrorKind::Machine,
        }
    }
}
