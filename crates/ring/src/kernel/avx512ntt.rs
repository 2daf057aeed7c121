//! The number-theoretic transform on vectors of eight 64-bit lanes, for both AVX-512 families.
//!
//! A family supplies the arithmetic of a lane ([`Arithmetic`]); the passes over memory, the
//! order of reductions and the transposition are the same. A pass does up to four layers on as
//! many rows of vectors in registers; the last six layers (the first six of the inverse) work
//! on blocks of 64 values with one transposition. Passes over blocks that do not fit the L1
//! cache come first, then each smaller block is finished.
//!
//! Forward, in a layer: `x + w·y` and `x − w·y` with `y` unreduced, so values grow by one unit a
//! layer (the bound of a lazy product); [`ForwardPlan`] says when `x` is reduced. Inverse: a
//! plain 2-, 4- or 8-point transform with constant roots, then one product per value but the
//! first, so a pass takes and gives values below one unit.

use super::vector_tables::{ForwardPlan, InversePlan, LaneBlock, Pair, VectorTables};
use crate::modulus::Modulus;
use core::arch::x86_64::*;

/// A vector of eight lanes.
pub(super) type V = __m512i;

/// Lane arithmetic modulo q of one family. A *unit* is the bound of a lazy product.
///
/// # Safety
/// All methods need the processor features of the family.
pub(super) trait Arithmetic: Copy {
    /// Constants for a modulus.
    unsafe fn new(q: u64) -> Self;
    /// The unit, a multiple of q, in every lane.
    unsafe fn unit(self) -> V;
    /// `t ≡ y·w` in `[0, unit)`; `y` any value of the family's word, `w` with its quotient.
    unsafe fn mul(self, y: V, w: (V, V)) -> V;
    /// `x + t` and `x − t` for such a `t`, the latter plus a unit if `offset` says so (or `x` is
    /// known to be above one).
    unsafe fn butterfly(self, x: V, y: V, w: (V, V), offset: bool) -> (V, V);
    /// From the widest range that a plan allows to `[0, unit)`.
    unsafe fn reduce(self, x: V) -> V;
    /// From the widest range that a plan allows to `[0, q)`, clean.
    unsafe fn finish(self, x: V) -> V;
    /// From `[0, unit)` to `[0, q)`, clean.
    unsafe fn finish_product(self, x: V) -> V;
}

const NEVER: u8 = ForwardPlan::Never as u8;
const PASS_SHIFT: u8 = ForwardPlan::PassShift as u8;
const PASS: u8 = ForwardPlan::Pass as u8;
const LAYER: u8 = ForwardPlan::Layer as u8;
const INVERSE_PASS: u8 = InversePlan::Pass as u8;
const INVERSE_LAYER: u8 = InversePlan::Layer as u8;

/// What a layer does to `x` before its butterfly.
#[derive(Clone, Copy)]
struct Layer {
    reduce: bool,
    shift: bool,
    /// Add a unit to the difference, which no shift keeps positive.
    offset: bool,
}

const fn layer_of(plan: u8, first_pass: bool, layer: usize) -> Layer {
    match plan {
        NEVER => Layer { reduce: false, shift: first_pass && layer == 0, offset: false },
        PASS_SHIFT => Layer { reduce: !first_pass && layer == 0, shift: layer == 0, offset: false },
        // Four layers from one reduction would make five units.
        PASS => Layer { reduce: layer == 3 || (!first_pass && layer == 0), shift: false, offset: true },
        _ => Layer { reduce: !first_pass || layer > 0, shift: false, offset: true },
    }
}

/// With `AHEAD`, every vector that a pass loads also asks for the cache line `distance` bytes further.
#[derive(Clone, Copy)]
struct Kernel<A, const AHEAD: bool> {
    arithmetic: A,
    shift: V,
    distance: isize,
}

#[inline(always)]
unsafe fn splat(pair: &Pair) -> (V, V) {
    // SAFETY: the caller has the features.
    unsafe { (_mm512_set1_epi64(pair[0] as i64), _mm512_set1_epi64(pair[1] as i64)) }
}

#[inline(always)]
unsafe fn splat_all<const COUNT: usize>(pairs: &[Pair]) -> [(V, V); COUNT] {
    // SAFETY: the caller has the features.
    unsafe {
        let mut all = [splat(&[0; 2]); COUNT];
        for (wide, pair) in all.iter_mut().zip(pairs) {
            *wide = splat(pair);
        }
        all
    }
}

/// Where the twiddles of the layers of a pass come from: entry `2^l − 1 + i` is that of block
/// `i` in layer `l`. (A trait, since closures cannot be told to inline, and a vector function
/// that is not inlined into one with the processor features is a slow one.)
trait Twiddles: Copy {
    unsafe fn at(self, i: usize) -> (V, V);
}

/// One twiddle for all lanes, in registers.
impl<const COUNT: usize> Twiddles for &[(V, V); COUNT] {
    #[inline(always)]
    unsafe fn at(self, i: usize) -> (V, V) {
        self[i]
    }
}

/// One twiddle for all lanes, from the table: the entries of the three layers of a block.
#[derive(Clone, Copy)]
struct Broadcast<'a> {
    one: &'a Pair,
    two: &'a [Pair; 2],
    four: &'a [Pair; 4],
}

impl Twiddles for Broadcast<'_> {
    #[inline(always)]
    unsafe fn at(self, i: usize) -> (V, V) {
        let pair = match i {
            0 => self.one,
            1 | 2 => &self.two[i - 1],
            _ => &self.four[i - 3],
        };
        // SAFETY: the caller has the features.
        unsafe { splat(pair) }
    }
}

/// A twiddle for each lane.
impl Twiddles for &LaneBlock {
    #[inline(always)]
    unsafe fn at(self, i: usize) -> (V, V) {
        // SAFETY: the table is aligned; the caller has the features.
        unsafe {
            (_mm512_load_si512(self[2 * i].0.as_ptr().cast()), _mm512_load_si512(self[2 * i + 1].0.as_ptr().cast()))
        }
    }
}

/// The negated inverses of the mirrored block's twiddles are those of the block.
#[derive(Clone, Copy)]
struct Mirrored<'a>(&'a LaneBlock);

impl Twiddles for Mirrored<'_> {
    #[inline(always)]
    unsafe fn at(self, i: usize) -> (V, V) {
        const MIRROR: [usize; 7] = [0, 2, 1, 6, 5, 4, 3];
        // SAFETY: the caller has the features.
        unsafe {
            let reversed = _mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0);
            let (w, quotient) = self.0.at(MIRROR[i]);
            (_mm512_permutexvar_epi64(reversed, w), _mm512_permutexvar_epi64(reversed, quotient))
        }
    }
}

/// `ROWS` vectors, `stride` words apart.
#[inline(always)]
unsafe fn load_rows<const ROWS: usize>(base: *const u64, stride: usize) -> [V; ROWS] {
    // SAFETY: the caller gives as many readable rows.
    unsafe {
        let mut v = [_mm512_setzero_si512(); ROWS];
        for (i, x) in v.iter_mut().enumerate() {
            *x = load(base.add(i * stride));
        }
        v
    }
}

#[inline(always)]
unsafe fn store_rows<const ROWS: usize>(base: *mut u64, stride: usize, v: [V; ROWS]) {
    for (i, x) in v.into_iter().enumerate() {
        // SAFETY: the caller gives as many writable rows.
        unsafe { store(base.add(i * stride), x) };
    }
}

/// The butterflies of one layer: twiddle index, then the pairs of rows that share it. Written
/// out, so that rows stay in registers whatever the optimiser's limits on unrolling.
macro_rules! butterflies {
    ($kernel:expr, $v:ident, $w:ident, $layer:expr; $($t:literal: $($x:literal $y:literal),+;)+) => {{
        let layer = $layer;
        $($(
            for (v, w) in $v.iter_mut().zip($w) {
                (v[$x], v[$y]) = $kernel.butterfly(v[$x], v[$y], w.at($t), layer);
            }
        )+)+
    }};
}

#[inline(always)]
unsafe fn load(p: *const u64) -> V {
    // SAFETY: the caller gives eight readable words.
    unsafe { _mm512_loadu_si512(p.cast()) }
}

#[inline(always)]
unsafe fn store(p: *mut u64, x: V) {
    // SAFETY: the caller gives eight writable words.
    unsafe { _mm512_storeu_si512(p.cast(), x) }
}

/// Transposes eight vectors as an 8×8 square.
#[inline(always)]
unsafe fn transpose(v: [V; 8]) -> [V; 8] {
    // SAFETY: register operations; the caller has the features.
    unsafe {
        // Pairs of rows: 2×2 squares in place.
        let a = [
            _mm512_unpacklo_epi64(v[0], v[1]),
            _mm512_unpackhi_epi64(v[0], v[1]),
            _mm512_unpacklo_epi64(v[2], v[3]),
            _mm512_unpackhi_epi64(v[2], v[3]),
            _mm512_unpacklo_epi64(v[4], v[5]),
            _mm512_unpackhi_epi64(v[4], v[5]),
            _mm512_unpacklo_epi64(v[6], v[7]),
            _mm512_unpackhi_epi64(v[6], v[7]),
        ];
        // Quarters of 128 bits: even ones to the low half, odd ones to the high half.
        let even = |x, y| _mm512_shuffle_i64x2::<0b10_00_10_00>(x, y);
        let odd = |x, y| _mm512_shuffle_i64x2::<0b11_01_11_01>(x, y);
        let b = [
            even(a[0], a[2]),
            even(a[1], a[3]),
            odd(a[0], a[2]),
            odd(a[1], a[3]),
            even(a[4], a[6]),
            even(a[5], a[7]),
            odd(a[4], a[6]),
            odd(a[5], a[7]),
        ];
        [
            even(b[0], b[4]),
            even(b[1], b[5]),
            even(b[2], b[6]),
            even(b[3], b[7]),
            odd(b[0], b[4]),
            odd(b[1], b[5]),
            odd(b[2], b[6]),
            odd(b[3], b[7]),
        ]
    }
}

impl<A: Arithmetic, const AHEAD: bool> Kernel<A, AHEAD> {
    #[inline(always)]
    unsafe fn new(q: &Modulus, t: &VectorTables, distance: isize) -> Self {
        // SAFETY: the caller has the features.
        unsafe { Self { arithmetic: A::new(q.value()), shift: _mm512_set1_epi64(t.shift as i64), distance } }
    }

    /// [`load_rows`] of a pass.
    #[inline(always)]
    unsafe fn load_rows<const ROWS: usize>(self, base: *const u64, stride: usize) -> [V; ROWS] {
        // SAFETY: as the caller's; asking for a line is a hint, whatever the address.
        unsafe {
            if AHEAD {
                for i in 0..ROWS {
                    _mm_prefetch::<_MM_HINT_T1>(
                        base.wrapping_add(i * stride).wrapping_byte_offset(self.distance).cast(),
                    );
                }
            }
            load_rows(base, stride)
        }
    }

    /// One Cooley–Tukey butterfly.
    #[inline(always)]
    unsafe fn butterfly(self, x: V, y: V, w: (V, V), layer: Layer) -> (V, V) {
        // SAFETY: the caller has the features.
        unsafe {
            let mut x = x;
            if layer.reduce {
                x = self.arithmetic.reduce(x);
            }
            if layer.shift {
                x = _mm512_add_epi64(x, self.shift);
            }
            self.arithmetic.butterfly(x, y, w, layer.offset)
        }
    }

    /// `R` layers on `ROWS` rows, of which `2^R` form a block; `C` columns side by side, so that
    /// one fills the time in which another waits for its products.
    #[inline(always)]
    unsafe fn layers<const PLAN: u8, const R: usize, const ROWS: usize, const FIRST: bool, const C: usize>(
        self,
        mut v: [[V; ROWS]; C],
        w: [impl Twiddles; C],
    ) -> [[V; ROWS]; C] {
        // SAFETY: the caller has the features.
        unsafe {
            match ROWS {
                2 => butterflies!(self, v, w, layer_of(PLAN, FIRST, 0); 0: 0 1;),
                4 => {
                    butterflies!(self, v, w, layer_of(PLAN, FIRST, 0); 0: 0 2, 1 3;);
                    butterflies!(self, v, w, layer_of(PLAN, FIRST, 1); 1: 0 1; 2: 2 3;);
                }
                8 => {
                    butterflies!(self, v, w, layer_of(PLAN, FIRST, 0); 0: 0 4, 1 5, 2 6, 3 7;);
                    if R > 1 {
                        butterflies!(self, v, w, layer_of(PLAN, FIRST, 1); 1: 0 2, 1 3; 2: 4 6, 5 7;);
                    }
                    if R > 2 {
                        butterflies!(self, v, w, layer_of(PLAN, FIRST, 2); 3: 0 1; 4: 2 3; 5: 4 5; 6: 6 7;);
                    }
                }
                _ => {
                    butterflies!(self, v, w, layer_of(PLAN, FIRST, 0);
                        0: 0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15;);
                    butterflies!(self, v, w, layer_of(PLAN, FIRST, 1);
                        1: 0 4, 1 5, 2 6, 3 7; 2: 8 12, 9 13, 10 14, 11 15;);
                    butterflies!(self, v, w, layer_of(PLAN, FIRST, 2);
                        3: 0 2, 1 3; 4: 4 6, 5 7; 5: 8 10, 9 11; 6: 12 14, 13 15;);
                    butterflies!(self, v, w, layer_of(PLAN, FIRST, 3);
                        7: 0 1; 8: 2 3; 9: 4 5; 10: 6 7; 11: 8 9; 12: 10 11; 13: 12 13; 14: 14 15;);
                }
            }
        }
        v
    }

    /// `R` layers of the forward transform on blocks `first ..` of the `m` blocks of one layer,
    /// which stand in `a`, each `ROWS·stride` words.
    #[inline(always)]
    unsafe fn pass<const PLAN: u8, const R: usize, const ROWS: usize, const FIRST: bool, const C: usize>(
        self,
        twiddles: &[Pair],
        a: &mut [u64],
        m: usize,
        first: usize,
        stride: usize,
    ) {
        for (b, block) in a.chunks_exact_mut(ROWS * stride).enumerate() {
            let zero = [0u64; 2];
            let mut w = [zero; 16];
            for l in 0..R {
                let at = (m + first + b) << l;
                for (i, pair) in twiddles[at..at + (1 << l)].iter().enumerate() {
                    w[(1 << l) - 1 + i] = *pair;
                }
            }
            // SAFETY: the rows lie within the block; the caller has the features.
            unsafe {
                let base = block.as_mut_ptr();
                let mut wide = [splat(&zero); 16];
                for i in 0..ROWS - 1 {
                    wide[i] = splat(&w[i]);
                }
                for k in (0..stride).step_by(8 * C) {
                    let mut v = [[_mm512_setzero_si512(); ROWS]; C];
                    for (c, column) in v.iter_mut().enumerate() {
                        *column = self.load_rows(base.add(k + 8 * c), stride);
                    }
                    v = self.layers::<PLAN, R, ROWS, FIRST, C>(v, [&wide; C]);
                    for (c, column) in v.into_iter().enumerate() {
                        store_rows(base.add(k + 8 * c), stride, column);
                    }
                }
            }
        }
    }

    /// The last six layers on blocks of 64 values; values to `[0, q)`.
    #[inline(always)]
    unsafe fn tail<const PLAN: u8, const C: usize>(self, t: &VectorTables, a: &mut [u64], m: usize, first: usize) {
        let blocks = a.len() / 64;
        let one = &t.forward[m + first..m + first + blocks];
        let (two, _) = t.forward[2 * (m + first)..2 * (m + first + blocks)].as_chunks::<2>();
        let (four, _) = t.forward[4 * (m + first)..4 * (m + first + blocks)].as_chunks::<4>();
        let lanes = &t.forward_lanes[first..first + blocks];
        for (b, pair) in a.chunks_exact_mut(64 * C).enumerate() {
            // SAFETY: rows of eight within a block of 64; each table slice has an entry per
            // block; the caller has the features.
            unsafe {
                let base = pair.as_mut_ptr();
                let mut v = [[_mm512_setzero_si512(); 8]; C];
                let mut w = [Broadcast { one: &one[0], two: &two[0], four: &four[0] }; C];
                let mut lane = [&lanes[0]; C];
                for c in 0..C {
                    let b = C * b + c;
                    v[c] = self.load_rows(base.add(64 * c), 8);
                    w[c] =
                        Broadcast { one: one.get_unchecked(b), two: two.get_unchecked(b), four: four.get_unchecked(b) };
                    lane[c] = lanes.get_unchecked(b);
                }
                v = self.layers::<PLAN, 3, 8, false, C>(v, w);
                for column in &mut v {
                    *column = transpose(*column);
                }
                v = self.layers::<PLAN, 3, 8, false, C>(v, lane);
                for (c, column) in v.into_iter().enumerate() {
                    for (i, x) in column.into_iter().enumerate() {
                        store(base.add(64 * c + 8 * i), self.arithmetic.finish(x));
                    }
                }
            }
        }
    }

    /// Stores eight rows reduced to `[0, q)`.
    #[inline(always)]
    unsafe fn finish_rows(self, block: &mut [u64], v: [V; 8]) {
        for (row, x) in block.chunks_exact_mut(8).zip(v) {
            // SAFETY: a row has eight words; the caller has the features.
            unsafe { store(row.as_mut_ptr(), self.arithmetic.finish(x)) };
        }
    }

    /// One pass of any radix, over blocks of at least two vectors a row.
    #[inline(always)]
    unsafe fn pass_of<const PLAN: u8, const FIRST: bool>(
        self,
        t: &VectorTables,
        a: &mut [u64],
        m: usize,
        first: usize,
        stride: usize,
        radix: usize,
    ) {
        // SAFETY: as the caller's.
        unsafe {
            match radix {
                1 => self.pass::<PLAN, 1, 2, FIRST, 2>(&t.forward, a, m, first, stride),
                2 => self.pass::<PLAN, 2, 4, FIRST, 2>(&t.forward, a, m, first, stride),
                3 => self.pass::<PLAN, 3, 8, FIRST, 2>(&t.forward, a, m, first, stride),
                _ => self.pass::<PLAN, 4, 16, FIRST, 1>(&t.forward, a, m, first, stride),
            }
        }
    }

    // Each pass is expanded where it is called, and the bodies are large: one call for the first
    // pass and one for all the others keep the compiler's work small.
    #[inline(always)]
    unsafe fn forward<const PLAN: u8>(mut self, t: &VectorTables, a: &mut [u64]) {
        let n = a.len();
        let per_pass = 8 * n as isize;
        let Some((&lead, rest)) = t.forward_passes.split_first() else { return };
        // SAFETY: as the caller's.
        unsafe { self.pass_of::<PLAN, true>(t, a, 1, 0, n >> lead, lead) };
        self.distance += per_pass;
        let (outer, inner) = rest.split_at(t.forward_outer.saturating_sub(1));
        let outer_depth = if t.forward_outer == 0 { 0 } else { lead + outer.iter().sum::<usize>() };
        // Leg 0: the other passes over everything. Then each chunk is finished.
        for leg in 0..=1usize << outer_depth {
            let size = if leg == 0 { n } else { n >> outer_depth };
            let index = leg.saturating_sub(1);
            let chunk = &mut a[index * size..(index + 1) * size];
            let (passes, depth) = if leg == 0 { (outer, lead) } else { (inner, outer_depth.max(lead)) };
            let (mut m, mut first) = (1 << depth, index);
            let mut kernel = self;
            for &radix in passes {
                // SAFETY: as the caller's.
                unsafe { kernel.pass_of::<PLAN, false>(t, chunk, m, first, (n / m) >> radix, radix) };
                kernel.distance += per_pass;
                m <<= radix;
                first <<= radix;
            }
            if leg > 0 {
                // SAFETY: as the caller's.
                unsafe { kernel.tail::<PLAN, 2>(t, chunk, m, first) };
            } else {
                self = kernel;
            }
        }
    }

    /// The first layers alone, every value reduced in every layer.
    #[inline(always)]
    unsafe fn forward_partial(self, t: &VectorTables, a: &mut [u64], layers: usize) {
        let n = a.len();
        let rows = layers.min(n.trailing_zeros() as usize - 3);
        let mut depth = 0;
        while depth < rows {
            let radix = (rows - depth).min(3);
            let (m, stride) = (1 << depth, n >> (depth + radix));
            // SAFETY: as the caller's.
            unsafe {
                match radix {
                    1 => self.pass::<LAYER, 1, 2, false, 1>(&t.forward, a, m, 0, stride),
                    2 => self.pass::<LAYER, 2, 4, false, 1>(&t.forward, a, m, 0, stride),
                    _ => self.pass::<LAYER, 3, 8, false, 1>(&t.forward, a, m, 0, stride),
                }
            }
            depth += radix;
        }
        for (block, lane) in a.chunks_exact_mut(64).zip(&t.forward_lanes) {
            // SAFETY: rows of eight within a block of 64; the caller has the features.
            unsafe {
                let mut v = load_rows(block.as_ptr(), 8);
                match layers - rows {
                    0 => {}
                    1 => [v] = self.layers::<LAYER, 1, 8, false, 1>([transpose(v)], [lane]),
                    2 => [v] = self.layers::<LAYER, 2, 8, false, 1>([transpose(v)], [lane]),
                    _ => [v] = self.layers::<LAYER, 3, 8, false, 1>([transpose(v)], [lane]),
                }
                if layers > rows {
                    v = transpose(v);
                }
                self.finish_rows(block, v);
            }
        }
    }

    #[inline(always)]
    unsafe fn reduce_if<const C: usize>(self, x: [V; C], when: bool) -> [V; C] {
        let mut out = x;
        if when {
            for x in &mut out {
                // SAFETY: the caller has the features.
                *x = unsafe { self.arithmetic.reduce(*x) };
            }
        }
        out
    }

    /// `x + y` and `x − y + units·unit`.
    #[inline(always)]
    unsafe fn sum_difference<const C: usize>(self, x: [V; C], y: [V; C], units: usize) -> ([V; C], [V; C]) {
        // SAFETY: the caller has the features.
        unsafe {
            let unit = self.arithmetic.unit();
            let mut offset = unit;
            for _ in 1..units {
                offset = _mm512_add_epi64(offset, unit);
            }
            let (mut sum, mut difference) = (x, x);
            for c in 0..C {
                sum[c] = _mm512_add_epi64(x[c], y[c]);
                difference[c] = _mm512_sub_epi64(_mm512_add_epi64(x[c], offset), y[c]);
            }
            (sum, difference)
        }
    }

    /// [`Arithmetic::butterfly`] of each column.
    #[inline(always)]
    unsafe fn twist<const C: usize>(self, x: [V; C], y: [V; C], w: (V, V), offset: bool) -> ([V; C], [V; C]) {
        let (mut sum, mut difference) = (x, x);
        for c in 0..C {
            // SAFETY: the caller has the features.
            (sum[c], difference[c]) = unsafe { self.arithmetic.butterfly(x[c], y[c], w, offset) };
        }
        (sum, difference)
    }

    /// The inverse transform of eight rows in bit-reversed order: values below one unit to sums
    /// `Σ_p v_p·σ_p^−j`, σ = 1, −1, ι, −ι, ζ, −ζ, ζι, −ζι, within the family's word; the first
    /// below one unit. `C` columns side by side, as in [`Self::layers`].
    #[inline(always)]
    unsafe fn inverse8<const PLAN: u8, const C: usize>(self, v: [[V; C]; 8], roots: &[(V, V); 3]) -> [[V; C]; 8] {
        // SAFETY: the caller has the features.
        unsafe {
            // With a free hand (M ≥ 8) the differences that are `x` of a later product carry the
            // units which keep those differences positive: d0 in [2, 4) units, then e0, e1 in
            // [1, 5); d2 in [1, 3), and the difference of s in [1, 5).
            let free = PLAN == INVERSE_PASS;
            let by_layer = PLAN == INVERSE_LAYER;

            // [0, 2) units from here.
            let (s0, d0) = self.sum_difference(v[0], v[1], if free { 3 } else { 1 });
            let (s1, d1) = self.sum_difference(v[2], v[3], 1);
            let (s2, d2) = self.sum_difference(v[4], v[5], if free { 2 } else { 1 });
            let (s3, d3) = self.sum_difference(v[6], v[7], 1);

            let (s0, s1) = (self.reduce_if(s0, by_layer), self.reduce_if(s1, by_layer));
            let (s2, s3) = (self.reduce_if(s2, by_layer), self.reduce_if(s3, by_layer));
            let (d0, d2) = (self.reduce_if(d0, by_layer), self.reduce_if(d2, by_layer));
            // By layer: [0, 2) units; third: sums [0, 4), products' [0, 3).
            let gap = if by_layer { 1 } else { 2 };
            let (t0, u0) = self.sum_difference(s0, s1, if free { 3 } else { gap });
            let (t1, u1) = self.sum_difference(s2, s3, gap);
            let (e0, e1) = self.twist(d0, d1, roots[0], !free);
            let (f0, f1) = self.twist(d2, d3, roots[0], !free);

            let (t0, t1) = (self.reduce_if(t0, !free), self.reduce_if(t1, !free));
            let u0 = self.reduce_if(u0, !free);
            let (e0, e1) = (self.reduce_if(e0, by_layer), self.reduce_if(e1, by_layer));
            let (o0, o4) = self.sum_difference(t0, t1, if free { 4 } else { 1 });
            let (o2, o6) = self.twist(u0, u1, roots[0], !free);
            let (o1, o5) = self.twist(e0, f0, roots[1], !free);
            let (o3, o7) = self.twist(e1, f1, roots[2], !free);
            [self.reduce_if(o0, true), o1, o2, o3, o4, o5, o6, o7]
        }
    }

    /// The same of four rows: σ = 1, −1, ι, −ι.
    #[inline(always)]
    unsafe fn inverse4<const PLAN: u8, const C: usize>(self, v: [[V; C]; 4], roots: &[(V, V); 3]) -> [[V; C]; 4] {
        // SAFETY: the caller has the features.
        unsafe {
            let by_layer = PLAN == INVERSE_LAYER;
            let free = PLAN != INVERSE_LAYER;
            // M ≥ 4 suffices: d0 in [1, 3) units.
            let (s0, d0) = self.sum_difference(v[0], v[1], if free { 2 } else { 1 });
            let (s1, d1) = self.sum_difference(v[2], v[3], 1);
            let (s0, s1) = (self.reduce_if(s0, by_layer), self.reduce_if(s1, by_layer));
            let d0 = self.reduce_if(d0, by_layer);
            let (o0, o2) = self.sum_difference(s0, s1, if free { 2 } else { 1 });
            let (o1, o3) = self.twist(d0, d1, roots[0], !free);
            [self.reduce_if(o0, true), o1, o2, o3]
        }
    }

    /// The product after an inverse transform of rows; `LAST` is the pass that ends at the
    /// coefficients.
    #[inline(always)]
    unsafe fn inverse_product<const LAST: bool>(self, i: usize, x: V, w: (V, V)) -> V {
        // SAFETY: the caller has the features.
        unsafe {
            match (i, LAST) {
                (0, false) => x,
                (_, false) => self.arithmetic.mul(x, w),
                (_, true) => self.arithmetic.finish_product(self.arithmetic.mul(x, w)),
            }
        }
    }

    /// One pass of the inverse: blocks of `ROWS·stride` words with `ROWS` twiddles each, `C`
    /// vectors of each row at a time.
    // Rows, columns and twiddles share their indices.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    unsafe fn inverse_pass<const PLAN: u8, const ROWS: usize, const LAST: bool, const C: usize>(
        self,
        twiddles: &[Pair],
        roots: &[(V, V); 3],
        a: &mut [u64],
        stride: usize,
    ) {
        for (block, pairs) in a.chunks_exact_mut(ROWS * stride).zip(twiddles.chunks_exact(ROWS)) {
            // SAFETY: the rows lie within the block; the caller has the features.
            unsafe {
                let w: [(V, V); ROWS] = splat_all(pairs);
                for k in (0..stride).step_by(8 * C) {
                    let base = block.as_mut_ptr().add(k);
                    let mut v = [[_mm512_setzero_si512(); C]; 8];
                    for (i, row) in v.iter_mut().enumerate().take(ROWS) {
                        *row = self.load_rows(base.add(i * stride), 8);
                    }
                    if ROWS == 8 {
                        v = self.inverse8::<PLAN, C>(v, roots);
                    } else {
                        let [o0, o1, o2, o3] = self.inverse4::<PLAN, C>([v[0], v[1], v[2], v[3]], roots);
                        (v[0], v[1], v[2], v[3]) = (o0, o1, o2, o3);
                    }
                    for i in 0..ROWS {
                        for c in 0..C {
                            store(base.add(i * stride + 8 * c), self.inverse_product::<LAST>(i, v[i][c], w[i]));
                        }
                    }
                }
            }
        }
    }

    /// The inverse of the last six forward layers; values in `[0, q)` to below one unit.
    // Rows, columns and twiddles share their indices.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    unsafe fn inverse_head<const PLAN: u8, const C: usize>(
        self,
        lanes: &[LaneBlock],
        twiddles: &[Pair],
        roots: &[(V, V); 3],
        a: &mut [u64],
    ) {
        let blocks = a.chunks_exact_mut(64 * C).zip(lanes.chunks_exact(C)).zip(twiddles.chunks_exact(8 * C));
        for ((block, lanes), pairs) in blocks {
            // SAFETY: rows of eight within a block of 64; the caller has the features.
            unsafe {
                let base = block.as_mut_ptr();
                let mut v = [[_mm512_setzero_si512(); C]; 8];
                for (i, row) in v.iter_mut().enumerate() {
                    *row = self.load_rows(base.add(8 * i), 64);
                }
                v = self.inverse8::<PLAN, C>(v, roots);
                for (c, lane) in lanes.iter().enumerate().take(C) {
                    let mut square = [v[0][c]; 8];
                    for i in 1..8 {
                        square[i] = self.arithmetic.mul(v[i][c], lane.at(i - 1));
                    }
                    square = transpose(square);
                    for i in 0..8 {
                        v[i][c] = square[i];
                    }
                }
                v = self.inverse8::<PLAN, C>(v, roots);
                for i in 0..8 {
                    for c in 0..C {
                        let x = self.inverse_product::<false>(i, v[i][c], splat(&pairs[8 * c + i]));
                        store(base.add(64 * c + 8 * i), x);
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn inverse<const PLAN: u8>(self, t: &VectorTables, a: &mut [u64]) {
        let n = a.len();
        let passes = t.inverse_passes;
        // SAFETY: the caller has the features.
        let roots = unsafe { [splat(&t.inverse_roots[0]), splat(&t.inverse_roots[1]), splat(&t.inverse_roots[2])] };
        // Where each pass's twiddles begin: `2^R` per block.
        let mut starts = [0usize; 8];
        let mut depth = 0;
        for (i, radix) in passes.iter().enumerate() {
            starts[i + 1] = starts[i] + (1 << (depth + radix));
            depth += radix;
        }
        let outer_depth: usize = passes[..t.inverse_outer].iter().sum();
        let chunks = 1usize << outer_depth;
        // Each chunk first; the last leg is the passes over everything.
        for leg in 0..=chunks {
            let whole = leg == chunks;
            let (i, size) = if whole { (0, n) } else { (leg, n >> outer_depth) };
            let chunk = &mut a[i * size..(i + 1) * size];
            let (range, mut stride) =
                if whole { (0..t.inverse_outer, n >> outer_depth) } else { (t.inverse_outer..passes.len(), 64) };
            let mut kernel = self;
            let per_pass = 8 * n as isize;
            if whole {
                kernel.distance += per_pass * (1 + passes.len() - t.inverse_outer) as isize;
            } else {
                let blocks = size / 64;
                let at = starts[passes.len()] + 8 * i * blocks;
                let lanes = &t.inverse_lanes[i * blocks..(i + 1) * blocks];
                // SAFETY: as the caller's.
                unsafe { kernel.inverse_head::<PLAN, 2>(lanes, &t.inverse[at..at + 8 * blocks], &roots, chunk) };
                kernel.distance += per_pass;
            }
            for p in range.rev() {
                let rows = 1 << passes[p];
                let twiddles = (size / (rows * stride)) * rows;
                let at = starts[p] + i * twiddles;
                // SAFETY: as the caller's.
                unsafe {
                    kernel.inverse_pass_of::<PLAN>(&t.inverse[at..at + twiddles], &roots, chunk, stride, rows, p == 0)
                };
                kernel.distance += per_pass;
                stride *= rows;
            }
        }
    }

    #[inline(always)]
    unsafe fn inverse_pass_of<const PLAN: u8>(
        self,
        twiddles: &[Pair],
        roots: &[(V, V); 3],
        a: &mut [u64],
        stride: usize,
        rows: usize,
        last: bool,
    ) {
        // SAFETY: as the caller's.
        unsafe {
            match (rows, last) {
                (8, false) => self.inverse_pass::<PLAN, 8, false, 2>(twiddles, roots, a, stride),
                (8, true) => self.inverse_pass::<PLAN, 8, true, 2>(twiddles, roots, a, stride),
                (_, false) => self.inverse_pass::<PLAN, 4, false, 2>(twiddles, roots, a, stride),
                (_, true) => self.inverse_pass::<PLAN, 4, true, 2>(twiddles, roots, a, stride),
            }
        }
    }

    /// `R` Gentleman–Sande layers on rows, values below one unit throughout; twiddles as in
    /// [`Self::layers`], but of the negated inverses.
    #[inline(always)]
    unsafe fn inverse_layers<const R: usize, const ROWS: usize>(self, mut v: [V; ROWS], w: impl Twiddles) -> [V; ROWS] {
        for l in (0..R).rev() {
            let half = ROWS >> (l + 1);
            for block in 0..1 << l {
                // SAFETY: the caller has the features.
                let twiddle = unsafe { w.at((1 << l) - 1 + block) };
                for i in 0..half {
                    let (low, high) = (2 * half * block + i, 2 * half * block + i + half);
                    // SAFETY: the caller has the features.
                    unsafe {
                        let ([sum], [difference]) = self.sum_difference([v[high]], [v[low]], 1);
                        v[low] = self.arithmetic.reduce(sum);
                        v[high] = self.arithmetic.mul(difference, twiddle);
                    }
                }
            }
        }
        v
    }

    /// `R` layers of the inverse on all `m` blocks. The inverse twiddle of block `i` is that of
    /// block `m − 1 − i` of the forward layer, negated.
    #[inline(always)]
    unsafe fn inverse_partial_pass<const R: usize, const ROWS: usize>(
        self,
        twiddles: &[Pair],
        a: &mut [u64],
        m: usize,
        stride: usize,
    ) {
        for (b, block) in a.chunks_exact_mut(ROWS * stride).enumerate() {
            // SAFETY: the rows lie within the block; the caller has the features.
            unsafe {
                let mut w = [splat(&[0, 0]); ROWS];
                for l in 0..R {
                    for i in 0..1usize << l {
                        w[(1 << l) - 1 + i] = splat(&twiddles[((2 * m) << l) - 1 - ((b << l) + i)]);
                    }
                }
                for k in (0..stride).step_by(8) {
                    let base = block.as_mut_ptr().add(k);
                    let v = self.inverse_layers::<R, ROWS>(load_rows(base, stride), &w);
                    store_rows(base, stride, v);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn inverse_partial(self, t: &VectorTables, a: &mut [u64], layers: usize, scale: (V, V)) {
        let n = a.len();
        let rows = layers.min(n.trailing_zeros() as usize - 3);
        if layers > rows {
            for (block, lane) in a.chunks_exact_mut(64).zip(t.forward_lanes.iter().rev()) {
                // SAFETY: rows of eight within a block of 64; the caller has the features.
                unsafe {
                    let v = transpose(load_rows(block.as_ptr(), 8));
                    let v = match layers - rows {
                        1 => self.inverse_layers::<1, 8>(v, Mirrored(lane)),
                        2 => self.inverse_layers::<2, 8>(v, Mirrored(lane)),
                        _ => self.inverse_layers::<3, 8>(v, Mirrored(lane)),
                    };
                    store_rows(block.as_mut_ptr(), 8, transpose(v));
                }
            }
        }
        let mut depth = rows;
        while depth > 0 {
            let radix = (depth - 1) % 3 + 1;
            let stride = n >> depth;
            depth -= radix;
            // SAFETY: as the caller's.
            unsafe {
                match radix {
                    1 => self.inverse_partial_pass::<1, 2>(&t.forward, a, 1 << depth, stride),
                    2 => self.inverse_partial_pass::<2, 4>(&t.forward, a, 1 << depth, stride),
                    _ => self.inverse_partial_pass::<3, 8>(&t.forward, a, 1 << depth, stride),
                }
            }
        }
        for row in a.chunks_exact_mut(8) {
            // SAFETY: a row of eight words.
            unsafe {
                let x = self.arithmetic.mul(load(row.as_ptr()), scale);
                store(row.as_mut_ptr(), self.arithmetic.finish_product(x));
            }
        }
    }
}

/// The forward transform with a plan known at compile time.
///
/// # Safety
/// The processor has the features of `A`, and the tables are those of its family and of `q`.
#[inline(always)]
pub(super) unsafe fn forward<A: Arithmetic, const PLAN: u8>(q: &Modulus, t: &VectorTables, a: &mut [u64]) {
    // SAFETY: as the caller's.
    unsafe { Kernel::<A, false>::new(q, t, 0).forward::<PLAN>(t, a) }
}

/// [`forward`] that asks for `ahead` to be brought near.
///
/// # Safety
/// As for [`forward`].
#[inline(always)]
pub(super) unsafe fn forward_ahead<A: Arithmetic, const PLAN: u8>(
    q: &Modulus,
    t: &VectorTables,
    a: &mut [u64],
    ahead: &[u8],
) {
    let distance = (ahead.as_ptr() as isize).wrapping_sub(a.as_ptr() as isize);
    // SAFETY: as the caller's.
    unsafe { Kernel::<A, true>::new(q, t, distance).forward::<PLAN>(t, a) }
}

/// The inverse transform with a plan known at compile time.
///
/// # Safety
/// As for [`forward`].
#[inline(always)]
pub(super) unsafe fn inverse<A: Arithmetic, const PLAN: u8>(q: &Modulus, t: &VectorTables, a: &mut [u64]) {
    // SAFETY: as the caller's.
    unsafe { Kernel::<A, false>::new(q, t, 0).inverse::<PLAN>(t, a) }
}

/// [`inverse`] that asks for `ahead` to be brought near.
///
/// # Safety
/// As for [`forward`].
#[inline(always)]
pub(super) unsafe fn inverse_ahead<A: Arithmetic, const PLAN: u8>(
    q: &Modulus,
    t: &VectorTables,
    a: &mut [u64],
    ahead: &[u8],
) {
    let distance = (ahead.as_ptr() as isize).wrapping_sub(a.as_ptr() as isize);
    // SAFETY: as the caller's.
    unsafe { Kernel::<A, true>::new(q, t, distance).inverse::<PLAN>(t, a) }
}

/// The first layers of the forward transform.
///
/// # Safety
/// As for [`forward`].
#[inline(always)]
pub(super) unsafe fn forward_partial<A: Arithmetic>(q: &Modulus, t: &VectorTables, a: &mut [u64], layers: u32) {
    // SAFETY: as the caller's.
    unsafe { Kernel::<A, false>::new(q, t, 0).forward_partial(t, a, layers as usize) }
}

/// The inverse of [`forward_partial`]; `scale` is 2^−layers with the family's quotient.
///
/// # Safety
/// As for [`forward`].
#[inline(always)]
pub(super) unsafe fn inverse_partial<A: Arithmetic>(
    q: &Modulus,
    t: &VectorTables,
    a: &mut [u64],
    layers: u32,
    scale: Pair,
) {
    // SAFETY: as the caller's.
    unsafe { Kernel::<A, false>::new(q, t, 0).inverse_partial(t, a, layers as usize, splat(&scale)) }
}
