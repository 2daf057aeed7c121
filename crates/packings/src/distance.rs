//! Distances of encrypted vectors (after Yasuda et al.; `002`, section 3.2).

use super::entries::Entries;
use super::inner::InnerProduct;
use super::layout::Layout;
use super::{LargeInnerProduct, require_count};
use crate::bv::{Ciphertext, Encryptor, Evaluator, Params, ParamsLiteral, Plaintext};
use crate::error::PackingError;
use sudare_expr::Operand;
use sudare_rlwe::security::Security;

const HAMMING: &str = "Hamming distance";
const EUCLID: &str = "Euclidean distance";

/// Products that a distance is as large as: twice one, and two sums that are smaller.
pub(super) const TERMS: u64 = 4;

/// Hamming distances of binary vectors: Σ a + Σ b − 2⟨A, B⟩, where the sums are products with the
/// plaintext vector of ones. One ciphertext for each vector, one multiplication.
///
/// ```
/// use sudare_packings::bv::{Decryptor, Encryptor, Evaluator, SecretKey};
/// use sudare_rlwe::security::Security;
/// use sudare_expr::Operand;
/// use sudare_packings::HammingDistance;
///
/// # fn main() -> Result<(), sudare_packings::PackingError> {
/// let params = HammingDistance::parameters(5, Security::Bits128)?.build()?;
/// let hamming = HammingDistance::new(&params, 5)?;
/// let secret = SecretKey::generate(&params)?;
/// let public = secret.public_key()?;
/// let encryptor = Encryptor::new(&public)?;
///
/// let x = hamming.encrypt(&encryptor, Operand::Left, &[1, 0, 1, 1, 0])?;
/// let y = hamming.encrypt(&encryptor, Operand::Right, &[1, 1, 0, 1, 0])?;
/// let distance = hamming.distance(&Evaluator::new(&params), &x, &y)?;
/// assert_eq!(hamming.decode(&Decryptor::new(&secret).decrypt(&distance)?), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HammingDistance {
    inner: InnerProduct,
    /// pm^(1) and pm^(2) of ones.
    ones: [Plaintext; 2],
}

impl HammingDistance {
    /// Distances of vectors of `length` bits. Needs N ≥ length and t > length.
    ///
    /// # Errors
    /// As [`InnerProduct::new`].
    pub fn new(params: &Params, length: usize) -> Result<Self, PackingError> {
        let inner = InnerProduct::new(params, length, Entries::BINARY)?;
        let ones = vec![1; length];
        let ones = [inner.encode(Operand::Left, &ones)?, inner.encode(Operand::Right, &ones)?];
        Ok(Self { inner, ones })
    }

    /// The cheapest parameters for it.
    ///
    /// # Errors
    /// As [`HammingDistance::new`], and `RlweError::Parameters`.
    pub fn parameters(length: usize, security: Security) -> Result<ParamsLiteral, PackingError> {
        InnerProduct::layout(length, Entries::BINARY)?.parameters_of_sum(HAMMING, None, TERMS, security)
    }

    /// Encrypts a vector as the left or the right one.
    ///
    /// # Errors
    /// [`PackingError::Count`], [`PackingError::OutOfRange`] for what is not 0 or 1.
    pub fn encrypt(
        &self,
        encryptor: &Encryptor<'_>,
        operand: Operand,
        bits: &[i128],
    ) -> Result<Ciphertext, PackingError> {
        Ok(encryptor.encrypt(&self.inner.encode(operand, bits)?)?)
    }

    /// The encrypted distance.
    ///
    /// # Errors
    /// As [`Evaluator::mul`] and [`Evaluator::add`].
    pub fn distance(
        &self,
        evaluator: &Evaluator,
        left: &Ciphertext,
        right: &Ciphertext,
    ) -> Result<Ciphertext, PackingError> {
        let twice = evaluator.mul_integer(&evaluator.mul(left, right)?, -2)?;
        let left_sum = evaluator.mul_plain(left, &self.ones[1])?;
        let right_sum = evaluator.mul_plain(right, &self.ones[0])?;
        Ok(evaluator.add(&twice, &evaluator.add(&left_sum, &right_sum)?)?)
    }

    /// Reads a decrypted distance.
    pub fn decode(&self, result: &Plaintext) -> u64 {
        result.residues()[0]
    }
}

/// Squared Euclidean distances of integer vectors: Σ a² + Σ b² − 2⟨A, B⟩.
///
/// Each side sends its packed vector and the polynomial Σ a_i(X)², which stands for Σ a_i² in the
/// place of the inner product; then one multiplication does. The coefficients of the result are
/// those of Σ (a_i(X) − b_i(X))², digits of up to 2(r − 1): t is over 8k(r − 1)²d for signed
/// entries, over 2k(r − 1)²d for others.
///
/// ```
/// use sudare_packings::bv::{Decryptor, Encryptor, Evaluator, SecretKey};
/// use sudare_rlwe::security::Security;
/// use sudare_expr::Operand;
/// use sudare_packings::EuclideanDistance;
///
/// # fn main() -> Result<(), sudare_packings::PackingError> {
/// // Three coordinates of up to 16 bits and a sign, in base 256.
/// let params = EuclideanDistance::parameters(3, 16, 256, true, Security::Bits128)?.build()?;
/// let euclid = EuclideanDistance::new(&params, 3, 16, 256, true)?;
/// let secret = SecretKey::generate(&params)?;
/// let public = secret.public_key()?;
/// let encryptor = Encryptor::new(&public)?;
///
/// let x = euclid.encrypt(&encryptor, Operand::Left, &[30_000, -7, 5])?;
/// let y = euclid.encrypt(&encryptor, Operand::Right, &[-30_000, -7, 2])?;
/// let distance = euclid.distance(&Evaluator::new(&params), &x, &y)?;
/// assert_eq!(euclid.decode(&Decryptor::new(&secret).decrypt(&distance)?), 60_000 * 60_000 + 9);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct EuclideanDistance {
    params: Params,
    layout: Layout,
    /// How the result's coefficients are read: signed.
    result: Entries,
}

impl EuclideanDistance {
    /// Distances of vectors of `length` entries below 2^`bits`, in base `radix`.
    ///
    /// # Errors
    /// As [`LargeInnerProduct::new`].
    pub fn new(params: &Params, length: usize, bits: u32, radix: u64, signed: bool) -> Result<Self, PackingError> {
        // For the check of N and of the size of results; t is larger here.
        let layout = LargeInnerProduct::new(params, length, bits, radix, signed)?.layout;
        let needed = least_t(&layout);
        if needed > u128::from(params.t()) {
            return Err(PackingError::DoesNotFit { packing: EUCLID, what: "t", needed, available: params.t() });
        }
        // Distances are four times as large as products.
        let bound = u128::from(layout.entries.max()).pow(2).saturating_mul(length as u128);
        if bound >> 124 != 0 {
            let reason = format!(
                "distances of {length} entries of {bits} bits may exceed 126 bits; take fewer entries or fewer bits"
            );
            return Err(PackingError::Method { method: EUCLID, reason });
        }
        Ok(Self { params: params.clone(), layout, result: Entries::digits(bits, radix, true)? })
    }

    /// The cheapest parameters for it.
    ///
    /// # Errors
    /// As [`EuclideanDistance::new`], and `RlweError::Parameters`.
    pub fn parameters(
        length: usize,
        bits: u32,
        radix: u64,
        signed: bool,
        security: Security,
    ) -> Result<ParamsLiteral, PackingError> {
        let layout = Layout { rows: 1, length, cols: 1, entries: Entries::digits(bits, radix, signed)? };
        layout.parameters_of_sum(EUCLID, Some(least_t(&layout)), TERMS, security)
    }

    /// Encrypts a vector as the left or the right one: the packed vector and its squares.
    ///
    /// # Errors
    /// [`PackingError::Count`], [`PackingError::OutOfRange`].
    pub fn encrypt(
        &self,
        encryptor: &Encryptor<'_>,
        operand: Operand,
        vector: &[i128],
    ) -> Result<[Ciphertext; 2], PackingError> {
        let packed = super::inner::encode(&self.params, &self.layout, operand, vector)?;
        Ok([encryptor.encrypt(&packed)?, encryptor.encrypt(&self.squares(vector)?)?])
    }

    /// Σ a_i(X)².
    fn squares(&self, vector: &[i128]) -> Result<Plaintext, PackingError> {
        require_count("entries of a vector", vector.len(), self.layout.length)?;
        let stride = self.layout.entries.stride();
        let (mut sum, mut digits) = (vec![0i64; stride], vec![0i64; stride]);
        for (i, x) in vector.iter().enumerate() {
            self.layout.entries.write(*x, (0, i), &mut digits)?;
            for (u, a) in digits[..stride / 2].iter().enumerate() {
                digits[..stride / 2].iter().enumerate().for_each(|(v, b)| sum[u + v] += a * b);
            }
        }
        // At most k(r − 1)²d, below t.
        Ok(Plaintext::new(&self.params, &sum)?)
    }

    /// The encrypted distance.
    ///
    /// # Errors
    /// As [`Evaluator::mul`] and [`Evaluator::add`].
    pub fn distance(
        &self,
        evaluator: &Evaluator,
        left: &[Ciphertext; 2],
        right: &[Ciphertext; 2],
    ) -> Result<Ciphertext, PackingError> {
        let twice = evaluator.mul_integer(&evaluator.mul(&left[0], &right[0])?, -2)?;
        Ok(evaluator.add(&twice, &evaluator.add(&left[1], &right[1])?)?)
    }

    /// Reads a decrypted squared distance.
    pub fn decode(&self, result: &Plaintext) -> i128 {
        self.result.read(&result.residues()[..self.layout.entries.stride()], result.params().t())
    }
}

/// Twice the largest coefficient of Σ (a_i(X) − b_i(X))², plus one.
fn least_t(layout: &Layout) -> u128 {
    let difference = if layout.entries.signed() { 4 } else { 1 };
    layout.entries.coefficient_bound(layout.length).saturating_mul(2 * difference).saturating_add(1)
}
