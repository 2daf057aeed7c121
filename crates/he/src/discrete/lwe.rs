//! Bits of TFHE into tables, and results as bits of TFHE.
//!
//! In: TFHE's LWE ciphertexts are packed into the ring under a secret z of their own ([`sudare_tfhe::exchange`]), and one key switch modulo
//! q_0·p leads from z to the secret of the slots. A bit's phase ±1/8, plus 1/8, is x·q_0/4 already, so that the
//! bootstrap of a table begins there. Out: slots to coefficients, one key switch to TFHE's ring secrets, and the ciphertext splits.
//!
//! Phases have Gaussian errors, of which the bound is [`TAIL`] deviations.

use super::coefficients::{Coefficients, place, turn};
use super::evaluator::Evaluator;
use super::value::{Discrete, check_error};
use crate::circuits::bootstrapping::{BootstrapParams, Errors};
use crate::error::{HeError, parameters};
use std::fmt;
use sudare_ring::{Coeff, Eval, Poly};
use sudare_rlwe::keys::{KeyGenerator, KeySwitchKey, SecretKey};
use sudare_rlwe::noise::{ERROR_VARIANCE, ROUNDING_VARIANCE};
use sudare_rlwe::security::SecretDistribution;
use sudare_rlwe::{self as rlwe, KeyId, ParamsHash, RlweError};
use sudare_tfhe::exchange::{EntryKey, Exchange, ExitKey, LweForm, Parts};
use sudare_tfhe::{ClientKey, EncryptedBit, Packable, Plaintext, TfheParams, TorusLwe};
use zeroize::Zeroizing;

/// 2^16 Gaussians are all within so many deviations with probability 1 − 2^−128.
const TAIL: f64 = 14.1;
/// A bit's phases are odd eighths.
const EIGHTHS: u64 = 8;

/// What both owners of keys between a set for tables and a set of TFHE's bits agree on. Cloning shares it.
#[derive(Clone)]
pub struct LweParams {
    set: BootstrapParams,
    exchange: Exchange,
    /// q_0 and p with a dense secret.
    entry: rlwe::Params,
}

impl LweParams {
    /// Between a set for tables and one of TFHE's for bits, whose ciphertexts go in in a form.
    ///
    /// # Errors
    /// `RlweError::Parameters` for a set without tables; [`HeError::Tfhe`] for a ring that is smaller than TFHE's, or one that is
    /// too small for the security that TFHE's set claims.
    pub fn new(set: &BootstrapParams, tfhe: &TfheParams, form: LweForm) -> Result<Self, HeError> {
        set.layout().exponential()?;
        if tfhe.literal().plaintext != Plaintext::Bit {
            return Err(parameters("TFHE's set holds integers, and tables take bits; take one of its sets of gates"));
        }
        let exchange = Exchange::new(tfhe, form, set.params().log_n())?;
        let gate = set.gate();
        let entry = set.params().rlwe().derived(gate.q().clone(), gate.p().clone(), 1, SecretDistribution::Ternary)?;
        Ok(Self { set: set.clone(), exchange, entry })
    }

    /// The set for tables.
    pub fn set(&self) -> &BootstrapParams {
        &self.set
    }

    /// TFHE's side.
    pub fn exchange(&self) -> &Exchange {
        &self.exchange
    }

    /// q_0 and p with a dense secret.
    pub(super) fn entry(&self) -> &rlwe::Params {
        &self.entry
    }

    /// The name of both sets together.
    pub fn hash(&self) -> ParamsHash {
        ParamsHash::of_all(&[self.set.hash(), self.exchange.hash()])
    }

    /// q_0.
    fn modulus(&self) -> u64 {
        self.entry.prime_at(0)
    }

    /// What packing, the rounding to q_0 and the key switch add to the variance of a bit's phase, as a fraction of the modulus
    /// squared.
    pub fn entry_variance(&self) -> f64 {
        let (exchange, q, n) = (&self.exchange, self.modulus() as f64, self.entry.degree() as f64);
        let ternary = |degree: f64| ROUNDING_VARIANCE * (1.0 + 2.0 / 3.0 * degree);
        let rounded = ternary(exchange.entry().degree() as f64) + ternary(n);
        let p = self.entry.p().primes().map(|p| p as f64).product::<f64>();
        let switched = n * ERROR_VARIANCE * ROUNDING_VARIANCE / (p * p);
        exchange.entry_variance() + switched + rounded / (q * q)
    }
}

/// Keys between a set for tables and TFHE; nothing secret.
pub struct LweKeys {
    pub(super) params: LweParams,
    /// Names of the secrets: that of the slots and TFHE's.
    pub(super) ids: [KeyId; 2],
    pub(super) entry: EntryKey,
    /// From z(X^g), z the secret that is packed under, to that of the slots, modulo q_0·p.
    pub(super) switch: KeySwitchKey,
    /// From s(X^(1/g)).
    pub(super) exit: ExitKey,
}

/// The secret s(X^g), by coefficients.
fn automorphism(s: &[i64], g: u64) -> Zeroizing<Vec<i64>> {
    let n = s.len();
    let mut out = Zeroizing::new(vec![0i64; n]);
    for (i, x) in s.iter().enumerate() {
        let to = (i as u64 * g % (2 * n as u64)) as usize;
        out[to % n] = if to < n { *x } else { -x };
    }
    out
}

impl LweKeys {
    /// Makes the keys, and the secret that is packed under with them, which is forgotten.
    ///
    /// # Errors
    /// `RlweError::WrongParameters` for secrets of other sets; `RlweError::Ring` without entropy.
    pub fn generate(params: &LweParams, secret: &SecretKey, client: &ClientKey) -> Result<Self, HeError> {
        params.set.params().require("the secret key", secret.params())?;
        let (entry, packed) = EntryKey::generate(&params.exchange, client)?;
        let copy = Zeroizing::new(secret.coefficients().to_vec());
        let dense = SecretKey::from_coefficients(&params.entry, secret.id(), copy)?;
        let [g, back] = turn(&params.set);
        let switch = KeyGenerator::new(&dense)?.key_from(&automorphism(&packed, g), 0)?;
        let exit = ExitKey::generate(&params.exchange, client, &automorphism(secret.coefficients(), back))?;
        Ok(Self { params: params.clone(), ids: [secret.id(), client.id()], entry, switch, exit })
    }

    /// What they are for.
    pub fn params(&self) -> &LweParams {
        &self.params
    }

    /// The name of the secret key of the slots.
    pub fn id(&self) -> KeyId {
        self.ids[0]
    }

    /// The name of TFHE's client key.
    pub fn tfhe_id(&self) -> KeyId {
        self.ids[1]
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.entry.byte_len() + self.switch.bytes() + self.exit.byte_len()
    }
}

impl fmt::Debug for LweKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LweKeys(between {} and {}, {} bytes)", self.ids[0], self.ids[1], self.bytes())
    }
}

/// The results of a table as bits of TFHE. One is taken out when it is wanted: all at once would be many times larger.
#[derive(Clone)]
pub struct LweBits {
    parts: Parts,
    degree: usize,
    owner: (ParamsHash, KeyId),
}

impl LweBits {
    /// How many there are: N.
    pub fn len(&self) -> usize {
        self.degree
    }

    /// Whether there are none; there always are.
    pub fn is_empty(&self) -> bool {
        self.degree == 0
    }

    /// Bit i.
    ///
    /// # Errors
    /// `RlweError::TooManyValues` if there is none.
    pub fn get(&self, i: usize) -> Result<EncryptedBit, HeError> {
        if i >= self.degree {
            return Err(HeError::Rlwe(RlweError::TooManyValues { found: i + 1, capacity: self.degree }));
        }
        Ok(EncryptedBit::from_parts(self.parts.extract(place(self.degree, i))?, self.owner.0, self.owner.1))
    }
}

impl fmt::Debug for LweBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LweBits({}, key {})", self.degree, self.owner.1)
    }
}

impl Evaluator {
    /// Up to N bits of TFHE as integers 0 and 1, the rest zero: modulo 4, or modulo 2 where the set has no room for more. Their
    /// phases may have the noise that a MUX leaves.
    ///
    /// # Errors
    /// `RlweError::TooManyValues`; `RlweError::WrongParameters`, `RlweError::WrongKey` for bits or keys of others; `RlweError::Parameters` for keys that
    /// take the switched form; `RlweError::NoBudget` where bits are so noisy that one could be wrong.
    pub fn from_bits(&self, keys: &LweKeys, bits: &[EncryptedBit]) -> Result<Coefficients, HeError> {
        let exchange = &keys.params.exchange;
        for bit in bits {
            let (hash, key) = bit.owner();
            exchange.params().hash().require("a bit", hash)?;
            keys.ids[1].require("a bit", key)?;
        }
        let variance = exchange.input_variance();
        self.packed((keys, LweForm::AtRest), variance, &bits.iter().map(EncryptedBit::ciphertext).collect::<Vec<_>>())
    }

    /// The same of bits ±1/8 in dimension n modulo 2^32, whose phases have a variance as a fraction of the modulus squared: that with
    /// which the LWE key encrypts, or [`Exchange::input_variance`] where a server key has switched them.
    ///
    /// # Errors
    /// As [`Evaluator::from_bits`]; [`HeError::Tfhe`] for another dimension, `RlweError::Parameters` for a variance that is none.
    pub fn from_switched_bits(
        &self,
        keys: &LweKeys,
        bits: &[TorusLwe],
        variance: f64,
    ) -> Result<Coefficients, HeError> {
        self.packed((keys, LweForm::Switched), variance, &bits.iter().collect::<Vec<_>>())
    }

    fn packed<C: Packable>(
        &self,
        (keys, form): (&LweKeys, LweForm),
        variance: f64,
        bits: &[&C],
    ) -> Result<Coefficients, HeError> {
        // In units of 1/4 of the modulus, however often that is taken.
        let deviation = 4.0 * (variance + keys.params.entry_variance()).sqrt();
        let error = TAIL * deviation;
        if variance.is_nan() || variance < 0.0 {
            return Err(parameters(format!("a variance is a number of at least 0, not {variance}")));
        }
        check_error("packing bits", error, 0)?;
        let (params, degree) = (&keys.params, self.params().params().degree());
        self.check_keys(keys)?;
        if params.exchange.form() != form {
            return Err(parameters(format!(
                "the ciphertexts have the form {form:?}, and the keys are for {:?}; make keys for that form",
                params.exchange.form()
            )));
        }
        if bits.len() > degree {
            return Err(HeError::Rlwe(RlweError::TooManyValues { found: bits.len(), capacity: degree }));
        }
        let mut placed = vec![None; degree];
        bits.iter().enumerate().for_each(|(i, bit)| placed[place(degree, i)] = Some(*bit));
        let (q, basis) = (params.modulus(), params.entry.q_at(0));
        let [mut c0, c1] = keys.entry.pack(&placed, q)?;
        // ±1/8 become 0 and 1/4.
        let eighth = (q + EIGHTHS / 2) / EIGHTHS;
        c0.iter_mut().zip(&placed).filter(|(_, bit)| bit.is_some()).for_each(|(c, _)| *c = (*c + eighth) % q);
        let rotated = |words: Vec<u64>| -> Result<Poly<Eval>, HeError> {
            Ok(Poly::<Coeff>::from_words(basis, &words)?.automorphism(turn(self.params())[0])?.into_eval())
        };
        let mut parts = keys.switch.switched([&rotated(c0)?, &rotated(c1)?]);
        let (_, most) = self.params().layout().exponential()?;
        let modulus = if most < 4 { 2 } else { 4 };
        if modulus == 2 {
            for part in &mut parts {
                let copy = part.clone();
                part.add_assign(&copy);
            }
        }
        let packed = Coefficients::from_parts(self.params(), keys.id(), parts, modulus, error)?;
        Ok(Coefficients { errors: Errors::random(error, deviation * deviation), ..packed })
    }

    /// Bits as bits of TFHE, for any number of its gates.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`; `RlweError::Parameters` for integers that are no bits;
    /// `RlweError::OutOfLevels` for bits modulo 2 at the level where tables begin; `RlweError::NoBudget` where errors are larger
    /// than gates take.
    pub fn to_bits(&self, keys: &LweKeys, bits: &Discrete) -> Result<LweBits, HeError> {
        let operation = "bits to TFHE";
        self.check_keys(keys)?;
        self.check(bits)?;
        if !bits.known().is_bits() {
            let (low, high) = bits.range;
            return Err(parameters(format!(
                "integers from {low} to {high} are not bits; make bits of them by a table"
            )));
        }
        let quarters = match bits.modulus {
            2 if bits.level() > self.params().input_level() => Discrete { modulus: 4, ..bits.clone() },
            2 => {
                let needed = self.params().input_level() + 1;
                return Err(RlweError::OutOfLevels { operation, needed, level: bits.level() }.into());
            }
            _ => self.modulo(bits, 4)?,
        };
        let coefficients = self.to_coefficients(&[&quarters])?;
        let (params, degree) = (&keys.params, self.params().params().degree());
        let [coefficients] = &coefficients[..] else {
            return Err(RlweError::Internal { what: "coefficients of one value" }.into());
        };
        let exchange = &params.exchange;
        let error = coefficients.error() / 4.0 + TAIL * exchange.exit_variance().sqrt();
        let limit = TAIL * exchange.largest_variance().sqrt();
        if error.is_nan() || error > limit {
            return Err(HeError::Rlwe(RlweError::NoBudget {
                operation,
                noise: error.log2(),
                limit: limit.log2(),
                level: 0,
            }));
        }
        let q = params.modulus();
        let [_, back] = turn(self.params());
        let [c0, c1] = coefficients.inner.both().map(|c| c.to_coeff().automorphism(back));
        let (c0, c1) = (c0?, c1?);
        let eighth = (q + EIGHTHS / 2) / EIGHTHS;
        let body: Vec<u64> = c0.words().iter().map(|c| (c + q - eighth) % q).collect();
        let parts = keys.exit.split([&body, c1.words()], q)?;
        Ok(LweBits { parts, degree, owner: (exchange.params().hash(), keys.ids[1]) })
    }

    fn check_keys(&self, keys: &LweKeys) -> Result<(), HeError> {
        self.params().hash().require("the keys between both schemes", keys.params.set.hash())?;
        match self.bootstrapper().keys() {
            Some(own) => Ok(own.id().require("the keys between both schemes", keys.id())?),
            None => Err(RlweError::Internal { what: "an evaluator without keys" }.into()),
        }
    }
}
