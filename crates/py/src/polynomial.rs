//! Polynomials that stand for functions.

use crate::error::{Refusal, Result};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::cell::RefCell;
use sudare_expr::ExprError;
use sudare_he::HeError;
use sudare_he::circuits::polynomial::fit::{self, Distance, Minimax};
use sudare_he::circuits::polynomial::{self, Function};
use sudare_ring::error::told;
use sudare_session::function;

/// A polynomial on an interval, and how far it is from the function that it stands for.
#[pyclass(frozen, module = "sudare._core")]
pub struct Polynomial(pub Minimax);

/// What a polynomial is to stand for: a function by its name, or any other.
enum Target<'py> {
    Known(Function),
    Given(Bound<'py, PyAny>),
}

impl<'py> Target<'py> {
    fn of(function: &Bound<'py, PyAny>) -> Result<Self> {
        let Ok(name) = function.extract::<String>() else { return Ok(Self::Given(function.clone())) };
        match Function::named(&name) {
            Some(known) => Ok(Self::Known(known)),
            None => Err(HeError::Approximation {
                reason: format!(
                    "there is no known function {name:?}; there are exp, sigmoid, tanh, sqrt, reciprocal, log, sin, \
                     cos, absolute, sign and step"
                ),
            }
            .into()),
        }
    }
}

/// What is made of a function of numbers. What the function raises is raised in place of the refusal of what stands for
/// its value.
fn with<T>(
    function: &Bound<'_, PyAny>,
    make: impl FnOnce(&dyn Fn(f64) -> f64) -> std::result::Result<T, HeError>,
) -> Result<T> {
    let raised = RefCell::new(None);
    let value = |x: f64| {
        function.call1((x,)).and_then(|y| y.extract::<f64>()).unwrap_or_else(|error| {
            raised.borrow_mut().get_or_insert(error);
            f64::NAN
        })
    };
    let made = make(&value);
    match raised.into_inner() {
        Some(error) => Err(Refusal::Raised(error)),
        None => Ok(made?),
    }
}

#[pymethods]
impl Polynomial {
    /// The polynomial of a degree with the least largest distance to a function of one number on some intervals, the
    /// function by its name or as it is; of the latter the distance is an estimate, or what the caller states.
    #[staticmethod]
    #[pyo3(signature = (function, intervals, degree, stated = None))]
    fn fit(
        function: &Bound<'_, PyAny>,
        intervals: Vec<(f64, f64)>,
        degree: usize,
        stated: Option<f64>,
    ) -> Result<Self> {
        Ok(Self(match (Target::of(function)?, stated) {
            (Target::Known(f), _) => fit::known(f, &intervals, degree)?,
            (Target::Given(f), None) => with(&f, |f| fit::minimax(f, &intervals, degree))?,
            (Target::Given(f), Some(error)) => with(&f, |f| fit::stated(f, &intervals, degree, error))?,
        }))
    }

    /// Σ c_k·T_k over an interval.
    #[staticmethod]
    fn chebyshev(coefficients: Vec<f64>, interval: (f64, f64)) -> Result<Self> {
        let polynomial = polynomial::Polynomial::chebyshev(&coefficients, interval.0, interval.1)?;
        Ok(Self(Minimax::exact(polynomial)?))
    }

    /// The same for elements up to `max_abs`, as far from the function as it is there: `None` stands for itself.
    fn up_to(&self, max_abs: f64, function: Option<&Bound<'_, PyAny>>) -> Result<Self> {
        let wider = |distance: Distance<'_>| self.0.clone().up_to(max_abs, distance);
        Ok(Self(match function.map(Target::of).transpose()? {
            None => wider(Distance::None)?,
            Some(Target::Known(f)) => wider(Distance::Bounded(f))?,
            Some(Target::Given(f)) => match with(&f, |f| wider(Distance::Estimated(f))) {
                // A function that is not there outside of the interval.
                Err(Refusal::Raised(e)) if e.is_instance_of::<PyException>(f.py()) => {
                    return Err(self.0.outside(max_abs).into());
                }
                found => found?,
            },
        }))
    }

    /// What is asked for with it, as JSON.
    #[getter]
    fn operation(&self) -> Result<String> {
        let unwritten = |e: serde_json::Error| ExprError::Expression { reason: told(e) };
        Ok(serde_json::to_string(&function(&self.0)).map_err(unwritten)?)
    }

    /// The c_k.
    #[getter]
    fn coefficients(&self) -> Vec<f64> {
        self.0.polynomial.coefficients().iter().map(|c| c.re).collect()
    }

    /// Both ends of the interval.
    #[getter]
    fn interval(&self) -> (f64, f64) {
        self.0.ends()
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
