//! Statistics of a table, decrypted.

use std::fmt;
use sudare_expr::Matrix;
use sudare_methods::MatrixError;
use sudare_plan::Plan;

/// Means and covariances in the units of the columns, each with a bound on its error.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// Mean of each column.
    pub mean: Vec<f64>,
    /// Covariances, n − 1 degrees of freedom.
    pub covariance: Matrix,
    /// Bound on the error of each mean.
    pub mean_error: Vec<f64>,
    /// Bound on the error of each covariance.
    pub covariance_error: Matrix,
}

impl Moments {
    /// The result of a plan of statistics, with the errors of a private decryption or of a release.
    pub(super) fn new(plan: &Plan, found: &Matrix, released: bool) -> Result<Self, MatrixError> {
        if plan.expression().as_moments().is_none() {
            return Err(MatrixError::NotPlanned {
                operation: "reading a result as means and covariances",
                planned: plan.expression().describe(),
            });
        }
        let (errors, columns) = (plan.errors(released)?, found.cols());
        let first = |m: &Matrix| m.data()[..columns].to_vec();
        let below = |m: &Matrix| Matrix::new(columns, columns, m.data()[columns..].to_vec());
        Ok(Self {
            mean: first(found),
            covariance: below(found)?,
            mean_error: first(&errors),
            covariance_error: below(&errors)?,
        })
    }

    /// Pearson correlations, row-major. Not a number where a variance is not above its own error: a
    /// constant column, or one that its bound is far too large for.
    pub fn correlation(&self) -> Vec<f64> {
        let variance = |j: usize| match self.covariance.get(j, j) {
            v if v > self.covariance_error.get(j, j) => v,
            _ => f64::NAN,
        };
        let columns = self.mean.len();
        let deviations: Vec<f64> = (0..columns).map(|j| variance(j).sqrt()).collect();
        let one = |at: usize| {
            let (j, k) = (at / columns, at % columns);
            (self.covariance.get(j, k) / deviations[j] / deviations[k]).clamp(-1.0, 1.0)
        };
        (0..columns * columns).map(one).collect()
    }
}

impl fmt::Display for Moments {
    /// Each mean and variance beside its error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>6} {:>14} {:>10} {:>14} {:>10}", "column", "mean", "±", "variance", "±")?;
        for (j, (mean, error)) in self.mean.iter().zip(&self.mean_error).enumerate() {
            let (v, e) = (self.covariance.get(j, j), self.covariance_error.get(j, j));
            writeln!(f, "{j:>6} {mean:>14.6e} {error:>10.1e} {v:>14.6e} {e:>10.1e}")?;
        }
        Ok(())
    }
}
