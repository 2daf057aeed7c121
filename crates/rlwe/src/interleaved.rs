//! Ciphertexts of a small ring side by side in one of a large ring.
//!
//! Σ_k X^k·c_k(X^m) has the coefficients of m ciphertexts c_k by turns, and s₀(X^m) for its secret, where they have s₀. Products, three parts
//! that were not relinearised, are under s₀(X^m) and s₀²(X^m): a key from each to one secret takes the place of a
//! relinearisation.

use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use crate::ids::KeyId;
use crate::keys::SecretKey;
use crate::params::Params;
use sudare_ring::{Coeff, Eval, Poly, RnsBasis, threads};
use zeroize::Zeroizing;

/// m: how many ciphertexts over `small` one of level 0 holds.
fn count(params: &Params, small: &RnsBasis) -> Result<usize, RlweError> {
    let over_q0 = small.primes().eq([params.prime_at(0)]);
    if !over_q0 || small.degree() > params.degree() {
        let reason = format!(
            "only ciphertexts of a ring of the same or a smaller degree, modulo {}, can be put side by side",
            params.prime_at(0)
        );
        return Err(RlweError::Parameters { reason });
    }
    Ok(params.degree() / small.degree())
}

/// The coefficients of s₀(X^m) and s₀²(X^m) for a secret of a small ring: what keys for products side by side lead from.
///
/// # Errors
/// [`RlweError::Parameters`] for a ring over another prime than q_0, or a larger one.
pub fn interleaved_secrets(params: &Params, small: &SecretKey) -> Result<[Zeroizing<Vec<i64>>; 2], RlweError> {
    let (m, s) = (count(params, small.params().q())?, small.coefficients());
    let n = s.len();
    let mut square = Zeroizing::new(vec![0; n]);
    for (i, x) in s.iter().enumerate() {
        // X^n = −1.
        s.iter().enumerate().for_each(|(j, y)| square[(i + j) % n] += if i + j < n { x * y } else { -x * y });
    }
    let spread = |coefficients: &[i64]| {
        let mut out = Zeroizing::new(vec![0; params.degree()]);
        out.iter_mut().step_by(m).zip(coefficients).for_each(|(o, c)| *o = *c);
        out
    };
    Ok([spread(s), spread(&square)])
}

/// Products of a small ring as one ciphertext of three parts at level 0: coefficient i of product k is coefficient m·i + k. Where there are
/// fewer than m, the others are zero. `key` names the secret that keys lead to.
///
/// # Errors
/// [`RlweError::Parameters`] for none or more than m products, or products over another prime than q_0.
pub fn interleaved(params: &Params, key: KeyId, products: &[[Poly<Eval>; 3]]) -> Result<Ciphertext, RlweError> {
    let refuse = |reason: String| Err(RlweError::Parameters { reason });
    let Some([first, ..]) = products.first() else {
        return refuse("there are no products to put side by side; give at least one".into());
    };
    let m = count(params, first.basis())?;
    if products.len() > m || products.iter().flatten().any(|part| part.basis() != first.basis()) {
        return refuse(format!("{} products cannot be put side by side; give 1 to {m} of one ring", products.len()));
    }
    let basis = params.q_at(0);
    let parts = threads::map(3, |part| {
        let mut sum = Poly::<Coeff>::zero(basis);
        for (k, product) in products.iter().enumerate() {
            let mut one = product[part].to_coeff().spread(m, basis);
            one.mul_monomial(k as isize);
            sum.add_assign(&one);
        }
        sum.into_eval()
    });
    Ciphertext::from_parts(params, key, parts, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{ParamsLiteral, SchemeTag};
    use crate::security::{SecretDistribution, Security};
    use sudare_ring::ops::phase;
    use sudare_testkit::Random;

    fn params(log_n: u32, q: &[u64]) -> Params {
        let (secret, security) = (SecretDistribution::Ternary, Security::Insecure);
        let literal = ParamsLiteral { log_n, q_bits: vec![], p_bits: vec![], digit_limbs: 1, secret, security };
        literal.build_over(SchemeTag(1), q, &[]).unwrap()
    }

    /// The phase under s₀(X^m) and s₀²(X^m) has the coefficients of all phases by turns.
    #[test]
    fn phases_stand_side_by_side() {
        let q = 2_147_352_577;
        let (small, large) = (params(9, &[q]), params(11, &[q]));
        let secret = SecretKey::generate(&small).unwrap();
        let mut random = Random(5);
        let mut uniform = || Poly::<Eval>::from_words(small.q(), &random.words(q, 512)).unwrap();
        let products: Vec<[Poly<Eval>; 3]> = (0..3).map(|_| [uniform(), uniform(), uniform()]).collect();
        let found = interleaved(&large, secret.id(), &products).unwrap();
        let secrets = interleaved_secrets(&large, &secret).unwrap();
        let [s, square] = secrets.map(|s| Poly::<Coeff>::from_signed(large.q(), &s).into_eval());
        let mut whole = found.parts()[0].clone();
        whole.mul_add(&found.parts()[1], &s);
        whole.mul_add(&found.parts()[2], &square);
        let whole = whole.into_coeff();
        for k in 0..4 {
            let mut shifted = whole.clone();
            shifted.mul_monomial(-k);
            let part = shifted.every(4, small.q());
            let wanted = match products.get(k as usize) {
                Some(product) => phase(product, secret.s(), 1).into_coeff(),
                None => Poly::<Coeff>::zero(small.q()),
            };
            assert_eq!(part.words(), wanted.words());
        }
        assert!(interleaved(&large, secret.id(), &[]).is_err());
        assert!(interleaved(&small, secret.id(), &products).is_err());
        assert!(interleaved_secrets(&params(11, &[q, 2_147_389_441]), &secret).is_ok());
        assert!(interleaved_secrets(&params(11, &[1_073_692_673]), &secret).is_err());
    }
}
