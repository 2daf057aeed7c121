//! Values under encryption, as they travel.

use super::layout::{Layout, Tabled, Tiled};
use crate::device::OnDevice;
use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use sudare_exact::{IntegerParams, bgv};
use sudare_expr::Matrix;
use sudare_he::ckks;
use sudare_methods::MatrixError;
use sudare_methods::error::PlanHash;
use sudare_methods::exact::{ExactOperand, Residues};
use sudare_methods::rounding;
use sudare_methods::slots::grid::Grid;
use sudare_plan::{Engine, NodeSize, Plan, number};
use sudare_rlwe::KeyId;
use sudare_rlwe::wire::{Bundle, Header, ObjectType, Wire, WireError, peek};

/// Version of the header.
const VERSION: u32 = 1;
/// Bytes of the header: version, plan, node, batch, rows, columns.
pub(super) const HEADER_BYTES: usize = 4 + 32 + 4 * 8;
/// Bytes that headers and records of bundles may take beside the ciphertexts.
const MOST_HEADERS: u64 = 32 << 20;

/// An encrypted value of a plan: a matrix, or as many as the plan's batch has, real or of integers, a table, or its
/// statistics. Ciphertexts, and which value of which plan they are. Or a matrix of a context, which has no plan and
/// does not travel. Cloning shares it.
#[derive(Clone)]
pub struct Encrypted {
    plan: PlanHash,
    node: usize,
    batch: usize,
    shape: (usize, usize),
    max_abs: f64,
    error: Option<f64>,
    key: KeyId,
    top: usize,
    pub(super) values: Values,
    unplanned: Option<Unplanned>,
}

/// What is known of a matrix of a context.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unplanned {
    /// How it lies in ciphertexts; arrays of integers lie one element after the other.
    pub layout: Option<Layout>,
    /// The level at which it has to be refreshed, and that of a fresh one.
    pub levels: (usize, usize),
}

/// Ciphertexts by their scheme.
#[derive(Clone)]
pub(super) enum Values {
    Ckks(Arc<Bundle<ckks::Ciphertext>>),
    /// On a device, until somebody wants them here.
    #[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "nothing is on a device"))]
    Device(Arc<OnDevice>),
    /// A bundle for each plaintext modulus.
    Bgv(Arc<Vec<Bundle<bgv::Ciphertext>>>),
    /// Integers that the server sees.
    Plain(Arc<Vec<Matrix<i128>>>),
}

impl Encrypted {
    /// The same value on the processor: itself, if it is there.
    ///
    /// # Errors
    /// [`MatrixError::He`] for what went wrong on its device since the last wait.
    pub fn to_host(&self) -> Result<Self, MatrixError> {
        match &self.values {
            Values::Device(value) => Ok(Self { values: Values::Ckks(value.on_host()?.clone()), ..self.clone() }),
            _ => Ok(self.clone()),
        }
    }

    /// The value of a node of real matrices.
    pub(super) fn ckks(
        plan: &Plan,
        node: usize,
        key: KeyId,
        values: Vec<ckks::Ciphertext>,
    ) -> Result<Self, MatrixError> {
        let bundle = Bundle::new(plan.params(), key, header(plan, node), values)?;
        Ok(Self::of(plan, node, key, Values::Ckks(Arc::new(bundle))))
    }

    /// The value of a node of integers.
    pub(super) fn bgv(plan: &Plan, node: usize, key: KeyId, values: Residues) -> Result<Self, MatrixError> {
        let bundles =
            plan.exact()?.moduli().iter().zip(values).map(|(p, cts)| Bundle::new(p, key, header(plan, node), cts));
        let bundles = bundles.collect::<Result<Vec<_>, _>>()?;
        Ok(Self::of(plan, node, key, Values::Bgv(Arc::new(bundles))))
    }

    /// The value of a node of integers that the server sees.
    pub(super) fn plain(plan: &Plan, node: usize, values: Vec<Matrix<i128>>) -> Self {
        Self::of(plan, node, KeyId::NONE, Values::Plain(Arc::new(values)))
    }

    /// The value of a node of a plan.
    pub(super) fn of(plan: &Plan, node: usize, key: KeyId, values: Values) -> Self {
        let (info, figures) = (plan.expression().info(node), plan.engine().figures());
        let (plan, batch, error, top) =
            (plan.hash(), plan.batch(), figures.node_error(node), plan.params().max_level());
        let (shape, max_abs, unplanned) = (info.shape, info.max_abs, None);
        Self { plan, node, batch, shape, max_abs, error, key, top, values, unplanned }
    }

    /// The same ciphertexts as the value of another node.
    pub(super) fn renamed(&self, plan: &Plan, node: usize) -> Self {
        Self::of(plan, node, self.key, self.values.clone())
    }

    /// A matrix of the context of this name.
    pub(super) fn unplanned(
        plan: PlanHash,
        key: KeyId,
        (layout, levels): (Layout, (usize, usize)),
        max_abs: f64,
        tiles: Vec<ckks::Ciphertext>,
    ) -> Result<Self, MatrixError> {
        let Some(params) = tiles.first().map(|c| c.params().clone()) else {
            return Err(MatrixError::Count { what: "tiles", found: 0, expected: layout.ciphertexts() });
        };
        // The evaluator counts whole tiles; what the elements themselves can reach is tighter.
        let tighter = |c: ckks::Ciphertext| if c.bound() > max_abs { c.with_bound(max_abs) } else { c };
        let tiles: Vec<_> = tiles.into_iter().map(tighter).collect();
        let noise = tiles.iter().map(ckks::Ciphertext::error_bound).fold(0.0, f64::max);
        let error = Some(noise + rounding::largest_reading(params.degree(), max_abs, params.max_level() + 1));
        let (shape, top) = (layout.shape(), params.max_level());
        let values = Values::Ckks(Arc::new(Bundle::new(&params, key, Vec::new(), tiles)?));
        let unplanned = Some(Unplanned { layout: Some(layout), levels });
        Ok(Self { plan, node: 0, batch: 1, shape, max_abs, error, key, top, values, unplanned })
    }

    /// An array of the context of integers of this name.
    pub(super) fn integers(
        plan: PlanHash,
        (key, levels): (KeyId, (usize, usize)),
        (shape, max_abs): ((usize, usize), f64),
        params: &IntegerParams,
        values: Vec<bgv::Ciphertext>,
    ) -> Result<Self, MatrixError> {
        let bundle = Bundle::new(params, key, Vec::new(), values)?;
        let (values, error, top) = (Values::Bgv(Arc::new(vec![bundle])), Some(0.0), params.max_level());
        let unplanned = Some(Unplanned { layout: None, levels });
        Ok(Self { plan, node: 0, batch: 1, shape, max_abs, error, key, top, values, unplanned })
    }

    /// An array that the server of such a context sees.
    pub(super) fn plain_integers(plan: PlanHash, matrix: Matrix<i128>, max_abs: f64) -> Self {
        let (shape, key, levels) = (matrix.shape(), KeyId::NONE, (0, 0));
        let (values, unplanned) = (Values::Plain(Arc::new(vec![matrix])), Some(Unplanned { layout: None, levels }));
        Self { plan, node: 0, batch: 1, shape, max_abs, error: Some(0.0), key, top: 0, values, unplanned }
    }

    /// The ciphertexts of a matrix of a context, and how it lies in them.
    pub(super) fn tiles_and_layout(&self) -> Result<(&[ckks::Ciphertext], &Layout), MatrixError> {
        match &self.unplanned {
            Some(Unplanned { layout: Some(layout), .. }) => Ok((self.ciphertexts()?, layout)),
            _ => Err(foreign()),
        }
    }

    /// The same of a matrix in square tiles.
    pub(super) fn tiles(&self) -> Result<(&[ckks::Ciphertext], &Tiled), MatrixError> {
        match self.tiles_and_layout()? {
            (tiles, Layout::Tiles(tiled)) => Ok((tiles, tiled)),
            _ => Err(foreign()),
        }
    }

    /// The same of a table over whole ciphertexts.
    pub(super) fn table(&self) -> Result<Grid<'_>, MatrixError> {
        match self.tiles_and_layout()? {
            (tiles, Layout::Table(Tabled { layout, clean })) => {
                Ok(Grid { layout: *layout, clean: *clean, tiles: tiles.into() })
            }
            _ => Err(foreign()),
        }
    }

    /// Writes it; a fresh one under a secret key takes half its size.
    ///
    /// # Errors
    /// [`MatrixError::Wire`]; [`MatrixError::NotPlanned`] for a matrix of a context.
    pub fn write_to(&self, mut out: impl Write) -> Result<(), MatrixError> {
        if self.unplanned.is_some() {
            return Err(MatrixError::NotPlanned {
                operation: "sending a matrix of a context",
                planned: "only the matrices of a plan travel; make a plan for it".into(),
            });
        }
        Ok(match &self.values {
            Values::Device(_) => return self.to_host()?.write_to(out),
            Values::Ckks(bundle) => {
                let says = announced(self.plan, self.node, self.batch, self.shape);
                match bundle.application() == says {
                    true => bundle.write_to(out),
                    // It was made as the value of another node.
                    false => {
                        let ciphertexts = bundle.ciphertexts().to_vec();
                        Bundle::new(bundle.params(), self.key, says, ciphertexts)?.write_to(out)
                    }
                }
            }
            Values::Bgv(bundles) => bundles.iter().try_for_each(|bundle| bundle.write_to(&mut out)),
            Values::Plain(_) => {
                return Err(MatrixError::NotPlanned {
                    operation: "sending a plain matrix as an encrypted one",
                    planned: "the server has it; send the matrix itself".into(),
                });
            }
        }?)
    }

    /// Its bytes on the wire.
    ///
    /// # Errors
    /// As [`Encrypted::write_to`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, MatrixError> {
        let mut out = Vec::new();
        self.write_to(&mut out)?;
        Ok(out)
    }

    /// Reads a value of a plan.
    ///
    /// # Errors
    /// [`MatrixError::Wire`] for bytes that are no such object or belong to other parameters,
    /// [`MatrixError::WrongPlan`], [`MatrixError::Count`].
    pub fn read_from(plan: &Plan, input: impl Read) -> Result<Self, MatrixError> {
        match plan.engine() {
            Engine::Ckks(_) => Self::checked_ckks(plan, Bundle::read_from(plan.params(), input)?),
            Engine::Exact(_) | Engine::Arrays(_) => {
                // What is longer than any value of the plan is cut off and refused.
                let mut bytes = Vec::new();
                input.take(most_bytes(plan)).read_to_end(&mut bytes).map_err(WireError::from)?;
                Self::from_bytes(plan, &bytes)
            }
        }
    }

    /// Reads a value of a plan from memory.
    ///
    /// # Errors
    /// As [`Encrypted::read_from`].
    pub fn from_bytes(plan: &Plan, bytes: &[u8]) -> Result<Self, MatrixError> {
        let Some(engine) = plan.engine().integers() else {
            return Self::checked_ckks(plan, Bundle::from_bytes(plan.params(), bytes)?);
        };
        let mut rest = bytes;
        let mut bundles: Vec<Bundle<bgv::Ciphertext>> = Vec::with_capacity(engine.moduli().len());
        for params in engine.moduli() {
            let length = usize::try_from(peek(rest)?.total_bytes()).unwrap_or(usize::MAX);
            let (one, more) = rest.split_at_checked(length).ok_or_else(|| corrupt("a value that ends early"))?;
            bundles.push(Bundle::from_bytes(params, one)?);
            rest = more;
        }
        if !rest.is_empty() {
            return Err(corrupt("bytes after the last ciphertext"));
        }
        Self::checked_bgv(plan, bundles)
    }

    fn checked_ckks(plan: &Plan, bundle: Bundle<ckks::Ciphertext>) -> Result<Self, MatrixError> {
        let node = node_of(plan, bundle.application())?;
        require_count(plan, node, bundle.ciphertexts().len(), 1)?;
        let key = bundle.key();
        Ok(Self::of(plan, node, key, Values::Ckks(Arc::new(bundle))))
    }

    fn checked_bgv(plan: &Plan, bundles: Vec<Bundle<bgv::Ciphertext>>) -> Result<Self, MatrixError> {
        let first = bundles.first().ok_or_else(|| corrupt("a value without parts"))?;
        let (node, key) = (node_of(plan, first.application())?, first.key());
        for bundle in &bundles {
            if bundle.application() != first.application() || bundle.key() != key {
                return Err(corrupt("parts of different values"));
            }
            require_count(plan, node, bundle.ciphertexts().len(), bundles.len())?;
        }
        Ok(Self::of(plan, node, key, Values::Bgv(Arc::new(bundles))))
    }

    /// The plan it belongs to; of a matrix of a context the name of that.
    pub fn plan(&self) -> PlanHash {
        self.plan
    }

    /// The node of the plan's expression whose value it is.
    pub fn node(&self) -> usize {
        self.node
    }

    /// Matrices in it.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Rows and columns of each.
    pub fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// The name of the secret key it is under.
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// Its ciphertexts, if it is one of real matrices; those on a device are copied here once.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for a value of integers; as [`Encrypted::to_host`].
    pub fn ciphertexts(&self) -> Result<&[ckks::Ciphertext], MatrixError> {
        match &self.values {
            Values::Ckks(bundle) => Ok(bundle.ciphertexts()),
            Values::Device(value) => Ok(value.on_host()?.ciphertexts()),
            Values::Bgv(_) | Values::Plain(_) => Err(MatrixError::NotPlanned {
                operation: "reading integers as real numbers",
                planned: "the plan computes exactly with integers; read it as integers".into(),
            }),
        }
    }

    /// Its ciphertexts, if it is one of integers: a list for each plaintext modulus.
    ///
    /// # Errors
    /// [`MatrixError::NotPlanned`] for a value of real matrices.
    pub fn residues(&self) -> Result<Vec<&[bgv::Ciphertext]>, MatrixError> {
        match &self.values {
            Values::Bgv(bundles) => Ok(bundles.iter().map(Bundle::ciphertexts).collect()),
            Values::Ckks(_) | Values::Device(_) | Values::Plain(_) => Err(MatrixError::NotPlanned {
                operation: "reading encrypted integers from another value",
                planned: "this value holds real numbers, or is plain; read it as what it is".into(),
            }),
        }
    }

    /// What an exact computation takes of it.
    pub(super) fn exact_operand(&self) -> Result<ExactOperand<'_>, MatrixError> {
        match &self.values {
            Values::Plain(matrices) => Ok(ExactOperand::Plain(matrices)),
            _ => Ok(ExactOperand::Encrypted(self.residues()?)),
        }
    }

    /// Whether it holds integers, which are computed with exactly.
    pub fn is_exact(&self) -> bool {
        matches!(self.values, Values::Bgv(_) | Values::Plain(_))
    }

    /// What its integers are known modulo, if they may be too large to be told apart by it.
    pub fn modulus(&self) -> Option<u64> {
        let Values::Bgv(bundles) = &self.values else { return None };
        let [bundle] = bundles.as_slice() else { return None };
        let t = bundle.ciphertexts().first()?.params().t();
        (self.max_abs > (t / 2) as f64).then_some(t)
    }

    /// Whether it is one that the server sees, of integers.
    pub fn is_plain(&self) -> bool {
        matches!(self.values, Values::Plain(_))
    }

    /// Ciphertexts in it.
    pub fn count(&self) -> usize {
        match &self.values {
            Values::Ckks(bundle) => bundle.ciphertexts().len(),
            Values::Device(value) => value.count(),
            Values::Bgv(bundles) => bundles.iter().map(|b| b.ciphertexts().len()).sum(),
            Values::Plain(_) => 0,
        }
    }

    /// Levels left; in a context those down to the next refresh.
    pub fn levels_left(&self) -> usize {
        self.level().saturating_sub(self.unplanned.map_or(0, |f| f.levels.0))
    }

    /// Level.
    pub fn level(&self) -> usize {
        let level = match &self.values {
            Values::Ckks(bundle) => bundle.ciphertexts().iter().map(ckks::Ciphertext::level).min(),
            Values::Device(value) => value.level(),
            Values::Bgv(bundles) => bundles.iter().flat_map(Bundle::ciphertexts).map(bgv::Ciphertext::level).min(),
            Values::Plain(_) => None,
        };
        level.unwrap_or(0)
    }

    /// Bound on the absolute values of its elements.
    pub fn max_abs(&self) -> f64 {
        self.max_abs
    }

    /// Bound on the error of its elements, as the plan promises it, or in a context in the worst case; `None` for an operand that the
    /// plan does not decrypt, and for statistics, whose elements have bounds of their own.
    pub fn error(&self) -> Option<f64> {
        self.error
    }

    /// Bytes in memory, or on its device.
    pub fn bytes(&self) -> usize {
        match &self.values {
            Values::Ckks(bundle) => bundle.ciphertexts().iter().map(ckks::Ciphertext::bytes).sum(),
            Values::Device(value) => value.bytes(),
            Values::Bgv(bundles) => bundles.iter().flat_map(Bundle::ciphertexts).map(bgv::Ciphertext::bytes).sum(),
            Values::Plain(matrices) => matrices.iter().map(|m| size_of_val(m.data())).sum(),
        }
    }
}

/// The refusal of a value where one of a context belongs.
fn foreign() -> MatrixError {
    let planned = "a context computes with the matrices that it encrypted; encrypt it with this context".into();
    MatrixError::NotPlanned { operation: "a value of a plan in a context", planned }
}

pub(super) fn corrupt(what: &'static str) -> MatrixError {
    MatrixError::Wire(WireError::Corrupt { what })
}

/// What the value of a node says of itself.
pub(super) fn header(plan: &Plan, node: usize) -> Vec<u8> {
    announced(plan.hash(), node, plan.batch(), plan.expression().info(node).shape)
}

/// What a value says of itself: version, plan, node, batch, shape.
fn announced(plan: PlanHash, node: usize, batch: usize, shape: (usize, usize)) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES);
    out.extend(VERSION.to_le_bytes());
    out.extend(plan.0);
    for x in [node, batch, shape.0, shape.1] {
        out.extend((x as u64).to_le_bytes());
    }
    out
}

/// Which value of which plan a bundle of ciphertexts says that it is, before anything of it is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced {
    /// The plan's name.
    pub plan: PlanHash,
    /// The node of its expression.
    pub node: usize,
    /// Matrices.
    pub batch: usize,
    /// Rows and columns of each.
    pub shape: (usize, usize),
}

/// The application's header in the header of a container, if that is one of a bundle.
pub fn application(header: &Header) -> Option<&[u8]> {
    if !matches!(header.object(), ObjectType::Bundle | ObjectType::IntegerBundle) {
        return None;
    }
    let length = u32::from_le_bytes(*header.meta().first_chunk()?) as usize;
    header.meta().get(8..)?.get(..length)
}

impl Announced {
    /// What the header of a container announces, if it is one of an encrypted value.
    pub fn of(header: &Header) -> Option<Self> {
        Self::read(application(header)?).ok()
    }

    /// Reads what [`header`] wrote.
    fn read(header: &[u8]) -> Result<Self, MatrixError> {
        if header.len() != HEADER_BYTES {
            return Err(corrupt("it does not begin as an encrypted value"));
        }
        let word = |at: usize| {
            let mut b = [0; 8];
            b.copy_from_slice(&header[at..at + 8]);
            usize::try_from(u64::from_le_bytes(b)).unwrap_or(usize::MAX)
        };
        if header[..4] != VERSION.to_le_bytes() {
            return Err(corrupt("a header of another version"));
        }
        let mut hash = [0; 32];
        hash.copy_from_slice(&header[4..36]);
        Ok(Self { plan: PlanHash(hash), node: word(36), batch: word(44), shape: (word(52), word(60)) })
    }
}

/// The node whose value a header announces.
pub(super) fn node_of(plan: &Plan, header: &[u8]) -> Result<usize, MatrixError> {
    let Announced { plan: found, node, batch, shape } = Announced::read(header)?;
    let expected = plan.hash();
    if found != expected {
        return Err(MatrixError::WrongPlan { what: "the encrypted value", found, expected });
    }
    let expr = plan.expression();
    if node >= expr.nodes().len() || batch != plan.batch() || shape != expr.info(node).shape {
        return Err(corrupt("a header that does not fit its plan"));
    }
    Ok(node)
}

/// Refuses another number of ciphertexts than the plan has for a node, in each of `parts` parts.
fn require_count(plan: &Plan, node: usize, found: usize, parts: usize) -> Result<(), MatrixError> {
    match plan.engine().figures().size(node) {
        Some(size) if size.count != found * parts => {
            let expected = size.count / parts;
            Err(MatrixError::Count { what: "ciphertexts of the encrypted value", found, expected })
        }
        _ => Ok(()),
    }
}

/// Most bytes that a value of a plan takes on the wire: what it takes in memory, and headers.
pub(crate) fn most_bytes(plan: &Plan) -> u64 {
    let (figures, params) = (plan.engine().figures(), plan.params());
    let one = |NodeSize { count, parts, .. }: NodeSize| (count * parts * params.q().len() * 8 * params.degree()) as u64;
    let most = plan.goal().ends().filter_map(|node| figures.size(node)).map(one).max();
    most.unwrap_or(0).saturating_mul(2).saturating_add(MOST_HEADERS)
}

impl fmt::Display for Encrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, cols) = self.shape;
        let place = match &self.values {
            Values::Device(value) => format!(", on {}", value.device_name()),
            _ => String::new(),
        };
        let each = self.bytes() as f64 / self.count().max(1) as f64 / 1e6;
        let size = format!("{} ct × {each:.1} MB{place}", self.count());
        let scheme = match self.values {
            Values::Ckks(_) | Values::Device(_) => "ckks",
            Values::Bgv(_) => "bgv",
            Values::Plain(_) => "plain",
        };
        write!(f, "<sudare {scheme} ")?;
        match self.batch {
            1 => write!(f, "({rows}, {cols})")?,
            b => write!(f, "({b}, {rows}, {cols})")?,
        }
        if scheme == "plain" {
            return write!(f, " integers up to {}, not encrypted>", number(self.max_abs));
        }
        if scheme == "bgv" {
            return match self.modulus() {
                Some(t) => write!(f, " integers modulo {t}, exact, {size}>"),
                None => write!(f, " integers up to {}, exact, {size}>", number(self.max_abs)),
            };
        }
        write!(f, " float64 up to {}", number(self.max_abs))?;
        if let Some(error) = self.error {
            write!(f, " ± {error:.1e}")?;
        }
        match self.unplanned.map(|unplanned| unplanned.levels) {
            // What is under the floor is the bootstrap's own.
            Some((floor, fresh)) if floor > 0 => {
                write!(f, ", {} of {} levels to the next refresh, {size}>", self.levels_left(), fresh - floor)
            }
            _ => write!(f, ", level {}/{}, {size}>", self.level(), self.top),
        }
    }
}

impl fmt::Debug for Encrypted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
