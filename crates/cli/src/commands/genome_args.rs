//! The command line of `sudare genome`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};
use sudare_genome::{Protocol, Region};

#[derive(Debug, Subcommand)]
pub enum Genome {
    /// Panels: build, describe, prepare
    #[command(subcommand)]
    Panel(PanelCommand),
    /// Compare the protocols for a search, and say which to take
    Plan(Plan),
    /// Make a client's keys: secret.key and eval.keys
    Keygen(Keygen),
    /// Encrypt a haplotype as a query; also writes what the answer is read with, QUERY.private
    Query(Query),
    /// Answer a query on a panel; needs no secret key
    Search(Search),
    /// Decrypt an answer
    Answer(Answer),
}

#[derive(Debug, Subcommand)]
pub enum PanelCommand {
    /// From a VCF or BCF file to a panel, and the description that clients need
    Build(Build),
    /// What a panel or its description holds
    Info(Info),
    /// Build the tables of all windows ahead, so that searches find them
    Prepare(Prepare),
    /// The class that padded searches of this panel take
    Class(Class),
    /// Encrypt the tables of a panel of one's own, for a server that is to learn nothing of it
    Encrypt(Encrypt),
}

impl Genome {
    /// The files that are read, and those that are written.
    pub fn files(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let list = |files: &[&PathBuf]| files.iter().map(PathBuf::from).collect::<Vec<_>>();
        match self {
            Self::Panel(PanelCommand::Build(a)) => (list(&[&a.input]), vec![a.output.clone(), a.sites()]),
            Self::Panel(PanelCommand::Encrypt(a)) => (list(&[&a.panel, &a.keys]), list(&[&a.output])),
            Self::Panel(PanelCommand::Info(_) | PanelCommand::Prepare(_) | PanelCommand::Class(_)) | Self::Plan(_) => {
                Default::default()
            }
            Self::Keygen(a) => (Vec::new(), KEY_FILES.map(|name| a.output.join(name)).into()),
            Self::Query(a) => (list(&[&a.sites, &a.keys, &a.variants]), vec![a.output.clone(), a.private()]),
            Self::Search(a) => {
                let keys = a.keys.iter().cloned();
                (list(&[&a.panel, &a.query]).into_iter().chain(keys).collect(), list(&[&a.output]))
            }
            Self::Answer(a) => (list(&[&a.sites, &a.keys, &a.pending, &a.answer]), a.output.iter().cloned().collect()),
        }
    }
}

/// What `keygen` makes: the secret key and the evaluation keys.
pub const KEY_FILES: [&str; 2] = ["secret.key", "eval.keys"];

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl Build {
    /// Where the public description goes.
    pub fn sites(&self) -> PathBuf {
        self.sites.clone().unwrap_or_else(|| with_suffix(&self.output, ".sites"))
    }
}

impl Query {
    /// Where that goes which the answer is read with.
    pub fn private(&self) -> PathBuf {
        with_suffix(&self.output, ".private")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kinds {
    /// Every record; one that is not biallelic is refused
    Biallelic,
    /// Biallelic records; others are left out
    SkipOthers,
    /// Biallelic SNPs; everything else is left out
    Snps,
}

#[derive(Debug, Args)]
pub struct Build {
    /// Phased genotypes: .vcf, .vcf.gz or .bcf, with an index (.tbi, .csi) if there is one
    #[arg(value_name = "VARIANTS")]
    pub input: PathBuf,
    /// Where the panel goes
    #[arg(short, long, value_name = "PANEL")]
    pub output: PathBuf,
    /// Where its public description goes [default: PANEL.sites]
    #[arg(long, value_name = "FILE")]
    pub sites: Option<PathBuf>,
    /// Only records of this region, as chr20:1000000-2000000
    #[arg(short, long, value_name = "REGION")]
    pub region: Option<Region>,
    /// Only these samples, or all but those after a caret: NA1,NA2 or ^NA1,NA2
    #[arg(short, long, value_name = "LIST")]
    pub samples: Option<String>,
    /// Which records make sites
    #[arg(long, value_enum, default_value_t = Kinds::Biallelic)]
    pub kinds: Kinds,
    /// Leave out sites whose minor allele is rarer
    #[arg(long, value_name = "FREQUENCY", default_value_t = 0.0)]
    pub maf: f64,
    /// The assembly's name, if the file tells none
    #[arg(long, value_name = "NAME")]
    pub assembly: Option<String>,
    /// Answer only matches that so many haplotypes share
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub least_eps: u32,
    /// Answer only windows of at most so many sites
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub most_sites: u32,
    /// Answer only queries among at most so many starts
    #[arg(long, value_name = "N", default_value_t = 65536)]
    pub most_starts: u32,
}

#[derive(Debug, Args)]
pub struct Info {
    /// A panel or a description
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Prepare {
    /// The panel
    #[arg(value_name = "PANEL")]
    pub panel: PathBuf,
    /// The folder of its tables
    #[arg(long, value_name = "FOLDER")]
    pub store: PathBuf,
    /// Sites of the windows
    #[arg(long, value_name = "Q")]
    pub sites: usize,
    /// Windows that start in this region [default: all]
    #[arg(short, long, value_name = "REGION")]
    pub region: Option<Region>,
    /// Haplotypes that have to share a match
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub eps: u32,
}

#[derive(Debug, Args)]
pub struct Class {
    /// The panel
    #[arg(value_name = "PANEL")]
    pub panel: PathBuf,
    /// Sites of the windows
    #[arg(long, value_name = "Q")]
    pub sites: usize,
    /// Haplotypes that have to share a match
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub eps: u32,
}

#[derive(Debug, Args)]
pub struct Encrypt {
    /// The panel
    #[arg(value_name = "PANEL")]
    pub panel: PathBuf,
    /// secret.key of the protocol "lookup"
    #[arg(long, value_name = "KEY")]
    pub keys: PathBuf,
    /// Where windows may start, as chr20:1000000-1000500: every site of the region
    #[arg(short, long, value_name = "REGION")]
    pub region: Region,
    /// Sites of the windows
    #[arg(long, value_name = "Q")]
    pub sites: usize,
    /// Where the tables go: a store, a folder that is read site after site
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct Plan {
    /// A panel, or its description
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Sites of the window
    #[arg(long, value_name = "Q")]
    pub sites: usize,
    /// Starts that the query hides among, its own included
    #[arg(long, value_name = "D", default_value_t = 1)]
    pub starts: usize,
    /// Queries at once
    #[arg(long, value_name = "B", default_value_t = 1)]
    pub batch: usize,
    /// Haplotypes that have to share a match
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub eps: u32,
}

#[derive(Debug, Args)]
pub struct Keygen {
    /// The protocol that the keys are for: trie, lookup or simd
    #[arg(long, value_name = "NAME", default_value = "trie")]
    pub protocol: Protocol,
    /// Longest window; keys of "trie" serve any
    #[arg(long, value_name = "Q", default_value_t = 100)]
    pub sites: usize,
    /// Starts are not hidden: shorter keys of "simd"
    #[arg(long)]
    pub open_start: bool,
    /// The folder that the keys go to
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct Query {
    /// The panel's description
    #[arg(value_name = "SITES")]
    pub sites: PathBuf,
    /// secret.key
    #[arg(long, value_name = "KEY")]
    pub keys: PathBuf,
    /// The file with the sample: .vcf, .vcf.gz or .bcf
    #[arg(long, value_name = "VARIANTS")]
    pub variants: PathBuf,
    /// The sample; several for one message of "simd": NA1,NA2
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    pub sample: Vec<String>,
    /// Its haplotype, 1 or 2; several for one message of "simd": 1,2
    #[arg(long, value_name = "H", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u32).range(1..=2))]
    pub hap: Vec<u32>,
    /// The window: the panel's sites in this region
    #[arg(short, long, value_name = "REGION")]
    pub region: Region,
    /// Hide the start among so many, its own included; the server sees the list
    #[arg(long, value_name = "D", default_value_t = 1)]
    pub among: usize,
    /// Where the other starts are taken from [default: the contig]
    #[arg(long, value_name = "REGION", requires = "among")]
    pub within: Option<Region>,
    /// Haplotypes that have to share a match
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub eps: u32,
    /// Ask for an answer that tells nothing of how it was computed ("trie"; the server needs eval.keys)
    #[arg(long)]
    pub circuit_private: bool,
    /// Sites that the sample's file does not have are reference
    #[arg(long)]
    pub absent_is_reference: bool,
    /// The assembly of the sample's file, if it tells none
    #[arg(long, value_name = "NAME")]
    pub assembly: Option<String>,
    /// Where the query goes
    #[arg(short, long, value_name = "QUERY")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct Search {
    /// The panel, or tables that their owner encrypted
    #[arg(value_name = "PANEL")]
    pub panel: PathBuf,
    /// The query
    #[arg(value_name = "QUERY")]
    pub query: PathBuf,
    /// eval.keys, for "lookup", "simd" and circuit-private answers
    #[arg(long, value_name = "KEYS")]
    pub keys: Option<PathBuf>,
    /// Keep the tables of windows in this folder
    #[arg(long, value_name = "FOLDER")]
    pub store: Option<PathBuf>,
    /// Most memory that tables of windows take beyond those in use, as 64MB [default: 256MiB]
    #[arg(long, value_parser = crate::args::size, value_name = "SIZE")]
    pub memory: Option<u64>,
    /// Pad the work for each start to this class, see `panel class`
    #[arg(long, value_name = "CLASS")]
    pub pad: Option<u64>,
    /// Where the answer goes
    #[arg(short, long, value_name = "ANSWER")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub struct Answer {
    /// The panel's description
    #[arg(value_name = "SITES")]
    pub sites: PathBuf,
    /// secret.key
    #[arg(long, value_name = "KEY")]
    pub keys: PathBuf,
    /// QUERY.private, which `query` wrote
    #[arg(value_name = "PRIVATE")]
    pub pending: PathBuf,
    /// The answer
    #[arg(value_name = "ANSWER")]
    pub answer: PathBuf,
    /// Print a response in the shape of Beacon v2 instead of a table
    #[arg(long)]
    pub json: bool,
    /// A file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
