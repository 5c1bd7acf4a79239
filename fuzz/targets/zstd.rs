//! A content compressed with zstd, at most 64 MiB of which are read.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| jobc_fuzz::decompress(&[0x28, 0xb5, 0x2f, 0xfd], bytes));
