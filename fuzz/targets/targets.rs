//! A targets file, next to a job that uses what targets decide.
#![no_main]
const JOB: &str = include_str!("../../examples/torchrun-4x8/job.yaml");
libfuzzer_sys::fuzz_target!(|text: &str| jobc_fuzz::compile::build(JOB, Some(text)));
