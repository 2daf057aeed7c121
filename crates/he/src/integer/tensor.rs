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

/// The three parts, with one reduction for each value; `limb_of(x, part, i)` is limb `i` of a part
/// of an operand.
pub(crate) fn tensor<'a, T: Sync>(
    basis: &RnsBasis,
    a: &'a [T],
    b: &'a [T],
    limb_of: impl Fn(&'a T, usize, usize) -> &'a [u64] + Sync,
) -> [Poly<Eval>; 3] {
    let part = |terms: &[(usize, usize)]| {
        let mut out = Poly::dirty(basis);
        threads::for_each_chunk(out.words_mut(), basis.degree(), |i, x| {
            let left: Vec<_> = terms.iter().flat_map(|(p, _)| a.iter().map(|c| limb_of(c, *p, i))).collect();
            let right: Vec<_> = terms.iter().flat_map(|(_, p)| b.iter().map(|c| limb_of(c, *p, i))).collect();
            sum(basis.limb(i), x, &left, &right);
        });
        out
    };
    [part(&[(0, 0)]), part(&[(0, 1), (1, 0)]), part(&[(1, 1)])]
}
