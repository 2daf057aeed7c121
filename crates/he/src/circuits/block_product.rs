//! The product of a block row with a block column of encrypted matrices over R' (Cheon–Kang–Lee, ePrint 2025/1957).
//!
//! Row-encoded ciphertexts (b_i, a_i) stack to M = B + A·S; those of the transpose, M column-encoded, to
//! M = Bᵀ + Sᵀ·Aᵀ. For M1 column-encoded and M2 row-encoded
//!
//! M1·M2 = B1·B2 + (B1·A2)·S + Sᵀ·(A1·B2) + Sᵀ·(A1·A2)·S:
//!
//! four plain products ([`AtPoints::products`]), a transposition ([`super::transpose`]) and, for two parts, a
//! relinearisation of each row.

use super::transpose::{elements, transpose_pair};
use crate::ckks::noise::division_bound;
use crate::ckks::{Ciphertext, Evaluator, Params, State};
use crate::error::HeError;
use std::sync::Arc;
use sudare_ring::ops::{AtPoints, PointProduct, PointProducts};
use sudare_ring::{Coeff, Eval, Poly, RingError, Shoup, threads};
use sudare_rlwe::keys::KeySwitchKey;
use sudare_rlwe::{Counters, KeyId};

/// What the products of all blocks of one encrypted product share.
pub struct BlockProduct<'a> {
    evaluator: &'a Evaluator,
    key: KeyId,
    level: usize,
    state: State,
    side: usize,
    relin: Option<Arc<KeySwitchKey>>,
    /// 1/d modulo each prime.
    side_inverse: Vec<Shoup>,
}

impl<'a> BlockProduct<'a> {
    /// Blocks of `side` rows of operands under `key` at a level, with the state of their products before any rescale.
    /// Relinearised results have two parts and lose a level, where there is one; others have three.
    ///
    /// # Errors
    /// As [`Evaluator::check_keys`] for the transposition's [`elements`]; as [`Evaluator::relinearize`] if that is
    /// wanted; `RlweError::Parameters` without special primes.
    pub fn new(
        evaluator: &'a Evaluator,
        key: KeyId,
        (level, state): (usize, State),
        (side, relinearize): (usize, bool),
    ) -> Result<Self, HeError> {
        let params = evaluator.params();
        params.expect_level("block product", level)?;
        evaluator.check_keys(&elements(params.degree(), side).collect::<Vec<_>>(), level)?;
        if relinearize {
            evaluator.inner.check_relin(level)?;
        }
        let relin = relinearize.then(|| evaluator.keys().relin()).transpose()?;
        let side_inverse = params.q_at(level).moduli().map(|q| Ok(q.shoup(q.inverse(side as u64)?)));
        let side_inverse = side_inverse.collect::<Result<_, RingError>>()?;
        Ok(Self { evaluator, key, level, state, side, relin, side_inverse })
    }

    fn params(&self) -> &Params {
        self.evaluator.params()
    }

    /// Brings a block's ciphertexts, of two parts and no lower level, to the points of R'.
    pub fn prepare(&self, block: &[Ciphertext]) -> AtPoints {
        let pairs: Vec<_> = block.iter().map(|c| c.inner().both()).collect();
        AtPoints::new(self.params().q_at(self.level), self.side, &pairs)
    }

    /// Row `i` of a transposed product as the transposition takes it: times X^i / d.
    fn twisted(&self, products: &PointProducts, which: PointProduct, i: usize) -> Poly<Coeff> {
        let mut row = products.row(which, i);
        row.mul_scalars(&self.side_inverse);
        row.mul_monomial(i as isize);
        row
    }

    /// The first `rows` rows of the product of a block row with a block column.
    ///
    /// # Errors
    /// Those of keys that are gone since [`BlockProduct::new`].
    pub fn multiply(&self, left: &AtPoints, right: &AtPoints, rows: usize) -> Result<Vec<Ciphertext>, HeError> {
        let products = left.products(right);
        let known = |which| threads::map(self.side, |i| self.twisted(&products, which, i));
        let plain = |which| threads::map(rows, |i| products.row(which, i));
        let (x, z) = (known(PointProduct::BATransposed), known(PointProduct::AATransposed));
        let (b, a) = (plain(PointProduct::BB), plain(PointProduct::BA));
        drop(products);
        let [c0, c1, c2] = transpose_pair(self.evaluator, x, z)?;
        let parts: Vec<_> = c0.into_iter().zip(c1).zip(c2).zip(b.into_iter().zip(a)).collect();
        let done = threads::map_into(parts, |_, (((c0, c1), c2), plain)| self.finish([c0, c1, c2], plain));
        let switches = 2 * (self.side - 1) as u64;
        let relin = if self.relin.is_some() { done.len() as u64 } else { 0 };
        self.evaluator.record(Counters { rot: switches, relin, key_switches: switches + relin, ..Counters::default() });
        done.into_iter().collect()
    }

    /// One row of the result from (c_0, c_1, c_2) over Q·P, P times too large, and the parts
    /// that no key switching was needed for.
    fn finish(&self, [c0, c1, c2]: [Poly<Coeff>; 3], plain: (Poly<Coeff>, Poly<Coeff>)) -> Result<Ciphertext, HeError> {
        let (params, level, State { scale, bound, noise }) = (self.params(), self.level, self.state);
        let tables = params.tables(level);
        let mod_down = tables.by_p()?;
        let Some(key) = &self.relin else {
            let [mut c0, mut c1, c2] = mod_down.apply([c0, c1, c2]);
            c0.add_assign(&plain.0);
            c1.add_assign(&plain.1);
            return self.assembled([c0, c1, c2].map(Poly::into_eval).into(), level, self.state);
        };
        let [square] = mod_down.apply([c2]);
        let [k0, k1] = tables.gadget.switch(&square, None, key.pairs()).map(Poly::into_coeff);
        let sum = |mut c: Poly<Coeff>, k: &Poly<Coeff>, plain: &Poly<Coeff>| {
            c.add_assign(k);
            tables.gadget.add_scaled(&mut c, plain);
            c
        };
        let sums = [sum(c0, &k0, &plain.0), sum(c1, &k1, &plain.1)];
        let Some(rescaling) = &tables.mod_down_rescale else {
            return self.assembled(mod_down.apply(sums).map(Poly::into_eval).into(), 0, self.state);
        };
        let prime = params.prime_at(level) as f64;
        let state = State { scale: scale / prime, bound, noise: noise / prime + division_bound(params, 2) };
        self.assembled(rescaling.apply(sums).map(Poly::into_eval).into(), level - 1, state)
    }

    fn assembled(&self, parts: Vec<Poly<Eval>>, level: usize, state: State) -> Result<Ciphertext, HeError> {
        let inner = sudare_rlwe::Ciphertext::from_parts(self.params(), self.key, parts, level)?;
        Ciphertext::from_parts(inner, state)
    }
}
