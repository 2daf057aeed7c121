//! Wiping of secret words at the speed of memory.

use zeroize::optimization_barrier;

/// Overwrites values with zeros, and keeps the compiler from leaving that out.
///
/// What [`zeroize::Zeroize`] does for a slice, by stores of whole vectors: its own stores go value by value, which
/// takes longer than to decrypt.
pub fn wipe<T: Copy + Default>(values: &mut [T]) {
    values.fill(T::default());
    optimization_barrier(values);
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
    }
}
