//! /etc/passwd and /etc/group of an image, /etc/subuid of the host: entries, and a user looked up by name.
#![no_main]
use std::fs;

use jobc_container::root::layers::Layers;
use jobc_container::user::lookup;
use jobc_sys::accounts::{grants, groups, read, users};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = read(bytes).expect("memory does not fail");
    let _ = grants(&text).count();
    let members: usize = groups(&text).map(|group| group.members().count()).sum();
    assert!(members <= text.len(), "more members than bytes");
    let Some(user) = users(&text).next() else { return };
    let root = tempfile::tempdir_in(jobc_fuzz::scratch()).expect("a temporary directory");
    fs::create_dir(root.path().join("etc")).expect("a new directory");
    for name in ["etc/passwd", "etc/group"] {
        fs::write(root.path().join(name), bytes).expect("a new file");
    }
    let layers = Layers::open(&[root.path().to_owned()]).expect("the directory is there");
    let _ = lookup(&layers, user.name);
    let _ = lookup(&layers, &format!("{}:{}", user.uid, user.gid));
});
