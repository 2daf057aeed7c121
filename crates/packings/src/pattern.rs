//! Pattern matching: the distance of a pattern from a text at every offset (after Yasuda et al.;
//! `002`, section 3.2).

use super::distance::TERMS;
use super::entries::Entries;
use super::layout::Layout;
use super::require_count;
use crate::bv::{Ciphertext, Encryptor, Evaluator, Params, ParamsLiteral, Plaintext};
use crate::error::PackingError;
use sudare_rlwe::security::Security;

const NAME: &str = "pattern matching";

/// Squared distances Σ_j (T_(i+j) − P_j)² at every offset i, all from one multiplication; for binary
/// texts these are Hamming distances. A match is a distance of zero.
///
/// With pm^(1)(T) and pm^(2)(P) of equation 3, coefficient i of the product is Σ_j T_(i+j)·P_j, for
/// 0 ≤ i ≤ l − k. The squares of the text are a ciphertext of their own, multiplied by the plaintext
/// pattern of ones; those of the pattern, the same at every offset, come with it. Needs N ≥ l and
/// t > k·max² (four times that with signs).
///
/// ```
/// use sudare_packings::bv::{Decryptor, Encryptor, Evaluator, SecretKey};
/// use sudare_rlwe::security::Security;
/// use sudare_packings::{Entries, PatternMatching};
///
/// # fn main() -> Result<(), sudare_packings::PackingError> {
/// let entries = Entries::short(9, false)?;
/// let params = PatternMatching::parameters(6, 2, entries, Security::Bits128)?.build()?;
/// let matching = PatternMatching::new(&params, 6, 2, entries)?;
/// let secret = SecretKey::generate(&params)?;
/// let public = secret.public_key()?;
/// let encryptor = Encryptor::new(&public)?;
///
/// let text = matching.encrypt_text(&encryptor, &[3, 1, 4, 1, 5, 9])?;
/// let pattern = matching.encrypt_pattern(&encryptor, &[1, 5])?;
/// let distances = matching.distances(&Evaluator::new(&params), &text, &pattern)?;
/// let distances = matching.decode(&Decryptor::new(&secret).decrypt(&distances)?);
/// assert_eq!(distances, [20, 1, 25, 0, 32]); // (3 − 1)² + (1 − 5)², …
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PatternMatching {
    params: Params,
    text: Layout,
    pattern: Layout,
    /// pm^(2) of ones.
    ones: Plaintext,
}

/// Layouts of a text and a pattern, and the least t.
fn layouts(text: usize, pattern: usize, entries: Entries) -> Result<(Layout, Layout, u128), PackingError> {
    if entries.stride() != 1 || pattern == 0 || pattern > text {
        let reason = format!(
            "a pattern of {pattern} entries in a text of {text}: the pattern has at least one entry and no more than \
             the text, and each entry takes one coefficient"
        );
        return Err(PackingError::Method { method: NAME, reason });
    }
    let layout = |length| Layout { rows: 1, length, cols: 1, entries };
    let bound = entries.coefficient_bound(pattern).saturating_mul(if entries.signed() { 4 } else { 1 });
    Ok((layout(text), layout(pattern), bound.saturating_add(1)))
}

impl PatternMatching {
    /// Patterns of `pattern` entries in texts of `text`.
    ///
    /// # Errors
    /// [`PackingError::DoesNotFit`] if N or t is too small, [`PackingError::Method`] for a pattern that
    /// is empty or longer than the text, or entries in digits.
    pub fn new(params: &Params, text: usize, pattern: usize, entries: Entries) -> Result<Self, PackingError> {
        let (text, pattern, t) = layouts(text, pattern, entries)?;
        for (what, needed, available) in [("N", text.least_degree(), params.degree() as u64), ("t", t, params.t())] {
            if needed > u128::from(available) {
                return Err(PackingError::DoesNotFit { packing: NAME, what, needed, available });
            }
        }
        let ones = Layout { entries: Entries::BINARY, ..pattern };
        let ones = ones.right(params, [vec![1; pattern.length].as_slice()].into_iter(), 0)?;
        Ok(Self { params: params.clone(), text, pattern, ones })
    }

    /// The cheapest parameters for it.
    ///
    /// # Errors
    /// As [`PatternMatching::new`], and `RlweError::Parameters`.
    pub fn parameters(
        text: usize,
        pattern: usize,
        entries: Entries,
        security: Security,
    ) -> Result<ParamsLiteral, PackingError> {
        let (layout, _, t) = layouts(text, pattern, entries)?;
        layout.parameters_of_sum(NAME, Some(t), TERMS, security)
    }

    /// Offsets at which a pattern fits.
    pub fn offsets(&self) -> usize {
        self.text.length - self.pattern.length + 1
    }

    /// Encrypts a text and its squares.
    ///
    /// # Errors
    /// [`PackingError::Count`], [`PackingError::OutOfRange`].
    pub fn encrypt_text(&self, encryptor: &Encryptor<'_>, text: &[i128]) -> Result<[Ciphertext; 2], PackingError> {
        require_count("entries of the text", text.len(), self.text.length)?;
        let plain = self.text.left(&self.params, [text].into_iter(), 0)?;
        // In range, and at most max² < t.
        let squares: Vec<i64> = text.iter().map(|x| (x * x) as i64).collect();
        let squares = Plaintext::new(&self.params, &squares)?;
        Ok([encryptor.encrypt(&plain)?, encryptor.encrypt(&squares)?])
    }

    /// Encrypts a pattern and the sum of its squares at every offset.
    ///
    /// # Errors
    /// [`PackingError::Count`], [`PackingError::OutOfRange`].
    pub fn encrypt_pattern(
        &self,
        encryptor: &Encryptor<'_>,
        pattern: &[i128],
    ) -> Result<[Ciphertext; 2], PackingError> {
        require_count("entries of the pattern", pattern.len(), self.pattern.length)?;
        let plain = self.pattern.right(&self.params, [pattern].into_iter(), 0)?;
        let sum = pattern.iter().map(|x| x * x).sum::<i128>() as i64;
        let sums = Plaintext::new(&self.params, &vec![sum; self.offsets()])?;
        Ok([encryptor.encrypt(&plain)?, encryptor.encrypt(&sums)?])
    }

    /// The encrypted distances.
    ///
    /// # Errors
    /// As [`Evaluator::mul`] and [`Evaluator::add`].
    pub fn distances(
        &self,
        evaluator: &Evaluator,
        text: &[Ciphertext; 2],
        pattern: &[Ciphertext; 2],
    ) -> Result<Ciphertext, PackingError> {
        let twice = evaluator.mul_integer(&evaluator.mul(&text[0], &pattern[0])?, -2)?;
        let squares = evaluator.mul_plain(&text[1], &self.ones)?;
        Ok(evaluator.add(&twice, &evaluator.add(&squares, &pattern[1])?)?)
    }

    /// Reads decrypted distances, one for each offset.
    pub fn decode(&self, result: &Plaintext) -> Vec<u64> {
        result.residues()[..self.offsets()].to_vec()
    }
}
