use std::time::Duration;

use super::*;
use crate::build::overlay::mount_layers;
use crate::build::source_listing::find;
use jobc_dockerfile::ignore::Ignore;

/// The key of all files of a context, and how many digests a store keeps then.
fn key(store: &Store, context: &Path) -> (Digest, usize) {
    let contents = ContentDigests::of(store, context);
    let tree = mount_layers(&[context.to_owned()], None).unwrap();
    let mut key = Key::of("test");
    for found in find(&tree, ".", &Ignore::default(), false).unwrap() {
        contents.add_to_key(&mut key, &tree, &found, &AtomicBool::new(false)).unwrap();
    }
    let path = contents.path.clone();
    contents.save();
    (key.finish(), fs::read(path).map_or(0, |bytes| bytes.len() / RECORD_SIZE))
}

#[test]
fn names_bits_and_contents_count_and_times_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("images")).unwrap();
    let context = directory.path().join("context");
    fs::create_dir(&context).unwrap();
    let file = context.join("file");
    fs::write(&file, "one").unwrap();
    let (first, kept) = key(&store, &context);
    assert_eq!(kept, 0, "what was just written may be written again within the clock's grain");
    File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_modified(SystemTime::now() - Duration::from_secs(99))
        .unwrap();
    assert_eq!(key(&store, &context).0, first);
    fs::write(&file, "two").unwrap();
    let (second, _) = key(&store, &context);
    assert_ne!(second, first);
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let (third, _) = key(&store, &context);
    assert_ne!(third, second);
    fs::rename(&file, context.join("other")).unwrap();
    assert_ne!(key(&store, &context).0, third);
}

#[test]
fn a_settled_file_is_read_once() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("images")).unwrap();
    // A file of the host, old enough.
    let context = Path::new("/etc/apt");
    if !context.is_dir() {
        jobc_test_skip::skip("/etc/apt");
        return;
    }
    let (first, kept) = key(&store, context);
    assert!(kept > 0);
    let contents = ContentDigests::of(&store, context);
    assert_eq!(contents.before.len(), kept);
    assert_eq!(key(&store, context), (first, kept));
}
