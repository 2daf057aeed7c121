//! Haplotype panels: a PBWT in a file that is mapped, checked block by block as it is read.

mod build;
mod pbwt;
mod policy;
mod sites;

pub use build::{Build, Built, Kinds, Samples};
pub use pbwt::{Column, Order};
pub use policy::{MAX_STARTS, MAX_WINDOW, Policy};
pub use sites::{ContigSites, MAX_HAPLOTYPES, MAX_SITES, Outline, Site, Sites};

use crate::GenomeError;
use crate::bytes::flag;
use pbwt::words_of;
use sites::{SiteBlock, check_blocks, read_block_size};
use std::fmt;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use sudare_he::wire::{Container, Fields, Header, NO_KEY, ObjectType, WireError, segment_at};
use sudare_ring::mapped::MappedFile;

/// The name of a panel: a hash of its sites and columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PanelHash(pub [u8; 32]);

impl fmt::Display for PanelHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for PanelHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PanelHash({self})")
    }
}

enum Memory {
    Mapped(MappedFile),
    Owned(Vec<u8>),
}

impl Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// A panel: the server's secret.
pub struct Panel {
    memory: Memory,
    header: Header,
    ranges: Vec<Range<u64>>,
    /// Blocks of columns whose checksums matched.
    checked: Vec<AtomicBool>,
    outline: Outline,
    block: usize,
}

impl Panel {
    /// Maps a panel file. Columns are checked when they are first read.
    ///
    /// # Errors
    /// [`GenomeError::Io`], [`GenomeError::Wire`].
    pub fn open(path: &Path) -> Result<Self, GenomeError> {
        Self::new(Memory::Mapped(MappedFile::open(path)?))
    }

    /// A panel from its bytes.
    ///
    /// # Errors
    /// [`GenomeError::Wire`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, GenomeError> {
        Self::new(Memory::Owned(bytes))
    }

    fn new(memory: Memory) -> Result<Self, GenomeError> {
        let header = Container::from_bytes(&memory)?.header().clone();
        header.expect_object(ObjectType::GenomePanel)?;
        header.expect_key(NO_KEY)?;
        let mut fields = Fields::new(header.meta());
        let outline = Outline::read(PanelHash(header.params().0), &mut fields)?;
        let block = read_block_size(&mut fields)?;
        // Room for other encodings of columns.
        if flag(&mut fields)? {
            return Err(WireError::Corrupt { what: "an unknown encoding of columns" }.into());
        }
        fields.finish()?;
        let (sites, stride) = (outline.sites(), 8 * words_of(outline.haplotypes));
        let blocks = sites.div_ceil(block);
        let segments = header.segments();
        check_blocks(segments.get(..blocks).unwrap_or_default(), sites, block)?;
        let columns = (0..blocks).map(|i| (stride * block.min(sites - i * block)) as u64);
        if !segments.iter().skip(blocks).copied().eq(columns) {
            return Err(WireError::Corrupt { what: "segments of other sizes than the outline says" }.into());
        }
        let ranges = header.segment_ranges().collect();
        let checked = (0..blocks).map(|_| AtomicBool::new(false)).collect();
        Ok(Self { memory, header, ranges, checked, outline, block })
    }

    /// What everybody may know of it.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// Its name.
    pub fn hash(&self) -> PanelHash {
        self.outline.hash
    }

    /// Haplotypes, n.
    pub fn haplotypes(&self) -> usize {
        self.outline.haplotypes
    }

    /// Sites.
    pub fn sites(&self) -> usize {
        self.outline.sites()
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    /// The public description, for clients.
    ///
    /// # Errors
    /// [`GenomeError::Wire`] if a block of sites is damaged.
    pub fn description(&self) -> Result<Sites, GenomeError> {
        let sites = self.sites();
        let blocks = (0..self.checked.len()).map(|i| {
            let bytes = segment_at(&self.header, &self.memory, i, &self.ranges)?;
            SiteBlock::read(bytes, self.block.min(sites - i * self.block))
        });
        Ok(Sites::new(self.outline.clone(), self.block, blocks.collect::<Result<_, WireError>>()?))
    }

    /// Loads the column of a site.
    ///
    /// # Errors
    /// [`GenomeError::Range`]; [`GenomeError::Wire`] if its block is damaged.
    pub fn column(&self, site: usize, into: &mut Column) -> Result<(), GenomeError> {
        crate::error::in_range("a site number", site as u64, 0, self.sites() as u64 - 1)?;
        let (block, at) = (site / self.block, site % self.block);
        let segment = self.checked.len() + block;
        let range = &self.ranges[segment];
        if !self.checked[block].load(Ordering::Acquire) {
            segment_at(&self.header, &self.memory, segment, &self.ranges)?;
            self.checked[block].store(true, Ordering::Release);
        }
        let stride = 8 * words_of(self.haplotypes());
        // The container's length was compared with its segments when it was opened.
        let start = range.start as usize + at * stride;
        into.load(self.haplotypes(), &self.memory[start..start + stride]);
        Ok(())
    }

    /// Tells the system that the columns of these sites will be read next.
    pub fn will_need(&self, sites: Range<usize>) {
        let Memory::Mapped(map) = &self.memory else { return };
        let stride = 8 * words_of(self.haplotypes());
        let place = |site: usize| {
            let range = &self.ranges[self.checked.len() + site / self.block];
            range.start as usize + site % self.block * stride
        };
        if sites.start < sites.end && sites.end <= self.sites() {
            map.will_need(place(sites.start)..place(sites.end - 1) + stride);
        }
    }

    /// Checks every block now.
    ///
    /// # Errors
    /// [`GenomeError::Wire`].
    pub fn check(&self) -> Result<(), GenomeError> {
        for i in 0..self.ranges.len() {
            segment_at(&self.header, &self.memory, i, &self.ranges)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Panel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Panel({}, {} haplotypes, {} sites)", self.hash(), self.haplotypes(), self.sites())
    }
}
