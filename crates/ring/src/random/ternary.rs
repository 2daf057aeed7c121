//! Ternary secrets: uniform, and of fixed weight.

use zeroize::{Zeroize, Zeroizing};

use super::Stream;
use crate::error::RingError;
use crate::kernel::random::sort;

/// Lanes that are worked on side by side.
const LANES: usize = 8;
/// Digits taken from one lane.
const DIGITS: usize = 16;
/// Bits of a word that hold its fraction: thrice the word still fits.
const FRACTION: u32 = 62;

/// Fills `out` with independent values, uniform in {−1, 0, 1}, in time that depends on the
/// length alone.
///
/// 128 values come from 16 words: lane `j` of 8 holds the fraction
/// `(w_j mod 2^62)·2^−62 + (w_(j+8) mod 2^62)·2^−124`, and value `8d + j` is its digit `d` in
/// base 3 (`d = 0..16`, most significant first), less one. A short end uses its 16 words as well.
/// The 16 digits of a lane are within statistical distance 3^16/2^124 < 2^−98 of uniform, a
/// whole secret of 2^17 values within 2^−85.
pub fn ternary(stream: &mut Stream, out: &mut [i64]) {
    const MASK: u64 = (1 << FRACTION) - 1;
    let mut words = [0u64; 2 * LANES];
    let mut values = [0i64; LANES * DIGITS];
    for chunk in out.chunks_mut(LANES * DIGITS) {
        stream.fill_u64(&mut words);
        words.iter_mut().for_each(|w| *w &= MASK);
        let (high, low) = words.split_at_mut(LANES);
        for digits in values.chunks_exact_mut(LANES) {
            for ((digit, high), low) in digits.iter_mut().zip(&mut *high).zip(&mut *low) {
                let low3 = 3 * *low;
                let high3 = 3 * *high + (low3 >> FRACTION);
                *low = low3 & MASK;
                *high = high3 & MASK;
                *digit = (high3 >> FRACTION) as i64 - 1;
            }
        }
        chunk.copy_from_slice(&values[..chunk.len()]);
    }
    words.zeroize();
    values.zeroize();
}

/// Fills `out` with exactly `weight` values ±1 and zeros elsewhere, positions and signs uniform.
///
/// Each value starts as a 63-bit word: a random 61-bit key from the stream, over a code for
/// zero or a random sign, non-zero for the first `weight`. A bitonic network sorts the words;
/// with distinct keys every arrangement is equally likely, so the result is exactly uniform. If
/// two keys are equal (probability below n²/2^62) all words are drawn anew; that shows nothing
/// about the words that are kept. Otherwise the time depends on the length alone: no branch or
/// address depends on a key, position or sign.
///
/// # Errors
/// [`RingError::HammingWeight`] if `weight` is more than the length; nothing is written then.
pub fn fixed_weight_ternary(stream: &mut Stream, weight: usize, out: &mut [i64]) -> Result<(), RingError> {
    if weight > out.len() {
        return Err(RingError::HammingWeight { weight, length: out.len() });
    }
    if out.is_empty() {
        return Ok(());
    }
    // Padding sorts to the end: no word is larger, and a word that equals it may take its place.
    let mut words = Zeroizing::new(vec![u64::MAX >> 1; out.len().next_power_of_two()]);
    loop {
        let live = &mut words[..out.len()];
        stream.fill_u64(live);
        // Two low bits: 00 for zero, 01 for +1, 11 for −1.
        for word in live[..weight].iter_mut() {
            *word = *word >> 1 | 1;
        }
        for word in live[weight..].iter_mut() {
            *word = *word >> 1 & !3;
        }
        sort(&mut words);
        let pairs = words[..out.len()].windows(2);
        let collision = pairs.fold(0, |found, pair| found | ((pair[0] ^ pair[1]) >> 2).wrapping_sub(1) >> 63);
        if collision == 0 {
            break;
        }
    }
    for (value, word) in out.iter_mut().zip(words.iter()) {
        *value = (word & 1) as i64 - (word & 2) as i64;
    }
    Ok(())
}
