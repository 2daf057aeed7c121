//! The client's side.

use super::layout::Layout;
use super::params::Set;
use super::server::KIND;
use crate::bytes::Put;
use crate::message::{AnswerHead, Head, Pending, expect_segments, write_object};
use crate::panel::PanelHash;
use crate::{Answer, GenomeError, Protocol, Question};
use std::fmt;
use sudare_exact::bgv::{Ciphertext, Decryptor, Encryptor};
use sudare_exact::{Encoder, IntegerParams, Packing, Wrap};
use sudare_rlwe::KeyId;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::wire::{ObjectType, Wire, WireError, secret_key_from_bytes, secret_key_to_bytes};
use zeroize::Zeroizing;

/// Holds the secret key.
pub struct Client {
    set: Set,
    params: IntegerParams,
    secret: SecretKey,
    encoder: Encoder,
}

impl Client {
    /// A client with a new key.
    ///
    /// # Errors
    /// [`GenomeError::Exact`].
    pub fn generate(set: Set) -> Result<Self, GenomeError> {
        let params = set.build()?;
        let secret = SecretKey::generate(&params)?;
        Ok(Self { set, encoder: Encoder::new(&params), params, secret })
    }

    /// A client from the bytes of its secret key.
    ///
    /// # Errors
    /// [`GenomeError::Wire`].
    pub fn from_secret_bytes(set: Set, bytes: &[u8]) -> Result<Self, GenomeError> {
        let params = set.build()?;
        let secret = secret_key_from_bytes(&params, bytes)?;
        Ok(Self { set, encoder: Encoder::new(&params), params, secret })
    }

    /// The bytes of its secret key: they decrypt every answer and every query.
    ///
    /// # Errors
    /// [`GenomeError::Wire`].
    pub fn secret_bytes(&self) -> Result<Zeroizing<Vec<u8>>, GenomeError> {
        Ok(secret_key_to_bytes(&self.secret)?)
    }

    /// The server's keys: relinearisation, rotations by powers of two, the swap of both rows. Made in parallel inside a
    /// thread pool.
    ///
    /// # Errors
    /// [`GenomeError::Exact`], [`GenomeError::Wire`].
    pub fn evaluation_keys(&self) -> Result<Vec<u8>, GenomeError> {
        let (params, top) = (&self.params, self.params.max_level());
        let steps = (0..self.params.row().trailing_zeros()).map(|i| params.rotation_element(1 << i));
        let elements: Vec<(u64, usize)> = steps.chain([self.params.row_swap_element()]).map(|e| (e, top)).collect();
        let keys = KeyGenerator::new(&self.secret)?.eval_keys(Some(top), &elements)?;
        let mut meta = Vec::new();
        meta.u32(KIND);
        self.set.write(&mut meta);
        let owner = (params.hash(), self.secret.id());
        write_object(ObjectType::GenomeKeys, owner, meta, &[&keys.to_bytes()?])
    }

    /// The key's public name.
    pub fn id(&self) -> KeyId {
        self.secret.id()
    }

    /// The purpose of its keys.
    pub fn set(&self) -> Set {
        self.set
    }

    /// Its parameters.
    pub fn params(&self) -> &IntegerParams {
        &self.params
    }

    /// Questions that fit one message.
    ///
    /// # Errors
    /// [`GenomeError::Range`].
    pub fn most_questions(&self, sites: usize) -> Result<usize, GenomeError> {
        let shape = crate::Shape { sites, starts: 1, eps: 1 };
        // With one query a block is all haplotypes.
        Ok(Layout::new(&self.params, shape, 1)?.haplotypes() / 2)
    }

    /// Encrypts questions of one shape and one list of starts.
    ///
    /// # Errors
    /// [`GenomeError::Range`] for a window or a batch over the set's, [`GenomeError::Exact`], [`GenomeError::Wire`].
    pub fn query(&self, panel: PanelHash, questions: &[Question]) -> Result<(Vec<u8>, Pending), GenomeError> {
        let head = Head::of(Protocol::Simd, panel, questions, false)?;
        let shape = head.shape();
        self.set.check(shape)?;
        let layout = Layout::new(&self.params, shape, questions.len())?;
        let symbol = |block: usize, query: usize| {
            let k = shape.sites.checked_sub(block + 1);
            let symbols = questions.get(query).map(Question::symbols);
            k.and_then(|k| symbols?.get(k)).map_or(0, |w| u64::from(*w))
        };
        let mut segments = vec![self.encrypt(&layout.replicated(symbol))?];
        if shape.starts > 1 {
            for first in (0..shape.starts).step_by(layout.blocks()) {
                let chosen = |block: usize, query: usize| {
                    questions.get(query).map_or(0, |q| u64::from(q.which() == first + block))
                };
                segments.push(self.encrypt(&layout.replicated(chosen))?);
            }
        }
        let query = head.write((self.params.hash(), self.id()), &segments)?;
        let pending = Pending::new(head, &query, questions);
        Ok((query, pending))
    }

    fn encrypt(&self, slots: &[u64]) -> Result<Vec<u8>, GenomeError> {
        let plain = self.encoder.encode_unsigned(slots, Packing::Slots, Wrap::Refuse)?;
        Ok(Encryptor::with_secret_key(&self.params, &self.secret)?.encrypt(&plain)?.to_bytes()?)
    }

    /// Decrypts an answer: the nonzero slots of a query are the positions that match.
    ///
    /// # Errors
    /// [`GenomeError::WrongQuery`], [`GenomeError::WrongPanel`], [`GenomeError::WrongProtocol`],
    /// [`GenomeError::Nonsense`], [`GenomeError::Wire`], [`GenomeError::Exact`].
    pub fn answer(&self, pending: &Pending, answer: &[u8]) -> Result<Vec<Answer>, GenomeError> {
        pending.head.protocol.require(Protocol::Simd)?;
        let mut reader = AnswerHead::read(answer, pending)?;
        reader.header().expect_params(self.params.hash())?;
        reader.header().expect_key(self.id())?;
        if reader.header().segments().len() != 1 {
            return Err(WireError::Corrupt { what: "an answer of several ciphertexts" }.into());
        }
        let length = reader.header().segments()[0];
        expect_segments(&reader, 0, [length])?;
        let c = Ciphertext::from_bytes(&self.params, reader.segment()?)?;
        reader.finish()?;
        let plain = Decryptor::new(&self.params, &self.secret)?.decrypt(&c)?;
        let slots = self.encoder.decode_unsigned(&plain, Packing::Slots)?;
        let layout = Layout::new(&self.params, pending.head.shape(), pending.head.batch)?;
        let lengths = (0..pending.head.batch).map(|query| {
            let matches: Vec<bool> =
                (0..pending.head.sites).map(|k| slots[layout.position(k, 0, query)] != 0).collect();
            let length = matches.iter().take_while(|m| **m).count();
            // Nothing matches after the first site that does not.
            if matches[length..].contains(&true) { Err(GenomeError::Nonsense) } else { Ok(length) }
        });
        pending.answers(lengths.collect::<Result<_, _>>()?)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({}, hidden)", self.id())
    }
}
