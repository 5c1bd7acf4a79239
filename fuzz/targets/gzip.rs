//! A content compressed with gzip, at most 64 MiB of which are read.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jobc_fuzz::decompress(&[0x1f, 0x8b, 8], bytes));
