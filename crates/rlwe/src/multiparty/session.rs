//! What all parties agree on before anything else.

use super::{PartyError, Record};
use crate::ids::{KeyId, ParamsHash};
use crate::params::Params;
use crate::security::SecretDistribution;
use crate::wire::{Fields, Header, ObjectType, Reader, State, Wire, WireError, Writer};
use std::fmt;
use std::io::Write;
use sudare_ring::random::MaskSeed;

/// Names a session on every message of it: BLAKE3 of its parameters' hash, its parties, its threshold and its seed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionId(pub [u8; 32]);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Parameters, parties, threshold and the public seed of all masks: what all parties agree on. One session, one key; a seed
/// is used once.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    params: Params,
    threshold: u32,
    seed: MaskSeed,
    id: SessionId,
}

impl Session {
    /// A session of the parties of `params`, whose secret is a [`SecretDistribution::TernarySum`]. Any `threshold` of them
    /// decrypt; key generation takes all. The seed is fresh ([`MaskSeed::from_entropy`]) and public.
    ///
    /// # Errors
    /// [`PartyError::Session`].
    pub fn new(params: &Params, threshold: u32, seed: MaskSeed) -> Result<Self, PartyError> {
        let parties = params.literal().secret.parties();
        let several = matches!(params.literal().secret, SecretDistribution::TernarySum { .. });
        if !several || !(2..=parties).contains(&threshold) {
            return Err(PartyError::Session { parties, threshold });
        }
        let mut hasher = blake3::Hasher::new_derive_key("sudare multiparty session v1");
        hasher.update(&params.hash().0).update(&parties.to_le_bytes()).update(&threshold.to_le_bytes());
        let id = SessionId(*hasher.update(seed.as_bytes()).finalize().as_bytes());
        Ok(Self { params: params.clone(), threshold, seed, id })
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// n: how many parties there are. They are numbered from 0.
    pub fn parties(&self) -> u32 {
        self.params.literal().secret.parties()
    }

    /// t: how many of them decrypt.
    pub fn threshold(&self) -> u32 {
        self.threshold
    }

    /// The public seed.
    pub fn seed(&self) -> &MaskSeed {
        &self.seed
    }

    /// The session's name.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// The name of the parties' common secret key, on everything made from it.
    pub fn key(&self) -> KeyId {
        let mut name = [0; 16];
        name.copy_from_slice(&self.masks("key id", 0).as_bytes()[..16]);
        KeyId(name)
    }

    /// The seed of the masks of one object.
    pub(super) fn masks(&self, what: &str, index: u64) -> MaskSeed {
        MaskSeed::from_bytes(self.id.0).derive(&format!("sudare multiparty {what}"), index)
    }

    /// The seed of the masks of a key-switching key.
    pub(super) fn key_masks(&self, what: &str, record: &Record) -> MaskSeed {
        self.masks(&format!("{what} level {}", record.level), record.element)
    }

    pub(super) fn expect_party(&self, party: u32) -> Result<(), PartyError> {
        let parties = self.parties();
        if party < parties { Ok(()) } else { Err(PartyError::NoSuchParty { party, parties }) }
    }

    /// Different parties in rising order, exactly as many as the threshold: Lagrange factors of more have relations
    /// (Σ λ_j·α_j^r·S(α_j) = 0), and the answers so would have relations of their noise.
    pub(super) fn active(&self, parties: &[u32]) -> Result<Vec<u32>, PartyError> {
        let mut active = parties.to_vec();
        active.sort_unstable();
        active.dedup();
        active.iter().try_for_each(|party| self.expect_party(*party))?;
        if active.len() != self.threshold as usize || active.len() != parties.len() {
            return Err(PartyError::ActiveSet { found: active.len(), threshold: self.threshold });
        }
        Ok(active)
    }
}

impl Wire for Session {
    type Params = Params;
    const TYPE: ObjectType = ObjectType::PartySession;

    fn params_hash(params: &Params) -> ParamsHash {
        params.hash()
    }

    fn header(&self) -> Result<Header, WireError> {
        let meta = [&self.threshold.to_le_bytes()[..], &[0; 4], self.seed.as_bytes()].concat();
        Header::new(Self::TYPE, (self.params.hash(), self.key()), State::default(), meta, Vec::new())
    }

    fn write_segments<W: Write>(&self, _: &mut Writer<'_, W>) -> Result<(), WireError> {
        Ok(())
    }

    fn read_segments(params: &Params, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        header.expect_no_state()?;
        header.expect_segments([])?;
        let mut fields = Fields::new(header.meta());
        let threshold = fields.u32()?;
        fields.zeros(4)?;
        let seed = MaskSeed::from_bytes(fields.bytes32()?);
        fields.finish()?;
        let impossible = WireError::Corrupt { what: "a session that cannot be" };
        let session = Self::new(params, threshold, seed).map_err(|_| impossible)?;
        header.expect_key(session.key())?;
        Ok(session)
    }
}
