//! Large integers in binary (Lauter, Naehrig, Vaikuntanathan; `002`, section 3.1).

use super::layout::cheapest;
use crate::bv::{Params, ParamsLiteral, Plaintext};
use crate::error::PackingError;
use num_bigint::{BigInt, BigUint, Sign};
use sudare_rlwe::security::Security;

const NAME: &str = "large integers";

/// An integer M of up to `bits` bits is Σ m_i·X^i with its bits m_i: at X = 2 it is M again. Sums
/// and products of ciphertexts are sums and products of integers, as long as degrees stay under N
/// and coefficients under t/2.
///
/// A result is a sum of up to `terms` products of up to `factors` integers each, with either
/// sign. That needs N ≥ factors·(bits − 1) + 1 and t > 2·terms·bits^(factors − 1). (The paper
/// gives N/d bits for d multiplications; it is the number of factors, d + 1, that divides.)
///
/// ```
/// use sudare_packings::bv::{Decryptor, Encryptor, Evaluator, SecretKey};
/// use sudare_rlwe::security::Security;
/// use num_bigint::BigInt;
/// use sudare_packings::LargeIntegers;
///
/// # fn main() -> Result<(), sudare_packings::PackingError> {
/// // x·y + z·w for integers of 100 bits.
/// let params = LargeIntegers::parameters(100, 2, 2, Security::Bits128)?.build()?;
/// let integers = LargeIntegers::new(&params, 100, 2, 2)?;
/// let secret = SecretKey::generate(&params)?;
/// let public = secret.public_key()?;
/// let encryptor = Encryptor::new(&public)?;
///
/// let x: BigInt = (BigInt::from(1) << 99) + 12345;
/// let y = BigInt::from(-678);
/// let cx = encryptor.encrypt(&integers.encode(&x)?)?;
/// let cy = encryptor.encrypt(&integers.encode(&y)?)?;
/// let evaluator = Evaluator::new(&params);
/// let sum = evaluator.dot(&[&cx, &cy], &[&cy, &cy])?;
/// assert_eq!(integers.decode(&Decryptor::new(&secret).decrypt(&sum)?), &x * &y + &y * &y);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LargeIntegers {
    params: Params,
    bits: usize,
}

/// Least N and t.
fn least(bits: usize, terms: u64, factors: usize) -> Result<(u128, u128), PackingError> {
    if bits == 0 || terms == 0 || factors == 0 {
        let reason = "integers need at least one bit, and results at least one term and one factor".into();
        return Err(PackingError::Method { method: NAME, reason });
    }
    let bits = bits as u128;
    let power = (1..factors).fold(1u128, |p, _| p.saturating_mul(bits));
    let t = power.saturating_mul(2).saturating_mul(u128::from(terms)).saturating_add(1);
    Ok(((bits - 1).saturating_mul(factors as u128).saturating_add(1), t))
}

impl LargeIntegers {
    /// Integers of `bits` bits whose results are sums of up to `terms` products of up to `factors`.
    ///
    /// # Errors
    /// [`PackingError::DoesNotFit`] if N, t or the longest ciphertext is too small,
    /// [`PackingError::Method`] if a number is zero.
    pub fn new(params: &Params, bits: usize, terms: u64, factors: usize) -> Result<Self, PackingError> {
        let (n, t) = least(bits, terms, factors)?;
        let longest = params.max_length() as u64;
        for (what, needed, available) in [
            ("N", n, params.degree() as u64),
            ("t", t, params.t()),
            ("ciphertext length", factors as u128 + 1, longest),
        ] {
            if needed > u128::from(available) {
                return Err(PackingError::DoesNotFit { packing: NAME, what, needed, available });
            }
        }
        Ok(Self { params: params.clone(), bits })
    }

    /// The cheapest parameters for it.
    ///
    /// # Errors
    /// As [`LargeIntegers::new`], and `RlweError::Parameters`.
    pub fn parameters(
        bits: usize,
        terms: u64,
        factors: usize,
        security: Security,
    ) -> Result<ParamsLiteral, PackingError> {
        cheapest(NAME, least(bits, terms, factors)?, (factors - 1, terms), security)
    }

    /// Packs an integer; the bits of one below zero are −1.
    ///
    /// # Errors
    /// [`PackingError::TooManyBits`].
    pub fn encode(&self, integer: &BigInt) -> Result<Plaintext, PackingError> {
        if integer.bits() > self.bits as u64 {
            return Err(PackingError::TooManyBits { found: integer.bits(), most: self.bits });
        }
        let one = if integer.sign() == Sign::Minus { -1 } else { 1 };
        let bits: Vec<i64> = (0..integer.bits()).map(|i| if integer.magnitude().bit(i) { one } else { 0 }).collect();
        Ok(Plaintext::new(&self.params, &bits)?)
    }

    /// Reads a decrypted result.
    pub fn decode(&self, result: &Plaintext) -> BigInt {
        let t = result.params().t();
        // Positive and negative coefficients apart, carried through limb by limb.
        let sum = |negative: bool| {
            let mut digits = Vec::with_capacity(result.residues().len() / 32 + 3);
            let mut carry = 0u128;
            for chunk in result.residues().chunks(32) {
                for (i, r) in chunk.iter().enumerate() {
                    let size = if *r > t / 2 { t - r } else { *r };
                    // 32 coefficients of up to 2^48, shifted by less than 32: below 2^81.
                    carry += if (*r > t / 2) == negative { u128::from(size) << i } else { 0 };
                }
                digits.push(carry as u32);
                carry >>= 32;
            }
            digits.extend([carry as u32, (carry >> 32) as u32]);
            BigInt::from(BigUint::new(digits))
        };
        sum(false) - sum(true)
    }
}
