#![no_main]

#[path = "../../../jig-engine/tests/it/fuzzed/manifest.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
