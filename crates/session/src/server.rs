//! The side that computes, by a plan of any kind.

use super::client::{input_node, integer_node, require_params, require_plan};
use super::context::ContextSpec;
use super::encrypted::Encrypted;
use super::integers::UnplannedIntegers;
use super::keys::{self, Evaluation, ServerKeys, refresh_of};
use super::unplanned::UnplannedServer;
use crate::device::OfDevice;
use std::io::Write;
use std::sync::Arc;
use sudare_exact::refresh::Refresher;
use sudare_expr::{Matrix, Node, Operation};
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::{BootstrapKeys, Bootstrapper};
use sudare_he::ckks::{self, Ciphertext, Evaluator, Params, Plaintext, State};
use sudare_methods::MatrixError;
use sudare_methods::error::PlanHash;
use sudare_methods::exact::ExactValue;
use sudare_plan::{Engine, Place, Plan, Sought};
use sudare_ring::{Poly, Threads};
use sudare_rlwe::keys::{EvalKeys, KeySource};
use sudare_rlwe::{Counters, KeyId, RlweError, Shaped};
use sudare_store::KeyFile;

/// Computes on encrypted values by a plan, or in a context without one. Holds evaluation keys and nothing secret.
/// Cloning shares it.
#[derive(Clone)]
pub struct Server {
    pub(super) inner: Arc<Inner>,
    /// What computes on a device, where one does.
    pub(super) device: Option<Arc<OfDevice>>,
}

/// What is computed, and with what.
enum Mode {
    /// What a plan of real matrices or tables says, with refreshes where it has some.
    Real(Plan, Evaluator, Option<Box<Bootstrapper>>),
    /// A plan of integers: without keys, or with those of refreshes.
    Exact(Plan, Option<Box<Refresher>>),
    /// Arrays of integers, to any depth, without a plan.
    Integers(Box<UnplannedIntegers>),
    /// Anything, within the depth of a context.
    Unplanned(Box<UnplannedServer>, Evaluator),
}

pub(super) struct Inner {
    mode: Mode,
    keys: Evaluation,
    pub(super) threads: Arc<Threads>,
}

impl Server {
    /// A server with a client's keys, on `threads` threads (0: one for each processor). Evaluation keys alone do for a plan
    /// that does not refresh.
    ///
    /// # Errors
    /// [`MatrixError::Wire`] if the keys are for other parameters than the plan's;
    /// [`MatrixError::He`] if one that the plan needs is missing, [`MatrixError::NotPlanned`] if those to bootstrap with are.
    pub fn new(plan: &Plan, keys: impl Into<ServerKeys>, threads: usize) -> Result<Self, MatrixError> {
        Self::with_threads(plan, keys.into(), Arc::new(Threads::new(threads)))
    }

    /// A server for a plan that takes no keys at all: one of integers, which anybody can compute.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for any other plan.
    pub fn keyless(plan: &Plan, threads: usize) -> Result<Self, MatrixError> {
        if !plan.is_keyless() {
            return Err(MatrixError::NotPlanned {
                operation: "a server without keys",
                planned: "only plans of integers that multiply once are computed without evaluation keys; make the \
                          server by client.server()"
                    .into(),
            });
        }
        Self::new(plan, EvalKeys::new(plan.params(), KeyId::NONE), threads)
    }

    pub(super) fn with_threads(plan: &Plan, keys: ServerKeys, threads: Arc<Threads>) -> Result<Self, MatrixError> {
        let ServerKeys { eval, bootstrap, refresh } = keys;
        let keys = eval.source();
        require_params(plan.params(), keys.params())?;
        // Missing keys are told now, not after an hour of work.
        let demand = plan.engine().keys();
        let reaches = |wanted: usize, highest: usize| match wanted <= highest {
            true => Ok(()),
            false => Err(HeError::Rlwe(RlweError::NoSuchLevel { operation: "the plan", wanted, highest })),
        };
        if let Some(level) = demand.relin {
            reaches(level, keys.relin_level().ok_or(HeError::Rlwe(RlweError::MissingRelinKey))?)?;
        }
        for (element, level) in &demand.galois {
            let step = plan.summary().keys.iter().find(|k| k.element == *element).and_then(|k| k.step).unwrap_or(0);
            let missing = HeError::Rlwe(RlweError::MissingRotationKey { step, element: *element });
            reaches(*level, keys.galois_level(*element).ok_or(missing)?)?;
        }
        let mode = match plan.engine() {
            Engine::Ckks(engine) => {
                // Tables are made here, not within the first operation.
                threads.run(|| engine.prepare(plan.goal()))?;
                let bootstrapper = match (engine.bootstrap(), bootstrap) {
                    (None, _) => None,
                    (Some(_), Some(own)) if own.id() == keys.id() => {
                        Some(Box::new(threads.run(|| Bootstrapper::new(own, None))?))
                    }
                    (Some(_), Some(own)) => {
                        let (what, found, expected) = ("the bootstrapping keys", own.id(), keys.id());
                        return Err(HeError::Rlwe(RlweError::WrongKey { what, found, expected }).into());
                    }
                    (Some(_), None) => {
                        let planned = "the plan refreshes; make the server by client.server(), or from the bytes of \
                                       such a server";
                        let operation = "a server without bootstrapping keys";
                        return Err(MatrixError::NotPlanned { operation, planned: planned.into() });
                    }
                };
                Mode::Real(plan.clone(), Evaluator::new(engine.params(), keys)?, bootstrapper)
            }
            Engine::Exact(_) | Engine::Arrays(_) => {
                let own = match (refresh_of(plan), refresh) {
                    (None, _) => None,
                    (Some(_), Some(own)) => {
                        keys.id().require("the keys of the refresh", own.id())?;
                        Some(Box::new(threads.run(|| Refresher::new(Arc::unwrap_or_clone(own), None))?))
                    }
                    (Some(_), None) => {
                        let planned = "the plan refreshes; make the server by client.server(), or from the bytes of \
                                       such a server";
                        let operation = "a server without the keys of its refresh";
                        return Err(MatrixError::NotPlanned { operation, planned: planned.into() });
                    }
                };
                Mode::Exact(plan.clone(), own)
            }
        };
        Ok(Self { inner: Arc::new(Inner { mode, keys: eval, threads }), device: None })
    }

    /// A server of a context with its evaluation keys, on `threads` threads (0: one for each processor). It refreshes
    /// nothing: bootstrapping keys do not travel yet.
    ///
    /// # Errors
    /// [`MatrixError::Wire`] if the keys are for other parameters than the specification's.
    pub fn of_context(spec: &ContextSpec, keys: EvalKeys, threads: usize) -> Result<Self, MatrixError> {
        Self::of_unplanned(
            &spec.params.build()?,
            UnplannedServer::new(spec, None)?,
            keys,
            Arc::new(Threads::new(threads)),
        )
    }

    pub(super) fn of_unplanned(
        params: &Params,
        unplanned: UnplannedServer,
        keys: EvalKeys,
        threads: Arc<Threads>,
    ) -> Result<Self, MatrixError> {
        require_params(params, keys.params())?;
        let keys = Evaluation::Memory(Arc::new(keys));
        let mode = Mode::Unplanned(Box::new(unplanned), Evaluator::new(params, keys.source())?);
        Ok(Self { inner: Arc::new(Inner { mode, keys, threads }), device: None })
    }

    /// A server of a context of integers.
    pub(super) fn of_integers(unplanned: UnplannedIntegers, threads: Arc<Threads>) -> Self {
        let none = EvalKeys::new(unplanned.arrays().params(), unplanned.key());
        let (mode, keys) = (Mode::Integers(Box::new(unplanned)), Evaluation::Memory(Arc::new(none)));
        Self { inner: Arc::new(Inner { mode, keys, threads }), device: None }
    }

    /// What a context of integers has.
    pub(super) fn integers(&self) -> Option<&UnplannedIntegers> {
        if let Mode::Integers(unplanned) = &self.inner.mode { Some(unplanned) } else { None }
    }

    /// The same server, computing on the processor.
    #[must_use]
    pub fn to_host(&self) -> Self {
        Self { inner: self.inner.clone(), device: None }
    }

    /// A value where this server computes: on its device, or here.
    ///
    /// # Errors
    /// [`MatrixError::WrongPlan`]; [`MatrixError::He`] for another key, or what the device refuses.
    pub fn bring(&self, a: &Encrypted) -> Result<Encrypted, MatrixError> {
        self.require(a)?;
        let key = self.one_key(&[a])?;
        match (&self.device, self.plan()) {
            (Some(device), Some(plan)) => self.inner.threads.run(|| device.bring(plan, key, a)),
            _ => a.to_host(),
        }
    }

    /// The plan, but for a context's.
    pub fn plan(&self) -> Option<&Plan> {
        match &self.inner.mode {
            Mode::Real(plan, ..) | Mode::Exact(plan, _) => Some(plan),
            Mode::Unplanned(..) | Mode::Integers(_) => None,
        }
    }

    pub(super) fn planned(&self, operation: &'static str) -> Result<&Plan, MatrixError> {
        let planned = || "a context computes without a plan; make a plan for it".into();
        self.plan().ok_or_else(|| MatrixError::NotPlanned { operation, planned: planned() })
    }

    /// What a plan of real matrices has: its evaluator and the threads.
    pub(super) fn real(&self) -> Result<(&Plan, &Evaluator, &Threads), MatrixError> {
        let plan = self.planned("a product of stored matrices")?;
        match &self.inner.mode {
            Mode::Real(_, evaluator, _) => Ok((plan, evaluator, &self.inner.threads)),
            _ => plan.real().map(|_| unreachable!("a plan of real matrices has an evaluator")),
        }
    }

    /// What a context's server has, with its evaluator.
    pub(super) fn unplanned(&self, operation: &'static str) -> Result<(&UnplannedServer, &Evaluator), MatrixError> {
        match &self.inner.mode {
            Mode::Unplanned(unplanned, evaluator) => Ok((unplanned, evaluator)),
            _ => Err(MatrixError::NotPlanned {
                operation,
                planned: "only a context does it; a plan knows its inputs, and where values are refreshed".into(),
            }),
        }
    }

    /// What the server of a context was made for.
    pub fn spec(&self) -> Option<&ContextSpec> {
        self.unplanned("a specification").ok().map(|(unplanned, _)| unplanned.spec())
    }

    /// Levels of a fresh matrix of a context, down to the next refresh; those of a plan's input.
    pub fn levels(&self) -> usize {
        match &self.inner.mode {
            Mode::Real(plan, ..) | Mode::Exact(plan, _) => plan.params().max_level(),
            Mode::Unplanned(unplanned, _) => unplanned.levels().1 - unplanned.levels().0,
            Mode::Integers(unplanned) => unplanned.levels().1 - unplanned.levels().0,
        }
    }

    /// Bytes of its keys in memory, and of what bootstrapping has prepared.
    pub fn bytes(&self) -> usize {
        let prepared = match &self.inner.mode {
            Mode::Real(_, _, bootstrapper) => bootstrapper.as_ref().map_or(0, |b| b.bytes()),
            Mode::Exact(_, refresher) => refresher.as_ref().map_or(0, |r| r.bytes() as usize),
            Mode::Unplanned(unplanned, _) => unplanned.bytes(),
            Mode::Integers(unplanned) => unplanned.bytes(),
        };
        self.keys().bytes() + prepared
    }

    /// Writes what it computes with, as [`ServerKeys`] are read. A context's bootstrapping keys are not written.
    ///
    /// # Errors
    /// [`MatrixError::Wire`].
    pub fn write_keys_to(&self, out: impl Write) -> Result<(), MatrixError> {
        let refresh = match &self.inner.mode {
            Mode::Exact(_, Some(refresher)) => Some(refresher.own_keys()),
            _ => None,
        };
        keys::write(&self.inner.keys, self.bootstrap_keys(), refresh, out)
    }

    /// The keys that a plan refreshes with, if it does.
    pub(super) fn bootstrap_keys(&self) -> Option<&BootstrapKeys> {
        match &self.inner.mode {
            Mode::Real(_, _, bootstrapper) => bootstrapper.as_ref().and_then(|b| b.keys()),
            _ => None,
        }
    }

    /// The evaluation keys that it computes with, wherever they are.
    pub fn keys(&self) -> Arc<dyn KeySource> {
        self.inner.keys.source()
    }

    /// The file that its evaluation keys stay in, if they do.
    pub fn key_file(&self) -> Option<&KeyFile> {
        match &self.inner.keys {
            Evaluation::Memory(_) => None,
            Evaluation::File(keys) => Some(keys),
        }
    }

    /// Operations done so far, of a server on a device those that it did there; of integers those of refreshes alone.
    pub fn counters(&self) -> Counters {
        if let Some(device) = &self.device {
            return device.counters();
        }
        match &self.inner.mode {
            Mode::Real(_, evaluator, None) | Mode::Unplanned(_, evaluator) => evaluator.counters(),
            Mode::Real(_, evaluator, Some(bootstrapper)) => evaluator.counters() + bootstrapper.counters(),
            Mode::Exact(_, refresher) => refresher.as_ref().map_or_else(Counters::default, |r| r.counters()),
            Mode::Integers(unplanned) => unplanned.counters(),
        }
    }

    /// The name of the secret key whose data it computes on.
    pub fn key_id(&self) -> KeyId {
        self.keys().id()
    }

    /// How many threads work.
    pub fn threads(&self) -> usize {
        self.inner.threads.count()
    }

    /// An input that the plan gives to the server unencrypted, in the form that its operations
    /// take.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for an input that the plan does not have or has encrypted;
    /// [`MatrixError::PlannedShape`], [`MatrixError::Expr`], [`MatrixError::Count`].
    pub fn plain(&self, name: &str, matrices: &[Matrix]) -> Result<Encrypted, MatrixError> {
        let plan = self.planned("an input by its name")?;
        let node = input_node(plan, name, matrices)?;
        if !plan.expression().is_plain(node) {
            return Err(MatrixError::NotPlanned {
                operation: "taking this input unencrypted",
                planned: format!("the plan has {name} encrypted; encrypt it, or describe it as plain in a new plan"),
            });
        }
        let engine = plan.real()?;
        let plain = self.inner.threads.run(|| engine.encode(plan.goal(), node, matrices))?;
        let values = plain.iter().map(|p| trivial(engine.params(), self.key_id(), p)).collect::<Result<Vec<_>, _>>()?;
        Encrypted::ckks(plan, node, self.key_id(), values)
    }

    /// The same of integers.
    ///
    /// # Errors
    /// As [`Server::plain`]; [`MatrixError::OutOfRange`] for an element over its bound.
    pub fn plain_integers(&self, name: &str, matrices: &[Matrix<i128>]) -> Result<Encrypted, MatrixError> {
        let plan = self.planned("an input by its name")?;
        let node = integer_node(plan, name, matrices)?;
        if !plan.expression().is_plain(node) {
            return Err(MatrixError::NotPlanned {
                operation: "taking this input unencrypted",
                planned: format!("the plan has {name} encrypted; encrypt it, or describe it as plain in a new plan"),
            });
        }
        Ok(Encrypted::plain(plan, node, matrices.to_vec()))
    }

    /// In a context, a matrix that the server sees, ready to compute with encrypted ones.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] by a plan; [`MatrixError::Method`] for too large a matrix; [`MatrixError::He`] if the
    /// modulus cannot hold its elements.
    pub fn lift(&self, matrix: &Matrix) -> Result<Encrypted, MatrixError> {
        if let Some(unplanned) = self.integers() {
            return unplanned.plain(matrix);
        }
        let (unplanned, evaluator) = self.unplanned("a plain matrix without a name")?;
        self.inner.threads.run(|| unplanned.plain(evaluator, matrix))
    }

    /// In a context that bootstraps, the same matrix with the levels of a fresh one. Elements are up to `max_abs`, or
    /// without one up to the bound that the matrix carries; what lies beside it in slots may not be larger either. One
    /// level where the bound times the scale is over the set's scale.
    ///
    /// # Errors
    /// [`MatrixError::NoBootstrap`]; [`MatrixError::OutOfDepth`] for a matrix that has to be scaled down first and has no
    /// level left for it; [`MatrixError::He`].
    pub fn refresh(&self, a: &Encrypted, max_abs: Option<f64>) -> Result<Encrypted, MatrixError> {
        if let Some(unplanned) = self.integers() {
            self.require(a)?;
            self.one_key(&[a])?;
            return self.inner.threads.run(|| unplanned.refresh(a, max_abs));
        }
        let (unplanned, evaluator) = self.unplanned("a refresh")?;
        self.require(a)?;
        self.one_key(&[a])?;
        self.inner.threads.run(|| unplanned.refresh(evaluator, a, max_abs))
    }

    /// An operation on values: the one door for all of them. By a plan it has to be one of the plan's expression, on these
    /// very values; a context computes any, within its depth.
    ///
    /// # Errors
    /// [`MatrixError::Expr`] for another number of operands or shapes that do not go together; [`MatrixError::WrongPlan`];
    /// [`MatrixError::NotPlanned`] if the plan's expression does not have this operation on these values;
    /// [`MatrixError::OutOfDepth`] in a context; [`MatrixError::He`] for another key, bounds that are no numbers above zero,
    /// and functions of elements that may be outside of their interval.
    pub fn apply(&self, operation: &Operation, operands: &[&Encrypted]) -> Result<Encrypted, MatrixError> {
        // Tables of a context are broadcast.
        if self.spec().is_none_or(|spec| spec.columns.is_none()) {
            operation.shape(&operands.iter().map(|v| v.shape()).collect::<Vec<_>>())?;
        }
        operands.iter().try_for_each(|v| self.require(v))?;
        let (key, pool) = (self.one_key(operands)?, &self.inner.threads);
        let plan = match &self.inner.mode {
            Mode::Unplanned(unplanned, evaluator) => {
                return pool.run(|| unplanned.apply(evaluator, operation, operands));
            }
            Mode::Integers(unplanned) => return pool.run(|| unplanned.apply(operation, operands)),
            Mode::Real(plan, ..) | Mode::Exact(plan, _) => plan,
        };
        if let Some(steps) = operation.steps()? {
            let mut values: Vec<Encrypted> = operands.iter().map(|v| (*v).clone()).collect();
            for Node { operation, operands } in steps {
                let value = self.apply(&operation, &operands.iter().map(|o| &values[*o]).collect::<Vec<_>>())?;
                values.push(value);
            }
            return Ok(values.swap_remove(values.len() - 1));
        }
        let nodes: Vec<Sought<'_>> = operands.iter().map(|v| Sought::Node(v.node())).collect();
        let Place { node, swapped, .. } = plan.place(operation, &nodes)?;
        let mut operands = operands.to_vec();
        if swapped {
            operands.reverse();
        }
        match &self.inner.mode {
            Mode::Real(_, evaluator, bootstrapper) => {
                self.real_value(plan, (evaluator, bootstrapper.as_deref()), (node, key), &operands)
            }
            _ => {
                let values = operands.iter().map(|v| v.exact_operand()).collect::<Result<Vec<_>, _>>()?;
                let refresher = match &self.inner.mode {
                    Mode::Exact(_, refresher) => refresher.as_deref(),
                    _ => None,
                };
                let keys = refresher.map_or_else(|| self.keys(), |r| r.keys().clone());
                match pool.run(|| plan.exact()?.evaluate(node, (key, &keys, refresher), &values))? {
                    ExactValue::Encrypted(made) => Encrypted::bgv(plan, node, key, made),
                    ExactValue::Plain(made) => Ok(Encrypted::plain(plan, node, made)),
                }
            }
        }
    }

    /// A node of a plan of real matrices from its operands.
    fn real_value(
        &self,
        plan: &Plan,
        (evaluator, bootstrapper): (&Evaluator, Option<&Bootstrapper>),
        (node, key): (usize, KeyId),
        operands: &[&Encrypted],
    ) -> Result<Encrypted, MatrixError> {
        let (engine, pool) = (plan.real()?, &self.inner.threads);
        let released = plan.release().is_some() && node == plan.expression().output();
        if let ([of], true, false) = (operands, engine.passes(node), released) {
            return Ok(of.renamed(plan, node));
        }
        // Whoever releases a result looks for the plan's own error.
        let error = released.then(|| engine.expected().error);
        if let Some(device) = &self.device {
            return pool.run(|| device.value(plan, (node, key), operands, error));
        }
        let values = operands.iter().map(|v| v.ciphertexts()).collect::<Result<Vec<&[Ciphertext]>, _>>()?;
        let out = pool.run(|| {
            let out = engine.evaluate(plan.goal(), evaluator, node, &values)?;
            match bootstrapper {
                Some(b) => engine.refreshed(plan.goal(), (evaluator, b), node, out),
                None => Ok(out),
            }
        })?;
        Encrypted::ckks(plan, node, key, with_error(out, error))
    }

    /// The value of the whole expression from its inputs, in any order, each once.
    ///
    /// # Errors
    /// As [`Server::matmul`]; [`MatrixError::Count`] for a missing or surplus input.
    pub fn run(&self, inputs: &[Encrypted]) -> Result<Encrypted, MatrixError> {
        let plan = self.planned("a run of the whole expression")?;
        let expr = plan.expression();
        if !expr.has_one_result() {
            return Err(MatrixError::NotPlanned {
                operation: "a run of the whole expression",
                planned: "the plan has several results; compute it operation by operation".into(),
            });
        }
        if inputs.len() != expr.inputs().len() {
            let (found, expected) = (inputs.len(), expr.inputs().len());
            return Err(MatrixError::Count { what: "inputs of the plan", found, expected });
        }
        let mut values: Vec<Option<Encrypted>> = vec![None; expr.nodes().len()];
        for value in inputs {
            self.require(value)?;
            values[value.node()] = Some(value.clone());
        }
        let mut uses = vec![0usize; values.len()];
        expr.nodes().iter().flat_map(|node| &node.operands).for_each(|o| uses[*o] += 1);
        for (at, node) in expr.nodes().iter().enumerate() {
            if values[at].is_some() {
                continue;
            }
            if let Some(input) = expr.input_at(at) {
                return Err(MatrixError::NotPlanned {
                    operation: "a run without all inputs",
                    planned: format!("{} is missing; give each input once", input.name),
                });
            }
            let operands: Vec<Encrypted> = node.operands.iter().filter_map(|o| values[*o].clone()).collect();
            values[at] = Some(self.apply(&node.operation, &operands.iter().collect::<Vec<_>>())?);
            for o in &node.operands {
                // What nobody needs any more gives its memory back.
                uses[*o] -= 1;
                if uses[*o] == 0 {
                    values[*o] = None;
                }
            }
        }
        let missing = || MatrixError::NotPlanned {
            operation: "the result",
            planned: "no operation of the plan computed it".into(),
        };
        values[expr.output()].take().ok_or_else(missing)
    }

    /// Refuses what is of another plan, or under another key.
    pub(super) fn require_owner(&self, plan: PlanHash, key: KeyId) -> Result<(), MatrixError> {
        let (what, expected) = ("the stored matrix", self.planned("a stored matrix")?.hash());
        if plan != expected {
            return Err(MatrixError::WrongPlan { what, found: plan, expected });
        }
        Ok(self.key_id().require(what, key)?)
    }

    /// Refuses a value of another plan or context.
    fn require(&self, value: &Encrypted) -> Result<(), MatrixError> {
        match &self.inner.mode {
            Mode::Real(plan, ..) | Mode::Exact(plan, _) => require_plan(plan.hash(), value),
            Mode::Unplanned(unplanned, _) => require_plan(unplanned.hash(), value),
            Mode::Integers(unplanned) => require_plan(unplanned.hash(), value),
        }
    }

    /// The key that all operands are under: the server's own, where it has keys.
    fn one_key(&self, operands: &[&Encrypted]) -> Result<KeyId, MatrixError> {
        let expected = match &self.inner.mode {
            Mode::Exact(plan, _) if plan.is_keyless() => {
                operands.iter().find(|v| !v.is_plain()).map_or(KeyId::NONE, |v| v.key())
            }
            _ => self.key_id(),
        };
        match operands.iter().find(|v| !v.is_plain() && v.key() != expected) {
            Some(other) => {
                let (what, found) = ("the encrypted value", other.key());
                Err(HeError::Rlwe(RlweError::WrongKey { what, found, expected }).into())
            }
            None => Ok(expected),
        }
    }
}

/// Ciphertexts that state an error of at least this.
pub(super) fn with_error<C: Shaped>(out: Vec<ckks::Ciphertext<C>>, error: Option<f64>) -> Vec<ckks::Ciphertext<C>> {
    match error {
        Some(error) => out.into_iter().map(|c| c.with_error_of(error)).collect(),
        None => out,
    }
}

/// A plaintext as a ciphertext that anybody can read.
pub(super) fn trivial(params: &Params, key: KeyId, p: &Plaintext) -> Result<Ciphertext, HeError> {
    let parts = vec![p.poly().clone(), Poly::zero(p.poly().basis())];
    let state = State { scale: p.scale(), bound: p.bound(), noise: p.error_bound() * p.scale() };
    Ciphertext::from_parts(sudare_rlwe::Ciphertext::from_parts(params, key, parts, p.level())?, state)
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.inner.mode {
            Mode::Real(plan, ..) | Mode::Exact(plan, _) => {
                write!(f, "Server({plan:?}, key {}, {:?})", self.key_id(), self.inner.threads)
            }
            Mode::Unplanned(unplanned, _) => {
                let ContextSpec { depth, tile, columns, .. } = unplanned.spec();
                let tiles = columns.map_or(format!("tiles of {tile}"), |c| format!("tables of {c} columns"));
                write!(f, "Server(context of depth {depth}, {tiles}, key {})", self.key_id())
            }
            Mode::Integers(unplanned) => {
                write!(f, "Server(context of integers, set {}, key {})", unplanned.arrays().name(), self.key_id())
            }
        }
    }
}
