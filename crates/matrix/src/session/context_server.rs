//! The side of a context that computes.

use super::client::expect_params;
use super::context::{ContextMatrix, ContextSpec, public_bound};
use super::server::{evaluator, trivial};
use crate::error::MatrixError;
use crate::matrix::Matrix;
use crate::plan::circuit::{cube_plan, is_integer, matmul, same_scale};
use crate::product::KeyDemand;
use crate::slots::common::{KeyList, mask_values, plain_mask, stages};
use crate::slots::cube::{Cube, Improvements, Side};
use crate::slots::tiles::{Axis, TileLayout};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use sudare_he::circuits::bootstrapping::Bootstrapper;
use sudare_he::circuits::linear_map::LinearMap;
use sudare_he::ckks::{Ciphertext, EncodeAt, Encoder, Evaluator, Params, Plaintext};
use sudare_ring::memo::Memo;
use sudare_ring::{Threads, threads};
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::{KeyId, RlweError};

/// Tiles that are refreshed together.
const TOGETHER: usize = 2;

/// Things that are made once for each level that asks for them.
type PerLevel<T> = Memo<usize, T>;

/// Computes on the matrices of a context: every operation at every level. Holds evaluation keys
/// and nothing secret. Cloning shares it.
#[derive(Clone)]
pub struct ContextServer(Arc<Inner>);

struct Inner {
    spec: ContextSpec,
    keys: Arc<EvalKeys>,
    evaluator: Evaluator,
    bootstrapper: Option<Bootstrapper>,
    /// The level at which a matrix has to be refreshed, and that of a fresh one.
    levels: (usize, usize),
    threads: Arc<Threads>,
    cubes: PerLevel<Cube>,
    transpositions: PerLevel<Option<LinearMap>>,
    masks: PerLevel<Plaintext>,
}

/// What a level has, made if it is asked for the first time.
fn at_level<T>(
    known: &PerLevel<T>,
    level: usize,
    make: impl FnOnce() -> Result<T, MatrixError>,
) -> Result<&T, MatrixError> {
    match known.get(&level) {
        Some(found) => Ok(found),
        None => Ok(known.insert(level, make()?)),
    }
}

impl ContextServer {
    /// A server with a client's evaluation keys, on `threads` threads (0: one for each
    /// processor). It refreshes nothing: bootstrapping keys do not travel yet.
    ///
    /// # Errors
    /// [`MatrixError::Wire`] if the keys are for other parameters than the specification's.
    pub fn new(spec: &ContextSpec, keys: EvalKeys, threads: usize) -> Result<Self, MatrixError> {
        Self::with_threads(spec, keys, None, Arc::new(Threads::new(threads)))
    }

    pub(super) fn with_threads(
        spec: &ContextSpec,
        keys: EvalKeys,
        bootstrapper: Option<Bootstrapper>,
        threads: Arc<Threads>,
    ) -> Result<Self, MatrixError> {
        let params = spec.params.build()?;
        expect_params(&params, keys.params())?;
        let (keys, evaluator) = evaluator(&params, keys)?;
        Ok(Self(Arc::new(Inner {
            spec: spec.clone(),
            keys,
            evaluator,
            bootstrapper,
            levels: spec.levels()?,
            threads,
            cubes: Memo::new(),
            transpositions: Memo::new(),
            masks: Memo::new(),
        })))
    }

    /// The keys of all operations, at the highest level that each can meet.
    pub(super) fn demand(spec: &ContextSpec) -> Result<KeyDemand, MatrixError> {
        let (literal, (_, top)) = (&spec.params, spec.levels()?);
        let mut keys = KeyList::new(literal);
        let cube = cube_plan(literal, spec.tile, Improvements::ALL, top)?;
        cube.expand_keys(Side::Left, &mut keys);
        cube.expand_keys(Side::Right, &mut keys);
        cube.contract_keys(&mut keys);
        for unit in [spec.stride(), spec.tile * spec.stride()] {
            keys.stages(&stages(spec.tile, unit as i64, 2), top);
        }
        keys.demanded(&spec.layout(spec.tile, spec.tile)?.transposition_keys(literal, top));
        Ok(keys.demand(Some(top)))
    }

    /// What it was made for.
    pub fn spec(&self) -> &ContextSpec {
        &self.0.spec
    }

    /// The evaluation keys that it computes with.
    pub fn eval_keys(&self) -> &EvalKeys {
        &self.0.keys
    }

    /// The evaluator with its counters and keys.
    pub fn evaluator(&self) -> &Evaluator {
        &self.0.evaluator
    }

    /// The name of the secret key whose data it computes on.
    pub fn key_id(&self) -> KeyId {
        self.evaluator().keys().id()
    }

    /// How many threads work.
    pub fn threads(&self) -> usize {
        self.0.threads.count()
    }

    pub(super) fn params(&self) -> &Params {
        self.0.evaluator.params()
    }

    /// Levels of a fresh matrix, down to the next refresh.
    pub fn levels(&self) -> usize {
        self.0.levels.1 - self.0.levels.0
    }

    /// Levels that a matrix has left, down to the next refresh.
    pub fn levels_left(&self, m: &ContextMatrix) -> usize {
        m.level().saturating_sub(self.0.levels.0)
    }

    /// Bytes of its keys in memory, and of what bootstrapping has prepared.
    pub fn bytes(&self) -> usize {
        self.evaluator().keys().bytes() + self.0.bootstrapper.as_ref().map_or(0, Bootstrapper::bytes)
    }

    /// How a matrix is encoded.
    pub(super) fn fresh(&self, encoder: &Encoder, bound: f64) -> EncodeAt {
        EncodeAt { level: self.0.levels.1, ..encoder.at_top(bound) }
    }

    /// The same matrix with the levels of a fresh one. Elements are up to `max_abs`, or without one up to the bound
    /// that the matrix carries; what lies beside it in slots may not be larger either. One level where the bound
    /// times the scale is over the set's scale.
    ///
    /// # Errors
    /// [`MatrixError::NoBootstrap`]; [`MatrixError::OutOfDepth`] for a matrix that has to be scaled down first and has no
    /// level left for it; [`MatrixError::He`].
    pub fn refresh(&self, a: &ContextMatrix, max_abs: Option<f64>) -> Result<ContextMatrix, MatrixError> {
        let bound = max_abs.unwrap_or(a.max_abs);
        if bound.is_nan() || bound <= 0.0 {
            return Err(RlweError::Parameters { reason: format!("a bound is a number above zero, not {bound}") }.into());
        }
        let bound = bound.min(a.max_abs);
        let b = self.0.bootstrapper.as_ref().ok_or(MatrixError::NoBootstrap)?;
        let full = f64::from(self.0.spec.params.log_scale).exp2();
        let fits = a.scale() * bound <= b.params().largest_product();
        if !fits {
            self.needs("a refresh of values that large", a.level(), 1)?;
        }
        let tiles = self.run(&[a], |e| {
            let scale = full / bound.max(1.0).log2().ceil().exp2();
            let a: Vec<Ciphertext> = a.ciphertexts().iter().map(|c| c.clone().with_bound(bound)).collect();
            let lowered = match fits {
                true => a,
                false => each(&a, |c| Ok(e.set_scale(c, scale)?))?,
            };
            // Few at a time: each takes as much memory as keys do.
            let mut out = Vec::new();
            for some in lowered.chunks(TOGETHER) {
                out.extend(b.refresh_many_real(&some.iter().collect::<Vec<_>>())?);
            }
            Ok(out)
        })?;
        Ok(ContextMatrix::new(a.layout, bound, a.clean, tiles))
    }

    fn needs(&self, operation: &'static str, level: usize, needed: usize) -> Result<(), MatrixError> {
        let level = level.saturating_sub(self.0.levels.0);
        if level < needed {
            return Err(MatrixError::OutOfDepth { operation, needed, level, depth: self.0.spec.depth });
        }
        Ok(())
    }

    /// Runs on the tiles of an operand of this context.
    fn run<T: Send>(
        &self,
        operands: &[&ContextMatrix],
        work: impl FnOnce(&Evaluator) -> Result<T, MatrixError> + Send,
    ) -> Result<T, MatrixError> {
        let e = &self.0.evaluator;
        operands.iter().flat_map(|m| m.ciphertexts()).try_for_each(|c| e.check(c))?;
        self.0.threads.run(|| work(e))
    }

    /// A matrix that the server sees, ready to compute with encrypted ones.
    ///
    /// # Errors
    /// [`MatrixError::Method`] for too large a matrix; [`MatrixError::He`] if the modulus cannot
    /// hold its elements.
    pub fn plain(&self, matrix: &Matrix) -> Result<ContextMatrix, MatrixError> {
        let layout = self.0.spec.layout(matrix.rows(), matrix.cols())?;
        let bound = public_bound(matrix);
        let tiles = self.0.threads.run(|| {
            let encoder = Encoder::new(self.params());
            let plain = layout.encode(&encoder, matrix, self.fresh(&encoder, bound))?;
            plain.iter().map(|p| Ok(trivial(self.params(), self.key_id(), p)?)).collect::<Result<Vec<_>, MatrixError>>()
        })?;
        Ok(ContextMatrix::new(layout, bound, true, tiles))
    }

    /// The matrix with zeros beside its tiles, as a matrix product takes it. One level if it is
    /// not so already.
    fn clean<'m>(&self, e: &Evaluator, m: &'m ContextMatrix) -> Result<Cow<'m, [Ciphertext]>, MatrixError> {
        let level = m.level();
        if m.clean {
            return Ok(Cow::Borrowed(m.ciphertexts()));
        }
        let mask = at_level(&self.0.masks, level, || {
            let (slots, square) = (self.params().slots(), m.layout.tile * m.layout.tile * m.layout.stride);
            plain_mask(self.params(), level, &mask_values(slots, 1.0, |i| i < square))
        })?;
        each(m.ciphertexts(), |c| Ok(e.rescale(&e.mul_plain(c, mask)?)?.with_bound(c.bound()))).map(Cow::Owned)
    }

    /// `a @ b`. Two levels, and one more if an operand comes from a matrix product.
    ///
    /// # Errors
    /// [`MatrixError::Shapes`], [`MatrixError::OutOfDepth`], [`MatrixError::He`].
    pub fn matmul(&self, a: &ContextMatrix, b: &ContextMatrix) -> Result<ContextMatrix, MatrixError> {
        let (left, right) = (a.shape(), b.shape());
        if left.1 != right.0 {
            return Err(MatrixError::Shapes { operation: "matrix product", left, right });
        }
        for m in [a, b] {
            self.needs("a matrix product", m.level(), if m.clean { 2 } else { 3 })?;
        }
        let layout = TileLayout { cols: right.1, ..a.layout };
        let tiles = self.run(&[a, b], |e| {
            let (x, y) = (self.clean(e, a)?, self.clean(e, b)?);
            let level = x.iter().chain(&*y).map(Ciphertext::level).min().unwrap_or(0);
            let cube = at_level(&self.0.cubes, level, || {
                let plan = cube_plan(&self.0.spec.params, self.0.spec.tile, Improvements::ALL, level)?;
                Cube::new(self.params(), plan)
            })?;
            matmul(e, cube, (&a.layout, &x), (&b.layout, &y))
        })?;
        Ok(ContextMatrix::new(layout, left.1 as f64 * a.max_abs * b.max_abs, false, tiles))
    }

    /// Both operands at one scale.
    fn aligned(
        &self,
        e: &Evaluator,
        operation: &'static str,
        a: &ContextMatrix,
        b: &ContextMatrix,
    ) -> Result<(Vec<Ciphertext>, Vec<Ciphertext>), MatrixError> {
        let (x, y) = (a.ciphertexts().to_vec(), b.ciphertexts().to_vec());
        if same_scale(a.scale(), b.scale()) {
            return Ok((x, y));
        }
        let (higher, scale) = if a.level() >= b.level() { (a, b.scale()) } else { (b, a.scale()) };
        self.needs(operation, higher.level(), 1)?;
        let moved = each(higher.ciphertexts(), |c| Ok(e.set_scale(c, scale)?))?;
        Ok(if a.level() >= b.level() { (moved, y) } else { (x, moved) })
    }

    /// `a + b`. One level where their scales differ, of the one that has more.
    ///
    /// # Errors
    /// As [`ContextServer::matmul`].
    pub fn add(&self, a: &ContextMatrix, b: &ContextMatrix) -> Result<ContextMatrix, MatrixError> {
        same_shape("addition", a, b)?;
        let tiles = self.run(&[a, b], |e| {
            let (x, y) = self.aligned(e, "a sum", a, b)?;
            a.layout.add(e, &x, &y)
        })?;
        Ok(ContextMatrix::new(a.layout, a.max_abs + b.max_abs, a.clean && b.clean, tiles))
    }

    /// `a − b`. As [`ContextServer::add`].
    ///
    /// # Errors
    /// As [`ContextServer::matmul`].
    pub fn sub(&self, a: &ContextMatrix, b: &ContextMatrix) -> Result<ContextMatrix, MatrixError> {
        same_shape("subtraction", a, b)?;
        let tiles = self.run(&[a, b], |e| {
            let (x, y) = self.aligned(e, "a difference", a, b)?;
            a.layout.sub(e, &x, &y)
        })?;
        Ok(ContextMatrix::new(a.layout, a.max_abs + b.max_abs, a.clean && b.clean, tiles))
    }

    /// `a * b`, element by element. One level.
    ///
    /// # Errors
    /// As [`ContextServer::matmul`].
    pub fn mul(&self, a: &ContextMatrix, b: &ContextMatrix) -> Result<ContextMatrix, MatrixError> {
        same_shape("element-wise product", a, b)?;
        self.needs("a product element by element", a.level().min(b.level()), 1)?;
        let tiles = self.run(&[a, b], |e| a.layout.mul(e, a.ciphertexts(), b.ciphertexts()))?;
        Ok(ContextMatrix::new(a.layout, a.max_abs * b.max_abs, a.clean && b.clean, tiles))
    }

    /// `−a`. No level.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn neg(&self, a: &ContextMatrix) -> Result<ContextMatrix, MatrixError> {
        let tiles = self.run(&[a], |e| each(a.ciphertexts(), |c| Ok(e.negate(c)?)))?;
        Ok(ContextMatrix::new(a.layout, a.max_abs, a.clean, tiles))
    }

    /// `a · by`. One level, or none for an integer up to 2^20.
    ///
    /// # Errors
    /// [`MatrixError::OutOfDepth`], [`MatrixError::He`].
    pub fn scale(&self, a: &ContextMatrix, by: f64) -> Result<ContextMatrix, MatrixError> {
        let integer = is_integer(by);
        self.needs("a product with a number", a.level(), usize::from(!integer))?;
        let tiles = self.run(&[a], |e| match integer {
            true => each(a.ciphertexts(), |c| Ok(e.mul_integer(c, by as i64)?)),
            false => a.layout.mul_scalar(e, a.ciphertexts(), by),
        })?;
        Ok(ContextMatrix::new(a.layout, a.max_abs * by.abs(), a.clean, tiles))
    }

    /// `a + by`, to every element. No level.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn shift(&self, a: &ContextMatrix, by: f64) -> Result<ContextMatrix, MatrixError> {
        if by == 0.0 {
            return Ok(a.clone());
        }
        let (rows, cols) = a.shape();
        // Only the matrix itself: what is beside it stays zero.
        let all = Matrix::from_fn(rows, cols, |_, _| by)?;
        let tiles = self.run(&[a], |e| a.layout.add_plain(e, a.ciphertexts(), &all))?;
        Ok(ContextMatrix::new(a.layout, a.max_abs + by.abs(), a.clean, tiles))
    }

    /// The transpose. One level.
    ///
    /// # Errors
    /// [`MatrixError::OutOfDepth`], [`MatrixError::He`].
    pub fn transpose(&self, a: &ContextMatrix) -> Result<ContextMatrix, MatrixError> {
        let level = a.level();
        self.needs("a transpose", level, 1)?;
        let tiles = self.run(&[a], |e| {
            let map = at_level(&self.0.transpositions, level, || a.layout.transposition(self.params(), level))?;
            a.layout.transpose(e, map.as_ref(), a.ciphertexts())
        })?;
        Ok(ContextMatrix::new(a.layout.transposed(), a.max_abs, true, tiles))
    }

    /// The sum over an axis, which stays with length 1. One level.
    ///
    /// # Errors
    /// [`MatrixError::OutOfDepth`], [`MatrixError::He`].
    pub fn sum(&self, a: &ContextMatrix, axis: Axis) -> Result<ContextMatrix, MatrixError> {
        self.needs("a sum over an axis", a.level(), 1)?;
        let (rows, cols) = a.shape();
        let terms = if axis == Axis::Rows { rows } else { cols };
        let tiles = self.run(&[a], |e| a.layout.sum(e, axis, a.ciphertexts()))?;
        Ok(ContextMatrix::new(a.layout.summed(axis), terms as f64 * a.max_abs, true, tiles))
    }
}

/// One ciphertext from each, on all threads.
fn each(
    tiles: &[Ciphertext],
    work: impl Fn(&Ciphertext) -> Result<Ciphertext, MatrixError> + Sync,
) -> Result<Vec<Ciphertext>, MatrixError> {
    threads::map(tiles.len(), |i| work(&tiles[i])).into_iter().collect()
}

fn same_shape(operation: &'static str, a: &ContextMatrix, b: &ContextMatrix) -> Result<(), MatrixError> {
    if a.shape() != b.shape() {
        return Err(MatrixError::Shapes { operation, left: a.shape(), right: b.shape() });
    }
    Ok(())
}

impl fmt::Debug for ContextServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spec = self.spec();
        write!(f, "ContextServer(depth {}, tiles of {}, key {})", spec.depth, spec.tile, self.key_id())
    }
}
