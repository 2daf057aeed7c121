//! The client's side of leveled mode.

use crate::keys::check_owner;
use crate::leveled::ciphertext::{LeveledGlwe, LeveledLwe, Owner, Selector, SelectorNoise};
use crate::leveled::{LeveledParams, PackedTable, TableLayout};
use crate::noise::variance;
use crate::{ClientKey, GgswCiphertext, GlweSecretKey, LweSecretKey, TfheError};
use std::fmt;
use sudare_ring::random::{Entropy, MaskSeed, ObjectSeeds, Purpose, Seed};
use sudare_ring::threads;
use sudare_rlwe::KeyId;
use zeroize::Zeroizing;

const OBJECT: Purpose = Purpose::new("sudare leveled object");

/// Everything secret: zeroised when dropped, neither cloned nor printed.
pub struct LeveledClient {
    params: LeveledParams,
    id: KeyId,
    glwe: GlweSecretKey,
    extracted: LweSecretKey,
    entropy: Entropy,
}

impl LeveledClient {
    /// Draws a key from the operating system's entropy.
    ///
    /// # Errors
    /// `RlweError::Ring` if the system gives none.
    pub fn generate(params: &LeveledParams) -> Result<Self, TfheError> {
        Self::from_seed(params, &Seed::from_entropy()?)
    }

    /// The key that a seed stands for in this parameter set; in any other it stands for another. Its
    /// ciphertexts still draw from the operating system.
    ///
    /// # Errors
    /// `RlweError::Ring` if the system gives no entropy.
    pub fn from_seed(params: &LeveledParams, seed: &Seed) -> Result<Self, TfheError> {
        let seed = params.hash().bind(seed, "leveled");
        let glwe = GlweSecretKey::generate(params.context(), &mut seed.derive("sudare leveled glwe", 0).stream(0));
        let mut id = [0u8; 16];
        seed.derive_mask("sudare leveled key id", 0).stream(0).fill_bytes(&mut id);
        Self::new(params, glwe, KeyId(id))
    }

    /// The client of a leveled set that shares ring and key with a bootstrapping one, say that of a
    /// circuit bootstrapping set.
    ///
    /// # Errors
    /// [`TfheError::Modulus`], [`TfheError::Shape`] for another ring; `RlweError::Ring` if the system
    /// gives no entropy.
    pub fn sharing(params: &LeveledParams, client: &ClientKey) -> Result<Self, TfheError> {
        params.context().check(client.params().context())?;
        let s = Zeroizing::new(client.glwe().coefficients().to_vec());
        Self::new(params, GlweSecretKey::from_coefficients(params.context(), s)?, client.id())
    }

    fn new(params: &LeveledParams, glwe: GlweSecretKey, id: KeyId) -> Result<Self, TfheError> {
        let extracted = glwe.to_lwe()?;
        Ok(Self { params: params.clone(), id, glwe, extracted, entropy: Entropy::system()? })
    }

    /// Its parameters.
    pub fn params(&self) -> &LeveledParams {
        &self.params
    }

    /// Its public name.
    pub fn id(&self) -> KeyId {
        self.id
    }

    fn owner(&self) -> Owner {
        (self.params.hash(), Some(self.id))
    }

    /// Encrypts messages, one a coefficient from the first on.
    ///
    /// # Errors
    /// [`TfheError::Message`], [`TfheError::Shape`] for more than N of them; `RlweError::Ring` if the
    /// system gives no entropy.
    pub fn encrypt(&self, messages: &[u64]) -> Result<LeveledGlwe, TfheError> {
        Ok(self.encrypt_messages(messages)?.0)
    }

    /// The same with the seed of its masks.
    pub(super) fn encrypt_messages(&self, messages: &[u64]) -> Result<(LeveledGlwe, MaskSeed), TfheError> {
        let n = self.params.context().degree();
        if messages.len() > n {
            return Err(TfheError::Shape { what: "messages", expected: n, found: messages.len() });
        }
        let mut phases = Zeroizing::new(vec![0u64; n]);
        for (phase, m) in phases.iter_mut().zip(messages) {
            *phase = self.params.encode(*m)?;
        }
        let seeds = self.fresh()?;
        Ok((self.encrypt_phases(&phases, &seeds)?, seeds.masks))
    }

    fn encrypt_phases(&self, phases: &[u64], seeds: &ObjectSeeds) -> Result<LeveledGlwe, TfheError> {
        let c = self.glwe.encrypt(phases, &mut seeds.masks.stream(0), &mut seeds.errors.stream(0))?;
        let variance = variance::glwe_fresh(self.params.context());
        Ok(LeveledGlwe { c, variance, owner: self.owner() })
    }

    /// Decrypts the first `count` coefficients.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, [`TfheError::Shape`] for more than N.
    pub fn decrypt(&self, c: &LeveledGlwe, count: usize) -> Result<Vec<u64>, TfheError> {
        self.check(c.owner)?;
        let n = self.params.context().degree();
        if count > n {
            return Err(TfheError::Shape { what: "coefficients", expected: n, found: count });
        }
        Ok(self.glwe.phase(&c.c)?[..count].iter().map(|phase| self.params.decode(*phase)).collect())
    }

    /// Decrypts an extracted coefficient.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn decrypt_lwe(&self, c: &LeveledLwe) -> Result<u64, TfheError> {
        self.check(c.owner)?;
        Ok(self.params.decode(self.extracted.phase(&c.c)?))
    }

    /// Mean square of the noise of the first coefficients, as a fraction of q²: for tests of bounds alone,
    /// since a noise that leaves the client gives its key away.
    ///
    /// # Errors
    /// [`TfheError::Modulus`], [`TfheError::Shape`] for a ciphertext of another ring, [`TfheError::Message`] for a message out of
    /// range.
    #[doc(hidden)]
    pub fn noise_for_tests(&self, c: &LeveledGlwe, messages: &[u64]) -> Result<f64, TfheError> {
        let (phase, q) = (self.glwe.phase(&c.c)?, self.params.context().modulus());
        let mut sum = 0.0;
        for (phase, m) in phase.iter().zip(messages) {
            sum += (q.center(q.sub(*phase, self.params.encode(*m)?)) as f64 / q.value() as f64).powi(2);
        }
        Ok(sum / messages.len().max(1) as f64)
    }

    fn check(&self, owner: Owner) -> Result<(), TfheError> {
        check_owner("the ciphertext", (self.params.hash(), self.id), (owner.0, owner.1.unwrap_or(self.id)))
    }

    /// Encrypts a bit that selects.
    ///
    /// # Errors
    /// `RlweError::Ring` if the system gives no entropy.
    pub fn encrypt_selector(&self, bit: bool) -> Result<Selector, TfheError> {
        self.encrypt_selector_from(bit, &self.fresh()?)
    }

    /// Fresh seeds for one object.
    pub(super) fn fresh(&self) -> Result<ObjectSeeds, TfheError> {
        Ok(self.entropy.object(OBJECT)?)
    }

    fn encrypt_selector_from(&self, bit: bool, seeds: &ObjectSeeds) -> Result<Selector, TfheError> {
        let ggsw = self.encrypt_ggsw(bit, seeds)?;
        Ok(Selector::from_parts(ggsw, SelectorNoise::fresh(&self.params), (self.params.hash(), self.id)))
    }

    pub(super) fn encrypt_ggsw(&self, bit: bool, seeds: &ObjectSeeds) -> Result<GgswCiphertext, TfheError> {
        GgswCiphertext::encrypt(&self.glwe, i64::from(bit), self.params.gadget(), seeds)
    }

    /// Encrypts the low `bits` bits of an index, least significant first; in parallel inside a thread pool.
    ///
    /// # Errors
    /// [`TfheError::Message`] for an index with more bits; `RlweError::Ring` if the system gives no
    /// entropy.
    pub fn encrypt_index(&self, index: u64, bits: u32) -> Result<Vec<Selector>, TfheError> {
        if bits < 64 && index >> bits != 0 {
            return Err(TfheError::Message { value: index, space: 1 << bits });
        }
        let batch = self.entropy.batch(OBJECT, bits as usize)?;
        let one = |i: usize| self.encrypt_selector_from(index >> i.min(63) & 1 == 1, &batch.seeds(i));
        threads::map(bits as usize, one).into_iter().collect()
    }

    /// Encrypts a table whose entries are equally many messages, in parallel inside a thread pool.
    ///
    /// # Errors
    /// As for [`PackedTable::plain`]; `RlweError::Ring` if the system gives no entropy.
    pub fn encrypt_table(&self, entries: &[Vec<u64>]) -> Result<PackedTable, TfheError> {
        let layout = TableLayout::new(&self.params, entries.len(), entries.first().map_or(0, Vec::len))?;
        let leaves = layout.phases(&self.params, entries)?;
        let batch = self.entropy.batch(OBJECT, leaves.len())?;
        let leaves = threads::map(leaves.len(), |i| self.encrypt_phases(&leaves[i], &batch.seeds(i)));
        PackedTable::encrypted(&self.params, layout, leaves.into_iter().collect::<Result<_, _>>()?)
    }
}

impl fmt::Debug for LeveledClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeveledClient({}, hidden)", self.id)
    }
}
