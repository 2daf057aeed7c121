//! The ChaCha20 block function, sixteen blocks at a time.

use super::lanes::store;
use crate::kernel::random::GROUP_BYTES;
use core::arch::x86_64::*;

#[inline]
#[target_feature(enable = "avx512f")]
fn quarter_round(x: &mut [__m512i; 16], a: usize, b: usize, c: usize, d: usize) {
    x[a] = _mm512_add_epi32(x[a], x[b]);
    x[d] = _mm512_rol_epi32::<16>(_mm512_xor_si512(x[d], x[a]));
    x[c] = _mm512_add_epi32(x[c], x[d]);
    x[b] = _mm512_rol_epi32::<12>(_mm512_xor_si512(x[b], x[c]));
    x[a] = _mm512_add_epi32(x[a], x[b]);
    x[d] = _mm512_rol_epi32::<8>(_mm512_xor_si512(x[d], x[a]));
    x[c] = _mm512_add_epi32(x[c], x[d]);
    x[b] = _mm512_rol_epi32::<7>(_mm512_xor_si512(x[b], x[c]));
}

/// Sixteen blocks from the counter in `state`, one to a 32-bit lane.
#[target_feature(enable = "avx512f")]
pub(super) fn group(state: &[u32; 16], out: &mut [u8; GROUP_BYTES]) {
    let mut start = [_mm512_setzero_si512(); 16];
    for (lanes, word) in start.iter_mut().zip(state) {
        *lanes = _mm512_set1_epi32(*word as i32);
    }
    let index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let low = _mm512_add_epi32(start[12], index);
    let carry = _mm512_cmplt_epu32_mask(low, start[12]);
    start[13] = _mm512_mask_add_epi32(start[13], carry, start[13], _mm512_set1_epi32(1));
    start[12] = low;

    let mut x = start;
    for _ in 0..10 {
        quarter_round(&mut x, 0, 4, 8, 12);
        quarter_round(&mut x, 1, 5, 9, 13);
        quarter_round(&mut x, 2, 6, 10, 14);
        quarter_round(&mut x, 3, 7, 11, 15);
        quarter_round(&mut x, 0, 5, 10, 15);
        quarter_round(&mut x, 1, 6, 11, 12);
        quarter_round(&mut x, 2, 7, 8, 13);
        quarter_round(&mut x, 3, 4, 9, 14);
    }
    for (lanes, first) in x.iter_mut().zip(&start) {
        *lanes = _mm512_add_epi32(*lanes, *first);
    }

    // Transpose: within 128-bit quarters first, then the quarters themselves.
    // quads[w][c], quarter k: words 4w..4w+4 of block 4k + c.
    let mut quads = [[_mm512_setzero_si512(); 4]; 4];
    for w in 0..4 {
        let ab0 = _mm512_unpacklo_epi32(x[4 * w], x[4 * w + 1]);
        let ab1 = _mm512_unpackhi_epi32(x[4 * w], x[4 * w + 1]);
        let cd0 = _mm512_unpacklo_epi32(x[4 * w + 2], x[4 * w + 3]);
        let cd1 = _mm512_unpackhi_epi32(x[4 * w + 2], x[4 * w + 3]);
        quads[w] = [
            _mm512_unpacklo_epi64(ab0, cd0),
            _mm512_unpackhi_epi64(ab0, cd0),
            _mm512_unpacklo_epi64(ab1, cd1),
            _mm512_unpackhi_epi64(ab1, cd1),
        ];
    }
    let (blocks, _) = out.as_chunks_mut::<64>();
    for c in 0..4 {
        let p0 = _mm512_shuffle_i32x4::<0x44>(quads[0][c], quads[1][c]);
        let p1 = _mm512_shuffle_i32x4::<0xee>(quads[0][c], quads[1][c]);
        let p2 = _mm512_shuffle_i32x4::<0x44>(quads[2][c], quads[3][c]);
        let p3 = _mm512_shuffle_i32x4::<0xee>(quads[2][c], quads[3][c]);
        let four = [
            _mm512_shuffle_i32x4::<0x88>(p0, p2),
            _mm512_shuffle_i32x4::<0xdd>(p0, p2),
            _mm512_shuffle_i32x4::<0x88>(p1, p3),
            _mm512_shuffle_i32x4::<0xdd>(p1, p3),
        ];
        for (k, block) in four.into_iter().enumerate() {
            let mut words = [0u64; 8];
            store(&mut words, block);
            blocks[4 * k + c] = bytemuck::cast(words);
        }
    }
}
