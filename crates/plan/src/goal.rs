//! What a plan is asked for.

use serde::{Deserialize, Serialize};
use sudare_expr::{Expr, InputSpec};
use sudare_he::circuits::polynomial::fit;
use sudare_he::ckks::MAX_RELEASED_VALUES;
use sudare_methods::MatrixError;
use sudare_methods::product::MAX_BATCH;
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::Security;

/// Largest error of a covariance that makes sense, in units of its columns' bounds.
pub(super) const MAX_COVARIANCE_ERROR: f64 = 0.1;

/// What is asked for: an expression, how exact, how secure.
///
/// ```
/// use sudare_expr::{Expr, InputSpec};
/// use sudare_plan::{CostModel, Goal, Planner};
/// use sudare_rlwe::release::ReleasePolicy;
///
/// # fn main() -> Result<(), sudare_methods::MatrixError> {
/// let product = Expr::product(InputSpec::new("A", (8, 8), 1.0), InputSpec::new("B", (8, 2), 1.0))?;
/// // Ten results that others see, each within 1e-4 with the noise that hides their errors.
/// let release = Some(ReleasePolicy::new(10, 30)?);
/// let goal = Goal { release, ..Goal::new(product, 1e-4) };
/// let plan = Planner::new(CostModel::default()).plan(&goal)?;
/// assert!(plan.summary().predicted_error <= 1e-4);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// What is computed.
    pub expression: Expr,
    /// Independent sets of inputs that one run takes, 1 to 2^20.
    pub batch: usize,
    /// Largest absolute error of a result element that is wanted: 0 for integers, in units of the columns' bounds
    /// for statistics.
    pub error: f64,
    /// Security.
    pub security: Security,
    /// Whether others will see results, and how many of them: then `error` is what released results
    /// are within.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleasePolicy>,
    /// Who holds the key together, if it is several parties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
    /// For integers that are wanted modulo a number, however large they are: that number. Only sets that refresh have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modulus: Option<u64>,
}

/// The parties that hold a key together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sharing {
    /// How many there are.
    pub parties: u32,
    /// How many of them decrypt, at most `parties`.
    pub threshold: u32,
}

impl Goal {
    /// One set of inputs at 128-bit security, with results for the owner's eyes. `error` is [`Goal::error`].
    pub fn new(expression: Expr, error: f64) -> Self {
        let (batch, security) = (1, Security::Bits128);
        Self { expression, batch, error, security, release: None, sharing: None, modulus: None }
    }

    /// Means and covariances of a table of `rows` rows, called `table`, whose columns have these bounds.
    ///
    /// # Errors
    /// [`MatrixError::Expr`] for a table without rows or columns, or a bound that is not above zero.
    pub fn moments(rows: usize, max_abs: Vec<f64>) -> Result<Self, MatrixError> {
        let expression = Expr::moments(InputSpec::table("table", rows, max_abs))?;
        Ok(Self::new(expression, MAX_COVARIANCE_ERROR))
    }

    /// Values of a result, all members of a batch together; covariances that are there twice count once.
    pub(crate) fn values(&self) -> usize {
        let (rows, cols) = self.expression.info(self.expression.output()).shape;
        match self.expression.as_moments() {
            Some(_) => cols + cols * (cols + 1) / 2,
            None => rows.saturating_mul(cols).saturating_mul(self.batch),
        }
    }

    /// How exactly results have to be computed: to within the wanted error, or so much better that
    /// they are within it once the noise of a release hides the difference.
    pub(crate) fn private_error(&self) -> f64 {
        self.own_release().map_or(self.error, |policy| policy.private_error(self.values(), self.error))
    }

    /// The release of a key that one owner holds, who hides errors once he has decrypted. The noise of several parties is
    /// in what they decrypt, and so in a program's own figures ([`super::shared`]).
    fn own_release(&self) -> Option<ReleasePolicy> {
        self.release.filter(|_| self.sharing.is_none())
    }

    /// What is promised of results that are computed to within `error`.
    pub(crate) fn promised_error(&self, error: f64) -> f64 {
        self.own_release().map_or(error, |policy| policy.released_error(self.values(), error))
    }

    /// Nodes of the inputs and of the results.
    pub fn ends(&self) -> impl Iterator<Item = usize> {
        let expr = &self.expression;
        (0..expr.inputs().len()).map(|i| expr.node_of_input(i)).chain(expr.results())
    }

    /// Refuses what no plan is made for.
    pub(super) fn check(&self) -> Result<(), MatrixError> {
        let refuse = |reason: String| Err(MatrixError::NoPlan { reason });
        self.check_sharing()?;
        if !(1..=MAX_BATCH).contains(&self.batch) {
            return refuse(format!("a batch has 1 to {MAX_BATCH} members, not {}", self.batch));
        }
        if self.expression.is_exact() {
            return self.check_exact();
        }
        if let Some(modulus) = self.modulus {
            return refuse(format!(
                "only integers are computed modulo {modulus}; describe the inputs with dtype=int, or leave the \
                 modulus out"
            ));
        }
        if !(self.error.is_finite() && self.error > 0.0) {
            return refuse(format!("the wanted error is {}, and it has to be a finite number above zero", self.error));
        }
        for of in self.expression.approximations() {
            let (bound, reach) = (self.expression.info(of.variable).max_abs, of.low.abs().max(of.high.abs()));
            if !fit::reaches(reach, bound) {
                return refuse(fit::outside(&self.expression.text(of.variable), bound, reach));
            }
        }
        if self.release.is_some() && !self.expression.has_one_result() {
            return refuse("a release shows one result; make a plan for each".into());
        }
        if self.expression.as_moments().is_some() && self.batch != 1 {
            return refuse("statistics are computed of one table at a time; leave the batch out".into());
        }
        if self.release.is_some() && self.values() > MAX_RELEASED_VALUES {
            return refuse(format!(
                "a release shows at most {MAX_RELEASED_VALUES} values, and the result has {}; release it in parts",
                self.values()
            ));
        }
        Ok(())
    }
}
