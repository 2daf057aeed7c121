//! Exact covariance and correlation of encrypted integer columns (after Yasuda et al., ACISP 2015;
//! `002`, section 3.3).

use super::{LargeInnerProduct, require_count};
use crate::bv::{Ciphertext, Decryptor, Encryptor, Evaluator, Params, ParamsLiteral, Plaintext};
use crate::error::PackingError;
use sudare_expr::Matrix;
use sudare_expr::Operand;
use sudare_ring::threads;
use sudare_rlwe::security::Security;

/// Sums Σ x and Σ x·y of encrypted columns, from inner products of entries in base r: with each
/// other, and with the plaintext column of ones. Whoever decrypts gets them exactly, and from them
/// exact covariances as fractions.
///
/// ```
/// use sudare_packings::bv::{Decryptor, Encryptor, Evaluator, SecretKey};
/// use sudare_rlwe::security::Security;
/// use sudare_packings::Statistics;
///
/// # fn main() -> Result<(), sudare_packings::PackingError> {
/// // Four observations of up to 8 bits, in base 16.
/// let params = Statistics::parameters(4, 8, 16, false, Security::Bits128)?.build()?;
/// let statistics = Statistics::new(&params, 4, 8, 16, false)?;
/// let secret = SecretKey::generate(&params)?;
/// let public = secret.public_key()?;
/// let encryptor = Encryptor::new(&public)?;
///
/// let columns = [[1, 2, 3, 4], [200, 100, 50, 0]];
/// let x = statistics.encrypt(&encryptor, &columns[0])?;
/// let y = statistics.encrypt(&encryptor, &columns[1])?;
/// let encrypted = statistics.moments(&Evaluator::new(&params), &[x, y])?;
/// let moments = statistics.decrypt(&Decryptor::new(&secret), &encrypted)?;
/// assert_eq!(moments.sums(), [10, 350]);
/// assert_eq!(moments.scaled_covariance(0, 1), 4 * 550 - 10 * 350);
/// assert_eq!(moments.covariance(0, 1, 1), Some(-1300.0 / 12.0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Statistics {
    inner: LargeInnerProduct,
    observations: usize,
    /// pm^(2) of ones.
    ones: Plaintext,
}

/// A column of observations as a left and as a right operand.
#[derive(Clone, Debug)]
pub struct EncryptedColumn {
    left: Ciphertext,
    right: Ciphertext,
}

/// Encrypted sums of columns and of their products; see [`Statistics::moments`].
#[derive(Clone, Debug)]
pub struct EncryptedMoments {
    sums: Vec<Ciphertext>,
    /// Row by row, the upper triangle.
    products: Vec<Ciphertext>,
}

/// Exact sums of columns and of their products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moments {
    observations: usize,
    sums: Vec<i128>,
    products: Matrix<i128>,
}

impl Statistics {
    /// Statistics of columns of `observations` integers below 2^`bits` in absolute value, below zero
    /// as well if `signed`, in base `radix`.
    ///
    /// # Errors
    /// As [`LargeInnerProduct::new`]; [`PackingError::Method`] also for moments times the number of
    /// observations of more than 126 bits.
    pub fn new(
        params: &Params,
        observations: usize,
        bits: u32,
        radix: u64,
        signed: bool,
    ) -> Result<Self, PackingError> {
        let inner = LargeInnerProduct::new(params, observations, bits, radix, signed)?;
        let largest = u128::from(inner.layout.entries.max()).checked_mul(observations as u128);
        // n·Σxy and Σx·Σy are at most (n·max)²; their difference twice that.
        if largest.is_none_or(|x| x >> 62 != 0) {
            let reason = format!(
                "sums of {observations} integers of {bits} bits can pass 62 bits; take fewer integers or fewer bits"
            );
            return Err(PackingError::Method { method: "statistics", reason });
        }
        let ones = inner.encode(Operand::Right, &vec![1; observations])?;
        Ok(Self { inner, observations, ones })
    }

    /// The cheapest parameters for it.
    ///
    /// # Errors
    /// As [`LargeInnerProduct::parameters`].
    pub fn parameters(
        observations: usize,
        bits: u32,
        radix: u64,
        signed: bool,
        security: Security,
    ) -> Result<ParamsLiteral, PackingError> {
        LargeInnerProduct::parameters(observations, bits, radix, signed, security)
    }

    /// Encrypts a column.
    ///
    /// # Errors
    /// [`PackingError::Count`], [`PackingError::OutOfRange`].
    pub fn encrypt(&self, encryptor: &Encryptor<'_>, column: &[i128]) -> Result<EncryptedColumn, PackingError> {
        Ok(EncryptedColumn {
            left: encryptor.encrypt(&self.inner.encode(Operand::Left, column)?)?,
            right: encryptor.encrypt(&self.inner.encode(Operand::Right, column)?)?,
        })
    }

    /// The encrypted sums of columns (of one owner or of several, under one key) and of the products
    /// of all pairs.
    ///
    /// # Errors
    /// As [`Evaluator::mul`]; [`PackingError::Count`] for no columns.
    pub fn moments(
        &self,
        evaluator: &Evaluator,
        columns: &[EncryptedColumn],
    ) -> Result<EncryptedMoments, PackingError> {
        if columns.is_empty() {
            return Err(PackingError::Count { what: "columns", found: 0, expected: 1 });
        }
        let ones = evaluator.prepare(&self.ones)?;
        let sums = threads::map(columns.len(), |i| Ok(evaluator.mul_prepared(&columns[i].left, &ones)?));
        let pairs: Vec<_> = (0..columns.len()).flat_map(|i| (i..columns.len()).map(move |j| (i, j))).collect();
        let products = threads::map(pairs.len(), |p| {
            let (i, j) = pairs[p];
            Ok(evaluator.mul(&columns[i].left, &columns[j].right)?)
        });
        Ok(EncryptedMoments {
            sums: sums.into_iter().collect::<Result<_, PackingError>>()?,
            products: products.into_iter().collect::<Result<_, PackingError>>()?,
        })
    }

    /// Decrypts sums.
    ///
    /// # Errors
    /// As [`Decryptor::decrypt`].
    pub fn decrypt(&self, decryptor: &Decryptor<'_>, moments: &EncryptedMoments) -> Result<Moments, PackingError> {
        let read = |all: &[Ciphertext]| -> Result<Vec<i128>, PackingError> {
            threads::map(all.len(), |i| Ok(self.inner.decode(&decryptor.decrypt(&all[i])?))).into_iter().collect()
        };
        let (sums, triangle) = (read(&moments.sums)?, read(&moments.products)?);
        let c = sums.len();
        require_count("products of columns", triangle.len(), c * (c + 1) / 2)?;
        let at = |i: usize, j: usize| {
            let (i, j) = (i.min(j), i.max(j));
            // Rows before i have c, c − 1, … elements.
            triangle[i * c - i * (i + 1) / 2 + j]
        };
        Ok(Moments { observations: self.observations, products: Matrix::<i128>::from_fn(c, c, at)?, sums })
    }
}

impl Moments {
    /// Observations in a column.
    pub fn observations(&self) -> usize {
        self.observations
    }

    /// Σ x of each column.
    pub fn sums(&self) -> &[i128] {
        &self.sums
    }

    /// Σ x·y of each pair of columns.
    pub fn products(&self) -> &Matrix<i128> {
        &self.products
    }

    /// n·Σxy − Σx·Σy: the covariance of two columns, which must exist, times n² exactly, or times
    /// n(n − 1) for a sample's.
    pub fn scaled_covariance(&self, i: usize, j: usize) -> i128 {
        self.observations as i128 * self.products.get(i, j) - self.sums[i] * self.sums[j]
    }

    /// The covariance, divided by n − `ddof` (0 for a population, 1 for a sample); `None` if that is
    /// not above zero.
    pub fn covariance(&self, i: usize, j: usize, ddof: usize) -> Option<f64> {
        let divisor = self.observations.checked_sub(ddof).filter(|d| *d > 0)?;
        Some(self.scaled_covariance(i, j) as f64 / (self.observations as f64 * divisor as f64))
    }

    /// The correlation of two columns; `None` if one is constant. The integers under it are exact;
    /// the only rounding is that of the last quotient.
    pub fn correlation(&self, i: usize, j: usize) -> Option<f64> {
        let (x, y) = (self.scaled_covariance(i, i), self.scaled_covariance(j, j));
        (x > 0 && y > 0).then(|| self.scaled_covariance(i, j) as f64 / ((x as f64).sqrt() * (y as f64).sqrt()))
    }
}
