//! A client of any protocol.

use crate::bytes::{Put, flag};
use crate::message::{Pending, write_object};
use crate::{Answer, GenomeError, Protocol, Question, Sites, lookup, simd, trie};
use std::ops::Range;
use sudare_ring::random::Seed;
use sudare_rlwe::wire::{Fields, ObjectType, Reader, WireError};
use sudare_rlwe::{KeyId, ParamsHash};
use zeroize::{Zeroize, Zeroizing};

/// The purpose that keys are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPlan {
    /// The protocol.
    pub protocol: Protocol,
    /// Longest window.
    pub sites: usize,
    /// Whether starts are hidden among several.
    pub hidden: bool,
}

impl KeyPlan {
    /// Keys of the default protocol, for windows of any length.
    pub fn trie() -> Self {
        Self { protocol: Protocol::Trie, sites: 1, hidden: true }
    }

    /// Windows that selectors of two levels hold.
    const SHALLOW: usize = 128;

    fn lookup_set(&self) -> lookup::Set {
        if self.sites <= Self::SHALLOW { lookup::Set::standard() } else { lookup::Set::deep() }
    }
}

/// How the start of a question is hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoys {
    /// Candidate starts, the question's own among them; with one it is open.
    pub among: usize,
    /// Sites that the others are taken from.
    pub within: Range<usize>,
}

enum Inner {
    Trie(trie::Client),
    Lookup(lookup::Client),
    Simd(simd::Client),
}

/// Holds the secret key of one protocol: asks, and reads answers.
pub struct Client {
    plan: KeyPlan,
    inner: Inner,
}

impl Client {
    /// A client with a new key.
    ///
    /// # Errors
    /// [`GenomeError::Range`] for windows that the protocol does not hold; [`GenomeError::Tfhe`], [`GenomeError::Exact`].
    pub fn generate(plan: KeyPlan) -> Result<Self, GenomeError> {
        let inner = match plan.protocol {
            Protocol::Trie => Inner::Trie(trie::Client::generate(&trie::Set::standard())?),
            Protocol::Lookup => Inner::Lookup(lookup::Client::generate(&plan.lookup_set())?),
            Protocol::Simd => Inner::Simd(simd::Client::generate(simd::Set::new(plan.sites, plan.hidden)?)?),
        };
        Ok(Self { plan, inner })
    }

    /// The purpose of its keys.
    pub fn plan(&self) -> KeyPlan {
        self.plan
    }

    /// The key's public name.
    pub fn id(&self) -> KeyId {
        match &self.inner {
            Inner::Trie(c) => c.id(),
            Inner::Lookup(c) => c.id(),
            Inner::Simd(c) => c.id(),
        }
    }

    /// The bytes of its secret key: they decrypt every answer and every query.
    ///
    /// # Errors
    /// [`GenomeError::Wire`].
    pub fn secret_bytes(&self) -> Result<Zeroizing<Vec<u8>>, GenomeError> {
        let secret = self.inner_secret_bytes()?;
        let mut meta = Vec::new();
        meta.u32(self.plan.protocol.code());
        meta.u32(self.plan.hidden.into());
        meta.u64(self.plan.sites as u64);
        let owner = (ParamsHash([0; 32]), self.id());
        Ok(Zeroizing::new(write_object(ObjectType::GenomeClientKey, owner, meta, &[&secret])?))
    }

    fn inner_secret_bytes(&self) -> Result<Zeroizing<Vec<u8>>, GenomeError> {
        match &self.inner {
            Inner::Trie(c) => c.secret_bytes(),
            Inner::Lookup(c) => c.secret_bytes(),
            Inner::Simd(c) => c.secret_bytes(),
        }
    }

    /// The seed of the decoys: a hash of the secret key, so a server cannot compute a list.
    fn decoy_seed(&self) -> Result<Seed, GenomeError> {
        let mut hasher = blake3::Hasher::new_derive_key("sudare genome decoys v1");
        hasher.update(&self.inner_secret_bytes()?);
        let seed = Seed::from_bytes(*hasher.finalize().as_bytes());
        hasher.zeroize();
        Ok(seed)
    }

    /// A client from the bytes of its secret key.
    ///
    /// # Errors
    /// [`GenomeError::Wire`], [`GenomeError::Range`].
    pub fn from_secret_bytes(bytes: &[u8]) -> Result<Self, GenomeError> {
        let mut reader = Reader::plain(bytes, ObjectType::GenomeClientKey)?;
        reader.header().expect_params(ParamsHash([0; 32]))?;
        let id = reader.header().key();
        let mut fields = Fields::new(reader.header().meta());
        let protocol = Protocol::from_code(fields.u32()?)?;
        let hidden = flag(&mut fields)?;
        let plan = KeyPlan { protocol, hidden, sites: crate::bytes::count(&mut fields)? };
        fields.finish()?;
        let secret = Zeroizing::new(reader.segment()?.to_vec());
        reader.finish()?;
        let inner = match protocol {
            Protocol::Trie => Inner::Trie(trie::Client::from_secret_bytes(&trie::Set::standard(), &secret)?),
            Protocol::Lookup => Inner::Lookup(lookup::Client::from_secret_bytes(&plan.lookup_set(), &secret)?),
            Protocol::Simd => {
                Inner::Simd(simd::Client::from_secret_bytes(simd::Set::new(plan.sites, hidden)?, &secret)?)
            }
        };
        let client = Self { plan, inner };
        if client.id() != id {
            return Err(WireError::WrongKey { found: client.id(), expected: id }.into());
        }
        Ok(client)
    }

    /// The keys that a server needs besides queries: for "trie" only for circuit-private answers. Made in parallel inside a thread
    /// pool.
    ///
    /// # Errors
    /// [`GenomeError::Tfhe`], [`GenomeError::Exact`], [`GenomeError::Wire`].
    pub fn evaluation_keys(&self) -> Result<Vec<u8>, GenomeError> {
        match &self.inner {
            Inner::Trie(c) => c.evaluation_keys(),
            Inner::Lookup(c) => c.evaluation_keys(),
            Inner::Simd(c) => c.evaluation_keys(),
        }
    }

    /// Encrypts questions from one start, hidden as `decoys` says: the decoys follow from the key and the start
    /// ([`Question::hidden`]), so that all queries of a region show one list. Otherwise as [`Client::query`].
    ///
    /// # Errors
    /// As for [`Client::query`]; [`GenomeError::Range`] if `decoys` has too few sites.
    pub fn ask(
        &self,
        sites: &Sites,
        questions: Vec<Question>,
        decoys: &Decoys,
        private: bool,
    ) -> Result<(Vec<u8>, Pending), GenomeError> {
        let seed = self.decoy_seed()?;
        let hide = |question: Question| question.hidden(sites, decoys.within.clone(), decoys.among, &seed);
        let questions = questions.into_iter().map(hide).collect::<Result<Vec<_>, _>>()?;
        self.query(sites, &questions, private)
    }

    /// Encrypts questions of one shape and one list of starts for a panel; several at once for "simd" alone. `private`
    /// asks for a circuit-private answer, which "trie" alone gives.
    ///
    /// # Errors
    /// [`GenomeError::Range`], [`GenomeError::Failure`], [`GenomeError::WrongProtocol`], [`GenomeError::Wire`],
    /// [`GenomeError::Tfhe`], [`GenomeError::Exact`].
    pub fn query(
        &self,
        sites: &Sites,
        questions: &[Question],
        private: bool,
    ) -> Result<(Vec<u8>, Pending), GenomeError> {
        let most = if self.plan.protocol == Protocol::Simd { crate::message::MAX_BATCH } else { 1 };
        crate::error::in_range("queries of one message", questions.len() as u64, 1, most as u64)?;
        if private {
            self.plan.protocol.require(Protocol::Trie)?;
        }
        match &self.inner {
            Inner::Trie(c) => c.query(sites.hash(), &questions[0], private),
            Inner::Lookup(c) => c.query(sites, &questions[0]),
            Inner::Simd(c) => c.query(sites.hash(), questions),
        }
    }

    /// Decrypts an answer.
    ///
    /// # Errors
    /// [`GenomeError::WrongQuery`], [`GenomeError::WrongPanel`], [`GenomeError::WrongProtocol`],
    /// [`GenomeError::Nonsense`], [`GenomeError::Wire`], [`GenomeError::Tfhe`], [`GenomeError::Exact`].
    pub fn answer(&self, pending: &Pending, answer: &[u8]) -> Result<Vec<Answer>, GenomeError> {
        match &self.inner {
            Inner::Trie(c) => c.answer(pending, answer),
            Inner::Lookup(c) => c.answer(pending, answer),
            Inner::Simd(c) => c.answer(pending, answer),
        }
    }

    /// The client of "lookup", to encrypt tables of a panel of its own.
    ///
    /// # Errors
    /// [`GenomeError::WrongProtocol`].
    pub fn lookup(&self) -> Result<&lookup::Client, GenomeError> {
        match &self.inner {
            Inner::Lookup(c) => Ok(c),
            _ => {
                Err(GenomeError::WrongProtocol { found: self.plan.protocol.name(), expected: Protocol::Lookup.name() })
            }
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({}, {}, hidden)", self.plan.protocol, self.id())
    }
}
