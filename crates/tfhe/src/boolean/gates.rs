//! Encrypted bits and the gates on them; each gate but NOT bootstraps.

use crate::keys::{check_owner, check_plaintext};
use crate::{ClientKey, LookupTable, LweCiphertext, ServerKey, TfheError};
use std::fmt;
use sudare_rlwe::{KeyId, ParamsHash};

/// An encrypted bit: a phase of +1/8 of the modulus for true, −1/8 for false.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptedBit {
    c: LweCiphertext,
    params: ParamsHash,
    key: KeyId,
}

impl EncryptedBit {
    /// A bit from its parts.
    pub fn from_parts(c: LweCiphertext, params: ParamsHash, key: KeyId) -> Self {
        Self { c, params, key }
    }

    /// The LWE ciphertext.
    pub fn ciphertext(&self) -> &LweCiphertext {
        &self.c
    }

    /// Its parameters' hash and its key's name.
    pub fn owner(&self) -> (ParamsHash, KeyId) {
        (self.params, self.key)
    }
}

impl fmt::Debug for EncryptedBit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncryptedBit(key {})", self.key)
    }
}

/// A gate of two inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Gate {
    And,
    Nand,
    Or,
    Nor,
    Xor,
    Xnor,
    /// a and not b.
    AndNot,
    /// a or not b.
    OrNot,
}

impl Gate {
    /// Every gate.
    pub const ALL: [Self; 8] =
        [Self::And, Self::Nand, Self::Or, Self::Nor, Self::Xor, Self::Xnor, Self::AndNot, Self::OrNot];

    /// The same on plain bits.
    pub const fn plain(self, a: bool, b: bool) -> bool {
        match self {
            Self::And => a & b,
            Self::Nand => !(a & b),
            Self::Or => a | b,
            Self::Nor => !(a | b),
            Self::Xor => a ^ b,
            Self::Xnor => !(a ^ b),
            Self::AndNot => a & !b,
            Self::OrNot => a | !b,
        }
    }

    /// Factors of a, b and the constant in eighths of the modulus; the sum is positive for true.
    pub(super) const fn linear(self) -> (i64, i64, i64) {
        match self {
            Self::And => (1, 1, -1),
            Self::Nand => (-1, -1, 1),
            Self::Or => (1, 1, 1),
            Self::Nor => (-1, -1, -1),
            Self::Xor => (2, 2, 2),
            Self::Xnor => (-2, -2, -2),
            Self::AndNot => (1, -1, -1),
            Self::OrNot => (1, -1, 1),
        }
    }
}

impl ClientKey {
    /// Encrypts a bit.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] if the parameters hold integers; `RlweError::Ring` if the system
    /// gives no entropy.
    pub fn encrypt_bit(&self, bit: bool) -> Result<EncryptedBit, TfheError> {
        check_plaintext(self.params(), true)?;
        let c = self.encrypt_phase(eighth(self.params().context().q(), bit))?;
        Ok(EncryptedBit { c, params: self.params().hash(), key: self.id() })
    }

    /// Decrypts a bit.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn decrypt_bit(&self, bit: &EncryptedBit) -> Result<bool, TfheError> {
        check_owner("the bit", (self.params().hash(), self.id()), bit.owner())?;
        Ok(self.extracted().phase(&bit.c)? <= self.params().context().q() / 2)
    }
}

/// `count/8` of the modulus, rounded.
pub(super) fn eighths(q: u64, count: i64) -> u64 {
    let q = i128::from(q);
    ((q * i128::from(count) + 4).div_euclid(8)).rem_euclid(q) as u64
}

/// The phase of a bit, +1/8 or −1/8 of the modulus: both are public, and a mask chooses between them.
pub(crate) fn eighth(q: u64, bit: bool) -> u64 {
    let [low, high] = [-1, 1].map(|count| eighths(q, count));
    low ^ (u64::from(bit).wrapping_neg() & (low ^ high))
}

impl ServerKey {
    fn check_bit(&self, bit: &EncryptedBit) -> Result<(), TfheError> {
        self.check_plaintext(true)?;
        self.check("the bit", bit.params, bit.key)
    }

    fn wrap(&self, c: LweCiphertext) -> EncryptedBit {
        EncryptedBit { c, params: self.params().hash(), key: self.id() }
    }

    /// The bit that everybody knows.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] if the parameters hold integers.
    pub fn trivial_bit(&self, bit: bool) -> Result<EncryptedBit, TfheError> {
        self.check_plaintext(true)?;
        let context = self.params().context();
        let eighth = eighths(context.q(), if bit { 1 } else { -1 });
        Ok(self.wrap(LweCiphertext::trivial(context.modulus(), context.lwe_dimension(), eighth)))
    }

    /// `fa·a + fb·b + constant/8`.
    fn linear(
        &self,
        (fa, fb, constant): (i64, i64, i64),
        a: &EncryptedBit,
        b: &EncryptedBit,
    ) -> Result<LweCiphertext, TfheError> {
        let mut sum = a.c.clone();
        match (fa, fb) {
            (1, 1) => sum.add_assign(&b.c)?,
            (1, _) => sum.sub_assign(&b.c)?,
            _ => {
                // Both factors are equal.
                sum.add_assign(&b.c)?;
                sum.mul_assign(fa);
            }
        }
        sum.add_plain(eighths(self.params().context().q(), constant));
        Ok(sum)
    }

    /// +1/8 where the phase is in the first half of the torus, −1/8 in the second.
    fn signs(&self, cs: &[LweCiphertext]) -> Result<Vec<LweCiphertext>, TfheError> {
        let context = self.params().context();
        let table = LookupTable::constant(context, eighths(context.q(), 1));
        self.bootstrap_many(&cs.iter().collect::<Vec<_>>(), &vec![&table; cs.len()])
    }

    /// A gate.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn gate(&self, gate: Gate, a: &EncryptedBit, b: &EncryptedBit) -> Result<EncryptedBit, TfheError> {
        Ok(self.gates(&[(gate, a, b)])?.remove(0))
    }

    /// Not a; no bootstrap.
    ///
    /// # Errors
    /// As for [`ServerKey::gate`].
    pub fn not(&self, a: &EncryptedBit) -> Result<EncryptedBit, TfheError> {
        self.check_bit(a)?;
        let mut c = a.c.clone();
        c.neg_assign();
        Ok(self.wrap(c))
    }

    /// `if condition { a } else { b }`: two bootstraps, whose sum is the result.
    ///
    /// # Errors
    /// As for [`ServerKey::gate`].
    pub fn mux(&self, condition: &EncryptedBit, a: &EncryptedBit, b: &EncryptedBit) -> Result<EncryptedBit, TfheError> {
        Ok(self.muxes(&[(condition, a, b)])?.remove(0))
    }

    /// Many of them, side by side and in parallel inside a thread pool.
    ///
    /// # Errors
    /// As for [`ServerKey::gate`].
    pub fn muxes(
        &self,
        choices: &[(&EncryptedBit, &EncryptedBit, &EncryptedBit)],
    ) -> Result<Vec<EncryptedBit>, TfheError> {
        let mut branches = Vec::with_capacity(2 * choices.len());
        for (condition, a, b) in choices {
            [condition, a, b].into_iter().try_for_each(|x| self.check_bit(x))?;
            branches.push(self.linear(Gate::And.linear(), condition, a)?);
            branches.push(self.linear(Gate::AndNot.linear(), b, condition)?);
        }
        let signs = self.signs(&branches)?;
        let outputs = signs.chunks_exact(2).map(|pair| {
            let mut sum = pair[0].clone();
            sum.add_assign(&pair[1])?;
            sum.add_plain(eighths(self.params().context().q(), 1));
            Ok(self.wrap(sum))
        });
        outputs.collect()
    }

    /// Many gates, side by side and in parallel inside a thread pool.
    ///
    /// # Errors
    /// As for [`ServerKey::gate`].
    pub fn gates(&self, gates: &[(Gate, &EncryptedBit, &EncryptedBit)]) -> Result<Vec<EncryptedBit>, TfheError> {
        for (_, a, b) in gates {
            self.check_bit(a)?;
            self.check_bit(b)?;
        }
        let sums = gates.iter().map(|(gate, a, b)| self.linear(gate.linear(), a, b));
        let signs = self.signs(&sums.collect::<Result<Vec<_>, _>>()?)?;
        Ok(signs.into_iter().map(|c| self.wrap(c)).collect())
    }
}
