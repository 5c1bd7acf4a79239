//! An OpenPAI job, protocol v1 or v2: imported, then every pass.
#![no_main]
libfuzzer_sys::fuzz_target!(|text: &str| {
    // What is not OpenPAI's is the target `job`'s.
    if text.contains("taskRole") || text.contains("protocolVersion") {
        jobc_fuzz::compile::build(text, None);
    }
});
