//! Private searches in haplotype panels.

use crate::error::{Refusal, Result};
use crate::files;
use crate::work::{Workers, bytes, long, with_progress};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::Arc;
use sudare_genome::panel::{Build, Kinds, Outline, Policy, Samples};
use sudare_genome::planner::{Choice, Facts, Prices};
use sudare_genome::report::Row;
use sudare_genome::vcf::VariantFile;
use sudare_genome::{
    self as genome, Counters, Decoys, GenomeError, KeyPlan, Options, Pending, Protocol, Question, Reading, Region,
    Shape, trie,
};
use sudare_ring::Threads;

/// Haplotypes, sites, assembly, contigs with their numbers of sites, and the policy's three limits.
type Outlined = (usize, usize, String, Vec<(String, usize)>, (u32, u32, u32));

fn outlined(o: &Outline) -> Outlined {
    let contigs = o.contigs.iter().map(|c| (c.contig.name.clone(), c.sites.len())).collect();
    let policy = (o.policy.least_eps, o.policy.most_sites, o.policy.most_starts);
    (o.haplotypes, o.sites(), o.assembly.clone(), contigs, policy)
}

/// A panel: the server's secret.
#[pyclass(frozen, module = "sudare._core")]
pub struct GenomePanel(Arc<genome::Panel>);

#[pymethods]
impl GenomePanel {
    /// Builds a panel file and opens it; samples as a list to keep or to leave out.
    #[staticmethod]
    #[pyo3(signature = (input, output, *, region, keep, leave, kinds, maf, assembly, policy, progress))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    fn build(
        py: Python<'_>,
        input: PathBuf,
        output: PathBuf,
        region: Option<&str>,
        keep: Option<Vec<String>>,
        leave: Option<Vec<String>>,
        kinds: &str,
        maf: f64,
        assembly: Option<String>,
        policy: (u32, u32, u32),
        progress: Option<Py<PyAny>>,
    ) -> Result<Self> {
        let build = Build {
            region: region.map(str::parse::<Region>).transpose()?,
            samples: match (keep, leave) {
                (Some(names), _) => Samples::Only(names),
                (None, Some(names)) => Samples::Without(names),
                (None, None) => Samples::All,
            },
            kinds: match kinds {
                "snps" => Kinds::Snps,
                "skip-others" => Kinds::SkipOthers,
                _ => Kinds::Biallelic,
            },
            least_frequency: maf,
            assembly,
            policy: Policy { least_eps: policy.0, most_sites: policy.1, most_starts: policy.2 },
        };
        with_progress(py, progress, |tell| {
            build.run(&input, &output, &|done, all| tell(done as usize, all as usize))?;
            Ok(Self(Arc::new(genome::Panel::open(&output)?)))
        })
    }

    /// A panel of before.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> Result<Self> {
        long(py, || Ok(Self(Arc::new(genome::Panel::open(&path)?))))
    }

    /// Checks every block of it.
    fn check(&self, py: Python<'_>) -> Result<()> {
        long(py, || Ok(self.0.check()?))
    }

    /// The public description.
    fn sites(&self, py: Python<'_>) -> Result<GenomeSites> {
        long(py, || Ok(GenomeSites(self.0.description()?)))
    }

    /// Its name.
    #[getter]
    fn hash(&self) -> String {
        self.0.hash().to_string()
    }

    /// Bytes of the file.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.0.bytes()
    }

    /// The longest match in the clear, and how many haplotypes share it.
    fn longest(
        &self,
        py: Python<'_>,
        start: usize,
        symbols: PyReadonlyArray1<'_, bool>,
        eps: u32,
    ) -> Result<(usize, u32)> {
        let symbols = symbols.as_array().to_vec();
        long(py, || {
            let found = genome::search::longest(&self.0, start, &symbols, eps)?;
            Ok((found.length, found.haplotypes))
        })
    }

    /// The class of padded searches.
    fn search_class(
        &self,
        py: Python<'_>,
        sites: usize,
        eps: u32,
        threads: Workers,
        progress: Option<Py<PyAny>>,
    ) -> Result<u64> {
        let store = trie::Store::new(self.0.clone());
        with_progress(py, progress, |tell| Ok(Threads::new(threads.0).run(|| trie::class(&store, sites, eps, tell))?))
    }

    /// The planner's choice: protocol and table.
    fn plan(&self, py: Python<'_>, sites: usize, starts: usize, batch: usize, eps: u32) -> Result<(String, String)> {
        long(py, || chosen(Facts::of_panel(&self.0, Shape { sites, starts, eps }, batch)?))
    }
}

fn chosen(facts: Facts) -> Result<(String, String)> {
    let choice = Choice::of(facts, &Prices::default())?;
    Ok((choice.protocol().to_string(), choice.to_string()))
}

/// The public description of a panel.
#[pyclass(frozen, module = "sudare._core")]
pub struct GenomeSites(genome::Sites);

#[pymethods]
impl GenomeSites {
    /// A description from its bytes.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> Result<Self> {
        long(py, || Ok(Self(genome::Sites::from_bytes(data)?)))
    }

    /// Its bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.0.to_bytes()?))
    }

    /// The panel's name.
    #[getter]
    fn hash(&self) -> String {
        self.0.hash().to_string()
    }

    /// Haplotypes, sites, assembly, contigs, policy.
    fn outline(&self) -> Outlined {
        outlined(self.0.outline())
    }

    /// Contig, position, REF and ALT of each site.
    #[expect(clippy::type_complexity, reason = "four columns")]
    fn columns<'py>(
        &self,
        py: Python<'py>,
    ) -> Result<(Vec<String>, Bound<'py, PyArray1<u32>>, Vec<String>, Vec<String>)> {
        let (mut chrom, mut pos, mut reference, mut alternate) = (vec![], vec![], vec![], vec![]);
        for i in 0..self.0.len() {
            let s = self.0.site(i)?;
            chrom.push(s.contig);
            pos.push(s.position);
            reference.push(s.reference);
            alternate.push(s.alternate);
        }
        Ok((chrom, PyArray1::from_vec(py, pos), reference, alternate))
    }

    /// First site and the one after the last of a region.
    fn window(&self, region: &str) -> Result<(usize, usize)> {
        let window = self.0.window(&region.parse()?)?;
        Ok((window.start, window.end))
    }

    /// The symbols of a sample's haplotype at these sites.
    #[pyo3(signature = (variants, sample, hap, window, *, absent_is_reference, assembly))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    fn symbols<'py>(
        &self,
        py: Python<'py>,
        variants: PathBuf,
        sample: &str,
        hap: u32,
        window: (usize, usize),
        absent_is_reference: bool,
        assembly: Option<String>,
    ) -> Result<Bound<'py, PyArray1<bool>>> {
        let reading = Reading { absent_is_reference, assembly };
        let symbols = long(py, || {
            let file = VariantFile::open(&variants)?;
            Ok(reading.symbols(&self.0, &file, sample, hap, window.0..window.1)?)
        })?;
        Ok(PyArray1::from_vec(py, symbols))
    }

    /// The planner's choice by what is public: protocol and table.
    fn plan(&self, sites: usize, starts: usize, batch: usize, eps: u32) -> Result<(String, String)> {
        chosen(Facts::guess(self.0.outline().haplotypes, Shape { sites, starts, eps }, batch))
    }
}

/// sample, hap, chrom, start, end (0 for none), sites, matched, status.
type Line = (String, u32, String, u32, u32, usize, usize, String);

/// Holds the secret key.
#[pyclass(frozen, module = "sudare._core")]
pub struct GenomeClient(genome::Client, Threads);

#[pymethods]
impl GenomeClient {
    #[new]
    fn new(py: Python<'_>, protocol: &str, sites: usize, hidden: bool, threads: Workers) -> Result<Self> {
        let plan = KeyPlan { protocol: protocol.parse::<Protocol>()?, sites, hidden };
        long(py, || Ok(Self(genome::Client::generate(plan)?, Threads::new(threads.0))))
    }

    /// A client of before.
    #[staticmethod]
    fn from_secret_bytes(py: Python<'_>, secret: &[u8], threads: Workers) -> Result<Self> {
        long(py, || Ok(Self(genome::Client::from_secret_bytes(secret)?, Threads::new(threads.0))))
    }

    /// A client whose secret key is in a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, threads: Workers) -> Result<Self> {
        long(py, || {
            let secret = files::read_key(&path)?;
            Ok(Self(genome::Client::from_secret_bytes(&secret)?, Threads::new(threads.0)))
        })
    }

    /// Writes the secret key to a file.
    fn save(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> Result<()> {
        long(py, || {
            let secret = self.0.secret_bytes()?;
            files::write_key(&path, &[&secret], self.0.id(), overwrite)
        })
    }

    /// The secret key's bytes.
    fn secret_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.secret_bytes()?))
    }

    /// The bytes of the server's keys.
    fn evaluation_keys<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        bytes(py, || Ok(self.1.run(|| self.0.evaluation_keys())?))
    }

    /// The key's public name.
    #[getter]
    fn key_id(&self) -> String {
        self.0.id().to_string()
    }

    /// The protocol.
    #[getter]
    fn protocol(&self) -> String {
        self.0.plan().protocol.to_string()
    }

    /// Encrypts haplotypes (label, number, symbols) from one start, hidden among `among` starts of `within`; the
    /// query's bytes, and those that the answer is read with.
    #[pyo3(signature = (sites, start, haplotypes, *, among, within, eps, circuit_private))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of one Python function")]
    fn query<'py>(
        &self,
        py: Python<'py>,
        sites: &GenomeSites,
        start: usize,
        haplotypes: Vec<(String, u32, Vec<bool>)>,
        among: usize,
        within: (usize, usize),
        eps: u32,
        circuit_private: bool,
    ) -> Result<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let (query, pending) = long(py, || {
            let question = |(label, number, symbols): (String, u32, Vec<bool>)| {
                Ok(Question::new(&sites.0, start, symbols, eps)?.named(label, number))
            };
            let questions =
                haplotypes.into_iter().map(question).collect::<std::result::Result<Vec<_>, GenomeError>>()?;
            let decoys = Decoys { among, within: within.0..within.1 };
            let (query, pending) = self.1.run(|| self.0.ask(&sites.0, questions, &decoys, circuit_private))?;
            Ok::<_, Refusal>((query, pending.to_bytes()?))
        })?;
        Ok((PyBytes::new(py, &query), PyBytes::new(py, &pending)))
    }

    /// Decrypts an answer.
    fn answer(&self, py: Python<'_>, sites: &GenomeSites, pending: &[u8], answer: &[u8]) -> Result<Vec<Line>> {
        long(py, || {
            let pending = Pending::from_bytes(pending)?;
            let (found, expected) = (pending.head.panel, sites.0.hash());
            if found != expected {
                return Err(GenomeError::WrongPanel { found, expected }.into());
            }
            let rows = self
                .0
                .answer(&pending, answer)?
                .iter()
                .map(|a| Row::new(a, &sites.0))
                .collect::<std::result::Result<Vec<_>, _>>()?;
            let line = |r: Row| {
                let end = r.end_pos.unwrap_or(0);
                (r.sample, r.hap, r.chrom, r.start_pos, end, r.n_sites, r.matched_sites, r.status.to_owned())
            };
            Ok(rows.into_iter().map(line).collect())
        })
    }
}

/// What a search counted, by name.
type Counted = Vec<(&'static str, u64)>;

/// Answers queries on a panel.
#[pyclass(module = "sudare._core")]
pub struct GenomeServer(genome::Server, Threads);

#[pymethods]
impl GenomeServer {
    #[new]
    fn new(
        py: Python<'_>,
        panel: &GenomePanel,
        store: Option<PathBuf>,
        memory: Option<u64>,
        most_queries: Option<u64>,
        threads: Workers,
    ) -> Result<Self> {
        long(py, || {
            let mut server = genome::Server::new(panel.0.clone())?;
            if let Some(folder) = store {
                server = server.with_store(&folder);
            }
            if let Some(memory) = memory {
                server = server.with_memory(memory);
            }
            if let Some(most) = most_queries {
                server = server.with_most_queries(most);
            }
            Ok(Self(server, Threads::new(threads.0)))
        })
    }

    /// Takes a client's evaluation keys over; the key's name.
    fn add_keys(&mut self, py: Python<'_>, keys: &[u8]) -> Result<String> {
        long(py, || Ok(self.1.run(|| self.0.add_keys(keys))?.to_string()))
    }

    /// Answers a query: the answer's bytes, and what was counted.
    fn search<'py>(
        &self,
        py: Python<'py>,
        query: &[u8],
        pad: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> Result<(Bound<'py, PyBytes>, Counted)> {
        let (answer, counters) = with_progress(py, progress, |tell| {
            let options = Options { class: pad, progress: Some(tell) };
            Ok(self.1.run(|| self.0.search(query, options))?)
        })?;
        let counted = match counters {
            Counters::Trie(c) => vec![
                ("products", c.products),
                ("choices", c.choices),
                ("padding", c.padding),
                ("bootstraps", c.bootstraps),
            ],
            Counters::Lookup(c) => vec![
                ("lookups", c.lookups),
                ("lookup_products", c.lookup_products),
                ("bootstrap_groups", c.bootstrap_groups),
                ("bootstraps", c.bootstraps),
                ("compare_products", c.compare_products),
            ],
            Counters::Simd(c) => vec![
                ("haplotypes", c.haplotypes),
                ("ciphertexts", c.ciphertexts),
                ("products", c.products),
                ("plain_products", c.plain_products),
                ("rotations", c.rotations),
            ],
        };
        Ok((PyBytes::new(py, &answer), counted))
    }

    /// How many threads work.
    #[getter]
    fn threads(&self) -> usize {
        self.1.count()
    }
}
