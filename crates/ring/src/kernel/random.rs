//! Kernels of [`crate::random`], as the platform chose them: the ChaCha20 block function, the table
//! comparison of the Gaussian sampler and an oblivious sort. Their contract is
//! [`WordKernels`](super::contract::WordKernels).

#[cfg(target_arch = "x86_64")]
use super::contract::ChaChaKernel;
use super::platform;

/// Blocks that one step of [`ChaCha::fill`] makes.
pub const GROUP_BLOCKS: usize = 16;
/// Bytes of such a step.
pub const GROUP_BYTES: usize = 64 * GROUP_BLOCKS;
/// Words below `2^63` compare by the borrow of their difference.
pub const WORD_MASK: u64 = u64::MAX >> 1;

/// How many thresholds are above each draw, with its sign.
///
/// # Panics
/// If there are not two words for each result.
pub fn count_thresholds(thresholds: &[[u64; 2]], draws: &[u64], out: &mut [i64]) {
    assert_eq!(draws.len(), 2 * out.len());
    platform::words().count_thresholds(thresholds, draws, out);
}

/// Sorts words below `2^63` in place by a bitonic network. The memory accesses and the instructions
/// depend on the length alone.
///
/// # Panics
/// If the length is no power of two.
pub fn sort(words: &mut [u64]) {
    assert!(words.len().is_power_of_two());
    platform::words().sort(words);
}

/// The ChaCha20 key stream sixteen blocks at a time, with a 64-bit block counter and a 64-bit
/// nonce (words 12, 13 and 14, 15 of the state), as Bernstein defined it.
#[cfg(target_arch = "x86_64")]
#[derive(zeroize::Zeroize, zeroize::ZeroizeOnDrop)]
pub struct ChaCha {
    state: [u32; 16],
    #[zeroize(skip)]
    kernel: &'static dyn ChaChaKernel,
}

#[cfg(target_arch = "x86_64")]
impl ChaCha {
    /// The stream of a key and a nonce, or nothing where the library's is the faster one.
    pub fn new(key: &[u8; 32], nonce: u64) -> Option<Self> {
        platform::words().chacha().map(|kernel| Self::with_kernel(key, nonce, kernel))
    }

    fn with_kernel(key: &[u8; 32], nonce: u64, kernel: &'static dyn ChaChaKernel) -> Self {
        let mut state = [0; 16];
        state[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
        for (word, bytes) in state[4..12].iter_mut().zip(key.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        state[14] = nonce as u32;
        state[15] = (nonce >> 32) as u32;
        Self { state, kernel }
    }

    /// Writes the next groups of the stream; `out` is a multiple of [`GROUP_BYTES`] long.
    ///
    /// # Panics
    /// If the length of `out` is no multiple of [`GROUP_BYTES`].
    pub fn fill(&mut self, out: &mut [u8]) {
        assert_eq!(out.len() % GROUP_BYTES, 0);
        for group in out.as_chunks_mut::<GROUP_BYTES>().0 {
            self.kernel.group(&self.state, group);
            let counter = u64::from(self.state[12]) | u64::from(self.state[13]) << 32;
            let counter = counter.wrapping_add(GROUP_BLOCKS as u64);
            self.state[12] = counter as u32;
            self.state[13] = (counter >> 32) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Family;
    use super::super::contract::WordKernels;
    use super::*;
    use sudare_testkit::Random;

    fn families() -> impl Iterator<Item = (Family, &'static dyn WordKernels)> {
        Family::ALL.into_iter().filter_map(|f| Some((f, platform::kernels(f)?.words())))
    }

    #[test]
    fn sorts() {
        for log in 0..=13 {
            let mut start: Vec<u64> = Random(log).words(u64::MAX, 1 << log).iter().map(|w| w & WORD_MASK).collect();
            start[0] = WORD_MASK;
            start[(1 << log) / 2] = 0;
            let mut expected = start.clone();
            expected.sort_unstable();
            for (family, kernels) in families() {
                let mut found = start.clone();
                kernels.sort(&mut found);
                assert_eq!(found, expected, "{}", family.name());
            }
        }
    }

    #[test]
    fn counts_at_the_edges_of_the_thresholds() {
        let value = |t: [u64; 2]| u128::from(t[1]) << 63 | u128::from(t[0]);
        let thresholds =
            [[5, WORD_MASK], [0, 1 << 62], [WORD_MASK, 1 << 40], [7, 1 << 40], [WORD_MASK, 0], [1, 0], [0, 0]];
        let mut draws = Random(1).words(u64::MAX, 2 * 333);
        for (i, t) in thresholds.iter().enumerate() {
            for (j, delta) in [-1i64, 0, 1].into_iter().enumerate() {
                let near = value(*t).wrapping_add_signed(i128::from(delta)) & ((1 << 126) - 1);
                draws[2 * (3 * i + j)] = near as u64 & WORD_MASK | (j as u64) << 63;
                draws[2 * (3 * i + j) + 1] = (near >> 63) as u64 | (i as u64 & 1) << 63;
            }
        }
        let expected: Vec<i64> = draws
            .chunks_exact(2)
            .map(|d| {
                let draw = value([d[0] & WORD_MASK, d[1] & WORD_MASK]);
                let count = thresholds.iter().filter(|t| draw < value(**t)).count() as i64;
                if d[1] >> 63 == 1 { -count } else { count }
            })
            .collect();
        for (family, kernels) in families() {
            let mut found = vec![9; expected.len()];
            kernels.count_thresholds(&thresholds, &draws, &mut found);
            assert_eq!(found, expected, "{}", family.name());
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn chacha_agrees_with_the_library() {
        use chacha20::ChaCha20Rng;
        use chacha20::rand_core::{Rng, SeedableRng};
        let key: [u8; 32] = core::array::from_fn(|i| (7 * i) as u8);
        for (family, kernel) in families().filter_map(|(f, k)| Some((f, k.chacha()?))) {
            // The counter starts where its low word is about to overflow.
            for (nonce, start) in [(0, 0), (0x0123_4567_89ab_cdef, 0xffff_fff8u64)] {
                let mut ours = ChaCha::with_kernel(&key, nonce, kernel);
                ours.state[12] = start as u32;
                let mut theirs = ChaCha20Rng::from_seed(key);
                theirs.set_stream(nonce);
                theirs.set_word_pos(16 * u128::from(start));
                let (mut a, mut b) = (vec![0; 4 * GROUP_BYTES], vec![0; 4 * GROUP_BYTES]);
                ours.fill(&mut a);
                theirs.fill_bytes(&mut b);
                assert_eq!(a, b, "{}", family.name());
            }
        }
    }
}
