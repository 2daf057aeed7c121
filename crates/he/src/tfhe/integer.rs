//! Small encrypted integers: a message, carry bits above it, and tables looked up by bootstraps.

use super::keys::{check_owner, check_plaintext};
use super::table::{LookupTable, decode, encode, table_steps};
use super::{ClientKey, GlweCiphertext, LweCiphertext, Plaintext, ServerKey, TfheError};
use crate::keys::KeyId;
use crate::params::ParamsHash;
use std::fmt;

/// An encrypted number of message and carry bits. It knows the largest value that it can hold and how
/// much noise it can have, so that an operation that could fail is refused.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptedInt {
    c: LweCiphertext,
    params: ParamsHash,
    key: KeyId,
    /// Largest value.
    largest: u64,
    /// Noise in units of a bootstrap's output, as if every output were the same one.
    noise: u64,
}

impl EncryptedInt {
    /// A number from its parts.
    pub fn from_parts(c: LweCiphertext, owner: (ParamsHash, KeyId), largest: u64, noise: u64) -> Self {
        Self { c, params: owner.0, key: owner.1, largest, noise }
    }

    /// The LWE ciphertext.
    pub fn ciphertext(&self) -> &LweCiphertext {
        &self.c
    }

    /// Its parameters' hash and its key's name.
    pub fn owner(&self) -> (ParamsHash, KeyId) {
        (self.params, self.key)
    }

    /// The largest value that it can hold: by its type and the operations, never by its value.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Its noise's deviation in units of a bootstrap's output (worst case).
    pub fn noise(&self) -> u64 {
        self.noise
    }
}

impl fmt::Debug for EncryptedInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncryptedInt(≤ {}, noise {}, key {})", self.largest, self.noise, self.key)
    }
}

impl ClientKey {
    /// Encrypts a message: a number below `2^message_bits`, with its carry bits free. The range that
    /// the ciphertext states is that of every message.
    ///
    /// # Errors
    /// [`TfheError::Message`] for a number that needs carry bits, which
    /// [`ClientKey::encrypt_int_with_carry`] takes; [`TfheError::Parameters`] if the parameters hold
    /// bits; [`TfheError::Ring`] if the system gives no entropy.
    pub fn encrypt_int(&self, value: u64) -> Result<EncryptedInt, TfheError> {
        self.encrypt_below(message_space(self.params().literal().plaintext), value)
    }

    /// Encrypts a number that may fill message and carry. The range that the ciphertext states is
    /// the whole space, whatever the number.
    ///
    /// # Errors
    /// As for [`ClientKey::encrypt_int`]; [`TfheError::Message`] for a number that does not fit the
    /// space.
    pub fn encrypt_int_with_carry(&self, value: u64) -> Result<EncryptedInt, TfheError> {
        self.encrypt_below(self.params().space(), value)
    }

    fn encrypt_below(&self, space: u64, value: u64) -> Result<EncryptedInt, TfheError> {
        check_plaintext(self.params(), false)?;
        if value >= space {
            return Err(TfheError::Message { value, space });
        }
        let owner = (self.params().hash(), self.id());
        Ok(EncryptedInt::from_parts(self.encrypt_phase(encode(self.params(), value))?, owner, space - 1, 1))
    }

    /// Decrypts a number of message and carry.
    ///
    /// # Errors
    /// [`TfheError::WrongParameters`], [`TfheError::WrongKey`].
    pub fn decrypt_int(&self, x: &EncryptedInt) -> Result<u64, TfheError> {
        check_owner("the integer", (self.params().hash(), self.id()), x.owner())?;
        Ok(decode(self.params(), self.extracted().phase(&x.c)?) % self.params().space())
    }
}

/// Values of the message alone.
fn message_space(plaintext: Plaintext) -> u64 {
    match plaintext {
        Plaintext::Bit => 2,
        Plaintext::Integer { message_bits, .. } => 1 << message_bits,
    }
}

impl ServerKey {
    /// Values of the message alone.
    pub fn message_space(&self) -> u64 {
        message_space(self.params().literal().plaintext)
    }

    fn check_int(&self, x: &EncryptedInt) -> Result<(), TfheError> {
        self.check_plaintext(false)?;
        self.check("the integer", x.params, x.key)
    }

    fn wrap_int(&self, c: LweCiphertext, largest: u64, noise: u64) -> EncryptedInt {
        EncryptedInt::from_parts(c, (self.params().hash(), self.id()), largest, noise)
    }

    /// Largest noise that a bootstrap takes, in units of an output's deviation.
    pub fn largest_noise(&self) -> u64 {
        self.params().literal().noise_factor.isqrt()
    }

    fn check_room(&self, operation: &'static str, largest: u64, noise: u64) -> Result<(), TfheError> {
        let space = self.params().space();
        if largest >= space {
            return Err(TfheError::CarrySpace { operation, found: largest, space });
        }
        self.check_noise(operation, noise)
    }

    fn check_noise(&self, operation: &'static str, noise: u64) -> Result<(), TfheError> {
        let allowed = self.largest_noise();
        if noise > allowed {
            return Err(TfheError::NoiseBudget { operation, found: noise, allowed });
        }
        Ok(())
    }

    /// The number that everybody knows.
    ///
    /// # Errors
    /// [`TfheError::Message`], [`TfheError::Parameters`] if the parameters hold bits.
    pub fn trivial_int(&self, value: u64) -> Result<EncryptedInt, TfheError> {
        self.check_plaintext(false)?;
        let (context, space) = (self.params().context(), self.params().space());
        if value >= space {
            return Err(TfheError::Message { value, space });
        }
        let c = LweCiphertext::trivial(context.modulus(), context.lwe_dimension(), encode(self.params(), value));
        Ok(self.wrap_int(c, value, 0))
    }

    /// a + b, without a bootstrap.
    ///
    /// # Errors
    /// [`TfheError::CarrySpace`], [`TfheError::NoiseBudget`], [`TfheError::WrongParameters`],
    /// [`TfheError::WrongKey`].
    pub fn add_int(&self, a: &EncryptedInt, b: &EncryptedInt) -> Result<EncryptedInt, TfheError> {
        self.check_int(a)?;
        self.check_int(b)?;
        let (largest, noise) = (a.largest.saturating_add(b.largest), a.noise.saturating_add(b.noise));
        self.check_room("addition", largest, noise)?;
        let mut c = a.c.clone();
        c.add_assign(&b.c)?;
        Ok(self.wrap_int(c, largest, noise))
    }

    /// a + value for a public value, without a bootstrap.
    ///
    /// # Errors
    /// As for [`ServerKey::add_int`].
    pub fn add_plain_int(&self, a: &EncryptedInt, value: u64) -> Result<EncryptedInt, TfheError> {
        self.check_int(a)?;
        let largest = a.largest.saturating_add(value);
        self.check_room("addition", largest, a.noise)?;
        let mut c = a.c.clone();
        c.add_plain(encode(self.params(), value));
        Ok(self.wrap_int(c, largest, a.noise))
    }

    /// value − a for a public value that is at least a's largest, without a bootstrap.
    ///
    /// # Errors
    /// As for [`ServerKey::add_int`].
    pub fn sub_from_plain_int(&self, value: u64, a: &EncryptedInt) -> Result<EncryptedInt, TfheError> {
        self.check_int(a)?;
        if value < a.largest {
            let space = self.params().space();
            return Err(TfheError::CarrySpace { operation: "subtraction", found: a.largest, space });
        }
        self.check_room("subtraction", value, a.noise)?;
        let mut c = a.c.clone();
        c.neg_assign();
        c.add_plain(encode(self.params(), value));
        Ok(self.wrap_int(c, value, a.noise))
    }

    /// factor·a for a public factor, without a bootstrap.
    ///
    /// # Errors
    /// As for [`ServerKey::add_int`].
    pub fn mul_plain_int(&self, a: &EncryptedInt, factor: u64) -> Result<EncryptedInt, TfheError> {
        self.check_int(a)?;
        let (largest, noise) = (a.largest.saturating_mul(factor), a.noise.saturating_mul(factor));
        self.check_room("multiplication", largest, noise)?;
        let mut c = a.c.clone();
        c.mul_assign(factor as i64);
        Ok(self.wrap_int(c, largest, noise))
    }

    /// table(a), by one bootstrap.
    ///
    /// # Errors
    /// [`TfheError::NoiseBudget`], [`TfheError::WrongParameters`], [`TfheError::WrongKey`],
    /// [`TfheError::Shape`] for a table of several.
    pub fn lookup(&self, a: &EncryptedInt, table: &LookupTable) -> Result<EncryptedInt, TfheError> {
        super::context::check_shape("tables", 1, table.tables())?;
        self.check_int(a)?;
        table.check_messages(self.params().space(), a.largest)?;
        self.check_noise("lookup", a.noise)?;
        Ok(self.wrap_int(self.bootstrap(&a.c, table)?, table.largest(0), 1))
    }

    /// table(a, b) for two messages, by one bootstrap: looks up `a·message_space + b`.
    ///
    /// # Errors
    /// As for [`ServerKey::lookup`] and [`ServerKey::add_int`].
    pub fn lookup2(&self, a: &EncryptedInt, b: &EncryptedInt, table: &LookupTable) -> Result<EncryptedInt, TfheError> {
        self.lookup(&self.add_int(&self.mul_plain_int(a, self.message_space())?, b)?, table)
    }

    /// Several interleaved tables of a by one blind rotation; a's values must be below the tables'
    /// length. The number is multiplied by the number of tables (rounded up to a power of two) first,
    /// noise included; results have a bootstrap's noise.
    ///
    /// Source: Chillotti, Ligier, Orfila and Tap, 2021/729, section 3.2 (PBSmanyLUT).
    ///
    /// # Errors
    /// As for [`ServerKey::lookup`]; [`TfheError::CarrySpace`] if a can be larger than the tables.
    pub fn lookup_many(&self, a: &EncryptedInt, tables: &LookupTable) -> Result<Vec<EncryptedInt>, TfheError> {
        self.check_int(a)?;
        let log = tables.log_tables();
        self.check_noise("lookup", a.noise << log)?;
        tables.check_messages(self.params().space(), a.largest)?;
        let mut c = a.c.clone();
        c.mul_assign(1 << log);
        let mut acc = GlweCiphertext::trivial(self.params().context(), tables.coefficients())?;
        self.rotate_by_phase(&mut acc, &c, log)?;
        (0..tables.tables()).map(|t| Ok(self.wrap_int(acc.extract(t)?, tables.largest(t), 1))).collect()
    }

    /// Several tables of the whole space by one blind rotation, each a small public polynomial times
    /// its result; the noise grows by the norm of the table's differences, and by what
    /// the coefficients' errors have in common.
    ///
    /// Source: Carpov, Izabachène and Mollimard, 2018/622 (multi-value bootstrapping):
    /// `2·F = (1 + X + … + X^(N−1)) · (1 − X)·F`, and (1 − X)·F has few terms.
    ///
    /// # Errors
    /// As for [`ServerKey::lookup`]; [`TfheError::Shape`], [`TfheError::Message`] for tables that are
    /// not of the whole space.
    pub fn lookup_multi(&self, a: &EncryptedInt, tables: &[Vec<u64>]) -> Result<Vec<EncryptedInt>, TfheError> {
        self.check_int(a)?;
        self.check_noise("lookup", a.noise)?;
        let (context, space) = (self.params().context(), self.params().space());
        for table in tables {
            super::context::check_shape("table entries", space as usize, table.len())?;
            if let Some(value) = table.iter().find(|x| **x >= space) {
                return Err(TfheError::Message { value: *value, space });
            }
        }
        let (n, q) = (context.degree(), context.modulus());
        // One unit over two, as an element of the field.
        let half_unit = q.mul(encode(self.params(), 1), q.value().div_ceil(2));
        let mut acc = GlweCiphertext::trivial(context, &vec![half_unit; n])?;
        self.rotate_by_phase(&mut acc, &a.c, 0)?;
        let outputs = tables.iter().map(|table| {
            let steps = table_steps(n, table);
            let mut sum = LweCiphertext::trivial(q, context.lwe_dimension(), 0);
            for (at, step) in &steps {
                // Coefficient 0 of X^at·acc is coefficient −at of acc.
                let mut term = acc.extract((n - at) % n)?;
                term.mul_assign(if *at == 0 { *step } else { -step });
                sum.add_assign(&term)?;
            }
            // What the coefficients have in common may add to the norm, and is not counted where it takes off.
            let norm = steps.iter().map(|(_, step)| (step * step) as u64).sum::<u64>();
            let ratio = self.params().rotation_sum_variance(&steps) / self.params().output_variance();
            let noise = (norm as f64).max(ratio - 1e-9).sqrt().ceil() as u64;
            let largest = table.iter().copied().max().unwrap_or(0);
            Ok(self.wrap_int(sum, largest, noise))
        });
        outputs.collect()
    }

    /// Lookups of many numbers, side by side and in parallel inside a thread pool.
    ///
    /// # Errors
    /// As for [`ServerKey::lookup`].
    pub fn lookups(&self, items: &[(&EncryptedInt, &LookupTable)]) -> Result<Vec<EncryptedInt>, TfheError> {
        for (a, table) in items {
            self.check_int(a)?;
            table.check_messages(self.params().space(), a.largest)?;
            self.check_noise("lookup", a.noise)?;
        }
        let (cs, tables): (Vec<_>, Vec<_>) = items.iter().map(|(a, table)| (&a.c, *table)).unzip();
        let out = self.bootstrap_many(&cs, &tables)?;
        Ok(out.into_iter().zip(&tables).map(|(c, table)| self.wrap_int(c, table.largest(0), 1)).collect())
    }
}
