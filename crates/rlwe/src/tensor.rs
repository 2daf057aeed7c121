//! Tensor products of ciphertexts: Σ (a_0·b_0, a_0·b_1 + a_1·b_0, a_1·b_1).

use sudare_ring::buffer::Buffer;
use sudare_ring::kernel::MAX_TERMS;
use sudare_ring::{Eval, Limb, Poly, RnsBasis, threads};

/// Σ_j l_j·r_j for any number of terms.
fn sum(limb: &Limb, out: &mut [u64], left: &[&[u64]], right: &[&[u64]]) {
    for (at, (l, r)) in left.chunks(MAX_TERMS).zip(right.chunks(MAX_TERMS)).enumerate() {
        if at == 0 {
            limb.dot(out, l, r);
        } else {
            let mut more = Buffer::dirty(out.len());
            limb.dot(&mut more, l, r);
            limb.add_assign(out, &more);
        }
    }
}

/// The three parts over `basis`, with one reduction for each value; `limb_of(x, part, i)` is limb `i` of a part
/// of an operand. Limb by limb, so that what the parts share is still near.
pub fn tensor<'a, T: Sync>(
    basis: &RnsBasis,
    a: &'a [T],
    b: &'a [T],
    limb_of: impl Fn(&'a T, usize, usize) -> &'a [u64] + Sync,
) -> [Poly<Eval>; 3] {
    let n = basis.degree();
    let mut out = [Poly::dirty(basis), Poly::dirty(basis), Poly::dirty(basis)];
    let [c0, c1, c2] = &mut out;
    let rest = c1.words_mut().chunks_exact_mut(n).zip(c2.words_mut().chunks_exact_mut(n));
    let mut limbs: Vec<_> = c0.words_mut().chunks_exact_mut(n).zip(rest).collect();
    threads::for_each_mut(&mut limbs, |i, (c0, (c1, c2))| {
        let rows = |side: &'a [T], part| side.iter().map(|c| limb_of(c, part, i)).collect::<Vec<&[u64]>>();
        let (a0, a1, b0, b1) = (rows(a, 0), rows(a, 1), rows(b, 0), rows(b, 1));
        let limb = basis.limb(i);
        sum(limb, c0, &a0, &b0);
        sum(limb, c1, &[&a0[..], &a1[..]].concat(), &[&b1[..], &b0[..]].concat());
        sum(limb, c2, &a1, &b1);
    });
    out
}
