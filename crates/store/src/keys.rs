//! Evaluation keys that stay in their file.

use crate::error::{At, StoreError};
use crate::position::read_at;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use sudare_ring::Kinded;
use sudare_ring::memo::PerProcess;
use sudare_ring::threads::alone;
use sudare_rlwe::keys::{EvalKeys, GaloisKey, KeySource, KeySwitchKey};
use sudare_rlwe::wire::{Header, KeyRecord, Reader, Source, Wire, WireError, peek};
use sudare_rlwe::{KeyId, Params, RlweError};

/// Evaluation keys that are read from their file when they are asked for, and within a given memory.
///
/// The file is what [`EvalKeys`] are written as. A key is read, checked and put together in one piece; those that
/// circuits announce ([`KeySource::prefetch`]) are read ahead on a thread of their own, in the order of use, as far as there is
/// room. What makes room is the key that will not be used for the longest time, as far as is announced, and of the others the one
/// that has not been used for the longest. A key that somebody holds stays: a step that uses more keys at once than there
/// is room for has them all, and the next makes room again. Cloning shares it.
#[derive(Clone, Debug)]
pub struct KeyFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    header: Header,
    params: Params,
    /// By Galois element; [`KeyRecord::SWITCH`] for relinearisation.
    keys: BTreeMap<u64, Place>,
    memory: usize,
    /// Threads that load are those of one process: a forked one loads for itself.
    shared: PerProcess<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A key in the file.
#[derive(Debug)]
struct Place {
    record: KeyRecord,
    /// Its first segment.
    segment: usize,
    /// Bytes in memory.
    bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    held: BTreeMap<u64, Held>,
    loading: BTreeSet<u64>,
    /// A key that others wait for while it is loaded: it stays until they have it.
    awaited: Vec<u64>,
    /// The keys that were announced and not asked for since.
    ahead: VecDeque<u64>,
    /// Whether a thread reads ahead.
    reading: bool,
    /// Keys asked for so far, and keys read.
    asked: u64,
    loads: u64,
}

#[derive(Debug)]
struct Held {
    key: Loaded,
    /// When it was last asked for.
    used: u64,
}

#[derive(Clone, Debug)]
enum Loaded {
    Relin(Arc<KeySwitchKey>),
    Galois(Arc<GaloisKey>),
}

impl Loaded {
    /// Whether anybody but the source has it.
    fn in_use(&self) -> bool {
        match self {
            Self::Relin(key) => Arc::strong_count(key) > 1,
            Self::Galois(key) => Arc::strong_count(key) > 1,
        }
    }
}

/// The file from a place on, whatever others read of it.
struct Onwards<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for Onwards<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = read_at(self.file, out, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl KeyFile {
    /// Opens the file of evaluation keys for these parameters, of which at most `memory` bytes are held beyond what is
    /// in use. Its header is read and checked; each key is when it is loaded.
    ///
    /// # Errors
    /// [`StoreError::Io`]; [`StoreError::Wire`] for what is no such file, belongs to other parameters, or ends early.
    pub fn open(path: &Path, params: &Params, memory: usize) -> Result<Self, StoreError> {
        let file = File::open(path).at(path)?;
        let header = peek(BufReader::new(Onwards { file: &file, offset: 0 }))?;
        header.expect_object(EvalKeys::TYPE)?;
        header.expect_params(params.hash())?;
        let records = KeyRecord::of_header(params, &header)?;
        let (found, expected) = (file.metadata().at(path)?.len(), header.total_bytes());
        if found != expected {
            return Err(StoreError::damaged(path, format!("it has {found} bytes, and these keys have {expected}")));
        }
        let (mut keys, mut segment) = (BTreeMap::new(), 0);
        for record in records {
            let bytes = KeySwitchKey::bytes_at(params.literal(), record.level);
            let next = segment + record.segments(params);
            keys.insert(record.element, Place { record, segment, bytes });
            segment = next;
        }
        Ok(Self(Arc::new(Inner {
            path: path.into(),
            file,
            header,
            params: params.clone(),
            keys,
            memory,
            shared: PerProcess::new(),
        })))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The contents of the file, by its beginning.
    pub fn contents(&self) -> impl Read + '_ {
        Onwards { file: &self.0.file, offset: 0 }
    }

    /// Bytes of keys that are held beyond what is in use.
    pub fn memory(&self) -> usize {
        self.0.memory
    }

    /// Bytes that all keys would take in memory.
    pub fn all_bytes(&self) -> usize {
        self.0.keys.values().map(|place| place.bytes).sum()
    }

    /// The number of keys that were read so far.
    pub fn loads(&self) -> u64 {
        self.0.state().loads
    }

    /// A key, from memory or from the file.
    fn get(&self, element: u64, missing: RlweError) -> Result<Loaded, RlweError> {
        let inner = &self.0;
        let Some(place) = inner.keys.get(&element) else { return Err(missing) };
        let mut state = inner.state();
        if let Some(at) = state.ahead.iter().position(|e| *e == element) {
            state.ahead.remove(at);
        }
        state.asked += 1;
        loop {
            let now = state.asked;
            if let Some(held) = state.held.get_mut(&element) {
                held.used = now;
                let key = held.key.clone();
                inner.make_room(&mut state, 0, 0);
                self.read_ahead(state);
                return Ok(key);
            }
            if !state.loading.contains(&element) {
                break;
            }
            state.awaited.push(element);
            state = inner.wait(state);
            if let Some(at) = state.awaited.iter().position(|e| *e == element) {
                state.awaited.swap_remove(at);
            }
        }
        inner.make_room(&mut state, place.bytes, 0);
        state.loading.insert(element);
        // The next one is read while this one is.
        self.read_ahead(state);
        inner
            .load(element, Loaded::clone)
            .map_err(|e| RlweError::KeyNotLoaded { reason: format!("{}: {e}", inner.path.display()), kind: e.kind() })
    }

    /// Reads ahead, unless a thread does so already or there is nothing to read or no room.
    fn read_ahead(&self, mut state: MutexGuard<'_, State>) {
        if state.reading || self.0.next(&mut state).is_none() {
            return;
        }
        let inner = self.0.clone();
        state.reading = std::thread::Builder::new()
            .name("keys ahead".into())
            .spawn(move || {
                loop {
                    let mut state = inner.state();
                    let Some(element) = inner.next(&mut state) else {
                        state.reading = false;
                        return;
                    };
                    state.loading.insert(element);
                    drop(state);
                    // Whoever asks for it meets the error.
                    if inner.load(element, |_| ()).is_err() {
                        inner.state().ahead.clear();
                    }
                }
            })
            .is_ok();
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.get().state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, guard: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        self.shared.get().changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of keys that are held or being loaded.
    fn bytes(&self, state: &State) -> usize {
        state.held.keys().chain(&state.loading).map(|e| self.keys[e].bytes).sum()
    }

    /// Lets go of keys that nobody uses until there is room for `more` bytes; of those announced only what comes after the
    /// first `spared`. Whether there is room.
    fn make_room(&self, state: &mut State, more: usize, spared: usize) -> bool {
        let mut bytes = self.bytes(state);
        while bytes + more > self.memory {
            let State { held, ahead, awaited, .. } = &mut *state;
            let place = |e: &u64| ahead.iter().position(|a| a == e).unwrap_or(usize::MAX);
            let free = held.iter().filter(|(e, held)| !held.key.in_use() && !awaited.contains(e) && place(e) >= spared);
            let last = free.max_by_key(|(e, held)| (place(e), u64::MAX - held.used)).map(|(e, _)| *e);
            let Some(element) = last else { return false };
            held.remove(&element);
            bytes -= self.keys[&element].bytes;
        }
        true
    }

    /// The keys to read ahead now, with room for them.
    fn next(&self, state: &mut State) -> Option<u64> {
        let missing = |e: &u64| !state.held.contains_key(e) && !state.loading.contains(e);
        let at = state.ahead.iter().position(missing)?;
        let element = state.ahead[at];
        self.make_room(state, self.keys[&element].bytes, at + 1).then_some(element)
    }

    /// Loads a key that is marked as being loaded, on this thread alone: a thread of a pool would take up other work
    /// meanwhile, which may wait for this very key. Nobody but the source has it then, but for what is taken of it here.
    fn load<T>(&self, element: u64, take: impl FnOnce(&Loaded) -> T) -> Result<T, WireError> {
        /// Unmarks it, however loading ended, and keeps what was loaded.
        struct Done<'a>(&'a Inner, u64, Option<Loaded>);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                let mut state = self.0.state();
                state.loading.remove(&self.1);
                if let Some(key) = self.2.take() {
                    state.loads += 1;
                    let used = state.asked;
                    state.held.insert(self.1, Held { key, used });
                }
                drop(state);
                self.0.shared.get().changed.notify_all();
            }
        }
        let mut done = Done(self, element, None);
        let key = alone(|| self.read(&self.keys[&element]))?;
        let taken = take(&key);
        done.2 = Some(key);
        Ok(taken)
    }

    fn read(&self, place: &Place) -> Result<Loaded, WireError> {
        let last = place.segment + place.record.segments(&self.params);
        let [offset, end] = [place.segment, last].map(|segment| self.header.end_of(segment));
        let mut bytes = Vec::with_capacity((end - offset) as usize);
        Onwards { file: &self.file, offset }.take(end - offset).read_to_end(&mut bytes)?;
        let mut reader = Reader::from_segment(Source::Bytes(&bytes), self.header.clone(), place.segment);
        let key = place.record.read_key(&self.params, &mut reader)?;
        Ok(match place.record.element {
            KeyRecord::SWITCH => Loaded::Relin(Arc::new(key)),
            element => Loaded::Galois(Arc::new(GaloisKey::from_parts(element, key)?)),
        })
    }
}

impl KeySource for KeyFile {
    fn params(&self) -> &Params {
        &self.0.params
    }

    fn id(&self) -> KeyId {
        self.0.header.key()
    }

    fn bytes(&self) -> usize {
        self.0.bytes(&self.0.state())
    }

    fn relin_level(&self) -> Option<usize> {
        self.galois_level(KeyRecord::SWITCH)
    }

    fn galois_level(&self, element: u64) -> Option<usize> {
        self.0.keys.get(&element).map(|place| place.record.level)
    }

    fn relin(&self) -> Result<Arc<KeySwitchKey>, RlweError> {
        match self.get(KeyRecord::SWITCH, RlweError::MissingRelinKey)? {
            Loaded::Relin(key) => Ok(key),
            Loaded::Galois(_) => Err(RlweError::MissingRelinKey),
        }
    }

    fn galois(&self, element: u64, step: i64) -> Result<Arc<GaloisKey>, RlweError> {
        let missing = RlweError::MissingRotationKey { step, element };
        match self.get(element, missing.clone())? {
            Loaded::Galois(key) => Ok(key),
            Loaded::Relin(_) => Err(missing),
        }
    }

    fn prefetch(&self, elements: &[u64]) {
        let mut state = self.0.state();
        let (mut seen, mut ahead) = (BTreeSet::new(), VecDeque::new());
        // What was announced before comes after it.
        for element in elements.iter().chain(&state.ahead) {
            if *element != 1 && self.0.keys.contains_key(element) && seen.insert(*element) {
                ahead.push_back(*element);
            }
        }
        state.ahead = ahead;
        self.read_ahead(state);
    }
}

impl From<KeyFile> for Arc<dyn KeySource> {
    fn from(keys: KeyFile) -> Self {
        Arc::new(keys)
    }
}
