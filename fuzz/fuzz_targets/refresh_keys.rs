#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sudare_fuzz::refresh_keys(data));
