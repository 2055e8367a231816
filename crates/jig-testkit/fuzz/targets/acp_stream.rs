#![no_main]

#[path = "../../../jig-runtime-acp/tests/it/fuzzed/stream.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
