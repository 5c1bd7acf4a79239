//! An archive that is unpacked to a directory: nothing may appear outside it.
#![no_main]
use std::fs;
use std::sync::atomic::AtomicBool;

use jobc_container::archive::extract;
use jobc_container::archive::tree::{Owners, Tree};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let around = tempfile::tempdir_in(jobc_fuzz::scratch()).expect("a temporary directory");
    let root = around.path().join("root");
    fs::create_dir(&root).expect("a new directory");
    let mut tree = Tree::new(&root, Owners::CurrentUser).expect("a tree");
    let unpacked = extract(&mut tree, bytes, 1000, &AtomicBool::new(false));
    if unpacked.is_ok() {
        let _ = tree.finish();
    }
    let names: Vec<_> = fs::read_dir(around.path()).expect("it is still there").flatten().collect();
    assert_eq!(names.len(), 1, "something was written outside the root: {names:?}");
});
