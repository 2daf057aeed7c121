//! Plans.

use crate::array::array;
use crate::client::Release;
use crate::error::{Refusal, Result};
use crate::lowlevel::RlweParams;
use crate::operation::operation_of;
use crate::work::{Workers, long};
use numpy::PyArray3;
use pyo3::prelude::*;
use std::path::PathBuf;
use sudare_expr::Expr;
use sudare_methods::MatrixError;
use sudare_plan::{self as plan, Goal, Planner, Sharing};
use sudare_rlwe::security::Security;
use sudare_session::machine;

/// Where `sudare calibrate` keeps measurements of this machine.
pub fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    Some(set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join("sudare"))
}

/// A number of bits as a level of security.
pub fn security(bits: u32) -> Result<Security> {
    Security::from_bits(bits).ok_or_else(|| {
        Refusal::from(MatrixError::NoPlan { reason: format!("security is 128, 192 or 256 bits, not {bits}") })
    })
}

/// An operand whose place in a plan is asked for.
#[derive(FromPyObject)]
enum Sought {
    Node(usize),
    Plain((usize, usize), String, String),
}

impl Sought {
    fn of_plan(&self) -> plan::Sought<'_> {
        match self {
            Self::Node(node) => plan::Sought::Node(*node),
            Self::Plain(shape, name, contents) => plan::Sought::Plain { shape: *shape, name, contents },
        }
    }
}

/// A checked plan.
#[pyclass(frozen, eq, module = "sudare._core")]
#[derive(PartialEq)]
pub struct Plan(pub plan::Plan);

#[pymethods]
impl Plan {
    /// Plans an expression, given as JSON.
    #[staticmethod]
    #[pyo3(signature = (expression, *, error, security, batch, threads, memory, method, compact, release, bootstrap, sharing, modulus))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    fn make(
        py: Python<'_>,
        expression: &str,
        error: f64,
        security: u32,
        batch: usize,
        threads: Workers,
        memory: Option<u64>,
        method: Option<String>,
        compact: bool,
        release: Option<&Release>,
        bootstrap: Vec<String>,
        sharing: Option<(u32, u32)>,
        modulus: Option<u64>,
    ) -> Result<Self> {
        // What is planned without security is for trying in one process: its file is refused.
        let security = if security == 0 { Security::Insecure } else { self::security(security)? };
        let release = release.map(|r| r.0);
        let sharing = sharing.map(|(parties, threshold)| Sharing { parties, threshold });
        long(py, || {
            let expression = Expr::from_json(expression)?;
            let (integers, reals) =
                if expression.is_exact() { (bootstrap, Vec::new()) } else { (Vec::new(), bootstrap) };
            let bootstrap = reals.iter().map(|set| set.parse()).collect::<std::result::Result<Vec<_>, _>>()?;
            let refresh = integers.iter().map(|set| set.parse()).collect::<std::result::Result<Vec<_>, _>>()?;
            let goal = Goal { expression, batch, error, security, release, sharing, modulus };
            let planner = machine::planner(cache_folder().as_deref());
            let memory = memory.unwrap_or(planner.memory);
            Ok(Self(
                Planner { threads: threads.0, memory, method, compact, bootstrap, refresh, ..planner }.plan(&goal)?,
            ))
        })
    }

    /// Plans means and covariances of a table whose columns have these bounds.
    #[staticmethod]
    fn moments(
        py: Python<'_>,
        rows: usize,
        max_abs: Vec<f64>,
        security: u32,
        release: Option<&Release>,
    ) -> Result<Self> {
        let (security, release) = (self::security(security)?, release.map(|r| r.0));
        long(py, || {
            let goal = Goal { security, release, ..Goal::moments(rows, max_abs)? };
            Ok(Self(machine::planner(cache_folder().as_deref()).plan(&goal)?))
        })
    }

    /// Names of the plain inputs that operands of an operation, given as JSON, are in the plan: an operand is the node of a
    /// value, or the shape of a plain matrix with its name and that of its contents. A value has none.
    fn place(&self, operation: &str, operands: Vec<Sought>) -> Result<Vec<Option<String>>> {
        let operation = operation_of(operation)?;
        let place = self.0.place(&operation, &operands.iter().map(Sought::of_plan).collect::<Vec<_>>())?;
        let expr = self.0.expression();
        let name = |(node, operand): (&usize, &Sought)| match operand {
            Sought::Node(_) => None,
            Sought::Plain(..) => expr.input_at(*node).map(|input| input.name.clone()),
        };
        Ok(place.operands.iter().zip(&operands).map(name).collect())
    }

    /// Bounds on the errors of the result's elements, for the owner's eyes or as they are released.
    fn errors<'py>(&self, py: Python<'py>, released: bool) -> PyResult<Bound<'py, PyArray3<f64>>> {
        array(py, vec![long(py, || Ok(self.0.errors(released)?))?])
    }

    /// The parameters of its keys and ciphertexts.
    #[getter]
    fn params(&self) -> RlweParams {
        RlweParams(self.0.params().clone())
    }

    /// Whether it computes with integers.
    #[getter]
    fn exact(&self) -> bool {
        self.0.is_exact()
    }

    /// Whether devices compute it.
    #[getter]
    fn on_devices(&self) -> bool {
        self.0.program().require_backends().is_ok()
    }

    /// Whether it is computed without any key.
    #[getter]
    fn keyless(&self) -> bool {
        self.0.is_keyless()
    }

    /// The largest integer that a result can have, if it computes with integers.
    #[getter]
    fn largest_integer(&self) -> Option<i128> {
        self.0.largest_integer()
    }

    /// Its operations: the value in words, operands, level, error and share of the time, as far as they are known.
    #[expect(clippy::type_complexity, reason = "a record that Python takes apart")]
    fn operations(&self) -> Vec<(String, Vec<usize>, Option<usize>, Option<f64>, Option<f64>)> {
        let lines = self.0.operations().into_iter();
        lines.map(|line| (line.text, line.operands, line.level, line.error, line.share)).collect()
    }

    /// Reads a plan.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> Result<Self> {
        long(py, || Ok(Self(plan::Plan::from_json(text)?)))
    }

    /// The plan as JSON.
    fn to_json(&self) -> Result<String> {
        Ok(self.0.to_json()?)
    }

    /// The plan's name.
    fn hash_hex(&self) -> String {
        self.0.hash().to_string()
    }

    /// The plan as a table.
    fn __str__(&self) -> String {
        self.0.to_string()
    }
}
