//! A server of one panel, for every protocol.

use crate::lookup::{EncryptedTables, Tables};
use crate::message::Head;
use crate::trie::Store;
use crate::{GenomeError, Panel, Protocol, lookup, simd, trie};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use sudare_ring::memo::PerProcess;
use sudare_rlwe::KeyId;
use sudare_rlwe::wire::{ObjectType, peek};
use sudare_tfhe::ServerKey;
use sudare_tfhe::circuit_bootstrap::CircuitKey;
use sudare_tfhe::wire::tfhe_server_key_from_bytes;

/// A client's evaluation keys.
enum Keys {
    Trie(Box<ServerKey>),
    Lookup(Box<CircuitKey>),
    Simd(Box<simd::Keys>),
}

/// Counts of the operations of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// By "trie".
    Trie(trie::Counters),
    /// By "lookup".
    Lookup(lookup::Counters),
    /// By "simd".
    Simd(simd::Counters),
}

/// Options of a search.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Products that the work for each start is padded to, for "trie": see [`trie::class`].
    pub class: Option<u64>,
    /// Called with the starts or sites done, and all of them.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
}

/// The classes that a panel's owner lets searches be padded to. A search in a class below what its windows take is
/// refused; refusals in classes and eps of the asker's choice would count the panel's alleles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Padding {
    least: u64,
    most: u64,
}

impl Padding {
    /// From a least to a largest class.
    ///
    /// # Errors
    /// [`GenomeError::Range`] for a least of none, or one over the largest.
    pub fn new(least: u64, most: u64) -> Result<Self, GenomeError> {
        crate::error::in_range("the least class of padded searches", least, 1, most)?;
        Ok(Self { least, most })
    }

    /// The class of a search: the one that is asked for, or the least.
    ///
    /// # Errors
    /// [`GenomeError::Range`] for a class out of range.
    pub fn class(&self, asked: Option<u64>) -> Result<u64, GenomeError> {
        let class = asked.unwrap_or(self.least);
        crate::error::in_range("the class of a padded search", class, self.least, self.most)?;
        Ok(class)
    }

    /// The least class and the largest.
    pub fn range(&self) -> (u64, u64) {
        (self.least, self.most)
    }
}

/// Answers queries on a panel. It holds nothing secret of any client.
pub struct Server {
    store: Store,
    trie: trie::Params,
    keys: BTreeMap<KeyId, Keys>,
    most_queries: Option<u64>,
    queries: PerProcess<Mutex<BTreeMap<KeyId, u64>>>,
}

impl Server {
    /// A server of a panel.
    ///
    /// # Errors
    /// None for the sets of this release.
    pub fn new(panel: Arc<Panel>) -> Result<Self, GenomeError> {
        Ok(Self {
            store: Store::new(panel),
            trie: trie::Set::standard().build()?,
            keys: BTreeMap::new(),
            most_queries: None,
            queries: PerProcess::new(),
        })
    }

    /// The same, keeping the diagrams of windows in a folder.
    #[must_use]
    pub fn with_store(mut self, folder: &Path) -> Self {
        self.store = self.store.in_folder(folder);
        self
    }

    /// The same, keeping at most so many bytes of diagrams in memory beyond those in use, in place of 256 MiB.
    #[must_use]
    pub fn with_memory(mut self, memory: u64) -> Self {
        self.store = self.store.with_memory(usize::try_from(memory).unwrap_or(usize::MAX));
        self
    }

    /// The same, answering at most so many queries under one key. A forked process counts its own.
    #[must_use]
    pub fn with_most_queries(mut self, most: u64) -> Self {
        self.most_queries = Some(most);
        self
    }

    /// The panel.
    pub fn panel(&self) -> &Arc<Panel> {
        self.store.panel()
    }

    /// The panel's diagrams.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Takes a client's evaluation keys over; masks are expanded in parallel inside a thread pool.
    ///
    /// # Errors
    /// [`GenomeError::Wire`], [`GenomeError::Tfhe`], [`GenomeError::Exact`].
    pub fn add_keys(&mut self, bytes: &[u8]) -> Result<KeyId, GenomeError> {
        let header = peek(bytes)?;
        let (id, keys) = match header.object() {
            ObjectType::TfheServerKey => {
                let key = tfhe_server_key_from_bytes(self.trie.tfhe(), bytes)?;
                (key.id(), Keys::Trie(Box::new(key)))
            }
            ObjectType::CircuitKey => {
                let key = lookup::read_keys(bytes)?;
                (key.server().id(), Keys::Lookup(Box::new(key)))
            }
            _ => {
                let keys = simd::Keys::from_bytes(bytes)?;
                (keys.id(), Keys::Simd(Box::new(keys)))
            }
        };
        self.keys.insert(id, keys);
        Ok(id)
    }

    /// Answers a query, in parallel inside a thread pool.
    ///
    /// # Errors
    /// [`GenomeError::WrongPanel`], [`GenomeError::Policy`], [`GenomeError::MissingKeys`], and those of the protocols.
    pub fn search(&self, query: &[u8], options: Options<'_>) -> Result<(Vec<u8>, Counters), GenomeError> {
        let head = Head::peek(query)?;
        head.check(self.panel())?;
        let id = peek(query)?.key();
        self.count(id, head.batch as u64)?;
        let progress = options.progress.unwrap_or(&|_, _| ());
        match (head.protocol, self.keys.get(&id)) {
            (Protocol::Trie, keys) => {
                let keys = match keys {
                    Some(Keys::Trie(key)) => Some(&**key),
                    _ => None,
                };
                let search =
                    trie::Search { params: &self.trie, store: &self.store, keys, class: options.class, progress };
                let (answer, counters) = search.run(query)?;
                Ok((answer, Counters::Trie(counters)))
            }
            (Protocol::Lookup, Some(Keys::Lookup(keys))) => {
                let stage = |_, done, all| progress(done, all);
                let tables = Tables::Panel(self.panel());
                let (answer, counters) = lookup::Search { keys, tables, stage: &stage }.run(query)?;
                Ok((answer, Counters::Lookup(counters)))
            }
            (Protocol::Simd, Some(Keys::Simd(keys))) => {
                let (answer, counters) = simd::Search { keys, panel: self.panel() }.run(query)?;
                Ok((answer, Counters::Simd(counters)))
            }
            (protocol, _) => Err(GenomeError::MissingKeys { what: protocol.name() }),
        }
    }

    /// Answers a query on tables that their owner encrypted.
    ///
    /// # Errors
    /// As for [`Server::search`].
    pub fn search_encrypted(
        keys: &CircuitKey,
        tables: &EncryptedTables,
        query: &[u8],
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<(Vec<u8>, Counters), GenomeError> {
        let (head, found) = (Head::peek(query)?, Tables::Encrypted(tables).hash());
        if head.panel != found {
            return Err(GenomeError::WrongPanel { found: head.panel, expected: found });
        }
        let stage = |_, done, all| progress(done, all);
        let search = lookup::Search { keys, tables: Tables::Encrypted(tables), stage: &stage };
        let (answer, counters) = search.run(query)?;
        Ok((answer, Counters::Lookup(counters)))
    }

    fn count(&self, id: KeyId, queries: u64) -> Result<(), GenomeError> {
        let Some(allowed) = self.most_queries else { return Ok(()) };
        let mut counts = self.queries.get().lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(id).or_insert(0);
        let found = count.saturating_add(queries);
        if found > allowed {
            return Err(GenomeError::Policy { what: "at most so many queries under one key", allowed, found });
        }
        *count = found;
        Ok(())
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({:?}, {} clients)", self.panel(), self.keys.len())
    }
}
