//! The program that is one product of inputs, and what is done to its factors and its result.
//!
//! Each input is encrypted as its role asks: after what is done to it alone (a transpose, slices, numbers), and in several
//! forms where it has several roles. What ends the expression (negation, numbers as factors and summands, a transpose) is
//! public and can be inverted by anybody, so that the server has nothing to do for it: it is done to the decrypted product.
//! An input that is added is encrypted, or encoded if the server sees it, as a result lies in ciphertexts, and inverted by
//! what came before it: sums take no key.

use super::program::{CkksEngine, NodeSize, ProgramFigures};
use super::{Goal, too_small};
use sudare_expr::Operand;
use sudare_expr::product::{Addend, EndedProduct, Prepared};
use sudare_expr::{Expr, Matrix, Operation};
use sudare_he::HeError;
use sudare_he::ckks::{Ciphertext, CiphertextOf, Decrypted, EncodeAt, Evaluator, Expected, Params, Plaintext};
use sudare_methods::MatrixError;
use sudare_methods::portable;
use sudare_methods::product::{Figures, KeyDemand, Product, ProductPlan};
use sudare_methods::products::ProductSpec;
use sudare_rlwe::Backend;
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::work::Work;

/// What numbers that are added or multiplied in doubles may pass their bounds by.
const ROUNDED: f64 = 1.0 + 1e-9;

/// The product that an expression is, as its method is asked for it.
pub(super) struct Asked {
    pub product: EndedProduct,
    /// Shapes of its factors.
    pub shapes: [(usize, usize); 2],
    /// Bounds of its factors; the right one's is raised so that their product has what is added in it.
    pub max_abs: [f64; 2],
}

impl Asked {
    /// The product of an expression, if it is one.
    pub fn new(expr: &Expr) -> Option<Self> {
        let product = expr.ended_product()?;
        let shapes = [0, 1].map(|side| expr.info(product.factors[side].node).shape);
        let [left, right] = [0, 1].map(|side| bound(expr, &product.factors[side]));
        let size = left * right * shapes[0].1 as f64;
        let added: f64 = product.addends.iter().map(|a| bound(expr, &a.of) / growth(expr, &product, a.end)).sum();
        let max_abs = [left, right * (1.0 + added / size)];
        max_abs[1].is_finite().then_some(Self { product, shapes, max_abs })
    }
}

/// Bound on the elements of a prepared input.
fn bound(expr: &Expr, of: &Prepared) -> f64 {
    let rounds = |at: &usize| expr.nodes()[*at].operation.rounds();
    expr.info(of.node).max_abs * if of.steps.iter().any(rounds) { ROUNDED } else { 1.0 }
}

/// How far errors grow from the product to the result.
pub(super) fn growth_of(expr: &Expr, product: &EndedProduct) -> f64 {
    growth(expr, product, usize::MAX)
}

/// How far errors grow from the product to the node before `end`.
fn growth(expr: &Expr, product: &EndedProduct, end: usize) -> f64 {
    product.ends.iter().take_while(|at| **at != end).map(|at| expr.nodes()[*at].operation.factor().abs()).product()
}

/// What a product takes and promises, and where its matrices are in an expression.
pub(super) struct ProductFigures {
    plan: Box<dyn ProductPlan>,
    figures: Figures,
    /// What it is a product of, and what is done to it.
    product: EndedProduct,
    /// Roles of inputs: the factors', then the addends'.
    roles: Vec<Role>,
    /// Error of the product and of each node after it.
    errors: Vec<(usize, f64)>,
}

/// An input in one of its roles.
struct Role {
    /// The input's node.
    input: usize,
    of: Prepared,
    operand: Operand,
    /// Bound on its elements.
    max_abs: f64,
}

impl ProductFigures {
    pub(super) fn new(goal: &Goal, spec: &ProductSpec) -> Result<Self, MatrixError> {
        let expr = &goal.expression;
        let Some(Asked { product, shapes: [l, r], max_abs }) = Asked::new(expr) else {
            return Err(MatrixError::NoPlan { reason: format!("{expr} is not one product of inputs; plan again") });
        };
        let s = spec.shape;
        if (l.0, l.1, r.0, r.1, goal.batch) != (s.m, s.k, s.k, s.n, s.batch) {
            return Err(MatrixError::NoPlan {
                reason: format!("the program's shapes are not those of {expr}; plan again"),
            });
        }
        if !product.addends.is_empty() && !spec.method.adds() {
            let reason = format!("method {} adds nothing to its products; plan again", spec.plan()?.name());
            return Err(MatrixError::NoPlan { reason });
        }
        let plan = spec.plan()?;
        let role = |(operand, of): (Operand, &Prepared)| Role {
            input: expr.node_of_input(of.input),
            max_abs: bound(expr, of),
            of: of.clone(),
            operand,
        };
        let factors = [Operand::Left, Operand::Right].into_iter().zip(&product.factors);
        let addends = product.addends.iter().map(|a| (Operand::Output, &a.of));
        let roles: Vec<Role> = factors.chain(addends).map(role).collect();
        let figures = plan.figures(max_abs).map_err(|e| match e {
            MatrixError::He(HeError::TooLarge { .. }) => too_small(plan.literal()),
            e => e,
        })?;
        let mut errors = vec![(product.product, figures.error)];
        for at in &product.ends {
            let (before, rounded) = (errors[errors.len() - 1].1, expr.info(*at).max_abs * f64::EPSILON);
            let added = match product.addends.iter().find(|a| a.end == *at) {
                Some(a) => added_error(spec, &figures, growth(expr, &product, *at), bound(expr, &a.of))?,
                None => 0.0,
            };
            errors.push((*at, expr.nodes()[*at].operation.factor().abs() * before + added + rounded));
        }
        Ok(Self { plan, figures, product, roles, errors })
    }

    /// The input whose ciphertexts a node's value is: it, and what its owner does to it.
    fn input_of(&self, node: usize) -> Option<usize> {
        self.roles.iter().find(|r| r.input == node || r.of.steps.contains(&node)).map(|r| r.input)
    }

    /// The roles of an input, in the order of their ciphertexts.
    fn roles_of(&self, input: usize) -> impl Iterator<Item = (usize, &Role)> {
        self.roles.iter().enumerate().filter(move |(_, role)| role.input == input)
    }

    /// Of an input's ciphertexts those that are in a role.
    fn part<'c, C>(&self, role: usize, cts: &'c [C]) -> Result<&'c [C], MatrixError> {
        let count = |role: &Role| self.plan.ciphertexts(role.operand);
        let input = self.roles[role].input;
        let before: usize = self.roles_of(input).take_while(|(at, _)| *at != role).map(|(_, r)| count(r)).sum();
        let expected: usize = self.roles_of(input).map(|(_, r)| count(r)).sum();
        let wrong = || MatrixError::Count { what: "ciphertexts of an input", found: cts.len(), expected };
        cts.get(before..before + count(&self.roles[role])).ok_or_else(wrong)
    }

    /// A node's value from its operands', wherever they are.
    pub fn value<B: Backend>(
        &self,
        goal: &Goal,
        evaluator: &Evaluator<B>,
        node: usize,
        operands: &[&[CiphertextOf<B>]],
        multiply: impl FnOnce(&[CiphertextOf<B>], &[CiphertextOf<B>]) -> Result<Vec<CiphertextOf<B>>, MatrixError>,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        let addend = self.product.addends.iter().position(|a| a.end == node);
        match (addend, operands) {
            (None, [left, right]) if node == self.product.product => {
                multiply(self.part(0, left)?, self.part(1, right)?)
            }
            (Some(addend), [a, b]) => {
                let left = goal.expression.nodes()[node].operands[0];
                let (of, added) = if self.product.addends[addend].of.node == left { (b, a) } else { (a, b) };
                let added = self.part(2 + addend, added)?;
                Ok(of.iter().zip(added).map(|(x, y)| evaluator.add(x, y)).collect::<Result<_, _>>()?)
            }
            // Inputs are encrypted as their role asks, and ends are done to what is decrypted.
            (_, [of]) => Ok(of.to_vec()),
            _ => Err(MatrixError::NoPlan { reason: format!("node {node} is not the product") }),
        }
    }
    /// The operations from the product to a node.
    fn ends(&self, node: usize) -> Option<&[usize]> {
        if node == self.product.product {
            return Some(&[]);
        }
        let at = self.product.ends.iter().position(|end| *end == node)?;
        Some(&self.product.ends[..=at])
    }

    /// What has to be added to the product, so that an addend is added to what comes out at its node.
    fn inverted(&self, expr: &Expr, addend: usize, mut m: Matrix) -> Result<Matrix, MatrixError> {
        let Addend { end, subtracts, .. } = self.product.addends[addend];
        let times = |m: Matrix, by: f64| m.map(|x| Some(x / by));
        m = times(m, if subtracts { -1.0 } else { 1.0 })?;
        let before: Vec<usize> = self.product.ends.iter().copied().take_while(|at| *at != end).collect();
        for at in before.into_iter().rev() {
            let operation = &expr.nodes()[at].operation;
            m = times(m, if self.is_minuend(at) { -1.0 } else { operation.factor() })?;
            if *operation == Operation::Transpose {
                m = m.transpose();
            }
        }
        Ok(m)
    }

    /// Whether the product is subtracted at a node.
    fn is_minuend(&self, node: usize) -> bool {
        self.product.addends.iter().any(|a| a.end == node && a.minuend)
    }

    /// One of a result's last operations, on the result: what was added is in it.
    fn ended(&self, operation: &Operation, at: usize, m: Matrix) -> Result<Matrix, MatrixError> {
        Ok(match self.product.addends.iter().find(|a| a.end == at) {
            Some(Addend { minuend: true, .. }) => Operation::Neg.of_plain(&[&m])?,
            Some(_) => m,
            None => operation.of_plain(&[&m])?,
        })
    }
}

/// What an addend adds to the error of a result: its own encryption at the result's level and scale.
fn added_error(spec: &ProductSpec, result: &Figures, growth: f64, max_abs: f64) -> Result<f64, MatrixError> {
    let (size, terms) = (max_abs / growth, spec.shape.k);
    let at = EncodeAt { level: result.level, scale: result.scale, max_abs: size };
    // Where terms of a result are summed after decryption, those of its errors are as well.
    Ok(growth * (portable::encryption_error(&spec.params, at, terms)? + size * terms as f64 * f64::EPSILON))
}

impl ProgramFigures for ProductFigures {
    fn method(&self) -> &'static str {
        self.plan.name()
    }

    fn literal(&self) -> &ParamsLiteral {
        self.plan.literal()
    }

    fn keys(&self) -> KeyDemand {
        self.figures.keys.clone()
    }

    fn work(&self) -> Work {
        self.figures.work
    }

    fn table_bytes(&self) -> u64 {
        self.figures.table_bytes
    }

    /// What is added is there as well.
    fn peak_bytes(&self) -> Option<u64> {
        let Figures { ciphertexts, level, peak_bytes, .. } = self.figures;
        let added = 2 * (level as u64 + 1) * 8 * (ciphertexts * self.product.addends.len()) as u64;
        Some(peak_bytes + (added << self.plan.literal().log_n))
    }

    fn error(&self) -> f64 {
        self.errors.last().map_or(f64::NAN, |(_, error)| *error)
    }

    fn node_error(&self, node: usize) -> Option<f64> {
        self.errors.iter().find(|(at, _)| *at == node).map(|(_, error)| *error)
    }

    fn size(&self, node: usize) -> Option<NodeSize> {
        let (plan, figures) = (&self.plan, &self.figures);
        let size = |operand: Operand| NodeSize {
            count: plan.ciphertexts(operand),
            parts: 2,
            level: if operand == Operand::Output { figures.level } else { plan.literal().q_bits.len() - 1 },
        };
        let both = |a: NodeSize, b: NodeSize| NodeSize {
            count: a.count + b.count,
            parts: a.parts.max(b.parts),
            level: a.level.max(b.level),
        };
        match self.ends(node) {
            Some(_) => Some(NodeSize { parts: figures.parts, ..size(Operand::Output) }),
            // What is named as a transpose is its input's ciphertexts. What is added is at the level of a result.
            None => self.roles_of(self.input_of(node)?).map(|(_, role)| size(role.operand)).reduce(both),
        }
    }

    fn details(&self) -> Vec<(&'static str, String)> {
        let mut out = Vec::new();
        let most = self.roles.iter().map(|r| self.roles_of(r.input).count()).max().unwrap_or(0);
        if most > 1 {
            let times = if most == 2 { "twice".to_owned() } else { format!("{most} times") };
            out.push(("forms", format!("an input is encrypted {times}, once in each of its roles")));
        }
        if self.roles.iter().any(|r| !r.of.steps.is_empty()) {
            out.push(("inputs", "what is done to an input alone is done before it is encrypted".to_owned()));
        }
        if self.product.ends.len() > self.product.addends.len() {
            out.push(("ends", "numbers and transposes after the product are done to what is decrypted".to_owned()));
        }
        if !self.product.addends.is_empty() {
            out.push(("added", "what is added is given as the product lies in ciphertexts".to_owned()));
        }
        out
    }
}

/// A product under built parameters.
pub struct ProductEngine {
    planned: ProductFigures,
    product: Box<dyn Product>,
}

impl ProductEngine {
    pub(super) fn new(goal: &Goal, spec: &ProductSpec) -> Result<Self, MatrixError> {
        Ok(Self { planned: ProductFigures::new(goal, spec)?, product: spec.build()? })
    }
}

impl CkksEngine for ProductEngine {
    fn params(&self) -> &Params {
        self.product.params()
    }

    fn figures(&self) -> &dyn ProgramFigures {
        &self.planned
    }

    fn product(&self) -> Option<&dyn Product> {
        Some(&*self.product)
    }

    fn prepare(&self, _: &Goal) -> Result<(), MatrixError> {
        self.product.prepare()
    }

    fn expected(&self) -> Expected {
        let Figures { level, scale, .. } = self.planned.figures;
        Expected { level, scale, error: self.planned.error() }
    }

    fn encode(&self, goal: &Goal, node: usize, matrices: &[Matrix]) -> Result<Vec<Plaintext>, MatrixError> {
        let expr = &goal.expression;
        let mut out = Vec::new();
        for (at, role) in self.planned.roles_of(node) {
            let nodes = expr.nodes();
            let step = |m: Matrix, at: &usize| nodes[*at].operation.of_plain(&[&m]);
            let steps = |m: &Matrix| role.of.steps.iter().try_fold(m.clone(), step);
            let prepared = matrices.iter().map(steps).collect::<Result<Vec<_>, _>>()?;
            out.extend(match at.checked_sub(2) {
                None => self.product.encode(role.operand, &prepared, role.max_abs)?,
                Some(addend) => {
                    let inverted = prepared.into_iter().map(|m| self.planned.inverted(expr, addend, m));
                    let inverted = inverted.collect::<Result<Vec<_>, _>>()?;
                    let end = self.planned.product.addends[addend].end;
                    let max_abs = role.max_abs / growth(expr, &self.planned.product, end) * ROUNDED;
                    let Figures { level, scale, .. } = self.planned.figures;
                    self.product.encode_addend(&inverted, EncodeAt { level, scale, max_abs })?
                }
            });
        }
        match out.is_empty() {
            true => Err(MatrixError::NoPlan { reason: format!("node {node} is not an input") }),
            false => Ok(out),
        }
    }

    fn decode(&self, goal: &Goal, node: usize, values: &[Decrypted]) -> Result<Vec<Matrix>, MatrixError> {
        match self.planned.ends(node) {
            Some(ends) => {
                let nodes = goal.expression.nodes();
                let ended =
                    |m: Matrix| ends.iter().try_fold(m, |m, at| self.planned.ended(&nodes[*at].operation, *at, m));
                self.product.decode(values)?.into_iter().map(ended).collect()
            }
            None => Err(MatrixError::NotPlanned {
                operation: "decryption of an operand",
                planned: "an operand is encrypted in a form of its own, and only the result is decrypted; keep the \
                          matrix that you encrypt"
                    .into(),
            }),
        }
    }

    fn passes(&self, node: usize) -> bool {
        let planned = &self.planned;
        node != planned.product.product && !planned.product.addends.iter().any(|a| a.end == node)
    }

    fn evaluate(
        &self,
        goal: &Goal,
        evaluator: &Evaluator,
        node: usize,
        operands: &[&[Ciphertext]],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        self.planned.value(goal, evaluator, node, operands, |left, right| self.product.multiply(evaluator, left, right))
    }
}
