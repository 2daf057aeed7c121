//! Secret shares: t parties have the secret together, t − 1 have nothing.
//!
//! Each party i shares its secret by a polynomial f_i of degree t − 1 with f_i(0) = s_i and uniform coefficients in R_q, for each
//! data prime (Shamir), and gives f_i(α_k) to party k, α_k = k + 1, over a channel that nobody else reads. Party k adds what it
//! got: S(α_k) = Σ f_i(α_k), a share of Σ s_i.
//!
//! S has degree t − 1, so whoever knows the shares of t − 1 corrupted parties has every other S(α_j) as a known multiple of s and a known
//! summand. Two answers under noise would then be two multiples of one unknown, and their noise would fall to a lattice of two dimensions.
//! So only the **sum** of the honest parties' answers may be seen: beside f_i(α_k) goes half of a key k_ik, and the t parties that take part
//! in a step add masks to their answers, uniform modulo q, whose sum is zero: Σ_{k≠i} ±PRF(k_ik, question). Whatever t − 1 parties know,
//! the answers of the others are uniform but for their sum, c_1·(s − Σ of the corrupted) and all honest noise.

use super::party::Joint;
use super::question::Question;
use super::{Digest, Party, PartyError, Session};
use crate::wire::packing::{pack, packed_bytes};
use crate::wire::{Fields, Header, ObjectType, Reader, State, WireError, Writer};
use std::collections::BTreeSet;
use std::fmt;
use sudare_ring::modulus::Shoup;
use sudare_ring::ops::secret_uniform;
use sudare_ring::random::Seed;
use sudare_ring::{Eval, Poly, RingError, RnsBasis};
use zeroize::Zeroizing;

/// Bytes of a key that two parties share.
pub(super) const KEY_BYTES: usize = 32;

/// α of a party.
fn point(party: u32) -> u64 {
    u64::from(party) + 1
}

fn secret_shares(session: &Session) -> Digest {
    Question::of(session, "secret shares").digest()
}

/// λ_i = Π_{k≠i} α_k/(α_k − α_i) modulo each prime, over the parties that take part.
pub(super) fn lagrange(basis: &RnsBasis, active: &[u32], party: u32) -> Result<Vec<Shoup>, RingError> {
    let own = point(party);
    basis
        .moduli()
        .map(|q| {
            let others = || active.iter().filter(|k| **k != party).map(|k| point(*k));
            let above = others().fold(1, |acc, k| q.mul(acc, k));
            let below = others().fold(1, |acc, k| q.mul(acc, q.sub(q.reduce(k), q.reduce(own))));
            Ok(q.shoup(q.mul(above, q.inverse(below)?)))
        })
        .collect()
}

/// f_i(α_k) and party i's half of the key k_ik: for party k alone, which adds them to its own and the others' and forgets them. Wiped when
/// dropped, neither cloned nor printed.
///
/// **Its bytes are the secret itself and not encrypted.** Whoever carries them sees to it that nobody but the receiver reads them: over TLS
/// with both sides known, or encrypted to a key of the receiver. A folder that others read too is no such channel. Whoever reads those for t
/// parties has the key of the session; whoever reads those between two parties can tell their answers apart.
pub struct PrivateShare {
    session: Session,
    from: u32,
    to: u32,
    value: Zeroizing<Poly<Eval>>,
    key: Zeroizing<[u8; KEY_BYTES]>,
}

impl PrivateShare {
    /// Who it is from.
    pub fn from(&self) -> u32 {
        self.from
    }

    /// Whom it is for.
    pub fn to(&self) -> u32 {
        self.to
    }

    /// Its bytes, for its receiver alone.
    ///
    /// # Errors
    /// None for a share that exists.
    pub fn to_bytes(&self) -> Result<Zeroizing<Vec<u8>>, WireError> {
        let mut meta = self.session.id().0.to_vec();
        meta.extend(self.from.to_le_bytes());
        meta.extend(self.to.to_le_bytes());
        let bytes = packed_bytes(self.value.basis());
        let owner = (self.session.params().hash(), self.session.key());
        let header =
            Header::new(ObjectType::PrivateShare, owner, State::default(), meta, vec![KEY_BYTES as u64, bytes])?;
        let mut out = Zeroizing::new(Vec::with_capacity(header.total_bytes() as usize));
        let mut packed = Zeroizing::new(Vec::with_capacity(bytes as usize));
        pack(&self.value, &mut packed);
        let mut writer = Writer::new(&mut *out, &header)?;
        writer.segment(&*self.key)?;
        writer.segment(&packed)?;
        writer.finish()?;
        Ok(out)
    }

    /// A secret share that came from a party.
    ///
    /// # Errors
    /// [`PartyError::Malformed`], [`PartyError::Foreign`], [`PartyError::InAnothersName`], each with the party.
    pub fn receive(session: &Session, party: u32, bytes: &[u8]) -> Result<Self, PartyError> {
        session.expect_party(party)?;
        let share = Self::from_bytes(session, bytes).map_err(|error| match error {
            WireError::WrongParameters { .. } | WireError::WrongKey { .. } => {
                PartyError::Foreign { party, expected: session.id() }
            }
            error => PartyError::Malformed { party, error },
        })?;
        if share.from != party {
            return Err(PartyError::InAnothersName { party, found: share.from });
        }
        Ok(share)
    }

    /// A secret share from its bytes.
    ///
    /// # Errors
    /// Every [`WireError`] but [`WireError::Io`].
    pub fn from_bytes(session: &Session, bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::plain(bytes, ObjectType::PrivateShare)?;
        let (header, basis) = (reader.header(), session.params().q());
        header.expect_params(session.params().hash())?;
        header.expect_key(session.key())?;
        header.expect_segments([KEY_BYTES as u64, packed_bytes(basis)])?;
        let mut fields = Fields::new(header.meta());
        if fields.bytes32()? != session.id().0 {
            return Err(WireError::WrongKey { found: header.key(), expected: session.key() });
        }
        let (from, to) = (fields.u32()?, fields.u32()?);
        fields.finish()?;
        if from.max(to) >= session.parties() {
            let (found, limit) = (from.max(to).into(), u64::from(session.parties()) - 1);
            return Err(WireError::Oversize { what: "a party's number", found, limit });
        }
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        key.copy_from_slice(reader.segment()?);
        let value = Zeroizing::new(reader.poly(basis)?);
        reader.finish()?;
        Ok(Self { session: session.clone(), from, to, value, key })
    }
}

impl fmt::Debug for PrivateShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateShare(of party {}, for party {}, hidden)", self.from, self.to)
    }
}

impl Party {
    /// This party's half of its key with another.
    fn half(&self, question: &Digest, other: u32) -> Zeroizing<[u8; KEY_BYTES]> {
        let mut half = Zeroizing::new([0; KEY_BYTES]);
        self.randomness(&format!("key with party {other}"), question).stream(0).fill_bytes(&mut *half);
        half
    }

    /// Adds this party's zero-sum mask to component `component` of an answer: only the sum over the parties that take part says anything.
    /// With t = n the secrets are independent, and there is none.
    pub(super) fn hide(&self, answer: &mut Poly<Eval>, active: &[u32], question: &Digest, component: u64) {
        let Some(joint) = self.joint.as_ref().filter(|_| self.session.threshold() < self.session.parties()) else {
            return;
        };
        let domain = format!("sudare multiparty zero-sum mask of {}", question.hex());
        for other in active.iter().filter(|other| **other != self.index) {
            let mut key = Zeroizing::new([0; KEY_BYTES]);
            key.copy_from_slice(&joint.keys[*other as usize * KEY_BYTES..][..KEY_BYTES]);
            let mask = secret_uniform(answer.basis(), &Seed::from_bytes(*key).derive(&domain, component));
            let mask = Zeroizing::new(mask);
            if self.index < *other { answer.add_assign(&mask) } else { answer.sub_assign(&mask) }
        }
    }

    /// What this party gives every party, itself included: the share for party k is the k-th. With t = n nobody needs them.
    pub fn private_shares(&self) -> Vec<PrivateShare> {
        let (session, basis) = (&self.session, self.session.params().q());
        let question = secret_shares(session);
        let coefficient = |power: u32| {
            let seed = self.randomness(&format!("coefficient {power}"), &question);
            Zeroizing::new(secret_uniform(basis, &seed))
        };
        let coefficients: Vec<_> = (1..session.threshold()).map(coefficient).collect();
        let constant = self.secret.at_level(session.params().max_level());
        (0..session.parties())
            .map(|to| {
                let alpha = Poly::<Eval>::scalar(basis, point(to) as i64);
                // Horner, from the highest power.
                let mut value = Zeroizing::new(Poly::<Eval>::zero(basis));
                for term in coefficients.iter().rev().chain([&constant]) {
                    value.mul_scalars(&alpha);
                    value.add_assign(term);
                }
                PrivateShare { session: session.clone(), from: self.index, to, value, key: self.half(&question, to) }
            })
            .collect()
    }

    /// Adds the secret shares that all parties gave this one: from now on it takes part in decryptions.
    ///
    /// # Errors
    /// [`PartyError::Foreign`], [`PartyError::ForAnother`], [`PartyError::Twice`],
    /// [`PartyError::Missing`]. The party is as it was then.
    pub fn add_private_shares(&mut self, shares: &[PrivateShare]) -> Result<(), PartyError> {
        let mut missing: BTreeSet<u32> = (0..self.session.parties()).collect();
        for share in shares {
            let party = share.from;
            if share.session != self.session {
                return Err(PartyError::Foreign { party, expected: self.session.id() });
            }
            if share.to != self.index {
                return Err(PartyError::ForAnother { party, to: share.to });
            }
            if !missing.remove(&party) {
                return Err(PartyError::Twice { party });
            }
        }
        if !missing.is_empty() {
            return Err(PartyError::Missing { parties: missing.into_iter().collect() });
        }
        let mut sum = Zeroizing::new(Poly::<Eval>::zero(self.session.params().q()));
        let mut keys = Zeroizing::new(vec![0; self.session.parties() as usize * KEY_BYTES]);
        let question = secret_shares(&self.session);
        for share in shares {
            sum.add_assign(&share.value);
            // Both halves, so that the key is as good as the better of them.
            let halves = share.key.iter().zip(*self.half(&question, share.from));
            let key = &mut keys[share.from as usize * KEY_BYTES..][..KEY_BYTES];
            key.iter_mut().zip(halves).for_each(|(k, (theirs, own))| *k = theirs ^ own);
        }
        self.joint = Some(Joint { share: sum, keys });
        Ok(())
    }
}
