//! Pairs of polynomials, packed as an inner product reads them.

use super::Crossing;
use crate::basis::RnsBasis;
use crate::packed::PackedPairs;
use crate::poly::{Eval, Poly};
use crate::threads;

/// Pairs (b_j, a_j) of polynomials over one basis: prime by prime, packed and interleaved as
/// [`crate::Limb::dot_pair_packed`] reads them.
#[derive(Clone, Debug)]
pub struct PolyPairs {
    basis: RnsBasis,
    rows: Vec<PackedPairs>,
}

impl PolyPairs {
    /// Packs pairs.
    ///
    /// # Panics
    /// If there are none, not as many of both, or they are over different bases.
    pub fn new(b: &[Poly<Eval>], a: &[Poly<Eval>]) -> Self {
        let _crossing = Crossing::begin();
        let basis = b[0].basis();
        assert!(a.len() == b.len() && a.iter().chain(b).all(|p| p.basis() == basis), "pairs of different bases");
        let rows = threads::map(basis.len(), |t| {
            let pairs: Vec<_> = b.iter().zip(a).map(|(b, a)| [b.limb(t), a.limb(t)]).collect();
            PackedPairs::new(basis.limb(t), &pairs)
        });
        Self { basis: basis.clone(), rows }
    }

    /// b_j (`part` 0) or a_j (1).
    ///
    /// # Panics
    /// If there is no such polynomial.
    pub fn get(&self, j: usize, part: usize) -> Poly<Eval> {
        let mut out = Poly::dirty(&self.basis);
        out.for_each(|t, _, x| self.rows[t].unpack(j, part, x));
        out
    }

    /// The basis.
    pub fn basis(&self) -> &RnsBasis {
        &self.basis
    }

    /// Number of pairs.
    pub fn terms(&self) -> usize {
        self.rows.first().map_or(0, PackedPairs::terms)
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.rows.iter().map(PackedPairs::bytes).sum()
    }

    /// Bytes that `terms` pairs over primes of so many bits will take.
    pub fn bytes_of(n: usize, bits: impl Iterator<Item = u32>, terms: usize) -> usize {
        bits.map(|bits| PackedPairs::bytes_of(n, bits, terms)).sum()
    }

    /// The pairs modulo prime `t` of q_0 … q_l, p_0 …, of which this basis has more q's between.
    pub(super) fn limb(&self, q: usize, qp: usize, t: usize) -> &PackedPairs {
        &self.rows[if t < q { t } else { t + self.rows.len() - qp }]
    }
}
