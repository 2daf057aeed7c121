#![no_main]

use sudare_rlwe::multiparty::GaloisShare;

libfuzzer_sys::fuzz_target!(|data: &[u8]| sudare_fuzz::party_object::<GaloisShare>(data));
