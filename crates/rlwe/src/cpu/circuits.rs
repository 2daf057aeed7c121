//! Steps of larger circuits: sums of a polynomial, and raising a ciphertext.

use super::Cpu;
use crate::backend::{Combination, Divisor, Raise, RaiseKeys, RaiseMap, ToDense};
use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use crate::keys::GaloisKey;
use crate::params::Params;
use crate::switching::mod_down;
use sudare_ring::ops::{self, Digits, Ending, Image, Pair, PeriodicPoly, images_of_products};
use sudare_ring::{Eval, Poly};

/// Both parts of a ciphertext.
fn pair(a: &Ciphertext) -> Result<&Pair, RlweError> {
    let found = a.parts().len();
    a.parts().first_chunk().ok_or(RlweError::Degree { operation: "a circuit", expected: 2, found })
}

/// ⌊Σ_i ψ_i(m_i·c_0)/p⌉ over all primes, for c_0 modulo q_0, taken as integers.
fn mapped_first(c0: &Poly<Eval>, open: &Params, map: &RaiseMap, keys: &[GaloisKey]) -> Result<Poly<Eval>, RlweError> {
    let tables = open.tables(map.low);
    let lift = map.lift.as_ref().ok_or(RlweError::Internal { what: "a map of raising without its tables" })?;
    let terms: Vec<_> = map.rows.iter().zip(keys.iter().map(GaloisKey::permutation)).collect();
    let sum = images_of_products(&c0.lifted(tables.gadget.qp()), &terms);
    let [quotient] = tables.by_p()?.apply([sum.into_coeff()]);
    Ok(quotient.lifted_by(lift))
}

impl Cpu {
    /// Sums at one level, relinearised and rescaled, so that each limb of the relinearisation key is read from memory once for
    /// all.
    pub(super) fn combined_sums(
        &self,
        sums: &[Combination<'_, Ciphertext, PeriodicPoly>],
        level: usize,
    ) -> Result<Vec<Ciphertext>, RlweError> {
        let params = self.context.params();
        let tables = params.tables(level);
        let none = RlweError::OutOfLevels { operation: "a circuit", needed: 1, level };
        let mut likes = Vec::with_capacity(sums.len());
        let mut parts: Vec<Vec<Poly<Eval>>> = Vec::with_capacity(sums.len());
        for sum in sums {
            let products = sum.products.iter().map(|[a, b]| Ok([pair(a)?, pair(b)?]));
            let multiples = sum.multiples.iter().map(|(v, by)| Ok((pair(v)?, *by)));
            let sum_of = ops::Combination {
                products: products.collect::<Result<_, RlweError>>()?,
                factor: sum.factor,
                multiples: multiples.collect::<Result<_, RlweError>>()?,
                constant: sum.constant,
            };
            parts.push(sum_of.parts(params.q_at(level)));
            likes.push(sum.like);
        }
        let made = |like: &Ciphertext, parts: Vec<Poly<Eval>>| like.with_parts(parts, level - 1);
        if parts.iter().all(|p| p.len() == 3) {
            let key = self.context.keys().relin()?;
            let division = tables.mod_down_rescale.as_ref().ok_or(none)?;
            let batch: Vec<_> =
                parts.iter().map(|p| (&p[2], Ending { division, plus: Some([&p[0], &p[1]]), image: None })).collect();
            let switched = tables.gadget.switch_divided_many(&batch, key.pairs());
            return Ok(likes.iter().zip(switched).map(|(like, pair)| made(like, pair.into())).collect());
        }
        let one = |(like, parts): (&&Ciphertext, Vec<Poly<Eval>>)| match parts.len() {
            3 => self.relinearized(&like.with_parts(parts, level), &Divisor::Last),
            _ => Ok(made(like, tables.rescale.as_ref().ok_or(none.clone())?.of(&parts))),
        };
        likes.iter().zip(parts).map(one).collect()
    }

    /// From modulus q_0 to all primes, by way of a sparse secret.
    ///
    /// c_0 + c_1·s = m modulo q_0, taken as integers, is m + q_0·I. With a sparse secret of weight h, |I| ≤ h/2:
    /// so the ciphertext is switched to it modulo q_0·p, both parts are lifted, and c_1, whose coefficients are
    /// at most q_0/2, is switched back as one digit with one special prime.
    /// Each part after the first has a key of its own to the sparse secret; all of them share one division by p.
    ///
    /// Where keys hold a map, c_1 is multiplied by all of them in place of one key to the dense secret, and what the map
    /// makes of c_0 is computed over the integers, modulo few primes. So one division by p ends the map, and no level goes.
    pub(super) fn raised(a: &Ciphertext, by: &Raise) -> Result<Ciphertext, RlweError> {
        let (Raise { gate, open, top, .. }, RaiseKeys { to_sparse, to_dense }) = (by, by.keys()?);
        let found = a.parts().len();
        let refused = RlweError::Degree { operation: "raising a ciphertext", expected: 1 + to_sparse.len(), found };
        let ([first, others @ ..], [key, keys @ ..]) = (a.parts(), to_sparse.as_slice()) else { return Err(refused) };
        let [second, others @ ..] = others else { return Err(refused) };
        if others.len() != keys.len() {
            return Err(refused);
        }
        let gadget = &gate.tables(0).gadget;
        let mut switched = gadget.switch(second, None, key.pairs());
        for (part, key) in others.iter().zip(keys) {
            let more = gadget.switch(part, None, key.pairs());
            switched.iter_mut().zip(&more).for_each(|(sum, x)| sum.add_assign(x));
        }
        let [mut c0, c1] = mod_down(gate, 0, switched);
        c0.add_assign(first);
        let digit = Digits::of(vec![c1.lifted(open.qp_at(*top))]);
        let gadget = &open.tables(*top).gadget;
        let ([mut d0, d1], first) = match (to_dense, &by.map) {
            (ToDense::Switch(key), None) => {
                (mod_down(open, *top, gadget.product(&digit, key.pairs())), c0.lifted(open.q_at(*top)))
            }
            (ToDense::Map(keys), Some(map)) if keys.len() == map.rows.len() => {
                let images: Vec<Image<'_>> = keys.iter().map(GaloisKey::image).collect();
                (gadget.images_divided(&digit, &images, open.tables(*top).by_p()?), mapped_first(&c0, open, map, keys)?)
            }
            _ => return Err(RlweError::Internal { what: "a ciphertext is raised with keys of another kind" }),
        };
        d0.add_assign(&first);
        Ok(a.with_parts(vec![d0, d1], *top))
    }
}
