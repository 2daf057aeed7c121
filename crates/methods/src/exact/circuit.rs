//! Nodes block by block, on any backend: for the result, and on one that computes nothing for what it takes.

use super::blocks::{Blocks, Role};
use super::operation::{Term, elementwise, multiplies, no_operand, number_added};
use super::request::{Form, Request};
use crate::error::MatrixError;
use sudare_exact::bgv::Bgv;
use sudare_exact::{CiphertextOf, Evaluator, ExactError, IntegerParams, Packing, PlainFactor, Plaintext};
use sudare_rlwe::simulated::{Ledger, Simulated};
use sudare_rlwe::{Backend, Shaped};

/// By how much norms that are worked out exceed real ones, which are rounded up.
const MARGIN: f64 = 1.00001;

/// An operand under a plaintext modulus, in the forms that a node takes it in: form by form, matrix by matrix of the batch, row by
/// row of blocks; in a simulation one that stands for all of a form.
pub(super) enum Side<'v, B: Backend> {
    Encrypted(&'v [Form], &'v [CiphertextOf<Bgv, B>]),
    /// Of a simulation nothing.
    Plain(Vec<Form>, Vec<Plaintext>),
    /// What ciphertexts are multiplied by.
    Factor(Vec<Form>, Vec<PlainFactor<B::Plaintext>>),
}

/// Where a node finds its blocks of an operand.
struct Source<'s, B: Backend> {
    side: &'s Side<'s, B>,
    role: Role,
    /// The first of them, and how far it is to the next matrix of the batch, and to the next block: nowhere, where one stands for
    /// all.
    first: usize,
    steps: [usize; 2],
}

impl<'s, B: Backend> Source<'s, B> {
    fn place(&self, member: usize, block: usize) -> usize {
        self.first + member * self.steps[0] + block * self.steps[1]
    }

    fn encrypted(&self, place: usize) -> Option<&'s CiphertextOf<Bgv, B>> {
        if let Side::Encrypted(_, listed) = self.side { listed.get(place) } else { None }
    }

    fn factor(&self, place: usize) -> Result<&'s PlainFactor<B::Plaintext>, ExactError> {
        if let Side::Factor(_, listed) = self.side {
            listed.get(place).ok_or_else(no_operand)
        } else {
            Err(no_operand())
        }
    }
}

/// A computation that is cut into blocks, on a backend.
pub(super) struct Circuit<'r, B: Backend> {
    pub request: &'r Request,
    pub blocks: Blocks,
    pub evaluator: &'r Evaluator<Bgv, B>,
}

impl<B: Backend> Circuit<'_, B> {
    /// A node's value in all its forms, of its operands and of a number that it adds.
    pub(super) fn node(&self, node: usize, sides: &[Side<'_, B>]) -> Result<Vec<CiphertextOf<Bgv, B>>, MatrixError> {
        let forms = self.request.forms(node).iter();
        let lists = forms.map(|form| self.form(node, form, sides)).collect::<Result<Vec<_>, _>>()?;
        Ok(lists.into_iter().flatten().collect())
    }

    fn form(&self, node: usize, form: &Form, sides: &[Side<'_, B>]) -> Result<Vec<CiphertextOf<Bgv, B>>, MatrixError> {
        let (request, own) = (self.request, &self.request.expr.nodes()[node]);
        let taken = request.operands(node, form)?;
        let source = |(operand, form): &(usize, Form)| {
            let at = own.operands.iter().position(|o| o == operand).ok_or_else(no_operand)?;
            self.source(&sides[at], form)
        };
        let mut sources = taken.iter().map(source).collect::<Result<Vec<_>, ExactError>>()?;
        sources.extend(sides.get(own.operands.len()).map(|side| self.source(side, form)).transpose()?);
        let count = request.count(self.blocks, form.role);
        // A matrix product, or one element by element that is summed: over blocks of its factors.
        let sums = form.role.terms().is_none() && taken.iter().any(|(_, f)| f.role.terms().is_some());
        let inner = if sums { sources[0].role.terms().ok_or_else(no_operand)?.div_ceil(self.blocks.b) } else { 1 };
        let columns = self.blocks.grid(request.shape, Role::Result).1;
        // The places of a source's blocks in a block of the result.
        let places = |source: &Source<'_, B>, at: usize| -> Vec<usize> {
            let (member, at) = (at / count, at % count);
            let block = |t: usize| match source.role {
                Role::Left(_) if sums => at / columns * inner + t,
                Role::Right(_) if sums => t * columns + at % columns,
                _ => at,
            };
            (0..inner).map(|t| source.place(member, block(t))).collect()
        };
        let operands = |at: usize| {
            let of = |source| places(source, at).into_iter().filter_map(|place| source.encrypted(place));
            sources.iter().flat_map(of).collect()
        };
        let circuit = |at: usize, list: &[&CiphertextOf<Bgv, B>]| match (sums, sources.as_slice()) {
            (true, [x, y]) => self.dot(inner, list, [(x, places(x, at)), (y, places(y, at))]),
            _ => {
                let mut listed = list.iter();
                let terms = sources.iter().map(|source| {
                    let place = places(source, at)[0];
                    Ok(match source.side {
                        Side::Encrypted(..) => Term::Encrypted(listed.next().ok_or_else(no_operand)?),
                        Side::Plain(_, plain) => Term::Plain(plain.get(place)),
                        Side::Factor(..) => Term::Factor(source.factor(place)?),
                    })
                });
                elementwise(self.evaluator, &own.operation, &terms.collect::<Result<Vec<_>, ExactError>>()?)
            }
        };
        Ok(self.evaluator.each(request.batch * count, operands, circuit)?)
    }

    fn source<'s>(&self, side: &'s Side<'_, B>, form: &Form) -> Result<Source<'s, B>, ExactError> {
        let (forms, listed): (&[Form], usize) = match side {
            Side::Encrypted(forms, listed) => (forms, listed.len()),
            Side::Plain(forms, listed) => (forms, listed.len()),
            Side::Factor(forms, listed) => (forms, listed.len()),
        };
        let count = |form: &Form| self.request.count(self.blocks, form.role);
        let at = forms.iter().position(|f| f == form).ok_or_else(no_operand)?;
        let [before, all] = [at, forms.len()].map(|end| forms[..end].iter().map(count).sum::<usize>());
        let batch = self.request.batch;
        let (first, steps) = match listed {
            n if n == batch * all => (batch * before, [count(form), 1]),
            // A number that is added is the same for the whole batch.
            n if n == all => (before, [0, 1]),
            _ => (at, [0, 0]),
        };
        Ok(Source { side, role: form.role, first, steps })
    }

    /// One block of a sum of products: Σ_t left(row, t) · right(t, column).
    fn dot(
        &self,
        inner: usize,
        list: &[&CiphertextOf<Bgv, B>],
        [(x, left), (y, right)]: [(&Source<'_, B>, Vec<usize>); 2],
    ) -> Result<CiphertextOf<Bgv, B>, ExactError> {
        let e = self.evaluator;
        let (factors, places) = match (x.side, y.side) {
            (Side::Encrypted(..), Side::Encrypted(..)) => return e.dot(&list[..inner], &list[inner..]),
            (Side::Encrypted(..), _) => (y, right),
            _ => (x, left),
        };
        let mut terms = list.iter().zip(places).map(|(c, place)| e.mul_factor(c, factors.factor(place)?));
        let mut total = terms.next().ok_or_else(no_operand)??;
        for term in terms {
            e.add_assign(&mut total, &term?)?;
        }
        Ok(total)
    }

    /// Forms in which a node takes an operand.
    pub(super) fn taken(&self, node: usize, operand: usize) -> Result<Vec<Form>, MatrixError> {
        let mut forms: Vec<Form> = Vec::new();
        for form in self.request.forms(node) {
            for (_, form) in self.request.operands(node, form)?.into_iter().filter(|(o, _)| *o == operand) {
                if !forms.contains(&form) {
                    forms.push(form);
                }
            }
        }
        Ok(forms)
    }

    /// A plain block that ciphertexts are multiplied by.
    pub(super) fn factor(
        &self,
        operand: usize,
        make: impl FnOnce() -> Result<Plaintext, ExactError>,
    ) -> Result<PlainFactor<B::Plaintext>, ExactError> {
        let (params, Blocks { a, b, c }) = (self.evaluator.params(), self.blocks);
        let (n, half) = (params.degree() as f64, params.t() as f64 / 2.0);
        let request = self.request;
        let largest = (request.known[operand].bound as f64 * request.terms[operand] as f64).clamp(1.0, half);
        let norm = match request.packing {
            Packing::Coefficients => largest * (b * a.max(c)) as f64,
            Packing::Slots => n * half,
        };
        self.evaluator.factor_within(params.max_level(), norm * MARGIN, make)
    }
}

/// Ciphertexts of a node's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// How many.
    pub count: usize,
    /// Polynomials of each.
    pub parts: usize,
    /// Their level.
    pub level: usize,
}

/// What a computation takes under one plaintext modulus.
pub(super) struct Simulation {
    pub ledger: Ledger,
    /// Of each node.
    pub sizes: Vec<Size>,
    /// Bound on the noise of the result.
    pub noise: f64,
}

/// Runs a computation of encryptions under the public key, whose noise is larger than the owner's, on a backend that computes
/// nothing, with the work of encryption and decryption.
///
/// # Errors
/// [`MatrixError::Exact`] where the modulus does not hold the noise.
pub(super) fn simulated(request: &Request, blocks: Blocks, params: &IntegerParams) -> Result<Simulation, MatrixError> {
    let e = Evaluator::<Bgv, _>::with_backend(params, Simulated::new(params))?;
    let circuit = Circuit { request, blocks, evaluator: &e };
    let mut values: Vec<Vec<CiphertextOf<Bgv, Simulated>>> = Vec::with_capacity(request.expr.nodes().len());
    for (node, at) in request.expr.nodes().iter().enumerate() {
        let value = match at.operation.input() {
            _ if request.factors(node) == 0 => Vec::new(),
            Some(_) => {
                let fresh = |form: &Form| {
                    let all = request.batch * request.count(blocks, form.role);
                    let made = e.encryptions(params.max_level(), all)?;
                    e.backend().encrypts(made.inner());
                    Ok(made)
                };
                request.forms(node).iter().map(fresh).collect::<Result<_, ExactError>>()?
            }
            None => {
                let side = |operand: &usize| {
                    Ok(match (request.factors(*operand), multiplies(&at.operation)) {
                        (0, true) => {
                            let forms = circuit.taken(node, *operand)?;
                            let factor = |_: &Form| circuit.factor(*operand, || Err(no_operand()));
                            let made = forms.iter().map(factor).collect::<Result<_, _>>()?;
                            Side::Factor(forms, made)
                        }
                        (0, false) => Side::Plain(circuit.taken(node, *operand)?, Vec::new()),
                        _ => Side::Encrypted(request.forms(*operand), &values[*operand]),
                    })
                };
                let mut sides = at.operands.iter().map(side).collect::<Result<Vec<_>, MatrixError>>()?;
                sides
                    .extend(number_added(&at.operation).map(|_| Side::Plain(request.forms(node).to_vec(), Vec::new())));
                circuit.node(node, &sides)?
            }
        };
        values.push(value);
    }
    let output = &values[request.expr.output()];
    output.iter().for_each(|c| e.backend().decrypts(c.inner()));
    let noise = output.iter().map(CiphertextOf::<Bgv, Simulated>::noise).fold(0.0, f64::max);
    let size = |value: &Vec<CiphertextOf<Bgv, Simulated>>| Size {
        count: value.iter().map(|c| c.inner().count()).sum(),
        parts: value.iter().map(|c| c.inner().polynomials()).max().unwrap_or_default(),
        level: params.max_level(),
    };
    Ok(Simulation { ledger: e.backend().ledger(), sizes: values.iter().map(size).collect(), noise })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::{EncryptionKey, ExactEngine, ExactOperand, ExactPlan, ExactValue, IntegerEngine, candidates};
    use std::sync::Arc;
    use sudare_expr::{Expr, InputSpec, Matrix, Node, Operation};
    use sudare_rlwe::keys::{EvalKeys, KeyGenerator, KeySource, SecretKey};
    use sudare_rlwe::security::Security;

    fn evaluated(engine: &ExactEngine, batch: usize) -> Vec<ExactValue> {
        let secret = SecretKey::generate(engine.params()).unwrap();
        let public = KeyGenerator::new(&secret).unwrap().public_key().unwrap();
        let keys: Arc<dyn KeySource> = Arc::new(EvalKeys::new(engine.params(), secret.id()));
        let expr = engine.plan().request().expr();
        let mut values: Vec<ExactValue> = Vec::new();
        for (node, at) in expr.nodes().iter().enumerate() {
            let ((rows, cols), operands) = (expr.info(node).shape, at.operands.iter().map(|o| &values[*o]));
            let matrix = |t: usize| Matrix::<i128>::from_fn(rows, cols, |i, j| ((i * 7 + j * 3 + t) % 9) as i128 - 4);
            let matrices: Vec<_> = (0..batch).map(|t| matrix(t).unwrap()).collect();
            let value = match (at.operation.input(), expr.is_plain(node)) {
                (Some(_), true) => ExactValue::Plain(matrices),
                (Some(_), false) => {
                    let key = EncryptionKey::Public(&public);
                    ExactValue::Encrypted(engine.encrypt(node, &matrices, key, &|_, _| {}).unwrap())
                }
                (None, _) => {
                    let operands = operands.map(|value| match value {
                        ExactValue::Plain(matrices) => ExactOperand::Plain(matrices),
                        ExactValue::Encrypted(lists) => {
                            ExactOperand::Encrypted(lists.iter().map(Vec::as_slice).collect())
                        }
                    });
                    engine.evaluate(node, (secret.id(), &keys, None), &operands.collect::<Vec<_>>()).unwrap()
                }
            };
            values.push(value);
        }
        values
    }

    /// The same lines on ciphertexts: levels, parts, counts and noise bounds are those of the simulation to the last bit.
    #[test]
    fn simulation_is_the_run_of_integers() {
        let (m, k, n, batch) = (5, 40, 3, 2);
        let int = |name: &str, shape| InputSpec::integers(name, shape, 4);
        let plain = |input: InputSpec| InputSpec { plain: true, ..input };
        let product = |ops: &[Node]| {
            let begin = [Node::input(0), Node::input(1), Node::new(Operation::Matmul, &[0, 1])];
            [begin.as_slice(), ops].concat()
        };
        let shapes = [int("A", (m, k)), int("B", (k, n))];
        let with = |other: InputSpec| [shapes.as_slice(), &[other]].concat();
        let (number, other) = ([Node::new(Operation::Shift { by: 3.0 }, &[2])], Node::input(2));
        let cases = [
            (shapes.to_vec(), product(&number)),
            (vec![shapes[0].clone(), plain(shapes[1].clone())], product(&[])),
            (with(int("C", (m, n))), product(&[other.clone(), Node::new(Operation::Sub, &[3, 2])])),
            (with(plain(int("C", (m, n)))), product(&[other, Node::new(Operation::Add, &[2, 3])])),
            (
                vec![int("A", (m, n)), int("B", (m, n))],
                vec![
                    Node::input(0),
                    Node::input(1),
                    Node::new(Operation::Mul, &[0, 1]),
                    Node::new(Operation::Sum { axis: 0 }, &[2]),
                ],
            ),
        ];
        for (inputs, nodes) in cases {
            let output = nodes.len() - 1;
            let request = Request::new(Expr::new(inputs, nodes, output).unwrap(), batch, Security::Bits128).unwrap();
            let specs = candidates(&request, |work, log_n| work.pass * f64::from(log_n).exp2());
            for spec in specs.first().into_iter().chain(specs.last()) {
                let plan = ExactPlan::new(request.clone(), spec).unwrap();
                let engine = ExactEngine::new(plan);
                let value = evaluated(&engine, batch).pop().unwrap();
                let ExactValue::Encrypted(lists) = value else { panic!("{spec:?}") };
                assert_eq!(lists.iter().map(Vec::len).sum::<usize>(), engine.plan().size(output).count, "{spec:?}");
                for (list, params) in lists.iter().zip(engine.moduli()) {
                    let run = simulated(&request, spec.blocks, params).unwrap();
                    for c in list {
                        let found = (c.level(), c.parts().len(), c.noise());
                        assert_eq!(found, (run.sizes[output].level, run.sizes[output].parts, run.noise), "{spec:?}");
                    }
                }
            }
        }
    }
}
