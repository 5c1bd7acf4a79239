//! A manifest, an index and an image's configuration.
#![no_main]
use jobc_image::{Config, Index, Manifest};
use serde::{Serialize, de::DeserializeOwned};

fn check<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    let Ok(document) = serde_json::from_slice::<T>(bytes) else { return };
    let written = serde_json::to_vec(&document).expect("a document is JSON");
    let again: T = serde_json::from_slice(&written).expect("what was read is read again");
    let rewritten = serde_json::to_vec(&again).expect("a document is JSON");
    assert_eq!(written, rewritten, "a document changes when it is written twice");
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    check::<Manifest>(bytes);
    check::<Index>(bytes);
    check::<Config>(bytes);
});
