//! Wiping of secret words at the speed of memory.

use std::ops::{Deref, DerefMut};
use zeroize::optimization_barrier;

/// Overwrites values with zeros, and keeps the compiler from leaving that out.
///
/// What [`zeroize::Zeroize`] does for a slice, by stores of whole vectors: its own stores go value by value, which
/// takes longer than to decrypt.
pub fn wipe<T: Copy + Default>(values: &mut [T]) {
    values.fill(T::default());
    optimization_barrier(values);
}

/// Values that are wiped by [`wipe`] when they are dropped.
pub struct Wiped<T: Copy + Default>(Vec<T>);

impl<T: Copy + Default> Wiped<T> {
    /// So many zeros.
    pub fn zeros(len: usize) -> Self {
        Self(vec![T::default(); len])
    }
}

impl<T: Copy + Default> From<Vec<T>> for Wiped<T> {
    fn from(values: Vec<T>) -> Self {
        Self(values)
    }
}

impl<T: Copy + Default> Deref for Wiped<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Copy + Default> DerefMut for Wiped<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: Copy + Default> Drop for Wiped<T> {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left() {
        for len in [0, 1, 7, 8, 1000] {
            let mut words = vec![0x1234_5678_9abc_def0u64; len];
            wipe(&mut words);
            assert!(words.iter().all(|x| *x == 0));
        }
        let mut values = [1.5; 9];
        wipe(&mut values);
        assert_eq!(values, [0.0; 9]);
        assert_eq!(Wiped::<i64>::zeros(3)[..], [0; 3]);
    }
}
