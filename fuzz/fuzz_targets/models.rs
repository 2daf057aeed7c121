#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use sudare_fuzz::{models, mutated, write_seeds};

fuzz_target!(init: write_seeds(models::seeds()), |data: &[u8]| {
    models::check(data);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutated(data, (size, max_size), seed, models::mutate)
});
