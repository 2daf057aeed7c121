//! Errors as a person at a terminal meets them: one line, and a code for scripts.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use sudare_he::HeError;
use sudare_matrix::MatrixError;
use sudare_ring::ErrorKind;
use sudare_rlwe::RlweError;
use sudare_rlwe::wire::WireError;
use sudare_serve::{RemoteError, ServeError};

/// What kind of error: the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// An error of the program itself.
    Internal = 1,
    /// Wrong use of the command line.
    Usage = 2,
    /// Bad input data.
    Data = 3,
    /// Objects that do not belong together, or a missing key.
    Mismatch = 4,
    /// A damaged file.
    Damaged = 5,
    /// Nothing satisfies what is asked for.
    NoPlan = 6,
    /// Reading or writing failed, or the machine lacks what the work needs.
    Io = 7,
}

/// An error with its class and, where there is one, the file it is about.
#[derive(Debug)]
pub struct CliError {
    class: Class,
    file: Option<String>,
    message: String,
}

impl CliError {
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self { class, file: None, message: message.into() }
    }

    /// The same, about a file.
    pub fn in_file(mut self, path: &Path) -> Self {
        self.file.get_or_insert_with(|| path.display().to_string());
        self
    }

    pub fn code(&self) -> u8 {
        self.class as u8
    }
}

/// A line on standard error, if anybody reads it.
pub fn tell(line: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "sudare: {line}");
}

/// Says which file an error is about.
pub trait InFile<T> {
    fn in_file(self, path: &Path) -> Result<T, CliError>;
}

impl<T, E: Into<CliError>> InFile<T> for Result<T, E> {
    fn in_file(self, path: &Path) -> Result<T, CliError> {
        self.map_err(|e| e.into().in_file(path))
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        // One line that a terminal obeys nothing of, whatever it came from.
        for (i, word) in self.message.split_whitespace().enumerate() {
            let word: String = word.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            write!(f, "{}{word}", if i > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

impl From<io::Error> for CliError {
    fn from(e: io::Error) -> Self {
        let remedy = match e.kind() {
            io::ErrorKind::NotFound => "; check the path",
            io::ErrorKind::PermissionDenied => "; check the permissions of the file and its folder",
            io::ErrorKind::StorageFull => "; free some space",
            _ => "",
        };
        Self::new(Class::Io, format!("{e}{remedy}"))
    }
}

/// The exit code of each kind of refusal.
pub fn class_of(kind: ErrorKind) -> Class {
    match kind {
        ErrorKind::Parameters | ErrorKind::Insecure | ErrorKind::Levels | ErrorKind::Precision => Class::NoPlan,
        ErrorKind::Input | ErrorKind::Shape | ErrorKind::Unsupported => Class::Data,
        ErrorKind::Mismatch
        | ErrorKind::MissingKey
        | ErrorKind::NotPlanned
        | ErrorKind::Release
        | ErrorKind::WrongType => Class::Mismatch,
        ErrorKind::Format => Class::Damaged,
        ErrorKind::Io | ErrorKind::Machine => Class::Io,
        ErrorKind::Internal => Class::Internal,
    }
}

impl From<RemoteError> for CliError {
    fn from(e: RemoteError) -> Self {
        Self::new(class_of(e.kind()), e.to_string())
    }
}

impl From<ServeError> for CliError {
    fn from(e: ServeError) -> Self {
        Self::new(class_of(e.kind()), e.to_string())
    }
}

impl From<HeError> for CliError {
    fn from(e: HeError) -> Self {
        MatrixError::He(e).into()
    }
}

impl From<RlweError> for CliError {
    fn from(e: RlweError) -> Self {
        MatrixError::from(e).into()
    }
}

impl From<WireError> for CliError {
    fn from(e: WireError) -> Self {
        MatrixError::Wire(e).into()
    }
}

impl From<MatrixError> for CliError {
    fn from(e: MatrixError) -> Self {
        let remedy = match &e {
            MatrixError::He(HeError::Rlwe(
                RlweError::MissingRotationKey { .. } | RlweError::MissingRelinKey | RlweError::NoSuchLevel { .. },
            )) => "; these evaluation keys are not this plan's: make them with `sudare keygen`",
            MatrixError::NotFinite { .. } => "; replace or drop it first",
            MatrixError::Wire(WireError::WrongParameters { .. }) => "; use the files of one plan",
            MatrixError::Wire(WireError::WrongKey { .. })
            | MatrixError::He(HeError::Rlwe(RlweError::WrongKey { .. })) => "; use the keys of one `sudare keygen`",
            MatrixError::PlannedShape { .. } => "; plan for the shape that you have",
            _ => "",
        };
        Self::new(class_of(e.kind()), format!("{e}{remedy}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_a_terminal_obeys_nothing_of() {
        let error = CliError::new(Class::Data, "said \u{1b}[2J\nand\t\0more");
        assert_eq!(error.to_string(), "said ?[2J and ?more");
    }
}
