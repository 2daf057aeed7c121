//! Errors as a person at a terminal meets them: one line, and a code for scripts.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use sudare_exact::ExactError;
use sudare_he::HeError;
use sudare_methods::MatrixError;
use sudare_ring::{ErrorKind, Kinded};
use sudare_rlwe::RlweError;

/// An error with its kind and, where there is one, the file it is about.
#[derive(Debug)]
pub struct CliError {
    kind: ErrorKind,
    file: Option<String>,
    message: String,
}

impl CliError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, file: None, message: message.into() }
    }

    /// The same, about a file.
    pub fn in_file(mut self, path: &Path) -> Self {
        self.file.get_or_insert_with(|| path.display().to_string());
        self
    }

    pub fn code(&self) -> u8 {
        self.kind.exit_code()
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

impl<E: Kinded> From<E> for CliError {
    fn from(error: E) -> Self {
        let remedy = match error.system() {
            Some(io::ErrorKind::NotFound) => "; check the path",
            Some(io::ErrorKind::PermissionDenied) => "; check the permissions of the file and its folder",
            Some(io::ErrorKind::StorageFull) => "; free some space",
            Some(_) => "",
            None => remedy(&error),
        };
        Self::new(error.kind(), format!("{error}{remedy}"))
    }
}

/// What helps at a terminal, where the error itself cannot say it.
fn remedy(error: &(dyn Error + 'static)) -> &'static str {
    match error.downcast_ref() {
        Some(MatrixError::He(e)) => return remedy(e),
        Some(MatrixError::Exact(e)) => return remedy(e),
        _ => {}
    }
    if let (Some(HeError::Rlwe(e)), _) | (_, Some(ExactError::Rlwe(e))) = (error.downcast_ref(), error.downcast_ref()) {
        return remedy(e);
    }
    match error.downcast_ref() {
        Some(RlweError::MissingRotationKey { .. } | RlweError::MissingRelinKey | RlweError::NoSuchLevel { .. }) => {
            "; these evaluation keys are not this plan's: make them with `sudare keygen`"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_genome::GenomeError;
    use sudare_rlwe::wire::WireError;

    #[test]
    fn advice_follows_the_error_whatever_wraps_it() {
        let missing = || RlweError::MissingRelinKey;
        let exact = MatrixError::from(ExactError::from(missing()));
        for error in [
            CliError::from(missing()),
            HeError::from(missing()).into(),
            MatrixError::from(missing()).into(),
            exact.into(),
        ] {
            assert!(error.to_string().ends_with("make them with `sudare keygen`"), "{error}");
            assert_eq!(error.code(), 4);
        }
        let kind = io::ErrorKind::NotFound;
        let wire = WireError::Io { kind };
        for error in [
            CliError::from(io::Error::from(kind)),
            wire.clone().into(),
            MatrixError::Wire(wire).into(),
            GenomeError::Io { kind }.into(),
        ] {
            assert!(error.to_string().ends_with("; check the path"), "{error}");
            assert_eq!(error.code(), 7);
        }
    }

    #[test]
    fn a_line_that_a_terminal_obeys_nothing_of() {
        let error = CliError::new(ErrorKind::Input, "said \u{1b}[2J\nand\t\0more");
        assert_eq!(error.to_string(), "said ?[2J and ?more");
    }
}
