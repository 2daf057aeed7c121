#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use sudare_fuzz::{mutated, stores, write_seeds};

fuzz_target!(init: write_seeds(stores::seeds()), |data: &[u8]| {
    stores::check(data);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutated(data, (size, max_size), seed, stores::mutate)
});
