//! The sum of the messages of a step, as they come.

use super::{Digest, Kind, PartyError, Record, Session, Share};
use crate::wire::packing::pack;
use std::collections::BTreeMap;
use sudare_ring::{Eval, Poly};

/// Adds the messages of a step as they come, and knows who is missing. It keeps the sum alone.
#[derive(Clone, Debug)]
pub struct Collector<K> {
    session: Session,
    question: Digest,
    records: Vec<Record>,
    /// Whose messages are wanted, and a digest of the first polynomial of those that came.
    parties: BTreeMap<u32, Option<blake3::Hash>>,
    sum: Vec<Poly<Eval>>,
    kind: std::marker::PhantomData<K>,
}

impl<K: Kind> Collector<K> {
    pub(super) fn new(
        session: &Session,
        question: Digest,
        records: Vec<Record>,
        parties: impl IntoIterator<Item = u32>,
    ) -> Self {
        let parties = parties.into_iter().map(|party| (party, None)).collect();
        Self { session: session.clone(), question, records, parties, sum: Vec::new(), kind: std::marker::PhantomData }
    }

    /// Takes a message over. The same one again changes nothing.
    ///
    /// # Errors
    /// [`PartyError::Foreign`], [`PartyError::Stale`], [`PartyError::NotActive`], [`PartyError::Twice`], each with the party.
    pub fn add(&mut self, share: &Share<K>) -> Result<(), PartyError> {
        let party = share.party;
        if share.session != self.session {
            return Err(PartyError::Foreign { party, expected: self.session.id() });
        }
        let Some(seen) = self.parties.get_mut(&party) else { return Err(PartyError::NotActive { party }) };
        if share.answers != self.question || share.records != self.records {
            return Err(PartyError::Stale { party });
        }
        // The first polynomial tells messages apart: what else differs is another message of a party that does not follow the protocol, and
        // the first one stays.
        let mut bytes = Vec::new();
        share.polys.first().into_iter().for_each(|poly| pack(poly, &mut bytes));
        let hash = blake3::hash(&bytes);
        match seen {
            Some(before) if *before == hash => return Ok(()),
            Some(_) => return Err(PartyError::Twice { party }),
            None => *seen = Some(hash),
        }
        if self.sum.is_empty() {
            self.sum.clone_from(&share.polys);
        } else {
            self.sum.iter_mut().zip(&share.polys).for_each(|(sum, poly)| sum.add_assign(poly));
        }
        Ok(())
    }

    /// All of them; the first that is refused ends it.
    ///
    /// # Errors
    /// As [`Collector::add`].
    pub fn all<'a>(mut self, shares: impl IntoIterator<Item = &'a Share<K>>) -> Result<Self, PartyError>
    where
        K: 'a,
    {
        shares.into_iter().try_for_each(|share| self.add(share))?;
        Ok(self)
    }

    /// Whose messages have not come.
    pub fn missing(&self) -> Vec<u32> {
        self.parties.iter().filter(|(_, seen)| seen.is_none()).map(|(party, _)| *party).collect()
    }

    pub(super) fn is_for(&self, question: &Digest) -> bool {
        self.question == *question
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn records(&self) -> &[Record] {
        &self.records
    }

    /// The sums.
    pub(super) fn finish(self) -> Result<Vec<Poly<Eval>>, PartyError> {
        match self.missing() {
            parties if parties.is_empty() => Ok(self.sum),
            parties => Err(PartyError::Missing { parties }),
        }
    }
}
