//! libFuzzer's entry to [`ostler_fuzz::peer`].
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ostler_fuzz::peer(data));
