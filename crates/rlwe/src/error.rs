//! What can go wrong with parameters, keys and ciphertexts of any scheme, and the remedy.

use crate::ids::{KeyId, ParamsHash};
use crate::release::{MAX_RELEASES, RELEASE_SECURITY, ReleasePolicy};
use sudare_ring::{ErrorKind, Kinded, RingError};

/// An operation that was refused. Operands are as they were.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RlweError {
    /// The ring below refused its input.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// A parameter literal that makes no sense, or an object that its parameters cannot have.
    #[error("{reason}")]
    Parameters {
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A modulus too large for the security that was claimed.
    #[error(
        "log2(Q·P) = {log_qp:.1} at N = {degree} is over the limit of {limit} bits for {claimed}-bit security{}; take a larger N or fewer or smaller primes, or ask for the security \"insecure\" by name",
        sparse(*weight)
    )]
    Insecure {
        /// log2 of the whole modulus.
        log_qp: f64,
        /// Ring degree.
        degree: usize,
        /// Largest log2 allowed; 0 if nothing secure exists for this degree and secret.
        limit: u32,
        /// Security claimed, in bits.
        claimed: u32,
        /// The weight of a sparse secret.
        weight: Option<u32>,
    },
    /// Objects of different parameter sets.
    #[error(
        "{what} belongs to parameters {found}, not to {expected}; use what was made with one plan or set of parameters"
    )]
    WrongParameters {
        /// The offending object.
        what: &'static str,
        /// Its parameter hash.
        found: ParamsHash,
        /// The hash expected.
        expected: ParamsHash,
    },
    /// Objects of different secret keys.
    #[error("{what} belongs to key {found}, not to {expected}; use what was made with one key")]
    WrongKey {
        /// The offending object.
        what: &'static str,
        /// Its key id.
        found: KeyId,
        /// The id expected.
        expected: KeyId,
    },
    /// An operation that needs a level below the last.
    #[error(
        "{operation} needs {needed} level(s) and the ciphertext has {level}; plan a deeper parameter set or multiply less in a row"
    )]
    OutOfLevels {
        /// The refused operation.
        operation: &'static str,
        /// Levels it uses.
        needed: usize,
        /// Levels left.
        level: usize,
    },
    /// A level that the parameters or the key do not reach.
    #[error("{operation} asks for level {wanted}, and the levels end at {highest}")]
    NoSuchLevel {
        /// The refused operation.
        operation: &'static str,
        /// Level asked for.
        wanted: usize,
        /// Highest level there is.
        highest: usize,
    },
    /// A rotation whose key the server does not have.
    #[error("the evaluation keys have no key for rotation by {step} (Galois element {element}); generate it with them")]
    MissingRotationKey {
        /// Slot step, as given; 0 stands for conjugation or another automorphism.
        step: i64,
        /// Galois element.
        element: u64,
    },
    /// No relinearisation key.
    #[error("the evaluation keys have no relinearisation key; generate it with them")]
    MissingRelinKey,
    /// A key that its source has and could not load.
    #[error("an evaluation key could not be loaded: {reason}")]
    KeyNotLoaded {
        /// What was wrong, and where.
        reason: String,
        /// What kind of refusal that is.
        kind: ErrorKind,
    },
    /// What a device refused that computes in the processor's place.
    #[error("{reason}")]
    Device {
        /// Its own words, with the remedy.
        reason: String,
        /// What kind of refusal that is.
        kind: ErrorKind,
    },
    /// A ciphertext with more parts than the operation takes.
    #[error("{operation} takes ciphertexts of {expected} parts, and one has {found}; relinearise first")]
    Degree {
        /// The refused operation.
        operation: &'static str,
        /// Parts expected.
        expected: usize,
        /// Parts found.
        found: usize,
    },
    /// An empty list of operands or lists of different lengths.
    #[error("{operation} takes equally many operands on both sides, at least one; {left} and {right} were given")]
    Operands {
        /// The refused operation.
        operation: &'static str,
        /// Left operands.
        left: usize,
        /// Right operands.
        right: usize,
    },
    /// Something is not there that this library itself should have made: an error in it.
    #[error("{what}: an error in Sudare and not in what it was given; please report it")]
    Internal {
        /// What is not as it has to be.
        what: &'static str,
    },
    /// More decryptions for release than were declared.
    #[error("{declared} releases were declared and all are used; a new key is needed before more results are shown")]
    ReleasesUsedUp {
        /// Releases declared.
        declared: u64,
    },
    /// A release by another policy than the key's first one.
    #[error(
        "this key's releases were declared as {} of {} bits, and {} of {} bits are asked for; make a new key for \
         another policy",
        declared.releases(), declared.security_bits(), wanted.releases(), wanted.security_bits()
    )]
    OtherRelease {
        /// The key's policy.
        declared: ReleasePolicy,
        /// The policy asked for.
        wanted: ReleasePolicy,
    },
    /// A policy for releases that nobody can keep.
    #[error(
        "{releases} release(s) with {security_bits} bits of statistical security: declare 1 to {MAX_RELEASES} releases of {} to {} bits; fewer bits hide too little, more are not covered by the precision of the noise",
        RELEASE_SECURITY.start(), RELEASE_SECURITY.end()
    )]
    ReleasePolicy {
        /// Releases asked for.
        releases: u64,
        /// Bits asked for.
        security_bits: u32,
    },
    /// A value over the bound that its plaintext declares.
    #[error("value {index} of the input is over the declared bound {bound}; declare a larger max_abs")]
    OverBound {
        /// Position of the first such value.
        index: usize,
        /// The declared bound.
        bound: f64,
    },
    /// More values than slots or coefficients.
    #[error("{found} values were given, and {capacity} fit; give fewer, or take a larger ring")]
    TooManyValues {
        /// Values given.
        found: usize,
        /// Values that fit.
        capacity: usize,
    },
    /// Something larger than the memory it was given.
    #[error("{what} need {needed} bytes of memory and {limit} are allowed; allow more, or use more iterations")]
    Memory {
        /// What is so large.
        what: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// A ciphertext that is not what its computation gives.
    #[error(
        "the ciphertext states the {what} {found:e}, and its computation gives {expected:e}; it was changed or computed otherwise, and is not decrypted for release"
    )]
    NotAsComputed {
        /// What differs.
        what: &'static str,
        /// What the ciphertext states.
        found: f64,
        /// What its computation gives.
        expected: f64,
    },
    /// Noise that could reach the message: the result might decrypt wrongly.
    #[error(
        "{operation}: the noise bound 2^{noise:.1} would reach 2^{limit:.1}, where decryption can fail at level {level}; multiply less in a row, add fewer terms, or take parameters for a larger depth"
    )]
    NoBudget {
        /// The refused operation.
        operation: &'static str,
        /// log2 of the noise bound of the result.
        noise: f64,
        /// log2 of the noise at which decryption can fail.
        limit: f64,
        /// Level.
        level: usize,
    },
    /// Objects of different plaintext moduli.
    #[error("{what} has plaintext modulus {found}, not {expected}; use what was made with one plaintext modulus")]
    WrongPlainModulus {
        /// The offending object.
        what: &'static str,
        /// Its plaintext modulus.
        found: u64,
        /// The modulus expected.
        expected: u64,
    },
}

impl Kinded for RlweError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Ring(e) => e.kind(),
            Self::Parameters { .. } | Self::ReleasePolicy { .. } => ErrorKind::Parameters,
            Self::Insecure { .. } => ErrorKind::Insecure,
            Self::WrongParameters { .. } | Self::WrongKey { .. } | Self::WrongPlainModulus { .. } => {
                ErrorKind::Mismatch
            }
            Self::OutOfLevels { .. } | Self::NoSuchLevel { .. } => ErrorKind::Levels,
            Self::MissingRotationKey { .. } | Self::MissingRelinKey => ErrorKind::MissingKey,
            Self::KeyNotLoaded { kind, .. } | Self::Device { kind, .. } => *kind,
            Self::Degree { .. } | Self::Operands { .. } | Self::TooManyValues { .. } => ErrorKind::Shape,
            Self::OverBound { .. } => ErrorKind::Input,
            Self::NoBudget { .. } => ErrorKind::Precision,
            Self::Memory { .. } => ErrorKind::Machine,
            Self::Internal { .. } => ErrorKind::Internal,
            Self::ReleasesUsedUp { .. } | Self::OtherRelease { .. } | Self::NotAsComputed { .. } => ErrorKind::Release,
        }
    }
}

/// What an error says of a sparse secret, whose limits are others.
fn sparse(weight: Option<u32>) -> String {
    weight.map_or_else(String::new, |weight| {
        format!(" with a secret of weight {weight} (sparse secrets have limits where an estimate is stored, see docs/security.md; ternary ones have larger ones)")
    })
}
