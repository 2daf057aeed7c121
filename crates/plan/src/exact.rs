//! The program that computes with integers.

use super::Goal;
use super::program::{NodeSize, ProgramFigures};
use sudare_exact::Packing;
use sudare_expr::Expr;
use sudare_methods::exact::{Blocks, ExactPlan, Request, Size};
use sudare_methods::{KeyDemand, MatrixError};
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::work::Work;

impl Goal {
    /// What an expression of integers asks for.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for what is not computed exactly, with what to write instead, and for results of more
    /// than 117 bits.
    pub(crate) fn exact(&self) -> Result<Request, MatrixError> {
        if self.error != 0.0 || self.release.is_some() {
            let reason = "an exact result has no error and no release; leave them out".into();
            return Err(MatrixError::NoPlan { reason });
        }
        Request::new(self.expression.clone(), self.batch, self.security)
    }

    /// The computation that an expression of doubles would be if its elements were integers.
    pub(crate) fn of_integers(&self) -> Option<Self> {
        let expr = &self.expression;
        let mut inputs = expr.inputs().to_vec();
        for input in &mut inputs {
            // Between −1 and 1 there is hardly an integer.
            if !(2.0..9e18).contains(&input.max_abs) {
                return None;
            }
            input.max_abs = input.max_abs.floor();
            input.integers = Some(input.max_abs as u128);
        }
        let expression = Expr::new(inputs, expr.nodes().to_vec(), expr.output()).ok()?;
        Some(Self { expression, error: 0.0, release: None, sharing: None, ..self.clone() })
    }
}

impl ProgramFigures for ExactPlan {
    fn method(&self) -> &'static str {
        "exact"
    }

    fn scheme(&self) -> &'static str {
        "bgv"
    }

    fn literal(&self) -> &ParamsLiteral {
        &self.spec().params
    }

    fn keys(&self) -> KeyDemand {
        ExactPlan::keys(self).clone()
    }

    fn work(&self) -> Work {
        ExactPlan::work(self)
    }

    fn peak_bytes(&self) -> Option<u64> {
        Some(ExactPlan::peak_bytes(self))
    }

    fn error(&self) -> f64 {
        0.0
    }

    fn node_error(&self, node: usize) -> Option<f64> {
        (node == self.request().expr().output()).then_some(0.0)
    }

    fn size(&self, node: usize) -> Option<NodeSize> {
        let Size { count, parts, level } = ExactPlan::size(self, node);
        Some(NodeSize { count, parts, level })
    }

    fn details(&self) -> Vec<(&'static str, String)> {
        let Blocks { a, b, c } = self.spec().blocks;
        let moduli: Vec<String> = self.spec().moduli.iter().map(u64::to_string).collect();
        let packing = match self.request().packing() {
            Packing::Coefficients => "coefficients",
            Packing::Slots => "slots",
        };
        vec![("moduli", moduli.join(", ")), ("blocks", format!("{a}×{b} · {b}×{c} in {packing}"))]
    }
}
