//! Encrypted matrices on a disk, and their products in less memory than they take.

use super::client::{input_node, require_plan};
use super::encrypted::{self, Encrypted};
use super::{Client, Progress, PublicClient, Server};
use crate::blocked::{Operands, Schedule, Sizes, multiply};
use serde_json::{Value, json};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use sudare_expr::Matrix;
use sudare_expr::Operand;
use sudare_he::ckks::{Ciphertext, Encryptor};
use sudare_methods::MatrixError;
use sudare_methods::blocked::Blocked;
use sudare_plan::{NodeSize, Plan, number};
use sudare_ring::{Threads, threads};
use sudare_rlwe::KeyId;
use sudare_rlwe::wire::{ALIGNMENT, Bundle, Header, ObjectType, State, Wire, packing};
use sudare_store::{Block, BlockSource, Description, Existing, Grid, Reader, Reading, StoreError, Writer};

/// Tables of the parameters and threads.
const BASE_MEMORY: u64 = 16 << 20;
/// What the contents of a store say that they are.
const KIND: &str = "matrix";
/// Bytes of a bundle's metadata beside its application's header: two counts and a record.
const BUNDLE_META: usize = 8 + 72;
/// Ciphertexts that are encrypted together, for each thread.
const ENCRYPTED_AT_ONCE: usize = 4;

/// An encrypted matrix of a plan in a store: what it is, and its blocks when they are asked for. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Stored {
    plan: Plan,
    node: usize,
    reader: Arc<Reader>,
}

/// How much memory a product of stored matrices may take, and what to do with what is there.
#[derive(Clone, Copy, Debug)]
pub struct OutOfCore {
    /// Bytes: sums, strips, keys and tables.
    pub memory: u64,
    /// Whether a work that was interrupted goes on.
    pub existing: Existing,
}

/// A product of stored matrices, and what it took.
#[derive(Clone, Debug)]
pub struct Multiplied {
    /// The product.
    pub product: Stored,
    /// How it was computed.
    pub schedule: Schedule,
    /// Bytes of operands that were read: those of the schedule, less for a work that went on.
    pub read_bytes: u64,
}

/// Which matrix of a plan's product a node is.
pub(super) fn operand_of(plan: &Plan, node: usize) -> Option<Operand> {
    let expr = plan.expression();
    let (left, right) = expr.as_product()?;
    let nodes = [expr.node_of_input(left), expr.node_of_input(right), expr.output()];
    let operands = [Operand::Left, Operand::Right, Operand::Output];
    nodes.iter().position(|n| *n == node).map(|at| operands[at])
}

/// The plan's product by blocks.
pub(super) fn blocked(plan: &Plan) -> Result<&dyn Blocked, MatrixError> {
    let found = plan.real()?.product().and_then(|product| product.blocked());
    found.ok_or_else(|| MatrixError::NotPlanned {
        operation: "a product by blocks",
        planned: format!(
            "{} multiplies whole matrices; plan with method \"coefficient\" or \"tiled\"",
            plan.engine().figures().method()
        ),
    })
}

/// Rows and columns of blocks, and of elements in one.
type Layout = ((usize, usize), Option<(usize, usize)>);

/// Rows and columns of blocks of a node's value, and of elements in a block. What has no blocks lies in one row.
pub(super) fn layout(plan: &Plan, node: usize) -> Result<Layout, MatrixError> {
    if let (Ok(product), Some(operand)) = (blocked(plan), operand_of(plan, node)) {
        let (rows, cols) = product.grid(operand);
        return Ok(((rows * plan.batch(), cols), Some(product.block_shape(operand))));
    }
    plan.real()?;
    Ok(((1, size(plan, node)?.count), None))
}

fn size(plan: &Plan, node: usize) -> Result<NodeSize, MatrixError> {
    plan.engine().figures().size(node).ok_or_else(|| MatrixError::NotPlanned {
        operation: "storing this value",
        planned: "only inputs and results are stored".into(),
    })
}

/// What a block's container says of itself: which value of which plan, and its place.
pub(super) fn application(plan: &Plan, node: usize, (row, col): (usize, usize)) -> Vec<u8> {
    let mut out = encrypted::header(plan, node);
    out.extend([row, col].iter().flat_map(|x| (*x as u64).to_le_bytes()));
    out
}

/// Bytes of a stored block: seeded ones leave c_1 to the seed.
fn block_bytes(plan: &Plan, node: usize, seeded: bool) -> Result<u64, MatrixError> {
    let NodeSize { parts, level, .. } = size(plan, node)?;
    let meta = vec![0; application(plan, node, (0, 0)).len() + BUNDLE_META];
    let segments = vec![packing::packed_bytes(plan.params().q_at(level)); if seeded { 1 } else { parts }];
    let owner = (plan.params().hash(), KeyId::NONE);
    let header = Header::new(ObjectType::Bundle, owner, State::default(), meta, segments)?;
    Ok(header.total_bytes().next_multiple_of(ALIGNMENT))
}

/// A ciphertext as the container of its block.
fn to_block(plan: &Plan, node: usize, place: (usize, usize), block: Ciphertext) -> Result<Vec<u8>, MatrixError> {
    to_container(plan, application(plan, node, place), block)
}

/// A ciphertext as a container that says what it is.
pub(super) fn to_container(plan: &Plan, says: Vec<u8>, block: Ciphertext) -> Result<Vec<u8>, MatrixError> {
    let key = block.key();
    Ok(Bundle::new(plan.params(), key, says, vec![block])?.to_bytes()?)
}

/// The ciphertext in the container of a block.
pub(super) fn from_block(
    plan: &Plan,
    node: usize,
    place: (usize, usize),
    bytes: &[u8],
) -> Result<Ciphertext, MatrixError> {
    from_container(plan, &application(plan, node, place), bytes)
}

/// The ciphertext in a container that has to say what is expected.
pub(super) fn from_container(plan: &Plan, says: &[u8], bytes: &[u8]) -> Result<Ciphertext, MatrixError> {
    let bundle: Bundle<Ciphertext> = Bundle::from_bytes(plan.params(), bytes)?;
    if bundle.application() != says {
        // Tells another plan by its own error.
        encrypted::node_of(plan, bundle.application().get(..encrypted::HEADER_BYTES).unwrap_or_default())?;
        return Err(encrypted::corrupt("it is a block of another place"));
    }
    let mut all = bundle.into_parts().1;
    match (all.pop(), all.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => Err(MatrixError::Count { what: "ciphertexts of a block", found: all.len() + 1, expected: 1 }),
    }
}

/// What a store of a value says of itself.
fn description(plan: &Plan, node: usize, key: KeyId, seeded: bool) -> Result<Description, MatrixError> {
    let info = plan.expression().info(node);
    let NodeSize { parts, level, .. } = size(plan, node)?;
    let text = plan.to_json()?;
    let plan_value: Value = serde_json::from_str(&text).map_err(|e| MatrixError::PlanFile { reason: e.to_string() })?;
    let contents = json!({
        "kind": KIND,
        "plan": plan_value,
        "node": node,
        "batch": plan.batch(),
        "shape": info.shape,
        "block_shape": layout(plan, node)?.1,
        "max_abs": info.max_abs,
        "level": level,
        "parts": parts,
        "seeded": seeded,
    });
    Ok(Description { params: plan.params().hash(), key, contents })
}

/// The name of a work, from what it is.
fn work(context: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    parts.iter().for_each(|part| {
        hasher.update(part);
    });
    *hasher.finalize().as_bytes()
}

/// The name of the writing of a value. It says nothing of the matrix, so that no file does.
fn work_of_value(plan: &Plan, node: usize, key: KeyId) -> [u8; 32] {
    work("sudare stored value v1", &[&plan.hash().0, &(node as u64).to_le_bytes(), &key.0])
}

/// Begins a store where nothing is.
fn fresh(path: &Path, grid: Grid, work: [u8; 32]) -> Result<Writer, MatrixError> {
    Writer::begin(path, grid, work, Existing::Refuse)?.ok_or_else(|| StoreError::Exists { path: path.into() }.into())
}

impl Stored {
    /// Opens a stored matrix.
    ///
    /// # Errors
    /// [`MatrixError::Store`]; [`MatrixError::PlanFile`] and its like for a plan that is refused;
    /// [`MatrixError::Wire`] for a store of something else.
    pub fn open(path: &Path) -> Result<Self, MatrixError> {
        Self::open_for(path, Reading::Cached)
    }

    fn open_for(path: &Path, reading: Reading) -> Result<Self, MatrixError> {
        let reader = Reader::open(path, reading)?;
        let contents = &reader.description().contents;
        if contents["kind"] != KIND {
            return Err(encrypted::corrupt("it is a store of something else than a matrix"));
        }
        let plan = Plan::from_json(&contents["plan"].to_string())?;
        let node = contents["node"].as_u64().and_then(|n| usize::try_from(n).ok());
        let node = node.filter(|n| *n < plan.expression().nodes().len());
        let node = node.ok_or_else(|| encrypted::corrupt("it is a store of a value that its plan does not have"))?;
        let expected = description(&plan, node, reader.description().key, contents["seeded"] == true)?;
        // The plan is compared by its name, which is that of what it computes; the rest has to be what the plan says.
        let agrees = |name: &str| expected.contents[name] == contents[name];
        let fields = ["batch", "shape", "block_shape", "max_abs", "level", "parts"];
        let sizes = reader.sizes();
        if !fields.into_iter().all(agrees)
            || expected.params != reader.description().params
            || layout(&plan, node)?.0 != (sizes.rows, sizes.cols)
            || block_bytes(&plan, node, contents["seeded"] == true)? != sizes.block_bytes
        {
            return Err(encrypted::corrupt("a store that does not fit its plan"));
        }
        Ok(Self { plan, node, reader: Arc::new(reader) })
    }

    /// Stores a value that is in memory.
    ///
    /// # Errors
    /// [`MatrixError::Store`]; [`MatrixError::WrongPlan`]; [`MatrixError::NotPlanned`] for integers, and for a value
    /// that is neither input nor result.
    pub fn save(plan: &Plan, value: &Encrypted, path: &Path) -> Result<Self, MatrixError> {
        require_plan(plan.hash(), value)?;
        let (node, ciphertexts) = (value.node(), value.ciphertexts()?);
        let (grid, _) = layout(plan, node)?;
        let seeded = ciphertexts.iter().all(|c| c.seed().is_some());
        let sizes = Grid::new(grid.0, grid.1, block_bytes(plan, node, seeded)?)?;
        let writer = fresh(path, sizes, work_of_value(plan, node, value.key()))?;
        writer.fill(|row, col| to_block(plan, node, (row, col), ciphertexts[row * grid.1 + col].clone()))?;
        writer.finish(description(plan, node, value.key(), seeded)?)?;
        Self::open(path)
    }

    /// The plan it belongs to.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The node of the plan's expression whose value it is.
    pub fn node(&self) -> usize {
        self.node
    }

    /// Matrices in it.
    pub fn batch(&self) -> usize {
        self.plan.batch()
    }

    /// Rows and columns of each.
    pub fn shape(&self) -> (usize, usize) {
        self.plan.expression().info(self.node).shape
    }

    /// Rows and columns of elements in a block; none where the method has no blocks.
    pub fn block_shape(&self) -> Option<(usize, usize)> {
        layout(&self.plan, self.node).ok().and_then(|(_, shape)| shape)
    }

    /// The name of the secret key it is under.
    pub fn key(&self) -> KeyId {
        self.reader.description().key
    }

    /// Where it is, its blocks and its digest.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Bytes of its blocks on the disk.
    pub fn bytes(&self) -> u64 {
        self.reader.sizes().blocks() as u64 * self.reader.sizes().block_bytes
    }

    /// The container of a block, checked.
    ///
    /// # Errors
    /// [`MatrixError::Store`].
    pub fn block(&self, row: usize, col: usize) -> Result<Vec<u8>, MatrixError> {
        let mut block = Block::zeroed(self.reader.block_bytes() as usize);
        self.reader.read(row, col, &mut block)?;
        let bytes = self.reader.container(row, col, &block)?;
        from_block(&self.plan, self.node, (row, col), bytes)?;
        Ok(bytes.to_vec())
    }

    /// All of it in memory.
    ///
    /// # Errors
    /// [`MatrixError::Store`], [`MatrixError::Wire`].
    pub fn load(&self) -> Result<Encrypted, MatrixError> {
        let sizes = self.reader.sizes();
        let mut block = Block::zeroed(sizes.block_bytes as usize);
        let mut read = |at: usize| {
            let (row, col) = (at / sizes.cols, at % sizes.cols);
            self.reader.read(row, col, &mut block)?;
            from_block(&self.plan, self.node, (row, col), self.reader.container(row, col, &block)?)
        };
        let values = (0..sizes.blocks()).map(&mut read).collect::<Result<_, MatrixError>>()?;
        Encrypted::ckks(&self.plan, self.node, self.key(), values)
    }

    /// Reads all of it and checks every byte.
    ///
    /// # Errors
    /// [`MatrixError::Store`].
    pub fn verify(&self) -> Result<(), MatrixError> {
        Ok(self.reader.verify()?)
    }

    /// Bytes of a block in memory: of an operand two parts, of a sum three.
    fn block_memory(&self, parts: usize) -> u64 {
        let basis = self.plan.params().q();
        (parts * basis.len() * basis.degree() * 8) as u64
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, cols) = self.shape();
        let sizes = self.reader.sizes();
        match self.batch() {
            1 => write!(f, "<sudare stored ({rows}, {cols})")?,
            b => write!(f, "<sudare stored ({b}, {rows}, {cols})")?,
        }
        let max_abs = number(self.plan.expression().info(self.node).max_abs);
        write!(f, " float64 up to {max_abs}, {} × {} blocks", sizes.rows, sizes.cols)?;
        if let Some((r, c)) = self.block_shape() {
            write!(f, " of ({r}, {c})")?;
        }
        write!(f, " × {:.1} kB = {:.2} GB>", sizes.block_bytes as f64 / 1e3, self.bytes() as f64 / 1e9)
    }
}

impl Server {
    /// What a product of stored matrices would read, write and take, before anything is done.
    ///
    /// # Errors
    /// [`MatrixError::TooLittleMemory`] with the least that would do; [`MatrixError::NotPlanned`] for a plan whose
    /// method has no blocks.
    pub fn schedule(
        &self,
        left: &Stored,
        right: &Stored,
        path: &Path,
        options: OutOfCore,
    ) -> Result<Schedule, MatrixError> {
        Ok(self.prepared(left, right, path, options)?.1)
    }

    fn prepared(
        &self,
        left: &Stored,
        right: &Stored,
        path: &Path,
        options: OutOfCore,
    ) -> Result<(Sizes, Schedule, Grid), MatrixError> {
        let (plan, ..) = self.real()?;
        let product = blocked(plan)?;
        let operands = [(left, Operand::Left), (right, Operand::Right)];
        for (stored, operand) in operands {
            self.require_owner(stored.plan.hash(), stored.key())?;
            if operand_of(plan, stored.node) != Some(operand) {
                return Err(MatrixError::NotPlanned {
                    operation: "a product of these stored matrices in this order",
                    planned: plan.expression().describe(),
                });
            }
        }
        let ((rows, terms), (_, cols)) = (product.grid(Operand::Left), product.grid(Operand::Right));
        let output = plan.expression().output();
        let sizes = Sizes {
            batch: plan.batch(),
            rows,
            terms,
            cols,
            stored: [left.reader.block_bytes(), right.reader.block_bytes(), block_bytes(plan, output, false)?],
            operand: left.block_memory(2),
            sum: left.block_memory(3),
            fixed: BASE_MEMORY + self.bytes() as u64 + plan.engine().figures().table_bytes(),
            threads: self.threads(),
            seconds: plan.summary().seconds,
        };
        // What was begun goes on with its shards.
        let begun = (options.existing == Existing::Resume).then(|| Writer::begun(path)).flatten();
        let unit = begun.map_or((1, 1), |grid| (grid.shard_rows, grid.shard_cols));
        let schedule = Schedule::new(&sizes, options.memory, unit)?;
        let grid = match begun {
            Some(grid) => grid,
            None => {
                // A batch's products lie one under the other: tiles end where they do.
                let height = if sizes.batch == 1 { schedule.tile_rows } else { gcd(schedule.tile_rows, rows) };
                let tile = (height, schedule.tile_cols);
                Grid::of_tiles(sizes.batch * rows, cols, sizes.stored[2], tile)?
            }
        };
        Ok((sizes, schedule, grid))
    }

    /// `left @ right` into a new store, in no more memory than is allowed. Bit by bit the result of
    /// [`Server::matmul`] for the same operands in memory.
    ///
    /// With [`Existing::Resume`] a work that was interrupted goes on from its finished shards, whatever memory it is
    /// given now, and of one that was finished nothing is done again.
    ///
    /// # Errors
    /// As [`Server::schedule`]; [`MatrixError::Store`] for damaged operands, a name that is taken, a full disk;
    /// [`MatrixError::He`].
    pub fn matmul_stored(
        &self,
        left: &Stored,
        right: &Stored,
        path: &Path,
        options: OutOfCore,
        progress: Progress<'_>,
    ) -> Result<Multiplied, MatrixError> {
        let (plan, evaluator, pool) = self.real()?;
        let (sizes, schedule, grid) = self.prepared(left, right, path, options)?;
        let (product, output) = (blocked(plan)?, plan.expression().output());
        let digests = [left.reader.digest(), right.reader.digest()];
        let name = work("sudare stored product v1", &[&plan.hash().0, &digests[0], &digests[1]]);
        let Some(writer) = Writer::begin(path, grid, name, options.existing)? else {
            return Ok(Multiplied { product: Stored::open(path)?, schedule, read_bytes: 0 });
        };
        // Strips pass by the page cache.
        let sources = [left, right].map(|s| Reader::open(s.reader.path(), Reading::Direct));
        let [from_left, from_right] = sources;
        let (from_left, from_right) = (from_left?, from_right?);
        let released = plan.release().map(|_| plan.expected()).transpose()?;
        let operands = Operands {
            left: &from_left,
            right: &from_right,
            decode: &|operand, place, bytes| {
                let node = if operand == Operand::Left { left.node } else { right.node };
                from_block(plan, node, place, bytes)
            },
            encode: &|place, block| {
                // Whoever releases it looks for the plan's own error.
                let block = match &released {
                    Some(expected) => block.with_error_of(expected.error),
                    None => block,
                };
                to_block(plan, output, place, block)
            },
        };
        pool.run(|| multiply(product, evaluator, &operands, (&sizes, &schedule), &writer, progress))?;
        writer.finish(description(plan, output, self.key_id(), false)?)?;
        let read_bytes = from_left.bytes_read() + from_right.bytes_read();
        Ok(Multiplied { product: Stored::open(path)?, schedule, read_bytes })
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Client {
    /// Encrypts an input into a store, some blocks at a time: what is in memory is the matrix alone.
    ///
    /// # Errors
    /// As [`Client::encrypt_batch`]; [`MatrixError::Store`]; [`MatrixError::NotPlanned`] for a plan whose method has
    /// no blocks.
    pub fn encrypt_stored(
        &self,
        name: &str,
        matrices: &[Matrix],
        path: &Path,
        progress: Progress<'_>,
    ) -> Result<Stored, MatrixError> {
        let encryptor = Encryptor::with_secret_key(self.secret_key())?;
        encrypt(self.plan(), self.pool(), (&encryptor, self.key_id(), true), (name, matrices), path, progress)
    }
}

impl PublicClient {
    /// As [`Client::encrypt_stored`], in blocks of twice the size.
    ///
    /// # Errors
    /// As there.
    pub fn encrypt_stored(
        &self,
        name: &str,
        matrices: &[Matrix],
        path: &Path,
        progress: Progress<'_>,
    ) -> Result<Stored, MatrixError> {
        let encryptor = Encryptor::with_public_key(self.key())?;
        encrypt(self.plan(), self.pool(), (&encryptor, self.key().id(), false), (name, matrices), path, progress)
    }
}

fn encrypt(
    plan: &Plan,
    pool: &Threads,
    (encryptor, key, seeded): (&Encryptor<'_>, KeyId, bool),
    (name, matrices): (&str, &[Matrix]),
    path: &Path,
    progress: Progress<'_>,
) -> Result<Stored, MatrixError> {
    let node = input_node(plan, name, matrices)?;
    let product = blocked(plan)?;
    let operand = operand_of(plan, node).filter(|_| !plan.expression().is_plain(node));
    let operand = operand.ok_or_else(|| MatrixError::NotPlanned {
        operation: "encryption of this input",
        planned: format!("{name} is given to the server as it is; encrypt the others alone"),
    })?;
    let ((rows, cols), _) = layout(plan, node)?;
    let grid = Grid::new(rows, cols, block_bytes(plan, node, seeded)?)?;
    let writer = fresh(path, grid, work_of_value(plan, node, key))?;
    let max_abs = plan.expression().info(node).max_abs;
    let (mut done, all) = (0, grid.blocks());
    let (down, across) = grid.shards();
    for shard in (0..down).flat_map(|i| (0..across).map(move |j| (i, j))) {
        let mut open = writer.shard(shard)?;
        let members: Vec<(usize, usize)> = grid.members(shard).collect();
        for some in members.chunks(ENCRYPTED_AT_ONCE * pool.count()) {
            let made = pool.run(|| {
                threads::map(some.len(), |i| {
                    let (row, col) = some[i];
                    let plain = product.encode_block(operand, matrices, max_abs, row * cols + col)?;
                    to_block(plan, node, some[i], encryptor.encrypt(&plain)?)
                })
            });
            made.into_iter().try_for_each(|block| Ok::<_, MatrixError>(open.push(&block?)?))?;
            done += some.len();
            progress(done, all);
        }
        open.finish()?;
    }
    writer.finish(description(plan, node, key, seeded)?)?;
    Stored::open(path)
}
