//! A party: its secret, and what it derives from its seed.

use super::private::KEY_BYTES;
use super::{Digest, Entry, Kind, Ledger, PartyError, Record, Session, Share};
use crate::ids::KeyId;
use crate::keys::SecretKey;
use crate::release::ReleasePolicy;
use crate::wire::packing::packed_bytes;
use crate::wire::{ALIGNMENT, Fields, Header, ObjectType, Reader, State, WireError, Writer};
use std::fmt;
use std::marker::PhantomData;
use sudare_ring::random::{Seed, ternary};
use sudare_ring::{Eval, Poly};
use zeroize::Zeroizing;

/// Bytes of a party's seed.
const SEED_BYTES: usize = 32;

/// What a party has from all parties' secret shares.
pub(super) struct Joint {
    /// S(α_i), over all data primes.
    pub(super) share: Zeroizing<Poly<Eval>>,
    /// Keys, [`KEY_BYTES`] each, that it shares with each of the parties alone; zero in its own place.
    pub(super) keys: Zeroizing<Vec<u8>>,
}

/// One of the parties: its ternary secret s_i, and with a threshold its share S(α_i) of the common secret and a
/// key with each other party. All are wiped when it is dropped, neither cloned nor printed.
///
/// Everything that it says is derived from its seed and from what it answers. A copy of a party, made by a fork or a
/// restored machine, so says what the party says; two of one seed in one session are one party.
pub struct Party {
    pub(super) session: Session,
    pub(super) index: u32,
    seed: Zeroizing<[u8; SEED_BYTES]>,
    pub(super) secret: SecretKey,
    /// What it has of the others, with a threshold below their number.
    pub(super) joint: Option<Joint>,
}

impl Party {
    /// Party `index` of a session, from the operating system's entropy.
    ///
    /// # Errors
    /// [`PartyError::NoSuchParty`]; [`PartyError::Rlwe`] if the system gives no entropy.
    pub fn generate(session: &Session, index: u32) -> Result<Self, PartyError> {
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        Seed::from_entropy()?.stream(0).fill_bytes(&mut *seed);
        Self::from_seed(session, index, seed)
    }

    /// The party that a secret seed stands for in this session under this number.
    ///
    /// # Errors
    /// [`PartyError::NoSuchParty`].
    pub fn from_seed(session: &Session, index: u32, seed: Zeroizing<[u8; SEED_BYTES]>) -> Result<Self, PartyError> {
        session.expect_party(index)?;
        let params = session.params();
        let root = Self::root(session, index, &seed);
        let mut coefficients = Zeroizing::new(vec![0i64; params.degree()]);
        ternary(&mut root.derive("secret", 0).stream(0), &mut coefficients);
        let mut id = [0; 16];
        root.derive_mask("key id", 0).stream(0).fill_bytes(&mut id);
        let secret = SecretKey::from_coefficients(params, KeyId(id), coefficients)?;
        Ok(Self { session: session.clone(), index, seed, secret, joint: None })
    }

    fn root(session: &Session, index: u32, seed: &[u8; SEED_BYTES]) -> Seed {
        let session = Digest(session.id().0).hex();
        Seed::from_bytes(*seed).derive(&format!("sudare party of session {session}"), index.into())
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Its number.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Whether it can take part in decryptions: with a threshold below the number of parties it needs the secret shares of
    /// all ([`Party::add_private_shares`]).
    pub fn can_decrypt(&self) -> bool {
        self.joint.is_some() || self.session.threshold() == self.session.parties()
    }

    /// A secret seed for one purpose in one answer.
    pub(super) fn randomness(&self, purpose: &str, question: &Digest) -> Seed {
        let root = Self::root(&self.session, self.index, &self.seed);
        root.derive(&format!("{purpose} of {}", question.hex()), 0)
    }

    /// A secret seed that a scheme's own part of an answer is drawn from.
    pub fn randomness_for(&self, scheme: &str, question: &Digest) -> Seed {
        self.randomness(&format!("scheme {scheme}"), question)
    }

    pub(super) fn says<K: Kind>(&self, answers: Digest, records: Vec<Record>, polys: Vec<Poly<Eval>>) -> Share<K> {
        Share { session: self.session.clone(), party: self.index, answers, records, polys, kind: PhantomData }
    }

    pub(super) fn admit(
        &self,
        ledger: &mut dyn Ledger,
        subject: Digest,
        question: Digest,
        policy: Option<ReleasePolicy>,
    ) -> Result<(), PartyError> {
        let (session, party) = (self.session.id(), self.index);
        ledger.admit(&Entry { session, party, subject, question, policy })
    }

    /// w_i modulo the data primes of a level: what the shares of these parties have as their secret, Σ w_i = s.
    pub(super) fn weighted(&self, active: &[u32], level: usize) -> Result<Zeroizing<Poly<Eval>>, PartyError> {
        let party = self.index;
        if !active.contains(&party) {
            return Err(PartyError::NotActive { party });
        }
        if self.session.threshold() == self.session.parties() {
            return Ok(self.secret.at_level(level));
        }
        let joint = self.joint.as_ref().ok_or(PartyError::NoSecretShare { party })?;
        let mut share = Zeroizing::new(joint.share.truncated(level + 1));
        let factors = super::private::lagrange(share.basis(), active, party)?;
        share.mul_scalars(&factors);
        Ok(share)
    }

    /// The party's bytes, for its owner's file. Whoever reads them is the party. (Mode 0600.)
    ///
    /// # Errors
    /// None for a party that exists.
    pub fn to_bytes(&self) -> Result<Zeroizing<Vec<u8>>, WireError> {
        let mut meta = self.session.id().0.to_vec();
        meta.extend(self.index.to_le_bytes());
        meta.extend(u32::from(self.joint.is_some()).to_le_bytes());
        let mut lengths = vec![SEED_BYTES as u64];
        lengths
            .extend(self.joint.iter().flat_map(|joint| [joint.keys.len() as u64, packed_bytes(joint.share.basis())]));
        let owner = (self.session.params().hash(), self.secret.id());
        let header = Header::new(ObjectType::PartyKey, owner, State::default(), meta, lengths)?;
        // Never grown, since growing would leave copies behind.
        let mut out = Zeroizing::new(Vec::with_capacity(header.total_bytes() as usize));
        let mut writer = Writer::new(&mut *out, &header)?;
        writer.segment(&*self.seed)?;
        if let Some(Joint { share, keys }) = &self.joint {
            writer.segment(keys)?;
            let mut packed = Zeroizing::new(Vec::with_capacity(packed_bytes(share.basis()) as usize));
            crate::wire::packing::pack(share, &mut packed);
            writer.segment(&packed)?;
        }
        writer.finish()?;
        Ok(out)
    }

    /// A party from its bytes.
    ///
    /// # Errors
    /// Every [`WireError`] but [`WireError::Io`].
    pub fn from_bytes(session: &Session, bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::plain(bytes, ObjectType::PartyKey)?;
        let header = reader.header();
        header.expect_params(session.params().hash())?;
        let (id, mut fields) = (header.key(), Fields::new(header.meta()));
        if fields.bytes32()? != session.id().0 {
            return Err(WireError::Corrupt { what: "a party of another session" });
        }
        let (index, with_share) = (fields.u32()?, fields.u32()?);
        fields.finish()?;
        let (basis, keys) = (session.params().q(), session.parties() as usize * KEY_BYTES);
        match with_share {
            0 => header.expect_segments([SEED_BYTES as u64])?,
            1 => header.expect_segments([SEED_BYTES as u64, keys as u64, packed_bytes(basis)])?,
            _ => return Err(WireError::Corrupt { what: "a party with an impossible number of secret shares" }),
        }
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        seed.copy_from_slice(reader.segment()?);
        let refused = |_| WireError::Corrupt { what: "a party with an impossible number" };
        let mut party = Self::from_seed(session, index, seed).map_err(refused)?;
        id_matches(party.secret.id(), id)?;
        if with_share == 1 {
            let keys = Zeroizing::new(reader.segment()?.to_vec());
            party.joint = Some(Joint { share: Zeroizing::new(reader.poly(basis)?), keys });
        }
        reader.finish()?;
        Ok(party)
    }

    /// Bytes of a party's file at most, its container included.
    pub fn largest_file(session: &Session) -> u64 {
        4 * ALIGNMENT + packed_bytes(session.params().q())
    }
}

fn id_matches(expected: KeyId, found: KeyId) -> Result<(), WireError> {
    if expected == found { Ok(()) } else { Err(WireError::WrongKey { found, expected }) }
}

impl fmt::Debug for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Party({} of {}, session {}, hidden)", self.index, self.session.parties(), self.session.id())
    }
}
