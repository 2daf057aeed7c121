//! The server's side.

use super::params::Params;
use super::store::Store;
use crate::ahead::ahead;
use crate::answer_bits::{CHUNK, lengths, read_selector, read_zeros, selector_bytes, terminals, write_answer};
use crate::message::{AnswerHead, Head, QueryId, expect_segments};
use crate::{GenomeError, Protocol, Shape};
use std::sync::Arc;
use sudare_ring::interrupt::check;
use sudare_ring::random::Seed;
use sudare_ring::threads;
use sudare_rlwe::KeyId;
use sudare_rlwe::wire::Reader;
use sudare_rlwe::wire::packing::append_words;
use sudare_tfhe::ServerKey;
use sudare_tfhe::leveled::{Diagram, LeveledGlwe, LeveledLwe, LeveledServer, PackedTable, Selector, TableLayout};

/// Starts whose diagrams are fetched together.
const BATCH: usize = 32;
/// log2 of the starts whose results are chosen from together.
const LOG_GROUP: u32 = 8;

/// Counts of the operations of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// External products of the diagrams.
    pub products: u64,
    /// Products that choose among the starts.
    pub choices: u64,
    /// Products that pad the work to its class.
    pub padding: u64,
    /// Randomised bootstraps.
    pub bootstraps: u64,
}

/// The encrypted part of a query.
struct Query {
    symbols: Vec<Selector>,
    index: Vec<Selector>,
    zeros: Vec<LeveledGlwe>,
}

impl Query {
    fn read(params: &Params, shape: Shape, mut reader: Reader<'_>) -> Result<(Self, KeyId), GenomeError> {
        let leveled = &params.leveled;
        reader.header().expect_params(leveled.hash())?;
        let key = reader.header().key();
        let count = shape.sites + shape.start_bits() as usize;
        let length = selector_bytes(leveled);
        expect_segments(&reader, 1, lengths(leveled, count))?;
        let mut selectors = Vec::with_capacity(count);
        for segment in 0..count.div_ceil(CHUNK) {
            let bytes = reader.segment()?;
            let expand = |i: usize| {
                read_selector(leveled, &bytes[i * length..(i + 1) * length], segment + 1)?
                    .expand(leveled, key)
                    .map_err(GenomeError::from)
            };
            for s in threads::map(bytes.len() / length, expand) {
                selectors.push(s?);
            }
        }
        let zeros = read_zeros(leveled, key, reader.segment()?, 1 + count.div_ceil(CHUNK))?;
        reader.finish()?;
        let index = selectors.split_off(shape.sites);
        Ok((Self { symbols: selectors, index, zeros }, key))
    }
}

/// Answers queries on a panel.
pub struct Search<'a> {
    /// Parameters.
    pub params: &'a Params,
    /// Diagrams.
    pub store: &'a Store,
    /// The client's evaluation keys, for circuit-private answers.
    pub keys: Option<&'a ServerKey>,
    /// Products that every start takes, with padding.
    pub class: Option<u64>,
    /// Called with the starts done and all of them.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

impl Search<'_> {
    /// Answers a query; starts and products run in parallel inside a thread pool, padded ones each on one thread.
    ///
    /// # Errors
    /// [`GenomeError`] for bytes that are no query of this protocol, of another panel or under other parameters, and for a window
    /// that the panel does not have; [`GenomeError::MissingKeys`] for a circuit-private answer without keys.
    pub fn run(&self, query: &[u8]) -> Result<(Vec<u8>, Counters), GenomeError> {
        let (head, reader) = Head::read(query)?;
        head.protocol.require(Protocol::Trie)?;
        crate::error::in_range("queries of one message", head.batch as u64, 1, 1)?;
        let shape = head.shape();
        for start in &head.starts {
            self.store.panel().outline().check_window(*start as usize, shape.sites)?;
        }
        self.params.check(shape)?;
        let (query_id, private) = (QueryId::of(query), head.private);
        let (encrypted, key) = Query::read(self.params, shape, reader)?;
        let keys = match (private, self.keys) {
            (false, _) => None,
            (true, None) => return Err(GenomeError::MissingKeys { what: "a circuit-private answer" }),
            (true, some) => some,
        };
        let mut counters = Counters::default();
        let result = self.evaluate(&head, &encrypted, &mut counters)?;
        let server = LeveledServer::new(&self.params.leveled);
        let seed = Seed::from_entropy()?;
        let result = server.rerandomise(&result, &encrypted.zeros, &seed.derive("sudare genome answer", 0))?;
        let bits = shape.answer_bits() as usize;
        let segment = match keys {
            None => write_answer(&self.params.leveled, &result, bits),
            Some(keys) => {
                let each = (0..bits).map(|i| result.extract(i)).collect::<Result<Vec<LeveledLwe>, _>>()?;
                let seed = seed.derive("sudare genome answer", 1);
                let clean = keys.sanitise(&self.params.leveled, &each, &encrypted.zeros, &seed)?;
                counters.bootstraps = bits as u64;
                let mut segment = Vec::new();
                let q = self.params.leveled.context().q();
                clean.iter().for_each(|c| append_words(c.ciphertext().words(), q, &mut segment));
                segment
            }
        };
        let answer = AnswerHead { protocol: Protocol::Trie, panel: head.panel, query: query_id, private };
        Ok((answer.write((self.params.leveled.hash(), key), &[&segment])?, counters))
    }

    /// The encrypted length of the match at the encrypted start.
    fn evaluate(&self, head: &Head, query: &Query, counters: &mut Counters) -> Result<LeveledGlwe, GenomeError> {
        let (shape, leveled) = (head.shape(), &self.params.leveled);
        let server = LeveledServer::new(leveled);
        let terminals = terminals(shape.sites);
        let low = LOG_GROUP.min(shape.start_bits()) as usize;
        let (inner, outer) = query.index.split_at(low);
        let (mut groups, mut group, mut done) = (Vec::new(), Vec::new(), 0);
        let batches: Vec<&[u32]> = head.starts.chunks(BATCH).collect();
        let load = |batch: &&[u32]| {
            batch.iter().map(|s| self.store.diagram(*s as usize, shape.sites, shape.eps)).collect::<Result<Vec<_>, _>>()
        };
        ahead(&batches, load, |_, diagrams: Vec<Arc<Diagram>>| {
            let paddings = diagrams.iter().map(|d| self.padding(d)).collect::<Result<Vec<_>, _>>()?;
            let roots = threads::map_jobs(diagrams.len(), |i| {
                let work = || -> Result<LeveledGlwe, GenomeError> {
                    let root = server.evaluate(&diagrams[i], &terminals, &query.symbols)?;
                    waste(&server, &query.symbols, &root, paddings[i])?;
                    Ok(root)
                };
                if self.class.is_some() { threads::alone(work) } else { work() }
            });
            counters.products += diagrams.iter().map(|d| d.products().len() as u64).sum::<u64>();
            counters.padding += paddings.iter().sum::<u64>();
            for root in roots {
                group.push(root?);
                done += 1;
                if group.len() == 1 << low || done == shape.starts {
                    groups.push(choose(&server, std::mem::take(&mut group), inner, counters)?);
                }
            }
            (self.progress)(done, shape.starts);
            Ok(())
        })?;
        choose(&server, groups, outer, counters)
    }

    /// Products that a start lacks to its class.
    fn padding(&self, d: &Diagram) -> Result<u64, GenomeError> {
        let (found, class) = (d.products().len() as u64, self.class);
        match class {
            None => Ok(0),
            Some(class) if found <= class => Ok(class - found),
            Some(class) => Err(GenomeError::OverClass { class }),
        }
    }
}

/// The polynomial at an encrypted index, of polynomials in order; an index has as many bits as they need.
fn choose(
    server: &LeveledServer,
    polynomials: Vec<LeveledGlwe>,
    index: &[Selector],
    counters: &mut Counters,
) -> Result<LeveledGlwe, GenomeError> {
    let params = server.params();
    let layout = TableLayout::new(params, polynomials.len(), params.context().degree())?;
    counters.choices += layout.products() as u64;
    let needed = layout.index_bits() as usize;
    let table = PackedTable::encrypted(params, layout, polynomials)?;
    // The last group may be small: its higher bits are zero for every start that there is.
    Ok(server.lookup(&table, &index[..needed.min(index.len())])?)
}

/// Products whose results nobody uses.
fn waste(server: &LeveledServer, selectors: &[Selector], root: &LeveledGlwe, count: u64) -> Result<(), GenomeError> {
    let Some(selector) = selectors.first() else { return Ok(()) };
    for _ in 0..count {
        check();
        // A fresh copy's noise is not the root's: any ciphertext does.
        let fresh = LeveledGlwe::from_parts(root.ciphertext().clone(), 0.0, root.owner());
        std::hint::black_box(server.product(selector, &fresh)?);
    }
    Ok(())
}

/// The least power of two that holds the products of every window of so many sites: what response times may tell of a
/// panel. Windows are looked at in parallel inside a thread pool.
///
/// # Errors
/// Those of [`Store::diagram`].
pub fn class(
    store: &Store,
    sites: usize,
    eps: u32,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<u64, GenomeError> {
    let outline = store.panel().outline();
    let starts: Vec<usize> = (0..outline.sites()).filter(|s| outline.check_window(*s, sites).is_ok()).collect();
    let (mut most, mut done) = (0, 0);
    for batch in starts.chunks(1024) {
        let sizes = threads::map(batch.len(), |i| super::dag::diagram(store.panel(), batch[i], sites, eps));
        for d in sizes {
            most = most.max(d?.products().len() as u64);
        }
        done += batch.len();
        progress(done, starts.len());
    }
    Ok(most.next_power_of_two().max(64))
}
