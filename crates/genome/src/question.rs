//! The question of a client: the symbols of a haplotype from a start on, and the starts that it hides among.

use crate::error::{RecordProblem, in_range, record};
use crate::panel::{MAX_STARTS, MAX_WINDOW, Sites};
use crate::vcf::{Genotype, MISSING, VariantFile};
use crate::{GenomeError, Region};
use std::fmt;
use std::ops::Range;
use sudare_ring::random::Seed;
use zeroize::Zeroizing;

/// The part of a question that a server sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Sites of the window, q.
    pub sites: usize,
    /// Candidate starts, D.
    pub starts: usize,
    /// Haplotypes that have to share a match.
    pub eps: u32,
}

impl Shape {
    /// Bits that number the starts.
    pub fn start_bits(&self) -> u32 {
        self.starts.next_power_of_two().trailing_zeros()
    }

    /// Bits of the answer, a number up to q.
    pub fn answer_bits(&self) -> u32 {
        usize::BITS - self.sites.leading_zeros()
    }

    /// Refuses what no search takes.
    ///
    /// # Errors
    /// [`GenomeError::Range`].
    pub fn check(&self) -> Result<(), GenomeError> {
        in_range("sites of the window", self.sites as u64, 1, MAX_WINDOW.into())?;
        in_range("candidate starts", self.starts as u64, 1, MAX_STARTS.into())?;
        crate::search::check_eps(self.eps)
    }
}

/// A question, all of it private but its [`Shape`] and the list of starts. It is neither printed nor cloned.
pub struct Question {
    /// Ascending, each once.
    starts: Vec<u32>,
    which: usize,
    symbols: Zeroizing<Vec<bool>>,
    eps: u32,
    label: String,
    haplotype: u32,
}

impl Question {
    /// The longest match of these symbols (ALT is true) from site `start` of a panel on. The start is not hidden.
    ///
    /// # Errors
    /// [`GenomeError::Window`], [`GenomeError::Range`], [`GenomeError::Policy`].
    pub fn new(sites: &Sites, start: usize, symbols: Vec<bool>, eps: u32) -> Result<Self, GenomeError> {
        let symbols = Zeroizing::new(symbols);
        sites.outline().check_window(start, symbols.len())?;
        let question = Self { starts: vec![start as u32], which: 0, symbols, eps, label: String::new(), haplotype: 0 };
        question.check(sites)?;
        Ok(question)
    }

    fn check(&self, sites: &Sites) -> Result<(), GenomeError> {
        let shape = self.shape();
        shape.check()?;
        sites.outline().policy.check(shape.sites, shape.starts, shape.eps)
    }

    /// The same, the start hidden among these sites, which the server sees; its own is added where it is missing.
    ///
    /// # Errors
    /// As for [`Question::new`].
    pub fn among(mut self, sites: &Sites, starts: &[usize]) -> Result<Self, GenomeError> {
        let own = self.start();
        let mut all = Vec::with_capacity(starts.len() + 1);
        for start in starts.iter().copied().chain([own]) {
            sites.outline().check_window(start, self.symbols.len())?;
            all.push(start as u32);
        }
        all.sort_unstable();
        all.dedup();
        self.which = all.partition_point(|s| (*s as usize) < own);
        self.starts = all;
        self.check(sites)?;
        Ok(self)
    }

    /// The same, hidden among `count` starts in all: the others are those of `range` that come first in an order that the
    /// seed and the start determine. Questions from one start thus have one list under one seed, whatever their
    /// symbols, eps and message, and a shorter list is part of a longer one: no two lists have the start alone in common.
    /// Lists for windows of several lengths differ in starts whose longer window does not fit the panel.
    ///
    /// # Errors
    /// As for [`Question::new`]; [`GenomeError::Range`] if the range does not hold so many windows.
    pub fn hidden(self, sites: &Sites, range: Range<usize>, count: usize, seed: &Seed) -> Result<Self, GenomeError> {
        let (own, q) = (self.start(), self.symbols.len());
        let order = seed.derive("sudare genome starts", own as u64);
        let mut fit: Vec<(u64, usize)> = range
            .filter(|s| *s != own && sites.outline().check_window(*s, q).is_ok())
            .map(|s| (order.derive("start", s as u64).stream(0).next_u64(), s))
            .collect();
        in_range("candidate starts", count as u64, 1, fit.len() as u64 + 1)?;
        fit.sort_unstable();
        let first: Vec<usize> = fit[..count - 1].iter().map(|(_, s)| *s).collect();
        self.among(sites, &first)
    }

    /// Names the sample and its haplotype, for the answer.
    #[must_use]
    pub fn named(mut self, label: impl Into<String>, haplotype: u32) -> Self {
        self.label = label.into();
        self.haplotype = haplotype;
        self
    }

    /// The part that a server sees.
    pub fn shape(&self) -> Shape {
        Shape { sites: self.symbols.len(), starts: self.starts.len(), eps: self.eps }
    }

    /// The candidate starts.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The site where it really starts.
    pub fn start(&self) -> usize {
        self.starts[self.which] as usize
    }

    pub(crate) fn which(&self) -> usize {
        self.which
    }

    pub(crate) fn symbols(&self) -> &[bool] {
        &self.symbols
    }

    pub(crate) fn name(&self) -> (&str, u32) {
        (&self.label, self.haplotype)
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Question({:?}, hidden)", self.shape())
    }
}

/// How a haplotype is read from a file of another sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Sites that the file does not have are taken for reference: single-sample files list only what differs.
    pub absent_is_reference: bool,
    /// The file's assembly, if it tells none or a wrong one.
    pub assembly: Option<String>,
}

impl Reading {
    /// The symbols of a sample's haplotype (1 or 2) at sites `window` of a panel.
    ///
    /// # Errors
    /// [`GenomeError::Assembly`], [`GenomeError::Sample`], [`GenomeError::Contig`]; [`GenomeError::Record`] for an
    /// allele that is missing, not phased, or none of the panel's.
    pub fn symbols(
        &self,
        sites: &Sites,
        file: &VariantFile,
        sample: &str,
        haplotype: u32,
        window: Range<usize>,
    ) -> Result<Vec<bool>, GenomeError> {
        in_range("the haplotype", haplotype.into(), 1, 2)?;
        let sample_index = file.sample(sample)?;
        self.check_assembly(sites, file)?;
        sites.outline().check_window(window.start, window.len())?;
        let contig = sites.outline().contig_of(window.start)?.contig.name.clone();
        let (first, last) = (sites.parts(window.start)?.0, sites.parts(window.end - 1)?.0);
        let region = Region { contig: contig.clone(), start: first, end: last };
        let mut symbols: Vec<Option<bool>> = vec![None; window.len()];
        // Of each position the first site of the window that is not passed yet.
        let mut at = window.start;
        file.visit(Some(&region), &[sample_index], &|_, _| (), &mut |r| {
            while at < window.end && sites.parts(at)?.0 < r.position {
                at += 1;
            }
            let (mut i, mut other_reference) = (at, false);
            while i < window.end && sites.parts(i)?.0 == r.position {
                let (_, reference, alternate) = sites.parts(i)?;
                if reference != r.reference {
                    other_reference = true;
                } else if let Some(symbol) = symbol(r.alternate, alternate, &r.genotypes[0], haplotype) {
                    let symbol = symbol.map_err(|p| r.refuse(p.of(sample)))?;
                    // Of several records of a site, the one with its allele tells.
                    let known = symbols[i - window.start].get_or_insert(symbol);
                    *known |= symbol;
                } else {
                    return Err(r.refuse(RecordProblem::Alternative));
                }
                i += 1;
            }
            if other_reference && i == at + 1 && symbols[at - window.start].is_none() {
                return Err(r.refuse(RecordProblem::Reference));
            }
            Ok(())
        })?;
        let mut out = Vec::with_capacity(symbols.len());
        for (i, symbol) in symbols.into_iter().enumerate() {
            match symbol {
                Some(symbol) => out.push(symbol),
                None if self.absent_is_reference => out.push(false),
                None => return Err(record(&contig, sites.parts(window.start + i)?.0, RecordProblem::Absent)),
            }
        }
        Ok(out)
    }

    fn check_assembly(&self, sites: &Sites, file: &VariantFile) -> Result<(), GenomeError> {
        let expected = &sites.outline().assembly;
        let found = self.assembly.as_deref().or(file.assembly()).unwrap_or_default();
        if !expected.is_empty() && !found.is_empty() && expected != found {
            return Err(GenomeError::Assembly { expected: expected.clone(), found: found.into() });
        }
        for c in &sites.outline().contigs {
            let same = file.contigs().iter().find(|f| f.name == c.contig.name);
            if let (Some(a), Some(b)) = (c.contig.length, same.and_then(|f| f.length))
                && a != b
            {
                let name = |length: u32| format!("with {length} bases in {}", c.contig.name);
                return Err(GenomeError::Assembly { expected: name(a), found: name(b) });
            }
        }
        Ok(())
    }
}

/// A fault of a genotype, without the name of its sample.
enum Wrong {
    Missing,
    Unphased,
    Ploidy,
    Allele,
}

impl Wrong {
    fn of(self, sample: &str) -> RecordProblem {
        let sample = sample.to_owned();
        match self {
            Self::Missing => RecordProblem::Missing { sample },
            Self::Unphased => RecordProblem::Unphased { sample },
            Self::Ploidy => RecordProblem::Ploidy { sample },
            Self::Allele => RecordProblem::Alternative,
        }
    }
}

/// The symbol of a haplotype where a record's alternatives hold the panel's; nothing for another alternative alone.
fn symbol(alternatives: &str, wanted: &str, g: &Genotype, haplotype: u32) -> Option<Result<bool, Wrong>> {
    if !g.phased && g.alleles[0] != g.alleles[1] {
        return Some(Err(Wrong::Unphased));
    }
    if u32::from(g.ploidy) < haplotype {
        return Some(Err(Wrong::Ploidy));
    }
    let allele = g.alleles[haplotype as usize - 1];
    if allele == MISSING {
        return Some(Err(Wrong::Missing));
    }
    let at = alternatives.split(',').position(|a| a == wanted);
    match (allele, at) {
        (0, _) => Some(Ok(false)),
        (a, Some(at)) if usize::from(a) == at + 1 => Some(Ok(true)),
        // A third allele matches no haplotype of the panel.
        (_, Some(_)) => Some(Err(Wrong::Allele)),
        (_, None) => None,
    }
}
