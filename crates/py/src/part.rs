//! Parts of encrypted matrices: what the tasks of a cluster work on. Blocks pass as arrays of bytes, which are not copied
//! on their way in.

use crate::client::Client;
use crate::encrypted::Encrypted;
use crate::error::{Refusal, Result};
use crate::plan::Plan;
use crate::server::Server;
use crate::stored::Stored;
use crate::work::long;
use numpy::{PyArray1, PyArray3, PyReadonlyArray1};
use pyo3::prelude::*;
use sudare_expr::Operand;
use sudare_methods::MatrixError;
use sudare_session::{self as session, Form, Held, Layout};

/// Node, form, rows and columns of blocks, and where they are: a store, or containers row by row.
#[derive(FromPyObject)]
pub struct Given<'py>(
    usize,
    u8,
    (usize, usize),
    (usize, usize),
    Option<Bound<'py, Stored>>,
    Vec<PyReadonlyArray1<'py, u8>>,
);

impl Given<'_> {
    /// The bytes of its blocks.
    fn bytes(&self) -> Result<Vec<&[u8]>> {
        let contiguous = |_| MatrixError::Count { what: "contiguous bytes of a block", found: 0, expected: 1 };
        Ok(self.5.iter().map(|block| block.as_slice().map_err(contiguous)).collect::<std::result::Result<_, _>>()?)
    }

    fn part<'a>(&'a self, bytes: &'a [&'a [u8]]) -> Result<session::Part<'a>> {
        let held = match &self.4 {
            Some(stored) => Held::Stored(&stored.get().0),
            None => Held::Blocks(bytes),
        };
        let (node, form) = (self.0, Form::of_bits(self.1)?);
        Ok(session::Part { node, form, rows: self.2.0..self.2.1, cols: self.3.0..self.3.1, held })
    }
}

/// The bytes of all parts.
fn all_bytes<'a>(given: &'a [Given<'_>]) -> Result<Vec<Vec<&'a [u8]>>> {
    given.iter().map(Given::bytes).collect()
}

fn parts<'a>(given: &'a [Given<'_>], bytes: &'a [Vec<&'a [u8]>]) -> Result<Vec<session::Part<'a>>> {
    given.iter().zip(bytes).map(|(given, bytes)| given.part(bytes)).collect()
}

fn arrays(py: Python<'_>, blocks: Vec<Vec<u8>>) -> Vec<Bound<'_, PyArray1<u8>>> {
    blocks.into_iter().map(|block| PyArray1::from_vec(py, block)).collect()
}

/// The blocks of a row of parts times a column of parts.
#[pyfunction]
pub fn matmul_parts<'py>(
    py: Python<'py>,
    server: &Server,
    left: Vec<Given<'py>>,
    right: Vec<Given<'py>>,
) -> Result<Vec<Bound<'py, PyArray1<u8>>>> {
    let bytes = [all_bytes(&left)?, all_bytes(&right)?];
    let (left, right) = (parts(&left, &bytes[0])?, parts(&right, &bytes[1])?);
    let made = long(py, || Ok(server.0.matmul_parts(&left, &right)?))?;
    Ok(arrays(py, made))
}

/// The blocks of the sum of two parts.
#[pyfunction]
pub fn add_parts<'py>(
    py: Python<'py>,
    server: &Server,
    a: Given<'py>,
    b: Given<'py>,
) -> Result<Vec<Bound<'py, PyArray1<u8>>>> {
    let bytes = [a.bytes()?, b.bytes()?];
    let (a, b) = (a.part(&bytes[0])?, b.part(&bytes[1])?);
    let made = long(py, || Ok(server.0.add_parts(&a, &b)?))?;
    Ok(arrays(py, made))
}

/// The sums of a part's blocks over its rows, or its columns, of blocks.
#[pyfunction]
pub fn sum_part<'py>(
    py: Python<'py>,
    server: &Server,
    part: Given<'py>,
    rows: bool,
) -> Result<Vec<Bound<'py, PyArray1<u8>>>> {
    let bytes = part.bytes()?;
    let part = part.part(&bytes)?;
    let made = long(py, || Ok(server.0.sum_part(&part, rows)?))?;
    Ok(arrays(py, made))
}

/// The elements of a part, or their sums.
#[pyfunction]
pub fn decrypt_part<'py>(py: Python<'py>, client: &Client, part: Given<'py>) -> Result<Bound<'py, PyArray3<f64>>> {
    let bytes = part.bytes()?;
    let part = part.part(&bytes)?;
    let shown = long(py, || Ok(client.0.decrypt_part(&part)?))?;
    crate::array::array(py, vec![shown]).map_err(Refusal::Raised)
}

/// The value whose parts, all of them, these are.
#[pyfunction]
pub fn load_part<'py>(py: Python<'py>, plan: &Plan, part: Given<'py>) -> Result<Encrypted> {
    let bytes = part.bytes()?;
    let part = part.part(&bytes)?;
    long(py, || Ok(Encrypted(session::Encrypted::of_part(&plan.0, &part)?)))
}

/// Node, shape, rows and columns of blocks, and of elements in a block.
type Laid = (usize, (usize, usize), (usize, usize), (usize, usize));

/// How the plan's operands and its product lie in blocks.
#[pyfunction]
pub fn layouts(plan: &Plan) -> Result<Vec<Laid>> {
    let of = |operand| Layout::of(&plan.0, operand).map(|l| (l.node, l.shape, l.grid, l.block));
    let all = [Operand::Left, Operand::Right, Operand::Output];
    Ok(all.into_iter().map(of).collect::<std::result::Result<_, _>>()?)
}
