#![no_main]

#[path = "../../../jig-protocol/tests/it/fuzzed/envelope.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
