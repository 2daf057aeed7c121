//! The layout of entries in polynomials: the one rule behind every inner product here.
//!
//! With s coefficients an entry and vectors of length k, row i of a left operand has its entry l
//! at X^(s(ik + l)), and column j of a right one, of m rows on the left, at −X^(N − sl)·X^(sjmk):
//! equations 3 to 8 and Pol^(1), Pol^(2) of the paper. In units of s, the product of entries l
//! and l' of row i and column j stands at ik + jmk + (l − l'), negative ones wrapped around with
//! their sign changed twice. Inner products have l = l', so they are at multiples of k; the
//! others are not, or wrapped to s(−1), …, s(−k + 1) below N. The largest inner product starts at
//! s(mkn − k) and ends before s(mkn − k + 1), so N ≥ s·m·k·n keeps all of it apart: for any
//! shape, and for the non-binary packings a little less than Theorems 9 and 10 ask for.

use super::entries::Entries;
use crate::bv::{MAX_PLAIN_MODULUS, Params, ParamsLiteral, Plaintext};
use crate::error::PackingError;
use sudare_expr::Shape;
use sudare_ring::kernel::MAX_DEGREE;
use sudare_rlwe::security::Security;

/// Rows on the left and columns on the right of one polynomial product, and their length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub rows: usize,
    pub length: usize,
    pub cols: usize,
    pub entries: Entries,
}

impl Layout {
    /// Least N.
    pub fn least_degree(&self) -> u128 {
        [self.rows, self.length, self.cols]
            .iter()
            .fold(self.entries.stride() as u128, |n, x| n.saturating_mul(*x as u128))
    }

    /// Refuses what does not fit N or t, or whose results do not fit 127 bits.
    pub fn check(&self, packing: &'static str, params: &Params) -> Result<(), PackingError> {
        let fits = |what, needed: u128, available: u64| match needed <= u128::from(available) {
            true => Ok(()),
            false => Err(PackingError::DoesNotFit { packing, what, needed, available }),
        };
        if self.least_degree() == 0 {
            let reason = "a product needs at least one row, one column and one term".into();
            return Err(PackingError::Method { method: packing, reason });
        }
        fits("N", self.least_degree(), params.degree() as u64)?;
        fits("t", self.entries.least_t(self.length), params.t())?;
        let max = u128::from(self.entries.max());
        if (max * max).checked_mul(self.length as u128).is_none_or(|x| x >> 126 != 0) {
            let reason = format!(
                "{} products of entries of up to {max} may exceed 126 bits; take smaller entries or fewer of them",
                self.length
            );
            return Err(PackingError::Method { method: packing, reason });
        }
        Ok(())
    }

    /// The cheapest parameters that pass [`Layout::check`], for one product.
    pub fn parameters(&self, packing: &'static str, security: Security) -> Result<ParamsLiteral, PackingError> {
        self.parameters_of_sum(packing, None, 1, security)
    }

    /// The same for a sum of `terms` products, and a t of its own.
    pub fn parameters_of_sum(
        &self,
        packing: &'static str,
        t: Option<u128>,
        terms: u64,
        security: Security,
    ) -> Result<ParamsLiteral, PackingError> {
        let (n, t) = (self.least_degree(), t.unwrap_or(self.entries.least_t(self.length)));
        cheapest(packing, (n, t), (1, terms), security)
    }

    /// Packs rows; `first` is the number of the first, for messages.
    pub fn left<'a>(
        &self,
        params: &Params,
        rows: impl Iterator<Item = &'a [i128]>,
        first: usize,
    ) -> Result<Plaintext, PackingError> {
        let stride = self.entries.stride();
        let mut coefficients = vec![0i64; params.degree()];
        let places = coefficients.chunks_exact_mut(stride);
        let values =
            rows.enumerate().flat_map(|(i, row)| row.iter().enumerate().map(move |(l, x)| ((first + i, l), x)));
        for (place, (at, x)) in places.zip(values) {
            self.entries.write(*x, at, place)?;
        }
        Ok(Plaintext::new(params, &coefficients)?)
    }

    /// Packs columns; `first` is the number of the first, for messages.
    pub fn right<'a>(
        &self,
        params: &Params,
        columns: impl Iterator<Item = &'a [i128]>,
        first: usize,
    ) -> Result<Plaintext, PackingError> {
        let (n, stride) = (params.degree(), self.entries.stride());
        let gap = stride * self.rows * self.length;
        let mut coefficients = vec![0i64; n];
        for (j, column) in columns.enumerate() {
            for (l, x) in column.iter().enumerate() {
                let (place, below) = (j * gap, l * stride);
                // −X^(N − a) stays as it is; times X^b with b ≥ a it is X^(b − a).
                let start = if below > place { n + place - below } else { place - below };
                let place = &mut coefficients[start..start + stride];
                self.entries.write(*x, (l, first + j), place)?;
                if below > j * gap {
                    place.iter_mut().for_each(|c| *c = -*c);
                }
            }
        }
        Ok(Plaintext::new(params, &coefficients)?)
    }

    /// The inner product of row `i` and column `j`.
    pub fn read(&self, result: &Plaintext, i: usize, j: usize) -> i128 {
        let stride = self.entries.stride();
        let start = stride * self.length * (i + j * self.rows);
        self.entries.read(&result.residues()[start..start + stride], result.params().t())
    }
}

/// Refuses a matrix of another shape.
pub(super) fn require_shape(
    what: &'static str,
    found: (usize, usize),
    expected: (usize, usize),
) -> Result<(), PackingError> {
    if found == expected { Ok(()) } else { Err(PackingError::PackedShape { what, found, expected }) }
}

/// Refuses a batch: a packing holds one matrix.
pub(super) fn require_single(method: &'static str, shape: Shape) -> Result<(), PackingError> {
    match shape.batch {
        1 => Ok(()),
        batch => {
            Err(PackingError::Method { method, reason: format!("a packing holds one product at a time, not {batch}") })
        }
    }
}

/// The cheapest parameters with a least N and t, for sums of so many results of so many products.
pub(super) fn cheapest(
    packing: &'static str,
    (n, t): (u128, u128),
    (products, terms): (usize, u64),
    security: Security,
) -> Result<ParamsLiteral, PackingError> {
    let too_large = |what, needed, available| PackingError::DoesNotFit { packing, what, needed, available };
    let limit = MAX_DEGREE as u64;
    if n > u128::from(limit) {
        return Err(too_large("N", n, limit));
    }
    if t > u128::from(MAX_PLAIN_MODULUS) {
        return Err(too_large("t", t, MAX_PLAIN_MODULUS));
    }
    // Both are below 2^49.
    Ok(ParamsLiteral::for_sums(n as usize, (t as u64).max(2), products, terms, security)?)
}
