use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::config::Config;
use crate::manifest::{Descriptor, Manifest, media};
use crate::platform::Platform;
use crate::progress::ignore_progress;
use crate::store::Store;
use crate::unpack;
use jobc_container::tar::{Entry, Kind as Is, Writer};
use jobc_schema::reference::Reference;

static CONTINUE: AtomicBool = AtomicBool::new(false);

/// A store that an administrator has made for all users.
fn administrators_store(directory: &Path) -> Store {
    let root = directory.join("shared");
    fs::create_dir(&root).unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    Store::open(&root).unwrap()
}

/// Adds an image with one layer, of one file with this text.
fn add_image(store: &Store, name: &str, text: &str) -> Descriptor {
    let mut writer = Writer::new(Vec::new());
    let mut entry = Entry::new(Is::File, "file");
    (entry.mode, entry.size) = (0o644, text.len() as u64);
    writer.file(&entry, &mut text.as_bytes()).unwrap();
    let layer = store.put(&writer.finish().unwrap(), media::LAYER).unwrap();
    let here = Platform::here();
    let mut config = Config { os: "linux".into(), architecture: here.architecture, ..Config::default() };
    config.rootfs.diff_ids = vec![layer.digest.clone()];
    let config = store.put_json(&config, media::CONFIG).unwrap();
    let manifest = store.put_json(&Manifest::new(config, vec![layer]), media::MANIFEST).unwrap();
    store.tag(&reference(name), &manifest).unwrap();
    manifest
}

fn reference(name: &str) -> Reference {
    name.parse().unwrap()
}

/// Everything in a directory, with the times at which it was changed.
fn snapshot(directory: &Path) -> Vec<(PathBuf, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let data = entry.path().symlink_metadata().unwrap();
        found.push((entry.path(), data.modified().unwrap()));
        if data.is_dir() {
            found.extend(snapshot(&entry.path()));
        }
    }
    found.sort();
    found
}

#[test]
fn what_is_not_in_the_own_store_is_found_in_a_shared_one_and_nothing_is_written_there() {
    let directory = tempfile::tempdir().unwrap();
    let shared = administrators_store(directory.path());
    let base = add_image(&shared, "base", "of all");
    let hidden = add_image(&shared, "app", "of all, too");
    let before = snapshot(shared.root());
    let own_root = directory.path().join("own");
    let (own, unreadable) = Store::open_above(&own_root, &[shared.root().to_owned()]).unwrap();
    assert!(unreadable.is_empty(), "{unreadable:?}");
    let app = add_image(&own, "app", "of this user");

    assert_eq!(own.find(&reference("base")).unwrap(), Some(base.clone()));
    assert_eq!(own.find(&reference("app")).unwrap(), Some(app.clone()));
    assert_eq!(own.find(&reference("app").at(&hidden.digest)).unwrap(), Some(hidden));
    let names: Vec<_> = own.images().unwrap().into_iter().map(|image| (image.name, image.shared)).collect();
    let shared_root = fs::canonicalize(shared.root()).unwrap();
    assert_eq!(
        names,
        [
            (Some("docker.io/library/app:latest".to_owned()), None),
            (Some("docker.io/library/base:latest".to_owned()), Some(shared_root)),
        ]
    );
    assert!(own.is_complete(&base, &Platform::here()));

    // A blob that is shared is neither fetched nor added again, and the collection of the own store leaves it.
    assert!(own.resume(&base).unwrap().is_none());
    own.tag(&reference("mine"), &base).unwrap();
    let collected = own.collect(true, false, false).unwrap().unwrap();
    assert_eq!(collected.blobs, []);
    assert!(!own_root.join("blobs/sha256").join(base.digest.hex()).exists());

    let image = own.image(&base, &Platform::here()).unwrap();
    let layers = unpack::layers(&own, &image, &ignore_progress, &CONTINUE).unwrap();
    assert!(layers[0].starts_with(&own_root), "{}", layers[0].display());
    assert_eq!(fs::read_to_string(layers[0].join("file")).unwrap(), "of all");
    assert_eq!(snapshot(shared.root()), before);
}

#[test]
fn layers_that_root_has_unpacked_serve_root_and_are_not_collected_meanwhile() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let shared = administrators_store(directory.path());
    let base = add_image(&shared, "base", "of all");
    let image = shared.image(&base, &Platform::here()).unwrap();
    let theirs = unpack::layers(&shared, &image, &ignore_progress, &CONTINUE).unwrap();
    let list = [shared.root().to_owned()];
    let own_root = directory.path().join("own");
    let (own, _) = Store::open_above(&own_root, &list).unwrap();
    assert_eq!(unpack::layers(&own, &image, &ignore_progress, &CONTINUE).unwrap(), theirs);
    assert_eq!(fs::read_dir(own_root.join("unpacked/root")).unwrap().count(), 0);

    let pin = own.pin(std::slice::from_ref(&base.digest)).unwrap();
    drop(own);
    assert_eq!(shared.collect(false, false, false).unwrap(), None);
    drop(pin);
    assert!(shared.collect(false, false, false).unwrap().is_some());

    // A directory that others could change is not executed from.
    let layers = shared.root().join("unpacked/root");
    for (path, mode) in [(&layers, 0o775), (&layers, 0o757)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let (own, _) = Store::open_above(&own_root, &list).unwrap();
        assert_eq!(own.shared()[0].layers_of_root(), None, "{mode:o}");
    }
    fs::set_permissions(&layers, fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(shared.root(), Some(1000), None).unwrap();
    let (own, _) = Store::open_above(&own_root, &list).unwrap();
    let ours = unpack::layers(&own, &image, &ignore_progress, &CONTINUE).unwrap();
    assert!(ours[0].starts_with(&own_root), "{}", ours[0].display());
}

#[test]
fn only_images_of_a_readable_store_are_readable_for_others() {
    let directory = tempfile::tempdir().unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let shared = administrators_store(directory.path());
    assert_eq!(mode(shared.root().join("blobs/sha256")), 0o755);
    for private in ["unpacked", "cache", "held", "partial"] {
        assert_eq!(mode(shared.root().join(private)), 0o700, "{private}");
    }
    let own = Store::open(&directory.path().join("own")).unwrap();
    assert_eq!(mode(own.root().join("blobs/sha256")), 0o700);
}

#[test]
fn a_store_that_cannot_be_read_is_reported_and_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let own = directory.path().join("own");
    fs::create_dir(directory.path().join("empty")).unwrap();
    let list = [directory.path().join("absent"), directory.path().join("empty"), own.clone()];
    let (store, unreadable) = Store::open_above(&own, &list).unwrap();
    assert!(store.shared().is_empty());
    let place = directory.path().display().to_string();
    let words: Vec<_> = unreadable.iter().map(|error| error.to_string().replace(&place, "DIR")).collect();
    insta::assert_snapshot!(words.join("\n"));
}

#[test]
fn the_list_has_a_directory_per_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image-stores");
    assert_eq!(read_list(&file).unwrap(), Vec::<PathBuf>::new());
    fs::write(&file, "# of the lab\n\n  /srv/images \n/mnt/a b\n").unwrap();
    assert_eq!(read_list(&file).unwrap(), [PathBuf::from("/srv/images"), PathBuf::from("/mnt/a b")]);
    fs::write(&file, "srv/images\n").unwrap();
    let error = read_list(&file).unwrap_err().to_string();
    assert!(error.contains("`srv/images` in `") && error.contains("is not an absolute path"), "{error}");
}
