//! The negacyclic Fourier transform and products of its values: one source for registers of any width.

use super::complex::{Complex, gather, transposed};
use super::reals::Reals;
use crate::kernel::fourier::{Eight, FourierMatrix, FourierTables, UNIT};
use crate::kernel::{Gadget, MAX_COLUMNS, MAX_GROUPS};

/// 1.5·2^52: what is added to it is rounded to a whole number.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// How far ahead a matrix is asked for, in entries of 128 bytes.
const AHEAD: usize = 32;

/// A root as its cosine and tangent.
type Root<L> = (<L as Reals>::V, <L as Reals>::V);

#[inline(always)]
fn splat<L: Reals>(l: L, [cos, tan]: [f64; 2]) -> Root<L> {
    (l.splat(cos), l.splat(tan))
}

#[inline(always)]
fn root<L: Reals>(l: L, [cos, tan]: &[Eight; 2], part: usize) -> Root<L> {
    (l.load(cos, part), l.load(tan, part))
}

/// `u ± i^TURN·w·v`.
#[inline(always)]
fn butterfly<L: Reals, const TURN: usize>(l: L, u: &mut Complex<L>, v: &mut Complex<L>, (cos, tan): Root<L>) {
    let x = l.neg_mul_add(tan, v.im, v.re);
    let y = l.mul_add(tan, v.re, v.im);
    (*u, *v) = match TURN {
        0 => (
            Complex { re: l.mul_add(cos, x, u.re), im: l.mul_add(cos, y, u.im) },
            Complex { re: l.neg_mul_add(cos, x, u.re), im: l.neg_mul_add(cos, y, u.im) },
        ),
        1 => (
            Complex { re: l.neg_mul_add(cos, y, u.re), im: l.mul_add(cos, x, u.im) },
            Complex { re: l.mul_add(cos, y, u.re), im: l.neg_mul_add(cos, x, u.im) },
        ),
        _ => (
            Complex { re: l.mul_add(cos, y, u.re), im: l.neg_mul_add(cos, x, u.im) },
            Complex { re: l.neg_mul_add(cos, y, u.re), im: l.mul_add(cos, x, u.im) },
        ),
    };
}

/// `u ± v`.
#[inline(always)]
fn sum_difference<L: Reals>(l: L, u: &mut Complex<L>, v: &mut Complex<L>) {
    (*u, *v) = u.add_sub(l, *v);
}

/// `u ± (−i)·v`.
#[inline(always)]
fn sum_difference_turned<L: Reals>(l: L, u: &mut Complex<L>, v: &mut Complex<L>) {
    (*u, *v) = (u.sub_i(l, *v), u.add_i(l, *v));
}

/// What is done with the numbers of the last layer: `at` is their place among eights.
trait Sink<L: Reals>: Copy {
    fn write(self, l: L, at: usize, x: Complex<L>, re: &mut Eight, im: &mut Eight, part: usize);
}

/// Values of a transform.
#[derive(Clone, Copy)]
struct Values;

impl<L: Reals> Sink<L> for Values {
    #[inline(always)]
    fn write(self, l: L, _at: usize, x: Complex<L>, re: &mut Eight, im: &mut Eight, part: usize) {
        x.store(l, re, im, part);
    }
}

/// Numbers modulo q, the smallest in magnitude: `x − c·q` for `c` next to `x/q`, which a double holds exactly for x of magnitude
/// below 2^51·q.
#[derive(Clone, Copy)]
struct Centred<L: Reals> {
    q: L::V,
    inverse: L::V,
    round: L::V,
}

impl<L: Reals> Centred<L> {
    #[inline(always)]
    fn new(l: L, t: &FourierTables) -> Self {
        let q = t.q.value() as f64;
        Self { q: l.splat(q), inverse: l.splat(1.0 / q), round: l.splat(ROUND) }
    }

    /// The whole number next to `x·y`, of magnitude up to 2^51.
    #[inline(always)]
    fn nearest(self, l: L, x: L::V, y: L::V) -> L::V {
        l.sub(l.mul_add(x, y, self.round), self.round)
    }

    #[inline(always)]
    fn reduce(self, l: L, x: L::V) -> L::V {
        l.neg_mul_add(self.nearest(l, x, self.inverse), self.q, x)
    }
}

/// The end of an inverse transform: ζ^(−j)/h, and whole numbers modulo q.
#[derive(Clone, Copy)]
struct Finish<'a, L: Reals> {
    untwist: &'a [[Eight; 2]],
    centred: Centred<L>,
}

impl<L: Reals> Sink<L> for Finish<'_, L> {
    #[inline(always)]
    fn write(self, l: L, at: usize, x: Complex<L>, re: &mut Eight, im: &mut Eight, part: usize) {
        let [cos, sin] = &self.untwist[at];
        let x = x.mul(l, Complex::load(l, cos, sin, part));
        let round = self.centred.round;
        l.store(re, part, l.sub(l.add(self.centred.reduce(l, x.re), round), round));
        l.store(im, part, l.sub(l.add(self.centred.reduce(l, x.im), round), round));
    }
}

/// See [`WordKernels::fourier_from_residues`](crate::kernel::contract::WordKernels::fourier_from_residues).
#[inline(always)]
pub(crate) fn from_residues<L: Reals>(l: L, t: &FourierTables, a: &mut [u64]) {
    let centred = Centred::new(l, t);
    for x in a.as_chunks_mut::<8>().0 {
        for part in 0..L::PARTS {
            let residue = l.load_words(x, part);
            l.store(x, part, centred.reduce(l, residue));
        }
    }
}

/// See [`WordKernels::fourier_to_residues`](crate::kernel::contract::WordKernels::fourier_to_residues).
#[inline(always)]
pub(crate) fn to_residues<L: Reals>(l: L, t: &FourierTables, a: &mut [u64]) {
    let centred = Centred::new(l, t);
    for x in a.as_chunks_mut::<8>().0 {
        for part in 0..L::PARTS {
            let reduced = centred.reduce(l, l.load(x, part));
            l.store_words(x, part, l.add_if_negative(reduced, centred.q));
        }
    }
}

/// See [`WordKernels::fourier_add`](crate::kernel::contract::WordKernels::fourier_add).
#[inline(always)]
pub(crate) fn add<L: Reals>(l: L, t: &FourierTables, a: &mut [u64], b: &[u64]) {
    let centred = Centred::new(l, t);
    for (x, y) in a.as_chunks_mut::<8>().0.iter_mut().zip(b.as_chunks::<8>().0) {
        for part in 0..L::PARTS {
            let sum = l.add(l.load(x, part), l.load(y, part));
            l.store(x, part, centred.reduce(l, sum));
        }
    }
}

/// See [`WordKernels::fourier_digits`](crate::kernel::contract::WordKernels::fourier_digits).
#[inline(always)]
pub(crate) fn digits<L: Reals>(
    l: L,
    t: &FourierTables,
    a: &mut [u64],
    b: Option<&[u64]>,
    gadget: Gadget,
    out: &mut [u64],
) {
    let (centred, rows) = (Centred::new(l, t), gadget.rows(&t.q));
    let (base, scale) = (f64::from(gadget.base_log).exp2(), (-f64::from(gadget.dropped(t.q.bits()))).exp2());
    let (base, base_inverse, scale) = (l.splat(base), l.splat(1.0 / base), l.splat(scale));
    let (a, out) = (a.as_chunks_mut::<8>().0, out.as_chunks_mut::<8>().0);
    let (b, eights) = (b.map(|b| b.as_chunks::<8>().0), t.n / 8);
    for (v, x) in a.iter_mut().enumerate() {
        for part in 0..L::PARTS {
            let mut number = l.load(x, part);
            if let Some(b) = b {
                number = l.add(number, l.load(&b[v], part));
            }
            number = centred.reduce(l, number);
            l.store(x, part, number);
            let mut rest = centred.nearest(l, number, scale);
            for row in (1..rows).rev() {
                let above = centred.nearest(l, rest, base_inverse);
                l.store(&mut out[row * eights + v], part, l.neg_mul_add(above, base, rest));
                rest = above;
            }
            l.store(&mut out[v], part, rest);
        }
    }
}

/// See [`WordKernels::fourier_forward`](crate::kernel::contract::WordKernels::fourier_forward).
#[inline(always)]
pub(crate) fn forward<L: Reals>(l: L, t: &FourierTables, a: &mut [u64]) {
    let (re, im) = a.as_chunks_mut::<8>().0.split_at_mut(t.n / 16);
    let layers = t.forward.len();
    let mut depth = layers % 2;
    if depth == 1 {
        first_two(l, t, re, im);
    }
    while depth < layers {
        forward_four(l, t, depth, re, im);
        depth += 2;
    }
    for ((re, im), w) in re.as_chunks_mut::<{ UNIT / 8 }>().0.iter_mut().zip(im.as_chunks_mut().0).zip(&t.ends) {
        forward_end(l, w, re, im);
    }
}

/// The first layer.
#[inline(always)]
fn first_two<L: Reals>(l: L, t: &FourierTables, re: &mut [Eight], im: &mut [Eight]) {
    let w = splat(l, t.forward[0][0]);
    let half = re.len() / 2;
    let ((re0, re1), (im0, im1)) = (re.split_at_mut(half), im.split_at_mut(half));
    for (((re0, re1), im0), im1) in re0.iter_mut().zip(re1).zip(im0).zip(im1) {
        for part in 0..L::PARTS {
            let (mut u, mut v) = (Complex::load(l, re0, im0, part), Complex::load(l, re1, im1, part));
            butterfly::<L, 0>(l, &mut u, &mut v, w);
            u.store(l, re0, im0, part);
            v.store(l, re1, im1, part);
        }
    }
}

/// Two layers, of blocks of a depth and of their halves.
#[inline(always)]
fn forward_four<L: Reals>(l: L, t: &FourierTables, depth: usize, re: &mut [Eight], im: &mut [Eight]) {
    let block = re.len() >> depth;
    let blocks = re.chunks_exact_mut(block).zip(im.chunks_exact_mut(block));
    let roots = t.forward[depth].iter().zip(t.forward[depth + 1].chunks_exact(2));
    for ((re, im), (first, second)) in blocks.zip(roots) {
        four(l, re, im, [splat(l, *first), splat(l, second[0])]);
    }
}

/// Two layers of one block. Its second half's root is i times that of the first.
#[inline(always)]
fn four<L: Reals>(l: L, re: &mut [Eight], im: &mut [Eight], [first, second]: [Root<L>; 2]) {
    for ([re0, re1, re2, re3], [im0, im1, im2, im3]) in rows(re).zip(rows(im)) {
        for part in 0..L::PARTS {
            let mut x0 = Complex::load(l, re0, im0, part);
            let mut x1 = Complex::load(l, re1, im1, part);
            let mut x2 = Complex::load(l, re2, im2, part);
            let mut x3 = Complex::load(l, re3, im3, part);
            butterfly::<L, 0>(l, &mut x0, &mut x2, first);
            butterfly::<L, 0>(l, &mut x1, &mut x3, first);
            butterfly::<L, 0>(l, &mut x0, &mut x1, second);
            butterfly::<L, 1>(l, &mut x2, &mut x3, second);
            x0.store(l, re0, im0, part);
            x1.store(l, re1, im1, part);
            x2.store(l, re2, im2, part);
            x3.store(l, re3, im3, part);
        }
    }
}

/// The eights of a block's quarters, side by side.
#[inline(always)]
fn rows(x: &mut [Eight]) -> impl Iterator<Item = [&mut Eight; 4]> {
    let quarter = x.len() / 4;
    let (front, back) = x.split_at_mut(2 * quarter);
    let ((x0, x1), (x2, x3)) = (front.split_at_mut(quarter), back.split_at_mut(quarter));
    x0.iter_mut().zip(x1).zip(x2.iter_mut().zip(x3)).map(|((x0, x1), (x2, x3))| [x0, x1, x2, x3])
}

/// The last three layers of eight blocks of eight points, which change places: row e then has element e of each block.
#[inline(always)]
fn forward_end<L: Reals>(l: L, w: &[[Eight; 2]; 4], re: &mut [Eight; 8], im: &mut [Eight; 8]) {
    let (from_re, from_im) = (*re, *im);
    for part in 0..L::PARTS {
        let (re_in, im_in) = (gather(l, from_re.each_ref(), part), gather(l, from_im.each_ref(), part));
        let mut x = [Complex { re: re_in[0], im: im_in[0] }; 8];
        for (x, (re, im)) in x.iter_mut().zip(re_in.into_iter().zip(im_in)) {
            *x = Complex { re, im };
        }
        let (w4, w2) = (root(l, &w[0], part), root(l, &w[1], part));
        let (w1, w1b) = (root(l, &w[2], part), root(l, &w[3], part));
        let (low, high) = x.split_at_mut(4);
        for (u, v) in low.iter_mut().zip(high) {
            butterfly::<L, 0>(l, u, v, w4);
        }
        let [x0, x1, x2, x3, x4, x5, x6, x7] = &mut x;
        butterfly::<L, 0>(l, x0, x2, w2);
        butterfly::<L, 0>(l, x1, x3, w2);
        butterfly::<L, 1>(l, x4, x6, w2);
        butterfly::<L, 1>(l, x5, x7, w2);
        butterfly::<L, 0>(l, x0, x1, w1);
        butterfly::<L, 1>(l, x2, x3, w1);
        butterfly::<L, 0>(l, x4, x5, w1b);
        butterfly::<L, 1>(l, x6, x7, w1b);
        for (e, x) in x.into_iter().enumerate() {
            x.store(l, &mut re[e], &mut im[e], part);
        }
    }
}

/// See [`WordKernels::fourier_inverse`](crate::kernel::contract::WordKernels::fourier_inverse).
#[inline(always)]
pub(crate) fn inverse<L: Reals>(l: L, t: &FourierTables, a: &mut [u64]) {
    let (re, im) = a.as_chunks_mut::<8>().0.split_at_mut(t.n / 16);
    for (re, im) in re.as_chunks_mut::<{ UNIT / 8 }>().0.iter_mut().zip(im.as_chunks_mut().0) {
        inverse_end(l, re, im);
    }
    let layers = t.inverse.len();
    let mut layer = 0;
    while layer + 2 < layers {
        let block = 4usize << layer;
        for (re, im) in re.chunks_exact_mut(block).zip(im.chunks_exact_mut(block)) {
            inverse_four(l, t, layer, re, im, Values);
        }
        layer += 2;
    }
    let finish = Finish { untwist: &t.untwist, centred: Centred::new(l, t) };
    if layer + 2 == layers {
        inverse_four(l, t, layer, re, im, finish);
    } else {
        last_two(l, t, layer, re, im, finish);
    }
}

/// The first three layers of eight blocks of eight points, from the order of [`forward_end`].
#[inline(always)]
fn inverse_end<L: Reals>(l: L, re: &mut [Eight; 8], im: &mut [Eight; 8]) {
    let (from_re, from_im) = (*re, *im);
    let lanes = 8 / L::PARTS;
    let half = splat(l, [std::f64::consts::FRAC_1_SQRT_2, -1.0]);
    for part in 0..L::PARTS {
        let mut x = [Complex::load(l, &from_re[0], &from_im[0], part); 8];
        for (x, (re, im)) in x.iter_mut().zip(from_re.iter().zip(&from_im)).skip(1) {
            *x = Complex::load(l, re, im, part);
        }
        let [x0, x1, x2, x3, x4, x5, x6, x7] = &mut x;
        sum_difference(l, x0, x1);
        sum_difference(l, x2, x3);
        sum_difference(l, x4, x5);
        sum_difference(l, x6, x7);
        sum_difference(l, x0, x2);
        sum_difference_turned(l, x1, x3);
        sum_difference(l, x4, x6);
        sum_difference_turned(l, x5, x7);
        sum_difference(l, x0, x4);
        butterfly::<L, 0>(l, x1, x5, half);
        sum_difference_turned(l, x2, x6);
        butterfly::<L, 3>(l, x3, x7, half);
        let (mut re_out, mut im_out) = ([x[0].re; 8], [x[0].im; 8]);
        for (x, (re, im)) in x.into_iter().zip(re_out.iter_mut().zip(&mut im_out)) {
            (*re, *im) = (x.re, x.im);
        }
        let (re_out, im_out) = (transposed(l, re_out), transposed(l, im_out));
        for (at, (x, y)) in re_out.into_iter().zip(im_out).enumerate() {
            let row = part * lanes + at % lanes;
            Complex { re: x, im: y }.store(l, &mut re[row], &mut im[row], at / lanes);
        }
    }
}

/// Two layers of one block.
#[inline(always)]
fn inverse_four<L: Reals>(
    l: L,
    t: &FourierTables,
    layer: usize,
    re: &mut [Eight],
    im: &mut [Eight],
    sink: impl Sink<L>,
) {
    let quarter = re.len() / 4;
    let (first, second) = (&t.inverse[layer][..quarter], &t.inverse[layer + 1][..quarter]);
    let roots = first.iter().zip(second);
    for (j, (([re0, re1, re2, re3], [im0, im1, im2, im3]), (first, second))) in
        rows(re).zip(rows(im)).zip(roots).enumerate()
    {
        for part in 0..L::PARTS {
            let mut x0 = Complex::load(l, re0, im0, part);
            let mut x1 = Complex::load(l, re1, im1, part);
            let mut x2 = Complex::load(l, re2, im2, part);
            let mut x3 = Complex::load(l, re3, im3, part);
            let (first, second) = (root(l, first, part), root(l, second, part));
            butterfly::<L, 0>(l, &mut x0, &mut x1, first);
            butterfly::<L, 0>(l, &mut x2, &mut x3, first);
            butterfly::<L, 0>(l, &mut x0, &mut x2, second);
            butterfly::<L, 3>(l, &mut x1, &mut x3, second);
            sink.write(l, j, x0, re0, im0, part);
            sink.write(l, quarter + j, x1, re1, im1, part);
            sink.write(l, 2 * quarter + j, x2, re2, im2, part);
            sink.write(l, 3 * quarter + j, x3, re3, im3, part);
        }
    }
}

/// One layer of the whole.
#[inline(always)]
fn last_two<L: Reals>(l: L, t: &FourierTables, layer: usize, re: &mut [Eight], im: &mut [Eight], sink: impl Sink<L>) {
    let half = re.len() / 2;
    let roots = &t.inverse[layer][..half];
    let ((re0, re1), (im0, im1)) = (re.split_at_mut(half), im.split_at_mut(half));
    let (re1, im0, im1) = (&mut re1[..half], &mut im0[..half], &mut im1[..half]);
    for j in 0..half {
        for part in 0..L::PARTS {
            let mut u = Complex::load(l, &re0[j], &im0[j], part);
            let mut v = Complex::load(l, &re1[j], &im1[j], part);
            butterfly::<L, 0>(l, &mut u, &mut v, root(l, &roots[j], part));
            sink.write(l, j, u, &mut re0[j], &mut im0[j], part);
            sink.write(l, half + j, v, &mut re1[j], &mut im1[j], part);
        }
    }
}

/// See [`WordKernels::fourier_product`](crate::kernel::contract::WordKernels::fourier_product).
#[inline(always)]
pub(crate) fn product<L: Reals>(
    l: L,
    t: &FourierTables,
    out: &mut [u64],
    digits: &[u64],
    m: FourierMatrix<'_>,
    exponents: Option<&[usize]>,
) {
    match m.columns {
        1 => columns::<L, 1>(l, t, out, digits, m, exponents),
        2 => columns::<L, 2>(l, t, out, digits, m, exponents),
        3 => columns::<L, 3>(l, t, out, digits, m, exponents),
        4 => columns::<L, 4>(l, t, out, digits, m, exponents),
        5 => columns::<L, 5>(l, t, out, digits, m, exponents),
        _ => columns::<L, MAX_COLUMNS>(l, t, out, digits, m, exponents),
    }
}

#[inline(always)]
fn columns<L: Reals, const C: usize>(
    l: L,
    t: &FourierTables,
    out: &mut [u64],
    digits: &[u64],
    m: FourierMatrix<'_>,
    exponents: Option<&[usize]>,
) {
    let (h, one) = (t.n / 16, l.splat(1.0));
    let mut turns = [[[0; 8]; 2]; MAX_GROUPS];
    for (turn, e) in turns.iter_mut().zip(exponents.unwrap_or(&[])) {
        *turn = t.turns(*e);
    }
    let (digits, out) = (digits.as_chunks::<8>().0, out.as_chunks_mut::<8>().0);
    let zero = Complex { re: l.splat(0.0), im: l.splat(0.0) };
    for (v, entries) in m.values.chunks_exact(m.groups * m.rows * C).enumerate().take(h) {
        for entry in 0..entries.len() {
            let line = entries.as_ptr().wrapping_add(AHEAD + entry).cast::<u8>();
            l.prefetch(line);
            l.prefetch(line.wrapping_add(64));
        }
        for part in 0..L::PARTS {
            let mut sums = [zero; C];
            for (g, group) in entries.chunks_exact(m.rows * C).enumerate() {
                let mut monomial = zero;
                if let Some(exponents) = exponents {
                    let [cos, sin] = t.power(exponents[g], v);
                    let power = Complex { re: l.splat(cos), im: l.splat(sin) };
                    let x = power.mul(l, Complex::load(l, &turns[g][0], &turns[g][1], part));
                    monomial = Complex { re: l.sub(x.re, one), im: x.im };
                }
                for (r, row) in group.as_chunks::<C>().0.iter().enumerate() {
                    let at = 2 * r * h + v;
                    let mut x = Complex::load(l, &digits[at], &digits[at + h], part);
                    if exponents.is_some() {
                        x = x.mul(l, monomial);
                    }
                    for (sum, [re, im]) in sums.iter_mut().zip(row) {
                        *sum = sum.add_product(l, x, Complex::load(l, re, im, part));
                    }
                }
            }
            for (c, sum) in sums.into_iter().enumerate() {
                let [re, im] = [0, h].map(|half| 2 * c * h + half + v);
                l.store(&mut out[re], part, sum.re);
                l.store(&mut out[im], part, sum.im);
            }
        }
    }
}

/// The methods in floating point of [`WordKernels`](crate::kernel::contract::WordKernels), for the registers that `$type` proves, in functions that
/// `$with` compiles for them.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
macro_rules! fourier_methods {
    ($type:ty, $($with:ident)::+) => {
        $($with)::+! { this: &$type;
            fn fft_inverse(t: &crate::kernel::SpecialFft, re: &mut [f64], im: &mut [f64])
                = crate::kernel::generic::special_fft::inverse(*this, t, re, im);
            fn fft_forward(t: &crate::kernel::SpecialFft, re: &mut [f64], im: &mut [f64])
                = crate::kernel::generic::special_fft::forward(*this, t, re, im);
            fn fourier_from_residues(t: &crate::kernel::fourier::FourierTables, a: &mut [u64])
                = crate::kernel::generic::fourier::from_residues(*this, t, a);
            fn fourier_to_residues(t: &crate::kernel::fourier::FourierTables, a: &mut [u64])
                = crate::kernel::generic::fourier::to_residues(*this, t, a);
            fn fourier_add(t: &crate::kernel::fourier::FourierTables, a: &mut [u64], b: &[u64])
                = crate::kernel::generic::fourier::add(*this, t, a, b);
            fn fourier_digits(
                t: &crate::kernel::fourier::FourierTables,
                a: &mut [u64],
                b: Option<&[u64]>,
                gadget: crate::kernel::Gadget,
                out: &mut [u64]
            ) = crate::kernel::generic::fourier::digits(*this, t, a, b, gadget, out);
            fn fourier_forward(t: &crate::kernel::fourier::FourierTables, a: &mut [u64])
                = crate::kernel::generic::fourier::forward(*this, t, a);
            fn fourier_inverse(t: &crate::kernel::fourier::FourierTables, a: &mut [u64])
                = crate::kernel::generic::fourier::inverse(*this, t, a);
            fn fourier_product(
                t: &crate::kernel::fourier::FourierTables,
                out: &mut [u64],
                digits: &[u64],
                m: crate::kernel::fourier::FourierMatrix<'_>,
                exponents: Option<&[usize]>
            ) = crate::kernel::generic::fourier::product(*this, t, out, digits, m, exponents);
        }
    };
}

#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
pub(crate) use fourier_methods;

/// Two doubles in plain Rust: what compilers make registers of on machines of any kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pairs;

/// The bits of 2^52, whose lowest ones are those of a small integer that is added.
const WORD: u64 = 0x4330_0000_0000_0000;
/// 2^52.
const TWO52: f64 = (1u64 << 52) as f64;

#[inline(always)]
fn each(x: [f64; 2], y: [f64; 2], op: impl Fn(f64, f64) -> f64) -> [f64; 2] {
    [op(x[0], y[0]), op(x[1], y[1])]
}

impl Reals for Pairs {
    type V = [f64; 2];
    const PARTS: usize = 4;

    #[inline(always)]
    fn splat(self, x: f64) -> [f64; 2] {
        [x; 2]
    }
    #[inline(always)]
    fn load(self, x: &Eight, part: usize) -> [f64; 2] {
        x.as_chunks().0[part].map(f64::from_bits)
    }
    #[inline(always)]
    fn store(self, x: &mut Eight, part: usize, v: [f64; 2]) {
        x.as_chunks_mut().0[part] = v.map(f64::to_bits);
    }
    #[inline(always)]
    fn load_words(self, x: &Eight, part: usize) -> [f64; 2] {
        x.as_chunks().0[part].map(|x| f64::from_bits(x | WORD) - TWO52)
    }
    #[inline(always)]
    fn store_words(self, x: &mut Eight, part: usize, v: [f64; 2]) {
        x.as_chunks_mut().0[part] = v.map(|v| (v + TWO52).to_bits() ^ WORD);
    }
    #[inline(always)]
    fn add(self, x: [f64; 2], y: [f64; 2]) -> [f64; 2] {
        each(x, y, |x, y| x + y)
    }
    #[inline(always)]
    fn sub(self, x: [f64; 2], y: [f64; 2]) -> [f64; 2] {
        each(x, y, |x, y| x - y)
    }
    #[inline(always)]
    fn mul(self, x: [f64; 2], y: [f64; 2]) -> [f64; 2] {
        each(x, y, |x, y| x * y)
    }
    #[inline(always)]
    fn mul_add(self, x: [f64; 2], y: [f64; 2], z: [f64; 2]) -> [f64; 2] {
        self.add(self.mul(x, y), z)
    }
    #[inline(always)]
    fn neg_mul_add(self, x: [f64; 2], y: [f64; 2], z: [f64; 2]) -> [f64; 2] {
        self.sub(z, self.mul(x, y))
    }
    #[inline(always)]
    fn add_if_negative(self, x: [f64; 2], y: [f64; 2]) -> [f64; 2] {
        each(x, y, |x, y| x + if x < 0.0 { y } else { 0.0 })
    }
    #[inline(always)]
    fn transpose(self, mut v: [[f64; 2]; 8]) -> [[f64; 2]; 8] {
        (v[0], v[1]) = ([v[0][0], v[1][0]], [v[0][1], v[1][1]]);
        v
    }
}
