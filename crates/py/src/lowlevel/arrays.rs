//! NumPy arrays: read where they are if their type and layout are right, and polynomials as arrays of residues.

use crate::error::{Refusal, Result, raised};
use numpy::{
    Complex64, Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;
use sudare_ring::{Coeff, ErrorKind, Eval, Poly, RnsBasis};
use sudare_tfhe::LweCiphertext;

/// Elements that arrays have.
pub trait Number: Element {
    /// What such an array holds, in words.
    const WORDS: &'static str;
}

impl Number for f64 {
    const WORDS: &'static str = "real numbers";
}

impl Number for Complex64 {
    const WORDS: &'static str = "complex numbers";
}

impl Number for i64 {
    const WORDS: &'static str = "integers of 64 bits with a sign";
}

impl Number for u64 {
    const WORDS: &'static str = "integers of 64 bits without a sign";
}

/// A vector: the caller's own array if its elements are of this type and lie side by side, and a copy of anything that
/// NumPy makes such an array of without changing a value.
pub struct Row<'py, T: Number>(PyReadonlyArray1<'py, T>);

impl<T: Number> Row<'_, T> {
    /// Its elements.
    pub fn slice(&self) -> Result<&[T]> {
        self.0.as_slice().map_err(|error| Refusal::Refused(ErrorKind::Input, error.to_string()))
    }
}

impl<'a, 'py, T: Number> FromPyObject<'a, 'py> for Row<'py, T> {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let py = given.py();
        if let Ok(array) = given.cast::<PyArray1<T>>()
            && array.is_c_contiguous()
            && array.is_aligned()
        {
            return Ok(Self(array.to_owned().readonly()));
        }
        let refuse = || {
            let found = given.getattr("dtype").unwrap_or_else(|_| given.get_type().into_any());
            raised(py, ErrorKind::Input, &format!("a vector of {} is needed, not {found}", T::WORDS))
        };
        let numpy = py.import("numpy")?;
        let array = numpy.call_method1("ascontiguousarray", (given,)).map_err(|_| refuse())?;
        let (wanted, found) = (numpy::dtype::<T>(py), array.getattr("dtype")?);
        let kind = |dtype: &Bound<'_, PyAny>| dtype.getattr("kind").and_then(|kind| kind.extract::<char>());
        // NumPy takes no integer with a sign for one without, whatever its value, and the empty list for real numbers.
        let unsigned = kind(wanted.as_any())? == 'u' && kind(&found)? == 'i';
        let casting = match array.len()? == 0 || (unsigned && array.call_method0("min")?.ge(0)?) {
            true => "unsafe",
            false => "safe",
        };
        let cast = array.call_method("astype", (wanted,), Some(&[("casting", casting)].into_py_dict(py)?));
        let array = cast.map_err(|_| refuse())?;
        let array = array.cast::<PyArray1<T>>().map_err(|_| refuse())?;
        Ok(Self(array.readonly()))
    }
}

/// The coefficients of a polynomial modulo each prime, a row each.
pub fn residues<'py>(py: Python<'py>, poly: &Poly<Coeff>) -> PyResult<Bound<'py, PyArray2<u64>>> {
    PyArray1::from_slice(py, poly.words()).reshape([poly.basis().len(), poly.degree()])
}

/// A polynomial of such rows.
pub fn polynomial(basis: &RnsBasis, rows: &PyReadonlyArray2<'_, u64>) -> Result<Poly<Eval>> {
    let words: Vec<u64> = rows.as_array().iter().copied().collect();
    Ok(Poly::<Coeff>::from_words(basis, &words)?.into_eval())
}

/// Mask and body of an LWE ciphertext.
pub fn lwe<'py>(py: Python<'py>, ciphertext: &LweCiphertext) -> Bound<'py, PyArray1<u64>> {
    PyArray1::from_slice(py, ciphertext.words())
}
