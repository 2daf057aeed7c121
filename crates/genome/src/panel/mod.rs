//! Haplotype panels: a PBWT in a file, checked block by block as it is read.

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
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use sudare_rlwe::KeyId;
use sudare_rlwe::wire::{Fields, Header, ObjectType, WireError, check_length, peek, segment_in, segment_place};
use sudare_store::read_exact_at;

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

/// Where a panel's bytes are. A file is read and not mapped: one that somebody shortens meanwhile is an error of the next
/// reading, where a mapping would end the process.
enum Memory {
    File(File),
    Owned(Vec<u8>),
}

impl Memory {
    fn len(&self) -> Result<u64, GenomeError> {
        Ok(match self {
            Self::File(file) => file.metadata()?.len(),
            Self::Owned(bytes) => bytes.len() as u64,
        })
    }

    /// The bytes of a range.
    fn read(&self, range: Range<u64>) -> Result<Cow<'_, [u8]>, GenomeError> {
        // Ranges are those of the header, whose length was compared with the file's.
        let length = range.end.saturating_sub(range.start) as usize;
        match self {
            Self::File(file) => {
                let mut bytes = vec![0; length];
                read_exact_at(file, &mut bytes, range.start)?;
                Ok(bytes.into())
            }
            Self::Owned(bytes) => {
                let ends = || WireError::Corrupt { what: "a panel that ends early" };
                let found = bytes.get(range.start as usize..range.end as usize).ok_or_else(ends)?;
                Ok(found.into())
            }
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
    /// Opens a panel file. Columns are checked when they are first read.
    ///
    /// # Errors
    /// [`GenomeError::Io`], [`GenomeError::Wire`].
    pub fn open(path: &Path) -> Result<Self, GenomeError> {
        let file = File::open(path)?;
        let header = peek(BufReader::new(&file))?;
        Self::new(header, Memory::File(file))
    }

    /// A panel from its bytes.
    ///
    /// # Errors
    /// [`GenomeError::Wire`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, GenomeError> {
        let header = peek(bytes.as_slice())?;
        Self::new(header, Memory::Owned(bytes))
    }

    fn new(header: Header, memory: Memory) -> Result<Self, GenomeError> {
        check_length(&header, memory.len()?)?;
        header.expect_object(ObjectType::GenomePanel)?;
        header.expect_key(KeyId::NONE)?;
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

    /// The public part of it.
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
        self.header.total_bytes()
    }

    /// The public description, for clients.
    ///
    /// # Errors
    /// [`GenomeError::Wire`] if a block of sites is damaged.
    pub fn description(&self) -> Result<Sites, GenomeError> {
        let sites = self.sites();
        let blocks = (0..self.checked.len())
            .map(|i| self.segment(i, |bytes| SiteBlock::read(bytes, self.block.min(sites - i * self.block))));
        Ok(Sites::new(self.outline.clone(), self.block, blocks.collect::<Result<_, GenomeError>>()?))
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
            self.segment(segment, |_| Ok(()))?;
            self.checked[block].store(true, Ordering::Release);
        }
        let stride = 8 * words_of(self.haplotypes());
        // The container's length was compared with its segments when it was opened.
        let start = range.start + (at * stride) as u64;
        into.load(self.haplotypes(), &self.memory.read(start..start + stride as u64)?);
        Ok(())
    }

    /// The result of `take` for a segment whose checksum matches.
    fn segment<T>(&self, i: usize, take: impl FnOnce(&[u8]) -> Result<T, WireError>) -> Result<T, GenomeError> {
        let bytes = self.memory.read(segment_place(&self.header, i, &self.ranges)?)?;
        Ok(take(segment_in(&self.header, &bytes, i, &self.ranges)?)?)
    }

    /// Checks every block now.
    ///
    /// # Errors
    /// [`GenomeError::Wire`].
    pub fn check(&self) -> Result<(), GenomeError> {
        for i in 0..self.ranges.len() {
            self.segment(i, |_| Ok(()))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Panel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Panel({}, {} haplotypes, {} sites)", self.hash(), self.haplotypes(), self.sites())
    }
}
