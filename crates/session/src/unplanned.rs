//! Computing without a plan: every operation at every level.

use super::context::{ContextSpec, public_bound};
use super::encrypted::Encrypted;
use super::layout::Layout;
use super::operations::{each, scale_of};
use super::server::trivial;
use std::borrow::Cow;
use sudare_expr::Matrix;
use sudare_he::circuits::bootstrapping::Bootstrapper;
use sudare_he::circuits::linear_map::LinearMap;
use sudare_he::ckks::{Batch, Ciphertext, EncodeAt, Encoder, Evaluator, Plaintext, State};
use sudare_methods::MatrixError;
use sudare_methods::circuit::{cube_plan, matmul};
use sudare_methods::error::PlanHash;
use sudare_methods::product::KeyDemand;
use sudare_methods::slots::cube::{Cube, Improvements};
use sudare_methods::slots::grid::GridLayout;
use sudare_methods::slots::tiles::Axis;
use sudare_plan::circuit::TOGETHER;
use sudare_ring::memo::Memo;
use sudare_rlwe::simulated::Simulated;
use sudare_rlwe::{KeyId, RlweError};

/// Things that are made once for each level that asks for them.
type PerLevel<T> = Memo<usize, T>;

/// What a server of a context has beside keys: tables for each level, made when one is first asked for.
pub(super) struct UnplannedServer {
    pub(super) spec: ContextSpec,
    hash: PlanHash,
    bootstrapper: Option<Bootstrapper>,
    /// The level at which a matrix has to be refreshed, and that of a fresh one.
    levels: (usize, usize),
    pub(super) cubes: PerLevel<Cube>,
    pub(super) transpositions: PerLevel<Option<LinearMap>>,
    pub(super) masks: PerLevel<Plaintext>,
}

/// What a level has, made if it is asked for the first time.
pub(super) fn at_level<T>(
    known: &PerLevel<T>,
    level: usize,
    make: impl FnOnce() -> Result<T, MatrixError>,
) -> Result<&T, MatrixError> {
    match known.get(&level) {
        Some(found) => Ok(found),
        None => Ok(known.insert(level, make()?)),
    }
}

impl UnplannedServer {
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
        let (params, (_, top)) = (spec.params.build()?, spec.levels()?);
        let e = Evaluator::with_backend(&params, Simulated::new(&params))?;
        let used = |elements: Vec<u64>| e.backend().takes(&elements, top);
        e.backend().relinearises(top);
        if let Some(columns) = spec.columns {
            used(GridLayout::new(1, 1, columns, params.literal())?.sum_elements(&params));
            return Ok(KeyDemand::from(&e.backend().ledger()));
        }
        let tiles = spec.tiles(spec.tile, spec.tile)?;
        let fresh = [e.encryptions(EncodeAt { level: top, scale: params.scale(), max_abs: 1.0 }, 1)?];
        let a = Batch::from(&fresh[..]);
        let cube = Cube::prepare(&e, cube_plan(params.literal(), spec.tile, Improvements::ALL, top)?)?;
        matmul(&e, &cube, (&tiles, a), (&tiles, a), false)?;
        for axis in [Axis::Rows, Axis::Columns] {
            tiles.sum(&e, axis, a)?;
        }
        tiles.transpose(&e, tiles.transposition(&e, top)?.as_ref(), a)?;
        used(tiles.line_elements(&params));
        Ok(KeyDemand::from(&e.backend().ledger()))
    }

    /// How a matrix is encoded.
    pub(super) fn fresh(&self, encoder: &Encoder, bound: f64) -> EncodeAt {
        EncodeAt { level: self.levels.1, ..encoder.at_top(bound) }
    }

    /// A matrix of this context.
    pub(super) fn made(
        &self,
        layout: Layout,
        max_abs: f64,
        key: KeyId,
        tiles: Vec<Ciphertext>,
    ) -> Result<Encrypted, MatrixError> {
        Encrypted::unplanned(self.hash, key, (layout, self.levels), max_abs, tiles)
    }

    pub(super) fn needs(&self, operation: &'static str, level: usize, needed: usize) -> Result<(), MatrixError> {
        match level < needed {
            true => Err(MatrixError::OutOfDepth { operation, needed, level, depth: self.spec.depth }),
            false => Ok(()),
        }
    }

    /// A matrix that the server sees, ready to compute with encrypted ones.
    pub(super) fn plain(&self, e: &Evaluator, matrix: &Matrix) -> Result<Encrypted, MatrixError> {
        let (layout, key) = (self.spec.layout(matrix.rows(), matrix.cols())?, e.keys().id());
        let (bound, encoder) = (public_bound(matrix), Encoder::new(e.params()));
        let plain = layout.encode(&encoder, matrix, self.fresh(&encoder, bound))?;
        let tiles = plain.iter().map(|p| Ok(trivial(e.params(), key, p)?)).collect::<Result<Vec<_>, MatrixError>>()?;
        self.made(layout, bound, key, tiles)
    }

    /// The same matrix, of which the caller knows that elements are up to `max_abs`. One level where a table has something
    /// beside it, for which that need not hold.
    pub(super) fn bounded(&self, e: &Evaluator, a: &Encrypted, max_abs: f64) -> Result<Encrypted, MatrixError> {
        let bound = known(a, Some(max_abs))?;
        let (layout, tiles) = self.at_bound(e, a, bound, scale_of(a.ciphertexts()?))?;
        self.made(layout, bound, a.key(), tiles)
    }

    /// The tiles of a matrix with a bound that the caller knows, at a scale. One level if that is another one, or if a
    /// table has to be cleaned of what lies beside it.
    ///
    /// Elements and what they stand for are within the bound, imaginary parts of their slots among them, which are errors
    /// alone; so that no error is over twice of it: the bound on errors that travels, made for the worst case of every operation, grows no further than that (a
    /// refresh adds that of the other one of its pair).
    fn at_bound(
        &self,
        e: &Evaluator,
        a: &Encrypted,
        bound: f64,
        scale: f64,
    ) -> Result<(Layout, Vec<Ciphertext>), MatrixError> {
        let (cts, layout) = a.tiles_and_layout()?;
        let unknown = bound < a.max_abs() && matches!(layout, Layout::Table(_)) && !layout.is_clean();
        let same = scale == scale_of(cts);
        if unknown || !same {
            self.needs("a bound of its own", a.levels_left(), 1)?;
        }
        let (layout, tiles) = match (unknown, same) {
            (true, _) => (layout.cleaned(), layout.masked(e, cts, scale)?),
            (_, true) => (*layout, cts.to_vec()),
            _ => (*layout, each(cts, |c| Ok(e.set_scale(c, scale)?))?),
        };
        let state = |c: &Ciphertext| {
            let noise = c.noise().min(2.0 * bound * c.scale());
            Ok(Ciphertext::from_parts(
                c.inner().clone(),
                State { scale: c.scale(), bound: c.bound().min(bound), noise },
            )?)
        };
        Ok((layout, tiles.iter().map(state).collect::<Result<_, MatrixError>>()?))
    }

    /// The same matrix with the levels of a fresh one.
    pub(super) fn refresh(&self, e: &Evaluator, a: &Encrypted, max_abs: Option<f64>) -> Result<Encrypted, MatrixError> {
        let bound = known(a, max_abs)?;
        let b = self.bootstrapper.as_ref().ok_or(MatrixError::NoBootstrap)?;
        let scale = scale_of(a.ciphertexts()?);
        let scale = match scale * bound <= b.params().largest_product() {
            true => scale,
            false => self.full_scale() / bound.max(1.0).log2().ceil().exp2(),
        };
        let (layout, tiles) = self.at_bound(e, a, bound, scale)?;
        // A pair at a time: each takes as much memory as keys do.
        let mut out = Vec::new();
        for some in tiles.chunks(TOGETHER) {
            out.extend(b.refresh_pairs(&some.iter().collect::<Vec<_>>())?);
        }
        self.made(layout, bound, a.key(), out)
    }

    pub(super) fn full_scale(&self) -> f64 {
        f64::from(self.spec.params.log_scale).exp2()
    }

    /// The matrix with at least `needed` levels, in a context that refreshes by itself: one is kept for the refresh, of which
    /// large values take it.
    pub(super) fn ready<'m>(
        &self,
        e: &Evaluator,
        m: &'m Encrypted,
        needed: usize,
    ) -> Result<Cow<'m, Encrypted>, MatrixError> {
        match self.spec.automatic && needed > 0 && m.levels_left() < needed + 1 {
            true => Ok(Cow::Owned(self.refresh(e, m, None)?)),
            false => Ok(Cow::Borrowed(m)),
        }
    }
}

/// What is known of a matrix's elements: the caller's word, where it is less than the bound that travels.
pub(super) fn known(a: &Encrypted, max_abs: Option<f64>) -> Result<f64, MatrixError> {
    Ok(positive(max_abs.unwrap_or(a.max_abs()))?.min(a.max_abs()))
}

/// A bound, if it is a number above zero.
pub(super) fn positive(bound: f64) -> Result<f64, MatrixError> {
    if bound.is_nan() || bound <= 0.0 {
        return Err(RlweError::Parameters { reason: format!("a bound is a number above zero, not {bound}") }.into());
    }
    Ok(bound)
}
