//! Tables that are made when they are first needed: plans and clients do without.

use crate::error::MatrixError;
use sudare_ring::memo::Once;

/// Something that only those who compute need.
pub(crate) struct Tables<T>(Once<T>);

impl<T> Tables<T> {
    pub(crate) const fn new() -> Self {
        Self(Once::new())
    }

    /// Whether anything is there.
    #[cfg(test)]
    pub(crate) fn is_made(&self) -> bool {
        self.0.get().is_some()
    }

    /// What is there, or what `make` makes of it. Two threads that ask at once both make it.
    pub(crate) fn get(&self, make: impl FnOnce() -> Result<T, MatrixError>) -> Result<&T, MatrixError> {
        if let Some(made) = self.0.get() {
            return Ok(made);
        }
        let made = make()?;
        Ok(self.0.get_or_init(|| Box::new(made)))
    }
}
