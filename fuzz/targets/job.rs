//! A job file: every pass, for all built-in targets.
#![no_main]
libfuzzer_sys::fuzz_target!(|text: &str| jobc_fuzz::compile::build(text, None));
