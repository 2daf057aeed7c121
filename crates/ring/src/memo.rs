//! Things that are made once for each key that asks for them.

use once_cell::race::OnceBox;

/// A cell that is set once, without a lock: two threads that ask at once may both make what it holds, and one is dropped.
pub use once_cell::race::OnceBox as Once;

/// A map that only grows, without a lock: a process that is forked while a thread is inside loses
/// that thread, and a lock that it held would stay locked in the child for ever.
///
/// Entries are found one after the other: it is meant for some dozens.
pub struct Memo<K, V>(OnceBox<Entry<K, V>>);

struct Entry<K, V> {
    key: K,
    value: V,
    next: Memo<K, V>,
}

impl<K: PartialEq, V> Memo<K, V> {
    /// An empty map.
    pub const fn new() -> Self {
        Self(OnceBox::new())
    }

    fn entries(&self) -> impl Iterator<Item = &Entry<K, V>> {
        std::iter::successors(self.0.get(), |entry| entry.next.0.get())
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries().count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries().find(|entry| entry.key == *key).map(|entry| &entry.value)
    }

    /// Keeps the value of a key and returns what is kept: another one if a thread was faster.
    pub fn insert(&self, key: K, value: V) -> &V {
        let mut ours = Some(Box::new(Entry { key, value, next: Self::new() }));
        let mut place = self;
        loop {
            match place.0.get() {
                Some(found) if ours.as_ref().is_none_or(|o| o.key == found.key) => return &found.value,
                Some(found) => place = &found.next,
                None => ours = ours.and_then(|entry| place.0.set(entry).err()),
            }
        }
    }
}

impl<K: PartialEq + std::fmt::Debug, V: std::fmt::Debug> std::fmt::Debug for Memo<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.entries().map(|entry| (&entry.key, &entry.value))).finish()
    }
}

impl<K: PartialEq, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

/// One of something for each process: threads share it, and a forked process makes its own.
///
/// What a lock guards is kept in it if a forked process needs it too: a lock that another thread held at the fork
/// stays shut in the child, and what it guards may be half changed.
pub struct PerProcess<T>(Memo<u32, T>);

impl<T> PerProcess<T> {
    /// None yet.
    pub const fn new() -> Self {
        Self(Memo::new())
    }

    /// This process's; the first who asks makes it.
    pub fn get_or(&self, make: impl FnOnce() -> T) -> &T {
        let process = process();
        self.0.get(&process).unwrap_or_else(|| self.0.insert(process, make()))
    }
}

impl<T: Default> PerProcess<T> {
    /// This process's, which begins as the default.
    pub fn get(&self) -> &T {
        self.get_or(T::default)
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Default + std::fmt::Debug> std::fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

/// This process. Only Unix has processes that go on as copies of others.
pub(crate) fn process() -> u32 {
    if cfg!(unix) { std::process::id() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_key_stays() {
        let memo = Memo::default();
        assert!(memo.is_empty() && memo.get(&1).is_none());
        assert_eq!((*memo.insert(1, "one"), *memo.insert(2, "two"), *memo.insert(1, "uno")), ("one", "two", "one"));
        assert_eq!((memo.get(&1), memo.get(&2), memo.get(&3), memo.len()), (Some(&"one"), Some(&"two"), None, 2));
    }

    #[test]
    fn one_for_each_process() {
        let each = PerProcess::new();
        assert_eq!((*each.get_or(|| 7), *each.get_or(|| 8)), (7, 7));
        // As if it came from another process.
        let each = PerProcess(Memo::new());
        each.0.insert(process().wrapping_add(1), 7);
        assert_eq!((*each.get_or(|| 8), each.0.len()), (8, 2));
    }

    #[test]
    fn threads_agree() {
        let memo = Memo::new();
        std::thread::scope(|s| {
            for thread in 0..4u32 {
                let memo = &memo;
                s.spawn(move || {
                    for key in 0..50u32 {
                        memo.insert(key * 7 % 50, thread);
                    }
                });
            }
        });
        assert_eq!(memo.len(), 50);
        assert!((0..50).all(|key| memo.get(&key).is_some()));
    }
}
