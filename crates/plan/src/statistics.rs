//! The program that finds means and covariances of a table's columns
//! ([`sudare_methods::statistics`]).

use super::Goal;
use super::goal::MAX_COVARIANCE_ERROR;
use super::program::{CkksEngine, NodeSize, ProgramFigures};
use serde::{Deserialize, Serialize};
use sudare_expr::{InputSpec, Matrix};
use sudare_he::HeError;
use sudare_he::ckks::{self, Ciphertext, Decrypted, Encoder, Evaluator, Expected, Params, Plaintext};
use sudare_methods::MatrixError;
use sudare_methods::claims::{check_params, check_scale};
use sudare_methods::product::KeyDemand;
use sudare_methods::statistics::ColumnStatistics;
use sudare_ring::threads;
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::work::Work;
use zeroize::Zeroizing;

/// Statistics of a table: they follow from its size and bounds, but for the parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// The parameters.
    pub params: ckks::ParamsLiteral,
}

impl TableSpec {
    /// The program of a goal.
    pub(super) fn new(goal: &Goal) -> Self {
        Self { params: ColumnStatistics::literal(goal.security, goal.release.is_some()) }
    }
}

/// Statistics under built parameters, and what they promise.
pub(super) struct TableEngine {
    params: Params,
    statistics: ColumnStatistics,
    table: InputSpec,
}

impl TableEngine {
    /// Works the parameters out again and refuses others.
    pub(super) fn new(goal: &Goal, spec: &TableSpec) -> Result<Self, MatrixError> {
        let Some(table) = goal.expression.as_moments() else {
            return Err(MatrixError::NoPlan {
                reason: format!("{} does not compute the statistics of a table; plan again", goal.expression),
            });
        };
        let expected = TableSpec::new(goal).params;
        check_params(&spec.params, &expected)?;
        check_scale(&spec.params, &expected)?;
        let params = spec.params.build()?;
        let statistics = ColumnStatistics::new(&params, table.rows, table.cols)?;
        let made = Self { params, statistics, table: table.clone() };
        let covariance = goal.promised_error(made.error());
        if covariance > MAX_COVARIANCE_ERROR {
            let remedy = if goal.release.is_some() { "; release fewer results or with fewer bits, or" } else { ";" };
            return Err(MatrixError::NoPlan {
                reason: format!(
                    "covariances would be wrong by up to {covariance:.1e} of their columns' bounds{remedy} take a table of fewer rows or columns"
                ),
            });
        }
        Ok(made)
    }

    /// Product of the bounds of the columns of a result element.
    fn unit(&self, (row, col): (usize, usize)) -> f64 {
        let bounds = &self.table.columns;
        if row == 0 { bounds[col] } else { bounds[row - 1] * bounds[col] }
    }
}

impl ProgramFigures for TableEngine {
    fn method(&self) -> &'static str {
        "moments"
    }

    fn literal(&self) -> &ParamsLiteral {
        self.params.literal()
    }

    fn keys(&self) -> KeyDemand {
        self.statistics.figures().keys.clone()
    }

    fn work(&self) -> Work {
        self.statistics.figures().work
    }

    fn peak_bytes(&self) -> Option<u64> {
        Some(self.statistics.figures().peak_bytes)
    }

    fn error(&self) -> f64 {
        self.statistics.figures().error
    }

    fn node_error(&self, _: usize) -> Option<f64> {
        None
    }

    fn element_error(&self, at: (usize, usize)) -> (f64, f64) {
        (if at.0 == 0 { self.statistics.errors().mean } else { self.statistics.errors().covariance }, self.unit(at))
    }

    fn twin(&self, (row, col): (usize, usize)) -> (usize, usize) {
        if row > col + 1 { (col + 1, row - 1) } else { (row, col) }
    }

    fn size(&self, node: usize) -> Option<NodeSize> {
        let (count, level) = match node {
            0 => (self.statistics.table_ciphertexts(), self.params.max_level()),
            1 => (self.statistics.result_ciphertexts(), self.statistics.expected().level),
            _ => return None,
        };
        Some(NodeSize { count, parts: 2, level })
    }

    fn fresh_public(&self) -> bool {
        false
    }
}

impl CkksEngine for TableEngine {
    fn params(&self) -> &Params {
        &self.params
    }

    fn figures(&self) -> &dyn ProgramFigures {
        self
    }

    fn prepare(&self, _: &Goal) -> Result<(), MatrixError> {
        Ok(())
    }

    fn expected(&self) -> Expected {
        self.statistics.expected()
    }

    fn encode(&self, _: &Goal, _: usize, matrices: &[Matrix]) -> Result<Vec<Plaintext>, MatrixError> {
        let [table] = matrices else {
            return Err(MatrixError::Count { what: "tables", found: matrices.len(), expected: 1 });
        };
        Ok(self.statistics.encode(|i, j| table.get(i, j) / self.table.columns[j])?)
    }

    fn decode(&self, goal: &Goal, node: usize, values: &[Decrypted]) -> Result<Vec<Matrix>, MatrixError> {
        if node != goal.expression.output() {
            return Err(MatrixError::NotPlanned {
                operation: "decryption of the table",
                planned: "only its means and covariances are decrypted; keep the table that you encrypt".into(),
            });
        }
        let encoder = Encoder::new(&self.params);
        let slots = threads::map(values.len(), |i| encoder.decode(&values[i]));
        let slots = Zeroizing::new(slots.into_iter().collect::<Result<Vec<_>, HeError>>()?);
        let found = self.statistics.decode(&slots)?;
        let columns = self.table.cols;
        let value = |row: usize, col: usize| match row {
            0 => found.mean[col],
            _ => found.covariance[(row - 1) * columns + col],
        };
        let all = Matrix::from_fn(1 + columns, columns, |row, col| value(row, col) * self.unit((row, col)))?;
        Ok(vec![all])
    }

    fn evaluate(
        &self,
        _: &Goal,
        evaluator: &Evaluator,
        node: usize,
        operands: &[&[Ciphertext]],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        match operands {
            &[table] => Ok(self.statistics.compute(evaluator, table.into())?),
            _ => Err(MatrixError::NoPlan { reason: format!("node {node} does not compute the statistics of a table") }),
        }
    }
}
