//! The two sides: a client key with every secret, a server key with none.

mod parts;
mod public;

pub use public::PublicKey;

use crate::rotation::batch::in_groups;
use crate::rotation::blind::BootstrapKey;
use crate::rotation::table::LookupTable;
use crate::{
    GlweCiphertext, GlweSecretKey, LweCiphertext, LweSecretKey, LweSwitchKey, ModuleSwitchKey, Plaintext, SecretKind,
    SwitchKey, TfheError, TfheParams,
};
use std::fmt;
use std::sync::Arc;
use sudare_ring::random::{Entropy, ObjectSeeds, Purpose, Seed};
use sudare_rlwe::{KeyId, ParamsHash};

const OBJECT: Purpose = Purpose::new("sudare tfhe object");

/// Everything secret: zeroised when dropped, neither cloned nor printed.
///
/// Ciphertexts at rest are LWE ciphertexts of dimension k·N modulo q under [`ClientKey::extracted`];
/// bootstraps switch them to dimension n first.
pub struct ClientKey {
    params: TfheParams,
    id: KeyId,
    glwe: GlweSecretKey,
    extracted: LweSecretKey,
    lwe: LweSecretKey,
    /// Where ciphertexts and published keys get their seeds.
    entropy: Entropy,
}

impl ClientKey {
    /// Draws a key from the operating system's entropy.
    ///
    /// # Errors
    /// `RlweError::Ring` if the system gives none.
    pub fn generate(params: &TfheParams) -> Result<Self, TfheError> {
        Self::from_seed(params, &Seed::from_entropy()?)
    }

    /// The key that a seed stands for in this parameter set; in any other it stands for another. Its
    /// ciphertexts still draw from the operating system.
    ///
    /// # Errors
    /// `RlweError::Ring` if the system gives no entropy.
    pub fn from_seed(params: &TfheParams, seed: &Seed) -> Result<Self, TfheError> {
        let seed = params.hash().bind(seed, "tfhe");
        let glwe = GlweSecretKey::generate(params.context(), &mut seed.derive("sudare tfhe glwe", 0).stream(0));
        let lwe = LweSecretKey::generate(
            params.literal().lwe_dimension,
            SecretKind::Binary,
            &mut seed.derive("sudare tfhe lwe", 0).stream(0),
        );
        let mut id = [0u8; 16];
        seed.derive_mask("sudare tfhe key id", 0).stream(0).fill_bytes(&mut id);
        let extracted = glwe.to_lwe()?;
        Ok(Self { params: params.clone(), id: KeyId(id), glwe, extracted, lwe, entropy: Entropy::system()? })
    }

    /// With seeds from elsewhere: for known answers, and of no use in what is shipped, where
    /// [`Entropy`] is the operating system's alone.
    #[doc(hidden)]
    #[must_use]
    pub fn with_entropy(mut self, entropy: Entropy) -> Self {
        self.entropy = entropy;
        self
    }

    /// Its parameters.
    pub fn params(&self) -> &TfheParams {
        &self.params
    }

    /// Its public name.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The GLWE key, for further keys (packing, circuit bootstrapping).
    pub fn glwe(&self) -> &GlweSecretKey {
        &self.glwe
    }

    /// The LWE key of ciphertexts at rest: the coefficients of the GLWE key.
    pub fn extracted(&self) -> &LweSecretKey {
        &self.extracted
    }

    /// The LWE key of dimension n, under which bootstraps read.
    pub fn lwe(&self) -> &LweSecretKey {
        &self.lwe
    }

    /// Fresh seeds for one published object of this key.
    ///
    /// # Errors
    /// `RlweError::Ring` if the system gives no entropy.
    pub fn object_seeds(&self) -> Result<ObjectSeeds, TfheError> {
        Ok(self.entropy.object(OBJECT)?)
    }

    /// Encrypts a number in `[0, q)` as an LWE ciphertext at rest.
    ///
    /// # Errors
    /// `RlweError::Ring` if the system gives no entropy.
    pub fn encrypt_phase(&self, message: u64) -> Result<LweCiphertext, TfheError> {
        let seeds = self.object_seeds()?;
        let context = self.params.context();
        let (mut masks, mut errors) = (seeds.masks.stream(0), seeds.errors.stream(0));
        Ok(self.extracted.encrypt(context.modulus(), message, context.noise(), &mut masks, &mut errors))
    }

    /// The server's key: bootstrapping and switching keys, made in parallel inside a thread pool.
    ///
    /// # Errors
    /// `RlweError::Ring`.
    pub fn server_key(&self) -> Result<ServerKey, TfheError> {
        let params = &self.params;
        let bootstrap = BootstrapKey::generate(
            &self.lwe,
            &self.glwe,
            params.bootstrap_gadget(),
            params.literal().unroll,
            &self.object_seeds()?,
        )?;
        let switch = self.switch_key()?;
        Ok(ServerKey(Arc::new(Inner { params: params.clone(), id: self.id, bootstrap, switch })))
    }

    /// The key switching key from ciphertexts at rest to dimension n.
    ///
    /// # Errors
    /// `RlweError::Ring`.
    pub fn switch_key(&self) -> Result<SwitchKey, TfheError> {
        let (params, seeds) = (&self.params, self.object_seeds()?);
        let (gadget, noise) = (params.switch_gadget(), params.lwe_noise());
        Ok(match params.module_switch_noise() {
            Some(noise) => SwitchKey::Module(ModuleSwitchKey::generate(&self.glwe, &self.lwe, gadget, noise, &seeds)?),
            None => SwitchKey::Lwe(LweSwitchKey::generate(&self.extracted, &self.lwe, gadget, noise, &seeds)?),
        })
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientKey({}, hidden)", self.id)
    }
}

struct Inner {
    params: TfheParams,
    id: KeyId,
    bootstrap: BootstrapKey,
    switch: SwitchKey,
}

/// What a server needs to compute, and nothing secret. Cloning shares it.
#[derive(Clone)]
pub struct ServerKey(Arc<Inner>);

impl ServerKey {
    /// Its parameters.
    pub fn params(&self) -> &TfheParams {
        &self.0.params
    }

    /// The client key that it belongs to.
    pub fn id(&self) -> KeyId {
        self.0.id
    }

    /// The bootstrapping key.
    pub fn bootstrap_key(&self) -> &BootstrapKey {
        &self.0.bootstrap
    }

    /// The key switching key from ciphertexts at rest to dimension n.
    pub fn switch_key(&self) -> &SwitchKey {
        &self.0.switch
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        self.0.bootstrap.steps().byte_len() + self.0.switch.byte_len()
    }

    /// Bytes that have to be sent: bodies and seeds.
    pub fn seeded_byte_len(&self) -> usize {
        self.0.bootstrap.steps().seeded_byte_len() + self.0.switch.seeded_byte_len()
    }

    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub(crate) fn check(&self, what: &'static str, hash: ParamsHash, id: KeyId) -> Result<(), TfheError> {
        check_owner(what, (self.0.params.hash(), self.0.id), (hash, id))
    }

    /// # Errors
    /// [`TfheError::Parameters`] unless the plaintexts are of this kind.
    pub(crate) fn check_plaintext(&self, bits: bool) -> Result<(), TfheError> {
        check_plaintext(&self.0.params, bits)
    }

    /// Switches a ciphertext at rest to dimension n and rotates the accumulator by its phase:
    /// exponents are multiples of `2^log_tables`.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Modulus`].
    pub fn rotate_by_phase(
        &self,
        acc: &mut GlweCiphertext,
        c: &LweCiphertext,
        log_tables: u32,
    ) -> Result<(), TfheError> {
        self.rotate_by_phases(std::slice::from_mut(acc), &[c], log_tables)
    }

    /// The same of several, which read the key from memory once.
    ///
    /// # Errors
    /// As for [`ServerKey::rotate_by_phase`].
    pub fn rotate_by_phases(
        &self,
        accs: &mut [GlweCiphertext],
        cs: &[&LweCiphertext],
        log_tables: u32,
    ) -> Result<(), TfheError> {
        let two_n = 2 * self.0.params.context().degree();
        let exponents = cs.iter().map(|c| {
            let mut exponents = self.0.switch.switch(c)?.switch_modulus(two_n >> log_tables, SecretKind::Binary);
            exponents.mask.iter_mut().for_each(|a| *a <<= log_tables);
            exponents.body <<= log_tables;
            Ok(exponents)
        });
        self.0.bootstrap.blind_rotate_many(accs, &exponents.collect::<Result<Vec<_>, TfheError>>()?)
    }

    /// The programmable bootstrap of an LWE ciphertext at rest: the table's value at its phase.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Modulus`] for a table or a ciphertext of another ring.
    pub fn bootstrap(&self, c: &LweCiphertext, table: &LookupTable) -> Result<LweCiphertext, TfheError> {
        let mut acc = GlweCiphertext::trivial(self.0.params.context(), table.coefficients())?;
        self.rotate_by_phase(&mut acc, c, table.log_tables())?;
        acc.extract(0)
    }

    /// Programmable bootstraps of several ciphertexts, each with its own table of one: groups of
    /// up to four read the key once, groups run in parallel inside a thread pool.
    ///
    /// # Errors
    /// As for [`ServerKey::bootstrap`]; [`TfheError::Shape`] for unequal numbers or tables of several.
    pub fn bootstrap_many(
        &self,
        cs: &[&LweCiphertext],
        tables: &[&LookupTable],
    ) -> Result<Vec<LweCiphertext>, TfheError> {
        crate::core::context::check_shape("tables", cs.len(), tables.len())?;
        tables.iter().try_for_each(|t| crate::core::context::check_shape("tables in one", 1, t.tables()))?;
        in_groups(cs.len(), |range| {
            let start = |table: &&LookupTable| GlweCiphertext::trivial(self.0.params.context(), table.coefficients());
            let mut accs = tables[range.clone()].iter().map(start).collect::<Result<Vec<_>, _>>()?;
            self.rotate_by_phases(&mut accs, &cs[range], 0)?;
            accs.iter().map(|acc| acc.extract(0)).collect()
        })
    }
}

impl fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerKey({}, {} bytes)", self.0.id, self.byte_len())
    }
}

/// # Errors
/// `RlweError::WrongParameters`, `RlweError::WrongKey`.
pub(crate) fn check_owner(
    what: &'static str,
    expected: (ParamsHash, KeyId),
    found: (ParamsHash, KeyId),
) -> Result<(), TfheError> {
    expected.0.require(what, found.0)?;
    Ok(expected.1.require(what, found.1)?)
}

/// # Errors
/// [`TfheError::Parameters`] unless the plaintexts are bits (or integers).
pub(crate) fn check_plaintext(params: &TfheParams, bits: bool) -> Result<(), TfheError> {
    if (params.literal().plaintext == Plaintext::Bit) == bits {
        return Ok(());
    }
    let reason = if bits {
        "these parameters hold integers, not bits; take a set of gates"
    } else {
        "these parameters hold bits, not integers; take a set of integers"
    };
    Err(TfheError::Parameters { reason: reason.into() })
}
