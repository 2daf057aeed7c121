//! Errors of panels, queries and messages.

use crate::PanelHash;
use std::{fmt, io};
use sudare_exact::ExactError;
use sudare_ring::{ErrorKind, Kinded, RingError};
use sudare_rlwe::RlweError;
use sudare_rlwe::wire::WireError;
use sudare_store::StoreError;
use sudare_tfhe::TfheError;

/// A fault of one record of a VCF or BCF file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordProblem {
    /// A heterozygous genotype without phase.
    Unphased {
        /// Whose.
        sample: String,
    },
    /// A genotype that was not called.
    Missing {
        /// Whose.
        sample: String,
    },
    /// Another number of alleles than the sample's first genotype had.
    Ploidy {
        /// Whose.
        sample: String,
    },
    /// A genotype that is none.
    Genotype {
        /// Whose.
        sample: String,
    },
    /// More than one alternative allele.
    Multiallelic,
    /// No alternative allele.
    NoAlternative,
    /// A record that should stand before the last one.
    Unsorted,
    /// The same position and alleles twice.
    Duplicate,
    /// No genotypes, or another field before them.
    NoGenotypes,
    /// Another reference allele than the panel's.
    Reference,
    /// Another alternative allele than the panel's.
    Alternative,
    /// A site of the panel that the file does not have.
    Absent,
    /// Something else that no record has.
    Malformed {
        /// What.
        what: &'static str,
    },
}

impl fmt::Display for RecordProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unphased { sample } => {
                write!(f, "the genotype of {sample} is not phased; phase the file first (SHAPEIT, Eagle, Beagle)")
            }
            Self::Missing { sample } => {
                write!(
                    f,
                    "the genotype of {sample} is missing; impute or drop the record first, or leave the sample out"
                )
            }
            Self::Ploidy { sample } => {
                write!(f, "{sample} has another number of alleles than before; take a region of one ploidy")
            }
            Self::Genotype { sample } => write!(f, "the genotype of {sample} cannot be read; it is written as 0|1"),
            Self::Multiallelic => f.write_str(
                "the record has more than one alternative allele; skip such records, keep SNPs alone, or split them \
                 with `bcftools norm -m -`",
            ),
            Self::NoAlternative => {
                f.write_str("the record has no alternative allele; drop such records with `bcftools view -m 2`")
            }
            Self::Unsorted => f.write_str("the record is out of order; sort the file with `bcftools sort`"),
            Self::Duplicate => {
                f.write_str("this is a second record of the site; drop it with `bcftools norm -d exact`")
            }
            Self::NoGenotypes => f.write_str("the record has no genotypes; its first FORMAT field has to be GT"),
            Self::Reference => {
                f.write_str("the reference allele is not the panel's; take a file of the panel's assembly")
            }
            Self::Alternative => f.write_str("the alternative allele is not the panel's; normalise both files alike"),
            Self::Absent => f.write_str(
                "the panel has this site and the file has not; add it, or say that absent sites are reference",
            ),
            Self::Malformed { what } => f.write_str(what),
        }
    }
}

/// An operation that was refused. No message holds anything of a query's symbols or start.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GenomeError {
    /// A file that cannot be read or written.
    #[error("reading or writing failed: {kind}")]
    Io {
        /// The system's message.
        kind: io::ErrorKind,
    },
    /// A record that a panel or a query does not take.
    #[error("{contig}:{position}: {problem}")]
    Record {
        /// Its contig.
        contig: String,
        /// Its position, from 1.
        position: u32,
        /// The fault, and the remedy.
        problem: RecordProblem,
    },
    /// A file that ends within its compressed data.
    #[error("the compressed file ends too early (no end mark); copy or download it again")]
    TruncatedGzip,
    /// Compressed data that is not BGZF.
    #[error("this is not compressed in blocks (BGZF); recompress it with `bgzip`, or give it uncompressed")]
    NotBgzf,
    /// A file that is neither VCF nor BCF, or is damaged.
    #[error("this VCF or BCF file cannot be read: {what}")]
    Variants {
        /// The place where reading stopped.
        what: String,
    },
    /// A contig that a file does not have.
    #[error("there is no contig {name:?}; there are {known}")]
    Contig {
        /// The name asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// A sample that a file does not have.
    #[error("there is no sample {name:?} in this file; `bcftools query -l` lists those that there are")]
    Sample {
        /// The name asked for.
        name: String,
    },
    /// Text that is no region.
    #[error("{text:?} is not a region; write it as chr20:1000000-2000000, or the contig alone")]
    Region {
        /// The value that was given.
        text: String,
    },
    /// Files of different assemblies.
    #[error(
        "the file has the assembly {found:?} and the panel {expected:?}; lift the file over, or name the assembly if \
         that is wrong"
    )]
    Assembly {
        /// The panel's.
        expected: String,
        /// The file's.
        found: String,
    },
    /// A panel without haplotypes or sites.
    #[error("no {what} are left; widen the region, the samples or the frequency filter")]
    Empty {
        /// The missing part.
        what: &'static str,
    },
    /// A number over what is possible.
    #[error("{what}: {found} is not from {least} to {most}")]
    Range {
        /// The name of the number.
        what: &'static str,
        /// The number.
        found: u64,
        /// The least possible.
        least: u64,
        /// The largest possible.
        most: u64,
    },
    /// A query that the panel's owner does not answer.
    #[error("the panel's policy: {what} is {allowed}, and {found} was asked for")]
    Policy {
        /// The name of the limit.
        what: &'static str,
        /// The limit.
        allowed: u64,
        /// The value that was asked for.
        found: u64,
    },
    /// A window that runs over the end of its contig.
    #[error(
        "a window of {sites} sites from site {start} on does not fit its contig; take fewer sites or an earlier start"
    )]
    Window {
        /// The candidate start, which is public.
        start: u64,
        /// Sites of the window.
        sites: u64,
    },
    /// A message for another panel.
    #[error(
        "this belongs to panel {found}, not to {expected}; use the description that the panel's owner publishes now"
    )]
    WrongPanel {
        /// The panel found.
        found: PanelHash,
        /// The panel expected.
        expected: PanelHash,
    },
    /// An answer to another query.
    #[error("this is the answer to another query; read it with that one")]
    WrongQuery,
    /// A message of another protocol.
    #[error("this is of protocol {found}, and {expected} is needed; use one protocol for keys, query and answer")]
    WrongProtocol {
        /// The protocol found.
        found: &'static str,
        /// The protocol expected.
        expected: &'static str,
    },
    /// A search that cannot be decrypted rightly with the declared probability.
    #[error(
        "{sites} sites and {starts} starts give a path of {products} products, after which an answer decrypts wrongly \
         with probability 2^{found:.1}, over the declared 2^{declared:.1}; ask for fewer sites or starts"
    )]
    Failure {
        /// Sites.
        sites: u64,
        /// Starts.
        starts: u64,
        /// Products on the longest path.
        products: u64,
        /// log2 of the probability.
        found: f64,
        /// log2 of the bound.
        declared: f64,
    },
    /// Work over the public class that searches are padded to.
    /// The message leaves out the number of products: over all eps it would count the panel's alleles.
    #[error("a window of this search takes more products than the class of {class}; take a larger class")]
    OverClass {
        /// Products of the class.
        class: u64,
    },
    /// Keys that a protocol needs and nobody gave.
    #[error("{what} needs the client's evaluation keys; make them with `keygen` and give them to the server")]
    MissingKeys {
        /// The name of the operation.
        what: &'static str,
    },
    /// An answer that no search gives.
    #[error("the answer is not one that a search gives; check that the server and the key are the right ones")]
    Nonsense,
    /// Bytes that are no such object, or a damaged one.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A store that was refused, or a damaged one.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Less memory than a search takes for tables.
    #[error("a search of these tables takes {least} bytes of memory, and {given} are allowed; allow {least} or more")]
    TooLittleMemory {
        /// Bytes that are allowed.
        given: u64,
        /// The least that will do.
        least: u64,
    },
    /// TFHE refused.
    #[error(transparent)]
    Tfhe(#[from] TfheError),
    /// An exact scheme refused.
    #[error(transparent)]
    Exact(#[from] ExactError),
}

impl From<io::Error> for GenomeError {
    fn from(e: io::Error) -> Self {
        Self::Io { kind: e.kind() }
    }
}

impl From<RingError> for GenomeError {
    fn from(e: RingError) -> Self {
        Self::Exact(e.into())
    }
}

impl From<RlweError> for GenomeError {
    fn from(e: RlweError) -> Self {
        Self::Exact(e.into())
    }
}

impl Kinded for GenomeError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Wire(e) => e.kind(),
            Self::Store(e) => e.kind(),
            Self::Tfhe(e) => e.kind(),
            Self::Exact(e) => e.kind(),
            Self::Io { .. } => ErrorKind::Io,
            Self::TruncatedGzip | Self::NotBgzf => ErrorKind::Format,
            Self::Record { .. }
            | Self::Variants { .. }
            | Self::Contig { .. }
            | Self::Sample { .. }
            | Self::Assembly { .. }
            | Self::Empty { .. }
            | Self::Window { .. } => ErrorKind::Input,
            Self::Region { .. } | Self::Range { .. } => ErrorKind::Usage,
            Self::Policy { .. } | Self::Failure { .. } | Self::OverClass { .. } | Self::TooLittleMemory { .. } => {
                ErrorKind::Parameters
            }
            Self::WrongPanel { .. } | Self::WrongQuery | Self::WrongProtocol { .. } | Self::Nonsense => {
                ErrorKind::Mismatch
            }
            Self::MissingKeys { .. } => ErrorKind::MissingKey,
        }
    }

    fn system(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { kind } => Some(*kind),
            Self::Wire(e) => e.system(),
            Self::Store(e) => e.system(),
            _ => None,
        }
    }
}

/// A record's problem as an error.
pub(crate) fn record(contig: &str, position: u32, problem: RecordProblem) -> GenomeError {
    GenomeError::Record { contig: contig.into(), position, problem }
}

/// Refuses a number out of range.
pub(crate) fn in_range(what: &'static str, found: u64, least: u64, most: u64) -> Result<(), GenomeError> {
    if (least..=most).contains(&found) { Ok(()) } else { Err(GenomeError::Range { what, found, least, most }) }
}
