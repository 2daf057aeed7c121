//! Reading blocks in a known order, ahead of who works on them.

use crate::block::Block;
use crate::error::StoreError;
use crate::source::BlockSource;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A block that will be wanted.
#[derive(Clone, Copy)]
pub struct Request<'s> {
    /// Where from.
    pub source: &'s dyn BlockSource,
    /// Its row.
    pub row: usize,
    /// Its column.
    pub col: usize,
}

/// Hands out the blocks of [`read_ahead`], in order.
pub struct Ahead<'s> {
    requests: &'s [Request<'s>],
    /// Most bytes of blocks that are read and not handed back.
    window: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The next to be read, and the next to be handed out.
    next: usize,
    taken: usize,
    /// Bytes that are being read, wait, or are out.
    out: u64,
    ready: BTreeMap<usize, Result<Block, StoreError>>,
    spare: Vec<Block>,
    /// The one that wanted blocks is gone.
    over: bool,
}

/// Marks the end for the readers, however the work ended.
struct Over<'a, 's>(&'a Ahead<'s>);

impl Drop for Over<'_, '_> {
    fn drop(&mut self) {
        self.0.state().over = true;
        self.0.changed.notify_all();
    }
}

/// Reads blocks in order on `threads` threads while `work` takes them, at most `window` bytes ahead (one block at
/// least).
pub fn read_ahead<'s, R>(
    requests: &'s [Request<'s>],
    window: u64,
    threads: usize,
    work: impl FnOnce(&Ahead<'s>) -> R,
) -> R {
    let ahead = Ahead { requests, window, state: Mutex::default(), changed: Condvar::new() };
    std::thread::scope(|scope| {
        let _over = Over(&ahead);
        for _ in 0..threads.max(1) {
            scope.spawn(|| ahead.serve());
        }
        work(&ahead)
    })
}

impl Ahead<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, guard: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// A reading thread.
    fn serve(&self) {
        let mut state = self.state();
        while !state.over && state.next < self.requests.len() {
            let Request { source, row, col } = self.requests[state.next];
            let bytes = source.block_bytes();
            // One that is waited for is read in any case.
            if state.next >= state.taken && state.out > 0 && state.out + bytes > self.window {
                state = self.wait(state);
                continue;
            }
            let at = state.next;
            state.next += 1;
            state.out += bytes;
            let spare = state.spare.iter().position(|b| b.bytes().len() as u64 == bytes);
            let spare = spare.map(|i| state.spare.swap_remove(i));
            drop(state);
            let mut block = spare.unwrap_or_else(|| Block::zeroed(bytes as usize));
            let read = source.read(row, col, &mut block).map(|()| block);
            state = self.state();
            state.ready.insert(at, read);
            self.changed.notify_all();
        }
    }

    /// The next block, once it is read; `None` after the last.
    ///
    /// # Errors
    /// As [`BlockSource::read`].
    pub fn next(&self) -> Result<Option<Block>, StoreError> {
        let mut state = self.state();
        if state.taken == self.requests.len() {
            return Ok(None);
        }
        let at = state.taken;
        state.taken += 1;
        self.changed.notify_all();
        loop {
            if let Some(read) = state.ready.remove(&at) {
                return read.map(Some);
            }
            state = self.wait(state);
        }
    }

    /// Takes blocks back, whose memory is used again.
    pub fn give_back(&self, blocks: impl IntoIterator<Item = Block>) {
        let mut state = self.state();
        for block in blocks {
            state.out -= block.bytes().len() as u64;
            state.spare.push(block);
        }
        self.changed.notify_all();
    }
}
