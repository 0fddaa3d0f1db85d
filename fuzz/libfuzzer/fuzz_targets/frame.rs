//! libFuzzer's entry to [`ostler_fuzz::frame`].
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ostler_fuzz::frame(data));
