//! Products of ciphertexts' parts, and with powers of a secret.

use super::elementwise::dot_rows;
use super::{Crossing, begins_with, runs};
use crate::basis::RnsBasis;
use crate::buffer::Buffer;
use crate::kernel::Limb;
use crate::poly::{Coeff, Eval, Poly};
use crate::threads::{for_each_chunk, for_each_mut};
use std::ops::Range;
use zeroize::Zeroize;

/// Two parts.
type Parts<'a> = [&'a Poly<Eval>; 2];

/// Words of all operands that one pass works on: they stay in the second cache while three sums read them.
const RUN: usize = 1 << 17;

/// Σ_j (a_0·b_0, a_0·b_1 + a_1·b_0, a_1·b_1) over `basis`, for operands over its primes or more, with one
/// reduction for each value. Limb by limb, so that what the parts share is still near.
///
/// # Panics
/// If the operands are not as many on both sides, or over other primes.
pub fn tensor(basis: &RnsBasis, a: &[Parts<'_>], b: &[Parts<'_>]) -> [Poly<Eval>; 3] {
    let mut out = [[Poly::dirty(basis), Poly::dirty(basis), Poly::dirty(basis)]];
    for_each_part(basis, &mut out, (&[a], b), dot_rows);
    let [out] = out;
    out
}

/// [`tensor`] of each list of some and one: of many terms, what that one has is read from memory once for all lists.
///
/// # Panics
/// As [`tensor`].
pub fn tensors(basis: &RnsBasis, lists: &[&[Parts<'_>]], b: &[Parts<'_>]) -> Vec<[Poly<Eval>; 3]> {
    let mut out = Vec::with_capacity(lists.len());
    out.resize_with(lists.len(), || [0; 3].map(|_| Poly::dirty(basis)));
    for_each_part(basis, &mut out, (lists, b), dot_rows);
    out
}

/// `acc += tensor(a, b)`, three parts over `basis`: of the products no more than a limb stands beside the sums.
///
/// # Panics
/// As [`tensor`], and for parts over other primes.
pub fn tensor_add(basis: &RnsBasis, acc: &mut [Poly<Eval>; 3], a: &[Parts<'_>], b: &[Parts<'_>]) {
    assert!(acc.iter().all(|part| part.basis() == basis), "parts over other primes");
    let add = |limb: &Limb, acc: &mut [u64], left: &[&[u64]], right: &[&[u64]]| match (left, right) {
        ([l], [r]) => limb.mul_add(acc, l, r),
        _ => {
            let mut sum = Buffer::dirty(acc.len());
            dot_rows(limb, &mut sum, left, right);
            limb.add_assign(acc, &sum);
        }
    };
    for_each_part(basis, std::slice::from_mut(acc), (&[a], b), add);
}

/// Hands some words of the three parts to `dot`, with the rows whose products are summed there: whole limbs of few terms.
fn for_each_part(
    basis: &RnsBasis,
    outs: &mut [[Poly<Eval>; 3]],
    (lists, b): (&[&[Parts<'_>]], &[Parts<'_>]),
    dot: impl Fn(&Limb, &mut [u64], &[&[u64]], &[&[u64]]) + Sync + Send,
) {
    let _crossing = Crossing::begin();
    let operands = lists.iter().flat_map(|a| a.iter()).chain(b).flatten();
    assert!(
        lists.iter().all(|a| a.len() == b.len()) && { operands }.all(|p| begins_with(p.basis(), basis)),
        "operands of other bases"
    );
    let n = basis.degree();
    let run = (RUN / (4 * b.len().max(1))).max(256).next_power_of_two().min(n);
    let mut parts = runs(outs.iter_mut().flatten().map(Poly::words_mut), run);
    for_each_mut(&mut parts, |at, sums| {
        let (i, from) = (at * run / n, at * run % n);
        let at = from..from + run;
        let (limb, b) = (basis.limb(i), both_rows(b, i, &at));
        let crossed = [&b[1][..], &b[0]].concat();
        for (a, sums) in lists.iter().zip(sums.chunks_exact_mut(3)) {
            let ([c0, c1, c2], a) = (sums, both_rows(a, i, &at)) else { continue };
            dot(limb, c0, &a[0], &b[0]);
            dot(limb, c1, &a.concat(), &crossed);
            dot(limb, c2, &a[1], &b[1]);
        }
    });
}

/// Some words of limb `i` of both parts of each operand.
fn both_rows<'a>(side: &[Parts<'a>], i: usize, at: &Range<usize>) -> [Vec<&'a [u64]>; 2] {
    [0, 1].map(|part| side.iter().map(|c| &c[part].limb(i)[at.clone()]).collect())
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

/// [`phase`] in coefficient form: the last product and sum are found by the inverse transform, where it comes to them.
///
/// # Panics
/// As [`phase`].
pub fn phase_coefficients(parts: &[Poly<Eval>], s: &Poly<Eval>, limbs: usize) -> Poly<Coeff> {
    let _crossing = Crossing::begin();
    let basis = s.basis().prefix(limbs);
    let [first, rest @ ..] = parts else { return Poly::zero(&basis) };
    assert!(begins_with(first.basis(), &basis), "parts over other primes");
    let mut out = Poly::<Coeff>::dirty(&basis);
    match rest {
        [] => return first.first_to_coeff(limbs),
        [second] => {
            assert!(begins_with(second.basis(), &basis), "parts over other primes");
            out.for_each(|i, l, x| l.inverse_of_sum(x, second.limb(i), s.limb(i), first.limb(i)));
        }
        _ => {
            let mut sum = phase(rest, s, limbs);
            out.for_each(|i, l, x| l.inverse_of_sum(x, sum.limb(i), s.limb(i), first.limb(i)));
            sum.zeroize();
        }
    }
    out
}
