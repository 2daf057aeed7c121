//! Key switching of polynomials in coefficient form, for circuits that work there: monomials
//! multiply by shifting, and neither decomposition nor division by P has to come back first.

use super::{ExtendedPair, check_key, prepare_digits};
use crate::error::RlweError;
use crate::keys::{GaloisKey, KeySwitchKey};
use crate::params::Params;
use sudare_ring::buffer::Buffer;
use sudare_ring::{Coeff, Poly, threads};

/// Σ_j d_j · (b_j, a_j) over Q_l·P for the digits d_j of a polynomial over Q_l.
///
/// # Errors
/// [`RlweError::NoSuchLevel`] if the key does not reach the polynomial's level.
pub fn switch(params: &Params, c: &Poly<Coeff>, key: &KeySwitchKey) -> Result<ExtendedPair, RlweError> {
    let level = c.basis().len() - 1;
    check_key(key, "key switching", level)?;
    let tables = params.tables(level);
    let n = params.degree();
    let count = tables.digits.len();
    let mut rows = Buffer::dirty(c.words().len());
    let prepared = prepare_digits(tables, &mut rows, n, |i, x| x.copy_from_slice(c.limb(i)));
    let mut out = [Poly::dirty(&tables.qp), Poly::dirty(&tables.qp)];
    let [x, y] = &mut out;
    threads::for_each_chunk_pair(x.words_mut(), y.words_mut(), n, |t, x, y| {
        let limb = tables.qp.limb(t);
        let mut digits = Buffer::dirty(n * count);
        for (j, digit) in digits.chunks_exact_mut(n).enumerate() {
            match tables.digits[j].contains(&t) {
                true => digit.copy_from_slice(c.limb(t)),
                false => tables.mod_up[j].finish(&prepared[j], t, digit),
            }
            limb.forward(digit);
        }
        let rows: Vec<&[u64]> = digits.chunks_exact(n).collect();
        limb.dot_pair_packed([x, y], &rows, key.limb(level, t), None);
    });
    Ok(ExtendedPair { level, c: out })
}

/// [`switch`] by the key of an automorphism, which is applied to the result: from c to an
/// encryption of P·ψ_g(c·s).
///
/// # Errors
/// As [`switch`].
pub fn switch_automorphism(params: &Params, c: &Poly<Coeff>, key: &GaloisKey) -> Result<ExtendedPair, RlweError> {
    let pair = switch(params, c, key.key())?;
    Ok(ExtendedPair { level: pair.level, c: pair.c.map(|x| x.permuted(key.permutation())) })
}

/// `acc += P · c` for `acc` over Q_l·P and `c` over Q_l.
pub fn add_scaled(params: &Params, acc: &mut Poly<Coeff>, c: &Poly<Coeff>) {
    let (basis, n) = (c.basis(), c.degree());
    let tables = params.tables(basis.len() - 1);
    let words = basis.len() * n;
    threads::for_each_chunk(&mut acc.words_mut()[..words], n, |l, x| {
        basis.limb(l).mul_scalar_add(x, c.limb(l), &tables.p_mod_q[l]);
    });
}

/// ⌊c / P⌉ of a polynomial over Q_l·P.
pub fn mod_down(params: &Params, level: usize, c: Poly<Coeff>) -> Poly<Coeff> {
    match &params.tables(level).mod_down {
        Some(division) => division.apply_coefficients(c),
        None => c,
    }
}

/// ⌊c / (P·q_l)⌉ of a polynomial over Q_l·P, `level` ≥ 1: mod-down and rescale in one.
///
/// # Errors
/// [`RlweError::OutOfLevels`] at level 0, [`RlweError::Parameters`] without special primes.
pub fn mod_down_rescale(params: &Params, level: usize, c: Poly<Coeff>) -> Result<Poly<Coeff>, RlweError> {
    if level == 0 {
        return Err(RlweError::OutOfLevels { operation: "rescale", needed: 1, level });
    }
    match &params.tables(level).mod_down_rescale {
        Some(division) => Ok(division.apply_coefficients(c)),
        None => Err(RlweError::Parameters { reason: "there are no special primes to divide by".into() }),
    }
}
