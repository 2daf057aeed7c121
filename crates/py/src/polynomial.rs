//! Polynomials that stand for functions.

use crate::error::{Refusal, Result};
use pyo3::prelude::*;
use std::cell::RefCell;
use sudare_he::circuits::polynomial;
use sudare_he::circuits::polynomial::fit::{self, Minimax};

/// A polynomial on an interval, and how far it is from the function that it stands for.
#[pyclass(frozen, module = "sudare._core")]
pub struct Polynomial(pub Minimax);

#[pymethods]
impl Polynomial {
    /// The polynomial of a degree with the least largest distance to a function of one number on some intervals.
    #[staticmethod]
    fn fit(function: &Bound<'_, PyAny>, intervals: Vec<(f64, f64)>, degree: usize) -> Result<Self> {
        // What the function raises is kept, and raised in place of the refusal of what stands for its value.
        let raised = RefCell::new(None);
        let value = |x: f64| {
            function.call1((x,)).and_then(|y| y.extract::<f64>()).unwrap_or_else(|error| {
                raised.borrow_mut().get_or_insert(error);
                f64::NAN
            })
        };
        let found = fit::minimax(value, &intervals, degree);
        match raised.into_inner() {
            Some(error) => Err(Refusal::Raised(error)),
            None => Ok(Self(found?)),
        }
    }

    /// Σ c_k·T_k over an interval.
    #[staticmethod]
    fn chebyshev(coefficients: Vec<f64>, interval: (f64, f64)) -> Result<Self> {
        let polynomial = polynomial::Polynomial::chebyshev(&coefficients, interval.0, interval.1)?;
        Ok(Self(Minimax { polynomial, error: 0.0 }))
    }

    /// The c_k.
    #[getter]
    fn coefficients(&self) -> Vec<f64> {
        self.0.polynomial.coefficients().iter().map(|c| c.re).collect()
    }

    /// Both ends of the interval.
    #[getter]
    fn interval(&self) -> (f64, f64) {
        let (centre, radius) = self.0.polynomial.domain();
        (centre - radius, centre + radius)
    }

    /// Levels of its evaluation.
    #[getter]
    fn levels(&self) -> usize {
        self.0.polynomial.depth()
    }

    /// Largest distance to the function.
    #[getter]
    fn error(&self) -> f64 {
        self.0.error
    }
}
