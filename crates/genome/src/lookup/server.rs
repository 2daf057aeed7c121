//! The server's side.

use super::compare::{at_least, leading_ones};
use super::params::{check, index_bits};
use super::tables::Tables;
use crate::ahead::ahead;
use crate::answer_bits::{CHUNK, lengths, read_selector, read_zeros, selector_bytes, terminals, write_answer};
use crate::message::{AnswerHead, Head, QueryId, expect_segments};
use crate::{GenomeError, Protocol};
use sudare_ring::random::Seed;
use sudare_ring::threads;
use sudare_rlwe::wire::WireError;
use sudare_tfhe::circuit_bootstrap::CircuitKey;
use sudare_tfhe::leveled::{LeveledGlwe, LeveledLwe, LeveledServer, PackedTable, Selector};

/// Counts of the operations of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Table lookups: two for each symbol.
    pub lookups: u64,
    /// External products of the lookups.
    pub lookup_products: u64,
    /// Groups of bootstraps: one after each lookup, and one at the end.
    pub bootstrap_groups: u64,
    /// Circuit bootstraps in all groups.
    pub bootstraps: u64,
    /// External products of the comparisons and of the last chain.
    pub compare_products: u64,
}

/// A part of a search, for whoever measures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Reading the query and expanding its selectors.
    Initialise,
    /// Tables and lookups.
    Lookup,
    /// Bootstraps.
    Bootstrap,
    /// Comparisons and the answer.
    Compare,
}

/// Answers queries by lookups.
pub struct Search<'a> {
    /// The client's evaluation keys.
    pub keys: &'a CircuitKey,
    /// The tables.
    pub tables: Tables<'a>,
    /// Called when a stage begins, with the sites done and all of them.
    pub stage: &'a (dyn Fn(Stage, usize, usize) + Sync),
}

impl Search<'_> {
    /// Answers a query: f and g of each position by a lookup at the encrypted place and symbol, a circuit bootstrap of
    /// each bit, and at the end the comparisons `g − f ≥ eps`. Lookups, bootstraps and tables run in parallel inside a
    /// thread pool, and the next site's table is fetched meanwhile.
    ///
    /// # Errors
    /// [`GenomeError::WrongPanel`], [`GenomeError::Window`], [`GenomeError::Failure`], [`GenomeError::Wire`],
    /// [`GenomeError::Tfhe`].
    pub fn run(&self, query: &[u8]) -> Result<(Vec<u8>, Counters), GenomeError> {
        let (head, mut reader) = Head::read(query)?;
        let (shape, n) = (head.shape(), self.tables.haplotypes());
        (self.stage)(Stage::Initialise, 0, shape.sites);
        head.protocol.require(Protocol::Lookup)?;
        crate::error::in_range("queries of one message", head.batch as u64, 1, 1)?;
        self.check_windows(&head)?;
        let (params, query_id) = (self.keys.params(), QueryId::of(query));
        check(params, shape, n)?;
        let leveled = params.leveled();
        reader.header().expect_params(leveled.hash())?;
        reader.header().expect_key(self.keys.server().id())?;
        let (key, bits) = (reader.header().key(), index_bits(shape, n) as usize);
        let count = 2 * bits + shape.sites;
        expect_segments(&reader, 1, lengths(leveled, count))?;
        let length = selector_bytes(leveled);
        let mut selectors: Vec<Selector> = Vec::with_capacity(count);
        for segment in 0..count.div_ceil(CHUNK) {
            let bytes = reader.segment()?;
            let expand = |i: usize| {
                let seeded = read_selector(leveled, &bytes[i * length..(i + 1) * length], segment + 1)?;
                Ok(seeded.expand(leveled, key)?)
            };
            for s in threads::map::<Result<_, GenomeError>>(bytes.len() / length, expand) {
                selectors.push(s?);
            }
        }
        let zeros = read_zeros(leveled, key, reader.segment()?, 1 + count.div_ceil(CHUNK))?;
        reader.finish()?;
        let mut counters = Counters::default();
        let answer = self.evaluate(&head, selectors, bits, &mut counters)?;
        let seed = Seed::from_entropy()?;
        let answer = LeveledServer::new(leveled).rerandomise(&answer, &zeros, &seed)?;
        let segment = write_answer(leveled, &answer, shape.answer_bits() as usize);
        let head = AnswerHead { protocol: Protocol::Lookup, panel: head.panel, query: query_id, private: false };
        Ok((head.write((leveled.hash(), key), &[&segment])?, counters))
    }

    fn check_windows(&self, head: &Head) -> Result<(), GenomeError> {
        match self.tables {
            Tables::Panel(panel) => {
                head.starts.iter().try_for_each(|s| panel.outline().check_window(*s as usize, head.sites))
            }
            Tables::Encrypted(tables) if tables.starts() == head.starts && tables.sites() >= head.sites => Ok(()),
            Tables::Encrypted(_) => {
                Err(WireError::Corrupt { what: "a query of other starts than the encrypted tables have" }.into())
            }
        }
    }

    fn evaluate(
        &self,
        head: &Head,
        mut selectors: Vec<Selector>,
        bits: usize,
        counters: &mut Counters,
    ) -> Result<LeveledGlwe, GenomeError> {
        let (leveled, sites) = (self.keys.params().leveled(), head.sites);
        let server = LeveledServer::new(leveled);
        let compare = at_least(bits as u32, head.eps)?;
        let symbols = selectors.split_off(2 * bits);
        let mut g = selectors.split_off(bits);
        let mut f = selectors;
        let mut shared: Vec<LeveledLwe> = Vec::with_capacity(sites);
        let positions: Vec<usize> = (0..sites).collect();
        let load = |k: &usize| self.tables.table(leveled, &head.starts, head.shape(), *k);
        ahead(&positions, load, |k, table: PackedTable| {
            (self.stage)(Stage::Lookup, *k, sites);
            let found = threads::map(2, |i| {
                let place = if i == 0 { &f } else { &g };
                let index: Vec<Selector> = std::iter::once(&symbols[*k]).chain(place).cloned().collect();
                server.lookup_words(&table, &index)
            });
            counters.lookups += 2;
            counters.lookup_products += 2 * table.layout().products() as u64;
            let words = found.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
            (self.stage)(Stage::Bootstrap, *k, sites);
            // Both groups side by side.
            f = self.keys.bootstraps_leveled(&words)?;
            g = f.split_off(bits);
            counters.bootstrap_groups += 2;
            counters.bootstraps += 2 * bits as u64;
            (self.stage)(Stage::Compare, *k, sites);
            let variables: Vec<Selector> = f.iter().zip(&g).rev().flat_map(|(f, g)| [f.clone(), g.clone()]).collect();
            shared.push(server.evaluate(&compare, &[vec![0], vec![1]], &variables)?.extract(0)?);
            counters.compare_products += compare.products().len() as u64;
            Ok(())
        })?;
        (self.stage)(Stage::Bootstrap, sites, sites);
        let shared = self.keys.bootstraps_leveled(&shared)?;
        counters.bootstrap_groups += 1;
        counters.bootstraps += sites as u64;
        (self.stage)(Stage::Compare, sites, sites);
        let chain = leading_ones(sites)?;
        counters.compare_products += chain.products().len() as u64;
        Ok(server.evaluate(&chain, &terminals(sites), &shared)?)
    }
}
