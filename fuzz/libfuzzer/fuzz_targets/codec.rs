//! libFuzzer's entry to [`ostler_fuzz::codec`].
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ostler_fuzz::codec(data));
