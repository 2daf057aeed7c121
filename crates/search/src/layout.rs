//! Where rows and payloads stand.
//!
//! A segment has two rows in each complex slot: those at positions 0 … S − 1 as real parts, those from S on as imaginary ones.
//! In compact mode a segment is m blocks of rows, each a ciphertext of a small ring for every coordinate with a row in each coefficient.
//! Position k·n + r is row r of block k: coefficient m·r + k of what the blocks are packed to, whose halves come to slots in
//! bit-reversed order. Blocks that no row needs are not stored.
//! Which row stands where is a permutation from the owner's key, so that positions of matches are uniform, whatever order
//! rows came in.
//!
//! A payload is cut into digits. Two columns, as real and imaginary part, are a ciphertext of one half of a segment; the last
//! columns are a one (as large as the largest digit, so that digits divided by it keep their precision) and the number of the half,
//! in two digits of six or eight bits. Each is stored twice: as it is, and rotated left by the
//! half's number, so that two rows that meet in a cell of one sum do not meet in the other.

use crate::payload::Payload;
use num_complex::Complex64;
use sudare_he::discrete::place;
use sudare_ring::order::bit_reverse;
use sudare_ring::random::Seed;

/// Sizes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Complex slots of a ciphertext.
    pub slots: usize,
    /// Rows of a block of the compact mode.
    pub block: Option<usize>,
}

impl Shape {
    /// Rows of a segment.
    pub fn rows(self) -> usize {
        2 * self.slots
    }

    /// Places that some rows of a segment are permuted among.
    pub fn places(self, rows: usize) -> usize {
        self.block.map_or(self.rows(), |block| rows.next_multiple_of(block))
    }

    /// Blocks that some rows of a segment are stored in: one in leveled mode, and one at least.
    pub fn blocks(self, rows: usize) -> usize {
        self.block.map_or(1, |block| rows.div_ceil(block).max(1))
    }

    /// Coordinate `j` of rows whose position is known, as slots.
    pub fn column(self, rows: &[f32], d: usize, positions: &[u32], j: usize) -> Vec<Complex64> {
        let mut out = vec![Complex64::ZERO; self.slots];
        for (row, position) in rows.chunks_exact(d).zip(positions) {
            let (half, slot) = self.place(*position as usize);
            let value = f64::from(row[j]);
            if half == 0 { out[slot].re = value } else { out[slot].im = value }
        }
        out
    }

    /// The half and the slot of a position.
    pub fn place(self, position: usize) -> (usize, usize) {
        let Some(n) = self.block else { return (position / self.slots, position % self.slots) };
        let coefficient = self.rows() / n * (position % n) + position / n;
        (coefficient / self.slots, bit_reverse(coefficient % self.slots, self.slots.ilog2()))
    }

    /// The position of a half and a slot.
    pub fn position(self, half: usize, slot: usize) -> usize {
        let Some(n) = self.block else { return half * self.slots + slot };
        let (coefficient, m) = (place(self.rows(), half * self.slots + slot), self.rows() / n);
        coefficient % m * n + coefficient / m
    }

    /// What a cell of the rotated sums is, of a slot of a half, or back with −half.
    pub fn rotated(self, slot: usize, half: i64) -> usize {
        (slot as i64 - half).rem_euclid(self.slots as i64) as usize
    }
}

/// The position of each row of a segment.
pub fn positions(seed: &Seed, segment: u64, rows: usize) -> Vec<u32> {
    let mut stream = seed.stream(segment);
    let mut out: Vec<u32> = (0..rows as u32).collect();
    for i in (1..rows).rev() {
        // The bias of a 64-bit word over at most 2^18 places is under 2^-46.
        let j = (u128::from(stream.next_u64()) * (i as u128 + 1)) >> 64;
        out.swap(i, j as usize);
    }
    out
}

/// Coordinate `j` of the rows that stand in a block, as coefficients; zero where there is none.
pub fn block_column(rows: &[f32], d: usize, block: &[u32], j: usize) -> Vec<f64> {
    let value = |row: &u32| rows.get(*row as usize * d + j).map_or(0.0, |x| f64::from(*x));
    block.iter().map(value).collect()
}

/// The row of each position.
pub fn inverse(positions: &[u32]) -> Vec<u32> {
    let mut out = vec![0u32; positions.len()];
    positions.iter().enumerate().for_each(|(row, p)| out[*p as usize] = row as u32);
    out
}

/// The columns of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payloads {
    /// Numbers and their bits.
    pub payload: Payload,
    /// Bits of a digit.
    pub digit_bits: u32,
    /// Bits of what a cell may hold at the lowest level.
    pub room: u32,
}

/// Columns beside digits: the one, and the half's number in two digits.
const BESIDE: usize = 3;
/// Bits of a digit of a half's number, where a cell holds so many: two of them number the halves of as many segments as there may be.
pub fn half_bits(room: u32) -> u32 {
    if room < 33 { 6 } else { 8 }
}

impl Payloads {
    pub fn new(payload: Payload, digit_bits: u32, room: u32) -> Self {
        Self { payload, digit_bits, room }
    }

    /// Digits of a number.
    pub fn digits(&self) -> usize {
        self.payload.bits.div_ceil(self.digit_bits) as usize
    }

    /// Columns of a row.
    pub fn columns(&self) -> usize {
        self.payload.numbers * self.digits() + BESIDE
    }

    /// Ciphertexts of one half of a segment.
    pub fn ciphertexts(&self) -> usize {
        self.columns().div_ceil(2)
    }

    /// Bits of a digit of a half's number.
    fn half_bits(&self) -> u32 {
        half_bits(self.room)
    }

    /// Bound on a column's values.
    pub fn bound(&self) -> f64 {
        f64::from(self.digit_bits.max(self.half_bits())).exp2()
    }

    /// Scale of columns, with which four rows may meet in a cell at the lowest level.
    pub fn scale(&self) -> f64 {
        f64::from(self.room - self.digit_bits.max(self.half_bits())).exp2()
    }

    /// The columns of a row.
    pub fn encode(&self, numbers: &[u64], half: u64) -> Vec<f64> {
        let mut out = Vec::with_capacity(self.columns());
        let mask = (1u64 << self.digit_bits) - 1;
        for number in numbers {
            out.extend((0..self.digits() as u32).map(|i| ((number >> (i * self.digit_bits)) & mask) as f64));
        }
        let low = half & ((1 << self.half_bits()) - 1);
        out.extend([self.bound(), low as f64, (half >> self.half_bits()) as f64]);
        out
    }

    /// How many rows a cell's columns are the sum of.
    pub fn met(&self, columns: &[f64]) -> f64 {
        columns[self.one()] / self.bound()
    }

    /// The column of the one.
    pub fn one(&self) -> usize {
        self.columns() - BESIDE
    }

    /// The numbers and the half of columns that are one row's; nothing for what is none.
    pub fn decode(&self, columns: &[i64]) -> Option<(Vec<u64>, u64)> {
        let digits = self.payload.numbers * self.digits();
        let fits = |x: i64, bits: u32| u64::try_from(x).ok().filter(|x| x >> bits == 0);
        let mut numbers = Vec::with_capacity(self.payload.numbers);
        for number in columns[..digits].chunks(self.digits()) {
            let mut out = 0u64;
            for (i, digit) in number.iter().enumerate() {
                let shift = i as u32 * self.digit_bits;
                // The last digit may be shorter.
                out |= fits(*digit, self.digit_bits.min(self.payload.bits - shift))? << shift;
            }
            numbers.push(out);
        }
        let [low, high] = [columns[digits + 1], columns[digits + 2]].map(|x| fits(x, self.half_bits()));
        Some((numbers, low? | high? << self.half_bits()))
    }

    /// Slots of each ciphertext of a half whose cells have these columns: `cells` of a place and its columns.
    pub fn slots(&self, shape: Shape, cells: &[(usize, Vec<f64>)]) -> Vec<Vec<Complex64>> {
        let mut out = vec![vec![Complex64::ZERO; shape.slots]; self.ciphertexts()];
        for (cell, columns) in cells {
            for (c, pair) in columns.chunks(2).enumerate() {
                // The last of an odd number stands alone.
                out[c][*cell] = Complex64::new(pair[0], if let [_, im] = pair { *im } else { 0.0 });
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_back() {
        for (bits, digit_bits) in [(1, 8), (9, 9), (12, 12), (12, 8), (16, 8), (64, 11)] {
            let payloads = Payloads::new(Payload { numbers: 3, bits, dtype: None }, digit_bits, 33);
            let most = u64::MAX >> (64 - bits);
            for (numbers, half) in [([0, most, most / 3], 0), ([1, 0, most - 1], 65_535), ([most; 3], 257)] {
                let columns: Vec<i64> = payloads.encode(&numbers, half).iter().map(|x| *x as i64).collect();
                assert_eq!(columns.len(), payloads.columns());
                assert_eq!(payloads.met(&payloads.encode(&numbers, half)), 1.0);
                assert_eq!(payloads.decode(&columns), Some((numbers.to_vec(), half)));
                let two: Vec<i64> = columns.iter().map(|x| x + (1 << digit_bits)).collect();
                assert_eq!(payloads.decode(&two), None);
            }
        }
    }

    /// Positions and places are the same in both ways, and blocks fill a segment one after the other.
    #[test]
    fn every_position_has_its_place() {
        for block in [None, Some(512), Some(1024)] {
            let shape = Shape { slots: 2048, block };
            let mut places: Vec<(usize, usize)> = (0..shape.rows()).map(|p| shape.place(p)).collect();
            assert!(places.iter().enumerate().all(|(p, (half, slot))| shape.position(*half, *slot) == p));
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), 4096);
            assert_eq!(shape.places(600), block.map_or(4096, |b| b.max(600).next_multiple_of(b)));
            assert_eq!([0, 600].map(|rows| shape.blocks(rows)), [1, if block == Some(512) { 2 } else { 1 }]);
        }
    }

    #[test]
    fn a_permutation_for_each_segment() {
        let seed = Seed::from_entropy().unwrap();
        let [mut a, mut b] = [0, 1].map(|segment| positions(&seed, segment, 1000));
        assert_eq!(a, positions(&seed, 0, 1000));
        assert_ne!(a, b);
        a.sort_unstable();
        b.sort_unstable();
        assert_eq!(a, (0..1000).collect::<Vec<u32>>());
        assert_eq!(a, b);
    }
}
