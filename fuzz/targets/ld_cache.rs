//! The loader's cache: read, added to, written, and read again.
#![no_main]
use std::path::Path;

use jobc_gpu::ld_cache::{Cache, NATIVE_FLAGS};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(mut cache) = Cache::read(bytes) else { return };
    let _ = (cache.directories(), cache.find("libcuda.so.1", NATIVE_FLAGS).count());
    cache.add(Path::new("/usr/lib/libcuda.so.1"), NATIVE_FLAGS);
    let written = cache.write();
    let again = Cache::read(&written).expect("what was written is read again");
    assert_eq!(again.write(), written, "a cache changes when it is written twice");
});
