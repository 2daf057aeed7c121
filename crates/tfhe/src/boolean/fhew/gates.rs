//! Gates on encrypted bits by the two blind rotations.

use crate::boolean::fhew::{AutomorphismBootstrapKey, DigitBootstrapKey, FhewMethod, FhewParams};
use crate::boolean::gates::eighths;
use crate::keys::check_owner;
use crate::{ClientKey, EncryptedBit, Gate, GlweCiphertext, LweCiphertext, SecretKind, SwitchKey, TfheError};
use std::fmt;
use sudare_ring::threads;
use sudare_rlwe::KeyId;

pub(super) enum Accumulator {
    Digits(DigitBootstrapKey),
    Automorphisms(Box<AutomorphismBootstrapKey>),
}

/// What a server needs for gates, and nothing secret. Bits are those of the same parameters' and client's
/// [`crate::ServerKey`].
pub struct FhewKey {
    pub(super) params: FhewParams,
    pub(super) id: KeyId,
    pub(super) switch: SwitchKey,
    pub(super) accumulator: Accumulator,
}

impl FhewKey {
    /// The keys of a client, made in parallel inside a thread pool.
    ///
    /// # Errors
    /// `RlweError::WrongParameters` for a client of another set.
    pub fn generate(params: &FhewParams, client: &ClientKey) -> Result<Self, TfheError> {
        let tfhe = params.tfhe();
        check_owner("the client key", (tfhe.hash(), client.id()), (client.params().hash(), client.id()))?;
        let (gadget, seeds) = (tfhe.bootstrap_gadget(), client.object_seeds()?);
        let accumulator = match params.method() {
            FhewMethod::Digits { base_log } => {
                Accumulator::Digits(DigitBootstrapKey::generate(client.lwe(), client.glwe(), gadget, base_log, &seeds)?)
            }
            FhewMethod::Automorphisms { window } => {
                let key = AutomorphismBootstrapKey::generate(client.lwe(), client.glwe(), gadget, window, &seeds)?;
                Accumulator::Automorphisms(Box::new(key))
            }
        };
        Ok(Self { params: params.clone(), id: client.id(), switch: client.switch_key()?, accumulator })
    }

    /// Its parameters.
    pub fn params(&self) -> &FhewParams {
        &self.params
    }

    /// The client key that it belongs to.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        let accumulator = match &self.accumulator {
            Accumulator::Digits(key) => key.byte_len(),
            Accumulator::Automorphisms(key) => key.byte_len(),
        };
        self.switch.byte_len() + accumulator
    }

    fn check(&self, bit: &EncryptedBit) -> Result<(), TfheError> {
        check_owner("the bit", (self.params.tfhe().hash(), self.id), bit.owner())
    }

    fn wrap(&self, c: LweCiphertext) -> EncryptedBit {
        EncryptedBit::from_parts(c, self.params.tfhe().hash(), self.id)
    }

    /// A gate.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn gate(&self, gate: Gate, a: &EncryptedBit, b: &EncryptedBit) -> Result<EncryptedBit, TfheError> {
        self.check(a)?;
        self.check(b)?;
        let (fa, fb, constant) = gate.linear();
        let (mut sum, mut y) = (a.ciphertext().clone(), b.ciphertext().clone());
        sum.mul_assign(fa);
        y.mul_assign(fb);
        sum.add_assign(&y)?;
        sum.add_plain(eighths(self.params.tfhe().context().q(), constant));
        Ok(self.wrap(self.sign(&sum)?))
    }

    /// Not a; no bootstrap.
    ///
    /// # Errors
    /// As for [`FhewKey::gate`].
    pub fn not(&self, a: &EncryptedBit) -> Result<EncryptedBit, TfheError> {
        self.check(a)?;
        let mut c = a.ciphertext().clone();
        c.neg_assign();
        Ok(self.wrap(c))
    }

    /// Many gates, in parallel inside a thread pool.
    ///
    /// # Errors
    /// As for [`FhewKey::gate`].
    pub fn gates(&self, gates: &[(Gate, &EncryptedBit, &EncryptedBit)]) -> Result<Vec<EncryptedBit>, TfheError> {
        threads::map(gates.len(), |i| self.gate(gates[i].0, gates[i].1, gates[i].2)).into_iter().collect()
    }

    /// +1/8 where the phase is in the first half of the torus, −1/8 in the second.
    fn sign(&self, c: &LweCiphertext) -> Result<LweCiphertext, TfheError> {
        let context = self.params.tfhe().context();
        let (small, two_n) = (self.switch.switch(c)?, 2 * context.degree());
        let test = vec![eighths(context.q(), 1); context.degree()];
        match &self.accumulator {
            Accumulator::Digits(key) => {
                let mut acc = GlweCiphertext::trivial(context, &test)?;
                key.blind_rotate(&mut acc, &small.switch_modulus(two_n, SecretKind::Binary))?;
                acc.extract(0)
            }
            Accumulator::Automorphisms(key) => {
                let (acc, _) = key.blind_rotate(&test, &small.switch_modulus_odd(two_n, SecretKind::Binary))?;
                acc.extract(0)
            }
        }
    }
}

impl fmt::Debug for FhewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FhewKey({}, {:?}, {} bytes)", self.id, self.params.method(), self.byte_len())
    }
}
