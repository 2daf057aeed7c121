//! The tables of a window: of each site v_0 and v_1 of all starts, in the clear or encrypted.

use super::params::index_bits;
use crate::bytes::Put;
use crate::message::write_object;
use crate::panel::{Column, PanelHash};
use crate::{GenomeError, Panel, Shape};
use std::ops::Range;
use std::path::Path;
use sudare_he::keys::KeyId;
use sudare_he::tfhe::circuit_bootstrap::CircuitParams;
use sudare_he::tfhe::leveled::{LeveledClient, LeveledParams, PackedTable, SeededGlwe, TableLayout};
use sudare_he::wire::{
    Container, Fields, Header, ObjectType, WireError, pack_residues, residue_bytes, segment_at, unpack_residues,
};
use sudare_ring::mapped::MappedFile;
use sudare_ring::random::MaskSeed;
use sudare_ring::threads;

/// Tables that are encrypted.
const KIND: u32 = 2;

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

/// Where the tables of a search are from.
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

/// The tables of one list of starts, encrypted under a client's key, in a file that is read site by site: for panels
/// whose owner is the client, and whose server is to learn nothing at all.
pub struct EncryptedTables {
    map: MappedFile,
    header: Header,
    ranges: Vec<Range<u64>>,
    panel: PanelHash,
    haplotypes: usize,
    starts: Vec<u32>,
    sites: usize,
}

impl EncryptedTables {
    /// Encrypts the tables of windows of `shape.sites` sites from these starts on; sites in parallel inside a
    /// thread pool.
    ///
    /// # Errors
    /// [`GenomeError::Window`], [`GenomeError::Range`], [`GenomeError::Tfhe`], [`GenomeError::Wire`].
    pub fn encrypt(
        params: &CircuitParams,
        client: &LeveledClient,
        panel: &Panel,
        starts: &[u32],
        sites: usize,
    ) -> Result<Vec<u8>, GenomeError> {
        let shape = Shape { sites, starts: starts.len(), eps: 1 };
        shape.check()?;
        for start in starts {
            panel.outline().check_window(*start as usize, sites)?;
        }
        if !starts.is_sorted_by(|a, b| a < b) {
            return Err(WireError::Corrupt { what: "starts out of order or twice" }.into());
        }
        let leveled = params.leveled();
        let layout = layout(leveled, shape, panel.haplotypes())?;
        let segments = threads::map(sites, |k| {
            let entries = entries(panel, starts, shape, k)?;
            let mut bytes = Vec::with_capacity(layout.polynomials() * polynomial_bytes(leveled));
            for part in entries.chunks(1 << layout.log_per_polynomial()) {
                let mut messages = vec![0; leveled.context().degree()];
                for (entry, place) in part.iter().zip(messages.chunks_mut(layout.stride())) {
                    place[..entry.len()].copy_from_slice(entry);
                }
                let c = client.encrypt_seeded(&messages)?;
                bytes.extend(c.mask_seed().as_bytes());
                pack_residues(c.body(), leveled.context().q(), &mut bytes);
            }
            Ok(bytes)
        });
        let segments = segments.into_iter().collect::<Result<Vec<_>, GenomeError>>()?;
        let mut meta = Vec::new();
        meta.u32(KIND);
        meta.extend(panel.hash().0);
        meta.u64(panel.haplotypes() as u64);
        meta.u32(starts.len() as u32);
        starts.iter().for_each(|s| meta.u32(*s));
        let segments: Vec<&[u8]> = segments.iter().map(Vec::as_slice).collect();
        write_object(ObjectType::GenomeTables, (leveled.hash(), client.id()), meta, &segments)
    }

    /// Maps a file of encrypted tables. Each site is checked when it is read.
    ///
    /// # Errors
    /// [`GenomeError::Io`], [`GenomeError::Wire`], [`GenomeError::Range`].
    pub fn open(params: &CircuitParams, path: &Path) -> Result<Self, GenomeError> {
        let map = MappedFile::open(path)?;
        let header = Container::from_bytes(&map)?.header().clone();
        header.expect_object(ObjectType::GenomeTables)?;
        header.expect_params(params.leveled().hash())?;
        let mut fields = Fields::new(header.meta());
        if fields.u32()? != KIND {
            return Err(WireError::Corrupt { what: "tables of another kind" }.into());
        }
        let panel = PanelHash(fields.bytes32()?);
        let (haplotypes, count) = (fields.u64()?, fields.u32()?);
        crate::error::in_range("haplotypes", haplotypes, 1, crate::panel::MAX_HAPLOTYPES as u64)?;
        let haplotypes = haplotypes as usize;
        let shape = Shape { sites: header.segments().len(), starts: count as usize, eps: 1 };
        shape.check()?;
        let starts = (0..count).map(|_| fields.u32()).collect::<Result<Vec<_>, _>>()?;
        fields.finish()?;
        let polynomials = layout(params.leveled(), shape, haplotypes)?.polynomials();
        let length = (polynomials * polynomial_bytes(params.leveled())) as u64;
        if header.segments().iter().any(|s| *s != length) || !starts.is_sorted_by(|a, b| a < b) {
            return Err(WireError::Corrupt { what: "segments of other sizes than the parameters say" }.into());
        }
        let ranges = header.segment_ranges().collect();
        Ok(Self { map, header, ranges, panel, haplotypes, starts, sites: shape.sites })
    }

    /// The key that they are encrypted under.
    pub fn key(&self) -> KeyId {
        self.header.key()
    }

    /// The starts, in order.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Sites of each window.
    pub fn sites(&self) -> usize {
        self.sites
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    fn table(&self, leveled: &LeveledParams, k: usize) -> Result<PackedTable, GenomeError> {
        if let Some(next) = self.ranges.get(k + 1) {
            self.map.will_need(next.start as usize..next.end as usize);
        }
        let bytes = segment_at(&self.header, &self.map, k, &self.ranges)?;
        let shape = Shape { sites: self.sites, starts: self.starts.len(), eps: 1 };
        let layout = layout(leveled, shape, self.haplotypes)?;
        let length = polynomial_bytes(leveled);
        let read = |i: usize| {
            let (seed, body) = bytes[i * length..(i + 1) * length].split_at(32);
            let mut mask = [0; 32];
            mask.copy_from_slice(seed);
            let body = unpack_residues(body, leveled.context().q(), k)?;
            Ok(SeededGlwe::from_body(leveled, MaskSeed::from_bytes(mask), body)?.expand(leveled, self.key())?)
        };
        let polynomials = threads::map(layout.polynomials(), read);
        let polynomials = polynomials.into_iter().collect::<Result<Vec<_>, GenomeError>>()?;
        Ok(PackedTable::encrypted(leveled, layout, polynomials)?)
    }
}

fn layout(leveled: &LeveledParams, shape: Shape, haplotypes: usize) -> Result<TableLayout, GenomeError> {
    let (entries, bits) = (2 * shape.starts * (haplotypes + 1), index_bits(shape, haplotypes) as usize);
    Ok(TableLayout::new(leveled, entries, bits)?)
}

fn polynomial_bytes(leveled: &LeveledParams) -> usize {
    32 + leveled.context().degree() * residue_bytes(leveled.context().q())
}
