//! The tables of a window: of each site v_0 and v_1 of all starts, in the clear or encrypted.

use super::client::Client;
use super::params::index_bits;
use crate::bytes::Put;
use crate::message::write_object;
use crate::panel::{Column, PanelHash};
use crate::{GenomeError, Panel, Shape};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use sudare_ring::random::MaskSeed;
use sudare_ring::threads;
use sudare_rlwe::wire::packing::{append_words, read_words, width};
use sudare_rlwe::wire::{ALIGNMENT, Fields, Header, ObjectType, Reader as Container, State, WireError, peek};
use sudare_rlwe::{KeyId, ParamsHash};
use sudare_store::layout::{hex, unhex};
use sudare_store::{Block, BlockSource, Description, Existing, Grid, InMemory, Reader, Reading, StoreError, Writer};
use sudare_tfhe::circuit_bootstrap::CircuitParams;
use sudare_tfhe::leveled::{LeveledParams, PackedTable, SeededGlwe, TableLayout};

/// Tables that are encrypted.
const KIND: u32 = 2;
/// The kind that a store of tables states.
const CONTENTS: &str = "genome tables";

/// The entries of site k of the windows: entry 2·(j(n + 1) + i) + w holds the bits of `v_w[i] + j(n + 1)` of start j.
pub fn entries(panel: &Panel, starts: &[u32], shape: Shape, k: usize) -> Result<Vec<Vec<u64>>, GenomeError> {
    let n = panel.haplotypes();
    let bits = index_bits(shape, n);
    let mut column = Column::default();
    let mut out = Vec::with_capacity(2 * starts.len() * (n + 1));
    for (j, start) in starts.iter().enumerate() {
        panel.column(*start as usize + k, &mut column)?;
        let offset = (j * (n + 1)) as u64;
        for i in 0..=n as u32 {
            for w in [false, true] {
                let v = u64::from(column.step(w, i)) + offset;
                out.push((0..bits).map(|b| v >> b & 1).collect());
            }
        }
    }
    Ok(out)
}

/// The source of the tables of a search.
#[derive(Clone, Copy)]
pub enum Tables<'a> {
    /// The server's own panel.
    Panel(&'a Panel),
    /// Tables that the owner of the key encrypted.
    Encrypted(&'a EncryptedTables),
}

impl Tables<'_> {
    /// The panel's name.
    pub fn hash(&self) -> PanelHash {
        match self {
            Self::Panel(panel) => panel.hash(),
            Self::Encrypted(tables) => tables.panel,
        }
    }

    /// n.
    pub fn haplotypes(&self) -> usize {
        match self {
            Self::Panel(panel) => panel.haplotypes(),
            Self::Encrypted(tables) => tables.haplotypes,
        }
    }

    /// The table of site k.
    pub(super) fn table(
        &self,
        leveled: &LeveledParams,
        starts: &[u32],
        shape: Shape,
        k: usize,
    ) -> Result<PackedTable, GenomeError> {
        match self {
            Self::Panel(panel) => Ok(PackedTable::plain(leveled, &entries(panel, starts, shape, k)?)?),
            Self::Encrypted(tables) => tables.table(leveled, k),
        }
    }
}

/// The description in a store of tables.
#[derive(Serialize, Deserialize)]
struct Contents {
    kind: String,
    panel: String,
    haplotypes: usize,
    starts: Vec<u32>,
}

/// The tables of one list of starts, encrypted under a client's key, in a store with a block for each site: for panels
/// whose owner is the client, and whose server is to learn nothing at all.
///
/// A search reads them in order, past the page cache, and holds those of two sites at a time: they may be larger than
/// memory by any factor. Every block is compared with its digest each time that it is read.
pub struct EncryptedTables {
    path: PathBuf,
    source: Box<dyn BlockSource>,
    owner: (ParamsHash, KeyId),
    panel: PanelHash,
    haplotypes: usize,
    starts: Vec<u32>,
    /// Bytes of a table as it is looked up.
    table_bytes: usize,
}

impl EncryptedTables {
    /// Encrypts the tables of windows of `sites` sites from these starts on into a new store, site after site;
    /// each in parallel inside a thread pool. `progress` is called with the sites done and all of them.
    ///
    /// # Errors
    /// [`GenomeError::Window`], [`GenomeError::Range`], [`GenomeError::Tfhe`], [`GenomeError::Wire`]; [`GenomeError::Store`]
    /// for a name that is taken or a full disk.
    pub fn encrypt(
        client: &Client,
        panel: &Panel,
        starts: &[u32],
        sites: usize,
        path: &Path,
        progress: &dyn Fn(usize, usize),
    ) -> Result<(), GenomeError> {
        let shape = Shape { sites, starts: starts.len(), eps: 1 };
        shape.check()?;
        for start in starts {
            panel.outline().check_window(*start as usize, sites)?;
        }
        if !starts.is_sorted_by(|a, b| a < b) {
            return Err(WireError::Corrupt { what: "starts out of order or twice" }.into());
        }
        let (leveled, client, haplotypes) = (client.params().leveled(), &client.leveled, panel.haplotypes());
        let layout = layout(leveled, shape, haplotypes)?;
        let owner = (leveled.hash(), client.id());
        let grid = Grid::new(sites, 1, block_bytes(leveled, owner, panel.hash(), &layout)?)?;
        let work = *blake3::Hasher::new_derive_key("sudare encrypted tables v1")
            .update(&panel.hash().0)
            .update(&owner.1.0)
            .finalize()
            .as_bytes();
        let writer = Writer::begin(path, grid, work, Existing::Refuse)?;
        let writer = writer.ok_or_else(|| StoreError::Exists { path: path.into() })?;
        writer.fill(|k, _| {
            progress(k, sites);
            let entries = entries(panel, starts, shape, k)?;
            let parts: Vec<_> = entries.chunks(1 << layout.log_per_polynomial()).collect();
            let made = threads::map(parts.len(), |i| {
                let mut messages = vec![0; leveled.context().degree()];
                for (entry, place) in parts[i].iter().zip(messages.chunks_mut(layout.stride())) {
                    place[..entry.len()].copy_from_slice(entry);
                }
                let c = client.encrypt_seeded(&messages)?;
                let mut bytes = c.mask_seed().as_bytes().to_vec();
                append_words(c.body(), leveled.context().q(), &mut bytes);
                Ok(bytes)
            });
            let bytes = made.into_iter().collect::<Result<Vec<_>, GenomeError>>()?.concat();
            write_object(ObjectType::GenomeTables, owner, meta(panel.hash(), k), &[&bytes])
        })?;
        let (panel, starts) = (hex(&panel.hash().0), starts.to_vec());
        let contents = Contents { kind: CONTENTS.into(), panel, haplotypes, starts };
        let contents =
            serde_json::to_value(contents).map_err(|_| WireError::Corrupt { what: "contents of a store" })?;
        writer.finish(Description { params: owner.0, key: owner.1, contents })?;
        progress(sites, sites);
        Ok(())
    }

    /// Opens a store of encrypted tables. Each site is checked whenever it is read.
    ///
    /// # Errors
    /// [`GenomeError::Store`], [`GenomeError::Wire`], [`GenomeError::Range`].
    pub fn open(params: &CircuitParams, path: &Path) -> Result<Self, GenomeError> {
        let leveled = params.leveled();
        let reader = Reader::open(path, Reading::Direct)?;
        let Description { params: found, key, contents } = reader.description().clone();
        if found != leveled.hash() {
            return Err(WireError::WrongParameters { found, expected: leveled.hash() }.into());
        }
        let other = || WireError::Corrupt { what: "a store of something else than encrypted tables" };
        let contents: Contents = serde_json::from_value(contents).map_err(|_| other())?;
        let panel = PanelHash(unhex(&contents.panel).filter(|_| contents.kind == CONTENTS).ok_or_else(other)?);
        let (haplotypes, starts) = (contents.haplotypes, contents.starts);
        crate::error::in_range("haplotypes", haplotypes as u64, 1, crate::panel::MAX_HAPLOTYPES as u64)?;
        let (sites, cols) = reader.grid();
        let shape = Shape { sites, starts: starts.len(), eps: 1 };
        shape.check()?;
        let layout = layout(leveled, shape, haplotypes)?;
        let owner = (leveled.hash(), key);
        let expected = block_bytes(leveled, owner, panel, &layout)?;
        if cols != 1 || reader.block_bytes() != expected || !starts.is_sorted_by(|a, b| a < b) {
            return Err(WireError::Corrupt { what: "blocks of other sizes than the parameters say" }.into());
        }
        let table_bytes = layout.polynomials() * (leveled.context().rank() + 1) * leveled.context().degree() * 8;
        Ok(Self { path: path.into(), source: Box::new(reader), owner, panel, haplotypes, starts, table_bytes })
    }

    /// The same with all tables in memory, as they are stored.
    ///
    /// # Errors
    /// [`GenomeError::Store`], [`GenomeError::Wire`].
    pub fn in_memory(self) -> Result<Self, GenomeError> {
        let mut block = Block::zeroed(self.source.block_bytes() as usize);
        let mut read = |k| {
            self.source.read(k, 0, &mut block)?;
            Ok(self.source.container(k, 0, &block)?.to_vec())
        };
        let all = (0..self.sites()).map(&mut read).collect::<Result<Vec<_>, StoreError>>()?;
        Ok(Self { source: Box::new(InMemory::new(1, all)?), ..self })
    }

    /// The key that they are encrypted under.
    pub fn key(&self) -> KeyId {
        self.owner.1
    }

    /// The starts, in order.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Sites of each window.
    pub fn sites(&self) -> usize {
        self.source.grid().0
    }

    /// Bytes of all blocks.
    pub fn bytes(&self) -> u64 {
        self.sites() as u64 * self.source.block_bytes()
    }

    /// Bytes of memory that a search takes for tables: two sites' as they are looked up, and a block.
    pub fn search_bytes(&self) -> u64 {
        2 * self.table_bytes as u64 + 2 * self.source.block_bytes()
    }

    /// Refuses less memory than a search takes for tables.
    ///
    /// # Errors
    /// [`GenomeError::TooLittleMemory`].
    pub fn expect_memory(&self, given: u64) -> Result<(), GenomeError> {
        let least = self.search_bytes();
        if given < least { Err(GenomeError::TooLittleMemory { given, least }) } else { Ok(()) }
    }

    fn table(&self, leveled: &LeveledParams, k: usize) -> Result<PackedTable, GenomeError> {
        let mut block = Block::zeroed(self.source.block_bytes() as usize);
        self.source.read(k, 0, &mut block)?;
        let shape = Shape { sites: self.sites(), starts: self.starts.len(), eps: 1 };
        let layout = layout(leveled, shape, self.haplotypes)?;
        let container = self.source.container(k, 0, &block)?;
        read_table(leveled, self.owner, (self.panel, k), layout, container).map_err(|e| match e {
            GenomeError::Wire(e) => {
                StoreError::Block { path: self.path.clone(), row: k, col: 0, error: e.into() }.into()
            }
            other => other,
        })
    }
}

/// The table of a site from the container of its block.
pub(super) fn read_table(
    leveled: &LeveledParams,
    owner: (ParamsHash, KeyId),
    (panel, k): (PanelHash, usize),
    layout: TableLayout,
    container: &[u8],
) -> Result<PackedTable, GenomeError> {
    let mut reader = Container::plain(container, ObjectType::GenomeTables)?;
    reader.header().expect_params(owner.0)?;
    reader.header().expect_key(owner.1)?;
    if reader.header().meta() != meta(panel, k) {
        return Err(WireError::Corrupt { what: "the tables of another site" }.into());
    }
    let length = polynomial_bytes(leveled);
    if reader.header().segments() != [(layout.polynomials() * length) as u64] {
        return Err(WireError::Corrupt { what: "segments of other sizes than the parameters say" }.into());
    }
    let bytes = reader.segment()?;
    let read = |i: usize| {
        let (seed, body) = bytes[i * length..(i + 1) * length].split_at(32);
        let mut mask = [0; 32];
        mask.copy_from_slice(seed);
        let body = read_words(body, leveled.context().q(), 0)?;
        Ok(SeededGlwe::from_body(leveled, MaskSeed::from_bytes(mask), body)?.expand(leveled, owner.1)?)
    };
    let polynomials = threads::map(layout.polynomials(), read);
    let polynomials = polynomials.into_iter().collect::<Result<Vec<_>, GenomeError>>()?;
    reader.finish()?;
    Ok(PackedTable::encrypted(leveled, layout, polynomials)?)
}

/// Reads bytes as the tables of the site that they claim, for two haplotypes; for fuzzing.
pub(super) fn read_any(params: &CircuitParams, bytes: &[u8]) {
    let Ok(header) = peek(bytes) else { return };
    let mut fields = Fields::new(header.meta());
    let (_, panel, site) = (fields.u32(), fields.bytes32(), fields.u64());
    let shape = Shape { sites: 1, starts: 1, eps: 1 };
    if let (Ok(panel), Ok(site), Ok(layout)) = (panel, site, layout(params.leveled(), shape, 2)) {
        let owner = (header.params(), header.key());
        let _ = read_table(params.leveled(), owner, (PanelHash(panel), site as usize), layout, bytes);
    }
}

/// The description in the container of a site.
fn meta(panel: PanelHash, k: usize) -> Vec<u8> {
    let mut meta = Vec::new();
    meta.u32(KIND);
    meta.extend(panel.0);
    meta.u64(k as u64);
    meta
}

/// Bytes of a site's block.
fn block_bytes(
    leveled: &LeveledParams,
    owner: (ParamsHash, KeyId),
    panel: PanelHash,
    layout: &TableLayout,
) -> Result<u64, GenomeError> {
    let segments = vec![(layout.polynomials() * polynomial_bytes(leveled)) as u64];
    let header = Header::new(ObjectType::GenomeTables, owner, State::default(), meta(panel, 0), segments)?;
    Ok(header.total_bytes().next_multiple_of(ALIGNMENT))
}

fn layout(leveled: &LeveledParams, shape: Shape, haplotypes: usize) -> Result<TableLayout, GenomeError> {
    let (entries, bits) = (2 * shape.starts * (haplotypes + 1), index_bits(shape, haplotypes) as usize);
    Ok(TableLayout::new(leveled, entries, bits)?)
}

fn polynomial_bytes(leveled: &LeveledParams) -> usize {
    32 + leveled.context().degree() * width(leveled.context().q())
}
