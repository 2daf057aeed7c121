//! Diagrams that were built before: in memory up to a limit, and in a folder beside the panel.

use super::dag;
use crate::bytes::Put;
use crate::message::write_object;
use crate::{GenomeError, Panel};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sudare_ring::memo::PerProcess;
use sudare_rlwe::wire::{Fields, ObjectType, Reader, WireError};
use sudare_rlwe::{KeyId, ParamsHash};
use sudare_store::atomic::{self, Access, Durability, Over};
use sudare_tfhe::leveled::{Diagram, Value};

/// Start, sites and eps of a diagram.
type Name = (usize, usize, u32);

/// Tables that are diagrams.
const KIND: u32 = 1;
/// Bytes of diagrams that are kept in memory, unless another number is given.
const KEEP_BYTES: usize = 256 << 20;

#[derive(Default)]
struct Kept {
    diagrams: HashMap<Name, Arc<Diagram>>,
    /// Oldest first.
    order: VecDeque<Name>,
    bytes: usize,
}

/// Counts of diagrams by their source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// In memory.
    pub kept: u64,
    /// In the folder.
    pub stored: u64,
    /// Built anew.
    pub built: u64,
}

/// The counters behind [`Found`].
#[derive(Default)]
struct Counts {
    kept: AtomicU64,
    stored: AtomicU64,
    built: AtomicU64,
}

/// Diagrams of one panel.
pub struct Store {
    panel: Arc<Panel>,
    folder: Option<PathBuf>,
    memory: usize,
    kept: PerProcess<Mutex<Kept>>,
    found: Counts,
}

fn bytes_of(d: &Diagram) -> usize {
    8 * d.products().len() + 4 * d.counts().len()
}

impl Store {
    /// Diagrams of a panel, kept in memory alone.
    pub fn new(panel: Arc<Panel>) -> Self {
        Self { panel, folder: None, memory: KEEP_BYTES, kept: PerProcess::new(), found: Counts::default() }
    }

    /// The same with at most so many bytes of diagrams kept beyond those in use, in place of 256 MiB.
    #[must_use]
    pub fn with_memory(self, memory: usize) -> Self {
        Self { memory, ..self }
    }

    /// The same, kept in a folder too.
    #[must_use]
    pub fn in_folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.join(self.panel.hash().to_string()));
        self
    }

    /// The panel.
    pub fn panel(&self) -> &Arc<Panel> {
        &self.panel
    }

    /// Counts of diagrams by their source so far.
    pub fn found(&self) -> Found {
        let [kept, stored, built] =
            [&self.found.kept, &self.found.stored, &self.found.built].map(|count| count.load(Ordering::Relaxed));
        Found { kept, stored, built }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.get().lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The diagram of a window.
    ///
    /// # Errors
    /// As for [`dag::diagram`]; [`GenomeError::Wire`] for a damaged file, [`GenomeError::Io`] for one that cannot be written.
    pub fn diagram(&self, start: usize, sites: usize, eps: u32) -> Result<Arc<Diagram>, GenomeError> {
        let name = (start, sites, eps);
        if let Some(d) = self.kept().diagrams.get(&name) {
            self.found.kept.fetch_add(1, Ordering::Relaxed);
            return Ok(d.clone());
        }
        let file = self.path(name);
        let d = match &file {
            Some(path) if path.is_file() => {
                self.found.stored.fetch_add(1, Ordering::Relaxed);
                read(&std::fs::read(path)?, self.panel.hash().0, name)?
            }
            _ => {
                self.found.built.fetch_add(1, Ordering::Relaxed);
                let d = dag::diagram(&self.panel, start, sites, eps)?;
                if let Some(path) = &file {
                    atomic::make_folder(path)?;
                    let bytes = to_bytes(&d, self.panel.hash().0, name)?;
                    atomic::write(path, &[&bytes], Access::Owner, Over::NoKey, Durability::Power)?;
                }
                d
            }
        };
        let d = Arc::new(d);
        let mut kept = self.kept();
        if bytes_of(&d) > self.memory {
            return Ok(d);
        }
        while kept.bytes + bytes_of(&d) > self.memory {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some(gone) = kept.diagrams.remove(&oldest) {
                kept.bytes -= bytes_of(&gone);
            }
        }
        if kept.diagrams.insert(name, d.clone()).is_none() {
            kept.bytes += bytes_of(&d);
            kept.order.push_back(name);
        }
        Ok(d)
    }

    fn path(&self, (start, sites, eps): Name) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("q{sites}-e{eps}")).join(format!("{start:010}.diagram")))
    }

    /// Bytes of diagrams that are kept now.
    pub fn kept_bytes(&self) -> usize {
        self.kept().bytes
    }

    /// Lets memory go.
    pub fn forget(&self) {
        *self.kept() = Kept::default();
    }
}

/// A diagram's bytes.
pub(crate) fn to_bytes(d: &Diagram, panel: [u8; 32], (start, sites, eps): Name) -> Result<Vec<u8>, GenomeError> {
    let mut meta = Vec::new();
    meta.u32(KIND);
    // All are below 2^32.
    [start as u32, sites as u32, eps, d.root().code(), d.products().len() as u32].into_iter().for_each(|x| meta.u32(x));
    let mut body = Vec::with_capacity(bytes_of(d));
    d.counts().iter().for_each(|c| body.u32(*c));
    d.products().iter().flatten().for_each(|v| body.u32(v.code()));
    write_object(ObjectType::GenomeTables, (ParamsHash(panel), KeyId::NONE), meta, &[&body])
}

/// A diagram of this panel and window from its bytes.
pub(crate) fn read(bytes: &[u8], panel: [u8; 32], name: Name) -> Result<Diagram, GenomeError> {
    let mut reader = Reader::plain(bytes, ObjectType::GenomeTables)?;
    reader.header().expect_params(ParamsHash(panel))?;
    reader.header().expect_key(KeyId::NONE)?;
    let mut fields = Fields::new(reader.header().meta());
    if fields.u32()? != KIND {
        return Err(WireError::Corrupt { what: "tables of another kind" }.into());
    }
    let found = (fields.u32()? as usize, fields.u32()? as usize, fields.u32()?);
    let (root, products) = (Value::from_code(fields.u32()?), fields.u32()?);
    fields.finish()?;
    let other = WireError::Corrupt { what: "the tables of another window" };
    let length = 4 * found.1 as u64 + 8 * u64::from(products);
    if found != name || reader.header().segments() != [length] {
        return Err(other.into());
    }
    let words: Vec<u32> = reader.segment()?.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
    reader.finish()?;
    let (counts, pairs) = words.split_at(found.1);
    let pairs = pairs.as_chunks::<2>().0.iter().map(|p| p.map(Value::from_code)).collect();
    // The variables are the sites, and a length is a terminal.
    Ok(Diagram::new(pairs, counts.to_vec(), found.1 as u32 + 1, root)?)
}

/// A diagram of whatever panel and window the bytes claim; for fuzzing.
pub(super) fn read_any(bytes: &[u8]) {
    let Ok(reader) = Reader::plain(bytes, ObjectType::GenomeTables) else { return };
    let mut fields = Fields::new(reader.header().meta());
    let (_, start, sites, eps) = (fields.u32(), fields.u32(), fields.u32(), fields.u32());
    if let (Ok(start), Ok(sites), Ok(eps)) = (start, sites, eps) {
        let _ = read(bytes, reader.header().params().0, (start as usize, sites as usize, eps));
    }
}
