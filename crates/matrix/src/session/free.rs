//! Computing without a plan: every operation at every level.

use super::context::{ContextSpec, public_bound};
use super::encrypted::{Encrypted, Tiled};
use super::server::trivial;
use crate::error::MatrixError;
use crate::expr::Op;
use crate::matrix::Matrix;
use crate::plan::PlanHash;
use crate::plan::circuit::{cube_plan, is_integer, matmul, same_scale};
use crate::product::KeyDemand;
use crate::slots::common::{KeyList, mask_values, plain_mask, stages};
use crate::slots::cube::{Cube, Improvements, Side};
use crate::slots::tiles::{Axis, TileLayout};
use std::borrow::Cow;
use sudare_he::circuits::bootstrapping::Bootstrapper;
use sudare_he::circuits::linear_map::LinearMap;
use sudare_he::ckks::{Ciphertext, EncodeAt, Encoder, Evaluator, Plaintext};
use sudare_ring::memo::Memo;
use sudare_ring::threads;
use sudare_rlwe::{KeyId, RlweError};

/// Tiles that are refreshed together.
const TOGETHER: usize = 2;

/// Things that are made once for each level that asks for them.
type PerLevel<T> = Memo<usize, T>;

/// What a server of a context has beside keys: tables for each level, made when one is first asked for.
pub(super) struct Free {
    spec: ContextSpec,
    hash: PlanHash,
    bootstrapper: Option<Bootstrapper>,
    /// The level at which a matrix has to be refreshed, and that of a fresh one.
    levels: (usize, usize),
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

impl Free {
    pub(super) fn new(spec: &ContextSpec, bootstrapper: Option<Bootstrapper>) -> Result<Self, MatrixError> {
        Ok(Self {
            spec: spec.clone(),
            hash: spec.hash()?,
            bootstrapper,
            levels: spec.levels()?,
            cubes: Memo::new(),
            transpositions: Memo::new(),
            masks: Memo::new(),
        })
    }

    /// What it was made for.
    pub(super) fn spec(&self) -> &ContextSpec {
        &self.spec
    }

    /// The name on its matrices.
    pub(super) fn hash(&self) -> PlanHash {
        self.hash
    }

    /// The level at which a matrix has to be refreshed, and that of a fresh one.
    pub(super) fn levels(&self) -> (usize, usize) {
        self.levels
    }

    /// Bytes of what bootstrapping has prepared.
    pub(super) fn bytes(&self) -> usize {
        self.bootstrapper.as_ref().map_or(0, Bootstrapper::bytes)
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

    /// How a matrix is encoded.
    pub(super) fn fresh(&self, encoder: &Encoder, bound: f64) -> EncodeAt {
        EncodeAt { level: self.levels.1, ..encoder.at_top(bound) }
    }

    /// A matrix of this context. Slots beside its tiles hold zeros if it is `clean`.
    pub(super) fn made(
        &self,
        layout: TileLayout,
        max_abs: f64,
        clean: bool,
        key: KeyId,
        tiles: Vec<Ciphertext>,
    ) -> Result<Encrypted, MatrixError> {
        Encrypted::tiled(self.hash, key, Tiled { layout, clean, floor: self.levels.0 }, max_abs, tiles)
    }

    fn needs(&self, operation: &'static str, level: usize, needed: usize) -> Result<(), MatrixError> {
        let level = level.saturating_sub(self.levels.0);
        if level < needed {
            return Err(MatrixError::OutOfDepth { operation, needed, level, depth: self.spec.depth });
        }
        Ok(())
    }

    /// A matrix that the server sees, ready to compute with encrypted ones.
    pub(super) fn plain(&self, e: &Evaluator, matrix: &Matrix) -> Result<Encrypted, MatrixError> {
        let (layout, key) = (self.spec.layout(matrix.rows(), matrix.cols())?, e.keys().id());
        let (bound, encoder) = (public_bound(matrix), Encoder::new(e.params()));
        let plain = layout.encode(&encoder, matrix, self.fresh(&encoder, bound))?;
        let tiles = plain.iter().map(|p| Ok(trivial(e.params(), key, p)?)).collect::<Result<Vec<_>, MatrixError>>()?;
        self.made(layout, bound, true, key, tiles)
    }

    /// The same matrix with the levels of a fresh one.
    pub(super) fn refresh(&self, e: &Evaluator, a: &Encrypted, max_abs: Option<f64>) -> Result<Encrypted, MatrixError> {
        let bound = max_abs.unwrap_or(a.max_abs());
        if bound.is_nan() || bound <= 0.0 {
            return Err(RlweError::Parameters { reason: format!("a bound is a number above zero, not {bound}") }.into());
        }
        let bound = bound.min(a.max_abs());
        let b = self.bootstrapper.as_ref().ok_or(MatrixError::NoBootstrap)?;
        let (cts, Tiled { layout, clean, .. }) = a.tiles()?;
        let full = f64::from(self.spec.params.log_scale).exp2();
        let fits = scale_of(cts) * bound <= b.params().largest_product();
        if !fits {
            self.needs("a refresh of values that large", a.level(), 1)?;
        }
        let scale = full / bound.max(1.0).log2().ceil().exp2();
        let bounded: Vec<Ciphertext> = cts.iter().map(|c| c.clone().with_bound(bound)).collect();
        let lowered = match fits {
            true => bounded,
            false => each(&bounded, |c| Ok(e.set_scale(c, scale)?))?,
        };
        // Few at a time: each takes as much memory as keys do.
        let mut out = Vec::new();
        for some in lowered.chunks(TOGETHER) {
            out.extend(b.refresh_many_real(&some.iter().collect::<Vec<_>>())?);
        }
        self.made(*layout, bound, *clean, a.key(), out)
    }

    /// Computes an operation on operands of one key; which nodes it names does not matter.
    ///
    /// Levels are used as [`ContextSpec::new`] says.
    pub(super) fn apply(&self, e: &Evaluator, op: Op, operands: &[&Encrypted]) -> Result<Encrypted, MatrixError> {
        let [a, others @ ..] = operands else {
            return Err(MatrixError::Count { what: "operands", found: 0, expected: op.operands().count() });
        };
        for v in operands {
            v.ciphertexts()?.iter().try_for_each(|c| e.check(c))?;
        }
        match (op, others) {
            (Op::Matmul { .. }, [b]) => self.matmul(e, a, b),
            (Op::Add { .. } | Op::Sub { .. }, [b]) => self.sum_of(e, op, a, b),
            (Op::Mul { .. }, [b]) => self.mul(e, a, b),
            _ => self.unary(e, op, a),
        }
    }

    fn unary(&self, e: &Evaluator, op: Op, a: &Encrypted) -> Result<Encrypted, MatrixError> {
        let ((cts, Tiled { layout, clean, .. }), bound, level) = (a.tiles()?, a.max_abs(), a.level());
        let (layout_after, max_abs, clean, tiles) = match op {
            Op::Neg { .. } => (*layout, bound, *clean, each(cts, |c| Ok(e.negate(c)?))?),
            Op::Scale { by, .. } if is_integer(by) => {
                (*layout, bound * by.abs(), *clean, each(cts, |c| Ok(e.mul_integer(c, by as i64)?))?)
            }
            Op::Scale { by, .. } => {
                self.needs("a product with a number", level, 1)?;
                (*layout, bound * by.abs(), *clean, layout.mul_scalar(e, cts, by)?)
            }
            Op::Shift { by: 0.0, .. } => return Ok(a.clone()),
            Op::Shift { by, .. } => {
                // Only the matrix itself: what is beside it stays zero.
                let all = Matrix::from_fn(layout.rows, layout.cols, |_, _| by)?;
                (*layout, bound + by.abs(), *clean, layout.add_plain(e, cts, &all)?)
            }
            Op::Transpose { .. } => {
                self.needs("a transpose", level, 1)?;
                let map = at_level(&self.transpositions, level, || layout.transposition(e.params(), level))?;
                (layout.transposed(), bound, true, layout.transpose(e, map.as_ref(), cts)?)
            }
            Op::Sum { axis: axis @ (0 | 1), .. } => {
                self.needs("a sum over an axis", level, 1)?;
                let (along, terms) = if axis == 0 { (Axis::Rows, layout.rows) } else { (Axis::Columns, layout.cols) };
                (layout.summed(along), terms as f64 * bound, true, layout.sum(e, along, cts)?)
            }
            _ => {
                let planned = "a context has products, sums, transposes, and sums over axes 0 and 1".into();
                return Err(MatrixError::NotPlanned { operation: op.name(), planned });
            }
        };
        self.made(layout_after, max_abs, clean, a.key(), tiles)
    }

    /// The matrix with zeros beside its tiles, as a matrix product takes it. One level if it is
    /// not so already.
    fn clean<'m>(&self, e: &Evaluator, m: &'m Encrypted) -> Result<Cow<'m, [Ciphertext]>, MatrixError> {
        let (level, (cts, Tiled { layout, clean, .. })) = (m.level(), m.tiles()?);
        if *clean {
            return Ok(Cow::Borrowed(cts));
        }
        let mask = at_level(&self.masks, level, || {
            let (slots, square) = (e.params().slots(), layout.tile * layout.tile * layout.stride);
            plain_mask(e.params(), level, &mask_values(slots, 1.0, |i| i < square))
        })?;
        each(cts, |c| Ok(e.rescale(&e.mul_plain(c, mask)?)?.with_bound(c.bound()))).map(Cow::Owned)
    }

    /// Two levels, and one more if an operand comes from a matrix product.
    fn matmul(&self, e: &Evaluator, a: &Encrypted, b: &Encrypted) -> Result<Encrypted, MatrixError> {
        let (left, right) = (a.tiles()?.1, b.tiles()?.1);
        for m in [a, b] {
            self.needs("a matrix product", m.level(), if m.tiles()?.1.clean { 2 } else { 3 })?;
        }
        let (x, y) = (self.clean(e, a)?, self.clean(e, b)?);
        let level = x.iter().chain(&*y).map(Ciphertext::level).min().unwrap_or(0);
        let cube = at_level(&self.cubes, level, || {
            let plan = cube_plan(&self.spec.params, self.spec.tile, Improvements::ALL, level)?;
            Cube::new(e.params(), plan)
        })?;
        let tiles = matmul(e, cube, (&left.layout, &x), (&right.layout, &y))?;
        let layout = TileLayout { cols: right.layout.cols, ..left.layout };
        self.made(layout, left.layout.cols as f64 * a.max_abs() * b.max_abs(), false, a.key(), tiles)
    }

    /// Sum or difference: one level where scales differ, of the operand that has more.
    fn sum_of(&self, e: &Evaluator, op: Op, a: &Encrypted, b: &Encrypted) -> Result<Encrypted, MatrixError> {
        let ((x, left), (y, right)) = (a.tiles()?, b.tiles()?);
        let aligned = |higher: &[Ciphertext], level: usize, scale: f64| {
            self.needs(op.name(), level, 1)?;
            each(higher, |c| Ok(e.set_scale(c, scale)?))
        };
        let (x, y) = match (same_scale(scale_of(x), scale_of(y)), a.level() >= b.level()) {
            (true, _) => (Cow::Borrowed(x), Cow::Borrowed(y)),
            (_, true) => (Cow::Owned(aligned(x, a.level(), scale_of(y))?), Cow::Borrowed(y)),
            (_, false) => (Cow::Borrowed(x), Cow::Owned(aligned(y, b.level(), scale_of(x))?)),
        };
        let tiles = match op {
            Op::Sub { .. } => left.layout.sub(e, &x, &y)?,
            _ => left.layout.add(e, &x, &y)?,
        };
        self.made(left.layout, a.max_abs() + b.max_abs(), left.clean && right.clean, a.key(), tiles)
    }

    /// One level.
    fn mul(&self, e: &Evaluator, a: &Encrypted, b: &Encrypted) -> Result<Encrypted, MatrixError> {
        self.needs("a product element by element", a.level().min(b.level()), 1)?;
        let ((x, left), (y, right)) = (a.tiles()?, b.tiles()?);
        let tiles = left.layout.mul(e, x, y)?;
        self.made(left.layout, a.max_abs() * b.max_abs(), left.clean && right.clean, a.key(), tiles)
    }
}

/// The scale of tiles, which is one.
pub(super) fn scale_of(tiles: &[Ciphertext]) -> f64 {
    tiles.first().map_or(1.0, Ciphertext::scale)
}

/// One ciphertext from each, on all threads.
fn each(
    tiles: &[Ciphertext],
    work: impl Fn(&Ciphertext) -> Result<Ciphertext, MatrixError> + Sync,
) -> Result<Vec<Ciphertext>, MatrixError> {
    threads::map(tiles.len(), |i| work(&tiles[i])).into_iter().collect()
}
