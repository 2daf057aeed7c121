//! Sites, and the public description of a panel: what a client needs to ask a question.

use super::{PanelHash, Policy};
use crate::bytes::{Put, count, text};
use crate::error::in_range;
use crate::vcf::Contig;
use crate::{GenomeError, Region};
use std::ops::Range;
use sudare_rlwe::wire::{Fields, Header, ObjectType, Reader, State, WireError, Writer};
use sudare_rlwe::{KeyId, ParamsHash};

/// Most haplotypes of a panel.
pub const MAX_HAPLOTYPES: usize = 1 << 24;
/// Most sites of a panel.
pub const MAX_SITES: usize = 1 << 31;
/// Most bytes of a block of sites.
const MAX_BLOCK: u64 = 256 << 20;

/// A biallelic site.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// Name of its contig.
    pub contig: String,
    /// Position, from 1.
    pub position: u32,
    /// REF, the symbol zero.
    pub reference: String,
    /// ALT, the symbol one.
    pub alternate: String,
}

/// The sites of a contig in a panel: one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContigSites {
    /// The contig.
    pub contig: Contig,
    /// Its sites, by number.
    pub sites: Range<usize>,
}

/// The public part of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// The panel's name.
    pub hash: PanelHash,
    /// Haplotypes, n.
    pub haplotypes: usize,
    /// The assembly, or nothing where it is not known.
    pub assembly: String,
    /// Contigs in order.
    pub contigs: Vec<ContigSites>,
    /// Least minor allele frequency of its sites.
    pub least_frequency: f64,
    /// The limits that its owner sets.
    pub policy: Policy,
}

impl Outline {
    /// Sites of the panel.
    pub fn sites(&self) -> usize {
        self.contigs.last().map_or(0, |c| c.sites.end)
    }

    pub(super) fn write(&self, meta: &mut Vec<u8>) {
        meta.u64(self.haplotypes as u64);
        meta.u64(self.least_frequency.to_bits());
        self.policy.write(meta);
        meta.text(&self.assembly);
        meta.u64(self.contigs.len() as u64);
        for c in &self.contigs {
            meta.text(&c.contig.name);
            // No contig is empty.
            meta.u32(c.contig.length.unwrap_or(0));
            meta.u64(c.sites.end as u64);
        }
    }

    pub(super) fn read(hash: PanelHash, fields: &mut Fields<'_>) -> Result<Self, WireError> {
        let haplotypes = count(fields)?;
        if haplotypes == 0 || haplotypes > MAX_HAPLOTYPES {
            let (found, limit) = (haplotypes as u64, MAX_HAPLOTYPES as u64);
            return Err(WireError::Oversize { what: "a number of haplotypes", found, limit });
        }
        let least_frequency = f64::from_bits(fields.u64()?);
        if !(0.0..=0.5).contains(&least_frequency) || least_frequency.is_sign_negative() {
            return Err(WireError::Corrupt { what: "a frequency that no minor allele has" });
        }
        let policy = Policy::read(fields)?;
        let assembly = text(fields)?;
        let (all, mut start) = (fields.u64()?, 0);
        let mut contigs: Vec<ContigSites> = Vec::new();
        for _ in 0..all {
            let name = text(fields)?;
            let length = Some(fields.u32()?).filter(|l| *l > 0);
            let end = count(fields)?;
            if end <= start || end > MAX_SITES || contigs.iter().any(|c| c.contig.name == name) {
                return Err(WireError::Corrupt { what: "contigs without sites, out of order or twice" });
            }
            contigs.push(ContigSites { contig: Contig { name, length }, sites: start..end });
            start = end;
        }
        if contigs.is_empty() {
            return Err(WireError::Corrupt { what: "a panel without sites" });
        }
        Ok(Self { hash, haplotypes, assembly, contigs, least_frequency, policy })
    }

    /// The contig that a site lies on.
    pub(crate) fn contig_of(&self, site: usize) -> Result<&ContigSites, GenomeError> {
        let found = self.contigs.iter().find(|c| c.sites.contains(&site));
        found.ok_or(GenomeError::Range {
            what: "a site number",
            found: site as u64,
            least: 0,
            most: self.sites().saturating_sub(1) as u64,
        })
    }

    /// Refuses a window that leaves its contig.
    ///
    /// # Errors
    /// [`GenomeError::Window`], [`GenomeError::Range`].
    pub fn check_window(&self, start: usize, sites: usize) -> Result<(), GenomeError> {
        let contig = self.contig_of(start)?;
        match start.checked_add(sites) {
            Some(end) if sites > 0 && end <= contig.sites.end => Ok(()),
            _ => Err(GenomeError::Window { start: start as u64, sites: sites as u64 }),
        }
    }
}

/// Sites as they lie in a file: positions, where alleles end, alleles.
#[derive(Clone, Debug, Default)]
pub(super) struct SiteBlock {
    positions: Vec<u32>,
    ends: Vec<u32>,
    alleles: Vec<u8>,
}

impl SiteBlock {
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    pub fn clear(&mut self) {
        self.positions.clear();
        self.ends.clear();
        self.alleles.clear();
    }

    /// Bytes that the alleles take so far.
    pub fn allele_bytes(&self) -> usize {
        self.alleles.len()
    }

    pub fn push(&mut self, position: u32, reference: &str, alternate: &str) {
        self.alleles.extend(reference.as_bytes());
        self.alleles.push(b'\t');
        self.alleles.extend(alternate.as_bytes());
        self.positions.push(position);
        // A block of sites is far below 2^32 bytes.
        self.ends.push(self.alleles.len() as u32);
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        self.positions.iter().chain(&self.ends).for_each(|x| out.u32(*x));
        out.extend(&self.alleles);
    }

    /// A block of `sites` sites, checked.
    pub fn read(bytes: &[u8], sites: usize) -> Result<Self, WireError> {
        let wrong = WireError::Corrupt { what: "a block of sites that is none" };
        let Some((table, alleles)) = bytes.split_at_checked(8 * sites) else { return Err(wrong) };
        let mut words = table.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b));
        let positions: Vec<u32> = words.by_ref().take(sites).collect();
        let ends: Vec<u32> = words.collect();
        let mut start = 0u32;
        for end in &ends {
            let part = alleles.get(start as usize..*end as usize).ok_or(wrong.clone())?;
            let tabs = part.iter().filter(|b| **b == b'\t').count();
            if tabs != 1 || std::str::from_utf8(part).is_err() {
                return Err(wrong);
            }
            start = *end;
        }
        if start as usize != alleles.len() || positions.contains(&0) {
            return Err(wrong);
        }
        Ok(Self { positions, ends, alleles: alleles.to_vec() })
    }

    /// Position, REF and ALT of a site of the block.
    pub fn get(&self, i: usize) -> (u32, &str, &str) {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        // Checked when the block was read, or text when it was written.
        let part = std::str::from_utf8(&self.alleles[start..self.ends[i] as usize]).unwrap_or("\t");
        let (reference, alternate) = part.split_once('\t').unwrap_or((part, ""));
        (self.positions[i], reference, alternate)
    }
}

/// The public description of a panel: its outline and its sites. It holds nothing of any haplotype.
#[derive(Clone, Debug)]
pub struct Sites {
    outline: Outline,
    /// Sites of each block but the last.
    block: usize,
    blocks: Vec<SiteBlock>,
}

impl Sites {
    pub(super) fn new(outline: Outline, block: usize, blocks: Vec<SiteBlock>) -> Self {
        Self { outline, block, blocks }
    }

    /// The public part of the panel.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// The panel's name.
    pub fn hash(&self) -> PanelHash {
        self.outline.hash
    }

    /// Sites.
    pub fn len(&self) -> usize {
        self.outline.sites()
    }

    /// Never: a panel has sites.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Position, REF and ALT of a site.
    ///
    /// # Errors
    /// [`GenomeError::Range`].
    pub fn parts(&self, site: usize) -> Result<(u32, &str, &str), GenomeError> {
        in_range("a site number", site as u64, 0, self.len().saturating_sub(1) as u64)?;
        Ok(self.blocks[site / self.block].get(site % self.block))
    }

    /// A site.
    ///
    /// # Errors
    /// [`GenomeError::Range`].
    pub fn site(&self, site: usize) -> Result<Site, GenomeError> {
        let (position, reference, alternate) = self.parts(site)?;
        let contig = self.outline.contig_of(site)?.contig.name.clone();
        Ok(Site { contig, position, reference: reference.into(), alternate: alternate.into() })
    }

    /// The sites whose positions lie in a region.
    ///
    /// # Errors
    /// [`GenomeError::Contig`] for a contig that the panel does not have.
    pub fn window(&self, region: &Region) -> Result<Range<usize>, GenomeError> {
        let contigs = &self.outline.contigs;
        let Some(found) = contigs.iter().find(|c| c.contig.name == region.contig) else {
            let known: Vec<&str> = contigs.iter().take(8).map(|c| c.contig.name.as_str()).collect();
            return Err(GenomeError::Contig { name: region.contig.clone(), known: known.join(", ") });
        };
        let first = self.first_at_least(found.sites.clone(), region.start)?;
        let after = match region.end.checked_add(1) {
            Some(end) => self.first_at_least(found.sites.clone(), end)?,
            None => found.sites.end,
        };
        Ok(first..after)
    }

    /// The first site of a range at this position or after it.
    fn first_at_least(&self, range: Range<usize>, position: u32) -> Result<usize, GenomeError> {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.parts(middle)?.0 < position {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Its bytes.
    ///
    /// # Errors
    /// [`GenomeError::Wire`] for a description over the format's limits.
    pub fn to_bytes(&self) -> Result<Vec<u8>, GenomeError> {
        let mut meta = Vec::new();
        self.outline.write(&mut meta);
        meta.u64(self.block as u64);
        let blocks: Vec<Vec<u8>> = self
            .blocks
            .iter()
            .map(|b| {
                let mut bytes = Vec::new();
                b.write(&mut bytes);
                bytes
            })
            .collect();
        let owner = (ParamsHash(self.outline.hash.0), KeyId::NONE);
        let lengths = blocks.iter().map(|b| b.len() as u64).collect();
        let header = Header::new(ObjectType::GenomeSites, owner, State::default(), meta, lengths)?;
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, &header)?;
        blocks.iter().try_for_each(|b| writer.segment(b))?;
        writer.finish()?;
        Ok(out)
    }

    /// A description from its bytes.
    ///
    /// # Errors
    /// [`GenomeError::Wire`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, GenomeError> {
        let mut reader = Reader::plain(bytes, ObjectType::GenomeSites)?;
        reader.header().expect_key(KeyId::NONE)?;
        let mut fields = Fields::new(reader.header().meta());
        let outline = Outline::read(PanelHash(reader.header().params().0), &mut fields)?;
        let block = read_block_size(&mut fields)?;
        fields.finish()?;
        let sites = outline.sites();
        check_blocks(reader.header().segments(), sites, block)?;
        let blocks =
            (0..sites.div_ceil(block)).map(|i| SiteBlock::read(reader.segment()?, block.min(sites - i * block)));
        let blocks = blocks.collect::<Result<Vec<_>, WireError>>()?;
        reader.finish()?;
        Ok(Self { outline, block, blocks })
    }
}

pub(super) fn read_block_size(fields: &mut Fields<'_>) -> Result<usize, WireError> {
    match count(fields)? {
        block @ 1..=0xFFFF => Ok(block),
        _ => Err(WireError::Corrupt { what: "blocks of no possible size" }),
    }
}

/// Refuses another number of blocks of sites than there should be, or one too large.
pub(super) fn check_blocks(segments: &[u64], sites: usize, block: usize) -> Result<(), WireError> {
    let largest = segments.iter().copied().max().unwrap_or(0);
    if segments.len() != sites.div_ceil(block) || largest > MAX_BLOCK {
        return Err(WireError::Corrupt { what: "segments of other sizes than the outline says" });
    }
    Ok(())
}
