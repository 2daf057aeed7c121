//! The program that computes with integers.

use super::Goal;
use super::program::{NodeSize, ProgramFigures, Refreshes};
use super::refresh::RefreshWork;
use sudare_exact::Packing;
use sudare_exact::refresh::RefreshSet;
use sudare_expr::Expr;
use sudare_methods::exact::{ArraysPlan, ArraysSpec, Blocks, ExactPlan, IntegerEngine, Request, Size};
use sudare_methods::{KeyDemand, MatrixError};
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::work::Work;

impl Goal {
    /// Refuses what no exact result has.
    pub(super) fn check_exact(&self) -> Result<(), MatrixError> {
        if self.error != 0.0 || self.release.is_some() != self.sharing.is_some() {
            let reason =
                "an exact result takes no error, and a release where several parties hold the key and nowhere else; \
                 leave them out"
                    .into();
            return Err(MatrixError::NoPlan { reason });
        }
        Ok(())
    }

    /// What an expression of integers asks for that multiplies once, without keys.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for what is not computed exactly, with what to write instead, and for results of more
    /// than 117 bits.
    pub(crate) fn exact(&self) -> Result<Request, MatrixError> {
        if let Some(modulus) = self.modulus {
            let reason = format!(
                "only sets that refresh give results modulo {modulus}; say bootstrap=\"auto\", or leave the modulus out"
            );
            return Err(MatrixError::NoPlan { reason });
        }
        let request = Request::new(self.expression.clone(), self.batch, self.security)?;
        match self.holders() {
            Some(holders) => request.held_by(holders),
            None => Ok(request),
        }
    }

    /// Refuses a set that refreshes where several parties hold the key: no such set has a secret of theirs.
    fn check_arrays(&self) -> Result<(), MatrixError> {
        match self.sharing {
            None => Ok(()),
            Some(_) => {
                let reason = "a key that several parties hold cannot refresh; leave bootstrap out".into();
                Err(MatrixError::NoPlan { reason })
            }
        }
    }

    /// The plan of an expression of integers by a set that refreshes.
    ///
    /// # Errors
    /// As [`ArraysPlan::new`].
    pub(crate) fn arrays(&self, set: RefreshSet) -> Result<ArraysPlan, MatrixError> {
        self.check_arrays()?;
        ArraysPlan::new(&self.expression, self.batch, (set, self.modulus, self.security))
    }

    /// The same for what a program says of it.
    ///
    /// # Errors
    /// As [`ArraysPlan::checked`].
    pub(crate) fn arrays_of(&self, spec: &ArraysSpec) -> Result<ArraysPlan, MatrixError> {
        self.check_arrays()?;
        ArraysPlan::checked(&self.expression, self.batch, (self.modulus, self.security), spec)
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

/// Work of the refreshes of a ciphertext of integers, which are done one by one.
fn refresh_work(plan: &ArraysPlan) -> RefreshWork {
    RefreshWork::single(plan.refresh_work().fused())
}

impl ProgramFigures for ArraysPlan {
    fn method(&self) -> &'static str {
        "arrays"
    }

    fn scheme(&self) -> &'static str {
        "bgv"
    }

    fn literal(&self) -> &ParamsLiteral {
        &self.spec().params
    }

    fn keys(&self) -> KeyDemand {
        ArraysPlan::keys(self).clone()
    }

    fn work(&self) -> Work {
        let refreshes = self.refreshes().into_iter().flat_map(|r| r.places.into_iter().map(move |(_, n)| r.work.of(n)));
        refreshes.fold(ArraysPlan::work(self), |all, work| all + work)
    }

    fn refreshes(&self) -> Option<Refreshes> {
        let set = self.refresh()?;
        let places = self.spec().after.iter().map(|node| (*node, ArraysPlan::size(self, *node).count)).collect();
        Some(Refreshes {
            set: self.spec().set.to_string(),
            key_bytes: set.key_bytes(),
            prepared_bytes: set.diagonal_bytes(),
            places,
            work: refresh_work(self),
        })
    }

    fn table_bytes(&self) -> u64 {
        self.refreshes().map_or(0, |r| r.prepared_bytes)
    }

    fn peak_bytes(&self) -> Option<u64> {
        Some(ArraysPlan::peak_bytes(self))
    }

    fn error(&self) -> f64 {
        0.0
    }

    fn node_error(&self, _node: usize) -> Option<f64> {
        Some(0.0)
    }

    fn size(&self, node: usize) -> Option<NodeSize> {
        let Size { count, parts, level } = ArraysPlan::size(self, node);
        Some(NodeSize { count, parts, level })
    }

    fn details(&self) -> Vec<(&'static str, String)> {
        let (set, t) = (self.arrays().set(), self.arrays().params().t());
        let products = set.products()[1];
        vec![
            ("modulus", format!("{t}: results up to {} are the integers themselves", t / 2)),
            ("slots", format!("{} elements a ciphertext, {products} products between refreshes", set.params().slots())),
        ]
    }
}
