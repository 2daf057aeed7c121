//! The server's side.

use super::layout::Layout;
use super::params::{MODULUS, Set};
use crate::error::in_range;
use crate::message::{AnswerHead, Head, QueryId};
use crate::trie::dag;
use crate::{GenomeError, Panel, Protocol, Shape};
use std::sync::Arc;
use sudare_exact::ExactError;
use sudare_exact::bgv::{Ciphertext, Evaluator};
use sudare_exact::{Encoder, IntegerParams, Packing, Plaintext, Wrap};
use sudare_ring::random::Seed;
use sudare_ring::threads;
use sudare_rlwe::KeyId;
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::wire::{Fields, ObjectType, Reader, Wire, WireError};

/// Keys of this protocol among those of all.
pub(crate) const KIND: u32 = 3;

/// Counts of the operations of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Distinct prefixes of the windows.
    pub haplotypes: u64,
    /// Ciphertexts that hold them.
    pub ciphertexts: u64,
    /// Products of ciphertexts.
    pub products: u64,
    /// Products with plaintexts.
    pub plain_products: u64,
    /// Rotations.
    pub rotations: u64,
}

/// A client's evaluation keys.
#[derive(Debug)]
pub struct Keys {
    set: Set,
    evaluator: Evaluator,
    encoder: Encoder,
}

impl Keys {
    /// From their bytes.
    ///
    /// # Errors
    /// [`GenomeError::Wire`], [`GenomeError::Exact`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, GenomeError> {
        let mut reader = Reader::plain(bytes, ObjectType::GenomeKeys)?;
        let mut fields = Fields::new(reader.header().meta());
        if fields.u32()? != KIND {
            return Err(WireError::Corrupt { what: "keys of another protocol" }.into());
        }
        let set = Set::read(&mut fields)?;
        fields.finish()?;
        let params = set.build()?;
        reader.header().expect_params(params.hash())?;
        let id = reader.header().key();
        let keys = EvalKeys::from_bytes(&params, reader.segment()?)?;
        reader.finish()?;
        if keys.id() != id {
            return Err(WireError::WrongKey { found: keys.id(), expected: id }.into());
        }
        Ok(Self { set, encoder: Encoder::new(&params), evaluator: Evaluator::new(&params, keys)? })
    }

    /// The client key that they belong to.
    pub fn id(&self) -> KeyId {
        self.evaluator.keys().id()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.evaluator.keys().bytes()
    }

    fn params(&self) -> &IntegerParams {
        self.evaluator.params()
    }
}

impl Set {
    /// Refuses a shape that the set does not hold.
    pub(super) fn check(&self, shape: Shape) -> Result<(), GenomeError> {
        in_range("sites of these keys' windows", shape.sites as u64, 1, 1 << self.log_sites)?;
        let most = if self.hidden { u64::from(crate::panel::MAX_STARTS) } else { 1 };
        in_range("starts that these keys hide among", shape.starts as u64, 1, most)
    }
}

/// Answers batches of queries on a panel.
pub struct Search<'a> {
    /// The client's evaluation keys.
    pub keys: &'a Keys,
    /// The panel.
    pub panel: &'a Arc<Panel>,
}

impl Search<'_> {
    /// Answers a batch of queries: `m = 1 − (w − h)²` for every position and haplotype, their prefix products by
    /// doubling, sums over the haplotypes, random factors. Ciphertexts of haplotypes run in parallel inside a thread
    /// pool.
    ///
    /// # Errors
    /// [`GenomeError::Window`], [`GenomeError::Range`], [`GenomeError::Wire`], [`GenomeError::Exact`].
    pub fn run(&self, query: &[u8]) -> Result<(Vec<u8>, Counters), GenomeError> {
        let (head, mut reader) = Head::read(query)?;
        head.protocol.require(Protocol::Simd)?;
        let shape = head.shape();
        self.keys.set.check(shape)?;
        let params = self.keys.params();
        let layout = Layout::new(params, shape, head.batch)?;
        for start in &head.starts {
            self.panel.outline().check_window(*start as usize, shape.sites)?;
        }
        reader.header().expect_params(params.hash())?;
        reader.header().expect_key(self.keys.id())?;
        let chosen = if shape.starts > 1 { shape.starts.div_ceil(layout.blocks()) } else { 0 };
        if reader.header().segments().len() != 2 + chosen {
            return Err(WireError::Corrupt { what: "segments of other sizes than the query says" }.into());
        }
        let mut next = || -> Result<Ciphertext, GenomeError> {
            let c = Ciphertext::from_bytes(params, reader.segment()?)?;
            self.keys.evaluator.check(&c)?;
            Ok(c)
        };
        let symbols = next()?;
        let starts = (0..chosen).map(|_| next()).collect::<Result<Vec<_>, _>>()?;
        reader.finish()?;
        let mut counters = Counters::default();
        let result = self.evaluate(&head, &layout, &symbols, &starts, &mut counters)?;
        let answer =
            AnswerHead { protocol: Protocol::Simd, panel: head.panel, query: QueryId::of(query), private: false };
        let bytes = answer.write((params.hash(), self.keys.id()), &[&result.to_bytes()?])?;
        Ok((bytes, counters))
    }

    fn signed(&self, slots: &[i64]) -> Result<Plaintext, GenomeError> {
        Ok(self.keys.encoder.encode_signed(slots, Packing::Slots, Wrap::Refuse)?)
    }

    fn evaluate(
        &self,
        head: &Head,
        layout: &Layout,
        symbols: &Ciphertext,
        starts: &[Ciphertext],
        counters: &mut Counters,
    ) -> Result<Ciphertext, GenomeError> {
        let e = &self.keys.evaluator;
        let mut found = Vec::with_capacity(head.starts.len());
        for start in &head.starts {
            found.push(self.prefixes(*start as usize, head, layout, symbols, counters)?);
        }
        in_range("distinct haplotypes of the windows", counters.haplotypes, 0, MODULUS - 1)?;
        let mut sum = match starts {
            [] => found.pop().ok_or(GenomeError::Nonsense)?,
            _ => {
                let chosen = threads::map(found.len(), |d| self.indicator(layout, starts, d));
                let chosen = chosen.into_iter().collect::<Result<Vec<_>, _>>()?;
                counters.products += found.len() as u64;
                counters.plain_products += found.len() as u64;
                counters.rotations += found.len() as u64 * layout.copies().count() as u64;
                let left: Vec<&Ciphertext> = found.iter().collect();
                e.dot_relin(&left, &chosen.iter().collect::<Vec<_>>())?
            }
        };
        for step in layout.sums() {
            sum = e.add(&sum, &e.rotate_rows(&sum, step)?)?;
            counters.rotations += 1;
        }
        sum = e.add(&sum, &e.rotate_columns(&sum)?)?;
        counters.rotations += 1;
        // What is left of a count is whether it is zero; every other slot is blinded.
        let mut factors = vec![0i64; layout.slots()];
        let mut stream = Seed::from_entropy()?.stream(0);
        for query in 0..head.batch {
            for k in 0..head.sites {
                // 2^64 modulo t − 1 is zero: every factor is equally likely.
                let factor = 1 + stream.next_u64() % (MODULUS - 1);
                let centred = if factor > MODULUS / 2 { factor as i64 - MODULUS as i64 } else { factor as i64 };
                factors[layout.position(k, 0, query)] = centred;
            }
        }
        counters.plain_products += 1;
        let blinded = e.mul_plain(&sum, &self.signed(&factors)?)?;
        self.shortest(&blinded)
    }

    /// The same at the lowest level that holds it: fewer bytes to send.
    fn shortest(&self, c: &Ciphertext) -> Result<Ciphertext, GenomeError> {
        for level in 0..c.level() {
            match self.keys.evaluator.drop_to(c, level) {
                Err(ExactError::Rlwe(RlweError::NoBudget { .. })) => {}
                other => return Ok(other?),
            }
        }
        Ok(c.clone())
    }

    /// One prime less: the noise of a product with a plaintext goes before the next product would square it.
    fn settled(&self, c: &Ciphertext) -> Result<Ciphertext, GenomeError> {
        Ok(self.keys.evaluator.drop_to(c, c.level().saturating_sub(1))?)
    }

    /// For every position the number of the start's prefixes that match up to it, still apart by slots.
    fn prefixes(
        &self,
        start: usize,
        head: &Head,
        layout: &Layout,
        symbols: &Ciphertext,
        counters: &mut Counters,
    ) -> Result<Ciphertext, GenomeError> {
        let e = &self.keys.evaluator;
        let prefixes = dag::prefixes(self.panel, start, head.sites, head.eps)?;
        // One at least, so that there is a ciphertext.
        let count = prefixes.len().div_ceil(layout.haplotypes()).max(1);
        let parts = threads::map(count, |i| -> Result<Ciphertext, GenomeError> {
            let from = prefixes.len().min(i * layout.haplotypes());
            let here = &prefixes[from..prefixes.len().min(from + layout.haplotypes())];
            let [factor, addend] = layout.comparison(here);
            let product = e.mul_plain(symbols, &self.signed(&factor)?)?;
            let mut m = e.add_plain(&self.settled(&product)?, &self.signed(&addend)?)?;
            for step in layout.doublings() {
                m = e.mul_relin(&m, &e.rotate_rows(&m, step)?)?;
            }
            Ok(m)
        });
        let doublings = layout.doublings().count() as u64;
        counters.haplotypes += prefixes.len() as u64;
        counters.ciphertexts += count as u64;
        counters.products += count as u64 * doublings;
        counters.rotations += count as u64 * doublings;
        counters.plain_products += count as u64;
        let mut sum = None;
        for part in parts {
            sum = Some(match sum {
                None => part?,
                Some(sum) => e.add(&sum, &part?)?,
            });
        }
        sum.ok_or(GenomeError::Nonsense)
    }

    /// The indicator of start d in every slot of its queries.
    fn indicator(&self, layout: &Layout, starts: &[Ciphertext], d: usize) -> Result<Ciphertext, GenomeError> {
        let e = &self.keys.evaluator;
        let mask = layout.replicated(|block, _| u64::from(block == d % layout.blocks()));
        let mask = self.keys.encoder.encode_unsigned(&mask, Packing::Slots, Wrap::Refuse)?;
        let mut c = self.settled(&e.mul_plain(&starts[d / layout.blocks()], &mask)?)?;
        for step in layout.copies() {
            c = e.add(&c, &e.rotate_rows(&c, step)?)?;
        }
        Ok(c)
    }
}
