#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use sudare_fuzz::{mutated, parties, write_seeds};

fuzz_target!(init: write_seeds(parties::seeds()), |data: &[u8]| {
    parties::check(data);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutated(data, (size, max_size), seed, parties::mutate)
});
