//! The client's side.

use super::params::{Set, check, index_bits};
use crate::answer_bits::{answer_bytes, encrypt, read_answer};
use crate::message::{AnswerHead, Head, Pending, expect_segments};
use crate::{Answer, GenomeError, Protocol, Question, Sites};
use std::fmt;
use sudare_rlwe::KeyId;
use sudare_tfhe::ClientKey;
use sudare_tfhe::circuit_bootstrap::{CircuitKey, CircuitParams};
use sudare_tfhe::leveled::LeveledClient;
use sudare_tfhe::wire::{tfhe_client_key_from_bytes, tfhe_client_key_to_bytes, write_circuit_key};
use zeroize::Zeroizing;

/// Holds the secret key.
pub struct Client {
    params: CircuitParams,
    key: ClientKey,
    pub(super) leveled: LeveledClient,
}

impl Client {
    /// A client with a new key.
    ///
    /// # Errors
    /// [`GenomeError::Tfhe`] if the system gives no entropy.
    pub fn generate(set: &Set) -> Result<Self, GenomeError> {
        let params = set.build()?;
        let key = ClientKey::generate(params.tfhe())?;
        Self::with_key(params, key)
    }

    fn with_key(params: CircuitParams, key: ClientKey) -> Result<Self, GenomeError> {
        let leveled = LeveledClient::sharing(params.leveled(), &key)?;
        Ok(Self { params, key, leveled })
    }

    /// A client from the bytes of its secret key.
    ///
    /// # Errors
    /// [`GenomeError::Wire`].
    pub fn from_secret_bytes(set: &Set, bytes: &[u8]) -> Result<Self, GenomeError> {
        let params = set.build()?;
        let key = tfhe_client_key_from_bytes(params.tfhe(), bytes)?;
        Self::with_key(params, key)
    }

    /// The bytes of its secret key: they decrypt every answer and every query.
    ///
    /// # Errors
    /// [`GenomeError::Wire`].
    pub fn secret_bytes(&self) -> Result<Zeroizing<Vec<u8>>, GenomeError> {
        Ok(tfhe_client_key_to_bytes(&self.key)?)
    }

    /// The server's keys, made in parallel inside a thread pool.
    ///
    /// # Errors
    /// [`GenomeError::Tfhe`].
    pub fn circuit_key(&self) -> Result<CircuitKey, GenomeError> {
        Ok(CircuitKey::generate(&self.params, &self.key)?)
    }

    /// Their bytes.
    ///
    /// # Errors
    /// [`GenomeError::Tfhe`], [`GenomeError::Wire`].
    pub fn evaluation_keys(&self) -> Result<Vec<u8>, GenomeError> {
        let mut bytes = Vec::new();
        write_circuit_key(&self.circuit_key()?, &mut bytes)?;
        Ok(bytes)
    }

    /// The key's public name.
    pub fn id(&self) -> KeyId {
        self.key.id()
    }

    /// Its parameters.
    pub fn params(&self) -> &CircuitParams {
        &self.params
    }

    /// Encrypts a question: the bits of f = s(n + 1) and g = f + n, and the symbols.
    ///
    /// # Errors
    /// [`GenomeError::Failure`], [`GenomeError::Tfhe`].
    pub fn query(&self, sites: &Sites, question: &Question) -> Result<(Vec<u8>, Pending), GenomeError> {
        let (shape, n) = (question.shape(), sites.outline().haplotypes);
        check(&self.params, shape, n)?;
        let head = Head::of(Protocol::Lookup, sites.hash(), std::slice::from_ref(question), false)?;
        let bits = index_bits(shape, n);
        let f = question.which() * (n + 1);
        let places = [f, f + n].into_iter().flat_map(|x| (0..bits).map(move |j| x >> j & 1 == 1));
        let all: Zeroizing<Vec<bool>> = Zeroizing::new(places.chain(question.symbols().iter().copied()).collect());
        let query = head.write((self.params.leveled().hash(), self.id()), &encrypt(&self.leveled, &all)?)?;
        let pending = Pending::new(head, &query, std::slice::from_ref(question));
        Ok((query, pending))
    }

    /// Decrypts an answer.
    ///
    /// # Errors
    /// [`GenomeError::WrongQuery`], [`GenomeError::WrongPanel`], [`GenomeError::WrongProtocol`],
    /// [`GenomeError::Nonsense`], [`GenomeError::Wire`], [`GenomeError::Tfhe`].
    pub fn answer(&self, pending: &Pending, answer: &[u8]) -> Result<Vec<Answer>, GenomeError> {
        pending.head.protocol.require(Protocol::Lookup)?;
        let bits = pending.head.shape().answer_bits() as usize;
        let mut reader = AnswerHead::read(answer, pending)?;
        let leveled = self.params.leveled();
        reader.header().expect_params(leveled.hash())?;
        reader.header().expect_key(self.id())?;
        expect_segments(&reader, 0, [answer_bytes(leveled, bits)])?;
        // The shape's noise was checked when the query was made.
        let length = read_answer(&self.leveled, reader.segment()?, bits, 0.0)?;
        reader.finish()?;
        pending.answers(vec![length])
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({}, hidden)", self.id())
    }
}
