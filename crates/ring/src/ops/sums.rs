//! Sums of a ciphertext's images under automorphisms.

use super::gadget::limbs_of;
use super::{Crossing, Digits, Pair, PolyPairs, RnsGadget};
use crate::automorphism::EvalPermutation;
use crate::buffer::Buffer;
use crate::count::{self, What};
use crate::poly::{Eval, Poly};
use crate::threads;

/// An automorphism: the pairs that switch back, and the permutation of values.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    /// Pairs that hold P·g_j·s' for the s' that the automorphism takes to s.
    pub pairs: &'a PolyPairs,
    /// The automorphism.
    pub permutation: &'a EvalPermutation,
}

impl RnsGadget {
    /// Σ_g ψ_g(P·c_0 + ⟨d, ek_g⟩) over Q·P for the digits d of c_1: the loops of HoistKS (`004`,
    /// Algorithm 3.2.1) without its division, so that any number of terms shares one. `None` is the identity.
    ///
    /// Limb by limb: the digits' rows and both sums stay in the cache while the pairs stream past.
    /// Work is cut by limbs, and by terms as well where there are more threads than limbs; each part
    /// has sums of its own, so nothing waits inside.
    ///
    /// # Panics
    /// As [`RnsGadget::products_divided`].
    pub fn sum_of_images(&self, c: [&Poly<Eval>; 2], digits: &Digits, images: &[Option<Image<'_>>]) -> Pair {
        let _crossing = Crossing::begin();
        count::add(What::InnerProducts, images.iter().flatten().count());
        let (basis, n) = (self.qp(), self.qp().degree());
        let mut out = [self.dirty()];
        let groups = threads::count().div_ceil(basis.len()).min(images.len());
        if groups <= 1 {
            threads::for_each_mut(&mut limbs_of(&mut out, n), |t, outs| {
                outs.iter_mut().for_each(|[x, y]| self.limb_of_images(t, c, digits, images, [x, y]));
            });
            let [pair] = out;
            return pair;
        }
        let cuts: Vec<_> = images.chunks(images.len().div_ceil(groups)).collect();
        let partial = threads::map(basis.len() * cuts.len(), |at| {
            let (mut x, mut y) = (Buffer::dirty(n), Buffer::dirty(n));
            self.limb_of_images(at / cuts.len(), c, digits, cuts[at % cuts.len()], [&mut x, &mut y]);
            [x, y]
        });
        threads::for_each_mut(&mut limbs_of(&mut out, n), |t, outs| {
            let [first, more @ ..] = &partial[t * cuts.len()..(t + 1) * cuts.len()] else { return };
            for [x, y] in outs {
                x.copy_from_slice(&first[0]);
                y.copy_from_slice(&first[1]);
                for [u, v] in more {
                    basis.limb(t).add_assign(x, u);
                    basis.limb(t).add_assign(y, v);
                }
            }
        });
        let [pair] = out;
        pair
    }

    /// Limb `t` of both sums.
    fn limb_of_images(
        &self,
        t: usize,
        [c0, c1]: [&Poly<Eval>; 2],
        digits: &Digits,
        images: &[Option<Image<'_>>],
        [x, y]: [&mut [u64]; 2],
    ) {
        let (limb, n) = (self.qp().limb(t), self.qp().degree());
        let digits = digits.limb(t);
        let start = self.scaled_limb(c0, t);
        let (mut u, mut v) = (Buffer::dirty(n), Buffer::dirty(n));
        let mut empty = true;
        for Image { pairs, permutation } in images.iter().flatten() {
            limb.dot_pair_packed([&mut u, &mut v], &digits, self.pairs(pairs, t), start.as_deref());
            for (sum, image) in [(&mut *x, &u), (&mut *y, &v)] {
                match empty {
                    true => permutation.apply(sum, image),
                    false => permutation.apply_add(limb.modulus(), sum, image),
                }
            }
            empty = false;
        }
        if empty {
            x.fill(0);
            y.fill(0);
        }
        for _ in images.iter().filter(|image| image.is_none()) {
            if let (Some(start), Some(second)) = (&start, self.scaled_limb(c1, t)) {
                limb.add_assign(x, start);
                limb.add_assign(y, &second);
            }
        }
    }

    /// Limb `t` of P·c for c over Q; none modulo the primes of P, where it is zero.
    pub(super) fn scaled_limb(&self, c: &Poly<Eval>, t: usize) -> Option<Buffer> {
        self.p(t).map(|p| {
            let mut out = Buffer::from_slice(c.limb(t));
            self.qp().limb(t).mul_scalar(&mut out, p);
            out
        })
    }
}
