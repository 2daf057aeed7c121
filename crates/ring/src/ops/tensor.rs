//! Products of ciphertexts' parts, and with powers of a secret.

use super::elementwise::dot_rows;
use super::{Crossing, begins_with};
use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::kernel::Limb;
use crate::poly::{Eval, Poly};
use crate::threads::{for_each_chunk, for_each_mut};

/// Two parts.
type Parts<'a> = [&'a Poly<Eval>; 2];

/// Σ_j (a_0·b_0, a_0·b_1 + a_1·b_0, a_1·b_1) over `basis`, for operands over its primes or more, with one
/// reduction for each value. Limb by limb, so that what the parts share is still near.
///
/// # Panics
/// If the operands are not as many on both sides, or over other primes.
pub fn tensor(basis: &RnsBasis, a: &[Parts<'_>], b: &[Parts<'_>]) -> [Poly<Eval>; 3] {
    let mut out = [Poly::dirty(basis), Poly::dirty(basis), Poly::dirty(basis)];
    for_each_part(basis, &mut out, (a, b), dot_rows);
    out
}

/// `acc += tensor(a, b)`, three parts over `basis`: of the products no more than a limb stands beside the sums.
///
/// # Panics
/// As [`tensor`], and for parts over other primes.
pub fn tensor_add(basis: &RnsBasis, acc: &mut [Poly<Eval>; 3], a: &[Parts<'_>], b: &[Parts<'_>]) {
    assert!(acc.iter().all(|part| part.basis() == basis), "parts over other primes");
    for_each_part(basis, acc, (a, b), |limb, acc, left, right| match (left, right) {
        ([l], [r]) => limb.mul_add(acc, l, r),
        _ => {
            let mut sum = Buffer::dirty(acc.len());
            dot_rows(limb, &mut sum, left, right);
            limb.add_assign(acc, &sum);
        }
    });
}

/// Hands each limb of the three parts to `dot`, with the rows whose products are summed there.
fn for_each_part(
    basis: &RnsBasis,
    [c0, c1, c2]: &mut [Poly<Eval>; 3],
    (a, b): (&[Parts<'_>], &[Parts<'_>]),
    dot: impl Fn(&Limb, &mut [u64], &[&[u64]], &[&[u64]]) + Sync + Send,
) {
    let _crossing = Crossing::begin();
    let operands = a.iter().chain(b).flatten();
    assert!(a.len() == b.len() && { operands }.all(|p| begins_with(p.basis(), basis)), "operands of other bases");
    let n = basis.degree();
    let rest = c1.words_mut().chunks_exact_mut(n).zip(c2.words_mut().chunks_exact_mut(n));
    let mut limbs: Vec<_> = c0.words_mut().chunks_exact_mut(n).zip(rest).collect();
    for_each_mut(&mut limbs, |i, (c0, (c1, c2))| {
        let (a, b) = ([0, 1].map(|part| rows(a, part, i)), [0, 1].map(|part| rows(b, part, i)));
        let limb = basis.limb(i);
        dot(limb, c0, &a[0], &b[0]);
        dot(limb, c1, &a.concat(), &[&b[1][..], &b[0]].concat());
        dot(limb, c2, &a[1], &b[1]);
    });
}

/// Limb `i` of one part of each operand.
fn rows<'a>(side: &[Parts<'a>], part: usize, i: usize) -> Vec<&'a [u64]> {
    side.iter().map(|c| c[part].limb(i)).collect()
}

/// Σ_i c_i·s^i modulo the first `limbs` primes: Horner in s, without a copy of s or of the parts.
///
/// # Panics
/// If a part or s is over fewer primes or others.
pub fn phase(parts: &[Poly<Eval>], s: &Poly<Eval>, limbs: usize) -> Poly<Eval> {
    let _crossing = Crossing::begin();
    let basis = s.basis().prefix(limbs);
    assert!(parts.iter().all(|part| begins_with(part.basis(), &basis)), "parts over other primes");
    let Some((last, rest)) = parts.split_last() else { return Poly::zero(&basis) };
    let mut sum = last.truncated(limbs);
    for part in rest.iter().rev() {
        for_each_chunk(sum.words_mut(), basis.degree(), |i, x| {
            basis.limb(i).mul_assign_add(x, s.limb(i), part.limb(i));
        });
    }
    sum
}
