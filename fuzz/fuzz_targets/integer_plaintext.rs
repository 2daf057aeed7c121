#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sudare_fuzz::integer_object::<sudare_exact::Plaintext>(data));
