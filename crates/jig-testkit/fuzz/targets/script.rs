#![no_main]

#[path = "../../../jig-runtime-scripted/tests/it/fuzzed/script.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
