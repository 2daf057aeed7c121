//! The permutation of evaluations that an automorphism is.
//!
//! Write an index of the evaluation order as block `B`, row `r`, lane `c` (64B + 8r + c). Its
//! exponent is 2(X·2^(L−6) + brv(B)) + 1 with `X = 8·brv(r) + brv(c)` and L = log2 N. Under
//! X ↦ X^g a whole block comes from one block, and within it `X` from `g·X + s` mod 64 for one
//! shift `s` a block: each lane from one lane, its eight rows rotated by an amount of its own
//! (and all of them dilated alike by g mod 8). So eight vectors are loaded, one two-source lane
//! permutation each, two masked moves each, stored; no gathers.

use crate::order::bit_reverse;
use std::sync::Arc;

/// Values in a block.
const BLOCK: usize = 64;

/// Where one block of the output comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub block: u32,
    pub shift: u32,
}

/// How the lanes of a block are mixed, for one shift.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mix {
    /// Source lane of each lane, plus 8 where its rows rotate by 4 more.
    pub lanes: [u64; 8],
    /// Lanes whose rows rotate by 2 more.
    pub rotate2: u8,
    /// Lanes whose rows rotate by 1 more.
    pub rotate1: u8,
    /// The same in plain words: the source place of each place of the block.
    places: [u8; BLOCK],
}

impl Mix {
    /// Fills in the places, for the order of rows of its permutation.
    fn place(&mut self, rows: &[usize; 8]) {
        for j in 0..8 {
            for lane in 0..8 {
                let from = self.lanes[lane] as usize;
                let (r2, r1) = (self.rotate2 >> lane & 1, self.rotate1 >> lane & 1);
                let rotated = (j + (from >> 3) * 4 + usize::from(2 * r2 + r1)) % 8;
                self.places[8 * bit_reverse(j, 3) + lane] = (8 * rows[rotated] + (from & 7)) as u8;
            }
        }
    }
}

/// The map `out[i] = src[index of g · exponent(i)]`.
#[derive(Debug, Clone)]
pub struct BlockPermutation {
    pub(super) sources: Vec<Source>,
    /// For each shift.
    pub(super) mixes: Arc<[Mix]>,
    /// Rows in the order in which g dilates them.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(super) rows: [usize; 8],
}

impl BlockPermutation {
    /// For a power of two `n ≥ 64` and an odd `g < 2n`.
    pub fn new(n: usize, g: usize) -> Self {
        let bits = n.trailing_zeros() - 6;
        let sources = (0..n / BLOCK)
            .map(|block| {
                let y = g * bit_reverse(block, bits) + g / 2;
                let shift = ((y >> bits) % BLOCK) as u32;
                Source { block: bit_reverse(y & ((1 << bits) - 1), bits) as u32, shift }
            })
            .collect();
        let mut mixes: Vec<Mix> = (0..BLOCK)
            .map(|shift| {
                let mut mix = Mix { lanes: [0; 8], rotate2: 0, rotate1: 0, places: [0; BLOCK] };
                for lane in 0..8 {
                    let x = (g * bit_reverse(lane, 3) + shift) % BLOCK;
                    // g is its own inverse modulo 8.
                    let rotation = g * (x / 8) % 8;
                    mix.lanes[lane] = (bit_reverse(x % 8, 3) + 2 * (rotation & 4)) as u64;
                    mix.rotate2 |= ((rotation >> 1 & 1) as u8) << lane;
                    mix.rotate1 |= ((rotation & 1) as u8) << lane;
                }
                mix
            })
            .collect();
        let mut rows = [0; 8];
        for (j, row) in rows.iter_mut().enumerate() {
            *row = bit_reverse(g * j % 8, 3);
        }
        mixes.iter_mut().for_each(|mix| mix.place(&rows));
        Self { sources, mixes: mixes.into(), rows }
    }

    /// The part of the map that fills part `part` of `parts`, a power of two: the number of the part that it comes from,
    /// the only one, and the map between the two.
    pub fn part(&self, part: usize, parts: usize) -> (usize, Self) {
        let size = self.sources.len() / parts;
        let own = &self.sources[part * size..(part + 1) * size];
        // The lowest bits of an exponent, which part it is, determine those of its product with g.
        let from = own[0].block as usize / size;
        let near = |s: &Source| Source { block: s.block - (from * size) as u32, ..*s };
        (from, Self { sources: own.iter().map(near).collect(), mixes: Arc::clone(&self.mixes), rows: self.rows })
    }

    /// `put(out[i], src[…])` for every `i`; both have the `n` words of [`BlockPermutation::new`].
    #[inline(always)]
    pub(super) fn apply_plain(&self, out: &mut [u64], src: &[u64], put: impl Fn(&mut u64, u64)) {
        let src = src.as_chunks::<BLOCK>().0;
        for (out, source) in out.chunks_exact_mut(BLOCK).zip(&self.sources) {
            let src = &src[source.block as usize];
            for (o, place) in out.iter_mut().zip(&self.mixes[source.shift as usize].places) {
                // A place is below 64.
                put(o, src[usize::from(*place) % BLOCK]);
            }
        }
    }
}
