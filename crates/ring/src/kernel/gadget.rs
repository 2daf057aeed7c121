//! Signed digits of residues, and sums of scaled rows of 32-bit words: plain loops, compiled
//! twice, so that the AVX-512 families get them vectorised.

use super::Family;
use crate::modulus::Modulus;

/// A signed gadget decomposition: `levels` digits of `base_log` bits.
///
/// For a modulus of `b` bits the gadget is `g_l = 2^(b − l·base_log)`, `l = 1..=levels`; the bits
/// below `g_levels` are rounded away. Digits lie in `[−B/2, B/2)` for `B = 2^base_log`, except
/// the first, which takes what is left and lies in `[−B/2, B/2]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gadget {
    /// log2 of the base B.
    pub base_log: u32,
    /// Number of digits.
    pub levels: u32,
}

impl Gadget {
    /// Bits that the decomposition drops from a number of `bits` bits.
    ///
    /// # Panics
    /// If the gadget has no digits or more bits than the modulus.
    pub const fn dropped(&self, bits: u32) -> u32 {
        assert!(self.base_log > 0 && self.levels > 0, "a gadget without digits");
        match self.base_log.checked_mul(self.levels) {
            Some(taken) if taken <= bits => bits - taken,
            _ => panic!("a gadget of more bits than the modulus"),
        }
    }

    /// Rows of digits modulo `q`: at most as many as it has bits.
    pub(super) fn rows(&self, q: &Modulus) -> usize {
        self.dropped(q.bits());
        self.levels as usize
    }

    /// log2 of `g_l`, `l` from 0 for the most significant digit.
    pub const fn log_weight(&self, bits: u32, l: u32) -> u32 {
        self.dropped(bits) + self.base_log * (self.levels - 1 - l)
    }
}

/// Values that are decomposed together: their digits stay in registers or in the L1 cache.
const BLOCK: usize = 64;

/// What the digits of a block need to know.
#[derive(Clone, Copy)]
struct Digits {
    q: i64,
    half_q: u64,
    drop: u32,
    base_log: u32,
    levels: usize,
}

impl Digits {
    #[inline(always)]
    fn new(q: &Modulus, gadget: Gadget) -> Self {
        Self {
            q: q.value() as i64,
            half_q: q.value() / 2,
            drop: gadget.dropped(q.bits()),
            base_log: gadget.base_log,
            levels: gadget.levels as usize,
        }
    }

    /// The rounded quotient by the last weight, of the representative in `(−q/2, q/2]`.
    #[inline(always)]
    fn rounded(self, x: u64) -> i64 {
        let centered = x as i64 - if x > self.half_q { self.q } else { 0 };
        (centered + ((1i64 << self.drop) >> 1)) >> self.drop
    }

    /// Digits of a block of rounded quotients, to rows of n words.
    #[inline(always)]
    fn write(self, t: &mut [i64; BLOCK], out: &mut [u64], n: usize, at: usize) {
        let (half, mask) = (1i64 << (self.base_log - 1), (1i64 << self.base_log) - 1);
        for l in (1..self.levels).rev() {
            for (o, t) in out[l * n + at..l * n + at + BLOCK].iter_mut().zip(t.iter_mut()) {
                let digit = ((*t + half) & mask) - half;
                *t = (*t - digit) >> self.base_log;
                *o = (digit + (self.q & (digit >> 63))) as u64;
            }
        }
        for (o, t) in out[at..at + BLOCK].iter_mut().zip(t.iter()) {
            *o = (*t + (self.q & (*t >> 63))) as u64;
        }
    }
}

#[inline(always)]
fn decompose_plain(q: &Modulus, gadget: Gadget, n: usize, out: &mut [u64]) {
    let digits = Digits::new(q, gadget);
    let mut t = [0i64; BLOCK];
    for at in (0..n).step_by(BLOCK) {
        for (t, x) in t.iter_mut().zip(&out[at..at + BLOCK]) {
            *t = digits.rounded(*x);
        }
        digits.write(&mut t, out, n, at);
    }
}

#[inline(always)]
fn add_decompose_plain(q: &Modulus, gadget: Gadget, acc: &mut [u64], b: &[u64], out: &mut [u64]) {
    let (digits, n) = (Digits::new(q, gadget), acc.len());
    let mut t = [0i64; BLOCK];
    for at in (0..n).step_by(BLOCK) {
        for ((t, x), y) in t.iter_mut().zip(&mut acc[at..at + BLOCK]).zip(&b[at..at + BLOCK]) {
            let sum = *x + *y;
            *x = sum.min(sum.wrapping_sub(q.value()));
            *t = digits.rounded(*x);
        }
        digits.write(&mut t, out, n, at);
    }
}

#[inline(always)]
fn rotate_minus_plain(q: &Modulus, steps: usize, out: &mut [u64], src: &[u64]) {
    let (n, q) = (src.len(), q.value());
    let (shift, negative) = if steps >= n { (steps - n, true) } else { (steps, false) };
    let (wrapped, straight) = out.split_at_mut(shift);
    // Coefficient i of X^shift · a is −a[n − shift + i] below `shift`, a[i − shift] from there on.
    let segment = |out: &mut [u64], from: &[u64], own: &[u64], negative: bool| {
        if negative {
            for ((o, x), y) in out.iter_mut().zip(from).zip(own) {
                // −x − y, in (−2q, 0].
                let sum = *x + *y;
                let r = 2 * q - sum;
                let r = r.min(r.wrapping_sub(q));
                *o = r.min(r.wrapping_sub(q));
            }
        } else {
            for ((o, x), y) in out.iter_mut().zip(from).zip(own) {
                let r = x.wrapping_sub(*y);
                *o = r.min(r.wrapping_add(q));
            }
        }
    };
    segment(wrapped, &src[n - shift..], &src[..shift], !negative);
    segment(straight, &src[..n - shift], &src[shift..], negative);
}

#[inline(always)]
fn rotate_plain(q: &Modulus, steps: usize, out: &mut [u64], src: &[u64]) {
    let n = src.len();
    let (shift, negative) = if steps >= n { (steps - n, true) } else { (steps, false) };
    let (wrapped, straight) = out.split_at_mut(shift);
    let segment = |out: &mut [u64], from: &[u64], negative: bool| {
        if negative {
            out.iter_mut().zip(from).for_each(|(o, x)| *o = q.neg(*x));
        } else {
            out.copy_from_slice(from);
        }
    };
    segment(wrapped, &src[n - shift..], !negative);
    segment(straight, &src[..n - shift], negative);
}

/// Rows that one pass over the accumulator adds.
const ROWS: usize = 8;

#[inline(always)]
fn sub_scaled_rows_plain(acc: &mut [u32], rows: &[u32], digits: &[i32]) {
    let len = acc.len();
    let mut blocks = rows.chunks_exact(ROWS * len);
    let mut factors = digits.chunks_exact(ROWS);
    for (block, d) in (&mut blocks).zip(&mut factors) {
        let (r0, rest) = block.split_at(len);
        let (r1, rest) = rest.split_at(len);
        let (r2, rest) = rest.split_at(len);
        let (r3, rest) = rest.split_at(len);
        let (r4, rest) = rest.split_at(len);
        let (r5, rest) = rest.split_at(len);
        let (r6, r7) = rest.split_at(len);
        let d: [u32; ROWS] = std::array::from_fn(|i| d[i] as u32);
        for (i, a) in acc.iter_mut().enumerate() {
            let low = r0[i].wrapping_mul(d[0]).wrapping_add(r1[i].wrapping_mul(d[1]));
            let low = low.wrapping_add(r2[i].wrapping_mul(d[2])).wrapping_add(r3[i].wrapping_mul(d[3]));
            let high = r4[i].wrapping_mul(d[4]).wrapping_add(r5[i].wrapping_mul(d[5]));
            let high = high.wrapping_add(r6[i].wrapping_mul(d[6])).wrapping_add(r7[i].wrapping_mul(d[7]));
            *a = a.wrapping_sub(low).wrapping_sub(high);
        }
    }
    for (row, d) in blocks.remainder().chunks_exact(len).zip(factors.remainder()) {
        for (a, x) in acc.iter_mut().zip(row) {
            *a = a.wrapping_sub(x.wrapping_mul(*d as u32));
        }
    }
}

/// Compiles a plain loop for every machine and once more with AVX-512, and picks by family.
macro_rules! twice {
    ($(#[$meta:meta])* $name:ident, $wide:ident, $plain:ident, ($($arg:ident: $type:ty),*)) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512dq")]
        fn $wide($($arg: $type),*) {
            $plain($($arg),*);
        }

        $(#[$meta])*
        pub(super) fn $name(family: Family, $($arg: $type),*) {
            match family {
                Family::Portable => $plain($($arg),*),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: a family that is not portable is chosen only where these features were found.
                _ => unsafe { $wide($($arg),*) },
                #[cfg(not(target_arch = "x86_64"))]
                _ => $plain($($arg),*),
            }
        }
    };
}

twice!(decompose, decompose_wide, decompose_plain, (q: &Modulus, gadget: Gadget, n: usize, out: &mut [u64]));
twice!(add_decompose, add_decompose_wide, add_decompose_plain,
    (q: &Modulus, gadget: Gadget, acc: &mut [u64], b: &[u64], out: &mut [u64]));
twice!(rotate_minus, rotate_minus_wide, rotate_minus_plain, (q: &Modulus, steps: usize, out: &mut [u64], src: &[u64]));
twice!(rotate, rotate_wide, rotate_plain, (q: &Modulus, steps: usize, out: &mut [u64], src: &[u64]));
twice!(scaled_rows, scaled_rows_wide, sub_scaled_rows_plain, (acc: &mut [u32], rows: &[u32], digits: &[i32]));

/// `acc −= Σ_r digits[r] · row_r` modulo 2^32, for rows of `acc.len()` words one after the other:
/// the inner loop of an LWE key switch.
///
/// # Panics
/// If the lengths do not fit together, or `family` is not available on this machine.
pub fn sub_scaled_rows(family: Family, acc: &mut [u32], rows: &[u32], digits: &[i32]) {
    assert!(family.available() && Some(rows.len()) == acc.len().checked_mul(digits.len()), "rows of another length");
    if acc.is_empty() {
        return;
    }
    scaled_rows(family, acc, rows, digits);
}
