//! Every product method by its name: the one list that planner and loader go by.
//!
//! A new method adds its variant to [`Method`], an arm to [`ProductSpec::build`], and its
//! proposals to [`candidates`].

use crate::error::MatrixError;
use crate::product::{Product, ProductSpec, Requirements};

impl ProductSpec {
    /// Builds the product: parameters are checked and everything is precomputed.
    ///
    /// # Errors
    /// [`MatrixError::He`] for parameters that are refused, [`MatrixError::Method`] for a shape
    /// that the method cannot serve under them.
    pub fn build(&self) -> Result<Box<dyn Product>, MatrixError> {
        match self.method {}
    }
}

/// What every method proposes for a product, in no order.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    let _ = req;
    Vec::new()
}
