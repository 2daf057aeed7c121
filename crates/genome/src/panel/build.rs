//! From a VCF or BCF file to a panel file, in a stream.

use super::pbwt::{Order, words_of};
use super::sites::{ContigSites, MAX_HAPLOTYPES, MAX_SITES, Outline, SiteBlock};
use super::{PanelHash, Policy};
use crate::bytes::Put;
use crate::error::{RecordProblem, in_range};
use crate::vcf::{Contig, MISSING, Progress, Record, VariantFile};
use crate::{GenomeError, Region};
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use sudare_ring::interrupt::check;
use sudare_rlwe::wire::{self, Header, ObjectType, State};
use sudare_rlwe::{KeyId, ParamsHash};
use sudare_store::atomic::{self, Access, Durability, Over, Scratch};

/// Bytes of columns of a block, about; and most bytes of its alleles.
const BLOCK_BYTES: usize = 1 << 20;
const MOST_SITES: usize = 4096;

/// The records that become sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Kinds {
    /// Every record; one that is not biallelic is refused.
    #[default]
    Biallelic,
    /// Biallelic records of any kind; others are left out.
    SkipOthers,
    /// Biallelic single-base substitutions; everything else is left out.
    Snps,
}

/// The samples of a panel.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Samples {
    /// All of the file.
    #[default]
    All,
    /// These.
    Only(Vec<String>),
    /// All but these.
    Without(Vec<String>),
}

impl Samples {
    /// Their positions in a file.
    ///
    /// # Errors
    /// [`GenomeError::Sample`] for one that the file does not have, [`GenomeError::Empty`].
    pub fn of(&self, file: &VariantFile) -> Result<Vec<usize>, GenomeError> {
        let find = |names: &[String]| names.iter().map(|n| file.sample(n)).collect::<Result<Vec<_>, _>>();
        let mut found = match self {
            Self::All => (0..file.samples().len()).collect(),
            Self::Only(names) => find(names)?,
            Self::Without(names) => {
                let without = find(names)?;
                (0..file.samples().len()).filter(|i| !without.contains(i)).collect()
            }
        };
        found.sort_unstable();
        found.dedup();
        if found.is_empty() { Err(GenomeError::Empty { what: "samples" }) } else { Ok(found) }
    }
}

/// The options of a build.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Build {
    /// Records of this region alone.
    pub region: Option<Region>,
    /// Samples.
    pub samples: Samples,
    /// Records.
    pub kinds: Kinds,
    /// Sites with a rarer minor allele are left out; 0 keeps all.
    pub least_frequency: f64,
    /// The assembly's name, if the file tells none or a wrong one.
    pub assembly: Option<String>,
    /// The limits that the owner sets.
    pub policy: Policy,
}

/// Figures of a finished build.
#[derive(Clone, Debug, PartialEq)]
pub struct Built {
    /// The panel's outline.
    pub outline: Outline,
    /// Records of the region.
    pub records: u64,
    /// Records left out because they are not biallelic or no SNPs.
    pub other_kinds: u64,
    /// Records left out because the minor allele is too rare.
    pub rare: u64,
    /// Bytes of the panel file.
    pub bytes: u64,
}

impl Build {
    /// Builds a panel file, which takes its place whole or not at all.
    ///
    /// # Errors
    /// As for [`Build::write`].
    pub fn run(&self, input: &Path, output: &Path, progress: Progress<'_>) -> Result<Built, GenomeError> {
        Over::NoKey.check(output)?;
        // The panel is its owner's alone.
        let scratch = Scratch::beside(output, Access::Owner)?;
        let out = BufWriter::with_capacity(1 << 20, scratch.file());
        let built = self.write(input, atomic::folder(output), out, progress)?;
        scratch.place(output, Over::NoKey, Durability::Power)?;
        Ok(built)
    }

    /// Writes a panel. Memory does not grow with the sites: blocks go to a file without a name in `folder`, and from
    /// there behind the header, which needs their lengths.
    ///
    /// # Errors
    /// Those of the input, [`GenomeError::Record`] for a record that no panel takes, [`GenomeError::Empty`],
    /// [`GenomeError::Range`], [`GenomeError::Io`].
    pub fn write(
        &self,
        input: &Path,
        folder: &Path,
        out: impl Write,
        progress: Progress<'_>,
    ) -> Result<Built, GenomeError> {
        if !(0.0..=0.5).contains(&self.least_frequency) {
            let found = self.least_frequency.clamp(0.0, 100.0) * 100.0;
            return Err(GenomeError::Range {
                what: "the least minor allele frequency in percent",
                found: found as u64,
                least: 0,
                most: 50,
            });
        }
        let file = VariantFile::open(input)?;
        let samples = self.samples.of(&file)?;
        let mut writer = Writer::new(self, &file, &samples, atomic::nameless(folder)?);
        file.visit(self.region.as_ref(), &samples, progress, &mut |record| writer.record(record))?;
        writer.finish(out)
    }
}

/// A panel on its way to the disk.
struct Writer<'a> {
    build: &'a Build,
    file: &'a VariantFile,
    samples: &'a [usize],
    /// Alleles of each sample, from the first record on.
    ploidies: Vec<u8>,
    order: Order,
    alleles: Vec<bool>,
    column: Vec<u64>,
    /// The block that is being filled.
    sites: SiteBlock,
    columns: Vec<u8>,
    /// Sites of a block.
    block: usize,
    spool: BufWriter<File>,
    /// Bytes of the segments so far: sites and columns in turn.
    lengths: Vec<[u64; 2]>,
    contigs: Vec<ContigSites>,
    count: usize,
    hasher: blake3::Hasher,
    records: u64,
    other_kinds: u64,
    rare: u64,
}

impl<'a> Writer<'a> {
    fn new(build: &'a Build, file: &'a VariantFile, samples: &'a [usize], spool: File) -> Self {
        Self {
            build,
            file,
            samples,
            ploidies: Vec::new(),
            order: Order::new(0),
            alleles: Vec::new(),
            column: Vec::new(),
            sites: SiteBlock::default(),
            columns: Vec::new(),
            block: 1,
            spool: BufWriter::with_capacity(1 << 20, spool),
            lengths: Vec::new(),
            contigs: Vec::new(),
            count: 0,
            hasher: blake3::Hasher::new_derive_key("sudare genome panel v1"),
            records: 0,
            other_kinds: 0,
            rare: 0,
        }
    }

    fn record(&mut self, r: &Record<'_>) -> Result<(), GenomeError> {
        self.records += 1;
        match (r.check_biallelic(), self.build.kinds) {
            (Err(problem), Kinds::Biallelic) => return Err(r.refuse(problem)),
            (Err(_), _) => {
                self.other_kinds += 1;
                return Ok(());
            }
            (Ok(()), Kinds::Snps) if !r.is_snp() => {
                self.other_kinds += 1;
                return Ok(());
            }
            _ => {}
        }
        if self.ploidies.is_empty() {
            self.begin(r)?;
        }
        self.take_alleles(r)?;
        let ones = self.alleles.iter().filter(|a| **a).count();
        let minor = ones.min(self.alleles.len() - ones) as f64 / self.alleles.len() as f64;
        if minor < self.build.least_frequency {
            self.rare += 1;
            return Ok(());
        }
        self.site(r)
    }

    /// The first record tells how many haplotypes there are.
    fn begin(&mut self, r: &Record<'_>) -> Result<(), GenomeError> {
        self.ploidies = r.genotypes.iter().map(|g| g.ploidy).collect();
        let n: usize = self.ploidies.iter().map(|p| usize::from(*p)).sum();
        in_range("haplotypes", n as u64, 1, MAX_HAPLOTYPES as u64)?;
        self.order = Order::new(n);
        self.column = vec![0; words_of(n)];
        self.block = (BLOCK_BYTES / (8 * words_of(n))).clamp(1, MOST_SITES);
        Ok(())
    }

    fn take_alleles(&mut self, r: &Record<'_>) -> Result<(), GenomeError> {
        self.alleles.clear();
        for (i, (g, ploidy)) in r.genotypes.iter().zip(&self.ploidies).enumerate() {
            let sample = || self.file.samples()[self.samples[i]].clone();
            let problem = if g.ploidy != *ploidy {
                RecordProblem::Ploidy { sample: sample() }
            } else if g.alleles.contains(&MISSING) {
                RecordProblem::Missing { sample: sample() }
            } else if !g.phased && g.alleles[0] != g.alleles[1] {
                RecordProblem::Unphased { sample: sample() }
            } else if g.alleles.iter().any(|a| *a > 1) {
                RecordProblem::Genotype { sample: sample() }
            } else {
                self.alleles.extend(g.alleles[..usize::from(*ploidy)].iter().map(|a| *a == 1));
                continue;
            };
            return Err(r.refuse(problem));
        }
        Ok(())
    }

    fn site(&mut self, r: &Record<'_>) -> Result<(), GenomeError> {
        in_range("sites", self.count as u64 + 1, 1, MAX_SITES as u64)?;
        if r.position == 0 || r.reference.is_empty() {
            return Err(r.refuse(RecordProblem::Malformed { what: "a record without a position or reference" }));
        }
        match self.contigs.last_mut() {
            Some(last) if last.contig.name == r.contig => last.sites.end += 1,
            _ => {
                let length = self.file.contigs().iter().find(|c| c.name == r.contig).and_then(|c| c.length);
                let contig = Contig { name: r.contig.into(), length };
                self.contigs.push(ContigSites { contig, sites: self.count..self.count + 1 });
            }
        }
        self.order.next(&self.alleles, &mut self.column);
        self.sites.push(r.position, r.reference, r.alternate);
        self.columns.extend(self.column.iter().flat_map(|w| w.to_le_bytes()));
        self.count += 1;
        if self.sites.len() == self.block {
            self.flush()?;
        }
        if self.sites.allele_bytes() > 64 * BLOCK_BYTES {
            return Err(r.refuse(RecordProblem::Malformed { what: "alleles over 64 MB in one block of sites" }));
        }
        Ok(())
    }

    /// Writes a block to the scratch file.
    fn flush(&mut self) -> Result<(), GenomeError> {
        if self.sites.len() == 0 {
            return Ok(());
        }
        let mut sites = Vec::new();
        self.sites.write(&mut sites);
        for part in [&sites, &self.columns] {
            self.hasher.update(&(part.len() as u64).to_le_bytes());
            self.hasher.update(part);
            self.spool.write_all(part)?;
        }
        self.lengths.push([sites.len() as u64, self.columns.len() as u64]);
        self.sites.clear();
        self.columns.clear();
        Ok(())
    }

    fn finish(mut self, out: impl Write) -> Result<Built, GenomeError> {
        self.flush()?;
        if self.count == 0 {
            return Err(GenomeError::Empty { what: "sites" });
        }
        let named = self.build.assembly.as_deref().or(self.file.assembly());
        let mut outline = Outline {
            hash: PanelHash([0; 32]),
            haplotypes: self.ploidies.iter().map(|p| usize::from(*p)).sum(),
            assembly: named.unwrap_or_default().to_owned(),
            contigs: self.contigs,
            least_frequency: self.build.least_frequency,
            policy: self.build.policy,
        };
        let mut meta = Vec::new();
        outline.write(&mut meta);
        self.hasher.update(&meta);
        outline.hash = PanelHash(*self.hasher.finalize().as_bytes());
        meta.u64(self.block as u64);
        meta.u32(0);
        let lengths = [0, 1].into_iter().flat_map(|part| self.lengths.iter().map(move |l| l[part])).collect();
        let owner = (ParamsHash(outline.hash.0), KeyId::NONE);
        let header = Header::new(ObjectType::GenomePanel, owner, State::default(), meta, lengths)?;
        let mut spool = self.spool.into_inner().map_err(|e| e.into_error())?;
        let mut out = wire::Writer::new(out, &header)?;
        let mut bytes = Vec::new();
        for part in [0, 1] {
            let mut at = 0u64;
            for both in &self.lengths {
                let start = at + if part == 0 { 0 } else { both[0] };
                check();
                spool.seek(SeekFrom::Start(start))?;
                bytes.resize(both[part] as usize, 0);
                spool.read_exact(&mut bytes)?;
                out.segment(&bytes)?;
                at += both[0] + both[1];
            }
        }
        out.finish()?;
        Ok(Built {
            outline,
            records: self.records,
            other_kinds: self.other_kinds,
            rare: self.rare,
            bytes: header.total_bytes(),
        })
    }
}
