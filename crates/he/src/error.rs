//! What can go wrong with an encrypted computation, and the remedy.

use crate::ckks::{MAX_RELEASES, RELEASE_SECURITY, ReleasePolicy};
use crate::params::ParamsHash;
use sudare_ring::RingError;

/// An operation that was refused. Operands are as they were.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HeError {
    /// The ring below refused its input.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// A parameter literal that makes no sense.
    #[error("parameters: {reason}")]
    Parameters {
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A modulus too large for the security that was claimed.
    #[error(
        "log2(Q·P) = {log_qp:.1} at N = {degree} is over the limit of {limit} bits for {claimed}-bit security; take a larger N or fewer or smaller primes, or ask for Security::Insecure by name"
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
    },
    /// Objects of different parameter sets.
    #[error("{what} belongs to parameters {found}, not to {expected}")]
    WrongParameters {
        /// The offending object.
        what: &'static str,
        /// Its parameter hash.
        found: ParamsHash,
        /// The hash expected.
        expected: ParamsHash,
    },
    /// Objects of different secret keys.
    #[error("{what} belongs to key {found}, not to {expected}")]
    WrongKey {
        /// The offending object.
        what: &'static str,
        /// Its key id.
        found: crate::keys::KeyId,
        /// The id expected.
        expected: crate::keys::KeyId,
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
    #[error("{operation} asks for level {wanted}, and only levels up to {highest} exist there")]
    NoSuchLevel {
        /// The refused operation.
        operation: &'static str,
        /// Level asked for.
        wanted: usize,
        /// Highest level there is.
        highest: usize,
    },
    /// Operands whose scales differ by more than their noise.
    #[error(
        "{operation} met scales 2^{left:.4} and 2^{right:.4}; rescale both alike, encode at the other's scale, or use Evaluator::set_scale"
    )]
    ScaleMismatch {
        /// The refused operation.
        operation: &'static str,
        /// log2 of the left scale.
        left: f64,
        /// log2 of the right scale.
        right: f64,
    },
    /// A value or result that the modulus cannot hold.
    #[error(
        "{operation}: a value of up to 2^{value:.1} at scale 2^{scale:.1} does not fit the {modulus:.0} bits of the modulus at level {level}; rescale, lower the scale or the value bound, or stay at a higher level"
    )]
    TooLarge {
        /// The refused operation.
        operation: &'static str,
        /// log2 of the value bound.
        value: f64,
        /// log2 of the scale.
        scale: f64,
        /// log2 of the modulus.
        modulus: f64,
        /// Level.
        level: usize,
    },
    /// Noise that would swallow the message.
    #[error(
        "{operation}: the noise bound 2^{noise:.1} reaches the scale 2^{scale:.1}; use a larger scale or fewer operations"
    )]
    NoPrecision {
        /// The refused operation.
        operation: &'static str,
        /// log2 of the noise bound.
        noise: f64,
        /// log2 of the scale.
        scale: f64,
    },
    /// NaN or infinity in the input.
    #[error("value {index} of the input is not a finite number")]
    NotFinite {
        /// Position of the first such value.
        index: usize,
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
    #[error("{found} values given where {capacity} fit")]
    TooManyValues {
        /// Values given.
        found: usize,
        /// Values that fit.
        capacity: usize,
    },
    /// A rotation whose key the server does not have.
    #[error("no key for rotation by {step} (Galois element {element}); generate it with the evaluation keys")]
    MissingRotationKey {
        /// Slot step, as given; 0 stands for conjugation or another automorphism.
        step: i64,
        /// Galois element.
        element: u64,
    },
    /// No relinearisation key.
    #[error("no relinearisation key among the evaluation keys")]
    MissingRelinKey,
    /// A ciphertext with more parts than the operation takes.
    #[error("{operation} takes ciphertexts of {expected} parts and met one of {found}; relinearise first")]
    Degree {
        /// The refused operation.
        operation: &'static str,
        /// Parts expected.
        expected: usize,
        /// Parts found.
        found: usize,
    },
    /// An empty list of operands or lists of different lengths.
    #[error("{operation} takes equally many operands on both sides, at least one; it met {left} and {right}")]
    Operands {
        /// The refused operation.
        operation: &'static str,
        /// Left operands.
        left: usize,
        /// Right operands.
        right: usize,
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
    /// More decryptions for release than were declared.
    #[error("{declared} releases were declared and all are used; a new key is needed before more results are shown")]
    ReleasesUsedUp {
        /// Releases declared.
        declared: u64,
    },
    /// A release by another policy than the key's first one.
    #[error(
        "this key's releases were declared as {} of {} bits, and {} of {} bits are wanted; make a new key for another policy",
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
    /// A result that the noise could have changed.
    #[error(
        "{operation}: the result decrypts for certain under a modulus of {needed:.1} bits, and q has {modulus:.1}; compute less on these ciphertexts, or take parameters with a larger q"
    )]
    MayDecryptWrongly {
        /// The refused operation.
        operation: &'static str,
        /// log2 of the modulus that the static bound asks for.
        needed: f64,
        /// log2 of q.
        modulus: f64,
    },
    /// A ciphertext longer than the parameters allow.
    #[error(
        "{operation} gives a ciphertext of {parts} parts, and the parameters allow {most}; take a larger max_length"
    )]
    TooManyParts {
        /// The refused operation.
        operation: &'static str,
        /// Parts of the result.
        parts: usize,
        /// Most parts allowed.
        most: usize,
    },
    /// A coefficient that is not below the plaintext modulus.
    #[error(
        "coefficient {index} of the plaintext is not below t = {t} in absolute value; reduce it first, or take a larger t"
    )]
    NotModulo {
        /// Position of the first such coefficient.
        index: usize,
        /// The plaintext modulus.
        t: u64,
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
    /// An integer that the plaintext modulus does not hold.
    #[error(
        "value {index} of the input is not among the {modulus} values that the plaintext modulus holds; take a larger modulus or several, or ask for Wrap::Modulo"
    )]
    DoesNotFit {
        /// Position of the first such value.
        index: usize,
        /// The plaintext modulus.
        modulus: u64,
    },
    /// Slots asked of a plaintext modulus that has none.
    #[error("plaintext modulus {modulus} has no slots at N = {degree}: it is no prime ≡ 1 modulo 2N; use coefficients")]
    NoSlots {
        /// The plaintext modulus.
        modulus: u64,
        /// Ring degree.
        degree: usize,
    },
    /// A plaintext factor that no such ciphertext has.
    #[error(
        "a {scheme} ciphertext at level {level} has plaintext factor {expected}, and this one says {found}: it was changed on its way, or is of another scheme; ask for it again"
    )]
    WrongFactor {
        /// The scheme.
        scheme: &'static str,
        /// Level.
        level: usize,
        /// The factor found.
        found: u64,
        /// The factor that both sides compute.
        expected: u64,
    },
    /// A noise bound under what any ciphertext has.
    #[error(
        "the ciphertext states a noise bound of {found:.1}, and none at its level is under {least:.1}: it was changed on its way; ask for it again"
    )]
    NoiseTooSmall {
        /// The bound stated.
        found: f64,
        /// The least bound of a ciphertext that hides its message.
        least: f64,
    },
    /// Objects of different plaintext moduli.
    #[error("{what} has plaintext modulus {found}, not {expected}")]
    WrongPlainModulus {
        /// The offending object.
        what: &'static str,
        /// Its plaintext modulus.
        found: u64,
        /// The modulus expected.
        expected: u64,
    },
}
