#![no_main]

libfuzzer_sys::fuzz_target!(
    |data: &[u8]| sudare_fuzz::object::<sudare_rlwe::wire::Bundle<sudare_he::ckks::Ciphertext>>(data)
);
