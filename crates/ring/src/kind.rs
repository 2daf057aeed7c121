//! The kinds of all errors of Sudare, and what each means to scripts, clients and Python: the one table of them.

use std::error::Error;
use std::io;

/// Makes [`ErrorKind`] of the rows below.
macro_rules! kinds {
    ($($(#[doc = $what:literal])+ $kind:ident: $name:literal, $exit:literal, $status:literal, $class:literal;)+) => {
        /// What kind of refusal an error is: the command's exit code, the service's answer and Python's exception follow
        /// it alone.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorKind {
            $($(#[doc = $what])+ $kind,)+
        }

        impl ErrorKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind),+];

            /// Its name in answers of the service.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),+ }
            }

            /// The exit code of the command: 1 for a fault of the program, 2 for wrong use, 3 for bad data, 4 for objects
            /// that do not belong together, 5 for a damaged file, 6 where nothing satisfies what is asked for, 7 for files
            /// and machines.
            pub const fn exit_code(self) -> u8 {
                match self { $(Self::$kind => $exit),+ }
            }

            /// The HTTP status of the service.
            pub const fn status(self) -> u16 {
                match self { $(Self::$kind => $status),+ }
            }

            /// The exception of Python, a class of `sudare`.
            pub const fn class(self) -> &'static str {
                match self { $(Self::$kind => $class),+ }
            }
        }
    };
}

// Kind: name, exit code, status, class. Python raises a `RemoteError` for a kind without a class of its own that a remote
// server answers with.
kinds! {
    /// Parameters, options or a plan that make no sense, or a wish that nothing satisfies.
    Parameters: "parameters", 6, 422, "PlanError";
    /// Parameters under the security that was claimed.
    Insecure: "insecure", 6, 422, "SecurityError";
    /// More products in a row than there are levels.
    Levels: "levels", 6, 422, "LevelError";
    /// A value that the modulus cannot hold, or noise that could reach the message.
    Precision: "precision", 6, 422, "PrecisionError";
    /// Wrong use: an argument that is none, or is out of its range.
    Usage: "usage", 2, 422, "InputError";
    /// A value that cannot be encrypted.
    Input: "input", 3, 422, "InputError";
    /// Another number or shape of operands than the operation takes.
    Shape: "shape", 3, 422, "ShapeError";
    /// An operation that such objects do not have.
    Unsupported: "unsupported", 3, 422, "UnsupportedError";
    /// Objects of different parameters, keys or plans.
    Mismatch: "mismatch", 4, 409, "KeyMismatchError";
    /// A key that the server does not have.
    MissingKey: "missing-key", 4, 409, "MissingKeyError";
    /// An operation that the plan does not hold.
    NotPlanned: "not-planned", 4, 422, "PlanError";
    /// A release that was not declared, or of something else than was declared.
    Release: "release", 4, 422, "ReleaseError";
    /// Bytes of another type of object than the one asked for.
    WrongType: "wrong-type", 4, 415, "FormatError";
    /// Bytes that are no object, or damaged.
    Format: "format", 5, 422, "FormatError";
    /// Reading or writing failed.
    Io: "io", 7, 500, "SudareError";
    /// Something that the machine does not have: entropy, memory, a kernel family.
    Machine: "machine", 7, 503, "SudareError";
    /// An invariant that broke: a fault of this program.
    Internal: "internal", 1, 500, "SudareError";

    /// Of the service: no token, or one that is not known.
    Unauthorized: "unauthorized", 7, 401, "SudareError";
    /// Of the service: no such object, job, panel or path. Another tenant's count as none.
    NotFound: "not-found", 4, 404, "SudareError";
    /// Of the service: a method that the path does not have.
    Method: "method", 7, 405, "SudareError";
    /// Of the service: headers or a body that are none of the protocol.
    Request: "request", 7, 400, "SudareError";
    /// Of the service: a body without its length.
    LengthRequired: "length-required", 7, 411, "SudareError";
    /// Of the service: an object over the limit.
    TooLarge: "too-large", 7, 413, "SudareError";
    /// Of the service: the tenant's storage is full.
    Quota: "quota", 7, 413, "SudareError";
    /// Of the service: the server's disk is full.
    DiskFull: "disk-full", 7, 507, "SudareError";
    /// Of the service: a job that ran as long as a job may.
    TimeLimit: "time-limit", 7, 422, "SudareError";
    /// Of the service: as many of the tenant's requests or jobs are under way as may be.
    TooMany: "too-many", 7, 429, "SudareError";
    /// Of the service: as many requests or jobs of all tenants are under way as may be.
    Busy: "busy", 7, 503, "SudareError";
    /// Of the service: it stops.
    Stopping: "stopping", 7, 503, "SudareError";
    /// Of the service: bytes that are not those of the name.
    Digest: "digest", 5, 422, "FormatError";
    /// Of the service: an upload that does not go on where the last one ended.
    Offset: "offset", 7, 409, "SudareError";
    /// Of the service: a secret key, or what only a client keeps.
    Secret: "secret", 4, 422, "SudareError";
    /// Of the service: a body slower than the least rate, or that stood still.
    Slow: "slow", 7, 408, "SudareError";
    /// Of the service: a job that was cancelled, or has no result yet.
    State: "state", 4, 409, "SudareError";
    /// Of the service: an idempotency key that came with another request.
    Idempotency: "idempotency", 4, 422, "SudareError";
}

impl ErrorKind {
    /// The kind of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// An error of Sudare: every error type of every crate.
pub trait Kinded: Error + Send + Sync + 'static {
    /// What kind of refusal it is.
    fn kind(&self) -> ErrorKind;

    /// What the operating system said, where it is the operating system that refused.
    fn system(&self) -> Option<io::ErrorKind> {
        None
    }
}

impl Kinded for io::Error {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Io
    }

    fn system(&self) -> Option<io::ErrorKind> {
        Some(self.kind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own_and_a_status_of_a_refusal() {
        for kind in ErrorKind::ALL {
            assert_eq!(ErrorKind::named(kind.name()), Some(*kind));
            assert!((1..=7).contains(&kind.exit_code()) && (400..600).contains(&kind.status()), "{kind:?}");
        }
        assert_eq!(ErrorKind::named("tea"), None);
    }
}
