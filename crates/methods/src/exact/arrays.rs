//! Arrays of integers modulo a prime, one element after the other in slots, to any depth: values are refreshed.
//!
//! Whatever works element by element works slot by slot, so that the only keys are those of products and refreshes. A value keeps
//! enough room to be refreshed, always: before an operation that would leave less, an operand is. A context does so as it
//! goes; a plan predicts it on a backend that computes nothing, and says after which operations.

use super::circuit::Size;
use super::engine::{EncryptionKey, ExactOperand, ExactValue, IntegerEngine, Residues, check_integers};
use super::operation::{Term, bound_of, check_plain, elementwise, multiplies, no_operand, number_added, stays};
use super::request::refuse;
use crate::claims::{check_same, field};
use crate::error::MatrixError;
use crate::product::KeyDemand;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use sudare_exact::bgv::{Bgv, Ciphertext, Decryptor};
use sudare_exact::refresh::{RefreshParams, RefreshSet, Refresher};
use sudare_exact::{
    CiphertextOf, Encoder, Evaluator, ExactError, IntegerParams, Packing, PlainFactor, Plaintext, Scheme, State, Wrap,
};
use sudare_expr::{Expr, Matrix, Operation};
use sudare_ring::memo::Memo;
use sudare_ring::threads;
use sudare_rlwe::keys::{KeySource, SecretKey};
use sudare_rlwe::params::ParamsLiteral;
use sudare_rlwe::security::Security;
use sudare_rlwe::simulated::Simulated;
use sudare_rlwe::work::Work;
use sudare_rlwe::{Backend, KeyId, Params, RlweError, Shaped};

/// By how much norms that are worked out exceed real ones, which are rounded up.
const MARGIN: f64 = 1.00001;
/// log2 of the least ring that the sets have a shape for.
const LEAST_RING: u32 = 9;

/// A set for the refresh of integers as arrays use it.
#[derive(Clone, Debug)]
pub struct Arrays {
    name: RefreshSet,
    set: RefreshParams,
}

/// Level, plaintext factor and noise of a ciphertext; `None` for what the server sees.
type Known = Option<(usize, State)>;
/// A backend that computes nothing, with the scheme's bounds.
type Dry = Evaluator<Bgv, Simulated>;

/// An operand, block by block.
enum Side<'v> {
    Encrypted(&'v [Ciphertext]),
    Plain(Vec<Plaintext>),
}

impl Arrays {
    /// A set, or where no security is claimed its shape over a small ring. Built once in a process.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for more security than the set has; [`MatrixError::Exact`].
    pub fn new(name: RefreshSet, security: Security) -> Result<Self, MatrixError> {
        static KNOWN: Memo<(RefreshSet, bool), RefreshParams> = Memo::new();
        let (literal, insecure) = (name.literal(), security == Security::Insecure);
        if literal.params.security < security {
            let (found, wanted) = (literal.params.security.bits(), security.bits());
            return refuse(format!(
                "set {name} has {found} bits of security, and {wanted} are asked for; ask for {found}"
            ));
        }
        let set = match KNOWN.get(&(name, insecure)) {
            Some(known) => known,
            None => {
                let small = LEAST_RING + u32::from(literal.half());
                let literal = if insecure { literal.insecure(small)? } else { literal };
                KNOWN.insert((name, insecure), literal.build()?)
            }
        };
        Ok(Self { name, set: set.clone() })
    }

    /// The set's name.
    pub fn name(&self) -> RefreshSet {
        self.name
    }

    /// The set.
    pub fn set(&self) -> &RefreshParams {
        &self.set
    }

    /// The parameters of ciphertexts.
    pub fn params(&self) -> &IntegerParams {
        self.set.params()
    }

    /// The largest absolute value that is an integer of its own modulo t.
    pub fn largest(&self) -> i128 {
        i128::from(self.params().t() / 2)
    }

    /// Ciphertexts of an array of this shape.
    pub fn count(&self, (rows, cols): (usize, usize)) -> usize {
        rows.saturating_mul(cols).div_ceil(self.params().slots())
    }

    /// Bytes of a fresh ciphertext.
    pub fn ciphertext_bytes(&self) -> u64 {
        16 * self.params().degree() as u64 * (self.set.output().0 as u64 + 1)
    }

    /// An evaluator that computes nothing.
    fn dry(&self) -> Result<Dry, MatrixError> {
        Ok(Evaluator::with_backend(self.params(), Simulated::new(self.params().rlwe()))?)
    }

    /// What an input is, under the public key or the secret one: the larger noise of both.
    fn fresh(&self, e: &Dry, count: usize) -> Result<CiphertextOf<Bgv, Simulated>, MatrixError> {
        Ok(e.encryptions(self.set.output().0, count)?)
    }

    /// Blocks of matrices, one matrix after the other.
    fn encode(&self, matrices: &[Matrix<i128>]) -> Result<Vec<Plaintext>, MatrixError> {
        let (encoder, t) = (Encoder::new(self.params()), i128::from(self.params().t()));
        let blocks: Vec<&[i128]> = matrices.iter().flat_map(|m| m.data().chunks(self.params().slots())).collect();
        let one = |at: usize| {
            let residues: Vec<u64> = blocks[at].iter().map(|x| x.rem_euclid(t) as u64).collect();
            encoder.encode_unsigned(&residues, Packing::Slots, Wrap::Refuse)
        };
        Ok(threads::map(blocks.len(), one).into_iter().collect::<Result<_, _>>()?)
    }

    /// Encrypts arrays, one after the other, with the noise that a plan allows for.
    ///
    /// # Errors
    /// [`MatrixError::Exact`] for another key's parameters.
    pub fn encrypt(
        &self,
        matrices: &[Matrix<i128>],
        key: EncryptionKey<'_>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        let (params, plain, done) = (self.params(), self.encode(matrices)?, AtomicUsize::new(0));
        let (level, encryptor) = (self.set.output().0, key.encryptor(params)?);
        let noise = self.fresh(&self.dry()?, 1)?.noise();
        progress(0, plain.len());
        let one = |at: usize| {
            let made = encryptor.encrypt_at(&plain[at], level)?;
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, plain.len());
            Ciphertext::from_parts(params, made.inner().clone(), State { noise, ..made.state() })
        };
        Ok(threads::map(plain.len(), one).into_iter().collect::<Result<_, _>>()?)
    }

    /// Decrypts arrays of a shape whose elements are up to `bound`: the integers themselves where t tells them apart, and
    /// else what they are modulo t, from 0 on.
    ///
    /// # Errors
    /// [`MatrixError::Exact`] for another key.
    pub fn decrypt(
        &self,
        ((rows, cols), bound): ((usize, usize), i128),
        values: &[Ciphertext],
        secret: &SecretKey,
    ) -> Result<Vec<Matrix<i128>>, MatrixError> {
        let decryptor = Decryptor::new(self.params(), secret)?;
        let plain = threads::map(values.len(), |at| decryptor.decrypt(&values[at]));
        self.decode(((rows, cols), bound), &plain.into_iter().collect::<Result<Vec<_>, ExactError>>()?)
    }

    /// Matrices of a shape from what was decrypted.
    fn decode(
        &self,
        ((rows, cols), bound): ((usize, usize), i128),
        plain: &[Plaintext],
    ) -> Result<Vec<Matrix<i128>>, MatrixError> {
        let encoder = Encoder::new(self.params());
        let one = |at: usize| encoder.decode_unsigned(&plain[at], Packing::Slots);
        let blocks = threads::map(plain.len(), one).into_iter().collect::<Result<Vec<_>, ExactError>>()?;
        let (t, whole) = (i128::from(self.params().t()), bound <= self.largest());
        let shown = |x: &u64| match i128::from(*x) {
            x if whole && x > t / 2 => x - t,
            x => x,
        };
        let members = blocks.chunks(self.count((rows, cols)).max(1)).map(|member| {
            let elements = member.iter().flatten().take(rows * cols).map(shown).collect();
            Ok(Matrix::<i128>::new(rows, cols, elements)?)
        });
        members.collect()
    }

    /// The norm of any plaintext that multiplies.
    fn norm(&self) -> f64 {
        self.params().degree() as f64 * self.params().t() as f64 / 2.0 * MARGIN
    }

    fn factor<B: Backend>(
        &self,
        e: &Evaluator<Bgv, B>,
        make: impl FnOnce() -> Result<Plaintext, ExactError>,
    ) -> Result<PlainFactor<B::Plaintext>, ExactError> {
        e.factor_within(self.set.output().0, self.norm(), make)
    }

    /// What an operation makes of a block of each operand, and of the number that it adds.
    fn computed<B: Backend>(
        e: &Evaluator<Bgv, B>,
        operation: &Operation,
        terms: &[Term<'_, B>],
    ) -> Result<CiphertextOf<Bgv, B>, ExactError> {
        match terms {
            [Term::Encrypted(x), Term::Encrypted(y)] if multiplies(operation) => e.mul_relin(x, y),
            _ => elementwise(e, operation, terms),
        }
    }

    /// The same where nothing is computed, of which a refresh has to be able to take what comes out.
    fn predicted(
        &self,
        e: &Dry,
        operation: &Operation,
        operands: &[Option<&CiphertextOf<Bgv, Simulated>>],
    ) -> Result<CiphertextOf<Bgv, Simulated>, MatrixError> {
        let factor = self.factor(e, || Err(no_operand()))?;
        let mut terms: Vec<Term<'_, Simulated>> = Vec::with_capacity(operands.len() + 1);
        for operand in operands {
            terms.push(match operand {
                Some(known) => Term::Encrypted(known),
                None if multiplies(operation) => Term::Factor(&factor),
                None => Term::Plain(None),
            });
        }
        terms.extend(number_added(operation).map(|_| Term::Plain(None)));
        let made = Self::computed(e, operation, &terms)?;
        match self.set.takes(&made) {
            true => Ok(made),
            false => self.no_room(operation),
        }
    }

    fn no_room<T>(&self, operation: &Operation) -> Result<T, MatrixError> {
        let (name, operation) = (self.name, operation.name());
        refuse(format!(
            "set {name} has no room for {operation} between two refreshes; take set X16, or smaller numbers"
        ))
    }

    /// What is known of a value that was just refreshed.
    fn refreshed(&self) -> (usize, State) {
        let (level, noise) = self.set.output();
        (level, State { factor: Bgv::fresh_factor(self.params(), level), noise })
    }

    /// The operands that are refreshed before an operation, by their names, of which equal ones are one value: as few as can
    /// be, of those the lowest. What may not be refreshed has no name.
    fn chosen(
        &self,
        e: &Dry,
        operation: &Operation,
        operands: &[(Option<usize>, Known)],
    ) -> Result<Vec<usize>, MatrixError> {
        let mut names: Vec<(usize, usize)> =
            operands.iter().filter_map(|(name, known)| Some((known.as_ref()?.0, (*name)?))).collect();
        names.sort_unstable();
        names.dedup();
        let names: Vec<usize> = names.into_iter().map(|(_, name)| name).collect();
        let alone = names.iter().map(|name| vec![*name]);
        let mut tried = std::iter::once(Vec::new()).chain(alone).chain((names.len() > 1).then(|| names.clone()));
        let batch = |(level, state)| e.batch(level, 1, state);
        let serves = |some: &Vec<usize>| {
            let refreshed = |name: &Option<usize>| name.is_some_and(|name| some.contains(&name));
            let known = operands
                .iter()
                .map(|(name, known)| known.map(|own| if refreshed(name) { self.refreshed() } else { own }));
            let values: Vec<_> = known.map(|known| known.map(batch)).collect();
            self.predicted(e, operation, &values.iter().map(Option::as_ref).collect::<Vec<_>>()).is_ok()
        };
        match tried.find(serves) {
            Some(found) => Ok(found),
            None => self.no_room(operation),
        }
    }

    /// Refuses an operation that would move elements to other slots, or is none of integers.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`], with what to write instead.
    pub fn check(&self, operation: &Operation, shape: (usize, usize)) -> Result<(), MatrixError> {
        if stays(operation, shape) {
            return Ok(());
        }
        refuse(format!(
            "{} is not computed of integers that are refreshed; these have + - *, powers, numbers that are integers, \
             and operands of one shape, element by element: repeat or move elements before encryption, and sum them \
             after decryption",
            operation.name()
        ))
    }

    /// What an operation makes of operands of one shape; with a refresher, after a refresh of those that need one.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for one that the set has no room for; [`MatrixError::Count`] for operands of different sizes;
    /// [`MatrixError::Exact`].
    pub fn apply(
        &self,
        e: &Evaluator<Bgv>,
        refresher: Option<&Refresher>,
        operation: &Operation,
        operands: &[ExactOperand<'_>],
    ) -> Result<ExactValue, MatrixError> {
        if let Some(made) = ExactValue::of_plain(operation, operands)? {
            return Ok(made);
        }
        let mut sides = operands.iter().map(|operand| self.side(operand)).collect::<Result<Vec<_>, _>>()?;
        let count = sides.iter().map(Side::blocks).fold(0, usize::max);
        if let Some(other) = sides.iter().map(Side::blocks).find(|blocks| *blocks != count) {
            return Err(MatrixError::Count { what: "ciphertexts of an operand", found: other, expected: count });
        }
        if let Some(by) = number_added(operation) {
            let everywhere = Matrix::from_fn(1, self.params().slots(), |_, _| by)?;
            sides.push(Side::Plain(vec![self.encode(&[everywhere])?.swap_remove(0); count]));
        }
        let dry = self.dry()?;
        let made = threads::map(count, |at| self.block(e, (&dry, refresher), operation, (&sides, at)));
        Ok(ExactValue::Encrypted(vec![made.into_iter().collect::<Result<_, _>>()?]))
    }

    fn side<'v>(&self, operand: &ExactOperand<'v>) -> Result<Side<'v>, MatrixError> {
        Ok(match operand {
            ExactOperand::Encrypted(lists) => Side::Encrypted(only(lists)?),
            ExactOperand::Plain(matrices) => Side::Plain(self.encode(matrices)?),
        })
    }

    /// One block of an operation.
    fn block(
        &self,
        e: &Evaluator<Bgv>,
        (dry, refresher): (&Dry, Option<&Refresher>),
        operation: &Operation,
        (sides, at): (&[Side<'_>], usize),
    ) -> Result<Ciphertext, MatrixError> {
        let mut values: Vec<Option<Cow<'_, Ciphertext>>> = sides.iter().map(|side| side.encrypted(at)).collect();
        if let Some(refresher) = refresher {
            let names = values.iter().map(|value| {
                let own = value.as_deref();
                // Where an operand stands twice it has the name of the first.
                values.iter().position(|v| own.zip(v.as_deref()).is_some_and(|(a, b)| std::ptr::eq(a, b)))
            });
            let names: Vec<Option<usize>> = names.collect();
            let known = values.iter().map(|value| value.as_ref().map(|c| (c.level(), c.state())));
            let operands: Vec<_> = names.iter().copied().zip(known).take(operation.operands()).collect();
            for name in self.chosen(dry, operation, &operands)? {
                let Some(old) = &values[name] else { continue };
                let fresh = refresher.refresh(old)?;
                for (value, _) in values.iter_mut().zip(&names).filter(|(_, own)| **own == Some(name)) {
                    *value = Some(Cow::Owned(fresh.clone()));
                }
            }
        }
        let factor = |side: &Side<'_>| match side {
            Side::Plain(blocks) if multiplies(operation) => self.factor(e, || Ok(blocks[at].clone())).map(Some),
            _ => Ok(None),
        };
        let factors = sides.iter().map(factor).collect::<Result<Vec<_>, ExactError>>()?;
        let mut terms = Vec::with_capacity(sides.len());
        for ((side, value), factor) in sides.iter().zip(&values).zip(&factors) {
            terms.push(match (side, value, factor) {
                (_, Some(value), _) => Term::Encrypted(value),
                (_, None, Some(factor)) => Term::Factor(factor),
                (Side::Plain(blocks), ..) => Term::Plain(blocks.get(at)),
                (Side::Encrypted(_), ..) => return Err(no_operand().into()),
            });
        }
        Ok(Self::computed(e, operation, &terms)?)
    }
}

/// The ciphertexts under the only plaintext modulus.
fn only<T>(lists: &[T]) -> Result<&T, MatrixError> {
    match lists {
        [list] => Ok(list),
        _ => Err(MatrixError::Count { what: "plaintext moduli", found: lists.len(), expected: 1 }),
    }
}

impl<'v> Side<'v> {
    fn blocks(&self) -> usize {
        match self {
            Self::Encrypted(list) => list.len(),
            Self::Plain(list) => list.len(),
        }
    }

    fn encrypted(&self, at: usize) -> Option<Cow<'v, Ciphertext>> {
        if let Self::Encrypted(list) = self { list.get(at).map(Cow::Borrowed) } else { None }
    }
}

/// Which set computes an expression, and which of its values are refreshed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArraysSpec {
    /// The set.
    pub set: RefreshSet,
    /// Its ring and primes.
    pub params: ParamsLiteral,
    /// Nodes of the expression, ascending.
    pub after: Vec<usize>,
}

/// An expression of arrays of integers, and what it takes.
#[derive(Clone, Debug)]
pub struct ArraysPlan {
    arrays: Arrays,
    expr: Expr,
    batch: usize,
    spec: ArraysSpec,
    /// The set's parameters, as a list.
    moduli: [IntegerParams; 1],
    largest: i128,
    work: Work,
    refresh: Work,
    keys: KeyDemand,
    peak_bytes: u64,
    sizes: Vec<Size>,
}

/// Values of a simulation, node by node; none of plain ones.
type Values = Vec<Option<CiphertextOf<Bgv, Simulated>>>;

impl ArraysPlan {
    /// The plan of an expression by a set, for integers modulo `modulus`, or without one for results that t tells apart.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for operations that are not computed of arrays, plain values of more than 127 bits, a modulus
    /// that is not the set's, results that t does not hold, and sets without room, each with what to write instead.
    pub fn new(
        expr: &Expr,
        batch: usize,
        (name, modulus, security): (RefreshSet, Option<u64>, Security),
    ) -> Result<Self, MatrixError> {
        let arrays = Arrays::new(name, security)?;
        let (t, nodes) = (arrays.params().t(), expr.nodes());
        if modulus.is_some_and(|modulus| modulus != t) {
            return refuse(format!(
                "set {name} computes modulo {t}, and another modulus was asked for; say modulus={t}"
            ));
        }
        for (node, at) in nodes.iter().enumerate() {
            let Some(first) = at.operands.first() else { continue };
            match expr.is_plain(node) {
                true => check_plain(expr, bound_of(expr, node)?)?,
                false => arrays.check(&at.operation, expr.info(*first).shape)?,
            }
        }
        let own = |node: usize| expr.info(node).integers.is_some_and(|bound| bound <= arrays.largest());
        if let Some(node) = expr.results().find(|node| modulus.is_none() && !own(*node)) {
            return refuse(format!(
                "{} can be up to {:.1e}, and integers that are refreshed are computed modulo {t}, which holds up to {}; say \
                 modulus={t} if you want it modulo {t}, or what you know of it, x.bounded({})",
                expr.text(node),
                expr.info(node).max_abs,
                arrays.largest(),
                arrays.largest()
            ));
        }
        let after = arrays.placed(expr, batch)?;
        // Once more, and nothing but what is computed.
        let (e, mut values) = (arrays.dry()?, Values::new());
        for node in 0..nodes.len() {
            let value = arrays.value(&e, (expr, batch), (&values, &after), node)?;
            if let Some(input) = value.as_ref().filter(|_| expr.input_at(node).is_some()) {
                e.backend().encrypts(input.inner());
            }
            values.push(value);
        }
        expr.results().filter_map(|node| values[node].as_ref()).for_each(|value| e.backend().decrypts(value.inner()));
        let size = |value: &Option<CiphertextOf<Bgv, Simulated>>| {
            let inner = value.as_ref().map(CiphertextOf::<Bgv, Simulated>::inner);
            inner.map_or_else(Size::default, |c| Size { count: c.count(), parts: c.polynomials(), level: c.level() })
        };
        let (sizes, ledger) = (values.iter().map(size).collect(), e.backend().ledger());
        let spec =
            ArraysSpec { set: name, params: arrays.params().literal().clone(), after: after.into_iter().collect() };
        let keys = if spec.after.is_empty() { KeyDemand::from(&ledger) } else { KeyDemand::default() };
        let (work, refresh, peak_bytes) = (ledger.work, arrays.set().work()?, ledger.peak);
        let largest = bound_of(expr, expr.output())?.min(i128::from(t) - 1);
        Ok(Self {
            moduli: [arrays.params().clone()],
            arrays,
            expr: expr.clone(),
            batch,
            spec,
            largest,
            work,
            refresh,
            keys,
            peak_bytes,
            sizes,
        })
    }

    /// The same for a specification, which has to be what a planner makes.
    ///
    /// # Errors
    /// As [`ArraysPlan::new`]; [`MatrixError::PlanField`] for another set's primes, and refreshes at other places.
    pub fn checked(
        expr: &Expr,
        batch: usize,
        (modulus, security): (Option<u64>, Security),
        spec: &ArraysSpec,
    ) -> Result<Self, MatrixError> {
        let plan = Self::new(expr, batch, (spec.set, modulus, security))?;
        check_same(&spec.params, &plan.spec.params)?;
        match spec.after == plan.spec.after {
            true => Ok(plan),
            false => Err(field("after", format!("{:?}", spec.after), format!("{:?}", plan.spec.after))),
        }
    }

    /// Which set, and which values are refreshed.
    pub fn spec(&self) -> &ArraysSpec {
        &self.spec
    }

    /// The set.
    pub fn arrays(&self) -> &Arrays {
        &self.arrays
    }

    /// Work of encryption, computation and decryption, without the refreshes.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Work of the refresh of a ciphertext.
    pub fn refresh_work(&self) -> Work {
        self.refresh
    }

    /// The keys that a server needs; where values are refreshed, none but those of the refresh.
    pub fn keys(&self) -> &KeyDemand {
        &self.keys
    }

    /// Most bytes of ciphertexts that are in memory at once.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Ciphertexts of a node's value; none of a plain one.
    pub fn size(&self, node: usize) -> Size {
        self.sizes[node]
    }

    fn shape(&self, node: usize) -> (usize, usize) {
        self.expr.info(node).shape
    }
}

impl IntegerEngine for ArraysPlan {
    fn params(&self) -> &Params {
        self.arrays.params().rlwe()
    }

    fn moduli(&self) -> &[IntegerParams] {
        &self.moduli
    }

    fn refresh(&self) -> Option<&RefreshParams> {
        (!self.spec.after.is_empty()).then(|| self.arrays.set())
    }

    fn largest(&self) -> i128 {
        self.largest
    }

    fn check(&self, input: usize, matrices: &[Matrix<i128>]) -> Result<(), MatrixError> {
        check_integers(&self.expr, self.batch, input, matrices)
    }

    fn encrypt(
        &self,
        _node: usize,
        matrices: &[Matrix<i128>],
        key: EncryptionKey<'_>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Residues, MatrixError> {
        Ok(vec![self.arrays.encrypt(matrices, key, progress)?])
    }

    fn evaluate(
        &self,
        node: usize,
        by: (KeyId, &Arc<dyn KeySource>, Option<&Refresher>),
        operands: &[ExactOperand<'_>],
    ) -> Result<ExactValue, MatrixError> {
        let (_, keys, refresher) = by;
        let e = Evaluator::new(self.arrays.params(), keys.clone())?;
        let made = self.arrays.apply(&e, None, &self.expr.nodes()[node].operation, operands)?;
        match made {
            ExactValue::Encrypted(lists) if self.spec.after.contains(&node) => {
                let refresher = refresher.ok_or(RlweError::Internal { what: "a plan that refreshes without keys" })?;
                let fresh = |list: Vec<Ciphertext>| list.iter().map(|c| refresher.refresh(c)).collect();
                Ok(ExactValue::Encrypted(lists.into_iter().map(fresh).collect::<Result<_, ExactError>>()?))
            }
            made => Ok(made),
        }
    }

    fn decode(&self, node: usize, plain: &[Vec<Plaintext>]) -> Result<Vec<Matrix<i128>>, MatrixError> {
        self.arrays.decode((self.shape(node), bound_of(&self.expr, node)?), only(plain)?)
    }
}

impl Arrays {
    /// A node's value in a simulation, refreshed where it is said to be.
    fn value(
        &self,
        e: &Dry,
        (expr, batch): (&Expr, usize),
        (values, after): (&Values, &BTreeSet<usize>),
        node: usize,
    ) -> Result<Option<CiphertextOf<Bgv, Simulated>>, MatrixError> {
        let (at, count) = (&expr.nodes()[node], self.count(expr.info(node).shape).saturating_mul(batch));
        if expr.info(node).plain {
            return Ok(None);
        }
        if expr.input_at(node).is_some() {
            return self.fresh(e, count).map(Some);
        }
        let operands: Vec<_> = at.operands.iter().map(|operand| values[*operand].as_ref()).collect();
        let made = self.predicted(e, &at.operation, &operands)?;
        let (level, state) = self.refreshed();
        Ok(Some(if after.contains(&node) { e.batch(level, count, state) } else { made }))
    }

    /// The nodes after which values are refreshed: as late as can be, and of operands that both would do the one with fewer
    /// levels left.
    fn placed(&self, expr: &Expr, batch: usize) -> Result<BTreeSet<usize>, MatrixError> {
        let (e, mut values, mut after) = (self.dry()?, Values::new(), BTreeSet::new());
        while values.len() < expr.nodes().len() {
            let node = values.len();
            let at = &expr.nodes()[node];
            if !expr.info(node).plain && !at.operands.is_empty() {
                let named = |operand: &usize| {
                    let known = values[*operand].as_ref().map(|c| (c.level(), c.state()));
                    let done = after.contains(operand) || expr.input_at(*operand).is_some();
                    ((!done).then_some(*operand), known)
                };
                let operands: Vec<_> = at.operands.iter().map(named).collect();
                let chosen = self.chosen(&e, &at.operation, &operands)?;
                if let Some(first) = chosen.iter().min() {
                    // What took the value before takes it refreshed.
                    values.truncate(*first);
                    after.extend(chosen);
                    continue;
                }
            }
            values.push(self.value(&e, (expr, batch), (&values, &after), node)?);
        }
        Ok(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sudare_exact::refresh::RefreshKeys;
    use sudare_expr::{InputSpec, Node};

    /// x ↦ x², `count` times, of integers modulo t.
    fn squares(count: usize) -> Expr {
        let nodes = std::iter::once(Node::input(0)).chain((0..count).map(|k| Node::new(Operation::Mul, &[k, k])));
        Expr::new(vec![InputSpec::integers("x", (20, 30), 300)], nodes.collect(), count).unwrap()
    }

    fn plan(expr: &Expr, set: RefreshSet) -> ArraysPlan {
        let t = Arrays::new(set, Security::Insecure).unwrap().params().t();
        ArraysPlan::new(expr, 1, (set, Some(t), Security::Insecure)).unwrap()
    }

    /// As few refreshes as products ask for, computed as predicted: levels, noise bounds, values.
    #[test]
    fn simulation_is_the_run_of_arrays() {
        for (set, count) in [(RefreshSet::X15, 7), (RefreshSet::X16, 22)] {
            let expr = squares(count);
            let plan = plan(&expr, set);
            let products = plan.arrays.set().products()[1];
            assert_eq!(plan.spec.after.len(), count.div_ceil(products) - 1, "{set}: {:?}", plan.spec.after);
            let secret = SecretKey::generate(plan.params()).unwrap();
            let refresher = Refresher::new(RefreshKeys::generate(&secret, plan.arrays.set()).unwrap(), None).unwrap();
            let x = Matrix::<i128>::from_fn(20, 30, |i, j| (i * 31 + j) as i128 % 601 - 300).unwrap();
            let mut value =
                plan.encrypt(0, std::slice::from_ref(&x), EncryptionKey::Secret(&secret), &|_, _| {}).unwrap();
            let t = i128::from(plan.arrays.params().t());
            let mut wanted: Vec<i128> = x.data().iter().map(|x| x.rem_euclid(t)).collect();
            let dry = plan.arrays.dry().unwrap();
            let after = plan.spec.after.iter().copied().collect();
            let mut values = vec![plan.arrays.value(&dry, (&expr, 1), (&Vec::new(), &after), 0).unwrap()];
            for node in 1..=count {
                let operands = [0, 1].map(|_| ExactOperand::Encrypted(value.iter().map(Vec::as_slice).collect()));
                let by = (secret.id(), refresher.keys(), Some(&refresher));
                let ExactValue::Encrypted(made) = plan.evaluate(node, by, &operands).unwrap() else { panic!("plain") };
                values.push(plan.arrays.value(&dry, (&expr, 1), (&values, &after), node).unwrap());
                let known = values[node].as_ref().unwrap();
                assert_eq!(made[0].len(), known.inner().count());
                assert!(
                    made[0].iter().all(|c| (c.level(), c.state()) == (known.level(), known.state())),
                    "{set}: {node}"
                );
                wanted.iter_mut().for_each(|x| *x = *x * *x % t);
                value = made;
            }
            let lists: Vec<&[Ciphertext]> = value.iter().map(Vec::as_slice).collect();
            assert_eq!(plan.decrypt(count, &lists, &secret).unwrap()[0].data(), wanted, "{set}");
        }
    }

    /// Operands that can be refreshed are; an input never has to be.
    #[test]
    fn what_is_carried_is_refreshed() {
        let mut nodes = vec![Node::input(0), Node::input(1)];
        for _ in 0..12 {
            let last = nodes.len() - 1;
            let last = if last == 1 { 0 } else { last };
            nodes.push(Node::new(Operation::Mul, &[1, last]));
            nodes.push(Node::new(Operation::Shift { by: 5.0 }, &[nodes.len() - 1]));
        }
        let inputs = vec![InputSpec::integers("x", (3, 1), 9), InputSpec::integers("y", (3, 1), 9)];
        let end = nodes.len() - 1;
        let found = plan(&Expr::new(inputs, nodes, end).unwrap(), RefreshSet::X15);
        assert!((3..=4).contains(&found.spec.after.len()), "{:?}", found.spec.after);
        assert!(found.spec.after.iter().all(|node| *node >= 2));
        let mut other = found.spec.clone();
        other.after.pop();
        let refused = ArraysPlan::checked(&found.expr, 1, (Some(65537), Security::Insecure), &other).unwrap_err();
        assert!(matches!(refused, MatrixError::PlanField { field: "after", .. }), "{refused}");
    }

    #[test]
    fn refusals_name_the_remedy() {
        let of = |expr: &Expr, modulus| ArraysPlan::new(expr, 1, (RefreshSet::X15, modulus, Security::Insecure));
        let reason = |expr: &Expr, modulus| of(expr, modulus).unwrap_err().to_string();
        assert!(reason(&squares(3), None).contains("say modulus=65537"));
        assert!(reason(&squares(3), Some(257)).contains("say modulus=65537"));
        let with = |operation: Operation| {
            let nodes = vec![Node::input(0), Node::new(operation, &[0])];
            Expr::new(vec![InputSpec::integers("x", (4, 4), 3)], nodes, 1).unwrap()
        };
        for operation in [Operation::Sum { axis: 0 }, Operation::Transpose, Operation::Scale { by: 0.5 }] {
            assert!(reason(&with(operation), Some(65537)).contains("element by element"));
        }
        // Of plain values too: what is none of integers, and what 127 bits may not hold.
        let plain = |operation: Operation, operands: &[usize], bound: u128| {
            let inputs = vec![
                InputSpec::integers("x", (4, 4), 3),
                InputSpec { plain: true, ..InputSpec::integers("w", (4, 4), bound) },
            ];
            let nodes = vec![
                Node::input(0),
                Node::input(1),
                Node::new(operation, operands),
                Node::new(Operation::Mul, &[0, 2]),
            ];
            Expr::new(inputs, nodes, 3).unwrap()
        };
        assert!(reason(&plain(Operation::Scale { by: 0.5 }, &[1], 9), Some(65537)).contains("divide after decryption"));
        assert!(reason(&plain(Operation::Mul, &[1, 1], 1 << 70), Some(65537)).contains("127 bits"));
        let high = Arrays::new(RefreshSet::X15, Security::Bits256).unwrap_err();
        assert!(high.to_string().contains("ask for 128"), "{high}");
    }
}
