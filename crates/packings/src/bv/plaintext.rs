//! Plaintexts: polynomials modulo t.

use super::noise::Norms;
use super::params::Params;
use std::fmt;
use sudare_he::HeError;
use sudare_ring::buffer::Buffer;
use sudare_ring::wipe::wipe;
use sudare_rlwe::RlweError;
use zeroize::Zeroizing;

/// A polynomial of R_t; residues in [0, t). Wiped when dropped.
#[derive(Clone)]
pub struct Plaintext {
    pub(super) params: Params,
    pub(super) residues: Buffer,
}

impl fmt::Debug for Plaintext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plaintext").field("params", &self.params).finish_non_exhaustive()
    }
}

impl PartialEq for Plaintext {
    fn eq(&self, other: &Self) -> bool {
        self.params == other.params && self.residues[..] == other.residues[..]
    }
}

impl Drop for Plaintext {
    fn drop(&mut self) {
        wipe(&mut self.residues);
    }
}

impl Plaintext {
    /// The polynomial with these coefficients, from the constant one up; the rest are zero.
    /// Each is in (−t, t) and stands for its residue.
    ///
    /// # Errors
    /// `RlweError::TooManyValues`, or [`HeError::NotModulo`] for a coefficient out of range:
    /// nothing is reduced unasked.
    pub fn new(params: &Params, coefficients: &[i64]) -> Result<Self, HeError> {
        let (n, t) = (params.degree(), params.t());
        if coefficients.len() > n {
            return Err(HeError::Rlwe(RlweError::TooManyValues { found: coefficients.len(), capacity: n }));
        }
        if let Some(index) = coefficients.iter().position(|c| c.unsigned_abs() >= t) {
            return Err(HeError::NotModulo { index, t });
        }
        let mut residues = Buffer::zeroed(n);
        for (r, c) in residues.iter_mut().zip(coefficients) {
            // t < 2^48, so the sum neither overflows nor stays negative.
            *r = if *c < 0 { (*c + t as i64) as u64 } else { *c as u64 };
        }
        Ok(Self { params: params.clone(), residues })
    }

    /// Its parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// All N coefficients as residues in [0, t).
    pub fn residues(&self) -> &[u64] {
        &self.residues
    }

    /// All N coefficients in (−t/2, t/2].
    pub fn centered(&self) -> Vec<i64> {
        let t = self.params.t();
        self.residues.iter().map(|r| if *r > t / 2 { *r as i64 - t as i64 } else { *r as i64 }).collect()
    }

    /// Norms of the centred coefficients.
    pub(super) fn norms(&self) -> Norms {
        Norms::of(Zeroizing::new(self.centered()).iter().copied())
    }
}
