//! Inner products with packed pairs: the residues are put together in registers.

use super::super::lanes::{load, prefetch, splat, store};
use super::IfmaLimb;
use super::arith::{IfmaField, accumulate, needs_wide};
use crate::packed::{BLOCK, PackedBlocks, Width};
use std::arch::x86_64::*;

/// Vectors in flight for each of the two products.
const IN_FLIGHT: usize = 4;

/// Eight residues, vector `v` of a unit.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn load_packed<const BYTES: usize>(unit: &[u64], v: usize) -> __m512i {
    if BYTES == 8 {
        return load(&unit.as_chunks::<8>().0[v]);
    }
    let (low, high) = unit.split_at(BLOCK / 2);
    let low: &[u64; 4] = &low.as_chunks().0[v];
    let low = _mm512_cvtepu32_epi64(bytemuck::cast(*low));
    let high = if BYTES == 5 {
        _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(high[v] as i64))
    } else {
        let high: &[u64; 2] = &high.as_chunks().0[v];
        _mm512_cvtepu16_epi64(bytemuck::cast(*high))
    };
    _mm512_or_si512(low, _mm512_slli_epi64::<32>(high))
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
fn dot_with<const BYTES: usize, const WIDE: bool>(
    f: &IfmaField,
    [out0, out1]: [&mut [u64]; 2],
    a: &[&[u64]],
    b: PackedBlocks<'_>,
    start: Option<&[u64]>,
) {
    let unit = BYTES * BLOCK / 8;
    let blocks = out0.as_chunks_mut::<BLOCK>().0.iter_mut().zip(out1.as_chunks_mut::<BLOCK>().0);
    for (at, (out0, out1)) in blocks.enumerate() {
        let units = b.block(at);
        prefetch(b.ahead(at));
        for half in 0..BLOCK / (8 * IN_FLIGHT) {
            let first = half * IN_FLIGHT;
            let mut low = [[splat(0); IN_FLIGHT]; 2];
            let mut high = low;
            if let Some(start) = start {
                let start = start[at * BLOCK + 8 * first..][..8 * IN_FLIGHT].as_chunks::<8>().0;
                for v in 0..IN_FLIGHT {
                    low[0][v] = load(&start[v]);
                }
            }
            for (x, pair) in a.iter().zip(units.chunks_exact(2 * unit)) {
                let x = x[at * BLOCK + 8 * first..][..8 * IN_FLIGHT].as_chunks::<8>().0;
                let (y0, y1) = pair.split_at(unit);
                for v in 0..IN_FLIGHT {
                    let x = load(&x[v]);
                    accumulate(&mut low[0][v], &mut high[0][v], x, load_packed::<BYTES>(y0, first + v));
                    accumulate(&mut low[1][v], &mut high[1][v], x, load_packed::<BYTES>(y1, first + v));
                }
            }
            let (out0, out1) = (out0.as_chunks_mut::<8>().0, out1.as_chunks_mut::<8>().0);
            for v in 0..IN_FLIGHT {
                store(&mut out0[first + v], f.reduce_sum::<WIDE>(low[0][v], high[0][v]));
                store(&mut out1[first + v], f.reduce_sum::<WIDE>(low[1][v], high[1][v]));
            }
        }
    }
}

impl IfmaLimb {
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512ifma,avx512vbmi")]
    pub(super) fn dot_pair_packed(
        &self,
        out: [&mut [u64]; 2],
        a: &[&[u64]],
        b: PackedBlocks<'_>,
        start: Option<&[u64]>,
    ) {
        let (q, f) = (&self.q, self.field());
        match (b.width(), needs_wide(a.len() + 1, q.value(), q.value())) {
            (Width::Bytes5, false) => dot_with::<5, false>(&f, out, a, b, start),
            (Width::Bytes5, true) => dot_with::<5, true>(&f, out, a, b, start),
            (Width::Bytes6, false) => dot_with::<6, false>(&f, out, a, b, start),
            (Width::Bytes6, true) => dot_with::<6, true>(&f, out, a, b, start),
            (Width::Bytes8, false) => dot_with::<8, false>(&f, out, a, b, start),
            (Width::Bytes8, true) => dot_with::<8, true>(&f, out, a, b, start),
        }
    }
}
