#![no_main]

use sudare_rlwe::multiparty::RelinFirstShare;

libfuzzer_sys::fuzz_target!(|data: &[u8]| sudare_fuzz::party_object::<RelinFirstShare>(data));
