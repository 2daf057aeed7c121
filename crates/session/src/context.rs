//! Encrypted matrices without a plan, for trying things out: the same operations, done as they are called.
//!
//! A plan knows what will be computed and chooses the least that serves it. A [`Context`] is told
//! only how many products in a row there may be, and has the keys of every operation at every
//! level: larger, slower, and ready for whatever comes next. Matrices of any shape are cut into
//! tiles of one side ([`TileLayout`]), or lie as tables over whole ciphertexts ([`GridLayout`]).

use super::client::{eval_keys, require_params, require_plan};
use super::encrypted::Encrypted;
use super::layout::{Layout, Tabled, Tiled};
use super::operations::scale_of;
use super::server::Server;
use super::unplanned::UnplannedServer;
use super::{Progress, QUIET, release};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use sudare_expr::Matrix;
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapLiteral, BootstrapSet, Bootstrapper};
use sudare_he::ckks::{Ciphertext, Decryptor, Encoder, Encryptor, Expected, Params, ParamsLiteral};
use sudare_methods::MatrixError;
use sudare_methods::claims::{check_params, check_scale};
use sudare_methods::error::PlanHash;
use sudare_methods::slots::grid::GridLayout;
use sudare_methods::slots::tiles::TileLayout;
use sudare_ring::{Threads, threads};
use sudare_rlwe::keys::{EvalKeys, SecretKey};
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::{SecretDistribution, Security, max_log_qp};

/// Levels that a context has for each product in a row.
pub const LEVELS_PER_PRODUCT: usize = 3;
/// Bits of the first prime: values up to 2^(60 − scale bits − 2) can be decrypted.
const FIRST_BITS: u32 = 60;
/// Most products in a row.
const MAX_DEPTH: usize = 16;

/// What a context is made for, beside its depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextOptions {
    /// Bits of the scale, 30 to 55; about 20 fewer are right in a result. Primes of more than 49 bits
    /// are slower; releases need them.
    pub scale_bits: u32,
    /// The security.
    pub security: Security,
    /// Threads that work; 0 for one for each processor.
    pub threads: usize,
    /// Side of a tile, a power of two from 2 to 32. Larger tiles need more keys, smaller ones more
    /// ciphertexts for large matrices.
    pub tile: usize,
    /// What may be released of results, if anything.
    pub release: Option<ReleasePolicy>,
    /// The set whose ring, levels and scale the context has, so that its matrices can be refreshed.
    pub bootstrap: Option<BootstrapSet>,
    /// Whether a matrix is refreshed by itself where an operation needs more levels than it has left.
    pub automatic: bool,
    /// For matrices that lie as tables over whole ciphertexts, in place of square tiles, the columns of a tile: a power of
    /// two, best the least that is not under the tables' own. Operations element by element, with vectors and by polynomials
    /// are cheapest there; there are no products of matrices.
    pub columns: Option<usize>,
}

impl Default for ContextOptions {
    fn default() -> Self {
        Self {
            scale_bits: 40,
            security: Security::Bits128,
            threads: 0,
            tile: 16,
            release: None,
            bootstrap: None,
            automatic: false,
            columns: None,
        }
    }
}

/// What a client and a server of a context agree on; nothing secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct ContextSpec {
    /// Products in a row.
    pub depth: usize,
    /// Side of a tile.
    pub tile: usize,
    /// The parameters.
    pub params: ParamsLiteral,
    /// What may be released of results, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleasePolicy>,
    /// The bootstrapping set, if its matrices can be refreshed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<BootstrapSet>,
    /// Whether they are where levels end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub automatic: bool,
    /// Columns of a tile, if matrices are tables over whole ciphertexts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<usize>,
}

/// A specification as a file has it: unchecked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    depth: usize,
    tile: usize,
    params: ParamsLiteral,
    #[serde(default)]
    release: Option<ReleasePolicy>,
    #[serde(default)]
    bootstrap: Option<BootstrapSet>,
    #[serde(default)]
    automatic: bool,
    #[serde(default)]
    columns: Option<usize>,
}

impl TryFrom<Written> for ContextSpec {
    type Error = MatrixError;

    /// Works the parameters out again and refuses others.
    fn try_from(w: Written) -> Result<Self, MatrixError> {
        let (scale_bits, security) = (w.params.log_scale, w.params.security);
        let Written { tile, release, bootstrap, automatic, columns, .. } = w;
        let options = ContextOptions { scale_bits, security, tile, threads: 0, release, bootstrap, automatic, columns };
        let spec = Self::new(w.depth, &options)?;
        check_params(&w.params, &spec.params)?;
        check_scale(&w.params, &spec.params)?;
        Ok(spec)
    }
}

impl ContextSpec {
    /// Parameters for `depth` matrix products in a row, three levels each.
    ///
    /// Levels are used as follows: a matrix product two, and one more where its operand is itself
    /// a matrix product (or was made of one element by element) that has to be cleaned of copies
    /// first; product element by element, sum, transpose, and product with a number that is no
    /// integer one each; sum and difference of matrices with different histories one. So there is
    /// always at least one level left beside `depth` matrix products.
    ///
    /// The ring is the least that is secure, and the keys are the smallest that it has room for.
    ///
    /// # Errors
    /// [`MatrixError::NoPlan`] for a depth, scale or tile out of range, or if no ring is secure.
    pub fn new(depth: usize, options: &ContextOptions) -> Result<Self, MatrixError> {
        let refuse = |reason: String| Err(MatrixError::NoPlan { reason });
        let ContextOptions { scale_bits: scale, security, tile, release, bootstrap, automatic, columns, .. } = *options;
        if !(1..=MAX_DEPTH).contains(&depth) {
            return refuse(format!("a context has a depth of 1 to {MAX_DEPTH} products, not {depth}"));
        }
        if !(30..=55).contains(&scale) {
            return refuse(format!("a context has a scale of 30 to 55 bits, not {scale}"));
        }
        if !(tile.is_power_of_two() && (2..=32).contains(&tile)) {
            return refuse(format!("a context has tiles of side 2, 4, 8, 16 or 32, not {tile}"));
        }
        if let Some(set) = bootstrap {
            return Self::refreshed(depth, options, set);
        }
        if automatic {
            return refuse(
                "only a context with a bootstrapping set refreshes by itself; name a set, A, A12, B or C".into(),
            );
        }
        let levels = LEVELS_PER_PRODUCT * depth;
        let q_bits: Vec<u32> = std::iter::once(FIRST_BITS).chain(std::iter::repeat_n(scale, levels)).collect();
        let total: u32 = q_bits.iter().sum();
        let least = least_ring(tile, columns);
        let found = (least..=17).find_map(|log_n| {
            let limit = max_log_qp(log_n, SecretDistribution::Ternary, security)?;
            // A key has a row of all primes for each digit.
            (1..=q_bits.len())
                .filter_map(|special| {
                    let digit = q_bits.chunks(special).map(|d| d.iter().sum::<u32>()).max()?;
                    let bits = digit.div_ceil(special as u32);
                    let size = q_bits.len().div_ceil(special) * (q_bits.len() + special);
                    (total + bits * special as u32 <= limit).then_some((size, special, bits))
                })
                .min()
                .map(|(_, special, bits)| (log_n, special, bits))
        });
        let Some((log_n, special, bits)) = found else {
            return refuse(format!(
                "no ring holds depth {depth} at scale 2^{scale} with {} bits of security; take a smaller depth or scale",
                security.bits()
            ));
        };
        let params = ParamsLiteral {
            rlwe: sudare_rlwe::params::ParamsLiteral {
                log_n,
                q_bits,
                p_bits: vec![bits; special],
                digit_limbs: special,
                secret: SecretDistribution::Ternary,
                security,
            },
            log_scale: scale,
        };
        Self { depth, tile, params, release, bootstrap, automatic, columns }.checked()
    }

    /// Refuses columns that no tile of the ring has.
    fn checked(self) -> Result<Self, MatrixError> {
        self.layout(1, 1)?;
        Ok(self)
    }

    /// A bootstrapping set's parameters.
    fn refreshed(depth: usize, options: &ContextOptions, set: BootstrapSet) -> Result<Self, MatrixError> {
        let refuse = |reason: String| Err(MatrixError::NoPlan { reason });
        let ContextOptions { scale_bits, security, tile, release, automatic, columns, .. } = *options;
        let literal = bootstrap_literal(set, security, least_ring(tile, columns))?;
        if literal.log_slots + 1 < literal.params.log_n {
            return refuse(format!("a context takes bootstrapping sets with all slots, A, A12, B or C, not {set}"));
        }
        let (input, output) = literal.levels()?;
        let most = (output - input) / LEVELS_PER_PRODUCT;
        let params = literal.params;
        if depth > most || scale_bits != params.log_scale || security != params.security {
            let (scale, bits) = (params.log_scale, params.security.bits());
            return refuse(format!(
                "a context with bootstrapping set {set} has a scale of {scale} bits, {bits} bits of security and a depth of at \
                 most {most} between refreshes, not {scale_bits}, {} and {depth}",
                security.bits()
            ));
        }
        Self { depth, tile, params, release, bootstrap: Some(set), automatic, columns }.checked()
    }

    /// Bits of the scale, and most products in a row between refreshes, that a context with a bootstrapping set has.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    pub fn bootstrap_set(set: BootstrapSet) -> Result<(u32, usize), MatrixError> {
        let literal = set.literal();
        let (input, output) = literal.levels()?;
        Ok((literal.params.log_scale, (output - input) / LEVELS_PER_PRODUCT))
    }

    /// The bootstrapping set, if its matrices can be refreshed.
    fn literal(&self) -> Result<Option<BootstrapLiteral>, MatrixError> {
        let least = least_ring(self.tile, self.columns);
        self.bootstrap.map(|set| bootstrap_literal(set, self.params.security, least)).transpose()
    }

    /// The name on the matrices of its contexts.
    pub(super) fn hash(&self) -> Result<PlanHash, MatrixError> {
        let bytes = serde_json::to_vec(self).map_err(|e| MatrixError::PlanFile { reason: e.to_string() })?;
        Ok(PlanHash(*blake3::Hasher::new_derive_key("sudare context v1").update(&bytes).finalize().as_bytes()))
    }

    /// The level at which a matrix has to be refreshed, and that of a fresh one.
    pub(super) fn levels(&self) -> Result<(usize, usize), MatrixError> {
        match self.literal()? {
            Some(literal) => Ok(literal.levels()?),
            None => Ok((0, self.params.q_bits.len() - 1)),
        }
    }

    /// Stride of elements: lanes of the cube that products take.
    pub(super) fn stride(&self) -> usize {
        ((1usize << self.params.log_n.clamp(1, 30).saturating_sub(1)) / self.tile.pow(3)).max(1)
    }

    /// The layout of a matrix in square tiles.
    pub(super) fn tiles(&self, rows: usize, cols: usize) -> Result<TileLayout, MatrixError> {
        TileLayout::new(rows, cols, self.tile, self.stride())
    }

    /// The layout of a matrix, with zeros beside it.
    pub(super) fn layout(&self, rows: usize, cols: usize) -> Result<Layout, MatrixError> {
        match self.columns {
            Some(columns) => Ok(Tabled::zero_padded(GridLayout::new(rows, cols, columns, &self.params)?)),
            None => Ok(Tiled::zero_padded(self.tiles(rows, cols)?)),
        }
    }
}

/// log2 of the degree of the least ring that holds a product's cube of tiles, or a square tile of a table.
fn least_ring(tile: usize, columns: Option<usize>) -> u32 {
    let slots = columns.map_or(tile.pow(3), |c| c.saturating_mul(c));
    (1 + slots.checked_next_power_of_two().map_or(usize::BITS, usize::trailing_zeros)).clamp(11, 17)
}

/// A set, or where no security is claimed its shape over the least ring that serves.
fn bootstrap_literal(set: BootstrapSet, security: Security, least: u32) -> Result<BootstrapLiteral, MatrixError> {
    match security {
        Security::Insecure => Ok(set.literal().insecure(least)?),
        _ => Ok(set.literal()),
    }
}

/// Encrypts, decrypts, and has a server to compute with. Holds the secret key.
pub struct Context {
    secret: SecretKey,
    spec: ContextSpec,
    params: Params,
    server: Server,
    threads: Arc<Threads>,
}

impl Context {
    /// A context with new keys for `depth` products in a row; see [`ContextSpec::new`].
    ///
    /// # Errors
    /// As [`ContextSpec::new`]; [`MatrixError::He`] if the system gives no entropy.
    pub fn new(depth: usize, options: &ContextOptions) -> Result<Self, MatrixError> {
        Self::new_with(depth, options, QUIET)
    }

    /// The same, telling how far it has come.
    ///
    /// # Errors
    /// As [`Context::new`].
    pub fn new_with(depth: usize, options: &ContextOptions, progress: Progress<'_>) -> Result<Self, MatrixError> {
        let spec = ContextSpec::new(depth, options)?;
        let params = spec.params.build()?;
        let secret = SecretKey::generate(params.rlwe())?;
        Self::make(spec, params, secret, options.threads, progress)
    }

    /// A context with a secret key of before and new evaluation keys.
    ///
    /// # Errors
    /// [`MatrixError::Wire`] if the key is one of other parameters.
    pub fn with_secret_key(
        spec: &ContextSpec,
        secret: SecretKey,
        threads: usize,
        progress: Progress<'_>,
    ) -> Result<Self, MatrixError> {
        let params = spec.params.build()?;
        require_params(&params, secret.params())?;
        Self::make(spec.clone(), params, secret, threads, progress)
    }

    fn make(
        spec: ContextSpec,
        params: Params,
        secret: SecretKey,
        threads: usize,
        progress: Progress<'_>,
    ) -> Result<Self, MatrixError> {
        let threads = Arc::new(Threads::new(threads));
        let demand = UnplannedServer::demand(&spec)?;
        let keys: EvalKeys = eval_keys(&secret, &demand, &threads, progress)?;
        let bootstrapper = match spec.literal()? {
            Some(literal) => Some(threads.run(|| {
                let keys = BootstrapKeys::generate(&secret, &literal.build()?)?;
                Bootstrapper::new(keys, None)
            })?),
            None => None,
        };
        let server = Server::of_unplanned(&params, UnplannedServer::new(&spec, bootstrapper)?, keys, threads.clone())?;
        Ok(Self { secret, spec, params, server, threads })
    }

    /// The side that computes; it holds no secret. Cloning it shares it.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// What it was made for.
    pub fn spec(&self) -> &ContextSpec {
        &self.spec
    }

    /// The secret key. Whoever gets it reads everything.
    pub fn secret_key(&self) -> &SecretKey {
        &self.secret
    }

    /// Encrypts a matrix with elements up to `max_abs`.
    ///
    /// The bound is public: it travels with the ciphertexts. Without one, it is the least power of
    /// two that is not under any element's absolute value, which tells the size of the largest.
    ///
    /// # Errors
    /// [`MatrixError::Expr`], [`MatrixError::Method`] for too large a matrix,
    /// [`MatrixError::He`] for a bound that is no positive number or that the modulus cannot hold.
    pub fn encrypt(&self, matrix: &Matrix, max_abs: Option<f64>) -> Result<Encrypted, MatrixError> {
        let bound = max_abs.unwrap_or_else(|| public_bound(matrix));
        let layout = self.spec.layout(matrix.rows(), matrix.cols())?;
        let (unplanned, _) = self.server.unplanned("encryption")?;
        let tiles = self.threads.run(|| {
            let encoder = Encoder::new(&self.params);
            let plain = layout.encode(&encoder, matrix, unplanned.fresh(&encoder, bound))?;
            let encryptor = Encryptor::with_secret_key(&self.secret)?;
            let made = threads::map(plain.len(), |i| encryptor.encrypt(&plain[i]));
            made.into_iter().collect::<Result<Vec<_>, _>>().map_err(MatrixError::from)
        })?;
        unplanned.made(layout, bound, self.secret.id(), tiles)
    }

    /// Decrypts a matrix, for the owner's eyes: what is shown to others needs a decryption for
    /// release.
    ///
    /// # Errors
    /// [`MatrixError::He`] for a matrix of another context.
    pub fn decrypt(&self, value: &Encrypted) -> Result<Matrix, MatrixError> {
        let (decryptor, (tiles, layout)) = (Decryptor::new(&self.secret), self.own(value)?);
        self.threads.run(|| {
            let plain = threads::map(tiles.len(), |i| decryptor.decrypt(&tiles[i]));
            let plain = plain.into_iter().collect::<Result<Vec<_>, _>>()?;
            layout.decode(&self.params, &plain)
        })
    }

    /// The tiles of a matrix of this context, and how it lies in them.
    fn own<'v>(&self, value: &'v Encrypted) -> Result<(&'v [Ciphertext], &'v Layout), MatrixError> {
        require_plan(self.server.unplanned("decryption")?.0.hash(), value)?;
        value.tiles_and_layout()
    }

    /// Decrypts a matrix for others to see: one of the releases that the context declares. Elements
    /// are within [`Context::released_error`] of the true ones, but for a probability of 2^−30.
    ///
    /// The matrices of a context are made and computed in its own process and never read from bytes,
    /// so the worst-case bound that they carry is the evaluator's own, and is what the noise is made
    /// for.
    ///
    /// # Errors
    /// As [`Context::decrypt`]; [`MatrixError::NoRelease`] for a context without releases;
    /// [`HeError::NoPrecision`] if the noise would leave nothing of the largest value;
    /// `RlweError::ReleasesUsedUp`, `RlweError::OtherRelease`.
    pub fn decrypt_for_release(&self, value: &Encrypted) -> Result<Matrix, MatrixError> {
        let policy = release::declared(self.spec.release, "context")?;
        let (released, error) = (self.released_error(value)?, value.error().unwrap_or(f64::INFINITY));
        let (tiles, layout) = self.own(value)?;
        if 2.0 * released > value.max_abs() {
            let (operation, scale) = ("a release at this precision", scale_of(tiles));
            let noise = (released * scale).log2();
            return Err(HeError::NoPrecision { operation, noise, scale: (value.max_abs() * scale).log2() }.into());
        }
        let decryptor = Decryptor::new(&self.secret);
        let mut all = self.threads.run(|| {
            let plain = release::decrypt(&decryptor, tiles, Expected::of)?;
            let matrix = layout.decode(&self.params, &plain)?;
            release::release(&decryptor, policy, vec![matrix], (|_| error, |at| at))
        })?;
        all.pop().ok_or(MatrixError::Count { what: "matrices", found: 0, expected: 1 })
    }

    /// How far the elements of a matrix are from the true ones once it is released.
    ///
    /// # Errors
    /// [`MatrixError::NoRelease`] for a context without releases.
    pub fn released_error(&self, value: &Encrypted) -> Result<f64, MatrixError> {
        let policy = release::declared(self.spec.release, "context")?;
        let (rows, cols) = value.shape();
        Ok(policy.released_error(rows * cols, value.error().unwrap_or(f64::INFINITY)))
    }

    /// Releases that the context declares and its key has left.
    pub fn releases_left(&self) -> u64 {
        release::left(self.spec.release, &self.secret)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({:?}, {:?})", self.server, self.secret)
    }
}

/// The least power of two that no element's absolute value is over; 1 for zeros.
pub(super) fn public_bound(matrix: &Matrix) -> f64 {
    let largest = matrix.max_abs();
    if largest == 0.0 {
        return 1.0;
    }
    let bound = largest.log2().ceil().exp2();
    // Rounding of the logarithm.
    if bound < largest { 2.0 * bound } else { bound }
}
