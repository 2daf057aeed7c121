//! The client's side.

use super::params::{Params, Set};
use crate::answer_bits::{answer_bytes, encrypt, number, read_answer};
use crate::message::{AnswerHead, Head, Pending, expect_segments};
use crate::panel::PanelHash;
use crate::{Answer, GenomeError, Protocol, Question};
use sudare_rlwe::KeyId;
use sudare_rlwe::wire::packing::{read_words, width};
use sudare_tfhe::leveled::{LeveledClient, LeveledLwe, LeveledParams};
use sudare_tfhe::wire::{tfhe_client_key_from_bytes, tfhe_client_key_to_bytes, write_tfhe_server_key};
use sudare_tfhe::{ClientKey, LweCiphertext};
use zeroize::Zeroizing;

/// Holds the secret key.
#[derive(Debug)]
pub struct Client {
    params: Params,
    key: ClientKey,
    leveled: LeveledClient,
}

impl Client {
    /// A client with a new key.
    ///
    /// # Errors
    /// [`GenomeError::Tfhe`] if the system gives no entropy.
    pub fn generate(set: &Set) -> Result<Self, GenomeError> {
        let params = set.build()?;
        let key = ClientKey::generate(&params.tfhe)?;
        Self::with_key(params, key)
    }

    fn with_key(params: Params, key: ClientKey) -> Result<Self, GenomeError> {
        let leveled = LeveledClient::sharing(&params.leveled, &key)?;
        Ok(Self { params, key, leveled })
    }

    /// A client from the bytes of its secret key.
    ///
    /// # Errors
    /// [`GenomeError::Wire`].
    pub fn from_secret_bytes(set: &Set, bytes: &[u8]) -> Result<Self, GenomeError> {
        let params = set.build()?;
        let key = tfhe_client_key_from_bytes(&params.tfhe, bytes)?;
        Self::with_key(params, key)
    }

    /// The bytes of its secret key: they decrypt every answer and every query.
    ///
    /// # Errors
    /// [`GenomeError::Wire`].
    pub fn secret_bytes(&self) -> Result<Zeroizing<Vec<u8>>, GenomeError> {
        Ok(tfhe_client_key_to_bytes(&self.key)?)
    }

    /// The keys that servers need for circuit-private answers alone; made in parallel inside a thread pool.
    ///
    /// # Errors
    /// [`GenomeError::Tfhe`].
    pub fn evaluation_keys(&self) -> Result<Vec<u8>, GenomeError> {
        let mut out = Vec::new();
        write_tfhe_server_key(&self.key.server_key()?, &mut out)?;
        Ok(out)
    }

    /// The key's public name.
    pub fn id(&self) -> KeyId {
        self.key.id()
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Encrypts a question for a panel; `private` asks for a circuit-private answer.
    ///
    /// # Errors
    /// [`GenomeError::Failure`], [`GenomeError::Tfhe`].
    pub fn query(
        &self,
        panel: PanelHash,
        question: &Question,
        private: bool,
    ) -> Result<(Vec<u8>, Pending), GenomeError> {
        let shape = question.shape();
        self.params.check(shape)?;
        let head = Head::of(Protocol::Trie, panel, std::slice::from_ref(question), private)?;
        let (which, symbols) = (question.which(), question.symbols());
        let bits = Zeroizing::new(
            symbols.iter().copied().chain((0..shape.start_bits()).map(|j| which >> j & 1 == 1)).collect::<Vec<_>>(),
        );
        let segments = encrypt(&self.leveled, &bits)?;
        let query = head.write((self.params.leveled.hash(), self.id()), &segments)?;
        let pending = Pending::new(head, &query, std::slice::from_ref(question));
        Ok((query, pending))
    }

    /// Decrypts an answer.
    ///
    /// # Errors
    /// [`GenomeError::WrongQuery`], [`GenomeError::WrongPanel`], [`GenomeError::WrongProtocol`],
    /// [`GenomeError::Nonsense`], [`GenomeError::Wire`], [`GenomeError::Tfhe`].
    pub fn answer(&self, pending: &Pending, answer: &[u8]) -> Result<Vec<Answer>, GenomeError> {
        pending.head.protocol.require(Protocol::Trie)?;
        let shape = pending.head.shape();
        let bits = shape.answer_bits() as usize;
        let mut reader = AnswerHead::read(answer, pending)?;
        let leveled = &self.params.leveled;
        reader.header().expect_params(leveled.hash())?;
        reader.header().expect_key(self.id())?;
        let length = match pending.head.private {
            true => bits as u64 * single_bytes(leveled),
            false => answer_bytes(leveled, bits),
        };
        expect_segments(&reader, 0, [length])?;
        let variance = self.params.variance(shape);
        let segment = reader.segment()?;
        let found = match pending.head.private {
            true => self.read_singles(segment, variance)?,
            false => read_answer(&self.leveled, segment, bits, variance)?,
        };
        reader.finish()?;
        pending.answers(vec![found])
    }

    /// The number in the bits of a circuit-private answer, each a ciphertext of its own.
    fn read_singles(&self, bytes: &[u8], variance: f64) -> Result<usize, GenomeError> {
        let (context, owner) = (self.params.leveled.context(), (self.params.leveled.hash(), Some(self.id())));
        let words = read_words(bytes, context.q(), 0)?;
        let each = words.chunks_exact(context.lwe_dimension() + 1).map(|c| {
            let c = LweCiphertext::from_words(context.modulus(), c.to_vec())?;
            self.leveled.decrypt_lwe(&LeveledLwe::from_parts(c, variance, owner))
        });
        Ok(number(&each.collect::<Result<Vec<_>, _>>()?))
    }
}

/// Bytes of a bit of a circuit-private answer.
fn single_bytes(params: &LeveledParams) -> u64 {
    ((params.context().lwe_dimension() + 1) * width(params.context().q())) as u64
}
