//! Phased genotypes from VCF and BCF files, plain or in BGZF blocks, whole or by region.
//!
//! Blocks and indexes (tabix, CSI) are read by noodles. Headers and records are read here, for the few fields
//! that panels need: as leniently as bcftools where others are concerned, with every length bounded, and
//! without a panic on any bytes.

mod bcf;
mod header;
mod source;
mod text;

pub use header::Contig;

use crate::error::{RecordProblem, record};
use crate::{GenomeError, Region};
use header::Header;
use source::{Encoding, Source};
use std::path::{Path, PathBuf};
use sudare_ring::interrupt::check;

/// Most bytes of a header.
const MAX_HEADER: u64 = 256 << 20;
/// Most samples of a file.
pub const MAX_SAMPLES: usize = 1 << 23;

/// The allele that was not called.
pub const MISSING: u8 = u8::MAX;

/// The genotype of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Genotype {
    /// Alleles: 0 is REF, 1 the first ALT; [`MISSING`]. The second is that of the first if there is one alone.
    pub alleles: [u8; 2],
    /// One or two.
    pub ploidy: u8,
    /// Whether the order of both alleles is known.
    pub phased: bool,
}

/// One record, with the genotypes of the samples that were asked for.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Contig.
    pub contig: &'a str,
    /// Position, from 1.
    pub position: u32,
    /// REF.
    pub reference: &'a str,
    /// ALT; several are separated by commas, none is a dot or nothing.
    pub alternate: &'a str,
    /// Genotypes, in the order of the samples asked for.
    pub genotypes: &'a [Genotype],
}

impl Record<'_> {
    /// An error about this record.
    pub fn refuse(&self, problem: RecordProblem) -> GenomeError {
        record(self.contig, self.position, problem)
    }

    /// Whether there is exactly one alternative allele.
    ///
    /// # Errors
    /// The fault, if there is one.
    pub fn check_biallelic(&self) -> Result<(), RecordProblem> {
        match self.alternate {
            "" | "." => Err(RecordProblem::NoAlternative),
            several if several.contains(',') => Err(RecordProblem::Multiallelic),
            _ => Ok(()),
        }
    }

    /// Whether both alleles are single bases.
    pub fn is_snp(&self) -> bool {
        let base = |x: &str| matches!(x.as_bytes(), [b'A' | b'C' | b'G' | b'T' | b'a' | b'c' | b'g' | b't']);
        base(self.reference) && base(self.alternate)
    }
}

/// Progress of reading: the compressed bytes that were read, and the length of the file.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// A VCF or BCF file whose header was read.
#[derive(Clone, Debug)]
pub struct VariantFile {
    path: PathBuf,
    encoding: Encoding,
    header: Header,
}

impl VariantFile {
    /// Reads the header.
    ///
    /// # Errors
    /// [`GenomeError::Io`], [`GenomeError::TruncatedGzip`], [`GenomeError::NotBgzf`], [`GenomeError::Variants`].
    pub fn open(path: &Path) -> Result<Self, GenomeError> {
        let (mut source, encoding) = Source::open(path)?;
        let header = source.stream(|reader| match encoding.binary {
            true => bcf::read_header(reader),
            false => text::read_header(reader),
        })?;
        Ok(Self { path: path.to_owned(), encoding, header })
    }

    /// Names of the samples, in order.
    pub fn samples(&self) -> &[String] {
        &self.header.samples
    }

    /// The position of a sample.
    ///
    /// # Errors
    /// [`GenomeError::Sample`].
    pub fn sample(&self, name: &str) -> Result<usize, GenomeError> {
        let at = self.samples().iter().position(|s| s == name);
        at.ok_or_else(|| GenomeError::Sample { name: name.into() })
    }

    /// The contigs that the header names.
    pub fn contigs(&self) -> &[Contig] {
        &self.header.contigs
    }

    /// The assembly that the header names, if any.
    pub fn assembly(&self) -> Option<&str> {
        self.header.assembly.as_deref()
    }

    /// Hands over every record of a region in order, with the genotypes of `samples`. A tabix or CSI index beside
    /// the file is used where there is one. Only records that begin in the region count.
    ///
    /// # Errors
    /// Those of the file, [`GenomeError::Contig`] for a region on none of its contigs,
    /// [`RecordProblem::Unsorted`], and those of `work`.
    pub fn visit(
        &self,
        region: Option<&Region>,
        samples: &[usize],
        progress: Progress<'_>,
        work: &mut dyn FnMut(&Record<'_>) -> Result<(), GenomeError>,
    ) -> Result<(), GenomeError> {
        if let Some(region) = region {
            self.check_contig(region)?;
        }
        let (mut source, _) = Source::open(&self.path)?;
        let indexed = source.seek(&self.path, &self.header, self.encoding, region)?;
        let (read, length) = (source.read_so_far(), source.length());
        let mut order = Order::default();
        let mut records = 0u64;
        let mut each = |r: &Record<'_>| {
            records += 1;
            check();
            if records.is_multiple_of(256) {
                progress(read.get(), length);
            }
            if region.is_some_and(|x| !x.holds(r.contig, r.position)) {
                // Without an index all records are read, in whatever order they are.
                return Ok(());
            }
            order.next(r)?;
            work(r)
        };
        source.stream(|reader| {
            // An index leads past the header.
            if !indexed {
                match self.encoding.binary {
                    true => drop(bcf::read_header(reader)?),
                    false => drop(text::read_header(reader)?),
                }
            }
            match self.encoding.binary {
                true => bcf::read_records(reader, &self.header, samples, &mut each),
                false => text::read_records(reader, &self.header, samples, &mut each),
            }
        })?;
        progress(length, length);
        Ok(())
    }

    fn check_contig(&self, region: &Region) -> Result<(), GenomeError> {
        let contigs = self.contigs();
        // Files without contig lines tell only when they are read.
        if contigs.is_empty() || contigs.iter().any(|c| c.name == region.contig) {
            return Ok(());
        }
        let mut known: Vec<&str> = contigs.iter().take(8).map(|c| c.name.as_str()).collect();
        if contigs.len() > known.len() {
            known.push("…");
        }
        Err(GenomeError::Contig { name: region.contig.clone(), known: known.join(", ") })
    }
}

/// Refuses records out of order: contigs in one piece each, positions that do not fall, no site twice.
#[derive(Default)]
struct Order {
    left: Vec<String>,
    contig: String,
    position: u32,
    /// Alleles of the records at this position.
    alleles: Vec<(String, String)>,
}

impl Order {
    fn next(&mut self, r: &Record<'_>) -> Result<(), GenomeError> {
        if r.contig != self.contig {
            if self.left.iter().any(|c| c == r.contig) {
                return Err(r.refuse(RecordProblem::Unsorted));
            }
            self.left.push(std::mem::replace(&mut self.contig, r.contig.into()));
            self.position = 0;
        }
        if r.position < self.position {
            return Err(r.refuse(RecordProblem::Unsorted));
        }
        if r.position > self.position {
            self.alleles.clear();
            self.position = r.position;
        }
        if self.alleles.iter().any(|(a, b)| a == r.reference && b == r.alternate) {
            return Err(r.refuse(RecordProblem::Duplicate));
        }
        self.alleles.push((r.reference.into(), r.alternate.into()));
        Ok(())
    }
}
