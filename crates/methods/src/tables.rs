//! Tables that are made when they are first needed: plans and clients do without.

use crate::error::MatrixError;
use sudare_ring::memo::Once;

/// Something that only those who compute need.
pub struct Tables<T>(Once<T>);

impl<T> Default for Tables<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Tables<T> {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self(Once::new())
    }

    /// Whether anything is there.
    pub fn is_made(&self) -> bool {
        self.0.get().is_some()
    }

    /// What is there, or what `make` makes of it. Two threads that ask at once both make it.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get(&self, make: impl FnOnce() -> Result<T, MatrixError>) -> Result<&T, MatrixError> {
        if let Some(made) = self.0.get() {
            return Ok(made);
        }
        let made = make()?;
        Ok(self.0.get_or_init(|| Box::new(made)))
    }
}
