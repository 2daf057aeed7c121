//! Parties, with ledgers in memory; and, for tests alone, the secret that nobody has.

use std::collections::BTreeMap;
use sudare_he::ckks::{Params, ParamsLiteral};
use sudare_ring::random::{MaskSeed, Seed, ternary};
use sudare_ring::{Eval, Poly};
use sudare_rlwe::keys::{EvalKeys, PublicKey, SecretKey};
use sudare_rlwe::multiparty::{
    Digest, Entry, Ledger, Party, PartyError, Session, galois_keys, public_key, relin_key, relin_sum,
};
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::SecretDistribution;
use sudare_rlwe::wire::{Container, packing::unpack};
use zeroize::Zeroizing;

/// A ledger that lasts as long as the test, by the rule of all ledgers.
#[derive(Default)]
pub struct Memory {
    answers: BTreeMap<Digest, Digest>,
    releases: u64,
    policy: Option<ReleasePolicy>,
}

impl Ledger for Memory {
    fn admit(&mut self, entry: &Entry) -> Result<(), PartyError> {
        if entry.is_new(self.answers.get(&entry.subject).copied(), (self.releases, self.policy))? {
            self.releases += u64::from(entry.policy.is_some());
            self.policy = self.policy.or(entry.policy);
            self.answers.insert(entry.subject, entry.question);
        }
        Ok(())
    }
}

/// A build without the remedy: whatever is asked is answered.
pub struct Forgetful;

impl Ledger for Forgetful {
    fn admit(&mut self, _: &Entry) -> Result<(), PartyError> {
        Ok(())
    }
}

/// The same literal for several parties.
pub fn shared(mut literal: ParamsLiteral, parties: u32) -> ParamsLiteral {
    literal.secret = SecretDistribution::TernarySum { parties };
    literal
}

pub struct World {
    pub session: Session,
    pub parties: Vec<Party>,
    pub ledgers: Vec<Memory>,
    seeds: Vec<[u8; 32]>,
}

impl World {
    pub fn new(params: &Params, threshold: u32, number: u8) -> Self {
        let session = Session::new(params, threshold, MaskSeed::from_bytes([number; 32])).unwrap();
        let seeds: Vec<[u8; 32]> = (0..session.parties()).map(|i| [number ^ (i as u8 + 1); 32]).collect();
        let party =
            |(i, seed): (usize, &[u8; 32])| Party::from_seed(&session, i as u32, Zeroizing::new(*seed)).unwrap();
        let mut parties: Vec<Party> = seeds.iter().enumerate().map(party).collect();
        if threshold < session.parties() {
            let mut shares: Vec<Vec<_>> = parties.iter().map(|p| p.private_shares()).collect();
            for party in &mut parties {
                let own: Vec<_> = shares.iter_mut().map(|shares| shares.remove(0)).collect();
                party.add_private_shares(&own).unwrap();
            }
        }
        let ledgers = parties.iter().map(|_| Memory::default()).collect();
        Self { session, parties, ledgers, seeds }
    }

    pub fn public(&self) -> PublicKey {
        let shares: Vec<_> = self.parties.iter().map(Party::public_key_share).collect();
        public_key(&self.session).all(&shares).unwrap().public_key().unwrap()
    }

    /// A relinearisation key and some automorphisms, up to the highest level.
    pub fn keys(&mut self, elements: &[u64]) -> EvalKeys {
        let top = self.session.params().max_level();
        let firsts: Vec<_> = self.parties.iter().map(|p| p.relin_first_share(top).unwrap()).collect();
        let sum = relin_sum(&self.session, top).unwrap().all(&firsts).unwrap().relin_sum().unwrap();
        let both = self.parties.iter().zip(&mut self.ledgers);
        let seconds: Vec<_> = both.map(|(p, ledger)| p.relin_second_share(&sum, ledger).unwrap()).collect();
        let mut keys = EvalKeys::new(self.session.params(), self.session.key());
        keys.set_relin(relin_key(&sum).all(&seconds).unwrap().relin_key().unwrap()).unwrap();
        let elements: Vec<_> = elements.iter().map(|e| (*e, top)).collect();
        if !elements.is_empty() {
            let shares: Vec<_> = self.parties.iter().map(|p| p.galois_share(&elements).unwrap()).collect();
            let galois = galois_keys(&self.session, &elements).unwrap().all(&shares).unwrap();
            galois.galois_keys().unwrap().into_iter().for_each(|key| keys.insert(key).unwrap());
        }
        keys
    }

    /// A party's secret coefficients, from its seed as the party derives them.
    pub fn secret_of(&self, index: usize) -> Vec<i64> {
        let session = Digest(self.session.id().0).hex();
        let root =
            Seed::from_bytes(self.seeds[index]).derive(&format!("sudare party of session {session}"), index as u64);
        let mut coefficients = vec![0; self.session.params().degree()];
        ternary(&mut root.derive("secret", 0).stream(0), &mut coefficients);
        coefficients
    }

    /// S(α) of a party, from what all gave it.
    pub fn share_of(&self, index: u32) -> Poly<Eval> {
        let mut sum = Poly::<Eval>::zero(self.session.params().q());
        for party in &self.parties {
            let bytes = party.private_shares()[index as usize].to_bytes().unwrap();
            let segment = Container::from_bytes(&bytes).unwrap().segment(1).unwrap().to_vec();
            sum.add_assign(&unpack(sum.basis(), &segment, 0).unwrap());
        }
        sum
    }

    /// Σ s_i, which nobody has.
    pub fn secret(&self) -> SecretKey {
        let mut sum = vec![0i64; self.session.params().degree()];
        for i in 0..self.parties.len() {
            sum.iter_mut().zip(self.secret_of(i)).for_each(|(sum, x)| *sum += x);
        }
        SecretKey::from_coefficients(self.session.params(), self.session.key(), Zeroizing::new(sum)).unwrap()
    }
}
