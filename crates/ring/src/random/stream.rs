//! A buffered ChaCha20 key stream.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use core::fmt;
use zeroize::{Zeroize, Zeroizing};

#[cfg(target_arch = "x86_64")]
use crate::kernel::random::ChaCha;
use crate::kernel::random::GROUP_BYTES;

/// The key stream of ChaCha20 with a 64-bit counter and nonce, read in order: the same bytes on
/// every machine. Its state and its buffer are wiped on drop.
///
/// Made by [`Seed::stream`](super::Seed::stream) and
/// [`MaskSeed::stream`](super::MaskSeed::stream). The stream ends after 2^64 blocks, far out of
/// reach.
pub struct Stream {
    /// Boxed, so that moving a stream leaves no copy of its key behind.
    inner: Box<Inner>,
}

struct Inner {
    source: Source,
    buffer: [u8; GROUP_BYTES],
    /// Bytes of the buffer that have been given out.
    used: usize,
    /// Bytes of the stream that have been given out.
    position: u64,
}

/// Where the bytes come from: the project's AVX-512 kernel, nearly three times as fast as the library's
/// AVX2, or the library. Both wipe themselves on drop.
enum Source {
    #[cfg(target_arch = "x86_64")]
    Wide(ChaCha),
    Library(Box<ChaCha20Rng>),
}

impl Source {
    fn new(key: &[u8; 32], nonce: u64) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(wide) = ChaCha::new(key, nonce) {
            return Self::Wide(wide);
        }
        let key = Zeroizing::new(*key);
        let mut library = Box::new(ChaCha20Rng::from_seed(*key));
        library.set_stream(nonce);
        Self::Library(library)
    }

    /// Writes whole groups of blocks.
    fn fill(&mut self, out: &mut [u8]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Wide(wide) => wide.fill(out),
            Self::Library(library) => library.fill_bytes(out),
        }
    }
}

impl Stream {
    pub(super) fn new(key: &[u8; 32], nonce: u64) -> Self {
        let source = Source::new(key, nonce);
        Self { inner: Box::new(Inner { source, buffer: [0; GROUP_BYTES], used: GROUP_BYTES, position: 0 }) }
    }

    /// Bytes given out so far.
    #[inline]
    pub fn position(&self) -> u64 {
        self.inner.position
    }

    /// The next bytes of the stream.
    pub fn fill_bytes(&mut self, out: &mut [u8]) {
        let inner = &mut *self.inner;
        inner.position += out.len() as u64;
        let (head, rest) = out.split_at_mut(out.len().min(GROUP_BYTES - inner.used));
        head.copy_from_slice(&inner.buffer[inner.used..inner.used + head.len()]);
        inner.used += head.len();
        let (groups, tail) = rest.split_at_mut(rest.len() / GROUP_BYTES * GROUP_BYTES);
        inner.source.fill(groups);
        if !tail.is_empty() {
            inner.source.fill(&mut inner.buffer);
            tail.copy_from_slice(&inner.buffer[..tail.len()]);
            inner.used = tail.len();
        }
    }

    /// The next words of the stream, each of its next eight bytes in little-endian order.
    pub fn fill_u64(&mut self, out: &mut [u64]) {
        self.fill_bytes(bytemuck::cast_slice_mut(out));
        if cfg!(target_endian = "big") {
            out.iter_mut().for_each(|word| *word = u64::from_le(*word));
        }
    }

    /// The next word of the stream.
    pub fn next_u64(&mut self) -> u64 {
        let mut word = [0];
        self.fill_u64(&mut word);
        word[0]
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.inner.buffer.zeroize();
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("position", &self.inner.position).finish_non_exhaustive()
    }
}
