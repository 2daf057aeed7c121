//! Where the values of a polynomial stand in Lattigo's transforms and in ours.
//!
//! Value i of theirs is a(ψ'^(2·brv(i) + 1)), of ours a(ψ^e) with e by [`sudare_ring::order`]; ψ' = ψ^κ with a κ of each
//! prime. BFV and BGV have slots by roots modulo the plaintext modulus, where ψ'_t = ψ_t^k: if everything that is
//! exchanged, secret, keys and ciphertexts, goes through the automorphism X ↦ X^k, then slot j is slot j on both sides. It is
//! one permutation for both: theirs at κ·k^−1·(2·brv(i) + 1).

use crate::bytes::{Reader, push_count};
use crate::error::LattigoError;
use crate::roots;
use sudare_ring::order::{bit_reverse, index_of};
use sudare_ring::{Eval, Modulus, Poly, RnsBasis, Shoup};
use sudare_rlwe::Params;
use zeroize::Zeroize;

/// How the residues of a polynomial are kept: times 2^64 (Montgomery's form), as in keys, or as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Residues {
    Plain,
    Montgomery,
}

/// One prime of Q or P.
#[derive(Debug)]
struct Row {
    modulus: Modulus,
    /// κ·k^−1 modulo 2N.
    twist: u64,
    /// 2^64 and its inverse.
    montgomery: [Shoup; 2],
}

/// Permutations and factors of a set's primes.
#[derive(Debug)]
pub(crate) struct Layout {
    n: usize,
    /// Data primes, then special primes.
    rows: [Vec<Row>; 2],
}

impl Layout {
    /// Of a set whose objects go through X ↦ X^k.
    ///
    /// # Errors
    /// [`LattigoError::Rlwe`] for a prime without a transform: none of a set that was built.
    pub fn new(params: &Params, k: u64) -> Result<Self, LattigoError> {
        let n = params.degree();
        let order = 2 * n as u64;
        // k^(N/2 − 1): the group of odd residues has exponent N/2.
        let inverse = (1..n / 2).fold(1, |power, _| power * k % order);
        let rows = |basis: &RnsBasis| -> Result<Vec<Row>, LattigoError> {
            let one = |(modulus, root): (&Modulus, u64)| {
                let kappa = roots::exponent(modulus, n, root, roots::theirs(modulus, n)?)?;
                let factor = modulus.pow(2, 64);
                let montgomery = [factor, modulus.inverse(factor)?].map(|x| modulus.shoup(x));
                Ok(Row { modulus: *modulus, twist: kappa * inverse % order, montgomery })
            };
            basis.moduli().zip(basis.limbs().iter().map(|limb| limb.root())).map(one).collect()
        };
        Ok(Self { n, rows: [rows(params.q())?, rows(params.p())?] })
    }

    /// Where value i of theirs stands in ours.
    fn place(&self, row: &Row, i: usize) -> usize {
        let exponent = 2 * bit_reverse(i, self.n.trailing_zeros()) + 1;
        index_of(self.n, (row.twist as usize * exponent) & (2 * self.n - 1))
    }

    /// A polynomial over the data primes of a level.
    pub fn read(
        &self,
        reader: &mut Reader<'_>,
        basis: &RnsBasis,
        residues: Residues,
    ) -> Result<Poly<Eval>, LattigoError> {
        let mut poly = Poly::zero(basis);
        self.read_rows(reader, &mut poly, (0, basis.len(), 0), residues)?;
        Ok(poly)
    }

    /// A polynomial over data primes and all special primes, a matrix of each.
    pub fn read_extended(
        &self,
        reader: &mut Reader<'_>,
        basis: &RnsBasis,
        residues: Residues,
    ) -> Result<Poly<Eval>, LattigoError> {
        let (mut poly, special) = (Poly::zero(basis), self.rows[1].len());
        let data = basis.len() - special;
        let parts = [(0, data, 0), (1, special, data)];
        for part in parts {
            if let Err(error) = self.read_rows(reader, &mut poly, part, residues) {
                // It may be half of a secret.
                poly.zeroize();
                return Err(error);
            }
        }
        Ok(poly)
    }

    /// `count` rows, of data primes (0) or special primes (1), into the limbs from `first` on.
    fn read_rows(
        &self,
        reader: &mut Reader<'_>,
        poly: &mut Poly<Eval>,
        (part, count, first): (usize, usize, usize),
        residues: Residues,
    ) -> Result<(), LattigoError> {
        reader.require("primes of a polynomial", count)?;
        for (t, row) in self.rows[part].iter().take(count).enumerate() {
            reader.require("coefficients of a polynomial", self.n)?;
            let (q, words) = (row.modulus.value(), reader.take(8 * self.n)?);
            let values = poly.limb_mut(first + t);
            for (i, word) in words.as_chunks::<8>().0.iter().enumerate() {
                let value = u64::from_le_bytes(*word);
                if value >= q {
                    return Err(LattigoError::Coefficient { prime: q, index: i });
                }
                values[self.place(row, i)] = match residues {
                    Residues::Plain => value,
                    Residues::Montgomery => row.modulus.mul_shoup(value, &row.montgomery[1]),
                };
            }
        }
        Ok(())
    }

    /// Writes a polynomial over the data primes of a level.
    pub fn write(&self, out: &mut Vec<u8>, poly: &Poly<Eval>, residues: Residues) {
        self.write_rows(out, poly, (0, poly.basis().len(), 0), residues);
    }

    /// Writes a polynomial over data primes and all special primes.
    pub fn write_extended(&self, out: &mut Vec<u8>, poly: &Poly<Eval>, residues: Residues) {
        let special = self.rows[1].len();
        let data = poly.basis().len() - special;
        self.write_rows(out, poly, (0, data, 0), residues);
        self.write_rows(out, poly, (1, special, data), residues);
    }

    fn write_rows(
        &self,
        out: &mut Vec<u8>,
        poly: &Poly<Eval>,
        (part, count, first): (usize, usize, usize),
        residues: Residues,
    ) {
        push_count(out, count);
        for (t, row) in self.rows[part].iter().take(count).enumerate() {
            push_count(out, self.n);
            let values = poly.limb(first + t);
            for i in 0..self.n {
                let value = values[self.place(row, i)];
                let word = match residues {
                    Residues::Plain => value,
                    Residues::Montgomery => row.modulus.mul_shoup(value, &row.montgomery[0]),
                };
                out.extend(word.to_le_bytes());
            }
        }
    }

    /// Bytes of a polynomial over `data` data primes and, with `extended`, all special primes.
    pub fn bytes(&self, data: usize, extended: bool) -> usize {
        let row = 8 + 8 * self.n;
        8 + data * row + if extended { 8 + self.rows[1].len() * row } else { 0 }
    }
}
